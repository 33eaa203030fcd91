"""Answers to the exercises on the first ideas."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import sinusoidal_table
from tests.answers import right, wrong

Layer = Callable[[Tensor], Tensor]


@right("naive.binary")
def digits(m: int, n: int) -> list[int]:
    return [(m >> b) & 1 for b in range(n)]


@right("naive.binary")
def binary_right(m: int, n: int) -> Any:
    return tuple(m // 2**b % 2 for b in range(n))


@right("naive.binary")
def binary_right_2(m: int, n: int) -> Any:
    return np.array([int(digit) for digit in f"{m:0{n}b}"])[::-1]


@wrong("naive.binary", "neither 0 nor 1")
def binary_no_remainder(m: int, n: int) -> Any:
    return [m // 2**b for b in range(n)]


@wrong("naive.binary", "the slowest comes first")
def binary_as_written(m: int, n: int) -> Any:
    return [int(digit) for digit in f"{m:0{n}b}"]


@wrong("naive.binary", "a Gray code")
def binary_gray(m: int, n: int) -> Any:
    return digits(m ^ m >> 1, n)


@wrong("naive.binary", "`position + 1`")
def binary_from_1(m: int, n: int) -> Any:
    return digits(m + 1, n)


def axis(added: Tensor) -> str:
    if (added != added[:, :1]).any():
        return "token"
    return "text" if (added != added[:1]).any() else "neither"


@right("naive.counts_along")
def axis_by_zeros(f: Layer) -> str:
    return axis(f(torch.zeros(2, 3, 5)))


@right("naive.counts_along")
def along_spread(f: Layer) -> str:
    y = f(torch.zeros(7, 11, 6))
    if (y.amax(dim=1) - y.amin(dim=1)).max() > 1e-9:
        return "token"
    return "text" if (y.amax(dim=0) - y.amin(dim=0)).max() > 1e-9 else "neither"


@right("naive.counts_along")
def along_other_side(f: Layer) -> str:
    a, b = torch.randn(4, 9, 5), torch.randn(4, 9, 5)
    scale = ((f(a) - f(b)) / (a - b)).median()
    y = (f(a) - scale * a).numpy()
    if not np.allclose(y, y[:, :1], atol=1e-3):
        return "token"
    return "neither" if np.allclose(y, y[:1], atol=1e-3) else "text"


@wrong("naive.counts_along", "even if all tokens of a text get the same ones")
def counts_along_not_within_a_text(f: Layer) -> Any:
    return "token" if len(f(torch.zeros(3, 3, 2)).flatten(0, 1).unique(dim=0)) > 1 else "neither"


@wrong("naive.counts_along", "Compare the tokens of one text first")
def along_texts_first(f: Layer) -> str:
    y = f(torch.zeros(3, 5, 8))
    if (y != y[:1]).any():
        return "text"
    return "token" if (y != y[:, :1]).any() else "neither"


@wrong("naive.counts_along", 'You call no layer "neither"')
def along_one_text(f: Layer) -> str:
    y = f(torch.zeros(1, 5, 8))[0]
    return "token" if (y != y[0]).any() else "text"


@wrong("naive.counts_along", "Compare whole rows")
def along_first_number(f: Layer) -> str:
    return axis(f(torch.zeros(3, 5, 8))[..., 0])


@wrong("naive.counts_along", "Some layers multiply x")
def along_random(f: Layer) -> str:
    x = torch.randn(3, 5, 8)
    y = f(x) - x
    if not torch.allclose(y, y[:, :1].expand_as(y), atol=1e-5):
        return "token"
    return "text" if not torch.allclose(y, y[:1].expand_as(y), atol=1e-5) else "neither"


@wrong("naive.counts_along", "compare one token with another")
def along_wide(f: Layer) -> str:
    y = f(torch.zeros(3, 3, 3))
    return "token" if (y[:, :, 0] != y[:, :, 1]).any() else "text" if (y[0] != y[1]).any() else "neither"


@wrong("naive.counts_along", "the last digit can differ")
def along_random_exactly(f: Layer) -> str:
    x = torch.randn(3, 5, 8)
    return axis(f(x) - x)


@wrong("naive.counts_along", "swapped the two words")
def along_other_axis(f: Layer) -> str:
    return {"token": "text", "text": "token", "neither": "neither"}[axis_by_zeros(f)]


@wrong("naive.counts_along", "tolerance is too large")
def along_coarse(f: Layer) -> str:
    return axis(f(torch.zeros(7, 11, 6)).round(decimals=1))


@right("naive.named")
def named_by_distance(m: int, trained: int, length: int) -> Tensor:
    p = torch.arange(length, dtype=torch.float64) / (length - 1)
    return (p - (p[m] - 1 / (trained - 1))).abs().argmin()


@right("naive.named")
def named_in_fractions(m: int, trained: int, length: int) -> int:
    return max(round(m - Fraction(length - 1, trained - 1)), 0)


@right("naive.named")
def named_by_walking(m: int, trained: int, length: int) -> np.int64:
    p = np.linspace(0, 1, length)
    target, n = p[m] - 1 / (trained - 1), m
    while n > 0 and abs(p[n - 1] - target) < abs(p[n] - target):
        n -= 1
    return np.int64(n)


@wrong("naive.named", "You return the previous token")
def named_the_token_before(m: int, trained: int, length: int) -> Any:
    return max(m - 1, 0)


@wrong("naive.named", "You round")
def named_as_many_tokens_as_trained(m: int, trained: int, length: int) -> Any:
    return max(m - (length - 1) // (trained - 1), 0)


@wrong("naive.named", "so how far apart are they")
def named_by_lengths(m: int, trained: int, length: int) -> Any:
    return max(round(m - length / trained), 0)


@wrong("naive.named", "at or before")
def named_cut_off(m: int, trained: int, length: int) -> Any:
    return max(math.floor(m - (length - 1) / (trained - 1)), 0)


@wrong("naive.named", "before the first token")
def named_in_front(m: int, trained: int, length: int) -> Any:
    return round(m - (length - 1) / (trained - 1))


@wrong("naive.named", "the model looks back")
def named_ahead(m: int, trained: int, length: int) -> Any:
    return round(m + (length - 1) / (trained - 1))


@right("naive.even_code")
def complex_clocks(positions: Tensor) -> np.ndarray:
    z = np.exp(2j * np.pi * np.outer(positions.numpy(), [0.1, 0.01, 0.001]))
    return np.hstack((z.real, z.imag)).astype(np.float32)


@right("naive.even_code")
def clocks_in_lists(positions: Tensor) -> list[list[float]]:
    return [
        [f(2 * math.pi * m / period) for period in (12, 120, 1200) for f in (math.cos, math.sin)] for m in positions.tolist()
    ]


@right("naive.even_code")
def even_code_right(positions: Tensor) -> Any:
    return sinusoidal_table(positions, 6, base=2315)


@wrong("naive.even_code", "has shape (1000, 10)")
def even_code_ten_binary_digits(positions: Tensor) -> Any:
    return positions[:, None] >> torch.arange(10) & 1


@wrong("naive.even_code", "Wish 3")
def even_code_six_binary_digits(positions: Tensor) -> Any:
    return positions[:, None] >> torch.arange(6) & 1


@wrong("naive.even_code", "Wish 4")
def even_code_digits_from_1_to_1(positions: Tensor) -> Any:
    return positions[:, None] // torch.tensor([1, 4, 16, 64, 256, 1]) % 4 / 1.5 - 1


def clocks(positions: Tensor, *periods: float) -> Tensor:
    angles = 2 * math.pi * positions[:, None].double() / torch.tensor(periods)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)


@wrong("naive.even_code", "Wish 1")
def even_code_the_place_in_the_list(positions: Tensor) -> Any:
    return clocks(torch.arange(len(positions)), 10, 100, 1000)


@wrong("naive.even_code", "Wish 2")
def even_code_hands_twice_as_long(positions: Tensor) -> Any:
    return 2 * clocks(positions, 10, 100, 1000)
