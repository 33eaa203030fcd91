"""What all checks share: call the reader's function without ever showing a traceback of ours."""

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

UNTRIED = "Not tried yet: your function returned None."


class Wrong(Exception):
    """An answer that cannot be right; its message is the verdict."""


def answer(function: Callable[..., Any], *arguments: Any, call: str) -> Any:
    """Return function(*arguments), or raise `Wrong` with what happened when `call` was made."""
    try:
        result = function(*arguments)
    except Exception as error:
        raise Wrong(f"{call} raised {traceback.format_exception_only(error)[-1].splitlines()[0]}") from error
    if result is None:
        raise Wrong(UNTRIED)
    return result


def as_table(result: Any, shape: tuple[int, ...], *, call: str) -> Tensor:
    """Return the result as a float64 tensor of the given shape, or raise `Wrong`."""
    try:
        # A copy by way of NumPy also reads reversed arrays and lists of rows.
        table = (result if isinstance(result, Tensor) else torch.as_tensor(np.array(result))).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise Wrong(f"{call} returned a {type(result).__name__} that is no table of numbers.") from error
    if table.shape != shape:
        transposed = " It looks transposed: rows are positions." if table.shape == shape[::-1] else ""
        raise Wrong(f"{call} has shape {tuple(table.shape)}, it should be {shape}.{transposed}")
    if table.is_complex():
        raise Wrong(f"{call} returned complex numbers: their real and imaginary parts belong into columns of their own.")
    return table.to(torch.float64)


def as_truth(result: Any, *, call: str) -> bool:
    """Return the result as a bool, or raise `Wrong` unless it is one True or False."""
    truth = result.tolist() if isinstance(result, Tensor | np.ndarray | np.generic) else result
    if not isinstance(truth, bool):
        raise Wrong(
            f"{call} returned a {type(result).__name__}, it should be one True or False: torch.allclose compares whole tensors."
        )
    return truth
