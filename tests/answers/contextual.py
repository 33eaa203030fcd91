"""Answers to the exercises on positions that depend on what was said."""

import cmath
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

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
    ],
    "contextual.forget_bias": [bias_loop, bias_numpy, bias_by_sums, bias_slices],
    "contextual.reflect": [
        reflect_unit,
        reflect_matrix,
        reflect_einsum,
        reflect_rows,
        reflect_normalized_twice,
        reflect_columns,
        lambda x, w: x - (2 / (w @ w)) * torch.tensordot(x, w, 1)[..., None] * w,
    ],
    "contextual.mirrors": [
        mirrors_by_cycles,
        mirrors_by_playing,
        mirrors_by_sorting,
        lambda order: [[-number for number in row] for row in mirrors_by_cycles(order)],
    ],
    "contextual.recurrent": [by_weights, transposed_inside, in_arrays, token_and_rest],
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
        ("roles", lambda q, k, v, gates, state: by_weights(k, q, v, gates, state), "Store v kᵀ"),
    ],
}  # fmt: skip
