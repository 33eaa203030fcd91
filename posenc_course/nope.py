"""No encoding at all (Haviv et al. 2022; Kazemnejad et al. 2023)."""

from posenc_course.schemes import PositionScheme


class NoPositions(PositionScheme):
    """Uses none of the three doors: an encoder then sees a set, and a decoder only what its causal mask lets in."""
