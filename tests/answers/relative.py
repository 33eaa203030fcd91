"""Answers to assignment 9: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

BucketOf = Callable[[int], int]


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


def used_at(offsets: Callable[[int, bool], Any]) -> Callable[..., list[bool]]:
    def used(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> list[bool]:
        found = [bucket_of(offset) for offset in offsets(length, causal)]
        return [row in found for row in range(rows)]

    return used


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


def straightforward(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    return weights @ values + torch.einsum("mn,mnd->md", weights, table[rows_of(weights, table)])


def straightforward_in_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Any:
    vectors = table.numpy()[rows_of(weights, table).numpy()]
    return (weights.numpy()[:, :, None] * (values.numpy() + vectors)).sum(axis=1)


def one_hot(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    which = F.one_hot(rows_of(weights, table), len(table)).double()  # (L, L, 2K + 1)
    return weights @ values + torch.einsum("mn,mnr->mr", weights, which) @ table


def with_rows(change: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Weighted values, and something made of the weights and each pair's vector."""
    return lambda w, v, t: w @ v + change(w, t[rows_of(w, t)])


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "relative.toeplitz": [
        toeplitz_by_loops,
        toeplitz_in_numpy,
        toeplitz_by_diagonals,
        lambda b: looked_up(b, lambda m, n, length: m - n + length - 1),
        lambda b: looked_up(b.float(), lambda m, n, length: m - n + length - 1),
    ],
    "relative.rows_used": [used_by_pairs, used_by_offsets, used_in_numpy],
    "relative.needed": [
        needed_by_logarithms,
        needed_by_halving,
        needed_in_torch,
        lambda share, length: np.log(share * (length - 1) / (1 - share)),
        lambda share, length: -math.log((1 / share - 1) / (length - 1)),
        lambda share, length: torch.tensor(share * (length - 1) / (1 - share)).log(),  # 32 bits
    ],
    "relative.receive": [
        by_scatter,
        by_rows,
        by_queries,
        by_pairs,
        in_numpy,
        by_skewing,
        lambda w, v, t: by_scatter(w.float(), v.float(), t.float()),
        lambda w, v, t: by_rows(w, v, t).tolist(),
    ],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "relative.toeplitz": {
        "key minus query": (lambda b: torch.tensor(toeplitz_by_loops(b)).T, "two sides are exchanged"),
        "the list backwards": (lambda b: toeplitz_by_loops(b.flip(0)), "two sides are exchanged"),
        "the windows": (lambda b: b.unfold(0, (len(b) + 1) // 2, 1), "constant along m + n"),
        "the windows backwards": (lambda b: b.unfold(0, (len(b) + 1) // 2, 1).flip(0, 1), "constant along m + n"),
        "place m - n": (lambda b: looked_up(b, lambda m, n, _: m - n), "Offset 0 does not stand at place 0"),
        "place n - m": (lambda b: looked_up(b, lambda m, n, _: n - m), "Offset 0 does not stand at place 0"),
        "the distance": (lambda b: looked_up(b, lambda m, n, length: abs(m - n) + length - 1), "is symmetric"),
        "the distance from 0": (lambda b: looked_up(b, lambda m, n, _: abs(m - n)), "the sign is lost"),
        "one too few": (lambda b: looked_up(b, lambda m, n, length: m - n + length - 2), "Off by one"),
        "one too many": (lambda b: looked_up(b, lambda m, n, length: m - n + length), "raised IndexError"),
        "too large": (lambda b: [[b[abs(m - n)] for n in range(len(b))] for m in range(len(b))], "has shape (5, 5)"),
        "the list": (lambda b: b, "has shape"),
        "no position": (lambda b: b.mean() * torch.ones((len(b) + 1) // 2, (len(b) + 1) // 2), None),
    },
    "relative.rows_used": {
        "unused": (lambda *case: ~used_by_pairs(*case), "rows that nobody looks up"),
        "no mask": (lambda of, rows, length, _: used_by_pairs(of, rows, length, False), "let a query look ahead"),
        "always a mask": (lambda of, rows, length, _: used_by_pairs(of, rows, length, True), "look back only"),
        "the other mask": (lambda of, rows, length, causal: used_by_pairs(of, rows, length, not causal), "the wrong way round"),
        "key minus query": (
            lambda of, rows, length, causal: used_by_pairs(lambda d: of(-d), rows, length, causal),
            "look ahead, and never back",
        ),
        "the distance": (
            lambda of, rows, length, causal: used_by_pairs(lambda d: of(abs(d)), rows, length, causal),
            "look back only",
        ),
        "up to L": (used_at(lambda length, causal: range(0 if causal else -length, length + 1)), "One offset too many"),
        "up to L backwards": (used_at(lambda length, causal: range(0 if causal else -length, length)), "One offset too many"),
        "up to L ahead": (
            used_at(lambda length, causal: range(0 if causal else 1 - length, length + 1)),
            "One offset too many",
        ),
        "up to L - 2": (used_at(lambda length, causal: range(0 if causal else 1 - length, length - 1)), "One offset too few"),
        "without itself": (
            used_at(lambda length, causal: range(1, length) if causal else [*range(1 - length, 0), *range(1, length)]),
            "offset 0 is missing",
        ),
        "only below the diagonal": (
            lambda of, rows, length, causal: [
                any(of(m - n) == row for m in range(length) for n in range(m if causal else length)) for row in range(rows)
            ],
            "In a decoder a token looks at itself",
        ),
        "as many rows as tokens": (
            lambda of, rows, length, _: [row < length for row in range(rows)],
            None,
        ),
        "all": (lambda of, rows, length, _: [True] * rows, "every row in use"),
        "how often": (
            lambda of, rows, length, causal: np.bincount(
                [of(m - n) for m in range(length) for n in range(length) if not causal or n <= m], minlength=rows
            ),
            "how often a row",
        ),
        "a list of rows": (
            lambda of, rows, length, causal: sorted({of(d) for d in range(0 if causal else 1 - length, length)}),
            "has shape",
        ),
    },
    "relative.needed": {
        "sign": (lambda s, length: math.log((1 - s) / s / (length - 1)), "sign is turned"),
        "never negative": (lambda s, length: max(needed_by_halving(s, length), 0), "Never negative?"),
        "absolute": (lambda s, length: abs(needed_by_halving(s, length)), "Never negative?"),
        "the factor": (lambda s, length: s * (length - 1) / (1 - s), "That is the factor"),
        "length others": (lambda s, length: math.log(s * length / (1 - s)), "length others"),
        "one other": (lambda s, length: math.log(s / (1 - s)), "one other key in mind"),
        "not itself": (lambda s, length: math.log(s * (length - 1)), "your key is missing there"),
        "times the even share": (lambda s, length: math.log(s) + math.log(length), "times as loud as one other"),
        "logarithm of the share": (lambda s, length: math.log(s), "the sum below the line were 1"),
        "a crowd divided": (lambda s, length: math.log(s / (1 - s) / (length - 1)), "a crowd needs a louder voice"),
        "the crowd subtracted": (lambda s, length: math.log(s) - math.log(length - 1), "a crowd needs a louder voice"),
        "tens": (lambda s, length: math.log10(s * (length - 1) / (1 - s)), "powers of e"),
        "twos": (lambda s, length: math.log2(s * (length - 1) / (1 - s)), "powers of e"),
        "the share": (lambda s, length: s, "with it the key gets 0.622, not 0.5"),
        "always 2": (lambda s, length: 2.0, None),
        "not all": (lambda s, length: torch.zeros(length), "it should be one number"),
    },
    "relative.receive": {
        "a vector for each pair": (straightforward, "24,576 numbers at once (a vector for each query and key)"),
        "in NumPy": (straightforward_in_numpy, "in all that NumPy and Python held"),
        "one hot": (one_hot, "a number for each query, key and row"),
        "no offsets": (lambda w, v, t: w @ v, "no offset has added"),
        "no values": (lambda w, v, t: straightforward(w, torch.zeros_like(v), t), "the values are missing"),
        "key minus query": (lambda w, v, t: by_scatter(w, v, t.flip(0)), "Past and future are exchanged"),
        "from row 0": (
            lambda w, v, t: w @ v + torch.einsum("mn,mnd->md", w, t[rows_of(w, t) - len(t) // 2]),
            "gets row 0 of the table",
        ),
        "transposed": (lambda w, v, t: by_scatter(w.T, v, t), "Your weights are transposed"),
        "not weighted": (with_rows(lambda w, rows: rows.sum(dim=1)), "without their weights"),
        "an even mean": (with_rows(lambda w, rows: rows.mean(dim=1)), "an even one"),
        "its own vector": (lambda w, v, t: w @ (v + t[len(t) // 2]), "Each token gets the vector of offset 0"),
        "multiplied": (
            lambda w, v, t: torch.stack([w[m] @ (v * t[rows_of(w, t)[m]]) for m in range(len(w))]),
            "You multiply value and vector",
        ),
        "summed over queries": (with_rows(lambda w, rows: torch.einsum("mn,mnd->nd", w, rows)), "add up over the queries"),
        "not clipped": (
            lambda w, v, t: torch.stack(
                [sum((w[m, n] * (v[n] + t[m - n + len(t) // 2]) for n in range(len(w))), 0 * v[0]) for m in range(len(w))]
            ),
            "raised IndexError",
        ),
        "modulo": (
            lambda w, v, t: torch.stack(
                [
                    sum((w[m, n] * (v[n] + t[(m - n + len(t) // 2) % len(t)]) for n in range(len(w))), 0 * v[0])
                    for m in range(len(w))
                ]
            ),
            "begin again at the table's other end",
        ),
        "too far left out": (lambda w, v, t: by_rows(w.tril(len(t) // 2).triu(-(len(t) // 2)), v, t), "are left out"),
        "no vector if too far": (
            lambda w, v, t: (
                w @ v
                + sum(
                    (
                        torch.diag(torch.diag(w, -k), -k) @ t[k + len(t) // 2].repeat(len(w), 1)
                        for k in range(-(len(t) // 2), len(t) // 2 + 1)
                        if abs(k) < len(w)
                    ),
                    0 * v,
                )
            ),
            "bring no vector",
        ),
        "scores": (lambda w, v, t: w @ v @ t.T, None),
    },
}
