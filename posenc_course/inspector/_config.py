"""Read a configuration: which keys there are for what, under the names that models give them, and what they may hold.

The tables are data, data/inspector.json and data/classes.json, which the page reads, too. A row of a class was measured on it
(tools/lab/models.py says how); a row of a family that brings its own code has the source that it was read from.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


@cache
def tables() -> dict[str, Any]:
    """What the page reads, too: names of keys, rules for their values, families, classes, and the catalogue of findings."""
    data = resources.files("posenc_course").joinpath("data")
    read: dict[str, Any] = json.loads(data.joinpath("inspector.json").read_text("utf-8"))
    return read | {"classes": json.loads(data.joinpath("classes.json").read_text("utf-8"))["classes"]}


def names(group: str) -> list[str]:
    """The names that keys for the same thing have in different families."""
    found: list[str] = tables()["names"][group]
    return found


class Rule(NamedTuple):
    """What a key may hold: a "flag", "text", an "object", a "whole" or any "number" from `least` to `most`, or a list."""

    kind: str
    least: float = 0
    most: float = 0
    listed: bool = False

    def words(self) -> str:
        most = f"{self.most:,}" if self.most < MOST else f"10^{math.log10(self.most):.0f}"
        spoken = {
            "whole": f"a whole number from {self.least:g} to {most}",
            "number": f"a number from {self.least:g} to {most}",
            "zero": "0",
            "flag": "true or false",
            "text": "a string",
            "object": "an object with keys",
        }
        words = " or ".join(spoken[kind] for kind in self.kind.split(" or "))
        return f"a list, each item {words}" if self.listed else words


# No model has more than this of anything; with more, a report would take minutes, or all memory.
MOST = 10**15


@cache
def rules() -> dict[str, Rule]:
    """What is read, and what it may be; null is the same as a key that's missing."""
    return {name: Rule(*rule) for *rule, listed in tables()["rules"] for name in listed}


def checked(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """The configuration with values as the rules have them, whole numbers as int and others as float, without what is null.

    Raises ValueError for the first value that can't be read.
    """
    values = {
        key: _value(rules()[key], value, path + key) for key, value in config.items() if key in rules() and value is not None
    }
    rest = {key: value for key, value in config.items() if key not in rules()}
    if path.endswith(("rope_parameters.", "rope_scaling.")) and any(isinstance(each, Mapping) for each in rest.values()):
        part = rules()["rope_parameters"]  # one for each type of layer; null turns RoPE off
        rest = {key: value if value is None else _value(part, value, path + key) for key, value in rest.items()}
    return values | rest


def _value(rule: Rule, value: Any, path: str) -> Any:
    if rule.listed and isinstance(value, list | tuple):
        return [_value(rule._replace(listed=False), each, f"{path}[{at}]") for at, each in enumerate(value)]
    if not rule.listed:
        if rule.kind == "object" and isinstance(value, Mapping):
            return checked(value, f"{path}.")
        if "text" in rule.kind and isinstance(value, str):
            return value
        if rule.kind == "flag" and isinstance(value, int | float) and value in (0, 1):
            return bool(value)
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if numeric and (rule.least <= value <= rule.most or ("zero" in rule.kind and value == 0)):
            if "number" in rule.kind:
                return float(value)
            if "whole" in rule.kind and value == int(value):
                return int(value)
    given = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=repr)
    raise wrong_value(f"{path} must be {rule.words()}, got {given if len(given) <= 40 else given[:39] + '…'}")


def wrong_value(what: str) -> ValueError:
    return ValueError(f"{what}: correct the configuration")


# ── parts and rules ──────────────────────────────────────────────────────────────────────────────────────────────────────


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a configuration that describes the layers that read text; the whole, if there is none."""
    parts = [text_part(config[name]) for name in names("parts") if isinstance(config.get(name), Mapping)]
    marks = {*names("layers")} if {*names("layers")} & config.keys() else {"model_type", *names("layers")}
    return next((part for part in parts if marks & part.keys()), config)


def row_of(config: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the model's type: its row of the tables, or an empty one."""
    kind, known = config.get("model_type") or whole.get("model_type"), tables()
    if not kind and "dim" in config:
        kind = "params.json"
    kind = kind if isinstance(kind, str) else ""
    if "gguf" in config:
        return dict(known["gguf"].get(kind, {}))
    listed = config.get("architectures")
    classes = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    mine = [*classes, kind] if has_own_code(config, whole) or kind not in known["classes"] else []
    families = {**known["families"]}
    row = next((families[name] for name in [*mine, kind] if name in families and (mine or "as" in families[name])), None)
    row = row or known["classes"].get(kind, {})
    of_class = known["classes"].get(row.get("as"), {})
    # A key that's null says that there is nothing, whatever the class would take instead of a missing one.
    defaults = of_class.get("defaults", {}) | row.get("defaults", {})
    row = of_class | row | {"defaults": {key: value for key, value in defaults.items() if config.get(key, ...) is not None}}
    if has_own_code(config, whole) and "reads" in row and "source" not in row:  # its own code may read what the class doesn't
        row = row | {"reads": [*row["reads"], "position_embedding_type", "alibi"]}
    return row


