"""Learned positions: one free vector per position (Gehring et al. 2017; chapter 08)."""

import torch
from torch import Tensor, nn

from posenc_course._validation import require_embedding, require_integer, require_number, require_positions, require_tensor
from posenc_course.schemes import PositionScheme


def learned_encoding(table: Tensor, positions: Tensor) -> Tensor:
    """The rows of table (max_length, d_model) at positions (L,) or (batch, L), shape `(*positions.shape, d_model)`.

    Raises ValueError for a position beyond the last row: there is nothing to look up, and no formula to go on with.
    Chapter 08.
    """
    if require_tensor("table", table).ndim != 2 or table.numel() == 0 or not table.is_floating_point():
        raise ValueError(
            f"table must be a floating-point tensor of shape (max_length, d_model), got {table.dtype} of shape "
            f"{tuple(table.shape)}: give each position a row"
        )
    rows = require_positions(positions, integer=True)
    if rows.max() >= len(table):
        raise ValueError(
            f"position {rows.max().item():g} lies beyond the table's last row, {len(table) - 1}: learned positions end with "
            "their table, so build it longer and train it there, or cut the sequence"
        )
    return table[rows.long()]


class LearnedPositions(PositionScheme):
    """x + table[m], with max_length·d_model parameters that start as N(0, std²). Chapter 08.

    `std` is 0.02 as in BERT; a row that no gradient reaches stays what was drawn, but for an optimizer's weight decay.
    """

    def __init__(self, max_length: int, d_model: int, *, std: float = 0.02) -> None:
        super().__init__()
        max_length = require_integer("max_length", max_length, minimum=1, hint="it is the longest sequence there will be")
        self.d_model = require_integer("d_model", d_model, minimum=1, hint="it is the width of the token vectors, e.g. 64")
        std = require_number("std", std, above=0, hint="it is the spread of the first values, e.g. 0.02")
        self.table = nn.Parameter(std * torch.randn(max_length, self.d_model))

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) below max_length -> the same shape."""
        require_embedding(x, positions, self.d_model)
        return x + learned_encoding(self.table, positions).to(x)
