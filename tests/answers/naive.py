"""Answers to the exercises on the first ideas."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import sinusoidal_table
from tests.answers import blind

Layer = Callable[[Tensor], Tensor]


def digits(m: int, n: int) -> list[int]:
    return [(m >> b) & 1 for b in range(n)]


def axis_by_zeros(f: Layer) -> str:
    added = f(torch.zeros(2, 3, 5))
    if (added[:, 0] != added[:, 1]).any():
        return "token"
    return "text" if (added[0] != added[1]).any() else "neither"


def axis_by_equal_tokens(f: Layer) -> str:
    out = f(torch.ones(6, 4, 2, dtype=torch.float64)).numpy()
    if np.ptp(out, axis=1).max() > 1e-9:
        return "token"
    return "text" if np.ptp(out, axis=0).max() > 1e-9 else "neither"


def axis_by_counting(f: Layer) -> str:
    rows = f(torch.zeros(5, 4, 3)).tolist()
    if any(len({tuple(token) for token in text}) > 1 for text in rows):
        return "token"
    return "text" if len({tuple(text[0]) for text in rows}) > 1 else "neither"


def axis_by_spread(added: Tensor, first: str = "token", second: str = "text") -> str:
    by_token, by_text = added.std(dim=1).max(), added.std(dim=0).max()
    return first if by_token > 1e-6 else second if by_text > 1e-6 else "neither"


def random_x(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def subtracted(f: Layer) -> str:
    x = random_x(3, 4, 5)
    return axis_by_spread(f(x) - x)


def by_rows(mask: Tensor) -> Tensor:
    out = torch.zeros(mask.shape)
    for text, row in zip(mask, out, strict=True):
        length = int(text.sum())
        row[text] = torch.linspace(0, 1, length) if length > 1 else 0.0
    return out


def by_first_token(mask: Tensor) -> np.ndarray:
    numbers = mask.numpy().astype(float)
    m = np.arange(mask.shape[1]) - numbers.argmax(axis=1)[:, None]
    return numbers * m / np.maximum(numbers.sum(axis=1, keepdims=True) - 1, 1)


def by_lists(mask: Tensor) -> list[list[float]]:
    result = []
    for text in mask.tolist():
        m, row = 0, []
        for token in text:
            row.append(m / (sum(text) - 1) if token and m else 0.0)
            m += token
        result.append(row)
    return result


def without_nan(mask: Tensor) -> Tensor:
    m, length = mask.cumsum(1) - 1, mask.sum(1)[:, None]
    return (m / (length - 1)).nan_to_num(0, 0, 0).masked_fill(~mask, 0)


def counted(mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Own positions, own lengths, columns."""
    return mask.cumsum(dim=1) - 1, mask.sum(dim=1, keepdim=True), torch.arange(mask.shape[1]).expand(mask.shape)


def along_spread(f: Layer) -> str:
    y = f(torch.zeros(7, 11, 6))
    if (y.amax(dim=1) - y.amin(dim=1)).max() > 1e-9:
        return "token"
    return "text" if (y.amax(dim=0) - y.amin(dim=0)).max() > 1e-9 else "neither"


def along_other_side(f: Layer) -> str:
    a, b = torch.randn(4, 9, 5), torch.randn(4, 9, 5)
    scale = ((f(a) - f(b)) / (a - b)).median()
    y = (f(a) - scale * a).numpy()
    if not np.allclose(y, y[:, :1], atol=1e-3):
        return "token"
    return "neither" if np.allclose(y, y[:1], atol=1e-3) else "text"


def along_texts_first(f: Layer) -> str:
    y = f(torch.zeros(3, 5, 8))
    if (y != y[:1]).any():
        return "text"
    return "token" if (y != y[:, :1]).any() else "neither"


def along_one_text(f: Layer) -> str:
    y = f(torch.zeros(1, 5, 8))[0]
    return "token" if (y != y[0]).any() else "text"


def along_first_number(f: Layer) -> str:
    y = f(torch.zeros(3, 5, 8))[..., 0]
    if (y != y[:, :1]).any():
        return "token"
    return "text" if (y != y[:1]).any() else "neither"


