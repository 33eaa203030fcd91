"""Exercises on clocks and pendulums: the offset between two rows, two photographs, and a bent hand."""

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.sinusoidal import frequencies, sinusoidal_table


def _hands(row: Tensor) -> Tensor:
    return torch.atan2(row[0::2], row[1::2])


def _read(angles: Tensor, omega: Tensor) -> int:
    """The position at which the hands have these angles, read from the slowest hand to the fastest."""
    m = angles[-1] / omega[-1]
    for angle, speed in zip(angles.flip(0)[1:], omega.flip(0)[1:], strict=True):
        m = (angle + 2 * math.pi * ((m * speed - angle) / (2 * math.pi)).round()) / speed
    return round(float(m))


@exercise()
def offset() -> Exercise:
    """offset(row_m, row_n) -> m - n, for rows of several widths, near and far, rounded to two decimals."""
    rows = {  # width, position n, and offset m - n, less than half a rotation of the slowest clock
        "rows 107 and 100 of width 8": (8, 100, 7),
        "rows 93 and 100 of width 8": (8, 100, -7),
        "row 250 and row 250 again": (8, 250, 0),
        "rows of width 16": (16, 400, 2_500),
        "rows of width 4": (4, 500, -300),
        "rows of width 64": (64, 1000, -37),
        "rows before and after the slowest clock's first full turn": (8, 6_200, 150),
        "rows near position 123 million": (128, 123_456_789, 20_000),
        "rows near position ten million": (8, 10_000_019, -2_900),
    }

    def pair(d: int, n: int, delta: int) -> tuple[Tensor, Tensor]:
        row_m, row_n = sinusoidal_table([n + delta, n], d).round(decimals=2)
        return row_m, row_n

    def by(change: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], int]:
        """The position read from the angles that change(hands of m, hands of n) gives."""
        return lambda row_m, row_n: _read(change(_hands(row_m), _hands(row_n)), frequencies(len(row_m)))

    def between(a: Tensor, b: Tensor) -> Tensor:
        """How far the hands rotate from b to a, between -π and π."""
        return torch.atan2((a - b).sin(), (a - b).cos())

    def full(angles: Tensor) -> Tensor:
        return angles % (2 * math.pi)

    def one_clock(clock: int, change: Callable[[Tensor], Tensor] = lambda angles: angles) -> Callable[[Tensor, Tensor], int]:
        return lambda row_m, row_n: round(
            float((change(between(_hands(row_m), _hands(row_n))) / frequencies(len(row_m)))[clock])
        )

    right = by(between)
    fastest = (
        "You return the offset that the fastest clock shows on its own. This clock can't show how many full turns it has made, "
        "but the slower clocks can."
    )
    return Exercise(
        cases={name: pair(*case) for name, case in rows.items()},
        right=right,
        mistakes={
            "n - m": (lambda a, b: -right(a, b),
                "Your offsets have the right size but the wrong sign: Δ should be m - n. Do you subtract in the wrong order, "
                "or do your hands run anticlockwise?"),
            "cosines": (by(lambda a, b: between(a, b).abs()),
                "Your function ignores the direction in which each hand has rotated. Cosines alone don't show this direction."),
            "no wrapping": (by(lambda a, b: a - b),
                "Your difference of two angles is off by a full turn if the hand passes the bottom of its clock in between. "
                "Bring each difference back into the range from -π to π."),
            "only forwards": (by(lambda a, b: full(between(a, b))),
                "Your positive offsets are right, but your negative ones come out too large by one full turn of the slowest "
                "clock. A hand can also rotate backwards, so let each angle lie between -π and π."),
            "the slowest": (one_clock(-1),
                "Your offsets are roughly right: they are what the slowest clock shows. Use the faster clocks, too."),
            "the fastest": (one_clock(0), fastest),
            "the fastest, forwards": (one_clock(0, full), fastest),
        },
        praise=f"all {len(rows)} offsets are right, forwards and backwards, even between tokens whose positions can no longer "
               "be read.",
    )  # fmt: skip


