"""The models that recite: they count to twenty, over and over, until they lose their place.

The models with seed 0 of each scheme, and all RoPE models, go to posenc_course/data/models/recite.zip.
"""

from zipfile import ZipFile

import torch

from posenc_course.experiment import Config, Run, changed, load_model
from posenc_course.experiment._files import packed, provenance
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.recital import PROMPT, evaluate_recital, recital, write
from posenc_course.experiment.runs import train_run
from posenc_course.transformer import Decoder
from tools.lab.study import Record, Study

SCHEMES = ("none", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi")
SLICED = ("sinusoidal", "learned", "rope", "alibi")  # the four of the first page, which chapter 17 repairs
SHIPPED = (*((scheme, 0) for scheme in SCHEMES), ("rope", 1), ("rope", 2))
FILES: dict[str, bytes] = {}  # of the models that are shipped
CONFIG = Config("recite", d_model=48, num_heads=3, learning_rate=5e-3, parts=("recite",), seeds=(0, 1, 2))
T = CONFIG.length


def recite(setting: Record) -> Record:
    run = Run(**setting)
    model, record = train_run(CONFIG, run)
    if (run.scheme, run.seed) in SHIPPED:
        FILES[f"{run.name}.npz"] = packed(model, CONFIG, record, provenance())
    return record


def in_window(scheme: str, seed: int = 0) -> Decoder:
    """A model that sees as many bytes as a training text has."""
    return changed(load_model(scheme, seed, part="recite"), "window", T, T)


def written(model: Decoder) -> str:
    """What a model writes from "one" on, to four times the training length."""
    return bytes(write(model, recital(PROMPT)[None], 4 * T)[0].tolist()).decode("ascii")


def sliced(scheme: str, last: int = 48) -> str:
    """What it writes if it computes each byte from the `last` ones only, with positions from 0, as in chapter 17."""
    model, text = load_model(scheme, part="recite"), recital(PROMPT)[None]
    with torch.inference_mode():
        while text.shape[1] < 4 * T:
            text = torch.cat([text, model(text[:, -last:])[:, -1:].argmax(dim=-1)], dim=1)
    return bytes(text[0].tolist()).decode("ascii")


def beside() -> Record:
    """What the models write, and the effect of a window on the RoPE models, without further training."""
    with ZipFile(DATA / "models/recite.zip", "w") as together:
        for name, content in FILES.items():
            together.writestr(name, content)
    return {
        "written": {scheme: written(load_model(scheme, part="recite")) for scheme in SCHEMES},
        "near": {scheme: written(in_window(scheme)) for scheme in SCHEMES},
        "sliced": {scheme: sliced(scheme) for scheme in SLICED},
        "stretched": [
            {"seed": seed, "change": "window", "factor": 1, "evaluation": evaluate_recital(in_window("rope", seed), T)}
            for seed in CONFIG.seeds
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
