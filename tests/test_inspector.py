"""The inspector: real configurations against what their classes do, and others that are broken in known ways or at random."""

import copy
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
import transformers

from posenc_course.__main__ import main
from posenc_course.inspector import (
    CATALOGUE,
    Knowledge,
    Report,
    inspect,
    inspect_model,
    load_configurations,
    pairs,
    read_config,
)
from posenc_course.inspector._breaking import _differences
from posenc_course.inspector._knowing import of_table
from posenc_course.inspector._probing import NotProbed, probe
from posenc_course.inspector._reading import RULES
from posenc_course.models import LayerKind, find_model, load_models
from posenc_course.rope_scaling import dynamic_ntk
from posenc_course.sinusoidal import frequencies
from tests.commands import ROOT, WEEKLY, one_of_each
from tests.test_models import OF_CLASS, part_of
from tools.unseen import Noise, Unseen

STORED = load_configurations()
# What isn't as it seems: the codes of all findings that aren't notes. Every other configuration has none.
FOUND = {
    "Llama 2 7B": ["base-missing"],
    "GPT-J": ["base-missing", "unread-key"],
}
# Classes that can't be run with so few channels; their configurations are read only.
UNPROBED = {"DeepSeek-V4 Flash", "GPT-J"}
LLAMA = STORED["Llama 3.1 8B"]["config"]
QWEN = STORED["Qwen2.5 3B"]["config"]


def without(config: Mapping[str, Any], *names: str, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names} | changes


def codes(report: Report) -> list[str]:
    return sorted({finding.code for finding in report.findings if finding.level != "note"})


def kinds(known: Iterable[Knowledge]) -> frozenset[tuple[Any, ...]]:
    """What the inspector tells apart in a model's layers."""
    return frozenset(
        (of.encoding, of.layout, part_of(of.rotated), of.stretch[0], of.attention_factor == 1, bool(of.window), bool(of.sinks))
        for of in known
    )


# Two layers, of which the second has no RoPE.
HALF = without(LLAMA, "rope_theta", "rope_scaling", "rope_parameters", num_hidden_layers=2)
TYPES = {"layer_types": ["sliding_attention", "full_attention"]}
SPELLINGS = {
    "a flag for each layer": HALF | {"rope_theta": 500_000, "no_rope_layers": [1, 0]},
    "a base for each layer, or 0": HALF | {"layer_rope_theta": [500_000, 0]},
    "values for each type, or null": HALF | TYPES | {
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 500_000}, "full_attention": None}
    },
}  # fmt: skip


@pytest.mark.parametrize("config", SPELLINGS.values(), ids=SPELLINGS)
def test_a_layer_without_rope_is_known_however_it_is_written(config: dict[str, Any]) -> None:
    rotary, plain = inspect(config, run=False).kinds
    assert (rotary.layers, rotary.written.encoding, rotary.written.base) == ((0,), "RoPE", 500_000)
    assert (plain.layers, plain.written.encoding) == ((1,), "none")


# ── real configurations ──────────────────────────────────────────────────────────────────────────────────────────────────


READ = {name: [kind.known for kind in inspect(each["config"], run=False).kinds] for name, each in STORED.items()}
RELEASED = {model.checkpoint: model for model in load_models() if model.checkpoint in STORED}
# Their copies leave something out (two tables, the kinds of layers, a stretching), or give one base to all layers.
LACKS = {"Whisper tiny", "DeepSeek-V4 Flash", "OLMo 3 7B", "Gemma 3 4B"}
TOLD = {name: name if name in RELEASED else (name in FOUND, kinds(known)) for name, known in READ.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each(TOLD))
def test_a_real_configuration_says_what_its_class_does(name: str) -> None:
    report = inspect(STORED[name]["config"], name=name)
    assert codes(report) == FOUND.get(name, []), report.text()
    assert bool(report.unprobed) == (name in UNPROBED)
    if not report.findings and not report.unprobed:
        assert report.text().startswith(f"{name}: the class {report.class_name} does what the configuration says\n")
    if name in RELEASED and name not in LACKS:
        assert listed(report) == sorted(
            (each.released.layers[0], *essence(of_table(each)), str(of_table(each).stretch))  # type: ignore[index]
            for each in RELEASED[name].attention
        )
    for kind in report.kinds:
        if kind.done and kind.done.encoding == kind.written.encoding == "RoPE":
            assert kind.written.layout in (None, kind.done.layout)
            assert kind.written.first_channel in (None, kind.done.first_channel)
            assert kind.written.score is None or kind.done.score == pytest.approx(kind.written.score, rel=1e-5)


