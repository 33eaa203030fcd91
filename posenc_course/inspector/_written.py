"""What a configuration says of a layer, by the rules of its type."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from posenc_course.inspector._config import first, longest, names, scaling_keys, tables, type_of_rope, wrong_value
from posenc_course.inspector._layers import Knowledge, of_settings
from posenc_course.models import Scaling, Settings
from posenc_course.rope_scaling import yarn_attention_factor


def written(config: Mapping[str, Any], row: Mapping[str, Any], at: int) -> Knowledge | None:
    """What a reader of the configuration would expect of layer `at`; None if it has no attention."""
    kind = type_of(config, row, at)
    if kind in names("no_attention"):
        return None
    window = window_of(config, row, at, kind) if is_usual(kind) else None
    named = config.get("position_embedding_type", "").lower()
    rows = config.get(row["rows"]) if "rows" in row else longest(config)
    if named == "nope" or kind == "cross_attention" or turned_off(config, row, at, kind):
        return Knowledge("none", window=window)
    if config.get("alibi") or named == "alibi":
        return Knowledge("ALiBi", window=window)
    if config.get("relative_attention_num_buckets"):
        return Knowledge("T5's bias", rows=config["relative_attention_num_buckets"], window=window)
    encodings = row.get("encodings", [])
    for key, by_value in row.get("by_value", {}).items():
        if key in config:
            encodings = [by_value[str(config[key]).lower()]] if str(config[key]).lower() in by_value else []
    parameters, base = _rope_of(config, kind, at)
    by_name = named.startswith(("rot", "rope"))
    several = kind is None and "name" not in row and any(config.get(key) for key in names("local_bases"))
    spoken_of = base is not None or parameters
    if (by_name and not spoken_of) or (spoken_of and several):  # which layers have which base, only the class knows
        return Knowledge("RoPE", window=window)
    if spoken_of and (by_name or "RoPE" in encodings or not encodings):
        return replace(_rope(config, row, kind, parameters, base), window=window, sinks=row.get("sinks"))
    if not encodings and named == "absolute":
        return Knowledge("learned table", rows=rows, window=window)
    encoding = encodings[0] if len(encodings) == 1 else None
    if encoding in ("learned table", "sinusoids"):
        rows = None if row.get("grows") or not rows else rows + row.get("more_rows", 0)
        more = row.get("more", False)
        return Knowledge(encoding, rows=rows, first_row=row.get("first_row", 0), more=more, window=window)
    return Knowledge(encoding, window=window)


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
    for name, number in (("full_attn_idxs", at), ("full_attn_layers", at + 1)):
        if name in config:
            return "full_attention" if number in config[name] else "linear_attention"
    for name, kinds in tables()["types_by"].items():
        if at < len(config.get(name, ())):
            return str(kinds.get(str(config[name][at]), "mamba"))
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


def is_usual(kind: str | None) -> bool:
    """Whether a window says how far the queries of such a layer see; those of others may see farther by other means."""
    return kind is None or kind in (*names("wide"), *names("narrow"), "cross_attention")


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


def _rope(
    config: Mapping[str, Any], row: Mapping[str, Any], kind: str | None, parameters: Mapping[str, Any], base: float | None
) -> Knowledge:
    """RoPE in layers of this type."""
    name = type_of_rope(parameters)
    rotated, width = _channels(config, parameters, kind)
    unstretched = name in tables()["unstretched"]
    if base:
        base *= config.get("base_times", 1.0)
    if base and name == "dynamic" and parameters.get("alpha") and rotated and rotated > 2:
        unstretched = True  # another base for all lengths, by the name of a scaling that grows
        base *= parameters["alpha"] ** (rotated / (rotated - 2))
    scaling = Scaling("none") if unstretched else _scaling(config, name, parameters, (rotated or 0) // 2)
    channels = (rotated, width) if rotated and width else None
    apart = name == "proportional" and channels and rotated != width
    first_channel, score = None if apart else 0, None  # apart: the first of each half
    if row.get("last") and channels:
        first_channel = channels[1] - channels[0]
    if config.get("qk_rope_head_dim"):  # DeepSeek's kind: the last channels rotate, and YaRN may multiply the scores, too
        first_channel, all_dim = config.get("qk_nope_head_dim"), parameters.get("mscale_all_dim")
        score = (0.1 * all_dim * math.log(scaling.factor) + 1) ** 2 if all_dim and scaling.kind == "yarn" else None
    layout = row.get("layout") if config.get("original_rope", True) else "halves"
    interleaved = config.get("rotary_emb_interleaved")
    return of_settings(
        "RoPE",
        Settings(base=base, rotated=channels, spectrum="fast" if name == "proportional" else "whole", scaling=scaling),
        layout=layout if interleaved is None else "interleaved" if interleaved else "halves",
        first_channel=first_channel,
        score=score,
        far_factor=parameters.get("long_mscale") if "long_mscale" in row.get("reads", ()) else None,
    )


def _rope_of(config: Mapping[str, Any], kind: str | None, at: int) -> tuple[Mapping[str, Any], float | None]:
    """What describes RoPE in layer `at`, of this type, and its base."""
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
    bases = config.get("layer_rope_theta", ())
    base = bases[at] if at < len(bases) else first([merged], "rope_theta") or first([config], *names("bases"))
    if far := None if nested else config.get("compress_rope_theta"):  # layers with another base, which alone are stretched
        return ({"rope_type": "default"}, base) if kind in names("narrow") else ({**merged, "attention_factor": 1.0}, far)
    return merged, base


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
        raise wrong_value(f"{rotated:,} channels can't rotate in a head that has {width:,}")
    return rotated, width


def _scaling(config: Mapping[str, Any], kind: str, parameters: Mapping[str, Any], pairs: int) -> Scaling:
    original = first([parameters, config], "original_max_position_embeddings")
    most, factor, attention = longest(config), parameters.get("factor"), parameters.get("attention_factor")
    if factor is None and kind in ("longrope", "yarn") and most and original:
        factor = most / original
        if factor < 1:
            what = f"the longest text, {most:,} tokens, must be at least original_max_position_embeddings, {original:,}"
            raise wrong_value(what)
    factor = factor or 1.0
    length = most if kind == "dynamic" else original or (None if kind == "linear" else most)
    turns = divisors = None
    if kind == "llama3":
        turns = _turns(parameters, low_freq_factor=1.0, high_freq_factor=4.0)
    elif kind == "yarn":
        turns = _turns(parameters, beta_slow=1.0, beta_fast=32.0)
        attention = attention or _yarn_factor(factor, parameters)
    elif kind == "longrope":
        attention = attention or parameters.get("short_mscale")
        divisors = tuple(parameters.get("short_factor", ())), tuple(parameters.get("long_factor", ()))
        if length and length > 1 and {*parameters} <= scaling_keys():  # with other keys, a model has another factor
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
        raise wrong_value(f"{low} must be at most {high}, got {slow:g} and {fast:g}")
    return slow, fast


def _yarn_factor(factor: float, parameters: Mapping[str, Any]) -> float:
    """DeepSeek's two settings multiply the logarithm, and divide one factor by the other."""
    one, all_dim = parameters.get("mscale"), parameters.get("mscale_all_dim")
    if one and all_dim:
        return (0.1 * one * math.log(factor) + 1) / (0.1 * all_dim * math.log(factor) + 1)
    return yarn_attention_factor(factor)
