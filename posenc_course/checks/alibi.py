"""Exercise of chapter 11: the bias of ALiBi from positions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.checks._verdict import Wrong, answer, as_table, check


class _Case(NamedTuple):
    name: str
    queries: list[int]
    keys: list[int]
    num_heads: int


_WHOLE = _Case("0 … 11", list(range(12)), list(range(12)), 8)
_FAR = _Case("5000 … 5011", list(range(5000, 5012)), list(range(5000, 5012)), 8)
_CACHED = _Case("query 11 after keys 0 … 11", [11], list(range(12)), 8)
_GAP = _Case("query 12, keys 0, 1, 2, 9, 10, 11, 12", [12], [0, 1, 2, 9, 10, 11, 12], 8)
_TWELVE = _Case("0 … 11", list(range(12)), list(range(12)), 12)


@check(instead_of=[alibi_bias], draws=False)
def bias(my_bias: Callable[[Tensor, Tensor, int], Any]) -> str:
    """Try my_bias(q_positions, k_positions, num_heads) -> what to add to the scores, (num_heads, L_query, L_key).

    Judged by how it changes from key to key among those that a causal mask leaves, so that a number added to a whole row, which
    softmax forgets, makes no difference; what broadcasts to the shape will do. Tried on a text from 0 on and from 5000 on, with
    a single query after a cache, with a gap between the keys, and with 12 heads. Chapter 11.
    """
    for case, hint in (
        (_WHOLE, _slopes_hint),
        (_FAR, _far_hint),
        (_CACHED, _cached_hint),
        (_GAP, _gap_hint),
        (_TWELVE, _slopes_hint),
    ):
        steps = _steps(my_bias, case)
        if not _close(steps, alibi_slopes(case.num_heads)[:, None].expand_as(steps)):
            raise Wrong(hint(case, steps))
    return (
        "Right: with 8 and with 12 heads, near and far, with a cache and across a gap, a key loses its head's slope per token."
    )


def _call(case: _Case) -> str:
    return f"my_bias with positions {case.name} and {case.num_heads} heads"


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0.02, atol=1e-6)


def _steps(my_bias: Callable[[Tensor, Tensor, int], Any], case: _Case) -> Tensor:
    """What a head's bias gains per token from each key to the next, (heads, steps): all pairs that some query may look at."""
    call = _call(case)
    q, k = torch.tensor(case.queries), torch.tensor(case.keys)
    result = answer(my_bias, q.clone(), k.clone(), case.num_heads, call=call)
    table = _as_biases(result, (case.num_heads, len(q), len(k)), call)
    seen = k <= q[:, None]
    if not table[:, seen].isfinite().all():
        raise Wrong(f"{call} holds NaN or infinity where a query may look.")
    pairs = seen[:, 1:]  # the later key of each pair of neighbours is visible, so the earlier one is
    return (table.diff(dim=-1) / k.diff())[:, pairs]


def _as_biases(result: Any, shape: tuple[int, ...], call: str) -> Tensor:
    """The result with this shape, (heads, L_query, L_key), also where it only broadcasts to it or has a batch of one."""
    given: tuple[int, ...] | None
    try:
        given = tuple(result.shape if isinstance(result, Tensor) else np.array(result).shape)
    except (TypeError, ValueError, RuntimeError):
        given = None  # as_table says it better
    if given and len(given) == 4 and given[0] == 1:
        result, given = result[0], given[1:]
    if given and len(given) == 3 and given[0] == shape[0] and all(n in (1, m) for n, m in zip(given, shape, strict=True)):
        return as_table(result, given, call=call).expand(shape)
    heads, queries, keys = shape
    hints = {
        (queries, keys): " It has no axis for the heads, and each head has a slope of its own.",
        (1, queries, keys): " It has one head only, and each head has a slope of its own.",
        (queries, keys, heads): " The heads come first.",
        (queries, heads, keys): " The heads come first.",
        (heads, keys, queries): " Rows are queries, columns are keys.",
        (8, queries, keys): " Is the number of heads fixed somewhere?",
    }
    if given in hints:
        raise Wrong(f"{call} has shape {given}, it should be {shape}.{hints[given]}")
    return as_table(result, shape, call=call)


def _slopes_hint(case: _Case, steps: Tensor) -> str:
    """What is wrong with the steps of a whole text."""
    n, right = case.num_heads, alibi_slopes(case.num_heads)
    if not steps.any():
        return f"{_call(case)} is the same for all keys: then it says nothing about position."
    if _close(steps, -right[:, None].expand_as(steps)):
        return "It grows with the distance: the nearest key gets the least, and the first one of the text the most. A sign?"
    slopes = steps.mean(dim=1)
    if not _close(steps, slopes[:, None].expand_as(steps)):
        low, high = steps[0].min().item(), steps[0].max().item()
        return (
            f"It is no straight line: in head 1 of {n}, one token nearer adds between {low:.4f} and {high:.4f}. The bias is "
            "slope times distance; the exponential comes with the softmax, later."
        )
    h = torch.arange(1, n + 1, dtype=torch.float64)
    known = {
        "The first slope is 1 and all are one step of the sequence too steep: are the heads counted from 0?": 2
        ** (-8 * (h - 1) / n),
        "The slopes grow from head to head: the steepest comes first.": right.flip(0),
        "The exponent has the wrong sign: slopes are below 1.": 1 / right,
        "The exponent is not divided by the number of heads.": 2 ** (-8 * h),
        "These are the slopes of 8 heads, continued: in the exponent stands 8h/num_heads.": 2**-h,
        "The base is e where it should be 2.": torch.exp(-8 * h / n),
        "The slopes are right, but sorted. The paper's code appends those of the next power of two, and the heads of a stored "
        "model stand in that order.": right.sort(descending=True).values,
        "This is the sequence of the paper's text, whose ratio fits any number of heads. For one that is no power of two, its "
        "code does something else, and so do the models trained with it.": 2 ** (-8 * h / n),
        "These are the first slopes of 16 heads. The paper's code begins with all of the next smaller power of two.": 2
        ** (-h / 2),
    }
    for hint, wrong in known.items():
        if _close(slopes, wrong) and not (n == 8 and "paper's" in hint):
            return hint
    if _close(slopes, slopes[:1].expand_as(slopes)):
        return f"All heads have the same slope, {slopes[0]:.4f}: each has its own."
    first = int((~torch.isclose(slopes, right, rtol=0.02, atol=1e-6)).int().argmax())
    return (
        f"Head {first + 1} of {n} (counted from 1) gains {slopes[first]:.4f} per token towards the query, "
        f"it should be {right[first]:.4f}."
    )


def _far_hint(case: _Case, steps: Tensor) -> str:
    return (
        "From position 0 on it is right, and wrong from 5000 on, where the distances are the same. Are numbers rounded in half "
        "precision?"
    )


def _cached_hint(case: _Case, steps: Tensor) -> str:
    if not steps.any():
        return "With one query after a cache all keys get the same bias: it was made for as many keys as there are queries."
    if _close(steps, -alibi_slopes(case.num_heads)[:, None].expand_as(steps)):
        return (
            "With one query after a cache the nearest key gets the least: the query stands in row 0 of the tensor, but it is "
            "token 11. Its position has been given to you."
        )
    return "A whole text is right, and a single query after a cache is not: does the distance come from the positions?"


def _gap_hint(case: _Case, steps: Tensor) -> str:
    return (
        "From key 2 to key 9 are seven tokens, though those between them were dropped from the cache. Yours counts places in "
        "the tensor: take the distance from the positions."
    )
