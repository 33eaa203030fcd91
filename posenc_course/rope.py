"""Rotary position embedding: queries and keys are rotated, one pair of channels at a time (Su et al. 2024).

Pair i of a head rotates by ω_i radians per token, so positions affect the score of a query and a key only through their offset.
The layout says which channels form a pair: neighbours (interleaved) or halves (channel i with channel i + d_head/2).
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from posenc_course import sinusoidal
from posenc_course._fast import LastTables, Tables, by_heads, fused_halves
from posenc_course._validation import BASE, INTERLEAVED, POSITIONS, Positions, checked, exact, refuse
from posenc_course.schemes import PositionScheme

_PAIRS = "even >= 2: rotations act on pairs of channels, so add one or leave one out"


@checked(d_head=_PAIRS, share="number >= 0 <= 1: it is the share of the pairs that rotate, e.g. 0.25", base=BASE)
def proportional_frequencies(d_head: int, share: float, base: float = 10_000.0) -> Tensor:
    """p-RoPE: the fastest pairs keep their frequencies base^(-2i/d_head) in radians per token, and the others get 0.

    The result has shape (d_head/2,), float64, and its first ⌊share·d_head/2⌋ entries are positive: 1 is RoPE, 0 is no rotation.
    Partial RoPE is something else, and needs no function: `sinusoidal.frequencies(share·d_head)` spreads as many pairs over the
    whole range, from fast to slow. Raises ValueError for an odd d_head, a share outside 0 to 1, and base <= 1. Barbero et al.
    (2025) suggest p-RoPE, and Gemma 4 uses it with share 0.25.
    """
    omega = sinusoidal.frequencies(d_head, base)
    omega[int(share * d_head / 2) :] = 0
    return omega


@checked(positions=POSITIONS, frequencies="frequencies", dtype="dtype")
def rope_tables(positions: Positions, frequencies: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """The tables cos(ω_i·m) and sin(ω_i·m), each of shape `(*positions.shape, d_head/2)`.

    Args:
        positions: finite real numbers, in tokens, (L,) or (batch, L).
        frequencies: ω in radians per token, float64, (d_head/2,), from `sinusoidal.frequencies(d_head)` or `rope_scaling`.
        dtype: dtype of the tables, which are computed in float64 and cast at the end. float32 is right for queries in bfloat16,
            too; use float64 for queries in float64.

    Raises ValueError for positions that are not exact or not finite, and for frequencies that are negative or not float64.
    """
    return _tables(exact(positions).unsqueeze(-1), frequencies, dtype)


def _tables(positions: Tensor, frequencies: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    angles = positions * frequencies.to(positions.device)  # (..., L, d_head/2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


@checked(
    sections="integer axes: give each axis its number of pairs, e.g. [24, 20, 20]",
    interleaved="flag: True deals the pairs out one by one, False gives each axis neighbouring pairs",
)
def mrope_axes(sections: Positions, *, interleaved: bool) -> Tensor:
    """The axis of each pair in M-RoPE, int64 of shape (sum(sections),): 0 for time, 1 for the row, 2 for the column.

    Args:
        sections: how many pairs rotate by each axis; their sum is d_head/2.
        interleaved: False gives each axis neighbouring pairs, and the first axis the fastest ones (0, …, 0, 1, …, 1, 2, …, 2).
            True deals the pairs out one by one (0, 1, 2, 0, 1, 2, …); once a section is full, axis 0 gets its pairs. This isn't
            the layout of channels, which says which two of them form a pair.

    Raises ValueError for a section without pairs, and for interleaved sections that this dealing can't fill. Qwen2-VL has
    contiguous sections, and Qwen3-VL has interleaved ones, which Huang et al. (2026) propose.
    """
    counts = exact(sections).long()
    if counts.min() < 1:
        refuse("sections", "whole numbers >= 1", counts.tolist(), "leave out an axis without pairs")
    axes = torch.arange(len(counts))
    if not interleaved:
        return axes.repeat_interleave(counts)
    pairs = torch.arange(int(counts.sum()))
    dealt = pairs % len(counts)
    of_pair = torch.where(pairs < len(counts) * counts[dealt], dealt, 0)
    if not torch.equal(of_pair.bincount(minlength=len(counts)), counts):
        raise ValueError(
            f"sections={counts.tolist()} can't be interleaved: dealt out one by one, {len(pairs)} pairs are "
            f"{dealt.bincount(minlength=len(counts)).tolist()}, so give no axis but the first a larger section"
        )
    return of_pair


@checked(
    positions="real ... L: give each token a position on each axis, (axes, L) or (axes, batch, L)",
    frequencies="frequencies",
    axes="ids pairs: give each pair an axis, by mrope_axes",
    dtype="dtype",
)
def mrope_tables(
    positions: Positions, frequencies: Tensor, axes: Tensor, *, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """M-RoPE's tables cos(ω_i·m_a) and sin(ω_i·m_a), in which pair i rotates by the position on its own axis a = axes[i].

    Args:
        positions: finite real numbers, in tokens, frames, rows or columns, (axes, L) or (axes, batch, L).
        frequencies: ω in radians per step, float64, (d_head/2,): one spectrum, which the axes share.
        axes: the axis of each pair, (d_head/2,), from `mrope_axes`.
        dtype: as in `rope_tables`.

    The tables have shape (L, d_head/2) or (batch, L, d_head/2). A score depends only on the offsets along the axes. Tokens of
    text have the same position on all axes, which gives `rope_tables`. Raises ValueError for positions of another form, and
    if the numbers of axes or of pairs don't fit. Huang et al. (2026) compare such schemes.
    """
    m = exact(positions)
    if m.ndim not in (2, 3):
        refuse("positions", "of shape (axes, L) or (axes, batch, L)", m, "give each token a position on each axis")
    if not 0 <= axes.min() <= axes.max() < len(m):
        raise ValueError(
            f"axes from {axes.min()} to {axes.max()} don't fit positions of shape {tuple(m.shape)}: the first axis is 0, and "
            "each of them needs positions"
        )
    return _tables(m[axes.to(m.device)].movedim(0, -1), frequencies, dtype)


@checked(rows=POSITIONS, columns=f"{POSITIONS}: give each token a row and a column", frequencies="frequencies", dtype="dtype")
def axial_rope_tables(
    rows: Positions, columns: Positions, frequencies: Tensor, *, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Tables for tokens in a plane: `mrope_tables` in which rows and columns have a whole spectrum each, one after the other.

    The first half of the pairs rotates by the row, the second by the column. rows and columns have the same shape, (L,) or
    (batch, L); frequencies, (d_head/4,), are used for both. Each table has shape `(*rows.shape, d_head/2)`. Positions then
    affect a score only through the two offsets. Raises ValueError if the shapes of rows and columns differ. Heo et al. (2024)
    compare this axial form with a mixed one.
    """
    down, right = exact(rows), exact(columns)
    if down.shape != right.shape:
        raise ValueError(
            f"rows and columns must have the same shape, got {tuple(down.shape)} and {tuple(right.shape)}: give each token "
            "a row and a column"
        )
    pairs = len(frequencies)
    axes = mrope_axes([pairs, pairs], interleaved=False)
    return mrope_tables(torch.stack((down, right)), frequencies.repeat(2), axes, dtype=dtype)


