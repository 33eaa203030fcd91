"""Exercises of chapter 14: the depth of brackets, and the assignment on blind layers, images and packed texts."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.attention import attention
from posenc_course.checks._verdict import Wrong, answer, answer_on_copies, as_number, as_table, as_truth, check, compare

_FIRST, _STEP = "^", {"^": 0, "(": 1, ")": -1}


@check(draws=False)
def depth(my_values: Callable[[str], Any], my_readout: Callable[[Tensor], Any]) -> str:
    """Try my_values(token) -> vector for the tokens "^", "(" and ")", and my_readout(mean) -> depth.

    Texts begin with "^". At every place my_readout gets the mean of the vectors up to there, float64, and must return how many
    brackets are open. Chapter 14.
    """
    vectors = {token: _vector(my_values, token) for token in _STEP}
    if len({len(vector) for vector in vectors.values()}) != 1:
        raise Wrong(f"my_values returns vectors of {[len(v) for v in vectors.values()]} numbers: they must be of one length.")
    said = {text: [_number(my_readout, mean) for mean in _means(text, vectors)] for text in _texts()}
    if _agree(said, _depths):
        return f"Right: at every place of {len(said)} texts, up to {max(map(len, said))} tokens long."
    return next((hint for known, hint in _MISTAKES if _agree(said, known)), None) or _first_wrong(said)


def _texts() -> list[str]:
    """Short ones that tell mistakes apart, then long random ones; some close more than was opened before."""
    rng = random.Random(0)
    long = ["".join(rng.choices("()", weights=(up, 1), k=length)) for up, length in ((1.3, 60), (1.0, 300), (2.0, 1000))]
    return [_FIRST + text for text in ("(", "()", "((", "(()", "(())()", ")(", *long)]


def _means(text: str, vectors: dict[str, Tensor]) -> Tensor:
    """What a head of equal weights gives at each place, (L, d)."""
    stacked = torch.stack([vectors[token] for token in text])
    return stacked.cumsum(dim=0) / torch.arange(1, len(text) + 1, dtype=torch.float64).unsqueeze(1)


def _depths(text: str) -> list[float]:
    return list(itertools.accumulate(float(_STEP[token]) for token in text))


_MISTAKES: list[tuple[Callable[[str], list[float]], str]] = [
    (lambda text: [depth / (m + 1) for m, depth in enumerate(_depths(text))],
     "You return the depth divided by the number of tokens. What in the mean tells how many there are?"),
    (lambda text: list(itertools.accumulate(float(token == "(") for token in text)),
     "You count what was opened, and never what was closed."),
    (lambda text: [-depth for depth in _depths(text)],
     "The sign is the wrong way round: with you an opening bracket leads down, and a closing one up."),
    (lambda text: [depth + 1 for depth in _depths(text)], 'One too many everywhere: the first token, "^", is no bracket.'),
    (lambda text: [m + 1.0 for m in range(len(text))],
     "You return the number of tokens: the counter works, now count brackets with it."),
    (lambda text: [float(m) for m in range(len(text))],
     "You return the position: the counter works, now count brackets with it."),
]  # fmt: skip


def _agree(said: dict[str, list[float]], known: Callable[[str], list[float]]) -> bool:
    return all(np.allclose(numbers, known(text), rtol=0, atol=1e-3) for text, numbers in said.items())


def _first_wrong(said: dict[str, list[float]]) -> str:
    wrong = ((text, m, a, b) for text in said for m, (a, b) in enumerate(zip(said[text], _depths(text), strict=True)))
    text, place, number, right = next(case for case in wrong if not abs(case[2] - case[3]) <= 1e-3)
    shown = text[: place + 1] if place < 12 else f"a text of {place + 1} tokens"
    return f"After {shown} the depth is {right:g}, and my_readout says {number:.4g}."


def _vector(my_values: Callable[[str], Any], token: str) -> Tensor:
    call = f'my_values("{token}")'
    result = answer(my_values, token, call=call)
    try:
        vector = torch.as_tensor(np.array(result), dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Wrong(f"{call} returned a {type(result).__name__} that is no vector of numbers.") from error
    if vector.ndim != 1 or len(vector) == 0 or not vector.isfinite().all():
        raise Wrong(f"{call} must be one vector of finite numbers, for example [1.0, 0.0], got {result!r}.")
    return vector


def _number(my_readout: Callable[[Tensor], Any], mean: Tensor) -> float:
    call = f"my_readout({[round(x, 4) for x in mean.tolist()]})"
    result = answer(my_readout, mean.clone(), call=call)
    return as_number(result, call=call, finite="does the first token leave something in the mean to divide by?")


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check()
def patch_positions(my_positions: Callable[[int, int], Any], *, seed: int) -> str:
    """Try my_positions(rows, columns) -> (rows · columns, 2) the row and column of each patch, row by row. Chapter 14."""
    rng = random.Random(seed)
    cases = [(3, 5), (5, 2), (1, 4), (rng.randint(6, 9), rng.randint(2, 5)), (2, rng.randint(6, 9))]

    def right(rows: int, columns: int) -> Tensor:
        return torch.tensor([[row, column] for row in range(rows) for column in range(columns)])

    mistakes = [
        (lambda r, c: right(r, c).flip(1), "Your two numbers have changed places: first the row, then the column."),
        (lambda r, c: right(c, r).flip(1), "You go through the picture column by column: here a row is finished first."),
        (lambda r, c: right(c, r), "You go through the picture column by column, and name the column first."),
        (lambda r, c: right(r, c) + 1, "You count rows and columns from 1."),
        (lambda r, c: torch.stack([torch.arange(r * c) // r, torch.arange(r * c) % c], dim=1),
         "How many patches does one row have: as many as there are rows, or columns?"),
        (lambda r, c: right(r, c).flip(0), "You begin at the end: the first patch is the one in row 0 and column 0."),
        (lambda r, c: torch.stack([torch.arange(r * c), torch.arange(r * c)], dim=1),
         "You number the patches, twice: a row and a column were asked for."),
    ]  # fmt: skip
    praise = f"all {len(cases)} pictures, the wide and the high ones."
    return compare(my_positions, cases, right, mistakes, name="patch_positions", praise=praise)


@check()
def is_sum(my_test: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_test(scores) -> whether the table is a part from the row plus a part from the column, on 16 tables. Chapter 14."""
    generator, rng = torch.Generator().manual_seed(seed), random.Random(seed)
    rows, columns = rng.randint(5, 6), rng.randint(7, 8)
    row, column = torch.meshgrid(torch.arange(rows) - 2.0, torch.arange(columns) - 3.0, indexing="ij")
    row, column = row.double(), column.double()
    f = torch.rand(rows, 1, dtype=torch.float64, generator=generator) + 0.5
    g = torch.rand(1, columns, dtype=torch.float64, generator=generator) + 0.5
    # Ends of an interval, so that a product of the two is never close to a sum.
    f[0], f[1], g[0, 0], g[0, 1] = 0.5, 1.5, 0.5, 1.5
    corner = f + g
    corner[-1, -1] += 1
    nearly = f + g
    nearly[2, 3] += 1e-4
    tables = {
        "a sum of two random parts": (3.7 * f + g, True),
        "the same score everywhere": (torch.full_like(row, 0.3), True),
        "a score for each row": (f.expand(rows, columns).clone(), True),
        "a score for each column": (g.expand(rows, columns).clone(), True),
        "rows away plus columns away": (-row.abs() - column.abs(), True),
        "the square of the distance": (-(row**2) - column**2, True),
        "the distance as a bird flies": (-(row**2 + column**2).sqrt(), False),
        "the larger of rows and columns away": (-torch.maximum(row.abs(), column.abs()), False),
        "the diagonal": ((row == column).double(), False),
        "a chessboard": ((row + column).remainder(2), False),
        "one patch in the middle": (((row == 0) & (column == 0)).double(), False),
        "a product of two random parts": (f * g, False),
        "a sum with another number in its last corner": (corner, False),
        "a product of two that rise": ((row + 2) * (column + 3) / 10, False),
        "a product of one that rises and one that falls": ((row + 2) * (3 - column) / 10, False),
        "a sum with one number that is 0.0001 too large": (nearly, False),
    }
    said = {}
    for name, (table, _) in tables.items():
        call = f"is_sum({name})"
        said[name] = as_truth(answer_on_copies(my_test, table, call=call), call=call)
    missed = [name for name, (_, truth) in tables.items() if said[name] != truth]
    if not missed:
        return f"Right: all {len(tables)} tables, of which one head can have six."
    if len(set(said.values())) == 1:
        raise Wrong(f"You say {said['the diagonal']} to all {len(tables)} tables.")
    if len(missed) == len(tables):
        raise Wrong("The wrong way round: all your answers are the opposite of what they should be.")

    def steps(t: Tensor) -> Tensor:
        return t.diff(dim=0).diff(dim=1)

    mistakes: list[tuple[Callable[[Tensor], bool], str]] = [
        (lambda t: abs(t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0]).item() < 1e-6,
         "You look at one square of four patches: others may break the rule where this one keeps it."),
        (lambda t: abs(t[0, 0] + t[-1, -1] - t[0, -1] - t[-1, 0]).item() < 1e-6,
         "You look at the four corners alone, or at a mean, which comes to the same: other patches may break the rule."),
        (lambda t: bool((t[1] - t[0] - t[1, 0] + t[0, 0]).abs().max() < 1e-6),
         "You compare the first two rows alone: others may break the rule where these keep it."),
        (lambda t: bool((t[:, 1] - t[:, 0] - t[0, 1] + t[0, 0]).abs().max() < 1e-6),
         "You compare the first two columns alone: others may break the rule where these keep it."),
        (lambda t: bool(max(float(t.diff(dim=k).max() - t.diff(dim=k).min()) for k in (0, 1)) < 1e-6),
         "You want equal steps from row to row and from column to column: f and g may be any numbers."),
        *((lambda t, sign=sign, rest=rest: bool((sign * rest(t)).max() < 1e-6),
           "You take no absolute value: a square can break the rule in either direction.")
          for sign in (1, -1) for rest in (steps, lambda t: t - t[:1] - t[:, :1] + t[0, 0])),
        (lambda t: bool(torch.linalg.matrix_rank(t) == 1),
         "You look for products, tables of rank 1: the two parts are added."),
        (lambda t: bool(torch.linalg.matrix_rank(t) <= 2),
         "A sum has rank 2 at most, and so have other tables, a product for one: it is not enough."),
        (lambda t: bool((t - t[:1]).abs().max() < 1e-6), "You want all rows alike: they may differ, by one number each."),
        (lambda t: bool((t - t[:, :1]).abs().max() < 1e-6),
         "You want all columns alike: they may differ, by one number each."),
        (lambda t: bool(min((t - t[:1]).abs().max(), (t - t[:, :1]).abs().max()) < 1e-6),
         "You allow one of the two parts: a score may have both, one from its row and one from its column."),
        (lambda t: bool(torch.stack([steps(t)[k, k] for k in range(min(steps(t).shape))]).abs().max() < 1e-6),
         "You look at the squares along the diagonal: others may break the rule where these keep it."),
    ]  # fmt: skip
    for mistake, hint in mistakes:
        if all(mistake(table) == said[name] for name, (table, _) in tables.items()):
            raise Wrong(hint)
    if missed == [list(tables)[-1]]:
        raise Wrong(f"Your tolerance is too wide: {missed[0]} is none up to 1e-6.")
    if all(tables[name][1] for name in missed):
        # The other sums are of whole numbers, with which there is nothing to round.
        rounded = " Numbers that are equal on paper differ in the last digit here, so compare with a tolerance."
        hint = rounded if set(missed) <= set(list(tables)[:4]) else " What are f and g there?"
        raise Wrong(f"Too strict: you say False to {', and to '.join(missed)}.{hint}")
    raise Wrong(f"is_sum({missed[0]}) gives {said[missed[0]]}, and should give {tables[missed[0]][1]}.")


