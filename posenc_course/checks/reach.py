"""Exercises on the reach of attention: how a share falls with the number of keys, sinks, and rivals."""

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, exercise
from posenc_course.checks._sandbox import Wrong


@exercise("my_lead")
def lead(seed: int) -> Exercise:
    """my_lead(share, n) -> how much higher than the n - 1 other scores a key's score must be for the key to get this share."""
    rng = random.Random(seed)
    cases = {
        "half of the attention": (0.5, 1001),
        "two keys": (0.75, 2),
        "one key in ten": (0.9, 10),
        "a small share": (0.1, 5),
        "an equal share": (0.25, 4),
        "a million keys": (0.99, 10**6),
        "a share": (rng.choice([0.3, 0.4, 0.6, 0.7, 0.8]), rng.randint(20, 500)),
    }

    def odds(share: float) -> float:
        return share / (1 - share)

    leads: tuple[Callable[[float, int], float], ...] = (
        lambda share, n: math.log(n),
        lambda share, n: math.log(share * n),
        lambda share, n: math.log(share * (n - 1)),
        lambda share, n: math.log((n - 1) / (1 - share)),
        lambda share, n: math.log(odds(share) / (n - 1)),
    )
    return Exercise(
        cases=cases,
        right=lambda share, n: math.log(odds(share) * (n - 1)),
        mistakes={
            **{f"odds {n}": (wrong,
                "Your lead doesn't come from the odds. The key's share is to the share of all others as its own term in the "
                "softmax is to n - 1 equal terms.") for n, wrong in enumerate(leads)},
        },
        praise=lambda said: f"all leads are right. For half of the attention among 1,001 keys, a lead of {said[0]:.2f} is "
                            "enough.",
    )  # fmt: skip


def _share(lead: float, n: int) -> float:
    """e^a/(e^a + n - 1), with powers that can't overflow."""
    if lead > 0:
        return 1 / (1 + (n - 1) * math.exp(-lead))
    return math.exp(lead) / (math.exp(lead) + (n - 1))


def _share_of(call: Call, lead: float, n: int) -> float:
    """The share, with a hint after errors that come from a number that is too large."""
    try:
        return float(call(lead, n, wanted=0.5))
    except Wrong as wrong:
        text = str(wrong).removesuffix(" Do you divide by zero?").removesuffix(".")
        if abs(lead) > 700 and any(word in text for word in ("OverflowError", "nan", "inf")):
            raise Wrong(
                f"{text}. e to the power of 1,000 is larger than any floating-point number. Which fraction has the same value, "
                "but no such number in it?"
            ) from wrong
        raise


@exercise()
def share(seed: int) -> Exercise:
    """share(lead, n) -> the weight of a key whose score is higher by lead than those of n - 1 others, for any numbers."""
    rng = random.Random(seed)
    cases = {
        "two keys with the same score": (0.0, 2),
        "a longer text": (8.0, 16384),
        "a lower score": (-2.0, 10),
        "a random lead": (float(rng.randint(20, 90)) / 10, rng.randint(20, 3000)),
        "a lead of 1,000": (1000.0, 10**6),
        "a lead of -1,000": (-1000.0, 10),
        "a lead of -11": (-11.0, 10),
        "a lead of -50": (-50.0, rng.randint(5, 20)),
        "a lead of 35 among 10¹⁵ keys": (35.0, 10**15),
        "an equal share among 10¹⁵ keys": (0.0, 10**15),
    }

    exact = "You lose small shares, or large ones: even with a lead of -50, a share isn't 0. Don't cut off, or subtract from 1."
    power = "You don't use powers of e. In a softmax, each term is e to the power of a score."
    return Exercise(
        cases=cases,
        right=_share,
        mistakes={
            "base 2": (lambda lead, n: _share(lead * math.log(2), n), power),
            "no power": (lambda lead, n: lead / (lead + n - 1) if lead + n != 1 else 0.0, power),
            "base 10": (lambda lead, n: _share(lead * math.log(10), n), power),
            "one minus the others": (lambda lead, n: 1 - (n - 1) / (n - 1 + math.exp(min(lead, 700))), exact),
            **{f"0 or 1 beyond {low} and {high}": (lambda lead, n, low=low, high=high: float(lead > 0)
                if not low <= lead <= high else _share(lead, n), exact) for low, high in ((-20, 20), (-20, 1e9), (-1e9, 33))},
            "another key": (lambda lead, n: (1 - _share(lead, n)) / (n - 1),
                "You return the weight of one of the other keys. Return that of the key with the higher score."),
            "odds": (lambda lead, n: math.exp(min(lead, 700)) / (n - 1),
                "You divide by the terms of the other keys. The softmax's denominator contains the one key's own term, too."),
        },
        praise=lambda said: f"all shares are right, also with a lead of 1,000 and among 10¹⁵ keys. With a lead of 8, one of "
                            f"16,384 keys gets {said[list(cases).index('a longer text')]:.1%}.",
        ask=_share_of,
        same=lambda known, said: math.isclose(known, said, rel_tol=1e-4, abs_tol=1e-30),
    )  # fmt: skip