_ROTATED = {
    "x": "float batch heads L 2*pairs: rotations act on pairs of channels, so d_head must be even",
    "cos": "float [batch] L pairs: use rope_tables with the tokens' positions",
    "sin": "float [batch] L pairs: use rope_tables with the tokens' positions",
}


@checked(**_ROTATED, interleaved=INTERLEAVED)
def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """Rotate each pair (a, b) of channels counterclockwise by its angle θ: (a cos θ - b sin θ, a sin θ + b cos θ).

    x is (batch, heads, L, d_head); cos and sin are (L, d_head/2) or (batch, L, d_head/2), from `rope_tables`. Pair i consists
    of channels (2i, 2i+1) if interleaved, and otherwise of (i, i + d_head/2). The result has the shape and dtype of x; the
    arithmetic uses the wider dtype of x and the tables. Raises ValueError for an odd d_head and for shapes that don't fit.
    """
    cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)  # the same for all heads
    wide = x.to(torch.promote_types(x.dtype, cos.dtype))
    a, b = wide.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else wide.chunk(2, dim=-1)
    rotated = [part.to(x.dtype) for part in (a * cos - b * sin, a * sin + b * cos)]
    return torch.stack(rotated, dim=-1).flatten(start_dim=-2) if interleaved else torch.cat(rotated, dim=-1)


