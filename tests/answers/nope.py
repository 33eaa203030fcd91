"""Answers to the exercises on choosing."""

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import blind

Job = Callable[[str], Any]

# ── brackets ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

BRACKETS: dict[str, Any] = {"^": [1.0, 0.0], "(": [0.0, 1.0], ")": [0.0, -1.0]}


def quotient(mean: Tensor) -> Tensor:
    return mean[1] / mean[0]


def reading(readout: Callable[[Tensor], Any]) -> tuple[Any, Any]:
    return BRACKETS.get, readout


def valued(**changed: Any) -> tuple[Any, Any]:
    names = {"first": "^", "opened": "(", "closed": ")"}
    return (BRACKETS | {names[name]: vector for name, vector in changed.items()}).get, quotient


# ── what a job needs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def order_counts(job: Job, texts: list[str]) -> bool:
    return any(job("".join(order)) != job(text) for text in texts for order in itertools.permutations(text))


def needs(job: Job, texts: list[str]) -> tuple[bool, int]:
    reach = 0
    for text in texts:
        for window in range(len(text)):
            if job(text[len(text) - window :]) != job(text):
                reach = max(reach, window + 1)
    return order_counts(job, texts), reach


def needs_downwards(job: Job, texts: list[str]) -> list[Any]:
    """From the longest window down, as long as all texts have their answers."""
    window = max(map(len, texts))
    while window and all(job(text[max(0, len(text) - window + 1) :]) == job(text) for text in texts):
        window -= 1
    answers = [{job("".join(order)) for order in itertools.permutations(text)} for text in texts]
    return [max(map(len, answers)) > 1, np.int64(window)]


def needs_by_cutting(job: Job, texts: list[str]) -> tuple[Any, float]:
    """Letters are cut off in front; the shortest cut that does harm decides."""

    def harmless(text: str) -> int:
        return next((cut - 1 for cut in range(1, len(text) + 1) if job(text[cut:]) != job(text)), len(text))

    same = [job("".join(order)) == job(text) for text in texts for order in itertools.permutations(text)]
    return ~np.all(same), float(max(len(text) - harmless(text) for text in texts))


def last(text: str, window: int) -> str:
    return text[-window:]


def upwards(job: Job, texts: list[str], cut: Callable[[str, int], str] = lambda t, n: t[max(len(t) - n, 0) :]) -> int:
    return next(n for n in itertools.count() if all(job(cut(text, n)) == job(text) for text in texts))


def by_halving(job: Job, texts: list[str]) -> int:
    low, high = 0, max(map(len, texts))
    while low < high:
        middle = (low + high) // 2
        suits = all(job(text[max(len(text) - middle, 0) :]) == job(text) for text in texts)
        low, high = (low, middle) if suits else (middle + 1, high)
    return low


def with_order(order: Callable[[Job, list[str]], Any]) -> Callable[[Job, list[str]], Any]:
    return lambda job, texts: (order(job, texts), needs(job, texts)[1])


def with_reach(reach: Callable[[Job, list[str]], Any]) -> Callable[[Job, list[str]], Any]:
    return lambda job, texts: (order_counts(job, texts), reach(job, texts))


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def sum_by_squares(scores: Tensor) -> bool:
    t = scores.tolist()
    return all(
        abs(t[r][c] + t[r + 1][c + 1] - t[r][c + 1] - t[r + 1][c]) < 1e-6
        for r in range(len(t) - 1)
        for c in range(len(t[0]) - 1)
    )


def sum_by_means(scores: Tensor) -> Any:
    table = scores.numpy()
    best = table.mean(axis=0) + table.mean(axis=1, keepdims=True) - table.mean()
    return np.allclose(table, best)


def sum_by_differences(scores: Tensor) -> Tensor:
    gaps = scores - scores[0]
    return (gaps.amax(dim=1) - gaps.amin(dim=1) < 1e-6).all()


def sum_by_fitting(scores: Tensor) -> bool:
    """The least squares of all f and g leave nothing over."""
    rows, columns = scores.shape
    places = torch.tensor(list(itertools.product(range(rows), range(columns))))
    which = torch.cat([torch.eye(rows)[places[:, 0]], torch.eye(columns)[places[:, 1]]], dim=1).double()
    fitted = torch.linalg.lstsq(which, scores.flatten()[:, None], driver="gelsd").solution
    return bool((which @ fitted - scores.flatten()[:, None]).abs().max() < 1e-6)


