"""Stretching a trained RoPE beyond its length: every method is a map from frequencies to frequencies.

Frequencies are in radians per token, fastest first, as `sinusoidal.frequencies(d_head)` gives them; lengths are in tokens, and
`factor` is how many times longer the sequences become. Pass the result to `rope.RotaryPositions`.
"""

import math

import torch
from torch import Tensor

from posenc_course._validation import checked, exact, refuse
from posenc_course.rope import Q_AND_K, RotaryPositions

_FACTOR = "number >= 1: it is how many times longer sequences become, e.g. 4"
_LENGTH = "count: it counts tokens; original_length is the one trained at"
_STRETCH = {"frequencies": "frequencies", "factor": _FACTOR}
_TURNS = {
    "slow": "number > 0: it counts turns within the original length, e.g. 1",
    "fast": "number > slow: it counts turns, more than slow, e.g. 32",
}


@checked(**_STRETCH)
def position_interpolation(frequencies: Tensor, factor: float) -> Tensor:
    """ω_i / factor: all pairs turn slower alike, as if positions were divided by `factor` (Chen et al. 2023)."""
    return frequencies / factor


@checked(**_STRETCH)
def ntk_aware(frequencies: Tensor, factor: float) -> Tensor:
    """ω_i · factor^(-i/(n-1)), n = len(frequencies): the fastest pair stays, the slowest is divided by `factor`.

    The same as a base of base·factor^(d/(d-2)) with d = 2n (bloc97 2023). Raises ValueError for a single pair, which cannot be
    both the fastest and the slowest.
    """
    pairs = len(frequencies)
    if pairs < 2:
        refuse("frequencies", "two at least", pairs, "the fastest stays and the slowest is stretched")
    return frequencies * factor ** -torch.linspace(0, 1, pairs, dtype=torch.float64, device=frequencies.device)


@checked(**_STRETCH, length=_LENGTH, original_length=_LENGTH)
def dynamic_ntk(frequencies: Tensor, length: int, original_length: int, factor: float = 1.0) -> Tensor:
    """`ntk_aware` by a factor that grows with the sequence, 1 + factor·(length/original_length - 1), and never shrinks.

    Up to `original_length` nothing changes. Keys that were turned for a shorter sequence do not fit the queries of a longer
    one: with a cache, outputs differ from those of one pass.
    """
    return ntk_aware(frequencies, 1 + factor * max(0.0, length / original_length - 1))


@checked(**_STRETCH, original_length=_LENGTH, **_TURNS)
def yarn(
    frequencies: Tensor, factor: float, original_length: int, *, fast: float = 32.0, slow: float = 1.0, truncate: bool = True
) -> Tensor:
    """Keep the pairs that turn often within the original length, interpolate those that hardly turn, blend between.

    ω'_i = γ_i·ω_i + (1 - γ_i)·ω_i/factor, with γ falling linearly in i from 1, at the pair that makes `fast` turns within
    `original_length`, to 0, at the one that makes `slow` turns (Peng et al. 2023, in the form of its published code; the
    paper's text lets γ fall linearly with the number of turns instead). `truncate` rounds the two ends outwards to whole pairs,
    as most models do.

    Frequencies must be geometric, as `sinusoidal.frequencies` are. YaRN also sharpens attention: `yarn_attention_factor`.
    """
    omega, step = frequencies, _logarithmic_step(frequencies)
    # The pair, counted in fractions, that makes so many turns within the original length: ω_0·e^(-step·i)·length = 2π·turns.
    first, last = (math.log(omega[0] * original_length / (2 * math.pi * turns)) / step for turns in (fast, slow))
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, 2 * len(omega) - 1)
    pair = torch.arange(len(omega), dtype=torch.float64, device=omega.device)
    keep = 1 - ((pair - first) / max(last - first, 1e-3)).clamp(0, 1)  # γ
    return keep * omega + (1 - keep) * omega / factor


@checked(factor=_FACTOR)
def yarn_attention_factor(factor: float) -> float:
    """0.1·ln(factor) + 1, by which YaRN multiplies query and key each, so that scores grow by its square."""
    return 0.1 * math.log(factor) + 1


@checked(**_STRETCH, original_length=_LENGTH, **_TURNS)
def llama3(
    frequencies: Tensor, factor: float = 8.0, original_length: int = 8192, *, fast: float = 4.0, slow: float = 1.0
) -> Tensor:
    """Keep the pairs that make more than `fast` turns within the original length, divide by `factor` those below `slow`.

    Between, ω'_i = γ_i·ω_i + (1 - γ_i)·ω_i/factor, with γ_i = (turns_i - slow) / (fast - slow) and
    turns_i = original_length·ω_i/2π (Llama 3.1's published code; `fast` is its high_freq_factor).
    """
    turns = original_length * frequencies / (2 * math.pi)
    keep = ((turns - slow) / (fast - slow)).clamp(0, 1)  # γ
    return keep * frequencies + (1 - keep) * frequencies / factor


class DynamicNTKPositions(RotaryPositions):
    """`RotaryPositions` with the frequencies of `dynamic_ntk` for the longest position in sight.

    The one rotary scheme here whose cached decoding differs from one pass: cached keys keep the turn they got when they came.
    """

    @checked(**_STRETCH, original_length=_LENGTH)
    def __init__(self, frequencies: Tensor, original_length: int, factor: float = 1.0, *, interleaved: bool = True) -> None:
        super().__init__(frequencies, interleaved=interleaved)
        dynamic_ntk(
            frequencies, original_length, original_length, factor
        )  # a single pair is refused now, not at the first call
        self.original_length = original_length
        self.factor = factor

    @checked(**Q_AND_K | {"q_positions": "whole [batch] L_query", "k_positions": "whole [batch] L_key"})
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """q and k (batch, heads, L, d_head) at positions (L,) or (batch, L) -> the same shapes."""
        length = int(max(exact(q_positions).max(), exact(k_positions).max()).item()) + 1
        frequencies = dynamic_ntk(self.frequencies, length, self.original_length, self.factor)
        return self._rotate(q, k, q_positions, k_positions, frequencies)


def _logarithmic_step(omega: Tensor) -> float:
    """ln(ω_i / ω_(i+1)), or a ValueError unless it is the same for all i."""
    steps = -omega.log().diff()
    if len(omega) < 2 or not torch.allclose(steps, steps.mean(), rtol=1e-6, atol=0) or steps[0] <= 0:
        raise ValueError(
            f"frequencies must be two at least and fall geometrically, got {[round(w, 4) for w in omega.tolist()]}: stretch "
            "those of sinusoidal.frequencies, and only once"
        )
    return steps.mean().item()
