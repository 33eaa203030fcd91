"""Trainings that chapters 2 and 5 have no time for: a model says the previous word.

In chapter 2, its lengths vary; in chapter 5, words start small or large, at four widths.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from posenc_course.naive import NormalizedPositions
from posenc_course.schemes import PositionScheme
from posenc_course.training import train
from posenc_course.transformer import Encoder
from tools.lab.schemes import BesidePositions, ScaledSum
from tools.lab.study import Record, Study, rounded


def say_the_word_before(
    lengths: list[int], vocabulary: int, batch: int = 32
) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    """Batches of random tokens, each batch with one of the lengths; the answer for each token is the one before it."""

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        which = torch.randint(len(lengths), (), generator=generator) if len(lengths) > 1 else 0
        tokens = torch.randint(vocabulary, (batch, lengths[which]), generator=generator)
        return tokens, torch.cat((tokens[:, :1], tokens[:, :-1]), dim=1)

    return sample


def right_by_place(model: Encoder, length: int, seed: int = 1) -> Tensor:
    """The share of right answers at each position, on 256 new texts."""
    sample = say_the_word_before([length], model.embedding.num_embeddings, batch=256)
    tokens, before = sample(torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return (model(tokens).argmax(dim=-1) == before).double().mean(dim=0)


# ── chapter 2: normalized positions, trained at one length or at three ───────────────────────────────────────────────────


def word_before(run: Record) -> Record:
    """The share of right answers at several lengths."""
    torch.manual_seed(run["seed"])
    model = Encoder(16, 32, num_heads=4, num_layers=2, scheme=NormalizedPositions(32))
    train(model, say_the_word_before(run["trained_at"], 16), steps=run["steps"], learning_rate=6e-3, seed=run["seed"])
    lengths = (10, 12, 15, 20, 25, 30, 40)
    return {"right": {str(n): rounded(right_by_place(model, n).mean(), 4) for n in lengths}}


# ── chapter 5: how soon a model learns ───────────────────────────────────────────────────────────────────────────────────

WIDTHS, RATES, SEEDS = (32, 64, 128, 256), (3e-3, 1e-3), (0, 1, 2)
# The standard deviation σ of a word's numbers and the factor before positions are added, as powers of the width.
TRAINED = {"σ = 1/√d": (-0.5, 0.0), "σ = 1/√d, times √d": (-0.5, 0.5), "σ = 1": (0.0, 0.0), "σ = 1, times √d": (0.0, 0.5)}
FROZEN = {"frozen, loud position": -0.5, "frozen, a third": 0.0, "frozen, faint position": 0.5}
WAYS = {f"{way}, {size}": (way, size) for way in ("append 1/4", "append 1/2", "project") for size in ("σ = 1", "σ = 1/√d")}


def build(start: str, width: int, seed: int) -> Encoder:
    """The model before its first step. Frozen words have σ = 1, and the sums are as long as those with σ = 1."""
    torch.manual_seed(seed)
    scheme: PositionScheme
    if start in WAYS:
        way, size = WAYS[start]
        spread = width ** TRAINED[size][0]
        if way == "project":  # narrower, so that it has as many parameters
            narrow = width - width // 16
            scheme, width = BesidePositions(width - width // 8, narrow), narrow
        else:
            scheme = BesidePositions(width // int(way[-1]))
    elif start in TRAINED:
        spread, factor = (width**power for power in TRAINED[start])
        scheme = ScaledSum(factor, 1.0)
    else:
        spread, factor = 1.0, width ** FROZEN[start]
        scheme = ScaledSum(factor, (1.5 / (factor**2 + 0.5)) ** 0.5)
    model = Encoder(32, width, 2, 1, scheme)
    with torch.no_grad():
        model.embedding.weight.mul_(spread)
    model.embedding.weight.requires_grad_(start not in FROZEN)
    return model


class Learned(Exception):
    """Raised when the mean of the last ten losses is below 1."""


def word_size(run: Record) -> Record:
    """The step at which the model has learned the task, or None; then the share of right answers, and the words' length."""
    model, losses = build(run["start"], run["width"], run["seed"]), list[float]()

    def stop(step: int, loss: float) -> None:
        losses.append(loss)
        if len(losses) >= 10 and sum(losses[-10:]) < 10:
            raise Learned

    try:
        sample = say_the_word_before([20], 32)
        train(model, sample, steps=400, learning_rate=run["rate"], seed=run["seed"], progress=stop)
        learned = None
    except Learned:
        learned = len(losses)
    right = right_by_place(model, 20, seed=100).mean()
    return {"learned": learned, "right": rounded(right), "words": rounded(model.embedding.weight.norm(dim=1).mean(), 2)}


# Each start at the first rate, trained starts whose positions aren't faint also at the second, and `WAYS` at two widths.
STARTS = [
    *product([*TRAINED, *FROZEN], WIDTHS, RATES[:1], SEEDS),
    *product([*TRAINED][:3], WIDTHS, RATES[1:], SEEDS),
    *product(WAYS, WIDTHS[1:3], RATES[:1], SEEDS),
]
LENGTHS = [{"trained_at": lengths, "steps": 1800, "seed": seed} for lengths in ([20], [10, 20, 40]) for seed in range(6)]
STUDIES = [
    Study(
        "word_before",
        "trained at several lengths, longer than chapter 2 can (ten minutes)",
        LENGTHS,
        word_before,
    ),
    Study(
        "word_size",
        "how soon a model learns if its word vectors start small or large, at four widths (minutes)",
        [dict(zip(("start", "width", "rate", "seed"), each, strict=True)) for each in STARTS],
        word_size,
        config={"vocabulary": 32, "length": 20, "batch": 32, "heads": 2, "layers": 1, "steps": 400},
        again=((0, 6),),
    ),
]
