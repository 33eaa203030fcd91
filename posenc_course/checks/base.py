"""Exercises on the base: the smallest that orders a whole text, a base by its turns or its neighbours, and lost digits."""

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.geometry import distance
from posenc_course.sinusoidal import frequencies

_STEPS = "Nearly: from the first of 100 tokens to the last there are 99 steps."
_DEGREES = "Something is in degrees here: a full turn is 2π radians, half of one π."
_WHOLE = "You rounded to a whole number: a base need not be one."


@exercise("my_base")
def smallest() -> Exercise:
    """my_base(length, d_model) -> the smallest base whose slowest pair turns at most half a turn in `length` tokens."""
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
            "a step too many": (lambda n, d: right(n + 1, d), _STEPS),
            "a full turn": (lambda n, d: right(n, d, 2 * math.pi),
                "This base lets the slowest pair make a full turn: half of one was asked for."),
            "a quarter turn": (lambda n, d: right(n, d, math.pi / 2),
                "With this base the slowest pair makes a quarter turn: half of one was asked for, so a smaller base will do."),
            "a radian": (lambda n, d: right(n, d, 1), "With this base the slowest pair turns by 1: half a turn is π radians."),
            "degrees": (lambda n, d: right(n, d, 180), _DEGREES),
            "degrees of the base": (lambda n, d: math.radians(right(n, d)), _DEGREES),
            "no width": (by(lambda d: 1),
                "Your slowest pair turns at 1/base; the table's is faster, as i stops before d/2. Where's the width in it?"),
            "no width, a full turn": (lambda n, d: (n - 1) / (2 * math.pi),
                "Your slowest pair turns at 1/base and makes a full turn: the table's is faster, and shall make half of one."),
            "upside down": (by(lambda d: (d - 2) / d),
                "The width comes in upside down: base^((d-2)/d) has to grow with the text, so what is the base itself?"),
            "columns": (by(lambda d: d / (d - 1)),
                "Your exponent counts columns: the slowest pair begins at column d - 2, so its frequency is base^(-(d-2)/d)."),
            "2 twice": (by(lambda d: d / (2 * (d - 2))),
                "Your exponent has a factor of 2 too many: the last pair begins at column d - 2, which already is 2i."),
            "one over": (lambda n, d: 1 / right(n, d),
                "This is one over the base: a base is above 1, or the pairs do not slow down."),
            "the frequency": (lambda n, d: math.pi / (n - 1),
                "That is the frequency of the slowest pair: which base, above 1, gives it?"),
            **{f"{whole.__name__}": (lambda n, d, whole=whole: float(whole(right(n, d))), _WHOLE)
               for whole in (math.floor, round, math.ceil)},
        },
        praise=f"all {len(cases)} bases, for narrow and wide tables, from 50 tokens to 131,072.",
        tolerance=2e-6,
    )  # fmt: skip


