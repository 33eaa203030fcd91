"""Exercises on ALiBi: the bias from positions, slopes, what a softmax forgets, and attention beside a cache with padding."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from posenc_course.alibi import alibi_attention, alibi_bias, alibi_slopes
from posenc_course.checks._exercise import Call, Exercise, exercise
from posenc_course.checks._sandbox import Wrong

Slope = Callable[[int, int], float]  # head, number of heads -> slope

# ── the slopes of the authors' code, and what others take for them ───────────────────────────────────────────────────────


def _slope(head: int, size: int) -> float:
    return float(alibi_slopes(size)[head])


def _power(size: int) -> int:
    """The largest power of two that is not more."""
    return 1 << (size.bit_length() - 1)


def _listed(
    rest: Callable[[int, int], float],
    first: Callable[[int, int], float] = lambda h, p: 8 * (h + 1) / p,
    power: Callable[[int], int] = _power,
) -> Slope:
    """2 to the minus first(head, power), or rest(head among the additional ones, power)."""

    def slope(head: int, size: int) -> float:
        p = power(size)
        return float(2.0 ** -(first(head, p) if head < p else rest(head - p, p)))

    return slope


def _between(j: int, p: int) -> float:
    return 4 * (2 * j + 1) / p


_SLOPES: dict[str, tuple[Slope, str]] = {
    "the formula": (lambda head, size: 2 ** (-8 * (head + 1) / size),
        "This is the formula of the paper's text, whose ratio fits any number of heads. For 12 heads its code, and so the "
        "models trained with it, begin with the slopes of 8."),
    "the formula from 0": (lambda head, size: 2 ** (-8 * head / size),
        "Your first slope is 1: the h of the formula begins with 1. And for 12 heads the authors' code doesn't use it."),
    "from 0": (_listed(lambda j, p: 8 * j / p, lambda h, p: 8 * h / p),
        "Your first slope is 1, and all are one step of the sequence too steep: are the heads counted from 0? The h of the "
        "formula begins with 1."),
    "the first from 0": (_listed(_between, lambda h, p: 8 * h / p),
        "Your first slope is 1, and those of a power of two are one step too steep: are the heads counted from 0?"),
    "sorted": (lambda head, size: float(alibi_slopes(size).sort(descending=True).values[head]),
        "The slopes are right, but sorted. A stored model has its heads in the order of the code: the additional ones last."),
    "additional first": (lambda head, size: float(alibi_slopes(size).roll(size - _power(size))[head]),
        "The additional slopes come first for you: they come last."),
    "additional backwards": (_listed(lambda j, p: 8 - 4 * (2 * j + 1) / p),
        "Your additional slopes begin at the flat end: they begin with the steepest."),
    "of the larger power": (lambda head, size: 2 ** (-8 * (head + 1) / (1 << (size - 1).bit_length())),
        "For 12 heads these are the first slopes of 16. The code begins with all of the next smaller power of two."),
    "the smaller power of 8": (_listed(_between, power=lambda size: _power(max(size - 1, 1))),
        "A number of heads that is itself a power of two needs no additional slopes: yours begin with those of half as many."),
    "not every other": (_listed(lambda j, p: 4 * (j + 1) / p),
        "The first 8 of 12 are right. Of the slopes of 16 you take one after the other: every other one is there already."),
    "repeated": (_listed(lambda j, p: 8 * (j + 1) / p),
        "The additional slopes repeat the first ones, but no two heads have the same: which of 16 heads' are new?"),
    "running on": (_listed(lambda j, p: 8 * (p + j + 1) / p),
        "With 12 heads these are the slopes of 8, continued: the additional ones lie between the first ones."),
    "counted among all": (_listed(lambda j, p: 4 * (2 * (j + p) + 1) / p),
        "The additional head counts among all heads for you: of 12 heads, head 8 is the first of the additional ones."),
    "one per head": (_listed(_between, lambda h, p: h + 1.0),
        "The exponents go up by 1 from head to head for you: by how much depends on the number of heads, 8 divided by it."),
    "one per head, all": (lambda head, size: 2.0 ** -(head + 1),
        "The exponents go up by 1 from head to head for you: by how much depends on the number of heads, 8 divided by it."),
    "not divided": (lambda head, size: 2.0 ** (-8 * (head + 1)), "The exponent is not divided by the number of heads."),
    "whole exponents": (_listed(lambda j, p: 4 * (2 * j + 1) // p, lambda h, p: 8 * (h + 1) // p),
        "Your exponents are rounded down to whole numbers: / divides, and // rounds."),
    "no minus": (lambda head, size: 1 / _slope(head, size), "The exponent lacks its minus: a slope is below 1."),
    "backwards": (lambda head, size: _slope(size - 1 - head, size),
        "The heads are in reverse: head 0 has the first slope, for a power of two the steepest."),
    "base e": (lambda head, size: math.exp(math.log2(_slope(head, size))), "The base is e, and should be 2."),
    "the formula to the base e": (lambda head, size: math.exp(-8 * (head + 1) / size),
        "The base is e, and should be 2. And for 12 heads the authors' code is not the formula of the paper's text."),
}  # fmt: skip


# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _steps(call: Call, q: Tensor, k: Tensor, num_heads: int) -> Tensor:
    """What a head's bias gains per token from each key to the next, (heads, steps): all pairs that some query may look at.

    So a number added to a whole row, which softmax forgets, makes no difference.
    """
    full = (num_heads, len(q), len(k))
    narrow = [(num_heads, *rest) for rest in itertools.product((len(q), 1), (len(k), 1))]
    refusal = ""
    for shape in (*narrow, *((1, *each) for each in narrow)):
        try:
            table = call(q, k, num_heads, wanted=torch.empty(shape)).reshape(shape[-3:]).expand(full)
        except Wrong as wrong:
            if " has shape " not in str(wrong):
                raise
            refusal = refusal or f"{wrong} Heads come first, then queries, then keys; each head has a slope of its own."
        else:
            later = (k <= q[:, None])[:, 1:]  # where the later one of two neighbours may be looked at
            return torch.as_tensor((table.diff(dim=-1) / k.diff())[:, later])
    raise Wrong(refusal)


def _of_positions(slope: Slope) -> Callable[[Tensor, Tensor, int], Tensor]:
    """The bias with these slopes."""

    def bias(q: Tensor, k: Tensor, num_heads: int) -> Tensor:
        slopes = torch.tensor([slope(head, num_heads) for head in range(num_heads)], dtype=torch.float64)
        return slopes[:, None, None] * (k - q[:, None])

    return bias


@exercise("my_bias", instead_of=[alibi_bias])
def bias() -> Exercise:
    """my_bias(q_positions, k_positions, num_heads) -> what to add to the scores, broadcast to (num_heads, L_query, L_key).

    Judged by how it changes from key to key among those that a causal mask leaves.
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
    right = _of_positions(_slope)

    def same(known: Tensor, said: Tensor, tolerance: float = 2e-3) -> bool:
        return known.shape == said.shape and torch.allclose(known, said, rtol=tolerance, atol=1e-6)

    def fault(said: Sequence[Tensor]) -> str | None:
        """What is wrong with the steps of the first case that goes wrong."""
        wanted = [_steps(lambda *given, wanted, shown="": right(*given), *case) for case in cases.values()]
        wrong = [name for name, a, b in zip(cases, wanted, said, strict=True) if not same(a, b)]
        off = [name for name, a, b in zip(cases, wanted, said, strict=True) if not same(a, b, 0.2)]
        if not wrong:
            return None
        if off == ["positions 5000 to 5011"]:
            return (
                "From position 0 on it is right, or nearly, and wrong from 5000 on, where the distances are the same. Are "
                "numbers rounded in half precision?"
            )
        if all("after" in name for name in wrong):
            return f"A whole text is right, and not: {'; '.join(wrong)}. Does the distance come from the positions?"
        n = cases[wrong[0]][2]
        at = f"In my_bias with {wrong[0] if 'heads' in wrong[0] else f'{n} heads, {wrong[0]}'}"
        want, steps = next((a, b) for name, a, b in zip(cases, wanted, said, strict=True) if name == wrong[0])
        slopes = steps.mean(dim=1)
        if not steps.isfinite().all():
            return f"{at}, there is NaN or infinity where a query may look."
        if not steps.any():
            return f"{at}, the bias is the same for all keys: then it says nothing about position."
        if not same(slopes[:, None].expand_as(steps), steps, 0.02):
            bent = int((steps.amax(dim=1) / steps.amin(dim=1) - 1).abs().argmax())
            return (
                f"The bias is no straight line: in head {bent + 1} of {n}, one token nearer adds between "
                f"{steps[bent].min():.4f} and {steps[bent].max():.4f}. It is slope times distance; the "
                "exponential comes with the softmax, later."
            )
        if same(slopes[:1].expand_as(slopes), slopes):
            return f"All heads have the same slope, {slopes[0]:.4f}: each has its own."
        head = int((~torch.isclose(slopes, want[:, 0], rtol=2e-3, atol=1e-6)).int().argmax())
        return (
            f"{at}, head {head + 1} (counted from 1) gains {slopes[head]:.4f} per token towards the query, it should be "
            f"{want[head, 0]:.4f}."
        )

    def of_places(distance: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, int], Tensor]:
        """The bias where the distance is one of places in the tensors."""
        return lambda q, k, n: -alibi_slopes(n)[:, None, None] * distance(torch.arange(len(q))[:, None], torch.arange(len(k)))

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            **{name: (_of_positions(slope), hint) for name, (slope, hint) in _SLOPES.items()},
            "the other sign": (_of_positions(lambda head, size: -_slope(head, size)),
                "It grows with the distance: the nearest key gets the least, and the first one of the text the most. A sign?"),
            "rows and columns": (of_places(lambda m, n: (m - n).abs()),
                "With a query after a cache the nearest key gets the least: the query is in row 0 of the tensor, but it is "
                "token 11. Its position is given to you."),
            "places": (of_places(lambda m, n: m - n),
                "From key 2 to key 9 are seven tokens, though those between them were dropped from the cache. Yours counts "
                "places in the tensor: take the distance from the positions."),
        },
        praise="with 8 and with 12 heads, near and far, with a cache and across a gap, a key loses its head's slope per token.",
        ask=_steps,
        same=same,
        fault=fault,
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@exercise(instead_of=[alibi_slopes])
def slope(seed: int) -> Exercise:
    """slope(head, num_heads) -> the slope of one head, counted from 0, as the authors' code has it."""
    sizes = [8, 12, 1, 2, 3, 16, 112, 200, 5, random.Random(seed).choice([20, 24, 40, 56, 71])]

    def kind(head: int, size: int) -> str:
        return "a power of two" if size == _power(size) else "one of the first" if head < _power(size) else "an additional one"

    return Exercise(
        cases={
            f"head {head} of {size}, {kind(head, size)}": (head, size)
            for size in sizes
            for head in sorted({0, 1, size // 2, 3 * size // 4, size - 1})
            if head < size
        },
        right=_slope,
        mistakes={
            **_SLOPES,
            "negative": (lambda head, size: -_slope(head, size),
                "A slope is a positive number; the minus belongs into the bias."),
            "exponent": (lambda head, size: math.log2(_slope(head, size)), "This is the exponent: the slope is 2 to it."),
            "exponent, no minus": (lambda head, size: -math.log2(_slope(head, size)),
                "This is the exponent, without its minus: the slope is 2 to the minus that."),
            "of 12 heads": (lambda head, size: 2.0 ** -(head + 1 if head < 8 else head - 7.5),
                "You have the slopes of 12 heads, whatever num_heads says."),
            "one head further": (lambda head, size: float(torch.cat((alibi_slopes(size)[-1:], alibi_slopes(size)))[head]),
                "Heads are counted from 0: you give each the slope of the head before it."),
        },
        praise="one head at a time, from 1 head to 200, in the order in which models have them.",
        tolerance=1e-6,
    )  # fmt: skip


def _spread(a: Tensor, b: Tensor, keys: Callable[[int], slice] = lambda m: slice(0, m + 1)) -> float:
    """By how much a - b varies, at most, within the keys of a query."""
    spreads = []
    for m in range(len(a)):
        difference = a[m, keys(m)] - b[m, keys(m)]
        spreads.append(float(difference.max() - difference.min()) if len(difference) else 0.0)
    return math.nan if any(map(math.isnan, spreads)) else max(spreads)


@exercise()
def same_bias(seed: int) -> Exercise:
    """same_bias(a, b) -> whether two biases (L, L) give the same causal attention to all queries and keys."""
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
    nowhere = torch.full_like(noise, math.nan)

    def plus(size: float, query: int, key: int, bias: Tensor = alibi) -> tuple[Tensor, Tensor]:
        other = bias.clone()
        other[query, key] += size
        return bias, other

    faint = alibi.clone()
    faint[:, 0] = -50
    long = -slope * (torch.arange(40.0, dtype=torch.float64)[:, None] - torch.arange(40))
    # What sets them apart: nothing, a number per row, the future (which nobody sees), or something that a query sees.
    same = {
        "twice the same": (alibi, alibi.clone()),
        "a number added to all": (alibi, alibi + 2.5),
        "a number added to each row": (noise, noise + of_row),
        "slope·n in every row": (alibi, (slope * n).expand(length, -1)),
        "-slope·|m - n|": ((slope * n).expand(length, -1), -slope * (m - n).abs()),
        "other numbers in the future": (alibi, torch.where(future, noise, alibi)),
        "another number for the next key": plus(1.0, 2, 3),
        "minus infinity in the future": (alibi.masked_fill(future, -math.inf), alibi + of_row),
        "NaN in the future": (torch.where(future, nowhere, alibi), alibi),
        "another number at the first query's only key": plus(5.0, 0, 0, noise),
        "differences below 1e-5": (alibi, alibi + 2e-6 * noise.sign()),
        "a single token": (noise[:1, :1], of_row[:1]),
    }
    different = {
        "a number added to each column": (alibi, alibi + of_column),
        "another sign": (alibi, -alibi),
        "another slope": (alibi, 2 * alibi),
        "no bias": (alibi, torch.zeros_like(alibi)),
        "another number for the last query's first key": plus(0.5, -1, 0),
        "another number for the last query's own key": plus(0.5, -1, -1),
        "another number for the second query's first key": plus(0.5, 1, 0),
        "another number in the middle": plus(0.5, 3, 2),
        "a query far back in a long text": plus(0.5, 37, 36, long),
        "other numbers far below the largest": (faint, plus(-20.0, 4, 0, faint)[1]),
        "0.001·n more in every row": (noise, noise + 0.001 * n),
        "1e-4 more for one key": plus(1e-4, 4, 3),
    }

    Same = Callable[[Tensor, Tensor], bool]

    def within(t: float, keys: Callable[[int], slice] = lambda m: slice(0, m + 1)) -> Same:
        return lambda a, b: _spread(a, b, keys) <= t

    def equal(a: Tensor, b: Tensor, t: float) -> bool:
        return torch.allclose(a, b, rtol=0, atol=t)

    def softmaxes(a: Tensor, b: Tensor, t: float, masked: bool = True) -> bool:
        if masked:
            hidden = torch.ones_like(a).triu(1).bool()
            a, b = a.masked_fill(hidden, -math.inf), b.masked_fill(hidden, -math.inf)
        return torch.allclose(a.softmax(1), b.softmax(1), rtol=t, atol=t / 100)

    def gained(x: Tensor, infinity: float) -> Tensor:
        """Each number less the first of its row; what isn't visible times 0."""
        return (x.nan_to_num(math.nan, neginf=infinity) - x[:, :1]) * torch.ones_like(x).tril()

    def of(queries: slice, t: float) -> Same:
        """With the other queries' rows taken for equal."""

        def same_in(a: Tensor, b: Tensor) -> bool:
            other = a.clone()
            other[queries] = b[queries]
            return _spread(a, other) <= t

        return same_in

    only_equal = "Only equal numbers are the same for you: the softmax of a row forgets what is added to the whole row."
    strict = "Too strict: numbers that differ by less than 1e-5 differ by rounding only, and are equal."
    loose = "Your tolerance is too large: 1e-4 is no rounding, which stays below 1e-5."
    ahead = "You compare the future too: a causal mask hides it, so it doesn't matter what is there."
    some = "You don't look at all keys of every query: one other number that some query sees makes another bias."
    no_number = (
        "Infinity less infinity is no number, and 0 times it is none either: look at what a query sees, and at nothing else."
    )
    known: dict[str, tuple[Callable[[float], Same], str]] = {
        "equal": (lambda t: lambda a, b: equal(a, b, t), only_equal),
        "equal in the past": (lambda t: lambda a, b: equal(a.tril(), b.tril(), t), only_equal),
        "the future too": (lambda t: within(t, lambda m: slice(None)), ahead),
        "one key too many": (lambda t: within(t, lambda m: slice(0, m + 2)), ahead),
        "no mask": (lambda t: lambda a, b: softmaxes(a, b, t, masked=False), ahead),
        "infinity as 0": (
            lambda t: lambda a, b: within(t, lambda m: slice(None))(*(x.nan_to_num(0, neginf=0) for x in (a, b))), ahead),
        "infinity times 0": (lambda t: lambda a, b: equal(gained(a, -math.inf), gained(b, -math.inf), t), no_number),
        "NaN times 0": (lambda t: lambda a, b: equal(gained(a, 0.0), gained(b, 0.0), t), no_number),
        "one number for all": (lambda t: lambda a, b: equal((a - b - (a - b)[0, 0]).tril(), torch.zeros_like(a), t),
            "One number for all is forgiven, and one for each row isn't: a softmax takes each row for itself."),
        "columns": (lambda t: lambda a, b: within(t)(a.mT.flip(0, 1), b.mT.flip(0, 1)),
            "You forgive what is added to a column: a softmax runs along a row."),
        "whole columns": (lambda t: lambda a, b: within(t, lambda m: slice(None))(a.mT, b.mT),
            "You forgive what is added to a column: a softmax runs along a row. And you compare the future too."),
        "the own key and later ones": (lambda t: within(t, lambda m: slice(m, None)),
            "You compare each query's own key and those after it: it sees those up to its own."),
        "weights for no scores": (lambda t: lambda a, b: softmaxes(a, b, t),
            "A weight of nearly 0 is not 0: a larger score brings the key back. Compare the biases for all scores, not the "
            "weights for some."),
        "the last query": (lambda t: of(slice(-1, None), t), some),
        "not the last query": (lambda t: of(slice(0, -1), t), some),
        "not the own key": (lambda t: within(t, lambda m: slice(0, m)), some),
        "not the first key": (lambda t: within(t, lambda m: slice(1, m + 1)), some),
    }  # fmt: skip
    return Exercise(
        cases={**same, **different},
        right=within(1e-5),
        mistakes={
            **{f"within {t:g}": (within(t), loose) for t in (1e-3, 0.1, 1, 10)},
            **{f"within {t:g}": (within(t), strict) for t in (0, 1e-12, 1e-6)},
            **{f"{name}, to {t:g}": (make(t), hint) for name, (make, hint) in known.items() for t in (8e-6, 1e-7, 1e-12)},
        },
        praise=f"all {len(same) + len(different)} pairs, of which {len(same)} are one bias, though most do not look it.",
    )  # fmt: skip


def _share(slope: float, keys: int, length: int) -> float:
    """What the nearest keys hold of the attention, by adding up."""
    weights = (-slope * torch.arange(length, dtype=torch.float64)).softmax(dim=0)
    return float(weights[:keys].sum())


def _halved(held: Callable[[float], float], share: float, low: float = 0.0, high: float = 20.0) -> float:
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) < share else (low, middle)
    return low


@exercise()
def slope_for(seed: int) -> Exercise:
    """slope_for(keys, share, length) -> the slope with which the nearest keys hold this share of a text of this length.

    Judged by what they hold, added up from a softmax.
    """
    generator = random.Random(seed)
    cases = {
        "half of the text": (6, 0.75, 12),
        "one of two": (1, 0.75, 2),
        "the steepest head": (1, 0.95, 50),
        "all but the farthest": (7, 0.97, 8),
        "a share of nearly one": (3, 0.9998, 40),
        "the flattest head": (590, 0.9, 2048),
        "a little more than an even share": (100, 0.35, 400),
    }
    for number in range(4):
        # Short enough that the text's end is felt: the formula for an endless text is off by a hundredth at least.
        keys = generator.randrange(5, 40)
        length = keys * generator.randrange(2, 4) + generator.randrange(4)
        even = keys / length
        cases[f"a short text, {number + 1}"] = (keys, round(even + (1 - even) * generator.uniform(0.2, 0.5), 2), length)

    def right(keys: int, share: float, length: int) -> float:
        return _halved(lambda s: _share(s, keys, length), share)

    def same(known: float, said: float) -> bool:
        return math.isclose(known, said, rel_tol=0.01, abs_tol=1e-6)

    def fault(said: Sequence[float]) -> str | None:
        """What the nearest keys hold with the first slope that is wrong, and what all slopes have in common."""
        trials = list(zip(said, cases.values(), strict=True))
        held = [_share(slope, keys, length) for slope, (keys, _, length) in trials]
        off = [has - share for has, (_, share, _) in zip(held, cases.values(), strict=True)]
        wrong = [i for i, by in enumerate(off) if abs(by) > 1e-3]
        if not wrong:
            return None
        for name, less, more in (("keys - 1", -1, 0), ("keys + 1", 1, 0), ("length - 1", 0, -1), ("length + 1", 0, 1)):
            inner = [(slope, case) for slope, case in trials if 1 < case[0] < case[2] - 1]
            if all(abs(_share(slope, keys + less, length + more) - share) < 1e-3 for slope, (keys, share, length) in inner):
                return f"Your slopes would be right for {name}: the query's own key, at distance 0, is the first of the keys."
        if max(said) - min(said) < 1e-9:
            return f"You return {said[0]:.4g} whatever you are asked: does your search move, and into the right half?"
        hint = ""
        i = wrong[0]
        alike = max(said[j] for j in wrong) - min(said[j] for j in wrong) < 1e-3
        if len(wrong) < len(said) and alike and said[i] > max(said) - 1e-3 and off[i] < 0:
            hint = f" All smaller ones are right: does your search end at {said[i]:.3g}? A slope may be larger."
        elif len(wrong) < len(said) and alike and said[i] < min(said) + 1e-3 and off[i] > 0:
            hint = f" All larger ones are right: does your search begin at {said[i]:.3g}? A slope may be smaller."
        elif (most := max(abs(slope - right(*case)) for slope, case in trials)) < 0.06:
            hint = f" All your slopes are within {most:.1g} of the right ones: does your search stop too early, or round?"
        name, (keys, share, length) = list(cases.items())[i]
        nearest = f"the nearest {keys} keys hold" if keys > 1 else "the nearest key holds"
        return (
            f"slope_for({keys}, {share:g}, {length}), for {name}, gives {said[i]:.6g}; with it, {nearest} {held[i]:.4f} of the "
            f"attention, and should hold {share:g}.{hint}"
        )

    endless = (
        "This is the formula for a text without end. Where a text is short, the far keys that it counts are not there, and the "
        "near ones hold too much."
    )
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "endless": (lambda keys, share, length: -math.log(1 - share) / keys, endless),
            "endless, below 0": (lambda keys, share, length: math.log(1 - share) / keys,
                "A slope is positive, and this is the formula for a text without end: this one has an end."),
            "endless, base 2": (lambda keys, share, length: -math.log2(1 - share) / keys,
                "The softmax has the base e, not 2; and this is the formula for a text without end."),
            "endless, the rest": (lambda keys, share, length: -math.log(share) / keys,
                "This leaves the share to all the other keys, in a text without end: share and 1 - share have changed places."),
            "endless, one key less": (lambda keys, share, length: -math.log(1 - share) / max(keys - 1, 1),
                "This is the formula for a text without end, and for one key less: the query's own key counts too."),
            "half": (lambda keys, share, length: math.log(2) / keys,
                "This gives half of the attention, whatever share says, and in a text without end."),
            "of twice the keys": (lambda keys, share, length: math.log(share / (1 - share)) / keys,
                "This is the formula for a text of twice as many tokens as keys: length may be any number."),
            "base 2": (lambda *case: right(*case) / math.log(2), "The softmax has the base e, not 2."),
            "below 0": (lambda *case: -right(*case), "Your slopes are turned round: they give the share to the farthest keys."),
            "the rest": (lambda keys, share, length: _halved(lambda s: _share(s, keys, length), 1 - share, low=-20),
                "Your slopes leave the share to all the other keys: the nearest should hold it."),
            "the rest, above 0": (lambda keys, share, length: _halved(lambda s: _share(s, keys, length), 1 - share),
                "Your slopes leave the share to all the other keys, where they can: the nearest should hold it."),
        },
        praise=lambda said: (
            f"{len(said)} heads, and the nearest keys of each hold what they should. For 90 % on 590 of 2,048 the slope is "
            f"1/{1 / said[list(cases).index('the flattest head')]:.0f}."
        ),
        same=same,
        fault=fault,
    )  # fmt: skip


