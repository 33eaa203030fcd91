"""Exercises on ALiBi: the bias from positions, what softmax ignores, a slope for a share, and attention beside a cache."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc_course.alibi import alibi_attention, alibi_bias, alibi_slopes
from posenc_course.checks._exercise import Call, Exercise, Sizes, exercise
from posenc_course.checks._sandbox import Wrong


def _steps(call: Call, q: Tensor, k: Tensor, num_heads: int) -> Tensor:
    """How much a head's bias grows per token from each key to the next, (heads, steps), for all keys that a query may look at.

    A number added to a whole row doesn't change this, and softmax ignores it, too.
    """
    full = (num_heads, len(q), len(k))
    try:
        table = call(q, k, num_heads, wanted=Sizes((None, None, None)))
    except Wrong as wrong:
        if " has shape " not in str(wrong):
            raise
        table = call(q, k, num_heads, wanted=Sizes((1, None, None, None)))[0]
    if any(size not in (1, wanted) for size, wanted in zip(table.shape, full, strict=True)):
        raise Wrong(
            f"my_bias has shape {tuple(table.shape)}, but it should be {full}, or 1 in places. Heads come first, then queries, "
            "then keys."
        )
    later = (k <= q[:, None])[:, 1:]  # where the query may look at the later of two neighbours
    return torch.as_tensor((table.expand(full).diff(dim=-1) / k.diff())[:, later])


@exercise("my_bias", instead_of=[alibi_bias])
def bias() -> Exercise:
    """my_bias(q_positions, k_positions, num_heads) -> what to add to the scores, broadcast to (num_heads, L_query, L_key).

    It is judged by how it changes from key to key, among the keys that a causal mask leaves.
    """
    cases = {
        name: (torch.tensor(queries), torch.tensor(keys), num_heads)
        for name, queries, keys, num_heads in (
            ("8 heads", range(12), range(12), 8),
            ("12 heads", range(12), range(12), 12),
            ("4 heads", range(12), range(12), 4),
            ("positions 5000 to 5011", range(5000, 5012), range(5000, 5012), 8),
            ("query 11 after keys 0 to 11", [11], range(12), 8),
            ("queries 9 to 11 after keys 0 to 11", [9, 10, 11], range(12), 8),
            ("query 12 after keys 0, 1, 2, 9, 10, 11, 12", [12], [0, 1, 2, 9, 10, 11, 12], 8),
        )
    }

    def of_slopes(slopes: Callable[[int], Tensor]) -> Callable[[Tensor, Tensor, int], Tensor]:
        return lambda q, k, num_heads: slopes(num_heads).double()[:, None, None] * (k - q[:, None])

    right = of_slopes(alibi_slopes)

    def same(known: Tensor, said: Tensor) -> bool:
        return known.shape == said.shape and torch.allclose(known, said, rtol=2e-3, atol=1e-6)

    def fault(said: Sequence[Tensor]) -> str | None:
        """What is wrong with the steps of the first case that isn't right."""
        wanted = [_steps(lambda *given, wanted, shown="", within=None: right(*given), *case) for case in cases.values()]
        wrong = [name for name, a, b in zip(cases, wanted, said, strict=True) if not same(a, b)]
        if not wrong:
            return None
        n = cases[wrong[0]][2]
        at = f"With {wrong[0] if 'heads' in wrong[0] else f'{n} heads and {wrong[0]}'}"
        want, steps = next((a, b) for name, a, b in zip(cases, wanted, said, strict=True) if name == wrong[0])
        head, step = (~torch.isclose(steps, want, rtol=2e-3, atol=1e-6)).nonzero()[0].tolist()
        extra = " Which slopes of 16 heads don't occur among those of 8 heads?" if n == 12 and head >= 8 else ""
        return (
            f"{at}, your bias in head {head + 1} (counted from 1) grows by {steps[head, step]:.4f} per token at a key, but it "
            f"should grow by {want[head, step]:.4f}.{extra}"
        )

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the formula": (of_slopes(lambda size: 2 ** (-8 * torch.arange(1, size + 1) / size)),
                "You use the formula in the text of the paper, which fits any number of heads. But for 12 heads, the authors' "
                "code begins with the slopes of 8 heads, and so do the models that were trained with it."),
            "by one": (of_slopes(lambda size: 2.0 ** -torch.arange(1, size + 1)),
                "Your exponents increase by 1 from head to head. The step should be 8 divided by the number of heads."),
            "the other sign": (lambda *case: -right(*case),
                "Your bias grows with the distance: the nearest key gets the smallest bias. Check the sign."),
            "places": (lambda q, k, num_heads: right(torch.arange(len(q)), torch.arange(len(k)), num_heads),
                "You use row numbers of the tensors as positions. But keys 2 and 9 are seven tokens apart, even if the keys "
                "between them have been removed from the cache. Use the positions that your function is given."),
        },
        praise="with 8 heads and with 12, after a cache and across a gap, your bias falls by the head's slope for each token "
               "of distance.",
        ask=_steps,
        same=same,
        fault=fault,
    )  # fmt: skip


