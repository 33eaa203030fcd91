"""How a check calls a reader's function: on copies, with patience that ends, and never with a traceback of ours."""

import contextvars
import copy
import ctypes
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import CodeType, FrameType
from typing import Any

from torch import Tensor

UNTRIED = "Not tried yet: your function returned None."


class Wrong(Exception):
    """An answer that cannot be right; its message is the verdict."""


def patience() -> float:
    """Seconds for one call of a function of a few lines: many, since a class may share a machine."""
    return float(os.environ.get("POSENC_COURSE_PATIENCE", "10"))


def run(function: Callable[..., Any], *arguments: Any, call: str, answers: Mapping[CodeType, str] | None = None) -> Any:
    """Return function(*arguments), called on copies, or raise `Wrong` with what happened when `call` was made.

    `answers` are the package's own, by their code and with their names: an answer that calls one of them is refused, and so is
    one that writes into its arguments.
    """
    if not callable(function):
        article = "an" if type(function).__name__[0] in "aeiou" else "a"
        raise Wrong(f"A function is wanted, not {article} {type(function).__name__}: hand it over without calling it.")
    copies = copy.deepcopy(arguments)
    result = _in_time(function, copies, call, answers or {})
    if result is None:
        raise Wrong(UNTRIED)
    if any(isinstance(old, Tensor) and not _unchanged(old, new) for old, new in zip(arguments, copies, strict=True)):
        raise Wrong(f"{call} writes into its arguments, so the caller loses them: make a new tensor.")
    return result


def in_a_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].splitlines()[0]


def _unchanged(old: Tensor, new: Tensor) -> bool:
    return old.shape == new.shape and bool(((old == new) | (old.isnan() & new.isnan())).all())


def _in_time(function: Callable[..., Any], arguments: tuple[Any, ...], call: str, answers: Mapping[CodeType, str]) -> Any:
    """The call in a thread of its own, so that one which sleeps or waits can be left behind as well as a loop be stopped."""
    outcome: dict[str, Any] = {}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        # Code objects are compared by what they hold, so that another import of the package makes no difference.
        if event == "call" and (name := answers.get(frame.f_code)):
            raise Wrong(f"{call} calls the package's own {name}, which is right already: write yours without it.")

    def work() -> None:
        if answers:
            sys.setprofile(watch)
        try:
            result = function(*arguments)
            # What a generator raises, it raises here, and one without an end ends.
            outcome["result"] = list(islice(result, 10_000)) if isinstance(result, Iterator) else result
        except BaseException as error:
            outcome["error"] = error
        finally:
            sys.setprofile(None)

    # In the caller's context, so that what the answer prints appears below the cell that called.
    worker = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    worker.start()
    try:
        worker.join(patience())
    finally:
        if late := worker.is_alive():
            threading.Thread(target=_stop, args=(worker,), daemon=True).start()
    if late:
        seconds = f"{patience():g} second{'s' if not math.isclose(patience(), 1) else ''}"
        raise Wrong(f"{call} had not returned after {seconds}: does a loop never end, or does it wait for something?")
    match outcome:
        case {"error": Wrong() as wrong}:
            raise wrong
        case {"error": NotImplementedError()}:
            raise Wrong(UNTRIED)
        case {"error": error}:
            raise Wrong(f"{call} raised {in_a_line(error)}") from error
    return outcome["result"]


class _TooLong(SystemExit):
    """No `Exception`, so that an answer that catches all of those is stopped too; and a thread ends by it without a word."""


def _stop(worker: threading.Thread) -> None:
    """Raise `_TooLong` in the thread between two steps of its Python code, again and again in case the answer catches it.

    In Python 3.11, while such an exception waits for a thread that sleeps, no profiled function of another thread gets past its
    first step; a second one, which arrives here, ends that, and the sleeper still finds its own when it wakes.
    """
    while worker.is_alive():
        with suppress(_TooLong):
            for ident in (worker.ident, threading.get_ident()):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident or 0), ctypes.py_object(_TooLong))
            while True:  # until it arrives
                time.sleep(0)
        worker.join(0.2)
