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
MADE = {"command": "python tools/lab/vectors.py", "digits": 50, "licence": "MIT"}
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
    omega = plain(base, width)
    ramp = [min(max((i - low) / (high - low), mpf(0)), mpf(1)) for i in range(len(omega))]
    return [w * (1 - r) + w / factor * r for w, r in zip(omega, ramp, strict=True)]


def yarn_factor(factor: float, mscale: float = 1, all_dim: float = 0) -> mpf:
    """What multiplies queries and keys; DeepSeek divides one factor by another."""
    return (mpf(mscale) / 10 * mp.log(factor) + 1) / (mpf(all_dim) / 10 * mp.log(factor) + 1)


def llama3(base: float, width: int, factor: float, original: int, low: float, high: float) -> list[mpf]:
    """Keep what rotates more than `high` times within the original length, divide what rotates less than `low` times."""
    found = []
    for w in plain(base, width):
        keep = min(max((original * w / (2 * mp.pi) - low) / (mpf(high) - low), mpf(0)), mpf(1))
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
    yield {"type": "linear", **start, "factor": 4}, [w / 4 for w in plain(10_000, 32)], one
    for length in (1536, 4096, 16_384):
        given: dict[str, Any] = {"type": "dynamic", **start, "factor": 2, "original_length": 2048, "length": length}
        yield given, dynamic(10_000, 32, 2, 2048, length), one
    long: dict[str, Any] = {"type": "yarn", **start, "factor": 8, "original_length": 4096}
    for truncate in (True, False):
        given = {**long, "beta_fast": 32, "beta_slow": 1, "truncate": truncate}
        yield given, yarn(10_000, 32, 8, 4096, truncate=truncate), yarn_factor(8)
    given = {**long, "beta_fast": 16, "beta_slow": 2, "truncate": True, "attention_factor": 1.5}
    yield given, yarn(10_000, 32, 8, 4096, 16, 2), mpf("1.5")
    given = {**long, "beta_fast": 32, "beta_slow": 1, "truncate": True, "mscale": 0.707, "mscale_all_dim": 1.0}
    yield given, yarn(10_000, 32, 8, 4096), yarn_factor(8, 0.707, 1.0)
    given = {**long, "base": 4, "rotary_width": 8, "original_length": 128, "beta_fast": 32, "beta_slow": 1, "truncate": True}
    yield given, yarn(4, 8, 8, 128), yarn_factor(8)  # the ramp would begin at -2 and end at 9
    given = {"type": "llama3", "base": 500_000, "rotary_width": 128, "factor": 8, "original_length": 8192}
    given |= {"low_freq_factor": 1, "high_freq_factor": 4}
    yield given, llama3(500_000, 128, 8, 8192, 1, 4), one
    sharper = mp.sqrt(1 + mp.log(32) / mp.log(4096))
    for length, divisors in ((4096, SHORT), (4097, LONG)):
        given = {"type": "longrope", **start, "factor": 32, "original_length": 4096, "length": length}
        given |= {"short_factor": SHORT, "long_factor": LONG}
        yield given, [w / mpf(d) for w, d in zip(plain(10_000, 32), divisors, strict=True)], sharper
    given = {"type": "proportional", "base": 1_000_000, "head_width": 32, "rotary_width": 8}
    yield given, [*plain(1_000_000, 32)[:4], *[mpf(0)] * 12], one
    yield {"type": "partial", "base": 10_000, "head_width": 32, "rotary_width": 8}, plain(10_000, 8), one


