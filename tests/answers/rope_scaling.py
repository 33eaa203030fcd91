"""Answers to assignment 13: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

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


def arcs(omega: Tensor, tokens: int, circle: float = 2 * math.pi) -> Tensor:
    return torch.minimum(torch.tensor(circle, dtype=omega.dtype), omega * (tokens - 1))


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


# ── which stretch ────────────────────────────────────────────────────────────────────────────────────────────────────────


def which_in_torch(omega: Tensor, stretched: Tensor) -> str:
    by = omega / stretched
    one = torch.ones_like(by)
    if torch.allclose(by, one):
        return "none"
    if torch.allclose(by, by[0] * one):
        return "PI" if by[0] > 1 else "other"
    if not torch.allclose(by[0], one[0]):
        return "other"
    ratios = by[1:] / by[:-1]
    if torch.allclose(ratios, ratios[0] * one[1:]):
        return "NTK-aware" if ratios[0] > 1 else "other"
    return "by parts" if by[-1] > 1.0001 and torch.allclose(by[-1], by[-2]) else "other"


def which_by_logarithms(omega: Tensor, stretched: Tensor) -> str:
    logs = np.log(omega.numpy()) - np.log(stretched.numpy())
    steps = np.diff(logs)
    if np.ptp(logs) < 1e-6:
        return "none" if abs(logs[0]) < 1e-6 else ("other", "PI")[int(logs[0] > 0)]
    if abs(logs[0]) > 1e-6 or logs[-1] <= 1e-6:
        return "other"
    if np.ptp(steps) < 1e-6:
        return "NTK-aware"
    return "by parts" if abs(steps[-1]) < 1e-6 else "other"


def which_by_rounding(omega: Tensor, stretched: Tensor) -> str:
    by = [round(a / b, 5) for a, b in zip(omega.tolist(), stretched.tolist(), strict=True)]
    if set(by) == {1.0}:
        return "none"
    if len(set(by)) == 1 and by[0] > 1:
        return "PI"
    if by[0] != 1 or by[-1] <= 1:
        return "other"
    step = by[-1] ** (1 / (len(by) - 1))
    if all(math.isclose(value, step**i, rel_tol=1e-3) for i, value in enumerate(by)):
        return "NTK-aware"
    return "by parts" if by[-1] == by[-2] else "other"


def which_by_first(omega: Tensor, stretched: Tensor, close: Callable[..., bool] = torch.allclose) -> str:
    """Asks in the order of the text, and forgets that two of the words want the fastest pair kept."""
    by = omega / stretched
    if close(by, torch.ones_like(by)):
        return "none"
    if close(by, by[0].expand_as(by)) and by[0] > 1:
        return "PI"
    if close(by[1:] / by[:-1], (by[1] / by[0]).expand(len(by) - 1)) and by[1] > 1.01 * by[0]:
        return "NTK-aware"
    return "by parts" if close(by[-1], by[-2]) and by[-1] > 1.01 else "other"


def which_by_ends(omega: Tensor, stretched: Tensor) -> str:
    by = (omega / stretched).tolist()
    if by[0] > 1.001:
        return "PI" if abs(by[0] - by[-1]) < 1e-5 else "other"
    if by[0] < 0.99:
        return "other"
    if abs(by[-1] - by[-2]) > 1e-5:
        return "NTK-aware"
    return "by parts" if by[-1] > 1.01 else "none" if max(by) < 1.01 else "other"


def which_by_first_alone(omega: Tensor, stretched: Tensor) -> str:
    """Every condition but the one on the last two pairs."""
    word, by = which_in_torch(omega, stretched), omega / stretched
    return "by parts" if word == "other" and abs(by[0] - 1) < 1e-6 and by[-1] > 1.01 else word


def which_by_differences(omega: Tensor, stretched: Tensor) -> str:
    word, steps = which_in_torch(omega, stretched), (omega / stretched).diff()
    equal = torch.allclose(steps, steps[:1].expand_as(steps))
    return "other" if word == "NTK-aware" and not equal else word


def which_to_digits(omega: Tensor, stretched: Tensor, rtol: float, growing: bool = True) -> str:
    by = omega / stretched

    def same(numbers: Tensor, number: Tensor | float) -> bool:
        return bool(((numbers / number - 1).abs() <= rtol).all())

    if same(by, by[0]):
        return "none" if same(by, 1.0) else "PI" if by[0] > 1 else "other"
    if not same(by[:1], 1.0):
        return "other"
    ratios = by[1:] / by[:-1]
    if same(ratios, ratios[0]) and (ratios[0] > 1 or not growing):
        return "NTK-aware"
    return "by parts" if same(by[-2:], by[-1]) and by[-1] > 1 + rtol else "other"


def instead(word: str, other: str) -> Callable[[Tensor, Tensor], str]:
    return lambda w, v: other if which_in_torch(w, v) == word else which_in_torch(w, v)


# ── how far ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "rope_scaling.unseen_angles": [unseen_by_loop, unseen_in_numpy, unseen_by_cases, unseen_in_single_precision],
    "rope_scaling.base_for": [base_by_power, base_by_logarithm, base_by_halving, base_from_frequency],
    "rope_scaling.which": [which_in_torch, which_by_logarithms, which_by_rounding],
    "rope_scaling.reach": [reach_by_formula, reach_by_trying, reach_by_unseen, reach_in_numpy],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "rope_scaling.unseen_angles": {
        "all of the long text": (lambda w, t, n: arcs(w, n), "take off what was seen"),
        "tokens for distances": (lambda w, t, n: arcs(w, n + 1) - arcs(w, t + 1), "How far apart"),
        "no circle": (lambda w, t, n: w * (n - 1) - w * (t - 1), "know no end"),
        "one circle of new angles": (lambda w, t, n: torch.clip(w * (n - t), max=2 * np.pi), "come round in training"),
        "a circle for the long text only": (lambda w, t, n: arcs(w, n) - w * (t - 1), "negative arc"),
        "modulo": (lambda w, t, n: torch.fmod((n - 1) * w, 2 * np.pi) - torch.fmod((t - 1) * w, 2 * np.pi), "modulo"),
        "turns": (lambda w, t, n: (arcs(w, n) - arcs(w, t)) / 2 / math.pi, "turns"),
        "degrees": (lambda w, t, n: (arcs(w, n) - arcs(w, t)) * 180 / math.pi, "degrees"),
        "the other way round": (lambda w, t, n: arcs(w, t) - arcs(w, n), "sign"),
        "half a circle": (lambda w, t, n: arcs(w, n, np.pi) - arcs(w, t, np.pi), "ends at π"),
        "a circle of one": (lambda w, t, n: arcs(w, n, 1.0) - arcs(w, t, 1.0), "ends at 1"),
        "wavelengths": (lambda w, t, n: arcs(2 * np.pi / w, n) - arcs(2 * np.pi / w, t), "wavelengths"),
        "one number": (lambda w, t, n: (arcs(w, n) - arcs(w, t)).sum(), "has shape"),
        "whether there are any": (lambda w, t, n: (arcs(w, n) > arcs(w, t)).float(), None),
    },
    "rope_scaling.base_for": {
        "NTK-aware": (lambda d, b, i, s: b * s ** (d / (d - 2)), "slowest pair"),
        "times the factor": (lambda d, b, i, s: s * b, "is not enough"),
        "upside down": (lambda d, b, i, s: b * s ** (2 * i / d), "upside down"),
        "i for 2i": (lambda d, b, i, s: b * s ** (d / i), "too large"),
        "half the width": (lambda d, b, i, s: b * s ** (d / 2 / (2 * i)), "too small"),
        "pairs from 1": (lambda d, b, i, s: b * s ** (d / (2 * (i + 1))), "from 1"),
        "faster": (lambda d, b, i, s: b / s ** (d / (2 * i)), "turns faster"),
        "the change of the base": (lambda d, b, i, s: s ** (d / (2 * i)), "is multiplied: return"),
        "a frequency": (lambda d, b, i, s: 1 / (s * b ** (2 * i / d)), "new frequency"),
        "added": (lambda d, b, i, s: b + s ** (d / (2 * i)), "You add"),
        "the old base": (lambda d, b, i, s: b, "was there before"),
        "whole pairs of an integer division": (lambda d, b, i, s: b * s ** (d // (2 * i)), "it divides pair"),
        "divided by zero": (lambda d, b, i, s: b * s ** (d / (2 * i - 2 * i)), "raised ZeroDivisionError"),
        "one pair early": (lambda d, b, i, s: b * s ** (d / (2 * i - 2)), "it divides pair"),
        "minus the base": (lambda d, b, i, s: -b * s, "a base is more than 1"),
    },
    "rope_scaling.which": {
        "nobody asks the fastest pair": (which_by_first, "stretched twice"),
        "to the last digit": (lambda w, v: which_by_first(w, v, close=torch.equal), None),
        "exact, and the fastest pair asked": (
            lambda w, v: "other" if which_in_torch(w, v) in ("PI", "NTK-aware") else which_in_torch(w, v),
            "Too strict",
        ),
        "by ==": (lambda w, v: which_to_digits(w, v, 0.0), "Too strict"),
        "to eight digits": (lambda w, v: which_to_digits(w, v, 1e-8), "equal to five digits are equal"),
        "to two digits": (lambda w, v: which_to_digits(w, v, 1e-2), "Two digits are too few"),
        "a smaller base": (lambda w, v: which_to_digits(w, v, 1e-5, growing=False), "Equal ratios alone"),
        "two ends": (which_by_ends, None),
        "not asked whether the last two agree": (which_by_first_alone, "last two pairs"),
        "equal differences": (which_by_differences, "equal differences"),
        "by multiplication": (lambda w, v: which_in_torch(v, w), "upside down"),
        "none is PI": (instead("none", "PI"), "table that was left alone PI"),
        "none is NTK-aware": (instead("none", "NTK-aware"), "table that was left alone NTK-aware"),
        "multiplied is PI": (
            lambda w, v: "PI" if v[0] / w[0] == v[-1] / w[-1] and v[0] > w[0] else which_in_torch(w, v),
            "To multiply every pair",
        ),
        "twice, NTK-aware": (
            lambda w, v: (
                "NTK-aware"
                if (w / v).log().diff().std() < 1e-6 and which_in_torch(w, v) == "other" and v[0] < w[0]
                else which_in_torch(w, v)
            ),
            "need not be NTK-aware",
        ),
        "twice, by parts": (
            lambda w, v: "by parts" if which_by_first(w, v) == "by parts" else which_in_torch(w, v),
            "where that one is divided too",
        ),
        "always PI": (lambda w, v: "PI", "You call all"),
        "another word": (lambda w, v: "YaRN", "should be one of"),
        "the divisors": (lambda w, v: w / v, "returned a Tensor"),
        "by parts for what is left": (
            lambda w, v: "by parts" if which_in_torch(w, v) == "other" else which_in_torch(w, v),
            'and should give "other"',
        ),
    },
    "rope_scaling.reach": {
        "every pair": (lambda w, v, t: math.floor((w / v).min() * (t - 1)) + 1, "You ask every pair"),
        "the slowest": (lambda w, v, t: int(w[-1] / v[-1] * (t - 1)) + 1, "slowest pair alone"),
        "the last to run out": (lambda w, v, t: int(reaches(w, v, t - 1).max()) + 1, "wait for the last"),
        "the first of the slow": (lambda w, v, t: int(reaches(w, v, t - 1)[0]) + 1, "fastest of the pairs"),
        "a mean": (lambda w, v, t: int(reaches(w, v, t - 1).mean()) + 1, "A mean over pairs"),
        "a distance": (lambda w, v, t: int(reaches(w, v, t - 1).min()), "the largest distance"),
        "rounded up": (lambda w, v, t: math.ceil(reaches(w, v, t - 1).min()) + 1, "One token too many"),
        "tokens for distances": (lambda w, v, t: int(reaches(w, v, t).min()), "are not T apart"),
        "tokens for distances, and one more": (lambda w, v, t: int(reaches(w, v, t).min()) + 1, "are not T apart"),
        "upside down": (lambda w, v, t: int(reaches(v, w, t - 1).min()) + 1, "Upside down"),
        "by multiplication": (
            lambda w, v, t: int(((t - 1) * (v / w)[w * (t - 1) < 2 * math.pi]).min()) + 1,
            "Upside down",
        ),
        "half a turn": (
            lambda w, v, t: int(((t - 1) * (w / v)[w * (t - 1) < math.pi]).min()) + 1,
            "Half a turn",
        ),
        "come round afterwards": (
            lambda w, v, t: int(((t - 1) * (w / v)[v * (t - 1) < 2 * math.pi]).min()) + 1,
            "a matter of its training",
        ),
        "come round by the text's length": (
            lambda w, v, t: int(((t - 1) * (w / v)[w * t < 2 * math.pi]).min()) + 1,
            "shows at the largest distance",
        ),
        "the trained length, times the divisor": (
            lambda w, v, t: math.floor(t * (w / v)[w * (t - 1) < 2 * math.pi].min()),
            "are not T apart",
        ),
        "the trained length": (lambda w, v, t: t, "This is the trained length"),
        "never": (lambda w, v, t: math.inf, "returned inf"),
        "no floor": (lambda w, v, t: (reaches(w, v, t - 1).min() + 1).item(), "whole number"),
        "the whole table": (reaches, "it should be one number"),
    },
}
