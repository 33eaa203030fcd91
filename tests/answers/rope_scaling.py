"""Answers to the exercises on stretched frequencies."""

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.rope_scaling import llama3
from posenc_course.sinusoidal import frequencies
from tests.answers import right, wrong


@right("rope_scaling.by_parts")
def numpy_by_parts(omega: Tensor, factor: float, length: int) -> Any:
    w = omega.numpy()
    return w / factor + np.clip((length * w / (2 * np.pi) - 1) / 3, 0, 1) * (w - w / factor)


@right("rope_scaling.by_parts")
def by_parts_right(omega: Tensor, factor: float, length: int) -> Any:
    return llama3(omega, factor, length)


def turns(omega: Tensor, length: float) -> Tensor:
    return length * omega / (2 * math.pi)


def kept(n: Tensor) -> Tensor:
    return ((n - 1) / 3).clamp(0, 1)


@right("rope_scaling.by_parts")
def by_parts_right_2(w: Any, s: Any, n: Any) -> Any:
    return w / (1 / (kept(turns(w, n)) + (1 - kept(turns(w, n))) / s))


@wrong("rope_scaling.by_parts", "You treat all pairs by one rule")
def by_parts_base_times_factor(w: Any, s: Any, n: Any) -> Any:
    return frequencies(2 * len(w), s * float(w[1]) ** -len(w))


@wrong("rope_scaling.by_parts", "You divide twice")
def by_parts_divided_twice(w: Any, s: Any, n: Any) -> Any:
    return llama3(w, s**2, n)


@wrong("rope_scaling.by_parts", "You don't count rotations")
def by_parts_the_new_length(w: Any, s: Any, n: Any) -> Any:
    return llama3(w, s, s * n)


@wrong("rope_scaling.by_parts", "weighted mean of the two frequencies")
def by_parts_ramp_in_wavelengths(w: Any, s: Any, n: Any) -> Any:
    keep = ((n - 2 * math.pi / w) / (n - n / 4)).clamp(0, 1)
    return keep * w + (1 - keep) * w / s


@wrong("rope_scaling.by_parts", "You divide the fast pairs")
def by_parts_exchanged(w: Any, s: Any, n: Any) -> Any:
    return w + w / s - llama3(w, s, n)


@right("rope_scaling.base_for")
def base_by_power(d_head: int, base: float, pair: int, factor: float) -> float:
    return base * factor ** (d_head / (2 * pair))


@right("rope_scaling.base_for")
def base_by_logarithms(d_head: int, base: float, pair: int, factor: float) -> Tensor:
    log_period = torch.tensor(base, dtype=torch.float64).log() * 2 * pair / d_head + math.log(factor)
    return (log_period * d_head / (2 * pair)).exp()


@right("rope_scaling.base_for")
def base_by_old_frequency(d_head: int, base: float, pair: int, factor: float) -> float:
    return (frequencies(d_head, base)[pair].item() / factor) ** (-d_head / (2 * pair))


@wrong("rope_scaling.base_for", "base of NTK-aware scaling")
def base_for_ntk(d: Any, b: Any, i: Any, s: Any) -> Any:
    return b * s ** (d / (d - 2))


@wrong("rope_scaling.base_for", "Return the new base")
def base_for_frequency(d: Any, b: Any, i: Any, s: Any) -> Any:
    return frequencies(d, b)[i] / s


