"""Learned positions: one trainable vector per position (Gehring et al. 2017)."""

import torch
from torch import Tensor, nn

from posenc_course._validation import D_MODEL, DOOR, WHOLE_POSITIONS, checked, exact
from posenc_course.schemes import PositionScheme


@checked(table="float max_length d_model: give each position a row", positions=WHOLE_POSITIONS)
def learned_encoding(table: Tensor, positions: Tensor) -> Tensor:
    """The rows of table (max_length, d_model) at positions (L,) or (batch, L), shape `(*positions.shape, d_model)`.

    Raises ValueError for a position beyond the last row, because there is no row to look up and no formula to compute one.
    """
    rows = exact(positions).long()
    if rows.max() >= len(table):
        raise ValueError(
            f"position {rows.max().item()} lies beyond the table's last row, {len(table) - 1}: learned positions end with "
            "their table, so build it longer and train it there, or cut the sequence"
        )
    return table[rows]


class LearnedPositions(PositionScheme):
    """A scheme that adds row m of a table to x: max_length·d_model parameters, initialized from N(0, std²).

    By default, `std` is 0.02, as in BERT. A row that never gets a gradient keeps its initial values, unless the optimizer's
    weight decay shrinks them.
    """

    @checked(
        max_length="count: it is the length of the longest sequence",
        d_model=D_MODEL,
        std="number > 0: it is the standard deviation of the initial values, e.g. 0.02",
    )
    def __init__(self, max_length: int, d_model: int, *, std: float = 0.02) -> None:
        super().__init__()
        self.max_length, self.d_model = max_length, d_model
        self.table = nn.Parameter(std * torch.randn(max_length, d_model))

    @checked(**DOOR)
    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the rows at positions (L,) or (batch, L) to x (batch, L, d_model); the result has the shape of x.

        Raises ValueError for a position that is not below max_length.
        """
        return x + learned_encoding(self.table, positions).to(x)
