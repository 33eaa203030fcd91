"""Exercises of chapter 01: a test that tells who sees order, and the assignment on what a layer can see."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.attention import attention
from posenc_course.checks._verdict import Wrong, answer, as_truth, check, compare

_FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "attention": (lambda x: attention(x, x, x), True),
    "tanh of every number": (torch.tanh, True),
    "each row minus the mean row": (lambda x: x - x.mean(dim=0), True),
    "the running sum": (lambda x: x.cumsum(dim=0), False),
    "the sequence backwards": (lambda x: x.flip(0), False),
    "each column sorted": (lambda x: x.sort(dim=0).values, False),
}


def _draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@check()
def equivariance(is_equivariant: Callable[[Callable[[Tensor], Tensor], Tensor], Any], *, seed: int) -> str:
    """Try is_equivariant(f, x) -> bool on six functions of a sequence x of shape (5, 4), and say what it got wrong.

    Chapter 01.
    """
    x = _draw(seed, 5, 4)
    verdicts = {}
    for name, (f, _) in _FUNCTIONS.items():
        call = f"is_equivariant({name}, x)"
        verdicts[name] = as_truth(answer(is_equivariant, f, x.clone(), call=call), call=call)
    missed = [name for name, (_, truth) in _FUNCTIONS.items() if verdicts[name] != truth]
    if not missed:
        return "Right: your test sorts all six functions."
    if verdicts == {name: name == "each column sorted" for name in _FUNCTIONS}:
        raise Wrong("Your test looks for invariance: it wants f(Px) to equal f(x), where equivariance wants P f(x).")
    if all(verdicts.values()):
        raise Wrong("Your test calls all six equivariant: does it really reorder the rows of x?")
    if not any(verdicts.values()):
        raise Wrong(
            "Your test calls nothing equivariant, not even tanh: reorder the output by the same permutation, "
            "and compare with torch.allclose, since sums in another order differ in the last digit."
        )
    if set(missed) <= {"the sequence backwards"}:
        raise Wrong(
            "Your test is taken in by the reversed sequence: a permutation that commutes with reversal cannot catch it. "
            "Draw one at random, or try several."
        )
    if set(missed) <= {"attention", "each row minus the mean row"}:
        raise Wrong("Your test is too strict: sums in another order differ in the last digit, so compare with torch.allclose.")
    raise Wrong(f"Your test is wrong about: {', '.join(missed)}.")


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check()
def permutation(permutation_matrix: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try permutation_matrix(order) -> P of shape (L, L) with P @ x equal to x[order], for 3 to 7 tokens. Chapter 01."""
    generator = torch.Generator().manual_seed(seed)
    # A cycle of three tokens or more: an order that is its own inverse would hide the commonest mistake.
    cycle = torch.tensor([1, 2, 0])
    cases = [(cycle,), *((torch.randperm(length, generator=generator),) for length in (4, 5, 6, 7))]

    def right(order: Tensor) -> Tensor:
        return torch.eye(len(order))[order]

    mistakes = [
        (lambda order: right(order).T,
         "Your P is the transpose: it undoes the order. Row r of P @ x should be token order[r], so where in row r is the 1?"),
        (lambda order: torch.eye(len(order)), "Your P is the identity: it leaves every token where it was."),
        (lambda order: right(order).flip(0), "Your rows are in reverse: row 0 of P picks the token that comes first."),
    ]  # fmt: skip
    return compare(
        permutation_matrix, cases, right, mistakes, name="permutation_matrix", praise="P @ x is x[order] for all five orders."
    )


def _mean(x: Tensor) -> Tensor:
    return x.mean(dim=0)


def _attention_layer(x: Tensor) -> Tensor:
    return attention(x, x, x)


def _causal_layer(x: Tensor) -> Tensor:
    return attention(x, x, x, mask=_past(len(x)))


def _past(length: int) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


_KINDS: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "attention": (_attention_layer, "equivariant"),
    "tanh": (torch.tanh, "equivariant"),
    "each row minus the mean row": (lambda x: x - x.mean(dim=0), "equivariant"),
    "the mean row": (_mean, "invariant"),
    "the largest of each column": (lambda x: x.max(dim=0).values, "invariant"),
    "the mean row of attention": (lambda x: _mean(_attention_layer(x)), "invariant"),
    "causal attention": (_causal_layer, "neither"),
    "the running sum": (lambda x: x.cumsum(dim=0), "neither"),
    "the last row": (lambda x: x[-1], "neither"),
    # Turning the sequence round, or moving it on in a ring, changes nothing here: other orders do.
    "the mean of both neighbours": (lambda x: (x + x.roll(1, 0) + x.roll(-1, 0)) / 3, "neither"),
}
_SUMS = {"attention", "each row minus the mean row", "the mean row", "the mean row of attention"}  # rounded by their order


