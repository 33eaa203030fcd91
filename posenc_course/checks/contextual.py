"""Exercises on positions that depend on what was said: angles that add up digits, gates, mirrors, and a recurrence."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, Sizes, exercise
from posenc_course.checks._sandbox import Wrong

_WHOLE = 2 * math.pi
_DIGITS = 1000  # in the texts for which the angles are added up


def _off(angle: float) -> float:
    """How far an angle is from a whole number of rotations, in radians, from -π to π."""
    return math.remainder(angle, _WHOLE)


def _text_fault(angles: Sequence[float]) -> str | None:
    """What is wrong with the angles of the digits 0, 1 and 2, in a short text or in a long one."""
    zero, one, two = angles
    texts = {"0": zero, "1, 1, 1": 3 * one, "1, 2": one + two}
    for text, angle in texts.items():
        if abs(_off(angle)) > math.radians(3):
            return (
                f"The sum of the text {text} leaves the remainder 0, as that of the empty text does. But it rotates your pair "
                f"by {math.degrees(angle):.4g}°, which isn't a whole number of rotations."
            )
    if abs(_off(one)) < math.radians(3):
        return f"A 1 changes the sum, but your pair points in the same direction: it rotates by {math.degrees(one):.4g}°."
    for text, angle in texts.items():
        if abs(drift := _DIGITS * _off(angle)) > 0.004:
            return (
                f"Your angles are nearly right, but their errors add up: after {_DIGITS:,} times the text {text}, your pair is "
                f"off by {math.degrees(abs(drift)):.4g}°. Use more digits of π, and don't round the result."
            )
    return None


@exercise("my_steps")
def steps() -> Exercise:
    """my_steps(token) -> the angle in radians by which the digit 0, 1 or 2 moves a pair on.

    The sum of the angles has to tell the sum of the digits modulo 3. Either direction is right.
    """

    def ask(call: Call) -> Tensor:
        return torch.tensor([call(token, wanted=0.0) for token in range(3)], dtype=torch.float64)

    def same(known: Tensor, said: Tensor) -> bool:
        """Up to whole rotations, and up to the direction of all of them."""
        return any(all(abs(_off(a - sign * b)) < 2e-3 for a, b in zip(known.tolist(), said.tolist(), strict=True))
                   for sign in (1, -1))  # fmt: skip

    third = _WHOLE / 3
    radians = "Your angles aren't in radians: a whole rotation is 2π, not 360, 3 or 1."
    return Exercise(
        cases={"the digits": ()},
        right=lambda token: third * token,
        mistakes={
            "degrees": (lambda token: 120 * token, radians),
            "the digit": (lambda token: token, radians),
            "a third": (lambda token: token / 3, radians),
        },
        praise=f"in texts of {_DIGITS:,} digits, the direction of the pair tells the sum modulo 3, and nothing else.",
        ask=ask,
        same=same,
        fault=lambda said: _text_fault(said[0].tolist()),
    )  # fmt: skip


def _past(bias: Callable[[Tensor], Tensor], future: float = -math.inf) -> Callable[[Tensor], Tensor]:
    """bias(gates) for the past, with a number for the future."""
    return lambda gates: bias(gates).masked_fill(torch.ones(2 * [len(gates)]).triu(1) > 0, future)


def _between(steps: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """What the tokens after key n add up to, up to query m, if each token has its own step."""

    def total(gates: Tensor) -> Tensor:
        sums = steps(gates).cumsum(dim=0)
        return sums[:, None] - sums

    return total


_logarithms = _between(torch.log)


def _log_of_product(gates: Tensor) -> Tensor:
    """The logarithm of the product itself, which becomes 0 in a long text."""
    later = torch.ones(2 * [len(gates)]).tril(-1) > 0  # the queries after each key
    return torch.where(later, gates[:, None], 1.0).cumprod(dim=0).log()


@exercise()
def forget_bias(seed: int) -> Exercise:
    """forget_bias(gates) -> the (L, L) bias of forget gates: ln of the product of gates n + 1 to m, and -inf for the future."""
    generator = torch.Generator().manual_seed(seed)

    def gates(length: int, low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(length, dtype=torch.float64, generator=generator)

    future = (
        "Your bias is right for the past. For keys after the query, it should be minus infinity, so that it's the causal mask, "
        "too."
    )
    own = "The product goes over the gates of tokens n + 1 to m: a gate lowers the scores of all keys before its own token."
    logarithms = "The logarithm of a product is the sum of the *logarithms*, not of the gates, and not the product itself."
    each = "Each token after the key, up to the query, has a gate of its own. You don't use just these."

    def ask(call: Call, given: Tensor) -> Tensor:
        """The past of the table, if it's wrong or if the future is minus infinity."""
        right = _past(_logarithms)(given)
        table = torch.as_tensor(call(given, wanted=right))
        masked = bool(table[torch.ones_like(table).triu(1) > 0].isneginf().all())
        if not masked and torch.allclose(table.tril(), right.tril(), atol=1e-4):
            raise Wrong(future)
        return table.tril()

    return Exercise(
        cases={
            "a single token": (gates(1, 0.3, 0.9),),
            "six gates": (gates(6, 0.1, 0.95),),
                "seven gates, one of which is nearly closed": (gates(7, 0.9, 0.99).index_fill(0, torch.tensor(3), 1e-6),),
            "a long text, for which the product is too small for the computer": (gates(130, 0.001, 0.002),),
        },
        right=_past(_logarithms),
        mistakes={
            "the diagonal, too": (lambda g: _logarithms(g).masked_fill(torch.ones(2 * [len(g)]).triu() > 0, -math.inf),
                "You also hide the diagonal, so no query sees its own key. Its bias is 0, and only later keys are hidden."),
            "one token too early": (_past(lambda g: _logarithms(g) + g.log() - g.log()[:, None]), own),
            "product": (_past(lambda g: _logarithms(g).exp()), logarithms),
            "sum of gates": (_past(_between(lambda g: g)), logarithms),
            "log of the product": (_past(_log_of_product),
                "Your bias is right for short texts. In a long text, the product of the gates is too small for the computer "
                "and becomes 0, whose logarithm is minus infinity. Add up the logarithms instead."),
            "the query's gate": (_past(lambda g: g.log()[:, None] * (torch.arange(len(g))[:, None] - torch.arange(len(g)))),
                each),
            "the query's gate once": (_past(lambda g: g.log()[:, None] * torch.ones(2 * [len(g)]).tril(-1).to(g)), each),
        },
        praise="in short texts and in a long one, your bias is the sum of the logarithms of the gates after each key.",
        ask=ask,
    )  # fmt: skip


