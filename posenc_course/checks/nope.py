"""Exercises on choosing: the depth of brackets, axial heads, layers without positions, and packed texts."""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, Sizes, exercise
from posenc_course.checks._sandbox import Wrong

_FIRST, _STEP = "^", {"^": 0, "(": 1, ")": -1}


def _texts() -> dict[str, str]:
    """Short texts that tell mistakes apart, then long random ones; some close more brackets than they opened before."""
    rng = random.Random(0)
    short = {"one bracket": "(", "a pair": "()", "two open brackets": "((", "two brackets of which one is closed": "(()",
        "three pairs of brackets": "(())()", "a bracket that closes before one opens": ")("}  # fmt: skip
    long = {f"{length} brackets": "".join(rng.choices("()", weights=(up, 1), k=length))
            for up, length in ((1.3, 40), (1.0, 100), (2.0, 400))}  # fmt: skip
    return {name: _FIRST + text for name, text in (short | long).items()}


@exercise("my_values", "my_readout")
def depth() -> Exercise:
    """my_values(token) -> vector for the tokens "^", "(" and ")", and my_readout(mean) -> how many brackets are open.

    Texts begin with "^". At every position, my_readout gets the mean of all vectors up to that position, in float64.
    """
    texts = _texts()
    vectors = {"^": [1.0, 0.0], "(": [0.0, 1.0], ")": [0.0, -1.0]}

    def depths(text: str) -> Tensor:
        return torch.tensor(list(itertools.accumulate(float(_STEP[token]) for token in text)), dtype=torch.float64)

    def ask(values: Call, readout: Call, text: str) -> Tensor:
        chosen = {token: values(token, wanted=Sizes((None,))) for token in _STEP}
        if len({len(vector) for vector in chosen.values()}) != 1:
            raise Wrong(
                f"my_values returns vectors of {[*map(len, chosen.values())]} numbers. All should have the same length."
            )
        means = torch.stack([chosen[token] for token in text]).cumsum(dim=0)
        means = means / torch.arange(1, len(text) + 1, dtype=torch.float64)[:, None]
        return torch.tensor([readout(mean, wanted=0.0) for mean in means], dtype=torch.float64)

    def fault(said: Sequence[Tensor]) -> str | None:
        for text, numbers in zip(texts.values(), said, strict=True):
            wrong = (~torch.isclose(numbers, depths(text), rtol=0, atol=1e-3)).nonzero().flatten().tolist()
            if wrong:
                shown = text[: wrong[0] + 1] if wrong[0] < 12 else f"a text of {wrong[0] + 1} tokens"
                open_, number = float(depths(text)[wrong[0]]), float(numbers[wrong[0]])
                return f"After {shown}, the depth is {open_:g}, but my_readout returns {number:.4g}."
        return None

    def so(readout: Callable[[Tensor], Any], **changed: list[float]) -> tuple[Any, Any]:
        named = {"first": "^", "opened": "(", "closed": ")"}
        chosen = vectors | {named[name]: vector for name, vector in changed.items()}
        return chosen.__getitem__, readout

    def quotient(mean: Tensor) -> Tensor:
        return mean[1] / mean[0]

    return Exercise(
        cases={name: (text,) for name, text in texts.items()},
        right=so(quotient),
        ask=ask,
        same=lambda a, b: np.allclose(a, b, rtol=0, atol=1e-3),
        fault=fault,
        mistakes={
            "opened": (so(quotient, closed=[0.0, 0.0]), "You count the brackets that are opened, but not those that are "
                                                        "closed."),
            "minus": (so(lambda mean: -mean[1] / mean[0]),
                "The sign is wrong: in your function, an opening bracket lowers the depth, and a closing one raises it."),
        },
        praise=f"your depth is right at every position of {len(texts)} texts, which have up to {max(map(len, texts.values()))} "
               "tokens.",
    )  # fmt: skip


