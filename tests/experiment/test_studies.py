"""Recorded experiments: each is whole, was predicted, and gives a run again; and their schemes do what they say."""

import json
import math
import statistics
import tomllib
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from posenc_course.attention import attention_weights, causal_mask
from posenc_course.experiment import load_results, scores
from posenc_course.experiment.config import Run, build_model
from posenc_course.experiment.corpus import DATA
from posenc_course.rope import RotaryPositions
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder
from tests.commands import ROOT, WEEKLY
from tools.lab import schemes
from tools.lab.studies import claims, gates
from tools.lab.study import NEWER, Study, carry_out, studies, with_schemes

STUDIES = studies()
PREDICTED = tomllib.loads((ROOT / "book/predictions.toml").read_text("utf-8"))
QUICK = ("claims_cache_masks_recurrence", "claims_models_2025", "window_losses", "window_losses_rope", "word_size")
AT = torch.arange(7)


# ── the studies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_a_study_is_whole_and_was_predicted(study: Study) -> None:
    measured = [{**run} for run in study.runs()]
    assert [{key: run.pop(key) for key in setting} for setting, run in zip(study.plan, measured, strict=True)] == study.plan
    assert all(measured)
    assert json.loads(study.table.read_text("utf-8")).get("config") == study.config
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


def test_models_that_also_the_experiment_trained_reach_the_same() -> None:
    newer = load_results("newer")
    for run in STUDIES["forget_gate_decay"].runs()[:3]:
        assert run["nats"] == pytest.approx(scores(newer, "forgetting")[run["seed"]].tolist(), abs=0.02)
    for run in STUDIES["sinks"].runs():
        assert run["without"] == pytest.approx(scores(newer, "rope")[run["seed"]].tolist(), abs=0.1)


def test_a_study_writes_its_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.lab.study.DATA", tmp_path)
    plan = [{"n": n} for n in range(3)]
    carry_out(Study("twice", "", plan, lambda run: {"twice": 2 * run["n"]}, beside=lambda: {"least": 0}))
    table = json.loads((tmp_path / "twice.json").read_text("utf-8"))
    assert table["runs"] == [{"n": n, "twice": 2 * n} for n in range(3)]
    assert (table["command"], table["least"]) == ("python -m tools.lab.study twice", 0)


def test_with_equal_weights_the_share_before_the_space_is_known() -> None:
    model = build_model(NEWER, Run("text", "forgetting", 0))
    layer = cast(Any, model.blocks[0]).attention
    for weights in (layer.query.weight, layer.scheme.gate.weight):
        weights.data.zero_()
    layer.scheme.gate.bias.data.fill_(100)  # all gates are open
    text = torch.full((1, NEWER.length), ord("a"))
    text[0, 40] = ord(" ")
    expected = statistics.fmean(40 / (m + 1) for m in range(40, NEWER.length))
    assert gates.before_the_space(model, text) == pytest.approx([expected] * NEWER.num_heads, abs=1e-3)


# ── their schemes ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", claims.BUILD)
def test_a_scheme_sees_no_later_token_and_learns_with_all_its_weights(name: str) -> None:
    torch.manual_seed(0)
    model = schemes.convolved(Decoder(50, 64, 4, 4, claims.BUILD[name](NEWER)))
    convolutions = [module for module in model.modules() if isinstance(module, schemes.ShortConvolution)]
    assert len(convolutions) == 8
    for module in convolutions:
        torch.nn.init.normal_(module.weight)
    tokens = torch.randint(50, (2, 40))
    changed = torch.cat((tokens[:, :30], (tokens[:, 30:] + 1) % 50), dim=1)
    outputs = model(tokens)
    torch.testing.assert_close(model(changed)[:, :30], outputs[:, :30])
    outputs.logsumexp(dim=-1).sum().backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


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


def test_inkling_s_bias_is_that_of_the_test_vectors() -> None:
    vectors = json.loads((DATA / "vectors" / "biases.json").read_text(encoding="utf-8"))["vectors"]
    vector = next(vector for vector in vectors if vector["given"]["type"] == "inkling")
    r, table = (torch.tensor(vector["given"][name], dtype=torch.float64) for name in ("r", "table"))
    scheme = schemes.InklingPositions(r.shape[1], 1, *table.shape).double()
    scheme.table.data, scheme.feature.weight.data = table, torch.eye(r.shape[1], dtype=torch.float64)
    located = scheme.locate(r[None], torch.arange(len(r)) + 100, None)
    expected = torch.tensor([[float(entry) for entry in row] for row in vector["bias"]["exact"]], dtype=torch.float64)
    torch.testing.assert_close(scheme.bias(torch.zeros(1, 1, len(r), 1), located, located)[0, 0], expected, rtol=0, atol=1e-9)


