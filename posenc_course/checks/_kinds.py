"""What wrong results have in common, in a sentence, where no known mistake gives them.

Each sentence is a fact about the numbers, true of whatever mistake made them; it says where to look, not what was thought.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_Numbers = Callable[[Tensor], Tensor]

# What all numbers of all cases can have undergone, and what becomes of each.
_EACH: tuple[tuple[_Numbers, str], ...] = (
    (lambda w: -w, "Every number has the wrong sign."),
    (lambda w: w.abs(), "What should be negative comes out positive; the rest is right."),
    (lambda w: w.clamp(min=0), "What should be negative comes out as 0; the rest is right."),
    (lambda w: 1 - w, "Every number is what remains to 1, where the number itself is wanted."),
    (lambda w: 1 / w, "Every number is one over what it should be."),
    (lambda w: w.square(), "Every number is the square of what it should be."),
    (lambda w: w.abs().sqrt(), "Every number is the square root of what it should be."),
    (lambda w: w.exp(), "Every number is e to the power of what it should be."),
    (lambda w: w.abs().log(), "Every number is the logarithm of what it should be."),
    (lambda w: w.abs().log2(), "Every number is the logarithm, to base 2, of what it should be."),
    (lambda w: w.floor(), "Every number is rounded down to a whole one."),
    (lambda w: w.ceil(), "Every number is rounded up to a whole one."),
    *(
        (
            lambda w, places=places: w.round(decimals=places),
            f"Every number is rounded to {places} decimals." if places else "Every number is rounded to a whole one.",
        )
        for places in range(6)
    ),
)
# What each list of numbers can have undergone as a whole,
_LIST: tuple[tuple[_Numbers, str], ...] = (
    (lambda t: t.flip(0), "The numbers come in reverse order."),
    (lambda t: t.roll(1), "Everything stands one place too late, and the last comes first."),
    (lambda t: t.roll(-1), "Everything stands one place too early, and the first comes last."),
    (lambda t: t[:1].expand_as(t), "All numbers are the first one."),
    (lambda t: t.cumsum(0), "You add up, where each number stands for itself."),
    (lambda t: t / t.norm(), "The numbers are brought to length 1."),
    (lambda t: t / t.sum(), "The numbers are made to add up to 1."),
    (lambda t: t.softmax(dim=0), "The numbers have been through a softmax."),
)
# and each table.
_TABLE: tuple[tuple[_Numbers, str], ...] = (
    (lambda t: t.mT, "Rows and columns have changed places."),
    (lambda t: t.flip(0), "The first axis runs backwards; the rest is right."),
    (lambda t: t.flip(-1), "The last axis runs backwards; the rest is right."),
    (lambda t: t.flip(0, -1), "The first and the last axis run backwards; the rest is right."),
    (lambda t: t.roll(1, 0), "Along the first axis everything stands one place too late, and the last comes first."),
    (lambda t: t.roll(-1, 0), "Along the first axis everything stands one place too early, and the first comes last."),
    (lambda t: t.roll(1, -1), "Along the last axis everything stands one place too late, and the last comes first."),
    (lambda t: t.roll(-1, -1), "Along the last axis everything stands one place too early, and the first comes last."),
    (lambda t: t[:1].expand_as(t), "All rows are the first one."),
    (lambda t: t[-1:].expand_as(t), "All rows are the last one."),
    (lambda t: t[..., :1].expand_as(t), "Each row repeats its first number."),
    (lambda t: t.cumsum(0), "Down the first axis you add up, where each row stands for itself."),
    (lambda t: t.cumsum(-1), "Along the last axis you add up, where each number stands for itself."),
    (lambda t: t / t.norm(dim=-1, keepdim=True), "Every row is brought to length 1."),
    (lambda t: t / t.sum(dim=-1, keepdim=True), "Every row is made to add up to 1."),
    (lambda t: t.softmax(dim=-1), "Every row has been through a softmax."),
)
# Where all wrong numbers of tables can lie, by the index and the size along the first or last axis.
_PLACES: tuple[tuple[Callable[[Tensor, int], Tensor], str], ...] = (
    (lambda at, size: at == 0, "Only the first {} is wrong."),
    (lambda at, size: at == size - 1, "Only the last {} is wrong."),
    (lambda at, size: at % 2 == 0, "Every other {} is wrong, from the first on."),
    (lambda at, size: at % 2 == 1, "Every other {} is wrong, from the second on."),
    (lambda at, size: at > 0, "Only the first {} is right."),
    (lambda at, size: at < size - 1, "Only the last {} is right."),
)


def kind(wanted: Sequence[Any], said: Sequence[Any], wrong: Sequence[bool], names: Sequence[str], tolerance: float) -> str:
    """One or two sentences on results of which some are wrong, or none; `names` are those of the cases, if they have any."""
    return " ".join(filter(None, (_all_of(wanted, said, tolerance), _which(wrong, names))))


def _which(wrong: Sequence[bool], names: Sequence[str]) -> str:
    """Which cases go wrong, where some do not."""
    if all(wrong):
        return ""
    count = f"{len(wrong) - sum(wrong)} of {len(wrong)} cases come out right"
    missed = [name for name, is_wrong in zip(names, wrong, strict=True) if is_wrong]
    if not all(missed) or len(missed) > 3:
        return f"{count}."
    return f"{count}, and not: {'; '.join(missed)}."


def _all_of(wanted: Sequence[Any], said: Sequence[Any], tolerance: float) -> str:
    first = wanted[0]
    if isinstance(first, bool | str):
        return _words(wanted, said)
    if not isinstance(first, int | float | Tensor):
        return ""
    want, got = (torch.cat([torch.as_tensor(x).double().flatten() for x in results]) for results in (wanted, said))
    if not got.isfinite().all():
        return "Some of your numbers are infinite or NaN." if want.isfinite().all() else ""
    if len(want.unique()) < 3:
        return ""

    def same(a: Tensor, b: Tensor) -> bool:
        return torch.allclose(a, b, rtol=tolerance, atol=tolerance)

    if same(got, got[:1].expand_as(got)):
        return f"You return {got[0]:g} whatever you are given."
    for change, words in _EACH:
        if same(change(want), got):
            return words
    if isinstance(first, Tensor) and (words := _table(wanted, said, same)):
        return words
    return _proportion(want, got, same) or _near(wanted, want, got, tolerance)


def _words(wanted: Sequence[Any], said: Sequence[Any]) -> str:
    if len(wanted) > 2 and len(set(said)) == 1:
        return f"You say {said[0]!r} every time."
    if isinstance(wanted[0], bool):
        if all(a != b for a, b in zip(wanted, said, strict=True)):
            return "Every answer is the opposite of what it should be."
        missed = {b for a, b in zip(wanted, said, strict=True) if a != b}
        if len(missed) == 1:
            return (
                "You never say True wrongly, but you miss some."
                if missed == {False}
                else ("You never say False wrongly, but you say True too often.")
            )
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
            return "The rows are the right ones, in another order."
        if axes != {1} and all(same(_by_row(want.mT), _by_row(got.mT)) for want, got in tables):
            return "The columns are the right ones, in another order."
        return "The numbers are the right ones, in another order."
    wrong = [both for both in tables if not same(*both)]
    for axis, what in ((0, "number"),) if axes == {1} else ((0, "row"), (-1, "column")):
        for lies, words in _PLACES:
            if max(want.shape[axis] for want in wanted) > 2 and all(_only(lies, axis, *both, same) for both in wrong):
                return words.format(what)
    return ""


def _by_row(table: Tensor) -> Tensor:
    """The rows in an order that depends on nothing but what they hold."""
    rows = table.flatten(start_dim=1)
    for column in reversed(range(rows.shape[1])):
        rows = rows[rows[:, column].round(decimals=6).sort(stable=True).indices]
    return rows


def _only(
    lies: Callable[[Tensor, int], Tensor], axis: int, want: Tensor, got: Tensor, same: Callable[[Tensor, Tensor], bool]
) -> bool:
    """Whether something is wrong at each of some places along an axis, and at no other."""
    size = want.shape[axis]
    wrong = torch.tensor([not same(want.select(axis, at), got.select(axis, at)) for at in range(size)])
    return bool((wrong == lies(torch.arange(size), size)).all())


def _proportion(want: Tensor, got: Tensor, same: Callable[[Tensor, Tensor], bool]) -> str:
    factor = float((want @ got) / (want @ want))
    if same(factor * want, got):
        return f"Every number is {factor:.4g} times what it should be."
    more = float((got - want).mean())
    if same(want + more, got):
        return f"Every number is {abs(more):.4g} too {'large' if more > 0 else 'small'}."
    ratio = float(((want - want.mean()) @ (got - got.mean())) / (want - want.mean()).square().sum())
    rest = float(got.mean() - ratio * want.mean())
    if same(ratio * want + rest, got) and abs(ratio) > 1e-3:
        return f"Every number is {ratio:.4g} times what it should be, {'plus' if rest > 0 else 'minus'} {abs(rest):.4g}."
    return ""


def _near(wanted: Sequence[Any], want: Tensor, got: Tensor, tolerance: float) -> str:
    off = got - want
    if isinstance(wanted[0], int):  # which may number things, so that more says nothing
        if off.abs().max() > 1:
            return ""
        if (off >= 0).all() or (off <= 0).all():
            return f"Where you are wrong, your number is one too {'large' if off.max() > 0 else 'small'}."
        return "Where you are wrong, you are off by one, in either direction."
    relative = float((off.abs() / want.abs().clamp(min=tolerance)).max())
    if relative < 0.01:
        return (
            f"Nearly: the first {max(1, math.floor(-math.log10(relative)))} digits are right. Is something rounded, or "
            "computed in a coarse format?"
        )
    if (off >= -tolerance).all() or (off <= tolerance).all():
        return f"Where you are wrong, your numbers are too {'large' if off.sum() > 0 else 'small'}."
    return ""
