"""What the class got wrong: a class of thirty whose answers are the bank's, and the page that a teacher reads."""

import csv
import random
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_output

from posenc_course.checks._exercise import NotYet
from tests.answers import CHECKS, RIGHT, WRONG
from tests.test_exercises import SOURCES, graded
from tools.teaching import mistakes
from tools.teaching.mistakes import Finding

ROOT = Path(__file__).resolve().parent.parent
ASSIGNMENT, STUDENTS, SEED = "01_order", 30, 0


def answered(check: str, choice: str) -> list[nbformat.NotebookNode]:
    """What the graded cell shows: the verdict on an answer of the bank, and the error if it isn't right."""
    answers = {"right": RIGHT[check][0], "untried": lambda *_: None} | {row.name: row.answer for row in WRONG[check]}
    answer = answers[choice]
    verdict = CHECKS[check](*(answer if isinstance(answer, tuple) else (answer,)), seed=SEED)
    printed = [new_output("stream", name="stdout", text=f"something of the student's\n{verdict}\n")]
    if verdict.startswith("Right: "):
        return printed
    return [*printed, new_output("error", ename=NotYet.__name__, evalue="this exercise doesn't earn any points yet.")]


@pytest.fixture(scope="module")
def chosen() -> dict[str, list[str]]:
    """For each exercise, which answer each student has handed in: few wrong ones often, as in a class."""
    picks = random.Random(37)
    choices = {}
    for check in graded(SOURCES[ASSIGNMENT]):
        wrong = picks.sample([row.name for row in WRONG[check]], 5)
        choices[check] = picks.choices(["right", *wrong, "untried"], [9, 8, 4, 2, 1, 1, 3], k=STUDENTS)
    return choices


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, chosen: dict[str, list[str]]) -> Path:
    root = tmp_path_factory.mktemp("thirty")
    (root / "source").mkdir()
    (root / "source" / ASSIGNMENT).symlink_to(SOURCES[ASSIGNMENT].parent)
    said = {(check, choice): answered(check, choice) for check in chosen for choice in {*chosen[check]}}
    for student in range(STUDENTS):
        notebook = nbformat.read(SOURCES[ASSIGNMENT], as_version=4)
        for cell in notebook.cells:
            for check, choices in chosen.items():
                if cell.source.startswith(f"checks.grade(checks.{check}("):
                    cell.outputs = said[check, choices[student]]
        folder = root / "autograded" / f"student{student:02}" / ASSIGNMENT
        folder.mkdir(parents=True)
        nbformat.write(notebook, folder / f"{ASSIGNMENT}.ipynb")
    return root


@pytest.fixture(scope="module")
def found(course: Path) -> mistakes.Class:
    return mistakes.read(course, ASSIGNMENT)


def test_every_student_is_counted_where_their_answer_belongs(found: mistakes.Class, chosen: dict[str, list[str]]) -> None:
    for each, row in zip(found.exercises, found.findings, strict=True):
        for student, finding in zip(found.students, row, strict=True):
            choice = chosen[each.name][int(student.removeprefix("student"))]
            if choice in ("right", "untried"):
                assert finding == Finding({"right": "right", "untried": "not tried"}[choice])
            else:
                (wrong,) = [wrong for wrong in WRONG[each.name] if wrong.name == choice]
                assert finding.kind in ("a known mistake", "another wrong result", "no usable result")
                said = f"{finding.hint} {finding.label}"
                assert wrong.words is None or wrong.words in said or finding.label.startswith("raises")


def test_the_tables_rows_add_up_to_the_class(course: Path, found: mistakes.Class, capsys: pytest.CaptureFixture[str]) -> None:
    assert mistakes.main([ASSIGNMENT, "--course", str(course)]) == 0
    assert capsys.readouterr().out.split() == [str(course / "mistakes" / f"{ASSIGNMENT}.{end}") for end in ("html", "csv")]
    with (course / "mistakes" / f"{ASSIGNMENT}.csv").open() as file:
        rows = list(csv.DictReader(file))
    for each in found.exercises:
        of_exercise = [row for row in rows if row["check"] == each.name]
        assert sum(int(row["students"]) for row in of_exercise) == STUDENTS
        for student in range(1, STUDENTS + 1):
            assert sum(int(row[str(student)]) for row in of_exercise) == 1
        assert all(int(row["students"]) == sum(int(row[str(n)]) for n in range(1, STUDENTS + 1)) for row in of_exercise)


