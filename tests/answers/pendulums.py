"""Answers to the exercises on clocks and pendulums."""

import cmath
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.geometry import wavelengths
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.answers import blind


def hands(row: Tensor) -> Tensor:
    return torch.atan2(row[0::2], row[1::2])


def read(angles: Tensor, omega: Tensor) -> float:
    """The position that a row of clocks shows, from the slowest to the fastest."""
    m = angles[-1] / omega[-1]
    for hand, rate in zip(angles.flip(0)[1:], omega.flip(0)[1:], strict=True):
        m = (hand + 2 * math.pi * torch.round((m * rate - hand) / (2 * math.pi))) / rate
    return float(m)


def turned(row_m: Tensor, row_n: Tensor) -> Tensor:
    """How far each hand turns from row n to row m, -π to π."""
    angle = hands(row_m) - hands(row_n)
    return torch.atan2(angle.sin(), angle.cos())


def offset(row_m: Tensor, row_n: Tensor) -> int:
    return round(read(turned(row_m, row_n), frequencies(len(row_m))))


def numpy_offset(row_m: Tensor, row_n: Tensor) -> np.int64:
    a, b = (row.numpy()[1::2] + 1j * row.numpy()[0::2] for row in (row_m, row_n))
    omega = 10_000.0 ** (-np.arange(0, len(row_m), 2) / len(row_m))
    far = np.arange(-int(np.pi / omega[-1]), int(np.pi / omega[-1]) + 1)
    return far[np.cos(np.outer(far, omega) - np.angle(a * b.conj())).sum(axis=1).argmax()]


def looked_up(row_m: Tensor, row_n: Tensor) -> int:
    table = sinusoidal_table(torch.arange(3000), len(row_m))
    m, n = (int((table - row).norm(dim=1).argmin()) for row in (row_m, row_n))
    return m - n


def speed(i: int, d: int) -> float:
    return float(10_000 ** (-2 * i / d))


def meet_by_turns(i: int, j: int, d: int) -> Tensor:
    """In turns per token."""
    fast, slow = wavelengths(d)[[min(i, j), max(i, j)]]
    return 1 / (1 / fast - 1 / slow)


def meet_by_halving(i: int, j: int, d: int) -> float:
    """The gap grows from 0 to a full turn."""
    low, high = 0.0, 1e6
    for _ in range(100):
        middle = (low + high) / 2
        if abs(speed(i, d) - speed(j, d)) * middle < 2 * math.pi:
            low = middle
        else:
            high = middle
    return low


def meet_by_chasing(i: int, j: int, d: int) -> np.float64:
    """Like Achilles: run to where the other one is, which has then moved on."""
    fast, slow = max(speed(i, d), speed(j, d)), min(speed(i, d), speed(j, d))
    m = 2 * math.pi / fast
    for _ in range(2000):
        m = (2 * math.pi + slow * m) / fast
    return np.float64(m)


def turn(i: int, d: int) -> float:
    return 2 * math.pi / speed(i, d)


def known(first: Tensor) -> Tensor:
    return frequencies(2 * len(first))


def moving_by_equations(first: Tensor, second: Tensor) -> np.ndarray:
    """Sine and cosine of each pendulum as two unknowns of two equations."""
    omega = known(first).numpy()
    matrix = np.stack([[np.ones_like(omega), 0 * omega], [np.cos(omega), np.sin(omega)]]).transpose(2, 0, 1)
    return np.linalg.solve(matrix, np.stack((first, second), axis=1)[:, :, None])[:, 1, 0]


def moving_by_candidates(first: Tensor, second: Tensor) -> list[float]:
    """On its way out or on its way back: which of the two leads to the second photograph?"""
    result = []
    for s, then, w in zip(first.tolist(), second.tolist(), known(first).tolist(), strict=True):
        out = math.asin(max(-1, min(1, s)))
        angle = min((out, math.pi - out), key=lambda a: abs(math.sin(a + w) - then))
        result.append(math.cos(angle))
    return result


def moving_by_cotangent(first: Tensor, second: Tensor) -> Tensor:
    omega = 1 / 10_000 ** (torch.arange(len(first)).double() / len(first))
    return second / omega.sin() - first / omega.tan()


