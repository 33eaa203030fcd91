"""Answers to the exercises on the reach of attention."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.temperature import log_factor

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def lead_by_logit(share: float, n: int) -> Tensor:
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + math.log(n - 1)


def lead_by_search(share: float, n: int) -> float:
    low, high = -100.0, 100.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if math.exp(middle) / (math.exp(middle) + n - 1) < share else (low, middle)
    return low


# ── exercise 1 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def share_by_sigmoid(lead: float, n: int) -> Any:
    return torch.tensor(lead - math.log(n - 1), dtype=torch.float64).sigmoid() if n > 1 else 1.0


def share_by_the_largest(lead: float, n: int) -> float:
    """As a softmax does it: the largest score is subtracted from all."""
    top = max(lead, 0.0)
    one, rest = math.exp(lead - top), (n - 1) * math.exp(-top)
    return one / (one + rest)


def share_by_logsumexp(lead: float, n: int) -> Any:
    with np.errstate(divide="ignore"):
        return np.exp(lead - np.logaddexp(lead, np.log(float(n - 1))))


def share_by_formula(lead: float, n: int) -> float:
    return math.exp(lead) / (math.exp(lead) + n - 1)


def share_in_numpy(lead: float, n: int) -> Any:
    with np.errstate(all="ignore"):
        return np.exp(lead) / (np.exp(lead) + n - 1)


def share_by_the_rest(lead: float, n: int) -> float:
    return 1 - (n - 1) / (math.exp(min(lead, 700)) + n - 1)


def share_by_softmax(lead: float, n: int) -> Any:
    scores = torch.zeros(n, dtype=torch.float64)
    scores[0] = lead
    return scores.softmax(dim=0)[0]


# ── exercise 2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def factor_by_counting(position: int, floor: int, scale: float) -> float:
    """Adds up the steps: ln 2, ln 3/2, ln 4/3, …"""
    factor, read = 1.0, floor
    while read <= position + 1:
        blocks = read // floor
        factor += scale * math.log((blocks + 1) / blocks)
        read += floor
    return factor


def factor_in_numpy(position: int, floor: int, scale: float) -> Any:
    return 1.0 + scale * np.log1p(np.floor((position + 1.0) / floor))


# ── exercise 3 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def sink_by_logsumexp(scores: Tensor, sink: float) -> Tensor:
    total = torch.logaddexp(scores.logsumexp(dim=1), torch.full((len(scores),), sink, dtype=scores.dtype))
    return (scores - total[:, None]).exp()


def sink_by_the_largest(scores: Tensor, sink: float) -> Tensor:
    top = scores.amax(dim=1, keepdim=True).clamp(min=sink)
    terms = (scores - top).exp()
    return terms / (terms.sum(dim=1, keepdim=True) + (sink - top).exp())


def sink_row_by_row(scores: Tensor, sink: float) -> list[list[float]]:
    rows = []
    for row in scores.tolist():
        top = max(*row, sink)
        terms = [math.exp(score - top) for score in row]
        rows.append([term / (sum(terms) + math.exp(sink - top)) for term in terms])
    return rows


def sink_in_front(scores: Tensor, sink: float) -> Tensor:
    return torch.nn.functional.pad(scores, (1, 0), value=sink).softmax(dim=-1)[:, 1:]


def sink_renormalized(scores: Tensor, sink: float) -> Tensor:
    weights = sink_in_front(scores, sink)
    return weights / weights.sum(dim=1, keepdim=True)


def sink_without_a_shift(scores: Tensor, sink: float) -> Tensor:
    return scores.exp() / (scores.exp().sum(dim=1, keepdim=True) + math.exp(min(sink, 700)))


# ── exercise 4 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def weight(scores: Tensor, key: int, factor: float) -> float:
    return float((factor * scores).softmax(dim=0)[key])


def by_thirds(scores: Tensor, key: int, end: float = 200.0) -> float:
    """Compares the logarithms of the weight at two factors, and drops the third on the far side of the lower one."""
    low, high = 0.0, end
    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        at_a, at_b = ((t * scores).log_softmax(dim=0)[key] for t in (a, b))
        low, high = (a, high) if at_a < at_b else (low, b)
    return low


def by_gradient(scores: Tensor, key: int) -> Any:
    low, high = 0.0, 500.0
    for _ in range(60):
        t = torch.tensor((low + high) / 2, dtype=torch.float64, requires_grad=True)
        (t * scores).log_softmax(dim=0)[key].backward()
        assert t.grad is not None
        low, high = (t.item(), high) if t.grad > 0 else (low, t.item())
    return low


def by_newton(scores: Tensor, key: int) -> Any:
    """With a halving step where Newton's would leave the interval."""
    x = (scores - scores[key]).numpy()
    low, high, t = 0.0, 1000.0, 1.0
    for _ in range(200):
        terms = np.exp(t * x - (t * x).max())
        weights = terms / terms.sum()
        mean = weights @ x
        low, high = (t, high) if mean < 0 else (low, t)
        step = t - mean / max(weights @ x**2 - mean**2, 1e-300)
        t = step if low < step < high else (low + high) / 2
    return t


