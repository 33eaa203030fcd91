"""Answers to assignment 2: right ones written differently, and wrong ones with what their verdict must say."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def axis_by_zeros(f: Layer) -> str:
    added = f(torch.zeros(2, 3, 5))
    if (added[:, 0] != added[:, 1]).any():
        return "token"
    return "text" if (added[0] != added[1]).any() else "neither"


def axis_by_equal_tokens(f: Layer) -> str:
    out = f(torch.ones(6, 4, 2, dtype=torch.float64)).numpy()
    if np.ptp(out, axis=1).max() > 1e-9:
        return "token"
    return "text" if np.ptp(out, axis=0).max() > 1e-9 else "neither"


def axis_by_counting(f: Layer) -> str:
    rows = f(torch.zeros(5, 4, 3)).tolist()
    if any(len({tuple(token) for token in text}) > 1 for text in rows):
        return "token"
    return "text" if len({tuple(text[0]) for text in rows}) > 1 else "neither"


def axis_by_spread(added: Tensor, first: str = "token", second: str = "text") -> str:
    by_token, by_text = added.std(dim=1).max(), added.std(dim=0).max()
    return first if by_token > 1e-6 else second if by_text > 1e-6 else "neither"


def random_x(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def subtracted(f: Layer) -> str:
    x = random_x(3, 4, 5)
    return axis_by_spread(f(x) - x)


def one_token(f: Layer) -> str:
    added = f(torch.zeros(3, 1, 4))
    return "token" if not torch.equal(added, added[:, :1]) else "text" if (added[0] != added[1]).any() else "neither"


def text_or_nothing(f: Layer) -> str:
    """Anything that is not token is text."""
    return "token" if axis_by_zeros(f) == "token" else "text"


def by_rows(mask: Tensor) -> Tensor:
    out = torch.zeros(mask.shape)
    for text, row in zip(mask, out, strict=True):
        length = int(text.sum())
        row[text] = torch.linspace(0, 1, length) if length > 1 else 0.0
    return out


def by_first_token(mask: Tensor) -> np.ndarray:
    numbers = mask.numpy().astype(float)
    m = np.arange(mask.shape[1]) - numbers.argmax(axis=1)[:, None]
    return numbers * m / np.maximum(numbers.sum(axis=1, keepdims=True) - 1, 1)


def by_lists(mask: Tensor) -> list[list[float]]:
    result = []
    for text in mask.tolist():
        m, row = 0, []
        for token in text:
            row.append(m / (sum(text) - 1) if token and m else 0.0)
            m += token
        result.append(row)
    return result


def without_nan(mask: Tensor) -> Tensor:
    m, length = mask.cumsum(1) - 1, mask.sum(1)[:, None]
    return (m / (length - 1)).nan_to_num(0, 0, 0).masked_fill(~mask, 0)


def counted(mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Own positions, own lengths, columns."""
    return mask.cumsum(dim=1) - 1, mask.sum(dim=1, keepdim=True), torch.arange(mask.shape[1]).expand(mask.shape)


