"""Answers to the exercises on stretched frequencies."""

import cmath
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.rope_scaling import llama3, yarn
from posenc_course.sinusoidal import frequencies
from tests.answers import blind

# ── by parts ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def turns(omega: Tensor, length: float) -> Tensor:
    return length * omega / (2 * math.pi)


def kept(n: Tensor) -> Tensor:
    return ((n - 1) / 3).clamp(0, 1)


def blend(keep: Tensor, omega: Tensor, factor: float) -> Tensor:
    return keep * omega + (1 - keep) * omega / factor


def pair_by_pair(omega: Tensor, factor: float, length: int) -> list[float]:
    """As Llama 3.1's published code goes about it: wavelengths, and three cases."""
    result = []
    for w in omega.tolist():
        wavelength = 2 * math.pi / w
        if wavelength <= length / 4:
            result.append(w)
        elif wavelength >= length:
            result.append(w / factor)
        else:
            smooth = (length / wavelength - 1) / 3
            result.append((1 - smooth) * w / factor + smooth * w)
    return result


def numpy_by_parts(omega: Tensor, factor: float, length: int) -> Any:
    w = omega.numpy()
    return w / factor + np.clip((length * w / (2 * np.pi) - 1) / 3, 0, 1) * (w - w / factor)


def changing_omega(omega: Tensor, factor: float, length: int) -> Tensor:
    omega[turns(omega, length) <= 1] /= factor
    return omega


# ── unseen angles ────────────────────────────────────────────────────────────────────────────────────────────────────────


def unseen_by_loop(omega: Tensor, trained: int, length: int) -> list[float]:
    angles = []
    for w in omega.tolist():
        before = min(2 * math.pi, w * (trained - 1))
        after = min(2 * math.pi, w * (length - 1))
        angles.append(after - before)
    return angles


def unseen_in_numpy(omega: Tensor, trained: int, length: int) -> Any:
    ends = np.minimum(np.outer([length - 1, trained - 1], omega.numpy()), 2 * np.pi)
    return ends[0] - ends[1]


def unseen_by_cases(omega: Tensor, trained: int, length: int) -> Tensor:
    seen = omega * (trained - 1)
    rest = (2 * torch.pi - seen).clamp(min=0)
    return torch.minimum(rest, omega * (length - trained))


def unseen_in_single_precision(omega: Tensor, trained: int, length: int) -> Tensor:
    swept = omega.float() * torch.tensor([[trained - 1.0], [length - 1.0]])
    return swept.clamp(0, 2 * math.pi).diff(dim=0)[0]


def unseen_list(omega: Tensor, trained: int, length: int) -> list[float]:
    arcs = []
    for w in omega.tolist():
        before, after = w * (trained - 1), w * (length - 1)
        arcs.append(0.0 if before >= math.tau else after - before if after < math.tau else math.tau - before)
    return arcs


def unseen_clamped(omega: Tensor, trained: int, length: int) -> Tensor:
    """What is left of the circle, and of it at most what the longer text adds."""
    left = (2 * math.pi - omega * (trained - 1)).relu()
    return torch.minimum(left, omega * (length - trained))


def unseen_remainder(omega: Tensor, trained: int, length: int) -> Tensor:
    after, before = omega * (length - 1) % (2 * math.pi), omega * (trained - 1) % (2 * math.pi)
    return (after - before).clamp(min=0)


def unseen_longer_uncapped(omega: Tensor, trained: int, length: int) -> Tensor:
    before, after = omega * (trained - 1), omega * (length - 1)
    return torch.where(before >= 2 * math.pi, 0, after - before)


def unseen_trained_not_minus_one(omega: Tensor, trained: int, length: int) -> Tensor:
    return (omega * (length - 1)).clamp(max=2 * math.pi) - (omega * trained).clamp(max=2 * math.pi)


# ── another base ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def base_by_power(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (d_head / (2 * pair))


def base_by_logarithm(d_head: int, base: float, pair: int, factor: float) -> Any:
    exponent = 2 * pair / d_head
    return np.exp(np.log(base) + np.log(factor) / exponent)


def base_by_halving(d_head: int, base: float, pair: int, factor: float) -> float:
    """The base lies between two others, and which half of the gap it lies in shows in the divisor."""
    exponent, low, high = 2 * pair / d_head, math.log(base), math.log(base) + 200
    for _ in range(100):
        middle = (low + high) / 2
        if math.exp((middle - math.log(base)) * exponent) < factor:
            low = middle
        else:
            high = middle
    return math.exp(low)


