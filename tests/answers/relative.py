"""Answers to the exercises on position in the score, in the chapter and in the assignment."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course.relative import t5_buckets
from tests.answers import blind

Answer = Callable[..., Any]
BucketOf = Callable[[int], int]


# ── right ones ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_logarithm(
    offset: int,
    num_buckets: int,
    max_distance: int,
    *,
    log: Answer = math.log,
    place: Answer = int,
    start: Answer = lambda single: single,
    wide: Answer = lambda side, single: side - single,
    most: Answer = min,
    first: Answer = lambda single: single,
) -> Any:
    """T5's bucket as the solution writes it, with one part to be exchanged."""
    side = num_buckets // 2
    single, bucket = side // 2, abs(offset)
    if bucket >= single:
        share = log(bucket / start(single)) / log(max_distance / start(single))
        bucket = most(side - 1, first(single) + place(share * wide(side, single)))
    return bucket + (side if offset < 0 else 0)


def exact_bucket(offset: int, num_buckets: int, max_distance: int, *, causal: bool = False) -> int:
    return int(t5_buckets([offset], num_buckets, max_distance, causal=causal))


def numpy_bucket(offset: int, num_buckets: int, max_distance: int) -> np.ndarray:
    side, single, distance = num_buckets // 2, num_buckets // 4, np.abs(offset)
    wide = single + np.floor(np.log(np.maximum(distance, 1) / single) / np.log(max_distance / single) * (side - single))
    return np.where(distance < single, distance, np.minimum(wide, side - 1)) + side * (offset < 0)


def torch_bucket(offset: int, num_buckets: int, max_distance: int) -> Tensor:
    """As the libraries write it, in 32 bits, for the other sign."""
    ahead, side, single = -torch.tensor(offset), num_buckets // 2, num_buckets // 4
    distance = ahead.abs()
    wide = single + (torch.log(distance.float() / single) / math.log(max_distance / single) * (side - single)).long()
    return (ahead > 0) * side + torch.where(distance < single, distance, wide.clamp(max=side - 1))


def counted_bucket(offset: int, num_buckets: int, max_distance: int) -> int:
    """By whole numbers: how many edges lie at or below the distance."""
    side, single, distance = num_buckets // 2, num_buckets // 4, abs(offset)
    steps = side - single
    wide = sum(distance**steps >= single ** (steps - j) * max_distance**j for j in range(1, steps))
    return min(distance, single) + (wide if distance > single else 0) + side * (offset < 0)


def toeplitz_by_loops(by_offset: Tensor) -> list[list[float]]:
    length = (len(by_offset) + 1) // 2
    return [[by_offset[m - n + length - 1].item() for n in range(length)] for m in range(length)]


def toeplitz_in_numpy(by_offset: Tensor) -> Any:
    """Each row is the list backwards, one place further on."""
    length = (len(by_offset) + 1) // 2
    return np.lib.stride_tricks.sliding_window_view(by_offset.numpy(), length)[:, ::-1]


def toeplitz_by_diagonals(by_offset: Tensor) -> Tensor:
    length = (len(by_offset) + 1) // 2
    return sum(
        (
            torch.diag(number.repeat(length - abs(k)), -k)
            for k, number in zip(range(1 - length, length), by_offset, strict=True)
        ),
        torch.zeros(length, length),
    )


