"""Stretch a trained RoPE beyond its training length: every method maps frequencies to frequencies.

Frequencies are in radians per token, fastest first, as `sinusoidal.frequencies(d_head)` gives them; lengths are in tokens, and
`factor` is how many times longer the sequences become. Pass the result to `rope.RotaryPositions`.
"""

import math

import torch
from torch import Tensor

from posenc_course._validation import INTERLEAVED, checked, exact, refuse
from posenc_course.rope import Q_AND_K, RotaryPositions

_FACTOR = "number >= 1: it is how many times longer sequences become, e.g. 4"
_LENGTH = "count: it is a number of tokens; original_length is the training length"
_STRETCH = {"frequencies": "frequencies", "factor": _FACTOR}
_TURNS = {
    "slow": "number > 0: it is a number of rotations within the original length, e.g. 1",
    "fast": "number >= slow: it is a number of rotations within the original length, e.g. 32",
}


@checked(**_STRETCH)
def position_interpolation(frequencies: Tensor, factor: float) -> Tensor:
    """The frequencies ω_i / factor: all pairs slow down alike, as if positions were divided by `factor` (Chen et al. 2023)."""
    return frequencies / factor


@checked(**_STRETCH)
def ntk_aware(frequencies: Tensor, factor: float) -> Tensor:
    """The frequencies ω_i·factor^(-i/(n-1)) of n pairs: the fastest stays as it is, and the slowest is divided by `factor`.

    For `sinusoidal.frequencies`, this is the same as replacing the base by base·factor^(d/(d-2)), with d = 2n (bloc97 2023).
    Raises ValueError for a single pair, which would be both the fastest and the slowest.
    """
    pairs = len(frequencies)
    if pairs < 2:
        refuse("frequencies", "at least two", pairs, "the fastest stays as it is and the slowest is stretched")
    return frequencies * factor ** -torch.linspace(0, 1, pairs, dtype=torch.float64, device=frequencies.device)


@checked(**_STRETCH, length=_LENGTH, original_length=_LENGTH)
def dynamic_ntk(frequencies: Tensor, length: int, original_length: int, factor: float = 1.0) -> Tensor:
    """`ntk_aware` with a factor that grows with the sequence: 1 + factor·(length/original_length - 1), but at least 1.

    Up to `original_length`, nothing changes. Keys that were rotated for a shorter sequence don't fit the queries of a longer
    one, so with a cache the outputs differ from those of a single pass. Raises ValueError for a single pair.
    """
    return ntk_aware(frequencies, 1 + factor * max(0.0, length / original_length - 1))


@checked(
    **_STRETCH, original_length=_LENGTH, **_TURNS, truncate="flag: True rounds both ends to whole pairs, as most models do"
)
def yarn(
    frequencies: Tensor, factor: float, original_length: int, *, fast: float = 32.0, slow: float = 1.0, truncate: bool = True
) -> Tensor:
    """Keep the pairs that rotate often within the original length, interpolate those that hardly rotate, and blend in between.

    ω'_i = γ_i·ω_i + (1 - γ_i)·ω_i/factor, where γ falls linearly in i from 1, at the pair that rotates `fast` times within
    `original_length`, to 0, at the pair that rotates `slow` times (Peng et al. 2024, as in the published code; in the paper's
    text, γ falls linearly with the number of rotations instead). `truncate` rounds the two ends outwards to whole pairs, as
    most models do.

    Frequencies must fall geometrically, like `sinusoidal.frequencies`; otherwise, a ValueError is raised. YaRN also sharpens
    attention: see `yarn_attention_factor`.
    """
    omega, step = frequencies, _logarithmic_step(frequencies)
    # The pair, as a fractional index, that rotates this often within the original length: ω_0·e^(-step·i)·length = 2π·turns.
    first, last = (math.log(omega[0] * original_length / (2 * math.pi * turns)) / step for turns in (fast, slow))
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * len(omega) - 1)
    pair = torch.arange(len(omega), dtype=torch.float64, device=omega.device)
    keep = 1 - ((pair - first) / max(last - first, 1e-3)).clamp(0, 1)  # γ
    return keep * omega + (1 - keep) * omega / factor


@checked(factor=_FACTOR)
def yarn_attention_factor(factor: float) -> float:
    """The number 0.1·ln(factor) + 1 by which YaRN multiplies both query and key, so scores are multiplied by its square."""
    return 0.1 * math.log(factor) + 1


@checked(**_STRETCH, original_length=_LENGTH, **_TURNS)
def llama3(
    frequencies: Tensor, factor: float = 8.0, original_length: int = 8192, *, fast: float = 4.0, slow: float = 1.0
) -> Tensor:
    """Keep the pairs that rotate more than `fast` times within the original length; divide those below `slow` by `factor`.

    In between, ω'_i = γ_i·ω_i + (1 - γ_i)·ω_i/factor, with γ_i = (r_i - slow) / (fast - slow), where r_i is the number of
    rotations, original_length·ω_i/2π; if the two are equal, γ_i jumps from 0 to 1 there, as in Llama 4. This is Llama 3.1's
    published code, which calls `fast` high_freq_factor.
    """
    turns = original_length * frequencies / (2 * math.pi)
    keep = ((turns - slow) / max(fast - slow, 1e-12)).clamp(0, 1)  # γ
    return keep * frequencies + (1 - keep) * frequencies / factor


class DynamicNTKPositions(RotaryPositions):
    """`RotaryPositions` with the frequencies of `dynamic_ntk` for the largest position in the call.

    This is the only rotary scheme here for which decoding with a cache differs from a single pass, because cached keys keep
    the rotation that they got when they were added. Raises ValueError for a single pair.
    """

    @checked(**_STRETCH, original_length=_LENGTH, interleaved=INTERLEAVED)
    def __init__(self, frequencies: Tensor, original_length: int, factor: float = 1.0, *, interleaved: bool = True) -> None:
        super().__init__(frequencies, interleaved=interleaved)
        # A single pair is an error now, not at the first call.
        dynamic_ntk(frequencies, original_length, original_length, factor)
        self.original_length = original_length
        self.factor = factor

    @checked(**Q_AND_K | {"q_positions": "whole [batch] L_query", "k_positions": "whole [batch] L_key"})
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate q and k (batch, heads, L, d_head) by their positions, (L,) or (batch, L); the results keep their shapes."""
        length = int(max(exact(q_positions).max(), exact(k_positions).max()).item()) + 1
        frequencies = dynamic_ntk(self.frequencies, length, self.original_length, self.factor)
        return self._rotate(q, k, q_positions, k_positions, frequencies)


def _logarithmic_step(omega: Tensor) -> float:
    """The logarithm ln(ω_i / ω_(i+1)); raises a ValueError unless it is the same for all i."""
    steps = -omega.log().diff()
    if len(omega) < 2 or not torch.allclose(steps, steps.mean(), rtol=1e-6, atol=0) or steps[0] <= 0:
        raise ValueError(
            f"frequencies must be at least two and fall geometrically, got {[round(w, 4) for w in omega.tolist()]}: stretch "
            "those of sinusoidal.frequencies, and only once"
        )
    return steps.mean().item()
