"""Answers to the exercises on positions that depend on what was said."""

import math
from typing import Any

import numpy as np
import torch

from tests.answers import right, wrong


@right("contextual.steps")
def steps_back(token: Any) -> Any:
    return np.array([0.0, -2 * np.pi / 3, 2 * np.pi / 3])[token]


@right("contextual.steps")
def steps_more_rotations(token: Any) -> Any:
    if token == 0:
        return 6 * math.pi
    return math.radians(-240 if token == 1 else 240 + 360)


@right("contextual.steps")
def steps_32_bits(token: Any) -> Any:
    return (2 * np.float32(np.pi) / np.float32(3)) * np.float32(token)


@wrong("contextual.steps", "aren't in radians")
def steps_120(token: int) -> Any:
    return 120.0 * token


@wrong("contextual.steps", "Use more digits")
def steps_pi_31416(token: Any) -> Any:
    return 2 * 3.1416 / 3 * token


@wrong("contextual.steps", "The sum of the text 1, 1, 1")
def steps_opposite(token: Any) -> Any:  # 1 and 2 in opposite directions, but by a quarter
    return [0.0, math.pi / 2, -math.pi / 2][token]


@wrong("contextual.steps", "The sum of the text 0")
def steps_every_token(token: Any) -> Any:
    return 2 * math.pi / 3


@right("contextual.forget_bias")
def forget_numpy(gates: Any) -> Any:
    fees = np.log(np.asarray(gates))
    size = len(fees)
    bias = np.full((size, size), -np.inf)
    for n in range(size):
        bias[n:, n] = np.concatenate(([0.0], np.cumsum(fees[n + 1 :])))
    return bias


@right("contextual.forget_bias")
def forget_rows(gates: Any) -> Any:
    rows: list[Any] = []
    for m, gate in enumerate(gates):
        before = rows[-1][:m] + gate.log() if rows else gates[:0]
        rest = torch.full((len(gates) - m - 1,), -math.inf, dtype=gates.dtype)
        rows.append(torch.cat((before, torch.zeros(1, dtype=gates.dtype), rest)))
    return rows  # a list of tensors


@right("contextual.forget_bias")
def forget_32_bit_table(gates: Any) -> Any:
    table = torch.full((len(gates), len(gates)), -math.inf)
    for n in range(len(gates)):
        table[n, n] = 0
        table[n + 1 :, n] = gates[n + 1 :].log().cumsum(dim=0)
    return table


@wrong("contextual.forget_bias", "hide the diagonal")
def forget_diagonal_masked(gates: Any) -> Any:
    c = gates.log().cumsum(dim=0)
    return (c[:, None] - c[None, :]).masked_fill(torch.ones(len(c), len(c)).triu().bool(), -math.inf)


@wrong("contextual.forget_bias", "tokens n + 1 to m")
def forget_not_query(gates: Any) -> Any:
    c = gates.log().cumsum(dim=0) - gates.log()
    return (c[:, None] - c[None, :]).masked_fill(torch.ones(len(c), len(c)).triu(1).bool(), -math.inf)


@wrong("contextual.forget_bias", "Add up the logarithms instead")
def forget_log_of_products(gates: Any) -> Any:
    rows = [[gates[n + 1 : m + 1].prod().log() if n <= m else torch.tensor(-math.inf) for n in range(len(gates))]
            for m in range(len(gates))]  # fmt: skip
    return torch.tensor([[float(number) for number in row] for row in rows])


@wrong("contextual.forget_bias", "has a gate of its own")
def forget_alibi(gates: Any) -> Any:  # the query's gate for every token of distance
    at = torch.arange(len(gates))
    back = at[:, None] - at
    return (back * gates.log()[:, None]).masked_fill(back < 0, -math.inf)


@wrong("contextual.forget_bias", "sum of the *logarithms*")
def forget_sum_of_gates(gates: Any) -> Any:  # forgets the logarithm
    c = gates.cumsum(dim=0)
    return (c[:, None] - c[None, :]).masked_fill(torch.ones(len(c), len(c)).triu(1).bool(), -math.inf)


