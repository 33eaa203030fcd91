"""Polar coordinates: a channel's length says what a token is, its angle where it is (Gopalakrishnan et al. 2025)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course._validation import NUM_HEADS, checked
from posenc_course.rope import rope_tables
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies


class PolarPositions(PositionScheme):
    """PoPE: every channel c of a query and a key becomes an arrow of length softplus(q_c) at the angle ω_c·m.

    With ω_c = 10000^(-c/d_head), the score is the sum over c of softplus(q_c)·softplus(k_c)·cos(ω_c·(m - n) - δ_c), divided by
    √d_head. The phases δ_c in [-2π, 0] are learned for each head. They begin at 0, the end of this range; beyond it,
    one counts as 0 and gets no gradient. In RoPE, the angle of an arrow depends on the token, too.
    """

    @checked(d_head="count: it is the width of one head, d_model / num_heads", num_heads=NUM_HEADS)
    def __init__(self, d_head: int, num_heads: int) -> None:
        super().__init__()
        self.d_head, self.num_heads = d_head, num_heads
        self.frequencies = frequencies(2 * d_head)
        self.phase = nn.Parameter(torch.zeros(num_heads, 1, d_head))

    @checked(
        q="float batch {self.num_heads} L_query {self.d_head}: build the scheme with the model's sizes",
        k="float batch {self.num_heads} L_key {self.d_head}: build the scheme with the model's sizes",
        q_positions="real [batch] L_query: give each token of q a position",
        k_positions="real [batch] L_key: give each token of k a position",
    )
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """The arrows of q and k (batch, heads, L, d_head), as two coordinates per channel, (batch, heads, L, 2·d_head)."""
        phase = self.phase.clamp(-2 * math.pi, 0)
        cos, sin = (table.unsqueeze(-3) for table in rope_tables(q_positions, self.frequencies, dtype=q.dtype))
        of_q = torch.cat((cos, sin), dim=-1) * F.softplus(q).repeat(1, 1, 1, 2)
        cos, sin = (table.unsqueeze(-3) for table in rope_tables(k_positions, self.frequencies, dtype=k.dtype))
        rotated = torch.cat((cos * phase.cos() - sin * phase.sin(), sin * phase.cos() + cos * phase.sin()), dim=-1)
        # Attention divides by √(2·d_head), the width of the arrows' coordinates, but the paper by √d_head.
        return math.sqrt(2) * of_q, rotated * F.softplus(k).repeat(1, 1, 1, 2)
