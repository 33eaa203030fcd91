"""Exercises on a released model in a long text: where its cliff is, what a window keeps, and where a pair brakes."""

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


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

    return Exercise(
        cases=cases,
        right=token(first),
        mistakes={
            "one entry": (token(lambda excess: first(excess, 1)),
                "You look at single entries, which are 64 tokens. Take the mean of four, so that a single hard passage isn't "
                "a cliff."),
            "all four": (token(lambda excess: next((i for i in range(len(excess) - 3) if min(excess[i : i + 4]) > 0.5), 0)),
                "You ask for four entries that are all above 0.5. Their mean has to be, not each of them."),
            "the end": (token(lambda excess: first(excess) + 4),
                "You return the token behind the 256 tokens. Return the one at which they begin."),
            "the last entry": (token(lambda excess: first(excess) + 3),
                "You return the beginning of the last of the four entries. Return that of the first one."),
            "the middle": (token(lambda excess: first(excess) + 2),
                "You return the middle of the 256 tokens. Return the token at which they begin."),
            "index": (lambda excess: first(excess), "You return an index of the list. Each entry has 64 tokens, and the list "
                                                    "begins at token 8,192."),
            "without 8,192": (lambda excess: 64 * first(excess), "You count from the beginning of the list, which is token "
                                                                 "8,192. Add it."),
            "blocks": (token(lambda excess: 4 * first([sum(excess[i : i + 4]) / 4 for i in range(0, len(excess) - 3, 4)], 1)),
                "You try only every fourth entry. The 256 tokens can begin at any of them."),
            "sum": (token(lambda excess: first(excess, above=0.125)),
                "You compare the sum of four entries with 0.5. Compare their mean."),
            "two entries": (token(lambda excess: first(excess, 2)), "You take the mean of two entries, or 128 tokens."),
            "five entries": (token(lambda excess: first(excess, 5)), "You take the mean of five entries, or 320 tokens."),
            "three entries": (token(lambda excess: first(excess, 3)), "You take the mean of three entries, or 192 tokens."),
        },
        praise="every cliff is found, and no single hard passage is taken for one.",
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _seen(m: int, n: int, window: int, first: int) -> int:
    if n > m or (m - n >= window and n >= first):
        return -1
    return m - n if m - n < window else min(m - n, window + first - 1 - n)


@exercise()
def seen_at(seed: int) -> Exercise:
    """seen_at(m, n, window, first) -> the distance at which the query at m sees the key at n, or -1 if it doesn't."""
    rng = random.Random(seed)
    size, start, far = rng.randint(6, 9), rng.randint(3, 5), rng.randint(80, 120)
    cases = {
        "the query's own key": (far, far, size, start),
        "a key in the window": (far, far - 2, size, start),
        "the last key in the window": (far, far - size + 1, size, start),
        "the first key that has left the window": (far, far - size, size, start),
        "the first token of a long text": (far, 0, size, start),
        "the last of the first tokens": (far, start - 1, size, start),
        "the token behind the first ones": (far, start, size, start),
        "a key in between": (far, far // 2, size, start),
        "a key that comes later": (far, far + 3, size, start),
        "a first token that comes later": (1, 3, size, 5),
        "everything is still in sight": (size - 2, 0, size, start),
        "a first token that has left the window, with nothing in between": (size, 0, size, start),
        "the first key that is hidden": (size + start, start, size, start),
        "the first token, when a key is hidden": (size + start, 0, size, start),
        "no first tokens": (far, 0, size, 0),
        "a window of a single token": (7, 1, 1, 2),
        "very far into a text": (10**6, 0, 2048, 1),
    }

    def of(distance: Callable[[int, int, int, int], int]) -> Callable[[int, int, int, int], int]:
        """Of the keys that are seen; the others are -1."""
        return lambda m, n, window, first: -1 if _seen(m, n, window, first) < 0 else distance(m, n, window, first)

    def farther(distance: Callable[[int, int, int, int], int]) -> Callable[[int, int, int, int], int]:
        """Of first tokens that have left the window; the others are right."""
        return lambda m, n, window, first: (
            _seen(m, n, window, first) if m - n < window or n >= first else distance(m, n, window, first)
        )

    return Exercise(
        cases=cases,
        right=_seen,
        mistakes={
            "in the text": (of(lambda m, n, window, first: m - n),
                "Your distances are those in the text, so the first tokens move farther and farther away. Count positions "
                "within what is kept."),
            "at the window's end": (farther(lambda m, n, window, first: min(m - n, window)),
                "All first tokens have the same distance from your query. They are still one behind another."),
            "one too far": (farther(lambda m, n, window, first: min(m - n, window + first - n)),
                "Your first tokens are one position too far away. How many keys are kept between them and the query?"),
            "one too near": (farther(lambda m, n, window, first: min(m - n, window + first - 2 - n)),
                "Your first tokens are one position too near. How many keys are kept between them and the query?"),
            "other way round": (farther(lambda m, n, window, first: min(m - n, window + n)),
                "Your first tokens are in reverse order. The very first one is the farthest away."),
            "gap": (farther(lambda m, n, window, first: window + first - 1 - n),
                "You count keys that don't exist. As long as nothing is hidden, distances are those in the text."),
            "within the window": (farther(lambda m, n, window, first: min(m - n, window - 1 - n)),
                "You count the first tokens as part of the window. They are kept beside it."),
            "positions": (of(lambda m, n, window, first: m - _seen(m, n, window, first)),
                "You return a position. Return how far the key is from the query."),
            "from 1": (of(lambda m, n, window, first: _seen(m, n, window, first) + 1),
                "Your distances are one too large. A query's own key has the distance 0."),
            "negative": (of(lambda m, n, window, first: -_seen(m, n, window, first)),
                "You subtract the wrong way round. Keys are behind their query, and distances are positive."),
            "one too many": (lambda m, n, window, first: _seen(m, n, window + 1, first),
                "Your window has one token too many. The query's own token is one of them."),
            "one too few": (lambda m, n, window, first: _seen(m, n, max(window - 1, 1), first),
                "Your window has one token too few. It has `window` tokens, the query's own among them."),
            "never the first": (lambda m, n, window, first: _seen(m, n, window, 0),
                "You keep only the window. The first tokens have to stay, too."),
            "one first token": (lambda m, n, window, first: _seen(m, n, window, min(first, 1)),
                "You keep only one of the first tokens. Keep `first` of them."),
            "one first token more": (lambda m, n, window, first: _seen(m, n, window, first + 1),
                "You keep one first token too many. If `first` is 2, these are the tokens 0 and 1."),
            "the future": (lambda m, n, window, first: m - n if n > m else _seen(m, n, window, first),
                "Your query sees keys that come after it."),
            "the future's first tokens": (lambda m, n, window, first: m - n if m < n < first else _seen(m, n, window, first),
                "Near the beginning of the text, your query sees first tokens that come after it."),
        },
        praise="every key is seen at the right distance. Even a million tokens into a text, the first one is no farther away "
               "than the window is long.",
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
        turned = ((lengths[0], at + angle), (lengths[1], at))
        q, k = (torch.tensor([r * math.cos(a), r * math.sin(a)], dtype=torch.float64) for r, a in turned)
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
    exchanged = (
        "You have the direction wrong: with the distance, the query gets farther *ahead* of its key. Or did you exchange the "
        "two?"
    )
    return Exercise(
        cases=cases,
        right=of(lambda ahead: (math.pi - ahead) % full),
        mistakes={
            "highest": (of(lambda ahead: -ahead % full),
                "You return where the pair contributes most. It contributes least when query and key are opposite."),
            "wrong way": (of(lambda ahead: (math.pi + ahead) % full), exchanged),
            "highest, wrong way": (of(lambda ahead: ahead % full),
                "You return the angle between query and key, as a distance. How much farther do they have to rotate until "
                "they are opposite?"),
            "negative": (of(lambda ahead: math.pi - ahead),
                "Some of your distances are negative, or more than a full rotation. Take the remainder after full rotations."),
            "signed": (of(lambda ahead: (math.pi - ahead + math.pi) % full - math.pi),
                "Some of your distances are negative. Keys are behind their query, so add a full rotation."),
            "absolute": (of(lambda ahead: abs((math.pi - ahead + math.pi) % full - math.pi)),
                "You drop the sign of an angle. A query that is ahead of its key has less far to go than one that is behind."),
            "radians": (lambda q, k, omega: (math.pi - _phase(q, k)) % full,
                "You return an angle in radians. Divide it by the frequency to get tokens."),
            "half a wave": (of(lambda ahead: math.pi),
                "You return half a wavelength for every pair. That's right only if query and key have the same direction."),
            "zero": (of(lambda ahead: (math.pi / 2 - ahead) % full),
                "You return where the contribution falls to 0. It falls further, until query and key are opposite."),
            "off": (of(lambda ahead: 2 * ((math.pi - ahead) % full)),
                "You return where the pair is back at its value for distance 0. Return half of that."),
            "degrees": (of(lambda ahead: math.degrees((math.pi - ahead) % full)),
                "You divide degrees by a frequency in radians per token."),
            "rotations": (lambda q, k, omega: (math.pi - _phase(q, k)) % full * omega,
                "You multiply by the frequency. Divide by it: a slow pair needs more tokens for the same angle."),
            "wavelength later": (of(lambda ahead: (math.pi - ahead) % full + full),
                "Your distances are a full rotation too long. Return the smallest one."),
        },
        praise="all distances are right. A query that is a quarter of a rotation ahead of its key reaches its lowest score "
               "after a quarter, and one that is a quarter behind after three.",
        same=lambda known, said: abs(known - said) <= 0.5,
    )  # fmt: skip
