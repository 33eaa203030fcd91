"""Preconditions, checked once at the public edge: each error names the value, the rule and a way out."""

import math
import sys
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

Positions: TypeAlias = Tensor | np.ndarray | Sequence[float]


def require_integer(name: str, value: object, *, minimum: int, hint: str) -> int:
    """Return `value` as an int, or raise a ValueError unless it is an integer >= minimum."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}: {hint}")
    return int(value)


def require_number(name: str, value: object, *, above: float = -math.inf, hint: str) -> float:
    """Return `value` as a float, or raise a ValueError unless it is a finite number > above."""
    largest = sys.float_info.max  # NaN is not <= it
    if isinstance(value, bool) or not isinstance(value, Real) or not value <= largest or value <= above:
        bound = "" if above == -math.inf else f" > {above:g}"
        raise ValueError(f"{name} must be a finite number{bound}, got {value!r}: {hint}")
    return float(value)


def require_base(base: object) -> float:
    """Return `base` as a float, or raise a ValueError unless it is a finite number > 1."""
    return require_number("base", base, above=1, hint="frequencies base**(-2i/d) must fall with i (the paper uses 10000)")


def require_dtype(dtype: object) -> torch.dtype:
    """Return `dtype`, or raise a ValueError unless it is a floating-point torch.dtype."""
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating-point torch.dtype, got {dtype!r}: take torch.float32 for example")
    return dtype


def require_tensor(name: str, value: object) -> Tensor:
    """Return `value`, or raise a ValueError unless it is a tensor."""
    if not isinstance(value, Tensor):
        given = " ".join(repr(value).split())  # an array's lines as one
        raise ValueError(f"{name} must be a torch.Tensor, got {given}: convert it with torch.as_tensor")
    return value


def require_vectors(name: str, value: object, shape: str) -> Tensor:
    """Return `value`, or raise a ValueError unless it is a non-empty floating-point tensor of `shape`, e.g. "(L, d)"."""
    tensor = require_tensor(name, value)
    if tensor.ndim != shape.strip("(,)").count(",") + 1 or tensor.numel() == 0 or not tensor.is_floating_point():
        raise ValueError(
            f"{name} must be a floating-point tensor of shape {shape}, none of them 0, got {tensor.dtype} of shape "
            f"{tuple(tensor.shape)}: bring it into this form"
        )
    return tensor


def require_frequencies(frequencies: object) -> Tensor:
    """Return `frequencies`, or raise a ValueError unless they are float64 of shape (pairs,), finite and >= 0."""
    if not isinstance(frequencies, Tensor) or frequencies.ndim != 1 or frequencies.numel() == 0:
        given = tuple(frequencies.shape) if isinstance(frequencies, Tensor) else frequencies
        raise ValueError(f"frequencies must be a tensor of shape (d_head/2,), got {given!r}: take frequencies(d_head)")
    if frequencies.dtype != torch.float64:
        raise ValueError(
            f"frequencies must be torch.float64, got {frequencies.dtype}: what they lack in digits is multiplied by every "
            "position, so compute them in float64"
        )
    good = frequencies.isfinite() & (frequencies >= 0)
    if not good.all():
        raise ValueError(
            f"frequencies must be finite and >= 0, got {frequencies[~good][0].item():g}: they are radians per token, "
            "base**(-2i/d)"
        )
    return frequencies


def require_positions(positions: Positions, *, integer: bool) -> Tensor:
    """Return `positions` as a float64 tensor of shape (L,) or (batch, L).

    Accepts tensors, arrays and nested sequences of finite numbers; with `integer`, of whole numbers >= 0.
    """
    rule = "whole numbers >= 0 (0 is the first token)" if integer else "finite real numbers"
    way_out = "pass for example torch.arange(L), or torch.arange(start, start + L) for tokens after a cached prefix"
    exact = _require_finite("positions", positions, rule, way_out)
    if exact.ndim not in (1, 2):
        raise ValueError(f"positions must have shape (L,) or (batch, L) with L >= 1, got {tuple(exact.shape)}: {way_out}")
    if integer:
        _refuse("positions", exact, (exact < 0) | (exact != exact.floor()), rule, way_out)
    return exact


def require_offsets(offsets: Positions, *, integer: bool) -> Tensor:
    """Return `offsets` as a float64 tensor of their own shape: finite numbers, with `integer` whole ones, of any sign."""
    rule = "whole numbers" if integer else "finite real numbers"
    way_out = "pass for example torch.arange(-L + 1, L)"
    exact = _require_finite("offsets", offsets, rule, way_out)
    if integer:
        _refuse("offsets", exact, exact != exact.floor(), rule, way_out)
    return exact


def require_query_and_key_positions(
    q_positions: Positions, k_positions: Positions, *, integer: bool = False, query: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return both as float64 tensors, or raise a ValueError unless they are of one batch, and of that of `query` if given."""
    queries, keys = (require_positions(positions, integer=integer) for positions in (q_positions, k_positions))
    if queries.ndim == keys.ndim == 2 and len(queries) != len(keys):
        raise ValueError(
            f"positions of shape {tuple(queries.shape)} and {tuple(keys.shape)} are of two batches: "
            "give queries and keys the same batch"
        )
    if query is not None:
        for positions, length in ((queries, query.shape[-2]), (keys, keys.shape[-1])):
            if positions.shape[-1] != length or (positions.ndim == 2 and len(positions) != len(query)):
                raise ValueError(
                    f"positions of shape {tuple(positions.shape)} do not fit a query of shape {tuple(query.shape)}: "
                    "give one position per token, for the whole batch or for each sequence its own"
                )
    return queries, keys


