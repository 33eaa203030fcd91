"""Keeps the text of each page and its notebook alike.

People edit the texts in `text/`, which are MyST Markdown. From them, machines make the notebooks in `book/`, which also hold
what the cells have printed and drawn, and those in `exercises/source/`, which aren't committed. `make notebooks` takes changed
texts over into the notebooks without running them, and `make execute` runs them, too. `make text` goes the other way: it takes
over into the texts what was edited in JupyterLab. None of these commands overwrites the newer side with the older one.

What nbgrader has to know of a cell is a line in the text, such as `:nbgrader: check rotate-test 2`: its role, its id, and its
points if it's graded. A cell is `given` to students as it is, or it's their `answer`, a `check` of an answer, or an answer in
`words`, which a person grades.
"""

import argparse
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jupytext
import nbformat
from jupytext.combine import combine_inputs_with_outputs

from posenc_course._system import write_whole

ROOT = Path(__file__).resolve().parents[2]
FORMAT = {"extension": ".md", "format_name": "myst"}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
ROLES = {
    "given": {"grade": False, "locked": True, "solution": False},
    "answer": {"grade": False, "locked": False, "solution": True},
    "check": {"grade": True, "locked": True, "solution": False},
    "words": {"grade": True, "locked": False, "solution": True},
}
CELL_METADATA = ("mystnb", "nbgrader", "tags")  # anything else comes from a program, not from an author

Notebook = Any  # nbformat's NotebookNode: attributes for keys


class Page(NamedTuple):
    """The two files of a page; one of them may not exist yet."""

    text: Path
    notebook: Path


def pages(names: list[str]) -> dict[str, Page]:
    """The pages with these names, or all: 01_order and newer, deeper/01_order, and source/01_order for an assignment."""
    texts, book, source = ROOT / "text", ROOT / "book", ROOT / "exercises/source"
    found = {*book.rglob("*.ipynb"), *source.rglob("*.ipynb")}
    for path in texts.rglob("*.md"):
        place = path.relative_to(texts).with_suffix("")
        found.add(source / place.name / f"{place.name}.ipynb" if place.parent.name == "source" else book / f"{place}.ipynb")
    every = {}
    for path in sorted(found):
        place = Path("source", path.stem) if path.is_relative_to(source) else path.relative_to(book).with_suffix("")
        name = path.stem if place.parent.name == "reference" else str(place)
        every[name] = Page(texts / f"{place}.md", path)
    if unknown := [name for name in names if name not in every]:
        sys.exit(f"no page is called {', '.join(unknown)}: choose from {', '.join(every)}")
    return {name: page for name, page in every.items() if not names or name in names}


def text_of(notebook: Notebook) -> str:
    """A notebook's cells as MyST Markdown, without what they printed."""
    bare = plain(nbformat.from_dict(notebook))
    for cell in bare.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata["nbgrader"] = shortened(cell.metadata["nbgrader"])
    bare.metadata = {"jupytext": {"notebook_metadata_filter": "-all"}}
    return jupytext.writes(bare, fmt=FORMAT)


def notebook_of(text: str, stored: Notebook | None = None) -> Notebook:
    """The notebook with these cells; where `stored` has the same cell, it gives the cell its id and its outputs."""
    notebook = jupytext.reads(text, fmt=FORMAT)
    if stored is not None:
        notebook = combine_inputs_with_outputs(notebook, stored, fmt=FORMAT)
        same = {cell.source for cell in stored.cells}
        for cell in notebook.cells:
            # Jupytext would keep what it printed before the change.
            if cell.cell_type == "code" and cell.source not in same:
                cell.update(outputs=[], execution_count=None)
    assignment = any("nbgrader" in cell.metadata for cell in notebook.cells)
    for number, cell in enumerate(notebook.cells):
        if "nbgrader" in cell.metadata:
            cell.metadata["nbgrader"] = in_full(cell.metadata["nbgrader"])
        if assignment:
            # No stored notebook keeps an assignment's ids, and students' copies shouldn't get new ones with each change.
            cell.id = cell.metadata.get("nbgrader", {}).get("grade_id", f"cell-{number}")
    return plain(notebook)


