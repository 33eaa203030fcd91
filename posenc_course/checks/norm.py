"""Exercises on the length of a row: how much of a vector is position."""

import math
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.sinusoidal import sinusoidal_table


@exercise()
def factor() -> Exercise:
    """factor(d_model, std, share) -> the factor for the word vectors that gives the position this share."""

    def right(_d: int, std: float, share: float) -> float:
        # share = (d/2) / (d/2 + f²·d·std²), solved for f
        return math.sqrt((1 / share - 1) / 2) / std

    cases = {
        "a share of one half": (64, 1.0, 0.5),
        "words of length 1": (512, 512**-0.5, 1 / 3),
        "a share of one third": (512, 1.0, 1 / 3),
        "short words": (128, 0.02, 0.1),
        "a share of nearly 1": (32, 2.0, 0.9),
        "a share of nearly 0": (1000, 0.1, 0.01),
    }
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the paper's factor": (lambda d, std, share: math.sqrt(d),
                "You return √d_model, which is the paper's factor. It gives the position a share of one third, but only if the "
                "words have a standard deviation of 1/√d_model."),
            "no root": (lambda d, std, share: (1 / share - 1) / 2 / std,
                "You forgot a square root. The share is a share of squared lengths, and a factor f multiplies them by f²."),
            "lengths": (lambda d, std, share: (1 / share - 1) / math.sqrt(2) / std,
                "You add lengths. But at right angles, squared lengths add up, and the share is one of squared lengths."),
            "the word alone": (lambda d, std, share: math.sqrt(1 / share / 2) / std,
                "You divide by the squared length of the word alone. But the share is a share of that of the sum."),
            "a position √d long": (lambda d, std, share: math.sqrt(1 / share - 1) / std,
                "You assume that the position has length √d. But what is the mean of the squares of sines and cosines?"),
        },
        praise=f"all {len(cases)} factors give the right share, and none of them depends on the width.",
        tolerance=1e-3,
    )  # fmt: skip


_Maker = Callable[[Tensor, int], Tensor]
_WIDTHS = range(2, 17, 2)


@cache
def _rows(d_model: int) -> Tensor:
    return sinusoidal_table(range(300), d_model)


def _scaled(factors: Callable[[Tensor, int], Any]) -> _Maker:
    """The right table, multiplied by factors that depend on the row and the width: (L,) or one number."""
    return lambda positions, d: _rows(d)[positions] * torch.as_tensor(factors(positions, d), dtype=torch.float64).reshape(-1, 1)


def _longer(amount: float, rows: Callable[[Tensor], Tensor], widths: Iterable[int] = _WIDTHS) -> _Maker:
    """The right table, except that some rows are longer by an amount at some widths."""
    return _scaled(lambda positions, d: 1 + rows(positions) * amount * (d in widths) / math.sqrt(d / 2))


def _by_angles(angles: Callable[[Tensor, int], Tensor]) -> _Maker:
    """Sines in the even columns and cosines in the odd ones, with an angle for every column, (L, d)."""

    def make(positions: Tensor, d_model: int) -> Tensor:
        table = angles(positions.double(), d_model)
        return torch.where(torch.arange(d_model) % 2 == 0, table.sin(), table.cos())

    return make


def _narrowed(width: int) -> _Maker:
    """The right table, with zeros in the last two columns at this width."""
    return lambda positions, d: _rows(d)[positions] * (torch.arange(d) < d - 2 * (d == width))


