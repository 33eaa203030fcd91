"""Read a configuration: which keys there are for what, under the names that models give them, and what they may hold.

The tables are data, data/inspector.json and data/classes.json, which the page reads, too. A row of a class was measured on it
(tools/lab/models.py says how); a row of a family that brings its own code has the source that it was read from.
"""

import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from posenc_course.models import Scaling, Settings, load_models
from posenc_course.rope_scaling import yarn_attention_factor


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
    raise _wrong(f"{path} must be {rule.words()}, got {given if len(given) <= 40 else given[:39] + '…'}")


def _wrong(what: str) -> ValueError:
    return ValueError(f"{what}: correct the configuration")


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def load_configurations() -> dict[str, dict[str, Any]]:
    """Configurations of released models by the models' names, each {"source", "config"}, as public repositories store them.

    Keys that have nothing to do with positions are left out.
    """
    stored: dict[str, dict[str, Any]] = json.loads(
        resources.files("posenc_course").joinpath("data/configurations.json").read_text("utf-8")
    )
    return stored


def read_config(source: str | Path) -> dict[str, Any]:
    """The configuration in a file or folder: a config.json, a params.json, or the header of a GGUF file in the same words.

    The source "-" is standard input. Raises ValueError if there is no such file, or if it isn't a configuration.
    """
    if source == "-":
        return _read_json(sys.stdin.buffer.read(), "standard input")
    path = Path(source)
    if path.is_dir():
        inside = [path / name for name in ("config.json", "params.json")] + sorted(path.glob("*.gguf"))
        path = next(filter(Path.is_file, inside), path / "config.json")
    if not path.is_file():
        known = {name.lower(): name for name in [*load_configurations(), *(model.name for model in load_models())]}
        near = [known[name] for name in get_close_matches(str(source).lower(), known, 3, 0.5)]
        instead = "give a config.json, a folder with one, a GGUF file, or the name of a model that the course knows"
        raise ValueError(f"there is no file {str(path)!r}: {instead}{', such as ' if near else ''}{', '.join(near)}")
    with path.open("rb") as file:
        magic = file.read(4)
    return _read_gguf(path) if magic == b"GGUF" else _read_json(path.read_bytes(), repr(str(source)))


def _read_json(given: bytes, name: str) -> dict[str, Any]:
    try:
        config = json.loads(given.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} isn't JSON ({error}): give the config.json of a model, or a GGUF file") from None
    if not isinstance(config, dict):
        raise ValueError(f"{name} holds a {type(config).__name__}: a configuration is a JSON object with keys")
    return config


def _read_gguf(path: Path) -> dict[str, Any]:
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ValueError(f"{str(path)!r} is a GGUF file: to read it, pip install gguf") from None
    try:
        reader = GGUFReader(path)
        values = {name: value.contents() for name, value in reader.fields.items() if not name.startswith("tokenizer.")}
    except Exception as error:  # of many kinds, from NumPy
        raise ValueError(f"{str(path)!r} isn't a whole GGUF file ({error}): download it again") from None
    name = values.get("general.architecture", "")

    def get(key: str) -> Any:
        value = values.get(f"{name}.{key}")
        return max(value) if isinstance(value, list) and key.startswith("attention.head") else value

    words = tables()["gguf_keys"]
    scaling = {ours: get(f"rope.scaling.{theirs}") for theirs, ours in words["scaling"].items()}
    scaling = {key: value for key, value in scaling.items() if value}  # 0 is another way to leave it out
    tensors = {tensor.name: [float(value) for value in tensor.data] for tensor in reader.tensors if "rope_f" in tensor.name}
    for theirs, (kind, ours) in words["tensors"].items():
        if theirs in tensors:
            scaling |= {"rope_type": kind, ours: tensors[theirs]}
    config = {
        "model_type": name,
        "gguf": str(values.get("general.name", path.name)),
        "head_dim": (get("embedding_length") or 0) // (get("attention.head_count") or 1),
        "rope_scaling": scaling if scaling.get("rope_type", "none") != "none" else None,
    }
    config |= {ours: get(theirs) for theirs, ours in words["top"].items() if get(theirs)}
    if multiplier := get("rope.scaling.yarn_log_multiplier"):  # as in the configuration that it was converted from
        scaling |= dict.fromkeys(("mscale", "mscale_all_dim"), 10 * multiplier)
        config["qk_rope_head_dim"] = config.pop("rotary_dim", 0)
        config["qk_nope_head_dim"] = config["head_dim"] - config["qk_rope_head_dim"]
    read = {*words["top"], "rope.scaling.yarn_log_multiplier", *(f"rope.scaling.{key}" for key in words["scaling"])}
    rest = {key.removeprefix(f"{name}."): value for key, value in values.items() if key.startswith(f"{name}.")}
    return {key: value for key, value in (rest | config).items() if value and key not in read}


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
    row = known["classes"].get(row["as"], {}) | row if "as" in row else row
    # A key that's null says that there is nothing, whatever the class would take instead of a missing one.
    row = row | {"defaults": {key: value for key, value in row.get("defaults", {}).items() if config.get(key, ...) is not None}}
    if has_own_code(config, whole) and "reads" in row and "source" not in row:  # its own code may read what the class doesn't
        row = row | {"reads": [*row["reads"], "position_embedding_type", "alibi"]}
    return row


