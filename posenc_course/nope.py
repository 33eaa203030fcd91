"""No positional encoding at all (Haviv et al. 2022; Kazemnejad et al. 2023)."""

from posenc_course.schemes import PositionScheme


class NoPositions(PositionScheme):
    """A scheme that uses none of the three doors: an encoder sees a set, and a decoder only the order in its causal mask."""
