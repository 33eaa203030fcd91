"""Reading a configuration: which keys there are for what, under the names that models give them."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
WIDE, NARROW = ("full_attention", "attention", "full"), ("sliding_attention", "chunked_attention", "local")
UNSTRETCHED = ("default", "none", "mrope", "axial", "proportional")


def read_config(source: str | Path) -> dict[str, Any]:
    """The configuration in a file: a config.json, or the header of a GGUF file in the same words.

    Raises ValueError if there is no such file, or if it isn't a configuration.
    """
    path = Path(source)
    if not path.is_file():
        raise ValueError(
            f"there is no file {str(source)!r}: give a config.json, a GGUF file, or a name from the table of models"
        )
    with path.open("rb") as file:
        magic = file.read(4)
    if magic == b"GGUF":
        return _read_gguf(path)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{str(source)!r} isn't JSON ({error}): give the config.json of a model, or a GGUF file") from None
    if not isinstance(config, dict):
        raise ValueError(f"{str(source)!r} holds a {type(config).__name__}: a configuration is a JSON object with keys")
    return config


def _read_gguf(path: Path) -> dict[str, Any]:
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ValueError(f"{str(path)!r} is a GGUF file: to read it, pip install gguf") from None
    reader = GGUFReader(path)
    values = {name: value.contents() for name, value in reader.fields.items() if not name.startswith("tokenizer.")}
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
    scaling = {key: value for key, value in scaling.items() if value is not None}
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
    return {key: value for key, value in config.items() if value is not None}


def number_of_layers(config: Mapping[str, Any]) -> int:
    """By a number, or by a list with an entry for each. Raises ValueError if there is neither."""
    names = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
    lists = [config[key] for key in ("layers_block_type", "layer_types", "hybrid_override_pattern") if config.get(key)]
    number = next((config[key] for key in names if key in config), len(lists[0]) if lists else None)
    if not isinstance(number, int) or number < 1:
        raise ValueError(
            f"the configuration has {number!r} layers, under num_hidden_layers: give the config.json of a model that has layers"
        )
    return number


def training_length(config: Mapping[str, Any]) -> int | None:
    originals = [part.get("original_max_position_embeddings") for part in (*rope_parts(config), config)]
    return next((int(each) for each in originals if each), None) or longest(config)


def longest(config: Mapping[str, Any]) -> int | None:
    """The length up to which the model may be used."""
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length")
    return next((int(config[name]) for name in names if config.get(name)), None)


def rope_parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The dictionaries that describe RoPE: one, or one for each type of layer."""
    parts: list[Mapping[str, Any]] = []
    for name in ("rope_parameters", "rope_scaling"):
        whole = config.get(name)
        if isinstance(whole, Mapping):
            parts += [part for part in whole.values() if isinstance(part, Mapping)] or [whole]
    return parts


def type_of(config: Mapping[str, Any], at: int) -> str | None:
    """What the configuration calls layer `at`, or None if it doesn't say."""
    for name in ("layer_types", "layers_block_type"):
        types = config.get(name)
        if isinstance(types, Sequence) and not isinstance(types, str) and at < len(types):
            return str(types[at])
    pattern, narrow = config.get("sliding_window_pattern"), None
    if isinstance(pattern, int) and pattern > 0:
        narrow = bool((at + 1) % pattern)
    elif isinstance(pattern, str) and pattern:
        narrow = pattern[at % len(pattern)] == "L"
    elif config.get("use_sliding_window") and config.get("max_window_layers") is not None:
        narrow = at >= config["max_window_layers"]
    return None if narrow is None else "sliding_attention" if narrow else "full_attention"


def turned_off(config: Mapping[str, Any], at: int, kind: str | None) -> bool:
    """Whether layer `at` has no RoPE, in one of three spellings: a flag or a base of 0 in a list, or null for its type."""
    lists = [config.get(name) for name in ("no_rope_layers", "layer_rope_theta")]
    zero = any(isinstance(listed, Sequence) and at < len(listed) and not listed[at] for listed in lists)
    return zero or (config.get("rope_parameters") or {}).get(kind, ...) is None


