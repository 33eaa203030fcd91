"""Answers on shifts and on what is relative: right ones, written differently, and wrong ones with words of their verdict."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from posenc_course.geometry import shift_matrix
from posenc_course.sinusoidal import frequencies
from tests.answers import right, wrong

Answer = Callable[..., Any]


def minus_sin(angles: Tensor) -> Tensor:
    return -angles.sin()


ROTATION = ((torch.cos, torch.sin), (minus_sin, torch.cos))


@right("shift.looks_back")
def weighted_by_pair(back: int, d: int) -> Tensor:
    return torch.diag(frequencies(d).sqrt().repeat(2)) @ shift_matrix(back, d, interleaved=False)


@right("shift.looks_back")
def looks_back_right(back: int, d: int) -> Any:
    return shift_matrix(back, d, interleaved=False) * (torch.arange(d) % (d // 2) < 3)


@right("shift.looks_back")
def looks_back_right_2(back: int, d: int) -> Any:
    return torch.linalg.matrix_power(shift_matrix(1, d, interleaved=False), back)


def halves(top: tuple[Answer, Answer], bottom: tuple[Answer, Answer], *, omega: Answer = frequencies) -> Answer:
    """A matrix [[C, S], [S, C]] of diagonals, each a function of the angles ω_i·back."""

    def matrix(back: float, d_model: int) -> Tensor:
        angles = back * omega(d_model)
        return torch.cat([torch.cat([torch.diag(f(angles)) for f in row], dim=1) for row in (top, bottom)])

    return matrix


@wrong("shift.looks_back", "looks ahead")
def looks_back_transposed(back: int, d: int) -> Any:
    return halves(*ROTATION)(back, d).T


@wrong("shift.looks_back", "at m - n = 3 and should be only at 5")
def looks_back_3_back_always(back: int, d: int) -> Any:
    return shift_matrix(3, d, interleaved=False)


def none(angles: Tensor) -> Tensor:
    return 0 * angles


@wrong("shift.looks_back", "no cosines")
def looks_back_sines_only(back: int, d: int) -> Any:
    return halves((none, torch.sin), (minus_sin, none))(back, d)


@wrong("shift.looks_back", "where the interleaved table has its pairs")
def looks_back_interleaved(back: int, d: int) -> Any:
    return shift_matrix(back, d)


@wrong("shift.looks_back", "have the same sign")
def looks_back_no_minus(back: int, d: int) -> Any:
    return halves((torch.cos, torch.sin), (torch.sin, torch.cos))(back, d)


@wrong("shift.looks_back", "ahead the same score")
def looks_back_cosines_only(back: int, d: int) -> Any:
    return halves((torch.cos, none), (none, torch.cos))(back, d)


@right("shift.offset_between")
def by_correlation(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> Tensor:
    z = torch.view_as_complex(row_m.view(-1, 2)) * torch.view_as_complex(row_n.view(-1, 2)).conj()
    offsets = torch.arange(-limit, limit + 1)
    return offsets[(z * torch.exp(-1j * offsets[:, None] * omega)).real.sum(dim=1).argmax()]


def phases(row_m: Tensor, row_n: Tensor) -> Tensor:
    a, b = (torch.view_as_complex(row.double().view(-1, 2).contiguous()) for row in (row_m, row_n))
    return a * b.conj()


def fits(row_m: Tensor, row_n: Tensor, omega: Tensor, offsets: Sequence[int]) -> Tensor:
    angles = torch.tensor(list(offsets)).double()[:, None] * omega
    return (phases(row_m, row_n) * torch.polar(torch.ones_like(angles), -angles)).real.sum(dim=1)


@right("shift.offset_between")
def offset_correlation(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> Tensor:
    return fits(row_m, row_n, omega, range(-limit, limit + 1)).argmax() - limit


def shift_exponential(offset: float, omega: Tensor) -> Tensor:
    return torch.matrix_exp(offset * torch.kron(omega.double().diag(), torch.tensor([[0.0, -1.0], [1.0, 0.0]]).double()))


@right("shift.offset_between")
def offset_shifting(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    misfits = {k: (shift_exponential(k, omega) @ row_n - row_m).square().sum().item() for k in range(limit, -limit - 1, -1)}
    return min(misfits, key=misfits.__getitem__)


@wrong("shift.offset_between", "leave out one end")
def offset_between_upper_end_left_out(m: Any, n: Any, omega: Tensor, L: Any) -> Any:
    return int(fits(m, n, omega, range(-L, L)).argmax()) - L


@wrong("shift.offset_between", "You try only offsets from 0")
def offset_between_forwards_only(m: Any, n: Any, omega: Tensor, L: Any) -> Any:
    return int(fits(m, n, omega, range(L + 1)).argmax())


@wrong("shift.offset_between", "begins at -limit")
def offset_between_the_index(m: Any, n: Any, omega: Tensor, L: Any) -> Any:
    return int(fits(m, n, omega, range(-L, L + 1)).argmax())


@wrong("shift.offset_between", "don't use all clocks")
def offset_between_slowest_clock(m: Any, n: Any, omega: Tensor, limit: int) -> Any:
    return round(float(phases(m, n)[i := int(omega.argmin())].angle() / omega[i]))


@wrong("shift.offset_between", "take the mean")
def offset_between_mean_over_the_clocks(m: Any, n: Any, omega: Tensor, L: Any) -> Any:
    return round(float((phases(m, n).angle() / omega).mean()))


@wrong("shift.offset_between", "from -40 to 40")
def offset_up_to_40(m: Tensor, n: Tensor, omega: Tensor, limit: int) -> Any:
    return int(fits(m, n, omega, range(-40, 41)).argmax()) - 40


@right("shift.relative_part")
def by_averages(M: Tensor) -> Tensor:
    """Over all combinations of no turn, or a quarter, a half, three quarters for each pair: the mean of Rᵀ M R."""
    turns = [shift_matrix(k * math.pi / 2, 2) for k in range(4)]
    all_turns = [torch.block_diag(*some) for some in product(turns, repeat=len(M) // 2)]
    return torch.stack([R.T @ M @ R for R in all_turns]).mean(dim=0)


@right("shift.relative_part")
def relative_turned(M: Tensor) -> Tensor:
    pairs = M.shape[0] // 2
    J = torch.kron(torch.eye(pairs), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).to(M)
    return (M + J @ M @ J.T) / 2 * torch.kron(torch.eye(pairs), torch.ones(2, 2)).to(M)


@wrong("shift.relative_part", "blocks of M as they are")
def relative_part_blocks_as_they_are(M: Tensor) -> Any:
    return M * torch.kron(torch.eye(len(M) // 2), torch.ones(2, 2))


def relative(M: Tensor, a: Callable[[Tensor], Tensor], b: Callable[[Tensor], Tensor]) -> Tensor:
    result = torch.zeros_like(M)
    for i in range(0, len(M), 2):
        block = M[i : i + 2, i : i + 2]
        result[i, i] = result[i + 1, i + 1] = a(block)
        result[i, i + 1], result[i + 1, i] = b(block), -b(block)
    return result


@right("shift.relative_part")
def relative_block_by_block(M: Tensor) -> Any:
    return relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: (m[0, 1] - m[1, 0]) / 2)


@wrong("shift.relative_part", "You forgot a minus sign")
def relative_part_b_with_the_wrong_sign(M: Tensor) -> Any:
    return relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: (m[0, 1] + m[1, 0]) / 2)


@wrong("shift.relative_part", "needn't be zero")
def relative_cosines(M: Tensor) -> Any:
    return relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: 0 * m[0, 1])


@wrong("shift.relative_part", "along the diagonals")
def relative_toeplitz(M: Tensor) -> Tensor:
    result = torch.zeros_like(M)
    for k in range(1 - len(M), len(M)):
        values = M.diagonal(k)
        result.diagonal(k).copy_(values.mean().expand_as(values))
    return result


@wrong("shift.relative_part", "columns i and i + d/2")
def relative_halves(M: Tensor) -> Tensor:
    p = len(M) // 2
    a, b = (M[:p, :p] + M[p:, p:]).diagonal() / 2, (M[:p, p:] - M[p:, :p]).diagonal() / 2
    return torch.cat((torch.cat((a.diag(), b.diag()), dim=1), torch.cat((-b.diag(), a.diag()), dim=1)))


@wrong("shift.relative_part", "the same two numbers for all pairs")
def relative_one_for_all(M: Tensor) -> Tensor:
    part = relative_turned(M)
    mean = sum(part[i : i + 2, i : i + 2] for i in range(0, len(M), 2)) / (len(M) // 2)
    return torch.block_diag(*[mean] * (len(M) // 2))
