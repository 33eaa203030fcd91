"""What wrong results have in common, in a sentence or two, if no known mistake produces them.

Each sentence states a fact about the numbers that is true whatever mistake produced them. It says where to look, without
guessing what the student was thinking.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_Numbers = Callable[[Tensor], Tensor]
_Same = Callable[[Tensor, Tensor], bool]
Case = tuple[Any, ...]

# What can have happened to every number of all cases, one by one,
_EACH: tuple[tuple[_Numbers, str], ...] = (
    (lambda w: -w, "Every number has the wrong sign."),
    (lambda w: w.abs(), "The numbers that should be negative come out positive; the rest is right."),
    (lambda w: w.clamp(min=0), "The numbers that should be negative come out as 0; the rest is right."),
    (lambda w: 1 - w, "Every number is 1 minus what it should be."),
    (lambda w: 1 / w, "Every number is 1 divided by what it should be."),
    (lambda w: w.square(), "Every number is the square of what it should be."),
    (lambda w: w.exp(), "Every number is e to the power of what it should be."),
    (lambda w: w.abs().log(), "Every number is the logarithm of what it should be."),
)
# to every number and a number that belongs to its case: an argument, or the size of one,
_WITH: tuple[tuple[Callable[[Tensor, Tensor], Tensor], str], ...] = (
    (lambda w, q: q, "You return {} itself."),
    (lambda w, q: w + q, "Every number is too large by {}."),
    (lambda w, q: w * q, "Every number is {} times what it should be."),
    (lambda w, q: w / q, "Every number is what it should be, divided by {}."),
    (lambda w, q: w * q.sqrt(), "Every number is what it should be, times the square root of {}."),
    (lambda w, q: w / q.sqrt(), "Every number is what it should be, divided by the square root of {}."),
    (lambda w, q: w * q.square(), "Every number is what it should be, times the square of {}."),
)
_MOVED = "Along the {} axis, everything is one position too {}, and what should be {} comes {}."
# to each table, along its first axis (which is all that a list has),
_ROWS: tuple[tuple[_Numbers, str], ...] = (
    (lambda t: t.flip(0), "The first axis is in reverse order; the rest is right."),
    (lambda t: t.roll(1, 0), _MOVED.format("first", "late", "last", "first")),
    (lambda t: t.roll(-1, 0), _MOVED.format("first", "early", "first", "last")),
    (lambda t: t[:1].expand_as(t), "All your rows are equal to the first one."),
)
# and along its last axis.
_COLUMNS: tuple[tuple[_Numbers, str], ...] = (
    (lambda t: t.mT, "You have swapped rows and columns."),
    (lambda t: t.flip(-1), "The last axis is in reverse order; the rest is right."),
    (lambda t: t.roll(1, -1), _MOVED.format("last", "late", "last", "first")),
    (lambda t: t.roll(-1, -1), _MOVED.format("last", "early", "first", "last")),
)
# Where all wrong numbers of a table can be, by the index and the size along the first or last axis.
_PLACES: tuple[tuple[Callable[[Tensor, int], Tensor], str], ...] = (
    (lambda at, size: at == 0, "Only the first {} is wrong."),
    (lambda at, size: at == size - 1, "Only the last {} is wrong."),
    (lambda at, size: at > 0, "Only the first {} is right."),
    (lambda at, size: at < size - 1, "Only the last {} is right."),
)
# And what lies elsewhere, if all wrong numbers of a square table are on the diagonal, above it, or below it.
_SIDES: dict[str, _Numbers] = {"on": lambda t: t.tril(-1) | t.triu(1), "above": lambda t: t.tril(), "below": lambda t: t.triu()}
# What an answer may have used instead of an argument, which is a number, a table, or either.
_INSTEAD: tuple[tuple[Any, str, Callable[[Any], Any]], ...] = (
    (bool, "the opposite of `{}`", lambda value: not value),
    (int | float | Tensor, "`{} + 1`", lambda value: value + 1),
    (int | float | Tensor, "`{} - 1`", lambda value: value - 1),
    (int | float | Tensor, "`-{}`", lambda value: -value),
    (int | float | Tensor, "`2 * {}`", lambda value: 2 * value),
    (int | float | Tensor, "`{} / 2`", lambda value: value // 2 if isinstance(value, int) and value % 2 == 0 else value / 2),
    (int | float | Tensor, "`1 - {}`", lambda value: 1 - value),
    (int | float | Tensor, "`{} ** 2`", lambda value: value**2),
    (int | float | Tensor, "`abs({})`", abs),
    (int | Tensor, "zeros", lambda value: 0 * value),
    (Tensor, "only the first of `{}`", lambda table: table[:1].expand_as(table).contiguous()),
    (Tensor, "only the last of `{}`", lambda table: table[-1:].expand_as(table).contiguous()),
    (Tensor | list | tuple, "`{}` in reverse order", lambda table: table.flip(0) if isinstance(table, Tensor) else table[::-1]),
    (Tensor, "`range(len({}))`", lambda table: torch.arange(len(table)).to(table)),
)


def kind(
    wanted: Sequence[Any],
    said: Sequence[Any],
    cases: Sequence[tuple[str, Case]],
    tolerance: float,
    parameters: Sequence[str] = (),
    wrong: Sequence[bool] = (),
    right_with: Callable[[Callable[..., Case]], bool] = lambda change: False,
) -> str:
    """One or two sentences on results of which some or all are `wrong`, or nothing.

    A case consists of a name, which may be empty, and the arguments of its call, which are the values of the parameters.
    `right_with` says whether all results would be right if these arguments were changed by a function.
    """
    wrong = wrong or [True] * len(said)
    # The values of each parameter, unless a case isn't the arguments of one call.
    arguments = [case for _, case in cases if len(case) == len(parameters)]
    columns = dict(zip(parameters, zip(*arguments, strict=True), strict=True)) if len(arguments) == len(cases) else {}
    told = _of_all(wanted, said, columns, tolerance) or _instead(columns, right_with) or _near(wanted, said, wrong, tolerance)
    missed = [name for (name, _), is_wrong in zip(cases, wrong, strict=True) if is_wrong]
    if all(wrong):
        return told
    which = f", but not for: {'; '.join(missed)}" if all(missed) and len(missed) <= 3 else ""
    return f"{told} Your function is right in {len(wrong) - len(missed)} of {len(wrong)} cases{which}.".strip()


# ── what has happened to all results alike ───────────────────────────────────────────────────────────────────────────────


def _of_all(wanted: Sequence[Any], said: Sequence[Any], columns: dict[str, tuple[Any, ...]], tolerance: float) -> str:
    first = wanted[0]
    if isinstance(first, bool | str):
        return _words(wanted, said)
    if isinstance(first, tuple):
        parts = (
            _of_all([each[n] for each in wanted], [each[n] for each in said], columns, tolerance) for n in range(len(first))
        )
        return next((f"In part {n} of {len(first)}: {words}" for n, words in enumerate(parts, 1) if words), "")
    if not isinstance(first, int | float | Tensor):
        return ""
    want, got = _all_numbers(wanted), _all_numbers(said)
    if not got.isfinite().all():
        return "Some of your numbers are infinite or NaN." if want.isfinite().all() else ""

    def same(a: Tensor, b: Tensor) -> bool:
        return torch.allclose(a, b, rtol=tolerance, atol=tolerance)

    # A check can be stricter than this comparison, in which a wrong number could then look like any kind.
    if (len(want.unique()) < 3 and len(want) < 20) or same(want, got):
        return ""
    if same(got, got[:1].expand_as(got)):
        return f"You return {got[0]:g} whatever your function is given."
    return (
        next((words for change, words in _EACH if same(change(want), got)), "")
        or _proportion(want, got, same)
        or _with_a_number(wanted, want, got, columns, same)
        or ("" if isinstance(first, int) else _coarse(want, got, tolerance))
        or (_table(wanted, said, same) if isinstance(first, Tensor) else "")
    )


def _all_numbers(results: Sequence[Any]) -> Tensor:
    return torch.cat([torch.as_tensor(each, dtype=torch.float64).flatten() for each in results])


def _words(wanted: Sequence[Any], said: Sequence[Any]) -> str:
    if len(wanted) > 2 and len(set(said)) == 1:
        return f"You say {said[0]!r} every time."
    wrong = [(want, got) for want, got in zip(wanted, said, strict=True) if want != got]
    if isinstance(wanted[0], bool):
        return "Every answer is the opposite of what it should be." if len(wrong) == len(wanted) else ""
    never = sorted({want for want, _ in wrong} - {*said})
    if len(wrong) > 1 and len(never) == 1 and all(want in never for want, _ in wrong):
        return f"You never say {never[0]!r}."
    if len(wrong) > 1 and len({*wrong}) == 1:
        return "You say {1!r} where it should be {0!r}.".format(*wrong[0])
    return ""


def _proportion(want: Tensor, got: Tensor, same: _Same) -> str:
    factor = float((want @ got) / (want @ want))
    if same(factor * want, got) and f"{factor:.4g}" != "1":
        return f"Every number is {factor:.4g} times what it should be."
    more = float((got - want).mean())
    if same(want + more, got):
        return f"Every number is {abs(more):.4g} too {'large' if more > 0 else 'small'}."
    return ""


def _with_a_number(wanted: Sequence[Any], want: Tensor, got: Tensor, columns: dict[str, tuple[Any, ...]], same: _Same) -> str:
    """What has happened to every number and a number that belongs to its case."""
    sizes = [torch.as_tensor(each).numel() for each in wanted]
    for name, values in columns.items():
        if all(isinstance(value, int | float) for value in values) and len({*values}) > 2:
            given = torch.tensor(values, dtype=torch.float64).repeat_interleave(torch.tensor(sizes))
            for change, words in _WITH:
                if same(change(want, given), got):
                    return words.format(f"`{name}`")
    return ""


def _coarse(want: Tensor, got: Tensor, tolerance: float) -> str:
    relative = float(((got - want).abs() / want.abs().clamp(min=tolerance)).max())
    if relative >= 0.01:
        return ""
    return (
        f"Your numbers are nearly right: the first {max(1, math.floor(-math.log10(relative)))} digits agree. Do you round "
        "something, or compute in a coarse format?"
    )


def _table(wanted: Sequence[Tensor], said: Sequence[Tensor], same: _Same) -> str:
    tables = [(want.double(), got) for want, got in zip(wanted, said, strict=True)]
    axes = {want.ndim for want in wanted}
    if 0 in axes or (1 in axes and len(axes) > 1):
        return ""
    for change, words in _ROWS if axes == {1} else (*_COLUMNS, *_ROWS):
        if all(change(want).shape == got.shape and same(change(want), got) for want, got in tables):
            return words
    if all(same(want.flatten().sort().values, got.flatten().sort().values) for want, got in tables):
        return "The numbers are right, but they are in a different order."
    wrong = [both for both in tables if not same(*both)]
    if axes == {2} and all(want.shape[0] == want.shape[1] for want, _ in wrong):
        off = [~torch.isclose(want, got, rtol=1e-4, atol=1e-4) for want, got in wrong]
        for where, elsewhere in _SIDES.items():
            if not any(elsewhere(each).any() for each in off):
                return f"Only numbers {where} the diagonal are wrong."
    for axis, what in ((0, "number"),) if axes == {1} else ((0, "row"), (-1, "column")):
        for lies, words in _PLACES:
            if max(want.shape[axis] for want in wanted) > 2 and all(_only(lies, axis, *both, same) for both in wrong):
                return words.format(what)
    return ""


def _only(lies: Callable[[Tensor, int], Tensor], axis: int, want: Tensor, got: Tensor, same: _Same) -> bool:
    """Whether something is wrong at each index along an axis that `lies` picks, and at no other index."""
    size = want.shape[axis]
    wrong = torch.tensor([not same(want.select(axis, at), got.select(axis, at)) for at in range(size)])
    return bool((wrong == lies(torch.arange(size), size)).all())


# ── which other arguments the results would belong to ────────────────────────────────────────────────────────────────────


def _instead(columns: dict[str, tuple[Any, ...]], right_with: Callable[[Callable[..., Case]], bool]) -> str:
    """What the answer uses instead of an argument, or nothing."""
    for (one, a), (other, b) in itertools.combinations(enumerate(columns), 2):
        if right_with(lambda *given, one=one, other=other: _swapped(given, one, other)):
            return f"Your results are those for `{a}` and `{b}` swapped."
    for place, (name, values) in enumerate(columns.items()):
        always = sorted({value for value in values if isinstance(value, int | float)})
        constant = [(object, f"{value!r} in every case", lambda _, value=value: value) for value in always]
        for fits, words, change in (*_INSTEAD, *constant):

            def changed(*given: Any, place: int = place, fits: Any = fits, change: Callable[[Any], Any] = change) -> Case:
                if not isinstance(given[place], fits) or (isinstance(given[place], bool) and fits not in (bool, object)):
                    raise TypeError
                return (*given[:place], change(given[place]), *given[place + 1 :])

            if right_with(changed):
                return f"Your results are those for {words.format(name)} instead of `{name}`."
    return ""


def _swapped(given: Case, one: int, other: int) -> Case:
    a, b = given[one], given[other]
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        alike = a.shape == b.shape and a.dtype == b.dtype
    else:
        alike = all(isinstance(each, int | float) and not isinstance(each, bool) and abs(each) < 10**5 for each in (a, b))
    if not alike:
        raise TypeError
    return tuple(b if at == one else a if at == other else each for at, each in enumerate(given))


# ── where, and in which direction, the results are wrong ─────────────────────────────────────────────────────────────────


def _near(wanted: Sequence[Any], said: Sequence[Any], wrong: Sequence[bool], tolerance: float) -> str:
    """In which direction the wrong results differ from the right ones, if it's the same for all of them."""
    first = wanted[0]
    if not isinstance(first, int | float | Tensor):
        return ""
    want, got = _all_numbers(wanted), _all_numbers(said)
    if not isinstance(first, Tensor):  # one number for each case
        want, got, tolerance = want[torch.tensor(wrong)], got[torch.tensor(wrong)], 0.0
    off = got - want
    if off.abs().max() <= tolerance or not ((off >= -tolerance).all() or (off <= tolerance).all()):
        return ""
    more = off.sum() > 0
    if {*want.tolist(), *got.tolist()} <= {0.0, 1.0}:
        yes, no = ("True", "False") if more else ("False", "True")
        return f"You never return {no} wrongly, but you sometimes return {yes} wrongly."
    if isinstance(first, int):  # whole numbers may be labels, so "larger" would mean little
        return f"Where you are wrong, your number is one too {'large' if more else 'small'}." if off.abs().max() == 1 else ""
    return f"Where you are wrong, your numbers are too {'large' if more else 'small'}."