def _require_finite(name: str, numbers: Positions, rule: str, way_out: str) -> Tensor:
    try:
        # By way of NumPy, which reads a list of floats as float64; torch would round it to float32.
        tensor = numbers if isinstance(numbers, Tensor) else torch.as_tensor(np.array(numbers))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{name} must be {rule}, got {numbers!r}: {way_out}") from error
    if tensor.numel() == 0:
        raise ValueError(f"{name} must be one at least, got shape {tuple(tensor.shape)}: {way_out}")
    if tensor.dtype == torch.bool or tensor.is_complex():
        raise ValueError(f"{name} must be {rule}, got dtype {tensor.dtype}: {way_out}")
    if tensor.dtype in (torch.bfloat16, torch.float16):
        counts_to = 2 ** (8 if tensor.dtype == torch.bfloat16 else 11)
        raise ValueError(
            f"{name} must be exact, got {tensor.dtype}, which skips whole numbers from {counts_to} on: keep them in torch.int64"
        )
    exact = tensor.to(torch.float64)
    _refuse(name, exact, ~exact.isfinite(), rule, way_out)
    return exact


def _refuse(name: str, exact: Tensor, bad: Tensor, rule: str, way_out: str) -> None:
    if bad.any():
        raise ValueError(f"{name} must be {rule}, got {exact[bad][0].item():g}: {way_out}")


def require_embedding(x: Tensor, positions: Tensor, d_model: int) -> None:
    """Raise a ValueError unless x is (batch, L, d_model) in floating point and positions (L,) or (batch, L) fit it."""
    require_tensor("x", x)
    require_positions(require_tensor("positions", positions), integer=False)
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


def require_heads(query: Tensor, heads: int) -> None:
    """Raise a ValueError unless query is (batch, heads, L_query, d_head)."""
    given = require_vectors("q", query, "(batch, heads, L_query, d_head)").shape[1]
    if given != heads:
        raise ValueError(f"the scheme is made for {heads} heads, q has {given}: build it with num_heads={given}")


def require_padding(padding: object, batch: int, length: int) -> None:
    """Raise a ValueError unless padding is boolean, of shape (batch, length)."""
    if not isinstance(padding, Tensor) or padding.dtype != torch.bool or padding.shape != (batch, length):
        given = f"{padding.dtype} of shape {tuple(padding.shape)}" if isinstance(padding, Tensor) else repr(padding)
        raise ValueError(
            f"padding must be a boolean tensor of shape ({batch}, {length}), True where a token is padding, got {given}: give "
            "one flag per token, cached ones first"
        )
