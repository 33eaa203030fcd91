"""Exercises on stretched frequencies: which pairs to keep, and what a stretch does to each pair and to all of them."""

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
    """A share that falls evenly with the wavelength, from length/4 to length."""
    return ((length - _CIRCLE / omega) / (0.75 * length)).clamp(0, 1)


@exercise("my_frequencies", instead_of=[llama3])
def by_parts() -> Exercise:
    """my_frequencies(omega, factor, length) -> stretched frequencies, as many as omega, on three heads of several widths.

    Pairs with four turns or more within `length` stay, those with one or fewer are divided by `factor`; between, the mean of
    both, weighted by a share that grows evenly with the turns.
    """
    cases = [(frequencies(d, base), factor, length) for d, base, factor, length in _HEADS]
    right = [llama3(*case) for case in cases]

    def same(a: Tensor, b: Tensor) -> bool:
        return a.shape == b.shape and torch.allclose(a.double(), b, rtol=1e-4, atol=0)

    def fault(said: Sequence[Tensor]) -> str | None:
        for (omega, factor, length), numbers, wanted in zip(cases, said, right, strict=True):
            call = f"my_frequencies(omega, {factor}, {length}) of {len(omega)} pairs"
            if not numbers.isfinite().all():
                return f"{call} holds NaN or infinity."
            if same(wanted, numbers):
                continue
            pair = int((~torch.isclose(numbers, wanted, rtol=1e-4, atol=0)).nonzero()[0])
            turns, became = _turns(omega, length)[pair].item(), numbers[pair].item()
            return (
                f"{call}: pair {pair} rotates {turns:.3g} times within {length:,} tokens and is "
                f"{f'divided by {omega[pair].item() / became:.4g}' if became else 'stopped'}; it should "
                f"{'stay' if turns >= 4 else f'be divided by {factor}' if turns <= 1 else 'be divided in part'}."
            )
        return None

    return Exercise(
        cases=cases,
        right=llama3,
        same=same,
        fault=fault,
        mistakes={
            "unchanged": (lambda w, s, n: w, "Nothing has changed: the slow pairs have to be slowed down."),
            "interpolation": (lambda w, s, n: w / s,
                "Every pair is divided alike, which is position interpolation: which pairs should be left alone?"),
            "NTK-aware": (lambda w, s, n: ntk_aware(w, float(s)),
                "This divides the slowest pair by the factor and the others by powers of it, which is NTK-aware: here each "
                "pair's turns within the length decide."),
            "the base times the factor": (lambda w, s, n: w * s ** -(torch.arange(len(w), dtype=torch.float64) / len(w)),
                "This is another base, multiplied by the factor, under which no pair is divided by all of it: here each pair's "
                "turns within the length decide."),
            "reversed": (lambda w, s, n: _blend(1 - _keep(_turns(w, n)), w, s),
                "The wrong way round: you divide the pairs that rotate often and keep those that hardly rotate."),
            "wavelengths": (lambda w, s, n: _CIRCLE / llama3(w, s, n),
                "These are wavelengths, tokens per turn: frequencies were asked for, radians per token."),
            "divisors": (lambda w, s, n: w / llama3(w, s, n),
                "You return by how much each pair is divided: divide, and return the frequencies."),
            "shares": (lambda w, s, n: _keep(_turns(w, n)),
                "You return the share that each pair keeps: use it as the weight of its own frequency."),
            "multiplied": (lambda w, s, n: _blend(_keep(_turns(w, n)), w, 1 / s),
                "You multiply by the factor: slow pairs have to become slower."),
            "twice": (lambda w, s, n: _blend(_keep(_turns(w, n)), w, s**2),
                "Divided twice: in the frequencies and in the positions, or by the factor's square."),
            "radians": (lambda w, s, n: _blend(_keep(n * w), w, s), "Your turns are radians: one turn is 2π of them."),
            "the new length": (lambda w, s, n: _blend(_keep(_turns(w, n * s)), w, s),
                "You count turns within the new length: what decides is how often a pair came round in training."),
            "upside down": (lambda w, s, n: _blend(_keep(1 / _turns(w, n)), w, s),
                "Upside down: wavelength over length falls when a pair rotates more often."),
            "unlimited": (lambda w, s, n: _blend((_turns(w, n) - 1) / 3, w, s),
                "The share that a pair keeps leaves 0 to 1: fast pairs get faster, slow ones slower than the factor asks. "
                "Where does it have to stop?"),
            "a step at one": (lambda w, s, n: torch.where(_turns(w, n) <= 1, w / s, w),
                "Without a ramp: pairs below one turn are right, but those between one turn and four should be divided in "
                "part."),
            "a step at four": (lambda w, s, n: torch.where(_turns(w, n) < 4, w / s, w),
                "Without a ramp: pairs above four turns are right, but those between one turn and four should be divided in "
                "part."),
            "mean divisors": (lambda w, s, n: w / (_keep(_turns(w, n)) + (1 - _keep(_turns(w, n))) * s),
                "Your ramp is a mean of the two divisors, 1 and the factor: take the mean of the two frequencies."),
            "by wavelength": (lambda w, s, n: _blend(_by_wavelength(w, n), w, s),
                "Your ramp runs evenly with the wavelength: it should with the turns, which are one over it."),
            "by pair": (lambda w, s, n: yarn(w, s, n, fast=4, truncate=False),
                "Your ramp runs evenly from pair to pair, as in YaRN's code: here it should with the turns."),
            "from no turn": (lambda w, s, n: _blend((_turns(w, n) / 4).clamp(0, 1), w, s),
                "Your ramp begins at 0 turns: it should begin at one."),
        },
        praise=f"all {sum(map(len, right))} pairs of three models, the last of them Llama 3.1's.",
    )  # fmt: skip


