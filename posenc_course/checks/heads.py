"""Exercises on the heads of a released model: how much looks one token back, or behind equal tokens."""

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
        },
        praise="you found the weights beside the diagonal. With this function, and the weights of 270 heads, five of SmolLM2's "
               "stand out.",
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
