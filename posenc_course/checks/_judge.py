"""Keeps the right answers out of a student's reach while a notebook is graded: they are in another process, the judge.

nbgrader's kernels load this module before the notebook's first cell (see `exercises/nbgrader_config.py`). From then on, a check
sends each answer's results to the judge, as numbers, words, tables and lists of these, and gets back the next arguments to try,
and at the end the verdict. The kernel's memory never contains a right answer or a known mistake. An audit hook, which Python
can't remove, keeps the kernel from their files and from starting processes, which would have no such hook.

This stops whoever looks for the answers by Python's usual ways, but it is no sandbox: compiled code can read files without
Python's knowledge, and code that rewrites Python's own modules can forge a verdict.
"""

import ctypes
import dis
import functools
import inspect
import io
import marshal
import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from decimal import Decimal
from importlib import import_module
from multiprocessing.connection import Connection
from numbers import Complex, Real
from pathlib import Path
from pkgutil import iter_modules
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._memory import BLOCKS, largest_made
from posenc_course.checks._sandbox import Elsewhere, Nothing, Wrong, run

# ── the kernel's end ─────────────────────────────────────────────────────────────────────────────────────────────────────

PACKAGE = __name__.rpartition(".")[0]
HERE = Path(__file__).resolve().parent
ASKS = f"{__name__}.sealed"  # the audit event by which this module, imported again, finds the judge
_STARTS_PROCESSES = {
    *("subprocess.Popen", "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile"),
    "pty.spawn",
}
_FINDS_OBJECTS = {"gc.get_objects", "gc.get_referrers", "gc.get_referents"}  # among them the hook's own
_CALLS_C = {"ctypes.dlopen", "ctypes.dlsym"}
_NAMES_FILES = {"open", "os.rename", "os.link"}


def started() -> Connection:
    """A line to a new judge."""
    # A fork has imported torch already; elsewhere, a process that has imported it can't be forked safely.
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, ours), daemon=True)
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):  # the kernel's threads aren't needed there
        process.start()
    theirs.close()
    return ours


class Judge:
    """A process that knows the answers, at the other end of a line."""

    def __init__(self, line: Connection) -> None:
        self._line = line

    def topic(self, name: str) -> ModuleType:
        """What stands in for a module of checks: each of its attributes is a check that asks the judge."""
        module = ModuleType(f"{PACKAGE}.{name}", "These checks are made in another process.")
        module.__getattr__ = lambda check: functools.partial(self.verdict, f"{name}.{check}")  # type: ignore[method-assign]
        return module

    def verdict(self, check: str, *answers: Any, seed: int | None = None, earn: str | None = None) -> str:
        """The verdict of a check, such as "rope.rotate", on a student's answers."""
        try:
            self._line.send_bytes(_packed({"check": check, "answers": len(answers), "seed": seed, "earn": earn}))
            while not isinstance(said := pickle.loads(self._line.recv_bytes()), str):
                self._line.send_bytes(_packed(_reply(answers, *said)))
            return said
        except (EOFError, OSError):
            return "The checks don't answer any more, because the process that makes them has ended."


def _reply(
    answers: tuple[Any, ...], number: int, arguments: tuple[Any, ...], call: str, own: list[str], worth_a_look: int | None
) -> dict[str, Any]:
    try:
        with largest_made(worth_a_look) if worth_a_look else nullcontext(None) as largest:
            result = run(answers[number], *arguments, call=call, answers={_code(name): name for name in own})
        return {"result": _plain(result), "largest": largest.numbers if largest else 0}
    except Wrong as wrong:
        return {"nothing" if isinstance(wrong, Nothing) else "wrong": str(wrong)}


def _code(name: str) -> CodeType:
    module, _, function = name.rpartition(".")
    return inspect.unwrap(getattr(import_module(module), function)).__code__


def sealed() -> Judge | None:
    """The judge, if this process has been sealed."""
    found: list[Connection] = []
    sys.audit(ASKS, found)
    return Judge(found[0]) if found else None  # of this class, because a notebook may have changed that of an earlier import


def seal() -> None:
    """From now on, this process asks a judge, and can't get at the answers. There is no way back."""
    line = started()
    ctypes.pythonapi.PyThreadState_SetAsyncExc  # noqa: B018 `_sandbox` needs this function of C, and ctypes keeps it
    topics = [module.name for module in iter_modules([str(HERE)]) if module.name[0] != "_"]
    folders = [HERE.parents[1] / name for name in ("exercises/source", "exercises/sheets", "text/source", "tests/answers")]
    folders += [Path(folder).resolve() for folder in [os.environ.get("POSENC_COURSE_ANSWERS")] if folder]
    closed = (
        *(f"{HERE}{os.sep}{between}{topic}." for topic in topics for between in ("", f"__pycache__{os.sep}")),
        *(f"{folder}{os.sep}" for folder in folders),
    )
    # A folder that is opened leads to its files by names relative to it.
    leading = {*map(str, folders), str(HERE), str(HERE / "__pycache__"), *map(str, HERE.parents)}

    def to_answers(path: Any) -> bool:
        if isinstance(path, int) or path is None:
            return False
        real = os.path.realpath(os.fsdecode(path))
        memory = real.startswith("/proc/") and real.endswith("/mem")
        # The package's wheel may lie in the folder from which the assignment was handed out.
        return real.startswith(closed) or real in leading or memory or real.endswith(".whl")

    def guard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == ASKS:
            arguments[0].append(line)
        elif event in _STARTS_PROCESSES:
            raise PermissionError("A notebook that is being graded can't start processes.")
        elif event in _FINDS_OBJECTS | _CALLS_C:
            raise PermissionError(f"A notebook that is being graded can't use {event}.")
        elif event in _NAMES_FILES and to_answers(arguments[0]):
            raise PermissionError("A notebook that is being graded can't read the course's answers.")

    sys.addaudithook(guard)


