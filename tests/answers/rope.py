"""Answers to assignment 10: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.rope import apply_rope, convert_projection, rope_tables
from posenc_course.sinusoidal import frequencies

Pairs = list[tuple[int, int]]


# ── exercise 1 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_loops(x: Tensor, positions: Tensor, pairs: Pairs) -> list[list[float]]:
    rows, d = x.tolist(), x.shape[1]
    for row, m in zip(rows, positions.tolist(), strict=True):
        for i, (a, b) in enumerate(pairs):
            c, s = math.cos(m / 10_000 ** (2 * i / d)), math.sin(m / 10_000 ** (2 * i / d))
            row[a], row[b] = row[a] * c - row[b] * s, row[a] * s + row[b] * c
    return rows


def by_complex_numbers(x: Tensor, positions: Tensor, pairs: Pairs) -> Any:
    a, b = np.array(pairs).T
    z = x.numpy()[:, a] + 1j * x.numpy()[:, b]
    z = z * np.exp(1j * np.outer(positions, 10_000.0 ** (-np.arange(len(pairs)) / len(pairs))))
    turned = np.zeros(x.shape)
    turned[:, a], turned[:, b] = z.real, z.imag
    return turned


def by_matrices(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Clockwise: one d×d matrix per row."""
    rows = []
    for row, m in zip(x, positions, strict=True):
        matrix = torch.zeros(x.shape[1], x.shape[1], dtype=x.dtype)
        for (a, b), omega in zip(pairs, frequencies(x.shape[1]), strict=True):
            matrix[a, a] = matrix[b, b] = (omega * m).cos()
            matrix[a, b], matrix[b, a] = (omega * m).sin(), -(omega * m).sin()
        rows.append(matrix @ row)
    return torch.stack(rows)


def in_32_bits(
    x: Tensor,
    positions: Tensor,
    pairs: Pairs,
    *,
    exponent: Callable[[Tensor, int], Tensor] = lambda i, d: -2 * i / d,
    signs: tuple[int, int] = (-1, 1),
) -> Tensor:
    """All pairs at once, in the dtype that whole numbers give."""
    order = torch.tensor(pairs)  # (d/2, 2)
    a, b = x[:, order[:, 0]].float(), x[:, order[:, 1]].float()
    theta = positions[:, None] * 10_000.0 ** exponent(torch.arange(len(pairs)), x.shape[1])
    new = a * theta.cos() + signs[0] * b * theta.sin(), b * theta.cos() + signs[1] * a * theta.sin()
    return torch.cat(new, dim=1)[:, order.T.flatten().argsort()]


def as_others_do(x: Tensor, positions: Tensor, rotate_half: Callable[[Tensor], Tensor], *, twice: bool) -> Tensor:
    """x cos + rotate_half(x) sin, as two well-known models have it."""
    theta = positions[:, None] * frequencies(x.shape[1])
    theta = torch.cat((theta, theta), dim=1) if twice else theta.repeat_interleave(2, dim=1)
    return x * theta.cos() + rotate_half(x) * theta.sin()


def of_halves(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=1)
    return torch.cat((-b, a), dim=1)


def of_neighbours(x: Tensor) -> Tensor:
    return torch.stack((-x[:, 1::2], x[:, 0::2]), dim=-1).flatten(1)


def overwritten(x: Tensor, positions: Tensor, pairs: Pairs, *, copy: bool = True) -> Tensor:
    y = x.clone() if copy else x
    for i, (a, b) in enumerate(pairs):
        theta = positions * frequencies(x.shape[1])[i]
        y[:, a] = y[:, a] * theta.cos() - y[:, b] * theta.sin()
        y[:, b] = y[:, a] * theta.sin() + y[:, b] * theta.cos()
    return y


