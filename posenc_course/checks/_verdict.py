"""What all checks share: they call the reader's function, read what it returns, and never show a traceback of ours."""

import copy
import ctypes
import functools
import inspect
import math
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

UNTRIED = "Not tried yet: your function returned None."
SECONDS = 10.0  # for one call of a function of a few lines; much, since a class may share a machine

_ANSWERS: ContextVar[dict[CodeType, str]] = ContextVar("_ANSWERS")  # of the exercise at hand, in the package


class Wrong(Exception):
    """An answer that cannot be right; its message is the verdict."""


class NotYet(AssertionError):
    """Raised for a grader where a verdict is not "Right"; Jupyter shows it in one line."""

    def _render_traceback_(self) -> list[str]:
        return [f"Not yet: {self}"]


def grade(verdict: str) -> None:
    """Print a verdict, and raise `NotYet` unless it begins with "Right: "; an assignment's graded cell calls it. Chapter 01."""
    print(verdict)
    if not verdict.startswith("Right: "):
        raise NotYet("this exercise has no points so far; the line above says why.")


def check(*, instead_of: Iterable[Callable[..., Any]] = (), draws: bool = True) -> Callable[[Any], Any]:
    """Make a check of a function that judges: it returns its praise, or raises `Wrong`.

    The check returns either as text. It recognizes the package's own functions in `instead_of`, which would be the answer.
    If it draws inputs, the function that judges takes `seed`, and the verdict names it; `seed=…` repeats a verdict.
    """
    codes = {inspect.unwrap(function).__code__: f"{function.__module__}.{function.__name__}" for function in instead_of}

    def decorate(judge: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(judge)
        def verdict(*answers: Any, seed: int | None = None) -> str:
            seed = _new_seed() if seed is None else seed
            token = _ANSWERS.set(codes)
            try:
                text = judge(*answers, seed=seed) if draws else judge(*answers)
            except Wrong as wrong:
                text = str(wrong)
            except Exception as error:  # whatever an answer is made of, its author shall not see our insides
                text = f"This check cannot read your answer: it led to {_in_a_line(error)}."
            finally:
                _ANSWERS.reset(token)
            return f"{text} (seed {seed})" if draws and not text.startswith(UNTRIED) else text

        return verdict

    return decorate


def _new_seed() -> int:
    """Fresh for whoever studies alone; fixed under nbgrader, so that a regrade agrees, and where the variable says so."""
    fixed = os.environ.get("POSENC_COURSE_SEED", "0" if "NBGRADER_EXECUTION" in os.environ else "")
    return int(fixed) if fixed else random.SystemRandom().randrange(10_000)


def answer(function: Callable[..., Any], *arguments: Any, call: str) -> Any:
    """Return function(*arguments), or raise `Wrong` with what happened when `call` was made."""
    if not callable(function):
        article = "an" if type(function).__name__[0] in "aeiou" else "a"
        raise Wrong(f"A function is wanted, not {article} {type(function).__name__}: hand it over without calling it.")
    try:
        with _recognized(call), _stopped_after(SECONDS):
            result = function(*arguments)
            if isinstance(result, Iterator):  # what a generator raises, it raises here, and one without an end ends
                result = list(islice(result, 10_000))
    except Wrong:
        raise
    except NotImplementedError:
        raise Wrong(UNTRIED) from None
    except _TooLong:
        raise Wrong(f"{call} had not returned after {SECONDS:g} seconds: does a loop never end?") from None
    except (Exception, SystemExit) as error:
        raise Wrong(f"{call} raised {_in_a_line(error)}") from error
    if result is None:
        raise Wrong(UNTRIED)
    return result


def answer_on_copies(
    function: Callable[..., Any],
    *arguments: Any,
    call: str,
    writing: str = "writes into its arguments: whoever called it has lost them. Make a new tensor.",
) -> Any:
    """As `answer`, on copies; raises `Wrong`, in the words of `writing`, where one of these tensors has another value then."""
    copies = copy.deepcopy(arguments)
    result = answer(function, *copies, call=call)
    if any(isinstance(old, Tensor) and not torch.equal(old, new) for old, new in zip(arguments, copies, strict=True)):
        raise Wrong(f"{call} {writing}")
    return result


def _in_a_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].splitlines()[0]


@contextmanager
def _recognized(call: str) -> Iterator[None]:
    """Raise `Wrong` as soon as one of the package's own answers is called, under whatever name."""
    answers = _ANSWERS.get({})

    def watch(frame: FrameType, event: str, _: Any) -> None:
        # Code objects are compared by what they hold, so that another import of the package makes no difference.
        if event == "call" and (name := answers.get(frame.f_code)):
            raise Wrong(f"{call} calls the package's own {name}, which is right already: write yours without it.")

    before = sys.getprofile()
    if answers:
        sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


