"""Exercises on the sinusoidal table: writing it without a loop, and finding out what is wrong with one."""

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.sinusoidal import frequencies, sinusoidal_table


@exercise("my_table", instead_of=[sinusoidal_table])
def table() -> Exercise:
    """my_table(positions, d_model) -> (L, d_model), interleaved, base 10,000."""

    def pairs(d_model: int) -> Tensor:
        return torch.arange(d_model) // 2

    def waves(rate: Callable[[int], Tensor]) -> Callable[[Tensor, int], Tensor]:
        """Sines in the even columns and cosines in the odd ones, with one frequency per column in radians per token."""

        def table(positions: Tensor, d_model: int) -> Tensor:
            angles = torch.outer(positions.double(), rate(d_model))
            return torch.where(torch.arange(d_model) % 2 == 0, angles.sin(), angles.cos())

        return table

    def of_base(base: float) -> Callable[[int], Tensor]:
        return lambda d: frequencies(d, base)[pairs(d)]

    def by_column(factor: int) -> Callable[[Tensor, int], Tensor]:
        return waves(lambda d: 10_000.0 ** (-factor * torch.arange(d).double() / d))

    omega = of_base(10_000)
    columns = "Your exponent counts columns instead of pairs. Both columns of a pair should have the same angle."
    return Exercise(
        cases={
            "positions 0 to 11": (torch.arange(12), 8),
            "positions other than 0, 1, 2, …": (torch.tensor([3, 300, 0]), 8),
            "a single position": (torch.tensor([5]), 12),
            "a wide table": (torch.arange(4), 40),
        },
        right=sinusoidal_table,
        mistakes={
            "concatenated": (lambda positions, d: sinusoidal_table(positions, d, interleaved=False),
                "Your table has all sines first, then all cosines: the concatenated layout. Here, they should alternate."),
            "cosine first": (lambda positions, d: sinusoidal_table(positions, d).unflatten(-1, (-1, 2)).flip(-1).flatten(-2),
                "You have swapped sine and cosine. In each pair, the sine comes first."),
            "c/d": (by_column(1), columns),
            "2c/d": (by_column(2), columns),
            "4i/d": (waves(lambda d: omega(d) ** 2),
                "Your exponent contains the factor 2 twice. The even column of pair i already has the number 2i."),
            "i/d": (waves(lambda d: omega(d) ** 0.5),
                "Your frequencies fall too slowly. Is the base 10,000, and is the exponent of pair i really 2i/d?"),
            "d/2 - 1": (waves(lambda d: 10_000.0 ** (-pairs(d).double() / (d // 2 - 1))),
                "Your slowest frequency is exactly 1/10000, as in tensor2tensor. In the paper, i is divided by d/2."),
            "growing": (waves(lambda d: 1 / omega(d)),
                "Your exponent has the wrong sign: your frequencies grow from pair to pair, but they should fall."),
        },
        praise="every number agrees with the package's table, and every row has length √(d/2).",
    )  # fmt: skip


def _rows(positions: Tensor, speeds: Tensor) -> Tensor:
    """(L, 2 · pairs), interleaved, with any frequencies in radians per token."""
    return _of_angles(torch.outer(positions.double(), speeds))


def _of_angles(angles: Tensor) -> Tensor:
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def _wrapped(angles: Tensor) -> Tensor:
    return torch.atan2(angles.sin(), angles.cos())


def _turns(table: Tensor) -> Tensor:
    return _wrapped(torch.atan2(table[:, 0::2], table[:, 1::2]).diff(dim=0))


@exercise()
def turns(seed: int) -> Exercise:
    """turns(table) -> (L - 1, d/2), the angle by which each pair rotates from row to row, on tables with any frequencies."""
    generator = torch.Generator().manual_seed(seed)

    def sample(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(*shape or (1,), dtype=torch.float64, generator=generator)

    # At most 3, because half a rotation could have either sign. In twelve rows, the angle of each fast pair wraps around.
    speeds = torch.cat((sample(-3, -2), sample(2, 3), sample(0.7, 1.4), sample(0.01, 0.02)))
    # The first two steps go backwards and forwards again, whatever else is sampled.
    uneven = torch.cat((torch.tensor([[-2.5, 0.4, 2.8], [2.6, -2.9, -0.2]], dtype=torch.float64), sample(-3, 3, 9, 3)))
    start = int(torch.randint(10, 5000, (1,), generator=generator))

    def angles(table: Tensor) -> Tensor:
        return torch.atan2(table[:, 0::2], table[:, 1::2])

    def halves(table: Tensor) -> Tensor:
        sin, cos = table.chunk(2, dim=1)
        return _wrapped(torch.atan2(sin, cos).diff(dim=0))

    def one_side(table: Tensor, side: int) -> Tensor:
        """Differences that are wrapped back to between -π and π on one side only."""
        change = angles(table).diff(dim=0)
        return torch.where(side * change > math.pi, change - side * 2 * math.pi, change)

    return Exercise(
        cases={
            "pairs that rotate forwards, backwards and slowly": (_rows(start + torch.arange(12), speeds),),
            "a table that begins at position 0": (_rows(torch.arange(9), speeds.flip(0)[:3]),),
            "some rows of the paper's table": (_rows(start + torch.arange(20), frequencies(16)),),
            "pairs that change their speed from row to row": (_of_angles(uneven.cumsum(dim=0)),),
            "a single pair": (_rows(start + torch.arange(8), speeds[:1]),),
            "two rows": (_rows(start + torch.arange(2), speeds),),
        },
        right=_turns,
        mistakes={
            "over the seam": (lambda t: angles(t).diff(dim=0),
                "In your result, a pair seems to jump back when its angle wraps around from π to -π. Bring each difference "
                "back into the range from -π to π."),
            **{f"over the seam, {side}": (lambda t, side=side: one_side(t, side),
                "In your result, a pair that rotates in one of the two directions seems to jump when its angle wraps around. "
                "Correct differences above π and below -π.") for side in (1, -1)},
            "0 to 2π": (lambda t: _turns(t) % (2 * math.pi),
                "Your angles lie between 0 and 2π, so a small step backwards looks like a large one forwards."),
            "where they are": (lambda t: angles(t)[1:],
                "You return the angle of each pair in a row, but you should return how far the pair rotates from row to row."),
            "from the first row": (lambda t: _wrapped(angles(t)[1:] - angles(t)[0]),
                "You measure every angle from the first row. Measure how far each pair rotates from one row to the next."),
            "concatenated": (halves, "You pair column i with column i + d/2, but this table is interleaved."),
            "a sine": (lambda t: _turns(t).sin().asin(),
                "Your angles come out too small beyond a quarter turn, because an arcsine never exceeds it."),
            "a quotient": (lambda t: _wrapped((t[:, 0::2] / t[:, 1::2]).atan().diff(dim=0)),
                "You take the arctangent of a quotient, which is the same for opposite directions on the circle. torch.atan2 "
                "can tell them apart, because it gets both numbers."),
        },
        praise="your angles are right in all six tables, for pairs that rotate forwards, backwards or past π.",
    )  # fmt: skip


@exercise()
def culprit(seed: int) -> Exercise:
    """culprit(table) -> "none", "pair i" or "row r" on tables with at most one fault."""
    chance = random.Random(seed)
    cases: dict[str, tuple[Tensor]] = {}
    truth: dict[bytes, str] = {}

    far, middle = chance.randint(5, 40), chance.randint(3, 6)
    # The answer, the table's shape, the position at which it begins (None for any), and pairs with another speed, or a row that
    # belongs to another position.
    faults: dict[str, tuple[str, int, int, int | None, dict[int, float], dict[int, int]]] = {
        "a right table that begins at position 0": ("none", 10, 8, 0, {}, {}),
        "a right table": ("none", 12, 6, None, {}, {}),
        "a first pair that doesn't move": ("pair 0", 10, 8, None, {0: 0.0}, {}),
        # off by a thousandth of a radian per token
        "a slow pair that doesn't move": ("pair 3", 10, 8, None, {3: 0.0}, {}),
        "a pair that rotates backwards": ("pair 2", 10, 8, None, {2: -0.01}, {}),
        "a last pair that is too fast by 0.00055": ("pair 7", 5, 16, None, {7: float(frequencies(16)[7]) + 0.00055}, {}),
        "a pair that is too fast, in a table that begins at position 0": ("pair 1", 10, 4, 0, {1: 0.45}, {}),
        "a row that repeats the one before": (f"row {middle}", 10, 8, None, {}, {middle: -1}),
        "a wrong first row": ("row 0", 11, 6, None, {}, {0: far}),
        "a wrong last row": ("row 9", 10, 4, None, {}, {9: -far}),
        "a wrong second row in a table that begins at position 0": ("row 1", 10, 8, 0, {}, {1: far + 45}),
        "a wrong second-to-last row of five": ("row 3", 5, 4, None, {}, {3: far}),
    }
    for name, (word, length, d_model, start, speeds, moved) in faults.items():
        omega, positions = frequencies(d_model), torch.arange(length)
        positions += chance.randint(100, 5000) if start is None else start
        for pair, speed in speeds.items():
            omega[pair] = speed
        for row, by in moved.items():
            positions[row] += by
        table = _rows(positions, omega)
        truth[table.numpy().tobytes()] = word
        cases[name] = (table,)

    def right(table: Tensor) -> str:
        return truth[table.numpy().tobytes()]

    def renamed(change: Callable[[int], int], *kinds: str) -> Callable[[Tensor], str]:
        def rename(table: Tensor) -> str:
            word, _, number = right(table).partition(" ")
            return f"{word} {change(int(number))}" if word in kinds else right(table)

        return rename

    def step_as_row(plus: int) -> Callable[[Tensor], str]:
        """The right answer, but for a wrong row, the first step that is wrong, plus so much."""

        def first_step(table: Tensor) -> str:
            off = (_turns(table) - frequencies(table.shape[1])).abs() > 1e-6
            return f"row {int(off.all(dim=1).int().argmax()) + plus}" if right(table).startswith("row") else right(table)

        return first_step

    def if_it_began_at_0(table: Tensor) -> str:
        off = (table - _rows(torch.arange(len(table)), frequencies(table.shape[1]))).abs() > 1e-6
        rows, pairs = off.any(dim=1), off.unflatten(1, (-1, 2)).any(dim=2).any(dim=0)
        if not off.any():
            return "none"
        return f"row {int(rows.int().argmax())}" if rows.sum() == 1 else f"pair {int(pairs.int().argmax())}"

    def but(*words: str, said: str = "none") -> Callable[[Tensor], str]:
        """The right answer, except for faults whose names begin with these words."""
        return lambda table: said if right(table).startswith(words) else right(table)

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the first wrong step": (step_as_row(0),
                "You find every wrong pair, but not every wrong row. You name the row where the first wrong step begins, but "
                "the wrong row can also be the one where that step ends."),
            "after the first wrong step": (step_as_row(1),
                "You miss only a wrong row 0. No step leads to this row, so a fault in it makes only one step wrong."),
            "no last row": (but("row 9"),
                "You miss only a wrong last row. No step leads away from it, so a fault in it makes only one step wrong."),
            "both from 1": (renamed(lambda i: i + 1, "row", "pair"),
                "You count from 1, but the first row is row 0 and the first pair is pair 0."),
            "columns": (renamed(lambda i: 2 * i, "pair"), "You count columns. Pair i consists of columns 2i and 2i + 1."),
            "too coarse": (but("pair 3", "pair 7"),
                "You miss wrong pairs that are slow. Their angles are small, so compare them with a smaller tolerance."),
            "from position 0": (if_it_began_at_0,
                "You compare each table with one that begins at position 0, but most begin at a different position."),
        },
        praise="you are right about all twelve tables. Ten of them have a fault, which can even be in the first row, the last "
               "row or the slowest pair, and two have none.",
    )  # fmt: skip
