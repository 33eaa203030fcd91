"""Exercises on RoPE: a rotation that makes scores relative, any layout of pairs, and caches of rotated keys."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, exercise
from posenc_course.rope import apply_rope, apply_rope_complex, rope_tables
from posenc_course.sinusoidal import frequencies, sinusoidal_table

Pairs = list[tuple[int, int]]  # a layout: pair i rotates at ω_i
Layout = Callable[[int], Pairs]  # of a width
Pairwise = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # a, b, cos, sin -> the rotated pair
Speed = Callable[[int, int, int, int], float]  # pair i, its first channel, the channel itself, d -> radians per token


def _neighbours(d: int) -> Pairs:
    return [(2 * i, 2 * i + 1) for i in range(d // 2)]


def _halves(d: int) -> Pairs:
    return [(i, i + d // 2) for i in range(d // 2)]


_LAYOUTS: dict[str, Layout] = {"neighbours": _neighbours, "halves": _halves}
_OTHER = {"neighbours": "halves", "halves": "neighbours"}
_PAIRED = {"neighbours": "neighbours", "halves": "channels i and i + d/2"}
# The angle of each channel, if all channels are side by side in a table of this layout.
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


def _plainly(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
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
    rotate: Pairwise = _plainly,
    back_to: Layout | None = None,
) -> Tensor:
    """x with pair i of each row rotated by ω_i·position, or with one thing done differently."""
    rotated, d = x.clone(), x.shape[1]
    m = sign * at(positions).double()[:, None]
    to = back_to(d) if back_to else pairs
    columns = torch.tensor(pairs).T  # the first channels, and the second ones
    for n in (0, 1):
        theta = m * torch.tensor([speed(i, pair[0], pair[n], d) for i, pair in enumerate(pairs)], dtype=torch.float64)
        rotated[:, [pair[n] for pair in to]] = rotate(x[:, columns[0]], x[:, columns[1]], theta.cos(), theta.sin())[n]
    return rotated


# What can go wrong in every layout and direction: what is done differently, and the hint.
_SLIPS: dict[str, tuple[dict[str, Any], str]] = {
    "by row number": ({"at": lambda m: torch.arange(len(m))},
        "Your function ignores the positions and uses the row numbers 0, 1, 2, … instead. But row 0 isn't always at position "
        "0, for example if the earlier tokens are in a cache."),
    "by the first position": ({"at": lambda m: m[:1].expand(len(m))},
        "You rotate all rows by the position of the first row. But each row has its own position."),
    "counted from 1": ({"at": lambda m: m + 1},
        "You rotate every row one position too far. Positions are counted from 0, and a row at position 0 shouldn't change."),
    "positions in bfloat16": ({"at": lambda m: m.bfloat16()},
        "Your positions above 256 are rounded, because bfloat16 keeps only 8 significant bits. Compute the angles in float32 "
        "or float64."),
    "the 2 twice": ({"speed": _power(2)},
        "Your exponents are twice as large as they should be. The index i counts pairs, so it runs from 0 to d/2 - 1. Does "
        "your exponent contain the factor 2 twice?"),
    "no 2": ({"speed": _power(0.5)}, "Your exponents are half as large as they should be. Where is the 2 of 2i/d?"),
    "no minus": ({"speed": _power(-1)},
        "Your frequencies grow with i. The exponent needs a minus sign, so that pair 0 is the fastest."),
    "pairs from 1": ({"speed": lambda i, a, c, d: 10_000.0 ** (-2 * (i + 1) / d)},
        "Each of your pairs is as slow as the next one should be. Pairs are counted from 0, and pair 0 rotates by one radian "
        "per token."),
    "equal signs": ({"rotate": lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)},
        "Both sines have the same sign in your function, so each pair is stretched instead of rotated. Exactly one of them "
        "needs a minus sign."),
    "a reflection": ({"rotate": lambda a, b, cos, sin: (a * cos - b * sin, -a * sin - b * cos)},
        "Your function keeps all lengths, but it is a reflection instead of a rotation: even at position 0, it changes the "
        "sign of each pair's second channel. Check the sign of the cosine there."),
    "sine for cosine": ({"rotate": lambda a, b, cos, sin: _plainly(a, b, sin, cos)},
        "You have swapped sine and cosine, so even at position 0, every pair is rotated by a right angle."),
    "one after the other": ({"rotate": _one_after_the_other},
        "You compute the second channel of a pair from the first one after its rotation. But both new channels depend on both "
        "old ones."),
}  # fmt: skip


def _same(known: Tensor, said: Tensor) -> bool:
    return torch.allclose(known, said, rtol=0, atol=2e-3)  # the numbers are about 1, so angles in float32 pass


# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


@exercise("my_rotate", instead_of=[apply_rope])
def relative() -> Exercise:
    """my_rotate(x, positions) -> x (L, d) with pair i of row m rotated by ω_i·positions[m], base 10,000.

    Either layout and either direction is right, if you use the same ones throughout.
    """

    def case(*positions: int, d: int) -> tuple[Tensor, Tensor]:
        return _sample(d, len(positions), d), torch.tensor(positions)

    x, positions = case(10, 7, 1010, 1007, d=8)
    cases = {
        "d = 8": case(3, 0, 1, 40, 700, 12, d=8),
        "d = 12": case(2, 1, 900, 30, 5, d=12),
        "a single token": case(7, d=6),
        "a single pair": case(0, 5, 1, d=2),
        "the same query and key, early and late in a text": (x[[0, 1, 0, 1]], positions),
    }

    def by(layout: str, sign: int, **changes: Any) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda x, m: _rotated(x, m, _LAYOUTS[layout](x.shape[1]), sign, **changes)

    styles = [(layout, sign) for layout in _LAYOUTS for sign in (1, -1)]
    rights = [by(*style) for style in styles]

    def right_in(rule: Callable[[Tensor, Tensor], Tensor], said: Sequence[Tensor]) -> list[str]:
        return [name for (name, case), table in zip(cases.items(), said, strict=True) if _same(rule(*case), table)]

    def praise(said: Sequence[Tensor]) -> str:
        names = ("Your function pairs neighbours and rotates counterclockwise, as the paper does.",
                 "Your function pairs neighbours and rotates clockwise, unlike the paper. This is just as good, as long as "
                 "queries and keys rotate in the same direction.",
                 "Your function pairs channels i and i + d/2 and rotates counterclockwise, as Llama in transformers does.",
                 "Your function pairs channels i and i + d/2 and rotates clockwise, as nanochat does. This is just as good, as "
                 "long as queries and keys rotate in the same direction.")  # fmt: skip
        name = next(name for name, rule in zip(names, rights, strict=True) if len(right_in(rule, said)) == len(cases))
        return f"your function keeps lengths and makes scores relative, for the widths 8, 12, 6 and 2. {name}"

    def fault(said: Sequence[Tensor]) -> str | None:
        """Which property of the rotation is missing."""
        found = max((right_in(rule, said) for rule in rights), key=len)
        if len(found) == len(cases):
            return None
        if not all(table.isfinite().all() for table in said):
            return "Some of your numbers are infinite or NaN."
        if any("d = 8" in right_in(rule, said) for rule in rights):
            missed = "; ".join(name for name in cases if name not in found)
            return (
                f"Your function is right for d = 8, but not for: {missed}. Does your function assume a certain width or a "
                "certain number of tokens?"
            )
        x, positions = cases["d = 8"]
        start = positions.tolist().index(0)
        if not _same(x[start], said[0][start]):
            return "The token at position 0 has changed. But a rotation by an angle of 0 leaves every vector as it is."
        before, after = x.norm(dim=1), said[0].norm(dim=1)
        m = int((before - after).abs().argmax())
        if abs(before[m] - after[m]) > 2e-3:
            return (
                f"Your function isn't a rotation: at position {positions[m]}, it changes the length of a vector from "
                f"{before[m]:.3f} to {after[m]:.3f}. Do both channels of a pair rotate by the same angle?"
            )
        late = said[-1]
        near, far = float(late[0] @ late[1]), float(late[2] @ late[3])
        if abs(near - far) > 1e-2:
            return (
                "Your function keeps lengths, but the scores aren't relative: the same query and key, 3 tokens apart, have the "
                f"score {near:.2f} if the query is at position 10, and {far:.2f} if it is at position 1,010."
            )
        return (
            "Your function keeps lengths and makes scores relative, but the angles are wrong. At position m, pair i should "
            "rotate by ω_i·m, with ω_i = 10000^(-2i/d)."
        )

    return Exercise(
        cases=cases,
        right=rights,
        mistakes={
            **{f"{slip}, {layout}, {sign}": (by(layout, sign, **changes), hint)
               for slip, (changes, hint) in _SLIPS.items() for layout, sign in styles},
            **{f"tables not for {layout}, {sign}": (by(layout, sign, speed=_TABLES[_OTHER[layout]]),
                f"Your angles don't fit your pairs. They are laid out as if {_PAIRED[_OTHER[layout]]} formed a pair, but you "
                f"pair {_PAIRED[layout]}.")
               for layout, sign in styles},
            **{f"{layout} back as others, {sign}": (by(layout, sign, back_to=_LAYOUTS[_OTHER[layout]]),
                f"You rotate the pairs, but you mix two layouts: you read x in the layout of {layout} and write the result in "
                f"the layout of {_OTHER[layout]}.")
               for layout, sign in styles},
            **{f"a table added, {layout}": (
                lambda x, m, apart=layout == "neighbours": x + sinusoidal_table(m, x.shape[1], interleaved=apart),
                "You add the sinusoidal table. But RoPE adds nothing: it rotates each pair.")
               for layout in _LAYOUTS},
        },
        praise=praise,
        same=_same,
        fault=fault,
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _neither(d: int, generator: random.Random) -> Pairs:
    """An unusual layout: its first pair fits neither of the two usual layouts and isn't in order."""
    channels = list(range(d))
    while channels[0] < channels[1] or channels[0] - channels[1] in (1, d // 2):
        generator.shuffle(channels)
    return list(zip(channels[::2], channels[1::2], strict=True))


@exercise(instead_of=[apply_rope, apply_rope_complex])
def rotate(seed: int) -> Exercise:
    """rotate(x, positions, pairs) -> x (L, d) with pair i = (a, b) of channels rotated by ω_i·positions[m], base 10,000.

    Either direction is right, if it is the same for all pairs.
    """
    generator = random.Random(seed)

    def case(length: int, pairs: Pairs, *positions: int) -> tuple[Tensor, Tensor, Pairs]:
        # Never 0, 1, 2, …, but small, so that even in float32 the angles show if the frequencies grow with i.
        at = positions or generator.sample(range(2, 10), length)
        return _sample(generator.randrange(10**6), length, 2 * len(pairs)), torch.tensor(at), pairs

    cases = {
        "neighbours": case(4, _neighbours(8)),
        "halves": case(3, _halves(6)),
        "an unusual layout": case(4, _neither(8, generator)),
        "the single pair (1, 0)": case(2, [(1, 0)]),
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
        some = f"Your function is right in {found} of {len(cases)} cases, but not for: {'; '.join(missed)}. " if found else ""
        return some + _explain_pair(*cases[missed[0]], dict(zip(cases, said, strict=True))[missed[0]], sign)

    known = _SLIPS | {
        f"put back as {name}": ({"back_to": layout},
            f"You rotate the pairs, but you write the results back in the layout of {name}. The result for channels a and b "
            "belongs in channels a and b.")
        for name, layout in _LAYOUTS.items()
    } | {
        name: ({"speed": speed},
            "Your frequency depends on the channel. But it should depend on the pair, whose number is its index in `pairs`.")
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
            **{f"{slip}, {sign}": (by(sign, **changes), hint) for slip, (changes, hint) in known.items() for sign in (1, -1)},
            **{f"always {name}, {sign}": (by(sign, layout),
                f"You pair {_PAIRED[name]}, whatever `pairs` contains. That is right for this layout, but wrong for all "
                "others.")
               for name, layout in _LAYOUTS.items() for sign in (1, -1)},
            **{f"always {name}, angles of the other layout, {sign}": (by(sign, layout, speed=_TABLES[_OTHER[name]]),
                f"You pair {_PAIRED[name]}, whatever `pairs` contains, and your angles are laid out as if "
                f"{_PAIRED[_OTHER[name]]} formed a pair.")
               for name, layout in _LAYOUTS.items() for sign in (1, -1)},
            **{f"pairs in order, {sign}": (
                lambda x, m, pairs, sign=sign: _rotated(x, m, [(min(pair), max(pair)) for pair in pairs], sign),
                "You sort the channels of each pair, but their order matters: a rotation from channel 4 towards channel 1 is "
                "the opposite of one from channel 1 towards channel 4.")
               for sign in (1, -1)},
        },
        praise=lambda said: f"neighbours, halves, and an unusual layout are all right, and all pairs rotate {direction(said)}.",
        same=_same,
        fault=fault,
    )  # fmt: skip


def _explain_pair(x: Tensor, positions: Tensor, pairs: Pairs, said: Tensor, sign: int) -> str:
    """What has happened to the first pair that is wrong."""
    want = _rotated(x, positions, pairs, sign)
    for r, m in enumerate(positions.tolist()):
        for i, pair in enumerate(pairs):
            if _same(want[r, pair], said[r, pair]):
                continue
            which = f"At position {m}, pair {i} of {pairs}"
            if abs(x[r, pair].norm() - said[r, pair].norm()) > 2e-3:
                return f"{which} isn't rotated: its length changes from {x[r, pair].norm():.3f} to {said[r, pair].norm():.3f}."
            before, after, wanted = (math.atan2(row[r, pair[1]], row[r, pair[0]]) for row in (x, said, want))
            by, should = (math.remainder(angle - before, 2 * math.pi) for angle in (after, wanted))
            return f"{which} is rotated by an angle of {by:.3f}, but it should be rotated by {should:.3f} (in radians)."
    raise AssertionError("nothing is wrong")


def _at(x: Tensor, positions: Tensor, *, interleaved: bool = True) -> Tensor:
    """The same as `rotate_to` in the assignment."""
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=interleaved)[0, 0]


