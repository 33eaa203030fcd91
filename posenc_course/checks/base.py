"""Exercises on the base: the smallest base for a text, a base for given turns, and lost digits."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc_course.checks._exercise import Exercise, exercise

_STEPS = "You count one step too many. From the first of 100 tokens to the last, there are only 99 steps."


@exercise("my_base")
def smallest() -> Exercise:
    """my_base(length, d_model) -> the smallest base whose slowest pair rotates at most half a turn in `length` tokens."""
    cases = ((100, 8), (50, 4), (512, 64), (512, 512), (8192, 128), (131_072, 128))

    def right(length: float, d: int, turn: float = math.pi) -> float:
        """base^(-(d-2)/d)·(length - 1) = turn, solved for the base."""
        return float(((length - 1) / turn) ** (d / (d - 2)))

    def by(exponent: Callable[[int], float]) -> Callable[[int, int], float]:
        return lambda length, d: float(((length - 1) / math.pi) ** exponent(d))

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            **{f"{turn:.3g} radians": (lambda n, d, turn=turn: right(n, d, turn),
                "With your base, the slowest pair rotates by a different angle. Half a rotation is π radians.")
               for turn in (1, 2 * math.pi)},
            "upside down": (by(lambda d: (d - 2) / d),
                "Your exponent is upside down. You know base^((d-2)/d). Which power of it is the base?"),
            "no width": (by(lambda d: 1),
                "Your formula gives the slowest pair the frequency 1/base. In the table, this pair is faster, because the "
                "largest i is less than d/2. Where does the width appear in your formula?"),
            "columns": (by(lambda d: d / (d - 1)),
                "Your exponent contains d - 1, the number of the last column. But what is i for the last pair?"),
        },
        praise=f"all {len(cases)} bases are right, for narrow and wide tables and for texts of 50 to 131,072 tokens.",
        tolerance=2e-6,
    )  # fmt: skip


@exercise("base_for_turns")
def for_turns(seed: int) -> Exercise:
    """base_for_turns(length, d_model, count) -> the largest base for which `count` pairs make a full turn in the text."""
    chance = random.Random(seed)

    def right(length: float, d: int, count: int, *, turn: float = 2 * math.pi) -> float:
        """(length - 1)·base^(-2(count - 1)/d) = turn, solved for the base."""
        return float(((length - 1) / turn) ** (d / (2 * (count - 1))))

    def by(exponent: Callable[[int, int], float], turn: float = 2 * math.pi) -> Callable[[int, int, int], float]:
        """The number of turns, to the power of exponent(d, count)."""
        return lambda n, d, count: float(((n - 1) / turn) ** exponent(d, count))

    return Exercise(
        cases={
            "two of four pairs": (100, 8, 2),
            "all four pairs": (100, 8, 4),
            "the shortest text": (10, 4, 2),
            "a wide row": (4096, 128, 40),
            **{
                f"a row of width {d}": (chance.randrange(50, 9000), d, chance.randrange(d // 4 + 1, d // 2))
                for d in (16, 64, 256)
            },
        },
        right=right,
        mistakes={
            "a step too many": (lambda n, d, count: right(n + 1, d, count), _STEPS),
            "a pair more": (by(lambda d, count: d / (2 * count)),
                "With your base, pair i = count completes a rotation. But pairs are counted from 0: one too many."),
            **{f"{turn:.3g} radians": (lambda n, d, count, turn=turn: right(n, d, count, turn=turn),
                "With your base, the slowest of the `count` pairs doesn't complete a rotation, which is 2π radians.")
               for turn in (1, math.pi)},
            "all pairs": (lambda n, d, count: right(n, d, d // 2),
                "With your base, all pairs complete a rotation, but only `count` of them have to."),
            "count turns": (lambda n, d, count: right(n, d, d // 2, turn=2 * math.pi * count),
                "With your base, the slowest pair completes `count` rotations. But `count` is a number of pairs."),
            "no 2": (by(lambda d, count: d / (count - 1)),
                "You lost a factor of 2 in the exponent: the frequency of pair i is base^(-2i/d)."),
        },
        praise="all seven bases are right. In each case, a single pair decides, because all faster pairs complete a rotation, "
               "too.",
        tolerance=1e-5,
    )  # fmt: skip


@exercise()
def survivors(seed: int) -> Exercise:
    """survivors(length, bits) -> how many different numbers are left if up to 50,000 positions are rounded to `bits` digits."""
    chance = random.Random(seed)
    cases = {
        "8 digits, as in bfloat16": (4096, 8),
        "a last position that is rounded up": (4098, 8),
        "a few more than 256 positions": (258, 8),
        "11 digits, as in float16": (3000, 11),
        "twenty positions and 3 digits": (20, 3),
        "positions that need no rounding": (8, 3),
        "a last position halfway between two numbers": (1 + (chance.randrange(5, 30) * 2 + 1) * 16, 5),
        "2 digits": (chance.randrange(150, 200), 2),
        "a single position": (1, 4),
        "12 digits of a long text": (chance.randrange(5000, 20_000), 12),
        "6 digits of the longest text": (50_000, 6),
    }

    def all_of(length: int, bits: int, nearest: Callable[[Any], Any] = np.rint) -> Any:
        """The rounded position and its step. Division by a power of two is exact, so only `nearest` rounds."""
        m = np.arange(length)
        step = 2.0 ** np.maximum(np.frexp(m)[1] - bits, 0)
        return nearest(m / step), step

    def rounded(length: int, bits: int, nearest: Callable[[Any], Any] = np.rint) -> int:
        return len(np.unique(np.prod(all_of(length, bits, nearest), axis=0)))

    def one_step(length: int, bits: int) -> int:
        return len(np.unique(np.rint(np.arange(length) / 2.0 ** max((length - 1).bit_length() - bits, 0))))

    def alone(length: int, bits: int) -> int:
        return int((np.unique(np.prod(all_of(length, bits), axis=0), return_counts=True)[1] == 1).sum())

    return Exercise(
        cases=cases,
        right=rounded,
        mistakes={
            "cut off": (lambda n, bits: rounded(n, bits, np.floor),
                "You cut off digits, or you count only the positions that stay unchanged. But the number nearest to a position "
                "can also be the one above it, even for the last position."),
            **{f"up from {least}": (lambda n, bits, least=least: rounded(n, bits, lambda x: np.floor(x + 1 - least)),
                "You round up too often. Round to the nearest number, and of two that are equally near, take the one whose "
                "last digit is 0.") for least in (0.5, 1e-9)},
            "exact ones": (lambda n, bits: min(n, 2**bits),
                "You stop where the numbers are no longer exact. But beyond that point, some numbers are left: first every "
                "second one, then every fourth, and so on."),
            "one step": (one_step,
                "You round all positions as coarsely as the last one. But smaller positions are rounded less, or not at all."),
            "digits": (lambda n, bits: len(np.unique(all_of(n, bits)[0])),
                "You compare the digits without their exponent. But 1.01₂ · 2² and 1.01₂ · 2³ are different numbers."),
            "alone": (alone,
                "You count only the numbers to which exactly one position is rounded. If several positions are rounded to the "
                "same number, this number counts, too, but only once."),
            "decimal": (lambda n, bits: len({f"{m:.{bits - 1}e}" for m in range(n)}),
                "You round to decimal digits, but `bits` is a number of binary digits."),
        },
        praise=f"all {len(cases)} counts are right, for 2 to 12 digits.",
    )  # fmt: skip
