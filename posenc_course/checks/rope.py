"""Exercises on RoPE: a rotation that makes scores relative, any layout of pairs, and caches of rotated keys."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, exercise
from posenc_course.rope import apply_rope, apply_rope_complex, rope_tables
from posenc_course.sinusoidal import frequencies

Pairs = list[tuple[int, int]]  # a layout: pair i rotates at ω_i
Layout = Callable[[int], Pairs]  # of a width
Pairwise = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # a, b, cos, sin -> the rotated pair
Speed = Callable[[int, int, int, int], float]  # pair i, its first channel, the channel itself, d -> radians per token


def _neighbours(d: int) -> Pairs:
    return [(2 * i, 2 * i + 1) for i in range(d // 2)]


def _halves(d: int) -> Pairs:
    return [(i, i + d // 2) for i in range(d // 2)]


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
) -> Tensor:
    """x with pair i of each row rotated by ω_i·position, or with one thing done differently."""
    rotated, d = x.clone(), x.shape[1]
    m = sign * at(positions).double()[:, None]
    columns = torch.tensor(pairs).T  # the first channels, and the second ones
    for n in (0, 1):
        theta = m * torch.tensor([speed(i, pair[0], pair[n], d) for i, pair in enumerate(pairs)], dtype=torch.float64)
        rotated[:, columns[n]] = rotate(x[:, columns[0]], x[:, columns[1]], theta.cos(), theta.sin())[n]
    return rotated


_NOT_ROTATED = (
    "Your pairs are stretched or reflected instead of rotated. At position 0, nothing may change, lengths stay as they are, "
    "and exactly one of the two sines has a minus sign."
)
_FREQUENCIES = "Your frequencies are wrong. Pair 0 is the fastest, with one radian per token, and the exponent has a minus."
# What can go wrong in every layout and direction: what is done differently, and the hint.
_SLIPS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"at": lambda m: torch.arange(len(m))},
        "Your function ignores the positions and uses the row numbers 0, 1, 2, … instead. But row 0 isn't always at position "
        "0, for example if the earlier tokens are in a cache."),
    ({"speed": _power(2)},
        "Your exponents are twice as large as they should be. The index i counts pairs, so it runs from 0 to d/2 - 1. Does "
        "your exponent contain the factor 2 twice?"),
    ({"speed": _power(0.5)}, "Your exponents are half as large as they should be. Where is the 2 of 2i/d?"),
    ({"speed": _power(-1)}, _FREQUENCIES),
    ({"speed": _power(0)}, _FREQUENCIES),
    ({"speed": lambda i, a, c, d: 10_000.0 ** (-2 * (i + 1) / d)}, _FREQUENCIES),
    ({"rotate": lambda a, b, cos, sin: (a * cos - b * sin, -a * sin - b * cos)}, _NOT_ROTATED),
    ({"rotate": lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)}, _NOT_ROTATED),
    ({"rotate": lambda a, b, cos, sin: _plainly(a, b, sin, cos)}, _NOT_ROTATED),
    ({"rotate": _one_after_the_other},
        "You compute the second channel of a pair from the first one after its rotation. But both new channels depend on both "
        "old ones."),
)  # fmt: skip


def _same(known: Tensor, said: Tensor) -> bool:
    return torch.allclose(known, said, rtol=0, atol=2e-3)  # the numbers are about 1, so angles in float32 pass


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

    def by(layout: Layout, sign: int, **changes: Any) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda x, m: _rotated(x, m, layout(x.shape[1]), sign, **changes)

    styles = [(layout, sign) for layout in (_neighbours, _halves) for sign in (1, -1)]
    rights = [by(*style) for style in styles]
    # The angle of each channel if all channels are side by side in a table, as if the other layout formed the pairs.
    tables: dict[Layout, Speed] = {
        _neighbours: lambda i, a, c, d: 10_000.0 ** (-2 * (c % (d // 2)) / d),
        _halves: lambda i, a, c, d: 10_000.0 ** (-2 * (c // 2) / d),
    }

    def right_in(rule: Callable[[Tensor, Tensor], Tensor], said: Sequence[Tensor]) -> list[str]:
        return [name for (name, case), table in zip(cases.items(), said, strict=True) if _same(rule(*case), table)]

    def praise(said: Sequence[Tensor]) -> str:
        names = ("neighbours and rotates counterclockwise, as the paper does", "neighbours and rotates clockwise",
                 "channels i and i + d/2 and rotates counterclockwise, as Llama in transformers does",
                 "channels i and i + d/2 and rotates clockwise, as nanochat does")  # fmt: skip
        name = next(name for name, rule in zip(names, rights, strict=True) if len(right_in(rule, said)) == len(cases))
        return f"your function keeps lengths and makes scores relative, for the widths 8, 12, 6 and 2. It pairs {name}."

    def fault(said: Sequence[Tensor]) -> str | None:
        """Which property of the rotation is missing."""
        found = max((right_in(rule, said) for rule in rights), key=len)
        if len(found) == len(cases):
            return None
        if "d = 8" in found:
            return f"Your function is right in {len(found)} of {len(cases)} cases: {'; '.join(found)}."
        x, positions = cases["d = 8"]
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
            **{f"{slip}, {n}": (by(*style, **changes), hint)
               for slip, (changes, hint) in enumerate(_SLIPS) for n, style in enumerate(styles)},
            **{f"the other layout's table, {n}": (by(layout, sign, speed=tables[layout]),
                "Your angles don't fit your pairs. A table of angles for neighbours is laid out differently from one for "
                "channels i and i + d/2.")
               for n, (layout, sign) in enumerate(styles)},
        },
        praise=praise,
        same=_same,
        fault=fault,
    )  # fmt: skip


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

    def by(sign: int, **changes: Any) -> Callable[[Tensor, Tensor, Pairs], Tensor]:
        return lambda x, m, pairs: _rotated(x, m, pairs, sign, **changes)

    by_channel: tuple[Speed, ...] = (
        lambda i, a, c, d: 10_000.0 ** (-a / d),
        lambda i, a, c, d: 10_000.0 ** (-2 * (a // 2) / d),
        lambda i, a, c, d: 10_000.0 ** (-c / d),
    )
    layouts: dict[str, Callable[[Pairs], Pairs]] = {
        "neighbours": lambda pairs: _neighbours(2 * len(pairs)),
        "halves": lambda pairs: _halves(2 * len(pairs)),
        "sorted": lambda pairs: [(min(pair), max(pair)) for pair in pairs],
        "all sorted": lambda pairs: sorted(pairs),
    }
    known = _SLIPS + tuple(
        ({"speed": speed},
            "Your frequency depends on the channel. But it should depend on the pair, whose number is its index in `pairs`.")
        for speed in by_channel
    )  # fmt: skip
    return Exercise(
        cases=cases,
        right=[by(1), by(-1)],
        mistakes={
            **{f"{n}, {sign}": (by(sign, **changes), hint) for n, (changes, hint) in enumerate(known) for sign in (1, -1)},
            **{f"{name}, {sign}": (lambda x, m, pairs, sign=sign, other=other: _rotated(x, m, other(pairs), sign),
                "You don't pair the channels as `pairs` says. Any layout may come, and the order of two channels matters: a "
                "rotation from channel 4 towards channel 1 is the opposite of one from channel 1 towards channel 4.")
               for name, other in layouts.items() for sign in (1, -1)},
        },
        praise=lambda said: (
            "neighbours, halves, and an unusual layout are all right, and all pairs rotate "
            f"{'counterclockwise' if _same(by(1)(*cases['halves']), said[1]) else 'clockwise'}."
        ),
        same=_same,
    )  # fmt: skip


def _at(x: Tensor, positions: Tensor) -> Tensor:
    """The same as `rotate_to` in the assignment."""
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=True)[0, 0]


def _step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    q_from: Callable[[int], int] = lambda old: old,
    k_from: Callable[[int], int] = lambda old: old,
    cached_from: Callable[[int], Tensor] | None = None,
    raw: bool = False,
    diagonal: Callable[[int, int], int] = lambda old, new: old,
    root: Callable[[int], float] = math.sqrt,
    axis: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """A step of decoding, or the same with one thing done differently."""
    old, new = len(keys), len(q)
    kept = torch.cat((keys, k)) if raw else None
    q, k = _at(q, q_from(old) + torch.arange(new)), _at(k, k_from(old) + torch.arange(new))
    if cached_from and old:
        keys = _at(keys, cached_from(old))
    keys, values = torch.cat((keys, k)), torch.cat((values, v))
    seen = torch.ones(new, old + new).tril(diagonal(old, new)).bool()
    weights = (q @ keys.T / root(q.shape[1])).masked_fill(~seen, -math.inf).softmax(dim=axis)
    return weights @ values, keys if kept is None else kept, values


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
        "pieces that become longer and longer": case(1, 2, 4, d=8),
        "a single token with a single pair": case(1, d=2),
        "a text of 300 tokens, with a head of a different width": case(290, 9, 1, d=4),
    }

    def but(**changes: Any) -> Callable[..., Any]:
        return lambda *given: _step(*given, **changes)

    def same(known: Any, said: Any) -> bool:
        return all(torch.allclose(a, b, rtol=1e-3, atol=1e-3, equal_nan=True) for a, b in zip(known, said, strict=True))

    positions: tuple[Callable[[int], int], ...] = (
        lambda old: 0,
        lambda old: old + 1,
        lambda old: max(old - 1, 0),
    )
    apart = "In your function, the query and the key of a token have different positions, but they should have the same one."
    cache = (
        "Your cache contains unrotated keys. Rotate a key once, when it is new, and keep it rotated: the cached keys that your "
        "function is given have been rotated, too."
    )
    mask = "Your mask is wrong. A new token sees all cached tokens and the new ones up to itself, and none of those after it."
    weights = (
        "Check your weights. Scores are divided by √d, with the width d of q, hidden ones become minus infinity, and a softmax "
        "goes over the keys of each row."
    )
    return Exercise(
        cases=cases,
        right=_step,
        mistakes={
            **{f"position {n}": (but(q_from=first, k_from=first),
                "Your positions are wrong. The text begins at position 0, and the first new token comes right after the last "
                "cached one.") for n, first in enumerate(positions)},
            "queries from 0": (but(q_from=lambda old: 0), apart),
            "rotated again": (but(cached_from=torch.arange),
                "You rotate the cached keys again in every step. But they should stay as they are."),
            "raw keys kept": (but(raw=True), cache),
            "raw keys kept, all rotated": (but(raw=True, cached_from=torch.arange), cache),
            "no mask": (but(diagonal=lambda old, new: old + new), mask),
            "mask from the left": (but(diagonal=lambda old, new: 0), mask),
            "one ahead": (but(diagonal=lambda old, new: old + 1), mask),
            "not itself": (but(diagonal=lambda old, new: max(old - 1, 0)), mask),
            "not divided": (but(root=lambda d: 1), weights),
            "divided by d": (but(root=lambda d: d), weights),
            "softmax over the queries": (but(axis=0), weights),
        },
        praise="in one piece, token by token, or as a prompt and then its continuation, the outputs are those of a single "
               "pass.",
        ask=_in_pieces,
        same=same,
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

    def by(angle: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        return lambda keys, old, new: _at(keys, angle(old, new))

    some = "In your result, some keys move and others don't. A key that moves up has to be rotated further, and one that moves "
    return Exercise(
        cases=cases,
        right=by(lambda old, new: new - old),
        mistakes={
            "as the first": (by(lambda old, new: (new - old)[:1].expand(len(old))),
                "You move all keys by as many positions as the first one. But the keys may move by different amounts."),
            "of the other layout": (lambda keys, old, new: _rotated(keys, new - old, _halves(keys.shape[1]), 1),
                "You pair channels i and i + d/2. But these keys come from `rotate_to`, which pairs neighbours."),
            "down alone": (by(lambda old, new: (new - old).clamp(max=0)), f"{some}down has to be rotated back."),
            "always further": (by(lambda old, new: (new - old).abs()), f"{some}down has to be rotated back."),
        },
        praise="every key is what it would be if it had been rotated to its new position at once, and you never needed the "
               "unrotated keys.",
        tolerance=1e-3,
    )  # fmt: skip
