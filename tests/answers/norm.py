"""Answers on the length of a row: right ones that are written differently, and wrong ones with words of their verdict."""

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import sinusoidal_table
from tests.answers import blind

Maker = Callable[[Tensor, int], Tensor]
WIDTHS = range(2, 17, 2)


def factor(d_model: int, std: float, share: float) -> float:
    """From share = p² / (p² + f²·x²), with the squared lengths p² = d/2 and x² = d·std²."""
    position, word = d_model / 2, d_model * std**2
    return math.sqrt(position * (1 - share) / share / word)


def lengths_hold(
    make_table: Maker,
    near: Callable[[Tensor, float], Any] = lambda lengths, wanted: bool(((lengths - wanted).abs() < 1e-3).all()),
    widths: Iterable[int] = WIDTHS,
    positions: Iterable[int] = range(300),
    wanted: Callable[[int], float] = lambda d: math.sqrt(d / 2),
) -> bool:
    return all(near(make_table(torch.tensor([*positions]), d).norm(dim=1), wanted(d)) for d in widths)


def within(tolerance: float) -> Callable[[Maker], bool]:
    return lambda f: lengths_hold(f, lambda lengths, wanted: bool(((lengths - wanted).abs() < tolerance).all()))


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


def backwards(make_table: Maker) -> bool:
    """Ask for four rows at a time, backwards, and look at each by itself."""
    for d in range(16, 0, -2):
        for m in range(299, -1, -4):
            for row in make_table(torch.arange(m, m - 4, -1), d).tolist():
                if not abs(math.hypot(*row) - math.sqrt(d / 2)) < 0.002:
                    return False
    return True


def grams(make_table: Maker) -> bool:
    """Look at the diagonal of the Gram matrix, at shuffled positions."""
    good = True
    for d in range(2, 17, 2):
        table = make_table(torch.randperm(300), d).double()
        good = good and torch.allclose((table @ table.T).diagonal(), torch.tensor(d / 2).double(), atol=1e-3)
    return good


def by_halving(words: Tensor, rows: Tensor, share: float) -> float:
    """Halve between two factors, on the fraction as it stands."""
    words, rows = words.double(), rows.double()
    p = rows.square().sum(1).mean()

    def fraction(f: float) -> float:
        return float(p / (f * f * words.square().sum(1).mean() + 2 * f * words.mean(0) @ rows.mean(0) + p))

    low, high = 0.0, 1.0
    while fraction(high) > share:
        high *= 2
    # where the means are opposed the fraction first grows: come from the vertex
    low = max(0.0, -float(words.mean(0) @ rows.mean(0) / words.square().sum(1).mean()))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if fraction(middle) > share else (low, middle)
    return high


def polynomial_roots(words: Tensor, rows: Tensor, share: float) -> float:
    x, p = np.asarray(words.double()), np.asarray(rows.double())
    a, b, c = (x**2).sum(1).mean(), 2 * (x @ p.T).mean(), (p**2).sum(1).mean()
    return float(max(np.roots([a, b, c - c / share]).real))


def solved(change: Callable[[float, float, float, float], float]) -> Callable[[Tensor, Tensor, float], float]:
    """The positive root of a·f² + b·f + c = c/share, after a change of a, b, c or the share."""
    return lambda words, rows, share: change(*means(words, rows), share)


def root(a: float, b: float, c: float) -> float:
    return (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)


def pairs_in_order(words: Tensor, rows: Tensor, share: float) -> float:
    a, _, c = means(words, rows)
    n = min(len(words), len(rows))
    return root(a, 2 * float((words[:n] * rows[:n]).sum(1).mean()), c - c / share)


def mean_per_channel(words: Tensor, rows: Tensor, share: float) -> float:
    a, c = float(words.square().mean()), float(rows.square().mean())
    return root(a, 2 * float((words @ rows.T).mean()), c - c / share)


