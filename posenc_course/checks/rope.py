"""Exercises of chapter 10: a rotation that makes scores relative, and the assignment on layouts and caches."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, answer_on_copies, as_table, check, compare
from posenc_course.rope import apply_rope, apply_rope_complex, convert_projection, layout_permutation, rope_tables
from posenc_course.sinusoidal import frequencies, sinusoidal_table

Rule = Callable[[Tensor, Tensor], Tensor]  # x (L, d) and positions (L,) -> (L, d)
_ATOL = 1e-3  # numbers are of size 1; angles in float32 pass


class _Case(NamedTuple):
    d: int
    positions: tuple[int, ...]

    @property
    def call(self) -> str:
        return f"my_rotate(x, positions) with x of shape ({len(self.positions)}, {self.d})"

    @property
    def x(self) -> Tensor:
        generator = torch.Generator().manual_seed(self.d)
        return torch.randn(len(self.positions), self.d, dtype=torch.float64, generator=generator)


# The first tells the mistakes apart: four pairs, an even number of tokens, positions that are not 0, 1, 2, …
_CASES = (_Case(8, (3, 0, 1, 40, 700, 12)), _Case(12, (2, 1, 900, 30, 5)), _Case(6, (7,)), _Case(2, (0, 5, 1)))


@check(instead_of=[apply_rope], draws=False)
def relative(my_rotate: Callable[[Tensor, Tensor], Any]) -> str:
    """Try my_rotate(x, positions) -> x with pair i of row m turned by ω_i·positions[m], base 10,000; x of shape (L, d).

    Either layout and either direction is right, as long as it is one of each. Chapter 10.
    """
    rotated = [_rotated(my_rotate, case) for case in _CASES]
    _judge(my_rotate, rotated)
    return _praise(rotated)


def _rotated(my_rotate: Callable[[Tensor, Tensor], Any], case: _Case) -> Tensor:
    x = case.x
    result = answer_on_copies(my_rotate, x, torch.tensor(case.positions), call=case.call)
    result = as_table(result, tuple(x.shape), call=case.call).clone()
    if not result.isfinite().all():
        raise Wrong(f"{case.call} returned NaN or infinity.")
    return result


def _agree(rule: Rule, case: _Case, result: Tensor) -> bool:
    return torch.allclose(rule(case.x, torch.tensor(case.positions)), result, rtol=0, atol=_ATOL)


def _judge(my_rotate: Callable[[Tensor, Tensor], Any], rotated: list[Tensor]) -> None:
    """Raise `Wrong` unless one of the right rules gives all of it."""
    first, result = _CASES[0], rotated[0]
    for rule, _ in _RIGHT:
        if _agree(rule, first, result):
            for case, other in zip(_CASES, rotated, strict=True):
                if not _agree(rule, case, other):
                    raise Wrong(
                        f"For d = {first.d} it is right, for d = {case.d} it is not: is a width or a length written into it?"
                    )
            return
    for rule, hint in _MISTAKES:
        if _agree(rule, first, result):
            raise Wrong(hint)
    _judge_by_property(my_rotate, first, result)


def _judge_by_property(my_rotate: Callable[[Tensor, Tensor], Any], case: _Case, result: Tensor) -> None:
    """Say which of the three properties an unknown answer lacks; always raises `Wrong`."""
    start = case.positions.index(0)
    if not torch.allclose(result[start], case.x[start], rtol=0, atol=_ATOL):
        raise Wrong("The token at position 0 has changed: a turn by no angle leaves every vector as it is.")
    for m, before, after in zip(case.positions, case.x.norm(dim=1), result.norm(dim=1), strict=True):
        if abs(before - after) > _ATOL:
            raise Wrong(
                f"No rotation: at position {m} a vector of length {before:.2f} comes back {after:.2f} long. "
                "Do both channels of a pair turn by the same angle?"
            )
    q, k = case.x[:2]
    near, far = (_score(my_rotate, q, k, m) for m in (10, 1010))
    if abs(near - far) > 10 * _ATOL:
        raise Wrong(
            f"Lengths are kept, but scores are not relative: the same query and key, 3 tokens apart, score {near:.2f} at "
            f"position 10 and {far:.2f} at position 1,010."
        )
    raise Wrong(
        "Lengths are kept and scores are relative, but the angles are others: at position m pair i turns by ω_i·m, "
        "with ω_i = 10000^(-2i/d)."
    )


def _score(my_rotate: Callable[[Tensor, Tensor], Any], q: Tensor, k: Tensor, m: int) -> float:
    """The score of q at position m and k at m - 3."""
    call = f"my_rotate(x, positions) with x of shape (2, {len(q)})"
    x = torch.stack((q, k))
    turned = as_table(answer(my_rotate, x, torch.tensor([m, m - 3]), call=call), tuple(x.shape), call=call)
    return float(turned[0] @ turned[1])


def _praise(rotated: list[Tensor]) -> str:
    name = next(name for rule, name in _RIGHT if _agree(rule, _CASES[0], rotated[0]))
    return f"Right: lengths kept and scores relative, in widths {', '.join(str(case.d) for case in _CASES)}. {name}"


# ── the right rules and the known mistakes ───────────────────────────────────────────────────────────────────────────────

Turn = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # a, b, cos, sin -> the turned pair


def _split(x: Tensor, interleaved: bool) -> tuple[Tensor, Tensor]:
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else x.chunk(2, dim=-1)
    return a, b


def _join(a: Tensor, b: Tensor, interleaved: bool) -> Tensor:
    return torch.stack((a, b), dim=-1).flatten(start_dim=-2) if interleaved else torch.cat((a, b), dim=-1)


def _angles(x: Tensor, positions: Tensor) -> Tensor:
    return positions.double().unsqueeze(-1) * frequencies(x.shape[-1])


def _rule(
    interleaved: bool, sign: int, *, angles: Rule = _angles, turn: Turn | None = None, joined_interleaved: bool | None = None
) -> Rule:
    """The rotation of one layout and direction, with one thing done otherwise."""

    def rule(x: Tensor, positions: Tensor) -> Tensor:
        theta = sign * angles(x, positions)
        cos, sin = theta.cos(), theta.sin()
        if turn is None and joined_interleaved is None:
            return apply_rope(x[None, None], cos, sin, interleaved=interleaved)[0, 0]
        a, b = (turn or _turn)(*_split(x, interleaved), cos, sin)
        return _join(a, b, interleaved if joined_interleaved is None else joined_interleaved)

    return rule


def _turn(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return a * cos - b * sin, a * sin + b * cos


def _mixed(tables_interleaved: bool, sign: int) -> Rule:
    """Tables of one layout, laid out over all channels, and the rotation of the other."""

    def rule(x: Tensor, positions: Tensor) -> Tensor:
        theta = sign * _angles(x, positions)
        cos, sin = (_join(table, table, tables_interleaved) for table in (theta.cos(), theta.sin()))
        a, b = _split(x, not tables_interleaved)
        return x * cos + _join(-b, a, not tables_interleaved) * sin

    return rule


def _one_after_the_other(a: Tensor, b: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    a = a * cos - b * sin
    return a, a * sin + b * cos


def _of_tokens(sign: int) -> Rule:
    """Tokens 2i and 2i + 1 make a pair, instead of channels."""

    def rule(x: Tensor, positions: Tensor) -> Tensor:
        return _rule(True, sign)(x.T, positions.new_tensor(range(x.shape[1]))).T if len(x) % 2 == 0 else x

    return rule


def _exponent(power: float) -> Rule:
    return lambda x, positions: positions.double().unsqueeze(-1) * frequencies(x.shape[-1]) ** power


_BOTH = [(interleaved, sign) for interleaved in (True, False) for sign in (1, -1)]


def _each(hint: str, **otherwise: Any) -> list[tuple[Rule, str]]:
    """The mistake in both layouts and both directions."""
    return [(_rule(interleaved, sign, **otherwise), hint) for interleaved, sign in _BOTH]


_RIGHT: list[tuple[Rule, str]] = [
    (_rule(True, 1), "Yours pairs neighbours and turns counterclockwise, as the paper does."),
    (_rule(False, 1), "Yours pairs channels i and i + d/2 and turns counterclockwise, as Llama in transformers does."),
    (
        _rule(True, -1),
        "Yours pairs neighbours and turns clockwise, against the paper: as good, if queries and keys turn alike.",
    ),
    (
        _rule(False, -1),
        "Yours pairs channels i and i + d/2 and turns clockwise, as nanochat does: as good, if queries and keys turn alike.",
    ),
]

_MISTAKES: list[tuple[Rule, str]] = [
    (lambda x, positions: x, "x comes back as it was: nothing has turned."),
    *(
        (
            _mixed(tables_interleaved, sign),
            (
                "The two halves of your table follow different layouts: the angles stand as if "
                f"{'neighbours' if tables_interleaved else 'channels i and i + d/2'} made a pair, and the channels are paired "
                f"{'i with i + d/2' if tables_interleaved else 'as neighbours'}."
            ),
        )
        for tables_interleaved in (True, False)
        for sign in (1, -1)
    ),
    *_each(
        "Relative, but your frequencies fall twice as fast as they should: i counts pairs, from 0 to d/2 - 1. Is it counted "
        "twice in the exponent?",
        angles=_exponent(2),
    ),
    *_each("Relative, but your frequencies fall half as fast as they should: where is the 2 of 2i/d?", angles=_exponent(0.5)),
    *_each("Your frequencies grow with i: the exponent needs a minus, so that pair 0 is the fastest.", angles=_exponent(-1)),
    *_each("All pairs turn at the same speed, one radian per token. Where is ω_i?", angles=_exponent(0)),
    *_each(
        "Your angles are converted from degrees: ω_i·m is in radians already, as sine and cosine take it.",
        angles=lambda x, positions: torch.deg2rad(_angles(x, positions)),
    ),
    *_each(
        "Your angles are converted to degrees: sine and cosine take radians.",
        angles=lambda x, positions: torch.rad2deg(_angles(x, positions)),
    ),
    *_each(
        "Your function does not look at positions: it turns the rows by 0, 1, 2, … A token that comes alone, after a cache of "
        "others, is not at position 0.",
        angles=lambda x, positions: _angles(x, torch.arange(len(positions))),
    ),
    *_each(
        "Relative, but everything is turned by one position too much: positions count from 0, and position 0 changes nothing.",
        angles=lambda x, positions: _angles(x, positions + 1),
    ),
    *_each(
        "One of the two sines needs a minus, and exactly one: with equal signs a pair is stretched, not turned.",
        turn=lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos),
    ),
    *_each(
        "Lengths are kept and scores are relative, but position 0 flips the second channel of each pair: a reflection. "
        "Look at the sign of its cosine.",
        turn=lambda a, b, cos, sin: (a * cos - b * sin, -a * sin - b * cos),
    ),
    *_each(
        "At position 0 every pair is turned by a quarter: sine and cosine have changed places.",
        turn=lambda a, b, cos, sin: _turn(a, b, sin, cos),
    ),
    *_each(
        "The second channel of a pair is made from the first one after it has turned: both need the pair as it was before.",
        turn=_one_after_the_other,
    ),
    *_each(
        "Only one channel of each pair has changed: a turn takes both.",
        turn=lambda a, b, cos, sin: (_turn(a, b, cos, sin)[0], b),
    ),
    *_each("Every pair is multiplied by its cosine: where is the sine?", turn=lambda a, b, cos, sin: (a * cos, b * cos)),
    *(
        (
            _rule(interleaved, sign, joined_interleaved=not interleaved),
            (
                "The pairs are turned, and come back in another order: taken apart as "
                f"{'neighbours' if interleaved else 'halves'} and put together as {'halves' if interleaved else 'neighbours'}."
            ),
        )
        for interleaved, sign in _BOTH
    ),
    *((_of_tokens(sign), "Your pairs are pairs of tokens: x is (L, d), and channels are its last axis.") for sign in (1, -1)),
    *(
        (
            lambda x, positions, interleaved=interleaved: x + sinusoidal_table(positions, x.shape[-1], interleaved=interleaved),
            "That is the sum of chapter 3: a table is added. Here nothing is added, each pair is turned.",
        )
        for interleaved in (True, False)
    ),
]


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────

Pairs = list[tuple[int, int]]  # a layout: pair i turns with ω_i


def _neighbours(d: int) -> Pairs:
    return [(2 * i, 2 * i + 1) for i in range(d // 2)]


def _halves(d: int) -> Pairs:
    return [(i, i + d // 2) for i in range(d // 2)]


def _neither(d: int, generator: random.Random) -> Pairs:
    """A layout that nobody has; its first pair is neither of the two usual ones, nor in order."""
    channels = list(range(d))
    while channels[0] < channels[1] or channels[0] - channels[1] in (1, d // 2):
        generator.shuffle(channels)
    return list(zip(channels[::2], channels[1::2], strict=True))


def _normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


_Speed = Callable[[int, int, int], float]  # i, the first channel of the pair, d -> ω


def _rotated_by(
    x: Tensor,
    positions: Tensor,
    pairs: Pairs,
    sign: int,
    *,
    speed: _Speed = lambda i, a, d: 10_000.0 ** (-2 * i / d),
    turn: Turn = _turn,
    back_to: Callable[[int], Pairs] | None = None,
) -> Tensor:
    """x with pair i of each row turned, or with one thing done otherwise."""
    turned = x.clone()
    for i, (a, b) in enumerate(pairs):
        theta = sign * positions.double() * speed(i, a, x.shape[1])
        to_a, to_b = back_to(x.shape[1])[i] if back_to else (a, b)
        turned[:, to_a], turned[:, to_b] = turn(x[:, a], x[:, b], theta.cos(), theta.sin())
    return turned


@check(instead_of=[apply_rope, apply_rope_complex])
def rotate(my_rotate: Callable[[Tensor, Tensor, Pairs], Any], *, seed: int) -> str:
    """Try my_rotate(x, positions, pairs) -> x with pair i = (a, b) of channels turned by ω_i·positions[m], base 10,000.

    x (L, d), positions (L,), pairs a list of d/2; in neighbours, in halves, and in a layout that is drawn. Either direction is
    right. Chapter 10.
    """
    generator = random.Random(seed)
    cases = []
    for number, (length, pairs) in enumerate(
        ((4, _neighbours(8)), (3, _halves(6)), (2, _neighbours(2)), (5, _halves(8)), (4, _neither(8, generator)))
    ):
        # Never 0, 1, 2, …, and so small that in float32 even a frequency that grows with i is known by its angles.
        positions = torch.tensor(generator.sample(range(2, 10), length))
        cases.append((_normal(seed + number, length, 2 * len(pairs)), positions, pairs))
    cases.append((_normal(seed + 5, 3, 4), torch.tensor([0, 40, 1]), _halves(4)))

    probe = answer(my_rotate, *(part.clone() for part in cases[0][:2]), list(cases[0][2]), call="rotate(x, positions, pairs)")
    clockwise = _agrees(lambda x, m, pairs: _rotated_by(x, m, pairs, -1), cases[0], probe)
    sign = -1 if clockwise else 1

    def right(x: Tensor, m: Tensor, pairs: Pairs) -> Tensor:
        return _rotated_by(x, m, pairs, sign)

    return compare(
        my_rotate,
        cases,
        right,
        _rotate_mistakes(),
        name="rotate",
        praise="neighbours, halves, and a layout that nobody has; all turn "
        + ("clockwise." if clockwise else "counterclockwise."),
        tolerance=2e-3,
    )


def _agrees(rule: Callable[..., Tensor], case: tuple[Any, ...], result: Any) -> bool:
    """Whether the result, which may be anything, is the rule's."""
    want = rule(*case)
    try:
        return torch.allclose(as_table(result, tuple(want.shape), call=""), want, rtol=1e-3, atol=1e-3)
    except Wrong:
        return False


