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
even_widths = st.integers(1, 16).map(lambda pairs: 2 * pairs)
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


def test_the_cast_comes_last() -> None:
    """Angles in float32 are off by more than 1e-3 at a million; the table in float32 is not."""
    angles = torch.tensor([1e6]) * frequencies(64).float()
    truth = sinusoidal_table([1e6], 64)[:, 0::2]
    assert (angles.sin() - truth).abs().max() > 1e-3
    for dtype, half_unit in ((torch.float32, 2**-24), (torch.bfloat16, 2**-8), (torch.float16, 2**-11)):
        table = sinusoidal_table([1e6], 64, dtype=dtype)
        assert table.dtype == dtype
        assert (table[:, 0::2].double() - truth).abs().max() < half_unit


@pytest.mark.parametrize(("length", "d_model"), [(300, 64), (17, 7)])
def test_against_transformers_in_the_concatenated_layout(length: int, d_model: int) -> None:
    """Marian (Hugging Face) puts all sines first, for odd widths too, and rounds to float32."""
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    marian = MarianSinusoidalPositionalEmbedding(length, d_model).create_weight()
    close(sinusoidal_table(torch.arange(length), d_model, interleaved=False, dtype=torch.float32), marian, 1e-7)


def test_against_the_table_printed_by_a_source() -> None:
    """Context 4, width 8, as a blog post prints it: angles, encodings and norms in PyTorch's five significant digits."""
    angles = """
        0.0000e+00 0.0000e+00 0.0000e+00 0.0000e+00   1.0000e+00 1.0000e-01 1.0000e-02 1.0000e-03
        2.0000e+00 2.0000e-01 2.0000e-02 2.0000e-03   3.0000e+00 3.0000e-01 3.0000e-02 3.0000e-03"""
    encodings = """
        0.0000e+00  1.0000e+00 0.0000e+00 1.0000e+00 0.0000e+00 1.0000e+00 0.0000e+00 1.0000e+00
        8.4147e-01  5.4030e-01 9.9833e-02 9.9500e-01 9.9998e-03 9.9995e-01 1.0000e-03 1.0000e+00
        9.0930e-01 -4.1615e-01 1.9867e-01 9.8007e-01 1.9999e-02 9.9980e-01 2.0000e-03 1.0000e+00
        1.4112e-01 -9.8999e-01 2.9552e-01 9.5534e-01 2.9995e-02 9.9955e-01 3.0000e-03 1.0000e+00"""

    def printed(table: Tensor) -> list[str]:
        return [f"{number:.4e}" for number in table.flatten().tolist()]

    table = sinusoidal_table(range(4), 8)
    assert printed(torch.arange(4)[:, None] * frequencies(8)) == angles.split()
    # One last digit differs: sin(0.03) = 0.02999550020…, and the post's angle is a float32, 0.029999999.
    differing = [(ours, theirs) for ours, theirs in zip(printed(table), encodings.split(), strict=True) if ours != theirs]
    assert differing == [("2.9996e-02", "2.9995e-02")]
    assert printed(table.norm(dim=1)) == ["2.0000e+00"] * 4


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


@pytest.mark.parametrize("d_model", [2, 4, 5, 8, 64])
def test_no_two_positions_share_an_encoding(d_model: int) -> None:
    """ω_0 = 1 and π is irrational: no whole number of tokens is a full rotation."""
    table = sinusoidal_table(range(1000), d_model)
    distances = torch.cdist(table, table) + 10 * torch.eye(1000, dtype=torch.float64)
    assert distances.min() > 1e-5


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(real_positions, min_size=1, max_size=5), widths)
def test_the_layouts_are_permutations_of_each_other(positions: list[float], d_model: int) -> None:
    """Concatenated: the even channels of the interleaved one, then the odd ones; exactly, and for odd widths too."""
    interleaved = sinusoidal_table(positions, d_model)
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    assert torch.equal(sinusoidal_table(positions, d_model, interleaved=False), interleaved[:, order])


@given(st.lists(st.integers(0, 299), min_size=1, max_size=9), widths)
def test_explicit_positions_are_rows_of_the_bigger_table(positions: list[int], d_model: int) -> None:
    """In any order, repeated, and in two dimensions: each row depends on its own position alone."""
    table = sinusoidal_table(torch.arange(300), d_model)
    # Not bitwise: a vectorised sine may treat the end of an array differently.
    close(sinusoidal_table(positions, d_model), table[positions], 1e-14)
    grid = torch.tensor([positions, positions[::-1]])
    close(sinusoidal_table(grid, d_model), table[grid], 1e-14)


@given(real_positions, even_widths)
def test_negative_positions_mirror_the_sines(m: float, d_model: int) -> None:
    forward, backward = sinusoidal_table([m, -m], d_model)
    close(backward, forward * torch.tensor([-1.0, 1.0]).repeat(d_model // 2))


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("positions", [torch.arange(9, 14), torch.tensor([[0, 1, 2, 3, 4], [9, 7, 5, 10**6, 1]])])
def test_the_module_adds_the_table_in_the_tokens_dtype(positions: Tensor, interleaved: bool) -> None:
    x = torch.randn(2, 5, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scheme, table = (
        SinusoidalPositions(7, 500.0, interleaved=interleaved),
        sinusoidal_table(positions, 7, 500.0, interleaved=interleaved),
    )
    assert torch.equal(scheme.embed(x, positions), x + table)
    assert torch.equal(scheme.embed(x.bfloat16(), positions), x.bfloat16() + table.bfloat16())


def test_the_module_is_interleaved_with_the_papers_base_where_nothing_is_said() -> None:
    x, far = torch.zeros(1, 1, 8, dtype=torch.float64), torch.tensor([1000])
    assert torch.equal(SinusoidalPositions(8).embed(x, far)[0], sinusoidal_table(far, 8, 10_000, interleaved=True))


def test_the_module_holds_nothing_that_a_cast_could_destroy() -> None:
    """No parameter, no buffer: after .to(bfloat16), far positions are as exact as before."""
    scheme, x, far = SinusoidalPositions(8), torch.zeros(1, 1, 8), torch.tensor([10**6])
    assert scheme.state_dict() == {}
    before = scheme.embed(x, far)
    assert torch.equal(scheme.to(torch.bfloat16).embed(x, far), before)


# ── the fast form ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("base", [10_000, 500_000])
@pytest.mark.parametrize("d_model", [1, 2, 7, 64])
@pytest.mark.parametrize("start", [0, 4095, 65535, 999_000])
def test_angle_addition_gives_the_table_to_float32(start: int, d_model: int, base: int) -> None:
    """For less than a block of 256 neighbours, for one, and for several of which the last is not full."""
    truth = sinusoidal_table(range(start, start + 1000), d_model, base)
    for length in (1, 2, 255, 256, 257, 512, 1000):
        table = angle_addition_table(length, d_model, base, start=start)
        assert table.dtype == torch.float32
        assert table.shape == (length, d_model)
        close(table.double(), truth[:length], 2e-7)


@given(st.integers(1, 600), st.integers(0, 10**6), widths, bases)
def test_angle_addition_at_any_start(length: int, start: int, d_model: int, base: float) -> None:
    truth = sinusoidal_table(range(start, start + length), d_model, base)
    close(angle_addition_table(length, d_model, base, start=start).double(), truth, 2e-7)


def test_angle_addition_starts_at_0_with_the_papers_base() -> None:
    close(angle_addition_table(5, 6).double(), sinusoidal_table(range(5), 6), 1e-7)
