"""What happens as texts grow: which angles a training length shows, where a table or a window ends."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from posenc_course.inspector._layers import Kind, Knowledge, alike


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
