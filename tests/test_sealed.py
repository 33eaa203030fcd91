"""The right answers are out of reach while a notebook is graded: every way to them that we know of is tried.

Each attempt is a student's function, which gets hold of the right answer and returns what it returns. Without the seal, all of
them get their points; with it, none does.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.resources
import importlib.util
import inspect
import json
import linecache
import marshal
import os
import pickle
import pkgutil
import py_compile
import runpy
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from posenc_course.checks import _judge
from posenc_course.checks._judge import Judge, seal, started
from posenc_course.checks._sandbox import Wrong

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "posenc_course/checks"
FILE = str(FOLDER / "rope.py")
READ = f"print(open({FILE!r}).read())"
Answer = Callable[..., Any]
ATTEMPTS: dict[str, Callable[[], Any]] = {}  # each returns an answer, or the text of the file with it


def attempt(function: Callable[[], Any]) -> Callable[[], Any]:
    ATTEMPTS[function.__name__.removeprefix("by_")] = function
    return function


def right(check: Any) -> Answer:
    answer: Answer = check.exercise(0).rights[0]
    return answer


def run_as_own(source: str | bytes) -> Answer:
    """The answer from the file's text, as code of one's own."""
    own = {"__name__": "own"}
    exec(compile(source, "own", "exec"), own)
    return right(own["rotate"])


@attempt
def by_attribute() -> Answer:
    from posenc_course import checks

    return right(checks.rope.rotate)


@attempt
def by_import() -> Answer:
    import posenc_course.checks.rope as topic

    return right(topic.rotate)


@attempt
def by_import_module() -> Answer:
    return right(import_module("posenc_course.checks.rope").rotate)


@attempt
def by_sys_modules() -> Answer:
    return right(sys.modules["posenc_course.checks.rope"].rotate)


@attempt
def by_pickle() -> Answer:
    return right(pickle.loads(b"cposenc_course.checks.rope\nrotate\n."))


@attempt
def by_spec() -> Answer:
    spec = importlib.util.spec_from_file_location("own", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return right(module.rotate)


@attempt
def by_runpy() -> Answer:
    return right(runpy.run_path(FILE)["rotate"])


@attempt
def by_bytecode() -> Answer:
    own: dict[str, Any] = {"__name__": "own"}
    exec(marshal.loads(Path(importlib.util.cache_from_source(FILE)).read_bytes()[16:]), own)
    return right(own["rotate"])


@attempt
def by_wheel() -> str:
    with zipfile.ZipFile(Path(os.environ["HANDOUT"]) / "posenc_course.whl") as wheel:
        return wheel.read("rope.py").decode()


@attempt
def by_garbage_collector() -> Answer:
    return next(each.rights[0] for each in gc.get_objects() if type(each).__name__ == "Exercise")


@attempt
def by_frames() -> Answer:
    return next(frame.f_locals["exercise"].rights[0] for frame in frames() if hasattr(frame.f_locals.get("exercise"), "rights"))


def frames() -> Iterator[Any]:
    """Of all threads: also of the one that waits for the answer."""
    for frame in [*sys._current_frames().values()]:
        deeper: Any = frame
        while deeper:
            yield deeper
            deeper = deeper.f_back


@attempt
def by_open() -> str:
    with open(FILE) as file:  # noqa: PTH123
        return file.read()


@attempt
def by_os_open() -> str:
    return os.fdopen(os.open(FILE, os.O_RDONLY)).read()


@attempt
def by_relative_path() -> str:
    before = Path.cwd()
    os.chdir(FOLDER)
    try:
        return Path("rope.py").read_text("utf-8")
    finally:
        os.chdir(before)


@attempt
def by_folder() -> str:
    folder = os.open(FOLDER.parent, os.O_RDONLY)
    return os.fdopen(os.open("checks/rope.py", os.O_RDONLY, dir_fd=folder)).read()


@attempt
def by_link() -> str:
    link = Path(tempfile.mkdtemp(), "harmless.txt")
    link.symlink_to(FILE)
    return link.read_text("utf-8")


@attempt
def by_copy() -> str:
    return Path(shutil.copy(FILE, tempfile.mkdtemp())).read_text("utf-8")


@attempt
def by_getsource() -> str:
    from posenc_course import checks

    return inspect.getsource(checks.rope)


@attempt
def by_linecache() -> str:
    linecache.clearcache()
    return "".join(linecache.getlines(FILE))


@attempt
def by_pkgutil() -> bytes | None:
    return pkgutil.get_data("posenc_course.checks", "rope.py")


@attempt
def by_resources() -> str:
    return importlib.resources.files("posenc_course.checks").joinpath("rope.py").read_text("utf-8")


@attempt
def by_process() -> str:
    return subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True).stdout


@attempt
def by_shell() -> str:
    return os.popen(f"cat {FILE}").read()


@attempt
def by_fork() -> str:
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, Path(FILE).read_bytes())
        os._exit(0)
    os.close(write)
    return os.fdopen(read).read()


@attempt
def by_c() -> bytes:
    libc = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(100_000)
    size = libc.read(libc.open(FILE.encode(), 0), buffer, len(buffer))
    return buffer.raw[:size]


def try_all(*, sealed: bool) -> None:
    """Print the verdict on each attempt."""
    if sealed:
        seal()
    from posenc_course import checks

    def student(name: str) -> Answer:
        def rotate(x: Any, positions: Any, pairs: Any) -> Any:
            found = ATTEMPTS[name]()
            return (found if callable(found) else run_as_own(found))(x, positions, pairs)

        return rotate

    print(json.dumps({name: checks.rope.rotate(student(name), seed=0) for name in ATTEMPTS}), flush=True)


def try_both_ways() -> None:
    """A line without the seal, from a fork, and a line with it; called in a process of its own."""
    if os.fork() == 0:
        try:
            try_all(sealed=False)
        finally:
            os._exit(0)
    os.wait()
    try_all(sealed=True)


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Without the seal, and with it."""
    py_compile.compile(FILE)
    handout = tmp_path_factory.mktemp("handout")
    with zipfile.ZipFile(handout / "posenc_course.whl", "w") as wheel:
        wheel.write(FILE, "rope.py")
    code = "from tests import test_sealed\ntest_sealed.try_both_ways()"
    # A process that has imported torch warns when it is forked.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"HANDOUT": str(handout)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()[-2:]]


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True], ids=["open", "sealed"])
@pytest.mark.parametrize("name", ATTEMPTS)
def test_the_seal_keeps_an_attempt_from_the_answers(verdicts: list[dict[str, str]], name: str, sealed: bool) -> None:
    said = verdicts[sealed][name]
    assert said.startswith("Right: ") != sealed, said


