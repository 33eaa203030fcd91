"""Exercises of chapter 11: the bias of ALiBi from positions, and the assignment on slopes, windows and caches."""

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from posenc_course.alibi import alibi_attention, alibi_bias, alibi_slopes
from posenc_course.checks._verdict import Wrong, answer, answer_on_copies, as_number, as_table, as_truth, check, compare


class _Case(NamedTuple):
    name: str
    queries: list[int]
    keys: list[int]
    num_heads: int


_WHOLE = _Case("0 … 11", list(range(12)), list(range(12)), 8)
_FAR = _Case("5000 … 5011", list(range(5000, 5012)), list(range(5000, 5012)), 8)
_CACHED = _Case("query 11 after keys 0 … 11", [11], list(range(12)), 8)
_GAP = _Case("query 12, keys 0, 1, 2, 9, 10, 11, 12", [12], [0, 1, 2, 9, 10, 11, 12], 8)
_TWELVE = _Case("0 … 11", list(range(12)), list(range(12)), 12)


@check(instead_of=[alibi_bias], draws=False)
def bias(my_bias: Callable[[Tensor, Tensor, int], Any]) -> str:
    """Try my_bias(q_positions, k_positions, num_heads) -> what to add to the scores, (num_heads, L_query, L_key).

    Judged by how it changes from key to key among those that a causal mask leaves, so that a number added to a whole row, which
    softmax forgets, makes no difference; what broadcasts to the shape will do. Tried on a text from 0 on and from 5000 on, with
    a single query after a cache, with a gap between the keys, and with 12 heads. Chapter 11.
    """
    for case, hint in (
        (_WHOLE, _slopes_hint),
        (_FAR, _far_hint),
        (_CACHED, _cached_hint),
        (_GAP, _gap_hint),
        (_TWELVE, _slopes_hint),
    ):
        steps = _steps(my_bias, case)
        if not _close(steps, alibi_slopes(case.num_heads)[:, None].expand_as(steps)):
            raise Wrong(hint(case, steps))
    return (
        "Right: with 8 and with 12 heads, near and far, with a cache and across a gap, a key loses its head's slope per token."
    )


def _call(case: _Case) -> str:
    return f"my_bias with positions {case.name} and {case.num_heads} heads"


def _close(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0.02, atol=1e-6)


def _steps(my_bias: Callable[[Tensor, Tensor, int], Any], case: _Case) -> Tensor:
    """What a head's bias gains per token from each key to the next, (heads, steps): all pairs that some query may look at."""
    call = _call(case)
    q, k = torch.tensor(case.queries), torch.tensor(case.keys)
    result = answer(my_bias, q.clone(), k.clone(), case.num_heads, call=call)
    table = _as_biases(result, (case.num_heads, len(q), len(k)), call)
    seen = k <= q[:, None]
    if not table[:, seen].isfinite().all():
        raise Wrong(f"{call} holds NaN or infinity where a query may look.")
    pairs = seen[:, 1:]  # the later key of each pair of neighbours is visible, so the earlier one is
    return (table.diff(dim=-1) / k.diff())[:, pairs]


def _as_biases(result: Any, shape: tuple[int, ...], call: str) -> Tensor:
    """The result with this shape, (heads, L_query, L_key), also where it only broadcasts to it or has a batch of one."""
    given: tuple[int, ...] | None
    try:
        given = tuple(result.shape if isinstance(result, Tensor) else np.array(result).shape)
    except (TypeError, ValueError, RuntimeError):
        given = None  # as_table says it better
    if given and len(given) == 4 and given[0] == 1:
        result, given = result[0], given[1:]
    if given and len(given) == 3 and given[0] == shape[0] and all(n in (1, m) for n, m in zip(given, shape, strict=True)):
        return as_table(result, given, call=call).expand(shape)
    heads, queries, keys = shape
    hints = {
        (queries, keys): " It has no axis for the heads, and each head has a slope of its own.",
        (1, queries, keys): " It has one head only, and each head has a slope of its own.",
        (queries, keys, heads): " The heads come first.",
        (queries, heads, keys): " The heads come first.",
        (heads, keys, queries): " Rows are queries, columns are keys.",
        (8, queries, keys): " Is the number of heads fixed somewhere?",
    }
    if given in hints:
        raise Wrong(f"{call} has shape {given}, it should be {shape}.{hints[given]}")
    return as_table(result, shape, call=call)


