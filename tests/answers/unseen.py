"""Answers that were written from the students' notebooks alone, before anybody had looked at what the checks say of them."""

# Students write no types.
# mypy: ignore-errors

import itertools
import math

import torch

from posenc_course.alibi import alibi_bias
from posenc_course.attention import attention
from posenc_course.rope import apply_rope, rope_tables
from posenc_course.sinusoidal import frequencies
from tests.answers import wrong

# ── right ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


# ── wrong: chapters 1 to 9 ───────────────────────────────────────────────────────────────────────────────────────────────


@wrong("order.kind")
def reverses_only(f, x):
    a, b = f(x), f(x.flip(0))
    if torch.allclose(a, b):
        return "invariant"
    return "equivariant" if a.shape == x.shape and torch.allclose(a.flip(0), b) else "neither"


@wrong("order.who_sees_whom")
def transposed(f, x):
    seen = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        y = x.clone()
        y[n] += 1.7 * torch.randn_like(y[n])
        seen[n] = ((f(y) - f(x)).abs() > 1e-9).any(dim=1)
    return seen


@wrong("order.orders_apart")
def exact_bytes(f, x):
    return len({tuple(f(x[list(p)]).flatten().tolist()) for p in itertools.permutations(range(len(x)))})


@wrong("naive.counts_along")
def axes_mixed_up(f):
    y = f(torch.zeros(3, 5, 8))
    if (y[:, 1:] - y[:, :1]).abs().max() > 1e-4:
        return "text"
    return "token" if (y[1:] - y[:1]).abs().max() > 1e-4 else "neither"


@wrong("naive.named")
def always_one_back(m, trained, length):
    return m - 1


@wrong("naive.even_code")
def sinusoid_of_the_paper(positions):
    omega = frequencies(6)
    angles = positions.double()[:, None] * omega
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


@wrong("sinusoidal.turns")
def without_the_wrap(table):
    angle = torch.atan2(table[:, 0::2], table[:, 1::2])
    return angle.diff(dim=0)


@wrong("pendulums.moving")
def pythagoras(first, second):
    return (1 - first**2).sqrt()


@wrong("pendulums.bent_hand")
def shortest_hand(row):
    return int(row.view(-1, 2).norm(dim=1).argmin())


@wrong("norm.has_right_lengths")
def first_width_only(make_table):
    table = make_table(torch.arange(300), 16)
    return bool(((table.norm(dim=1) - 8**0.5).abs() < 1e-3).all())


@wrong("norm.factor_for")
def square_forgotten(words, rows, share):
    return float((rows**2).sum(1).mean() * (1 - share) / share / (words**2).sum(1).mean())


@wrong("shift.offset_between")
def only_forwards(row_m, row_n, omega, limit):
    a, b = (torch.view_as_complex(row.double().view(-1, 2).contiguous()) for row in (row_m, row_n))
    fits = [(a - b * torch.polar(torch.ones_like(omega), omega * d)).abs().sum() for d in range(limit + 1)]
    return int(torch.stack(fits).argmin())


@wrong("shift.relative_part")
def blocks_as_they_are(M):
    N = torch.zeros_like(M)
    for i in range(0, len(M), 2):
        N[i : i + 2, i : i + 2] = M[i : i + 2, i : i + 2]
    return N


@wrong("base.for_turns")
def pairs_counted_from_one(length, d_model, count):
    return ((length - 1) / (2 * math.pi)) ** (d_model / (2 * count))


@wrong("base.survivors")
def cut_off(length, bits):
    found = set()
    for m in range(length):
        k = max(0, m.bit_length() - bits)
        found.add((m >> k) << k)
    return len(found)


@wrong("learned.heard")
def last_one_wins(gradients, positions, rows):
    table = torch.zeros(rows, gradients.shape[-1], dtype=gradients.dtype)
    table[positions] = gradients
    return table


@wrong("learned.untrained")
def unchanged(before, after):
    return (before - after).abs().amax(dim=1) < 1e-6


@wrong("learned.positions")
def counts_padding(mask):
    return torch.arange(mask.shape[1]).expand(mask.shape)


@wrong("relative.rows_used")
def future_for_past(bucket_of, rows, length, causal):
    offsets = range(-length + 1, 1) if causal else range(-length + 1, length)
    used = {bucket_of(offset) for offset in offsets}
    return [row in used for row in range(rows)]


@wrong("relative.needed")
def all_keys_are_others(share, length):
    return math.log(share * length / (1 - share))


@wrong("relative.receive")
def wrong_side(weights, values, table):
    length, reach = len(weights), len(table) // 2
    gathered = torch.zeros(length, len(table), dtype=weights.dtype)
    for m in range(length):
        for n in range(length):
            gathered[m, max(-reach, min(reach, n - m)) + reach] += weights[m, n]
    return weights @ values + gathered @ table


# ── wrong: chapters 10 to 19 ─────────────────────────────────────────────────────────────────────────────────────────────


