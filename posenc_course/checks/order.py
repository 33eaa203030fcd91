"""Exercises on word order: a test that finds out which functions see it, and what a layer can see."""

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


# Each function with its kind. Some work on one row at a time, some on all rows at once, and some return a single row.
_KINDS: dict[str, tuple[Layer, str]] = {
    "attention": (_attention_layer, "equivariant"),
    "tanh of every number": (torch.tanh, "equivariant"),
    "each row minus the mean row": (lambda x: x - x.mean(dim=0), "equivariant"),
    "the mean row": (lambda x: x.mean(dim=0), "invariant"),
    "the largest number in each column": (lambda x: x.max(dim=0).values, "invariant"),
    "the mean row of attention's output": (lambda x: _attention_layer(x).mean(dim=0), "invariant"),
    "each column sorted": (lambda x: x.sort(dim=0).values, "invariant"),
    "causal attention": (_causal_layer, "neither"),
    "the running sum": (lambda x: x.cumsum(dim=0), "neither"),
    "the reversed sequence": (lambda x: x.flip(0), "neither"),
    "the last row": (lambda x: x[-1], "neither"),
    "the first row": (lambda x: x[0], "neither"),
    "each row replaced by the one before it": (lambda x: x.roll(1, 0), "neither"),
    # Under reversal and cyclic shifts, this function looks equivariant; only other orders give it away.
    "each row averaged with its two neighbours": (lambda x: (x + x.roll(1, 0) + x.roll(-1, 0)) / 3, "neither"),
    # Neither the first column nor the last gives this function away.
    "the running sum in one column": (lambda x: torch.cat((x[:, :2], x[:, 2:3].cumsum(dim=0), x[:, 3:]), dim=1), "neither"),
    # A permutation that leaves the middle row where it is, such as a swap of the first two rows, doesn't give this one away.
    "the middle row doubled": (lambda x: torch.cat((x[:2], 2 * x[2:3], x[3:])), "neither"),
    # Half of all orders don't give these away.
    "the mean row with a sign from two rows": (lambda x: x.mean(dim=0) * (x[0] - x[1])[0].sign(), "neither"),
    "tanh with a sign from two rows": (lambda x: x.tanh() * (x[0] - x[-1])[0].sign(), "neither"),
    "the largest numbers with a sign from two rows": (lambda x: x.max(dim=0).values * (x[1] - x[3])[1].sign(), "neither"),
}
# A single permutation may commute with each of these.
_COMMUTING = ("the reversed sequence", "each row averaged with its two neighbours", "the middle row doubled")
# Their results depend on the order in the last digit.
_SUMS = ("attention", "each row minus the mean row", "the mean row", "the mean row of attention's output")
_ROUNDED = (
    "Your test is too strict. Adding the same numbers in a different order can change the last digit, so compare with "
    "torch.allclose."
)
_MEANS = "You compare sums or means over the rows, and these don't show where each row went. Compare the rows one by one."


def _kind(f: Layer) -> str:
    return next(kind for known, kind in _KINDS.values() if known is f)


def _among(f: Layer, *names: str) -> bool:
    return any(_KINDS[name][0] is f for name in names)


def _some_of(*names: str) -> Iterable[tuple[str, ...]]:
    """All combinations of these names: which functions an exact comparison misses depends on the numbers."""
    return itertools.chain.from_iterable(itertools.combinations(names, count) for count in range(1, len(names) + 1))


@exercise("is_equivariant")
def equivariance(seed: int) -> Exercise:
    """is_equivariant(f, x) -> bool, on functions of a sequence x of shape (5, 4)."""
    chosen = ("attention", "tanh of every number", "each row minus the mean row", "the running sum", "each column sorted",
              "the running sum in one column", *_COMMUTING)  # fmt: skip
    x = _sample(seed, 5, 4)

    fooled = (
        "Your test is fooled by a function that isn't equivariant. Perhaps f commutes with every permutation that you try, or "
        "only in the columns that you compare. Try several random permutations, and compare all the columns."
    )

    def right(f: Layer, _x: Tensor) -> bool:
        return _kind(f) == "equivariant"

    return Exercise(
        cases={name: (_KINDS[name][0], x) for name in chosen},
        right=right,
        mistakes={
            "invariance": (lambda f, _: _kind(f) == "invariant",
                "Your test looks for invariance: it checks whether f(Px) equals f(x). For equivariance, f(Px) must equal P "
                "f(x)."),
            "the inverse permutation": (lambda f, _: _among(f, "the reversed sequence"),
                "You reorder x by a permutation, but f(x) by the inverse. Use the same permutation for both."),
            **{f"taken in by {', '.join(names)}": (lambda f, x, names=names: right(f, x) or _among(f, *names), fooled)
               for names in _some_of(*_COMMUTING, "the running sum in one column")},
            **{f"sums, {len(names)}": (lambda f, x, names=names: right(f, x) or _among(f, "each column sorted", *names), _MEANS)
               for names in (_COMMUTING[:2], _COMMUTING)},
            **{f"{', '.join(names)}, to the last digit":
                   (lambda f, x, names=names: right(f, x) and not _among(f, *names), _ROUNDED)
               for names in _some_of("attention", "each row minus the mean row")},
        },
        praise="your test gives the right answer for all nine functions.",
    )  # fmt: skip


