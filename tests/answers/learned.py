"""Answers to assignment 8: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor


def share_by_shapes(rows: int, d_model: int, vocabulary: int, layers: int) -> float:
    layer = [(d_model, d_model)] * 4 + [(d_model, 4 * d_model), (4 * d_model, d_model)]
    shapes = [(rows, d_model), (vocabulary, d_model), *layer * layers]
    return math.prod(shapes[0]) / sum(map(math.prod, shapes))


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


def by_ratios(before: Tensor, after: Tensor) -> Any:
    """All numbers of an untrained row were multiplied by the same one."""
    ratios = after.double().numpy() / before.double().numpy()
    return np.ptp(ratios, axis=1) < 1e-4


def by_units(before: Tensor, after: Tensor) -> list[bool]:
    return [torch.allclose(b / b.norm(), a / a.norm(), atol=1e-5) for b, a in zip(before, after, strict=True)]


def by_rejection(before: Tensor, after: Tensor) -> Tensor:
    """What is left of each row after its best fit by the old one."""
    fit = (before * after).sum(1) / before.square().sum(1)
    return (after - fit[:, None] * before).norm(dim=1) < 1e-3 * after.norm(dim=1)


def from_the_factor(before: Tensor, after: Tensor, factor: Tensor) -> Tensor:
    return torch.isclose(after, factor * before, rtol=1e-4).all(dim=1)


def after_the_first_untrained(before: Tensor, after: Tensor) -> list[bool]:
    """As if the trained rows were the first ones, always."""
    trained = [row for row, same in enumerate(by_units(before, after)) if not same]
    return [row > max(trained, default=-1) for row in range(len(after))]


def lengths(before: Tensor, after: Tensor) -> Tensor:
    return after.norm(dim=1) / before.norm(dim=1)


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


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "learned.share": [
        lambda rows, d, words, layers: rows * d / (rows * d + words * d + layers * 12 * d**2),
        lambda rows, d, words, layers: rows / (rows + words + 12 * d * layers),
        share_by_shapes,
        lambda rows, d, words, layers: np.float32(1 / (1 + (words + layers * 12 * d) / rows)),
    ],
    "learned.room": [lambda prompt, rows: max(rows - prompt + 1, 0), room_by_reading, room_by_cases],
    "learned.untrained": [by_cosine, by_units],
    "learned.positions": [counted, counted_in_numpy, counted_by_loops, from_the_first, lambda mask: counted(mask).float()],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "learned.share": {
        "of the rest": (lambda n, d, v, layers: n / (v + 12 * d * layers), "divide by the other parameters"),
        "per cent": (lambda n, d, v, layers: 100 * n / (n + v + 12 * d * layers), "in per cent"),
        "one layer": (lambda n, d, v, layers: n / (n + v + 12 * d), "one layer"),
        "12 d": (lambda n, d, v, layers: n * d / (n * d + v * d + 12 * d * layers), "d² entries"),
        "the words": (lambda n, d, v, layers: v / (n + v + 12 * d * layers), "share of the words"),
        "no words": (lambda n, d, v, layers: n / (n + 12 * d * layers), "words are missing"),
        "no layers": (lambda n, d, v, layers: n / (n + v), "layers are missing"),
        "rows": (lambda n, d, v, layers: n / (d * (n + v + 12 * d * layers)), "each row holds d numbers"),
        "the others": (lambda n, d, v, layers: 1 - n / (n + v + 12 * d * layers), "all the others"),
        "the number": (lambda n, d, v, layers: n * d, "divide by all there are"),
        "rounded": (lambda n, d, v, layers: round(n / (n + v + 12 * d * layers), 2), None),
    },
    "learned.room": {
        "rows less prompt": (lambda prompt, rows: max(rows - prompt, 0), "One too few"),
        "the last row's number": (lambda prompt, rows: max(rows - prompt - 1, 0), "Two too few"),
        "below 0": (lambda prompt, rows: rows - prompt, "below 0"),
        "too long a prompt": (lambda prompt, rows: rows + 1 - prompt, "Less than no token"),
        "the distance": (lambda prompt, rows: abs(rows + 1 - prompt), "cannot be read at all"),
        "at least one": (lambda prompt, rows: max(1, rows + 1 - prompt), "cannot be read at all"),
        "one too many": (lambda prompt, rows: max(0, rows + 2 - prompt), "One too many"),
        "all rows": (lambda prompt, rows: rows, "The prompt is missing"),
        "the whole text": (
            lambda prompt, rows: prompt + max(rows + 1 - prompt, 0) if prompt <= rows else rows + 1,
            "The prompt is missing",
        ),
        "the prompt": (lambda prompt, rows: prompt, None),
        "a half": (lambda prompt, rows: rows / prompt, "a whole number"),
    },
    "learned.untrained": {
        "one ratio, of any sign": (by_ratios, "points the other way"),
        "nothing across, either way": (by_rejection, "points the other way"),
        "trained": (lambda b, a: ~by_cosine(b, a), "changed places"),
        "as they were": (lambda b, a: torch.isclose(b, a).all(dim=1), "as they were"),
        "equal": (lambda b, a: (b == a).all(dim=1), "as they were"),
        "changed by little": (lambda b, a: (a - b).norm(dim=1) < 0.05 * b.norm(dim=1), None),
        "cosine above 0.9": (lambda b, a: by_cosine(b, a, 0.9), "Too lax"),
        "cosine above 0.99": (lambda b, a: by_cosine(b, a, 0.99), "Too lax"),
        "cosine above 0.999": (lambda b, a: by_cosine(b, a, 0.999), "Too lax"),
        "shorter": (lambda b, a: a.norm(dim=1) < b.norm(dim=1), "go by length"),
        "not longer": (lambda b, a: lengths(b, a) < 1.00001, "go by length"),
        "as long as the last": (lambda b, a: torch.isclose(lengths(b, a), lengths(b, a)[-1], rtol=1e-3), "go by length"),
        "the last row's factor": (
            lambda b, a: from_the_factor(b, a, a[-1].norm() / b[-1].norm()),
            "last row for an untrained one",
        ),
        "the first ones": (after_the_first_untrained, "up to the last trained one"),
        "none": (lambda b, a: [False] * len(b), "no row untrained"),
        "all": (lambda b, a: [True] * len(b), "every row untrained"),
        "every number": (lambda b, a: a / b, None),
        "their numbers": (lambda b, a: [r for r, same in enumerate(by_units(b, a)) if same], "has shape"),
        "one truth": (lambda b, a: torch.allclose(b, a), "has shape ()"),
    },
    "learned.positions": {
        "the bug": (lambda mask: torch.arange(mask.shape[1]).expand(mask.shape), "the bug itself"),
        "from 1": (lambda mask: mask.cumsum(1), "You count from 1"),
        "-1 at padding": (lambda mask: mask.cumsum(1) - 1, "Padding gets -1"),
        "-1 by masking": (lambda mask: counted(mask).masked_fill(~mask, -1), "Padding gets -1"),
        "padding subtracted": (
            lambda mask: (torch.arange(mask.shape[1]) - (~mask).sum(1, keepdim=True)).clamp(min=0),
            "padding in front only",
        ),
        "below 0": (
            lambda mask: torch.arange(mask.shape[1]) - mask.int().argmax(1, keepdim=True),
            "The words are right",
        ),
        "too large at padding": (lambda mask: counted(mask).masked_fill(~mask, mask.shape[1]), "a number that is no row"),
        "like the first": (
            lambda mask: (torch.arange(mask.shape[1]) - int(mask[0].int().argmax())).clamp(min=0).expand(mask.shape),
            "the first one's positions",
        ),
        "down the batch": (lambda mask: mask.cumsum(0) - 1, "down the batch"),
        "on and on": (lambda mask: (mask.flatten().cumsum(0) - 1).view(mask.shape), "goes on from one text"),
        "from the end": (lambda mask: (mask.flip(1).cumsum(1) - 1).flip(1).clamp(min=0), "from the end"),
        "the padding counted": (lambda mask: (~mask).cumsum(1), "count padding and not words"),
        "the mask": (lambda mask: mask.int(), "You return the mask"),
        "all at 0": (lambda mask: torch.zeros(mask.shape), "Every word is at 0"),
        "the words alone": (lambda mask: [torch.arange(int(n)).tolist() for n in mask.sum(1)], "no table of numbers"),
        "one row": (lambda mask: torch.arange(mask.shape[1]), "has shape"),
        "into the mask": (lambda mask: counted(mask.logical_not_().logical_not()), "writes into its argument"),
    },
}
