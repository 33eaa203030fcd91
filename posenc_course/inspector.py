"""What does each layer of a model know about position? Read its configuration, build its class in small, and compare the two.

    python -m posenc_course inspect config.json

A configuration alone can mislead: a base may be written down where nothing rotates, or under a name that nobody reads. So where
transformers is installed, its class is built with few channels and random weights, and the rotation of each layer is read off
from what it does to unit vectors. What is written and what is done are then compared, and a difference is the first line.
"""

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from posenc_course._probing import Done, NotProbed, Probe, probe
from posenc_course.models import LayerKind, Model, find_model, load_models
from posenc_course.rope_scaling import dynamic_ntk, llama3, position_interpolation, yarn, yarn_attention_factor
from posenc_course.sinusoidal import frequencies


@dataclass(frozen=True)
class Knowledge:
    """What a layer knows about position; a value is None if nothing says it, or if the encoding doesn't have it.

    Args:
        encoding: "RoPE", "learned table", "sinusoids", "ALiBi", "T5's bias" or "none".
        base: the base of the frequencies.
        rotated: how many channels of a query and a key rotate, and how many there are.
        first_channel: the first channel that rotates.
        layout: "interleaved" or "halves", as in `models.LayerKind`.
        frequencies: in radians per token, one for each pair that rotates, as the layer uses them in a short text.
        trained: the same without the stretching.
        far: the frequencies beyond the length at which they switch.
        stretch: the kind of stretching, its factor, and the length that it starts from; "none" without one.
        attention_factor: multiplies both query and key.
        window: how many tokens a query can see, itself included; 0 if there is no limit.
        rows: of a table, or the buckets of T5's bias.
        sinks: whether heads have a learned score that belongs to no token.
        score: what scores are multiplied by beside 1/√d.
    """

    encoding: str | None = None
    base: float | None = None
    rotated: tuple[int, int] | None = None
    first_channel: int | None = None
    layout: str | None = None
    frequencies: tuple[float, ...] = ()
    trained: tuple[float, ...] = ()
    far: tuple[float, ...] = ()
    stretch: tuple[str, float, int | None] = ("none", 1.0, None)
    attention_factor: float = 1.0
    window: int | None = None
    rows: int | None = None
    sinks: bool | None = None
    score: float | None = None


@dataclass(frozen=True)
class Kind:
    """Layers that are alike: what the configuration says of them, and what the class does, if it was run.

    `layers` are their numbers, or empty if only their `count` is known.
    """

    layers: tuple[int, ...]
    count: int
    written: Knowledge
    done: Knowledge | None

    @property
    def known(self) -> Knowledge:
        """What holds: what the class does, and otherwise what is written."""
        return self.done or self.written


class Finding(NamedTuple):
    """Something to know before you port, convert or stretch this model.

    `level` is "wrong" if a written value isn't used or contradicts another one, "warning" if a reader of the configuration is
    likely to build something different, and "note" otherwise. `symptom` is what it looks like, `page` where the course explains
    it, and `thread` somebody's report of it.
    """

    level: Literal["wrong", "warning", "note"]
    code: str
    text: str
    symptom: str
    page: str
    thread: str


@dataclass(frozen=True)
class Report:
    """What `inspect` found. `training_length` is in tokens; `unprobed` says why the class wasn't run, or is empty if it was."""

    name: str
    class_name: str
    layers: int
    training_length: int | None
    kinds: tuple[Kind, ...]
    findings: tuple[Finding, ...]
    limits: tuple[tuple[int, str], ...]
    unprobed: str

    def headline(self) -> str:
        """The main finding, in one sentence."""
        worst = [each for level in ("wrong", "warning") for each in self.findings if each.level == level]
        if worst:
            more = f" ({len(worst) - 1} more below)" if len(worst) > 1 else ""
            return f"{self.name}: {worst[0].text}{more}"
        if self.unprobed == FROM_TABLE:
            return f"{self.name}: what the table of models says"
        if self.unprobed:
            return f"{self.name}: nothing in the configuration contradicts itself, but no class was run ({self.unprobed})"
        return f"{self.name}: the class {self.class_name} does what the configuration says"

    def text(self) -> str:
        """The report for people. Its first line is the headline; the others have at most 80 characters."""
        first, *rest = _lines(self)
        return "\n".join([first, *(part for line in rest for part in _wrapped(line))])

    def as_json(self) -> str:
        """The report for programs."""
        return json.dumps({"headline": self.headline()} | asdict(self), indent=1, ensure_ascii=False)


