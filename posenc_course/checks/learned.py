"""Exercises on learned positions: which rows training reaches, and how the table is used and extended."""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, exercise


def _at(table: Tensor, places: Tensor) -> Tensor:
    """Rows at fractional indices, interpolated linearly; beyond an end of the table, the row at that end."""
    places = places.double().clamp(0, len(table) - 1)
    low = places.floor().clamp(max=len(table) - 2).long()
    return torch.lerp(table[low].double(), table[low + 1].double(), (places - low).unsqueeze(1))


@exercise("my_extend")
def extend() -> Exercise:
    """my_extend(table, rows) -> (rows, d_model): the first and last row stay, and the others lie between them, evenly spaced.

    Row r of the result is at index r·(n - 1)/(rows - 1) of the table of n rows, interpolated linearly between its neighbours.
    """
    sizes = ((4, 7, 3), (5, 12, 4), (8, 64, 6))  # rows, rows wanted, d_model; the first two differ from it in all sizes

    def table_of(rows: int, d_model: int) -> Tensor:
        return torch.randn(rows, d_model, generator=torch.Generator().manual_seed(rows))

    def right(table: Tensor, rows: int) -> Tensor:
        return _at(table, torch.linspace(0, len(table) - 1, rows, dtype=torch.float64))

    copies = "All your rows are copies of old rows. But a new row can also lie between two old rows, as a mixture of both."
    return Exercise(
        cases={
            **{f"{n} rows to {rows}": (table_of(n, d_model), rows) for n, rows, d_model in sizes},
            "a table of two rows": (table_of(2, 3), 5),
            "as many rows as before": (table_of(6, 3), 6),
        },
        right=right,
        mistakes={
            "zeros": (lambda t, rows: torch.cat((t, t.new_zeros(rows - len(t), t.shape[1]))),
                "You pad the table with zeros, so all the additional rows are equal. Instead, the old rows should move apart "
                "and make room for new rows between them."),
            "the last row again": (lambda t, rows: t[torch.arange(rows).clamp(max=len(t) - 1)],
                "You repeat the last row, so a model can't tell the additional positions apart."),
            "round and round": (lambda t, rows: t[torch.arange(rows) % len(t)],
                "After the last row, you start again at row 0, so some positions have the same row."),
            "the row before": (lambda t, rows: t[torch.arange(rows) * (len(t) - 1) // max(rows - 1, 1)], copies),
            "the nearest row": (
                lambda t, rows: t[torch.linspace(0, len(t) - 1, rows, dtype=torch.float64).round().long()], copies),
            "each row equally often": (lambda t, rows: t[torch.arange(rows) * len(t) // rows], copies),
            "a step too many": (lambda t, rows: _at(t, torch.arange(rows) * len(t) / rows),
                "Your last row should be the last row of the old table. From its first row to its last, the new table has rows "
                "- 1 steps, and the old one has len(table) - 1."),
            "pixels": (lambda t, rows: _at(t, (torch.arange(rows) + 0.5) * len(t) / rows - 0.5),
                "Your rows aren't evenly spaced from the first old row to the last. They lie at the centres of equal "
                "intervals, like the pixels of an image. (In PyTorch, `align_corners` makes this difference.)"),
        },
        praise=f"your function stretches {', '.join(f'{n} rows to {rows}' for n, rows, _ in sizes)}, and all other cases are "
               "right, too.",
    )  # fmt: skip


@exercise()
def heard(seed: int) -> Exercise:
    """heard(gradients, positions, rows) -> (rows, d), the gradient of a learned table with this many rows.

    The gradients (batch, L, d) are those of the tokens' vectors, to which the rows at positions (batch, L) were added.
    """
    generator = torch.Generator().manual_seed(seed)

    def inputs(positions: Sequence[Sequence[int]], rows: int, d: int = 3) -> tuple[Tensor, Tensor, int]:
        at = torch.tensor(positions)
        return torch.randn(*at.shape, d, dtype=torch.float64, generator=generator), at, rows

    def right(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
        table = gradients.new_zeros(rows, gradients.shape[2])
        return table.index_add(0, positions.flatten(), gradients.flatten(0, 1))

    def counts(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
        """How many tokens looked up each row, repeated in each column."""
        return right(torch.ones_like(gradients), positions, rows)

    def one_each(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
        table = gradients.new_zeros(rows, gradients.shape[2])
        for row, gradient in zip(positions.flatten().tolist(), gradients.flatten(0, 1), strict=True):
            table[row] = gradient
        return table

    def columns(gradients: Tensor, positions: Tensor, rows: int) -> Tensor:
        """The result if the token in column m of the batch had always looked up row m."""
        at = torch.arange(min(rows, positions.shape[1]))
        return right(gradients[:, : len(at)], at.expand(len(positions), -1), rows)

    ordered = list(range(5))
    one_kept = (
        "If several tokens use the same row, you keep only one of their gradients, but the row needs all of them. (In "
        "`table[positions] += …`, each row is increased only once, even if it occurs several times in `positions`.)"
    )
    mean = "You take a mean. But the gradient of a row is the sum of the gradients of all tokens that looked it up."
    return Exercise(
        cases={
            "a single text": inputs([ordered], 5),
            "two texts that use the same rows": inputs([ordered, ordered], 5),
            "a table with rows that no token looks up": inputs([ordered, ordered, ordered], 9),
            "tokens of one text that share a row": inputs([[0, 0, 0, 1, 2], ordered], 6),
            "texts that begin at different positions": inputs([[3, 4, 5, 6], [1, 2, 3, 4]], 7),
            "positions in a random order": inputs([torch.randperm(6, generator=generator).tolist() for _ in range(4)], 6),
            "a single token": inputs([[2]], 4),
            "vectors with a single number": inputs([ordered, ordered], 5, d=1),
        },
        right=right,
        mistakes={
            "the last one kept": (one_each, one_kept),
            "mean": (lambda g, p, rows: right(g, p, rows) / counts(g, p, rows).clamp(min=1), mean),
            "mean over the batch": (lambda g, p, rows: right(g, p, rows) / len(g), mean),
            "the first text": (lambda g, p, rows: right(g[:1], p[:1], rows),
                "You use only the first text. But the tokens of all texts contribute to the gradient."),
            "all alike": (lambda g, p, rows: g.sum(dim=(0, 1)).expand(rows, -1),
                "In your result, every row is the sum over all tokens. But a token contributes only to its own row."),
            "columns": (columns,
                "You use the column of the batch as the row. But `positions` says which row each token looked up."),
        },
        praise="each row gets the gradients of all tokens that looked it up, and nothing else.",
    )  # fmt: skip


@exercise()
def untrained(seed: int) -> Exercise:
    """untrained(before, after) -> (rows,), True where training never reached a row.

    Training changes the direction of a row by more than one degree. An untrained row is only multiplied by the factor of the
    weight decay, which is unknown and the same for the whole table; rounding changes its direction by less than 0.001 degrees.
    """
    draw = torch.Generator().manual_seed(seed)

    def tables(reached: range, rows: int, d: int, spread: float, factor: float, rounding: float = 0) -> tuple[Tensor, Tensor]:
        before = (spread * torch.randn(rows, d, generator=draw)).double()
        number, at = torch.arange(rows)[:, None], torch.arange(d)
        # A trained row changes its direction in only a quarter of the channels, different ones from row to row. The ratios of
        # all other channels stay the same.
        part = before * ((at - d // 4 * (number + number // 4)) % d < d // 4)
        across = torch.randn(before.shape, generator=draw) * (part != 0)
        across -= part * (across * part).sum(1, keepdim=True) / part.square().sum(1, keepdim=True)
        across *= before.norm(dim=1, keepdim=True) / across.norm(dim=1, keepdim=True)
        # In turn, trained rows are as long as the untrained ones; shorter, in nearly the same direction; longer, in a very
        # different direction; and reversed. The last rows are of the last two kinds, so that an answer that believes them to be
        # untrained gets a wrong factor.
        angle = torch.tensor([20.0, 1.1, 60.0, 180.0]).double()[number % 4].deg2rad()
        length = factor * torch.tensor([1 - 1e-5, 0.8, 1.6, 1.3])[number % 4]
        rotated = length * (angle.cos() * before + angle.sin() * across)
        shrunk = factor * before * (1 + rounding * torch.randn(before.shape, generator=draw).sign())
        after = torch.where((number >= reached.start) & (number < reached.stop), rotated, shrunk)
        return before.float(), after.float()

    def cosine(a: Tensor, b: Tensor) -> Tensor:
        return torch.cosine_similarity(a.double(), b.double(), dim=1)

    def right(before: Tensor, after: Tensor) -> Tensor:
        return cosine(before, after) > 0.999999

    def same(a: Tensor, b: Tensor) -> Tensor:
        return ((a - b).abs() <= 1e-4 * b.abs().amax(dim=1, keepdim=True)).all(dim=1)

    def from_the_last(before: Tensor, after: Tensor) -> Tensor:
        """The result if the last row is believed to be untrained, and gives the factor."""
        return same(after, before * after[-1].norm() / before[-1].norm())

    def after_the_last(before: Tensor, after: Tensor) -> Tensor:
        reached = (~right(before, after)).nonzero()
        return torch.arange(len(after)) > (int(reached.max()) if len(reached) else -1)

    some = int(torch.randint(5, 9, (), generator=draw))
    lax = (
        "Your test is too tolerant. The direction of a trained row may have changed by little more than one degree, and then "
        "the cosine is still 0.9998."
    )
    strict = (
        "Your test is too strict. Rounding changes the direction of an untrained row by up to a thousandth of a degree, so the "
        "cosine isn't always exactly 1."
    )
    return Exercise(
        cases={
            "no weight decay": tables(range(some), 12, 16, 0.02, 1.0),
            "little weight decay": tables(range(some), 12, 16, 0.02, 0.99),
            "halved rows, of which the first two were never trained": tables(range(2, some), 12, 8, 0.7, 0.5),
            "a table in which only the first two rows were never trained": tables(range(2, 12), 12, 16, 0.02, 0.9),
            "a table in which every row was trained": tables(range(11), 11, 16, 0.02, 0.97),
            "a table in which no row was trained": tables(range(0), 7, 8, 1.0, 0.97),
            "a table of one row": tables(range(0), 1, 8, 1.0, 0.97),
            "rounding that changes the direction of rows by half a thousandth of a "
            "degree": tables(range(some), 13, 16, 0.02, 0.98, rounding=1e-5),
            "a table of 600 rows": tables(range(400 + some), 600, 8, 0.02, 0.98),
        },
        right=right,
        mistakes={
            **{f"changed by less than {part}": (lambda b, a, part=part: (a - b).norm(dim=1) < part * b.norm(dim=1),
                "You look for rows that haven't changed, or only a little. But weight decay may have halved a row that "
                "training never reached.") for part in (1e-4, 0.015, 0.05, 0.15)},
            "the last row's factor": (from_the_last,
                "You compute the factor from the last row. But in some tables, the last row has been trained."),
            "from the last trained on": (after_the_last,
                "You return False for all rows up to the last trained one. But the first rows can stay untrained, too."),
            "opposite": (lambda b, a: cosine(b, a).abs() > 0.9999,
                "You call a row untrained if it now points in the opposite direction. But that's a change by 180 degrees."),
            "as long or shorter": (lambda b, a: a.norm(dim=1) / b.norm(dim=1) <= 1 + 1e-6,
                "You compare the lengths of the rows. But a trained row may have become shorter, too."),
            **{f"cosine above {least}": (lambda b, a, least=least: cosine(b, a) > least, lax)
               for least in (0.9998, 0.999, 0.99, 0.9)},
            "cosine of 1": (lambda b, a: torch.cosine_similarity(b, a, dim=1) >= 1, strict),
            "cosine of 1 exactly": (lambda b, a: torch.cosine_similarity(b, a, dim=1) == 1, strict),
            "two channels": (lambda b, a: (a / b)[:, :2].diff(dim=1).abs().flatten() < 1e-3,
                "You compare only two channels. But training may have changed a row in other channels, so look at them all."),
        },
        praise="all nine tables are right, with and without weight decay, including tables whose first rows no text has "
               "reached.",
    )  # fmt: skip


@exercise()
def positions(seed: int) -> Exercise:
    """positions(mask) -> (batch, L): the words of each text, counted from 0, wherever its padding is.

    The mask is True for a word and False for padding. For padding, any whole number from 0 to L - 1 is right.
    """
    draw = random.Random(seed)
    length = draw.randint(7, 9)

    def batch(*spans: tuple[int, int], of: int = length) -> tuple[Tensor]:
        """Texts whose words go from a start column to an end column."""
        return (torch.tensor([[start <= at < end for at in range(of)] for start, end in spans]),)

    short = draw.sample(range(2, length - 1), 3)
    mixed = [(0, short[0]), (length - short[1], length), (draw.randint(1, 2), length - 2), (0, length), (3, 4)]
    draw.shuffle(mixed)

    def first(mask: Tensor) -> Tensor:
        return mask.int().argmax(dim=1, keepdim=True)

    def column(mask: Tensor) -> Tensor:
        return torch.arange(mask.shape[1]).expand(mask.shape)

    def right(mask: Tensor) -> Tensor:
        return (column(mask) - first(mask)).clamp(min=0)

    def ask(call: Call, mask: Tensor) -> tuple[Tensor, Tensor]:
        return mask, call(mask, wanted=mask.long())

    def same(known: tuple[Tensor, Tensor], said: tuple[Tensor, Tensor]) -> bool:
        """Whether all words agree; padding may have any number."""
        return bool((known[1] == said[1])[said[0]].all())

    def fault(said: Sequence[tuple[Tensor, Tensor]]) -> str | None:
        for mask, yours in said:
            for is_word, row in zip(mask, yours, strict=True):
                found = row[is_word].tolist()
                wrong = [number for number, at in enumerate(found) if at != number]
                if not wrong:
                    continue
                if any(at != int(at) for at in found):
                    return f"Positions are whole numbers, but one of yours is {next(at for at in found if at != int(at)):g}."
                text = f"the mask {is_word.int().tolist()}" if len(is_word) < 20 else f"a text of {len(found)} words"
                return (
                    f"For {text}, you put word {wrong[0]} (counted from 0) at position {found[wrong[0]]:g}, but it should be "
                    f"at position {wrong[0]}."
                )
        if any(((yours < 0) | (yours > mask.shape[1] - 1) | (yours != yours.round())).any() for mask, yours in said):
            return (
                "Your positions are right for the words, but some padding gets a number, such as -1, that isn't a row of the "
                "table. Use whole numbers from 0 to L - 1."
            )
        return None

    on_and_on = "Your count continues from one text to the next. But each text should start again at position 0."
    return Exercise(
        cases=[
            batch(*[(length - words, length) for words in [*short, length]]),  # as in a batch for generation
            batch(*mixed),
            batch((0, length)),
            batch((0, 1), of=1),
            batch((0, 300), (10, 290), of=300),
        ],
        right=right,
        ask=ask,
        same=same,
        fault=fault,
        mistakes={
            "columns": (column, "This is the bug itself: if there is padding before a text, the first word isn't at position "
                                "0."),
            "from 1": (lambda mask: right(mask) + 1, "You count from 1, but the first word should be at position 0."),
            "on and on": (lambda mask: mask.flatten().cumsum(dim=0).view_as(mask) - 1, on_and_on),
            "on and on in a ring": (
                lambda mask: (mask.flatten().cumsum(dim=0).view_as(mask) - 1) % mask.shape[1], on_and_on),
            "backwards": (lambda mask: first(mask) + mask.sum(dim=1, keepdim=True) - 1 - column(mask),
                "You count from the end of the text, but the first word should be at position 0."),
        },
        praise="your positions are right with padding before the words, after them, on both sides and without any, and no "
               "number is outside the table.",
    )  # fmt: skip
