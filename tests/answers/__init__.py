"""Answers to the exercises, by which their checks are checked: a module for each topic.

Each exercise has three right answers, written differently, and at least four wrong ones, which go wrong differently. The module
`unseen`, if there is one, stays apart: its answers were written by somebody who has seen the students' text alone, and nobody
reads them when a check or a hint is written.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeVar

from posenc_course import checks
from posenc_course.checks._exercise import Check

Answer = TypeVar("Answer")


class Wrong(NamedTuple):
    name: str
    answer: Any
    words: str | None


CHECKS = {
    f"{topic}.{name}": check
    for topic in checks.TOPICS
    for name, check in vars(getattr(checks, topic)).items()
    if isinstance(check, Check)
}


@dataclass
class Bank:
    right: dict[str, list[Any]] = field(default_factory=lambda: {check: [] for check in CHECKS})
    wrong: dict[str, list[Wrong]] = field(default_factory=lambda: {check: [] for check in CHECKS})


SEEN, UNSEEN = Bank(), Bank()
_filled = SEEN
RIGHT, WRONG = SEEN.right, SEEN.wrong


def right(check: str) -> Callable[[Answer], Answer]:
    """Mark a right answer, or a tuple of answers that one check takes together."""

    def mark(answer: Answer) -> Answer:
        _filled.right[check].append(answer)
        return answer

    return mark


def wrong(check: str, words: str | None = None, *, name: str = "") -> Callable[[Answer], Answer]:
    """Mark a wrong answer.

    Args:
        check: the topic and the name of the exercise.
        words: of the verdict, which name the mistake or its kind; None if the answer gets only an example.
        name: of an answer that isn't a function.
    """

    def mark(answer: Answer) -> Answer:
        _filled.wrong[check].append(Wrong(name or getattr(answer, "__name__", ""), answer, words))
        return answer

    return mark


for topic in checks.TOPICS:
    import_module(f"{__name__}.{topic}")

_filled = UNSEEN
if find_spec(f"{__name__}.unseen"):
    import_module(f"{__name__}.unseen")
