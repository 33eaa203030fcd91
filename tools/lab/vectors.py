"""Makes the test vectors for positional encodings, in posenc_course/data/vectors.

    python tools/lab/vectors.py

Every number comes from a formula in this file, which shares no code with the package, in arithmetic with 60 digits, and is
written with up to 50. The README beside the vectors says what the fields mean.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np
from mpmath import mpf

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "posenc_course" / "data" / "vectors"
MADE = {"command": "python tools/lab/vectors.py", "version": "2", "digits": 50, "licence": "MIT"}
POSITIONS = [0, 1, 2, 63, 4095, 131_071]
mp.mp.dps = 60


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def exact(values: Any) -> Any:
    """Numbers as text with up to 50 digits, in lists as they are nested."""
    return [exact(value) for value in values] if isinstance(values, list) else mp.nstr(values, 50, strip_zeros=True)


def rounded(values: Any) -> Any:
    """The nearest float32, written so that a reader of JSON gets exactly it."""
    if isinstance(values, list):
        return [rounded(value) for value in values]
    near = np.float32(float(values))
    around = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return float(min(around, key=lambda each: abs(mpf(float(each)) - values)))


def both(values: Any) -> dict[str, Any]:
    return {"exact": exact(values), "float32": rounded(values)}


# ── frequencies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain(base: float, width: int) -> list[mpf]:
    """ω_i = base^(-2i/width)."""
    return [mpf(base) ** (-mpf(2 * i) / width) for i in range(width // 2)]


def dynamic(base: float, width: int, factor: float, original: int, length: int) -> list[mpf]:
    """The base grows with the text: base·(factor·length/original - (factor - 1))^(width/(width - 2))."""
    grown = mpf(factor) * max(length, original) / original - (mpf(factor) - 1)
    return [(mpf(base) * grown ** (mpf(width) / (width - 2))) ** (-mpf(2 * i) / width) for i in range(width // 2)]


def yarn(
    base: float, width: int, factor: float, original: int, fast: float = 32, slow: float = 1, truncate: bool = True
) -> list[mpf]:
    """Between the pair that rotates `fast` times within the original length and the one that rotates `slow` times, a ramp."""

    def pair(turns: float) -> mpf:
        return width * mp.log(mpf(original) / (2 * mp.pi * turns)) / (2 * mp.log(base))

    low, high = pair(fast), pair(slow)
    if truncate:
        low, high = mp.floor(low), mp.ceil(high)
    low, high = max(low, mpf(0)), min(high, mpf(width - 1))
    high += mpf("0.001") * (low == high)
    omega = plain(base, width)
    ramp = [min(max((i - low) / (high - low), mpf(0)), mpf(1)) for i in range(len(omega))]
    return [w * (1 - r) + w / factor * r for w, r in zip(omega, ramp, strict=True)]


def yarn_factor(factor: float, mscale: float = 1, all_dim: float = 0) -> mpf:
    """What multiplies queries and keys; DeepSeek divides one factor by another."""
    return (mpf(mscale) / 10 * mp.log(factor) + 1) / (mpf(all_dim) / 10 * mp.log(factor) + 1) if factor > 1 else mpf(1)


def llama3(base: float, width: int, factor: float, original: int, low: float, high: float) -> list[mpf]:
    """Keep what rotates more than `high` times within the original length, divide what rotates less than `low` times."""
    found = []
    for w in plain(base, width):
        turns = original * w / (2 * mp.pi)
        keep = min(max((turns - low) / (mpf(high) - low), mpf(0)), mpf(1)) if high > low else mpf(turns > low)
        found.append(keep * w + (1 - keep) * w / factor)
    return found


SHORT = [1.0, 1.0, 1.0, 1.0, 1.05, 1.05, 1.1, 1.1, 1.25, 1.5, 1.5, 2.0, 2.0, 2.25, 2.5, 2.75]
LONG = [1.0, 1.125, 1.25, 1.5, 2.0, 3.0, 4.5, 7.0, 11.0, 16.0, 22.0, 28.0, 30.0, 31.0, 32.0, 32.0]


def rope_cases() -> Iterable[tuple[dict[str, Any], list[mpf], mpf]]:
    """What a program is given, the frequencies that it should compute, and the attention factor."""
    one = mpf(1)
    for base, width in ((10_000, 16), (500_000, 128), (1_000_000, 64)):
        yield {"type": "default", "base": base, "rotary_width": width}, plain(base, width), one
    start: dict[str, Any] = {"base": 10_000, "rotary_width": 32}
    for slower in (4, 2):
        yield {"type": "linear", **start, "factor": slower}, [w / slower for w in plain(10_000, 32)], one
    yield (
        {"type": "ntk", **start, "factor": 1000},
        [w * mpf(1000) ** (-mpf(i) / 15) for i, w in enumerate(plain(10_000, 32))],
        one,
    )
    for factor, original, length in ((2, 2048, 1536), (2, 2048, 4096), (2, 2048, 16_384), (4, 4096, 8192)):
        given: dict[str, Any] = {"type": "dynamic", **start, "factor": factor, "original_length": original, "length": length}
        yield given, dynamic(10_000, 32, factor, original, length), one
    yield from yarn_cases()
    for width, factor, low, high in ((128, 8, 1, 4), (64, 32, 1, 4), (64, 32, 2, 8), (128, 16, 1, 1)):
        given = {"type": "llama3", "base": 500_000, "rotary_width": width, "factor": factor, "original_length": 8192}
        given |= {"low_freq_factor": low, "high_freq_factor": high}
        yield given, llama3(500_000, width, factor, 8192, low, high), one
    for times, original, length, sharper in (
        (32, 4096, 4096, None),
        (32, 4096, 4097, None),
        (8, 2048, 2049, None),
        (0.5, 2048, 2048, None),
        (8, 2048, 4096, 1.5),
    ):
        given = {"type": "longrope", **start, "factor": times, "original_length": original, "length": length}
        given |= {"short_factor": SHORT, "long_factor": LONG} | ({"attention_factor": sharper} if sharper else {})
        known = mp.sqrt(1 + mp.log(times) / mp.log(original)) if times > 1 else one
        divisors = LONG if length > original else SHORT
        yield given, [w / mpf(d) for w, d in zip(plain(10_000, 32), divisors, strict=True)], mpf(sharper or known)
    given = {"type": "proportional", "base": 1_000_000, "head_width": 32, "rotary_width": 8}
    yield given, [*plain(1_000_000, 32)[:4], *[mpf(0)] * 12], one
    yield {"type": "partial", "base": 10_000, "head_width": 32, "rotary_width": 8}, plain(10_000, 8), one


def yarn_cases() -> Iterable[tuple[dict[str, Any], list[mpf], mpf]]:
    usual: dict[str, Any] = {"type": "yarn", "base": 10_000, "rotary_width": 32, "factor": 8, "original_length": 4096}
    usual |= {"beta_fast": 32, "beta_slow": 1, "truncate": True}
    for changes in (
        {},
        {"truncate": False},
        {"beta_fast": 16, "beta_slow": 2, "attention_factor": 1.5},
        {"mscale": 0.707, "mscale_all_dim": 1.0},
        {"base": 4, "rotary_width": 8, "original_length": 128},  # the ramp would begin at -2 and end at 9
        {"rotary_width": 64, "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.707},
        {"mscale": 0.707},  # one of the two is as good as none
        {"attention_factor": 1.25, "mscale": 0.707, "mscale_all_dim": 1.0},
        {"beta_fast": 4, "beta_slow": 4, "truncate": False},  # the ramp begins where it ends, between two pairs
        {"original_length": 6},  # and at the first pair
        {"factor": 0.5},
    ):
        given = usual | changes
        names = ("base", "rotary_width", "factor", "original_length", "beta_fast", "beta_slow", "truncate")
        sharper = yarn_factor(given["factor"])
        if "mscale_all_dim" in given:
            sharper = yarn_factor(given["factor"], given["mscale"], given["mscale_all_dim"])
        yield given, yarn(*(given[name] for name in names)), mpf(given.get("attention_factor", sharper))


def name_of(given: dict[str, Any]) -> str:
    words = [given["type"], f"base {given['base']}", f"{given['rotary_width']} channels"]
    keys = ("factor", "original_length", "length", "low_freq_factor", "high_freq_factor", "beta_fast", "truncate")
    words += [f"{key} {given[key]}" for key in (*keys, "attention_factor", "mscale", "mscale_all_dim") if key in given]
    return ", ".join(words)


def frequency_vectors() -> list[dict[str, Any]]:
    vectors = []
    for given, omega, factor in rope_cases():
        angles = [[w * m for w in omega] for m in POSITIONS]
        vectors.append(
            {
                "name": name_of(given),
                "given": given,
                "frequencies": both(omega),
                "attention_factor": both(factor),
                "positions": POSITIONS,
                "cos": both([[mp.cos(a) for a in row] for row in angles]),
                "sin": both([[mp.sin(a) for a in row] for row in angles]),
            }
        )
    return vectors


# ── rotations ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rotate(x: Sequence[mpf], angles: Sequence[mpf], factor: mpf, layout: str, side: str) -> list[mpf]:
    """Rotate pairs of x counterclockwise, neighbours or halves of its first or last channels, one pair for each angle.

    The attention factor multiplies these channels, and the others stay as they are.
    """
    number = len(angles)
    start = 0 if side == "first" else len(x) - 2 * number
    out = list(x)
    for i, angle in enumerate(angles):
        a, b = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + number)
        a, b = start + a, start + b
        out[a] = factor * (x[a] * mp.cos(angle) - x[b] * mp.sin(angle))
        out[b] = factor * (x[a] * mp.sin(angle) + x[b] * mp.cos(angle))
    return out


def sample(rows: int, width: int, seed: int) -> list[list[mpf]]:
    """Vectors of eighths between -2 and 2, which every format represents exactly."""
    return [[mpf((seed + 7 * row + 11 * i + 5 * row * i) % 33 - 16) / 8 for i in range(width)] for row in range(rows)]


def mrope_axes(sections: Sequence[int], how: str) -> list[int]:
    """The axis of each pair: one section after the other, or dealt out one by one as long as a section lasts."""
    if how == "contiguous":
        return [axis for axis, number in enumerate(sections) for _ in range(number)]
    axes = [0] * sum(sections)
    for axis in (1, 2):
        for i in range(axis, 3 * sections[axis], 3):
            axes[i] = axis
    return axes


def rotation_cases() -> Iterable[tuple[dict[str, Any], list[Any], list[mpf], mpf]]:
    """What a program is given, the positions, the frequencies, and the attention factor."""
    one = mpf(1)
    few = [0, 1, 5, 300]
    for rotary, sides in ((8, ["first"]), (4, ["first", "last"])):
        for layout in ("interleaved", "halves"):
            for side in sides:
                given = {"type": "default", "base": 10_000, "head_width": 8, "rotary_width": rotary}
                yield {**given, "layout": layout, "side": side}, few, plain(10_000, rotary), one
    half: dict[str, Any] = {"base": 10_000, "head_width": 16, "rotary_width": 8, "side": "first"}
    stretched = {"factor": 8, "original_length": 4096, "beta_fast": 32, "beta_slow": 1, "truncate": True}
    long = {"factor": 32, "original_length": 4096, "length": 301, "short_factor": SHORT[8:12], "long_factor": LONG[8:12]}
    sharper = mp.sqrt(1 + mp.log(32) / mp.log(4096))
    for layout in ("halves", "interleaved"):
        given = {**half, "layout": layout}
        yield {"type": "yarn", **given, **stretched}, few, yarn(10_000, 8, 8, 4096), yarn_factor(8)
        yield {"type": "proportional", **given}, few, [*plain(10_000, 16)[:4], *[mpf(0)] * 4], one
        yield (
            {"type": "longrope", **given, **long},
            few,
            [w / mpf(d) for w, d in zip(plain(10_000, 8), SHORT[8:12], strict=True)],
            sharper,
        )
    text_then_picture = [[0, 1, 2, 2, 2, 2, 4], [0, 1, 2, 2, 3, 3, 4], [0, 1, 2, 3, 2, 3, 4]]  # time, row, column
    for layout, rotary, how, sections in (
        ("halves", 16, "contiguous", [2, 3, 3]),
        ("halves", 16, "interleaved", [3, 3, 2]),
        ("interleaved", 16, "interleaved", [4, 2, 2]),
        ("interleaved", 16, "contiguous", [2, 3, 3]),
        ("interleaved", 8, "contiguous", [2, 1, 1]),
        ("halves", 8, "contiguous", [1, 2, 1]),
    ):
        given = {"type": "default", "base": 10_000, "head_width": 16, "rotary_width": rotary, "layout": layout, "side": "first"}
        yield {**given, "mrope": how, "sections": sections}, text_then_picture, plain(10_000, rotary), one
    picture = [[0, 0, 1, 1, 7], [0, 5, 0, 5, 3]]  # row, column
    given = {"type": "axial", "base": 100, "head_width": 16, "rotary_width": 16, "layout": "halves", "side": "first"}
    yield given, picture, 2 * plain(100, 8), one


def rotation_vectors() -> list[dict[str, Any]]:
    vectors = []
    for given, positions, omega, factor in rotation_cases():
        width, layout, side = given["head_width"], given["layout"], given["side"]
        words = [layout, f"{side} {given['rotary_width']} of {width} channels"]
        axes = {}
        if isinstance(positions[0], list):
            if "mrope" in given:
                words.append(f"M-RoPE with {given['mrope']} sections {given['sections']}")
                axes["axes"] = mrope_axes(given["sections"], given["mrope"])
            else:
                words.append("axial")
                axes["axes"] = [0] * (len(omega) // 2) + [1] * (len(omega) // 2)
            angles = [[w * m[axis] for w, axis in zip(omega, axes["axes"], strict=True)] for m in zip(*positions, strict=True)]
        else:
            words += [given["type"]] if given["type"] != "default" else []
            angles = [[w * m for w in omega] for m in positions]
        vectors.append(rotation(given, ", ".join(words), positions, axes, angles, angles, factor))
    given, omega = vectors[1]["given"], plain(10_000, 8)  # a query that comes after cached keys
    late, few = [[300 * w for w in omega]], [0, 1, 5, 300]
    name, keys = f"one query at 300, {vectors[1]['name']}", [[w * m for w in omega] for m in few]
    vectors.append(rotation(given, name, few, {"query_positions": [300]}, late, keys, mpf(1)))
    return vectors


def rotation(
    given: dict[str, Any], name: str, positions: Any, more: dict[str, Any], late: list[Any], keys: list[Any], factor: mpf
) -> dict[str, Any]:
    """One vector: `late` are the angles of the queries, and `keys` those of the keys."""
    width, layout, side = given["head_width"], given["layout"], given["side"]
    q, k = sample(len(late), width, 3), sample(len(keys), width, 20)
    q_rotated, k_rotated = (
        [rotate(x, row, factor, layout, side) for x, row in zip(each, angles, strict=True)]
        for each, angles in ((q, late), (k, keys))
    )
    scores = [[mp.fdot(a, b) / mp.sqrt(width) for b in k_rotated] for a in q_rotated]
    made = {
        "q": rounded(q),
        "k": rounded(k),
        "rotated_q": both(q_rotated),
        "rotated_k": both(k_rotated),
        "scores": both(scores),
    }
    return {"name": name, "given": given, "positions": positions, **more, **made}


# ── biases and windows ───────────────────────────────────────────────────────────────────────────────────────────────────


def slopes(heads: int) -> list[mpf]:
    """2^(-8i/n) for the largest power of two n; the heads that are left take every other slope of 2n heads."""
    n = 2 ** (heads.bit_length() - 1)
    first = [mpf(2) ** (-mpf(8 * i) / n) for i in range(1, n + 1)]
    return first + [mpf(2) ** (-mpf(4 * i) / n) for i in range(1, 2 * (heads - n), 2)]


def bucket(offset: int, number: int, farthest: int, causal: bool) -> int:
    """T5's bucket for key position - query position."""
    start = 0
    if not causal:
        number //= 2
        start = number if offset > 0 else 0
    distance = max(-offset, 0) if causal else abs(offset)
    near = number // 2
    if distance < near:
        return start + distance
    share = mp.log(mpf(distance) / near) / mp.log(mpf(farthest) / near)
    return start + min(near + int(mp.floor(share * (number - near) + mpf(10) ** -50)), number - 1)  # whole numbers stay whole