def test_learned_frequencies_begin_as_rope_s_and_can_double() -> None:
    scheme, plain, x = schemes.LearnedRotaryPositions(frequencies(8)), RotaryPositions(frequencies(8)), torch.randn(1, 2, 7, 8)
    torch.testing.assert_close(scheme.rotate(x, x, AT, AT), plain.rotate(x, x, AT, AT))
    torch.nn.init.constant_(scheme.learned, math.log(2))
    torch.testing.assert_close(scheme.rotate(x, x, AT, AT), plain.rotate(x, x, 2 * AT, 2 * AT))


def test_keys_that_do_not_rotate_come_from_the_token_before() -> None:
    x = torch.randn(1, 2, 7, 8)
    q, k = schemes.OffsetRotaryPositions(frequencies(4)).rotate(x, x, AT, AT)
    plain = RotaryPositions(frequencies(4)).rotate(x, x, AT, AT)[0]
    torch.testing.assert_close(q, plain)
    before = torch.cat((x[..., :1, 4:], x[..., :-1, 4:]), dim=-2)
    torch.testing.assert_close(k, torch.cat((plain[..., :4], before), dim=-1))


def test_a_learned_logarithm_multiplies_the_scores() -> None:
    scheme, x = schemes.LogarithmicPositions(RotaryPositions(frequencies(8)), 2), torch.randn(1, 2, 7, 8)
    plain = scheme.scheme.rotate(x, x, AT, AT)
    torch.testing.assert_close(scheme.rotate(x, x, AT, AT), plain)
    scheme.learned.data = torch.tensor([[0.5, 2.0], [1.0, 0.0]])
    q = scheme.rotate(x, x, AT, AT)[0]
    torch.testing.assert_close(q[:, 0, 6], plain[0][:, 0, 6] * (0.5 + math.log(7)))
    torch.testing.assert_close(q[:, 1], 2 * plain[0][:, 1])


def test_a_recurrent_layer_with_rope_forgets_and_rotates() -> None:
    torch.manual_seed(0)
    scheme, x, q = schemes.RotaryRecurrentPositions(8, 2, frequencies(4)), torch.randn(2, 7, 8), torch.randn(2, 2, 7, 4)
    located = scheme.locate(x, AT, None)
    gated = super(schemes.RotaryRecurrentPositions, scheme).locate(x, AT, None)
    torch.testing.assert_close(scheme.bias(q, located, located), gated.mT - gated)
    torch.testing.assert_close(scheme.rotate(q, q, located, located), scheme.rope.rotate(q, q, AT, AT))
    first = scheme.locate(x[:, :4], AT[:4], None)
    torch.testing.assert_close(scheme.locate(x[:, 4:], AT[4:], first[:, :, -1:]), located[:, :, 4:])


def test_a_stick_is_broken_key_by_key() -> None:
    torch.manual_seed(0)
    scheme, (q, k) = schemes.StickPositions(), torch.randn(2, 1, 1, 7, 4, dtype=torch.float64)
    scheme.rotate(q, k, AT, AT)
    share = torch.sigmoid(q @ k.mT / 2)[0, 0]
    for m, weights in enumerate(attention_weights(q, k, bias=scheme.bias(q, AT, AT), mask=causal_mask(AT, AT))[0, 0]):
        left = 1.0
        for n in range(m - 1, -1, -1):
            assert weights[n].item() == pytest.approx(left * share[m, n].item())
            left *= 1 - share[m, n].item()
        assert weights[m].item() == pytest.approx(left)


def test_a_short_convolution_is_torch_s_and_begins_as_nothing() -> None:
    layer, x = schemes.ShortConvolution(5), torch.randn(2, 7, 5)
    assert layer(x).equal(x)
    torch.nn.init.normal_(layer.weight)
    kernel = layer.weight.T.flip(-1).unsqueeze(1)  # torch's last weight is for the token itself
    torch.testing.assert_close(layer(x), x + F.conv1d(F.pad(x.mT, (3, 0)), kernel, groups=5).mT)


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
