"""What a layer knows about position, by a configuration, its class or the table of models, and what it meets in long texts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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


# ── as texts grow ───────────────────────────────────────────────────────────────────────────────────────────────────────


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
    kind, factor, _ = knowledge.stretch
    trained = knowledge.trained if factor > 1 or kind == "divisors" else now  # longrope by 1 holds from the start
    trained = trained or now
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


class Limit(NamedTuple):
    """A length in tokens, and what is there: an "end" of a table, a "window", the last "bucket", frequencies that "switch", a
    "new" angle, or a "circle".
    """

    at: int
    kind: str
    text: str


def limits(
    config: Mapping[str, Any], kinds: Sequence[Kind], layers: int, trained: int | None, most: int | None
) -> Iterator[Limit]:
    """What happens as texts grow."""
    length = trained or most
    total = max(layers, sum(kind.count for kind in kinds))
    for kind in kinds:
        known, where = kind.known, kind.where(total)
        if known.encoding in ("learned table", "sinusoids") and known.rows:
            yield Limit(known.rows - known.first_row, "end", f"the table ends in {where}: the next position has no row")
        if known.window:
            yield Limit(known.window, "window", f"no query of {where} sees all of a longer text")
        if known.encoding in ("T5's bias", "DeBERTa's bias") and config.get("relative_attention_max_distance"):
            yield Limit(config["relative_attention_max_distance"], "bucket", "all larger distances share the last bucket")
        if known.encoding == "Inkling's bias" and known.rows and not known.window:
            yield Limit(known.rows, "bucket", f"from this distance on, the bias of {where} is 0")
        if known.encoding != "RoPE" or not known.frequencies or 0 < (known.window or 0) <= (length or 0):
            continue
        name, factor, start = known.stretch
        if start and ((known.far and not alike(known.far, known.frequencies)) or (name == "dynamic" and factor > 1)):
            yield Limit(
                start, "switch", "the frequencies switch: cached keys keep the old angles, unless they're computed anew"
            )
        if length and name != "dynamic":  # each longer text has frequencies of its own
            found = pairs(known, length)
            if found.first_new:
                after = " and stretched afterwards" if factor > 1 else ""
                condition = "that training didn't show" if trained else f"that's new if it was trained up to its limit{after}"
                yield Limit(found.first_new, "new", f"the first distance with an angle {condition}, in {where}")
            if found.brakes:
                back = math.ceil(2 * math.pi / (known.far or known.frequencies)[found.brakes[0]])
                yield Limit(back, "circle", f"pair {found.brakes[0]} completes its first circle in {where}")
