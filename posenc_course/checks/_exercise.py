"""An exercise as a value, and the engine that gives a verdict on each answer to it.

An answer is called with the exercise's cases. If it is wrong, the verdict is the hint of the first known mistake that gives the
same results in all cases. If there is none, the verdict says what the results have in common (`_kinds`), and shows one case.
"""

import functools
import inspect
import math
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._kinds import kind
from posenc_course.checks._sandbox import UNTRIED, Wrong, in_a_line, named, run


class NotYet(AssertionError):
    """Raised for a grader if a verdict earns nothing; Jupyter shows it in one line."""

    def _render_traceback_(self) -> list[str]:
        return [f"Not yet: {self}"]


PASSES = "Right: "  # how a verdict begins that earns points


def grade(verdict: str) -> None:
    """Print a verdict, and raise `NotYet` unless it begins with "Right: ". Graded cells call this."""
    print(verdict)
    if not verdict.startswith(PASSES):
        raise NotYet("this exercise doesn't earn any points yet. The line above says why.")


Answer = Callable[..., Any]
Case = tuple[Any, ...]


# The answer as `Exercise.ask` calls it: call(*arguments, wanted=…, shown="", within=None). Its result is converted to the form
# of `wanted`; if that fails, `Wrong` is raised. `shown` is how the call appears in a verdict; by default, it appears with its
# arguments. The answer runs `within` a context.
Call = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """The cases that are tried, the right results, and the known mistakes.

    Args:
        cases: the arguments of each call. Each case has a name that says what is special about it ("a single token"); if
            nothing is, the cases form a list. A seed may change their numbers, but not which answers they tell apart. If one
            is a function, it mustn't call `right`: a check refuses an answer that does.
        right: gives the right result of a case. Its type says what an answer must return: a tensor (of any dtype; NumPy arrays
            and lists are fine, too), a float, an int, a bool, a str, or a tuple of these. A list of functions stands for
            several right answers, one of which an answer must agree with in all cases. A tuple of functions is one answer in
            several parts.
        mistakes: a function like `right` and the hint for this mistake, under a short name. If two mistakes give the same
            results, they must share one hint, which names both.
        praise: the text after "Right: ", or a function of the results that returns this text.
        tolerance: how much numbers may differ, absolutely or relatively. Whole numbers may not differ.
        ask: ask(call, *case) -> the result for a case, if that takes more than one call. Known mistakes are called in the same
            way.
        same: same(known, said) -> whether two results are the same answer, if comparing numbers isn't enough.
        fault: fault(said) -> what is wrong with the results of all cases, or None. Used if a property decides instead of
            `right`. If the fault isn't in the last case, it returns (what is wrong, the arguments of that case).
    """

    cases: Mapping[str, Case] | Sequence[Case]
    right: Any
    mistakes: Mapping[str, tuple[Any, str]]
    praise: str | Callable[[Sequence[Any]], str]
    tolerance: float = 1e-4
    ask: Callable[..., Any] | None = None
    same: Callable[[Any, Any], bool] | None = None
    fault: Callable[[Sequence[Any]], str | tuple[str, Case] | None] | None = None

    @functools.cached_property
    def named_cases(self) -> list[tuple[str, Case]]:
        return list(self.cases.items()) if isinstance(self.cases, Mapping) else [("", case) for case in self.cases]

    @property
    def rights(self) -> list[Any]:
        return self.right if isinstance(self.right, list) else [self.right]

    def said(self, calls: Callable[[str], Sequence[Call]]) -> Iterator[Any]:
        """The results of the answers for one case after another; `calls` makes the calls for a case with this name."""
        return (self._asked(calls, number) for number in range(len(self.cases)))

    def known(self, functions: Answer | tuple[Answer, ...]) -> Iterator[Any]:
        """The results of a right function or a known mistake for one case after another. Each case is computed only once."""
        for number in range(len(self.cases)):
            if (functions, number) not in self._known:
                self._known[functions, number] = self._asked(_plain(functions), number)
            yield self._known[functions, number]

    def _asked(self, calls: Callable[[str], Sequence[Call]], number: int) -> Any:
        name, case = self.named_cases[number]
        return self.ask(*calls(name), *case) if self.ask else calls(name)[0](*case, wanted=self._wanted[number])

    @functools.cached_property
    def _wanted(self) -> list[Any]:
        return [self.rights[0](*case) for _, case in self.named_cases]

    @functools.cached_property
    def _known(self) -> dict[Any, Any]:
        return {}

    def agree(self, known: Iterable[Any], said: Iterable[Any]) -> bool:
        same = self.same or (lambda a, b: equal(a, b, self.tolerance))
        return all(same(a, b) for a, b in zip(known, said, strict=True))


