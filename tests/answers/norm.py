"""Answers on the length of a row: right ones that are written differently, and wrong ones with words of their verdict."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import sinusoidal_table
from tests.answers import right, wrong

Maker = Callable[[Tensor, int], Tensor]
WIDTHS = range(2, 17, 2)


@right("norm.factor")
def factor(d_model: int, std: float, share: float) -> float:
    """From share = p² / (p² + f²·x²), with the squared lengths p² = d/2 and x² = d·std²."""
    position, word = d_model / 2, d_model * std**2
    return math.sqrt(position * (1 - share) / share / word)


@right("norm.factor")
def factor_right(d: Any, std: float, share: float) -> Any:
    return np.sqrt((1 - share) / (2 * share)) / std


@right("norm.factor")
def factor_right_2(d: Any, std: float, share: float) -> Any:
    return math.sqrt((d / 2 / share - d / 2) / (d * std**2))


@wrong("norm.factor", "You add lengths")
def factor_lengths(d: Any, std: float, share: float) -> Any:
    return (1 / share - 1) * math.sqrt(d / 2) / (std * math.sqrt(d))


@wrong("norm.factor", "the paper's factor")
def factor_of_the_paper(d: int, std: float, share: float) -> Any:
    return math.sqrt(d)


@wrong("norm.factor", "forgot a square root")
def factor_no_root(d: int, std: float, share: float) -> Any:
    return (1 - share) / share / 2 / std


@wrong("norm.factor", "that the position has length √d")
def factor_long_position(d: int, std: float, share: float) -> Any:
    return math.sqrt((1 - share) / share) / std


@wrong("norm.factor", "of the word alone")
def factor_word_alone(d: int, std: float, share: float) -> Any:
    return math.sqrt(1 / (2 * share)) / std


@right("norm.has_right_lengths")
def held_in_numpy(make_table: Maker) -> np.bool_:
    squared = [np.square(make_table(torch.arange(300), d).numpy()).sum(axis=1) * 2 / d for d in range(2, 18, 2)]
    return np.isclose(squared, 1, rtol=0, atol=1e-3).all()


@right("norm.has_right_lengths")
def backwards(make_table: Maker) -> bool:
    for d in range(16, 0, -2):
        for m in range(299, -1, -4):
            for row in make_table(torch.arange(m, m - 4, -1), d).tolist():
                if not abs(math.hypot(*row) - math.sqrt(d / 2)) < 0.002:
                    return False
    return True


@right("norm.has_right_lengths")
def lengths_hold(
    make_table: Maker,
    near: Callable[[Tensor, float], Any] = lambda lengths, wanted: bool(((lengths - wanted).abs() < 1e-3).all()),
    widths: Iterable[int] = WIDTHS,
    positions: Iterable[int] = range(300),
    wanted: Callable[[int], float] = lambda d: math.sqrt(d / 2),
) -> bool:
    return all(near(make_table(torch.tensor([*positions]), d).norm(dim=1), wanted(d)) for d in widths)


@wrong("norm.has_right_lengths", "mean length")
def has_right_lengths_mean_of_the_lengths(f: Any) -> Any:
    return lengths_hold(f, lambda x, y: abs(x.mean() - y) < 1e-3)


@wrong("norm.has_right_lengths", "fooled by NaN")
def has_right_lengths_none_is_far(f: Any) -> Any:
    return lengths_hold(f, lambda x, y: not ((x - y).abs() > 1e-3).any())


@wrong("norm.has_right_lengths", "doesn't try all widths")
def has_right_lengths_width_16_left_out(f: Any) -> Any:
    return lengths_hold(f, widths=range(2, 16, 2))


@wrong("norm.has_right_lengths", "doesn't look at all rows")
def has_right_lengths_100_positions(f: Any) -> Any:
    return lengths_hold(f, positions=range(100))


@wrong("norm.has_right_lengths", "doesn't say which angle")
def has_right_lengths_compared_with_the_paper(f: Any) -> Any:
    return all(torch.allclose(f(torch.arange(300), d).double(), sinusoidal_table(range(300), d), atol=1e-3) for d in WIDTHS)


@wrong("norm.has_right_lengths", "rows of length 1")
def has_right_lengths_of_1(f: Any) -> Any:
    return lengths_hold(f, wanted=lambda d: 1)


@wrong("norm.has_right_lengths", "too strict")
def has_right_lengths_exactly(f: Any) -> Any:
    return lengths_hold(f, lambda x, y: bool(((x - y).abs() < 1e-8).all()))


@wrong("norm.has_right_lengths", "too tolerant")
def has_right_lengths_roughly(f: Any) -> Any:
    return lengths_hold(f, lambda x, y: bool(((x - y).abs() < 0.1).all()))


def means(words: Tensor, rows: Tensor) -> tuple[float, float, float]:
    return float(words.square().sum(1).mean()), float(words.mean(0) @ rows.mean(0)), float(rows.square().sum(1).mean())


@right("norm.factor_for")
def by_quadratic(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, c = means(words, rows)
    return max(np.roots([a, 2 * b, c - c / share]).tolist())


@right("norm.factor_for")
def by_pairs(words: Tensor, rows: Tensor, share: float) -> float:
    a, b = (words**2).sum(1).mean(), torch.cdist(words, -rows).square().mean()
    c = (rows**2).sum(1).mean()
    half = (b - a - c) / 2
    return float((torch.sqrt(half**2 + a * c * (1 / share - 1)) - half) / a)


@right("norm.factor_for")
def polynomial_roots(words: Tensor, rows: Tensor, share: float) -> float:
    x, p = np.asarray(words.double()), np.asarray(rows.double())
    a, b, c = (x**2).sum(1).mean(), 2 * (x @ p.T).mean(), (p**2).sum(1).mean()
    return float(max(np.roots([a, b, c - c / share]).real))


def solved(change: Callable[[float, float, float, float], float]) -> Callable[[Tensor, Tensor, float], float]:
    """The positive root of a·f² + b·f + c = c/share, after a change of a, b, c or the share."""
    return lambda words, rows, share: change(*means(words, rows), share)


@wrong("norm.factor_for", "are perpendicular")
def factor_for_as_in_the_chapter(words: Tensor, rows: Tensor, share: float) -> Any:
    return solved(lambda a, b, c, s: math.sqrt(c * (1 - s) / s / a))(words, rows, share)


def root(a: float, b: float, c: float) -> float:
    return (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)


@wrong("norm.factor_for", "word 0 with row 0")
def pairs_in_order(words: Tensor, rows: Tensor, share: float) -> float:
    a, _, c = means(words, rows)
    n = min(len(words), len(rows))
    return root(a, 2 * float((words[:n] * rows[:n]).sum(1).mean()), c - c / share)


@wrong("norm.factor_for", "the sum of these squares")
def mean_per_channel(words: Tensor, rows: Tensor, share: float) -> float:
    a, c = float(words.square().mean()), float(rows.square().mean())
    return root(a, 2 * float((words @ rows.T).mean()), c - c / share)


@wrong("norm.factor_for", "You square the mean length")
def squares_of_means(words: Tensor, rows: Tensor, share: float) -> float:
    a, c = float(words.norm(dim=1).mean() ** 2), float(rows.norm(dim=1).mean() ** 2)
    return root(a, 2 * float((words @ rows.T).mean()), c - c / share)


@wrong("norm.factor_for", "can have any length")
def factor_for_rows_taken_to_be_the_papers(words: Tensor, rows: Tensor, share: float) -> Any:
    return root(*(means(words, rows)[0], 2 * means(words, rows)[1]), rows.shape[1] / 2 * (1 - 1 / share))


@wrong("norm.factor_for", "the mean of the shares")
def mean_of_shares(words: Tensor, rows: Tensor, share: float) -> float:
    low, high = 0.0, 1000.0
    for _ in range(40):
        f = (low + high) / 2
        both = (f * words[:, None] + rows[None]).square().sum(-1)
        low, high = (f, high) if float((rows.square().sum(1) / both).mean()) > share else (low, f)
    return low


@wrong("norm.factor_for", "only once")
def factor_for_once(words: Tensor, rows: Tensor, share: float) -> Any:
    return solved(lambda a, b, c, s: root(a, b, c - c / s))(words, rows, share)