def _slopes_hint(case: _Case, steps: Tensor) -> str:
    """What is wrong with the steps of a whole text."""
    n, right = case.num_heads, alibi_slopes(case.num_heads)
    if not steps.any():
        return f"{_call(case)} is the same for all keys: then it says nothing about position."
    if _close(steps, -right[:, None].expand_as(steps)):
        return "It grows with the distance: the nearest key gets the least, and the first one of the text the most. A sign?"
    slopes = steps.mean(dim=1)
    if not _close(steps, slopes[:, None].expand_as(steps)):
        low, high = steps[0].min().item(), steps[0].max().item()
        return (
            f"It is no straight line: in head 1 of {n}, one token nearer adds between {low:.4f} and {high:.4f}. The bias is "
            "slope times distance; the exponential comes with the softmax, later."
        )
    h = torch.arange(1, n + 1, dtype=torch.float64)
    known = {
        "The first slope is 1 and all are one step of the sequence too steep: are the heads counted from 0?": 2
        ** (-8 * (h - 1) / n),
        "The slopes grow from head to head: the steepest comes first.": right.flip(0),
        "The exponent has the wrong sign: slopes are below 1.": 1 / right,
        "The exponent is not divided by the number of heads.": 2 ** (-8 * h),
        "These are the slopes of 8 heads, continued: in the exponent stands 8h/num_heads.": 2**-h,
        "The base is e where it should be 2.": torch.exp(-8 * h / n),
        "The slopes are right, but sorted. The paper's code appends those of the next power of two, and the heads of a stored "
        "model stand in that order.": right.sort(descending=True).values,
        "This is the sequence of the paper's text, whose ratio fits any number of heads. For one that is no power of two, its "
        "code does something else, and so do the models trained with it.": 2 ** (-8 * h / n),
        "These are the first slopes of 16 heads. The paper's code begins with all of the next smaller power of two.": 2
        ** (-h / 2),
    }
    for hint, wrong in known.items():
        if _close(slopes, wrong) and not (n == 8 and "paper's" in hint):
            return hint
    if _close(slopes, slopes[:1].expand_as(slopes)):
        return f"All heads have the same slope, {slopes[0]:.4f}: each has its own."
    first = int((~torch.isclose(slopes, right, rtol=0.02, atol=1e-6)).int().argmax())
    return (
        f"Head {first + 1} of {n} (counted from 1) gains {slopes[first]:.4f} per token towards the query, "
        f"it should be {right[first]:.4f}."
    )


def _far_hint(case: _Case, steps: Tensor) -> str:
    return (
        "From position 0 on it is right, and wrong from 5000 on, where the distances are the same. Are numbers rounded in half "
        "precision?"
    )


def _cached_hint(case: _Case, steps: Tensor) -> str:
    if not steps.any():
        return "With one query after a cache all keys get the same bias: it was made for as many keys as there are queries."
    if _close(steps, -alibi_slopes(case.num_heads)[:, None].expand_as(steps)):
        return (
            "With one query after a cache the nearest key gets the least: the query stands in row 0 of the tensor, but it is "
            "token 11. Its position has been given to you."
        )
    return "A whole text is right, and a single query after a cache is not: does the distance come from the positions?"


def _gap_hint(case: _Case, steps: Tensor) -> str:
    return (
        "From key 2 to key 9 are seven tokens, though those between them were dropped from the cache. Yours counts places in "
        "the tensor: take the distance from the positions."
    )


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


