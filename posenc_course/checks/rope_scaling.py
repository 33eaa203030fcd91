"""Exercises on stretched frequencies: which pairs to keep, and what a stretch does to each pair and to all pairs together."""

import math
import random
from collections.abc import Callable, Sequence
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


def _by_wavelength(omega: Tensor, length: float) -> Tensor:
    """A share that falls linearly with the wavelength, from length/4 to length."""
    return ((length - _CIRCLE / omega) / (0.75 * length)).clamp(0, 1)


@exercise("my_frequencies", instead_of=[llama3])
def by_parts() -> Exercise:
    """my_frequencies(omega, factor, length) -> stretched frequencies, as many as omega, for three heads of different widths.

    Pairs with four rotations or more within `length` stay, and pairs with one rotation or less are divided by `factor`. Between
    them, the result is a weighted mean of both, with a weight that grows linearly with the number of rotations.
    """
    cases = [(frequencies(d, base), factor, length) for d, base, factor, length in _HEADS]
    right = [llama3(*case) for case in cases]

    def same(a: Tensor, b: Tensor) -> bool:
        return a.shape == b.shape and torch.allclose(a.double(), b, rtol=1e-4, atol=0)

    def fault(said: Sequence[Tensor]) -> str | None:
        for (omega, factor, length), numbers, wanted in zip(cases, said, right, strict=True):
            call = f"my_frequencies(omega, {factor}, {length}) for {len(omega)} pairs"
            if not numbers.isfinite().all():
                return f"{call} returns NaN or infinity."
            if same(wanted, numbers):
                continue
            pair = int((~torch.isclose(numbers, wanted, rtol=1e-4, atol=0)).nonzero()[0])
            turns, became = _turns(omega, length)[pair].item(), numbers[pair].item()
            return (
                f"{call}: pair {pair} rotates {turns:.3g} times within {length:,} tokens and is "
                f"{f'divided by {omega[pair].item() / became:.4g}' if became else 'stopped'}, but it should "
                f"{'stay as it is' if turns >= 4 else f'be divided by {factor}' if turns <= 1 else 'get the weighted mean'}."
            )
        return None

    return Exercise(
        cases=cases,
        right=llama3,
        same=same,
        fault=fault,
        mistakes={
            "interpolation": (lambda w, s, n: w / s,
                "You divide all pairs by the same factor, which is position interpolation. Which pairs should stay as they "
                "are?"),
            "NTK-aware": (lambda w, s, n: ntk_aware(w, float(s)),
                "You divide the slowest pair by the factor and the others by powers of it, which is NTK-aware scaling. Here, "
                "the number of rotations within the length decides what happens to each pair."),
            "the base times the factor": (lambda w, s, n: w * s ** -(torch.arange(len(w), dtype=torch.float64) / len(w)),
                "You multiply the base by the factor, so no pair is divided by the whole factor. Here, the number of rotations "
                "within the length decides what happens to each pair."),
            "twice": (lambda w, s, n: _blend(_keep(_turns(w, n)), w, s**2),
                "You divide twice, so slow pairs are divided by the square of the factor."),
            "radians": (lambda w, s, n: _blend(_keep(n * w), w, s),
                "You count radians instead of rotations. One rotation is 2π radians."),
            "the new length": (lambda w, s, n: _blend(_keep(_turns(w, n * s)), w, s),
                "You count rotations within the new length, which is `factor` times as long. But what decides is the number of "
                "rotations within `length` tokens."),
            "upside down": (lambda w, s, n: _blend(_keep(1 / _turns(w, n)), w, s),
                "Your ratio is upside down: the number of rotations is the length divided by the wavelength, not the "
                "wavelength divided by the length."),
            "mean divisors": (lambda w, s, n: w / (_keep(_turns(w, n)) + (1 - _keep(_turns(w, n))) * s),
                "You take a weighted mean of the two divisors, 1 and the factor. Take the weighted mean of the two frequencies "
                "instead."),
            "by wavelength": (lambda w, s, n: _blend(_by_wavelength(w, n), w, s),
                "Your weight γ is linear in the wavelength. It should be linear in the number of rotations, which is inversely "
                "proportional to the wavelength."),
            "by pair": (lambda w, s, n: yarn(w, s, n, fast=4, truncate=False),
                "Your weight γ is linear in the pair's number i, as in YaRN's code. Here, it should be linear in the number of "
                "rotations."),
        },
        praise=f"all {sum(map(len, right))} pairs of three models are right; the third model is Llama 3.1.",
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
        "a factor close to 1": (64, 1e4, 20, 1.01),
        "pair 1": (16, rng.choice((1e3, 1e4)), 1, 1.5),
        "a head of two pairs": (4, 100.0, 1, rng.choice((2.0, 5.0))),
        "a head with 32 channels": (32, rng.choice((1e3, 1e6)), rng.randint(5, 14), rng.choice((1.5, 2.0, 4.0))),
        "a head with 64 channels": (64, rng.choice((1e3, 1e6)), rng.randint(9, 30), rng.choice((1.5, 2.0, 4.0))),
    }

    def right(d: int, base: float, pair: int, factor: float) -> float:
        return base * factor ** (d / (2 * pair))

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "NTK-aware": (lambda d, b, i, s: b * s ** (d / (d - 2)),
                "You return the base of NTK-aware scaling, which divides the slowest pair by the factor. But here, the "
                "argument `pair` says which pair to divide."),
            "whole division": (lambda d, b, i, s: b * s ** (d // (2 * i)),
                "You round the exponent down, because // rounds down after dividing. Use / instead."),
            "brackets": (lambda d, b, i, s: (b * s) ** (d / (2 * i)),
                "You raise the old base to the power, too. Raise only the factor to the power."),
            "one width": (lambda d, b, i, s: b * s ** (8 / i),
                "Your exponent is right only for a head with 16 channels. But a head can have any width, which is given by "
                "d_head."),
            "one base": (lambda d, b, i, s: right(d, 1e4, i, s), "You always start from the base 10,000. Start from `base`."),
            **{f"rounded to {unit:,}": (lambda d, b, i, s, unit=unit: right(d, b, i, s) // unit * unit,
               "You round the base. Return it with all of its digits.") for unit in (1, 10, 100, 1000)},
            "rounded": (lambda d, b, i, s: float(round(right(d, b, i, s))),
                "You round the base. Return it with all of its digits."),
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
        "NTK-aware scaling, a few tokens away": (omega, ntk_aware(omega, factor), trained, rng.randint(5, 12)),
        "Llama 3's form, a few tokens away": (omega, llama3(omega, factor, trained), trained, rng.randint(5, 12)),
        "YaRN's form of a wide head": (wide, yarn(wide, factor, trained), trained, 2 * trained),
        "no stretch, a distance from training": (omega, omega, trained, trained - 1),
        "no stretch, one token farther than in training": (omega, omega, trained, trained),
        "no stretch, twice as far": (wide, wide, trained, 2 * trained),
        "distance 0": (omega, position_interpolation(omega, factor), trained, 0),
        "training on single tokens": (omega, ntk_aware(omega, factor), 1, 3),
        "a single pair": (one, one / 1.5, 5, 4),
        "a distance at which all pairs have nearly come full "
        "circle": (torch.tensor([_CIRCLE / 12, _CIRCLE / 6], dtype=torch.float64),
            torch.tensor([_CIRCLE / 12 - 0.01, _CIRCLE / 6 - 0.02], dtype=torch.float64), 6, 12),
    }  # fmt: skip

    def angles(w: Tensor, t: int, first: int = 0) -> Tensor:
        """(distances, n): the angles of the pairs at the distances in training."""
        return torch.arange(first, t, dtype=torch.float64)[:, None] * w

    def gaps(w: Tensor, v: Tensor, t: int, m: int, first: int = 0) -> Tensor:
        """(distances, n): how far each pair is from its angle at each distance in training, including full rotations."""
        return (m * v - angles(w, t, first)).abs()

    def short(gap: Tensor) -> Tensor:
        return torch.minimum(gap % _CIRCLE, _CIRCLE - gap % _CIRCLE)

    def right(w: Tensor, v: Tensor, t: int, m: int) -> float:
        return float(short(gaps(w, v, t, m)).amax(dim=1).min())

    def seen(w: Tensor, v: Tensor, t: int, m: int, pairs: slice) -> float:
        return float(short(gaps(w, v, t, m))[:, pairs].amax(dim=1).min())

    def chord(w: Tensor, v: Tensor, t: int, m: int) -> float:
        return float((2 * (gaps(w, v, t, m) / 2).sin().abs()).amax(dim=1).min())

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "each pair alone": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).amin(dim=0).max()),
                "In your function, each pair can choose its own distance. But the question is whether all of these angles "
                "occurred together at a single distance."),
            "no turns": (lambda w, v, t, m: float(gaps(w, v, t, m).amax(dim=1).min()),
                "You count full turns as differences. But after a full turn, a pair has the same angle on the circle as "
                "before."),
            **{f"one way round, {name}": (lambda w, v, t, m, turn=turn: float((turn(m * v - angles(w, t)) % _CIRCLE)
                .amax(dim=1).min()),
                "You go round the circle in one direction only. But there are two ways from one angle to another, and the "
                "shorter one counts.")
               for name, turn in (("forwards", torch.clone), ("backwards", torch.neg), ("from the smaller", torch.abs))},
            "wrapped before": (lambda w, v, t, m: float(((m * v) % _CIRCLE - angles(w, t) % _CIRCLE).abs().amax(dim=1).min()),
                "You subtract angles between 0 and 2π. But an angle just below 2π and an angle just above 0 are close "
                "together."),
            "wrapped afterwards": (lambda w, v, t, m: float(short(gaps(w, v, t, m).amax(dim=1)).min()),
                "You remove full turns only from the largest difference. Remove them from the difference of each pair first."),
            "which distance": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).amax(dim=1).argmin()),
                "You return the distance that fits best. Return its largest gap, in radians."),
            "the same distance": (lambda w, v, t, m: float(short((m * v - m * w).abs()).max()),
                "You compare only with the same distance in training. But after a stretch, a different distance may fit "
                "better, and the given one may be longer than any distance in training."),
            "stretched in training": (lambda w, v, t, m: right(v, v, t, m),
                "You use the stretched frequencies in training, too. But the model was trained with the old frequencies, "
                "`omega`."),
            "degrees": (lambda w, v, t, m: math.degrees(right(w, v, t, m)), "You return degrees. Return radians."),
            "sines": (lambda w, v, t, m: float(gaps(w, v, t, m).sin().abs().amax(dim=1).min()),
                "You compare the sines of the differences. But half a turn and no turn have the same sine."),
            "one minus the cosine": (lambda w, v, t, m: float((1 - gaps(w, v, t, m).cos()).amax(dim=1).min()),
                "You return 1 minus the cosine of the angle. Return the angle itself."),
            "half a circle": (lambda w, v, t, m: float((gaps(w, v, t, m) % math.pi).amax(dim=1).min()),
                "You remove half turns. But two opposite angles are as far apart as possible."),
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
        "a larger base": lambda w, s, t: frequencies(2 * len(w), 10_000.0 * s),
        "Llama 3's form": lambda w, s, t: llama3(w, s, t),
        "YaRN's form": lambda w, s, t: yarn(w, s, t),
        "divisors in a mixed order": lambda w, s, t: w / (s + torch.arange(len(w), 0, -1).remainder(3)),
    }
    cases: dict[str, tuple[Tensor, Tensor, int]] = {}
    for name, method in methods.items():
        while True:
            trained, width = rng.randint(60, 200), rng.choice((16, 32, 48))
            omega, factor = frequencies(width, 10_000.0), rng.uniform(2.2, 9.0)
            stretched = method(omega, factor, trained)
            # If the last distance is close to a whole number, or a pair has nearly completed its circle, rounding would decide.
            limits = ((trained - 1) * omega / stretched)[(trained - 1) * omega < _CIRCLE]
            ends = limits[[0, -1]]
            # If the order of the divisors is mixed, neither the first nor the last pair should be the first that runs out.
            inside = "order" not in name or bool((ends > limits.min() + 1).all() and (ends < limits.max() - 1).all())
            if inside and 0.05 < limits.min() % 1 < 0.95 and ((trained - 1) * omega / _CIRCLE - 1).abs().min() > 1e-3:
                break
        cases[name] = (omega, stretched, trained)
    # Pair 4 needs 100.5 tokens for its circle. A text of 101 tokens is longer than that, but its largest distance isn't.
    omega = frequencies(16, (100.5 / _CIRCLE) ** 2)
    by = torch.tensor([1.6, 1.2, 1.505, 1.505, 1.505, 4.0, 4.0, 4.0])
    cases["a pair that has nearly completed its circle in training"] = (omega, omega / by, 101)
    # In training, pair 0 makes between half a rotation and a full rotation, so it counts, and it runs out first.
    slow = torch.tensor([4.0, 0.3], dtype=torch.float64) / 30
    cases["pairs of which none has completed its circle in training"] = (
        slow,
        slow / torch.tensor([2.03, 9.0], dtype=torch.float64),
        31,
    )

    def right(omega: Tensor, stretched: Tensor, trained: int) -> int:
        """Tries one length after another, and checks every pair."""
        seen = (trained - 1) * omega
        swept = torch.arange(16 * trained)[:, None] * stretched  # row L - 1: the largest angle in L tokens
        known = ((swept <= seen) | (seen >= _CIRCLE)).all(dim=1)
        return int(known.long().cumprod(dim=0).sum())

    def limit(w: Tensor, v: Tensor, trained: float, circle: float = _CIRCLE, by: Tensor | None = None) -> Tensor:
        """The largest distance of each pair that hasn't completed its circle, or of all pairs if all have."""
        asked = trained * (w if by is None else by) < circle
        return (trained * w / v)[asked] if asked.any() else trained * w / v

    def tokens(distance: Any) -> int:
        return math.floor(float(distance)) + 1

    def divisors(w: Tensor, v: Tensor, t: int) -> float:
        """The smallest divisor times the number of tokens, for the right pairs."""
        return t * float((w / v)[(t - 1) * w < _CIRCLE].min())

    apart = "You use the number of tokens as a distance. But the first and the last of T tokens aren't T positions apart."
    upside = "Your ratio is upside down: a pair that rotates more slowly reaches further."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "every pair": (lambda w, v, t: tokens((t - 1) * (w / v).min()),
                "You use every pair, even those that completed their circle in training. But these have seen their whole "
                "circle, so they never meet an unseen angle."),
            "the slowest": (lambda w, v, t: tokens((t - 1) * (w / v)[-1]),
                "You use only the slowest pair. But it needn't be the first pair to meet an unseen angle."),
            "a distance": (lambda w, v, t: tokens(limit(w, v, t - 1).min()) - 1,
                "You return the largest distance without an unseen angle. How many tokens does a text with this largest "
                "distance have?"),
            "rounded up": (lambda w, v, t: tokens(limit(w, v, t - 1).min()) + 1,
                "Your number is one token too large: at this length, a pair meets an unseen angle. Round down."),
            **{f"tokens for distances, {more:+d}": (lambda w, v, t, more=more: tokens(limit(w, v, t).min()) + more, apart)
               for more in (-1, 0, 1)},
            "the length divided": (lambda w, v, t: math.floor(divisors(w, v, t)), apart),
            "the length divided, and one": (lambda w, v, t: math.floor(divisors(w, v, t)) + 1, apart),
            "come round by the length": (lambda w, v, t: tokens((t - 1) * (w / v)[t * w < _CIRCLE].min()),
                "You use `trained` to decide whether a pair has completed its circle. Use the largest distance in training, "
                "which is a different number."),
            "upside down": (lambda w, v, t: tokens((t - 1) * (v / w)[(t - 1) * w < _CIRCLE].min()), upside),
            "upside down, the largest": (lambda w, v, t: tokens((t - 1) * (v / w)[(t - 1) * w < _CIRCLE].max()), upside),
            "exchanged": (lambda w, v, t: tokens(limit(v, w, t - 1).min()), upside),
            "come round afterwards": (lambda w, v, t: tokens(limit(w, v, t - 1, by=v).min()),
                "You use the new frequencies to decide whether a pair has completed its circle. That depends on its angles in "
                "training, so use the old frequencies."),
        },
        praise="the first pair that meets an unseen angle sets the length, whichever pair that is.",
    )  # fmt: skip
