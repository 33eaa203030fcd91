"""The code under <details class="solution"> is run as it stands on the page, and the exercise's own check judges it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages.pages import CHAPTERS, Notebook, code_cells, read

pytestmark = pytest.mark.slow


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


def bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a cell gives to the cells after it."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {name.asname or name.name.partition(".")[0] for name in statement.names}
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return {name.id for name in ast.walk(statement) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    return set()


def used(code: ast.AST) -> set[str]:
    """The names that code takes from outside of it: not those of its arguments, nor those that it assigns itself."""
    names = [name for name in ast.walk(code) if isinstance(name, ast.Name)]
    own = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    own |= {argument.arg for argument in ast.walk(code) if isinstance(argument, ast.arg)}
    return {name.id for name in names} - own


def verdict(notebook: Notebook, code: str, asks: str) -> str:
    """Run a solution after the chapter's definitions that it needs, and say what its check says."""
    chapter = "\n".join(re.sub(r"(?m)^[%!].*", "", cell.source) for _, cell in code_cells(notebook))
    statements = [each for each in ast.parse(chapter).body if "your turn" not in (ast.get_source_segment(chapter, each) or "")]
    solution = ast.parse(f"{code}\nverdict = {asks}")
    given = set[str]().union(*map(bound, solution.body))
    wanted, seen, chosen = used(solution) - given, set[str](), set[int]()
    while wanted - seen:
        name = (wanted - seen).pop()
        seen.add(name)
        for number, statement in enumerate(statements):
            if name in bound(statement):
                chosen.add(number)
                wanted |= used(statement)
    names: dict[str, Any] = {"__name__": "solution"}
    needed = [statements[number] for number in sorted(chosen)]
    exec(compile(ast.Module([*needed, *solution.body], []), "<solution>", "exec"), names)
    return str(names["verdict"])


@pytest.mark.parametrize("name", CHAPTERS)
def test_solution_is_right(name: str) -> None:
    notebook = read(CHAPTERS[name])
    found = list(solutions(notebook))
    assert found, f'{name} has no solution with code: ```python in its <details class="solution">'
    for code, asks in found:
        assert asks, f"{name}: no line print(checks.….…(…)) in the cell before the solution: write it"
        says = verdict(notebook, code, asks)
        assert says.startswith("Right"), f"{name}: the check says of the solution: {says}"


def test_a_mistake_in_a_solution_is_found() -> None:
    notebook = read(CHAPTERS["10_rope"])
    ((code, asks),) = solutions(notebook)
    assert not verdict(notebook, code.replace("a * theta.sin() + b", "a * theta.sin() - b"), asks).startswith("Right")
