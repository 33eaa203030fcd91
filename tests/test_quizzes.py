"""The quizzes of the book: that neither the letter nor the length of an option gives the right one away."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QUESTION = r"^\*\*(\d+)\. .*\?\*\*\s*$"
OPTION = r'^<details class="quiz">\s*<summary>(.*?)</summary>\s*\*\*(Yes|No)\.\*\*'


def questions() -> dict[str, list[tuple[int, bool]]]:
    """Every question of the book: how long each option is to a reader, and whether it is the right one."""
    found = {}
    for path in sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        numbered = re.split(QUESTION, text.partition("## Quiz")[2], flags=re.MULTILINE)[1:]
        for number, body in zip(numbered[::2], numbered[1::2], strict=True):
            options = re.findall(OPTION, body, re.MULTILINE | re.DOTALL)
            found[f"{path.stem}, {number}"] = [(len(re.sub(r"<.*?>", "", words)), right == "Yes") for words, right in options]
    return found


def test_the_right_letter_cannot_be_guessed() -> None:
    letters = {name: "abcdef"[[right for _, right in options].index(True)] for name, options in questions().items()}
    letter, times = Counter(letters.values()).most_common(1)[0]
    there = [name for name, right in letters.items() if right == letter]
    assert times <= len(letters) / 2, f"{letter} is right in {times} of {len(letters)} questions: reorder some of {there}"


@pytest.mark.parametrize("extreme", ["longest", "shortest"])
def test_the_right_option_cannot_be_guessed_by_its_length(extreme: str) -> None:
    by_length = {name: sorted(options, reverse=extreme == "longest") for name, options in questions().items()}
    there = [name for name, ((length, right), (after_it, _), *_) in by_length.items() if right and length != after_it]
    assert len(there) <= len(by_length) / 2, (
        f"the {extreme} option is the right one in {len(there)} of {len(by_length)} questions: "
        f"give or take reasons in the options of some of {there}"
    )
