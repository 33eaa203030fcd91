"""Exercises of chapter 03: the table without a loop, and the assignment on finding out what is wrong with one."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import answer, as_table, check, compare
from posenc_course.sinusoidal import frequencies, sinusoidal_table


@check(instead_of=[sinusoidal_table], draws=False)
def table(my_table: Callable[[Tensor, int], Any]) -> str:
    """Try my_table(positions, d_model) -> (L, d_model), interleaved, base 10,000, on positions 0 … 11 and d_model = 8.

    Chapter 03.
    """
    length, d_model = 12, 8
    positions = torch.arange(length)
    call = f"my_table(torch.arange({length}), {d_model})"
    yours = as_table(answer(my_table, positions.clone(), d_model, call=call), (length, d_model), call=call)
    right, norm = sinusoidal_table(positions, d_model), math.sqrt(d_model / 2)
    if _same(yours, right):
        return f"Right: every number agrees with the package's table, and every row has length {norm:g}."
    for known, hint in _mistakes(positions, d_model):
        if _same(yours, known):
            return hint
    for row, length_of_row in enumerate(yours.norm(dim=-1).tolist()):
        if not abs(length_of_row - norm) < 1e-3:  # not >=, for NaN
            return (
                f"Row {row} has length {length_of_row:.4f} where {d_model // 2} pairs of sine and cosine give {norm:g}: "
                "do both of a pair take the same angle?"
            )
    row = int(((yours - right).abs() > 1e-4).any(dim=-1).nonzero()[0])
    return f"Every row has the right length, but row {row} is wrong: the pairs are sines and cosines of other angles."


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0, atol=1e-4)  # a correct table in float32 passes


def _mistakes(positions: Tensor, d_model: int) -> list[tuple[Tensor, str]]:
    right = sinusoidal_table(positions, d_model)
    channel = torch.arange(d_model)
    pair = channel // 2
    omega = frequencies(d_model)[pair]  # (d_model,): both columns of a pair

    def waves(rates: Tensor) -> Tensor:
        """Sines in the even columns and cosines in the odd ones, of one rate per column in radians per token."""
        angles = torch.outer(positions.double(), rates)
        return torch.where(channel % 2 == 0, angles.sin(), angles.cos())

    return [
        (sinusoidal_table(positions, d_model, interleaved=False),
         "All sines, then all cosines: the concatenated layout. Here sine and cosine alternate."),
        (right.unflatten(-1, (-1, 2)).flip(-1).flatten(-2), "Sine and cosine have changed places: a sine comes first."),
        (sinusoidal_table(positions + 1, d_model), "Your first row belongs to position 1: take the positions as given."),
        (waves(10_000.0 ** (-2 * channel.double() / d_model)),
         "Your exponent counts dimensions, not pairs: both columns of pair i take 2i/d, so columns 2 and 3 share one angle."),
        (waves(10_000.0 ** (-channel.double() / d_model)),
         "Sine and cosine of a pair take different angles: both columns of pair i take the exponent 2i/d."),
        (waves(omega * math.pi * pair),
         "Each frequency carries a stray factor of i·π, so pair 0 never moves: the angle is ω_i·m and nothing else."),
        (waves(omega**2),
         "Your exponent has its 2 twice: the even column of a pair already is 2i, and the exponent is 2i/d."),
        (waves(10_000.0 ** (-pair.double() / (d_model // 2 - 1))),
         "Your slowest frequency is exactly 1/10000: that is tensor2tensor's table, the paper's exponent is divided by d/2."),
        (waves(1 / omega), "The exponent has the wrong sign: your frequencies grow, they should fall."),
        (waves(omega * math.pi / 180), "The angles are degrees: sine and cosine take radians."),
    ]  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check()
def to_interleaved(my_layout: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_layout(table) -> the concatenated table (L, d) with its columns interleaved, for even and odd d. Chapter 03."""
    generator = torch.Generator().manual_seed(seed)
    # Widths up to 4 would hide the mistake of going the other way, and the last of these is odd after all even ones.
    shapes = ((4, 8), (5, 6), (3, 10), (6, 7), (5, 9))
    cases = [(torch.randn(*shape, dtype=torch.float64, generator=generator),) for shape in shapes]

    def by(column: Callable[[int, int], int]) -> Callable[[Tensor], Tensor]:
        """Column j of the result is column(j, d) of the table."""
        return lambda table: table[:, [column(j, table.shape[1]) for j in range(table.shape[1])]]

    def right(j: int, d: int) -> int:
        return j // 2 + j % 2 * ((d + 1) // 2)

    def opposite(j: int, d: int) -> int:
        return 2 * j if 2 * j < d else 2 * j - d + 1 - d % 2

    mistakes = [
        (by(opposite), "That is the way back: it makes a concatenated table of an interleaved one."),
        (by(lambda j, d: j), "The columns stand where they stood: does your function reorder them at all?"),
        (by(lambda j, d: j // 2 + j % 2 * (d // 2)),
         "Even widths are right. With an odd width there is one sine more than there are cosines: where do the cosines begin?"),
        (by(lambda j, d: right(j, d) if d % 2 else right(j ^ 1, d)),
         "Sine and cosine have changed places: in each pair the sine comes first."),
        (by(lambda j, d: j // 2 if j % 2 == 0 else d - 1 - j // 2),
         "The cosines come in reverse: the first of them belongs to pair 0."),
        (lambda table: table[[right(r, len(table)) for r in range(len(table))]],
         "You reorder the rows: a layout is an order of the columns."),
    ]  # fmt: skip
    return compare(
        my_layout, cases, by(right), mistakes, name="to_interleaved", praise="all five tables, two of them of odd width."
    )


def _rows(positions: Tensor, speeds: Tensor) -> Tensor:
    """(L, 2 · pairs), interleaved, of any speeds in radians per token."""
    angles = torch.outer(positions.double(), speeds)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def _wrapped(angles: Tensor) -> Tensor:
    return torch.atan2(angles.sin(), angles.cos())


def _turns(table: Tensor) -> Tensor:
    return _wrapped(torch.atan2(table[:, 0::2], table[:, 1::2]).diff(dim=0))


@check()
def turns(my_turns: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_turns(table) -> (L - 1, d/2), the angle by which each pair turns from row to row, on tables of drawn speeds.

    Chapter 03.
    """
    generator = torch.Generator().manual_seed(seed)

    def drawn(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(1, dtype=torch.float64, generator=generator)

    # One pair that turns backwards, one by more than a right angle, a slow one; 3 keeps clear of the half turn, whose sign is
    # free. Twelve rows carry each of the fast ones over the seam.
    speeds = torch.cat((drawn(-3, -2), drawn(2, 3), drawn(0.7, 1.4), drawn(0.01, 0.02)))
    start = int(torch.randint(10, 5000, (1,), generator=generator))
    cases = [
        (_rows(start + torch.arange(12), speeds),),
        (_rows(torch.arange(9), speeds.flip(0)[:3]),),
        (_rows(start + torch.arange(20), frequencies(16)),),
    ]

    def cosines_apart(table: Tensor) -> Tensor:
        return (table[1:].unflatten(1, (-1, 2)) * table[:-1].unflatten(1, (-1, 2))).sum(dim=-1).clamp(-1, 1)

    def angles(table: Tensor) -> Tensor:
        return torch.atan2(table[:, 0::2], table[:, 1::2])

    def halves(table: Tensor) -> Tensor:
        sin, cos = table.chunk(2, dim=1)
        return _wrapped(torch.atan2(sin, cos).diff(dim=0))

    mistakes = [
        (lambda t: -_turns(t),
         "Each turn has the other sign: a pair of the paper's table turns by plus ω_i. Which is the sine?"),
        (lambda t: angles(t).diff(dim=0),
         "A pair that crosses the seam between π and -π seems to jump back: bring each difference back between them."),
        (lambda t: torch.atan2(t[:, 1::2], t[:, 0::2]).diff(dim=0),
         "Two things: the signs are the other ones, and a pair that crosses the seam between π and -π seems to jump."),
        (lambda t: cosines_apart(t).acos(),
         "The sizes are right and the direction is lost: some pairs turn backwards, and cosines alone do not say so."),
        (lambda t: _turns(t).abs(), "The sizes are right and the direction is lost: some pairs turn backwards."),
        (lambda t: _turns(t) % (2 * math.pi), "Between 0 and 2π every backward turn looks like a long forward one: -π to π."),
        (lambda t: angles(t)[1:], "You say where the hands stand, not how far they turn: row 0 need not stand at angle 0."),
        (lambda t: _wrapped(angles(t)[1:] - angles(t)[0]), "You turn from the first row each time: from row r to row r + 1."),
        (halves, "You pair column i with column i + d/2: this table is interleaved."),
        (lambda t: frequencies(t.shape[1]).expand(len(t) - 1, -1),
         "These are the paper's frequencies: the tables here turn at speeds of their own, so read them off the numbers."),
        (lambda t: (2 - 2 * cosines_apart(t)).clamp(min=0).sqrt(),
         "These are distances between points of the circle, chords: an angle is longer than its chord."),
        (lambda t: _turns(t).sin().asin(), "Turns of more than a right angle come out too small: a sine cannot tell them."),
        (lambda t: _wrapped((t[:, 0::2] / t[:, 1::2]).atan().diff(dim=0)),
         "The arctangent of a quotient does not know half of the circle from the other: atan2 takes the pair."),
        (lambda t: _turns(t).rad2deg(), "These are degrees: radians are wanted."),
    ]  # fmt: skip
    return compare(
        my_turns, cases, _turns, mistakes, name="turns", praise="forwards, backwards and over the seam, in three tables."
    )


@check()
def culprit(my_culprit: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_culprit(table) -> "none", "pair i" or "row r" on ten tables with at most one fault. Chapter 03."""
    draw = random.Random(seed)
    cases: list[tuple[Tensor]] = []
    truth: dict[bytes, str] = {}

    def add(
        word: str, d_model: int, *, start: int, speeds: dict[int, float] | None = None, row: tuple[int, int] = (0, 0)
    ) -> None:
        """A table of 10 rows; some pairs have other speeds, one row is that of a position so many tokens on."""
        omega = frequencies(d_model)
        for pair, speed in (speeds or {}).items():
            omega[pair] = speed
        positions = start + torch.arange(10)
        positions[row[0]] += row[1]
        table = _rows(positions, omega)
        truth[table.numpy().tobytes()] = word
        cases.append((table,))

    def far() -> int:
        return draw.randint(100, 5000)

    add("none", 8, start=0)
    add("none", 6, start=far())
    add("pair 0", 8, start=far(), speeds={0: 0.0})  # stands still, as in the third spelling
    add("pair 3", 8, start=far(), speeds={3: 0.0})  # off by a thousandth of a radian per token
    add("pair 2", 8, start=far(), speeds={2: -float(frequencies(8)[2])})  # backwards
    add("pair 1", 4, start=0, speeds={1: draw.uniform(0.3, 0.6)})
    middle = draw.randint(3, 6)
    add(f"row {middle}", 8, start=far(), row=(middle, -1))  # the row before it, twice
    add("row 0", 6, start=far(), row=(0, draw.randint(5, 40)))
    add("row 9", 4, start=far(), row=(9, -draw.randint(5, 40)))
    add("row 1", 8, start=0, row=(1, draw.randint(50, 90)))

    def right(table: Tensor) -> str:
        return truth[table.numpy().tobytes()]

    def wrong(table: Tensor, tolerance: float = 1e-6) -> Tensor:
        return (_turns(table) - frequencies(table.shape[1])).abs() > tolerance

    def renamed(change: Callable[[int], int], kind: str) -> Callable[[Tensor], str]:
        def rename(table: Tensor) -> str:
            word, _, number = right(table).partition(" ")
            return f"{word} {change(int(number))}" if word == kind else right(table)

        return rename

    def first_step(table: Tensor) -> int:
        return int(wrong(table).all(dim=1).int().argmax())

    def last_step(table: Tensor) -> int:
        return int(wrong(table).all(dim=1).nonzero()[-1])

    def step_as_row(step: Callable[[Tensor], int], plus: int = 0) -> Callable[[Tensor], str]:
        return lambda table: f"row {step(table) + plus}" if right(table).startswith("row") else right(table)

    def if_it_began_at_0(table: Tensor) -> str:
        off = (table - _rows(torch.arange(10), frequencies(table.shape[1]))).abs() > 1e-6
        rows, pairs = off.any(dim=1), off.unflatten(1, (-1, 2)).any(dim=2).any(dim=0)
        if not off.any():
            return "none"
        return f"row {int(rows.int().argmax())}" if rows.sum() == 1 else f"pair {int(pairs.int().argmax())}"

    def loose(table: Tensor) -> str:
        return "none" if right(table) == "pair 3" else right(table)

    def missing(word: str) -> Callable[[Tensor], str]:
        return lambda table: "none" if right(table).startswith(word) else right(table)

    mistakes = [
        (step_as_row(first_step),
         "All is right but rows: you name where the first wrong step begins, and the wrong row may be its other end."),
        (step_as_row(first_step, 1), "One row is left: no step leads to row 0, so it takes part in a single wrong step."),
        (step_as_row(last_step), "One row is left: no step leaves the last row, so it takes part in a single wrong step."),
        (step_as_row(last_step, 1),
         "All is right but rows: the last wrong step leads to a row that may be right, since it leaves the wrong one."),
        (renamed(lambda r: r + 1, "row"), "You count rows from 1: the first one is row 0."),
        (renamed(lambda i: i + 1, "pair"), "You count pairs from 1: the first one is pair 0."),
        (renamed(lambda i: 2 * i, "pair"), "You count columns: pair i is columns 2i and 2i + 1."),
        (loose, "A slow pair that stands still gets past you: its ω_i is small, so compare with less tolerance."),
        (lambda t: "none" if right(t) == "pair 2" else right(t),
         "A pair that turns backwards gets past you: the sign of its turn is wrong, the size is not."),
        (missing("row"), "You find every wrong pair and no wrong row: does your test look at all steps?"),
        (lambda t: "none" if right(t).startswith("row") and right(t) not in ("row 0", "row 1") else right(t),
         "Wrong rows beyond the second get past you: look at all steps, not at the first alone."),
        (missing("pair"), "You find every wrong row and no wrong pair: what does a wrong pair look like in all steps?"),
        (lambda t: "row 0" if right(t).startswith("pair") else right(t),
         "A wrong pair looks to you like a wrong row: a wrong row is wrong in *all* of its pairs."),
        (lambda t: "pair 0" if right(t).startswith("row") else right(t),
         "A wrong row looks to you like a wrong pair: a wrong pair is wrong in *all* steps."),
        (if_it_began_at_0, "You compare with a table that begins at position 0: these are cut out somewhere."),
        (lambda t: "none", 'You call every table "none": eight of the ten have a fault. Does `turns` get the whole table?'),
    ]  # fmt: skip
    praise = "ten tables, with faults in the first, the last and the slowest place, and two without any."
    return compare(my_culprit, cases, right, mistakes, name="culprit", praise=praise)
