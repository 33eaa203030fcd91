"""Counting, scaling and digits against Python's own arithmetic; learned rows that are looked up and trained."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from posenc_course.learned import LearnedPositions, learned_encoding
from posenc_course.naive import BinaryPositions, LinearPositions, NormalizedPositions, binary, linear, modulo, normalized
from tests.tensors import normal32

far = st.integers(0, 2**52 - 1)
some_positions = st.lists(far, min_size=1, max_size=9)


@given(some_positions, st.integers(2, 10**6))
def test_linear_and_modulo_are_integer_arithmetic(positions: list[int], period: int) -> None:
    assert linear(positions).tolist() == positions
    assert modulo(positions, period).tolist() == [m % period for m in positions]


@given(some_positions, st.integers(0, 10))
def test_binary_is_pythons_bin_fastest_digit_first(positions: list[int], spare: int) -> None:
    num_bits = min(max(1, *(m.bit_length() for m in positions)) + spare, 52)
    expected = [[int(digit) for digit in reversed(f"{m:0{num_bits}b}")] for m in positions]
    assert binary(positions, num_bits).tolist() == expected


@given(st.integers(2, 10**6))
def test_normalized_runs_from_0_to_1_in_equal_steps(length: int) -> None:
    first, second, last = normalized([0, 1, length - 1], length).tolist()
    assert (first, last) == (0, 1)
    assert second == 1 / (length - 1)


def test_one_normalized_value_means_different_places() -> None:
    """The middle of 5 tokens and of 101 tokens have the same value; a sequence of one token has position 0."""
    assert normalized([2], 5).item() == normalized([50], 101).item() == 0.5
    assert normalized([0], 1).item() == 0


@pytest.mark.parametrize("positions", [[3, 1, 2], torch.tensor([[0, 1], [5, 3]]), torch.arange(4, dtype=torch.float32).numpy()])
def test_lists_arrays_and_tensors_give_float64(positions: list[int]) -> None:
    """Lists, arrays and tensors, (L,) and (batch, L)."""
    shape = torch.as_tensor(positions).shape
    for values in (linear(positions), normalized(positions, 9), modulo(positions, 2), binary(positions, 3)[..., 0]):
        assert (values.shape, values.dtype) == (shape, torch.float64)


@pytest.mark.parametrize("positions", [torch.arange(3, 8), torch.tensor([[0, 1, 2, 3, 4], [9, 7, 5, 3, 1]])])
def test_modules_add_their_formula_to_every_sequence(positions: torch.Tensor) -> None:
    """x + m·u, x + m/(m_max)·u, x + digits in the first channels; x keeps its dtype."""
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    u, m = torch.linspace(-1, 1, 6), positions.float().unsqueeze(-1)
    torch.testing.assert_close(LinearPositions(6, u).embed(x, positions), x + m * u)
    torch.testing.assert_close(NormalizedPositions(6, u).embed(x, positions), x + m / m.max() * u)
    alternating = torch.tensor([1.0, -1, 1, -1, 1, -1])
    torch.testing.assert_close(LinearPositions(6).embed(x, positions), x + m * alternating)
    added = BinaryPositions(6, num_bits=4).embed(x, positions) - x
    torch.testing.assert_close(added[..., :4], binary(positions, 4).float().expand(2, 5, 4))
    assert (added[..., 4:] == 0).all()
    assert LinearPositions(6).embed(x.bfloat16(), positions).dtype == torch.bfloat16


def test_layer_norm_subtracts_what_all_channels_share() -> None:
    """Which is why the default direction alternates."""
    x, norm = torch.randn(1, 4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)), nn.LayerNorm(6).double()
    same, alternating = LinearPositions(6, torch.ones(6)), LinearPositions(6)
    torch.testing.assert_close(norm(same.embed(x, torch.arange(4))), norm(x))
    assert (norm(alternating.embed(x, torch.arange(4))) - norm(x)).abs()[:, 1:].amax(dim=-1).min() > 0.1


# ── learned ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

# All sizes differ, so that a mixed-up axis can't go unnoticed.
BATCH, LENGTH, ROWS, D_MODEL = 2, 4, 7, 3

ONE_SEQUENCE = torch.tensor([6, 0, 2, 2])
EACH_ITS_OWN = torch.tensor([[0, 1, 2, 3], [6, 5, 5, 0]])


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


@pytest.mark.parametrize("std", [None, 0.02, 1.5])
def test_table_starts_normal_with_the_given_spread(std: float | None) -> None:
    """N(0, std²), 0.02 by default; 200,000 samples show mean and standard deviation within five standard errors."""
    torch.manual_seed(0)
    table = (LearnedPositions(1000, 200) if std is None else LearnedPositions(1000, 200, std=std)).table
    std, count = 0.02 if std is None else std, table.numel()
    assert abs(table.mean().item()) < 5 * std / math.sqrt(count)
    assert abs(table.std().item() / std - 1) < 5 / math.sqrt(2 * count)
