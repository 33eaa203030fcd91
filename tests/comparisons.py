"""Comparisons in cells that a last digit could decide: processors round differently, so computed floats are hardly ever equal.

Only the syntax is read. So which numbers are whole is a guess: those that `len`, `argmax`, rounding and the like return, what
is computed from whole numbers without a division, and names that the notebook gives to nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

Bound = dict[str, list[ast.expr | None]]  # all that a notebook's names are given to; None if it isn't known

WHOLE = {
    *"len range int bool ord count index numel shape ndim dtype long int64 randint arange eye binary t5_buckets".split(),
    *"argmax argmin argsort nonzero flatnonzero count_nonzero searchsorted bincount".split(),
    *"round floor ceil trunc any all isin isclose allclose".split(),
}
# Of whole numbers, these make whole numbers.
PASSED_ON = {
    *"abs min max amin amax clamp sum prod cumsum cumprod diff sort sorted unique set tuple list tolist item".split(),
    *"numpy astype to float double half bfloat16 clone flatten reshape view expand repeat roll flip T".split(),
    *"cat stack full_like zeros_like".split(),
}
MAGNITUDES = {"abs", "norm", "std", "var", "square", "distance", "cdist", "pdist"}  # > 0 asks whether they are 0


def suspects(cells: list[str]) -> Iterator[str]:
    """The comparisons in a notebook's cells that could hang on a last digit."""
    trees = [ast.parse(cell) for cell in cells]
    bound: Bound = {}
    for tree in trees:
        for node in ast.walk(tree):
            _bind_all(bound, node)
    for tree in trees:
        yield from (ast.unparse(node) for node in ast.walk(tree) if _hangs_on_a_digit(node, bound))


def _hangs_on_a_digit(node: ast.AST, bound: Bound) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(_unsteady(left, op, right, bound) for left, op, right in zip(sides, node.ops, sides[1:], strict=False))
    if isinstance(node, ast.Set):
        return any(isinstance(each, ast.Starred) and _listed(each.value, bound) for each in node.elts)
    if not isinstance(node, ast.Call):
        return False
    name, of = _name(node.func), _arguments(node)
    if name in {"equal", "array_equal", "assert_array_equal", "unique", "nonzero", "flatnonzero", "count_nonzero"}:
        return not all(_whole(each, bound) for each in of[:2])
    return name == "set" and any(_listed(each, bound) for each in of)


def _unsteady(left: ast.expr, op: ast.cmpop, right: ast.expr, bound: Bound) -> bool:
    if isinstance(op, ast.Lt | ast.LtE):
        left, right = right, left
    elif not isinstance(op, ast.Gt | ast.Eq | ast.NotEq):
        return False
    equality, sides = isinstance(op, ast.Eq | ast.NotEq), (left, right)
    if any(isinstance(each, ast.Constant) and not isinstance(each.value, int | float) for each in sides):
        return False
    if any(isinstance(each, ast.Constant) and each.value == 0 for each in sides):
        other = left if isinstance(right, ast.Constant) else right
        return not _whole(other, bound) and (equality or (other is left and _magnitude(other, bound)))
    parts = [part for each in sides for part in ast.walk(each)]
    computed = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div | ast.Pow) for part in parts)
    written = any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in sides)
    return equality and (written or (computed and not all(_whole(each, bound) for each in sides)))


def _whole(node: ast.AST | None, bound: Bound, depth: int = 0) -> bool:
    def whole(*nodes: ast.AST | None) -> bool:
        return depth < 12 and all(_whole(each, bound, depth + 1) for each in nodes)

    match node:
        case ast.Constant():
            return not isinstance(node.value, float)
        case ast.Compare() | ast.BoolOp() | ast.JoinedStr():
            return True
        case ast.Name():
            return node.id in bound and whole(*bound[node.id])
        case ast.BinOp(op=ast.Mod() | ast.FloorDiv()):
            return whole(node.left) or whole(node.right)
        case ast.BinOp():
            return not isinstance(node.op, ast.Div) and whole(node.left, node.right)
        case ast.Tuple() | ast.List() | ast.Set():
            return whole(*node.elts)
        case ast.UnaryOp():
            return whole(node.operand)
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return whole(node.elt)
        case ast.IfExp():
            return whole(node.body, node.orelse)
        case ast.Subscript() | ast.Starred():
            return whole(node.value)
        case ast.Attribute():
            return node.attr in WHOLE or whole(node.value)
        case ast.Call():
            return _name(node.func) in WHOLE or (_name(node.func) in PASSED_ON and whole(*_arguments(node)[:1]))
    return False


def _magnitude(node: ast.AST, bound: Bound, depth: int = 0) -> bool:
    found = [each for each in ast.walk(node) if isinstance(each, ast.Name | ast.Call)]
    named = [value for each in found if isinstance(each, ast.Name) for value in bound.get(each.id, []) if value]
    calls = {_name(each.func) for each in found if isinstance(each, ast.Call)}
    return bool(calls & MAGNITUDES) or (depth < 6 and any(_magnitude(value, bound, depth + 1) for value in named))


def _listed(node: ast.expr, bound: Bound) -> bool:
    """Whether these are the numbers of a tensor or an array."""
    return ".tolist()" in ast.unparse(node) and not _whole(node, bound)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _arguments(call: ast.Call) -> list[ast.expr]:
    """With the object first if a method is called."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return [*([owner] if owner and _name(owner) not in ("torch", "np") else []), *call.args]


def _bind_all(bound: Bound, node: Any) -> None:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            _bind(bound, target, node.value)
    elif isinstance(node, ast.AugAssign | ast.NamedExpr):
        _bind(bound, node.target, node.value)
    elif isinstance(node, ast.For | ast.comprehension):
        _bind_each(bound, node.target, node.iter)
    elif isinstance(node, ast.arg):
        bound.setdefault(node.arg, []).append(None)


def _bind(bound: Bound, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Name):
        bound.setdefault(target.id, []).append(value)
    elif isinstance(target, ast.Tuple):
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for each, given in zip(target.elts, value.elts if same else [value] * len(target.elts), strict=True):  # type: ignore[attr-defined]
            _bind(bound, each, given)


def _bind_each(bound: Bound, target: ast.expr, values: ast.expr) -> None:
    """Bind the names of a loop."""
    name = _name(values.func) if isinstance(values, ast.Call) else ""
    if name == "enumerate" and isinstance(target, ast.Tuple):
        _bind(bound, target.elts[0], ast.Constant(0))
        _bind_each(bound, target.elts[1], values.args[0])  # type: ignore[attr-defined]
    elif name == "zip" and isinstance(target, ast.Tuple):
        for each, given in zip(target.elts, values.args, strict=False):  # type: ignore[attr-defined]
            _bind_each(bound, each, given)
    else:
        for value in values.elts if isinstance(values, ast.Tuple | ast.List) else [values]:
            _bind(bound, target, value)
