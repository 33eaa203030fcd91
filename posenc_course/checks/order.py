"""Exercises on word order: a test that tells which functions see it, and what a layer can see."""

import itertools
import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from posenc_course.attention import attention
from posenc_course.checks._exercise import Exercise, exercise

Layer = Callable[[Tensor], Tensor]


def _attention_layer(x: Tensor) -> Tensor:
    return attention(x, x, x)


def _causal_layer(x: Tensor) -> Tensor:
    return attention(x, x, x, mask=_past(len(x)))


def _past(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def _sample(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# Each function with its kind; a row at a time, all rows at once, one row for the whole sequence.
_KINDS: dict[str, tuple[Layer, str]] = {
    "attention": (_attention_layer, "equivariant"),
    "tanh of every number": (torch.tanh, "equivariant"),
    "each row minus the mean row": (lambda x: x - x.mean(dim=0), "equivariant"),
    "the mean row": (lambda x: x.mean(dim=0), "invariant"),
    "the largest of each column": (lambda x: x.max(dim=0).values, "invariant"),
    "the mean row of attention": (lambda x: _attention_layer(x).mean(dim=0), "invariant"),
    "each column sorted": (lambda x: x.sort(dim=0).values, "invariant"),
    "causal attention": (_causal_layer, "neither"),
    "the running sum": (lambda x: x.cumsum(dim=0), "neither"),
    "the sequence backwards": (lambda x: x.flip(0), "neither"),
    "the last row": (lambda x: x[-1], "neither"),
    "the first row": (lambda x: x[0], "neither"),
    "the row before": (lambda x: x.roll(1, 0), "neither"),
    # Turning the sequence round, or moving it on in a ring, changes nothing here: other orders do.
    "the mean of both neighbours": (lambda x: (x + x.roll(1, 0) + x.roll(-1, 0)) / 3, "neither"),
    # Which neither the first column tells nor the last.
    "the running sum in one column": (lambda x: torch.cat((x[:, :2], x[:, 2:3].cumsum(dim=0), x[:, 3:]), dim=1), "neither"),
}
_SUMS = ("attention", "each row minus the mean row", "the mean row", "the mean row of attention")  # rounded by their order
_ROUNDED = "Too strict: sums in another order differ in the last digit, so compare with torch.allclose."
_MEANS = "You compare sums or means over the rows, and those don't tell which row went where: compare row with row."


def _kind(f: Layer) -> str:
    return next(kind for known, kind in _KINDS.values() if known is f)


def _among(f: Layer, *names: str) -> bool:
    return any(_KINDS[name][0] is f for name in names)


def _some_of(*names: str) -> Iterable[tuple[str, ...]]:
    """Which of these an exact comparison misses depends on the numbers."""
    return itertools.chain.from_iterable(itertools.combinations(names, count) for count in range(1, len(names) + 1))


@exercise("is_equivariant")
def equivariance(seed: int) -> Exercise:
    """is_equivariant(f, x) -> bool, on functions of a sequence x of shape (5, 4)."""
    chosen = ("attention", "tanh of every number", "each row minus the mean row", "the running sum", "the sequence backwards",
              "each column sorted", "the running sum in one column")  # fmt: skip
    x = _sample(seed, 5, 4)

    def right(f: Layer, _x: Tensor) -> bool:
        return _kind(f) == "equivariant"

    return Exercise(
        cases={name: (_KINDS[name][0], x) for name in chosen},
        right=right,
        mistakes={
            "invariance": (lambda f, _: _kind(f) == "invariant",
                "Your test looks for invariance: it wants f(Px) to equal f(x), where equivariance wants P f(x)."),
            "nothing reordered": (lambda f, _: True,
                "Your test calls every function equivariant: does it really reorder the rows of x?"),
            "the output left as it was": (lambda f, _: False,
                "Your test calls nothing equivariant, not even tanh: reorder the output by the same permutation, and compare "
                "with torch.allclose, since sums in another order differ in the last digit."),
            "the inverse permutation": (lambda f, _: _among(f, "the sequence backwards"),
                "You reorder x one way and compare it with f(x) reordered the other way, by the inverse permutation."),
            "taken in by reversal": (lambda f, x: right(f, x) or _among(f, "the sequence backwards"),
                "Your test is taken in by the reversed sequence: a permutation that commutes with reversal cannot catch it. "
                "Take one at random, or try several."),
            "some columns": (lambda f, x: right(f, x) or _among(f, "the running sum in one column"),
                "Your test is taken in by a function that changes one column only: compare all numbers of all rows."),
            "sums": (lambda f, x: right(f, x) or _among(f, "the sequence backwards", "each column sorted"), _MEANS),
            **{f"{', '.join(names)}, to the last digit":
                   (lambda f, x, names=names: right(f, x) and not _among(f, *names), _ROUNDED)
               for names in _some_of("attention", "each row minus the mean row")},
        },
        praise="your test sorts all seven functions.",
    )  # fmt: skip


@exercise()
def permutation(seed: int) -> Exercise:
    """permutation_matrix(order) -> P of shape (L, L) with P @ x equal to x[order], for up to 7 tokens."""
    generator = torch.Generator().manual_seed(seed)
    # A cycle of three tokens or more: an order that is its own inverse would hide the commonest mistake.
    orders = {"a cycle": torch.tensor([1, 2, 0]), "a single token": torch.tensor([0])}
    orders |= {f"{length} tokens": torch.randperm(length, generator=generator) for length in (4, 5, 6, 7)}

    def right(order: Tensor) -> Tensor:
        return torch.eye(len(order))[order]

    return Exercise(
        cases={name: (order,) for name, order in orders.items()},
        right=right,
        mistakes={
            "transposed": (lambda order: right(order).T,
                "Your P is the transpose: it undoes the order. Row r of P @ x should be token order[r], so where in row r is "
                "the 1?"),
            "identity": (lambda order: torch.eye(len(order)), "Your P is the identity: it leaves every token where it was."),
            "reversed": (lambda order: right(order).flip(0),
                "Your rows are in reverse: row 0 of P picks the token that comes first."),
            "counted from 1": (lambda order: right(order - 1),
                "Your columns are one too early: the tokens in `order` are counted from 0."),
            "no last row": (lambda order: right(order) * (torch.arange(len(order)) < len(order) - 1)[:, None],
                "Your last row is empty: each of the L rows picks a token."),
            "more than one number": (lambda order: order[:, None].expand(-1, len(order)),
                "You write the order into the table: a row of P picks one token, so it holds a single 1 and zeros."),
        },
        praise="P @ x is x[order] for all six orders.",
    )  # fmt: skip


def _classified(f: Layer, x: Tensor, *orders: list[int]) -> str:
    """The kind of f as far as these orders tell."""
    y = f(x)
    if all(torch.allclose(f(x[order]), y) for order in orders):
        return "invariant"
    if y.shape == x.shape and all(torch.allclose(f(x[order]), y[order]) for order in orders):
        return "equivariant"
    return "neither"


@exercise()
def kind(seed: int) -> Exercise:
    """kind(f, x) -> "equivariant", "invariant" or "neither", on functions of x of shape (5, 4)."""
    exchanged = {"equivariant": "invariant", "invariant": "equivariant", "neither": "neither"}
    one_order = (
        "You are taken in by functions that change nothing under one order, or under a few: reorder all of the rows, and try "
        "several orders."
    )

    def right(f: Layer, _x: Tensor) -> str:
        return _kind(f)

    def calling(word: str, *names: str) -> Callable[[Layer, Tensor], str]:
        """Somebody who has this word for the functions of these names."""
        return lambda f, _x: word if _among(f, *names) else _kind(f)

    keep_sums = [name for name, (_, kind) in _KINDS.items() if kind == "equivariant"]
    keep_sums += ["the sequence backwards", "the row before", "the mean of both neighbours"]

    return Exercise(
        cases={name: (f, _sample(seed + number, 5, 4)) for number, (name, (f, _)) in enumerate(_KINDS.items())},
        right=right,
        mistakes={
            "exchanged": (lambda f, _: exchanged[_kind(f)],
                "The two words have changed places: an invariant result stays the same, an equivariant one is reordered too."),
            "by shape": (lambda f, x: "invariant" if f(x).ndim == 1 else "equivariant",
                "You judge by the shape of f(x): reorder the rows of x, and look what becomes of it."),
            "nothing reordered": (lambda f, _: "invariant",
                'You call everything "invariant": does x come to f in another order?'),
            "invariant ones missed": (lambda f, _: "neither" if _kind(f) == "invariant" else _kind(f),
                'You find no function "invariant": some functions give one row for the whole sequence, and it has no rows to '
                "reorder."),
            "equivariant ones missed": (lambda f, _: "neither" if _kind(f) == "equivariant" else _kind(f),
                'You find no function "equivariant": reorder the output by the same order before you compare.'),
            "some columns": (calling("equivariant", "the running sum in one column"),
                "You are taken in by a function that changes one column only: compare all numbers of all rows."),
            "some columns, found the same": (calling("invariant", "the running sum in one column"),
                "You are taken in by a function that changes one column only: compare all numbers of all rows."),
            "means": (calling("equivariant", *keep_sums), _MEANS),
            "means, before the test of invariance": (calling("equivariant", *keep_sums, "each column sorted"), _MEANS),
            "means that stay the same": (calling("invariant", *keep_sums), _MEANS),
            **{f"{', '.join(names)}, to the last digit": (calling("neither", *names), _ROUNDED) for names in _some_of(*_SUMS)},
            "backwards only": (lambda f, x: _classified(f, x, [4, 3, 2, 1, 0]), one_order),
            "round a ring": (lambda f, x: _classified(f, x, *([*range(k, 5), *range(k)] for k in range(5))), one_order),
            "the first two rows": (lambda f, x: _classified(f, x, [1, 0, 2, 3, 4]), one_order),
            "the last two rows": (lambda f, x: _classified(f, x, [0, 1, 2, 4, 3]), one_order),
            "the two ends": (lambda f, x: _classified(f, x, [4, 1, 2, 3, 0]), one_order),
            "every number different": (lambda f, _: "neither", 'You call everything "neither": is f(x) compared with '
                "torch.allclose, and in the right order?"),
        },
        praise=f"all {len(_KINDS)} functions, also those that give one row for the whole sequence.",
    )  # fmt: skip


@exercise()
def who_sees_whom(seed: int) -> Exercise:
    """who_sees_whom(f, x) -> (L, L) of True where row m of f(x) depends on token n, on layers and x of four to six rows."""

    def itself(length: int) -> Tensor:
        return torch.eye(length, dtype=torch.bool)

    def everyone(length: int) -> Tensor:
        return torch.ones(length, length, dtype=torch.bool)

    def window(length: int) -> Tensor:
        return _past(length) & ~_past(length).tril(-3)

    def half(x: Tensor) -> Tensor:
        return torch.cat((x[:, :2], x.roll(1, dims=0)[:, 2:]), dim=1)

    layers: dict[str, tuple[Layer, Callable[[int], Tensor]]] = {
        "attention": (_attention_layer, everyone),
        "causal attention": (_causal_layer, _past),
        "tanh of every number": (torch.tanh, itself),
        "the token before": (lambda x: x.roll(1, dims=0), lambda length: itself(length).roll(1, dims=0)),
        "a window of three": (lambda x: attention(x, x, x, mask=window(len(x))), window),
        "plus the first token": (lambda x: x + x[:1], lambda length: itself(length) | (torch.arange(length) == 0)),
        "half of the token before": (half, lambda length: itself(length) | itself(length).roll(1, dims=0)),
        "each row minus its own mean": (lambda x: x - x.mean(dim=1, keepdim=True), itself),
        "nothing but zeros": (torch.zeros_like, lambda length: ~everyone(length)),
    }
    truth = dict(layers.values())

    def looking(change: Callable[[Tensor], Tensor], see: slice = slice(None)) -> Callable[[Layer, Tensor], Tensor]:
        """The table of somebody who changes a token in one way only, or looks at some numbers of a row only."""

        def table(f: Layer, x: Tensor) -> Tensor:
            columns = []
            for n in range(len(x)):
                changed = x.clone()
                changed[n] = change(x[n])
                columns.append(~torch.isclose(f(changed), f(x))[:, see].all(dim=1))
            return torch.stack(columns, dim=1)

        return table

    def but(change: Callable[[Tensor], Tensor]) -> Callable[[Layer, Tensor], Tensor]:
        return lambda f, x: change(truth[f](len(x)))

    first = torch.tensor([1.0, 0.0, 0.0, 0.0])
    other = torch.tensor([1.0, 2.5, -1.5, 0.5])
    x = _sample(seed, 6, 4)
    x[2] = 0
    return Exercise(
        cases={name: (f, x[: 6 - k % 3]) for k, (name, (f, _)) in enumerate(layers.items())},
        right=lambda f, x: truth[f](len(x)),
        mistakes={
            "a token set to zero": (looking(torch.zeros_like),
                "Setting a token to zero changes nothing if it is zero already, as one of these is."),
            "the same added to all numbers": (looking(lambda token: token + 1),
                "A change can go unseen if it is the same for all numbers of a token, or if you look at the sum of a row: "
                "change the numbers differently, and look at each of them."),
            "one number changed or looked at": (looking(lambda token: token + first),
                "You change one number of a token, or look at one number of a row: a layer may pass on the others. Change all "
                "of them, differently, and look at all."),
            "another number looked at": (looking(lambda token: token + other, slice(3, 4)),
                "You look at one number of a row: others may have changed. Look at all."),
            "all numbers changed": (lambda f, x: truth[f](len(x)) & (f is not half),
                "You ask that every number of a row has changed: a row that keeps some of them depends on the token too."),
            "transposed": (but(lambda t: t.T),
                "Your table is transposed: rows are outputs m, columns the tokens n that they depend on."),
            "never itself": (but(lambda t: t & ~itself(len(t))),
                "In your tables no token depends on itself: what does changing token n do to row n?"),
            "always itself": (but(lambda t: t | itself(len(t))),
                "In your tables every token depends on itself, but a layer can make row m from token m - 1 alone."),
            "everyone": (but(torch.ones_like),
                "In your tables everything depends on everything: compare row m alone, with torch.allclose."),
            "the past": (but(lambda t: _past(len(t))),
                "You say that every layer looks at the past and at itself: ask f, by changing x."),
            "never put back": (but(lambda t: t.cumsum(dim=1) > 0),
                "Once you have changed token n, it stays changed for the next ones: start each time from a fresh copy of x."),
            "where nothing changes": (but(lambda t: ~t),
                "The table says where nothing changes: True should stand where something does."),
            "nobody": (but(torch.zeros_like),
                "In your tables nothing depends on anything: does f get a changed copy of x, and do you compare with f of the "
                "old x?"),
            "whether anything changes": (but(lambda t: t.any() & torch.ones_like(t)),
                "You only say whether anything changes at all: which row does, and when which token changes?"),
        },
        praise=f"all {len(layers)} layers.",
    )  # fmt: skip


@exercise()
def orders_apart(seed: int) -> Exercise:
    """orders_apart(f, x) -> how many different results f gives over all orders of the rows of x, of three to five rows."""

    def last_of_two_causal(x: Tensor) -> Tensor:
        return _causal_layer(_causal_layer(x))[-1]

    layers: dict[str, Layer] = {
        "a mean": lambda x: x.mean(dim=0),
        "one row of attention": lambda x: _attention_layer(x)[0],
        "the last row of causal attention": lambda x: _causal_layer(x)[-1],
        "the last row of two causal layers": last_of_two_causal,
        "all rows of attention": _attention_layer,
        "the first two rows": lambda x: x[:2],
    }
    x = _sample(seed, 5, 3)
    twins = ", two of the rows alike"
    cases = {name: (f, x[:4]) for name, f in layers.items()} | {
        name + twins: (f, x[[0, 1, 2, 0]]) for name, f in layers.items()
    }
    cases |= {f"two causal layers on {rows} rows": (last_of_two_causal, x[:rows]) for rows in (3, 5)}

    def results(f: Layer, x: Tensor) -> list[Tensor]:
        return [f(x[list(order)]).flatten() for order in itertools.permutations(range(len(x)))]

    all_orders = "You count the orders: count their results, and equal ones once."
    stopped = "You stop before you have tried every order: itertools.permutations lists them all."

    def apart(found: list[Tensor], atol: float) -> int:
        seen: list[Tensor] = []
        for result in found:
            if not any(torch.allclose(result, other, rtol=0, atol=atol) for other in seen):
                seen.append(result)
        return len(seen)

    def different(found: list[Tensor]) -> int:
        return len({tuple(result.mul(1e6).round().tolist()) for result in found})

    def unlike(found: list[Tensor], others: Iterable[Tensor]) -> int:
        return sum(not torch.allclose(a, b) for a, b in zip(found, others, strict=False))

    def right(f: Layer, x: Tensor) -> int:
        return different(results(f, x))

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the orders": (lambda f, x: math.factorial(len(x)), all_orders),
            "24 orders": (lambda f, x: 24, all_orders),
            "to the last digit": (lambda f, x: len({tuple(result.tolist()) for result in results(f, x)}),
                "Results that differ in the last digit only are the same: compare with torch.allclose, or round."),
            "twins told apart": (lambda f, x: right(f, _sample(seed, len(x), 3)),
                "With two equal rows you count too many: swapping twins changes nothing."),
            "one too few": (lambda f, x: right(f, x) - 1,
                "One too few: the result for the order in which the rows came counts as well."),
            "not the first": (lambda f, x: unlike(found := results(f, x), itertools.repeat(found[0])),
                "You count the orders whose result differs from the first one's: many of them can share a result."),
            "neighbours": (lambda f, x: 1 + unlike(found := results(f, x), found[1:]),
                "You compare each result only with the one before it: an equal one may have come earlier."),
            **{f"sums, within {atol}": (
                   lambda f, x, atol=atol: apart([result.sum() for result in results(f, x)], atol=atol),
                "You compare the sums of the results: different results can have the same sum, so compare all their numbers.")
               for atol in (1e-5, 1e-6, 1e-8)},
            "round a ring": (lambda f, x: different([f(x.roll(k, 0)).flatten() for k in range(len(x))]),
                "You only try the orders that move all rows round a ring: there are many more, which itertools.permutations "
                "lists."),
            "half of the orders": (lambda f, x: different(results(f, x)[: math.factorial(len(x)) // 2]), stopped),
            "12 orders": (lambda f, x: different(results(f, x)[:12]), stopped),
            **{f"{places} decimals": (lambda f, x, places=places: different([y.round(decimals=places) for y in results(f, x)]),
                "You round so coarsely that different results become one: keep six decimals or so.") for places in (0, 1)},
        },
        praise="from a mean, which forgets all 24 orders, to two causal layers, which tell them all apart.",
    )  # fmt: skip