@checked(**_ROTATED)
def apply_rope_complex(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`apply_rope` with interleaved=True as a product of complex numbers, (a + ib)·e^{iθ}: the fast implementation.

    If x is contiguous and has the dtype of the tables, the result is the only tensor of its size that is made. The arithmetic
    is in float32 or wider. Use this function in eager mode, because torch.compile generates no code for complex numbers.
    Raises ValueError for an odd d_head and for shapes that don't fit.
    """
    cos, sin = cos.unsqueeze(-3), sin.unsqueeze(-3)
    real = torch.promote_types(torch.promote_types(x.dtype, cos.dtype), torch.float32)  # bfloat16 has no complex form
    pairs = x.to(real).unflatten(-1, (-1, 2))
    if pairs.stride(-1) != 1 or pairs.storage_offset() % 2 or any(stride % 2 for stride in pairs.stride()[:-1]):
        # A complex number is two neighbouring numbers that begin at an even address; contiguous() would keep an odd beginning.
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    rotated = torch.view_as_complex(pairs) * torch.complex(cos.to(real), sin.to(real))
    return torch.view_as_real(rotated).flatten(start_dim=-2).to(x.dtype)


@checked(d_head=_PAIRS, interleaved=INTERLEAVED)
def layout_permutation(d_head: int, *, interleaved: bool) -> Tensor:
    """The order of channels that converts one layout into the other, int64 of shape (d_head,).

    `interleaved` says which layout you want. Both layouts rotate by the same angles: with
    p = layout_permutation(d_head, interleaved=False), `apply_rope(x, cos, sin, interleaved=True)[..., p]` equals
    `apply_rope(x[..., p], cos, sin, interleaved=False)`. Raises ValueError for an odd d_head.
    """
    channels = torch.arange(d_head)
    return (channels.view(2, -1) if interleaved else channels.view(-1, 2)).T.flatten()


@checked(
    weight="float rows d_model: give the rows of all heads",
    num_heads="count: give the model's number of heads, or for grouped keys the number of key heads",
    interleaved=INTERLEAVED,
    rotary_dim=_PAIRS.replace("even", "even?"),
)
def convert_projection(weight: Tensor, num_heads: int, *, interleaved: bool, rotary_dim: int | None = None) -> Tensor:
    """Convert a query or key projection to the other layout: return a copy with the rows of each head permuted.

    Args:
        weight: (num_heads·d_head, d_model).
        interleaved: whether the layout that you want is the interleaved one.
        rotary_dim: how many channels of each head are rotated, by default all of them; the others stay where they are.

    Convert both the query projection and the key projection: their channels are then permuted together, and every score stays
    the same. Raises ValueError if num_heads doesn't divide the rows evenly, or if rotary_dim is odd or larger than d_head.
    """
    d_head, left_over = divmod(len(weight), num_heads)
    if left_over:
        raise ValueError(
            f"weight has {len(weight)} rows, not a multiple of num_heads={num_heads}: give the number of heads it was made for"
        )
    if rotary_dim is None:
        rotary_dim = d_head
    if rotary_dim % 2:
        refuse("rotary_dim", "even", rotary_dim, "rotations act on pairs, so give the number of channels that are rotated")
    if rotary_dim > d_head:
        raise ValueError(
            f"rotary_dim={rotary_dim} channels do not fit into a head of {d_head}: give the number that is rotated"
        )
    order = torch.arange(d_head)
    order[:rotary_dim] = layout_permutation(rotary_dim, interleaved=interleaved)
    return weight.unflatten(0, (num_heads, d_head))[:, order].flatten(end_dim=1)


Q_AND_K = {  # at the second door
    "q": "float batch heads L_query d_head: give each token of each head a row",
    "k": "float batch heads_of_keys L_key d_head: give each token of each head a row",
    "q_positions": "real [batch] L_query: give each token of q a position",
    "k_positions": "real [batch] L_key: give each token of k a position",
}


class RotaryPositions(PositionScheme):
    """A scheme that rotates queries and keys by their positions; values stay as they are.

    Args:
        frequencies: ω in radians per token, float64, `sinusoidal.frequencies(d_head)` or stretched ones (`rope_scaling`). With
            fewer than d_head/2, the rotation is partial: only the first 2·len(frequencies) channels of a head are rotated.
        interleaved: which channels form a pair, as in `apply_rope`. Both layouts train equally well, but trained weights fit
            only the layout that they were trained with.
        attention_factor: multiplies the rotated channels of query and key, so their part of the score is multiplied by its
            square (see `rope_scaling.yarn_attention_factor`).

    Frequencies are float64 constants, neither buffers nor parameters, so casting the model doesn't change them.
    """

    @checked(frequencies="frequencies", interleaved=INTERLEAVED, attention_factor="number > 0: 1 leaves scores as they are")
    def __init__(self, frequencies: Tensor, *, interleaved: bool = True, attention_factor: float = 1.0) -> None:
        super().__init__()
        self.frequencies = frequencies.clone()
        self.interleaved = interleaved
        self.attention_factor = attention_factor
        self._last = LastTables()

    @checked(**Q_AND_K)
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate q and k (batch, heads, L, d_head) by their positions, (L,) or (batch, L); the results keep their shapes."""
        return self._rotate(q, k, q_positions, k_positions, self.frequencies)

    def _rotate(
        self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor, frequencies: Tensor
    ) -> tuple[Tensor, Tensor]:
        of_q = self._tables(q, q_positions, frequencies)
        one_pass = k_positions is q_positions and (k.dtype, k.device) == (q.dtype, q.device)
        of_k = of_q if one_pass else self._tables(k, k_positions, frequencies)
        return self._rotated(q, *of_q), self._rotated(k, *of_k)

    def _tables(self, x: Tensor, positions: Tensor, frequencies: Tensor) -> Tables:
        if 2 * len(frequencies) > x.shape[-1]:
            raise ValueError(
                f"{len(frequencies)} frequencies rotate {2 * len(frequencies)} channels, but a head has {x.shape[-1]}: "
                f"use frequencies({x.shape[-1]}), or fewer for a partial rotation"
            )
        factor, dtype = self.attention_factor, torch.promote_types(x.dtype, torch.float32)

        def make() -> Tables:
            cos, sin = rope_tables(positions, frequencies, dtype=dtype)
            return (cos, sin) if factor == 1 else (cos * factor, sin * factor)

        cos, sin = self._last.get(make, positions, frequencies, factor, dtype)
        return cos.to(x.device), sin.to(x.device)

    def _rotated(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        rotation: Callable[[Tensor, Tensor, Tensor], Tensor] = partial(apply_rope, interleaved=self.interleaved)
        if x.dtype in (torch.bfloat16, torch.float16) and not torch.compiler.is_compiling():
            # In other precisions, these would round differently.
            rotation = apply_rope_complex if self.interleaved else fused_halves
        rotary_dim = 2 * cos.shape[-1]
        rotated = by_heads(rotation, x[..., :rotary_dim], cos, sin)
        return rotated if rotary_dim == x.shape[-1] else torch.cat((rotated, x[..., rotary_dim:]), dim=-1)
