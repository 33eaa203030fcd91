"""How far back the small models have to look: their losses with only the last bytes in sight, for two living figures.

    python tools/lab/in_sight.py

For chapter 12, it runs every model of text that comes with the package (seed 0) with windows of 4 to 256 bytes, on the texts
of the experiment's curves, which takes half a minute. The means over 8 positions go to posenc_course/data/in_sight.json. For
chapter 13, it runs RoPE's models with as many bytes in sight as they were trained with, on fewer texts; the losses go to
posenc_course/data/near.json.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from posenc_course.experiment import SCHEMES, changed, load_corpus, load_model, load_results, token_losses
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.config import Config
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.evaluation import _pieces
from posenc_course.transformer import Decoder

TABLE = DATA / "in_sight.json"
NEAR = DATA / "near.json"
WINDOWS = (4, 8, 16, 32, 64, 128, 256)  # bytes that a query sees, itself included
BIN = 8
SEEDS, TEXTS = (0, 1, 2), 16  # of chapter 13
CONFIG = Config(**load_results("quick")["config"])


def losses_of(model: Decoder, window: int, number: int) -> Tensor:
    """The model's losses in nats with this window, (texts, positions), on so many texts."""
    texts = _pieces(load_corpus().validation, number, CONFIG.longest + 1)
    return token_losses(changed(model, "window", CONFIG.longest, window), texts)


def losses(scheme: str, window: int) -> list[float]:
    """The scheme's losses in nats with this window, each a mean over 8 positions and all texts."""
    found = losses_of(load_model(scheme), window, CONFIG.evaluation_bytes // CONFIG.longest)
    return [round(loss, 4) for loss in found.mean(dim=0).unflatten(0, (-1, BIN)).mean(dim=1).tolist()]


def near(seed: int) -> list[list[float]]:
    """The losses of RoPE's model with only the training length in sight, one row for each text."""
    found = losses_of(load_model("rope", seed), CONFIG.length, TEXTS)
    return [[round(loss, 3) for loss in row] for row in found.tolist()]


def main(table: Path = TABLE, of_rope: Path = NEAR) -> None:
    head = {"command": "python tools/lab/in_sight.py", "made": [provenance()]}
    runs = [{"window": window, "losses": {scheme: losses(scheme, window) for scheme in SCHEMES}} for window in WINDOWS]
    write_runs(table, head, runs)
    write_runs(of_rope, head, [{"seed": seed, "losses": near(seed)} for seed in SEEDS])


if __name__ == "__main__":
    main()
