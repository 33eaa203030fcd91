"""Exercises on RoPE: a rotation that makes scores relative, layouts of pairs, and caches of rotated keys."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, exercise
from posenc_course.rope import apply_rope, apply_rope_complex, convert_projection, layout_permutation, rope_tables
from posenc_course.sinusoidal import frequencies, sinusoidal_table

Pairs = list[tuple[int, int]]  # a layout: pair i rotates at ω_i
Layout = Callable[[int], Pairs]  # of a width
Turn = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # a, b, cos, sin -> the rotated pair
Speed = Callable[[int, int, int, int], float]  # pair i, its first channel, the channel itself, d -> radians per token


def _neighbours(d: int) -> Pairs:
    return [(2 * i, 2 * i + 1) for i in range(d // 2)]


def _halves(d: int) -> Pairs:
    return [(i, i + d // 2) for i in range(d // 2)]


_LAYOUTS: dict[str, Layout] = {"neighbours": _neighbours, "halves": _halves}
_OTHER = {"neighbours": "halves", "halves": "neighbours"}
_PAIRED = {"neighbours": "neighbours", "halves": "channels i and i + d/2"}
# The angle of each channel, if all channels stand side by side in a table of this layout.
_TABLES: dict[str, Speed] = {
    "neighbours": lambda i, a, c, d: 10_000.0 ** (-2 * (c // 2) / d),
    "halves": lambda i, a, c, d: 10_000.0 ** (-2 * (c % (d // 2)) / d),
}
_DIRECTIONS = {"counterclockwise": 1, "clockwise": -1}


def _sample(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def _power(power: float) -> Speed:
    return lambda i, a, c, d: 10_000.0 ** (-2 * power * i / d)


_omega = _power(1)


def _turn(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return a * cos - b * sin, a * sin + b * cos


def _one_after_the_other(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    a = a * cos - b * sin
    return a, a * sin + b * cos


def _rotated(
    x: Tensor,
    positions: Tensor,
    pairs: Pairs,
    sign: int,
    *,
    at: Callable[[Tensor], Tensor] = lambda m: m,
    speed: Speed = _omega,
    turn: Turn = _turn,
    back_to: Layout | None = None,
) -> Tensor:
    """x with pair i of each row rotated by ω_i·position, or with one thing done differently."""
    rotated, d = x.clone(), x.shape[1]
    m = sign * at(positions).double()[:, None]
    to = back_to(d) if back_to else pairs
    columns = torch.tensor(pairs).T  # the first channels, and the second ones
    for n in (0, 1):
        theta = m * torch.tensor([speed(i, pair[0], pair[n], d) for i, pair in enumerate(pairs)], dtype=torch.float64)
        rotated[:, [pair[n] for pair in to]] = turn(x[:, columns[0]], x[:, columns[1]], theta.cos(), theta.sin())[n]
    return rotated


# What can go wrong in any layout and direction: what is done differently, and the hint.
_SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "by row number": ({"at": lambda m: torch.arange(len(m))},
        "Your function doesn't look at positions: it rotates the rows by 0, 1, 2, … A token that comes alone, after a cache of "
        "others, isn't at position 0."),
    "by the first position": ({"at": lambda m: m[:1].expand(len(m))},
        "You rotate all rows by the first position: each row has its own."),
    "counted from 1": ({"at": lambda m: m + 1},
        "Every row is rotated by one position too much: positions count from 0, and position 0 changes nothing."),
    "positions in bfloat16": ({"at": lambda m: m.bfloat16()},
        "Your positions are rounded from 257 on: bfloat16 has 8 bits for them. Compute angles in float32 at least."),
    "the 2 twice": ({"speed": _power(2)},
        "Your frequencies fall twice as fast as they should: i counts pairs, from 0 to d/2 - 1. Is the 2 "
        "in your exponent twice?"),
    "no 2": ({"speed": _power(0.5)}, "Your frequencies fall half as fast as they should: where is the 2 of 2i/d?"),
    "no minus": ({"speed": _power(-1)},
        "Your frequencies grow with i: the exponent needs a minus, so that pair 0 is the fastest."),
    "pairs from 1": ({"speed": lambda i, a, c, d: 10_000.0 ** (-2 * (i + 1) / d)},
        "All your frequencies are one step too slow: pairs count from 0, and pair 0 rotates by one radian per token."),
    "no frequencies": ({"speed": _power(0)}, "All pairs rotate at the same speed, one radian per token. Where is ω_i?"),
    "from degrees": ({"speed": lambda i, a, c, d: math.radians(_omega(i, a, c, d))},
        "Your angles are converted from degrees: ω_i·m is in radians already, and sine and cosine take radians."),
    "to degrees": ({"speed": lambda i, a, c, d: math.degrees(_omega(i, a, c, d))},
        "Your angles are converted to degrees: sine and cosine take radians."),
    "equal signs": ({"turn": lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)},
        "One of the two sines needs a minus, and exactly one: with equal signs a pair is stretched, not rotated."),
    "a reflection": ({"turn": lambda a, b, cos, sin: (a * cos - b * sin, -a * sin - b * cos)},
        "Lengths are kept, but even position 0 flips the second channel of each pair: that is a reflection. Look at the sign "
        "of its cosine."),
    "sine for cosine": ({"turn": lambda a, b, cos, sin: _turn(a, b, sin, cos)},
        "At position 0 every pair is rotated by a right angle: sine and cosine have changed places."),
    "one after the other": ({"turn": _one_after_the_other},
        "The second channel of a pair is computed from the first one after its rotation: both need the pair as it was before."),
    "the first of a pair": ({"turn": lambda a, b, cos, sin: (_turn(a, b, cos, sin)[0], b)},
        "Only one channel of each pair changes: a rotation needs both."),
    "the second of a pair": ({"turn": lambda a, b, cos, sin: (a, _turn(a, b, cos, sin)[1])},
        "Only one channel of each pair changes: a rotation needs both."),
    "no sine": ({"turn": lambda a, b, cos, sin: (a * cos, b * cos)},
        "Every pair is multiplied by its cosine: where is the sine?"),
}  # fmt: skip


def _same(known: Tensor, said: Tensor) -> bool:
    return torch.allclose(known, said, rtol=0, atol=2e-3)  # numbers are of size 1; angles in float32 pass


# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


@exercise("my_rotate", instead_of=[apply_rope])
def relative() -> Exercise:
    """my_rotate(x, positions) -> x (L, d) with pair i of row m rotated by ω_i·positions[m], base 10,000.

    Either layout and either direction is right, as long as it is one of each.
    """

    def case(*positions: int, d: int) -> tuple[Tensor, Tensor]:
        return _sample(d, len(positions), d), torch.tensor(positions)

    x, positions = case(10, 7, 1010, 1007, d=8)
    cases = {
        "d = 8": case(3, 0, 1, 40, 700, 12, d=8),
        "d = 12": case(2, 1, 900, 30, 5, d=12),
        "a single token": case(7, d=6),
        "a single pair": case(0, 5, 1, d=2),
        "one query and key, early and late": (x[[0, 1, 0, 1]], positions),
    }

    def by(layout: str, sign: int, **changes: Any) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda x, m: _rotated(x, m, _LAYOUTS[layout](x.shape[1]), sign, **changes)

    styles = [(layout, sign) for layout in _LAYOUTS for sign in (1, -1)]
    rights = [by(*style) for style in styles]

    def right_in(rule: Callable[[Tensor, Tensor], Tensor], said: Sequence[Tensor]) -> list[str]:
        return [name for (name, case), table in zip(cases.items(), said, strict=True) if _same(rule(*case), table)]

    def praise(said: Sequence[Tensor]) -> str:
        names = ("Yours pairs neighbours and turns counterclockwise, as the paper does.",
                 "Yours pairs neighbours and turns clockwise, against the paper: as good, if queries and keys turn alike.",
                 "Yours pairs channels i and i + d/2 and turns counterclockwise, as Llama in transformers does.",
                 "Yours pairs channels i and i + d/2 and turns clockwise, as nanochat does: as good, if queries and keys turn "
                 "alike.")  # fmt: skip
        name = next(name for name, rule in zip(names, rights, strict=True) if len(right_in(rule, said)) == len(cases))
        return f"lengths kept and scores relative, in widths 8, 12, 6, 2. {name}"

    def fault(said: Sequence[Tensor]) -> str | None:
        """Which of the properties of the rotation is missing."""
        found = max((right_in(rule, said) for rule in rights), key=len)
        if len(found) == len(cases):
            return None
        if not all(table.isfinite().all() for table in said):
            return "Some of your numbers are infinite or NaN."
        if any("d = 8" in right_in(rule, said) for rule in rights):
            missed = "; ".join(name for name in cases if name not in found)
            return f"For d = 8 it is right, and not for: {missed}. Is a width or a number of tokens fixed in your function?"
        x, positions = cases["d = 8"]
        start = positions.tolist().index(0)
        if not _same(x[start], said[0][start]):
            return "The token at position 0 has changed: a rotation by no angle leaves every vector as it is."
        before, after = x.norm(dim=1), said[0].norm(dim=1)
        m = int((before - after).abs().argmax())
        if abs(before[m] - after[m]) > 2e-3:
            return (
                f"No rotation: at position {positions[m]} a vector of length {before[m]:.3f} comes back {after[m]:.3f} long. "
                "Do both channels of a pair rotate by the same angle?"
            )
        late = said[-1]
        near, far = float(late[0] @ late[1]), float(late[2] @ late[3])
        if abs(near - far) > 1e-2:
            return (
                "Lengths are kept, but scores are not relative: the same query and key, 3 tokens apart, score "
                f"{near:.2f} at position 10 and {far:.2f} at position 1,010."
            )
        return (
            "Lengths are kept and scores are relative, but the angles are others: at position m pair i rotates by ω_i·m, "
            "with ω_i = 10000^(-2i/d)."
        )

    return Exercise(
        cases=cases,
        right=rights,
        mistakes={
            "nothing": (lambda x, m: x, "x comes back as it was: nothing is rotated."),
            **{f"{slip}, {layout}, {sign}": (by(layout, sign, **changes), hint)
               for slip, (changes, hint) in _SLIPS.items() for layout, sign in styles},
            **{f"tables not for {layout}, {sign}": (by(layout, sign, speed=_TABLES[_OTHER[layout]]),
                "The two halves of your table follow different layouts: the angles are laid out as if "
                f"{_PAIRED[_OTHER[layout]]} made a pair, and you pair {_PAIRED[layout]}.")
               for layout, sign in styles},
            **{f"{layout} back as others, {sign}": (by(layout, sign, back_to=_LAYOUTS[_OTHER[layout]]),
                f"The pairs are rotated, and come back in another order: taken apart as {layout} and put together as "
                f"{_OTHER[layout]}.")
               for layout, sign in styles},
            **{f"a table added, {layout}": (
                lambda x, m, apart=layout == "neighbours": x + sinusoidal_table(m, x.shape[1], interleaved=apart),
                "You add the sinusoidal table. In RoPE nothing is added: each pair is rotated.")
               for layout in _LAYOUTS},
        },
        praise=praise,
        same=_same,
        fault=fault,
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _neither(d: int, generator: random.Random) -> Pairs:
    """An unusual layout; its first pair is neither of the two usual ones, nor in order."""
    channels = list(range(d))
    while channels[0] < channels[1] or channels[0] - channels[1] in (1, d // 2):
        generator.shuffle(channels)
    return list(zip(channels[::2], channels[1::2], strict=True))


@exercise(instead_of=[apply_rope, apply_rope_complex])
def rotate(seed: int) -> Exercise:
    """rotate(x, positions, pairs) -> x (L, d) with pair i = (a, b) of channels rotated by ω_i·positions[m], base 10,000.

    Either direction is right, as long as it is one for all pairs.
    """
    generator = random.Random(seed)

    def case(length: int, pairs: Pairs, *positions: int) -> tuple[Tensor, Tensor, Pairs]:
        # Never 0, 1, 2, …, and so small that even in float32 a frequency that grows with i is known by its angles.
        at = positions or generator.sample(range(2, 10), length)
        return _sample(generator.randrange(10**6), length, 2 * len(pairs)), torch.tensor(at), pairs

    cases = {
        "neighbours": case(4, _neighbours(8)),
        "halves": case(3, _halves(6)),
        "an unusual layout": case(4, _neither(8, generator)),
        "a single pair, from 1 to 0": case(2, [(1, 0)]),
        "a single token": case(1, _halves(4)),
        "position 0": case(3, _halves(4), 0, 40, 1),
        "positions above 256": case(3, [(0, 1)], 257, 1001, 4999),
    }

    def by(sign: int, layout: Layout | None = None, **changes: Any) -> Callable[[Tensor, Tensor, Pairs], Tensor]:
        return lambda x, m, pairs: _rotated(x, m, layout(x.shape[1]) if layout else pairs, sign, **changes)

    def wrong(said: Sequence[Tensor], sign: int) -> list[str]:
        return [name for (name, case), table in zip(cases.items(), said, strict=True) if not _same(by(sign)(*case), table)]

    def direction(said: Sequence[Tensor]) -> str:
        def off(name: str) -> tuple[int, float]:
            sign = _DIRECTIONS[name]
            tables = zip(cases.values(), said, strict=True)
            return len(wrong(said, sign)), sum(float((by(sign)(*case) - table).abs().sum()) for case, table in tables)

        return min(_DIRECTIONS, key=off)

    def fault(said: Sequence[Tensor]) -> str | None:
        sign = _DIRECTIONS[direction(said)]
        missed = wrong(said, sign)
        if not missed:
            return None
        if not all(table.isfinite().all() for table in said):
            return "Some of your numbers are infinite or NaN."
        found = len(cases) - len(missed)
        some = f"{found} of {len(cases)} cases come out right, and not: {'; '.join(missed)}. " if found else ""
        return some + _explain_pair(*cases[missed[0]], dict(zip(cases, said, strict=True))[missed[0]], sign)

    known = _SLIPS | {
        f"put back as {name}": ({"back_to": layout},
            f"The pairs are rotated and come back as {name}: what was taken from channels a and b belongs into a and b.")
        for name, layout in _LAYOUTS.items()
    } | {
        name: ({"speed": speed},
            "Your frequency goes by the channel: it belongs to the pair, whose number is its place in the list.")
        for name, speed in {
            "speed by the first channel": lambda i, a, c, d: 10_000.0 ** (-a / d),
            "speed by half of the first channel": lambda i, a, c, d: 10_000.0 ** (-2 * (a // 2) / d),
            "speed by each channel": lambda i, a, c, d: 10_000.0 ** (-c / d),
        }.items()
    }  # fmt: skip
    return Exercise(
        cases=cases,
        right=[by(1), by(-1)],
        mistakes={
            "nothing": (lambda x, m, pairs: x, "x comes back as it was: nothing is rotated."),
            **{f"{slip}, {sign}": (by(sign, **changes), hint) for slip, (changes, hint) in known.items() for sign in (1, -1)},
            **{f"always {name}, {sign}": (by(sign, layout),
                f"You pair {_PAIRED[name]} whatever pairs says: right in that layout, wrong in all others.")
               for name, layout in _LAYOUTS.items() for sign in (1, -1)},
            **{f"always {name}, angles of the other layout, {sign}": (by(sign, layout, speed=_TABLES[_OTHER[name]]),
                f"You pair {_PAIRED[name]} whatever pairs says, with angles as if {_PAIRED[_OTHER[name]]} made a pair.")
               for name, layout in _LAYOUTS.items() for sign in (1, -1)},
            **{f"pairs in order, {sign}": (
                lambda x, m, pairs, sign=sign: _rotated(x, m, [(min(pair), max(pair)) for pair in pairs], sign),
                "The order within a pair counts: from 4 to 1 is the other way round than from 1 to 4.")
               for sign in (1, -1)},
        },
        praise=lambda said: f"neighbours, halves, and an unusual layout; all pairs rotate {direction(said)}.",
        same=_same,
        fault=fault,
    )  # fmt: skip


def _explain_pair(x: Tensor, positions: Tensor, pairs: Pairs, said: Tensor, sign: int) -> str:
    """What has become of the first pair that is wrong."""
    want = _rotated(x, positions, pairs, sign)
    for r, m in enumerate(positions.tolist()):
        for i, pair in enumerate(pairs):
            if _same(want[r, pair], said[r, pair]):
                continue
            which = f"At position {m}, pair {i} of {pairs}"
            if abs(x[r, pair].norm() - said[r, pair].norm()) > 2e-3:
                return (
                    f"{which} is not rotated: its length was {x[r, pair].norm():.3f}, and comes back as "
                    f"{said[r, pair].norm():.3f}."
                )
            before, after, wanted = (math.atan2(row[r, pair[1]], row[r, pair[0]]) for row in (x, said, want))
            by, should = (math.remainder(angle - before, 2 * math.pi) for angle in (after, wanted))
            return f"{which} is rotated by an angle of {by:.3f}, and should be by {should:.3f} (in radians)."
    raise AssertionError("nothing is wrong")


def _rows_moved(weight: Tensor, num_heads: int, old: Pairs, new: Pairs, *, copy: bool = True) -> Tensor:
    d = len(weight) // num_heads
    converted = weight.clone()
    source = weight if copy else converted
    for head in range(num_heads):
        for before, after in zip(old, new, strict=True):
            for a, b in zip(before, after, strict=True):
                converted[head * d + b] = source[head * d + a]
    return converted


@exercise(instead_of=[convert_projection, layout_permutation])
def convert(seed: int) -> Exercise:
    """convert(weight, num_heads, old, new) -> weight (num_heads·d_head, d_model), its rows as the new layout wants them."""
    generator = random.Random(seed)
    # Widths from 6 on: with 4 channels the way between the two layouts is its own way back.
    cases = {
        "one head, from neighbours to halves": (_sample(seed, 6, 6), 1, _neighbours(6), _halves(6)),
        "three heads, from halves to neighbours": (_sample(seed + 1, 24, 24), 3, _halves(8), _neighbours(8)),
        "a weight that is not square": (_sample(seed + 2, 16, 9), 2, _neither(8, generator), _neighbours(8)),
        "to an unusual layout": (_sample(seed + 3, 24, 24), 2, _halves(12), _neither(12, generator)),
        "heads of a single pair, turned over": (_sample(seed + 4, 8, 3), 4, [(0, 1)], [(1, 0)]),
        "a single column": (_sample(seed + 5, 12, 1), 2, _neighbours(6), _neither(6, generator)),
    }

    def of_columns(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
        return _rows_moved(weight.T, num_heads, old, new).T if len(weight) == len(weight.T) else weight

    def heads_inside(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
        """As if row c·num_heads + h were channel c of head h."""
        apart = torch.arange(len(weight)).view(-1, num_heads).T.flatten()
        return _rows_moved(weight[apart], num_heads, old, new)[apart.argsort()]

    def first_head(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
        d = len(weight) // num_heads
        return torch.cat((_rows_moved(weight[:d], 1, old, new), weight[d:]))

    def first_head_alone(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
        converted = first_head(weight, num_heads, old, new)
        converted[len(weight) // num_heads :] = 0
        return converted

    def to(layout: Layout) -> Callable[[Tensor, int, Pairs, Pairs], Tensor]:
        return lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, old, layout(len(weight) // num_heads))

    def out_of(layout: Layout) -> Callable[[Tensor, int, Pairs, Pairs], Tensor]:
        return lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, layout(len(weight) // num_heads), new)

    return Exercise(
        cases=cases,
        right=_rows_moved,
        mistakes={
            "nothing": (lambda weight, *_: weight, "The weights come back as they were."),
            "backwards": (lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, new, old),
                "The other way round: the row that makes channel old[i][0] now has to make channel new[i][0]."),
            "one head": (first_head, "Only the first head has changed: each head has rows of its own."),
            "one head and zeros": (first_head_alone, "Only the first head is there: each head has rows of its own."),
            "columns": (of_columns,
                "You move columns: a column of the weight belongs to a channel of x, and a row to one of the query."),
            "heads inside": (heads_inside, "You take every num_heads-th row for a head: the d rows of a head are adjacent."),
            "in the same memory": (lambda *given: _rows_moved(*given, copy=False),
                "Some rows are overwritten before they are read: read from the weight, and write into a copy."),
            "to halves": (to(_halves), "You go to halves, whatever new says."),
            "to neighbours": (to(_neighbours), "You go to neighbours, whatever new says."),
            "from neighbours": (out_of(_neighbours), "You come from neighbours, whatever old says."),
            "from halves": (out_of(_halves), "You come from halves, whatever old says."),
            "pairs turned over": (
                lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, old, [(b, a) for a, b in new]),
                "The two channels of each pair have changed places: the weights fit, but the rotation runs backwards."),
        },
        praise="the rows are where the new layout looks for them, in every head.",
    )  # fmt: skip


def _at(x: Tensor, positions: Tensor, *, interleaved: bool = True) -> Tensor:
    """As `turn` of the assignment."""
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=interleaved)[0, 0]


def _beside(old: int, new: int) -> Tensor:
    return old + torch.arange(new)


def _below(shift: Callable[[int, int], int]) -> Callable[[int, int], Tensor]:
    """Where a new token may look: the diagonal of (new, old + new) shifted to the right."""
    return lambda old, new: torch.ones(new, old + new).tril(shift(old, new)).bool()


_CAUSAL = _below(lambda old, new: old)


def _step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    q_at: Callable[[int, int], Tensor] = _beside,
    k_at: Callable[[int, int], Tensor] = _beside,
    rotates: str = "qk",
    again: bool = False,
    mask: Callable[[int, int], Tensor] = _CAUSAL,
    root: Callable[[int], float] = math.sqrt,
    weigh: Callable[[Tensor, Tensor], Tensor] = lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(dim=1),
    keeps: str = "rotated",
) -> tuple[Tensor, Tensor, Tensor]:
    """A step of decoding, or the same with one thing done differently."""
    old, new = len(keys), len(q)
    raw = torch.cat((keys, k))
    at = {"q": q_at(old, new), "k": k_at(old, new), "v": _beside(old, new)}
    q, k, v = (_at(x, at[name]) if name in rotates else x for name, x in zip("qkv", (q, k, v), strict=True))
    if again and old:
        keys = _at(keys, torch.arange(old))
    output = weigh(q @ torch.cat((keys, k)).T / root(q.shape[1]), mask(old, new)) @ torch.cat((values, v))
    if keeps == "new first":
        return output, torch.cat((k, keys)), torch.cat((v, values))
    return output, raw if keeps == "raw" else torch.cat((keys, k)), torch.cat((values, v))


def _in_pieces(call: Call, pieces: list[int], q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs of a text whose pieces come one after the other, and the cache that is left."""
    keys, values = k[:0], v[:0]
    outputs = []
    for part in torch.arange(len(q)).split(pieces):
        old, new = len(keys), len(part)
        kept = torch.empty(old + new, q.shape[1])
        output, keys, values = call(
            q[part], k[part], v[part], keys, values,
            wanted=(q[part], kept, kept), shown=f"step with {new} new and {old} cached tokens",
        )  # fmt: skip
        outputs.append(output)
    return torch.cat(outputs), keys, values