def _with_sink(scores: Tensor, sink: float) -> Tensor:
    column = torch.full_like(scores[:, :1], sink)
    return torch.cat((scores, column), dim=1).softmax(dim=1)[:, :-1]


@exercise()
def with_sink(seed: int) -> Exercise:
    """with_sink(scores, sink) -> the weights of the keys (queries, keys) if one more key without a value has the score sink."""
    generator = torch.Generator().manual_seed(seed)

    def sample(queries: int, keys: int) -> Tensor:
        return torch.randn(queries, keys, dtype=torch.float64, generator=generator)

    hidden = sample(4, 4).masked_fill(torch.ones(4, 4).triu(1).bool(), -math.inf)
    alone = sample(3, 5)
    alone[1] = -math.inf
    cases = {
        "some scores": (sample(3, 5), 0.7),
        "a causal mask": (hidden, 1.0),
        "scores around 1,000": (sample(3, 4) + 1000, 1001.0),
        "scores around -1,000": (sample(3, 4) - 1000, -1000.5),
        "a sink far above all scores": (sample(2, 3), 1000.0),
        "a sink far below all scores": (sample(2, 3), -1000.0),
        "a query whose keys are all hidden": (alone, 0.3),
        "a query with scores around 1,000 and one with scores around -1,000": (
            torch.tensor([[1000.0, 999, 998], [-1000, -999, -1001]], dtype=torch.float64), -1000.0),
    }  # fmt: skip

    def shifted(scores: Tensor, sink: float, by: Tensor, sink_by: Tensor | float) -> Tensor:
        """The formula, with one number subtracted from each row, and one from the sink."""
        terms = (scores - by).exp()
        return terms / (terms.sum(dim=1, keepdim=True) + (torch.as_tensor(sink, dtype=torch.float64) - sink_by).exp())

    def unexponentiated(scores: Tensor, sink: float, by: Tensor | float) -> Tensor:
        """The sink itself in the denominator."""
        terms = (scores - by).exp()
        return terms / (terms.sum(dim=1, keepdim=True) + sink)

    def top(scores: Tensor) -> Tensor:
        return scores.amax(dim=1, keepdim=True)

    def column(sink: float, scores: Tensor) -> Tensor:
        return torch.full_like(scores[:, :1], sink)

    def same(known: Tensor, said: Tensor) -> bool:
        return known.shape == said.shape and torch.allclose(known.double(), said, rtol=1e-4, atol=1e-7, equal_nan=True)

    large = (
        "e to the power of 1,000 is more than a floating-point number can hold, and e to the power of -1,000 is 0. Subtract "
        "the largest number of each row, be it a score or the sink, from all scores of this row and from the sink."
    )
    power = "You add the sink itself to the denominator. Like every other score, it belongs there as e to its power."
    other_column = (
        "Your softmax contains the sink, but then you remove the wrong column. Remove the sink's own, whether it's the first "
        "or the last."
    )
    plain = (
        "Each of your rows adds up to 1, as if there were no sink. The sink takes a part of the weights: its term belongs in "
        "the denominator."
    )
    axis = "Each query has a softmax of its own, over the scores of its row and the sink."
    formula = f"Your formula is right, but {large}"
    return Exercise(
        cases=cases,
        right=_with_sink,
        mistakes={
            "no sink": (lambda scores, sink: scores.softmax(dim=1), plain),
            "no sink, no NaN": (lambda scores, sink: scores.softmax(dim=1).nan_to_num(0.0), plain),
            "renormalized": (
                lambda scores, sink: _with_sink(scores, sink) / _with_sink(scores, sink).sum(dim=1, keepdim=True), plain),
            "one softmax": (lambda scores, sink: _with_sink(scores.reshape(1, -1), sink).view_as(scores), axis),
            "over the queries": (
                lambda scores, sink: torch.cat((scores, column(sink, scores)), dim=1).softmax(dim=0)[:, :-1], axis),
            "not shifted": (lambda scores, sink: shifted(scores, sink, torch.zeros(len(scores), 1), 0.0), formula),
            "not shifted, no NaN": (
                lambda scores, sink: shifted(scores, sink, torch.zeros(len(scores), 1), 0.0).nan_to_num(), formula),
            "shifted by the sink": (lambda scores, sink: shifted(scores, sink, torch.tensor(sink), sink), formula),
            "one shift for all": (
                lambda scores, sink: shifted(scores, sink, scores.amax().clamp(min=sink), scores.amax().clamp(min=sink)),
                formula),
            "the largest key": (lambda scores, sink: shifted(scores, sink, top(scores), top(scores)),
                "Your weights are right as long as a query sees at least one key. If all of them are hidden, their largest "
                "score is minus infinity, and infinity minus infinity is NaN. Let the sink take part in the softmax from the "
                "beginning."),
            "the sink itself": (lambda scores, sink: unexponentiated(scores, sink, 0.0), power),
            "the sink itself, one shift": (lambda scores, sink: unexponentiated(scores, sink, scores.amax()), power),
            "first column": (
                lambda scores, sink: torch.cat((column(sink, scores), scores), dim=1).softmax(dim=1)[:, :-1], other_column),
            "last column": (
                lambda scores, sink: torch.cat((scores, column(sink, scores)), dim=1).softmax(dim=1)[:, 1:], other_column),
        },
        praise="the weights are right, also for scores around 1,000, and for a query whose keys are all hidden: its weights "
               "are 0, and the sink gets everything.",
        same=same,
    )  # fmt: skip