@wrong("contextual.forget_bias", "minus infinity")
def forget_zero_mask(gates: Any) -> Any:
    c = gates.log().cumsum(dim=0)
    return (c[:, None] - c[None, :]).tril()


@right("contextual.mirrors")
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


@right("contextual.mirrors")
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


@right("contextual.mirrors")
def mirrors_of_other_lengths(order: Any) -> Any:
    return -3 * mirrors_hint(order)


@wrong("contextual.mirrors", "bring back what the order asks for")
def mirrors_inverse(order: Any) -> Any:  # reads order[i] as the cup from which a ball comes
    return mirrors_hint(np.argsort(order).tolist())


@wrong("contextual.mirrors", "follow them")
def mirrors_untracked(order: Any) -> Any:  # forgets that the other ball of a swap has moved
    eye = torch.eye(len(order))
    return torch.stack([eye[i] - eye[to] for i, to in enumerate(order) if i != to])


@wrong("contextual.mirrors", "never need more than")
def mirrors_bubble(order: Any) -> Any:  # neighbours only: too many
    todo, rows = list(order), []
    for _ in order:
        for j in range(len(todo) - 1):
            if todo[j] > todo[j + 1]:
                todo[j], todo[j + 1] = todo[j + 1], todo[j]
                rows.append([float(i == j) - float(i == j + 1) for i in range(len(todo))])
    return rows


@wrong("contextual.mirrors", "returned no mirrors")
def mirrors_first_cycle(order: Any) -> Any:  # stops when ball 0 is done
    rows, cup = [], order[0]
    while cup != 0:
        rows.append([float(j == cup) - float(j == 0) for j in range(len(order))])
        cup = order[cup]
    return rows


@right("contextual.recurrent")
def recurrent_numpy(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    q, k, v, gates = (part.numpy() for part in (q, k, v, gates))
    memory, read = state.numpy(), np.zeros(v.shape)
    for t in range(len(q)):
        memory = memory @ np.diag(gates[t]) + v[t][:, None] * k[t][None, :]
        read[t] = memory @ q[t]
    return [read, memory]


@right("contextual.recurrent")
def recurrent_lists(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    s, outputs = state.tolist(), []
    for query, key, value, gate in zip(q.tolist(), k.tolist(), v.tolist(), gates.tolist(), strict=True):
        s = [[a * f + x * y for a, f, y in zip(row, gate, key, strict=True)] for row, x in zip(s, value, strict=True)]
        outputs.append([sum(a * b for a, b in zip(row, query, strict=True)) for row in s])
    return outputs, s


@right("contextual.recurrent")
def recurrent_channels(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    # All states at once: shape (new + 1, d_v, d), filled row by row, and one einsum for the outputs.
    states = torch.cat((state[None], v[:, :, None] * k[:, None, :]))
    for t in range(len(q)):
        states[t + 1] += states[t] * gates[t]
    return torch.einsum("tvd,td->tv", states[1:], q), states[-1]


@wrong("contextual.recurrent", "You mix up axes")
def recurrent_swapped_outer(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    return recurrent_numpy(q, v, k, gates, state)


@wrong("contextual.recurrent", "the token itself is added in full")
def recurrent_gates_last(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    return recurrent_numpy(q, k * gates, v, gates, state)


@wrong("contextual.recurrent", "gates of another token")
def recurrent_gates_before(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    return recurrent_numpy(q, k, v, torch.cat((torch.ones_like(gates[:1]), gates[:-1])), state)


@wrong("contextual.recurrent", "Return the state after the last token")
def recurrent_old_state(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    return recurrent_numpy(q, k, v, gates, state)[0], state


@wrong("contextual.recurrent", "lack the query's own token")
def recurrent_reads_first(q: Any, k: Any, v: Any, gates: Any, state: Any) -> Any:
    outputs = []
    for t in range(len(q)):
        outputs.append(state @ q[t])
        state = state * gates[t] + torch.outer(v[t], k[t])
    return torch.stack(outputs), state
