"""Small recorded experiments, each of them a `Study`: its runs, how one is measured, and the table that they make.

    python -m tools.lab.study                    # lists the studies
    python -m tools.lab.study word_size          # makes the table of one

The table of all runs goes to posenc_course/data/NAME.json; then run `make checksums`.
"""

import copy
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch

from posenc_course.experiment import load_corpus, runs
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.config import Build, Config, Run, build_model, preset
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.evaluation import evaluate_text, pieces
from posenc_course.schemes import PositionScheme
from posenc_course.transformer import Decoder

TOPICS = ("claims", "gates", "lengths", "recital", "words")  # the files in tools/lab/studies
NEWER = preset("newer")
Record = dict[str, Any]


class Study(NamedTuple):
    """A recorded experiment.

    Args:
        name: its table is posenc_course/data/NAME.json.
        what: what it finds out, and how long that takes on one core.
        plan: the settings of its runs, in the order of the table. A setting begins its run's record.
        measure: the rest of the record, for a setting.
        config: what all runs have in common.
        beside: what the table has beside the runs, found out at the end.
        predictions: what was predicted, by the names in book/predictions.toml.
        again: runs that a test measures again, and by how much their numbers may differ; small models differ a little between
            processors, and more so at eight times their length.
    """

    name: str
    what: str
    plan: list[Record]
    measure: Callable[[Record], Record]
    config: Record | None = None
    beside: Callable[[], Record] = dict
    predictions: tuple[str, ...] = ()
    again: tuple[tuple[int, float], ...] = ((0, 0.1),)

    @property
    def table(self) -> Path:
        """Where the results are."""
        return DATA / f"{self.name}.json"

    def runs(self) -> list[Record]:
        """The stored results."""
        found: list[Record] = json.loads(self.table.read_text("utf-8"))["runs"]
        return found


def studies() -> dict[str, Study]:
    """All studies, by their names."""
    return {study.name: study for topic in TOPICS for study in import_module(f"tools.lab.studies.{topic}").STUDIES}


def carry_out(study: Study) -> None:
    """Make all runs, and write the table."""
    # With small tensors, one thread is fastest.
    torch.set_num_threads(1)
    runs = []
    for setting in study.plan:
        runs.append(setting | study.measure(setting))
        print(f"{len(runs)} of {len(study.plan)}", runs[-1], flush=True)
    head: Record = {"command": f"python -m tools.lab.study {study.name}"} | ({"config": study.config} if study.config else {})
    write_runs(study.table, head | {"made": [provenance()]} | study.beside(), runs)


# ── what several studies do ──────────────────────────────────────────────────────────────────────────────────────────────


def unseen(number: int, length: int) -> torch.Tensor:
    """So many texts of the experiment's unseen half, int64 of shape (number, length)."""
    return pieces(load_corpus().validation, number, length).long()


def with_schemes(model: Decoder, change: Callable[[PositionScheme], PositionScheme], layers: slice = slice(None)) -> Decoder:
    """A copy of the model in which `change` is applied to the scheme of each of the layers."""
    model = copy.deepcopy(model)
    for block in model.blocks[layers]:
        block.attention.scheme = change(block.attention.scheme)  # type: ignore[union-attr, arg-type]
    return model


def trained(
    part: str, seed: int, build: Build, config: Config = NEWER, change: Callable[[Decoder], Decoder] = lambda model: model
) -> tuple[Decoder, list[float]]:
    """A model whose scheme is made by `build`, passed through `change`, and trained; and what it reaches."""
    run = Run(part, "none", seed)
    model = change(build_model(config, run, build))
    runs.fit(model, config, run)
    return model, reached(model, part)


def reached(model: Decoder, part: str = "text") -> list[float]:
    """The losses in nats on unseen text, or the shares of right answers, at one to eight times the training length."""
    if part == "text":  # nothing but the model itself is measured
        return [*evaluate_text(model, NEWER, load_corpus().validation)["plain"]["nonoverlapping"].values()]
    return [*runs.measure(model, NEWER, Run(part, "none", 0))["accuracy"].values()]


def rounded(numbers: torch.Tensor, digits: int = 3) -> Any:
    """A tensor's numbers as lists."""
    if numbers.ndim:
        return [rounded(each, digits) for each in numbers]
    return round(numbers.item(), digits) + 0.0


if __name__ == "__main__":
    for name in sys.argv[1:]:
        carry_out(studies()[name])
    if not sys.argv[1:]:
        print("\n".join(f"{study.name}: {study.what}" for study in studies().values()))
