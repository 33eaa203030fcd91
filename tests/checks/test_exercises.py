import ast
import dataclasses
import functools
import inspect
import random
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import nbformat
import pytest
import torch
from torch import Tensor

from posenc_course.checks import _exercise, _sandbox
from posenc_course.checks._exercise import Exercise
from tests.answers import CHECKS, RIGHT, UNSEEN, WRONG
from tests.commands import WEEKLY
from tests.pages.pages import CHAPTERS, Notebook, code_cells
from tools.book.execute import execute
from tools.book.text import Page, notebook_of, read

ROOT = Path(__file__).resolve().parents[2]
EXERCISES = ROOT / "exercises"
TEXTS = {path.stem: path for path in sorted((ROOT / "text/source").glob("*.md"))}
SOURCES = {name: notebook_of(path.read_text("utf-8")) for name, path in TEXTS.items()}


def grader(cell: Any) -> dict[str, Any]:
    return dict(cell.metadata.get("nbgrader", {}))


def graded(notebook: Notebook) -> dict[str, Any]:
    """The autograded cells by the check that each calls."""
    found = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and grader(cell).get("grade"):
            found[re.match(r"checks\.grade\(checks\.([\w.]+)\(", cell.source)[1]] = cell  # type: ignore[index]
    return found


# ── the checks, by their own mistakes, a bank of answers, and mutants of the right ones ──────────────────────────────────────

# The grader's seed; on Mondays, five others, too, which have something new to say only after a check was changed.
SEEDS = range(6 if WEEKLY else 1)
DRAWN = [(seed, check) for check, drawn in CHECKS.items() for seed in SEEDS if drawn.draws or not seed]
# How a verdict begins that names no mistake: where the answer is wrong, by how much, or an example.
UNNAMED = (
    r"Your function is right in|Where you are wrong|You never return|Your numbers are nearly right|\w+\(.*(gives|is wrong in)"
)


# Checks with a mutant that differs only for arguments that their exercise rules out, or can't be expected to find.
EXCUSED = {
    "layers.reach": "a position below 0",
    "pendulums.bent_hand": "rows with two bent hands",
    "sinusoidal.culprit": "a table of one pair",
}


@functools.cache
def exercise(check: str, seed: int) -> Exercise:
    """Made once, so that what the known mistakes give is worked out once for all answers."""
    return CHECKS[check].exercise(seed)


@pytest.fixture
def _the_package_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank and the mistakes are written with the package's functions, which a check would recognize."""
    monkeypatch.setattr(_exercise, "run", lambda *arguments, answers, **how: _sandbox.run(*arguments, **how))


def verdict(check: str, seed: int, answer: Any) -> str:
    """On an answer, or on several that one check takes together."""
    return CHECKS[check].verdict(exercise(check, seed), *(answer if isinstance(answer, tuple) else (answer,)))


@pytest.mark.usefixtures("_the_package_may_answer")
@pytest.mark.parametrize(("seed", "check"), DRAWN)
def test_every_known_mistake_gets_its_own_hint(check: str, seed: int) -> None:
    for right in exercise(check, seed).rights:
        assert verdict(check, seed, right).startswith("Right: ")
    for name, (mistake, hint) in exercise(check, seed).mistakes.items():
        assert verdict(check, seed, mistake) == hint, name


@pytest.mark.slow
@pytest.mark.usefixtures("_the_package_may_answer")
@pytest.mark.parametrize(("seed", "check"), DRAWN)
def test_a_right_answer_passes_however_it_is_written(check: str, seed: int) -> None:
    said = [verdict(check, seed, right) for right in RIGHT[check]]
    assert not [(number, text) for number, text in enumerate(said) if not text.startswith("Right: ")]
    assert len(said) == 3, f"mark three right answers, written differently, with @right({check!r})"


@pytest.mark.slow
@pytest.mark.usefixtures("_the_package_may_answer")
@pytest.mark.parametrize(("seed", "check"), DRAWN)
def test_a_wrong_answer_is_caught_and_named(check: str, seed: int) -> None:
    said = [(wrong, verdict(check, seed, wrong.answer)) for wrong in WRONG[check]]
    assert not [(wrong.name, text) for wrong, text in said if text.startswith("Right") or "\n" in text]
    assert not [(wrong.name, wrong.words, text) for wrong, text in said if (wrong.words or "") not in text]
    assert len(said) >= 4, f"mark at least four answers that go wrong differently, with @wrong({check!r}, words of the verdict)"
    unsaid = {hint for _, hint in exercise(check, seed).mistakes.values()} - {text for _, text in said}
    assert not unsaid, f"hints that no answer gets: add an answer, or leave out {unsaid}"


