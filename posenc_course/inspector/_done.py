"""What the probe saw a layer do, in the words of what is written."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from posenc_course.inspector._layers import Knowledge, alike
from posenc_course.inspector._library import WINDOW
from posenc_course.inspector._probe import Done, Probe
from posenc_course.inspector._rotations import TOKENS, Rotation
from posenc_course.sinusoidal import frequencies


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
        return replace(table, more=did.ordered, **rest)
    # What is written may hold where the run says nothing against it.
    inside = written.encoding not in ("none", "learned table", "sinusoids")
    return None if did.ordered is None or did.ordered == inside else Knowledge(**rest)


def _of_rotation(did: Done, rotation: Rotation, written: Knowledge, rest: dict[str, Any]) -> Knowledge:
    channels, omega = rotation.channels, rotation.frequencies
    # Whatever all frequencies are divided by, the base is that of their ratios.
    ratios, expected = (tuple(each / all_of[0] for each in all_of) for all_of in (omega, written.frequencies))
    same = alike(ratios, expected)
    base = written.base if same else base_of(omega)
    trained = written.trained if len(written.trained) == len(omega) else ()
    if base and not same:
        trained = tuple(frequencies(2 * len(omega), base).tolist())
    far = did.far.frequencies if did.far and not alike(did.far.frequencies, omega) else ()
    now, later = (round(each.factor, 6) if each else None for each in (rotation, did.far))
    another = later if later != now else None
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
        ("none", 1.0, None) if alike(omega, trained) and not far and not another else written.stretch,
        now or 1.0,
        another,
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