def inkling(r: Sequence[Sequence[mpf]], table: Sequence[Sequence[mpf]]) -> list[list[mpf]]:
    """Each query's row r, times the column of the table for the distance; 0 from the table's width on, and for later keys."""
    columns = [*zip(*table, strict=True)]
    return [
        [mp.fdot(row, columns[m - n]) if m - n in range(len(columns)) else mpf(0) for n in range(len(r))]
        for m, row in enumerate(r)
    ]


def bias_vectors() -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = [
        {
            "name": f"ALiBi, {heads} heads",
            "given": {"type": "alibi", "heads": heads},
            "slopes": both(slopes(heads)),
        }
        for heads in (1, 6, 8, 12, 16, 20)
    ]
    late = {"type": "alibi", "heads": 6, "queries": [5], "tokens": 6}
    penalties = [[[-slope * (5 - n) for n in range(6)]] for slope in slopes(6)]
    vectors.append({"name": "ALiBi, one query after five keys", "given": late, "bias": both(penalties)})
    offsets = [*range(-40, 41), *(sign * far for far in (63, 64, 65, 90, 91, 127, 128, 129, 1000) for sign in (-1, 1))]
    for number, farthest, causal in ((32, 128, True), (32, 128, False), (16, 64, True), (16, 64, False)):
        given = {"type": "t5", "buckets": number, "max_distance": farthest, "causal": causal}
        found = [bucket(offset, number, farthest, causal) for offset in offsets]
        name = f"T5, {number} buckets, {'causal' if causal else 'both directions'}"
        vectors.append({"name": name, "given": given, "offsets": offsets, "buckets": found})
    table, r = sample(3, 4, 5), sample(6, 3, 11)
    given = {"type": "inkling", "extent": 4, "r": rounded(r), "table": rounded(table)}
    vectors.append({"name": "Inkling, up to 3 tokens back", "given": given, "bias": both(inkling(r, table))})
    for most in (4, 2):
        rows = [min(max(offset, -most), most) + most for offset in range(-7, 8)]
        given = {"type": "shaw", "max_distance": most}
        vectors.append({"name": f"Shaw, clipped at {most}", "given": given, "offsets": [*range(-7, 8)], "rows": rows})
    for window, causal, queries in ((1, True, 6), (3, True, 6), (4, True, 6), (3, False, 6), (3, True, 2)):
        asking = [*range(6 - queries, 6)]
        seen = [[(m - n if causal else abs(m - n)) in range(window) for n in range(6)] for m in asking]
        given = {"type": "window", "window": window, "causal": causal, "tokens": 6}
        given |= {"queries": asking} if queries < 6 else {}
        where = "its own token included" if causal else "its own token included, both directions"
        where += ", two queries after four keys" if queries < 6 else ""
        vectors.append({"name": f"window of {window}, {where}", "given": given, "seen": seen})
    for layout, start in (("interleaved", 0), ("halves", 0), ("interleaved", 2)):
        given = {"type": "sinusoidal", "base": 10_000, "width": 8, "layout": layout, "first_position": start}
        embedding = []
        for m in (0, 1, 63):
            angles = [w * (m + start) for w in plain(10_000, 8)]
            both_of = [(mp.sin(angle), mp.cos(angle)) for angle in angles]
            parts = both_of if layout == "interleaved" else [*zip(*both_of, strict=True)]
            embedding.append([x for part in parts for x in part])
        name = f"sinusoidal, {layout}, positions from {start}"
        vectors.append({"name": name, "given": given, "positions": [0, 1, 63], "embedding": both(embedding)})
    return vectors


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name, vectors in (("rope", frequency_vectors()), ("rotations", rotation_vectors()), ("biases", bias_vectors())):
        lines = ",\n".join(json.dumps(vector) for vector in vectors)
        text = f'{{"made": {json.dumps(MADE)},\n"vectors": [\n{lines}\n]}}\n'
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}.json: {len(vectors)} vectors, {len(text) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
