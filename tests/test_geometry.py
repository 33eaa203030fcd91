"""The geometry of the sinusoidal encoding: every formula against the table itself, and the numbers that are often quoted."""

import inspect
import math
from collections.abc import Callable

import mpmath  # type: ignore[import-untyped]
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
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.tensors import close

widths = st.integers(1, 33)
even_widths = st.integers(1, 16).map(lambda pairs: 2 * pairs)
bases = st.floats(1.5, 1e8)
reals = st.floats(-1e4, 1e4)
offset_lists = st.lists(reals, min_size=1, max_size=5)


def two_encodings(m: float, offsets: list[float], d_model: int, base: float) -> tuple[Tensor, Tensor]:
    """PE(m), shape (1, d_model), and PE(m + Δ) for every offset, shape (offsets, d_model)."""
    return sinusoidal_table([m], d_model, base), sinusoidal_table([m + offset for offset in offsets], d_model, base)


# ── similarity and distance ──────────────────────────────────────────────────────────────────────────────────────────────


@given(reals, offset_lists, even_widths, bases)
def test_similarity_is_the_dot_product_at_any_position(m: float, offsets: list[float], d_model: int, base: float) -> None:
    """Σ_i cos(ω_i Δ) = PE(m)·PE(m + Δ), whatever m is."""
    here, there = two_encodings(m, offsets, d_model, base)
    close(similarity(offsets, d_model, base), (here * there).sum(dim=-1))


@given(reals, offset_lists, even_widths, bases)
def test_each_pair_adds_its_own_dot_product(m: float, offsets: list[float], d_model: int, base: float) -> None:
    """cos(ω_i Δ) is the dot product of channels 2i and 2i+1 alone, and the pairs add up to the similarity."""
    here, there = two_encodings(m, offsets, d_model, base)
    by_pair = similarity_by_pair(offsets, d_model, base)
    close(by_pair, (here * there).unflatten(-1, (-1, 2)).sum(dim=-1))
    close(by_pair.sum(dim=-1), similarity(offsets, d_model, base), 1e-13)


@given(reals, offset_lists, even_widths, bases)
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


@given(offset_lists, even_widths)
def test_both_sides_are_alike_and_nothing_is_nearer_than_the_place_itself(offsets: list[float], d_model: int) -> None:
    """Similarity d/2 and distance 0 at Δ = 0; the same for Δ and -Δ; at most d/2, and at most a diameter, 2√(d/2)."""
    here, mirrored = torch.tensor(offsets, dtype=torch.float64), -torch.tensor(offsets, dtype=torch.float64)
    for function in (similarity, distance):
        assert torch.equal(function(here, d_model), function(mirrored, d_model))
    assert similarity([0], d_model).tolist() == [d_model / 2]
    assert distance([0], d_model).tolist() == [0]
    assert similarity(here, d_model).max() <= d_model / 2
    assert distance(here, d_model).max() <= 2 * math.sqrt(d_model / 2) + 1e-12


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)])
def test_the_results_have_the_shape_of_the_offsets(shape: tuple[int, ...]) -> None:
    offsets = torch.arange(math.prod(shape)).reshape(shape)
    for function in (similarity, distance):
        result = function(offsets, 6)
        assert result.shape == shape
        assert result.dtype == torch.float64
        assert torch.equal(result.flatten(), function(offsets.flatten(), 6))
    assert similarity_by_pair(offsets, 6).shape == (*shape, 3)


def test_an_odd_width_has_no_similarity_that_the_offset_decides() -> None:
    """Its last sine has no cosine, so the dot product changes with the position; the functions refuse odd widths."""
    start, end, further = sinusoidal_table([0, 1000, 2000], 5)
    assert (start @ end - end @ further).abs() > 0.1
    for function in (similarity, similarity_by_pair, distance):
        with pytest.raises(ValueError, match="d_model must be an even integer"):
            function([1], 5)


# ── norms ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(offset_lists, widths, bases)
def test_norms_are_those_of_the_tables_rows(positions: list[float], d_model: int, base: float) -> None:
    result = norms(positions, d_model, base)
    close(result, sinusoidal_table(positions, d_model, base).norm(dim=-1))
    if d_model % 2 == 0:
        # Some processors round square roots in the last digit.
        torch.testing.assert_close(result, torch.full_like(result, math.sqrt(d_model / 2)), rtol=2.3e-16, atol=0)


@pytest.mark.parametrize("d_model", [1, 6, 7])
def test_norms_have_the_shape_of_the_positions_and_the_papers_base(d_model: int) -> None:
    positions = torch.tensor([[0, 1, 2], [300, 4, 10**6]])
    assert norms(positions, d_model).dtype == torch.float64
    close(norms(positions, d_model), sinusoidal_table(positions, d_model).norm(dim=-1), 1e-12)