@exercise()
def step(seed: int) -> Exercise:
    """step(q, k, v, keys, values) -> output, keys, values for the new tokens of a text that comes in pieces.

    q, k, v (new, d) are not rotated yet, the cached keys are; what a step returns is handed to the next. The outputs must be
    those of one pass, whatever the pieces, and row r of the keys that are left the key of token r, rotated to r.
    """

    def case(*pieces: int, d: int) -> tuple[list[int], Tensor, Tensor, Tensor]:
        q, k, v = _sample(seed, 3, sum(pieces), d)
        return list(pieces), 1.5 * q, 1.5 * k, v

    cases = {
        "a text in one piece": case(7, d=8),
        "one token at a time": case(*[1] * 7, d=8),
        "a prompt, then one token at a time": case(4, 1, 1, 1, d=8),
        "two pieces": case(3, 4, d=8),
        "longer and longer pieces": case(1, 2, 4, d=8),
        "a head of another width": case(3, 2, d=4),
        "a single token, one pair": case(1, d=2),
        "a text of 300 tokens": case(290, 9, 1, d=4),
    }

    def but(**changes: Any) -> Callable[..., Any]:
        return lambda *given: _step(*given, **changes)

    def both(at: Callable[[int, int], Tensor], **changes: Any) -> Callable[..., Any]:
        return but(q_at=at, k_at=at, **changes)

    def from_zero(old: int, new: int) -> Tensor:
        return torch.arange(new)

    def same(known: Any, said: Any) -> bool:
        return all(torch.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in zip(known, said, strict=True))

    def fault(said: Sequence[Any]) -> str | None:
        """Where the outputs or the cache first differ from those of one pass."""
        wanted = [_in_pieces(lambda *given, wanted, shown="": _step(*given), *case) for case in cases.values()]
        off = {
            name: [(~torch.isclose(a, b, rtol=1e-3, atol=1e-3)).any(dim=1).nonzero().flatten().tolist()
                   for a, b in zip(known, it, strict=True)]
            for name, known, it in zip(cases, wanted, said, strict=True)
        }  # fmt: skip
        if not any(map(any, off.values())):
            return None
        part = next(n for n in range(3) if any(rows[n] for rows in off.values()))
        name, row = next((name, rows[part][0]) for name, rows in off.items() if rows[part])
        place = f"For {name}, of {cases[name][0]} tokens,"
        if part:
            what = f"key {row}, rotated to {row}" if part == 1 else f"value {row}"
            return (
                f"{place} the outputs are right, but row {row} of the {('keys', 'values')[part - 1]} that you return is not "
                f"{what}: another implementation couldn't use your cache."
            )
        once = "" if off["a text in one piece"][0] else " In one piece it is right, so look at what a step does with the cache."
        return f"{place} the outputs differ from those of one pass from token {row} on (counted from 0).{once}"

    open_mask = _below(lambda old, new: old + new)
    ahead = "With several new tokens, each sees those after it: the causal mask holds among the new ones too."
    left = "Your mask counts rows from 0: row r of the new tokens comes after all the cached ones, and may see those too."
    return Exercise(
        cases=cases,
        right=_step,
        mistakes={
            "nothing rotated": (but(rotates=""),
                "Nothing is rotated: the outputs are those of attention without positions."),
            "from 0": (both(from_zero),
                "Every piece begins at position 0: a new token has the position after the last one in the cache."),
            "counted twice": (both(lambda old, new: old + new + torch.arange(new)),
                "Your new tokens count themselves twice: how many tokens came before the first of them?"),
            "too early": (both(lambda old, new: max(old - 1, 0) + torch.arange(new)),
                "New tokens begin at the position of the last cached one: one too early."),
            "too late": (both(lambda old, new: old + 1 + torch.arange(new)),
                "The outputs are right, but your first token is at position 1: positions count from 0, and whoever hands you a "
                "cache has rotated row r of its keys to r."),
            "at the last one": (both(lambda old, new: torch.full((new,), old + new - 1)),
                "All tokens of a piece get the position of its last one: each has its own."),
            "at the first one": (both(lambda old, new: torch.full((new,), old)),
                "All tokens of a piece get the position of its first one: each has its own."),
            "queries from 0": (but(q_at=from_zero),
                "Only the new queries count from 0 again: a token's query and key have one position."),
            "queries too late": (but(q_at=lambda old, new: old + 1 + torch.arange(new)),
                "Your queries are one position ahead: a token's query and key have one position."),
            "keys from 0": (but(k_at=from_zero),
                "Only the new keys count from 0 again: a token's query and key have one position."),
            "queries at the end": (but(q_at=lambda old, new: torch.full((new,), old + new - 1)),
                "All new queries get the position of the last token: each has its own."),
            "rotated again": (but(again=True),
                "The cached keys are rotated once more in every step: they come rotated, and stay so."),
            "raw keys kept": (but(keeps="raw"),
                "The first step is right, and then keys lack their rotation: you keep each key as it came."),
            "raw keys kept, all rotated": (but(keeps="raw", again=True),
                "The outputs are right, but your cache holds keys as they came, and each step rotates all of them anew: "
                "rotate a key once, when it comes, and keep it rotated."),
            "new first": (but(keeps="new first"),
                "The outputs are right, but the keys come back in another order: row r is the token at position r, so the new "
                "ones go to the end."),
            "query not rotated": (but(rotates="k"),
                "The query isn't rotated: then the score depends on the position of the key."),
            "key not rotated": (but(rotates="q"),
                "The new key isn't rotated: then the score depends on the position of the query."),
            "values rotated": (but(rotates="qkv"),
                "The values are rotated as well: the absolute position comes back with them."),
            "no mask": (but(mask=open_mask), ahead),
            "mask from the left": (but(mask=_below(lambda old, new: 0)), left),
            "mask by the new": (but(mask=_below(lambda old, new: new)),
                "The diagonal of your mask is shifted by the number of new tokens: how many columns does the first row see, "
                "besides its own?"),
            "one ahead": (but(mask=_below(lambda old, new: old + 1)),
                "Each token sees one token after itself: its own is the last that it may see."),
            "not itself": (but(mask=_below(lambda old, new: old - 1)),
                "A token doesn't see itself, and the first one sees nothing, so its output is 0/0: a token's own key is the "
                "last that it may see."),
            "not itself, later": (but(mask=_below(lambda old, new: max(old - 1, 0))),
                "Beside a cache a token doesn't see itself: its own key is the last that it may see."),
            "only the new": (but(mask=lambda old, new: _CAUSAL(old, new) & (torch.arange(old + new) >= old)),
                "The new tokens see only each other: where are the cached keys?"),
            "only the old": (but(mask=lambda old, new: _CAUSAL(old, new)
                                 & ((torch.arange(old + new) < old) | (_beside(old, new)[:, None] == torch.arange(old + new)))),
                "A new token sees the cache and itself, and none of the new ones before it."),
            "mask and positions from 0": (both(from_zero, mask=_below(lambda old, new: 0)),
                "Positions and mask take every piece for the beginning of a text: neither asks the cache."),
            "no mask, from 0": (both(from_zero, mask=open_mask),
                "Positions begin at 0 in each piece, and the new tokens see those after them."),
            "mask after the softmax": (but(weigh=lambda scores, mask: scores.softmax(dim=1) * mask),
                "The mask comes after the softmax, so the weights that are left don't add up to 1."),
            "future at 0": (but(weigh=lambda scores, mask: (scores * mask).softmax(dim=1)),
                "A hidden key gets the score 0, which still has a weight: what score gives none?"),
            "softmax over the queries": (but(weigh=lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(dim=0)),
                "The softmax runs over the queries: each row of scores, over the keys, becomes weights that add up to 1."),
            "not divided": (but(root=lambda d: 1), "The scores are not divided by √d."),
            "divided by d": (but(root=lambda d: d), "The scores are divided by d, not by √d."),
            **{f"divided by √{n}": (but(root=lambda d, n=n: math.sqrt(n)),
                "The scores are divided by the same number for every width: √d depends on the width of q.")
               for n in (8, 64)},
        },
        praise="in one piece, token by token, a prompt and then its continuation, the outputs are those of one pass.",
        ask=_in_pieces,
        same=same,
        fault=fault,
    )  # fmt: skip