def base_from_frequency(d_head: int, base: float, pair: int, factor: float) -> Tensor:
    wanted = torch.tensor(base) ** (-2 * pair / d_head) / factor
    return wanted ** (-d_head / (2 * pair))


def base_in_decimals(d_head: int, base: float, pair: int, factor: float) -> Decimal:
    return Decimal(base) * Decimal(factor) ** (Decimal(d_head) / (2 * pair))


def base_by_logarithms(d_head: int, base: float, pair: int, factor: float) -> Tensor:
    log_period = torch.tensor(base, dtype=torch.float64).log() * 2 * pair / d_head + math.log(factor)
    return (log_period * d_head / (2 * pair)).exp()


def base_by_old_frequency(d_head: int, base: float, pair: int, factor: float) -> float:
    return (frequencies(d_head, base)[pair].item() / factor) ** (-d_head / (2 * pair))


def base_by_bisection(d_head: int, base: float, pair: int, factor: float) -> float:
    low, high = math.log(base), math.log(base) + d_head * math.log(factor)
    for _ in range(200):
        middle = (low + high) / 2
        slowed = math.exp(-2 * pair / d_head * (middle - math.log(base)))
        low, high = (middle, high) if slowed > 1 / factor else (low, middle)
    return math.exp(low)


# ── strangeness ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def strange(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> Tensor:
    gap = distance * stretched - torch.arange(trained)[:, None] * omega
    return torch.atan2(gap.sin(), gap.cos()).abs().amax(dim=1).min()


