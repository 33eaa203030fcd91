"""Answers to assignment 6: right ones written differently, and wrong ones with what their verdict must say."""

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.geometry import shift_matrix
from posenc_course.sinusoidal import frequencies


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


def concatenated(offset: float, omega: Tensor) -> Tensor:
    C, S = (torch.diag(f(offset * omega)) for f in (torch.cos, torch.sin))
    return torch.cat((torch.cat((C, -S), dim=1), torch.cat((S, C), dim=1)))


def sine_first(offset: float, omega: Tensor) -> Tensor:
    return in_blocks(offset * omega, lambda c, s: [[c, s], [-s, c]])


# ── the offset ───────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def first_exact(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    for o in range(-limit, limit + 1):
        if torch.allclose(in_blocks(o * omega).double() @ row_n, row_m, rtol=0, atol=1e-8):
            return o
    return 0


def unwrapped(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
    """From the slowest pair to the fastest, as chapter 4 reads a row of clocks."""
    said = torch.tensor(0.0)
    for i in omega.argsort().tolist():
        angle = turned(row_m, row_n)[i]
        said = (angle + 2 * math.pi * ((said * omega[i] - angle) / (2 * math.pi)).round()) / omega[i]
    return round(said.item())


# ── the relative part ────────────────────────────────────────────────────────────────────────────────────────────────────


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


def by_halves(M: Tensor) -> Tensor:
    n = len(M) // 2
    a = (M[:n, :n] + M[n:, n:]).diag() / 2
    b = (M[:n, n:] - M[n:, :n]).diag() / 2
    return torch.cat((torch.cat((a.diag(), b.diag()), dim=1), torch.cat((-b.diag(), a.diag()), dim=1)))


def in_place(M: Tensor) -> Tensor:
    M -= M - by_loop(M)
    return M


RIGHT: dict[str, list[Callable[..., Any]]] = {
    "shift.matrix": [
        lambda offset, omega: in_blocks(offset * omega),
        by_index,
        by_exponential,
        by_complex_numbers,
        lambda offset, omega: np.linalg.lstsq(rows(range(20), omega), rows(np.arange(20) + offset, omega), rcond=None)[0].T,
    ],
    "shift.offset_between": [
        lambda m, n, omega, limit: searched(m, n, omega, range(-limit, limit + 1)),
        by_correlation,
        by_angles,
    ],
    "shift.relative_part": [by_loop, by_averages, by_least_squares, by_commuting, lambda M: by_loop(M.float()).tolist()],
}

# What is wrong: the answer, and words of its verdict, or None for a mistake that has no name.
WRONG: dict[str, dict[str, tuple[Callable[..., Any], str | None]]] = {
    "shift.matrix": {
        "the chapter's block": (sine_first, "moves every row back"),
        "transposed": (lambda offset, omega: in_blocks(offset * omega).T, "moves every row back"),
        "concatenated": (concatenated, "all cosines come first, then all sines."),
        "concatenated, transposed": (lambda o, omega: concatenated(o, omega).T, "once they are in place"),
        "no minus": (lambda o, omega: in_blocks(o * omega, lambda c, s: [[c, s], [s, c]]), "needs a minus"),
        "sine on the diagonal": (lambda o, omega: in_blocks(o * omega, lambda c, s: [[s, -c], [c, s]]), "changed places"),
        "one token": (lambda o, omega: in_blocks(omega), "does not come in"),
        "no frequency": (lambda o, omega: in_blocks(torch.tensor([float(o)] * len(omega))), "same angle"),
        "the paper's frequencies": (lambda o, omega: in_blocks(o * frequencies(2 * len(omega))), "the paper's table"),
        "turns per token": (lambda o, omega: in_blocks(2 * math.pi * o * omega), "multiplied by 2π"),
        "divided by a turn": (lambda o, omega: in_blocks(o * omega / (2 * math.pi)), "divided by 2π"),
        "degrees": (lambda o, omega: in_blocks(o * omega * math.pi / 180), "degrees"),
        "wavelengths": (lambda o, omega: in_blocks(o / omega), "divide by the frequency"),
        "whole offsets": (lambda o, omega: in_blocks(int(o) * omega), "became -2"),
        "floored offsets": (lambda o, omega: in_blocks(o // 1 * omega), "became -3"),
        "without a sign": (lambda o, omega: in_blocks(abs(o) * omega), "below 0"),
        "one block": (lambda o, omega: in_blocks(o * omega[:1]), "has shape"),
        "blocks apart": (lambda o, omega: torch.stack([in_blocks(o * w[None]) for w in omega]), "has shape"),
        "a chain of whole steps": (lambda o, omega: torch.matrix_power(in_blocks(omega), round(abs(o))), None),
    },
    "shift.offset_between": {
        "sign": (lambda m, n, omega, limit: searched(n, m, omega, range(-limit, limit + 1)), "wrong way round"),
        "distance": (lambda m, n, omega, limit: abs(searched(m, n, omega, range(-limit, limit + 1))), "without its sign"),
        "forwards only": (lambda m, n, omega, limit: searched(m, n, omega, range(limit + 1)), "from 0 on"),
        "without the last": (lambda m, n, omega, limit: searched(m, n, omega, range(-limit, limit)), "one end"),
        "without both ends": (lambda m, n, omega, limit: searched(m, n, omega, range(-limit + 1, limit)), "both ends"),
        "the first pair": (lambda m, n, omega, limit: round((turned(m, n) / omega)[0].item()), "trust one pair"),
        "the last pair": (lambda m, n, omega, limit: round((turned(m, n) / omega)[-1].item()), "trust one pair"),
        "the slowest pair": (lambda m, n, omega, limit: round((turned(m, n) / omega)[omega.argmin()].item()), "trust one pair"),
        "first pair, searched": (
            lambda m, n, omega, limit: searched(m[:2], n[:2], omega[:1], range(-limit, limit + 1)),
            "trust one pair",
        ),
        "the mean": (lambda m, n, omega, limit: round((turned(m, n) / omega).mean().item()), "the mean of what"),
        "the median": (lambda m, n, omega, limit: round((turned(m, n) / omega).median().item()), "let the pairs vote"),
        "from slow to fast": (unwrapped, None),
        "to the last digit": (first_exact, "always 0"),
        "not rounded": (lambda m, n, omega, limit: (turned(m, n) / omega)[0].item(), "should be a whole number"),
        "nothing moved": (
            lambda m, n, omega, limit: min(range(-limit, limit + 1), key=lambda o: float((m - n).norm())),
            "always -limit",
        ),
        "a row for an offset": (
            lambda m, n, omega, limit: torch.stack([in_blocks(o * omega).double() @ n for o in range(-limit, limit + 1)]),
            "numbers, it should be one number",
        ),
        "index": (lambda m, n, omega, L: searched(m, n, omega, range(-L, L + 1)) + L, "the place of the offset"),
    },
    "shift.relative_part": {
        "M itself": (lambda M: M, "M as it was"),
        "all zeros": (lambda M: 0 * M, "All zeros"),
        "blocks as they were": (lambda M: by_loop(M, lambda p, q, r, s: [[p, q], [r, s]]), "as they were in M"),
        "the diagonal": (lambda M: torch.diag(torch.diag(M)), "must become equal"),
        "only scalings": (lambda M: by_loop(M, lambda p, q, r, s: [[(p + s) / 2, 0], [0, (p + s) / 2]]), "Only the scalings"),
        "only turns": (lambda M: by_loop(M, lambda p, q, r, s: [[0, (q - r) / 2], [(r - q) / 2, 0]]), "Only the turns"),
        "sums": (lambda M: by_loop(M, lambda p, q, r, s: [[p + s, q - r], [r - q, p + s]]), "Twice too large"),
        "half a sum": (
            lambda M: by_loop(M, lambda p, q, r, s: [[(p + s) / 2, q - r], [r - q, (p + s) / 2]]),
            "turns twice too large",
        ),
        "the other half": (
            lambda M: by_loop(M, lambda p, q, r, s: [[p + s, (q - r) / 2], [(r - q) / 2, p + s]]),
            "scalings twice too large",
        ),
        "sign of b": (
            lambda M: by_loop(M, lambda p, q, r, s: [[(p + s) / 2, (r - q) / 2], [(q - r) / 2, (p + s) / 2]]),
            "wrong way round",
        ),
        "the other layout": (by_halves, "columns i and i + d/2"),
        "the upper row": (lambda M: by_loop(M, lambda p, q, r, s: [[p, q], [-q, p]]), "the upper row"),
        "b with a plus": (
            lambda M: by_loop(M, lambda p, q, r, s: [[(p + s) / 2, (q + r) / 2], [-(q + r) / 2, (p + s) / 2]]),
            "forget a minus",
        ),
        "symmetric": (lambda M: by_loop((M + M.T) / 2), "Only the scalings"),
        "symmetric blocks": (
            lambda M: by_loop(M, lambda p, q, r, s: [[(p + s) / 2, (q + r) / 2], [(q + r) / 2, (p + s) / 2]]),
            "blocks are symmetric",
        ),
        "one for all": (
            lambda M: torch.block_diag(*[sum(by_loop(M)[i : i + 2, i : i + 2] for i in range(0, len(M), 2)) / len(M) * 2]
                                       * (len(M) // 2)),
            "for all pairs",
        ),
        "trace": (lambda M: M.trace() / len(M) * torch.eye(len(M)), None),
        "only one shift": (
            lambda M: (M + shift_matrix(1, len(M)).T @ M @ shift_matrix(1, len(M))) / 2,
            "is not relative",
        ),
        "two numbers": (lambda M: torch.stack((M.diag(), M.diag())), "has shape"),
        "written into M": (in_place, "writes into M"),
    },
}  # fmt: skip
