"""What did the class get wrong? Makes a page from the notebooks that nbgrader has graded.

    python ../tools/teaching/mistakes.py 01_order        # in exercises/, after nbgrader autograde 01_order

The page, mistakes/01_order.html, shows for each exercise how many got it right, made a mistake that the check knows, or didn't
try; the section to go back to; and what to do with it in the next lecture. It names no student, unless you add --names.
"""

import argparse
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from posenc_course import checks
from posenc_course._system import write_whole
from posenc_course.checks._exercise import Check
from posenc_course.checks._sandbox import UNTRIED

ROOT = Path(__file__).resolve().parents[2]
# What became of an exercise, in the order of the page.
KINDS = ("right", "a known mistake", "another wrong result", "no usable result", "not tried")
# What a verdict says instead of judging a result.
NO_RESULT = {
    r"raised an error that says": "raises the checks' own error",
    r"raised (\w+)": "raises {}",
    r"didn't return within": "doesn't return in time",
    r"calls the package's own (.+?), which": "calls the package's {}",
    r"writes into its arguments": "writes into its arguments",
    r"needs a function": "isn't a function",
    r"((?:returned|has shape) .*)": "{}",
    r"(can't read your answer.*)": "{}",
}


class Finding(NamedTuple):
    """What one student's answer to one exercise amounts to."""

    kind: str
    label: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Exercise:
    """An exercise of the assignment: its heading, its points, and its check."""

    number: int
    title: str
    grade_id: str
    points: int
    name: str  # of the check: order.kind

    @property
    def section(self) -> str:
        """The heading to go back to, and its page, in HTML."""
        topic, _, name = self.name.partition(".")
        page, heading = tomllib.loads((ROOT / "book/reread.toml").read_text(encoding="utf-8"))[topic][name]
        chapter = f"chapter {int(page.removeprefix('deeper/')[:2])}"
        return f"<em>{escape(heading)}</em> ({'the page below ' * page.startswith('deeper/')}{chapter})"

    def finding(self, cell: Any) -> Finding:
        """Read off a graded cell what the answer amounts to; None stands for a cell that isn't there."""
        if cell is None:
            return Finding("no usable result", "the graded cell is missing")
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if not errors:
            return Finding("right")
        lines = "".join(output.get("text", "") for output in cell.outputs).strip().splitlines()
        if errors[-1].ename != "NotYet" or not lines:
            said = errors[-1].evalue if errors[-1].ename == "Not run" else f"the graded cell raises {errors[-1].ename}"
            return Finding("no usable result", said)
        return self.read(lines[-1])

    def read(self, verdict: str) -> Finding:
        """Sort a verdict that doesn't begin with "Right"."""
        text, seed = re.findall(r"^(.*?)(?: \(seed (\d+)\))?$", verdict)[0]
        if text.startswith(UNTRIED):
            return Finding("not tried")
        topic, _, name = self.name.partition(".")
        check: Check = getattr(getattr(checks, topic), name)
        for label, (_, hint) in check.exercise(int(seed or 0)).mistakes.items():
            if hint == text:
                return Finding("a known mistake", label, hint)
        common = re.split(rf"(?:part \d+ of )?\b(?:{'|'.join(check._names)})\(", text)[0].strip()
        # Nothing is said about a result, before the call or without one.
        if common in ("", text):
            for pattern, label in NO_RESULT.items():
                if found := re.search(pattern, text):
                    return Finding("no usable result", label.format(*found.groups()))
        return Finding("another wrong result", common or "nothing in common with a known mistake")


def exercises(notebook: Any) -> list[Exercise]:
    """The exercises of an assignment that checks grade, in order."""
    found, number, title = [], 0, ""
    for cell in notebook.cells:
        if heading := re.search(r"^## Exercise (\d+): (.*) \(", cell.source, re.MULTILINE):
            number, title = int(heading[1]), heading[2]
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and about.get("grade"):
            (name,) = re.findall(r"^checks\.grade\(checks\.([\w.]+)\(", cell.source)
            found.append(Exercise(number, title, about["grade_id"], about["points"], name))
    return found


@dataclass(frozen=True)
class Class:
    """Who found what: a row per exercise, a column per student, from the most points to the fewest."""

    assignment: str
    title: str
    exercises: list[Exercise]
    students: list[str]
    findings: list[list[Finding]]

    def tally(self, row: int) -> list[tuple[Finding, int]]:
        """The findings of an exercise that aren't right, the most frequent first, by kind."""
        counts = Counter(finding for finding in self.findings[row] if finding.kind != "right")
        return sorted(counts.items(), key=lambda each: (KINDS.index(each[0].kind), -each[1], each[0].label))


