"""What wrong results have in common, in a sentence or two, if no known mistake produces them.

Each sentence states a fact about the numbers that is true whatever mistake produced them. It says where to look, without
guessing what the student was thinking.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_Numbers = Callable[[Tensor], Tensor]

# What can have happened to every number of all cases, one by one,
_EACH: tuple[tuple[_Numbers, str], ...] = (
    (lambda w: -w, "Every number has the wrong sign."),
    (lambda w: w.abs(), "The numbers that should be negative come out positive; the rest is right."),
    (lambda w: w.clamp(min=0), "The numbers that should be negative come out as 0; the rest is right."),
    (lambda w: 1 - w, "Every number is 1 minus what it should be."),
    (lambda w: 1 / w, "Every number is 1 divided by what it should be."),
    (lambda w: w.square(), "Every number is the square of what it should be."),
    (lambda w: w.abs().sqrt(), "Every number is the square root of what it should be."),
    (lambda w: w.exp(), "Every number is e to the power of what it should be."),
    (lambda w: w.abs().log(), "Every number is the logarithm of what it should be."),
    (lambda w: w.abs().log2(), "Every number is the base-2 logarithm of what it should be."),
    (lambda w: w.floor(), "Every number is rounded down to a whole number."),
    (lambda w: w.ceil(), "Every number is rounded up to a whole number."),
    (lambda w: w.trunc(), "Every number has lost its fraction."),
    *(
        (
            lambda w, places=places: w.round(decimals=places),
            f"Every number is rounded to {places} decimals." if places else "Every number is rounded to a whole number.",
        )
        for places in range(6)
    ),
)
# to each list of numbers as a whole,
_LIST: tuple[tuple[_Numbers, str], ...] = (
    (lambda t: t.flip(0), "The numbers are in reverse order."),
    (lambda t: t.roll(1), "Everything is one position too late, and what should be last comes first."),
    (lambda t: t.roll(-1), "Everything is one position too early, and what should be first comes last."),
    (lambda t: t[:1].expand_as(t), "All your numbers are equal to the first one."),
    (lambda t: t.cumsum(0), "You return running sums of the numbers instead of the numbers themselves."),
    (lambda t: t / t.norm(), "The numbers are scaled so that the whole list has length 1."),
    (lambda t: t / t.sum(), "The numbers are scaled so that they add up to 1."),
    (lambda t: t.softmax(dim=0), "The numbers have gone through a softmax."),
)
# and to each table.
_TABLE: tuple[tuple[_Numbers, str], ...] = (
    (lambda t: t.mT, "You have swapped rows and columns."),
    (lambda t: t.flip(0), "The first axis is in reverse order; the rest is right."),
    (lambda t: t.flip(-1), "The last axis is in reverse order; the rest is right."),
    (lambda t: t.flip(0, -1), "The first and the last axis are in reverse order; the rest is right."),
    (lambda t: t.roll(1, 0), "Along the first axis, everything is one position too late, and what should be last comes first."),
    (
        lambda t: t.roll(-1, 0),
        "Along the first axis, everything is one position too early, and what should be first comes last.",
    ),
    (lambda t: t.roll(1, -1), "Along the last axis, everything is one position too late, and what should be last comes first."),
    (
        lambda t: t.roll(-1, -1),
        "Along the last axis, everything is one position too early, and what should be first comes last.",
    ),
    (lambda t: t[:1].expand_as(t), "All your rows are equal to the first one."),
    (lambda t: t[-1:].expand_as(t), "All your rows are equal to the last one."),
    (lambda t: t[..., :1].expand_as(t), "Each row repeats its first number."),
    (lambda t: t.cumsum(0), "You return running sums along the first axis instead of the rows themselves."),
    (lambda t: t.cumsum(-1), "You return running sums along the last axis instead of the numbers themselves."),
    (lambda t: t / t.norm(dim=-1, keepdim=True), "Every row is scaled to length 1."),
    (lambda t: t / t.sum(dim=-1, keepdim=True), "Every row is scaled so that its numbers add up to 1."),
    (lambda t: t.softmax(dim=-1), "Every row has gone through a softmax."),
)
# Where all wrong numbers of a table can be, by the index and the size along the first or last axis.
_PLACES: tuple[tuple[Callable[[Tensor, int], Tensor], str], ...] = (
    (lambda at, size: at == 0, "Only the first {} is wrong."),
    (lambda at, size: at == size - 1, "Only the last {} is wrong."),
    (lambda at, size: at % 2 == 0, "Every second {} is wrong, starting with the first."),
    (lambda at, size: at % 2 == 1, "Every second {} is wrong, starting with the second."),
    (lambda at, size: at > 0, "Only the first {} is right."),
    (lambda at, size: at < size - 1, "Only the last {} is right."),
)


def kind(
    wanted: Sequence[Any],
    said: Sequence[Any],
    wrong: Sequence[bool],
    cases: Sequence[tuple[str, tuple[Any, ...]]],
    tolerance: float,
    parameters: Sequence[str] = (),
    otherwise: Callable[[], str] = str,
) -> str:
    """One or two sentences on results of which some or all are wrong, or nothing.

    A case consists of a name, which may be empty, and the arguments of its call, which are the values of the parameters. If
    nothing has happened to all results alike, `otherwise` is asked.
    """
    which = _which(wrong, cases, parameters)
    if said_of_all := _all_of(wanted, said, tolerance):
        return f"{said_of_all} {which}".strip()
    return otherwise() or f"{_near(wanted, said, wrong, tolerance)} {which}".strip()


def _which(wrong: Sequence[bool], cases: Sequence[tuple[str, tuple[Any, ...]]], parameters: Sequence[str]) -> str:
    """Which cases go wrong, unless all of them do."""
    if all(wrong):
        return ""
    count = f"Your function is right in {len(wrong) - sum(wrong)} of {len(wrong)} cases"
    missed = [name for (name, _), is_wrong in zip(cases, wrong, strict=True) if is_wrong]
    if all(missed) and len(missed) <= 3:
        return f"{count}, but not for: {'; '.join(missed)}."
    whole = all(len(case) == len(parameters) for _, case in cases)  # a case needn't be the arguments of one call
    columns = zip(parameters, zip(*(case for _, case in cases), strict=True), strict=True) if whole else ()
    parted = [words for name, values in columns if (words := _parted(name, values, wrong))]
    return f"{count}: {parted[0]}." if len(parted) == 1 else f"{count}."


def _parted(name: str, values: Sequence[Any], wrong: Sequence[bool]) -> str:
    """For which values of a parameter the results are right, if its value decides."""
    right, missed = ([value for value, miss in zip(values, wrong, strict=True) if miss == which] for which in (False, True))
    if min(len(right), len(missed)) < 2 or not all(isinstance(value, bool | int | float | str) for value in values):
        return ""
    if {*right} & {*missed}:
        return ""
    if len({*right}) == 1:
        which = f"is {_value(right[0])}"
    elif len({*missed}) == 1:
        which = f"isn't {_value(missed[0])}"
    elif isinstance(values[0], str):
        return ""
    elif max(right) < min(missed):
        which = f"is at most {_value(max(right))}"
    elif min(right) > max(missed):
        which = f"is at least {_value(min(right))}"
    else:
        return ""
    return f"those in which `{name}` {which}"


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _all_of(wanted: Sequence[Any], said: Sequence[Any], tolerance: float) -> str:
    first = wanted[0]
    if isinstance(first, bool | str):
        return _words(wanted, said)
    if isinstance(first, tuple):
        parts = (_all_of([each[n] for each in wanted], [each[n] for each in said], tolerance) for n in range(len(first)))
        return next((f"In part {n} of {len(first)}: {words}" for n, words in enumerate(parts, 1) if words), "")
    if not isinstance(first, int | float | Tensor):
        return ""
    want, got = (torch.cat([_flat(x) for x in results]) for results in (wanted, said))
    if not got.isfinite().all():
        return "Some of your numbers are infinite or NaN." if want.isfinite().all() else ""
    if len(want.unique()) < 3 and len(want) < 20:
        return ""

    def same(a: Tensor, b: Tensor) -> bool:
        return torch.allclose(a, b, rtol=tolerance, atol=tolerance)

    if same(want, got):  # the check is stricter than this comparison, in which a wrong number could look like any kind
        return ""
    if same(got, got[:1].expand_as(got)):
        return f"You return {got[0]:g} whatever your function is given."
    for change, words in _EACH:
        if same(change(want), got):
            return words
    return (
        _proportion(want, got, same)
        or ("" if isinstance(first, int) else _coarse(want, got, tolerance))
        or (_table(wanted, said, same) if isinstance(first, Tensor) else "")
    )


def _flat(numbers: int | float | Tensor) -> Tensor:
    return torch.as_tensor(numbers, dtype=torch.float64).flatten()


def _words(wanted: Sequence[Any], said: Sequence[Any]) -> str:
    if len(wanted) > 2 and len(set(said)) == 1:
        return f"You say {said[0]!r} every time."
    if isinstance(wanted[0], bool) and all(a != b for a, b in zip(wanted, said, strict=True)):
        return "Every answer is the opposite of what it should be."
    return ""


def _table(wanted: Sequence[Tensor], said: Sequence[Tensor], same: Callable[[Tensor, Tensor], bool]) -> str:
    tables = [(want.double(), got) for want, got in zip(wanted, said, strict=True)]
    axes = {want.ndim for want in wanted}
    if 0 in axes or (1 in axes and len(axes) > 1):
        return ""
    for change, words in _LIST if axes == {1} else _TABLE:
        if all(change(want).shape == got.shape and same(change(want), got) for want, got in tables):
            return words
    if all(same(want.flatten().sort().values, got.flatten().sort().values) for want, got in tables):
        if axes != {1} and all(same(_by_row(want), _by_row(got)) for want, got in tables):
            return "The rows are right, but they are in a different order."
        if axes != {1} and all(same(_by_row(want.mT), _by_row(got.mT)) for want, got in tables):
            return "The columns are right, but they are in a different order."
        return "The numbers are right, but they are in a different order."
    wrong = [both for both in tables if not same(*both)]
    for axis, what in ((0, "number"),) if axes == {1} else ((0, "row"), (-1, "column")):
        for lies, words in _PLACES:
            if max(want.shape[axis] for want in wanted) > 2 and all(_only(lies, axis, *both, same) for both in wrong):
                return words.format(what)
    if axes == {2} and all(want.shape[0] == want.shape[1] for want, _ in wrong):
        off = [~torch.isclose(want, got, rtol=1e-4, atol=1e-4) for want, got in wrong]
        for diagonal, where in ((0, "on"), (1, "above")):
            if not any(bool((each.tril(diagonal - 1) | each.triu(1) * (diagonal == 0)).any()) for each in off):
                return f"Only numbers {where} the diagonal are wrong."
    return ""


def _by_row(table: Tensor) -> Tensor:
    """The rows in an order that depends only on their contents."""
    rows = table.flatten(start_dim=1)
    for column in reversed(range(rows.shape[1])):
        rows = rows[rows[:, column].round(decimals=6).sort(stable=True).indices]
    return rows


def _only(
    lies: Callable[[Tensor, int], Tensor], axis: int, want: Tensor, got: Tensor, same: Callable[[Tensor, Tensor], bool]
) -> bool:
    """Whether something is wrong at each index along an axis that `lies` picks, and at no other index."""
    size = want.shape[axis]
    wrong = torch.tensor([not same(want.select(axis, at), got.select(axis, at)) for at in range(size)])
    return bool((wrong == lies(torch.arange(size), size)).all())


def _proportion(want: Tensor, got: Tensor, same: Callable[[Tensor, Tensor], bool]) -> str:
    factor = float((want @ got) / (want @ want))
    if same(factor * want, got) and f"{factor:.4g}" != "1":
        return f"Every number is {factor:.4g} times what it should be."
    more = float((got - want).mean())
    if same(want + more, got):
        return f"Every number is {abs(more):.4g} too {'large' if more > 0 else 'small'}."
    ratio = float(((want - want.mean()) @ (got - got.mean())) / (want - want.mean()).square().sum())
    rest = float(got.mean() - ratio * want.mean())
    if same(ratio * want + rest, got) and abs(ratio) > 1e-3:
        return f"Every number is {ratio:.4g} times what it should be, {'plus' if rest > 0 else 'minus'} {abs(rest):.4g}."
    return ""


def _coarse(want: Tensor, got: Tensor, tolerance: float) -> str:
    relative = float(((got - want).abs() / want.abs().clamp(min=tolerance)).max())
    if relative >= 0.01:
        return ""
    return (
        f"Your numbers are nearly right: the first {max(1, math.floor(-math.log10(relative)))} digits agree. Do you round "
        "something, or compute in a coarse format?"
    )


def _near(wanted: Sequence[Any], said: Sequence[Any], wrong: Sequence[bool], tolerance: float) -> str:
    """In which direction the wrong results differ from the right ones, if it's the same for all of them."""
    first = wanted[0]
    if isinstance(first, bool):
        missed = {b for a, b in zip(wanted, said, strict=True) if a != b}
        always = "You never return {} wrongly, but you sometimes return {} wrongly."
        return always.format(*({True, False} - missed), *missed) if len(missed) == 1 else ""
    if not isinstance(first, int | float | Tensor):
        return ""
    want, got = (torch.cat([_flat(x) for x in results]) for results in (wanted, said))
    off = got - want
    if torch.allclose(want, got, rtol=tolerance, atol=tolerance):
        return ""
    if isinstance(first, int):  # whole numbers may be labels, so "larger" would mean little
        if off.abs().max() > 1:
            return ""
        if (off >= 0).all() or (off <= 0).all():
            return f"Where you are wrong, your number is one too {'large' if off.max() > 0 else 'small'}."
        return "Where you are wrong, you are off by one, sometimes upwards and sometimes downwards."
    if not isinstance(first, Tensor):  # one number for each case
        off, tolerance = off[torch.tensor(wrong)], 0.0
    if (off >= -tolerance).all() or (off <= tolerance).all():
        return f"Where you are wrong, your numbers are too {'large' if off.sum() > 0 else 'small'}."
    return ""
