"""Exercises on positions that depend on what was said: angles that add up digits, gates, mirrors, and a recurrence."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, Sizes, exercise
from posenc_course.checks._sandbox import Wrong

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────

_WHOLE = 2 * math.pi
_DIGITS = 1000  # in the texts for which the angles are added up


def _off(angle: float) -> float:
    """How far an angle is from a whole number of rotations, in radians, from -π to π."""
    return math.remainder(angle, _WHOLE)


def _degrees(angle: float) -> str:
    return f"{math.degrees(angle):.4g}°"


def _text_fault(angles: Sequence[float]) -> str | None:
    """What is wrong with the angles of the digits 0, 1 and 2, in a short text or in a long one."""
    zero, one, two = angles
    rough = math.radians(3)
    if abs(_off(zero)) > rough:
        return f"A 0 doesn't change the sum, but it rotates your pair by {_degrees(zero)}."
    if abs(_off(one)) < rough:
        return (
            f"A 1 changes the sum, but your pair points in the same direction afterwards, because it rotates by "
            f"{_degrees(one)}."
        )
    if abs(_off(3 * one)) > rough:
        return (
            f"The text 1, 1, 1 has the sum 3, which leaves the remainder 0, as the empty text does. But it rotates your pair "
            f"by {_degrees(3 * one)}, which isn't a whole number of rotations."
        )
    if abs(_off(two - 2 * one)) > rough:
        return (
            "The texts 2 and 1, 1 have the same sum, so they should rotate your pair in the same way. But they rotate it by "
            f"{_degrees(two)} and {_degrees(2 * one)}."
        )
    for digit, angle, expected in ((0, zero, 0.0), (1, one, _near_third(one)), (2, two, _near_third(two))):
        drift = _DIGITS * _off(angle - expected)
        if abs(drift) > 0.004:
            return (
                f"Your angles are nearly right, but their errors add up: after {_DIGITS:,} times the digit {digit}, your pair "
                f"is off by {_degrees(abs(drift))}. Use more digits of π, and don't round the result."
            )
    return None


def _near_third(angle: float) -> float:
    """The nearest multiple of a third of a rotation."""
    return round(angle / (_WHOLE / 3)) * _WHOLE / 3


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
    return Exercise(
        cases={"the digits": ()},
        right=lambda token: third * token,
        mistakes={
            "degrees": (lambda token: 120 * token,
                "Your angles seem to be in degrees, but the pair rotates by radians: a whole rotation is 2π."),
            "parity": (lambda token: math.pi * token,
                "A 1 makes a half rotation, so two 1s bring your pair back to where it started. This tells the sum modulo 2, "
                "but you need it modulo 3."),
            "modulo 6": (lambda token: math.pi / 3 * token,
                "A 1 makes a sixth of a rotation, so three 1s rotate your pair by half a turn instead of bringing it back. "
                "This tells the sum modulo 6. Do you divide π by 3, instead of 2π?"),
            "whole rotations": (lambda token: _WHOLE * token,
                "All your angles are whole rotations or 0, so your pair always points in the same direction."),
            "the digit": (lambda token: token,
                "You rotate by as many radians as the digit says. But a whole rotation is 2π radians, so no number of 1s "
                "brings your pair back exactly."),
            "a third": (lambda token: token / 3,
                "You return the fraction of a whole rotation. In radians, a whole rotation is 2π."),
            "always": (lambda token: third,
                "Your angle is the same for every digit, so your pair counts the tokens instead of adding up the digits."),
            "one more": (lambda token: third * (token + 1),
                "Each of your angles belongs to the next digit: a 0 rotates the pair like a 1. But a 0 doesn't change the sum."
                ""),
            "only 1": (lambda token: third * (token == 1),
                "Only the digit 1 rotates your pair, so it counts the 1s. A 2 should add 2 to the sum."),
            "1 and 2 alike": (lambda token: third * (token > 0),
                "The digits 1 and 2 rotate your pair by the same angle, so it counts the digits that aren't 0. A 2 should move "
                "it as far as two 1s."),
            "only 2": (lambda token: third * (token == 2),
                "Only the digit 2 rotates your pair, so it counts the 2s. A 1 should add 1 to the sum."),
        },
        praise=f"in texts of {_DIGITS:,} digits, the direction of the pair tells the sum modulo 3, and nothing else.",
        ask=ask,
        same=same,
        fault=lambda said: _text_fault(said[0].tolist()),
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


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

    own = "You also multiply by the gate of the key's own token. A gate lowers the scores of *earlier* keys: begin after n."
    future = (
        "Your bias is right for the past. For keys after the query, it should be minus infinity, so that it's the causal mask, "
        "too."
    )
    natural = "Your logarithm has the wrong base. The softmax uses powers of e, so use the natural logarithm."
    product = (
        "You return the product of the gates, by which the weights are multiplied. But a bias is added to the scores, so you "
        "need its logarithm."
    )

    def ask(call: Call, given: Tensor) -> Tensor:
        """The past of the table, if it's wrong or if the future is minus infinity."""
        right = _past(_logarithms)(given)
        table = torch.as_tensor(call(given, wanted=right))
        if table[torch.ones_like(table).tril() > 0].isnan().all():
            raise Wrong(
                "All of your numbers for the past are NaN. Do you multiply a mask by minus infinity? 0 times infinity is NaN, "
                "so use masked_fill instead."
            )
        masked = bool(table[torch.ones_like(table).triu(1) > 0].isneginf().all())
        if not masked and torch.allclose(table.tril(), right.tril(), atol=1e-4):
            raise Wrong(future)
        return table.tril()

    return Exercise(
        cases={
            "a single token": (gates(1, 0.3, 0.9),),
            "six gates": (gates(6, 0.1, 0.95),),
            "nine gates": (gates(9, 0.6, 0.999),),
            "five equal gates": (torch.full((5,), 0.8, dtype=torch.float64),),
            "seven gates, one of which is nearly closed": (gates(7, 0.9, 0.99).index_fill(0, torch.tensor(3), 1e-6),),
            "a long text, for which the product is too small for the computer": (gates(130, 0.001, 0.002),),
        },
        right=_past(_logarithms),
        mistakes={
            "future 0": (_past(_logarithms, 0), future),
            "future too": (_logarithms, future),
            "future mirrored": (lambda g: -_logarithms(g).abs(), future),
            "the diagonal, too": (lambda g: _logarithms(g).masked_fill(torch.ones(2 * [len(g)]).triu() > 0, -math.inf),
                "You also hide the diagonal, so no query sees its own key. Its bias is 0, and only later keys are hidden."),
            "own gate too": (_past(lambda g: _logarithms(g) + g.log()), own),
            "one token too early": (_past(lambda g: _logarithms(g) + g.log() - g.log()[:, None]),
                "Your product goes over the gates of tokens n to m - 1, but it should go over those of tokens n + 1 to m. A "
                "gate lowers the scores of all keys before its own token."),
            "product": (_past(lambda g: _logarithms(g).exp()), product),
            "log of the product": (_past(_log_of_product),
                "Your bias is right for short texts. In a long text, the product of the gates is too small for the computer "
                "and becomes 0, whose logarithm is minus infinity. Add up the logarithms instead."),
            "positive": (_past(lambda g: -_logarithms(g)),
                "Your bias is positive, so it raises the scores of earlier keys. A gate is less than 1, so its logarithm is "
                "negative."),
            "base 2": (_past(_between(torch.log2)), natural),
            "base 10": (_past(_between(torch.log10)), natural),
            "closed gates": (_past(_between(lambda g: torch.log1p(-g))),
                "You multiply by 1 minus the gate. A gate says how much is kept: at 1, nothing is forgotten."),
            "sum of gates": (_past(_between(lambda g: g)),
                "You add up the gates themselves. The logarithm of a product is the sum of the *logarithms*."),
            "minus the gates": (_past(_between(lambda g: -g)),
                "You add up the gates themselves. The logarithm of a product is the sum of the *logarithms*."),
            "the query's gate": (_past(lambda g: g.log()[:, None] * (torch.arange(len(g))[:, None] - torch.arange(len(g)))),
                "You use the query's gate for every token between the key and the query. But each token has its own gate."),
            "the query's gate once": (
                _past(lambda g: g.log()[:, None] * torch.ones(2 * [len(g)]).tril(-1).to(g)),
                "You use only the gate of the query's own token. The gates of all other tokens after the key count, too."),
            "from the start": (_past(lambda g: g.log().cumsum(0)[:, None].expand(len(g), -1)),
                "In each row, your bias is the same for all keys, so the softmax ignores it. The product should begin after "
                "key n, not at the start of the text."),
            "transposed": (lambda g: _past(_logarithms)(g).T,
                "You have swapped rows and columns: a row belongs to a query, and a column to a key."),
        },
        praise="in short texts and in a long one, your bias is the sum of the logarithms of the gates after each key.",
        ask=ask,
    )  # fmt: skip


