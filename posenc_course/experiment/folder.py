"""A folder of runs: made in any order, by any number of processes and machines, and merged into one table (chapter 12)."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from posenc_course._validation import require_integer
from posenc_course.experiment._files import config_from, read_run, restore, save_run, write_whole
from posenc_course.experiment._pool import News, Report, spread
from posenc_course.experiment._require import choose, require_device, require_folder, require_type
from posenc_course.experiment.config import PARTS, PRESETS, SCHEMES, Config, Run
from posenc_course.experiment.corpus import DATA, load_corpus
from posenc_course.experiment.runs import measure, train_run
from posenc_course.transformer import Decoder


def run_experiment(
    config: Config,
    folder: str | Path,
    *,
    schemes: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    parts: Sequence[str] | None = None,
    device: str = "cpu",
    jobs: int = 1,
    say: Callable[[str], object] = print,
) -> None:
    """Make the runs that `folder` does not hold yet, `jobs` at a time; runs that it holds are checked and kept.

    Interrupted, it loses what was in the making, and the same call goes on from there to the same numbers. `say` gets lines of
    progress. Raises ValueError, before anything is written, for arguments that are impossible, for a folder that another
    configuration was begun in, and for a run that is not whole. Chapter 12.
    """
    runs = require_type("config", config, Config, "take preset('quick')").runs(schemes, seeds, parts)
    require_device(device)
    jobs = require_integer("jobs", jobs, minimum=1, hint="it is how many processes work; as many as there are cores is usual")
    load_corpus()
    folder = _require_path(folder)
    _require_config_of(folder, config)
    missing = [run for run in runs if not _made(folder, run)]
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "config.json", (json.dumps(config.as_json(), indent=1) + "\n").encode())
    say(f"{len(runs)} runs, {len(runs) - len(missing)} of them already in {folder}")
    clock = _Clock(len(missing))

    def tell(news: News) -> None:
        result = None if news.loss is not None else _summary(read_run(folder / f"{news.run.name}.npz")["record"])
        say(clock.line(news, result))

    spread(partial(_perform, config, folder, device), missing, jobs, tell)


def _perform(config: Config, folder: Path, device: str, run: Run, report: Report) -> None:
    model, record = train_run(config, run, device=device, progress=report)
    save_run(folder / f"{run.name}.npz", model, config, record, _provenance(device))


def evaluate_again(
    folder: str | Path,
    *,
    schemes: Sequence[str] | None = None,
    parts: Sequence[str] | None = None,
    device: str = "cpu",
    say: Callable[[str], object] = print,
) -> None:
    """Measure stored models of a folder anew, all or those of these schemes and parts, and replace the old measurements.

    Raises ValueError, before anything is written, for runs that are not whole. Chapter 12.
    """
    schemes = choose("scheme", SCHEMES if schemes is None else schemes, SCHEMES)
    parts = choose("part", PARTS if parts is None else parts, PARTS)
    require_device(device)
    stored = [(path, read_run(path)) for path in _paths(folder)]
    for path, one in stored:
        if one["record"]["scheme"] not in schemes or one["record"]["part"] not in parts:
            continue
        model, config, run = restore(one, device)
        record = one["record"] | {"evaluation": measure(model, config, run)}
        same = "as stored" if record == one["record"] else "not as stored"
        save_run(path, model, config, record, one["made"] | {"evaluated": _provenance(device)})
        say(f"{run.name}: {_summary(record)}, {same}")


def merge(folder: str | Path) -> dict[str, Any]:
    """The records of all runs in a folder, and how they were made: {"config", "made": [...], "runs": [...]}. Chapter 12.

    Raises ValueError for runs that are not whole, and for runs of several configurations.
    """
    stored = [read_run(path) for path in _paths(folder)]
    config = config_from(stored[0]["config"])
    for one in stored:
        if config_from(one["config"]) != config:
            raise ValueError(
                f"{folder} holds runs of several configurations, {_difference(config, one['config'])}: separate them"
            )
    order = {run: number for number, run in enumerate(config.runs(parts=None))}
    runs = sorted((one["record"] for one in stored), key=lambda record: order.get(_run_of(record), len(order)))
    made = [one["made"] for one in stored]
    unique = [json.loads(text) for text in dict.fromkeys(json.dumps(one) for one in made)]
    command = "python -m posenc_course.experiment run --preset " + config.name
    known = {"command": command} if config == PRESETS.get(config.name) else {}
    return known | {"config": config.as_json(), "made": unique, "runs": runs}


def load_results(results: str | Path = "full") -> dict[str, Any]:
    """Measured results: of a preset, as they come with the package, or of a folder of runs, or of a file that `report` made.

    {"config": the configuration, "made": [how: versions, machine, date, corpus], "runs": [one record per run]}. A record has
    "part", "scheme", "seed", "setting", "losses" (training, means of ten steps), "gradient_norm", "evaluation", "cpu_seconds".
    Raises ValueError if there are none, or not whole ones. Chapter 12.
    """
    path = _require_path(results)
    if path.is_dir():
        return merge(path)
    packaged = DATA / "experiment" / f"{results}.json"
    path = packaged if packaged.is_file() else path
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        found["config"], found["made"], found["runs"][0]["evaluation"]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"no whole results in {str(results)!r}: take 'quick', 'full', a folder of runs, or a report's file"
        ) from error
    return found


def load_model(scheme: str, seed: int = 0, *, folder: str | Path | None = None) -> Decoder:
    """A decoder that learned the text with this scheme, ready to be evaluated; without a folder, one of the quick preset's.

    The package holds seed 0 of every scheme, and seeds 0, 1, 2 of RoPE. Raises ValueError for models that are not there.
    Chapter 12.
    """
    where = DATA / "models" if folder is None else require_folder(folder)
    path = where / f"{Run('text', scheme, seed).name}.npz"
    if not path.is_file():
        there = sorted(other.stem.removeprefix("text-") for other in where.glob("text-*.npz"))
        raise ValueError(f"no model of scheme {scheme!r} and seed {seed!r}: there are {', '.join(there) or 'none'}")
    return restore(read_run(path))[0]


def save_report(folder: str | Path, path: str | Path) -> None:
    """Merge the runs of a folder into one file, a line for each run. Chapter 12."""
    merged = merge(folder)
    lines = ",\n".join(json.dumps(run) for run in merged["runs"])
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in merged.items() if key != "runs")
    write_whole(_require_path(path), f'{{{head}"runs": [\n{lines}\n]}}\n'.encode())


def _summary(record: dict[str, Any]) -> str:
    """One record in a few words: what it loses, or how often it is right, at each length. Chapter 12."""
    evaluation = record["evaluation"]
    if "accuracy" in evaluation:
        return "right at " + ", ".join(f"{L}: {share:.0%}" for L, share in evaluation["accuracy"].items())
    return "nats at " + ", ".join(f"{L}: {loss:.3f}" for L, loss in evaluation["plain"]["nonoverlapping"].items())


def _provenance(device: str = "cpu") -> dict[str, Any]:
    """Where and with what this process computes. Chapter 12."""
    where = require_device(device)
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        processor = names[0] if names else processor
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.system(),
        "processor": f"{processor}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}",
        "device": torch.cuda.get_device_name(where) if where.type == "cuda" else where.type,
        "corpus": load_corpus().sha256,
    }


class _Clock:
    """How long the rest will take, if it goes on as it went so far, a run being as long as another."""

    def __init__(self, total: int) -> None:
        self.total, self.finished, self.began = total, 0, time.monotonic()
        self.under_way: dict[Run, float] = {}

    def line(self, news: News, result: str | None) -> str:
        """What there is to say about the news, `result` if the run is done."""
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
        raise ValueError(f"a path must be text or a Path, got {path!r}: give for example 'runs'")
    return Path(path)


def _paths(folder: str | Path) -> list[Path]:
    paths = sorted(require_folder(folder).glob("*.npz"))
    if not paths:
        raise ValueError(f"no runs in {str(folder)!r}: make some with `run`")
    return paths


def _made(folder: Path, run: Run) -> bool:
    path = folder / f"{run.name}.npz"
    return path.exists() and bool(read_run(path))


def _require_config_of(folder: Path, config: Config) -> None:
    path = folder / "config.json"
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is no folder: give one, or a name for a new one")
    if not path.exists():
        if folder.exists() and any(folder.glob("*.npz")):
            raise ValueError(f"{folder} holds runs and no config.json: give another folder")
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not whole: delete it together with the runs beside it, or give another folder") from error
    if stored != config.as_json():
        raise ValueError(f"{folder} was begun with another configuration, {_difference(config, stored)}: give another folder")


def _difference(config: Config, stored: dict[str, Any]) -> str:
    key, value = next((key, value) for key, value in config.as_json().items() if stored.get(key) != value)
    return f"{key}={stored.get(key)} instead of {value}"


def _run_of(record: dict[str, Any]) -> Run:
    return Run(*(record[key] for key in ("part", "scheme", "seed", "setting")))
