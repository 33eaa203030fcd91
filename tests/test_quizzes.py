"""Quizzes and predictions: that neither the place nor the length of an option gives the right one away."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.pages import CHAPTERS, markdown, read
from tests.prose import options, page_named
from tests.test_docs import SHORT_ROUTE


def questions() -> dict[str, list[tuple[int, bool]]]:
    """Every question of the book: how long each option is to a reader, and whether it is the right one."""
    found: dict[str, list[tuple[int, bool]]] = {}
    for name in CHAPTERS:
        for number, words, answer, _ in options(page_named(name).text):
            found.setdefault(f"{name}, {number}", []).append((len(re.sub(r"<.*?>", "", words)), answer == "Yes"))
    return found


def test_the_right_letter_cannot_be_guessed() -> None:
    letters = {name: "abcdef"[[right for _, right in there_are].index(True)] for name, there_are in questions().items()}
    letter, times = Counter(letters.values()).most_common(1)[0]
    there = [name for name, right in letters.items() if right == letter]
    assert times <= len(letters) / 2, f"{letter} is right in {times} of {len(letters)} questions: reorder some of {there}"


@pytest.mark.parametrize("extreme", ["longest", "shortest"])
def test_the_right_option_cannot_be_guessed_by_its_length(extreme: str) -> None:
    by_length = {name: sorted(there_are, reverse=extreme == "longest") for name, there_are in questions().items()}
    there = [name for name, ((length, right), (after_it, _), *_) in by_length.items() if right and length != after_it]
    assert len(there) <= len(by_length) / 2, (
        f"the {extreme} option is the right one in {len(there)} of {len(by_length)} questions: "
        f"lengthen or shorten some options of some of {there}"
    )


def places() -> dict[str, list[int]]:
    """Where the right option of each prediction is, chapter by chapter."""
    found: dict[str, list[int]] = {}
    for name, path in CHAPTERS.items():
        for box in re.findall(r"^:class: predict\n(.*?)^:::", markdown(read(path)), re.MULTILINE | re.DOTALL):
            found.setdefault(name, []).append(re.findall(r"^\*\*(Yes|No)\.", box, re.MULTILINE).index("Yes"))
    return found


@pytest.mark.parametrize("route", ["short", "whole"])
def test_the_right_option_of_a_prediction_cannot_be_guessed_by_its_place(route: str) -> None:
    found = [place for name, them in places().items() for place in them if route == "whole" or name in SHORT_ROUTE]
    times = Counter(found)
    assert all(len(found) / 4 <= times[place] <= len(found) * 5 / 12 for place in range(3)), f"reorder some options: {times}"


def test_no_chapter_has_all_right_options_in_one_place() -> None:
    assert not [name for name, them in places().items() if len({*them}) == 1]
