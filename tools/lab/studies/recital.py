"""The models that recite: they count to twenty, over and over, until they lose their place.

The models with seed 0 of each scheme, and all RoPE models, go to posenc_course/data/models/recite.zip.
"""

from __future__ import annotations

from zipfile import ZipFile

import torch

from posenc_course.experiment import Config, Run, changed, load_model
from posenc_course.experiment._files import packed, provenance
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.recital import PROMPT, evaluate_recital, recital, write
from posenc_course.experiment.runs import train_run
from posenc_course.rope import RotaryPositions
from posenc_course.transformer import Decoder
from tools.lab.study import Record, Study, with_schemes

SCHEMES = ("none", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi")
SLICED = ("sinusoidal", "learned", "rope", "alibi")  # the four of the first page, which chapter 17 repairs
SHIPPED = (*((scheme, 0) for scheme in SCHEMES), ("rope", 1), ("rope", 2))
FILES: dict[str, bytes] = {}  # of the models that are shipped
CONFIG = Config("recite", d_model=48, num_heads=3, learning_rate=5e-3, parts=("recite",), seeds=(0, 1, 2))
T = CONFIG.length
# Changes to trained models, each by several factors. "pair 3" divides only the frequency of that pair (counted from 0), and
# "pairs 3 on" also those of all slower pairs.
CHANGES = ("window", "interpolation", "ntk", "yarn", "pair 2", "pair 3", "pair 4", "pairs 3 on")
FACTORS = (1.5, 2, 4)


def recite(setting: Record) -> Record:
    run = Run(**setting)
    model, record = train_run(CONFIG, run)
    if (run.scheme, run.seed) in SHIPPED:
        FILES[f"{run.name}.npz"] = packed(model, CONFIG, record, provenance())
    return record


def slowed(model: Decoder, which: str, factor: float) -> Decoder:
    """A copy of a model with RoPE under one of CHANGES."""
    if not which.startswith("pair"):
        return changed(model, which, round(factor * T), T)
    assert isinstance(model.scheme, RotaryPositions)
    frequencies, (_, first, *on) = model.scheme.frequencies.clone(), which.split()
    frequencies[int(first) : None if on else int(first) + 1] /= factor
    return with_schemes(model, lambda scheme: RotaryPositions(frequencies))


def written(scheme: str, window: int | None = None) -> str:
    """What a model (seed 0) writes from "one" on, to four times the training length, if need be with a window."""
    model = load_model(scheme, part="recite")
    model = model if window is None else changed(model, "window", T, window)
    return bytes(write(model, recital(PROMPT)[None], 4 * T)[0].tolist()).decode("ascii")


def sliced(scheme: str, last: int = 48) -> str:
    """What it writes if it computes each byte from the `last` ones only, with positions from 0, as in chapter 17."""
    model, text = load_model(scheme, part="recite"), recital(PROMPT)[None]
    with torch.inference_mode():
        while text.shape[1] < 4 * T:
            text = torch.cat([text, model(text[:, -last:])[:, -1:].argmax(dim=-1)], dim=1)
    return bytes(text[0].tolist()).decode("ascii")


def beside() -> Record:
    """What the models write, and the effect of each change on the RoPE models, without further training."""
    with ZipFile(DATA / "models/recite.zip", "w") as together:
        for name, content in FILES.items():
            together.writestr(name, content)
    return {
        "written": {scheme: written(scheme) for scheme in SCHEMES},
        "near": {scheme: written(scheme, window=T) for scheme in SCHEMES},
        "sliced": {scheme: sliced(scheme) for scheme in SLICED},
        "stretched": [
            {
                "seed": seed,
                "change": which,
                "factor": factor,
                "evaluation": evaluate_recital(slowed(load_model("rope", seed, part="recite"), which, factor), T),
            }
            for seed in CONFIG.seeds
            for which in CHANGES
            for factor in (FACTORS if which != "window" else (1,))
        ],
    }


STUDIES = [
    Study(
        "recite",
        "seven schemes count to twenty until they lose their place (seven minutes)",
        [{"part": "recite", "scheme": run.scheme, "seed": run.seed, "setting": ""} for run in CONFIG.runs(SCHEMES)],
        recite,
        config=CONFIG.as_json(),
        beside=beside,
        again=((7, 0.1),),
    ),
]
