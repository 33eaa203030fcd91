"""Answers to the exercises on a released model."""

import cmath
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

# ── the cliff ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def cliff_by_loop(excess: list[float]) -> Any:
    for i in range(len(excess) - 3):
        if sum(excess[i : i + 4]) > 2:
            return 8192 + 64 * i
    return None


def cliff_in_numpy(excess: list[float]) -> Any:
    means = np.convolve(excess, [0.25] * 4, mode="valid")
    return 8192 + 64 * np.argmax(means > 0.5)


def cliff_unfolded(excess: list[float]) -> Any:
    means = torch.tensor(excess, dtype=torch.float64).unfold(0, 4, 1).mean(dim=1)
    return 64 * ((means > 0.5).nonzero()[0, 0] + 128)


def cliff_by_running_sums(excess: list[float]) -> int:
    sums = np.cumsum([0.0, *excess])
    return next(8192 + 64 * i for i in range(len(excess) - 3) if sums[i + 4] - sums[i] > 2.0)


def cliff_backwards(excess: list[float]) -> int:
    """The last one from which everything is high, which is another question."""
    high = [sum(excess[i : i + 4]) > 2 for i in range(len(excess) - 3)]
    while high and high[-1]:
        high.pop()
    return 8192 + 64 * len(high)


# ── a window and the first tokens ────────────────────────────────────────────────────────────────────────────────────────


def seen_by_list(m: int, n: int, window: int, first: int) -> int:
    keys = [key for key in range(m + 1) if key < first or key > m - window]
    return len(keys) - 1 - keys.index(n) if n in keys else -1


def seen_by_counting(m: int, n: int, window: int, first: int) -> int:
    if n > m or (n >= first and n <= m - window):
        return -1
    hidden = range(max(first, n), max(first, n, m - window + 1))
    return m - n - len(hidden)


def seen_in_cases(m: int, n: int, window: int, first: int) -> Any:
    gone = max(0, m + 1 - window - first)  # keys between the first ones and the window
    if n > m or first <= n < first + gone:
        return np.int64(-1)
    return torch.tensor(m - n - (gone if n < first else 0))


def seen_everything(m: int, n: int, window: int, first: int) -> int:
    return m - n if n <= m else -1


def seen_first_always(m: int, n: int, window: int, first: int) -> int:
    return abs(m - n) if abs(m - n) < window else window + first - 1 - n if n < first else -1


# ── where a pair is lowest ───────────────────────────────────────────────────────────────────────────────────────────────


def lowest_by_complex(q: Tensor, k: Tensor, omega: float) -> float:
    z = complex(*q.tolist()) * complex(*k.tolist()).conjugate()
    return (math.pi - cmath.phase(z)) / omega


def lowest_by_trying(q: Tensor, k: Tensor, omega: float) -> Any:
    distances = torch.arange(round(2 * math.pi / omega) + 1, dtype=torch.float64)
    angles = distances * omega
    rotated = torch.stack((q[0] * angles.cos() - q[1] * angles.sin(), q[0] * angles.sin() + q[1] * angles.cos()), dim=1)
    return (rotated @ k).argmin()


def lowest_in_numpy(q: Tensor, k: Tensor, omega: float) -> Any:
    a, b = q.numpy(), k.numpy()
    ahead = np.arctan2(a[1], a[0]) - np.arctan2(b[1], b[0])
    return np.mod(np.pi - ahead, 2 * np.pi) / omega


def lowest_by_cross_product(q: Tensor, k: Tensor, omega: float) -> Any:
    """Minus the key is where the query has to rotate to."""
    cross, dot = k[0] * q[1] - k[1] * q[0], -(q @ k)
    return torch.remainder(torch.atan2(cross, dot), 2 * torch.pi) / omega


def lowest_nearby(q: Tensor, k: Tensor, omega: float) -> Any:
    """Only the first thousand distances."""
    angles = torch.arange(1000, dtype=torch.float64) * omega
    z = torch.polar(torch.ones_like(angles), angles) * complex(*q.tolist()) * complex(*k.tolist()).conjugate()
    return z.real.argmin()


RIGHT: dict[str, list[Any]] = {
    "released.cliff": [cliff_by_loop, cliff_in_numpy, cliff_unfolded, cliff_by_running_sums],
    "released.seen_at": [seen_by_list, seen_by_counting, seen_in_cases],
    "released.lowest": [lowest_by_complex, lowest_by_trying, lowest_in_numpy, lowest_by_cross_product],
}

WRONG: dict[str, list[Any]] = {
    "released.cliff": [
        ("mean over 64", lambda excess: 8192 + 64 * int(np.argmax(np.array(excess) > 0.5)), "a single hard passage"),
        ("an index", lambda excess: int(np.argmax(np.convolve(excess, [0.25] * 4, mode="valid") > 0.5)), "an index of"),
        ("mode full", lambda excess: 8192 + 64 * int(np.argmax(np.convolve(excess, [0.25] * 4) > 0.5)), None),
        ("the last rise", cliff_backwards, "an easy passage behind the cliff"),
        ("the steepest step", lambda excess: 8192 + 64 * int(np.argmax(np.diff(excess))), None),
        ("nothing found", lambda excess: None, "return"),
    ],
    "released.seen_at": [
        ("no window", seen_everything, "right in"),
        ("future first tokens", seen_first_always, "right in"),
        ("positions in the text", lambda m, n, window, first: m - n if m >= n and (n < first or m - n < window) else -1,
         "those in the text"),
        ("True for seen", lambda m, n, window, first: n <= m and (n < first or m - n < window), "it should return"),
        ("wrong end", lambda m, n, window, first: seen_by_list(m, m - n, window, first), None),
        ("window with the first", lambda m, n, window, first: seen_by_list(m, n, window - first, first), "right in"),
    ],
    "released.lowest": [
        ("the maximum", lambda q, k, omega: -_ahead(q, k) % (2 * math.pi) / omega, "contributes most"),
        ("exchanged", lambda q, k, omega: lowest_by_complex(k, q, omega), "direction wrong"),
        ("arccos", lambda q, k, omega: (math.pi - torch.acos((q @ k / q.norm() / k.norm()).clamp(-1, 1))) / omega, "the sign"),
        ("nearby only", lowest_nearby, "right in"),
        ("the score", lambda q, k, omega: float(q @ k), None),
        ("in full rotations", lambda q, k, omega: lowest_by_complex(q, k, omega) * omega / (2 * math.pi), None),
    ],
}  # fmt: skip


def _ahead(q: Tensor, k: Tensor) -> float:
    return cmath.phase(complex(*q.tolist()) * complex(*k.tolist()).conjugate())
