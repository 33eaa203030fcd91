"""The sinusoidal encoding and its geometry: theorems, and the formula in 50 digits and in another library."""

import itertools
import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from posenc_course.geometry import (
    distance,
    norms,
    rotating_pairs,
    shift_matrix,
    similarity,
    similarity_by_pair,
    wavelengths,
)
from posenc_course.sinusoidal import SinusoidalPositions, angle_addition_table, frequencies, sinusoidal_table
from tests.tensors import close

even_widths = st.integers(1, 16).map(lambda pairs: 2 * pairs)
widths = st.integers(1, 33)
bases = st.floats(1.5, 1e8)
real_positions = st.floats(-1e4, 1e4)
offset_lists = st.lists(real_positions, min_size=1, max_size=5)


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


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(real_positions, min_size=1, max_size=5), widths)
def test_layouts_are_permutations_of_each_other(positions: list[float], d_model: int) -> None:
    """Concatenated: the even channels of the interleaved one, then the odd ones; exactly, and for odd widths too."""
    interleaved = sinusoidal_table(positions, d_model)
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(sinusoidal_table(positions, d_model, interleaved=False), interleaved[:, order])


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


# ── the fast form ────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 600), st.integers(0, 10**6), widths, bases)
def test_angle_addition_at_any_start(length: int, start: int, d_model: int, base: float) -> None:
    truth = sinusoidal_table(range(start, start + length), d_model, base)
    close(angle_addition_table(length, d_model, base, start=start).double(), truth, 2e-7)


# ── similarity and distance ─────────────────────────────────────────────────────────────────────────────────────────────


def two_encodings(m: float, offsets: list[float], d_model: int, base: float) -> tuple[Tensor, Tensor]:
    """PE(m), shape (1, d_model), and PE(m + Δ) for every offset, shape (offsets, d_model)."""
    return sinusoidal_table([m], d_model, base), sinusoidal_table([m + offset for offset in offsets], d_model, base)


@given(real_positions, offset_lists, even_widths, bases)
def test_similarity_is_the_dot_product_at_any_position(m: float, offsets: list[float], d_model: int, base: float) -> None:
    """Σ_i cos(ω_i Δ) = PE(m)·PE(m + Δ), whatever m is."""
    here, there = two_encodings(m, offsets, d_model, base)
    close(similarity(offsets, d_model, base), (here * there).sum(dim=-1))


@given(real_positions, offset_lists, even_widths, bases)
def test_each_pair_adds_its_own_dot_product(m: float, offsets: list[float], d_model: int, base: float) -> None:
    """cos(ω_i Δ) is the dot product of channels 2i and 2i+1 alone, and the pairs add up to the similarity."""
    here, there = two_encodings(m, offsets, d_model, base)
    by_pair = similarity_by_pair(offsets, d_model, base)
    close(by_pair, (here * there).unflatten(-1, (-1, 2)).sum(dim=-1))
    close(by_pair.sum(dim=-1), similarity(offsets, d_model, base), 1e-13)


@given(real_positions, offset_lists, even_widths, bases)
def test_distance_is_the_norm_of_the_difference(m: float, offsets: list[float], d_model: int, base: float) -> None:
    """‖PE(m) - PE(m + Δ)‖ = √(Σ_i 4 sin²(ω_i Δ/2)), and its square is d - 2·similarity."""
    here, there = two_encodings(m, offsets, d_model, base)
    result = distance(offsets, d_model, base)
    close(result, (here - there).norm(dim=-1))
    close(result.square(), d_model - 2 * similarity(offsets, d_model, base))


