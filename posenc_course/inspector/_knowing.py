"""What a layer knows about position, as a configuration has it, as its class does it, or as the table of models has it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from posenc_course.inspector._probing import Probe
from posenc_course.inspector._reading import (
    NARROW,
    WIDE,
    first,
    longest,
    of_latent_attention,
    rope_settings,
    turned_off,
    type_of,
)
from posenc_course.models import LayerKind, Model, Scaling, Settings, load_models
from posenc_course.sinusoidal import frequencies


@dataclass(frozen=True)
class Knowledge:
    """What a layer knows about position; a value is None if nothing says it, or if the encoding doesn't have it.

    Args:
        encoding: "RoPE", "learned table", "sinusoids", "ALiBi", "T5's bias", "Inkling's bias" or "none".
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
        rows: of a table, or the buckets of T5's bias, or the offsets of Inkling's.
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


def _of_settings(encoding: str, settings: Settings, **rest: Any) -> Knowledge:
    scaling = settings.scaling or Scaling("none")
    switches = scaling.original_length if scaling.kind in ("dynamic", "longrope") else None
    now, trained, far = list[float](), list[float](), list[float]()
    try:
        now = settings.frequencies().tolist()
        trained = replace(settings, scaling=Scaling("none")).frequencies().tolist()
        far = settings.frequencies(4 * switches).tolist() if switches else []
    except ValueError:  # no formula, or no base
        pass
    return Knowledge(
        encoding,
        settings.base,
        settings.rotated,
        frequencies=tuple(now),
        trained=tuple(trained),
        far=tuple(far),
        stretch=scaling[:3],
        attention_factor=scaling.attention_factor,
        window=settings.window,
        rows=settings.rows,
        **rest,
    )


def of_table(kind: LayerKind) -> Knowledge:
    """The released values, and the class's default where these weren't looked up."""
    released = {name: value for name, value in vars(kind.released).items() if value is not None}
    return _of_settings(kind.encoding, replace(kind.default, **released), layout=kind.layout, sinks=kind.sinks)


def like(config: Mapping[str, Any]) -> Model | None:
    """The model of the table with the same class: gpt_neox is GPTNeoXConfig."""
    kind = re.sub(r"[_-]|text$", "", config.get("model_type", "").lower())
    return next((model for model in load_models() if kind and kind == class_key(model)), None)


def class_key(model: Model) -> str:
    """The name of a model's class as `like` compares it: gptneox for GPTNeoXConfig. Empty if transformers has none."""
    return re.sub(r"(Text)?Config$|_", "", model.config).lower()


def default_bases(model: Model) -> str:
    """The bases that a class takes if the configuration has none, in words; empty if they weren't looked up."""
    bases = {bool(kind.default.window): kind.default.base for kind in model.attention if kind.default.base}
    words = [f"{base:,.0f}" for base in dict.fromkeys(bases.values()) if base]
    if len(words) == 2 and set(bases) == {False, True}:
        return f"{bases[False]:,.0f} by default, and {bases[True]:,.0f} in layers with a window"
    return f"{' or '.join(words)} by default" if words else ""


def layout_of(model: Model) -> str | None:
    """How a class pairs the channels, if all its layers do it alike."""
    layouts = {kind.layout for kind in model.attention if kind.encoding == "RoPE"}
    return layouts.pop() if len(layouts) == 1 else None


def written(config: Mapping[str, Any], at: int) -> Knowledge:
    """What a reader of the configuration would expect of layer `at`."""
    kind, model = type_of(config, at), like(config)
    kinds = model.attention if model else ()
    window = first([config], "sliding_window", "attention_chunk_size")
    if not window or config.get("use_sliding_window") is False or kind in WIDE:
        window = 0
    elif kind not in NARROW and len({bool(each.default.window) for each in kinds}) > 1:
        window = None  # some layers have it, and the configuration doesn't say which
    position = config.get("position_embedding_type")
    if position == "nope":
        return Knowledge("none", window=window)
    if config.get("alibi") or config.get("attn_config", {}).get("alibi"):
        return Knowledge("ALiBi", window=window)
    if config.get("relative_attention_num_buckets"):
        return Knowledge("T5's bias", rows=config["relative_attention_num_buckets"], window=window)
    if turned_off(config, at, kind):
        return Knowledge("none", window=window)
    settings = rope_settings(config, at, kind)
    if settings:
        layout = layout_of(model) if model and "gguf" not in config else None  # llama.cpp permutes some models' channels
        own = of_latent_attention(config, kind, settings.scaling)
        return _of_settings("RoPE", replace(settings, window=window), layout=layout, **own)
    if position == "absolute" or "n_positions" in config:
        return Knowledge("learned table", rows=longest(config), window=window)
    encodings = {each.encoding for each in kinds}
    return Knowledge("RoPE" if "RoPE" in encodings else encodings.pop() if len(encodings) == 1 else None, window=window)


def done(found: Probe, at: int, written: Knowledge) -> Knowledge | None:
    """What layer `at` did, in the words of what is written; None if it has no attention."""
    whole = by_parts(found)
    if not any(each.width for each in found.layers.values()):
        return whole
    did = found.layers.get(at)
    if did is None or not did.width:
        return None
    size = getattr(found.config, "attention_chunk_size", None) or getattr(found.config, "sliding_window", None)
    window = 0
    if did.windowed and size:
        window = 2 * (size + did.excess) - 1 if did.two_sided else size + did.excess
    rest: dict[str, Any] = {"window": window, "sinks": did.sinks, "score": round(did.score, 6)}
    if did.offsets:
        return Knowledge("Inkling's bias", rows=window or did.offsets, **rest)
    if did.rotation is None:
        return replace(whole or Knowledge("none"), **rest)
    channels, omega = did.rotation.channels, did.rotation.frequencies
    base = written.base if alike(omega, written.frequencies) else base_of(omega)
    trained = written.trained
    if len(trained) != len(omega):
        trained = tuple(frequencies(2 * len(omega), base).tolist()) if base else ()
    return Knowledge(
        "RoPE",
        base,
        (len(channels), did.width),
        channels[0],
        "interleaved" if did.rotation.interleaved else "halves",
        omega,
        trained,
        did.far.frequencies if did.far else (),
        ("none", 1.0, None) if alike(omega, trained) and not did.far else written.stretch,
        round(did.rotation.factor, 6),
        **rest,
    )


def by_parts(found: Probe) -> Knowledge | None:
    """The encodings that aren't rotations, from the parts of the class."""
    if found.alibi:
        return Knowledge("ALiBi")
    if found.buckets:
        return Knowledge("T5's bias", rows=found.buckets)
    if found.tables:
        return Knowledge("learned table", rows=min(found.tables.values()))
    return None


def base_of(omega: Sequence[float]) -> float | None:
    """The base of frequencies that fall geometrically, to four digits; None if they don't."""
    if len(omega) < 3 or min(omega) <= 0:
        return None
    steps = [math.log(a / b) for a, b in pairwise(omega)]
    if max(steps) - min(steps) > 1e-3 * max(steps):
        return None
    return float(f"{math.exp(math.log(omega[0] / omega[-1]) * len(omega) / (len(omega) - 1)):.4g}")


def alike(a: Any, b: Any) -> bool:
    """Equal but for the rounding of single precision: numbers, what is known of two layers, or tuples of these."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-12)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, Knowledge) and isinstance(b, Knowledge):
        return alike(tuple(vars(a).values()), tuple(vars(b).values()))
    return bool(a == b)
