"""Position in the score, by the offset Δ = m - n from key n to query m: Shaw's clipped offsets, T5's buckets.

Offsets are in tokens, positive where the key lies in the past. The papers count n - m; the tables here are theirs reversed.
"""

import math

import torch
from torch import Tensor, nn

from posenc_course._validation import NUM_HEADS, Q_AND_K_POSITIONS, Positions, checked, exact, refuse
from posenc_course.schemes import PositionScheme


@checked(**Q_AND_K_POSITIONS)
def offsets(q_positions: Positions, k_positions: Positions) -> Tensor:
    """Δ = m - n of every query m and key n in float64, (..., L_query) and (..., L_key) -> (..., L_query, L_key)."""
    return exact(q_positions).unsqueeze(-1) - exact(k_positions).unsqueeze(-2)


# ── Shaw: a vector for each offset ───────────────────────────────────────────────────────────────────────────────────────


_WHOLE = {"q_positions": "whole [batch] L_query", "k_positions": "whole [batch] L_key"}


@checked(
    query="float batch heads L_query d_head: give each token of each head a row",
    table="float 2*K+1 d_head: give each offset -K … K a row as wide as query",
    **_WHOLE,
)
def shaw_bias(query: Tensor, table: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """q_m · table[clip(Δ, -K, K) + K] / √d_head, shape (batch, heads, L_query, L_key) (Shaw et al. 2018, equation 5).

    Args:
        query: (batch, heads, L_query, d_head).
        table: (2K+1, d_head): row r is the vector of offset r - K, the same for all heads; offsets beyond K share its ends.
        q_positions, k_positions: whole numbers, (L,) or (batch, L).

    Each query meets the 2K+1 vectors once, and the scores are then gathered: nothing of size L_query·L_key·d_head is ever made.
    """
    reach = len(table) // 2  # K
    rows = offsets(q_positions, k_positions).clamp(-reach, reach).long() + reach  # (L_query, L_key), or with the batch first
    products = query @ table.to(query).T / math.sqrt(query.shape[-1])  # (batch, heads, L_query, 2K+1)
    rows = rows if rows.ndim == 2 else rows.unsqueeze(1)  # the same for all heads
    return products.gather(-1, rows.expand(*products.shape[:-1], rows.shape[-1]))


class ShawPositions(PositionScheme):
    """Adds a learned vector per clipped offset to the keys, one table for all heads and layers.

    The paper's other half, vectors added to the values, uses no door and is left out; the paper measures no loss without it.
    Offsets beyond `max_offset` (the paper's k, here K) are told apart no further.
    """

    @checked(
        d_head="count: it is the width of one head, d_model / num_heads",
        max_offset="count: it is the farthest offset told apart, e.g. 16",
    )
    def __init__(self, d_head: int, max_offset: int) -> None:
        super().__init__()
        self.d_head = d_head
        self.table = nn.Parameter(torch.randn(2 * max_offset + 1, d_head) / math.sqrt(d_head))

    @checked(q="float batch heads L_query {self.d_head}: build the scheme with the model's d_head", **Q_AND_K_POSITIONS)
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """q (batch, heads, L_query, d_head) -> (batch, heads, L_query, L_key)."""
        return shaw_bias(q, self.table, q_positions, k_positions)


# ── T5: a number for each bucket of offsets ──────────────────────────────────────────────────────────────────────────────


_NUM_BUCKETS, _MAX_DISTANCE = "count >= 2: T5 has 32", "count: T5 has 128"


@checked(offsets="integer ...", num_buckets=_NUM_BUCKETS, max_distance=_MAX_DISTANCE)
def t5_buckets(offsets: Positions, num_buckets: int = 32, max_distance: int = 128, *, causal: bool) -> Tensor:
    """The bucket of each offset Δ, int64 of the offsets' shape, exactly as T5 defines it (Raffel et al. 2020, section 2.1).

    Half of the buckets hold one distance each, 0, 1, 2, …; the others grow geometrically up to `max_distance`, and the last one
    holds all that is farther. Causal: keys in the future share bucket 0. Not causal: the past gets the first num_buckets/2
    buckets, the future (Δ < 0) the others in the same way.

    Offsets are whole numbers of any shape. Computed in integers: logarithms in floating point misplace single distances at the
    edges for some settings. Raises ValueError for num_buckets and max_distance that leave no room.
    """
    return _buckets(exact(offsets), num_buckets, max_distance, causal=causal)


def _buckets(delta: Tensor, num_buckets: int, max_distance: int, *, causal: bool) -> Tensor:
    edges = _t5_edges(num_buckets, max_distance, causal=causal).to(delta.device)
    distance = delta if causal else delta.abs()  # what is below all edges goes into bucket 0
    buckets = torch.bucketize(distance, edges, right=True)
    return buckets if causal else buckets + (delta < 0) * (num_buckets // 2)


def _t5_edges(num_buckets: int, max_distance: int, *, causal: bool) -> Tensor:
    """The smallest distance of each bucket but the first."""
    if num_buckets < 2 or (not causal and (num_buckets < 4 or num_buckets % 2)):
        refuse("num_buckets", "2 or more, for past and future 4 or more and even", num_buckets, "T5 has 32")
    one_sided = num_buckets if causal else num_buckets // 2
    single = one_sided // 2  # so many distances have a bucket of their own
    steps = one_sided - single
    if max_distance <= single:
        refuse("max_distance", f"more than {single}", max_distance, f"{single} buckets hold one distance each; T5 has 128")
    # Bucket single + j begins at the first whole number not below single·(max_distance/single)^(j/steps). Floating point finds
    # it, except where it may have rounded across a whole number: there both sides to the power of steps decide.
    edges = [single * (max_distance / single) ** (j / steps) for j in range(1, steps)]
    wide = [
        math.ceil(edge)
        if abs(edge - round(edge)) > 1e-12 * edge
        else _root_rounded_up(max_distance**j * single ** (steps - j), steps)
        for j, edge in enumerate(edges, start=1)
    ]
    return torch.tensor([*range(1, single + 1), *wide], dtype=torch.float64)


def _root_rounded_up(number: int, degree: int) -> int:
    """The smallest whole n with n^degree ≥ number, exactly."""
    low, high = 0, 1 << (number.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**degree >= number else (middle + 1, high)
    return low


@checked(table="float num_buckets heads: give each bucket a row", max_distance=_MAX_DISTANCE, **_WHOLE)
def t5_bias(table: Tensor, q_positions: Tensor, k_positions: Tensor, max_distance: int = 128, *, causal: bool) -> Tensor:
    """table[bucket(Δ)] of every query and key: table (num_buckets, heads) -> (1 or batch, heads, L_query, L_key).

    Positions are whole numbers, (L,) or (batch, L). Where they are consecutive, as in one pass, all scores of one diagonal are
    equal, and only the L_query + L_key - 1 offsets that occur are sorted into buckets.
    """
    queries, keys = exact(q_positions), exact(k_positions)
    if _consecutive(queries) and _consecutive(keys):
        first = queries[0] - keys[-1]  # the smallest offset
        occurring = first + torch.arange(queries.numel() + keys.numel() - 1, device=first.device)
        by_offset = table[_buckets(occurring, len(table), max_distance, causal=causal)].T  # (heads, offsets)
        # Row m reads the offsets from m - n_last to m - n_first; keys count the other way.
        return by_offset.unfold(-1, keys.numel(), 1).flip(-1).unsqueeze(0)
    buckets = _buckets(offsets(queries, keys), len(table), max_distance, causal=causal)
    return table[buckets].movedim(-1, -3).reshape(-1, table.shape[1], *buckets.shape[-2:])


def _consecutive(positions: Tensor) -> bool:
    return positions.ndim == 1 and bool((positions.diff() == 1).all())


class T5Positions(PositionScheme):
    """Adds a learned number per head and bucket of offsets to the score, one table for all layers.

    `causal` as in `t5_buckets`: True in a decoder. The numbers start as N(0, 0.02²): what a distance is worth is learned.
    """

    @checked(num_heads=NUM_HEADS, num_buckets=_NUM_BUCKETS, max_distance=_MAX_DISTANCE)
    def __init__(self, num_heads: int, num_buckets: int = 32, max_distance: int = 128, *, causal: bool) -> None:
        super().__init__()
        _t5_edges(num_buckets, max_distance, causal=causal)  # raises now what would else come at the first call
        self.num_heads = num_heads
        self.max_distance = max_distance
        self.causal = causal
        self.table = nn.Parameter(0.02 * torch.randn(num_buckets, num_heads))

    @checked(q="float batch {self.num_heads} L_query d_head: build the scheme with the model's num_heads", **Q_AND_K_POSITIONS)
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """q (batch, heads, L_query, d_head) -> (1 or batch, heads, L_query, L_key)."""
        return t5_bias(self.table, q_positions, k_positions, self.max_distance, causal=self.causal).to(q)