@exercise()
def same_bias(seed: int) -> Exercise:
    """same_bias(a, b) -> whether two biases (L, L) give the same causal attention for all queries and keys."""
    generator = torch.Generator().manual_seed(seed)

    def sample(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    length = 6
    m = torch.arange(length, dtype=torch.float64)[:, None]
    n = m.T
    slope = 0.4 + seed % 5 / 5
    alibi = -slope * (m - n)
    of_row, of_column = 3 * sample(length, 1), 3 * sample(length)
    noise, future = sample(length, length), n > m

    def plus(size: float, query: int, key: int, bias: Tensor = alibi) -> tuple[Tensor, Tensor]:
        other = bias.clone()
        other[query, key] += size
        return bias, other

    faint = alibi.clone()
    faint[:, 0] = -50
    long = -slope * (torch.arange(40.0, dtype=torch.float64)[:, None] - torch.arange(40))
    # The biases are equal, or differ by a number per row, in the future (hidden from queries), or in what a query sees.
    same = {
        "the same bias twice": (alibi, alibi.clone()),
        "a number added to all entries": (alibi, alibi + 2.5),
        "a number added to each row": (noise, noise + of_row),
        "different numbers in the future": (alibi, torch.where(future, noise, alibi)),
        "a different number for the next key": plus(1.0, 2, 3),
        "minus infinity in the future": (alibi.masked_fill(future, -math.inf), alibi + of_row),
        "NaN in the future": (torch.where(future, math.nan, alibi), alibi),
        "a different number for the only key of the first query": plus(5.0, 0, 0, noise),
        "differences below 1e-5": (alibi, alibi + 2e-6 * noise.sign()),
        "a single token": (noise[:1, :1], of_row[:1]),
    }
    different = {
        "a number added to each column": (alibi, alibi + of_column),
        "a different sign": (alibi, -alibi),
        "a different number for the first key of the last query": plus(0.5, -1, 0),
        "a different number for the last query's own key": plus(0.5, -1, -1),
        "a different number in the middle": plus(0.5, 3, 2),
        "a query far back in a long text": plus(0.5, 37, 36, long),
        "a different number for a key with a tiny weight": (faint, plus(-20.0, 4, 0, faint)[1]),
        "0.001·n more in every row": (noise, noise + 0.001 * n),
        "1e-4 more for one key": plus(1e-4, 4, 3),
    }

    Same = Callable[[Tensor, Tensor], bool]

    def within(t: float, keys: Callable[[int], slice] = lambda m: slice(0, m + 1), queries: slice = slice(None)) -> Same:
        """Whether a - b varies by at most t over these keys of each of these queries."""

        def alike(a: Tensor, b: Tensor) -> bool:
            rows = [(a - b)[m, keys(m)] for m in range(len(a))[queries]]
            return all(float(row.max() - row.min()) <= t for row in rows if len(row))

        return alike

    def softmaxes(t: float) -> Same:
        def alike(a: Tensor, b: Tensor) -> bool:
            hidden = torch.ones_like(a).triu(1).bool()
            a, b = (x.masked_fill(hidden, -math.inf).softmax(1) for x in (a, b))
            return torch.allclose(a, b, rtol=t, atol=t / 100)

        return alike

    only_equal = (
        "You accept two biases only if their numbers are equal. But the softmax of a row doesn't change if you add a number to "
        "the whole row."
    )
    ahead = "You also compare the future. But a causal mask hides it, so its numbers don't matter."
    rows = (
        "You accept a number added to all entries, or to each column. But a softmax works along a row: it doesn't notice a "
        "number added to the whole row, which may be a different one for each row, and it does notice a number for a column."
    )
    some = (
        "You don't look at all keys of every query. But a different number for a single key that a query sees can change the "
        "attention."
    )
    known: dict[str, tuple[Callable[[float], Same], str]] = {
        "equal": (lambda t: lambda a, b: torch.allclose(a, b, rtol=0, atol=t), only_equal),
        "equal in the past": (lambda t: lambda a, b: torch.allclose(a.tril(), b.tril(), rtol=0, atol=t), only_equal),
        "the future too": (lambda t: within(t, lambda m: slice(None)), ahead),
        "one key too many": (lambda t: within(t, lambda m: slice(0, m + 2)), ahead),
        "weights": (lambda t: softmaxes(t),
            "You compare the weights for one choice of scores. But a weight of nearly 0 isn't 0: with a higher score, the key "
            "gets a noticeable weight. Compare the biases themselves."),
        "one number for all": (lambda t: lambda a, b: bool((a - b - (a - b)[0, 0]).tril().abs().max() <= t), rows),
        "whole columns": (lambda t: lambda a, b: within(t, lambda m: slice(None))(a.mT, b.mT), rows),
        "the last query": (lambda t: within(t, queries=slice(-1, None)), some),
        "not the last query": (lambda t: within(t, queries=slice(0, -1)), some),
        "not the own key": (lambda t: within(t, lambda m: slice(0, m)), some),
        "not the first key": (lambda t: within(t, lambda m: slice(1, m + 1)), some),
    }  # fmt: skip
    return Exercise(
        cases={**same, **different},
        right=within(1e-5),
        mistakes={
            **{f"within {t:g}": (within(t),
                "Your tolerance is too small or too large. Numbers that differ by less than 1e-5 count as equal, because "
                "rounding can cause such differences, but 1e-4 is a real difference.")
               for t in (0, 1e-12, 1e-6, 1e-3, 0.1, 1)},
            **{f"{name}, to {t:g}": (make(t), hint) for name, (make, hint) in known.items() for t in (8e-6, 1e-7, 1e-12)},
        },
        praise=f"all {len(same) + len(different)} pairs are right, including the {len(same)} pairs that are equivalent "
               "although most of them don't look like it.",
    )  # fmt: skip


def _share(slope: float, keys: int, length: int) -> float:
    """The share of the attention that the nearest keys get, by addition."""
    weights = (-slope * torch.arange(length, dtype=torch.float64)).softmax(dim=0)
    return float(weights[:keys].sum())


def _halved(held: Callable[[float], float], share: float) -> float:
    low, high = 0.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) < share else (low, middle)
    return low


