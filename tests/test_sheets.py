"""The sheets: each student's own numbers, verdicts that can be earned by the named mistake alone, and keys that are right."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from posenc_course import checks
from posenc_course.checks import _exercise, _sandbox
from posenc_course.checks._exercise import Check
from tests.commands import ROOT
from tools import sheets
from tools.sheets import SOURCES, Sheet

STUDENTS = ["Ada Lovelace", "Emmy Noether", "Sofia Kovalevskaya", "Wang Zhenyi"]


@functools.cache
def made(assignment: str, student: str = STUDENTS[0]) -> Sheet:
    return sheets.sheet(assignment, student)


def text(cells: list[Any]) -> str:
    return "\n\n".join(cell.source for cell in cells)


def printed(cells: list[Any]) -> str:
    return "".join(output.text for cell in cells for output in cell.get("outputs", []))


def task(assignment: str) -> tuple[Check, str, str]:
    """The check of the verdict to earn, the name of the function to write, and the words of the verdict."""
    sheet = made(assignment)
    (found,) = re.findall(r"^checks\.grade\(checks\.(\w+)\.(\w+)\((\w+), earn=says\)\)$", text(sheet.cells), re.MULTILINE)
    topic, check, function = found
    return getattr(getattr(checks, topic), check), function, sheet.names["says"]


def test_every_assignment_has_a_sheet() -> None:
    assert [*SOURCES] == [path.name for path in sorted((ROOT / "exercises/source").iterdir()) if path.is_dir()]


# ── a verdict to earn ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def _the_package_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistakes are written with the package's functions, which a check would recognize."""
    monkeypatch.setattr(_exercise, "run", lambda *arguments, call, answers: _sandbox.run(*arguments, call=call))


@pytest.mark.usefixtures("_the_package_may_answer")
@pytest.mark.parametrize("assignment", SOURCES)
def test_only_the_named_mistake_earns_the_verdict(assignment: str) -> None:
    check, _, words = task(assignment)
    for seed in (0, 1):
        exercise = check.exercise(seed)
        hint = exercise.hint_with(words)
        assert hint, f"no verdict, or more than one, has the words {words!r}"
        for name, (mistake, of_this) in exercise.mistakes.items():
            said = check.verdict(exercise, *(mistake if isinstance(mistake, tuple) else (mistake,)), earn=words)
            assert said.startswith("Earned: ") == (of_this == hint), name
        for right in exercise.rights:
            answers = right if isinstance(right, tuple) else (right,)
            assert check.verdict(exercise, *answers, earn=words).startswith("Your function is right, which earns nothing")


@pytest.mark.parametrize("assignment", SOURCES)
def test_the_keys_function_earns_its_verdict(assignment: str) -> None:
    check, function, words = task(assignment)
    sheet = made(assignment)
    assert f"> {words}" in text(sheet.cells), "students are given the verdict"
    assert printed(sheet.key).startswith("Earned: ")
    for seed in range(3):
        assert check(sheet.names[function], seed=seed, earn=words).startswith("Earned: ")


# ── numbers of one's own ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("assignment", SOURCES)
def test_a_name_always_gets_the_same_sheet_and_names_differ(assignment: str) -> None:
    again = sheets.sheet(assignment, STUDENTS[0])
    assert (again.cells, again.key) == (made(assignment).cells, made(assignment).key)
    assert len({text(made(assignment, student).cells) for student in STUDENTS}) > 1
    assert sheets.sheet(assignment, STUDENTS[0], "spring").names["key"] != made(assignment).names["key"]


# What the key says, computed in another way. Each function gets the sheet's names and what its cells and its key print.
KEYS: dict[str, Callable[[dict[str, Any], str, str], Any]] = {}


def key_of(assignment: str) -> Callable[[Any], Any]:
    return lambda test: KEYS.setdefault(assignment, test)


@key_of("01_order")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    counts = Counter(names["word"])
    orders = math.factorial(len(names["word"])) // math.prod(map(math.factorial, counts.values()))
    assert key.splitlines()[1:] == ["A 1", f"B {len(counts)}", f"C {len(counts)}", f"D {orders}"]
    assert [names["key"][letter] for letter in "ABCD"] == [1, len(counts), len(counts), orders]


@key_of("04_pendulums")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    wrong = [abs(int(m) - int(said)) for m, said in re.findall(r"position (\d+) is read as (\d+)", sheet)]
    slowest = 10_000 ** (-(names["d"] - 2) / names["d"])
    assert len(wrong) == 5
    assert 0 < max(wrong) <= 1.5 * 0.5 * 10.0 ** -names["decimals"] / slowest + 0.5
    assert all(m == said for m, said in re.findall(r"position (\d+) is read as (\d+)", key))


@key_of("10_rope")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    before, after = map(float, re.findall(r"query: (\S+), rotated: (\S+)", sheet)[0])
    one, other = map(float, re.findall(r"score at .*: (\S+)$", sheet, re.MULTILINE))
    assert abs(before - after) > 0.01
    assert abs(one - other) > 0.01
    assert [line.rpartition(" ")[2] for line in key.splitlines()[1:]] == ["right", "right", "wrong", "right"]