@exercise()
def moving(seed: int) -> Exercise:
    """moving(first, second) -> cos ω_i·t from sin ω_i·t and sin ω_i·(t + 1), to five decimals, for several widths and t."""
    chance = random.Random(seed)
    times = {
        "pendulum 0 turning back between the photographs": (8, 1.2),
        "pendulum 0 swinging to the left": (8, 3.0),
        "a row of width 6": (6, 10.0),
        "a row of width 4": (4, chance.uniform(20, 600)),
        "a much later time": (8, chance.uniform(1000, 5000)),
        "a wide row": (256, chance.uniform(1000, 5000)),
        "a wide row soon after the start": (128, chance.uniform(10, 20)),
    }

    def by(velocity: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        """The result of velocity(first, second, ω)."""
        return lambda first, second: velocity(first, second, frequencies(2 * len(first)))

    def size(first: Tensor) -> Tensor:
        return (1 - first.square()).clamp(min=0).sqrt()

    def exact(first: Tensor, second: Tensor, omega: Tensor) -> Tensor:
        return (second - first * omega.cos()) / omega.sin()

    def narrow(first: Tensor, second: Tensor) -> Tensor:
        omega = 10_000.0 ** (-2 * torch.arange(len(first), dtype=torch.float64) / len(first))
        return exact(first, second, omega)

    factor = (
        "Your result is nearly right, but cos ω_i·t is still multiplied by another factor. Which factor does it have in the "
        "addition formula?"
    )
    no_direction = (
        "Your velocities have the right size but not the right signs. The second photograph shows in which direction a "
        "pendulum moves."
    )
    return Exercise(
        cases={name: ((frequencies(d) * t).sin(), (frequencies(d) * (t + 1)).sin()) for name, (d, t) in times.items()},
        right=by(exact),
        mistakes={
            "mean velocity": (by(lambda a, b, w: (b - a) / w),
                "You return the mean velocity between the photographs. But that of a fast pendulum changes meanwhile."),
            "root": (by(lambda a, b, w: size(a)), no_direction),
            "negative root": (by(lambda a, b, w: -size(a)), no_direction),
            "direction of the way": (by(lambda a, b, w: (b - a).sign() * size(a)),
                "Your velocities have the right size but not always the right sign. A pendulum that turns back between the "
                "photographs can be nearer to the middle in the second one, although it was moving outwards in the first."),
            "the second": (by(lambda a, b, w: (b * w.cos() - a) / w.sin()),
                "You return the velocity at the time of the second photograph, not of the first."),
            "not divided": (by(lambda a, b, w: b - a * w.cos()), factor),
            "divided by ω": (by(lambda a, b, w: (b - a * w.cos()) / w), factor),
            "no cosine": (by(lambda a, b, w: (b - a) / w.sin()),
                "Your result is nearly right, but you use sin ω_i·t without its factor. Which factor does it have in the "
                "addition formula?"),
            "plus": (by(lambda a, b, w: (b + a * w.cos()) / w.sin()),
                "Your result is nearly right, but one sign is wrong. Look at the sign of a term that changes sides."),
            "half the width": (narrow,
                "Your frequencies belong to a row that is half as wide: d is twice the number of pendulums."),
        },
        praise="the velocities at all seven times are right, including that of a pendulum that turns back between the "
               "photographs.",
        tolerance=1e-5,
    )  # fmt: skip


@exercise()
def bent_hand(seed: int) -> Exercise:
    """bent_hand(row) -> which clock has a bent hand, for rows of tokens up to 999."""
    chance = random.Random(seed)

    def angle() -> float:
        return chance.choice((-1, 1)) * chance.uniform(0.3, 2.8)

    bends = {  # width, clock, by how much, and the token
        # All hands are near those of the next token.
        "the fastest hand, bent by about a radian": (8, 0, 0.98, chance.randint(400, 600)),
        # If you read slow hands first, you arrive at a token that is 628 further on, past the last token.
        "the slowest hand": (8, 3, 0.63, chance.randint(400, 600)),
        "the slowest of eight hands": (16, 7, angle(), chance.randint(400, 600)),
        "a hand bent only a little": (12, 2, 0.105, chance.randint(400, 600)),
        "a row of width 10": (10, chance.randrange(1, 5), angle(), chance.randint(400, 600)),
        "a row of width 14": (14, chance.randrange(1, 7), angle(), chance.randint(400, 600)),
        "a row of width 16": (16, chance.randrange(1, 8), angle(), chance.randint(400, 600)),
        # Bent so that a search that leaves this token out doesn't find the right clock by chance.
        "token 0": (8, 2, 1.1, 0),
        "token 999": (12, 2, 2.0, 999),
        # One of a hand's two numbers stays as it was.
        "a hand that keeps its sine": (10, 1, math.pi - 2 * 437 * float(frequencies(10)[1]), 437),
        "a hand that keeps its cosine": (10, 3, -2 * 437 * float(frequencies(10)[3]), 437),
    }
    cases: dict[str, tuple[Tensor]] = {}
    truth: dict[bytes, tuple[int, int]] = {}
    for name, (d_model, clock, bend, m) in bends.items():
        hands = frequencies(d_model) * m
        hands[clock] += bend
        row = torch.stack((hands.sin(), hands.cos()), dim=-1).flatten()
        truth[row.numpy().tobytes()] = clock, m
        cases[name] = (row,)

    def right(row: Tensor) -> int:
        return truth[row.numpy().tobytes()][0]

    def token(row: Tensor) -> int:
        return truth[row.numpy().tobytes()][1]

    def farthest_from(known: Tensor, row: Tensor) -> int:
        return int((known - row).view(-1, 2).norm(dim=1).argmax())

    def nearest(row: Tensor) -> int:
        table = sinusoidal_table(range(1000), len(row))
        return farthest_from(table[(table - row).norm(dim=1).argmin()], row)

    def agreeing(row: Tensor, tokens: int, width: int, part: slice = slice(None)) -> int:
        """The first clock that disagrees with the token with which most clocks agree, in a table of this width."""
        off = ((sinusoidal_table(range(tokens), width)[:, : len(row)] - row).abs() > 1e-6).unflatten(1, (-1, 2))
        off = off[:, :, part].any(dim=2)
        return int(off[off.sum(dim=1).argmin()].int().argmax())

    def column(row: Tensor) -> int:
        return int((sinusoidal_table([token(row)], len(row))[0] - row).abs().argmax())

    def slowest(row: Tensor, wrapped: bool) -> int:
        """The clock that is farthest from where it would point at the token that the slowest hand shows."""
        angle = float(_hands(row)[-1])
        m = (angle % (2 * math.pi) if wrapped else angle) / float(frequencies(len(row))[-1])
        return farthest_from(sinusoidal_table([round(m)], len(row))[0], row)

    a_column = "You return the number of a column. Clock i is in columns 2i and 2i + 1."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the nearest row": (nearest,
                "You look for the nearest row. But if a fast hand is bent, the nearest row can belong to a different token. "
                "Count the hands that agree instead."),
            **{f"the slowest believed, {wrapped}": (lambda row, wrapped=wrapped: slowest(row, wrapped),
                "You trust the slowest hand, but it may be the bent one.") for wrapped in (True, False)},
            "first column": (lambda row: 2 * right(row), a_column),
            "the column most off": (column, a_column),
            "a hundred tokens": (lambda row: agreeing(row, 100, len(row)),
                "You try too few tokens: the row can belong to any token from 0 to 999."),
            "width 16": (lambda row: agreeing(row, 1000, 16),
                "You compare with rows of width 16. But the speeds of the hands depend on the width of the row."),
            **{f"number {part} alone": (lambda row, part=part: agreeing(row, 1000, len(row), slice(part, part + 1)),
                "You compare only one of a hand's two numbers, but this number can be the same for two different directions.")
               for part in (0, 1)},
            "the token": (token,
                "You return the token to which the row belongs. Which of the row's clocks doesn't fit this token?"),
        },
        praise="you found the bent hand in all eleven rows, even where it was the fastest or the slowest one.",
    )  # fmt: skip
