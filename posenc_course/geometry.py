"""The geometry of the sinusoidal encoding (Vaswani et al. 2017): lengths, distances, wavelengths, and shifts as rotations.

Offsets and lengths of sequences are in tokens, and angles are in radians; all tensors returned are float64.
"""

import math

import torch
from torch import Tensor

from posenc_course._validation import BASE, D_MODEL, INTERLEAVED, LENGTH, POSITIONS, Positions, checked, exact
from posenc_course.sinusoidal import frequencies

_EVEN = "even: the last sine of an odd d_model has no cosine beside it, so add a channel or leave one out"
_OF_OFFSETS = {"offsets": "real ...", "d_model": _EVEN, "base": BASE}


@checked(d_model=D_MODEL, base=BASE)
def wavelengths(d_model: int, base: float = 10_000.0) -> Tensor:
    """The wavelength of each pair in tokens per full rotation, λ_i = 2π/ω_i, shortest first, shape (⌈d_model/2⌉,).

    The shortest is 2π. If d_model is even, the longest is 2π·base^((d_model-2)/d_model), a little less than 2π·base. Raises
    ValueError unless d_model is an integer >= 1 and base > 1.
    """
    return 2 * math.pi / frequencies(d_model, base)


@checked(length=LENGTH, d_model=D_MODEL, base=BASE, angle="number > 0: it is in radians; a full rotation is 2π")
def rotating_pairs(length: int, d_model: int, base: float = 10_000.0, *, angle: float = 2 * math.pi) -> int:
    """How many of the ⌈d_model/2⌉ pairs rotate by more than `angle` radians from the first of `length` tokens to the last.

    This is the number of pairs i with ω_i·(length - 1) > angle. Angles that are equal but for the rounding of a power don't
    count. Raises ValueError for sizes or an angle out of range.
    """
    return int((frequencies(d_model, base) * (length - 1) > angle * (1 + 1e-12)).sum())


@checked(positions=POSITIONS, d_model=D_MODEL, base=BASE)
def norms(positions: Positions, d_model: int, base: float = 10_000.0) -> Tensor:
    """The length ‖PE(m)‖ of the encoding of each position, in the shape of positions, (L,) or (batch, L).

    Each pair contributes sin² + cos² = 1, so with an even d_model the length is √(d_model/2) everywhere. With an odd d_model,
    the last cosine is missing, and ‖PE(m)‖² = (d_model-1)/2 + sin²(ω_last·m). Raises ValueError for positions that are not
    finite real numbers.
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

    Offsets are real numbers in an array of any shape. Raises ValueError for an odd d_model, for which the dot product depends
    on more than the offset.
    """
    delta = exact(offsets)
    return (delta.unsqueeze(-1) * frequencies(d_model, base).to(delta.device)).cos()


@checked(**_OF_OFFSETS)
def similarity(offsets: Positions, d_model: int, base: float = 10_000.0) -> Tensor:
    """The dot product of two encodings Δ tokens apart, PE(m)·PE(m+Δ) = Σ_i cos(ω_i·Δ) for every m, in the shape of offsets.

    It is d_model/2 at Δ = 0, and the same for Δ and -Δ. Raises ValueError for an odd d_model, like `similarity_by_pair`.
    """
    return similarity_by_pair(offsets, d_model, base).sum(dim=-1)


@checked(**_OF_OFFSETS)
def distance(offsets: Positions, d_model: int, base: float = 10_000.0) -> Tensor:
    """The distance between two encodings Δ tokens apart, ‖PE(m) - PE(m+Δ)‖ for every m, in the shape of offsets.

    Each pair contributes a chord of the unit circle, `2·|sin(ω_i·Δ/2)|`. Raises ValueError for an odd d_model, like
    `similarity_by_pair`.
    """
    # We don't use √(d_model - 2·similarity), which for a small Δ would subtract two nearly equal numbers.
    delta = exact(offsets)
    half_angles = delta.unsqueeze(-1) * frequencies(d_model, base).to(delta.device) / 2
    return 2 * half_angles.sin().square().sum(dim=-1).sqrt()


@checked(offset="number: it is in tokens, e.g. 1 for the next position", d_model=_EVEN, base=BASE, interleaved=INTERLEAVED)
def shift_matrix(offset: float, d_model: int, base: float = 10_000.0, *, interleaved: bool = True) -> Tensor:
    """The matrix R with PE(m + offset) = R·PE(m) for every m, shape (d_model, d_model).

    With Δ = offset, pair i, (sin, cos), is rotated by the block [[cos ω_iΔ, sin ω_iΔ], [-sin ω_iΔ, cos ω_iΔ]]. So R is
    orthogonal, and R⁻¹ = Rᵀ is the shift by -Δ. `interleaved` is the layout of the encoding, as in
    `sinusoidal.sinusoidal_table`. Raises ValueError for an odd d_model, because its last sine has no matching cosine.
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
