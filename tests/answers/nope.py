"""Answers to assignment 14: right ones written differently, and wrong ones with what their verdict must say."""

import itertools
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

# ── patches ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def patches_by_division(rows: int, columns: int) -> list[tuple[int, int]]:
    return [divmod(number, columns) for number in range(rows * columns)]


def patches_by_indices(rows: int, columns: int) -> Any:
    return np.indices((rows, columns)).reshape(2, -1).T


def patches_by_repeating(rows: int, columns: int) -> Tensor:
    row = torch.arange(rows, dtype=torch.float32).repeat_interleave(columns)
    return torch.stack([row, torch.arange(columns, dtype=torch.float32).repeat(rows)], dim=-1)


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sum_by_squares(scores: Tensor) -> bool:
    t = scores.tolist()
    return all(
        abs(t[r][c] + t[r + 1][c + 1] - t[r][c + 1] - t[r + 1][c]) < 1e-6
        for r in range(len(t) - 1)
        for c in range(len(t[0]) - 1)
    )


def sum_by_means(scores: Tensor) -> Any:
    table = scores.numpy()
    best = table.mean(axis=0) + table.mean(axis=1, keepdims=True) - table.mean()
    return np.allclose(table, best)


def sum_by_differences(scores: Tensor) -> Tensor:
    gaps = scores - scores[0]
    return (gaps.amax(dim=1) - gaps.amin(dim=1) < 1e-6).all()


def sum_by_fitting(scores: Tensor) -> bool:
    """The least squares of all f and g leave nothing over."""
    rows, columns = scores.shape
    places = torch.tensor(list(itertools.product(range(rows), range(columns))))
    which = torch.cat([torch.eye(rows)[places[:, 0]], torch.eye(columns)[places[:, 1]]], dim=1).double()
    fitted = torch.linalg.lstsq(which, scores.flatten()[:, None], driver="gelsd").solution
    return bool((which @ fitted - scores.flatten()[:, None]).abs().max() < 1e-6)


# ── blind layers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def apart_by_shares(text: str) -> int:
    seen = set()
    for m, letter in enumerate(text):
        past = text[: m + 1]
        seen.add((letter, frozenset((other, Fraction(past.count(other), m + 1)) for other in past)))
    return len(seen)


