"""Small stored studies: their rows agree with the lab's, and with a row made now; and what they build is what they say.

That no digit of them changes by hand is in test_packaging.py.
"""

import json
import math
import statistics
from typing import Any, cast

import pytest
import torch
from torch import nn

from posenc_course.experiment import SCHEMES, curve, load_results, scores
from posenc_course.experiment.config import Run, build_model
from tools.lab import fees, half_turns, in_sight, sinks, word_size

TURNS, SIGHT, NEAR, FEES, WIDTHS, SINKS = (
    json.loads(table.read_text(encoding="utf-8"))["runs"]
    for table in (half_turns.TABLE, in_sight.TABLE, in_sight.NEAR, fees.TABLE, word_size.TABLE, sinks.TABLE)
)
LOSSES = {run["window"]: run["losses"] for run in SIGHT}
RUN = Run("text", "rope", 0)


def of_lab(scheme: str, **options: str) -> Any:
    """What the preset newer has stored, by seed and length."""
    return scores(load_results("newer"), scheme, **options)


# ── the page below chapter 15: angles of models that have learned parity ─────────────────────────────────────────────────


@pytest.mark.parametrize("run", TURNS, ids=lambda run: f"seed {run['seed']}")
def test_the_pair_and_its_steps_follow_from_the_steps_of_all_pairs(run: dict[str, Any]) -> None:
    pair, wanted = half_turns.nearest(torch.tensor(run["steps"]))
    assert pair == run["pair"]
    assert wanted.tolist() == pytest.approx(run["wanted"], abs=1e-4)
    lab = of_lab("selective", part="parity", how="accuracy")[run["seed"], 0]
    assert run["right"][0] == pytest.approx(lab.item(), abs=0.01)


# ── chapters 12 and 13: losses with fewer bytes in sight ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_training_length_in_sight_is_what_the_lab_measured(scheme: str) -> None:
    measured = curve(load_results("quick"), scheme, change="window")[0].unflatten(0, (-1, in_sight.BIN)).mean(dim=1)
    assert torch.allclose(torch.tensor(LOSSES[64][scheme], dtype=measured.dtype), measured, atol=1.1e-4)


def test_losses_in_sight_made_now_are_the_stored_ones() -> None:
    near = {run["seed"]: run["losses"] for run in NEAR}
    assert in_sight.losses("rope", 16) == pytest.approx(LOSSES[16]["rope"], abs=2e-4)
    assert torch.allclose(torch.tensor(in_sight.near(2)), torch.tensor(near[2]), atol=1e-3)


# ── chapter 15: what models with forget gates charge for each byte ───────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(3))
def test_losses_with_fees_are_those_of_the_lab(seed: int) -> None:
    (run,) = (run for run in FEES if (run["begins"], run["seed"]) == (0.95, seed))
    assert run["nats"] == pytest.approx(of_lab("forgetting")[seed].tolist(), abs=0.02)


def test_with_equal_weights_the_share_before_the_space_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model(fees.CONFIG, Run("text", "forgetting", 0))
    layer = cast(Any, model.blocks[0]).attention
    for weights in (layer.query.weight, layer.scheme.gate.weight):
        weights.data.zero_()
    layer.scheme.gate.bias.data.fill_(100)  # no fees
    text = torch.full((1, fees.CONFIG.length), ord("a"))
    text[0, 40] = ord(" ")
    monkeypatch.setattr(fees, "_pieces", lambda *sizes: text)
    expected = statistics.fmean(40 / (m + 1) for m in range(40, fees.CONFIG.length))
    assert fees.before_the_space(model) == pytest.approx([expected] * fees.CONFIG.num_heads, abs=1e-3)


# ── chapter 5: training at four widths ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("start", ["σ = 1/√d", "σ = 1", "frozen, loud position"])
def test_a_run_made_now_learns_as_soon_as_the_stored_one(start: str) -> None:
    run = word_size.Run(start, 32, 3e-3, 0)
    (stored,) = (each for each in WIDTHS if all(each[name] == value for name, value in run._asdict().items()))
    assert word_size.measure(run)["learned"] == pytest.approx(stored["learned"], rel=0.1)


# ── newer claims: a learned sink in each head ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", sinks.CONFIG.seeds)
def test_the_losses_without_sinks_are_those_of_the_lab(seed: int) -> None:
    (run,) = (run for run in SINKS if run["seed"] == seed)
    lab = of_lab("rope")[seed].tolist()
    assert run["without"] == pytest.approx(lab, abs=0.1)
    assert run["without"][0] == pytest.approx(lab[0], abs=0.02)


def test_a_sink_is_one_more_key_with_the_value_0() -> None:
    torch.manual_seed(0)
    layer = cast(Any, sinks.sunk(sinks.CONFIG, RUN).blocks[0]).attention
    layer.scheme.sink.data = torch.tensor([[-1.0], [0.0], [1.0], [4.0]])
    x, m = torch.randn(2, 20, sinks.CONFIG.d_model), torch.arange(20)
    with torch.no_grad():
        q, k, v = (layer._split(project(x)) for project in (layer.query, layer.key, layer.value))
        q, k = layer.scheme.rotate(q, k, m, m)
        masked = torch.where(m <= m[:, None], q @ k.mT / math.sqrt(q.shape[-1]), -math.inf)
        with_sink = torch.cat((masked, layer.scheme.sink[:, None].expand(2, -1, 20, 1)), dim=-1).softmax(dim=-1)
        by_head = with_sink[..., :-1] @ v
        expected = nn.functional.linear(by_head.transpose(1, 2).flatten(2), layer.output.weight, layer.output.bias)
        assert torch.allclose(layer(x, m), expected, atol=1e-5)
        assert torch.allclose(1 - layer.scheme.kept, with_sink[..., -1], atol=1e-5)


def test_a_sink_begins_with_the_weights_of_a_model_without() -> None:
    with_sinks = dict(sinks.sunk(sinks.CONFIG, RUN).named_parameters())
    for name, weights in build_model(sinks.CONFIG, RUN).named_parameters():
        assert torch.equal(weights, with_sinks[name])