def is_sum_squares(scores: Tensor) -> bool:
    s = scores.double()
    return bool(((s - s[:1]) - (s[:, :1] - s[:1, :1])).abs().max() <= 1e-6)


def is_sum_centred(scores: Tensor) -> bool:
    s = scores.double()
    left = s - s.mean(0, keepdim=True) - s.mean(1, keepdim=True) + s.mean()
    return bool(torch.allclose(left, torch.zeros_like(left), rtol=0, atol=1e-6))


def is_sum_rank(scores: Tensor) -> bool:
    s = scores.double()
    return bool(torch.linalg.svdvals((s[1:] - s[0]) - (s[1:, :1] - s[0, :1])).max() < 1e-6)


def is_sum_two_rows(scores: Tensor) -> bool:
    step = scores[1].double() - scores[0].double()
    return bool((step - step[0]).abs().max() < 1e-6)


def is_sum_average(scores: Tensor) -> bool:
    s = scores.double()
    return bool((s[1:, 1:] + s[:-1, :-1] - s[1:, :-1] - s[:-1, 1:]).mean().abs() < 1e-6)


def is_sum_exact(scores: Tensor) -> bool:
    s = scores
    return bool((s[1:, 1:] + s[:-1, :-1] == s[1:, :-1] + s[:-1, 1:]).all())


def is_sum_coarse(scores: Tensor) -> bool:
    s = scores.double()
    return bool(((s - s[:1]) - (s[:, :1] - s[:1, :1])).abs().max() < 0.1)


def is_sum_constant_steps(scores: Tensor) -> bool:
    """Takes f and g for straight lines."""
    s = scores.double()
    return bool(s.diff(dim=0).std() < 1e-6 and s.diff(dim=1).std() < 1e-6)


# ── blind layers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def apart_by_shares(text: str) -> int:
    seen = set()
    for m, letter in enumerate(text):
        past = text[: m + 1]
        seen.add((letter, frozenset((other, Fraction(past.count(other), m + 1)) for other in past)))
    return len(seen)