def test_nobody_is_named_unless_it_is_asked_for(found: mistakes.Class) -> None:
    for make in (mistakes.page, mistakes.table):
        assert "student0" not in make(found)
        assert "student07" in make(found, names=True)


def test_the_page_begins_where_most_points_were_lost(found: mistakes.Class, chosen: dict[str, list[str]]) -> None:
    lost = [each.points * sum(choice != "right" for choice in chosen[each.name]) for each in found.exercises]
    worst = found.exercises[lost.index(max(lost))]
    page = mistakes.page(found)
    assert f"begin with exercise {worst.number}, which cost the class most points" in page
    assert page.count("<h2>") == len(found.exercises)
    for row, each in enumerate(found.exercises):
        (finding, count), *_ = found.tally(row)
        assert f'<th scope="row">{escape(finding.hint or finding.label or finding.kind)}' in page
        assert count == Counter(found.findings[row])[finding]
        assert each.section[1] in page


@pytest.mark.parametrize(
    ("tally", "says"),
    [
        ([], "Everybody has it"),
        ([(Finding("not tried"), 4)], "Leave it at the feedback"),
        ([(Finding("a known mistake", "the transpose", "Which column?"), 6), (Finding("not tried"), 5)], "“Which column?”"),
        ([(Finding("not tried"), 9)], "Do the first step together"),
        ([(Finding("another wrong result", "Every row is 0."), 9)], "what's wrong with it: Every row is 0."),
        ([(Finding("a known mistake", str(n), "?"), 2) for n in range(8)], "No single mistake stands out"),
    ],
)
def test_the_suggestion_follows_the_counts(tally: list[tuple[Finding, int]], says: str) -> None:
    assert says in mistakes.suggestion(tally, STUDENTS)


@pytest.mark.parametrize(
    ("verdict", "finding"),
    [
        ("kind(f, x of shape (5, 4)) raised NameError: name 'y' is not defined", "raises NameError"),
        ("Your function raised an error that says 'Right: all of it'.", "raises the checks' own error"),
        ("kind(f, x of shape (5, 4)) didn't return within 10 seconds. Is there an endless loop?", "doesn't return in time"),
        ("This check needs a function, not a NoneType. Pass the function itself, without calling it.", "isn't a function"),
        ("kind(f, x of shape (5, 4)) writes into its arguments, so the caller loses them.", "writes into its arguments"),
        ("kind(f, x of shape (5, 4)) returned 2, but it should return a word.", "returned 2, but it should return a word."),
        ("step with 7 new tokens writes into its arguments, so the caller loses them.", "writes into its arguments"),
    ],
)
def test_an_answer_without_a_result_is_told_apart(found: mistakes.Class, verdict: str, finding: str) -> None:
    (exercise,) = [each for each in found.exercises if each.name == "order.kind"]
    assert exercise.read(verdict) == Finding("no usable result", finding)


def test_what_is_missing_is_said(course: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "source").symlink_to(course / "source")
    for assignment, says in {"01_orders": "no assignment is called 01_orders", ASSIGNMENT: "has been graded yet"}.items():
        assert mistakes.main([assignment, "--course", str(tmp_path)]) == 1
        assert says in capsys.readouterr().err


SECTIONS = tomllib.loads((ROOT / "book/reread.toml").read_text("utf-8"))


def test_every_graded_exercise_has_a_section_to_reread() -> None:
    """A heading of the book that exists."""
    for path in SOURCES.values():
        for each in mistakes.exercises(nbformat.read(path, as_version=4)):
            topic, _, name = each.name.partition(".")
            assert name in SECTIONS.get(topic, {}), (
                f'book/reread.toml: write {name} = ["{path.stem}", "the heading of the section to go back to"] under [{topic}]'
            )
            where, heading = each.section
            number = int(where.rpartition(" ")[2])
            (text,) = (ROOT / "text" / ("deeper" if "below" in where else "")).glob(f"{number:02}_*.md")
            assert f"# {heading}\n" in text.read_text("utf-8"), f"{text.name} has no section {heading}"
            assert number == int(path.stem[:2]), f"{path.stem} sends its readers to another chapter"
