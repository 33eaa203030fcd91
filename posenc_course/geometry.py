"""The geometry of the sinusoidal encoding: lengths, distances, wavelengths, and the rotation behind a shift.

Offsets and lengths are in tokens, angles in radians; all results are float64.
"""

import math

import torch
from torch import Tensor

from posenc_course._validation import BASE, D_MODEL, LENGTH, POSITIONS, Positions, checked, exact
from posenc_course.sinusoidal import frequencies

_EVEN = "even: the last sine of an odd d_model has no cosine beside it, so add a channel or leave one out"
_OF_OFFSETS = {"offsets": "real ...", "d_model": _EVEN, "base": BASE}


@checked(d_model=D_MODEL, base=BASE)
def wavelengths(d_model: int, base: float = 10_000.0) -> Tensor:
    """Tokens per full turn of each pair, λ_i = 2π/ω_i, shortest first, shape (⌈d_model/2⌉,).

    The shortest is 2π, the longest of an even d_model is 2π·base^((d_model-2)/d_model), a little less than 2π·base.
    """
    return 2 * math.pi / frequencies(d_model, base)


@checked(length=LENGTH, d_model=D_MODEL, base=BASE, angle="number > 0: it is in radians; a full turn is 2π")
def turning_pairs(length: int, d_model: int, base: float = 10_000.0, *, angle: float = 2 * math.pi) -> int:
    """How many of the ⌈d_model/2⌉ pairs turn by more than `angle` radians from the first of `length` tokens to the last.

    That is the number of i with ω_i·(length - 1) > angle.
    """
    return int((frequencies(d_model, base) * (length - 1) > angle).sum())


@checked(positions=POSITIONS, d_model=D_MODEL, base=BASE)
def norms(positions: Positions, d_model: int, base: float = 10_000.0) -> Tensor:
    """The length of the encoding of each position, ‖PE(m)‖; shape of positions.

    Each pair contributes sin² + cos² = 1, so an even d_model gives √(d_model/2) everywhere. An odd one lacks its last cosine:
    ‖PE(m)‖² = (d_model-1)/2 + sin²(ω_last·m).
    """
    m = exact(positions)
    omega = frequencies(d_model, base).to(m.device)
    squared = torch.full_like(m, d_model // 2)
    if d_model % 2:
        squared = squared + (omega[-1] * m).sin().square()
    return squared.sqrt()


@checked(**_OF_OFFSETS)
def similarity_by_pair(offsets: Positions, d_model: int, base: float = 10_000.0) -> Tensor:
    """What each pair adds to the dot product of two encodings Δ tokens apart: cos(ω_i·Δ), shape `(*offsets.shape, d_model/2)`.

    Offsets are real numbers of any shape. Raises ValueError for an odd d_model, where the dot product depends
    on more than the offset.
    """
    delta = exact(offsets)
    return (delta.unsqueeze(-1) * frequencies(d_model, base).to(delta.device)).cos()


@checked(**_OF_OFFSETS)
def similarity(offsets: Positions, d_model: int, base: float = 10_000.0) -> Tensor:
    """The dot product of two encodings Δ tokens apart, PE(m)·PE(m+Δ) = Σ_i cos(ω_i·Δ), for every m; shape of offsets.

    It is d_model/2 at Δ = 0 and the same for -Δ. Raises ValueError as `similarity_by_pair`.
    """
    return similarity_by_pair(offsets, d_model, base).sum(dim=-1)


@checked(**_OF_OFFSETS)
def distance(offsets: Positions, d_model: int, base: float = 10_000.0) -> Tensor:
    """How far two encodings Δ tokens apart lie from each other, ‖PE(m) - PE(m+Δ)‖, for every m; shape of offsets.

    Each pair contributes a chord of the unit circle, `2·|sin(ω_i·Δ/2)|`. Raises ValueError as `similarity_by_pair`.
    """
    # Not √(d_model - 2·similarity): for a small Δ that would subtract two nearly equal numbers.
    delta = exact(offsets)
    half_angles = delta.unsqueeze(-1) * frequencies(d_model, base).to(delta.device) / 2
    return 2 * half_angles.sin().square().sum(dim=-1).sqrt()


@checked(offset="number: it is in tokens, e.g. 1 for the next position", d_model=_EVEN, base=BASE)
def shift_matrix(offset: float, d_model: int, base: float = 10_000.0, *, interleaved: bool = True) -> Tensor:
    """The matrix R with PE(m + offset) = R·PE(m) for every m, shape (d_model, d_model).

    Pair i, (sin, cos), is turned by the block [[cos ω_iΔ, sin ω_iΔ], [-sin ω_iΔ, cos ω_iΔ]]: R is orthogonal, with R⁻¹ = Rᵀ the
    shift by -Δ. `interleaved` is the layout of the encoding, as in `sinusoidal.sinusoidal_table`. Raises ValueError for an
    odd d_model, whose last sine lacks the cosine that it would need.
    """
    angles = offset * frequencies(d_model, base)  # (d_model/2,)
    cos, sin = angles.cos(), angles.sin()
    channels = torch.arange(d_model)
    sines, cosines = channels.view(-1, 2).T if interleaved else channels.view(2, -1)
    matrix = torch.zeros(d_model, d_model, dtype=torch.float64)
    matrix[sines, sines] = matrix[cosines, cosines] = cos
    matrix[sines, cosines] = sin
    matrix[cosines, sines] = -sin
    return matrix