def rope_settings(config: Mapping[str, Any], at: int, kind: str | None) -> Settings | None:
    """RoPE in layer `at`, which is of this type; None if nothing speaks of it."""
    parameters, base = _rope_of(config, kind)
    bases = config.get("layer_rope_theta")
    base = float(bases[at]) if isinstance(bases, Sequence) and at < len(bases) else base
    if base is None and not parameters:
        return None
    rotated, width = _channels(config, parameters, kind)
    name = str(parameters.get("rope_type") or parameters.get("type") or "default")
    return Settings(
        base=base,
        rotated=(rotated, width) if rotated and width else None,
        spectrum="fast" if name == "proportional" else "whole",
        scaling=Scaling("none") if name in UNSTRETCHED else _scaling(config, name, parameters, (rotated or 0) // 2),
    )


def _rope_of(config: Mapping[str, Any], kind: str | None) -> tuple[Mapping[str, Any], float | None]:
    """What describes RoPE in layers of this type, and its base."""
    local = next((config[name] for name in LOCAL_BASES if config.get(name)), None)
    parameters: Mapping[str, Any] = config.get("rope_parameters") or {}
    nested = [name for name, part in parameters.items() if isinstance(part, Mapping)]
    if nested:
        label = {"sliding_attention": ("sliding_attention", "main"), "full_attention": ("full_attention", "compress")}
        names = [name for name in label.get(kind or "", (kind,)) if name in parameters]
        parameters = parameters[str(names[0]) if names else nested[-1]]
    scaling = config.get("rope_scaling") or {}
    if not parameters and local and kind in NARROW:
        return {"rope_type": "default"}, float(local)
    merged = {**parameters, **{key: value for key, value in scaling.items() if not isinstance(value, Mapping)}}
    base = merged.get("rope_theta") or next((config[name] for name in BASES if config.get(name)), None)
    return merged, None if base is None else float(base)


def _channels(config: Mapping[str, Any], parameters: Mapping[str, Any], kind: str | None) -> tuple[int | None, int | None]:
    """How many channels rotate, and how many there are."""
    heads = _whole(config, "num_attention_heads", "n_head", "n_heads")
    hidden = _whole(config, "hidden_size", "n_embd", "d_model")
    width = (kind in WIDE and config.get("global_head_dim")) or config.get("head_dim")
    width = width or (hidden // heads if hidden and heads else None)
    if config.get("qk_rope_head_dim"):
        rotated, rest = config["qk_rope_head_dim"], config.get("qk_nope_head_dim")
        return rotated, rotated + rest if rest else width
    share = parameters.get("partial_rotary_factor", config.get("partial_rotary_factor", config.get("rotary_pct")))
    return config.get("rotary_dim") or (int(width * share) if width and share is not None else width), width


def _scaling(config: Mapping[str, Any], kind: str, parameters: Mapping[str, Any], pairs: int) -> Scaling:
    original = parameters.get("original_max_position_embeddings") or config.get("original_max_position_embeddings")
    most, factor, attention = longest(config), parameters.get("factor"), parameters.get("attention_factor")
    if factor is None and kind in ("longrope", "yarn") and most and original:
        factor = most / original
    if factor is not None and not (isinstance(factor, int | float) and factor >= 1):
        raise ValueError(f"factor must be a number >= 1, got {factor!r}: correct the scaling in the configuration")
    factor = float(factor or 1)
    length = most if kind == "dynamic" else original or (None if kind == "linear" else most)
    turns = divisors = None
    if kind == "llama3":
        turns = (parameters.get("low_freq_factor", 1.0), parameters.get("high_freq_factor", 4.0))
    elif kind == "yarn":
        turns = (parameters.get("beta_slow") or 1, parameters.get("beta_fast") or 32)
        attention = attention or _yarn_factor(factor, parameters)
    elif kind == "longrope":
        divisors = tuple(parameters.get("short_factor") or ()), tuple(parameters.get("long_factor") or ())
        attention = attention or (math.sqrt(1 + math.log(factor) / math.log(length)) if length else None)
    elif kind == "divisors":
        divisors = tuple(parameters["divisors"]), tuple(parameters["divisors"])
    if divisors and {len(each) for each in divisors} != {pairs}:
        divisors = None
    truncate = parameters.get("truncate", True)
    return Scaling(kind, factor, int(length) if length else None, float(attention or 1), truncate, turns, divisors)


def _yarn_factor(factor: float, parameters: Mapping[str, Any]) -> float:
    """DeepSeek's two settings multiply the logarithm, and divide one factor by the other."""
    one, all_dim = parameters.get("mscale"), parameters.get("mscale_all_dim")
    if one and all_dim:
        return (0.1 * one * math.log(factor) + 1) / (0.1 * all_dim * math.log(factor) + 1)
    return yarn_attention_factor(factor)


def _whole(config: Mapping[str, Any], *names: str) -> int | None:
    """The first of these that is given. Raises ValueError if it isn't a whole number."""
    for name in names:
        value = config.get(name)
        if value is not None and not (isinstance(value, int) and value > 0):
            raise ValueError(f"{name} must be a whole number >= 1, got {value!r}: correct the configuration")
        if value is not None:
            return value
    return None
