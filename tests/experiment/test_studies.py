"""Recorded experiments: each is whole, was predicted, and gives a run again; and their models and schemes do what they say."""

import json
import math
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import nn

from posenc_course.attention import attention_weights, causal_mask
from posenc_course.experiment import load_model, load_results
from posenc_course.experiment.config import Run, build_model
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.recital import NUMBERS, PROMPT, STARTS, evaluate_recital, write
from posenc_course.experiment.recital import recital as recited
from posenc_course.rope import RotaryPositions
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder
from tests.commands import ROOT, WEEKLY
from tests.experiment.recited import wrong
from tools.lab import bench, schemes
from tools.lab.studies import claims, recital
from tools.lab.study import NEWER, Study, carry_out, studies, with_schemes

STUDIES = studies()
PREDICTED = tomllib.loads((ROOT / "book/predictions.toml").read_text("utf-8"))
QUICK = ("claims_cache_masks_recurrence", "claims_models_2025", "window_losses_rope", "word_size")


# ── the studies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_a_study_is_whole_and_was_predicted(study: Study) -> None:
    measured = [{**run} for run in study.runs()]
    assert [{key: run.pop(key) for key in setting} for setting, run in zip(study.plan, measured, strict=True)] == study.plan
    assert all(measured)
    stored = json.loads(study.table.read_text("utf-8")).get("config", {})
    # A scheme that joins the preset changes no stored run.
    assert stored | {"schemes": []} == (study.config or {}) | {"schemes": []}
    assert {*study.predictions} <= PREDICTED.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES if WEEKLY else QUICK)
def test_a_run_made_now_is_the_stored_one(name: str) -> None:
    for number, tolerance in STUDIES[name].again:
        setting, stored = STUDIES[name].plan[number], STUDIES[name].runs()[number]
        assert_alike(setting | STUDIES[name].measure(setting), stored, tolerance)


def assert_alike(now: Any, stored: Any, tolerance: float) -> None:
    """Nested lists and dicts of numbers, but for how long it took."""
    if isinstance(stored, dict):
        assert now.keys() == stored.keys()
        for key in stored.keys() - {"cpu_seconds", "gradient_norm"}:
            assert_alike(now[key], stored[key], tolerance)
    elif isinstance(stored, list) and isinstance(stored[0], dict | list):
        for one, other in zip(now, stored, strict=True):
            assert_alike(one, other, tolerance)
    else:
        assert now == (stored if isinstance(stored, str) else pytest.approx(stored, abs=tolerance))


def test_a_study_writes_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.lab.study.DATA", tmp_path)
    plan = [{"n": n} for n in range(3)]
    carry_out(Study("twice", "", plan, lambda run: {"twice": 2 * run["n"]}, beside=lambda: {"least": 0}))
    table = json.loads((tmp_path / "twice.json").read_text("utf-8"))
    assert table["runs"] == [{"n": n, "twice": 2 * n} for n in range(3)]
    assert (table["command"], table["least"]) == ("python -m tools.lab.study twice", 0)


# ── their schemes ────────────────────────────────────────────────────────────────────────────────────────────────────────


# The mean size of the outputs, with random numbers wherever a model learns.
# The mean size of the last output, with random numbers wherever a model learns.
OUTPUTS = {
    "none": 1.3318, "rope": 1.3986, "shaw": 1.6409, "inkling": 1.4489, "learned-rope": 1.3431, "half-rope": 1.3721,
    "offset-rope": 1.3664, "none-log": 1.3163, "none-learned-log": 1.5228, "rope-learned-log": 1.6016,
    "recurrent-rope-none": 1.9500, "stick": 1.3301,
}  # fmt: skip


@pytest.mark.parametrize(("name", "size"), OUTPUTS.items())
def test_a_scheme_sees_no_later_token_learns_all_and_gives_what_it_gave(name: str, size: float) -> None:
    torch.manual_seed(0)
    model = schemes.convolved(Decoder(50, 64, 4, 4, claims.BUILD[name](NEWER)))
    assert sum(isinstance(module, schemes.ShortConvolution) for module in model.modules()) == 8
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.4)
    tokens = torch.randint(50, (2, 40))
    changed = torch.cat((tokens[:, :30], (tokens[:, 30:] + 1) % 50), dim=1)
    outputs = model(tokens)
    torch.testing.assert_close(model(changed)[:, :30], outputs[:, :30])
    outputs.logsumexp(dim=-1).sum().backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []
    assert outputs[-1, -1].abs().mean().item() == pytest.approx(size, rel=1e-4)


