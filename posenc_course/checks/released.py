"""Exercises on a released model in a long text: where its cliff is, and where a pair brakes."""

import functools
import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise


@exercise("my_cliff")
def cliff(seed: int) -> Exercise:
    """my_cliff(excess) -> the first multiple of 64 from 8,192 on from which four entries have a mean above 0.5."""
    rng = random.Random(seed)

    def noisy(size: float, count: int) -> list[float]:
        return [round(rng.uniform(-size, size), 3) for _ in range(count)]

    def curve(*parts: list[float]) -> tuple[list[float]]:
        return ([number for part in parts for number in part],)

    flat, high = noisy(0.05, rng.randint(20, 40)), [1.5 + by for by in noisy(0.3, 20)]
    slow = [round(0.05 * step + by, 3) for step, by in enumerate(noisy(0.02, 40))]
    cases = {
        "a steep cliff": curve(flat, high),
        "a slow rise": curve(flat[:6], slow),
        "a single hard passage before the cliff": curve(flat[:8], [1.3], flat[8:20], high),
        "three hard passages in a row, less than 256 tokens": curve(flat[:8], [0.6, 0.6, 0.6], flat[11:20], high),
        "a cliff at once": curve([0.9, 0.8, 1.1, 1.0, 1.2]),
        "four entries": curve([0.2, 0.4, 0.9, 1.1]),
        "an easy passage behind the cliff": curve(flat[:10], high[:8], [-0.2, -0.3, 0.0, 0.1, -0.1], high),
        "a very easy passage before the cliff": curve(flat[:9], [-3.0], high),
    }

    def first(excess: list[float], width: int = 4, above: float = 0.5) -> int:
        means = [sum(excess[i : i + width]) / width for i in range(len(excess) - width + 1)]
        return next((i for i, mean in enumerate(means) if mean > above), len(means))

    def token(index: Callable[[list[float]], float]) -> Callable[[list[float]], int]:
        return lambda excess: 8192 + round(64 * index(excess))

    four = "Take the mean of four entries, and compare it with 0.5, so that a single hard passage isn't a cliff."
    earliest = "Return the first place with such a mean, however steep the rise is, and even if it becomes easier later."
    return Exercise(
        cases=cases,
        right=token(first),
        mistakes={
            **{f"a mean of {width}": (token(functools.partial(first, width=width)), four) for width in (1, 2, 3, 5)},
            "a sum": (token(lambda excess: first(excess, above=0.125)), four),
            "the steepest step": (token(lambda excess: max(range(1, len(excess)), key=lambda i: excess[i] - excess[i - 1])),
                earliest),
            "high from then on": (token(lambda excess: len(excess) - 3 - first([-x for x in excess[::-1]], above=-0.5)),
                earliest),
            "index": (lambda excess: first(excess), "You return an index of the list. Each entry has 64 tokens, and the list "
                                                    "begins at token 8,192."),
        },
        praise="every cliff is found, and no single hard passage is taken for one.",
    )  # fmt: skip


def _phase(q: Tensor, k: Tensor) -> float:
    """By which angle the query is ahead of the key."""
    return math.atan2(float(q[1]), float(q[0])) - math.atan2(float(k[1]), float(k[0]))


@exercise()
def lowest(seed: int) -> Exercise:
    """lowest(q, k, omega) -> the smallest distance at which a pair contributes least to the score, to within half a token."""
    rng = random.Random(seed)

    def pair(angle: float, at: float, lengths: tuple[float, float] = (1.0, 1.0)) -> tuple[Tensor, Tensor]:
        """A query that is ahead of its key by an angle."""
        rotated = ((lengths[0], at + angle), (lengths[1], at))
        q, k = (torch.tensor([r * math.cos(a), r * math.sin(a)], dtype=torch.float64) for r, a in rotated)
        return q, k

    slow = [100_000.0 ** (-i / 32) for i in range(32)]  # SmolLM2's
    at = [rng.uniform(-3, 3) for _ in range(6)]
    cases = {
        "a query like its key": (*pair(0, at[0]), 0.01),
        "a query a quarter ahead": (*pair(math.pi / 2, at[1]), slow[23]),
        "a query a quarter behind": (*pair(-math.pi / 2, at[2]), slow[23]),
        "a query that is nearly opposite, and ahead": (*pair(2.6, at[3]), slow[22]),
        "a query that is nearly opposite, and behind": (*pair(-2.6, at[4]), slow[24]),
        "long and short vectors": (*pair(rng.uniform(0.4, 1.2), at[5], (7.0, 0.3)), slow[23]),
        "angles on both sides of π": (*pair(0.9, 2.7), 0.004),
        "angles on both sides of -π": (*pair(-0.9, -2.7), 0.004),
    }

    def of(angle: Callable[[float], float]) -> Callable[[Tensor, Tensor, float], float]:
        """A distance from the angle by which the query is ahead."""
        return lambda q, k, omega: angle(_phase(q, k)) / omega

    full = 2 * math.pi
    distance = "Return a distance in tokens: the angle that's left, divided by the radians per token, ω."
    return Exercise(
        cases=cases,
        right=of(lambda ahead: (math.pi - ahead) % full),
        mistakes={
            "rotations": (lambda q, k, omega: (math.pi - _phase(q, k)) % full / full, distance),
            "the score": (lambda q, k, omega: float(q @ k), distance),
            "not modulo 2π": (of(lambda ahead: math.pi - ahead),
                "Some of your distances are negative, or longer than a whole rotation. Take the angle modulo 2π."),
            "absolute": (of(lambda ahead: abs((math.pi - ahead + math.pi) % full - math.pi)),
                "You drop the sign of an angle. A query that is ahead of its key has less far to go than one that is behind."),
        },
        praise="all distances are right. A query that is a quarter of a rotation ahead of its key reaches its lowest score "
               "after a quarter, and one that is a quarter behind after three.",
        same=lambda known, said: abs(known - said) <= 0.5,
    )  # fmt: skip
