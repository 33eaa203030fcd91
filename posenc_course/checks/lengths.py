"""Exercises on losses beyond the training length: which ones count, what a mean hides, and where a model breaks."""

import functools
import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._exercise import Case, Exercise, Sizes, called, exercise
from posenc_course.checks._kinds import kind

_TEXTS = ((512, 64, 32), (100, 64, 32), (64, 64, 16), (256, 32, 32), (130, 32, 24), (200, 50, 1), (7, 1, 1))


@exercise("windows")
def windows() -> Exercise:
    """windows(total, length, stride) -> pairs (start, first): the window at `start` counts its losses from `first` on.

    Each of the `total` losses must count once, after the first window with length - stride tokens before it in its window, and
    no window may be superfluous.
    """

    def right(total: int, length: int, stride: int) -> Tensor:
        ends = [*range(length, total, stride), total]
        starts = [end - length for end in ends]
        return torch.tensor([[start, 0 if n == 0 else ends[n - 1] - start] for n, start in enumerate(starts)])

    def fault(plans: Sequence[Tensor]) -> str | None:
        found = (_fault(plan, *text) for plan, text in zip(plans, _TEXTS, strict=True))
        return next((f"windows{text}: {what}" for text, what in zip(_TEXTS, found, strict=True) if what), None)

    return Exercise(
        cases=_TEXTS,
        right=right,
        mistakes={},
        ask=lambda call, *text: call(*text, wanted=Sizes((None, 2))),
        fault=fault,
        praise=f"in all {len(_TEXTS)} cases every loss counts once, and none after the first window lacks context.",
    )


def _fault(pairs: Tensor, total: int, length: int, stride: int) -> str | None:
    """The first thing that is not as it should be in a plan, by its name where it has one."""
    if not torch.equal(pairs, pairs.round()):
        return f"pairs (start, first) of whole numbers were asked for, and yours hold {pairs[pairs != pairs.round()][0]:g}."
    plan = [(int(start), int(first)) for start, first in pairs.tolist()]
    for start, first in plan:
        if start < 0 or start + length > total:
            return (
                f"the window at {start} reaches from {start} to {start + length - 1}, outside of 0 to {total - 1}. Where must "
                "the last window start, so that it ends where the text does?"
            )
        if not 0 <= first < length:
            if all(0 <= place - begin < length for begin, place in plan):
                return "`first` is counted inside of the window, and yours seems to be a position in the text."
            return f"first = {first}, and a window of {length} has the positions 0 to {length - 1}."
    times = [0] * total
    for start, first in plan:
        for position in range(start + first, start + length):
            times[position] += 1
    if stride < length and len(plan) > 1 and all(first == 0 for _, first in plan):
        if max(times) > 1:
            return (
                f"every window counts all of its losses, so the loss at position {times.index(max(times))} counts "
                f"{max(times)} times. Which ones has an earlier window counted already?"
            )
        return "your windows do not overlap, and each begins with a token that has nothing before it."
    missing, twice = times.count(0), sum(count > 1 for count in times)
    if missing and all(times[: total - missing]):
        return f"the last {_losses(missing)} nowhere. A last window may move on by less than the stride."
    if missing and not any(times[:missing]) and all(times[missing:]):
        return f"the first {_losses(missing)} nowhere. Nothing comes before the first window: it must count all of its losses."
    if missing:
        return f"{missing} of {total} losses count nowhere, the one at position {times.index(0)} is the first."
    if twice:
        position = next(position for position, count in enumerate(times) if count > 1)
        return f"{twice} of {total} losses count more than once, the one at position {position} is the first."
    begin = min(start for start, _ in plan)
    for start, first in plan:
        if start != begin and first < length - stride:
            return (
                f"the loss at position {start + first} has {first} tokens before it in its window, and should have "
                f"{length - stride}. Which end of a window has the most context?"
            )
    needed = 1 - (length - total) // stride
    if len(plan) > needed:
        return f"every loss counts once and has its context, but you use {len(plan)} windows and {needed} do."
    return None


def _losses(number: int) -> str:
    return f"{number} losses count" if number > 1 else "loss counts"