@exercise()
def unseen_angles(seed: int) -> Exercise:
    """unseen_angles(omega, trained, length) -> (n,) radians of its circle that each pair meets in `length` tokens for the first
    time after `trained` tokens.
    """
    rng = random.Random(seed)

    def head(width: int) -> Tensor:
        return frequencies(width, rng.choice((1_000.0, 10_000.0, 500_000.0)))

    # A text of one token has the distance 0 and no other, and tells who counts distances from who counts tokens.
    trained = rng.randint(40, 90)
    cases = {
        "training on single tokens": (head(16), 1, rng.randint(9, 20)),
        "a text several times as long": (head(16), trained, trained * rng.randint(2, 8)),
        "a text one token longer": (head(16), trained, trained + 1),
        "a text no longer than in training": (head(12), trained, trained),
        "a wide head": (head(64), 512, 512 * rng.randint(2, 16)),
        "a single pair, which comes round in between": (torch.tensor([0.05], dtype=torch.float64), trained, 4 * trained + 30),
        "a single token each time": (head(8), 1, 1),
    }

    def arc(omega: Tensor, tokens: float, circle: float = _CIRCLE) -> Tensor:
        return ((tokens - 1) * omega).clamp(max=circle)

    def right(omega: Tensor, trained: int, length: int) -> Tensor:
        return arc(omega, length) - arc(omega, trained)

    def last_angles(omega: Tensor, trained: int, length: int) -> Tensor:
        return ((length - 1) * omega) % _CIRCLE - ((trained - 1) * omega) % _CIRCLE

    modulo = "You take angles modulo the circle: they say where a pair ends up, not which arc it has swept on its way."
    tokens = "How far apart can two of T tokens be? Not T."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "all of the long text": (lambda w, t, n: arc(w, n),
                "This is the whole arc of the longer text: take off what was seen in training."),
            "tokens for distances": (lambda w, t, n: arc(w, n + 1) - arc(w, t + 1), tokens),
            "tokens for distances, in training": (lambda w, t, n: arc(w, n) - arc(w, t + 1), tokens),
            "tokens for distances, in the long text": (lambda w, t, n: arc(w, n + 1) - arc(w, t), tokens),
            "no circle": (lambda w, t, n: (n - t) * w,
                "Your arcs know no end: a pair that has come round has seen its whole circle, and nothing on it is new."),
            "one circle of new angles": (lambda w, t, n: ((n - t) * w).clamp(max=_CIRCLE),
                "You limit the difference to one circle: a pair can also come round in training, and nothing is new to it."),
            "no circle for the long text": (lambda w, t, n: torch.where((t - 1) * w >= _CIRCLE, 0.0, (n - t) * w),
                "You ask whether a pair came round in training, and not whether it does in the longer text: its circle has an "
                "end there, too."),
            "no circle in training": (lambda w, t, n: arc(w, n) - (t - 1) * w,
                "A negative arc: in training, too, a pair sees one circle at most."),
            "modulo": (last_angles, modulo),
            "modulo, not below zero": (lambda w, t, n: last_angles(w, t, n).clamp(min=0), modulo),
            "turns": (lambda w, t, n: right(w, t, n) / _CIRCLE,
                "These are turns, parts of the circle: radians were asked for."),
            "degrees": (lambda w, t, n: right(w, t, n).rad2deg(), "These are degrees: radians were asked for."),
            "the other way round": (lambda w, t, n: -right(w, t, n),
                "The sign is the wrong way round: the longer text sees more."),
            "half a circle": (lambda w, t, n: arc(w, n, math.pi) - arc(w, t, math.pi),
                "Your circle ends at π: half of it is missing."),
            "a circle of one": (lambda w, t, n: arc(w, n, 1) - arc(w, t, 1),
                "Your circle ends at 1: angles here are radians, and a turn has 2π of them."),
            "wavelengths": (lambda w, t, n: right(_CIRCLE / w, t, n),
                "You read omega as wavelengths: these are radians per token already."),
            "what is left": (lambda w, t, n: _CIRCLE - arc(w, t),
                "This is what training has left of the circle: how much of it does the longer text reach?"),
            "whether": (lambda w, t, n: (right(w, t, n) > 0).double(),
                "You say whether there is something new: how many radians of it were asked for."),
        },
        praise="the pairs that came round in training have no unseen angle, the others have theirs.",
    )  # fmt: skip