def _rotate_mistakes() -> Iterable[tuple[Callable[..., Tensor], str]]:
    """Each in both directions, the most specific first."""

    def in_the_order_of(layout: Callable[[int], Pairs]) -> Callable[[Tensor, Tensor, Pairs, int], Tensor]:
        return lambda x, m, pairs, sign: _rotated_by(x, m, layout(x.shape[1]), sign)

    def otherwise(**changes: Any) -> Callable[[Tensor, Tensor, Pairs, int], Tensor]:
        return lambda x, m, pairs, sign: _rotated_by(x, m, pairs, sign, **changes)

    def put_back_as(layout: Callable[[int], Pairs]) -> Callable[[Tensor, Tensor, Pairs, int], Tensor]:
        return lambda x, m, pairs, sign: _rotated_by(x, m, pairs, sign, back_to=layout)

    def nothing(x: Tensor, m: Tensor, pairs: Pairs, sign: int) -> Tensor:
        return x

    def rows(x: Tensor, m: Tensor, pairs: Pairs, sign: int) -> Tensor:
        return _rotated_by(x, torch.arange(len(x)), pairs, sign)

    def from_one(x: Tensor, m: Tensor, pairs: Pairs, sign: int) -> Tensor:
        return _rotated_by(x, m + 1, pairs, sign)

    def first_position(x: Tensor, m: Tensor, pairs: Pairs, sign: int) -> Tensor:
        return _rotated_by(x, m[:1].expand(len(m)), pairs, sign)

    known = [
        (nothing, "x comes back as it was: nothing has turned."),
        (rows, "You turn the rows by 0, 1, 2, …: the place of row r stands in positions[r]."),
        (first_position, "You turn all rows by the first position: each row has its own."),
        (from_one, "Every row is turned by one position too much: position 0 changes nothing."),
        (in_the_order_of(_neighbours), "You pair neighbours whatever pairs says: right in that layout, wrong in all others."),
        (in_the_order_of(_halves), "You pair i with i + d/2 whatever pairs says: right in that layout, wrong in all others."),
        (put_back_as(_neighbours),
         "The pairs are turned and come back as neighbours: what was taken from channels a and b belongs into a and b."),
        (put_back_as(_halves),
         "The pairs are turned and come back as halves: what was taken from channels a and b belongs into a and b."),
        (otherwise(speed=lambda i, a, d: 10_000.0 ** (-a / d)),
         "Your frequency goes by the channel: it belongs to the pair, whose number is its place in the list."),
        (otherwise(speed=lambda i, a, d: 10_000.0 ** (-i / d)),
         "Your frequencies fall half as fast as they should: where is the 2 of 2i/d?"),
        (otherwise(speed=lambda i, a, d: 10_000.0 ** (-4 * i / d)),
         "Your frequencies fall twice as fast as they should: i counts pairs, from 0. Is it doubled twice?"),
        (otherwise(speed=lambda i, a, d: 10_000.0 ** (2 * i / d)), "Your frequencies grow with i: pair 0 is the fastest."),
        (otherwise(speed=lambda i, a, d: 10_000.0 ** (-2 * (i + 1) / d)),
         "All frequencies are one step too slow: pairs count from 0, and pair 0 turns by one radian per token."),
        (otherwise(speed=lambda i, a, d: 1.0), "All pairs turn at one radian per token: where is ω_i?"),
        (otherwise(speed=lambda i, a, d: math.radians(10_000.0 ** (-2 * i / d))),
         "Your angles are taken for degrees: ω_i·m is in radians already."),
        (otherwise(turn=_one_after_the_other),
         "The second channel of a pair is made from the first one after it has turned: both need the pair as it was."),
        (otherwise(turn=lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos)),
         "One of the two sines needs a minus, and exactly one: with equal signs a pair is stretched, not turned."),
        (otherwise(turn=lambda a, b, cos, sin: _turn(a, b, sin, cos)), "Sine and cosine have changed places."),
        (otherwise(turn=lambda a, b, cos, sin: (a * cos - b * sin, b)),
         "Only the first channel of each pair has changed: a turn takes both."),
        (otherwise(turn=lambda a, b, cos, sin: (a * cos, b * cos)),
         "Every channel is multiplied by its cosine: where is the sine?"),
    ]  # fmt: skip
    for mistake, hint in known:
        for sign in (1, -1):
            yield lambda x, m, pairs, mistake=mistake, sign=sign: mistake(x, m, pairs, sign), hint


