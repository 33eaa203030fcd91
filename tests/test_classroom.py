"""A class with the real nbgrader, on a fresh copy of the repository: every command of the guide runs as the page has it.

One student is right, one is wrong, others hand in broken notebooks. No student gets another's results, and grading continues.
"""

from __future__ import annotations

import csv
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.error import URLError
from urllib.request import urlopen
from zipfile import ZipFile

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell

from tests.commands import WEEKLY, nbgrader
from tools.teaching import grade as grader
from tools.teaching import graders as packer

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "book/teaching/classroom.md"
pytestmark = pytest.mark.slow
ASSIGNMENT = "01_order"
PATIENCE = "5"  # seconds for one call; the default has more, for a class that shares a machine
Notebook = Any
Nbgrader = Callable[..., str]


def commands(heading: str) -> list[str]:
    """The commands of the first block below a heading of the guide, without their comments."""
    block = re.findall(rf"^##+ With {heading}\n.*?^```\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)[0]
    return [line for each in block.splitlines() if (line := re.sub(r"(^| +)# .*", "", each))]


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
    notebook = nbformat.read(course / "handout" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
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
    cells["permutation"].source = "permutation_matrix = None"
    cells["kind"].source = "import sys\ndef kind(f, x):\n    sys.exit()"
    cells["who-sees-whom"].source = (  # it sleeps, or it would keep a core from other tests
        "import time\ndef who_sees_whom(f, x):\n    while True:\n        try: time.sleep(0.01)\n        except Exception: pass"
    )
    cells["orders-apart"].source = (
        "print('a long line of nothing ' * 450_000)\nfor _ in range(20_000): print('and more')\n"
        "def orders_apart(f, x):\n    return 24"
    )


def deadly(notebook: Notebook) -> None:
    """One function calls the right answer, the next one is right, and the third ends the kernel."""
    solve(notebook)
    cells = by_id(notebook)
    cells["permutation"].source = (
        "def permutation_matrix(order):\n"
        "    from posenc_course import checks\n"
        "    return checks.order.permutation.exercise(0).rights[0](order)"
    )
    cells["who-sees-whom"].source = "import os\ndef who_sees_whom(f, x):\n    os._exit(0)"


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
def exercises(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in a copy of what a clone would have, after the first two commands of the guide."""
    clone = tmp_path_factory.mktemp("clone")
    listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if re.match(r"(exercises|posenc_course|tools|book/reread)|[^/]*$", name) and (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    (clone / ".venv").symlink_to(sys.prefix)
    root = clone / "exercises"
    config = root / "nbgrader_config.py"
    # A short wait for the cell that never ends, and for no other: each kernel's first one imports torch.
    waits = f"c.Execute.timeout_func = lambda cell: 2 if {ENDLESS!r} in cell.source else 60"
    exchange = clone / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    config.write_text(f"{config.read_text()}\n{waits}\nc.Exchange.root = {str(exchange)!r}\n")
    return root


@dataclass
class Shell:
    """Runs the guide's commands; those before the first one that is no setting are repeated each time."""

    folder: Path
    prepare: list[str]
    at_once: bool = False  # nbgrader starts without bash, and it and its kernels without importing all that they need

    def __call__(self, command: str, *, returns: int = 0) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "POSENC_COURSE_SEED"}
        environment |= {"POSENC_COURSE_PATIENCE": PATIENCE, "PYTHONPATH": str(ROOT)}
        if self.at_once and re.match("nbgrader [^&|;$~*]*$", command):
            run = nbgrader(*shlex.split(command)[1:], cwd=self.folder, environment=environment)
            assert run.returncode == returns, f"{command}:\n{run.stdout}"
            return run.stdout
        lines = "\n".join(["set -e", *self.prepare, command])
        done = subprocess.run(["bash", "-c", lines], cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == returns, f"{command}:\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def guide(exercises: Path) -> list[str]:
    return commands("nbgrader")


@pytest.fixture(scope="module")
def shell(exercises: Path, guide: list[str]) -> Shell:
    return Shell(exercises.parent, guide[:2])


@pytest.fixture(scope="module")
def course(exercises: Path, guide: list[str], shell: Shell) -> Course:
    """The guide's commands, one after the other; only the grading tab is opened elsewhere.

    The first are typed into a shell, and grade the attack, whose kernel has to import all that it needs. The others needn't.
    """
    root, log, at_once = exercises, "", Shell(exercises, guide[1:2], at_once=True)
    promised = {
        "nbgrader generate_assignment": ["handout/01_order/01_order.ipynb", "gradebook.db"],
        "pip wheel": ["handout/01_order/posenc_course-1.0.0-py3-none-any.whl"],
        "nbgrader autograde": ["autograded/wrong/01_order/01_order.ipynb"],
        "nbgrader generate_feedback": ["feedback/wrong/01_order/01_order.html"],
        "nbgrader export": ["grades.csv"],
        "python ../tools/teaching/mistakes.py": ["mistakes/01_order.html", "mistakes/01_order.csv"],
    }
    assert guide[:2] == ["cd exercises", 'export PATH="$PWD/../.venv/bin:$PATH"']
    rest = [command for command in guide[2:] if command != "jupyter lab"]
    assert len(rest) == len(guide) - 3
    for command, (start, files) in zip(rest, promised.items(), strict=True):
        assert command.startswith(start)
        assert not any((root / file).exists() for file in files), "a fresh clone has none of these"
        if start == "nbgrader autograde":
            attack(root)
            shell(command)
            all_others_hand_in(root)
            shell = at_once
            log = shell(command, returns=1)  # for the renamed notebook, after all others were graded
        else:
            shell(command)
        assert all((root / file).exists() for file in files), command
    with (root / "grades.csv").open() as grades:
        points = {row["student_id"]: float(row["score"]) for row in csv.DictReader(grades)}
    return Course(root, points, log)


def attack(root: Path) -> None:
    folder = hand_in(root, "deadly", deadly)
    (folder / "posenc_course.py").write_text(IMPOSTOR)
    (folder / "torch.py").write_text("raise SystemExit")
    (folder / "posenc_course").mkdir()
    (folder / "posenc_course/__init__.py").write_text(IMPOSTOR)


def all_others_hand_in(root: Path) -> None:
    hand_in(root, "right", solve)
    hand_in(root, "wrong", mistaken)
    hand_in(root, "hostile", hostile)
    hand_in(root, "stuck", stuck)
    hand_in(root, "bare", bare)
    hand_in(root, "renamed", solve, name="my homework")


def test_every_student_gets_the_points_that_are_due(course: Course) -> None:
    """Of ten points two are given by hand, for the answer in words."""
    assert course.points == {
        "right": 8,
        "wrong": 7,
        "hostile": 0,
        "stuck": 8,  # the cell that never ends is interrupted, after what it had defined
        "bare": 0,  # no cell, no points
        "renamed": 0,
        "deadly": 2,  # for what was right before Python ended
    }


def said(course: Course, student: str, grade_id: str) -> str:
    outputs = by_id(course.graded(student))[grade_id].outputs
    return "\n".join(output.get("text", "") + "\n".join(output.get("traceback", [])) for output in outputs)


@pytest.mark.parametrize(
    ("student", "cell", "line"),
    [
        ("right", "kind-test", "Right: all 16 functions"),
        ("wrong", "permutation-test", "Your P is the transpose"),
        ("hostile", "permutation-test", "This check needs a function, not a NoneType"),
        ("hostile", "kind-test", "raised SystemExit"),
        ("hostile", "who-sees-whom-test", f"return within {PATIENCE} seconds"),
        ("hostile", "ex3-figure", "Not run, because who_sees_whom didn't return in time in a cell above."),
        ("hostile", "orders-apart-test", "You count the orders"),
        ("stuck", "kind", "No reply from kernel before timeout"),
        ("deadly", "permutation-test", "calls the package's own right answer"),
        ("deadly", "kind-test", "Right: all 16 functions"),
        ("deadly", "who-sees-whom-test", "This cell has ended Python."),
        ("deadly", "orders-apart-test", "Not run, because a cell above has ended Python."),
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


def test_the_log_warns_only_of_what_the_guide_calls_normal(course: Course) -> None:
    (of_right,) = re.findall(r"student with ID 'right'.*?(?=student with ID)", course.log, re.DOTALL)
    warnings = [line for line in of_right.splitlines() if re.search(r"WARNING|ERROR", line)]
    assert {line.partition("WARNING")[2][:34] for line in warnings} <= {" | Kernel is running over TCP with"}


def test_students_get_a_page_that_they_can_read(course: Course) -> None:
    """No directives of the book's, no links to pages that they don't have, and a title."""
    page = BeautifulSoup(course.feedback("wrong"), "html.parser")
    assert page.title
    assert page.title.get_text() == "Assignment 1: Which layers see the order?"
    text = page.get_text()
    assert "Your P is the transpose" in text
    assert not re.search(r":::|:class:", text)
    links = [str(link["href"]) for link in page.select("a[href]")]
    assert not [link for link in links if not re.match(r"#|https?://", link)]
    anchors = {str(anchor.get("name") or anchor.get("id")) for anchor in page.select("[name], [id]")}
    assert {link[1:] for link in links if link[0] == "#"} <= anchors | {"top"}


def test_a_handout_stands_alone(course: Course) -> None:
    folder = course.root / "handout" / ASSIGNMENT
    notebook = nbformat.read(folder / f"{ASSIGNMENT}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "**What this assignment asks**\n\nThis assignment has" in text
    assert not re.search(r":::|\]\(\.\.", text)
    (wheel,) = re.findall(r"^# %pip install .*?(\S+\.whl)$", text, re.MULTILINE)
    assert (folder / wheel).is_file(), "the line that installs the package finds it beside the notebook"


def test_the_sites_address_goes_into_the_links(course: Course, nbgrader: Nbgrader, tmp_path: Path) -> None:
    shutil.copy(ROOT / "exercises/nbgrader_config.py", tmp_path)
    shutil.copytree(ROOT / "exercises/source" / ASSIGNMENT, tmp_path / "source" / ASSIGNMENT)
    nbgrader(tmp_path, "generate_assignment", ASSIGNMENT, "--no-db", "--StandAlone.site=https://example.org/course/")
    text = (tmp_path / "handout" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb").read_text("utf-8")
    assert "[chapter 1](https://example.org/course/book/01_order.html)" in text
    assert "# %pip install matplotlib https://example.org/course/posenc_course-" in text


def test_what_a_class_hands_in_cannot_be_committed(course: Course) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=course.root.parent, check=True)
    seen = subprocess.check_output(
        ["git", "status", "--porcelain", "-uall", "exercises"], cwd=course.root.parent, text=True
    ).splitlines()
    kept = {Path(line[3:]).parts[1] for line in seen}
    assert kept == {"README.md", "exam.md", "nbgrader_config.py", "release", "sheets", "source"}


def test_the_class_is_summed_up(course: Course) -> None:
    """Five of the six graded notebooks lack the matrix, in as many different ways."""
    with (course.root / "mistakes" / f"{ASSIGNMENT}.csv").open() as file:
        rows = {(row["check"], row["finding"] or row["kind"]): int(row["students"]) for row in csv.DictReader(file)}
    assert rows["order.permutation", "transposed"] == 1
    assert rows["order.permutation", "isn't a function"] == 1
    assert rows["order.permutation", "calls the package's right answer"] == 1
    assert rows["order.permutation", "the graded cell is missing"] == 1
    assert rows["order.permutation", "right"] == 2
    assert rows["order.who_sees_whom", "doesn't return in time"] == 1
    assert sum(count for (check, _), count in rows.items() if check == "order.kind") == 6


# ── other graders ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def graders(course: Course, shell: Shell) -> Path:
    """What the guide's command packs, with Gradescope's file unpacked as Gradescope does it."""
    (command,) = commands("Gradescope")
    shell(command)
    folder = course.root / "graders" / ASSIGNMENT
    with ZipFile(folder / "gradescope.zip") as archive:
        assert all(archive.getinfo(script).external_attr >> 16 & 0o100 for script in ("run_autograder", "setup.sh"))
        archive.extractall(folder / "source")
    return folder


@pytest.fixture
def _nbgrader_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a grader calls it; everything else is as in the tests' environment, instead of the one that setup.sh makes."""

    def run(command: list[str], *, cwd: Path, env: dict[str, str], check: bool) -> None:
        nbgrader(*command[1:], cwd=cwd, environment=env)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("POSENC_COURSE_SEED")
    monkeypatch.setenv("POSENC_COURSE_PATIENCE", PATIENCE)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def grade(graders: Path, submission: Path, results: Path) -> Any:
    """Run Gradescope's program; on Mondays in a process of its own, as Gradescope does."""
    command = [str(graders / "source/grade.py"), str(submission), str(results)]
    if WEEKLY:
        assert subprocess.call([sys.executable, *command]) == 0
    else:
        with patch.object(sys, "argv", command), pytest.raises(SystemExit) as ended:
            runpy.run_path(command[0], run_name="__main__")
        assert ended.value.code == 0
    return json.loads(results.read_text("utf-8"))


@pytest.mark.usefixtures("_nbgrader_at_once")
@pytest.mark.parametrize("student", ["wrong", "bare", "deadly"])
def test_gradescope_gives_the_points_that_nbgrader_gives(course: Course, graders: Path, tmp_path: Path, student: str) -> None:
    """A wrong answer beside right ones, missing cells, and an attack: nbgrader grades here, too, so others can't differ.

    Unless it's Monday, it grades the attack alone, and what it has graded for the class is read for the others.
    """
    if WEEKLY or student == "deadly":
        results = grade(graders, course.root / "submitted" / student, tmp_path / "results.json")
    else:
        (source,) = graders.glob("source/source/*/*.ipynb")
        found = grader.results(nbformat.read(source, as_version=4), course.graded(student), "No verdict.")
        results = grader.gradescope(found)
    assert sum(test["score"] for test in results["tests"]) == course.points[student]
    assert [test["max_score"] for test in results["tests"]] == [1, 2, 3, 2]
    for test in results["tests"]:
        assert (test["status"] == "passed") == (test["score"] == test["max_score"])
        if student != "bare":
            assert test["output"], test["name"]
            assert test["output"] in said(course, student, test["name"]), "the verdict that nbgrader's feedback has"
    assert student == "bare" or "(seed 0)" in results["tests"][0]["output"], "so that gradings agree"


@pytest.mark.usefixtures("_nbgrader_at_once")
@pytest.mark.parametrize(
    ("notebooks", "says"),
    [
        ([], "Hand in a single notebook, 01_order.ipynb; there are 0."),
        (["a.ipynb", "b.ipynb"], "Hand in a single notebook, 01_order.ipynb; there are 2."),
        (["01_order.ipynb"], "nbgrader couldn't grade this notebook."),
    ],
)
def test_a_grader_says_what_is_wrong_with_a_submission(
    graders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebooks: list[str], says: str
) -> None:
    handed_in, course = tmp_path / "submission", tmp_path / "course"
    handed_in.mkdir()
    course.mkdir()
    for name in notebooks:
        (handed_in / name).write_text("no notebook")
    monkeypatch.setattr(grader, "HERE", graders / "source")
    assert [(each.points, each.says.startswith(says)) for each in grader.graded(handed_in, course)] == [(0, True)] * 4


def test_no_solution_is_packed(graders: Path) -> None:
    solved = by_id(nbformat.read(ROOT / "exercises/source" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4))
    lines = {line for cell in solved.values() if cell.metadata.nbgrader.solution for line in cell.source.splitlines()}
    secret = {line.strip() for line in lines if len(line) > 20 and not line.startswith("def ")}
    assert len(secret) > 20
    for path in (graders / "source").rglob("*"):
        if path.is_file() and path.suffix != ".whl":
            text = path.read_text("utf-8")
            assert not [line for line in secret if line in text], path


@pytest.mark.parametrize(
    ("assignment", "says"),
    [("01", "no assignment is called 01 in ."), ("02_naive", "handout/02_naive has 0 wheels of the package")],
)
def test_a_grader_that_cannot_be_packed_says_why(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], assignment: str, says: str
) -> None:
    monkeypatch.chdir(course.root)
    assert packer.main([assignment]) == 1
    assert says in capsys.readouterr().err


def answered(address: str) -> str:
    """What a server says that may only just be starting."""
    for _ in range(100):
        with suppress(URLError):
            return str(urlopen(address).read().decode())
        time.sleep(0.3)
    raise AssertionError(f"{address} doesn't answer")


def test_the_grading_tab_opens(course: Course, guide: list[str], shell: Shell) -> None:
    """`jupyter lab` has nbgrader's extension, and its page knows the course."""
    assert "jupyter lab" in guide
    lines = "\n".join([*shell.prepare, "exec jupyter lab --no-browser --port=0 --ServerApp.port_retries=0 --allow-root"])
    server = subprocess.Popen(["bash", "-c", lines], cwd=shell.folder, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr
        addresses = (re.search(r"(http://127\.0\.0\.1:\d+/)lab\?token=(\w+)", line) for line in server.stderr)
        address, token = next(found.groups() for found in addresses if found)
        assert ASSIGNMENT in answered(f"{address}formgrader/api/assignments?token={token}")
        assert "nbgrader formgrade" in answered(f"{address}formgrader/manage_assignments?token={token}")
    finally:
        server.terminate()
        server.communicate()


if WEEKLY:  # on other days, two gradings with seed 0 are compared where Gradescope's is the second

    def test_a_regrade_agrees(course: Course, nbgrader: Nbgrader) -> None:
        def texts() -> dict[str, str]:
            cells = by_id(course.graded("wrong"))
            return {name: "".join(output.get("text", "") for output in cell.get("outputs", [])) for name, cell in cells.items()}

        before = texts()
        nbgrader(course.root, "autograde", ASSIGNMENT, "--student=wrong", "--force")
        assert before == texts()
        assert "(seed 0)" in before["permutation-test"]
