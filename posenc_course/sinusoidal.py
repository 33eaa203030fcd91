"""The sinusoidal encoding of "Attention Is All You Need" (Vaswani et al. 2017, section 3.5)."""

import math

import torch
from torch import Tensor

from posenc_course._validation import BASE, D_MODEL, DOOR, LENGTH, POSITIONS, Positions, checked, exact
from posenc_course.schemes import PositionScheme


@checked(d_model=D_MODEL, base=BASE)
def frequencies(d_model: int, base: float = 10_000.0) -> Tensor:
    """Angular frequencies ω_i = base^(-2i/d_model) in radians per token, fastest first, shape (⌈d_model/2⌉,), float64.

    i counts pairs of channels, not channels. ω_0 is 1 for every base; the last of an even d_model is
    base^(-(d_model-2)/d_model).
    """
    pair = torch.arange((d_model + 1) // 2, dtype=torch.float64)
    return base ** (-2 * pair / d_model)


@checked(positions=POSITIONS, d_model=D_MODEL, base=BASE, dtype="dtype")
def sinusoidal_table(
    positions: Positions,
    d_model: int,
    base: float = 10_000.0,
    *,
    interleaved: bool = True,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """PE(m)_{2i} = sin(ω_i m) and PE(m)_{2i+1} = cos(ω_i m), shape `(*positions.shape, d_model)`.

    Args:
        positions: finite real numbers, in tokens, of shape (L,) or (batch, L). Any will do: far ones, fractions, negatives.
        interleaved: sin, cos, sin, cos, … as in the paper; False puts all sines first, then all cosines.
        dtype: of the result. Angles are computed in float64 and cast last: in float32 they lose digits as positions grow.

    An odd d_model gets one cosine fewer. Raises ValueError for bad arguments.
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
    """`sinusoidal_table(range(start, start + length), d_model, base)` in float32, by angle addition: the fast form.

    A pair is one complex number, PE_i(m) = sin(ω_i m) + i·cos(ω_i m) = i·e^{-iω_i m}, and so a shift is a product:
    PE_i(256a + b) = e^{-iω_i·256a}·PE_i(b). Sines and cosines are computed for every 256th position and for 256 neighbours, the
    rest is one multiplication per pair, whose rounding adds about 1e-7 at any position.
    """
    omega = frequencies(d_model, base)
    step = min(length, 256)
    coarse = (start + step * torch.arange(math.ceil(length / step), dtype=torch.float64)).unsqueeze(-1) * omega
    fine = torch.arange(step, dtype=torch.float64).unsqueeze(-1) * omega  # (step, pairs)
    turns = torch.complex(coarse.cos(), -coarse.sin()).to(torch.complex64)
    first = torch.complex(fine.sin(), fine.cos()).to(torch.complex64)
    table = torch.view_as_real(turns.unsqueeze(1) * first)  # (blocks, step, pairs, 2)
    return table.flatten(start_dim=2).flatten(end_dim=1)[:length, :d_model]


class SinusoidalPositions(PositionScheme):
    """x + PE(m), for any length and any positions: nothing is stored, so nothing can run out or be cast."""

    @checked(d_model=D_MODEL, base=BASE)
    def __init__(self, d_model: int, base: float = 10_000.0, *, interleaved: bool = True) -> None:
        super().__init__()
        self.d_model, self.base = d_model, base
        self.interleaved = interleaved

    @checked(**DOOR)
    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) -> the same shape."""
        return x + sinusoidal_table(positions, self.d_model, self.base, interleaved=self.interleaved).to(x)
