"""Trains the experiment's small decoder without positions at five learning rates, as a reference for chapters 8 and 12.

    python tools/lab/no_positions.py

The experiment's parts "rate" and "scale" train a small decoder with two schemes; this trains it in the same way without
positions, and writes posenc_course/data/no_positions.json, which `load_results` reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import posenc_course
from posenc_course.experiment import Run, preset
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.config import RATES
from posenc_course.experiment.runs import train_run

TABLE = Path(posenc_course.__file__).parent / "data" / "no_positions.json"
CONFIG = preset("full")


def plan() -> Iterator[Run]:
    yield from (Run("rate", "none", seed, rate) for rate in RATES for seed in CONFIG.seeds)


def main(table: Path = TABLE) -> None:
    runs = []
    for run in plan():
        _, record = train_run(CONFIG, run)
        runs.append(record)
        print(run.name, record["evaluation"]["plain"]["nonoverlapping"], flush=True)
    head = {"command": "python tools/lab/no_positions.py", "config": CONFIG.as_json(), "made": [provenance()]}
    write_runs(table, head, runs)


if __name__ == "__main__":
    main()
