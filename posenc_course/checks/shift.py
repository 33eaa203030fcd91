"""Exercises on shifts and on relative matrices: a head that looks back, rounded rows, and the relative part of a matrix."""

import random
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.geometry import shift_matrix
from posenc_course.sinusoidal import frequencies, sinusoidal_table

_LENGTH, _STARTS = 64, (0, 5000)
_Parts = tuple[tuple[int, int], tuple[int, int]]


@exercise(instead_of=[shift_matrix])
def looks_back() -> Exercise:
    """looks_back(back, d_model) -> M of shape (d_model, d_model).

    PE(m)ᵀ M PE(n), with the concatenated table of base 10,000, must depend on m - n only and be largest at m - n = back.
    """
    cases = {"3 tokens back": (3, 16), "5 tokens back": (5, 16), "a narrow table": (2, 8)}

    def by(change: Callable[[float], float]) -> Callable[[int, int], Tensor]:
        return lambda back, d: shift_matrix(change(back), d, interleaved=False)

    def of(top: _Parts, bottom: _Parts, power: float = 1) -> Callable[[int, int], Tensor]:
        """A matrix of four diagonal parts, each a mixture of the cosines and the sines."""

        def matrix(back: int, d_model: int) -> Tensor:
            angles = back * frequencies(d_model) ** power
            parts = [[(cos * angles.cos() + sin * angles.sin()).diag() for cos, sin in row] for row in (top, bottom)]
            return torch.cat([torch.cat(row, dim=1) for row in parts])

        return matrix

    cos, sin, minus, zero = (1, 0), (0, 1), (0, -1), (0, 0)
    ahead = (
        "Your scores are relative, but your head looks ahead. Is a sign wrong, or is your matrix transposed? The query m is on "
        "the left of M, and the key n is on its right."
    )
    signs = (
        "The two sines in each of your blocks have the same sign, so the block stretches its pair instead of rotating it. One "
        "of the two needs a minus sign."
    )
    blocks = (
        "You put the blocks where the interleaved table has its pairs. In the concatenated table, the sine of pair i is in "
        "column i. In which column is its cosine?"
    )
    return Exercise(
        cases=cases,
        right=by(lambda back: back),
        fault=lambda said: next(filter(None, (_fault(M, *case) for M, case in zip(said, cases.values(), strict=True))), None),
        mistakes={
            "ahead": (by(lambda back: -back), ahead),
            "interleaved": (lambda back, d: shift_matrix(back, d), blocks),
            "no minus": (of((cos, sin), (sin, cos)), signs),
            "cosines only": (of((cos, zero), (zero, cos)),
                "Your matrix gives the key `back` tokens ahead the same score as the key `back` tokens behind, because a "
                "cosine can't tell them apart. Which part of each rotation is missing?"),
            "sines only": (of((zero, sin), (minus, zero)),
                "Your matrix has sines but no cosines. Each block should be a rotation."),
        },
        praise="near position 0 and near position 5,000, the score depends only on the offset, and it is largest at the right "
               "offset.",
    )  # fmt: skip


def _fault(matrix: Tensor, back: int, d_model: int) -> str | None:
    """What is wrong with the matrix, unless its scores are relative and have a single peak, at the offset `back`."""
    call = f"looks_back({back}, {d_model})"
    if not matrix.isfinite().all():
        return f"{call} contains NaN or infinity."
    tables = [sinusoidal_table(range(start, start + _LENGTH), d_model, interleaved=False) for start in _STARTS]
    scores = torch.stack([table @ matrix @ table.T for table in tables])  # query m, key n
    offsets = range(1 - _LENGTH, _LENGTH)
    by_offset = [scores.diagonal(-offset, dim1=1, dim2=2) for offset in offsets]
    # A matrix in float32 passes.
    if any(bool(values.max() - values.min() > 1e-4 * scores.abs().max()) for values in by_offset):
        near, far = (block[10, 10 - back].item() for block in scores)
        return (
            f"Your score depends on more than the offset: for the key {back} tokens back, it is {near:.3f} at position 10 and "
            f"{far:.3f} at position 5,010. Is the block of each pair a rotation, and is everything outside the blocks zero?"
        )
    means = [values[0].mean().item() for values in by_offset]
    peaks = [offset for offset, mean in zip(offsets, means, strict=True) if mean > max(means) - 1e-5 * abs(max(means))]
    if peaks == [back]:
        return None
    return f"{call} gives relative scores, but the largest one is at m - n = {peaks[0]} and should be only at {back}."


# ── the assignment: a table of (cos, sin) pairs with frequencies of any kind ─────────────────────────────────────────────


