"""Answers on shifts and on what is relative: right ones, written differently, and wrong ones with words of their verdict."""

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.geometry import shift_matrix
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.answers import blind

Answer = Callable[..., Any]


def halves(top: tuple[Answer, Answer], bottom: tuple[Answer, Answer], *, omega: Answer = frequencies) -> Answer:
    """A matrix [[C, S], [S, C]] of diagonals, each a function of the angles ω_i·back."""

    def matrix(back: float, d_model: int) -> Tensor:
        angles = back * omega(d_model)
        return torch.cat([torch.cat([torch.diag(f(angles)) for f in row], dim=1) for row in (top, bottom)])

    return matrix


def minus_sin(angles: Tensor) -> Tensor:
    return -angles.sin()


def none(angles: Tensor) -> Tensor:
    return 0 * angles


def entry_by_entry(back: int, d: int) -> list[list[float]]:
    matrix = [[0.0] * d for _ in range(d)]
    for i in range(d // 2):
        angle, j = back / 10_000 ** (2 * i / d), i + d // 2
        matrix[i][i] = matrix[j][j] = math.cos(angle)
        matrix[i][j], matrix[j][i] = math.sin(angle), -math.sin(angle)
    return matrix


def weighted_by_pair(back: int, d: int) -> Tensor:
    return torch.diag(frequencies(d).sqrt().repeat(2)) @ shift_matrix(back, d, interleaved=False)


def remembered(back: int, d: int) -> Tensor:
    """The sum of PE(m)·PE(m - back)ᵀ over the rows of one text."""
    table = sinusoidal_table(range(200), d, interleaved=False)
    return table[back:].T @ table[:-back]


ROTATION = ((torch.cos, torch.sin), (minus_sin, torch.cos))


def in_blocks(
    angles: Tensor,
    block: Callable[[float, float], list[list[float]]] = lambda c, s: [[c, -s], [s, c]],
) -> Tensor:
    return torch.block_diag(*(torch.tensor(block(math.cos(a), math.sin(a))) for a in angles.tolist()))


def by_index(offset: float, omega: Tensor) -> list[list[float]]:
    matrix = [[0.0] * (2 * len(omega)) for _ in range(2 * len(omega))]
    for i, w in enumerate(omega.tolist()):
        matrix[2 * i][2 * i] = matrix[2 * i + 1][2 * i + 1] = math.cos(w * offset)
        matrix[2 * i][2 * i + 1] = -math.sin(w * offset)
        matrix[2 * i + 1][2 * i] = math.sin(w * offset)
    return matrix


def rows(positions: Sequence[float], omega: Tensor) -> np.ndarray:
    angles = np.outer(positions, omega.numpy())
    return np.stack((np.cos(angles), np.sin(angles)), axis=-1).reshape(len(positions), -1)


def by_exponential(offset: float, omega: Tensor) -> Tensor:
    generator = torch.zeros(2 * len(omega), 2 * len(omega), dtype=torch.float64)
    for i, w in enumerate(omega):
        generator[2 * i, 2 * i + 1], generator[2 * i + 1, 2 * i] = -w, w
    return torch.linalg.matrix_exp(offset * generator)


def by_complex_numbers(offset: float, omega: Tensor) -> np.ndarray:
    """What multiplication by e^{iωΔ} does to 1 and to i, pair by pair."""
    matrix = np.zeros((2 * len(omega), 2 * len(omega)))
    for i, turn in enumerate(np.exp(1j * offset * omega.numpy())):
        for column, unit in enumerate((1, 1j)):
            matrix[2 * i : 2 * i + 2, 2 * i + column] = (turn * unit).real, (turn * unit).imag
    return matrix


def searched(row_m: Tensor, row_n: Tensor, omega: Tensor, offsets: Sequence[int]) -> int:
    return min(offsets, key=lambda o: float((in_blocks(o * omega).double() @ row_n - row_m).norm()))


def by_correlation(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> Tensor:
    z = torch.view_as_complex(row_m.view(-1, 2)) * torch.view_as_complex(row_n.view(-1, 2)).conj()
    offsets = torch.arange(-limit, limit + 1)
    return offsets[(z * torch.exp(-1j * offsets[:, None] * omega)).real.sum(dim=1).argmax()]


def by_angles(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> float:
    """The angles between the hands, and for each offset how far it is from all of them."""
    turned = (hands(row_m) - hands(row_n)).numpy()
    offsets = np.arange(-limit, limit + 1)
    off = turned - offsets[:, None] * omega.numpy()
    return float(offsets[np.square(np.angle(np.exp(1j * off))).sum(axis=1).argmin()])


def hands(row: Tensor) -> Tensor:
    cos, sin = row.view(-1, 2).T
    return torch.atan2(sin, cos)


def turned(row_m: Tensor, row_n: Tensor) -> Tensor:
    between = hands(row_m) - hands(row_n)
    return torch.atan2(between.sin(), between.cos())


def unwrapped(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    """From the slowest pair to the fastest, as chapter 4 reads a row of clocks."""
    said = torch.tensor(0.0)
    for i in omega.argsort().tolist():
        angle = turned(row_m, row_n)[i]
        said = (angle + 2 * math.pi * ((said * omega[i] - angle) / (2 * math.pi)).round()) / omega[i]
    return round(said.item())


def by_averages(M: Tensor) -> Tensor:
    """Over all combinations of no turn, or a quarter, a half, three quarters for each pair: the mean of Rᵀ M R."""
    turns = [shift_matrix(k * math.pi / 2, 2) for k in range(4)]
    all_turns = [torch.block_diag(*some) for some in product(turns, repeat=len(M) // 2)]
    return torch.stack([R.T @ M @ R for R in all_turns]).mean(dim=0)


def by_least_squares(M: Tensor) -> np.ndarray:
    basis = []
    for i in range(0, len(M), 2):
        for block in ([[1, 0], [0, 1]], [[0, 1], [-1, 0]]):
            unit = np.zeros(M.shape)
            unit[i : i + 2, i : i + 2] = block
            basis.append(unit.ravel())
    A = np.stack(basis, axis=1)
    return (A @ np.linalg.lstsq(A, M.numpy().ravel(), rcond=None)[0]).reshape(M.shape)


def by_loop(M: Tensor, block: Callable[[float, float, float, float], list[list[float]]] | None = None) -> Tensor:
    N = torch.zeros_like(M)
    for i in range(0, len(M), 2):
        (p, q), (r, s) = M[i : i + 2, i : i + 2].tolist()
        a, b = (p + s) / 2, (q - r) / 2
        N[i : i + 2, i : i + 2] = torch.tensor(block(p, q, r, s) if block else [[a, b], [-b, a]])
    return N


def by_commuting(M: Tensor) -> Tensor:
    """Project on the null space of M ↦ MR - RM."""
    d = len(M)
    R = torch.block_diag(*(shift_matrix(0.3 + 0.4 * i, 2) for i in range(d // 2)))
    one = torch.eye(d, dtype=torch.float64)
    equations = torch.kron(one, R.T.contiguous()) - torch.kron(R, one)
    _, sizes, V = torch.linalg.svd(equations)
    free = V[sizes < 1e-9]
    return (free.mT @ (free @ M.flatten())).reshape(d, d)


def in_place(M: Tensor) -> Tensor:
    M -= M - by_loop(M)
    return M


def shift_exponential(offset: float, omega: Tensor) -> Tensor:
    return torch.matrix_exp(offset * torch.kron(omega.double().diag(), torch.tensor([[0.0, -1.0], [1.0, 0.0]]).double()))


def shift_numpy(offset: float, omega: Tensor) -> Any:
    z = np.exp(1j * offset * omega.numpy())
    return np.kron(np.diag(z.real), np.eye(2)) + np.kron(np.diag(z.imag), np.array([[0, -1], [1, 0]]))


def shift_concatenated(offset: float, omega: Tensor) -> Tensor:
    c, s = (offset * omega).cos().diag(), (offset * omega).sin().diag()
    return torch.cat((torch.cat((c, -s), dim=1), torch.cat((s, c), dim=1)))


def shift_no_minus(offset: float, omega: Tensor) -> Tensor:
    c, s = (offset * omega).cos(), (offset * omega).sin()
    return torch.block_diag(*(torch.stack((a, b, b, a)).view(2, 2) for a, b in zip(c, s, strict=True)))


def shift_two_pairs(offset: float, omega: Tensor) -> Tensor:
    return torch.block_diag(*(shift_exponential(offset, omega[i : i + 1]) for i in range(2)))


def phases(row_m: Tensor, row_n: Tensor) -> Tensor:
    a, b = (torch.view_as_complex(row.double().view(-1, 2).contiguous()) for row in (row_m, row_n))
    return a * b.conj()


def fits(row_m: Tensor, row_n: Tensor, omega: Tensor, offsets: Sequence[int]) -> Tensor:
    angles = torch.tensor(list(offsets)).double()[:, None] * omega
    return (phases(row_m, row_n) * torch.polar(torch.ones_like(angles), -angles)).real.sum(dim=1)


def offset_correlation(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> Tensor:
    return fits(row_m, row_n, omega, range(-limit, limit + 1)).argmax() - limit


def offset_shifting(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    misfits = {k: (shift_exponential(k, omega) @ row_n - row_m).square().sum().item() for k in range(limit, -limit - 1, -1)}
    return min(misfits, key=misfits.__getitem__)


def offset_first_fit(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int | None:
    for k in range(-limit, limit + 1):
        if torch.allclose(shift_exponential(k, omega) @ row_n, row_m, atol=1e-6):
            return k
    return None


def offset_within_a_tenth(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    for k in range(-limit, limit + 1):
        if (shift_exponential(k, omega) @ row_n - row_m).abs().max() < 0.05:
            return k
    return 0


def relative_turned(M: Tensor) -> Tensor:
    pairs = M.shape[0] // 2
    J = torch.kron(torch.eye(pairs), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).to(M)
    return (M + J @ M @ J.T) / 2 * torch.kron(torch.eye(pairs), torch.ones(2, 2)).to(M)


def relative_projected(M: Tensor) -> Any:
    given, result = M.numpy(), np.zeros(M.shape)
    for i in range(len(given) // 2):
        for block in (((0, 0, 1), (1, 1, 1)), ((0, 1, 1), (1, 0, -1))):
            basis = np.zeros_like(given)
            for r, c, sign in block:
                basis[2 * i + r, 2 * i + c] = sign / math.sqrt(2)
            result += np.vdot(basis, given) * basis
    return result


def relative(M: Tensor, a: Callable[[Tensor], Tensor], b: Callable[[Tensor], Tensor]) -> Tensor:
    result = torch.zeros_like(M)
    for i in range(0, len(M), 2):
        block = M[i : i + 2, i : i + 2]
        result[i, i] = result[i + 1, i + 1] = a(block)
        result[i, i + 1], result[i + 1, i] = b(block), -b(block)
    return result


def relative_toeplitz(M: Tensor) -> Tensor:
    result = torch.zeros_like(M)
    for k in range(1 - len(M), len(M)):
        values = M.diagonal(k)
        result.diagonal(k).copy_(values.mean().expand_as(values))
    return result


def relative_between_pairs(M: Tensor) -> Tensor:
    J = torch.kron(torch.eye(len(M) // 2), torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).to(M)
    return (M + J @ M @ J.T) / 2


def relative_halves(M: Tensor) -> Tensor:
    p = len(M) // 2
    a, b = (M[:p, :p] + M[p:, p:]).diagonal() / 2, (M[:p, p:] - M[p:, :p]).diagonal() / 2
    return torch.cat((torch.cat((a.diag(), b.diag()), dim=1), torch.cat((-b.diag(), a.diag()), dim=1)))


def relative_one_for_all(M: Tensor) -> Tensor:
    part = relative_turned(M)
    mean = sum(part[i : i + 2, i : i + 2] for i in range(0, len(M), 2)) / (len(M) // 2)
    return torch.block_diag(*[mean] * (len(M) // 2))


RIGHT: dict[str, list[Any]] = {
    "shift.looks_back": [
        halves(*ROTATION),
        lambda back, d: halves(*ROTATION)(back, d).float(),
        lambda back, d: 40 * halves(*ROTATION)(back, d).numpy(),
        entry_by_entry,
        weighted_by_pair,
        lambda back, d: shift_matrix(back, d, interleaved=False) * (torch.arange(d) % (d // 2) < 3),  # the fast pairs only
        lambda back, d: torch.linalg.matrix_power(shift_matrix(1, d, interleaved=False), back),
        lambda back, d: shift_matrix(back, d)[order := [*range(0, d, 2), *range(1, d, 2)]][:, order],
    ],
    "shift.matrix": [
        lambda offset, omega: in_blocks(offset * omega),
        by_index,
        by_exponential,
        by_complex_numbers,
        lambda offset, omega: np.linalg.lstsq(rows(range(20), omega), rows(np.arange(20) + offset, omega), rcond=None)[0].T,
        lambda offset, omega: by_complex_numbers(offset, omega).astype(np.longdouble),
        *blind(shift_exponential, shift_numpy),
    ],
    "shift.offset_between": [
        lambda m, n, omega, limit: searched(m, n, omega, range(-limit, limit + 1)),
        by_correlation,
        by_angles,
        lambda *case: Decimal(int(by_correlation(*case))),
        *blind(offset_correlation, offset_shifting),
    ],
    "shift.relative_part": [
        by_loop,
        by_averages,
        by_least_squares,
        by_commuting,
        lambda M: by_loop(M.float()).tolist(),
        *blind(relative_turned, relative_projected),
    ],
}

WRONG: dict[str, list[Any]] = {
    "shift.looks_back": [
        ("transposed", lambda back, d: halves(*ROTATION)(back, d).T, "looks ahead"),
        ("ahead, forty times", lambda back, d: 40 * halves(*ROTATION)(back, d).T, "is at m - n = -3 and should be at 3"),
        ("3 back, always", lambda back, d: shift_matrix(3, d, interleaved=False), "at m - n = 3 and should be at 5"),
        ("twice as far", lambda back, d: shift_matrix(2 * back, d, interleaved=False), "at m - n = 6 and should be at 3"),
        ("right at width 16", lambda back, d: halves(*ROTATION)(back, 16)[:d, :d], "for the key 2 tokens back, it is"),
        ("blocks side by side", halves(ROTATION[0], ROTATION[0]), "depends on more than the offset"),
        ("remembered from a text", remembered, "depends on more than the offset"),
        ("random", lambda back, d: torch.randn(d, d, generator=torch.Generator().manual_seed(0)), "more than the offset"),
        ("zeros", lambda back, d: torch.zeros(d, d), "all zeros"),
        ("not a number", lambda back, d: torch.full((d, d), math.nan), "contains NaN or infinity"),
        ("one block", lambda back, d: shift_matrix(back, 2), "has shape (2, 2), but it should be (16, 16)"),
        ("the angles", lambda back, d: back * frequencies(d), "has shape (8,), but it should be (16, 16)"),
        ("sines only", halves((none, torch.sin), (minus_sin, none)), "no cosines"),
        ("complex", lambda back, d: torch.eye(d) * 1j, "returned complex numbers"),
        ("text", lambda back, d: "R", "returned a str that isn't a table"),
    ],
    "shift.matrix": [
        ("one block", lambda o, omega: in_blocks(o * omega[:1]), "has shape"),
        ("blocks apart", lambda o, omega: torch.stack([in_blocks(o * w[None]) for w in omega]), "has shape"),
        (
            "a chain of whole steps",
            lambda o, omega: torch.matrix_power(in_blocks(omega), round(abs(o))),
            "You make two mistakes: you ignore",
        ),
        ("half of it", lambda o, omega: in_blocks(o * omega) / 2, "0.5 times what it should be"),
        ("nothing for no shift", lambda o, omega: in_blocks(o * omega) * (o != 0), "but not for: no shift"),
        *blind(
            ("backwards", lambda o, omega: shift_exponential(o, omega).T, "in the wrong direction"),
            ("concatenated", shift_concatenated, "all cosines came first"),
            ("the paper's speeds", lambda o, omega: shift_exponential(o, frequencies(2 * len(omega))), "of the paper's table"),
            ("whole offsets", lambda o, omega: shift_exponential(int(o), omega), "round the offset towards 0"),
            (
                "forwards always",
                lambda o, omega: shift_exponential(abs(o), omega),
                "offsets below 0 should shift the rows back",
            ),
            ("no minus", shift_no_minus, "needs a minus"),
            ("one speed", lambda o, omega: shift_exponential(o, omega[:1].expand_as(omega)), "rotate like the first"),
            ("two pairs", shift_two_pairs, "has shape"),
            ("turns, not radians", lambda o, omega: shift_exponential(o * 2 * math.pi, omega), "multiply by 2π"),
        ),
    ],
    "shift.offset_between": [
        ("from slow to fast", unwrapped, None),
        ("not rounded", lambda m, n, omega, limit: (turned(m, n) / omega)[0].item(), "should return a whole number"),
        (
            "nothing moved",
            lambda m, n, omega, limit: min(range(-limit, limit + 1), key=lambda o: float((m - n).norm())),
            "always return -limit",
        ),
        (
            "a row for an offset",
            lambda m, n, omega, limit: torch.stack([in_blocks(o * omega).double() @ n for o in range(-limit, limit + 1)]),
            "numbers, but it should return one number",
        ),
        (
            "two clocks",
            lambda m, n, omega, limit: searched(m[:4], n[:4], omega[:2], range(-limit, limit + 1)),
            "don't use all clocks",
        ),
        (
            "all clocks but the last",
            lambda m, n, omega, limit: searched(m[:-2], n[:-2], omega[:-1], range(-limit, limit + 1)),
            "don't use all clocks",
        ),
        *blind(
            ("n - m", lambda *case: -int(offset_correlation(*case)), "Your offset has the wrong sign"),
            (
                "upper end left out",
                lambda m, n, omega, L: int(fits(m, n, omega, range(-L, L)).argmax()) - L,
                "leave out one end",
            ),
            (
                "forwards only",
                lambda m, n, omega, L: int(fits(m, n, omega, range(L + 1)).argmax()),
                "You try only offsets from 0",
            ),
            ("the index", lambda m, n, omega, L: int(fits(m, n, omega, range(-L, L + 1)).argmax()), "begins at -limit"),
            (
                "slowest clock",
                lambda m, n, omega, limit: round(float(phases(m, n)[i := int(omega.argmin())].angle() / omega[i])),
                "don't use all clocks",
            ),
            ("one clock", lambda m, n, omega, limit: int(offset_correlation(m[:2], n[:2], omega[:1], limit)), "use all clocks"),
            ("exact fit", offset_first_fit, "Not tried yet: your function returned None"),
            ("fits within half a tenth", offset_within_a_tenth, None),
            (
                "mean over the clocks",
                lambda m, n, omega, L: round(float((phases(m, n).angle() / omega).mean())),
                "take the mean",
            ),
            (
                "the paper's speeds",
                lambda m, n, omega, L: int(offset_correlation(m, n, frequencies(2 * len(omega)), L)),
                "of the paper's table",
            ),
            ("limit always 40", lambda m, n, omega, limit: int(offset_correlation(m, n, omega, 40)), "from -40 to 40"),
        ),
    ],
    "shift.relative_part": [
        (
            "only one shift",
            lambda M: (M + shift_matrix(1, len(M)).T @ M @ shift_matrix(1, len(M))) / 2,
            None,
        ),
        ("two numbers", lambda M: torch.stack((M.diag(), M.diag())), "has shape"),
        ("written into M", in_place, "writes into its arguments"),
        ("one squeezed", lambda M: by_loop(M).squeeze() if len(M) > 2 else by_loop(M)[0, 0], "has shape"),
        ("trace", lambda M: M.trace() / len(M) * torch.eye(len(M)), "a multiple of the identity matrix"),
        *blind(
            (
                "blocks as they are",
                lambda M: M * torch.kron(torch.eye(len(M) // 2), torch.ones(2, 2)),
                "blocks of M as they are",
            ),
            (
                "b with the wrong sign",
                lambda M: relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: (m[0, 1] + m[1, 0]) / 2),
                "You forgot a minus sign",
            ),
            (
                "symmetric",
                lambda M: by_loop(M, lambda p, q, r, s: [[(p + s) / 2, (q + r) / 2], [(q + r) / 2, (p + s) / 2]]),
                "Your blocks are symmetric",
            ),
            ("one of two", lambda M: relative(M, lambda m: m[0, 0], lambda m: m[0, 1]), "only the upper row"),
            (
                "not halved",
                lambda M: relative(M, lambda m: m[0, 0] + m[1, 1], lambda m: m[0, 1] - m[1, 0]),
                "twice as large",
            ),
            (
                "b upside down",
                lambda M: relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: (m[1, 0] - m[0, 1]) / 2),
                "have the wrong sign",
            ),
            ("diagonals averaged", relative_toeplitz, "along the diagonals"),
            ("between pairs too", relative_between_pairs, "between two different pairs"),
            (
                "no b",
                lambda M: relative(M, lambda m: (m[0, 0] + m[1, 1]) / 2, lambda m: 0 * m[0, 1]),
                "only the numbers on the diagonal",
            ),
            ("concatenated", relative_halves, "columns i and i + d/2"),
            ("one block for all pairs", relative_one_for_all, "the same two numbers for all pairs"),
        ),
    ],
}
