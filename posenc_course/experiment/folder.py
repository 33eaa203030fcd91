"""A folder of runs: made in any order, by any number of processes and machines, and merged into one table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from posenc_course._system import write_whole
from posenc_course._validation import require_integer
from posenc_course.experiment._cluster import require_scheduler, run_there
from posenc_course.experiment._files import (
    ODD,
    brief,
    config_from,
    packed,
    provenance,
    read_run,
    restore,
    run_of,
    save_run,
    write_runs,
)
from posenc_course.experiment._parts import PARTS
from posenc_course.experiment._pool import News, Report, run_all
from posenc_course.experiment._possible import require_possible
from posenc_course.experiment._require import choose, require_device, require_folder, require_type
from posenc_course.experiment.config import ALL_SCHEMES, PRESETS, Config, Run
from posenc_course.experiment.corpus import DATA, load_corpus
from posenc_course.experiment.runs import measure, train_run
from posenc_course.transformer import Decoder

PACKAGED = tuple(name for name in PRESETS if (DATA / "experiment" / f"{name}.json").is_file())  # results that come along


def run_experiment(
    config: Config,
    folder: str | Path,
    *,
    schemes: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    parts: Sequence[str] | None = None,
    device: str = "cpu",
    jobs: int = 1,
    scheduler: str | None = None,
    say: Callable[[str], object] = print,
) -> None:
    """Train and measure the runs that `folder` doesn't hold yet, `jobs` at a time; runs that it holds are checked and kept.

    With a `scheduler`, the address or the file of a Dask scheduler, its workers do them instead, and `device` is one of theirs.
    After an interruption, unfinished runs are lost, and the same call continues and gets the same numbers. `say` is called with
    lines of progress. Raises ValueError, before anything is trained or written, for impossible arguments, for sizes that need
    more text or memory than there is, for a folder that was begun with another configuration, and for incomplete runs.
    """
    runs = require_type("config", config, Config, "pass preset('quick')").runs(schemes, seeds, parts)
    if not runs:
        raise ValueError(f"none of the schemes {config.schemes} is trained in the parts {config.parts}: change one of them")
    jobs = require_integer("jobs", jobs, minimum=1, hint="it is the number of parallel processes; one per core is usual")
    there = None if scheduler is None else require_scheduler(scheduler)
    require_possible(config, runs, None if there else device, load_corpus())
    folder = _require_path(folder)
    _require_config_of(folder, config)
    missing = [run for run in runs if not _made(folder, run, config)]
    write_whole(folder / "config.json", (json.dumps(config.as_json(), indent=1) + "\n").encode())
    say(f"{len(runs)} runs, {len(runs) - len(missing)} of them already in {folder}")
    clock = _Clock(len(missing))

    def tell(news: News) -> None:
        result, path = None, folder / f"{news.run.name}.npz"
        if news.loss is None:
            write_whole(path, news.content)
            result = _summary(read_run(path)["record"])
        say(clock.line(news, result))

    work = partial(_perform, config, device)
    if there:
        run_there(work, missing, there, tell)
    else:
        run_all(work, missing, jobs, tell)


def _perform(config: Config, device: str, run: Run, report: Report) -> bytes:
    model, record = train_run(config, run, device=device, progress=report)
    return packed(model, config, record, provenance(device))


def evaluate_again(
    folder: str | Path,
    *,
    schemes: Sequence[str] | None = None,
    parts: Sequence[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], object] = print,
) -> None:
    """Measure the stored models of a folder again, by default all of them, and replace the old measurements.

    `schemes` and `parts` select some of the models; `say` is called with one line per model. Raises ValueError, before anything
    is written, for incomplete runs, and if no model is selected.
    """
    schemes = choose("scheme", ALL_SCHEMES if schemes is None else schemes, ALL_SCHEMES)
    parts = choose("part", PARTS if parts is None else parts, PARTS)
    require_device(device)
    stored = [(path, read_run(path)) for path in _paths(folder)]
    chosen = [(path, one) for path, one in stored if one["record"]["scheme"] in schemes and one["record"]["part"] in parts]
    if not chosen:
        there = ", ".join(path.stem for path, _ in stored)
        raise ValueError(f"{str(folder)!r} has no run of these schemes and parts: it holds {there}")
    for path, one, (model, config, run) in [(path, one, restore(one, device)) for path, one in chosen]:
        record = one["record"] | {"evaluation": measure(model, config, run)}
        same = "as stored" if record == one["record"] else "not as stored"
        save_run(path, model, config, record, one["made"] | {"evaluated": provenance(device)})
        say(f"{run.name}: {_summary(record)}, {same}")


def merge(folder: str | Path) -> dict[str, Any]:
    """The records of all runs in a folder, and how they were made: {"config", "made": [...], "runs": [...]}.

    Raises ValueError for incomplete runs and for runs of several configurations.
    """
    stored = [read_run(path) for path in _paths(folder)]
    config = config_from(stored[0]["config"])
    for one in stored:
        if (other := config_from(one["config"])) != config:
            raise ValueError(f"{folder} holds runs of several configurations, {_difference(config, other)}: separate them")
    order = {run: number for number, run in enumerate(config.runs())}
    runs = sorted((one["record"] for one in stored), key=lambda record: order.get(run_of(record), len(order)))
    made = [one["made"] for one in stored]
    unique = [json.loads(text) for text in dict.fromkeys(json.dumps(one) for one in made)]
    command = "python -m posenc_course.experiment run --preset " + config.name
    known = {"command": command} if config == PRESETS.get(config.name) else {}
    return known | {"config": config.as_json(), "made": unique, "runs": runs}


def load_results(results: str | Path = "full") -> dict[str, Any]:
    """Load the results of a preset that come with the package, of a folder of runs, or of a file that `report` wrote.

    Returns {"config": the configuration, "made": [versions, machine, date and corpus], "runs": [one record per run]}. A record
    has "part", "scheme", "seed", "setting", "losses" (in training, means over ten steps), "gradient_norm", "evaluation" and
    "cpu_seconds". Raises ValueError if the results are missing or incomplete.
    """
    path = _require_path(results)
    if path.is_dir():
        return merge(path)
    packaged = DATA / "experiment" / f"{results}.json"
    path = packaged if packaged.is_file() else path
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        config_from(found["config"]), found["made"]
        runs = [run_of(record) for record in found["runs"]]
        if not runs or len({*runs}) < len(runs):
            raise ValueError("no runs, or one of them twice")
    except ODD as error:
        raise ValueError(
            f"no complete results in {str(results)!r} ({brief(error)}): use {', '.join(PACKAGED)}, a folder of runs, or a "
            "file that `report` wrote"
        ) from error
    return found


def load_model(scheme: str, seed: int = 0, *, part: str = "text", folder: str | Path | None = None) -> Decoder:
    """Load a decoder trained with this scheme in a part that has no settings, from a folder of runs or from the package.

    For "text", the package has the models of the quick preset, and for "recite", those of seven schemes. It has seed 0 of each
    of these schemes, and of RoPE also seeds 1 and 2. The model is ready to be evaluated. Raises ValueError if there is no such
    model.
    """
    where = DATA / "models" if folder is None else require_folder(folder)
    path = where / f"{Run(part, scheme, seed).name}.npz"
    if not path.is_file():
        there = sorted(other.stem.removeprefix(f"{part}-") for other in where.glob(f"{part}-*.npz"))
        raise ValueError(f"no model of scheme {scheme!r} and seed {seed!r}: there are {', '.join(there) or 'none'}")
    return restore(read_run(path))[0]


def save_report(folder: str | Path, path: str | Path) -> None:
    """Merge the runs of a folder into one file, with one line for each run."""
    merged = merge(folder)
    runs = merged.pop("runs")
    write_runs(_require_path(path), merged, runs)


def _summary(record: dict[str, Any]) -> str:
    """Summarize one record: its loss, or its share of right answers, at each length."""
    part = PARTS[record["part"]]
    words, form = part.summary
    return f"{words} " + ", ".join(f"{L}: {number:{form}}" for L, number in part.main(record["evaluation"]).items())


class _Clock:
    """An estimate of the time that is left, as if all runs took equally long."""

    def __init__(self, total: int) -> None:
        self.total, self.finished, self.began = total, 0, time.monotonic()
        self.under_way: dict[Run, float] = {}

    def line(self, news: News, result: str | None) -> str:
        """Return the line that reports the news; `result` is the summary of a finished run, and otherwise None."""
        if result is None:
            self.under_way[news.run] = news.step / news.steps
            said = f"step {news.step} of {news.steps}, loss {news.loss:.3f} nats"
        else:
            self.under_way.pop(news.run, None)
            self.finished += 1
            said = result
        done, passed = self.finished + sum(self.under_way.values()), time.monotonic() - self.began
        left = f"about {passed / done * (self.total - done):.0f} s left"
        return f"[{self.finished}/{self.total}, {passed:.0f} s, {left}] {news.run.name}: {said}"


def _require_path(path: object) -> Path:
    if not isinstance(path, str | Path):
        raise ValueError(f"a path must be text or a Path, got {path!r}: give 'runs', for example")
    return Path(path)


def _paths(folder: str | Path) -> list[Path]:
    paths = sorted(require_folder(folder).glob("*.npz"))
    if not paths:
        raise ValueError(f"no runs in {str(folder)!r}: make some with `run`")
    return paths


def _made(folder: Path, run: Run, config: Config) -> bool:
    """Return whether the folder holds the run; raise a ValueError if it is incomplete or has another configuration."""
    path = folder / f"{run.name}.npz"
    if not path.exists():
        return False
    if (other := config_from(read_run(path)["config"])) != config:
        raise ValueError(f"{path} was made with another configuration, {_difference(config, other)}: give another folder")
    return True


def _require_config_of(folder: Path, config: Config) -> None:
    path = folder / "config.json"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: give one, or a name for a new one")
    if not path.exists():
        if folder.exists() and any(folder.glob("*.npz")):
            raise ValueError(f"{folder} holds runs but no config.json: give another folder")
        return
    try:
        stored = config_from(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is not complete ({brief(error)}): delete it together with the runs beside it, or give another folder"
        ) from error
    if stored != config:
        raise ValueError(f"{folder} was begun with another configuration, {_difference(config, stored)}: give another folder")


def _difference(config: Config, stored: Config) -> str:
    there = stored.as_json()
    key, value = next((key, value) for key, value in config.as_json().items() if there[key] != value)
    return f"{key}={there[key]} instead of {value}"