FROM_TABLE = "these are the values of the table of models"
# What a finding looks like to the people who meet it, where the course explains it, and who reported it.
CATALOGUE = {
    "base": (
        "short texts read well, and after a thousand tokens or more the model stops making sense",
        "07_base",
        "https://github.com/deepspeedai/DeepSpeed/pull/8341",
    ),
    "base-missing": (
        "a program with a different default reads short texts well, and long ones badly",
        "reference/models",
        "https://github.com/Open-Athena/MarinFold/issues/184",
    ),
    "two-bases": (
        "two programs read the same file and disagree on long texts",
        "reference/models",
        "https://github.com/Open-Athena/MarinFold/pull/198",
    ),
    "scaling": (
        "nothing changes when you change the scaling, or long texts are as bad as without it",
        "13_stretching",
        "https://github.com/MakazhanAlpamys/Soup/issues/793",
    ),
    "unread-key": (
        "a setting has no effect, and no error says so",
        "deeper/13_stretching",
        "https://github.com/deepseek-ai/DeepSeek-R1/issues/684",
    ),
    "lengths": (
        "long texts are worse than they should be, and short texts suffer, too",
        "deeper/13_stretching",
        "https://github.com/vllm-project/vllm/issues/37886",
    ),
    "short-texts-pay": (
        "scores on short texts fall as soon as the stretching is switched on",
        "13_stretching",
        "https://github.com/QwenLM/Qwen3/issues/1567",
    ),
    "switch": (
        "a conversation gets worse when it grows past this length, because cached keys keep their old angles",
        "deeper/13_stretching",
        "https://github.com/vllm-project/vllm/issues/3488",
    ),
    "no-rope": (
        "short prompts are fluent, but digits come in the wrong order, or the text starts to loop",
        "14_layers",
        "https://github.com/kekzl/imp/issues/515",
    ),
    "nope-list": (
        "the model repeats a word, because RoPE is missing where it was trained",
        "14_layers",
        "https://github.com/huggingface/smollm/issues/130",
    ),
    "channels": (
        "the first tokens are good, and the rest makes no sense",
        "reference/conventions",
        "https://github.com/NeuraLegion/shainet/pull/111",
    ),
    "window": (
        "outputs differ from the original as soon as a text is longer than the window",
        "reference/models",
        "https://github.com/huggingface/transformers/issues/29623",
    ),
    "refused": (
        "loading the model ends with an error",
        "reference/models",
        "https://github.com/huggingface/transformers/issues/32916",
    ),
}
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


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def inspect(config: Mapping[str, Any], *, name: str = "", length: int | None = None, run: bool = True) -> Report:
    """Read a configuration, run its class if transformers has it, and compare the two.

    Args:
        config: the keys and values of a config.json; if a part `text_config` has them, it is read instead.
        name: what to call the model.
        length: the training length in tokens, if you know better than the configuration.
        run: whether to build and run the class.

    Raises ValueError if the configuration doesn't say what the model is.
    """
    if not isinstance(config, Mapping):
        raise ValueError(f"config must be a mapping, got {config!r}: give what is in a config.json")
    if isinstance(config.get("text_config"), Mapping):
        config = dict(config["text_config"])
    number = _number(config)
    if not isinstance(number, int) or number < 1:
        raise ValueError(
            f"the configuration has {number!r} layers, under num_hidden_layers: give the config.json of a model that has layers"
        )
    found: Probe | None = None
    whole, followed, unprobed = None, False, ""
    try:
        if not run:
            raise NotProbed("you asked for the configuration alone")
        if "gguf" in config:
            raise NotProbed("a GGUF file is read by llama.cpp, not by transformers")
        found = probe(config)
        whole = _by_parts(found)
        attending = [done for done in found.layers.values() if done.width]
        followed = bool(attending)
        # Recurrent layers may take positions with gaps for several texts.
        hidden = found.uses_positions and len(attending) == number and not any(done.rotation for done in attending)
        if found.failed or not (followed or whole) or (hidden and not whole):
            unprobed = found.failed or f"{found.name} has no attention whose positions the probe can follow"
    except NotProbed as error:
        unprobed = str(error)
    trained_on = length or _training_length(config)
    like = _like(config)
    kinds: dict[tuple[Knowledge, Knowledge | None], list[int]] = {}
    for at in range(number):
        written = _written(config, at, number)
        done = None
        if found and not unprobed:
            done = _done(found, found.layers.get(at), written) if followed else whole
            if done is None:
                continue  # a layer without attention
        if written.encoding is None:
            written = replace(written, encoding=_encoding_of(like))
        kinds.setdefault((written, done), []).append(at)
    made = tuple(Kind(tuple(layers), len(layers), *both) for both, layers in kinds.items())
    findings = list(_findings(config, made, found, unprobed, like, number))
    order = ("wrong", "warning", "note")
    findings.sort(key=lambda finding: order.index(finding.level))
    return Report(
        name or str(config.get("gguf") or config.get("_name_or_path") or config.get("model_type") or "this model"),
        found.name if found else "",
        number,
        trained_on,
        made,
        tuple(findings),
        tuple(sorted(_limits(config, made, trained_on))),
        unprobed,
    )


