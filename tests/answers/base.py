"""Answers to the exercises on the base."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.answers import right, wrong


@right("base.smallest")
def smallest_base(length: int, d: int, turn: float = math.pi) -> float:
    return float(((length - 1) / turn) ** (d / (d - 2)))


@right("base.smallest")
def smallest_right(L: Any, d: int) -> Any:
    return math.exp(d / (d - 2) * math.log((L - 1) / math.pi))


@right("base.smallest")
def smallest_right_2(L: Any, d: int) -> Any:
    return torch.tensor((L - 1) / torch.pi) ** (d / (d - 2))


@wrong("base.smallest", "`length + 1`")
def smallest_a_step_too_many(L: int, d: int) -> Any:
    return (L / math.pi) ** (d / (d - 2))


@wrong("base.smallest", "rotates by a different angle")
def smallest_a_full_turn(L: int, d: int) -> Any:
    return smallest_base(L, d, 2 * math.pi)


@wrong("base.smallest", "the frequency 1/base")
def smallest_no_width(L: int, d: int) -> Any:
    return (L - 1) / math.pi


@wrong("base.smallest", "the number of the last column")
def smallest_last_column(L: int, d: int) -> Any:
    return ((L - 1) / math.pi) ** (d / (d - 1))


@wrong("base.smallest", "upside down")
def smallest_upside_down(L: int, d: int) -> Any:
    return ((L - 1) / math.pi) ** ((d - 2) / d)


@right("base.for_turns")
def for_turns(length: int, d: int, count: int, turn: float = 2 * math.pi) -> float:
    return float(((length - 1) / turn) ** (d / (2 * (count - 1))))


@right("base.for_turns")
def by_logarithm(length: int, d: int, count: int) -> torch.Tensor:
    i = torch.tensor(count - 1.0, dtype=torch.float64)
    return torch.exp((math.log(length - 1) - math.log(2 * math.pi)) * d / (2 * i))


@right("base.for_turns")
def turns_by_logarithm(length: int, d_model: int, count: int) -> float:
    log = np.log(length - 1) - np.log(2 * np.pi)
    return np.exp(log / (2 * (count - 1)) * d_model)


@wrong("base.for_turns", "there are only 99 steps")
def for_turns_length_for_steps(L: Any, d: int, n: Any) -> Any:
    return (L / (2 * math.pi)) ** (d / (2 * (n - 1)))


@wrong("base.for_turns", "counted from 0")
def for_turns_pair_number_count(L: Any, d: int, n: Any) -> Any:
    return ((L - 1) / (2 * math.pi)) ** (d / (2 * n))


@wrong("base.for_turns", "doesn't complete a rotation")
def for_turns_half_a_turn_each(L: Any, d: int, n: Any) -> Any:
    return ((L - 1) / math.pi) ** (d / (2 * (n - 1)))


@wrong("base.for_turns", "all pairs complete a rotation")
def for_turns_slowest_pair(L: Any, d: int, n: Any) -> Any:
    return ((L - 1) / (2 * math.pi)) ** (d / (d - 2))


@wrong("base.for_turns", "lost a factor of 2")
def for_turns_2_of_the_exponent(L: Any, d: int, n: Any) -> Any:
    return ((L - 1) / (2 * math.pi)) ** (d / (n - 1))


@wrong("base.for_turns", "is a number of pairs")
def for_turns_count_turns(L: Any, d: int, n: Any) -> Any:
    return ((L - 1) / (2 * math.pi * n)) ** (d / (d - 2))


@right("base.survivors")
def by_frexp(length: int, bits: int) -> int:
    mantissa, exponent = np.frexp(np.arange(length))
    return len(np.unique(np.ldexp(np.rint(mantissa * 2.0**bits), exponent)))


@right("base.survivors")
def mantissas(length: int, bits: int) -> int:
    m, e = np.frexp(np.arange(length).astype(float))
    return len(np.unique(np.ldexp(np.rint(m * 2.0**bits), e)))


@right("base.survivors")
def ceiling_log(length: int, bits: int) -> int:
    found = {0}
    for m in range(1, length):
        step = 2 ** max(math.ceil(math.log2(m)) - bits, 0)
        found.add(round(m / step) * step)
    return len(found)


@wrong("base.survivors", "count only the positions that stay")
def unharmed(length: int, bits: int) -> int:
    return sum(m % 2 ** max(m.bit_length() - bits, 0) == 0 for m in range(length))


@wrong("base.survivors", "as coarsely as the last one")
def one_step_for_all(length: int, bits: int) -> int:
    step = 2 ** max((length - 1).bit_length() - bits, 0)
    return len({round(m / step) for m in range(length)})


@wrong("base.survivors", "where the numbers are no longer exact")
def survivors_2_to_the_bits(n: Any, bits: int) -> Any:
    return min(n, 2**bits)


@wrong("base.survivors", "decimal digits")
def survivors_decimal_digits(n: Any, bits: int) -> Any:
    return len({float(f"{m:.{bits - 1}e}") for m in range(n)})


@wrong("base.survivors", "but only once")
def alone(length: int, bits: int) -> int:
    found = Counter(round(m / (s := 2 ** max(m.bit_length() - bits, 0))) * s for m in range(length))
    return sum(n == 1 for n in found.values())


@wrong("base.survivors", "without their exponent")
def mantissas_not_values(length: int, bits: int) -> int:
    return len({round(m / 2 ** max(m.bit_length() - bits, 0)) for m in range(length)})


def rounded(length: int, bits: int, whole: Callable[[float], float]) -> int:
    steps = {m: 2 ** max(m.bit_length() - bits, 0) for m in range(length)}
    return len({whole(m / step) * step for m, step in steps.items()})


@wrong("base.survivors", "You round up too often")
def survivors_half_up(length: int, bits: int) -> int:
    return rounded(length, bits, lambda x: math.floor(x + 0.5))
