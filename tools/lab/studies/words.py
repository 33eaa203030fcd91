"""Trainings that chapters 2 and 5 have no time for: a model says the previous word.

In chapter 2, its lengths vary; in chapter 5, words start small or large.
"""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from posenc_course.naive import NormalizedPositions
from posenc_course.sinusoidal import SinusoidalPositions
from posenc_course.training import train
from posenc_course.transformer import Encoder
from tools.lab.schemes import BesidePositions
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


def right(model: Encoder, length: int) -> Tensor:
    """The share of right answers, on 256 new texts."""
    sample = say_the_word_before([length], model.embedding.num_embeddings, batch=256)
    tokens, before = sample(torch.Generator().manual_seed(1))
    with torch.no_grad():
        return (model(tokens).argmax(dim=-1) == before).double().mean()


# ── chapter 2: normalized positions, trained at one length or at three ───────────────────────────────────────────────────


def word_before(run: Record) -> Record:
    """The share of right answers at several lengths."""
    torch.manual_seed(run["seed"])
    model = Encoder(16, 32, num_heads=4, num_layers=2, scheme=NormalizedPositions(32))
    train(model, say_the_word_before(run["trained_at"], 16), steps=run["steps"], learning_rate=6e-3, seed=run["seed"])
    lengths = (10, 12, 15, 20, 25, 30, 40)
    return {"right": {str(n): rounded(right(model, n), 4) for n in lengths}}


# ── chapter 5: how soon a model learns ───────────────────────────────────────────────────────────────────────────────────

# The position is added, or stands in a part of the channels, or is mapped with the word in a model with as many parameters.
COMBINATIONS = ("", "append 1/4, ", "append 1/2, ", "project, ")
# The standard deviation σ of a word's numbers, as a power of the width.
SIZES = {"σ = 1": 0.0, "σ = 1/√d": -0.5}


def build(start: str, width: int, seed: int) -> Encoder:
    """The model before its first step."""
    torch.manual_seed(seed)
    kind, _, size = start.rpartition(", ")
    spread, narrow = width ** SIZES[size], width - width // 16
    if kind == "project":
        model = Encoder(32, narrow, 2, 1, BesidePositions(width - width // 8, narrow))
    else:
        model = Encoder(32, width, 2, 1, BesidePositions(width // int(kind[-1])) if kind else SinusoidalPositions(width))
    with torch.no_grad():
        model.embedding.weight.mul_(spread)
    return model


def word_size(run: Record) -> Record:
    """The step at which the mean of the last ten losses is below 1, or None."""
    model, sample = build(run["start"], run["width"], run["seed"]), say_the_word_before([20], 32)
    losses = train(model, sample, steps=400, learning_rate=run["rate"], seed=run["seed"]).losses
    return {"learned": next((step for step in range(10, 401) if sum(losses[step - 10 : step]) < 10), None)}


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
        "how soon a model learns if its word vectors start small or large, at two widths (minutes)",
        [
            {"start": f"{kind}{size}", "width": width, "rate": 3e-3, "seed": seed}
            for kind, size, width, seed in product(COMBINATIONS, SIZES, (64, 128), range(3))
        ],
        word_size,
        config={"vocabulary": 32, "length": 20, "batch": 32, "heads": 2, "layers": 1, "steps": 400},
        again=((0, 6),),
    ),
]
