"""Answers to the exercises on layers that differ."""

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tests.answers import blind

Layer = Callable[[Tensor], Tensor]

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────


def reach_downwards(windows: list[int | None], m: int) -> int:
    """From the last layer down, the first position that matters so far."""
    first = m
    for w in reversed(windows):
        first = 0 if w is None else max(0, first - w + 1)
    return m - first


def reach_by_masks(windows: list[int | None], m: int) -> Any:
    """Products of masks: what each token can depend on."""
    q, k = np.arange(m + 1)[:, None], np.arange(m + 1)
    known = np.eye(m + 1, dtype=bool)
    for w in windows:
        seen = (k <= q) & (q - k < (w or m + 1))
        known = (seen.astype(float) @ known) > 0
    return m - known[m].argmax()


def reach_with_infinity(windows: list[int | None], m: int) -> float:
    return min(m, sum(math.inf if w is None else w - 1 for w in windows))


# ── exercise 1 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def by_vectors(m: int, n: int, w: int) -> Any:
    """Tokens are columns of the identity matrix."""
    eye = np.eye(max(m, n) + 1)
    a, b = (eye[max(at - w + 1, 0) : at + 1].mean(axis=0) for at in (m, n))
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def by_sets(m: int, n: int, w: int) -> float:
    a, b = ({*range(max(0, at + 1 - w), at + 1)} for at in (m, n))
    return len(a & b) / (len(a) * len(b)) ** 0.5


def by_torch(m: int, n: int, w: int) -> Tensor:
    rows = torch.zeros(2, max(m, n) + 1)
    for row, at in zip(rows, (m, n), strict=True):
        row[max(at - w + 1, 0) : at + 1] = 1
    return torch.cosine_similarity(rows[0], rows[1], dim=0)


def without_cut(m: int, n: int, w: int) -> float:
    return max(w - abs(m - n), 0) / w


def negative_start(m: int, n: int, w: int) -> Any:
    """Python counts a negative start from the end."""
    eye = np.eye(max(m, n) + 1)
    a, b = (eye[at - w + 1 : at + 1].sum(axis=0) for at in (m, n))
    return a @ b / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-9)


# ── exercise 2 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def one_by_one(num_layers: int, every: int, w: int, length: int) -> int:
    keys = 0
    for layer in range(1, num_layers + 1):
        keys += length if layer % every == 0 else min(w, length)
    return keys


def by_numpy(num_layers: int, every: int, w: int, length: int) -> Any:
    full = np.arange(num_layers) % every == every - 1
    return np.where(full, length, min(w, length)).sum()


def by_slices(num_layers: int, every: int, w: int, length: int) -> float:
    kept = [min(w, length)] * num_layers
    kept[every - 1 :: every] = [length] * len(kept[every - 1 :: every])
    return float(sum(kept))


def counted(layer: Callable[[int, int], bool], keys: Callable[[int, int], int] = min) -> Callable[[int, int, int, int], int]:
    """With layers counted from 0."""
    return lambda layers, every, w, length: sum(length if layer(i, every) else keys(w, length) for i in range(layers))


