"""Answers to the exercises on ALiBi."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.attention import attention
from tests.answers import blind

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def linear_bias(slopes: Callable[[int], Tensor]) -> Callable[[Tensor, Tensor, int], Tensor]:
    """slope·(n - m) with these slopes."""
    return lambda q, k, heads: slopes(heads).double()[:, None, None] * (k - q[:, None])


def from_slopes(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, int], Tensor]:
    return linear_bias(lambda heads: change(alibi_slopes(heads)))


def from_exponents(exponent: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, Tensor, int], Tensor]:
    return linear_bias(lambda heads: 2.0 ** -exponent(torch.arange(1, heads + 1, dtype=torch.float64), heads))


def from_the_end(q: Tensor, k: Tensor, heads: int) -> Tensor:
    """Distances in the tensor, whose last rows are the queries: good for a cache, not for a gap."""
    rows = torch.arange(len(k) - len(q), len(k))
    return -alibi_slopes(heads)[:, None, None] * (rows[:, None] - torch.arange(len(k)))


def numpy_bias(q: Tensor, k: Tensor, heads: int) -> Any:
    slopes = alibi_slopes(heads).numpy()
    return -slopes[:, None, None] * np.abs(np.subtract.outer(q.numpy(), k.numpy()))


def masked_bias(q: Tensor, k: Tensor, heads: int) -> Tensor:
    return linear_bias(alibi_slopes)(q, k, heads).masked_fill(k > q[:, None], -math.inf)


def in_a_loop(q: Tensor, k: Tensor, heads: int) -> list[list[list[float]]]:
    return [[[float(-s * abs(m - n)) for n in k] for m in q] for s in alibi_slopes(heads)]


# ── exercise 1 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def geometric(count: int) -> list[float]:
    return [2 ** (-8 * h / count) for h in range(1, count + 1)]


def by_list(head: int, num_heads: int) -> float:
    power = 2 ** int(math.log2(num_heads))
    return (geometric(power) + geometric(2 * power)[0::2])[head]


def by_code(head: int, num_heads: int) -> float:
    """As the authors write it: by calling oneself."""

    def slopes(n: int) -> list[float]:
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return slopes(closest) + slopes(2 * closest)[0::2][: n - closest]

    return slopes(num_heads)[head]


def by_bits(head: int, num_heads: int) -> Any:
    power = 1 << (num_heads.bit_length() - 1)
    j = head - power
    return np.exp2(-(8 * (head + 1) if head < power else 8 * j + 4) / power)


def slope_recursion(head: int, num_heads: int) -> float:
    """By recursion on the larger power of two."""
    power = 1 << (num_heads.bit_length() - 1)
    return 2.0 ** (-8 * (head + 1) / power) if head < power else slope_recursion(2 * (head - power), 2 * power)


def slope_from_list(head: int, num_heads: int) -> Tensor:
    """All slopes of a machine, as a tensor."""
    small = max(p for p in (2**k for k in range(12)) if p <= num_heads)
    few, many = (torch.logspace(-8 / p, -8, p, base=2, dtype=torch.float64) for p in (small, 2 * small))
    return torch.cat((few, many[::2]))[head]


def by_halves(first: Callable[[int, int], float], rest: Callable[[int, int], float]) -> Callable[[int, int], float]:
    """The exponents of the first heads, and of the additional ones, by their number and the power of two."""

    def slope(head: int, num_heads: int) -> float:
        power = 2 ** int(math.log2(num_heads))
        return float(2.0 ** -(first(head, power) if head < power else rest(head - power, power)))

    return slope


def usual(head: int, power: int) -> float:
    return 8 * (head + 1) / power


def between(head: int, power: int) -> float:
    return 4 * (2 * head + 1) / power


def slope_next_larger(head: int, num_heads: int) -> float:
    power = 2 ** math.ceil(math.log2(num_heads))
    return 2 ** (-8 * (head + 1) / power)


def slope_strictly_smaller(head: int, num_heads: int) -> float:
    """For 8 heads takes the slopes of 4 first."""
    power = 1
    while 2 * power < num_heads:
        power *= 2
    return 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (2 * (head - power) + 1) / power)


# ── exercise 2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_differences(a: Tensor, b: Tensor) -> bool:
    for m in range(len(a)):
        d = a[m, : m + 1] - b[m, : m + 1]
        if (d - d[0]).abs().max() > 1e-5:
            return False
    return True


def by_steps(a: Tensor, b: Tensor, tolerance: float = 1e-5) -> Any:
    """What each key gains on the one before it."""
    steps = np.subtract(*(np.diff(np.where(np.isinf(x), 0, x)) for x in (a.numpy(), b.numpy())))
    return np.allclose(np.tril(steps, k=-1), 0, atol=tolerance)


def by_some_scores(a: Tensor, b: Tensor) -> bool:
    q, k = torch.randn(2, len(a), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    past = torch.ones(len(a), len(a)).tril().bool()
    one, other = ((q @ k.mT / 2 + bias).masked_fill(~past, -math.inf).softmax(1) for bias in (a, b))
    return torch.allclose(one, other, atol=1e-6)


def by_logarithms(a: Tensor, b: Tensor) -> bool:
    future = torch.ones(a.shape).triu(1).bool()
    a, b = (x.masked_fill(future, -math.inf).log_softmax(1).masked_fill(future, 0) for x in (a, b))
    return torch.allclose(a, b, atol=1e-6)


def within(tolerance: float, keys: Callable[[int], slice] = lambda m: slice(m + 1)) -> Callable[[Tensor, Tensor], bool]:
    return lambda a, b: all(np.ptp((a[m, keys(m)] - b[m, keys(m)]).numpy()) < tolerance for m in range(len(a)))


def same_rows(a: Tensor, b: Tensor) -> bool:
    """Row by row, the spread of the difference."""
    spreads = [float(np.ptp((a[m, : m + 1] - b[m, : m + 1]).double().numpy())) for m in range(len(a))]
    return max(spreads) < 1e-5


def same_own_key(a: Tensor, b: Tensor) -> bool:
    """Each row less its number on the diagonal."""
    a, b = (torch.where(torch.ones_like(x).tril().bool(), x, 0).double() for x in (a, b))
    a, b = ((x - x.diagonal()[:, None]).tril() for x in (a, b))
    return torch.allclose(a, b, atol=1e-5)


def same_steps(a: Tensor, b: Tensor) -> Tensor:
    """A boolean tensor, from key to key."""
    steps = (a - b).diff(dim=1)
    looks = torch.ones(len(a), len(a)).tril().bool()[:, 1:]
    return (steps[looks].abs() < 1e-5).all()


def same_one_constant(a: Tensor, b: Tensor) -> bool:
    difference = (a - b)[torch.ones_like(a).tril().bool()]
    return torch.allclose(difference, difference[0].expand_as(difference), atol=1e-5)


def same_future_too(a: Tensor, b: Tensor) -> bool:
    difference = a - b
    return torch.allclose(difference, difference[:, :1].expand_as(difference), atol=1e-5)


def same_softmax_of_zeros(a: Tensor, b: Tensor) -> bool:
    """Weights under scores of 0: what lies far below the largest number vanishes from both."""
    hidden = ~torch.ones_like(a).tril().bool()
    a, b = (x.masked_fill(hidden, -math.inf).softmax(dim=1) for x in (a, b))
    return torch.allclose(a, b, atol=1e-6)


def same_softmax_of_random_scores(a: Tensor, b: Tensor) -> bool:
    """One sample of scores."""
    scores = torch.randn(a.shape, dtype=a.dtype, generator=torch.Generator().manual_seed(1))
    return same_softmax_of_zeros(a + scores, b + scores)


# ── exercise 3 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def held(slope: float, keys: int, length: int) -> float:
    return math.fsum(math.exp(-slope * i) for i in range(keys)) / math.fsum(math.exp(-slope * i) for i in range(length))


def bisect(keys: int, share: float, length: int, *, low: float = 0.0, high: float = 30.0, steps: int = 40) -> float:
    for _ in range(steps):
        middle = (low + high) / 2
        if held(middle, keys, length) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def by_series(keys: int, share: float, length: int) -> float:
    """By the sum of a geometric series, in doublings and then halvings."""

    def too_flat(s: float) -> bool:
        return (1 - math.exp(-s * keys)) / (1 - math.exp(-s * length)) < share

    low, high = 1e-7, 2e-7
    while too_flat(high):
        low, high = high, 2 * high
    while high / low > 1.00001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if too_flat(middle) else (low, middle)
    return low


def by_polynomial(keys: int, share: float, length: int) -> Any:
    """By steps that repeat the formula of an endless text, corrected for the end."""
    s = math.log(1 / (1 - share)) / keys
    for _ in range(500):
        s = -math.log(1 - share * (1 - math.exp(-s * length))) / keys
    return torch.tensor(s)


def by_grid(keys: int, share: float, length: int) -> Any:
    grid = np.geomspace(0.001, 10, 30_000)
    shares = (1 - np.exp(-grid * keys)) / (1 - np.exp(-grid * length))
    return grid[np.abs(shares - share).argmin()]


def slope_for_newton(keys: int, share: float, length: int) -> float:
    """The geometric sums, and halvings of the logarithm of the slope."""
    low, high = -20.0, 8.0
    for _ in range(80):
        s = math.exp((low + high) / 2)
        held = math.expm1(-s * keys) / math.expm1(-s * length)
        low, high = ((low + high) / 2, high) if held < share else (low, (low + high) / 2)
    return math.exp(low)


def slope_for_grid(keys: int, share: float, length: int) -> Tensor:
    """Finer and finer grids, a tensor."""
    low, high = 0.0, 50.0
    for _ in range(8):
        grid = torch.linspace(low, high, 101, dtype=torch.float64)
        held = (-grid[:, None] * torch.arange(length, dtype=torch.float64)).softmax(dim=1)[:, :keys].sum(dim=1)
        below = int((held < share).sum())
        low, high = grid[max(below - 1, 0)].item(), grid[min(below, 100)].item()
    return torch.tensor(low)


def _search(held: Any, share: float, low: float = 0.0, high: float = 50.0, times: int = 60) -> float:
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) < share else (low, middle)
    return (low + high) / 2


def _near(s: float, keys: int, length: int) -> float:
    return (-s * torch.arange(length, dtype=torch.float64)).softmax(dim=0)[:keys].sum().item()


def slope_for_itself_forgotten(keys: int, share: float, length: int) -> float:
    """Does not count the query's own key."""
    return _search(lambda s: (-s * torch.arange(1.0, length)).softmax(dim=0)[:keys].sum().item(), share)