def by_trying(scores: Tensor, key: int, factors: Any) -> float:
    return max(factors, key=lambda t: weight(scores, key, t))


RIGHT: dict[str, list[Any]] = {
    "reach.lead": [
        lambda share, n: math.log(share) - math.log(1 - share) + math.log(n - 1),
        lambda share, n: -math.log((1 / share - 1) / (n - 1)),
        lambda share, n: np.log(share * (n - 1) / (1 - share)),
        lead_by_logit,
        lead_by_search,
    ],
    "reach.share": [
        share_by_sigmoid,
        share_by_the_largest,
        share_by_logsumexp,
        lambda lead, n: 1 / (1 + (n - 1) * math.exp(min(-lead, 700))),
    ],
    "reach.factor": [
        factor_by_counting,
        factor_in_numpy,
        lambda position, floor, scale: 1 + scale * math.log(1 + math.floor((position + 1) / floor)),
        lambda position, floor, scale: torch.tensor(1 + (position + 1) // floor).double().log() * scale + 1,
    ],
    "reach.with_sink": [sink_by_logsumexp, sink_by_the_largest, sink_row_by_row, sink_in_front],
    "reach.best_factor": [by_thirds, by_gradient, by_newton],
}

WRONG: dict[str, list[Any]] = {
    "reach.lead": [
        ("more than n", lambda share, n: math.log(share / (1 - share) * (n + 1)), "You count n + 1 other keys"),
        ("share as percent", lambda share, n: math.log(100 * share / (1 - share) * (n - 1)), "Every number is 4.605 too large"),
        ("the score of n", lambda share, n: math.log(n) * share, None),
        ("rounded", lambda share, n: round(math.log(share / (1 - share) * (n - 1)), 1), "rounded to 1 decimals"),
        ("square root", lambda share, n: math.log(share / (1 - share) * math.sqrt(n - 1)), None),
        ("logarithms multiplied", lambda share, n: math.log(share / (1 - share)) * math.log(n - 1), None),
        ("log1p of the number", lambda share, n: math.log1p(share / (1 - share) * (n - 1)), "are too large"),
        ("both", lambda share, n: (math.log(share / (1 - share)), math.log(n - 1)), "it should return one number"),
        ("always", lambda share, n: 7.0, "You return 7 whatever your function is given"),
        ("swapped", lambda n, share: math.log(share / (1 - share) * (n - 1)), None),
    ],
    "reach.share": [
        ("as it stands", share_by_formula, "Which fraction has the same value"),
        ("in numpy", share_in_numpy, "Which fraction has the same value"),
        ("sigmoid of ln 0", lambda lead, n: 1 / (1 + math.exp(min(math.log(n - 1) - lead, 700))), "a key without others"),
        ("odds", lambda lead, n: math.exp(min(lead, 700)) / (n - 1), "a key without others"),
        ("1 minus the rest", share_by_the_rest, "but not for: an equal share among 10¹⁵ keys"),
        ("a list of all scores", share_by_softmax, "raised RuntimeError"),
        ("a list in python", lambda lead, n: 1 / sum([math.exp(min(max(-lead, -700), 700))] * (n - 1) + [1.0]), "make a list"),
        ("cut off", lambda lead, n: share_by_the_largest(max(lead, 0.0), n), "a lower score; a lead of -1,000"),
        ("percent", lambda lead, n: 100 * share_by_the_largest(lead, n), "Every number is 100 times"),
        ("lead squared", lambda lead, n: share_by_the_largest(lead * abs(lead), n), None),
        ("one", lambda lead, n: 1.0, "You return 1 whatever"),
    ],
    "reach.factor": [
        ("in floats from 0", lambda m, floor, scale: 1 + scale * np.log1p(np.floor(m / floor)), "one token too late"),
        ("log factor", lambda m, floor, scale: max(1.0, math.log(m + 1) / math.log(floor)), "grows faster"),
        ("ln of the next", lambda m, floor, scale: 1 + scale * math.log(2 + (m + 1) // floor), "as soon as it begins"),
        ("negative", lambda m, floor, scale: 1 - scale * math.log1p((m + 1) // floor), "Every number is -1 times what it"),
        ("rounded up", lambda m, floor, scale: 1 + scale * math.log1p(math.ceil((m + 1) / floor)), None),
        ("square", lambda m, floor, scale: (1 + scale * math.log1p((m + 1) // floor)) ** 2, "is the square of"),
        ("power", lambda m, floor, scale: (1 + (m + 1) // floor) ** scale, "too large"),
        ("only the first steps", lambda m, floor, scale: 1 + scale * math.log1p(min((m + 1) // floor, 2)), "right in"),
        ("remainder", lambda m, floor, scale: 1 + scale * math.log1p((m + 1) % floor), None),
        ("all of them", lambda m, floor, scale: [1.0] * (m + 1), "it should return one number"),
    ],
    "reach.with_sink": [
        ("renormalized", sink_renormalized, "as if there were no sink"),
        ("sink's column too", lambda scores, sink: torch.nn.functional.pad(scores, (0, 1), value=sink).softmax(1), "has shape"),
        ("without a shift", sink_without_a_shift, "Your formula is right"),
        ("added to the scores", lambda scores, sink: (scores + sink).softmax(dim=1), "as if there were no sink"),
        ("softmax off by one", lambda scores, sink: torch.nn.functional.pad(scores, (0, 1)).softmax(1)[:, :-1], "score 0 only"),
        ("subtracted", lambda scores, sink: (scores - sink).exp(), "infinite or NaN"),
        ("sink of the sum", lambda scores, sink: scores.softmax(1) / (1 + math.exp(min(sink, 700))), "infinite or NaN"),
        ("over all queries",
         lambda scores, sink: torch.cat((scores.flatten(), torch.tensor([sink]))).softmax(0)[:-1].view_as(scores),
         "one softmax for all"),
        ("one weight per query", lambda scores, sink: sink_in_front(scores, sink).sum(dim=1), "has shape"),
        ("the first key", lambda scores, sink: torch.cat((0 * scores[:, :1] + sink, scores[:, 1:]), 1).softmax(1), None),
    ],
    "reach.best_factor": [
        ("up to 20", lambda scores, key: by_thirds(scores, key, 20.0), "ends too early"),
        ("tried", lambda scores, key: by_trying(scores, key, np.arange(0, 100, 0.1).tolist()), "only some factors"),
        ("whole numbers", lambda scores, key: by_trying(scores, key, range(120)), "only some factors"),
        ("from 1", lambda scores, key: max(1.0, by_thirds(scores, key)), "begins too late"),
        ("temperature", lambda scores, key: 1 / by_thirds(scores, key), "by which the scores are divided"),
        ("smallest", lambda scores, key: by_trying(scores, key, [0.0]), "whatever your function is given"),
        ("its weight", lambda scores, key: weight(scores, key, by_thirds(scores, key)), None),
        ("logarithm", lambda scores, key: log_factor([len(scores) - 1], 2)[0], None),
        ("the highest score", lambda scores, key: by_gradient(scores, int(scores.argmax())), "are too large"),
        ("the logarithm of the keys", lambda scores, key: math.log(len(scores)), "here a rival is ahead"),
        ("the factor of ln n", lambda scores, key: by_thirds(scores, key) / math.log(len(scores)), None),
        ("half of it", lambda scores, key: by_thirds(scores, key) / 2, "0.5 times what it should be"),
        ("both", lambda scores, key: (0.0, by_thirds(scores, key)), "it should return one number"),
    ],
}  # fmt: skip