def _tables(seed: int) -> tuple[dict[str, _Maker], dict[str, _Maker]]:
    """Functions that make tables whose rows all have length √(d/2), and functions that make other tables."""
    speed, phase = torch.rand(2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

    def phases(positions: Tensor, d_model: int) -> Tensor:
        pair = torch.arange(d_model) // 2
        return positions[:, None] * (0.1 + 3 * speed[pair]) + 6 * phase[pair]

    right: dict[str, _Maker] = {
        "the paper's table": sinusoidal_table,
        "all sines, then all cosines": lambda positions, d: sinusoidal_table(positions, d, interleaved=False),
        "the cosines first": lambda positions, d: sinusoidal_table(positions, d).flip(1),
        "a table of base 100": lambda positions, d: sinusoidal_table(positions, d, 100),
        "a table with other frequencies and phases": _by_angles(phases),
        "a table in 32 bits": lambda positions, d: sinusoidal_table(positions, d, dtype=torch.float32),
        "rows up to 0.00009 too long": _longer(0.00009, lambda positions: positions % 3 == 0),
        "rows up to 0.00009 too short": _longer(-0.00009, lambda positions: positions % 3 == 1),
    }
    wrong: dict[str, _Maker] = {
        "sines and cosines of different angles": _by_angles(lambda m, d: m[:, None] * 10_000.0 ** (-torch.arange(d) / d)),
        "rows of length 1": _scaled(lambda positions, d: (d / 2) ** -0.5),
        "rows of twice the length": _scaled(lambda positions, d: 2.0),
        "rows that are alternately too long and too short": _scaled(
            lambda positions, d: torch.where(positions % 2 == 0, 1.2, 0.8)
        ),
        "squared lengths that are alternately too large and too small": _scaled(
            lambda positions, d: torch.where(positions % 2 == 0, 1.4, 0.6).sqrt()
        ),
        "zeros from row 256 on": _scaled(lambda positions, d: positions < 256),
        "zeros in row 0": _scaled(lambda positions, d: positions > 0),
        "zeros in row 299": _scaled(lambda positions, d: positions < 299),
        "row 149 too long by 0.011": _longer(0.011, lambda positions: positions == 149),
        "row 149 too short by 0.011": _longer(-0.011, lambda positions: positions == 149),
        "row 271 too long by 0.011 at width 10 only": _longer(0.011, lambda positions: positions == 271, [10]),
        "row 271 too short by 0.011 at width 16 only": _longer(-0.011, lambda positions: positions == 271, [16]),
        "NaN at width 2": _scaled(lambda positions, d: math.nan if d == 2 else 1),
        "NaN in row 271": _scaled(lambda positions, d: torch.where(positions == 271, math.nan, 1.0)),
    }
    wrong |= {f"zeros in the last two columns at width {width}": _narrowed(width) for width in _WIDTHS[1:]}
    return right, wrong


@exercise()
def has_right_lengths(seed: int) -> Exercise:
    """has_right_lengths(make_table) -> whether all rows have length √(d/2), at positions 0 to 299 and even widths 2 to 16."""
    right, wrong = _tables(seed)
    some_rows = "Your test doesn't look at all rows. The positions go from 0 to 299, including both ends."
    some_widths = "Your test doesn't try all widths. They are the even numbers from 2 to 16, including both ends."
    too_loose = (
        "Your test is too tolerant. A wrong table may have a single wrong row, whose length is off by little more than 0.01."
    )
    mean = "Your test looks at the mean length, but rows that are too long and rows that are too short can cancel out."
    too_strict = "Your test is too strict. In a right table, for example one in 32 bits, lengths may be off by up to 0.0001."

    @cache
    def lengths(make: _Maker, d: int) -> Tensor:
        return make(torch.arange(300), d).double().norm(dim=1)

    def near(lengths: Tensor, wanted: float, tolerance: float = 1e-3) -> bool:
        return bool(((lengths - wanted).abs() < tolerance).all())

    def holds(
        near: Callable[[Tensor, float], bool] = near, positions: Iterable[int] = range(300), widths: Iterable[int] = _WIDTHS
    ) -> Callable[[_Maker], bool]:
        """A test that may look at only some rows and widths, or compare in a different way."""
        at = torch.tensor([*positions])
        return lambda make: all(near(lengths(make, d)[at], math.sqrt(d / 2)) for d in widths)

    def within(tolerance: float) -> Callable[[_Maker], bool]:
        return holds(lambda lengths, wanted: near(lengths, wanted, tolerance))

    return Exercise(
        cases={name: (make,) for name, make in (right | wrong).items()},
        right=lambda make: make in right.values(),
        mistakes={
            "length 1": (holds(lambda lengths, wanted: near(lengths, 1)),
                "Your test expects rows of length 1. How long is a row of d/2 pairs?"),
            **{f"within {tolerance}": (within(tolerance), too_strict) for tolerance in (1e-5, 1e-10)},
            **{f"within {tolerance}": (within(tolerance), too_loose) for tolerance in (0.1, 0.5, 0.9)},
            "the paper's numbers": (
                lambda make: all(torch.allclose(make(torch.arange(300), d).double(), _rows(d), atol=1e-3)
                                 for d in _WIDTHS),
                "Your test rejects rows of the right length. The theorem doesn't say which angle a pair has."),
            **{f"{len(rows)} rows from {rows[0]}": (holds(positions=rows), some_rows)
               for rows in (range(1), range(10), range(100), range(256), range(299), range(1, 300), range(0, 300, 10))},
            **{f"{len(widths)} widths from {widths[0]}": (holds(widths=widths), some_widths)
               for widths in ((2,), (4,), (8,), (16,), (4, 8, 16), (2, 4, 8, 16), range(2, 15, 2), range(4, 17, 2))},
            "the mean length": (holds(lambda lengths, wanted: near(lengths.mean(), wanted)), mean),
            "the mean square": (holds(lambda lengths, wanted: near(lengths.square().mean(), wanted**2)), mean),
            "none is far": (holds(lambda lengths, wanted: not bool(((lengths - wanted).abs() > 1e-3).any())),
                "Your test is fooled by NaN: every comparison with NaN is false, so it finds no length that is too far off."),
        },
        praise=f"your test accepts all {len(right)} right tables and none of the {len(wrong)} wrong ones.",
    )  # fmt: skip


@exercise()
def factor_for(seed: int) -> Exercise:
    """factor_for(words, rows, share) -> f > 0, for words whose mean points along the rows, against them, or across them."""
    generator = torch.Generator().manual_seed(seed)

    def case(rows: Tensor, std: float, lean: float, share: float) -> tuple[Tensor, Tensor, float]:
        words = torch.randn(30, rows.shape[1], generator=generator, dtype=torch.float64) * std
        return words - words.mean(dim=0) + lean * rows.mean(dim=0), rows, share

    def right(words: Tensor, rows: Tensor, share: float) -> float:
        return _root(*_means(words, rows), share)

    def by_means(change: Callable[[float, float, float, float], float]) -> Callable[[Tensor, Tensor, float], float]:
        return lambda words, rows, share: change(*_means(words, rows), share)

    def with_dots(words: Tensor, rows: Tensor, dots: Tensor, share: float) -> float:
        a, _, c = _means(words, rows)
        return _root(a, float(dots.sum(dim=1).mean()), c, share)

    def paired(words: Tensor, rows: Tensor, share: float) -> float:
        few = min(len(words), len(rows))
        return with_dots(words, rows, words[:few] * rows[:few], share)

    def mean_of_shares(words: Tensor, rows: Tensor, share: float) -> float:
        low, high = 0.0, 1000.0
        lengths, both = rows.square().sum(dim=1), (words.square().sum(dim=1)[:, None], 2 * words @ rows.T)
        for _ in range(60):
            f = (low + high) / 2
            found = float((lengths / (f * f * both[0] + f * both[1] + lengths)).mean())
            low, high = (f, high) if found > share else (low, f)
        return high

    wave = sinusoidal_table(range(20), 16)
    # No theorem holds for the lengths of a learned table.
    learned = 0.3 + 0.5 * torch.randn(20, 32, generator=generator, dtype=torch.float64)
    no_angle = (
        "You assume that words and rows are perpendicular. But these words have a mean that isn't zero, and so do the rows."
    )
    return Exercise(
        cases={
            "words that lean towards the rows": case(wave, 1.0, 0.8, 0.3),
            "a learned table": case(learned, 0.2, 0.5, 0.5),
            "words that lean away from the rows": case(wave, 1.0, -0.6, 0.4),
            "short words that lean away from the rows": case(sinusoidal_table(range(20), 64), 0.1, -0.3, 0.8),
            "a single row": case(sinusoidal_table([7], 8), 0.5, 0.4, 0.6),
            "a share of nearly 1": case(wave, 0.5, 0.3, 0.97),
            "a share of nearly 0": case(learned, 0.7, -0.4, 0.02),
        },
        right=right,
        mistakes={
            "perpendicular": (by_means(lambda a, b, c, s: _root(a, 0, c, s)), no_angle),
            "dot products once": (by_means(lambda a, b, c, s: _root(a, b / 2, c, s)),
                "Your formula contains the dot product of f·x and p only once. But multiply out the square."),
            "rows √(d/2) long": (lambda words, rows, share: _root(*_means(words, rows)[:2], rows.shape[1] / 2, share),
                "You assume that the rows have length √(d/2). In other tables, they can have any length."),
            "means of squares": (
                lambda words, rows, share: _root(
                    float(words.square().mean()), float((words @ rows.T).mean()), float(rows.square().mean()), share),
                "You take the mean of the squares of a vector's numbers. But a squared length is the sum of these squares."),
            "squares of mean lengths": (
                lambda words, rows, share: _root(
                    float(words.norm(dim=1).mean()) ** 2, float((words @ rows.T).mean()), float(rows.norm(dim=1).mean()) ** 2,
                    share),
                "You square the mean length. But you need the mean of the squared lengths, which is larger."),
            "pairs in order": (paired,
                "You pair word 0 with row 0, word 1 with row 1, and so on. Take the mean over all pairs of a word and a row."),
            "mean of shares": (mean_of_shares,
                "You take the mean of the shares of all pairs. But this share is one mean divided by another."),
            "the chapter's formula": (lambda words, rows, share: math.sqrt((1 / share - 1) / 2) / float(words.std()),
                no_angle),
        },
        praise="all seven factors give the right share, whether the words lean towards the rows or away from them.",
        tolerance=1e-3,
    )  # fmt: skip


def _means(words: Tensor, rows: Tensor) -> tuple[float, float, float]:
    """Over all pairs of a word x and a row p, the means of ‖x‖², of x·p and of ‖p‖²."""
    return float(words.square().sum(dim=1).mean()), float((words @ rows.T).mean()), float(rows.square().sum(dim=1).mean())


def _root(a: float, b: float, c: float, share: float) -> float:
    """The positive f with a·f² + 2b·f + c = c/share."""
    return (math.sqrt(b * b + a * c * (1 / share - 1)) - b) / a