@pytest.mark.parametrize("offset", [1e-6, -1e-6, 1e-4, 0.5])
def test_distance_keeps_its_digits_for_a_tiny_offset(offset: float) -> None:
    """√(d - 2·similarity), the same in exact arithmetic, does not: at 1e-6 its third digit is wrong."""
    d_model = 64
    with mpmath.workdps(50):
        omega = [mpmath.mpf(10_000) ** (-mpmath.mpf(2 * i) / d_model) for i in range(d_model // 2)]
        truth = float(mpmath.sqrt(sum((2 * mpmath.sin(w * mpmath.mpf(offset) / 2)) ** 2 for w in omega)))
    assert math.isclose(distance([offset], d_model).item(), truth, rel_tol=1e-13)
    if abs(offset) == 1e-6:
        assert not math.isclose((d_model - 2 * similarity([offset], d_model)).sqrt().item(), truth, rel_tol=1e-4)


# ── norms ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(offset_lists, widths, bases)
def test_norms_are_those_of_the_tables_rows(positions: list[float], d_model: int, base: float) -> None:
    result = norms(positions, d_model, base)
    close(result, sinusoidal_table(positions, d_model, base).norm(dim=-1))
    if d_model % 2 == 0:
        # Some processors round square roots in the last digit.
        torch.testing.assert_close(result, torch.full_like(result, math.sqrt(d_model / 2)), rtol=2.3e-16, atol=0)


# ── wavelengths ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.floats(-100, 100), even_widths, st.floats(1.5, 1e4))
def test_pair_comes_back_after_its_wavelength(m: float, d_model: int, base: float) -> None:
    """A full rotation gives (sin, cos) again, half a rotation its opposite, and a quarter (cos, -sin)."""
    for i, wavelength in enumerate(wavelengths(d_model, base).tolist()):
        pairs = sinusoidal_table([m + part * wavelength for part in (0, 0.25, 0.5, 1)], d_model, base)[:, 2 * i : 2 * i + 2]
        start, quarter, half, full = pairs
        close(full, start)
        close(half, -start)
        close(quarter, start.flip(0) * torch.tensor([1.0, -1.0]))


# ── rotating pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 300), widths.map(lambda width: width + 1), bases, st.floats(1e-3, 300))
def test_rotating_pairs_counts_clocks_of_the_table(length: int, d_model: int, base: float, angle: float) -> None:
    """Read off the table, token by token: no clock moves by more than 1 radian per token, so the rotations can be followed."""
    d_model -= d_model % 2
    table = sinusoidal_table(range(length), d_model, base).view(length, -1, 2)
    angles = []
    for hand in torch.atan2(table[..., 0], table[..., 1]).T:
        unwrapped = np.unwrap(hand.numpy())
        angles.append(float(unwrapped[-1] - unwrapped[0]))
    assume(all(abs(each - angle) > 1e-9 for each in angles))  # rounding decides there
    assert rotating_pairs(length, d_model, base, angle=angle) == sum(each > angle for each in angles)


def test_odd_widths_lone_sine_counts_as_a_pair() -> None:
    """Width 5 has the frequencies 1, base^(-2/5), base^(-4/5): with base 32 in tokens of 1, 1/4 and 1/16 radian."""
    assert [rotating_pairs(length, 5, 32, angle=0.9) for length in (1, 2, 5, 16, 17)] == [0, 1, 2, 3, 3]


# ── the matrix of a shift ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("interleaved", [True, False])
@given(offset_lists, real_positions, even_widths, bases)
def test_one_matrix_shifts_every_position(
    interleaved: bool, positions: list[float], offset: float, d_model: int, base: float
) -> None:
    """PE(m + Δ) = R PE(m), in both layouts."""
    matrix = shift_matrix(offset, d_model, base, interleaved=interleaved)
    table, shifted = (
        sinusoidal_table([m + by for m in positions], d_model, base, interleaved=interleaved) for by in (0.0, offset)
    )
    close(table @ matrix.T, shifted)


@pytest.mark.parametrize("interleaved", [True, False])
@given(real_positions, real_positions, even_widths, bases)
def test_shifts_are_rotations_that_add_up(interleaved: bool, a: float, b: float, d_model: int, base: float) -> None:
    """R(a)R(b) = R(a + b), R(-a) = R(a)ᵀ = R(a)⁻¹, R(0) = 1, and det R = 1: no mirror among them."""
    first, second, both, back, none = (
        shift_matrix(offset, d_model, base, interleaved=interleaved) for offset in (a, b, a + b, -a, 0)
    )
    one = torch.eye(d_model, dtype=torch.float64)
    close(first @ second, both)
    assert torch.equal(back, first.T)
    close(first @ first.T, one, 1e-14)
    assert torch.equal(none, one)
    assert math.isclose(torch.linalg.det(first).item(), 1, rel_tol=1e-12)
