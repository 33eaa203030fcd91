"""Exercises on the reach of attention: how a share falls with the number of keys, sinks, and rivals."""

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, exercise
from posenc_course.checks._sandbox import Wrong

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


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

    return Exercise(
        cases=cases,
        right=lambda share, n: math.log(odds(share) * (n - 1)),
        mistakes={
            "n keys": (lambda share, n: math.log(odds(share) * n),
                "You count n other keys, but n counts all keys, including the one with the higher score."),
            "one key more": (lambda share, n: math.log(odds(share) * (n + 1)),
                "You count n + 1 other keys, but n counts all keys, so n - 1 of them are others."),
            "ln n": (lambda share, n: math.log(n),
                "You return ln n. That's how the lead grows with the number of keys, but it also depends on the share, and "
                "only n - 1 of the keys are others."),
            "other way round": (lambda share, n: math.log((n - 1) / odds(share)),
                "You have the two shares the wrong way round: with your lead, the one key gets what all others should get."),
            "sum": (lambda share, n: odds(share) * (n - 1),
                "You return e to the power of the lead. Take the logarithm of your result."),
            "base 2": (lambda share, n: math.log2(odds(share) * (n - 1)),
                "You use the logarithm to base 2, but the softmax uses powers of e."),
        },
        praise=lambda said: f"all leads are right. For half of the attention among 1,001 keys, a lead of {said[0]:.2f} is "
                            "enough.",
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _share(lead: float, n: int) -> float:
    """e^a/(e^a + n - 1), with powers that can't overflow."""
    if lead > 0:
        return 1 / (1 + (n - 1) * math.exp(-lead))
    return math.exp(lead) / (math.exp(lead) + (n - 1))


def _share_of(call: Call, lead: float, n: int) -> float:
    """The share, with a hint after errors that come from numbers without an exponential, a logarithm or an inverse."""
    try:
        return float(call(lead, n, wanted=0.5))
    except Wrong as wrong:
        text = str(wrong).removesuffix(" Do you divide by zero?")
        text += "" if text.endswith(".") else "."
        if abs(lead) > 700 and any(word in text for word in ("OverflowError", "nan", "inf")):
            raise Wrong(
                f"{text} e to the power of 1,000 is larger than any floating-point number. Which fraction has the same value, "
                "but no such number in it?"
            ) from wrong
        if n > 10**9 and "emory" in text:
            raise Wrong(f"{text} Don't make a list of all scores: n - 1 of them are equal.") from wrong
        raise


@exercise()
def share(seed: int) -> Exercise:
    """share(lead, n) -> the weight of a key whose score is higher by lead than those of n - 1 others, for any numbers."""
    rng = random.Random(seed)
    cases = {
        "two keys with the same score": (0.0, 2),
        "a small text": (4.0, 64),
        "a longer text": (8.0, 16384),
        "a lower score": (-2.0, 10),
        "a random lead": (float(rng.randint(20, 90)) / 10, rng.randint(20, 3000)),
        "a lead of 1,000": (1000.0, 10**6),
        "a lead of -1,000": (-1000.0, 10),
        "a lead of -11": (-11.0, 10),
        "a lead of -50": (-50.0, rng.randint(5, 20)),
        "10¹⁵ keys": (30.0, 10**15),
        "a lead of 35 among 10¹⁵ keys": (35.0, 10**15),
        "an equal share among 10¹⁵ keys": (0.0, 10**15),
    }

    return Exercise(
        cases=cases,
        right=_share,
        mistakes={
            "n - 2 others": (lambda lead, n: _share(lead, n - 1),
                "You count n - 2 other keys, but only one of the n keys has the higher score."),
        },
        praise=lambda said: f"all shares are right, also with a lead of 1,000 and among 10¹⁵ keys. With a lead of 8, one of "
                            f"16,384 keys gets {said[2]:.1%}.",
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
        "a sink with score 0": (sample(2, 4), 0.0),
        "a negative sink": (sample(4, 3), -1.5),
        "a single query": (sample(1, 6), 2.0),
        "a causal mask": (hidden, 1.0),
        "scores around 1,000": (sample(3, 4) + 1000, 1001.0),
        "scores around -1,000": (sample(3, 4) - 1000, -1000.5),
        "a sink far above all scores": (sample(2, 3), 1000.0),
        "a sink far below all scores": (sample(2, 3), -1000.0),
        "a query whose keys are all hidden": (alone, 0.3),
        "a query with scores around 1,000 and one with scores around -1,000": (
            torch.tensor([[1000.0, 999, 998], [-1000, -999, -1001]], dtype=torch.float64), -1000.0),
    }  # fmt: skip

    def top(scores: Tensor) -> Tensor:
        return scores.amax(dim=1, keepdim=True)

    def shifted(scores: Tensor, sink: float, by: Tensor, sink_by: Tensor | float) -> Tensor:
        """The formula, with one number subtracted from each row, and one from the sink."""
        terms = (scores - by).exp()
        return terms / (terms.sum(dim=1, keepdim=True) + (torch.as_tensor(sink, dtype=torch.float64) - sink_by).exp())

    def unexponentiated(scores: Tensor, sink: float, by: Tensor | float) -> Tensor:
        """The sink itself in the denominator."""
        terms = (scores - by).exp()
        return terms / (terms.sum(dim=1, keepdim=True) + sink)

    def ask(call: Call, scores: Tensor, sink: float) -> Tensor:
        try:
            return torch.as_tensor(call(scores, sink, wanted=scores))
        except Wrong as wrong:
            if "OverflowError" not in str(wrong):
                raise
            raise Wrong(f"{wrong}. That's because {large}") from wrong

    def same(known: Tensor, said: Tensor) -> bool:
        return known.shape == said.shape and torch.allclose(known.double(), said, rtol=1e-4, atol=1e-7, equal_nan=True)

    large = (
        "e to the power of 1,000 is more than a floating-point number can hold, and e to the power of -1,000 is 0. Subtract "
        "the same number from all scores of a row and from the sink."
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
    return Exercise(
        cases=cases,
        right=_with_sink,
        mistakes={
            "no sink": (lambda scores, sink: scores.softmax(dim=1), plain),
            "no sink, no NaN": (lambda scores, sink: scores.softmax(dim=1).nan_to_num(0.0), plain),
            "renormalized": (
                lambda scores, sink: _with_sink(scores, sink) / _with_sink(scores, sink).sum(dim=1, keepdim=True), plain),
            "one softmax": (
                lambda scores, sink: _with_sink(scores.reshape(1, -1), sink).view_as(scores),
                "You use one softmax for all queries together. Each query has its own, in which the sink takes part."),
            "not shifted": (lambda scores, sink: shifted(scores, sink, torch.zeros(len(scores), 1), 0.0),
                f"Your formula is right, but {large}"),
            "not shifted, no NaN": (
                lambda scores, sink: shifted(scores, sink, torch.zeros(len(scores), 1), 0.0).nan_to_num(),
                f"Your formula is right, but {large}"),
            "shifted by the sink": (lambda scores, sink: shifted(scores, sink, torch.tensor(sink), sink),
                "You subtract the sink from all scores. But a score can be higher than the sink by 1,000, and then its power "
                "is too large. Subtract the largest number of the row, be it a score or the sink."),
            "one shift for all": (
                lambda scores, sink: shifted(scores, sink, scores.amax().clamp(min=sink), scores.amax().clamp(min=sink)),
                "You subtract the largest score of all queries. In a row whose scores are much lower, all powers become 0. "
                "Each row needs its own largest number."),
            "the sink itself": (lambda scores, sink: unexponentiated(scores, sink, 0.0), power),
            "the sink itself, shifted": (lambda scores, sink: unexponentiated(scores, sink, top(scores)), power),
            "the sink itself, one shift": (lambda scores, sink: unexponentiated(scores, sink, scores.amax()), power),
            "the largest key": (lambda scores, sink: shifted(scores, sink, top(scores), top(scores)),
                "Your weights are right as long as a query sees at least one key. If all of them are hidden, their largest "
                "score is minus infinity, and infinity minus infinity is NaN. Let the sink take part in the softmax from the "
                "beginning."),
            "score 0": (lambda scores, sink: _with_sink(scores, 0.0),
                "You add 1 to the denominator, which is right for a sink with score 0 only. Use the score that your function "
                "is given."),
            "first column": (
                lambda scores, sink: torch.cat((torch.full_like(scores[:, :1], sink), scores), dim=1).softmax(dim=1)[:, :-1],
                other_column),
            "last column": (
                lambda scores, sink: torch.cat((scores, torch.full_like(scores[:, :1], sink)), dim=1).softmax(dim=1)[:, 1:],
                other_column),
        },
        praise="the weights are right, also for scores around 1,000, and for a query whose keys are all hidden: its weights "
               "are 0, and the sink gets everything.",
        ask=ask,
        same=same,
    )  # fmt: skip


def _weighted(scores: Tensor, factor: float) -> Tensor:
    """The mean of the scores, weighted by the softmax with this factor."""
    return (factor * scores).softmax(dim=0) @ scores


def _best(
    scores: Tensor, key: int, *, base: float = math.e, high: float = 1000.0,
    mean: Callable[[Tensor, float], Tensor] = _weighted, upwards: bool = True,
) -> float:  # fmt: skip
    """The factor with which the weighted mean of the scores is the key's score; it grows with the factor."""
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        larger = bool(mean(scores, middle * math.log(base)) < scores[key])
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
        "a rival that is close": (crowd(0.05, -1, 98), 1),
        "a rival that is very close": (crowd(0.001, -0.1, 100), 1),
        "a rival that is far ahead": (crowd(5, -0.5, 20), 1),
        "a rival that is 30 ahead": (crowd(30, -30, 14), 1),
        "two rivals": (listed(2, 2, 1, 0, -1, 0.5, -2, -3), 2),
        "a key that is hardly better than the mean": (listed(3, 0.3, 0, -1, -2.2), 1),
        "scores around 1,000": (crowd(1, -2, 50) + 1000, 1),
        "scores around -1,000": (crowd(1, -2, 50) - 1000, 1),
        "the third of 300 random scores": (noise, int(noise.argsort(descending=True)[2])),
    }

    def to(change: Callable[[float], float]) -> Callable[[Tensor, int], float]:
        return lambda scores, key: change(_best(scores, key))

    early = (
        "Your search ends too early. If the rival is only slightly ahead, it does harm only with a large factor, so the best "
        "factor can be as large as 100."
    )
    late = "Your search begins too late. The best factor can be smaller than 1, and then it makes the scores more alike."
    coarse = (
        "You try only some factors, or you round the best one. It should be right to within 0.001; you get there by halving an "
        "interval again and again."
    )
    half = (
        "Your search goes into the wrong half of the interval. If the weighted mean of the scores is lower than the key's "
        "score, the best factor is larger."
    )
    unweighted = (
        "You compare the key's score with the plain mean of the scores. In the mean that counts, each score is multiplied by "
        "its softmax weight, which depends on the factor."
    )
    ends = (50.0, 100.0, 128.0, 200.0, 500.0, 1000.0)
    return Exercise(
        cases=cases,
        right=_best,
        mistakes={
            **{f"up to {end}": (to(lambda best, end=end: min(best, end)), early) for end in (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)},  # type: ignore[misc]
            **{f"from {start}": (to(lambda best, start=start: max(best, start)), late) for start in (0.5, 1.0)},  # type: ignore[misc]
            **{f"wrong half of {end}": (lambda scores, key, end=end: _best(scores, key, high=end, upwards=False), half)
               for end in ends},
            **{f"plain mean below {end}": (lambda scores, key, end=end: _best(
                scores, key, high=end, mean=lambda scores, factor: factor * scores.mean()), unweighted) for end in ends},
            "weight": (lambda scores, key: float((_best(scores, key) * scores).softmax(dim=0)[key]),
                "You return the key's largest weight. Return the factor with which it has this weight."),
            "temperature": (to(lambda best: 1 / best),
                "You return the number by which the scores are divided, a temperature. Return its inverse, the factor."),
            "whole numbers": (lambda scores, key: max(range(101), key=lambda t: float((t * scores).softmax(0)[key])), coarse),
            "halves": (to(lambda best: round(2 * best) / 2), coarse),
            "tenths": (to(lambda best: round(best, 1)), coarse),
            "hundredths": (to(lambda best: round(best, 2)), coarse),
            "log n": (lambda scores, key: math.log(len(scores)),
                "You return ln n. If the key's score were the highest, such a factor would keep its share, but here a rival is "
                "ahead."),
        },
        praise=lambda said: f"all factors are right. With a rival that is 1 ahead, the best factor is {said[0]:.2f} among 16 "
                            f"keys, and {said[1]:.2f} among 1,002.",
        tolerance=1e-3,
    )  # fmt: skip
