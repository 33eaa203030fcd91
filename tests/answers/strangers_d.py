"""Answers by somebody who had not read the checks."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor


# by_place: right
def by_place_nan(losses: Tensor, length: int) -> Tensor:
    missing = -len(losses) % length
    padded = torch.cat([losses, losses.new_full((missing,), float("nan"))])
    return padded.view(-1, length).nanmean(0)


def by_place_bins(losses: Tensor, length: int) -> Tensor:
    place = torch.arange(len(losses)) % length
    return torch.bincount(place, weights=losses) / torch.bincount(place)


def by_place_dict(losses: Tensor, length: int) -> Tensor:
    sums: dict[int, list[float]] = {}
    for number, loss in enumerate(losses.tolist()):
        sums.setdefault(number % length, []).append(loss)
    return torch.tensor([math.fsum(sums[k]) / len(sums[k]) for k in range(length)])


# by_place: wrong
def by_place_drop(losses: Tensor, length: int) -> Tensor:
    whole = len(losses) // length
    return losses[: whole * length].reshape(whole, length).mean(0)


def by_place_zeros(losses: Tensor, length: int) -> Tensor:
    padded = torch.cat([losses, losses.new_zeros(-len(losses) % length)])
    return padded.reshape(-1, length).mean(0)


def by_place_windows(losses: Tensor, length: int) -> Tensor:
    return torch.stack([piece.mean() for piece in losses.split(length)])


def by_place_transposed(losses: Tensor, length: int) -> Tensor:
    whole = len(losses) // length
    return losses[: whole * length].reshape(length, whole).mean(1)


def by_place_running(losses: Tensor, length: int) -> Tensor:
    return losses.unfold(0, length, 1).mean(0)


def by_place_window_means(losses: Tensor, length: int) -> Tensor:
    """The last window averaged in as a second mean of means."""
    whole = len(losses) // length
    means = losses[: whole * length].reshape(whole, length).mean(0)
    rest = losses[whole * length :]
    means[: len(rest)] = (means[: len(rest)] + rest) / 2
    return means


# blind_mean: right
def blind_loop(losses: Tensor, settled: float, length: int) -> float:
    return math.fsum(float(losses[k]) if k < len(losses) else settled for k in range(length)) / length


def blind_shift(losses: Tensor, settled: float, length: int) -> float:
    """The level, and what the beginning is above it."""
    return settled + float((losses[:length] - settled).sum()) / length


def blind_pad(losses: Tensor, settled: float, length: int) -> Tensor:
    tail = torch.full((max(length - len(losses), 0),), float(settled), dtype=losses.dtype)
    return torch.cat([losses, tail])[:length].mean()


# blind_mean: wrong
def blind_no_cut(losses: Tensor, settled: float, length: int) -> float:
    return (float(losses.sum()) + settled * (length - len(losses))) / length


def blind_no_cut_max(losses: Tensor, settled: float, length: int) -> float:
    return (float(losses.sum()) + settled * max(0, length - len(losses))) / length


def blind_two_means(losses: Tensor, settled: float, length: int) -> float:
    if length <= len(losses):
        return float(losses[:length].mean())
    return (float(losses.mean()) + settled) / 2


def blind_full(losses: Tensor, settled: float, length: int) -> float:
    return (float(losses[:length].sum()) + settled * length) / length


def blind_repeat(losses: Tensor, settled: float, length: int) -> float:
    """A window of the longer length is many short ones."""
    return float(losses[torch.arange(length) % len(losses)].mean())


def blind_off_by_one(losses: Tensor, settled: float, length: int) -> float:
    head = losses[: length - 1]
    return (float(head.sum()) + settled * (length - len(head))) / length


def blind_sum(losses: Tensor, settled: float, length: int) -> float:
    return float(losses[:length].sum()) + settled * max(0, length - len(losses))


def blind_own_last(losses: Tensor, settled: float, length: int) -> float:
    head = losses[:length]
    return (float(head.sum()) + float(losses[-1]) * (length - len(head))) / length


# contexts: right
def contexts_unfold(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return tokens.unfold(0, context + 1, 1)[places - context]


def contexts_stack(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return torch.stack([tokens[p - context : p + 1] for p in places.tolist()])


def contexts_columns(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return torch.stack([tokens[places - back] for back in range(context, -1, -1)], 1)


# contexts: wrong
def contexts_no_target(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return tokens[places[:, None] + torch.arange(-context, 0)]


def contexts_early(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return tokens[places[:, None] + torch.arange(-context - 1, 0)]


def contexts_backwards(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return tokens[places[:, None] - torch.arange(context + 1)]


def contexts_after(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return tokens[(places[:, None] + torch.arange(context + 1)) % len(tokens)]


def contexts_places(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return places[:, None] + torch.arange(-context, 1)


def contexts_flat(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return torch.cat([tokens[p - context : p + 1] for p in places.tolist()])


def contexts_sorted(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return tokens.unfold(0, context + 1, 1)[places.sort().values - context]


def contexts_float(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    table = torch.zeros(len(places), context + 1)
    for row, place in enumerate(places.tolist()):
        table[row, :-1] = tokens[place - context : place].float()
        table[row, -1] = place
    return table


# by_chance: right
def _gap(pool: Sequence[Fraction], chosen: Sequence[int]) -> Fraction:
    mine = [pool[k] for k in chosen]
    rest = sum(pool, Fraction(0)) - sum(mine, Fraction(0))
    return abs(sum(mine, Fraction(0)) / len(mine) - rest / (len(pool) - len(mine)))


def chance_fractions(a: Tensor, b: Tensor) -> float:
    pool = [Fraction(x) for x in a.tolist() + b.tolist()]
    seen = _gap(pool, range(len(a)))
    gaps = [_gap(pool, way) for way in itertools.combinations(range(len(pool)), len(a))]
    return float(Fraction(sum(gap >= seen - Fraction(1, 10**9) for gap in gaps), len(gaps)))


def chance_table(a: Tensor, b: Tensor) -> Tensor:
    pool = torch.cat([a, b]).double()
    ways = torch.combinations(torch.arange(len(pool)), len(a))
    mine = pool[ways].sum(1)
    gaps = (mine / len(a) - (pool.sum() - mine) / len(b)).abs()
    return (gaps > (a.double().mean() - b.double().mean()).abs() - 1e-9).double().mean()


def chance_bits(a: Tensor, b: Tensor) -> float:
    pool, n = a.tolist() + b.tolist(), len(a) + len(b)
    seen = abs(math.fsum(a.tolist()) / len(a) - math.fsum(b.tolist()) / len(b))
    hits = ways = 0
    for mask in range(2**n):
        if mask.bit_count() != len(a):
            continue
        ones = [pool[k] for k in range(n) if mask >> k & 1]
        others = [pool[k] for k in range(n) if not mask >> k & 1]
        gap = abs(math.fsum(ones) / len(ones) - math.fsum(others) / len(others))
        ways += 1
        hits += gap >= seen or math.isclose(gap, seen, rel_tol=0, abs_tol=1e-9)
    return hits / ways


# by_chance: wrong
def _gaps(a: Tensor, b: Tensor) -> tuple[list[float], float]:
    """Signed differences of all ways, and the one seen."""
    pool = torch.cat([a, b]).double()
    gaps = []
    for way in itertools.combinations(range(len(pool)), len(a)):
        rest = [k for k in range(len(pool)) if k not in way]
        gaps.append(float(pool[list(way)].mean() - pool[rest].mean()))
    return gaps, gaps[0]


def chance_one_sided(a: Tensor, b: Tensor) -> float:
    gaps, seen = _gaps(a, b)
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def chance_seen_side(a: Tensor, b: Tensor) -> float:
    gaps, seen = _gaps(a, b)
    sign = 1 if seen > 0 else -1
    return sum(sign * gap >= sign * seen - 1e-9 for gap in gaps) / len(gaps)


def chance_doubled(a: Tensor, b: Tensor) -> float:
    return min(1.0, 2 * chance_seen_side(a, b))


def chance_strict(a: Tensor, b: Tensor) -> float:
    gaps, seen = _gaps(a, b)
    return sum(abs(gap) > abs(seen) + 1e-9 for gap in gaps) / len(gaps)


def chance_rounding(a: Tensor, b: Tensor) -> float:
    gaps, _ = _gaps(a, b)
    seen = float(b.double().mean() - a.double().mean())
    return sum(abs(gap) >= abs(seen) for gap in gaps) / len(gaps)


def chance_without_seen(a: Tensor, b: Tensor) -> float:
    gaps, seen = _gaps(a, b)
    return sum(abs(gap) >= abs(seen) - 1e-9 for gap in gaps[1:]) / (len(gaps) - 1)


def chance_values(a: Tensor, b: Tensor) -> float:
    """Numbers instead of places: an equal one is lost as well."""
    pool = a.tolist() + b.tolist()
    seen, hits, ways = abs(float(a.double().mean() - b.double().mean())), 0, 0
    for way in itertools.combinations(pool, len(a)):
        rest = [x for x in pool if x not in way]
        if not rest:
            continue
        ways += 1
        hits += abs(sum(way) / len(way) - sum(rest) / len(rest)) >= seen - 1e-9
    return hits / ways


def chance_set(a: Tensor, b: Tensor) -> float:
    """Ways that look the same count once."""
    pool = a.tolist() + b.tolist()
    seen = abs(float(a.double().mean() - b.double().mean()))
    ways = set(itertools.combinations(sorted(pool), len(a)))
    gaps = [abs(sum(w) / len(a) - (sum(pool) - sum(w)) / len(b)) for w in ways]
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def chance_sums(a: Tensor, b: Tensor) -> float:
    pool = a.tolist() + b.tolist()
    seen = abs(float(a.double().sum() - b.double().sum()))
    gaps = [abs(2 * sum(w) - sum(pool)) for w in itertools.combinations(pool, len(a))]
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def chance_count(a: Tensor, b: Tensor) -> int:
    gaps, seen = _gaps(a, b)
    return sum(abs(gap) >= abs(seen) - 1e-9 for gap in gaps)


def chance_half(a: Tensor, b: Tensor) -> float:
    """Always half of the numbers under a."""
    pool = a.tolist() + b.tolist()
    n = len(pool) // 2
    seen = abs(float(a.double().mean() - b.double().mean()))
    gaps = [abs(sum(w) / n - (sum(pool) - sum(w)) / (len(pool) - n)) for w in itertools.combinations(pool, n)]
    return sum(gap >= seen - 1e-9 for gap in gaps) / len(gaps)


def chance_drawn(a: Tensor, b: Tensor) -> float:
    """A thousand random ways instead of all."""
    pool, draw = a.tolist() + b.tolist(), random.Random(0)
    seen, hits = abs(float(a.double().mean() - b.double().mean())), 0
    for _ in range(1000):
        draw.shuffle(pool)
        x, y = pool[: len(a)], pool[len(a) :]
        hits += abs(sum(x) / len(x) - sum(y) / len(y)) >= seen - 1e-9
    return hits / 1000


def chance_loose(a: Tensor, b: Tensor) -> float:
    gaps, seen = _gaps(a, b)
    return sum(abs(gap) >= abs(seen) - 1e-3 for gap in gaps) / len(gaps)


# patch_positions: right
def patch_product(rows: int, columns: int) -> Tensor:
    return torch.cartesian_prod(torch.arange(rows), torch.arange(columns))


def patch_nonzero(rows: int, columns: int) -> Tensor:
    return torch.ones(rows, columns).nonzero()


def patch_numpy(rows: int, columns: int) -> Tensor:
    return torch.from_numpy(np.indices((rows, columns)).reshape(2, -1).T.copy())


# patch_positions: wrong
def patch_swapped(rows: int, columns: int) -> Tensor:
    return patch_product(rows, columns).flip(1)


def patch_columns_first(rows: int, columns: int) -> Tensor:
    return torch.tensor([[r, c] for c in range(columns) for r in range(rows)])


def patch_from_one(rows: int, columns: int) -> Tensor:
    return patch_product(rows, columns) + 1


def patch_wrong_divisor(rows: int, columns: int) -> Tensor:
    number = torch.arange(rows * columns)
    return torch.stack([number // rows, number % rows], 1)


def patch_grid(rows: int, columns: int) -> Tensor:
    return patch_product(rows, columns).reshape(rows, columns, 2)


def patch_lying(rows: int, columns: int) -> Tensor:
    return patch_product(rows, columns).T


def patch_view(rows: int, columns: int) -> Tensor:
    """Reshaped where it should have been transposed."""
    return torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")).reshape(-1, 2)


# is_sum: right
def is_sum_squares(scores: Tensor) -> bool:
    """The four patches of every square of neighbours."""
    s = scores.double()
    return bool(((s - s[:1]) - (s[:, :1] - s[:1, :1])).abs().max() <= 1e-6)


def is_sum_centred(scores: Tensor) -> bool:
    s = scores.double()
    left = s - s.mean(0, keepdim=True) - s.mean(1, keepdim=True) + s.mean()
    return bool(torch.allclose(left, torch.zeros_like(left), rtol=0, atol=1e-6))


def is_sum_rank(scores: Tensor) -> bool:
    s = scores.double()
    return bool(torch.linalg.svdvals((s[1:] - s[0]) - (s[1:, :1] - s[0, :1])).max() < 1e-6)


# is_sum: wrong
def is_sum_corners(scores: Tensor) -> bool:
    s = scores.double()
    return bool(abs(s[0, 0] + s[-1, -1] - s[0, -1] - s[-1, 0]) < 1e-6)


def is_sum_first_square(scores: Tensor) -> bool:
    s = scores.double()
    return bool(abs(s[0, 0] + s[1, 1] - s[0, 1] - s[1, 0]) < 1e-6)


def is_sum_two_rows(scores: Tensor) -> bool:
    step = scores[1].double() - scores[0].double()
    return bool((step - step[0]).abs().max() < 1e-6)


def is_sum_product(scores: Tensor) -> bool:
    return int(torch.linalg.matrix_rank(scores.double())) <= 1


def is_sum_rank_two(scores: Tensor) -> bool:
    """A sum has rank 2 at most, but not all of rank 2 are sums."""
    return int(torch.linalg.matrix_rank(scores.double(), atol=1e-6)) <= 2


def is_sum_equal_rows(scores: Tensor) -> bool:
    """Forgets f: all rows must be the same."""
    return bool((scores - scores[0]).abs().max() < 1e-6)


def is_sum_signed(scores: Tensor) -> bool:
    s = scores.double()
    return bool(((s[1:, 1:] + s[:-1, :-1] - s[1:, :-1] - s[:-1, 1:]) < 1e-6).all())


def is_sum_average(scores: Tensor) -> bool:
    s = scores.double()
    return bool((s[1:, 1:] + s[:-1, :-1] - s[1:, :-1] - s[:-1, 1:]).mean().abs() < 1e-6)


def is_sum_exact(scores: Tensor) -> bool:
    s = scores
    return bool((s[1:, 1:] + s[:-1, :-1] == s[1:, :-1] + s[:-1, 1:]).all())


def is_sum_coarse(scores: Tensor) -> bool:
    s = scores.double()
    return bool(((s - s[:1]) - (s[:, :1] - s[:1, :1])).abs().max() < 0.1)


def is_sum_symmetric(scores: Tensor) -> bool:
    return scores.shape[0] == scores.shape[1] and bool(torch.allclose(scores, scores.T, atol=1e-6))


def is_sum_diagonal_squares(scores: Tensor) -> bool:
    """Only the squares along the diagonal."""
    s = scores.double()
    n = min(s.shape) - 1
    return all(abs(float(s[k, k] + s[k + 1, k + 1] - s[k, k + 1] - s[k + 1, k])) < 1e-6 for k in range(n))


def is_sum_constant_steps(scores: Tensor) -> bool:
    """Takes f and g for straight lines."""
    s = scores.double()
    return bool(s.diff(dim=0).std() < 1e-6 and s.diff(dim=1).std() < 1e-6)


# told_apart: right
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


# told_apart: wrong
def told_counts(text: str) -> int:
    """Numbers of letters instead of shares."""
    return len({(text[n], tuple(sorted(Counter(text[: n + 1]).items()))) for n in range(len(text))})


def told_letters(text: str) -> int:
    return len(set(text))


def told_no_asker(text: str) -> int:
    found = set()
    for n in range(1, len(text) + 1):
        found.add(frozenset((x, Fraction(c, n)) for x, c in Counter(text[:n]).items()))
    return len(found)


def told_own_share(text: str) -> int:
    """Only how much of the text so far is the asker."""
    return len({(x, Fraction(text[:n].count(x), n)) for n, x in enumerate(text, 1)})


def told_seen_set(text: str) -> int:
    return len({(x, frozenset(text[:n])) for n, x in enumerate(text, 1)})


def told_places(text: str) -> int:
    return len(text)


def told_strict_past(text: str) -> int:
    """The letter itself is left out of the average."""
    found: set[object] = set()
    for n, x in enumerate(text):
        found.add((x, frozenset((y, Fraction(c, n)) for y, c in Counter(text[:n]).items())))
    return len(found)


def told_whole(text: str) -> int:
    """Not causal: everybody sees the whole text."""
    return len({(x, tuple(sorted(Counter(text).items()))) for x in text})


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


def told_first_letter(text: str) -> int:
    """Shares of the first letter only."""
    return len({(x, Fraction(text[:n].count(text[0]), n)) for n, x in enumerate(text, 1)})


def told_changes(text: str) -> int:
    return len(list(itertools.groupby(text)))


# packed: right
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


# packed: wrong
def packed_run_on(documents: Tensor) -> tuple[Tensor, Tensor]:
    return torch.arange(len(documents)), packed_blocks(documents)[1]


def packed_causal(documents: Tensor) -> tuple[Tensor, Tensor]:
    size = len(documents)
    return packed_blocks(documents)[0], torch.ones(size, size).tril().bool()


def packed_both_ways(documents: Tensor) -> tuple[Tensor, Tensor]:
    return packed_blocks(documents)[0], documents[:, None] == documents


def packed_from_one(documents: Tensor) -> tuple[Tensor, Tensor]:
    mask = packed_blocks(documents)[1]
    return mask.sum(1), mask


def packed_not_self(documents: Tensor) -> tuple[Tensor, Tensor]:
    positions, mask = packed_blocks(documents)
    return positions, mask & ~torch.eye(len(documents), dtype=torch.bool)


def packed_future(documents: Tensor) -> tuple[Tensor, Tensor]:
    positions, mask = packed_blocks(documents)
    return positions, mask.T


def packed_hidden(documents: Tensor) -> tuple[Tensor, Tensor]:
    positions, mask = packed_blocks(documents)
    return positions, ~mask


def packed_ascending(documents: Tensor) -> tuple[Tensor, Tensor]:
    """Takes the numbers for ascending ones."""
    same = documents[:, None] >= documents
    mask = same & torch.ones_like(same).tril()
    return packed_blocks(documents)[0], mask


def packed_sorted(documents: Tensor) -> tuple[Tensor, Tensor]:
    """The lengths in the order of the numbers."""
    lengths = torch.unique(documents, return_counts=True)[1].tolist()
    return torch.cat([torch.arange(n) for n in lengths]), packed_blocks(documents)[1]


def packed_searchsorted(documents: Tensor) -> tuple[Tensor, Tensor]:
    start = torch.searchsorted(documents, documents)
    return torch.arange(len(documents)) - start, packed_blocks(documents)[1]


def packed_exchanged(documents: Tensor) -> tuple[Tensor, Tensor]:
    positions, mask = packed_blocks(documents)
    return mask, positions


def packed_scores(documents: Tensor) -> tuple[Tensor, Tensor]:
    """What one adds to the scores instead of a mask."""
    positions, mask = packed_blocks(documents)
    return positions, torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


def packed_equal_lengths(documents: Tensor) -> tuple[Tensor, Tensor]:
    """All documents as long as the first."""
    first = int((documents == documents[0]).sum())
    return torch.arange(len(documents)) % first, packed_blocks(documents)[1]


def packed_backwards(documents: Tensor) -> tuple[Tensor, Tensor]:
    mask = packed_blocks(documents)[1]
    return mask.sum(0) - 1, mask


RIGHT: dict[str, list[Any]] = {
    "lengths.by_place": [by_place_nan, by_place_bins, by_place_dict],
    "lengths.blind_mean": [blind_loop, blind_shift, blind_pad],
    "lengths.contexts": [contexts_unfold, contexts_stack, contexts_columns],
    "lengths.by_chance": [chance_fractions, chance_table, chance_bits],
    "nope.patch_positions": [patch_product, patch_nonzero, patch_numpy],
    "nope.is_sum": [is_sum_squares, is_sum_centred, is_sum_rank],
    "nope.told_apart": [told_shares, told_gcd, told_layer],
    "nope.packed": [packed_cummax, packed_blocks, packed_lists],
}

WRONG: dict[str, dict[str, tuple[Any, str | None]]] = {
    "lengths.by_place": {
        "last window dropped": (by_place_drop, "you leave it out"),
        "padded with zeros": (by_place_zeros, "count as losses of 0"),
        "mean of each window": (by_place_windows, "has shape"),
        "rows and columns confused": (by_place_transposed, "cut the losses the other way"),
        "windows at every place": (by_place_running, "Your windows overlap"),
        "last window weighs half": (by_place_window_means, "as much as all others together"),
    },
    "lengths.blind_mean": {
        "short window, negative rest": (blind_no_cut, "shorter than the losses"),
        "short window, all losses": (blind_no_cut_max, "shorter than the losses"),
        "mean of two means": (blind_two_means, "weigh both parts alike"),
        "settled at every place": (blind_full, "You add `settled` at every place"),
        "losses repeated": (blind_repeat, "You begin anew"),
        "one loss too few": (blind_off_by_one, "has none of `settled`"),
        "sum, not mean": (blind_sum, "You add up"),
        "last loss for settled": (blind_own_last, "go on with the last loss"),
    },
    "lengths.contexts": {
        "no target": (contexts_no_target, "has shape (5, 3)"),
        "one place early": (contexts_early, "end before the target"),
        "backwards": (contexts_backwards, "rows run backwards"),
        "tokens after": (contexts_after, "begin at the target"),
        "places instead of tokens": (contexts_places, "places in the text"),
        "all in one row": (contexts_flat, "has shape (20,)"),
        "targets sorted": (contexts_sorted, "You sort the targets"),
        "place of the target at the end": (contexts_float, "is wrong in 5 of 20"),
    },
    "lengths.by_chance": {
        "larger under a only": (chance_one_sided, "One direction only"),
        "the seen direction only": (chance_seen_side, "One direction only"),
        "one direction, doubled": (chance_doubled, "You double one direction"),
        "strictly larger": (chance_strict, "Only larger differences"),
        "rounding decides": (chance_rounding, "Rounding decides"),
        "without the seen way": (chance_without_seen, "leave out the way"),
        "numbers instead of places": (chance_values, "choose numbers and not places"),
        "equal ways once": (chance_set, "ways once that look alike"),
        "sums, not means": (chance_sums, "You compare sums"),
        "number of ways": (chance_count, "You count the ways"),
        "always half": (chance_half, "You call half"),
        "random ways": (chance_drawn, "not a sample"),
        "too generous": (chance_loose, "tolerance is too wide"),
    },
    "nope.patch_positions": {
        "column first": (patch_swapped, "have changed places"),
        "down the columns": (patch_columns_first, "a row is finished first"),
        "from 1": (patch_from_one, "from 1"),
        "divided by rows": (patch_wrong_divisor, "name the column first"),
        "three axes": (patch_grid, "has shape (3, 5, 2)"),
        "lying": (patch_lying, "looks transposed"),
        "reshaped, not transposed": (patch_view, "is wrong in 22 of 30"),
    },
    "nope.is_sum": {
        "the corners only": (is_sum_corners, "the four corners alone"),
        "the first square only": (is_sum_first_square, "one square of four"),
        "two rows only": (is_sum_two_rows, "the first two rows"),
        "product instead of sum": (is_sum_product, "You look for products"),
        "rank two": (is_sum_rank_two, "rank 2 at most"),
        "all rows equal": (is_sum_equal_rows, "all rows alike"),
        "no absolute value": (is_sum_signed, "no absolute value"),
        "squares on average": (is_sum_average, "or at a mean"),
        "no tolerance": (is_sum_exact, "compare with a tolerance"),
        "coarse tolerance": (is_sum_coarse, "tolerance is too wide"),
        "symmetric": (is_sum_symmetric, "You say False to all"),
        "squares on the diagonal": (is_sum_diagonal_squares, "squares along the diagonal"),
        "straight lines": (is_sum_constant_steps, "You want equal steps"),
    },
    "nope.told_apart": {
        "counts, not shares": (told_counts, "tell all places apart"),
        "different letters": (told_letters, "the kinds of tokens"),
        "whoever asks": (told_no_asker, "which token asks"),
        "own share only": (told_own_share, "share of the letter that asks"),
        "letters seen so far": (told_seen_set, "which tokens were seen"),
        "every place": (told_places, "tell all places apart"),
        "without the letter itself": (told_strict_past, "you leave it out"),
        "the whole text": (told_whole, "the kinds of tokens"),
        "shares without names": (told_unnamed, "shares without their letters"),
        "equal scores": (told_no_query, "which token asks"),
        "share of the first letter": (told_first_letter, "share of the first letter"),
        "changes of letter": (told_changes, "and should give 3"),
    },
    "nope.packed": {
        "positions run on": (packed_run_on, "positions run on"),
        "causal mask only": (packed_causal, "is the causal one"),
        "sees what follows": (packed_both_ways, "causal as well"),
        "positions from 1": (packed_from_one, "begin at 1"),
        "not itself": (packed_not_self, "do not see themselves"),
        "the future": (packed_future, "mask is transposed"),
        "True where hidden": (packed_hidden, "wrong way round"),
        "earlier documents too": (packed_ascending, "compares the documents' names"),
        "lengths in order of numbers": (packed_sorted, "Your lengths are in the order"),
        "numbers ascending": (packed_searchsorted, "for rising ones"),
        "exchanged": (packed_exchanged, "the mask first"),
        "scores, not a mask": (packed_scores, "holds True and False"),
        "equal lengths": (packed_equal_lengths, "as long as the first"),
        "counted from the end": (packed_backwards, "positions run backwards"),
    },
}