def along_random(f: Layer) -> str:
    x = torch.randn(3, 5, 8)
    y = f(x) - x
    if not torch.allclose(y, y[:, :1].expand_as(y), atol=1e-5):
        return "token"
    return "text" if not torch.allclose(y, y[:1].expand_as(y), atol=1e-5) else "neither"


def along_wide(f: Layer) -> str:
    y = f(torch.zeros(3, 3, 3))
    return "token" if (y[:, :, 0] != y[:, :, 1]).any() else "text" if (y[0] != y[1]).any() else "neither"


def fractions_linspace(mask: Tensor) -> Tensor:
    result = torch.zeros(mask.shape, dtype=torch.float64)
    for row, keep in zip(result, mask, strict=True):
        row[keep] = torch.linspace(0, 1, int(keep.sum()), dtype=torch.float64)
    return result


def fractions_numpy(mask: Tensor) -> Any:
    m = mask.numpy()
    before = np.cumsum(m, axis=1) - m
    after = np.cumsum(m[:, ::-1], axis=1)[:, ::-1] - m
    return m * before / np.maximum(before + after, 1)


def named_by_distance(m: int, trained: int, length: int) -> Tensor:
    p = torch.arange(length, dtype=torch.float64) / (length - 1)
    return (p - (p[m] - 1 / (trained - 1))).abs().argmin()


def named_in_fractions(m: int, trained: int, length: int) -> int:
    return max(round(m - Fraction(length - 1, trained - 1)), 0)


def named_by_walking(m: int, trained: int, length: int) -> np.int64:
    p = np.linspace(0, 1, length)
    target, n = p[m] - 1 / (trained - 1), m
    while n > 0 and abs(p[n - 1] - target) < abs(p[n] - target):
        n -= 1
    return np.int64(n)


def clocks(positions: Tensor, *periods: float) -> Tensor:
    angles = 2 * math.pi * positions[:, None].double() / torch.tensor(periods)
    return torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)


def complex_clocks(positions: Tensor) -> np.ndarray:
    z = np.exp(2j * np.pi * np.outer(positions.numpy(), [0.1, 0.01, 0.001]))
    return np.hstack((z.real, z.imag)).astype(np.float32)


def clocks_in_lists(positions: Tensor) -> list[list[float]]:
    return [
        [f(2 * math.pi * m / period) for period in (12, 120, 1200) for f in (math.cos, math.sin)] for m in positions.tolist()
    ]


def saw(positions: Tensor) -> Tensor:
    """Dials that turn back at their ends, so that nothing jumps."""
    half = torch.tensor([5, 10, 50, 100, 500, 1000])
    return 1 - (positions[:, None] % (2 * half) - half).abs() / half