def squares_of_means(words: Tensor, rows: Tensor, share: float) -> float:
    a, c = float(words.norm(dim=1).mean() ** 2), float(rows.norm(dim=1).mean() ** 2)
    return root(a, 2 * float((words @ rows.T).mean()), c - c / share)


def mean_of_shares(words: Tensor, rows: Tensor, share: float) -> float:
    low, high = 0.0, 1000.0
    for _ in range(40):
        f = (low + high) / 2
        both = (f * words[:, None] + rows[None]).square().sum(-1)
        low, high = (f, high) if float((rows.square().sum(1) / both).mean()) > share else (low, f)
    return low


def circles(d_model: int, share: float) -> int:
    """Add numbers on the unit circle, no table."""
    omega = [10000 ** (-2 * i / d_model) for i in range(d_model // 2)]
    total, count = [0j] * len(omega), 0
    while True:
        total = [z + complex(math.cos(w * count), math.sin(w * count)) for z, w in zip(total, omega, strict=True)]
        count += 1
        if sum(abs(z / count) ** 2 for z in total) < share * d_model / 2:
            return count


def common(d_model: int, count: int = 1000, start: int = 0) -> Tensor:
    table = sinusoidal_table(range(start, start + count), d_model)
    mean = table.cumsum(0) / torch.arange(1, count + 1)[:, None]
    return mean.square().sum(1) / (d_model / 2)


def divided_by_index(d_model: int, share: float) -> int:
    table = sinusoidal_table(range(1002), d_model)
    mean = table.cumsum(0) / torch.arange(1002).clamp(min=1)[:, None]
    return int((mean.square().sum(1) < share * d_model / 2).nonzero()[0]) + 1


def halving_rows(d_model: int, share: float) -> int:
    found = common(d_model, 2000)
    low, high = 1, 2000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if found[middle - 1] < share else (middle, high)
    return high


RIGHT: dict[str, list[Any]] = {
    "norm.factor": [
        factor,
        lambda d, std, share: np.sqrt((1 - share) / (2 * share)) / std,
        lambda d, std, share: torch.tensor([factor(d, std, share)]),
        lambda d, std, share: np.float32(factor(d, std, share)),
        lambda d, std, share: round(factor(d, std, share), 4),
        lambda d, std, share: math.sqrt((d / 2 / share - d / 2) / (d * std**2)),
        lambda *case: Decimal(factor(*case)),
    ],
    "norm.has_right_lengths": [
        lengths_hold,
        held_in_numpy,
        held_by_loops,
        within(1e-4),
        within(1e-2),
        *blind(backwards, grams),
    ],
    "norm.factor_for": [
        by_quadratic,
        by_bisection,
        by_pairs,
        lambda *case: Fraction(by_quadratic(*case)),
        lambda words, rows, share: by_pairs(words.float(), rows.float(), share),
        *blind(by_halving, polynomial_roots),
    ],
    "norm.rows_until": [
        by_table,
        by_running_sum,
        by_formula,
        # Any rows in succession will do: their mean is as long wherever they begin.
        lambda d, share: int((common(d, start=500) < share).nonzero()[0]) + 1,
        lambda *case: np.longdouble(by_table(*case)),
        *blind(circles),
    ],
}

WRONG: dict[str, list[Any]] = {
    "norm.factor": [
        ("lengths", lambda d, std, share: (1 / share - 1) * math.sqrt(d / 2) / (std * math.sqrt(d)), "You add lengths"),
        ("always 1", lambda d, std, share: 1, "You return 1 whatever your function is given"),
        ("zero", lambda d, std, share: 0, "You return 0 whatever your function is given"),
        ("half", lambda *case: factor(*case) / 2, "Every number is 0.5 times what it should be"),
        ("rounded", lambda *case: round(factor(*case), 1), "rounded to 1 decimals"),
        ("not a number", lambda d, std, share: math.nan, "Do you divide by zero?"),
        ("one per channel", lambda d, std, share: np.ones(d), "returned (64,) numbers, but it should return one number"),
        ("a list", lambda d, std, share: [1.0], "returned a list, but it should return one number"),
        ("a truth", lambda d, std, share: std > share, "returned a bool, but it should return one number"),
        ("complex", lambda d, std, share: 1j, "returned a complex, but it should return one number"),
    ],
    "norm.has_right_lengths": [
        ("always", lambda f: True, "You say True every time"),
        (
            "pairs of neighbours",
            lambda f: all(
                torch.allclose(
                    f(torch.arange(300), d).double().view(300, -1, 2).norm(dim=2), torch.ones(300, d // 2).double(), atol=1e-3
                )
                for d in WIDTHS
            ),
            "but not for: all sines, then all cosines",
        ),
        ("width 64", lambda f: lengths_hold(f, widths=[64]), "of width 64"),
        ("positions to 1000", lambda f: lengths_hold(f, positions=range(1000)), "positions that aren't allowed"),
        ("a tensor", lambda f: (f(torch.arange(300), 8).norm(dim=1) - 2).abs() < 1e-3, "should return a single True or False"),
        ("within 0.00001", within(1e-5), "too strict"),
        ("within 0.000001", within(1e-6), "too strict"),
        ("within 0.05", within(0.05), "too tolerant"),
        (
            "within 1 %",
            lambda f: lengths_hold(f, lambda x, y: bool(((x - y).abs() < 0.01 * y).all())),
            "how close must a length be",
        ),
        ("every seventh row", lambda f: lengths_hold(f, positions=range(0, 300, 7)), "doesn't look at all rows"),
        ("every other width", lambda f: lengths_hold(f, widths=range(2, 17, 4)), "doesn't try all widths"),
        ("without width 12", lambda f: lengths_hold(f, widths={*WIDTHS} - {12}), "columns at width 12"),
        ("without width 10", lambda f: lengths_hold(f, widths={*WIDTHS} - {10}), "columns at width 10"),
        (
            "the longest against the shortest",
            lambda f: lengths_hold(f, lambda x, y: abs(x.max() + x.min() - 2 * y) < 1e-3),
            "alternately too long and too short",
        ),
        *blind(
            ("mean of the lengths", lambda f: lengths_hold(f, lambda x, y: abs(x.mean() - y) < 1e-3), "mean length"),
            (
                "mean of the squares",
                lambda f: lengths_hold(f, lambda x, y: abs(x.square().mean() - y**2) < 1e-3),
                "mean of the sq",
            ),
            ("none is far", lambda f: lengths_hold(f, lambda x, y: not ((x - y).abs() > 1e-3).any()), "fooled by NaN"),
            ("width 16 left out", lambda f: lengths_hold(f, widths=range(2, 16, 2)), "doesn't try all widths"),
            ("100 positions", lambda f: lengths_hold(f, positions=range(100)), "doesn't look at all rows"),
            ("position 299 left out", lambda f: lengths_hold(f, positions=range(299)), "doesn't look at all rows"),
            (
                "compared with the paper",
                lambda f: all(
                    torch.allclose(f(torch.arange(300), d).double(), sinusoidal_table(range(300), d), atol=1e-3) for d in WIDTHS
                ),
                "doesn't say which angle",
            ),
            ("root forgotten", lambda f: lengths_hold(f, wanted=lambda d: d / 2), "accepts no table"),
            ("exactly", lambda f: lengths_hold(f, lambda x, y: bool((x == y).all())), "allow for rounding"),
            ("within 0.1", within(0.1), "too tolerant"),
            (
                "too long only",
                lambda f: lengths_hold(f, lambda x, y: bool((x - y < 1e-3).all())),
                "also find rows that are too short",
            ),
            ("return in the loop", lambda f: lengths_hold(f, widths=[2]), "doesn't try all widths"),
            ("all alike", lambda f: lengths_hold(f, lambda x, y: (x - x[0]).abs().max() < 1e-3), "how long should they be"),
        ),
    ],
    "norm.factor_for": [
        ("complex", lambda words, rows, share: np.roots([2, 2, 1]).tolist()[0], "should return one number"),
        ("one per word", lambda words, rows, share: words.norm(dim=1), "should return one number"),
        ("no factor", lambda words, rows, share: 1.0, "You return 1 whatever your function is given"),
        ("rounded", lambda *case: round(by_quadratic(*case), 2), "rounded to 2 decimals"),
        *blind(
            ("as in the chapter", solved(lambda a, b, c, s: math.sqrt(c * (1 - s) / s / a)), "are perpendicular"),
            ("other root", solved(lambda a, b, c, s: -root(a, -2 * b, c - c / s)), "Take the other root"),
            ("2 of the middle term", solved(lambda a, b, c, s: root(a, b, c - c / s)), "if you multiply out the square"),
            ("sign of the middle term", solved(lambda a, b, c, s: root(a, -2 * b, c - c / s)), "wrong sign"),
            ("middle term always positive", solved(lambda a, b, c, s: root(a, 2 * abs(b), c - c / s)), "ignore the sign"),
            (
                "share of the words",
                solved(lambda a, b, c, s: root(a, 2 * b, c - c / (1 - s))),
                "the position a share of 1 - share",
            ),
            ("word k with row k", pairs_in_order, "word 0 with row 0"),
            ("mean over channels", mean_per_channel, "the sum of these squares"),
            ("squares of mean lengths", squares_of_means, "You square the mean length"),
            (
                "rows taken to be the paper's",
                lambda words, rows, share: root(
                    *(means(words, rows)[0], 2 * means(words, rows)[1]), rows.shape[1] / 2 * (1 - 1 / share)
                ),
                "can have any length",
            ),
            ("mean of the shares", mean_of_shares, "the mean of the shares"),
        ),
    ],
    "norm.rows_until": [
        ("all", lambda d, share: 1000, "You return 1000 whatever your function is given"),
        ("a fraction", lambda d, share: by_table(d, share) - 0.5, "should return a whole number"),
        ("a tensor", lambda d, share: torch.arange(5), "(5,) numbers"),
        ("200 rows", lambda d, share: min(by_table(d, share), 200), "You stop after 200"),
        ("a table of 256 rows", lambda d, share: int((common(d, 256) < share).int().argmax()) + 1, "has too few rows"),
        ("a table of 400 rows", lambda d, share: int((common(d, 400) < share).int().argmax()) + 1, "has too few rows"),
        *blind(
            ("index", lambda d, share: int((common(d) < share).nonzero()[0]), "one too small"),
            ("one too many", lambda d, share: int((common(d) < share).nonzero()[0]) + 2, "one too large"),
            ("length not squared", lambda d, share: int((common(d).sqrt() < share).nonzero()[0]) + 1, "You compare lengths"),
            ("divided by the index", divided_by_index, "divide the sum of k + 1 rows by k"),
            ("halving", halving_rows, "it can get longer again"),
            ("for good", lambda d, share: int((common(d) >= share).nonzero()[-1]) + 2, "it can get longer again"),
            (
                "half of d forgotten",
                lambda d, share: int((common(d) < 2 * share).nonzero()[0]) + 1,
                "the squared length of a row is d/2",
            ),
            (
                "100 rows",
                lambda d, share: int(few[0]) + 1 if len(few := (common(d, 100) < share).nonzero()) else 100,
                "You stop after 100",
            ),
            (
                "from ten rows",
                lambda d, share: next(k for k in range(10, 1000) if common(d)[k - 1] < share),
                "You start with 10",
            ),
            (
                "rows against the first",
                lambda d, share: 1 + int((sinusoidal_table(range(1000), d)[:, 1::2].sum(dim=1) < share * d / 2).nonzero()[0]),
                "with row 0",
            ),
            (
                "steps of ten",
                lambda d, share: next((k for k in range(10, 1001, 10) if common(d)[k - 1] < share), 1000),
                "only every 10th number",
            ),
        ),
    ],
}
