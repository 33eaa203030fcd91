"""The experiments behind the second round of predictions, for the page on newer claims and the chapters that it links to.

    python tools/lab/second_round.py

Each run is stored in its own file in _experiment/second_round, so that an interrupted call can continue; the table of all runs
goes to posenc_course/data/second_round.json. Together, they take ten minutes on one core. A run is named after its
prediction in book/predictions.toml, and after what distinguishes it from the others:

- t5-trained: chapter 9's training, with the usual buckets of T5's bias, and with buckets that its texts reach.
- cache-positions: the package's models with RoPE see the first bytes beside a window, at two kinds of positions.
- mask-three: RoPE in three of four layers, trained on text, and then with a mask in these three, or in the other one.
- recurrent-short: recurrent layers learn to find pairs if each token's vector also gets a learned map of the vector before.
- selective-slow: selective rotations whose learned steps are multiplied by a rate, in each part of the preset newer.

A record has "found": the losses in nats, or the shares of right answers, at one, two, four and eight times the training length.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course.contextual import RecurrentPositions, SelectiveRotaryPositions
from posenc_course.experiment import _parts, changed, load_corpus, load_model, preset, runs
from posenc_course.experiment.config import Config, build_model
from posenc_course.experiment.config import Run as Trained
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.evaluation import evaluate_text
from posenc_course.relative import T5Positions, WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies
from posenc_course.training import train
from posenc_course.transformer import Decoder, Encoder
from tools.lab.stored import carry_out

FOLDER = Path("_experiment/second_round")
TABLE = DATA / "second_round.json"
CONFIG = preset("newer")
WINDOW, FIRST = CONFIG.length, 4  # bytes: as many as in training, and those that stay visible at the beginning of a text
BUCKETS = {"usual buckets": (32, 128), "32 buckets up to 16": (32, 16), "16 buckets up to 8": (16, 8)}  # number, max_distance


class Run(NamedTuple):
    """One measurement of one model: its prediction, what distinguishes it, and the seed."""

    prediction: str
    what: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.prediction}-{self.what}-{self.seed}.json".replace(" ", "_")


# ── Models of the preset newer with other schemes ────────────────────────────────────────────────────────────────────────


class ShortPositions(RecurrentPositions):
    """A recurrent layer's gates; if it's the first layer, each token's vector also gets a map of the vector before."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model, num_heads)
        self.short = nn.Linear(d_model, d_model, bias=False)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + F.pad(self.short(x[:, :-1]), (0, 0, 1, 0))


def slow(rate: float, sizes: Config) -> list[PositionScheme]:
    omega = frequencies(sizes.d_head)
    return [SelectiveRotaryPositions(sizes.d_model, sizes.num_heads, omega, rate) for _ in range(sizes.num_layers)]


def short(sizes: Config) -> list[PositionScheme]:
    rest = [RecurrentPositions(sizes.d_model, sizes.num_heads) for _ in range(sizes.num_layers - 1)]
    return [ShortPositions(sizes.d_model, sizes.num_heads), *rest]


def trained(
    part: str,
    scheme: str,
    seed: int,
    build: Callable[[Config], PositionScheme | list[PositionScheme]],
    config: Config = CONFIG,
    change: Callable[[Decoder], Decoder] = lambda model: model,
) -> tuple[Decoder, list[float]]:
    """A model of the preset newer, whose scheme is built by `build` in place of the usual one, and what it reaches.

    Before it is trained, it's passed through `change`.
    """
    with (
        patch.dict("posenc_course.experiment.config.ALL_SCHEMES", {scheme: build}),
        patch.object(runs, "build_model", lambda *of: change(build_model(*of))),
        patch.object(_parts, "changes_of", lambda model: ()),  # nothing but the model itself is measured
    ):
        model, record = runs.train_run(config, Trained(part, scheme, seed))
    table = record["evaluation"]
    return model, [*(table["plain"]["nonoverlapping"] if part == "text" else table["accuracy"]).values()]


# ── Trained models of text, with other things in sight ───────────────────────────────────────────────────────────────────


class KeptPositions(PositionScheme):
    """RoPE for queries that see the first bytes of the text beside a window, which together are as many as `kept`.

    With `within`, positions are counted within what is kept, as in StreamingLLM (Xiao et al. 2024): seen from a late query, the
    first keys are just before the window. The other keys' distances are the same with both kinds of positions.
    """

    def __init__(self, rope: RotaryPositions, first: int, kept: int, *, within: bool) -> None:
        super().__init__()
        self.rope, self.first, self.kept, self.within = rope, first, kept, within

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        self.query = q  # not rotated yet
        self.rotated = self.rope.rotate(q, k, q_positions, k_positions)
        return self.rotated

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        beginning = k_positions < self.first
        dropped = (q_positions[:, None] - k_positions >= self.kept - self.first) & ~beginning
        bias = torch.zeros(dropped.shape).masked_fill(dropped, -math.inf)
        if not self.within:
            return bias
        query, key = self.rotated
        earlier, _ = self.rope.rotate(self.query, key, q_positions.clamp(max=self.kept - 1), k_positions)
        return bias + torch.where(beginning, (earlier - query) @ key.mT / math.sqrt(q.shape[-1]), 0.0)