class Check:
    """An exercise for every seed. Called with an answer, it returns the verdict; a right answer's begins with "Right: "."""

    def __init__(self, make: Callable[..., Exercise], instead_of: Iterable[Answer], names: Sequence[str]) -> None:
        self._make = make
        self.draws = bool(inspect.signature(make).parameters)
        self._names = names or (make.__name__,)
        self._answers = {inspect.unwrap(f).__code__: f"{f.__module__}.{f.__name__}" for f in instead_of}
        self.__name__, self.__doc__, self.__module__ = make.__name__, make.__doc__, make.__module__
        signature = re.match(r"\w+\((.*?)\)", make.__doc__ or "")
        self._parameters = signature[1].split(", ") if signature else []

    def exercise(self, seed: int = 0) -> Exercise:
        """The exercise as it is with this seed."""
        return self._make(seed) if self.draws else self._make()

    def __call__(self, *answers: Any, seed: int | None = None) -> str:
        seed = _new_seed() if seed is None else seed
        text = self.verdict(self.exercise(seed), *answers)
        return f"{text} (seed {seed})" if self.draws and not text.startswith(UNTRIED) else text

    def verdict(self, exercise: Exercise, *answers: Any) -> str:
        """The verdict on an answer to the exercise as it is with one seed."""
        threads = torch.get_num_threads()
        # More threads are slower on small tensors, and each thread that calls an answer would add its own.
        torch.set_num_threads(1)
        try:
            said = list(exercise.said(self._guarded(exercise, answers)))
            return self._judge(exercise, said)
        except Wrong as wrong:
            # An answer can raise this, too, with any words.
            return f"Your function raised an error that says {str(wrong)!r}." if str(wrong).startswith(PASSES) else str(wrong)
        except Exception as error:  # whatever the answer contains, the student should never see our internals
            return f"This check can't read your answer, because it led to {in_a_line(error)}."
        finally:
            torch.set_num_threads(threads)

    def _judge(self, exercise: Exercise, said: Sequence[Any]) -> str:
        fault = exercise.fault(said) if exercise.fault else self._difference(exercise, said)
        if fault is None:
            return f"Right: {exercise.praise if isinstance(exercise.praise, str) else exercise.praise(said)}"
        for mistake, hint in exercise.mistakes.values():
            with suppress(Wrong):  # a mistake whose result has a different form from this answer's
                if exercise.agree(exercise.known(mistake), said):
                    return hint
        if isinstance(fault, str):
            return fault
        text, _LAST[:] = fault
        return text

    def _guarded(self, exercise: Exercise, answers: Sequence[Any]) -> Callable[[str], list[Call]]:
        """Makes the calls of a case: to each of a student's answers, on copies of the arguments."""
        parts = [part for right in exercise.rights for part in (right if isinstance(right, tuple) else (right,))]
        rights = [inspect.unwrap(part) for part in parts]
        refused = {right.__code__: "right answer" for right in rights if inspect.isfunction(right)} | self._answers
        returned = set()

        def guarded(answer: Any, name: str, case: str) -> Call:
            def call(*arguments: Any, wanted: Any, shown: str = "", within: AbstractContextManager[Any] | None = None) -> Any:
                shown = shown or called(name, arguments, case, self._parameters)
                _LAST[:] = arguments
                result = run(answer, *arguments, call=shown, answers=refused, within=within)
                if result is None:
                    which = shown if name in returned else f"{UNTRIED}: {name}"
                    raise Wrong(f"{which} returned None. Is a `return` missing?")
                returned.add(name)
                return read(result, wanted, call=shown)

            return call

        return lambda case: [guarded(*both, case) for both in zip(answers, self._names, strict=True)]

    def _difference(self, exercise: Exercise, said: Sequence[Any]) -> tuple[str, Case] | None:
        """What the wrong results have in common, and the first of them; None if no result is wrong."""
        rights = [list(exercise.known(right)) for right in exercise.rights]
        if any(exercise.agree(known, said) for known in rights):
            return None
        wanted = rights[0]
        wrong = [not exercise.agree([known], [it]) for known, it in zip(wanted, said, strict=True)]
        first = wrong.index(True)
        name, case = exercise.named_cases[first]

        def right_with(change: Callable[..., Case]) -> bool:
            with suppress(Exception):  # few arguments can be changed in each way
                right = exercise.rights[0]
                return exercise.agree(exercise.said(_plain(lambda *given: right(*change(*given)))), said)
            return False

        common = kind(
            wanted, said, exercise.named_cases, exercise.tolerance, self._parameters, wrong=wrong, right_with=right_with
        )
        call = called(self._names[0], case, name, self._parameters)
        example = f"{call} {difference(said[first], wanted[first], exercise.tolerance)}"
        told = "" if all(map(_printed, case)) else "`checks.last()` returns these arguments."
        return " ".join(filter(None, (common, example, told))), case