class _TooLong(BaseException):
    """No `Exception`, so that an answer that catches all of those is stopped too."""


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raise `_TooLong` in this thread after so many seconds, on any system, between two steps of Python code."""
    thread, done, lock = ctypes.c_ulong(threading.get_ident()), threading.Event(), threading.Lock()

    def watch() -> None:
        wait = seconds
        while not done.wait(wait):
            with lock:
                if not done.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_TooLong))
            wait = 0.2  # again, in case the answer caught it

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        while not done.is_set():
            with suppress(_TooLong):  # one that comes too late to be raised above
                with lock:
                    done.set()
                time.sleep(0)


# ── reading what came back ───────────────────────────────────────────────────────────────────────────────────────────────


def as_table(result: Any, shape: tuple[int, ...], *, call: str) -> Tensor:
    """Return the result as a float64 tensor of the given shape, or raise `Wrong`."""
    try:
        # A copy by way of NumPy also reads reversed arrays and lists of rows.
        table = (result if isinstance(result, Tensor) else torch.as_tensor(np.array(result))).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise Wrong(f"{call} returned a {type(result).__name__} that is no table of numbers.") from error
    if table.shape != shape:
        transposed = " It looks transposed: rows are positions." if table.shape == shape[::-1] else ""
        raise Wrong(f"{call} has shape {tuple(table.shape)}, it should be {shape}.{transposed}")
    if table.is_complex():
        raise Wrong(f"{call} returned complex numbers: their real and imaginary parts belong into columns of their own.")
    return table.to(torch.float64)


def as_truth(result: Any, *, call: str) -> bool:
    """Return the result as a bool, or raise `Wrong` unless it is one True or False."""
    truth = result.tolist() if isinstance(result, Tensor | np.ndarray | np.generic) else result
    if not isinstance(truth, bool):
        raise Wrong(
            f"{call} returned a {type(result).__name__}, it should be one True or False: torch.allclose compares whole tensors."
        )
    return truth


def as_number(result: Any, *, call: str, should: str = "one number", finite: str = "is something divided by zero?") -> float:
    """Return the result as a float, or raise `Wrong`: unless it is one number, which `should` words, and finite."""
    if isinstance(result, Tensor | np.ndarray | np.generic):
        if math.prod(result.shape) != 1:
            raise Wrong(f"{call} returned {tuple(result.shape)} numbers, it should be {should}.")
        result = result.item()
    if isinstance(result, bool) or not isinstance(result, int | float):
        raise Wrong(f"{call} returned a {type(result).__name__}, it should be {should}.")
    if not math.isfinite(result):
        raise Wrong(f"{call} returned {result}: {finite}")
    return float(result)


# ── most exercises: the same cases to the reader's function, to a right one, and to known mistakes ───────────────────────


def compare(
    mine: Callable[..., Any],
    cases: Sequence[tuple[Any, ...]],
    right: Callable[..., Any],
    mistakes: Iterable[tuple[Callable[..., Any], str]],
    *,
    name: str,
    praise: str,
    tolerance: float = 1e-4,
) -> str:
    """Return "Right: " and the praise if mine(*case) is right(*case) in every case; else raise `Wrong`.

    What `right` returns says what is wanted: a tensor (of any dtype; what NumPy and lists hold is as good), a float, an int, a
    bool or a str. Its message is the hint of the first of the `mistakes`, functions like `right`, that gives what mine gives in
    every case, or else the first difference. Numbers may differ by `tolerance`, absolute or relative; whole ones may not.
    """
    wanted = [right(*case) for case in cases]
    yours = [_tried(mine, case, want, name) for case, want in zip(cases, wanted, strict=True)]

    def agree(others: Iterable[Any]) -> bool:
        return all(_same(other, said, tolerance) for other, said in zip(others, yours, strict=True))

    if agree(wanted):
        return f"Right: {praise}"
    for mistake, hint in mistakes:
        if agree(mistake(*case) for case in cases):
            raise Wrong(hint)
    case, said, want = next(
        which for which in zip(cases, yours, wanted, strict=True) if not _same(which[2], which[1], tolerance)
    )
    raise Wrong(f"{called(name, case)} {_difference(said, want, tolerance)}")


def called(name: str, arguments: Sequence[Any]) -> str:
    """The call as a reader would type it, large tensors by their shape."""
    return f"{name}({', '.join(map(_shown, arguments))})"


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return (
            str([round(x, 4) for x in value.flatten().tolist()])
            if value.ndim == 1 and len(value) <= 8
            else f"x of shape {tuple(value.shape)}"
        )
    if isinstance(value, float):
        return f"{value:g}"
    if callable(value):
        return getattr(value, "__name__", "f").lstrip("_")
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _tried(mine: Callable[..., Any], case: tuple[Any, ...], want: Any, name: str) -> Any:
    call = called(name, case)
    result = answer_on_copies(mine, *case, call=call)
    if isinstance(want, Tensor):
        return as_table(result, tuple(want.shape), call=call)
    if isinstance(want, bool):
        return as_truth(result, call=call)
    if isinstance(want, str):
        if not isinstance(result, str):
            raise Wrong(f"{call} returned a {type(result).__name__}, it should be a word such as {want!r}.")
        return result
    number = as_number(result, call=call)
    if isinstance(want, int) and number != int(number):
        raise Wrong(f"{call} returned {number:.6g}, it should be a whole number.")
    return number


def _same(known: Any, said: Any, tolerance: float) -> bool:
    if isinstance(known, Tensor):
        known = known.double()
        return known.shape == said.shape and torch.allclose(known, said, rtol=tolerance, atol=tolerance)
    if isinstance(known, float):
        return math.isclose(known, said, rel_tol=tolerance, abs_tol=tolerance)
    return bool(known == said)


def _difference(said: Any, want: Any, tolerance: float) -> str:
    if isinstance(want, Tensor):
        off = ~torch.isclose(want.double(), said, rtol=tolerance, atol=tolerance)
        place = off.nonzero()[0].tolist()
        return (
            f"is wrong in {int(off.sum())} of {off.numel()} numbers: at {place} it gives {said[*place]:.6g}, and should give "
            f"{want[*place]:.6g}."
        )
    shown = (f"{value:.6g}" if isinstance(value, float) else repr(value) for value in (said, want))
    return "gives {}, and should give {}.".format(*shown)
