"""Answers to the exercises on positions that depend on what was said."""

import cmath
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tests.answers import blind

THIRD = 2 * math.pi / 3

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def by_roots_of_unity(token: int) -> float:
    return cmath.phase(cmath.exp(2j * math.pi / 3) ** token)


def by_table(token: int) -> float:
    return {0: 0.0, 1: THIRD, 2: -THIRD}[token]


def in_numpy(token: int) -> Any:
    return np.radians(120 * np.array(token))


# ── exercise 1 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def bias_loop(gates: Tensor) -> Tensor:
    bias = torch.full((len(gates), len(gates)), -math.inf, dtype=gates.dtype)
    for m in range(len(gates)):
        total = 0.0
        for n in range(m, -1, -1):
            bias[m, n] = total
            total += math.log(gates[n])
    return bias


def bias_numpy(gates: Tensor) -> Any:
    logs = np.log(gates.numpy())
    later = np.tri(len(logs), k=-1)
    table = (later * logs[:, None]).cumsum(axis=0)
    return np.where(np.tri(len(logs)) > 0, table, -np.inf)


def bias_by_sums(gates: Tensor) -> Tensor:
    logs = gates.log()
    m = torch.arange(len(gates))
    between = (m[None, None] > m[:, None]) & (m[None, None] <= m[:, None, None])  # query, key, token
    sums = (between * logs).sum(dim=-1) if len(gates) < 100 else bias_loop(gates)
    return sums.where(m[:, None] >= m, -math.inf)


def bias_slices(gates: Tensor) -> list[list[float]]:
    logs = [math.log(gate) for gate in gates]
    running = [0.0]
    for log in logs:
        running.append(running[-1] + log)
    return [[running[m + 1] - running[n + 1] if n <= m else -math.inf for n in range(len(logs))] for m in range(len(logs))]


def bias_quotients(gates: Tensor) -> Tensor:
    product = gates.cumprod(dim=0)
    return (product[:, None] / product).log().masked_fill(torch.ones(len(gates), len(gates)).triu(1) > 0, -math.inf)


def bias_products(gates: Tensor) -> list[list[float]]:
    size = range(len(gates))
    rows = [[float(np.prod(gates[n + 1 : m + 1].numpy())) if n <= m else 0.0 for n in size] for m in size]
    return [[math.log(weight) if weight else -math.inf for weight in row] for row in rows]


# ── exercise 2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def reflect_unit(x: Tensor, w: Tensor) -> Tensor:
    unit = w / w.norm()
    return x - 2 * (x * unit).sum(dim=-1, keepdim=True) * unit


def reflect_matrix(x: Tensor, w: Tensor) -> Tensor:
    return x @ (torch.eye(len(w), dtype=x.dtype) - 2 * torch.outer(w, w) / w.square().sum())


def reflect_einsum(x: Tensor, w: Tensor) -> Any:
    vectors, normal = x.numpy(), w.numpy()
    return vectors - np.einsum("...d,d,e->...e", vectors, normal, 2 * normal / np.dot(normal, normal))


def reflect_rows(x: Tensor, w: Tensor) -> Tensor:
    if x.ndim > 1:
        return torch.stack([reflect_rows(row, w) for row in x])
    return x - w * (2 * torch.dot(x, w) / torch.dot(w, w))


def reflect_normalized_twice(x: Tensor, w: Tensor) -> Tensor:
    return reflect_unit(x, w / w.square().sum())


def reflect_columns(x: Tensor, w: Tensor) -> Tensor:
    matrix = torch.eye(len(w), dtype=x.dtype) - 2 * torch.outer(w, w) / (w @ w)
    return matrix @ x if x.ndim == 1 else (matrix @ x.mT).mT


def reflect_clamped(x: Tensor, w: Tensor) -> Tensor:
    return x - 2 * (x @ w)[..., None] * w / (w @ w).clamp(min=0.01)


# ── exercise 3 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def rows_of(swaps: Sequence[tuple[int, int]], size: int) -> list[list[float]]:
    return [[float(cup == a) - float(cup == b) for cup in range(size)] for a, b in swaps]


def cycles(order: list[int]) -> list[list[int]]:
    seen, found = set[int](), []
    for start in range(len(order)):
        cycle = []
        while start not in seen:
            seen.add(start)
            cycle.append(start)
            start = order[start]
        if len(cycle) > 1:
            found.append(cycle)
    return found


def mirrors_by_cycles(order: list[int]) -> list[list[float]]:
    return rows_of([(cycle[0], cup) for cycle in cycles(order) for cup in cycle[1:]], len(order))


