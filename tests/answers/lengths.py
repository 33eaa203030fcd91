"""Answers to the exercises on lengths."""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import right, wrong


@right("lengths.windows")
def sliding_windows(total: int, length: int, stride: int) -> list[tuple[int, int]]:
    plan, done = [(0, 0)], length
    while done < total:
        end = min(done + stride, total)
        plan.append((end - length, length - (end - done)))
        done = end
    return plan


@right("lengths.windows")
def generated_windows(total: int, length: int, stride: int) -> Iterator[list[int]]:
    yield [0, 0]
    for done in range(length, total, stride):
        start = min(done + stride, total) - length
        yield [start, done - start]


@right("lengths.windows")
def short_move_first(total: int, length: int, stride: int) -> list[tuple[int, int]]:
    moves = range(-(-(total - length) // stride) - 1, -1, -1)
    ends = [total - length - k * stride for k in moves]
    return [(0, 0), *((end, length - min(stride, end)) for end in ends)]


@wrong("lengths.windows", "your windows don't overlap")
def windows_no_overlap(total: int, length: int, stride: int) -> Any:
    return [(start, 0) for start in range(0, total - length + 1, length)]


@wrong("lengths.windows", "only has positions 0 to 511")
def windows_every_position_a_window(total: int, length: int, stride: int) -> Any:
    return [(start, length - stride if start else 0) for start in range(0, total, stride)]


@wrong("lengths.windows", "first = 64")
def windows_outside_of_the_window(*_: Any) -> Any:
    return [(0, 64)]


@wrong("lengths.windows", "has shape (1, 3), but it should be (any, 2)")
def windows_three_numbers(*_: Any) -> Any:
    return [(0, 0, 64)]


@right("lengths.beyond")
def beyond_by_sums(lengths: list[int], means: Tensor) -> Tensor:
    size = torch.tensor([0, *lengths])
    total = size * torch.cat([torch.zeros(1), means])
    return total.diff() / size.diff()


@right("lengths.beyond")
def beyond_by_solving(lengths: list[int], means: Tensor) -> Any:
    steps = np.diff([0, *lengths])
    shares = np.tril(np.broadcast_to(steps, (len(lengths),) * 2)) / np.array(lengths)[:, None]
    return np.linalg.solve(shares, means.numpy())


@right("lengths.beyond")
def beyond_in_fractions(lengths: list[int], means: Tensor) -> list[Fraction]:
    exact = [Fraction(mean) * length for mean, length in zip(means.tolist(), lengths, strict=True)]
    new = zip([Fraction(0), *exact], exact, [0, *lengths], lengths)  # noqa: B905
    return [(after - before) / (long - short) for before, after, short, long in new]


@wrong("lengths.beyond", "twice the one before")
def beyond_doubling(n: Any, m: Any) -> Any:
    return [m[0], *(2 * m[1:] - m[:-1])]


def beyond_by_loop(lengths: list[int], means: Tensor) -> list[float]:
    found, counted, summed = [], 0, 0.0
    for length, mean in zip(lengths, means.tolist(), strict=True):
        found.append((length * mean - summed) / (length - counted))
        counted, summed = length, length * mean
    return found


@wrong("lengths.beyond", "only the mean over the longest window")
def last_two_only(lengths: list[int], means: Tensor) -> list[float]:
    right = beyond_by_loop(lengths, means)
    return [*means.tolist()[:-1], right[-1]]


@wrong("lengths.beyond", "larger each loss is than the mean before")
def beyond_more_than_before(n: Any, m: Any) -> Any:
    return [m[0], *(x - y for x, y in zip(beyond_by_loop(n, m)[1:], m, strict=False))]


@wrong("lengths.beyond", "larger each mean is than the one before")
def beyond_differences(n: Any, m: Any) -> Any:
    return np.diff(m.numpy(), prepend=0)


@wrong("lengths.beyond", "number of its new positions")
def beyond_not_divided(n: Any, m: Any) -> Any:
    return (torch.tensor(n) * m).diff(prepend=torch.zeros(1))


@wrong("lengths.beyond", "beyond the shortest length")
def beyond_the_shortest(n: Any, m: Any) -> Any:
    return [m[0], *((length * mean - n[0] * m[0]) / (length - n[0]) for length, mean in zip(n[1:], m[1:], strict=True))]


@right("lengths.blind_mean")
def blind_by_list(losses: Tensor, settled: float, length: int, stride: int) -> float:
    window = (losses.tolist() + [settled] * length)[:length]
    return sum(window[-stride:]) / stride


@right("lengths.blind_mean")
def blind_by_parts(losses: Tensor, settled: float, length: int, stride: int) -> Tensor:
    own = losses[length - stride : length]
    return (own.sum() + (stride - len(own)) * settled) / stride


@right("lengths.blind_mean")
def blind_exact(losses: Tensor, settled: float, length: int, stride: int) -> Fraction:
    own = [Fraction(x) for x in losses[length - stride : length].tolist()]
    return (sum(own, Fraction(0)) + (stride - len(own)) * Fraction(settled)) / stride


@wrong("lengths.blind_mean", "right for long windows")
def blind_mean_negative_rest(x: Any, s: Any, n: Any, k: Any) -> Any:
    return (float(x[n - k :].sum()) + (k - len(x[n - k :])) * s) / k


@wrong("lengths.blind_mean", "The last `stride` positions")
def minus_zero_slice(losses: Tensor, settled: float, length: int, stride: int) -> float:
    window = (losses.tolist() + [settled] * length)[:length]
    kept = window[: -(length - stride)] if length > stride else window
    return sum(kept) / len(kept)


@wrong("lengths.blind_mean", "Every number is `stride` times")
def blind_mean_summed(x: Any, s: Any, n: Any, k: Any) -> Any:
    return k * blind_by_list(x, s, n, k)


@wrong("lengths.blind_mean", "every later position has")
def blind_mean_the_last_as_settled(x: Any, s: Any, n: Any, k: Any) -> Any:
    return blind_by_list(x, float(x[-1]), n, k)


@right("lengths.by_chance")
def chance_by_bits(a: Tensor, b: Tensor) -> Tensor:
    numbers, size = torch.cat([a, b]), len(a) + len(b)
    bits = torch.arange(2**size).unsqueeze(1) >> torch.arange(size) & 1
    bits = bits[bits.sum(dim=1) == len(a)].double()
    gaps = bits @ numbers / len(a) - (1 - bits) @ numbers / len(b)
    return (gaps.abs() > (a.mean() - b.mean()).abs() - 1e-9).double().mean()


def exact_gap(pool: Sequence[Fraction], chosen: Sequence[int]) -> Fraction:
    mine = [pool[k] for k in chosen]
    rest = sum(pool, Fraction(0)) - sum(mine, Fraction(0))
    return abs(sum(mine, Fraction(0)) / len(mine) - rest / (len(pool) - len(mine)))


@right("lengths.by_chance")
def chance_in_fractions(a: Tensor, b: Tensor) -> Fraction:
    pool = [Fraction(x) for x in a.tolist() + b.tolist()]
    seen = exact_gap(pool, range(len(a)))
    gaps = [exact_gap(pool, way) for way in itertools.combinations(range(len(pool)), len(a))]
    return Fraction(sum(gap >= seen - Fraction(1, 10**9) for gap in gaps), len(gaps))


@right("lengths.by_chance")
def chance_table(a: Tensor, b: Tensor) -> Tensor:
    pool = torch.cat([a, b]).double()
    ways = torch.combinations(torch.arange(len(pool)), len(a))
    mine = pool[ways].sum(1)
    gaps = (mine / len(a) - (pool.sum() - mine) / len(b)).abs()
    return (gaps > (a.double().mean() - b.double().mean()).abs() - 1e-9).double().mean()


def signed_gaps(a: Tensor, b: Tensor) -> tuple[list[float], float]:
    """Signed differences of all ways, and the one seen."""
    pool = torch.cat([a, b]).double()
    gaps = []
    for way in itertools.combinations(range(len(pool)), len(a)):
        rest = [k for k in range(len(pool)) if k not in way]
        gaps.append(float(pool[list(way)].mean() - pool[rest].mean()))
    return gaps, gaps[0]


@wrong("lengths.by_chance", "in both directions")
def chance_seen_side(a: Tensor, b: Tensor) -> float:
    gaps, seen = signed_gaps(a, b)
    sign = 1 if seen > 0 else -1
    return sum(sign * gap >= sign * seen - 1e-9 for gap in gaps) / len(gaps)


@wrong("lengths.by_chance", "only ways with a larger difference")
def chance_strict(a: Tensor, b: Tensor) -> float:
    gaps, seen = signed_gaps(a, b)
    return sum(abs(gap) > abs(seen) + 1e-9 for gap in gaps) / len(gaps)


@wrong("lengths.by_chance", "You compare sums")
def chance_sums(a: Tensor, b: Tensor) -> float:
    pool = torch.cat([a, b]).tolist()
    gaps = [abs(2 * sum(way) - sum(pool)) for way in itertools.combinations(pool, len(a))]
    return sum(gap > gaps[0] - 1e-9 for gap in gaps) / len(gaps)


@wrong("lengths.by_chance", "goes wrong in a tie")
def chance_rounding(a: Tensor, b: Tensor) -> float:
    gaps, _ = signed_gaps(a, b)
    seen = float(b.double().mean() - a.double().mean())
    return sum(abs(gap) >= abs(seen) for gap in gaps) / len(gaps)


@wrong("lengths.by_chance", "You always choose half")
def chance_half(a: Tensor, b: Tensor) -> float:
    gaps, _ = signed_gaps(*torch.cat([a, b]).tensor_split([(len(a) + len(b)) // 2]))
    return sum(abs(gap) >= abs(float(a.mean() - b.mean())) - 1e-9 for gap in gaps) / len(gaps)