def _beside(old: int, new: int) -> Tensor:
    return old + torch.arange(new)


def _below(shift: Callable[[int, int], int]) -> Callable[[int, int], Tensor]:
    """Where a new token may look: the lower triangle of (new, old + new), with its diagonal shifted to the right."""
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
    """The outputs of a text whose pieces come one after another, and the final cache."""
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

    q, k and v (new, d) aren't rotated yet, but the cached keys are. Each step gets the cache that the last one returned. The
    outputs must be those of a single pass, whatever the pieces, and row r of the final keys must be key r, rotated to r.
    """

    def case(*pieces: int, d: int) -> tuple[list[int], Tensor, Tensor, Tensor]:
        q, k, v = _sample(seed, 3, sum(pieces), d)
        return list(pieces), 1.5 * q, 1.5 * k, v

    cases = {
        "a text in one piece": case(7, d=8),
        "one token at a time": case(*[1] * 7, d=8),
        "a prompt, then one token at a time": case(4, 1, 1, 1, d=8),
        "two pieces": case(3, 4, d=8),
        "pieces that become longer and longer": case(1, 2, 4, d=8),
        "a head with a different width": case(3, 2, d=4),
        "a single token with a single pair": case(1, d=2),
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
        """Where the outputs or the cache first differ from those of a single pass."""
        wanted = [_in_pieces(lambda *given, wanted, shown="", within=None: _step(*given), *case) for case in cases.values()]
        off = {
            name: [(~torch.isclose(a, b, rtol=1e-3, atol=1e-3)).any(dim=1).nonzero().flatten().tolist()
                   for a, b in zip(known, it, strict=True)]
            for name, known, it in zip(cases, wanted, said, strict=True)
        }  # fmt: skip
        if not any(map(any, off.values())):
            return None
        part = next(n for n in range(3) if any(rows[n] for rows in off.values()))
        name, row = next((name, rows[part][0]) for name, rows in off.items() if rows[part])
        place = f"For {name}, with pieces of {cases[name][0]} tokens,"
        if part:
            what = f"key {row}, rotated by position {row}" if part == 1 else f"value {row}"
            return (
                f"{place} the outputs are right, but row {row} of the {('keys', 'values')[part - 1]} that you return isn't "
                f"{what}. Another implementation couldn't use your cache."
            )
        once = "" if off["a text in one piece"][0] else " In one piece, they are right, so look at how a step uses the cache."
        return (
            f"{place} your outputs are wrong from token {row} on (counted from 0): they differ from those of a single "
            f"pass.{once}"
        )

    open_mask = _below(lambda old, new: old + new)
    ahead = "In your function, new tokens see the new tokens after them. But the causal mask also applies among the new tokens."
    left = (
        "Your mask treats the first new token as token 0 of the text. But the new tokens come after all cached tokens, and may "
        "see those, too."
    )
    return Exercise(
        cases=cases,
        right=_step,
        mistakes={
            "from 0": (both(from_zero),
                "Every piece begins at position 0 in your function. But the first new token comes right after the last cached "
                "token."),
            "counted twice": (both(lambda old, new: old + new + torch.arange(new)),
                "Your positions count the new tokens twice. How many tokens come before the first new one?"),
            "too early": (both(lambda old, new: max(old - 1, 0) + torch.arange(new)),
                "Your new tokens begin at the position of the last cached token, which is one position too early."),
            "too late": (both(lambda old, new: old + 1 + torch.arange(new)),
                "Your outputs are right, but your first token is at position 1. Positions are counted from 0: in the cache "
                "that your function is given, row r of the keys has been rotated by position r."),
            "at the last one": (both(lambda old, new: torch.full((new,), old + new - 1)),
                "In your function, all tokens of a piece get the position of its last token. But each token has its own "
                "position."),
            "queries from 0": (but(q_at=from_zero),
                "Your new queries start again at position 0, although your keys don't. But the query and the key of a token "
                "have the same position."),
            "queries too late": (but(q_at=lambda old, new: old + 1 + torch.arange(new)),
                "Your queries are one position ahead of the keys. But the query and the key of a token have the same "
                "position."),
            "keys from 0": (but(k_at=from_zero),
                "Your new keys start again at position 0, although your queries don't. But the query and the key of a token "
                "have the same position."),
            "rotated again": (but(again=True),
                "You rotate the cached keys again in every step. But they have already been rotated and should stay as they "
                "are."),
            "raw keys kept": (but(keeps="raw"),
                "Your first step is right, but in later steps, the cached keys lack their rotation, because you keep each key "
                "unrotated."),
            "raw keys kept, all rotated": (but(keeps="raw", again=True),
                "Your outputs are right, but your cache contains unrotated keys, and each step rotates all of them again. "
                "Rotate a key once, when it is new, and keep it rotated."),
            "new first": (but(keeps="new first"),
                "Your outputs are right, but you return the new keys before the cached ones. Row r belongs to the token at "
                "position r, so the new keys should come last."),
            "query not rotated": (but(rotates="k"),
                "You don't rotate the query, so the score depends on the position of the key, not on the offset."),
            "key not rotated": (but(rotates="q"),
                "You don't rotate the new key, so the score depends on the position of the query, not on the offset."),
            "values rotated": (but(rotates="qkv"),
                "You rotate the values, too, so the outputs depend on absolute positions."),
            "no mask": (but(mask=open_mask), ahead),
            "mask from the left": (but(mask=_below(lambda old, new: 0)), left),
            "mask by the new": (but(mask=_below(lambda old, new: new)),
                "The diagonal of your mask is shifted by the number of new tokens. How many keys may the first new token see, "
                "besides its own?"),
            "one ahead": (but(mask=_below(lambda old, new: old + 1)),
                "In your function, each token sees one token after itself. But its own key is the last one that it may see."),
            "not itself, later": (but(mask=_below(lambda old, new: max(old - 1, 0))),
                "If there is a cache, a token doesn't see itself in your function. The last key that a token may see is its "
                "own."),
            "mask after the softmax": (but(weigh=lambda scores, mask: scores.softmax(dim=1) * mask),
                "You apply the mask after the softmax, so the remaining weights don't add up to 1."),
            "future at 0": (but(weigh=lambda scores, mask: (scores * mask).softmax(dim=1)),
                "You give a hidden key the score 0, but then it still has a weight. Which score gives a weight of 0?"),
            "softmax over the queries": (but(weigh=lambda scores, mask: scores.masked_fill(~mask, -math.inf).softmax(dim=0)),
                "Your softmax runs over the queries. Apply it to each row of scores, so that the weights of all keys add up to "
                "1."),
            "not divided": (but(root=lambda d: 1), "You don't divide the scores by √d."),
            "divided by d": (but(root=lambda d: d), "You divide the scores by d, not by √d."),
            **{f"divided by √{n}": (but(root=lambda d, n=n: math.sqrt(n)),
                "You divide the scores by the same number for every width. But √d depends on the width of q.")
               for n in (8, 64)},
        },
        praise="in one piece, token by token, or as a prompt and then its continuation, the outputs are those of a single "
               "pass.",
        ask=_in_pieces,
        same=same,
        fault=fault,
    )  # fmt: skip


@exercise()
def renumber(seed: int) -> Exercise:
    """renumber(keys, old, new) -> keys (L, d), given as rotated to the positions old, as they are when rotated to new."""
    generator = random.Random(seed)
    moves = {
        "a cache without its five oldest keys": (list(range(5, 12)), list(range(7)), 8),
        "a gap that closes": ([0, 1, 2, 40, 41, 42], list(range(6)), 8),
        "keys that move in both directions": ([30, 3, 44, 7, 25, 16], [2, 31, 11, *generator.sample(range(32, 50), 3)], 8),
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
            "by the new": (by(lambda old, new: new),
                "You rotate the keys by their new positions. But they have already been rotated by their old ones."),
            "the other way": (by(lambda old, new: old - new),
                "You rotate in the wrong direction. A key that moves up has to be rotated further, and a key that moves down "
                "has to be rotated back."),
            "back": (by(lambda old, new: -old), "You rotate all keys back to position 0, but not on to their new positions."),
            "back by the new": (by(lambda old, new: -new),
                "You rotate the keys back by their new positions. But they have been rotated by their old ones."),
            "both": (by(lambda old, new: old + new),
                "You add the new rotation to the old one. But the old rotation has to disappear."),
            "as the first": (by(lambda old, new: (new - old)[:1].expand(len(old))),
                "You move all keys by as many positions as the first one. But the keys may move by different amounts."),
            "to the rows": (by(lambda old, new: torch.arange(len(old)) - old),
                "In your result, the keys are at positions 0, 1, 2, … But they should move to the positions in `new`."),
            "upwards": (by(lambda old, new: (new - old).abs()),
                "You rotate every key further. But a key that moves down has to be rotated back."),
            "down alone": (by(lambda old, new: (new - old).clamp(max=0)),
                "In your result, keys that move up stay as they were, but they have to be rotated, too."),
            "in the new order": (lambda keys, old, new: _at(keys, new - old)[new.argsort()],
                "You change the order of the rows. But row r of the result should be row r of `keys`, rotated to its new "
                "position."),
            "of the other layout": (by(lambda old, new: new - old, interleaved=False),
                "You pair channels i and i + d/2. But these keys come from `rotate_to`, which pairs neighbours."),
        },
        praise="every key is what it would be if it had been rotated to its new position at once, and you never needed the "
               "unrotated keys.",
        tolerance=1e-3,
    )  # fmt: skip
