"""Exercise of chapter 05: how much of a vector is position."""

import math
from collections.abc import Callable
from typing import Any

from posenc_course.checks._verdict import answer, as_number, check

# Width, standard deviation of the word vectors' channels, and the share of the squared length that shall be position.
_CASES = (
    (64, 1.0, 0.5),
    (512, 512**-0.5, 1 / 3),
    (512, 1.0, 1 / 3),
    (128, 0.02, 0.1),
    (32, 2.0, 0.9),
    (1000, 0.1, 0.01),
)


@check(draws=False)
def factor(my_factor: Callable[[int, float, float], Any]) -> str:
    """Try my_factor(d_model, std, share) -> the factor of the word vectors that gives the position this share. Chapter 05."""
    said = [_said(my_factor, *case) for case in _CASES]
    if _agree(said, _right):
        return f"Right: all {len(_CASES)} shares come out as asked, and the width had no say in any of them."
    return next((hint for known, hint in _MISTAKES if _agree(said, known)), None) or _first_wrong(said)


def _said(my_factor: Callable[[int, float, float], Any], d_model: int, std: float, share: float) -> float:
    call = _call(d_model, std, share)
    result = answer(my_factor, d_model, std, share, call=call)
    return as_number(result, call=call, should="one number, the same factor for all channels")


def _call(d_model: int, std: float, share: float) -> str:
    return f"factor({d_model}, {std:.3g}, {share:.3g})"


def _agree(said: list[float], rule: Callable[[int, float, float], float]) -> bool:
    return all(math.isclose(value, rule(*case), rel_tol=1e-3) for value, case in zip(said, _CASES, strict=True))


def _right(_d: int, std: float, share: float) -> float:
    # share = (d/2) / (d/2 + f²·d·std²), solved for f
    return math.sqrt((1 / share - 1) / 2) / std


def _first_wrong(said: list[float]) -> str:
    for value, case in zip(said, _CASES, strict=True):
        d_model, std, share = case
        if not math.isclose(value, _right(*case), rel_tol=1e-3):
            got = 1 / (1 + 2 * (value * std) ** 2)
            return (
                f"{_call(*case)} gives {value:.4g}: then {got:.1%} of the squared length is position, "
                f"it should be {share:.1%}. Write down the squared lengths of word and position for d = {d_model} first."
            )
    raise AssertionError("called for a right answer")


_MISTAKES: tuple[tuple[Callable[[int, float, float], float], str], ...] = (
    (
        lambda d, std, share: -_right(d, std, share),
        "The shares are right, but a negative factor turns every word vector round: take the positive root.",
    ),
    (
        lambda d, std, share: math.sqrt(share / (1 - share) / 2) / std,
        "With your factor this is the share of the word, not of the position.",
    ),
    (
        lambda d, std, share: math.sqrt(d),
        "√d_model is the paper's factor. It gives a third, and only to words whose numbers have a spread of 1/√d_model.",
    ),
    (
        lambda d, std, share: 1 / _right(d, std, share),
        "This is one over the factor: what the position would have to be multiplied by.",
    ),
    (
        lambda d, std, share: _right(d, std, share) ** 2,
        "This is the square of the factor: lengths are what is multiplied, and the share is one of squared lengths.",
    ),
    (
        lambda d, std, share: (1 / share - 1) / 2 / std,
        "A square root is missing: the share is one of squared lengths, and a factor f multiplies these by f².",
    ),
    (
        lambda d, std, share: (1 / share - 1) / math.sqrt(2) / std,
        "You share out the lengths. The share is one of squared lengths, since these are what adds up at right angles.",
    ),
    (
        lambda d, std, share: math.sqrt(1 / share - 1) / std,
        "You take the position for √d long. Its numbers are sines and cosines: what is the mean of their squares?",
    ),
    (
        lambda d, std, share: math.sqrt(1 / share / 2) / std,
        "You compare the position with the word alone. The share is of the whole, word and position together.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / 2),
        "This holds for words whose numbers have a spread of 1. For other words, std has to come in.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / 2) * std,
        "The spread stands on the wrong side: short words need a large factor.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / 2) / std**2,
        "You divide by the variance; the factor multiplies numbers, whose size is the standard deviation.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) * d / 2) / std,
        "You take a word vector for std long. That is the size of one of its numbers, and there are d_model of them.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / (2 * d)) / std,
        "You take the position for √½ long. That is the size of one of its numbers, and there are d_model of them.",
    ),
)
