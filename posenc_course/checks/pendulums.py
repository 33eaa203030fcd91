"""Exercises of chapter 04: the offset between two rows of clocks, and the assignment on hands, photographs and a lie."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import answer, as_number, check, compare
from posenc_course.geometry import wavelengths
from posenc_course.sinusoidal import frequencies, sinusoidal_table

# Width, position n, and offset Δ = m - n, less than half a turn of the slowest clock.
_CASES = (
    (8, 100, 7),
    (8, 100, -7),
    (8, 250, 0),
    (16, 400, 2_500),
    (4, 500, -300),
    (8, 6_200, 150),  # the slowest clock passes its top on the way
    (64, 10_000_000, -37),
    (128, 123_456_789, 20_000),
    (8, 10_000_019, -2_900),
)


@check(draws=False)
def offset(my_offset: Callable[[Tensor, Tensor], Any]) -> str:
    """Try my_offset(row_m, row_n) -> m - n on rows of several widths, near and far, rounded to two decimals. Chapter 04."""
    said = [_said(my_offset, *case) for case in _CASES]
    if said == [float(delta) for _, _, delta in _CASES]:
        return f"Right: all {len(_CASES)} offsets, forwards and back, also between tokens too far out to be read."
    return next((hint for known, hint in _MISTAKES if known(said)), None) or _first_wrong(said)


def _said(my_offset: Callable[[Tensor, Tensor], Any], d_model: int, n: int, delta: int) -> float:
    row_m, row_n = sinusoidal_table([n + delta, n], d_model).round(decimals=2)
    call = _call(d_model, n, delta)
    return as_number(
        answer(my_offset, row_m.clone(), row_n.clone(), call=call),
        call=call,
        should="one number, what all the hands agree on",
        finite="is something divided by a sine that is 0? torch.atan2 takes the pair.",
    )


def _call(d_model: int, n: int, delta: int) -> str:
    return f"offset(row {n + delta:,}, row {n:,}) with rows of width {d_model}"


def _first_wrong(said: list[float]) -> str:
    case, value = next((case, value) for case, value in zip(_CASES, said, strict=True) if value != case[2])
    return f"{_call(*case)} gives {value:,.10g}, it should be {case[2]:,}."


def _each(rule: Callable[[int, int, int, float], bool]) -> Callable[[list[float]], bool]:
    """What is known by a rule that every (d_model, n, delta, answer) follows."""
    return lambda said: all(rule(*case, value) for case, value in zip(_CASES, said, strict=True))


def _turn(d_model: int, clock: int) -> float:
    return float(wavelengths(d_model)[clock])


def _only_the_fastest(_d_model: int, _n: int, delta: int, value: float) -> bool:
    """Right up to whole turns of the fastest clock, and within one of them."""
    turn = _turn(2, 0)
    return abs(value) < turn + 0.5 and abs(math.remainder(value - delta, turn)) < 0.6


def _only_forwards(d_model: int, _n: int, delta: int, value: float) -> bool:
    """Right forwards, and backwards one turn of the slowest clock too much, where that is a turn of all the others too."""
    turn = _turn(d_model, -1) if delta < 0 else 0
    return abs(value - delta - turn) < 1 or (delta < 0 and d_model > 8)


def _reads_both(said: list[float]) -> bool:
    """Right at least where both positions come before the slowest clock's first full turn."""
    near = (max(n, n + delta) < _turn(d, -1) for d, n, delta in _CASES)
    return all(value == case[2] for case, value, is_near in zip(_CASES, said, near, strict=True) if is_near)