def _classified(f: Layer, x: Tensor, *orders: list[int]) -> str:
    """The kind of f as far as these orders can show it."""
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
        "You try too few orders of the rows, so some functions pass your test although they are neither equivariant nor "
        "invariant. Try several orders, including some that move every row."
    )

    one_column = (
        "One of the functions is equivariant in all columns except one, and your function misses this exception. Compare all "
        "the columns."
    )

    def right(f: Layer, _x: Tensor) -> str:
        return _kind(f)

    def calling(word: str, *names: str) -> Callable[[Layer, Tensor], str]:
        """The answers of a student whose test returns this word for the functions with these names."""
        return lambda f, _x: word if _among(f, *names) else _kind(f)

    keep_sums = [name for name, (_, kind) in _KINDS.items() if kind == "equivariant"]
    keep_sums += [
        "the reversed sequence",
        "each row replaced by the one before it",
        "each row averaged with its two neighbours",
    ]

    return Exercise(
        cases={name: (f, _sample(seed + number, 5, 4)) for number, (name, (f, _)) in enumerate(_KINDS.items())},
        right=right,
        mistakes={
            "exchanged": (lambda f, _: exchanged[_kind(f)],
                'You have swapped the two words "equivariant" and "invariant". An invariant result stays the same, and an '
                "equivariant one is reordered like x."),
            "by shape": (lambda f, x: "invariant" if f(x).ndim == 1 else "equivariant",
                "You decide by the shape of f(x). Reorder the rows of x instead, and look at what happens to f(x)."),
            "some columns": (calling("equivariant", "the running sum in one column"), one_column),
            "some columns, found the same": (calling("invariant", "the running sum in one column"), one_column),
            "means": (calling("equivariant", *keep_sums), _MEANS),
            "means, before the test of invariance": (calling("equivariant", *keep_sums, "each column sorted"), _MEANS),
            "means that stay the same": (calling("invariant", *keep_sums), _MEANS),
            **{f"{', '.join(names)}, to the last digit": (calling("neither", *names), _ROUNDED) for names in _some_of(*_SUMS)},
            "backwards only": (lambda f, x: _classified(f, x, [4, 3, 2, 1, 0]), one_order),
            "round a ring": (lambda f, x: _classified(f, x, *([*range(k, 5), *range(k)] for k in range(5))), one_order),
            "the two ends": (lambda f, x: _classified(f, x, [4, 1, 2, 3, 0]), one_order),
            "the first two rows": (lambda f, x: _classified(f, x, [1, 0, 2, 3, 4]), one_order),
        },
        praise=f"all {len(_KINDS)} functions are classified correctly, including those that return one row for the whole "
               "sequence.",
    )  # fmt: skip


