"""Do runs one after another, or in several processes, which end when the process that started them ends for any reason.

We can't use `concurrent.futures.ProcessPoolExecutor`: if the main process is killed, its workers wait for work forever, and
before Python 3.14 no public method stops a run that is under way.
"""

import contextlib
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import NamedTuple, TypeAlias

from posenc_course.experiment.config import Run

Report: TypeAlias = Callable[[int, int, float], object]
Work: TypeAlias = Callable[[Run, Report], bytes]  # the content of the run's file
SECONDS = 5  # between two reports of a run


class News(NamedTuple):
    """A report from a run: its progress, or, if there is no loss, that it is finished, with the content of its file."""

    run: Run
    step: int = 1
    steps: int = 1
    loss: float | None = None
    content: bytes = b""


def run_all(work: Work, runs: Sequence[Run], jobs: int, tell: Callable[[News], object]) -> None:
    """Do the work of all runs, `jobs` at a time, and pass on their reports; an error in a run is raised here."""
    if jobs == 1:
        for run in runs:
            tell(do(work, run, tell))
        return
    waiting, context = list(runs), get_context("spawn")  # a forked torch may hang on its locks
    busy: dict[Connection, Run] = {}
    processes = []
    try:
        for _ in range(min(jobs, len(runs))):
            here, there = context.Pipe()
            processes.append(context.Process(target=_serve, args=(there, work), daemon=True))
            processes[-1].start()
            there.close()
            busy[here] = waiting.pop(0)
            here.send(busy[here])
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection)
                try:
                    news = connection.recv()
                except EOFError:
                    died = f"the process of {busy[connection].name} died: the same command continues from there"
                    raise ChildProcessError(died) from None
                if isinstance(news, Exception):
                    raise news
                tell(news)
                if news.loss is None:
                    busy.pop(connection)
                    if waiting:
                        busy[connection] = waiting.pop(0)
                        connection.send(busy[connection])
    finally:
        for process in processes:
            process.terminate()


def do(work: Work, run: Run, tell: Callable[[News], object]) -> News:
    """Do the work of a run, and pass on its reports of progress; return the last one, that it is finished."""
    told = -float(SECONDS)

    def report(step: int, steps: int, loss: float) -> None:
        nonlocal told
        if time.monotonic() >= told + SECONDS:
            told = time.monotonic()
            tell(News(run, step, steps, loss))

    return News(run, content=work(run, report))


def _serve(connection: Connection, work: Work) -> None:
    """Work until the other end of the pipe closes, which means that the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one handles it
    with contextlib.suppress(EOFError, OSError):
        while True:
            try:
                connection.send(do(work, connection.recv(), connection.send))
            except Exception as error:
                connection.send(error)
