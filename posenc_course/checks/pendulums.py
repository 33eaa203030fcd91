"""Exercises on clocks and pendulums: the offset between two rows, when hands meet, two photographs, and a hand that lies."""

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
    """offset(row_m, row_n) -> m - n, of rows of several widths, near and far, rounded to two decimals."""
    rows = {  # width, position n, and offset m - n, less than half a turn of the slowest clock
        "rows 107 and 100 of width 8": (8, 100, 7),
        "rows 93 and 100 of width 8": (8, 100, -7),
        "twice row 250": (8, 250, 0),
        "rows of width 16": (16, 400, 2_500),
        "rows of width 4": (4, 500, -300),
        "rows of width 64": (64, 1000, -37),
        "rows on either side of the slowest clock's first full turn": (8, 6_200, 150),
        "rows 123 million tokens out": (128, 123_456_789, 20_000),
        "rows ten million tokens out": (8, 10_000_019, -2_900),
    }

    def pair(d: int, n: int, delta: int) -> tuple[Tensor, Tensor]:
        row_m, row_n = sinusoidal_table([n + delta, n], d).round(decimals=2)
        return row_m, row_n

    def by(change: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], int]:
        """The position read from the angles that change(hands of m, hands of n) gives."""
        return lambda row_m, row_n: _read(change(_hands(row_m), _hands(row_n)), frequencies(len(row_m)))

    def between(a: Tensor, b: Tensor) -> Tensor:
        """How far hands turn from b to a, from -π to π."""
        return torch.atan2((a - b).sin(), (a - b).cos())

    def full(angles: Tensor) -> Tensor:
        return angles % (2 * math.pi)

    def one_clock(clock: int, change: Callable[[Tensor], Tensor] = lambda angles: angles) -> Callable[[Tensor, Tensor], int]:
        return lambda row_m, row_n: round(
            float((change(between(_hands(row_m), _hands(row_n))) / frequencies(len(row_m)))[clock])
        )

    right = by(between)
    positions = by(lambda a, b: full(a))
    fastest = (
        "This is what the fastest clock says alone: right, up to its own full turns. The slower ones say how many there were."
    )
    return Exercise(
        cases={name: pair(*case) for name, case in rows.items()},
        right=right,
        mistakes={
            "n - m": (lambda a, b: -right(a, b),
                "The size is right and the sign is the other one: this is n - m, or the hands run anticlockwise. Δ is m - n."),
            "no sign": (lambda a, b: abs(right(a, b)),
                "The size is right, the sign is lost: Δ is negative when m comes before n."),
            "cosines": (by(lambda a, b: between(a, b).abs()),
                "The direction is lost before the hands are put together: cosines alone do not know it."),
            "only forwards": (by(lambda a, b: full(a - b)),
                "Forwards all is well; backwards you get a turn of the slowest clock too much. Let hands turn either way."),
            "no wrapping": (by(lambda a, b: a - b),
                "Where a hand passes the bottom of its dial, the difference of its two angles is a full turn off: bring it "
                "back to between -π and π."),
            "the fastest": (one_clock(0), fastest),
            "the fastest, forwards": (one_clock(0, full), fastest),
            "the slowest": (one_clock(-1),
                "Roughly right everywhere: that is what the slowest clock says alone. Let the faster ones correct it, one by "
                "one."),
            "two positions": (lambda a, b: positions(a, b) - positions(b, a),
                "Near the beginning all is well, further out it is not: there you can't read a position any more, only turns."),
            "the position": (positions,
                "That is the position of the first row, as far as it can be read: what is the offset?"),
            "degrees": (by(lambda a, b: torch.rad2deg(between(a, b))),
                "Something is in degrees here: frequencies are in radians per token."),
        },
        praise=f"all {len(rows)} offsets, forwards and back, also between tokens too far out to be read.",
    )  # fmt: skip


