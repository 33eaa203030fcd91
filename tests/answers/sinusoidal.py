"""Answers on the sinusoidal table: right ones that are written differently, and wrong ones with words of their verdict."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.answers import right, wrong

Answer = Callable[..., Any]


@right("sinusoidal.table")
def numpy_table(positions: Tensor, d_model: int) -> np.ndarray:
    angles = np.outer(positions.numpy(), 10_000.0 ** (-np.arange(0, d_model, 2) / d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), d_model)


@right("sinusoidal.table")
def float32_table(positions: Tensor, d_model: int) -> Tensor:
    table = torch.zeros(len(positions), d_model, requires_grad=True).clone()
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
    table[:, 0::2], table[:, 1::2] = torch.sin(positions[:, None] * rate), torch.cos(positions[:, None] * rate)
    return table


@right("sinusoidal.table")
def table_right(positions: Tensor, d: Any) -> Any:
    return list(numpy_table(positions, d))


def two_loops(angle: Callable[[int, int, int], float], *, first: Answer = math.sin, second: Answer = math.cos) -> Answer:
    """A table as a beginner writes it, with angle(m, channel, d_model)."""

    def table(positions: Tensor, d_model: int) -> Tensor:
        rows = [[(second if c % 2 else first)(angle(m, c, d_model)) for c in range(d_model)] for m in positions.tolist()]
        return torch.tensor(rows)

    return table


@wrong("sinusoidal.table", "exactly 1/10000")
def table_divided_by_d_2_1(positions: Tensor, d_model: int) -> Any:
    return two_loops(lambda m, c, d: m / 10_000 ** (c // 2 / (d // 2 - 1)))(positions, d_model)


@wrong("sinusoidal.table", "the concatenated layout")
def table_in_halves(m: Tensor, d: int) -> Any:
    return sinusoidal_table(m, d, interleaved=False)


@wrong("sinusoidal.table", "swapped sine and cosine")
def table_cosine_first(m: Tensor, d: int) -> Any:
    return two_loops(lambda m, c, d: m / 10_000 ** (c // 2 * 2 / d), first=math.cos, second=math.sin)(m, d)


@wrong("sinusoidal.table", "counts columns instead of pairs")
def table_2c(m: Tensor, d: int) -> Any:
    return two_loops(lambda m, c, d: m / 10_000 ** (2 * c / d))(m, d)


@wrong("sinusoidal.table", "the factor 2 twice")
def table_4i(m: Tensor, d: int) -> Any:
    return two_loops(lambda m, c, d: m / 10_000 ** (4 * (c // 2) / d))(m, d)


@wrong("sinusoidal.table", "fall too slowly")
def table_i(m: Tensor, d: int) -> Any:
    return two_loops(lambda m, c, d: m / 10_000 ** (c // 2 / d))(m, d)


@wrong("sinusoidal.table", "the wrong sign")
def table_growing(m: Tensor, d: int) -> Any:
    return two_loops(lambda m, c, d: m * 10_000 ** (c // 2 * 2 / d))(m, d)


@right("sinusoidal.turns")
def by_complex_numbers(table: Tensor) -> np.ndarray:
    z = table.numpy()[:, 1::2] + 1j * table.numpy()[:, 0::2]
    return np.angle(z[1:] / z[:-1])


@right("sinusoidal.turns")
def turns_complex(table: Tensor) -> Tensor:
    z = torch.complex(table[:, 1::2].contiguous(), table[:, 0::2].contiguous())
    return (z[1:] * z[:-1].conj()).angle()


@right("sinusoidal.turns")
def turns_numpy(table: Tensor) -> Any:
    angles = np.arctan2(table[:, 0::2].numpy(), table[:, 1::2].numpy())
    return np.diff(np.unwrap(angles, axis=0), axis=0)


def hands(table: Tensor) -> Tensor:
    return torch.atan2(table[:, 0::2], table[:, 1::2])


@wrong("sinusoidal.turns", "wraps around from π to -π")
def turns_across_the_seam(table: Tensor) -> Any:
    return hands(table).diff(dim=0)


@wrong("sinusoidal.turns", "between 0 and 2π")
def turns_all_positive(table: Tensor) -> Any:
    return hands(table).diff(dim=0) % (2 * math.pi)


@wrong("sinusoidal.turns", "an arcsine never exceeds")
def turns_arcsine(table: Tensor) -> Tensor:
    s, c = table[:, 0::2], table[:, 1::2]
    return (s[1:] * c[:-1] - c[1:] * s[:-1]).clamp(-1, 1).asin()


@wrong("sinusoidal.turns", "every angle from the first row")
def turns_from_row_zero(table: Tensor) -> Tensor:
    z = torch.complex(table[:, 1::2].contiguous(), table[:, 0::2].contiguous())
    return (z[1:] * z[:1].conj()).angle()


@wrong("sinusoidal.turns", "column i + d/2")
def turns_halves(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    change = torch.atan2(table[:, :half], table[:, half:]).diff(dim=0)
    return (change + math.pi) % (2 * math.pi) - math.pi


@wrong("sinusoidal.turns", "in one of the two directions")
def turns_one_end(table: Tensor) -> Any:
    change = hands(table).diff(dim=0)
    return torch.where(change > math.pi, change - 2 * math.pi, change)


@wrong("sinusoidal.turns", "the arctangent of a quotient")
def turns_quotient(table: Tensor) -> Any:
    return (table[:, 0::2] / table[:, 1::2]).atan().diff(dim=0)


@wrong("sinusoidal.turns", "the angle of each pair in a row")
def turns_not_compared(table: Tensor) -> Any:
    return hands(table[1:])


@right("sinusoidal.culprit")
def by_search(table: Tensor) -> str:
    length, d = table.shape
    paper = sinusoidal_table(range(6000 + length), d).unfold(0, length, 1).transpose(1, 2)  # (6001, L, d)
    off = ((paper - table).abs() > 1e-4).unflatten(2, (-1, 2)).any(dim=3)  # (6001, L, d/2)
    best = off[off.sum(dim=(1, 2)).argmin()]
    if not best.any():
        return "none"
    rows, pairs = best.any(dim=1), best.any(dim=0)
    return f"row {int(rows.int().argmax())}" if rows.sum() == 1 else f"pair {int(pairs.int().argmax())}"


def wrong_turns(table: Tensor, tolerance: float = 1e-5) -> Tensor:
    off = turns_complex(table) - frequencies(table.shape[1])
    return (off - 2 * math.pi * (off / (2 * math.pi)).round()).abs() > tolerance


@right("sinusoidal.culprit")
def culprit_counts(table: Tensor) -> str:
    rows, pairs = wrong_turns(table).all(dim=1), wrong_turns(table).all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    if not rows.any():
        return "none"
    if rows.sum() == 1:
        return "row 0" if rows[0] else f"row {len(rows)}"
    return f"row {int(rows.int().argmax()) + 1}"


def steps(table: Tensor, tolerance: float = 1e-6) -> np.ndarray:
    return np.abs(by_complex_numbers(table) - frequencies(table.shape[1]).numpy()) > tolerance


@right("sinusoidal.culprit")
def culprit_first_step(table: Tensor) -> str:
    wrong = wrong_turns(table)
    if wrong[0].sum() == 1:
        return f"pair {int(wrong[0].int().argmax())}"
    steps = wrong[:, 0].nonzero().flatten().tolist()
    return "none" if not steps else "row 0" if steps == [0] else f"row {steps[0] + 1}"


@wrong("sinusoidal.culprit", "You miss only a wrong row 0")
def culprit_no_edges(table: Tensor) -> str:
    said = culprit_counts(table)
    return "row 1" if said == "row 0" else said


@wrong("sinusoidal.culprit", "where the first wrong step begins")
def culprit_row_short(table: Tensor) -> str:
    said = culprit_counts(table)
    kind, _, number = said.partition(" ")
    return f"row {max(int(number) - 1, 0)}" if kind == "row" else said


@wrong("sinusoidal.culprit", "only a wrong last row")
def culprit_last_forgotten(table: Tensor) -> str:
    said = culprit_counts(table)
    return "none" if said == f"row {len(table) - 1}" else said


@wrong("sinusoidal.culprit", "with a smaller tolerance")
def culprit_coarse(table: Tensor) -> str:
    return culprit_counts(table) if wrong_turns(table, 0.002).any() else "none"


@wrong("sinusoidal.culprit", "You count from 1")
def culprit_from_one(table: Tensor) -> str:
    kind, _, number = culprit_counts(table).partition(" ")
    return f"{kind} {int(number) + 1}" if number else kind


@wrong("sinusoidal.culprit", "begins at position 0")
def culprit_at_zero(table: Tensor) -> str:
    off = (table - sinusoidal_table(range(len(table)), table.shape[1])).abs() > 1e-6
    if not off.any():
        return "none"
    rows = off.all(dim=1).nonzero().flatten().tolist()
    return f"row {rows[0]}" if len(rows) == 1 else f"pair {int(off.any(dim=0).int().argmax()) // 2}"


@wrong("sinusoidal.culprit", "You count columns")
def culprit_columns(table: Tensor) -> str:
    kind, _, number = culprit_counts(table).partition(" ")
    return f"pair {2 * int(number)}" if kind == "pair" else culprit_counts(table)
