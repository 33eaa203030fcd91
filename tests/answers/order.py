"""Answers to the exercises on word order."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import right, wrong

Layer = Callable[[Tensor], Tensor]


def permuted(x: Tensor, seed: int = 0) -> Tensor:
    return torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))


@right("order.equivariance")
def equivariance_right(f: Layer, x: Tensor) -> Any:
    return all(torch.allclose(f(x[p]), f(x)[p]) for p in (permuted(x, seed) for seed in range(5)))


@right("order.equivariance")
def equivariance_right_2(f: Layer, x: Tensor) -> Any:
    return torch.allclose(f((P := torch.eye(5)[[3, 0, 4, 1, 2]].to(x)) @ x), P @ f(x))


@right("order.equivariance")
def equivariant_for_swaps(f: Layer, x: Tensor) -> bool:
    swaps = ([i + 1 if t == i else i if t == i + 1 else t for t in range(len(x))] for i in range(len(x) - 1))
    return all(torch.allclose(f(x[p]), f(x)[p]) for p in swaps)


@wrong("order.equivariance", "the inverse")
def equivariance_the_inverse_permutation(f: Layer, x: Tensor) -> Any:
    return torch.allclose(f(x[[1, 2, 3, 4, 0]]), f(x)[[4, 0, 1, 2, 3]])


@wrong("order.equivariance", "fooled by a function")
def equivariance_a_swap_of_the_ends(f: Layer, x: Tensor) -> Any:
    return torch.allclose(f(x[[4, 1, 2, 3, 0]]), f(x)[[4, 1, 2, 3, 0]])


@wrong("order.equivariance", "compare with torch.allclose")
def equivariance_exact_comparison(f: Layer, x: Tensor) -> Any:
    return all(torch.equal(f(x[p]), f(x)[p]) for p in (permuted(x, seed) for seed in range(20)))


@wrong("order.equivariance", "where each row went")
def equivariance_sums_compared(f: Layer, x: Tensor) -> Any:
    return torch.allclose(f(x[permuted(x)]).sum(0), f(x).sum(0))


@wrong("order.equivariance", "looks for invariance")
def equivariance_unchanged(f: Layer, x: Tensor) -> Any:
    return torch.allclose(f(x[permuted(x)]), f(x))


@right("order.kind")
def kind_by_many(f: Layer, x: Tensor) -> str:
    orders = [torch.tensor(order) for order in itertools.permutations(range(len(x)))][1:]
    y = f(x)
    if all(torch.allclose(f(x[p]), y) for p in orders):
        return "invariant"
    return "equivariant" if y.shape[0] == len(x) and all(torch.allclose(f(x[p]), y[p]) for p in orders) else "neither"


@right("order.kind")
def kind_by_numpy(f: Layer, x: Tensor) -> str:
    before = f(x).numpy()
    orders = [list(order) for order in itertools.permutations(range(len(x)))]
    if all(np.allclose(f(x[order]).numpy(), before) for order in orders):
        return "invariant"
    moved = before.ndim == 2 and all(np.allclose(f(x[order]).numpy(), before[order]) for order in orders)
    return "equivariant" if moved else "neither"


@right("order.kind")
def kind_many(f: Layer, x: Tensor) -> str:
    orders = [torch.randperm(len(x)) for _ in range(40)]
    y = f(x)
    if all(torch.allclose(f(x[p]), y, atol=1e-5) for p in orders):
        return "invariant"
    if y.dim() == x.dim() and len(y) == len(x) and all(torch.allclose(f(x[p]), y[p], atol=1e-5) for p in orders):
        return "equivariant"
    return "neither"


@wrong("order.kind", "You have swapped the two words")
def kind_swapped_words(f: Layer, x: Tensor) -> str:
    return {"equivariant": "invariant", "invariant": "equivariant", "neither": "neither"}[kind_many(f, x)]


@wrong("order.kind", "by the shape")
def kind_by_shape(f: Layer, x: Tensor) -> str:
    return "equivariant" if f(x).shape == x.shape else "invariant"


@wrong("order.kind", "You try too few orders")
def kind_reversed_only(f: Layer, x: Tensor) -> str:
    y, z = f(x), f(x.flip(0))
    if torch.allclose(y, z, atol=1e-5):
        return "invariant"
    return "equivariant" if y.shape == x.shape and torch.allclose(z, y.flip(0), atol=1e-5) else "neither"


@wrong("order.kind", "too strict")
def kind_exact(f: Layer, x: Tensor) -> str:
    generator = torch.Generator().manual_seed(1)
    orders = [torch.randperm(len(x), generator=generator) for _ in range(8)]
    y = f(x)
    if all(torch.equal(f(x[p]), y) for p in orders):
        return "invariant"
    return "equivariant" if y.shape == x.shape and all(torch.equal(f(x[p]), y[p]) for p in orders) else "neither"


@wrong("order.kind", "except one")
def kind_first_column(f: Layer, x: Tensor) -> str:
    y = f(x)
    orders = [permuted(x, seed) for seed in range(40)]
    if all(torch.allclose(f(x[p])[..., 0], y[..., 0]) for p in orders):
        return "invariant"
    return "equivariant" if y.ndim == 2 and all(torch.allclose(f(x[p])[:, 0], y[p, 0]) for p in orders) else "neither"


@wrong("order.kind", "sums or means")
def kind_of_means(f: Layer, x: Tensor) -> str:
    if f(x).ndim == 1:
        return kind_many(f, x)
    same = all(torch.allclose(f(x).mean(0), f(x[permuted(x, seed)]).mean(0)) for seed in range(40))
    return "equivariant" if same else "neither"


@right("order.who_sees_whom")
def by_gradient(f: Layer, x: Tensor) -> Tensor:
    jacobian = torch.autograd.functional.jacobian(f, x)  # (L, d, L, d)
    return jacobian.abs().sum(dim=(1, 3)) > 0


Change = Callable[[Tensor], Tensor]
Compare = Callable[[Tensor, Tensor], Tensor]


def other(token: Tensor) -> Tensor:
    return token + torch.randn_like(token)


def sees(f: Layer, x: Tensor, change: Change = other, differ: Compare = lambda a, b: (a != b).any(dim=-1)) -> Tensor:
    """Which rows differ when one token after another is changed in a copy."""
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        changed = x.clone()
        changed[n] = change(x[n])
        table[:, n] = differ(f(changed), f(x))
    return table


@right("order.who_sees_whom")
def sees_exact(f: Layer, x: Tensor) -> Tensor:
    return sees(f, x, lambda token: torch.randn_like(token) * 3)


@right("order.who_sees_whom")
def sees_up_to_rounding(f: Layer, x: Tensor) -> Tensor:
    return sees(f, x, lambda token: 10 * token + torch.rand(len(token)), lambda a, b: (a - b).abs().amax(dim=1) > 1e-7)


@wrong("order.who_sees_whom", "leave each token changed")
def sees_never_put_back(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    before, y = f(x), x.clone()
    for n in range(len(x)):
        y[n] = torch.randn_like(x[n])
        table[:, n] = (f(y) != before).any(dim=-1)
    return table


@wrong("order.who_sees_whom", "zero already")
def sees_zeroed(f: Layer, x: Tensor) -> Tensor:
    return sees(f, x, torch.zeros_like)


@wrong("order.who_sees_whom", "only one number of each row")
def sees_first_number(f: Layer, x: Tensor) -> Tensor:
    return sees(f, x, differ=lambda a, b: (a != b)[:, 0])


@wrong("order.who_sees_whom", "that every number of a row changes")
def sees_all_numbers(f: Layer, x: Tensor) -> Tensor:
    return sees(f, x, differ=lambda a, b: (a != b).all(dim=-1))


@wrong("order.who_sees_whom", "add the same number")
def sees_plus_one(f: Layer, x: Tensor) -> Tensor:
    return sees(f, x, lambda token: token + 1, lambda a, b: (a - b).abs().amax(dim=1) > 1e-7)


@wrong("order.who_sees_whom", "Change x and call f again")
def sees_causal_always(f: Layer, x: Tensor) -> Tensor:
    return torch.ones(len(x), len(x)).tril().bool()


def results(f: Layer, x: Tensor) -> list[Tensor]:
    return [f(x[list(order)]) for order in itertools.permutations(range(len(x)))]


@right("order.orders_apart")
def apart_by_rounding(f: Layer, x: Tensor) -> int:
    return len({tuple((1e6 * y).round().long().flatten().tolist()) for y in results(f, x)})


@right("order.orders_apart")
def apart_by_distance(f: Layer, x: Tensor) -> np.int64:
    table = torch.stack([y.flatten() for y in results(f, x)])
    near = torch.cdist(table, table, compute_mode="donot_use_mm_for_euclid_dist") < 1e-6
    return np.int64((near.numpy().argmax(axis=1) == np.arange(len(near))).sum())


@right("order.orders_apart")
def apart_matrix(f: Layer, x: Tensor) -> int:
    results = torch.stack([f(x[list(p)]).flatten() for p in itertools.permutations(range(len(x)))])
    same = (results[:, None] - results[None]).abs().amax(dim=-1) < 1e-4
    return int((same.int().argmax(dim=1) == torch.arange(len(results))).sum())


@wrong("order.orders_apart", "differ only in the last digit")
def apart_exact(f: Layer, x: Tensor) -> int:
    return len({tuple(f(x[list(p)]).flatten().tolist()) for p in itertools.permutations(range(len(x)))})


@wrong("order.orders_apart", "You count the orders")
def apart_all(f: Layer, x: Tensor) -> int:
    return len(list(itertools.permutations(range(len(x)))))


@wrong("order.orders_apart", "differs from the first")
def apart_from_first(f: Layer, x: Tensor) -> int:
    return sum(not torch.allclose(f(x[list(p)]), f(x), atol=1e-5) for p in itertools.permutations(range(len(x))))


@wrong("order.orders_apart", "shift all rows cyclically")
def apart_rotations(f: Layer, x: Tensor) -> int:
    seen: list[Tensor] = []
    for k in range(len(x)):
        y = f(x.roll(k, 0))
        if not any(torch.allclose(y, s, atol=1e-5) for s in seen):
            seen.append(y)
    return len(seen)


@wrong("order.orders_apart", "only with the one before")
def apart_consecutive(f: Layer, x: Tensor) -> int:
    results = [f(x[list(p)]) for p in itertools.permutations(range(len(x)))]
    return 1 + sum(not torch.allclose(a, b, atol=1e-5) for a, b in itertools.pairwise(results))


@wrong("order.orders_apart", "so coarsely")
def apart_one_decimal(f: Layer, x: Tensor) -> int:
    return len({tuple(f(x[list(p)]).flatten().round(decimals=1).tolist()) for p in itertools.permutations(range(len(x)))})


@wrong("order.orders_apart", "compare the sums")
def apart_by_sums(f: Layer, x: Tensor) -> int:
    return len({round(float(y.sum()), 6) for y in results(f, x)})
