"""Answers to assignment 1: right ones written differently, and wrong ones with what their verdict must say."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

Layer = Callable[[Tensor], Tensor]


def by_scatter(order: Tensor) -> Tensor:
    matrix = torch.zeros(len(order), len(order), dtype=torch.int64)
    matrix[torch.arange(len(order)), order] = 1
    return matrix


def by_one_order(f: Layer, x: Tensor, order: Tensor, same: Callable[..., bool] = torch.allclose) -> str:
    before, after = f(x), f(x[order])
    if same(before, after):
        return "invariant"
    return "equivariant" if before.ndim == 2 and same(before[order], after) else "neither"


def kind_by_many(f: Layer, x: Tensor) -> str:
    orders = [torch.tensor(order) for order in itertools.permutations(range(len(x)))][1:]
    y = f(x)
    if all(torch.allclose(f(x[p]), y) for p in orders):
        return "invariant"
    return "equivariant" if y.shape[0] == len(x) and all(torch.allclose(f(x[p]), y[p]) for p in orders) else "neither"


def kind_by_numpy(f: Layer, x: Tensor) -> str:
    before, after = f(x).numpy(), f(x.flip(0)).numpy()
    if before.ndim == 2 and np.allclose(before[::-1], after) and not np.allclose(before, after):
        swap = [1, 0, *range(2, len(x))]
        return "equivariant" if np.allclose(before[swap], f(x[swap]).numpy()) else "neither"
    return "invariant" if np.allclose(before, after) else "neither"


def seen(f: Layer, x: Tensor, *, change: float = 1.0, clone: bool = True) -> Tensor:
    """(L, L): how much row m of f changes when token n does."""
    y, columns = f(x), []
    for n in range(len(x)):
        changed = x.clone() if clone else x
        changed[n] += change * torch.linspace(0.5, 2.0, x.shape[1])
        columns.append((f(changed) - y).abs().amax(dim=1))
    return torch.stack(columns, dim=1)


def by_gradient(f: Layer, x: Tensor) -> Tensor:
    jacobian = torch.autograd.functional.jacobian(f, x)  # (L, d, L, d)
    return jacobian.abs().sum(dim=(1, 3)) > 0


def seen_in_numpy(f: Layer, x: Tensor) -> list[list[bool]]:
    table = [[False] * len(x) for _ in x]
    for m, n in itertools.product(range(len(x)), repeat=2):
        changed = x.clone()
        changed[n] = torch.arange(x.shape[1]) ** 2 + 7.0
        table[m][n] = not np.allclose(f(changed)[m].numpy(), f(x)[m].numpy())
    return table


def results(f: Layer, x: Tensor) -> list[Tensor]:
    return [f(x[list(order)]) for order in itertools.permutations(range(len(x)))]


def apart(f: Layer, x: Tensor, orders: int | None = None) -> int:
    different: list[Tensor] = []
    for y in results(f, x)[:orders]:
        if not any(torch.allclose(y, other) for other in different):
            different.append(y)
    return len(different)


def apart_by_rounding(f: Layer, x: Tensor) -> int:
    return len({tuple((1e6 * y).round().long().flatten().tolist()) for y in results(f, x)})


def apart_by_distance(f: Layer, x: Tensor) -> np.int64:
    table = torch.stack([y.flatten() for y in results(f, x)])
    near = torch.cdist(table, table, compute_mode="donot_use_mm_for_euclid_dist") < 1e-6
    return np.int64((near.numpy().argmax(axis=1) == np.arange(len(near))).sum())


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "order.permutation": [
        lambda order: torch.eye(len(order))[order],
        by_scatter,
        lambda order: np.array([[float(i == column) for column in range(len(order))] for i in order.tolist()]),
        lambda order: (order[:, None] == torch.arange(len(order))).double(),
    ],
    "order.kind": [
        lambda f, x: by_one_order(f, x, torch.tensor([2, 0, 1, 4, 3])),
        kind_by_many,
        kind_by_numpy,
    ],
    "order.who_sees_whom": [lambda f, x: seen(f, x) > 1e-9, by_gradient, seen_in_numpy],
    "order.orders_apart": [apart, apart_by_rounding, apart_by_distance],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "order.permutation": {
        "transposed": (lambda order: torch.eye(len(order))[:, order], "is the transpose"),
        "inverse": (lambda order: torch.eye(len(order))[order.argsort()], "is the transpose"),
        "identity": (lambda order: torch.eye(len(order)), "is the identity"),
        "rows in reverse": (lambda order: torch.eye(len(order))[order].flip(0), "in reverse"),
        "positions from 1": (lambda order: torch.eye(len(order) + 1)[order], "has shape"),
        "the order itself": (lambda order: order, "has shape"),
        "two ones": (lambda order: torch.eye(len(order))[order] + torch.eye(len(order)), None),
    },
    "order.kind": {
        "exchanged": (
            lambda f, x: {"invariant": "equivariant", "equivariant": "invariant", "neither": "neither"}[kind_by_many(f, x)],
            "changed places",
        ),
        "equal to the last digit": (
            lambda f, x: by_one_order(f, x, torch.tensor([2, 0, 1, 4, 3]), same=torch.equal),
            "Too strict",
        ),
        "nothing reordered": (lambda f, x: by_one_order(f, x, torch.arange(5)), "does x come to f in another order"),
        "no look at one row": (
            lambda f, x: "equivariant" if kind_by_many(f, x) == "equivariant" else "neither",
            'no function "invariant"',
        ),
        "the output as it was": (
            lambda f, x: "invariant" if torch.allclose(f(x), f(x.roll(2, 0))) else "neither",
            'no function "equivariant"',
        ),
        "only the first two": (lambda f, x: by_one_order(f, x, torch.tensor([1, 0, 2, 3, 4])), "taken in by the last row"),
        "another word": (lambda f, x: "symmetric", "it should be"),
        "a truth": (lambda f, x: torch.allclose(f(x), f(x.flip(0))), "it should be"),
    },
    "order.who_sees_whom": {
        "transposed": (lambda f, x: (seen(f, x) > 1e-9).T, "is transposed"),
        "not itself": (lambda f, x: (seen(f, x) > 1e-9) & ~torch.eye(len(x)).bool(), "never depends on itself"),
        "always itself": (lambda f, x: (seen(f, x) > 1e-9) | torch.eye(len(x)).bool(), "Every token depends on itself"),
        "where nothing changes": (lambda f, x: seen(f, x) < 1e-9, "where nothing changes"),
        "the whole output": (
            lambda f, x: ((seen(f, x) > 1e-9).any(dim=0, keepdim=True)).expand(len(x), -1),
            "Everything depends on everything",
        ),
        "nothing changed": (lambda f, x: seen(f, x, change=0.0) > 1e-9, "Nothing depends on anything"),
        "written into x": (lambda f, x: seen(f, x, clone=False) > 1e-9, "writes into its arguments"),
        "only the past": (lambda f, x: torch.ones(len(x), len(x)).tril(), "every layer looks at the past"),
        "one token": (lambda f, x: seen(f, x)[0] > 1e-9, "has shape"),
    },
    "order.orders_apart": {
        "the orders": (lambda f, x: len(results(f, x)), "You count the orders"),
        "to the last digit": (lambda f, x: len({tuple(y.flatten().tolist()) for y in results(f, x)}), "last digit"),
        "from the second on": (lambda f, x: apart(f, x) - 1, "One too few"),
        "half of the orders": (lambda f, x: apart(f, x, orders=12), None),
        "twins apart": (
            lambda f, x: apart(f, torch.where(torch.arange(4)[:, None] == 3, x + (x[0] == x[3]), x)),
            "two equal tokens",
        ),
        "compares sums": (lambda f, x: len({round(float(y.sum()), 6) for y in results(f, x)}), None),
    },
}
