"""Makes a sheet for each student of a class, with numbers of their own, and the key to all of them.

    python ../tools/teaching/sheets.py 01_order names.txt    # in exercises/; names.txt has a name on each line

Writes a notebook for each student into the folder handout/sheets/01_order, and keys/01_order.ipynb. A sheet's source, such as
sheets/01_order.md, is a notebook as MyST Markdown. Its first cell, which nobody gets, picks the numbers with `chance`, the
student's own random.Random; `key` holds what the key lists for each student. In the cells below, {{ width }} stands for a
number's value, and {{ loss:.2f }} for it in two digits. Each cell is run, and its output is kept, except for cells with the tag
`stub`. From the heading "Key" on, everything belongs to the key.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import jupytext  # type: ignore[import-untyped]
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from posenc_course._system import write_whole

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path.stem: path for path in sorted((ROOT / "exercises/sheets").glob("*.md"))}
RULE = (
    "In the first task, the right answer earns nothing: make the mistake that the check names, and no other. When you have, "
    "the verdict begins with *Earned*."
)
Cell = Any  # nbformat's NotebookNode: attributes for keys


class Sheet(NamedTuple):
    """One student's sheet: its cells, those of its key, and all names that its code has defined."""

    cells: list[Cell]
    key: list[Cell]
    names: dict[str, Any]


def sheet(assignment: str, student: str, seed: str = "") -> Sheet:
    """Make a student's sheet; equal arguments give equal sheets. Raises ValueError if no assignment has this name."""
    if assignment not in SOURCES:
        raise ValueError(f"no sheet is called {assignment}: choose from {', '.join(SOURCES)}")
    source = SOURCES[assignment].read_text("utf-8")
    numbers, *cells = jupytext.reads(source, fmt={"extension": ".md", "format_name": "myst"}).cells
    names: dict[str, Any] = {"chance": random.Random(f"{assignment}, {student}, {seed}")}
    exec(numbers.source, names)
    made: list[Cell] = []
    for cell in cells:
        source = re.sub(r"\{\{ (.+?) \}\}", lambda found: str(eval(f"f'''{{{found[1]}}}'''", names)), cell.source)
        made.append(new_markdown_cell(source) if cell.cell_type == "markdown" else new_code_cell(source))
        if cell.cell_type == "code" and "stub" not in cell.metadata.get("tags", []):
            made[-1].outputs = _run(source, names)
    (begins,) = (number for number, cell in enumerate(made) if cell.source.startswith("# Key"))
    for number, cell in enumerate(made):
        cell.id = str(number)  # not random, so that equal sheets are equal files
    return Sheet(made[:begins], made[begins:], names)


def _run(source: str, names: dict[str, Any]) -> list[Any]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(source, names)
    return [new_output("stream", name="stdout", text=printed.getvalue())] if printed.getvalue() else []


def files(assignment: str, students: list[str], seed: str = "") -> dict[str, bytes]:
    """The sheets of a class and their key, by the files' names. Raises ValueError if two students can't be told apart."""
    folder, made = f"handout/sheets/{assignment}", {}
    sheets = {student: sheet(assignment, student, seed) for student in students}
    for student, own in sheets.items():
        title = own.cells[0].copy()
        title.source += f"\n\nThis sheet is for **{student}**. {RULE}"
        answers = new_markdown_cell("*Your answers.*", id="answers")
        file = re.sub(r"\W+", "_", student)
        made[f"{folder}/{file}.ipynb"] = _notebook([title, *own.cells[1:], answers])
    if not students or len(made) < len(students):
        raise ValueError("each student needs a name of their own: write one on each line, and number those that are equal")
    first = sheets[students[0]]
    rows = [["student", *first.names["key"]], ["---"] * (1 + len(first.names["key"]))]
    rows += [[student, *map(str, own.names["key"].values())] for student, own in sheets.items()]
    title = first.cells[0].source.replace("# Sheet", "# Key to sheet")
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    about = new_markdown_cell(f"{title}\n\n{table}\n\nBelow, the numbers are those of the first student.", id="about")
    verdict = first.key[0].copy()
    verdict.source = verdict.source.removeprefix("# Key").strip()
    made[f"keys/{assignment}.ipynb"] = _notebook([about, verdict, *first.key[1:]])
    return made


def _notebook(cells: list[Cell]) -> bytes:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.writes(new_notebook(cells=cells, metadata={"kernelspec": kernel})).encode()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", help="for example 01_order")
    parser.add_argument("names", type=Path, help="a file with the name of a student on each line")
    parser.add_argument("--seed", default="", help="a word of your own: then the same names have other numbers")
    given = parser.parse_args(arguments)
    try:
        students = [line.strip() for line in given.names.read_text("utf-8").splitlines() if line.strip()]
        made = files(given.assignment, students, given.seed)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    for name, content in made.items():
        write_whole(Path(name), content)
    print(*made, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