def _words(real: Tensor, new: int) -> Tensor:
    """Positions that pass over the padding."""
    return real.long().cumsum(dim=0) - 1


def _places(real: Tensor, new: int) -> Tensor:
    return torch.arange(len(real))


def _rows(real: Tensor, new: int) -> Tensor:
    return torch.arange(new)


def _causal(real: Tensor, new: int) -> Tensor:
    return torch.ones(new, len(real)).tril(len(real) - new).bool()


def _from_the_left(real: Tensor, new: int) -> Tensor:
    return torch.ones(new, len(real)).tril().bool()


def _open(real: Tensor, new: int) -> Tensor:
    return torch.ones(new, len(real)).bool()


def _but_padding(mask: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, int], Tensor]:
    return lambda real, new: mask(real, new) & real


_SEEN = _but_padding(_causal)


def _linear(distance: Tensor, slopes: Tensor) -> Tensor:
    return -slopes[:, None, None] * distance


def _symmetric(distance: Tensor, slopes: Tensor) -> Tensor:
    return _linear(distance.abs(), slopes)


def _attend(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    slopes: Tensor,
    real: Tensor,
    *,
    asks: Callable[[Tensor, int], Tensor] = lambda real, new: _words(real, new)[-new:],
    stands: Callable[[Tensor, int], Tensor] = _words,
    bias: Callable[[Tensor, Tensor], Tensor] = _linear,
    mask: Callable[[Tensor, int], Tensor] = _SEEN,
    root: Callable[[int], float] = math.sqrt,
    weigh: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda scores, mask, real: scores.masked_fill(~mask, -math.inf).softmax(
        -1
    ),
) -> Tensor:
    """Attention with ALiBi, or the same with one thing done differently."""
    new = q.shape[1]
    distance = (asks(real, new)[:, None] - stands(real, new)).double()
    scores = q @ keys.mT / root(q.shape[2]) + bias(distance, slopes)
    return weigh(scores, mask(real, new), real) @ values


