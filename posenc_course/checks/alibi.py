"""Exercises on ALiBi: the bias from positions, what softmax ignores, a slope for a share, and attention beside a cache."""

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

# ── the slopes of the authors' code, and common mistakes for them ───────────────────────────────────────────────────────


def _slope(head: int, size: int) -> float:
    return float(alibi_slopes(size)[head])


def _power(size: int) -> int:
    """The largest power of two that is at most size."""
    return 1 << (size.bit_length() - 1)


def _listed(
    rest: Callable[[int, int], float],
    first: Callable[[int, int], float] = lambda h, p: 8 * (h + 1) / p,
    power: Callable[[int], int] = _power,
) -> Slope:
    """2 to the power of minus first(head, power), or of minus rest(index among the additional heads, power)."""

    def slope(head: int, size: int) -> float:
        p = power(size)
        return float(2.0 ** -(first(head, p) if head < p else rest(head - p, p)))

    return slope


def _between(j: int, p: int) -> float:
    return 4 * (2 * j + 1) / p


_SLOPES: dict[str, tuple[Slope, str]] = {
    "the formula": (lambda head, size: 2 ** (-8 * (head + 1) / size),
        "You use the formula in the text of the paper, which fits any number of heads. But for 12 heads, the authors' code "
        "begins with the slopes of 8 heads, and so do the models that were trained with it."),
    "from 0": (_listed(lambda j, p: 8 * j / p, lambda h, p: 8 * h / p),
        "Your first slope is 1, and all your slopes are one step too steep. Do you count h from 0? In the formula, h begins "
        "with 1."),
    "sorted": (lambda head, size: float(alibi_slopes(size).sort(descending=True).values[head]),
        "Your slopes are right, but you have sorted them. Trained models have them in the order of the authors' code, in which "
        "the slopes from the larger power of two come last."),
    "additional backwards": (_listed(lambda j, p: 8 - 4 * (2 * j + 1) / p),
        "Your slopes from the larger power of two begin with the flattest, but they should begin with the steepest."),
    "of the larger power": (lambda head, size: 2 ** (-8 * (head + 1) / (1 << (size - 1).bit_length())),
        "For 12 heads, you use the first 12 slopes of 16 heads. But the authors' code begins with all slopes of 8 heads."),
    "the smaller power of 8": (_listed(_between, power=lambda size: _power(max(size - 1, 1))),
        "If the number of heads is a power of two, you begin with the slopes of half as many heads. But then the formula "
        "already gives you a slope for every head."),
    "not every other": (_listed(lambda j, p: 4 * (j + 1) / p),
        "For 12 heads, your first 8 slopes are right. But then you take the slopes of 16 heads one after another, although "
        "every second one is already there."),
    "repeated": (_listed(lambda j, p: 8 * (j + 1) / p),
        "For 12 heads, your last 4 slopes repeat the first ones, but no two heads should have the same slope. Which slopes of "
        "16 heads don't occur among those of 8 heads?"),
    "one per head": (_listed(_between, lambda h, p: h + 1.0),
        "Your exponents increase by 1 from head to head. For a power of two, the step should be 8 divided by the number of "
        "heads."),
    "one per head, all": (lambda head, size: 2.0 ** -(head + 1),
        "Your exponents increase by 1 from head to head. For a power of two, the step should be 8 divided by the number of "
        "heads."),
    "not divided": (lambda head, size: 2.0 ** (-8 * (head + 1)), "You don't divide the exponent by the number of heads."),
    "whole exponents": (_listed(lambda j, p: 4 * (2 * j + 1) // p, lambda h, p: 8 * (h + 1) // p),
        "You round the exponents down to whole numbers. In Python, // rounds down after dividing, but / doesn't."),
    "no minus": (lambda head, size: 1 / _slope(head, size),
        "Your exponent lacks its minus sign. A slope should be smaller than 1."),
    "backwards": (lambda head, size: _slope(size - 1 - head, size),
        "Your slopes are in reverse order. Head 0 should have the first slope. For a power of two, that is the steepest one."),
}  # fmt: skip


# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _steps(call: Call, q: Tensor, k: Tensor, num_heads: int) -> Tensor:
    """How much a head's bias grows per token from each key to the next, (heads, steps), for all keys that a query may look at.

    A number added to a whole row doesn't change this, and softmax ignores it, too.
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
            refusal = refusal or f"{wrong} Heads come first, then queries, then keys, and each head has its own slope."
        else:
            later = (k <= q[:, None])[:, 1:]  # where the query may look at the later of two neighbours
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
    right = _of_positions(_slope)

    def same(known: Tensor, said: Tensor, tolerance: float = 2e-3) -> bool:
        return known.shape == said.shape and torch.allclose(known, said, rtol=tolerance, atol=1e-6)

    def fault(said: Sequence[Tensor]) -> str | None:
        """What is wrong with the steps of the first case that isn't right."""
        wanted = [_steps(lambda *given, wanted, shown="", within=None: right(*given), *case) for case in cases.values()]
        wrong = [name for name, a, b in zip(cases, wanted, said, strict=True) if not same(a, b)]
        off = [name for name, a, b in zip(cases, wanted, said, strict=True) if not same(a, b, 0.2)]
        if not wrong:
            return None
        if off == ["positions 5000 to 5011"]:
            return (
                "Your bias is right, or nearly right, for texts that begin at position 0, but it is wrong for a text that "
                "begins at position 5,000, although the distances are the same. Are your numbers rounded to half precision?"
            )
        if all("after" in name for name in wrong):
            return (
                f"Your bias is right for a whole text, but not for: {'; '.join(wrong)}. Do you compute the distances from the "
                "positions that your function is given?"
            )
        n = cases[wrong[0]][2]
        at = f"With {wrong[0] if 'heads' in wrong[0] else f'{n} heads and {wrong[0]}'}"
        want, steps = next((a, b) for name, a, b in zip(cases, wanted, said, strict=True) if name == wrong[0])
        slopes = steps.mean(dim=1)
        if not steps.isfinite().all():
            return f"{at}, your bias contains NaN or infinity for a key that a query may see."
        if not steps.any():
            return f"{at}, your bias is the same for all keys, so it contains no information about position."
        if not same(slopes[:, None].expand_as(steps), steps, 0.02):
            bent = int((steps.amax(dim=1) / steps.amin(dim=1) - 1).abs().argmax())
            return (
                f"Your bias isn't a straight line: in head {bent + 1} of {n} (counted from 1), it grows by "
                f"{steps[bent].min():.4f} per token at one key and by {steps[bent].max():.4f} per token at another. It "
                "should be minus slope times distance; the exponential comes later, in the softmax."
            )
        if same(slopes[:1].expand_as(slopes), slopes):
            return f"All your heads have the same slope, {slopes[0]:.4f}, but each should have its own."
        head = int((~torch.isclose(slopes, want[:, 0], rtol=2e-3, atol=1e-6)).int().argmax())
        return (
            f"{at}, your bias in head {head + 1} (counted from 1) grows by {slopes[head]:.4f} per token towards the query, but "
            f"it should grow by {want[head, 0]:.4f}."
        )

    def of_places(distance: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor, int], Tensor]:
        """The bias if the distance is computed from the indices in the tensors."""
        return lambda q, k, n: -alibi_slopes(n)[:, None, None] * distance(torch.arange(len(q))[:, None], torch.arange(len(k)))

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            **{name: (_of_positions(slope), hint) for name, (slope, hint) in _SLOPES.items()},
            "the other sign": (_of_positions(lambda head, size: -_slope(head, size)),
                "Your bias grows with the distance: the nearest key gets the smallest bias, and the first key of the text gets "
                "the largest. Check the sign."),
            "places": (of_places(lambda m, n: m - n),
                "You use row numbers of the tensors as positions. But keys 2 and 9 are seven tokens apart, even if the keys "
                "between them have been removed from the cache. Use the positions that your function is given."),
        },
        praise="with 8 heads and with 12, after a cache and across a gap, your bias falls by the head's slope for each token "
               "of distance.",
        ask=_steps,
        same=same,
        fault=fault,
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _spread(a: Tensor, b: Tensor, keys: Callable[[int], slice] = lambda m: slice(0, m + 1)) -> float:
    """How much a - b varies, at most, over the keys that a query sees."""
    spreads = []
    for m in range(len(a)):
        difference = a[m, keys(m)] - b[m, keys(m)]
        spreads.append(float(difference.max() - difference.min()) if len(difference) else 0.0)
    return math.nan if any(map(math.isnan, spreads)) else max(spreads)


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
    nowhere = torch.full_like(noise, math.nan)

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
        "slope·n in every row": (alibi, (slope * n).expand(length, -1)),
        "-slope·|m - n|": ((slope * n).expand(length, -1), -slope * (m - n).abs()),
        "different numbers in the future": (alibi, torch.where(future, noise, alibi)),
        "a different number for the next key": plus(1.0, 2, 3),
        "minus infinity in the future": (alibi.masked_fill(future, -math.inf), alibi + of_row),
        "NaN in the future": (torch.where(future, nowhere, alibi), alibi),
        "a different number for the only key of the first query": plus(5.0, 0, 0, noise),
        "differences below 1e-5": (alibi, alibi + 2e-6 * noise.sign()),
        "a single token": (noise[:1, :1], of_row[:1]),
    }
    different = {
        "a number added to each column": (alibi, alibi + of_column),
        "a different sign": (alibi, -alibi),
        "a different slope": (alibi, 2 * alibi),
        "ALiBi and no bias": (alibi, torch.zeros_like(alibi)),
        "a different number for the first key of the last query": plus(0.5, -1, 0),
        "a different number for the last query's own key": plus(0.5, -1, -1),
        "a different number for the first key of the second query": plus(0.5, 1, 0),
        "a different number in the middle": plus(0.5, 3, 2),
        "a query far back in a long text": plus(0.5, 37, 36, long),
        "a different number for a key with a tiny weight": (faint, plus(-20.0, 4, 0, faint)[1]),
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
        """Each number minus the first of its row, with everything that isn't visible multiplied by 0."""
        return (x.nan_to_num(math.nan, neginf=infinity) - x[:, :1]) * torch.ones_like(x).tril()

    def of(queries: slice, t: float) -> Same:
        """The rows of all other queries count as equal."""

        def same_in(a: Tensor, b: Tensor) -> bool:
            other = a.clone()
            other[queries] = b[queries]
            return _spread(a, other) <= t

        return same_in

    only_equal = (
        "You accept two biases only if their numbers are equal. But the softmax of a row doesn't change if you add a number to "
        "the whole row."
    )
    strict = (
        "Your test is too strict. Numbers that differ by less than 1e-5 count as equal, because rounding can cause such "
        "differences."
    )
    loose = "Your tolerance is too large. Rounding errors stay below 1e-5, so 1e-4 is a real difference."
    ahead = "You also compare the future. But a causal mask hides it, so its numbers don't matter."
    some = (
        "You don't look at all keys of every query. But a different number for a single key that a query sees can change the "
        "attention."
    )
    no_number = (
        "Infinity minus infinity isn't a number, and neither is 0 times infinity. Compare only the keys that each query sees."
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
            "You accept biases that differ by one number in the whole table, but not by a different number in each row. A "
            "softmax works on each row separately."),
        "columns": (lambda t: lambda a, b: within(t)(a.mT.flip(0, 1), b.mT.flip(0, 1)),
            "You accept biases that differ by a number in each column. But a softmax works along a row, so such a number "
            "changes the weights."),
        "whole columns": (lambda t: lambda a, b: within(t, lambda m: slice(None))(a.mT, b.mT),
            "You accept biases that differ by a number in each column. But a softmax works along a row, so such a number "
            "changes the weights. And you also compare the future."),
        "the own key and later ones": (lambda t: within(t, lambda m: slice(m, None)),
            "You compare each query's own key and the keys after it. But a query sees its own key and the keys before it."),
        "weights for no scores": (lambda t: lambda a, b: softmaxes(a, b, t),
            "You compare the weights for one choice of scores. But a weight of nearly 0 isn't 0: with a higher score, the key "
            "gets a noticeable weight. Compare the biases themselves."),
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
        praise=f"all {len(same) + len(different)} pairs are right, including the {len(same)} pairs that are equivalent "
               "although most of them don't look like it.",
    )  # fmt: skip