def shortened(about: dict[str, Any]) -> str:
    """What nbgrader knows of a cell, as a line of a text: its role, its id and its points."""
    role = next(role for role, flags in ROLES.items() if flags.items() <= about.items())
    return " ".join([role, about["grade_id"], *([str(about["points"])] if about["grade"] else [])])


def in_full(line: str) -> dict[str, Any]:
    """What such a line tells nbgrader. Raises ValueError if it isn't one."""
    found = re.fullmatch(rf"({'|'.join(ROLES)}) ([\w-]+)(?: (\d+))?", line)
    if not found or ROLES[found[1]]["grade"] != bool(found[3]):
        raise ValueError(f"nbgrader: {line}: write given ID, answer ID, check ID POINTS or words ID POINTS")
    points = {"points": int(found[3])} if found[3] else {}
    return {**ROLES[found[1]], **points, "grade_id": found[2], "schema_version": 3, "task": False}


def plain(notebook: Notebook) -> Notebook:
    """Remove, in place, the metadata that programs leave, and a cell's last empty lines, which Markdown can't hold."""
    notebook.update(metadata=METADATA, nbformat=4, nbformat_minor=5)
    for cell in notebook.cells:
        cell.metadata = {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        cell.source = cell.source.rstrip("\n")
    return notebook


def read(path: Path) -> Notebook:
    """The notebook, or None if there is no such file."""
    return nbformat.read(path, as_version=4) if path.exists() else None


def write(path: Path, notebook: Notebook) -> None:
    write_whole(path, nbformat.writes(notebook).encode() + b"\n")


def store(page: Page, notebook: Notebook) -> None:
    """Write the notebook, and its text as it would be made from it, for example with other breaks of lines."""
    write(page.notebook, notebook)
    if (text := text_of(notebook)) != _written(page):
        write_whole(page.text, text.encode())


def _written(page: Page) -> str | None:
    """The page's text as it stands, or None if it has none."""
    return page.text.read_text("utf-8") if page.text.exists() else None


def updated(page: Page) -> Notebook:
    """The page's notebook as its text has it. Raises ValueError if the notebook was edited after the text."""
    stored = read(page.notebook)
    if stored is not None and _written(page) in (None, text_of(stored)):
        return stored
    if stored is not None:
        _require_newer(page.text, page.notebook, "make text")
    return notebook_of(page.text.read_text("utf-8"), stored)


def _require_newer(newer: Path, older: Path, other: str) -> None:
    if newer.stat().st_mtime < older.stat().st_mtime:
        raise ValueError(
            f"{_short(older)} was edited after {_short(newer)}, and would lose this: to keep it, {other}; "
            f"to drop it, touch {_short(newer)}, and then repeat the command"
        )


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT))


def main(names: list[str], *, from_notebooks: bool = False) -> int:
    """Take over what has changed; return 0, or 1 after saying which file was left as it is, and why."""
    status = 0
    for page in pages(names).values():
        try:
            if from_notebooks and (stored := read(page.notebook)) is not None:
                old, text = _written(page), text_of(stored)
                if old == text:
                    continue
                if old is not None:
                    _require_newer(page.notebook, page.text, "make notebooks")
                write_whole(page.text, text.encode())
                print(_short(page.text))
            elif not from_notebooks and (new := updated(page)) != read(page.notebook):
                store(page, new)
                print(_short(page.notebook))
        except ValueError as error:
            print(error, file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", nargs="*", help="for example 01_order (default: all pages)")
    parser.add_argument("--from-notebooks", action="store_true", help="take over the notebooks' changes into the texts")
    chosen = parser.parse_args()
    sys.exit(main(chosen.page, from_notebooks=chosen.from_notebooks))
