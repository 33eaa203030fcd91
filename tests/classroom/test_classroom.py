"""A class with the real nbgrader, on a fresh copy of the repository: every command of the guide runs as the page has it.

One student is right, one is wrong, one has done nothing, and one's notebook is broken. No student gets another's results, and
grading continues.
"""

import csv
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import nbformat
import pytest
from bs4 import BeautifulSoup

from tests.classroom.course import (
    ASSIGNMENT,
    PATIENCE,
    Notebook,
    Shell,
    by_id,
    commands,
    empty,
    exercises,
    hand_in,
    right,
    wrong,
)

__all__ = ["exercises"]  # a fixture
pytestmark = pytest.mark.slow
GUIDE = "classroom.md"
ADA = "Ada Lovelace_1843"  # as Moodle calls her


@dataclass
class Course:
    root: Path
    points: dict[str, float]  # by student, as exported
    log: str

    def feedback(self, student: str) -> str:
        return (self.root / "feedback" / student / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text("utf-8")

    def graded(self, student: str) -> Notebook:
        return nbformat.read(self.root / "autograded" / student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)

    def said(self, student: str, grade_id: str) -> str:
        outputs = by_id(self.graded(student))[grade_id].outputs
        return "".join(output.get("text", "") + "\n".join(output.get("traceback", [])) for output in outputs)


def ada(notebook: Notebook) -> None:
    """Right, with a number of her own."""
    right(notebook)
    (number,) = (cell for cell in notebook.cells if cell.source.startswith("number ="))
    number.source = 'number = "Ada 1843"'


def broken(notebook: Notebook) -> None:
    """One function is right, one never returns, and one prints ten megabytes and ends Python."""
    right(notebook)
    cells = by_id(notebook)
    cells["who-sees-whom"].source = (  # it sleeps, or it would keep a core from other tests
        "import time\ndef who_sees_whom(f, x):\n    while True:\n        try: time.sleep(0.01)\n        except Exception: pass"
    )
    cells["orders-apart"].source = (
        "print('a long line of nothing ' * 450_000)\nfor _ in range(20_000): print('and more')\n"
        "def orders_apart(f, x):\n    import os\n    os._exit(0)"
    )


IMPOSTOR = """
class checks:
    grade = staticmethod(lambda *_: None)
    order = type("order", (), {"__getattr__": lambda self, name: lambda *_, **__: "Right: trust me."})()
import sys; sys.modules["posenc_course.checks"] = checks
"""


@pytest.fixture(scope="module")
def course(exercises: Path) -> Course:
    """The guide's commands, one after the other; only the grading tab isn't opened."""
    enter, path, *rest = commands(GUIDE, "With nbgrader")
    assert (enter, path) == ("cd exercises", 'export PATH="$PWD/../.venv/bin:$PATH"')
    shell, log = Shell(exercises), ""
    for command in rest:
        if command.startswith("nbgrader autograde"):
            hand_in(exercises, ADA, ada)
            hand_in(exercises, "wrong", wrong)
            hand_in(exercises, "empty", empty)
            folder = hand_in(exercises, "broken", broken)
            (folder / "posenc_course.py").write_text(IMPOSTOR)
            (folder / "torch.py").write_text("raise SystemExit")
            hand_in(exercises, "renamed", right, name="my homework")
            log = shell(command, returns=1)  # for the renamed notebook, after all others were graded
        elif command != "jupyter lab":
            shell(command)
    with (exercises / "grades.csv").open() as grades:
        points = {row["student_id"]: float(row["score"]) for row in csv.DictReader(grades)}
    return Course(exercises, points, log)


def test_every_student_gets_the_points_that_are_due(course: Course) -> None:
    """Of eight points two are given by hand, for the answer in words. What they were given finds the package beside it."""
    folder = course.root / "handout" / ASSIGNMENT
    (wheel,) = re.findall(r"# %pip install .*?(\S+\.whl)", (folder / f"{ASSIGNMENT}.ipynb").read_text("utf-8"))
    assert (folder / wheel).is_file()
    assert course.points == {ADA: 6, "wrong": 4, "empty": 0, "broken": 2, "renamed": 0}
    graded = course.root / "autograded/broken" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    assert graded.stat().st_size < 1_000_000, "ten megabytes of prints"


@pytest.mark.parametrize(
    ("student", "cell", "line"),
    [
        (ADA, "kind-test", "Right: all"),
        ("wrong", "who-sees-whom-test", "You set a token to zero"),
        ("empty", "kind-test", "Not tried yet"),
        ("broken", "who-sees-whom-test", f"return within {PATIENCE} seconds"),
        ("broken", "ex2-figure", "Not run, because who_sees_whom didn't return in time in a cell above."),
        ("broken", "ex3-look", "Not run, because a cell above has ended Python."),
    ],
)
def test_feedback_says_in_a_line_what_was_wrong(course: Course, student: str, cell: str, line: str) -> None:
    assert line in course.said(student, cell)
    assert line in course.feedback(student)
    assert "posenc_course/" not in course.said(student, cell), "a traceback of ours"


def test_whoever_grades_sees_the_key_of_the_students_own_numbers_and_the_rubric(course: Course) -> None:
    """Nothing of it is handed out; the feedback has the key, but not the questions to ask in person."""
    one, other = (course.said(student, "key") for student in (ADA, "wrong"))
    assert one != other
    letters = re.findall(r"^key for (\w+)$", one, re.MULTILINE)[0]
    assert f"Your word is {letters}." in course.said(ADA, "numbers")
    assert f"B {len({*letters})}\n" in one
    assert "key for" in course.feedback(ADA)
    for words in ("*Rubric.*", "*To ask in person:"):
        assert words in by_id(course.graded(ADA))["predict"].source
    assert "To ask in person" not in course.feedback(ADA)
    given = (course.root / "handout" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_text("utf-8")
    assert not re.search(r"Rubric|To ask in person|key for|SOLUTION|HIDDEN|SCHEME", given)


def test_the_log_says_what_is_wrong_and_warns_only_of_what_the_guide_calls_normal(course: Course) -> None:
    assert "Skipping unknown notebook" in course.log
    assert f"There was an error processing assignment '{ASSIGNMENT}' for student 'renamed'" in course.log
    (of_wrong,) = re.findall(r"student with ID 'wrong'.*?(?=There was an error)", course.log, re.DOTALL)
    warnings = [line for line in of_wrong.splitlines()[:-1] if re.search(r"WARNING|ERROR", line)]
    normal = r"Kernel is running over TCP|Attribute 'checksum' for cell (predict|key) has changed"
    assert not [line for line in warnings if not re.search(normal, line)]


def test_students_get_a_page_that_they_can_read(course: Course) -> None:
    """No links to pages that they don't have, and a title."""
    page = BeautifulSoup(course.feedback("wrong"), "html.parser")
    assert page.title
    assert page.title.get_text() == "Assignment 1: Which layers see the order?"
    links = [str(link["href"]) for link in page.select("a[href]")]
    assert not [link for link in links if not re.match(r"#|https?://", link)]


def test_a_handout_links_to_the_site_if_asked(course: Course, tmp_path: Path) -> None:
    shutil.copy(course.root / "nbgrader_config.py", tmp_path)
    shutil.copytree(course.root / "source" / ASSIGNMENT, tmp_path / "source" / ASSIGNMENT)
    Shell(tmp_path)(f"nbgrader generate_assignment {ASSIGNMENT} --no-db --StandAlone.site=https://example.org/course/")
    text = (tmp_path / "handout" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_text("utf-8")
    assert "[chapter 1](https://example.org/course/book/01_order.html)" in text
    assert "# %pip install matplotlib https://example.org/course/posenc_course-" in text


def test_what_a_class_hands_in_cannot_be_committed(course: Course) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=course.root.parent, check=True)
    listed = ["git", "status", "--porcelain", "-uall", "exercises"]
    seen = subprocess.check_output(listed, cwd=course.root.parent, text=True).splitlines()
    assert {Path(line[3:]).parts[1] for line in seen} == {"README.md", "exam.md", "nbgrader_config.py", "source"}


def test_the_class_is_summed_up(course: Course) -> None:
    """With a column for each student, from the most points to the fewest: Ada, wrong, broken, empty."""
    page = BeautifulSoup((course.root / "mistakes" / f"{ASSIGNMENT}.html").read_text("utf-8"), "html.parser")
    right = re.findall(r"(\d+) of \d+ have it right", page.get_text())
    rows = [[cell.get_text() for cell in row.select("th, td")] for row in page.select("tr")]
    assert right[0] == "3"
    assert any(row[0].startswith("You set a token") and row[1:] == ["a known mistake", "1", "", "●", "", ""] for row in rows)
    assert ["not tried", "not tried", "1", "", "", "", "●"] in rows
    assert ["doesn't return in time", "no usable result", "1", "", "", "●", ""] in rows


def test_gradescope_gives_the_points_that_nbgrader_gives(course: Course, tmp_path: Path) -> None:
    """To the broken notebook, and with what the guide's command packs: no solution is in it."""
    (command,) = commands(GUIDE, "With Gradescope")
    Shell(course.root)(command)
    with ZipFile(course.root / "graders" / ASSIGNMENT / "gradescope.zip") as archive:
        assert all(archive.getinfo(script).external_attr >> 16 & 0o100 for script in ("run_autograder", "setup.sh"))
        archive.extractall(tmp_path)
    given = nbformat.read(tmp_path / "source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
    assert "raise NotImplementedError" in by_id(given)["kind"].source
    assert by_id(given)["words"].source == "*Your answer.*"
    Shell(tmp_path)(f"python grade.py {course.root}/submitted/broken found.json")
    results = json.loads((tmp_path / "found.json").read_text("utf-8"))["tests"]
    assert [test["score"] for test in results] == [2, 0, 0]
    assert [test["max_score"] for test in results] == [2, 2, 2]
    assert all(test["output"] in course.said("broken", test["name"]) for test in results)