def moving_by_complex_numbers(first: Tensor, second: Tensor) -> list[float]:
    """s = (z - z*)/2i and the same a second later: z from two equations."""
    result = []
    for s, then, w in zip(first.tolist(), second.tolist(), known(first).tolist(), strict=True):
        u = cmath.exp(1j * w)
        z = 2j * (then - s / u) / (u - 1 / u)
        result.append(z.real)
    return result


def off(row: Tensor, tolerance: float = 1e-6) -> Tensor:
    """(1000, d/2): which clocks of each token differ from the row's."""
    return ((sinusoidal_table(range(1000), len(row)) - row).abs() > tolerance).unflatten(1, (-1, 2)).any(dim=2)


def bent_by_leaving_out(row: Tensor) -> int:
    """Without which clock does some token fit?"""
    wrong = off(row)
    clocks = range(wrong.shape[1])
    fits = [bool((~wrong[:, [k for k in clocks if k != i]]).all(dim=1).any()) for i in clocks]
    return fits.index(True)


def bent_by_votes(row: Tensor) -> np.int64:
    """Each clock names the tokens that it fits; the one that does not fit the favourite is bent."""
    omega, table = frequencies(len(row)).numpy(), row.numpy()
    shown = np.arctan2(table[0::2], table[1::2])
    gap = np.arange(1000)[:, None] * omega - shown
    agree = np.cos(gap) > 1 - 1e-8
    return np.int64(np.argmin(agree[agree.sum(axis=1).argmax()]))


def bent_by_loops(row: Tensor) -> float:
    pairs = [(row[k].item(), row[k + 1].item()) for k in range(0, len(row), 2)]
    for m in range(1000):
        wrong = []
        for i, (s, c) in enumerate(pairs):
            angle = m * speed(i, len(row))
            if abs(math.sin(angle) - s) + abs(math.cos(angle) - c) > 1e-5:
                wrong.append(i)
                if len(wrong) > 1:
                    break
        if len(wrong) == 1:
            return wrong[0]
    return -1


def token(row: Tensor) -> int:
    return int(off(row).sum(dim=1).argmin())


def meet_by_periods(i: int, j: int, d: int) -> float:
    a, b = (2 * math.pi * 10000 ** (2 * k / d) for k in sorted((i, j)))
    return a * b / (b - a)


def meet_signed(i: int, j: int, d: int) -> Tensor:
    omega = frequencies(d)
    return 2 * math.pi / (omega[i] - omega[j])


def meet_channels(i: int, j: int, d: int) -> float:
    return 2 * math.pi / abs(10000 ** (-i / d) - 10000 ** (-j / d))


def meet_at_top(i: int, j: int, d: int) -> float:
    a, b = (2 * math.pi / frequencies(d)[k].item() for k in (i, j))
    return float(math.lcm(round(a), round(b)))


def moving_tangent(first: Tensor, second: Tensor) -> Tensor:
    omega = frequencies(2 * len(first))
    return (second - first) / omega.sin() + first * (omega / 2).tan()


def moving_direction(first: Tensor, second: Tensor) -> Tensor:
    return (second - first).sign() * (1 - first**2).clamp(min=0).sqrt()


def moving_half_width(first: Tensor, second: Tensor) -> Tensor:
    omega = 10000.0 ** (-2 * torch.arange(len(first)).double() / len(first))
    return (second - first * omega.cos()) / omega.sin()


def bent_trimmed(row: Tensor) -> Tensor:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return off[(off.sum(dim=1) - off.amax(dim=1)).argmin()].argmax()


def bent_complex(row: Tensor) -> int:
    hands = np.angle(row[1::2].numpy() + 1j * row[0::2].numpy())
    omega = frequencies(len(row)).numpy()
    agree = [np.abs(np.exp(1j * m * omega) - np.exp(1j * hands)) < 1e-7 for m in range(1000)]
    return int(np.argmin(max(agree, key=np.sum)))


def bent_nearest(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), len(row))
    m = (table - row).norm(dim=1).argmin()
    return int((table[m] - row).view(-1, 2).norm(dim=1).argmax())


