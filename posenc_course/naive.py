"""The obvious ways to write down a position: counting, scaling to [0, 1], remainders, and binary digits.

Positions are counted in tokens from 0; all functions return float64 tensors.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course._validation import D_MODEL, DOOR, LENGTH, WHOLE_POSITIONS, Positions, checked, exact
from posenc_course.schemes import PositionScheme


@checked(positions=WHOLE_POSITIONS)
def linear(positions: Positions) -> Tensor:
    """The position itself, p(m) = m, in the shape of positions, (L,) or (batch, L)."""
    return exact(positions)


@checked(positions=WHOLE_POSITIONS, length=LENGTH)
def normalized(positions: Positions, length: int) -> Tensor:
    """The position as a fraction of the sequence: p(m) = m / (length - 1), from 0 for the first token to 1 for the last.

    A sequence of one token gets 0. The result has the shape of positions. Raises ValueError for a position >= length.
    """
    m = exact(positions)
    if m.max() >= length:
        raise ValueError(
            f"position {m.max().item():g} lies outside a sequence of length {length} (0 … {length - 1}): "
            "pass the length of the whole sequence"
        )
    return m / max(length - 1, 1)


@checked(positions=WHOLE_POSITIONS, period="count >= 2: with period 1, every position would be 0")
def modulo(positions: Positions, period: int) -> Tensor:
    """The remainder of the position, p(m) = m mod period, in the shape of positions."""
    return exact(positions) % period


_NUM_BITS = "count <= 52: num_bits digits distinguish 2**num_bits positions, and float64 is exact only up to 2**53"


@checked(positions=WHOLE_POSITIONS, num_bits=_NUM_BITS)
def binary(positions: Positions, num_bits: int) -> Tensor:
    """The binary digits of the position, p(m)_b = ⌊m / 2^b⌋ mod 2, fastest first, shape `(*positions.shape, num_bits)`.

    Raises ValueError for a position that needs more than num_bits digits.
    """
    m = exact(positions)
    if m.max() >= 2**num_bits:
        raise ValueError(
            f"position {m.max().item():g} needs more than num_bits={num_bits} digits: "
            f"use num_bits={int(m.max().item()).bit_length()}"
        )
    powers = 1 << torch.arange(num_bits, device=m.device)  # exact on every processor, which 2.0 ** … need not be
    return (m.unsqueeze(-1) / powers).floor() % 2


class _NumberTimesDirection(PositionScheme):
    """A scheme that adds a fixed vector, (d_model,), times a number that depends on the position."""

    @checked(d_model=D_MODEL, direction="float? d_model: give one number per channel, e.g. torch.ones(d_model)")
    def __init__(self, d_model: int, direction: Tensor | None = None) -> None:
        super().__init__()
        self.d_model = d_model
        if direction is None:
            # +1, -1, +1, ...: if all channels got the same number, LayerNorm would remove it, and the position with it.
            direction = (-1.0) ** torch.arange(self.d_model)
        self.direction = direction

    @checked(**DOOR)
    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the encoding to x (batch, L, d_model) at positions (L,) or (batch, L); the result has the shape of x."""
        return x + self.number(positions).unsqueeze(-1).to(x) * self.direction.to(x)

    def number(self, positions: Tensor) -> Tensor:
        """The number that stands for each position, in the shape of positions."""
        raise NotImplementedError


class LinearPositions(_NumberTimesDirection):
    """x + m·u: the position as a whole number, along a fixed direction u of shape (d_model,), by default +1, -1, +1, …"""

    @checked(positions="whole tensor [batch] L")
    def number(self, positions: Tensor) -> Tensor:
        """The position itself, m, in the shape of positions."""
        return linear(positions)


class NormalizedPositions(_NumberTimesDirection):
    """x + m/(L-1)·u: the position as a fraction of the sequence so far, along a fixed direction u of shape (d_model,).

    The length L is the largest position given plus one. So decoding token by token differs from a single pass: every new
    token is the last one when it arrives, and gets the number 1.
    """

    @checked(positions="whole tensor [batch] L")
    def number(self, positions: Tensor) -> Tensor:
        """The position as a fraction, m / (L - 1), in the shape of positions."""
        return normalized(positions, int(positions.max().item()) + 1)


class BinaryPositions(PositionScheme):
    """A scheme that adds the num_bits binary digits of the position to the first num_bits channels."""

    @checked(d_model=D_MODEL, num_bits=_NUM_BITS)
    def __init__(self, d_model: int, num_bits: int) -> None:
        super().__init__()
        self.d_model, self.num_bits = d_model, num_bits
        if num_bits > d_model:
            raise ValueError(f"num_bits={num_bits} digits do not fit into d_model={d_model} channels: use fewer digits")

    @checked(**DOOR)
    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add the digits to x (batch, L, d_model) at positions (L,) or (batch, L); the result has the shape of x."""
        digits = binary(positions, self.num_bits).to(x)  # (..., L, num_bits)
        return x + F.pad(digits, (0, self.d_model - self.num_bits))