@exercise()
def base_for(seed: int) -> Exercise:
    """base_for(d_head, base, pair, factor) -> the base under which this pair rotates `factor` times slower."""
    rng = random.Random(seed)
    # Not the first pairs of a wide head with a large factor: theirs is a base beyond what 32 bits hold.
    cases = {
        "a pair in the middle": (32, 1e4, 6, 8.0),
        "the slowest pair of Llama 3": (128, 5e5, 63, 8.0),
        "a small base": (16, 11.3, rng.randint(4, 6), 2.7),
        "a factor close to 1": (64, 1e4, 20, 1.01),
        "pair 1": (16, rng.choice((1e3, 1e4)), 1, 1.5),
        "a head of two pairs": (4, 100.0, 1, rng.choice((2.0, 5.0))),
        "a head of 32": (32, rng.choice((1e3, 1e6)), rng.randint(5, 14), rng.choice((1.5, 2.0, 4.0))),
        "a head of 64": (64, rng.choice((1e3, 1e6)), rng.randint(9, 30), rng.choice((1.5, 2.0, 4.0))),
    }

    def right(d: int, base: float, pair: int, factor: float) -> float:
        return base * factor ** (d / (2 * pair))

    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "NTK-aware": (lambda d, b, i, s: b * s ** (d / (d - 2)),
                "This base is NTK-aware scaling's: it divides the slowest pair by the factor, and another pair was asked for."),
            "times the factor": (lambda d, b, i, s: b * s,
                "The base times the factor is not enough: which power of the base is this pair's frequency?"),
            "upside down": (lambda d, b, i, s: b * s ** (2 * i / d),
                "Your exponent is upside down: the smaller a pair's own exponent, the more the base has to grow."),
            "i for 2i": (lambda d, b, i, s: b * s ** (d / i),
                "Your exponent is too large: which power of the base is pair i's frequency? A head has d_head channels."),
            "half the width": (lambda d, b, i, s: b * s ** (d / (4 * i)),
                "Your exponent is too small: a head has d_head channels and half as many pairs. Is something halved twice?"),
            "pairs from 1": (lambda d, b, i, s: b * s ** (d / (2 * i + 2)), "You count pairs from 1: the fastest is pair 0."),
            "faster": (lambda d, b, i, s: b * s ** (-d / (2 * i)), "The wrong way round: under this base the pair is faster."),
            "the change": (lambda d, b, i, s: s ** (d / (2 * i)),
                "This is by how much the base is multiplied: return the base."),
            "a frequency": (lambda d, b, i, s: b ** (-2 * i / d) / s,
                "This is the pair's new frequency: which base has it?"),
            "a wavelength": (lambda d, b, i, s: b ** (2 * i / d) * s,
                "This is one over the pair's new frequency: which base has it?"),
            "added": (lambda d, b, i, s: b + s ** (d / (2 * i)), "You add to the base what it should be multiplied by."),
            "the old base": (lambda d, b, i, s: b,
                "This is the base that was there before: under it no pair is divided by anything."),
            "whole division": (lambda d, b, i, s: b * s ** (d // (2 * i)),
                "Your exponent is rounded down: // divides whole numbers, / leaves nothing out."),
            "brackets": (lambda d, b, i, s: (b * s) ** (d / (2 * i)),
                "You raise the old base to the power as well: only the factor has to be."),
            "one width": (lambda d, b, i, s: b * s ** (8 / i),
                "Your exponent is that of a head of 16 channels: heads come in other widths, d_head."),
            "one base": (lambda d, b, i, s: right(d, 1e4, i, s), "You begin at 10,000 every time: begin at `base`."),
            **{f"rounded to {unit:,}": (lambda d, b, i, s, unit=unit: right(d, b, i, s) // unit * unit,
               "You round the base: leave its digits as they are.") for unit in (1, 10, 100, 1000)},
            "rounded": (lambda d, b, i, s: float(round(right(d, b, i, s))),
                "You round the base: leave its digits as they are."),
        },
        praise=f"in all {len(cases)} heads the pair is divided by the factor, whichever pair it is.",
    )  # fmt: skip


