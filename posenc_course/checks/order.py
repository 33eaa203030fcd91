"""Exercise of chapter 01: a test that tells who sees order."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.attention import attention
from posenc_course.checks._verdict import Wrong, answer, as_truth

_FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "attention": (lambda x: attention(x, x, x), True),
    "tanh of every number": (torch.tanh, True),
    "each row minus the mean row": (lambda x: x - x.mean(dim=0), True),
    "the running sum": (lambda x: x.cumsum(dim=0), False),
    "the sequence backwards": (lambda x: x.flip(0), False),
    "each column sorted": (lambda x: x.sort(dim=0).values, False),
}


def equivariance(is_equivariant: Callable[[Callable[[Tensor], Tensor], Tensor], Any]) -> str:
    """Try is_equivariant(f, x) -> bool on six functions of a sequence x of shape (5, 4), and say what it got wrong.

    Chapter 01.
    """
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    try:
        verdicts = {}
        for name, (f, _) in _FUNCTIONS.items():
            call = f"is_equivariant({name}, x)"
            verdicts[name] = as_truth(answer(is_equivariant, f, x.clone(), call=call), call=call)
    except Wrong as wrong:
        return str(wrong)
    missed = [name for name, (_, truth) in _FUNCTIONS.items() if verdicts[name] != truth]
    if not missed:
        return "Right: your test sorts all six functions."
    if verdicts == {name: name == "each column sorted" for name in _FUNCTIONS}:
        return "Your test looks for invariance: it wants f(Px) to equal f(x), where equivariance wants P f(x)."
    if all(verdicts.values()):
        return "Your test calls all six equivariant: does it really reorder the rows of x?"
    if not any(verdicts.values()):
        return (
            "Your test calls nothing equivariant, not even tanh: reorder the output by the same permutation, "
            "and compare with torch.allclose, since sums in another order differ in the last digit."
        )
    if set(missed) <= {"the sequence backwards"}:
        return (
            "Your test is taken in by the reversed sequence: a permutation that commutes with reversal cannot catch it. "
            "Draw one at random, or try several."
        )
    if set(missed) <= {"attention", "each row minus the mean row"}:
        return "Your test is too strict: sums in another order differ in the last digit, so compare with torch.allclose."
    return f"Your test is wrong about: {', '.join(missed)}."