@exercise(instead_of=[alibi_attention])
def attend(seed: int) -> Exercise:
    """attend(q, keys, values, slopes, real) -> (heads, new, d), causal attention with ALiBi beside a cache with padding.

    q (heads, new, d) of the last tokens, keys and values (heads, all, d) of all of them, real (all,) False where a token is
    padding.
    """
    generator = random.Random(seed)

    def case(real: list[int], new: int, heads: int = 4, d: int = 8, usual: bool = False) -> tuple[Tensor, ...]:
        def sample(rows: int, size: float) -> Tensor:
            torch_generator = torch.Generator().manual_seed(generator.randrange(10**6))
            return size * torch.randn(heads, rows, d, dtype=torch.float64, generator=torch_generator)

        slopes = torch.tensor([generator.uniform(0.05, 1) for _ in range(heads)], dtype=torch.float64)
        parts = sample(new, 1.5), sample(len(real), 1.5), sample(len(real), 1.0)
        return *parts, alibi_slopes(heads) if usual else slopes, torch.tensor(real, dtype=torch.bool)

    gap = generator.randrange(2, 5)
    cases = {
        "a prompt": case([1] * 7, 7, usual=True),
        "a single token after a cache": case([1] * 9, 1),
        "three tokens after a cache": case([1] * 8, 3),
        "padding in front": case([0] * gap + [1] * 5, 1),
        "padding between prompt and answer": case([1] * 4 + [0] * gap + [1] * 3, 1),
        "padding in both places": case([0, 0, 1, 1, 1, 0, 1, 1, 1], 3),
        "heads of another width": case([1, 1, 0, 1, 1, 1], 2, heads=3, d=4),
        "the first token, one head": case([1], 1, heads=1, d=2),
        "a cache of 300 tokens": case([1] * 280 + [0] * 20 + [1] * 3, 2, heads=2, d=4),
    }

    def but(**changes: Any) -> Callable[..., Tensor]:
        return lambda *given: _attend(*given, **changes)

    def by_places(mask: Callable[[Tensor, int], Tensor], bias: Any = _linear) -> Callable[..., Tensor]:
        return but(asks=lambda real, new: _places(real, new)[-new:], stands=_places, mask=mask, bias=bias)

    def by_rows(mask: Callable[[Tensor, int], Tensor], stands: Any) -> Callable[..., Tensor]:
        return but(asks=_rows, stands=stands, mask=mask, bias=_symmetric)

    def left_or(key: int) -> Callable[[Tensor, int], Tensor]:
        """From the left, with this key for a row that would see none."""

        def mask(real: Tensor, new: int) -> Tensor:
            seen = _from_the_left(real, new) & real
            seen[:, key] |= ~seen.any(dim=1)
            return seen

        return mask

    def before(real: Tensor, new: int) -> Tensor:
        """Not the own key."""
        return torch.ones(new, len(real)).tril(len(real) - new - 1).bool() & real

    def before_or_first(real: Tensor, new: int) -> Tensor:
        seen = before(real, new)
        seen[:, 0] |= ~seen.any(dim=1)
        return seen

    def same(known: Tensor, said: Tensor) -> bool:
        # A mask that leaves a query no key makes its row 0/0, in an answer as in the mistake that it is compared with.
        return torch.allclose(known, said, rtol=1e-3, atol=1e-3, equal_nan=True)

    left = "Your mask counts rows from 0: row r of the new tokens comes after all the cached ones, and may see those too."
    rows = "The distance is taken between rows and columns: row 0 of q is not token 0 of the text, but the first new one"
    return Exercise(
        cases=cases,
        right=_attend,
        mistakes={
            "padding counts": (by_places(_SEEN),
                "Without padding it is right, and with padding between two words it isn't: count the words between them."),
            "padding counts and is seen": (by_places(_causal), "The padding is seen and counted: without it all is right."),
            "padding is seen": (but(mask=_causal),
                "The padding is not counted, and is still looked at: real has to enter the mask too."),
            **{f"open, {bias.__name__}": (but(mask=_but_padding(_open), bias=bias),
                "Several new tokens see those after them: the causal mask holds among the new ones too.")
               for bias in (_linear, _symmetric)},
            **{f"open, padding counts, {bias.__name__}": (by_places(_but_padding(_open), bias=bias),
                "Several new tokens see those after them, and padding is counted as distance.")
               for bias in (_linear, _symmetric)},
            **{f"from the left, {n}": (but(mask=mask), left)
               for n, mask in enumerate((_from_the_left, _but_padding(_from_the_left), left_or(-1), left_or(0)))},
            **{f"rows, {n}": (by_rows(_SEEN, stands), f"{rows}.") for n, stands in enumerate((_places, _words))},
            "rows, open": (by_rows(_but_padding(_open), _places), f"{rows}. And new tokens see those after them."),
            "rows, padding is seen": (by_rows(_causal, _places), f"{rows}. And padding is looked at."),
            **{f"not itself, {mask.__name__}": (but(mask=mask),
                "A new token doesn't see itself: its own key is the last that it may see.")
               for mask in (before, before_or_first)},
            "the other sign": (but(bias=lambda distance, slopes: -_linear(distance, slopes)),
                "A far key gains by its distance: look at a sign."),
            "no bias": (but(bias=lambda distance, slopes: 0 * _linear(distance, slopes)), "The bias is missing."),
            "one slope": (but(bias=lambda distance, slopes: _linear(distance, slopes[:1])),
                "All heads have the first one's slope."),
            "package's slopes": (but(bias=lambda distance, slopes: _linear(distance, alibi_slopes(len(slopes)))),
                "You take the package's slopes for so many heads, whatever slopes says: take those that are handed over."),
            "backwards": (but(bias=lambda distance, slopes: _linear(distance, slopes.flip(0))), "The slopes are in reverse."),
            "no softmax": (but(weigh=lambda scores, mask, real: scores * mask),
                "You add up values by their scores: where is the softmax?"),
            "bias divided": (
                lambda q, keys, values, slopes, real: _attend(q, keys, values, slopes / math.sqrt(q.shape[2]), real),
                "The bias has been divided by √d: that is for q·k alone."),
            "not divided": (but(root=lambda d: 1), "The scores are not divided by √d."),
            "divided twice": (but(root=lambda d: d),
                "The scores are divided by d, as by √d twice: the package's attention divides already."),
            **{f"divided by √{n}": (but(root=lambda d, n=n: math.sqrt(n)),
                "The scores are divided by the same number for every width: √d depends on the width of q.") for n in (8, 64)},
            "padding after the softmax": (
                but(mask=_causal, weigh=lambda scores, mask, real: scores.masked_fill(~mask, -math.inf).softmax(-1) * real),
                "The padding's weights are removed after the softmax, so those of the words don't add up to 1."),
            "hidden at 0": (but(weigh=lambda scores, mask, real: (scores * mask).softmax(-1)),
                "A hidden key gets the score 0, which still has a weight: what score gives none?"),
        },
        praise="one token and several, beside a cache, with padding in front and in between: as if the padding were not there.",
        same=same,
    )  # fmt: skip
