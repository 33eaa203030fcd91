"""The sinusoidal encoding: its theorems, and the formula in 50 digits, in another library and in a source's printout."""

import itertools
import math

import mpmath  # type: ignore[import-untyped]
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from posenc_course.sinusoidal import SinusoidalPositions, angle_addition_table, frequencies, sinusoidal_table
from tests.tensors import close

widths = st.integers(1, 33)
bases = st.floats(1.5, 1e8)
real_positions = st.floats(-1e4, 1e4)


# ── the formula ──────────────────────────────────────────────────────────────────────────────────────────────────────────

POSITIONS = [0, 1, 2, 7, 255, 257, 2047, 4095, 65535, 131_073, 999_983, 1_000_000]


def exact(positions: list[int], d_model: int, base: int) -> Tensor:
    """The table from 50 digits, rounded once."""
    rows = []
    with mpmath.workdps(50):
        for m, channel in itertools.product(positions, range(d_model)):
            angle = m * mpmath.mpf(base) ** (-mpmath.mpf(channel - channel % 2) / d_model)
            rows.append(float(mpmath.cos(angle) if channel % 2 else mpmath.sin(angle)))
    return torch.tensor(rows, dtype=torch.float64).view(len(positions), d_model)


@pytest.mark.parametrize("base", [10_000, 500_000])
@pytest.mark.parametrize("d_model", [1, 2, 7, 64])
def test_against_fifty_digits_up_to_position_a_million(d_model: int, base: int) -> None:
    """float64 keeps 9 decimals, and a cast to float32 at the end nothing but its own rounding."""
    truth = exact(POSITIONS, d_model, base)
    close(sinusoidal_table(POSITIONS, d_model, base), truth, 1e-9)
    close(sinusoidal_table(POSITIONS, d_model, base, dtype=torch.float32).double(), truth, 1e-7)


@pytest.mark.parametrize(("length", "d_model"), [(300, 64), (17, 7)])
def test_concatenated_layout_against_transformers(length: int, d_model: int) -> None:
    """Marian (Hugging Face) puts all sines first, for odd widths too, and rounds to float32."""
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    marian = MarianSinusoidalPositionalEmbedding(length, d_model).create_weight()
    close(sinusoidal_table(torch.arange(length), d_model, interleaved=False, dtype=torch.float32), marian, 1e-7)


@given(widths, bases)
def test_frequencies_fall_geometrically_from_1(d_model: int, base: float) -> None:
    """ω_i = base^(-2i/d), i over ⌈d/2⌉ pairs: the last of an even width is base^(-(d-2)/d), not 1/base."""
    omega = frequencies(d_model, base)
    assert omega.dtype == torch.float64
    assert len(omega) == math.ceil(d_model / 2)
    assert omega[0] == 1
    expected = [math.exp(-2 * i / d_model * math.log(base)) for i in range(len(omega))]
    torch.testing.assert_close(omega, torch.tensor(expected, dtype=torch.float64), rtol=1e-13, atol=0)
    if d_model % 2 == 0:
        assert math.isclose(omega[-1].item(), base ** (-(d_model - 2) / d_model), rel_tol=1e-13)


# ── its theorems ─────────────────────────────────────────────────────────────────────────────────────────────────────────


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(real_positions, min_size=1, max_size=5), widths)
def test_layouts_are_permutations_of_each_other(positions: list[float], d_model: int) -> None:
    """Concatenated: the even channels of the interleaved one, then the odd ones; exactly, and for odd widths too."""
    interleaved = sinusoidal_table(positions, d_model)
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(sinusoidal_table(positions, d_model, interleaved=False), interleaved[:, order])


@given(st.lists(st.integers(0, 299), min_size=1, max_size=9), widths)
def test_positions_are_rows_of_the_larger_table(positions: list[int], d_model: int) -> None:
    """In any order, repeated, and in two dimensions: each row depends on its own position alone."""
    table = sinusoidal_table(torch.arange(300), d_model)
    # Not bitwise: a vectorised sine may treat the end of an array differently.
    close(sinusoidal_table(positions, d_model), table[positions], 1e-14)
    grid = torch.tensor([positions, positions[::-1]])
    close(sinusoidal_table(grid, d_model), table[grid], 1e-14)


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("positions", [torch.arange(9, 14), torch.tensor([[0, 1, 2, 3, 4], [9, 7, 5, 10**6, 1]])])
def test_module_adds_the_table_in_the_tokens_dtype(positions: Tensor, interleaved: bool) -> None:
    x = torch.randn(2, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scheme, table = (
        SinusoidalPositions(7, 500.0, interleaved=interleaved),
        sinusoidal_table(positions, 7, 500.0, interleaved=interleaved),
    )
    assert torch.equal(scheme.embed(x, positions), x + table)
    assert torch.equal(scheme.embed(x.bfloat16(), positions), x.bfloat16() + table.bfloat16())


def test_module_has_nothing_to_cast() -> None:
    """No parameter, no buffer: after .to(bfloat16), far positions are as exact as before."""
    scheme, x, far = SinusoidalPositions(8), torch.zeros(1, 1, 8), torch.tensor([10**6])
    assert scheme.state_dict() == {}
    before = scheme.embed(x, far)
    assert torch.equal(scheme.to(torch.bfloat16).embed(x, far), before)


# ── the fast form ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 600), st.integers(0, 10**6), widths, bases)
def test_angle_addition_at_any_start(length: int, start: int, d_model: int, base: float) -> None:
    truth = sinusoidal_table(range(start, start + length), d_model, base)
    close(angle_addition_table(length, d_model, base, start=start).double(), truth, 2e-7)