def inspect_model(name: str) -> Report:
    """The report on a model of the table, from its released values, and its class's default where these weren't looked up.

    Raises ValueError if the table has no such model.
    """
    model = find_model(name)
    made = tuple(
        Kind((), (kind.released.layers or kind.default.layers or (0, 0))[0], _of_table(kind), None) for kind in model.attention
    )
    layers = max((kind.released.layers or kind.default.layers or (0, 0))[1] for kind in model.attention)
    lengths = [each.released.scaling.original_length for each in model.attention if each.released.scaling]
    trained_on = next(filter(None, lengths), None)
    return Report(name, model.config, layers, trained_on, made, (), tuple(sorted(_limits({}, made, trained_on))), FROM_TABLE)


def _of_table(kind: LayerKind) -> Knowledge:
    values = {
        field: getattr(kind.released, field) if getattr(kind.released, field) is not None else getattr(kind.default, field)
        for field in ("layers", "base", "rotated", "window", "scaling", "rows")
    }
    both = replace(kind.released, **values)
    scaling = both.scaling
    try:
        now = tuple(both.frequencies().tolist())
        before = tuple(replace(both, scaling=scaling._replace(kind="none")).frequencies().tolist()) if scaling else now
    except ValueError:  # no formula, or no base
        now = before = ()
    return Knowledge(
        kind.encoding,
        both.base,
        both.rotated,
        None,
        kind.layout,
        now,
        before,
        stretch=(scaling.kind, scaling.factor, scaling.original_length) if scaling else ("none", 1.0, None),
        attention_factor=scaling.attention_factor if scaling else 1.0,
        window=both.window,
        rows=both.rows,
        sinks=kind.sinks,
    )


def _like(config: Mapping[str, Any]) -> Model | None:
    """The model of the table with the same class: gpt_neox is GPTNeoXConfig."""
    kind = re.sub(r"[_-]|text$", "", str(config.get("model_type", "")).lower())
    for model in load_models():
        if kind and kind == re.sub(r"(Text)?Config$|_", "", model.config).lower():
            return model
    return None


def _encoding_of(like: Model | None) -> str | None:
    encodings = {kind.encoding for kind in like.attention} if like else set()
    return "RoPE" if "RoPE" in encodings else encodings.pop() if len(encodings) == 1 else None


def _number(config: Mapping[str, Any]) -> Any:
    """How many layers there are, by a number or by a list with an entry for each."""
    numbers = [
        config[key] for key in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers") if key in config
    ]
    lists = [config[key] for key in ("layers_block_type", "layer_types", "hybrid_override_pattern") if config.get(key)]
    return numbers[0] if numbers else len(lists[0]) if lists else None


def _training_length(config: Mapping[str, Any]) -> int | None:
    for part in (*_parts(config), config):
        if part.get("original_max_position_embeddings"):
            return int(part["original_max_position_embeddings"])
    return _longest(config)


def _longest(config: Mapping[str, Any]) -> int | None:
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx", "max_sequence_length")
    return next((int(config[name]) for name in names if config.get(name)), None)


def _parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The dictionaries that describe RoPE: one, or one for each type of layer."""
    parts: list[Mapping[str, Any]] = []
    for name in ("rope_parameters", "rope_scaling"):
        whole = config.get(name)
        if isinstance(whole, Mapping):
            nested = [part for part in whole.values() if isinstance(part, Mapping)]
            parts += nested or [whole]
    return parts


def _type_of(config: Mapping[str, Any], at: int, number: int) -> str | None:
    """What the configuration calls this layer, or None if it doesn't say."""
    for name in ("layer_types", "layers_block_type"):
        types = config.get(name)
        if isinstance(types, Sequence) and not isinstance(types, str) and at < len(types):
            return str(types[at])
    pattern = config.get("sliding_window_pattern")
    if isinstance(pattern, int) and pattern > 0:
        return "sliding_attention" if (at + 1) % pattern else "full_attention"
    if isinstance(pattern, str) and pattern:
        return "sliding_attention" if pattern[at % len(pattern)] == "L" else "full_attention"
    if config.get("use_sliding_window") and config.get("max_window_layers") is not None:
        return "sliding_attention" if at >= config["max_window_layers"] else "full_attention"
    return None