_MISTAKES: tuple[tuple[Callable[[list[float]], bool], str], ...] = (
    (
        _each(lambda _d, _n, delta, value: value == -delta),
        "The size is right and the sign is the other one: this is n - m, or the hands run anticlockwise. Δ is m - n.",
    ),
    (
        _each(lambda _d, _n, delta, value: value == abs(delta)),
        "The size is right, the sign is lost: Δ is negative when m comes before n. Cosines alone do not know the direction.",
    ),
    (
        _each(lambda _d, _n, delta, value: abs(value - delta) < 0.5),
        "Only what stands after the point is wrong: the rows are rounded, positions are whole numbers, so round the result.",
    ),
    (
        _each(_only_forwards),
        "Forwards all is well; backwards you get one whole turn of the slowest clock too much. Let hands turn either way.",
    ),
    (
        _each(_only_the_fastest),
        "This is what the fastest clock says alone: right, up to its own full turns. The slower ones say how many there were.",
    ),
    (
        _each(lambda d, _n, delta, value: abs(value - delta) < 0.02 / float(frequencies(d)[-1]) + 0.5),
        "Roughly right everywhere: that is what the slowest clock says alone. Let the faster ones correct it, one by one.",
    ),
    (
        _reads_both,
        "Near the beginning all is well, further out it is not: there a position cannot be read any more, but turns can.",
    ),
)


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check()
def meet(my_meeting: Callable[[int, int, int], Any], *, seed: int) -> str:
    """Try my_meeting(i, j, d) -> tokens until hands i and j first stand at one angle again, for six pairs. Chapter 04."""
    draw = random.Random(seed)
    first, second = draw.sample(range(8), 2)
    cases = [(0, 1, 8), (3, 2, 8), (0, 3, 8), (5, 1, 12), (first, second, 16), (second, first, 32)]

    def by(tokens: Callable[[float, float], float]) -> Callable[[int, int, int], float]:
        """What tokens(ω of hand i, ω of hand j) gives."""
        return lambda i, j, d: float(tokens(*frequencies(d)[[i, j]].tolist()))

    turn = 2 * math.pi
    right = by(lambda a, b: turn / abs(a - b))
    mistakes = [
        (by(lambda a, b: turn / (a - b)), "The size is right, but it is negative where the first hand is the slower one."),
        (by(lambda a, b: turn / (b - a)), "The size is right, but it is negative where the first hand is the faster one."),
        (by(lambda a, b: turn / (a + b)), "There they meet if one of them runs the other way round: both run clockwise."),
        (by(lambda a, b: abs(turn / a - turn / b)),
         "You subtract the turns, in tokens: what adds up are speeds, and the faster hand gains ω_i - ω_j with each token."),
        (by(lambda a, b: turn / a - turn / b),
         "You subtract the turns, in tokens: what adds up are speeds, and the faster hand gains ω_i - ω_j with each token."),
        (by(lambda a, b: turn / max(a, b)), "There the faster hand is back at the top, the other is not."),
        (by(lambda a, b: turn / min(a, b)), "There the slower hand is back at the top, and they have met."),
        (by(lambda a, b: 1 / abs(a - b)), "By then the faster hand is one radian ahead, and they meet a full turn ahead."),
        (by(lambda a, b: math.pi / abs(a - b)), "By then the hands point in opposite directions: they meet half a turn later."),
        (by(lambda a, b: turn / a * turn / b), "You multiply the turns: the hands need not be at the top when they meet."),
        (by(lambda a, b: 360 / abs(a - b)), "A full turn has 360 degrees, and ω is in radians."),
        (by(lambda a, b: round(turn / abs(a - b))), "Rounded: time runs on between the tokens, so leave the fraction."),
        (by(lambda a, b: math.ceil(turn / abs(a - b))), "Rounded up: time runs on between the tokens, so leave the fraction."),
        (by(lambda a, b: math.floor(turn / abs(a - b))), "Rounded down: time runs between the tokens, so leave the fraction."),
        (by(lambda a, b: 0), "At position 0 they all stand together: the first time after it is asked for."),
    ]  # fmt: skip
    return compare(
        my_meeting, cases, right, mistakes, name="meet", praise="six pairs of hands, whichever of the two is the faster."
    )