def _played(ws: Tensor) -> Tensor:
    """The product of the reflections, the first of which is used first."""
    product = torch.eye(ws.shape[1], dtype=torch.float64)
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


def _differences(pairs: Sequence[tuple[int, int]], size: int, sign: int = -1) -> Tensor:
    unit = torch.eye(size, dtype=torch.float64)
    return torch.stack([unit[a] + sign * unit[b] for a, b in pairs])


def _moved(order: Sequence[int]) -> list[tuple[int, int]]:
    return [(cup, goal) for cup, goal in enumerate(order) if cup != goal]


def _mirrors_fault(said: Sequence[Tensor], orders: Sequence[list[int]]) -> tuple[str, tuple[Any, ...]] | None:
    """The first case in which the mirrors don't rearrange the cups as they should, or in which there are too many of them."""
    for ws, order in zip(said, orders, strict=True):
        at = f"mirrors({order})"
        size = len(order)
        if not ws.isfinite().all():
            return f"{at} contains NaN or infinity.", (order,)
        if not len(ws):
            return _no_mirrors(order), (order,)
        if bool((ws.norm(dim=1) < 1e-9).any()):
            return f"{at} contains a vector whose length is 0. It isn't perpendicular to any mirror, so leave it out.", (order,)
        product = _played(ws)
        if not torch.allclose(product, _rearrangement(order), atol=1e-4):
            if torch.allclose(product.abs(), _rearrangement(order), atol=1e-4):
                return (
                    f"With your mirrors for {order}, the balls arrive at the right cups, but some of them with a minus sign. "
                    "A swap leaves the signs alone."
                ), (order,)
            ball = int((~torch.isclose(product, _rearrangement(order), atol=1e-4)).any(dim=0).int().argmax())
            column = product[:, ball]
            numbers = ", ".join(f"{number + 0.0:.3g}" for number in column.round(decimals=6).tolist())
            whole = torch.allclose(column.abs().sort().values, torch.eye(size, dtype=torch.float64)[-1], atol=1e-4)
            where = f"ends under cup {int(column.abs().argmax())}" if whole else f"becomes ({numbers})"
            return (
                f"With your {_count(len(ws))} for {order}, the ball that begins under cup {ball} {where}, but it should end "
                f"under cup {order[ball]}.", (order,)
            )  # fmt: skip
        if len(ws) > size - 1:
            return (
                f"Your {_count(len(ws))} for {order} rearrange the cups as they should. But {size} cups never need more than "
                f"{size - 1}: with each swap, you can bring a ball to where it belongs."
            ), (order,)
    return None


