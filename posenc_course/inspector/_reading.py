"""Reading a configuration: which keys there are for what, under the names that models give them, and what they may hold."""

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from posenc_course.models import Scaling, Settings
from posenc_course.rope_scaling import yarn_attention_factor

# The keys that each type of RoPE reads, beside those that all of them read.
KEYS = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "proportional": ("factor",),
    "axial": (),
    "mrope": (),
    "yarn": ("factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "longrope": ("factor", "attention_factor", "short_factor", "long_factor"),
}
ALWAYS = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings", "mrope_section"}
ALWAYS |= {"mrope_interleaved", "llama_4_scaling_beta", "max_position_embeddings", "finetuned", "divisors"}
BASES = ("rope_theta", "rotary_emb_base", "global_rope_theta", "rope_base")
LOCAL_BASES = ("rope_local_base_freq", "local_rope_theta", "swa_rope_theta")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
LENGTHS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length")
HEADS, HIDDEN = ("num_attention_heads", "n_head", "n_heads"), ("hidden_size", "n_embd", "d_model")
WIDE, NARROW = ("full_attention", "attention", "full"), ("sliding_attention", "chunked_attention", "local")
UNSTRETCHED = ("default", "none", "mrope", "axial", "proportional")


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
MOST, MOST_LAYERS, MOST_CHANNELS = 10**15, 1000, 65_536
# What is read, and what it may be; null is the same as a key that's missing. The page reads the same rules.
RULES = {
    **dict.fromkeys(LAYERS, Rule("whole", 1, MOST_LAYERS)),
    **dict.fromkeys((*HEADS, *HIDDEN), Rule("whole", 1, MOST_CHANNELS)),
    # Some models write 0 for what they don't have.
    **dict.fromkeys(("head_dim", "global_head_dim", "qk_rope_head_dim", "qk_nope_head_dim"), Rule("whole", 0, MOST_CHANNELS)),
    "rotary_dim": Rule("whole", 0, MOST_CHANNELS),
    **dict.fromkeys((*LENGTHS, "original_max_position_embeddings"), Rule("whole", 1, MOST)),
    **dict.fromkeys(("relative_attention_num_buckets", "relative_attention_max_distance"), Rule("whole", 1, MOST)),
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "max_window_layers"), Rule("whole", 0, MOST)),
    **dict.fromkeys((*BASES, *LOCAL_BASES), Rule("number", 2, MOST)),
    **dict.fromkeys(("partial_rotary_factor", "rotary_pct"), Rule("number", 0.001, 1)),
    **dict.fromkeys(("attention_factor", "beta_fast", "beta_slow"), Rule("number", 0.001, MOST)),
    **dict.fromkeys(("low_freq_factor", "high_freq_factor"), Rule("number", 0.001, MOST)),
    # llama.cpp stops a pair with a divisor of 10^30.
    **dict.fromkeys(("short_factor", "long_factor", "divisors"), Rule("number", 0.001, 10**38, listed=True)),
    **dict.fromkeys(("mscale", "mscale_all_dim"), Rule("number", 0, MOST)),
    **dict.fromkeys(("alibi", "use_sliding_window", "truncate"), Rule("flag")),
    **dict.fromkeys(("model_type", "_name_or_path", "gguf", "position_embedding_type", "rope_type", "type"), Rule("text")),
    **dict.fromkeys(("rope_parameters", "rope_scaling", "attn_config", "text_config"), Rule("object")),
    **dict.fromkeys(("layer_types", "layers_block_type"), Rule("text", listed=True)),
    "hybrid_override_pattern": Rule("text"),
    "sliding_window_pattern": Rule("text or whole", 1, MOST_LAYERS),
    "no_rope_layers": Rule("flag", listed=True),
    "layer_rope_theta": Rule("zero or number", 2, MOST, listed=True),
    "factor": Rule("number", 1, MOST),
}