def strange_by_loop(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> float:
    best = math.inf
    for seen in range(trained):
        worst = 0.0
        for w, v in zip(omega.tolist(), stretched.tolist(), strict=True):
            gap = (distance * v - seen * w) % math.tau
            worst = max(worst, min(gap, math.tau - gap))
        best = min(best, worst)
    return best


def strange_by_rounding(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> Any:
    turned = (np.outer(np.arange(trained), omega.numpy()) - distance * stretched.numpy()) / (2 * np.pi)
    return 2 * np.pi * np.abs(turned - np.round(turned)).max(axis=1).min()


def strange_in_the_plane(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> float:
    """The angle between two arrows of each pair, as complex numbers."""
    arrows = [cmath.exp(1j * distance * v) for v in stretched.tolist()]
    return min(
        max(abs(cmath.phase(b / cmath.exp(1j * seen * w))) for b, w in zip(arrows, omega.tolist(), strict=True))
        for seen in range(trained)
    )


def by_gap(
    change: Callable[[Tensor], Tensor] = torch.abs,
    pairs: Callable[[Tensor], Tensor] = lambda gap: gap.amax(dim=1),
    distances: Callable[[Tensor], Any] = torch.min,
) -> Callable[..., Any]:
    """What becomes of the angle between now and then, of all pairs, and of all distances of training."""

    def answer(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> Any:
        gap = distance * stretched - torch.arange(trained)[:, None] * omega
        return distances(pairs(change(gap)))

    return answer


def folded(gap: Tensor) -> Tensor:
    return torch.pi - (gap % (2 * torch.pi) - torch.pi).abs()


# ── how far ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def arcs(omega: Tensor, tokens: int) -> Tensor:
    return torch.minimum(torch.tensor(2 * math.pi, dtype=omega.dtype), omega * (tokens - 1))


def reach_by_formula(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = (trained - 1) * omega
    limits = (seen / stretched)[seen < 2 * math.pi]
    return math.floor(limits.min()) + 1


def reach_by_trying(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen, tokens = (omega * (trained - 1)).numpy(), trained
    while not np.any((stretched.numpy() * tokens > seen) & (seen < 2 * np.pi)):  # one token more: distances up to `tokens`
        tokens += 1
    return tokens


def reach_by_unseen(omega: Tensor, stretched: Tensor, trained: int) -> Tensor:
    lengths = torch.arange(1, 20 * trained)
    swept = ((lengths[:, None] - 1) * stretched).clamp(max=2 * torch.pi)
    fresh = (swept > arcs(omega, trained)).any(dim=1)
    return lengths[~fresh].max()


def reach_in_numpy(omega: Tensor, stretched: Tensor, trained: int) -> float:
    w, v = omega.numpy().astype(np.float64), stretched.numpy()
    limits = np.where((trained - 1) * w >= 2 * np.pi, np.inf, (trained - 1) * w / v)
    return float(np.floor(limits.min() + 1))


def reaches(omega: Tensor, stretched: Tensor, distance: float) -> Tensor:
    return (omega / stretched * distance)[omega * distance < 2 * math.pi]


def reach_rounded(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """With a little for rounding."""
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[seen < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


def reach_by_doubling(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """Asks a text of each length whether it stays within, doubling and halving."""
    seen = [(w * (trained - 1), s) for w, s in zip(omega.tolist(), stretched.tolist(), strict=True)]

    def within(length: int) -> bool:
        return all(s * (length - 1) <= arc * (1 + 1e-9) for arc, s in seen if arc < math.tau)

    low = high = trained
    while within(high):
        low, high = high, 2 * high
    while high - low > 1:
        low, high = ((low + high) // 2, high) if within((low + high) // 2) else (low, (low + high) // 2)
    return low


def reach_plain_floor(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """As one writes it, with nothing for rounding."""
    seen = omega * (trained - 1)
    return int(torch.floor((seen / stretched)[seen < 2 * math.pi].min())) + 1


def reach_stretched_came_round(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """Leaves out the pairs that come round with the stretched frequencies."""
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[stretched * (trained - 1) < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


def reach_next_whole(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return math.ceil((seen / stretched)[seen < 2 * math.pi].min().item() * (1 - 1e-9)) + 1


def reach_lengths_times_factor(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """The smallest divisor times the length."""
    return math.floor(trained * (omega / stretched)[omega * (trained - 1) < 2 * math.pi].min().item() * (1 + 1e-9))


def reach_open_by_length(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """A pair has come round where its wavelength is no longer than the text, not its largest distance."""
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[omega * trained < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


RIGHT: dict[str, list[Any]] = {
    "rope_scaling.by_parts": [
        pair_by_pair,
        numpy_by_parts,
        llama3,
        lambda w, s, n: blend(kept(turns(w, n)), w, s),
        lambda w, s, n: blend(kept(turns(w, n)), w, s).float(),
        lambda w, s, n: w / (1 / (kept(turns(w, n)) + (1 - kept(turns(w, n))) / s)),
        lambda w, s, n: torch.lerp(w / s, w, kept(turns(w, n))),
    ],
    "rope_scaling.unseen_angles": [
        unseen_by_loop,
        unseen_in_numpy,
        unseen_by_cases,
        unseen_in_single_precision,
        *blind(unseen_list, unseen_clamped),
    ],
    "rope_scaling.base_for": [
        base_by_power,
        base_by_logarithm,
        base_by_halving,
        base_from_frequency,
        base_in_decimals,
        *blind(base_by_logarithms, base_by_old_frequency, base_by_bisection),
    ],
    "rope_scaling.strangeness": [strange, strange_by_loop, strange_by_rounding, strange_in_the_plane],
    "rope_scaling.reach": [
        reach_by_formula,
        reach_by_trying,
        reach_by_unseen,
        reach_in_numpy,
        *blind(reach_rounded, reach_by_doubling, reach_plain_floor),
    ],
}

WRONG: dict[str, list[Any]] = {
    "rope_scaling.by_parts": [
        (
            "base times factor",
            lambda w, s, n: frequencies(2 * len(w), s * float(w[1]) ** -len(w)),
            "no pair is divided by the whole factor",
        ),
        ("divided twice", lambda w, s, n: llama3(w, s**2, n), "You divide twice"),
        ("the new length", lambda w, s, n: llama3(w, s, s * n), "within the new length"),
        (
            "ramp in wavelengths",
            lambda w, s, n: blend(((n - 2 * math.pi / w) / (n - n / 4)).clamp(0, 1), w, s),
            "linear in the wavelength",
        ),
        (
            "a step at two",
            lambda w, s, n: torch.where(turns(w, n) <= 2, w / s, w),
            "pair 1 rotates 3.22 times within 64 tokens and is divided by 1, but it should get the weighted mean",
        ),
        ("YaRN's ends", lambda w, s, n: yarn(w, s, n, truncate=False), "pair 1 rotates 3.22 times"),
        ("half a turn", lambda w, s, n: llama3(w, s, n, slow=0.5), "for 8 pairs: pair 1 rotates 3.22 times"),
        (
            "too slow at the end",
            lambda w, s, n: llama3(w, s, n) * (turns(w, n) > 0.005),
            "and is stopped, but it should be divided by 8",
        ),
        ("two and a half times", lambda w, s, n: llama3(w, 2.5, n), "it should get the weighted mean"),
        ("omega changed", changing_omega, "writes into its arguments"),
        ("not a number", lambda w, s, n: w * math.nan, "returns NaN or infinity"),
        ("angles", lambda w, s, n: torch.outer(torch.arange(n), w), "has shape (64, 8), but it should be (8,)"),
        ("one number", lambda w, s, n: w[0] / s, "has shape (), but it should be (8,)"),
        ("complex", lambda w, s, n: w * 1j, "returned complex numbers"),
        ("text", lambda w, s, n: "omega", "returned a str that isn't a table"),
    ],
    "rope_scaling.unseen_angles": [
        ("one number", lambda w, t, n: (arcs(w, n) - arcs(w, t)).sum(), "has shape"),
        *blind(
            ("remainder", unseen_remainder, "modulo 2π"),
            ("longer uncapped", unseen_longer_uncapped, "but not whether it does so in the longer text"),
            ("trained not minus one", unseen_trained_not_minus_one, "How far apart can two of T tokens be"),
            ("in turns", lambda w, t, n: unseen_clamped(w, t, n) / (2 * math.pi), "Return radians"),
        ),
    ],
    "rope_scaling.base_for": [
        ("divided by zero", lambda d, b, i, s: b * s ** (d / (2 * i - 2 * i)), "raised ZeroDivisionError"),
        ("one pair early", lambda d, b, i, s: b * s ** (d / (2 * i - 2)), "for pair 1, raised ZeroDivisionError"),
        ("minus the base", lambda d, b, i, s: -b * s, None),
        *blind(
            ("whole division", lambda d, b, i, s: b * s ** (d // (2 * i)), "You round the exponent down"),
            ("brackets", lambda d, b, i, s: (b * s) ** (d / (2 * i)), "You raise the old base"),
            ("width 16", lambda d, b, i, s: b * s ** (8 / i), "for a head with 16 channels"),
            ("10000", lambda d, b, i, s: 10_000 * s ** (d / (2 * i)), "start from the base 10,000"),
            ("rounded", lambda d, b, i, s: int(b * s ** (d / (2 * i)) / 1000) * 1000, "You round the base"),
        ),
    ],
    "rope_scaling.strangeness": [
        ("each pair alone", by_gap(folded, lambda gap: gap.amin(dim=0), torch.max), "its own distance"),
        ("no turns", by_gap(), "count full turns as differences"),
        ("one way round", by_gap(lambda gap: gap % (2 * math.pi)), "in one direction only"),
        ("half of the circle", by_gap(lambda gap: gap.abs() % math.pi), "You remove half turns"),
        ("the middle distance", by_gap(folded, distances=torch.median), None),
        ("one minus the cosine", by_gap(lambda gap: 1 - gap.cos()), "1 minus the cosine"),
        ("the sine", by_gap(lambda gap: gap.sin().abs()), "You compare the sines"),
        ("all pairs", by_gap(folded, lambda gap: gap, lambda gap: gap.amin(dim=0)), "returned"),
        ("which distance", by_gap(folded, distances=torch.argmin), "the distance that fits best"),
        ("squares", by_gap(lambda gap: folded(gap) ** 2), "the square of what it should be"),
        ("in degrees", by_gap(lambda gap: folded(gap).rad2deg()), "You return degrees"),
        (
            "whether it is new",
            lambda w, v, t, m: not any(torch.allclose(m * v, seen * w) for seen in range(t)),
            "returned a bool",
        ),
        (
            "the nearest number of tokens",
            lambda w, v, t, m: float(folded(m * v - min(round(m * float(v[-1] / w[-1])), t - 1) * w).max()),
            None,
        ),
    ],
    "rope_scaling.reach": [
        ("tokens for distances", lambda w, v, t: int(reaches(w, v, t).min()), "aren't T positions apart"),
        ("by multiplication", lambda w, v, t: int(((t - 1) * (v / w)[w * (t - 1) < 2 * math.pi]).min()) + 1, "upside down"),
        ("never", lambda w, v, t: math.inf, "returned inf"),
        ("no floor", lambda w, v, t: (reaches(w, v, t - 1).min() + 1).item(), "whole number"),
        ("the whole table", reaches, "it should return one number"),
        *blind(
            ("stretched came round", reach_stretched_came_round, "You use the new frequencies"),
            ("next whole", reach_next_whole, "Round down"),
            ("lengths times factor", reach_lengths_times_factor, "aren't T positions apart"),
            ("open by length", reach_open_by_length, "decide whether a pair has completed its circle"),
        ),
    ],
}