def _cosine_first(positions: Tensor, omega: Tensor) -> Tensor:
    angles = torch.outer(positions.double(), omega)
    return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(1)


def _blocks(diagonal: Tensor, upper: Tensor, lower: Tensor) -> Tensor:
    """The matrix with [[diagonal, upper], [lower, diagonal]] for each pair; a pair is two neighbouring columns."""
    matrix = torch.zeros(2 * len(diagonal), 2 * len(diagonal), dtype=torch.float64)
    matrix[0::2, 0::2] = matrix[1::2, 1::2] = diagonal.diag()
    matrix[0::2, 1::2], matrix[1::2, 0::2] = upper.diag(), lower.diag()
    return matrix


def _apart(matrix: Tensor) -> Tensor:
    """The same numbers, moved to where a table of first all cosines and then all sines would have its pairs."""
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    return matrix[order][:, order]


# Fast frequencies, a limit, and pairs of an offset and a position n, all found by search. If you use all clocks, the right
# offset fits far better than any other within the limit. But the clocks of the first two entries return after about 5, 7 and 11
# tokens, and after about 4, 3, 5 and 7. If you leave one of them out, some wrong offset fits better than the right one.
_FAST: tuple[tuple[list[float], int, list[tuple[int, int]]], ...] = (
    ([2.5144, 0.8967, 2.2856], 60, [(-43, 2033), (33, 1484), (22, 3791), (-27, 2781), (26, 7990), (-21, 2158)]),
    ([1.5719, 2.0935, 2.5141, 2.694], 75, [(59, 7729), (-61, 4576), (-48, 3941), (-63, 6578), (44, 2126), (69, 8600)]),
    ([0.63, 2.5, 2.84, 1.65, 1.12], 30, []),
)


def _rounded_rows(chance: random.Random, offset: int, omega: Tensor) -> tuple[Tensor, Tensor]:
    """Two rows with this offset. No two of their clock hands point in opposite directions: half a rotation has no sign."""
    while True:
        n = chance.randrange(2000, 1_000_000)
        rows = _cosine_first(torch.tensor([n + offset, n]), omega).round(decimals=1)
        hand_m, hand_n = torch.view_as_complex(rows.view(2, -1, 2))
        between = hand_m * hand_n.conj()
        if not ((between.imag.abs() < 1e-9) & (between.real < 0)).any():
            return rows[0], rows[1]


@exercise()
def offset_between(seed: int) -> Exercise:
    """offset_between(row_m, row_n, omega, limit) -> m - n, from -limit to limit, for rounded rows of fast pairs."""
    chance = random.Random(seed)
    truth: dict[tuple[int, ...], int] = {}
    cases: dict[str, tuple[Tensor, Tensor, Tensor, int]] = {}
    for rates, limit, known in _FAST:
        omega = torch.tensor(rates, dtype=torch.float64)
        pairs = [(o, *_cosine_first(torch.tensor([n + o, n]), omega).round(decimals=1)) for o, n in known]
        some = [limit, -limit, 0] + ([] if known else [chance.randrange(15, limit), -chance.randrange(15, limit)])
        for offset, row_m, row_n in (*pairs, *((o, *_rounded_rows(chance, o, omega)) for o in some)):
            cases[f"{len(rates)} clocks and the offset {offset}"] = (row_m, row_n, omega, limit)
            truth[_key(row_m, row_n)] = offset

    def right(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
        return truth[_key(row_m, row_n)]

    def by_pair(row_m: Tensor, row_n: Tensor, omega: Tensor) -> Tensor:
        """The offset that each pair gives on its own: its angle divided by its frequency."""
        (cos_m, sin_m), (cos_n, sin_n) = row_m.view(-1, 2).T, row_n.view(-1, 2).T
        return torch.atan2(sin_m * cos_n - cos_m * sin_n, cos_m * cos_n + sin_m * sin_n) / omega

    def best(row_m: Tensor, row_n: Tensor, omega: Tensor, offsets: range, clocks: slice = slice(None)) -> int:
        hand_m, hand_n = (torch.view_as_complex(row.view(-1, 2))[clocks] for row in (row_m, row_n))
        moved = hand_n * torch.exp(1j * torch.outer(torch.tensor(offsets).double(), omega[clocks]))
        return offsets[int((moved - hand_m).abs().square().sum(dim=1).argmin())]

    def on_some(clocks: slice) -> Callable[[Tensor, Tensor, Tensor, int], int]:
        return lambda m, n, omega, limit: best(m, n, omega, range(-limit, limit + 1), clocks)

    too_few = (
        "You don't use all clocks. Each clock has gone round many times, so several offsets fit if you leave out some of the "
        "clocks."
    )
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "the index": (lambda m, n, omega, limit: right(m, n, omega, limit) + limit,
                "You return the index of the offset in the list that you tried. But the list begins at -limit, not at 0."),
            "forwards": (lambda m, n, omega, limit: best(m, n, omega, range(limit + 1)),
                "You try only offsets from 0 upwards. But m may be smaller than n."),
            "no upper end": (lambda m, n, omega, limit: best(m, n, omega, range(-limit, limit)),
                "You leave out one end of the range. But range(-limit, limit) stops before `limit`."),
            "a limit of 40": (lambda m, n, omega, limit: best(m, n, omega, range(-40, 41)),
                "You always try the offsets from -40 to 40. Use the `limit` that your function is given."),
            "the slowest clock alone": (lambda m, n, omega, limit: round(float(by_pair(m, n, omega)[omega.argmin()])), too_few),
            **{f"clocks {clocks}": (on_some(clocks), too_few)
               for clocks in (slice(0, 1), slice(-1, None), slice(0, 2), slice(-2, None), slice(0, -1), slice(1, None))},
            "the mean": (lambda m, n, omega, limit: round(by_pair(m, n, omega).mean().item()),
                "You take the mean of the offsets that the clocks show. But no single clock shows its full turns."),
        },
        praise=f"all {len(cases)} offsets are right, although each clock had gone round several times and you weren't told the "
               "positions.",
    )  # fmt: skip