def checked(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """The configuration with values as `RULES` has them, whole numbers as int and others as float, without what is null.

    Raises ValueError for the first value that can't be read.
    """
    values = {key: _value(RULES[key], value, path + key) for key, value in config.items() if key in RULES and value is not None}
    rest = {key: value for key, value in config.items() if key not in RULES}
    if path.endswith(("rope_parameters.", "rope_scaling.")) and any(isinstance(each, Mapping) for each in rest.values()):
        part = RULES["rope_parameters"]  # one for each type of layer; null turns RoPE off
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


def load_configurations() -> dict[str, dict[str, Any]]:
    """Configurations of released models by the models' names, each {"source", "config"}, as public repositories store them.

    Keys that have nothing to do with positions are left out.
    """
    stored: dict[str, dict[str, Any]] = json.loads(
        resources.files("posenc_course").joinpath("data/configurations.json").read_text("utf-8")
    )
    return stored


def read_config(source: str | Path) -> dict[str, Any]:
    """The configuration in a file: a config.json, or the header of a GGUF file in the same words.

    Raises ValueError if there is no such file, or if it isn't a configuration.
    """
    path = Path(source)
    if not path.is_file():
        raise ValueError(
            f"there is no file {str(source)!r}: give a config.json, a GGUF file, or the name of a model that the course knows"
        )
    with path.open("rb") as file:
        magic = file.read(4)
    if magic == b"GGUF":
        return _read_gguf(path)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(source)!r} isn't JSON ({error}): give the config.json of a model, or a GGUF file") from None
    if not isinstance(config, dict):
        raise ValueError(f"{str(source)!r} holds a {type(config).__name__}: a configuration is a JSON object with keys")
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

    scaling = {
        "rope_type": get("rope.scaling.type"),
        "factor": get("rope.scaling.factor"),
        "original_max_position_embeddings": get("rope.scaling.original_context_length"),
        "attention_factor": get("rope.scaling.attn_factor"),
        "beta_fast": get("rope.scaling.yarn_beta_fast"),
        "beta_slow": get("rope.scaling.yarn_beta_slow"),
    }
    scaling = {key: value for key, value in scaling.items() if value}  # 0 is another way to leave it out
    divisors = next((tensor.data for tensor in reader.tensors if tensor.name == "rope_freqs.weight"), None)
    if divisors is not None:  # Llama 3's stretching is stored as a tensor
        scaling |= {"rope_type": "divisors", "divisors": [float(value) for value in divisors]}
    width = get("attention.key_length") or (get("embedding_length") or 0) // (get("attention.head_count") or 1)
    config = {
        "model_type": name,
        "gguf": str(values.get("general.name", path.name)),
        "num_hidden_layers": get("block_count"),
        "max_position_embeddings": get("context_length"),
        "head_dim": width or None,
        "rope_theta": get("rope.freq_base"),
        "rope_local_base_freq": get("rope.freq_base_swa"),
        "sliding_window": get("attention.sliding_window"),
        "rotary_dim": get("rope.dimension_count"),
        "rope_scaling": scaling if scaling.get("rope_type", "none") != "none" else None,
    }
    return {key: value for key, value in config.items() if value}


def number_of_layers(config: Mapping[str, Any]) -> int:
    """By a number, or by a list with an entry for each. Raises ValueError if there is neither."""
    lists = ("layers_block_type", "layer_types", "hybrid_override_pattern")
    given = next((config[name] for name in (*LAYERS, *lists) if config.get(name)), None)
    if given is None:
        raise ValueError(f"no key says how many layers there are, such as {LAYERS[0]}: give the config.json of a model")
    return given if isinstance(given, int) else int(_value(RULES[LAYERS[0]], len(given), LAYERS[0]))


def training_length(config: Mapping[str, Any]) -> int | None:
    return first([*rope_parts(config), config], "original_max_position_embeddings") or longest(config)


def longest(config: Mapping[str, Any]) -> int | None:
    """The length up to which the model may be used."""
    return first([config], *LENGTHS)


def first(parts: Sequence[Mapping[str, Any]], *names: str) -> Any:
    """The first of these that is given, and isn't 0."""
    return next((part[name] for part in parts for name in names if part.get(name)), None)


def rope_parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The dictionaries that describe RoPE: one, or one for each type of layer."""
    parts: list[Mapping[str, Any]] = []
    for whole in (config.get("rope_parameters", {}), config.get("rope_scaling", {})):
        parts += [part for part in whole.values() if isinstance(part, Mapping)] or [whole]
    return parts


def type_of(config: Mapping[str, Any], at: int) -> str | None:
    """What the configuration calls layer `at`, or None if it doesn't say."""
    for name in ("layer_types", "layers_block_type"):
        types = config.get(name, ())
        if at < len(types):
            return str(types[at])
    pattern, narrow = config.get("sliding_window_pattern"), None
    if isinstance(pattern, int):
        narrow = bool((at + 1) % pattern)
    elif pattern:
        narrow = pattern[at % len(pattern)] == "L"
    elif config.get("use_sliding_window") and "max_window_layers" in config:
        narrow = at >= config["max_window_layers"]
    return None if narrow is None else "sliding_attention" if narrow else "full_attention"