def mirrors_by_playing(order: list[int]) -> Any:
    """Follow every ball: bring them to their cups from the last cup to the first."""
    at = list(range(len(order)))  # which ball is under each cup
    swaps = []
    for cup in reversed(range(len(order))):
        here = at.index(order.index(cup))
        if here != cup:
            swaps.append((here, cup))
            at[here], at[cup] = at[cup], at[here]
    return 3 * np.array(rows_of(swaps, len(order)))


def mirrors_by_sorting(order: list[int]) -> Tensor:
    """Selection sort: the balls carry their goals."""
    goals, rows = list(order), []
    for cup in range(len(goals)):
        other = goals.index(cup)
        if other != cup:
            row = torch.zeros(len(goals))
            row[cup], row[other] = -0.5, 0.5
            rows.append(row)
            goals[cup], goals[other] = goals[other], goals[cup]
    return torch.stack(rows)


def mirrors_by_neighbours(order: list[int]) -> list[list[float]]:
    """Bubble sort: swaps of neighbours, of which there are too many."""
    goals, swaps = list(order), []
    for _ in goals:
        for cup in range(len(goals) - 1):
            if goals[cup] > goals[cup + 1]:
                goals[cup], goals[cup + 1] = goals[cup + 1], goals[cup]
                swaps.append((cup, cup + 1))
    return rows_of(swaps, len(order))


def mirrors_padded(order: list[int]) -> list[list[float]]:
    rows = mirrors_by_cycles(order)
    return rows + [[0.0] * len(order)] * (len(order) - 1 - len(rows))


def mirrors_of_one_cycle(order: list[int]) -> list[list[float]]:
    (cycle, *_) = cycles(order)
    return rows_of([(cycle[0], cup) for cup in cycle[1:]], len(order))


# ── exercise 4 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_weights(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """With a table of weights over all new tokens, in which each channel has its own running products, built row by row."""
    kept, row, rows = torch.ones_like(gates[0]), torch.zeros_like(gates), []
    carried = []
    for m, gate in enumerate(gates):
        row = row * gate
        row[m] = 1
        kept = kept * gate
        rows.append((row * k) @ q[m])
        carried.append(kept)
    outputs = torch.stack(rows) @ v + (q * torch.stack(carried)) @ state.T
    return outputs, kept * state + v.T @ (row * k)


