"""Learned positions: rows that are looked up, trained one by one, and come to an end."""

import math

import pytest
import torch
from torch import Tensor

from posenc_course.learned import LearnedPositions, learned_encoding
from tests.tensors import normal32

# All sizes differ, so that a mixed-up axis can't go unnoticed.
BATCH, LENGTH, ROWS, D_MODEL = 2, 4, 7, 3

ONE_SEQUENCE = torch.tensor([6, 0, 2, 2])
EACH_ITS_OWN = torch.tensor([[0, 1, 2, 3], [6, 5, 5, 0]])


# ── looking up ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("positions", [ONE_SEQUENCE, EACH_ITS_OWN], ids=["one", "each"])
def test_encoding_of_a_position_is_its_row(positions: Tensor) -> None:
    """In any order and repeated; positions may be shared by the batch or each sequence's own."""
    table = normal32(ROWS, D_MODEL)
    result = learned_encoding(table, positions)
    assert result.shape == (*positions.shape, D_MODEL)
    for where, row in zip(positions.flatten().tolist(), result.flatten(end_dim=-2), strict=True):
        assert torch.equal(row, table[where])


@pytest.mark.parametrize("positions", [ONE_SEQUENCE, EACH_ITS_OWN], ids=["one", "each"])
def test_module_adds_the_rows_of_its_table(positions: Tensor) -> None:
    scheme, x = LearnedPositions(ROWS, D_MODEL), normal32(BATCH, LENGTH, D_MODEL)
    assert torch.equal(scheme.embed(x, positions), x + scheme.table[positions])


def test_position_after_the_last_row_is_refused() -> None:
    with pytest.raises(ValueError, match=str(ROWS)):
        learned_encoding(normal32(ROWS, D_MODEL), torch.tensor([ROWS]))


# ── learning ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("positions", [ONE_SEQUENCE, EACH_ITS_OWN], ids=["one", "each"])
def test_gradient_reaches_only_the_rows_used(positions: Tensor) -> None:
    """A row receives the sum of what comes back from every token at its position; a row that no token has, 0."""
    scheme, x = LearnedPositions(ROWS, D_MODEL), normal32(BATCH, LENGTH, D_MODEL)
    from_above = normal32(BATCH, LENGTH, D_MODEL)
    (scheme.embed(x, positions) * from_above).sum().backward()
    expected = torch.zeros(ROWS, D_MODEL)
    for where, gradient in zip(positions.expand(BATCH, -1).flatten(), from_above.flatten(end_dim=-2), strict=True):
        expected[where] += gradient
    assert scheme.table.grad is not None
    torch.testing.assert_close(scheme.table.grad, expected)
    unused = [row for row in range(ROWS) if row not in positions.flatten().tolist()]
    assert unused
    assert (scheme.table.grad[unused] == 0).all()


@pytest.mark.parametrize("std", [None, 0.02, 1.5])
def test_table_starts_normal_with_the_given_spread(std: float | None) -> None:
    """N(0, std²), 0.02 by default; 200,000 samples show mean and standard deviation within five standard errors."""
    torch.manual_seed(0)
    table = (LearnedPositions(1000, 200) if std is None else LearnedPositions(1000, 200, std=std)).table
    std, count = 0.02 if std is None else std, table.numel()
    assert abs(table.mean().item()) < 5 * std / math.sqrt(count)
    assert abs(table.std().item() / std - 1) < 5 / math.sqrt(2 * count)
    within_one = (table.abs() < std).float().mean().item()
    assert abs(within_one - math.erf(math.sqrt(0.5))) < 5 * 0.5 / math.sqrt(count)
