"""Runs spread over processes, which end when the one that started them does, however it ends."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeAlias

from posenc_course.experiment.config import Run

Report: TypeAlias = Callable[[int, int, float], object]


class News(NamedTuple):
    """From a run: how far it is, or that it is done: loss None."""

    run: Run
    step: int
    steps: int
    loss: float | None


def spread(work: Callable[[Run, Report], object], runs: Sequence[Run], jobs: int) -> Iterator[News]:
    """Do the work of all runs in `jobs` processes, and yield their news. An error in a run is raised here."""
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
                    news: Any = connection.recv()
                except EOFError as error:
                    raise ChildProcessError(
                        f"the process of {busy[connection].name} died; the same command goes on from there"
                    ) from error
                if isinstance(news, Exception):
                    raise news
                yield news
                if news.loss is None:
                    busy.pop(connection)
                    if waiting:
                        busy[connection] = waiting.pop(0)
                        connection.send(busy[connection])
    finally:
        for process in processes:
            process.terminate()


def _serve(connection: Connection, work: Callable[[Run, Report], object]) -> None:
    """Work until the pipe's other end is gone: then the process that reads the news is no more, and this one ends too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the first process decides
    with contextlib.suppress(EOFError, OSError):
        while True:
            run: Run = connection.recv()
            last = 0.0

            def report(step: int, steps: int, loss: float, run: Run = run) -> None:
                nonlocal last
                if time.monotonic() > last + 5:  # a pipe that nobody reads would fill
                    last = time.monotonic()
                    connection.send(News(run, step, steps, loss))

            try:
                work(run, report)
            except Exception as error:
                connection.send(error)
            else:
                connection.send(News(run, 1, 1, None))