@check()
def told_apart(my_count: Callable[[str], Any], *, seed: int) -> str:
    """Try my_count(text) -> how many different outputs one causal layer without positions can give on it, on eleven texts.

    Chapter 14.
    """
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    long = ["".join(rng.choices("abc", k=rng.randint(8, 14))) for _ in range(2)]
    # A fixed part in which every known mistake counts something else.
    cases = [
        (text,)
        for text in ("aaaa", "abab", "^aaaaa", "abba", "aabbab", "abcacbbca", "ababbbbba", "aabcabbc", "aabcacac", *long)
    ]
    vectors = {letter: torch.randn(24, dtype=torch.float64, generator=generator) for letter in "^abc"}
    query, key, value = torch.randn(3, 24, 24, dtype=torch.float64, generator=generator) / 5

    def right(text: str) -> int:
        """Asks a layer with random weights: they confound no two places that any weights could tell apart."""
        x = torch.stack([vectors[letter] for letter in text])
        past = torch.ones(len(text), len(text), dtype=torch.bool).tril()
        y = attention(x @ query, x @ key, x @ value, mask=past)
        apart = (y[:, None] - y).abs().amax(dim=-1) > 1e-9
        return sum(bool(apart[m, :m].all()) for m in range(len(text)))

    def shares(text: str) -> tuple[float, ...]:
        return tuple(round(text.count(letter) / max(len(text), 1), 9) for letter in "^abc")

    def places(seen: Callable[[str, int], Any]) -> Callable[[str], int]:
        """How many places differ in what is seen there."""
        return lambda text: len({seen(text, m) for m in range(len(text))})

    mistakes: list[tuple[Callable[[str], int], str]] = [
        (places(lambda text, m: m),
         "You tell all places apart, perhaps by how many tokens each sees: but a mean of two equal values is that of three."),
        (places(lambda text, m: text[m]),
         "You count the kinds of tokens: a token also sees which others came before, and in which shares."),
        (places(lambda text, m: (text[m], frozenset(text[: m + 1]))),
         "You look at which tokens were seen: attention averages, so their shares count as well."),
        (places(lambda text, m: shares(text[: m + 1])),
         "You look at the shares alone: which token asks makes a difference too, since it weighs them its own way."),
        (places(lambda text, m: (text[m], tuple(sorted(shares(text[: m + 1]))))),
         "You compare shares without their letters: two thirds `a` and a third `b` are not the same as the other way round."),
        (places(lambda text, m: (text[m], round(text[: m + 1].count(text[m]) / (m + 1), 9))),
         "You look at the share of the letter that asks: how the rest is shared among the others counts as well."),
        (places(lambda text, m: (text[m], round(text[: m + 1].count(text[0]) / (m + 1), 9))),
         "You look at the share of the first letter: how the rest is shared among the others counts as well."),
        (places(lambda text, m: (text[m], shares(text[:m]))), "Causal attention includes the token itself: you leave it out."),
        (places(lambda text, m: shares(text[:m])), "Causal attention includes the token itself: you leave it out."),
        (places(lambda text, m: text[max(m - 1, 0) : m + 1]),
         "You look at the last two tokens: every token that came before is in the average."),
        (lambda text: right(text) - 1, "One too few: the first place counts as well."),
        (lambda text: right(text) + 1, "One too many."),
        (lambda text: len(text) - right(text), "You count the places that are lost: the outputs that differ were asked for."),
    ]  # fmt: skip
    praise = "a layer with random weights agrees on every text."
    return compare(my_count, cases, right, mistakes, name="told_apart", praise=praise)


