"""Answers to assignment 12: right ones written differently, and wrong ones with what their verdict must say."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

# ── by place ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def place_by_loop(losses: Tensor, length: int) -> list[float]:
    sums, counts = [0.0] * length, [0] * length
    for number, loss in enumerate(losses.tolist()):
        sums[number % length] += loss
        counts[number % length] += 1
    return [total / count for total, count in zip(sums, counts, strict=True)]


def place_by_nan(losses: Tensor, length: int) -> Tensor:
    table = torch.full((-(-len(losses) // length) * length,), torch.nan)
    table[: len(losses)] = losses.float()
    return table.reshape(-1, length).nanmean(dim=0)


def place_by_bincount(losses: Tensor, length: int) -> Any:
    place = np.arange(len(losses)) % length
    return np.bincount(place, weights=losses.numpy()) / np.bincount(place)


def rows(losses: Tensor, length: int) -> Tensor:
    return losses[: len(losses) - len(losses) % length].reshape(-1, length)


def padded(losses: Tensor, length: int) -> Tensor:
    return torch.nn.functional.pad(losses, (0, -len(losses) % length)).reshape(-1, length)


# ── a blind mean ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def blind(losses: Tensor, settled: float, length: int) -> float:
    own = losses[:length]
    return (own.sum().item() + settled * (length - len(own))) / length


def blind_in_numpy(losses: Tensor, settled: float, length: int) -> Any:
    window = np.full(length, settled)
    known = min(length, len(losses))
    window[:known] = losses[:known]
    return window.mean()


def blind_by_list(losses: Tensor, settled: float, length: int) -> float:
    return sum((losses.tolist() + [settled] * length)[:length]) / length


# ── contexts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def contexts_by_loop(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return torch.stack([tokens[place - context : place + 1] for place in places.tolist()])


def contexts_by_unfold(tokens: Tensor, places: Tensor, context: int) -> Tensor:
    return tokens.unfold(0, context + 1, 1)[places - context]


def contexts_in_numpy(tokens: Tensor, places: Tensor, context: int) -> Any:
    back = np.arange(context, -1, -1)
    return tokens.numpy()[places.numpy().reshape(-1, 1) - back]


def from_here(first: int, end: int) -> Callable[[Tensor, Tensor, int], Tensor]:
    """Rows from place - context + first to place + end, turning over at the ends of the text."""

    def answer(tokens: Tensor, places: Tensor, context: int) -> Tensor:
        steps = torch.arange(first - context, end)
        return tokens[(places.unsqueeze(1) + steps) % len(tokens)]

    return answer


# ── by chance ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def chance(
    a: Tensor,
    b: Tensor,
    counts: Callable[[float, float], bool] = lambda way, seen: abs(way) >= abs(seen) - 1e-9,
    mean: Callable[[Any], Any] = np.mean,
) -> float:
    numbers = a.tolist() + b.tolist()
    seen = mean(a.tolist()) - mean(b.tolist())
    hits = ways = 0
    for chosen in itertools.combinations(range(len(numbers)), len(a)):
        others = [numbers[i] for i in range(len(numbers)) if i not in chosen]
        hits += counts(mean([numbers[i] for i in chosen]) - mean(others), seen)
        ways += 1
    return hits / ways


def chance_by_bits(a: Tensor, b: Tensor) -> Tensor:
    numbers, size = torch.cat([a, b]), len(a) + len(b)
    bits = torch.arange(2**size).unsqueeze(1) >> torch.arange(size) & 1
    bits = bits[bits.sum(dim=1) == len(a)].double()
    gaps = bits @ numbers / len(a) - (1 - bits) @ numbers / len(b)
    return (gaps.abs() > (a.mean() - b.mean()).abs() - 1e-9).double().mean()


def chance_by_sums(a: Tensor, b: Tensor) -> Any:
    """The mean of a alone tells: all numbers have one sum, and b is the rest of it."""
    numbers = np.concatenate([a.numpy(), b.numpy()])
    way = np.array([np.mean(chosen) for chosen in itertools.combinations(numbers, len(a))])
    off = np.abs(way - numbers.mean())
    return np.mean(off >= off[0] - 1e-10)


def chance_by_orders(a: Tensor, b: Tensor) -> float:
    """Every order of up to seven numbers; more of them by the ways, since 9! orders take too long."""
    numbers = a.tolist() + b.tolist()
    if len(numbers) > 7:
        return chance(a, b)
    k, gaps = len(a), []
    for order in itertools.permutations(numbers):
        gap = sum(order[:k]) / k - sum(order[k:]) / (len(order) - k)
        gaps += [abs(gap)]
    return float(np.mean(np.array(gaps) >= gaps[0] - 1e-9))


def sampled(a: Tensor, b: Tensor) -> float:
    rng, numbers, hits = random.Random(1), a.tolist() + b.tolist(), 0
    seen = abs(np.mean(numbers[: len(a)]) - np.mean(numbers[len(a) :]))
    for _ in range(2000):
        rng.shuffle(numbers)
        hits += abs(np.mean(numbers[: len(a)]) - np.mean(numbers[len(a) :])) >= seen - 1e-9
    return hits / 2000


def paired(a: Tensor, b: Tensor) -> float:
    gaps = [x - y for x, y in zip(a.tolist(), b.tolist(), strict=False)]
    ways = [
        abs(sum(s * gap for s, gap in zip(signs, gaps, strict=True))) for signs in itertools.product([1, -1], repeat=len(gaps))
    ]
    return sum(way >= ways[0] - 1e-9 for way in ways) / len(ways)


def ways(a: Tensor, b: Tensor) -> int:
    return len(list(itertools.combinations(range(len(a) + len(b)), len(a))))


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "lengths.by_place": [
        lambda losses, length: torch.stack([losses[place::length].mean() for place in range(length)]),
        place_by_loop,
        place_by_nan,
        place_by_bincount,
    ],
    "lengths.blind_mean": [blind, blind_in_numpy, blind_by_list],
    "lengths.contexts": [
        contexts_by_loop,
        contexts_by_unfold,
        contexts_in_numpy,
        lambda tokens, places, context: tokens[places[:, None] + torch.arange(-context, 1)],
    ],
    "lengths.by_chance": [chance, chance_by_bits, chance_by_sums, chance_by_orders],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "lengths.by_place": {
        "whole windows alone": (lambda x, n: rows(x, n).mean(dim=0), "you leave it out"),
        "filled up with zeros": (lambda x, n: padded(x, n).mean(dim=0), "count as losses of 0"),
        "one number to divide by": (lambda x, n: padded(x, n).sum(dim=0) / (len(x) / n), "You divide by one number"),
        "sums": (lambda x, n: torch.stack([x[place::n].sum() for place in range(n)]), "You add up"),
        "the first window": (lambda x, n: x[:n], "first window alone"),
        "the other way": (lambda x, n: rows(x, n).flatten().reshape(n, -1).mean(dim=1), "the other way"),
        "by window": (lambda x, n: padded(x, n).mean(dim=1), "has shape"),
        "the other way, uncut": (lambda x, n: x.view(n, -1).mean(dim=1), "raised RuntimeError"),
        "not cut at all": (lambda x, n: x.view(-1, n).mean(dim=0), "raised RuntimeError"),
        "up to each place": (
            lambda x, n: torch.cumsum(torch.tensor(place_by_loop(x, n)), 0) / torch.arange(1, n + 1),
            "take each place alone",
        ),
        "one mean": (lambda x, n: torch.full((n,), x.mean().item()), "The same number everywhere"),
        "a median": (lambda x, n: torch.stack([x[place::n].median() for place in range(n)]), None),
    },
    "lengths.blind_mean": {
        "no short windows": (lambda x, s, n: (x.sum().item() + (n - len(x)) * s) / n, "Long windows come out well"),
        "no short windows, cut at 0": (
            lambda x, s, n: (x.sum().item() + max(0, n - len(x)) * s) / n,
            "Long windows come out well",
        ),
        "no short windows, all": (
            lambda x, s, n: x.mean().item() if n <= len(x) else blind(x, s, n),
            "Long windows come out well",
        ),
        "the last loss goes on": (lambda x, s, n: blind(x, float(x[-1]), n), "go on with the last loss"),
        "behind the window": (lambda x, s, n: (x[:n].sum().item() + n * s) / (n + len(x[:n])), "too long"),
        "settled everywhere": (lambda x, s, n: s + x[:n].sum().item() / n, "You add `settled` at every place"),
        "a sum": (lambda x, s, n: blind(x, s, n) * n, "You add up"),
        "by the losses": (lambda x, s, n: blind(x, s, n) * n / len(x), "by the number of losses"),
        "two halves": (lambda x, s, n: (x.mean().item() + s) / 2, "weigh both parts alike"),
        "the mean of the losses": (lambda x, s, n: x.mean().item(), "does not depend on the length"),
        "settled": (lambda x, s, n: s, "forgets the beginning"),
        "backwards": (lambda x, s, n: blind(x.flip(0), s, n), "wrong end"),
        "every place": (
            lambda x, s, n: [float(x[m]) if m < len(x) else s for m in range(n)],
            "returned a list",
        ),
        "one place off": (lambda x, s, n: (x[: n - 1].sum().item() + (n - len(x[: n - 1])) * s) / n, None),
    },
    "lengths.contexts": {
        "before the target": (from_here(-1, 0), "end before the target"),
        "without the target": (from_here(0, 0), "has shape"),
        "one late": (from_here(1, 2), "one token late"),
        "from the target on": (lambda t, p, c: t[(p[:, None] + torch.arange(c + 1)) % len(t)], "begin at the target"),
        "backwards": (lambda t, p, c: t[p[:, None] - torch.arange(c + 1)], "run backwards"),
        "places": (lambda t, p, c: p[:, None] + torch.arange(-c, 1), "These are places"),
        "the window around it": (
            lambda t, p, c: torch.stack([t[k - k % (c + 1) :][: c + 1] if k < 89 else t[-c - 1 :] for k in p.tolist()]),
            None,
        ),
        "the beginning": (lambda t, p, c: torch.stack([t[: c + 1]] * len(p)), "the beginning of the text"),
        "in the middle": (lambda t, p, c: t[(p[:, None] + torch.arange(-(c // 2), c - c // 2 + 1)) % 90], "in the middle"),
        "columns": (lambda t, p, c: t[p + torch.arange(-c, 1)[:, None]], None),
        "as far as there is": (lambda t, p, c: t[p[:, None] + torch.arange(-c, 2)], "raised IndexError"),
        "one window": (lambda t, p, c: t[p[0] - c : p[0] + 1], "has shape"),
    },
    "lengths.by_chance": {
        "one direction": (lambda a, b: chance(a, b, lambda way, seen: way >= seen - 1e-9), "One direction"),
        "the other direction": (lambda a, b: chance(a, b, lambda way, seen: way <= seen + 1e-9), "One direction"),
        "upwards": (lambda a, b: chance(a, b, lambda way, seen: way >= abs(seen) - 1e-9), "One direction"),
        "larger": (lambda a, b: chance(a, b, lambda way, seen: abs(way) > abs(seen) + 1e-9), "Only larger differences"),
        "without what was seen": (lambda a, b: (chance(a, b) * ways(a, b) - 1) / ways(a, b), "You leave out"),
        "among the others": (lambda a, b: (chance(a, b) * ways(a, b) - 1) / (ways(a, b) - 1), "You leave out"),
        "pairs": (paired, "You turn pairs round"),
        "sums": (
            lambda a, b: chance(a, b, mean=sum),
            "You compare sums",
        ),
        "how many": (lambda a, b: chance(a, b) * ways(a, b), "You count the ways"),
        "the rest": (lambda a, b: 1 - chance(a, b), "that differ less"),
        "as little or less": (lambda a, b: chance(a, b, lambda way, seen: abs(way) <= abs(seen) + 1e-9), "as little or less"),
        "the difference": (lambda a, b: abs(a.mean() - b.mean()), "This is the difference"),
        "a sample": (sampled, "Close, but not exact"),
        "whether they overlap": (lambda a, b: bool(a.max() < b.min() or b.max() < a.min()), "returned a bool"),
        "no tolerance": (lambda a, b: chance(a, b, lambda way, seen: abs(way) >= abs(seen)), "ounding"),
        "gap over spread": (lambda a, b: abs(a.mean() - b.mean()) / (torch.cat([a, b]).std() + 1e-9), None),
    },
}
