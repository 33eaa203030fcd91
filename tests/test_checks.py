"""The checks are checked: a bank of wrong answers, each with its diagnosis, and of right ones written differently."""

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.attention import attention
from posenc_course.checks import (
    _verdict,
    alibi,
    base,
    grade,
    learned,
    lengths,
    naive,
    nope,
    norm,
    order,
    pendulums,
    relative,
    rope,
    rope_scaling,
    shift,
    sinusoidal,
)
from posenc_course.geometry import shift_matrix
from posenc_course.naive import binary
from posenc_course.relative import t5_buckets
from posenc_course.rope import apply_rope, rope_tables
from posenc_course.rope_scaling import llama3, ntk_aware, position_interpolation, yarn
from posenc_course.sinusoidal import frequencies, sinusoidal_table

Answer = Callable[..., Any]
BRACKETS = {"^": [1.0, 0.0], "(": [0.0, 1.0], ")": [0.0, -1.0]}
CHECKS: dict[str, Callable[[Answer], str]] = {
    "order": order.equivariance,
    "naive": naive.binary,
    "sinusoidal": sinusoidal.table,
    "pendulums": pendulums.offset,
    "shift": shift.looks_back,
    "base": base.smallest,
    "norm": norm.factor,
    "learned": learned.extend,
    "lengths": lengths.windows,
    "nope": lambda my_readout: nope.depth(BRACKETS.get, my_readout),
    "rope": rope.relative,
    "relative": relative.bucket,
    "alibi": alibi.bias,
    "rope_scaling": rope_scaling.by_parts,
}


@pytest.fixture(autouse=True)
def _the_package_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank is written with the package's functions, which a check would recognize."""
    monkeypatch.setattr(_verdict, "_recognized", lambda _call: nullcontext())


def two_loops(angle: Callable[[int, int, int], float], *, first: Answer = math.sin, second: Answer = math.cos) -> Answer:
    """A table as a beginner writes it, with angle(m, channel, d_model)."""

    def table(positions: Tensor, d_model: int) -> Tensor:
        rows = [[(second if c % 2 else first)(angle(m, c, d_model)) for c in range(d_model)] for m in positions.tolist()]
        return torch.tensor(rows)

    return table


def pair_angle(m: float, c: int, d: int) -> float:
    return float(m / 10_000 ** ((c - c % 2) / d))


def drawn_out(table: Tensor, rows: int) -> Tensor:
    return F.interpolate(table.T[None], size=rows, mode="linear", align_corners=True)[0].T


def permuted(x: Tensor, seed: int = 0) -> Tensor:
    return torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))


def equivariant_for(permutation: Answer, same: Answer = torch.allclose) -> Answer:
    def is_equivariant(f: Answer, x: Tensor) -> Any:
        p = permutation(x)
        return same(f(x[p]), f(x)[p])

    return is_equivariant


def numpy_table(positions: Tensor, d_model: int) -> np.ndarray:
    angles = np.outer(positions.numpy(), 10_000.0 ** (-np.arange(0, d_model, 2) / d_model))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), d_model)


def float32_table(positions: Tensor, d_model: int) -> Tensor:
    table = torch.zeros(len(positions), d_model, requires_grad=True).clone()
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10_000.0) / d_model))
    table[:, 0::2], table[:, 1::2] = torch.sin(positions[:, None] * rate), torch.cos(positions[:, None] * rate)
    return table


def shifting_in_place(positions: Tensor, d_model: int) -> Tensor:
    positions += 3
    return sinusoidal_table(positions, d_model)


def hands(row: Tensor) -> Tensor:
    return torch.atan2(row[0::2], row[1::2])


def read(angles: Tensor, omega: Tensor) -> float:
    """The position that a row of clocks shows, from the slowest to the fastest."""
    m = angles[-1] / omega[-1]
    for hand, rate in zip(angles.flip(0)[1:], omega.flip(0)[1:], strict=True):
        m = (hand + 2 * math.pi * torch.round((m * rate - hand) / (2 * math.pi))) / rate
    return float(m)


def turned(row_m: Tensor, row_n: Tensor) -> Tensor:
    """How far each hand turns from row n to row m, -π to π."""
    angle = hands(row_m) - hands(row_n)
    return torch.atan2(angle.sin(), angle.cos())


def offset(row_m: Tensor, row_n: Tensor) -> int:
    return round(read(turned(row_m, row_n), frequencies(len(row_m))))


def numpy_offset(row_m: Tensor, row_n: Tensor) -> np.int64:
    a, b = (row.numpy()[1::2] + 1j * row.numpy()[0::2] for row in (row_m, row_n))
    omega = 10_000.0 ** (-np.arange(0, len(row_m), 2) / len(row_m))
    far = np.arange(-int(np.pi / omega[-1]), int(np.pi / omega[-1]) + 1)
    return far[np.cos(np.outer(far, omega) - np.angle(a * b.conj())).sum(axis=1).argmax()]


def from_two_positions(row_m: Tensor, row_n: Tensor) -> int:
    omega = frequencies(len(row_m))
    m, n = (round(read(hands(row) % (2 * math.pi), omega)) for row in (row_m, row_n))
    return m - n


def unsigned_offset(row_m: Tensor, row_n: Tensor) -> int:
    return round(read(turned(row_m, row_n) % (2 * math.pi), frequencies(len(row_m))))


def looked_up(row_m: Tensor, row_n: Tensor) -> int:
    table = sinusoidal_table(torch.arange(3000), len(row_m))
    m, n = (int((table - row).norm(dim=1).argmin()) for row in (row_m, row_n))
    return m - n


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


def turning(offset: Callable[[float], float]) -> Answer:
    return lambda back, d: shift_matrix(offset(back), d, interleaved=False)


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


def by_logarithm(
    offset: int,
    num_buckets: int,
    max_distance: int,
    *,
    log: Answer = math.log,
    place: Answer = int,
    start: Answer = lambda single: single,
    wide: Answer = lambda side, single: side - single,
    most: Answer = min,
    first: Answer = lambda single: single,
) -> Any:
    """T5's bucket as the solution writes it, with one part to be exchanged."""
    side = num_buckets // 2
    single, bucket = side // 2, abs(offset)
    if bucket >= single:
        share = log(bucket / start(single)) / log(max_distance / start(single))
        bucket = most(side - 1, first(single) + place(share * wide(side, single)))
    return bucket + (side if offset < 0 else 0)


def exact_bucket(offset: int, num_buckets: int, max_distance: int, *, causal: bool = False) -> int:
    return int(t5_buckets([offset], num_buckets, max_distance, causal=causal))


def numpy_bucket(offset: int, num_buckets: int, max_distance: int) -> np.ndarray:
    side, single, distance = num_buckets // 2, num_buckets // 4, np.abs(offset)
    wide = single + np.floor(np.log(np.maximum(distance, 1) / single) / np.log(max_distance / single) * (side - single))
    return np.where(distance < single, distance, np.minimum(wide, side - 1)) + side * (offset < 0)


def torch_bucket(offset: int, num_buckets: int, max_distance: int) -> Tensor:
    """As the libraries write it, in 32 bits, for the other sign."""
    ahead, side, single = -torch.tensor(offset), num_buckets // 2, num_buckets // 4
    distance = ahead.abs()
    wide = single + (torch.log(distance.float() / single) / math.log(max_distance / single) * (side - single)).long()
    return (ahead > 0) * side + torch.where(distance < single, distance, wide.clamp(max=side - 1))


def counted_bucket(offset: int, num_buckets: int, max_distance: int) -> int:
    """By whole numbers: how many edges lie at or below the distance."""
    side, single, distance = num_buckets // 2, num_buckets // 4, abs(offset)
    steps = side - single
    wide = sum(distance**steps >= single ** (steps - j) * max_distance**j for j in range(1, steps))
    return min(distance, single) + (wide if distance > single else 0) + side * (offset < 0)


ROTATION = ((torch.cos, torch.sin), (minus_sin, torch.cos))


def smallest_base(length: int, d: int, turn: float = math.pi) -> float:
    return float(((length - 1) / turn) ** (d / (d - 2)))