# ── exercise 3 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def changed_at_random(f: Layer, x: Tensor) -> int:
    last = f(x)[-1]
    for token in range(len(x)):  # from the farthest
        other = x.clone()
        other[token] = torch.randn(x.shape[1], dtype=x.dtype)
        if (f(other)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - token
    return 0


def by_jacobian(f: Layer, x: Tensor) -> Any:
    jacobian = torch.autograd.functional.jacobian(lambda given: f(given)[-1], x)
    counts = jacobian.abs().amax(dim=(0, 2)) > 1e-10
    return len(x) - 1 - counts.nonzero().min()


def replaced_by_ones(f: Layer, x: Tensor) -> int:
    """Once its mean is subtracted, a token of ones is zero, which a token may have been before."""
    far = [0]
    for back in range(len(x)):
        other = torch.cat((x[: len(x) - 1 - back], torch.ones(1, x.shape[1], dtype=x.dtype), x[len(x) - back :]))
        if not torch.equal(f(other)[-1], f(x)[-1]):
            far.append(back)
    return max(far)


def all_before(f: Layer, x: Tensor) -> int:
    """Whether anything up to a token matters, by bisection."""
    low, high = 0, len(x) - 1  # the farthest that matters is between them, counted from the beginning
    noise = torch.randn_like(x)
    while low < high:
        middle = (low + high) // 2
        other = x.clone()
        other[: middle + 1] += noise[: middle + 1]
        if (f(other)[-1] - f(x)[-1]).abs().max() > 1e-10:
            high = middle
        else:
            low = middle + 1
    return len(x) - 1 - low


def perturbed(
    put: Callable[[Tensor], Tensor], said: Callable[[list[int], int], int] = lambda backs, size: max(backs, default=0),
    same: Callable[[Tensor, Tensor], bool] = torch.equal,
) -> Callable[[Layer, Tensor], int]:  # fmt: skip
    """What an answer says of all tokens whose change makes a difference."""

    def answer(f: Layer, x: Tensor) -> int:
        backs = []
        for back in range(len(x)):
            other = x.clone()
            other[-1 - back] = put(other[-1 - back])
            if not same(f(other)[-1], f(x)[-1]):
                backs.append(back)
        return said(backs, len(x))

    return answer


def nearly(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-10, rtol=0)


def noisy(token: Tensor) -> Tensor:
    return token + torch.linspace(-1, 2, len(token), dtype=token.dtype)


def in_place(f: Layer, x: Tensor) -> int:
    last = f(x)[-1]
    for token in range(len(x)):
        x[token] += torch.randn(x.shape[1], dtype=x.dtype)
        if (f(x)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - token
    return 0


def until_it_stops(f: Layer, x: Tensor) -> int:
    back = 0
    while back < len(x):
        other = x.clone()
        other[-1 - back] = noisy(other[-1 - back])
        if torch.equal(f(other)[-1], f(x)[-1]):
            break
        back += 1
    return max(back - 1, 0)


def gradient_of_sum(f: Layer, x: Tensor) -> int:
    x = x.clone().requires_grad_()
    f(x)[-1].sum().backward()
    assert x.grad is not None
    rows = (x.grad.abs().sum(dim=1) > 1e-10).nonzero()
    return len(x) - 1 - int(rows.min()) if len(rows) else 0


def by_shortening(f: Layer, x: Tensor) -> int:
    """Leaves out the beginning of the text, but most of these functions take texts of only one length."""
    return next(n for n in range(len(x)) if torch.allclose(f(x[len(x) - 1 - n :])[-1], f(x)[-1]))


# ── exercise 4 ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_by_trying(num_layers: int, length: int, budget: int) -> list[int]:
    plan = [8] * num_layers
    for layer in range(num_layers - 1, 0, -1):
        if sum(plan) - 8 + length <= budget:
            plan[layer] = length
    windows = [layer for layer in range(num_layers) if plan[layer] < length]
    while sum(plan) + len(windows) <= budget and plan[windows[0]] < length - 1:
        for layer in windows:
            plan[layer] += 1
    return plan


def plan_in_turns(num_layers: int, length: int, budget: int) -> Any:
    """Layers that see everything stand between the others; the last windows take what doesn't divide evenly."""
    full = min((budget - 8 * num_layers) // (length - 8), num_layers - 1)
    rest = num_layers - full
    left = budget - full * length
    windows = [min(left * (i + 1) // rest - left * i // rest, length - 1) for i in range(rest)]
    everything = [length] * full
    mixed = []
    while windows or everything:
        if windows:
            mixed.append(windows.pop(0))
        if everything:
            mixed.append(everything.pop())
    return np.array(mixed)


def plan_from_the_most(num_layers: int, length: int, budget: int) -> list[int]:
    for full in range(num_layers - 1, -1, -1):
        rest = num_layers - full
        w = min((budget - full * length) // rest, length - 1)
        if w >= 8:
            return [w] + [length] * full + [w] * (rest - 1)
    return []


def patterned(num_layers: int, length: int, budget: int) -> list[int]:
    """Every sixth layer sees everything, whatever the budget."""
    return [length if layer % 6 == 5 else 16 for layer in range(num_layers)]


def planned(change: Callable[[list[int], int, int], list[Any]]) -> Callable[[int, int, int], list[Any]]:
    return lambda layers, length, budget: change(plan_by_trying(layers, length, budget), length, budget)


# ── by people who hadn't read the checks ──────────────────────────────────────────────────────────────────────────────────────


def overlap_formula(m: Any, n: Any, w: Any) -> Any:
    if n > m:
        return overlap_formula(n, m, w)
    both = max(0, n - max(0, m - w + 1) + 1)
    return torch.tensor(both / math.sqrt(min(m + 1, w)) / math.sqrt(min(n + 1, w)))  # 32 bits, 0-d


def overlap_cosine_similarity(m: Any, n: Any, w: Any) -> Any:
    eye = torch.eye(max(m, n) + 1)
    means = [eye[max(0, p + 1 - w) : p + 1].mean(dim=0) for p in (m, n)]
    return functional.cosine_similarity(means[0], means[1], dim=0)


def overlap_row(m: Any, n: Any, w: Any) -> Any:  # one number, but with an axis
    eye = torch.eye(max(m, n) + 1, dtype=torch.float64)
    means = [eye[max(0, p + 1 - w) : p + 1].mean(dim=0, keepdim=True) for p in (m, n)]
    return functional.cosine_similarity(means[0], means[1])


def overlap_everything(m: Any, n: Any, w: Any) -> Any:
    return math.sqrt((min(m, n) + 1) / (max(m, n) + 1))


def overlap_before_the_text(m: Any, n: Any, w: Any) -> Any:
    one, other = set(range(m - w + 1, m + 1)), set(range(n - w + 1, n + 1))
    return len(one & other) / (len(one) * len(other)) ** 0.5


def overlap_count(m: Any, n: Any, w: Any) -> Any:
    return len(set(range(max(0, m - w + 1), m + 1)) & set(range(max(0, n - w + 1), n + 1)))


def overlap_larger_window(m: Any, n: Any, w: Any) -> Any:
    one = set(range(max(0, m - w + 1), m + 1))
    other = set(range(max(0, n - w + 1), n + 1))
    return len(one & other) / max(len(one), len(other))


def overlap_first_is_later(m: Any, n: Any, w: Any) -> Any:
    both = max(0, n - max(0, m - w + 1) + 1)
    return both / math.sqrt(min(m + 1, w) * min(n + 1, w))


def overlap_negative(m: Any, n: Any, w: Any) -> Any:
    m, n = max(m, n), min(m, n)
    both = n - max(0, m - w + 1) + 1
    return both / math.sqrt(min(m + 1, w) * min(n + 1, w))


def overlap_without_itself(m: Any, n: Any, w: Any) -> Any:
    one, other = set(range(max(0, m - w), m)), set(range(max(0, n - w), n))
    return len(one & other) / (len(one) * len(other)) ** 0.5 if one and other else 0.0


def cache_loop(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    total = 0
    for layer in range(1, num_layers + 1):
        if layer % every == 0:
            total += length
        else:
            total += min(w, length)
    return total


def cache_formula(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    full = num_layers // every
    return float(full * length + (num_layers - full) * min(w, length))


def cache_numpy(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    kept = np.full(num_layers, w)
    kept[every - 1 :: every] = length
    return np.minimum(kept, length).sum()


def cache_recursion(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    if num_layers == 0:
        return torch.tensor(0)
    here = length if num_layers % every == 0 else min(w, length)
    return cache_recursion(num_layers - 1, every, w, length) + here


def cache_from_zero(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == 0 else min(w, length) for layer in range(num_layers))


def cache_short_text(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == 0 else w for layer in range(1, num_layers + 1))


def cache_whole_groups(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return num_layers // every * (length + (every - 1) * min(w, length))


def cache_rounded_up(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    full = math.ceil(num_layers / every)
    return full * length + (num_layers - full) * min(w, length)


def cache_fraction(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    full = num_layers / every
    return full * length + (num_layers - full) * min(w, length)


def cache_one_less(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return cache_loop(num_layers, every, w - 1, length)


def cache_off_by_one_layer(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == 0 else min(w, length) for layer in range(1, num_layers))


def cache_max(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == 0 else max(w, length) for layer in range(1, num_layers + 1))


def looks_bisection(f: Any, x: Any) -> Any:
    last, length = f(x)[-1], len(x)
    noise = torch.randn_like(x)
    low, high = 0, length - 1  # the farthest token is in low ... high
    while low < high:
        middle = (low + high) // 2
        keep = torch.arange(length) > middle
        changed = f(torch.where(keep[:, None], x, x + noise))[-1]
        if ((changed - last).abs() > 1e-10).any():
            high = middle
        else:
            low = middle + 1
    return torch.tensor(length - 1 - low)


def looks_numpy(f: Any, x: Any) -> Any:
    rng = np.random.default_rng(1)
    table, before = x.numpy().copy(), f(x).numpy()[-1]
    depends = [0]
    for back in range(1, len(table)):
        changed = table.copy()
        changed[-1 - back] = rng.normal(size=table.shape[1])
        if np.abs(f(torch.from_numpy(changed)).numpy()[-1] - before).max() > 1e-10:
            depends.append(back)
    return np.max(depends)


def looks_accumulating(f: Any, x: Any) -> Any:  # the changes pile up, which does no harm
    changed, last = x.clone(), f(x)[-1]
    n = 0
    while n < len(x) - 1:
        changed[n] = 10 * torch.rand(x.shape[1], dtype=x.dtype)
        if not torch.allclose(f(changed)[-1], last, rtol=0, atol=1e-10):
            break
        n += 1
    return float(len(x) - n - 1)


def looks_count(f: Any, x: Any) -> Any:
    last, count = f(x)[-1], 0
    for n in range(len(x) - 1):
        other = x.clone()
        other[n] += torch.randn(x.shape[1], dtype=x.dtype)
        count += int((f(other)[-1] - last).abs().max() > 1e-10)
    return count


def looks_allclose(f: Any, x: Any) -> Any:
    last = f(x)[-1]
    for n in range(len(x)):
        other = x.clone()
        other[n] += torch.randn(x.shape[1], dtype=x.dtype)
        if not torch.allclose(f(other)[-1], last):
            return len(x) - 1 - n
    return 0


def looks_nothing_found(f: Any, x: Any) -> Any:
    last = f(x)[-1]
    for n in range(len(x) - 1):
        other = x.clone()
        other[n] += torch.randn(x.shape[1], dtype=x.dtype)
        if (f(other)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - n
    return None


def looks_small_change(f: Any, x: Any) -> Any:
    last = f(x)[-1]
    for n in range(len(x)):
        other = x.clone()
        other[n] += 1e-6 * torch.randn(x.shape[1], dtype=x.dtype)
        if (f(other)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - n
    return 0


def looks_same_change_everywhere(f: Any, x: Any) -> Any:  # every change sums to zero in the last row
    last = f(x)[-1]
    for n in range(len(x)):
        other = x.clone()
        other[n, 0] += 1
        if (f(other)[-1] - last).sum().abs() > 1e-10:
            return len(x) - 1 - n
    return 0


def looks_one_position_short(f: Any, x: Any) -> Any:  # never tries the first token
    last = f(x)[-1]
    for n in range(1, len(x)):
        other = x.clone()
        other[n] += torch.randn(x.shape[1], dtype=x.dtype)
        if (f(other)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - n
    return 0


def plan_hint(num_layers: Any, length: Any, budget: Any) -> Any:
    full = min(num_layers - 1, (budget - 8 * num_layers) // (length - 8))
    rest = num_layers - full
    w = min((budget - full * length) // rest, length - 1)
    return [w] * rest + [length] * full


def plan_search(num_layers: Any, length: Any, budget: Any) -> Any:
    for full in range(num_layers - 1, 0, -1):
        for w in range(length - 1, 7, -1):
            if full * length + (num_layers - full) * w <= budget:
                windows = [w] * num_layers
                for at in range(1, full + 1):  # right above the first layer
                    windows[at] = length
                return torch.tensor(windows)
    return None


def plan_spends_all(num_layers: Any, length: Any, budget: Any) -> Any:
    windows, full = np.full(num_layers, 8), 0
    while full < num_layers - 1 and windows.sum() + length - 8 <= budget:
        full += 1
        windows[-full] = length
    part = windows[: num_layers - full]  # a view
    while windows.sum() < budget and part.min() < length - 1:
        more = max(1, (budget - windows.sum()) // len(part))
        part[part.argmin()] += min(more, length - 1 - part.min()) if len(part) == 1 else 1
    return windows


def plan_rest_to_last(num_layers: Any, length: Any, budget: Any) -> Any:  # floats, and uneven windows
    full = 0
    while full + 1 < num_layers and (full + 1) * length + 8 * (num_layers - full - 1) <= budget:
        full += 1
    few = num_layers - full
    low, spare = divmod(budget - full * length, few)
    w = min(low, length - 1)
    last = min(w + spare, length - 1)
    return tuple(float(x) for x in [last] + [length] * full + [w] * (few - 1))


def plan_all_full(num_layers: Any, length: Any, budget: Any) -> Any:
    full = min(num_layers, (budget - 8 * num_layers) // (length - 8))
    rest = num_layers - full
    return [min((budget - full * length) // rest, length)] * rest + [length] * full if rest else [length] * full


def plan_forgets_windows(num_layers: Any, length: Any, budget: Any) -> Any:
    full = min(num_layers - 1, budget // length)
    rest = num_layers - full
    return [min(max(8, (budget - full * length) // rest), length - 1)] * rest + [length] * full


def plan_cost_of_length(num_layers: Any, length: Any, budget: Any) -> Any:  # a full layer costs length - 8
    full = min(num_layers - 1, (budget - 8 * num_layers) // length)
    rest = num_layers - full
    return [min((budget - full * length) // rest, length - 1)] * rest + [length] * full


def plan_rounds_up(num_layers: Any, length: Any, budget: Any) -> Any:
    full = min(num_layers - 1, (budget - 8 * num_layers) // (length - 8))
    rest = num_layers - full
    return [min(math.ceil((budget - full * length) / rest), length - 1)] * rest + [length] * full


def plan_none(num_layers: Any, length: Any, budget: Any) -> Any:  # None for "everything", as in the chapter
    return [None if w == length else w for w in plan_hint(num_layers, length, budget)]


def plan_counts(num_layers: Any, length: Any, budget: Any) -> Any:
    windows = plan_hint(num_layers, length, budget)
    return windows.count(length), min(windows)


def plan_divides_by_all(num_layers: Any, length: Any, budget: Any) -> Any:
    full = min(num_layers - 1, (budget - 8 * num_layers) // (length - 8))
    w = min(max(8, (budget - full * length) // num_layers), length - 1)
    return [w] * (num_layers - full) + [length] * full


def reach_sum(windows: Any, m: Any) -> Any:
    back = 0
    for w in windows:
        if w is None:
            return m
        back += w - 1
    return min(back, m)


def reach_recursion(windows: Any, m: Any) -> Any:
    if len(windows) == 0 or m == 0:
        return 0
    w = windows[-1]
    first = 0 if w is None else max(0, m - w + 1)
    return m - first + reach_recursion(windows[:-1], first)


def reach_none_at_bottom(windows: Any, m: Any) -> Any:
    if windows[0] is None:
        return m
    return min(m, sum(w - 1 for w in windows if w is not None))


def reach_product(windows: Any, m: Any) -> Any:
    return m if None in windows else min(m, math.prod(windows) - 1)


def reach_m_plus_one(windows: Any, m: Any) -> Any:
    return m + 1 if None in windows else min(m + 1, sum(w - 1 for w in windows))


def reach_changes_windows(windows: Any, m: Any) -> Any:
    back = 0
    while windows:
        w = windows.pop()
        back += m if w is None else w - 1
    return min(back, m)


def looks_arange(f: Any, x: Any) -> Any:  # no chance involved: adds 1, 2, 3, ...
    last = f(x)[-1]
    for back in range(len(x) - 1, 0, -1):
        other = x.clone()
        other[-1 - back] += torch.arange(1, x.shape[1] + 1)
        if bool(((f(other)[-1] - last).abs() > 1e-10).any()):
            return back
    return 0


def looks_one_channel(f: Any, x: Any) -> Any:  # a function may ignore the first channel
    last = f(x)[-1]
    for n in range(len(x)):
        other = x.clone()
        other[n, 0] += 1
        if (f(other)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - n
    return 0


def looks_ones(f: Any, x: Any) -> Any:  # replaces tokens by ones; without the mean, that's zero
    last = f(x)[-1]
    for n in range(len(x)):
        other = x.clone()
        other[n] = 1
        if (f(other)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - n
    return 0


def looks_neighbour(f: Any, x: Any) -> Any:  # copies the next token, which may be equal
    last = f(x)[-1]
    for n in range(len(x) - 1):
        other = x.clone()
        other[n] = x[n + 1]
        if (f(other)[-1] - last).abs().max() > 1e-10:
            return len(x) - 1 - n
    return 0


def cache_other_remainder(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == every - 1 else min(w, length) for layer in range(1, num_layers + 1))


def plan_list_of_tensors(num_layers: Any, length: Any, budget: Any) -> Any:
    return [torch.tensor(w) if i % 2 else np.int64(w) for i, w in enumerate(plan_hint(num_layers, length, budget))]


def plan_only_if_equal(num_layers: Any, length: Any, budget: Any) -> Any:  # a window may be wider than the text
    full = min(num_layers - 1, (budget - 8 * num_layers) // (length - 8))
    rest = num_layers - full
    w = (budget - full * length) // rest
    return [length - 1 if w == length else w] * rest + [length] * full


def plan_too_narrow(num_layers: Any, length: Any, budget: Any) -> Any:  # windows below 8
    full = min(num_layers - 1, budget // length)
    rest = num_layers - full
    return [min((budget - full * length) // rest, length - 1)] * rest + [length] * full


def plan_one_less(num_layers: Any, length: Any, budget: Any) -> Any:  # w - 1 keys for each window
    windows = plan_hint(num_layers, length, budget)
    return [w if w == length else max(8, w - 1) for w in windows]


def reach_until_none(windows: Any, m: Any) -> Any:  # stops at the first layer that sees everything
    back = 0
    for w in windows:
        if w is None:
            break
        back += w - 1
    return min(back, m)


# ── the bank ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

RIGHT: dict[str, list[Any]] = {
    "layers.reach": [reach_downwards, reach_by_masks, reach_with_infinity,
        lambda windows, m: m if any(w is None for w in windows) else min(sum(windows) - len(windows), m),
        *blind(reach_sum, reach_recursion),
    ],
    "layers.overlap": [by_vectors, by_sets, by_torch,
        *blind(overlap_formula, overlap_row, overlap_cosine_similarity),
    ],
    "layers.cache_size": [one_by_one, by_numpy, by_slices,
        *blind(cache_formula, cache_numpy, cache_recursion),
    ],
    "layers.looks_back": [changed_at_random, by_jacobian, all_before, perturbed(noisy),
        *blind(looks_bisection, looks_numpy, looks_accumulating, looks_arange),
    ],
    "layers.plan": [plan_by_trying, plan_in_turns, plan_from_the_most,
        lambda *case: torch.tensor(plan_by_trying(*case)),
        *blind(plan_search, plan_spends_all, plan_rest_to_last, plan_list_of_tensors),
    ],
}  # fmt: skip

WRONG: dict[str, list[Any]] = {
    "layers.reach": [
        ("sum of the windows", lambda windows, m: m if None in windows else min(m, sum(windows)), "the query's own token"),
        ("sum, minus one", lambda windows, m: m if None in windows else min(m, sum(windows) - 1), "only once"),
        ("not limited", lambda windows, m: m if None in windows else sum(w - 1 for w in windows), "beyond the beginning"),
        ("None left out", lambda windows, m: min(m, sum(w - 1 for w in windows if w)), "One such layer is enough"),
        ("infinity", lambda windows, m: math.inf if None in windows else min(m, sum(w - 1 for w in windows)), "returned inf"),
        ("None forgotten", lambda windows, m: min(m, sum(w - 1 for w in windows)), "raised TypeError"),
        ("the widest layer", lambda windows, m: m if None in windows else min(m, max(windows) - 1), "single layer"),
        ("the last layer", lambda windows, m: m if None in windows else min(m, windows[-1] - 1), "single layer"),
        ("multiplied", lambda windows, m: m if None in windows else min(m, math.prod(windows)), "multiply"),
        ("times", lambda windows, m: m if None in windows else min(m, len(windows) * (windows[0] - 1)), "one window"),
        ("position", lambda windows, m: 0 if None in windows else max(0, m - sum(w - 1 for w in windows)), "first position"),
        ("how many", lambda windows, m: 1 + reach_downwards(windows, m), "how many tokens the output depends on"),
        ("None as the end", lambda windows, m: m if windows[-1] is None else min(m, sum(w - 1 for w in windows if w)),
            "wherever it is"),
        ("running sums", lambda windows, m: m if None in windows else [*accumulate(w - 1 for w in windows)],
            "returned a list"),
        ("doubled", lambda windows, m: 2 * reach_downwards(windows, m), "2 times"),
        *blind(
            ("sees everything at the bottom", reach_none_at_bottom, "wherever it is"),
            ("m + 1", reach_m_plus_one, "your number is one too large"),
            ("empties the list", reach_changes_windows, "writes into its arguments"),
            ("stops at None", reach_until_none, "One such layer is enough"),
            ("product", reach_product, "You multiply the windows"),
        ),
    ],
    "layers.overlap": [
        ("full windows", without_cut, "every window as full"),
        ("a negative start", negative_start, "of 14 cases"),
        ("share of the later", lambda m, n, w: len({*range(max(0, m - w + 1), m + 1)} & {*range(max(0, n - w + 1), n + 1)})
            / min(w, m + 1), "only one of the two windows"),
        ("Jaccard", lambda m, n, w: (lambda a, b: len(a & b) / len(a | b))(
            {*range(max(0, m - w + 1), m + 1)}, {*range(max(0, n - w + 1), n + 1)}), "in either of them"),
        ("dot product of means", lambda m, n, w: by_sets(m, n, w) / math.sqrt(min(w, m + 1) * min(w, n + 1)), "dot product"),
        ("squared", lambda m, n, w: by_sets(m, n, w) ** 2, "square of the cosine"),
        ("no zero", lambda m, n, w: 1 - abs(m - n) / w, "negative"),
        ("w before the token", lambda m, n, w: by_sets(m, n, w + 1), "one token too many"),
        ("distance", lambda m, n, w: float(abs(m - n)), None),
        ("degrees", lambda m, n, w: math.degrees(math.acos(min(by_sets(m, n, w), 1))), None),
        ("the angle", lambda m, n, w: math.acos(min(by_sets(m, n, w), 1)), "the angle"),
        ("one minus", lambda m, n, w: 1 - by_sets(m, n, w), "1 minus"),
        ("only backwards", lambda m, n, w: by_sets(m, n, w) if m >= n else 0.0, "their order"),
        ("rounded", lambda m, n, w: round(by_sets(m, n, w), 2), "rounded to 2 decimals"),
        *blind(
            ("everything so far", overlap_everything, "a window has at most w tokens"),
            ("before the text", overlap_before_the_text, "every window as full"),
            ("count", overlap_count, "how many tokens are in both windows"),
            ("larger window", overlap_larger_window, "only one of the two windows"),
            ("the first is later", overlap_first_is_later, "only if m is the later token"),
            ("below zero", overlap_negative, "becomes negative"),
            ("without itself", overlap_without_itself, "one token too few"),
        ),
    ],
    "layers.cache_size": [
        ("from 0", counted(lambda i, every: i % every == 0), "counted from 1"),
        ("exchanged", counted(lambda i, every: (i + 1) % every != 0), "exchanged"),
        ("not limited", counted(lambda i, every: (i + 1) % every == 0, lambda w, length: w), "more keys than the text"),
        ("every plus one", counted(lambda i, every: (i + 1) % (every + 1) == 0), "n - 1 windows before"),
        ("a fraction of layers", lambda layers, every, w, length: layers / every * length + (layers - layers / every)
            * min(w, length), "should return a whole number"),
        ("a share", lambda layers, every, w, length: one_by_one(layers, every, w, length) / (layers * length),
            "should return a whole number"),
        ("everything", lambda layers, every, w, length: layers * length, "only the last w keys"),
        ("windows", lambda layers, every, w, length: layers * min(w, length), "every layer a window"),
        ("both in one layer", lambda layers, every, w, length: layers * min(w, length) + layers // every * length,
            "have no window"),
        ("keys and values", lambda *case: 2 * one_by_one(*case), "Count only the keys"),
        ("a list", lambda layers, every, w, length: [min(w, length)] * layers, "it should return one number"),
        ("the last one too", counted(lambda i, every: (i + 1) % every == 0 or i == 0), None),
        *blind(
            ("range from 0", cache_from_zero, "counted from 1"),
            ("whole groups", cache_whole_groups, "after the last group"),
            ("rounded up", cache_rounded_up, "round the number of such layers up"),
            ("divided by /", cache_fraction, "// rounds down"),
            ("w less one", cache_one_less, "leave the token itself out"),
            ("last layer missing", cache_off_by_one_layer, "leave out the last layer"),
            ("max", cache_max, "take the smaller number"),
            ("another remainder", cache_other_remainder, "one layer too early"),
            ("short text", cache_short_text, "more keys than the text"),
        ),
    ],
    "layers.looks_back": [
        ("zeros", perturbed(torch.zeros_like), "token of zeros as it is"),
        ("sign", perturbed(torch.neg), "token of zeros as it is"),
        ("plus one", perturbed(lambda token: token + 1, same=nearly), "same number to all channels"),
        ("doubled", perturbed(lambda token: 2 * token), "multiply a token"),
        ("counted", perturbed(noisy, lambda backs, size: len(backs)), "count the tokens"),
        ("position", perturbed(noisy, lambda backs, size: size - 1 - max(backs, default=0)), "return the position"),
        ("nearest", perturbed(noisy, lambda backs, size: min(backs, default=0)), "the nearest token"),
        ("until it stops", until_it_stops, "the first token that makes no difference"),
        ("replaced by ones", replaced_by_ones, "whose channels are all equal"),
        ("coarse", perturbed(noisy, same=lambda a, b: torch.allclose(a, b, atol=0.01)), "counts for little"),
        ("gradient of the sum", gradient_of_sum, "always 0"),
        ("in place", in_place, "writes into its arguments"),
        ("one too many", perturbed(noisy, lambda backs, size: max(backs, default=0) + 1), "one too large"),
        ("shortened", by_shortening, "raised RuntimeError"),
        ("always the same", lambda f, x: len(x) - 1, "whole text for every function"),
        ("called once", lambda f, x: f(x), "numbers, but it should return one number"),
        *blind(
            ("allclose", looks_allclose, "Is your tolerance larger"),
            ("None if nothing is found", looks_nothing_found, "Is a `return` missing?"),
            ("small change", looks_small_change, "change the tokens by so little"),
            ("sum of the output", looks_same_change_everywhere, "outputs whose mean is subtracted"),
            ("not the first", looks_one_position_short, "never change the first token"),
            ("ones", looks_ones, "whose channels are all equal"),
            ("neighbour", looks_neighbour, "the two may be equal"),
            ("one channel", looks_one_channel, "may ignore this channel"),
            ("count of others", looks_count, "count the tokens"),
        ),
    ],
    "layers.plan": [
        ("every sixth", patterned, "keep"),
        ("one layer", lambda layers, length, budget: [8] * (layers - 1) + [length], "don't use what is left"),
        ("equal shares", lambda layers, length, budget: [min(budget // layers, length)] * layers, None),
        ("the first layer", planned(lambda plan, length, budget: plan[::-1]), "first layer"),
        ("too much", planned(lambda plan, length, budget: [*plan[:-1], budget]), "because the text has only"),
        ("narrow windows", planned(lambda plan, length, budget: [w if w == length else 8 for w in plan]),
            "narrower than they could be"),
        ("over the budget", planned(lambda plan, length, budget: [plan[0] + budget % 8 + 1, *plan[1:]]), "the budget is"),
        ("one layer missing", planned(lambda plan, length, budget: plan[1:]), "one window for each"),
        ("a narrow window", lambda layers, length, budget: [budget - (layers - 1) * length] + [length] * (layers - 1),
            "at least 8"),
        ("a fraction", planned(lambda plan, length, budget: [plan[0] - 0.5, *plan[1:]]), "whole number"),
        ("None", planned(lambda plan, length, budget: [None if w == length else w for w in plan]), "rather than None"),
        ("rest to the first window", lambda layers, length, budget: [
            min(length - 1, budget - 8 * (layers - 2) - length), *[8] * (layers - 2), length], None),
        ("unfair", planned(lambda plan, length, budget: [plan[0] + 1, *plan[1:-1], plan[-1]][: len(plan)]), None),
        *blind(
            ("all layers", plan_all_full, "The first layer should have a window"),
            ("windows forgotten", plan_forgets_windows, "but the budget is"),
            ("windows twice", plan_cost_of_length, "have no window besides"),
            ("rounded up", plan_rounds_up, "but the budget is"),
            ("None for everything", plan_none, "write `length` rather than None"),
            ("two counts", plan_counts, "one window for each"),
            ("divided by all layers", plan_divides_by_all, "The narrowest window has"),
            ("wider than the text", plan_only_if_equal, "No layer can keep"),
            ("too narrow", plan_too_narrow, "at least 8"),
            ("one less", plan_one_less, "The narrowest window has"),
        ),
    ],
}  # fmt: skip