@exercise()
def meet(seed: int) -> Exercise:
    """meet(i, j, d) -> tokens until hands i and j first stand at one angle again."""
    first, second = random.Random(seed).sample(range(8), 2)
    turn = 2 * math.pi

    def by(tokens: Callable[[float, float], float]) -> Callable[[int, int, int], float]:
        """What tokens(ω of hand i, ω of hand j) gives."""
        return lambda i, j, d: float(tokens(*frequencies(d)[[i, j]].tolist()))

    right = by(lambda a, b: turn / abs(a - b))
    subtracted = "You subtract the turns, in tokens: what adds up are speeds, so the faster hand gains ω_i - ω_j per token."
    at_the_top = "You wait until both hands are at the top: they meet before, elsewhere on the dial."
    return Exercise(
        cases={
            "the first hand the faster one": (0, 1, 8),
            "the first hand the slower one": (3, 2, 8),
            "the fastest and the slowest": (0, 3, 8),
            "a row of width 12": (5, 1, 12),
            "the slowest of a wide row": (31, 30, 64),
            "two hands of eight": (first, second, 16),
            "two hands of sixteen": (second, first, 32),
        },
        right=right,
        mistakes={
            "signed": (by(lambda a, b: turn / (a - b)),
                "The size is right, but it is negative where the first hand is the slower one."),
            "signed otherwise": (by(lambda a, b: turn / (b - a)),
                "The size is right, but it is negative where the first hand is the faster one."),
            "sum": (by(lambda a, b: turn / (a + b)),
                "There they meet if one of them runs the other way round: both run clockwise."),
            "turns": (by(lambda a, b: abs(turn / a - turn / b)), subtracted),
            "turns, signed": (by(lambda a, b: turn / a - turn / b), subtracted),
            "turns, signed otherwise": (by(lambda a, b: turn / b - turn / a), subtracted),
            "the faster": (by(lambda a, b: turn / max(a, b)), "There the faster hand is back at the top, the other is not."),
            "the slower": (by(lambda a, b: turn / min(a, b)), "There the slower hand is back at the top, and they have met."),
            "radian": (by(lambda a, b: 1 / abs(a - b)),
                "By then the faster hand is one radian ahead, and they meet when it is a full turn ahead."),
            "half a turn": (by(lambda a, b: math.pi / abs(a - b)),
                "By then the hands point in opposite directions: they meet half a turn later."),
            "product": (by(lambda a, b: turn / a * turn / b),
                "You multiply the turns: what the faster hand gains is ω_i - ω_j."),
            "both at the top": (by(lambda a, b: math.lcm(round(turn / a), round(turn / b))), at_the_top),
            "degrees": (by(lambda a, b: 360 / abs(a - b)), "A full turn has 360 degrees, and ω is in radians."),
            "half the exponent": (lambda i, j, d: turn / abs(10_000 ** (-i / d) - 10_000 ** (-j / d)),
                "Your hands are too fast: the exponent of ω_i has 2i in it, since a clock has two columns."),
            "rounded": (by(lambda a, b: round(turn / abs(a - b))),
                "Rounded: time runs on between the tokens, so leave the fraction."),
            "rounded up": (by(lambda a, b: math.ceil(turn / abs(a - b))),
                "Rounded up: time runs on between the tokens, so leave the fraction."),
            "rounded down": (by(lambda a, b: math.floor(turn / abs(a - b))),
                "Rounded down: time runs on between the tokens, so leave the fraction."),
            "at the start": (by(lambda a, b: 0),
                "At position 0 they all stand together: the first time after it is asked for."),
        },
        praise="seven pairs of hands, whichever of the two is the faster.",
    )  # fmt: skip


