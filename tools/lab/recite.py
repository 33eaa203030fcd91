"""The models that recite: they count to twenty, over and over, until they lose their place.

    python tools/lab/recite.py

Seven schemes, three seeds and two layers of width 48 take about seven minutes on one core. Each run is stored in its own file
in _experiment/recite, so that an interrupted call can continue. The table of all runs goes to posenc_course/data/recite.json,
with what the models write and how stretching changes the RoPE models; the models with seed 0 of each scheme, and all RoPE
models, go to posenc_course/data/models.
"""

from __future__ import annotations

import argparse
import copy
from pathlib import Path
from typing import Any

import torch

import posenc_course
from posenc_course.experiment._files import write_runs
from posenc_course.experiment.config import Config
from posenc_course.experiment.evaluation import changed
from posenc_course.experiment.folder import load_model, merge, run_experiment
from posenc_course.experiment.recital import PROMPT, evaluate_recital, recital, write
from posenc_course.rope import RotaryPositions
from posenc_course.transformer import Decoder

FOLDER = Path("_experiment/recite")
DATA = Path(posenc_course.__file__).parent / "data"
SCHEMES = ("none", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi")
SLICED = ("sinusoidal", "learned", "rope", "alibi")  # the four of the first page, which chapter 17 repairs
SHIPPED = (*((scheme, 0) for scheme in SCHEMES), ("rope", 1), ("rope", 2))
CONFIG = Config("recite", d_model=48, num_heads=3, learning_rate=5e-3, parts=("recite",), seeds=(0, 1, 2))
# Changes to trained models, each by several factors. "pair 3" divides only the frequency of that pair (counted from 0), and
# "pairs 3 on" also those of all slower pairs.
CHANGES = ("window", "interpolation", "ntk", "yarn", "pair 2", "pair 3", "pair 4", "pairs 3 on")
FACTORS = (1.5, 2, 4)


def slowed(model: Decoder, which: str, factor: float, length: int = CONFIG.length) -> Decoder:
    """A copy of a model with RoPE, trained at `length`, under one of CHANGES."""
    if not which.startswith("pair"):
        return changed(model, which, round(factor * length), length)
    model, scheme, (_, first, *on) = copy.deepcopy(model), model.scheme, which.split()
    assert isinstance(scheme, RotaryPositions)
    frequencies = scheme.frequencies.clone()
    frequencies[int(first) : None if on else int(first) + 1] /= factor
    model.scheme = RotaryPositions(frequencies)
    for block in model.blocks:
        block.attention.scheme = model.scheme  # type: ignore[union-attr]
    return model


def stretch(folder: Path, config: Config) -> list[dict[str, Any]]:
    """The effect of each change on the RoPE models, without further training."""
    found = []
    for seed in config.seeds:
        model = load_model("rope", seed, part="recite", folder=folder)
        for which in CHANGES:
            for factor in FACTORS if which != "window" else (1,):
                evaluation = evaluate_recital(slowed(model, which, factor, config.length), config.length)
                found.append({"seed": seed, "change": which, "factor": factor, "evaluation": evaluation})
    return found


def written(config: Config, data: Path, *, near: bool = False) -> dict[str, str]:
    """What the shipped models write from "one" on, to four times the training length, by their scheme (seed 0).

    If near, each byte sees only as many of the last bytes as a training text has.
    """
    models = {scheme: load_model(scheme, seed, part="recite", folder=data / "models") for scheme, seed in SHIPPED if seed == 0}
    if near:
        models = {scheme: changed(model, "window", config.length, config.length) for scheme, model in models.items()}
    texts = {scheme: write(model, recital(PROMPT)[None], 4 * config.length)[0] for scheme, model in models.items()}
    return {scheme: bytes(text.tolist()).decode("ascii") for scheme, text in texts.items()}


def sliced(config: Config, data: Path, last: int = 48) -> dict[str, str]:
    """What the models write if they compute each byte from the `last` ones only, with positions from 0, as in chapter 17."""
    texts = {}
    for scheme in (scheme for scheme in SLICED if (scheme, 0) in SHIPPED):
        model, text = load_model(scheme, 0, part="recite", folder=data / "models"), recital(PROMPT)[None]
        with torch.inference_mode():
            while text.shape[1] < 4 * config.length:
                text = torch.cat([text, model(text[:, -last:])[:, -1:].argmax(dim=-1)], dim=1)
        texts[scheme] = bytes(text[0].tolist()).decode("ascii")
    return texts


def main(config: Config = CONFIG, folder: Path = FOLDER, data: Path = DATA, jobs: int = 1) -> None:
    run_experiment(config, folder, schemes=SCHEMES, jobs=jobs)
    table = merge(folder)
    runs = table.pop("runs")
    for scheme, seed in SHIPPED:
        name = f"recite-{scheme}-{seed}.npz"
        (data / "models" / name).write_bytes((folder / name).read_bytes())
    table |= {"written": written(config, data), "near": written(config, data, near=True), "sliced": sliced(config, data)}
    table |= {"stretched": stretch(folder, config)}
    write_runs(data / "recite.json", {"command": "python tools/lab/recite.py", **table}, runs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train the models that count to twenty until they lose their place.")
    parser.add_argument("--jobs", type=int, default=1, help="the number of processes that train")
    main(jobs=parser.parse_args().jobs)