def looked_up(b: Tensor, place: Callable[[Tensor, Tensor, int], Tensor]) -> Tensor:
    at = torch.arange((len(b) + 1) // 2)
    return b[place(at.unsqueeze(1), at.unsqueeze(0), len(at))]


def used_by_pairs(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Tensor:
    used = torch.zeros(rows, dtype=torch.bool)
    for m in range(length):
        for n in range(length):
            if n <= m or not causal:
                used[bucket_of(m - n)] = True
    return used


def used_by_offsets(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> list[bool]:
    found = {int(bucket_of(offset)) for offset in range(0 if causal else 1 - length, length)}
    return [row in found for row in range(rows)]


def used_in_numpy(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Any:
    at = np.arange(length)
    table = np.vectorize(bucket_of)(at[:, None] - at)
    return np.isin(np.arange(rows), table[np.tri(length, dtype=bool)] if causal else table)


def needed_by_logarithms(share: float, length: int) -> float:
    return math.log(share) - math.log(1 - share) + math.log(length - 1)


def needed_by_halving(share: float, length: int) -> float:
    low, high = -50.0, 50.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if math.exp(middle) / (math.exp(middle) + length - 1) > share else (middle, high)
    return low


def needed_in_torch(share: float, length: int) -> Tensor:
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + np.log(length - 1)


def rows_of(weights: Tensor, table: Tensor) -> Tensor:
    at = torch.arange(len(weights))
    reach = len(table) // 2
    return (at[:, None] - at).clamp(-reach, reach) + reach


def by_scatter(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    held = torch.zeros(len(weights), len(table), dtype=weights.dtype).scatter_add(1, rows_of(weights, table), weights)
    return weights @ values + held @ table


def by_rows(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    out, rows = weights @ values, rows_of(weights, table)
    for r in range(len(table)):
        out = out + (weights * (rows == r)).sum(dim=1, keepdim=True) * table[r]
    return out


def by_queries(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    rows = rows_of(weights, table)
    return torch.stack([weights[m] @ (values + table[rows[m]]) for m in range(len(weights))])


def by_pairs(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    length, reach = len(weights), len(table) // 2
    out = torch.zeros_like(values)
    for m in range(length):
        for n in range(length):
            out[m] += weights[m, n] * (values[n] + table[max(-reach, min(reach, m - n)) + reach])
    return out


def in_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Any:
    w, reach = weights.numpy(), len(table) // 2
    held = np.zeros((len(w), len(table)))
    for r in range(len(table)):
        offset = r - reach
        if offset == reach:
            held[:, r] = np.tril(w, -reach).sum(axis=1)
        elif offset == -reach:
            held[:, r] = np.triu(w, reach).sum(axis=1)
        else:
            one = np.diag(w, -offset)
            held[max(offset, 0) : max(offset, 0) + len(one), r] = one
    return w @ values.numpy() + held @ table.numpy()


def by_skewing(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """The row of weights of query m, moved m places, so that a column is an offset; then the ends are gathered."""
    length, reach = len(weights), len(table) // 2
    by_offset = F.pad(weights.flip(1), (0, length)).flatten()[:-length].view(length, 2 * length - 1)  # column: Δ + L - 1
    if reach > length - 1:
        held = F.pad(by_offset, (reach - length + 1, reach - length + 1))
    else:
        low, high = length - 1 - reach, length - 1 + reach
        ends = by_offset[:, : low + 1].sum(1, keepdim=True), by_offset[:, high:].sum(1, keepdim=True)
        held = torch.cat((ends[0], by_offset[:, low + 1 : high], ends[1]), dim=1)
    return weights @ values + held @ table


def in_lists(weights: Tensor, values: Tensor, table: Tensor) -> list[list[float]]:
    w, v, t, reach = weights.tolist(), values.tolist(), table.tolist(), len(table) // 2
    received = []
    for m in range(len(w)):
        row = [0.0] * len(v[0])
        for n in range(len(w)):
            vector = t[max(-reach, min(reach, m - n)) + reach]
            row = [so_far + w[m][n] * (v[n][c] + vector[c]) for c, so_far in enumerate(row)]
        received.append(row)
    return received


def by_masks(weights: Tensor, values: Tensor, table: Tensor) -> Any:
    """2K + 1 arrays of L² at once, none of which is too large."""
    rows = rows_of(weights, table).numpy()
    parts = [weights.numpy() * (rows == r) for r in range(len(table))]
    return weights.numpy() @ values.numpy() + np.stack([part.sum(axis=1) for part in parts], axis=1) @ table.numpy()


def toeplitz_unfold(by_offset: Tensor) -> Tensor:
    """Right: windows of the reversed list, read upwards."""
    return by_offset.flip(0).unfold(0, (len(by_offset) + 1) // 2, 1).flip(0)


def toeplitz_diagonals(by_offset: Tensor) -> Tensor:
    """Right: one diagonal after the other."""
    length = len(by_offset) // 2 + 1
    table = torch.zeros(length, length, dtype=by_offset.dtype)
    for place, number in enumerate(by_offset):
        table.diagonal(length - 1 - place).fill_(number)
    return table


def toeplitz_list(by_offset: Tensor) -> list[list[float]]:
    """Right, if a list of lists is a table."""
    last = len(by_offset) // 2
    return [[float(by_offset[m - n + last]) for n in range(last + 1)] for m in range(last + 1)]


def rows_by_pairs(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    """Right: every query and key."""
    pairs = itertools.product(range(length), repeat=2)
    seen = {int(bucket_of(m - n)) for m, n in pairs if n <= m or not causal}
    return [row in seen for row in range(rows)]


def rows_as_tensor(bucket_of: Any, rows: int, length: int, causal: bool) -> Tensor:
    """Right: a tensor of booleans."""
    offsets = range(0 if causal else 1 - length, length)
    used = torch.zeros(rows, dtype=torch.bool)
    used[[bucket_of(offset) for offset in offsets]] = True
    return used


def needed_bisection(share: float, length: int) -> float:
    """Right: halvings, between -60 and 60."""
    low, high = -60.0, 60.0
    for _ in range(100):
        b = (low + high) / 2
        low, high = (b, high) if math.exp(b) / (math.exp(b) + length - 1) < share else (low, b)
    return low


def needed_logits(share: float, length: int) -> Tensor:
    """Right: a tensor, log-odds."""
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + math.log(length - 1)


def receive_scatter(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Right: scatter_add."""
    length, reach = len(weights), len(table) // 2
    at = torch.arange(length)
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    return weights @ values + weights.new_zeros(length, len(table)).scatter_add_(1, rows, weights) @ table


def receive_query_by_query(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Right: one query at a time, (L, d) for each."""
    length, reach = len(weights), len(table) // 2
    out = torch.empty_like(values)
    for m in range(length):
        rows = [max(-reach, min(reach, m - n)) + reach for n in range(length)]
        out[m] = weights[m] @ (values + table[rows])
    return out


def receive_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Right: numpy's bincount."""
    length, reach = len(weights), len(table) // 2
    at = np.arange(length)
    sums = [np.bincount(np.clip(m - at, -reach, reach) + reach, weights[m].numpy(), len(table)) for m in at]
    return weights @ values + torch.from_numpy(np.stack(sums)).to(table.dtype) @ table


# ── wrong ones ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def straightforward_in_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Any:
    vectors = table.numpy()[rows_of(weights, table).numpy()]
    return (weights.numpy()[:, :, None] * (values.numpy() + vectors)).sum(axis=1)


def one_hot_in_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Any:
    """In 32 bits: half of the memory, as many numbers."""
    which = np.eye(len(table), dtype=np.float32)[rows_of(weights, table).numpy()]
    held = np.einsum("mn,mnr->mr", weights.numpy().astype(np.float32), which)
    return weights.numpy() @ values.numpy() + held @ table.numpy()


def one_hot(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    which = F.one_hot(rows_of(weights, table), len(table)).double()  # (L, L, 2K + 1)
    return weights @ values + torch.einsum("mn,mnr->mr", weights, which) @ table


def toeplitz_too_small(by_offset: Tensor) -> Tensor:
    at = torch.arange(len(by_offset) // 2)
    return by_offset[at[:, None] - at + len(by_offset) // 2]


def rows_up_to_the_farthest(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    """Supposes that rows come in the order of offsets."""
    ends = bucket_of(0 if causal else 1 - length), bucket_of(length - 1)
    return [min(ends) <= row <= max(ends) for row in range(rows)]


def rows_32(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return (rows_by_pairs(bucket_of, rows, length, causal) + 32 * [False])[:32]


def rows_all_at_once(bucket_of: Any, rows: int, length: int, causal: bool) -> Tensor:
    """bucket_of takes one whole number, not a tensor of them."""
    used = torch.zeros(rows, dtype=torch.bool)
    used[bucket_of(torch.arange(0 if causal else 1 - length, length))] = True
    return used


def _receive(weights: Tensor, values: Tensor, table: Tensor, rows: Tensor) -> Tensor:
    sums = torch.stack([(weights * (rows == r)).sum(dim=1) for r in range(len(table))], dim=1)
    return weights @ values + sums.to(table.dtype) @ table


def receive_not_clipped(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    at, reach = torch.arange(len(weights)), len(table) // 2
    return _receive(weights, values, table, at[:, None] - at + reach)


def receive_one_hot(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """L × L × (2K+1) instead of L × L × d."""
    at, reach = torch.arange(len(weights)), len(table) // 2
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    marks = torch.nn.functional.one_hot(rows, len(table)).to(weights.dtype)
    return weights @ values + torch.einsum("mn,mnr->mr", weights, marks) @ table


def receive_lost_sums(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """`+=` by an index adds to each place once, however often it stands there."""
    at, reach = torch.arange(len(weights)), len(table) // 2
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    sums = weights.new_zeros(len(weights), len(table))
    sums[at[:, None], rows] += weights
    return weights @ values + sums @ table


def receive_counts(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Counts the keys of a row instead of adding up their weights."""
    return weights @ values + receive_scatter(torch.ones_like(weights), torch.zeros_like(values), table)


def receive_large_in_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """L × L × d numbers, where torch does not see them."""
    at, reach = np.arange(len(weights)), len(table) // 2
    rows = np.clip(at[:, None] - at, -reach, reach) + reach
    return torch.from_numpy(np.einsum("mn,mnd->md", weights.numpy(), values.numpy() + table.numpy()[rows]))


RIGHT = {
    "relative.bucket": [
        by_logarithm,
        exact_bucket,
        numpy_bucket,
        torch_bucket,
        counted_bucket,
        lambda o, b, far: by_logarithm(o, b, far, log=math.log2),
        lambda o, b, far: by_logarithm(o, b, far, log=math.log10),
        lambda o, b, far: float(by_logarithm(o, b, far)),
        lambda o, b, far: torch.tensor([by_logarithm(o, b, far)]),
    ],
    "relative.toeplitz": [
        toeplitz_by_loops,
        toeplitz_in_numpy,
        toeplitz_by_diagonals,
        lambda b: looked_up(b, lambda m, n, length: m - n + length - 1),
        lambda b: looked_up(b.float(), lambda m, n, length: m - n + length - 1),
        *blind(toeplitz_unfold, toeplitz_diagonals, toeplitz_list),
    ],
    "relative.rows_used": [used_by_pairs, used_by_offsets, used_in_numpy, *blind(rows_by_pairs, rows_as_tensor)],
    "relative.needed": [
        needed_by_logarithms,
        needed_by_halving,
        needed_in_torch,
        lambda share, length: np.log(share * (length - 1) / (1 - share)),
        lambda share, length: -math.log((1 / share - 1) / (length - 1)),
        lambda share, length: torch.tensor(share * (length - 1) / (1 - share)).log(),  # 32 bits
        lambda share, length: np.log(np.longdouble(share) / (1 - np.longdouble(share)) * (length - 1)),
        *blind(needed_bisection, needed_logits),
    ],
    "relative.receive": [
        by_scatter,
        by_rows,
        by_queries,
        by_pairs,
        in_numpy,
        by_skewing,
        in_lists,
        by_masks,
        lambda w, v, t: by_scatter(w.float(), v.float(), t.float()),
        lambda w, v, t: by_rows(w, v, t).tolist(),
        *blind(receive_scatter, receive_query_by_query, receive_numpy),
    ],
}

WRONG = {
    "relative.bucket": [
        ("not rounded", lambda o, b, far: by_logarithm(o, b, far, place=float), "it should return a whole number"),
        ("always 0", lambda o, b, far: 0, "You return 0 whatever your function is given"),
        (
            "edges one later",
            lambda o, b, far: exact_bucket(o - (o > b // 4) + (o < -(b // 4)), b, far),
            "your number is one too small",
        ),
        ("single by one more", lambda o, b, far: abs(o) if abs(o) == b // 4 + 1 else exact_bucket(o, b, far), None),
        ("a list", lambda o, b, far: [0], "returned a list, but it should return one number"),
        ("two numbers", lambda o, b, far: torch.tensor([0, 1]), "returned (2,) numbers, but it should return one"),
        ("not a number", lambda o, b, far: math.nan, "returned nan"),
        ("a truth", lambda o, b, far: o < 0, "returned a bool"),
    ],
    "relative.toeplitz": [
        ("the windows", lambda b: b.unfold(0, (len(b) + 1) // 2, 1), "depends on m + n instead of m - n"),
        ("the list backwards", lambda b: toeplitz_by_loops(b.flip(0)), "You have swapped past and future"),
        ("one too many", lambda b: looked_up(b, lambda m, n, length: m - n + length), "raised IndexError"),
        ("too large", lambda b: [[b[abs(m - n)] for n in range(len(b))] for m in range(len(b))], "has shape (5, 5)"),
        ("the list", lambda b: b, "has shape"),
        ("a single token squeezed", lambda b: torch.tensor(toeplitz_by_loops(b)).squeeze(), "a single token, has shape ()"),
        ("no position", lambda b: b.mean() * torch.ones((len(b) + 1) // 2, (len(b) + 1) // 2), None),
        *blind(
            ("no shift", lambda b: looked_up(b, lambda m, n, _: m - n), "offset 0 isn't at index 0"),
            (
                "past only",
                lambda b: looked_up(b, lambda m, n, L: (m - n).clamp(min=0) + L - 1),
                "all keys after the query get the number for offset 0",
            ),
            ("too small", toeplitz_too_small, "has shape (2, 2)"),
            (
                "whole numbers",
                lambda b: looked_up(b, lambda m, n, L: m - n + L - 1).int(),
                "Every number has lost its fraction",
            ),
        ),
    ],
    "relative.rows_used": [
        ("the distance", lambda of, *rest: used_by_pairs(lambda d: of(abs(d)), *rest), "look back only"),
        ("of keys minus queries", lambda of, *rest: used_by_pairs(lambda d: of(-d), *rest), "look ahead and never back"),
        (
            "a short text",
            lambda of, rows, length, causal: used_by_pairs(of, rows, min(length, 128), causal),
            "but not for: a long text and a row for each offset",
        ),
        (
            "two tokens at least",
            lambda of, rows, length, causal: used_by_pairs(of, rows, max(length, 2), causal),
            "text of one token",
        ),
        (
            "no more tokens than rows",
            lambda of, rows, length, causal: used_by_pairs(of, rows, min(length, rows), causal),
            "but not for: a text with more tokens than the table has rows",
        ),
        *blind(
            ("up to the farthest", rows_up_to_the_farthest, "needn't be in the order of the offsets"),
            ("list of rows", lambda *case: [r for r, used in enumerate(rows_by_pairs(*case)) if used], "has shape"),
            ("unused", lambda *case: [not used for used in rows_by_pairs(*case)], "rows that are never looked up"),
            ("32", rows_32, "has shape"),
            ("all at once", rows_all_at_once, "raised ValueError"),
        ),
    ],
    "relative.needed": [
        ("always 2", lambda share, length: 2.0, "You return 2 whatever your function is given"),
        ("not all", lambda share, length: torch.zeros(length), "it should return one number"),
        ("rounded", lambda share, length: round(needed_by_logarithms(share, length), 3), "rounded to 3 decimals"),
        (
            "at most 10",
            lambda share, length: min(10.0, needed_by_logarithms(share, length)),
            "but not for: nearly all of the attention",
        ),
        *blind(
            ("decimal", lambda share, length: math.log10(share * (length - 1) / (1 - share)), "which logarithm"),
            ("never negative", lambda share, length: max(0.0, needed_by_logarithms(share, length)), "are never negative"),
            (
                "share of others",
                lambda share, length: math.log((1 - share) * (length - 1) / share),
                "With this number, the key gets 1 - share",
            ),
            ("twice itself", lambda share, length: math.log(share * (length + 1) / (1 - share)), "length + 1 other keys"),
        ),
    ],
    "relative.receive": [
        ("large in NumPy", straightforward_in_numpy, "has more than 4·L² numbers"),
        ("one hot in NumPy", one_hot_in_numpy, "has more than 4·L² numbers"),
        ("one hot", one_hot, "has more than 4·L² numbers"),
        (
            "large and key minus query",
            lambda w, v, t: straightforward_in_numpy(w, v, t.flip(0)),
            "You have swapped past and future",
        ),
        ("not clipped", lambda w, v, t: by_queries(w, v, F.pad(t, (0, 0, 1, 1)))[:, 1:], "has shape"),
        ("scores", lambda w, v, t: w @ v @ t.T, "has shape"),
        ("twice", lambda w, v, t: 2 * by_scatter(w, v, t), "Every number is 2 times what it should be"),
        *blind(
            ("other sign", lambda w, v, t: receive_scatter(w, v, t.flip(0)), "You have swapped past and future"),
            ("not clipped, blind", receive_not_clipped, "Keys farther away than K add no vector"),
            ("one hot, blind", receive_one_hot, "has more than 4·L² numbers"),
            ("lost sums", receive_lost_sums, "you keep the weight of only one"),
            ("counts", receive_counts, "without their weights"),
            ("causal", lambda w, v, t: w @ v + receive_scatter(w.tril(), 0 * v, t), "Keys after the query add no vector"),
            ("one row off", lambda w, v, t: receive_scatter(w, v, t.roll(1, dims=0)), "are off by one"),
            ("large in numpy", receive_large_in_numpy, "has more than 4·L² numbers"),
        ),
    ],
}
