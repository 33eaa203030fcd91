"""The sheets: each student's own numbers, verdicts that can be earned by the named mistake alone, and keys that are right."""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import nbformat
import pytest

from posenc_course import checks
from posenc_course.checks import _exercise, _sandbox
from posenc_course.checks._exercise import PASSES, Check
from tests import pages, prose
from tests.commands import ROOT, WEEKLY
from tools.teaching import sheets
from tools.teaching.sheets import SOURCES, Sheet

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
    assert [*SOURCES] == sorted(path.stem for path in (ROOT / "exercises/source").glob("*/*.ipynb"))


# ── a verdict to earn ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def _the_package_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mistakes are written with the package's functions, which a check would recognize."""
    monkeypatch.setattr(_exercise, "run", lambda *arguments, answers, **how: _sandbox.run(*arguments, **how))


@pytest.mark.slow
@pytest.mark.usefixtures("_the_package_may_answer")
@pytest.mark.parametrize("assignment", SOURCES)
def test_only_the_named_mistake_earns_the_verdict(assignment: str) -> None:
    """That each mistake gets its own hint is tested with the exercises; here, one other mistake is enough."""
    check, _, words = task(assignment)
    exercise = check.exercise(0)
    hint = exercise.hint_with(words)
    assert hint, f"no verdict, or more than one, has the words {words!r}"
    other, of_other = next((mistake, of) for mistake, of in exercise.mistakes.values() if of != hint)

    def verdict(answer: Any) -> str:
        return check.verdict(exercise, *(answer if isinstance(answer, tuple) else (answer,)), earn=words)

    assert all(verdict(mistake).startswith("Earned: ") for mistake, of in exercise.mistakes.values() if of == hint)
    assert all(verdict(right).startswith("Your function is right, which earns nothing") for right in exercise.rights)
    said = verdict(other)
    assert of_other in said
    assert not said.startswith(PASSES)


@pytest.mark.slow
@pytest.mark.parametrize("assignment", SOURCES)
def test_the_keys_function_earns_its_verdict(assignment: str) -> None:
    check, function, words = task(assignment)
    sheet = made(assignment)
    assert f"> {words}" in text(sheet.cells), "students are given the verdict"
    assert printed(sheet.key).startswith("Earned: "), "with seed 0, as in all tests"
    for seed in range(1, 3 if check.draws else 1):
        assert check(sheet.names[function], seed=seed, earn=words).startswith("Earned: ")


# ── numbers of one's own ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("assignment", SOURCES)
def test_a_name_always_gets_the_same_sheet_and_names_differ(assignment: str) -> None:
    again = sheets.sheet(assignment, STUDENTS[0])
    assert (again.cells, again.key) == (made(assignment).cells, made(assignment).key)
    assert any(text(made(assignment, student).cells) != text(again.cells) for student in STUDENTS[1:])


def test_another_seed_gives_other_numbers() -> None:
    assert sheets.sheet("01_order", STUDENTS[0], "spring").names["key"] != made("01_order").names["key"]


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
    slowest = 10_000 ** (-(names["d"] - 2) / names["d"])
    wrong = [abs(int(m) - int(said)) for m, said in re.findall(r"position (\d+) is read as (\d+)", sheet)]
    assert len(wrong) == 5
    off = 0.5 * 10.0 ** -names["decimals"]  # of both numbers of a hand that points halfway up
    angle = math.atan2(math.sqrt(0.5) + off, math.sqrt(0.5) - off) - math.pi / 4
    assert int(names["key"]["largest error"]) == pytest.approx(angle / slowest, rel=0.01, abs=0.6)
    assert 0 < max(wrong) <= int(names["key"]["largest error"]) + 1
    assert all(m == said for m, said in re.findall(r"position (\d+) is read as (\d+)", key))


@key_of("10_rope")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    before, after = map(float, re.findall(r"query: (\S+), rotated: (\S+)", sheet)[0])
    one, other = map(float, re.findall(r"score at .*: (\S+)$", sheet, re.MULTILINE))
    assert abs(before - after) > 0.09
    assert abs(one - other) > 0.09
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


@key_of("02_naive")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    trained, found = names["trained"], key.splitlines()[1:]
    for letter, m, length in (("A", names["m_short"], names["short"]), ("B", names["m_long"], names["long"])):
        looks = Fraction(m, length - 1) - Fraction(1, trained - 1)
        nearest = min(range(length), key=lambda n: abs(Fraction(n, length - 1) - looks))
        assert f"{letter} {nearest}" in found
        assert names["key"][letter] == nearest
    lengths = [n for n in range(3, 100) if Fraction(1, 2) < Fraction(n - 1, trained - 1) < Fraction(3, 2)]
    assert found[2] == f"C {lengths[0]} to {lengths[-1]}" == f"C {names['key']['C']}"


