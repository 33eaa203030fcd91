"""Exercises on layers that differ: how far a stack reaches, averages that overlap, and caches."""

import math
import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc_course.checks._exercise import Call, Exercise, exercise
from posenc_course.checks._sandbox import Wrong

# ── in the chapter ───────────────────────────────────────────────────────────────────────────────────────────────────────

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
        "layers whose tokens see only themselves": ([1, 1], 40),
        "a position near the beginning": ([16, 16, 16], 20),
        "the first position": ([16, 16], 0),
        "a last layer that sees everything": ([16, 16, None], 300),
        "a first layer that sees everything": ([None, 16, 16], 310),
        "a layer in the middle that sees everything": ([16, None, 16], 320),
        "two layers that see everything": ([None, None], 77),
    }
    right = _capped(_stacked)

    def changed(result: Callable[[int, int], int]) -> Reach:
        """What follows from the right number and from m."""
        return lambda windows, m: result(right(windows, m), m)

    own = (
        "You count each layer's whole window. But a window includes the query's own token, so how many tokens back does a "
        "window of w tokens reach?"
    )
    single = "Your reach is that of a single layer. What does a token that this layer sees already know from the layer below?"
    product = (
        "You multiply the windows. But each layer looks back from where the one above it has arrived, so the steps are added."
    )
    equal = "You use one window for all layers. But the windows may differ, so add one after the other."
    endless = "Your reach goes beyond the beginning of the text. At position m, there are only m tokens before."
    one_is_enough = (
        "You don't give a layer that sees everything its full effect. One such layer is enough, wherever it is in the stack: "
        "the layers below it have nothing to add, and the layers above it pass on what it has collected."
    )
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "whole windows": (_capped(sum), own),
            "whole windows without end": (lambda windows, m: m if None in windows else sum(w or 0 for w in windows),
                f"{own} And your reach goes beyond the beginning of the text."),
            "one token left out": (_capped(lambda windows: max(sum(windows) - 1, 0)),
                "You leave out the query's own token only once. But each layer's window includes one."),
            "the widest": (_capped(lambda windows: max(windows, default=1) - 1), single),
            "the widest window": (_capped(lambda windows: max(windows, default=0)), single),
            "the last": (_capped(lambda windows: windows[-1] - 1 if windows else 0), single),
            "the last window": (_capped(lambda windows: windows[-1] if windows else 0), single),
            "the first": (_capped(lambda windows: windows[0] - 1 if windows else 0), single),
            "the first window": (_capped(lambda windows: windows[0] if windows else 0), single),
            "the last, whatever is below": (lambda windows, m: 0 if not windows else m if windows[-1] is None
                else min(m, windows[-1] - 1), single),
            "the product": (_capped(math.prod), product),
            "the product of the steps": (_capped(lambda windows: math.prod(w - 1 for w in windows)), product),
            "the product minus one": (_capped(lambda windows: math.prod(windows) - 1), product),
            "layers times the first": (_capped(lambda windows: len(windows) * (windows[0] - 1) if windows else 0), equal),
            "layers times the last": (_capped(lambda windows: len(windows) * (windows[-1] - 1) if windows else 0), equal),
            "layers times the widest": (_capped(lambda windows: len(windows) * (max(windows, default=1) - 1)), equal),
            "without end": (lambda windows, m: m if None in windows else _stacked([w or 0 for w in windows]), endless),
            "without end, m for every such layer": (lambda windows, m: sum(m if w is None else w - 1 for w in windows),
                endless),
            "only if all layers do": (_capped(_stacked, lambda windows: {*windows} == {None}), one_is_enough),
            "only if the last layer does": (_capped(_stacked, lambda windows: windows[-1:] == [None]), one_is_enough),
            "only if the first layer does": (_capped(_stacked, lambda windows: windows[:1] == [None]), one_is_enough),
            "no layer does": (_capped(_stacked, lambda windows: False), one_is_enough),
            "until one does": (
                lambda windows, m: min(m, _stacked([w or 0 for w in (windows[: windows.index(None)] if None in windows
                                                                     else windows)])), one_is_enough),
            "how many tokens": (changed(lambda back, m: back + 1),
                "You count how many tokens the output depends on, and its own token is one of them. How many tokens *back* is "
                "the first of them?"),
            "the first position": (changed(lambda back, m: m - back),
                "You return the first position that the output can depend on. How many tokens back is it?"),
        },
        praise=f"all {len(cases)} stacks are right, with equal and different windows, near the beginning of the text, and with "
               "layers that see everything.",
    )  # fmt: skip


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────

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
        "the first token with itself": (0, 0, w),
        "windows of one token": (far, far - 1, 1),
        "windows that contain everything so far": (rng.randint(30, 60), rng.randint(5, 25), 5000),
        "windows that contain everything, late in the text": (1500 + far, 1490 + far, 5000),
    }

    def of(formula: Callable[[int, int, int], float]) -> Overlap:
        """A formula of the three counts."""
        return lambda m, n, w: formula(*_sizes(m, n, w))

    def full(m: int, n: int, w: int) -> float:
        return max(0.0, 1 - abs(m - n) / w)

    def counted(m: int, n: int, w: int) -> float:
        """Windows of w + 1 tokens: the token itself and w before it."""
        return right(m, n, w + 1)

    right = of(lambda a, b, both: both / math.sqrt(a * b))

    def shortened(m: int, n: int, w: int) -> float:
        """Early windows that lack a token, so that the first one is empty."""
        return right(m - 1, n - 1, w) if min(m, n) > 0 else 0.0

    negative = "Your cosine becomes negative. But windows that don't overlap have nothing in common, so their cosine is 0."
    cut = "You treat every window as full. But at position m, there are only m + 1 tokens, so early windows are shorter than w."
    order = "Your function is right only if m is the later token. But the cosine of two vectors doesn't depend on their order."
    one = "You divide by the number of tokens in only one of the two windows. A cosine divides by the lengths of both vectors."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "full windows": (full, cut),
            "not below zero": (lambda m, n, w: 1 - abs(m - n) / w, negative),
            "not below zero, but cut off": (
                lambda m, n, w: (min(m, n) - max(max(m, n) - w, -1)) / math.sqrt(min(w, m + 1) * min(w, n + 1)), negative),
            "everything": (lambda m, n, w: right(m, n, max(m, n) + 1),
                "Your formula is right only if both windows contain everything so far. But a window has at most w tokens."),
            "m is later": (lambda m, n, w: max(min(n + 1, n - (m - w + 1) + 1), 0) / math.sqrt(min(w, m + 1) * min(w, n + 1)),
                order),
            "0 if n is later": (lambda m, n, w: right(m, n, w) if n <= m else 0.0, order),
            "by the union": (of(lambda a, b, both: both / (a + b - both)),
                "You divide the tokens in both windows by the tokens in either of them. A cosine divides by the product of two "
                "lengths instead."),
            "by the first": (of(lambda a, b, both: both / a), one),
            "by the second": (of(lambda a, b, both: both / b), one),
            "by the larger": (of(lambda a, b, both: both / max(a, b)), one),
            "by the smaller": (of(lambda a, b, both: both / min(a, b)), one),
            "the product": (of(lambda a, b, both: both / (a * b)),
                "You compute the dot product of the two means. For the cosine, divide it by both lengths: the mean of a "
                "tokens has the length 1/√a."),
            "the square": (of(lambda a, b, both: both * both / (a * b)), "You return the square of the cosine."),
            "the tokens in both": (of(lambda a, b, both: float(both)), "You return how many tokens are in both windows. For "
                "the cosine, divide this number by the lengths of the two sums."),
            "one token more": (counted, "Your windows have one token too many: the w tokens include the token itself."),
            "early windows lack a token": (shortened,
                "Your early windows have one token too few, and the first one is empty. At position m, there are m + 1 tokens: "
                "0 to m, the token itself included."),
            "the angle": (lambda m, n, w: math.acos(min(right(m, n, w), 1.0)), "You return the angle. Return its cosine."),
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
        "one layer more than equal groups": (13, 4, 64, rng.randint(1000, 5000)),
        "one layer too few for one more": (15, 4, 128, rng.randint(1000, 5000)),
        "a text that is shorter than the window": (12, 4, 256, rng.randint(50, 200)),
        "a text as long as the window": (12, 5, 256, 256),
        "every layer sees everything": (10, 1, 64, rng.randint(1000, 5000)),
        "no layer sees everything": (6, 7, 64, rng.randint(1000, 5000)),
        "every second layer": (7, 2, 32, rng.randint(300, 500)),
        "a single layer": (1, 1, 8, rng.randint(20, 50)),
    }

    def keys(
        full: Callable[[int, int], float], window: Callable[[int, int], int] = min
    ) -> Callable[[int, int, int, int], float]:
        """If so many layers see everything, and a layer with a window keeps so many keys of a text."""
        return lambda layers, every, w, length: (
            full(layers, every) * length + (layers - full(layers, every)) * window(w, length)
        )

    def floor(layers: int, every: int) -> int:
        return layers // every

    right = keys(floor)

    def ask(call: Call, *case: int) -> int:
        try:
            return int(call(*case, wanted=0))
        except Wrong as wrong:
            if "whole number" in str(wrong):
                raise Wrong(
                    f"{wrong} The number of layers that see everything is a whole number, too: / can give a fraction, but // "
                    "rounds down."
                ) from wrong
            raise

    first = (
        "You let the first layer see everything, and then every n-th, or you round the number of such layers up. But counted "
        "from 1, the layers n, 2n, … see everything."
    )
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "from layer 0": (keys(lambda layers, every: -(-layers // every)), first),
            "one early": (keys(lambda layers, every: (layers + 1) // every if every > 1 else layers),
                "Your layers that see everything come one layer too early. Counted from 1, they are the layers n, 2n, …"),
            "whole groups": (lambda layers, every, w, length: right(layers - layers % every, every, w, length),
                "If the layers don't fall into equal groups, you leave out those after the last group. They keep keys, too."),
            "a layer missing": (lambda layers, every, w, length: right(layers - 1, every, w, length),
                "You leave out the last layer. In Python, range(1, num_layers) ends before num_layers."),
            "groups of every plus one": (keys(lambda layers, every: layers // (every + 1)),
                "In your function, every windows come before a layer that sees everything. But every n-th layer sees "
                "everything, so there are n - 1 windows before it."),
            "exchanged": (keys(lambda layers, every: layers - layers // every),
                "You have exchanged the two kinds of layers: every n-th layer sees everything, and the others have a window."),
            "the whole window": (keys(floor, lambda w, length: w),
                "A layer with a window of w tokens can't keep more keys than the text has tokens."),
            "the longer one": (keys(floor, max),
                "A layer with a window keeps the last w keys, or all keys if the text is shorter, so take the smaller number."),
            "the window without the token": (keys(floor, lambda w, length: min(w - 1, length)),
                "You leave the token itself out of its window. But w counts all keys that a query sees, its own included."),
            "windows everywhere": (keys(lambda layers, every: 0),
                "You give every layer a window. But every n-th layer sees everything, and keeps the keys of the whole text."),
            "everything everywhere": (keys(lambda layers, every: layers),
                "You let every layer see everything. But a layer with a window needs only the last w keys."),
            "on top of the windows": (lambda layers, every, w, length: layers * min(w, length) + layers // every * length,
                "You count a window in every layer, and then the layers that see everything once more. These layers have no "
                "window."),
            "keys and values": (lambda *case: 2 * right(*case), "You count keys and values. Count only the keys."),
        },
        ask=ask,
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
    hidden = past & ((n > 0) | (m == 0))  # token 0 is seen only by itself
    mixing = torch.randn(6, 6, dtype=torch.float64, generator=generator) / 2

    def mixed(x: Tensor) -> Tensor:
        return x @ mixing

    def centred(x: Tensor) -> Tensor:
        return x - x.mean(dim=-1, keepdim=True)

    def without_first_channel(x: Tensor) -> Tensor:
        return torch.cat((0 * x[:, :1], x[:, 1:]), dim=1)

    def unit(x: Tensor) -> Tensor:
        return torch.nn.functional.normalize(x, dim=-1)

    def example(zeros: slice = slice(0)) -> Tensor:
        x = torch.randn(length, 6, dtype=torch.float64, generator=generator)
        x[zeros] = 0
        return x

    near, far = window(6), _averages(m - n == 20)
    functions: dict[str, tuple[Layer, slice]] = {
        "one window": (window(7), slice(0)),
        "tokens that see only themselves": (window(1), slice(0)),
        "three windows": (_stack(window(5), mixed, torch.tanh, window(5), window(4)), slice(0)),
        "six windows, so that a far token counts for little": (_stack(*[window(6)] * 6), slice(0)),
        "a window, and a layer that sees everything": (_stack(window(4), everything), slice(0)),
        "a layer that sees everything, and a window": (_stack(everything, window(4)), slice(0)),
        "a window that skips every second token": (_averages(past & (m - n < 12) & ((m - n) % 2 == 0)), slice(0)),
        "a window that doesn't contain the token itself": (_averages((m - n >= 3) & (m - n < 9)), slice(0)),
        "a window, and the first token": (_averages(past & ((m - n < 6) | (n == 0))), slice(0)),
        "a layer that doesn't see the first token": (_averages(hidden), slice(0)),
        "tokens whose mean is subtracted": (_stack(centred, mixed, window(8)), slice(0)),
        "outputs whose mean is subtracted": (_stack(mixed, window(9), centred), slice(0)),
        "tokens scaled to length 1": (_stack(unit, window(10)), slice(0)),
        "a padding token that is zero": (_stack(unit, everything), slice(0, 1)),
        "two padding tokens that are zero, and a mean that is subtracted": (_stack(centred, mixed, everything), slice(0, 2)),
        "channels of which the first one is ignored": (_stack(without_first_channel, mixed, window(11)), slice(0)),
        "a far token whose effect is about a billionth": (lambda x: near(x) + 2e-9 * far(x), slice(0)),
    }
    cases: dict[str, tuple[Layer, Tensor]] = {name: (f, example(zeros)) for name, (f, zeros) in functions.items()}
    for f, _ in cases.values():
        f.__name__ = "f"

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

    def nearest_gap(f: Layer, x: Tensor) -> int:
        sizes = effects(f, x)
        return max(next((back for back, size in enumerate(sizes) if size < 1e-10), len(sizes)) - 1, 0)

    def gradient(f: Layer, x: Tensor) -> int:
        leaf = x.clone().requires_grad_()
        (grad,) = torch.autograd.grad(f(leaf)[-1].sum(), leaf)
        return farthest(grad.flip(0).abs().amax(dim=1).tolist())

    def right(f: Layer, x: Tensor) -> int:
        return farthest(effects(f, x))

    def putting(put: Callable[[Tensor, int], Tensor]) -> Callable[[Layer, Tensor], int]:
        return lambda f, x: farthest(effects(f, x, put))

    one_for_all = (
        "You add the same number to all channels of a token. A function that subtracts each token's mean doesn't notice that. "
        "Change the channels by different amounts."
    )
    scaled = (
        "You multiply a token by a number. A function that scales each token doesn't notice that, and a token of zeros stays "
        "zero."
    )
    summed = (
        "You add up the channels of the last output, or take the gradient of their sum. But if the function subtracts their "
        "mean, the sum is always 0. Look at the channels one by one."
    )
    coarse = (
        "The farthest token can count for little, and then you miss it. Is your tolerance larger than 1e-10, or do you change "
        "the tokens by so little that the output hardly changes?"
    )
    others = "You count the tokens that make a difference, without the last one. How far back is the farthest of them?"
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "up to the first gap": (nearest_gap,
                "You stop at the first token that makes no difference. But a window can have gaps, and farther tokens can "
                "still count."),
            "how many": (lambda f, x: sum(size > 1e-10 for size in effects(f, x)),
                "You count the tokens that make a difference. How far back is the farthest of them?"),
            "how many before": (lambda f, x: max(sum(size > 1e-10 for size in effects(f, x)) - 1, 0), others),
            "how many others": (lambda f, x: sum(size > 1e-10 for size in effects(f, x)[1:]), others),
            "all but the first": (lambda f, x: farthest(effects(f, x)[:-1]),
                "You never change the first token of the text, at position 0."),
            "the position": (lambda f, x: len(x) - 1 - right(f, x),
                "You return the position of the farthest token. How many tokens back is it, seen from the last one?"),
            "one too many": (lambda f, x: right(f, x) + 1,
                "Your number is one too large. The last token itself is 0 tokens back."),
            "the nearest": (lambda f, x: next((back for back, size in enumerate(effects(f, x)) if size > 1e-10), 0),
                "You return the nearest token that makes a difference. Look for the farthest."),
            "all outputs": (lambda f, x: farthest(effects(f, x, row=lambda y: y)),
                "You return the whole text for every function. Do you compare all outputs? Each token changes its own output, "
                "but the question is only about the last one."),
            "zeros": (putting(lambda x, token: torch.zeros_like(x[token])),
                "Your change leaves a token of zeros as it is. Do you replace tokens by zeros, or reverse their signs? Add "
                "something instead."),
            "one more": (putting(lambda x, token: x[token] + 1), one_for_all),
            "ones": (putting(lambda x, token: torch.ones_like(x[token])),
                "You replace each token by one whose channels are all equal. If a function subtracts each token's mean, that "
                "makes no difference to a token of zeros. Change the channels by different amounts."),
            "its neighbour": (putting(lambda x, token: x[min(token + 1, len(x) - 1)]),
                "You replace each token by the one after it. But the two may be equal, for example if both are padding."),
            "one channel": (putting(lambda x, token: x[token] + (torch.arange(x.shape[1]) == 0)),
                "You change only one channel of each token. But the function may ignore this channel, so change all of them."),
            "doubled": (putting(lambda x, token: 2 * x[token]), scaled),
            "the sum of the output": (lambda f, x: farthest(effects(f, x, row=lambda y: y[-1].sum())), summed),
            "the gradient of a sum": (gradient, summed),
            **{f"above {above:g}": (lambda f, x, above=above: farthest(effects(f, x), above), coarse)
               for above in (1e-8, 1e-4, 1e-3, 0.01, 0.1)},
        },
        praise=f"all {len(cases)} functions are right, with gaps, with far tokens that count for little, and with "
            "normalizations.",
    )  # fmt: skip