def _key(*rows: Tensor) -> tuple[int, ...]:
    return tuple(int(x) for x in torch.cat(rows).mul(10).round().tolist())


@exercise()
def relative_part(seed: int) -> Exercise:
    """relative_part(M) -> the relative matrix nearest to M, for random M of width 2 to 10 and one M that is relative."""
    generator = torch.Generator().manual_seed(seed)

    def sample(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def numbers(given: Tensor) -> tuple[Tensor, Tensor]:
        """a and b of the nearest relative matrix."""
        a = given[0::2, 0::2].diag() + given[1::2, 1::2].diag()
        b = given[0::2, 1::2].diag() - given[1::2, 0::2].diag()
        return a / 2, b / 2

    def of(a: Tensor, b: Tensor) -> Tensor:
        return _blocks(a, b, -b)

    def right(given: Tensor) -> Tensor:
        return of(*numbers(given))

    def in_blocks(given: Tensor) -> Tensor:
        one = torch.ones(len(given) // 2, dtype=torch.float64)
        return given * _blocks(one, one, one)

    def apart(given: Tensor) -> Tensor:
        """The relative part for a table of first all cosines and then all sines."""
        back = torch.tensor([*range(0, len(given), 2), *range(1, len(given), 2)]).argsort()
        return _apart(right(given[back][:, back]))

    def same_for_all(given: Tensor) -> Tensor:
        return of(*(x.mean().expand(len(given) // 2) for x in numbers(given)))

    def with_plus(given: Tensor, sign: int) -> Tensor:
        b = (given[0::2, 1::2].diag() + given[1::2, 0::2].diag()) / 2
        return _blocks(numbers(given)[0], b, sign * b)

    def diagonals(given: Tensor) -> Tensor:
        at = torch.arange(len(given))
        means = torch.stack([given.diagonal(k).mean() for k in range(1 - len(given), len(given))])
        return means[at - at[:, None] + len(given) - 1]

    return Exercise(
        cases={
            "a single pair": (sample(2, 2),),
            "two pairs": (sample(4, 4),),
            "four pairs": (sample(8, 8),),
            "five pairs": (sample(10, 10),),
            "an M that is relative": (of(sample(3), sample(3)),),
            "an M that is symmetric": ((half := sample(6, 6)) + half.T,),
        },
        right=right,
        mistakes={
            "blocks": (in_blocks,
                "You keep the blocks of M as they are. But those of a relative matrix have only two free numbers."),
            "only a": (lambda given: of(numbers(given)[0], 0 * numbers(given)[1]),
                "You keep only the numbers on the diagonal. But the other two of each block needn't be zero."),
            "concatenated": (apart, "You pair columns i and i + d/2. Here, the columns of a pair are neighbours, 2i and 2i + "
                                    "1."),
            "same for all": (same_for_all,
                "You use the same two numbers for all pairs. But each pair may have its own."),
            **{f"b with a plus, {sign}": (lambda given, sign=sign: with_plus(given, sign),
                "You forgot a minus sign: in a relative matrix, one of the two numbers off the diagonal of each block is the "
                "negative of the other.") for sign in (-1, 1)},
            "diagonals": (diagonals,
                "You average along the diagonals of M. But it is the scores that should depend only on m - n."),
        },
        praise="your matrix is relative, and no relative matrix is nearer to M.",
    )  # fmt: skip