@exercise()
def beyond(seed: int) -> Exercise:
    """beyond(lengths, means) -> (n,) the mean loss at the positions that no shorter window has, from means over windows."""
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    step = rng.randint(3, 7)
    lengths = {
        "lengths that double": [64, 128, 256, 512],
        "lengths that grow by unequal steps": [8 * step, 9 * step, 16 * step, 50 * step],
        "one length alone": [5 * step],
        "lengths that differ by one": [step, step + 1, step + 2],
        "windows of a single token first": [1, 10, 40],
    }
    cases = {name: (sizes, _sample(generator, len(sizes)) + 1.5) for name, sizes in lengths.items()}
    cases["means that are all equal"] = ([16, 48, 64], torch.full((3,), 2.25, dtype=torch.float64))

    def sums(lengths: Sequence[int], means: Tensor) -> Tensor:
        return torch.tensor(lengths) * means

    def new(values: Tensor) -> Tensor:
        """What each adds to the one before."""
        return torch.cat([values[:1], values.diff()])

    def right(lengths: Sequence[int], means: Tensor) -> Tensor:
        return new(sums(lengths, means)) / new(torch.tensor(lengths))

    def since_first(lengths: Sequence[int], means: Tensor) -> Tensor:
        size = torch.tensor(lengths)
        return torch.cat([means[:1], (sums(lengths, means) - size[0] * means[0])[1:] / (size[1:] - size[0])])

    def from_results(lengths: Sequence[int], means: Tensor) -> Tensor:
        found = means[:1].tolist()
        for (low, high), mean in zip(itertools.pairwise(lengths), means.tolist()[1:], strict=True):
            found.append((high * mean - low * found[-1]) / (high - low))
        return torch.tensor(found)

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "differences": (lambda n, m: new(m),
                "You subtract means of windows of different lengths: each stands for as many losses as its window is long."),
            "doubling": (lambda n, m: torch.cat([m[:1], 2 * m[1:] - m[:-1]]),
                "That is right where each length is twice the one before. How many positions are new in general?"),
            "by the longer length": (lambda n, m: new(sums(n, m)) / torch.tensor(n),
                "You divide by the longer length: only the positions that are new should share what is left."),
            "sums": (lambda n, m: new(sums(n, m)),
                "You return sums of losses: divide each by the number of positions that are new."),
            "since the first": (since_first,
                "You take everything beyond the first length together: the length just before is the one to leave out."),
            "weights exchanged": (lambda n, m: torch.cat([m[:1], (torch.tensor(n[:-1]) * m[1:] - torch.tensor(n[1:]) * m[:-1])
                / torch.tensor(n).diff()]),
                "The two weights have changed places: a mean over a window goes with the length of that window."),
            "what was given": (lambda n, m: m,
                "You return the means as they are: each still holds the shorter windows' losses."),
            "the mean of neighbours": (lambda n, m: torch.cat([m[:1], (m[1:] + m[:-1]) / 2]),
                "You average neighbours: what you look for is the part that makes one mean into the other."),
            "by the results": (from_results,
                "You take off the loss of the stretch before alone: take off everything up to there, which is the mean given."),
            "by number": (lambda n, m: new(torch.arange(1, len(n) + 1) * m),
                "You take all stretches for equally long: look at how many positions each adds."),
            "above the first": (lambda n, m: right(n, m) - m[0],
                "You return how much more than the first mean it is: the losses themselves were asked for."),
            "above the mean before": (lambda n, m: torch.cat([m[:1], right(n, m)[1:] - m[:-1]]),
                "You return how much more than the mean before it is: the losses themselves were asked for."),
            "the last alone": (lambda n, m: torch.cat([m[:-1], right(n, m)[-1:]]),
                "Only the longest windows are taken apart: each of the others holds the shorter ones' losses as well."),
            "the first alone wrong": (lambda n, m: torch.cat([torch.zeros(1), right(n, m)[1:]]),
                "Only your first number is wrong: the shortest windows have positions, too, and their mean is given."),
        },
        praise="a mean over 512 positions is taken apart again, whatever the lengths.",
    )  # fmt: skip


