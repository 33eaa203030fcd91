"""How soon a model learns if its word vectors start small or large, at four widths: chapter 5's training, repeated.

    python tools/lab/word_size.py

Each run is stored in its own file in _experiment/word_size, so that an interrupted call can continue; the table of all runs
goes to posenc_course/data/word_size.json.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

import posenc_course
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import sinusoidal_table
from posenc_course.training import train
from posenc_course.transformer import Encoder
from tools.lab.stored import carry_out

FOLDER = Path("_experiment/word_size")
TABLE = Path(posenc_course.__file__).parent / "data" / "word_size.json"
VOCABULARY, LENGTH, BATCH, HEADS, STEPS = 32, 20, 32, 2, 400
WIDTHS, RATES, SEEDS = (32, 64, 128, 256), (3e-3, 1e-3), (0, 1, 2)
TRAINED = {"σ = 1/√d": (-0.5, 0.0), "σ = 1/√d, times √d": (-0.5, 0.5), "σ = 1": (0.0, 0.0), "σ = 1, times √d": (0.0, 0.5)}
FROZEN = {"frozen, loud position": -0.5, "frozen, a third": 0.0, "frozen, faint position": 0.5}
WAYS = {f"{way}, {size}": (way, size) for way in ("append 1/4", "append 1/2", "project") for size in ("σ = 1", "σ = 1/√d")}


class Run(NamedTuple):
    """One model: how its word vectors start, its width, the learning rate and the seed."""

    start: str
    width: int
    rate: float
    seed: int

    @property
    def name(self) -> str:
        number = [*TRAINED, *FROZEN, *WAYS].index(self.start)
        return f"{number}-{self.width}-{self.rate:g}-{self.seed}.json"


class Add(PositionScheme):
    """scale · (factor · x + PE)."""

    def __init__(self, factor: float, scale: float) -> None:
        super().__init__()
        self.factor, self.scale = factor, scale

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return self.scale * (self.factor * x + sinusoidal_table(positions, x.shape[-1]).to(x))


class Beside(PositionScheme):
    """The position in `places` channels beside the word: in the last channels, or combined by a learned map."""

    def __init__(self, places: int, project_to: int | None = None) -> None:
        super().__init__()
        self.places = places
        self.map = None if project_to is None else torch.nn.Linear(project_to + places, project_to)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        table = sinusoidal_table(positions, self.places).to(x).expand(*x.shape[:-1], -1)
        if self.map is None:
            return torch.cat((x[..., : -self.places], table), dim=-1)
        return self.map(torch.cat((x, table), dim=-1))


def say_the_word_before(generator: torch.Generator, batch: int = BATCH) -> tuple[Tensor, Tensor]:
    tokens = torch.randint(VOCABULARY, (batch, LENGTH), generator=generator)
    return tokens, torch.cat((tokens[:, :1], tokens[:, :-1]), dim=1)


def build(run: Run) -> Encoder:
    """The model before its first step: words with standard deviation σ, or frozen words with standard deviation 1.

    With frozen words, the sums are as long as those with σ = 1.
    """
    torch.manual_seed(run.seed)
    width, scheme = run.width, PositionScheme()
    if run.start in WAYS:
        way, size = WAYS[run.start]
        spread = width ** TRAINED[size][0]
        if way == "project":  # narrower, so that it has as many parameters
            width -= width // 16
            scheme = Beside(run.width - run.width // 8, width)
        else:
            scheme = Beside(width // int(way[-1]))
    elif run.start in TRAINED:
        spread, factor = (width**power for power in TRAINED[run.start])
        scheme = Add(factor, 1.0)
    else:
        spread, factor = 1.0, width ** FROZEN[run.start]
        scheme = Add(factor, (1.5 / (factor**2 + 0.5)) ** 0.5)
    model = Encoder(VOCABULARY, width, HEADS, 1, scheme)
    with torch.no_grad():
        model.embedding.weight.mul_(spread)
    model.embedding.weight.requires_grad_(run.start not in FROZEN)
    return model


class Learned(Exception):
    """Raised when the mean of the last ten losses is below 1."""


def measure(run: Run, steps: int = STEPS) -> dict[str, Any]:
    """Train until the model has learned the task, or for all steps; record this step and the final share of right answers."""
    model, losses = build(run), list[float]()

    def stop(step: int, loss: float) -> None:
        losses.append(loss)
        if len(losses) >= 10 and sum(losses[-10:]) < 10:
            raise Learned

    try:
        train(model, say_the_word_before, steps=steps, learning_rate=run.rate, seed=run.seed, progress=stop)
        learned = None
    except Learned:
        learned = len(losses)
    tokens, before = say_the_word_before(torch.Generator().manual_seed(100), batch=256)
    with torch.no_grad():
        right = (model(tokens).argmax(dim=-1) == before).double().mean().item()
    length = model.embedding.weight.norm(dim=1).mean().item()
    return run._asdict() | {"learned": learned, "right": round(right, 3), "words": round(length, 2)}


def plan() -> list[Run]:
    """All runs: each start at the first rate, trained starts whose positions aren't faint also at the second, and `WAYS`."""
    starts = [*TRAINED, *FROZEN]
    rows = [*product(starts, WIDTHS, RATES[:1], SEEDS), *product(list(TRAINED)[:3], WIDTHS, RATES[1:], SEEDS)]
    rows += product(WAYS, WIDTHS[1:3], RATES[:1], SEEDS)
    return [Run(*row) for row in rows]


def main(folder: Path = FOLDER, table: Path = TABLE) -> None:
    sizes = {"vocabulary": VOCABULARY, "length": LENGTH, "batch": BATCH, "heads": HEADS, "layers": 1, "steps": STEPS}
    carry_out("python tools/lab/word_size.py", sizes, plan(), measure, folder, table)


if __name__ == "__main__":
    main()
