"""Exercises of chapter 07: the smallest base that orders a whole text, and the assignment on bases and on lost digits."""

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from posenc_course.checks._verdict import Wrong, answer, as_number, check, compare
from posenc_course.geometry import distance
from posenc_course.sinusoidal import frequencies

_NO_BASE = "a base is a finite number above 1, or the pairs do not slow down."
_CASES = ((100, 8), (50, 4), (512, 64), (512, 512), (8192, 128), (131_072, 128))  # length, d_model


@check(draws=False)
def smallest(my_base: Callable[[int, int], Any]) -> str:
    """Try my_base(length, d_model) -> the smallest base whose slowest pair turns at most half a turn in `length` tokens.

    Chapter 07.
    """
    said = [_said(my_base, *case) for case in _CASES]
    if _close(said, _bases()):
        return f"Right: all {len(_CASES)} bases, for narrow and wide tables, from 50 tokens to 131,072."
    return next((hint for known, hint in _mistakes() if _close(said, known)), None) or _first_wrong(said)


def _bases(*, turn: float = math.pi, steps_less: int = 1) -> list[float]:
    """base^(-(d-2)/d)·(length - 1) = turn, solved for the base."""
    return [((length - steps_less) / turn) ** (d / (d - 2)) for length, d in _CASES]


def _mistakes() -> list[tuple[Sequence[float], str]]:
    half_turns = [((length - 1) / math.pi, d) for length, d in _CASES]
    return [
        (_bases(steps_less=0), "Nearly: from the first of 100 tokens to the last there are 99 steps."),
        (_bases(turn=2 * math.pi), "This base lets the slowest pair make a full turn: half of one was asked for."),
        *(([whole(base) for base in _bases()], "You rounded to a whole number: a base need not be one.")
          for whole in (math.floor, round, math.ceil)),
        ([n for n, _ in half_turns],
         "Your slowest pair turns at 1/base; the table's is faster, as i stops before d/2. Where does the width come in?"),
        ([n ** ((d - 2) / d) for n, d in half_turns],
         "The width comes in upside down: base^((d-2)/d) has to grow with the text, so what is the base itself?"),
        ([n ** (d / (d - 1)) for n, d in half_turns],
         "Your exponent counts columns: the slowest pair begins at column d - 2, so its frequency is base^(-(d-2)/d)."),
        ([n ** (d / (2 * (d - 2))) for n, d in half_turns],
         "Your exponent has a factor of 2 too many: the last pair begins at column d - 2, which already is 2i."),
        ([math.radians(base) for base in _bases()], "Something is in degrees here: half a turn is π radians."),
    ]  # fmt: skip


def _said(my_base: Callable[[int, int], Any], length: int, d_model: int) -> float:
    call = f"my_base({length}, {d_model})"
    base = as_number(answer(my_base, length, d_model, call=call), call=call, finite=_NO_BASE)
    if base <= 1:
        raise Wrong(f"{call} returned {base:g}: {_NO_BASE}")
    return base


def _close(said: Sequence[float], known: Sequence[float]) -> bool:
    return all(math.isclose(a, b, rel_tol=2e-6) for a, b in zip(said, known, strict=True))


