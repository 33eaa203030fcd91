"""Answers to the exercises on layers that differ."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tests.answers import right, wrong

Layer = Callable[[Tensor], Tensor]


@right("layers.reach")
def reach_with_infinity(windows: list[int | None], m: int) -> float:
    return min(m, sum(math.inf if w is None else w - 1 for w in windows))


@right("layers.reach")
def reach_right(windows: Any, m: Any) -> Any:
    return m if any(w is None for w in windows) else min(sum(windows) - len(windows), m)


@right("layers.reach")
def reach_recursion(windows: Any, m: Any) -> Any:
    if len(windows) == 0 or m == 0:
        return 0
    w = windows[-1]
    first = 0 if w is None else max(0, m - w + 1)
    return m - first + reach_recursion(windows[:-1], first)


@wrong("layers.reach", "that of a single layer")
def reach_widest_window(windows: Any, m: Any) -> Any:
    return m if None in windows else min(m, max(windows) - 1)


@wrong("layers.reach", "beyond the beginning of the text")
def reach_endless(windows: Any, m: Any) -> Any:
    return m if None in windows else sum(windows) - len(windows)


@wrong("layers.reach", "wherever it is")
def reach_none_at_bottom(windows: Any, m: Any) -> Any:
    if windows[0] is None:
        return m
    return min(m, sum(w - 1 for w in windows if w is not None))


@wrong("layers.reach", "add these steps up")
def reach_product(windows: Any, m: Any) -> Any:
    return m if None in windows else min(m, math.prod(windows) - 1)


@right("layers.overlap")
def overlap_formula(m: Any, n: Any, w: Any) -> Any:
    if n > m:
        return overlap_formula(n, m, w)
    both = max(0, n - max(0, m - w + 1) + 1)
    return torch.tensor(both / math.sqrt(min(m + 1, w)) / math.sqrt(min(n + 1, w)))  # 32 bits, 0-d


@right("layers.overlap")
def overlap_row(m: Any, n: Any, w: Any) -> Any:  # one number, but with an axis
    eye = torch.eye(max(m, n) + 1, dtype=torch.float64)
    means = [eye[max(0, p + 1 - w) : p + 1].mean(dim=0, keepdim=True) for p in (m, n)]
    return functional.cosine_similarity(means[0], means[1])


@right("layers.overlap")
def overlap_cosine_similarity(m: Any, n: Any, w: Any) -> Any:
    eye = torch.eye(max(m, n) + 1)
    means = [eye[max(0, p + 1 - w) : p + 1].mean(dim=0) for p in (m, n)]
    return functional.cosine_similarity(means[0], means[1], dim=0)


@wrong("layers.overlap", "a window has the last w of them")
def overlap_everything(m: Any, n: Any, w: Any) -> Any:
    return math.sqrt((min(m, n) + 1) / (max(m, n) + 1))


@wrong("layers.overlap", "how many tokens are in both windows")
def overlap_count(m: Any, n: Any, w: Any) -> Any:
    return len(set(range(max(0, m - w + 1), m + 1)) & set(range(max(0, n - w + 1), n + 1)))


@wrong("layers.overlap", "divided by both lengths")
def overlap_larger_window(m: Any, n: Any, w: Any) -> Any:
    one = set(range(max(0, m - w + 1), m + 1))
    other = set(range(max(0, n - w + 1), n + 1))
    return len(one & other) / max(len(one), len(other))


@wrong("layers.overlap", "only if m is the later token")
def overlap_first_is_later(m: Any, n: Any, w: Any) -> Any:
    both = max(0, n - max(0, m - w + 1) + 1)
    return both / math.sqrt(min(m + 1, w) * min(n + 1, w))


@right("layers.cache_size")
def cache_formula(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    full = num_layers // every
    return float(full * length + (num_layers - full) * min(w, length))


@right("layers.cache_size")
def cache_numpy(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    kept = np.full(num_layers, w)
    kept[every - 1 :: every] = length
    return np.minimum(kept, length).sum()


@right("layers.cache_size")
def cache_recursion(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    if num_layers == 0:
        return torch.tensor(0)
    here = length if num_layers % every == 0 else min(w, length)
    return cache_recursion(num_layers - 1, every, w, length) + here


@wrong("layers.cache_size", "You don't count the layers right")
def cache_from_zero(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == 0 else min(w, length) for layer in range(num_layers))


@wrong("layers.cache_size", "You don't count the layers right")
def cache_whole_groups(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return num_layers // every * (length + (every - 1) * min(w, length))


@wrong("layers.cache_size", "`num_layers - 1`")
def cache_off_by_one_layer(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == 0 else min(w, length) for layer in range(1, num_layers))


@wrong("layers.cache_size", "or all keys if the text is shorter")
def cache_max(num_layers: Any, every: Any, w: Any, length: Any) -> Any:
    return sum(length if layer % every == 0 else max(w, length) for layer in range(1, num_layers + 1))


@right("layers.looks_back")
def by_jacobian(f: Layer, x: Tensor) -> Any:
    jacobian = torch.autograd.functional.jacobian(lambda given: f(given)[-1], x)
    counts = jacobian.abs().amax(dim=(0, 2)) > 1e-10
    return len(x) - 1 - counts.nonzero().min()


@right("layers.looks_back")
def looks_accumulating(f: Any, x: Any) -> Any:  # the changes pile up, which does no harm
    changed, last = x.clone(), f(x)[-1]
    n = 0
    while n < len(x) - 1:
        changed[n] = 10 * torch.rand(x.shape[1], dtype=x.dtype)
        if not torch.allclose(f(changed)[-1], last, rtol=0, atol=1e-10):
            break
        n += 1
    return float(len(x) - n - 1)


def effects(f: Any, x: Tensor, *, put: Any = lambda x, n: x[n] + torch.randn_like(x[n]), look: Any = lambda y: y[-1]) -> Any:
    """How much an output changes with each token."""
    sizes = []
    for n in range(len(x)):
        other = x.clone()
        other[n] = put(x, n)
        sizes.append(float((look(f(other)) - look(f(x))).abs().max()))
    return sizes


def farthest(sizes: Any, above: float = 1e-10) -> int:
    return len(sizes) - 1 - next((n for n, size in enumerate(sizes) if size > above), len(sizes) - 1)


@right("layers.looks_back")
def looks_arange(f: Any, x: Any) -> Any:
    return farthest(effects(f, x, put=lambda x, n: x[n] + torch.arange(1, x.shape[1] + 1)))


@wrong("layers.looks_back", "Is your tolerance larger")
def looks_coarse(f: Any, x: Any) -> Any:
    return farthest(effects(f, x), above=1e-4)


@wrong("layers.looks_back", "up to the very first one")
def looks_one_position_short(f: Any, x: Any) -> Any:
    return farthest(effects(f, x)[1:])


@wrong("layers.looks_back", "A function may not notice your change")
def looks_ones(f: Any, x: Any) -> Any:
    return farthest(effects(f, x, put=lambda x, n: torch.ones_like(x[n])))


@wrong("layers.looks_back", "the gradient of their sum")
def looks_sum(f: Any, x: Any) -> Any:
    return farthest(effects(f, x, look=lambda y: y[-1].sum()))


@wrong("layers.looks_back", "Do you compare all outputs")
def looks_at_all_outputs(f: Any, x: Any) -> Any:
    return farthest(effects(f, x, look=lambda y: y))


@wrong("layers.looks_back", "You count the tokens")
def looks_count(f: Any, x: Any) -> Any:
    return sum(size > 1e-10 for size in effects(f, x)[:-1])
