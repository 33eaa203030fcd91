"""The code under <details class="solution"> is run as it stands on the page, and the exercise's own check judges it."""

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


def verdict(notebook: Notebook, code: str, asks: str) -> str:
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


@pytest.mark.parametrize("name", CHAPTERS)
def test_solution_is_right(name: str) -> None:
    notebook = read(CHAPTERS[name])
    found = list(solutions(notebook))
    assert found, f'{name} has no solution with code: ```python in its <details class="solution">'
    for code, asks in found:
        assert asks, f"{name}: no line print(checks.….…(…)) in the cell before the solution: write it"
        says = verdict(notebook, code, asks)
        assert says.startswith("Right"), f"{name}: the check says of the solution: {says}"
