"""Answers on the sinusoidal table: right ones that are written differently, and wrong ones with words of their verdict."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.answers import blind

Answer = Callable[..., Any]


def two_loops(angle: Callable[[int, int, int], float], *, first: Answer = math.sin, second: Answer = math.cos) -> Answer:
    """A table as a beginner writes it, with angle(m, channel, d_model)."""

    def table(positions: Tensor, d_model: int) -> Tensor:
        rows = [[(second if c % 2 else first)(angle(m, c, d_model)) for c in range(d_model)] for m in positions.tolist()]
        return torch.tensor(rows)

    return table


def pair_angle(m: float, c: int, d: int) -> float:
    return float(m / 10_000 ** ((c - c % 2) / d))


def numpy_table(positions: Tensor, d_model: int) -> np.ndarray:
    angles = np.outer(positions.numpy(), 10_000.0 ** (-np.arange(0, d_model, 2) / d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), d_model)


def float32_table(positions: Tensor, d_model: int) -> Tensor:
    table = torch.zeros(len(positions), d_model, requires_grad=True).clone()
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
    table[:, 0::2], table[:, 1::2] = torch.sin(positions[:, None] * rate), torch.cos(positions[:, None] * rate)
    return table


def shifting_in_place(positions: Tensor, d_model: int) -> Tensor:
    positions += 3
    return sinusoidal_table(positions, d_model)


def filled(table: Tensor) -> Tensor:
    sines, cosines = table.chunk(2, dim=1)  # the first chunk is the longer one
    out = torch.zeros(table.shape)
    out[:, ::2] = sines
    out[:, 1::2] = cosines
    return out


def sorted_columns(table: Tensor) -> np.ndarray:
    columns = table.numpy().T
    sines = math.ceil(len(columns) / 2)
    both = [(i, 0, c) for i, c in enumerate(columns[:sines])] + [(i, 1, c) for i, c in enumerate(columns[sines:])]
    return np.stack([c for _, _, c in sorted(both, key=lambda entry: entry[:2])], axis=1)


def one_by_one(table: Tensor) -> list[list[float]]:
    rows = []
    for row in table.tolist():
        sines, new = row[: -(-len(row) // 2)], []
        cosines = row[len(sines) :]
        while sines or cosines:
            new.append(sines.pop(0))
            if cosines:
                new.append(cosines.pop(0))
        rows.append(new)
    return rows


def inverse_order(table: Tensor) -> Tensor:
    order = torch.cat((torch.arange(0, table.shape[1], 2), torch.arange(1, table.shape[1], 2)))
    return table[:, order.argsort()]


def stacked(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    return torch.stack((table[:, :half], table[:, half : 2 * half]), dim=-1).flatten(1)


def cosine_first_always(table: Tensor) -> Tensor:
    out = torch.empty_like(table)
    out[:, 1::2], out[:, 0::2] = table.chunk(2, dim=1)
    return out


def hands(table: Tensor) -> Tensor:
    return torch.atan2(table[:, 0::2], table[:, 1::2])


def by_remainder(table: Tensor) -> Tensor:
    turned = hands(table)[1:] - hands(table)[:-1]
    return (turned + torch.pi) % (2 * torch.pi) - torch.pi


def by_complex_numbers(table: Tensor) -> np.ndarray:
    z = table.numpy()[:, 1::2] + 1j * table.numpy()[:, 0::2]
    return np.angle(z[1:] / z[:-1])


def by_angle_addition(table: Tensor) -> Tensor:
    (s, c), (s_next, c_next) = ((t[:, 0::2], t[:, 1::2]) for t in (table[:-1], table[1:]))
    return torch.atan2(s_next * c - c_next * s, c_next * c + s_next * s)


def by_loops(table: Tensor) -> list[list[float]]:
    result = []
    for before, after in zip(table.tolist()[:-1], table.tolist()[1:], strict=True):
        row = []
        for i in range(len(before) // 2):
            turn = math.atan2(after[2 * i], after[2 * i + 1]) - math.atan2(before[2 * i], before[2 * i + 1])
            while turn > math.pi:
                turn -= 2 * math.pi
            while turn < -math.pi:
                turn += 2 * math.pi
            row.append(turn)
        result.append(row)
    return result


def by_unwrap(table: Tensor) -> Tensor:
    return torch.from_numpy(np.diff(np.unwrap(hands(table).numpy(), axis=0), axis=0)).float()


def steps(table: Tensor, tolerance: float = 1e-6) -> np.ndarray:
    return np.abs(by_complex_numbers(table) - frequencies(table.shape[1]).numpy()) > tolerance


def verdict(wrong: np.ndarray, row: Callable[[list[int]], int]) -> str:
    if not wrong.any():
        return "none"
    if (pairs := np.flatnonzero(wrong.all(axis=0))).size:
        return f"pair {pairs[0]}"
    return f"row {row(np.flatnonzero(wrong.any(axis=1)).tolist())}"


def row_by_steps(wrong_steps: list[int]) -> int:
    if len(wrong_steps) == 2:
        return wrong_steps[1]
    return 0 if wrong_steps[0] == 0 else wrong_steps[0] + 1


def by_leaving_out(table: Tensor) -> str:
    """Which row or pair must go for the rest to be right?"""
    omega = frequencies(table.shape[1])
    length, pairs = len(table), table.shape[1] // 2

    def fits(rows: list[int], kept: list[int]) -> bool:
        angles = torch.tensor([[math.atan2(*table[r, 2 * i : 2 * i + 2].tolist()) for i in kept] for r in rows])
        expected = torch.tensor(rows).diff()[:, None] * omega[kept]
        return bool(((angles.double().diff(dim=0) - expected).cos() > 1 - 1e-8).all())

    everything = list(range(length)), list(range(pairs))
    if fits(*everything):
        return "none"
    for r in range(length):
        if fits([k for k in everything[0] if k != r], everything[1]):
            return f"row {r}"
    return next(f"pair {i}" for i in range(pairs) if fits(everything[0], [k for k in everything[1] if k != i]))


def by_search(table: Tensor) -> str:
    """Lay the paper's table beside it, begun anywhere."""
    length, d = table.shape
    paper = sinusoidal_table(range(6000 + length), d).unfold(0, length, 1).transpose(1, 2)  # (6001, L, d)
    off = ((paper - table).abs() > 1e-4).unflatten(2, (-1, 2)).any(dim=3)  # (6001, L, d/2)
    best = off[off.sum(dim=(1, 2)).argmin()]
    if not best.any():
        return "none"
    rows, pairs = best.any(dim=1), best.any(dim=0)
    return f"row {int(rows.int().argmax())}" if rows.sum() == 1 else f"pair {int(pairs.int().argmax())}"