def exercise(*names: str, instead_of: Iterable[Answer] = ()) -> Callable[[Callable[..., Exercise]], Check]:
    """Make a check from a function that makes the exercise. The function takes a seed if the exercise samples anything.

    The function's docstring says what the student has to write. `names` are the names of the answers in a verdict; by default,
    it is the function's own name. The functions in `instead_of` are those of the package that already do what is asked; the
    check recognizes them.
    """
    return lambda make: Check(make, instead_of, names)


def _new_seed() -> int:
    """Fresh if you study on your own; fixed under nbgrader, so that a second grading agrees, and if the variable is set."""
    fixed = os.environ.get("POSENC_COURSE_SEED", "0" if "NBGRADER_EXECUTION" in os.environ else "")
    return int(fixed) if fixed else random.SystemRandom().randrange(10_000)


_LAST: list[Any] = []


def last() -> tuple[Any, ...]:
    """The arguments of the call that the last verdict is about, so that you can try it: `my_function(*checks.last())`."""
    return tuple(_LAST)


def _plain(functions: Answer | tuple[Answer, ...]) -> Callable[[str], list[Call]]:
    """Our own functions need no protection; only their results have to be read in the same form."""

    def plain(function: Answer) -> Call:
        def call(*arguments: Any, wanted: Any, shown: str = "", within: AbstractContextManager[Any] | None = None) -> Any:
            with within or nullcontext():
                return read(function(*arguments), wanted, call=shown)

        return call

    return lambda _case: [plain(function) for function in (functions if isinstance(functions, tuple) else (functions,))]


def called(name: str, arguments: Sequence[Any], case: str = "", parameters: Sequence[str] = ()) -> str:
    """The call as you would type it, with large tensors given by their shapes, and then what is special about the case."""
    names = parameters if len(parameters) == len(arguments) else ["x"] * len(arguments)
    return f"{name}({', '.join(map(_shown, arguments, names))})" + (f", for {case}," if case else "")


def _printed(value: Any) -> bool:
    """Whether a verdict shows the whole value."""
    if isinstance(value, Tensor):
        return value.ndim == 1 and len(value) <= 8
    return not callable(value) and len(repr(value)) <= 60


def _shown(value: Any, name: str = "x") -> str:
    if isinstance(value, Tensor):
        return str([round(x, 4) for x in value.tolist()]) if _printed(value) else f"{name} of shape {tuple(value.shape)}"
    if callable(value):
        return "f" if value.__name__ == "<lambda>" else value.__name__.lstrip("_")
    if isinstance(value, float):
        return f"{value:g}"
    return repr(value) if _printed(value) else repr(value)[:57] + "..."


# ── reading what came back ───────────────────────────────────────────────────────────────────────────────────────────────


class Sizes(tuple[int | None, ...]):
    """The form of an answer that may be any table of these sizes; None allows any size."""

    def __repr__(self) -> str:
        return f"({', '.join('any' if size is None else str(size) for size in self)}{',' if len(self) == 1 else ''})"


