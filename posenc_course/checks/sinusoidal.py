"""Exercise of chapter 03: the table without a loop."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import answer, as_table, check
from posenc_course.sinusoidal import frequencies, sinusoidal_table


@check(instead_of=[sinusoidal_table], draws=False)
def table(my_table: Callable[[Tensor, int], Any]) -> str:
    """Try my_table(positions, d_model) -> (L, d_model), interleaved, base 10,000, on positions 0 … 11 and d_model = 8.

    Chapter 03.
    """
    length, d_model = 12, 8
    positions = torch.arange(length)
    call = f"my_table(torch.arange({length}), {d_model})"
    yours = as_table(answer(my_table, positions.clone(), d_model, call=call), (length, d_model), call=call)
    right, norm = sinusoidal_table(positions, d_model), math.sqrt(d_model / 2)
    if _same(yours, right):
        return f"Right: every number agrees with the package's table, and every row has length {norm:g}."
    for known, hint in _mistakes(positions, d_model):
        if _same(yours, known):
            return hint
    for row, length_of_row in enumerate(yours.norm(dim=-1).tolist()):
        if not abs(length_of_row - norm) < 1e-3:  # not >=, for NaN
            return (
                f"Row {row} has length {length_of_row:.4f} where {d_model // 2} pairs of sine and cosine give {norm:g}: "
                "do both of a pair take the same angle?"
            )
    row = int(((yours - right).abs() > 1e-4).any(dim=-1).nonzero()[0])
    return f"Every row has the right length, but row {row} is wrong: the pairs are sines and cosines of other angles."


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a, b, rtol=0, atol=1e-4)  # a correct table in float32 passes


def _mistakes(positions: Tensor, d_model: int) -> list[tuple[Tensor, str]]:
    right = sinusoidal_table(positions, d_model)
    channel = torch.arange(d_model)
    pair = channel // 2
    omega = frequencies(d_model)[pair]  # (d_model,): both columns of a pair

    def waves(rates: Tensor) -> Tensor:
        """Sines in the even columns and cosines in the odd ones, of one rate per column in radians per token."""
        angles = torch.outer(positions.double(), rates)
        return torch.where(channel % 2 == 0, angles.sin(), angles.cos())

    return [
        (sinusoidal_table(positions, d_model, interleaved=False),
         "All sines, then all cosines: the concatenated layout. Here sine and cosine alternate."),
        (right.unflatten(-1, (-1, 2)).flip(-1).flatten(-2), "Sine and cosine have changed places: a sine comes first."),
        (sinusoidal_table(positions + 1, d_model), "Your first row belongs to position 1: take the positions as given."),
        (waves(10_000.0 ** (-2 * channel.double() / d_model)),
         "Your exponent counts dimensions, not pairs: both columns of pair i take 2i/d, so columns 2 and 3 share one angle."),
        (waves(10_000.0 ** (-channel.double() / d_model)),
         "Sine and cosine of a pair take different angles: both columns of pair i take the exponent 2i/d."),
        (waves(omega * math.pi * pair),
         "Each frequency carries a stray factor of i·π, so pair 0 never moves: the angle is ω_i·m and nothing else."),
        (waves(omega**2),
         "Your exponent has its 2 twice: the even column of a pair already is 2i, and the exponent is 2i/d."),
        (waves(10_000.0 ** (-pair.double() / (d_model // 2 - 1))),
         "Your slowest frequency is exactly 1/10000: that is tensor2tensor's table, the paper's exponent is divided by d/2."),
        (waves(1 / omega), "The exponent has the wrong sign: your frequencies grow, they should fall."),
        (waves(omega * math.pi / 180), "The angles are degrees: sine and cosine take radians."),
    ]  # fmt: skip
