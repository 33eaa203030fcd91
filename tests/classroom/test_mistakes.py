"""What the class got wrong: how verdicts on the bank's answers are counted, and the page that a teacher reads."""

import re
import tomllib
from html import escape

import pytest
from nbformat.v4 import new_code_cell, new_output

from tests.answers import CHECKS, RIGHT, WRONG
from tests.commands import ROOT
from tools.book.text import notebook_of
from tools.teaching import mistakes
from tools.teaching.mistakes import Finding

TEXTS = sorted((ROOT / "text/source").glob("*.md"))
EXERCISES = {path.stem: mistakes.exercises(notebook_of(path.read_text("utf-8"))) for path in TEXTS}
TRANSPOSED, UNTRIED = Finding("a known mistake", "transposed", "Rows or columns?"), Finding("not tried")
# From each exercise's findings, the columns of five students: the second exercise has cost the class most points.
ROWS = [
    [Finding("right")] * 5,
    [Finding("right"), TRANSPOSED, TRANSPOSED, TRANSPOSED, UNTRIED],
    [Finding("right"), Finding("right"), Finding("right"), Finding("another wrong result", "Every row is 0."), UNTRIED],
]
CLASS = mistakes.Class("01_order", "Assignment 1", EXERCISES["01_order"], ["ada", "ben", "cem", "dora", "eve"], ROWS)


@pytest.mark.parametrize("each", EXERCISES["01_order"], ids=lambda each: each.name)
def test_an_answer_is_counted_by_its_verdict(each: mistakes.Exercise) -> None:
    """With what the graded cell shows: the verdict below what the student has printed, and the error if it isn't right."""
    for answer, words in [(RIGHT[each.name][0], "right"), *((row.answer, row.words) for row in WRONG[each.name])]:
        verdict = CHECKS[each.name](*(answer if isinstance(answer, tuple) else (answer,)), seed=0)
        cell = new_code_cell(outputs=[new_output("stream", text=f"something of the student's\n{verdict}\n")])
        if not verdict.startswith("Right: "):
            cell.outputs.append(new_output("error", ename="NotYet", evalue="this exercise doesn't earn any points yet."))
        finding = each.finding(cell)
        assert (words or "") in f"{finding.kind} {finding.hint} {finding.label}" or finding.label.startswith("raises")


def test_an_answer_without_a_result_is_told_apart() -> None:
    read, call = EXERCISES["01_order"][0].read, "kind(f, x of shape (5, 4))"
    assert read(f"{call} raised NameError: name 'y' is not defined") == Finding("no usable result", "raises NameError")
    assert read(f"{call} didn't return within 10 seconds. Is there an endless loop?").label == "doesn't return in time"
    assert read(f"{call} writes into its arguments, so the caller loses them.").label == "writes into its arguments"


def test_the_page_counts_every_student_once_and_names_nobody_unasked() -> None:
    page = mistakes.page(CLASS)
    right = [int(number) for number in re.findall(r"(\d+) of 5 have it right", page)]
    assert right == [sum(finding.kind == "right" for finding in row) for row in ROWS]
    assert page.count("●") + sum(right) == 5 * len(ROWS)
    assert "dora" not in page
    assert "dora" in mistakes.page(CLASS, names=True)


def test_the_page_begins_where_most_points_were_lost_and_says_what_to_do() -> None:
    page = mistakes.page(CLASS)
    assert "begin with exercise 2, which cost the class most points" in page
    assert "Everybody has it" in page
    assert f"“{TRANSPOSED.hint}”" in page
    assert f'<th scope="row">{escape(TRANSPOSED.hint)}</th><td>a known mistake</td><td>3</td>' in page
    assert all(each.section in page for each in CLASS.exercises)


@pytest.mark.parametrize("assignment", EXERCISES)
def test_every_graded_exercise_has_a_section_to_reread(assignment: str) -> None:
    """A heading of the book that exists."""
    sections = tomllib.loads((ROOT / "book/reread.toml").read_text("utf-8"))
    for each in EXERCISES[assignment]:
        topic, _, name = each.name.partition(".")
        assert name in sections.get(topic, {}), f"book/reread.toml: name the section to go back to after {each.name}"
        page, heading = sections[topic][name]
        assert f"# {heading}\n" in (ROOT / f"text/{page}.md").read_text("utf-8"), f"{page} has no section {heading}"
