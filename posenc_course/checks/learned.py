"""Exercises of chapter 08: a table drawn out to more rows, and the assignment on a table's size, its end and its use."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, answer_on_copies, as_table, check, compare

_CASES = ((4, 7, 3), (5, 12, 4), (8, 64, 6))  # rows, rows wanted, d_model; the first two differ from it in all sizes


@check(draws=False)
def extend(my_extend: Callable[[Tensor, int], Any]) -> str:
    """Try my_extend(table, rows) -> (rows, d_model): the first and last row stay, the others lie between, evenly spaced.

    Row r of the result stands at r·(n - 1)/(rows - 1) in the table of n rows, on a straight line between the two rows beside
    it. Chapter 08.
    """
    for n, rows, d_model in _CASES:
        table = torch.randn(n, d_model, generator=torch.Generator().manual_seed(n))
        call = f"my_extend(table of {n} rows, {rows})"
        yours = as_table(answer(my_extend, table.clone(), rows, call=call), (rows, d_model), call=call)
        _judge(yours, table.double(), rows, call)
    return f"Right: {', '.join(f'{n} rows to {rows}' for n, rows, _ in _CASES)}, ends and all between."


def _judge(yours: Tensor, table: Tensor, rows: int, call: str) -> None:
    """Raise `Wrong` unless yours is the table drawn out to so many rows."""
    n = len(table)
    if not yours.isfinite().all():
        raise Wrong(f"{call} holds NaN or infinity.")
    if _close(yours, _at(table, torch.linspace(0, n - 1, rows))):
        return
    zeros = torch.zeros(rows - n, table.shape[1], dtype=table.dtype)
    r = torch.arange(rows)
    known = [
        (torch.cat((table, zeros)), "You padded with zeros: the old rows keep their places, and the new ones say nothing."),
        (table[r.clamp(max=n - 1)], "You repeated the last row: the new positions cannot be told apart."),
        (table[r % n], "You began again at row 0: two positions then share a row."),
        (_at(table, torch.linspace(0, n - 1, rows).round()),
         "Each of your rows is one of the old ones, the nearest. What lies between two rows?"),
        (table[r * n // rows], "Each of your rows is one of the old ones. What lies between two rows?"),
        (_at(table, r * n / rows),
         (f"Row {rows - 1} should be the last of the table: from the first row to the last there are {rows - 1} steps, and in "
          f"the table {n - 1}.")),
        (_at(table, (r + 0.5) * n / rows - 0.5),
         "The ends do not stay: your rows stand at the middles of intervals, as the pixels of a picture do (align_corners)."),
        (_at(table, torch.linspace(0, n - 1, rows)).flip(0), "It runs backwards: your first row is the table's last."),
    ]  # fmt: skip
    for table_known, hint in known:
        if _close(yours, table_known):
            raise Wrong(hint)
    for row, name in ((0, "first"), (rows - 1, "last")):
        if not _close(yours[row], table[row and n - 1]):
            raise Wrong(f"In {call} the {name} row is not the table's {name} row.")
    first = int((yours - _at(table, torch.linspace(0, n - 1, rows))).abs().amax(dim=1).gt(1e-4).nonzero()[0])
    place = first * (n - 1) / (rows - 1)
    raise Wrong(f"In {call} row {first} should stand at {place:.2f} of the table: how far is that from each of its neighbours?")


def _at(table: Tensor, places: Tensor) -> Tensor:
    """Rows at fractional places, on straight lines; beyond the ends the end."""
    places = places.double().clamp(0, len(table) - 1)
    low = places.floor().clamp(max=len(table) - 2).long()
    return torch.lerp(table[low], table[low + 1], (places - low).unsqueeze(1))


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0, atol=1e-4)


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check()
def share(my_share: Callable[[int, int, int, int], Any], *, seed: int) -> str:
    """Try my_share(rows, d_model, vocabulary, layers) -> the positions' share of all parameters, for BERT, GPT-2 and others.

    Counted are d_model for each row and each word, and 12·d_model² for each layer. Chapter 08.
    """
    draw = random.Random(seed)
    cases = [(512, 768, 30522, 12), (1024, 768, 50257, 12)]
    cases += [(draw.randint(100, 5000), 8 * draw.randint(2, 20), draw.randint(200, 900), draw.randint(2, 6)) for _ in range(3)]

    def parts(rows: int, d: int, vocabulary: int, layers: int) -> tuple[int, int, int]:
        return rows * d, vocabulary * d, 12 * layers * d * d

    def right(*case: int) -> float:
        positions, words, inner = parts(*case)
        return positions / (positions + words + inner)

    def mine(*case: int) -> Any:
        said = my_share(*case)
        return float(said) if isinstance(said, Fraction) else said

    def of_the_rest(*case: int) -> float:
        positions, words, inner = parts(*case)
        return positions / (words + inner)

    def once_for_all_layers(*case: int) -> float:
        positions, words, inner = parts(*case)
        return positions / (positions + words + inner / case[3])

    def not_squared(*case: int) -> float:
        positions, words, inner = parts(*case)
        return positions / (positions + words + inner / case[1])

    mistakes = [
        (of_the_rest, "You divide by the other parameters: a share is a part of all, and the positions are among them."),
        (lambda *case: 100 * right(*case), "That is in per cent: a share lies between 0 and 1."),
        (once_for_all_layers, "You count one layer: each layer has 12·d² parameters of its own."),
        (not_squared, "A layer's matrices have d² entries each: 12·d is too few."),
        (
            lambda *case: parts(*case)[1] / sum(parts(*case)),
            "That is the share of the words: the positions' table is asked for.",
        ),
        (lambda *case: parts(*case)[0] / sum(parts(*case)[::2]), "The words are missing from the sum: a vector of d for each."),
        (lambda *case: parts(*case)[0] / sum(parts(*case)[:2]), "The layers are missing from the sum."),
        (lambda *case: case[0] / sum(parts(*case)), "You count the rows: each row holds d numbers."),
        (lambda *case: 0.0, "Whole division and rounding leave nothing of a share: divide with /, and round nothing."),
        *(
            (lambda *case, places=places: round(right(*case), places), "You rounded: return the share as it is.")
            for places in (1, 2, 3, 4)
        ),
        (lambda *case: 1 - right(*case), "That is the share of all the others."),
        (lambda *case: float(parts(*case)[0]), "That is how many parameters the positions have: divide by all there are."),
    ]
    return compare(
        mine if callable(my_share) else my_share, cases, right, mistakes, name="share", tolerance=1e-5,
        praise="BERT base, GPT-2 small and three small models.",
    )  # fmt: skip


@check()
def room(my_room: Callable[[int, int], Any], *, seed: int) -> str:
    """Try my_room(prompt, rows) -> how many new tokens a decoder can say until it would need a row beyond the table's last.

    Chapter 08.
    """
    draw = random.Random(seed)

    def right(prompt: int, rows: int) -> int:
        said = 0
        while prompt + said <= rows:  # all these tokens are read, and then one more is said
            said += 1
        return said

    mistakes = [
        (lambda p, rows: max(rows - p, 0), "One too few: the last token is said and never read, so it needs no row."),
        (lambda p, rows: max(rows - p - 1, 0),
         "Two too few: how many tokens are read before the last one is said? That one needs no row itself."),
        (lambda p, rows: rows - p,
         "One too few, as the last token is said and never read, so needs no row; and below 0 for a prompt that does not fit."),
        (lambda p, rows: rows - p + 1, "Less than no token? A prompt that is longer than the table leaves room for 0."),
        (lambda p, rows: abs(rows - p + 1), "A prompt that is longer than the table cannot be read at all: 0."),
        (lambda p, rows: max(rows - p + 1, 1), "A prompt that is longer than the table cannot be read at all: 0."),
        (lambda p, rows: max(rows - p + 2, 0), "One too many: a token can be said only after all before it have been read."),
        (lambda p, rows: rows, "The prompt is missing: its tokens take up rows as well, and only new ones are counted."),
        (lambda p, rows: rows + 1, "The prompt is missing: its tokens take up rows as well, and only new ones are counted."),
    ]  # fmt: skip
    cases = [(4, 6), (1, 1), (6, 6), (7, 6), (9, 6)]
    cases += [(draw.randint(2, 30), draw.randint(31, 60)) for _ in range(3)]
    return compare(
        my_room, cases, right, mistakes, name="room", praise="also where the prompt fills the table, and is too long."
    )


@check()
def untrained(my_untrained: Callable[[Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_untrained(before, after) -> (rows,), True where training never reached a row, on six tables.

    A trained row has turned by more than a degree; an untrained one was multiplied by the factor of the weight decay, the same
    for the whole table and not known, which rounding turns by less than a thousandth of a degree. Chapter 08.
    """
    draw = torch.Generator().manual_seed(seed)

    def tables(reached: list[bool], d: int, spread: float, factor: float) -> tuple[Tensor, Tensor]:
        before = spread * torch.randn(len(reached), d, generator=draw)
        # At a right angle, and in half of the channels only: the ratios of the others all stay the same.
        across, part = torch.randn(before.shape, generator=draw), before * (torch.arange(d) >= d // 2)
        across = across * (part != 0) - part * (across * part).sum(1, keepdim=True) / part.square().sum(1, keepdim=True)
        across *= before.norm(dim=1, keepdim=True) / across.norm(dim=1, keepdim=True)
        # The trained rows, by turns: as long as the untrained ones, hardly turned and shorter, far turned and longer, turned
        # right round. The last rows are of the last two kinds, so that whoever takes them for untrained gets a wrong factor.
        number = torch.arange(len(reached))[:, None]
        angle = torch.tensor([20.0, 1.5, 60.0, 180.0])[number % 4].deg2rad()
        length = factor * torch.tensor([1.0, 0.8, 1.6, 1.3])[number % 4]
        turned = length * (angle.cos() * before + angle.sin() * across)
        return before, torch.where(torch.tensor(reached)[:, None], turned, factor * before)

    def up_to(last: int, rows: int, first: int = 0) -> list[bool]:
        return [first <= row < last for row in range(rows)]

    some = int(torch.randint(5, 9, (), generator=draw))
    # Where texts begin with row 2 the first two are never reached: RoBERTa's table is such a one.
    settings = [
        (up_to(some, 12), 16, 0.02, 1.0),
        (up_to(some, 12), 16, 0.02, 0.99),
        (up_to(some, 12, first=2), 8, 0.7, 0.5),
        (up_to(12, 12, first=2), 16, 0.02, 0.9),
        (up_to(11, 11), 16, 0.02, 0.97),
        (up_to(0, 7), 8, 1.0, 0.97),
    ]
    truth, cases = [], []
    for reached, d, spread, factor in settings:
        cases.append(tables(reached, d, spread, factor))
        truth.append(~torch.tensor(reached))

    def right(before: Tensor, after: Tensor) -> Tensor:
        return next(t for t, (_, known) in zip(truth, cases, strict=True) if known.shape == after.shape and known.equal(after))

    def cosine(a: Tensor, b: Tensor) -> Tensor:
        return torch.nn.functional.cosine_similarity(a.double(), b.double(), dim=1)

    def same(a: Tensor, b: Tensor) -> Tensor:
        return ((a - b).abs() <= 1e-5 * b.abs().amax(dim=1, keepdim=True)).all(dim=1)

    def from_the_last(before: Tensor, after: Tensor) -> Tensor:
        """The last row taken for an untrained one, to find the factor."""
        return same(after, before * after[-1].norm() / before[-1].norm())

    def after_the_last(before: Tensor, after: Tensor) -> Tensor:
        reached = ~right(before, after)
        last = int(reached.nonzero().max()) if reached.any() else -1
        return torch.arange(len(after)) > last

    def lengths(before: Tensor, after: Tensor) -> Tensor:
        return after.norm(dim=1) / before.norm(dim=1)

    lax = "Too lax: a row that has turned by a degree and a half has been trained, and its cosine is still 0.9997."
    mistakes = [
        (lambda b, a: ~right(b, a), "True and False have changed places: True is for a row that training never reached."),
        (lambda b, a: same(a, b), "You look for rows that are as they were: weight decay has shrunk the untrained rows too."),
        (from_the_last, "You take the last row for an untrained one, to find the factor: in some tables it has been trained."),
        (after_the_last, "For you all rows up to the last trained one are trained: texts can begin at row 2 as well."),
        (lambda b, a: torch.ones(len(a)), "You find every row untrained: look at each row's direction, in all its channels."),
        (lambda b, a: cosine(b, a).abs() > 0.9999,
         "A row that points the other way has turned by 180 degrees, and been trained: its cosine is -1."),
        (lambda b, a: (cosine(b, a) > 0.9999) & (lengths(b, a) < 1 - 1e-6),
         "You ask that an untrained row is shorter: the factor of the weight decay can be 1."),
        (lambda b, a: (lengths(b, a) / lengths(b, a).median() - 1).abs() < 1e-4,
         "You go by length, and take the most frequent ratio for the factor: a trained row can be as long as before."),
        (lambda b, a: cosine(b, a) > 0.999, lax),
        (lambda b, a: cosine(b, a) > 0.99, lax),
        (lambda b, a: cosine(b, a) > 0.9, lax),
        (lambda b, a: lengths(b, a) <= 1 + 1e-6, "You go by length: a trained row can have become shorter too."),
        (lambda b, a: lengths(b, a) < 1, "You go by length: a trained row can have become shorter too."),
        (lambda b, a: (lengths(b, a) / lengths(b, a)[-1] - 1).abs() < 1e-4,
         "You go by length, and take the last row for untrained: trained rows can be as long, and the last can be trained."),
        (lambda b, a: torch.zeros(len(a)), "You find no row untrained: how can a row be shrunk, and its direction be kept?"),
    ]  # fmt: skip
    praise = "six tables, with and without weight decay, two of them with first rows that no text has reached."
    return compare(my_untrained, cases, right, mistakes, name="untrained", praise=praise)


@check()
def positions(my_positions: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_positions(mask) -> (batch, L): the words of each text counted from 0, wherever its padding stands.

    mask is True for a word and False for padding; at padding any whole number from 0 to L - 1 is right. Chapter 08.
    """
    draw = random.Random(seed)
    length = draw.randint(7, 9)
    # Words from … to …: first padding in front only, as in a batch for generation; then behind, on both sides, and none.
    short = draw.sample(range(2, length - 1), 3)
    batches = [[(length - words, length) for words in [*short, length]]]
    both = draw.randint(1, 2)
    mixed = [(0, short[0]), (length - short[1], length), (both, length - 2), (0, length)]
    draw.shuffle(mixed)
    batches.append(mixed)
    said = []
    for spans in batches:
        mask = torch.tensor([[start <= at < end for at in range(length)] for start, end in spans])
        call = f"positions(mask of shape {tuple(mask.shape)})"
        said.append((mask, as_table(answer_on_copies(my_positions, mask, call=call), tuple(mask.shape), call=call)))

    at = torch.arange(length).expand(len(batches[0]), -1)

    def first(mask: Tensor) -> Tensor:
        return mask.int().argmax(dim=1, keepdim=True)

    def right(mask: Tensor) -> Tensor:
        return at - first(mask)

    mistakes: list[tuple[Callable[[Tensor], Tensor], str]] = [
        (lambda mask: at, "That is the bug itself: with padding in front, a text's first word does not get row 0."),
        (lambda mask: at + 1, "You count the padding as well, and from 1."),
        (lambda mask: right(mask) + 1, "You count from 1: the first word belongs to row 0."),
        (lambda mask: at - (~mask).sum(dim=1, keepdim=True),
         "Padding behind the words must not be taken off: what you do fits padding in front only."),
        (lambda mask: (at - (~mask).sum(dim=1, keepdim=True)).clamp(min=0),
         "Padding behind the words must not be taken off: what you do fits padding in front only."),
        (lambda mask: at - first(mask)[:1], "Each text gets the first one's positions: each has padding of its own."),
        (lambda mask: (at - first(mask)[:1]).clamp(min=0),
         "Each text gets the first one's positions: each has padding of its own."),
        (lambda mask: mask[:1].int().cumsum(dim=1).expand_as(mask) - 1,
         "Each text gets the first one's positions: each has padding of its own."),
        (lambda mask: (mask[:1].int().cumsum(dim=1).expand_as(mask) - 1).clamp(min=0),
         "Each text gets the first one's positions: each has padding of its own."),
        (lambda mask: at - first(mask).max(), "All texts get the same positions: each has padding of its own."),
        (lambda mask: mask.int().cumsum(dim=0), "You count down the batch, from text to text: count along each text."),
        (lambda mask: mask.int().cumsum(dim=0) - 1, "You count down the batch, from text to text: count along each text."),
        (lambda mask: mask.flatten().int().cumsum(dim=0).view_as(mask) - 1,
         "Your count goes on from one text to the next: each text begins at 0."),
        (lambda mask: mask.flatten().int().cumsum(dim=0).view_as(mask),
         "Your count goes on from one text to the next: each text begins at 0."),
        (lambda mask: first(mask) + mask.sum(dim=1, keepdim=True) - 1 - at,
         "You count from the end: the first word belongs to row 0."),
        (lambda mask: (~mask).int().cumsum(dim=1), "You count padding and not words: True stands for a word."),
        (lambda mask: (~mask).int().cumsum(dim=1) - 1, "You count padding and not words: True stands for a word."),
        (lambda mask: mask.int(), "You return the mask: where is each word?"),
        (lambda mask: 0 * at, "Every word is at 0: then no word knows where it is."),
    ]  # fmt: skip

    def agree(known: Callable[[Tensor], Tensor]) -> bool:
        """On all words; padding may have any number."""
        return all(bool((known(mask) == yours)[mask].all()) for mask, yours in said)

    if not agree(right):
        for mistake, hint in mistakes:
            if agree(mistake):
                raise Wrong(hint)
        for mask, yours in said:
            for text in range(len(mask)):
                words = yours[text][mask[text]].tolist()
                if words != list(range(len(words))):
                    raise Wrong(
                        f"For the mask {mask[text].int().tolist()} your words stand at {[round(w, 2) for w in words]}, "
                        f"and should at {list(range(len(words)))}."
                    )
    for _, yours in said:
        if (yours == -1).any():
            raise Wrong(
                "The words are right. Padding gets -1: to a table that is its last row, or an error. 0 to L - 1 are allowed."
            )
        if ((yours < 0) | (yours > length - 1) | (yours != yours.round())).any():
            raise Wrong(
                "The words are right. Some padding has a number that is no row: whole numbers from 0 to L - 1 are allowed."
            )
    return "Right: padding in front, behind, on both sides and none, and no number that the table does not have."
