"""How far back the small models have to look: their losses with only the last bytes in sight, for chapter 12's living figure.

    python tools/lab/in_sight.py

It runs every model of text that comes with the package (seed 0) with windows of 4 to 256 bytes, on the texts of the
experiment's curves, which takes half a minute. The means over 8 positions go to posenc_course/data/in_sight.json.
"""

from __future__ import annotations

from pathlib import Path

from posenc_course.experiment import SCHEMES, changed, load_corpus, load_model, load_results, token_losses
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.config import Config
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.evaluation import _pieces

TABLE = DATA / "in_sight.json"
WINDOWS = (4, 8, 16, 32, 64, 128, 256)  # bytes that a query sees, itself included
BIN = 8


def losses(scheme: str, window: int) -> list[float]:
    """The scheme's losses in nats with this window, each a mean over 8 positions and all texts."""
    config = Config(**load_results("quick")["config"])
    longest = config.longest
    texts = _pieces(load_corpus().validation, config.evaluation_bytes // longest, longest + 1)
    found = token_losses(changed(load_model(scheme), "window", longest, window), texts)
    return [round(loss, 4) for loss in found.mean(dim=0).unflatten(0, (-1, BIN)).mean(dim=1).tolist()]


def main(table: Path = TABLE) -> None:
    runs = [{"window": window, "losses": {scheme: losses(scheme, window) for scheme in SCHEMES}} for window in WINDOWS]
    write_runs(table, {"command": "python tools/lab/in_sight.py", "made": [provenance()]}, runs)


if __name__ == "__main__":
    main()