@wrong("rope.rotate")
def speed_of_the_channel(x, positions, pairs):
    omega, y = 10_000.0 ** (-torch.arange(x.shape[1], dtype=torch.float64) / x.shape[1]), x.clone()
    for a, b in pairs:
        angle = omega[a] * positions
        y[:, a] = x[:, a] * angle.cos() - x[:, b] * angle.sin()
        y[:, b] = x[:, a] * angle.sin() + x[:, b] * angle.cos()
    return y


def rotated(x, positions):
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=True)[0, 0]


@wrong("rope.step")
def forgets_what_is_cached(q, k, v, keys, values):
    at = torch.arange(len(q))
    keys, values = torch.cat((keys, rotated(k, at))), torch.cat((values, v))
    mask = torch.arange(len(keys)) <= (len(keys) - len(q) + at)[:, None]
    return attention(rotated(q, at), keys, values, mask=mask), keys, values


@wrong("rope.renumber")
def rotated_to_the_new_ones(keys, old, new):
    return rotated(keys, new)


@wrong("alibi.same_bias")
def compares_all_entries(a, b):
    return bool(torch.allclose(a.tril(), b.tril(), atol=2e-5))


@wrong("alibi.slope_for")
def as_if_the_text_were_long(keys, share, length):
    return -math.log(1 - share) / keys


@wrong("alibi.attend")
def padding_counts(q, keys, values, slopes, real):
    every, new = keys.shape[1], q.shape[1]
    at = torch.arange(every)
    bias = alibi_bias(at[-new:], at, slopes, dtype=q.dtype)[0]
    return attention(q, keys, values, bias=bias, mask=real & (at <= at[-new:, None]))


@wrong("lengths.beyond")
def differences_of_the_means(lengths, means):
    return torch.cat((means[:1], means.diff()))


@wrong("lengths.blind_mean")
def first_positions_count(losses, settled, length, stride):
    window = [losses[i] if i < len(losses) else settled for i in range(length)]
    return sum(window[:stride]) / stride


@wrong("lengths.by_chance")
def one_sided(a, b):
    every = torch.cat((a, b)).tolist()
    n, found, count = len(a), 0, 0
    seen = float(a.mean() - b.mean())
    for chosen in itertools.combinations(range(len(every)), n):
        one = sum(every[i] for i in chosen) / n
        other = sum(every[i] for i in range(len(every)) if i not in chosen) / (len(every) - n)
        count += 1
        found += one - other >= seen - 1e-9
    return found / count


@wrong("rope_scaling.base_for")
def as_ntk_does(d_head, base, pair, factor):
    return base * factor ** (d_head / (d_head - 2))


@wrong("rope_scaling.strangeness")
def each_pair_for_itself(omega, stretched, trained, distance):
    seen = torch.arange(trained)[:, None] * omega
    gap = (stretched * distance - seen + math.pi) % (2 * math.pi) - math.pi
    return float(gap.abs().amin(dim=0).max())


@wrong("rope_scaling.reach")
def largest_distance(omega, stretched, trained):
    slow = omega * (trained - 1) < 2 * math.pi
    return int(((omega[slow] * (trained - 1)) / stretched[slow]).min() + 1e-6)


@wrong("layers.cache_size")
def counted_from_zero(num_layers, every, w, length):
    return sum(length if layer % every == 0 else min(w, length) for layer in range(num_layers))


@wrong("layers.looks_back")
def sets_to_zero(f, x):
    last, farthest = f(x)[-1], 0
    for n in range(len(x) - 1):
        y = x.clone()
        y[n] = 0
        if (f(y)[-1] - last).abs().max() > 1e-10:
            farthest = max(farthest, len(x) - 1 - n)
    return farthest


@wrong("contextual.forget_bias")
def own_gate_included(gates):
    total = gates.double().log().cumsum(0)
    bias = total[:, None] - total[None, :] + gates.double().log()[None, :]
    return torch.where(torch.ones(len(gates), len(gates)).tril().bool(), bias, -math.inf)


@wrong("contextual.recurrent")
def reads_before_it_adds(q, k, v, gates, state):
    outputs = []
    for t in range(len(q)):
        state = state * gates[t]
        outputs.append(state @ q[t])
        state = state + torch.outer(v[t], k[t])
    return torch.stack(outputs), state


@wrong("reach.with_sink")
def plain_softmax(scores, sink):
    return scores.softmax(dim=-1)


@wrong("nope.told_apart")
def counts_letters(text):
    return len(set(text))


@wrong("released.lowest")
def highest(q, k, omega):
    angle = math.atan2(float(k[1]), float(k[0])) - math.atan2(float(q[1]), float(q[0]))
    return (angle % (2 * math.pi)) / float(omega)


@wrong("heads.behind_equals")
def on_the_equal_one(tokens, weights):
    sums = []
    for m, token in enumerate(tokens):
        keys = [n for n in range(m) if tokens[n] == token]
        if keys:
            sums.append(sum(float(weights[m][n]) for n in keys))
    return sum(sums) / len(sums) if sums else 0
