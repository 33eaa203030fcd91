"""Answers by somebody who had not read the checks."""

import itertools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from posenc_course.alibi import alibi_bias
from posenc_course.attention import attention
from posenc_course.rope import apply_rope, rope_tables
from posenc_course.sinusoidal import frequencies

Pairs = list[tuple[int, int]]
Three = tuple[Tensor, Tensor, Tensor]


# ── 10 rope.rotate ───────────────────────────────────────────────────────────────────────────────────────────────────────


def rotate_exponential(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Right: the exponential of a matrix that is antisymmetric in each pair."""
    d = x.shape[1]
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i, (a, b) in enumerate(pairs):
        generator[a, b], generator[b, a] = 10_000 ** (-2 * i / d), -(10_000 ** (-2 * i / d))
    turns = torch.matrix_exp(positions.double()[:, None, None] * generator)
    return torch.einsum("rc,rce->re", x.double(), turns).to(x.dtype)


def rotate_complex(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Right: complex numbers, the other way round."""
    first, second = (list(channels) for channels in zip(*pairs, strict=True))
    angle = positions.double()[:, None] * frequencies(x.shape[1])
    turned = torch.complex(x[:, first].double(), x[:, second].double()) * torch.polar(torch.ones_like(angle), -angle)
    result = torch.empty_like(x)
    result[:, first], result[:, second] = turned.real.to(x.dtype), turned.imag.to(x.dtype)
    return result


def rotate_numpy(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Right: a loop over all numbers, pairs from the last to the first."""
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


def rotate_reads_what_it_wrote(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        angle = positions * 10_000 ** (-2 * i / x.shape[1])
        out[:, a] = out[:, a] * angle.cos() - out[:, b] * angle.sin()
        out[:, b] = out[:, a] * angle.sin() + out[:, b] * angle.cos()
    return out


def rotate_exponent_without_2(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    return _rotate(x, positions[:, None] * 10_000 ** (-torch.arange(len(pairs)) / x.shape[1]), pairs)


def rotate_by_row_number(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    return _rotate(x, torch.arange(len(positions))[:, None] * frequencies(x.shape[1]), pairs)


def rotate_neighbours_only(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    return _rotate(x, positions[:, None] * frequencies(x.shape[1]), [(2 * i, 2 * i + 1) for i in range(len(pairs))])


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


def rotate_sorted_pairs(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Pairs (b, a) with b > a turn the other way than (a, b)."""
    return _rotate(x, positions[:, None] * frequencies(x.shape[1]), [(min(p), max(p)) for p in pairs])


def rotate_packed(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Right turns, laid down as neighbours instead of where the channels are."""
    order = list(itertools.chain(*pairs))
    neighbours = [(2 * i, 2 * i + 1) for i in range(len(pairs))]
    return _rotate(x[:, order], positions[:, None] * frequencies(x.shape[1]), neighbours)


def rotate_counts_from_one(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    return _rotate(x, (positions[:, None] + 1) * frequencies(x.shape[1]), pairs)


def rotate_width_of_pairs(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    n = len(pairs)
    return _rotate(x, positions[:, None] * 10_000 ** (-2 * torch.arange(n) / n), pairs)


# ── 10 rope.convert ──────────────────────────────────────────────────────────────────────────────────────────────────────


def convert_argsort(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    """Right: the inverse of one order after the other."""
    of_old, of_new = torch.tensor(old).flatten(), torch.tensor(new).flatten()
    return torch.cat([head[of_old[of_new.argsort()]] for head in weight.chunk(num_heads)])


def convert_matrix(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    """Right: a matrix of zeros and ones."""
    d = 2 * len(old)
    permutation = torch.zeros(d, d, dtype=weight.dtype)
    for before, after in zip(itertools.chain(*old), itertools.chain(*new), strict=True):
        permutation[after, before] = 1
    return torch.kron(torch.eye(num_heads, dtype=weight.dtype), permutation) @ weight


def convert_backwards(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    return convert_argsort(weight, num_heads, new, old)


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


def convert_in_place_of_the_caller(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    """Right rows, but written into the caller's own tensor."""
    weight.copy_(convert_argsort(weight, num_heads, old, new))
    return weight


def convert_heads_last(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    heads = weight.view(2 * len(old), num_heads, -1)
    out = heads.clone()
    for (a, b), (c, d) in zip(old, new, strict=True):
        out[c], out[d] = heads[a], heads[b]
    return out.view_as(weight)


def convert_flips_pairs(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    return convert_argsort(weight, num_heads, [(b, a) for a, b in old], new)


def convert_always_to_halves(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    order = [a for a, _ in old] + [b for _, b in old]
    return weight.view(num_heads, 2 * len(old), -1)[:, order].reshape(weight.shape)


def convert_takes_old_order(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    """Rows in the order of old; new is forgotten."""
    order = list(itertools.chain(*old))
    return weight.view(num_heads, 2 * len(old), -1)[:, order].reshape(weight.shape)


def convert_three_dimensions(weight: Tensor, num_heads: int, old: Pairs, new: Pairs) -> Tensor:
    return convert_argsort(weight, num_heads, old, new).view(num_heads, 2 * len(old), -1)


# ── 10 rope.step ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def turn(x: Tensor, positions: Tensor) -> Tensor:
    """The notebook's: turn each row of x, (L, d), to its position, one of (L,)."""
    if len(x) == 0:
        return x
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=True)[0, 0]


def step_one_by_one(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Right: each new token alone, without any mask; the query is turned to 0 and all keys backwards."""
    outputs = []
    for r in range(len(q)):
        here = torch.tensor([len(keys)])
        keys, values = torch.cat((keys, turn(k[r : r + 1], here))), torch.cat((values, v[r : r + 1]))
        scores = turn(keys, -here.expand(len(keys))) @ q[r]
        weights = (scores / q.shape[1] ** 0.5).exp()
        outputs.append(weights @ values / weights.sum())
    return torch.stack(outputs), keys, values


def step_masked(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Right: scaled_dot_product_attention with a mask of positions."""
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


def step_positions_from_zero(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, q_from=0, k_from=0)


def step_query_from_zero(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, q_from=0)


def step_query_one_too_far(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, q_from=len(keys) + 1)


def step_counts_from_one(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, q_from=len(keys) + 1, k_from=len(keys) + 1)


def step_one_new_token_only(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """All new tokens at the position of the last one."""
    here = torch.full((len(q),), len(keys) + len(q) - 1)
    mask = torch.ones(len(q), len(keys) + len(q)).tril(len(keys)).bool()
    keys, values = torch.cat((keys, turn(k, here))), torch.cat((values, v))
    return _attend(turn(q, here), keys, values, mask), keys, values


def step_no_mask(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, diagonal=10_000)


def step_mask_at_upper_left(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, diagonal=0)


def step_sees_one_ahead(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, diagonal=len(keys) + 1)


def step_sees_not_itself(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, diagonal=max(len(keys) - 1, 0))


def step_mask_by_length_of_q(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, v, keys, values, diagonal=len(q))


def step_caches_unturned(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    output, _, all_values = _step(q, k, v, keys, values)
    return output, torch.cat((keys, k)), all_values


def step_turns_all_again(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    old, new = len(keys), len(q)
    keys, values = torch.cat((keys, k)), torch.cat((values, v))
    turned = turn(keys, torch.arange(old + new))
    mask = torch.ones(new, old + new).tril(old).bool()
    return _attend(turn(q, torch.arange(old, old + new)), turned, values, mask), turned, values


def step_turns_all_again_keeps_unturned(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Consistent with itself, but takes the cache for unturned keys."""
    old, new = len(keys), len(q)
    keys, values = torch.cat((keys, k)), torch.cat((values, v))
    mask = torch.ones(new, old + new).tril(old).bool()
    output = _attend(turn(q, torch.arange(old, old + new)), turn(keys, torch.arange(old + new)), values, mask)
    return output, keys, values


def step_turns_values(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q, k, turn(v, torch.arange(len(keys), len(keys) + len(v))), keys, values)


def step_not_divided(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q * q.shape[1] ** 0.5, k, v, keys, values)


def step_divided_by_d(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q / q.shape[1] ** 0.5, k, v, keys, values)


def step_query_unturned(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    here = torch.arange(len(keys), len(keys) + len(q))
    return _step(turn(q, -here), k, v, keys, values)


def step_mask_after_softmax(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    _, keys, values = _step(q, k, v, keys, values)
    old = len(keys) - len(q)
    scores = turn(q, torch.arange(old, len(keys))) @ keys.T / q.shape[1] ** 0.5
    return scores.softmax(dim=1).tril(old) @ values, keys, values


def step_zeros_for_the_future(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    _, keys, values = _step(q, k, v, keys, values)
    old = len(keys) - len(q)
    scores = turn(q, torch.arange(old, len(keys))) @ keys.T / q.shape[1] ** 0.5
    return scores.tril(old).softmax(dim=1) @ values, keys, values


def step_cache_behind(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Every output is right, and the cache is handed back with what is new in front."""
    output, all_keys, all_values = _step(q, k, v, keys, values)
    old = len(keys)
    return output, torch.cat((all_keys[old:], keys)), torch.cat((all_values[old:], values))


def step_returns_new_ones_only(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    output, all_keys, all_values = _step(q, k, v, keys, values)
    return output, all_keys[len(keys) :], all_values[len(keys) :]


def step_hard_coded_8(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    return _step(q * q.shape[1] ** 0.5 / 64**0.5, k, v, keys, values)


# ── 10 rope.renumber ─────────────────────────────────────────────────────────────────────────────────────────────────────


def renumber_there_and_back(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Right: back to 0 first, row by row."""
    rows = [turn(turn(keys[r : r + 1], -old[r : r + 1]), new[r : r + 1]) for r in range(len(keys))]
    return torch.cat(rows)


def renumber_complex(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Right: multiplied by a power of e^{iω}."""
    angle = (new.double() - old.double())[:, None] * frequencies(keys.shape[1])
    pairs = torch.view_as_complex(keys.double().reshape(len(keys), -1, 2))
    return torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(1).to(keys.dtype)


def renumber_other_way(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, old - new)


def renumber_on_top(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, new)


def renumber_one_shift(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, (new[0] - old[0]).expand(len(keys)))


def renumber_turns_back_only(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, -old)


def renumber_sum(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, old + new)


def renumber_down_only(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, (new - old).clamp(max=0))


def renumber_distance(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, (new - old).abs())


def renumber_reorders(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    return turn(keys, new - old)[new.argsort()]


def renumber_halves(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Turns channel i with i + d/2, which is not the layout of turn."""
    cos, sin = rope_tables(new - old, frequencies(keys.shape[1]), dtype=torch.float64)
    return apply_rope(keys[None, None], cos, sin, interleaved=False)[0, 0]


def renumber_from_row_numbers(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Supposes that the new positions are 0, 1, 2, …"""
    return turn(keys, torch.arange(len(keys)) - old)


# ── 13 rope_scaling.unseen_angles ────────────────────────────────────────────────────────────────────────────────────────


def unseen_loop(omega: Tensor, trained: int, length: int) -> list[float]:
    """Right: a list, pair by pair."""
    arcs = []
    for w in omega.tolist():
        before, after = w * (trained - 1), w * (length - 1)
        arcs.append(0.0 if before >= math.tau else after - before if after < math.tau else math.tau - before)
    return arcs


def unseen_clamped(omega: Tensor, trained: int, length: int) -> Tensor:
    """Right: what is left of the circle, and of it at most what the longer text adds."""
    left = (2 * math.pi - omega * (trained - 1)).relu()
    return torch.minimum(left, omega * (length - trained))


def unseen_lengths(omega: Tensor, trained: int, length: int) -> Tensor:
    return (omega * length).clamp(max=2 * math.pi) - (omega * trained).clamp(max=2 * math.pi)


def unseen_no_circle(omega: Tensor, trained: int, length: int) -> Tensor:
    return omega * (length - 1) - omega * (trained - 1)


def unseen_half_circle(omega: Tensor, trained: int, length: int) -> Tensor:
    return (omega * (length - 1)).clamp(max=math.pi) - (omega * (trained - 1)).clamp(max=math.pi)


def unseen_remainder(omega: Tensor, trained: int, length: int) -> Tensor:
    after, before = omega * (length - 1) % (2 * math.pi), omega * (trained - 1) % (2 * math.pi)
    return (after - before).clamp(min=0)


def unseen_longer_uncapped(omega: Tensor, trained: int, length: int) -> Tensor:
    before, after = omega * (trained - 1), omega * (length - 1)
    return torch.where(before >= 2 * math.pi, 0, after - before)


def unseen_difference_capped(omega: Tensor, trained: int, length: int) -> Tensor:
    return (omega * (length - trained)).clamp(max=2 * math.pi)


def unseen_in_turns(omega: Tensor, trained: int, length: int) -> Tensor:
    return unseen_clamped(omega, trained, length) / (2 * math.pi)


def unseen_all_that_it_sweeps(omega: Tensor, trained: int, length: int) -> Tensor:
    return (omega * (length - 1)).clamp(max=2 * math.pi)


def unseen_trained_not_minus_one(omega: Tensor, trained: int, length: int) -> Tensor:
    return (omega * (length - 1)).clamp(max=2 * math.pi) - (omega * trained).clamp(max=2 * math.pi)


# ── 13 rope_scaling.base_for ─────────────────────────────────────────────────────────────────────────────────────────────


def base_by_logarithms(d_head: int, base: float, pair: int, factor: float) -> Tensor:
    """Right: a tensor, by logarithms of the wavelength."""
    log_period = torch.tensor(base, dtype=torch.float64).log() * 2 * pair / d_head + math.log(factor)
    return (log_period * d_head / (2 * pair)).exp()


def base_by_power(d_head: int, base: float, pair: int, factor: float) -> float:
    """Right: as the second hint has it."""
    return (frequencies(d_head, base)[pair].item() / factor) ** (-d_head / (2 * pair))


def base_by_bisection(d_head: int, base: float, pair: int, factor: float) -> float:
    """Right: halvings of the logarithm."""
    low, high = math.log(base), math.log(base) + d_head * math.log(factor)
    for _ in range(200):
        middle = (low + high) / 2
        slowed = math.exp(-2 * pair / d_head * (middle - math.log(base)))
        low, high = (middle, high) if slowed > 1 / factor else (low, middle)
    return math.exp(low)


def base_times_factor(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor


def base_of_ntk(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (d_head / (d_head - 2))


def base_pair_from_one(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (d_head / (2 * (pair + 1)))


def base_root_not_taken(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (2 * pair / d_head)


def base_without_2(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (d_head / pair)


def base_faster(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (-d_head / (2 * pair))


def base_whole_division(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (d_head // (2 * pair))


def base_brackets(d_head: int, base: float, pair: int, factor: float) -> float:
    return (base * factor) ** (d_head / (2 * pair))


def base_the_frequency(d_head: int, base: float, pair: int, factor: float) -> float:
    return base ** (-2 * pair / d_head) / factor


def base_width_16(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (8 / pair)


def base_10000(d_head: int, base: float, pair: int, factor: float) -> float:
    return 10_000 * factor ** (d_head / (2 * pair))


def base_rounded(d_head: int, base: float, pair: int, factor: float) -> int:
    return int(base * factor ** (d_head / (2 * pair)) / 1000) * 1000


# ── 13 rope_scaling.which ────────────────────────────────────────────────────────────────────────────────────────────────


def which_logarithms(omega: Tensor, stretched: Tensor) -> str:
    """Right: in numpy, by logarithms, from the loosest condition on."""
    by = np.log(np.asarray(omega, dtype=float) / np.asarray(stretched, dtype=float))
    e = 1e-5
    if np.ptp(by) < e:
        return "none" if abs(by[0]) < e else "PI" if by[0] > 0 else "other"
    if abs(by[0]) > e:
        return "other"
    if abs(by[-1] - by[-2]) < e:
        return "by parts" if by[-1] > e else "other"
    grows = np.diff(by)
    return "NTK-aware" if np.ptp(grows) < e and grows[0] > 0 else "other"


def which_plain(omega: Tensor, stretched: Tensor) -> str:
    """Right: as the hints have it."""
    by = omega / stretched
    if torch.allclose(by, torch.ones_like(by)):
        return "none"
    if torch.allclose(by, by[0].expand(len(by))):
        return "PI" if by[0] > 1 else "other"
    if not torch.allclose(by[:1], torch.ones_like(by[:1])):
        return "other"
    ratio = by[1:] / by[:-1]
    if torch.allclose(ratio, ratio.mean().expand(len(ratio))) and ratio[0] > 1:
        return "NTK-aware"
    return "by parts" if torch.allclose(by[-1:], by[-2:-1]) and by[-1] > 1 else "other"


def _which(
    by: Tensor,
    *,
    pi_above_one: bool = True,
    ntk_first: bool = True,
    ntk_above_one: bool = True,
    parts_first: bool = True,
    parts_above_one: bool = True,
    rtol: float = 1e-5,
) -> str:
    def same(a: Tensor, b: Tensor | float) -> bool:
        return torch.allclose(a, torch.as_tensor(b, dtype=a.dtype).expand_as(a), rtol=rtol)

    if same(by, 1.0):
        return "none"
    if same(by, by[0]) and (by[0] > 1 or not pi_above_one):
        return "PI"
    ratio = by[1:] / by[:-1]
    if same(ratio, ratio[0]) and (not ntk_first or same(by[0], 1.0)) and (ratio[0] > 1 or not ntk_above_one):
        return "NTK-aware"
    if same(by[-2], by[-1]) and (not parts_first or same(by[0], 1.0)) and (by[-1] > 1 or not parts_above_one):
        return "by parts"
    return "other"


def which_pi_that_speeds_up(omega: Tensor, stretched: Tensor) -> str:
    return _which(omega / stretched, pi_above_one=False)


def which_ntk_first_forgotten(omega: Tensor, stretched: Tensor) -> str:
    """PI and then NTK-aware is taken for NTK-aware."""
    return _which(omega / stretched, ntk_first=False)


def which_ntk_that_falls(omega: Tensor, stretched: Tensor) -> str:
    return _which(omega / stretched, ntk_above_one=False)


def which_parts_first_forgotten(omega: Tensor, stretched: Tensor) -> str:
    return _which(omega / stretched, parts_first=False)


def which_parts_that_speed_up(omega: Tensor, stretched: Tensor) -> str:
    return _which(omega / stretched, parts_above_one=False)


def which_upside_down(omega: Tensor, stretched: Tensor) -> str:
    return _which(stretched / omega)


def which_two_digits(omega: Tensor, stretched: Tensor) -> str:
    return _which(omega / stretched, rtol=1e-2)


def which_ends_decide(omega: Tensor, stretched: Tensor) -> str:
    """Asks the two ends: equal is PI, different is NTK-aware if it grows all the way."""
    by = omega / stretched
    if torch.allclose(by, torch.ones_like(by)):
        return "none"
    if torch.allclose(by[:1], by[-1:]):
        return "PI"
    if not torch.allclose(by[:1], torch.ones_like(by[:1])):
        return "other"
    if torch.allclose(by[-1:], by[-2:-1]):
        return "by parts"
    return "NTK-aware" if (by.diff() > 0).all() else "other"


def which_differences(omega: Tensor, stretched: Tensor) -> str:
    """Takes steps of equal size for NTK-aware, instead of equal ratios."""
    by = omega / stretched
    step = by.diff()
    if not torch.allclose(by, by[0].expand(len(by))) and torch.allclose(by[:1], torch.ones_like(by[:1])):
        if torch.allclose(step, step[0].expand(len(step))):
            return "NTK-aware"
        return "by parts" if torch.allclose(by[-1:], by[-2:-1]) and by[-1] > 1 else "other"
    return _which(by)


def which_parts_before_ntk(omega: Tensor, stretched: Tensor) -> str:
    """Takes everything that keeps pair 0 and ends slower for by parts."""
    by = omega / stretched
    if torch.allclose(by[:1], torch.ones_like(by[:1])) and by[-1] > 1 + 1e-4:
        return "by parts"
    return _which(by)


def which_never_other(omega: Tensor, stretched: Tensor) -> str:
    word = _which(omega / stretched)
    return "by parts" if word == "other" else word


def which_misspelt(omega: Tensor, stretched: Tensor) -> str:
    return {"NTK-aware": "NTK", "by parts": "parts"}.get(word := _which(omega / stretched), word)


def which_last_pair_only(omega: Tensor, stretched: Tensor) -> str:
    """PI if the first two and the last pair are slowed alike."""
    by = omega / stretched
    if torch.allclose(by[[0, 1, -1]], by[0].expand(3)) and by[0] > 1 + 1e-4:
        return "PI"
    return _which(by)


# ── 13 rope_scaling.reach ────────────────────────────────────────────────────────────────────────────────────────────────


def reach_rounded(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """Right: with a little for rounding."""
    seen = omega * (trained - 1)
    open_pairs = seen < 2 * math.pi
    return math.floor((seen / stretched)[open_pairs].min().item() * (1 + 1e-9)) + 1


def reach_by_doubling(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """Right: asks a text of each length whether it stays within, doubling and halving."""
    seen = [(w * (trained - 1), s) for w, s in zip(omega.tolist(), stretched.tolist(), strict=True)]

    def within(length: int) -> bool:
        return all(s * (length - 1) <= arc * (1 + 1e-9) for arc, s in seen if arc < math.tau)

    low = high = trained
    while within(high):
        low, high = high, 2 * high
    while high - low > 1:
        low, high = ((low + high) // 2, high) if within((low + high) // 2) else (low, (low + high) // 2)
    return low


def reach_plain_floor(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """Right: as one writes it, with nothing for rounding."""
    seen = omega * (trained - 1)
    return int(torch.floor((seen / stretched)[seen < 2 * math.pi].min())) + 1


def reach_float(omega: Tensor, stretched: Tensor, trained: int) -> float:
    seen = omega * (trained - 1)
    return (seen / stretched)[seen < 2 * math.pi].min().item() + 1


def reach_distance(omega: Tensor, stretched: Tensor, trained: int) -> int:
    return reach_rounded(omega, stretched, trained) - 1


def reach_trained_not_minus_one(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * trained
    return math.floor((seen / stretched)[seen < 2 * math.pi].min().item() * (1 + 1e-9))


def reach_trained_plus_one(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * trained
    return math.floor((seen / stretched)[seen < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


def reach_all_pairs(omega: Tensor, stretched: Tensor, trained: int) -> int:
    return math.floor((omega * (trained - 1) / stretched).min().item() * (1 + 1e-9)) + 1


def reach_best_pair(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[seen < 2 * math.pi].max().item() * (1 + 1e-9)) + 1


def reach_slowest_pair(omega: Tensor, stretched: Tensor, trained: int) -> int:
    return math.floor((omega * (trained - 1) / stretched)[-1].item() * (1 + 1e-9)) + 1


def reach_fastest_open_pair(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """The first pair that has not come round, always."""
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[seen < 2 * math.pi][0].item() * (1 + 1e-9)) + 1


def reach_stretched_came_round(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """Leaves out the pairs that come round with the stretched frequencies."""
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[stretched * (trained - 1) < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


def reach_next_whole(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return math.ceil((seen / stretched)[seen < 2 * math.pi].min().item() * (1 - 1e-9)) + 1


def reach_lengths_times_factor(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """The smallest divisor times the length."""
    return math.floor(trained * (omega / stretched)[omega * (trained - 1) < 2 * math.pi].min().item() * (1 + 1e-9))


def reach_half_circle(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[seen < math.pi].min().item() * (1 + 1e-9)) + 1


# ── 09 relative.toeplitz ─────────────────────────────────────────────────────────────────────────────────────────────────


def toeplitz_unfold(by_offset: Tensor) -> Tensor:
    """Right: windows of the reversed list, read upwards."""
    return by_offset.flip(0).unfold(0, (len(by_offset) + 1) // 2, 1).flip(0)


def toeplitz_diagonals(by_offset: Tensor) -> Tensor:
    """Right: one diagonal after the other."""
    length = len(by_offset) // 2 + 1
    table = torch.zeros(length, length, dtype=by_offset.dtype)
    for place, number in enumerate(by_offset):
        table.diagonal(length - 1 - place).fill_(number)
    return table


def _by_places(by_offset: Tensor, kind: str) -> Tensor:
    at = torch.arange((len(by_offset) + 1) // 2)
    offset = at[:, None] - at
    places = {
        "n - m": len(at) - 1 - offset,
        "no shift": offset,
        "m + n": at[:, None] + at,
        "distance": offset.abs() + len(at) - 1,
        "one too early": offset + len(at) - 2,
        "past only": offset.clamp(min=0) + len(at) - 1,
    }
    return by_offset[places[kind]]


def toeplitz_transposed(by_offset: Tensor) -> Tensor:
    return _by_places(by_offset, "n - m")


def toeplitz_no_shift(by_offset: Tensor) -> Tensor:
    return _by_places(by_offset, "no shift")


def toeplitz_sum(by_offset: Tensor) -> Tensor:
    return _by_places(by_offset, "m + n")


def toeplitz_distance(by_offset: Tensor) -> Tensor:
    return _by_places(by_offset, "distance")


def toeplitz_one_too_early(by_offset: Tensor) -> Tensor:
    return _by_places(by_offset, "one too early")


def toeplitz_past_only(by_offset: Tensor) -> Tensor:
    return _by_places(by_offset, "past only")


def toeplitz_too_small(by_offset: Tensor) -> Tensor:
    at = torch.arange(len(by_offset) // 2)
    return by_offset[at[:, None] - at + len(by_offset) // 2]


# ── 09 relative.rows_used ────────────────────────────────────────────────────────────────────────────────────────────────


def rows_by_pairs(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    """Right: every query and key."""
    pairs = itertools.product(range(length), repeat=2)
    seen = {int(bucket_of(m - n)) for m, n in pairs if n <= m or not causal}
    return [row in seen for row in range(rows)]


def rows_as_tensor(bucket_of: Any, rows: int, length: int, causal: bool) -> Tensor:
    """Right: a tensor of booleans."""
    offsets = range(0 if causal else 1 - length, length)
    used = torch.zeros(rows, dtype=torch.bool)
    used[[bucket_of(offset) for offset in offsets]] = True
    return used


def _rows(bucket_of: Any, rows: int, offsets: range) -> list[bool]:
    seen = {bucket_of(offset) for offset in offsets}
    return [row in seen for row in range(rows)]


def rows_past_only(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return _rows(bucket_of, rows, range(length))


def rows_both_sides(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return _rows(bucket_of, rows, range(1 - length, length))


def rows_too_far(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return _rows(bucket_of, rows, range(0 if causal else -length, length + 1))


def rows_not_itself(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    past, future = _rows(bucket_of, rows, range(1, length)), _rows(bucket_of, rows, range(1 - length, 0))
    return [a or (b and not causal) for a, b in zip(past, future, strict=True)]


def rows_last_missing(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return _rows(bucket_of, rows, range(0 if causal else 1 - length, length - 1))


def rows_wrong_sign(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return _rows(bucket_of, rows, range(1 - length, 1 if causal else length))


def rows_swapped(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return _rows(bucket_of, rows, range(1 - length if causal else 0, length))


def rows_up_to_the_farthest(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    """Supposes that rows come in the order of offsets."""
    ends = bucket_of(0 if causal else 1 - length), bucket_of(length - 1)
    return [min(ends) <= row <= max(ends) for row in range(rows)]


def rows_list_of_rows(bucket_of: Any, rows: int, length: int, causal: bool) -> list[int]:
    return [row for row, used in enumerate(rows_by_pairs(bucket_of, rows, length, causal)) if used]


def rows_unused(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return [not used for used in rows_by_pairs(bucket_of, rows, length, causal)]


def rows_32(bucket_of: Any, rows: int, length: int, causal: bool) -> list[bool]:
    return (rows_by_pairs(bucket_of, rows, length, causal) + 32 * [False])[:32]


# ── 09 relative.needed ───────────────────────────────────────────────────────────────────────────────────────────────────


def needed_bisection(share: float, length: int) -> float:
    """Right: halvings, between -60 and 60."""
    low, high = -60.0, 60.0
    for _ in range(100):
        b = (low + high) / 2
        low, high = (b, high) if math.exp(b) / (math.exp(b) + length - 1) < share else (low, b)
    return low


def needed_logits(share: float, length: int) -> Tensor:
    """Right: a tensor, log-odds."""
    return torch.logit(torch.tensor(share, dtype=torch.float64)) + math.log(length - 1)


def needed_all_keys(share: float, length: int) -> float:
    return math.log(share * length / (1 - share))


def needed_decimal(share: float, length: int) -> float:
    return math.log10(share * (length - 1) / (1 - share))


def needed_no_logarithm(share: float, length: int) -> float:
    return share * (length - 1) / (1 - share)


def needed_one_other(share: float, length: int) -> float:
    return math.log(share / (1 - share))


def needed_wrong_sign(share: float, length: int) -> float:
    return -math.log(share * (length - 1) / (1 - share))


def needed_never_negative(share: float, length: int) -> float:
    return max(0.0, math.log(share * (length - 1) / (1 - share)))


def needed_rest_forgotten(share: float, length: int) -> float:
    return math.log(share * (length - 1))


def needed_share_of_others(share: float, length: int) -> float:
    return math.log((1 - share) * (length - 1) / share)


def needed_twice_itself(share: float, length: int) -> float:
    """All `length` keys below the line, and it once more."""
    return math.log(share * (length + 1) / (1 - share))


# ── 09 relative.receive ──────────────────────────────────────────────────────────────────────────────────────────────────


def receive_scatter(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Right: scatter_add."""
    length, reach = len(weights), len(table) // 2
    at = torch.arange(length)
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    return weights @ values + weights.new_zeros(length, len(table)).scatter_add_(1, rows, weights) @ table


def receive_query_by_query(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Right: one query at a time, (L, d) for each."""
    length, reach = len(weights), len(table) // 2
    out = torch.empty_like(values)
    for m in range(length):
        rows = [max(-reach, min(reach, m - n)) + reach for n in range(length)]
        out[m] = weights[m] @ (values + table[rows])
    return out


def receive_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Right: numpy's bincount."""
    length, reach = len(weights), len(table) // 2
    at = np.arange(length)
    sums = [np.bincount(np.clip(m - at, -reach, reach) + reach, weights[m].numpy(), len(table)) for m in at]
    return weights @ values + torch.from_numpy(np.stack(sums)).to(table.dtype) @ table


def _receive(weights: Tensor, values: Tensor, table: Tensor, rows: Tensor) -> Tensor:
    sums = torch.stack([(weights * (rows == r)).sum(dim=1) for r in range(len(table))], dim=1)
    return weights @ values + sums.to(table.dtype) @ table


def receive_other_sign(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    at, reach = torch.arange(len(weights)), len(table) // 2
    return _receive(weights, values, table, (at - at[:, None]).clamp(-reach, reach) + reach)


def receive_not_clipped(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    at, reach = torch.arange(len(weights)), len(table) // 2
    return _receive(weights, values, table, at[:, None] - at + reach)


def receive_large(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    at, reach = torch.arange(len(weights)), len(table) // 2
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    return torch.einsum("mn,mnd->md", weights, values + table[rows])


def receive_one_hot(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """L × L × (2K+1) instead of L × L × d."""
    at, reach = torch.arange(len(weights)), len(table) // 2
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    marks = torch.nn.functional.one_hot(rows, len(table)).to(weights.dtype)
    return weights @ values + torch.einsum("mn,mnr->mr", weights, marks) @ table


def receive_lost_sums(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """`+=` by an index adds to each place once, however often it stands there."""
    at, reach = torch.arange(len(weights)), len(table) // 2
    rows = (at[:, None] - at).clamp(-reach, reach) + reach
    sums = weights.new_zeros(len(weights), len(table))
    sums[at[:, None], rows] += weights
    return weights @ values + sums @ table


def receive_no_values(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    return receive_scatter(weights, torch.zeros_like(values), table)


def receive_transposed_weights(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    return receive_scatter(weights.T.contiguous(), values, table)


def receive_counts(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """Counts the keys of a row instead of adding up their weights."""
    return weights @ values + receive_scatter(torch.ones_like(weights), torch.zeros_like(values), table)


def receive_causal(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """The vectors of the past only."""
    return weights @ values + receive_scatter(weights.tril(), torch.zeros_like(values), table)


def receive_one_row_off(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    return receive_scatter(weights, values, table.roll(1, dims=0))


# ── 11 alibi.slope ───────────────────────────────────────────────────────────────────────────────────────────────────────


def slope_recursion(head: int, num_heads: int) -> float:
    """Right: by recursion on the larger power of two."""
    power = 1 << (num_heads.bit_length() - 1)
    return 2.0 ** (-8 * (head + 1) / power) if head < power else slope_recursion(2 * (head - power), 2 * power)


def slope_from_list(head: int, num_heads: int) -> Tensor:
    """Right: all slopes of a machine, as a tensor."""
    small = max(p for p in (2**k for k in range(12)) if p <= num_heads)
    few, many = (torch.logspace(-8 / p, -8, p, base=2, dtype=torch.float64) for p in (small, 2 * small))
    return torch.cat((few, many[::2]))[head]


def slope_of_any_number(head: int, num_heads: int) -> float:
    return 2 ** (-8 * (head + 1) / num_heads)


def slope_from_head_0(head: int, num_heads: int) -> float:
    power = 2 ** int(math.log2(num_heads))
    return 2 ** (-8 * head / power) if head < power else 2 ** (-4 * (2 * (head - power)) / power)


def slope_second_ones(head: int, num_heads: int) -> float:
    power = 2 ** int(math.log2(num_heads))
    return 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (2 * (head - power) + 2) / power)


def slope_every_one(head: int, num_heads: int) -> float:
    power = 2 ** int(math.log2(num_heads))
    return 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (head - power + 1) / power)


def slope_sorted(head: int, num_heads: int) -> float:
    return sorted((slope_recursion(h, num_heads) for h in range(num_heads)), reverse=True)[head]


def slope_next_larger(head: int, num_heads: int) -> float:
    power = 2 ** math.ceil(math.log2(num_heads))
    return 2 ** (-8 * (head + 1) / power)


def slope_strictly_smaller(head: int, num_heads: int) -> float:
    """For 8 heads takes the slopes of 4 first."""
    power = 1
    while 2 * power < num_heads:
        power *= 2
    return 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (2 * (head - power) + 1) / power)


def slope_from_the_end(head: int, num_heads: int) -> float:
    power = 2 ** int(math.log2(num_heads))
    return 2 ** (-8 * (head + 1) / power) if head < power else 2 ** (-4 * (2 * power - 2 * (head - power) - 1) / power)


def slope_twelve(head: int, num_heads: int) -> float:
    return 2.0 ** -(head + 1) if head < 8 else 2 ** -(head - 8 + 0.5)


def slope_positive(head: int, num_heads: int) -> float:
    return 1 / slope_recursion(head, num_heads)


def slope_whole_exponent(head: int, num_heads: int) -> float:
    power = 2 ** int(math.log2(num_heads))
    return 2.0 ** -(8 * (head + 1) // power) if head < power else 2.0 ** -(4 * (2 * (head - power) + 1) // power)


# ── 11 alibi.same_bias ───────────────────────────────────────────────────────────────────────────────────────────────────


def same_rows(a: Tensor, b: Tensor) -> bool:
    """Right: row by row, the spread of the difference."""
    spreads = [float(np.ptp((a[m, : m + 1] - b[m, : m + 1]).double().numpy())) for m in range(len(a))]
    return max(spreads) < 1e-5


def same_own_key(a: Tensor, b: Tensor) -> bool:
    """Right: each row less its number on the diagonal."""
    a, b = (torch.where(torch.ones_like(x).tril().bool(), x, 0).double() for x in (a, b))
    a, b = ((x - x.diagonal()[:, None]).tril() for x in (a, b))
    return torch.allclose(a, b, atol=1e-5)


def same_steps(a: Tensor, b: Tensor) -> Tensor:
    """Right: a boolean tensor, from key to key."""
    steps = (a - b).diff(dim=1)
    looks = torch.ones(len(a), len(a)).tril().bool()[:, 1:]
    return (steps[looks].abs() < 1e-5).all()


def same_whole_tables(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b)


def same_without_constants(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a[torch.ones_like(a).tril().bool()], b[torch.ones_like(b).tril().bool()])


def same_one_constant(a: Tensor, b: Tensor) -> bool:
    difference = (a - b)[torch.ones_like(a).tril().bool()]
    return torch.allclose(difference, difference[0].expand_as(difference), atol=1e-5)


def same_future_too(a: Tensor, b: Tensor) -> bool:
    difference = a - b
    return torch.allclose(difference, difference[:, :1].expand_as(difference), atol=1e-5)


def same_columns(a: Tensor, b: Tensor) -> bool:
    return all(float(np.ptp((a[n:, n] - b[n:, n]).numpy())) < 1e-5 for n in range(len(a)))


def same_upper_triangle(a: Tensor, b: Tensor) -> bool:
    return all(float((a[m, m:] - b[m, m:]).max() - (a[m, m:] - b[m, m:]).min()) < 1e-5 for m in range(len(a)))


def same_last_row(a: Tensor, b: Tensor) -> bool:
    return float((a[-1] - b[-1]).max() - (a[-1] - b[-1]).min()) < 1e-5


def same_not_itself(a: Tensor, b: Tensor) -> bool:
    return all(float(np.ptp((a[m, :m] - b[m, :m]).numpy())) < 1e-5 for m in range(1, len(a)))


def same_bit_for_bit(a: Tensor, b: Tensor) -> bool:
    return all(len(set((a[m, : m + 1] - b[m, : m + 1]).tolist())) == 1 for m in range(len(a)))


def same_rough(a: Tensor, b: Tensor) -> bool:
    return all(float(np.ptp((a[m, : m + 1] - b[m, : m + 1]).numpy())) < 1 for m in range(len(a)))


def same_infinities_as_zero(a: Tensor, b: Tensor) -> bool:
    return same_future_too(a.nan_to_num(neginf=0.0), b.nan_to_num(neginf=0.0))


def same_softmax_of_zeros(a: Tensor, b: Tensor) -> bool:
    """Weights under scores of 0: what lies far below the largest number vanishes from both."""
    hidden = ~torch.ones_like(a).tril().bool()
    a, b = (x.masked_fill(hidden, -math.inf).softmax(dim=1) for x in (a, b))
    return torch.allclose(a, b, atol=1e-6)


def same_neighbour_shift(a: Tensor, b: Tensor) -> bool:
    """Looks one key too far."""
    return all(float(np.ptp((a[m, : m + 2] - b[m, : m + 2]).numpy())) < 1e-5 for m in range(len(a)))


# ── 11 alibi.slope_for ───────────────────────────────────────────────────────────────────────────────────────────────────


def slope_for_newton(keys: int, share: float, length: int) -> float:
    """Right: the geometric sums, and halvings of the logarithm of the slope."""
    low, high = -20.0, 8.0
    for _ in range(80):
        s = math.exp((low + high) / 2)
        held = math.expm1(-s * keys) / math.expm1(-s * length)
        low, high = ((low + high) / 2, high) if held < share else (low, (low + high) / 2)
    return math.exp(low)


def slope_for_grid(keys: int, share: float, length: int) -> Tensor:
    """Right: finer and finer grids, a tensor."""
    low, high = 0.0, 50.0
    for _ in range(8):
        grid = torch.linspace(low, high, 101, dtype=torch.float64)
        held = (-grid[:, None] * torch.arange(length, dtype=torch.float64)).softmax(dim=1)[:, :keys].sum(dim=1)
        below = int((held < share).sum())
        low, high = grid[max(below - 1, 0)].item(), grid[min(below, 100)].item()
    return torch.tensor(low)


def _search(held: Any, share: float, low: float = 0.0, high: float = 50.0, times: int = 60) -> float:
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) < share else (low, middle)
    return (low + high) / 2


def _near(s: float, keys: int, length: int) -> float:
    return (-s * torch.arange(length, dtype=torch.float64)).softmax(dim=0)[:keys].sum().item()


def slope_for_long_text(keys: int, share: float, length: int) -> float:
    return -math.log(1 - share) / keys


def slope_for_at_most_one(keys: int, share: float, length: int) -> float:
    return _search(lambda s: _near(s, keys, length), share, 0.0, 1.0)


def slope_for_one_key_more(keys: int, share: float, length: int) -> float:
    return _search(lambda s: _near(s, keys + 1, length), share)


def slope_for_itself_forgotten(keys: int, share: float, length: int) -> float:
    """Does not count the query's own key."""
    return _search(lambda s: (-s * torch.arange(1.0, length)).softmax(dim=0)[:keys].sum().item(), share)


def slope_for_ten_halvings(keys: int, share: float, length: int) -> float:
    return _search(lambda s: _near(s, keys, length), share, 0.0, 50.0, 10)


def slope_for_far_keys(keys: int, share: float, length: int) -> float:
    return _search(lambda s: _near(s, keys, length), 1 - share)


def slope_for_twice_keys(keys: int, share: float, length: int) -> float:
    """The formula of the hint, for any length."""
    return math.log(share / (1 - share)) / keys


def slope_for_wrong_half(keys: int, share: float, length: int) -> float:
    return _search(lambda s: -_near(s, keys, length), -share)


def slope_for_one_key_alone(keys: int, share: float, length: int) -> float:
    """The share of the key at distance keys - 1 alone against the first."""
    return -math.log(1 - share) / (keys - 1) if keys > 1 else -math.log(1 - share)


def slope_for_base_two(keys: int, share: float, length: int) -> float:
    return slope_for_newton(keys, share, length) / math.log(2)


def slope_for_minus(keys: int, share: float, length: int) -> float:
    return -slope_for_newton(keys, share, length)


def slope_for_one_key_less_of_text(keys: int, share: float, length: int) -> float:
    return _search(lambda s: _near(s, keys, length + 1), share)


# ── 11 alibi.attend ──────────────────────────────────────────────────────────────────────────────────────────────────────


def attend_without_padding(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Right: throws the padding away, and goes query by query with s·n for the bias."""
    keys, values = keys[:, real], values[:, real]
    new, words = q.shape[1], keys.shape[1]
    out = torch.empty_like(q)
    for r in range(new):
        upto = words - new + r + 1
        scores = (keys[:, :upto] @ q[:, r, :, None])[..., 0] / q.shape[2] ** 0.5 + slopes[:, None] * torch.arange(upto)
        out[:, r] = (scores.softmax(dim=1)[:, None] @ values[:, :upto])[:, 0]
    return out


def attend_package(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Right: the package's two functions."""
    places, new = real.cumsum(dim=0) - 1, q.shape[1]
    at = torch.arange(len(real))
    mask = real & (at <= at[-new:, None])
    bias = alibi_bias(places[-new:], places, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=mask)


def _attend_alibi(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    slopes: Tensor,
    places: tuple[Tensor, Tensor],
    mask: Tensor,
    scale: float | None = None,
) -> Tensor:
    scores = q @ keys.transpose(1, 2) / (q.shape[2] ** 0.5 if scale is None else scale)
    scores = scores - slopes[:, None, None] * (places[0][:, None] - places[1])
    return scores.masked_fill(~mask, -math.inf).softmax(dim=2) @ values


def _causal(new: int, count: int) -> Tensor:
    return torch.ones(new, count).tril(count - new).bool()


def attend_padding_is_distance(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = torch.arange(len(real)), q.shape[1]
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), _causal(new, len(real)) & real)


def attend_padding_seen(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), _causal(new, len(real)))


def attend_not_causal(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), real.expand(new, -1))


def attend_not_causal_distance(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    bias = alibi_bias(at[-new:], at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=real.expand(new, -1))


def attend_mask_at_upper_left(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    at_first = torch.ones(new, len(real)).tril().bool()
    mask = at_first & real
    mask[:, -1] |= ~mask.any(dim=1)  # nobody is left without any key
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), mask)


def attend_mask_by_word_numbers(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Compares numbers of words; padding has that of the word before, and is seen."""
    at, new = real.cumsum(dim=0), q.shape[1]
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), at <= at[-new:, None])


def attend_wrong_sign(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    return _attend_alibi(q, keys, values, -slopes, (at[-new:], at), _causal(new, len(real)) & real)


def attend_not_divided(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), _causal(new, len(real)) & real, 1.0)


def attend_bias_divided_too(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    return attend_package(q, keys, values, slopes / q.shape[2] ** 0.5, real)


def attend_divided_twice(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    return attend_package(q / q.shape[2] ** 0.5, keys, values, slopes, real)


def attend_queries_from_zero(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Query r at r: with alibi_bias, which takes the distance without its sign."""
    at, new = real.cumsum(dim=0) - 1, q.shape[1]
    bias = alibi_bias(torch.arange(new), at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=_causal(new, len(real)) & real)


def attend_slopes_reversed(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    return attend_package(q, keys, values, slopes.flip(0), real)


def attend_one_slope(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    return attend_package(q, keys, values, slopes[:1].expand_as(slopes), real)


def attend_package_slopes(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Takes a power of two's slopes instead of those it was given."""
    heads = len(slopes)
    own = torch.tensor([slope_recursion(h, heads) for h in range(heads)], dtype=slopes.dtype)
    return attend_package(q, keys, values, own, real)


def attend_padding_in_front_only(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    """Subtracts what is in front; padding in the middle counts as distance, which plain positions would do as well."""
    first = int(real.long().argmax())
    at, new = torch.arange(len(real)) - first, q.shape[1]
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), _causal(new, len(real)) & real)


def attend_with_batch(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    return attend_package(q, keys, values, slopes, real)[None]


def attend_no_bias(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    return attend_package(q, keys, values, torch.zeros_like(slopes), real)


def attend_sees_not_itself(q: Tensor, keys: Tensor, values: Tensor, slopes: Tensor, real: Tensor) -> Tensor:
    at, new = real.cumsum(dim=0), q.shape[1]
    mask = torch.ones(new, len(real)).tril(len(real) - new - 1).bool() & real
    mask[:, 0] |= ~mask.any(dim=1)
    return _attend_alibi(q, keys, values, slopes, (at[-new:], at), mask)


# ── Second thoughts ──────────────────────────────────────────────────────────────────────────────────────────────────────


def rotate_double(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Right: 64 bits come back, whatever x has."""
    return _rotate(x.double(), positions[:, None] * frequencies(x.shape[1]), pairs)


def rotate_in_place(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """Right numbers, in the caller's own tensor."""
    return x.copy_(_rotate(x, positions[:, None] * frequencies(x.shape[1]), pairs))


def rotate_fixed_base_width_64(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    return _rotate(x, positions[:, None] * frequencies(64)[: len(pairs)], pairs)


def step_values_not_cached(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    output, all_keys, _ = _step(q, k, v, keys, values)
    return output, all_keys, values


def step_softmax_over_queries(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    old, new = len(keys), len(q)
    _, keys, values = _step(q, k, v, keys, values)
    scores = turn(q, torch.arange(old, old + new)) @ keys.T / q.shape[1] ** 0.5
    mask = torch.ones(new, old + new).tril(old).bool()
    return scores.masked_fill(~mask, -math.inf).softmax(dim=0) @ values, keys, values


def which_by_equals_sign(omega: Tensor, stretched: Tensor) -> str:
    """No forgiveness at all."""
    by = (omega / stretched).tolist()
    ratios = [b / a for a, b in itertools.pairwise(by)]
    if set(by) == {1.0}:
        return "none"
    if len(set(by)) == 1 and by[0] > 1:
        return "PI"
    if by[0] == 1 and len(set(ratios)) == 1 and ratios[0] > 1:
        return "NTK-aware"
    return "by parts" if by[0] == 1 and by[-1] == by[-2] > 1 else "other"


def which_eight_digits(omega: Tensor, stretched: Tensor) -> str:
    """Numbers that agree in five digits are different."""
    return _which(omega / stretched, rtol=1e-8)


def reach_open_by_length(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """A pair has come round where its wavelength is no longer than the text, not its largest distance."""
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[omega * trained < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


def toeplitz_list(by_offset: Tensor) -> list[list[float]]:
    """Right, if a list of lists is a table."""
    last = len(by_offset) // 2
    return [[float(by_offset[m - n + last]) for n in range(last + 1)] for m in range(last + 1)]


def rows_all_at_once(bucket_of: Any, rows: int, length: int, causal: bool) -> Tensor:
    """bucket_of takes one whole number, not a tensor of them."""
    used = torch.zeros(rows, dtype=torch.bool)
    used[bucket_of(torch.arange(0 if causal else 1 - length, length))] = True
    return used


def receive_large_in_numpy(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
    """L × L × d numbers, where torch does not see them."""
    at, reach = np.arange(len(weights)), len(table) // 2
    rows = np.clip(at[:, None] - at, -reach, reach) + reach
    return torch.from_numpy(np.einsum("mn,mnd->md", weights.numpy(), values.numpy() + table.numpy()[rows]))


def same_softmax_of_random_scores(a: Tensor, b: Tensor) -> bool:
    """One draw of scores."""
    hidden = ~torch.ones_like(a).tril().bool()
    scores = torch.randn(a.shape, dtype=a.dtype, generator=torch.Generator().manual_seed(1))
    a, b = ((scores + x).masked_fill(hidden, -math.inf).softmax(dim=1) for x in (a, b))
    return torch.allclose(a, b, atol=1e-6)


def slope_for_up_to_two(keys: int, share: float, length: int) -> float:
    return _search(lambda s: _near(s, keys, length), share, 0.0, 2.0)


def slope_for_from_a_hundredth(keys: int, share: float, length: int) -> float:
    return _search(lambda s: _near(s, keys, length), share, 0.01, 50.0)


RIGHT = {
    "rope.rotate": [rotate_exponential, rotate_complex, rotate_numpy, rotate_double],
    "rope.convert": [convert_argsort, convert_matrix],
    "rope.step": [step_one_by_one, step_masked],
    "rope.renumber": [renumber_there_and_back, renumber_complex],
    "rope_scaling.unseen_angles": [unseen_loop, unseen_clamped],
    "rope_scaling.base_for": [base_by_logarithms, base_by_power, base_by_bisection],
    "rope_scaling.which": [which_logarithms, which_plain],
    "rope_scaling.reach": [reach_rounded, reach_by_doubling, reach_plain_floor],
    "relative.toeplitz": [toeplitz_unfold, toeplitz_diagonals, toeplitz_list],
    "relative.rows_used": [rows_by_pairs, rows_as_tensor],
    "relative.needed": [needed_bisection, needed_logits],
    "relative.receive": [receive_scatter, receive_query_by_query, receive_numpy],
    "alibi.slope": [slope_recursion, slope_from_list],
    "alibi.same_bias": [same_rows, same_own_key, same_steps],
    "alibi.slope_for": [slope_for_newton, slope_for_grid],
    "alibi.attend": [attend_without_padding, attend_package],
}


# Words of the verdict that name the mistake; None: the verdict gives a first difference, misleads, or (a bug) accepts.
WRONG = {
    "rope.rotate": {
        "reads what it wrote": (rotate_reads_what_it_wrote, "after it has turned"),
        "exponent without 2": (rotate_exponent_without_2, "where is the 2 of 2i/d"),
        "by row number": (rotate_by_row_number, "stands in positions[r]"),
        "neighbours only": (rotate_neighbours_only, "pair neighbours whatever pairs says"),
        "frequency of first channel": (rotate_frequency_of_first_channel, None),
        "reflection": (rotate_reflection, None),
        "sorted pairs": (rotate_sorted_pairs, None),
        "packed": (rotate_packed, "come back as neighbours"),
        "counts from one": (rotate_counts_from_one, "one position too much"),
        "width of pairs": (rotate_width_of_pairs, "Is it doubled twice"),
        "in place": (rotate_in_place, "writes into its arguments"),
        "fixed base width 64": (rotate_fixed_base_width_64, None),
    },
    "rope.convert": {
        "backwards": (convert_backwards, "The other way round"),
        "first head only": (convert_first_head_only, "Only the first head has changed"),
        "same memory": (convert_same_memory, None),
        "in place of the caller": (convert_in_place_of_the_caller, "writes into its arguments"),
        "heads last": (convert_heads_last, "every num_heads-th row for a head"),
        "flips pairs": (convert_flips_pairs, "two channels of each pair have changed places"),
        "always to halves": (convert_always_to_halves, "whatever new says"),
        "takes old order": (convert_takes_old_order, "whatever new says"),
        "three dimensions": (convert_three_dimensions, "has shape"),
    },
    "rope.step": {
        "positions from zero": (step_positions_from_zero, "Every piece begins at position 0"),
        "query from zero": (step_query_from_zero, None),
        "query one too far": (step_query_one_too_far, None),
        "counts from one": (step_counts_from_one, None),
        "one new token only": (step_one_new_token_only, None),
        "no mask": (step_no_mask, "each sees those after it"),
        "mask at upper left": (step_mask_at_upper_left, "Your mask counts rows from 0"),
        "sees one ahead": (step_sees_one_ahead, "sees one token after itself"),
        "sees not itself": (step_sees_not_itself, None),
        "mask by length of q": (step_mask_by_length_of_q, None),
        "caches unturned": (step_caches_unturned, "not the turned one"),
        "cache behind": (step_cache_behind, "in another order"),
        "turns all again": (step_turns_all_again, "turned once more in every step"),
        "turns all again keeps unturned": (step_turns_all_again_keeps_unturned, "each step turns all of them anew"),
        "turns values": (step_turns_values, "values are turned as well"),
        "not divided": (step_not_divided, "not divided by √d"),
        "divided by d": (step_divided_by_d, None),
        "query unturned": (step_query_unturned, "query has not been turned"),
        "mask after softmax": (step_mask_after_softmax, None),
        "zeros for the future": (step_zeros_for_the_future, None),
        "returns new ones only": (step_returns_new_ones_only, "These are the new ones"),
        "hard coded 8": (step_hard_coded_8, None),
        "values not cached": (step_values_not_cached, "These are those of before"),
        "softmax over queries": (step_softmax_over_queries, None),
    },
    "rope.renumber": {
        "other way": (renumber_other_way, "The other way round"),
        "on top": (renumber_on_top, "turned by their old ones already"),
        "one shift": (renumber_one_shift, "as much as the first"),
        "turns back only": (renumber_turns_back_only, "not on to their new places"),
        "sum": (renumber_sum, "The turns add up"),
        "down only": (renumber_down_only, None),
        "distance": (renumber_distance, None),
        "reorders": (renumber_reorders, None),
        "halves": (renumber_halves, None),
        "from row numbers": (renumber_from_row_numbers, "end up at 0, 1, 2"),
    },
    "rope_scaling.unseen_angles": {
        "lengths": (unseen_lengths, "Not T"),
        "no circle": (unseen_no_circle, "Your arcs know no end"),
        "half circle": (unseen_half_circle, "circle ends at π"),
        "remainder": (unseen_remainder, None),
        "longer uncapped": (unseen_longer_uncapped, None),
        "difference capped": (unseen_difference_capped, "limit the difference to one circle"),
        "in turns": (unseen_in_turns, "radians were asked for"),
        "all that it sweeps": (unseen_all_that_it_sweeps, "whole arc of the longer text"),
        "trained not minus one": (unseen_trained_not_minus_one, None),
    },
    "rope_scaling.base_for": {
        "times factor": (base_times_factor, "base times the factor is not enough"),
        "of ntk": (base_of_ntk, "is NTK-aware scaling's"),
        "pair from one": (base_pair_from_one, "count pairs from 1"),
        "root not taken": (base_root_not_taken, "exponent is upside down"),
        "without 2": (base_without_2, "Your exponent is too large"),
        "faster": (base_faster, "the pair turns faster"),
        "whole division": (base_whole_division, None),
        "brackets": (base_brackets, None),
        "the frequency": (base_the_frequency, "the pair's new frequency"),
        "width 16": (base_width_16, None),
        "10000": (base_10000, None),
        "rounded": (base_rounded, None),
    },
    "rope_scaling.which": {
        "pi that speeds up": (which_pi_that_speeds_up, "makes them faster"),
        "ntk first forgotten": (which_ntk_first_forgotten, "the fastest pair must be kept"),
        "ntk that falls": (which_ntk_that_falls, None),
        "parts first forgotten": (which_parts_first_forgotten, "keeps the fastest pair"),
        "parts that speed up": (which_parts_that_speed_up, None),
        "upside down": (which_upside_down, "divisors are upside down"),
        "two digits": (which_two_digits, None),
        "ends decide": (which_ends_decide, None),
        "differences": (which_differences, "you look for equal differences"),
        "parts before ntk": (which_parts_before_ntk, None),
        "never other": (which_never_other, None),
        "misspelt": (which_misspelt, "should be one of"),
        "last pair only": (which_last_pair_only, None),
        "by equals sign": (which_by_equals_sign, None),
        "eight digits": (which_eight_digits, None),
    },
    "rope_scaling.reach": {
        "float": (reach_float, "should be a whole number"),
        "distance": (reach_distance, "the largest distance that is known"),
        "trained not minus one": (reach_trained_not_minus_one, "are not T apart"),
        "trained plus one": (reach_trained_plus_one, "are not T apart"),
        "all pairs": (reach_all_pairs, "those that have come round"),
        "best pair": (reach_best_pair, "wait for the last pair"),
        "slowest pair": (reach_slowest_pair, "the slowest pair alone"),
        "fastest open pair": (reach_fastest_open_pair, "ask the fastest"),
        "stretched came round": (reach_stretched_came_round, "not of the new"),
        "next whole": (reach_next_whole, "Round down"),
        "lengths times factor": (reach_lengths_times_factor, "are not T apart"),
        "half circle": (reach_half_circle, "Half a turn"),
        "open by length": (reach_open_by_length, None),
    },
    "relative.toeplitz": {
        "transposed": (toeplitz_transposed, "two sides are exchanged"),
        "no shift": (toeplitz_no_shift, "does not stand at place 0"),
        "sum": (toeplitz_sum, "constant along m + n"),
        "distance": (toeplitz_distance, "Your table is symmetric"),
        "one too early": (toeplitz_one_too_early, "Off by one"),
        "past only": (toeplitz_past_only, None),
        "too small": (toeplitz_too_small, "has shape (2, 2)"),
    },
    "relative.rows_used": {
        "past only": (rows_past_only, "you look back only"),
        "both sides": (rows_both_sides, "you let a query look ahead"),
        "too far": (rows_too_far, "One offset too many"),
        "not itself": (rows_not_itself, "offset 0 is missing"),
        "last missing": (rows_last_missing, "One offset too few"),
        "wrong sign": (rows_wrong_sign, "query minus key"),
        "swapped": (rows_swapped, "mask is the wrong way round"),
        "up to the farthest": (rows_up_to_the_farthest, None),
        "list of rows": (rows_list_of_rows, "has shape"),
        "unused": (rows_unused, "rows that nobody looks up"),
        "32": (rows_32, "has shape"),
        "all at once": (rows_all_at_once, None),
    },
    "relative.needed": {
        "all keys": (needed_all_keys, "one of the keys is the key itself"),
        "decimal": (needed_decimal, "which logarithm fits"),
        "no logarithm": (needed_no_logarithm, "score is asked, before it"),
        "one other": (needed_one_other, "You have one other key in mind"),
        "wrong sign": (needed_wrong_sign, "The sign is turned"),
        "never negative": (needed_never_negative, "Never negative"),
        "rest forgotten": (needed_rest_forgotten, "your key is missing there"),
        "share of others": (needed_share_of_others, None),
        "twice itself": (needed_twice_itself, None),
    },
    "relative.receive": {
        "other sign": (receive_other_sign, "Past and future are exchanged"),
        "not clipped": (receive_not_clipped, "Keys farther than K"),
        "large": (receive_large, "a vector for each query and key"),
        "one hot": (receive_one_hot, "number for each query, key and row"),
        "lost sums": (receive_lost_sums, None),
        "no values": (receive_no_values, "the values are missing"),
        "transposed weights": (receive_transposed_weights, "weights are transposed"),
        "counts": (receive_counts, "without their weights"),
        "causal": (receive_causal, None),
        "one row off": (receive_one_row_off, None),
        "large in numpy": (receive_large_in_numpy, "too large"),
    },
    "alibi.slope": {
        "of any number": (slope_of_any_number, "formula of the paper's text"),
        "from head 0": (slope_from_head_0, "the h of the formula from 1"),
        "second ones": (slope_second_ones, "repeat the first ones"),
        "every one": (slope_every_one, "every other one is there already"),
        "sorted": (slope_sorted, "right, but sorted"),
        "next larger": (slope_next_larger, "first slopes of 16"),
        "strictly smaller": (slope_strictly_smaller, None),
        "from the end": (slope_from_the_end, None),
        "twelve": (slope_twelve, None),
        "positive": (slope_positive, "exponent lacks its minus"),
        "whole exponent": (slope_whole_exponent, None),
    },
    "alibi.same_bias": {
        "whole tables": (same_whole_tables, "Only equal numbers are the same"),
        "without constants": (same_without_constants, "Only equal numbers are the same"),
        "one constant": (same_one_constant, "one for each row is not"),
        "future too": (same_future_too, "compare the future too"),
        "columns": (same_columns, "added to a column"),
        "upper triangle": (same_upper_triangle, None),
        "last row": (same_last_row, "all keys of every query"),
        "not itself": (same_not_itself, "all keys of every query"),
        "bit for bit": (same_bit_for_bit, None),
        "rough": (same_rough, None),
        "infinities as zero": (same_infinities_as_zero, "compare the future too"),
        "softmax of zeros": (same_softmax_of_zeros, None),
        "neighbour shift": (same_neighbour_shift, "compare the future too"),
        "softmax of random scores": (same_softmax_of_random_scores, None),
    },
    "alibi.slope_for": {
        "long text": (slope_for_long_text, "formula for a text without end"),
        "at most one": (slope_for_at_most_one, "does your search end at 1"),
        "one key more": (slope_for_one_key_more, "right for keys + 1"),
        "itself forgotten": (slope_for_itself_forgotten, "the query's own key, at distance 0"),
        "ten halvings": (slope_for_ten_halvings, None),
        "far keys": (slope_for_far_keys, None),
        "twice keys": (slope_for_twice_keys, None),
        "wrong half": (slope_for_wrong_half, "does your search move"),
        "one key alone": (slope_for_one_key_alone, None),
        "base two": (slope_for_base_two, None),
        "minus": (slope_for_minus, "Your slopes are turned round"),
        "one key less of text": (slope_for_one_key_less_of_text, "right for length + 1"),
        "up to two": (slope_for_up_to_two, None),
        "from a hundredth": (slope_for_from_a_hundredth, None),
    },
    "alibi.attend": {
        "padding is distance": (attend_padding_is_distance, "count the words between them"),
        "padding seen": (attend_padding_seen, "still looked at"),
        "not causal": (attend_not_causal, "see those after them"),
        "not causal distance": (attend_not_causal_distance, "see those after them"),
        "mask at upper left": (attend_mask_at_upper_left, None),
        "mask by word numbers": (attend_mask_by_word_numbers, "still looked at"),
        "wrong sign": (attend_wrong_sign, "look at a sign"),
        "not divided": (attend_not_divided, "not divided by √d"),
        "bias divided too": (attend_bias_divided_too, "bias has been divided"),
        "divided twice": (attend_divided_twice, None),
        "queries from zero": (attend_queries_from_zero, None),
        "slopes reversed": (attend_slopes_reversed, "slopes are in reverse"),
        "one slope": (attend_one_slope, "the first one's slope"),
        "package slopes": (attend_package_slopes, None),
        "padding in front only": (attend_padding_in_front_only, "count the words between them"),
        "with batch": (attend_with_batch, "has shape"),
        "no bias": (attend_no_bias, "The bias is missing"),
        "sees not itself": (attend_sees_not_itself, None),
    },
}
