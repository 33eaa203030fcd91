"""Rotary position embedding: query and key are turned, one pair of channels at a time (Su et al. 2024).

Pair i of a head turns by ω_i radians per token; the score of query and key then depends on their offset alone. Which channels
make a pair is a matter of layout: neighbours (interleaved) or halves (channel i with channel i + d_head/2).
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from posenc_course._validation import POSITIONS, Positions, checked, exact, refuse
from posenc_course.schemes import PositionScheme


@checked(positions=POSITIONS, frequencies="frequencies", dtype="dtype")
def rope_tables(positions: Positions, frequencies: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """cos(ω_i·m) and sin(ω_i·m), each of shape `(*positions.shape, d_head/2)`.

    Args:
        positions: finite real numbers, in tokens, (L,) or (batch, L).
        frequencies: ω in radians per token, (d_head/2,): `sinusoidal.frequencies(d_head)`, or stretched by `rope_scaling`.
        dtype: of the result; angles are computed in float64 and cast last. float32 also serves queries in bfloat16; take
            float64 for queries in float64.
    """
    m = exact(positions)
    angles = m.unsqueeze(-1) * frequencies.to(m.device)  # (..., L, d_head/2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


@checked(rows=POSITIONS, columns=f"{POSITIONS}: give each token a row and a column", frequencies="frequencies", dtype="dtype")
def axial_rope_tables(
    rows: Positions, columns: Positions, frequencies: Tensor, *, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Tables for tokens in a plane: the first half of the pairs turns by the row, the second by the column.

    rows and columns of one shape, (L,) or (batch, L); frequencies (d_head/4,), used for both. Each table has shape
    `(*rows.shape, d_head/2)`; scores then depend on the two offsets alone.
    """
    by_row, by_column = (rope_tables(positions, frequencies, dtype=dtype) for positions in (rows, columns))
    if by_row[0].shape != by_column[0].shape:
        raise ValueError(
            f"rows and columns must have one shape, got tables of shape {tuple(by_row[0].shape)} and "
            f"{tuple(by_column[0].shape)}: give each token one of each"
        )
    cos, sin = (torch.cat(pair, dim=-1) for pair in zip(by_row, by_column, strict=True))
    return cos, sin


_TURNED = {
    "x": "float batch heads L 2*pairs: rotations take channels in pairs, so an odd d_head lacks one",
    "cos": "float [batch] L pairs: take rope_tables of the tokens' positions",
    "sin": "float [batch] L pairs: take rope_tables of the tokens' positions",
}