@exercise()
def is_sum(seed: int) -> Exercise:
    """is_sum(scores) -> whether each score is the sum of a part from its row and a part from its column, up to 1e-6."""
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)

    def parts(rows: int, columns: int) -> tuple[Tensor, Tensor]:
        f = torch.rand(rows, 1, dtype=torch.float64, generator=generator) + 0.5
        g = torch.rand(1, columns, dtype=torch.float64, generator=generator) + 0.5
        # Include the ends of an interval, so that a product of the two is never close to a sum.
        f[0], f[1], g[0, 0], g[0, 1] = 0.5, 1.5, 0.5, 1.5
        return f, g

    def but(table: Tensor, *changes: tuple[int, int, float]) -> Tensor:
        table = table.clone()
        for row, column, more in changes:
            table[row, column] += more
        return table

    rows, columns = rng.randint(5, 6), rng.randint(8, 9)
    f, g = parts(rows, columns)
    row, column = (x.double() for x in torch.meshgrid(torch.arange(rows) - 2, torch.arange(columns) - 3, indexing="ij"))
    total, small = f + g, 0.1 * (f + g)
    high = sum(parts(9, 4), start=torch.zeros(()))
    # At the corners of a rectangle with even sides, so that the squares add up to 0 in each row, column and diagonal.
    swings = [(1, 1, 0.5), (1, 3, -0.5), (3, 1, -0.5), (3, 3, 0.5)]
    tables: dict[str, tuple[Tensor, bool]] = {
        "a sum of two random parts": (3.7 * f + g, True),
        "a score for each row": (f.expand(rows, columns).clone(), True),
        "a score for each column": (g.expand(rows, columns).clone(), True),
        "a sum in single precision": (small.float().double(), True),
        "a sum with more rows than columns": (high, True),
        "the straight-line distance": (-(row**2 + column**2).sqrt(), False),
        "the larger of rows and columns away": (-torch.maximum(row.abs(), column.abs()), False),
        "the diagonal": ((row == column).double(), False),
        "a product of two random parts": (f * g, False),
        "a product of a rising part and a falling part": ((row + 2) * (3 - column) / 10, False),
        "a product with two rows and two columns": ((f * g)[:2, :2].clone(), False),
        "a sum except for its last corner": (but(total, (-1, -1, 1.0)), False),
        "a sum except for the upper right corner": (but(total, (0, -1, -1.0)), False),
        "a sum except for its last column": (but(total, (2, -1, 0.7), (3, -1, -0.4)), False),
        "a sum except for its last row": (but(high, (-1, 1, 0.7), (-1, 2, -0.4)), False),
        "a sum except for four numbers in its middle": (but(total, *swings), False),
        "a sum with one number that is 0.00001 too large": (but(small, (2, 3, 1e-5)), False),
    }

    def squares(t: Tensor) -> Tensor:
        """(rows - 1, columns - 1): by how much each square of four neighbours breaks the rule."""
        return t.diff(dim=0).diff(dim=1)

    def from_first(t: Tensor) -> Tensor:
        return t - t[:1] - t[:, :1] + t[0, 0]

    def none(x: Tensor) -> bool:
        return bool(x.abs().max() < 1e-6) if x.numel() else True

    some = (
        "You check only some squares of four patches, or a mean over them. But every square has to pass this test, in all rows "
        "and all columns."
    )
    more = "You ask for too much. f and g may be any numbers, so neither rows, nor columns, nor steps have to be equal."
    product = (
        "You look at the rank, or for products. A sum has rank 2 or less, but so do other tables, for example products of two "
        "parts. Here, the two parts are added."
    )
    tolerance = (
        "Your tolerance is too small or too large. Numbers that should be equal can differ in their last digits because of "
        "rounding, so allow differences up to 1e-6, but not 0.00001."
    )
    parts_of: dict[str, Callable[[Tensor], Tensor]] = {
        "one square": lambda t: squares(t)[:1, :1],
        "the corners": lambda t: t[0, 0] + t[-1, -1] - t[0, -1] - t[-1, 0],
        "two rows": lambda t: from_first(t)[:2],
        "the diagonal": lambda t: squares(t).diagonal(),
    }
    return Exercise(
        cases={name: (table,) for name, (table, _) in tables.items()},
        right=lambda t: none(squares(t)),
        mistakes={
            **{name: (lambda t, part=part: none(part(t)), some) for name, part in parts_of.items()},
            "equal steps": (lambda t: all(float(t.diff(dim=k).max() - t.diff(dim=k).min()) < 1e-6 for k in (0, 1)), more),
            "equal rows": (lambda t: none(t - t[:1]), more),
            **{f"no absolute value {sign:+d}": (lambda t, sign=sign: bool((sign * squares(t)).max() < 1e-6),
                "You don't take an absolute value. But a difference can be negative as well as positive.") for sign in (1, -1)},
            "rank two, to the last digit": (lambda t: bool(torch.linalg.matrix_rank(t) <= 2), product),
            "rank two": (lambda t: bool(torch.linalg.matrix_rank(t, atol=1e-6) <= 2), product),
            "to the last digit": (lambda t: bool((squares(t) == 0).all()), tolerance),
            "to the last digit, from the first": (lambda t: bool((from_first(t) == 0).all()), tolerance),
            "to the last digit, two sums": (lambda t: bool((t[1:, 1:] + t[:-1, :-1] == t[1:, :-1] + t[:-1, 1:]).all()),
                tolerance),
        },
        praise=f"all {len(tables)} tables are right, and {sum(known for _, known in tables.values())} of them can be the "
               "scores of a single head.",
    )  # fmt: skip