def _weighted(scores: Tensor, factor: float) -> Tensor:
    """The mean of the scores, weighted by the softmax with this factor."""
    return (factor * scores).softmax(dim=0) @ scores


def _best(
    scores: Tensor, key: int, *, high: float = 1000.0, steps: int = 100,
    mean: Callable[[Tensor, float], Tensor] = _weighted, upwards: bool = True,
) -> float:  # fmt: skip
    """The factor with which the weighted mean of the scores is the key's score; it grows with the factor."""
    low = 0.0
    for _ in range(steps):
        middle = (low + high) / 2
        larger = bool(mean(scores, middle) < scores[key])
        low, high = (middle, high) if larger == upwards else (low, middle)
    return (low + high) / 2


@exercise()
def best_factor(seed: int) -> Exercise:
    """best_factor(scores, key) -> the factor for all scores with which this key gets its largest weight."""
    generator = torch.Generator().manual_seed(seed)

    def listed(*scores: float) -> Tensor:
        return torch.tensor(scores, dtype=torch.float64)

    def crowd(rival: float, other: float, others: int) -> Tensor:
        """A rival, the key with score 0, and others."""
        return listed(rival, 0.0, *[other] * others)

    noise = torch.randn(300, dtype=torch.float64, generator=generator)
    cases = {
        "a rival that is 1 ahead, and 14 keys that are 1 behind": (crowd(1, -1, 14), 1),
        "a rival that is 1 ahead, and 1,000 keys that are 1 behind": (crowd(1, -1, 1000), 1),
        "a rival that is very close": (crowd(0.001, -0.1, 100), 1),
        "a rival that is far ahead": (crowd(5, -0.5, 20), 1),
        "a rival that is 30 ahead": (crowd(30, -30, 14), 1),
        "two rivals": (listed(2, 2, 1, 0, -1, 0.5, -2, -3), 2),
        "a key that is hardly better than the mean": (listed(3, 0.3, 0, -1, -2.2), 1),
        "scores around 1,000": (crowd(1, -2, 50) + 1000, 1),
        "the third of 300 random scores": (noise, int(noise.argsort(descending=True)[2])),
    }

    def to(change: Callable[[float], float]) -> Callable[[Tensor, int], float]:
        return lambda scores, key: change(_best(scores, key))

    def tried(factors: Tensor) -> Callable[[Tensor, int], float]:
        return lambda scores, key: float(factors[(factors[:, None] * scores).softmax(dim=1)[:, key].argmax()])

    interval = (
        "Your search covers too small an interval. The best factor can be smaller than 1, and then it makes the scores more "
        "alike. It can also be as large as 100, if the rival is only slightly ahead."
    )
    coarse = (
        "You try only some factors, or you round the best one. It should be right to within 0.001; you get there by halving an "
        "interval again and again."
    )
    ends = (50.0, 100.0, 128.0)
    return Exercise(
        cases=cases,
        right=_best,
        mistakes={
            **{f"up to {end}": (to(lambda best, end=end: min(best, end)), interval) for end in (1.0, 10.0, 20.0)},  # type: ignore[misc]
            **{f"from {start}": (to(lambda best, start=start: max(best, start)), interval) for start in (0.5, 1.0)},  # type: ignore[misc]
            **{f"steps of {step}": (tried(torch.arange(0, 100, step, dtype=torch.float64)), coarse)
               for step in (1, 0.1, 0.05, 0.01)},
            "few halvings": (lambda scores, key: _best(scores, key, high=100.0, steps=12), coarse),
            **{f"wrong half of {end}": (lambda scores, key, end=end: _best(scores, key, high=end, upwards=False),
                "Your search goes into the wrong half of the interval. If the weighted mean of the scores is lower than the "
                "key's score, the best factor is larger.") for end in ends},
            **{f"plain mean below {end}": (lambda scores, key, end=end: _best(
                scores, key, high=end, mean=lambda scores, factor: factor * scores.mean()),
                "You compare the key's score with the plain mean of the scores. In the mean that counts, each score is "
                "multiplied by its softmax weight, which depends on the factor.") for end in ends},
            "weight": (lambda scores, key: float((_best(scores, key) * scores).softmax(dim=0)[key]),
                "You return the key's largest weight. Return the factor with which it has this weight."),
        },
        praise=lambda said: f"all factors are right. With a rival that is 1 ahead, the best factor is {said[0]:.2f} among 16 "
                            f"keys, and {said[1]:.2f} among 1,002.",
        tolerance=1e-3,
    )  # fmt: skip