@checked(**_TURNED)
def apply_rope(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """Turn each pair (a, b) of channels by its angle θ: (a cos θ - b sin θ, a sin θ + b cos θ), counterclockwise.

    x (batch, heads, L, d_head); cos and sin (L, d_head/2) or (batch, L, d_head/2), from `rope_tables`. Pairs are channels
    (2i, 2i+1) if interleaved, else (i, i + d_head/2). Keeps the dtype of x; the arithmetic is in the wider one of x and tables.
    Raises ValueError for an odd d_head and for shapes that do not fit.
    """
    cos, sin = _per_head(cos), _per_head(sin)
    wide = x.to(torch.promote_types(x.dtype, cos.dtype))
    a, b = wide.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else wide.chunk(2, dim=-1)
    turned = [part.to(x.dtype) for part in (a * cos - b * sin, a * sin + b * cos)]
    return torch.stack(turned, dim=-1).flatten(start_dim=-2) if interleaved else torch.cat(turned, dim=-1)


@checked(**_TURNED)
def apply_rope_complex(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`apply_rope` with interleaved=True as one product of complex numbers, (a + ib)·e^{iθ}: the fast form.

    It makes no tensor of the size of x but the result, and computes in float32 at least. For eager mode: torch.compile makes no
    code for complex numbers.
    """
    cos, sin = _per_head(cos), _per_head(sin)
    real = torch.promote_types(torch.promote_types(x.dtype, cos.dtype), torch.float32)  # no complex numbers of two bfloat16
    pairs = x.to(real).unflatten(-1, (-1, 2))
    if pairs.stride(-1) != 1 or pairs.storage_offset() % 2 or any(stride % 2 for stride in pairs.stride()[:-1]):
        # A complex number is two neighbours in memory that begin at an even place; contiguous() would leave an odd beginning.
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    turned = torch.view_as_complex(pairs) * torch.complex(cos.to(real), sin.to(real))
    return torch.view_as_real(turned).flatten(start_dim=-2).to(x.dtype)


_PAIRS = "even >= 2: rotations take channels in pairs, so add one or leave one out"


@checked(d_head=_PAIRS)
def layout_permutation(d_head: int, *, interleaved: bool) -> Tensor:
    """The order of channels that brings one layout into the other, int64 of shape (d_head,).

    `interleaved` is the layout wanted. Both turn alike: with p = layout_permutation(d_head, interleaved=False),
    `apply_rope(x, cos, sin, interleaved=True)[..., p]` is `apply_rope(x[..., p], cos, sin, interleaved=False)`.
    """
    channels = torch.arange(d_head)
    return (channels.view(2, -1) if interleaved else channels.view(-1, 2)).T.flatten()


@checked(
    weight="float rows d_model: give all heads' rows",
    num_heads="count: give the model's; for grouped keys, that of the keys",
    rotary_dim=_PAIRS.replace("even", "even?"),
)
def convert_projection(weight: Tensor, num_heads: int, *, interleaved: bool, rotary_dim: int | None = None) -> Tensor:
    """A query or key projection trained for one layout, made for the other: the rows of each head permuted, as a copy.

    Args:
        weight: (num_heads·d_head, d_model).
        interleaved: the layout wanted.
        rotary_dim: how many channels of each head are turned, by default all; the others keep their place.

    Convert the query's projection and the key's: both change places together, and every score stays.
    """
    d_head, left_over = divmod(len(weight), num_heads)
    if left_over:
        raise ValueError(
            f"weight of {len(weight)} rows is not split evenly by num_heads={num_heads}: give the heads it was made for"
        )
    if rotary_dim is None:
        rotary_dim = d_head
    if rotary_dim % 2:
        refuse("rotary_dim", "even", rotary_dim, "rotations take channels in pairs, so give as many as are rotated")
    if rotary_dim > d_head:
        raise ValueError(f"rotary_dim={rotary_dim} channels do not fit into a head of {d_head}: give as many as are turned")
    order = torch.arange(d_head)
    order[:rotary_dim] = layout_permutation(rotary_dim, interleaved=interleaved)
    return weight.unflatten(0, (num_heads, d_head))[:, order].flatten(end_dim=1)


Q_AND_K = {  # at the second door
    "q": "float batch heads L_query d_head: give each token of each head a row",
    "k": "float batch heads_of_keys L_key d_head: give each token of each head a row",
    "q_positions": "real [batch] L_query: give each token of q a position",
    "k_positions": "real [batch] L_key: give each token of k a position",
}


class _Made(NamedTuple):
    """Tables and what they were made from."""

    positions: Tensor
    frequencies: Tensor
    factor: float
    cos: Tensor
    sin: Tensor

    def serves(self, positions: Tensor, frequencies: Tensor, factor: float, dtype: torch.dtype) -> bool:
        same = (self.positions.dtype, self.factor, self.cos.dtype) == (positions.dtype, factor, dtype)
        return same and torch.equal(self.positions, positions) and torch.equal(self.frequencies, frequencies)


class RotaryPositions(PositionScheme):
    """Turns queries and keys by their positions; values stay as they are.

    Args:
        frequencies: ω in radians per token, `sinusoidal.frequencies(d_head)` or stretched ones (`rope_scaling`). Fewer than
            d_head/2 are a partial rotation: the first 2·len(frequencies) channels of each head turn, the others never.
        interleaved: which channels make a pair, as in `apply_rope`. Both train alike; weights fit the one they were made for.
        attention_factor: multiplies the turned channels of query and key, so that their part of the score grows by its square
            (`rope_scaling.yarn_attention_factor`).

    Frequencies are constants in float64, no buffer and no parameter: a cast of the model leaves them as they are.
    """

    @checked(frequencies="frequencies", attention_factor="number > 0: 1 leaves scores as they are")
    def __init__(self, frequencies: Tensor, *, interleaved: bool = True, attention_factor: float = 1.0) -> None:
        super().__init__()
        self.frequencies = frequencies.clone()
        self.interleaved = interleaved
        self.attention_factor = attention_factor
        self._last: _Made | None = None  # all layers of a model ask for the same tables

    @checked(**Q_AND_K)
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """q and k (batch, heads, L, d_head) at positions (L,) or (batch, L) -> the same shapes."""
        return self._rotate(q, k, q_positions, k_positions, self.frequencies)

    def _rotate(
        self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor, frequencies: Tensor
    ) -> tuple[Tensor, Tensor]:
        of_q = self._tables(q, q_positions, frequencies)
        one_pass = k_positions is q_positions and (k.dtype, k.device) == (q.dtype, q.device)
        of_k = of_q if one_pass else self._tables(k, k_positions, frequencies)
        return self._turn(q, *of_q), self._turn(k, *of_k)

    def _tables(self, x: Tensor, positions: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
        if 2 * len(frequencies) > x.shape[-1]:
            raise ValueError(
                f"{len(frequencies)} frequencies turn {2 * len(frequencies)} channels, and a head has {x.shape[-1]}: "
                f"take frequencies({x.shape[-1]}), or fewer for a partial rotation"
            )
        dtype = torch.promote_types(x.dtype, torch.float32)
        keep = x.is_cpu and positions.is_cpu and not torch.compiler.is_compiling()  # elsewhere a comparison takes longer
        keep &= not positions.requires_grad and not frequencies.requires_grad
        if keep and self._last is not None and self._last.serves(positions, frequencies, self.attention_factor, dtype):
            return self._last.cos, self._last.sin
        with torch.inference_mode(False) if keep else nullcontext():  # what is kept may serve a gradient later
            cos, sin = rope_tables(positions, frequencies, dtype=dtype)
            if self.attention_factor != 1:
                cos, sin = cos * self.attention_factor, sin * self.attention_factor
        if keep:
            self._last = _Made(positions.clone(), frequencies.clone(), self.attention_factor, cos, sin)
        return cos.to(x.device), sin.to(x.device)

    def _turn(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        turn: Callable[[Tensor, Tensor, Tensor], Tensor] = partial(apply_rope, interleaved=self.interleaved)
        if x.dtype in (torch.bfloat16, torch.float16) and not torch.compiler.is_compiling():
            turn = apply_rope_complex if self.interleaved else _fused_halves  # in other precisions they would round differently
        rotary_dim = 2 * cos.shape[-1]
        turned = _by_heads(turn, x[..., :rotary_dim], cos, sin)
        return turned if rotary_dim == x.shape[-1] else torch.cat((turned, x[..., rotary_dim:]), dim=-1)


def _fused_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`apply_rope` with interleaved=False, in few passes over memory: the second products are added where the first stand."""
    cos, sin = _per_head(cos), _per_head(sin)
    wide = x.to(cos.dtype)
    turned = wide * torch.cat((cos, cos), dim=-1)
    half = cos.shape[-1]
    turned[..., :half].addcmul_(wide[..., half:], sin, value=-1)
    turned[..., half:].addcmul_(wide[..., :half], sin)
    return turned.to(x.dtype)


def _by_heads(turn: Callable[[Tensor, Tensor, Tensor], Tensor], x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The rotation of a few heads at a time, so that a processor's cache holds what comes between x and the result."""
    few = max(1, 2**18 * x.shape[1] // x.numel())
    if few >= x.shape[1] or x.device.type != "cpu" or torch.compiler.is_compiling():
        return turn(x, cos, sin)
    return torch.cat([turn(heads, cos, sin) for heads in x.split(few, dim=1)], dim=1)


def _per_head(table: Tensor) -> Tensor:
    return table if table.ndim == 2 else table.unsqueeze(1)  # the same for all heads
