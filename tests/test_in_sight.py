"""The stored losses with fewer bytes in sight, for two living figures: complete, and as the code gives them now."""

import json

import pytest
import torch

from posenc_course.experiment import SCHEMES, curve, load_results
from tools.lab import in_sight

STORED = json.loads(in_sight.TABLE.read_text(encoding="utf-8"))
LOSSES = {run["window"]: run["losses"] for run in STORED["runs"]}
NEAR = {run["seed"]: run["losses"] for run in json.loads(in_sight.NEAR.read_text(encoding="utf-8"))["runs"]}


def test_the_table_is_whole() -> None:
    assert tuple(LOSSES) == in_sight.WINDOWS
    assert all(tuple(losses) == tuple(SCHEMES) for losses in LOSSES.values())
    assert tuple(NEAR) == in_sight.SEEDS


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_training_length_in_sight_is_what_the_lab_measured(scheme: str) -> None:
    measured = curve(load_results("quick"), scheme, change="window")[0].unflatten(0, (-1, in_sight.BIN)).mean(dim=1)
    assert torch.allclose(torch.tensor(LOSSES[64][scheme], dtype=measured.dtype), measured, atol=1.1e-4)


def test_a_row_made_now_is_the_stored_one() -> None:
    assert in_sight.losses("rope", 16) == pytest.approx(LOSSES[16]["rope"], abs=2e-4)
    assert torch.allclose(torch.tensor(in_sight.near(2)), torch.tensor(NEAR[2]), atol=1e-3)