# ── wavelengths ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.floats(-100, 100), even_widths, st.floats(1.5, 1e4))
def test_a_pair_comes_back_after_its_wavelength_and_not_before(m: float, d_model: int, base: float) -> None:
    """A full rotation gives (sin, cos) again, half a rotation its opposite, and a quarter (cos, -sin)."""
    for i, wavelength in enumerate(wavelengths(d_model, base).tolist()):
        pairs = sinusoidal_table([m + part * wavelength for part in (0, 0.25, 0.5, 1)], d_model, base)[:, 2 * i : 2 * i + 2]
        start, quarter, half, full = pairs
        close(full, start)
        close(half, -start)
        close(quarter, start.flip(0) * torch.tensor([1.0, -1.0]))


@given(widths, bases)
def test_wavelengths_grow_geometrically_from_a_turn(d_model: int, base: float) -> None:
    """The first is 2π; neighbours differ by base^(2/d); the last of an even width is 2π·base^((d-2)/d), below 2π·base."""
    result = wavelengths(d_model, base)
    assert result.dtype == torch.float64
    assert len(result) == math.ceil(d_model / 2)
    assert result[0] == 2 * math.pi
    ratios = result[1:] / result[:-1]
    torch.testing.assert_close(ratios, torch.full_like(ratios, base ** (2 / d_model)), rtol=1e-12, atol=0)
    if d_model % 2 == 0:
        assert math.isclose(result[-1].item(), 2 * math.pi * base ** ((d_model - 2) / d_model), rel_tol=1e-12)
        assert result[-1] < 2 * math.pi * base


# ── rotating pairs ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.integers(1, 300), widths.map(lambda width: width + 1), bases, st.floats(1e-3, 300))
def test_rotating_pairs_counts_the_clocks_one_sees_rotate(length: int, d_model: int, base: float, angle: float) -> None:
    """Read off the table, token by token: no clock moves by more than 1 radian per token, so the rotations can be followed."""
    d_model -= d_model % 2
    table = sinusoidal_table(range(length), d_model, base).view(length, -1, 2)
    angles = []
    for hand in torch.atan2(table[..., 0], table[..., 1]).T:
        unwrapped = np.unwrap(hand.numpy())
        angles.append(float(unwrapped[-1] - unwrapped[0]))
    assume(all(abs(each - angle) > 1e-9 for each in angles))  # rounding decides there
    assert rotating_pairs(length, d_model, base, angle=angle) == sum(each > angle for each in angles)


def test_an_odd_widths_lone_sine_counts_as_a_pair() -> None:
    """Width 5 has the frequencies 1, base^(-2/5), base^(-4/5): with base 32 in tokens of 1, 1/4 and 1/16 radian."""
    assert [rotating_pairs(length, 5, 32, angle=0.9) for length in (1, 2, 5, 16, 17)] == [0, 1, 2, 3, 3]


def test_a_pair_that_rotates_by_the_angle_itself_does_not_rotate_by_more() -> None:
    """The fastest pair rotates by 1 radian per token: by 3 radians from the first of four tokens to the last."""
    assert rotating_pairs(4, 2, angle=3) == 0
    assert rotating_pairs(5, 2, angle=3) == 1


# ── the matrix of a shift ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("interleaved", [True, False])
@given(offset_lists, reals, even_widths, bases)
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
@given(reals, reals, even_widths, bases)
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


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("offset", [1_000_000, 999_999.5, -999_983, 0.5])
def test_a_shift_may_be_far_and_a_fraction(offset: float, interleaved: bool) -> None:
    here, there = (sinusoidal_table([m], 64, interleaved=interleaved)[0] for m in (3, 3 + offset))
    matrix = shift_matrix(offset, 64, interleaved=interleaved)
    assert matrix.dtype == torch.float64
    assert matrix.shape == (64, 64)
    close(matrix @ here, there, 1e-9)


def test_the_interleaved_matrix_is_made_of_blocks_on_the_diagonal() -> None:
    """One block [[cos, sin], [-sin, cos]] per pair; interleaved is the default, as it is for the table."""
    blocks = []
    for omega in frequencies(6).tolist():
        cos, sin = math.cos(7 * omega), math.sin(7 * omega)
        blocks.append(torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64))
    close(shift_matrix(7, 6), torch.block_diag(*blocks), 1e-15)


# ── what is said where nothing is said ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "function", [similarity, similarity_by_pair, distance, norms, wavelengths, rotating_pairs, shift_matrix]
)
def test_defaults_are_the_papers_base_and_a_full_turn(function: Callable[..., object]) -> None:
    defaults = {name: given.default for name, given in inspect.signature(function).parameters.items()}
    assert defaults["base"] == 10_000
    assert defaults.get("angle", 2 * math.pi) == 2 * math.pi