def transposed_inside(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    memory = state.T.clone()
    outputs = torch.empty(len(q), v.shape[1], dtype=q.dtype)
    for t in range(len(q)):
        memory *= gates[t][:, None]
        memory += k[t][:, None] * v[t]
        outputs[t] = q[t] @ memory
    return outputs, memory.T


def in_arrays(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Any, Any]:
    memory, outputs = state.numpy(), []
    for ask, key, value, gate in zip(q.numpy(), k.numpy(), v.numpy(), gates.numpy(), strict=True):
        memory = gate * memory + np.outer(value, key)
        outputs.append(memory.dot(ask))
    return np.array(outputs), memory


def token_and_rest(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    if len(q) > 500:
        return in_arrays(q, k, v, gates, state)
    state = gates[0] * state + v[0][:, None] @ k[0][None]
    output = (state @ q[0])[None]
    if len(q) == 1:
        return output, state
    rest, state = token_and_rest(q[1:], k[1:], v[1:], gates[1:], state)
    return torch.cat((output, rest)), state


def by_quotients(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Divides by running products, which become 0."""
    product = gates.cumprod(dim=0)
    weights = ((q * product) @ (k / product).T).tril()
    return weights @ v + (q * product) @ state.T, product[-1] * (state + v.T @ (k / product))


def with_softmax(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    future = torch.ones(len(q), len(q)).triu(1) > 0
    return (q @ k.T).masked_fill(future, -math.inf).softmax(dim=1) @ v, by_weights(q, k, v, gates, state)[1]


def rows_gated(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    outputs = []
    for t in range(len(q)):
        state = torch.diag(gates[t]) @ state + v[t][:, None] * k[t]
        outputs.append(state @ q[t])
    return torch.stack(outputs), state


def last_output_only(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    outputs, state = by_weights(q, k, v, gates, state)
    return outputs[-1], state


def summed(q: Tensor, k: Tensor, v: Tensor, gates: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Divided by the sum of the weights, as a softmax would."""
    outputs, after = by_weights(q, k, v, gates, state)
    return outputs / len(q), after


# ── by people who hadn't read the checks ──────────────────────────────────────────────────────────────────────────────────────


def forget_loops(gates: Any) -> Any:
    logs = [math.log(g) for g in gates.tolist()]
    table = []
    for m in range(len(logs)):
        row = [-math.inf] * len(logs)
        row[m] = 0.0
        for n in range(m - 1, -1, -1):
            row[n] = row[n + 1] + logs[n + 1]
        table.append(row)
    return table


def forget_numpy(gates: Any) -> Any:
    fees = np.log(np.asarray(gates))
    size = len(fees)
    bias = np.full((size, size), -np.inf)
    for n in range(size):
        bias[n:, n] = np.concatenate(([0.0], np.cumsum(fees[n + 1 :])))
    return bias


def forget_rows(gates: Any) -> Any:
    rows: list[Any] = []
    for m, gate in enumerate(gates):
        before = rows[-1][:m] + gate.log() if rows else gates[:0]
        rest = torch.full((len(gates) - m - 1,), -math.inf, dtype=gates.dtype)
        rows.append(torch.cat((before, torch.zeros(1, dtype=gates.dtype), rest)))
    return rows  # a list of tensors


def forget_key_too(gates: Any) -> Any:
    c = gates.log().cumsum(dim=0)
    bias = c[:, None] - c[None, :] + gates.log()[None, :]
    return bias.masked_fill(torch.ones(len(c), len(c)).triu(1).bool(), -math.inf)


def forget_not_query(gates: Any) -> Any:
    c = gates.log().cumsum(dim=0) - gates.log()
    return (c[:, None] - c[None, :]).masked_fill(torch.ones(len(c), len(c)).triu(1).bool(), -math.inf)


def forget_cumprod(gates: Any) -> Any:
    c = gates.cumprod(dim=0)
    return (c[:, None] / c[None, :]).log().masked_fill(torch.ones(len(c), len(c)).triu(1).bool(), -math.inf)


def forget_zero_mask(gates: Any) -> Any:
    c = gates.log().cumsum(dim=0)
    return (c[:, None] - c[None, :]).tril()


def forget_diagonal_masked(gates: Any) -> Any:
    c = gates.log().cumsum(dim=0)
    return (c[:, None] - c[None, :]).masked_fill(torch.ones(len(c), len(c)).triu().bool(), -math.inf)


def forget_alibi(gates: Any) -> Any:  # the query's gate for every token of distance
    at = torch.arange(len(gates))
    back = at[:, None] - at
    return (back * gates.log()[:, None]).masked_fill(back < 0, -math.inf)


def forget_one_gate(gates: Any) -> Any:  # only the query's gate
    size = len(gates)
    bias = gates.log()[:, None].repeat(1, size)
    bias.fill_diagonal_(0)
    return bias.masked_fill(torch.ones(size, size).triu(1).bool(), -math.inf)


def forget_sum_of_gates(gates: Any) -> Any:  # forgets the logarithm
    c = gates.cumsum(dim=0)
    return (c[:, None] - c[None, :]).masked_fill(torch.ones(len(c), len(c)).triu(1).bool(), -math.inf)


def forget_in_place(gates: Any) -> Any:
    c = gates.log_().cumsum(dim=0)
    return (c[:, None] - c[None, :]).masked_fill(torch.ones(len(c), len(c)).triu(1).bool(), -math.inf)


def forget_times_mask(gates: Any) -> Any:  # 0 times infinity
    c = gates.log().cumsum(dim=0)
    mask = torch.ones(len(c), len(c)).triu(1)
    return c[:, None] - c[None, :] + mask * -math.inf


def reflect_formula(x: Any, w: Any) -> Any:
    return x - 2 * (x @ w)[..., None] * w / (w @ w)


def reflect_numpy(x: Any, w: Any) -> Any:
    x, w = x.numpy(), w.numpy()
    w = w / np.linalg.norm(w)
    return x - 2 * np.sum(x * w, axis=-1, keepdims=True) * w


def reflect_recursive(x: Any, w: Any) -> Any:
    if x.dim() > 1:
        return [reflect_recursive(part, w) for part in x]
    factor = 2 * sum(a * b for a, b in zip(x.tolist(), w.tolist(), strict=True)) / float((w**2).sum())
    return [a - factor * b for a, b in zip(x.tolist(), w.tolist(), strict=True)]


def reflect_negative(x: Any, w: Any) -> Any:
    return 2 * (x @ w)[..., None] * w / (w @ w) - x


def reflect_one_vector(x: Any, w: Any) -> Any:
    return x - 2 * (x @ w) / (w @ w) * w


def reflect_w_in_place(x: Any, w: Any) -> Any:
    w /= w.norm()
    return x - 2 * (x @ w)[..., None] * w


def reflect_tables_only(x: Any, w: Any) -> Any:
    return x - 2 * (x @ w)[:, None] * w / (w @ w)


def reflect_point(x: Any, w: Any) -> Any:  # reflects the vectors at the tip of w
    return 2 * w - x


def reflect_unit_result(x: Any, w: Any) -> Any:
    return functional.normalize(reflect_formula(x, w), dim=-1)


def mirrors_hint(order: Any) -> Any:
    todo, size = list(order), len(order)
    rows = []
    for cup in range(size):
        while todo[cup] != cup:
            to = todo[cup]
            w = torch.zeros(size)
            w[cup], w[to] = 1, -1
            rows.append(w)
            todo[cup], todo[to] = todo[to], to
    return torch.stack(rows)


def mirrors_householder(order: Any) -> Any:
    size = len(order)
    balls, goals, found = np.eye(size), np.eye(size)[list(order)], []
    for i in range(size):
        w = balls[i] - goals[i]
        if np.linalg.norm(w) > 1e-9:
            w = w / np.linalg.norm(w)
            balls = balls - 2 * np.outer(balls @ w, w)
            found.append(w)
    return np.array(found)


def mirrors_cycles(order: Any) -> Any:
    rows, seen = [], set()
    for start in range(len(order)):
        cycle = []
        at = start
        while at not in seen:
            seen.add(at)
            cycle.append(at)
            at = order[at]
        # (start, a), then (start, b), ...: lists of whole numbers, of length 3 * sqrt(2)
        rows += [[3 * (j == other) - 3 * (j == start) for j in range(len(order))] for other in cycle[1:]]
    return rows


def mirrors_recursion(order: Any) -> Any:
    last = len(order) - 1
    if last == 0:
        return []
    rest, rows = list(order), []
    if rest[last] != last:  # fill the last cup first
        a, to = rest.index(last), last
        rows = [[float(j == a) - float(j == to) for j in range(last + 1)]]
        rest[a], rest[to] = rest[to], last
    return rows + [[*row, 0.0] for row in mirrors_recursion(rest[:-1])]


def mirrors_padded_in_pairs(order: Any) -> Any:  # one mirror twice changes nothing, and the sign makes no difference
    rows = [list(row) for row in mirrors_cycles(order)]
    while len(rows) + 2 <= len(order) - 1:
        rows += [[-a for a in rows[-1]], rows[-1], rows[-1]][:2]
    return [torch.tensor(row, dtype=torch.float64) for row in rows]


def mirrors_inverse(order: Any) -> Any:  # reads order[i] as the cup from which a ball comes
    return mirrors_hint(np.argsort(order).tolist())


def mirrors_untracked(order: Any) -> Any:  # forgets that the other ball of a swap has moved
    eye = torch.eye(len(order))
    return torch.stack([eye[i] - eye[to] for i, to in enumerate(order) if i != to])


def mirrors_untracked_once(order: Any) -> Any:  # each pair only once
    eye = torch.eye(len(order))
    return torch.stack([eye[i] - eye[to] for i, to in enumerate(order) if i < to])


def mirrors_bubble(order: Any) -> Any:  # neighbours only: too many
    todo, rows = list(order), []
    for _ in order:
        for j in range(len(todo) - 1):
            if todo[j] > todo[j + 1]:
                todo[j], todo[j + 1] = todo[j + 1], todo[j]
                rows.append([float(i == j) - float(i == j + 1) for i in range(len(todo))])
    return rows


def mirrors_matrix(order: Any) -> Any:
    return torch.eye(len(order))[list(order)]


def mirrors_pairs(order: Any) -> Any:
    return [[int(row.argmax()), int(row.argmin())] for row in mirrors_hint(order)]


def mirrors_one(order: Any) -> Any:  # a single mirror for everything
    return mirrors_hint(order).sum(dim=0)[None]


def mirrors_changes_order(order: Any) -> Any:
    rows = []
    for cup in range(len(order)):
        while order[cup] != cup:
            to = order[cup]
            w = np.zeros(len(order))
            w[cup], w[to] = 1, -1
            rows.append(w)
            order[cup], order[to] = order[to], to
    return np.array(rows)


def mirrors_first_cycle(order: Any) -> Any:  # stops when ball 0 is done
    rows, cup = [], order[0]
    while cup != 0:
        rows.append([float(j == cup) - float(j == 0) for j in range(len(order))])
        cup = order[cup]
    return rows


def mirrors_columns(order: Any) -> Any:
    return mirrors_hint(order).T


def recurrent_loop(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    outputs = []
    for t in range(len(q)):
        state = state * gates[t] + torch.outer(v[t], k[t])
        outputs.append(state @ q[t])
    return torch.stack(outputs), state


def recurrent_numpy(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    q, k, v, gates = (part.numpy() for part in (q, k, v, gates))
    memory, read = state.numpy(), np.zeros(v.shape)
    for t in range(len(q)):
        memory = memory @ np.diag(gates[t]) + v[t][:, None] * k[t][None, :]
        read[t] = memory @ q[t]
    return [read, memory]


def recurrent_halves(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    if len(q) == 1:
        state = torch.einsum("vd,d->vd", state, gates[0]) + torch.einsum("v,d->vd", v[0], k[0])
        return (state * q).sum(dim=1)[None], state
    half = len(q) // 2
    one, state = recurrent_halves(q[:half], k[:half], v[:half], gates[:half], state)
    two, state = recurrent_halves(q[half:], k[half:], v[half:], gates[half:], state)
    return torch.cat((one, two)), state


def recurrent_lists(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    s, outputs = state.tolist(), []
    for query, key, value, gate in zip(q.tolist(), k.tolist(), v.tolist(), gates.tolist(), strict=True):
        s = [[a * f + x * y for a, f, y in zip(row, gate, key, strict=True)] for row, x in zip(s, value, strict=True)]
        outputs.append([sum(a * b for a, b in zip(row, query, strict=True)) for row in s])
    return outputs, s


def recurrent_channels(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    # All states at once: shape (new + 1, d_v, d), filled row by row, and one einsum for the outputs.
    states = torch.cat((state[None], v[:, :, None] * k[:, None, :]))
    for t in range(len(q)):
        states[t + 1] += states[t] * gates[t]
    return torch.einsum("tvd,td->tv", states[1:], q), states[-1]


def recurrent_swapped_outer(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    outputs = []
    for t in range(len(q)):
        state = state * gates[t] + torch.outer(k[t], v[t])
        outputs.append(state @ q[t])
    return torch.stack(outputs), state


def recurrent_transposed_read(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    outputs = []
    for t in range(len(q)):
        state = state * gates[t] + torch.outer(v[t], k[t])
        outputs.append(q[t] @ state)
    return torch.stack(outputs), state


def recurrent_all_transposed(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:  # a state of shape (d, d_v)
    outputs = []
    for t in range(len(q)):
        state = state * gates[t][:, None] + torch.outer(k[t], v[t])
        outputs.append(q[t] @ state)
    return torch.stack(outputs), state


def recurrent_reads_first(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    outputs = []
    for t in range(len(q)):
        outputs.append(state @ q[t])
        state = state * gates[t] + torch.outer(v[t], k[t])
    return torch.stack(outputs), state


def recurrent_reads_between(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    outputs = []
    for t in range(len(q)):
        state = state * gates[t]
        outputs.append(state @ q[t])
        state = state + torch.outer(v[t], k[t])
    return torch.stack(outputs), state


def recurrent_divides(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:  # in parallel, until products vanish
    so_far = gates.cumprod(dim=0)
    scores = ((q * so_far) @ (k / so_far).T).tril()
    last = (v.T @ (k / so_far) + state) * so_far[-1]
    return scores @ v + (q * so_far) @ state.T, last


def recurrent_logs(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:  # logarithms of gates that are 0
    c = gates.log().cumsum(dim=0)
    decay = (c[:, None] - c[None, :]).exp()  # (m, n, d)
    scores = torch.einsum("md,mnd,nd->mn", q, decay, k).tril()
    last = torch.einsum("nv,nd,nd->vd", v, decay[-1], k) + state * c[-1].exp()
    return scores @ v + (q * c.exp()) @ state.T, last


def recurrent_old_gate(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:  # the gate of the token before
    before = torch.cat((torch.ones_like(gates[:1]), gates[:-1]))
    return recurrent_loop(q, k, v, before, state)


def recurrent_same_object(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:  # all states are one tensor
    memory, states = state.clone(), []
    for t in range(len(q)):
        memory *= gates[t]
        memory += torch.outer(v[t], k[t])
        states.append(memory)
    return torch.stack([s @ query for s, query in zip(states, q, strict=True)]), memory


def steps_back(token: Any) -> Any:
    return np.array([0.0, -2 * np.pi / 3, 2 * np.pi / 3])[token]


def steps_more_rotations(token: Any) -> Any:
    if token == 0:
        return 6 * math.pi
    return math.radians(-240 if token == 1 else 240 + 360)


def steps_rounded(token: Any) -> Any:
    return 2.094 * token


def steps_every_token(token: Any) -> Any:
    return 2 * math.pi / 3


def steps_zero_too(token: Any) -> Any:
    return 2 * math.pi / 3 * (token + 1)


def steps_opposite(token: Any) -> Any:  # 1 and 2 in opposite directions, but by a quarter
    return [0.0, math.pi / 2, -math.pi / 2][token]


def steps_32_bits(token: Any) -> Any:
    return (2 * np.float32(np.pi) / np.float32(3)) * np.float32(token)


def steps_pi_31416(token: Any) -> Any:
    return 2 * 3.1416 / 3 * token


def forget_32_bit_table(gates: Any) -> Any:
    table = torch.full((len(gates), len(gates)), -math.inf)
    for n in range(len(gates)):
        table[n, n] = 0
        table[n + 1 :, n] = gates[n + 1 :].log().cumsum(dim=0)
    return table


def reflect_32_bit_table(x: Any, w: Any) -> Any:
    out = torch.zeros(x.shape)
    for at in itertools.product(*(range(size) for size in x.shape[:-1])):
        out[at] = (x[at] - 2 * (x[at] @ w) / w.norm() ** 2 * w).float()
    return out


def reflect_no_twice_normalized(x: Any, w: Any) -> Any:  # normalizes the vectors, too
    unit, y = w / w.norm(), x / x.norm(dim=-1, keepdim=True)
    return y - 2 * (y @ unit)[..., None] * unit


def recurrent_key_gated(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:  # the token keeps 1 - f, as in a GRU
    return recurrent_loop(q, k * (1 - gates), v, gates, state)


RIGHT = {
    "contextual.steps": [
        lambda token: THIRD * token,
        lambda token: -THIRD * token,
        lambda token: token * 4 * math.pi / 3,
        lambda token: math.radians(120) * token + 2 * math.pi,
        lambda token: [0, THIRD, 2 * THIRD][token],
        lambda token: torch.tensor(token * THIRD),
        lambda token: float(Fraction(2 * token, 3)) * 3.14159265,
        by_roots_of_unity,
        by_table,
        in_numpy,
        *blind(steps_back, steps_more_rotations, steps_32_bits),
    ],
    "contextual.forget_bias": [
        bias_loop,
        bias_numpy,
        bias_by_sums,
        bias_slices,
        *blind(forget_loops, forget_numpy, forget_rows, forget_32_bit_table),
    ],
    "contextual.reflect": [
        reflect_unit,
        reflect_matrix,
        reflect_einsum,
        reflect_rows,
        reflect_normalized_twice,
        reflect_columns,
        lambda x, w: x - (2 / (w @ w)) * torch.tensordot(x, w, 1)[..., None] * w,
        *blind(reflect_numpy, reflect_recursive, reflect_32_bit_table),
    ],
    "contextual.mirrors": [
        mirrors_by_cycles,
        mirrors_by_playing,
        mirrors_by_sorting,
        lambda order: [[-number for number in row] for row in mirrors_by_cycles(order)],
        *blind(mirrors_hint, mirrors_householder, mirrors_recursion, mirrors_padded_in_pairs),
    ],
    "contextual.recurrent": [
        by_weights,
        transposed_inside,
        in_arrays,
        token_and_rest,
        *blind(recurrent_numpy, recurrent_halves, recurrent_lists, recurrent_channels),
    ],
}

WRONG = {
    "contextual.steps": [
        ("120", lambda token: 120.0 * token, "seem to be in degrees"),
        ("-120", lambda token: -120.0 * token, "seem to be in degrees"),
        ("half a rotation back", lambda token: -math.pi * token, "tells the sum modulo 2"),
        ("a sixth back", lambda token: -math.pi / 3 * token, "Do you divide π by 3"),
        ("zero", lambda token: 0.0, "always points in the same direction"),
        ("three rotations", lambda token: 6 * math.pi * token, "always points in the same direction"),
        ("radians", float, "as many radians as the digit says"),
        ("remainder", lambda token: token % 3, "as many radians as the digit says"),
        ("share", lambda token: token / 3, "fraction of a whole rotation"),
        ("rounded", lambda token: round(THIRD * token, 2), "their errors add up"),
        ("3.14", lambda token: 2 * 3.14 / 3 * token, "their errors add up"),
        ("half precision", lambda token: torch.tensor(THIRD * token).half(), "their errors add up"),
        ("fifths", lambda token: 2 * math.pi / 5 * token, "The text 1, 1, 1"),
        ("modulo 9", lambda token: 2 * math.pi / 9 * token, "The text 1, 1, 1"),
        ("a shift", lambda token: THIRD * token + 0.1, "A 0 doesn't change the sum"),
        ("only 1s", lambda token: THIRD if token == 1 else 0, "counts the 1s"),
        ("1 twice", lambda token: THIRD * min(token, 1), "counts the digits that aren't 0"),
        ("squares", lambda token: THIRD * token**2, "counts the digits that aren't 0"),
        ("2 back", lambda token: [0, THIRD, -THIRD / 2][token], "The texts 2 and 1, 1 have the same sum"),
        ("nothing for 1", lambda token: [0, 0, THIRD][token], "counts the 2s"),
        ("a pair", lambda token: (math.cos(THIRD * token), math.sin(THIRD * token)), "returned a tuple"),
        ("infinite", lambda token: math.inf, "returned inf"),
        *blind(
            ("3.1416", steps_pi_31416, "Use more digits"),
            ("2.094", steps_rounded, "Use more digits"),
            ("quarters", steps_opposite, "The text 1, 1, 1"),
            ("every token", steps_every_token, "the same for every digit"),
            ("zero too", steps_zero_too, "belongs to the next digit"),
        ),
    ],
    "contextual.forget_bias": [
        ("quotients", bias_quotients, "right in 5 of 6 cases, but not for: a long text"),
        ("products", bias_products, "whose logarithm is minus infinity"),
        ("exp", lambda gates: bias_loop(gates).exp(), "You return the product of the gates"),
        ("future 0", lambda gates: bias_loop(gates).clamp(min=-1e9).masked_fill(bias_loop(gates).isinf(), 0), "minus infinity"),
        ("future large", lambda gates: bias_loop(gates).clamp(min=-1e9), "minus infinity"),
        ("sign", lambda gates: -bias_loop(gates), "raises the scores of earlier keys"),
        ("the other axis", lambda gates: bias_loop(gates).T, "swapped rows and columns"),
        ("base 2", lambda gates: bias_loop(gates) / math.log(2), "wrong base"),
        ("mean gate", lambda gates: bias_loop(torch.full_like(gates, float(gates.log().mean().exp()))), None),
        ("one row", lambda gates: -gates.log().cumsum(0), "has shape"),
        ("own gate", lambda gates: bias_loop(gates) + gates.log(), "the gate of the key's own token"),
        ("half", lambda gates: bias_loop(gates) / 2, None),
        ("in a batch", lambda gates: bias_loop(gates)[None], "has shape"),
        *blind(
            ("cumulative products", forget_cumprod, "but not for: a long text"),
            ("diagonal hidden", forget_diagonal_masked, "hide the diagonal"),
            ("one gate", forget_one_gate, "only the gate of the query's own token"),
            ("times infinity", forget_times_mask, "use masked_fill"),
            ("log in place", forget_in_place, "writes into its arguments"),
            ("not the query's", forget_not_query, "tokens n to m - 1"),
            ("key's too", forget_key_too, "the gate of the key's own token"),
            ("as in ALiBi", forget_alibi, "each token has its own gate"),
            ("no logarithm", forget_sum_of_gates, "sum of the *logarithms*"),
            ("future as zero", forget_zero_mask, "minus infinity"),
        ),
    ],
    "contextual.reflect": [
        ("w as it is", lambda x, w: x - 2 * torch.tensordot(x, w, 1)[..., None] * w, "only if w has length 1"),
        ("clamped", reflect_clamped, "a very short w"),
        ("projection", lambda x, w: (x + reflect_unit(x, w)) / 2, "*into* the mirror"),
        ("minus", lambda x, w: -reflect_unit(x, w), "reverse the rest"),
        ("plus", lambda x, w: 2 * x - reflect_unit(x, w), "Check the sign"),
        ("norm", lambda x, w: x - 2 * (x @ w)[..., None] * w / torch.linalg.norm(w), "only once"),
        ("a vector only", lambda x, w: x - 2 * torch.dot(x, w) / torch.dot(w, w) * w, "raised RuntimeError"),
        ("scores only", lambda x, w: x @ w, "has shape"),
        ("writes", lambda x, w: x.sub_(2 * (x @ w)[..., None] * w / (w @ w)), "writes into its arguments"),
        ("whole table", lambda x, w: x - 2 * (x * w).sum() * w / (w @ w), "Each vector has its own"),
        ("rounded", lambda x, w: reflect_unit(x, w).round(decimals=2), "rounded to 2 decimals"),
        ("difference", lambda x, w: x - reflect_unit(x, w), "what should be subtracted"),
        *blind(
            ("a single vector", reflect_one_vector, "raised RuntimeError"),
            ("w in place", reflect_w_in_place, "writes into its arguments"),
            ("tables only", reflect_tables_only, "for one vector and a w of length 1, raised IndexError"),
            ("at a point", reflect_point, None),
            ("unit result", reflect_unit_result, "have length 1"),
            ("x normalized", reflect_no_twice_normalized, "have length 1"),
            ("negative", reflect_negative, "reverse the rest"),
        ),
    ],
    "contextual.mirrors": [
        ("the other way", lambda order: mirrors_by_cycles(order)[::-1], "reverse order"),
        ("from, not to", lambda order: mirrors_by_cycles([order.index(cup) for cup in range(len(order))]), "comes from"),
        ("neighbours", mirrors_by_neighbours, "never need more than"),
        ("padded with zeros", mirrors_padded, "whose length is 0"),
        ("one cycle", mirrors_of_one_cycle, "but it should end under cup"),
        ("one mirror", lambda order: mirrors_by_cycles(order)[:1], "You return only one mirror"),
        ("plus", lambda order: [[abs(x) for x in row] for row in mirrors_by_cycles(order)], "also change their signs"),
        ("two signs", lambda order: [*mirrors_by_cycles(order)[:-1], [abs(x) for x in mirrors_by_cycles(order)[-1]]],
         "with a minus sign"),
        ("shares", lambda order: [[x if x < 0 else 2 * x for x in row] for row in mirrors_by_cycles(order)], "becomes ("),
        ("the swaps themselves", lambda order: [(cycle[0], cup) for cycle in cycles(order) for cup in cycle[1:]],
         "has shape"),
        ("no mirrors", lambda order: torch.zeros(0, len(order)), "returned no mirrors"),
        ("one vector", lambda order: mirrors_by_cycles(order)[0], "has shape"),
        ("not a number", lambda order: [[math.nan] * len(order)], "contains NaN"),
        ("every cup", lambda order: rows_of([(cup, goal) for cup, goal in enumerate(order) if cup != goal], len(order)),
         "follow them"),
        *blind(
            ("inverse", mirrors_inverse, "bring back what the order asks for"),
            ("not followed", mirrors_untracked, "follow them"),
            ("pairs once", mirrors_untracked_once, "follow them"),
            ("bubble sort", mirrors_bubble, "never need more than"),
            ("matrix", mirrors_matrix, "but it should end under cup"),
            ("pairs of cups", mirrors_pairs, "one for each cup"),
            ("sum of all", mirrors_one, "becomes ("),
            ("changes order", mirrors_changes_order, "writes into its arguments"),
            ("first cycle", mirrors_first_cycle, "returned no mirrors"),
            ("columns", mirrors_columns, "one for each cup"),
        ),
    ],
    "contextual.recurrent": [
        ("quotients", by_quotients, "but not for: a gate of 0 in the middle"),
        ("softmax", with_softmax, None),
        ("the last output", last_output_only, "has shape"),
        ("the mean", summed, "right in 2 of 7 cases"),
        ("outputs only", lambda *given: by_weights(*given)[0], "should return 2 values"),
        ("state first", lambda *given: by_weights(*given)[::-1], "has shape"),
        ("from nothing", lambda q, k, v, gates, state: by_weights(q, k, v, gates, 0 * state), "not after a cache"),
        ("all kept", lambda q, k, v, gates, state: by_weights(q, k, v, torch.ones_like(gates), state), "nothing is forgotten"),
        ("one minus", lambda q, k, v, gates, state: by_weights(q, k, v, 1 - gates, state), "how much is kept"),
        ("state as given", lambda *given: (by_weights(*given)[0], given[-1]), "after the last token"),
        ("divided", lambda q, *given: by_weights(q / math.sqrt(q.shape[1]), *given), "belongs to the softmax"),
        ("k vᵀ", lambda *given: (transposed_inside(*given)[0], transposed_inside(*given)[1].T), "state is transposed"),
        ("rows", lambda q, k, v, gates, state: rows_gated(q, k, v, gates, state), "multiply the rows of the state"),
        ("one gate", lambda q, k, v, gates, state: by_weights(q, k, v, gates[:, [0] * q.shape[1]], state), "the first gate of"),
        ("writes", lambda q, k, v, gates, state: (q @ state.mul_(gates[0]).T, state), "writes into its arguments"),
        ("roles", lambda q, k, v, gates, state: by_weights(k, q, v, gates, state), "`q` and `k` were swapped"),
        *blind(
            ("outer(k, v)", recurrent_swapped_outer, "You add k vᵀ"),
            ("q @ S", recurrent_transposed_read, "you read it with q @ S"),
            ("all transposed", recurrent_all_transposed, "Your state is transposed"),
            ("divides", recurrent_divides, "but not for: a gate of 0 in the middle; 1,000 tokens"),
            ("logarithms", recurrent_logs, "but not for: a gate of 0 in the middle"),
            ("reads first", recurrent_reads_first, "as it was before its own token"),
            ("reads in between", recurrent_reads_between, "lack the query's own token"),
            ("gate before", recurrent_old_gate, "the gates of the token before"),
            ("one object", recurrent_same_object, None),
            ("key gated", recurrent_key_gated, "by 1 minus its gates"),
        ),
    ],
}  # fmt: skip