def bisected_base(length: int, d: int) -> float:
    low, high = 1.0, 1e10
    for _ in range(200):
        middle = (low + high) / 2
        too_fast = frequencies(d, middle)[-1] * (length - 1) > math.pi
        low, high = (middle, high) if too_fast else (low, middle)
    return high


def factor(d_model: int, std: float, share: float) -> float:
    """From share = p² / (p² + f²·x²), with the squared lengths p² = d/2 and x² = d·std²."""
    position, word = d_model / 2, d_model * std**2
    return math.sqrt(position * (1 - share) / share / word)


def scaled(by: Callable[[int, float], float]) -> Answer:
    """The right factor, times a wrong one."""
    return lambda d, std, share: factor(d, std, share) * by(d, std)


def sliding_windows(total: int, length: int, stride: int) -> list[tuple[int, int]]:
    plan, done = [(0, 0)], length
    while done < total:
        end = min(done + stride, total)
        plan.append((end - length, length - (end - done)))
        done = end
    return plan


def generated_windows(total: int, length: int, stride: int) -> Iterator[list[int]]:
    yield [0, 0]
    for done in range(length, total, stride):
        start = min(done + stride, total) - length
        yield [start, done - start]


def planned(change: Callable[[int, int, int, int, int], tuple[Any, Any]]) -> Answer:
    """The right plan with each pair but the first changed: change(start, first, total, length, stride)."""
    return lambda *case: [(0, 0)] + [change(*pair, *case) for pair in sliding_windows(*case)[1:]]


def regular(first_of_all: Answer, first: Answer) -> Answer:
    """Windows at 0, stride, 2·stride, … as long as they fit, whatever remains."""
    return lambda total, length, stride: [
        (start, first(length, stride) if start else first_of_all(length, stride))
        for start in range(0, total - length + 1, stride)
    ]