RIGHT: dict[str, list[Any]] = {
    "naive.binary": [
        digits,
        lambda m, n: tuple(m // 2**b % 2 for b in range(n)),
        lambda m, n: np.array([int(digit) for digit in f"{m:0{n}b}"])[::-1],
        lambda m, n: (torch.tensor(m) >> torch.arange(n)) & 1,
        lambda m, n: torch.floor(m / 2.0 ** torch.arange(n)).remainder(2),
        lambda m, n: [bool(m & 2**b) for b in range(n)],
        lambda m, n: [torch.tensor(digit) for digit in digits(m, n)],
    ],
    "naive.counts_along": [
        axis_by_zeros,
        axis_by_equal_tokens,
        axis_by_counting,
        *blind(along_spread, along_other_side),
    ],
    "naive.fractions": [by_rows, by_first_token, by_lists, without_nan, *blind(fractions_linspace, fractions_numpy)],
    "naive.named": [named_by_distance, named_in_fractions, named_by_walking],
    "naive.even_code": [
        lambda positions: clocks(positions, 10, 100, 1000),
        complex_clocks,
        clocks_in_lists,
        lambda positions: sinusoidal_table(positions, 6, base=2315),
    ],
}

WRONG: dict[str, list[Any]] = {
    "naive.binary": [
        ("no remainder", lambda m, n: [m // 2**b for b in range(n)], "neither 0 nor 1"),
        ("one digit too few", lambda m, n: digits(m, n - 1), "has shape (5,), but it should be (6,)"),
        ("as long as needed", lambda m, n: [int(digit) for digit in f"{m:b}"], "has shape (1,), but it should be (6,)"),
        ("six digits always", lambda m, n: digits(m, 6), "has shape (6,), but it should be (1,)"),
        ("text", lambda m, n: f"{m:0{n}b}", "returned a str that isn't a table of numbers"),
        ("characters", lambda m, n: list(f"{m:0{n}b}"), "returned a list that isn't a table of numbers"),
        ("not a number", lambda m, n: [math.nan] * n, "infinite or NaN"),
    ],
    "naive.counts_along": [
        ("the wrong dim", lambda f: axis_by_spread(f(torch.zeros(3, 4, 5)).transpose(0, 1)), "You have swapped the two words"),
        ("x subtracted", subtracted, "Some layers multiply x"),
        ("x as it is", lambda f: axis_by_spread(f(random_x(3, 4, 5))), 'You call every layer "token"'),
        ("the last number", lambda f: axis_by_spread(f(torch.zeros(3, 4, 5))[:, :, -1:]), "Compare whole rows"),
        ("sums", lambda f: axis_by_spread(f(torch.zeros(3, 4, 5)).sum(dim=2)), "numbers whose sum is zero"),
        ("within 0.05", lambda f: axis_by_spread((f(torch.zeros(3, 4, 5)) / 0.05).round()), "Your tolerance is too large"),
        ("not within a text", lambda f: "token" if len(f(torch.zeros(3, 3, 2)).flatten(0, 1).unique(dim=0)) > 1 else "neither",
         "even if all tokens of a text get the same ones"),
        ("an axis", lambda f: 1, "it should return a word"),
        ("two dimensions", lambda f: axis_by_spread(f(torch.zeros(4, 4))), "raised IndexError"),
        *blind(
            ("texts compared first", along_texts_first, "Compare the tokens of one text first"),
            ("one text", along_one_text, 'You call no layer "neither"'),
            ("first number only", along_first_number, "Compare whole rows"),
            ("takes x off, not its multiple", along_random, "Some layers multiply x"),
            ("numbers of one token compared", along_wide, "compare one token with another"),
        ),
    ],
    "naive.fractions": [
        ("columns of the width", lambda mask: mask * torch.linspace(0, 1, mask.shape[1]), "the column numbers and the width"),
        ("from 1", lambda mask: mask * mask.cumsum(1) / mask.sum(1, keepdim=True), "so that it ends at L - 1"),
        ("from the end", lambda mask: mask * mask.flip(1).cumsum(1).flip(1).sub(1) / (mask.sum(1)[:, None] - 1).clamp(min=1),
         "the other way round"),
        ("one text", lambda mask: by_rows(mask)[0], "has shape"),
        ("squeezed", lambda mask: by_rows(mask).squeeze(0), "has shape"),
        ("rounded", lambda mask: by_rows(mask).round(decimals=2), "rounded to 2 decimals"),
        *blind(
            ("counts the columns", lambda mask: counted(mask)[2] / (counted(mask)[1] - 1).clamp(min=1) * mask,
             "You count columns"),
            ("divides by L", lambda mask: counted(mask)[0] / mask.sum(dim=1, keepdim=True) * mask, "The largest m is L - 1"),
            ("divides by the width", lambda mask: counted(mask)[0] / (mask.shape[1] - 1) * mask, "the width of the batch"),
            ("padding not zeroed", lambda mask: counted(mask)[0] / (counted(mask)[1] - 1).clamp(min=1), "padding must be 0"),
            ("zero by zero", lambda mask: counted(mask)[0] / (counted(mask)[1] - 1) * mask, "infinite or NaN"),
            ("counts from 1", lambda mask: mask.cumsum(dim=1) / (counted(mask)[1] - 1).clamp(min=1) * mask, "Count m from 0"),
            ("the longest text's length", lambda mask: counted(mask)[0] / (mask.sum(1).max() - 1).clamp(min=1) * mask,
             "of the longest one"),
            ("whole division", lambda mask: counted(mask)[0] // (counted(mask)[1] - 1).clamp(min=1) * mask, "divide with //"),
            ("half precision", lambda mask: (counted(mask)[0] * mask).half() / (counted(mask)[1] - 1).clamp(min=1),
             "nearly right"),
        ),
    ],
    "naive.named": [
        ("the token before", lambda m, trained, length: max(m - 1, 0), "You return the previous token"),
        ("as many tokens as trained", lambda m, trained, length: max(m - (length - 1) // (trained - 1), 0), "You round"),
        ("by lengths", lambda m, trained, length: max(round(m - length / trained), 0), "so how far apart are they"),
        ("by the trained text", lambda m, trained, length: max(round(m - (trained - 1) / (length - 1)), 0),
         "`trained` and `length` were swapped"),
        ("cut off", lambda m, trained, length: max(math.floor(m - (length - 1) / (trained - 1)), 0), "at or before"),
        ("rounded up", lambda m, trained, length: max(math.ceil(m - (length - 1) / (trained - 1)), 0), "you always round up"),
        ("not whole", lambda m, trained, length: m - (length - 1) / (trained - 1), "a whole number"),
        ("in front", lambda m, trained, length: round(m - (length - 1) / (trained - 1)), "before the first token"),
        ("where it looks", lambda m, trained, length: m / (length - 1) - 1 / (trained - 1), "a whole number"),
        ("among trained positions",
         lambda m, trained, length: int((torch.linspace(0, 1, trained) - m / (length - 1) + 1 / (trained - 1)).abs().argmin()),
         "of a *training* text"),
    ],
    "naive.even_code": [
        ("ten binary digits", lambda positions: positions[:, None] >> torch.arange(10) & 1, "has shape (1000, 10)"),
        ("six binary digits", lambda positions: positions[:, None] >> torch.arange(6) & 1, "Wish 3"),
        ("three digits twice", lambda positions: positions[:, None] // torch.tensor([1, 10, 100] * 2) % 10 / 9, "Wish 3"),
        ("digits from -1 to 1", lambda positions: positions[:, None] // torch.tensor([1, 4, 16, 64, 256, 1]) % 4 / 1.5 - 1,
         "Wish 4"),
        ("the place in the list", lambda positions: clocks(torch.arange(len(positions)), 10, 100, 1000), "Wish 1"),
        ("a share of the largest", lambda positions: clocks(positions, 10, 100, float(positions.max()) + 1), "Wish 1"),
        ("hands twice as long", lambda positions: 2 * clocks(positions, 10, 100, 1000), "Wish 2"),
        ("the base of the paper", lambda positions: sinusoidal_table(positions, 6), "Wish 3"),
        ("no 2π", lambda positions: clocks(positions / (2 * math.pi), 10, 100, 1000), "changes fast enough"),
        ("dials of 7, 11 and 13", lambda positions: clocks(positions, 7, 11, 13), "are nearly the same again"),
        ("too short a slow one", lambda positions: clocks(positions, 10, 100, 500), "After 500 steps"),
        ("dials that wait", lambda positions: clocks(positions[:, None] // torch.tensor([1, 10, 100]), 10), "Wish 4"),
        ("turning back", saw, "Wish 3"),
        ("random", lambda positions: torch.rand(1000, 6, generator=torch.Generator().manual_seed(0))[positions], "Wish 3"),
        ("one dial", lambda positions: clocks(positions, 2 * math.pi).repeat(1, 3), "Wish 3"),
        ("transposed", lambda positions: clocks(positions, 10, 100, 1000).T, "transposed"),
        *blind(("divided by its largest", lambda positions: (t := clocks(positions, 10, 100, 1000)) / t.max(),
                "for a few positions from the middle")),
    ],
}  # fmt: skip