@exercise()
def told_apart(seed: int) -> Exercise:
    """told_apart(text) -> how many different outputs one causal layer without positions can have for this text."""
    rng = random.Random(seed)
    a, b, c, d = rng.sample("abcdefghijklmnopqrstuvwxyz", 4)
    texts = {
        "the same letter throughout": 4 * a,
        "two alternating letters": a + b + a + b,
        "a special first token": "^" + 5 * a,
        "a text and its mirror image": a + b + b + a,
        "three letters": a + b + c + a + c + b + b + c + a,
        "one letter rarer than the other": a + b + a + 5 * b + a,
        "a third letter that comes late": a + a + b + c + a + b + b + c,
        "equal shares of one letter with different remaining letters": a + b + a + c + a + a,
        "four letters": a + b + c + d + d + c + b + a + b + d + c + a,
        "shares that are nearly equal": a + 30 * b + a + 30 * b,
    }
    texts |= {f"{n} letters in no order": "".join(rng.choices(a + b + c, k=n)) for n in (9, 14)}
    letters = "^" + a + b + c + d

    def shares(text: str, digits: int = 9) -> tuple[float, ...]:
        return tuple(round(text.count(letter) / max(len(text), 1), digits) for letter in letters)

    def positions(seen: Callable[[str, int], Any]) -> Callable[[str], int]:
        """The number of positions that differ in what is seen there."""
        return lambda text: len({seen(text, m) for m in range(len(text))})

    def rounded(digits: int) -> Callable[[str, int], Any]:
        return lambda text, m: (text[m], shares(text[: m + 1], digits))

    past = (
        "You look at too little of what a position sees. An output depends on all letters so far, and on their shares, since "
        "attention takes an average."
    )
    shared = (
        "You compare only a part of what matters: which letter is the query, because it gives the letters its own weights, and "
        "the share of each letter so far, by name."
    )
    itself = "You leave out the token itself, but causal attention includes it."
    return Exercise(
        cases={name: (text,) for name, text in texts.items()},
        right=positions(rounded(9)),
        mistakes={
            "all": (positions(lambda text, m: m),
                "You tell all positions apart. But the mean of two equal values is the same as the mean of three."),
            "the query's letter": (positions(lambda text, m: text[m]), past),
            "which letters": (positions(lambda text, m: (text[m], frozenset(text[: m + 1]))), past),
            "runs": (lambda text: len(list(itertools.groupby(text))), past),
            "shares alone": (positions(lambda text, m: shares(text[: m + 1])), shared),
            "shares without letters": (positions(lambda text, m: (text[m], tuple(sorted(shares(text[: m + 1]))))), shared),
            "its own share": (positions(lambda text, m: (text[m], round(text[: m + 1].count(text[m]) / (m + 1), 9))), shared),
            **{f"rounded to {digits} digits": (positions(rounded(digits)),
                "You round the shares, so some different shares become equal. Compare exact fractions.")
               for digits in (1, 2, 3)},
            "before itself": (positions(lambda text, m: (text[m], shares(text[:m]))), itself),
            "before itself, whoever asks": (positions(lambda text, m: shares(text[:m])), itself),
        },
        praise="for every text, you count the outputs that a layer can tell apart.",
    )  # fmt: skip