@exercise()
def moving(seed: int) -> Exercise:
    """moving(first, second) -> cos ω_i·t from sin ω_i·t and sin ω_i·(t + 1), to five decimals, for several widths and t."""
    chance = random.Random(seed)
    times = {
        "pendulum 0 on its way out, and back in the second photograph": (8, 1.2),
        "pendulum 0 swinging to the left": (8, 3.0),
        "a row of width 6": (6, 10.0),
        "a row of width 4": (4, chance.uniform(20, 600)),
        "a time far on": (8, chance.uniform(1000, 5000)),
        "a wide row": (256, chance.uniform(1000, 5000)),
        "a wide row soon after the start": (128, chance.uniform(10, 20)),
    }

    def by(velocity: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        """What velocity(first, second, ω) gives."""
        return lambda first, second: velocity(first, second, frequencies(2 * len(first)))

    def size(first: Tensor) -> Tensor:
        return (1 - first.square()).clamp(min=0).sqrt()

    def exact(first: Tensor, second: Tensor, omega: Tensor) -> Tensor:
        return (second - first * omega.cos()) / omega.sin()

    def narrow(first: Tensor, second: Tensor) -> Tensor:
        omega = 10_000.0 ** (-2 * torch.arange(len(first), dtype=torch.float64) / len(first))
        return exact(first, second, omega)

    no_direction = "The size is right, the direction is lost: the second photograph tells it."
    return Exercise(
        cases={name: ((frequencies(d) * t).sin(), (frequencies(d) * (t + 1)).sin()) for name, (d, t) in times.items()},
        right=by(exact),
        mistakes={
            "mean velocity": (by(lambda a, b, w: (b - a) / w),
                "That is the mean velocity of the second between the photographs: a fast pendulum changes it on the way."),
            "way": (by(lambda a, b, w: b - a), "That is how far each has moved, not how fast it was at the first photograph."),
            "root": (by(lambda a, b, w: size(a)), no_direction),
            "negative root": (by(lambda a, b, w: -size(a)), no_direction),
            "direction of the way": (by(lambda a, b, w: (b - a).sign() * size(a)),
                "Nearly: one that turns round between the photographs hangs further in at the second, but moved out before."),
            "the second": (by(lambda a, b, w: (b * w.cos() - a) / w.sin()),
                "That is the velocity at the second photograph, not at the first."),
            "the second, with the other sign": (by(lambda a, b, w: (a - b * w.cos()) / w.sin()),
                "That is the velocity at the second photograph with the other sign: have the two changed places?"),
            "sign": (by(lambda a, b, w: -exact(a, b, w)), "All signs are the other ones."),
            "times ω": (by(lambda a, b, w: exact(a, b, w) * w),
                "That is the velocity itself: cos ω_i·t, the velocity divided by ω, was asked for."),
            "not divided": (by(lambda a, b, w: b - a * w.cos()), "Nearly: a factor beside the cosine is still in there."),
            "divided by ω": (by(lambda a, b, w: (b - a * w.cos()) / w), "Nearly: the factor beside the cosine is not ω."),
            "no cosine": (by(lambda a, b, w: (b - a) / w.sin()), "Nearly: sin ω_i·t comes with a factor in the formula."),
            "plus": (by(lambda a, b, w: (b + a * w.cos()) / w.sin()),
                "Nearly: look at the sign when you bring a term to the other side."),
            "exchanged": (by(lambda a, b, w: (b - a * w.sin()) / w.cos()), "Sine and cosine of ω have changed places."),
            "the second root": (by(lambda a, b, w: size(b)), "You use the second photograph alone: and a root knows no sign."),
            "half the width": (narrow,
                "Your frequencies belong to a row half as wide: there is a number for each pendulum, so d is twice that."),
        },
        praise="all pendulums at seven times, also one that turns round between the photographs.",
        tolerance=1e-5,
    )  # fmt: skip


@exercise()
def bent_hand(seed: int) -> Exercise:
    """bent_hand(row) -> which clock's hand is bent, in rows of tokens up to 999."""
    chance = random.Random(seed)

    def angle() -> float:
        return chance.choice((-1, 1)) * chance.uniform(0.3, 2.8)

    bends = {  # width, clock, by how much, and the token
        # All hands are near those of the next token.
        "the fastest hand, bent by about a radian": (8, 0, 0.98, chance.randint(400, 600)),
        # Who reads slow hands first comes to a token 628 further on, where there is none any more.
        "the slowest hand": (8, 3, 0.63, chance.randint(400, 600)),
        "the slowest of eight hands": (16, 7, angle(), chance.randint(400, 600)),
        "a hand bent only a little": (12, 2, 0.105, chance.randint(400, 600)),
        "a row of width 10": (10, chance.randrange(1, 5), angle(), chance.randint(400, 600)),
        "a row of width 14": (14, chance.randrange(1, 7), angle(), chance.randint(400, 600)),
        "a row of width 16": (16, chance.randrange(1, 8), angle(), chance.randint(400, 600)),
        # Bent so that a search without this token does not come upon the right clock by chance.
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

    def as_token(m: float, row: Tensor) -> int:
        """The clock that is farthest from where it would stand at token m."""
        return farthest_from(sinusoidal_table([round(m)], len(row))[0], row)

    def agreeing(row: Tensor, tokens: int, width: int) -> int:
        """The first clock that disagrees with the token in whose row, of this width, most clocks agree."""
        off = ((sinusoidal_table(range(tokens), width)[:, : len(row)] - row).abs() > 1e-6).unflatten(1, (-1, 2)).any(dim=2)
        return int(off[off.sum(dim=1).argmin()].int().argmax())

    def by_one_number(row: Tensor, column: int) -> int:
        """The same by every other number of a row."""
        off = (sinusoidal_table(range(1000), len(row)) - row)[:, column::2].abs() > 1e-6
        return int(off[off.sum(dim=1).argmin()].int().argmax())

    def trimmed(row: Tensor, tokens: int) -> int:
        """The clock that is most off at the token to which all others are nearest."""
        off = (sinusoidal_table(range(tokens), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
        return int(off[(off.sum(dim=1) - off.amax(dim=1)).argmin()].argmax())

    def column(row: Tensor) -> int:
        return int((sinusoidal_table([token(row)], len(row))[0] - row).abs().argmax())

    def slowest(row: Tensor) -> Tensor:
        return _hands(row)[-1] / frequencies(len(row))[-1]

    def turn(row: Tensor) -> Tensor:
        return 2 * math.pi / frequencies(len(row))[-1]

    the_slowest = "You believe the slowest hand: it may be the one that lies."
    too_few = "You try too few tokens: the row's can be any one from 0 to 999."
    one_number = "You compare one of a hand's two numbers, and two directions of the hand share it."
    a_column = "That is a column: clock i is in columns 2i and 2i + 1."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the nearest row": (nearest,
                "You look for the nearest row, which is another token's where a fast hand is bent: count agreements."),
            "read": (lambda row: as_token(_read(_hands(row) % (2 * math.pi), frequencies(len(row))), row),
                "You read the row with the bent hand in it: if a slow hand lies, all that is read after it is wrong."),
            "the slowest believed": (lambda row: as_token(float(slowest(row) % turn(row)), row), the_slowest),
            "the slowest believed, either way": (lambda row: as_token(float(slowest(row)), row), the_slowest),
            "first column": (lambda row: 2 * right(row), a_column),
            "second column": (lambda row: 2 * right(row) + 1, a_column),
            "the column most off": (column, a_column),
            "a hundred tokens": (lambda row: agreeing(row, 100, len(row)), too_few),
            "a hundred tokens, by distance": (lambda row: trimmed(row, 100), too_few),
            "sines alone": (lambda row: by_one_number(row, 0), one_number),
            "cosines alone": (lambda row: by_one_number(row, 1), one_number),
            "width 16": (lambda row: agreeing(row, 1000, 16),
                "You compare with rows of width 16: the speeds of the hands depend on the width of the row itself."),
            "from 1": (lambda row: right(row) + 1, "You count clocks from 1: the fastest one is clock 0."),
            "from the slowest": (lambda row: len(row) // 2 - 1 - right(row),
                "You count from the slowest: clock 0 is the fastest."),
            "the token": (token, "That is the token: which of its clocks does not agree with the row?"),
            "a right one": (lambda row: 0 if right(row) else 1,
                "That is the first clock that is right: which one is wrong?"),
            "clock 0": (lambda row: 0, "You say clock 0 each time: does the row of the right token come into it?"),
            "the slowest": (lambda row: len(row) // 2 - 1,
                "You say the slowest each time: does the row of the right token come into it?"),
        },
        praise="all eleven rows, with the fastest and the slowest hand among the bent ones.",
    )  # fmt: skip