@pytest.mark.parametrize("within", [False, True])
def test_a_query_beside_the_first_keys_is_as_if_it_had_read_only_what_is_kept(within: bool) -> None:
    """In a single layer, keys and values don't depend on what was dropped, so the model can read the kept tokens alone."""
    torch.manual_seed(0)
    rope, first, kept = RotaryPositions(frequencies(8)), 3, 10
    model, tokens = Decoder(50, 16, 2, 1, rope).double(), torch.randint(50, (2, 30))
    seen = torch.tensor([*range(first), *range(30 - kept + first, 30)])
    alone = model(tokens[:, seen], torch.arange(kept) if within else seen)
    scheme = schemes.KeptPositions(rope, kept - first, first, kept - 1 if within else None)
    beside = with_schemes(model, lambda _: scheme)(tokens)
    torch.testing.assert_close(beside[:, -1], alone[:, -1], rtol=0, atol=1e-12)
    torch.testing.assert_close(beside[:, :kept], model(tokens)[:, :kept], rtol=0, atol=1e-12)


def test_a_layer_with_a_short_convolution_adds_a_map_of_the_vector_before() -> None:
    scheme, x = schemes.ShortPositions(8, 2), torch.randn(1, 5, 8)
    expected = x.clone()
    expected[:, 1:] += x[:, :-1] @ scheme.short.weight.T
    torch.testing.assert_close(scheme.embed(x, torch.arange(5)), expected)


def test_a_stick_is_broken_key_by_key() -> None:
    torch.manual_seed(0)
    scheme, (q, k), at = schemes.StickPositions(), torch.randn(2, 1, 1, 7, 4, dtype=torch.float64), torch.arange(7)
    scheme.rotate(q, k, at, at)
    share = torch.sigmoid(q @ k.mT / 2)[0, 0]
    for m, weights in enumerate(attention_weights(q, k, bias=scheme.bias(q, at, at), mask=causal_mask(at, at))[0, 0]):
        left = 1.0
        for n in range(m - 1, -1, -1):
            assert weights[n].item() == pytest.approx(left * share[m, n].item())
            left *= 1 - share[m, n].item()
        assert weights[m].item() == pytest.approx(left)


def test_a_sink_is_one_more_key_with_the_value_0() -> None:
    model = build_model(NEWER, Run("text", "rope", 0))
    layer = cast(Any, schemes.sunk(model).blocks[0]).attention
    layer.scheme.sink.data = torch.tensor([[-1.0], [0.0], [1.0], [4.0]])
    x, m = torch.randn(2, 20, NEWER.d_model), torch.arange(20)
    with torch.no_grad():
        q, k, v = (layer._split(project(x)) for project in (layer.query, layer.key, layer.value))
        q, k = layer.scheme.rotate(q, k, m, m)
        masked = torch.where(m <= m[:, None], q @ k.mT / math.sqrt(q.shape[-1]), -math.inf)
        with_sink = torch.cat((masked, layer.scheme.sink[:, None].expand(2, -1, 20, 1)), dim=-1).softmax(dim=-1)
        by_head = with_sink[..., :-1] @ v
        expected = nn.functional.linear(by_head.transpose(1, 2).flatten(2), layer.output.weight, layer.output.bias)
        assert torch.allclose(layer(x, m), expected, atol=1e-5)
        assert torch.allclose(1 - layer.scheme.kept, with_sink[..., -1], atol=1e-5)


# ── the models that recite ─────────────────────────────────────────────────────────────────────────────────────────────


RECITED = load_results(DATA / "recite.json")
T = recital.CONFIG.length


