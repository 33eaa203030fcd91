"""Answers to the exercises, by which their checks are checked: a module for each topic.

Each exercise has three right answers, written differently, and six wrong ones, which go wrong differently.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from posenc_course import checks
from posenc_course.checks._exercise import Check

Answer = TypeVar("Answer")


class Wrong(NamedTuple):
    name: str
    answer: Any
    words: str | None
    blind: bool


TOPICS = [name for name in checks.__all__ if isinstance(getattr(checks, name), ModuleType)]
CHECKS = {
    f"{topic}.{name}": check
    for topic in TOPICS
    for name, check in vars(getattr(checks, topic)).items()
    if isinstance(check, Check)
}
RIGHT: dict[str, list[Any]] = {check: [] for check in CHECKS}
WRONG: dict[str, list[Wrong]] = {check: [] for check in CHECKS}


def right(check: str) -> Callable[[Answer], Answer]:
    """Mark a right answer, or a tuple of answers that one check takes together."""

    def mark(answer: Answer) -> Answer:
        RIGHT[check].append(answer)
        return answer

    return mark


def wrong(check: str, words: str | None, *, blind: bool = False, name: str = "") -> Callable[[Answer], Answer]:
    """Mark a wrong answer.

    Args:
        check: the topic and the name of the exercise.
        words: of the verdict, which name the mistake or its kind; None if the answer gets only an example.
        blind: whether it was written without having read the check. Such answers measure whether a check names what its author
            did not think of.
        name: of an answer that isn't a function.
    """

    def mark(answer: Answer) -> Answer:
        WRONG[check].append(Wrong(name or getattr(answer, "__name__", ""), answer, words, blind))
        return answer

    return mark


for topic in TOPICS:
    import_module(f"{__name__}.{topic}")