def by_channel(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    y = torch.zeros_like(x)
    for a, b in pairs:
        theta = positions * 10_000.0 ** (-a / x.shape[1])
        y[:, a] = x[:, a] * theta.cos() - x[:, b] * theta.sin()
        y[:, b] = x[:, a] * theta.sin() + x[:, b] * theta.cos()
    return y


def joined(x: Tensor, positions: Tensor, pairs: Pairs, *, interleaved: bool) -> Tensor:
    """Pairs taken from where they are and put back where they are not."""
    theta, columns = positions[:, None] * frequencies(x.shape[1]), torch.tensor(pairs).T
    a, b = x[:, columns[0]], x[:, columns[1]]
    turned = a * theta.cos() - b * theta.sin(), a * theta.sin() + b * theta.cos()
    return torch.stack(turned, dim=-1).flatten(1) if interleaved else torch.cat(turned, dim=1)


def exchanged(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    y = torch.zeros_like(x)
    for i, (a, b) in enumerate(pairs):
        cos, sin = torch.sin(frequencies(x.shape[1])[i] * positions), torch.cos(frequencies(x.shape[1])[i] * positions)
        y[:, a], y[:, b] = x[:, a] * cos - x[:, b] * sin, x[:, a] * sin + x[:, b] * cos
    return y


def only_first(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    y = x.clone()
    first = [a for a, _ in pairs]
    y[:, first] = torch.as_tensor(by_complex_numbers(x, positions, pairs))[:, first]
    return y


# ── exercise 2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_indices(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    d = len(weight) // num_heads
    source = torch.empty(d, dtype=torch.int64)
    source[torch.tensor(new).flatten()] = torch.tensor(old).flatten()
    return weight[(d * torch.arange(num_heads)[:, None] + source).flatten()]


def by_rows(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> list[list[float]]:
    d = len(weight) // num_heads
    rows: list[list[float]] = []
    for head in range(num_heads):
        place = {b: a for before, after in zip(old, new, strict=True) for a, b in zip(before, after, strict=True)}
        rows += [weight[head * d + place[channel]].tolist() for channel in range(d)]
    return rows


def by_permutation_matrix(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Any:
    d = len(weight) // num_heads
    one = np.zeros((d, d))
    one[np.ravel(new), np.ravel(old)] = 1
    return np.kron(np.eye(num_heads), one) @ weight.numpy()


def moved(weight: Tensor, old: Pairs, new: Pairs, *, rows: bool = True, start: Tensor | None = None) -> Tensor:
    """One head, and no thought of others."""
    converted = weight.clone() if start is None else start
    a, b = torch.tensor(old).flatten(), torch.tensor(new).flatten()
    if rows:
        converted[b] = weight[a]
    else:
        converted[:, b] = weight[:, a]
    return converted


def heads_last(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    table = weight.view(-1, num_heads, weight.shape[1])  # should be (num_heads, -1, …)
    converted = table.clone()
    converted[torch.tensor(new).flatten()] = table[torch.tensor(old).flatten()]
    return converted.reshape(weight.shape)


def columns_of_heads(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    if weight.shape[0] == weight.shape[1]:
        return by_indices(weight.T, num_heads, old, new).T
    return weight


def neighbour_pairs(d: int) -> Pairs:
    return [(2 * i, 2 * i + 1) for i in range(d // 2)]


def half_pairs(d: int) -> Pairs:
    return [(i, i + d // 2) for i in range(d // 2)]


# ── exercises 3 and 4 ────────────────────────────────────────────────────────────────────────────────────────────────────


def turn(x: Tensor, positions: Tensor) -> Tensor:
    if len(x) == 0:
        return x
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=True)[0, 0]


Three = tuple[Any, Any, Any]


def step_by_comparison(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    positions = torch.arange(len(keys) + len(q))
    at = positions[len(keys) :]
    keys, values = torch.cat((keys, turn(k, at))), torch.cat((values, v))
    hidden = positions[None, :] > at[:, None]
    scores = (turn(q, at) @ keys.T / q.shape[1] ** 0.5).masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ values, keys, values


def step_token_by_token(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> list[Any]:
    output = []
    for query, key, value in zip(q, k, v, strict=True):
        at = torch.tensor([len(keys)])
        keys, values = torch.vstack((keys, turn(key[None], at))), torch.vstack((values, value))
        weights = torch.softmax(keys @ turn(query[None], at)[0] / math.sqrt(len(query)), dim=0)
        output.append(weights @ values)
    return [torch.stack(output), keys, values]


def step_in_numpy(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    old, new = len(keys), len(q)
    at = torch.arange(old, old + new) + 1000  # any beginning will do, as long as it is always the same
    all_keys = np.concatenate((keys.numpy(), turn(k, at).numpy())).astype(np.float32)
    all_values = np.concatenate((values.numpy(), v.numpy())).astype(np.float32)
    weights = np.exp(turn(q, at).numpy() @ all_keys.T / np.sqrt(q.shape[1])) * np.tri(new, old + new, old)
    return weights / weights.sum(axis=1, keepdims=True) @ all_values, all_keys, all_values


def mistaken_step(mistake: str) -> Callable[..., Any]:
    def step(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Any:
        old, new = len(keys), len(q)
        at = torch.arange(new) if "from 0" in mistake else torch.arange(new) + old
        if mistake == "counted after the cat":
            at = at + new
        if mistake == "one too early":
            at = torch.clamp(torch.arange(old - 1, old - 1 + new), min=0) if old else at
        if mistake == "all keys turned":
            keys = turn(torch.cat((keys, k)), torch.arange(old + new))
        elif mistake == "raw keys kept, all turned":
            raw = torch.cat((keys, k))
            keys = turn(raw, torch.arange(old + new))
        else:
            keys = torch.cat((keys, k if mistake in ("key not turned", "nothing turned") else turn(k, at)))
        if mistake == "values turned":
            v = turn(v, at)
        values = torch.cat((values, v))
        query = q if mistake in ("query not turned", "nothing turned") else turn(q, at)
        scores = query @ keys.T
        if mistake != "not scaled":
            scores = scores / math.sqrt(q.shape[1])
        mask = torch.ones(new, old + new).tril(0 if "mask from the left" in mistake else old)
        if mistake == "only the new":
            mask[:, :old] = 0
        if mistake == "a token does not see itself":
            mask = torch.ones(new, old + new).tril(old - 1)
        if mistake == "mask one too far":
            mask = torch.ones(new, old + new).tril(old + 1)
        if mistake not in ("no mask", "no mask, from 0"):
            scores = scores.masked_fill(mask == 0, -math.inf)
        output = scores.softmax(dim=1) @ values
        if mistake == "output alone":
            return output
        if mistake == "output only for the last":
            return output[-1:], keys, values
        if mistake == "old cache":
            return output, keys[:old], values[:old]
        if mistake == "new keys alone":
            return output, keys[old:], values[old:]
        if mistake == "raw key kept":
            keys = torch.cat((keys[:old], k))
        if mistake == "raw keys kept, all turned":
            keys = raw
        return output, keys, values

    return step


def renumber_by_two(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(turn(keys, -old), new)


def renumber_one_by_one(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    moved = [turn(keys[i : i + 1].float(), (new[i] - old[i]).reshape(1)) for i in range(len(keys))]
    return torch.cat(moved)


def renumber_by_complex_numbers(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    z = keys.numpy()[:, 0::2] + 1j * keys.numpy()[:, 1::2]
    z *= np.exp(1j * np.outer(new - old, 10_000.0 ** (-np.arange(0, keys.shape[1], 2) / keys.shape[1])))
    return np.stack((z.real, z.imag), axis=-1).reshape(keys.shape)


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "rope.rotate": [by_loops, by_complex_numbers, by_matrices, in_32_bits],
    "rope.convert": [by_indices, by_rows, by_permutation_matrix, lambda w, n, old, new: by_indices(w.float(), n, old, new)],
    "rope.step": [step_by_comparison, step_token_by_token, step_in_numpy],
    "rope.renumber": [
        lambda keys, old, new: turn(keys, new - old),
        renumber_by_two,
        renumber_one_by_one,
        renumber_by_complex_numbers,
    ],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "rope.rotate": {
        "nothing": (lambda x, positions, pairs: x, "nothing has turned"),
        "positions from shapes": (lambda x, positions, pairs: by_loops(x, torch.arange(len(x)), pairs), "by 0, 1, 2, …"),
        "one position for all": (
            lambda x, positions, pairs: by_complex_numbers(x, positions[0].repeat(len(x)), pairs),
            "by the first position",
        ),
        "positions from 1": (lambda x, positions, pairs: by_matrices(x, positions + 1, pairs), "one position too much"),
        "Llama whatever comes": (
            lambda x, positions, pairs: as_others_do(x, positions, of_halves, twice=True),
            "You pair i with i + d/2",
        ),
        "GPT-J whatever comes": (
            lambda x, positions, pairs: as_others_do(x, positions, of_neighbours, twice=False),
            "You pair neighbours",
        ),
        "mixed layouts": (lambda x, positions, pairs: as_others_do(x, positions, of_halves, twice=False), None),
        "stacked": (lambda *given: joined(*given, interleaved=True), "come back as neighbours"),
        "joined": (lambda *given: joined(*given, interleaved=False), "come back as halves"),
        "speed by channel": (by_channel, "number is its place in the list"),
        "i over d": (lambda *given: in_32_bits(*given, exponent=lambda i, d: -i / d), "half as fast"),
        "the 2 twice": (lambda *given: in_32_bits(*given, exponent=lambda i, d: -4 * i / d), "twice as fast"),
        "no minus": (lambda *given: in_32_bits(*given, exponent=lambda i, d: 2 * i / d), "grow with i"),
        "pairs from 1": (lambda *given: in_32_bits(*given, exponent=lambda i, d: -2 * (i + 1) / d), "one step too slow"),
        "no frequencies": (lambda *given: in_32_bits(*given, exponent=lambda i, d: 0.0 * i), "where is ω_i"),
        "degrees": (lambda x, m, pairs: in_32_bits(x, torch.deg2rad(m.double()), pairs), "for degrees"),
        "one after the other": (overwritten, "after it has turned"),
        "in the argument": (lambda *given: overwritten(*given, copy=False), "writes into its arguments"),
        "equal signs": (lambda *given: in_32_bits(*given, signs=(1, 1)), "stretched, not turned"),
        "equal signs, both minus": (lambda *given: in_32_bits(*given, signs=(-1, -1)), "stretched, not turned"),
        "only the first of a pair": (only_first, "Only the first channel"),
        "only the cosines": (lambda *given: in_32_bits(*given, signs=(0, 0)), "where is the sine"),
        "sine and cosine exchanged": (
            exchanged,
            "changed places",
        ),
        "a base of 1,000": (lambda *given: in_32_bits(*given, exponent=lambda i, d: -1.5 * i / d), None),
        "transposed": (lambda *given: by_matrices(*given).T, "has shape"),
        "the package's": (
            lambda x, m, pairs: apply_rope(x[None, None], *rope_tables(m, frequencies(x.shape[1])), interleaved=True)[0, 0],
            "calls the package's own",
        ),
    },
    "rope.convert": {
        "as it was": (lambda weight, heads, old, new: weight.clone(), "as they were"),
        "the other way round": (lambda weight, heads, old, new: by_indices(weight, heads, new, old), "The other way round"),
        "one head": (lambda weight, heads, old, new: moved(weight, old, new), "Only the first head has changed"),
        "one head and zeros": (
            lambda weight, heads, old, new: moved(weight, old, new, start=torch.zeros_like(weight)),
            "the others are 0",
        ),
        "columns": (columns_of_heads, "You move columns"),
        "columns of the first head": (
            lambda weight, heads, old, new: moved(weight, old, new, rows=False) if weight.shape[1] > 9 else weight,
            None,
        ),
        "heads interleaved": (heads_last, "d_head rows stand together"),
        "always to halves": (
            lambda weight, heads, old, new: by_indices(weight, heads, old, half_pairs(len(weight) // heads)),
            "You go to halves",
        ),
        "always to neighbours": (
            lambda weight, heads, old, new: by_indices(weight, heads, old, neighbour_pairs(len(weight) // heads)),
            "You go to neighbours",
        ),
        "always from neighbours": (
            lambda weight, heads, old, new: by_indices(weight, heads, neighbour_pairs(len(weight) // heads), new),
            "You come from neighbours",
        ),
        "always from halves": (
            lambda weight, heads, old, new: by_indices(weight, heads, half_pairs(len(weight) // heads), new),
            "You come from halves",
        ),
        "pairs turned over": (
            lambda weight, heads, old, new: by_indices(weight, heads, [(b, a) for a, b in old], new),
            "have changed places",
        ),
        "one head's rows": (lambda weight, heads, old, new: weight[torch.tensor(old).flatten()], "has shape"),
        "in the argument": (
            lambda weight, heads, old, new: moved(weight, old, new, start=weight),
            "writes into its arguments",
        ),
        "the package's": (
            lambda weight, heads, old, new: convert_projection(weight, heads, interleaved=False),
            "calls the package's own",
        ),
    },
    "rope.step": {
        "from 0": (mistaken_step("from 0"), "Every piece begins at position 0"),
        "counted after the cat": (mistaken_step("counted after the cat"), "count themselves twice"),
        "one too early": (mistaken_step("one too early"), "one too early"),
        "all keys turned": (mistaken_step("all keys turned"), "turned once more in every step"),
        "raw keys kept, all turned": (mistaken_step("raw keys kept, all turned"), "The outputs are right, but"),
        "raw key kept": (mistaken_step("raw key kept"), "the key as it came"),
        "query not turned": (mistaken_step("query not turned"), "The query has not been turned"),
        "key not turned": (mistaken_step("key not turned"), "The new key has not been turned"),
        "nothing turned": (mistaken_step("nothing turned"), "Nothing has turned"),
        "values turned": (mistaken_step("values turned"), "The values are turned as well"),
        "no mask": (mistaken_step("no mask"), "each sees those after it"),
        "mask from the left": (mistaken_step("mask from the left"), "counts rows from 0"),
        "mask from the left, from 0": (mistaken_step("mask from the left, from 0"), "each piece for a beginning"),
        "no mask, from 0": (mistaken_step("no mask, from 0"), "Positions begin at 0 in each piece"),
        "mask one too far": (mistaken_step("mask one too far"), "one token after itself"),
        "only the new": (mistaken_step("only the new"), "where are the cached keys"),
        "not scaled": (mistaken_step("not scaled"), "divided by √d"),
        "output alone": (mistaken_step("output alone"), "three things"),
        "output only for the last": (mistaken_step("output only for the last"), "has shape"),
        "old cache": (mistaken_step("old cache"), "those of before"),
        "new keys alone": (mistaken_step("new keys alone"), "These are the new ones"),
        "a token does not see itself": (mistaken_step("a token does not see itself"), "not even itself"),
        "in the argument": (lambda q, k, v, keys, values: (v.zero_(), keys, values), "writes into its arguments"),
        "a dictionary": (lambda q, k, v, keys, values: {"keys": k}, "three things"),
    },
    "rope.renumber": {
        "as they were": (lambda keys, old, new: keys.clone(), "as they were"),
        "by the new on top": (lambda keys, old, new: turn(keys, new), "by their old ones already"),
        "the wrong way": (lambda keys, old, new: turn(keys, old - new), "The other way round"),
        "back only": (lambda keys, old, new: turn(keys, -old), "back to position 0"),
        "back by the new": (lambda keys, old, new: turn(keys, -new), "which turn do the keys have"),
        "both": (lambda keys, old, new: turn(turn(keys, old), new), "add up"),
        "as far as the first": (
            lambda keys, old, new: turn(keys, (new[0] - old[0]).repeat(len(keys))),
            "as much as the first",
        ),
        "as far as the last": (
            lambda keys, old, new: turn(keys, torch.full_like(old, int(new[-1] - old[-1]))),
            "as much as the last",
        ),
        "to 0, 1, 2": (lambda keys, old, new: turn(turn(keys, -old), torch.arange(len(keys))), "end up at 0, 1, 2"),
        "from 0, 1, 2": (lambda keys, old, new: turn(turn(keys, -torch.arange(len(keys))), new), "turned at 0, 1, 2"),
        "by the distance": (lambda keys, old, new: turn(keys, (new - old).abs()), None),
        "reordered": (lambda keys, old, new: keys[new.argsort()], None),
    },
}