def _first_wrong(said: list[float]) -> str:
    pairs = zip(_CASES, said, _bases(), strict=True)
    (length, d), base, right = next(pair for pair in pairs if not math.isclose(pair[1], pair[2], rel_tol=2e-6))
    half_turns = (length - 1) / math.pi * base ** (-(d - 2) / d)
    call = f"my_base({length}, {d}) gives {base:,.7g}"
    if base < right:
        return f"{call}: too small, the slowest pair then turns by {half_turns:.3g} half turns."
    return f"{call}: a smaller one will do, with yours the slowest pair turns by only {half_turns:.3g} half turns."


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check()
def for_turns(my_base: Callable[[int, int, int], Any], *, seed: int) -> str:
    """Try my_base(length, d_model, count) -> the largest base for which count pairs turn fully in the text. Chapter 07."""
    chance = random.Random(seed)
    cases = [(100, 8, 2), (100, 8, 4), (4096, 128, 40)]
    cases += [(chance.randrange(50, 9000), d, chance.randrange(d // 4, d // 2)) for d in (16, 64, 256)]

    def largest(length: int, d: int, count: int, *, turn: float = 2 * math.pi) -> float:
        """(length - 1)·base^(-2(count - 1)/d) = turn, solved for the base."""
        return float(((length - 1) / turn) ** (d / (2 * (count - 1))))

    mistakes = [
        (lambda n, d, count: largest(n + 1, d, count), "Nearly: from the first of 100 tokens to the last there are 99 steps."),
        (lambda n, d, count: largest(n, d, count + 1),
         "You make pair i = count turn fully: counted from 0, that is one pair more than asked for."),
        (lambda n, d, count: largest(n + 1, d, count + 1),
         "Two things are off by one: the steps between the tokens, and the number of the pair that decides."),
        (lambda n, d, count: largest(n, d, count, turn=math.pi),
         "With this base they make half a turn: a full one was asked for."),
        (lambda n, d, count: largest(n, d, count, turn=1), "A full turn is 2π radians: with this base, they turn by 1."),
        (lambda n, d, count: largest(n, d, count, turn=360), "Something is in degrees here: a full turn is 2π radians."),
        (lambda n, d, count: largest(n, d, d // 2), "This base lets all pairs turn fully; `count` of them are enough."),
        (lambda n, d, count: largest(n, d, count) ** 2,
         "Your exponent has lost a factor of 2: the frequency of pair i is base^(-2i/d)."),
        (lambda n, d, count: largest(n, d, count) ** 0.5,
         "Your exponent has a factor of 2 too many: it is 2i/d, with i counting pairs."),
        (lambda n, d, count: 1 / largest(n, d, count), "This is one over the base: a sign of the exponent is the wrong way."),
        (lambda n, d, count: ((n - 1) / (2 * math.pi)) ** (2 * (count - 1) / d),
         "The exponent is upside down: base^(2i/d) has to grow with the text, so what is the base itself?"),
        *((lambda n, d, count, whole=whole: float(whole(largest(n, d, count))), "You rounded: a base need not be whole.")
          for whole in (math.floor, round, math.ceil)),
    ]  # fmt: skip
    praise = "all six bases: one pair decides, and the faster ones follow."
    return compare(my_base, cases, largest, mistakes, name="base_for_turns", praise=praise, tolerance=1e-5)


@check()
def for_neighbours(my_base: Callable[[int, float], Any], *, seed: int) -> str:
    """Try my_base(d_model, apart) -> the largest base that keeps neighbours this far apart, to one percent. Chapter 07."""
    chance = random.Random(seed)
    # A base is drawn, and its own distance asked for: so the answer is known, and lies in the range that the exercise names.
    truth = [(64, 1e4), (128, 10.0), (64, 1.5), (128, 10 ** chance.uniform(2, 8)), (24, 10 ** chance.uniform(1, 3))]
    truth += [(256, 10 ** chance.uniform(6, 10))]
    cases = [(d, _neighbours(d, base)) for d, base in truth]
    said = []
    for d, apart in cases:
        call = f"base_for_neighbours({d}, {apart:.6g})"
        base = as_number(answer(my_base, d, apart, call=call), call=call, finite=_NO_BASE)
        if base <= 0:
            raise Wrong(f"{call} returned {base:g}: {_NO_BASE}")
        said.append(base)

    def agree(known: Callable[[int, float, float], float]) -> bool:
        """Beyond the ends of the range all is one: who goes astray arrives at an end of his own."""
        return all(
            math.isclose(_held(mine), _held(known(d, base, apart)), rel_tol=0.012)
            for mine, (d, base), (_, apart) in zip(said, truth, cases, strict=True)
        )

    if agree(lambda d, base, apart: base):
        return "Right: all six bases, narrow and wide, from 1.5 upwards."
    for mistake, hint in _NEIGHBOURS:
        if agree(mistake):
            raise Wrong(hint)
    number = next(
        k for k, (mine, (_, base)) in enumerate(zip(said, truth, strict=True)) if not math.isclose(mine, base, rel_tol=0.012)
    )
    (d, apart), mine, (_, base) = cases[number], said[number], truth[number]
    call = f"base_for_neighbours({d}, {apart:.6g}) gives {mine:,.5g}"
    if mine <= 1:
        raise Wrong(f"{call}: {_NO_BASE}")
    got = _neighbours(d, mine)
    if mine > base:
        raise Wrong(f"{call}: too large, neighbours are then {got:.6g} apart.")
    raise Wrong(f"{call}: a larger one will do by more than a percent, with yours neighbours are {got:.6g} apart.")


def _held(base: float) -> float:
    """Within the range that the exercise names, unless it is no base at all."""
    return base if base < 0.9 else min(max(base, 1.1), 1e12)


def _neighbours(d_model: int, base: float) -> float:
    return float(distance([1], d_model, base))


def _where(asked: Callable[[float], float], apart: float) -> float:
    """The largest base from 1.1 to 10¹² at which what is asked, which falls with the base, is at least apart; or an end."""
    low, high = 1.1, 1e12
    while high / low > 1.0005:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if asked(middle) >= apart else (low, middle)
    return low


_NEIGHBOURS: tuple[tuple[Callable[[int, float, float], float], str], ...] = (
    (lambda d, base, apart: 1.1,
     "Your answer is always the smallest base that you try: is your distance too small, or do you go on in the wrong half?"),
    (lambda d, base, apart: 1e12, "Your answer is always the largest base that you try: in which half do you go on?"),
    (lambda d, base, apart: _where(lambda x: -_neighbours(d, x), -apart),
     "You go on in the wrong half, and so end at an end: if neighbours are far enough apart, is the base to grow or to fall?"),
    *((lambda d, base, apart, whole=whole: float(whole(base)),
       "You rounded: a base need not be whole, and of a small one that is more than a percent.")
      for whole in (math.floor, round, math.ceil)),
    (lambda d, base, apart: math.log10(base), "This is the power of ten: the base itself was asked for."),
    (lambda d, base, apart: math.log(base), "This is the logarithm of the base: the base itself was asked for."),
    (lambda d, base, apart: 1 / base, "This is one over the base: the slowest frequency, nearly."),
    (lambda d, base, apart: _where(lambda x: _neighbours(d, x) ** 2, apart),
     "You compare the square of the distance: a root is missing."),
    (lambda d, base, apart: _where(lambda x: _neighbours(d, x) / 2, apart),
     "Your distance has lost its factor of 2: a chord is 2·sin of half the angle."),
    (lambda d, base, apart: _where(lambda x: float(frequencies(d, x).sin().square().sum().sqrt()) * 2, apart),
     "A chord is 2·sin of *half* the angle."),
    (lambda d, base, apart: _where(lambda x: float(frequencies(d, x).square().sum().sqrt()), apart),
     "You measure along the arc, and the distance is along the chord."),
    (lambda d, base, apart: _where(lambda x: _neighbours(2 * d, x), apart),
     "You take d frequencies: there are d/2 pairs."),
)  # fmt: skip


@check()
def survivors(my_count: Callable[[int, int], Any], *, seed: int) -> str:
    """Try my_count(length, bits) -> how many numbers positions become in so many binary digits, for 3 to 11. Chapter 07."""
    chance = random.Random(seed)
    cases = [(4096, 8), (4098, 8), (258, 8), (3000, 11), (20, 3), (8, 3), (1 + (chance.randrange(5, 30) * 2 + 1) * 16, 5)]
    cases += [(chance.randrange(5000, 20_000), bits) for bits in (4, 6)]

    def rounded(length: int, bits: int, nearest: Callable[[Fraction], int]) -> int:
        """Each position as a fraction of its step, so that nothing but `nearest` rounds."""
        steps = (2 ** max(m.bit_length() - bits, 0) for m in range(length))
        return len({nearest(Fraction(m, step)) * step for m, step in zip(range(length), steps, strict=True)})

    def right(length: int, bits: int) -> int:
        return rounded(length, bits, round)

    def one_step(length: int, bits: int) -> int:
        step = 2 ** max((length - 1).bit_length() - bits, 0)
        return len({round(Fraction(m, step)) for m in range(length)})

    def digits(length: int, bits: int) -> int:
        return len({round(Fraction(m, 2 ** max(m.bit_length() - bits, 0))) for m in range(length)})

    mistakes = [
        (lambda n, bits: rounded(n, bits, math.floor),
         "You cut digits off, or count positions that stay as they are: the nearest can be the one above, also at the end."),
        (lambda n, bits: rounded(n, bits, lambda x: math.floor(x + Fraction(1, 2))),
         "Where two numbers are equally near you take the upper one: it is the one whose last digit is 0."),
        (lambda n, bits: rounded(n, bits, math.ceil), "You always round up: rounding is to the nearest."),
        (lambda n, bits: right(n, bits - 1),
         "One digit too few: do you count digits after the point? The one before it counts too."),
        (lambda n, bits: right(n, bits + 1), "One digit too many: m.bit_length() digits minus `bits` are to go."),
        (lambda n, bits: right(n + 1, bits), "The positions end at length - 1."),
        (lambda n, bits: right(n, bits) - 1, "One too few: is 0 among them?"),
        (lambda n, bits: min(n, 2**bits),
         "You stop where every number is exact. Beyond, some are left: every second, every fourth, …"),
        (lambda n, bits: n, "Nothing is rounded: what happens to 9 = 1001₂, in 3 digits?"),
        (one_step, "You take one step for all positions, that of the last: the small ones are rounded less, or not at all."),
        (digits, "You count the digits without their place: 1.01₂ · 2² and 1.01₂ · 2³ are two numbers."),
        (lambda n, bits: n - right(n, bits), "You count those that are lost."),
        (lambda n, bits: right(n, 8), "This is bfloat16, whatever `bits` is."),
    ]  # fmt: skip
    praise = "all nine counts, in 3 to 11 digits."
    return compare(my_count, cases, right, mistakes, name="survivors", praise=praise)
