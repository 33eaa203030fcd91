"""A class with the real nbgrader: an assignment is generated and released, students hand in, and it is graded, with feedback.

One student is right, one is wrong, one hands in broken notebooks. No student may get another's results, and grading continues.
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow
ASSIGNMENT = "01_order"
PATIENCE = "2"  # seconds for one call; the default has more, for a class that shares a machine
Notebook = Any
Nbgrader = Callable[..., str]


@dataclass
class Course:
    root: Path
    points: dict[str, float]  # by student, as exported
    log: str

    def feedback(self, student: str) -> str:
        return (self.root / "feedback" / student / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text("utf-8")

    def graded(self, student: str) -> Notebook:
        return nbformat.read(self.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)


def by_id(notebook: Notebook) -> dict[str, Any]:
    return {cell.metadata.nbgrader.grade_id: cell for cell in notebook.cells if "nbgrader" in cell.metadata}


def hand_in(course: Path, student: str, change: Callable[[Notebook], None], *, name: str = ASSIGNMENT) -> Path:
    """Puts the released notebook, as the student has changed it, where nbgrader collects it."""
    notebook = nbformat.read(course / "release" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
    change(notebook)
    folder = course / "submitted" / student / ASSIGNMENT
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder


def solve(notebook: Notebook) -> None:
    solved = by_id(nbformat.read(ROOT / "exercises/source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4))
    for grade_id, cell in by_id(notebook).items():
        if cell.metadata.nbgrader.solution:
            cell.source = solved[grade_id].source


def mistaken(notebook: Notebook) -> None:
    """The transposed matrix; all else right."""
    solve(notebook)
    by_id(notebook)["permutation"].source = "def permutation_matrix(order):\n    return torch.eye(len(order))[:, order]"


def hostile(notebook: Notebook) -> None:
    cells = by_id(notebook)
    cells[
        "permutation"
    ].source = "def permutation_matrix(order):\n    while True:\n        try: pass\n        except Exception: pass"
    cells["kind"].source = "import sys\ndef kind(f, x):\n    sys.exit()"
    cells["who-sees-whom"].source = (
        "checks.grade = lambda *_: None\n"
        "checks.order.who_sees_whom = lambda f, **_: 'Right: as I say.'\n"
        "checks._exercise.grade = checks.grade\n"
        "who_sees_whom = None"
    )
    cells["orders-apart"].source = (
        "print('a long line of nothing ' * 450_000)\nfor _ in range(20_000): print('and more')\n"
        "def orders_apart(f, x):\n    return 24"
    )


ENDLESS = "while True: pass"


def stuck(notebook: Notebook) -> None:
    """A cell that never ends, outside of what a check calls."""
    solve(notebook)
    by_id(notebook)["kind"].source += f"\n{ENDLESS}"


def bare(notebook: Notebook) -> None:
    """The graded cells deleted, and replaced by one that says that all is right."""
    solve(notebook)
    notebook.cells = [cell for cell in notebook.cells if not cell.metadata.get("nbgrader", {}).get("grade")]
    notebook.cells.append(new_code_cell("print('Right: all of it.')"))


IMPOSTOR = """
class checks:
    grade = staticmethod(lambda *_: None)
    order = type("order", (), {"__getattr__": lambda self, name: lambda *_, **__: "Right: trust me."})()
import sys; sys.modules["posenc_course.checks"] = checks
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, nbgrader: Nbgrader) -> Course:
    root = tmp_path_factory.mktemp("class")
    shutil.copy(ROOT / "exercises/nbgrader_config.py", root)
    shutil.copytree(ROOT / "exercises/source" / ASSIGNMENT, root / "source" / ASSIGNMENT)
    config = root / "nbgrader_config.py"
    # A short wait for the cell that never ends, and for no other: each kernel's first one imports torch.
    config.write_text(config.read_text() + f"\nc.Execute.timeout_func = lambda cell: 2 if {ENDLESS!r} in cell.source else 60\n")
    nbgrader(root, "generate_assignment", ASSIGNMENT)
    hand_in(root, "right", solve)
    hand_in(root, "wrong", mistaken)
    hand_in(root, "hostile", hostile)
    hand_in(root, "stuck", stuck)
    hand_in(root, "bare", bare)
    hand_in(root, "renamed", solve, name="my homework")
    impostor = hand_in(root, "impostor", lambda _: None)
    (impostor / "posenc_course.py").write_text(IMPOSTOR)
    (impostor / "torch.py").write_text("raise SystemExit")
    (impostor / "posenc_course").mkdir()
    (impostor / "posenc_course/__init__.py").write_text(IMPOSTOR)
    # It returns 1 for the renamed notebook, after all others were graded.
    log = nbgrader(root, "autograde", ASSIGNMENT, returns=1, POSENC_COURSE_PATIENCE=PATIENCE)
    nbgrader(root, "generate_feedback", ASSIGNMENT)
    nbgrader(root, "export")
    with (root / "grades.csv").open() as grades:
        points = {row["student_id"]: float(row["score"]) for row in csv.DictReader(grades)}
    return Course(root, points, log)


def test_every_student_gets_the_points_that_are_due(course: Course) -> None:
    """Of ten points two are given by hand, for the answer in words."""
    assert course.points == {
        "right": 8,
        "wrong": 7,
        "hostile": 0,
        "stuck": 8,  # the cell that never ends is interrupted, after what it had defined
        "bare": 0,  # no cell, no points
        "renamed": 0,
        "impostor": 0,
    }


def said(course: Course, student: str, grade_id: str) -> str:
    outputs = by_id(course.graded(student))[grade_id].outputs
    return "\n".join(output.get("text", "") + "\n".join(output.get("traceback", [])) for output in outputs)


@pytest.mark.parametrize(
    ("student", "cell", "line"),
    [
        ("right", "kind-test", "Right: all 16 functions"),
        ("wrong", "permutation-test", "Your P is the transpose"),
        ("hostile", "permutation-test", f"return within {PATIENCE} seconds"),
        ("hostile", "kind-test", "raised SystemExit"),
        ("hostile", "who-sees-whom-test", "This check needs a function, not a NoneType"),
        ("hostile", "orders-apart-test", "You count the orders"),
        ("stuck", "kind", "No reply from kernel before timeout"),
        ("impostor", "permutation-test", "Not tried yet"),
    ],
)
def test_feedback_says_in_a_line_what_was_wrong(course: Course, student: str, cell: str, line: str) -> None:
    assert line in said(course, student, cell)
    assert line in course.feedback(student)
    assert "posenc_course/" not in said(course, student, cell), "a traceback of ours"


def test_the_teacher_is_told_of_a_notebook_under_another_name(course: Course) -> None:
    assert "Skipping unknown notebook" in course.log
    assert "There was an error processing assignment '01_order' for student 'renamed'" in course.log


def test_ten_megabytes_of_prints_do_not_reach_the_gradebook(course: Course) -> None:
    size = (course.root / "autograded/hostile" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").stat().st_size
    assert size < 1_000_000


def test_a_regrade_agrees(course: Course, nbgrader: Nbgrader) -> None:
    def texts() -> dict[str, str]:
        cells = by_id(course.graded("wrong"))
        return {name: "".join(output.get("text", "") for output in cell.get("outputs", [])) for name, cell in cells.items()}

    before = texts()
    nbgrader(course.root, "autograde", ASSIGNMENT, "--student=wrong", "--force")
    assert before == texts()
    assert "(seed 0)" in before["permutation-test"]
