"""Verdicts on answers to the exercises, in a sentence or two: what was tried, what came out, and what to look at.

There is one module per topic and one check per exercise. Each check takes the student's function and returns the verdict as
text; if the answer is right, it begins with "Right". What a check samples depends on a seed that the verdict names, so `seed=…`
samples the same inputs again.

Or you try to make a mistake on purpose: with `earn="some words of a verdict"`, a check asks for a function of which it says
this, and says "Earned" if it's yours.
"""

from importlib import import_module
from typing import Any

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


def __getattr__(name: str) -> Any:
    """A topic's module, imported when it is used first."""
    if name not in __all__:
        raise AttributeError(f"there are no checks called {name!r}: choose from {', '.join(__all__)}")
    return import_module(f"{__name__}.{name}")
