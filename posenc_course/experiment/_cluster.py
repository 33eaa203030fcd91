"""Hand the runs to a Dask cluster, whose workers can be on any machines and need no shared disk.

If a worker dies, the scheduler gives its run to another one.
"""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any
from uuid import uuid4

from posenc_course.experiment._files import brief
from posenc_course.experiment._pool import News, Work, do
from posenc_course.experiment.config import Run


def require_scheduler(given: object) -> dict[str, str]:
    """Return how a client takes this scheduler; raise a ValueError unless it's an address or a file, and Dask is installed."""
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ValueError(f"a scheduler takes the package distributed ({error}): pip install distributed") from error
    if Path(str(given)).is_file():
        return {"scheduler_file": str(given)}
    if not re.search(r"://|:\d+$", str(given)):
        raise ValueError(f"no scheduler has the address or file {given!r}: give tcp://10.0.0.1:8786, for example")
    return {"address": str(given)}


def run_there(work: Work, runs: Sequence[Run], scheduler: dict[str, str], tell: Callable[[News], object]) -> None:
    """Do the work of all runs on this scheduler's cluster, and pass on their reports; an error in a run is raised here."""
    from distributed import Client, KilledWorker

    waiting, topic = {run.name: run for run in runs}, f"posenc_course-{uuid4()}"
    arrived: SimpleQueue[Any] = SimpleQueue()  # reports of progress, and futures that are done
    with Client(**scheduler, set_as_default=False) as client:
        client.subscribe_topic(topic, lambda event: arrived.put(event[1]))
        for future in client.map(partial(_do_there, work, topic), runs, key=[f"{name}-{topic}" for name in waiting]):
            future.add_done_callback(arrived.put)
        while waiting:
            item = arrived.get()
            if isinstance(item, tuple | list):
                name, *progress = item
                if name in waiting:  # its last report may come after its result
                    tell(News(waiting[name], *progress))
                continue
            try:
                news = item.result()
            except (KilledWorker, CancelledError) as error:
                raise ChildProcessError(f"the cluster gave up: {brief(error)} The same command continues from there") from error
            item.release()  # so that it isn't done again when its worker ends
            tell(news)
            del waiting[news.run.name]


def _do_there(work: Work, topic: str, run: Run) -> News:
    from distributed import get_worker

    worker = get_worker()
    if (threads := worker.state.nthreads) > 1:
        raise ValueError(f"{worker.address} has {threads} threads, which would share torch's: start workers with --nthreads 1")
    return do(work, run, lambda news: worker.log_event(topic, (run.name, news.step, news.steps, news.loss)))
