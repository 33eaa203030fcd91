"""Answers to the exercises on the base."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.geometry import distance, rotating_pairs
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.answers import blind


def smallest_base(length: int, d: int, turn: float = math.pi) -> float:
    return float(((length - 1) / turn) ** (d / (d - 2)))


def bisected_base(length: int, d: int) -> float:
    low, high = 1.0, 1e10
    for _ in range(200):
        middle = (low + high) / 2
        too_fast = frequencies(d, middle)[-1] * (length - 1) > math.pi
        low, high = (middle, high) if too_fast else (low, middle)
    return high


def for_turns(length: int, d: int, count: int, turn: float = 2 * math.pi) -> float:
    return float(((length - 1) / turn) ** (d / (2 * (count - 1))))


def by_logarithm(length: int, d: int, count: int) -> torch.Tensor:
    i = torch.tensor(count - 1.0, dtype=torch.float64)
    return torch.exp((math.log(length - 1) - math.log(2 * math.pi)) * d / (2 * i))


def by_bisection(length: int, d: int, count: int) -> float:
    low, high = 1.0001, 1e60
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if rotating_pairs(length, d, middle) >= count else (low, middle)
    return low


def near(d: int, base: float) -> float:
    return float(distance([1], d, base))


def halved(d: int, apart: float, far: Callable[[int, float], float] = near, steps: int = 40) -> float:
    low, high = 1.1, 1e12
    for _ in range(steps):
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


def turns_by_logarithm(length: int, d_model: int, count: int) -> float:
    log = np.log(length - 1) - np.log(2 * np.pi)
    return np.exp(log / (2 * (count - 1)) * d_model)


def turns_by_halving(length: int, d_model: int, count: int) -> float:
    """Count the pairs, on ever finer bases."""
    low, high = 0.0, 400.0
    for _ in range(300):
        x = (low + high) / 2
        fast = sum((length - 1) * math.exp(-2 * i / d_model * x) >= 2 * math.pi for i in range(d_model // 2))
        low, high = (x, high) if fast >= count else (low, x)
    return math.exp(low)


def slow_pairs(length: int, d_model: int, count: int) -> float:
    i = max(d_model // 2 - count, 1)
    return ((length - 1) / (2 * math.pi)) ** (d_model / (2 * i))


def halved_powers(d_model: int, apart: float) -> Tensor:
    """Halve in logarithms, by the formula itself."""
    low, high = torch.tensor(0.0).double(), torch.tensor(13.0).double()
    i = torch.arange(d_model // 2).double()
    for _ in range(100):
        x = (low + high) / 2
        far = 2 * torch.linalg.vector_norm(torch.sin(10 ** (-2 * i / d_model * x) / 2))
        low, high = (x, high) if far > apart else (low, x)
    return 10**low


def fine_ladder(d_model: int, apart: float) -> float:
    """Climb by tenths, then hundredths and thousandths of a power."""
    x = 0.0
    for step in (1, 0.1, 0.01, 0.001):
        while float(distance([1], d_model, 10 ** (x + step))) >= apart:
            x += step
    return 10 ** (x + 0.0005)


def halve_plainly(d_model: int, apart: float, steps: int = 40) -> float:
    low, high = 1.0, 1e12
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if float(distance([1], d_model, middle)) >= apart else (low, middle)
    return low


def powers_of_ten(d_model: int, apart: float) -> float:
    return max([1.1] + [10.0**k for k in range(13) if float(distance([1], d_model, 10.0**k)) >= apart])


def wrong_way(d_model: int, apart: float) -> float:
    low, high = 1.0, 1e12
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if float(distance([1], d_model, middle)) >= apart else (middle, high)
    return low


def _solve(far: Callable[[float], float], apart: float) -> float:
    low, high = 1.0, 1e13
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if far(middle) >= apart else (low, middle)
    return low


def _omega(d_model: int, base: float) -> Tensor:
    return base ** (-2 * torch.arange(d_model // 2).double() / d_model)


def up_to_the_last(length: int, bits: int) -> int:
    """Count the numbers that exist, up to what the last position becomes."""
    if length < 1:
        return 0
    last = length - 1
    step = 2 ** max(last.bit_length() - bits, 0)
    last = round(Fraction(last, step)) * step
    return sum(1 for n in range(last + 1) if n == 0 or len(bin(n)[2:].rstrip("0")) <= bits)


def mantissas(length: int, bits: int) -> int:
    m, e = np.frexp(np.arange(length).astype(float))
    return len(np.unique(np.ldexp(np.rint(m * 2.0**bits), e)))


def half_up(length: int, bits: int) -> int:
    found = set()
    for m in range(length):
        step = 2 ** max(m.bit_length() - bits, 0)
        found.add((2 * m + step) // (2 * step) * step if step > 1 else m)
    return len(found)


def unharmed(length: int, bits: int) -> int:
    return sum(m % 2 ** max(m.bit_length() - bits, 0) == 0 for m in range(length))


def alone(length: int, bits: int) -> int:
    found = Counter(round(m / (s := 2 ** max(m.bit_length() - bits, 0))) * s for m in range(length))
    return sum(n == 1 for n in found.values())


def ready_kinds(length: int, bits: int) -> int:
    kind = torch.bfloat16 if bits <= 8 else torch.float16 if bits <= 11 else torch.float32
    return len(torch.arange(length).to(kind).unique())


def mantissas_not_values(length: int, bits: int) -> int:
    return len({round(m / 2 ** max(m.bit_length() - bits, 0)) for m in range(length)})


def ceiling_log(length: int, bits: int) -> int:
    found = {0}
    for m in range(1, length):
        step = 2 ** max(math.ceil(math.log2(m)) - bits, 0)
        found.add(round(m / step) * step)
    return len(found)


def one_step_for_all(length: int, bits: int) -> int:
    step = 2 ** max((length - 1).bit_length() - bits, 0)
    return len({round(m / step) for m in range(length)})


RIGHT: dict[str, list[Any]] = {
    "base.smallest": [
        smallest_base,
        bisected_base,
        lambda L, d: math.exp(d / (d - 2) * math.log((L - 1) / math.pi)),
        lambda L, d: torch.tensor((L - 1) / torch.pi) ** (d / (d - 2)),  # float32
        lambda L, d: np.array([smallest_base(L, d)]),
        lambda L, d: np.power((L - 1) / np.pi, d / (d - 2)),
    ],
    "base.for_turns": [
        for_turns,
        by_logarithm,
        by_bisection,
        lambda *case: np.array([for_turns(*case)]),
        *blind(turns_by_logarithm, turns_by_halving),
    ],
    "base.for_neighbours": [halved, by_list, by_table, *blind(halved_powers, fine_ladder)],
    "base.survivors": [survivors, by_frexp, by_shifts, by_counting, *blind(up_to_the_last, mantissas, ceiling_log)],
}

WRONG: dict[str, list[Any]] = {
    "base.smallest": [
        ("one less", lambda L, d: smallest_base(L, d) - 1, "1 too small"),
        ("10,000", lambda L, d: 10_000, "10000 whatever your function is given"),
        ("not a number", lambda L, d: math.nan, "returned nan"),
        ("two numbers", lambda L, d: torch.ones(2), "returned (2,) numbers"),
        ("text", lambda L, d: "10000", "returned a str"),
        ("a truth", lambda L, d: True, "returned a bool"),
    ],
    "base.for_turns": [
        ("a pair", lambda L, d, n: [L, d], "should return one number"),
        ("within a thousandth", lambda L, d, n: float(f"{for_turns(L, d, n):.3g}"), "Do you round something"),
        *blind(
            ("length for steps", lambda L, d, n: (L / (2 * math.pi)) ** (d / (2 * (n - 1))), "there are only 99 steps"),
            ("pair number count", lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (d / (2 * n)), "counted from 0"),
            ("half a turn each", lambda L, d, n: ((L - 1) / math.pi) ** (d / (2 * (n - 1))), "only half a rotation"),
            ("slowest pair", lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (d / (d - 2)), "all pairs complete a rotation"),
            ("whole number", lambda L, d, n: int(for_turns(L, d, n)), "You rounded"),
            ("2 of the exponent", lambda L, d, n: ((L - 1) / (2 * math.pi)) ** (d / (n - 1)), "lost a factor of 2"),
            ("count turns", lambda L, d, n: ((L - 1) / (2 * math.pi * n)) ** (d / (d - 2)), "is a number of pairs"),
            ("a radian each", lambda L, d, n: (L - 1) ** (d / (2 * (n - 1))), "rotates by only 1 radian"),
            ("slow pairs counted", slow_pairs, "from the slowest"),
        ),
    ],
    "base.for_neighbours": [
        ("per channel", lambda d, apart: halved(d, apart, lambda d, b: near(d, b) / d**0.5), "compute too small"),
        ("coarse", lambda d, apart: 10.0 ** math.floor(math.log10(halved(d, apart)) - 0.01), None),
        ("from 2", lambda d, apart: max(halved(d, apart), 2), "begins at 2"),
        ("two percent off", lambda d, apart: 0.98 * halved(d, apart), "0.98"),
        *blind(
            ("plain halving", halve_plainly, "aren't precise enough"),
            ("powers of ten", powers_of_ten, "base must be a finite number > 1"),
            ("wrong half", wrong_way, "base must be a finite number > 1"),
            ("half of the angle", lambda d, apart: _solve(lambda b: float(2 * _omega(d, b).sin().norm()), apart),
             "*half* its angle"),
            ("no root", lambda d, apart: _solve(lambda b: float(distance([1], d, b)) ** 2, apart), "A square root is missing"),
            ("no 2", lambda d, apart: _solve(lambda b: float((_omega(d, b) / 2).sin().norm()), apart), "lost a factor of 2"),
            ("small angles", lambda d, apart: _solve(lambda b: float(_omega(d, b).norm()), apart), "the lengths of arcs"),
            ("to a million", lambda d, apart: min(halved(d, apart), 1e6), "Your search range is too small"),
            ("seven halvings", lambda d, apart: halved(d, apart, steps=7), "stop halving too soon"),
            ("whole numbers", lambda d, apart: round(halved(d, apart)), "You rounded"),
            ("always 10,000", lambda d, apart: 10_000.0, "10000 whatever your function is given"),
        ),
    ],
    "base.survivors": [
        ("float16", lambda n, bits: len(torch.arange(n).half().unique()), "PyTorch's own number formats"),
        ("the numbers", lambda n, bits: torch.arange(n), "numbers, but it should return one number"),
        *blind(
            ("digits cut off", lambda n, bits: survivors(n, bits, math.floor), "You cut off digits"),
            ("halves upwards", half_up, "equally near"),
            ("unharmed", unharmed, "count only the positions that stay"),
            ("one step for all", one_step_for_all, "as coarsely as the last one"),
            ("hidden digit", lambda n, bits: survivors(n, bits + 1), "one digit too many"),
            ("one digit less", lambda n, bits: survivors(n, bits - 1), "one digit too few"),
            ("2 to the bits", lambda n, bits: min(n, 2**bits), "where the numbers are no longer exact"),
            ("one position more", lambda n, bits: survivors(n + 1, bits), "end at length - 1"),
            ("zero left out", lambda n, bits: survivors(n, bits) - 1, "Do you count 0"),
            ("decimal digits", lambda n, bits: len({float(f"{m:.{bits - 1}e}") for m in range(n)}), "decimal digits"),
            ("alone", alone, "but only once"),
            ("ready kinds", ready_kinds, "PyTorch's own number formats"),
            ("mantissas", mantissas_not_values, "without their exponent"),
        ),
    ],
}  # fmt: skip