def name_of(given: dict[str, Any]) -> str:
    words = [given["type"], f"base {given['base']}", f"{given['rotary_width']} channels"]
    words += [f"{key} {given[key]}" for key in ("factor", "length", "truncate", "attention_factor", "mscale") if key in given]
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
    half: dict[str, Any] = {"base": 10_000, "head_width": 16, "rotary_width": 8, "layout": "halves", "side": "first"}
    stretched = {"factor": 8, "original_length": 4096, "beta_fast": 32, "beta_slow": 1, "truncate": True}
    yield {"type": "yarn", **half, **stretched}, few, yarn(10_000, 8, 8, 4096), yarn_factor(8)
    yield {"type": "proportional", **half}, few, [*plain(10_000, 16)[:4], *[mpf(0)] * 4], one
    text_then_picture = [[0, 1, 2, 2, 2, 2, 4], [0, 1, 2, 2, 3, 3, 4], [0, 1, 2, 3, 2, 3, 4]]  # time, row, column
    whole = {"type": "default", "base": 10_000, "head_width": 16, "rotary_width": 16}
    for layout, how, sections in (
        ("halves", "contiguous", [2, 3, 3]),
        ("halves", "interleaved", [3, 3, 2]),
        ("interleaved", "interleaved", [4, 2, 2]),
    ):
        given = {**whole, "layout": layout, "side": "first", "mrope": how, "sections": sections}
        yield given, text_then_picture, plain(10_000, 16), one


def rotation_vectors() -> list[dict[str, Any]]:
    vectors = []
    for given, positions, omega, factor in rotation_cases():
        width, layout, side = given["head_width"], given["layout"], given["side"]
        words = [layout, f"{side} {given['rotary_width']} of {width} channels"]
        axes = {}
        if "mrope" in given:
            words.append(f"M-RoPE with {given['mrope']} sections {given['sections']}")
            axes["axes"] = mrope_axes(given["sections"], given["mrope"])
            angles = [[w * m[axis] for w, axis in zip(omega, axes["axes"], strict=True)] for m in zip(*positions, strict=True)]
        else:
            words += [given["type"]] if given["type"] != "default" else []
            angles = [[w * m for w in omega] for m in positions]
        q, k = sample(len(angles), width, 3), sample(len(angles), width, 20)
        rotated = [[rotate(x, row, factor, layout, side) for x, row in zip(each, angles, strict=True)] for each in (q, k)]
        scores = [[mp.fdot(a, b) / mp.sqrt(width) for b in rotated[1]] for a in rotated[0]]
        vectors.append(
            {
                "name": ", ".join(words),
                "given": given,
                "positions": positions,
                **axes,
                "q": rounded(q),
                "k": rounded(k),
                "rotated_q": both(rotated[0]),
                "rotated_k": both(rotated[1]),
                "scores": both(scores),
            }
        )
    return vectors


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
    offsets = [*range(-40, 41), *(sign * far for far in (63, 64, 65, 90, 91, 127, 128, 129, 1000) for sign in (-1, 1))]
    for causal in (True, False):
        given = {"type": "t5", "buckets": 32, "max_distance": 128, "causal": causal}
        found = [bucket(offset, 32, 128, causal) for offset in offsets]
        vectors.append(
            {"name": f"T5, {'causal' if causal else 'both directions'}", "given": given, "offsets": offsets, "buckets": found}
        )
    table, r = sample(3, 4, 5), sample(6, 3, 11)
    given = {"type": "inkling", "extent": 4, "r": rounded(r), "table": rounded(table)}
    vectors.append({"name": "Inkling, up to 3 tokens back", "given": given, "bias": both(inkling(r, table))})
    shaw = {"type": "shaw", "max_distance": 4}
    rows = [min(max(offset, -4), 4) + 4 for offset in range(-7, 8)]
    vectors.append({"name": "Shaw, clipped at 4", "given": shaw, "offsets": [*range(-7, 8)], "rows": rows})
    for window, causal in ((1, True), (3, True), (4, True), (3, False)):
        seen = [[(m - n if causal else abs(m - n)) in range(window) for n in range(6)] for m in range(6)]
        given = {"type": "window", "window": window, "causal": causal, "tokens": 6}
        where = "its own token included" if causal else "its own token included, both directions"
        vectors.append({"name": f"window of {window}, {where}", "given": given, "seen": seen})
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