def _no_mirrors(order: Sequence[int]) -> str:
    return f"mirrors({order}) returned no mirrors, but the balls have to move."


def _count(mirrors: int) -> str:
    return f"{mirrors} mirror{'s' * (mirrors != 1)}"


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
        [1, 0, 3, 2],
        [2, 4, 0, 1, 3],
        [4, 3, 2, 1, 0],
        [1, 2, 3, 4, 5, 0],
        shuffled if len(_swaps(shuffled)) > 2 else [6, 0, 1, 2, 3, 4, 5],
    ]

    def ask(call: Call, order: list[int]) -> Tensor:
        size = len(order)
        try:
            return torch.as_tensor(call(order, wanted=Sizes((None, size))))
        except Wrong as wrong:
            if "has shape (0,)" in str(wrong):
                raise Wrong(_no_mirrors(order)) from wrong
            rows = f"it should have {size} numbers in each row, one for each cup."
            text = str(wrong).replace(f"it should be {Sizes((None, size))}.", rows)
            raise type(wrong)(text) from wrong

    def same(known: Tensor, said: Tensor) -> bool:
        good = bool((said.norm(dim=1) > 1e-9).all()) and bool(said.isfinite().all())
        return good and len(known) == len(said) and torch.allclose(_played(known), _played(said), atol=1e-4)

    backwards = (
        "Your mirrors bring back what the order asks for: what is under cup order[i] moves to cup i. Is your list of mirrors "
        "in reverse order, or do you read order as saying where each ball comes from?"
    )
    return Exercise(
        cases=[(order,) for order in orders],
        right=lambda order: _differences(_swaps(order), len(order)),
        mistakes={
            "backwards": (lambda order: _differences(_swaps(order)[::-1], len(order)), backwards),
            "sums": (lambda order: _differences(_swaps(order), len(order), 1),
                "Your vectors are sums such as (1, 1, 0). Their mirrors swap two numbers and also change their signs. Which "
                "vector is perpendicular to the mirror between two cups?"),
            "a mirror for each cup": (lambda order: _differences(_moved(order), len(order)),
                "You have a mirror for each cup that has to give its ball away, and swap it with the cup where the ball should "
                "go. But after the first swap, the other balls aren't where they were: follow them."),
            "each pair once": (
                lambda order: _differences([pair for pair in _moved(order) if pair[0] < pair[1]], len(order)),
                "You swap cup i with cup order[i] wherever order[i] is larger. But after the first swap, the other balls "
                "aren't where they were: follow them."),
            "the first swap": (lambda order: _differences(_moved(order)[:1], len(order)),
                "You return only one mirror, which swaps two cups. Most orders need more than one."),
            "one for all": (lambda order: (_rearrangement(order)[:, :1] - torch.eye(len(order), dtype=torch.float64)[:, :1]).T
                            if order[0] else _differences(_moved(order)[:1], len(order)),
                "You return only one mirror, which swaps two cups. Most orders need more than one."),
        },
        praise="all nine rearrangements of two to seven balls come out right, and none needs more mirrors than one fewer than "
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
    """The recurrence with update(state, v kᵀ, gate), after which the query reads the state."""

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
    return Exercise(
        cases={
            "a text of one token": case(1, 3, 0.3, 0.7, False),
            "a text of six tokens": case(6, 4, 0.3, 0.95, False),
            "a new token after a cache": case(1, 4, 0.3, 0.9, True),
            "five new tokens after a cache": case(5, 2, 0.3, 0.9, True),
            "gates of 1": case(5, 4, 1, 1, True),
            "a gate of 0 in the middle": (q, k, v, gates, state),
            "1,000 tokens": case(1000, 4, 0.05, 0.5, False),
        },
        right=_recurrence,
        mistakes={
            "rows": (_updated(lambda state, new, gate: gate[:, None] * state + new),
                "Your gates multiply the rows of the state, which belong to the channels of the values. But each gate belongs "
                "to a channel of the *keys*, which is a column."),
            "transposed": (lambda *given: (_recurrence(*given)[0], _recurrence(*given)[1].T),
                "Your outputs are right, but your state is transposed: in v kᵀ, each row belongs to a channel of v, and each "
                "column to a channel of k."),
            "k vᵀ": (_token_by_token(
                lambda state, q, k, v, gate: ((gate * state + torch.outer(k, v)) @ q, gate * state + torch.outer(k, v))),
                "You add k vᵀ. In v kᵀ, each row belongs to a channel of v, and each column to a channel of k."),
            "read from the left": (_token_by_token(
                lambda state, q, k, v, gate: (q @ (gate * state + torch.outer(v, k)), gate * state + torch.outer(v, k))),
                "Your state is right, but you read it with q @ S, which adds up its rows. S @ q takes the dot product of each "
                "row with the query."),
            "all transposed": (_token_by_token(
                lambda state, q, k, v, gate: (q @ (gate[:, None] * state + torch.outer(k, v)),
                                              gate[:, None] * state + torch.outer(k, v))),
                "Your state is transposed: in v kᵀ, each row belongs to a channel of v, and each column to a channel of k. The "
                "state that your function is given has this form, too."),
            "one gate": (lambda q, k, v, gates, state: _recurrence(q, k, v, gates[:, :1].expand_as(gates), state),
                "You use the first gate of each token for all channels. Each channel of the keys has its own."),
            "not itself": (_token_by_token(
                lambda state, q, k, v, gate: (gate * state @ q, gate * state + torch.outer(v, k))),
                "Your state is right, but your outputs lack the query's own token. Add v kᵀ before the query reads the state."),
            "old state": (_token_by_token(lambda state, q, k, v, gate: (state @ q, gate * state + torch.outer(v, k))),
                "Your state is right, but each of your queries reads the state as it was before its own token. Update the "
                "state first."),
            "no gates": (_updated(lambda state, new, gate: state + new), "You don't use the gates, so nothing is forgotten."),
            "other gates": (_updated(lambda state, new, gate: (1 - gate) * state + new),
                "You multiply the state by 1 minus the gates. A gate says how much is kept: at 1, nothing is forgotten."),
            "a mean": (_updated(lambda state, new, gate: gate * state + (1 - gate) * new),
                "You multiply the new token by 1 minus its gates. They lower only what was stored before; the new token is "
                "added in full."),
            "without the cache": (lambda q, k, v, gates, state: _recurrence(q, k, v, gates, torch.zeros_like(state)),
                "Your result is right for a text that begins, but not after a cache. Begin with the state that your function "
                "is given, not with zeros."),
            "the cache's state": (lambda q, k, v, gates, state: (_recurrence(q, k, v, gates, state)[0], state),
                "Your outputs are right, but you return the state that your function was given. Return the state after the "
                "last token."),
            "divided": (lambda q, k, v, gates, state: _recurrence(q / q.shape[1] ** 0.5, k, v, gates, state),
                "You divide by √d. That belongs to the softmax, which is missing here: the scores are used as they are."),
            "the gate before": (lambda q, k, v, gates, state: _recurrence(
                q, k, v, torch.cat((torch.ones_like(gates[:1]), gates[:-1])), state),
                "You multiply by the gates of the token before. Each token's own gates lower what was stored before it."),
        },
        praise="for one new token and for many, at the beginning and after a cache, the state holds all that's needed of the "
               "past.",
    )  # fmt: skip
