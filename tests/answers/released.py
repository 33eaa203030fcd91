"""Answers to the exercises on a released model."""

import cmath
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import right, wrong


@right("released.cliff")
def cliff_in_numpy(excess: list[float]) -> Any:
    means = np.convolve(excess, [0.25] * 4, mode="valid")
    return 8192 + 64 * np.argmax(means > 0.5)


@right("released.cliff")
def cliff_unfolded(excess: list[float]) -> Any:
    means = torch.tensor(excess, dtype=torch.float64).unfold(0, 4, 1).mean(dim=1)
    return 64 * ((means > 0.5).nonzero()[0, 0] + 128)


@right("released.cliff")
def cliff_by_running_sums(excess: list[float]) -> int:
    sums = np.cumsum([0.0, *excess])
    return next(8192 + 64 * i for i in range(len(excess) - 3) if sums[i + 4] - sums[i] > 2.0)


@wrong("released.cliff", "the mean of four entries")
def cliff_mean_over_64(excess: list[float]) -> Any:
    return 8192 + 64 * int(np.argmax(np.array(excess) > 0.5))


@wrong("released.cliff", "an index of")
def cliff_an_index(excess: list[float]) -> Any:
    return int(np.argmax(np.convolve(excess, [0.25] * 4, mode="valid") > 0.5))


@wrong("released.cliff", None)
def cliff_mode_full(excess: list[float]) -> Any:
    return 8192 + 64 * int(np.argmax(np.convolve(excess, [0.25] * 4) > 0.5))


@wrong("released.cliff", "even if it becomes easier later")
def cliff_backwards(excess: list[float]) -> int:
    high = [sum(excess[i : i + 4]) > 2 for i in range(len(excess) - 3)]
    while high and high[-1]:
        high.pop()
    return 8192 + 64 * len(high)


@right("released.lowest")
def lowest_by_complex(q: Tensor, k: Tensor, omega: float) -> float:
    z = complex(*q.tolist()) * complex(*k.tolist()).conjugate()
    return (math.pi - cmath.phase(z)) / omega


@right("released.lowest")
def lowest_in_numpy(q: Tensor, k: Tensor, omega: float) -> Any:
    a, b = q.numpy(), k.numpy()
    ahead = np.arctan2(a[1], a[0]) - np.arctan2(b[1], b[0])
    return np.mod(np.pi - ahead, 2 * np.pi) / omega


@right("released.lowest")
def lowest_by_cross_product(q: Tensor, k: Tensor, omega: float) -> Any:
    """Minus the key is where the query has to rotate to."""
    cross, dot = k[0] * q[1] - k[1] * q[0], -(q @ k)
    return torch.remainder(torch.atan2(cross, dot), 2 * torch.pi) / omega


def _ahead(q: Tensor, k: Tensor) -> float:
    return cmath.phase(complex(*q.tolist()) * complex(*k.tolist()).conjugate())


@wrong("released.lowest", "for `-q` instead of `q`")
def lowest_the_maximum(q: Tensor, k: Tensor, omega: float) -> Any:
    return -_ahead(q, k) % (2 * math.pi) / omega


@wrong("released.lowest", "the sign")
def lowest_arccos(q: Tensor, k: Tensor, omega: float) -> Any:
    return (math.pi - torch.acos((q @ k / q.norm() / k.norm()).clamp(-1, 1))) / omega


@wrong("released.lowest", "Take the angle modulo")
def lowest_not_modulo(q: Tensor, k: Tensor, omega: float) -> Any:
    ahead, behind = (math.atan2(x[1], x[0]) for x in (q, k))
    return (math.pi - (ahead - behind)) / omega


@wrong("released.lowest", "Return a distance")
def lowest_the_score(q: Tensor, k: Tensor, omega: float) -> Any:
    return float(q @ k)