def has_own_code(*configs: Mapping[str, Any]) -> bool:
    return any(config.get("auto_map") for config in configs)


def reading(config: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The values by their usual names, as the row of its type says.

    Raises ValueError for a value that can't be what it says.
    """
    values = dict(config)
    for path, ours in row.get("keys", {}).items():
        value: Any = values
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value not in (None, -1):  # with -1, some say that there is none
            values.setdefault(ours, value)
    unread = unread_by_class(row)
    given = {key: value for key, value in values.items() if key not in unread}
    defaults = row.get("defaults", {})
    whole = defaults.get("rope_parameters", {})
    if "rope_theta" in whole and any(key in given for key in ("rope_scaling", "rope_parameters", *names("bases"))):
        # Of what describes RoPE, only the base is left to the class.
        defaults = {"rope_theta": whole["rope_theta"]} | {key: defaults[key] for key in defaults if key != "rope_parameters"}
    nested = any(isinstance(part, Mapping) for part in (given.get("rope_parameters") or {}).values())
    for group in ("layers", "heads", "hidden", "bases", "local_bases", "shares", "windows"):
        if any(name in given for name in names(group)) or (nested and group in ("bases", "local_bases", "shares")):
            defaults = {key: value for key, value in defaults.items() if key not in names(group)}
    return checked(defaults | given) | {"_known": "name" in row}


def unread_by_class(row: Mapping[str, Any]) -> set[str]:
    """The keys that only some classes read, and this one doesn't."""
    return {key for key in tables()["by_class"] if key not in row.get("reads", [key])}


def unread_keys(config: Mapping[str, Any], row: Mapping[str, Any], path: str = "") -> list[str]:
    """The keys that look like positions, and that aren't read for this type of model."""
    like, unlike = re.compile(tables()["like_positions"]), re.compile(tables()["not_positions"])
    windows = {each["window"][0] for each in (row, *row.get("sides", {}).values()) if "window" in each}
    # A type of RoPE is read beside its values, and nowhere else.
    reads = ({*rules()} - unread_by_class(row) - {"rope_type"}) | {*row.get("says", {})} | windows
    found = []
    for key, value in config.items():
        name = f"{path}{key}"
        if isinstance(value, Mapping) and re.search("att|sparse", key):
            found += unread_keys(value, row, f"{name}.")
        off = value is None or (value is False and key.startswith("use_")) or isinstance(value, Mapping)
        if like.search(key) and not unlike.search(key) and not off and name not in reads and name not in row.get("keys", {}):
            found.append(name)
    return found


def unread_layers(config: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """The keys that look as if they told layers apart, and that aren't read."""
    inner = {f"{key}.{name}": part[name] for key, part in config.items() if isinstance(part, Mapping) for name in part}
    like = re.compile(tables()["like_layers"])
    given = {key: value for key, value in {**config, **inner}.items() if value not in (None, False, [], {})}
    return [key for key in given if like.search(key) and key not in rules() and key not in row.get("keys", {})]


def number_of_layers(config: Mapping[str, Any]) -> int:
    """By a number, or by a list with an entry for each. Raises ValueError if there is neither."""
    usual = names("layers")[0]
    lists = ("layers_block_type", "layer_types", "attn_layers", "hybrid_override_pattern")
    given = [config[name] for name in names("layers") if config.get(name)] + [
        len(config[name]) for name in lists if name in config
    ]
    if number := next(filter(None, [*given, sum(config.get("block_sizes", ()))]), 0):
        return int(_value(rules()[usual], number, usual))
    of = config.get("base_model_name_or_path") or config.get("base_model_name")
    if of:
        raise ValueError(f"this is an adapter of {of}, and its config.json is what counts: give that one")
    raise ValueError(f"no key says how many layers there are, such as {usual}: give the config.json of a model")


def trained_length(config: Mapping[str, Any]) -> int | None:
    """The length of the training texts before any stretching, if the configuration has it."""
    # Llama 3's limits count rotations in a length, which is that of the training if the lower one is 1.
    parts = [part for part in rope_parts(config) if part.get("low_freq_factor", 1) == 1]
    return first([*parts, config], *names("trained"))


def longest(config: Mapping[str, Any]) -> int | None:
    """The length up to which the model may be used, which may be more or less than its training length."""
    return first([config], *names("lengths"))


def first(parts: Sequence[Mapping[str, Any]], *names: str) -> Any:
    """The first of these that is given, and isn't 0."""
    return next((part[name] for part in parts for name in names if part.get(name)), None)


def rope_parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The dictionaries that describe RoPE: one, or one for each type of layer."""
    parts: list[Mapping[str, Any]] = []
    for whole in (config.get("rope_parameters") or {}, config.get("rope_scaling") or {}):
        parts += [part for part in whole.values() if isinstance(part, Mapping)] or [whole]
    return parts


def scaling_keys() -> set[str]:
    """The keys that all types of scaling read, and those that some do."""
    return {*tables()["always"], *(key for keys in tables()["rope_types"].values() for key in keys)}


def type_of_rope(parameters: Mapping[str, Any]) -> str:
    given = first([parameters], "rope_type", "type") or "default"
    return str(tables()["same_type"].get(given, given))