def bent_slowest(row: Tensor) -> int:
    d = len(row)
    m = (torch.atan2(row[-2], row[-1]) / frequencies(d)[-1]).round()
    right = sinusoidal_table([float(m)], d)[0]
    return int((right - row).view(-1, 2).norm(dim=1).argmax())


def bent_channel(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), len(row))
    m = ((table - row).abs() < 1e-9).sum(dim=1).argmax()
    return int((table[m] - row).abs().argmax())


def bent_sixteen(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), 16)[:, : len(row)]
    agree = ((table - row).abs() < 1e-9).view(1000, -1, 2).all(dim=2)
    return int(agree[agree.sum(dim=1).argmax()].int().argmin())


def bent_position(row: Tensor) -> int:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return int((off.sum(dim=1) - off.amax(dim=1)).argmin())


def bent_hundred(row: Tensor) -> int:
    off = (sinusoidal_table(range(100), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return int(off[(off.sum(dim=1) - off.amax(dim=1)).argmin()].argmax())


def _bent_among(row: Tensor, tokens: range) -> int:
    off = (sinusoidal_table(tokens, len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return int(off[(off > 1e-6).sum(dim=1).argmin()].argmax())


def bent_length(row: Tensor) -> int:
    return int((row.view(-1, 2).norm(dim=1) - 1).abs().argmax())


def bent_sines(row: Tensor) -> int:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2))[..., 0].abs()
    m = (off < 1e-9).sum(dim=1).argmax()
    return int((off[m] < 1e-9).int().argmax())


RIGHT: dict[str, list[Any]] = {
    "pendulums.offset": [
        offset,
        numpy_offset,
        lambda a, b: -offset(b, a),
        lambda a, b: float(offset(a, b)),
        lambda a, b: torch.tensor([offset(a, b)]),
        lambda a, b: np.array([[offset(a, b)]]),
    ],
    "pendulums.meet": [
        lambda i, j, d: 2 * math.pi / abs(speed(i, d) - speed(j, d)),
        meet_by_turns,
        meet_by_halving,
        meet_by_chasing,
        *blind(meet_by_periods),
    ],
    "pendulums.moving": [
        lambda first, second: (second - first * known(first).cos()) / known(first).sin(),
        moving_by_equations,
        moving_by_candidates,
        moving_by_cotangent,
        moving_by_complex_numbers,
        *blind(moving_tangent),
    ],
    "pendulums.bent_hand": [
        lambda row: int(off(row)[token(row)].nonzero()[0]),
        bent_by_leaving_out,
        bent_by_votes,
        bent_by_loops,
        *blind(bent_trimmed, bent_complex),
    ],
}

WRONG: dict[str, list[Any]] = {
    "pendulums.offset": [
        ("hands anticlockwise", lambda a, b: offset(*(row.view(-1, 2).flip(1).flatten() for row in (a, b))), "the wrong sign"),
        ("cosines only", lambda a, b: round(read(turned(a, b).cos().acos(), frequencies(len(a)))), "Cosines alone"),
        ("not rounded", lambda a, b: read(turned(a, b), frequencies(len(a))), "should return a whole number"),
        ("the fastest clock", lambda a, b: turned(a, b)[0].item(), "should return a whole number"),
        ("the fastest clock, rounded", lambda a, b: round(turned(a, b)[0].item()), "the fastest clock shows on its own"),
        ("looked up in a table", looked_up, "near position 123 million"),
        ("one base for another", lambda a, b: round(read(turned(a, b), frequencies(len(a), 1000))), None),
        ("always 7", lambda a, b: 7, "7 whatever your function is given"),
        ("all hands", turned, "returned (4,) numbers, but it should return one"),
        ("all hands, NumPy", lambda a, b: turned(a, b).numpy(), "returned (4,) numbers, but it should return one"),
        ("a list", lambda a, b: [offset(a, b)], "returned a list, but it should return one number"),
        ("text", lambda a, b: str(offset(a, b)), "returned a str, but it should return one number"),
        ("a truth", lambda a, b: a[0] > b[0], "returned a bool, but it should return one number"),
        ("complex", lambda a, b: torch.tensor(1j), "returned a complex, but it should return one number"),
        ("not a number", lambda a, b: math.nan, "returned nan"),
        ("tangent of a quotient", lambda a, b: torch.atan(a[0] / (b[0] - b[0])).item() * math.inf, "returned inf"),
    ],
    "pendulums.meet": [
        ("difference of the turns", lambda i, j, d: abs(turn(i, d) - turn(j, d)), "You subtract the times"),
        ("none", lambda i, j, d: math.inf, "returned inf"),
        *blind(
            ("signed", meet_signed, "it is negative if"),
            ("half a turn", lambda i, j, d: float(meet_signed(i, j, d).abs() / 2), "point in opposite directions"),
            ("a turn of the faster hand", lambda i, j, d: 2 * math.pi / frequencies(d)[min(i, j)], "faster hand is back"),
            ("sum of the speeds", lambda i, j, d: 2 * math.pi / frequencies(d)[[i, j]].sum(), "both run clockwise"),
            ("whole tokens", lambda i, j, d: math.ceil(meet_signed(i, j, d).abs()), "You round the result up"),
            ("half the exponent", meet_channels, "contains 2i"),
            ("meets at the top", meet_at_top, "until both hands are back at the top"),
            ("without 2 pi", lambda i, j, d: 1 / (frequencies(d)[i] - frequencies(d)[j]).abs(), "one radian ahead"),
        ),
    ],
    "pendulums.moving": [
        ("cosine of the arc sine", lambda first, second: np.cos(np.arcsin(first.numpy())), "not the right signs"),
        ("whole row", lambda first, second: torch.stack((first, second), dim=1).flatten(), "has shape"),
        ("frequencies of half the width", lambda first, second: second - first * frequencies(len(first)).cos(),
         "raised RuntimeError"),
        ("in single precision", lambda first, second: moving_tangent(first.float(), second.float()), "a wide row"),
        ("three decimals", lambda first, second: moving_tangent(first, second).round(decimals=3), "rounded to 3 decimals"),
        *blind(
            ("always positive", lambda first, second: (1 - first**2).clamp(min=0).sqrt(), "not the right signs"),
            ("moved to the right, moves to the right", moving_direction, "turns back between the photographs"),
            ("the difference", lambda first, second: (second - first) / known(first), "the mean velocity"),
            ("at the second photograph", lambda first, second: (second * known(first).cos() - first) / known(first).sin(),
             "at the time of the second photograph"),
            ("half the width", moving_half_width, "half as wide"),
            ("times omega", lambda first, second: known(first) * moving_tangent(first, second), "the velocity itself"),
            ("plus for minus", lambda first, second: (second + first * known(first).cos()) / known(first).sin(),
             "Look at the sign"),
            ("not divided by the sine", lambda first, second: second - first * known(first).cos(),
             "still multiplied by another factor"),
        ),
    ],
    "pendulums.bent_hand": [
        ("off the circle", lambda row: int((row.view(-1, 2).norm(dim=1) - 1).abs().gt(1e-6).int().argmax()), "clock 0"),
        ("first of a loose match", lambda row: int(off(row, 0.3)[off(row, 0.3).sum(dim=1).argmin()].int().argmax()), None),
        ("clocks", lambda row: off(row)[token(row)], "numbers, but it should return one number"),
        *blind(
            ("nearest row", bent_nearest, "look for the nearest row"),
            ("slowest hand believed", bent_slowest, "You trust the slowest hand"),
            ("column, not clock", bent_channel, "You return the number of a column"),
            ("counts from 1", lambda row: int(bent_trimmed(row)) + 1, "count clocks from 1"),
            ("always width 16", bent_sixteen, "rows of width 16"),
            ("the token", bent_position, "You return the token"),
            ("a hundred tokens", bent_hundred, "too few tokens"),
            ("token 0 left out", lambda row: _bent_among(row, range(1, 1000)), "but not for: token 0."),
            ("token 999 left out", lambda row: _bent_among(row, range(999)), "but not for: token 999."),
            ("length of the hand", bent_length, None),
            ("a right clock", bent_sines, "the first clock that is right"),
        ),
    ],
}  # fmt: skip