def read(assignment: str) -> Class:
    """Read the graded notebooks of an assignment."""
    graded = sorted(Path("autograded").glob(f"*/{assignment}/{assignment}.ipynb"))
    if not graded:
        sys.exit(f"nobody's {assignment} has been graded yet: in exercises, run nbgrader autograde {assignment} first")
    notebook = nbformat.read(f"source/{assignment}/{assignment}.ipynb", as_version=4)
    title, of_assignment = notebook.cells[0].source.splitlines()[0].removeprefix("# "), exercises(notebook)
    columns = {}
    for path in graded:
        cells = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell for cell in nbformat.read(path, as_version=4).cells}
        columns[path.parents[1].name] = [each.finding(cells.get(each.grade_id)) for each in of_assignment]

    def place(student: str) -> tuple[Any, ...]:
        pairs = zip(of_assignment, columns[student], strict=True)
        return -sum(each.points for each, finding in pairs if finding.kind == "right"), columns[student], student

    students = sorted(columns, key=place)
    rows = [[columns[student][row] for student in students] for row in range(len(of_assignment))]
    return Class(assignment, title, of_assignment, students, rows)


# ── what to do with it ───────────────────────────────────────────────────────────────────────────────────────────────────


def suggestion(tally: Sequence[tuple[Finding, int]], students: int) -> str:
    """What to do about an exercise in the next lecture."""
    wrong = sum(count for _, count in tally)
    if 5 * wrong < students:
        return "Leave it at the feedback: fewer than one in five still need it." if wrong else "Everybody has it: go on."
    finding, most = max(tally, key=lambda each: each[1])
    if 3 * most < wrong or most == 1:
        return "No single mistake stands out, so go through the section again instead of through the mistakes."
    if finding.kind == "a known mistake":
        return f"Show this mistake, and let the class explain it before you give the check's hint: “{finding.hint}”"
    if finding.kind == "not tried":
        return "Do the first step together: most of those without points haven't begun."
    return f"Show what most of the others got, and ask what's wrong with it: {finding.label.removesuffix('.')}."


def begin(found: Class) -> str:
    """The exercise to begin with: the one that has cost the class most points."""
    lost = [each.points * sum(count for _, count in found.tally(row)) for row, each in enumerate(found.exercises)]
    if not any(lost):
        return "Everybody has everything right."
    each = found.exercises[lost.index(max(lost))]
    return f"In the next lecture, begin with exercise {each.number}, which cost the class most points, and with {each.section}."


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 14px }
th, td { border-bottom: 1px solid #ccc; padding: .2em .3em; text-align: center; font-weight: normal }
th:first-child { text-align: left; min-width: 20em }
"""


def page(found: Class, *, names: bool = False) -> str:
    """What to begin with, and the exercises one by one."""
    students, title = len(found.students), "What did the class get wrong?"
    columns = found.students if names else range(1, students + 1)
    heads = "".join(f"<th>{escape(str(head))}</th>" for head in ("mistake", "kind", "all", *columns))
    parts = [f"<h1>{title}</h1><p>{escape(found.title)} · {students} graded notebooks</p><p>{begin(found)}</p>"]
    for row, (each, findings) in enumerate(zip(found.exercises, found.findings, strict=True)):
        tally = found.tally(row)
        right = students - sum(count for _, count in tally)
        parts.append(
            f"<h2>Exercise {each.number}: {escape(each.title)}</h2>"
            f"<p>{right} of {students} have it right. To reread: {each.section}.<br>"
            f"<strong>{_said(suggestion(tally, students))}</strong></p>"
        )
        lines = ""
        for finding, count in tally:
            marks = "".join(f"<td>{'●' if finding == other else ''}</td>" for other in findings)
            label = _said(finding.hint or finding.label or finding.kind)
            lines += f'<tr><th scope="row">{label}</th><td>{finding.kind}</td><td>{count}</td>{marks}</tr>'
        if lines:
            parts.append(f'<div class="wide"><table><tr>{heads}</tr>{lines}</table></div>')
    order = "" if names else " Students are numbered from the most points to the fewest."
    parts.append(f"<p>A dot is a student whose answer this is.{order}</p>")
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title} {found.assignment}</title>'
    return f'<!DOCTYPE html><html lang="en"><head>{head}<style>{STYLE}</style></head><body>{"".join(parts)}</body></html>\n'


def _said(verdict: str) -> str:
    """A verdict's words, with its code as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(verdict))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", help="for example 01_order")
    parser.add_argument("--names", action="store_true", help="name the students, as their folders are named")
    given = parser.parse_args()
    path = Path("mistakes") / f"{given.assignment}.html"
    write_whole(path, page(read(given.assignment), names=given.names).encode())
    print(path)
