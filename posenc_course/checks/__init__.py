"""Verdicts on answers to the exercises, in a sentence: what was tried, what came out, what to look at.

One module per topic, one check per exercise; each takes the reader's function and returns the verdict as text, which begins
with "Right" or does not. What a check samples comes from a seed that the verdict names: `seed=…` samples the same again.
"""

from posenc_course.checks import (
    alibi,
    base,
    learned,
    lengths,
    naive,
    nope,
    norm,
    order,
    pendulums,
    relative,
    rope,
    rope_scaling,
    shift,
    sinusoidal,
)
from posenc_course.checks._exercise import grade, last

__all__ = [
    "alibi",
    "base",
    "grade",
    "last",
    "learned",
    "lengths",
    "naive",
    "nope",
    "norm",
    "order",
    "pendulums",
    "relative",
    "rope",
    "rope_scaling",
    "shift",
    "sinusoidal",
]