@check()
def kind(my_kind: Callable[[Callable[[Tensor], Tensor], Tensor], Any], *, seed: int) -> str:
    """Try my_kind(f, x) -> "equivariant", "invariant" or "neither" on ten functions of x of shape (5, 4). Chapter 01."""
    said = {}
    for number, (name, (f, _)) in enumerate(_KINDS.items()):
        said[name] = answer(my_kind, f, _draw(seed + number, 5, 4), call=f"kind({name}, x)")
        if said[name] not in ("equivariant", "invariant", "neither"):
            raise Wrong(f'kind({name}, x) returned {said[name]!r}, it should be "equivariant", "invariant" or "neither".')
    missed = {name: word for name, word in said.items() if word != _KINDS[name][1]}
    if not missed:
        return "Right: all ten functions, also those that give one row for the whole sequence."
    if len(set(said.values())) == 1:
        raise Wrong(
            f'You call all ten "{said["tanh"]}": does x come to f in another order, and is the result compared with '
            "torch.allclose?"
        )
    if all({word, _KINDS[name][1]} == {"equivariant", "invariant"} for name, word in missed.items()) and len(missed) == 6:
        raise Wrong(
            "The two words have changed places: an invariant result stays the same, an equivariant one is reordered too."
        )
    if all(
        word == ("invariant" if f(_draw(0, 5, 4)).ndim == 1 else "equivariant")
        for word, f in zip(said.values(), (f for f, _ in _KINDS.values()), strict=True)
    ):
        raise Wrong("You judge by the shape of f(x): reorder the rows of x, and look what becomes of it.")
    for word, hint in (
        ("invariant", "some functions give one row for the whole sequence, and it has no rows to reorder."),
        ("equivariant", "reorder the output by the same order before you compare."),
    ):
        of_this_kind = {name for name, (_, kind) in _KINDS.items() if kind == word}
        if set(missed) == of_this_kind:
            raise Wrong(f'You find no function "{word}": {hint}')
    if set(missed) <= _SUMS and set(missed.values()) == {"neither"}:
        raise Wrong("Too strict: sums in another order differ in the last digit, so compare with torch.allclose.")
    if set(missed) <= {name for name, (_, kind) in _KINDS.items() if kind == "neither"}:
        raise Wrong(
            f"You are taken in by {' and '.join(missed)}: one order can happen to change nothing there. Reorder all of the "
            "rows, or try several orders."
        )
    name, word = next(iter(missed.items()))
    raise Wrong(f'kind({name}, x) gives "{word}", and should give "{_KINDS[name][1]}".')


