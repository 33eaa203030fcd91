"""Exercise of chapter 14: the depth of brackets, read off an average."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, as_number, check

_FIRST, _STEP = "^", {"^": 0, "(": 1, ")": -1}


@check(draws=False)
def depth(my_values: Callable[[str], Any], my_readout: Callable[[Tensor], Any]) -> str:
    """Try my_values(token) -> vector for the tokens "^", "(" and ")", and my_readout(mean) -> depth.

    Texts begin with "^". At every place my_readout gets the mean of the vectors up to there, float64, and must return how many
    brackets are open. Chapter 14.
    """
    vectors = {token: _vector(my_values, token) for token in _STEP}
    if len({len(vector) for vector in vectors.values()}) != 1:
        raise Wrong(f"my_values returns vectors of {[len(v) for v in vectors.values()]} numbers: they must be of one length.")
    said = {text: [_number(my_readout, mean) for mean in _means(text, vectors)] for text in _texts()}
    if _agree(said, _depths):
        return f"Right: at every place of {len(said)} texts, up to {max(map(len, said))} tokens long."
    return next((hint for known, hint in _MISTAKES if _agree(said, known)), None) or _first_wrong(said)


def _texts() -> list[str]:
    """Short ones that tell mistakes apart, then long random ones; some close more than was opened before."""
    rng = random.Random(0)
    long = ["".join(rng.choices("()", weights=(up, 1), k=length)) for up, length in ((1.3, 60), (1.0, 300), (2.0, 1000))]
    return [_FIRST + text for text in ("(", "()", "((", "(()", "(())()", ")(", *long)]


def _means(text: str, vectors: dict[str, Tensor]) -> Tensor:
    """What a head of equal weights gives at each place, (L, d)."""
    stacked = torch.stack([vectors[token] for token in text])
    return stacked.cumsum(dim=0) / torch.arange(1, len(text) + 1, dtype=torch.float64).unsqueeze(1)


def _depths(text: str) -> list[float]:
    return list(itertools.accumulate(float(_STEP[token]) for token in text))


_MISTAKES: list[tuple[Callable[[str], list[float]], str]] = [
    (lambda text: [depth / (m + 1) for m, depth in enumerate(_depths(text))],
     "You return the depth divided by the number of tokens. What in the mean tells how many there are?"),
    (lambda text: list(itertools.accumulate(float(token == "(") for token in text)),
     "You count what was opened, and never what was closed."),
    (lambda text: [-depth for depth in _depths(text)],
     "The sign is the wrong way round: with you an opening bracket leads down, and a closing one up."),
    (lambda text: [depth + 1 for depth in _depths(text)], 'One too many everywhere: the first token, "^", is no bracket.'),
    (lambda text: [m + 1.0 for m in range(len(text))],
     "You return the number of tokens: the counter works, now count brackets with it."),
    (lambda text: [float(m) for m in range(len(text))],
     "You return the position: the counter works, now count brackets with it."),
]  # fmt: skip


def _agree(said: dict[str, list[float]], known: Callable[[str], list[float]]) -> bool:
    return all(np.allclose(numbers, known(text), rtol=0, atol=1e-3) for text, numbers in said.items())


def _first_wrong(said: dict[str, list[float]]) -> str:
    wrong = ((text, m, a, b) for text in said for m, (a, b) in enumerate(zip(said[text], _depths(text), strict=True)))
    text, place, number, right = next(case for case in wrong if not abs(case[2] - case[3]) <= 1e-3)
    shown = text[: place + 1] if place < 12 else f"a text of {place + 1} tokens"
    return f"After {shown} the depth is {right:g}, and my_readout says {number:.4g}."


def _vector(my_values: Callable[[str], Any], token: str) -> Tensor:
    call = f'my_values("{token}")'
    result = answer(my_values, token, call=call)
    try:
        vector = torch.as_tensor(np.array(result), dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise Wrong(f"{call} returned a {type(result).__name__} that is no vector of numbers.") from error
    if vector.ndim != 1 or len(vector) == 0 or not vector.isfinite().all():
        raise Wrong(f"{call} must be one vector of finite numbers, for example [1.0, 0.0], got {result!r}.")
    return vector


def _number(my_readout: Callable[[Tensor], Any], mean: Tensor) -> float:
    call = f"my_readout({[round(x, 4) for x in mean.tolist()]})"
    result = answer(my_readout, mean.clone(), call=call)
    return as_number(result, call=call, finite="does the first token leave something in the mean to divide by?")
