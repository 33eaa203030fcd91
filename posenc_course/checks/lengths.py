"""Exercise of chapter 12: which losses of which window count."""

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, check

_CASES = ((512, 64, 32), (100, 64, 32), (64, 64, 16), (256, 32, 32), (130, 32, 24), (200, 50, 1))  # total, length, stride
Plan = list[tuple[int, int]]


@check(draws=False)
def windows(my_windows: Callable[[int, int, int], Any]) -> str:
    """Try my_windows(total, length, stride) -> pairs (start, first): the window at `start` counts its losses from `first` on.

    Each of the `total` losses must count once, after the first window with length - stride tokens before it in its window, and
    no window may be superfluous. Chapter 12.
    """
    for case in _CASES:
        call = f"windows{case}"
        _judge(_plan(answer(my_windows, *case, call=call), call), *case, call)
    return f"Right: in all {len(_CASES)} cases every loss counts once, and none after the first window lacks context."


def _plan(result: Any, call: str) -> Plan:
    """The answer as pairs of whole numbers, or `Wrong`."""
    if isinstance(result, Tensor | np.ndarray):
        result = result.tolist()
    try:
        pairs = [tuple(pair) for pair in result]
        lengths = {len(pair) for pair in pairs}
        numbers = [(int(start), int(first)) for start, first in pairs]
    except (TypeError, ValueError):
        raise Wrong(f"{call} should give pairs (start, first) of whole numbers, got {_brief(result)}.") from None
    if lengths != {2} or any(pair != number for pair, number in zip(pairs, numbers, strict=True)):
        raise Wrong(f"{call} should give pairs (start, first) of whole numbers, got {_brief(result)}.")
    return numbers


def _brief(result: Any) -> str:
    text = " ".join(repr(result).split())
    return text if len(text) <= 60 else text[:57] + "..."


def _judge(plan: Plan, total: int, length: int, stride: int, call: str) -> None:
    """Raise `Wrong` with the first thing that is not as it should be, by its name where it has one."""
    for start, first in plan:
        if start < 0 or start + length > total:
            raise Wrong(
                f"{call}: the window at {start} reaches from {start} to {start + length - 1}, outside of 0 to {total - 1}. "
                "Where must the last window start, so that it ends where the text does?"
            )
        if not 0 <= first < length:
            if all(0 <= place - begin < length for begin, place in plan):
                raise Wrong(f"{call}: `first` is counted inside of the window, and yours seems to be a place in the text.")
            raise Wrong(f"{call}: first = {first}, and a window of {length} has the places 0 to {length - 1}.")
    times = [0] * total
    for start, first in plan:
        for place in range(start + first, start + length):
            times[place] += 1
    if stride < length and len(plan) > 1 and all(first == 0 for _, first in plan):
        if max(times) > 1:
            raise Wrong(
                f"{call}: every window counts all of its losses, so that the loss at place {times.index(max(times))} counts "
                f"{max(times)} times. Which ones has an earlier window counted already?"
            )
        raise Wrong(f"{call}: your windows do not overlap, and each begins with a token that has nothing before it.")
    missing, twice = times.count(0), sum(count > 1 for count in times)
    if missing and all(times[: total - missing]):
        raise Wrong(f"{call}: the last {_losses(missing)} nowhere. A last window may move on by less than the stride.")
    if missing and not any(times[:missing]) and all(times[missing:]):
        raise Wrong(f"{call}: the first {_losses(missing)} nowhere. Before the first window comes none: it must count all.")
    if missing:
        raise Wrong(f"{call}: {missing} of {total} losses count nowhere, the one at place {times.index(0)} is the first.")
    if twice:
        place = next(place for place, count in enumerate(times) if count > 1)
        raise Wrong(f"{call}: {twice} of {total} losses count more than once, the one at place {place} is the first.")
    begin = min(start for start, _ in plan)
    for start, first in plan:
        if start != begin and first < length - stride:
            raise Wrong(
                f"{call}: the loss at place {start + first} has {first} tokens before it in its window, and should have "
                f"{length - stride}. Which end of a window has the most context?"
            )
    needed = 1 - (length - total) // stride
    if len(plan) > needed:
        raise Wrong(f"{call}: all losses count once and have their context, but you use {len(plan)} windows and {needed} do.")


def _losses(number: int) -> str:
    return f"{number} losses count" if number > 1 else "loss counts"
