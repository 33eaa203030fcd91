"""Verdicts on answers to the exercises, in a sentence or two: what was tried, what came out, and what to look at.

There is one module per topic and one check per exercise. Each check takes the student's function and returns the verdict as
text; if the answer is right, it begins with "Right". What a check samples depends on a seed that the verdict names, so `seed=…`
samples the same inputs again.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

from posenc_course.checks._exercise import grade, last

__all__ = ["grade", "last"]
TOPICS = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def __getattr__(name: str) -> Any:
    """A topic's module, imported when it is used first."""
    if name not in TOPICS:
        raise AttributeError(f"there are no checks called {name!r}: choose from {', '.join(TOPICS)}")
    return import_module(f"{__name__}.{name}")