@check()
def moving(my_velocity: Callable[[Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_velocity(first, second) -> cos ω_i·t from sin ω_i·t and sin ω_i·(t + 1), at seven times t. Chapter 04."""
    draw = random.Random(seed)
    # At 1.2 pendulum 0 turns round between the photographs, at 3 it swings to the left.
    times = [(8, 1.2), (8, 3.0), (6, 10.0), (4, draw.uniform(20, 600)), *((8, draw.uniform(10, 5000)) for _ in range(3))]
    cases = [((frequencies(d) * t).sin(), (frequencies(d) * (t + 1)).sin()) for d, t in times]

    def by(velocity: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        """What velocity(first, second, ω) gives."""
        return lambda first, second: velocity(first, second, frequencies(2 * len(first)))

    def size(first: Tensor) -> Tensor:
        return (1 - first.square()).clamp(min=0).sqrt()

    def exact(first: Tensor, second: Tensor, omega: Tensor) -> Tensor:
        return (second - first * omega.cos()) / omega.sin()

    mistakes = [
        (by(lambda a, b, w: (b - a) / w),
         "That is the mean velocity of the second between the photographs: a fast pendulum changes it on the way."),
        (by(lambda a, b, w: b - a), "That is how far each has moved, not how fast it was at the first photograph."),
        (by(lambda a, b, w: size(a)), "The size is right, the direction is lost: the second photograph tells it."),
        (by(lambda a, b, w: -size(a)), "The size is right, the direction is lost: the second photograph tells it."),
        (by(lambda a, b, w: (b - a).sign() * size(a)),
         "Nearly: one that turns round between the photographs hangs further in at the second, but moved out before."),
        (by(lambda a, b, w: (b * w.cos() - a) / w.sin()), "That is the velocity at the second photograph, not at the first."),
        (by(lambda a, b, w: (a - b * w.cos()) / w.sin()),
         "That is the velocity at the second photograph with the other sign: have the two changed places?"),
        (by(lambda a, b, w: -exact(a, b, w)), "All signs are the other ones."),
        (by(lambda a, b, w: exact(a, b, w) * w), "That is the velocity itself: divided by ω it is wanted, cos ω_i·t."),
        (by(lambda a, b, w: b - a * w.cos()), "Nearly: a factor beside the cosine is still in there."),
        (by(lambda a, b, w: (b - a * w.cos()) / w), "Nearly: the factor beside the cosine is not ω."),
        (by(lambda a, b, w: (b - a) / w.sin()), "Nearly: sin ω_i·t comes with a factor in the formula."),
        (by(lambda a, b, w: (b + a * w.cos()) / w.sin()), "Nearly: look at the sign when you bring a term to the other side."),
        (by(lambda a, b, w: (b - a * w.sin()) / w.cos()), "Sine and cosine of ω have changed places."),
        (by(lambda a, b, w: size(b)), "You use the second photograph alone: and a root knows no sign."),
    ]  # fmt: skip
    praise = "all pendulums at seven times, also one that turns round between the photographs."
    return compare(my_velocity, cases, by(exact), mistakes, name="moving", praise=praise, tolerance=1e-3)


@check()
def bent_hand(my_clock: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_clock(row) -> which clock's hand is bent, in nine rows of tokens up to 999. Chapter 04."""
    draw = random.Random(seed)

    def angle() -> float:
        return draw.choice((-1, 1)) * draw.uniform(0.3, 2.8)

    # The first looks like a token next to it, all of whose hands are near. The second looks, to whoever reads slow hands
    # first, like a token 628 further on, where there is none any more. The fourth is bent a little only.
    bends = [(8, 0, 0.98), (8, 3, 0.63), (16, 7, angle()), (12, 2, 0.12)]
    bends += [(d, draw.randrange(1, d // 2), angle()) for d in (10, 14, 16)]
    tokens = [draw.randint(400, 600) for _ in bends] + [0, 999]  # the ends too: a search may leave them out
    bends += [(10, 2, 0.6), (8, 1, angle())]
    cases: list[tuple[Tensor]] = []
    truth: dict[bytes, tuple[int, int]] = {}
    for (d_model, clock, by), m in zip(bends, tokens, strict=True):
        hands = frequencies(d_model) * m
        hands[clock] += by
        row = torch.stack((hands.sin(), hands.cos()), dim=-1).flatten()
        truth[row.numpy().tobytes()] = clock, m
        cases.append((row,))

    def right(row: Tensor) -> int:
        return truth[row.numpy().tobytes()][0]

    def farthest_from(known: Tensor, row: Tensor) -> int:
        return int((known - row).view(-1, 2).norm(dim=1).argmax())

    def nearest(row: Tensor) -> int:
        table = sinusoidal_table(range(1000), len(row))
        return farthest_from(table[(table - row).norm(dim=1).argmin()], row)

    def as_read(row: Tensor) -> int:
        """Read as the chapter does, slowest hand first, and compare with the token that comes out."""
        omega, angles = frequencies(len(row)), torch.atan2(row[0::2], row[1::2]) % (2 * math.pi)
        m = angles[-1] / omega[-1]
        for i in reversed(range(len(omega) - 1)):
            turns = (m * omega[i] - angles[i]) / (2 * math.pi)
            m = (angles[i] + 2 * math.pi * turns.round()) / omega[i]
        return farthest_from(sinusoidal_table([round(float(m))], len(row))[0], row)

    def by_the_slowest(row: Tensor) -> int:
        slowest = math.atan2(*row[-2:].tolist()) % (2 * math.pi)
        return farthest_from(sinusoidal_table([round(slowest / float(frequencies(len(row))[-1]))], len(row))[0], row)

    def off_by_one(change: int) -> Callable[[Tensor], int]:
        return lambda row: right(row) + change

    mistakes = [
        (nearest, "You look for the nearest row, which is another token's where a fast hand is bent: count agreements."),
        (as_read, "You read the row with the bent hand in it: if a slow hand lies, all that is read after it is wrong."),
        (by_the_slowest, "You believe the slowest hand: it may be the one that lies."),
        (lambda row: 2 * right(row), "That is a column: clock i is in columns 2i and 2i + 1."),
        (lambda row: 2 * right(row) + 1, "That is a column: clock i is in columns 2i and 2i + 1."),
        (off_by_one(1), "You count clocks from 1: the fastest one is clock 0."),
        (lambda row: len(row) // 2 - 1 - right(row), "You count from the slowest: clock 0 is the fastest."),
        (lambda row: truth[row.numpy().tobytes()][1], "That is the token: which of its clocks does not agree with the row?"),
        (lambda row: 0, "You say clock 0 each time: does the row of the right token come into it?"),
        (lambda row: len(row) // 2 - 1, "You say the slowest each time: does the row of the right token come into it?"),
    ]  # fmt: skip
    praise = "nine rows, with the fastest and the slowest hand among the bent ones."
    return compare(my_clock, cases, right, mistakes, name="bent_hand", praise=praise)