def _played(ws: Tensor, size: int) -> Tensor:
    """The product of the reflections, the first of which is used first."""
    product = torch.eye(size, dtype=torch.float64)
    for w in ws:
        product = product - 2 * torch.outer(w, w @ product) / (w @ w)
    return product


def _rearrangement(order: Sequence[int]) -> Tensor:
    """The matrix that moves what is under cup i to cup order[i]."""
    return torch.eye(len(order), dtype=torch.float64)[:, list(order)]


def _swaps(order: Sequence[int]) -> list[tuple[int, int]]:
    """Swaps that bring what is under cup i to cup order[i]: each one brings a ball to where it belongs."""
    goals, swaps = list(order), []
    for cup in range(len(goals)):
        while goals[cup] != cup:
            goal = goals[cup]
            swaps.append((cup, goal))
            goals[cup], goals[goal] = goals[goal], goal
    return swaps


def _differences(pairs: Sequence[tuple[int, int]], size: int) -> Tensor:
    unit = torch.eye(size, dtype=torch.float64)
    return torch.stack([unit[a] - unit[b] for a, b in pairs])


def _moved(order: Sequence[int]) -> list[tuple[int, int]]:
    return [(cup, goal) for cup, goal in enumerate(order) if cup != goal]


def _mirrors_fault(said: Sequence[Tensor], orders: Sequence[list[int]]) -> tuple[str, tuple[Any, ...]] | None:
    """The first case in which the mirrors don't rearrange the cups as they should, or in which there are too many of them."""
    for ws, order in zip(said, orders, strict=True):
        size = len(order)
        if fault := _fault_of(ws, order):
            return f"With your {len(ws)} mirror{'s' * (len(ws) != 1)} for {order}, {fault}", (order,)
        if len(ws) > size - 1:
            return (
                f"Your {len(ws)} mirrors for {order} rearrange the cups as they should. But {size} cups never need more than "
                f"{size - 1}: with each swap, you can bring a ball to where it belongs."
            ), (order,)
    return None


