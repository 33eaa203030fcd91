"""Exercise of chapter 07: the smallest base whose slowest pair orders a whole text."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from posenc_course.checks._verdict import Wrong, answer, as_number, check

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