@key_of("12_lengths")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    early, late, longer = names["early"], names["late"], names["longer"]
    rows = {(row[0], int(row[1])): [*map(float, row[2:])] for row in re.findall(r"(\w+) +(\d+): (\S+) (\S+) (\S+)", sheet)}
    assert max(rows[early, 64]) < min(rows[late, 64])
    assert max(rows[late, longer]) < min(rows[early, longer])
    for name in (early, late):
        short, long = (sum(rows[name, length]) / 3 for length in (64, longer))
        beyond = float(re.findall(rf"{name}: .* (\S+) beyond", key)[0])
        assert 64 / longer * short + (1 - 64 / longer) * beyond == pytest.approx(long, abs=0.01)
    assert key.count("the seeds are apart") == 2


@key_of("13_stretching")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    turns = [(names["trained"] - 1) * names["base"] ** (-2 * i / names["d"]) / (2 * math.pi) for i in range(names["d"] // 2)]
    assert names["key"]["pairs that completed a turn"] == sum(turn >= 1 for turn in turns)
    rows = re.findall(r"^ +(\d+) +\S+ +(\d+) +(\S+) ", sheet, re.MULTILINE)
    assert [int(by) for _, by, _ in rows] == [names["factor"] if turn >= 1 else 1 for turn in turns]
    assert [float(unseen) > 0 for _, _, unseen in rows] == [turn < 1 for turn in turns]
    assert float(key.split()[-1]) < 0.15


@pytest.mark.parametrize("student", STUDENTS)
@pytest.mark.parametrize("assignment", SOURCES)
def test_a_key_is_right(assignment: str, student: str) -> None:
    sheet = made(assignment, student)
    KEYS[assignment](sheet.names, printed(sheet.cells), printed(sheet.key))


# ── their form, and their files ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("assignment", SOURCES)
def test_a_sheet_and_its_key_have_their_parts(assignment: str) -> None:
    sheet = made(assignment)
    title, key = text(sheet.cells).splitlines()[0], text(sheet.key)
    assert title.startswith(f"# Sheet {int(assignment[:2])}: ")
    headings = re.findall(r"^## (.*)$", text(sheet.cells), re.MULTILINE)
    assert headings in [["Earn a verdict", form] for form in ("Predict", "Explain a bug", "Interpret a run")]
    assert re.findall(r"^(?:\*\*|\*)(Rubric|Good \(2 points\)|Half \(1 point\)|Hollow \(0 points\))\.", key, re.MULTILINE) == [
        "Rubric", "Good (2 points)", "Half (1 point)", "Hollow (0 points)",
    ]  # fmt: skip
    _, questions = key.split("## Two questions to ask\n")
    asked = re.findall(r"^(\d)\. \*.*\?\* A good answer: .* [Aa] hollow one", questions, re.MULTILINE)
    assert asked == ["1", "2"]
    assert "{{" not in text(sheet.cells) + key
    lines = [line for cell in sheet.cells + sheet.key if cell.cell_type == "code" for line in cell.source.splitlines()]
    assert max(len(line) for line in lines if not line.startswith("says = ")) <= 96


@pytest.mark.parametrize("assignment", SOURCES)
def test_no_line_of_a_key_is_on_the_sheet(assignment: str) -> None:
    sheet = made(assignment)
    words = [[cell for cell in cells if cell.cell_type == "markdown"] for cells in sheet[:2]]  # the key runs the sheet's code
    given, key = ({line for line in text(cells).splitlines() if len(line) > 12} for cells in words)
    assert key
    assert not given & key


def test_a_class_gets_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("names.txt").write_text("\n".join([*STUDENTS, "", ""]), encoding="utf-8")
    assert sheets.main(["01_order", "names.txt"]) == 0
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.ipynb")}
    assert {*capsys.readouterr().out.split()} == found
    assert len(found) == len(STUDENTS) + 1
    ada, key = (
        nbformat.read(name, as_version=4) for name in ("handout/sheets/01_order/Ada_Lovelace.ipynb", "keys/01_order.ipynb")
    )
    for notebook in (ada, key):
        nbformat.validate(notebook)
    assert "for **Ada Lovelace**" in ada.cells[0].source
    assert ada.cells[1:] == made("01_order").cells[1:]
    for student in STUDENTS:
        row = " | ".join(map(str, made("01_order", student).names["key"].values()))
        assert f"| {student} | {row} |" in key.cells[0].source


@pytest.mark.parametrize(
    ("assignment", "names", "says"),
    [
        ("01_ordre", "Ada", "no sheet is called 01_ordre: choose from 01_order, "),
        ("01_order", "Ada\nAda", "each student needs a name of their own"),
        ("01_order", "\n", "each student needs a name of their own"),
        ("01_order", None, "No such file"),
    ],
)
def test_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], assignment: str, names: str | None, says: str
) -> None:
    file = tmp_path / "names.txt"
    if names is not None:
        file.write_text(names, encoding="utf-8")
    assert sheets.main([assignment, str(file)]) == 1
    assert says in capsys.readouterr().err
