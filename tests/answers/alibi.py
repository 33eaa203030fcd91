"""Answers to assignment 11: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.alibi import alibi_attention, alibi_bias, alibi_slopes
from posenc_course.attention import attention, attention_weights

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


def listed(of_next: Callable[[list[float]], list[float]], first: Callable[[int], list[float]] = geometric) -> Any:
    """First those of the smaller power of two, then what of_next makes of those of the larger one."""

    def slope(head: int, num_heads: int) -> float:
        power = 2 ** int(math.log2(num_heads))
        return (first(power) + of_next(geometric(2 * power)))[head]

    return slope


def from_h_0(count: int) -> list[float]:
    return [2 ** (-8 * h / count) for h in range(count)]


def first_of_the_larger(head: int, num_heads: int) -> float:
    power = 2 ** math.ceil(math.log2(num_heads))
    return 2 ** (-8 * (head + 1) / power)


def additional_first(head: int, num_heads: int) -> float:
    power = 2 ** int(math.log2(num_heads))
    return (geometric(2 * power)[0::2][: num_heads - power] + geometric(power))[head]


# ── exercise 2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_differences(a: Tensor, b: Tensor) -> bool:
    for m in range(len(a)):
        d = a[m, : m + 1] - b[m, : m + 1]
        if (d - d[0]).abs().max() > 1e-6:
            return False
    return True


def by_steps(a: Tensor, b: Tensor) -> Any:
    """What each key gains on the one before it."""
    steps = np.subtract(*(np.diff(np.where(np.isinf(x), 0, x)) for x in (a.numpy(), b.numpy())))
    return np.allclose(np.tril(steps, k=-1), 0)


def by_attention(a: Tensor, b: Tensor) -> bool:
    q, k = torch.randn(2, len(a), 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    past = torch.ones(len(a), len(a)).tril().bool()
    one, other = (attention_weights(q, k, bias=bias, mask=past) for bias in (a, b))
    return torch.allclose(one, other, atol=1e-6)


def constant(d: Tensor) -> bool:
    return bool((d - d[..., :1]).abs().max() < 1e-6)


def softmaxes(a: Tensor, b: Tensor, dim: int = 1, *, masked: bool = True, only: slice = slice(None)) -> bool:
    if masked:
        future = torch.ones(len(a), len(a)).triu(1).bool()
        a, b = a.masked_fill(future, -math.inf), b.masked_fill(future, -math.inf)
    return torch.allclose(a.softmax(dim)[only], b.softmax(dim)[only])


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


def turned_round(keys: int, share: float, length: int) -> float:
    low, high = 0.0, 30.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle, keys, length) > share else (low, middle)
    return low


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


def mistaken(mistake: str) -> Callable[..., Any]:
    """As by a reader who uses softmax and not the package's attention."""

    def attend(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Any:
        new, length = q.shape[1], len(real)
        places = torch.arange(length) if "padding counts" in mistake else real.cumsum(0)
        asking = torch.arange(new) if "rows" in mistake else places[-new:]
        columns = torch.arange(length) if "rows" in mistake else places
        mask = torch.ones(new, length).tril(0 if "from the left" in mistake else length - new).bool()
        if "no causal mask" in mistake:
            mask = torch.ones_like(mask)
        if "padding is seen" not in mistake:
            mask = mask & real
        scores = q @ keys.mT / (1 if mistake == "not scaled" else math.sqrt(q.shape[2]))
        bias = -slopes[:, None, None] * (asking[:, None] - columns).abs()
        if mistake == "wrong sign":
            bias = -bias
        elif mistake == "no bias":
            bias = 0 * bias
        elif mistake == "one slope":
            bias = bias[:1]
        elif mistake == "slopes in reverse":
            bias = bias.flip(0)
        elif mistake == "bias divided":
            bias = bias / math.sqrt(q.shape[2])
        elif mistake == "factor":
            scores, bias = scores * bias.exp(), 0 * bias
        weights = (scores + bias).masked_fill(~mask, -math.inf).softmax(-1)
        if mistake == "weights":
            return weights
        if mistake == "padding after the softmax":
            mask = torch.ones(new, length).tril(length - new).bool()
            weights = (scores + bias).masked_fill(~mask, -math.inf).softmax(-1) * real
        output = weights @ values
        return output.transpose(0, 1) if mistake == "heads second" else output

    return attend


def by_the_package_from_the_left(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    positions = real.cumsum(0)
    bias = alibi_bias(positions[-q.shape[1] :], positions, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=real & torch.ones(q.shape[1], len(real)).tril().bool())


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "alibi.slope": [by_list, by_code, by_bits, lambda head, num_heads: torch.tensor(by_list(head, num_heads))],
    "alibi.same_bias": [by_differences, by_steps, by_attention, softmaxes],
    "alibi.slope_for": [bisect, by_series, by_polynomial, by_grid],
    "alibi.attend": [attend_without_padding, attend_by_rows, attend_in_32_bits],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "alibi.slope": {
        "the formula": (lambda head, n: geometric(n)[head], "the formula of the paper's text. For 12"),
        "the formula from 0": (lambda head, n: from_h_0(n)[head], "from h = 0 on"),
        "sorted": (lambda head, n: sorted((by_list(h, n) for h in range(n)), reverse=True)[head], "right, but sorted"),
        "additional first": (additional_first, "come first for you"),
        "the larger power": (first_of_the_larger, "the first slopes of 16"),
        "not every other": (listed(lambda larger: larger), "one after the other"),
        "begins again": (
            lambda head, n: geometric(2 ** int(math.log2(n)))[head % 2 ** int(math.log2(n))],
            "repeat the first ones",
        ),
        "from the second on": (listed(lambda larger: larger[1::2]), "repeat the first ones"),
        "runs on": (
            lambda head, n: 2 ** (-8 * (head + 1) / 2 ** int(math.log2(n))),
            "the sequence runs on",
        ),
        "counted among all": (
            lambda head, n: (
                geometric(2 ** int(math.log2(n)))[head]
                if head < 2 ** int(math.log2(n))
                else 2 ** (-4 * (2 * head + 1) / 2 ** int(math.log2(n)))
            ),
            "counts among all heads",
        ),
        "from 0": (listed(lambda larger: larger[0::2], from_h_0), "Your first slope is 1"),
        "all from 0": (
            lambda head, n: (from_h_0(2 ** int(math.log2(n))) + from_h_0(2 ** (int(math.log2(n)) + 1))[0::2])[head],
            "all are one step too steep",
        ),
        "not divided": (listed(lambda larger: larger[0::2], lambda n: [2.0**-h for h in range(1, n + 1)]), "8 divided by"),
        "no minus": (lambda head, n: 1 / by_list(head, n), "lacks its minus"),
        "below 0": (lambda head, n: -by_list(head, n), "a positive number"),
        "exponent": (lambda head, n: math.log2(by_list(head, n)), "This is the exponent: "),
        "exponent without its minus": (lambda head, n: -math.log2(by_list(head, n)), "without its minus"),
        "from the end": (lambda head, n: by_list(n - 1 - head, n), "counted from the end"),
        "base e": (lambda head, n: math.exp(math.log(by_list(head, n)) / math.log(2)), "The base is e"),
        "heads from 1": (lambda head, n: by_list(head - 1, n), None),
        "all heads": (lambda head, n: [by_list(h, n) for h in range(n)], "it should be one number"),
        "the package's": (lambda head, n: alibi_slopes(n)[head], "calls the package's own"),
    },
    "alibi.same_bias": {
        "equal": (torch.equal, "Only equal numbers"),
        "close": (torch.allclose, "Only equal numbers"),
        "equal in the past": (lambda a, b: torch.allclose(a.tril(), b.tril()), "Only equal numbers"),
        "equal to the last digit": (
            lambda a, b: torch.equal(
                *(x.masked_fill(torch.ones(x.shape).triu(1).bool(), -math.inf).softmax(1) for x in (a, b))
            ),
            None,
        ),
        "the future too": (lambda a, b: softmaxes(a, b, masked=False), "You compare the future too"),
        "rows of the whole difference": (lambda a, b: constant(a - b), "You compare the future too"),
        "one number for all": (
            lambda a, b: bool(((a - b) - (a - b)[0, 0])[torch.ones(a.shape).tril().bool()].abs().max() < 1e-6),
            "for each row is not",
        ),
        "columns": (lambda a, b: softmaxes(a, b, dim=0), "a softmax runs along a row"),
        "columns of the difference": (lambda a, b: constant((a - b).T), "a softmax runs along a row"),
        "infinity": (
            lambda a, b: bool((((a - b) - (a - b)[:, :1]) * torch.ones(a.shape).tril()).abs().max() < 1e-6),
            "Infinity less infinity",
        ),
        "the last query": (lambda a, b: softmaxes(a, b, only=slice(-1, None)), "taken in by another number for the second"),
        "but the last query": (lambda a, b: softmaxes(a, b, only=slice(0, -1)), "taken in by another number for the last"),
        "yes": (lambda a, b: True, "You say True to all pairs"),
        "no": (lambda a, b: False, "You say False to all pairs"),
        "a table": (lambda a, b: a == b, "one True or False"),
        "the order of keys": (lambda a, b: torch.equal(a.tril().argsort(1), b.tril().argsort(1)), None),
    },
    "alibi.slope_for": {
        "endless": (lambda keys, share, length: math.log(1 / (1 - share)) / keys, "a text without end"),
        "endless, below 0": (lambda keys, share, length: math.log(1 - share) / keys, "The sign is turned round"),
        "endless, base 2": (lambda keys, share, length: -math.log2(1 - share) / keys, "the base e, not 2"),
        "endless, the rest": (lambda keys, share, length: -math.log(share) / keys, "have changed places"),
        "half": (lambda keys, share, length: math.log(2) / keys, "whatever share says"),
        "wrong half": (turned_round, "does your search move"),
        "keys less one": (lambda keys, share, length: bisect(max(keys - 1, 1), share, length), "right for keys - 1"),
        "keys plus one": (lambda keys, share, length: bisect(min(keys + 1, length - 1), share, length), "right for keys + 1"),
        "length less one": (lambda keys, share, length: bisect(keys, share, max(length - 1, 2)), "right for length - 1"),
        "length plus one": (lambda keys, share, length: bisect(keys, share, length + 1), "right for length + 1"),
        "the farthest": (lambda keys, share, length: -bisect(keys, share, length), "to the farthest keys"),
        "the rest": (
            lambda keys, share, length: bisect(keys, 1 - share, length, low=-600 / length),
            "the share to all the other keys",
        ),
        "not above 1": (lambda keys, share, length: bisect(keys, share, length, high=1.0), "does your search end at 1"),
        "few halvings": (lambda keys, share, length: bisect(keys, share, length, high=4.0, steps=9), "search on"),
        "rounded": (lambda keys, share, length: round(bisect(keys, share, length), 2), "and should hold"),
        "the share": (lambda keys, share, length: held(0.1, keys, length), None),
        "keys over length": (lambda keys, share, length: keys / length, None),
        "nothing to return": (lambda keys, share, length: (0.0, 1.0), "it should be one number, the slope"),
        "infinity": (lambda keys, share, length: math.inf, "returned inf"),
    },
    "alibi.attend": {
        "padding counts": (mistaken("padding counts"), "count the words between them"),
        "padding counts, padding is seen": (mistaken("padding counts, padding is seen"), "looked at and counted"),
        "padding is seen": (mistaken("padding is seen"), "still looked at"),
        "padding after the softmax": (mistaken("padding after the softmax"), None),
        "no causal mask": (mistaken("no causal mask"), "the causal mask holds"),
        "no causal mask, padding counts": (mistaken("no causal mask, padding counts"), "padding is counted as distance"),
        "from the left": (mistaken("from the left"), "counts rows from 0"),
        "from the left, by the package": (by_the_package_from_the_left, "has no key to look at"),
        "rows": (mistaken("rows"), "between rows and columns"),
        "rows, no causal mask": (mistaken("rows, no causal mask"), "between rows and columns, and new tokens"),
        "rows, padding is seen": (mistaken("rows, padding is seen"), "between rows and columns, and padding"),
        "wrong sign": (mistaken("wrong sign"), "look at a sign"),
        "no bias": (mistaken("no bias"), "The bias is missing"),
        "one slope": (mistaken("one slope"), "the first one's slope"),
        "slopes in reverse": (mistaken("slopes in reverse"), "in reverse"),
        "not scaled": (mistaken("not scaled"), "divided by √d"),
        "bias divided": (mistaken("bias divided"), "The bias has been divided"),
        "factor": (mistaken("factor"), None),
        "weights": (mistaken("weights"), "has shape"),
        "heads second": (mistaken("heads second"), "has shape"),
        "the package's": (
            lambda q, keys, values, slopes, real: alibi_attention(q[None], keys[None], values[None], slopes)[0],
            "calls the package's own",
        ),
    },
}
