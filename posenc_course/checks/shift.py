"""Exercise of chapter 06: a head that looks back."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, as_table, check
from posenc_course.geometry import shift_matrix
from posenc_course.sinusoidal import sinusoidal_table

_D_MODEL, _LENGTH, _STARTS = 16, 64, (0, 5000)


@check(draws=False)
def looks_back(my_matrix: Callable[[int, int], Any]) -> str:
    """Try my_matrix(back, d_model) -> M of shape (d_model, d_model), for 3 and 5 back and d_model = 16.

    PE(m)ᵀ M PE(n), with the concatenated table of base 10,000, must depend on m - n only and be largest at m - n = back.
    Chapter 06.
    """
    for back in (3, 5):
        call = f"looks_back({back}, {_D_MODEL})"
        yours = as_table(answer(my_matrix, back, _D_MODEL, call=call), (_D_MODEL, _D_MODEL), call=call)
        _judge(yours, back, call)
    return "Right: near 0 and near 5,000 alike the score depends on the offset only, and it is largest exactly there."


def _judge(matrix: Tensor, back: int, call: str) -> None:
    """Raise `Wrong` unless the scores are relative and have one peak, at the offset `back`."""
    if not matrix.isfinite().all():
        raise Wrong(f"{call} holds NaN or infinity.")
    if not matrix.any():
        raise Wrong(f"{call} is all zeros, so that every score is 0.")
    scores = _scores(matrix, interleaved=False)
    if not _is_relative(scores):
        if _is_relative(_scores(matrix, interleaved=True)):
            raise Wrong(
                "Your blocks stand where the interleaved table has its pairs. In the concatenated one the sine of pair i is "
                "in column i: in which column is its cosine?"
            )
        if _same_signs(matrix):
            raise Wrong("One of the two sines of each block needs a minus: with equal signs it is a stretch, not a rotation.")
        near, far = (block[10, 10 - back].item() for block in scores)
        raise Wrong(
            f"The score depends on more than the offset: for {back} back it is {near:.3f} at position 10 and {far:.3f} at "
            "position 5,010. Is each pair's block a rotation, and zero everything outside of the blocks?"
        )
    by_offset = _by_offset(scores[0])
    best = max(by_offset.values())
    peaks = [offset for offset, score in by_offset.items() if score > best - 1e-5 * abs(best)]
    if peaks == [back]:
        return
    if peaks == [-back]:
        raise Wrong(
            f"Relative, but it looks {back} tokens ahead: a sign, or a transpose. The query m stands on the left of M, and the "
            "key n on its right."
        )
    if sorted(peaks) == [-back, back]:
        raise Wrong(f"{back} back and {back} ahead get the same score: a cosine cannot tell them apart. Where are the sines?")
    degrees = shift_matrix(math.radians(back), _D_MODEL, interleaved=False)
    if torch.allclose(matrix, degrees, atol=1e-4) or torch.allclose(matrix, degrees.T, atol=1e-4):
        raise Wrong("The angles are degrees: sine and cosine take radians.")
    found = f"Relative, but the largest score is at m - n = {peaks[0]} and should be at {back}"
    if peaks == [0]:
        raise Wrong(f"{found}: every token looks at itself. What turns the key's place into another one?")
    if len(peaks) > 1:
        raise Wrong(f"{found}, and {len(peaks) - 1} other offsets score as high.")
    raise Wrong(f"{found}: does pair i turn by ω_i times `back`, with ω_i = 10000^(-2i/d)?")


def _scores(matrix: Tensor, *, interleaved: bool) -> Tensor:
    """PE(m)ᵀ M PE(n) near the beginning and far out, (2, L, L): query m, key n."""
    tables = [sinusoidal_table(range(start, start + _LENGTH), _D_MODEL, interleaved=interleaved) for start in _STARTS]
    return torch.stack([table @ matrix @ table.T for table in tables])


def _by_offset(scores: Tensor) -> dict[int, float]:
    """The mean score at each offset m - n of (L, L) scores."""
    return {offset: scores.diagonal(-offset).mean().item() for offset in range(1 - _LENGTH, _LENGTH)}


def _is_relative(scores: Tensor) -> bool:
    """Whether each offset has one score, in both places; a matrix in float32 passes."""
    slack = 1e-4 * scores.abs().max()
    return all(
        bool((values := scores.diagonal(-offset, dim1=1, dim2=2)).max() - values.min() <= slack)
        for offset in range(1 - _LENGTH, _LENGTH)
    )


def _same_signs(matrix: Tensor) -> bool:
    """Whether it is [[C, S], [S, C]] of diagonal C and S."""
    (a, b), (c, d) = (half.chunk(2, dim=1) for half in matrix.chunk(2, dim=0))
    diagonal = all(torch.equal(part, part.diagonal().diag()) for part in (a, b, c, d))
    return diagonal and torch.allclose(a, d, atol=1e-4) and torch.allclose(b, c, atol=1e-4)
