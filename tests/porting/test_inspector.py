"""The inspector: real configurations against what their classes do, and others that are broken in known ways or at random."""

import io
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from posenc_course.__main__ import main
from posenc_course.inspector import Knowledge, catalogue, inspect, pairs, read_config
from posenc_course.inspector._layers import of_table
from posenc_course.models import load_models
from posenc_course.sinusoidal import frequencies
from tests.commands import ROOT
from tests.porting.configurations import CASES, LLAMA, QWEN, STORED, STRANGE, without

RELEASED = {model.checkpoint: model for model in load_models() if model.checkpoint in STORED}
# Their copies leave something out: two tables, the kinds of layers, a stretching.
LACKS = {"Whisper tiny", "DeepSeek-V4 Flash", "OLMo 3 7B", "Gemma 3 4B"}


@pytest.mark.slow
@pytest.mark.parametrize("name", STORED)
def test_a_real_configuration_says_what_its_class_does(name: str) -> None:
    """No healthy one is called wrong, and reading alone says nothing else of its layers than running the class does."""
    ran, read = (inspect(STORED[name]["config"], run=run) for run in (True, False))
    assert ran.status() == (3 if name == "DeepSeek-V4 Flash" else 0), ran.text()
    assert bool(ran.unprobed) == (name == "Whisper tiny"), "it can't be run with so few channels"
    assert read.status() in (0, 3)
    assert {kind.evidence for kind in ran.kinds} == {"written" if ran.unprobed else "done"}
    assert {kind.evidence for kind in read.kinds} == {"written"}
    if read.status() == 0:
        assert [kind.layers for kind in read.kinds] == [kind.layers for kind in ran.kinds]
        one, other = ([(k.known.encoding, k.known.base, k.known.rotated, k.known.window) for k in r.kinds] for r in (read, ran))
        assert one == other
    for kind in ran.kinds:
        if kind.done and kind.done.encoding == kind.written.encoding == "RoPE":
            assert kind.written.layout in (None, kind.done.layout)
            assert kind.written.first_channel in (None, kind.done.first_channel)
            assert kind.written.score is None or kind.done.score == pytest.approx(kind.written.score, rel=1e-5)
    if name in RELEASED and name not in LACKS:
        expected = ((each.released.layers[0], of_table(each)) for each in RELEASED[name].attention)  # type: ignore[index]
        assert listed((kind.count, kind.known) for kind in ran.kinds) == listed(expected)


def listed(kinds: Iterable[tuple[int, Knowledge]]) -> list[tuple[Any, ...]]:
    """The kinds of layers, with single precision's frequencies rounded; some classes of the table have no default window."""
    return sorted(
        (
            count,
            known.encoding,
            known.rotated or (),
            str(known.layout),
            [float(f"{omega:.4g}") for omega in (*known.frequencies[:2], *known.frequencies[-1:])],
            round(known.attention_factor, 4),
            known.window or 0,
            known.rows or 0,
            bool(known.sinks),
            str(known.stretch),
        )
        for count, known in kinds
    )


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_is_true_and_says_how_it_is_known(case: str) -> None:
    """With the class and without it; the exit status is 1 for what's proved, and 3 for what isn't known."""
    config, statuses, words = CASES[case]
    for run, status in zip((True, False), statuses, strict=True):
        report = inspect(config, run=run)
        text = " ".join(report.text().split())
        assert report.status() == status, text
        for word in words:
            if not word.startswith("run: ") or run:
                assert (word.removeprefix("not: ").removeprefix("run: ") in text) != word.startswith("not: "), (word, text)


def test_pages_exist_and_threads_are_addresses() -> None:
    for each in catalogue().values():
        name, _, heading = each["page"].partition("#")
        (source,) = (path for path in (ROOT / f"text/{name}.md", ROOT / f"book/{name}.md") if path.exists())
        headings = re.findall("^#+ (.+)", source.read_text(encoding="utf-8"), re.MULTILINE)
        assert not heading or heading in {re.sub(r"\W+", "-", each.lower()) for each in headings}
        assert each["thread"].startswith("https://github.com/")


