"""Three studies for chapters 8, 12 and 13: losses with fewer bytes in sight, and a baseline without positions."""

from __future__ import annotations

from torch import Tensor

from posenc_course.experiment import SCHEMES, Config, Run, changed, load_model, load_results, preset, token_losses
from posenc_course.experiment.config import RATES
from posenc_course.experiment.runs import train_run
from posenc_course.transformer import Decoder
from tools.lab.study import Record, Study, rounded, unseen

WINDOWS = (4, 8, 16, 32, 64, 128, 256)  # bytes that a query sees, itself included
QUICK, FULL = Config(**load_results("quick")["config"]), preset("full")


def losses(model: Decoder, window: int, texts: int) -> Tensor:
    """The model's losses in nats with this window, (texts, positions), on so many texts."""
    return token_losses(changed(model, "window", QUICK.longest, window), unseen(texts, QUICK.longest + 1))


def by_scheme(run: Record) -> Record:
    """Of every model of text that comes with the package, on the texts of the experiment's curves, means over 8 positions."""
    texts = QUICK.evaluation_bytes // QUICK.longest
    found = {scheme: losses(load_model(scheme), run["window"], texts).mean(dim=0) for scheme in SCHEMES}
    return {"losses": {scheme: rounded(each.unflatten(0, (-1, 8)).mean(dim=1), 4) for scheme, each in found.items()}}


def by_text(run: Record) -> Record:
    """Of RoPE's models on 16 texts, with as many bytes in sight as they were trained with, one row for each text."""
    return {"losses": rounded(losses(load_model("rope", run["seed"]), QUICK.length, 16))}


def without_positions(run: Record) -> Record:
    return train_run(FULL, Run(**run))[1]


STUDIES = [
    Study(
        "window_losses",
        "how far back the package's models have to look (half a minute)",
        [{"window": window} for window in WINDOWS],
        by_scheme,
        again=((2, 2e-4),),
    ),
    Study(
        "window_losses_rope",
        "losses of RoPE's models, text by text, with the training length in sight (seconds)",
        [{"seed": seed} for seed in (0, 1, 2)],
        by_text,
        again=((2, 2e-3),),
    ),
    Study(
        "without_positions",
        "the experiment's part 'rate' without positions, at five learning rates (minutes)",
        [{"part": "rate", "scheme": "none", "seed": seed, "setting": rate} for rate in RATES for seed in FULL.seeds],
        without_positions,
        config=FULL.as_json(),
    ),
]