@pytest.mark.slow
@pytest.mark.usefixtures("_the_package_may_answer")
def test_four_in_five_answers_that_nobody_looked_at_are_named() -> None:
    said = [(check, wrong.name, verdict(check, 0, wrong.answer)) for check in CHECKS for wrong in UNSEEN.wrong[check]]
    assert not [(check, name) for check, name, text in said if text.startswith("Right")]
    unnamed = [each for each in said if re.match(UNNAMED, each[2])]
    print(f"{len(said) - len(unnamed)} of {len(said)} wrong answers get a verdict that names the mistake")
    assert len(unnamed) <= 0.2 * len(said), unnamed


# What a right answer's source may have instead: another operator, or no sign or call.
CHANGES = {
    r" \+ ": " - ", " - ": " + ", r" \* ": " / ", " / ": " * ", " // ": " / ", r" \*\* ": " * ", " < ": " <= ", " <= ": " < ",
    " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ", " and ": " or ", " or ": " and ", "True": "False",
    "False": "True", r"(?<=[(\[ ])-(?=\w)": "", r"\.\w+\(\)": "",
}  # fmt: skip


def mutants(right: Any, count: int, seed: str) -> Iterator[tuple[str, Any]]:
    """Some right answers with one change, and their sources; of several answers that belong together, the first is changed."""
    function, *rest = right if isinstance(right, tuple) else (right,)
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        return
    definition = ast.parse(inspect.getsource(function)).body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    if ast.get_docstring(definition):
        del definition.body[0]
    source = ast.unparse(definition)
    places = [(found, new) for old, new in CHANGES.items() for found in re.finditer(old, source)]
    places += [(found, str(int(found[0]) + by)) for found in re.finditer(r"\b\d+\b", source) for by in (1, -1)]
    for found, new in random.Random(seed).sample(places, min(count, len(places))):
        changed = source[: found.start()] + new + source[found.end() :]
        names = dict(vars(inspect.getmodule(function)))
        exec(changed, names)
        answer = names[function.__name__]
        yield changed, (answer, *rest) if rest else answer


def other_arguments(given: tuple[Any, ...], chance: random.Random) -> tuple[Any, ...]:
    """Arguments of the same kinds with other numbers. They needn't be ones that the exercise allows."""

    def other(value: Any) -> Any:
        if isinstance(value, Tensor):
            shuffled = value[torch.randperm(len(value), generator=torch.Generator().manual_seed(chance.randrange(99)))]
            return shuffled * chance.uniform(0.7, 1.4) if value.is_floating_point() else shuffled
        if isinstance(value, int) and not isinstance(value, bool):
            return value + chance.choice((-2, -1, 0, 1, 2))
        return value * chance.uniform(0.7, 1.4) if isinstance(value, float) else value

    return tuple(map(other, given))


def equivalent(check: str, mutant: Any) -> bool:
    """Whether a mutant agrees with the three right answers for other arguments, too: for all with which these agree."""
    asked, chance = exercise(check, 0), random.Random(check)
    if asked.fault:  # a property decides, which holds
        return True
    for _, case in asked.named_cases * 5:
        others = {"cases": [other_arguments(case, chance)], "right": RIGHT[check][0], "mistakes": {}, "praise": ""}
        other = dataclasses.replace(asked, **others)

        def agrees(answer: Any, other: Exercise = other) -> bool:
            return CHECKS[check].verdict(other, *(answer if isinstance(answer, tuple) else (answer,))).startswith("Right: ")

        if all(map(agrees, RIGHT[check])) and not agrees(mutant):
            return False
    return True