def _sample(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


@exercise()
def blind_mean(seed: int) -> Exercise:
    """blind_mean(losses, settled, length, stride) -> the mean over the last `stride` of `length` positions.

    A position has its own loss as far as `losses` go, and `settled` beyond.
    """
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    size = 2 * rng.randint(3, 5)
    places = {
        "long windows that do not overlap": (8 * size, 8 * size),
        "windows that slide beyond the first positions": (8 * size, size),
        "windows that slide by one": (3 * size, 1),
        "windows that end within the losses": (size - 2, size - 2),
        "windows that slide within the losses": (size - 1, 3),
        "windows as long as the losses": (size, size),
        "windows that count some losses and some settled ones": (2 * size, size + 3),
        "windows of a single token": (1, 1),
    }
    cases = {}
    for name, (length, stride) in places.items():
        losses = 4 * _sample(generator, size).sort(descending=True).values + 2
        cases[name] = (losses, round(rng.uniform(0.5, 1.5), 2), length, stride)

    def read(losses: Tensor, settled: float, length: int) -> list[float]:
        """The losses of one window, position by position."""
        return [losses[position].item() if position < len(losses) else settled for position in range(length)]

    def right(losses: Tensor, settled: float, length: int, stride: int) -> float:
        return sum(read(losses, settled, length)[length - stride :]) / stride

    def uncut(losses: Tensor, settled: float, length: int, stride: int) -> float:
        counted = losses[max(length - stride, 0) :]
        return (float(counted.sum()) + (stride - len(counted)) * settled) / stride

    def mean(numbers: Sequence[float]) -> float:
        return sum(numbers) / max(len(numbers), 1)

    def halves(losses: Tensor, settled: float, length: int, stride: int) -> float:
        own = losses[length - stride : length].tolist()
        return (mean(own) + settled) / 2 if own and length > len(losses) else right(losses, settled, length, stride)

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "all count": (lambda x, s, n, k: mean(read(x, s, n)),
                "You count every position of a window: where windows overlap, only the last `stride` positions count."),
            "the first ones": (lambda x, s, n, k: mean(read(x, s, n)[:k]),
                "You count the first `stride` positions of a window: an earlier window has counted them already."),
            "from the stride on": (lambda x, s, n, k: mean(read(x, s, n)[k:] or read(x, s, n)),
                "You leave out the first `stride` positions: the last `stride` count, so how many come before them?"),
            "short windows": (uncut,
                "Long windows come out well. One that ends within the losses never gets to `settled`."),
            "the last loss goes on": (lambda x, s, n, k: right(x, float(x[-1]), n, k),
                "You go on with the last loss: every position beyond has `settled`."),
            "by the length": (lambda x, s, n, k: right(x, s, n, k) * k / n,
                "You divide by the length of the window: divide by the number of positions that count."),
            "by the losses": (lambda x, s, n, k: right(x, s, n, k) * k / len(x),
                "You divide by the number of losses you are given: divide by the number of positions that count."),
            "a sum": (lambda x, s, n, k: right(x, s, n, k) * k, "You add up: divide by the number of positions that count."),
            "a median": (lambda x, s, n, k: float(np.median(read(x, s, n)[n - k :])),
                "You take a median: the mean was asked for, to which every position that counts contributes."),
            "both alike": (halves, "You weigh both parts alike: they have different numbers of positions."),
            "again from the start": (lambda x, s, n, k: mean([x[m % len(x)].item() for m in range(n - k, n)]),
                "You begin again where the losses end: it is one long window, and every position beyond them has `settled`."),
            "one short": (lambda x, s, n, k: mean(read(x[: n - 1], s, n)[n - k :]),
                "A window no longer than the losses has no position for `settled`: its last position has a loss of its own."),
            "one position early": (lambda x, s, n, k: mean(read(x, s, n)[max(n - k - 1, 0) : n - 1] or read(x, s, n)),
                "Your positions are one too early: the last of a window counts as well."),
            "one position more": (lambda x, s, n, k: mean(read(x, s, n)[max(n - k - 1, 0) :]),
                "You count one position too many where windows overlap: `stride` of them count."),
            "the mean of the losses": (lambda x, s, n, k: x.mean().item(),
                "Your mean depends on neither length nor stride: which positions does such a window count?"),
            "settled": (lambda x, s, n, k: s, "You forget the beginning: the first positions have losses of their own."),
            "backwards": (lambda x, s, n, k: right(x.flip(0), s, n, k),
                "You begin at the wrong end: losses[0] is the one with nothing before it."),
        },
        praise="without overlap the beginning weighs less the longer the window; with it, it stops counting at all.",
    )  # fmt: skip


