"""Exercises on layers that differ: how far a stack reaches, averages that overlap, and caches."""

import math
import operator
import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise

Windows = list[int | None]
Reach = Callable[[Windows, int], int]


def _capped(
    total: Callable[[list[int]], int], everything: Callable[[Windows], bool] = lambda windows: None in windows
) -> Reach:
    """The whole text if a layer sees everything, otherwise the total of all windows, and never more than m."""
    return lambda windows, m: m if everything(windows) else min(m, total([w for w in windows if w is not None]))


def _stacked(windows: list[int]) -> int:
    return sum(w - 1 for w in windows)


@exercise("my_reach")
def reach() -> Exercise:
    """my_reach(windows, m) -> how many tokens back the last layer's output at position m can depend on.

    A window counts the query's own key; None is a layer that sees everything so far.
    """
    cases: dict[str, tuple[Windows, int]] = {
        "four equal windows": ([16, 16, 16, 16], 500),
        "a single layer": ([8], 100),
        "different windows": ([4, 32, 9], 300),
        "a layer whose tokens see only themselves": ([1, 12, 5], 200),
        "a position near the beginning": ([16, 16, 16], 20),
        "the first position": ([16, 16], 0),
        "the second position": ([4, 4], 1),
        "a last layer that sees everything": ([16, 16, None], 300),
        "a first layer that sees everything": ([None, 16, 16], 310),
        "a layer in the middle that sees everything": ([16, None, 16], 320),
        "two layers that see everything": ([None, None], 77),
    }
    right = _capped(_stacked)

    steps = (
        "Count how many tokens back each layer looks, and add these steps up. A window of w tokens includes the query's own, "
        "and each layer looks back from where the one above it has arrived."
    )
    one_layer = "Your reach is that of a single layer. What does a token that it sees already know from the layer below?"
    endless = "Your reach goes beyond the beginning of the text. At position m, there are only m tokens before."
    one_is_enough = (
        "You don't give a layer that sees everything its full effect. One such layer is enough, wherever it is in the stack: "
        "the layers below it have nothing to add, and the layers above it pass on what it has collected."
    )

    single: dict[str, Callable[[list[int]], int]] = {
        "the widest": lambda windows: max(windows, default=1) - 1,
        "the last": lambda windows: windows[-1] - 1 if windows else 0,
    }
    other: dict[str, Callable[[list[int]], int]] = {
        "whole windows": sum,
        "layers times the first window": lambda windows: len(windows) * windows[0] if windows else 0,
        "the product minus one": lambda windows: math.prod(windows) - 1,
        "layers times the first": lambda windows: len(windows) * (windows[0] - 1) if windows else 0,
    }
    only: dict[str, Callable[[Windows], bool]] = {
        "all layers": lambda windows: {*windows} == {None},
        "the last layer": lambda windows: windows[-1:] == [None],
        "the first layer": lambda windows: windows[:1] == [None],
        "no layer": lambda windows: False,
    }
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            **{name: (_capped(total), steps) for name, total in other.items()},
            **{name: (_capped(total), one_layer) for name, total in single.items()},
            "without end": (lambda windows, m: m if None in windows else sum((w or 1) - 1 for w in windows), endless),
            **{f"only if {name}": (_capped(_stacked, everything), one_is_enough) for name, everything in only.items()},
        },
        praise=f"all {len(cases)} stacks are right, with equal and different windows, near the beginning of the text, and with "
               "layers that see everything.",
    )  # fmt: skip


Overlap = Callable[[int, int, int], float]


def _sizes(m: int, n: int, w: int) -> tuple[int, int, int]:
    """How many tokens m averages, how many n averages, and how many are in both."""
    return min(w, m + 1), min(w, n + 1), max(min(m, n) - max(m - w + 1, n - w + 1, 0) + 1, 0)


