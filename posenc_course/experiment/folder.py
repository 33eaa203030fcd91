"""A folder of runs: made in any order, by any number of processes and machines, and merged into one table."""

import json
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from posenc_course._system import write_whole
from posenc_course._validation import require_integer
from posenc_course.experiment._files import packed, provenance, read_run, restore, run_of, write_runs
from posenc_course.experiment._parts import PARTS
from posenc_course.experiment._pool import Progress, Report, run_all
from posenc_course.experiment._require import choose, require_device, require_type
from posenc_course.experiment.config import PRESETS, Config, Run
from posenc_course.experiment.corpus import DATA, load_corpus
from posenc_course.experiment.runs import train_run
from posenc_course.transformer import Decoder

SECONDS = 5  # between two reports of a run


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
    """Train and measure the runs that `folder` doesn't hold yet, `jobs` at a time; runs that it holds are checked and kept.

    After an interruption, unfinished runs are lost, and the same call continues and gets the same numbers. `say` is called with
    lines of progress. Raises ValueError, before anything is trained or written, for impossible arguments, for sizes that need
    more text than there is, for a folder that has runs of another configuration, and for incomplete runs.
    """
    runs = require_type("config", config, Config, "pass preset('quick')").runs(schemes, seeds, parts)
    if not runs:
        raise ValueError(f"none of the schemes {config.schemes} is trained in the parts {config.parts}: change one of them")
    jobs = require_integer("jobs", jobs, minimum=1, hint="it is the number of parallel processes; one per core is usual")
    require_device(device)
    for run in runs:
        PARTS[run.part].require_text(config.of(run), load_corpus())
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = {run_of(one["record"]) for one in _runs_in(folder, config)}
    missing = [run for run in runs if run not in made]
    say(f"{len(runs)} runs, {len(runs) - len(missing)} of them already in {folder}")
    began = time.monotonic()
    shares, told = dict[Run, float](), dict[Run, float]()  # how much of each run is done, and when that was said

    def tell(run: Run, news: Progress | bytes) -> None:
        passed = time.monotonic() - began
        if isinstance(news, bytes):
            path = folder / f"{run.name}.npz"
            write_whole(path, news)
            shares[run], said = 1.0, _summary(read_run(path)["record"])
        elif run in told and passed < told[run] + SECONDS:
            return
        else:
            step, steps, loss = news
            shares[run], said = step / (steps + 1), f"step {step} of {steps}, loss {loss:.3f} nats"
        told[run], done = passed, sum(shares.values())
        left = passed / done * (len(missing) - done)  # as if all runs took equally long
        finished = sum(share == 1 for share in shares.values())
        say(f"[{finished}/{len(missing)}, {passed:.0f} s, about {left:.0f} s left] {run.name}: {said}")

    run_all(partial(_perform, config, device), missing, jobs, tell)


def _perform(config: Config, device: str, run: Run, report: Report) -> bytes:
    model, record = train_run(config, run, device=device, progress=lambda *now: report(now))
    return packed(model, config, record, provenance(device))


def merge(folder: str | Path) -> dict[str, Any]:
    """The records of all runs in a folder, and how they were made: {"config", "made": [...], "runs": [...]}.

    Raises ValueError for incomplete runs and for runs of several configurations.
    """
    stored = _runs_in(Path(folder))
    if not stored:
        raise ValueError(f"no runs in {str(folder)!r}: make some with `run`")
    config = Config(**stored[0]["config"])
    order = {run: number for number, run in enumerate(config.runs())}
    runs = sorted((one["record"] for one in stored), key=lambda record: order.get(run_of(record), len(order)))
    made = {json.dumps(one["made"]): one["made"] for one in stored}
    merged = {"config": config.as_json(), "made": [*made.values()], "runs": runs}
    command = f"python -m posenc_course.experiment run --preset {config.name}"
    return {"command": command} | merged if config == PRESETS.get(config.name) else merged


def load_results(results: str | Path = "full") -> dict[str, Any]:
    """Load the results of a preset that come with the package, of a folder of runs, or of a file that `report` wrote.

    Returns {"config": the configuration, "made": [versions, machine, date and corpus], "runs": [one record per run]}. A record
    has "part", "scheme", "seed", "setting", "losses" (in training, means over ten steps), "gradient_norm", "evaluation" and
    "cpu_seconds". Raises ValueError if the results are missing or incomplete.
    """
    if Path(results).is_dir():
        return merge(results)
    packaged = DATA / "experiment" / f"{results}.json"
    try:
        found: dict[str, Any] = json.loads((packaged if packaged.is_file() else Path(results)).read_text(encoding="utf-8"))
        Config(**found["config"]), found["made"], [run_of(record) for record in found["runs"]]
    except Exception as error:
        raise ValueError(
            f"no complete results in {str(results)!r} ({error!r}): use {', '.join(PRESETS)}, a folder of runs, or a "
            "file that `report` wrote"
        ) from error
    return found


def load_model(scheme: str, seed: int = 0, *, part: str = "text", folder: str | Path | None = None) -> Decoder:
    """Load a decoder trained with this scheme in a part that has no settings, from a folder of runs or from the package.

    For "text", the package has the models of the quick preset, and for "recite", those of seven schemes. It has seed 0 of each
    of these schemes, and of RoPE also seeds 1 and 2. The model is ready to be evaluated. Raises ValueError if there is no such
    model.
    """
    if folder is None:
        choose("part", (part,), ("text", "recite"))
    where = zipfile.Path(DATA / "models" / f"{part}.zip") if folder is None else Path(folder)
    path = where / f"{Run(part, scheme, seed).name}.npz"
    if not path.is_file():
        there = sorted(other.stem.removeprefix(f"{part}-") for other in where.iterdir() if other.name.startswith(f"{part}-"))
        raise ValueError(f"no model of scheme {scheme!r} and seed {seed!r}: there are {', '.join(there) or 'none'}")
    return restore(read_run(path))


def save_report(folder: str | Path, path: str | Path) -> None:
    """Merge the runs of a folder into one file, with one line for each run."""
    merged = merge(folder)
    runs = merged.pop("runs")
    write_runs(Path(path), merged, runs)


def _summary(record: dict[str, Any]) -> str:
    """Summarize one record: its loss, or its share of right answers, at each length."""
    part = PARTS[record["part"]]
    words, form = part.summary
    return f"{words} " + ", ".join(f"{L}: {number:{form}}" for L, number in part.main(record["evaluation"]).items())


def _runs_in(folder: Path, config: Config | None = None) -> list[dict[str, Any]]:
    """Read all runs of a folder, without their weights, which may fill the memory.

    Raises ValueError for incomplete runs, and unless all have the given configuration, or one and the same.
    """
    found = [read_run(path) | {"weights": None} for path in sorted(folder.glob("*.npz"))]
    for one in found:
        stored = Config(**one["config"])
        config = config or stored
        for key, value in config.as_json().items():
            if (other := stored.as_json()[key]) != value:
                raise ValueError(
                    f"{folder} has runs of another configuration, {key}={other} instead of {value}: give another folder"
                )
    return found
