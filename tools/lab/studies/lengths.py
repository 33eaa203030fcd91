"""Two studies for chapters 8 and 13: losses with fewer bytes in sight, and a baseline without positions."""

from torch import Tensor

from posenc_course.experiment import Config, Run, changed, load_model, load_results, preset, token_losses
from posenc_course.experiment.config import RATES
from posenc_course.experiment.runs import train_run
from posenc_course.transformer import Decoder
from tools.lab.study import Record, Study, rounded, unseen

QUICK, FULL = Config(**load_results("quick")["config"]), preset("full")


def losses(model: Decoder, window: int, texts: int) -> Tensor:
    """The model's losses in nats with this window, (texts, positions), on so many texts."""
    return token_losses(changed(model, "window", QUICK.longest, window), unseen(texts, QUICK.longest + 1))


def by_text(run: Record) -> Record:
    """Of RoPE's models on 16 texts, with as many bytes in sight as they were trained with, one row for each text."""
    return {"losses": rounded(losses(load_model("rope", run["seed"]), QUICK.length, 16))}


def without_positions(run: Record) -> Record:
    return train_run(FULL, Run(**run))[1]


STUDIES = [
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
