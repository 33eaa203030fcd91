"""Exercises on losses beyond the training length: which losses count, what a mean hides, and what may be chance."""

import functools
import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, Sizes, exercise

_TEXTS = ((512, 64, 32), (100, 64, 32), (64, 64, 16), (256, 32, 32), (130, 32, 24), (200, 50, 1), (7, 1, 1))


@exercise("windows")
def windows() -> Exercise:
    """windows(total, length, stride) -> pairs (start, first): the window at `start` counts its losses from `first` on.

    Each of the `total` losses must count once. After the first window, it must have at least length - stride tokens before it
    in its window, and no window may be superfluous.
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
        praise=f"in all {len(_TEXTS)} cases, every loss counts once, and after the first window, every loss has enough "
        "context.",
    )


def _fault(pairs: Tensor, total: int, length: int, stride: int) -> str | None:
    """The first thing that is wrong with a plan, by name if it has one."""
    plan = [(int(start), int(first)) for start, first in pairs.tolist()]
    for start, first in plan:
        if start < 0 or start + length > total:
            return (
                f"the window at {start} reaches from {start} to {start + length - 1}, but the text only has positions 0 to "
                f"{total - 1}. Where must the last window start, so that it ends with the text?"
            )
        if not 0 <= first < length:
            return f"you return first = {first}, but a window of {length} only has the positions 0 to {length - 1}."
    times = [0] * total
    for start, first in plan:
        for position in range(start + first, start + length):
            times[position] += 1
    if stride < length and len(plan) > 1 and max(times) == 1 and all(first == 0 for _, first in plan):
        return "your windows don't overlap, so each window begins with a token that has no context."
    if missing := times.count(0):
        return f"{missing} of {total} losses aren't counted, the first one at position {times.index(0)}."
    if max(times) > 1:
        return f"the loss at position {times.index(max(times))} counts {max(times)} times. Which window counts it first?"
    begin = min(start for start, _ in plan)
    for start, first in plan:
        if start != begin and first < length - stride:
            return (
                f"the loss at position {start + first} has {first} tokens before it in its window, but it should have "
                f"{length - stride}. Which end of a window has the most context?"
            )
    needed = 1 - (length - total) // stride
    if len(plan) > needed:
        return f"every loss counts once and has enough context, but you use {len(plan)} windows, and {needed} are enough."
    return None


@exercise()
def beyond(seed: int) -> Exercise:
    """beyond(lengths, means) -> (n,) mean losses at the positions that no shorter window has, from means over windows."""
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    step = rng.randint(3, 7)
    lengths = {
        "lengths that double": [64, 128, 256, 512],
        "lengths that grow by unequal steps": [8 * step, 9 * step, 16 * step, 50 * step],
        "a single length": [5 * step],
        "lengths that differ by one": [step, step + 1, step + 2],
    }
    cases = {name: (sizes, _sample(generator, len(sizes)) + 1.5) for name, sizes in lengths.items()}
    cases["means that are all equal"] = ([16, 48, 64], torch.full((3,), 2.25, dtype=torch.float64))

    def sums(lengths: Sequence[int], means: Tensor) -> Tensor:
        return torch.tensor(lengths) * means

    def new(values: Tensor) -> Tensor:
        """How much each value adds to the one before."""
        return torch.cat([values[:1], values.diff()])

    def right(lengths: Sequence[int], means: Tensor) -> Tensor:
        return new(sums(lengths, means)) / new(torch.tensor(lengths))

    def since_first(lengths: Sequence[int], means: Tensor) -> Tensor:
        size = torch.tensor(lengths)
        return torch.cat([means[:1], (sums(lengths, means) - size[0] * means[0])[1:] / (size[1:] - size[0])])

    divide = "Divide what a longer window adds to the sum of losses by the number of its new positions, neither more nor less."
    above = "Each mean stands for as many losses as its window has positions. Return the mean of the new losses themselves."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "sums": (lambda n, m: new(sums(n, m)), divide),
            "by the whole length": (lambda n, m: new(sums(n, m)) / torch.tensor(n), divide),
            "by number": (lambda n, m: new(torch.arange(1, len(n) + 1) * m), divide),
            "differences": (lambda n, m: new(m), f"You return how much larger each mean is than the one before. {above}"),
            "above the mean before": (lambda n, m: torch.cat([m[:1], right(n, m)[1:] - m[:-1]]),
                f"You return how much larger each loss is than the mean before. {above}"),
            "since the first": (since_first,
                "You average over everything beyond the shortest length. Leave out what the previous window has."),
            "doubling": (lambda n, m: torch.cat([m[:1], 2 * m[1:] - m[:-1]]),
                "Your formula is right if each length is twice the one before. How many positions are new in general?"),
            "the last alone": (lambda n, m: torch.cat([m[:-1], right(n, m)[-1:]]),
                "You take apart only the mean over the longest window. But all except the first include shorter ones."),
        },
        praise="your function can split a mean over 512 positions into its parts, and it works for all lengths.",
    )  # fmt: skip


def _sample(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64)


@exercise()
def blind_mean(seed: int) -> Exercise:
    """blind_mean(losses, settled, length, stride) -> the mean over the last `stride` of `length` positions.

    A position has its own loss as long as there are `losses`, and `settled` after that.
    """
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    size = 2 * rng.randint(3, 5)
    places = {
        "long windows that do not overlap": (8 * size, 8 * size),
        "windows whose first positions don't count": (8 * size, size),
        "windows that move by one": (3 * size, 1),
        "windows that are shorter than `losses`": (size - 2, size - 2),
        "short windows that overlap": (size - 1, 3),
        "windows in which positions of both kinds count": (2 * size, size + 3),
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

    counts = "The last `stride` positions of a window count, and no others, because an earlier window has counted them."
    settled = "When `losses` ends, every later position has the loss `settled`."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "all count": (lambda x, s, n, k: mean(read(x, s, n)), counts),
            "the first ones": (lambda x, s, n, k: mean(read(x, s, n)[:k]), counts),
            "from the stride on": (lambda x, s, n, k: mean(read(x, s, n)[k:] or read(x, s, n)), counts),
            "one position more": (lambda x, s, n, k: mean(read(x, s, n)[max(n - k - 1, 0) :]), counts),
            "one position early": (
                lambda x, s, n, k: mean(read(x, s, n)[max(n - k - 1, 0) : n - 1] or read(x, s, n)), counts),
            "short windows": (uncut,
                "You're right for long windows. But a window within `losses` has no position with the loss `settled`."),
            "the last loss goes on": (lambda x, s, n, k: right(x, float(x[-1]), n, k), settled),
            "never settled": (lambda x, s, n, k: mean(x[n - k : n].tolist()) if n - k < len(x) else s, settled),
        },
        praise="without overlap, the beginning has less weight in longer windows; with enough overlap, it doesn't count at "
               "all.",
    )  # fmt: skip


@exercise()
def by_chance(seed: int) -> Exercise:
    """by_chance(a, b) -> the share of all ways to choose len(a) of the numbers whose means differ at least as much as these."""
    generator = torch.Generator().manual_seed(seed)
    low, high = (_sample(generator, 3) + shift for shift in (1.5, 2.6))
    one = _sample(generator, 1)
    mixed = (_sample(generator, 9) + 1.5).round(decimals=4).sort().values
    # However you compute a mean, rounding breaks the ties of these.
    hundredths = torch.arange(161, 167, dtype=torch.float64) / 100

    def tensor(*numbers: float) -> Tensor:
        return torch.tensor(numbers, dtype=torch.float64)

    # By hand: if three numbers are below three others, that is 2 of 20 ways; and equal numbers don't differ in any way.
    cases = {
        "a below b": (low, high),
        "a above b": (high, low),
        "a shorter than b": (mixed[[0, 2, 5]], mixed[[1, 3, 4, 6, 7, 8]]),
        "a and b mixed": (mixed[[8, 3, 5, 7]], mixed[[1, 6, 2, 4]]),
        "numbers that are all equal": (one.expand(2).clone(), one.expand(3).clone()),
        "ties between means of three "
        "numbers": (torch.arange(0, 6, 2) * 0.1 + tensor(1.6), torch.arange(1, 6, 2) * 0.1 + tensor(1.6)),
        "ties between means of three and of four numbers": (tensor(1, 3, 5) * 0.1, tensor(2, 4, 6, 7) * 0.1),
        "ties between means of hundredths": (hundredths[1:4], hundredths[[0, 4, 5]]),
        "two equal numbers": (tensor(1.6, 1.6), tensor(1.6, 1.7, 1.8)),
        "differences that are nearly equal": (tensor(1.6, 1.7), tensor(1.7 + 3e-7, 1.9)),
        "one number and four others": (mixed[[0]], mixed[[2, 4, 6, 8]]),
    }  # fmt: skip

    def differences(a: Tensor, b: Tensor) -> list[float]:
        return _differences((*a.tolist(), *b.tolist()), len(a))

    def share(holds: Sequence[bool]) -> float:
        return sum(holds) / len(holds)

    def counting(counts: Callable[[float, float], bool]) -> Callable[[Tensor, Tensor], float]:
        """The share of the ways whose difference counts, beside the one that was seen."""
        return lambda a, b: share([counts(way, differences(a, b)[0]) for way in differences(a, b)])

    def within(tolerance: float) -> Callable[[Tensor, Tensor], float]:
        return counting(lambda way, seen: abs(way) >= abs(seen) - tolerance)

    right = within(1e-9)
    seen_side = counting(lambda way, seen: math.copysign(1, seen) * way >= abs(seen) - 1e-9)

    def halves(a: Tensor, b: Tensor) -> float:
        ways = differences(*torch.cat([a, b]).tensor_split([(len(a) + len(b)) // 2]))
        return share([abs(way) >= abs(differences(a, b)[0]) - 1e-9 for way in ways])

    def by_sums(a: Tensor, b: Tensor) -> float:
        numbers = [*a.tolist(), *b.tolist()]
        ways = [2 * math.fsum(way) - math.fsum(numbers) for way in itertools.combinations(numbers, len(a))]
        return share([abs(way) >= abs(ways[0]) - 1e-9 for way in ways])

    def exactly(mean: Callable[[Tensor], Any]) -> Callable[[Tensor, Tensor], float]:
        def exact(a: Tensor, b: Tensor) -> float:
            numbers = torch.cat([a, b])
            every = range(len(numbers))
            ways = [abs(mean(numbers[[*way]]) - mean(numbers[[k for k in every if k not in way]]))
                    for way in itertools.combinations(every, len(a))]  # fmt: skip
            return share([bool(way >= abs(mean(a) - mean(b))) for way in ways])

        return exact

    directions = (
        "Differences count in both directions. And if a and b have different lengths, the two directions can have different "
        "shares, so that you can't double one of them."
    )
    ties = (
        "Your function goes wrong in a tie, or nearly a tie. Treat differences within 1e-9 of each other as equal, no others."
    )
    equal = "You count only ways with a larger difference. Ways with an equal one count, too, and so does the way you've seen."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "a above b": (counting(lambda way, seen: way >= seen - 1e-9), directions),
            "a below b": (counting(lambda way, seen: way <= seen + 1e-9), directions),
            "the side that was seen": (seen_side, directions),
            "doubled, at most 1": (lambda a, b: min(1.0, 2 * seen_side(a, b)), directions),
            "strict": (counting(lambda way, seen: abs(way) > abs(seen) + 1e-9), equal),
            "one way less": (lambda a, b: right(a, b) - 1 / len(differences(a, b)), equal),
            "sums": (by_sums,
                "You compare sums. But if a and b have different lengths, comparing their means gives a different result."),
            "halves": (halves, "You always choose half of the numbers as a. Choose `len(a)` of them."),
            **{f"within {wide:g}": (within(wide), ties) for wide in (1e-6, 1e-4, 1e-3, 1e-2)},
            **{f"no tolerance, {name}": (exactly(mean), ties) for name, mean in
               (("torch", torch.mean), ("sums", lambda x: sum(x.tolist()) / len(x)), ("numpy", lambda x: np.mean(x.numpy())))},
        },
        praise="if three seeds are entirely on one side of three others, the share is 0.1, and with three seeds each, it can't "
               "be smaller.",
    )  # fmt: skip


@functools.lru_cache(maxsize=64)
def _differences(numbers: tuple[float, ...], first: int) -> list[float]:
    """The differences of the means for all ways, beginning with the observed one; sums are exact before they are rounded."""
    ways = []
    for chosen in itertools.combinations(range(len(numbers)), first):
        rest = [numbers[k] for k in range(len(numbers)) if k not in chosen]
        ways.append(math.fsum(numbers[k] for k in chosen) / first - math.fsum(rest) / len(rest))
    return ways