@exercise()
def strangeness(seed: int) -> Exercise:
    """strangeness(omega, stretched, trained, distance) -> radians by which this distance is new to all pairs together.

    For each distance of training, the largest angle between a pair's old place and its new one, the shorter way round; of
    these, the smallest.
    """
    rng = random.Random(seed)
    trained, factor = rng.randint(40, 80), rng.choice((2.0, 4.0, 8.0))
    omega, wide = frequencies(16), frequencies(32, rng.choice((1e3, 5e5)))
    one = torch.tensor([0.9], dtype=torch.float64)
    cases: dict[str, tuple[Tensor, Tensor, int, int]] = {
        "position interpolation, one token away": (omega, position_interpolation(omega, factor), trained, 1),
        "position interpolation, beyond the training": (omega, position_interpolation(omega, factor), trained, 3 * trained + 1),
        "NTK-aware scaling, a few tokens away": (omega, ntk_aware(omega, factor), trained, rng.randint(5, 12)),
        "Llama 3's form, a few tokens away": (omega, llama3(omega, factor, trained), trained, rng.randint(5, 12)),
        "YaRN's form of a wide head": (wide, yarn(wide, factor, trained), trained, 2 * trained),
        "no stretch, a distance of training": (omega, omega, trained, trained - 1),
        "no stretch, one token beyond": (omega, omega, trained, trained),
        "no stretch, twice as far": (wide, wide, trained, 2 * trained),
        "distance 0": (omega, position_interpolation(omega, factor), trained, 0),
        "training on single tokens": (omega, ntk_aware(omega, factor), 1, 3),
        "a single pair": (one, one / 1.5, 5, 4),
        "a distance that returns to the beginning": (torch.tensor([_CIRCLE / 12, _CIRCLE / 6], dtype=torch.float64),
            torch.tensor([_CIRCLE / 12 - 0.01, _CIRCLE / 6 - 0.02], dtype=torch.float64), 6, 12),
    }  # fmt: skip

    def angles(w: Tensor, t: int, first: int = 0) -> Tensor:
        """(distances, n): where the pairs point at the distances of training."""
        return torch.arange(first, t, dtype=torch.float64)[:, None] * w

    def gaps(w: Tensor, v: Tensor, t: int, m: int, first: int = 0) -> Tensor:
        """(distances, n): how far each pair is from its angle at each distance of training, whole turns included."""
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
                "You let each pair choose a distance of its own: the question is whether one distance had all of these angles "
                "together."),
            "no turns": (lambda w, v, t, m: float(gaps(w, v, t, m).amax(dim=1).min()),
                "You count whole turns as differences: a pair that has come round points where it did before."),
            **{f"one way round, {name}": (lambda w, v, t, m, turn=turn: float((turn(m * v - angles(w, t)) % _CIRCLE)
                .amax(dim=1).min()),
                "You go round the circle in one direction only: between two angles there are two ways, and the shorter one "
                "counts.")
               for name, turn in (("forwards", torch.clone), ("backwards", torch.neg), ("from the smaller", torch.abs))},
            "wrapped before": (lambda w, v, t, m: float(((m * v) % _CIRCLE - angles(w, t) % _CIRCLE).abs().amax(dim=1).min()),
                "You subtract angles between 0 and 2π: just below 2π and just above 0 are neighbours."),
            "wrapped afterwards": (lambda w, v, t, m: float(short(gaps(w, v, t, m).amax(dim=1)).min()),
                "You take whole turns off the largest difference: take them off each pair's first."),
            "tokens for distances": (lambda w, v, t, m: right(w, v, t + 1, m),
                "You allow a distance that training never had: how far apart are the first and the last of T tokens?"),
            "one distance less": (lambda w, v, t, m: right(w, v, max(t - 1, 1), m),
                "You leave out the largest distance of training: the first and the last token are trained - 1 apart."),
            "without 0": (lambda w, v, t, m: float(short(gaps(w, v, max(t, 2), m, first=1)).amax(dim=1).min()),
                "You leave out distance 0: a token sees itself in training as well."),
            "the sum": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).sum(dim=1).min()),
                "You add the pairs up: the largest difference of a pair counts."),
            "the mean": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).mean(dim=1).min()),
                "You average over the pairs: the largest difference of a pair counts, since many small ones can hide it."),
            "Euclid": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).norm(dim=1).min()),
                "You take the length of the vector of differences: the largest difference of a pair counts."),
            "the closest pair": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).min()),
                "You ask the pair that fits best: slow pairs always fit, and the pair that fits worst decides."),
            "the farthest distance": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).max()),
                "You take the distance of training that fits worst: the one that fits best decides."),
            "the mean distance": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).amax(dim=1).mean()),
                "You average over the distances of training: the one that fits best decides."),
            "which distance": (lambda w, v, t, m: float(short(gaps(w, v, t, m)).amax(dim=1).argmin()),
                "You return the distance that fits best: by how many radians it misses was asked for."),
            "the same distance": (lambda w, v, t, m: float(short((m * v - m * w).abs()).max()),
                "You compare with the same distance alone: after a stretch another distance of training can fit better, and "
                "this one may be longer than any of training."),
            "the last distance": (lambda w, v, t, m: float(short((m * v - (t - 1) * w).abs()).max()),
                "You compare with the largest distance of training alone: any of its distances can fit."),
            "stretched in training": (lambda w, v, t, m: right(v, v, t, m),
                "You stretch training, too: it happened with the old frequencies, `omega`."),
            "never stretched": (lambda w, v, t, m: right(w, w, t, m),
                "You never use the stretched frequencies: what stands at this distance is theirs."),
            "exchanged": (lambda w, v, t, m: right(v, w, t, m),
                "The two tables have changed places: `omega` was used in training, `stretched` is used now."),
            "degrees": (lambda w, v, t, m: math.degrees(right(w, v, t, m)), "These are degrees: radians were asked for."),
            "turns": (lambda w, v, t, m: right(w, v, t, m) / _CIRCLE, "These are turns: radians were asked for."),
            "chords": (chord,
                "You measure straight through the circle, as between two points: the angle between them was asked for."),
            "sines": (lambda w, v, t, m: float(gaps(w, v, t, m).sin().abs().amax(dim=1).min()),
                "You compare sines of the differences: half a turn has the sine of none."),
            "one minus the cosine": (lambda w, v, t, m: float((1 - gaps(w, v, t, m).cos()).amax(dim=1).min()),
                "You return one minus the cosine of the angle: the angle itself was asked for."),
            "half a circle": (lambda w, v, t, m: float((gaps(w, v, t, m) % math.pi).amax(dim=1).min()),
                "You take off half turns: an arrow that points the other way is as far off as can be."),
            "cosines": (lambda w, v, t, m: float(((m * v).cos() - angles(w, t).cos()).abs().amax(dim=1).min()),
                "You compare cosines: two angles can share one and be far apart."),
            "the fastest pair": (lambda w, v, t, m: seen(w, v, t, m, slice(1)),
                "You ask the fastest pair alone: ask all of them."),
            "the slowest pair": (lambda w, v, t, m: seen(w, v, t, m, slice(-1, None)),
                "You ask the slowest pair alone: ask all of them."),
        },
        praise="a stretch whose every angle is known can still show a mixture that never was.",
    )  # fmt: skip


