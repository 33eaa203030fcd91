"""Right answers with one change each: another operator, a number that is off by one, or a call or a sign that is left out."""

import ast
import copy
import inspect
import random
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Pow: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


class Mutant(NamedTuple):
    source: str
    answer: Any


def _instead(node: ast.AST) -> list[ast.AST]:
    """What a node can be replaced by."""
    match node:
        case ast.Constant(value=bool() as value):
            return [ast.Constant(not value)]
        case ast.Constant(value=int() | float() as value):
            return [ast.Constant(value + 1), ast.Constant(value - 1)]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch" | "np" | "math")), args=[first, *_]):
            return [first]
        case ast.Call(func=ast.Attribute(value=value)):
            return [value]
    other = OPERATORS.get(type(node))
    return [other()] if other else []


class _Replaced(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else super().visit(node)


def _changed(tree: ast.Module) -> Iterator[ast.Module]:
    for number, node in enumerate(ast.walk(tree)):
        for new in _instead(node):
            changed = copy.deepcopy(tree)
            old = [*ast.walk(changed)][number]
            yield ast.fix_missing_locations(_Replaced(old, new).visit(changed))


def mutants(right: Any, count: int, seed: str) -> Iterator[Mutant]:
    """Some of the mutants of a right answer; of several that belong together, those of the first."""
    function, *rest = right if isinstance(right, tuple) else (right,)
    if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
        return
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list, definition.returns = [], None
    definition.args = _plain(definition.args)
    changed = [*_changed(tree)]
    for module in random.Random(seed).sample(changed, min(count, len(changed))):
        names = dict(vars(inspect.getmodule(function)))
        exec(compile(module, "<mutant>", "exec"), names)
        answer = names[function.__name__]
        yield Mutant(ast.unparse(module), (answer, *rest) if rest else answer)


def _plain(arguments: ast.arguments) -> ast.arguments:
    for argument in arguments.args:
        argument.annotation = None
    return arguments


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
