"""Which table a model adds to its words: with one word throughout, nothing else tells positions apart."""

import re
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from posenc_course.conventions import read_table
from posenc_course.inspector._layers import Knowledge
from posenc_course.inspector._rotations import TOKENS, forward, side_and_layer

MOST_ROWS = 2**12
NAME = re.compile(r"pos|wpe", re.IGNORECASE)


class _Entered(Exception):
    """The first layer is reached, and nothing else is asked of the model."""


def _at_the_door(model: Any, side: str, length: int = TOKENS) -> Tensor:
    """What enters the first layer on this side, as (L, width), if all words are the same."""
    got: list[Tensor] = []

    def hook(_: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        for each in (*arguments, *options.values()):
            if isinstance(each, Tensor) and each.is_floating_point() and each.ndim == 3:
                got.append(each[0] if each.shape[0] == 1 else each[:, 0])
                raise _Entered

    with ExitStack() as stack:
        for name, part in model.named_modules():
            if isinstance(part, nn.ModuleList) and len(part) and side_and_layer(model, name)[0] == side:
                stack.callback(part[0].register_forward_pre_hook(hook, with_kwargs=True).remove)
        try:
            forward(model, ids=torch.full((1, length), 5))
        except _Entered:
            return got[0]
    raise ValueError(f"nothing enters a layer of the {side or 'model'}")


def tells_positions(model: Any, side: str) -> bool:
    """Whether words that are the same differ where they enter the first layer. Raises what the class raises."""
    x = _at_the_door(model, side)[1:-1]
    return not torch.allclose(x[0], x[-1], rtol=1e-3, atol=1e-5 * float(x.abs().max()))


def find_table(model: Any, side: str) -> Knowledge | None:
    """The table without which the words of this side would be the same. Raises what the class raises.

    Its number of rows is known if a text that needs more is refused.
    """
    for name, table in (*model.named_parameters(), *model.named_buffers()):
        fits = NAME.search(name) and table.is_floating_point() and table.ndim > 1
        if fits and side_and_layer(model, name)[0] in ("", side):
            kept = table.clone()
            table.zero_()
            explains = not tells_positions(model, side)
            table.copy_(kept)
            if explains:
                return _read(model, side, table)
    return None


def _read(model: Any, side: str, table: Tensor) -> Knowledge:
    kept, before = table.clone(), _at_the_door(model, side)[0]

    def is_first(row: int) -> bool:
        table[..., row, :] += 1 + torch.rand(table.shape[-1])
        changed = not torch.equal(before, _at_the_door(model, side)[0])
        table.copy_(kept)
        return changed

    first = next(filter(is_first, range(4)), None)
    rows = kept.shape[-2]
    table.data = kept[..., :MOST_ROWS, :]  # as if a long one ended sooner
    ends = first is not None and _ends(model, side, min(rows, MOST_ROWS) - first)
    table.data = kept
    encoding = "sinusoids" if _are_sinusoids(kept.reshape(-1, kept.shape[-1])) else "learned table"
    return Knowledge(encoding, rows=rows if ends else None, first_row=first or 0)


def _ends(model: Any, side: str, length: int) -> bool:
    """Whether a text of this length is read, and one with another token isn't."""
    for longer in range(2):
        try:
            _at_the_door(model, side, length + longer)
        except Exception:
            return bool(longer)
    return False


def _are_sinusoids(table: Tensor) -> bool:
    try:
        return bool(read_table(table.detach()[2:]))  # the first rows may be kept for padding
    except ValueError:
        return False
