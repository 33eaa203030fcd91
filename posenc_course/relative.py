"""Positions in the score, as offsets Δ = m - n from key n to query m: Shaw's clipped offsets, T5's buckets, and windows.

Offsets are in tokens, and positive if the key lies in the past. The papers use n - m, so the tables here are in reverse order.
"""

import math

import torch
from torch import Tensor, nn

from posenc_course._validation import CAUSAL, NUM_HEADS, Q_AND_K_POSITIONS, Positions, checked, exact, refuse
from posenc_course.schemes import PositionScheme


@checked(**Q_AND_K_POSITIONS)
def offsets(q_positions: Positions, k_positions: Positions) -> Tensor:
    """The offset Δ = m - n for every query m and key n, float64, shape (L_query, L_key) or (batch, L_query, L_key).

    Positions are in tokens, (L,) or (batch, L). Raises ValueError for positions that are not finite real numbers.
    """
    return exact(q_positions).unsqueeze(-1) - exact(k_positions).unsqueeze(-2)


# ── Shaw: a vector for each offset ───────────────────────────────────────────────────────────────────────────────────────


_WHOLE = {"q_positions": "whole [batch] L_query", "k_positions": "whole [batch] L_key"}


@checked(
    query="float batch heads L_query d_head: give each token of each head a row",
    table="float 2*K+1 d_head: give each offset -K … K a row as wide as query",
    **_WHOLE,
)
def shaw_bias(query: Tensor, table: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """The bias q_m·table[clip(Δ, -K, K) + K]/√d_head, (batch, heads, L_query, L_key) (Shaw et al. 2018, equation 5).

    Args:
        query: (batch, heads, L_query, d_head).
        table: (2K+1, d_head). Row r is the vector for offset r - K, the same for all heads; the first and the last row are
            also used for all offsets beyond ±K.
        q_positions, k_positions: whole numbers, (L,) or (batch, L).

    Each query is multiplied by the 2K+1 vectors once, and the results are then gathered, so there is never a tensor of size
    L_query·L_key·d_head. Raises ValueError for shapes that don't fit and for positions that are not whole numbers.
    """
    reach = len(table) // 2  # K
    rows = offsets(q_positions, k_positions).clamp(-reach, reach).long() + reach  # (L_query, L_key), or with the batch first
    products = query @ table.to(query).T / math.sqrt(query.shape[-1])  # (batch, heads, L_query, 2K+1)
    rows = rows if rows.ndim == 2 else rows.unsqueeze(1)  # the same for all heads
    return products.gather(-1, rows.expand(*products.shape[:-1], rows.shape[-1]))


class ShawPositions(PositionScheme):
    """A scheme that adds a learned vector for each clipped offset to the keys, with one table for all heads and layers.

    The paper also adds vectors to the values. They use none of the three doors and are left out; the paper measures no loss
    without them. From `max_offset` on (k in the paper, K here), all offsets in the past share one vector, and all offsets in
    the future share another.
    """

    @checked(
        d_head="count: it is the width of one head, d_model / num_heads",
        max_offset="count: it is the largest offset with a vector of its own, e.g. 16",
    )
    def __init__(self, d_head: int, max_offset: int) -> None:
        super().__init__()
        self.d_head, self.max_offset = d_head, max_offset
        self.table = nn.Parameter(torch.randn(2 * max_offset + 1, d_head) / math.sqrt(d_head))

    @checked(q="float batch heads L_query {self.d_head}: build the scheme with the model's d_head", **Q_AND_K_POSITIONS)
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The bias for q (batch, heads, L_query, d_head), shape (batch, heads, L_query, L_key)."""
        return shaw_bias(q, self.table, q_positions, k_positions)


# ── T5: a number for each bucket of offsets ──────────────────────────────────────────────────────────────────────────────


_NUM_BUCKETS, _MAX_DISTANCE = "count >= 2: T5 uses 32", "count: T5 uses 128"


@checked(offsets="integer ...", num_buckets=_NUM_BUCKETS, max_distance=_MAX_DISTANCE, causal=CAUSAL)
def t5_buckets(offsets: Positions, num_buckets: int = 32, max_distance: int = 128, *, causal: bool) -> Tensor:
    """The bucket of each offset Δ, int64 in the shape of offsets, exactly as T5 defines it (Raffel et al. 2020, section 2.1).

    Half of the buckets hold one distance each, 0, 1, 2, …; the others grow geometrically up to `max_distance`, and the last one
    also holds all larger distances. If `causal`, all keys in the future share bucket 0. Otherwise, the first num_buckets/2
    buckets are for Δ ≥ 0, and the others divide the future (Δ < 0) in the same way.

    Offsets are whole numbers in an array of any shape. The edges of the buckets are exact: with floating-point logarithms, some
    settings put a distance at an edge into the wrong bucket. Raises ValueError if num_buckets or max_distance is too small.
    """
    return _buckets(exact(offsets), num_buckets, max_distance, causal=causal)


def _buckets(delta: Tensor, num_buckets: int, max_distance: int, *, causal: bool) -> Tensor:
    edges = _t5_edges(num_buckets, max_distance, causal=causal).to(delta.device)
    distance = delta if causal else delta.abs()  # a distance below all edges goes into bucket 0
    buckets = torch.bucketize(distance, edges, right=True)
    return buckets if causal else buckets + (delta < 0) * (num_buckets // 2)


def _t5_edges(num_buckets: int, max_distance: int, *, causal: bool) -> Tensor:
    """The smallest distance of each bucket except the first."""
    if num_buckets < 2 or (not causal and (num_buckets < 4 or num_buckets % 2)):
        refuse("num_buckets", "2 or more if causal, and otherwise even and 4 or more", num_buckets, "T5 uses 32")
    one_sided = num_buckets if causal else num_buckets // 2
    single = one_sided // 2  # how many distances have a bucket of their own
    steps = one_sided - single
    if max_distance <= single:
        refuse("max_distance", f"more than {single}", max_distance, f"{single} buckets hold one distance each; T5 uses 128")
    # Bucket single + j begins at the first whole number not below single·(max_distance/single)^(j/steps). Floating point finds
    # it, unless it may have rounded across a whole number: then we compare both sides to the power of `steps`, in integers.
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


@checked(table="float num_buckets heads: give each bucket a row", max_distance=_MAX_DISTANCE, causal=CAUSAL, **_WHOLE)
def t5_bias(table: Tensor, q_positions: Tensor, k_positions: Tensor, max_distance: int = 128, *, causal: bool) -> Tensor:
    """The bias table[bucket(Δ)] for every query and key, shape (1 or batch, heads, L_query, L_key).

    table is (num_buckets, heads), and positions are whole numbers, (L,) or (batch, L). If they are consecutive, as in a single
    pass, the bias is the same along each diagonal, and only the L_query + L_key - 1 different offsets are sorted into buckets.
    Raises ValueError for positions that are not whole numbers and for too few buckets or too small a max_distance.
    """
    queries, keys = exact(q_positions), exact(k_positions)
    if _consecutive(queries) and _consecutive(keys):
        first = queries[0] - keys[-1]  # the smallest offset
        occurring = first + torch.arange(queries.numel() + keys.numel() - 1, device=first.device)
        by_offset = table[_buckets(occurring, len(table), max_distance, causal=causal)].T  # (heads, offsets)
        # Row m holds the offsets from m - n_last to m - n_first, in the reverse order of the keys.
        return by_offset.unfold(-1, keys.numel(), 1).flip(-1).unsqueeze(0)
    buckets = _buckets(offsets(queries, keys), len(table), max_distance, causal=causal)
    return table[buckets].movedim(-1, -3).reshape(-1, table.shape[1], *buckets.shape[-2:])


def _consecutive(positions: Tensor) -> bool:
    return positions.ndim == 1 and bool((positions.diff() == 1).all())


class T5Positions(PositionScheme):
    """A scheme that adds a learned number for each head and bucket of offsets to the score, with one table for all layers.

    `causal` is that of `t5_buckets`: use True in a decoder. The numbers are initialized from N(0, 0.02²), so what a distance is
    worth has to be learned. Raises ValueError if num_buckets or max_distance is too small.
    """

    @checked(num_heads=NUM_HEADS, num_buckets=_NUM_BUCKETS, max_distance=_MAX_DISTANCE, causal=CAUSAL)
    def __init__(self, num_heads: int, num_buckets: int = 32, max_distance: int = 128, *, causal: bool) -> None:
        super().__init__()
        _t5_edges(num_buckets, max_distance, causal=causal)  # raises an error now that would otherwise come at the first call
        self.num_heads, self.num_buckets = num_heads, num_buckets
        self.max_distance = max_distance
        self.causal = causal
        self.table = nn.Parameter(0.02 * torch.randn(num_buckets, num_heads))

    @checked(q="float batch {self.num_heads} L_query d_head: build the scheme with the model's num_heads", **Q_AND_K_POSITIONS)
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The bias for q (batch, heads, L_query, d_head), shape (1 or batch, heads, L_query, L_key)."""
        return t5_bias(self.table, q_positions, k_positions, self.max_distance, causal=self.causal).to(q)


# ── A window: nothing beyond a distance ──────────────────────────────────────────────────────────────────────────────────


class WindowedPositions(PositionScheme):
    """Another scheme, combined with a mask for all keys that are `window` or more tokens away on either side.

    The other scheme must count positions in tokens, so it may not override `locate`; otherwise, a ValueError is raised.
    """

    @checked(scheme="PositionScheme", window="count: it is how many keys a query sees in the past, its own included")
    def __init__(self, scheme: PositionScheme, window: int) -> None:
        super().__init__()
        if type(scheme).locate is not PositionScheme.locate:
            refuse("scheme", "one that counts tokens", scheme, "positions computed from tokens don't say how far away a key is")
        self.scheme = scheme
        self.window = window

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Do what the other scheme does at the first door."""
        return self.scheme.embed(x, positions)

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Do what the other scheme does at the second door."""
        return self.scheme.rotate(q, k, q_positions, k_positions)

    @checked(q="float batch heads L_query d_head: give each token of each head a row", **Q_AND_K_POSITIONS)
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The other scheme's bias, with -∞ for keys that are too far away: (1 or batch, heads or 1, L_query, L_key)."""
        far = offsets(q_positions, k_positions).abs() >= self.window
        far = far.view(-1, 1, *far.shape[-2:])  # (1 or batch, 1, L_query, L_key)
        bias = self.scheme.bias(q, q_positions, k_positions)
        bias = q.new_zeros(far.shape) if bias is None else bias
        return bias.masked_fill(far, -math.inf)