def turned_off(config: Mapping[str, Any], at: int, kind: str | None) -> bool:
    """Whether layer `at` has no RoPE, in one of three spellings: a flag or a base of 0 in a list, or null for its type."""
    lists = [config.get(name, ()) for name in ("no_rope_layers", "layer_rope_theta")]
    zero = any(at < len(listed) and not listed[at] for listed in lists)
    return zero or config.get("rope_parameters", {}).get(kind, ...) is None


def rope_settings(config: Mapping[str, Any], at: int, kind: str | None) -> Settings | None:
    """RoPE in layer `at`, which is of this type; None if nothing speaks of it."""
    parameters, base = _rope_of(config, kind)
    bases = config.get("layer_rope_theta", ())
    base = bases[at] if at < len(bases) else base
    if base is None and not parameters:
        return None
    rotated, width = _channels(config, parameters, kind)
    name = type_of_rope(parameters)
    return Settings(
        base=base,
        rotated=(rotated, width) if rotated and width else None,
        spectrum="fast" if name == "proportional" else "whole",
        scaling=Scaling("none") if name in UNSTRETCHED else _scaling(config, name, parameters, (rotated or 0) // 2),
    )


def type_of_rope(parameters: Mapping[str, Any]) -> str:
    return first([parameters], "rope_type", "type") or "default"


def _rope_of(config: Mapping[str, Any], kind: str | None) -> tuple[Mapping[str, Any], float | None]:
    """What describes RoPE in layers of this type, and its base."""
    local = first([config], *LOCAL_BASES)
    parameters: Mapping[str, Any] = config.get("rope_parameters", {})
    nested = [name for name, part in parameters.items() if isinstance(part, Mapping)]
    if nested:
        label = {"sliding_attention": ("sliding_attention", "main"), "full_attention": ("full_attention", "compress")}
        names = [name for name in label.get(kind or "", (kind,)) if name in nested]
        parameters = parameters[str(names[0]) if names else nested[-1]]
    if not parameters and local and kind in NARROW:
        return {"rope_type": "default"}, local
    scaling = config.get("rope_scaling", {})
    merged = {**parameters, **{key: value for key, value in scaling.items() if not isinstance(value, Mapping)}}
    return merged, first([merged], "rope_theta") or first([config], *BASES)


def _channels(config: Mapping[str, Any], parameters: Mapping[str, Any], kind: str | None) -> tuple[int | None, int | None]:
    """How many channels rotate, and how many there are."""
    heads, hidden = first([config], *HEADS), first([config], *HIDDEN)
    width = (kind in WIDE and config.get("global_head_dim")) or config.get("head_dim")
    width = width or (hidden // heads if hidden and heads else None)
    share = first([parameters, config], "partial_rotary_factor", "rotary_pct")
    rotated = config.get("rotary_dim") or (int(width * share) if width and share else width)
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
        attention = attention or (math.sqrt(1 + math.log(factor) / math.log(length)) if length and length > 1 else None)
    elif kind == "divisors":
        divisors = 2 * (tuple(parameters.get("divisors", ())),)
    if divisors and {len(each) for each in divisors} != {pairs}:
        divisors = None
    return Scaling(kind, factor, length, attention or 1.0, parameters.get("truncate", True), turns, divisors)


def _turns(parameters: Mapping[str, Any], **defaults: float) -> tuple[float, float]:
    """Between how many rotations a stretching blends."""
    (low, slow), (high, fast) = ((name, parameters.get(name, default)) for name, default in defaults.items())
    if slow >= fast:
        raise _wrong(f"{low} must be less than {high}, got {slow:g} and {fast:g}")
    return slow, fast


def _yarn_factor(factor: float, parameters: Mapping[str, Any]) -> float:
    """DeepSeek's two settings multiply the logarithm, and divide one factor by the other."""
    one, all_dim = parameters.get("mscale"), parameters.get("mscale_all_dim")
    if one and all_dim:
        return (0.1 * one * math.log(factor) + 1) / (0.1 * all_dim * math.log(factor) + 1)
    return yarn_attention_factor(factor)
