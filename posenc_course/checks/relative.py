"""Exercise of chapter 09: T5's buckets for past and future."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from posenc_course.checks._verdict import Wrong, answer, as_number, check
from posenc_course.relative import t5_buckets

_SETTINGS = ((32, 128), (12, 50))
_OFFSETS = sorted(range(-200, 201), key=abs)
_Said = dict[tuple[int, int, int], float]  # the answer for each offset, num_buckets and max_distance


@check(instead_of=[t5_buckets], draws=False)
def bucket(my_bucket: Callable[[int, int, int], Any]) -> str:
    """Try my_bucket(offset, num_buckets, max_distance) on the offsets from -200 to 200, in T5's setting and a smaller one.

    One whole number, the bucket of T5's encoder: half of the buckets for the past and the same token, half for the future.
    Chapter 09.
    """
    said = {
        (offset, num_buckets, max_distance): _said(my_bucket, offset, num_buckets, max_distance)
        for num_buckets, max_distance in _SETTINGS
        for offset in _OFFSETS
    }
    should = {
        (offset, *setting): float(bucket)
        for setting in _SETTINGS
        for offset, bucket in zip(_OFFSETS, t5_buckets(_OFFSETS, *setting, causal=False).tolist(), strict=True)
    }
    if said == should:
        return f"Right: all {len(_OFFSETS)} offsets, in T5's setting and in a smaller one."
    return next((hint for known, hint in _MISTAKES if known(said, should)), None) or _first_wrong(said, should)


def _said(my_bucket: Callable[[int, int, int], Any], *case: int) -> float:
    call = f"my_bucket{case}"
    number = as_number(
        answer(my_bucket, *case, call=call),
        call=call,
        should="one whole number, the bucket of one offset",
        finite="the logarithm is for distances beyond the single buckets only.",
    )
    if number != int(number):
        raise Wrong(f"{call} returned {number:.6g}: a bucket is a row of a table, so round down to a whole number.")
    return number


def _first_wrong(said: _Said, should: _Said) -> str:
    case = next(case for case in said if said[case] != should[case])
    return f"my_bucket{case} gives {said[case]:g}, it should be {should[case]:g}."


def _wrong(said: _Said, should: _Said) -> Iterator[tuple[int, int, int]]:
    return (case for case in said if said[case] != should[case])


def _only(rule: Callable[[int, int, int], bool]) -> Callable[[_Said, _Said], bool]:
    """What is known by the cases that are wrong: this rule holds for each of them."""
    return lambda said, should: all(rule(*case) for case in _wrong(said, should))


def _side(num_buckets: int, max_distance: int, place: Callable[[float], float], *, from_one: bool = False) -> Any:
    """A bucket by its distance, as a formula that differs from T5's in one thing gives it."""
    one_sided = num_buckets // 2
    single = one_sided // 2

    def of(distance: int) -> int:
        if distance < single:
            return distance
        share = math.log(distance / (1 if from_one else single)) / math.log(max_distance / (1 if from_one else single))
        return min(one_sided - 1, single + int(place(share * (one_sided - single))))

    return of


def _as(formula: Callable[[int, int, int], int]) -> Callable[[_Said, _Said], bool]:
    """What is known by a formula that every answer follows."""
    return lambda said, _should: all(value == formula(*case) for case, value in said.items())


def _signed(of: Callable[[int, int], Callable[[int], int]]) -> Callable[[_Said, _Said], bool]:
    return _as(lambda offset, b, far: of(b, far)(abs(offset)) + (b // 2 if offset < 0 else 0))


def _exact(offset: int, num_buckets: int, max_distance: int, *, causal: bool = False) -> int:
    return int(t5_buckets([offset], num_buckets, max_distance, causal=causal))


def _edge(offset: int, num_buckets: int, max_distance: int) -> bool:
    """Whether a bucket begins or ends at this distance."""
    distance = abs(offset)
    return len({_exact(d, num_buckets, max_distance) for d in (distance - 1, distance, distance + 1)}) > 1


_MISTAKES: tuple[tuple[Callable[[_Said, _Said], bool], str], ...] = (
    (
        _only(lambda offset, _b, _far: offset == 0),
        "Only offset 0 is wrong: the token itself belongs to the first half, with the past.",
    ),
    (
        _as(lambda offset, b, far: _exact(-offset, b, far)),
        "Past and future are exchanged: T5's own code counts key minus query, and here an offset is query minus key.",
    ),
    (
        _as(lambda offset, b, far: _exact(abs(offset), b, far)),
        "The distance is right, the direction is lost: a token in the future has a bucket of the second half.",
    ),
    (
        _as(lambda offset, b, far: _exact(offset, b, far, causal=True)),
        "These are the buckets of a decoder, all of them for the past. Here half of them are for the future.",
    ),
    (
        _as(lambda offset, b, far: _exact(abs(offset), b, far, causal=True)),
        "You give all of the buckets to the distance. Each direction has half of them, and half of those are single.",
    ),
    (
        _signed(lambda b, _far: lambda distance: min(distance, b // 2 - 1)),
        "This is clipping, one distance in each bucket. Here only the first half of a side is single, the others grow.",
    ),
    (
        _only(lambda offset, _b, far: abs(offset) >= far),
        "Well below max_distance, and wrong from there on: all that is as far or farther shares the side's last bucket.",
    ),
    (
        _signed(lambda b, far: _side(b, far, round)),
        "The nearest whole number is taken: a bucket begins where its whole number is reached, so round down.",
    ),
    (
        _signed(lambda b, far: _side(b, far, math.ceil)),
        "Rounded up: a bucket begins where its whole number is reached, so round down.",
    ),
    (
        _signed(lambda b, far: _side(b, far, lambda place: place, from_one=True)),
        "The logarithm starts at distance 1. The wide buckets start where the single ones end: divide the distance by that.",
    ),
    (
        _signed(lambda b, far: _side(b, far, lambda place: math.floor(place) - b // 4)),
        "The wide buckets are numbered from 0 again: the single ones come before them.",
    ),
    (
        _signed(lambda b, far: _side(b, far, lambda place: place * (b // 4 - 1) / (b // 4))),
        "You let the last bucket begin at max_distance. There it would end: the wide buckets together reach that far.",
    ),
    (
        _only(_edge),
        "Only the edges of some buckets are wrong: is it < or <=, and does rounding push a logarithm over the edge?",
    ),
)
