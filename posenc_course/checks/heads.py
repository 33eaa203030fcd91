"""Exercises on the heads of a released model: how much looks one token back or behind equal tokens, and which pairs decide."""

import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise


def _attention(generator: torch.Generator, length: int, sharp: float = 2.0) -> Tensor:
    """Random causal weights (length, length)."""
    scores = sharp * torch.randn(length, length, dtype=torch.float64, generator=generator)
    future = torch.ones(length, length).triu(1).bool()
    return scores.masked_fill(future, -torch.inf).softmax(dim=-1)


# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


@exercise("my_previous")
def previous(seed: int) -> Exercise:
    """my_previous(weights) -> the mean attention of queries on the token before, without the query that has none."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {"two tokens": 2, "three tokens": 3, "a short text": 6, "a longer text": 40}
    cases = {name: (_attention(generator, length),) for name, length in sizes.items()}
    back = torch.diag(torch.ones(7, dtype=torch.float64), -1)
    back[0, 0] = 1
    cases["a head that does nothing else"] = (back,)
    return Exercise(
        cases=cases,
        right=lambda weights: float(weights.diagonal(-1).mean()),
        mistakes={
            "all queries": (lambda weights: float(weights.diagonal(-1).sum() / len(weights)),
                "You divide by the number of all queries. The query at position 0 has no token before it and doesn't count."),
            "the sum": (lambda weights: float(weights.diagonal(-1).sum()),
                "You return a sum over the queries. Return their mean."),
            "itself": (lambda weights: float(weights.diagonal().mean()),
                "You measure how much a token looks at itself. The key before it is beside the main diagonal."),
            "the token after": (lambda weights: float(weights.diagonal(1).mean()),
                "You take the diagonal above the main one, where a query would look at the token after it. All of it is 0."),
        },
        praise="you found the weights beside the diagonal. With this function, and the weights of 270 heads, five of SmolLM2's "
               "stand out.",
    )  # fmt: skip


# ── in the assignment ────────────────────────────────────────────────────────────────────────────────────────────────────


def _parts(q: Tensor, k: Tensor) -> Tensor:
    """The part of each pair in the score of each key, (keys, pairs)."""
    return (q * k).unflatten(-1, (-1, 2)).sum(dim=-1)


def _shares(values: Tensor) -> Tensor:
    return values / values.sum()


@exercise()
def pair_shares(seed: int) -> Exercise:
    """pair_shares(q, k) -> of each pair, the variance of its part of the scores over the keys, as a share of their sum."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    alike = normal(30, 8)
    alike[:, 2:4] = torch.tensor([3.0, -2.0])
    heavy = normal(20, 12) * torch.tensor([0.3] * 4 + [3.0] * 2 + [1.0] * 6)
    opposite = normal(25, 4)
    opposite[:, 2:] = -opposite[:, :2] + 0.3 * normal(25, 2)  # the parts of the pairs nearly cancel
    cases = {
        "one pair": (normal(2), normal(9, 2)),
        "two pairs": (normal(4), normal(50, 4)),
        "a pair that is the same in all keys": (normal(8) + 1, alike),
        "a pair with long keys": (normal(12), heavy),
        "two pairs whose parts nearly cancel": (torch.tensor([1.0, 0.5, 1.0, 0.5], dtype=torch.float64), opposite),
        "32 pairs": (normal(64), normal(100, 64) + normal(64)),
    }

    def of(value: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda q, k: _shares(value(_parts(q, k)))

    return Exercise(
        cases=cases,
        right=of(lambda parts: parts.var(dim=0)),
        mistakes={
            "mean square": (of(lambda parts: parts.square().mean(dim=0)),
                "You take mean squares. But a pair that adds the same to every key's score decides nothing, so subtract its "
                "mean over the keys first."),
            "standard deviation": (of(lambda parts: parts.std(dim=0)),
                "You take standard deviations. Take variances, which are their squares."),
            "no share": (lambda q, k: _parts(q, k).var(dim=0),
                "You return variances. Divide them by their sum, so that you get shares."),
            "share of the score's variance": (lambda q, k: _parts(q, k).var(dim=0) / (k @ q).var(),
                "You divide by the variance of the whole score. Divide by the sum of the pairs' variances, or the shares don't "
                "add up to 1 if pairs work together, or against each other."),
            "layout": (lambda q, k: _shares((q * k).unflatten(-1, (2, -1)).sum(dim=-2).var(dim=0)),
                "Your pairs are made of channels from the two halves. Here, neighbours form a pair: channels 0 and 1, then 2 "
                "and 3."),
        },
        praise="the shares are right. They say which pairs decide between the keys, not which ones are long.",
    )  # fmt: skip


def _after(tokens: list[int], m: int) -> list[int]:
    """The earlier keys right after a token that equals the one at m."""
    return [n for n in range(1, m) if tokens[n - 1] == tokens[m]]


@exercise()
def behind_equals(seed: int) -> Exercise:
    """behind_equals(tokens, weights) -> the mean attention on keys right after equal tokens, of queries that have any."""
    generator = torch.Generator().manual_seed(seed)
    rng = random.Random(seed)

    def case(tokens: list[int]) -> tuple[list[int], Tensor]:
        return tokens, _attention(generator, len(tokens))

    once = [rng.randint(0, 3) for _ in range(5)]
    cases = {
        "a text that is repeated": case([7, 3, 9, 4] * 3),
        "a random text": case([rng.randint(0, 4) for _ in range(30)]),
        "a text with two tokens": case([rng.randint(0, 1) for _ in range(12)]),
        "a single repeated token": case([5, 8, 2, 5, 1]),
        "a token right behind its equal": case([4, 6, 6, 1]),
        "one token, again and again": case([2] * 6),
        "no token comes twice": case([6, 1, 5, 2]),
        "a long text with rare repeats": case([*once, *range(10, 20), *once, *range(20, 30)]),
    }
    Keys = Callable[[list[int], int], list[int]]

    def mean(keys: Keys, counted: Keys | None = None) -> Callable[[list[int], Tensor], float]:
        """Over the queries that have the keys `counted`, by default those that they look at."""

        def answer(tokens: list[int], weights: Tensor) -> float:
            asked = [m for m in range(len(tokens)) if (counted or keys)(tokens, m)]
            shares = [float(weights[m, keys(tokens, m)].sum()) for m in asked]
            return sum(shares) / max(len(shares), 1)

        return answer

    def equal(tokens: list[int], m: int) -> list[int]:
        return [n for n in range(m) if tokens[n] == tokens[m]]

    def before(tokens: list[int], m: int) -> list[int]:
        return [n for n in range(m - 1) if tokens[n + 1] == tokens[m]]

    def with_itself(tokens: list[int], m: int) -> list[int]:
        return [n for n in range(1, m + 1) if tokens[n - 1] == tokens[m]]

    return Exercise(
        cases=cases,
        right=mean(_after),
        mistakes={
            "equal tokens": (mean(equal),
                "You measure the attention on the equal tokens themselves. Look at the keys right after them."),
            "before equal tokens": (mean(before),
                "You look at the keys right *before* equal tokens. What came next is right after them."),
            "itself": (mean(with_itself),
                "You also count the query's own key, if the token before it is equal. Only earlier keys count."),
            "all queries": (mean(_after, lambda tokens, m: [m]),
                "You average over all queries. Leave out those that have no such key."),
        },
        praise="the right keys are counted for the right queries. In SmolLM2, four heads have more than a fifth of their "
               "attention there.",
    )  # fmt: skip