@exercise()
def slope_for(seed: int) -> Exercise:
    """slope_for(keys, share, length) -> the slope with which the nearest keys get this share, in a text of this length.

    It is judged by the share that they get, added up from a softmax.
    """
    generator = random.Random(seed)
    cases = {
        "half of the keys": (6, 0.75, 12),
        "one of two keys": (1, 0.75, 2),
        "the steepest head": (1, 0.95, 50),
        "all keys but the farthest": (7, 0.97, 8),
        "the flattest head": (590, 0.9, 2048),
        "a little more than an even share": (100, 0.35, 400),
    }
    for number in range(4):
        # Short enough that the end of the text matters: the formula for an endless text is off by at least a hundredth.
        keys = generator.randrange(5, 40)
        length = keys * generator.randrange(2, 4) + generator.randrange(4)
        even = keys / length
        cases[f"a short text, {number + 1}"] = (keys, round(even + (1 - even) * generator.uniform(0.2, 0.5), 2), length)

    def right(keys: int, share: float, length: int) -> float:
        return _halved(lambda s: _share(s, keys, length), share)

    def same(known: float, said: float) -> bool:
        return math.isclose(known, said, rel_tol=0.01, abs_tol=1e-6)

    def fault(said: Sequence[float]) -> str | None:
        """The share that the nearest keys get with the first wrong slope, and what all slopes have in common."""
        trials = list(zip(said, cases.values(), strict=True))
        held = [_share(slope, keys, length) for slope, (keys, _, length) in trials]
        wrong = [i for i, (has, (_, (_, share, _))) in enumerate(zip(held, trials, strict=True)) if abs(has - share) > 1e-3]
        if not wrong:
            return None
        for name, less, more in (("keys - 1", -1, 0), ("keys + 1", 1, 0), ("length - 1", 0, -1), ("length + 1", 0, 1)):
            inner = [(slope, case) for slope, case in trials if 1 < case[0] < case[2] - 1]
            if all(abs(_share(slope, keys + less, length + more) - share) < 1e-3 for slope, (keys, share, length) in inner):
                return (
                    f"You are off by one: your slopes would be right for {name}. The query's own key, at distance 0, is the "
                    "first of the nearest keys."
                )
        name, (keys, share, length) = list(cases.items())[wrong[0]]
        return (
            f"slope_for({keys}, {share:g}, {length}), for {name}, gives {said[wrong[0]]:.6g}. With this slope, the share of "
            f"the nearest keys is {held[wrong[0]]:.4f}, but it should be {share:g}. A slope can be from 1/256 to 3."
        )

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "endless": (lambda keys, share, length: -math.log(1 - share) / keys,
                "You use the formula for an endless text. But in a short text, the distant keys that this formula counts don't "
                "exist, so the nearest keys get too large a share."),
            "of twice the keys": (lambda keys, share, length: math.log(share / (1 - share)) / keys,
                "You use the formula for a text with twice as many tokens as `keys`. But it can have any number."),
            "base 2": (lambda *case: right(*case) / math.log(2), "You use base 2, but the softmax uses powers of e."),
            "below 0": (lambda *case: -right(*case), "Your slopes have the wrong sign, so the farthest keys get the share."),
            "the rest": (lambda keys, share, length: _halved(lambda s: _share(s, keys, length), 1 - share),
                "With your slopes, all the other keys together get the share that the nearest keys should get."),
        },
        praise=lambda said: (
            f"in all {len(said)} heads, the nearest keys get the right share. For 590 of 2,048 keys to get 90 %, the slope is "
            f"1/{1 / said[list(cases).index('the flattest head')]:.0f}."
        ),
        same=same,
        fault=fault,
    )  # fmt: skip