@exercise()
def packed(seed: int) -> Exercise:
    """packed(documents) -> positions (L,) and mask (L, L), so that each document is treated as if it were alone."""
    rng = random.Random(seed)
    falling = sorted(rng.sample(range(3, 40), 3), reverse=True)
    texts = {
        "rising numbers": [0, 0, 0, 1, 1, 2, 2, 2],
        "numbers in a mixed order": [name for name in falling for _ in range(rng.randint(2, 5))] + [50, 50, 1],
        "a single document": [rng.randint(3, 9)] * 5,
        "large and negative numbers": [-5, -5, 10**9, 10**9, 10**9, -6],
        "many documents": [name for name in rng.sample(range(100), 12) for _ in range(rng.randint(1, 6))],
    }

    def alike(names: Tensor) -> Tensor:
        return names[:, None] == names

    def past(names: Tensor) -> Tensor:
        return torch.ones(len(names), len(names), dtype=torch.bool).tril()

    def own(names: Tensor) -> Tensor:
        return alike(names) & past(names)

    def place(names: Tensor) -> Tensor:
        return own(names).sum(dim=1) - 1

    def at(positions: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
        """Positions with any mask: NaN stands for whatever the answer has there."""
        return lambda names: (positions(names), torch.full((len(names), len(names)), torch.nan))

    def seeing(mask: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
        return lambda names: (place(names), mask(names))

    def same(known: tuple[Tensor, Tensor], said: tuple[Tensor, Tensor]) -> bool:
        pairs = ((a.double(), b) for a, b in zip(known, said, strict=True))
        return all(bool((a.isnan() | (a == b)).all()) for a, b in pairs)

    def runs(names: Tensor) -> Tensor:
        return names.unique_consecutive(return_inverse=True)[1]

    masks: dict[str, Callable[[Tensor], Tensor]] = {
        "causal": past,
        "by positions": lambda names: place(names)[:, None] >= place(names),
        "by names, and the past": lambda names: (names[:, None] >= names) & past(names),
        "earlier documents": lambda names: runs(names)[:, None] >= runs(names),
    }
    return Exercise(
        cases={name: (torch.tensor(text),) for name, text in texts.items()},
        right=lambda names: (place(names), own(names)),
        same=same,
        mistakes={
            "running on": (at(lambda names: torch.arange(len(names))),
                "Your positions continue from one document to the next. They should start again with each document."),
            "lengths in order": (at(lambda names: torch.cat([torch.arange(n)
                for n in names.unique(return_counts=True)[1].tolist()])),
                "You use the lengths in the order of the documents' numbers. But the documents can come in any order."),
            **{name: (seeing(mask),
                "Your mask lets a token see other documents. It may see only the past of its own. The numbers of the documents "
                "can come in any order, so it matters only whether two of them are equal.")
               for name, mask in masks.items()},
            "as a bias": (seeing(lambda names: torch.zeros(len(names), len(names)).masked_fill(~own(names), -torch.inf)),
                "You return numbers that are added to scores, 0 and -inf. Return a mask of True and False."),
        },
        praise="every document has its own positions and sees only its own past, whatever the numbers of the documents are.",
    )  # fmt: skip
