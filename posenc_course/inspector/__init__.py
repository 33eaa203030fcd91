"""What does each layer of a model know about position? Read its configuration, build its class in small, and compare the two.

    python -m posenc_course inspect config.json

A configuration alone can mislead: a base may be written down where nothing rotates, or under a name that nobody reads. So where
transformers is installed, its class reads the configuration, is built with few channels and random weights, and the rotation of
each layer is read off from what it does to unit vectors. Each statement says how it's known: done by the class, written in the
file by the rules of its type, or not known. Only what's proved is called wrong.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from posenc_course.inspector._config import (
    checked,
    first,
    has_own_code,
    longest,
    number_of_layers,
    reading,
    row_of,
    text_part,
    trained_length,
    unread_keys,
    unread_layers,
)
from posenc_course.inspector._done import done, window_seen
from posenc_course.inspector._files import load_configurations, read_config
from posenc_course.inspector._findings import Case, Finding, catalogue, findings
from posenc_course.inspector._layers import Kind, Knowledge, alike, of_table
from posenc_course.inspector._lengths import Pairs, limits, pairs
from posenc_course.inspector._library import NotProbed, quiet, read_by_library
from posenc_course.inspector._probe import Probe, probe
from posenc_course.inspector._report import FROM_TABLE, Report
from posenc_course.inspector._written import is_usual, type_of, written
from posenc_course.models import find_model

__all__ = [
    "Finding",
    "Kind",
    "Knowledge",
    "Pairs",
    "Report",
    "catalogue",
    "inspect",
    "inspect_model",
    "load_configurations",
    "pairs",
    "read_config",
]


def inspect(config: Mapping[str, Any], *, name: str = "", length: int | None = None, run: bool = True) -> Report:
    """Read a configuration, run its class if transformers has it, and compare the two.

    Args:
        config: the keys and values of a config.json; if a part of it describes the layers that read text, that is read.
        name: what to call the model.
        length: the training length in tokens, if you know better than the configuration.
        run: whether to let transformers read it, and to build and run the class.

    Raises ValueError if the configuration doesn't say what the model is, or if a value can't be what it says.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"config must be a mapping, got {config!r}: give what is in a config.json")
    part = text_part(config)
    stated, row = checked(part), row_of(part, config)
    found, problem = _by_class(part, config, run)
    unread, apart = unread_keys(part, row), [] if found else unread_layers(part, row)
    if apart:  # what isn't read may tell layers apart
        row = {key: value for key, value in row.items() if key not in ("types", "rotates")}
    if not found and any(re.search("window|sparse", key) for key in unread):  # or hide tokens
        row = row | {"blind": True}
    values = reading(stated, row)
    number = number_of_layers(values)
    # A class for pictures or sound may do anything with keys of these names.
    foreign = problem is not None and problem.kind == "no text" and "name" not in row
    guessed = not found and ("name" not in row or bool(apart))
    alike_layers: dict[tuple[Knowledge, Knowledge | None, str], list[int]] = {}
    for side, at, expected in _layers(values, row, number, found):
        if found and not found.layer(side, at):
            continue  # a layer without attention
        expected = Knowledge() if foreign else expected
        does = done(found, side, at, expected or Knowledge()) if found else None
        if does and does.window and not is_usual(type_of(values, row, at)):
            does = replace(does, window=None)
        if found and expected and not does:
            expected = replace(expected, window=window_seen(found, side, at))
        if expected or (does and does.encoding not in (None, "none")):
            this = expected or Knowledge(), does, side
            alike_layers.setdefault(next((kind for kind in alike_layers if alike(kind, this)), this), []).append(at)
    kinds = tuple(Kind(tuple(layers), len(layers), *both, guessed) for both, layers in alike_layers.items())
    lengths = reading(stated, row | {"defaults": {}})  # a class's default says nothing of what this model was trained on
    trained, most = length or trained_length(lengths), longest(lengths)
    return Report(
        name or first([part, config], "gguf", "_name_or_path", "model_type") or "this model",
        found.name if found else "",
        number,
        trained,
        most,
        kinds,
        findings(Case(config, part, stated, values, row, found, problem, unread, apart, kinds, trained or most)),
        tuple(sorted({*limits(values, kinds, number, trained, most)})),
        str(problem or ""),
    )


def _layers(
    values: Mapping[str, Any], row: Mapping[str, Any], number: int, found: Probe | None
) -> Iterator[tuple[str, int, Knowledge | None]]:
    """The layers: their side, if there are two, their number, and what is written of them; None if they have no attention."""
    counts = found.numbers() if found else {}
    sides: Mapping[str, Any] = row.get("sides", {}) if "" not in counts else {}
    for side in dict.fromkeys([*sides, *counts]) or ("",):
        rules = {**row, **sides.get(side, {})}
        count = (counts.get(side) or values.get(rules.get("layers", "")) if side else None) or number
        yield from ((side, at, written(values, rules, at)) for at in range(count))


def _by_class(part: Mapping[str, Any], whole: Mapping[str, Any], run: bool) -> tuple[Probe | None, NotProbed | None]:
    """What the class did, or why that isn't known."""
    try:
        if not run:
            raise NotProbed("you asked for the configuration alone")
        if "gguf" in part:
            raise NotProbed("a GGUF file is read by llama.cpp, not by transformers")
        if has_own_code(whole, part):
            raise NotProbed("the model brings its own code, which wasn't run")
        with quiet():
            return probe(read_by_library(part, whole), part), None
    except NotProbed as problem:
        return None, problem


def inspect_model(name: str) -> Report:
    """The report on a model of the table, from its released values, and its class's default where these weren't looked up.

    Raises ValueError if the table has no such model.
    """
    model = find_model(name)
    layers = [kind.released.layers or kind.default.layers or (0, 0) for kind in model.attention]
    kinds = tuple(Kind((), count, of_table(kind), None) for (count, _), kind in zip(layers, model.attention, strict=True))
    lengths = [kind.released.scaling.original_length for kind in model.attention if kind.released.scaling]
    trained = next(filter(None, lengths), None)
    number = max(whole for _, whole in layers)
    ends = tuple(sorted({*limits({}, kinds, number, trained, None)}))
    return Report(name, model.config, number, trained, None, kinds, (), ends, FROM_TABLE)