@exercise()
def who_sees_whom(seed: int) -> Exercise:
    """who_sees_whom(f, x) -> (L, L) of True where row m of f(x) depends on token n, on layers and x of four to six rows."""

    def itself(length: int) -> Tensor:
        return torch.eye(length, dtype=torch.bool)

    def everyone(length: int) -> Tensor:
        return torch.ones(length, length, dtype=torch.bool)

    def before(length: int) -> Tensor:
        return itself(length).roll(1, dims=0)

    def window(length: int) -> Tensor:
        return _past(length) & ~_past(length).tril(-3)

    def half(x: Tensor) -> Tensor:
        return torch.cat((x[:, :2], x.roll(1, dims=0)[:, 2:]), dim=1)

    layers: dict[str, tuple[Layer, Callable[[int], Tensor]]] = {
        "attention": (_attention_layer, everyone),
        "causal attention": (_causal_layer, _past),
        "tanh of every number": (torch.tanh, itself),
        "each token replaced by the one before it": (lambda x: x.roll(1, dims=0), before),
        "attention to the last three tokens": (lambda x: attention(x, x, x, mask=window(len(x))), window),
        "each token plus the first one": (lambda x: x + x[:1], lambda length: itself(length) | (torch.arange(length) == 0)),
        "each token with two numbers of the one before it": (half, lambda length: itself(length) | before(length)),
        "each row minus its own mean": (lambda x: x - x.mean(dim=1, keepdim=True), itself),
        "only zeros": (torch.zeros_like, lambda length: ~everyone(length)),
    }
    truth = dict(layers.values())

    def looking(change: Callable[[Tensor], Tensor], see: slice = slice(None)) -> Callable[[Layer, Tensor], Tensor]:
        """The table of a student who changes a token in one way only, or compares only some numbers of a row."""

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
    x = _sample(seed, 6, 4)
    x[2] = 0
    return Exercise(
        cases={name: (f, x[: 6 - k % 3]) for k, (name, (f, _)) in enumerate(layers.items())},
        right=lambda f, x: truth[f](len(x)),
        mistakes={
            "a token set to zero": (looking(torch.zeros_like),
                "You set a token to zero, or you scale it. But one of the tokens is zero already: nothing changes."),
            "the same added to all numbers": (looking(lambda token: token + 1),
                "Your test misses some changes. That can happen if you add the same number to all numbers of a token, or if "
                "you compare only the sum of each row. Add a different amount to each number of the token, and compare every "
                "number of a row."),
            "one number changed or looked at": (looking(lambda token: token + first),
                "You change only one number of a token, or you compare only one number of each row. A layer may use only the "
                "other numbers, so change all numbers of the token, by different amounts, and compare all numbers of the row."),
            "all numbers changed": (lambda f, x: truth[f](len(x)) & (f is not half),
                "You require that every number of a row changes. But the row depends on the token if any of them does."),
            "the past": (but(lambda t: _past(len(t))),
                "You say that row m always depends on token m and all before it. Change x and call f again to see."),
            "never put back": (but(lambda t: t.cumsum(dim=1) > 0),
                "You leave each token changed while you test the next ones. Start from a fresh copy of x each time."),
        },
        praise=f"the tables for all {len(layers)} layers are right.",
    )  # fmt: skip


@exercise()
def orders_apart(seed: int) -> Exercise:
    """orders_apart(f, x) -> how many different results f gives over all orders of the three to five rows of x."""

    def last_of_two_causal(x: Tensor) -> Tensor:
        return _causal_layer(_causal_layer(x))[-1]

    layers: dict[str, Layer] = {
        "the mean row": lambda x: x.mean(dim=0),
        "one row of attention": lambda x: _attention_layer(x)[0],
        "the last row of causal attention": lambda x: _causal_layer(x)[-1],
        "the last row of two causal layers": last_of_two_causal,
        "all rows of attention": _attention_layer,
        "the first two rows": lambda x: x[:2],
    }
    x = _sample(seed, 5, 3)
    twins = ", with two equal rows"
    cases = {name: (f, x[:4]) for name, f in layers.items()} | {
        name + twins: (f, x[[0, 1, 2, 0]]) for name, f in layers.items()
    }
    cases |= {f"two causal layers on {rows} rows": (last_of_two_causal, x[:rows]) for rows in (3, 5)}

    def results(f: Layer, x: Tensor) -> list[Tensor]:
        return [f(x[list(order)]).flatten() for order in itertools.permutations(range(len(x)))]

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
            "the orders": (lambda f, x: math.factorial(len(x)),
                "You count the orders, or tensors in a set, which keeps equal ones apart. Count equal results once."),
            "to the last digit": (lambda f, x: len({tuple(result.tolist()) for result in results(f, x)}),
                "You count results as different even if they differ only in the last digit. Use torch.allclose, or round."),
            "not the first": (lambda f, x: unlike(found := results(f, x), itertools.repeat(found[0])),
                "You count the orders whose result differs from the first result. But several orders can share a result, and "
                "such a result should count only once."),
            "neighbours": (lambda f, x: 1 + unlike(found := results(f, x), found[1:]),
                "You compare each result only with the one before it. But an equal result may have come earlier."),
            "sums": (lambda f, x: different([result.sum()[None] for result in results(f, x)]),
                "You compare the sums of the results. Different results can have the same sum, so compare all their numbers."),
            "round a ring": (lambda f, x: different([f(x.roll(k, 0)).flatten() for k in range(len(x))]),
                "You try only the orders that shift all rows cyclically. itertools.permutations lists all orders."),
            **{f"{places} decimals": (lambda f, x, places=places: different([y.round(decimals=places) for y in results(f, x)]),
                "You round so coarsely that different results become equal. Keep about six decimals.") for places in (0, 1)},
        },
        praise="your counts are right. For the 24 orders of four different rows, a mean gives a single result, and two causal "
               "layers give 24 different ones.",
    )  # fmt: skip