@key_of("03_sinusoidal")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", sheet)]
    assert numbers[:2] == [pytest.approx(math.sqrt(names["d"] / 2), abs=1e-4)] * 2
    assert numbers[2] == numbers[3] != names["d"] / 2
    assert int(re.findall(r"change: (\d+)", sheet)[0]) == names["key"]["columns that hardly change"]
    assert key.count("True") == 3
    assert f"slower than any right one: {names['d'] // 4}\na test, passed: False" in key


@key_of("05_norm")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    measured = dict(re.findall(r"^(\w): the share is (\S+)$", key, re.MULTILINE))
    for letter in "AB":
        assert float(measured[letter]) == pytest.approx(float(names["key"][letter]), abs=0.004)
    assert float(measured["C"]) == pytest.approx(0.5, abs=0.01)
    assert float(names["key"]["C"]) == pytest.approx(math.sqrt(0.5) / names["std"], abs=0.01)


@key_of("06_shift")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    one, other, shift, offset = (names[name] for name in ("one", "other", "shift", "offset"))
    repeats = next(n for n in range(1, 1000) if n % one == n % other == 0)
    fit = sum((o - offset) % one == (o - offset) % other == 0 for o in range(-names["limit"], names["limit"] + 1))
    power = next(k for k in range(1, 1000) if k * shift % one == k * shift % other == 0)
    assert key.splitlines()[1:] == [f"A {repeats}", f"B {fit}", f"C {power}"]
    assert [names["key"][letter] for letter in "ABC"] == [repeats, fit, power]