@exercise()
def overlap(seed: int) -> Exercise:
    """overlap(m, n, w) -> the cosine of the means over the last w tokens up to m and up to n, for perpendicular tokens."""
    rng = random.Random(seed)
    w = rng.randint(10, 20)
    far = rng.randint(100, 900)
    cases = {
        "two full windows": (far, far - 4, w),
        "one token in both": (far, far - w + 1, w),
        "windows that just don't overlap": (far, far - w, w),
        "windows far apart": (far, far - 3 * w - 1, w),
        "the same token": (far, far, w),
        "the later token given second": (far, far + 3, w),
        "an earlier window that is cut off": (w + 2, 5, w),
        "a later token given second, and a window that is cut off": (4, w + 1, w),
        "two windows that are cut off": (8, 3, w),
        "the first token": (7, 0, w),
        "windows that contain everything so far": (rng.randint(30, 60), rng.randint(5, 25), 5000),
        "windows that contain everything, late in the text": (1500 + far, 1490 + far, 5000),
    }

    def of(formula: Callable[[int, int, int], float]) -> Overlap:
        """A formula of the three counts."""
        return lambda m, n, w: formula(*_sizes(m, n, w))

    right = of(lambda a, b, both: both / math.sqrt(a * b))
    divisions: tuple[Callable[[int, int, int], float], ...] = (
        lambda a, b, both: both / (a + b - both),
        lambda a, b, both: both / a,
        lambda a, b, both: both / max(a, b),
        lambda a, b, both: 2 * both / (a + b),
        lambda a, b, both: both / (a * b),
    )
    windows = (
        "Your windows are wrong. At position m, there are m + 1 tokens, and a window has the last w of them, or all if there "
        "are fewer. Windows that don't overlap have the cosine 0."
    )
    lengths = "A cosine is the dot product divided by both lengths, and the mean of a perpendicular tokens has the length 1/√a."
    order = "Your function is right only if m is the later token. But the cosine of two vectors doesn't depend on their order."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "full windows": (lambda m, n, w: max(0.0, 1 - abs(m - n) / w), windows),
            "everything": (lambda m, n, w: right(m, n, max(m, n) + 1), windows),
            "one token too few": (lambda m, n, w: right(m - 1, n - 1, w) if min(m, n) > 0 else 0.0, windows),
            "m is later": (lambda m, n, w: max(min(n + 1, n - (m - w + 1) + 1), 0) / math.sqrt(min(w, m + 1) * min(w, n + 1)),
                order),
            "0 if n is later": (lambda m, n, w: right(m, n, w) if n <= m else 0.0, order),
            **{f"divided {n}": (of(by), lengths) for n, by in enumerate(divisions)},
            "the tokens in both": (of(lambda a, b, both: float(both)), "You return how many tokens are in both windows. For "
                "the cosine, divide this number by the lengths of the two sums."),
        },
        praise=f"all {len(cases)} pairs are right, whether their windows are full, cut off or contain everything.",
        tolerance=1e-5,
    )  # fmt: skip