def listed(report: Report) -> list[tuple[Any, ...]]:
    """Each kind of layers, with what the table of models knows of it."""
    return sorted((kind.count, *essence(kind.known), str(kind.known.stretch)) for kind in report.kinds)


def test_the_last_channels_of_latent_attention_rotate_and_its_scores_have_a_factor() -> None:
    report = inspect(STORED["DeepSeek-V3"]["config"], run=False)
    assert "base 10,000; 64 of 192 channels, from channel 128; pairs of neighbours" in report.text()
    assert "scores are multiplied by 1.874 in addition" in report.text()


def test_layers_whose_last_digits_differ_are_of_one_kind() -> None:
    with Unseen(Noise(0)):
        report = inspect(LLAMA, run=False)
    assert [kind.count for kind in report.kinds] == [LLAMA["num_hidden_layers"]]


def test_what_a_configuration_leaves_to_its_class_is_said_for_each_kind_of_layer() -> None:
    """Gemma 3's own file has no base, and its class stretches only the layers that see everything."""
    text = {"hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024, "model_type": "gemma3_text"}
    config = {"model_type": "gemma3", "text_config": text | {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}}}
    report = inspect(config)
    narrow, wide = report.kinds
    assert [kind.known.stretch[0] for kind in (narrow, wide)] == ["none", "linear"]
    some = "10,000 in 29 of 34 layers (0, 1, 2, …) and 1,000,000 in 5 of 34 layers (5, 11, 17, …)"
    assert report.headline() == f"gemma3_text: no base is written down, and the class takes {some}"
    by_default = "1,000,000 by default, and 10,000 in layers with a window"
    assert inspect(config, run=False).headline().endswith(f"and the class takes {by_default}")


def test_configurations_have_sources_and_are_many() -> None:
    assert len(STORED) >= 25
    for each in STORED.values():
        assert re.match(r"https://github\.com/[\w-]+/[\w-]+/blob/[0-9a-f]{40}/", each["source"])
    assert {*FOUND} | UNPROBED <= {*STORED}


# Whisper has two tables, Granite's class has no attention by default, and the others don't read texts or can't be run so small.
SPECIAL = ("Whisper", "DeepSeek-V4", "Granite 4.0-H", "MiMo-V2-Flash")
TABLE = [model.name for model in load_models() if model.config and model.purpose != "images" and model.name not in SPECIAL]


def knowledge(kind: LayerKind) -> Knowledge:
    """What the table says of a kind of layer, by default."""
    default = kind.default
    return Knowledge(
        kind.encoding,
        rotated=default.rotated,
        layout=kind.layout,
        frequencies=tuple(default.frequencies().tolist()) if kind.encoding == "RoPE" else (),
        attention_factor=default.scaling.attention_factor if default.scaling else 1.0,
        window=default.window,
        rows=default.rows,
        sinks=kind.sinks,
    )