def _fault_of(ws: Tensor, order: list[int]) -> str:
    """What becomes of the first ball that isn't where it should be, or nothing."""
    if not ws.isfinite().all() or bool((ws.norm(dim=1) < 1e-9).any()):
        return "some vectors aren't finite, or have the length 0, and aren't perpendicular to any mirror."
    product, wanted = _played(ws, len(order)), _rearrangement(order)
    if torch.allclose(product, wanted, atol=1e-4):
        return ""
    ball = int((~torch.isclose(product, wanted, atol=1e-4)).any(dim=0).int().argmax())
    column = tuple(round(number, 3) + 0.0 for number in product[:, ball].tolist())
    return f"the ball that begins under cup {ball} becomes {column}, but it should end under cup {order[ball]}."


@exercise()
def mirrors(seed: int) -> Exercise:
    """mirrors(order) -> vectors, in rows: their mirrors, one after another, move the ball of each cup i to cup order[i].

    Any such vectors are right if there are at most len(order) - 1 of them.
    """
    shuffled = random.Random(seed).sample(range(7), 7)
    orders = [
        [1, 0, 2],
        [0, 1, 3, 2],
        [1, 2, 0],
        [1, 2, 3, 0],
        [2, 4, 0, 1, 3],
        [4, 3, 2, 1, 0],
        [1, 2, 3, 4, 5, 0],
        shuffled if len(_swaps(shuffled)) > 2 else [6, 0, 1, 2, 3, 4, 5],
    ]

    def ask(call: Call, order: list[int]) -> Tensor:
        try:
            return torch.as_tensor(call(order, wanted=Sizes((None, len(order)))))
        except Wrong as wrong:
            if "has shape (0,)" in str(wrong):
                raise Wrong(f"mirrors({order}) returned no mirrors, but the balls have to move.") from wrong
            raise

    def same(known: Tensor, said: Tensor) -> bool:
        good = bool((said.norm(dim=1) > 1e-9).all()) and bool(said.isfinite().all())
        size = known.shape[1]
        return good and len(known) == len(said) and torch.allclose(_played(known, size), _played(said, size), atol=1e-4)

    follow = (
        "You swap each cup that has to give its ball away with the cup where the ball should go. But after the first swap, the "
        "other balls aren't where they were: follow them."
    )
    return Exercise(
        cases=[(order,) for order in orders],
        right=lambda order: _differences(_swaps(order), len(order)),
        mistakes={
            "backwards": (lambda order: _differences(_swaps(order)[::-1], len(order)),
                "Your mirrors bring back what the order asks for: what is under cup order[i] moves to cup i. Is your list of "
                "mirrors in reverse order, or do you read order as saying where each ball comes from?"),
            "a mirror for each cup": (lambda order: _differences(_moved(order), len(order)), follow),
        },
        praise="all rearrangements of two to seven balls come out right, and none needs more mirrors than one fewer than "
               "cups.",
        ask=ask,
        same=same,
        fault=lambda said: _mirrors_fault(said, orders),
    )  # fmt: skip


Step = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]  # state, q, k, v, gate -> output, state