@exercise()
def renumber(seed: int) -> Exercise:
    """renumber(keys, old, new) -> keys (L, d), rotated to the positions old, as they are when rotated to new."""
    generator = random.Random(seed)
    moves = {
        "the oldest five dropped": (list(range(5, 12)), list(range(7)), 8),
        "a gap closed": ([0, 1, 2, 40, 41, 42], list(range(6)), 8),
        "some down, some up": ([30, 3, 44, 7, 25, 16], [2, 31, 11, *generator.sample(range(32, 50), 3)], 8),
        "a single key": ([9], [generator.randrange(100, 200)], 8),
        "positions above 256": ([4999, 300, 1001], [257, 2003, 999], 4),
        "a single pair": ([3, 8], [generator.randrange(4, 8), generator.randrange(3)], 2),
    }
    raw = {name: _sample(seed + number, len(old), d) for number, (name, (old, _, d)) in enumerate(moves.items())}
    cases = {
        name: (_at(raw[name], torch.tensor(old)), torch.tensor(old), torch.tensor(new)) for name, (old, new, _) in moves.items()
    }

    def by(angle: Callable[[Tensor, Tensor], Tensor], **layout: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        return lambda keys, old, new: _at(keys, angle(old, new), **layout)

    return Exercise(
        cases=cases,
        right=by(lambda old, new: new - old),
        mistakes={
            "nothing": (by(lambda old, new: 0 * old), "The keys come back as they were."),
            "by the new": (by(lambda old, new: new),
                "You rotate the keys by their new positions: they are rotated by their old ones already."),
            "the other way": (by(lambda old, new: old - new),
                "The other way round: a key that moves up is rotated on, one that moves down is rotated back."),
            "back": (by(lambda old, new: -old), "All keys are rotated back to 0, and not on to their new ones."),
            "back by the new": (by(lambda old, new: -new), "You rotate back by the new positions: they have their old ones."),
            "both": (by(lambda old, new: old + new), "The two rotations add up: the old one has to go."),
            "as the first": (by(lambda old, new: (new - old)[:1].expand(len(old))),
                "You move all keys by as much as the first: each moves by its own distance."),
            "as the last": (by(lambda old, new: (new - old)[-1:].expand(len(old))),
                "You move all keys by as much as the last: each moves by its own distance."),
            "to the rows": (by(lambda old, new: torch.arange(len(old)) - old),
                "The keys end up at 0, 1, 2, …: the positions to move them to are in new."),
            "from the rows": (by(lambda old, new: new - torch.arange(len(old))),
                "You take the keys to be rotated to 0, 1, 2, …: their positions are in old."),
            "upwards": (by(lambda old, new: (new - old).abs()), "Every key is rotated on: moving down is rotating back."),
            "downwards": (by(lambda old, new: -(new - old).abs()), "Every key is rotated back: moving up is rotating on."),
            "down alone": (by(lambda old, new: (new - old).clamp(max=0)), "Keys that move up stay as they were."),
            "up alone": (by(lambda old, new: (new - old).clamp(min=0)), "Keys that move down stay as they were."),
            "in the new order": (lambda keys, old, new: _at(keys, new - old)[new.argsort()],
                "You change the order of the rows: row r of the result is row r of keys, at its new position."),
            "of the other layout": (by(lambda old, new: new - old, interleaved=False),
                "You pair channels i and i + d/2: turn pairs neighbours, and these keys come from turn."),
        },
        praise="every key is where it would be had it been rotated there at once; the keys before rotation were never needed.",
        tolerance=1e-3,
    )  # fmt: skip