def model_kind(name: str) -> tuple[Any, ...]:
    model = find_model(name)
    return model.purpose, bool(model.recurrent), kinds(map(knowledge, model.attention))


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each({name: model_kind(name) for name in TABLE}))
def test_probe_finds_what_the_table_of_models_says(name: str) -> None:
    """The table's defaults are tested against the classes in a different way, in test_models.py."""
    model = find_model(name)
    # By its defaults, the first class rotates, and the second one can't be built.
    changes = OF_CLASS[model.config] if name in {"Olmo Hybrid", "Qwen3.8-Flash-Next"} else {}
    report = inspect(getattr(transformers, model.config)(**changes).to_dict())
    assert not report.unprobed, report.unprobed
    found = sorted((kind.count, *essence(kind.known)) for kind in report.kinds)
    expected = []
    for kind in model.attention:
        assert kind.default.layers
        if kind.default.layers[0]:
            expected.append((kind.default.layers[0], *essence(knowledge(kind))))
    assert found == sorted(expected)


def essence(knowledge: Knowledge) -> tuple[Any, ...]:
    """What both know, with single precision's frequencies rounded; some classes of the table have no default window."""
    omega = knowledge.frequencies
    return (
        knowledge.encoding,
        knowledge.rotated or (),
        str(knowledge.layout),
        [float(f"{w:.4g}") for w in (*omega[:2], *omega[-1:])],
        round(knowledge.attention_factor, 4),
        knowledge.window or 0,
        knowledge.rows or 0,
        bool(knowledge.sinks),
    )


# ── configurations that are broken in the ways that people report ────────────────────────────────────────────────────────


BROKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "base under a name that the class doesn't read": (
        without(LLAMA, "rope_theta", "rope_scaling", rotary_emb_base=1_000_000.0),
        "base",
        "the base should be 1,000,000, but LlamaModel rotates with 10,000 in all layers",
    ),
    "base lost beside two dictionaries": (
        without(
            LLAMA,
            "rope_theta",
            rope_scaling={"rope_type": "linear", "factor": 2.0},
            rope_parameters={"rope_type": "default", "rope_theta": 5_000_000.0},
        ),
        "base",
        "the base should be 5,000,000, but LlamaModel rotates with 10,000 in all layers",
    ),
    "bases that contradict each other": (
        without(
            LLAMA, rope_theta=10_000.0, rope_parameters=LLAMA["rope_scaling"] | {"rope_theta": 500_000.0}, rope_scaling=None
        ),
        "two-bases",
        "the base is 10,000 under rope_theta, and 500,000 with the scaling",
    ),
    "attention factor under another name": (
        without(
            QWEN,
            rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192, "attn_factor": 1.0},
        ),
        "unread-key",
        "attn_factor isn't read for yarn; attention_factor is",
    ),
    "YaRN's length after stretching in the place of the one before": (
        without(QWEN, rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 131_072}),
        "lengths",
        "131,072 tokens stretched by 4 are 524,288, not 32,768: original_max_position_embeddings is the length before "
        "stretching",
    ),
    "YaRN's two lengths alike": (
        without(QWEN, rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}),
        "lengths",
        "original_max_position_embeddings and max_position_embeddings are both 32,768, but stretched by 4, the second should "
        "be 131,072, or the first 8,192",
    ),
    "window that the class doesn't have": (
        without(LLAMA, sliding_window=4096),
        "window",
        "the window of 4,096 tokens isn't used: LlamaModel has none in all layers",
    ),
    "half of the channels, in a class that rotates all of them": (
        without(STORED["OLMo 2 7B"]["config"], rotary_pct=0.5),
        "channels",
        "64 channels should rotate, but Olmo2Model rotates 128 in all layers",
    ),
    "type of scaling that nobody has": (
        without(QWEN, rope_scaling={"rope_type": "ntk-by-parts", "factor": 4.0}),
        "unread-key",
        "the type of scaling is 'ntk-by-parts', and transformers knows default, linear, dynamic, proportional, axial, mrope, "
        "yarn, llama3, longrope",
    ),
    "list of layers without RoPE, the wrong way round": (
        {"model_type": "smollm3", "num_hidden_layers": 8, "hidden_size": 256, "num_attention_heads": 2, "rope_theta": 5e6}
        | {"max_position_embeddings": 65_536, "no_rope_layers": [0, 0, 0, 1] * 2},
        "nope-list",
        "no_rope_layers leaves 6 of 8 layers without RoPE: in this list, 1 means that a layer rotates",
    ),
    "base in a model without RoPE": (
        {
            "model_type": "nemotron_h",
            "hybrid_override_pattern": "M-*-",
            "hidden_size": 256,
            "num_attention_heads": 2,
            "head_dim": 128,
        }
        | {"rope_theta": 10_000, "num_key_value_heads": 2, "max_position_embeddings": 8192},
        "no-rope",
        "the configuration has a base, but NemotronHModel doesn't rotate in any layer",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_configuration_is_named(what: str) -> None:
    config, code, text = BROKEN[what]
    report = inspect(config, name="Broken")
    (finding,) = (each for each in report.findings if each.code == code)
    assert finding.text == text
    assert finding.level == ("warning" if code in ("nope-list", "no-rope") or "alike" in what else "wrong")
    lines = report.text()
    assert finding.symptom in " ".join(lines.split())
    assert finding.thread in lines


# What is just right, and what is just wrong.
YARN = {"rope_type": "yarn", "factor": 4.0}
EDGES: dict[str, tuple[dict[str, Any], ...]] = {
    "lengths": tuple(QWEN | {"rope_scaling": YARN | {"original_max_position_embeddings": length}} for length in (8270, 8280)),
    "two-bases": tuple(LLAMA | {"rope_theta": base, "rope_scaling": YARN | {"rope_theta": 1e4}} for base in (1e4, 10_001.0)),
    "nope-list": tuple(LLAMA | {"no_rope_layers": layers} for layers in ([1, 0] * 16, [1, 0] * 15 + [0, 0])),
    "base-missing": tuple(without(LLAMA, "rope_theta") | given for given in ({"rope_theta": 2}, {})),
}


@pytest.mark.parametrize("code", EDGES)
def test_a_finding_begins_at_its_edge(code: str) -> None:
    right, wrong = (codes(inspect(config, run=False)) for config in EDGES[code])
    assert (right.count(code), wrong.count(code)) == (0, 1)


def turning(base: float, **values: Any) -> Knowledge:
    omega = tuple(frequencies(64, base=base).tolist())
    return Knowledge("RoPE", base, (64, 64), frequencies=omega, trained=omega, **values)


@pytest.mark.parametrize(
    ("does", "code"),
    [
        (turning(10_001.0, window=4096), None),  # rounded
        (turning(10_020.0, window=4096), "base"),
        (turning(10_000.0, window=4097), "window"),
        (turning(10_000.0, window=4095), "window"),
        (turning(10_000.0, window=0), "window"),
        (turning(10_000.0, window=4096, attention_factor=1.001), "scaling"),
    ],
)
def test_a_class_that_does_nearly_what_is_written_is_named(does: Knowledge, code: str | None) -> None:
    found = _differences(turning(10_000.0, window=4096), does, "all layers", SimpleNamespace(name="A class"))  # type: ignore[arg-type]
    assert [finding.code for finding in found] == [code] * (code is not None)


def test_the_worst_finding_is_the_first_line() -> None:
    config, code, text = BROKEN["base lost beside two dictionaries"]
    report = inspect(config, name="Broken")
    assert report.text().splitlines()[0].startswith(f"Broken: {text}")
    assert report.findings[0].code == code
    assert [finding.level for finding in report.findings] == ["wrong", "warning"]


def test_pages_exist_and_threads_are_addresses() -> None:
    for _, page, thread in CATALOGUE.values():
        name, _, heading = page.partition("#")
        (source,) = (path for path in (ROOT / f"text/{name}.md", ROOT / f"book/{name}.md") if path.exists())
        headings = re.findall("^#+ (.+)", source.read_text(encoding="utf-8"), re.MULTILINE)
        assert not heading or heading in {re.sub(r"\W+", "-", each.lower()) for each in headings}
        assert thread.startswith("https://github.com/")


# ── without the class ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_configuration_alone_is_compared_with_the_table() -> None:
    config, _, _ = BROKEN["base in a model without RoPE"]
    report = inspect(config, run=False)
    assert codes(report) == ["no-rope"]
    assert report.findings[0].text == "the configuration has a base, but NemotronH has no RoPE in any layer"
    assert report.unprobed == "you asked for the configuration alone"
    (kind,) = inspect(LLAMA, run=False).kinds
    assert kind.done is None
    assert kind.known.stretch == ("llama3", 8.0, 8192)


def test_a_class_that_refuses_or_is_unknown_is_no_crash() -> None:
    with pytest.raises(NotProbed, match="has no class for model_type 'parrot'"):
        probe({"model_type": "parrot"})
    report = inspect(LLAMA | {"model_type": "parrot"})
    assert "has no class for model_type 'parrot'" in report.headline()
    report = inspect(LLAMA | {"rope_scaling": {"rope_type": "yarn"}})
    assert codes(report) == ["refused"]


def test_a_class_that_would_fill_the_memory_is_not_built() -> None:
    report = inspect(STORED["GPT-2"]["config"] | {"n_positions": 10**9})
    assert re.match(r"GPT2Model would take [1-9][0-9,]* GB even in small$", report.unprobed)
    assert not report.findings


def test_a_gguf_header_is_read_in_the_same_words(tmp_path: Path) -> None:
    import gguf

    file = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(file, "smollm3")
    writer.add_name("Tiny")
    writer.add_block_count(36)
    writer.add_context_length(65_536)
    writer.add_embedding_length(2048)
    writer.add_head_count(16)
    writer.add_rope_dimension_count(128)
    writer.add_rope_freq_base(5e6)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    report = inspect(read_config(file))
    assert report.name == "Tiny"
    assert codes(report) == ["no-rope"]
    assert report.findings[0].text == "SmolLM3 has layers without RoPE, and the configuration doesn't say which"
    (kind,) = report.kinds
    assert kind.known.base == 5e6
    assert kind.known.rotated == (128, 128)
    assert len(kind.layers) == 36
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"isn't a whole GGUF file \(.*\): download it again$"):
        read_config(file)


