"""Exercise of chapter 08: a learned table drawn out to more rows."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, as_table, check

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