@exercise("base_for_turns")
def for_turns(seed: int) -> Exercise:
    """base_for_turns(length, d_model, count) -> the largest base for which count pairs turn fully in the text."""
    chance = random.Random(seed)

    def right(length: float, d: int, count: int, *, turn: float = 2 * math.pi) -> float:
        """(length - 1)·base^(-2(count - 1)/d) = turn, solved for the base."""
        return float(((length - 1) / turn) ** (d / (2 * (count - 1))))

    def by(exponent: Callable[[int, int], float], turn: float = 2 * math.pi) -> Callable[[int, int, int], float]:
        """What the number of turns, to the power that exponent(d, count) gives, is."""
        return lambda n, d, count: float(((n - 1) / turn) ** exponent(d, count))

    return Exercise(
        cases={
            "two pairs of four": (100, 8, 2),
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
                "You make pair i = count turn fully: counted from 0, that is one pair more than asked for."),
            "both": (lambda n, d, count: right(n + 1, d, count + 1),
                "Two things are off by one: the steps between the tokens, and the number of the pair that decides."),
            "half a turn": (lambda n, d, count: right(n, d, count, turn=math.pi),
                "With this base they make half a turn: a full one was asked for."),
            "a radian": (lambda n, d, count: right(n, d, count, turn=1),
                "A full turn is 2π radians: with this base, they turn by 1."),
            "degrees": (lambda n, d, count: right(n, d, count, turn=360), _DEGREES),
            "all pairs": (lambda n, d, count: right(n, d, d // 2),
                "This base lets all pairs turn fully; `count` of them are enough."),
            "all pairs, half a turn": (lambda n, d, count: right(n, d, d // 2, turn=math.pi),
                "This is the chapter's exercise: there the slowest pair made half a turn, here `count` pairs make a full one."),
            "count turns": (lambda n, d, count: right(n, d, d // 2, turn=2 * math.pi * count),
                "You ask one pair, the slowest, for `count` turns: `count` is a number of pairs."),
            "from the slowest": (by(lambda d, count: d / (2 * max(d // 2 - count, 1))),
                "You count the pairs from the slowest: the `count` fastest are the first to turn fully."),
            "no 2": (by(lambda d, count: d / (count - 1)),
                "Your exponent has lost a factor of 2: the frequency of pair i is base^(-2i/d)."),
            "2 twice": (by(lambda d, count: d / (4 * (count - 1))),
                "Your exponent has a factor of 2 too many: it is 2i/d, with i counting pairs."),
            "one over": (lambda n, d, count: 1 / right(n, d, count),
                "This is one over the base: a sign of the exponent is the wrong way."),
            "upside down": (by(lambda d, count: 2 * (count - 1) / d),
                "The exponent is upside down: base^(2i/d) has to grow with the text, so what is the base itself?"),
            **{whole.__name__: (lambda n, d, count, whole=whole: float(whole(right(n, d, count))), _WHOLE)
               for whole in (math.floor, round, math.ceil)},
        },
        praise="all seven bases: one pair decides, and the faster ones follow.",
        tolerance=1e-5,
    )  # fmt: skip


def _neighbours(d_model: int, base: float) -> float:
    return float(distance([1], d_model, base))


@exercise("base_for_neighbours")
def for_neighbours(seed: int) -> Exercise:
    """base_for_neighbours(d_model, apart) -> the largest base that keeps neighbours this far apart, to one percent."""
    chance = random.Random(seed)
    # A base is chosen, and its own distance asked for: so the answer is known, and lies in the range that the exercise names.
    bases = {
        "an answer of 10,000": (64, 1e4),
        "an answer of 10": (128, 10.0),
        "an answer below 2": (64, 1.6),
        "an answer between 3 and 4": (32, 3.4),
        "an answer near the upper end": (256, 6e11),
        "a small base": (24, chance.randrange(11, 28) + 0.3),
        "a base of any size": (128, 10 ** chance.uniform(2, 8)),
        "a large base": (256, 10 ** chance.uniform(7, 10)),
    }
    cases = {name: (d, _neighbours(d, base)) for name, (d, base) in bases.items()}
    truth = {case: base for case, (_, base) in zip(cases.values(), bases.values(), strict=True)}

    def held(base: float) -> float:
        """Within the range that the exercise names, unless it is no base: whoever goes astray arrives at an end of his own."""
        return base if base < 0.9 else min(max(base, 1.1), 1e12)

    def right(d: int, apart: float) -> float:
        return truth[d, apart]

    def by(
        far: Callable[[int, float], float], steps: int = 16, low: float = 1.1, plain: bool = False
    ) -> Callable[[int, float], float]:
        """The largest base at which what far(d, base) gives, falling with the base, is enough; found by so many halvings."""

        def base(d: int, apart: float) -> float:
            least, most = low, 1e12
            for _ in range(steps):
                middle = (least + most) / 2 if plain else math.sqrt(least * most)
                least, most = (middle, most) if far(d, middle) >= apart else (least, middle)
            return least

        return base

    def wrong_half(d: int, apart: float) -> float:
        return by(lambda d, base: -_neighbours(d, base))(d, -apart)

    def chord(d: int, base: float) -> float:
        return float(frequencies(d, base).sin().square().sum().sqrt()) * 2

    too_soon = "You stop halving too soon: the base has to be right to one percent."
    small = (
        "Small bases come out too coarse: between 1 and 10^12 a plain middle takes long to come down to them. Halve the power "
        "of ten instead, or go on."
    )
    the_end = "Your search ends below 10^12, where some of the answers lie above."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the smallest": (lambda d, apart: 1.1,
                "Your answer is always the smallest base that you try: is your distance too small, or do you go on in the "
                "wrong half?"),
            "the largest": (lambda d, apart: 1e12,
                "Your answer is always the largest base that you try: in which half do you go on?"),
            "the wrong half": (wrong_half,
                "You go on in the wrong half, and so end at an end: if neighbours are far enough apart, is the base to grow or "
                "to fall?"),
            "from 2": (lambda d, apart: max(right(d, apart), 2.0), "Your search begins at 2, and a base can be smaller."),
            **{whole.__name__: (lambda d, apart, whole=whole: float(whole(right(d, apart))), _WHOLE)
               for whole in (math.floor, round, math.ceil)},
            "powers of ten": (lambda d, apart: 10.0 ** math.floor(math.log10(right(d, apart) * 1.0001)),
                "You try powers of ten only: the base has to be right to one percent."),
            **{f"up to 10^{k}": (lambda d, apart, k=k: min(right(d, apart), 10.0**k), the_end) for k in (4, 5, 6, 8, 9, 10)},
            **{f"{steps} halvings": (by(_neighbours, steps), too_soon) for steps in range(4, 10)},
            **{f"{steps} plain halvings from {low}": (by(_neighbours, steps, low, plain=True), small)
               for steps in (20, 30, 40) for low in (1.0, 1.1)},
            "power": (lambda d, apart: math.log10(right(d, apart)), "This is the power of ten: the base itself was asked for."),
            "logarithm": (lambda d, apart: math.log(right(d, apart)),
                "This is the logarithm of the base: the base itself was asked for."),
            "one over": (lambda d, apart: 1 / right(d, apart), "This is one over the base: the slowest frequency, nearly."),
            "squared": (by(lambda d, base: _neighbours(d, base) ** 2),
                "You compare the square of the distance: a root is missing."),
            "half": (by(lambda d, base: _neighbours(d, base) / 2),
                "Your distance has lost its factor of 2: a chord is 2·sin of half the angle."),
            "whole angle": (by(chord), "A chord is 2·sin of *half* the angle."),
            "along the arc": (by(lambda d, base: float(frequencies(d, base).square().sum().sqrt())),
                "You measure along the arc, and the distance is along the chord."),
            "d frequencies": (by(lambda d, base: _neighbours(2 * d, base)), "You take d frequencies: there are d/2 pairs."),
        },
        praise=f"all {len(cases)} bases, narrow and wide, from 1.6 upwards.",
        same=lambda known, said: math.isclose(held(known), held(said), rel_tol=0.0105),
    )  # fmt: skip


@exercise()
def survivors(seed: int) -> Exercise:
    """survivors(length, bits) -> how many numbers positions become in so many binary digits, for up to 50,000 positions."""
    chance = random.Random(seed)
    cases = {
        "bfloat16's digits": (4096, 8),
        "a last position that is rounded up": (4098, 8),
        "a few more than 256": (258, 8),
        "float16's digits": (3000, 11),
        "twenty positions in 3 digits": (20, 3),
        "nothing to be rounded": (8, 3),
        "the last one halfway": (1 + (chance.randrange(5, 30) * 2 + 1) * 16, 5),
        "two digits": (chance.randrange(150, 200), 2),
        "a single position": (1, 4),
        "12 digits of a long text": (chance.randrange(5000, 20_000), 12),
        "6 digits of the longest text": (50_000, 6),
    }

    def all_of(length: int, bits: int, nearest: Callable[[Any], Any] = np.rint) -> Any:
        """What becomes of each position, and its step: division by a power of two is exact, so nothing but `nearest` rounds."""
        m = np.arange(length)
        step = 2.0 ** np.maximum(np.frexp(m)[1] - bits, 0)
        return nearest(m / step), step

    def rounded(length: int, bits: int, nearest: Callable[[Any], Any] = np.rint) -> int:
        return len(np.unique(np.prod(all_of(length, bits, nearest), axis=0)))

    def one_step(length: int, bits: int) -> int:
        return len(np.unique(np.rint(np.arange(length) / 2.0 ** max((length - 1).bit_length() - bits, 0))))

    def alone(length: int, bits: int) -> int:
        return int((np.unique(np.prod(all_of(length, bits), axis=0), return_counts=True)[1] == 1).sum())

    ready = "You round to one of PyTorch's own kinds of numbers, and none has just any number of digits."
    return Exercise(
        cases=cases,
        right=rounded,
        mistakes={
            "cut off": (lambda n, bits: rounded(n, bits, np.floor),
                "You cut digits off, or count positions that stay as they are: the nearest can be the one above, also at the "
                "end."),
            "half up": (lambda n, bits: rounded(n, bits, lambda x: np.floor(x + 0.5)),
                "Where two numbers are equally near you take the upper one: it is the one whose last digit is 0."),
            "up": (lambda n, bits: rounded(n, bits, np.ceil), "You always round up: rounding is to the nearest."),
            "a digit less": (lambda n, bits: rounded(n, bits - 1),
                "One digit too few: do you count digits after the point? The one before it counts too."),
            "a digit more": (lambda n, bits: rounded(n, bits + 1),
                "One digit too many: m.bit_length() digits minus `bits` are to go."),
            "length": (lambda n, bits: rounded(n + 1, bits), "The positions end at length - 1."),
            "no 0": (lambda n, bits: rounded(n, bits) - 1, "One too few: is 0 among them?"),
            "exact ones": (lambda n, bits: min(n, 2**bits),
                "You stop where every number is exact. Beyond, some are left: every second, every fourth, …"),
            "all": (lambda n, bits: n, "Nothing is rounded: what happens to 9 = 1001₂, in 3 digits?"),
            "one step": (one_step,
                "You take one step for all positions, that of the last: small ones are rounded less, or not at all."),
            "digits": (lambda n, bits: len(np.unique(all_of(n, bits)[0])),
                "You count the digits without their place: 1.01₂ · 2² and 1.01₂ · 2³ are two numbers."),
            "lost": (lambda n, bits: n - rounded(n, bits), "You count those that are lost."),
            "alone": (alone,
                "You count the numbers that one position alone becomes: one that several become is left too, and counts once."),
            "decimal": (lambda n, bits: len({f"{m:.{bits - 1}e}" for m in range(n)}),
                "You round to decimal digits: `bits` counts binary ones."),
            "bfloat16": (lambda n, bits: rounded(n, 8), ready),
            "float16": (lambda n, bits: rounded(n, 11), ready),
            "whichever has enough": (lambda n, bits: rounded(n, 8 if bits <= 8 else 11 if bits <= 11 else 24), ready),
        },
        praise=f"all {len(cases)} counts, in 2 to 12 digits.",
    )  # fmt: skip