# ── configurations that are damaged at random ──────────────────────────────────────────────────────────────────────────────


JUNK: list[Any] = [None, "", "many", "8", "constructor", "yarn", "longrope", "llama3", "dynamic", True, False]
JUNK += [-1, -0.5, 0, 0.5, 1, 2.75, 10**9, 10**18, 1e300]
JUNK += [[], [1], ["a"], [None], [[1]], {}, {"a": 1}, {"factor": {}}, {"full_attention": None, "b": {}}]
UNREADABLE = {
    'num_attention_heads must be a whole number from 1 to 65,536, got "many"': {"num_attention_heads": "many"},
    "num_hidden_layers must be a whole number from 1 to 1,000, got 1000000000": {"num_hidden_layers": 10**9},
    "max_position_embeddings must be a whole number from 1 to 10^15, got 0.5": {"max_position_embeddings": 0.5},
    "rope_theta must be a number from 2 to 10^15, got NaN": {"rope_theta": math.nan},
    "rope_theta must be a number from 2 to 10^15, got true": {"rope_theta": True},
    'alibi must be true or false, got "yes"': {"alibi": "yes"},
    "rope_scaling must be an object with keys, got [1,2,": {"rope_scaling": [*range(1, 100)]},
    "rope_scaling.factor must be a number from 1 to 10^15, got 0.5": {"rope_scaling": {"rope_type": "linear", "factor": 0.5}},
    "rope_scaling.short_factor[1] must be a number from": {"rope_scaling": {"type": "longrope", "short_factor": [1, None]}},
    "rope_parameters.full_attention must be an object": {"rope_parameters": {"full_attention": 1, "sliding_attention": {}}},
    "layer_rope_theta[0] must be 0 or a number from 2": {"layer_rope_theta": [-1]},
    "sliding_window_pattern must be a string or a whole number from 1": {"sliding_window_pattern": []},
    "beta_slow must be less than beta_fast, got 40 and 32": {"rope_scaling": {"type": "yarn", "factor": 4, "beta_slow": 40}},
    "200 channels can't rotate in a head that has 128": {"rotary_dim": 200},
    "must be at least original_max_position_embeddings, 262,144": {
        "rope_scaling": {"type": "yarn", "original_max_position_embeddings": 262_144}
    },
}


