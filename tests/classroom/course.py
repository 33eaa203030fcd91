"""A course in a fresh copy of the repository, in which commands run as the teaching pages have them; for several files."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.commands import ROOT, nbgrader
from tools.book.text import notebook_of

ASSIGNMENT = "01_order"
PATIENCE = "5"  # seconds for one call; the default has more, for a class that shares a machine
Notebook = Any  # nbformat's NotebookNode: attributes for keys


def blocks(page: str, heading: str, language: str = "") -> list[str]:
    """The blocks of code below a heading of a teaching page."""
    text = (ROOT / "book/teaching" / page).read_text("utf-8")
    _, found, below = text.partition(f"# {heading}\n")
    assert found, f"{page} has no heading {heading}"
    below = re.split(r"^##", below, maxsplit=1, flags=re.MULTILINE)[0]
    return [block for of, block in re.findall(r"^```(\w*)\n(.*?)^```$", below, re.DOTALL | re.MULTILINE) if of == language]


def commands(page: str, heading: str) -> list[str]:
    """The commands of the first block below a heading, without their comments."""
    return [line for each in blocks(page, heading)[0].splitlines() if (line := re.sub(r"(^| +)# .*", "", each))]


@pytest.fixture(scope="module")
def exercises(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in a copy of what a clone would have, with the notebooks that `make book` makes."""
    clone = tmp_path_factory.mktemp("clone")
    listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if re.match(r"(exercises|posenc_course|text/source|tools|book/reread)|[^/]*$", name) and (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    (clone / ".venv").symlink_to(sys.prefix)
    subprocess.run([sys.executable, "-m", "tools.book.text"], cwd=clone, check=True)
    return clone / "exercises"


@dataclass
class Shell:
    """Runs a teacher's command in a folder; it fails if the command doesn't return what it should."""

    folder: Path

    def __call__(self, command: str, *, returns: int = 0) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "POSENC_COURSE_SEED"}
        environment |= {"POSENC_COURSE_PATIENCE": PATIENCE, "PYTHONPATH": str(ROOT)}
        if re.match("nbgrader [^&|;$~*]*$", command):  # without importing anew what all its commands and kernels need
            done = nbgrader(*shlex.split(command)[1:], cwd=self.folder, environment=environment)
        else:
            environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
            both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, text=True, **both)  # type: ignore[call-overload]
        assert done.returncode == returns, f"{command}:\n{done.stdout}"
        return str(done.stdout)


def by_id(notebook: Notebook) -> dict[str, Any]:
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def hand_in(course: Path, student: str, change: Callable[[Notebook], None], *, name: str = ASSIGNMENT) -> Path:
    """Puts the handed-out notebook, as the student has changed it, where nbgrader collects it."""
    notebook = nbformat.read(course / "handout" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
    change(notebook)
    folder = course / "submitted" / student / ASSIGNMENT
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder


def right(notebook: Notebook) -> None:
    solved = by_id(notebook_of((ROOT / f"text/source/{ASSIGNMENT}.md").read_text("utf-8")))
    for grade_id, cell in by_id(notebook).items():
        if cell.metadata.nbgrader.solution:
            cell.source = solved[grade_id].source


def wrong(notebook: Notebook) -> None:
    """A token that's set to zero instead of changed; all else right."""
    right(notebook)
    cell = by_id(notebook)["who-sees-whom"]
    cell.source = cell.source.replace("changed[n] += torch.rand(x.shape[1]) + 0.5", "changed[n] = 0")


def empty(notebook: Notebook) -> None:
    """As it was handed out."""