@check(instead_of=[alibi_slopes])
def slope(my_slope: Callable[[int, int], Any], *, seed: int) -> str:
    """Try my_slope(head, num_heads) -> the slope of one head, counted from 0, as the authors' code has it. Chapter 11."""
    generator = random.Random(seed)
    sizes = [8, 12, 1, 16, 112, 5, generator.choice([20, 24, 40, 56, 71])]
    cases = [(head, size) for size in sizes for head in sorted({0, 1, size // 2, 3 * size // 4, size - 1}) if head < size]

    def right(head: int, num_heads: int) -> float:
        return float(alibi_slopes(num_heads)[head])

    def below(num_heads: int) -> int:
        """The next smaller power of two, or the number itself."""
        return 1 << (num_heads.bit_length() - 1)

    def pattern(rest: Callable[[int, int], float], first: Callable[[int, int], float] = lambda h, p: 8 * (h + 1) / p) -> Any:
        """2 to the minus first(head, power), or rest(head among the rest, power)."""

        def slope(head: int, num_heads: int) -> float:
            power = below(num_heads)
            return float(2.0 ** -(first(head, power) if head < power else rest(head - power, power)))

        return slope

    def between(j: int, power: int) -> float:
        return 4 * (2 * j + 1) / power

    mistakes = [
        (lambda head, size: 2 ** (-8 * (head + 1) / size),
         "This is the formula of the paper's text. For 12 heads its code does something else: it begins with the slopes of 8."),
        (lambda head, size: 2 ** (-8 * head / size),
         "This is the formula of the paper's text, from h = 0 on: its h begins with 1, and for 12 heads its code has another."),
        (lambda head, size: float(alibi_slopes(size).sort(descending=True).values[head]),
         "The slopes are right, but sorted. A stored model has its heads in the order of the code: the additional ones last."),
        (lambda head, size: float(torch.cat((alibi_slopes(size)[below(size):], alibi_slopes(size)[: below(size)]))[head]),
         "The additional slopes come first for you: they come last."),
        (lambda head, size: 2 ** (-8 * (head + 1) / (below(size) if below(size) == size else 2 * below(size))),
         "With 12 heads these are the first slopes of 16. The code begins with all of the next smaller power of two."),
        (pattern(lambda j, p: 8 * (j + 1) / (2 * p)),
         "The first 8 of 12 are right. Of the slopes of 16 you take one after the other: every other one is there already."),
        (pattern(lambda j, p: 8 * (j + 1) / p),
         "The additional slopes repeat the first ones, and no two heads have the same: which ones of 16 heads are new?"),
        (pattern(lambda j, p: 8 * (p + j + 1) / p),
         "The first eight of 12 are right, and then the sequence runs on: the additional slopes lie between the first ones."),
        (pattern(lambda j, p: 8 * (2 * (j + p) + 1) / (2 * p)),
         "The additional head counts among all heads for you: for 12 heads, head 8 is the first of the additional ones."),
        (pattern(lambda j, p: 4 * (2 * j) / p, lambda h, p: 8 * h / p),
         "Your first slope is 1, and all are one step too steep: heads count from 0, and the h of the formula from 1."),
        (pattern(between, lambda h, p: 8 * h / p),
         "Your first slope is 1, and those of 8 heads are one step too steep: heads count from 0, the formula's h from 1."),
        (pattern(between, lambda h, p: h + 1.0), "In the exponent of the first ones stands 8 divided by a number of heads."),
        (lambda head, size: 1 / right(head, size), "The exponent lacks its minus: a slope is below 1."),
        (lambda head, size: -right(head, size), "A slope is a positive number; the minus stands in the bias."),
        (lambda head, size: math.log2(right(head, size)), "This is the exponent: the slope is 2 to it."),
        (lambda head, size: -math.log2(right(head, size)), "This is the exponent, without its minus: the slope is 2 to it."),
        (lambda head, size: right(size - 1 - head, size), "The heads are counted from the end: head 0 has the first slope."),
        (lambda head, size: math.exp(math.log2(right(head, size))), "The base is e for you, and should be 2."),
    ]  # fmt: skip
    praise = "one head at a time, from 1 head to 112, in the order in which models have them."
    return compare(my_slope, cases, right, mistakes, name="slope", praise=praise, tolerance=1e-5)


@check()
def same_bias(my_same: Callable[[Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_same(a, b) -> whether two biases (L, L) give the same causal attention to all queries and keys.

    Sixteen pairs, each with its truth known by how it was made. Chapter 11.
    """
    generator = torch.Generator().manual_seed(seed)
    length = 5 + seed % 4
    m = torch.arange(length, dtype=torch.float64)[:, None]
    n = m.T
    slope = float(0.2 + torch.rand(1, generator=generator))
    alibi = -slope * (m - n)
    of_row, of_column = (3 * torch.randn(length, dtype=torch.float64, generator=generator) for _ in range(2))
    future = n > m
    noise = torch.randn(length, length, dtype=torch.float64, generator=generator)
    first, second, last = (torch.zeros(length, length, dtype=torch.float64) for _ in range(3))
    first[0, 0], second[1, 0], last[-1, 0] = 5.0, 0.5, 0.5
    faint = alibi.clone()
    faint[:, 0] = -50
    fainter = faint.clone()
    fainter[3:, 0] -= 20
    # What sets them apart: nothing, a number per row, the future (which nobody sees), or something that a query sees.
    pairs: list[tuple[str, Tensor, Tensor, bool]] = [
        ("twice the same", alibi, alibi.clone(), True),
        ("a number added to all", alibi, alibi + 2.5, True),
        ("a number added to each row", noise, noise + of_row[:, None], True),
        ("slope·n in every row", alibi, (slope * n).expand(length, -1), True),
        ("-slope·|m - n|", (slope * n).expand(length, -1), -slope * (m - n).abs(), True),
        ("other numbers in the future", alibi, torch.where(future, noise, alibi), True),
        ("minus infinity in the future", alibi.masked_fill(future, -math.inf), alibi + of_row[:, None], True),
        ("another number at the first query's only key", noise, noise + first, True),
        ("a number added to each column", alibi, alibi + of_column, False),
        ("another sign", alibi, -alibi, False),
        ("another slope", alibi, 1.5 * alibi, False),
        ("no bias", alibi, torch.zeros_like(alibi), False),
        ("another number for the last query's first key", alibi, alibi + last, False),
        ("another number for the second query's first key", alibi, alibi + second, False),
        ("other numbers far below the largest", faint, fainter, False),
        ("0.001·n more in every row", noise, noise + 0.001 * n, False),
    ]
    said = {}
    for name, a, b, _ in pairs:
        call = f"same_bias(a, b), {name},"
        said[name] = as_truth(answer_on_copies(my_same, a, b, call=call), call=call)
    missed = {name for name, _, _, truth in pairs if said[name] != truth}
    if missed == {"other numbers far below the largest"}:
        raise Wrong(
            "You are taken in by a key whose numbers lie far below the largest of their row: a weight of nearly 0 is not 0, "
            "and a larger score brings it back. Compare the biases for all scores, not the weights for some."
        )
    missed.discard("other numbers far below the largest")  # whoever misses more shall hear of that
    if not missed:
        return f"Right: all {len(pairs)} pairs, of which eight are one bias, though seven of these do not look it."
    same = {name for name, truth in said.items() if truth}
    rows = {"a number added to each row", "slope·n in every row"}
    only_key = "another number at the first query's only key"
    futures = {"other numbers in the future", "minus infinity in the future", "-slope·|m - n|", only_key}
    if len(same) in (0, len(pairs)):
        raise Wrong(f"You say {said['no bias']} to all pairs: what does a softmax make of each of the two?")
    if same <= {"twice the same", "other numbers in the future", only_key}:
        raise Wrong(
            "Only equal numbers are the same for you: the softmax of a row forgets what is added to the whole row, and what "
            "is then left may differ in the last digit."
        )
    if "a number added to each column" in missed and rows & missed:
        raise Wrong("You forgive what is added to a column: a softmax runs along a row.")
    if "a number added to all" in same and not rows & same:
        raise Wrong("One number for all is forgiven, and one for each row is not: a softmax takes each row for itself.")
    accepted = {name for name, _, _, truth in pairs if not truth and said[name]}
    if "0.001·n more in every row" in missed and missed <= accepted - {"a number added to each column"}:
        raise Wrong("Your tolerance is too large: 0.001 more per key is no rounding, which stays below 1e-5.")
    if missed == {"minus infinity in the future"}:
        raise Wrong("Infinity less infinity is no number: look at what a query sees, and at nothing else.")
    if missed <= futures:
        raise Wrong("You compare the future too: a causal mask hides it, so that what stands there does not matter.")
    if missed <= {f"another number for the {which} query's first key" for which in ("last", "second")}:
        raise Wrong(f"You are taken in by {' and by '.join(sorted(missed))}: do you look at all keys of every query?")
    name, truth = next((name, truth) for name, _, _, truth in pairs if name in missed)
    raise Wrong(f"same_bias(a, b), {name}, gives {said[name]}, and should give {truth}.")


def _share(slope: float, keys: int, length: int) -> float:
    """What the nearest keys hold of the attention, by adding up."""
    weights = (-slope * torch.arange(length, dtype=torch.float64)).softmax(dim=0)
    return float(weights[:keys].sum())


@check()
def slope_for(my_slope_for: Callable[[int, float, int], Any], *, seed: int) -> str:
    """Try my_slope_for(keys, share, length) -> the slope with which the nearest keys hold this share of a text of this length.

    Judged by what they hold, added up from a softmax. Chapter 11.
    """
    generator = random.Random(seed)
    cases = [(6, 0.75, 12), (1, 0.75, 2), (1, 0.95, 50)]
    for _ in range(5):
        # Short enough that the text's end is felt: the formula for an endless text is off by a hundredth at least.
        keys = generator.randrange(5, 40)
        length = keys * generator.randrange(2, 4) + generator.randrange(4)
        even = keys / length
        cases.append((keys, round(even + (1 - even) * generator.uniform(0.2, 0.5), 2), length))
    cases.append((590, 0.9, 2048))
    said = [
        as_number(answer(my_slope_for, *case, call=_slope_call(case)), call=_slope_call(case), should="one number, the slope")
        for case in cases
    ]
    held = [_share(slope, keys, length) for slope, (keys, _, length) in zip(said, cases, strict=True)]
    wrong = [i for i, (has, (_, share, _)) in enumerate(zip(held, cases, strict=True)) if abs(has - share) > 1.5e-3]
    if not wrong:
        return (
            f"Right: {len(cases)} heads, and the nearest keys of each hold what they should. For 90 % on 590 of 2,048 the "
            f"slope is 1/{1 / said[-1]:.0f}."
        )

    def means(rule: Callable[[int, float, int], float]) -> bool:
        return all(math.isclose(s, rule(*case), rel_tol=0.01) for s, case in zip(said, cases, strict=True))

    if means(lambda keys, share, length: math.log(1 / (1 - share)) / keys):
        raise Wrong(
            "This is the formula for a text without end. Where a text is short, the far keys that it counts are not there, and "
            "the near ones hold too much."
        )
    if means(lambda keys, share, length: -math.log(1 / (1 - share)) / keys):
        raise Wrong("The sign is turned round, and it is the formula for a text without end: this one has an end.")
    if means(lambda keys, share, length: math.log2(1 / (1 - share)) / keys):
        raise Wrong("The softmax has the base e, not 2; and this is the formula for a text without end.")
    if means(lambda keys, share, length: math.log(1 / share) / keys):
        raise Wrong(
            "This leaves the share to all the other keys, in a text without end: share and 1 - share have changed places."
        )
    if means(lambda keys, share, length: math.log(2) / keys):
        raise Wrong("This gives half of the attention, whatever share says, and in a text without end.")
    if len(set(said)) == 1:
        raise Wrong(f"You return {said[0]:.6g} whatever is asked: does your search move?")
    for name, rule in (
        ("keys - 1", lambda keys, length, slope: _share(slope, keys - 1, length)),
        ("keys + 1", lambda keys, length, slope: _share(slope, keys + 1, length)),
        ("length - 1", lambda keys, length, slope: _share(slope, keys, length - 1)),
        ("length + 1", lambda keys, length, slope: _share(slope, keys, length + 1)),
    ):  # fmt: skip
        if all(
            abs(rule(keys, length, slope) - share) < 1e-3
            for slope, (keys, share, length) in zip(said, cases, strict=True)
            if 1 < keys < length - 1
        ):
            raise Wrong(f"Your slopes would be right for {name}: the query's own key, at distance 0, is the first of the keys.")
    if all(abs(1 - _share(slope, length - keys, length) - share) < 1e-3
           for slope, (keys, share, length) in zip(said, cases, strict=True)):  # fmt: skip
        raise Wrong("Your slopes are turned round: they give the share to the farthest keys, and are below 0.")
    if all(abs(1 - has - share) < 1e-3 for has, (_, share, _) in zip(held, cases, strict=True) if share != 0.5):
        raise Wrong("Your slopes leave the share to all the other keys: the nearest should hold it.")
    alike = max(said[i] for i in wrong) - min(said[i] for i in wrong) < 1e-3
    steep, flat = said[wrong[0]] > max(said) - 1e-3, said[wrong[0]] < min(said) + 1e-3
    if alike and steep and 2 in wrong and held[2] < cases[2][1] - 0.01:
        hint = f" All smaller ones are right: does your search end at {said[2]:.3g}? A slope may be larger."
    elif alike and flat and all(held[i] > cases[i][1] for i in wrong) and held[-1] > cases[-1][1] + 0.05:
        hint = f" All larger ones are right: does your search begin at {said[-1]:.3g}? A slope may be smaller."
    elif all(abs(held[i] - cases[i][1]) < 0.05 for i in wrong):
        hint = " That is near: search on, in smaller steps."
    else:
        hint = ""
    keys, share, length = cases[wrong[0]]
    nearest = f"the nearest {keys} keys hold" if keys > 1 else "the nearest key holds"
    raise Wrong(
        f"{_slope_call(cases[wrong[0]])} gives {said[wrong[0]]:.6g}; with it, {nearest} {held[wrong[0]]:.3f} of the "
        f"attention, and should hold {share:g}.{hint}"
    )


def _slope_call(case: tuple[int, float, int]) -> str:
    return "slope_for({}, {:g}, {})".format(*case)


@check(instead_of=[alibi_attention])
def attend(my_attend: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_attend(q, keys, values, slopes, real) -> (heads, new, d), causal attention with ALiBi beside a cache with padding.

    q (heads, new, d) of the last tokens, keys and values (heads, all, d) of all of them, real (all,) False where a token is
    padding. Right if it gives what the text gives without its padding. Chapter 11.
    """
    generator = random.Random(seed)
    heads, d = 4, 8

    def case(number: int, real: list[int], new: int) -> tuple[Tensor, ...]:
        def draw(index: int, rows: int, size: float) -> Tensor:
            torch_generator = torch.Generator().manual_seed(10 * (seed + number) + index)
            return size * torch.randn(heads, rows, d, dtype=torch.float64, generator=torch_generator)

        length = len(real)
        slopes = alibi_slopes(heads)
        if number:  # of another model, in any order
            slopes = torch.tensor([generator.uniform(0.05, 1) for _ in range(heads)], dtype=torch.float64)
        return draw(0, new, 1.5), draw(1, length, 1.5), draw(2, length, 1.0), slopes, torch.tensor(real, dtype=torch.bool)

    gap = generator.randrange(2, 5)
    cases = [
        case(0, [1] * 7, 7),  # a prompt
        case(1, [1] * 9, 1),  # a single token after a cache
        case(2, [1] * 8, 3),
        case(3, [0] * gap + [1] * 5, 1),  # padding in front
        case(4, [1] * 4 + [0] * gap + [1] * 3, 1),  # and between prompt and answer
        case(5, [0, 0, 1, 1, 1, 0, 1, 1, 1], 3),
    ]

    def attention_but(
        of_query: Callable[[Tensor, int], Tensor] = lambda real, new: _counted(real)[-new:],
        of_keys: Callable[[Tensor, int], Tensor] = lambda real, new: _counted(real),
        bias: Callable[[Tensor, Tensor], Tensor] = lambda distance, slopes: -slopes[:, None, None] * distance,
        mask: Callable[[Tensor, int], Tensor] = lambda real, new: _seen(real, new) & real,
        root: float = math.sqrt(d),
    ) -> Callable[..., Tensor]:
        def attend(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
            new = q.shape[1]
            distance = (of_query(real, new)[:, None] - of_keys(real, new)).double()
            scores = q @ keys.mT / root + bias(distance, slopes)
            return scores.masked_fill(~mask(real, new), -math.inf).softmax(dim=-1) @ values

        return attend

    def places(real: Tensor, new: int) -> Tensor:
        return torch.arange(len(real))

    def rows(real: Tensor, new: int) -> Tensor:
        return torch.arange(new)

    def from_the_left(real: Tensor, new: int) -> Tensor:
        return torch.ones(new, len(real)).tril().bool()

    def one_sided(distance: Tensor, slopes: Tensor) -> Tensor:
        return -slopes[:, None, None] * distance

    def both_sides(distance: Tensor, slopes: Tensor) -> Tensor:
        return -slopes[:, None, None] * distance.abs()

    def all_open(real: Tensor, new: int) -> Tensor:
        return torch.ones(new, len(real)).bool()

    def by_places(mask: Callable[[Tensor, int], Tensor], bias: Any = one_sided) -> Callable[..., Tensor]:
        return attention_but(of_query=lambda real, new: places(real, new)[-new:], of_keys=places, mask=mask, bias=bias)

    def by_rows(mask: Callable[[Tensor, int], Tensor]) -> Callable[..., Tensor]:
        return attention_but(of_query=rows, of_keys=places, mask=mask, bias=both_sides)

    def from_the_left_if_any(real: Tensor, new: int) -> Tensor:
        """With the last key for a row that would see none."""
        mask = from_the_left(real, new) & real
        mask[:, -1] |= ~mask.any(dim=1)
        return mask

    def open_and_real(real: Tensor, new: int) -> Tensor:
        return all_open(real, new) & real

    def seen_and_real(real: Tensor, new: int) -> Tensor:
        return _seen(real, new) & real

    mistakes = [
        (by_places(seen_and_real),
         "Without padding it is right, and with padding between two words it is not: count the words between them."),
        (by_places(_seen), "The padding is looked at and counted: without it all is right."),
        (attention_but(mask=_seen), "The padding is not counted, and is still looked at: real has to enter the mask too."),
        *((attention_but(mask=open_and_real, bias=bias),
           "Several new tokens see those after them: among the new ones the causal mask holds.")
          for bias in (one_sided, both_sides)),
        *((by_places(open_and_real, bias=bias),
           "Several new tokens see those after them, and padding is counted as distance.")
          for bias in (one_sided, both_sides)),
        *((attention_but(mask=mask),
           "Your mask counts rows from 0: row r of the new tokens stands after all cached ones, and sees those too.")
          for mask in (from_the_left, lambda real, new: from_the_left(real, new) & real, from_the_left_if_any)),
        (by_rows(seen_and_real),
         "The distance is taken between rows and columns: row 0 of q is not token 0 of the text, but the first new one."),
        (by_rows(open_and_real),
         "The distance is taken between rows and columns, and new tokens see those after them: row 0 of q is not token 0."),
        (by_rows(_seen),
         "The distance is taken between rows and columns, and padding is looked at: row 0 of q is not token 0."),
        (attention_but(bias=lambda distance, slopes: slopes[:, None, None] * distance),
         "A far key gains by its distance: look at a sign."),
        (attention_but(bias=lambda distance, slopes: 0 * slopes[:, None, None] * distance), "The bias is missing."),
        (attention_but(bias=lambda distance, slopes: -slopes[0] * distance[None]), "All heads have the first one's slope."),
        (attention_but(bias=lambda distance, slopes: one_sided(distance, alibi_slopes(len(slopes)))),
         "You take the package's slopes for so many heads, whatever slopes says: take those that are handed over."),
        (attention_but(bias=lambda distance, slopes: -slopes.flip(0)[:, None, None] * distance), "The slopes are in reverse."),
        (attention_but(root=1.0), "The scores are not divided by √d."),
        (attention_but(bias=lambda distance, slopes: -slopes[:, None, None] * distance / math.sqrt(d)),
         "The bias has been divided by √d: that is for q·k alone."),
    ]  # fmt: skip

    def no_nan(*given: Any) -> Any:
        """Where padding in front is all that a mistake sees, its row is 0/0, as is that of whoever makes it."""
        result = my_attend(*given)
        return torch.nan_to_num(result, nan=1e6) if isinstance(result, Tensor) else result

    def same_nan(mistake: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *given: torch.nan_to_num(mistake(*given), nan=1e6)

    if not callable(my_attend):
        answer(my_attend, call="attend")  # which says so
    praise = "one token and several, beside a cache, with padding in front and in between: as if the padding were not there."
    return compare(
        no_nan,
        cases,
        attention_but(),
        [(same_nan(mistake), hint) for mistake, hint in mistakes],
        name="attend",
        praise=praise,
        tolerance=1e-3,
    )


def _counted(real: Tensor) -> Tensor:
    """Positions that pass over the padding."""
    return real.long().cumsum(dim=0) - 1


def _seen(real: Tensor, new: int) -> Tensor:
    """Whether a new token may look at a key, padding or not."""
    return torch.ones(new, len(real)).tril(len(real) - new).bool()