def _share(slope: float, keys: int, length: int) -> float:
    """The share of the attention that the nearest keys get, by addition."""
    weights = (-slope * torch.arange(length, dtype=torch.float64)).softmax(dim=0)
    return float(weights[:keys].sum())


def _halved(held: Callable[[float], float], share: float, low: float = 0.0, high: float = 20.0) -> float:
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
        "a share of nearly 1": (3, 0.9998, 40),
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
        off = [has - share for has, (_, share, _) in zip(held, cases.values(), strict=True)]
        wrong = [i for i, by in enumerate(off) if abs(by) > 1e-3]
        if not wrong:
            return None
        for name, less, more in (("keys - 1", -1, 0), ("keys + 1", 1, 0), ("length - 1", 0, -1), ("length + 1", 0, 1)):
            inner = [(slope, case) for slope, case in trials if 1 < case[0] < case[2] - 1]
            if all(abs(_share(slope, keys + less, length + more) - share) < 1e-3 for slope, (keys, share, length) in inner):
                return (
                    f"You are off by one: your slopes would be right for {name}. The query's own key, at distance 0, is the "
                    "first of the nearest keys."
                )
        if max(said) - min(said) < 1e-9:
            return (
                f"You return {said[0]:.4g} whatever your function is given. Does your search change its interval, and does it "
                "continue in the right half?"
            )
        hint = ""
        i = wrong[0]
        alike = max(said[j] for j in wrong) - min(said[j] for j in wrong) < 1e-3
        if len(wrong) < len(said) and alike and said[i] > max(said) - 1e-3 and off[i] < 0:
            hint = f" All smaller slopes are right. Does your search end at {said[i]:.3g}? A slope may be larger."
        elif len(wrong) < len(said) and alike and said[i] < min(said) + 1e-3 and off[i] > 0:
            hint = f" All larger slopes are right. Does your search begin at {said[i]:.3g}? A slope may be smaller."
        elif (most := max(abs(slope - right(*case)) for slope, case in trials)) < 0.06:
            hint = (
                f" All your slopes are within {most:.1g} of the right ones. Does your search stop too early, or do you round?"
            )
        name, (keys, share, length) = list(cases.items())[i]
        nearest = f"the nearest {keys} keys get" if keys > 1 else "the nearest key gets"
        return (
            f"slope_for({keys}, {share:g}, {length}), for {name}, gives {said[i]:.6g}. With this slope, {nearest} "
            f"{held[i]:.4f} of the attention, but the share should be {share:g}.{hint}"
        )

    endless = (
        "You use the formula for an endless text. But in a short text, the distant keys that this formula counts don't exist, "
        "so the nearest keys get too large a share."
    )
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "endless": (lambda keys, share, length: -math.log(1 - share) / keys, endless),
            "endless, one key less": (lambda keys, share, length: -math.log(1 - share) / max(keys - 1, 1),
                "You use the formula for an endless text, with one key too few. The query's own key counts, too."),
            "of twice the keys": (lambda keys, share, length: math.log(share / (1 - share)) / keys,
                "You use the formula for a text with twice as many tokens as `keys`. But a text can have any number of "
                "tokens."),
            "base 2": (lambda *case: right(*case) / math.log(2), "You use base 2, but the softmax uses powers of e."),
            "below 0": (lambda *case: -right(*case), "Your slopes have the wrong sign, so the farthest keys get the share."),
            "the rest": (lambda keys, share, length: _halved(lambda s: _share(s, keys, length), 1 - share, low=-20),
                "With your slopes, all the other keys together get the share that the nearest keys should get."),
            "the rest, above 0": (lambda keys, share, length: _halved(lambda s: _share(s, keys, length), 1 - share),
                "With your slopes, all the other keys together get the share that the nearest keys should get, as far as that "
                "is possible with a positive slope."),
        },
        praise=lambda said: (
            f"in all {len(said)} heads, the nearest keys get the right share. For 590 of 2,048 keys to get 90 %, the slope is "
            f"1/{1 / said[list(cases).index('the flattest head')]:.0f}."
        ),
        same=same,
        fault=fault,
    )  # fmt: skip


