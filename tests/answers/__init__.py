"""Answers to the exercises, by which their checks are checked: a module for each topic.

RIGHT holds, for each check, right answers that are written differently; WRONG holds wrong ones, each under a name, with words
of its verdict. Answers that were written without having read the checks carry a mark: they measure whether a check accepts, and
whether it names, what its author did not think of.
"""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from posenc_course import checks
from posenc_course.checks._exercise import Check

TOPICS = [name for name in checks.__all__ if isinstance(getattr(checks, name), ModuleType)]
CHECKS = {
    f"{topic}.{name}": check
    for topic in TOPICS
    for name, check in vars(getattr(checks, topic)).items()
    if isinstance(check, Check)
}


class Right(NamedTuple):
    """An answer, or several that one check takes together."""

    answer: Any
    blind: bool = False


class Wrong(NamedTuple):
    """A wrong answer and the words of its verdict that name the mistake or its kind; None where it gets an example alone."""

    name: str
    answer: Any
    words: str | None
    blind: bool = False


def blind(*rows: Any) -> Iterator[Any]:
    """The rows, marked as written without having read the checks: right answers as they are, wrong ones as tuples."""
    for row in rows:
        yield (
            Wrong(row[0], row[1], row[2], blind=True)
            if isinstance(row, tuple) and isinstance(row[0], str)
            else Right(row, blind=True)
        )


def _bank() -> tuple[dict[str, list[Right]], dict[str, list[Wrong]]]:
    right: dict[str, list[Right]] = {}
    wrong: dict[str, list[Wrong]] = {}
    for topic in TOPICS:
        module = import_module(f"{__name__}.{topic}")
        for check, rows in module.RIGHT.items():
            right[check] = [row if isinstance(row, Right) else Right(row) for row in rows]
        for check, rows in module.WRONG.items():
            wrong[check] = [row if isinstance(row, Wrong) else Wrong(*row) for row in rows]
    return right, wrong


RIGHT, WRONG = _bank()
