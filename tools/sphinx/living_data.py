"""The data for the book's living figures, made from the package's models, results and validation text.

It only reads what tools have stored: a build of the book runs no model. Each value can be written as JSON; a page reads it with
`await living.load("data/NAME")`.
"""

import json
import re
import zipfile
from base64 import b64encode
from collections import Counter
from typing import Any

import numpy as np

from posenc_course._roster import ROSTER
from posenc_course.experiment import load_corpus, load_results
from posenc_course.experiment._files import read_run
from posenc_course.experiment.config import ALL_SCHEMES, Config
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.evaluation import pieces
from posenc_course.experiment.recital import NUMBERS
from posenc_course.inspector import inspect_model, load_configurations
from posenc_course.inspector._config import rules, tables
from posenc_course.models import Model, load_models
from posenc_course.rope import RotaryPositions


def scripts() -> dict[str, object]:
    """All data for the pages, by name: the models that pages run, and the results of the functions below."""
    files = zipfile.Path(DATA / "models/text.zip")
    models = {name: model(files / f"{name}.npz") for name in ("text-rope-0", "text-rope-1", "text-rope-2", "text-alibi-0")}
    texts = {"windows": windows(), "windows-16": windows(16), "words": words(), "recited": recited()}
    return {**models, **texts, **near_losses(), "inspector": inspector_tables()}


def looks() -> dict[str, tuple[str, str]]:
    """What each scheme is called, and the classes of its line in the page's style sheet; it goes into models.js."""
    dashes = {"-": "", "--": " dashed", "-.": " dash-dotted", ":": " dotted"}
    return {name: (row.label, row.color + dashes[row.linestyle]) for name, row in ROSTER.items()}


def model(path: zipfile.Path) -> dict[str, Any]:
    """A stored model: {"config", "scheme": {"name", its arguments}, "shapes": {array: shape}, "weights"}.

    The weights are the arrays in the order of the shapes, as they are stored: float16, little-endian, in base64.
    """
    stored = read_run(path)
    arrays = stored["weights"]
    numbers = np.concatenate([array.astype("<f2").ravel() for array in arrays.values()])
    return {
        "config": stored["config"],
        "scheme": scheme(stored["record"]["scheme"], Config(**stored["config"])),
        "shapes": {name: list(array.shape) for name, array in arrays.items()},
        "weights": b64encode(numbers.tobytes()).decode(),
    }


def recited() -> dict[str, Any]:
    """The text that the reciting models learn, once, and what each of them writes from the beginning on: with everything in
    sight, with only the last bytes, as many as a training text has, and from a slice of the text that begins at position 0."""
    table = json.loads((DATA / "recite.json").read_text(encoding="utf-8"))
    return {"numbers": NUMBERS, "written": table["written"], "near": table["near"], "sliced": table["sliced"]}


def scheme(name: str, config: Config) -> dict[str, Any]:
    """The scheme's name, and its arguments apart from its arrays."""
    built = ALL_SCHEMES[name](config)
    if isinstance(built, RotaryPositions):
        return {"name": name, "frequencies": built.frequencies.tolist()}
    return {"name": name}


def windows(number: int | None = None) -> list[str]:
    """Windows of 8T + 1 validation bytes; the first byte of each isn't a target.

    By default, there are as many as in the curves by position; chapter 13 uses 16.
    """
    config = Config(**load_results("quick")["config"])
    longest = config.longest
    cut = pieces(load_corpus().validation, number or config.evaluation_bytes // longest, longest + 1)
    return [bytes(piece.tolist()).decode("ascii") for piece in cut]


def near_losses() -> dict[str, list[list[float]]]:
    """The losses of RoPE's models on chapter 13's windows with only the last 64 bytes in sight, one row per window."""
    stored = json.loads((DATA / "window_losses_rope.json").read_text(encoding="utf-8"))
    return {f"near-rope-{run['seed']}": run["losses"] for run in stored["runs"]}


def words(count: int = 4000) -> list[str]:
    """The most frequent words of three or more letters in the training text, in lower case and alphabetical order."""
    text = load_corpus().train.numpy().tobytes().decode("ascii").lower()
    return sorted(word for word, _ in Counter(re.findall("[a-z]{3,}", text)).most_common(count))


def inspector_tables() -> dict[str, Any]:
    """What the inspector in the page knows: the package's names, findings and table of models, and released configurations."""
    return tables() | {
        "rules": rules(),
        "table": {model.name: _row(model) for model in load_models()},
        "released": load_configurations(),
    }


def _row(model: Model) -> dict[str, Any]:
    """The report on a model of the table, without its frequencies, which the page computes."""
    report = inspect_model(model.name)
    kinds = []
    for kind, of_table in zip(report.kinds, model.attention, strict=True):
        known, scaling = kind.written, of_table.released.scaling or of_table.default.scaling
        kinds.append(
            {
                "count": kind.count,
                "encoding": known.encoding,
                "base": known.base,
                "rotated": known.rotated,
                "layout": known.layout,
                "stretch": known.stretch,
                "attentionFactor": known.attention_factor,
                "window": known.window,
                "rows": known.rows,
                "sinks": known.sinks,
                "spectrum": of_table.released.spectrum,
                "truncate": scaling.truncate if scaling else True,
            }
        )
    return {"layers": report.layers, "length": report.training_length, "kinds": kinds}