def _rows_moved(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    d = len(weight) // num_heads
    converted = weight.clone()
    for head in range(num_heads):
        for before, after in zip(old, new, strict=True):
            for a, b in zip(before, after, strict=True):
                converted[head * d + b] = weight[head * d + a]
    return converted


@check(instead_of=[convert_projection, layout_permutation])
def convert(my_convert: Callable[[Tensor, int, Pairs, Pairs], Any], *, seed: int) -> str:
    """Try my_convert(weight, num_heads, old, new) -> weight (num_heads·d_head, d_model), its rows as the new layout wants them.

    Judged by the rows themselves, whatever the way to them, with one head and with several. Chapter 10.
    """
    generator = random.Random(seed)
    # Widths from 6 on: with 4 channels the way between the two layouts is its own way back.
    cases = [
        (_normal(seed, 6, 6), 1, _neighbours(6), _halves(6)),
        (_normal(seed + 1, 24, 24), 3, _halves(8), _neighbours(8)),
        (_normal(seed + 2, 16, 9), 2, _neither(8, generator), _neighbours(8)),
        (_normal(seed + 3, 24, 24), 2, _halves(12), _neither(12, generator)),
    ]

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

    def to(layout: Callable[[int], Pairs]) -> Callable[[Tensor, int, Pairs, Pairs], Tensor]:
        return lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, old, layout(len(weight) // num_heads))

    def out_of(layout: Callable[[int], Pairs]) -> Callable[[Tensor, int, Pairs, Pairs], Tensor]:
        return lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, layout(len(weight) // num_heads), new)

    mistakes = [
        (lambda weight, num_heads, old, new: weight, "The weights come back as they were."),
        (lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, new, old),
         "The other way round: the row that makes channel old[i][0] now shall make channel new[i][0]."),
        (first_head, "Only the first head has changed: each head has rows of its own."),
        (first_head_alone, "Only the first head is there, the others are 0: each head has rows of its own."),
        (of_columns, "You move columns: a column of the weight goes with a channel of x, and a row with one of the query."),
        (heads_inside, "You take every num_heads-th row for a head: a head's d_head rows stand together."),
        (to(_halves), "You go to halves, whatever new says."),
        (to(_neighbours), "You go to neighbours, whatever new says."),
        (out_of(_neighbours), "You come from neighbours, whatever old says."),
        (out_of(_halves), "You come from halves, whatever old says."),
        (lambda weight, num_heads, old, new: _rows_moved(weight, num_heads, old, [(b, a) for a, b in new]),
         "The two channels of each pair have changed places: then the weights fit, and the turn runs backwards."),
    ]  # fmt: skip
    praise = "the rows are where the new layout looks for them, in every head."
    return compare(my_convert, cases, _rows_moved, mistakes, name="convert", praise=praise)


Step = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, ...]]  # q, k, v, keys, values -> output, keys, values
_PIECES = ([7], [1] * 7, [4, 1, 1, 1], [3, 4], [1, 2, 4])