def load_ipython_extension(_shell: Any) -> None:
    """Called by a kernel that is started with `--ext=posenc_course.checks._judge`."""
    seal()


# ── the judge's end ──────────────────────────────────────────────────────────────────────────────────────────────────────


def serve(line: Connection, other_end: Connection) -> None:
    """Judge answers until the student's process ends."""
    from posenc_course import checks
    from posenc_course.checks._exercise import Check

    other_end.close()  # so that the line ends when the student's process does
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a cell that takes too long is interrupted, and with it the kernel's group
    torch.set_num_threads(1)
    sys.stdout = sys.stderr = io.StringIO()

    def ask(number: int, *arguments: Any, call: str, answers: Mapping[CodeType, str]) -> Any:
        worth_a_look = BLOCKS[-1].worth_a_look if BLOCKS else None
        line.send_bytes(_by_value((number, arguments, call, [*answers.values()], worth_a_look)))
        match _unpacked(line.recv_bytes()):
            case {"nothing": text}:
                raise Nothing(text)
            case {"wrong": text}:
                raise Wrong(text)
            case {"result": result, "largest": numbers}:
                for block in BLOCKS:
                    block.numbers = max(block.numbers, numbers)
                return _restored(result)

    with suppress(EOFError):
        while True:
            request = _unpacked(line.recv_bytes())
            topic, _, name = request["check"].partition(".")
            check = getattr(getattr(checks, topic), name)
            if not isinstance(check, Check):
                raise ValueError(f"{request['check']} isn't a check")
            answers = [Elsewhere(functools.partial(ask, number)) for number in range(request["answers"])]
            line.send_bytes(pickle.dumps(check(*answers, seed=request["seed"], earn=request["earn"])))


class _Pickler(pickle.Pickler):
    """Sends functions that are defined among the checks as they are, with what they use and nothing else."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return import_module, (value.__name__,)
        if isinstance(value, FunctionType) and value.__module__.startswith(f"{PACKAGE}.") and value is not _function:
            code, used = value.__code__, {*_globals(value.__code__)}
            globals_ = {name: each for name, each in value.__globals__.items() if name in used}
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            return _function, (marshal.dumps(code), globals_, value.__name__, value.__defaults__, value.__kwdefaults__, cells)
        return NotImplemented


def _globals(code: CodeType) -> Iterator[str]:
    """The global names that a function's code looks up, in its inner functions, too."""
    yield from (step.argval for step in dis.get_instructions(code) if step.opname == "LOAD_GLOBAL")
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals(inner)


def _function(
    code: bytes, globals_: dict[str, Any], name: str, defaults: Any, kwdefaults: Any, cells: list[Any]
) -> Callable[..., Any]:
    function = FunctionType(marshal.loads(code), globals_, name, defaults, tuple(map(CellType, cells)))
    function.__kwdefaults__ = kwdefaults
    return function


def _by_value(value: Any) -> bytes:
    file = io.BytesIO()
    _Pickler(file).dump(value)
    return file.getvalue()


# ── what an answer returns, as data ──────────────────────────────────────────────────────────────────────────────────────


def _plain(value: Any) -> Any:
    """The result in types that `torch.load` reads without running code: the judge never unpickles what a student made."""
    if isinstance(value, Tensor):
        return value.detach().as_subclass(Tensor).clone()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype in (np.longdouble, np.object_):
            return _plain(value.tolist())
        try:
            return torch.as_tensor(np.array(value))
        except TypeError:
            return _plain(value.tolist())
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Real | Decimal):
        return float(value)
    if isinstance(value, Complex):
        return torch.tensor(complex(value), dtype=torch.complex128)
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, list):
        return [*map(_plain, value)]
    return {"type": type(value).__name__}


def _restored(value: Any) -> Any:
    if isinstance(value, dict):  # something that no check can read; its type is named in the verdict
        return type(str(value.get("type")), (), {})()
    return type(value)(map(_restored, value)) if isinstance(value, tuple | list) else value


def _packed(value: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def _unpacked(data: bytes) -> Any:
    return torch.load(io.BytesIO(data), weights_only=True)