@pytest.mark.parametrize("words", UNREADABLE)
def test_a_value_that_cannot_be_is_named_with_what_it_may_be(words: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(words)}.*: correct the configuration$"):
        inspect(LLAMA | UNREADABLE[words])


def damaged(seed: int) -> dict[str, Any]:
    """A released configuration in which up to three values are lost or replaced, or stand where there was none."""
    random = Random(seed)
    config = copy.deepcopy(random.choice([*SPELLINGS.values(), *(each["config"] for each in STORED.values())]))
    for _ in range(random.randint(1, 3)):
        part = config
        while (inner := [value for value in part.values() if isinstance(value, dict) and value]) and random.random() < 0.8:
            part = random.choice(inner)
        key = random.choice([*part, *RULES] if random.random() < 0.3 else [*part])
        if random.random() < 0.2:
            part.pop(key, None)
        else:
            part[key] = copy.deepcopy(random.choice(JUNK))
    return config


def read_or_refused(config: dict[str, Any], **options: Any) -> Report | str:
    """The report, or the words in which it's refused; nothing else may happen."""
    try:
        return inspect(config, **options)
    except ValueError as error:
        return str(error)


def test_a_damaged_configuration_ends_in_a_report_or_in_one_line() -> None:
    ends = [read_or_refused(damaged(seed), run=False) for seed in range(500)]
    refused = [end for end in ends if isinstance(end, str)]
    assert 100 < len(refused) < 400
    for words in refused:
        assert re.fullmatch(r".{,200}: (correct the configuration|give the config\.json of a model)", words)
    assert all(end.text() for end in ends if isinstance(end, Report))


@pytest.mark.slow
def test_a_class_does_what_it_likes_with_a_damaged_configuration() -> None:
    reports = [end for seed in range(100 if WEEKLY else 50) if isinstance(end := read_or_refused(damaged(seed)), Report)]
    assert all(report.text() for report in reports)
    assert sum(not report.unprobed for report in reports) > 5


# ── lengths ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pairs_are_those_that_chapters_13_and_18_found_guilty() -> None:
    """Pair 3 of 8 in the course's small models, and pairs 22 and 23 of 32 in SmolLM2-135M."""
    small = tuple(frequencies(16).tolist())
    assert pairs(Knowledge("RoPE", frequencies=small), 64).brakes == (3,)
    released = tuple(frequencies(64, base=100_000).tolist())
    found = pairs(Knowledge("RoPE", frequencies=released), 8192)
    assert found.brakes == (22, 23)
    assert found.incomplete == tuple(range(20, 32))
    assert found.first_new == 8192


def test_a_stretching_moves_the_first_new_angle() -> None:
    report = inspect(LLAMA, run=False)
    (kind,) = report.kinds
    found = pairs(kind.known, 8192)
    assert (found.kept, found.divided, len(found.incomplete)) == (29, 29, 29)
    assert found.first_new == 65_536
    assert (65_536, "the first distance with an angle that training didn't show, in all layers") in report.limits


def test_lengths_need_a_layer_with_rope() -> None:
    with pytest.raises(ValueError, match="no frequencies are known of 'ALiBi': give a layer with RoPE"):
        pairs(Knowledge("ALiBi"), 64)
    with pytest.raises(ValueError, match=r"length must be a whole number >= 1, got 0: give"):
        pairs(Knowledge("RoPE", frequencies=(1.0,)), 0)