def with_schemes(model: Decoder, change: Callable[[PositionScheme], PositionScheme], layers: slice = slice(None)) -> Decoder:
    """A copy of the model in which `change` is applied to the scheme of each of the layers."""
    model = copy.deepcopy(model)
    for block in model.blocks[layers]:
        block.attention.scheme = change(block.attention.scheme)  # type: ignore[union-attr, arg-type]
    return model


def losses(model: Decoder) -> list[float]:
    """The losses in nats on the experiment's unseen bytes, in windows of one to eight times the training length."""
    return [*evaluate_text(model, CONFIG, load_corpus().validation)["plain"]["nonoverlapping"].values()]


def masked(scheme: PositionScheme) -> PositionScheme:
    return WindowedPositions(scheme, WINDOW)


# ── Chapter 9's training ─────────────────────────────────────────────────────────────────────────────────────────────────


def word_before(length: int, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    text = torch.randint(16, (batch, length), generator=generator)
    target = text.roll(1, dims=1)
    target[:, 0] = -100
    return text, target


@torch.no_grad()
def right(model: Encoder, length: int) -> float:
    text, target = word_before(length, 128, torch.Generator().manual_seed(1))
    return round((model(text).argmax(dim=-1) == target)[:, 1:].double().mean().item(), 4)


# ── The runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def selective_slow(what: str, seed: int) -> list[float]:
    part, rate = what.split()
    return trained(part, "selective", seed, partial(slow, float(rate)))[1]


def recurrent_short(what: str, seed: int) -> list[float]:
    return trained(what, "recurrent", seed, short)[1]


@cache
def mixed(seed: int) -> Decoder:
    return runs.train_run(CONFIG, Trained("text", "rope-none", seed))[0]


def mask_three(what: str, seed: int) -> list[float]:
    layers = {"no mask": slice(0), "mask in three": slice(3), "mask in the fourth": slice(3, 4)}[what]
    return losses(with_schemes(mixed(seed), masked, layers))


def t5_trained(what: str, seed: int) -> list[float]:
    torch.manual_seed(seed)
    model = Encoder(16, 32, 4, 1, T5Positions(4, *BUCKETS[what], causal=False))
    train(model, partial(word_before, 20, 32), steps=150, learning_rate=6e-3, seed=seed)
    return [right(model, 20 * multiple) for multiple in CONFIG.multiples]


def cache_positions(what: str, seed: int) -> list[float]:
    model = load_model("rope", seed)
    if what.startswith("first"):
        kept = KeptPositions(model.scheme, FIRST, WINDOW, within=what.endswith("kept"))  # type: ignore[arg-type]
        return losses(with_schemes(model, lambda scheme: kept))
    bytes_ = {"all": CONFIG.longest, "window": WINDOW, "smaller window": WINDOW - FIRST}[what]
    return losses(changed(model, "window", CONFIG.longest, bytes_))


MEASURE: dict[str, Callable[[str, int], list[float]]] = {
    "t5-trained": t5_trained,
    "cache-positions": cache_positions,
    "mask-three": mask_three,
    "recurrent-short": recurrent_short,
    "selective-slow": selective_slow,
}
WHATS = {
    "t5-trained": [*BUCKETS],
    "cache-positions": ["all", "window", "smaller window", "first, positions in the text", "first, positions in what is kept"],
    "mask-three": ["no mask", "mask in three", "mask in the fourth"],
    "recurrent-short": ["recall"],
    "selective-slow": [f"{part} {rate}" for rate in (0.1, 0.01) for part in CONFIG.parts],
}


def plan() -> list[Run]:
    return [Run(prediction, what, seed) for prediction in MEASURE for what in WHATS[prediction] for seed in CONFIG.seeds]


def measure(run: Run) -> dict[str, Any]:
    return run._asdict() | {"found": MEASURE[run.prediction](run.what, run.seed)}


def main(folder: Path = FOLDER, table: Path = TABLE) -> None:
    carry_out("python tools/lab/second_round.py", CONFIG.as_json(), plan(), measure, folder, table)


if __name__ == "__main__":
    main()
