"""Exercise of chapter 10: a rotation that makes scores relative."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, as_table, check
from posenc_course.rope import apply_rope
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
    x, positions = case.x, torch.tensor(case.positions)
    result = as_table(answer(my_rotate, x, positions, call=case.call), tuple(x.shape), call=case.call).clone()
    if not torch.equal(x, case.x) or positions.tolist() != list(case.positions):
        raise Wrong("Your function writes into its arguments: the caller's x has changed too. Write into a new tensor.")
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