def apart_by_counting(text: str) -> int:
    counts: Counter[str] = Counter()
    kinds = set()
    for letter in text:
        counts[letter] += 1
        scale = np.gcd.reduce(list(counts.values()))
        kinds.add((letter, tuple(sorted((other, int(count // scale)) for other, count in counts.items()))))
    return len(kinds)


def apart_by_layer(text: str) -> int:
    """A layer of one random head, written out."""
    torch.manual_seed(3)
    letters = sorted(set(text))
    vectors = torch.randn(len(letters), 12, dtype=torch.float64)
    score, value = torch.randn(2, 12, 12, dtype=torch.float64)
    x = vectors[[letters.index(letter) for letter in text]]
    outputs: list[Tensor] = []
    for m in range(len(x)):
        weights = (0.1 * x[: m + 1] @ score @ x[m]).softmax(dim=0)
        y = weights @ x[: m + 1] @ value
        if not any(torch.allclose(y, other, atol=1e-9) for other in outputs):
            outputs.append(y)
    return len(outputs)


def apart(seen: Callable[[str, int], Any]) -> Callable[[str], int]:
    return lambda text: len({seen(text, m) for m in range(len(text))})


def shares(past: str) -> tuple[tuple[str, Fraction], ...]:
    return tuple((letter, Fraction(past.count(letter), len(past))) for letter in sorted(set(past)))


# ── packing ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def packed(documents: Tensor) -> tuple[Tensor, Tensor]:
    mask = (documents[:, None] == documents[None, :]).tril()
    return mask.sum(dim=1) - 1, mask


def packed_by_loop(documents: Tensor) -> tuple[list[int], list[list[bool]]]:
    names: list[int] = documents.tolist()
    positions: list[int] = []
    for place, name in enumerate(names):
        positions.append(positions[-1] + 1 if place and names[place - 1] == name else 0)
    mask = [[m >= n and names[m] == names[n] for n in range(len(names))] for m in range(len(names))]
    return positions, mask


def packed_in_numpy(documents: Tensor) -> Any:
    names = documents.numpy()
    starts = np.flatnonzero(np.concatenate([[True], np.diff(names) != 0]))
    lengths = np.diff(np.append(starts, len(names)))
    positions = np.arange(len(names)) - np.repeat(starts, lengths)
    return [positions, np.equal.outer(names, names) & np.tri(len(names), dtype=bool)]


def packed_from_lengths(documents: Tensor) -> tuple[Tensor, Tensor]:
    lengths = documents.unique_consecutive(return_counts=True)[1].tolist()
    blocks = [torch.ones(length, length).tril() for length in lengths]
    return torch.cat([torch.arange(length) for length in lengths]), torch.block_diag(*blocks)


def with_positions(change: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    return lambda documents: (change(documents), packed(documents)[1])


def with_mask(change: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    return lambda documents: (packed(documents)[0], change(documents))


def past(documents: Tensor) -> Tensor:
    places = torch.arange(len(documents))
    return places[:, None] >= places


def alike(documents: Tensor) -> Tensor:
    return documents == documents[:, None]


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "nope.patch_positions": [
        patches_by_division,
        patches_by_indices,
        patches_by_repeating,
        lambda rows, columns: torch.cartesian_prod(torch.arange(rows), torch.arange(columns)),
    ],
    "nope.is_sum": [sum_by_squares, sum_by_means, sum_by_differences, sum_by_fitting],
    "nope.told_apart": [apart_by_shares, apart_by_counting, apart_by_layer],
    "nope.packed": [packed, packed_by_loop, packed_in_numpy, packed_from_lengths],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "nope.patch_positions": {
        "column first": (lambda r, c: [(n % c, n // c) for n in range(r * c)], "changed places"),
        "column by column": (lambda r, c: [(n % r, n // r) for n in range(r * c)], "column by column"),
        "column by column, and first": (lambda r, c: [divmod(n, r) for n in range(r * c)], "and name the column first"),
        "from 1": (lambda r, c: [(n // c + 1, n % c + 1) for n in range(r * c)], "from 1"),
        "by the rows": (lambda r, c: [(n // r, n % c) for n in range(r * c)], "How many patches does one row have"),
        "from the end": (lambda r, c: [divmod(n, c) for n in reversed(range(r * c))], "begin at the end"),
        "numbers": (lambda r, c: torch.arange(r * c), "has shape"),
        "numbers, twice": (lambda r, c: torch.arange(r * c)[:, None].repeat(1, 2), "You number the patches"),
        "a grid": (lambda r, c: torch.stack(torch.meshgrid(torch.arange(r), torch.arange(c), indexing="ij")), "has shape"),
        "two rows": (lambda r, c: torch.tensor(patches_by_division(r, c)).T, "transposed"),
    },
    "nope.is_sum": {
        "one square": (lambda t: bool(t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0] < 1e-6), None),
        "one square, both signs": (lambda t: torch.allclose(t[0, 0] + t[1, 1], t[0, 1] + t[1, 0]), "one square of four"),
        "four corners": (lambda t: torch.allclose(t[0, 0] + t[-1, -1], t[0, -1] + t[-1, 0]), "four corners"),
        "a product": (lambda t: bool(torch.linalg.svdvals(t)[1] < 1e-9), "look for products"),
        "rank two": (lambda t: bool((torch.linalg.svdvals(t)[2:] < 1e-9).all()), "rank 2 at most"),
        "rows alike": (lambda t: torch.allclose(t, t[0].expand_as(t)), "all rows alike"),
        "columns alike": (lambda t: torch.allclose(t, t[:, :1].expand_as(t)), "all columns alike"),
        "either alike": (
            lambda t: torch.allclose(t, t[0].expand_as(t)) or torch.allclose(t, t[:, :1].expand_as(t)),
            "one of the two parts",
        ),
        "one step for all rows": (
            lambda t: torch.allclose(t[1:] - t[0], (t[1, 0] - t[0, 0]).expand(len(t) - 1, t.shape[1])),
            "all rows alike",
        ),
        "along the diagonal": (
            lambda t: all(abs(t[k, k] + t[k + 1, k + 1] - t[k, k + 1] - t[k + 1, k]) < 1e-6 for k in range(len(t) - 1)),
            "squares along the diagonal",
        ),
        "to the last digit": (lambda t: bool((t.diff(dim=0).diff(dim=1) == 0).all()), "Too strict"),
        "the opposite": (lambda t: not sum_by_squares(t), "The wrong way round"),
        "always": (lambda t: True, "You say True to all"),
        "never": (lambda t: False, "You say False to all"),
        "symmetric": (lambda t: torch.equal(t, t.T), "You say False to all"),
        "a table": (lambda t: t.diff(dim=0).diff(dim=1).abs() < 1e-6, "one True or False"),
    },
    "nope.told_apart": {
        "all places": (len, "You tell all places apart"),
        "counts": (apart(lambda text, m: (text[m], text[: m + 1].count("a"), text[: m + 1].count("b"), m)), "all places apart"),
        "kinds": (lambda text: len(set(text)), "count the kinds"),
        "what was seen": (apart(lambda text, m: (text[m], "".join(sorted(set(text[: m + 1]))))), "which tokens were seen"),
        "shares alone": (apart(lambda text, m: shares(text[: m + 1])), "the shares alone"),
        "before itself": (apart(lambda text, m: (text[m], shares(text[:m]))), "you leave it out"),
        "before itself, shares": (apart(lambda text, m: shares(text[:m])), "you leave it out"),
        "the whole text": (apart(lambda text, m: (text[m], shares(text))), "count the kinds"),
        "the last two": (apart(lambda text, m: text[max(0, m - 1) : m + 1]), "the last two tokens"),
        "sets": (apart(lambda text, m: frozenset(text[: m + 1])), "count the kinds"),
        "one too few": (lambda text: apart_by_shares(text) - 1, "One too few"),
        "one too many": (lambda text: apart_by_shares(text) + 1, "One too many"),
        "what is lost": (lambda text: len(text) - apart_by_shares(text), "places that are lost"),
        "the set": (lambda text: set(text), "it should be one number"),
        "runs": (lambda text: len(list(itertools.groupby(text))), None),
    },
    "nope.packed": {
        "running on": (with_positions(lambda names: torch.arange(len(names))), "run on"),
        "nothing done": (lambda names: (torch.arange(len(names)), past(names)), "run on"),
        "from 1": (with_positions(lambda names: packed(names)[0] + 1), "begin at 1"),
        "backwards": (with_positions(lambda names: alike(names).triu().sum(dim=1) - 1), "run backwards"),
        "the document's number": (
            with_positions(lambda names: names.unique_consecutive(return_inverse=True)[1]),
            "number the documents",
        ),
        "the documents' names": (with_positions(lambda names: names), None),
        "names that rise by one": (
            with_positions(
                lambda names: (
                    torch.arange(len(names))
                    - torch.cummax(torch.arange(len(names)) * (names.diff(prepend=names[:1]) == 1), dim=0).values
                )
            ),
            "so many tokens of its document",
        ),
        "causal": (with_mask(past), "is the causal one"),
        "not causal": (with_mask(alike), "later ones of their document"),
        "wrong way round": (with_mask(lambda names: ~packed(names)[1]), "True should stand"),
        "other documents": (with_mask(lambda names: names[:, None] != names), "True should stand"),
        "transposed": (with_mask(lambda names: alike(names).triu()), "is transposed"),
        "not itself": (with_mask(lambda names: alike(names).tril(-1)), "do not see themselves"),
        "by positions": (
            with_mask(lambda names: packed(names)[0][:, None] >= packed(names)[0]),
            "the beginnings of all documents",
        ),
        "by positions, and the past": (
            with_mask(lambda names: (packed(names)[0][:, None] >= packed(names)[0]) & past(names)),
            "the documents before its own",
        ),
        "by names": (with_mask(lambda names: (names[:, None] >= names) & past(names)), "the documents' names"),
        "nothing hidden": (with_mask(lambda names: torch.ones(len(names), len(names))), "hides nothing"),
        "as a bias": (with_mask(lambda names: torch.where(packed(names)[1], 0.0, -torch.inf)), "holds True and False"),
        "positions alone": (lambda names: packed(names)[0], "two things"),
        "exchanged": (lambda names: packed(names)[::-1], "has shape"),
    },
}
