"""Verdicts on answers to the exercises, in a sentence: what was tried, what came out, what to look at.

One module per topic, one function per exercise; each takes the reader's function and returns the verdict as text.
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

__all__ = [
    "alibi",
    "base",
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