def _written(config: Mapping[str, Any], at: int, number: int) -> Knowledge:
    """What a reader of the configuration would expect of this layer."""
    kind = _type_of(config, at, number)
    window = config.get("sliding_window") or config.get("attention_chunk_size")
    if not window or config.get("use_sliding_window") is False or kind in WIDE:
        window = 0
    elif kind not in NARROW:
        window = None if _mixed(config) else window
    if kind in WIDE and config.get("global_head_dim"):
        config = {**config, "head_dim": config["global_head_dim"]}
    nested = config.get("attn_config") if isinstance(config.get("attn_config"), Mapping) else {}
    position = config.get("position_embedding_type")
    if position == "nope":
        return Knowledge("none", window=window)
    if config.get("alibi") or (nested or {}).get("alibi"):
        return Knowledge("ALiBi", window=window)
    if config.get("relative_attention_num_buckets"):
        return Knowledge("T5's bias", rows=config["relative_attention_num_buckets"], window=window)
    parameters, base = _rope_of(config, kind)
    if base is None and not parameters:
        learned = position == "absolute" or "n_positions" in config
        return Knowledge("learned table" if learned else None, rows=_longest(config) if learned else None, window=window)
    listed = config.get("no_rope_layers")
    if isinstance(listed, Sequence) and at < len(listed) and not listed[at]:
        return Knowledge("none", window=window)
    return replace(_rope(config, parameters, base), window=window)


def _mixed(config: Mapping[str, Any]) -> bool:
    """Whether classes of this type have windows in some layers only, without the configuration saying in which."""
    like = _like(config)
    return like is not None and len({bool(kind.default.window) for kind in like.attention}) > 1


def _rope_of(config: Mapping[str, Any], kind: str | None) -> tuple[Mapping[str, Any], float | None]:
    """What describes RoPE in layers of this type, and its base."""
    local = next((config[name] for name in LOCAL_BASES if config.get(name)), None)
    parameters: Mapping[str, Any] = config.get("rope_parameters") or {}
    nested = [name for name, part in parameters.items() if isinstance(part, Mapping)]
    if nested:
        label = {"sliding_attention": ("sliding_attention", "main"), "full_attention": ("full_attention", "compress")}
        names = [name for name in label.get(kind or "", (kind,)) if name in parameters]
        parameters = parameters[str(names[0])] if names else parameters[nested[-1]] or {}
    scaling = config.get("rope_scaling") or {}
    if not parameters and local and kind in NARROW:
        return {"rope_type": "default"}, float(local)
    merged = {**parameters, **{key: value for key, value in scaling.items() if not isinstance(value, Mapping)}}
    base = merged.get("rope_theta") or next((config[name] for name in BASES if config.get(name)), None)
    return merged, None if base is None else float(base)


