"""Exercises on stretched frequencies: which pairs to keep, and what a stretch does to each pair and to all pairs together."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.rope_scaling import llama3, ntk_aware, position_interpolation, yarn
from posenc_course.sinusoidal import frequencies

_CIRCLE = 2 * math.pi
_HEADS = ((16, 1e4, 8, 64), (64, 1e4, 4, 2048), (128, 5e5, 8, 8192))  # d_head, base, factor, length


def _turns(omega: Tensor, length: float) -> Tensor:
    return length * omega / _CIRCLE


def _blend(keep: Tensor, omega: Tensor, factor: float) -> Tensor:
    return keep * omega + (1 - keep) * omega / factor


def _keep(turns: Tensor) -> Tensor:
    return ((turns - 1) / 3).clamp(0, 1)


@exercise("my_frequencies", instead_of=[llama3])
def by_parts() -> Exercise:
    """my_frequencies(omega, factor, length) -> stretched frequencies, as many as omega, for three heads of different widths.

    Pairs with four rotations or more within `length` stay, and pairs with one rotation or less are divided by `factor`. Between
    them, the result is a weighted mean of both, with a weight that grows linearly with the number of rotations.
    """
    cases = [(frequencies(d, base), factor, length) for d, base, factor, length in _HEADS]

    def same(a: Tensor, b: Tensor) -> bool:
        return a.shape == b.shape and torch.allclose(a.double(), b, rtol=1e-4, atol=0)

    one_rule = (
        "You treat all pairs by one rule, as position interpolation and NTK-aware scaling do. Here, the number of rotations "
        "within `length` decides which pairs stay and which are divided by the factor."
    )
    rotations = "You don't count rotations within `length` tokens. A rotation is 2π radians, and takes a pair one wavelength."
    mean = (
        "Between one rotation and four, your numbers aren't the weighted mean of the two frequencies, with a weight that grows "
        "linearly with the number of rotations."
    )
    return Exercise(
        cases=cases,
        right=llama3,
        same=same,
        mistakes={
            "interpolation": (lambda w, s, n: w / s, one_rule),
            "the base times the factor": (
                lambda w, s, n: w * s ** -(torch.arange(len(w), dtype=torch.float64) / len(w)), one_rule),
            "radians": (lambda w, s, n: _blend(_keep(n * w), w, s), rotations),
            "the new length": (lambda w, s, n: _blend(_keep(_turns(w, n * s)), w, s), rotations),
            "by wavelength": (
                lambda w, s, n: _blend(((n - _CIRCLE / w) / (0.75 * n)).clamp(0, 1), w, s), mean),
            "by pair": (lambda w, s, n: yarn(w, s, n, fast=4, truncate=False), mean),
            "exchanged": (lambda w, s, n: _blend(1 - _keep(_turns(w, n)), w, s),
                "You divide the fast pairs and leave the slow ones. Which pairs have seen all of their circle in training?"),
            "twice": (lambda w, s, n: _blend(_keep(_turns(w, n)), w, s**2),
                "You divide twice, so slow pairs are divided by the square of the factor."),
        },
        praise=f"all {sum(len(omega) for omega, _, _ in cases)} pairs of three models are right; the third model is Llama 3.1.",
    )  # fmt: skip


@exercise()
def base_for(seed: int) -> Exercise:
    """base_for(d_head, base, pair, factor) -> the base with which this pair rotates `factor` times more slowly."""
    rng = random.Random(seed)
    # Not the first pairs of a wide head with a large factor: these would need a base that doesn't fit into 32 bits.
    cases = {
        "a pair in the middle": (32, 1e4, 6, 8.0),
        "the slowest pair of Llama 3": (128, 5e5, 63, 8.0),
        "a small base": (16, 11.3, rng.randint(4, 6), 2.7),
        "pair 1": (16, rng.choice((1e3, 1e4)), 1, 1.5),
        "a head of two pairs": (4, 100.0, 1, rng.choice((2.0, 5.0))),
        "a head with 64 channels": (64, rng.choice((1e3, 1e6)), rng.randint(9, 30), rng.choice((1.5, 2.0, 4.0))),
    }

    def right(d: int, base: float, pair: int, factor: float) -> float:
        return base * factor ** (d / (2 * pair))

    powers: tuple[Callable[[int, int], float], ...] = (
        lambda d, i: 1,
        lambda d, i: d // (2 * i),
        lambda d, i: 2 * i / d,
    )
    other = "You return a frequency or a wavelength. Return the new base."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            **{f"exponent {n}": (lambda d, b, i, s, power=power: b * s ** power(d, i),
                "Your exponent is wrong. The frequency of this pair is the base to the power of -2·pair/d_head. To which power "
                "of the factor does the base have to grow, so that this frequency is divided by the factor?")
               for n, power in enumerate(powers)},
            "NTK-aware": (lambda d, b, i, s: b * s ** (d / (d - 2)),
                "You return the base of NTK-aware scaling, which divides the slowest pair by the factor. But here, the "
                "argument `pair` says which pair to divide."),
            "brackets": (lambda d, b, i, s: (b * s) ** (d / (2 * i)),
                "You raise the old base to the power, too. Raise only the factor to the power."),
            "a frequency": (lambda d, b, i, s: b ** (-2 * i / d) / s, other),
            "a wavelength": (lambda d, b, i, s: b ** (2 * i / d) * s, other),
        },
        praise=f"in all {len(cases)} heads, your base divides the frequency of the pair by the factor.",
    )  # fmt: skip


@exercise()
def strangeness(seed: int) -> Exercise:
    """strangeness(omega, stretched, trained, distance) -> radians by which this distance is new to all pairs together.

    For each distance in training, take the largest angle by which a pair differs, the shorter way round. The result is the
    smallest of these angles.
    """
    rng = random.Random(seed)
    trained, factor = rng.randint(40, 80), rng.choice((2.0, 4.0, 8.0))
    omega, wide = frequencies(16), frequencies(32, rng.choice((1e3, 5e5)))
    one = torch.tensor([0.9], dtype=torch.float64)
    cases: dict[str, tuple[Tensor, Tensor, int, int]] = {
        "position interpolation, one token away": (omega, position_interpolation(omega, factor), trained, 1),
        "position interpolation, beyond the training "
        "length": (omega, position_interpolation(omega, factor), trained, 3 * trained + 1),
        "Llama 3's form, a few tokens away": (omega, llama3(omega, factor, trained), trained, rng.randint(5, 12)),
        "YaRN's form of a wide head": (wide, yarn(wide, factor, trained), trained, 2 * trained),
        "no stretch, a distance from training": (omega, omega, trained, trained - 1),
        "no stretch, one token farther than in training": (omega, omega, trained, trained),
        "training on single tokens": (omega, ntk_aware(omega, factor), 1, 3),
        "a single pair": (one, one / 1.5, 5, 4),
        "a distance at which all pairs have nearly come full "
        "circle": (torch.tensor([_CIRCLE / 12, _CIRCLE / 6], dtype=torch.float64),
            torch.tensor([_CIRCLE / 12 - 0.01, _CIRCLE / 6 - 0.02], dtype=torch.float64), 6, 12),
    }  # fmt: skip

    def short(gap: Tensor) -> Tensor:
        return torch.minimum(gap % _CIRCLE, -gap % _CIRCLE)

    def found(
        change: Callable[[Tensor], Tensor] = short,
        pairs: Callable[[Tensor], Tensor] = lambda gap: gap.amax(dim=1),
        distances: Callable[[Tensor], Tensor] = torch.min,
        seen: Callable[[int], Tensor] = torch.arange,
    ) -> Callable[[Tensor, Tensor, int, int], float]:
        """What becomes of the angles between now and then, of all pairs, and of all distances in training."""
        return lambda w, v, t, m: float(distances(pairs(change(m * v - seen(t).double()[:, None] * w))))

    right = found()
    circle = "On a circle, the angle between two directions is the shorter way round, and full turns don't count, for any pair."
    angle = "Return the angle itself, in radians, not a function of it, and nothing in another unit."
    largest = "You don't take the largest angle of all pairs: at each distance in training, the worst pair decides."
    trained_with = (
        "The model was trained with `omega`, and it reads this text with the stretched frequencies. You use only one."
    )
    nearest = (
        "You don't compare with all distances in training, 0 to trained - 1, or you don't return the angle at the one "
        "that fits best."
    )
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "each pair alone": (found(pairs=lambda gap: gap.amin(dim=0), distances=torch.max),
                "In your function, each pair can choose its own distance. But the question is whether all of these angles "
                "occurred together at a single distance."),
            "no turns": (found(torch.abs), circle),
            "forwards": (found(lambda gap: gap % _CIRCLE), circle),
            "wrapped afterwards": (found(torch.abs, lambda gap: short(gap.amax(dim=1))), circle),
            "sines": (found(lambda gap: gap.sin().abs()), angle),
            "chords": (found(lambda gap: 2 * (gap / 2).sin().abs()), angle),
            "one minus the cosine": (found(lambda gap: 1 - gap.cos()), angle),
            "the mean": (found(pairs=lambda gap: gap.mean(dim=1)), largest),
            "the closest pair": (found(pairs=lambda gap: gap.amin(dim=1)), largest),
            "the fastest pair": (found(pairs=lambda gap: gap[:, 0]), largest),
            "the mean distance": (found(distances=torch.mean), nearest),
            "one distance more": (found(seen=lambda t: torch.arange(t + 1)), nearest),
            "one distance less": (found(seen=lambda t: torch.arange(max(t - 1, 1))), nearest),
            "the same distance": (lambda w, v, t, m: float(short(m * v - m * w).max()), nearest),
            "stretched in training": (lambda w, v, t, m: right(v, v, t, m), trained_with),
            "never stretched": (lambda w, v, t, m: right(w, w, t, m), trained_with),
        },
        praise="even if a stretch shows only known angles, it can combine them in a way that never occurred in training.",
    )  # fmt: skip


@exercise()
def reach(seed: int) -> Exercise:
    """reach(omega, stretched, trained) -> the largest number of tokens without any unseen angle."""
    rng = random.Random(seed)
    methods: dict[str, Callable[[Tensor, float, int], Tensor]] = {
        "position interpolation": lambda w, s, t: w / s,
        "NTK-aware scaling": lambda w, s, t: ntk_aware(w, s),
        "Llama 3's form": lambda w, s, t: llama3(w, s, t),
        "YaRN's form": lambda w, s, t: yarn(w, s, t),
    }
    cases: dict[str, tuple[Tensor, Tensor, int]] = {}
    for name, method in methods.items():
        while True:
            trained, width = rng.randint(60, 200), rng.choice((16, 32, 48))
            omega, factor = frequencies(width, 10_000.0), rng.uniform(2.2, 9.0)
            stretched = method(omega, factor, trained)
            # If the last distance is close to a whole number, or a pair has nearly completed its circle, rounding would decide.
            limits = ((trained - 1) * omega / stretched)[(trained - 1) * omega < _CIRCLE]
            if 0.05 < limits.min() % 1 < 0.95 and ((trained - 1) * omega / _CIRCLE - 1).abs().min() > 1e-3:
                break
        cases[name] = (omega, stretched, trained)
    # Pair 4 needs 100.5 tokens for its circle. A text of 101 tokens is longer than that, but its largest distance isn't.
    omega = frequencies(16, (100.5 / _CIRCLE) ** 2)
    by = torch.tensor([1.6, 1.2, 1.505, 1.505, 1.505, 4.0, 4.0, 4.0])
    cases["a pair that has nearly completed its circle in training"] = (omega, omega / by, 101)
    # In training, pair 0 makes between half a rotation and a full rotation, so it counts. It runs out first, or the middle one.
    slow = torch.tensor([4.0, 1.0, 0.3], dtype=torch.float64) / 30
    cases["pairs of which none has completed its circle in training"] = (
        slow,
        slow / torch.tensor([2.03, 6.0, 9.0]).double(),
        31,
    )
    cases["divisors in a mixed order"] = (slow, slow / torch.tensor([6.0, 2.03, 9.0]).double(), 31)

    def tokens(distance: Any) -> int:
        return math.floor(float(distance)) + 1

    def farthest(w: Tensor, v: Tensor, trained: float, by: Tensor | None = None, circle: float = _CIRCLE) -> Tensor:
        """The largest distance of each pair that hasn't completed its circle, or of all pairs if all have."""
        asked = trained * (w if by is None else by) < circle
        return (trained * w / v)[asked] if asked.any() else trained * w / v

    def right(omega: Tensor, stretched: Tensor, trained: int) -> int:
        return tokens(farthest(omega, stretched, trained - 1).min())

    apart = (
        "You mix up tokens and distances. The first and the last of T tokens aren't T positions apart, and in a longer text, "
        "the largest distance without an unseen angle is rounded down."
    )
    which = (
        "You use the wrong pairs. Pairs whose angles completed a full circle in training never meet an unseen angle, and of "
        "the others, the first that does decides."
    )
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "every pair": (lambda w, v, t: tokens((t - 1) * (w / v).min()), which),
            "the fastest": (lambda w, v, t: tokens((t - 1) * (w / v)[0]), which),
            "the slowest": (lambda w, v, t: tokens((t - 1) * (w / v)[-1]), which),
            "the first of the slow": (lambda w, v, t: tokens(farthest(w, v, t - 1)[0]), which),
            "half a circle": (lambda w, v, t: tokens(farthest(w, v, t - 1, circle=math.pi).min()), which),
            "come round by the length": (lambda w, v, t: tokens((t - 1) * (w / v)[t * w < _CIRCLE].min()), which),
            "come round afterwards": (lambda w, v, t: tokens(farthest(w, v, t - 1, by=v).min()), which),
            **{f"tokens for distances, {more:+d}": (lambda w, v, t, more=more: tokens(farthest(w, v, t).min()) + more, apart)
               for more in (-1, 1)},
            "the length divided": (lambda w, v, t: math.floor(t * (w / v)[(t - 1) * w < _CIRCLE].min()), apart),
        },
        praise="the first pair that meets an unseen angle sets the length, whichever pair that is.",
    )  # fmt: skip