@check()
def who_sees_whom(my_table: Callable[[Callable[[Tensor], Tensor], Tensor], Any], *, seed: int) -> str:
    """Try my_table(f, x) -> (L, L) of True where row m of f(x) depends on token n, on eight layers and x of shape (6, 4).

    Chapter 01.
    """
    everyone, itself = torch.ones(6, 6, dtype=torch.bool), torch.eye(6, dtype=torch.bool)
    window = _past(6) & ~_past(6).tril(-3)

    def token_before(x: Tensor) -> Tensor:
        return x.roll(1, dims=0)

    def window_of_three(x: Tensor) -> Tensor:
        return attention(x, x, x, mask=window)

    def plus_the_first(x: Tensor) -> Tensor:
        return x + x[:1]

    def half_of_the_token_before(x: Tensor) -> Tensor:
        return torch.cat((x[:, :2], x.roll(1, dims=0)[:, 2:]), dim=1)

    def row_minus_its_mean(x: Tensor) -> Tensor:
        return x - x.mean(dim=1, keepdim=True)

    def looking(f: Callable[[Tensor], Tensor], x: Tensor, change: Callable[[Tensor], Tensor], see: slice) -> Tensor:
        """What they find who change a token in one way only, or look at some numbers of a row only."""
        columns = []
        for n in range(6):
            changed = x.clone()
            changed[n] = change(x[n])
            columns.append(~torch.isclose(f(changed), f(x))[:, see].all(dim=1))
        return torch.stack(columns, dim=1)

    def by(change: Callable[[Tensor], Tensor], see: slice = slice(None)) -> Callable[[Any, Tensor], Tensor]:
        return lambda f, x: looking(f, x, change, see)

    first = torch.tensor([1.0, 0.0, 0.0, 0.0])
    other = torch.tensor([1.0, 2.5, -1.5, 0.5])
    truth: dict[Callable[[Tensor], Tensor], Tensor] = {
        _attention_layer: everyone,
        _causal_layer: _past(6),
        torch.tanh: itself,
        token_before: itself.roll(1, dims=0),
        window_of_three: window,
        plus_the_first: itself | (torch.arange(6) == 0),
        half_of_the_token_before: itself | itself.roll(1, dims=0),
        row_minus_its_mean: itself,
    }

    def but(change: Callable[[Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
        return lambda f, _x: change(truth[f])

    mistakes = [
        (by(torch.zeros_like), "To set a token to zero changes nothing if it is zero already, as one of these is."),
        (by(lambda token: token + 1), "To add the same to all numbers of a token can go unseen: change them differently."),
        (by(lambda token: token + first), "You change one number of a token: a layer may pass others on. Change all of them."),
        (by(lambda token: token + other, slice(1)), "You look at one number of a row: others may have changed. Look at all."),
        (but(lambda t: t.T), "Your table is transposed: rows are outputs m, columns the tokens n that they depend on."),
        (but(lambda t: t & ~itself), "A token never depends on itself for you: what does changing token n do to row n?"),
        (but(lambda t: t | itself), "Every token depends on itself for you: token_before makes row m of token m - 1 alone."),
        (but(lambda t: everyone), "Everything depends on everything for you: compare row m alone, with torch.allclose."),
        (but(lambda t: _past(6)), "You say that every layer looks at the past and at itself: ask f, by changing x."),
        (but(lambda t: ~t), "The table says where nothing changes: True should stand where something does."),
        (but(lambda t: ~everyone), "Nothing depends on anything for you: has x changed before f sees it, in a copy?"),
        (but(lambda t: t.any(dim=1, keepdim=True) & everyone), "You look whether row m changes, and not by which token."),
        (but(lambda t: t.any(dim=0, keepdim=True) & everyone), "You look whether token n changes anything, and not which row."),
    ]
    x = _draw(seed, 6, 4)
    x[2] = 0
    cases = [(f, x) for f in truth]
    return compare(my_table, cases, lambda f, _x: truth[f], mistakes, name="who_sees_whom", praise="all eight layers.")


@check()
def orders_apart(my_count: Callable[[Callable[[Tensor], Tensor], Tensor], Any], *, seed: int) -> str:
    """Try my_count(f, x) -> how many different results f gives over all orders of the rows of x, for x of shape (4, 3).

    Chapter 01.
    """

    def first_of_attention(x: Tensor) -> Tensor:
        return _attention_layer(x)[0]

    def last_of_causal(x: Tensor) -> Tensor:
        return _causal_layer(x)[-1]

    def last_of_two_causal(x: Tensor) -> Tensor:
        return _causal_layer(_causal_layer(x))[-1]

    # By hand, with four different tokens and with two equal ones. A mean has forgotten the order; one row of attention knows
    # its own token, and the others as a bag; a second causal layer tells all orders apart.
    known: dict[Callable[[Tensor], Tensor], tuple[int, int]] = {
        _mean: (1, 1),
        first_of_attention: (4, 3),
        last_of_causal: (4, 3),
        last_of_two_causal: (24, 12),
        _attention_layer: (24, 12),
    }

    def right(f: Callable[[Tensor], Tensor], x: Tensor) -> int:
        return known[f][len(x) - len(x.unique(dim=0))]

    def to_the_last_digit(f: Callable[[Tensor], Tensor], x: Tensor) -> int:
        return len({tuple(f(x[list(order)]).flatten().tolist()) for order in itertools.permutations(range(len(x)))})

    mistakes = [
        (lambda f, x: 24, "You count the orders: count their results, and equal ones once."),
        (to_the_last_digit, "Results that differ in the last digit only are the same: compare with torch.allclose, or round."),
        (lambda f, x: known[f][0], "With two equal tokens you count too many: to exchange twins changes nothing."),
        (lambda f, x: right(f, x) - 1, "One too few: the result of the order as it was given counts as well."),
    ]
    x = _draw(seed, 4, 3)
    cases = [(f, rows) for f in known for rows in (x, x[[0, 1, 2, 0]])]
    praise = "from a mean, which forgets all 24 orders, to two causal layers, which tell them all apart."
    return compare(my_count, cases, right, mistakes, name="orders_apart", praise=praise)