def _attend(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    slopes: Tensor,
    real: Tensor,
    *,
    positions: Callable[[Tensor], Tensor] = lambda real: real.long().cumsum(dim=0) - 1,
    first: Callable[[Tensor, int], int] = lambda at, new: int(at[-new]),
    mask: Callable[[int, Tensor], Tensor] = lambda new, real: torch.ones(new, len(real)).tril(len(real) - new).bool() & real,
    signed: bool = True,
    divide: Callable[[Tensor, Tensor, int], Tensor] = lambda scores, bias, d: scores / math.sqrt(d) + bias,
    hide: Callable[[Tensor, Tensor], Tensor] = lambda scores, seen: scores.masked_fill(~seen, -math.inf).softmax(-1),
) -> Tensor:
    """Attention with ALiBi, or the same with one thing done differently."""
    new, at = q.shape[1], positions(real)
    asks = at[-new:] - at[-new] + first(at, new)
    distance = (asks[:, None] - at).double()
    bias = -slopes[:, None, None] * (distance if signed else distance.abs())
    return hide(divide(q @ keys.mT, bias, q.shape[2]), mask(new, real)) @ values


@exercise(instead_of=[alibi_attention])
def attend(seed: int) -> Exercise:
    """attend(q, keys, values, slopes, real) -> (heads, new, d), causal attention with ALiBi beside a cache with padding.

    q (heads, new, d) belongs to the last tokens, keys and values (heads, all, d) belong to all tokens, and real (all,) is False
    for padding.
    """
    generator = random.Random(seed)

    def case(real: list[int], new: int, heads: int = 4, d: int = 8) -> tuple[Tensor, ...]:
        def sample(rows: int, size: float) -> Tensor:
            torch_generator = torch.Generator().manual_seed(generator.randrange(10**6))
            return size * torch.randn(heads, rows, d, dtype=torch.float64, generator=torch_generator)

        slopes = torch.tensor([generator.uniform(0.05, 1) for _ in range(heads)], dtype=torch.float64)
        return sample(new, 1.5), sample(len(real), 1.5), sample(len(real), 1.0), slopes, torch.tensor(real, dtype=torch.bool)

    gap = generator.randrange(2, 5)
    cases = {
        "a prompt": case([1] * 7, 7),
        "a single token after a cache": case([1] * 9, 1),
        "three tokens after a cache": case([1] * 8, 3),
        "padding in front": case([0] * gap + [1] * 5, 1),
        "padding between prompt and answer": case([1] * 4 + [0] * gap + [1] * 3, 1),
        "padding in front and in between": case([0, 0, 1, 1, 1, 0, 1, 1, 1], 3),
        "heads with a different width": case([1, 1, 0, 1, 1, 1], 2, heads=3, d=4),
        "a cache of 300 tokens": case([1] * 280 + [0] * 20 + [1] * 3, 2, heads=2, d=4),
    }

    def but(**changes: Any) -> Callable[..., Tensor]:
        return lambda *given: _attend(*given, **changes)

    def unpadded(new: int, real: Tensor) -> Tensor:
        return torch.ones(new, len(real)).tril(len(real) - new).bool()

    masks: dict[str, Callable[[int, Tensor], Tensor]] = {
        "open": lambda new, real: real.expand(new, -1),
        "from the left": lambda new, real: torch.ones(new, len(real)).tril().bool() & real,
    }
    divisions: tuple[Callable[[Tensor, Tensor, int], Tensor], ...] = (
        lambda scores, bias, d: (scores + bias) / math.sqrt(d),
        lambda scores, bias, d: scores + bias,
        lambda scores, bias, d: scores / d + bias,
    )

    def same(known: Tensor, said: Tensor) -> bool:
        # If a mask leaves a query no key, its row is 0/0, both in the answer and in the mistake that it is compared with.
        return torch.allclose(known, said, rtol=1e-3, atol=1e-3, equal_nan=True)

    rows = "You use row numbers as positions. But row 0 of q isn't token 0 of the text; it is the first new token."
    hidden = "A key that isn't seen needs the score minus infinity before the softmax, so that all weights add up to 1."
    return Exercise(
        cases=cases,
        right=_attend,
        mistakes={
            "padding counts": (but(positions=lambda real: torch.arange(len(real))),
                "You're right without padding. But you count padding between two words as distance."),
            "padding is seen": (but(mask=unpadded),
                "Your distances are right, but your queries still look at padding. The mask has to use `real`, too."),
            **{f"{name}, {signed}": (but(mask=mask, signed=signed),
                "Your mask is wrong. A new token sees all words of the cache and the new tokens up to itself, and none of "
                "those after it.") for name, mask in masks.items() for signed in (True, False)},
            "rows": (but(first=lambda at, new: 0, signed=False), rows),
            "rows and places": (
                but(first=lambda at, new: 0, positions=lambda real: torch.arange(len(real)), signed=False), rows),
            **{f"division {n}": (but(divide=divide),
                "Divide the scores q·k by √d once, with the width d of q, and don't divide the bias.")
               for n, divide in enumerate(divisions)},
            "hidden after the softmax": (but(hide=lambda scores, seen: scores.softmax(-1) * seen), hidden),
            "hidden at 0": (but(hide=lambda scores, seen: (scores * seen).softmax(-1)), hidden),
        },
        praise="for one new token and for several, after a cache, with padding before the words and between them, the result "
               "is the same as without padding.",
        same=same,
    )  # fmt: skip