def _turned(x: Tensor, positions: Tensor) -> Tensor:
    """As `turn` of the assignment."""
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=True)[0, 0]


def _one_step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    start: Callable[[int, int], int] = lambda old, new: old,  # where the new tokens begin
    again: bool = False,
    turns: str = "qk",
    mask: Callable[[int, int], Tensor] = lambda old, new: torch.ones(new, old + new).tril(old),
    scale: bool = True,
    keeps: str = "turned",
) -> tuple[Tensor, Tensor, Tensor]:
    """A step of decoding, or the same with one thing done otherwise."""
    old, new = len(keys), len(q)
    at = start(old, new) + torch.arange(new)
    q, raw, k, v = (_turned(x, at) if name in turns else x for name, x in zip("q-kv", (q, k, k, v), strict=True))
    if again and old:
        keys = _turned(keys, torch.arange(old))
    seen = torch.cat((keys, k))
    scores = q @ seen.T / (math.sqrt(q.shape[1]) if scale else 1)
    weights = scores.masked_fill(mask(old, new) == 0, -math.inf).softmax(dim=1)
    values = torch.cat((values, v))
    kept = {"turned": seen, "raw": torch.cat((keys, raw)), "new": k, "old": keys}[keeps]
    return weights @ values, kept, {"new": v, "old": values[:old]}.get(keeps, values)