def read(result: Any, wanted: Any, *, call: str) -> Any:
    """Return the result in the form that `wanted` has, or raise `Wrong`."""
    if isinstance(wanted, Tensor | Sizes):
        return _table(result, wanted if isinstance(wanted, Sizes) else tuple(wanted.shape), call)
    if isinstance(wanted, tuple):
        if not isinstance(result, tuple | list) or len(result) != len(wanted):
            count = f"{len(result)} value{'s' * (len(result) != 1)}" if isinstance(result, tuple | list) else named(result)
            raise Wrong(
                f"{call} returned {count}, but it should return {len(wanted)} values. Separate them by commas after return."
            )
        parts = enumerate(zip(result, wanted, strict=True), 1)
        return tuple(read(part, want, call=f"part {number} of {call}") for number, (part, want) in parts)
    if isinstance(result, Tensor | np.ndarray | np.generic) and math.prod(result.shape) == 1:
        result = result.item()
    forms: dict[type, tuple[Any, str]] = {
        bool: (bool, "a single True or False. torch.allclose compares whole tensors"),
        str: (str, f"a word such as {wanted!r}"),
    }
    form, asked = forms.get(type(wanted), (Real | Decimal, "one number"))
    if not isinstance(result, form) or isinstance(result, bool) != isinstance(wanted, bool):
        several = f"{tuple(result.shape)} numbers" if isinstance(result, Tensor | np.ndarray) else named(result)
        raise Wrong(f"{call} returned {several}, but it should return {asked}.")
    if isinstance(wanted, bool | str):
        return result
    if not math.isfinite(result):
        raise Wrong(f"{call} returned {result}. Do you divide by zero?")
    number = float(result)
    if isinstance(wanted, int) and number != int(number):
        shown = f"{number:.6g}"
        raise Wrong(f"{call} returned {shown if '.' in shown else number}, but it should return a whole number.")
    return int(number) if isinstance(wanted, int) else number


def _table(result: Any, shape: tuple[int | None, ...], call: str) -> Tensor:
    """Return the result as a float64 tensor of the given shape, None for any size, or raise `Wrong`."""
    try:
        # Copying through NumPy also reads reversed arrays, lists of rows, and numbers that have no torch type.
        array = result if isinstance(result, Tensor) else np.array(result)
        if isinstance(array, np.ndarray) and array.dtype in (np.longdouble, np.object_):
            array = array.astype(np.float64)
        table = torch.as_tensor(array).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise Wrong(f"{call} returned {named(result)} that isn't a table of numbers.") from error
    if table.ndim != len(shape) or any(size not in (None, given) for size, given in zip(shape, table.shape, strict=True)):
        transposed = " It looks transposed: each row should be a position." if table.shape == shape[::-1] else ""
        raise Wrong(f"{call} has shape {tuple(table.shape)}, but it should be {shape}.{transposed}")
    if table.is_complex():
        raise Wrong(f"{call} returned complex numbers. Put their real and imaginary parts into separate columns.")
    return table.to(torch.float64)


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def equal(known: Any, said: Any, tolerance: float) -> bool:
    """Whether two results that were read in the same form are equal, with numbers compared up to the tolerance."""
    if isinstance(known, tuple):
        return all(equal(a, b, tolerance) for a, b in zip(known, said, strict=True))
    if isinstance(known, Tensor):
        return known.shape == said.shape and torch.allclose(known.double(), said, rtol=tolerance, atol=tolerance)
    if isinstance(known, float) and isinstance(said, float):
        return math.isclose(known, said, rel_tol=tolerance, abs_tol=tolerance)
    return bool(known == said)


def difference(said: Any, want: Any, tolerance: float) -> str:
    """Where the result differs from the right one, in words that follow the call."""
    if isinstance(want, tuple):
        part = next(n for n, (a, b) in enumerate(zip(want, said, strict=True)) if not equal(a, b, tolerance))
        return f"in part {part + 1} of {len(want)}: {difference(said[part], want[part], tolerance)}"
    if isinstance(want, Tensor):
        off = ~torch.isclose(want.double(), said, rtol=tolerance, atol=tolerance)
        if not off.any():  # an exercise can be stricter than its tolerance
            off = want.double() != said
        place = off.nonzero()[0].tolist()
        gives, should = _in_digits(float(said[*place]), float(want[*place]))
        wrong = f"{int(off.sum())} of {off.numel()} numbers"
        return f"is wrong in {wrong}: at {place} it gives {gives}, but it should give {should}."
    gives, should = _in_digits(said, want)
    return f"gives {gives}, but it should give {should}."


def _in_digits(said: Any, want: Any) -> tuple[str, str]:
    """Two values, with as many digits as it takes to tell them apart."""
    shown = (f"{said:.6g}", f"{want:.6g}") if isinstance(want, float) else ("", "")
    return shown if shown[0] != shown[1] else (repr(said), repr(want))
