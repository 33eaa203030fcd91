"""The code under <details class="solution"> is run as it stands on the page, and the exercise's own check judges it."""

from __future__ import annotations

import ast
import builtins
import re
import symtable
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.pages import CHAPTERS, Notebook, code_cells, read

pytestmark = pytest.mark.slow


class Solution(NamedTuple):
    blocks: list[str]
    asks: str  # the exercise's call of its check, or nothing


def solutions(notebook: Notebook) -> Iterator[Solution]:
    """Each solution with code, and the check in the last code cell before it."""
    asks = ""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            asks = next((line[6:-1] for line in cell.source.splitlines() if re.match(r"print\(checks\.\w+\.\w+\(", line)), "")
            continue
        for details in re.findall(r'<details class="solution">.*?</details>', cell.source, re.DOTALL):
            if blocks := re.findall(r"^```python\n(.*?)^```", details, re.MULTILINE | re.DOTALL):
                yield Solution(blocks, asks)


class Generators(ast.NodeTransformer):
    """From Python 3.12 on, the variable of a list in one line is a symbol of the code around it; that of a generator isn't."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.AST:
        return self.generic_visit(ast.GeneratorExp(node.elt, node.generators))

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return self.generic_visit(ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators))


def table_of(source: str) -> symtable.SymbolTable:
    return symtable.symtable(ast.unparse(Generators().visit(ast.parse(source))), "", "exec")


def bound(statement: ast.stmt) -> set[str]:
    """The names that a statement of a cell gives to the cells after it; a loop's are no definitions."""
    if isinstance(statement, ast.For | ast.While | ast.With | ast.If):
        return set()
    symbols = table_of(ast.unparse(statement)).get_symbols()
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def used(source: str) -> set[str]:
    """The names that code takes from outside of it or from its module, also inside of functions."""
    tables, names = [table_of(source)], set[str]()
    while tables:
        table = tables.pop()
        top = table.get_type() == "module"
        names |= {of.get_name() for of in table.get_symbols() if of.is_referenced() and (top or of.is_global())}
        tables += table.get_children()
    return names - {*dir(builtins)}


def needed(notebook: Notebook, names: set[str]) -> list[ast.stmt]:
    """The chapter's statements that bind these names, and what these need, in their order."""
    statements = [statement for _, cell in code_cells(notebook) for statement in _parsed(cell.source)]
    chosen: set[int] = set()
    wanted, seen = {*names}, set[str]()
    while wanted - seen:
        name = (wanted - seen).pop()
        seen.add(name)
        for number, statement in enumerate(statements):
            if name in bound(statement) and not _is_left_open(statement):
                chosen.add(number)
                wanted |= used(ast.unparse(statement))
    return [statements[number] for number in sorted(chosen)]


def _is_left_open(statement: ast.stmt) -> bool:
    """The exercise's own ``return None  # your turn``."""
    return isinstance(statement, ast.FunctionDef) and ast.unparse(statement.body[0]) == "return None"


def _parsed(source: str) -> list[ast.stmt]:
    return ast.parse("\n".join("" if line.startswith(("%", "!")) else line for line in source.splitlines())).body


def verdict(notebook: Notebook, solution: Solution) -> str:
    """Run a solution after the chapter's definitions that it needs, and say what its check says; nothing without one."""
    code = "\n".join(solution.blocks)
    own = set[str]().union(*(bound(statement) for statement in ast.parse(code).body))
    namespace: dict[str, Any] = {"__name__": "solution"}
    body = needed(notebook, used(f"{code}\n{solution.asks}") - own)
    exec(compile(ast.Module(body=body, type_ignores=[]), "<definitions>", "exec"), namespace)
    for block in solution.blocks:
        exec(compile(block, "<solution>", "exec"), namespace)
    return str(eval(solution.asks, namespace)) if solution.asks else ""


@pytest.mark.parametrize("name", CHAPTERS)
def test_solution_is_right(name: str) -> None:
    notebook = read(CHAPTERS[name])
    found = list(solutions(notebook))
    assert found, f'{name} has no solution with code: ```python in its <details class="solution">'
    for solution in found:
        assert solution.asks, f"{name}: no line print(checks.….…(…)) in the cell before the solution: write it"
        says = verdict(notebook, solution)
        assert says.startswith("Right"), f"{name}: the check says of the solution: {says}"


# --- The rule itself -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("01_order", "f(x)[order]", "f(x)"),
        ("02_naive", "2**b % 2", "2**b % 3"),
        ("03_sinusoidal", "(0, d_model, 2", "(0, d_model, 1"),
        ("04_pendulums", "hands(row_m) - hands(row_n)", "hands(row_n) - hands(row_m)"),
        ("05_norm", "/ 2) ** 0.5", "/ 4) ** 0.5"),
        ("06_shift", "(-S, C)", "(S, C)"),
        ("07_base", "(length - 1)", "(length)"),
        ("08_learned", "(1 - part) * table[low]", "part * table[low]"),
        ("09_relative", "offset < 0", "offset > 0"),
        ("10_rope", "a * theta.sin() + b", "a * theta.sin() - b"),
        ("11_alibi", "-8 * h / power", "-4 * h / power"),
        ("13_stretching", "/ (4 - 1)", "/ (4 - 2)"),
        ("15_contextual", "2 * math.pi / 3", "math.pi"),
        ("17_choosing", '")": [0.0, -1.0]', '")": [0.0, 1.0]'),
    ],
)
def test_a_mistake_in_a_solution_is_found(name: str, old: str, new: str) -> None:
    notebook = read(CHAPTERS[name])
    (solution,) = solutions(notebook)
    assert any(old in block for block in solution.blocks), (
        f"{name}: the solution does not hold {old!r} any more: change the mistake"
    )
    wrong = solution._replace(blocks=[block.replace(old, new) for block in solution.blocks])
    assert not verdict(notebook, wrong).startswith("Right")


def test_a_definition_is_taken_with_what_it_needs() -> None:
    from nbformat.v4 import new_code_cell, new_notebook

    cells = [
        "import math\nimport missing",
        "half = math.pi / 2\n\n\ndef f():\n    return half",
        "others = [f for f in (1, 2)]\ntrain_for_an_hour()\nf = f",
    ]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    assert [ast.unparse(statement).splitlines()[0] for statement in needed(notebook, {"f"})] == [
        "import math",
        "half = math.pi / 2",
        "def f():",
        "f = f",
    ]
