"""Six tasks with known answers, each for any length from 4 tokens on.

A task samples inputs (batch, L) and targets (batch, L), using only the given generator; targets are -100 where no answer is
asked for. L may be a little smaller than `length`, because some tasks need an even number of tokens.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

VOCAB_SIZE = 64
NO_TARGET = -100


class Task(NamedTuple):
    """How to sample batches, the model's depth, its steps as a multiple of the usual number, and how many sequences to test."""

    draw: Callable[[torch.Generator, int, int], tuple[Tensor, Tensor]]
    num_layers: int = 2
    effort: int = 1
    sequences: int = 64


def nearest(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Which of eight special tokens came last? About one token in eight is special, and all the others ask this question.

    A guess is right with probability 1/8.
    """
    of_class = torch.rand(batch, length, generator=generator) < 1 / 8
    of_class[:, 0] = True
    tokens = torch.randint(8, VOCAB_SIZE, (batch, length), generator=generator)
    tokens = torch.where(of_class, torch.randint(8, (batch, length), generator=generator), tokens)
    last = torch.where(of_class, torch.arange(length), 0).cummax(dim=-1).values
    return tokens, torch.where(of_class, NO_TARGET, tokens.gather(-1, last))


def copy(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """A string of tokens from 0 to 15, a separator (token 16), and the string again: what comes next, in the second half?"""
    string = torch.randint(16, (batch, length // 2), generator=generator)
    tokens = torch.cat((string, torch.full((batch, 1), 16), string[:, :-1]), dim=-1)
    return tokens, torch.cat((torch.full_like(string, NO_TARGET), string), dim=-1)


def recall(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Four pairs of a key and a value, then other tokens, then the four keys in a random order: what is the value of each?

    There are 16 keys and 16 values. In a longer sequence, the answer is farther away.
    """
    keys = torch.rand(batch, 16, generator=generator).argsort(dim=-1)[:, :4]
    values = torch.randint(16, 32, (batch, 4), generator=generator)
    asked = torch.rand(batch, 4, generator=generator).argsort(dim=-1)
    others = torch.randint(32, VOCAB_SIZE, (batch, max(length - 12, 0)), generator=generator)
    pairs = torch.stack((keys, values), dim=-1).flatten(start_dim=1)
    tokens = torch.cat((pairs, others, keys.gather(-1, asked)), dim=-1)
    answers = values.gather(-1, asked)
    return tokens, torch.cat((torch.full_like(tokens[:, :-4], NO_TARGET), answers), dim=-1)


def order(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Two of 16 names somewhere among other tokens, and a question mark (token 16) at the end: which name came first?

    The model has a single layer. Without positions, its last token sees the others as a set, so both names are equally likely,
    and the loss is at least ln 2.
    """
    tokens = torch.randint(17, VOCAB_SIZE, (batch, length), generator=generator)
    tokens[:, -1] = 16
    names = torch.rand(batch, 16, generator=generator).argsort(dim=-1)[:, :2]
    places = torch.rand(batch, length - 1, generator=generator).argsort(dim=-1)[:, :2].sort(dim=-1).values
    tokens.scatter_(-1, places, names)
    targets = torch.full_like(tokens, NO_TARGET)
    targets[:, -1] = names[:, 0]
    return tokens, targets


def parity(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """A start (token 2) and then zeros and ones: is the number of ones so far even (0) or odd (1)?

    The model has a single layer. Every one changes all answers after it, so there is no pattern of positions to learn.
    """
    tokens = torch.randint(2, (batch, length), generator=generator)
    targets = tokens.clone()
    tokens[:, 0], targets[:, 0] = 2, 0
    targets = targets.cumsum(dim=-1) % 2
    targets[:, 0] = NO_TARGET
    return tokens, targets


# Where the things under cups 0, 1, 2 are after a swap of the first two, the last two, or the outer two.
_SWAPPED = torch.tensor([[1, 0, 2], [0, 2, 1], [2, 1, 0]])


def swaps(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """The shell game: a start (token 3) with a ball under cup 0, then swaps of two of three cups: where is the ball now?

    The model has a single layer. A guess is right with probability 1/3. Unlike in `parity`, the order of the swaps matters.
    """
    tokens = torch.randint(3, (batch, length), generator=generator)
    tokens[:, 0] = 3
    targets = torch.full_like(tokens, NO_TARGET)
    cup = torch.zeros(batch, dtype=torch.int64)
    for step in range(1, tokens.shape[1]):
        cup = _SWAPPED[tokens[:, step], cup]
        targets[:, step] = cup
    return tokens, targets


TASKS = {
    "nearest": Task(nearest),
    "copy": Task(copy, effort=2),
    "recall": Task(recall, effort=2),
    "order": Task(order, num_layers=1, sequences=256),
    "parity": Task(parity, num_layers=1, effort=2),
    "swaps": Task(swaps, num_layers=1, effort=2),
}
