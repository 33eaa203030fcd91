"""How a check calls a student's function: on copies, with a time limit, and without ever showing a traceback of ours."""

import contextvars
import copy
import ctypes
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from torch import Tensor

UNTRIED = "Not tried yet"


class Wrong(Exception):
    """Raised for an answer that can't be right; its message is the verdict."""


def run(
    function: Callable[..., Any],
    *arguments: Any,
    call: str,
    answers: Mapping[CodeType, str] | None = None,
    within: AbstractContextManager[Any] | None = None,
) -> Any:
    """Return function(*arguments), called on copies and within a context, or raise `Wrong` with what happened in this `call`.

    `answers` maps the code of the package's own answers to their names. An answer that calls one of them is refused, and so is
    an answer that writes into its arguments.
    """
    if not callable(function):
        raise Wrong(f"This check needs a function, not {named(function)}. Pass the function itself, without calling it.")
    copies = tuple(given.clone() if isinstance(given, Tensor) else copy.deepcopy(given) for given in arguments)
    outcome: dict[str, Any] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and answers and (name := answers.get(frame.f_code)):
            raise Wrong(
                f"{call} calls the package's own {name}, which already does what you should write. Write your function "
                "without it."
            )

    def work() -> None:
        sys.setprofile(watch if answers else None)
        try:
            with within or nullcontext():
                result = function(*copies)
                # A generator runs here, so that its errors are raised here and an endless one is cut off.
                outcome["result"] = list(islice(result, 10_000)) if isinstance(result, Iterator) else result
        except BaseException as error:
            outcome["error"] = error
        finally:
            sys.setprofile(None)

    _in_time(work, call)
    error = outcome.get("error")
    if isinstance(error, Wrong):
        raise error
    if isinstance(error, NotImplementedError):
        raise Wrong(f"{UNTRIED}.")
    if error:
        raise Wrong(f"{call} raised {in_a_line(error)}") from error
    if not all(map(_unchanged, arguments, copies)):
        raise Wrong(f"{call} writes into its arguments, so the caller loses the original values. Make a copy first.")
    return outcome["result"]


def named(result: Any) -> str:
    """The type of a result, with its article, as verdicts name it: a list, an int."""
    name = type(result).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def in_a_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].splitlines()[0]


def _unchanged(old: Any, new: Any) -> bool:
    if isinstance(old, Tensor):
        return old.shape == new.shape and bool(((old == new) | (old.isnan() & new.isnan())).all())
    # A list of numbers is the same if it looks the same.
    return not isinstance(old, list) or repr(old) == repr(new)


def _in_time(work: Callable[[], None], call: str) -> None:
    """Work in a thread of its own, so that we can stop an endless loop and leave a call behind that sleeps or waits."""
    # A class may share a machine, so the time for one call of a short function is long.
    seconds = float(os.environ.get("POSENC_COURSE_PATIENCE", "10"))
    # In the caller's context, so that whatever the answer prints appears below the calling cell.
    worker = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    worker.start()
    try:
        worker.join(seconds)
    finally:
        if late := worker.is_alive():
            threading.Thread(target=_stop, args=(worker,), daemon=True).start()
    if late:
        told = "Is there an endless loop, or does it wait for something?"
        raise Wrong(f"{call} didn't return within {seconds:g} seconds. {told}")


class _TooLong(SystemExit):
    """Not an `Exception`, so that it also stops an answer that catches all of these; and it ends a thread silently."""


def _stop(worker: threading.Thread) -> None:
    """Raise `_TooLong` in the thread between two steps of its Python code, repeatedly in case the answer catches it.

    In Python 3.11, as long as such an exception waits for a sleeping thread, no profiled function of another thread gets past
    its first step. A second exception, raised in this thread, ends that; the sleeping thread still gets its own when it wakes.
    """
    while worker.is_alive():
        with suppress(_TooLong):
            for ident in (worker.ident, threading.get_ident()):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident or 0), ctypes.py_object(_TooLong))
            while True:  # until it arrives
                time.sleep(0)
        worker.join(0.2)
