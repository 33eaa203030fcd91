"""Learned positions: one free vector per position (Gehring et al. 2017)."""

import torch
from torch import Tensor, nn

from posenc_course._validation import D_MODEL, DOOR, WHOLE_POSITIONS, checked, exact
from posenc_course.schemes import PositionScheme


@checked(table="float max_length d_model: give each position a row", positions=WHOLE_POSITIONS)
def learned_encoding(table: Tensor, positions: Tensor) -> Tensor:
    """The rows of table (max_length, d_model) at positions (L,) or (batch, L), shape `(*positions.shape, d_model)`.

    Raises ValueError for a position beyond the last row: there is nothing to look up, and no formula to go on with.
    """
    rows = exact(positions).long()
    if rows.max() >= len(table):
        raise ValueError(
            f"position {rows.max().item()} lies beyond the table's last row, {len(table) - 1}: learned positions end with "
            "their table, so build it longer and train it there, or cut the sequence"
        )
    return table[rows]


class LearnedPositions(PositionScheme):
    """x + table[m], with max_length·d_model parameters that start as N(0, std²).

    `std` is 0.02 as in BERT; a row that no gradient reaches stays what was drawn, but for an optimizer's weight decay.
    """

    @checked(
        max_length="count: it is the longest sequence there will be",
        d_model=D_MODEL,
        std="number > 0: it is the spread of the first values, e.g. 0.02",
    )
    def __init__(self, max_length: int, d_model: int, *, std: float = 0.02) -> None:
        super().__init__()
        self.d_model = d_model
        self.table = nn.Parameter(std * torch.randn(max_length, d_model))

    @checked(**DOOR)
    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) below max_length -> the same shape."""
        return x + learned_encoding(self.table, positions).to(x)
