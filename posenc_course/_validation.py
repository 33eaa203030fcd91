"""Preconditions, checked once at the public edge: each error names the value, the rule and a way out."""

import sys
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

Positions: TypeAlias = Tensor | np.ndarray | Sequence[float]


def check_integer(name: str, value: object, *, minimum: int, hint: str) -> int:
    """Return `value` as an int, or raise a ValueError unless it is an integer >= minimum."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}: {hint}")
    return int(value)


def check_number(name: str, value: object, *, above: float, hint: str) -> float:
    """Return `value` as a float, or raise a ValueError unless it is a finite number > above."""
    largest = sys.float_info.max  # NaN is not <= it
    if isinstance(value, bool) or not isinstance(value, Real) or not value <= largest or value <= above:
        raise ValueError(f"{name} must be a finite number > {above:g}, got {value!r}: {hint}")
    return float(value)


def check_base(base: object) -> float:
    """Return `base` as a float, or raise a ValueError unless it is a finite number > 1."""
    return check_number("base", base, above=1, hint="frequencies base**(-2i/d) must fall with i (the paper uses 10000)")


def check_tensor(name: str, value: object) -> Tensor:
    """Return `value`, or raise a ValueError unless it is a tensor."""
    if not isinstance(value, Tensor):
        given = " ".join(repr(value).split())  # an array's lines as one
        raise ValueError(f"{name} must be a torch.Tensor, got {given}: convert it with torch.as_tensor")
    return value


def check_positions(positions: Positions, *, integer: bool) -> Tensor:
    """Return `positions` as a float64 tensor of shape (L,) or (batch, L).

    Accepts tensors, arrays and nested sequences of finite numbers; with `integer`, of whole numbers >= 0.
    """
    rule = "whole numbers >= 0 (0 is the first token)" if integer else "finite real numbers"
    way_out = "pass for example torch.arange(L), or torch.arange(start, start + L) for tokens after a cached prefix"
    try:
        # By way of NumPy, which reads a list of floats as float64; torch would round it to float32.
        tensor = positions if isinstance(positions, Tensor) else torch.as_tensor(np.array(positions))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"positions must be {rule}, got {positions!r}: {way_out}") from error
    if tensor.ndim not in (1, 2) or tensor.numel() == 0:
        raise ValueError(f"positions must have shape (L,) or (batch, L) with L >= 1, got {tuple(tensor.shape)}: {way_out}")
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise ValueError(f"positions must be {rule}, got dtype {tensor.dtype}: {way_out}")
    exact = tensor.to(torch.float64)
    bad = ~exact.isfinite()
    if integer:
        bad |= (exact < 0) | (exact != exact.floor())
    if bad.any():
        raise ValueError(f"positions must be {rule}, got {exact[bad][0].item():g}: {way_out}")
    return exact


def check_embedding(x: Tensor, positions: Tensor, d_model: int) -> None:
    """Raise a ValueError unless x is (batch, L, d_model) in floating point and positions (L,) or (batch, L) fit it."""
    check_tensor("x", x)
    check_positions(check_tensor("positions", positions), integer=False)
    if x.ndim != 3 or x.shape[-1] != d_model or not x.is_floating_point():
        raise ValueError(
            f"x must be a floating-point tensor of shape (batch, L, {d_model}), got {x.dtype} of shape {tuple(x.shape)}: "
            "embed the tokens first, and build the scheme with the model's d_model"
        )
    if positions.shape[-1] != x.shape[1] or (positions.ndim == 2 and positions.shape[0] != x.shape[0]):
        raise ValueError(
            f"positions of shape {tuple(positions.shape)} do not fit x of shape {tuple(x.shape)}: give one position per token, "
            f"shape ({x.shape[1]},) for the whole batch or ({x.shape[0]}, {x.shape[1]}) for each sequence its own"
        )
