"""Answers to the exercises on position in the score, in the chapter and in the assignment."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.relative import t5_buckets
from tests.answers import right, wrong

BucketOf = Callable[[int], int]


@right("relative.bucket")
def exact_bucket(offset: int, num_buckets: int, max_distance: int, *, causal: bool = False) -> int:
    return int(t5_buckets([offset], num_buckets, max_distance, causal=causal))


@right("relative.bucket")
def numpy_bucket(offset: int, num_buckets: int, max_distance: int) -> np.ndarray:
    side, single, distance = num_buckets // 2, num_buckets // 4, np.abs(offset)
    wide = single + np.floor(np.log(np.maximum(distance, 1) / single) / np.log(max_distance / single) * (side - single))
    return np.where(distance < single, distance, np.minimum(wide, side - 1)) + side * (offset < 0)


@right("relative.bucket")
def torch_bucket(offset: int, num_buckets: int, max_distance: int) -> Tensor:
    """As the libraries write it, in 32 bits, for the other sign."""
    ahead, side, single = -torch.tensor(offset), num_buckets // 2, num_buckets // 4
    distance = ahead.abs()
    wide = single + (torch.log(distance.float() / single) / math.log(max_distance / single) * (side - single)).long()
    return (ahead > 0) * side + torch.where(distance < single, distance, wide.clamp(max=side - 1))


def bucket_by(offset: int, b: int, far: int, whole: Callable[[float], float] = math.floor, *, from_: float = 0) -> int:
    """T5's bucket, with another rounding or another start of the logarithm."""
    single = b // 4
    start = from_ or single
    wide = single + whole(math.log(max(abs(offset), 1) / start) / math.log(far / start) * (b // 2 - single) + 1e-9)
    return int(min(wide, b // 2 - 1)) if abs(offset) >= single else abs(offset)


@wrong("relative.bucket", "You round to the nearest")
def bucket_nearest(o: int, b: int, far: int) -> Any:
    return bucket_by(o, b, far, round) + b // 2 * (o < 0)


@wrong("relative.bucket", "0 at distance 1")
def bucket_from_1(o: int, b: int, far: int) -> Any:
    return bucket_by(o, b, far, from_=1) + b // 2 * (o < 0)


@wrong("relative.bucket", "max_distance or more")
def bucket_no_last(o: int, b: int, far: int) -> Any:
    wide = b // 4 + int(math.log(max(abs(o), 1) / (b // 4)) / math.log(far / (b // 4)) * (b // 2 - b // 4) + 1e-9)
    return (abs(o) if abs(o) < b // 4 else wide) + b // 2 * (o < 0)


@wrong("relative.bucket", "You clip the offset")
def bucket_clipped(o: int, b: int, far: int) -> Any:
    return min(abs(o), b // 2 - 1) + b // 2 * (o < 0)


@wrong("relative.bucket", "swapped past and future")
def bucket_other_sign(o: int, b: int, far: int) -> Any:
    return exact_bucket(-o, b, far)


@wrong("relative.bucket", "the buckets of a decoder")
def bucket_of_a_decoder(o: int, b: int, far: int) -> Any:
    return exact_bucket(o, b, far, causal=True)


@right("relative.rows_used")
def used_by_offsets(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> list[bool]:
    found = {int(bucket_of(offset)) for offset in range(0 if causal else 1 - length, length)}
    return [row in found for row in range(rows)]


@right("relative.rows_used")
def rows_by_pairs(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    pairs = itertools.product(range(length), repeat=2)
    seen = {int(bucket_of(m - n)) for m, n in pairs if n <= m or not causal}
    return [row in seen for row in range(rows)]


@right("relative.rows_used")
def rows_as_tensor(bucket_of: Any, rows: int, length: int, causal: bool) -> Tensor:
    offsets = range(0 if causal else 1 - length, length)
    used = torch.zeros(rows, dtype=torch.bool)
    used[[bucket_of(offset) for offset in offsets]] = True
    return used


def used_by_pairs(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Tensor:
    used = torch.zeros(rows, dtype=torch.bool)
    for m in range(length):
        for n in range(length):
            if n <= m or not causal:
                used[bucket_of(m - n)] = True
    return used


@wrong("relative.rows_used", "look back only")
def rows_used_the_distance(of: Any, *rest: Any) -> Any:
    return used_by_pairs(lambda d: of(abs(d)), *rest)


@wrong("relative.rows_used", "needn't be in the order of the offsets")
def rows_up_to_the_farthest(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    ends = bucket_of(0 if causal else 1 - length), bucket_of(length - 1)
    return [min(ends) <= row <= max(ends) for row in range(rows)]


@wrong("relative.rows_used", "0 or negative")
def rows_used_ahead(of: BucketOf, rows: int, length: int, causal: bool) -> Any:
    return used_by_offsets(lambda d: of(-d), rows, length, True)


@wrong("relative.rows_used", "looks at itself")
def rows_used_by_others(of: BucketOf, rows: int, length: int, causal: bool) -> Any:
    pairs = itertools.product(range(length), repeat=2)
    seen = {of(m - n) for m, n in pairs if n < m or (n > m and not causal)}
    return [row in seen for row in range(rows)]


@wrong("relative.rows_used", "rows that are never looked up")
def rows_used_unused(*case: Any) -> Any:
    return [not used for used in rows_by_pairs(*case)]


@right("relative.needed")
def needed_by_logarithms(share: float, length: int) -> float:
    return math.log(share) - math.log(1 - share) + math.log(length - 1)


@right("relative.needed")
def needed_in_torch(share: float, length: int) -> Tensor:
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + np.log(length - 1)


@right("relative.needed")
def needed_logits(share: float, length: int) -> Tensor:
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + math.log(length - 1)


@wrong("relative.needed", "which logarithm")
def needed_decimal(share: float, length: int) -> Any:
    return math.log10(share * (length - 1) / (1 - share))


@wrong("relative.needed", "are never negative")
def needed_never_negative(share: float, length: int) -> Any:
    return max(0.0, needed_by_logarithms(share, length))


@wrong("relative.needed", "With this number, the key gets 1 - share")
def needed_share_of_others(share: float, length: int) -> Any:
    return math.log((1 - share) * (length - 1) / share)


@wrong("relative.needed", "length + 1 other keys")
def needed_twice_itself(share: float, length: int) -> Any:
    return math.log(share * (length + 1) / (1 - share))


@wrong("relative.needed", "contains the term of this key")
def needed_others_alone(share: float, length: int) -> Any:
    return math.log(share * (length - 1))


@wrong("relative.needed", "smaller if there are more keys")
def needed_divided(share: float, length: int) -> Any:
    return math.log(share / (1 - share) / (length - 1))


@right("relative.receive")
def receive_scatter(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    length, reach = len(weights), len(table) // 2
    at = torch.arange(length)
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    return weights @ values + weights.new_zeros(length, len(table)).scatter_add_(1, rows, weights) @ table


@right("relative.receive")
def receive_query_by_query(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    length, reach = len(weights), len(table) // 2
    out = torch.empty_like(values)
    for m in range(length):
        rows = [max(-reach, min(reach, m - n)) + reach for n in range(length)]
        out[m] = weights[m] @ (values + table[rows])
    return out


@right("relative.receive")
def receive_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    length, reach = len(weights), len(table) // 2
    at = np.arange(length)
    sums = [np.bincount(np.clip(m - at, -reach, reach) + reach, weights[m].numpy(), len(table)) for m in at]
    return weights @ values + torch.from_numpy(np.stack(sums)).to(table.dtype) @ table


@wrong("relative.receive", "You have swapped past and future")
def receive_other_sign(w: Any, v: Any, t: Any) -> Any:
    return receive_scatter(w, v, t.flip(0))


def _receive(weights: Tensor, values: Tensor, table: Tensor, rows: Tensor) -> Tensor:
    sums = torch.stack([(weights * (rows == r)).sum(dim=1) for r in range(len(table))], dim=1)
    return weights @ values + sums.to(table.dtype) @ table


@wrong("relative.receive", "Keys farther away than K add no vector")
def receive_not_clipped(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    at, reach = torch.arange(len(weights)), len(table) // 2
    return _receive(weights, values, table, at[:, None] - at + reach)


@wrong("relative.receive", "you keep the weight of only one")
def receive_lost_sums(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """`+=` by an index adds to each place once, however often it stands there."""
    at, reach = torch.arange(len(weights)), len(table) // 2
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    sums = weights.new_zeros(len(weights), len(table))
    sums[at[:, None], rows] += weights
    return weights @ values + sums @ table


@wrong("relative.receive", "Keys after the query add no vector")
def receive_causal(w: Any, v: Any, t: Any) -> Any:
    return w @ v + receive_scatter(w.tril(), 0 * v, t)


@wrong("relative.receive", "the wrong rows of the table")
def receive_one_row_off(w: Any, v: Any, t: Any) -> Any:
    return receive_scatter(w, v, t.roll(1, dims=0))


@wrong("relative.receive", "has more than 4·L² numbers")
def receive_large_in_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """L × L × d numbers, where torch does not see them."""
    at, reach = np.arange(len(weights)), len(table) // 2
    rows = np.clip(at[:, None] - at, -reach, reach) + reach
    return torch.from_numpy(np.einsum("mn,mnd->md", weights.numpy(), values.numpy() + table.numpy()[rows]))


@wrong("relative.receive", "over the queries")
def receive_over_queries(w: Tensor, v: Tensor, t: Tensor) -> Tensor:
    return w @ v + receive_scatter(w.T, 0 * v, t.flip(0))