def apart_by_counting(text: str) -> int:
    counts: Counter[str] = Counter()
    kinds = set()
    for letter in text:
        counts[letter] += 1
        scale = np.gcd.reduce(list(counts.values()))
        kinds.add((letter, tuple(sorted((other, int(count // scale)) for other, count in counts.items()))))
    return len(kinds)


def apart_by_layer(text: str) -> int:
    """A layer of one random head, written out."""
    torch.manual_seed(3)
    letters = sorted(set(text))
    vectors = torch.randn(len(letters), 12, dtype=torch.float64)
    score, value = torch.randn(2, 12, 12, dtype=torch.float64)
    x = vectors[[letters.index(letter) for letter in text]]
    outputs: list[Tensor] = []
    for m in range(len(x)):
        weights = (0.1 * x[: m + 1] @ score @ x[m]).softmax(dim=0)
        y = weights @ x[: m + 1] @ value
        if not any(torch.allclose(y, other, atol=1e-9) for other in outputs):
            outputs.append(y)
    return len(outputs)


def told_shares(text: str) -> int:
    found = set()
    for n in range(1, len(text) + 1):
        counts = Counter(text[:n])
        found.add((text[n - 1], frozenset((x, Fraction(c, n)) for x, c in counts.items())))
    return len(found)


def told_gcd(text: str) -> int:
    letters, found = sorted(set(text)), set()
    for n, asks in enumerate(text, 1):
        counts = [text[:n].count(letter) for letter in letters]
        common = math.gcd(*counts)
        found.add((asks, *(c // common for c in counts)))
    return len(found)


def told_layer(text: str) -> int:
    """Ask a layer."""
    generator = torch.Generator().manual_seed(3)
    names = {letter: k for k, letter in enumerate(sorted(set(text)))}
    x = torch.tensor([names[letter] for letter in text])
    scores = torch.randn(len(names), len(names), generator=generator, dtype=torch.float64)
    values = torch.randn(len(names), 4, generator=generator, dtype=torch.float64)
    table = scores[x][:, x].masked_fill(~torch.ones(len(x), len(x)).tril().bool(), -math.inf)
    outputs = table.softmax(-1) @ values[x]
    found: list[Tensor] = []
    for row in outputs:
        if not any(torch.allclose(row, other, rtol=0, atol=1e-10) for other in found):
            found.append(row)
    return len(found)


def told_counts(text: str) -> int:
    """Numbers of letters instead of shares."""
    return len({(text[n], tuple(sorted(Counter(text[: n + 1]).items()))) for n in range(len(text))})


def told_own_share(text: str) -> int:
    """Only how much of the text so far is the asker."""
    return len({(x, Fraction(text[:n].count(x), n)) for n, x in enumerate(text, 1)})


def told_unnamed(text: str) -> int:
    """Shares without saying whose."""
    found = set()
    for n, x in enumerate(text, 1):
        found.add((x, tuple(sorted(Fraction(c, n) for c in Counter(text[:n]).values()))))
    return len(found)


def told_no_query(text: str) -> int:
    """A layer whose scores are all equal."""
    x = torch.tensor([sorted(set(text)).index(letter) for letter in text])
    values = torch.randn(int(x.max()) + 1, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    means = values[x].cumsum(0) / torch.arange(1, len(x) + 1)[:, None]
    return len(torch.unique((means * 1e9).round(), dim=0))


def told_strict_past(text: str) -> int:
    """The letter itself is left out of the average."""
    found: set[object] = set()
    for n, x in enumerate(text):
        found.add((x, frozenset((y, Fraction(c, n)) for y, c in Counter(text[:n]).items())))
    return len(found)


def apart(seen: Callable[[str, int], Any]) -> Callable[[str], int]:
    return lambda text: len({seen(text, m) for m in range(len(text))})


# ── packing ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def packed(documents: Tensor) -> tuple[Tensor, Tensor]:
    mask = (documents[:, None] == documents[None, :]).tril()
    return mask.sum(dim=1) - 1, mask


def packed_by_loop(documents: Tensor) -> tuple[list[int], list[list[bool]]]:
    names: list[int] = documents.tolist()
    positions: list[int] = []
    for place, name in enumerate(names):
        positions.append(positions[-1] + 1 if place and names[place - 1] == name else 0)
    mask = [[m >= n and names[m] == names[n] for n in range(len(names))] for m in range(len(names))]
    return positions, mask


def packed_in_numpy(documents: Tensor) -> Any:
    names = documents.numpy()
    starts = np.flatnonzero(np.concatenate([[True], np.diff(names) != 0]))
    lengths = np.diff(np.append(starts, len(names)))
    positions = np.arange(len(names)) - np.repeat(starts, lengths)
    return [positions, np.equal.outer(names, names) & np.tri(len(names), dtype=bool)]


def packed_from_lengths(documents: Tensor) -> tuple[Tensor, Tensor]:
    lengths = documents.unique_consecutive(return_counts=True)[1].tolist()
    blocks = [torch.ones(length, length).tril() for length in lengths]
    return torch.cat([torch.arange(length) for length in lengths]), torch.block_diag(*blocks)


def packed_cummax(documents: Tensor) -> tuple[Tensor, Tensor]:
    place = torch.arange(len(documents))
    new = torch.ones(len(documents), dtype=torch.bool)
    new[1:] = documents[1:] != documents[:-1]
    start = torch.where(new, place, 0).cummax(0).values
    return place - start, (start[:, None] <= place) & (place <= place[:, None])


def packed_blocks(documents: Tensor) -> tuple[Tensor, Tensor]:
    lengths = torch.unique_consecutive(documents, return_counts=True)[1].tolist()
    mask = torch.block_diag(*(torch.ones(n, n).tril() for n in lengths)).bool()
    return torch.cat([torch.arange(n) for n in lengths]), mask


def packed_lists(documents: Tensor) -> tuple[Tensor, Tensor]:
    names = documents.tolist()
    rows = [[names[m] == names[n] and n <= m for n in range(len(names))] for m in range(len(names))]
    return torch.tensor([m - names.index(name) for m, name in enumerate(names)]), torch.tensor(rows)


def packed_ascending(documents: Tensor) -> tuple[Tensor, Tensor]:
    """Takes the numbers for ascending ones."""
    same = documents[:, None] >= documents
    return packed_blocks(documents)[0], same & torch.ones_like(same).tril()


def packed_sorted(documents: Tensor) -> tuple[Tensor, Tensor]:
    """The lengths in the order of the numbers."""
    lengths = torch.unique(documents, return_counts=True)[1].tolist()
    return torch.cat([torch.arange(n) for n in lengths]), packed_blocks(documents)[1]


def packed_scores(documents: Tensor) -> tuple[Tensor, Tensor]:
    """What one adds to the scores instead of a mask."""
    positions, mask = packed_blocks(documents)
    return positions, torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


def packed_backwards(documents: Tensor) -> tuple[Tensor, Tensor]:
    mask = packed_blocks(documents)[1]
    return mask.sum(0) - 1, mask


RIGHT: dict[str, list[Any]] = {
    "nope.depth": [
        reading(quotient),
        reading(lambda mean: float(mean[1]) * round(1 / float(mean[0]))),
        reading(lambda mean: np.round(mean.numpy()[1] / mean.numpy()[0])),
        (
            lambda token: [0, 2.0 * (token == "("), 2.0 * (token == ")"), 4.0 * (token == "^")],
            lambda m: 2 * (m[1] - m[2]) / m[3],
        ),
        (
            lambda token: np.array([3.0 if token == "^" else 0.0, {"(": 1.0, ")": -1.0}.get(token, 1.0)]),
            lambda mean: 3 * float(mean[1]) / float(mean[0]) - 1,
        ),
    ],
    "nope.needs": [needs, needs_downwards, needs_by_cutting],
    "nope.is_sum": [
        sum_by_squares,
        sum_by_means,
        sum_by_differences,
        sum_by_fitting,
        *blind(is_sum_squares, is_sum_centred, is_sum_rank),
    ],
    "nope.told_apart": [
        apart_by_shares,
        apart_by_counting,
        apart_by_layer,
        *blind(told_shares, told_gcd, told_layer),
    ],
    "nope.packed": [
        packed,
        packed_by_loop,
        packed_in_numpy,
        packed_from_lengths,
        *blind(packed_cummax, packed_blocks, packed_lists),
    ],
}  # fmt: skip

WRONG: dict[str, list[Any]] = {
    "nope.depth": [
        ("upside down", reading(lambda mean: mean[0] / (mean[1] + 1e-9)), "After ^, the depth is 0"),
        ("always 1", reading(lambda mean: 1), "After ^, the depth is 0, but my_readout returns 1."),
        ("division by zero", reading(lambda mean: mean[0] / (mean[1] * 0)), "returned inf"),
        ("rounded", reading(lambda mean: round(float(mean[1]))), "After ^(, the depth is 1, but my_readout returns 0."),
        ("the vector", reading(lambda mean: mean), "returned (2,) numbers, but it should return one number"),
        ("a word", reading(lambda mean: "deep"), "returned a str, but it should return one number"),
        ("closing is nothing", valued(closed=[0.0, 0.0]), "not those that are closed"),
        ("nothing to divide by", valued(first=[0.0, 0.0]), "Does the first token add something"),
        ("opening leads down", valued(opened=[0.0, -1.0], closed=[0.0, 1.0]), "an opening bracket lowers the depth"),
        ("two lengths", valued(opened=[1.0]), "all vectors should have the same length"),
        ("a number", valued(first=1.0), "has shape ()"),
        ("not a number", valued(first=[math.nan, 0.0]), "should return one vector of finite numbers"),
        ("text", valued(opened="up"), "isn't a table of numbers"),
        ("none", ({}.get, quotient), "Not tried yet"),
    ],
    "nope.needs": [
        ("the first that suits all", with_reach(upwards), "by accident"),
        ("text[-0:]", with_reach(lambda job, texts: upwards(job, texts, last)), "text[-0:] is the whole text"),
        ("by halving", with_reach(by_halving), "occurs an even number of times, in one text"),
        ("shuffled once", with_order(lambda job, texts: any(job(t[1:] + t[:1]) != job(t) for t in texts)), "so try them all"),
        (
            "two letters exchanged",
            with_order(lambda job, texts: any(job(t[1::-1] + t[2:]) != job(t) for t in texts)),
            "so try them all",
        ),
        ("whether the words differ", with_order(lambda job, texts: len({job(text) for text in texts}) > 1), None),
        (
            "how many orders differ",
            with_order(lambda job, texts: sum(job("".join(p)) != job(t) for t in texts for p in itertools.permutations(t))),
            "it should return a single True or False",
        ),
        ("exchanged", lambda job, texts: needs(job, texts)[::-1], "it should return a single True or False"),
        ("the reach alone", lambda job, texts: needs(job, texts)[1], "it should return 2 values"),
        (
            "one for each text",
            with_reach(lambda job, texts: [needs(job, [text])[1] for text in texts]),
            "it should return one number",
        ),
        ("a share", with_reach(lambda job, texts: needs(job, texts)[1] / max(map(len, texts))), "should return a whole number"),
        ("both for the first text", lambda job, texts: needs(job, texts[:1]), "You use only the first text"),
        (
            "backwards, and the first that suits",
            lambda job, texts: (any(job(t[::-1]) != job(t) for t in texts), upwards(job, texts)),
            None,
        ),
    ],
    "nope.is_sum": [
        (
            "one square",
            lambda t: bool(t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0] < 1e-6),
            "one square of four patches, and in one direction",
        ),
        ("one square, both signs", lambda t: torch.allclose(t[0, 0] + t[1, 1], t[0, 1] + t[1, 0]), "one square of four"),
        ("a product", lambda t: bool(torch.linalg.svdvals(t)[1] < 1e-9), "look for products"),
        ("rank two", lambda t: bool((torch.linalg.svdvals(t)[2:] < 1e-9).all()), "rank 2 or less"),
        (
            "one step for all rows",
            lambda t: torch.allclose(t[1:] - t[0], (t[1, 0] - t[0, 0]).expand(len(t) - 1, t.shape[1])),
            "never return True wrongly",
        ),
        (
            "along the diagonal",
            lambda t: all(abs(t[k, k] + t[k + 1, k + 1] - t[k, k + 1] - t[k + 1, k]) < 1e-6 for k in range(min(t.shape) - 1)),
            "squares along the diagonal",
        ),
        (
            "as many columns as rows",
            lambda t: all(
                abs(t[r, c] + t[r + 1, c + 1] - t[r, c + 1] - t[r + 1, c]) < 1e-6
                for r in range(len(t) - 1)
                for c in range(min(len(t), t.shape[1]) - 1)
            ),
            "as many columns as there are rows",
        ),
        ("the opposite", lambda t: not sum_by_squares(t), "the opposite of what it should be"),
        ("always", lambda t: True, "You say True every time"),
        ("never", lambda t: False, "You say False every time"),
        ("a table", lambda t: t.diff(dim=0).diff(dim=1).abs() < 1e-6, "a single True or False"),
        *blind(
            ("two rows only", is_sum_two_rows, "the first two rows"),
            ("squares on average", is_sum_average, "or a mean over all squares"),
            ("no tolerance", is_sum_exact, "allow differences up to 1e-6"),
            ("coarse tolerance", is_sum_coarse, "tolerance is too large"),
            ("symmetric", lambda t: t.shape[0] == t.shape[1] and bool(torch.allclose(t, t.T, atol=1e-6)), None),
            ("straight lines", is_sum_constant_steps, "You require equal steps"),
        ),
    ],
    "nope.told_apart": [
        ("counts", apart(lambda text, m: (text[m], text[: m + 1].count("a"), m)), "all positions apart"),
        ("the set", lambda text: set(text), "it should return one number"),
        ("sets", apart(lambda text, m: frozenset(text[: m + 1])), "count the different letters"),
        *blind(
            ("counts, not shares", told_counts, "tell all positions apart"),
            ("own share only", told_own_share, "share of the query's own letter"),
            ("without the letter itself", told_strict_past, "You leave out the token itself"),
            ("the whole text", lambda text: len({(x, tuple(sorted(text))) for x in text}), "the different letters of the text"),
            ("shares without names", told_unnamed, "shares without their letters"),
            ("equal scores", told_no_query, "which letter is the query"),
            ("changes of letter", lambda text: len(list(itertools.groupby(text))), "You count runs"),
        ),
    ],
    "nope.packed": [
        ("nothing done", lambda names: (torch.arange(len(names)), torch.ones(len(names), len(names)).tril()), "continue"),
        ("positions alone", lambda names: packed(names)[0], "2 values"),
        *blind(
            ("earlier documents too", packed_ascending, "compares the numbers of the documents"),
            ("lengths in order of numbers", packed_sorted, "You use the lengths in the order"),
            (
                "exchanged",
                lambda names: packed_blocks(names)[::-1],
                "part 1 of packed([0, 0, 0, 1, 1, 2, 2, 2]), for rising numbers, has shape (8, 8)",
            ),
            ("scores, not a mask", packed_scores, "that are added to scores"),
            ("counted from the end", packed_backwards, "positions run backwards"),
        ),
    ],
}  # fmt: skip
