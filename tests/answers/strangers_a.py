"""Answers by somebody who had not read the checks."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.sinusoidal import frequencies, sinusoidal_table

Layer = Callable[[Tensor], Tensor]


# order.permutation --------------------------------------------------------------------------------
def permutation_scatter(order: Tensor) -> Tensor:
    return torch.zeros(len(order), len(order)).scatter_(1, order[:, None], 1.0)


def permutation_compared(order: Tensor) -> Tensor:
    return (order[:, None] == torch.arange(len(order))[None, :]).float()


def permutation_columns(order: Tensor) -> Tensor:
    return torch.eye(len(order))[:, order]


def permutation_argsort(order: Tensor) -> Tensor:
    return torch.eye(len(order))[order.argsort()]


def permutation_three(order: Tensor) -> Tensor:
    return torch.eye(3)[order]


def permutation_from_one(order: Tensor) -> Tensor:
    return torch.eye(len(order))[order - 1]


def permutation_rows(order: Tensor) -> Tensor:
    return order[:, None].repeat(1, len(order)).float()


def permutation_loop_short(order: Tensor) -> Tensor:
    result = torch.zeros(len(order), len(order))
    for i in range(len(order) - 1):
        result[i, order[i]] = 1
    return result


# order.kind --------------------------------------------------------------------------------
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
    p = torch.randperm(len(x))
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


def kind_swaps_first_two(f: Layer, x: Tensor) -> str:
    p = torch.tensor([1, 0, *range(2, len(x))])
    y, z = f(x), f(x[p])
    if torch.allclose(y, z, atol=1e-5):
        return "invariant"
    return "equivariant" if y.shape == x.shape and torch.allclose(z, y[p], atol=1e-5) else "neither"


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


# order.who_sees_whom --------------------------------------------------------------------------------
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


def sees_transposed(f: Layer, x: Tensor) -> Tensor:
    return sees_exact(f, x).T


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


def sees_unchanged(f: Layer, x: Tensor) -> Tensor:
    return ~sees_exact(f, x)


def sees_plus_one(f: Layer, x: Tensor) -> Tensor:
    table = torch.zeros(len(x), len(x), dtype=torch.bool)
    for n in range(len(x)):
        y = x.clone()
        y[n, 0] += 1
        table[:, n] = (f(y) != f(x)).any(dim=-1)
    return table


# order.orders_apart --------------------------------------------------------------------------------
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


# naive.counts_along --------------------------------------------------------------------------------
def along_spread(f: Layer) -> str:
    y = f(torch.zeros(7, 11, 6))
    if (y.amax(dim=1) - y.amin(dim=1)).max() > 1e-9:
        return "token"
    return "text" if (y.amax(dim=0) - y.amin(dim=0)).max() > 1e-9 else "neither"


def along_other_side(f: Layer) -> str:
    a, b = torch.randn(4, 9, 5), torch.randn(4, 9, 5)
    scale = ((f(a) - f(b)) / (a - b)).median()
    y = (f(a) - scale * a).numpy()
    if not np.allclose(y, y[:, :1], atol=1e-3):
        return "token"
    return "neither" if np.allclose(y, y[:1], atol=1e-3) else "text"


def along_texts_first(f: Layer) -> str:
    y = f(torch.zeros(3, 5, 8))
    if (y != y[:1]).any():
        return "text"
    return "token" if (y != y[:, :1]).any() else "neither"


def along_one_text(f: Layer) -> str:
    y = f(torch.zeros(1, 5, 8))[0]
    return "token" if (y != y[0]).any() else "text"


def along_first_number(f: Layer) -> str:
    y = f(torch.zeros(3, 5, 8))[..., 0]
    if (y != y[:, :1]).any():
        return "token"
    return "text" if (y != y[:1]).any() else "neither"


def along_swapped(f: Layer) -> str:
    return {"token": "text", "text": "token", "neither": "neither"}[along_spread(f)]


def along_random(f: Layer) -> str:
    x = torch.randn(3, 5, 8)
    y = f(x) - x
    if not torch.allclose(y, y[:, :1].expand_as(y), atol=1e-5):
        return "token"
    return "text" if not torch.allclose(y, y[:1].expand_as(y), atol=1e-5) else "neither"


def along_random_kept(f: Layer) -> str:
    y = f(torch.randn(3, 5, 8))
    return "token" if (y[0, 0] != y[0, 1]).any() else "text" if (y[0, 0] != y[1, 0]).any() else "neither"


def along_wide(f: Layer) -> str:
    y = f(torch.zeros(3, 3, 3))
    return "token" if (y[:, :, 0] != y[:, :, 1]).any() else "text" if (y[0] != y[1]).any() else "neither"


def along_no_neither(f: Layer) -> str:
    y = f(torch.zeros(3, 5, 8))
    return "token" if (y != y[:, :1]).any() else "text"


# naive.fractions --------------------------------------------------------------------------------
def fractions_linspace(mask: Tensor) -> Tensor:
    result = torch.zeros(mask.shape, dtype=torch.float64)
    for row, keep in zip(result, mask, strict=True):
        row[keep] = torch.linspace(0, 1, int(keep.sum()), dtype=torch.float64)
    return result


def fractions_numpy(mask: Tensor) -> Any:
    m = mask.numpy()
    before = np.cumsum(m, axis=1) - m
    after = np.cumsum(m[:, ::-1], axis=1)[:, ::-1] - m
    return m * before / np.maximum(before + after, 1)


def _counted(mask: Tensor) -> Tensor:
    return mask.cumsum(dim=1) - 1


def fractions_columns(mask: Tensor) -> Tensor:
    lengths = mask.sum(dim=1, keepdim=True)
    return torch.arange(mask.shape[1]) / (lengths - 1).clamp(min=1) * mask


def fractions_by_length(mask: Tensor) -> Tensor:
    return _counted(mask) / mask.sum(dim=1, keepdim=True) * mask


def fractions_by_width(mask: Tensor) -> Tensor:
    return _counted(mask) / (mask.shape[1] - 1) * mask


def fractions_padding_left(mask: Tensor) -> Tensor:
    return _counted(mask) / (mask.sum(dim=1, keepdim=True) - 1).clamp(min=1)


def fractions_zero_by_zero(mask: Tensor) -> Tensor:
    return _counted(mask) / (mask.sum(dim=1, keepdim=True) - 1) * mask


def fractions_from_one(mask: Tensor) -> Tensor:
    return mask.cumsum(dim=1) / (mask.sum(dim=1, keepdim=True) - 1).clamp(min=1) * mask


def fractions_longest(mask: Tensor) -> Tensor:
    return _counted(mask) / (mask.sum(dim=1).max() - 1).clamp(min=1) * mask


def fractions_whole(mask: Tensor) -> Tensor:
    return _counted(mask) // (mask.sum(dim=1, keepdim=True) - 1).clamp(min=1) * mask


# naive.first_return --------------------------------------------------------------------------------
def return_walk(dials: list[int]) -> int:
    here, step = 0, 1
    for p in dials:
        here = step
        while here % p:
            here += step
        step = here
    return step


def return_numpy(dials: list[int]) -> Any:
    return np.lcm.reduce(np.array(dials))


def return_by_gcd_of_all(dials: list[int]) -> int:
    return math.prod(dials) // math.gcd(*dials)


def return_gcd_wrong(dials: list[int]) -> int:
    return math.gcd(*dials)


def return_short_loop(dials: list[int]) -> int | None:
    return next((m for m in range(1, 1000) if all(m % p == 0 for p in dials)), None)


def return_from_zero(dials: list[int]) -> int:
    return next(m for m in range(10**9) if all(m % p == 0 for p in dials))


def return_first_two(dials: list[int]) -> int:
    return math.lcm(*dials[:2])


def return_any(dials: list[int]) -> int:
    m = 1
    while all(m % p for p in dials):
        m += 1
    return m


# naive.best_dials --------------------------------------------------------------------------------
def dials_all_lists(marks: int) -> list[int]:
    def lists(money: int, most: int) -> list[list[int]]:
        return [[]] + [[p, *rest] for p in range(most, 1, -1) if p <= money for rest in lists(money - p, p - 1)]

    return min(lists(marks, marks), key=lambda d: -math.lcm(*d))


def dials_rest_alone(marks: int, least: int = 2) -> list[int]:
    best: list[int] = []
    for p in range(least, marks + 1):
        rest = [p, *dials_rest_alone(marks - p, p + 1)]
        if math.lcm(*rest) > math.lcm(*best):
            best = rest
    return best[::-1]


def dials_padded(marks: int) -> list[int]:
    best = {0: [[]]}  # type: dict[int, list[list[int]]]
    for spent in range(1, marks + 1):
        best[spent] = [[*old, p] for p in range(2, spent + 1) for old in best[spent - p] if not old or p >= old[-1]]
    return max((d for lists in best.values() for d in lists), key=lambda d: (math.lcm(*d), len(d)))


def dials_product(marks: int) -> list[int]:
    sizes = (s for k in range(1, 5) for s in itertools.combinations(range(2, marks + 1), k) if sum(s) <= marks)
    return list(max(sizes, key=math.prod))


def dials_twos(marks: int) -> list[int]:
    return [2] * (marks // 2)


def dials_primes(marks: int) -> list[int]:
    result: list[Any] = []
    for p in (2, 3, 5, 7, 11, 13):
        if sum(result) + p <= marks:
            result.append(p)
    return result


def dials_one(marks: int) -> list[int]:
    return [marks]


def dials_pairs(marks: int) -> list[int]:
    pairs = [[marks], *([a, b] for a in range(2, marks) for b in range(2, marks) if a + b <= marks)]
    return max(pairs, key=lambda d: math.lcm(*d))


def dials_exactly(marks: int) -> list[int]:
    sizes = [s for k in range(1, 5) for s in itertools.combinations(range(2, marks + 1), k) if sum(s) == marks]
    return list(max(sizes, key=lambda s: math.lcm(*s)))


def dials_range_short(marks: int) -> list[int]:
    sizes = [s for k in range(1, 5) for s in itertools.combinations(range(2, marks), k) if sum(s) <= marks]
    return list(max(sizes, key=lambda s: math.lcm(*s), default=(2,)))


def dials_with_one(marks: int) -> list[int]:
    best = dials_all_lists(marks)
    return best + [1] * (marks - sum(best))


def dials_too_dear(marks: int) -> list[int]:
    return dials_all_lists(marks + 1)


# sinusoidal.to_interleaved --------------------------------------------------------------------------------
def layout_sorted(table: Tensor) -> Tensor:
    d = table.shape[1]
    places = [2 * c if c < (d + 1) // 2 else 2 * (c - (d + 1) // 2) + 1 for c in range(d)]
    return table[:, sorted(range(d), key=places.__getitem__)]


def layout_padded(table: Tensor) -> Tensor:
    d = table.shape[1]
    even = torch.nn.functional.pad(table, (0, d % 2))
    return torch.stack(even.chunk(2, dim=1), dim=2).reshape(len(table), -1)[:, :d]


def layout_floor(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    new = torch.zeros_like(table)
    for i in range(half):
        new[:, 2 * i], new[:, 2 * i + 1] = table[:, i], table[:, half + i]
    return new


def layout_other_way(table: Tensor) -> Tensor:
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)


def layout_cosine_first(table: Tensor) -> Tensor:
    new, half = torch.empty_like(table), table.shape[1] // 2
    new[:, 0::2], new[:, 1::2] = table[:, half:], table[:, :half]
    return new


def layout_odd_cosine_first(table: Tensor) -> Tensor:
    new, half = torch.empty_like(table), table.shape[1] // 2
    new[:, 1::2], new[:, 0::2] = table[:, :half], table[:, half:]
    return new


def layout_reshaped(table: Tensor) -> Tensor:
    half = (table.shape[1] + 1) // 2
    return torch.cat((table[:, :half], table[:, half:]), dim=1).reshape(table.shape)


def layout_drops(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    return torch.stack((table[:, :half], table[:, half : 2 * half]), dim=2).flatten(1)


def layout_even_only(table: Tensor) -> Tensor:
    return table.reshape(len(table), 2, -1).transpose(1, 2).reshape(table.shape)


def layout_rows(table: Tensor) -> Tensor:
    new, half = torch.empty_like(table), (len(table) + 1) // 2
    new[0::2], new[1::2] = table[:half], table[half:]
    return new


# sinusoidal.turns --------------------------------------------------------------------------------
def turns_complex(table: Tensor) -> Tensor:
    z = torch.complex(table[:, 1::2].contiguous(), table[:, 0::2].contiguous())
    return (z[1:] * z[:-1].conj()).angle()


def turns_numpy(table: Tensor) -> Any:
    angles = np.arctan2(table[:, 0::2].numpy(), table[:, 1::2].numpy())
    return np.diff(np.unwrap(angles, axis=0), axis=0)


def _angles(table: Tensor) -> Tensor:
    return torch.atan2(table[:, 0::2], table[:, 1::2])


def turns_not_wrapped(table: Tensor) -> Tensor:
    return _angles(table).diff(dim=0)


def turns_positive(table: Tensor) -> Tensor:
    return _angles(table).diff(dim=0) % (2 * math.pi)


def turns_swapped(table: Tensor) -> Tensor:
    return -turns_complex(table)


def turns_unsigned(table: Tensor) -> Tensor:
    dots = table[1:, 0::2] * table[:-1, 0::2] + table[1:, 1::2] * table[:-1, 1::2]
    return dots.clamp(-1, 1).acos()


def turns_arcsine(table: Tensor) -> Tensor:
    s, c = table[:, 0::2], table[:, 1::2]
    return (s[1:] * c[:-1] - c[1:] * s[:-1]).clamp(-1, 1).asin()


def turns_from_row_zero(table: Tensor) -> Tensor:
    z = torch.complex(table[:, 1::2].contiguous(), table[:, 0::2].contiguous())
    return (z[1:] * z[:1].conj()).angle()


def turns_halves(table: Tensor) -> Tensor:
    half = table.shape[1] // 2
    change = torch.atan2(table[:, :half], table[:, half:]).diff(dim=0)
    return (change + math.pi) % (2 * math.pi) - math.pi


def turns_one_seam(table: Tensor) -> Tensor:
    change = _angles(table).diff(dim=0)
    return torch.where(change < -math.pi, change + 2 * math.pi, change)


def turns_modulo_pi(table: Tensor) -> Tensor:
    return torch.remainder(_angles(table).diff(dim=0) + math.pi / 2, math.pi) - math.pi / 2


# sinusoidal.culprit --------------------------------------------------------------------------------
def _wrong(table: Tensor) -> Tensor:
    off = turns_complex(table) - frequencies(table.shape[1])
    return (off - 2 * math.pi * (off / (2 * math.pi)).round()).abs() > 1e-5


def culprit_leave_one_out(table: Tensor) -> str:
    wrong = _wrong(table)
    if not wrong.any():
        return "none"
    for i in range(wrong.shape[1]):
        if not torch.cat((wrong[:, :i], wrong[:, i + 1 :]), dim=1).any():
            return f"pair {i}"
    steps = wrong.any(dim=1).nonzero().flatten().tolist()
    if len(steps) == 2:
        return f"row {steps[1]}"
    return "row 0" if steps == [0] else f"row {len(table) - 1}"


def culprit_counts(table: Tensor) -> str:
    rows, pairs = _wrong(table).all(dim=1), _wrong(table).all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    if not rows.any():
        return "none"
    if rows.sum() == 1:
        return "row 0" if rows[0] else f"row {len(rows)}"
    return f"row {int(rows.int().argmax()) + 1}"


def culprit_first_step(table: Tensor) -> str:
    wrong = _wrong(table)
    if wrong[0].sum() == 1:
        return f"pair {int(wrong[0].int().argmax())}"
    steps = wrong[:, 0].nonzero().flatten().tolist()
    return "none" if not steps else "row 0" if steps == [0] else f"row {steps[0] + 1}"


def culprit_no_edges(table: Tensor) -> str:
    rows, pairs = _wrong(table).all(dim=1), _wrong(table).all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    return f"row {int(rows.int().argmax()) + 1}" if rows.any() else "none"


def culprit_row_short(table: Tensor) -> str:
    said = culprit_counts(table)
    kind, _, number = said.partition(" ")
    return f"row {max(int(number) - 1, 0)}" if kind == "row" else said


def culprit_last_forgotten(table: Tensor) -> str:
    wrong = _wrong(table)
    pairs = wrong.all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    for r in range(1, len(wrong)):
        if wrong[r].all() and wrong[r - 1].all():
            return f"row {r}"
    return "row 0" if wrong[0].all() else "none"


def culprit_coarse(table: Tensor) -> str:
    wrong = (turns_complex(table) - frequencies(table.shape[1])).abs() > 0.01
    if not wrong.any():
        return "none"
    pairs = wrong.all(dim=0)
    if pairs.any():
        return f"pair {int(pairs.int().argmax())}"
    steps = wrong.any(dim=1).nonzero().flatten().tolist()
    return f"row {steps[0] + 1}" if len(steps) > 1 else "row 0" if steps == [0] else f"row {len(table) - 1}"


def culprit_from_one(table: Tensor) -> str:
    kind, _, number = culprit_counts(table).partition(" ")
    return f"{kind} {int(number) + 1}" if number else kind


def culprit_at_zero(table: Tensor) -> str:
    off = (table - sinusoidal_table(range(len(table)), table.shape[1])).abs() > 1e-6
    if not off.any():
        return "none"
    rows = off.all(dim=1).nonzero().flatten().tolist()
    return f"row {rows[0]}" if len(rows) == 1 else f"pair {int(off.any(dim=0).int().argmax()) // 2}"


# pendulums.meet --------------------------------------------------------------------------------
def meet_by_periods(i: int, j: int, d: int) -> float:
    a, b = (2 * math.pi * 10000 ** (2 * k / d) for k in sorted((i, j)))
    return a * b / (b - a)


def meet_signed(i: int, j: int, d: int) -> Tensor:
    omega = frequencies(d)
    return 2 * math.pi / (omega[i] - omega[j])


def meet_half_turn(i: int, j: int, d: int) -> Tensor:
    omega = frequencies(d)
    return math.pi / (omega[i] - omega[j]).abs()


def meet_fast_turn(i: int, j: int, d: int) -> Tensor:
    return 2 * math.pi / frequencies(d)[min(i, j)]


def meet_sum(i: int, j: int, d: int) -> Tensor:
    omega = frequencies(d)
    return 2 * math.pi / (omega[i] + omega[j])


def meet_whole(i: int, j: int, d: int) -> int:
    omega = frequencies(d)
    return math.ceil(2 * math.pi / (omega[i] - omega[j]).abs())


def meet_channels(i: int, j: int, d: int) -> float:
    return 2 * math.pi / abs(10000 ** (-i / d) - 10000 ** (-j / d))


def meet_at_top(i: int, j: int, d: int) -> float:
    a, b = (2 * math.pi / frequencies(d)[k].item() for k in (i, j))
    return float(math.lcm(round(a), round(b)))


def meet_degrees(i: int, j: int, d: int) -> Tensor:
    omega = frequencies(d)
    return 1 / (omega[i] - omega[j]).abs()


# pendulums.moving --------------------------------------------------------------------------------
def moving_tangent(first: Tensor, second: Tensor) -> Tensor:
    omega = frequencies(2 * len(first))
    return (second - first) / omega.sin() + first * (omega / 2).tan()


def moving_root(first: Tensor, second: Tensor) -> Tensor:
    return (1 - first**2).clamp(min=0).sqrt()


def moving_direction(first: Tensor, second: Tensor) -> Tensor:
    return (second - first).sign() * (1 - first**2).clamp(min=0).sqrt()


def moving_difference(first: Tensor, second: Tensor) -> Tensor:
    return (second - first) / frequencies(2 * len(first))


def moving_second(first: Tensor, second: Tensor) -> Tensor:
    omega = frequencies(2 * len(first))
    return (second * omega.cos() - first) / omega.sin()


def moving_half_width(first: Tensor, second: Tensor) -> Tensor:
    omega = 10000.0 ** (-2 * torch.arange(len(first)).double() / len(first))
    return (second - first * omega.cos()) / omega.sin()


def moving_times_omega(first: Tensor, second: Tensor) -> Tensor:
    return frequencies(2 * len(first)) * moving_tangent(first, second)


def moving_minus(first: Tensor, second: Tensor) -> Tensor:
    omega = frequencies(2 * len(first))
    return (second + first * omega.cos()) / omega.sin()


def moving_undivided(first: Tensor, second: Tensor) -> Tensor:
    return second - first * frequencies(2 * len(first)).cos()


# pendulums.bent_hand --------------------------------------------------------------------------------
def bent_trimmed(row: Tensor) -> Tensor:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return off[(off.sum(dim=1) - off.amax(dim=1)).argmin()].argmax()


def bent_complex(row: Tensor) -> int:
    hands = np.angle(row[1::2].numpy() + 1j * row[0::2].numpy())
    omega = frequencies(len(row)).numpy()
    agree = [np.abs(np.exp(1j * m * omega) - np.exp(1j * hands)) < 1e-7 for m in range(1000)]
    return int(np.argmin(max(agree, key=np.sum)))


def bent_nearest(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), len(row))
    m = (table - row).norm(dim=1).argmin()
    return int((table[m] - row).view(-1, 2).norm(dim=1).argmax())


def bent_slowest(row: Tensor) -> int:
    d = len(row)
    m = (torch.atan2(row[-2], row[-1]) / frequencies(d)[-1]).round()
    right = sinusoidal_table([float(m)], d)[0]
    return int((right - row).view(-1, 2).norm(dim=1).argmax())


def bent_channel(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), len(row))
    m = ((table - row).abs() < 1e-9).sum(dim=1).argmax()
    return int((table[m] - row).abs().argmax())


def bent_from_one(row: Tensor) -> int:
    return int(bent_trimmed(row)) + 1


def bent_sixteen(row: Tensor) -> int:
    table = sinusoidal_table(range(1000), 16)[:, : len(row)]
    agree = ((table - row).abs() < 1e-9).view(1000, -1, 2).all(dim=2)
    return int(agree[agree.sum(dim=1).argmax()].int().argmin())


def bent_position(row: Tensor) -> int:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return int((off.sum(dim=1) - off.amax(dim=1)).argmin())


def bent_hundred(row: Tensor) -> int:
    off = (sinusoidal_table(range(100), len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return int(off[(off.sum(dim=1) - off.amax(dim=1)).argmin()].argmax())


def _bent_among(row: Tensor, tokens: range) -> int:
    off = (sinusoidal_table(tokens, len(row)) - row).unflatten(1, (-1, 2)).norm(dim=2)
    return int(off[(off > 1e-6).sum(dim=1).argmin()].argmax())


def bent_not_token_zero(row: Tensor) -> int:
    return _bent_among(row, range(1, 1000))


def bent_not_last_token(row: Tensor) -> int:
    return _bent_among(row, range(999))


def bent_length(row: Tensor) -> int:
    return int((row.view(-1, 2).norm(dim=1) - 1).abs().argmax())


def bent_sines(row: Tensor) -> int:
    off = (sinusoidal_table(range(1000), len(row)) - row).unflatten(1, (-1, 2))[..., 0].abs()
    m = (off < 1e-9).sum(dim=1).argmax()
    return int((off[m] < 1e-9).int().argmax())


# shift.matrix --------------------------------------------------------------------------------
def shift_exponential(offset: float, omega: Tensor) -> Tensor:
    return torch.matrix_exp(offset * torch.kron(omega.double().diag(), torch.tensor([[0.0, -1.0], [1.0, 0.0]]).double()))


def shift_numpy(offset: float, omega: Tensor) -> Any:
    z = np.exp(1j * offset * omega.numpy())
    return np.kron(np.diag(z.real), np.eye(2)) + np.kron(np.diag(z.imag), np.array([[0, -1], [1, 0]]))


def shift_transposed(offset: float, omega: Tensor) -> Tensor:
    return shift_exponential(offset, omega).T


def shift_concatenated(offset: float, omega: Tensor) -> Tensor:
    c, s = (offset * omega).cos().diag(), (offset * omega).sin().diag()
    return torch.cat((torch.cat((c, -s), dim=1), torch.cat((s, c), dim=1)))


def shift_paper_speeds(offset: float, omega: Tensor) -> Tensor:
    return shift_exponential(offset, frequencies(2 * len(omega)))


def shift_whole(offset: float, omega: Tensor) -> Tensor:
    return shift_exponential(int(offset), omega)


def shift_unsigned(offset: float, omega: Tensor) -> Tensor:
    return shift_exponential(abs(offset), omega)


def shift_no_minus(offset: float, omega: Tensor) -> Tensor:
    c, s = (offset * omega).cos(), (offset * omega).sin()
    return torch.block_diag(*(torch.stack((a, b, b, a)).view(2, 2) for a, b in zip(c, s, strict=True)))


def shift_first_pair(offset: float, omega: Tensor) -> Tensor:
    return shift_exponential(offset, omega[:1].expand_as(omega))


def shift_two_pairs(offset: float, omega: Tensor) -> Tensor:
    return torch.block_diag(*(shift_exponential(offset, omega[i : i + 1]) for i in range(2)))


def shift_degrees(offset: float, omega: Tensor) -> Tensor:
    return shift_exponential(offset * 2 * math.pi, omega)


# shift.offset_between --------------------------------------------------------------------------------
def _phases(row_m: Tensor, row_n: Tensor) -> Tensor:
    a, b = (torch.view_as_complex(row.double().view(-1, 2).contiguous()) for row in (row_m, row_n))
    return a * b.conj()


def _fits(row_m: Tensor, row_n: Tensor, omega: Tensor, offsets: Sequence[int]) -> Tensor:
    angles = torch.tensor(list(offsets)).double()[:, None] * omega
    return (_phases(row_m, row_n) * torch.polar(torch.ones_like(angles), -angles)).real.sum(dim=1)


def offset_correlation(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> Tensor:
    return _fits(row_m, row_n, omega, range(-limit, limit + 1)).argmax() - limit


def offset_shifting(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    misfits = {k: (shift_exponential(k, omega) @ row_n - row_m).square().sum().item() for k in range(limit, -limit - 1, -1)}
    return min(misfits, key=misfits.__getitem__)


def offset_reversed(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return -int(offset_correlation(row_m, row_n, omega, limit))


def offset_no_upper_end(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return int(_fits(row_m, row_n, omega, range(-limit, limit)).argmax()) - limit


def offset_forwards(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return int(_fits(row_m, row_n, omega, range(limit + 1)).argmax())


def offset_index(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return int(_fits(row_m, row_n, omega, range(-limit, limit + 1)).argmax())


def offset_slowest(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    i = int(omega.argmin())
    return round(float(_phases(row_m, row_n)[i].angle() / omega[i]))


def offset_one_clock(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return int(offset_correlation(row_m[:2], row_n[:2], omega[:1], limit))


def offset_first_fit(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int | None:
    for k in range(-limit, limit + 1):
        if torch.allclose(shift_exponential(k, omega) @ row_n, row_m, atol=1e-6):
            return k
    return None


def offset_within_a_tenth(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    for k in range(-limit, limit + 1):
        if (shift_exponential(k, omega) @ row_n - row_m).abs().max() < 0.05:
            return k
    return 0


def offset_angle_of_all(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return round(float((_phases(row_m, row_n).angle() / omega).mean()))


def offset_paper_speeds(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return int(offset_correlation(row_m, row_n, frequencies(2 * len(omega)), limit))


def offset_forty(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    return int(offset_correlation(row_m, row_n, omega, 40))


# shift.relative_part --------------------------------------------------------------------------------
def relative_turned(M: Tensor) -> Tensor:
    pairs = M.shape[0] // 2
    J = torch.kron(torch.eye(pairs), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).to(M)
    return (M + J @ M @ J.T) / 2 * torch.kron(torch.eye(pairs), torch.ones(2, 2)).to(M)


def relative_projected(M: Tensor) -> Any:
    given, result = M.numpy(), np.zeros(M.shape)
    for i in range(len(given) // 2):
        for block in (((0, 0, 1), (1, 1, 1)), ((0, 1, 1), (1, 0, -1))):
            basis = np.zeros_like(given)
            for r, c, sign in block:
                basis[2 * i + r, 2 * i + c] = sign / math.sqrt(2)
            result += np.vdot(basis, given) * basis
    return result


def _relative(M: Tensor, a: Callable[[Tensor], Tensor], b: Callable[[Tensor], Tensor]) -> Tensor:
    result = torch.zeros_like(M)
    for i in range(0, len(M), 2):
        block = M[i : i + 2, i : i + 2]
        result[i, i] = result[i + 1, i + 1] = a(block)
        result[i, i + 1], result[i + 1, i] = b(block), -b(block)
    return result


def relative_blocks_only(M: Tensor) -> Tensor:
    return M * torch.kron(torch.eye(len(M) // 2), torch.ones(2, 2)).to(M)


def relative_sign(M: Tensor) -> Tensor:
    return _relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: (m[0, 1] + m[1, 0]) / 2)


def relative_symmetric(M: Tensor) -> Tensor:
    result = relative_blocks_only((M + M.T) / 2)
    mean = (M.diagonal()[0::2] + M.diagonal()[1::2]) / 2
    result.diagonal().copy_(mean.repeat_interleave(2))
    return result


def relative_first_row(M: Tensor) -> Tensor:
    return _relative(M, lambda m: m[0, 0], lambda m: m[0, 1])


def relative_not_halved(M: Tensor) -> Tensor:
    return _relative(M, lambda m: m[0, 0] + m[1, 1], lambda m: m[0, 1] - m[1, 0])


def relative_lower_b(M: Tensor) -> Tensor:
    return _relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: (m[1, 0] - m[0, 1]) / 2)


def relative_toeplitz(M: Tensor) -> Tensor:
    result = torch.zeros_like(M)
    for k in range(1 - len(M), len(M)):
        values = M.diagonal(k)
        result.diagonal(k).copy_(values.mean().expand_as(values))
    return result


def relative_between_pairs(M: Tensor) -> Tensor:
    J = torch.kron(torch.eye(len(M) // 2), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).to(M)
    return (M + J @ M @ J.T) / 2


def relative_no_b(M: Tensor) -> Tensor:
    return _relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: 0 * m[0, 1])


def relative_halves(M: Tensor) -> Tensor:
    p = len(M) // 2
    a, b = (M[:p, :p] + M[p:, p:]).diagonal() / 2, (M[:p, p:] - M[p:, :p]).diagonal() / 2
    return torch.cat((torch.cat((a.diag(), b.diag()), dim=1), torch.cat((-b.diag(), a.diag()), dim=1)))


def relative_one_for_all(M: Tensor) -> Tensor:
    part = relative_turned(M)
    mean = sum(part[i : i + 2, i : i + 2] for i in range(0, len(M), 2)) / (len(M) // 2)
    return torch.block_diag(*[mean] * (len(M) // 2))


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "order.permutation": [permutation_scatter, permutation_compared],
    "order.kind": [kind_many, kind_neighbours],
    "order.who_sees_whom": [sees_numpy, sees_exact],
    "order.orders_apart": [apart_matrix],
    "naive.counts_along": [along_spread, along_other_side],
    "naive.fractions": [fractions_linspace, fractions_numpy],
    "naive.first_return": [return_walk, return_numpy],
    "naive.best_dials": [dials_all_lists, dials_padded],
    "sinusoidal.to_interleaved": [layout_sorted, layout_padded],
    "sinusoidal.turns": [turns_complex, turns_numpy],
    "sinusoidal.culprit": [culprit_leave_one_out, culprit_counts, culprit_first_step],
    "pendulums.meet": [meet_by_periods],
    "pendulums.moving": [moving_tangent],
    "pendulums.bent_hand": [bent_trimmed, bent_complex],
    "shift.matrix": [shift_exponential, shift_numpy],
    "shift.offset_between": [offset_correlation, offset_shifting],
    "shift.relative_part": [relative_turned, relative_projected],
}

WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "order.permutation": {
        "columns of the identity, the inverse": (permutation_columns, "it undoes the order"),
        "rows in the sorted order, the inverse": (permutation_argsort, "it undoes the order"),
        "always three rows": (permutation_three, None),
        "orders counted from 1": (permutation_from_one, None),
        "the order itself in every column": (permutation_rows, None),
        "last row left empty": (permutation_loop_short, None),
    },
    "order.kind": {
        "the two words swapped": (kind_swapped_words, "words have changed places"),
        "never says invariant": (kind_never_invariant, 'You find no function "invariant"'),
        "goes by the shape": (kind_by_shape, None),
        "reverses only": (kind_reversed_only, None),
        "rotates only": (kind_rotates, None),
        "swaps the first two only": (kind_swaps_first_two, "Reorder all of the rows"),
        "to the last digit": (kind_exact, "Too strict"),
        "reorders a result of one row": (kind_crashes, None),
    },
    "order.who_sees_whom": {
        "transposed": (sees_transposed, "Your table is transposed"),
        "no copy": (sees_no_copy, "in a copy"),
        "tokens never put back": (sees_never_put_back, None),
        "zeroes what is zero": (sees_zeroed, None),
        "first number of the output only": (sees_first_number, None),
        "first number of the token only": (sees_plus_one, None),
        "all numbers must change": (sees_all_numbers, None),
        "causal whatever the layer": (sees_causal_always, "ask f, by changing x"),
        "True where nothing changes": (sees_unchanged, "says where nothing changes"),
    },
    "order.orders_apart": {
        "to the last digit": (apart_exact, "differ in the last digit"),
        "counts the orders": (apart_all, "You count the orders"),
        "those that differ from the first": (apart_from_first, None),
        "rotations only": (apart_rotations, None),
        "compares sums": (apart_sums, None),
        "compares with the one before": (apart_consecutive, None),
        "one decimal": (apart_one_decimal, None),
    },
    "naive.counts_along": {
        "texts compared first": (along_texts_first, None),
        "one text": (along_one_text, "texts still may or may not"),
        "first number only": (along_first_number, "compare whole rows"),
        "the two words swapped": (along_swapped, "words have changed places"),
        "takes x off, not its multiple": (along_random, "x itself shows through"),
        "compares what came out of random x": (along_random_kept, "compare what is *added*"),
        "no neither": (along_no_neither, 'You find no layer "neither"'),
        "numbers of one token compared": (along_wide, None),
    },
    "naive.fractions": {
        "counts the columns": (fractions_columns, "You count columns"),
        "divides by L": (fractions_by_length, "L - 1, not L"),
        "divides by the width": (fractions_by_width, "the width of the batch"),
        "padding not zeroed": (fractions_padding_left, "padding has to be 0"),
        "zero by zero": (fractions_zero_by_zero, None),
        "counts from 1": (fractions_from_one, "m counts from 0"),
        "the longest text's length": (fractions_longest, "the longest text's L - 1"),
        "whole division": (fractions_whole, None),
    },
    "naive.first_return": {
        "the product": (math.prod, "That is the product"),
        "the product by the divisor of all": (return_by_gcd_of_all, "With two dials this works"),
        "the greatest common divisor": (return_gcd_wrong, "number divides all of them"),
        "searches to 1000": (return_short_loop, None),
        "position 0": (return_from_zero, "At position 0 they all begin"),
        "first two dials": (return_first_two, "look at two dials only"),
        "any dial at 0": (return_any, "one dial is back"),
        "the sum": (sum, "add the marks up"),
        "the largest dial": (max, "the largest dial is back"),
    },
    "naive.best_dials": {
        "the greatest product": (dials_product, "not the largest product"),
        "binary": (dials_twos, "Dials that share a divisor"),
        "primes, smallest first": (dials_primes, "a prime number of marks"),
        "one dial": (dials_one, "always buy one dial"),
        "two dials at most": (dials_pairs, "two dials at most"),
        "spends all": (dials_exactly, "always spend every mark"),
        "never one dial of all marks": (dials_range_short, None),
        "dials of one mark": (dials_with_one, "2 marks or more"),
        "the rest is bought alone, as the hint says": (dials_rest_alone, None),
        "one franc too dear": (dials_too_dear, "3 marks in all"),
    },
    "sinusoidal.to_interleaved": {
        "half rounded down, last column empty": (layout_floor, None),
        "the other way": (layout_other_way, "the way back"),
        "cosines first": (layout_cosine_first, None),
        "halves in the wrong columns": (layout_odd_cosine_first, None),
        "unchanged": (layout_reshaped, "stand where they stood"),
        "last sine dropped": (layout_drops, None),
        "even widths only": (layout_even_only, None),
        "rows, not columns": (layout_rows, "You reorder the rows"),
    },
    "sinusoidal.turns": {
        "across the seam": (turns_not_wrapped, "crosses the seam"),
        "all positive": (turns_positive, "Between 0 and 2π"),
        "wrong direction": (turns_swapped, "has the other sign"),
        "no direction": (turns_unsigned, "the direction is lost"),
        "arcsine": (turns_arcsine, "a sine cannot tell them"),
        "from row 0": (turns_from_row_zero, "from the first row each time"),
        "concatenated": (turns_halves, "column i + d/2"),
        "the seam from one side": (turns_one_seam, None),
        "half turns taken off": (turns_modulo_pi, None),
    },
    "sinusoidal.culprit": {
        "row 0 taken for row 1": (culprit_no_edges, "no step leads to row 0"),
        "the row before": (culprit_row_short, "where the first wrong step begins"),
        "last row forgotten": (culprit_last_forgotten, None),
        "too coarse": (culprit_coarse, "compare with less tolerance"),
        "counts from 1": (culprit_from_one, None),
        "believes that the rows begin at 0": (culprit_at_zero, "begins at position 0"),
    },
    "pendulums.meet": {
        "signed": (meet_signed, "it is negative"),
        "half a turn": (meet_half_turn, "point in opposite directions"),
        "a turn of the faster hand": (meet_fast_turn, "faster hand is back"),
        "sum of the speeds": (meet_sum, "both run clockwise"),
        "whole tokens": (meet_whole, "Rounded up"),
        "half the exponent": (meet_channels, None),
        "meets at the top": (meet_at_top, None),
        "without 2 pi": (meet_degrees, "one radian ahead"),
    },
    "pendulums.moving": {
        "always positive": (moving_root, "the direction is lost"),
        "moved to the right, moves to the right": (moving_direction, "turns round between the photographs"),
        "the difference": (moving_difference, "the mean velocity"),
        "at the second photograph": (moving_second, "velocity at the second photograph"),
        "half the width": (moving_half_width, None),
        "times omega": (moving_times_omega, "the velocity itself"),
        "plus for minus": (moving_minus, "look at the sign"),
        "not divided by the sine": (moving_undivided, "a factor beside the cosine"),
    },
    "pendulums.bent_hand": {
        "nearest row": (bent_nearest, "look for the nearest row"),
        "slowest hand believed": (bent_slowest, None),
        "column, not clock": (bent_channel, None),
        "counts from 1": (bent_from_one, "count clocks from 1"),
        "always width 16": (bent_sixteen, None),
        "the token": (bent_position, "That is the token"),
        "a hundred tokens": (bent_hundred, None),
        "token 0 left out": (bent_not_token_zero, None),
        "token 999 left out": (bent_not_last_token, None),
        "length of the hand": (bent_length, None),
        "a right clock": (bent_sines, None),
    },
    "shift.matrix": {
        "backwards": (shift_transposed, "moves every row back"),
        "concatenated": (shift_concatenated, "all cosines come first"),
        "the paper's speeds": (shift_paper_speeds, "frequencies of the paper's table"),
        "whole offsets": (shift_whole, "not whole go wrong"),
        "forwards always": (shift_unsigned, "Offsets below 0"),
        "no minus": (shift_no_minus, "needs a minus"),
        "one speed": (shift_first_pair, None),
        "two pairs": (shift_two_pairs, None),
        "turns, not radians": (shift_degrees, "multiplied by 2π"),
    },
    "shift.offset_between": {
        "n - m": (offset_reversed, "sign is the wrong way"),
        "upper end left out": (offset_no_upper_end, "leave out one end"),
        "forwards only": (offset_forwards, "look at offsets from 0"),
        "the index": (offset_index, "they begin at -limit"),
        "slowest clock": (offset_slowest, "You trust one pair"),
        "one clock": (offset_one_clock, "You trust one pair"),
        "exact fit": (offset_first_fit, None),
        "fits within half a tenth": (offset_within_a_tenth, None),
        "mean over the clocks": (offset_angle_of_all, "take the mean"),
        "the paper's speeds": (offset_paper_speeds, None),
        "limit always 40": (offset_forty, None),
    },
    "shift.relative_part": {
        "blocks as they are": (relative_blocks_only, "as they were in M"),
        "b with the wrong sign": (relative_sign, "forget a minus"),
        "symmetric": (relative_symmetric, "Your blocks are symmetric"),
        "one of two": (relative_first_row, "upper row of each block"),
        "not halved": (relative_not_halved, "Twice too large"),
        "b upside down": (relative_lower_b, "go the wrong way round"),
        "diagonals averaged": (relative_toeplitz, None),
        "between pairs too": (relative_between_pairs, None),
        "no b": (relative_no_b, "Only the scalings"),
        "concatenated": (relative_halves, "columns i and i + d/2"),
        "one block for all pairs": (relative_one_for_all, "one turn for all pairs"),
    },
}
