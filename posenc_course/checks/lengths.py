"""Exercises of chapter 12: which losses of which window count, and the assignment on what a loss at a length can show."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, called, check, compare

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


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check()
def by_place(my_means: Callable[[Tensor, int], Any], *, seed: int) -> str:
    """Try my_means(losses, length) -> (length,) the mean loss at each place of windows of `length`, the last one cut short.

    Chapter 12.
    """
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    length = rng.randint(4, 7)
    # The first case is made of whole windows, so that one mistake at a time is seen; the others end within a window.
    totals = ((3 * length, length), (4 * length + rng.randint(1, length - 2), length), (8, 7), (6, 6))
    cases = [(torch.rand(total, generator=generator, dtype=torch.float64) + 1, size) for total, size in totals]

    def right(losses: Tensor, length: int) -> Tensor:
        return torch.stack([losses[place::length].mean() for place in range(length)])

    def padded(losses: Tensor, length: int, filler: float = 0.0) -> Tensor:
        missing = -len(losses) % length
        return torch.cat([losses, torch.full((missing,), filler, dtype=losses.dtype)]).view(-1, length)

    def whole(losses: Tensor, length: int) -> Tensor:
        return losses[: len(losses) // length * length]

    def half(losses: Tensor, length: int) -> Tensor:
        means, rest = whole(losses, length).view(-1, length).mean(dim=0), losses[len(whole(losses, length)) :]
        return torch.cat([(means[: len(rest)] + rest) / 2, means[len(rest) :]])

    mistakes = [
        (lambda x, n: whole(x, n).view(-1, n).mean(dim=0), "The last window counts too, as far as it goes: you leave it out."),
        (lambda x, n: padded(x, n).mean(dim=0),
         "The missing places of the last window count as losses of 0: there, divide by one window less."),
        (lambda x, n: padded(x, n).sum(dim=0) * n / len(x),
         "You divide by one number at every place: not every place occurs equally often."),
        (lambda x, n: padded(x, n).sum(dim=0), "You add up: a mean was asked for."),
        (lambda x, n: x[:n], "This is the first window alone."),
        (lambda x, n: whole(x, n).view(n, -1).mean(dim=1), "You cut the losses the other way: neighbours share a window."),
        (lambda x, n: right(x, n).cumsum(dim=0) / torch.arange(1, n + 1),
         "You average over all places up to each: take each place alone."),
        (lambda x, n: x.mean().expand(n), "The same number everywhere: this is the mean over all losses."),
        (lambda x, n: x.unfold(0, n, 1).mean(dim=0), "Your windows overlap: the next one begins where the last one ends."),
        (half, "The last window weighs as much as all others together: where it has a loss, that is one of many."),
    ]  # fmt: skip
    praise = "each place has its mean, also where the last window ends early."
    return compare(my_means, cases, right, mistakes, name="by_place", praise=praise)


@check()
def blind_mean(my_mean: Callable[[Tensor, float, int], Any], *, seed: int) -> str:
    """Try my_mean(losses, settled, length) -> the mean over `length` places: first `losses`, then `settled` at all others.

    Chapter 12.
    """
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    cases = []
    for multiple in (2, 8, 1, 0.5, 3.5):
        size = 2 * rng.randint(2, 4)
        losses = 4 * torch.rand(size, generator=generator, dtype=torch.float64).sort(descending=True).values + 2
        cases.append((losses, round(rng.uniform(0.5, 1.5), 2), int(multiple * size)))

    def right(losses: Tensor, settled: float, length: int) -> float:
        """Place by place, as a text would be read."""
        read = [losses[place].item() if place < len(losses) else settled for place in range(length)]
        return sum(read) / length

    def total(losses: Tensor, settled: float, length: int) -> float:
        return losses.sum().item() + (length - len(losses)) * settled

    mistakes: list[tuple[Callable[[Tensor, float, int], float], str]] = [
        (lambda x, s, n: total(x, s, n) / n,
         "Long windows come out well. One that is shorter than the losses you are given never gets to the end of them."),
        (lambda x, s, n: total(x, s, max(n, len(x))) / max(n, len(x)),
         "Long windows come out well. One that is shorter than the losses you are given never gets to the end of them."),
        (lambda x, s, n: total(x, s, max(n, len(x))) / n,
         "Long windows come out well. One that is shorter than the losses you are given never gets to the end of them."),
        (lambda x, s, n: right(x, x[-1].item(), n), "You go on with the last loss: every place beyond has `settled`."),
        (lambda x, s, n: (x[:n].sum().item() + n * s) / (n + len(x[:n])),
         "Your window is too long: `length` counts all of its places, the first ones too."),
        (lambda x, s, n: (x[:n].sum().item() + n * s) / n,
         "You add `settled` at every place: the first places have their own losses."),
        (lambda x, s, n: right(x, s, n) * n, "You add up: divide by the number of places."),
        (lambda x, s, n: right(x, s, n) * n / len(x), "You divide by the number of losses: the window has another length."),
        (lambda x, s, n: (x.mean().item() + s) / 2, "You weigh both parts alike: they have different numbers of places."),
        (lambda x, s, n: (x[:n].mean().item() + s) / 2, "You weigh both parts alike: they have different numbers of places."),
        (lambda x, s, n: (x.mean().item() + s) / 2 if n > len(x) else x[:n].mean().item(),
         "You weigh both parts alike: they have different numbers of places."),
        (lambda x, s, n: x[torch.arange(n) % len(x)].mean().item(),
         "You begin anew where the losses end: it is one long window, and every place beyond them has `settled`."),
        (lambda x, s, n: right(x[: n - 1], s, n),
         "A window that is no longer than the losses has none of `settled`: its last place has a loss of its own."),
        (lambda x, s, n: x.mean().item(),
         "Your mean does not depend on the length: in longer windows the beginning gets rarer."),
        (lambda x, s, n: s, "This forgets the beginning: the first places have losses of their own."),
        (lambda x, s, n: right(x.flip(0), s, n), "You begin at the wrong end: losses[0] is the one with nothing before it."),
    ]  # fmt: skip
    praise = "the beginning weighs less the longer the window, and nothing else has changed."
    return compare(my_mean, cases, right, mistakes, name="blind_mean", praise=praise)


@check()
def contexts(my_contexts: Callable[[Tensor, Tensor, int], Any], *, seed: int) -> str:
    """Try my_contexts(tokens, places, context) -> (n, context + 1): before each target exactly `context` tokens. Chapter 12."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randperm(90, generator=generator)  # all different, so that a wrong place shows
    cases = []
    for context in (3, 12, 1, 20):
        between = torch.randperm(90 - 2 - context, generator=generator)[:3] + context + 1
        # The earliest place that has so much before it, and the last token of the text.
        cases.append((tokens, torch.tensor([context, *between.tolist(), 89]), context))

    def cut(tokens: Tensor, starts: Tensor, size: int) -> Tensor:
        """As far as the text goes, and from its beginning again beyond: a mistake may run over."""
        return tokens[(starts[:, None] + torch.arange(size)) % len(tokens)]

    def right(tokens: Tensor, places: Tensor, context: int) -> Tensor:
        return cut(tokens, places - context, context + 1)

    mistakes = [
        (lambda t, p, c: cut(t, p - c - 1, c + 1), "Your windows end before the target: it is the last token of its row."),
        (lambda t, p, c: cut(t, p - c, c), "Your windows end before the target: it is the last token of its row."),
        (lambda t, p, c: cut(t, p - c + 1, c + 1), "Your windows end one token late, behind the target."),
        (lambda t, p, c: cut(t, p, c + 1), "Your windows begin at the target: its context stands before it."),
        (lambda t, p, c: right(t, p, c).flip(1), "Your rows run backwards: the target comes last, its neighbour before it."),
        (lambda t, p, c: (p - c)[:, None] + torch.arange(c + 1), "These are places in the text: return the tokens there."),
        (lambda t, p, c: t[(p // (c + 1) * (c + 1))[:, None] + torch.arange(c + 1).clamp(max=89 % (c + 1))],
         "You cut the text into windows and take the one that holds the place: then the target stands anywhere in it."),
        (lambda t, p, c: right(t, p.sort().values, c), "You sort the targets: the rows stand in the order of `places`."),
        (lambda t, p, c: t[: c + 1].expand(len(p), -1), "All rows are the beginning of the text: each target wants its own."),
        (lambda t, p, c: cut(t, p - c // 2, c + 1), "The target stands in the middle of your rows: it comes last."),
    ]  # fmt: skip
    praise = "every target has exactly the context that was asked for."
    return compare(my_contexts, cases, right, mistakes, name="contexts", praise=praise)


@check()
def by_chance(my_share: Callable[[Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_share(a, b) -> the share of all ways to call len(a) of the numbers a, whose means differ as much as these.

    Chapter 12.
    """
    generator = torch.Generator().manual_seed(seed)
    low, high = (torch.rand(3, generator=generator, dtype=torch.float64) + shift for shift in (1.5, 2.6))
    one = torch.rand(1, generator=generator, dtype=torch.float64)
    mixed = (torch.rand(9, generator=generator, dtype=torch.float64) + 1.5).round(decimals=4).sort().values
    # By hand: three below three are 2 of 20 ways, and equal numbers differ by nothing in all ways. Two cases are equal steps,
    # full of ties in which rounding would decide, by whatever road the means are computed.
    tied = [(torch.arange(0, 6, 2), torch.arange(1, 6, 2), 1.6), (torch.tensor([1, 3, 5]), torch.tensor([2, 4, 6, 7]), 0.0)]
    hundredths = torch.arange(161, 167, dtype=torch.float64) / 100  # however a mean is taken, these split its ties
    # Of the next ones two or three are equal, and yet every way counts; the last two differ by less than a wide tolerance.
    equal = torch.tensor([1.6, 1.6], dtype=torch.float64), torch.tensor([1.6, 1.7, 1.8], dtype=torch.float64)
    close = torch.tensor([1.6, 1.7], dtype=torch.float64), torch.tensor([1.7 + 3e-7, 1.9], dtype=torch.float64)
    cases = [
        (low, high),
        (high, low),
        (mixed[[0, 2, 5]], mixed[[1, 3, 4, 6, 7, 8]]),
        (mixed[[8, 3, 5, 7]], mixed[[1, 6, 2, 4]]),
        (one.expand(2).clone(), one.expand(3).clone()),
        *((a.double() * 0.1 + least, b.double() * 0.1 + least) for a, b, least in tied),
        (hundredths[1:4], hundredths[[0, 4, 5]]),
        equal,
        close,
    ]

    def differences(a: Tensor, b: Tensor) -> list[float]:
        """For all ways, the one that was seen first; sums are exact before they are rounded."""
        numbers = torch.cat([a, b]).tolist()
        ways = []
        for chosen in itertools.combinations(range(len(numbers)), len(a)):
            rest = [numbers[k] for k in range(len(numbers)) if k not in chosen]
            ways.append(math.fsum(numbers[k] for k in chosen) / len(a) - math.fsum(rest) / len(b))
        return ways

    def share(holds: Sequence[bool]) -> float:
        return sum(holds) / len(holds)

    def right(a: Tensor, b: Tensor, tolerance: float = 1e-9) -> float:
        ways = differences(a, b)
        return share([abs(way) >= abs(ways[0]) - tolerance for way in ways])

    def flipped(a: Tensor, b: Tensor) -> float:
        """The share for pairs, each of which may be turned round."""
        gaps = [x - y for x, y in zip(a.tolist(), b.tolist(), strict=False)]
        ways = [sum(s * g for s, g in zip(signs, gaps, strict=True)) for signs in itertools.product((1, -1), repeat=len(gaps))]
        return share([abs(way) >= abs(ways[0]) - 1e-9 for way in ways])

    def seen_side(a: Tensor, b: Tensor) -> float:
        ways = differences(a, b)
        return share([math.copysign(1, ways[0]) * way >= abs(ways[0]) - 1e-9 for way in ways])

    def alike_once(a: Tensor, b: Tensor) -> float:
        numbers = torch.cat([a, b]).tolist()
        ways = {tuple(sorted(way)) for way in itertools.combinations(numbers, len(a))}
        means = [math.fsum(way) / len(a) - (math.fsum(numbers) - math.fsum(way)) / len(b) for way in ways]
        return share([abs(way) >= abs(differences(a, b)[0]) - 1e-9 for way in means])

    def halves(a: Tensor, b: Tensor) -> float:
        numbers = torch.cat([a, b])
        ways = differences(*numbers.tensor_split([len(numbers) // 2]))
        return share([abs(way) >= abs(differences(a, b)[0]) - 1e-9 for way in ways])

    def by_sums(a: Tensor, b: Tensor) -> float:
        total = float(torch.cat([a, b]).sum())
        ways = list(itertools.combinations(torch.cat([a, b]).tolist(), len(a)))
        return share([abs(2 * sum(way) - total) >= abs(2 * sum(ways[0]) - total) - 1e-9 for way in ways])

    def exactly(mean: Callable[[Tensor], Any]) -> Callable[[Tensor, Tensor], float]:
        def exact(a: Tensor, b: Tensor) -> float:
            numbers = torch.cat([a, b])
            every = range(len(numbers))
            ways = [abs(mean(numbers[[*way]]) - mean(numbers[[k for k in every if k not in way]]))
                    for way in itertools.combinations(every, len(a))]  # fmt: skip
            return share([bool(way >= abs(mean(a) - mean(b))) for way in ways])

        return exact

    wide_hint = "Your tolerance is too wide: differences that are further apart than 1e-9 are not equally large."
    rounding = "Rounding decides in one of your ties: differences that agree up to 1e-9 are as large as each other."
    mistakes: list[tuple[Callable[[Tensor, Tensor], float], str]] = [
        (lambda a, b: share([way >= differences(a, b)[0] - 1e-9 for way in differences(a, b)]),
         "One direction only: a difference as large the other way round is as surprising."),
        (lambda a, b: share([way <= differences(a, b)[0] + 1e-9 for way in differences(a, b)]),
         "One direction only: a difference as large the other way round is as surprising."),
        (lambda a, b: share([way >= abs(differences(a, b)[0]) - 1e-9 for way in differences(a, b)]),
         "One direction only: a difference as large the other way round is as surprising."),
        (seen_side, "One direction only: a difference as large the other way round is as surprising."),
        (lambda a, b: min(1.0, 2 * seen_side(a, b)),
         "You double one direction: where a and b are of different lengths, the other has another share."),
        (lambda a, b: 2 * seen_side(a, b),
         "You double one direction: where a and b are of different lengths, the other has another share."),
        (alike_once, "Equal numbers are two numbers all the same: you count ways once that look alike."),
        *((lambda a, b, wide=wide: right(a, b, wide), wide_hint) for wide in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)),
        (halves, "You call half of the numbers a: it should be `len(a)` of them."),
        (lambda a, b: share([abs(way) > abs(differences(a, b)[0]) + 1e-9 for way in differences(a, b)]),
         "Only larger differences count with you: the way that was seen is one of the ways, and so are its equals."),
        (lambda a, b: right(a, b) - 1 / len(differences(a, b)), "You leave out the way that was seen: it is one of the ways."),
        (lambda a, b: (right(a, b) * len(differences(a, b)) - 1) / (len(differences(a, b)) - 1),
         "You leave out the way that was seen: it is one of the ways."),
        (flipped, "You turn pairs round: here any of the numbers may be called a, whichever seed it came from."),
        (by_sums, "You compare sums: where a and b are of different lengths, their means say something else."),
        (lambda a, b: right(a, b) * len(differences(a, b)), "You count the ways: their share was asked for."),
        (lambda a, b: 1 - right(a, b), "This is the share of the ways that differ less."),
        (lambda a, b: share([abs(way) <= abs(differences(a, b)[0]) + 1e-9 for way in differences(a, b)]),
         "You count the ways that differ as little or less: the others were asked for."),
        (lambda a, b: abs(differences(a, b)[0]), "This is the difference: how many of the ways have one as large?"),
        *((exactly(mean), rounding) for mean in (torch.mean, lambda x: sum(x.tolist()) / len(x), lambda x: np.mean(x.numpy()))),
    ]  # fmt: skip
    said = []

    def recorded(a: Tensor, b: Tensor) -> Any:
        said.append(my_share(a, b))
        return said[-1]

    mine = recorded if callable(my_share) else my_share
    praise = "three seeds that lie apart from three others have 0.1, and no three seeds can have less."
    try:
        return compare(mine, cases, right, mistakes, name="by_chance", praise=praise)
    except Wrong as wrong:
        if str(wrong).startswith((f"{called('by_chance', cases[4])} raised", f"{called('by_chance', cases[4])} returned nan")):
            raise Wrong(f"{wrong} Do you choose numbers and not places? Then the equal ones get lost too.") from None
        if not str(wrong).startswith("by_chance(") or not all(isinstance(x, float | np.floating) for x in said):
            raise
        off = [not math.isclose(x, right(*case), abs_tol=1e-4) for x, case in zip(said, cases, strict=False)]
        if len(said) == len(cases) and sum(off) == 1 and off[-1]:
            raise Wrong(wide_hint) from None
        if len(said) == len(cases) and any(off) and not any(off[k] for k in range(len(off)) if k not in (5, 6, 7)):
            raise Wrong(rounding) from None
        if len(said) == len(cases) and all(abs(x - right(*case)) < 0.05 for x, case in zip(said, cases, strict=True)):
            raise Wrong(
                f"Close, but not exact: {wrong} Go through all ways, not a sample, and let no rounding decide."
            ) from None
        raise