# ── the judge gives the verdicts that a check gives ──────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(started())


@pytest.mark.slow
def test_the_judge_and_the_check_agree(judge: Judge) -> None:
    """On a wrong answer of the bank to every exercise that assignments grade, and on a right one where it gets functions."""
    from tests.answers import CHECKS, RIGHT, WRONG
    from tests.test_exercises import SOURCES, graded

    graded_checks = [check for path in SOURCES.values() for check in graded(path)]
    tried = [(check, WRONG[check][0].answer) for check in graded_checks]
    tried += [(check, RIGHT[check][0].answer) for check in ("order.kind", "naive.counts_along", "relative.receive")]
    for check, answer in tried:
        answers = answer if isinstance(answer, tuple) else (answer,)
        assert judge.verdict(check, *answers, seed=0) == CHECKS[check](*answers, seed=0)


def codes(value: Any, seen: set[int]) -> Iterator[Any]:
    """The code of all functions that can be reached from a value."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from codes(each, seen)
    elif inspect.isfunction(value):
        yield value.__code__
        yield from codes([cell.cell_contents for cell in value.__closure__ or ()], seen)
        if value.__globals__.get("__name__") is None:  # sent by value; functions of the package are in the kernel anyway
            yield from codes(value.__globals__, seen)


def test_no_right_answer_travels_with_the_functions_of_a_case() -> None:
    from tests.answers import CHECKS

    sent = 0
    for name, check in CHECKS.items():
        exercise = check.exercise(0)
        for _, case in exercise.named_cases:
            found = {*codes(pickle.loads(_judge._by_value(case)), set())}
            sent += len(found)
            answers = {
                part.__code__
                for each in exercise.rights
                for part in (each if isinstance(each, tuple) else [each])
                if inspect.isfunction(part)
            }
            assert not found & answers, name
    assert sent > 100


class Evil:
    """Something that runs code where it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


@pytest.mark.slow
def test_the_judge_runs_nothing_that_a_student_returns(judge: Judge, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    said = judge.verdict("rope.rotate", lambda *_: Evil(mark), seed=0)
    assert "returned an Evil that isn't a table of numbers" in said
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "This check needs a function, not a NoneType"),
        (lambda *_: None, "Not tried yet"),
        (lambda *_: 1 / 0, "raised ZeroDivisionError"),
        (lambda x, *_: x.double().numpy()[:, :1], "has shape"),
        (lambda x, *_: x.zero_(), "writes into its arguments"),
        (lambda x, *_: [[1j] * x.shape[1]] * len(x), "returned complex numbers"),
        (lambda x, *_: torch.full_like(x, torch.nan).tolist(), "infinite or NaN"),
    ],
)
def test_the_judge_says_what_came_back(judge: Judge, answer: Any, says: str) -> None:
    assert says in judge.verdict("rope.rotate", answer, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["it undoes the reordering", "counted from 0", "no such words"])
def test_the_judge_and_the_check_agree_on_what_is_earned(judge: Judge, words: str) -> None:
    from posenc_course import checks

    for answer in (lambda order: torch.eye(len(order))[order], lambda order: torch.eye(len(order))[order].T):
        said = judge.verdict("order.permutation", answer, seed=0, earn=words)
        assert said == checks.order.permutation(answer, seed=0, earn=words)
        assert said.startswith("Earned: ") == (
            words == "it undoes the reordering" and answer(torch.tensor([1, 2, 0]))[0, 2] == 1
        )


@pytest.mark.slow
@pytest.mark.parametrize("text", ["Right: of course.", "Earned: of course."])
def test_the_judge_does_not_pass_on_a_forged_verdict(judge: Judge, text: str) -> None:
    def forging(*_: Any) -> Any:
        raise Wrong(text)

    assert judge.verdict("rope.rotate", forging, seed=0).startswith("Your function raised an error")