def _rope(config: Mapping[str, Any], parameters: Mapping[str, Any], base: float | None) -> Knowledge:
    heads = _whole(config, "num_attention_heads", "n_head", "n_heads")
    hidden = _whole(config, "hidden_size", "n_embd", "d_model")
    width = config.get("head_dim") or (hidden // heads if hidden and heads else None)
    kind = str(parameters.get("rope_type") or parameters.get("type") or "default")
    share = parameters.get("partial_rotary_factor", config.get("partial_rotary_factor", config.get("rotary_pct")))
    rotated = config.get("rotary_dim") or (int(width * share) if width and share is not None else width)
    if config.get("qk_rope_head_dim"):
        rotated = config["qk_rope_head_dim"]
        nope = config.get("qk_nope_head_dim")
        width = rotated + nope if nope else width
    factor = parameters.get("factor")
    longest, original = _longest(config), parameters.get("original_max_position_embeddings")
    original = original or config.get("original_max_position_embeddings")
    if factor is None and kind in ("longrope", "yarn") and longest and original:
        factor = longest / original
    plain = kind in ("default", "none", "mrope", "axial", "proportional")
    stretch: tuple[str, float, int | None]
    stretch = ("none", 1.0, None) if plain else (kind, float(factor or 1), int(original) if original else None)
    known = Knowledge("RoPE", base, (rotated, width) if rotated and width else None, stretch=stretch)
    if not (base and rotated and width):
        return known
    omega = frequencies(width if kind == "proportional" else rotated, base=base)[: rotated // 2]
    now, far, attention = omega, None, parameters.get("attention_factor")
    length = original or longest
    if kind == "linear":
        now = position_interpolation(omega, factor or 1)
    elif kind == "llama3" and length:
        turns = {"slow": parameters.get("low_freq_factor", 1.0), "fast": parameters.get("high_freq_factor", 4.0)}
        now = llama3(omega, factor or 1, length, **turns)
    elif kind == "yarn" and length:
        turns = {"slow": parameters.get("beta_slow") or 1, "fast": parameters.get("beta_fast") or 32}
        now = yarn(omega, factor or 1, length, truncate=parameters.get("truncate", True), **turns)
        attention = attention or _yarn_factor(factor or 1, parameters)
    elif kind == "dynamic" and longest:
        far = dynamic_ntk(omega, 4 * longest, longest, factor or 1)
    elif kind == "longrope" and all(len(parameters.get(key) or ()) == len(omega) for key in ("short_factor", "long_factor")):
        now = omega / torch.tensor(parameters["short_factor"], dtype=torch.float64)
        far = omega / torch.tensor(parameters["long_factor"], dtype=torch.float64)
        if not attention and factor and factor > 1 and length:
            attention = math.sqrt(1 + math.log(factor) / math.log(length))
    elif kind == "divisors" and len(parameters["divisors"]) == len(omega):
        now = omega / torch.tensor(parameters["divisors"], dtype=torch.float64)
    return replace(
        known,
        frequencies=tuple(now.tolist()),
        trained=tuple(omega.tolist()),
        far=() if far is None else tuple(far.tolist()),
        attention_factor=float(attention or 1.0),
    )


def _whole(config: Mapping[str, Any], *names: str) -> int | None:
    """The first of these that is given. Raises ValueError if it isn't a whole number."""
    for name in names:
        value = config.get(name)
        if value is not None and not (isinstance(value, int) and value > 0):
            raise ValueError(f"{name} must be a whole number >= 1, got {value!r}: correct the configuration")
        if value is not None:
            return value
    return None


def _yarn_factor(factor: float, parameters: Mapping[str, Any]) -> float:
    """DeepSeek's two settings multiply the logarithm, and divide one factor by the other."""
    one, all_dim = parameters.get("mscale"), parameters.get("mscale_all_dim")
    if one and all_dim:
        return (0.1 * one * math.log(factor) + 1) / (0.1 * all_dim * math.log(factor) + 1)
    return yarn_attention_factor(factor)


# ── what the class does ──────────────────────────────────────────────────────────────────────────────────────────────────


def _done(found: Probe, done: Done | None, written: Knowledge) -> Knowledge | None:
    """What a layer did, in the words of what is written; None if it has no attention."""
    if done is None or not done.width:
        return None
    asked = found.config
    size = getattr(asked, "attention_chunk_size", None) or getattr(asked, "sliding_window", None)
    window = 0
    if done.windowed and size:
        window = 2 * (size + done.excess) - 1 if done.two_sided else size + done.excess
    rest: dict[str, Any] = {"window": window, "sinks": done.sinks, "score": round(done.score, 6)}
    if done.rotation is None:
        return replace(_by_parts(found) or Knowledge("none"), **rest)
    rotation = done.rotation
    channels, omega = rotation.channels, rotation.frequencies
    return Knowledge(
        "RoPE",
        written.base if _close(omega, written.frequencies) else _base(omega),
        (len(channels), done.width),
        channels[0],
        "interleaved" if rotation.interleaved else "halves",
        omega,
        written.trained if len(written.trained) == len(omega) else (),
        done.far.frequencies if done.far else (),
        written.stretch,
        round(rotation.factor, 6),
        **rest,
    )


def _by_parts(found: Probe) -> Knowledge | None:
    """The encodings that aren't rotations, from the parts of the class."""
    if found.alibi:
        return Knowledge("ALiBi")
    if found.buckets:
        return Knowledge("T5's bias", rows=found.buckets)
    if found.tables:
        return Knowledge("learned table", rows=min(found.tables.values()))
    return None


def _base(omega: Sequence[float]) -> float | None:
    """The base of frequencies that fall geometrically, to four digits; None if they don't."""
    if len(omega) < 3 or min(omega) <= 0:
        return None
    steps = [math.log(a / b) for a, b in pairwise(omega)]
    if max(steps) - min(steps) > 1e-3 * max(steps):
        return None
    return float(f"{math.exp(math.log(omega[0] / omega[-1]) * len(omega) / (len(omega) - 1)):.4g}")


def _close(a: Sequence[float], b: Sequence[float]) -> bool:
    """Equal but for the rounding of single precision."""
    return len(a) == len(b) and all(math.isclose(x, y, rel_tol=1e-4, abs_tol=1e-12) for x, y in zip(a, b, strict=True))


# ── findings ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _found(level: Literal["wrong", "warning", "note"], code: str, text: str) -> Finding:
    return Finding(level, code, text, *CATALOGUE[code])


def _findings(
    config: Mapping[str, Any], kinds: Sequence[Kind], found: Probe | None, unprobed: str, like: Model | None, number: int
) -> Iterator[Finding]:
    yield from _in_the_file(config, kinds, like, number)
    if unprobed or found is None:
        if "refuses it" in unprobed:
            yield _found("wrong", "refused", unprobed)
        encodings = {kind.encoding for kind in like.attention} if like else set()
        if like and encodings == {"none"} and any(kind.written.encoding == "RoPE" for kind in kinds):
            text = f"the configuration has a base, but {like.config.removesuffix('Config')} has no RoPE in any layer"
            yield _found("warning", "no-rope", text)
        elif like and "none" in encodings and not any(kind.written.encoding == "none" for kind in kinds):
            text = f"{like.config.removesuffix('Config')} has layers without RoPE, and the configuration doesn't say which"
            yield _found("warning", "no-rope", text)
        return
    for kind in kinds:
        if kind.done:
            yield from _differences(config, kind, found)


def _in_the_file(config: Mapping[str, Any], kinds: Sequence[Kind], like: Model | None, number: int) -> Iterator[Finding]:
    """What the configuration alone gives away."""
    tops = {name: float(config[name]) for name in BASES if isinstance(config.get(name), int | float)}
    for part in _parts(config):
        kind = str(part.get("rope_type") or part.get("type") or "default")
        inside = part.get("rope_theta")
        nested = any(isinstance(each, Mapping) for each in (config.get("rope_parameters") or {}).values())
        if inside and tops and not nested and float(inside) not in tops.values():
            name, value = next(iter(tops.items()))
            yield _found("wrong", "two-bases", f"the base is {value:,.0f} under {name}, and {inside:,.0f} with the scaling")
        if kind not in {*KEYS, "divisors", "none"}:
            known = ", ".join(KEYS)
            yield _found("wrong", "unread-key", f"the type of scaling is {kind!r}, and transformers knows {known}")
        unknown = [key for key in part if kind in KEYS and key not in ALWAYS | {*KEYS[kind]} and not key.endswith("_theta")]
        for key in unknown:
            instead = "; attention_factor is" if key.startswith("attn") else ""
            yield _found("wrong", "unread-key", f"{key} isn't read for {kind}{instead}")
        factor, longest = part.get("factor"), _longest(config)
        original = part.get("original_max_position_embeddings")
        if kind == "yarn" and factor and longest and original and not math.isclose(original * factor, longest, rel_tol=0.01):
            if original == longest:
                text = (
                    f"original_max_position_embeddings and max_position_embeddings are both {longest:,}: the first is the "
                    f"length before stretching by {factor:g}, and the second the one after it"
                )
                yield _found("warning", "lengths", text)
            else:
                text = f"{original:,} tokens stretched by {factor:g} are {original * factor:,.0f}, not {longest:,}"
                yield _found("wrong", "lengths", f"{text}: original_max_position_embeddings is the length before stretching")
    if "rope_scaling" in config and "rope_parameters" in config and config["rope_scaling"] and config["rope_parameters"]:
        yield _found("warning", "scaling", "there are both rope_scaling and rope_parameters, and transformers reads the first")
    listed = config.get("no_rope_layers")
    if isinstance(listed, Sequence) and listed and 2 * sum(map(bool, listed)) < len(listed):
        off = len(listed) - sum(map(bool, listed))
        text = f"no_rope_layers leaves {off} of {len(listed)} layers without RoPE: in this list, 1 means that a layer rotates"
        yield _found("warning", "nope-list", text)
    rotary = [kind for kind in kinds if kind.known.encoding == "RoPE"]
    if any(kind.written.encoding == "RoPE" and kind.written.base is None for kind in kinds) and rotary:
        base = next((kind.done.base for kind in rotary if kind.done and kind.done.base), None)
        text = "no base is written down" + (f", and the class takes {base:,.0f}" if base else "")
        yield _found("warning", "base-missing", text)


def _which(kind: Kind, number: int) -> str:
    if kind.count == number:
        return "all layers"
    some = ", ".join([*map(str, kind.layers[:3]), *(["…"] if kind.count > 3 else [])])
    return f"{kind.count} of {number} layers" + (f" ({some})" if kind.layers else "")


def _differences(config: Mapping[str, Any], kind: Kind, found: Probe) -> Iterator[Finding]:
    """Where the class does something different from what is written."""
    written, done = kind.written, kind.done
    assert done
    where = _which(kind, len(found.layers))
    if (written.encoding, done.encoding) == ("RoPE", "none"):
        nowhere = where.replace("all layers", "any layer")
        yield _found("warning", "no-rope", f"the configuration has a base, but {found.name} doesn't rotate in {nowhere}")
    elif (written.encoding, done.encoding) == ("none", "RoPE"):
        yield _found("wrong", "no-rope", f"the configuration has no RoPE in {where}, but {found.name} rotates there")
    elif done.encoding == "RoPE" and written.frequencies:
        yield from _rotations_differ(written, done, where, found)
    if written.window and not done.window:
        yield _found("wrong", "window", f"the window of {written.window:,} tokens isn't used: {found.name} has none in {where}")
    elif written.window and done.window and done.window != written.window:
        text = f"the configuration says {written.window:,} tokens, but a query of {found.name} sees {done.window:,} in {where}"
        yield _found("warning", "window", text)


def _rotations_differ(written: Knowledge, done: Knowledge, where: str, found: Probe) -> Iterator[Finding]:
    now, then = done.frequencies, written.frequencies
    stretched = written.stretch[0] != "none"
    if len(now) != len(then):
        text = f"{2 * len(then)} channels should rotate, but {found.name} rotates {2 * len(now)} in {where}"
        yield _found("wrong", "channels", text)
    elif not _close(now, then):
        base = _base(now)
        if stretched and _close(now, written.trained):
            text = f"the scaling ({written.stretch[0]}, by {written.stretch[1]:g}) isn't used: {found.name} rotates without it"
            yield _found("wrong", "scaling", f"{text} in {where}")
        elif base and written.base and not math.isclose(base, written.base, rel_tol=1e-3):
            lost = ", and without the scaling" if stretched and math.isclose(now[0], 1, rel_tol=1e-4) else ""
            text = f"the base should be {written.base:,.0f}, but {found.name} rotates with {base:,.0f}{lost} in {where}"
            yield _found("wrong", "base", text)
        else:
            worst = max(max(a, b) / min(a, b) for a, b in zip(now, then, strict=True))
            text = f"{found.name} rotates with frequencies that differ by up to a factor of {worst:.3g} from those written down"
            yield _found("wrong", "scaling", f"{text} in {where}")
    if not math.isclose(written.attention_factor, done.attention_factor, rel_tol=1e-4):
        text = f"queries and keys should be multiplied by {written.attention_factor:.4g}, but {found.name} multiplies by "
        yield _found("wrong", "scaling", f"{text}{done.attention_factor:.4g} in {where}")


# ── lengths ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Pairs(NamedTuple):
    """The pairs of a rotation against the training length, all in the frequencies that the model was trained with.

    `incomplete` complete no rotation within it. `brakes` cover between a quarter and half of a circle, like those pairs that
    chapters 13 and 18 found guilty. `kept` and `divided` count the pairs that a stretching leaves alone or slows by the whole
    factor. `first_new` is the distance from which a pair is at an angle that training didn't show.
    """

    incomplete: tuple[int, ...]
    brakes: tuple[int, ...]
    kept: int
    divided: int
    first_new: int | None


def pairs(knowledge: Knowledge, length: int) -> Pairs:
    """Compare each pair's wavelength with the training length.

    Args:
        knowledge: of a layer with RoPE.
        length: the training length, in tokens.

    Raises ValueError if the frequencies aren't known, or for a length below 1.
    """
    if not knowledge.frequencies:
        raise ValueError(f"no frequencies are known of {knowledge.encoding!r}: give a layer with RoPE, whose base is known")
    if not isinstance(length, int) or length < 1:
        raise ValueError(f"length must be a whole number >= 1, got {length!r}: give the training length in tokens")
    now = knowledge.far or knowledge.frequencies
    trained = knowledge.trained or now
    circles = [omega * length / (2 * math.pi) for omega in trained]
    incomplete = tuple(i for i, part in enumerate(circles) if part < 1)
    slowed = [before / after if after else 1.0 for before, after in zip(trained, now, strict=True)]
    most = max(slowed)
    return Pairs(
        incomplete,
        tuple(i for i in incomplete if 0.25 <= circles[i] <= 0.5),
        sum(each < 1.001 for each in slowed),
        sum(each > 0.999 * most for each in slowed) if most > 1.001 else 0,
        min((math.ceil(length * slowed[i] - 1e-3) for i in incomplete), default=None),
    )


def _limits(config: Mapping[str, Any], kinds: Sequence[Kind], length: int | None) -> set[tuple[int, str]]:
    """What happens as texts grow: lengths in tokens, and what is there."""
    limits = set()
    total = sum(kind.count for kind in kinds)
    for kind in kinds:
        known, where = kind.known, _which(kind, total)
        if known.encoding in ("learned table", "sinusoids") and known.rows:
            limits.add((known.rows, "the table ends: the next position has no row"))
        if known.window:
            limits.add((known.window, f"the window of {where} is full: keys farther away are out of sight there"))
        if known.encoding == "T5's bias":
            far = config.get("relative_attention_max_distance")
            if far:
                limits.add((int(far), "all larger distances share the last bucket"))
        if known.encoding != "RoPE" or not known.frequencies or 0 < (known.window or 0) <= (length or 0):
            continue
        if known.stretch[0] in ("longrope", "dynamic") and known.far:
            at = known.stretch[2] or _longest(config)
            if at:
                limits.add((at, "the frequencies switch: cached keys keep the old angles"))
        if length:
            found = pairs(known, length)
            if found.first_new:
                limits.add((found.first_new, f"the first distance with an angle that training didn't show, in {where}"))
            if found.brakes:
                now = known.far or known.frequencies
                back = math.ceil(2 * math.pi / now[found.brakes[0]])
                limits.add((back, f"pair {found.brakes[0]} completes its first circle in {where}"))
    return limits


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _wrapped(line: str) -> list[str]:
    indent = re.match(" *", line)[0] + "  "  # type: ignore[index]
    return textwrap.wrap(line, 80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _lines(report: Report) -> Iterator[str]:
    yield report.headline()
    for finding in report.findings:
        yield ""
        yield f"{finding.level} [{finding.code}]: {finding.text}"
        yield f"  looks like: {finding.symptom}"
        yield f"  read: {finding.page}"
        yield f"  reported in {finding.thread}"
    for kind in report.kinds:
        yield ""
        yield from _of_kind(kind, report)
    if report.limits:
        yield ""
        yield "as texts grow:"
        wide = max(len(f"{length:,}") for length, _ in report.limits)
        for length, what in report.limits:
            yield f"  {length:>{wide},} tokens: {what}"
    if report.unprobed:
        yield ""
        yield f"The class wasn't run: {report.unprobed}."


def _of_kind(kind: Kind, report: Report) -> Iterator[str]:
    known = kind.known
    total = max(report.layers, sum(each.count for each in report.kinds))
    doors = {"RoPE": "query and key", "ALiBi": "score", "T5's bias": "score", "none": ""}
    door = doors.get(known.encoding or "none", "embedding")
    what = {None: "encoding not written down", "none": "no encoding"}.get(known.encoding, str(known.encoding))
    yield f"{_which(kind, total)}: {what}" + (f", at the {door}" if door else "")
    if known.encoding == "RoPE":
        yield "  " + "; ".join(_rotation_words(known))
        yield from (f"  {line}" for line in _pair_words(known, report.training_length))
    if known.rows:
        yield f"  {known.rows:,} {'buckets' if door == 'score' else 'rows'}"
    if known.window is not None:
        yield "  " + (f"window of {known.window:,} tokens, its own included" if known.window else "no window")
    if known.sinks:
        yield "  sinks: each head has a score that belongs to no token"
    if known.score is not None and not math.isclose(known.score, 1, rel_tol=1e-4):
        yield f"  scores are multiplied by {known.score:.4g} in addition to 1/√d"


def _rotation_words(known: Knowledge) -> Iterator[str]:
    yield f"base {known.base:,.0f}" if known.base else "base not written down"
    if known.rotated:
        rotated, width = known.rotated
        side = "" if rotated == width else ", the first" if not known.first_channel else f", from channel {known.first_channel}"
        yield f"all {width} channels" if rotated == width else f"{rotated} of {width} channels{side}"
    if known.layout:
        yield "pairs of neighbours" if known.layout == "interleaved" else "pairs of halves"


def _pair_words(known: Knowledge, length: int | None) -> Iterator[str]:
    if not known.frequencies:
        return
    number = len(known.frequencies)
    if length:
        found = pairs(known, length)
        slow = len(found.incomplete)
        yield f"within {length:,} tokens, {slow} of {number} pairs complete no rotation"
        if found.brakes:
            yield f"  suspects, as in chapters 13 and 18: {_range(found.brakes)} between 1/4 and 1/2 of one"
    kind, factor, original = known.stretch
    if kind != "none":
        start = f" from {original:,} tokens" if original else ""
        yield f"stretched: {kind}, by {factor:g}{start}"
        if known.trained:
            divisors = [b / a for a, b in zip(known.far or known.frequencies, known.trained, strict=True) if a]
            if kind in ("longrope", "divisors"):
                yield f"  each pair has a divisor of its own, from {min(divisors):.3g} to {max(divisors):.3g}"
            else:
                found = pairs(known, length or 1)
                between = number - found.kept - found.divided
                yield f"  {found.kept} pairs as they were, {between} between, {found.divided} divided by {max(divisors):.3g}"
            moved = sum(not _close([a], [b]) for a, b in zip(known.frequencies, known.trained, strict=True))
            paid = f"pay, too: {moved} of {number} pairs have other frequencies" if moved else "keep their frequencies"
            yield f"  texts within the old length {paid}"
    if not math.isclose(known.attention_factor, 1, rel_tol=1e-6):
        factor = known.attention_factor
        yield f"  queries and keys times {factor:.4g}: scores times {factor**2:.4g}, at any length"


def _range(numbers: Iterable[int]) -> str:
    some = list(numbers)
    return f"pair {some[0]}, which completes" if len(some) == 1 else f"pairs {some[0]} to {some[-1]}, which complete"