def gguf_file(file: Path, name: str, tensors: Mapping[str, list[float]] | None = None, **values: int | float) -> Path:
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(file, name)
    writer.add_name("Tiny")
    sizes = {"block_count": 12, "context_length": 8192, "embedding_length": 2048, "attention__head_count": 16}
    for key, value in [*sizes.items(), *values.items()]:
        (writer.add_uint32 if isinstance(value, int) else writer.add_float32)(f"{name}.{key.replace('__', '.')}", value)
    for key, entries in (tensors or {}).items():
        writer.add_tensor(key, np.array(entries, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


LONG = {"rope_factors_short.weight": [1.0] * 32, "rope_factors_long.weight": [4.0] * 32}
GGUF: dict[str, tuple[dict[str, Any], list[str]]] = {
    "gemma3": (
        {"rope__freq_base": 1e6, "attention__sliding_window": 1024, "rope__dimension_count": 128},
        ["2 of 12 layers (5, 11): RoPE", "base 1,000,000", "10 of 12 layers (0, 1, 2, …)", "base 10,000", "at most 1,024"],
    ),
    "smollm3": ({"rope__freq_base": 5e6}, ["all 128 channels", "3 of 12 layers (3, 7, 11): no encoding"]),
    "deepseek2": (
        {"rope__freq_base": 1e4, "attention__key_length": 192, "rope__dimension_count": 64},
        ["64 of 192 channels, from channel 128; pairs of neighbours"],
    ),
    "phi3": (
        {"rope__freq_base": 1e4, "rope__dimension_count": 64, "rope__scaling__original_context_length": 4096}
        | {"tensors": LONG, "rope__scaling__attn_factor": 1.19},
        ["stretched: longrope", "queries and keys times 1.19", "4,096 tokens: the frequencies switch"],
    ),
    "parrot": (
        {"rope__freq_base": 1e4, "rope__dimension_sections": 16},
        ["llama.cpp may have rules for parrot that aren't in the file", "isn't read here: rope.dimension_sections"],
    ),
}


@pytest.mark.parametrize("name", GGUF)
def test_a_gguf_header_is_read_by_the_rules_of_its_architecture(name: str, tmp_path: Path) -> None:
    values, words = GGUF[name]
    file = gguf_file(tmp_path / "model.gguf", name, **values)
    report = inspect(read_config(file))
    text = " ".join(report.text().split())
    assert (report.name, report.status()) == ("Tiny", 3 if name == "parrot" else 0), text
    assert not [word for word in words if word not in text], text
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"isn't a whole GGUF file \(.*\): download it again$"):
        read_config(file)


UNREADABLE = {
    'num_attention_heads must be a whole number from 1 to 65,536, got "many"': {"num_attention_heads": "many"},
    "rope_theta must be a number from 2 to 10^15, got NaN": {"rope_theta": math.nan},
    "rope_scaling must be an object with keys, got [1,2,": {"rope_scaling": [*range(1, 100)]},
    "rope_scaling.short_factor[1] must be a number from": {"rope_scaling": {"type": "longrope", "short_factor": [1, None]}},
    "beta_slow must be at most beta_fast, got 40 and 32": {"rope_scaling": {"type": "yarn", "factor": 4, "beta_slow": 40}},
    "200 channels can't rotate in a head that has 128": {"rotary_dim": 200, "model_type": "mystery"},
    "must be at least original_max_position_embeddings, 262,144": {
        "rope_scaling": {"type": "yarn", "original_max_position_embeddings": 262_144}
    },
}


@pytest.mark.parametrize("words", UNREADABLE)
def test_a_value_that_cannot_be_is_named_with_what_it_may_be(words: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(words)}.*: correct the configuration$"):
        inspect(LLAMA | UNREADABLE[words])


def test_pairs_are_those_that_chapters_13_and_18_found_guilty() -> None:
    """Pair 3 of 8 in the course's small models, and pairs 22 and 23 of 32 in SmolLM2-135M."""
    small = tuple(frequencies(16).tolist())
    assert pairs(Knowledge("RoPE", frequencies=small), 64).brakes == (3,)
    released = tuple(frequencies(64, base=100_000).tolist())
    found = pairs(Knowledge("RoPE", frequencies=released), 8192)
    assert (found.brakes, found.incomplete, found.first_new) == ((22, 23), tuple(range(20, 32)), 8192)
    stretched = pairs(inspect(LLAMA, run=False).kinds[0].known, 8192)
    assert (stretched.kept, stretched.divided, len(stretched.incomplete), stretched.first_new) == (29, 29, 29, 65_536)


def test_a_window_within_the_training_length_leaves_no_new_angle() -> None:
    config = without(LLAMA, "rope_scaling", max_position_embeddings=4096, model_type="mistral")
    full = "no query of all layers sees all of a longer text"
    assert inspect(config | {"sliding_window": 4096}, run=False).limits == ((4096, "window", full),)
    assert len(inspect(config | {"sliding_window": 4097}, run=False).limits) > 1


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def written(config: Any) -> str:
        file = tmp_path / "config.json"
        file.write_text(config if isinstance(config, str) else json.dumps(config))
        return str(file)

    return written


def test_exit_status_tells_ci_what_is_wrong(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    wrong, noted = CASES["bases that contradict each other"][0], STORED["Llama 2 7B"]["config"]
    assert main(["inspect", write(noted), "--no-run"]) == 0
    assert main(["inspect", write(noted), "--no-run", "--strict"]) == 1
    assert main(["inspect", write(STRANGE), "--no-run"]) == 3
    assert "no base is written where" in capsys.readouterr().out
    assert main(["inspect", write(wrong), "--no-run", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["findings"][0]["code"] == "two-bases"
    assert (found["kinds"][0]["evidence"], len(found["kinds"][0]["written"]["frequencies"])) == ("written", 64)
    assert main(["inspect", "GPT-2", "--no-run", "--strict"]) == 0
    assert main(["inspect", "CodeLlama 7B", "--no-run", "--length", "1000"]) == 0
    assert "CodeLlama 7B: as written, safe up to 1,000 tokens" in capsys.readouterr().out


def test_a_model_of_the_table_is_known_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "gpt-oss"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("gpt-oss: by the table of models, safe up to 131,072 tokens; from there on, 14 of 32 pairs show")
    # The table doesn't say which layers.
    for words in ("stretched: yarn, by 32 from 4,096 tokens", "sinks", "12 of 24 layers: RoPE"):
        assert words in out


def test_files_come_in_many_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(LLAMA).encode())
    assert read_config(tmp_path) == LLAMA, "a folder, and a mark before the first brace"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(QWEN).encode())))
    assert read_config("-") == QWEN
    with pytest.raises(ValueError, match=r"there is no file 'llama 3\.1': give .*, such as .*Llama 3\.1"):
        read_config("llama 3.1")
    with pytest.raises(ValueError, match=r"this is an adapter of org/base, and its config\.json is what counts"):
        inspect({"peft_type": "LORA", "base_model_name_or_path": "org/base"})


def test_an_error_is_one_line(write: Any, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {"[" * 100_000: "isn't JSON", "[1]": "holds a list: a configuration is a JSON object", "{}": "no key says how many"}
    for text, message in texts.items():
        with pytest.raises(SystemExit) as ended:
            main(["inspect", write(text)])
        assert ended.value.code == 2
        out = capsys.readouterr()
        assert message in out.err
        assert (out.err.count("\n"), out.out) == (1, "")
