"""What does each layer of a model know about position? Read its configuration, build its class in small, and compare the two.

    python -m posenc_course inspect config.json

A configuration alone can mislead: a base may be written down where nothing rotates, or under a name that nobody reads. So where
transformers is installed, its class is built with few channels and random weights, and the rotation of each layer is read off
from what it does to unit vectors. What is written and what is done are then compared, and a difference is the first line.
"""

from collections.abc import Mapping
from typing import Any

from posenc_course.inspector._breaking import CATALOGUE, Finding, Pairs, findings, limits, pairs
from posenc_course.inspector._knowing import Kind, Knowledge, alike, by_parts, done, like, of_table, written
from posenc_course.inspector._probing import NotProbed, Probe, probe
from posenc_course.inspector._reading import checked, first, load_configurations, number_of_layers, read_config, training_length
from posenc_course.inspector._saying import FROM_TABLE, Report
from posenc_course.models import find_model

__all__ = [
    "CATALOGUE",
    "Finding",
    "Kind",
    "Knowledge",
    "Pairs",
    "Report",
    "inspect",
    "inspect_model",
    "load_configurations",
    "pairs",
    "read_config",
]


def inspect(config: Mapping[str, Any], *, name: str = "", length: int | None = None, run: bool = True) -> Report:
    """Read a configuration, run its class if transformers has it, and compare the two.

    Args:
        config: the keys and values of a config.json; if a part `text_config` has them, it is read instead.
        name: what to call the model.
        length: the training length in tokens, if you know better than the configuration.
        run: whether to build and run the class.

    Raises ValueError if the configuration doesn't say what the model is, or if a value can't be what it says.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"config must be a mapping, got {config!r}: give what is in a config.json")
    as_given, config = config, checked(config)
    if "text_config" in config:
        as_given, config = as_given["text_config"], config["text_config"]
    number = number_of_layers(config)
    found, unprobed = _probed(as_given, number, run)  # what a class thinks of other values is a finding
    trained_on = length or training_length(config)
    kinds: dict[tuple[Knowledge, Knowledge | None], list[int]] = {}
    for at in range(number):
        expected = written(config, at)
        does = done(found, at, expected) if found else None
        if does or not found:  # otherwise, it's a layer without attention
            both = next((kind for kind in kinds if alike(kind, (expected, does))), (expected, does))
            kinds.setdefault(both, []).append(at)
    made = tuple(Kind(tuple(layers), len(layers), *both) for both, layers in kinds.items())
    found_here = findings(config, made, found, unprobed, like(config))
    order = ("wrong", "warning", "note")
    return Report(
        name or first([config], "gguf", "_name_or_path", "model_type") or "this model",
        found.name if found else "",
        number,
        trained_on,
        made,
        tuple(sorted(found_here, key=lambda finding: order.index(finding.level))),
        tuple(sorted({*limits(config, made, trained_on)})),
        unprobed,
    )


def _probed(config: Mapping[str, Any], number: int, run: bool) -> tuple[Probe | None, str]:
    """What the class did, or why nothing is known of it."""
    try:
        if not run:
            raise NotProbed("you asked for the configuration alone")
        if "gguf" in config:
            raise NotProbed("a GGUF file is read by llama.cpp, not by transformers")
        found = probe(config)
    except NotProbed as error:
        return None, str(error)
    attending = [layer for layer in found.layers.values() if layer.width]
    # Recurrent layers may take positions with gaps for several texts.
    hidden = found.uses_positions and len(attending) == number and not any(layer.rotation for layer in attending)
    if found.failed or (not by_parts(found) and (hidden or not attending)):
        return None, found.failed or f"{found.name} has no attention whose positions the probe can follow"
    return found, ""


def inspect_model(name: str) -> Report:
    """The report on a model of the table, from its released values, and its class's default where these weren't looked up.

    Raises ValueError if the table has no such model.
    """
    model = find_model(name)
    layers = [kind.released.layers or kind.default.layers or (0, 0) for kind in model.attention]
    made = tuple(Kind((), count, of_table(kind), None) for (count, _), kind in zip(layers, model.attention, strict=True))
    lengths = [kind.released.scaling.original_length for kind in model.attention if kind.released.scaling]
    trained_on = next(filter(None, lengths), None)
    number = max(whole for _, whole in layers)
    return Report(name, model.config, number, trained_on, made, (), tuple(sorted({*limits({}, made, trained_on)})), FROM_TABLE)
