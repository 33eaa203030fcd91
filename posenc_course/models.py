"""Which positional encoding do released models use? A table of architectures, with their default and released values.

A model has one or more kinds of attention layers. Each kind has two sets of values: the defaults of the model's configuration
class in the library transformers, and those of released weights, from a source. None means that a value wasn't looked up, and
never that there is none: no window is 0, and no scaling is `Scaling("none")`.
"""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from posenc_course.rope_scaling import dynamic_ntk, llama3, position_interpolation, yarn
from posenc_course.sinusoidal import frequencies


class Scaling(NamedTuple):
    """How RoPE is stretched: "none", "linear", "dynamic", "llama3", "yarn" or "longrope", by `factor` from a length on.

    `attention_factor` multiplies both queries and keys, as in `rope.RotaryPositions`; `truncate` is an option of YaRN. `turns`
    are the numbers of rotations between which YaRN and Llama 3 blend. `divisors` are longrope's two lists, for texts up to
    `original_length` and beyond it.
    """

    kind: str
    factor: float = 1.0
    original_length: int | None = None
    attention_factor: float = 1.0
    truncate: bool = True
    turns: tuple[float, float] | None = None
    divisors: tuple[tuple[float, ...], tuple[float, ...]] | None = None


@dataclass(frozen=True)
class Settings:
    """The values of one kind of attention layer; a value is None if it wasn't looked up, or if the encoding doesn't have it.

    Args:
        layers: how many of the model's layers are of this kind, and how many layers there are.
        base: the base of the frequencies.
        rotated: how many channels of a query and a key rotate, and how many there are.
        spectrum: "whole" if the pairs that rotate have the frequencies from 1 to almost 1/base; "fast" if they have only the
            highest of these; "axial" if half of them rotate by a row and half by a column, each half with the whole spectrum.
        window: how many tokens a query can see, itself included; 0 if there is no limit.
        scaling: how the frequencies are stretched.
        rows: the number of rows of a table, of T5's buckets, or of the offsets that Inkling's bias knows.
    """

    layers: tuple[int, int] | None = None
    base: float | None = None
    rotated: tuple[int, int] | None = None
    spectrum: Literal["whole", "fast", "axial"] = "whole"
    window: int | None = None
    scaling: Scaling | None = None
    rows: int | None = None

    def frequencies(self, length: int = 0) -> Tensor:
        """The frequencies in radians per token, float64, one for each pair that rotates, from this package's formulas.

        They are those in a text of `length` tokens, which matters to dynamic and longrope only. Raises ValueError if a value
        that they depend on isn't known.
        """
        if self.base is None or self.rotated is None or self.scaling is None:
            raise ValueError(f"{self} doesn't fix the frequencies: they need a base, the rotated channels and the scaling")
        rotated, width = self.rotated
        spectrum = {"whole": rotated, "fast": width, "axial": rotated // 2}[self.spectrum]
        omega = frequencies(spectrum, base=self.base)[: rotated // 2]
        kind, factor, original = self.scaling[:3]
        turns = dict(zip(("slow", "fast"), self.scaling.turns or (), strict=False))
        if kind == "none":
            return omega
        if kind == "linear":
            return position_interpolation(omega, factor)
        if kind == "dynamic" and original:
            return dynamic_ntk(omega, max(length, 1), original, factor)
        if kind == "llama3" and original:
            return llama3(omega, factor, original, **turns)
        if kind == "yarn" and original:
            return yarn(omega, factor, original, truncate=self.scaling.truncate, **turns)
        if self.scaling.divisors:
            near, far = (torch.tensor(each, dtype=torch.float64) for each in self.scaling.divisors)
            return omega / (far if original and length > original else near)
        raise ValueError(f"there is no formula for {self.scaling}: read the frequencies from the model's configuration")


class Temperature(NamedTuple):
    """Position m multiplies its query by 1 + factor·ln(1 + ⌊m/length⌋); with `from_one`, m is counted from 1."""

    factor: float
    length: int
    from_one: bool


@dataclass(frozen=True)
class LayerKind:
    """One kind of attention layer: its encoding, the door that it uses, and its values by default and in released weights.

    `layout` says whether a pair consists of neighbours ("interleaved") or of channels half a width apart ("halves"). `sections`
    are the numbers of pairs that rotate by time, row and column. With `sinks`, each head has a learned score that belongs to no
    token.
    """

    encoding: str
    door: Literal["embedding", "query and key", "score", "none"]
    default: Settings
    released: Settings
    layout: Literal["interleaved", "halves"] | None = None
    sections: tuple[int, int, int] | None = None
    temperature: Temperature | None = None
    sinks: bool = False


class Recurrent(NamedTuple):
    """Layers that read one token after another: their kind, how many layers have one, and how many layers there are."""

    kind: str
    default: tuple[int, int] | None
    released: tuple[int, int] | None


class Source(NamedTuple):
    """Where the values of released weights were seen."""

    label: str
    url: str


@dataclass(frozen=True)
class Model:
    """An architecture: its configuration class in transformers, and the checkpoint whose values are called released.

    `purpose` is "language", "vision and language", "images", "sound" or "encoder"; `year` is that of the first
    released weights; `looked` is the date on which somebody last looked its released values up. `config` is empty if
    transformers has no class for it; then there are no default values either.
    """

    name: str
    organization: str
    year: int
    purpose: str
    config: str
    looked: str
    attention: tuple[LayerKind, ...]
    sources: tuple[Source, ...]
    checkpoint: str | None = None
    recurrent: Recurrent | None = None
    note: str = ""


class Look(NamedTuple):
    """When the table was last compared with transformers, with which version, and its types of RoPE.

    `left_out` has the folders of models that aren't in the table, by the reason.
    """

    date: str
    version: str
    rope_types: tuple[str, ...]
    left_out: dict[str, tuple[str, ...]]


def load_models() -> list[Model]:
    """The table, one entry for each architecture, in the order of their years."""
    return [_model(row) for row in _stored()["models"]]


def find_model(name: str) -> Model:
    """The entry with this name. Raises ValueError if there is none."""
    models = {model.name: model for model in load_models()}
    if not isinstance(name, str) or name not in models:
        raise ValueError(f"no model {name!r} in the table: choose from {', '.join(models)}")
    return models[name]


def last_look() -> Look:
    """When the table was last compared with transformers, and with what."""
    look = _stored()["look"]
    return Look(look["date"], look["transformers"], look["rope_types"], look["left_out"])


@cache
def _stored() -> dict[str, Any]:
    def with_tuples(row: dict[str, Any]) -> dict[str, Any]:
        return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}

    text = resources.files("posenc_course").joinpath("data/models.json").read_text("utf-8")
    stored: dict[str, Any] = json.loads(text, object_hook=with_tuples)
    return stored


def _model(row: dict[str, Any]) -> Model:
    made = {
        "config": row["config"] or "",
        "attention": tuple(map(_kind, row["attention"])),
        "recurrent": Recurrent(**row["recurrent"]) if row.get("recurrent") else None,
        "sources": tuple(Source(**source) for source in row["sources"]),
    }
    return Model(**row | made)


def _kind(row: dict[str, Any]) -> LayerKind:
    made: dict[str, Any] = {name: _settings(row[name]) for name in ("default", "released")}
    if "temperature" in row:
        made["temperature"] = Temperature(**row["temperature"])
    return LayerKind(**row | made)


def _settings(row: dict[str, Any]) -> Settings:
    return Settings(**row | {"scaling": Scaling(**row["scaling"]) if row.get("scaling") else None})
