"""The sinusoidal encoding of "Attention Is All You Need" (Vaswani et al. 2017, section 3.5)."""

import math

import torch
from torch import Tensor

from posenc_course._validation import BASE, D_MODEL, DOOR, INTERLEAVED, LENGTH, POSITIONS, Positions, checked, exact
from posenc_course.schemes import PositionScheme


@checked(d_model=D_MODEL, base=BASE)
def frequencies(d_model: int, base: float = 10_000.0) -> Tensor:
    """Angular frequencies ω_i = base^(-2i/d_model) in radians per token, fastest first, shape (⌈d_model/2⌉,), float64.

    i counts pairs of channels, not channels. ω_0 is 1 for every base; if d_model is even, the last frequency is
    base^(-(d_model-2)/d_model). Raises ValueError unless d_model is an integer >= 1 and base > 1.
    """
    pair = torch.arange((d_model + 1) // 2, dtype=torch.float64)
    return base ** (-2 * pair / d_model)


@checked(positions=POSITIONS, d_model=D_MODEL, base=BASE, interleaved=INTERLEAVED, dtype="dtype")
def sinusoidal_table(
    positions: Positions,
    d_model: int,
    base: float = 10_000.0,
    *,
    interleaved: bool = True,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """The encoding PE(m)_{2i} = sin(ω_i m), PE(m)_{2i+1} = cos(ω_i m), shape `(*positions.shape, d_model)`.

    Args:
        positions: finite real numbers, in tokens, of shape (L,) or (batch, L). They may be large, fractional or negative.
        interleaved: True gives sin, cos, sin, cos, … as in the paper; False puts all sines first, then all cosines.
        dtype: dtype of the result, which is computed in float64 and cast at the end, because in float32 angles would lose
            digits as positions grow.

    With an odd d_model, the last cosine is left out. Raises ValueError for positions that are not exact or not finite, and for
    a d_model or base out of range.
    """
    m = exact(positions)
    angles = m.unsqueeze(-1) * frequencies(d_model, base).to(m.device)  # (..., L, ⌈d_model/2⌉)
    sin, cos = angles.sin(), angles.cos()
    if interleaved:
        table = torch.stack((sin, cos), dim=-1).flatten(start_dim=-2)  # (..., L, 2⌈d_model/2⌉)
    else:
        table = torch.cat((sin, cos), dim=-1)
    return table[..., :d_model].to(dtype)  # an odd d_model drops the last cosine


@checked(length=LENGTH, d_model=D_MODEL, base=BASE, start="count >= 0: it is the first position")
def angle_addition_table(length: int, d_model: int, base: float = 10_000.0, *, start: int = 0) -> Tensor:
    """`sinusoidal_table(range(start, start + length), d_model, base)` in float32 by angle addition: the fast implementation.

    As a complex number, a pair is PE_i(m) = sin(ω_i m) + i·cos(ω_i m) = i·e^{-iω_i m}, so a shift is a product:
    PE_i(256a + b) = e^{-iω_i·256a}·PE_i(b). Sines and cosines are computed only for every 256th position and for the first 256.
    The rest takes one multiplication per pair, whose rounding error is about 1e-7 at any position. The result has shape
    (length, d_model). Raises ValueError for sizes, a base or a start out of range.
    """
    omega = frequencies(d_model, base)
    step = min(length, 256)
    coarse = (start + step * torch.arange(math.ceil(length / step), dtype=torch.float64)).unsqueeze(-1) * omega
    fine = torch.arange(step, dtype=torch.float64).unsqueeze(-1) * omega  # (step, pairs)
    rotations = torch.complex(coarse.cos(), -coarse.sin()).to(torch.complex64)
    first = torch.complex(fine.sin(), fine.cos()).to(torch.complex64)
    table = torch.view_as_real(rotations.unsqueeze(1) * first)  # (blocks, step, pairs, 2)
    return table.flatten(start_dim=2).flatten(end_dim=1)[:length, :d_model]


class SinusoidalPositions(PositionScheme):
    """x + PE(m), for any length and any positions: no table is stored, so none can run out of rows or lose precision."""

    @checked(d_model=D_MODEL, base=BASE, interleaved=INTERLEAVED)
    def __init__(self, d_model: int, base: float = 10_000.0, *, interleaved: bool = True) -> None:
        super().__init__()
        self.d_model, self.base = d_model, base
        self.interleaved = interleaved

    @checked(**DOOR)
    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the encoding to x (batch, L, d_model) at positions (L,) or (batch, L); the result has the shape of x."""
        return x + sinusoidal_table(positions, self.d_model, self.base, interleaved=self.interleaved).to(x)
