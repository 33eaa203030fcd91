"""Answers to the exercises on choosing."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import right, wrong

BRACKETS: dict[str, Any] = {"^": [1.0, 0.0], "(": [0.0, 1.0], ")": [0.0, -1.0]}


def reading(readout: Callable[[Tensor], Any]) -> tuple[Any, Any]:
    return BRACKETS.get, readout


right("nope.depth")(reading(lambda mean: float(mean[1]) * round(1 / float(mean[0]))))
right("nope.depth")(reading(lambda mean: np.round(mean.numpy()[1] / mean.numpy()[0])))
right("nope.depth")(
    (
        lambda token: [0, 2.0 * (token == "("), 2.0 * (token == ")"), 4.0 * (token == "^")],
        lambda m: 2 * (m[1] - m[2]) / m[3],
    )
)
wrong("nope.depth", "After ^, the depth is 0", name="depth_upside_down")(reading(lambda mean: mean[0] / (mean[1] + 1e-9)))
wrong("nope.depth", "After ^(, the depth is 1, but my_readout returns 0.", name="depth_rounded")(
    reading(lambda mean: round(float(mean[1])))
)


def quotient(mean: Tensor) -> Tensor:
    return mean[1] / mean[0]


def valued(**changed: Any) -> tuple[Any, Any]:
    names = {"first": "^", "opened": "(", "closed": ")"}
    return (BRACKETS | {names[name]: vector for name, vector in changed.items()}).get, quotient


wrong("nope.depth", "not those that are closed", name="depth_closing_is_nothing")(valued(closed=[0.0, 0.0]))
wrong("nope.depth", "an opening bracket lowers the depth", name="depth_opening_leads_down")(
    valued(opened=[0.0, -1.0], closed=[0.0, 1.0])
)


@right("nope.is_sum")
def is_sum_squares(scores: Tensor) -> bool:
    s = scores.double()
    return bool(((s - s[:1]) - (s[:, :1] - s[:1, :1])).abs().max() <= 1e-6)


@right("nope.is_sum")
def is_sum_centred(scores: Tensor) -> bool:
    s = scores.double()
    left = s - s.mean(0, keepdim=True) - s.mean(1, keepdim=True) + s.mean()
    return bool(torch.allclose(left, torch.zeros_like(left), rtol=0, atol=1e-6))


@right("nope.is_sum")
def is_sum_rank(scores: Tensor) -> bool:
    s = scores.double()
    return bool(torch.linalg.svdvals((s[1:] - s[0]) - (s[1:, :1] - s[0, :1])).max() < 1e-6)


@wrong("nope.is_sum", "every square has to pass")
def is_sum_two_rows(scores: Tensor) -> bool:
    step = scores[1].double() - scores[0].double()
    return bool((step - step[0]).abs().max() < 1e-6)


@wrong("nope.is_sum", "allow differences up to 1e-6")
def is_sum_exact(scores: Tensor) -> bool:
    s = scores
    return bool((s[1:, 1:] + s[:-1, :-1] == s[1:, :-1] + s[:-1, 1:]).all())


@wrong("nope.is_sum", "You look at the rank")
def is_sum_rank_two(scores: Tensor) -> bool:
    return int(torch.linalg.matrix_rank(scores)) <= 2


@wrong("nope.is_sum", "an absolute value")
def is_sum_signed(scores: Tensor) -> bool:
    return not (scores[1:, 1:] + scores[:-1, :-1] - scores[1:, :-1] - scores[:-1, 1:] > 1e-6).any()


@wrong("nope.is_sum", "You ask for too much")
def is_sum_constant_steps(scores: Tensor) -> bool:
    s = scores.double()
    return bool(s.diff(dim=0).std() < 1e-6 and s.diff(dim=1).std() < 1e-6)


@right("nope.told_apart")
def apart_by_shares(text: str) -> int:
    return len({(x, *(Fraction(text[:n].count(y), n) for y in sorted({*text}))) for n, x in enumerate(text, 1)})


@right("nope.told_apart")
def told_shares(text: str) -> int:
    found = set()
    for n in range(1, len(text) + 1):
        counts = Counter(text[:n])
        found.add((text[n - 1], frozenset((x, Fraction(c, n)) for x, c in counts.items())))
    return len(found)


@right("nope.told_apart")
def told_gcd(text: str) -> int:
    letters, found = sorted(set(text)), set()
    for n, asks in enumerate(text, 1):
        counts = [text[:n].count(letter) for letter in letters]
        common = math.gcd(*counts)
        found.add((asks, *(c // common for c in counts)))
    return len(found)


@wrong("nope.told_apart", "tell all positions apart")
def told_counts(text: str) -> int:
    return len({(text[n], tuple(sorted(Counter(text[: n + 1]).items()))) for n in range(len(text))})


@wrong("nope.told_apart", "You compare only a part")
def told_own_share(text: str) -> int:
    return len({(x, Fraction(text[:n].count(x), n)) for n, x in enumerate(text, 1)})


@wrong("nope.told_apart", "You leave out the token itself")
def told_strict_past(text: str) -> int:
    past = [Counter(text[:n]).items() for n in range(len(text))]
    return len({(x, frozenset((y, Fraction(c, n)) for y, c in past[n])) for n, x in enumerate(text)})


@wrong("nope.told_apart", "Compare exact fractions")
def told_rounded(text: str) -> int:
    return len({(x, *(round(text[:n].count(y) / n, 2) for y in sorted({*text}))) for n, x in enumerate(text, 1)})


@wrong("nope.told_apart", "too little of what a position sees")
def told_apart_changes_of_letter(text: str) -> Any:
    return len(list(itertools.groupby(text)))


@right("nope.packed")
def packed_cummax(documents: Tensor) -> tuple[Tensor, Tensor]:
    place = torch.arange(len(documents))
    new = torch.ones(len(documents), dtype=torch.bool)
    new[1:] = documents[1:] != documents[:-1]
    start = torch.where(new, place, 0).cummax(0).values
    return place - start, (start[:, None] <= place) & (place <= place[:, None])


@right("nope.packed")
def packed_blocks(documents: Tensor) -> tuple[Tensor, Tensor]:
    lengths = torch.unique_consecutive(documents, return_counts=True)[1].tolist()
    mask = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths)).bool()
    return torch.cat([torch.arange(n) for n in lengths]), mask


@right("nope.packed")
def packed_lists(documents: Tensor) -> tuple[Tensor, Tensor]:
    names = documents.tolist()
    rows = [[names[m] == names[n] and n <= m for n in range(len(names))] for m in range(len(names))]
    return torch.tensor([m - names.index(name) for m, name in enumerate(names)]), torch.tensor(rows)


@wrong("nope.packed", "continue")
def packed_nothing_done(names: Any) -> Any:
    return (torch.arange(len(names)), torch.ones(len(names), len(names)).tril())


@wrong("nope.packed", "see other documents")
def packed_ascending(documents: Tensor) -> tuple[Tensor, Tensor]:
    same = documents[:, None] >= documents
    return packed_blocks(documents)[0], same & torch.ones_like(same).tril()


@wrong("nope.packed", "You use the lengths in the order")
def packed_sorted(documents: Tensor) -> tuple[Tensor, Tensor]:
    lengths = torch.unique(documents, return_counts=True)[1].tolist()
    return torch.cat([torch.arange(n) for n in lengths]), packed_blocks(documents)[1]


@wrong("nope.packed", "that are added to scores")
def packed_scores(documents: Tensor) -> tuple[Tensor, Tensor]:
    positions, mask = packed_blocks(documents)
    return positions, torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
