"""Answers to the exercises on RoPE."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from posenc_course.rope import apply_rope, rope_tables
from posenc_course.sinusoidal import frequencies
from tests.answers import blind

Pairs = list[tuple[int, int]]


# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def rotated(
    *,
    halves: bool = False,
    angle: Callable[[Tensor, Tensor], Tensor] = lambda m, rate: m * rate,
    power: Callable[[int, int], float] = lambda i, d: -2 * i / d,
    turn: Callable[..., tuple[Tensor, Tensor]] = lambda a, b, c, s: (a * c - b * s, a * s + b * c),
) -> Callable[[Tensor, Tensor], Tensor]:
    """A rotary embedding as a beginner writes it, with one thing to be got wrong at a time."""

    def my_rotate(x: Tensor, positions: Tensor) -> Tensor:
        d = x.shape[1]
        rate = torch.tensor([10_000.0 ** power(i, d) for i in range(d // 2)], dtype=torch.float64)
        theta = angle(positions[:, None], rate)
        a, b = (x[:, : d // 2], x[:, d // 2 :]) if halves else (x[:, 0::2], x[:, 1::2])
        pair = turn(a, b, torch.cos(theta), torch.sin(theta))
        return torch.cat(pair, dim=1) if halves else torch.stack(pair, dim=2).reshape(x.shape)

    return my_rotate


def as_llama(x: Tensor, positions: Tensor, *, lay_out: Callable[..., Any] = lambda t: torch.cat((t, t), dim=-1)) -> Tensor:
    """x·cos + rotate_half(x)·sin, in float32."""
    angles = torch.outer(positions.float(), 1.0 / 10_000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    cos, sin = lay_out(angles.cos()), lay_out(angles.sin())
    a, b = x.float().chunk(2, dim=-1)
    return x.float() * cos + torch.cat((-b, a), dim=-1) * sin


def as_gptj(x: Tensor, positions: Tensor, *, lay_out: Callable[..., Any] = lambda t: np.repeat(t, 2, axis=-1)) -> Any:
    """x·cos + rotate_every_two(x)·sin, in NumPy."""
    rows = x.numpy()
    angles = np.outer(positions.numpy(), 10_000.0 ** (-np.arange(0, rows.shape[1], 2) / rows.shape[1]))
    crossed = np.stack((-rows[:, 1::2], rows[:, 0::2]), axis=-1).reshape(rows.shape)
    return rows * lay_out(np.cos(angles)) + crossed * lay_out(np.sin(angles))


def as_complex(x: Tensor, positions: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    angles = torch.outer(positions.double(), frequencies(x.shape[-1]))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(start_dim=-2)


def row_by_row(x: Tensor, positions: Tensor) -> list[list[float]]:
    rows = []
    for row, m in zip(x.tolist(), positions.tolist(), strict=True):
        new, d = list(row), len(row)
        for i in range(d // 2):
            c, s = math.cos(m * 10_000 ** (-2 * i / d)), math.sin(m * 10_000 ** (-2 * i / d))
            new[2 * i], new[2 * i + 1] = row[2 * i] * c - row[2 * i + 1] * s, row[2 * i] * s + row[2 * i + 1] * c
        rows.append(new)
    return rows


def rotated_in_place(x: Tensor, positions: Tensor) -> Tensor:
    x[:] = rotated()(x, positions)
    return x


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


def by_table(x: Tensor, positions: Tensor, pairs: Pairs, *, rows: int = 10_000) -> Tensor:
    """Sines and cosines looked up."""
    theta = torch.arange(rows)[:, None] * frequencies(x.shape[1])
    return _rotate(x, theta[positions], pairs)


def rotate_exponential(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """The exponential of a matrix that is antisymmetric in each pair."""
    d = x.shape[1]
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i, (a, b) in enumerate(pairs):
        generator[a, b], generator[b, a] = 10_000 ** (-2 * i / d), -(10_000 ** (-2 * i / d))
    turns = torch.matrix_exp(positions.double()[:, None, None] * generator)
    return torch.einsum("rc,rce->re", x.double(), turns).to(x.dtype)


def rotate_complex(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Complex numbers, the other way round."""
    first, second = (list(channels) for channels in zip(*pairs, strict=True))
    angle = positions.double()[:, None] * frequencies(x.shape[1])
    turned = torch.complex(x[:, first].double(), x[:, second].double()) * torch.polar(torch.ones_like(angle), -angle)
    result = torch.empty_like(x)
    result[:, first], result[:, second] = turned.real.to(x.dtype), turned.imag.to(x.dtype)
    return result


