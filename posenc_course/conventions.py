"""Probes that find out which convention code follows: the layout, direction and frequencies of a rotation or of a table."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from posenc_course._validation import checked, require


class RotaryConvention(NamedTuple):
    """The convention of a rotary encoding: its layout, its direction, and its frequencies ω_i in radians per token, float64."""

    interleaved: bool
    counterclockwise: bool
    frequencies: Tensor


class TableConvention(NamedTuple):
    """The convention of a sinusoidal table: its layout, what comes first in a pair, its first position, and ω_i, float64."""

    interleaved: bool
    sine_first: bool
    first_position: int
    frequencies: Tensor


@checked(
    rotate="function: pass one that rotates x (batch, heads, L, d_head)",
    d_head="even >= 4: with a single pair, the two layouts are the same",
)
def read_rotation(rotate: Callable[[Tensor], Tensor], d_head: int) -> RotaryConvention:
    """Find out which convention `rotate` follows, by giving it every unit vector at positions 0 and 1.

    Args:
        rotate: takes x (batch, heads, L, d_head) in float32 at positions 0 … L-1 and returns it rotated, in the same shape.
        d_head: width of a head, even and at least 4, because with a single pair the two layouts are the same.

    In a partial rotation, the channels that are never rotated must come last; they have no frequency. Raises ValueError if
    `rotate` is not a rotation of pairs, for example because it mixes two layouts or counts positions along the wrong axis.
    """
    x = torch.eye(d_head).view(d_head, 1, 1, d_head).repeat(1, 3, 2, 1)  # 3 heads, 2 tokens and 4 or more channels: all differ
    rotated = require("float batch heads L d_head", "rotate(x)", rotate(x)).double()
    still, images = torch.eye(d_head, dtype=torch.float64), rotated[:, 0, 1]  # row j: what channel j becomes at position 1
    if rotated.shape != x.shape or not torch.allclose(rotated[:, :, 0], still.unsqueeze(1), atol=1e-6):
        raise ValueError("rotate changes position 0: it must rotate x (batch, heads, L, d_head) along L, by positions 0, 1, …")
    if not torch.allclose(images @ images.T, still, atol=1e-5):
        lengths = images.norm(dim=1)
        raise ValueError(
            f"rotate is no rotation, it makes unit vectors {lengths.min():.2f} to {lengths.max():.2f} long: its tables and its "
            "rotation may follow different layouts"
        )
    # In a slow pair, the cosine may be rounded to exactly 1, but the sine isn't rounded to 0.
    rotating = int((images * (1 - still)).any(dim=1).sum())
    if rotating <= 2:
        what = "leaves position 1 as it is" if rotating == 0 else "rotates only one pair, so the two layouts are the same"
        raise ValueError(f"rotate {what}: let it use positions 0 and 1, and at least two pairs")
    for interleaved in (True, False):
        pairs = torch.arange(rotating).view((-1, 2) if interleaved else (2, -1))
        first, second = pairs.unbind(1 if interleaved else 0)
        angle = torch.atan2(images[first, second], images[first, first])
        expected = still.clone()
        expected[first, first] = expected[second, second] = angle.cos()
        expected[first, second], expected[second, first] = angle.sin(), -angle.sin()
        if torch.allclose(images, expected, atol=1e-6):
            break
    else:
        raise ValueError("rotate pairs neither neighbours nor halves: find out into which channel it rotates each unit vector")
    if angle.min() < 0 < angle.max():
        raise ValueError("rotate moves some pairs one way and some the other way: check whether a sign is missing in one half")
    return RotaryConvention(interleaved, bool(angle[0] > 0), angle.abs())


@checked(table="float L d: give one row per position, for consecutive positions")
def read_table(table: Tensor) -> TableConvention:
    """Find out how a sinusoidal table is laid out, from rows of consecutive positions.

    Args:
        table: (L, d) with L ≥ 2 and an even d ≥ 4. Frequencies must lie in (0, π): a pair that rotates farther between two rows
            looks like one that rotates the other way.

    The first position is computed from the slowest pair and rounded to a whole number. Raises ValueError for a table whose
    pairs don't lie on the unit circle or don't rotate by the same angle from each row to the next.
    """
    rows = table.double()
    length, d_model = rows.shape
    if length < 2 or d_model < 4 or d_model % 2:
        raise ValueError(
            f"table must be (L, d) with L >= 2 and an even d >= 4, got shape {tuple(rows.shape)}: give more rows or columns"
        )
    found = {}
    for interleaved in (True, False):
        a, b = (rows[:, 0::2], rows[:, 1::2]) if interleaved else rows.chunk(2, dim=1)
        if torch.allclose(a.square() + b.square(), torch.ones_like(a), atol=1e-4):
            found[interleaved] = a, b
    if len(found) != 1:
        raise ValueError(
            "table has no pairs on the unit circle, neither neighbours nor halves: check if it is scaled or learned"
        )
    ((interleaved, (a, b)),) = found.items()
    # From one row to the next, (a, b) rotates clockwise if the sine comes first, and otherwise counterclockwise.
    steps = torch.atan2(a[1:] * b[:-1] - b[1:] * a[:-1], a[1:] * a[:-1] + b[1:] * b[:-1])
    step = steps.mean(dim=0)
    if not torch.allclose(steps, step.expand_as(steps), atol=1e-3) or not ((step > 0).all() or (step < 0).all()):
        raise ValueError("the pairs of table do not rotate evenly from row to row: give the rows of consecutive positions")
    sine_first = bool(step[0] > 0)
    sine, cosine = (a, b) if sine_first else (b, a)
    slowest = step.abs().argmin()
    first = torch.atan2(sine[0, slowest], cosine[0, slowest]) / step[slowest].abs()
    return TableConvention(interleaved, sine_first, round(first.item()), step.abs())