def layout_sorted(table: Tensor) -> Tensor:
    d = table.shape[1]
    places = [2 * c if c < (d + 1) // 2 else 2 * (c - (d + 1) // 2) + 1 for c in range(d)]
    return table[:, sorted(range(d), key=places.__getitem__)]


def layout_padded(table: Tensor) -> Tensor:
    d = table.shape[1]
    even = torch.nn.functional.pad(table, (0, d % 2))
    return torch.stack(even.chunk(2, dim=1), dim=2).reshape(len(table), -1)[:, :d]


def layout_floor(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    new = torch.zeros_like(table)
    for i in range(half):
        new[:, 2 * i], new[:, 2 * i + 1] = table[:, i], table[:, half + i]
    return new


def layout_cosine_first(table: Tensor) -> Tensor:
    new, half = torch.empty_like(table), table.shape[1] // 2
    new[:, 0::2], new[:, 1::2] = table[:, half:], table[:, :half]
    return new


def layout_drops(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    return torch.stack((table[:, :half], table[:, half : 2 * half]), dim=2).flatten(1)


def layout_rows(table: Tensor) -> Tensor:
    new, half = torch.empty_like(table), (len(table) + 1) // 2
    new[0::2], new[1::2] = table[:half], table[half:]
    return new


def turns_complex(table: Tensor) -> Tensor:
    z = torch.complex(table[:, 1::2].contiguous(), table[:, 0::2].contiguous())
    return (z[1:] * z[:-1].conj()).angle()


def turns_numpy(table: Tensor) -> Any:
    angles = np.arctan2(table[:, 0::2].numpy(), table[:, 1::2].numpy())
    return np.diff(np.unwrap(angles, axis=0), axis=0)


def turns_arcsine(table: Tensor) -> Tensor:
    s, c = table[:, 0::2], table[:, 1::2]
    return (s[1:] * c[:-1] - c[1:] * s[:-1]).clamp(-1, 1).asin()


def turns_from_row_zero(table: Tensor) -> Tensor:
    z = torch.complex(table[:, 1::2].contiguous(), table[:, 0::2].contiguous())
    return (z[1:] * z[:1].conj()).angle()


def turns_halves(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    change = torch.atan2(table[:, :half], table[:, half:]).diff(dim=0)
    return (change + math.pi) % (2 * math.pi) - math.pi


def turns_one_seam(table: Tensor) -> Tensor:
    change = hands(table).diff(dim=0)
    return torch.where(change < -math.pi, change + 2 * math.pi, change)


def turns_modulo_pi(table: Tensor) -> Tensor:
    return torch.remainder(hands(table).diff(dim=0) + math.pi / 2, math.pi) - math.pi / 2


def wrong_turns(table: Tensor) -> Tensor:
    off = turns_complex(table) - frequencies(table.shape[1])
    return (off - 2 * math.pi * (off / (2 * math.pi)).round()).abs() > 1e-5


def culprit_leave_one_out(table: Tensor) -> str:
    wrong = wrong_turns(table)
    if not wrong.any():
        return "none"
    for i in range(wrong.shape[1]):
        if not torch.cat((wrong[:, :i], wrong[:, i + 1 :]), dim=1).any():
            return f"pair {i}"
    steps = wrong.any(dim=1).nonzero().flatten().tolist()
    if len(steps) == 2:
        return f"row {steps[1]}"
    return "row 0" if steps == [0] else f"row {len(table) - 1}"


def culprit_counts(table: Tensor) -> str:
    rows, pairs = wrong_turns(table).all(dim=1), wrong_turns(table).all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    if not rows.any():
        return "none"
    if rows.sum() == 1:
        return "row 0" if rows[0] else f"row {len(rows)}"
    return f"row {int(rows.int().argmax()) + 1}"


def culprit_first_step(table: Tensor) -> str:
    wrong = wrong_turns(table)
    if wrong[0].sum() == 1:
        return f"pair {int(wrong[0].int().argmax())}"
    steps = wrong[:, 0].nonzero().flatten().tolist()
    return "none" if not steps else "row 0" if steps == [0] else f"row {steps[0] + 1}"


def culprit_no_edges(table: Tensor) -> str:
    rows, pairs = wrong_turns(table).all(dim=1), wrong_turns(table).all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    return f"row {int(rows.int().argmax()) + 1}" if rows.any() else "none"


def culprit_row_short(table: Tensor) -> str:
    said = culprit_counts(table)
    kind, _, number = said.partition(" ")
    return f"row {max(int(number) - 1, 0)}" if kind == "row" else said


def culprit_last_forgotten(table: Tensor) -> str:
    wrong = wrong_turns(table)
    pairs = wrong.all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    for r in range(1, len(wrong)):
        if wrong[r].all() and wrong[r - 1].all():
            return f"row {r}"
    return "row 0" if wrong[0].all() else "none"


def culprit_coarse(table: Tensor) -> str:
    wrong = (turns_complex(table) - frequencies(table.shape[1])).abs() > 0.01
    if not wrong.any():
        return "none"
    pairs = wrong.all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    steps = wrong.any(dim=1).nonzero().flatten().tolist()
    return f"row {steps[0] + 1}" if len(steps) > 1 else "row 0" if steps == [0] else f"row {len(table) - 1}"


def culprit_from_one(table: Tensor) -> str:
    kind, _, number = culprit_counts(table).partition(" ")
    return f"{kind} {int(number) + 1}" if number else kind


def culprit_at_zero(table: Tensor) -> str:
    off = (table - sinusoidal_table(range(len(table)), table.shape[1])).abs() > 1e-6
    if not off.any():
        return "none"
    rows = off.all(dim=1).nonzero().flatten().tolist()
    return f"row {rows[0]}" if len(rows) == 1 else f"pair {int(off.any(dim=0).int().argmax()) // 2}"


RIGHT: dict[str, list[Any]] = {
    "sinusoidal.table": [
        numpy_table,
        float32_table,
        two_loops(pair_angle),
        lambda positions, d: two_loops(pair_angle)(positions, d).tolist(),
        lambda positions, d: list(numpy_table(positions, d)),
        lambda positions, d: np.asfortranarray(numpy_table(positions, d))[::-1][::-1],
        lambda positions, d: numpy_table(positions, d).astype(np.longdouble),
    ],
    "sinusoidal.to_interleaved": [
        filled,
        sorted_columns,
        one_by_one,
        inverse_order,
        lambda table: [[Fraction(x) for x in row] for row in one_by_one(table)],
        *blind(layout_sorted, layout_padded),
    ],
    "sinusoidal.turns": [
        by_remainder,
        by_complex_numbers,
        by_angle_addition,
        by_loops,
        by_unwrap,
        *blind(turns_complex, turns_numpy),
    ],
    "sinusoidal.culprit": [
        lambda table: verdict(steps(table), row_by_steps),
        by_leaving_out,
        by_search,
        *blind(culprit_leave_one_out, culprit_counts, culprit_first_step),
    ],
}

WRONG: dict[str, list[Any]] = {
    "sinusoidal.table": [
        ("transposed", lambda m, d: sinusoidal_table(m, d).T, "It looks transposed"),
        ("sines only", two_loops(pair_angle, second=math.sin), "Every second column is wrong, starting with the second."),
        ("divided by d/2 - 1", two_loops(lambda m, c, d: m / 10_000 ** (c // 2 / (d // 2 - 1))), "exactly 1/10000"),
        ("normalized rows", lambda m, d: sinusoidal_table(m, d) / math.sqrt(d / 2), "Every row is scaled to length 1"),
        ("positions scaled", lambda m, d: sinusoidal_table(m / 12, d), None),
        ("one position for another", lambda m, d: sinusoidal_table(range(len(m)), d), "belong to positions 0, 1, 2 and so on"),
        ("always width 8", lambda m, d: sinusoidal_table(m, 8), "has shape"),
        ("positions changed in place", shifting_in_place, "writes into its arguments"),
        ("no sines", lambda m, d: torch.outer(m, frequencies(d)), "has shape (12, 4), but it should be (12, 8)"),
        ("not a number", lambda m, d: sinusoidal_table(m, d) * math.nan, "infinite or NaN"),
        ("complex", lambda m, d: torch.ones(len(m), d) * 1j, "returned complex numbers"),
        ("text", lambda m, d: "sin", "returned a str that isn't a table"),
        ("ragged", lambda m, d: [[0.0] * c for c in range(len(m))], "returned a list that isn't a table"),
    ],
    "sinusoidal.to_interleaved": [
        ("no odd width", stacked, "has shape"),
        ("cosine first, also of odd widths", cosine_first_always, "for an odd width, raised RuntimeError"),
        ("mirrored", lambda table: table.flip(1), "in a different order"),
        ("transposed", lambda table: filled(table).T, "transposed"),
        *blind(
            ("half rounded down, last column empty", layout_floor, "but not for: an odd width; another odd width"),
            (
                "the other way",
                lambda table: torch.cat((table[:, 0::2], table[:, 1::2]), dim=1),
                "Your function does the opposite",
            ),
            ("cosines first", layout_cosine_first, "You make two mistakes. In each pair"),
            ("unchanged", lambda table: table.reshape(table.shape), "in the order in which they were given"),
            ("last sine dropped", layout_drops, "has shape"),
            (
                "even widths only",
                lambda table: table.reshape(len(table), 2, -1).transpose(1, 2).reshape(table.shape),
                "for an odd width, raised RuntimeError",
            ),
            ("rows, not columns", layout_rows, "You reorder the rows"),
        ),
    ],
    "sinusoidal.turns": [
        ("angles", hands, "has shape"),
        ("complex", lambda table: torch.complex(by_remainder(table), by_remainder(table)), "complex numbers"),
        ("differences of the numbers", lambda table: table.diff(dim=0)[:, 0::2], None),
        (
            "the mean of all steps",
            lambda table: by_remainder(table).mean(dim=0).expand(len(table) - 1, -1),
            "but not for: pairs that change their speed",
        ),
        ("in turns", lambda table: by_remainder(table) / (2 * math.pi), "0.1592 times what it should be"),
        ("the size of each", lambda table: by_remainder(table).abs(), "they are never negative"),
        *blind(
            ("across the seam", lambda table: hands(table).diff(dim=0), "wraps around from π to -π"),
            ("all positive", lambda table: hands(table).diff(dim=0) % (2 * math.pi), "between 0 and 2π"),
            ("wrong direction", lambda table: -turns_complex(table), "have the wrong sign"),
            (
                "no direction",
                lambda table: (table[1:] * table[:-1]).unflatten(1, (-1, 2)).sum(dim=2).clamp(-1, 1).acos(),
                "they are never negative",
            ),
            ("arcsine", turns_arcsine, "an arcsine never exceeds"),
            ("from row 0", turns_from_row_zero, "every angle from the first row"),
            ("concatenated", turns_halves, "column i + d/2"),
            ("the seam from one side", turns_one_seam, "seems to jump when"),
            ("half turns taken off", turns_modulo_pi, "can't tell opposite directions apart"),
        ),
    ],
    "sinusoidal.culprit": [
        ("a number", lambda table: 3, "it should return a word"),
        ("any step is a row", lambda table: verdict(steps(table)[:, :1], row_by_steps), None),
        (
            "any step is a row, of two",
            lambda table: (
                f"row {row_by_steps(np.flatnonzero(steps(table).any(axis=1)).tolist()[:2])}" if steps(table).any() else "none"
            ),
            "You mistake a wrong pair for a wrong row",
        ),
        (
            "within 0.0008",
            lambda table: verdict(steps(table, 0.0008) | steps(table).all(axis=1, keepdims=True), row_by_steps),
            "but not for: a last pair that is too fast by 0.00055",
        ),
        *blind(
            ("row 0 taken for row 1", culprit_no_edges, "You miss only a wrong row 0"),
            ("the row before", culprit_row_short, "where the first wrong step begins"),
            ("last row forgotten", culprit_last_forgotten, "but not for: a wrong last row"),
            ("too coarse", culprit_coarse, "with a smaller tolerance"),
            ("counts from 1", culprit_from_one, "You count from 1"),
            ("believes that the rows begin at 0", culprit_at_zero, "begins at position 0"),
        ),
    ],
}