def rotate_numpy(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """A loop over all numbers, pairs from the last to the first."""
    d = x.shape[1]
    result = np.zeros(tuple(x.shape))
    for i in reversed(range(len(pairs))):
        a, b = pairs[i]
        for r in range(len(x)):
            angle = float(positions[r]) / 10_000 ** (2 * i / d)
            result[r, a] = float(x[r, a]) * math.cos(angle) - float(x[r, b]) * math.sin(angle)
            result[r, b] = float(x[r, a]) * math.sin(angle) + float(x[r, b]) * math.cos(angle)
    return torch.from_numpy(result).to(x.dtype)


def _rotate(x: Tensor, angles: Tensor, pairs: Pairs) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        c, s = angles[:, i].cos(), angles[:, i].sin()
        out[:, a], out[:, b] = x[:, a] * c - x[:, b] * s, x[:, a] * s + x[:, b] * c
    return out


def _angles(x: Tensor, positions: Tensor) -> Tensor:
    return positions[:, None] * frequencies(x.shape[1])


def rotate_reads_what_it_wrote(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        angle = positions * 10_000 ** (-2 * i / x.shape[1])
        out[:, a] = out[:, a] * angle.cos() - out[:, b] * angle.sin()
        out[:, b] = out[:, a] * angle.sin() + out[:, b] * angle.cos()
    return out


def rotate_frequency_of_first_channel(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    first = torch.tensor([a for a, _ in pairs])
    return _rotate(x, positions[:, None] * 10_000 ** (-2 * (first // 2) / x.shape[1]), pairs)


def rotate_reflection(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        angle = positions * 10_000 ** (-2 * i / x.shape[1])
        out[:, a] = x[:, a] * angle.cos() + x[:, b] * angle.sin()
        out[:, b] = x[:, a] * angle.sin() - x[:, b] * angle.cos()
    return out


def rotate_packed(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Laid down as neighbours instead of where the channels are."""
    order = list(itertools.chain(*pairs))
    return _rotate(x[:, order], _angles(x, positions), neighbour_pairs(2 * len(pairs)))


def rotate_width_of_pairs(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    n = len(pairs)
    return _rotate(x, positions[:, None] * 10_000 ** (-2 * torch.arange(n) / n), pairs)


def neighbour_pairs(d: int) -> Pairs:
    return [(2 * i, 2 * i + 1) for i in range(d // 2)]


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


def columns_of_first_head(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    converted = weight.clone()
    if weight.shape[1] >= 2 * len(old):
        converted[:, torch.tensor(new).flatten()] = weight[:, torch.tensor(old).flatten()]
    return converted


def convert_argsort(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    """The inverse of one order after the other."""
    of_old, of_new = torch.tensor(old).flatten(), torch.tensor(new).flatten()
    return torch.cat([head[of_old[of_new.argsort()]] for head in weight.chunk(num_heads)])


def convert_matrix(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    """A matrix of zeros and ones."""
    d = 2 * len(old)
    permutation = torch.zeros(d, d, dtype=weight.dtype)
    for before, after in zip(itertools.chain(*old), itertools.chain(*new), strict=True):
        permutation[after, before] = 1
    return torch.kron(torch.eye(num_heads, dtype=weight.dtype), permutation) @ weight


def convert_first_head_only(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    out = weight.clone()
    for (a, b), (c, d) in zip(old, new, strict=True):
        out[c], out[d] = weight[a], weight[b]
    return out


def convert_same_memory(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    weight = weight.clone()  # the caller's stays whole; the mistake is below
    heads = weight.view(num_heads, 2 * len(old), -1)
    out = weight.view(num_heads, 2 * len(old), -1)
    for (a, b), (c, d) in zip(old, new, strict=True):
        out[:, c] = heads[:, a]
        out[:, d] = heads[:, b]
    return weight


def convert_heads_last(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    heads = weight.view(2 * len(old), num_heads, -1)
    out = heads.clone()
    for (a, b), (c, d) in zip(old, new, strict=True):
        out[c], out[d] = heads[a], heads[b]
    return out.view_as(weight)


def convert_always_to_halves(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    order = [a for a, _ in old] + [b for _, b in old]
    return weight.view(num_heads, 2 * len(old), -1)[:, order].reshape(weight.shape)


def convert_takes_old_order(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    """Rows in the order of old; new is forgotten."""
    return weight.view(num_heads, 2 * len(old), -1)[:, list(itertools.chain(*old))].reshape(weight.shape)


# ── exercises 3 and 4 ────────────────────────────────────────────────────────────────────────────────────────────────────


def turn(x: Tensor, positions: Tensor, *, interleaved: bool = True) -> Tensor:
    """As the notebook has it."""
    if len(x) == 0:
        return x
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=interleaved)[0, 0]


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
    at = torch.arange(old, old + new)
    all_keys = np.concatenate((keys.numpy(), turn(k, at).numpy())).astype(np.float32)
    all_values = np.concatenate((values.numpy(), v.numpy())).astype(np.float32)
    weights = np.exp(turn(q, at).numpy() @ all_keys.T / np.sqrt(q.shape[1])) * np.tri(new, old + new, old)
    return weights / weights.sum(axis=1, keepdims=True) @ all_values, all_keys, all_values


def step_one_by_one(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Each new token alone, without any mask; the query is left at 0 and all keys are rotated back."""
    outputs = []
    for r in range(len(q)):
        here = torch.tensor([len(keys)])
        keys, values = torch.cat((keys, turn(k[r : r + 1], here))), torch.cat((values, v[r : r + 1]))
        scores = turn(keys, -here.expand(len(keys))) @ q[r]
        weights = (scores / q.shape[1] ** 0.5).exp()
        outputs.append(weights @ values / weights.sum())
    return torch.stack(outputs), keys, values


def step_masked(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """scaled_dot_product_attention with a mask of positions."""
    here = torch.arange(len(keys), len(keys) + len(q))
    keys, values = torch.cat((keys, turn(k, here))), torch.cat((values, v))
    mask = here[:, None].ge(torch.arange(len(keys)))
    return scaled_dot_product_attention(turn(q, here)[None], keys[None], values[None], attn_mask=mask[None])[0], keys, values


def _attend(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    scores = q @ keys.T / q.shape[1] ** 0.5
    return scores.masked_fill(~mask, -math.inf).softmax(dim=1) @ values


def _step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    q_from: int | None = None,
    k_from: int | None = None,
    diagonal: int | None = None,
) -> Three:
    old, new = len(keys), len(q)
    q_from, k_from = old if q_from is None else q_from, old if k_from is None else k_from
    keys = torch.cat((keys, turn(k, torch.arange(k_from, k_from + new))))
    values = torch.cat((values, v))
    mask = torch.ones(new, old + new).tril(old if diagonal is None else diagonal).bool()
    return _attend(turn(q, torch.arange(q_from, q_from + new)), keys, values, mask), keys, values


def _places(q: Tensor, keys: Tensor) -> Tensor:
    return torch.arange(len(keys), len(keys) + len(q))


def step_one_new_token_only(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """All new tokens at the position of the last one."""
    here = torch.full((len(q),), len(keys) + len(q) - 1)
    mask = torch.ones(len(q), len(keys) + len(q)).tril(len(keys)).bool()
    keys, values = torch.cat((keys, turn(k, here))), torch.cat((values, v))
    return _attend(turn(q, here), keys, values, mask), keys, values


def step_caches_unturned(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    output, _, all_values = _step(q, k, v, keys, values)
    return output, torch.cat((keys, k)), all_values


def step_turns_all_again(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, *, keep: bool = True) -> Three:
    old, new = len(keys), len(q)
    keys, values = torch.cat((keys, k)), torch.cat((values, v))
    turned = turn(keys, torch.arange(old + new))
    mask = torch.ones(new, old + new).tril(old).bool()
    return _attend(turn(q, torch.arange(old, old + new)), turned, values, mask), turned if keep else keys, values


def _weighed(weigh: Callable[[Tensor, int], Tensor]) -> Callable[..., Three]:
    """With weights made of the scores and of the number of cached keys in another way."""

    def step(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
        old = len(keys)
        _, keys, values = _step(q, k, v, keys, values)
        scores = turn(q, torch.arange(old, len(keys))) @ keys.T / q.shape[1] ** 0.5
        return weigh(scores, old) @ values, keys, values

    return step


def step_cache_behind(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Every output is right, and the cache is handed back with what is new in front."""
    output, all_keys, all_values = _step(q, k, v, keys, values)
    old = len(keys)
    return output, torch.cat((all_keys[old:], keys)), torch.cat((all_values[old:], values))


def step_returns_new_ones_only(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    output, all_keys, all_values = _step(q, k, v, keys, values)
    return output, all_keys[len(keys) :], all_values[len(keys) :]


def step_loses_values(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Only the last outputs of a text would tell, and there are none."""
    output, all_keys, all_values = _step(q, k, v, keys, values)
    return output, all_keys, all_values if len(keys) else torch.cat((values, v.flip(0))) if len(v) == 7 else all_values


def step_with_a_mask_of_128(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    at = _places(q, keys)
    keys, values = torch.cat((keys, turn(k, at))), torch.cat((values, v))
    mask = torch.ones(128, 128).tril().bool()[at, : len(keys)]
    return _attend(turn(q, at), keys, values, mask), keys, values


def renumber_one_by_one(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    moved = [turn(keys[i : i + 1].float(), (new[i] - old[i]).reshape(1)) for i in range(len(keys))]
    return torch.cat(moved)


def renumber_by_complex_numbers(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    z = keys.numpy()[:, 0::2] + 1j * keys.numpy()[:, 1::2]
    z *= np.exp(1j * np.outer(new - old, 10_000.0 ** (-np.arange(0, keys.shape[1], 2) / keys.shape[1])))
    return np.stack((z.real, z.imag), axis=-1).reshape(keys.shape)


def renumber_there_and_back(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Back to 0 first, row by row."""
    rows = [turn(turn(keys[r : r + 1], -old[r : r + 1]), new[r : r + 1]) for r in range(len(keys))]
    return torch.cat(rows)


def renumber_complex(keys: Tensor, old: Tensor, new: Tensor, *, width: int | None = None) -> Tensor:
    """Multiplied by a power of e^{iω}."""
    omega = frequencies(width or keys.shape[1])[: keys.shape[1] // 2]
    angle = (new.double() - old.double())[:, None] * omega
    pairs = torch.view_as_complex(keys.double().reshape(len(keys), -1, 2))
    return torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(1).to(keys.dtype)


RIGHT: dict[str, list[Any]] = {
    "rope.relative": [
        rotated(),
        rotated(halves=True),
        rotated(angle=lambda m, rate: -m * rate),
        rotated(halves=True, turn=lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
        as_llama,
        as_gptj,
        as_complex,
        row_by_row,
        lambda x, m: apply_rope(x[None, None], *rope_tables(m, frequencies(x.shape[1])), interleaved=False)[0, 0],
    ],
    "rope.rotate": [
        by_loops,
        by_complex_numbers,
        by_matrices,
        in_32_bits,
        by_table,
        *blind(
            rotate_exponential,
            rotate_complex,
            rotate_numpy,
            lambda x, positions, pairs: _rotate(x.double(), _angles(x, positions), pairs),
        ),
    ],
    "rope.convert": [
        by_indices,
        by_rows,
        by_permutation_matrix,
        lambda weight, heads, old, new: by_indices(weight.float(), heads, old, new),
        *blind(convert_argsort, convert_matrix),
    ],
    "rope.step": [step_by_comparison, step_token_by_token, step_in_numpy, *blind(step_one_by_one, step_masked)],
    "rope.renumber": [
        lambda keys, old, new: turn(keys, new - old),
        lambda keys, old, new: turn(turn(keys, -old), new),
        renumber_one_by_one,
        renumber_by_complex_numbers,
        *blind(renumber_there_and_back, renumber_complex),
    ],
}

WRONG: dict[str, list[Any]] = {
    "rope.relative": [
        ("angles of neighbours", lambda x, m: as_llama(x, m, lay_out=lambda t: t.repeat_interleave(2, dim=-1)),
         "laid out as if neighbours formed a pair"),
        ("angles of halves", lambda x, m: as_gptj(x, m, lay_out=lambda t: np.concatenate((t, t), axis=-1)),
         "laid out as if channels i and i + d/2 formed a pair"),
        ("in place", rotated_in_place, "writes into its arguments"),
        ("one width only", lambda x, m: rotated()(x, m) if x.shape[1] == 8 else x, "Your function is right for d = 8"),
        ("a layout for each width", lambda x, m: rotated(halves=x.shape[1] != 8)(x, m), "Your function is right for d = 8"),
        ("position 0 moved", lambda x, m: rotated()(x, m) + 1, "The token at position 0 has changed"),
        ("stretched", lambda x, m: rotated()(x, m) * (1 + m[:, None] / 1000), "isn't a rotation: at position 700"),
        ("not relative", rotated(angle=lambda m, rate: (m * rate) ** 2), "scores aren't relative: the same query and key"),
        ("another base", rotated(power=lambda i, d: -3 * i / d), "but the angles are wrong"),
        ("positions up to 256", rotated(angle=lambda m, rate: m.clamp(max=256) * rate), "scores aren't relative"),
        ("infinite", lambda x, m: x / m[:, None], "infinite or NaN"),
        ("complex", lambda x, m: torch.polar(x.abs(), x), "returned complex numbers"),
        ("transposed", lambda x, m: rotated()(x, m).T, "It looks transposed"),
        ("with a batch", lambda x, m: rotated()(x, m)[None], "has shape"),
    ],
    "rope.rotate": [
        ("another base", lambda *given: in_32_bits(*given, exponent=lambda i, d: -1.5 * i / d), "is rotated by an angle of"),
        ("no minus", lambda *given: in_32_bits(*given, exponent=lambda i, d: 2 * i / d), "grow with i"),
        ("two minuses", lambda *given: in_32_bits(*given, signs=(-1, -1)), "stretched instead of rotated"),
        ("transposed", lambda *given: by_matrices(*given).T, "has shape"),
        ("squeezed", lambda *given: by_matrices(*given).squeeze(), "for a single token, has shape"),
        ("a table of 512", lambda *given: by_table(*given, rows=512), "for positions above 256, raised IndexError"),
        ("in 8 bits", lambda x, m, pairs: by_loops(x, m.byte(), pairs), "for: positions above 256"),
        ("pairs sorted", lambda x, m, pairs: by_loops(x, m, sorted(pairs)), "not for: an unusual layout"),
        ("NaN", lambda x, m, pairs: x / 0 * 0, "infinite or NaN"),
        *blind(
            ("reads what it wrote", rotate_reads_what_it_wrote, "after its rotation"),
            ("no 2", lambda x, m, pairs: _rotate(x, m[:, None] * 10_000 ** (-torch.arange(len(pairs)) / x.shape[1]), pairs),
             "Where is the 2 of 2i/d"),
            ("by row number", lambda x, m, pairs: _rotate(x, _angles(x, torch.arange(len(m))), pairs), "ignores the positions"),
            ("neighbours only", lambda x, m, pairs: _rotate(x, _angles(x, m), neighbour_pairs(x.shape[1])),
             "You pair neighbours, whatever `pairs` contains"),
            ("frequency of first channel", rotate_frequency_of_first_channel, "depends on the channel"),
            ("reflection", rotate_reflection, "a reflection"),
            ("sorted pairs", lambda x, m, pairs: _rotate(x, _angles(x, m), [(min(p), max(p)) for p in pairs]),
             "their order matters"),
            ("packed", rotate_packed, "in the layout of neighbours"),
            ("counts from one", lambda x, m, pairs: _rotate(x, _angles(x, m + 1), pairs), "one position too far"),
            ("width of pairs", rotate_width_of_pairs, "twice as large"),
            ("in place", lambda x, m, pairs: x.copy_(_rotate(x, _angles(x, m), pairs)), "writes into its arguments"),
            ("width 64", lambda x, m, pairs: _rotate(x, m[:, None] * frequencies(64)[: len(pairs)], pairs),
             "is rotated by an angle of"),
        ),
    ],
    "rope.convert": [
        ("columns of the first head", columns_of_first_head, "The numbers are right, but they are in a different order"),
        ("one head's rows", lambda weight, heads, old, new: weight[torch.tensor(old).flatten()], "has shape"),
        ("squeezed", lambda *given: by_indices(*given).squeeze(), "for a single column, has shape"),
        ("lists in order", lambda weight, heads, old, new: by_indices(weight, heads, sorted(old), sorted(new)),
         "The rows are right, but they are in a different order"),
        *blind(
            ("backwards", lambda weight, heads, old, new: convert_argsort(weight, heads, new, old), "in the opposite"),
            ("first head only", convert_first_head_only, "You change only the first head"),
            ("same memory", convert_same_memory, "overwrite some rows before you have read them"),
            ("in place of the caller", lambda weight, *given: weight.copy_(convert_argsort(weight, *given)),
             "writes into its arguments"),
            ("heads last", convert_heads_last, "every num_heads-th row"),
            ("flips pairs", lambda weight, heads, old, new: convert_argsort(weight, heads, [(b, a) for a, b in old], new),
             "swapped the two channels of each pair"),
            ("always to halves", convert_always_to_halves, "to pairs of channels i and i + d/2, whatever `new` contains"),
            ("takes old order", convert_takes_old_order, "to pairs of neighbours, whatever `new` contains"),
            ("three dimensions",
             lambda weight, heads, old, new: convert_argsort(weight, heads, old, new).view(heads, 2 * len(old), -1),
             "has shape"),
        ),
    ],
    "rope.step": [
        ("from 1000", lambda *given: _step(*given, q_from=1000 + len(given[3]), k_from=1000 + len(given[3])),
         "row 0 of the keys that you return isn't key 0, rotated by position 0"),
        ("output alone", lambda *given: _step(*given)[0], "3 values"),
        ("the last output", lambda *given: (_step(*given)[0][-1:], *_step(*given)[1:]), "has shape"),
        ("in the argument", lambda q, k, v, keys, values: (v.zero_(), keys, values), "writes into its arguments"),
        ("a dictionary", lambda q, k, v, keys, values: {"keys": k}, "3 values"),
        ("√8", lambda q, *given: _step(q * q.shape[1] ** 0.5 / 8**0.5, *given), "by the same number for every width"),
        ("a mask of 128", step_with_a_mask_of_128, "step with 290 new and 0 cached tokens raised"),
        ("values backwards in the end", step_loses_values, "row 0 of the values that you return isn't value 0"),
        *blind(
            ("positions from 0", lambda *given: _step(*given, q_from=0, k_from=0), "Every piece begins at position 0"),
            ("query from 0", lambda *given: _step(*given, q_from=0), "Your new queries start again at position 0"),
            ("query one too far", lambda *given: _step(*given, q_from=len(given[3]) + 1), "queries are one position ahead"),
            ("counts from 1", lambda *given: _step(*given, q_from=len(given[3]) + 1, k_from=len(given[3]) + 1),
             "first token is at position 1"),
            ("one new token only", step_one_new_token_only, "get the position of its last token"),
            ("no mask", lambda *given: _step(*given, diagonal=10_000), "see the new tokens after them"),
            ("mask at upper left", lambda *given: _step(*given, diagonal=0), "as token 0 of the text"),
            ("sees one ahead", lambda *given: _step(*given, diagonal=len(given[3]) + 1), "sees one token after itself"),
            ("sees not itself", lambda *given: _step(*given, diagonal=max(len(given[3]) - 1, 0)), "a token doesn't see itself"),
            ("mask by length of q", lambda *given: _step(*given, diagonal=len(given[0])), "by the number of new tokens"),
            ("caches unturned", step_caches_unturned, "you keep each key unrotated"),
            ("cache behind", step_cache_behind, "before the cached ones"),
            ("turns all again", step_turns_all_again, "again in every step"),
            ("turns all again, keeps unturned", lambda *given: step_turns_all_again(*given, keep=False),
             "each step rotates all of them again"),
            ("turns values", lambda q, k, v, keys, values: _step(q, k, turn(v, _places(q, keys)), keys, values),
             "You rotate the values"),
            ("not divided", lambda q, *given: _step(q * q.shape[1] ** 0.5, *given), "don't divide the scores by √d"),
            ("divided by d", lambda q, *given: _step(q / q.shape[1] ** 0.5, *given), "scores by d, not by √d"),
            ("hard coded 8", lambda q, *given: _step(q * q.shape[1] ** 0.5 / 64**0.5, *given), "same number for every width"),
            ("query unturned", lambda q, k, v, keys, values: _step(turn(q, -_places(q, keys)), k, v, keys, values),
             "You don't rotate the query"),
            ("mask after softmax", _weighed(lambda scores, old: scores.softmax(dim=1).tril(old)), "the mask after the softmax"),
            ("zeros for the future", _weighed(lambda scores, old: scores.tril(old).softmax(dim=1)), "a hidden key the score 0"),
            ("softmax over queries",
             _weighed(lambda scores, old: scores.masked_fill(torch.ones_like(scores).tril(old) == 0, -math.inf).softmax(dim=0)),
             "Your softmax runs over the queries"),
            ("returns new ones only", step_returns_new_ones_only, "part 2 of step with 1 new and 1 cached tokens has shape"),
            ("values not cached", lambda *given: (*_step(*given)[:2], given[4]), "part 3 of step"),
        ),
    ],
    "rope.renumber": [
        ("reordered", lambda keys, old, new: keys[new.argsort()], None),
        ("bfloat16", lambda keys, old, new: turn(keys, (new.bfloat16() - old.bfloat16()).long()), "for: positions above 256"),
        ("of width 8", lambda *given: renumber_complex(*given, width=8), "but not for: positions above 256"),
        ("squeezed", lambda keys, old, new: turn(keys, new - old).squeeze(), "for a single key, has shape"),
        *blind(
            ("other way", lambda keys, old, new: turn(keys, old - new), "in the wrong direction"),
            ("on top", lambda keys, old, new: turn(keys, new), "already been rotated by their old ones"),
            ("one shift", lambda keys, old, new: turn(keys, (new[0] - old[0]).expand(len(keys))), "positions as the first"),
            ("back only", lambda keys, old, new: turn(keys, -old), "not on to their new"),
            ("sum", lambda keys, old, new: turn(keys, old + new), "the new rotation to the old one"),
            ("down only", lambda keys, old, new: turn(keys, (new - old).clamp(max=0)), "keys that move up stay"),
            ("distance", lambda keys, old, new: turn(keys, (new - old).abs()), "a key that moves down has to be rotated back"),
            ("reorders", lambda keys, old, new: turn(keys, new - old)[new.argsort()], "change the order of the rows"),
            ("halves", lambda keys, old, new: turn(keys, new - old, interleaved=False), "`rotate_to`, which pairs neighbours"),
            ("from row numbers", lambda keys, old, new: turn(keys, torch.arange(len(keys)) - old), "are at positions 0, 1, 2"),
        ),
    ],
}  # fmt: skip