@exercise()
def cliff(seed: int) -> Exercise:
    """cliff(losses, reference) -> the position from which on a model loses half a nat or more to another; their length if none.

    The two curves share what each byte has of its own. There are 24 positions or more on each side, and 4 to either side of the
    right one are forgiven.
    """
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)

    def curves(positions: int, *, at: int | None = None, more: float = 0.0, before: float = 0.0, drift: float = 0.0,
               odd: tuple[int, float] | None = None, easier: int = 0) -> tuple[tuple[Tensor, Tensor], int]:  # fmt: skip
        """Two curves and where the first breaks: `more` nats from `at` on; `odd` is a byte that one of them finds hard."""
        bytes_ = 4 * _sample(generator, positions) ** 2 + 0.3 + 3.0 * (torch.arange(positions) < easier)
        own = 0.04 * torch.randn(2, positions, generator=generator, dtype=torch.float64)
        gap = before + drift * torch.linspace(0, 1, positions, dtype=torch.float64)
        if at is not None:
            gap[at:] += more
        if odd:
            gap[odd[0]] += odd[1]
        return (bytes_ + own[0] + gap, bytes_ + own[1]), positions if at is None or more < 0 else at

    at = rng.randint(60, 180)
    known = {
        "a cliff of a nat": curves(512, at=at, more=1.0),
        "a cliff of half a nat late in the window": curves(512, at=472 - at // 2, more=0.6),
        "a cliff at an early position": curves(256, at=rng.randint(25, 40), more=0.8),
        "a short window": curves(96, at=rng.randint(30, 66), more=0.9),
        "no cliff": curves(512),
        "no cliff, a model that is worse throughout": curves(256, before=0.7),
        "no cliff, a slow drift": curves(512, drift=0.35),
        "no cliff, and bytes that get easier": curves(512, before=0.6, easier=at + 80),
        "a cliff for the better model of the two": curves(512, at=2 * at, more=0.6, before=-0.8),
        "a cliff for the worse model of the two": curves(512, at=at + 99, more=0.7, before=0.6),
        "a cliff, and one odd byte before it": curves(512, at=at + 200, more=0.7, odd=(at - 30, 2.5)),
        "a cliff, and one odd byte after it": curves(256, at=at // 2 + 20, more=0.7, odd=(200, 3.0)),
        "no cliff, and one odd byte": curves(256, odd=(at, 2.5)),
        "a model that gets better by a nat": curves(512, at=at + 50, more=-1.0),
    }
    cases, truth = {name: case for name, (case, _) in known.items()}, [place for _, place in known.values()]

    def split(gap: Tensor, rises: float = 0.3) -> int:
        """Where two levels fit best, by the least squares."""
        at, below = torch.arange(24, len(gap) - 23), gap.cumsum(dim=0)
        rise = (gap.sum() - below[at - 1]) / (len(gap) - at) - below[at - 1] / at
        best = int((at * (len(gap) - at) * rise.clamp(min=0) ** 2).argmax())
        return best + 24 if float(rise[best]) > rises else len(gap)

    def first(gap: Tensor, above: float) -> int:
        return int((gap > above).nonzero()[0]) if (gap > above).any() else len(gap)

    def fault(said: Sequence[int]) -> tuple[str, Case] | None:
        whole = [len(x) for x, _ in cases.values()]
        off = [number - place for number, place in zip(said, truth, strict=True)]
        wrong = [abs(by) > (4 if place < size else 0) for by, place, size in zip(off, truth, whole, strict=True)]
        if not any(wrong):
            return None
        missed = {name: by for name, by, is_wrong in zip(cases, off, wrong, strict=True) if is_wrong}
        flat = {name for name, place, size in zip(cases, truth, whole, strict=True) if place == size}
        before = said[list(cases).index("a cliff, and one odd byte before it")]
        if all("odd" in name for name in missed) or abs(before - (at - 30)) < 2:
            what = "One odd byte leads you astray: a cliff lasts, so ask many positions and not one."
        elif missed.keys() <= flat:
            what = "You find a cliff where there is none: it takes half a nat or more, for the worse, and for good."
        elif missed.keys().isdisjoint(flat) and all(5 <= by <= 40 for by in missed.values()):
            what = "You are late: a mean over the positions up to here reaches its new level only when all of them are new."
        elif missed.keys().isdisjoint(flat) and all(-40 <= by <= -5 for by in missed.values()):
            what = "You are early: a mean over the positions from here on begins to rise before the cliff."
        elif all(number == size for number, size, is_wrong in zip(said, whole, wrong, strict=True) if is_wrong):
            what = "You miss a cliff: half a nat is enough, wherever the difference of the two begins."
        elif all("of the two" in name or "throughout" in name or "easier" in name for name in missed):
            what = "You go wrong where one model is better from the start: a cliff is a change of the difference, not its sign."
        else:
            what = kind(truth, said, wrong, list(cases), 0.5)
        first = wrong.index(True)
        name, place = list(cases)[first], truth[first]
        there = "there is no cliff" if name in flat else f"the cliff is at {place}"
        shown = called("cliff", cases[name], name)
        text = f"{what} {shown} gives {said[first]}, and {there}. `checks.last()` returns these arguments."
        return text.strip(), cases[name]

    return Exercise(
        cases=cases,
        right=lambda x, y: split(x - y),
        mistakes={
            "not subtracted": (lambda x, y: split(x),
                "You look at the model's own curve: easy and hard bytes hide the cliff there. What do both curves share?"),
            "the largest jump of one curve": (lambda x, y: int(x.diff().argmax()) + 1,
                "You take the largest jump of the model's own curve: that is a hard byte after an easy one."),
            "the largest jump": (lambda x, y: int((x - y).diff().argmax()) + 1,
                "You take the largest jump from one position to the next: noise jumps as well, and where there is no cliff "
                "there is a largest jump all the same."),
            "the largest difference": (lambda x, y: int((x - y).argmax()),
                "You take the largest difference: it may lie anywhere beyond the cliff, or be one odd byte."),
            "the smallest difference": (lambda x, y: int((x - y).argmin()),
                "You take the smallest difference: the two models fare alike up to the cliff, and noise decides where most."),
            "always": (lambda x, y: split(x - y, rises=-9.0),
                "You find a cliff in every curve: where there is none, return the number of positions."),
            "better is a cliff": (lambda x, y: min(split(x - y), split(y - x)),
                "You call it a cliff where the model gets better: a cliff is for the worse."),
            "a ratio": (lambda x, y: split(x / y),
                "You divide one curve by the other: the same half nat is much for an easy byte and little for a hard one."),
            "no cliff is 0": (lambda x, y: split(x - y) % len(x),
                "You return 0 where there is no cliff: return the number of positions."),
            "how many come after": (lambda x, y: len(x) - split(x - y),
                "You return how many positions come after the cliff: return the first of them."),
            "exchanged": (lambda x, y: split(y - x),
                "The two curves have changed places: the first one is the model that may break."),
            **{f"above {above}": (lambda x, y, above=above: first(x - y, above),
               "You take the first position with a difference above a threshold: one odd byte is above it, and so is a model "
               "that was worse from the start.")
               for above in (0.0, 0.25, 0.3, 0.4, 0.5)},
            "the training length": (lambda x, y: 64, "You say 64 every time: where a model breaks has to be measured."),
            "never": (lambda x, y: len(x), "You never find a cliff: what does the difference of the two curves look like?"),
            "counted from 24": (lambda x, y: split(x - y) - 24,
                "You count from the first position that can be a cliff: count from the beginning of the window."),
        },
        fault=fault,
        praise=f"all {len(cases)} curves, and no cliff is found where there is none.",
    )  # fmt: skip


@exercise()
def by_chance(seed: int) -> Exercise:
    """by_chance(a, b) -> the share of all ways to call len(a) of the numbers a, whose means differ as much as these."""
    generator = torch.Generator().manual_seed(seed)
    low, high = (_sample(generator, 3) + shift for shift in (1.5, 2.6))
    one = _sample(generator, 1)
    mixed = (_sample(generator, 9) + 1.5).round(decimals=4).sort().values
    hundredths = torch.arange(161, 167, dtype=torch.float64) / 100  # however a mean is taken, these split its ties

    def tensor(*numbers: float) -> Tensor:
        return torch.tensor(numbers, dtype=torch.float64)

    # By hand: three below three are 2 of 20 ways, and equal numbers differ by nothing in all ways.
    cases = {
        "a below b": (low, high),
        "a above b": (high, low),
        "a shorter than b": (mixed[[0, 2, 5]], mixed[[1, 3, 4, 6, 7, 8]]),
        "a longer than b": (mixed[[1, 3, 4, 6, 7, 8]], mixed[[0, 5]]),
        "a and b mixed": (mixed[[8, 3, 5, 7]], mixed[[1, 6, 2, 4]]),
        "numbers that are all equal": (one.expand(2).clone(), one.expand(3).clone()),
        "ties between means of three": (torch.arange(0, 6, 2) * 0.1 + tensor(1.6), torch.arange(1, 6, 2) * 0.1 + tensor(1.6)),
        "ties between means of three and of four": (tensor(1, 3, 5) * 0.1, tensor(2, 4, 6, 7) * 0.1),
        "ties of hundredths": (hundredths[1:4], hundredths[[0, 4, 5]]),
        "two equal numbers": (tensor(1.6, 1.6), tensor(1.6, 1.7, 1.8)),
        "means that differ by 2e-7 more": (tensor(1.6, 1.7), tensor(1.7 + 3e-7, 1.9)),
        "one number against four": (mixed[[0]], mixed[[2, 4, 6, 8]]),
        "one number against one": (mixed[[0]], mixed[[5]]),
    }  # fmt: skip

    def differences(a: Tensor, b: Tensor) -> list[float]:
        return _differences((*a.tolist(), *b.tolist()), len(a))

    def share(holds: Sequence[bool]) -> float:
        return sum(holds) / len(holds)

    def right(a: Tensor, b: Tensor, tolerance: float = 1e-9) -> float:
        ways = differences(a, b)
        return share([abs(way) >= abs(ways[0]) - tolerance for way in ways])

    def flipped(a: Tensor, b: Tensor) -> float:
        """The share for pairs, each of which may be exchanged."""
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

    def times(a: Tensor, b: Tensor) -> int:
        return math.comb(len(a) + len(b), len(a))

    one_way = "You count one direction only: a difference as large the other way round is as surprising."
    doubled = "You double one direction: where a and b are of different lengths, the other has another share."
    left_out = "You leave out the way that was seen: it is one of the ways."
    rounding = "Rounding decides in one of your ties: differences that agree up to 1e-9 are equally large."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "a above b": (lambda a, b: share([way >= differences(a, b)[0] - 1e-9 for way in differences(a, b)]), one_way),
            "a below b": (lambda a, b: share([way <= differences(a, b)[0] + 1e-9 for way in differences(a, b)]), one_way),
            "upwards": (lambda a, b: share([way >= abs(differences(a, b)[0]) - 1e-9 for way in differences(a, b)]), one_way),
            "the side that was seen": (seen_side, one_way),
            "doubled, at most 1": (lambda a, b: min(1.0, 2 * seen_side(a, b)), doubled),
            "doubled": (lambda a, b: 2 * seen_side(a, b), doubled),
            "alike once": (alike_once, "Equal numbers are two numbers all the same: you count ways that look alike once."),
            **{f"within {wide:g}": (lambda a, b, wide=wide: right(a, b, wide),
               "Your tolerance is too wide: differences that are further apart than 1e-9 are not equally large.")
               for wide in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)},
            "halves": (halves, "You call half of the numbers a: it should be `len(a)` of them."),
            "larger": (lambda a, b: share([abs(way) > abs(differences(a, b)[0]) + 1e-9 for way in differences(a, b)]),
                "Only larger differences count with you: the way that was seen is one of the ways, and so are its equals."),
            "one way less": (lambda a, b: right(a, b) - 1 / times(a, b), left_out),
            "among the others": (lambda a, b: (right(a, b) * times(a, b) - 1) / (times(a, b) - 1), left_out),
            "pairs": (flipped,
                "You exchange the numbers of a pair: here any of the numbers may be called a, whichever seed it came from."),
            "sums": (by_sums, "You compare sums: where a and b are of different lengths, their means say something else."),
            "how many": (lambda a, b: right(a, b) * times(a, b), "You count the ways: their share was asked for."),
            "the rest": (lambda a, b: 1 - right(a, b), "This is the share of the ways that differ less."),
            "as little or less": (lambda a, b: share([abs(w) <= abs(differences(a, b)[0]) + 1e-9 for w in differences(a, b)]),
                "You count the ways that differ as little or less: the others were asked for."),
            "the difference": (lambda a, b: abs(differences(a, b)[0]),
                "This is the difference: how many of the ways have one as large?"),
            **{f"no tolerance, {name}": (exactly(mean), rounding) for name, mean in
               (("torch", torch.mean), ("sums", lambda x: sum(x.tolist()) / len(x)), ("numpy", lambda x: np.mean(x.numpy())))},
        },
        praise="three seeds that lie apart from three others have 0.1, and no three seeds can have less.",
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _differences(numbers: tuple[float, ...], first: int) -> list[float]:
    """Of the means, for all ways to choose so many, the way that was seen first; sums are exact before they are rounded."""
    ways = []
    for chosen in itertools.combinations(range(len(numbers)), first):
        rest = [numbers[k] for k in range(len(numbers)) if k not in chosen]
        ways.append(math.fsum(numbers[k] for k in chosen) / first - math.fsum(rest) / len(rest))
    return ways
