"""Answers to assignment 7: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from posenc_course.geometry import distance, turning_pairs
from posenc_course.sinusoidal import sinusoidal_table


def for_turns(length: int, d: int, count: int, turn: float = 2 * math.pi) -> float:
    return float(((length - 1) / turn) ** (d / (2 * (count - 1))))


def by_logarithm(length: int, d: int, count: int) -> torch.Tensor:
    i = torch.tensor(count - 1.0, dtype=torch.float64)
    return torch.exp((math.log(length - 1) - math.log(2 * math.pi)) * d / (2 * i))


def by_bisection(length: int, d: int, count: int) -> float:
    low, high = 1.0001, 1e60
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if turning_pairs(length, d, middle) >= count else (low, middle)
    return low


def near(d: int, base: float) -> float:
    return float(distance([1], d, base))


def halved(d: int, apart: float, far: Callable[[int, float], float] = near) -> float:
    low, high = 1.1, 1e12
    for _ in range(40):
        middle = (low * high) ** 0.5
        if far(d, middle) >= apart:
            low = middle
        else:
            high = middle
    return low


def by_list(d: int, apart: float) -> np.float64:
    bases = np.logspace(0.01, 12, 8000)
    omega = bases[:, None] ** (-np.arange(0, d, 2) / d)
    return np.float64(bases[(2 * np.sqrt((np.sin(omega / 2) ** 2).sum(axis=1)) >= apart).nonzero()[0][-1]])


def by_table(d: int, apart: float) -> torch.Tensor:
    """From two rows of the table, and by halving the power of ten."""
    low, high = torch.tensor(0.05), torch.tensor(12.0)
    for _ in range(30):
        zero, one = sinusoidal_table([0, 1], d, 10 ** float((low + high) / 2))
        low, high = ((low + high) / 2, high) if (one - zero).norm() >= apart else (low, (low + high) / 2)
    return 10 ** low.double()


def arc(d: int, base: float) -> float:
    return math.sqrt(sum(base ** (-4 * i / d) for i in range(d // 2)))


def survivors(length: int, bits: int, whole: Callable[[float], float] = round) -> int:
    left = set()
    for m in range(length):
        step = 2 ** max(len(f"{m:b}") - bits, 0)
        left.add(whole(m / step) * step)
    return len(left)


def by_frexp(length: int, bits: int) -> int:
    mantissa, exponent = np.frexp(np.arange(length))
    return len(np.unique(np.ldexp(np.rint(mantissa * 2.0**bits), exponent)))


def by_shifts(length: int, bits: int) -> torch.Tensor:
    """In whole numbers: add a little less than half of the last place, or half of it if the last digit is 1."""
    m = torch.arange(length)
    drop = (torch.log2(m.clamp(min=1).double()).floor().long() + 1 - bits).clamp(min=0)
    half = torch.where(drop > 0, (1 << drop) >> 1, 0)
    odd = (m >> drop) & 1
    up = torch.where(drop > 0, half - 1 + odd, 0)
    return torch.tensor(len((((m + up) >> drop) << drop).unique()))


def by_counting(length: int, bits: int) -> int:
    """Without rounding any but the last position."""
    if length <= 2**bits:
        return length
    step = 2 ** ((length - 1).bit_length() - bits)
    below = 2 ** (bits - 1) * ((length - 1).bit_length() - bits)  # to the left of the last power of two
    return below + round((length - 1) / step) + 1


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "base.for_turns": [for_turns, by_logarithm, by_bisection, lambda *case: np.array([for_turns(*case)])],
    "base.for_neighbours": [halved, by_list, by_table],
    "base.survivors": [survivors, by_frexp, by_shifts, by_counting],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "base.for_turns": {
        "a step too many": (lambda L, d, n: for_turns(L + 1, d, n), "there are 99 steps"),
        "pair count": (lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (d / (2 * n)), "one pair more"),
        "both": (lambda L, d, n: (L / (2 * math.pi)) ** (d / (2 * n)), "Two things are off by one"),
        "half a turn": (lambda L, d, n: for_turns(L, d, n, math.pi), "half a turn"),
        "a radian": (lambda L, d, n: for_turns(L, d, n, 1), "2π radians: with this base"),
        "degrees": (lambda L, d, n: for_turns(L, d, n, 360), "in degrees"),
        "all pairs": (lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (d / (d - 2)), "`count` of them are enough"),
        "no 2": (lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (d / (n - 1)), "lost a factor of 2"),
        "2 twice": (lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (d / (4 * (n - 1))), "a factor of 2 too many"),
        "one over": (lambda L, d, n: (2 * math.pi / (L - 1)) ** (d / (2 * (n - 1))), "one over the base"),
        "upside down": (lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (2 * (n - 1) / d), "upside down"),
        "rounded": (lambda *case: round(for_turns(*case)), "You rounded"),
        "rounded down": (lambda *case: int(for_turns(*case)), "You rounded"),
        "rounded up": (lambda *case: math.ceil(for_turns(*case)), "You rounded"),
        "the chapter's exercise": (lambda L, d, n: ((L - 1) / math.pi) ** (d / (d - 2)), None),
        "a pair": (lambda L, d, n: [L, d], "should be one number"),
    },
    "base.for_neighbours": {
        "the power": (lambda d, apart: math.log10(halved(d, apart)), "the power of ten"),
        "the logarithm": (lambda d, apart: math.log(halved(d, apart)), "the logarithm"),
        "one over": (lambda d, apart: 1 / halved(d, apart), "one over the base"),
        "squared": (lambda d, apart: halved(d, apart, lambda d, b: float(distance([1], d, b)) ** 2), "a root is missing"),
        "half a chord": (lambda d, apart: halved(d, apart, lambda d, b: near(d, b) / 2), "lost its factor of 2"),
        "per channel": (lambda d, apart: halved(d, apart, lambda d, b: near(d, b) / d**0.5), "is your distance too small"),
        "the whole angle": (lambda d, apart: halved(d, apart, lambda d, b: float(distance([2], d, b))), "of *half* the angle"),
        "the arc": (lambda d, apart: halved(d, apart, arc), "along the arc"),
        "d frequencies": (lambda d, apart: halved(d, apart, lambda d, b: float(distance([1], 2 * d, b))), "d/2 pairs"),
        "the wrong half": (lambda d, apart: halved(d, -apart, lambda d, b: -near(d, b)), "in the wrong half"),
        "the end": (lambda d, apart: 1.1, "the smallest base that you try"),
        "the other end": (lambda d, apart: 1e12, "the largest base that you try"),
        "10,000": (lambda d, apart: 1e4, "too large, neighbours are then"),
        "coarse": (lambda d, apart: 10.0 ** math.floor(math.log10(halved(d, apart)) - 0.01), "a larger one will do"),
        "not yet": (lambda d, apart: None, "Not tried yet"),
    },
    "base.survivors": {
        "cut off": (lambda n, bits: survivors(n, bits, math.floor), "You cut digits off"),
        "half up": (lambda n, bits: survivors(n, bits, lambda x: int(x + 0.5)), "the upper one"),
        "up": (lambda n, bits: survivors(n, bits, math.ceil), "always round up"),
        "a digit too few": (lambda n, bits: survivors(n, bits - 1), "One digit too few"),
        "a digit too many": (lambda n, bits: survivors(n, bits + 1), "One digit too many"),
        "length included": (lambda n, bits: survivors(n + 1, bits), "end at length - 1"),
        "without 0": (lambda n, bits: survivors(n, bits) - 1, "is 0 among them"),
        "the exact ones": (lambda n, bits: min(n, 2**bits), "You stop where every number is exact"),
        "all": (lambda n, bits: n, "Nothing is rounded"),
        "the lost": (lambda n, bits: n - survivors(n, bits), "those that are lost"),
        "bfloat16": (lambda n, bits: len(torch.arange(n).bfloat16().unique()), "This is bfloat16"),
        "float16": (lambda n, bits: len(torch.arange(n).half().unique()), None),
        "the numbers": (lambda n, bits: torch.arange(n), "numbers, it should be one number"),
    },
}  # fmt: skip
