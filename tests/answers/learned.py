"""Answers to the exercises on learned positions, in the chapter and in the assignment."""

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.answers import blind

# ── right ones ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn_out(table: Tensor, rows: int) -> Tensor:
    return F.interpolate(table.T[None], size=rows, mode="linear", align_corners=True)[0].T


def extended_by_lists(table: Tensor, rows: int) -> list[list[float]]:
    extended = []
    for row in range(rows):
        place = row * (len(table) - 1) / (rows - 1)
        low = min(int(place), len(table) - 2)
        extended.append((table[low] * (1 - place + low) + table[low + 1] * (place - low)).tolist())
    return extended


def heard_by_loops(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    table = torch.zeros(rows, gradients.shape[2])
    for text, at in zip(gradients, positions, strict=True):
        for gradient, row in zip(text, at, strict=True):
            table[row] += gradient
    return table


def heard_by_autograd(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    table = torch.zeros(rows, gradients.shape[2], dtype=gradients.dtype, requires_grad=True)
    table[positions].backward(gradients)
    assert table.grad is not None
    return table.grad


def heard_by_one_hot(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    return torch.einsum("blr,bld->rd", F.one_hot(positions, rows).to(gradients.dtype), gradients)


def heard_in_numpy(gradients: Tensor, positions: Tensor, rows: int) -> Any:
    table = np.zeros((rows, gradients.shape[2]))
    np.add.at(table, positions.numpy(), gradients.numpy())
    return table


def heard_row_by_row(gradients: Tensor, positions: Tensor, rows: int) -> list[list[float]]:
    return [gradients[positions == row].sum(dim=0).tolist() for row in range(rows)]


def room_by_reading(prompt: int, rows: int) -> int:
    table, said = list(range(rows)), 0
    while True:
        try:
            [table[m] for m in range(prompt + said)]
        except IndexError:
            return said
        said += 1


def room_by_cases(prompt: int, rows: int) -> Tensor:
    return torch.tensor(0) if prompt > rows else torch.tensor(rows - prompt + 1)


def by_cosine(before: Tensor, after: Tensor, least: float = 1 - 1e-6) -> Tensor:
    return F.cosine_similarity(before, after, dim=1) > least


def by_units(before: Tensor, after: Tensor) -> list[bool]:
    return [torch.allclose(b / b.norm(), a / a.norm(), atol=1e-5) for b, a in zip(before, after, strict=True)]


def counted(mask: Tensor) -> Tensor:
    return (mask.cumsum(dim=1) - 1).clamp(min=0)


def counted_in_numpy(mask: Tensor) -> Any:
    words = mask.numpy()
    return np.where(words, np.cumsum(words, axis=1) - 1, 1)


def counted_by_loops(mask: Tensor) -> list[list[int]]:
    table = []
    for text in mask.tolist():
        row, place = [], 0
        for word in text:
            row.append(place if word else 0)
            place += word
        table.append(row)
    return table


def from_the_first(mask: Tensor) -> Tensor:
    first = mask.int().argmax(dim=1, keepdim=True)
    return (torch.arange(mask.shape[1]) - first) % mask.shape[1]


def simulated(prompt: int, rows: int) -> int:
    table, text, said = list(range(rows)), ["word"] * prompt, 0
    while True:
        try:
            _ = [table[k] for k in range(len(text))]
        except IndexError:
            return said
        text.append("new")
        said += 1


def angles(before: Tensor, after: Tensor) -> list[bool]:
    """The part of each row across the old one, as an angle."""
    out = []
    for b, a in zip(before.double(), after.double(), strict=True):
        along = float(a @ b / b.norm())
        across = float((a - along * b / b.norm()).norm())
        out.append(math.degrees(math.atan2(across, along)) < 0.5)
    return out


def difference_of_units(before: Tensor, after: Tensor) -> Tensor:
    unit = torch.nn.functional.normalize
    return (unit(before, dim=1) - unit(after, dim=1)).norm(dim=1) < 0.005


def remainders(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(1) - 1) % mask.shape[1]


def from_first_word(mask: Tensor) -> list[list[int]]:
    """Count in plain lists, from the first word on."""
    rows = mask.tolist()
    return [[max(0, k - row.index(True)) for k in range(len(row))] for row in rows]


# ── wrong ones ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def heard_by_index(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    """`+=` by an index adds to each row once, however often it is named."""
    table = torch.zeros(rows, gradients.shape[2], dtype=gradients.dtype)
    table[positions] += gradients
    return table


def heard_by_reached(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    """Only the rows that were looked up."""
    return torch.stack([gradients[positions == row].sum(dim=0) for row in positions.unique()])


def heard_by_texts(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    """A text's own tokens overwrite each other, texts add up."""
    return torch.stack([heard_by_index(g[None], p[None], rows) for g, p in zip(gradients, positions, strict=True)]).sum(dim=0)


def heard_by_means(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    return torch.stack([gradients[positions == row].mean(dim=0) for row in range(rows)])


def by_ratios(before: Tensor, after: Tensor) -> Any:
    """All numbers of an untrained row were multiplied by the same one."""
    ratios = after.double().numpy() / before.double().numpy()
    return np.ptp(ratios, axis=1) < 1e-4


def by_most_ratios(before: Tensor, after: Tensor) -> Tensor:
    ratios = after / before
    middle = ratios.median(dim=1, keepdim=True).values
    return ((ratios - middle).abs() < 1e-3).double().mean(dim=1) > 0.5


def by_exact_ratios(before: Tensor, after: Tensor) -> Tensor:
    ratios = after.double() / before
    return (ratios[:, 0] > 0) & ((ratios - ratios[:, :1]).abs().amax(dim=1) < 1e-6)


def by_rejection(before: Tensor, after: Tensor) -> Tensor:
    """What is left of each row after its best fit by the old one."""
    fit = (before * after).sum(1) / before.square().sum(1)
    return (after - fit[:, None] * before).norm(dim=1) < 1e-3 * after.norm(dim=1)


def _cos(before: Tensor, after: Tensor) -> Tensor:
    return torch.cosine_similarity(before.double(), after.double(), dim=1)


def from_the_back(before: Tensor, after: Tensor) -> Tensor:
    still = _cos(before, after) > 0.9999
    return still.flip(0).long().cumprod(0).flip(0).bool()


def per_column(before: Tensor, after: Tensor) -> Tensor:
    return torch.cosine_similarity(before, after, dim=0) > 0.9999


def first_channel_ratio(before: Tensor, after: Tensor) -> Tensor:
    ratio = after / before
    return (ratio[:, 0] - ratio[:, 1]).abs() < 1e-3


def angle_float32(before: Tensor, after: Tensor) -> Tensor:
    return (torch.cosine_similarity(before.float(), after.float(), dim=1) - 1).abs() < 1e-9


def halves(mask: Tensor) -> Tensor:
    return (mask.double().cumsum(1) - 0.5).clamp(min=0)


def running_over(mask: Tensor) -> Tensor:
    return (mask.flatten().long().cumsum(0) - 1).clamp(min=0).view(mask.shape) % mask.shape[1]


def words_only(mask: Tensor) -> list[list[int]]:
    return [list(range(int(row.sum()))) for row in mask]


RIGHT = {
    "learned.extend": [
        drawn_out,
        lambda table, rows: np.stack(
            [np.interp(np.linspace(0, len(table) - 1, rows), np.arange(len(table)), c) for c in table.T.numpy()], axis=1
        ),
        extended_by_lists,
    ],
    "learned.heard": [
        heard_by_loops,
        heard_by_autograd,
        heard_by_one_hot,
        heard_in_numpy,
        heard_row_by_row,
        lambda g, p, rows: torch.zeros(rows, g.shape[2]).double().index_put((p,), g, accumulate=True),
        lambda g, p, rows: heard_by_loops(g.float(), p, rows),
    ],
    "learned.room": [
        lambda prompt, rows: max(rows - prompt + 1, 0),
        room_by_reading,
        room_by_cases,
        *blind(simulated, lambda p, n: len(range(p, n + 1))),
    ],
    "learned.untrained": [by_cosine, by_units, *blind(angles, difference_of_units)],
    "learned.positions": [
        counted,
        counted_in_numpy,
        counted_by_loops,
        from_the_first,
        lambda mask: counted(mask).float(),
        *blind(remainders, from_first_word),
    ],
}

WRONG = {
    "learned.extend": [
        ("pixels", lambda t, rows: F.interpolate(t.T[None], size=rows, mode="linear")[0].T, "aren't evenly spaced"),
        ("transposed", lambda t, rows: drawn_out(t, rows).T, "It looks transposed"),
        ("along the channels", lambda t, rows: F.interpolate(t[None], size=rows, mode="linear")[0], "has shape (4, 7)"),
        ("too long", lambda t, rows: 2 * drawn_out(t, rows), "Every number is 2 times what it should be"),
        (
            "curved",
            lambda t, rows: drawn_out(t, rows) * (1 + torch.linspace(0, 3.14159, rows).sin().clamp(min=0)[:, None]),
            None,
        ),
        ("not a number", lambda t, rows: drawn_out(t, rows) * math.nan, "infinite or NaN"),
        ("unchanged", lambda t, rows: t, "has shape (4, 3), but it should be (7, 3)"),
    ],
    "learned.heard": [
        ("by an index", heard_by_index, "you keep only one of their gradients"),
        ("only the reached rows", heard_by_reached, "has shape"),
        ("no sum within a text", heard_by_texts, "but not for: tokens of one text that share a row"),
        ("means, and NaN for a row without tokens", heard_by_means, "infinite or NaN"),
        ("column by column", lambda g, p, rows: F.pad(g.sum(dim=0), (0, 0, 0, rows))[:rows], "use the column of the batch"),
        ("a step", lambda g, p, rows: -0.1 * heard_by_loops(g, p, rows), "Every number is -0.1 times"),
        ("absolute", lambda g, p, rows: heard_by_loops(g, p, rows).abs(), "should be negative come out positive"),
        ("lengths", lambda g, p, rows: heard_by_loops(g, p, rows).norm(dim=1), "has shape"),
        ("per text", lambda g, p, rows: torch.stack([heard_by_loops(g[:1], p[:1], rows)] * len(g)), "has shape"),
        (
            "padding at row 0",
            lambda g, p, rows: heard_by_loops(g * (p > 0)[:, :, None], p, rows),
            "Only the first row is wrong",
        ),
        ("as many rows as needed", lambda g, p, rows: heard_by_one_hot(g, p, int(p.max()) + 1), "has shape"),
        ("rows backwards", lambda g, p, rows: heard_by_loops(g, p, rows).flip(0), "in reverse order"),
    ],
    "learned.room": [
        ("a half", lambda prompt, rows: rows / prompt, "a whole number"),
        (
            "the prompt as well",
            lambda prompt, rows: prompt + max(rows + 1 - prompt, 0) if prompt <= rows else rows + 1,
            "You ignore the length of the prompt",
        ),
        (
            "at most ten",
            lambda prompt, rows: min(10, max(rows - prompt + 1, 0)),
            None,
        ),
        *blind(
            ("none when full", lambda p, n: n - p + 1 if p < n else 0, "can still be read"),
            ("size of the difference", lambda p, n: abs(n - p) + 1, "can't be read at all"),
            ("the whole table", lambda p, n: n if p <= n else 0, "You ignore the length of the prompt"),
            ("length of the text", lambda p, n: n + 1 if p <= n else p, "length of the whole text"),
            ("swapped", lambda p, n: max(0, p - n + 1), "`prompt` and `rows` were swapped"),
        ),
    ],
    "learned.untrained": [
        ("one ratio, of any sign", by_ratios, "points in the opposite direction"),
        ("nothing across, either way", by_rejection, "points in the opposite direction"),
        ("equal", lambda b, a: (b == a).all(dim=1), "rows that haven't changed"),
        ("cosine above 0.9997", lambda b, a: by_cosine(b, a, 0.9997), "too tolerant"),
        ("shorter", lambda b, a: a.norm(dim=1) < b.norm(dim=1), "compare the lengths"),
        ("the same factor to 6 digits", by_exact_ratios, "but not for: rounding that changes the direction"),
        ("most channels", by_most_ratios, "every row untrained"),
        ("every number", lambda b, a: a / b, "has shape"),
        ("one truth", lambda b, a: torch.allclose(b, a), "has shape ()"),
        *blind(
            ("nearly unchanged", lambda b, a: torch.isclose(b, a, rtol=0.05).all(1), "have changed only a little"),
            ("cosine of 1", lambda b, a: _cos(b, a) >= 1, "too strict"),
            ("numbers of rows", lambda b, a: (_cos(b, a) > 0.9999).nonzero().flatten(), "it should be (12,)"),
            ("from the back", from_the_back, "up to the last trained"),
            (
                "factor of the last row",
                lambda b, a: torch.isclose(a, a[-1].norm() / b[-1].norm() * b, atol=1e-4).all(1),
                "from the last row",
            ),
            ("columns", per_column, "has shape (16,)"),
            ("two channels", first_channel_ratio, "You compare only two channels"),
            ("float32 too strict", angle_float32, "too strict"),
        ),
    ],
    "learned.positions": [
        ("-1 by masking", lambda mask: counted(mask).masked_fill(~mask, -1), "your padding gets -1"),
        ("too large at padding", lambda mask: counted(mask).masked_fill(~mask, mask.shape[1]), "a number that isn't a row"),
        ("the mask", lambda mask: mask.int(), "as if you returned the mask"),
        ("in 8 bits", lambda mask: counted(mask).to(torch.int8), "For a text of 300 words, you put word 128"),
        ("the words alone", lambda mask: [torch.arange(int(n)).tolist() for n in mask.sum(1)], "isn't a table of numbers"),
        ("one row", lambda mask: torch.arange(mask.shape[1]), "has shape"),
        ("one word squeezed", lambda mask: counted(mask).squeeze(), "has shape"),
        ("into the mask", lambda mask: counted(mask.logical_not_().logical_not()), "writes into its argument"),
        *blind(
            ("-1 in front", lambda mask: mask.long().cumsum(1) - 1, "your padding gets -1"),
            ("masked columns", lambda mask: torch.arange(mask.shape[1]).expand(mask.shape) * mask, "the bug itself"),
            ("backwards", lambda mask: (mask.flip(1).long().cumsum(1).flip(1) - 1).clamp(min=0), "You count from the end"),
            ("halves", halves, "Positions are whole numbers"),
            ("on through the batch", running_over, "Your count continues from one text"),
            ("words only", words_only, "isn't a table of numbers"),
        ),
    ],
}
