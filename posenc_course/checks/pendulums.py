"""Exercise of chapter 04: the offset between two rows of clocks."""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor

from posenc_course.checks._verdict import answer, as_number, check
from posenc_course.geometry import wavelengths
from posenc_course.sinusoidal import frequencies, sinusoidal_table

# Width, position n, and offset Δ = m - n, less than half a turn of the slowest clock.
_CASES = (
    (8, 100, 7),
    (8, 100, -7),
    (8, 250, 0),
    (16, 400, 2_500),
    (4, 500, -300),
    (8, 6_200, 150),  # the slowest clock passes its top on the way
    (64, 10_000_000, -37),
    (128, 123_456_789, 20_000),
    (8, 10_000_019, -2_900),
)


@check(draws=False)
def offset(my_offset: Callable[[Tensor, Tensor], Any]) -> str:
    """Try my_offset(row_m, row_n) -> m - n on rows of several widths, near and far, rounded to two decimals. Chapter 04."""
    said = [_said(my_offset, *case) for case in _CASES]
    if said == [float(delta) for _, _, delta in _CASES]:
        return f"Right: all {len(_CASES)} offsets, forwards and back, also between tokens too far out to be read."
    return next((hint for known, hint in _MISTAKES if known(said)), None) or _first_wrong(said)


def _said(my_offset: Callable[[Tensor, Tensor], Any], d_model: int, n: int, delta: int) -> float:
    row_m, row_n = sinusoidal_table([n + delta, n], d_model).round(decimals=2)
    call = _call(d_model, n, delta)
    return as_number(
        answer(my_offset, row_m.clone(), row_n.clone(), call=call),
        call=call,
        should="one number, what all the hands agree on",
        finite="is something divided by a sine that is 0? torch.atan2 takes the pair.",
    )


def _call(d_model: int, n: int, delta: int) -> str:
    return f"offset(row {n + delta:,}, row {n:,}) with rows of width {d_model}"


def _first_wrong(said: list[float]) -> str:
    case, value = next((case, value) for case, value in zip(_CASES, said, strict=True) if value != case[2])
    return f"{_call(*case)} gives {value:,.10g}, it should be {case[2]:,}."


def _each(rule: Callable[[int, int, int, float], bool]) -> Callable[[list[float]], bool]:
    """What is known by a rule that every (d_model, n, delta, answer) follows."""
    return lambda said: all(rule(*case, value) for case, value in zip(_CASES, said, strict=True))


def _turn(d_model: int, clock: int) -> float:
    return float(wavelengths(d_model)[clock])


def _only_the_fastest(_d_model: int, _n: int, delta: int, value: float) -> bool:
    """Right up to whole turns of the fastest clock, and within one of them."""
    turn = _turn(2, 0)
    return abs(value) < turn + 0.5 and abs(math.remainder(value - delta, turn)) < 0.6


def _only_forwards(d_model: int, _n: int, delta: int, value: float) -> bool:
    """Right forwards, and backwards one turn of the slowest clock too much, where that is a turn of all the others too."""
    turn = _turn(d_model, -1) if delta < 0 else 0
    return abs(value - delta - turn) < 1 or (delta < 0 and d_model > 8)


def _reads_both(said: list[float]) -> bool:
    """Right at least where both positions come before the slowest clock's first full turn."""
    near = (max(n, n + delta) < _turn(d, -1) for d, n, delta in _CASES)
    return all(value == case[2] for case, value, is_near in zip(_CASES, said, near, strict=True) if is_near)


_MISTAKES: tuple[tuple[Callable[[list[float]], bool], str], ...] = (
    (
        _each(lambda _d, _n, delta, value: value == -delta),
        "The size is right and the sign is the other one: this is n - m, or the hands run anticlockwise. Δ is m - n.",
    ),
    (
        _each(lambda _d, _n, delta, value: value == abs(delta)),
        "The size is right, the sign is lost: Δ is negative when m comes before n. Cosines alone do not know the direction.",
    ),
    (
        _each(lambda _d, _n, delta, value: abs(value - delta) < 0.5),
        "Only what stands after the point is wrong: the rows are rounded, positions are whole numbers, so round the result.",
    ),
    (
        _each(_only_forwards),
        "Forwards all is well; backwards you get one whole turn of the slowest clock too much. Let hands turn either way.",
    ),
    (
        _each(_only_the_fastest),
        "This is what the fastest clock says alone: right, up to its own full turns. The slower ones say how many there were.",
    ),
    (
        _each(lambda d, _n, delta, value: abs(value - delta) < 0.02 / float(frequencies(d)[-1]) + 0.5),
        "Roughly right everywhere: that is what the slowest clock says alone. Let the faster ones correct it, one by one.",
    ),
    (
        _reads_both,
        "Near the beginning all is well, further out it is not: there a position cannot be read any more, but turns can.",
    ),
)
