"""What a layer knows about position, as a configuration has it, as its class does it, or as the table of models has it."""

import math
from dataclasses import dataclass, replace
from typing import Any

from posenc_course.models import LayerKind, Scaling, Settings


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
        far_factor: the same in a text beyond the length at which a stretching switches, if it's another.
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
    far_factor: float | None = None
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

    def where(self, number: int) -> str:
        """Which layers of this number these are, in words."""
        if self.guessed and self.count == number:
            return "its layers with attention (if alike)"
        if self.side:
            return f"the {self.side}'s {self.count} layers"
        if self.count == number:
            return "all layers"
        some = ", ".join([*map(str, self.layers[:3]), *(["…"] if self.count > 3 else [])])
        return f"{self.count} of {number} layers" + (f" ({some})" if self.layers else "")


def alike(a: Any, b: Any) -> bool:
    """Equal but for the rounding of single precision: numbers, what is known of two layers, or tuples of these."""
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-12)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, Knowledge) and isinstance(b, Knowledge):
        return alike(tuple(vars(a).values()), tuple(vars(b).values()))
    return bool(a == b)


def of_settings(encoding: str, settings: Settings, **rest: Any) -> Knowledge:
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
    return of_settings(kind.encoding, replace(kind.default, **released), layout=kind.layout, sinks=kind.sinks)
