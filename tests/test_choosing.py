"""The selection of models in chapter 17 agrees with the table of models."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from posenc_course.models import LayerKind, Model, find_model

PAGE = Path(__file__).resolve().parent.parent / "book" / "17_choosing.ipynb"
NAMES = {"Llama": "Llama 2", "Llama 3": "Llama 3.1", "Llama 4 Scout": "Llama 4", "the larger Gemma 3": "Gemma 3"}


def rotary(model: Model) -> list[LayerKind]:
    return [kind for kind in model.attention if kind.encoding == "RoPE"]


def encoding(name: str) -> Callable[[Model], bool]:
    return lambda model: name in {kind.encoding for kind in model.attention}


def stretched(model: Model) -> bool:
    return any(kind.released.scaling and kind.released.scaling.kind != "none" for kind in rotary(model))


def in_part(model: Model) -> bool:
    return any(kind.default.rotated and kind.default.rotated[0] < kind.default.rotated[1] for kind in rotary(model))


def larger_base(model: Model) -> bool:
    return any((kind.released.base or 0) > 10_000 for kind in rotary(model))


def in_three_of_four(model: Model) -> bool:
    (kind,) = rotary(model)
    assert kind.default.layers
    those, layers = kind.default.layers
    return those * 4 == layers * 3


ROWS: dict[str, Callable[[Model], bool]] = {
    "a learned table": encoding("learned table"),
    "sinusoids": encoding("sinusoids"),
    "T5's bias": encoding("T5's bias"),
    "ALiBi": encoding("ALiBi"),
    "RoPE, as in chapter 10": lambda model: (
        bool(rotary(model)) and not (larger_base(model) or stretched(model) or in_part(model))
    ),
    "RoPE with a larger base": larger_base,
    "RoPE, stretched": stretched,
    "RoPE on some of the channels": in_part,
    "RoPE in three of four layers": in_three_of_four,
    "RoPE by row and column": lambda model: all(kind.default.spectrum == "axial" for kind in model.attention),
    "no encoding, but recurrent layers": lambda model: not rotary(model) and model.recurrent is not None,
}


def selection() -> dict[str, list[str]]:
    text = "\n".join("".join(cell["source"]) for cell in json.loads(PAGE.read_text("utf-8"))["cells"])
    rows = re.search(r"^\| What they use \| Models \|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert rows
    found = dict(re.findall(r"^\| (.*?) \| (.*?) \|$", rows[1], re.MULTILINE))
    return {row: [name for name in re.split(r", (?:and )?", names) if "all models" not in name] for row, names in found.items()}


@pytest.mark.parametrize("row", ROWS)
def test_models_of_the_row_do_what_it_says(row: str) -> None:
    assert selection().keys() == ROWS.keys()
    for name in selection()[row]:
        assert ROWS[row](find_model(NAMES.get(name, name))), name


def test_models_in_the_next_three_rows_have_a_larger_base_too() -> None:
    for row in ("RoPE, stretched", "RoPE on some of the channels", "RoPE in three of four layers"):
        for name in selection()[row]:
            assert larger_base(find_model(NAMES.get(name, name))), name
