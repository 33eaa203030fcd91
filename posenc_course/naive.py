"""The obvious ways to write down a position: counting, scaling to [0, 1], digits (chapter 02).

Positions are counted in tokens from 0; all functions return float64 tensors.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course._validation import Positions, require_embedding, require_integer, require_positions, require_tensor
from posenc_course.schemes import PositionScheme


def linear(positions: Positions) -> Tensor:
    """The position itself: p(m) = m. Shape of the result: that of positions, (L,) or (batch, L). Chapter 02."""
    return require_positions(positions, integer=True)


def normalized(positions: Positions, length: int) -> Tensor:
    """The position as a fraction of the sequence: p(m) = m / (length - 1), from 0 for the first token to 1 for the last.

    A sequence of one token gets 0. Shape of the result: that of positions. Raises ValueError for a position >= length.
    Chapter 02.
    """
    exact = require_positions(positions, integer=True)
    length = require_integer("length", length, minimum=1, hint="it counts the tokens of the sequence")
    if exact.max() >= length:
        raise ValueError(
            f"position {exact.max().item():g} lies outside a sequence of length {length} (0 … {length - 1}): "
            "pass the length of the whole sequence"
        )
    return exact / max(length - 1, 1)


def modulo(positions: Positions, period: int) -> Tensor:
    """The position on a dial with `period` marks: p(m) = m mod period. Shape of the result: that of positions. Chapter 02."""
    exact = require_positions(positions, integer=True)
    return exact % require_integer("period", period, minimum=2, hint="a dial needs two marks to tell anything")


def binary(positions: Positions, num_bits: int) -> Tensor:
    """The binary digits of the position, fastest first: p(m)_b = ⌊m / 2^b⌋ mod 2. Shape: that of positions, plus (num_bits,).

    Raises ValueError for a position that needs more digits. Chapter 02.
    """
    exact = require_positions(positions, integer=True)
    num_bits = require_integer("num_bits", num_bits, minimum=1, hint="num_bits digits tell 2**num_bits positions apart")
    if num_bits > 52:
        raise ValueError(f"num_bits must be at most 52, got {num_bits}: float64 counts no further exactly")
    if exact.max() >= 2**num_bits:
        raise ValueError(
            f"position {exact.max().item():g} needs more than num_bits={num_bits} digits: "
            f"take num_bits={int(exact.max().item()).bit_length()}"
        )
    powers = 2.0 ** torch.arange(num_bits, dtype=torch.float64, device=exact.device)
    return (exact.unsqueeze(-1) / powers).floor() % 2


class _NumberTimesDirection(PositionScheme):
    """Adds one number per position to the token, times a fixed vector of length d_model."""

    def __init__(self, d_model: int, direction: Tensor | None = None) -> None:
        super().__init__()
        self.d_model = require_integer("d_model", d_model, minimum=1, hint="it is the width of the token vectors, e.g. 64")
        if direction is None:
            # +1, -1, +1, ...: with the same number in all channels LayerNorm would subtract the position away (chapter 02).
            direction = (-1.0) ** torch.arange(self.d_model)
        if require_tensor("direction", direction).shape != (self.d_model,) or not direction.is_floating_point():
            raise ValueError(
                f"direction must be a floating-point tensor of shape ({self.d_model},), got {direction.dtype} of shape "
                f"{tuple(direction.shape)}: give one number per channel, e.g. torch.ones({self.d_model})"
            )
        self.direction = direction

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) -> the same shape."""
        require_embedding(x, positions, self.d_model)
        return x + self.number(positions).unsqueeze(-1).to(x) * self.direction.to(x)

    def number(self, positions: Tensor) -> Tensor:
        """The number that stands for each position; shape of positions."""
        raise NotImplementedError


class LinearPositions(_NumberTimesDirection):
    """x + m·u: the position as an integer, along a fixed direction u of shape (d_model,), by default +1, -1, +1, …

    Chapter 02.
    """

    def number(self, positions: Tensor) -> Tensor:
        """m"""
        return linear(positions)


class NormalizedPositions(_NumberTimesDirection):
    """x + m/(L-1)·u: the position as a fraction of the sequence seen so far, along a fixed direction u of shape (d_model,).

    The length L is the largest position given plus one. Hence decoding token by token differs from one pass: every new
    token is the last one when it comes, and has position 1. Chapter 02.
    """

    def number(self, positions: Tensor) -> Tensor:
        """m / (L - 1)"""
        exact = require_positions(positions, integer=True)
        return normalized(exact, int(exact.max().item()) + 1)


class BinaryPositions(PositionScheme):
    """Adds the num_bits binary digits of the position to the first num_bits channels. Chapter 02."""

    def __init__(self, d_model: int, num_bits: int) -> None:
        super().__init__()
        self.d_model = require_integer("d_model", d_model, minimum=1, hint="it is the width of the token vectors, e.g. 64")
        self.num_bits = require_integer("num_bits", num_bits, minimum=1, hint="num_bits digits reach 2**num_bits positions")
        if num_bits > d_model:
            raise ValueError(f"num_bits={num_bits} digits do not fit into d_model={d_model} channels: take fewer digits")

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) -> the same shape."""
        require_embedding(x, positions, self.d_model)
        digits = binary(positions, self.num_bits).to(x)  # (..., L, num_bits)
        return x + F.pad(digits, (0, self.d_model - self.num_bits))