def first_by_gcd(dials: list[int]) -> int:
    return reduce(lambda m, marks: m * marks // math.gcd(m, marks), dials)


def first_by_turning(dials: list[int]) -> int:
    hands, m = [0] * len(dials), 0
    while True:
        m += 1
        hands = [(hand + 1) % marks for hand, marks in zip(hands, dials, strict=True)]
        if not any(hands):
            return m


def first_by_table(dials: list[int]) -> Tensor:
    m = torch.arange(1, math.prod(dials) + 1)
    back = (m[:, None] % torch.tensor(dials) == 0).all(dim=1)
    return m[back].min()


def subsets(marks: int, smallest: int = 2, sizes: int = 5) -> Iterator[list[int]]:
    for size in range(1, sizes + 1):
        for dials in itertools.combinations(range(smallest, marks + 1), size):
            if sum(dials) <= marks:
                yield list(dials)


def partitions(marks: int, smallest: int = 2) -> Iterator[list[int]]:
    yield [marks]
    for first in range(smallest, marks // 2 + 1):
        for rest in partitions(marks - first, first):
            yield [first, *rest]


def best_by_paying(marks: int) -> np.ndarray:
    """The best list for each return, mark by mark."""
    lists: dict[int, list[int]] = {1: []}
    for dial in range(2, marks + 1):
        for m, dials in list(lists.items()):
            new = [*dials, dial]
            if sum(new) <= marks and sum(new) < sum(lists.get(math.lcm(m, dial), [99])):
                lists[math.lcm(m, dial)] = new
    return np.array(lists[max(lists)])


def best_of(lists: Iterator[list[int]], key: Callable[[list[int]], int] = first_by_gcd) -> list[int]:
    return max(lists, key=key)


def first_primes(marks: int) -> list[int]:
    dials: list[int] = []
    for prime in (2, 3, 5, 7, 11, 13):
        if sum(dials) + prime <= marks:
            dials.append(prime)
    return dials


def is_prime(number: int) -> bool:
    return all(number % k for k in range(2, number))


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "naive.counts_along": [axis_by_zeros, axis_by_equal_tokens, axis_by_counting],
    "naive.fractions": [by_rows, by_first_token, by_lists, without_nan],
    "naive.first_return": [first_by_gcd, first_by_turning, first_by_table, lambda dials: math.lcm(*dials)],
    "naive.best_dials": [
        lambda marks: best_of(subsets(marks)),
        lambda marks: tuple(best_of(dials for money in range(2, marks + 1) for dials in partitions(money))),
        best_by_paying,
        lambda marks: torch.tensor(best_of(subsets(marks))[::-1]),
    ],
}

WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "naive.counts_along": {
        "exchanged": (
            lambda f: {"token": "text", "text": "token", "neither": "neither"}[axis_by_zeros(f)],
            "have changed places",
        ),
        "the wrong dim": (lambda f: axis_by_spread(f(torch.zeros(3, 4, 5)).transpose(0, 1)), "have changed places"),
        "x subtracted": (subtracted, "x itself shows through"),
        "x as it is": (lambda f: axis_by_spread(f(random_x(3, 4, 5))), 'call all ten "token"'),
        "the first number": (lambda f: axis_by_spread(f(torch.zeros(3, 4, 5))[:, :, :1]), "last number alone"),
        "all numbers of a text": (
            lambda f: (
                "token"
                if f(torch.zeros(2, 3, 4))[0].std() > 1e-6
                else "text"
                if f(torch.zeros(2, 3, 4)).std() > 1e-6
                else "neither"
            ),
            None,
        ),
        "one text": (lambda f: axis_by_spread(f(torch.zeros(1, 4, 5)).expand(2, -1, -1)), 'no layer "text"'),
        "one token": (one_token, 'no layer "token"'),
        "not within a text": (
            lambda f: "token" if len(f(torch.zeros(3, 3, 2)).flatten(0, 1).unique(dim=0)) > 1 else "neither",
            'call "token" what differs from text to text',
        ),
        "anything else is text": (text_or_nothing, 'no layer "neither"'),
        "added at all": (lambda f: "token" if f(torch.zeros(2, 2, 2)).any() else "neither", "adds anything at all"),
        "an axis": (lambda f: 1, "it should be a word"),
        "two dimensions": (lambda f: axis_by_spread(f(torch.zeros(4, 4))), "raised IndexError"),
    },
    "naive.fractions": {
        "the width": (lambda mask: mask * counted(mask)[0] / (mask.shape[1] - 1), "the width of the batch"),
        "columns": (lambda mask: mask * counted(mask)[2] / (counted(mask)[1] - 1).clamp(min=1), "You count columns"),
        "columns of the width": (
            lambda mask: mask * torch.linspace(0, 1, mask.shape[1]),
            "column and width of the whole batch",
        ),
        "by L": (lambda mask: mask * counted(mask)[0] / counted(mask)[1], "stays below 1"),
        "from 1": (lambda mask: mask * mask.cumsum(1) / mask.sum(1, keepdim=True), "so up to L - 1"),
        "from 1 by L - 1": (
            lambda mask: mask * mask.cumsum(1) / (mask.sum(1, keepdim=True) - 1).clamp(min=1),
            "m counts from 0",
        ),
        "padding counted": (lambda mask: counted(mask)[0] / (counted(mask)[1] - 1).clamp(min=1), "padding has to be 0"),
        "padding on the right": (
            lambda mask: (counted(mask)[0] / (counted(mask)[1] - 1).clamp(min=1)).clamp(min=0),
            "padding on the right",
        ),
        "one token divided by zero": (lambda mask: counted(mask)[0] / (counted(mask)[1] - 1) * mask, "nan"),
        "one token at 1": (
            lambda mask: torch.where(counted(mask)[1] == 1, mask.double(), torch.tensor(by_lists(mask), dtype=torch.float64)),
            "the text of one token",
        ),
        "not divided": (lambda mask: mask * counted(mask)[0], "These are the counts"),
        "from the end": (
            lambda mask: mask * mask.flip(1).cumsum(1).flip(1).sub(1) / (mask.sum(1)[:, None] - 1).clamp(min=1),
            None,
        ),
        "the longest": (lambda mask: counted(mask)[0] * mask / (mask.sum(1).max() - 1).clamp(min=1), "the longest text's"),
        "one text": (lambda mask: by_rows(mask)[0], "has shape"),
    },
    "naive.first_return": {
        "product": (lambda dials: math.prod(dials), "the product"),
        "one dial back": (lambda dials: min(dials), "one dial is back"),
        "last new code": (lambda dials: math.lcm(*dials) - 1, "One too few"),
        "one more": (lambda dials: math.lcm(*dials) + 1, "One too many"),
        "largest dial": (lambda dials: max(dials), "the largest dial is back"),
        "sum": (lambda dials: sum(dials), "add the marks up"),
        "two dials": (lambda dials: math.lcm(dials[0], dials[min(1, len(dials) - 1)]), "two dials only"),
        "first and last": (lambda dials: math.lcm(dials[0], dials[-1]), "the first and the last"),
        "divisor": (lambda dials: math.gcd(*dials), "divides all of them"),
        "product by the divisor": (lambda dials: math.prod(dials) // math.gcd(*dials), "With two dials this works"),
        "two dials by index": (lambda dials: math.lcm(dials[0], dials[1]), "IndexError"),
        "from 0": (lambda dials: next(m for m in range(1000) if all(m % d == 0 for d in dials)), "At position 0"),
        "up to 30": (lambda dials: max(m for m in range(1, 31) if m == 1 or all(m % d == 0 for d in dials)), None),
        "all codes": (lambda dials: [m for m in range(1, 100) if all(m % d == 0 for d in dials)], "returned a list"),
    },
    "naive.best_dials": {
        "one dial": (lambda marks: [marks], "always buy one dial"),
        "product": (lambda marks: best_of(partitions(marks), math.prod), "not the largest product"),
        "product of different ones": (lambda marks: best_of(subsets(marks), math.prod), "share a divisor"),
        "two dials": (lambda marks: best_of(subsets(marks, sizes=2)), "two dials at most"),
        "first primes": (first_primes, "prime number of marks"),
        "primes": (
            lambda marks: best_of(dials for dials in subsets(marks) if all(map(is_prime, dials))),
            "prime number of marks",
        ),
        "not the last mark": (lambda marks: best_of(subsets(max(marks - 1, 2))), "leave money unspent"),
        "from 3": (lambda marks: best_of(subsets(marks, smallest=3)) if marks > 2 else [2], "begin at 2"),
        "too dear": (lambda marks: [marks, marks + 1], "more than"),
        "every mark spent": (lambda marks: best_of(partitions(marks)), "You always spend every mark"),
        "dials of one mark": (lambda marks: [1] * marks, "2 marks or more"),
        "the return": (lambda marks: first_by_gcd(best_of(subsets(marks))), "should return a list"),
        "fractions": (lambda marks: [marks / 3, 2.5], "a whole number of marks"),
        "words": (lambda marks: "3, 4 and 5", "it should be a list"),
        "nothing": (lambda marks: [], "no dial at all"),
        "binary": (lambda marks: [2] * (marks // 2), "share a divisor"),
    },
}