def has_own_code(*configs: Mapping[str, Any]) -> bool:
    return any(config.get("auto_map") for config in configs)


def reading(config: Mapping[str, Any], row: Mapping[str, Any], library: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values by their usual names: as the class has them, or else as the row of its type says.

    Raises ValueError for a value that can't be what it says.
    """
    values = dict(library or config)
    for path, ours in row.get("keys", {}).items():
        value: Any = values
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            values.setdefault(ours, value)
    unread = {key for key in tables()["by_class"] if key not in row.get("reads", [key])}
    given = {key: value for key, value in values.items() if library or key not in unread}
    # A class that the library has knows its defaults, but not those of a rule that is written into its code.
    defaults = {key: value for key, value in row.get("defaults", {}).items() if not library or key in names("bases")}
    parameters = given.get("rope_parameters") or {}
    nested = any(isinstance(part, Mapping) for part in parameters.values()) or (library and "rope_theta" in parameters)
    for group in ("layers", "heads", "hidden", "bases", "local_bases", "shares", "windows"):
        if any(name in given for name in names(group)) or (nested and group in ("bases", "local_bases", "shares")):
            defaults = {key: value for key, value in defaults.items() if key not in names(group)}
    return checked(defaults | given) | {"_known": bool(row.get("name") or library)}


def unread_keys(config: Mapping[str, Any], row: Mapping[str, Any], path: str = "") -> list[str]:
    """The keys that look like positions, and that aren't read for this type of model."""
    like, unlike = re.compile(tables()["like_positions"]), re.compile(tables()["not_positions"])
    reads = {*rules()} - {key for key in tables()["by_class"] if key not in row.get("reads", [key])} | {*row.get("says", {})}
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
    lists = ("layers_block_type", "layer_types", "hybrid_override_pattern")
    given = next((config[name] for name in (*names("layers"), *lists) if config.get(name)), None)
    blocks = config.get("block_sizes")
    if given is None and isinstance(blocks, list) and blocks and all(type(size) is int for size in blocks):
        given = [None] * min(sum(blocks), 1001)
    if given is None:
        of = config.get("base_model_name_or_path") or config.get("base_model_name")
        what = f"this is an adapter of {of}, and its" if of else "no key says how many layers there are, such as"
        rest = "config.json is what counts: give that one" if of else f"{names('layers')[0]}: give the config.json of a model"
        raise ValueError(f"{what} {rest}")
    return given if isinstance(given, int) else int(_value(rules()[names("layers")[0]], len(given), names("layers")[0]))


def trained_length(config: Mapping[str, Any]) -> int | None:
    """The length of the training texts before any stretching, if the configuration has it."""
    # Llama 3's limits count rotations in a length, which is that of the training if the lower one is 1.
    parts = [part for part in rope_parts(config) if part.get("low_freq_factor", 1) == 1]
    given = first([*parts, config], *names("trained"))
    return given or (config.get("seq_length") if config.get("use_dynamic_ntk") else None)


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


# ── layers ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def type_of(config: Mapping[str, Any], row: Mapping[str, Any], at: int) -> str | None:
    """What the configuration calls layer `at`, or None if it doesn't say."""
    for name in ("layer_types", "layers_block_type", "attention_layers"):
        types = config.get(name, ())
        if at < len(types):
            return str(types[at])
    nested = config.get("attention_types")
    if isinstance(nested, list) and all(isinstance(each, list) and len(each) == 2 for each in nested):
        listed = [name for some, times in nested if isinstance(some, list) and type(times) is int for name in times * some]
        return str(listed[at % len(listed)]) if listed else None
    if at in config.get("cross_attention_layers", ()):
        return "cross_attention"
    if "full_attn_idxs" in config:
        return "full_attention" if at in config["full_attn_idxs"] else "conv"
    if config.get("hybrid_override_pattern"):
        return "attention" if config["hybrid_override_pattern"][at : at + 1] == "*" else "mamba"
    pattern, narrow = config.get("sliding_window_pattern"), None
    if isinstance(pattern, int):
        narrow = bool((at + 1) % pattern)
    elif pattern:
        narrow = pattern[at % len(pattern)] == "L"
    elif config.get("global_attn_every_n_layers"):
        narrow = at % config["global_attn_every_n_layers"] > 0
    elif config.get("use_sliding_window") and "max_window_layers" in config:
        narrow = at >= config["max_window_layers"]
    elif row.get("types"):
        return str(row["types"][at % len(row["types"])])
    return None if narrow is None else "sliding_attention" if narrow else "full_attention"


def turned_off(config: Mapping[str, Any], row: Mapping[str, Any], at: int, kind: str | None) -> bool:
    """Whether layer `at` has no RoPE: by a flag or a base of 0 in a list, null for its type, or the rules of its class."""
    lists = [config.get(name, ()) for name in ("no_rope_layers", "layer_rope_theta")]
    zero = any(at < len(listed) and not listed[at] for listed in lists)
    rotates = () if lists[0] else row.get("rotates", (True,))
    zero = zero or not (rotates[at % len(rotates)] if rotates else True)
    return zero or kind in row.get("without", ()) or config.get("rope_parameters", {}).get(kind, ...) is None


def window_of(config: Mapping[str, Any], row: Mapping[str, Any], at: int, kind: str | None) -> int | None:
    """How many tokens a query sees in layer `at`, of this type; 0 if there is no limit, and None if nobody can say."""
    if kind in names("wide") or config.get("use_sliding_window") is False:
        return 0
    key, times, more = row.get("window", (None, 1, 0))
    size = config.get(key) if key else first([config], *names("windows"))
    size = size[at] if isinstance(size, list) and at < len(size) else size
    anywhere = kind is None and "name" not in row  # which layers have it, only the class knows
    if size and (type(size) is not int or anywhere or config.get("use_bidirectional_attention")):
        return None
    return times * size + more if size else None if row.get("blind") or "name" not in row else 0


def rope_settings(config: Mapping[str, Any], at: int, kind: str | None) -> Settings | None:
    """RoPE in layer `at`, which is of this type; None if nothing speaks of it."""
    parameters, base = _rope_of(config, kind)
    bases = config.get("layer_rope_theta", ())
    base = bases[at] if at < len(bases) else base
    if base is None and not parameters:
        return None
    rotated, width = _channels(config, parameters, kind)
    name = type_of_rope(parameters)
    unstretched = name in tables()["unstretched"]
    if base:
        base *= config.get("base_times", 1.0)
    if base and name == "dynamic" and parameters.get("alpha") and rotated and rotated > 2:
        unstretched = True  # another base for all lengths, by the name of a scaling that grows
        base *= parameters["alpha"] ** (rotated / (rotated - 2))
    return Settings(
        base=base,
        rotated=(rotated, width) if rotated and width else None,
        spectrum="fast" if name == "proportional" else "whole",
        scaling=Scaling("none") if unstretched else _scaling(config, name, parameters, (rotated or 0) // 2),
    )


def type_of_rope(parameters: Mapping[str, Any]) -> str:
    given = first([parameters], "rope_type", "type") or "default"
    return str(tables()["same_type"].get(given, given))


def _rope_of(config: Mapping[str, Any], kind: str | None) -> tuple[Mapping[str, Any], float | None]:
    """What describes RoPE in layers of this type, and its base."""
    local = first([config], *names("local_bases"))
    parameters: Mapping[str, Any] = config.get("rope_parameters") or {}
    nested = [name for name, part in parameters.items() if isinstance(part, Mapping)]
    if nested:
        label = {"sliding_attention": ("sliding_attention", "main"), "full_attention": ("full_attention", "compress")}
        ours = [name for name in label.get(kind or "", (kind,)) if name in nested]
        parameters = parameters[str(ours[0]) if ours else nested[-1]]
    if not parameters and local and kind in names("narrow"):
        return {"rope_type": "default"}, local
    scaling = config.get("rope_scaling") or {}
    merged = {**parameters, **{key: value for key, value in scaling.items() if not isinstance(value, Mapping)}}
    return merged, first([merged], "rope_theta") or first([config], *names("bases"))


def _channels(config: Mapping[str, Any], parameters: Mapping[str, Any], kind: str | None) -> tuple[int | None, int | None]:
    """How many channels rotate, and how many there are."""
    heads, hidden = (first([config], *names(name)) for name in ("heads", "hidden"))
    width = (kind in names("wide") and config.get("global_head_dim")) or config.get("head_dim")
    width = width or (hidden // heads if hidden and heads else None)
    share = first([parameters, config], *names("shares"))
    share = share or (1.0 if config["_known"] else None)
    rotated = config.get("rotary_dim") or (int(width * share) if width and share else None)
    if config.get("qk_rope_head_dim"):
        rotated, rest = config["qk_rope_head_dim"], config.get("qk_nope_head_dim")
        width = rotated + rest if rest else width
    if rotated and width and rotated > width:
        raise _wrong(f"{rotated:,} channels can't rotate in a head that has {width:,}")
    return rotated, width


def of_latent_attention(config: Mapping[str, Any], kind: str | None, scaling: Scaling | None) -> dict[str, Any]:
    """What DeepSeek's kind of attention has of its own: the last channels rotate, and YaRN may multiply the scores, too."""
    if not config.get("qk_rope_head_dim"):
        return {"first_channel": 0}
    all_dim = _rope_of(config, kind)[0].get("mscale_all_dim")
    score = (0.1 * all_dim * math.log(scaling.factor) + 1) ** 2 if all_dim and scaling and scaling.kind == "yarn" else None
    return {"first_channel": config.get("qk_nope_head_dim"), "score": score}


def _scaling(config: Mapping[str, Any], kind: str, parameters: Mapping[str, Any], pairs: int) -> Scaling:
    original = first([parameters, config], "original_max_position_embeddings")
    most, factor, attention = longest(config), parameters.get("factor"), parameters.get("attention_factor")
    if factor is None and kind in ("longrope", "yarn") and most and original:
        factor = most / original
        if factor < 1:
            raise _wrong(f"the longest text, {most:,} tokens, must be at least original_max_position_embeddings, {original:,}")
    factor = factor or 1.0
    length = most if kind == "dynamic" else original or (None if kind == "linear" else most)
    turns = divisors = None
    if kind == "llama3":
        turns = _turns(parameters, low_freq_factor=1.0, high_freq_factor=4.0)
    elif kind == "yarn":
        turns = _turns(parameters, beta_slow=1.0, beta_fast=32.0)
        attention = attention or _yarn_factor(factor, parameters)
    elif kind == "longrope":
        divisors = tuple(parameters.get("short_factor", ())), tuple(parameters.get("long_factor", ()))
        ours = {*tables()["always"], *(key for keys in tables()["rope_types"].values() for key in keys)}
        if length and length > 1 and {*parameters} <= ours:  # with other keys, a model has another factor
            attention = attention or math.sqrt(1 + math.log(factor) / math.log(length))
    elif kind == "divisors":
        divisors = 2 * (tuple(parameters.get("divisors", ())),)
    if divisors and {len(each) for each in divisors} != {pairs}:
        divisors = None
    return Scaling(kind, factor, length, attention or 1.0, parameters.get("truncate", True), turns, divisors)


def _turns(parameters: Mapping[str, Any], **defaults: float) -> tuple[float, float]:
    """Between how many rotations a stretching blends."""
    (low, slow), (high, fast) = ((name, parameters.get(name, default)) for name, default in defaults.items())
    if slow > fast:
        raise _wrong(f"{low} must be at most {high}, got {slow:g} and {fast:g}")
    return slow, fast


def _yarn_factor(factor: float, parameters: Mapping[str, Any]) -> float:
    """DeepSeek's two settings multiply the logarithm, and divide one factor by the other."""
    one, all_dim = parameters.get("mscale"), parameters.get("mscale_all_dim")
    if one and all_dim:
        return (0.1 * one * math.log(factor) + 1) / (0.1 * all_dim * math.log(factor) + 1)
    return yarn_attention_factor(factor)
