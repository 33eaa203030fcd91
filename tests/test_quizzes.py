"""The quizzes of the book: that neither the letter nor the length of an option gives the right one away."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

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


def test_the_longest_option_is_seldom_the_right_one() -> None:
    by_length = {name: sorted(options, reverse=True) for name, options in questions().items()}
    longest = [name for name, ((most, right), (next_one, _), *_) in by_length.items() if right and most > next_one]
    assert len(longest) <= len(by_length) / 2, (
        f"the longest option is the right one in {len(longest)} of {len(by_length)} questions: "
        f"move its reasons below it, or give the wrong options of some of these a reason: {longest}"
    )