def _words(real: Tensor, new: int) -> Tensor:
    """Positions that don't count the padding."""
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

    q (heads, new, d) belongs to the last tokens, keys and values (heads, all, d) belong to all tokens, and real (all,) is False
    for padding.
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
        "padding in front and in between": case([0, 0, 1, 1, 1, 0, 1, 1, 1], 3),
        "heads with a different width": case([1, 1, 0, 1, 1, 1], 2, heads=3, d=4),
        "the first token, with one head": case([1], 1, heads=1, d=2),
        "a cache of 300 tokens": case([1] * 280 + [0] * 20 + [1] * 3, 2, heads=2, d=4),
    }

    def but(**changes: Any) -> Callable[..., Tensor]:
        return lambda *given: _attend(*given, **changes)

    def by_places(mask: Callable[[Tensor, int], Tensor], bias: Any = _linear) -> Callable[..., Tensor]:
        return but(asks=lambda real, new: _places(real, new)[-new:], stands=_places, mask=mask, bias=bias)

    def by_rows(mask: Callable[[Tensor, int], Tensor], stands: Any) -> Callable[..., Tensor]:
        return but(asks=_rows, stands=stands, mask=mask, bias=_symmetric)

    def left_or(key: int) -> Callable[[Tensor, int], Tensor]:
        """From the left, with this key for each row that would otherwise see no key."""

        def mask(real: Tensor, new: int) -> Tensor:
            seen = _from_the_left(real, new) & real
            seen[:, key] |= ~seen.any(dim=1)
            return seen

        return mask

    def before(real: Tensor, new: int) -> Tensor:
        """All earlier keys, but not the token's own key."""
        return torch.ones(new, len(real)).tril(len(real) - new - 1).bool() & real

    def before_or_first(real: Tensor, new: int) -> Tensor:
        seen = before(real, new)
        seen[:, 0] |= ~seen.any(dim=1)
        return seen

    def same(known: Tensor, said: Tensor) -> bool:
        # If a mask leaves a query no key, its row is 0/0, both in the answer and in the mistake that it is compared with.
        return torch.allclose(known, said, rtol=1e-3, atol=1e-3, equal_nan=True)

    left = (
        "Your mask treats the first new token as token 0 of the text. But the new tokens come after all cached tokens, and may "
        "see those, too."
    )
    rows = "You use row and column numbers as positions. But row 0 of q isn't token 0 of the text; it is the first new token"
    return Exercise(
        cases=cases,
        right=_attend,
        mistakes={
            "padding counts": (by_places(_SEEN),
                "Your function is right without padding. But it counts padding between two words as distance, and only words "
                "should count."),
            "padding is seen": (but(mask=_causal),
                "Your distances are right, but your queries still look at padding. The mask has to use `real`, too."),
            **{f"open, {bias.__name__}": (but(mask=_but_padding(_open), bias=bias),
                "In your function, new tokens see the new tokens after them. But the causal mask also applies among the new "
                "tokens.")
               for bias in (_linear, _symmetric)},
            **{f"open, padding counts, {bias.__name__}": (by_places(_but_padding(_open), bias=bias),
                "In your function, new tokens see the new tokens after them. And you count padding as distance.")
               for bias in (_linear, _symmetric)},
            **{f"from the left, {n}": (but(mask=mask), left)
               for n, mask in enumerate((_from_the_left, _but_padding(_from_the_left), left_or(-1), left_or(0)))},
            **{f"rows, {n}": (by_rows(_SEEN, stands), f"{rows}.") for n, stands in enumerate((_places, _words))},
            **{f"not itself, {mask.__name__}": (but(mask=mask),
                "In your function, a new token doesn't see itself. The last key that a token may see is its own.")
               for mask in (before, before_or_first)},
            "the other sign": (but(bias=lambda distance, slopes: -_linear(distance, slopes)),
                "Your bias makes a key more important the farther away it is. Check the sign."),
            "no bias": (but(bias=lambda distance, slopes: 0 * _linear(distance, slopes)), "You don't add the bias."),
            "one slope": (but(bias=lambda distance, slopes: _linear(distance, slopes[:1])),
                "All your heads use the slope of the first head. But each head has its own slope."),
            "package's slopes": (but(bias=lambda distance, slopes: _linear(distance, alibi_slopes(len(slopes)))),
                "You use the package's slopes for this number of heads. Use the slopes that your function is given."),
            "backwards": (but(bias=lambda distance, slopes: _linear(distance, slopes.flip(0))),
                "You use the slopes in reverse order."),
            "bias divided": (
                lambda q, keys, values, slopes, real: _attend(q, keys, values, slopes / math.sqrt(q.shape[2]), real),
                "You divide the bias by √d, but only q·k should be divided."),
            "not divided": (but(root=lambda d: 1), "You don't divide the scores by √d."),
            "divided twice": (but(root=lambda d: d),
                "You divide the scores by √d twice. The package's `attention` already divides by √d."),
            **{f"divided by √{n}": (but(root=lambda d, n=n: math.sqrt(n)),
                "You divide the scores by the same number for every width. But √d depends on the width of "
                "q.") for n in (8, 64)},
            "padding after the softmax": (
                but(mask=_causal, weigh=lambda scores, mask, real: scores.masked_fill(~mask, -math.inf).softmax(-1) * real),
                "You remove the weights of the padding after the softmax, so the weights of the words don't add up to 1."),
        },
        praise="for one new token and for several, after a cache, with padding before the words and between them, the result "
               "is the same as without padding.",
        same=same,
    )  # fmt: skip