def _asked(my_step: Callable[..., Any], *given: Tensor) -> tuple[Tensor, ...]:
    """One step of the reader's, or `Wrong`."""
    q, k, v, keys, _ = given
    call = f"step with {len(q)} new and {len(keys)} cached token{'s' if len(keys) != 1 else ''}"
    result = answer_on_copies(my_step, *given, call=call)
    if not isinstance(result, tuple | list) or len(result) != 3:
        raise Wrong(f"{call} returned a {type(result).__name__}, it should be three things: output, keys, values.")
    known = len(keys) + len(q)
    shapes: list[tuple[int, ...]] = [(len(q), v.shape[1]), (known, k.shape[1]), (known, v.shape[1])]
    tables = []
    for name, shape, value in zip(("output", "keys", "values"), shapes, result, strict=True):
        size = tuple(getattr(value, "shape", ()))
        if name != "output" and size[1:] == shape[1:] and size[0] != known:
            hint = {len(keys): "those of before", len(q): "the new ones"}.get(size[0], "too many or too few")
            raise Wrong(
                f"{call} returns {size[0]} {name}, and the next step needs {known}: the cached and the new ones. "
                f"These are {hint}."
            )
        tables.append(as_table(value, shape, call=f"{name} of {call}"))
        if not tables[-1].isfinite().all():
            raise Wrong(f"{name} of {call} holds NaN or infinity: does the mask leave a token nothing, not even itself?")
    return tuple(tables)


