"""Answers to the exercises on lengths."""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import blind

Plan = Callable[[int, int, int], Any]

# ── windows ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sliding_windows(total: int, length: int, stride: int) -> list[tuple[int, int]]:
    plan, done = [(0, 0)], length
    while done < total:
        end = min(done + stride, total)
        plan.append((end - length, length - (end - done)))
        done = end
    return plan


def generated_windows(total: int, length: int, stride: int) -> Iterator[list[int]]:
    yield [0, 0]
    for done in range(length, total, stride):
        start = min(done + stride, total) - length
        yield [start, done - start]


def short_move_first(total: int, length: int, stride: int) -> list[tuple[int, int]]:
    moves = range(-(-(total - length) // stride) - 1, -1, -1)
    ends = [total - length - k * stride for k in moves]
    return [(0, 0), *((end, length - min(stride, end)) for end in ends)]


def planned(change: Callable[[int, int, int, int, int], tuple[Any, Any]]) -> Plan:
    """The right plan with each pair but the first changed: change(start, first, total, length, stride)."""
    return lambda *case: [(0, 0)] + [change(*pair, *case) for pair in sliding_windows(*case)[1:]]


def regular(first_of_all: Callable[[int, int], int], first: Callable[[int, int], int]) -> Plan:
    """Windows at 0, stride, 2·stride, … as long as they fit, whatever remains."""
    return lambda total, length, stride: [
        (start, first(length, stride) if start else first_of_all(length, stride))
        for start in range(0, total - length + 1, stride)
    ]


# ── beyond ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def beyond_by_sums(lengths: list[int], means: Tensor) -> Tensor:
    size = torch.tensor([0, *lengths])
    total = size * torch.cat([torch.zeros(1), means])
    return total.diff() / size.diff()


def beyond_by_loop(lengths: list[int], means: Tensor) -> list[float]:
    found, counted, summed = [], 0, 0.0
    for length, mean in zip(lengths, means.tolist(), strict=True):
        found.append((length * mean - summed) / (length - counted))
        counted, summed = length, length * mean
    return found


def beyond_by_solving(lengths: list[int], means: Tensor) -> Any:
    """Which losses of the stretches have these means: a triangle of equations."""
    steps = np.diff([0, *lengths])
    shares = np.tril(np.broadcast_to(steps, (len(lengths),) * 2)) / np.array(lengths)[:, None]
    return np.linalg.solve(shares, means.numpy())


def beyond_in_fractions(lengths: list[int], means: Tensor) -> list[Fraction]:
    exact = [Fraction(mean) * length for mean, length in zip(means.tolist(), lengths, strict=True)]
    new = zip([Fraction(0), *exact], exact, [0, *lengths], lengths)  # noqa: B905
    return [(after - before) / (long - short) for before, after, short, long in new]


def last_two_only(lengths: list[int], means: Tensor) -> list[float]:
    right = beyond_by_loop(lengths, means)
    return [*means.tolist()[:-1], right[-1]]


# ── a blind mean ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def blind_by_list(losses: Tensor, settled: float, length: int, stride: int) -> float:
    window = (losses.tolist() + [settled] * length)[:length]
    return sum(window[-stride:]) / stride


def blind_in_numpy(losses: Tensor, settled: float, length: int, stride: int) -> Any:
    window = np.full(length, settled)
    known = min(length, len(losses))
    window[:known] = losses[:known]
    return window[length - stride :].mean()


def blind_by_parts(losses: Tensor, settled: float, length: int, stride: int) -> Tensor:
    own = losses[length - stride : length]
    return (own.sum() + (stride - len(own)) * settled) / stride


def blind_exact(losses: Tensor, settled: float, length: int, stride: int) -> Fraction:
    own = [Fraction(x) for x in losses[length - stride : length].tolist()]
    return (sum(own, Fraction(0)) + (stride - len(own)) * Fraction(settled)) / stride


def as_decimal(losses: Tensor, settled: float, length: int, stride: int) -> Decimal:
    return Decimal(blind_by_list(losses, settled, length, stride))


def minus_zero_slice(losses: Tensor, settled: float, length: int, stride: int) -> float:
    """Every position but the last `length - stride`."""
    window = (losses.tolist() + [settled] * length)[:length]
    kept = window[: -(length - stride)] if length > stride else window
    return sum(kept) / len(kept)


# ── where it breaks ──────────────────────────────────────────────────────────────────────────────────────────────────────


def cliff_by_squares(losses: Tensor, reference: Tensor) -> int:
    gap = (losses - reference).numpy()
    best, at = math.inf, len(gap)
    for place in range(24, len(gap) - 23):
        early, late = gap[:place], gap[place:]
        left = place * early.var() + len(late) * late.var()
        if left < best and late.mean() - early.mean() > 0.35:
            best, at = left, place
    return at


def cliff_by_medians(losses: Tensor, reference: Tensor) -> Any:
    """Odd bytes taken out by running medians, then the steepest step over a few positions."""
    gap = (losses - reference).numpy()
    calm = np.median(np.lib.stride_tricks.sliding_window_view(np.pad(gap, 10, mode="edge"), 21), axis=1)
    rise = np.array([np.median(calm[p : p + 20]) - np.median(calm[max(p - 20, 0) : p]) for p in range(20, len(gap) - 19)])
    if rise.max() < 0.3:
        return len(gap)
    level = (np.median(gap[: 20 + rise.argmax()]) + np.median(gap[20 + rise.argmax() :])) / 2
    score = np.cumsum(np.where(gap > level, 1, -1))
    return np.int64(score.argmin() + 1)


def cliff_by_wandering(losses: Tensor, reference: Tensor) -> float:
    """Where the running sum of what is above the mean is lowest."""
    gap = (losses - reference).clamp(-2, 2)
    gap = torch.where((gap - gap.median()).abs() > 1.4, gap.median(), gap)
    place = int((gap - gap.mean()).cumsum(0)[23:-24].argmin()) + 24
    return float(place if gap[place:].mean() - gap[:place].mean() > 0.35 else len(gap))


def smoothed(gap: Tensor, width: int) -> Tensor:
    """Means over the positions up to each."""
    return torch.cat([gap[:1].expand(width - 1), gap]).unfold(0, width, 1).mean(dim=1)


def trailing(losses: Tensor, reference: Tensor, rises: float = 0.42, width: int = 24, ahead: bool = False) -> int:
    """The first position at which a running mean has risen nearly all the way."""
    gap = losses - reference
    running = smoothed(gap, width)
    base = float(running[width])
    above = [p for p in range(width, len(gap)) if running[p] > base + rises]
    return (above[0] - (width if ahead else 0)) if above else len(gap)


def most_above(losses: Tensor, reference: Tensor) -> int:
    """The first position of five in a row with half a nat more, whatever came before."""
    gap = losses - reference
    return next((p for p in range(len(gap) - 5) if bool((gap[p : p + 5] > 0.4).all())), len(gap))


def change_of_sign(losses: Tensor, reference: Tensor) -> int:
    """Behind the last position at which the model was better."""
    better = (losses < reference).nonzero()
    return int(better[-1]) + 1 if len(better) else 0


def fitted(gap: Tensor, rises: float) -> int:
    steps = [float(gap[p:].mean() - gap[:p].mean()) for p in range(24, len(gap) - 23)]
    weighed = [step * math.sqrt(p * (len(gap) - p)) for p, step in enumerate(steps, 24)]
    best = max(range(len(steps)), key=weighed.__getitem__)
    return best + 24 if steps[best] > rises else len(gap)


# ── by chance ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def chance(
    a: Tensor,
    b: Tensor,
    counts: Callable[[float, float], bool] = lambda way, seen: abs(way) >= abs(seen) - 1e-9,
    mean: Callable[[Any], Any] = np.mean,
) -> float:
    numbers = a.tolist() + b.tolist()
    seen = mean(a.tolist()) - mean(b.tolist())
    hits = ways = 0
    for chosen in itertools.combinations(range(len(numbers)), len(a)):
        others = [numbers[i] for i in range(len(numbers)) if i not in chosen]
        hits += counts(mean([numbers[i] for i in chosen]) - mean(others), seen)
        ways += 1
    return hits / ways


def chance_by_bits(a: Tensor, b: Tensor) -> Tensor:
    numbers, size = torch.cat([a, b]), len(a) + len(b)
    bits = torch.arange(2**size).unsqueeze(1) >> torch.arange(size) & 1
    bits = bits[bits.sum(dim=1) == len(a)].double()
    gaps = bits @ numbers / len(a) - (1 - bits) @ numbers / len(b)
    return (gaps.abs() > (a.mean() - b.mean()).abs() - 1e-9).double().mean()


def chance_by_sums(a: Tensor, b: Tensor) -> Any:
    """The mean of a alone tells: all numbers have one sum, and b is the rest of it."""
    numbers = np.concatenate([a.numpy(), b.numpy()])
    way = np.array([np.mean(chosen) for chosen in itertools.combinations(numbers, len(a))])
    off = np.abs(way - numbers.mean())
    return np.mean(off >= off[0] - 1e-10)


def chance_by_orders(a: Tensor, b: Tensor) -> float:
    """Every order of up to seven numbers; more of them by the ways, since 9! orders take too long."""
    numbers = a.tolist() + b.tolist()
    if len(numbers) > 7:
        return chance(a, b)
    k, gaps = len(a), []
    for order in itertools.permutations(numbers):
        gap = sum(order[:k]) / k - sum(order[k:]) / (len(order) - k)
        gaps += [abs(gap)]
    return float(np.mean(np.array(gaps) >= gaps[0] - 1e-9))


def sampled(a: Tensor, b: Tensor) -> float:
    rng, numbers, gaps = random.Random(1), a.tolist() + b.tolist(), []
    for _ in range(2001):  # the first as it was given
        gaps.append(abs(sum(numbers[: len(a)]) / len(a) - sum(numbers[len(a) :]) / len(b)))
        rng.shuffle(numbers)
    return sum(gap >= gaps[0] - 1e-9 for gap in gaps[1:]) / 2000


def exact_gap(pool: Sequence[Fraction], chosen: Sequence[int]) -> Fraction:
    mine = [pool[k] for k in chosen]
    rest = sum(pool, Fraction(0)) - sum(mine, Fraction(0))
    return abs(sum(mine, Fraction(0)) / len(mine) - rest / (len(pool) - len(mine)))


def chance_in_fractions(a: Tensor, b: Tensor) -> Fraction:
    pool = [Fraction(x) for x in a.tolist() + b.tolist()]
    seen = exact_gap(pool, range(len(a)))
    gaps = [exact_gap(pool, way) for way in itertools.combinations(range(len(pool)), len(a))]
    return Fraction(sum(gap >= seen - Fraction(1, 10**9) for gap in gaps), len(gaps))


def chance_table(a: Tensor, b: Tensor) -> Tensor:
    pool = torch.cat([a, b]).double()
    ways = torch.combinations(torch.arange(len(pool)), len(a))
    mine = pool[ways].sum(1)
    gaps = (mine / len(a) - (pool.sum() - mine) / len(b)).abs()
    return (gaps > (a.double().mean() - b.double().mean()).abs() - 1e-9).double().mean()


def chance_bits(a: Tensor, b: Tensor) -> float:
    pool, n = a.tolist() + b.tolist(), len(a) + len(b)
    seen = abs(math.fsum(a.tolist()) / len(a) - math.fsum(b.tolist()) / len(b))
    hits = ways = 0
    for mask in range(2**n):
        if mask.bit_count() != len(a):
            continue
        ones = [pool[k] for k in range(n) if mask >> k & 1]
        others = [pool[k] for k in range(n) if not mask >> k & 1]
        gap = abs(math.fsum(ones) / len(ones) - math.fsum(others) / len(others))
        ways += 1
        hits += gap >= seen or math.isclose(gap, seen, rel_tol=0, abs_tol=1e-9)
    return hits / ways


def signed_gaps(a: Tensor, b: Tensor) -> tuple[list[float], float]:
    """Signed differences of all ways, and the one seen."""
    pool = torch.cat([a, b]).double()
    gaps = []
    for way in itertools.combinations(range(len(pool)), len(a)):
        rest = [k for k in range(len(pool)) if k not in way]
        gaps.append(float(pool[list(way)].mean() - pool[rest].mean()))
    return gaps, gaps[0]


def chance_seen_side(a: Tensor, b: Tensor) -> float:
    gaps, seen = signed_gaps(a, b)
    sign = 1 if seen > 0 else -1
    return sum(sign * gap >= sign * seen - 1e-9 for gap in gaps) / len(gaps)


def chance_rounding(a: Tensor, b: Tensor) -> float:
    gaps, _ = signed_gaps(a, b)
    seen = float(b.double().mean() - a.double().mean())
    return sum(abs(gap) >= abs(seen) for gap in gaps) / len(gaps)


def chance_values(a: Tensor, b: Tensor) -> float:
    """Numbers instead of their places: an equal one is lost as well."""
    pool = a.tolist() + b.tolist()
    seen, hits, ways = abs(float(a.double().mean() - b.double().mean())), 0, 0
    for way in itertools.combinations(pool, len(a)):
        rest = [x for x in pool if x not in way]
        if not rest:
            continue
        ways += 1
        hits += abs(sum(way) / len(way) - sum(rest) / len(rest)) >= seen - 1e-9
    return hits / ways


def chance_set(a: Tensor, b: Tensor) -> float:
    """Ways that look the same count once."""
    pool = a.tolist() + b.tolist()
    seen = abs(float(a.double().mean() - b.double().mean()))
    ways = set(itertools.combinations(sorted(pool), len(a)))
    gaps = [abs(sum(w) / len(a) - (sum(pool) - sum(w)) / len(b)) for w in ways]
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def chance_half(a: Tensor, b: Tensor) -> float:
    """Always half of the numbers under a."""
    pool = a.tolist() + b.tolist()
    n = len(pool) // 2
    seen = abs(float(a.double().mean() - b.double().mean()))
    gaps = [abs(sum(w) / n - (sum(pool) - sum(w)) / (len(pool) - n)) for w in itertools.combinations(pool, n)]
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def chance_loose(a: Tensor, b: Tensor) -> float:
    gaps, seen = signed_gaps(a, b)
    return sum(abs(gap) >= abs(seen) - 1e-3 for gap in gaps) / len(gaps)


def ways(a: Tensor, b: Tensor) -> int:
    return math.comb(len(a) + len(b), len(a))


RIGHT: dict[str, list[Any]] = {
    "lengths.windows": [
        sliding_windows,
        generated_windows,
        lambda *case: torch.tensor(sliding_windows(*case)),
        lambda *case: np.array(sliding_windows(*case), dtype=float),
        lambda *case: sliding_windows(*case)[::-1],
        lambda *case: tuple(map(np.array, sliding_windows(*case))),
        short_move_first,
    ],
    "lengths.beyond": [beyond_by_sums, beyond_by_loop, beyond_by_solving, beyond_in_fractions],
    "lengths.blind_mean": [blind_by_list, blind_in_numpy, blind_by_parts, blind_exact, as_decimal],
    "lengths.cliff": [cliff_by_squares, cliff_by_medians, cliff_by_wandering],
    "lengths.by_chance": [
        chance,
        chance_by_bits,
        chance_by_sums,
        chance_by_orders,
        lambda a, b: Decimal(chance(a, b)),
        lambda a, b: np.longdouble(chance(a, b)),
        *blind(chance_in_fractions, chance_table, chance_bits),
    ],
}

WRONG: dict[str, list[Any]] = {
    "lengths.windows": [
        ("every window counts all", regular(lambda L, s: 0, lambda L, s: 0), "at position 32 counts 2 times"),
        (
            "no overlap",
            lambda total, length, stride: [(start, 0) for start in range(0, total - length + 1, length)],
            "your windows don't overlap",
        ),
        (
            "no first losses",
            regular(lambda L, s: L - s, lambda L, s: L - s),
            "the first 32 losses aren't counted in any window",
        ),
        ("no rest", regular(lambda L, s: 0, lambda L, s: L - s), "the last 4 losses aren't counted in any window"),
        (
            "past the end",
            lambda total, length, stride: [
                (start, length - stride if start else 0) for start in range(0, total - length + stride, stride)
            ],
            "the window at 64 reaches from 64 to 127, but the text only has positions 0 to 99",
        ),
        (
            "every position a window",
            lambda total, length, stride: [(start, length - stride if start else 0) for start in range(0, total, stride)],
            "only has positions 0 to 511",
        ),
        (
            "position in the text",
            planned(lambda start, first, *_: (start, start + first)),
            "It should be a position in the window",
        ),
        ("how many count", planned(lambda start, first, total, length, stride: (start, length - first - 1)), "more than once"),
        ("one too many", planned(lambda start, first, *_: (start, first - 1)), "count more than once"),
        (
            "one too few",
            planned(lambda start, first, *_: (start, first + 1)),
            "aren't counted in any window. The first one is at position 64",
        ),
        (
            "the rest counted twice",
            planned(lambda start, first, total, length, stride: (start, length - stride)),
            "windows(100, 64, 32): 28 of 100 losses count more than once. The first one is at position 68.",
        ),
        ("too many", lambda total, length, stride: sliding_windows(total, length, 1), "you use 449 windows, and 15 are enough"),
        (
            "long moves",
            lambda total, length, stride: sliding_windows(total, length, stride + 8),
            "position 64 has 24 tokens before it in its window, but it should have 32",
        ),
        ("outside of the window", lambda *_: [(0, 64)], "first = 64"),
        ("three numbers", lambda *_: [(0, 0, 64)], "has shape (1, 3), but it should be (any, 2)"),
        ("numbers", lambda *_: [0, 32], "it should be (any, 2)"),
        ("halves", lambda *_: [(0, 0.5)], "should be whole numbers, but they contain 0.5"),
        ("a number", lambda *_: 3, "it should be (any, 2)"),
        ("nothing in it", lambda *_: [], "it should be (any, 2)"),
        ("without end", lambda *_: ((0, 0) for _ in itertools.count()), "times"),
        ("text", lambda *_: "every half window, from the middle on", "isn't a table of numbers"),
    ],
    "lengths.beyond": [
        ("doubling", lambda n, m: [m[0], *(2 * m[1:] - m[:-1])], "twice the one before"),
        ("without the first", lambda n, m: beyond_by_loop(n, m)[1:], "has shape"),
        ("the last alone", lambda n, m: beyond_by_loop(n, m)[-1], "has shape"),
        ("only the last taken apart", last_two_only, "only the mean over the longest window"),
        ("rounded", lambda n, m: [round(x, 2) for x in beyond_by_loop(n, m)], "rounded to 2 decimals"),
        ("backwards", lambda n, m: beyond_by_loop(n, m)[::-1], "in reverse order"),
        (
            "more than before",
            lambda n, m: [m[0], *(x - y for x, y in zip(beyond_by_loop(n, m)[1:], m, strict=False))],
            "larger each loss is than the mean before",
        ),
        ("whole numbers", lambda n, m: [x // 1 for x in beyond_by_loop(n, m)], "rounded down to a whole number"),
        ("minus", lambda n, m: -beyond_by_sums(n, m), "wrong sign"),
    ],
    "lengths.blind_mean": [
        (
            "negative rest",
            lambda x, s, n, k: (float(x[n - k :].sum()) + (k - len(x[n - k :])) * s) / k,
            "right for long windows",
        ),
        ("the first of a window", minus_zero_slice, "the first `stride` positions"),
        ("every position", lambda x, s, n, k: (x.tolist() + [s] * n)[:n], "returned a list"),
        ("all of them", lambda x, s, n, k: blind_by_list(x, s, n, n), "You count every position"),
        (
            "no settled ones",
            lambda x, s, n, k: float(x[n - k : n].mean()) if n - k < len(x) else s,
            "but not for: long windows",
        ),
        ("one more and its length", lambda x, s, n, k: blind_by_list(x, s, n, min(k + 1, n)), "one position too many"),
        ("in whole nats", lambda x, s, n, k: round(blind_by_list(x, s, n, k)), "rounded to a whole number"),
        ("the last as settled", lambda x, s, n, k: blind_by_list(x, float(x[-1]), n, k), "you continue with its last number"),
        ("a bool", lambda x, s, n, k: blind_by_list(x, s, n, k) > s, "returned a bool"),
    ],
    "lengths.cliff": [
        ("not subtracted", lambda x, y: fitted(x, 0.3), "the model's own curve"),
        ("exchanged", lambda x, y: fitted(y - x, 0.3), "You have swapped the two curves"),
        ("logarithms", lambda x, y: fitted(x.clamp(min=0.01).log() - y.clamp(min=0.01).log(), 0.25), None),
        ("a running mean", trailing, "too late"),
        ("a running mean, taken back too far", lambda x, y: trailing(x, y, width=24, ahead=True), "too early"),
        ("five in a row", most_above, "if one model is better from the start"),
        ("above half a nat", lambda x, y: int(((x - y) > 0.5).double().argmax()), "misled by one odd byte"),
        ("the last good position", change_of_sign, None),
        ("any rise", lambda x, y: fitted(x - y, 0.0), "a cliff where there is none"),
        ("a drift as well", lambda x, y: fitted(x - y, 0.12), "a cliff where there is none"),
        ("only large ones", lambda x, y: fitted(x - y, 0.85), "You miss a cliff"),
        ("no cliff is the last position", lambda x, y: min(cliff_by_squares(x, y), len(x) - 24), "where there is none"),
        ("one too few without a cliff", lambda x, y: min(cliff_by_squares(x, y), len(x) - 1), "where there is none"),
        ("whether", lambda x, y: cliff_by_squares(x, y) < len(x), "returned a bool"),
        ("a share", lambda x, y: cliff_by_squares(x, y) / len(x), "should return a whole number"),
        ("by magnitude", lambda x, y: fitted((x - y).abs(), 0.3), "a model that improves by a nat"),
    ],
    "lengths.by_chance": [
        ("a sample", sampled, None),
        ("whether they overlap", lambda a, b: bool(a.max() < b.min() or b.max() < a.min()), "returned a bool"),
        ("no tolerance", lambda a, b: chance(a, b, lambda way, seen: abs(way) >= abs(seen)), "ounding"),
        ("gap over spread", lambda a, b: abs(a.mean() - b.mean()) / (torch.cat([a, b]).std() + 1e-9), None),
        ("in hundredths", lambda a, b: round(chance(a, b), 2), "rounded to 2 decimals"),
        *blind(
            ("the seen direction only", chance_seen_side, "only one direction"),
            ("one direction, doubled", lambda a, b: min(1.0, 2 * chance_seen_side(a, b)), "share of one direction"),
            ("rounding decides", chance_rounding, "rounding decides"),
            ("numbers instead of places", chance_values, "for numbers that are all equal, raised ZeroDivisionError"),
            ("equal ways once", chance_set, "ways that look alike only once"),
            ("always half", chance_half, "You always choose half"),
            ("too generous", chance_loose, "tolerance is too large"),
        ),
    ],
}