def _token_by_token(step: Step) -> Callable[..., tuple[Tensor, Tensor]]:
    def recurrent(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        outputs = []
        for given in zip(q, k, v, gates, strict=True):
            output, state = step(state, *given)
            outputs.append(output)
        return torch.stack(outputs), state

    return recurrent


def _updated(update: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, Tensor]]:
    """The recurrence with update(state, v kᵀ, gate)."""

    def step(state: Tensor, q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> tuple[Tensor, Tensor]:
        state = update(state, torch.outer(v, k), gate)
        return state @ q, state

    return _token_by_token(step)


_recurrence = _updated(lambda state, new, gate: gate * state + new)


@exercise()
def recurrent(seed: int) -> Exercise:
    """recurrent(q, k, v, gates, state) -> the outputs (new, d_v) and the state after the new tokens (d_v, d).

    Each token first multiplies the state's columns by its gates, one for each channel of the keys, and adds v kᵀ. Then its
    query reads the state. In the cases, d_v is d, so mixing up rows and columns raises no error but gives a hint.
    """
    generator = torch.Generator().manual_seed(seed)

    def case(new: int, d: int, low: float, high: float, cached: bool) -> tuple[Tensor, ...]:
        q, k, v = torch.randn(3, new, d, dtype=torch.float64, generator=generator)
        gates = low + (high - low) * torch.rand(new, d, dtype=torch.float64, generator=generator)
        state = torch.randn(d, d, dtype=torch.float64, generator=generator) * cached
        return q, k, v, gates, state

    q, k, v, gates, state = case(6, 4, 0.5, 0.9, True)
    gates[3, 1] = 0
    axes = (
        "You mix up axes. In v kᵀ, a row of the state belongs to a channel of v, and a column to a channel of k, with a gate "
        "of its own. A query reads the state by S @ q, its dot product with each row."
    )
    before = "Your state is right, but your outputs lack the query's own token. Update the state before the query reads it."
    in_full = "A token's gates lower only what was stored before it; the token itself is added in full."
    its_own = "You multiply by the gates of another token. Each token's own gates lower what was stored before it."
    return Exercise(
        cases={
            "a text of one token": case(1, 3, 0.3, 0.7, False),
            "a text of six tokens": case(6, 4, 0.3, 0.95, False),
            "five new tokens after a cache": case(5, 2, 0.3, 0.9, True),
            "gates of 1": case(5, 4, 1, 1, True),
            "a gate of 0 in the middle": (q, k, v, gates, state),
            "1,000 tokens": case(1000, 4, 0.05, 0.5, False),
        },
        right=_recurrence,
        mistakes={
            "rows": (_updated(lambda state, new, gate: gate[:, None] * state + new), axes),
            "k vᵀ": (_updated(lambda state, new, gate: gate * state + new.T), axes),
            "one gate": (lambda q, k, v, gates, state: _recurrence(q, k, v, gates[:, :1].expand_as(gates), state), axes),
            "old state": (
                _token_by_token(lambda state, q, k, v, gate: (state @ q, gate * state + torch.outer(v, k))), before),
            "a mean": (_updated(lambda state, new, gate: gate * state + (1 - gate) * new), in_full),
            "gate last": (_updated(lambda state, new, gate: gate * (state + new)), in_full),
            "the cache's state": (lambda q, k, v, gates, state: (_recurrence(q, k, v, gates, state)[0], state),
                "Your outputs are right, but you return the state that you were given. Return the state after the last token."),
            "the next gate": (lambda q, k, v, gates, state: _recurrence(
                q, k, v, torch.cat((gates[1:], torch.ones_like(gates[:1]))), state), its_own),
            "the gate before": (lambda q, k, v, gates, state: _recurrence(
                q, k, v, torch.cat((torch.ones_like(gates[:1]), gates[:-1])), state), its_own),
        },
        praise="for one new token and for many, at the beginning and after a cache, the state holds all that's needed of the "
               "past.",
    )  # fmt: skip
