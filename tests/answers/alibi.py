"""Answers to the exercises on ALiBi."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.attention import attention
from tests.answers import right, wrong


@right("alibi.bias")
def in_a_loop(q: Tensor, k: Tensor, heads: int) -> list[list[list[float]]]:
    return [[[float(-s * abs(m - n)) for n in k] for m in q] for s in alibi_slopes(heads)]


@right("alibi.bias")
def bias_right(q: Tensor, k: Tensor, heads: int) -> Any:
    return alibi_bias(q, k, alibi_slopes(heads))


@right("alibi.bias")
def bias_right_2(q: Tensor, k: Tensor, heads: int) -> Any:
    return alibi_slopes(heads)[:, None, None] * k


def linear_bias(q: Tensor, k: Tensor, slopes: Tensor) -> Tensor:
    return slopes[:, None, None] * (k - q[:, None])


@wrong("alibi.bias", "formula in the text of the paper")
def bias_formula(q: Tensor, k: Tensor, heads: int) -> Any:
    return linear_bias(q, k, 2.0 ** (-8 * torch.arange(1, heads + 1) / heads))


@wrong("alibi.bias", "increase by 1 from head to head")
def bias_heads_1_8(q: Tensor, k: Tensor, heads: int) -> Any:
    return linear_bias(q, k, 2.0 ** -torch.arange(1, heads + 1))


@wrong("alibi.bias", "Which slopes of 16 heads")
def bias_repeated(q: Tensor, k: Tensor, heads: int) -> Any:
    few = alibi_slopes(min(heads, 8))
    return linear_bias(q, k, torch.cat((few, few))[:heads])


@wrong("alibi.bias", "Your bias grows with the distance")
def bias_the_other_sign(q: Tensor, k: Tensor, n: Any) -> Any:
    return alibi_slopes(n)[:, None, None] * -k


@wrong("alibi.bias", "keys 2 and 9 are seven tokens apart")
def from_the_end(q: Tensor, k: Tensor, heads: int) -> Tensor:
    """Distances in the tensor, whose last rows are the queries: good for a cache, not for a gap."""
    rows = torch.arange(len(k) - len(q), len(k))
    return -alibi_slopes(heads)[:, None, None] * (rows[:, None] - torch.arange(len(k)))


@right("alibi.same_bias")
def same_rows(a: Tensor, b: Tensor) -> bool:
    spreads = [float(np.ptp((a[m, : m + 1] - b[m, : m + 1]).double().numpy())) for m in range(len(a))]
    return max(spreads) < 1e-5


@right("alibi.same_bias")
def same_own_key(a: Tensor, b: Tensor) -> bool:
    a, b = (torch.where(torch.ones_like(x).tril().bool(), x, 0).double() for x in (a, b))
    a, b = ((x - x.diagonal()[:, None]).tril() for x in (a, b))
    return torch.allclose(a, b, atol=1e-5)


@right("alibi.same_bias")
def same_steps(a: Tensor, b: Tensor) -> Tensor:
    steps = (a - b).diff(dim=1)
    looks = torch.ones(len(a), len(a)).tril().bool()[:, 1:]
    return (steps[looks].abs() < 1e-5).all()


@wrong("alibi.same_bias", "only if their numbers are equal")
def same_bias_whole_tables(a: Tensor, b: Tensor) -> Any:
    return torch.allclose(a, b)


@wrong("alibi.same_bias", "a softmax works along a row")
def same_one_constant(a: Tensor, b: Tensor) -> bool:
    difference = (a - b)[torch.ones_like(a).tril().bool()]
    return torch.allclose(difference, difference[0].expand_as(difference), atol=1e-5)


@wrong("alibi.same_bias", "also compare the future")
def same_future_too(a: Tensor, b: Tensor) -> bool:
    difference = a - b
    return torch.allclose(difference, difference[:, :1].expand_as(difference), atol=1e-5)


@wrong("alibi.same_bias", "nearly 0 isn't 0")
def same_weights(a: Tensor, b: Tensor) -> bool:
    future = torch.ones_like(a).triu(1).bool()
    a, b = (x.masked_fill(future, -math.inf).softmax(dim=-1) for x in (a, b))
    return torch.allclose(a, b, atol=1e-7)


@wrong("alibi.same_bias", "all keys of every query")
def same_bias_last_row(a: Tensor, b: Tensor) -> Any:
    return float((a[-1] - b[-1]).max() - (a[-1] - b[-1]).min()) < 1e-5


@wrong("alibi.same_bias", "tolerance is too small or too large")
def same_bias_bit_for_bit(a: Tensor, b: Tensor) -> Any:
    return all(len(set((a[m, : m + 1] - b[m, : m + 1]).tolist())) == 1 for m in range(len(a)))


@right("alibi.slope_for")
def by_polynomial(keys: int, share: float, length: int) -> Any:
    """By steps that repeat the formula of an endless text, corrected for the end."""
    s = math.log(1 / (1 - share)) / keys
    for _ in range(500):
        s = -math.log(1 - share * (1 - math.exp(-s * length))) / keys
    return torch.tensor(s)


@right("alibi.slope_for")
def by_grid(keys: int, share: float, length: int) -> Any:
    grid = np.geomspace(0.001, 10, 30_000)
    shares = (1 - np.exp(-grid * keys)) / (1 - np.exp(-grid * length))
    return grid[np.abs(shares - share).argmin()]


@right("alibi.slope_for")
def slope_for_newton(keys: int, share: float, length: int) -> float:
    """The geometric sums, and halvings of the logarithm of the slope."""
    low, high = -20.0, 8.0
    for _ in range(80):
        s = math.exp((low + high) / 2)
        held = math.expm1(-s * keys) / math.expm1(-s * length)
        low, high = ((low + high) / 2, high) if held < share else (low, (low + high) / 2)
    return math.exp(low)


@wrong("alibi.slope_for", "formula for an endless text")
def slope_for_long_text(keys: int, share: float, length: int) -> Any:
    return -math.log(1 - share) / keys


@wrong("alibi.slope_for", "together get the share")
def slope_for_far_keys(keys: int, share: float, length: int) -> Any:
    return slope_for_newton(keys, 1 - share, length)


@wrong("alibi.slope_for", "twice as many tokens as `keys`")
def slope_for_twice_keys(keys: int, share: float, length: int) -> Any:
    return math.log(share / (1 - share)) / keys


@wrong("alibi.slope_for", "You are off by one")
def slope_for_others(keys: int, *case: Any) -> Any:
    return slope_for_newton(keys + 1, *case)


@wrong("alibi.slope_for", "the softmax uses powers of e")
def slope_for_base_two(*case: Any) -> Any:
    return slope_for_newton(*case) / math.log(2)


@wrong("alibi.slope_for", "Your slopes have the wrong sign")
def slope_for_minus(*case: Any) -> Any:
    return -slope_for_newton(*case)


@right("alibi.attend")
def attend_without_padding(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    keys, values = keys[:, real], values[:, real]
    words = torch.arange(keys.shape[1])
    asking = words[len(words) - q.shape[1] :]
    bias = alibi_bias(asking, words, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=words <= asking[:, None])


@right("alibi.attend")
def attend_query_by_query(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    keys, values = keys[:, real], values[:, real]
    new, words = q.shape[1], keys.shape[1]
    out = torch.empty_like(q)
    for r in range(new):
        upto = words - new + r + 1
        scores = (keys[:, :upto] @ q[:, r, :, None])[..., 0] / q.shape[2] ** 0.5 + slopes[:, None] * torch.arange(upto)
        out[:, r] = (scores.softmax(dim=1)[:, None] @ values[:, :upto])[:, 0]
    return out


@right("alibi.attend")
def attend_package(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    places, new = real.cumsum(dim=0) - 1, q.shape[1]
    at = torch.arange(len(real))
    mask = real & (at <= at[-new:, None])
    bias = alibi_bias(places[-new:], places, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=mask)


@wrong("alibi.attend", "Your mask is wrong")
def attend_not_causal_distance(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    bias = alibi_bias(at[-new:], at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=real.expand(new, -1))


@wrong("alibi.attend", "don't divide the bias")
def attend_bias_divided_too(q: Tensor, k: Any, v: Any, slopes: Tensor, real: Tensor) -> Any:
    return attend_package(q, k, v, slopes / q.shape[2] ** 0.5, real)


def _causal(new: int, count: int) -> Tensor:
    return torch.ones(new, count).tril(count - new).bool()


@wrong("alibi.attend", "row numbers as positions")
def attend_queries_from_zero(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0) - 1, q.shape[1]
    bias = alibi_bias(torch.arange(new), at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=_causal(new, len(real)) & real)


@wrong("alibi.attend", "padding between two words as distance")
def attend_places(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = torch.arange(len(real)), q.shape[1]
    bias = alibi_bias(at[-new:], at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=_causal(new, len(real)) & real)


@wrong("alibi.attend", "still look at padding")
def attend_padding(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    bias = alibi_bias(at[-new:], at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=_causal(new, len(real)))


@wrong("alibi.attend", "all weights add up to 1")
def attend_hidden_afterwards(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    scores = q @ keys.mT / q.shape[2] ** 0.5 - slopes[:, None, None] * (at[-new:, None] - at)
    return (scores.softmax(dim=-1) * (_causal(new, len(real)) & real)) @ values
