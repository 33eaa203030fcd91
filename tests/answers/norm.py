"""Answers to assignment 5: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import sinusoidal_table

Maker = Callable[[Tensor, int], Tensor]
WIDTHS = range(2, 17, 2)


def lengths_hold(
    make_table: Maker,
    near: Callable[[Tensor, float], bool] = lambda lengths, wanted: bool(((lengths - wanted).abs() < 1e-3).all()),
    widths: Iterable[int] = WIDTHS,
    positions: Iterable[int] = range(300),
    wanted: Callable[[int], float] = lambda d: math.sqrt(d / 2),
) -> bool:
    return all(near(make_table(torch.tensor([*positions]), d).norm(dim=1), wanted(d)) for d in widths)


def held_in_numpy(make_table: Maker) -> np.bool_:
    squared = [np.square(make_table(torch.arange(300), d).numpy()).sum(axis=1) * 2 / d for d in range(2, 18, 2)]
    return np.isclose(squared, 1, rtol=0, atol=1e-3).all()


def held_by_loops(make_table: Maker) -> bool:
    for d in WIDTHS:
        for row in make_table(torch.arange(300), d).tolist():
            if not abs(math.hypot(*row) - (d / 2) ** 0.5) < 0.002:
                return False
    return True


def means(words: Tensor, rows: Tensor) -> tuple[float, float, float]:
    return float(words.square().sum(1).mean()), float(words.mean(0) @ rows.mean(0)), float(rows.square().sum(1).mean())


def by_quadratic(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, c = means(words, rows)
    return max(np.roots([a, 2 * b, c - c / share]).tolist())


def by_bisection(words: Tensor, rows: Tensor, share: float) -> Tensor:
    low, high = torch.tensor(0.0), torch.tensor(1000.0)
    for _ in range(40):
        middle = (low + high) / 2
        if (rows**2).sum(1).mean() / ((middle * words[:, None] + rows) ** 2).sum(2).mean() > share:
            low = middle
        else:
            high = middle
    return middle


def by_pairs(words: Tensor, rows: Tensor, share: float) -> float:
    a, b = (words**2).sum(1).mean(), torch.cdist(words, -rows).square().mean()
    c = (rows**2).sum(1).mean()
    half = (b - a - c) / 2
    return float((torch.sqrt(half**2 + a * c * (1 / share - 1)) - half) / a)


def solved(change: Callable[[float, float, float, float], float], words: Tensor, rows: Tensor, share: float) -> float:
    return change(*means(words, rows), share)


def root(a: float, b: float, c: float, share: float) -> float:
    return (math.sqrt(b**2 + a * c * (1 / share - 1)) - b) / a


def pairs_in_order(words: Tensor, rows: Tensor, share: float) -> float:
    words = words[: len(rows)]
    a, _, c = means(words, rows)
    return root(a, float((words * rows).sum(1).mean()), c, share)


def in_order_all_words(words: Tensor, rows: Tensor, share: float) -> float:
    a, _, c = means(words, rows)
    return root(a, float((words[: len(rows)] * rows).sum(1).mean()), c, share)


def by_table(d: int, share: float) -> int:
    table = sinusoidal_table(range(1000), d)
    common = (table.cumsum(0) / torch.arange(1, 1001)[:, None]).square().sum(1)
    return int((common < share * d / 2).nonzero()[0]) + 1


def by_running_sum(d: int, share: float) -> int:
    total = np.zeros(d)
    for count, row in enumerate(sinusoidal_table(range(1000), d).numpy(), start=1):
        total += row
        if (total / count) @ (total / count) < share * d / 2:
            return count
    raise AssertionError


def by_formula(d: int, share: float) -> float:
    """The mean of L points on a circle, each ω after the one before."""
    half = 10_000.0 ** (-np.arange(0, d, 2) / d) / 2
    L = np.arange(1, 1001)[:, None]
    return float(L[((np.sin(L * half) / (L * np.sin(half))) ** 2).mean(axis=1) < share][0, 0])


def until(d: int, share: float, positions: range = range(1000), power: int = 2, whole: float = 0.5) -> int:
    means = sinusoidal_table(positions, d).cumsum(0) / torch.arange(1, len(positions) + 1)[:, None]
    return 1 + next(k for k, mean in enumerate(means) if mean.norm() ** power < share * (whole * d) ** (power / 2))


def common_part(L: int, d: int) -> float:
    return float(sinusoidal_table(range(L), d).mean(0).square().sum()) * 2 / d


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "norm.has_right_lengths": [lengths_hold, held_in_numpy, held_by_loops],
    "norm.factor_for": [by_quadratic, by_bisection, by_pairs],
    "norm.rows_until": [
        by_table,
        by_running_sum,
        by_formula,
        # Any rows in a row will do: their mean is as long wherever they begin.
        lambda d, share: until(d, share, positions=range(500, 1500)),
    ],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "norm.has_right_lengths": {
        "equal to the last digit": (
            lambda f: lengths_hold(f, lambda lengths, wanted: bool((lengths == wanted).all())),
            "lets no table pass",
        ),
        "squared length against length": (lambda f: lengths_hold(f, wanted=lambda d: d / 2), "lets no table pass"),
        "length of the width": (lambda f: lengths_hold(f, wanted=lambda d: math.sqrt(d)), "lets no table pass"),
        "unit length": (lambda f: lengths_hold(f, wanted=lambda d: 1), "wants rows of length 1"),
        "always": (lambda f: True, "lets every table pass"),
        "any row": (lambda f: lengths_hold(f, lambda lengths, wanted: bool(((lengths - wanted).abs() < 1e-3).any())), "pass"),
        "too strict": (
            lambda f: lengths_hold(f, lambda lengths, wanted: bool(((lengths - wanted).abs() < 1e-10).all())),
            "in 32 bits",
        ),
        "the right table": (
            lambda f: all(torch.allclose(f(torch.arange(300), d).double(), sinusoidal_table(range(300), d), atol=1e-3)
                          for d in WIDTHS),
            "turns down",
        ),
        "pairs of neighbours": (
            lambda f: all(torch.allclose(f(torch.arange(300), d).double().view(300, -1, 2).norm(dim=2),
                                         torch.ones(300, d // 2).double(), atol=1e-3) for d in WIDTHS),
            "nor where its columns stand",
        ),
        "row 0": (lambda f: lengths_hold(f, positions=[0]), "take different angles pass: they are right in row 0"),
        "some rows": (lambda f: lengths_hold(f, positions=range(100)), "positions go up to 299"),
        "from row 1": (lambda f: lengths_hold(f, positions=range(1, 300)), "positions begin with 0"),
        "the mean": (
            lambda f: lengths_hold(f, lambda lengths, wanted: abs(float(lengths.mean()) - wanted) < 1e-3),
            "their mean is right",
        ),
        "not far": (
            lambda f: lengths_hold(f, lambda lengths, wanted: not bool(((lengths - wanted).abs() > 1e-3).any())),
            "no comparison with NaN is true",
        ),
        "from width 4": (lambda f: lengths_hold(f, widths=range(4, 17, 2)), "did you try that width?"),
        "powers of two": (lambda f: lengths_hold(f, widths=(4, 8, 16)), "which widths did you try?"),
        "width 2 alone": (lambda f: lengths_hold(f, widths=[2]), "at width 2 that is right"),
        "width 64": (lambda f: lengths_hold(f, widths=[64]), "of width 64"),
        "positions to 1000": (lambda f: lengths_hold(f, positions=range(1000)), "other positions than"),
        "a tensor": (lambda f: (f(torch.arange(300), 8).norm(dim=1) - 2).abs() < 1e-3, "should be one True or False"),
        "too loose": (
            lambda f: lengths_hold(f, lambda lengths, wanted: bool(((lengths - wanted).abs() < 0.9).all())),
            "too long and too short",
        ),
    },
    "norm.factor_for": {
        "perpendicular": (lambda *x: solved(lambda a, b, c, s: math.sqrt((1 / s - 1) * c / a), *x), "for perpendicular"),
        "the chapter's": (lambda x, p, s: ((1 / s - 1) / 2) ** 0.5 / x.std(), "spread of all numbers"),
        "the chapter's, by channel": (lambda x, p, s: ((1 / s - 1) / 2) ** 0.5 / x.std(dim=0).mean(), "of each channel"),
        "sign": (lambda *x: solved(lambda a, b, c, s: root(a, -b, c, s), *x), "wrong sign"),
        "the other root": (lambda *x: solved(lambda a, b, c, s: -root(a, -b, c, s), *x), "take the other root"),
        "b once": (lambda *x: solved(lambda a, b, c, s: root(a, b / 2, c, s), *x), "Multiply out once more"),
        "b four times": (lambda *x: solved(lambda a, b, c, s: root(a, 2 * b, c, s), *x), "factor of 2 too many"),
        "the word's share": (lambda x, p, s: by_quadratic(x, p, 1 - s), "the rest makes this share"),
        "of the words": (
            lambda *x: solved(lambda a, b, c, s: max(np.roots([a, 2 * b, -c / s]).tolist()), *x),
            "with the words alone",
        ),
        "squared": (lambda *x: by_quadratic(*x) ** 2, "the square of the factor"),
        "inverse": (lambda *x: 1 / by_quadratic(*x), "one over the factor"),
        "pairs in order": (in_order_all_words, "pair word 0 with row 0"),
        "pairs in order, fewer words": (pairs_in_order, None),
        "complex": (lambda *x: solved(lambda a, b, c, s: np.roots([a, b, c]).tolist()[0], *x), "should be one number"),
        "one per word": (lambda x, p, s: x.norm(dim=1), "should be one number"),
        "no factor": (lambda x, p, s: 1.0, "the position's share is"),
    },
    "norm.rows_until": {
        "the index": (lambda d, share: until(d, share) - 1, "One too few"),
        "one more": (lambda d, share: by_table(d, share) + 1, "One too many"),
        "lengths": (lambda d, share: until(d, share, power=1), "You compare lengths"),
        "of d": (lambda d, share: until(d, share, whole=1.0), "which is d/2 and not d"),
        "the rest": (lambda d, share: next(L for L in range(1, 9) if common_part(L, d) > 1 - share), "its own mean"),
        "one": (lambda d, share: 1, "its own mean"),
        "all": (lambda d, share: 1000, None),
        "a fraction": (lambda d, share: by_table(d, share) - 0.5, "should be a whole number"),
        "a tensor": (lambda d, share: torch.arange(5), "(5,) numbers"),
    },
}  # fmt: skip
