"""Whether a small model needs a sink: RoPE models that learn text, without sinks and with a learned one in each head.

    python tools/lab/sinks.py

Three seeds of the preset newer are trained both ways, which takes five minutes on one core. posenc_course/data/sinks.json has
their losses, and what the sink of each layer and head gets of the attention, on average over the experiment's unseen texts.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from posenc_course.attention import causal_mask
from posenc_course.experiment import _parts, load_corpus, preset, runs
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.config import Config, Run, build_model
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.evaluation import _pieces
from posenc_course.rope import RotaryPositions
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder

TABLE = DATA / "sinks.json"
CONFIG = preset("newer")


class SunkPositions(RotaryPositions):
    """RoPE with one more key per head, whose value is 0 and whose score b is learned; b begins at 0.

    If e^z is the sum of the exponentials of all scores, the sink gets e^b / (e^z + e^b). So what a head returns is multiplied
    by e^z / (e^z + e^b) = σ(z - b), which `gate` does just before the layer's last matrix.
    """

    def __init__(self, sizes: Config) -> None:
        super().__init__(frequencies(sizes.d_head))
        self.sink = nn.Parameter(torch.zeros(sizes.num_heads, 1))

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate as RoPE does, and keep σ(z - b), shape (batch, heads, L)."""
        q, k = super().rotate(q, k, q_positions, k_positions)
        scores = torch.where(causal_mask(q_positions, k_positions), q @ k.mT / math.sqrt(q.shape[-1]), -math.inf)
        self.kept = torch.sigmoid(scores.logsumexp(dim=-1) - self.sink)
        return q, k

    def gate(self, module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        """A pre-hook for the layer's last matrix, which gets the heads' outputs (batch, L, d_model) side by side."""
        by_head = inputs[0].unflatten(-1, (len(self.sink), -1))
        return (by_head * self.kept.transpose(1, 2).unsqueeze(-1)).flatten(start_dim=-2)


def sunk(config: Config, run: Run) -> Decoder:
    """The run's decoder, untrained, with the same weights and a sink in each head."""
    model = build_model(config, run)
    for block in model.blocks:
        attention: Any = block.attention
        attention.scheme = SunkPositions(config)
        attention.output.register_forward_pre_hook(attention.scheme.gate)
    return model


def trained(seed: int, build: Any) -> tuple[Decoder, list[float]]:
    """A trained model, and its losses at the experiment's lengths."""
    # A changed copy of a model would still have the hooks of the original, so nothing but the model itself is measured.
    with patch.object(runs, "build_model", build), patch.object(_parts, "changes_of", lambda model: ()):
        model, record = runs.train_run(CONFIG, Run("text", "rope", seed))
    return model, [*record["evaluation"]["plain"]["nonoverlapping"].values()]


@torch.no_grad()
def to_sinks(model: Decoder) -> list[list[float]]:
    """What the sink of each layer and head gets, on average over texts as long as in training and all their positions."""
    model(_pieces(load_corpus().validation, CONFIG.evaluation_bytes // CONFIG.length, CONFIG.length).long())
    layers: Any = model.blocks
    kept = [block.attention.scheme.kept.mean(dim=(0, 2)) for block in layers]
    return [[round(1 - share, 3) for share in layer.tolist()] for layer in kept]


def main(table: Path = TABLE) -> None:
    found = []
    for seed in CONFIG.seeds:
        without = trained(seed, build_model)[1]
        model, losses = trained(seed, sunk)
        found.append({"seed": seed, "without": without, "with": losses, "to_sinks": to_sinks(model)})
    write_runs(table, {"command": "python tools/lab/sinks.py", "made": [provenance()]}, found)


if __name__ == "__main__":
    main()