@exercise()
def cache_size(seed: int) -> Exercise:
    """cache_size(num_layers, every, w, length) -> how many keys all layers keep; every n-th layer sees everything."""
    rng = random.Random(seed)
    cases = {
        "Gemma 3 4B": (34, 6, 1024, 100_000),
        "a number of layers that every divides": (12, 4, 64, rng.randint(1000, 5000)),
        "a number of layers that every doesn't divide": (14, 4, 64, rng.randint(1000, 5000)),
        "one layer too few for one more": (15, 4, 128, rng.randint(1000, 5000)),
        "a text that is shorter than the window": (12, 4, 256, rng.randint(50, 200)),
        "a text as long as the window": (12, 5, 256, 256),
        "every layer sees everything": (10, 1, 64, rng.randint(1000, 5000)),
        "no layer sees everything": (6, 7, 64, rng.randint(1000, 5000)),
        "a single layer": (1, 1, 8, rng.randint(20, 50)),
    }

    def keys(full: Callable[[int, int], int], window: Callable[[int, int], int] = min) -> Callable[[int, int, int, int], int]:
        """If so many layers see everything, and a layer with a window keeps so many keys of a text."""

        def kept(layers: int, every: int, w: int, length: int) -> int:
            return full(layers, every) * length + (layers - full(layers, every)) * window(w, length)

        return kept

    right = keys(operator.floordiv)
    groups = (
        "You don't count the layers right. Counted from 1 to num_layers, the layers n, 2n, … see everything, and all others "
        "have a window, also those after the last group."
    )
    kept = (
        "A layer with a window keeps the last w keys, the token's own among them, or all keys if the text is shorter. A layer "
        "that sees everything keeps those of the whole text, and has no window besides."
    )
    counts: dict[str, Callable[[int, int], int]] = {
        "from layer 0": lambda layers, every: -(-layers // every),
        "one more": lambda layers, every: min(layers // every + 1, layers),
    }
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            **{name: (keys(full), groups) for name, full in counts.items()},
            "whole groups": (lambda layers, every, w, length: right(layers - layers % every, every, w, length), groups),
            "exchanged": (keys(lambda layers, every: layers - layers // every), groups),
            "the whole window": (keys(operator.floordiv, lambda w, length: w), kept),
            "the longer one": (keys(operator.floordiv, max), kept),
            "only the windows": (lambda layers, every, w, length: (layers - layers // every) * min(w, length), kept),
            "windows everywhere": (keys(lambda layers, every: 0), kept),
        },
        praise=f"all {len(cases)} stacks are right, including those whose layers don't fall into equal groups.",
    )  # fmt: skip


Layer = Callable[[Tensor], Tensor]


def _averages(seen: Tensor) -> Layer:
    """A layer in which each token becomes the mean of those that it sees, (L, L)."""
    weights = seen.double() / seen.sum(dim=1, keepdim=True).clamp(min=1)
    return lambda x: weights @ x


def _stack(*layers: Layer) -> Layer:
    def f(x: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x)
        return x

    return f


@exercise()
def looks_back(seed: int) -> Exercise:
    """looks_back(f, x) -> how many tokens back is the farthest one on which the last output of the function f depends.

    f takes and returns (L, d) in float64; x is an example of its input.
    """
    generator = torch.Generator().manual_seed(seed)
    length = random.Random(seed).randint(36, 44)
    m, n = torch.arange(length)[:, None], torch.arange(length)
    past = n <= m

    def window(w: int) -> Layer:
        return _averages(past & (m - n < w))

    everything = _averages(past)
    mixing = torch.randn(6, 6, dtype=torch.float64, generator=generator) / 2

    def mixed(x: Tensor) -> Tensor:
        return x @ mixing

    def centred(x: Tensor) -> Tensor:
        return x - x.mean(dim=-1, keepdim=True)

    def without_first_channel(x: Tensor) -> Tensor:
        return torch.cat((0 * x[:, :1], x[:, 1:]), dim=1)

    def unit(x: Tensor) -> Tensor:
        return torch.nn.functional.normalize(x, dim=-1)

    near, far = window(6), _averages(m - n == 20)
    functions: dict[str, Layer] = {
        "one window": window(7),
        "tokens that see only themselves": window(1),
        "three windows": _stack(window(5), mixed, torch.tanh, window(5), window(4)),
        "six windows, so that a far token counts for little": _stack(*[window(6)] * 6),
        "a window, and a layer that sees everything": _stack(window(4), everything),
        "a window that doesn't contain the token itself": _averages((m - n >= 3) & (m - n < 9)),
        "a window, and the first token": _averages(past & ((m - n < 6) | (n == 0))),
        "a layer that doesn't see the first token": _averages(past & ((n > 0) | (m == 0))),
        "tokens whose mean is subtracted": _stack(centred, mixed, window(8)),
        "outputs whose mean is subtracted": _stack(mixed, window(9), centred),
        "tokens scaled to length 1": _stack(unit, window(10)),
        "a padding token that is zero": _stack(unit, everything),
        "two padding tokens that are zero, and a mean that is subtracted": _stack(centred, mixed, everything),
        "channels of which the first one is ignored": _stack(without_first_channel, mixed, window(11)),
        "a far token whose effect is about a billionth": lambda x: near(x) + 2e-9 * far(x),
    }
    cases: dict[str, tuple[Layer, Tensor]] = {}
    for name, f in functions.items():
        f.__name__ = "f"
        x = torch.randn(length, 6, dtype=torch.float64, generator=generator)
        x[: 2 if "two padding" in name else "padding" in name] = 0
        cases[name] = (f, x)

    def new(x: Tensor, token: int) -> Tensor:
        return x[token] + torch.linspace(1, 2, x.shape[1], dtype=x.dtype) ** 2

    def effects(
        f: Layer, x: Tensor, put: Callable[[Tensor, int], Tensor] = new, row: Callable[[Tensor], Tensor] = lambda y: y[-1]
    ) -> list[float]:
        """How much the output changes with each token, from the last one back."""
        before, sizes = row(f(x)), []
        for token in reversed(range(len(x))):
            other = x.clone()
            other[token] = put(x, token)
            sizes.append(float((row(f(other)) - before).abs().max()))
        return sizes

    def farthest(sizes: Sequence[float], above: float = 1e-10) -> int:
        return max((back for back, size in enumerate(sizes) if size > above), default=0)

    def right(f: Layer, x: Tensor) -> int:
        return farthest(effects(f, x))

    def putting(put: Callable[[Tensor, int], Tensor]) -> Callable[[Layer, Tensor], int]:
        return lambda f, x: farthest(effects(f, x, put))

    def count(sizes: Sequence[float]) -> int:
        return sum(size > 1e-10 for size in sizes)

    unnoticed = (
        "A function may not notice your change: one that subtracts each token's mean, scales each token, or ignores a channel. "
        "A token may also be zero, or equal to its neighbour. Add different amounts to all channels."
    )
    summed = (
        "You add up the channels of the last output, or take the gradient of their sum. But if the function subtracts their "
        "mean, the sum is always 0. Look at the channels one by one."
    )
    coarse = (
        "The farthest token can count for little, and then you miss it. Is your tolerance larger than 1e-10, or do you change "
        "the tokens by so little that the output hardly changes?"
    )
    how_many = "You count the tokens that make a difference, or look for the nearest. How far back is the farthest of them?"
    gap = "You stop too early. A window can have gaps, and farther tokens can still count, up to the very first one."
    changes: dict[str, Callable[[Tensor, int], Tensor]] = {
        "zeros": lambda x, token: torch.zeros_like(x[token]),
        "one more": lambda x, token: x[token] + 1,
        "ones": lambda x, token: torch.ones_like(x[token]),
        "one channel": lambda x, token: x[token] + (torch.arange(x.shape[1]) == 0),
        "doubled": lambda x, token: 2 * x[token],
    }
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            **{name: (putting(put), unnoticed) for name, put in changes.items()},
            "all but the first": (lambda f, x: farthest(effects(f, x)[:-1]), gap),
            "how many": (lambda f, x: count(effects(f, x)), how_many),
            "how many others": (lambda f, x: count(effects(f, x)[1:]), how_many),
            "all outputs": (lambda f, x: farthest(effects(f, x, row=lambda y: y)),
                "You return the whole text for every function. Do you compare all outputs? Each token changes its own output, "
                "but the question is only about the last one."),
            "the sum of the output": (lambda f, x: farthest(effects(f, x, row=lambda y: y[-1].sum())), summed),
            **{f"above {above:g}": (lambda f, x, above=above: farthest(effects(f, x), above), coarse)
               for above in (1e-8, 1e-4, 0.01)},
        },
        praise=f"all {len(cases)} functions are right, with gaps, with far tokens that count for little, and with "
            "normalizations.",
    )  # fmt: skip
