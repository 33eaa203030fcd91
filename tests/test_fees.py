"""The stored fees of chapter 15: complete, and of the models that the preset newer trains."""

import json
import statistics
from typing import Any, cast

import pytest
import torch

from posenc_course.experiment import load_results, scores
from posenc_course.experiment.config import Run, build_model
from tools.lab import fees

STORED = json.loads(fees.TABLE.read_text(encoding="utf-8"))


def test_the_table_is_whole() -> None:
    assert [(run["begins"], run["seed"]) for run in STORED["runs"]] == [
        (b, seed) for b in fees.BEGINNINGS for seed in (0, 1, 2)
    ]
    for run in STORED["runs"]:
        assert [len(head) for head in run["fees"]] == [128] * fees.CONFIG.num_heads
        assert [len(layer) for layer in run["means"]] == [fees.CONFIG.num_heads] * fees.CONFIG.num_layers
        assert min(fee for head in run["fees"] for fee in head) >= 0
        assert [0 <= share <= 1 for share in run["before_the_space"]] == [True] * fees.CONFIG.num_heads


@pytest.mark.parametrize("seed", range(3))
def test_the_losses_are_those_of_the_lab(seed: int) -> None:
    (run,) = [run for run in STORED["runs"] if (run["begins"], run["seed"]) == (0.95, seed)]
    assert run["nats"] == pytest.approx(scores(load_results("newer"), "forgetting")[seed].tolist(), abs=0.02)


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