def rotated(
    *,
    halves: bool = False,
    angle: Callable[[Tensor, Tensor], Tensor] = lambda m, rate: m * rate,
    power: Callable[[int, int], float] = lambda i, d: -2 * i / d,
    turn: Callable[..., tuple[Tensor, Tensor]] = lambda a, b, c, s: (a * c - b * s, a * s + b * c),
    back: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Answer:
    """A rotary embedding as a beginner writes it, with one thing to be got wrong at a time."""

    def my_rotate(x: Tensor, positions: Tensor) -> Tensor:
        d = x.shape[1]
        rate = torch.tensor([10_000.0 ** power(i, d) for i in range(d // 2)], dtype=torch.float64)
        theta = angle(positions[:, None], rate)
        a, b = (x[:, : d // 2], x[:, d // 2 :]) if halves else (x[:, 0::2], x[:, 1::2])
        pair = turn(a, b, torch.cos(theta), torch.sin(theta))
        if back is not None:
            return back(*pair)
        return torch.cat(pair, dim=1) if halves else torch.stack(pair, dim=2).reshape(x.shape)

    return my_rotate


def as_llama(x: Tensor, positions: Tensor, *, lay_out: Answer = lambda t: torch.cat((t, t), dim=-1)) -> Tensor:
    """x·cos + rotate_half(x)·sin, in float32."""
    angles = torch.outer(positions.float(), 1.0 / 10_000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    cos, sin = lay_out(angles.cos()), lay_out(angles.sin())
    a, b = x.float().chunk(2, dim=-1)
    return x.float() * cos + torch.cat((-b, a), dim=-1) * sin


def as_gptj(x: Tensor, positions: Tensor, *, lay_out: Answer = lambda t: np.repeat(t, 2, axis=-1)) -> np.ndarray:
    """x·cos + rotate_every_two(x)·sin, in NumPy."""
    rows = x.numpy()
    angles = np.outer(positions.numpy(), 10_000.0 ** (-np.arange(0, rows.shape[1], 2) / rows.shape[1]))
    crossed = np.stack((-rows[:, 1::2], rows[:, 0::2]), axis=-1).reshape(rows.shape)
    return rows * lay_out(np.cos(angles)) + crossed * lay_out(np.sin(angles))


def as_complex(x: Tensor, positions: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    angles = torch.outer(positions.double(), frequencies(x.shape[-1]))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(start_dim=-2)


def row_by_row(x: Tensor, positions: Tensor) -> list[list[float]]:
    rows = []
    for row, m in zip(x.tolist(), positions.tolist(), strict=True):
        new, d = list(row), len(row)
        for i in range(d // 2):
            c, s = math.cos(m * 10_000 ** (-2 * i / d)), math.sin(m * 10_000 ** (-2 * i / d))
            new[2 * i], new[2 * i + 1] = row[2 * i] * c - row[2 * i + 1] * s, row[2 * i] * s + row[2 * i + 1] * c
        rows.append(new)
    return rows


def rotated_in_place(x: Tensor, positions: Tensor) -> Tensor:
    x[:] = rotated()(x, positions)
    return x


def first_overwritten(x: Tensor, positions: Tensor) -> Tensor:
    new = x.clone()
    theta = torch.outer(positions.double(), frequencies(x.shape[1]))
    new[:, 0::2] = new[:, 0::2] * theta.cos() - new[:, 1::2] * theta.sin()
    new[:, 1::2] = new[:, 0::2] * theta.sin() + new[:, 1::2] * theta.cos()
    return new


def linear_bias(slopes: Callable[[int], Tensor]) -> Answer:
    """slope·(n - m) with these slopes."""
    return lambda q, k, heads: slopes(heads).double()[:, None, None] * (k - q[:, None])


def from_slopes(change: Callable[[Tensor], Tensor]) -> Answer:
    return linear_bias(lambda heads: change(alibi_slopes(heads)))


def from_exponents(exponent: Callable[[Tensor, int], Tensor]) -> Answer:
    return linear_bias(lambda heads: 2.0 ** -exponent(torch.arange(1, heads + 1, dtype=torch.float64), heads))


def from_places(q: Tensor, k: Tensor, heads: int) -> Tensor:
    """Distances in the tensor, whatever the positions."""
    return -alibi_slopes(heads)[:, None, None] * (torch.arange(len(q))[:, None] - torch.arange(len(k))).abs()


def from_the_end(q: Tensor, k: Tensor, heads: int) -> Tensor:
    """Distances in the tensor, whose last rows are the queries: good for a cache, not for a gap."""
    rows = torch.arange(len(k) - len(q), len(k))
    return -alibi_slopes(heads)[:, None, None] * (rows[:, None] - torch.arange(len(k)))


def numpy_bias(q: Tensor, k: Tensor, heads: int) -> np.ndarray:
    slopes = alibi_slopes(heads).numpy()
    return -slopes[:, None, None] * np.abs(np.subtract.outer(q.numpy(), k.numpy()))


def masked_bias(q: Tensor, k: Tensor, heads: int) -> Tensor:
    return linear_bias(alibi_slopes)(q, k, heads).masked_fill(k > q[:, None], -math.inf)


def in_a_loop(q: Tensor, k: Tensor, heads: int) -> list[list[list[float]]]:
    return [[[float(-s * abs(m - n)) for n in k] for m in q] for s in alibi_slopes(heads)]


def turns(omega: Tensor, length: float) -> Tensor:
    return length * omega / (2 * math.pi)


def kept(n: Tensor) -> Tensor:
    return ((n - 1) / 3).clamp(0, 1)


def blend(keep: Tensor, omega: Tensor, factor: float) -> Tensor:
    return keep * omega + (1 - keep) * omega / factor


def pair_by_pair(omega: Tensor, factor: float, length: int) -> list[float]:
    """As Llama 3.1's published code goes about it: wavelengths, and three cases."""
    result = []
    for w in omega.tolist():
        wavelength = 2 * math.pi / w
        if wavelength <= length / 4:
            result.append(w)
        elif wavelength >= length:
            result.append(w / factor)
        else:
            smooth = (length / wavelength - 1) / 3
            result.append((1 - smooth) * w / factor + smooth * w)
    return result


def numpy_by_parts(omega: Tensor, factor: float, length: int) -> np.ndarray:
    w = omega.numpy()
    return w / factor + np.clip((length * w / (2 * np.pi) - 1) / 3, 0, 1) * (w - w / factor)


def hard_step(end: float) -> Answer:
    return lambda w, s, n: torch.where(turns(w, n) <= end, w / s, w)


def changing_omega(omega: Tensor, factor: float, length: int) -> Tensor:
    omega[turns(omega, length) <= 1] /= factor
    return omega


RIGHT: dict[str, list[Answer]] = {
    "order": [
        equivariant_for(permuted),
        equivariant_for(lambda _: [1, 0, 2, 3, 4]),
        equivariant_for(permuted, lambda a, b: np.allclose(a.numpy(), b.numpy())),
        equivariant_for(permuted, lambda a, b: (a - b).abs().max() < 1e-9),
        lambda f, x: all(torch.allclose(f(x[p]), f(x)[p]) for p in (permuted(x, seed) for seed in range(5))),
        lambda f, x: torch.allclose(f((P := torch.eye(5).roll(1, 0).to(x)) @ x), P @ f(x)),
    ],
    "naive": [
        binary_list := lambda m, n: [(m >> b) & 1 for b in range(n)],
        lambda m, n: tuple(m // 2**b % 2 for b in range(n)),
        lambda m, n: np.array([int(digit) for digit in f"{m:0{n}b}"])[::-1],
        lambda m, n: (torch.tensor(m) >> torch.arange(n)) & 1,
        lambda m, n: torch.floor(m / 2.0 ** torch.arange(n)).remainder(2),
        lambda m, n: [bool(m & 2**b) for b in range(n)],
        lambda m, n: [torch.tensor(digit) for digit in binary_list(m, n)],
    ],
    "sinusoidal": [
        numpy_table,
        float32_table,
        two_loops(pair_angle),
        lambda positions, d: two_loops(pair_angle)(positions, d).tolist(),
        lambda positions, d: list(numpy_table(positions, d)),
        lambda positions, d: np.asfortranarray(numpy_table(positions, d))[::-1][::-1],
    ],
    "pendulums": [
        offset,
        numpy_offset,
        lambda a, b: -offset(b, a),
        lambda a, b: float(offset(a, b)),
        lambda a, b: torch.tensor([offset(a, b)]),
        lambda a, b: np.array([[offset(a, b)]]),
    ],
    "shift": [
        halves(*ROTATION),
        lambda back, d: halves(*ROTATION)(back, d).float(),
        lambda back, d: 40 * halves(*ROTATION)(back, d).numpy(),
        entry_by_entry,
        weighted_by_pair,
        lambda back, d: turning(lambda b: b)(back, d) * (torch.arange(d) % (d // 2) < 3),  # the fast pairs only
        lambda back, d: torch.linalg.matrix_power(shift_matrix(1, d, interleaved=False), back),
        lambda back, d: shift_matrix(back, d)[order := [*range(0, d, 2), *range(1, d, 2)]][:, order],
    ],
    "base": [
        smallest_base,
        bisected_base,
        lambda L, d: math.exp(d / (d - 2) * math.log((L - 1) / math.pi)),
        lambda L, d: torch.tensor((L - 1) / torch.pi) ** (d / (d - 2)),  # float32
        lambda L, d: np.array([smallest_base(L, d)]),
        lambda L, d: np.power((L - 1) / np.pi, d / (d - 2)),
    ],
    "norm": [
        factor,
        lambda d, std, share: np.sqrt((1 - share) / (2 * share)) / std,
        lambda d, std, share: torch.tensor([factor(d, std, share)]),
        lambda d, std, share: np.float32(factor(d, std, share)),
        lambda d, std, share: round(factor(d, std, share), 4),
        lambda d, std, share: math.sqrt((d / 2 / share - d / 2) / (d * std**2)),
    ],
    "lengths": [
        sliding_windows,
        generated_windows,
        lambda *case: torch.tensor(sliding_windows(*case)),
        lambda *case: np.array(sliding_windows(*case), dtype=float),
        lambda *case: sliding_windows(*case)[::-1],
        lambda *case: tuple(map(np.array, sliding_windows(*case))),
        # The short move comes first, not last.
        lambda total, length, stride: (
            [(0, 0)]
            + [
                (total - length - k * stride, length - (min(stride, total - length - k * stride)))
                for k in range(-(-(total - length) // stride) - 1, -1, -1)
            ]
        ),
    ],
    "nope": [
        lambda mean: mean[1] / mean[0],
        lambda mean: float(mean[1]) * round(1 / float(mean[0])),
        lambda mean: np.round(mean.numpy()[1] / mean.numpy()[0]),
    ],
    "rope": [
        rotated(),
        rotated(halves=True),
        rotated(angle=lambda m, rate: -m * rate),
        rotated(halves=True, turn=lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
        as_llama,
        as_gptj,
        as_complex,
        row_by_row,
        lambda x, positions: apply_rope(x[None, None], *rope_tables(positions, frequencies(x.shape[1])), interleaved=False)[
            0, 0
        ],
    ],
    "relative": [
        by_logarithm,
        exact_bucket,
        numpy_bucket,
        torch_bucket,
        counted_bucket,
        lambda o, b, far: by_logarithm(o, b, far, log=math.log2),
        lambda o, b, far: by_logarithm(o, b, far, log=math.log10),
        lambda o, b, far: float(by_logarithm(o, b, far)),
        lambda o, b, far: torch.tensor([by_logarithm(o, b, far)]),
    ],
    "learned": [
        drawn_out,
        lambda table, rows: np.stack(
            [np.interp(np.linspace(0, len(table) - 1, rows), np.arange(len(table)), c) for c in table.T.numpy()], axis=1
        ),
        lambda table, rows: [
            (
                table[min(int(p), len(table) - 2)] * (1 - p + min(int(p), len(table) - 2))
                + table[min(int(p), len(table) - 2) + 1] * (p - min(int(p), len(table) - 2))
            ).tolist()
            for p in (r * (len(table) - 1) / (rows - 1) for r in range(rows))
        ],
    ],
    "alibi": [
        linear_bias(alibi_slopes),
        numpy_bias,
        masked_bias,
        in_a_loop,
        lambda q, k, heads: alibi_bias(q, k, alibi_slopes(heads)),  # (1, heads, L_query, L_key), float32
        lambda q, k, heads: alibi_slopes(heads)[:, None, None] * k,  # as BLOOM: one row for all queries
        lambda q, k, heads: alibi_slopes(heads)[:, None, None] * (k - k[-1]),  # as MPT
        lambda q, k, heads: (alibi_slopes(heads)[:, None, None] * k).float().expand(heads, len(q), -1),
        lambda q, k, heads: alibi_slopes(heads)[:, None, None] * torch.minimum(k - q[:, None], torch.tensor(0)) + 7,
    ],
    "rope_scaling": [
        pair_by_pair,
        numpy_by_parts,
        llama3,
        lambda w, s, n: blend(kept(turns(w, n)), w, s),
        lambda w, s, n: blend(kept(turns(w, n)), w, s).float(),
        lambda w, s, n: w / (1 / (kept(turns(w, n)) + (1 - kept(turns(w, n))) / s)),
        lambda w, s, n: torch.lerp(w / s, w, kept(turns(w, n))),
    ],
}

# Each wrong answer, by what is wrong with it, with a phrase of the verdict it must get.
WRONG: dict[str, dict[str, tuple[Answer, str]]] = {
    "order": {
        "invariance": (lambda f, x: torch.allclose(f(x[permuted(x)]), f(x)), "looks for invariance"),
        "no permutation": (equivariant_for(lambda x: torch.arange(len(x))), "all six equivariant"),
        "always True": (lambda f, x: True, "all six equivariant"),
        "always False": (lambda f, x: False, "nothing equivariant"),
        "the inverse permutation": (
            lambda f, x: torch.allclose(f(x[[1, 2, 3, 4, 0]]), f(x)[[4, 0, 1, 2, 3]]),
            "wrong about: attention",
        ),
        "only the reversal": (equivariant_for(lambda _: [4, 3, 2, 1, 0]), "taken in by the reversed sequence"),
        "a swap of the ends": (equivariant_for(lambda _: [4, 1, 2, 3, 0]), "taken in by the reversed sequence"),
        "channels permuted": (lambda f, x: torch.allclose(f(x[:, [1, 0, 2, 3]]), f(x)[:, [1, 0, 2, 3]]), "all six"),
        "exact comparison": (
            lambda f, x: all(torch.equal(f(x[p]), f(x)[p]) for p in (permuted(x, seed) for seed in range(20))),
            "compare with torch.allclose",
        ),
        "sums compared": (lambda f, x: torch.allclose(f(x[permuted(x)]).sum(0), f(x).sum(0)), "wrong about: "),
        "elementwise": (equivariant_for(permuted, torch.isclose), "torch.allclose compares whole tensors"),
        "a difference": (
            equivariant_for(permuted, lambda a, b: (a - b).abs().max()),
            "returned a Tensor, it should be one True",
        ),
        "words": (lambda f, x: "yes", "returned a str"),
    },
    "naive": {
        "slowest first": (lambda m, n: [int(digit) for digit in f"{m:0{n}b}"], "slowest first"),
        "counted from 1": (lambda m, n: binary_list(m + 1, n), "digits of m + 1"),
        "opposite": (lambda m, n: [1 - digit for digit in binary_list(m, n)], "opposite"),
        "no remainder": (lambda m, n: [m // 2**b for b in range(n)], "Is a remainder by 2 missing?"),
        "no floor": (lambda m, n: [m / 2**b % 2 for b in range(n)], "a digit is 0 or 1"),
        "masked, not shifted": (lambda m, n: [m & 2**b for b in range(n)], "a digit is 0 or 1"),
        "Gray code": (lambda m, n: binary_list(m ^ (m >> 1), n), "bits(2, 6) gives [1, 1, 0, 0, 0, 0], it should be [0, 1,"),
        "periods off by one": (lambda m, n: binary_list(m >> 1, n), "bits(1, 6) gives [0, 0, 0, 0, 0, 0], it should be [1,"),
        "all zero": (lambda m, n: [0] * n, "bits(1, 6) gives"),
        "one digit too few": (lambda m, n: binary_list(m, n - 1), "bits(0, 6) has shape (5,), it should be (6,)"),
        "as long as needed": (lambda m, n: [int(digit) for digit in f"{m:b}"], "has shape (1,), it should be (6,)"),
        "text": (lambda m, n: f"{m:0{n}b}", "returned a str that is no table of numbers"),
        "characters": (lambda m, n: list(f"{m:0{n}b}"), "returned a list that is no table of numbers"),
        "not a number": (lambda m, n: [math.nan] * n, "a digit is 0 or 1"),
    },
    "sinusoidal": {
        "concatenated": (lambda m, d: sinusoidal_table(m, d, interleaved=False), "the concatenated layout"),
        "cosine first": (two_loops(pair_angle, first=math.cos, second=math.sin), "changed places"),
        "counted from 1": (two_loops(lambda m, c, d: pair_angle(m + 1, c, d)), "belongs to position 1"),
        "2c/d": (two_loops(lambda m, c, d: m / 10_000 ** (2 * c / d)), "exponent counts dimensions, not pairs"),
        "c/d": (two_loops(lambda m, c, d: m / 10_000 ** (c / d)), "take different angles"),
        "a stray i·π": (two_loops(lambda m, c, d: pair_angle(m, c, d) * (c // 2) * math.pi), "stray factor"),
        "4i/d": (two_loops(lambda m, c, d: m / 10_000 ** (2 * (c - c % 2) / d)), "has its 2 twice"),
        "divided by d/2 - 1": (two_loops(lambda m, c, d: m / 10_000 ** (c // 2 / (d // 2 - 1))), "exactly 1/10000"),
        "exponent positive": (two_loops(lambda m, c, d: m * 10_000 ** ((c - c % 2) / d)), "wrong sign"),
        "degrees": (two_loops(lambda m, c, d: math.radians(pair_angle(m, c, d))), "angles are degrees"),
        "transposed": (lambda m, d: sinusoidal_table(m, d).T, "has shape (8, 12), it should be (12, 8). It looks transposed"),
        "sines only": (two_loops(pair_angle, second=math.sin), "Row 0 has length 0.0000 where 4 pairs"),
        "normalized rows": (lambda m, d: sinusoidal_table(m, d) / 2, "Row 0 has length 1.0000"),
        "another base": (lambda m, d: sinusoidal_table(m, d, 1000), "row 1 is wrong"),
        "i/d, not 2i/d": (two_loops(lambda m, c, d: m / 10_000 ** (c // 2 / d)), "row 1 is wrong"),
        "positions scaled": (lambda m, d: sinusoidal_table(m / 12, d), "row 1 is wrong"),
        "positions changed in place": (shifting_in_place, "row 0 is wrong"),
        "no sines": (lambda m, d: torch.outer(m, frequencies(d)), "has shape (12, 4), it should be (12, 8)"),
        "not a number": (lambda m, d: sinusoidal_table(m, d) * math.nan, "Row 0 has length nan"),
        "complex": (lambda m, d: torch.ones(len(m), d) * 1j, "returned complex numbers"),
        "text": (lambda m, d: "sin", "returned a str that is no table"),
        "ragged": (lambda m, d: [[0.0] * c for c in range(len(m))], "returned a list that is no table"),
    },
    "pendulums": {
        "n - m": (lambda a, b: offset(b, a), "the sign is the other one"),
        "hands anticlockwise": (
            lambda a, b: offset(*(row.view(-1, 2).flip(1).flatten() for row in (a, b))),
            "the sign is the other one",
        ),
        "no sign": (lambda a, b: abs(offset(a, b)), "the sign is lost"),
        "cosines only": (
            lambda a, b: round(read(turned(a, b).cos().acos(), frequencies(len(a)))),
            "with rows of width 8 gives",
        ),
        "not rounded": (lambda a, b: read(turned(a, b), frequencies(len(a))), "so round the result"),
        "only forwards": (unsigned_offset, "one whole turn of the slowest clock too much"),
        "only forwards, not rounded": (
            lambda a, b: read(turned(a, b) % (2 * math.pi), frequencies(len(a))),
            "one whole turn of the slowest clock too much",
        ),
        "the fastest clock": (lambda a, b: turned(a, b)[0].item(), "what the fastest clock says alone"),
        "the fastest clock, forwards": (lambda a, b: round(turned(a, b)[0].item() % (2 * math.pi)), "the fastest clock says"),
        "the slowest clock": (
            lambda a, b: round((turned(a, b)[-1] / frequencies(len(a))[-1]).item()),
            "what the slowest clock says alone",
        ),
        "two positions": (from_two_positions, "Near the beginning all is well"),
        "looked up in a table": (looked_up, "Near the beginning all is well"),
        "the position": (
            lambda a, b: round(read(hands(a) % (2 * math.pi), frequencies(len(a)))),
            "offset(row 107, row 100) with rows of width 8 gives 107, it should be 7.",
        ),
        "one base for another": (
            lambda a, b: round(read(turned(a, b), frequencies(len(a), 1000))),
            "with rows of width 16 gives",
        ),
        "always 7": (lambda a, b: 7, "offset(row 93, row 100) with rows of width 8 gives 7, it should be -7."),
        "degrees": (lambda a, b: round(read(torch.rad2deg(turned(a, b)), frequencies(len(a)))), "with rows of width 8 gives"),
        "all hands": (turned, "returned (4,) numbers, it should be one"),
        "all hands, NumPy": (lambda a, b: turned(a, b).numpy(), "returned (4,) numbers, it should be one"),
        "a list": (lambda a, b: [offset(a, b)], "returned a list, it should be one number"),
        "text": (lambda a, b: str(offset(a, b)), "returned a str, it should be one number"),
        "a truth": (lambda a, b: a[0] > b[0], "returned a bool, it should be one number"),
        "complex": (lambda a, b: torch.tensor(1j), "returned a complex, it should be one number"),
        "not a number": (lambda a, b: math.nan, "returned nan"),
        "tangent of a quotient": (lambda a, b: torch.atan(a[0] / (b[0] - b[0])).item() * math.inf, "returned inf"),
    },
    "shift": {
        "the other sign": (halves((torch.cos, minus_sin), (torch.sin, torch.cos)), "looks 3 tokens ahead"),
        "transposed": (lambda back, d: halves(*ROTATION)(back, d).T, "looks 3 tokens ahead"),
        "interleaved": (shift_matrix, "where the interleaved table has its pairs"),
        "interleaved and ahead": (lambda back, d: shift_matrix(-back, d), "where the interleaved table has its pairs"),
        "no minus": (halves((torch.cos, torch.sin), (torch.sin, torch.cos)), "needs a minus"),
        "two minuses": (halves((torch.cos, minus_sin), (minus_sin, torch.cos)), "needs a minus"),
        "cosines only": (halves((torch.cos, none), (none, torch.cos)), "3 back and 3 ahead get the same score"),
        "sines only": (halves((none, torch.sin), (minus_sin, none)), "should be at 3"),
        "sine and cosine exchanged": (halves((torch.sin, torch.cos), (lambda a: -a.cos(), torch.sin)), "should be at 3"),
        "degrees": (turning(math.radians), "angles are degrees"),
        "the identity": (lambda back, d: torch.eye(d), "every token looks at itself"),
        "one back, always": (turning(lambda back: 1), "at m - n = 1 and should be at 3"),
        "3 back, always": (turning(lambda back: 3), "at m - n = 3 and should be at 5"),
        "one too far": (turning(lambda back: back + 1), "at m - n = 4 and should be at 3"),
        "4i/d": (halves(*ROTATION, omega=lambda d: frequencies(d) ** 2), "does pair i turn by ω_i times `back`"),
        "exponent positive": (halves(*ROTATION, omega=lambda d: 1 / frequencies(d)), "does pair i turn by"),
        "blocks side by side": (halves(ROTATION[0], ROTATION[0]), "depends on more than the offset"),
        "remembered from a text": (remembered, "depends on more than the offset"),
        "random": (
            lambda back, d: torch.randn(d, d, generator=torch.Generator().manual_seed(0)),
            "for 3 back it is",
        ),
        "zeros": (lambda back, d: torch.zeros(d, d), "all zeros"),
        "not a number": (lambda back, d: torch.full((d, d), math.nan), "NaN or infinity"),
        "one block": (lambda back, d: shift_matrix(back, 2), "has shape (2, 2), it should be (16, 16)"),
        "the angles": (lambda back, d: back * frequencies(d), "has shape (8,), it should be (16, 16)"),
        "complex": (lambda back, d: torch.eye(d) * 1j, "returned complex numbers"),
        "text": (lambda back, d: "R", "returned a str that is no table"),
    },
    "base": {
        "a step too many": (lambda L, d: smallest_base(L + 1, d), "there are 99 steps"),
        "a full turn": (lambda L, d: smallest_base(L, d, 2 * math.pi), "half of one was asked for"),
        "rounded up": (lambda L, d: math.ceil(smallest_base(L, d)), "need not be one"),
        "rounded": (lambda L, d: round(smallest_base(L, d)), "need not be one"),
        "rounded down": (lambda L, d: int(smallest_base(L, d)), "need not be one"),
        "one less": (lambda L, d: smallest_base(L, d) - 1, "too small, the slowest pair then turns by 1.01 half turns"),
        "last frequency 1/base": (lambda L, d: (L - 1) / math.pi, "Where does the width come in?"),
        "exponent upside down": (lambda L, d: ((L - 1) / math.pi) ** ((d - 2) / d), "upside down"),
        "exponent d - 1": (lambda L, d: ((L - 1) / math.pi) ** (d / (d - 1)), "counts columns"),
        "2 twice": (lambda L, d: ((L - 1) / math.pi) ** (d / (2 * (d - 2))), "a factor of 2 too many"),
        "a quarter turn": (
            lambda L, d: smallest_base(L, d, math.pi / 2),
            "my_base(100, 8) gives 250.8151: a smaller one will do, with yours the slowest pair turns by only 0.5 half turns.",
        ),
        "10,000": (lambda L, d: 10_000, "a smaller one will do"),
        "half turns counted as full, no width": (lambda L, d: (L - 1) / (2 * math.pi), "too small"),
        "the frequency": (lambda L, d: math.pi / (L - 1), "a base is a finite number above 1"),
        "not a number": (lambda L, d: math.nan, "returned nan"),
        "two numbers": (lambda L, d: torch.ones(2), "returned (2,) numbers"),
        "text": (lambda L, d: "10000", "returned a str"),
        "a truth": (lambda L, d: True, "returned a bool"),
    },
    "norm": {
        "negative": (scaled(lambda d, std: -1), "take the positive root"),
        "the word's share": (lambda d, std, share: factor(d, std, 1 - share), "the share of the word"),
        "always √d": (lambda d, std, share: math.sqrt(d), "the paper's factor"),
        "one over": (lambda d, std, share: 1 / factor(d, std, share), "one over the factor"),
        "squared": (lambda d, std, share: factor(d, std, share) ** 2, "the square of the factor"),
        "no root": (lambda d, std, share: (1 / share - 1) / 2 / std, "A square root is missing"),
        "lengths": (lambda d, std, share: (1 / share - 1) * math.sqrt(d / 2) / (std * math.sqrt(d)), "share out the lengths"),
        "position √d long": (scaled(lambda d, std: math.sqrt(2)), "take the position for √d long"),
        "ratio, not share": (lambda d, std, share: math.sqrt(1 / (2 * share)) / std, "with the word alone"),
        "std left out": (scaled(lambda d, std: std), "std has to come in"),
        "std multiplied": (scaled(lambda d, std: std**2), "on the wrong side"),
        "variance": (scaled(lambda d, std: 1 / std), "divide by the variance"),
        "word std long": (scaled(lambda d, std: math.sqrt(d)), "take a word vector for std long"),
        "position √½ long": (scaled(lambda d, std: 1 / math.sqrt(d)), "take the position for √½ long"),
        "always 1": (lambda d, std, share: 1, "factor(64, 1, 0.5) gives 1: then 33.3% of the squared length is position"),
        "zero": (lambda d, std, share: 0, "then 100.0% of the squared length is position, it should be 50.0%"),
        "percent": (lambda d, std, share: math.sqrt((100 / share - 1) / 2) / std, "it should be 50.0%"),
        "not a number": (lambda d, std, share: math.nan, "returned nan"),
        "one per channel": (lambda d, std, share: np.ones(d), "returned (64,) numbers, it should be one"),
        "a list": (lambda d, std, share: [1.0], "returned a list, it should be one number"),
        "a truth": (lambda d, std, share: std > share, "returned a bool, it should be one number"),
        "complex": (lambda d, std, share: 1j, "returned a complex, it should be one number"),
    },
    "lengths": {
        "every window counts all": (regular(lambda L, s: 0, lambda L, s: 0), "place 32 counts 2 times"),
        "no overlap": (
            lambda total, length, stride: [(start, 0) for start in range(0, total - length + 1, length)],
            "your windows do not overlap",
        ),
        "the first window's beginning left out": (
            regular(lambda L, s: L - s, lambda L, s: L - s),
            "the first 32 losses count nowhere",
        ),
        "the rest left out": (regular(lambda L, s: 0, lambda L, s: L - s), "the last 4 losses count nowhere"),
        "past the end": (
            lambda total, length, stride: [
                (start, length - stride if start else 0) for start in range(0, total - length + stride, stride)
            ],
            "the window at 64 reaches from 64 to 127, outside of 0 to 99",
        ),
        "every byte a window": (
            lambda total, length, stride: [(start, length - stride if start else 0) for start in range(0, total, stride)],
            "outside of 0 to 511",
        ),
        "place in the text": (planned(lambda start, first, *_: (start, start + first)), "counted inside of the window"),
        "how many count": (planned(lambda start, first, total, length, stride: (start, length - first - 1)), "count"),
        "one too many": (planned(lambda start, first, *_: (start, first - 1)), "count more than once"),
        "one too few": (planned(lambda start, first, *_: (start, first + 1)), "count nowhere, the one at place 64"),
        "the rest counted twice": (
            planned(lambda start, first, total, length, stride: (start, length - stride)),
            "windows(100, 64, 32): 28 of 100 losses count more than once, the one at place 68 is the first.",
        ),
        "too many windows": (lambda total, length, stride: sliding_windows(total, length, 1), "you use 449 windows and 15 do"),
        "long moves": (
            lambda total, length, stride: sliding_windows(total, length, stride + 8),
            "place 64 has 24 tokens before it in its window, and should have 32",
        ),
        "outside of the window": (lambda *_: [(0, 64)], "first = 64"),
        "three numbers": (lambda *_: [(0, 0, 64)], "pairs (start, first) of whole numbers, got [(0, 0, 64)]"),
        "numbers": (lambda *_: [0, 32], "pairs (start, first)"),
        "halves": (lambda *_: [(0, 0.5)], "pairs (start, first)"),
        "a number": (lambda *_: 3, "pairs (start, first)"),
        "nothing in it": (lambda *_: [], "pairs (start, first)"),
        "without end": (lambda *_: ((0, 0) for _ in itertools.count()), "times"),
        "text": (lambda *_: "every half window, from the middle on, and the first one from its very beginning", "..."),
    },
    "nope": {
        "the share": (lambda mean: mean[1], "divided by the number of tokens"),
        "the wrong way round": (lambda mean: -mean[1] / mean[0], "The sign is the wrong way round"),
        "one too many": (lambda mean: mean[1] / mean[0] + 1, "One too many everywhere"),
        "the number of tokens": (lambda mean: 1 / mean[0], "You return the number of tokens"),
        "the position": (lambda mean: 1 / mean[0] - 1, "You return the position"),
        "upside down": (lambda mean: mean[0] / (mean[1] + 1e-9), "After ^ the depth is 0"),
        "always 1": (lambda mean: 1, "After ^ the depth is 0, and my_readout says 1."),
        "division by zero": (lambda mean: mean[0] / (mean[1] * 0), "returned inf"),
        "rounded": (lambda mean: round(float(mean[1])), "After ^( the depth is 1, and my_readout says 0."),
        "the vector": (lambda mean: mean, "returned (2,) numbers, it should be one number"),
        "text": (lambda mean: "deep", "returned a str, it should be one number"),
    },
    "rope": {
        "unturned": (lambda x, positions: x.clone(), "nothing has turned"),
        "mixed, tables of neighbours": (
            lambda x, positions: as_llama(x, positions, lay_out=lambda t: t.repeat_interleave(2, dim=-1)),
            "The two halves of your table follow different layouts: the angles stand as if neighbours made a pair",
        ),
        "mixed, tables of halves": (
            lambda x, positions: as_gptj(x, positions, lay_out=lambda t: np.concatenate((t, t), axis=-1)),
            "The two halves of your table follow different layouts: the angles stand as if channels i and i + d/2",
        ),
        "exponent doubled": (rotated(power=lambda i, d: -4 * i / d), "Is it counted twice in the exponent?"),
        "exponent halved": (rotated(halves=True, power=lambda i, d: -i / d), "where is the 2 of 2i/d?"),
        "exponent without minus": (rotated(power=lambda i, d: 2 * i / d), "the exponent needs a minus"),
        "one frequency": (rotated(power=lambda i, d: 0), "All pairs turn at the same speed"),
        "radians from degrees": (rotated(angle=lambda m, rate: torch.deg2rad(m * rate)), "converted from degrees"),
        "degrees": (rotated(halves=True, angle=lambda m, rate: torch.rad2deg(m * rate)), "converted to degrees"),
        "positions ignored": (
            rotated(angle=lambda m, rate: torch.arange(len(m))[:, None] * rate),
            "does not look at positions",
        ),
        "counted from 1": (rotated(angle=lambda m, rate: (m + 1) * rate), "turned by one position too much"),
        "two pluses": (rotated(turn=lambda a, b, c, s: (a * c + b * s, a * s + b * c)), "stretched, not turned"),
        "two minuses": (rotated(halves=True, turn=lambda a, b, c, s: (a * c - b * s, b * c - a * s)), "stretched, not turned"),
        "a reflection": (rotated(turn=lambda a, b, c, s: (a * c - b * s, -a * s - b * c)), "a reflection"),
        "sine for cosine": (rotated(turn=lambda a, b, c, s: (a * s - b * c, a * c + b * s)), "have changed places"),
        "first overwritten": (first_overwritten, "made from the first one after it has turned"),
        "half of a pair": (rotated(halves=True, turn=lambda a, b, c, s: (a * c - b * s, b)), "a turn takes both"),
        "cosine alone": (rotated(turn=lambda a, b, c, s: (a * c, b * c)), "where is the sine?"),
        "neighbours back as halves": (rotated(back=lambda a, b: torch.cat((a, b), dim=1)), "put together as halves"),
        "halves back as neighbours": (
            rotated(halves=True, back=lambda a, b: torch.stack((a, b), dim=2).flatten(start_dim=1)),
            "put together as neighbours",
        ),
        "pairs of tokens": (
            lambda x, positions: rotated()(x.T, torch.arange(x.shape[1])).T if len(x) % 2 == 0 else x,
            "Your pairs are pairs of tokens",
        ),
        "a table added": (lambda x, positions: x + sinusoidal_table(positions, x.shape[1]), "Here nothing is added"),
        "in place": (rotated_in_place, "writes into its arguments"),
        "one width only": (lambda x, positions: rotated()(x, positions) if x.shape[1] == 8 else x, "for d = 12 it is not"),
        "another layout for another width": (
            lambda x, positions: rotated(halves=x.shape[1] != 8)(x, positions),
            "For d = 8 it is right, for d = 12 it is not",
        ),
        "position 0 moved": (lambda x, positions: rotated()(x, positions) + 1, "The token at position 0 has changed"),
        "stretched": (
            lambda x, positions: rotated()(x, positions) * (1 + positions[:, None] / 1000),
            "No rotation: at position 3 a vector of length",
        ),
        "not relative": (rotated(angle=lambda m, rate: (m * rate) ** 2), "scores are not relative: the same query and key"),
        "another base": (rotated(power=lambda i, d: -3 * i / d), "but the angles are others"),
        "infinite": (lambda x, positions: x / positions[:, None], "returned NaN or infinity"),
        "complex": (lambda x, positions: torch.polar(x.abs(), x), "returned complex numbers"),
        "transposed": (lambda x, positions: rotated()(x, positions).T, "It looks transposed"),
        "with a batch": (lambda x, positions: rotated()(x, positions)[None], "has shape (1, 6, 8), it should be (6, 8)"),
    },
    "relative": {
        "the other sign": (lambda o, b, far: by_logarithm(-o, b, far), "Past and future are exchanged"),
        "no direction": (lambda o, b, far: by_logarithm(abs(o), b, far), "the direction is lost"),
        "a decoder's": (lambda o, b, far: exact_bucket(o, b, far, causal=True), "These are the buckets of a decoder"),
        "all for the distance": (lambda o, b, far: by_logarithm(abs(o), 2 * b, far), "all of the buckets to the distance"),
        "offset 0 in the future": (lambda o, b, far: by_logarithm(o, b, far) if o else b // 2, "Only offset 0 is wrong"),
        "clipped": (lambda o, b, far: min(abs(o), b // 2 - 1) + (b // 2 if o < 0 else 0), "This is clipping"),
        "no last bucket": (lambda o, b, far: by_logarithm(o, b, far, most=lambda _, bucket: bucket), "wrong from there on"),
        "rounded": (lambda o, b, far: by_logarithm(o, b, far, place=round), "nearest whole number"),
        "rounded up": (lambda o, b, far: by_logarithm(o, b, far, place=math.ceil), "Rounded up"),
        "logarithm from 1": (lambda o, b, far: by_logarithm(o, b, far, start=lambda _: 1), "starts at distance 1"),
        "from 0 again": (lambda o, b, far: by_logarithm(o, b, far, first=lambda _: 0), "numbered from 0 again"),
        "last bucket at the end": (
            lambda o, b, far: by_logarithm(o, b, far, wide=lambda side, single: side - single - 1),
            "the last bucket begin at max_distance",
        ),
        "< and <=": (
            lambda o, b, far: by_logarithm(o, b, far, place=lambda share: math.ceil(share - 1e-12) - 1 if share > 1e-9 else 0),
            "Only the edges of some buckets",
        ),
        "not rounded": (lambda o, b, far: by_logarithm(o, b, far, place=float), "round down to a whole number"),
        "always 0": (lambda o, b, far: 0, "my_bucket(-1, 32, 128) gives 0, it should be 17"),
        "a list": (lambda o, b, far: [0], "returned a list, it should be one whole number"),
        "two numbers": (lambda o, b, far: torch.tensor([0, 1]), "returned (2,) numbers, it should be one"),
        "not a number": (lambda o, b, far: math.nan, "returned nan"),
        "a truth": (lambda o, b, far: o < 0, "returned a bool"),
    },
    "learned": {
        "padded": (lambda t, rows: torch.cat((t, torch.zeros(rows - len(t), t.shape[1]))), "You padded with zeros"),
        "the last row again": (lambda t, rows: t[torch.arange(rows).clamp(max=len(t) - 1)], "You repeated the last row"),
        "round and round": (lambda t, rows: t[torch.arange(rows) % len(t)], "You began again at row 0"),
        "nearest": (lambda t, rows: t[torch.linspace(0, len(t) - 1, rows).round().long()], "the nearest. What lies between"),
        "floor": (lambda t, rows: t[torch.arange(rows) * len(t) // rows], "What lies between two rows?"),
        "pixels": (lambda t, rows: F.interpolate(t.T[None], size=rows, mode="linear")[0].T, "The ends do not stay"),
        "a step too many": (lambda t, rows: drawn_out(torch.cat((t, t[-1:])), rows + 1)[:rows], "there are 6 steps"),
        "backwards": (lambda t, rows: drawn_out(t.flip(0), rows), "It runs backwards"),
        "transposed": (lambda t, rows: drawn_out(t, rows).T, "It looks transposed"),
        "along the channels": (lambda t, rows: F.interpolate(t[None], size=rows, mode="linear")[0], "has shape (4, 7)"),
        "too long": (lambda t, rows: 2 * drawn_out(t, rows), "the first row is not the table's first row"),
        "curved": (
            lambda t, rows: drawn_out(t, rows) * (1 + torch.linspace(0, 3.14159, rows).sin().clamp(min=0)[:, None]),
            "row 1 should stand at 0.50 of the table",
        ),
        "not a number": (lambda t, rows: drawn_out(t, rows) * math.nan, "NaN or infinity"),
        "unchanged": (lambda t, rows: t, "has shape (4, 3), it should be (7, 3)"),
    },
    "alibi": {
        "the other sign": (from_slopes(lambda s: -s), "It grows with the distance"),
        "zeros": (from_slopes(lambda s: 0 * s), "the same for all keys"),
        "slopes only": (lambda q, k, n: alibi_slopes(n), "has shape (8,), it should be (8, 12, 12)"),
        "the factors": (lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).exp(), "the exponential comes with the softmax"),
        "squared distance": (lambda q, k, n: -alibi_slopes(n)[:, None, None] * (k - q[:, None]) ** 2, "no straight line"),
        "logarithm of the distance": (
            lambda q, k, n: -alibi_slopes(n)[:, None, None] * (1 + (k - q[:, None]).abs()).log(),
            "no straight line",
        ),
        "heads from 0": (from_exponents(lambda h, n: 8 * (h - 1) / n), "are the heads counted from 0?"),
        "flattest first": (from_slopes(lambda s: s.flip(0)), "the steepest comes first"),
        "exponent positive": (from_slopes(lambda s: 1 / s), "slopes are below 1"),
        "not divided": (from_exponents(lambda h, n: 8 * h), "not divided by the number of heads"),
        "base e": (from_exponents(lambda h, n: 8 * h / n / math.log(2)), "The base is e"),
        "one for all": (from_slopes(lambda s: 0 * s + 0.5), "All heads have the same slope, 0.5000"),
        "halved": (from_slopes(lambda s: s / 2), "Head 1 of 8 (counted from 1) gains 0.2500 per token"),
        "heads 1 … 8": (from_exponents(lambda h, n: h), "These are the slopes of 8 heads, continued"),
        "one sequence for 12": (from_exponents(lambda h, n: 8 * h / n), "This is the sequence of the paper's text"),
        "sorted": (from_slopes(lambda s: s.sort(descending=True).values), "but sorted"),
        "of 16 heads": (linear_bias(lambda n: alibi_slopes(n if n == 8 else 16)[:n]), "first slopes of 16 heads"),
        "the others appended in reverse": (
            linear_bias(lambda n: torch.cat((alibi_slopes(n)[:8], alibi_slopes(n)[8:].flip(0)))),
            "Head 9 of 12 (counted from 1) gains 0.0884 per token towards the query, it should be 0.7071",
        ),
        "always 8 heads": (lambda q, k, n: linear_bias(alibi_slopes)(q, k, 8), "Is the number of heads fixed somewhere?"),
        "places in the tensor": (from_places, "the query stands in row 0 of the tensor"),
        "keys counted as queries": (
            lambda q, k, n: (alibi_slopes(n)[:, None, None] * torch.arange(len(q))).expand(n, len(q), len(q))[..., : len(k)],
            "all keys get the same bias",
        ),
        "places from the end": (from_the_end, "From key 2 to key 9 are seven tokens"),
        "rows from the end, half the slope in a cache": (
            lambda q, k, n: linear_bias(alibi_slopes)(q, k, n) * (0.5 if len(q) == 1 else 1),
            "a single query after a cache is not",
        ),
        "half precision": (
            lambda q, k, n: (alibi_slopes(n)[:, None, None] * k).bfloat16(),
            "wrong from 5000 on",
        ),
        "heads last": (lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).permute(1, 2, 0), "The heads come first"),
        "heads second": (lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).permute(1, 0, 2), "The heads come first"),
        "keys are rows": (
            lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).mT if len(q) == 1 else linear_bias(alibi_slopes)(q, k, n),
            "Rows are queries",
        ),
        "no heads": (lambda q, k, n: (k - q[:, None]) / 2, "has no axis for the heads"),
        "one head": (lambda q, k, n: ((k - q[:, None]) / 2)[None], "It has one head only"),
        "not a number": (lambda q, k, n: linear_bias(alibi_slopes)(q, k, n) * math.nan, "holds NaN or infinity"),
        "infinite": (lambda q, k, n: linear_bias(alibi_slopes)(q, k, n).log(), "holds NaN or infinity"),
        "complex": (lambda q, k, n: linear_bias(alibi_slopes)(q, k, n) * 1j, "returned complex numbers"),
        "text": (lambda q, k, n: "bias", "returned a str that is no table"),
        "ragged": (lambda q, k, n: [[[0.0] * i for i in range(12)]] * n, "returned a list that is no table"),
    },
    "rope_scaling": {
        "unchanged": (lambda w, s, n: w, "Nothing has changed"),
        "interpolation": (lambda w, s, n: position_interpolation(w, s), "position interpolation"),
        "NTK-aware": (lambda w, s, n: ntk_aware(w, s), "NTK-aware"),
        "base times factor": (lambda w, s, n: frequencies(2 * len(w), s * float(w[1]) ** -len(w)), "no pair is divided by all"),
        "reversed": (lambda w, s, n: blend(1 - kept(turns(w, n)), w, s), "The wrong way round"),
        "wavelengths": (lambda w, s, n: 2 * math.pi / llama3(w, s, n), "These are wavelengths"),
        "divisors": (lambda w, s, n: w / llama3(w, s, n), "by how much each pair is divided"),
        "shares": (lambda w, s, n: kept(turns(w, n)), "the share that each pair keeps"),
        "multiplied": (lambda w, s, n: blend(kept(turns(w, n)), w, 1 / s), "slow pairs have to become slower"),
        "divided twice": (lambda w, s, n: llama3(w, s**2, n), "Divided twice"),
        "radians for turns": (lambda w, s, n: blend(kept(n * w), w, s), "one turn is 2π of them"),
        "the new length": (lambda w, s, n: llama3(w, s, s * n), "within the new length"),
        "turns upside down": (lambda w, s, n: blend(kept(1 / turns(w, n)), w, s), "Upside down"),
        "not clamped": (lambda w, s, n: blend((turns(w, n) - 1) / 3, w, s), "leaves 0 to 1"),
        "a step at 1": (hard_step(1), "pairs below one turn are right"),
        "a step at 4": (hard_step(4), "pairs above four turns are right"),
        "a step at 2": (
            hard_step(2),
            "pair 1 makes 3.22 turns within 64 tokens and is divided by 1; it should be divided in part",
        ),
        "mean of divisors": (
            lambda w, s, n: w / (kept(turns(w, n)) + s * (1 - kept(turns(w, n)))),
            "mean of the two divisors",
        ),
        "ramp in wavelengths": (
            lambda w, s, n: blend(((n - 2 * math.pi / w) / (n - n / 4)).clamp(0, 1), w, s),
            "evenly with the wavelength",
        ),
        "ramp in pairs": (lambda w, s, n: yarn(w, s, n, fast=4, truncate=False), "evenly from pair to pair"),
        "ramp from 0": (lambda w, s, n: blend((turns(w, n) / 4).clamp(0, 1), w, s), "should begin at one"),
        "YaRN's ends": (lambda w, s, n: yarn(w, s, n, truncate=False), "pair 1 makes 3.22 turns"),
        "half a turn": (lambda w, s, n: llama3(w, s, n, slow=0.5), "of 8 pairs: pair 1 makes 3.22 turns"),
        "too slow at the end": (
            lambda w, s, n: llama3(w, s, n) * (turns(w, n) > 0.005),
            "and is stopped; it should be divided by 8",
        ),
        "two and a half times": (lambda w, s, n: llama3(w, 2.5, n), "it should be divided in part"),
        "omega changed": (changing_omega, "changed the omega that it was given"),
        "not a number": (lambda w, s, n: w * math.nan, "NaN or infinity"),
        "angles": (lambda w, s, n: torch.outer(torch.arange(n), w), "has shape (64, 8), it should be (8,)"),
        "one number": (lambda w, s, n: w[0] / s, "has shape (), it should be (8,)"),
        "complex": (lambda w, s, n: w * 1j, "returned complex numbers"),
        "text": (lambda w, s, n: "omega", "returned a str that is no table"),
    },
}


@pytest.mark.parametrize(("check", "answer"), [(check, answer) for check in CHECKS for answer in RIGHT[check]])
def test_right_answers_pass_however_written(check: str, answer: Answer) -> None:
    assert CHECKS[check](answer).startswith("Right: ")


@pytest.mark.parametrize(("check", "name"), [(check, name) for check in CHECKS for name in WRONG[check]])
def test_wrong_answers_get_their_diagnosis_in_one_line(check: str, name: str) -> None:
    answer, phrase = WRONG[check][name]
    verdict = CHECKS[check](answer)
    assert phrase in verdict
    assert not verdict.startswith("Right")
    assert "\n" not in verdict


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_returned_is_not_tried_yet(check: str) -> None:
    assert CHECKS[check](lambda *_: None).startswith("Not tried yet")


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NotImplementedError(), "Not tried yet"),
        (SystemExit(1), "raised SystemExit: 1"),
        (KeyError("x"), "raised KeyError: 'x'"),
        (RuntimeError("shapes differ\nsecond line"), "raised RuntimeError: shapes differ"),
    ],
    ids=repr,
)
def test_an_error_becomes_one_line(check: str, error: Exception, told: str) -> None:
    def failing(*_: Any) -> None:
        raise error

    verdict = CHECKS[check](failing)
    assert told in verdict
    assert "second line" not in verdict


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    ("answer", "told"),
    [(None, "a NoneType"), (3, "an int"), (lambda: 0, "raised TypeError")],
    ids=["none", "number", "no arguments"],
)
def test_what_cannot_be_called_so_gets_a_verdict_too(check: str, answer: Any, told: str) -> None:
    assert told in CHECKS[check](answer)


@pytest.mark.parametrize("answer", [sinusoidal_table, lambda positions, d: sinusoidal_table(positions, d).numpy()])
def test_the_packages_own_answer_is_recognized(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert "the package's own posenc_course.sinusoidal.sinusoidal_table" in sinusoidal.table(answer)


def stubborn(*_: Any) -> None:
    while True:
        with suppress(Exception):
            sum(range(1000))


def test_an_answer_that_never_returns_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_verdict, "SECONDS", 0.3)
    assert sinusoidal.table(stubborn).endswith("had not returned after 0.3 seconds: does a loop never end?")
    assert "Right" in sinusoidal.table(numpy_table), "the next answer is judged as if nothing had been"


class Hostile:
    """An answer that raises wherever it is looked at."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("hands off")


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_shows_our_insides(check: str) -> None:
    verdict = CHECKS[check](lambda *_: Hostile())
    assert "\n" not in verdict
    assert not verdict.startswith("Right")


def test_a_seed_repeats_a_verdict_and_nbgrader_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(*answers: Any, **seed: int) -> str:
        return order.permutation(lambda p: torch.eye(len(p))[p] + (len(p) == 7), **seed)

    assert said(seed=5) == said(seed=5) != said(seed=6)
    assert said(seed=5).endswith("(seed 5)")
    monkeypatch.delenv("POSENC_COURSE_SEED", raising=False)
    assert len({said() for _ in range(4)}) > 1
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert said().endswith("(seed 0)")


def test_a_grader_gets_an_error_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    grade("Right: all of it.")
    with pytest.raises(_verdict.NotYet) as caught:
        grade("The exponent has the wrong sign.")
    assert capsys.readouterr().out == "Right: all of it.\nThe exponent has the wrong sign.\n"
    assert len(caught.value._render_traceback_()) == 1


BRACKET_VALUES: dict[str, tuple[Any, str]] = {
    "closing is nothing": ({**BRACKETS, ")": [0.0, 0.0]}, "never what was closed"),
    "the first token is a bracket": ({**BRACKETS, "^": [1.0, 1.0]}, "One too many everywhere"),
    "nothing to divide by": ({**BRACKETS, "^": [0.0, 0.0]}, "does the first token leave something"),
    "opening leads down": ({**BRACKETS, "(": [0.0, -1.0], ")": [0.0, 1.0]}, "The sign is the wrong way round"),
    "two lengths": ({**BRACKETS, "(": [1.0]}, "they must be of one length"),
    "a number": ({**BRACKETS, "^": 1.0}, "must be one vector of finite numbers"),
    "not a number": ({**BRACKETS, "^": [math.nan, 0.0]}, "must be one vector of finite numbers"),
    "text": ({**BRACKETS, "(": "up"}, "is no vector of numbers"),
    "none": ({}, "Not tried yet"),
}


@pytest.mark.parametrize("name", BRACKET_VALUES)
def test_wrong_values_of_brackets_get_their_diagnosis(name: str) -> None:
    values, phrase = BRACKET_VALUES[name]
    assert phrase in nope.depth(values.get, lambda mean: mean[1] / mean[0])


def test_the_exercises_own_truths() -> None:
    """What the checks compare with is right itself: attention is equivariant, and 6 = 011 fastest first."""
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        attention(x[[4, 2, 0, 1, 3]], x[[4, 2, 0, 1, 3]], x[[4, 2, 0, 1, 3]]), attention(x, x, x)[[4, 2, 0, 1, 3]]
    )
    assert binary([6], 3).tolist() == [[0, 1, 1]]
