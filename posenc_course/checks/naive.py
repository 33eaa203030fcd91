"""Exercise of chapter 02: the digits of a position."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import answer, as_table, check
from posenc_course.naive import binary as truth


@check(instead_of=[truth], draws=False)
def binary(bits: Callable[[int, int], Any]) -> str:
    """Try bits(position, num_bits) -> num_bits digits, fastest first, on every position of six bits. Chapter 02."""
    num_bits = 6
    positions = range(2**num_bits)

    def row(m: int) -> Tensor:
        call = f"bits({m}, {num_bits})"
        return as_table(answer(bits, m, num_bits, call=call), (num_bits,), call=call)

    yours = torch.stack([row(m) for m in positions])
    right = truth(positions, num_bits)
    if torch.equal(yours, right):
        return "Right: all 64 positions have their own six digits, and the first one flips at every step."
    if torch.equal(yours, right.flip(-1)):
        return "The digits are right but slowest first, as people write numbers: here the digit of 1 comes first."
    if torch.equal(yours, right.roll(-1, dims=0)):
        return "These are the digits of m + 1: the first position is 0, with all digits 0."
    if torch.equal(yours, 1 - right):
        return "Every digit is the opposite of what it should be: 0 has all digits 0."
    no_digit = ((yours != 0) & (yours != 1)).any(dim=-1)
    if no_digit.any():
        m = int(no_digit.nonzero()[0])
        return f"bits({m}, {num_bits}) gives {yours[m].tolist()}: a digit is 0 or 1. Is a remainder by 2 missing?"
    m = int((yours != right).any(dim=-1).nonzero()[0])
    return f"bits({m}, {num_bits}) gives {yours[m].int().tolist()}, it should be {right[m].int().tolist()}."