@check()
def packed(my_packing: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_packing(documents) -> positions (L,) and mask (L, L): each document as if it stood alone. Chapter 14."""
    rng = random.Random(seed)
    # The last two name their documents in no order, and the very last is one document.
    falling = sorted(rng.sample(range(3, 40), 3), reverse=True)
    mixed = [name for name in falling for _ in range(rng.randint(2, 5))] + [50, 50, 1]
    documents = [torch.tensor(case) for case in ([0, 0, 0, 1, 1, 2, 2, 2, 2], mixed, [rng.randint(3, 9)] * 5)]
    read = [_packing(my_packing, case) for case in documents]
    for known, hint in _POSITION_MISTAKES:
        if all(torch.equal(positions, known(names)) for (positions, _), names in zip(read, documents, strict=True)):
            raise Wrong(hint)
    for (positions, _), names in zip(read, documents, strict=True):
        if not torch.equal(positions, _restarting(names)):
            place = int((positions != _restarting(names)).nonzero()[0])
            raise Wrong(
                f"packed({names.tolist()}): token {place} is at position {positions[place]:g}, and should be at "
                f"{_restarting(names)[place]:g}: so many tokens of its document come before it."
            )
    for rule, hint in _MASK_MISTAKES:
        if all(torch.equal(mask, rule(names)) for (_, mask), names in zip(read, documents, strict=True)):
            raise Wrong(hint)
    for (_, mask), names in zip(read, documents, strict=True):
        wrong = (mask != _own_past(names)).nonzero()
        if len(wrong):
            m, n = wrong[0].tolist()
            raise Wrong(
                f"packed({names.tolist()}): mask[{m}, {n}] is {bool(mask[m, n])}, and should be {not mask[m, n]}: token {m} is "
                f"of document {names[m]}, token {n} of document {names[n]}."
            )
    return "Right: every document is at its own positions and sees its own past, whatever the documents are called."


def _packing(my_packing: Callable[[Tensor], Any], documents: Tensor) -> tuple[Tensor, Tensor]:
    call, length = f"packed({documents.tolist()})", len(documents)
    result = answer_on_copies(my_packing, documents, call=call)
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Wrong(f"{call} should return two things, positions and mask: return positions, mask.")
    shapes = [tuple(np.shape(part)) for part in result if isinstance(part, Tensor | np.ndarray)]
    if shapes == [(length, length), (length,)]:
        raise Wrong(f"{call} returns the mask first: return positions, mask.")
    positions = as_table(result[0], (length,), call=f"positions of {call}")
    mask = as_table(result[1], (length, length), call=f"mask of {call}")
    if not torch.isin(mask, torch.tensor([0.0, 1.0], dtype=mask.dtype)).all():
        raise Wrong(f"{call}: a mask holds True and False, and yours holds {mask.min():g} to {mask.max():g}.")
    return positions, mask.bool()


def _alike(documents: Tensor) -> Tensor:
    return documents[:, None] == documents


def _own_past(documents: Tensor) -> Tensor:
    return _alike(documents).tril()


def _restarting(documents: Tensor) -> Tensor:
    return _own_past(documents).sum(dim=1).double() - 1


_POSITION_MISTAKES: list[tuple[Callable[[Tensor], Tensor], str]] = [
    (lambda names: torch.arange(len(names)).double(), "Your positions run on: they should begin anew with each document."),
    (lambda names: _restarting(names) + 1, "Your positions begin at 1: the first token of a document is at 0."),
    (lambda names: _alike(names).triu().sum(dim=1).double() - 1,
     "Your positions run backwards, down to 0 at a document's end."),
    (lambda names: torch.cat([torch.zeros(1), (names.diff() != 0).cumsum(dim=0)]).double(),
     "You number the documents: the place of each token within its own was asked for."),
    (lambda names: torch.cat([torch.arange(int(n)) for n in names.unique(return_counts=True)[1]]).double(),
     "Your lengths are in the order of the documents' numbers: these come in any order."),
    (lambda names: (torch.arange(len(names)) - torch.searchsorted(names, names)).double(),
     "Your positions take the documents' numbers for rising ones: these come in any order."),
    (lambda names: (torch.arange(len(names)) % int((names == names[0]).sum())).double(),
     "Your positions take all documents for as long as the first."),
]  # fmt: skip
_MASK_MISTAKES: list[tuple[Callable[[Tensor], Tensor], str]] = [
    (lambda names: torch.ones(len(names), len(names)).tril().bool(),
     "Your mask is the causal one: with it, a token sees the documents before its own."),
    (_alike, "Your mask lets tokens see later ones of their document: it should be causal as well."),
    (lambda names: ~_own_past(names), "Your mask is the wrong way round: True should stand where m may see n."),
    (lambda names: _own_past(names).T, "Your mask is transposed: rows are the tokens m that look, and they look back."),
    (lambda names: _own_past(names).tril(-1),
     "Your tokens do not see themselves, and the first of a document sees nothing at all."),
    (lambda names: _restarting(names)[:, None] >= _restarting(names),
     "Your mask compares positions, and these begin anew: a token sees the beginnings of all documents, even of later ones."),
    (lambda names: (_restarting(names)[:, None] >= _restarting(names)).tril(),
     "Your mask compares positions, and these begin anew: a token sees the beginnings of the documents before its own."),
    (lambda names: names[:, None] >= names,
     "Your mask compares the documents' names: these are in no order, and only equal ones count."),
    (lambda names: (names[:, None] >= names).tril(),
     "Your mask compares the documents' names: these are in no order, and only equal ones count."),
    (lambda names: ~_alike(names), "Your mask is the wrong way round: True should stand where m may see n."),
    (lambda names: torch.ones(len(names), len(names)).bool(), "Your mask hides nothing."),
]  # fmt: skip