@pytest.mark.slow
@pytest.mark.usefixtures("_the_package_may_answer")
@pytest.mark.parametrize("check", CHECKS)
def test_a_right_answer_with_one_change_is_refused(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_COURSE_PATIENCE", "5")
    tried = [mutant for right in RIGHT[check] for mutant in mutants(right, count=2, seed=check)]
    passed = [(source, mutant) for source, mutant in tried if verdict(check, 0, mutant).startswith("Right: ")]
    told = [source for source, mutant in passed if check not in EXCUSED and not equivalent(check, mutant)]
    assert not told, f"add a case that tells these from a right answer, or say in EXCUSED why none can: {told}"


# ── the form of a source ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_chapter_has_an_assignment(chapter: str) -> None:
    assert chapter in SOURCES, f"write text/source/{chapter}.md"


@pytest.mark.parametrize("assignment", SOURCES)
def test_source_is_in_nbgraders_form(assignment: str) -> None:
    for cell in SOURCES[assignment].cells:
        if cell.cell_type == "code":
            assert ("### BEGIN SOLUTION" in cell.source) == bool(grader(cell).get("solution"))
    for check, cell in graded(SOURCES[assignment]).items():
        assert check in CHECKS
        assert re.fullmatch(r"checks\.grade\(checks\.[\w.]+\([\w, ]+\)\)", cell.source)


@pytest.mark.slow
@pytest.mark.parametrize("assignment", SOURCES)
def test_the_solutions_are_right_and_the_key_prints_what_it_says(assignment: str, tmp_path: Path) -> None:
    """A check ends with an error if an answer isn't right."""
    page = Page(TEXTS[assignment], tmp_path / f"{assignment}.ipynb")
    assert execute(page) == 0
    key = next(cell for cell in read(page.notebook).cells if grader(cell).get("grade_id") == "key")
    says = re.findall(r"^# (.*)$", key.source.partition("# For the number 1815, it prints:\n")[2], re.MULTILINE)
    prints = key.outputs[0].text
    assert says == prints.splitlines(), f"text/source/{assignment}.md: the comments at the key's end should be\n{prints}"


@pytest.mark.parametrize("assignment", SOURCES)
def test_an_assignment_says_what_it_asks(assignment: str) -> None:
    """Minutes and points in each heading and in the sum, hints, and a question in words."""
    all_cells = SOURCES[assignment].cells
    text = "\n".join(cell.source for cell in all_cells if cell.cell_type == "markdown")
    headings = re.findall(r"^## Exercise (\d): .+ \((\d+) minutes, (\d) points?\)$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in headings] == list(range(1, len(headings) + 1))
    points = [grader(cell)["points"] for cell in all_cells if grader(cell).get("grade")]
    assert points == [int(points) for _, _, points in headings]
    asked = f"{sum(int(minutes) for _, minutes, _ in headings)} minutes, {sum(points)} points."
    assert asked in text.partition("## Exercise")[0], f"text/source/{assignment}.md: say {asked!r} at its top"
    assert text.count('<details class="hint">') >= len(graded(SOURCES[assignment]))
    assert "*Rubric.*" in text, "one question is answered in words, with a rubric"


# ── the release ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("assignment", SOURCES)
def test_no_line_of_a_solution_is_released(assignment: str) -> None:
    released = nbformat.read(EXERCISES / "release" / assignment / f"{assignment}.ipynb", as_version=4).cells
    given = {line.strip() for cell in released for line in cell.source.splitlines()}
    kept_back = set()
    for cell in SOURCES[assignment].cells:
        if cell.cell_type == "markdown" and grader(cell).get("solution"):
            kept_back |= set(cell.source.splitlines())
        for part in re.findall(r"### BEGIN SOLUTION\n(.*?)### END", cell.source, re.DOTALL):
            kept_back |= {line.strip() for line in part.splitlines()}
    shared = {line for line in kept_back & given if len(line) > 12}
    assert not shared, f"these lines of a solution stand in what students get: {shared}"
    assert not any(cell.get("outputs") for cell in released)


# ── the chapters' solutions ────────────────────────────────────────────────────────────────────────────────────────────


def solutions(notebook: Notebook) -> Iterator[tuple[str, str]]:
    """The code of each solution, and the call of the check in the last code cell before it."""
    asks = ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            asks = next((line[6:-1] for line in cell.source.splitlines() if re.match(r"print\(checks\.\w+\.\w+\(", line)), "")
            continue
        for details in re.findall(r'<details class="solution">.*?</details>', cell.source, re.DOTALL):
            if blocks := re.findall(r"^```python\n(.*?)^```", details, re.MULTILINE | re.DOTALL):
                yield "\n".join(blocks), asks


def verdict_of(notebook: Notebook, code: str, asks: str) -> str:
    """What the check says of a solution, which is run after the chapter's definitions and the values that it needs."""
    chapter = ast.parse("\n".join(re.sub(r"(?m)^[%!].*", "", cell.source) for _, cell in code_cells(notebook)))
    names: dict[str, Any] = {"__name__": "solution"}
    defined = [each for each in chapter.body if isinstance(each, ast.FunctionDef | ast.Import | ast.ImportFrom)]
    assigned = {
        name.id: statement
        for statement in chapter.body
        if isinstance(statement, ast.Assign)
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }

    def run(statement: ast.stmt) -> None:
        try:
            exec(compile(ast.Module([statement], []), "<solution>", "exec"), names)
        except NameError as missing:
            run(assigned[str(missing.name)])
            run(statement)

    for each in [*defined, *ast.parse(f"{code}\nverdict = {asks}").body]:
        run(each)
    return str(names["verdict"])


@pytest.mark.slow
@pytest.mark.parametrize("name", CHAPTERS)
def test_solution_is_right(name: str) -> None:
    notebook = read(CHAPTERS[name])
    found = list(solutions(notebook))
    assert found, f'{name} has no solution with code: ```python in its <details class="solution">'
    for code, asks in found:
        assert asks, f"{name}: no line print(checks.….…(…)) in the cell before the solution: write it"
        says = verdict_of(notebook, code, asks)
        assert says.startswith("Right"), f"{name}: the check says of the solution: {says}"
