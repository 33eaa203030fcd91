"""Answers to the exercises on the reach of attention."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.temperature import log_factor
from tests.answers import blind

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


# ── by people who hadn't read the checks ──────────────────────────────────────────────────────────────────────────────────────


def share_branches(lead: Any, n: Any) -> Any:
    if lead > 0:
        return 1 / (1 + (n - 1) * math.exp(-lead))
    return math.exp(lead) / (math.exp(lead) + n - 1)


def share_logaddexp(lead: Any, n: Any) -> Any:
    with np.errstate(divide="ignore"):
        return np.exp(lead - np.logaddexp(lead, np.log(np.float64(n - 1))))


def share_caught(lead: Any, n: Any) -> Any:
    try:
        return math.exp(lead) / (math.exp(lead) + n - 1)
    except OverflowError:
        return 1


def share_decimal(lead: Any, n: Any) -> Any:
    top = Decimal(float(lead)).exp()
    return top / (top + int(n) - 1)


def share_by_logarithms(lead: Any, n: Any) -> Any:
    d = lead - math.log(n - 1)
    return 1 / (1 + math.exp(-d)) if d > 0 else math.exp(d) / (1 + math.exp(d))


def share_rounded(lead: Any, n: Any) -> Any:
    return round(share_branches(lead, n), 6)


def share_large_is_one(lead: Any, n: Any) -> Any:
    if lead > 20:
        return 1.0
    if lead < -20:
        return 0.0
    return math.exp(lead) / (math.exp(lead) + n - 1)


def share_one_key_left_out(lead: Any, n: Any) -> Any:  # n - 1 keys in all
    return share_branches(lead, n - 1) if n > 1 else 1.0


def share_odds(lead: Any, n: Any) -> Any:  # divided by the others only
    return math.exp(min(lead, 700)) / (n - 1) if n > 1 else 1.0


def factor_count(position: Any, floor: Any, scale: Any) -> Any:  # counts the last tokens of blocks
    blocks = len(range(floor - 1, position + 1, floor))
    return 1 + scale * torch.tensor(1.0 + blocks).log()


def factor_remainder(position: Any, floor: Any, scale: Any) -> Any:
    read = position + 1
    return Fraction(1) + scale * math.log(1 + (read - read % floor) / floor)


def factor_log_of_blocks(position: Any, floor: Any, scale: Any) -> Any:
    blocks = (position + 1) // floor
    return 1 + scale * math.log(blocks) if blocks else 1.0


def factor_no_one(position: Any, floor: Any, scale: Any) -> Any:
    return scale * math.log(1 + (position + 1) // floor)


def factor_begun(position: Any, floor: Any, scale: Any) -> Any:
    return 1 + scale * math.log(1 + math.ceil((position + 1) / floor))


def factor_precedence(position: Any, floor: Any, scale: Any) -> Any:
    return 1 + scale * math.log(1 + position + 1 // floor)


def factor_scale_inside(position: Any, floor: Any, scale: Any) -> Any:
    return 1 + math.log(1 + scale * ((position + 1) // floor))


def factor_minus_one(position: Any, floor: Any, scale: Any) -> Any:  # log(1 + b) at the block's first token
    return 1 + scale * math.log(1 + max(0, position - 1) // floor)


def sink_column(scores: Any, sink: Any) -> Any:
    column = torch.full((len(scores), 1), sink, dtype=scores.dtype)
    return torch.cat((scores, column), dim=1).softmax(dim=1)[:, :-1]


def sink_numpy(scores: Any, sink: Any) -> Any:
    table = scores.numpy()
    top = np.maximum(table.max(axis=1, keepdims=True), sink)
    parts = np.exp(table - top)
    return parts / (parts.sum(axis=1, keepdims=True) + np.exp(sink - top))


def sink_loops(scores: Any, sink: Any) -> Any:
    def weight(s: float, row: list[float]) -> float:
        return 1 / (math.exp(min(sink - s, 700)) + sum(math.exp(min(r - s, 700)) for r in row)) if s > -math.inf else 0.0

    return [[weight(s, row) for s in row] for row in scores.tolist()]


def sink_overflow(scores: Any, sink: Any) -> Any:
    parts = scores.exp()
    return parts / (parts.sum(dim=1, keepdim=True) + math.exp(sink))


def sink_overflow_torch(scores: Any, sink: Any) -> Any:
    parts = scores.exp()
    return parts / (parts.sum(dim=1, keepdim=True) + torch.tensor(sink, dtype=scores.dtype).exp())


def sink_empty_rows(scores: Any, sink: Any) -> Any:
    top = scores.max(dim=1, keepdim=True).values
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + (sink - top).exp())


def sink_top_of_keys(scores: Any, sink: Any) -> Any:  # a far higher sink overflows, and something / inf is 0
    top = scores.max(dim=1, keepdim=True).values.clamp(min=-1e6)
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + (torch.full_like(top, sink) - top).exp())


def sink_wrong_column(scores: Any, sink: Any) -> Any:
    column = torch.full((len(scores), 1), sink, dtype=scores.dtype)
    return torch.cat((scores, column), dim=1).softmax(dim=1)[:, 1:]


def sink_not_exponential(scores: Any, sink: Any) -> Any:
    top = scores.max()
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + sink)


def sink_32_bits(scores: Any, sink: Any) -> Any:
    return sink_column(scores.float(), float(sink))


def sink_nan_to_zero(scores: Any, sink: Any) -> Any:
    return torch.nan_to_num(sink_overflow_torch(scores, sink))


def sink_scaled(scores: Any, sink: Any) -> Any:  # the sink takes the same from every row
    return scores.softmax(dim=1) * (1 - 1 / (1 + math.exp(-max(-700, min(700, sink)))))


def sink_global_top(scores: Any, sink: Any) -> Any:  # one maximum for all rows: low rows vanish
    top = max(float(scores.max()), sink)
    parts = (scores - top).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + math.exp(sink - top))


def best_bisection(scores: Any, key: Any) -> Any:
    low, high = 0.0, 128.0
    for _ in range(60):
        t = (low + high) / 2
        mean = (torch.softmax(t * scores, dim=0) * scores).sum()
        if mean < scores[key]:
            low = t
        else:
            high = t
    return low


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


def best_grids(scores: Any, key: Any) -> Any:
    center, width = 50.0, 50.0
    for _ in range(6):
        tried = torch.linspace(max(0, center - width), center + width, 201, dtype=scores.dtype)
        logs = (tried[:, None] * scores).log_softmax(dim=1)[:, key]
        center, width = tried[logs.argmax()].item(), width / 20
    return center


def best_recursion(scores: Any, key: Any, low: Any = 0, high: Any = 100) -> Any:
    t = (low + high) / 2
    if high - low < 1e-6:
        return t
    ahead = [s - scores[key].item() for s in scores.tolist()]
    top = max(ahead)
    slope = sum(a * math.exp(t * (a - top)) for a in ahead)
    return best_recursion(scores, key, t, high) if slope < 0 else best_recursion(scores, key, low, t)


def best_overflow(scores: Any, key: Any) -> Any:
    low, high = 0.0, 100.0
    for _ in range(60):
        t = (low + high) / 2
        parts = (t * scores).exp()
        if (parts * scores).sum() / parts.sum() < scores[key]:
            low = t
        else:
            high = t
    return low


def best_wrong_half(scores: Any, key: Any) -> Any:
    low, high = 0.0, 100.0
    for _ in range(60):
        t = (low + high) / 2
        if (torch.softmax(t * scores, dim=0) * scores).sum() > scores[key]:
            low = t
        else:
            high = t
    return low


def best_coarse(scores: Any, key: Any) -> Any:
    tried = torch.arange(0, 100, 0.05, dtype=scores.dtype)
    return tried[(tried[:, None] * scores).softmax(dim=1)[:, key].argmax()]


def best_plain_mean(scores: Any, key: Any) -> Any:
    low, high = 0.0, 100.0
    for _ in range(60):
        t = (low + high) / 2
        if (t * scores).mean() < scores[key]:
            low = t
        else:
            high = t
    return low


def best_few_steps(scores: Any, key: Any) -> Any:
    low, high = 0.0, 100.0
    for _ in range(12):
        t = (low + high) / 2
        if (torch.softmax(t * scores, dim=0) * scores).sum() < scores[key]:
            low = t
        else:
            high = t
    return (low + high) / 2


def best_gradient(scores: Any, key: Any) -> Any:
    t = 1.0
    for _ in range(200):
        t += 0.1 * float(scores[key] - (torch.softmax(t * scores, dim=0) * scores).sum())
    return t


def best_weight(scores: Any, key: Any) -> Any:  # returns the weight, not the factor
    return (best_bisection(scores, key) * scores).softmax(dim=0)[key]


def best_ternary_underflow(scores: Any, key: Any) -> Any:  # weights of 0 on both sides
    def weight(t: Any) -> Any:
        return float((t * scores).softmax(dim=0)[key])

    low, high = 0.0, 100.0
    for _ in range(100):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if weight(a) <= weight(b) else (low, b)
    return low


def lead_log(share: Any, n: Any) -> Any:
    return math.log(share * (n - 1) / (1 - share))


def lead_logit(share: Any, n: Any) -> Any:
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + torch.log(torch.tensor(n - 1))


def lead_numpy(share: Any, n: Any) -> Any:
    return np.log(share) - np.log1p(-share) + np.log(n - 1)


def lead_no_log(share: Any, n: Any) -> Any:
    return share / (1 - share) * (n - 1)


def lead_never_negative(share: Any, n: Any) -> Any:
    return max(0.0, lead_log(share, n))


def lead_odds_inverted(share: Any, n: Any) -> Any:
    return math.log((1 - share) / share * (n - 1))


def lead_divided(share: Any, n: Any) -> Any:
    return math.log(share / (1 - share) / (n - 1))


def lead_absolute(share: Any, n: Any) -> Any:
    return abs(lead_log(share, n))


def share_32_bit_sigmoid(lead: Any, n: Any) -> Any:
    return torch.sigmoid(torch.tensor(lead - math.log(n - 1))) if n > 1 else torch.ones(())


def share_missing_return(lead: Any, n: Any) -> Any:
    if lead > 0:
        return 1 / (1 + (n - 1) * math.exp(-lead))
    if lead < 0:
        return math.exp(lead) / (math.exp(lead) + n - 1)
    return None


def share_one_from_33(lead: Any, n: Any) -> Any:
    return 1.0 if lead > 33 else math.exp(lead) / (math.exp(lead) + n - 1)


def share_zero_below_20(lead: Any, n: Any) -> Any:
    return 0.0 if lead < -20 else share_branches(lead, n)


def share_zero_if_caught(lead: Any, n: Any) -> Any:
    try:
        return math.exp(lead) / (math.exp(lead) + n - 1)
    except OverflowError:
        return 0


def share_difference(lead: Any, n: Any) -> Any:  # one minus the others, which rounds small shares to 0
    others = (n - 1) * math.exp(-max(lead, -700))
    return 1 - others / (1 + others)


def factor_log_of_reached(position: Any, floor: Any, scale: Any) -> Any:
    return 1 + scale * math.log((position + 1) // floor * floor + 1)


def sink_clipped(scores: Any, sink: Any) -> Any:  # clips what is too large for the exponential
    parts = scores.clamp(max=700).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + math.exp(min(sink, 700)))


def sink_uneven_rows(scores: Any, sink: Any) -> Any:  # subtracts the sink, which isn't always the largest
    parts = (scores - sink).exp()
    return parts / (parts.sum(dim=1, keepdim=True) + 1)


def sink_zero_row_only(scores: Any, sink: Any) -> Any:  # nothing for the sink, except in empty rows
    return torch.nan_to_num(scores.softmax(dim=1))


def best_torch_gradient(scores: Any, key: Any) -> Any:
    s = scores - scores[key]
    t = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    for _ in range(300):
        loss = (t * s).logsumexp(dim=0)
        (slope,) = torch.autograd.grad(loss, t, create_graph=True)
        (curve,) = torch.autograd.grad(slope, t)
        with torch.no_grad():
            t += torch.clamp(-slope / curve, min=-t / 2, max=t)
    return t  # it still requires a gradient


def best_to_a_hundredth(scores: Any, key: Any) -> Any:
    return round(best_bisection(scores, key), 2)


def best_difference(scores: Any, key: Any) -> Any:  # the largest lead over the rival, not the largest weight
    tried = torch.linspace(0.01, 100, 5001, dtype=scores.dtype)
    weights = (tried[:, None] * scores).softmax(dim=1)
    return tried[(weights[:, key] - weights.max(dim=1).values).argmax()]


RIGHT: dict[str, list[Any]] = {
    "reach.lead": [
        lambda share, n: math.log(share) - math.log(1 - share) + math.log(n - 1),
        lambda share, n: -math.log((1 / share - 1) / (n - 1)),
        lambda share, n: np.log(share * (n - 1) / (1 - share)),
        lead_by_logit,
        lead_by_search,
        *blind(lead_logit, lead_numpy),
    ],
    "reach.share": [
        share_by_sigmoid,
        share_by_the_largest,
        share_by_logsumexp,
        lambda lead, n: 1 / (1 + (n - 1) * math.exp(min(-lead, 700))),
        lambda lead, n: 1 / (1 + math.exp(min(math.log(n - 1) - lead, 700))),
        *blind(share_logaddexp, share_caught, share_decimal, share_32_bit_sigmoid, share_by_logarithms),
    ],
    "reach.factor": [
        factor_by_counting,
        factor_in_numpy,
        lambda position, floor, scale: 1 + scale * math.log(1 + math.floor((position + 1) / floor)),
        lambda position, floor, scale: torch.tensor(1 + (position + 1) // floor).double().log() * scale + 1,
        *blind(factor_count, factor_remainder),
    ],
    "reach.with_sink": [
        sink_by_logsumexp,
        sink_by_the_largest,
        sink_row_by_row,
        sink_in_front,
        *blind(sink_numpy, sink_loops, sink_32_bits, sink_top_of_keys),
    ],
    "reach.best_factor": [
        by_thirds,
        by_gradient,
        by_newton,
        *blind(best_newton, best_grids, best_recursion, best_torch_gradient),
    ],
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
        *blind(
            ("divided", lead_divided, None),
            ("no logarithm", lead_no_log, "Take the logarithm"),
            ("odds inverted", lead_odds_inverted, "the wrong way round"),
            ("never negative", lead_never_negative, "come out as 0"),
            ("absolute", lead_absolute, "should be negative come out positive"),
        ),
    ],
    "reach.share": [
        ("as it stands", share_by_formula, "Which fraction has the same value"),
        ("in numpy", share_in_numpy, "Which fraction has the same value"),
        ("odds", lambda lead, n: math.exp(min(lead, 700)) / (n - 1), None),
        ("1 minus the rest", share_by_the_rest, "an equal share among 10¹⁵ keys"),
        ("a list of all scores", share_by_softmax, "raised RuntimeError"),
        ("a list in python", lambda lead, n: 1 / sum([math.exp(min(max(-lead, -700), 700))] * (n - 1) + [1.0]), "make a list"),
        ("cut off", lambda lead, n: share_by_the_largest(max(lead, 0.0), n), "those in which `lead` is at least 0"),
        ("percent", lambda lead, n: 100 * share_by_the_largest(lead, n), "Every number is 100 times"),
        ("lead squared", lambda lead, n: share_by_the_largest(lead * abs(lead), n), None),
        ("one", lambda lead, n: 1.0, "You return 1 whatever"),
        *blind(
            ("six decimals", share_rounded, "but not for: a lead of -11; a lead of -50; an equal share"),
            ("0 or 1 beyond 20", share_large_is_one, "a lead of 35 among 10¹⁵ keys"),
            ("n - 1 keys", share_one_key_left_out, "You count n - 2 other keys"),
            ("relative to the others", share_odds, None),
            ("missing return", share_missing_return, "Is a `return` missing?"),
            ("1 beyond 33", share_one_from_33, "but not for: a lead of 35"),
            ("0 below -20", share_zero_below_20, "but not for: a lead of -50"),
            ("0 if caught", share_zero_if_caught, "but not for: a lead of 1,000"),
            ("1 minus the others", share_difference, "but not for: a lead of -50; an equal share"),
        ),
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
        *blind(
            ("precedence", factor_precedence, "in parentheses"),
            ("before the token", factor_minus_one, None),
            ("tokens in blocks", factor_log_of_reached, None),
            ("begun", factor_begun, "as soon as it begins"),
            ("ln b", factor_log_of_blocks, "ln(1 + b)"),
            ("no 1", factor_no_one, "0 for the first tokens"),
            ("scale inside", factor_scale_inside, "Multiply the logarithm"),
        ),
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
        *blind(
            ("math.exp", sink_overflow, "Subtract the same number"),
            ("wrong column", sink_wrong_column, "remove the wrong column"),
            ("sink itself", sink_not_exponential, "You add the sink itself"),
            ("NaN as zero", sink_nan_to_zero, "Your formula is right"),
            ("sink subtracted", sink_uneven_rows, "higher than the sink by 1,000"),
            ("one maximum", sink_global_top, "Each row needs its own"),
            ("clipped", sink_clipped, "scores around 1,000; scores around -1,000"),
            ("empty rows", sink_empty_rows, "infinity minus infinity is NaN"),
            ("sigmoid of the sink", sink_scaled, "infinite or NaN"),
            ("zero rows only", sink_zero_row_only, "as if there were no sink"),
        ),
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
        *blind(
            ("wrong half", best_wrong_half, "the wrong half"),
            ("plain mean", best_plain_mean, "the plain mean"),
            ("weight", best_weight, "Return the factor"),
            ("weights of 0", best_ternary_underflow, "but not for: a rival that is 30 ahead"),
            ("a hundredth", best_to_a_hundredth, "you round the best one"),
            ("twelve halvings", best_few_steps, None),
            ("gradient ascent", best_gradient, None),
            ("overflow", best_overflow, "scores around 1,000; scores around -1,000"),
            ("steps of 0.05", best_coarse, None),
            ("lead over the rival", best_difference, "You return 0.01 whatever"),
        ),
    ],
}  # fmt: skip