@exercise()
def reach(seed: int) -> Exercise:
    """reach(omega, stretched, trained) -> the largest number of tokens without an unseen angle."""
    rng = random.Random(seed)
    methods: dict[str, Callable[[Tensor, float, int], Tensor]] = {
        "position interpolation": lambda w, s, t: w / s,
        "NTK-aware scaling": lambda w, s, t: ntk_aware(w, s),
        "a larger base": lambda w, s, t: frequencies(2 * len(w), 10_000.0 * s),
        "Llama 3's form": lambda w, s, t: llama3(w, s, t),
        "YaRN's form": lambda w, s, t: yarn(w, s, t),
        "divisors in no order": lambda w, s, t: w / (s + torch.arange(len(w), 0, -1).remainder(3)),
    }
    cases: dict[str, tuple[Tensor, Tensor, int]] = {}
    for name, method in methods.items():
        while True:
            trained, width = rng.randint(60, 200), rng.choice((16, 32, 48))
            omega, factor = frequencies(width, 10_000.0), rng.uniform(2.2, 9.0)
            stretched = method(omega, factor, trained)
            # Where the last distance lies close to a whole number, or a pair has nearly come round, rounding would decide.
            limits = ((trained - 1) * omega / stretched)[(trained - 1) * omega < _CIRCLE]
            ends = limits[[0, -1]]
            # Where the divisors are in no order, neither the first nor the last pair shall run out first.
            inside = "order" not in name or bool((ends > limits.min() + 1).all() and (ends < limits.max() - 1).all())
            if inside and 0.05 < limits.min() % 1 < 0.95 and ((trained - 1) * omega / _CIRCLE - 1).abs().min() > 1e-3:
                break
        cases[name] = (omega, stretched, trained)
    # Pair 4 needs 100.5 tokens for its circle: a text of 101 is longer than that, its largest distance is not.
    omega = frequencies(16, (100.5 / _CIRCLE) ** 2)
    by = torch.tensor([1.6, 1.2, 1.505, 1.505, 1.505, 4.0, 4.0, 4.0])
    cases["a pair that has nearly come round"] = (omega, omega / by, 101)
    # Pair 0 is between half a turn and one in training: it is asked, and runs out first.
    slow = torch.tensor([4.0, 0.3], dtype=torch.float64) / 30
    cases["no pair that has come round"] = (slow, slow / torch.tensor([2.03, 9.0], dtype=torch.float64), 31)

    def right(omega: Tensor, stretched: Tensor, trained: int) -> int:
        """The lengths one after the other, and every pair asked."""
        seen = (trained - 1) * omega
        swept = torch.arange(16 * trained)[:, None] * stretched  # row L - 1: the largest angle in L tokens
        known = ((swept <= seen) | (seen >= _CIRCLE)).all(dim=1)
        return int(known.long().cumprod(dim=0).sum())

    def limit(w: Tensor, v: Tensor, trained: float, circle: float = _CIRCLE, by: Tensor | None = None) -> Tensor:
        """The largest distance of each pair that has not come round, or of all if none is left."""
        asked = trained * (w if by is None else by) < circle
        return (trained * w / v)[asked] if asked.any() else trained * w / v

    def tokens(distance: Any) -> int:
        return math.floor(float(distance)) + 1

    def divisors(w: Tensor, v: Tensor, t: int) -> float:
        """The smallest divisor times the tokens, of the right pairs."""
        return t * float((w / v)[(t - 1) * w < _CIRCLE].min())

    apart = "The first and the last of T tokens are not T apart."
    upside = "Upside down: a pair that rotates slower reaches further."
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "every pair": (lambda w, v, t: tokens((t - 1) * (w / v).min()),
                "You ask every pair, also those that have come round in training: they know their whole circle, and never run "
                "out."),
            "the slowest": (lambda w, v, t: tokens((t - 1) * (w / v)[-1]),
                "You ask the slowest pair alone: it need not be the first to run out."),
            "the fastest": (lambda w, v, t: tokens((t - 1) * (w / v)[0]), "You ask the fastest pair: it came round long ago."),
            "the last to run out": (lambda w, v, t: tokens(limit(w, v, t - 1).max()),
                "You wait for the last pair to run out: the first one to do so counts."),
            "the first of the slow": (lambda w, v, t: tokens(limit(w, v, t - 1)[0]),
                "You ask the fastest of the pairs that have not come round: it need not be the first to run out."),
            "a mean": (lambda w, v, t: tokens(limit(w, v, t - 1).mean()),
                "A mean over pairs: one that has run out is not helped by the others."),
            "a distance": (lambda w, v, t: tokens(limit(w, v, t - 1).min()) - 1,
                "This is the largest distance that is known, and tokens were asked for: how many of them span it, ends "
                "included?"),
            "rounded up": (lambda w, v, t: tokens(limit(w, v, t - 1).min()) + 1,
                "One token too many: at this length a pair meets an angle that it has not seen. Round down."),
            "rounded": (lambda w, v, t: round(float(limit(w, v, t - 1).min())) + 1,
                "You round to the nearest whole number: half a token too far is an angle too far. Round down."),
            **{f"tokens for distances, {more:+d}": (lambda w, v, t, more=more: tokens(limit(w, v, t).min()) + more, apart)
               for more in (-1, 0, 1)},
            "the length divided": (lambda w, v, t: math.floor(divisors(w, v, t)), apart),
            "the length divided, and one": (lambda w, v, t: math.floor(divisors(w, v, t)) + 1, apart),
            "come round by the length": (lambda w, v, t: tokens((t - 1) * (w / v)[t * w < _CIRCLE].min()),
                "Whether a pair has come round shows at the largest distance of training, and that is not `trained`."),
            "upside down": (lambda w, v, t: tokens((t - 1) * (v / w)[(t - 1) * w < _CIRCLE].min()), upside),
            "upside down, the largest": (lambda w, v, t: tokens((t - 1) * (v / w)[(t - 1) * w < _CIRCLE].max()), upside),
            "exchanged": (lambda w, v, t: tokens(limit(v, w, t - 1).min()), upside),
            "half a turn": (lambda w, v, t: tokens(limit(w, v, t - 1, circle=_CIRCLE / 2).min()),
                "Half a turn is not a circle: a pair has seen all of it after 2π."),
            "come round afterwards": (lambda w, v, t: tokens(limit(w, v, t - 1, by=v).min()),
                "Whether a pair has come round is a matter of its training, and so of the old frequencies, not of the new."),
            "the trained length": (lambda w, v, t: t,
                "This is the trained length: a slower pair reaches further than that."),
        },
        praise="the pair that runs out first sets the length, whichever it is.",
    )  # fmt: skip
