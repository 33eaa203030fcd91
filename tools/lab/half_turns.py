"""The angles by which models that learned parity rotate for each token, for chapter 15's second page.

    python tools/lab/half_turns.py

Three seeds of the preset newer learn parity with selective rotations, which takes a minute on one core. posenc_course/data/
half_turns.json has the steps of the tokens 0 and 1 in each pair, in radians, and the right answers: as trained, and with exact
steps in one pair, namely whole rotations for a 0, and half a rotation more for a 1. It's the pair whose trained steps come
nearest to such values.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from posenc_course.contextual import SelectiveRotaryPositions
from posenc_course.experiment import preset, runs
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.config import Run
from posenc_course.experiment.corpus import DATA
from posenc_course.transformer import Decoder

TABLE = DATA / "half_turns.json"
CONFIG = preset("newer")


@torch.no_grad()
def steps(model: Decoder) -> tuple[Tensor, Tensor, SelectiveRotaryPositions]:
    """The attention layer's input for the tokens 0 and 1, (2, d_model), their steps (2, heads·pairs), and the scheme."""
    block: Any = model.blocks[0]
    scheme = block.attention.scheme
    x = block.attention_norm(model.embedding.weight[:2])
    return x, scheme.step(x) + scheme.frequencies.float().repeat(block.attention.num_heads), scheme


def nearest(found: Tensor) -> tuple[int, Tensor]:
    """The pair, and the steps that it should have: one for a 0, and one for a 1."""
    nothing = 2 * math.pi * (found[0] / (2 * math.pi)).round()
    half = nothing + math.pi * (1 + 2 * ((found[1] - nothing - math.pi) / (2 * math.pi)).round())
    wanted = torch.stack((nothing, half))
    pair = int((found - wanted).abs().amax(dim=0).argmin())
    return pair, wanted[:, pair]


@torch.no_grad()
def repair(model: Decoder) -> None:
    """Change the weights of one pair as little as possible, so that its two steps are exact."""
    x, found, scheme = steps(model)
    pair, wanted = nearest(found)
    scheme.step.weight[pair] += torch.linalg.pinv(x) @ (wanted - found[:, pair])


def main() -> None:
    made = []
    for seed in CONFIG.seeds:
        run = Run("parity", "selective", seed)
        model, record = runs.train_run(CONFIG, run)
        _, found, _ = steps(model)
        pair, wanted = nearest(found)
        repair(model)
        made.append(
            {
                "seed": seed,
                "right": [*record["evaluation"]["accuracy"].values()],
                "pair": pair,
                "wanted": [round(angle, 4) + 0.0 for angle in wanted.tolist()],
                "steps": [[round(angle, 4) + 0.0 for angle in token] for token in found.tolist()],
                "repaired": [*runs.measure(model, CONFIG, run)["accuracy"].values()],
            }
        )
    write_runs(TABLE, {"command": "python tools/lab/half_turns.py", "made": [provenance()]}, made)


if __name__ == "__main__":
    main()
