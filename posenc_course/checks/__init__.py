"""Verdicts on answers to the exercises, in a sentence or two: what was tried, what came out, and what to look at.

There is one module per topic and one check per exercise. Each check takes the student's function and returns the verdict as
text; if the answer is right, it begins with "Right". What a check samples depends on a seed that the verdict names, so `seed=…`
samples the same inputs again.
"""

from posenc_course.checks import (
    alibi,
    base,
    contextual,
    heads,
    layers,
    learned,
    lengths,
    naive,
    nope,
    norm,
    order,
    pendulums,
    reach,
    relative,
    released,
    rope,
    rope_scaling,
    shift,
    sinusoidal,
)
from posenc_course.checks._exercise import grade, last

__all__ = [
    "alibi",
    "base",
    "contextual",
    "grade",
    "heads",
    "last",
    "layers",
    "learned",
    "lengths",
    "naive",
    "nope",
    "norm",
    "order",
    "pendulums",
    "reach",
    "relative",
    "released",
    "rope",
    "rope_scaling",
    "shift",
    "sinusoidal",
]