def test_tables_end_and_factors_switch() -> None:
    assert dict(inspect(STORED["GPT-2"]["config"], run=False).limits)[1024].startswith("the table ends")
    assert dict(inspect(STORED["Phi-4-mini"]["config"], run=False).limits)[4096].startswith("the frequencies switch")


@pytest.mark.slow
def test_a_dynamic_scaling_switches_at_the_longest_text() -> None:
    report = inspect(LLAMA | {"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}, "max_position_embeddings": 8192})
    (kind,) = report.kinds
    plain = frequencies(128, base=500_000)
    for known in (kind.written, kind.done):
        assert known
        assert known.frequencies == pytest.approx(plain.tolist(), rel=1e-4)
        assert known.far == pytest.approx(dynamic_ntk(plain, 4 * 8192, 8192, 4.0).tolist(), rel=1e-4)
    assert (8192, "the frequencies switch: cached keys keep the old angles") in report.limits


def test_a_window_within_the_training_length_leaves_no_new_angle() -> None:
    config = without(LLAMA, "rope_scaling", max_position_embeddings=4096)
    full = "the window of all layers is full: keys farther away are out of sight there"
    assert dict(inspect(config | {"sliding_window": 4096}, run=False).limits) == {4096: full}
    assert len(inspect(config | {"sliding_window": 4097}, run=False).limits) > 1


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(config: Any) -> str:
        file = tmp_path / "config.json"
        file.write_text(config if isinstance(config, str) else json.dumps(config))
        return str(file)

    return written


def test_exit_status_tells_ci_what_is_wrong(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    wrong, warned = BROKEN["bases that contradict each other"][0], STORED["Llama 2 7B"]["config"]
    assert main(["inspect", write(LLAMA), "--no-run"]) == 0
    assert main(["inspect", write(wrong), "--no-run"]) == 1
    assert main(["inspect", write(warned), "--no-run"]) == 0
    assert main(["inspect", write(warned), "--no-run", "--strict"]) == 1
    assert "no base is written down" in capsys.readouterr().out


def test_json_is_for_programs(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", write(LLAMA), "--no-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kinds"][0]["written"]["base"] == 500_000
    assert len(found["kinds"][0]["written"]["frequencies"]) == 64
    wrong = BROKEN["bases that contradict each other"][0]
    assert main(["inspect", write(wrong), "--no-run", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["code"] == "two-bases"


def test_a_model_of_the_table_is_known_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    for model in load_models():
        assert inspect_model(model.name).text()
    assert main(["inspect", "gpt-oss"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("gpt-oss: what the table of models says\n")
    assert "stretched: yarn, by 32 from 4,096 tokens" in out
    assert "sinks" in out
    assert "12 of 24 layers: RoPE" in out  # the table doesn't say which
    assert main(["inspect", "Gemma 3 4B", "--no-run"]) == 0
    said = "nothing in the configuration contradicts itself, but no class was run (you asked for the configuration alone)"
    assert capsys.readouterr().out.startswith(f"Gemma 3 4B: {said}\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "isn't JSON"),
        ("[1]", "holds a list: a configuration is a JSON object"),
        ("{}", "no key says how many layers there are, such as num_hidden_layers: give the config.json"),
        (
            '{"num_hidden_layers": -2}',
            "num_hidden_layers must be a whole number from 1 to 1,000, got -2: correct the configuration",
        ),
        ("[" * 100_000, "isn't JSON"),
    ],
)
def test_an_error_is_one_line(text: str, message: str, write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", write(text)])
    assert ended.value.code == 2
    out = capsys.readouterr()
    assert message in out.err
    assert out.err.count("\n") == 1
    assert not out.out


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["inspect", "no-such-model"])
    assert capsys.readouterr().err.startswith("error: there is no file 'no-such-model': give a config.json, a GGUF file, or")
