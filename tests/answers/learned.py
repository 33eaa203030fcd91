"""Answers to the exercises on learned positions, in the chapter and in the assignment."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.answers import right, wrong


@right("learned.extend")
def drawn_out(table: Tensor, rows: int) -> Tensor:
    return F.interpolate(table.T[None], size=rows, mode="linear", align_corners=True)[0].T


@right("learned.extend")
def extend_right(table: Tensor, rows: int) -> Any:
    return np.stack(
        [np.interp(np.linspace(0, len(table) - 1, rows), np.arange(len(table)), c) for c in table.T.numpy()], axis=1
    )


@right("learned.extend")
def extended_by_lists(table: Tensor, rows: int) -> list[list[float]]:
    extended = []
    for row in range(rows):
        place = row * (len(table) - 1) / (rows - 1)
        low = min(int(place), len(table) - 2)
        extended.append((table[low] * (1 - place + low) + table[low + 1] * (place - low)).tolist())
    return extended


@wrong("learned.extend", "aren't evenly spaced")
def extend_pixels(t: Any, rows: int) -> Any:
    return F.interpolate(t.T[None], size=rows, mode="linear")[0].T


@wrong("learned.extend", "You pad the table with zeros")
def extend_with_zeros(t: Tensor, rows: int) -> Any:
    return F.pad(t, (0, 0, 0, rows - len(t)))


@wrong("learned.extend", "You repeat the last row")
def extend_by_the_last(t: Tensor, rows: int) -> Any:
    return torch.cat((t, t[-1:].expand(rows - len(t), -1)))


@wrong("learned.extend", "start again at row 0")
def extend_round_and_round(t: Tensor, rows: int) -> Any:
    return t.repeat(rows, 1)[:rows]


@wrong("learned.extend", "are copies of old rows")
def extend_by_copies(t: Tensor, rows: int) -> Any:
    return F.interpolate(t.T[None], size=rows)[0].T


@wrong("learned.extend", "should be the last row of the old table")
def extend_a_step_too_many(t: Tensor, rows: int) -> Any:
    at = np.arange(rows) * len(t) / rows
    return np.stack([np.interp(at, np.arange(len(t)), c) for c in t.T.numpy()], axis=1)


@right("learned.heard")
def heard_by_one_hot(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    return torch.einsum("blr,bld->rd", F.one_hot(positions, rows).to(gradients.dtype), gradients)


@right("learned.heard")
def heard_row_by_row(gradients: Tensor, positions: Tensor, rows: int) -> list[list[float]]:
    return [gradients[positions == row].sum(dim=0).tolist() for row in range(rows)]


@right("learned.heard")
def heard_right(g: Any, p: Any, rows: int) -> Any:
    return torch.zeros(rows, g.shape[2]).double().index_put((p,), g, accumulate=True)


@wrong("learned.heard", "you keep only one of their gradients")
def heard_by_index(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    """`+=` by an index adds to each row once, however often it is named."""
    table = torch.zeros(rows, gradients.shape[2], dtype=gradients.dtype)
    table[positions] += gradients
    return table


@wrong("learned.heard", "You take a mean")
def heard_by_means(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
    return torch.stack([gradients[positions == row].mean(dim=0) for row in range(rows)]).nan_to_num()


@wrong("learned.heard", "use the column of the batch")
def heard_column_by_column(g: Any, p: Any, rows: int) -> Any:
    return F.pad(g.sum(dim=0), (0, 0, 0, rows))[:rows]


@wrong("learned.heard", "only the first text")
def heard_first_text(g: Tensor, p: Tensor, rows: int) -> Any:
    return heard_by_one_hot(g[:1], p[:1], rows)


@wrong("learned.heard", "every row is the sum over all tokens")
def heard_by_all(g: Tensor, p: Tensor, rows: int) -> Any:
    return g.flatten(0, 1).sum(0).repeat(rows, 1)


@right("learned.untrained")
def by_cosine(before: Tensor, after: Tensor, least: float = 1 - 1e-6) -> Tensor:
    return F.cosine_similarity(before, after, dim=1) > least


@right("learned.untrained")
def by_units(before: Tensor, after: Tensor) -> list[bool]:
    return [torch.allclose(b / b.norm(), a / a.norm(), atol=1e-5) for b, a in zip(before, after, strict=True)]


@right("learned.untrained")
def difference_of_units(before: Tensor, after: Tensor) -> Tensor:
    unit = torch.nn.functional.normalize
    return (unit(before, dim=1) - unit(after, dim=1)).norm(dim=1) < 0.005


@wrong("learned.untrained", "or only a little")
def untrained_nearly_unchanged(b: Any, a: Any) -> Any:
    return torch.isclose(b, a, rtol=0.05).all(1)


def _cos(before: Tensor, after: Tensor) -> Tensor:
    return torch.cosine_similarity(before.double(), after.double(), dim=1)


@wrong("learned.untrained", "up to the last trained")
def from_the_back(before: Tensor, after: Tensor) -> Tensor:
    still = _cos(before, after) > 0.9999
    return still.flip(0).long().cumprod(0).flip(0).bool()


@wrong("learned.untrained", "from the last row")
def untrained_factor_of_the_last_row(b: Any, a: Any) -> Any:
    return torch.isclose(a, a[-1].norm() / b[-1].norm() * b, atol=1e-4).all(1)


@wrong("learned.untrained", "You compare only two channels")
def first_channel_ratio(before: Tensor, after: Tensor) -> Tensor:
    ratio = after / before
    return (ratio[:, 0] - ratio[:, 1]).abs() < 1e-3


@wrong("learned.untrained", "too strict")
def angle_float32(before: Tensor, after: Tensor) -> Tensor:
    return (torch.cosine_similarity(before.float(), after.float(), dim=1) - 1).abs() < 1e-9


@wrong("learned.untrained", "the opposite direction")
def untrained_either_way(before: Tensor, after: Tensor) -> Any:
    return _cos(before, after).abs() > 0.9999


@wrong("learned.untrained", "compare the lengths")
def untrained_not_longer(before: Tensor, after: Tensor) -> Any:
    return after.norm(dim=1) <= before.norm(dim=1) * (1 + 1e-6)


@wrong("learned.untrained", "too tolerant")
def untrained_roughly(before: Tensor, after: Tensor) -> Any:
    return _cos(before, after) > 0.999


@right("learned.positions")
def counted(mask: Tensor) -> Tensor:
    return (mask.cumsum(dim=1) - 1).clamp(min=0)


@right("learned.positions")
def remainders(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(1) - 1) % mask.shape[1]


@right("learned.positions")
def from_first_word(mask: Tensor) -> list[list[int]]:
    rows = mask.tolist()
    return [[max(0, k - row.index(True)) for k in range(len(row))] for row in rows]


@wrong("learned.positions", "such as -1")
def positions_1_in_front(mask: Tensor) -> Any:
    return mask.long().cumsum(1) - 1


@wrong("learned.positions", "the bug itself")
def positions_masked_columns(mask: Tensor) -> Any:
    return torch.arange(mask.shape[1]).expand(mask.shape) * mask


@wrong("learned.positions", "You count from the end")
def positions_backwards(mask: Tensor) -> Any:
    return (mask.flip(1).long().cumsum(1).flip(1) - 1).clamp(min=0)


@wrong("learned.positions", "Positions are whole numbers")
def halves(mask: Tensor) -> Tensor:
    return (mask.double().cumsum(1) - 0.5).clamp(min=0)


@wrong("learned.positions", "Your count continues from one text")
def running_over(mask: Tensor) -> Tensor:
    return (mask.flatten().long().cumsum(0) - 1).clamp(min=0).view(mask.shape) % mask.shape[1]


@wrong("learned.positions", "count from 1")
def positions_from_1(mask: Tensor) -> Tensor:
    return counted(mask) + 1
