"""Answers to the exercises on clocks and pendulums."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.answers import right, wrong


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


@right("pendulums.offset")
def offset(row_m: Tensor, row_n: Tensor) -> int:
    return round(read(turned(row_m, row_n), frequencies(len(row_m))))


@right("pendulums.offset")
def numpy_offset(row_m: Tensor, row_n: Tensor) -> np.int64:
    a, b = (row.numpy()[1::2] + 1j * row.numpy()[0::2] for row in (row_m, row_n))
    omega = 10_000.0 ** (-np.arange(0, len(row_m), 2) / len(row_m))
    far = np.arange(-int(np.pi / omega[-1]), int(np.pi / omega[-1]) + 1)
    return far[np.cos(np.outer(far, omega) - np.angle(a * b.conj())).sum(axis=1).argmax()]


@right("pendulums.offset")
def offset_right(a: Any, b: Any) -> Any:
    return -offset(b, a)


@wrong("pendulums.offset", "the wrong sign")
def offset_hands_anticlockwise(a: Any, b: Any) -> Any:
    return offset(*(row.view(-1, 2).flip(1).flatten() for row in (a, b)))


@wrong("pendulums.offset", "Cosines alone")
def offset_cosines_only(a: Any, b: Any) -> Any:
    return round(read(turned(a, b).cos().acos(), frequencies(len(a))))


@wrong("pendulums.offset", "the fastest clock shows on its own")
def offset_the_fastest_clock_rounded(a: Any, b: Any) -> Any:
    return round(turned(a, b)[0].item())


@wrong("pendulums.offset", "off by a full turn")
def offset_unwrapped(a: Tensor, b: Tensor) -> Any:
    return round(read(hands(a) - hands(b), frequencies(len(a))))


@wrong("pendulums.offset", "negative ones come out too large")
def offset_forwards(a: Tensor, b: Tensor) -> Any:
    return round(read(turned(a, b) % (2 * math.pi), frequencies(len(a))))


@wrong("pendulums.offset", "what the slowest clock shows")
def offset_slowest(a: Tensor, b: Tensor) -> Any:
    return round(float(turned(a, b)[-1] / frequencies(len(a))[-1]))


def known(first: Tensor) -> Tensor:
    return frequencies(2 * len(first))


@right("pendulums.moving")
def moving_right(first: Tensor, second: Tensor) -> Any:
    return (second - first * known(first).cos()) / known(first).sin()


@right("pendulums.moving")
def moving_by_cotangent(first: Tensor, second: Tensor) -> Tensor:
    omega = 1 / 10_000 ** (torch.arange(len(first)).double() / len(first))
    return second / omega.sin() - first / omega.tan()


@right("pendulums.moving")
def moving_tangent(first: Tensor, second: Tensor) -> Tensor:
    omega = frequencies(2 * len(first))
    return (second - first) / omega.sin() + first * (omega / 2).tan()


@wrong("pendulums.moving", "not the right signs")
def moving_always_positive(first: Tensor, second: Tensor) -> Any:
    return (1 - first**2).clamp(min=0).sqrt()


@wrong("pendulums.moving", "turns back between the photographs")
def moving_direction(first: Tensor, second: Tensor) -> Tensor:
    return (second - first).sign() * (1 - first**2).clamp(min=0).sqrt()


@wrong("pendulums.moving", "the mean velocity")
def moving_the_difference(first: Tensor, second: Tensor) -> Any:
    return (second - first) / known(first)


@wrong("pendulums.moving", "at the time of the second photograph")
def moving_at_the_second_photograph(first: Tensor, second: Tensor) -> Any:
    return (second * known(first).cos() - first) / known(first).sin()


@wrong("pendulums.moving", "half as wide")
def moving_half_width(first: Tensor, second: Tensor) -> Tensor:
    omega = 10000.0 ** (-2 * torch.arange(len(first)).double() / len(first))
    return (second - first * omega.cos()) / omega.sin()


@wrong("pendulums.moving", "Look at the sign")
def moving_plus_for_minus(first: Tensor, second: Tensor) -> Any:
    return (second + first * known(first).cos()) / known(first).sin()


@wrong("pendulums.moving", "still multiplied by another factor")
def moving_not_divided(first: Tensor, second: Tensor) -> Any:
    return second - first * known(first).cos()


@wrong("pendulums.moving", "without its factor")
def moving_no_cosine(first: Tensor, second: Tensor) -> Any:
    return (second - first) / known(first).sin()


def off(row: Tensor, tolerance: float = 1e-6) -> Tensor:
    """(1000, d/2): which clocks of each token differ from the row's."""
    return ((sinusoidal_table(range(1000), len(row)) - row).abs() > tolerance).unflatten(1, (-1, 2)).any(dim=2)


def token(row: Tensor) -> int:
    return int(off(row).sum(dim=1).argmin())


@right("pendulums.bent_hand")
def bent_hand_right(row: Tensor) -> Any:
    return int(off(row)[token(row)].nonzero()[0])


@right("pendulums.bent_hand")
def bent_trimmed(row: Tensor) -> Tensor:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return off[(off.sum(dim=1) - off.amax(dim=1)).argmin()].argmax()


@right("pendulums.bent_hand")
def bent_complex(row: Tensor) -> int:
    hands = np.angle(row[1::2].numpy() + 1j * row[0::2].numpy())
    omega = frequencies(len(row)).numpy()
    agree = [np.abs(np.exp(1j * m * omega) - np.exp(1j * hands)) < 1e-7 for m in range(1000)]
    return int(np.argmin(max(agree, key=np.sum)))


@wrong("pendulums.bent_hand", "look for the nearest row")
def bent_nearest(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), len(row))
    m = (table - row).norm(dim=1).argmin()
    return int((table[m] - row).view(-1, 2).norm(dim=1).argmax())


@wrong("pendulums.bent_hand", "You trust the slowest hand")
def bent_slowest(row: Tensor) -> int:
    d = len(row)
    m = (torch.atan2(row[-2], row[-1]) / frequencies(d)[-1]).round()
    right = sinusoidal_table([float(m)], d)[0]
    return int((right - row).view(-1, 2).norm(dim=1).argmax())


@wrong("pendulums.bent_hand", "You return the number of a column")
def bent_channel(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), len(row))
    m = ((table - row).abs() < 1e-9).sum(dim=1).argmax()
    return int((table[m] - row).abs().argmax())


@wrong("pendulums.bent_hand", "rows of width 16")
def bent_sixteen(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), 16)[:, : len(row)]
    agree = ((table - row).abs() < 1e-9).view(1000, -1, 2).all(dim=2)
    return int(agree[agree.sum(dim=1).argmax()].int().argmin())


@wrong("pendulums.bent_hand", "You return the token")
def bent_position(row: Tensor) -> int:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return int((off.sum(dim=1) - off.amax(dim=1)).argmin())


@wrong("pendulums.bent_hand", "too few tokens")
def bent_among_a_hundred(row: Tensor) -> int:
    found = off(row)[:100]
    return int(found[found.sum(dim=1).argmin()].int().argmax())


@wrong("pendulums.bent_hand", "only one of a hand's two numbers")
def bent_sines(row: Tensor) -> int:
    found = (sinusoidal_table(range(1000), len(row)) - row)[:, 0::2].abs() > 1e-6
    return int(found[found.sum(dim=1).argmin()].int().argmax())