def test_the_text_counts_to_twenty_and_begins_again() -> None:
    text = bytes(recited(400).tolist()).decode()
    assert text.startswith("one, two, three, ")
    assert "nineteen, twenty, one, two, " in text
    assert [NUMBERS[start:].split(",")[0] for start in STARTS] == NUMBERS.strip(", ").split(", ")
    assert torch.equal(recited(300, 200), recited(500)[200:])


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "seed"), recital.SHIPPED)
def test_models_read_and_write_as_stored(scheme: str, seed: int) -> None:
    """To 2T, from the beginning of every number; on another machine a byte between two may fall the other way."""
    model, text = load_model(scheme, seed, part="recite"), torch.stack([recited(2 * T + 1, start) for start in STARTS])
    (stored,) = (run["evaluation"] for run in RECITED["runs"] if (run["scheme"], run["seed"]) == (scheme, seed))
    with torch.inference_mode():
        right = (model(text[:, :-1]).argmax(dim=-1) == text[:, 1:]).double().mean(dim=0)
    assert (right - torch.tensor(stored["by_position"][: 2 * T])).abs().mean() < 0.01
    wrong = write(model, text[:, :PROMPT], 2 * T) != text[:, :-1]
    wrote = [int(one.argmax()) if one.any() else 2 * T for one in wrong.int()]
    same = [now == min(then, 2 * T) for now, then in zip(wrote, stored["wrote"], strict=True)]
    assert sum(same) >= 18


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["rope", "alibi"])
def test_what_is_measured_is_what_a_plain_loop_counts(scheme: str) -> None:
    """Byte by byte, as if the training length were 26; one of the models loses its place, and the other doesn't."""
    model, short = load_model(scheme, 0, part="recite"), 26
    found = evaluate_recital(model, short)
    texts = [list((8 * NUMBERS).encode())[start : start + 8 * short + 1] for start in STARTS]
    with torch.inference_mode():
        scores = model(torch.tensor(texts))[:, :-1]
        written = write(model, torch.tensor(texts)[:, :PROMPT], 8 * short)
        assert torch.equal(model(written)[:, PROMPT - 1 : -1].argmax(dim=-1), written[:, PROMPT:]), "the likeliest bytes"
    rights, losses = [], []
    for text, rows in zip(texts, scores, strict=True):
        rights.append([int(row.argmax()) == byte for row, byte in zip(rows, text[1:], strict=True)])
        losses.append([(row.logsumexp(0) - row[byte]).item() for row, byte in zip(rows, text[1:], strict=True)])
    assert found["by_position"] == pytest.approx([sum(at) / 20 for at in zip(*rights, strict=True)], abs=0.0051)
    for length in (26, 52, 104, 208):
        for name, table in (("accuracy", rights), ("loss", losses)):
            half = [number for row in table for number in row[length // 2 : length]]
            assert found[name][str(length)] == pytest.approx(sum(half) / len(half), abs=1e-4), (name, length)
    wrongs = [[at for at in range(8 * short) if row[at] != text[at]] for row, text in zip(written.tolist(), texts, strict=True)]
    assert found["wrote"] == [min(wrong, default=8 * short) for wrong in wrongs]
    assert any(wrongs) == (scheme == "rope")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", recital.SCHEMES)
def test_what_they_write_is_stored_and_glasses_save_rope(scheme: str) -> None:
    """Up to the first mistake; what follows it may be different on another machine."""
    now = {"written": recital.written(load_model(scheme, part="recite")), "near": recital.written(recital.in_window(scheme))}
    if scheme in recital.SLICED:
        now["sliced"] = recital.sliced(scheme)
        assert wrong(now["sliced"]) is None, "a slice saves all four"
    assert {name: wrong(text) for name, text in now.items()} == {name: wrong(RECITED[name][scheme]) for name in now}
    known = {"sinusoidal": (78, 78), "learned": (69, 69), "rope": (109, None), "alibi": (None, None)}
    assert known.get(scheme) in (None, (wrong(now["written"]), wrong(now["near"])))


# ── the benchmark's errors ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")  # x-transformers calls it
def test_errors_of_the_tables_are_what_the_code_gives_now() -> None:
    """To one digit, since processors differ in how they round a product; what is rounded once has no more to differ in."""
    stored = json.loads((DATA / "accuracy.json").read_text(encoding="utf-8"))["results"]["angles"]
    for new, old in zip(bench.measure_accuracy()["angles"], stored, strict=True):
        factor = 1.05 if new["candidate"] == "rope_tables" else 1.5
        assert old | {"error": None} == new | {"error": None}
        assert old["error"] / factor <= new["error"] <= old["error"] * factor, new
