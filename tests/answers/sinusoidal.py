"""Answers to assignment 3: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import frequencies, sinusoidal_table


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


def way_back(table: Tensor) -> Tensor:
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


def stacked(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    return torch.stack((table[:, :half], table[:, half : 2 * half]), dim=-1).flatten(1)


def half_rounded_down(table: Tensor) -> Tensor:
    out, half = torch.empty_like(table), table.shape[1] // 2
    for j in range(table.shape[1]):
        out[:, j] = table[:, j // 2] if j % 2 == 0 else table[:, half + j // 2]
    return out


def cosine_first(table: Tensor) -> Tensor:
    if table.shape[1] % 2:
        return filled(table)
    out = torch.empty_like(table)
    out[:, 1::2], out[:, 0::2] = table.chunk(2, dim=1)
    return out


def cosine_first_always(table: Tensor) -> Tensor:
    out = torch.empty_like(table)
    out[:, 1::2], out[:, 0::2] = table.chunk(2, dim=1)
    return out


def rows_interleaved(table: Tensor) -> Tensor:
    out = torch.empty_like(table)
    out[0::2], out[1::2] = table.chunk(2)
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


def sine_and_cosine_exchanged(table: Tensor) -> Tensor:
    angles = torch.atan2(table[:, 1::2], table[:, 0::2])
    return (angles.diff(dim=0) + math.pi) % (2 * math.pi) - math.pi


def by_dot_product(table: Tensor) -> Tensor:
    products = table[1:] * table[:-1]
    return torch.acos((products[:, 0::2] + products[:, 1::2]).clamp(-1, 1))


def by_chord(table: Tensor) -> np.ndarray:
    return np.linalg.norm(np.diff(table.numpy(), axis=0).reshape(len(table) - 1, -1, 2), axis=2)


def by_halves(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    angles = torch.atan2(table[:, :half], table[:, half:])
    return (angles.diff(dim=0) + math.pi) % (2 * math.pi) - math.pi


def by_quotient(table: Tensor) -> Tensor:
    angles = torch.arctan(table[:, 0::2] / table[:, 1::2])
    return (angles.diff(dim=0) + math.pi) % (2 * math.pi) - math.pi


def by_sine(table: Tensor) -> Tensor:
    z = torch.complex(table[:, 1::2], table[:, 0::2])
    return torch.asin((z[1:] * z[:-1].conj()).imag)


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


def from_position_0(table: Tensor) -> str:
    off = (table - sinusoidal_table(range(len(table)), table.shape[1])).abs() > 1e-8
    if not off.any():
        return "none"
    if off.any(dim=1).sum() == 1:
        return f"row {int(off.any(dim=1).nonzero()[0])}"
    return f"pair {int(off.any(dim=0).nonzero()[0]) // 2}"


def first_step_alone(table: Tensor) -> str:
    wrong = steps(table)[0]
    if not wrong.any():
        return "none"
    return f"pair {wrong.argmax()}" if wrong.sum() == 1 else f"row {int(steps(table)[1].any())}"


def counted_from_1(table: Tensor, kind: str) -> str:
    word, _, number = verdict(steps(table), row_by_steps).partition(" ")
    return f"{word} {int(number) + 1}" if word == kind else f"{word} {number}".strip()


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "sinusoidal.to_interleaved": [filled, sorted_columns, one_by_one, inverse_order],
    "sinusoidal.turns": [by_remainder, by_complex_numbers, by_angle_addition, by_loops, by_unwrap],
    "sinusoidal.culprit": [lambda table: verdict(steps(table), row_by_steps), by_leaving_out, by_search],
}

WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "sinusoidal.to_interleaved": {
        "the way back": (way_back, "the way back"),
        "nothing": (lambda table: table.clone(), "where they stood"),
        "no odd width": (stacked, "has shape"),
        "half rounded down": (half_rounded_down, "one sine more"),
        "cosine first": (cosine_first, "the sine comes first"),
        "cosine first, also of odd widths": (cosine_first_always, "raised RuntimeError"),
        "rows": (rows_interleaved, "reorder the rows"),
        "mirrored": (lambda table: table.flip(1), None),
        "transposed": (lambda table: filled(table).T, "transposed"),
        "cosines in reverse": (
            lambda table: filled(
                torch.cat((table[:, : -(-table.shape[1] // 2)], table[:, -(-table.shape[1] // 2) :].flip(1)), 1)
            ),
            "in reverse",
        ),
    },
    "sinusoidal.turns": {
        "sine and cosine exchanged": (sine_and_cosine_exchanged, "has the other sign"),
        "from the later row": (lambda table: -by_remainder(table), "has the other sign"),
        "over the seam": (lambda table: hands(table).diff(dim=0), "the seam"),
        "exchanged and over the seam": (lambda table: torch.atan2(table[:, 1::2], table[:, 0::2]).diff(dim=0), "Two things"),
        "dot product": (by_dot_product, "direction is lost"),
        "absolute": (lambda table: by_remainder(table).abs(), "direction is lost"),
        "0 to 2π": (lambda table: hands(table).diff(dim=0) % (2 * torch.pi), "long forward one"),
        "row 0 at angle 0": (lambda table: hands(table)[1:], "where the hands stand"),
        "from the first row": (
            lambda table: (hands(table)[1:] - hands(table)[:1] + torch.pi) % (2 * torch.pi) - torch.pi,
            "from the first row",
        ),
        "concatenated": (by_halves, "is interleaved"),
        "the paper's": (lambda table: frequencies(table.shape[1]).repeat(len(table) - 1, 1), "the paper's frequencies"),
        "chord": (by_chord, "chords"),
        "sine alone": (by_sine, "a right angle"),
        "quotient": (by_quotient, "atan2 takes the pair"),
        "degrees": (lambda table: np.degrees(by_complex_numbers(table)), "degrees"),
        "angles": (hands, "has shape"),
        "complex": (lambda table: torch.complex(by_remainder(table), by_remainder(table)), "complex numbers"),
        "differences of the numbers": (lambda table: table.diff(dim=0)[:, 0::2], None),
    },
    "sinusoidal.culprit": {
        "the row before": (lambda table: verdict(steps(table), lambda k: k[0]), "its other end"),
        "row 0 never": (lambda table: verdict(steps(table), lambda k: k[0] + 1), "no step leads to row 0"),
        "the last row never": (lambda table: verdict(steps(table), lambda k: k[-1]), "no step leaves the last row"),
        "the row after": (lambda table: verdict(steps(table), lambda k: k[-1] + 1), "may be right"),
        "rows from 1": (lambda table: counted_from_1(table, "row"), "count rows from 1"),
        "pairs from 1": (lambda table: counted_from_1(table, "pair"), "count pairs from 1"),
        "a tolerance of a hundredth": (
            lambda table: verdict(steps(table, 0.002) | (steps(table).all(axis=1, keepdims=True)), row_by_steps),
            "with less tolerance",
        ),
        "first step alone": (first_step_alone, "beyond the second"),
        "from position 0": (from_position_0, "begins at position 0"),
        "nothing": (lambda table: "none", "eight of the ten"),
        "a number": (lambda table: 3, "it should be a word"),
        "columns": (
            lambda table: (
                f"pair {2 * int(steps(table).all(axis=0).argmax())}"
                if steps(table).all(axis=0).any()
                else verdict(steps(table), row_by_steps)
            ),
            "You count columns",
        ),
        "no pairs": (
            lambda table: "none" if steps(table).all(axis=0).any() else verdict(steps(table), row_by_steps),
            "no wrong pair",
        ),
        "no rows": (
            lambda table: f"pair {steps(table).all(axis=0).argmax()}" if steps(table).all(axis=0).any() else "none",
            "no wrong row",
        ),
        "rows are pairs": (
            lambda table: f"pair {steps(table).any(axis=0).argmax()}" if steps(table).any() else "none",
            "in *all* steps",
        ),
        "any step is a row": (
            lambda table: (
                f"row {row_by_steps(np.flatnonzero(steps(table).any(axis=1)).tolist()[:2])}" if steps(table).any() else "none"
            ),
            None,
        ),
        "backwards unseen": (
            lambda table: verdict(
                np.abs(np.abs(by_complex_numbers(table)) - frequencies(table.shape[1]).numpy()) > 1e-6, row_by_steps
            ),
            "turns backwards",
        ),
    },
}
