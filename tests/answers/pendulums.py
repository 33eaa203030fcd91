"""Answers to assignment 4: right ones written differently, and wrong ones with what their verdict must say."""

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.geometry import wavelengths
from posenc_course.sinusoidal import frequencies, sinusoidal_table


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
    omega = 1 / 10_000 ** (torch.arange(len(first)) / len(first))
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


def worst(row: Tensor, m: int) -> int:
    return int((sinusoidal_table([m], len(row))[0] - row).unflatten(0, (-1, 2)).norm(dim=1).argmax())


def read(row: Tensor) -> int:
    omega, angles = frequencies(len(row)), torch.atan2(row[0::2], row[1::2]) % (2 * torch.pi)
    m = angles[-1] / omega[-1]
    for i in reversed(range(len(omega) - 1)):
        turns = torch.round((m * omega[i] - angles[i]) / (2 * torch.pi))
        m = (angles[i] + 2 * torch.pi * turns) / omega[i]
    return round(m.item())


def nearest(row: Tensor) -> int:
    return int(torch.cdist(row[None], sinusoidal_table(range(1000), len(row))).argmin())


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "pendulums.meet": [
        lambda i, j, d: 2 * math.pi / abs(speed(i, d) - speed(j, d)),
        meet_by_turns,
        meet_by_halving,
        meet_by_chasing,
    ],
    "pendulums.moving": [
        lambda first, second: (second - first * known(first).cos()) / known(first).sin(),
        moving_by_equations,
        moving_by_candidates,
        moving_by_cotangent,
        moving_by_complex_numbers,
    ],
    "pendulums.bent_hand": [
        lambda row: int(off(row)[token(row)].nonzero()[0]),
        bent_by_leaving_out,
        bent_by_votes,
        bent_by_loops,
    ],
}

WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "pendulums.meet": {
        "signed": (lambda i, j, d: 2 * math.pi / (speed(i, d) - speed(j, d)), "is negative"),
        "signed otherwise": (lambda i, j, d: 2 * math.pi / (speed(j, d) - speed(i, d)), "is negative"),
        "towards each other": (lambda i, j, d: 2 * math.pi / (speed(i, d) + speed(j, d)), "both run clockwise"),
        "difference of the turns": (lambda i, j, d: abs(turn(i, d) - turn(j, d)), "You subtract the turns"),
        "difference of the turns, signed": (lambda i, j, d: turn(j, d) - turn(i, d), None),
        "a turn of the faster": (lambda i, j, d: min(turn(i, d), turn(j, d)), "the faster hand is back"),
        "a turn of the slower": (lambda i, j, d: max(turn(i, d), turn(j, d)), "the slower hand is back"),
        "one radian ahead": (lambda i, j, d: 1 / abs(speed(i, d) - speed(j, d)), "one radian ahead"),
        "half a turn ahead": (lambda i, j, d: math.pi / abs(speed(i, d) - speed(j, d)), "opposite directions"),
        "product": (lambda i, j, d: turn(i, d) * turn(j, d), "multiply the turns"),
        "degrees": (lambda i, j, d: 360 / abs(speed(i, d) - speed(j, d)), "360 degrees"),
        "rounded": (lambda i, j, d: round(2 * math.pi / abs(speed(i, d) - speed(j, d))), "Rounded"),
        "the next token": (lambda i, j, d: math.ceil(2 * math.pi / abs(speed(i, d) - speed(j, d))), "Rounded up"),
        "at the start": (lambda i, j, d: 0.0, "At position 0"),
        "both at the top": (lambda i, j, d: math.lcm(round(turn(i, d)), round(turn(j, d))), None),
    },
    "pendulums.moving": {
        "mean velocity": (lambda first, second: (second - first) / known(first), "the mean velocity"),
        "way": (lambda first, second: second - first, "how far each has moved"),
        "root": (lambda first, second: torch.sqrt(1 - first**2), "direction is lost"),
        "cosine of the arc sine": (lambda first, second: np.cos(np.arcsin(first.numpy())), "direction is lost"),
        "root with the direction of the way": (
            lambda first, second: torch.where(second > first, 1, -1) * torch.sqrt(1 - first**2),
            "turns round",
        ),
        "at the second": (
            lambda first, second: (second * known(first).cos() - first) / known(first).sin(),
            "at the second photograph",
        ),
        "photographs exchanged": (
            lambda first, second: (first - second * known(first).cos()) / known(first).sin(),
            "have the two changed places",
        ),
        "sign": (lambda first, second: (first * known(first).cos() - second) / known(first).sin(), "All signs"),
        "not divided by ω": (
            lambda first, second: known(first) * (second - first * known(first).cos()) / known(first).sin(),
            "divided by ω it is wanted",
        ),
        "not divided": (lambda first, second: second - first * known(first).cos(), "a factor beside the cosine"),
        "divided by ω": (lambda first, second: (second - first * known(first).cos()) / known(first), "is not ω"),
        "no cosine": (lambda first, second: (second - first) / known(first).sin(), "comes with a factor"),
        "plus": (lambda first, second: (second + first * known(first).cos()) / known(first).sin(), "bring a term"),
        "exchanged": (lambda first, second: (second - first * known(first).sin()) / known(first).cos(), "have changed places"),
        "whole row": (lambda first, second: torch.stack((first, second), dim=1).flatten(), "has shape"),
        "frequencies of half the width": (
            lambda first, second: (second - first * frequencies(len(first)).cos()) / frequencies(len(first)).sin(),
            "raised RuntimeError",
        ),
        "the second root": (lambda first, second: torch.sqrt(1 - second**2), "the second photograph alone"),
    },
    "pendulums.bent_hand": {
        "nearest row": (lambda row: worst(row, nearest(row)), "the nearest row"),
        "read with the bent hand": (lambda row: worst(row, read(row)), "the bent hand in it"),
        "the slowest believed": (
            lambda row: worst(
                row,
                round((torch.atan2(row[-2], row[-1]) % (2 * torch.pi) / frequencies(len(row))[-1]).item()),
            ),
            "the slowest hand",
        ),
        "column": (lambda row: 2 * bent_by_leaving_out(row), "is a column"),
        "from 1": (lambda row: bent_by_leaving_out(row) + 1, "from 1"),
        "from the slowest": (lambda row: len(row) // 2 - 1 - bent_by_leaving_out(row), "clock 0 is the fastest"),
        "token": (token, "is the token"),
        "off the circle": (
            lambda row: int((row.unflatten(0, (-1, 2)).norm(dim=1) - 1).abs().gt(1e-6).int().argmax()),
            "clock 0",
        ),
        "first of a loose match": (
            lambda row: int(off(row, 0.3)[off(row, 0.3).sum(dim=1).argmin()].int().argmax()),
            None,
        ),
        "clocks": (lambda row: off(row)[token(row)], "numbers, it should be one number"),
        "the slowest": (lambda row: len(row) // 2 - 1, "the slowest each time"),
    },
}
