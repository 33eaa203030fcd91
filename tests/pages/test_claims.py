"""The ledger of claims: every claim once, every verdict as the cells print it, every row with its evidence.

Each rule takes the page's prose and what its cells print, and yields its problems.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = [f"{source}{n}" for source, count in {"A": 11, "B": 11, "C": 10, "D": 16}.items() for n in range(1, count + 1)]
VERDICTS = {"holds": "●", "holds within limits": "◐", "fails": "○"}


class Ledger(NamedTuple):
    prose: str
    printed: str  # by cells whose output nbval compares
    code: list[str]


def ledger() -> Ledger:
    cells = json.loads((ROOT / "book/reference/claims.ipynb").read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    compared = [cell for cell in code if "nbval-ignore-output" not in cell["metadata"].get("tags", [])]
    texts = ("".join(output.get("text", [])) for cell in compared for output in cell["outputs"])
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return Ledger(prose, "\n".join(texts), ["".join(cell["source"]) for cell in code])


def rows(prose: str) -> list[tuple[str, ...]]:
    """Label, claim, verdict and what is true, of every row of the tables."""
    lines = re.findall(r"^\| *([A-D]\d+) *\|(.*)\|$", prose, re.MULTILINE)
    return [(label, *(part.strip() for part in rest.split("|"))) for label, rest in lines]


def blocks(printed: str) -> Iterator[tuple[str, str, list[str]]]:
    """Label, verdict, and the lines below them, each unwrapped, as the cells print them."""
    for block in re.split(r"^(?=[A-D]\d+ )", printed, flags=re.MULTILINE)[1:]:
        first, *lines = re.sub(r"\n {10}", " ", block).splitlines()
        label, verdict = first.split(maxsplit=1)
        yield label, verdict, [line.removeprefix(" " * 5) for line in lines]


def settled(printed: str) -> list[tuple[str, str, list[bool]]]:
    """Label, verdict, and the answer to each part."""
    return [
        (label, verdict, [part[1] == "yes" for line in lines if (part := re.match(r"(yes|no) {2,}", line))])
        for label, verdict, lines in blocks(printed)
    ]


def every_claim_is_a_row_once(book: Ledger) -> Iterator[str]:
    for where, labels in (("rows", rows(book.prose)), ("printed verdicts", settled(book.printed))):
        count = Counter(row[0] for row in labels)
        for label in sorted({*CLAIMS} | {*count}):
            if count[label] != (label in CLAIMS):
                yield f"{label} has {count[label]} {where}, it must be {int(label in CLAIMS)}"


def verdicts_follow_from_their_parts(book: Ledger) -> Iterator[str]:
    for label, verdict, parts in settled(book.printed):
        if not parts:
            yield f"{label} prints a verdict and no part that it rests on"
        expected = "holds" if all(parts) else "holds within limits" if any(parts) else "fails"
        if verdict != expected:
            yield f"{label} prints {verdict!r}, its parts make it {expected!r}"


def rows_say_what_the_cells_print(book: Ledger) -> Iterator[str]:
    printed = {label: verdict for label, verdict, _ in settled(book.printed)}
    for label, *row in rows(book.prose):
        if len(row) != 3 or not row[2]:
            yield f"{label} needs four columns with words in them: label, claim, verdict, and what is true"
        elif row[1] not in (written := {f"{mark} {verdict}": verdict for verdict, mark in VERDICTS.items()}):
            yield f"{label} has the verdict {row[1]!r}, it must be one of {', '.join(written)}"
        elif written[row[1]] != printed.get(label):
            yield f"{label} has the verdict {row[1]!r} in its row, and its cell prints {printed.get(label)!r}"


RULES = [
    every_claim_is_a_row_once,
    verdicts_follow_from_their_parts,
    rows_say_what_the_cells_print,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_ledger(rule) -> None:  # type: ignore[no-untyped-def]
    problems = list(rule(ledger()))
    assert not problems, "book/reference/claims.ipynb:\n" + "\n".join(problems)
