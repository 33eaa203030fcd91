"""Answers to the exercises on layers that differ."""

import math
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor

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
        known = (seen.astype(int) @ known) > 0
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
    """A token of ones is no longer what it was, even after its mean is subtracted."""
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


# ── the bank ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

RIGHT: dict[str, list[Any]] = {
    "layers.reach": [reach_downwards, reach_by_masks, reach_with_infinity,
        lambda windows, m: m if any(w is None for w in windows) else min(sum(windows) - len(windows), m)],
    "layers.overlap": [by_vectors, by_sets, by_torch],
    "layers.cache_size": [one_by_one, by_numpy, by_slices],
    "layers.looks_back": [changed_at_random, by_jacobian, replaced_by_ones, all_before, perturbed(noisy)],
    "layers.plan": [plan_by_trying, plan_in_turns, plan_from_the_most,
        lambda *case: torch.tensor(plan_by_trying(*case))],
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
        ("coarse", perturbed(noisy, same=lambda a, b: torch.allclose(a, b, atol=0.01)), "counts for little"),
        ("gradient of the sum", gradient_of_sum, "always 0"),
        ("in place", in_place, "writes into its arguments"),
        ("one too many", perturbed(noisy, lambda backs, size: max(backs, default=0) + 1), "one too large"),
        ("shortened", by_shortening, "raised RuntimeError"),
        ("always the same", lambda f, x: len(x) - 1, "whole text for every function"),
        ("called once", lambda f, x: f(x), "numbers, but it should return one number"),
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
        ("None", planned(lambda plan, length, budget: [None if w == length else w for w in plan]), "whole number"),
        ("rest to the first window", lambda layers, length, budget: [
            min(length - 1, budget - 8 * (layers - 2) - length), *[8] * (layers - 2), length], None),
        ("unfair", planned(lambda plan, length, budget: [plan[0] + 1, *plan[1:-1], plan[-1]][: len(plan)]), None),
    ],
}  # fmt: skip
