"""The sinusoidal encoding of "Attention Is All You Need" (Vaswani et al. 2017, section 3.5; chapter 03)."""

import torch
from torch import Tensor

from posenc_course._validation import Positions, check_base, check_embedding, check_integer, check_positions
from posenc_course.schemes import PositionScheme


def frequencies(d_model: int, base: float = 10_000.0) -> Tensor:
    """Angular frequencies ω_i = base^(-2i/d_model) in radians per token, fastest first, shape (⌈d_model/2⌉,), float64.

    i counts pairs of channels, not channels. ω_0 is 1 for every base; the last of an even d_model is
    base^(-(d_model-2)/d_model).
    """
    d_model = check_integer("d_model", d_model, minimum=1, hint="it is the width of the token vectors, e.g. 64")
    pair = torch.arange((d_model + 1) // 2, dtype=torch.float64)
    return check_base(base) ** (-2 * pair / d_model)


def sinusoidal_table(
    positions: Positions,
    d_model: int,
    base: float = 10_000.0,
    *,
    interleaved: bool = True,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """PE(m)_{2i} = sin(ω_i m) and PE(m)_{2i+1} = cos(ω_i m), shape (*positions.shape, d_model).

    Args:
        positions: finite real numbers, in tokens, of shape (L,) or (batch, L). Any will do: far ones, fractions, negatives.
        interleaved: sin, cos, sin, cos, … as in the paper; False puts all sines first, then all cosines.
        dtype: of the result. Angles are computed in float64 and cast last: in float32 they lose digits as positions grow.

    An odd d_model gets one cosine fewer. Raises ValueError for bad arguments.
    """
    exact = check_positions(positions, integer=False)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating-point torch.dtype, got {dtype!r}: take torch.float32 for example")
    angles = exact.unsqueeze(-1) * frequencies(d_model, base).to(exact.device)  # (..., L, ⌈d_model/2⌉)
    sin, cos = angles.sin(), angles.cos()
    if interleaved:
        table = torch.stack((sin, cos), dim=-1).flatten(start_dim=-2)  # (..., L, 2⌈d_model/2⌉)
    else:
        table = torch.cat((sin, cos), dim=-1)
    return table[..., :d_model].to(dtype)  # an odd d_model drops the last cosine


class SinusoidalPositions(PositionScheme):
    """x + PE(m), for any length and any positions: nothing is stored, so nothing can run out or be cast."""

    def __init__(self, d_model: int, base: float = 10_000.0, *, interleaved: bool = True) -> None:
        super().__init__()
        self.d_model = check_integer("d_model", d_model, minimum=1, hint="it is the width of the token vectors, e.g. 64")
        self.base = check_base(base)
        self.interleaved = interleaved

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) -> the same shape."""
        check_embedding(x, positions, self.d_model)
        return x + sinusoidal_table(positions, self.d_model, self.base, interleaved=self.interleaved).to(x)
