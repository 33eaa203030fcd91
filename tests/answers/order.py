"""Answers to the exercises on word order."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import blind

Layer = Callable[[Tensor], Tensor]


def permuted(x: Tensor, seed: int = 0) -> Tensor:
    return torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))


def equivariant_for(permutation: Callable[[Tensor], Any], same: Callable[..., Any] = torch.allclose) -> Callable[..., Any]:
    def is_equivariant(f: Layer, x: Tensor) -> Any:
        p = permutation(x)
        return same(f(x[p]), f(x)[p])

    return is_equivariant


def equivariant_for_swaps(f: Layer, x: Tensor) -> bool:
    swaps = ([i + 1 if t == i else i if t == i + 1 else t for t in range(len(x))] for i in range(len(x) - 1))
    return all(torch.allclose(f(x[p]), f(x)[p]) for p in swaps)


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


def kind_by_numpy(f: Layer, x: Tensor, first: tuple[int, ...] = (1, 2, 0)) -> str:
    before, after = f(x).numpy(), f(x.flip(0)).numpy()
    if before.ndim == 2 and np.allclose(before[::-1], after) and not np.allclose(before, after):
        order = [*first, *range(len(first), len(x))]
        return "equivariant" if np.allclose(before[order], f(x[order]).numpy()) else "neither"
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


def permutation_scatter(order: Tensor) -> Tensor:
    return torch.zeros(len(order), len(order)).scatter_(1, order[:, None], 1.0)


def permutation_compared(order: Tensor) -> Tensor:
    return (order[:, None] == torch.arange(len(order))[None, :]).float()


def permutation_rows(order: Tensor) -> Tensor:
    return order[:, None].repeat(1, len(order)).float()


def permutation_loop_short(order: Tensor) -> Tensor:
    result = torch.zeros(len(order), len(order))
    for i in range(len(order) - 1):
        result[i, order[i]] = 1
    return result


def kind_many(f: Layer, x: Tensor) -> str:
    orders = [torch.randperm(len(x)) for _ in range(40)]
    y = f(x)
    if all(torch.allclose(f(x[p]), y, atol=1e-5) for p in orders):
        return "invariant"
    if y.dim() == x.dim() and len(y) == len(x) and all(torch.allclose(f(x[p]), y[p], atol=1e-5) for p in orders):
        return "equivariant"
    return "neither"


def kind_neighbours(f: Layer, x: Tensor) -> str:
    y, words = f(x), {"equivariant", "invariant"}
    for i in range(len(x) - 1):  # the swaps of neighbours generate all orders
        p = list(range(len(x)))
        p[i], p[i + 1] = p[i + 1], p[i]
        z = f(x[p])
        if y.shape != x.shape or (y[p] - z).abs().max() > 1e-5:
            words.discard("equivariant")
        if (y - z).abs().max() > 1e-5:
            words.discard("invariant")
    return words.pop() if len(words) == 1 else "neither"


def kind_swapped_words(f: Layer, x: Tensor) -> str:
    return {"equivariant": "invariant", "invariant": "equivariant", "neither": "neither"}[kind_many(f, x)]


def kind_never_invariant(f: Layer, x: Tensor) -> str:
    p = permuted(x)
    y = f(x)
    if y.shape != x.shape:
        return "neither"
    return "equivariant" if torch.allclose(f(x[p]), y[p], atol=1e-5) else "neither"


def kind_by_shape(f: Layer, x: Tensor) -> str:
    return "equivariant" if f(x).shape == x.shape else "invariant"


def kind_reversed_only(f: Layer, x: Tensor) -> str:
    y, z = f(x), f(x.flip(0))
    if torch.allclose(y, z, atol=1e-5):
        return "invariant"
    return "equivariant" if y.shape == x.shape and torch.allclose(z, y.flip(0), atol=1e-5) else "neither"


def kind_exact(f: Layer, x: Tensor) -> str:
    generator = torch.Generator().manual_seed(1)
    orders = [torch.randperm(len(x), generator=generator) for _ in range(8)]
    y = f(x)
    if all(torch.equal(f(x[p]), y) for p in orders):
        return "invariant"
    return "equivariant" if y.shape == x.shape and all(torch.equal(f(x[p]), y[p]) for p in orders) else "neither"


def kind_rotates(f: Layer, x: Tensor) -> str:
    y, z = f(x), f(x.roll(1, 0))
    if torch.allclose(y, z, atol=1e-5):
        return "invariant"
    return "equivariant" if y.shape == x.shape and torch.allclose(z, y.roll(1, 0), atol=1e-5) else "neither"


def kind_crashes(f: Layer, x: Tensor) -> str:
    p = torch.randperm(len(x))
    if torch.allclose(f(x[p]), f(x)[p], atol=1e-5):
        return "equivariant"
    return "invariant" if torch.allclose(f(x[p]), f(x), atol=1e-5) else "neither"


def sees_numpy(f: Layer, x: Tensor) -> Any:
    before, columns = f(x), []
    for n in range(len(x)):
        changed = torch.zeros(len(x), dtype=torch.bool)
        for size in (0.1, 1.0, 10.0):
            token = torch.arange(len(x)) == n
            other = torch.where(token[:, None], x + size * torch.randn_like(x), x)
            changed |= (f(other) - before).abs().amax(dim=1) > 1e-7
        columns.append(changed.numpy())
    return np.stack(columns, axis=1)


def sees_exact(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        other = x.clone()
        other[n] = torch.randn_like(x[n]) * 3
        table[:, n] = (f(other) != f(x)).any(dim=-1)
    return table


def sees_no_copy(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    keep = x.clone()
    for n in range(len(keep)):
        y = keep
        y[n] = y[n] + 1.5
        table[:, n] = (f(y) != f(keep)).any(dim=-1)
    return table


def sees_never_put_back(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    before, y = f(x), x.clone()
    for n in range(len(x)):
        y[n] = torch.randn_like(x[n])
        table[:, n] = (f(y) != before).any(dim=-1)
    return table


def sees_zeroed(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        y = x.clone()
        y[n] = 0
        table[:, n] = (f(y) - f(x)).abs().amax(dim=-1) > 1e-7
    return table


def sees_first_number(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        y = x.clone()
        y[n] += torch.randn_like(x[n])
        table[:, n] = (f(y) - f(x))[:, 0].abs() > 1e-7
    return table


def sees_all_numbers(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        y = x.clone()
        y[n] += torch.randn_like(x[n])
        table[:, n] = (f(y) != f(x)).all(dim=-1)
    return table


def sees_causal_always(f: Layer, x: Tensor) -> Tensor:
    return torch.ones(len(x), len(x)).tril().bool()


def sees_plus_one(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        y = x.clone()
        y[n, 0] += 1
        table[:, n] = (f(y) != f(x)).any(dim=-1)
    return table


def apart_matrix(f: Layer, x: Tensor) -> int:
    results = torch.stack([f(x[list(p)]).flatten() for p in itertools.permutations(range(len(x)))])
    same = (results[:, None] - results[None]).abs().amax(dim=-1) < 1e-4
    return int((same.int().argmax(dim=1) == torch.arange(len(results))).sum())


def apart_exact(f: Layer, x: Tensor) -> int:
    return len({tuple(f(x[list(p)]).flatten().tolist()) for p in itertools.permutations(range(len(x)))})


def apart_all(f: Layer, x: Tensor) -> int:
    return len(list(itertools.permutations(range(len(x)))))


def apart_from_first(f: Layer, x: Tensor) -> int:
    return sum(not torch.allclose(f(x[list(p)]), f(x), atol=1e-5) for p in itertools.permutations(range(len(x))))


def apart_rotations(f: Layer, x: Tensor) -> int:
    seen: list[Tensor] = []
    for k in range(len(x)):
        y = f(x.roll(k, 0))
        if not any(torch.allclose(y, s, atol=1e-5) for s in seen):
            seen.append(y)
    return len(seen)


def apart_sums(f: Layer, x: Tensor) -> int:
    seen: list[float] = []
    for p in itertools.permutations(range(len(x))):
        y = f(x[list(p)]).sum().item()
        if not any(abs(y - s) < 1e-5 for s in seen):
            seen.append(y)
    return len(seen)


def apart_consecutive(f: Layer, x: Tensor) -> int:
    results = [f(x[list(p)]) for p in itertools.permutations(range(len(x)))]
    return 1 + sum(not torch.allclose(a, b, atol=1e-5) for a, b in itertools.pairwise(results))


def apart_one_decimal(f: Layer, x: Tensor) -> int:
    return len({tuple(f(x[list(p)]).flatten().round(decimals=1).tolist()) for p in itertools.permutations(range(len(x)))})


def sees_row_sums(f: Layer, x: Tensor) -> Tensor:
    jacobian = torch.autograd.functional.jacobian(lambda x: f(x).sum(dim=1), x)  # (L, L, d)
    return jacobian.abs().sum(dim=2) > 1e-9


RIGHT: dict[str, list[Any]] = {
    "order.equivariance": [
        equivariant_for(permuted),
        equivariant_for(lambda _: [2, 0, 1, 4, 3]),
        equivariant_for(permuted, lambda a, b: np.allclose(a.numpy(), b.numpy())),
        equivariant_for(permuted, lambda a, b: (a - b).abs().max() < 1e-9),
        lambda f, x: all(torch.allclose(f(x[p]), f(x)[p]) for p in (permuted(x, seed) for seed in range(5))),
        lambda f, x: torch.allclose(f((P := torch.eye(5)[[3, 0, 4, 1, 2]].to(x)) @ x), P @ f(x)),
        equivariant_for_swaps,
    ],
    "order.permutation": [
        lambda order: torch.eye(len(order))[order],
        by_scatter,
        lambda order: np.array([[float(i == column) for column in range(len(order))] for i in order.tolist()]),
        lambda order: (order[:, None] == torch.arange(len(order))).double(),
        *blind(permutation_scatter, permutation_compared),
    ],
    "order.kind": [
        lambda f, x: by_one_order(f, x, torch.tensor([2, 0, 1, 4, 3])),
        kind_by_many,
        kind_by_numpy,
        *blind(kind_many, kind_neighbours),
    ],
    "order.who_sees_whom": [
        lambda f, x: seen(f, x) > 1e-9,
        by_gradient,
        seen_in_numpy,
        *blind(sees_numpy, sees_exact),
    ],
    "order.orders_apart": [apart, apart_by_rounding, apart_by_distance, *blind(apart_matrix)],
}

WRONG: dict[str, list[Any]] = {
    "order.equivariance": [
        ("the inverse permutation", lambda f, x: torch.allclose(f(x[[1, 2, 3, 4, 0]]), f(x)[[4, 0, 1, 2, 3]]), "the inverse"),
        ("a swap of the ends", equivariant_for(lambda _: [4, 1, 2, 3, 0]), "sequence, and by one that doubles"),
        ("a swap of the first two rows", equivariant_for(lambda _: [1, 0, 2, 3, 4]), "by a function that doubles"),
        ("a cyclic shift", lambda f, x: torch.allclose(f(x.roll(1, 0)), f(x).roll(1, 0)), "by a function that averages"),
        ("all cyclic shifts", lambda f, x: all(torch.allclose(f(x.roll(k, 0)), f(x).roll(k, 0)) for k in range(5)),
         "by a function that averages"),
        ("a reversal", equivariant_for(lambda _: [4, 3, 2, 1, 0]), "neighbours, and by one that doubles"),
        ("another that keeps the middle row", equivariant_for(lambda _: [1, 4, 2, 0, 3]), "fooled by a function that"),
        ("sums of a reversal", equivariant_for(lambda _: [4, 3, 2, 1, 0], lambda a, b: torch.allclose(a.sum(0), b.sum(0))),
         "where each row went"),
        ("channels permuted", lambda f, x: torch.allclose(f(x[:, [1, 0, 2, 3]]), f(x)[:, [1, 0, 2, 3]]), "reorder the rows"),
        ("exact comparison", lambda f, x: all(torch.equal(f(x[p]), f(x)[p]) for p in (permuted(x, seed) for seed in range(20))),
         "compare with torch.allclose"),
        ("sums compared", lambda f, x: torch.allclose(f(x[permuted(x)]).sum(0), f(x).sum(0)), "where each row went"),
        ("first column", equivariant_for(permuted, lambda a, b: torch.allclose(a[:, 0], b[:, 0])), "all columns except one"),
        ("last column", equivariant_for(permuted, lambda a, b: torch.allclose(a[:, -1], b[:, -1])), "columns except one"),
        ("elementwise", equivariant_for(permuted, torch.isclose), "torch.allclose compares whole tensors"),
        ("a difference", equivariant_for(permuted, lambda a, b: (a - b).abs().max()), "it should return a single True"),
        ("words", lambda f, x: "yes", "returned a str"),
    ],
    "order.permutation": [
        ("positions from 1", lambda order: torch.eye(len(order) + 1)[order], "has shape"),
        ("the order itself", lambda order: order, "has shape"),
        ("two ones", lambda order: torch.eye(len(order))[order] + torch.eye(len(order)), None),
        *blind(
            ("columns of the identity, the inverse", lambda order: torch.eye(len(order))[:, order], "it undoes the reordering"),
            ("rows in the sorted order", lambda order: torch.eye(len(order))[order.argsort()], "it undoes the reordering"),
            ("always three rows", lambda order: torch.eye(3)[order], "has shape (1, 3), but it should be (1, 1)"),
            ("orders counted from 1", lambda order: torch.eye(len(order))[order - 1], "counted from 0"),
            ("the order itself in every column", permutation_rows, "You write the numbers of `order` into P"),
            ("last row left empty", permutation_loop_short, "last row of your P contains only zeros"),
        ),
    ],
    "order.kind": [
        ("another word", lambda f, x: "symmetric", "'symmetric' every time"),
        ("a truth", lambda f, x: torch.allclose(f(x), f(x.flip(0))), "returned a bool"),
        ("sums", lambda f, x: by_one_order(f, x, torch.tensor([2, 0, 1, 4, 3]),
                                           same=lambda a, b: torch.allclose(a.sum(0), b.sum(0))), "sums or means"),
        ("first column", lambda f, x: by_one_order(f, x, torch.tensor([2, 0, 1, 4, 3]),
                                                   same=lambda a, b: torch.allclose(a[..., 0], b[..., 0])), "columns except"),
        ("a reversal and a swap", lambda f, x: kind_by_numpy(f, x, (1, 0)), "You try too few orders"),
        *blind(
            ("the two words swapped", kind_swapped_words, "You have swapped the two words"),
            ("never says invariant", kind_never_invariant, 'You call no function "invariant"'),
            ("goes by the shape", kind_by_shape, "by the shape"),
            ("reverses only", kind_reversed_only, "You try too few orders"),
            ("rotates only", kind_rotates, "You try too few orders"),
            ("to the last digit", kind_exact, "too strict"),
            ("reorders a result of one row", kind_crashes, "raised IndexError"),
        ),
    ],
    "order.who_sees_whom": [
        ("written into x", lambda f, x: seen(f, x, clone=False) > 1e-9, "writes into its arguments"),
        ("one token", lambda f, x: seen(f, x)[0] > 1e-9, "has shape"),
        ("always six", lambda f, x: torch.stack([(seen(f, x) > 1e-9)[m] for m in range(6)]), "raised IndexError"),
        ("gradients of row sums", sees_row_sums, "the sum of each row"),
        *blind(
            ("transposed", lambda f, x: sees_exact(f, x).T, "Your table is transposed"),
            ("no copy", sees_no_copy, "a changed copy of x"),
            ("tokens never put back", sees_never_put_back, "leave each token changed"),
            ("zeroes what is zero", sees_zeroed, "zero already"),
            ("first number of the output only", sees_first_number, "only one number of each row"),
            ("first number of the token only", sees_plus_one, "one number of a token"),
            ("all numbers must change", sees_all_numbers, "that every number of a row changes"),
            ("causal whatever the layer", sees_causal_always, "Change x and call f again"),
            ("True where nothing changes", lambda f, x: ~sees_exact(f, x), "True where nothing changes"),
        ),
    ],
    "order.orders_apart": [
        ("the orders of four rows", lambda f, x: len({*itertools.permutations(range(4))}), "You count the orders"),
        ("four rows only", lambda f, x: len({str(f(x[[*p]]).round(decimals=6)) for p in itertools.permutations(range(4))}),
         "raised IndexError"),
        *blind(
            ("to the last digit", apart_exact, "differ only in the last digit"),
            ("counts the orders", apart_all, "You count the orders"),
            ("those that differ from the first", apart_from_first, "differs from the first"),
            ("rotations only", apart_rotations, "shift all rows cyclically"),
            ("compares sums", apart_sums, "the same sum"),
            ("compares with the one before", apart_consecutive, "only with the one before"),
            ("one decimal", apart_one_decimal, "so coarsely"),
        ),
    ],
}  # fmt: skip
