"""Trainings for chapter 2 that take longer than a chapter may: python tools/lab/word_before.py, about ten minutes.

The model and the task are the chapter's: name the previous word, with 16 kinds of token and an encoder of two layers, width 32.
The results go to posenc_course/data/word_before.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import posenc_course
from posenc_course.naive import NormalizedPositions, binary
from posenc_course.schemes import PositionScheme
from posenc_course.training import train
from posenc_course.transformer import Encoder
from tools.lab.stored import provenance, write_results

DATA = Path(posenc_course.__file__).parent / "data" / "word_before.json"
VOCABULARY, D_MODEL, LEARNING_RATE = 16, 32, 6e-3
TRAINED_AT = ([20], [10, 20, 40])
TESTED_AT = [10, 12, 15, 20, 25, 30, 40]
DIGITS, LENGTH, STARTS = 6, 20, [0, 6]


def say_the_word_before(lengths: list[int], batch: int = 32) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    """Batches of random tokens, each batch with one of the lengths; the answer for each token is the one before it."""

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        which = torch.randint(len(lengths), (), generator=generator) if len(lengths) > 1 else 0
        tokens = torch.randint(VOCABULARY, (batch, lengths[which]), generator=generator)
        return tokens, torch.cat((tokens[:, :1], tokens[:, :-1]), dim=1)

    return sample


class Code(PositionScheme):
    """Adds a code of six binary digits, counting from `start`: the counter's, or Gray's, which flips one digit per step."""

    def __init__(self, name: str, start: int) -> None:
        super().__init__()
        self.gray, self.start = name == "Gray", start

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        m = positions + self.start
        digits = binary(m ^ m // 2 if self.gray else m, DIGITS).to(x)
        return x + F.pad(digits, (0, D_MODEL - DIGITS))


def right_by_place(model: Encoder, length: int) -> Tensor:
    """The share of right answers at each position, on 256 new sequences."""
    tokens, before = say_the_word_before([length], batch=256)(torch.Generator().manual_seed(1))
    with torch.no_grad():
        return (model(tokens).argmax(dim=-1) == before).double().mean(dim=0)


def new_model(scheme: PositionScheme, seed: int) -> Encoder:
    torch.manual_seed(seed)
    return Encoder(VOCABULARY, D_MODEL, num_heads=4, num_layers=2, scheme=scheme)


def measure_lengths(seeds: int, steps: int) -> list[dict[str, Any]]:
    """Normalized positions, trained at one length or at three: the share of right answers at several lengths."""
    records = []
    for lengths in TRAINED_AT:
        for seed in range(seeds):
            model = new_model(NormalizedPositions(D_MODEL), seed)
            train(model, say_the_word_before(lengths), steps=steps, learning_rate=LEARNING_RATE, seed=seed)
            right = {str(n): round(right_by_place(model, n).mean().item(), 4) for n in TESTED_AT}
            records.append({"trained_at": lengths, "steps": steps, "seed": seed, "right": right})
            print(records[-1], flush=True)
    return records


def halfway_and_at_the_end(model: Encoder, steps: int, seed: int) -> list[dict[str, Any]]:
    """Trains the model, and tests it twice: the share of right answers by position."""
    found: list[dict[str, Any]] = []

    def look(step: int, loss: float) -> None:
        if step + 1 in (steps // 2, steps):
            found.append({"steps": step + 1, "right": [round(share, 4) for share in right_by_place(model, LENGTH).tolist()]})

    train(model, say_the_word_before([LENGTH]), steps=steps, learning_rate=LEARNING_RATE, seed=seed, progress=look)
    return found


def measure_codes(seeds: int, steps: int) -> list[dict[str, Any]]:
    """The counter and Gray's code, after half of the steps and after all: the share of right answers by position."""
    records = []
    for name in ("counter", "Gray"):
        for start in STARTS:
            for seed in range(seeds):
                model = new_model(Code(name, start), seed)

                found = halfway_and_at_the_end(model, steps, seed)
                records += [{"code": name, "from": start, "seed": seed, **each} for each in found]
                print(*records[-2:], sep="\n", flush=True)
    return records


def main(*, quick: bool) -> None:
    torch.set_num_threads(1)
    results = {
        "lengths": measure_lengths(1 if quick else 6, 2 if quick else 1800),
        "codes": measure_codes(1 if quick else 6, 2 if quick else 400),
    }
    if not quick:
        write_results(DATA, provenance("python tools/lab/word_before.py", "torch"), results)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train chapter 2's model longer than the chapter can.")
    parser.add_argument("--quick", action="store_true", help="two steps and one seed; stores nothing")
    main(quick=parser.parse_args().quick)
