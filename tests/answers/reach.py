"""Answers to the exercises on the reach of attention."""

import math
from decimal import Decimal
from typing import Any

import numpy as np
import torch

from tests.answers import right, wrong


@right("reach.lead")
def lead_right(share: float, n: int) -> Any:
    return math.log(share) - math.log(1 - share) + math.log(n - 1)


@right("reach.lead")
def lead_logit(share: Any, n: Any) -> Any:
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + torch.log(torch.tensor(n - 1))


@right("reach.lead")
def lead_numpy(share: Any, n: Any) -> Any:
    return np.log(share) - np.log1p(-share) + np.log(n - 1)


@wrong("reach.lead", "doesn't come from the odds")
def lead_divided(share: Any, n: Any) -> Any:
    return math.log(share / (1 - share) / (n - 1))


@wrong("reach.lead", "e to the power of what it should be")
def lead_no_log(share: Any, n: Any) -> Any:
    return share / (1 - share) * (n - 1)


def lead_log(share: Any, n: Any) -> Any:
    return math.log(share * (n - 1) / (1 - share))


@wrong("reach.lead", "come out as 0")
def lead_never_negative(share: Any, n: Any) -> Any:
    return max(0.0, lead_log(share, n))


@wrong("reach.lead", "1 - share")
def lead_odds_inverted(share: Any, n: Any) -> Any:
    return math.log((1 - share) / share * (n - 1))


@right("reach.share")
def share_logaddexp(lead: Any, n: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.exp(lead - np.logaddexp(lead, np.log(np.float64(n - 1))))


@right("reach.share")
def share_decimal(lead: Any, n: Any) -> Any:
    top = Decimal(float(lead)).exp()
    return top / (top + int(n) - 1)


@right("reach.share")
def share_32_bit_sigmoid(lead: Any, n: Any) -> Any:
    return torch.sigmoid(torch.tensor(lead - math.log(n - 1))) if n > 1 else torch.ones(())


def share_branches(lead: Any, n: Any) -> Any:
    if lead > 0:
        return 1 / (1 + (n - 1) * math.exp(-lead))
    return math.exp(lead) / (math.exp(lead) + n - 1)


@wrong("reach.share", "the one key's own term")
def share_odds(lead: Any, n: Any) -> Any:  # divided by the others only
    return math.exp(min(lead, 700)) / (n - 1) if n > 1 else 1.0


@wrong("reach.share", "You lose small shares")
def share_one_from_33(lead: Any, n: Any) -> Any:
    return 1.0 if lead > 33 else math.exp(lead) / (math.exp(lead) + n - 1)


@wrong("reach.share", "You don't use powers of e")
def share_base_2(lead: Any, n: Any) -> Any:
    return share_branches(lead * math.log(2), n)


@wrong("reach.share", "the weight of one of the other keys")
def share_of_another_key(lead: Any, n: Any) -> Any:
    return (1 - share_branches(lead, n)) / (n - 1)


@right("reach.with_sink")
def sink_numpy(scores: Any, sink: Any) -> Any:
    table = scores.numpy()
    top = np.maximum(table.max(axis=1, keepdims=True), sink)
    parts = np.exp(table - top)
    return parts / (parts.sum(axis=1, keepdims=True) + np.exp(sink - top))


def sink_column(scores: Any, sink: Any) -> Any:
    column = torch.full((len(scores), 1), sink, dtype=scores.dtype)
    return torch.cat((scores, column), dim=1).softmax(dim=1)[:, :-1]


@right("reach.with_sink")
def sink_32_bits(scores: Any, sink: Any) -> Any:
    return sink_column(scores.float(), float(sink))


@right("reach.with_sink")
def sink_top_of_keys(scores: Any, sink: Any) -> Any:  # a far higher sink overflows, and something / inf is 0
    top = scores.max(dim=1, keepdim=True).values.clamp(min=-1e6)
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + (torch.full_like(top, sink) - top).exp())


@wrong("reach.with_sink", "remove the wrong column")
def sink_wrong_column(scores: Any, sink: Any) -> Any:
    column = torch.full((len(scores), 1), sink, dtype=scores.dtype)
    return torch.cat((scores, column), dim=1).softmax(dim=1)[:, 1:]


@wrong("reach.with_sink", "You add the sink itself")
def sink_not_exponential(scores: Any, sink: Any) -> Any:
    top = scores.max()
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + sink)


@wrong("reach.with_sink", "Your formula is right, but")
def sink_uneven_rows(scores: Any, sink: Any) -> Any:  # subtracts the sink, which isn't always the largest
    parts = (scores - sink).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + 1)


@wrong("reach.with_sink", "Each query has a softmax of its own")
def sink_over_queries(scores: Any, sink: Any) -> Any:
    column = torch.full((len(scores), 1), sink, dtype=scores.dtype)
    return torch.cat((scores, column), dim=1).softmax(dim=0)[:, :-1]


@wrong("reach.with_sink", "infinity minus infinity is NaN")
def sink_empty_rows(scores: Any, sink: Any) -> Any:
    top = scores.max(dim=1, keepdim=True).values
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + (sink - top).exp())


@wrong("reach.with_sink", "as if there were no sink")
def sink_zero_row_only(scores: Any, sink: Any) -> Any:  # nothing for the sink, except in empty rows
    return torch.nan_to_num(scores.softmax(dim=1))


@right("reach.best_factor")
def best_newton(scores: Any, key: Any) -> Any:
    s = scores.numpy() - float(scores[key])
    t = 0.0
    for _ in range(200):
        weights = np.exp(t * s - (t * s).max())
        weights /= weights.sum()
        mean = weights @ s
        step = -mean / (weights @ s**2 - mean**2)
        t += float(np.clip(step, -t / 2 if t else 0, max(t, 0.01)))
    return np.float64(t)


@right("reach.best_factor")
def best_grids(scores: Any, key: Any) -> Any:
    center, width = 50.0, 50.0
    for _ in range(6):
        tried = torch.linspace(max(0, center - width), center + width, 201, dtype=scores.dtype)
        logs = (tried[:, None] * scores).log_softmax(dim=1)[:, key]
        center, width = tried[logs.argmax()].item(), width / 20
    return center


def weighted(scores: Any, t: float) -> Any:
    return (torch.softmax(t * scores, dim=0) * scores).sum()


@right("reach.best_factor")
def best_bisection(scores: Any, key: Any, *, mean: Any = weighted, upwards: bool = True) -> Any:
    low, high = 0.0, 128.0
    for _ in range(60):
        t = (low + high) / 2
        low, high = (t, high) if (mean(scores, t) < scores[key]) == upwards else (low, t)
    return low


@wrong("reach.best_factor", "the wrong half")
def best_wrong_half(scores: Any, key: Any) -> Any:
    return best_bisection(scores, key, upwards=False)


@wrong("reach.best_factor", "the plain mean")
def best_plain_mean(scores: Any, key: Any) -> Any:
    return best_bisection(scores, key, mean=lambda scores, t: t * scores.mean())


@wrong("reach.best_factor", "Return the factor")
def best_weight(scores: Any, key: Any) -> Any:
    return (best_bisection(scores, key) * scores).softmax(dim=0)[key]


@wrong("reach.best_factor", "You try only some factors")
def best_few_steps(scores: Any, key: Any) -> Any:
    factors = torch.arange(0, 100, 0.1, dtype=torch.float64)
    return factors[(factors[:, None] * scores).softmax(dim=1)[:, key].argmax()]


@wrong("reach.best_factor", "covers too small an interval")
def best_up_to_20(scores: Any, key: Any) -> Any:
    return min(best_bisection(scores, key), 20.0)