def _in_pieces(step: Step, text: Sequence[Tensor], pieces: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The outputs and the keys that are left, of a text whose pieces come one after the other."""
    q, k, v = text
    keys, values = k[:0], v[:0]
    outputs = []
    for part in torch.arange(len(q)).split(list(pieces)):
        output, keys, values = step(q[part], k[part], v[part], keys, values)
        outputs.append(output)
    return torch.cat(outputs), keys


@check()
def step(my_step: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_step(q, k, v, keys, values) -> output, keys, values on a text of 7 tokens that comes in pieces.

    q, k, v (new, d) are not turned yet, the cached keys are; what a step returns is fed to the next. Right if the outputs are
    those of one pass, whatever the pieces, and row r of the keys that are left has been turned to r. Chapter 10.
    """
    _, k, _ = text = tuple(_normal(seed + number, 7, 8) * size for number, size in enumerate((1.5, 1.5, 1.0)))
    yours = [_in_pieces(partial(_asked, my_step), text, pieces) for pieces in _PIECES]
    want, kept = _in_pieces(_one_step, text, _PIECES[0])

    def same(a: Tensor, b: Tensor) -> bool:
        return torch.allclose(a, b, rtol=1e-3, atol=1e-3)

    if all(same(output, want) for output, _ in yours):
        if any(same(keys[1:], k[1:]) for _, keys in yours):
            raise Wrong(
                "The outputs are right, but your cache holds keys as they came, and each step turns all of them anew: turn a "
                "key once, when it comes, and keep it turned."
            )
        for pieces, (_, keys) in zip(_PIECES, yours, strict=True):
            if not same(keys, kept):
                _explain_cache(keys, k, kept, pieces)
        return f"Right: in pieces of {', of '.join(map(str, _PIECES[1:]))}, the outputs are those of one pass."
    for mistake, hint in _STEP_MISTAKES:
        if all(same(output, _in_pieces(mistake, text, p)[0]) for (output, _), p in zip(yours, _PIECES, strict=True)):
            raise Wrong(hint)
    wrong = [index for index, (output, _) in enumerate(yours) if not same(output, want)]
    pieces, output = _PIECES[wrong[0]], yours[wrong[0]][0]
    token = next(m for m in range(7) if not same(output[m], want[m]))
    once = "" if wrong[0] == 0 else " In one piece it is right, so look at what a step does with the cache."
    raise Wrong(
        f"In pieces of {pieces}, the outputs differ from those of one pass from token {token} on (counted from 0).{once}"
    )


def _explain_cache(keys: Tensor, k: Tensor, kept: Tensor, pieces: Sequence[int]) -> None:
    """Raise `Wrong` for keys that give the right outputs and are not those that another program expects in a cache."""
    for start in (1, -1):
        if torch.allclose(keys, _turned(k, start + torch.arange(len(k))), atol=1e-3):
            raise Wrong(
                f"The outputs are right, but your first token stands at position {start}: positions count from 0, and whoever "
                "hands you a cache has turned row r of its keys to r."
            )
    near = torch.cdist(keys, kept)
    if near.min(dim=1).values.max() < 1e-2:
        raise Wrong(
            f"In pieces of {list(pieces)} the outputs are right, but the keys come back in another order: row r is the token "
            "at position r, so the new ones go to the end."
        )
    row = int(near.diagonal().argmax()) if near.diagonal()[0] < 1e-2 else 0
    raise Wrong(
        f"In pieces of {list(pieces)} the outputs are right, but row {row} of the keys is not key {row} turned to {row}: "
        "a cache of another program, whose row r is turned to r, would not fit yours."
    )


def _step_but(**otherwise: Any) -> Step:
    return lambda *given: _one_step(*given, **otherwise)


def _open(old: int, new: int) -> Tensor:
    return torch.ones(new, old + new)


def _from_the_left(old: int, new: int) -> Tensor:
    return torch.ones(new, old + new).tril()


def _one_ahead(old: int, new: int) -> Tensor:
    return torch.ones(new, old + new).tril(old + 1)


def _only_new(old: int, new: int) -> Tensor:
    return torch.cat((torch.zeros(new, old), torch.ones(new, new).tril()), dim=1)


def _from_zero(old: int, new: int) -> int:
    return 0


_STEP_MISTAKES: list[tuple[Step, str]] = [
    (
        _step_but(turns=""),
        "Nothing has turned: the outputs are those of attention without positions.",
    ),
    (
        _step_but(start=_from_zero),
        "Every piece begins at position 0: a new token has the position after the last one in the cache.",
    ),
    (
        _step_but(start=lambda old, new: old + new),
        "Your new tokens count themselves twice: how many stood before the first of them?",
    ),
    (
        _step_but(start=lambda old, new: max(old - 1, 0)),
        "New tokens begin at the position of the last cached one: one too early.",
    ),
    (_step_but(again=True), "The cached keys are turned once more in every step: they came turned, and stay so."),
    (
        _step_but(keeps="raw"),
        "The first step is right, and then keys lack their turn: what you keep is the key as it came, not the turned one.",
    ),
    (_step_but(turns="k"), "The query has not been turned: then the score depends on where the key stands."),
    (_step_but(turns="q"), "The new key has not been turned: then the score depends on where the query stands."),
    (_step_but(turns="qkv"), "The values are turned as well: the absolute position comes back with them."),
    (
        _step_but(mask=_open),
        "With several new tokens, each sees those after it: among the new ones the causal mask holds.",
    ),
    (
        _step_but(mask=_from_the_left),
        "Your mask counts rows from 0: row r of the new tokens stands after all cached ones, and sees those too.",
    ),
    (_step_but(mask=_one_ahead), "Each token sees one token after itself: its own is the last that it may see."),
    (_step_but(mask=_only_new), "The new tokens see themselves alone: where are the cached keys?"),
    (
        _step_but(mask=_from_the_left, start=_from_zero),
        "Positions and mask take each piece for a beginning: neither asks the cache.",
    ),
    (_step_but(mask=_open, start=_from_zero), "Positions begin at 0 in each piece, and the new tokens see those after them."),
    (_step_but(scale=False), "The scores are not divided by √d."),
]


@check()
def renumber(my_renumber: Callable[[Tensor, Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_renumber(keys, old, new) -> keys (L, d), turned at the positions old, as they are when turned at new.

    Judged by the keys themselves: those that were there before any turn, turned at the new places. Chapter 10.
    """
    generator = random.Random(seed)
    shuffled = generator.sample(range(50), 12)
    moves = [
        (list(range(5, 12)), list(range(7))),  # the oldest five are gone
        ([0, 1, 2, 40, 41, 42], list(range(6))),  # a gap is closed
        (shuffled[:6], shuffled[6:]),
        ([9], [generator.randrange(100, 200)]),
    ]
    raw = {tuple(old): _normal(seed + number, len(old), 8) for number, (old, _) in enumerate(moves)}
    cases = [(_turned(raw[tuple(old)], torch.tensor(old)), torch.tensor(old), torch.tensor(new)) for old, new in moves]

    def right(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
        return _turned(raw[tuple(old.tolist())], new)

    def by(angle: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
        return lambda keys, old, new: _turned(keys, angle(old, new))

    mistakes = [
        (by(lambda old, new: 0 * old), "The keys come back as they were."),
        (by(lambda old, new: new), "You turn the keys by their new positions: they are turned by their old ones already."),
        (by(lambda old, new: old - new), "The other way round: a key that moves up turns on, one that moves down turns back."),
        (by(lambda old, new: -old), "All keys are turned back to position 0, and not on to their new places."),
        (by(lambda old, new: -new), "You turn back by the new positions: which turn do the keys have?"),
        (by(lambda old, new: old + new), "The turns add up: the old one shall go."),
        (by(lambda old, new: (new - old)[:1].expand(len(old))),
         "You move all keys by as much as the first: each moves by its own."),
        (by(lambda old, new: (new - old)[-1:].expand(len(old))),
         "You move all keys by as much as the last: each moves by its own."),
        (by(lambda old, new: torch.arange(len(old)) - old), "The keys end up at 0, 1, 2, …: their places stand in new."),
        (by(lambda old, new: new - torch.arange(len(old))),
         "You take the keys for turned at 0, 1, 2, …: their places stand in old."),
    ]  # fmt: skip
    praise = "every key is where it would be had it been turned there at once; the unturned ones were never needed."
    return compare(my_renumber, cases, right, mistakes, name="renumber", praise=praise, tolerance=1e-3)
