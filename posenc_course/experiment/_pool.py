"""Do runs one after another, or in several processes, which end when the process that started them ends for any reason.

We can't use `concurrent.futures.ProcessPoolExecutor`: if the main process is killed, its workers wait for work forever, and
before Python 3.14 no public method stops a run that is under way.
"""

import contextlib
import signal
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TypeAlias

from posenc_course.experiment.config import Run

Progress: TypeAlias = tuple[int, int, float]  # step, of how many, loss
Report: TypeAlias = Callable[[Progress], object]
Work: TypeAlias = Callable[[Run, Report], bytes]  # the content of the run's file
Tell: TypeAlias = Callable[[Run, Progress | bytes], object]


def run_all(work: Work, runs: Sequence[Run], jobs: int, tell: Tell) -> None:
    """Do the work of all runs, `jobs` at a time, and tell their progress and their files; an error in a run is raised here."""
    if jobs == 1:
        for run in runs:
            tell(run, work(run, partial(tell, run)))
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
                run = busy[connection]
                try:
                    news = connection.recv()
                except EOFError:
                    raise ChildProcessError(f"the process of {run.name} died: the same command continues from there") from None
                if isinstance(news, Exception):
                    raise news
                tell(run, news)
                if isinstance(news, bytes):
                    del busy[connection]
                    if waiting:
                        busy[connection] = waiting.pop(0)
                        connection.send(busy[connection])
    finally:
        for process in processes:
            process.terminate()


def _serve(connection: Connection, work: Work) -> None:
    """Work until the other end of the pipe closes, which means that the parent process has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the first one handles it
    with contextlib.suppress(EOFError, OSError):
        while True:
            try:
                connection.send(work(connection.recv(), connection.send))
            except Exception as error:
                connection.send(error)
