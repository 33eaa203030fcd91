"""Exercise of chapter 13: keep the pairs that turn often, divide those that hardly turn."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, as_table, check
from posenc_course.rope_scaling import llama3, ntk_aware, yarn
from posenc_course.sinusoidal import frequencies

_CASES = ((16, 1e4, 8, 64), (64, 1e4, 4, 2048), (128, 5e5, 8, 8192))  # d_head, base, factor, length


@check(instead_of=[llama3], draws=False)
def by_parts(my_frequencies: Callable[[Tensor, float, int], Any]) -> str:
    """Try my_frequencies(omega, factor, length) -> stretched frequencies, as many as omega, on three heads of several widths.

    Pairs with four turns or more within `length` stay, those with one or fewer are divided by `factor`; between, the mean of
    both, weighted by a share that grows evenly with the turns. Chapter 13.
    """
    yours = [_tried(my_frequencies, *case) for case in _CASES]
    right = [llama3(frequencies(d, base), factor, length) for d, base, factor, length in _CASES]
    if _same(yours, right):
        return f"Right: all {sum(map(len, right))} pairs of three models, the last of them Llama 3.1's."
    for hint, wrong_way in _MISTAKES.items():
        known = [wrong_way(frequencies(d, base), float(factor), length) for d, base, factor, length in _CASES]
        if _same(yours, known):
            return hint
    return _first_wrong(yours, right)


def _tried(my_frequencies: Callable[[Tensor, float, int], Any], d_head: int, base: float, factor: int, length: int) -> Tensor:
    omega = frequencies(d_head, base)
    given = omega.clone()
    call = f"my_frequencies(omega, {factor}, {length}) of {len(omega)} pairs"
    yours = as_table(answer(my_frequencies, given, factor, length, call=call), (len(omega),), call=call)
    if not yours.isfinite().all():
        raise Wrong(f"{call} holds NaN or infinity.")
    if not torch.equal(given, omega):
        raise Wrong(f"{call} changed the omega that it was given, and the model with it: make a new tensor.")
    return yours


def _same(yours: list[Tensor], known: list[Tensor]) -> bool:
    return all(torch.allclose(a, b, rtol=1e-4, atol=0) for a, b in zip(yours, known, strict=True))


def _turns(omega: Tensor, length: float) -> Tensor:
    return length * omega / (2 * math.pi)


def _blend(keep: Tensor, omega: Tensor, factor: float) -> Tensor:
    return keep * omega + (1 - keep) * omega / factor


def _keep(turns: Tensor) -> Tensor:
    return ((turns - 1) / 3).clamp(0, 1)


def _by_wavelength(omega: Tensor, length: float) -> Tensor:
    """A share that falls evenly with the wavelength, from length/4 to length."""
    return ((length - 2 * math.pi / omega) / (0.75 * length)).clamp(0, 1)


_MISTAKES: dict[str, Callable[[Tensor, float, int], Tensor]] = {
    "Nothing has changed: the slow pairs have to be slowed down.": lambda w, s, n: w,
    "Every pair is divided alike, which is position interpolation: which pairs should be left alone?": lambda w, s, n: w / s,
    "This divides the slowest pair by the factor and the others by powers of it, which is NTK-aware: here each pair's turns "
    "within the length decide.": lambda w, s, n: ntk_aware(w, s),
    "This is another base, multiplied by the factor, under which no pair is divided by all of it: here each pair's turns "
    "within the length decide.": lambda w, s, n: w * s ** -(torch.arange(len(w), dtype=torch.float64) / len(w)),
    "The wrong way round: you divide the pairs that turn often and keep those that hardly turn.":
        lambda w, s, n: _blend(1 - _keep(_turns(w, n)), w, s),
    "These are wavelengths, tokens per turn: frequencies were asked for, radians per token.":
        lambda w, s, n: 2 * math.pi / llama3(w, s, n),
    "You return by how much each pair is divided: divide, and return the frequencies.": lambda w, s, n: w / llama3(w, s, n),
    "You return the share that each pair keeps: use it as the weight of its own frequency.":
        lambda w, s, n: _keep(_turns(w, n)),
    "You multiply by the factor: slow pairs have to become slower.":
        lambda w, s, n: _blend(_keep(_turns(w, n)), w, 1 / s),
    "Divided twice: in the frequencies and in the positions, or by the factor's square.":
        lambda w, s, n: _blend(_keep(_turns(w, n)), w, s**2),
    "Your turns are radians: one turn is 2π of them.": lambda w, s, n: _blend(_keep(n * w), w, s),
    "You count turns within the new length: what decides is how often a pair turned in training.":
        lambda w, s, n: _blend(_keep(_turns(w, n * s)), w, s),
    "Upside down: wavelength over length falls when a pair turns more often.":
        lambda w, s, n: _blend(_keep(1 / _turns(w, n)), w, s),
    "The share that a pair keeps leaves 0 to 1: fast pairs get faster, slow ones slower than the factor asks. Where does "
    "it have to stop?": lambda w, s, n: _blend((_turns(w, n) - 1) / 3, w, s),
    "Without a ramp: pairs below one turn are right, but those between one turn and four should be divided in part.":
        lambda w, s, n: torch.where(_turns(w, n) <= 1, w / s, w),
    "Without a ramp: pairs above four turns are right, but those between one turn and four should be divided in part.":
        lambda w, s, n: torch.where(_turns(w, n) < 4, w / s, w),
    "Your ramp is a mean of the two divisors, 1 and the factor: take the mean of the two frequencies.":
        lambda w, s, n: w / (_keep(_turns(w, n)) + (1 - _keep(_turns(w, n))) * s),
    "Your ramp runs evenly with the wavelength: it should with the turns, which are one over it.":
        lambda w, s, n: _blend(_by_wavelength(w, n), w, s),
    "Your ramp runs evenly from pair to pair, as in YaRN's code: here it should with the turns.":
        lambda w, s, n: yarn(w, s, n, fast=4, truncate=False),
    "Your ramp begins at 0 turns: it should begin at one.": lambda w, s, n: _blend((_turns(w, n) / 4).clamp(0, 1), w, s),
}  # fmt: skip


def _first_wrong(yours: list[Tensor], right: list[Tensor]) -> str:
    for (d_head, base, factor, length), said, expected in zip(_CASES, yours, right, strict=True):
        wrong = ~torch.isclose(said, expected, rtol=1e-4, atol=0)
        if not wrong.any():
            continue
        pair = int(wrong.nonzero()[0])
        omega = frequencies(d_head, base)[pair].item()
        turns = _turns(torch.tensor(omega), length).item()
        wanted = "stay" if turns >= 4 else f"be divided by {factor}" if turns <= 1 else "be divided in part"
        became = f"divided by {omega / said[pair].item():.4g}" if said[pair] != 0 else "stopped"
        return (
            f"my_frequencies(omega, {factor}, {length}) of {len(said)} pairs: pair {pair} makes {turns:.3g} turns within "
            f"{length:,} tokens and is {became}; it should {wanted}."
        )
    raise AssertionError("an answer that is wrong nowhere is right")
