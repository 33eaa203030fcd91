"""Schemes for SmolLM2 that only these measurements need, beside those in tools/lab/schemes.py."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc_course.attention import Cache
from posenc_course.rope import RotaryPositions, apply_rope, rope_tables
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies

OMEGA = frequencies(64, base=100_000.0)
PLAIN = RotaryPositions(OMEGA)


def slowed(pairs: Sequence[int], factor: float) -> RotaryPositions:
    """RoPE with the speed of these pairs multiplied by a factor; 0 stops them."""
    omega = OMEGA.clone()
    omega[[*pairs]] *= factor
    return RotaryPositions(omega)


class HidingPositions(RotaryPositions):
    """RoPE, but queries from some position on don't see some tokens, unless told otherwise the first."""

    def __init__(self, start: int, hidden: Sequence[int] = (0,)) -> None:
        super().__init__(OMEGA)
        self.start, self.hidden = start, hidden

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        which = torch.isin(k_positions, torch.tensor(self.hidden, device=k_positions.device))
        hidden = (q_positions[:, None] >= self.start) & which
        return q.new_zeros(1, 1, *hidden.shape).masked_fill(hidden, -math.inf)


class RoughPositions(PositionScheme):
    """RoPE with positions, angles or tables in a lower precision."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def tables(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        if self.what == "positions in bfloat16":
            return rope_tables(positions.bfloat16().double(), OMEGA)
        if self.what == "tables in bfloat16":
            cos, sin = rope_tables(positions, OMEGA)
            return cos.bfloat16().float(), sin.bfloat16().float()
        dtype = {"angles in float32": torch.float32, "angles in bfloat16": torch.bfloat16}[self.what]
        angles = (positions.to(dtype)[:, None] * OMEGA.to(positions.device, dtype)).float()
        return angles.cos(), angles.sin()

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.tables(q_positions)
        return apply_rope(q, cos, sin, interleaved=True), apply_rope(k, cos, sin, interleaved=True)


class Listening(PositionScheme):
    """RoPE that passes on queries and keys, as they come and rotated; keys are repeated, one for each head."""

    def __init__(self, hear: Callable[[Tensor, Tensor, Tensor, Tensor], None], rope: PositionScheme = PLAIN) -> None:
        super().__init__()
        self.hear, self.rope = hear, rope

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        rotated = self.rope.rotate(q, k, q_positions, k_positions)
        self.hear(q, k, *rotated)
        return rotated


class OtherHeads(PositionScheme):
    """RoPE in which some heads have other frequencies; keys are repeated, one for each head."""

    def __init__(self, heads: Sequence[int], other: RotaryPositions) -> None:
        super().__init__()
        self.heads, self.other = heads, other

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        q, k, other_q, other_k = (x.clone() for one in (PLAIN, self.other) for x in one.rotate(q, k, q_positions, k_positions))
        q[:, self.heads], k[:, self.heads] = other_q[:, self.heads], other_k[:, self.heads]
        return q, k


class WithoutPairs(PositionScheme):
    """RoPE in which some pairs contribute nothing to any score."""

    def __init__(self, pairs: Sequence[int]) -> None:
        super().__init__()
        self.kept = torch.ones(len(OMEGA), 1)
        self.kept[[*pairs]] = 0

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q = (q.unflatten(-1, (-1, 2)) * self.kept.to(q.device)).flatten(-2)
        return PLAIN.rotate(q, k, q_positions, k_positions)


class ClampedPairs(RotaryPositions):
    """RoPE in which some pairs stop rotating at a distance of their own, the largest that they show; all others go on.

    `caps` has these pairs and their distances. The cache is that of the layer: it holds all keys, rotated.
    """

    def __init__(self, caps: dict[int, int], cache: Cache) -> None:
        super().__init__(OMEGA)
        self.caps, self.cache = caps, cache

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """What the clamped pairs add to the scores at their last distance, minus what they add as they are."""
        assert self.cache.keys is not None
        changed = q.new_zeros(*q.shape[:-1], len(k_positions))
        for cap in {*self.caps.values()}:
            far = k_positions[k_positions < q_positions.max() - cap]
            if not len(far):
                continue
            k = self.cache.keys[:, :, : len(far)].repeat_interleave(q.shape[1] // self.cache.keys.shape[1], dim=1)
            channels = [c for pair, own in self.caps.items() if own == cap for c in (2 * pair, 2 * pair + 1)]
            # Rotated back, and then by the cap alone.
            back_q, back_k = self.rotate(q, k, cap - q_positions, -far)
            at_cap, as_is = (a[..., channels] @ b[..., channels].mT for a, b in ((back_q, back_k), (q, k)))
            changed[..., : len(far)] += (at_cap - as_is) * (q_positions[:, None] - far > cap) / math.sqrt(q.shape[-1])
        return changed
