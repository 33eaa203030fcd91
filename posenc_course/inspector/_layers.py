"""What a layer knows about position, as a configuration has it, as its class does it, or as the table of models has it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from posenc_course.inspector._config import (
    longest,
    names,
    of_latent_attention,
    rope_settings,
    turned_off,
    type_of,
    window_of,
)
from posenc_course.inspector._probe import TOKENS, WINDOW, Done, Probe, Rotation
from posenc_course.models import LayerKind, Scaling, Settings
from posenc_course.sinusoidal import frequencies


@dataclass(frozen=True)
class Knowledge:
    """What a layer knows about position; a value is None if nothing says it, or if the encoding doesn't have it.

    Args:
        encoding: "RoPE", "learned table", "sinusoids", "ALiBi", "T5's bias", "Inkling's bias" or "none".
        base: the base of the frequencies.
        rotated: how many channels of a query and a key rotate, and how many there are.
        first_channel: the first channel that rotates; None if they don't follow each other.
        layout: "interleaved" or "halves", as in `models.LayerKind`.
        backwards: whether a larger position rotates the other way than in most models.
        frequencies: in radians per token, one for each pair that rotates, as the layer uses them in a short text.
        trained: the same without the stretching.
        far: the frequencies beyond the length at which they switch, once; empty if they change with each length.
        stretch: the kind of stretching, its factor, and the length that it starts from; "none" without one.
        attention_factor: multiplies both query and key.
        window: how many tokens a query can see, itself included; 0 if there is no limit.
        rows: of a table, or the buckets of T5's bias, or the offsets of Inkling's.
        first_row: the row of a table that the first token gets.
        more: whether something that isn't known tells the order of tokens, too.
        sinks: whether heads have a learned score that belongs to no token.
        score: what scores are multiplied by beside 1/√d.
    """

    encoding: str | None = None
    base: float | None = None
    rotated: tuple[int, int] | None = None
    first_channel: int | None = None
    layout: str | None = None
    backwards: bool = False
    frequencies: tuple[float, ...] = ()
    trained: tuple[float, ...] = ()
    far: tuple[float, ...] = ()
    stretch: tuple[str, float, int | None] = ("none", 1.0, None)
    attention_factor: float = 1.0
    window: int | None = None
    rows: int | None = None
    first_row: int = 0
    more: bool = False
    sinks: bool | None = None
    score: float | None = None


@dataclass(frozen=True)
class Kind:
    """Layers that are alike: what the configuration says of them, and what the class does, if it was run.

    `layers` are their numbers, or empty if only their `count` is known; `side` is "encoder" or "decoder" if a model has both;
    `guessed` is whether there may be layers of other kinds.
    """

    layers: tuple[int, ...]
    count: int
    written: Knowledge
    done: Knowledge | None
    side: str = ""
    guessed: bool = False

    @property
    def evidence(self) -> str:
        """How this is known: "done" by the class, "written" in the file by the rules of its type, or "not known"."""
        return "not known" if self.known.encoding is None else "done" if self.done else "written"

    @property
    def known(self) -> Knowledge:
        """What holds: what the class does, and otherwise what is written."""
        return self.done or self.written


def _of_settings(encoding: str, settings: Settings, **rest: Any) -> Knowledge:
    scaling = settings.scaling or Scaling("none")
    switches = scaling.original_length if scaling.kind == "longrope" else None
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


def written(config: Mapping[str, Any], row: Mapping[str, Any], at: int) -> Knowledge | None:
    """What a reader of the configuration would expect of layer `at`; None if it has no attention."""
    kind = type_of(config, row, at)
    if kind in names("no_attention"):
        return None
    usual = kind is None or kind in (*names("wide"), *names("narrow"), "cross_attention")
    # Layers of other kinds may see farther by other means.
    window = window_of(config, row, at, kind) if usual else None
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
    settings = rope_settings(config, at, kind)
    by_name = named.startswith(("rot", "rope"))
    several = kind is None and "name" not in row and any(config.get(key) for key in names("local_bases"))
    if (by_name and not settings) or (settings and several):  # which layers have which base, only the class knows
        return Knowledge("RoPE", window=window)
    if settings and (by_name or "RoPE" in encodings or not encodings):
        own = of_latent_attention(config, kind, settings.scaling)
        if settings.spectrum == "fast" and settings.rotated and settings.rotated[0] < settings.rotated[1]:
            own["first_channel"] = None  # they are apart: the first of each half
        if row.get("last") and settings.rotated:
            own["first_channel"] = settings.rotated[1] - settings.rotated[0]
        layout = row.get("layout") if config.get("original_rope", True) else "halves"
        interleaved = config.get("rotary_emb_interleaved")
        layout = layout if interleaved is None else "interleaved" if interleaved else "halves"
        return _of_settings("RoPE", replace(settings, window=window), layout=layout, **own)
    if not encodings and named == "absolute":
        return Knowledge("learned table", rows=rows, window=window)
    encoding = encodings[0] if len(encodings) == 1 else None
    if encoding in ("learned table", "sinusoids"):
        rows = None if row.get("grows") or not rows else rows + row.get("more_rows", 0)
        more = row.get("more", False)
        return Knowledge(encoding, rows=rows, first_row=row.get("first_row", 0), more=more, window=window)
    return Knowledge(encoding, window=window)


def done(found: Probe, side: str, at: int, written: Knowledge) -> Knowledge | None:
    """What layer `at` did, in the words of what is written; None if the run says nothing of its encoding."""
    did = found.layer(side, at)
    if did is None or not did.ran:
        return None
    rest: dict[str, Any] = {"window": window_seen(found, side, at), "sinks": did.sinks}
    rest["score"] = None if did.score is None else round(did.score, 6)
    table = found.tables.get(side)
    if did.offsets:
        return Knowledge("Inkling's bias", rows=rest["window"] or did.offsets, **rest)
    if did.rotation:
        return _of_rotation(did, did.rotation, written, rest)
    if did.ordered and (found.alibi or found.buckets):
        return Knowledge("ALiBi", **rest) if found.alibi else Knowledge("T5's bias", rows=found.buckets, **rest)
    if did.ordered is False and found.added.get(side) is False:
        return Knowledge("none", **rest)
    if did.ordered is not None and table:
        encoding = "sinusoids" if table.sinusoids else "learned table"
        return Knowledge(encoding, rows=table.rows, first_row=table.first, more=did.ordered, **rest)
    # What is written may hold where the run says nothing against it.
    inside = written.encoding not in ("none", "learned table", "sinusoids")
    return None if did.ordered is None or did.ordered == inside else Knowledge(**rest)


def _of_rotation(did: Done, rotation: Rotation, written: Knowledge, rest: dict[str, Any]) -> Knowledge:
    channels, omega = rotation.channels, rotation.frequencies
    # Whatever all frequencies are divided by, the base is that of their ratios.
    ratios, expected = (tuple(each / all_of[0] for each in all_of) for all_of in (omega, written.frequencies))
    base = written.base if alike(ratios, expected) else base_of(omega)
    trained = written.trained
    if len(trained) != len(omega):
        trained = tuple(frequencies(2 * len(omega), base).tolist()) if base else ()
    far = did.far.frequencies if did.far and not alike(did.far.frequencies, omega) else ()
    return Knowledge(
        "RoPE",
        base,
        (len(channels), did.width or (written.rotated or (0, len(channels)))[1]),
        channels[0] if channels == tuple(range(channels[0], channels[0] + len(channels))) else None,
        "interleaved" if rotation.interleaved else "halves",
        rotation.backwards,
        omega,
        trained,
        () if written.stretch[0] == "dynamic" else far,
        ("none", 1.0, None) if alike(omega, trained) and not far else written.stretch,
        round(rotation.factor, 6),
        **rest,
    )


def window_seen(found: Probe, side: str, at: int) -> int | None:
    """How many tokens a query sees, in the size that was asked for: of it, or of half of it, on each side; None if unknown."""
    did = found.layer(side, at)
    if did is None or did.reach is None:
        return None
    if max(did.reach) == TOKENS - 1:
        return None if found.unseen_windows else 0
    asked = {size[at] if isinstance(size, list) else size for size in found.windows.values()}
    if len(asked) != 1:
        return None
    (size,) = asked
    half = max(did.reach) <= WINDOW // 2
    whole, small = (size // 2, WINDOW // 2) if half else (size, WINDOW)
    return 1 + sum(whole + seen - small for seen in did.reach if seen)


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