@key_of("07_base")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    d, base, factor, length = (names[name] for name in ("d", "base", "factor", "length"))
    periods = [[2 * math.pi * b ** (2 * i / d) for i in range(d // 2)] for b in (base, factor * base)]
    turns = [sum(period <= length - 1 for period in each) for each in periods]
    slower = [periods[1][i] / periods[0][i] for i in (0, d // 4, -1)]
    assert key.splitlines()[1:5] == [
        *(f"{n} {by:.2f}" for n, by in zip("ABC", slower, strict=True)),
        f"D {turns[0]} {turns[1]}",
    ]
    assert [names["key"][n] for n in "BCD"] == [*(f"{by:.2f}" for by in slower[1:]), f"{turns[0]}, {turns[1]}"]
    before, now = map(float, key.splitlines()[5].split(": ")[1].split(", "))
    assert now < before


@key_of("08_learned")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    got, right = ([float(x) for x in re.findall(r"\d\.\d", text)] for text in (sheet, key))
    assert got == [float(row < max(names["lengths"])) for row in range(names["rows"])]
    assert right == [float(sum(row < length for length in names["lengths"])) for row in range(names["rows"])]
    assert f"lost: {int(sum(right) - sum(got))} of {sum(names['lengths'])}" in key
    assert names["key"]["gradients lost"] == f"{int(sum(right) - sum(got))} of {int(sum(right))}"


@key_of("09_relative")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    assert "the last query sees: 1\nthe last output changes by 0.000000\n" in sheet
    exact = names["num_buckets"] // 2  # offsets that have a bucket of their own; the others by T5's formula
    far = [exact + int(math.log(d / exact) / math.log(128 / exact) * exact + 1e-9) for d in range(exact, names["length"])]
    numbers = len({*range(min(exact, names["length"])), *far})
    assert f"the last query sees: {numbers}\nrepaired, the last output changes: yes" in key
    assert names["key"]["numbers in the right table"] == numbers


@key_of("11_alibi")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    slope, cached = names["slope"], names["cached"]
    first, second = map(float, re.findall(r"off by up to (\S+)", sheet))
    assert first == 0
    assert second > 0.05
    assert sheet.splitlines()[-1].endswith("its highest bias at key 0")
    numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", key.partition("\n")[2])]
    assert numbers == [pytest.approx(slope * cached), pytest.approx(-slope * (cached - 1))]


@key_of("14_layers")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    windows, length, w = names["windows"], names["length"], names["w"]
    reach = sum(windows) - len(windows)
    layers = next(layers for layers in range(1, 1000) if layers * (w - 1) >= length - 1)
    assert key.splitlines()[1:] == [f"A {reach}", f"B {sum(windows)} of {len(windows) * length}", f"C {layers}"]
    assert [*names["key"].values()][3:] == [reach, f"{sum(windows)} of {len(windows) * length}", layers]


@key_of("15_contextual")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    shares = [float(share) for share in re.findall(r"digits: +(\S+)% right", sheet)]
    limit = math.pi / (3 * names["error"])
    assert shares[:2] == [100, 100]
    assert 20 < shares[2] < 80
    assert shares[3:5] == [0, 0]
    assert shares[5] > 99
    changes = [int(number) for number in re.findall(r"\d+", key.partition("sums of")[2])]
    assert changes == [math.ceil(times * limit) for times in (1, 3, 5)]


@key_of("16_reach")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    n, times, lead = names["n"], names["times"], names["lead"]
    a, b = (math.exp(lead) / (math.exp(lead) + others) for others in (n - 1, times * n - 1))
    needed = lead + math.log((times * n - 1) / (n - 1))
    found = key.splitlines()[1:]
    assert found[:2] == [f"A {a:.1%}", f"B {b:.1%}"]
    assert found[2:4] == [f"C {needed:.2f}, which gives {a:.1%}", f"D {needed / lead:.2f}, which gives {a:.1%}"]
    assert [*names["key"].values()][3:] == [f"{a:.1%}", f"{b:.1%}", f"{needed:.2f}", f"{needed / lead:.2f}"]
    assert found[4] == f"the other head: {1 / (1 + math.exp(-0.5)):.1%}, then {1 / (1 + math.exp(-0.5 * needed / lead)):.1%}"


@key_of("17_choosing")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    restarted, separate = (re.findall(r"off by up to (\S+) (\S+)", line)[0] for line in sheet.splitlines())
    assert restarted[0] == "0.0000"
    assert float(restarted[1]) > 0.05
    assert separate == ("0.0000", "0.0000")
    assert [line.rpartition(" ")[2] for line in key.splitlines()[1:]] == ["wrong", "wrong", "right"]


@key_of("18_released")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    speed = math.exp(-names["pair"] / 32 * math.log(100_000))
    least = next(m for m in range(100_000) if math.cos(speed * (m + 1) + names["ahead"]) > math.cos(speed * m + names["ahead"]))
    once, stretched = map(int, re.findall(r"lowest at (\d+)", key))
    assert once == least > 8192
    assert stretched == pytest.approx(names["factor"] * least, abs=names["factor"])
    assert int(names["key"]["lowest at"].replace(",", "")) == pytest.approx(least, abs=1)
    now, before = re.findall(r": ([+-]\d\.\d\d)", key.splitlines()[-1])
    assert now == before
    assert names["key"]["pair"] > 5
    assert 20 * math.pi < 100_000 ** (-5 / 32) * 8192, "pair 5 has gone around many times"


@key_of("19_heads")
def _(names: dict[str, Any], sheet: str, key: str) -> None:
    of, rows = (
        names["of"],
        {row[0]: [*map(float, row[1:])] for row in re.findall(r"(\w) \| (\S+) \| (\S+) \| (\S+) ", names["table"])},
    )
    assert rows[of["previous"]][0] > 0.75
    assert all(abs(a - b) < 0.1 for a, b in zip(rows[of["equal"]], rows[of["distance"]], strict=True))
    assert rows[of["equal"]][2] > 0.75
    assert rows[of["distance"]][2] > 0.75
    random = dict(re.findall(r"random text, head (\w): (\S+) after", key))
    assert float(random[of["equal"]]) > 0.75
    assert float(random[of["distance"]]) < 0.3


@pytest.mark.parametrize("student", STUDENTS if WEEKLY else STUDENTS[:2])
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
def test_numbers_in_the_words_are_in_the_code(assignment: str) -> None:
    """Or printed by it, computed in braces, or marked as given, as on pages."""
    source = re.sub(r"\{\{.*?\}\}", "…", SOURCES[assignment].read_text("utf-8"))
    words = re.sub(r"^```.*?^```$", "", source, flags=re.MULTILINE | re.DOTALL)
    page = prose.page_of(assignment, nbformat.v4.new_notebook(cells=[*made(assignment).cells, *made(assignment).key]))
    seen = page.literals.union(*(map(pages.value, re.findall(pages.NUMBER, line)) for line in page.lines))
    problems = list(prose.numbers_are_held(page._replace(text=words, literals=frozenset(seen))))
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("assignment", SOURCES)
def test_no_line_of_a_key_is_on_the_sheet(assignment: str) -> None:
    sheet = made(assignment)
    words = [[cell for cell in cells if cell.cell_type == "markdown"] for cells in sheet[:2]]  # the key runs the sheet's code
    given, key = ({line for line in text(cells).splitlines() if len(line) > 12} for cells in words)
    assert key
    assert not given & key


@pytest.mark.parametrize("assignment", SOURCES)
def test_a_sheet_runs_by_itself(assignment: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without what its first cell, which students don't get, has imported and defined."""
    names: dict[str, Any] = {}
    for cell in made(assignment).cells:
        if cell.cell_type == "code" and "NotImplementedError" not in cell.source:
            exec(cell.source, names)
    assert capsys.readouterr().out == printed(made(assignment).cells)


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
    assert ada.cells[1:-1] == made("01_order").cells[1:]
    assert ada.cells[-1].source == "*Your answers.*"
    assert key.cells[2:] == made("01_order").key[1:]
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