@wrong("rope_scaling.base_for", "Your exponent is wrong")
def base_for_whole_division(d: Any, b: Any, i: Any, s: Any) -> Any:
    return b * s ** (d // (2 * i))


@wrong("rope_scaling.base_for", "You raise the old base")
def base_for_brackets(d: Any, b: Any, i: Any, s: Any) -> Any:
    return (b * s) ** (d / (2 * i))


@right("rope_scaling.strangeness")
def strange(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> Tensor:
    gap = distance * stretched - torch.arange(trained)[:, None] * omega
    return torch.atan2(gap.sin(), gap.cos()).abs().amax(dim=1).min()


@right("rope_scaling.strangeness")
def strange_by_rounding(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> Any:
    turned = (np.outer(np.arange(trained), omega.numpy()) - distance * stretched.numpy()) / (2 * np.pi)
    return 2 * np.pi * np.abs(turned - np.round(turned)).max(axis=1).min()


@right("rope_scaling.strangeness")
def strange_in_the_plane(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> float:
    arrows = [cmath.exp(1j * distance * v) for v in stretched.tolist()]
    return min(
        max(abs(cmath.phase(b / cmath.exp(1j * seen * w))) for b, w in zip(arrows, omega.tolist(), strict=True))
        for seen in range(trained)
    )


def by_gap(
    case: tuple[Any, ...],
    change: Callable[[Tensor], Tensor] = torch.abs,
    pairs: Callable[[Tensor], Tensor] = lambda gap: gap.amax(dim=1),
    distances: Callable[[Tensor], Any] = torch.min,
) -> Any:
    """What becomes of the angle between now and then, of all pairs, and of all distances of training."""
    omega, stretched, trained, distance = case
    return distances(pairs(change(distance * stretched - torch.arange(trained)[:, None] * omega)))


def folded(gap: Tensor) -> Tensor:
    return torch.pi - (gap % (2 * torch.pi) - torch.pi).abs()


@wrong("rope_scaling.strangeness", "its own distance")
def strangeness_each_pair_alone(*case: Any) -> Any:
    return by_gap(case, folded, lambda gap: gap.amin(dim=0), torch.max)


@wrong("rope_scaling.strangeness", "full turns don't count")
def strangeness_no_turns(*case: Any) -> Any:
    return by_gap(case)


@wrong("rope_scaling.strangeness", "Return the angle itself")
def strangeness_one_minus_the_cosine(*case: Any) -> Any:
    return by_gap(case, lambda gap: 1 - gap.cos())


@wrong("rope_scaling.strangeness", "the worst pair decides")
def strangeness_mean(*case: Any) -> Any:
    return by_gap(case, folded, lambda gap: gap.mean(dim=1))


@wrong("rope_scaling.strangeness", "all distances in training")
def strangeness_one_distance_more(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> Any:
    return by_gap((omega, stretched, trained + 1, distance), folded)


@wrong("rope_scaling.strangeness", "The model was trained with `omega`")
def strangeness_stretched_before(omega: Tensor, stretched: Tensor, trained: int, distance: int) -> Any:
    return by_gap((stretched, stretched, trained, distance), folded)


@right("rope_scaling.reach")
def reach_by_formula(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = (trained - 1) * omega
    limits = (seen / stretched)[seen < 2 * math.pi]
    return math.floor(limits.min()) + 1


@right("rope_scaling.reach")
def reach_rounded(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[seen < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


@right("rope_scaling.reach")
def reach_plain_floor(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return int(torch.floor((seen / stretched)[seen < 2 * math.pi].min())) + 1


@wrong("rope_scaling.reach", "You use the wrong pairs")
def reach_stretched_came_round(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[stretched * (trained - 1) < 2 * math.pi].min().item() * (1 + 1e-9)) + 1


@wrong("rope_scaling.reach", "Every number is 1 too large")
def reach_next_whole(omega: Tensor, stretched: Tensor, trained: int) -> int:
    seen = omega * (trained - 1)
    return math.ceil((seen / stretched)[seen < 2 * math.pi].min().item() * (1 - 1e-9)) + 1


@wrong("rope_scaling.reach", "aren't T positions apart")
def reach_lengths_times_factor(omega: Tensor, stretched: Tensor, trained: int) -> int:
    return math.floor(trained * (omega / stretched)[omega * (trained - 1) < 2 * math.pi].min().item() * (1 + 1e-9))


@wrong("rope_scaling.reach", "You use the wrong pairs")
def reach_open_by_length(omega: Tensor, stretched: Tensor, trained: int) -> int:
    """A pair has come round where its wavelength is no longer than the text, not its largest distance."""
    seen = omega * (trained - 1)
    return math.floor((seen / stretched)[omega * trained < 2 * math.pi].min().item() * (1 + 1e-9)) + 1
