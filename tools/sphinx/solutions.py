"""A Sphinx extension that shows the solution of each exercise, folded, on the page of an assignment.

The page is the notebook that students get, and so is its download; the solutions come from the assignment's text. A site that
is built with the environment variable SOLUTIONS=no doesn't have them.
"""

import os
import re
from pathlib import Path, PurePath
from typing import Any

import nbformat
from nbformat.v4 import new_markdown_cell
from sphinx.application import Sphinx

from tools.book.text import notebook_of

PAGES = "exercises/release/"
Notebook = Any  # nbformat's NotebookNode: attributes for keys


def folded(title: str, text: str) -> Any:
    return new_markdown_cell(f'<details class="solution"><summary>{title}</summary>\n\n{text}\n\n</details>')


def solved(page: Notebook, source: Notebook) -> Notebook:
    """The students' notebook with a folded solution below each check, and below each answer in words."""
    known = {cell.metadata.nbgrader.grade_id: cell for cell in source.cells if "nbgrader" in cell.metadata}
    cells, answers = [], []
    for cell in page.cells:
        cells.append(cell)
        if "nbgrader" not in cell.metadata:
            continue
        about, its_source = cell.metadata.nbgrader, known[cell.metadata.nbgrader.grade_id].source
        if about.solution and about.grade:
            cells.append(folded("Solution", its_source))
        elif about.solution:
            answers.append(re.sub(r"\n *### (BEGIN|END) SOLUTION", "", its_source))
        elif about.grade:
            cells.append(folded("Solution", "```python\n" + "\n\n\n".join(answers) + "\n```"))
            answers = []
        elif key := re.search(r"### BEGIN HIDDEN TESTS\n(.*)\n### END", its_source, re.DOTALL):
            cells[-1] = folded("Key for the number that stands above", f"```python\n{key[1]}\n```")
    page.cells = cells
    return page


def add_solutions(app: Sphinx, name: str, text: list[str]) -> None:
    if name.startswith(PAGES) and os.environ.get("SOLUTIONS") != "no":
        source = Path(app.srcdir, "text/source", PurePath(name).name).with_suffix(".md")
        page = nbformat.reads(text[0], as_version=4)
        text[0] = nbformat.writes(solved(page, notebook_of(source.read_text(encoding="utf-8"))))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", add_solutions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