# ── exercise 4 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def attend_without_padding(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    keys, values = keys[:, real], values[:, real]
    words = torch.arange(keys.shape[1])
    asking = words[len(words) - q.shape[1] :]
    bias = alibi_bias(asking, words, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=words <= asking[:, None])


def attend_by_rows(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Any:
    """One head, one query at a time; the bias is slope·n."""
    heads, new, _ = q.shape
    output = np.zeros(q.shape)
    place = real.numpy().cumsum()
    for h in range(heads):
        for r in range(new):
            end = len(real) - new + r + 1
            scores = (keys[h, :end] @ q[h, r]).numpy() / math.sqrt(q.shape[2]) + float(slopes[h]) * place[:end]
            weights = np.where(real[:end], np.exp(scores - scores.max()), 0)
            output[h, r] = weights / weights.sum() @ values[h, :end].numpy()
    return output


def attend_in_32_bits(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    q, keys, values, slopes = (x.float() for x in (q, keys, values, slopes))
    positions = torch.cumsum(real, 0) - 1
    hidden = ~real | (torch.arange(len(real)) > torch.arange(len(real))[-q.shape[1] :, None])
    distance = positions[-q.shape[1] :, None] - positions
    scores = torch.einsum("hmd,hnd->hmn", q, keys) / q.shape[-1] ** 0.5 - slopes[:, None, None] * distance
    return torch.softmax(scores.masked_fill(hidden, -1e9), -1) @ values


def attend_query_by_query(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Throws the padding away, and goes query by query with s·n for the bias."""
    keys, values = keys[:, real], values[:, real]
    new, words = q.shape[1], keys.shape[1]
    out = torch.empty_like(q)
    for r in range(new):
        upto = words - new + r + 1
        scores = (keys[:, :upto] @ q[:, r, :, None])[..., 0] / q.shape[2] ** 0.5 + slopes[:, None] * torch.arange(upto)
        out[:, r] = (scores.softmax(dim=1)[:, None] @ values[:, :upto])[:, 0]
    return out


def attend_package(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """The package's two functions."""
    places, new = real.cumsum(dim=0) - 1, q.shape[1]
    at = torch.arange(len(real))
    mask = real & (at <= at[-new:, None])
    bias = alibi_bias(places[-new:], places, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=mask)


def _causal(new: int, count: int) -> Tensor:
    return torch.ones(new, count).tril(count - new).bool()


def by_hand(
    *,
    places: Callable[[Tensor], Tensor] = lambda real: real.cumsum(dim=0),
    mask: Callable[[Tensor, int], Tensor] = lambda real, new: _causal(new, len(real)) & real,
    slope: float = 1,
    scale: float | None = None,
    weigh: Callable[[Tensor, Tensor], Tensor] = lambda scores, real: scores.softmax(dim=2),
) -> Callable[..., Tensor]:
    """Without the package, by places of all tokens and a mask."""

    def attend(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
        at, new = places(real), q.shape[1]
        scores = q @ keys.transpose(1, 2) / (q.shape[2] ** 0.5 if scale is None else scale)
        scores = scores - slope * slopes[:, None, None] * (at[-new:, None] - at)
        return weigh(scores.masked_fill(~mask(real, new), -math.inf), real) @ values

    return attend


def attend_mask_at_upper_left(real: Tensor, new: int) -> Tensor:
    mask = torch.ones(new, len(real)).tril().bool() & real
    mask[:, -1] |= ~mask.any(dim=1)  # nobody is left without any key
    return mask


def attend_sees_not_itself(real: Tensor, new: int) -> Tensor:
    mask = torch.ones(new, len(real)).tril(len(real) - new - 1).bool() & real
    mask[:, 0] |= ~mask.any(dim=1)
    return mask


def attend_not_causal_distance(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    bias = alibi_bias(at[-new:], at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=real.expand(new, -1))


def attend_queries_from_zero(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Query r at r: with alibi_bias, which takes the distance without its sign."""
    at, new = real.cumsum(dim=0) - 1, q.shape[1]
    bias = alibi_bias(torch.arange(new), at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=_causal(new, len(real)) & real)


def by_the_package_from_the_left(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    positions = real.cumsum(0)
    bias = alibi_bias(positions[-q.shape[1] :], positions, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=real & torch.ones(q.shape[1], len(real)).tril().bool())


def with_a_factor(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """e to the bias, times the score."""
    at, new = real.cumsum(0), q.shape[1]
    scores = q @ keys.mT / q.shape[2] ** 0.5 * (-slopes[:, None, None] * (at[-new:, None] - at)).exp()
    return scores.masked_fill(~(_causal(new, len(real)) & real), -math.inf).softmax(-1) @ values


def in_8_bits(real: Tensor) -> Tensor:
    return real.byte().cumsum(dim=0, dtype=torch.uint8).long()


RIGHT: dict[str, list[Any]] = {
    "alibi.bias": [
        linear_bias(alibi_slopes),
        numpy_bias,
        masked_bias,
        in_a_loop,
        lambda q, k, heads: alibi_bias(q, k, alibi_slopes(heads)),  # (1, heads, L_query, L_key), float32
        lambda q, k, heads: alibi_slopes(heads)[:, None, None] * k,  # as BLOOM: one row for all queries
        lambda q, k, heads: alibi_slopes(heads)[:, None, None] * (k - k[-1]),  # as MPT
        lambda q, k, heads: (alibi_slopes(heads)[:, None, None] * k).float().expand(heads, len(q), -1),
        lambda q, k, heads: alibi_slopes(heads)[:, None, None] * torch.minimum(k - q[:, None], torch.tensor(0)) + 7,
    ],
    "alibi.slope": [
        by_list,
        by_code,
        by_bits,
        lambda head, num_heads: torch.tensor(by_list(head, num_heads)),
        *blind(slope_recursion, slope_from_list),
    ],
    "alibi.same_bias": [
        by_differences,
        by_steps,
        by_logarithms,
        within(1e-5),
        *blind(same_rows, same_own_key, same_steps),
    ],
    "alibi.slope_for": [bisect, by_series, by_polynomial, by_grid, *blind(slope_for_newton, slope_for_grid)],
    "alibi.attend": [
        attend_without_padding,
        attend_by_rows,
        attend_in_32_bits,
        *blind(attend_query_by_query, attend_package),
    ],
}

WRONG: dict[str, list[Any]] = {
    "alibi.bias": [
        ("zeros", from_slopes(lambda s: 0 * s), "the same for all keys"),
        ("slopes only", lambda q, k, n: alibi_slopes(n), "has shape (8,), but it should be (8, 12, 12)"),
        ("the factors", lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).exp(), "exponential comes later"),
        ("squared", lambda q, k, n: -alibi_slopes(n)[:, None, None] * (k - q[:, None]) ** 2, "isn't a straight line"),
        ("one for all", from_slopes(lambda s: 0 * s + 0.5), "All your heads have the same slope, 0.5000"),
        ("halved", from_slopes(lambda s: s / 2), "in head 1 (counted from 1) grows by 0.2500 per token"),
        ("heads 1 … 8", from_exponents(lambda h, n: h), "increase by 1 from head to head"),
        ("1 % too steep", from_slopes(lambda s: 1.01 * s), "grows by 0.5050 per token"),
        ("the other sign", lambda q, k, n: alibi_slopes(n)[:, None, None] * -k, "Your bias grows with the distance"),
        ("always 8 heads", lambda q, k, n: linear_bias(alibi_slopes)(q, k, 8), "has shape (8, 12, 12), but it should be (12,"),
        ("keys counted as queries",
         lambda q, k, n: (alibi_slopes(n)[:, None, None] * torch.arange(len(q))).expand(n, len(q), len(q)), "has shape"),
        ("places from the end", from_the_end, "keys 2 and 9 are seven tokens apart"),
        ("half the slope in a cache", lambda q, k, n: linear_bias(alibi_slopes)(q, k, n) * (0.5 if len(q) == 1 else 1),
         "right for a whole text, but not for: query 11 after keys 0 to 11"),
        ("half precision, slope·n", lambda q, k, n: (alibi_slopes(n)[:, None, None] * k).bfloat16(), "at position 5,000"),
        ("heads last", lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).permute(1, 2, 0), "Heads come first"),
        ("keys are rows",
         lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).mT if len(q) == 1 else linear_bias(alibi_slopes)(q, k, n),
         "then queries, then keys"),
        ("no heads", lambda q, k, n: (k - q[:, None]) / 2, "each head has its own slope"),
        ("not a number", lambda q, k, n: linear_bias(alibi_slopes)(q, k, n) * math.nan, "contains NaN or infinity"),
        ("complex", lambda q, k, n: linear_bias(alibi_slopes)(q, k, n) * 1j, "returned complex numbers"),
        ("text", lambda q, k, n: "bias", "returned a str that isn't a table"),
        ("ragged", lambda q, k, n: [[[0.0] * i for i in range(12)]] * n, "returned a list that isn't a table"),
    ],
    "alibi.slope": [
        ("all heads", lambda head, n: [by_list(h, n) for h in range(n)], "it should return one number"),
        ("rounded", lambda head, n: round(by_list(head, n), 4), "Every number is rounded to 4 decimals"),
        ("1 % too steep", lambda head, n: 1.01 * by_list(head, n), "1.01 times what it should be"),
        ("up to 128", lambda head, n: by_list(head, n) if n <= 128 else geometric(n)[head], "`num_heads` isn't 200"),
        *blind(
            ("of any number", lambda head, n: 2 ** (-8 * (head + 1) / n), "formula in the text of the paper"),
            ("from head 0", by_halves(lambda h, p: 8 * h / p, lambda j, p: 8 * j / p), "In the formula, h begins with 1"),
            ("second ones", by_halves(usual, lambda j, p: 4 * (2 * j + 2) / p), "repeat the first ones"),
            ("every one", by_halves(usual, lambda j, p: 4 * (j + 1) / p), "every second one is already there"),
            ("sorted", lambda head, n: sorted((slope_recursion(h, n) for h in range(n)), reverse=True)[head], "sorted them"),
            ("next larger", slope_next_larger, "the first 12 slopes of 16 heads"),
            ("strictly smaller", slope_strictly_smaller, "is a power of two"),
            ("from the end", by_halves(usual, lambda j, p: 4 * (2 * p - 2 * j - 1) / p), "begin with the flattest"),
            ("twelve", lambda head, n: 2.0 ** -(head + 1) if head < 8 else 2 ** -(head - 8 + 0.5), "slopes of 12 heads"),
            ("positive", lambda head, n: 1 / slope_recursion(head, n), "exponent lacks its minus"),
            ("whole exponent", by_halves(lambda h, p: 8 * (h + 1) // p, lambda j, p: 4 * (2 * j + 1) // p), "exponents down"),
        ),
    ],
    "alibi.same_bias": [
        ("equal", torch.equal, "only if their numbers are equal"),
        ("steps to the last digit", lambda a, b: by_steps(a, b, 1e-8), "too strict"),
        ("infinity", lambda a, b: bool((((a - b) - (a - b)[:, :1]) * torch.ones(a.shape).tril()).abs().max() < 1e-6),
         "Infinity minus infinity"),
        ("weights for some scores", by_some_scores, "weight of nearly 0 isn't 0"),
        ("but the last query", lambda a, b: same_softmax_of_zeros(a[:-1, :-1], b[:-1, :-1]) if len(a) > 1 else True,
         "a different number for the last query's own key"),
        ("the first ten keys", lambda a, b: within(1e-5)(a[:10], b[:10]), "a query far back in a long text"),
        ("yes", lambda a, b: True, "You say True every time"),
        ("no", lambda a, b: False, "You say False every time"),
        ("a table", lambda a, b: a == b, "a single True or False"),
        ("the order of keys", lambda a, b: torch.equal(a.tril().argsort(1), b.tril().argsort(1)), None),
        *blind(
            ("whole tables", lambda a, b: torch.allclose(a, b), "only if their numbers are equal"),
            ("without constants",
             lambda a, b: torch.allclose(a[torch.ones_like(a).tril() > 0], b[torch.ones_like(b).tril() > 0]),
             "only if their numbers are equal"),
            ("one constant", same_one_constant, "but not by a different number in each row"),
            ("future too", same_future_too, "also compare the future"),
            ("columns", lambda a, b: within(1e-5, lambda n: slice(n, None))(a.T, b.T), "by a number in each column"),
            ("upper triangle", within(1e-5, lambda m: slice(m, None)), "each query's own key and the keys after it"),
            ("last row", lambda a, b: float((a[-1] - b[-1]).max() - (a[-1] - b[-1]).min()) < 1e-5, "all keys of every query"),
            ("not itself",
             lambda a, b: all(float(np.ptp((a[m, :m] - b[m, :m]).numpy())) < 1e-5 for m in range(1, len(a))),
             "all keys of every query"),
            ("bit for bit", lambda a, b: all(len(set((a[m, : m + 1] - b[m, : m + 1]).tolist())) == 1 for m in range(len(a))),
             "too strict"),
            ("rough", within(1), "tolerance is too large"),
            ("infinities as zero", lambda a, b: same_future_too(a.nan_to_num(neginf=0.0), b.nan_to_num(neginf=0.0)),
             "also compare the future"),
            ("softmax of zeros", same_softmax_of_zeros, "weight of nearly 0 isn't 0"),
            ("neighbour shift", within(1e-5, lambda m: slice(m + 2)), "also compare the future"),
            ("softmax of random scores", same_softmax_of_random_scores, "weight of nearly 0 isn't 0"),
        ),
    ],
    "alibi.slope_for": [
        ("length less one", lambda keys, share, length: bisect(keys, share, max(length - 1, 2)), "right for length - 1"),
        ("keys less one", lambda keys, share, length: bisect(max(keys - 1, 1), share, length), "right for keys - 1"),
        ("the rest", lambda keys, share, length: bisect(keys, 1 - share, length, low=-600 / length), "together get the share"),
        ("few halvings", lambda *case: bisect(*case, high=4.0, steps=9), "stop too early, or do you round"),
        ("rounded", lambda keys, share, length: round(bisect(keys, share, length), 2), "stop too early, or do you round"),
        ("not above 2.9", lambda keys, share, length: bisect(keys, share, length, high=2.9), "Does your search end at 2.9"),
        ("a thousandth off", lambda keys, share, length: bisect(keys, share - 0.0012, length), None),
        ("the share", lambda keys, share, length: held(0.1, keys, length), None),
        ("keys over length", lambda keys, share, length: keys / length, None),
        ("the interval", lambda keys, share, length: (0.0, 1.0), "it should return one number"),
        ("infinity", lambda keys, share, length: math.inf, "returned inf"),
        *blind(
            ("long text", lambda keys, share, length: -math.log(1 - share) / keys, "formula for an endless text"),
            ("at most one", lambda *case: _search(lambda s: _near(s, case[0], case[2]), case[1], 0.0, 1.0), "end at 1"),
            ("one key more", lambda *case: _search(lambda s: _near(s, case[0] + 1, case[2]), case[1]), "right for keys + 1"),
            ("itself forgotten", slope_for_itself_forgotten, "The query's own key, at distance 0"),
            ("ten halvings", lambda *case: _search(lambda s: _near(s, case[0], case[2]), case[1], 0.0, 50.0, 10),
             "stop too early, or do you round"),
            ("far keys", lambda *case: _search(lambda s: _near(s, case[0], case[2]), 1 - case[1]), "together get the share"),
            ("twice keys", lambda keys, share, length: math.log(share / (1 - share)) / keys, "twice as many tokens as `keys`"),
            ("wrong half", lambda *case: _search(lambda s: -_near(s, case[0], case[2]), -case[1]), "in the right half"),
            ("one key alone", lambda keys, share, length: -math.log(1 - share) / max(keys - 1, 1), "with one key too few"),
            ("base two", lambda *case: slope_for_newton(*case) / math.log(2), "the softmax uses powers of e"),
            ("minus", lambda *case: -slope_for_newton(*case), "Your slopes have the wrong sign"),
            ("one key less of text", lambda *case: _search(lambda s: _near(s, case[0], case[2] + 1), case[1]),
             "right for length + 1"),
            ("from a hundredth", lambda *case: _search(lambda s: _near(s, case[0], case[2]), case[1], 0.01, 50.0),
             "Does your search begin at 0.01"),
        ),
    ],
    "alibi.attend": [
        ("from the left, by the package", by_the_package_from_the_left, "has no key to look at"),
        ("factor", with_a_factor, None),
        ("heads second", lambda *given: attend_package(*given).transpose(0, 1), "has shape"),
        ("squeezed", lambda *given: attend_package(*given).squeeze(1), "for a single token after a cache, has shape"),
        ("in 8 bits", by_hand(places=in_8_bits), "not for: a cache of 300 tokens"),
        ("√8", by_hand(scale=8**0.5), "by the same number for every width"),
        ("padding after the softmax", by_hand(mask=lambda real, new: _causal(new, len(real)),
                                              weigh=lambda scores, real: scores.softmax(dim=2) * real),
         "weights of the padding after the softmax"),
        *blind(
            ("padding is distance", by_hand(places=lambda real: torch.arange(len(real))), "counts padding between two words"),
            ("padding seen", by_hand(mask=lambda real, new: _causal(new, len(real))), "still look at padding"),
            ("not causal", by_hand(mask=lambda real, new: real.expand(new, -1)), "see the new tokens after them"),
            ("not causal distance", attend_not_causal_distance, "see the new tokens after them"),
            ("mask at upper left", by_hand(mask=attend_mask_at_upper_left), "as token 0 of the text"),
            ("mask by word numbers", by_hand(mask=lambda real, new: real.cumsum(0) <= real.cumsum(0)[-new:, None]),
             "still look at padding"),
            ("wrong sign", by_hand(slope=-1), "Check the sign"),
            ("not divided", by_hand(scale=1.0), "don't divide the scores by √d"),
            ("bias divided too", lambda q, k, v, slopes, real: attend_package(q, k, v, slopes / q.shape[2] ** 0.5, real),
             "You divide the bias"),
            ("divided twice", lambda q, *given: attend_package(q / q.shape[2] ** 0.5, *given), "by √d twice"),
            ("queries from zero", attend_queries_from_zero, "row and column numbers as positions"),
            ("slopes reversed", lambda q, k, v, slopes, real: attend_package(q, k, v, slopes.flip(0), real), "reverse order"),
            ("one slope", lambda q, k, v, slopes, real: attend_package(q, k, v, slopes[:1].expand_as(slopes), real),
             "the slope of the first head"),
            ("package slopes", lambda q, k, v, slopes, real: attend_package(
                q, k, v, torch.tensor([slope_recursion(h, len(slopes)) for h in range(len(slopes))]).to(slopes), real),
             "Use the slopes that your function is given"),
            ("padding in front only", by_hand(places=lambda real: torch.arange(len(real)) - int(real.long().argmax())),
             "counts padding between two words as distance"),
            ("with batch", lambda *given: attend_package(*given)[None], "has shape"),
            ("no bias", lambda q, k, v, slopes, real: attend_package(q, k, v, torch.zeros_like(slopes), real),
             "don't add the bias"),
            ("sees not itself", by_hand(mask=attend_sees_not_itself), "doesn't see itself"),
        ),
    ],
}  # fmt: skip
