"""Computes what the test vectors for positional encodings expect, in posenc_course/data/vectors.

    python tools/lab/vectors.py

Write a new vector's name and what a program gets (`given`, `positions`, `offsets`, `q` and `k`) into one of the files,
and run this. Every number comes from a formula in this file, which shares no code with the package, in arithmetic with 60
digits, and is written with up to 50. The README beside the vectors says what the fields mean.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath as mp
from mpmath import mpf

FOLDER = Path(__file__).resolve().parents[2] / "posenc_course" / "data" / "vectors"
Vector = dict[str, Any]
mp.mp.dps = 60


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def both(values: Any) -> dict[str, Any]:
    """Numbers, in lists as they are nested, as text with up to 50 digits and as the nearest float32."""
    if isinstance(values, list):
        found = [both(value) for value in values]
        return {form: [one[form] for one in found] for form in ("exact", "float32")}
    with mp.workprec(24):
        nearest = float(+values)
    return {"exact": mp.nstr(values, 50, strip_zeros=True), "float32": nearest}


# ── frequencies ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain(base: float | mpf, width: int) -> list[mpf]:
    """ω_i = base^(-2i/width)."""
    return [mpf(base) ** (-mpf(2 * i) / width) for i in range(width // 2)]


def dynamic(base: float, width: int, factor: float, original: int, length: int) -> list[mpf]:
    """The base grows with the text: base·(factor·length/original - (factor - 1))^(width/(width - 2))."""
    grown = mpf(factor) * max(length, original) / original - (mpf(factor) - 1)
    return plain(mpf(base) * grown ** (mpf(width) / (width - 2)), width)


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


def frequencies(given: Vector) -> tuple[list[mpf], mpf]:
    """The frequencies and the attention factor."""
    base, width, s, original = given["base"], given["rotary_width"], given.get("factor", 1), given.get("original_length", 1)
    omega, sharper = plain(base, width), mpf(1)
    match given["type"]:
        case "linear":
            omega = [w / s for w in omega]
        case "ntk":
            omega = [w * mpf(s) ** (-mpf(2 * i) / (width - 2)) for i, w in enumerate(omega)]
        case "dynamic":
            omega = dynamic(base, width, s, original, given["length"])
        case "llama3":
            omega = llama3(base, width, s, original, given["low_freq_factor"], given["high_freq_factor"])
        case "yarn":
            omega = yarn(base, width, s, original, given["beta_fast"], given["beta_slow"], given["truncate"])
            # One of the two is as good as none.
            both_of = (given["mscale"], given["mscale_all_dim"]) if "mscale_all_dim" in given else ()
            sharper = yarn_factor(s, *both_of)
        case "longrope":
            divisors = given["long_factor" if given["length"] > original else "short_factor"]
            omega = [w / mpf(d) for w, d in zip(omega, divisors, strict=True)]
            sharper = mp.sqrt(1 + mp.log(s) / mp.log(original)) if s > 1 else sharper
        case "proportional":
            omega = [*plain(base, given["head_width"])[: width // 2], *[mpf(0)] * ((given["head_width"] - width) // 2)]
        case "axial":
            omega = 2 * plain(base, width // 2)
    return omega, mpf(given.get("attention_factor", sharper))


def rope(vector: Vector) -> Vector:
    omega, factor = frequencies(vector["given"])
    angles = [[w * m for w in omega] for m in vector["positions"]]
    return {
        "frequencies": both(omega),
        "attention_factor": both(factor),
        "cos": both([[mp.cos(a) for a in row] for row in angles]),
        "sin": both([[mp.sin(a) for a in row] for row in angles]),
    }


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


def mrope_axes(sections: Sequence[int], how: str) -> list[int]:
    """The axis of each pair: one section after the other, or dealt out one by one as long as a section lasts."""
    if how == "contiguous":
        return [axis for axis, number in enumerate(sections) for _ in range(number)]
    axes = [0] * sum(sections)
    for axis in (1, 2):
        for i in range(axis, 3 * sections[axis], 3):
            axes[i] = axis
    return axes


def rotation(vector: Vector) -> Vector:
    given, positions = vector["given"], vector["positions"]
    omega, factor = frequencies(given)
    found: Vector = {}
    if "mrope" in given:
        found["axes"] = mrope_axes(given["sections"], given["mrope"])
    elif given["type"] == "axial":
        found["axes"] = [0] * (len(omega) // 2) + [1] * (len(omega) // 2)
    if found:
        keys = [[w * m[axis] for w, axis in zip(omega, found["axes"], strict=True)] for m in zip(*positions, strict=True)]
    else:
        keys = [[w * m for w in omega] for m in positions]
    queries = [[w * m for w in omega] for m in vector["query_positions"]] if "query_positions" in vector else keys
    q, k = (
        [
            rotate([mpf(x) for x in row], at, factor, given["layout"], given["side"])
            for row, at in zip(vector[name], angles, strict=True)
        ]
        for name, angles in (("q", queries), ("k", keys))
    )
    scores = [[mp.fdot(a, b) / mp.sqrt(given["head_width"]) for b in k] for a in q]
    return found | {"rotated_q": both(q), "rotated_k": both(k), "scores": both(scores)}


# ── biases, windows and tables ───────────────────────────────────────────────────────────────────────────────────────────


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
    # Whole numbers stay whole.
    return start + min(near + int(mp.floor(share * (number - near) + mpf(10) ** -50)), number - 1)


def inkling(r: Sequence[Sequence[mpf]], table: Sequence[Sequence[mpf]]) -> list[list[mpf]]:
    """Each query's row r, times the column of the table for the distance; 0 from the table's width on, and for later keys."""
    columns = [*zip(*table, strict=True)]
    return [
        [mp.fdot(row, columns[m - n]) if m - n in range(len(columns)) else mpf(0) for n in range(len(r))]
        for m, row in enumerate(r)
    ]


def alibi(vector: Vector) -> Vector:
    given = vector["given"]
    if "queries" not in given:
        return {"slopes": both(slopes(given["heads"]))}
    keys = range(given["tokens"])
    return {"bias": both([[[-slope * (m - n) for n in keys] for m in given["queries"]] for slope in slopes(given["heads"])])}


def t5(vector: Vector) -> Vector:
    given = vector["given"]
    kind = given["buckets"], given["max_distance"], given["causal"]
    return {"buckets": [bucket(offset, *kind) for offset in vector["offsets"]]}


def shaw(vector: Vector) -> Vector:
    most = vector["given"]["max_distance"]
    return {"rows": [min(max(offset, -most), most) + most for offset in vector["offsets"]]}


def window(vector: Vector) -> Vector:
    given, keys = vector["given"], range(vector["given"]["tokens"])
    near = range(given["window"])
    return {"seen": [[(m - n if given["causal"] else abs(m - n)) in near for n in keys] for m in given.get("queries", keys)]}


def sinusoidal(vector: Vector) -> Vector:
    given, rows = vector["given"], []
    for m in vector["positions"]:
        angles = [w * (m + given["first_position"]) for w in plain(given["base"], given["width"])]
        pairs = [(mp.sin(angle), mp.cos(angle)) for angle in angles]
        parts = pairs if given["layout"] == "interleaved" else [*zip(*pairs, strict=True)]
        rows.append([x for part in parts for x in part])
    return {"embedding": both(rows)}


KINDS: dict[str, Callable[[Vector], Vector]] = {
    "alibi": alibi,
    "t5": t5,
    "inkling": lambda vector: {"bias": both(inkling(vector["given"]["r"], vector["given"]["table"]))},
    "shaw": shaw,
    "window": window,
    "sinusoidal": sinusoidal,
}


def computed(vector: Vector) -> Vector:
    """The vector with what is expected."""
    kind = KINDS.get(vector["given"]["type"], rotation if "layout" in vector["given"] else rope)
    return vector | kind(vector)


if __name__ == "__main__":
    for path in (FOLDER / f"{name}.json" for name in ("rope", "rotations", "biases")):
        stored = json.loads(path.read_text("utf-8"))
        lines = ",\n".join(json.dumps(computed(vector)) for vector in stored["vectors"])
        path.write_text(f'{{"made": {json.dumps(stored["made"])},\n"vectors": [\n{lines}\n]}}\n', "utf-8")
