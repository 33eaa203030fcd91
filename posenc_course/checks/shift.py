"""Exercises on shifts and on what is relative: a head that looks back, matrices that shift, the relative part of a matrix."""

import math
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
    cases = {"3 back": (3, 16), "5 back": (5, 16), "a narrow table": (2, 8)}

    def by(change: Callable[[float], float]) -> Callable[[int, int], Tensor]:
        return lambda back, d: shift_matrix(change(back), d, interleaved=False)

    def of(top: _Parts, bottom: _Parts, power: float = 1) -> Callable[[int, int], Tensor]:
        """[[C, S], [S, C]] of diagonals, each so many times the cosines or the sines."""

        def matrix(back: int, d_model: int) -> Tensor:
            angles = back * frequencies(d_model) ** power
            parts = [[(cos * angles.cos() + sin * angles.sin()).diag() for cos, sin in row] for row in (top, bottom)]
            return torch.cat([torch.cat(row, dim=1) for row in parts])

        return matrix

    cos, sin, minus, zero = (1, 0), (0, 1), (0, -1), (0, 0)
    ahead = "Relative, but it looks ahead: a sign, or a transpose. M has the query m on its left, the key n on its right."
    signs = "One of the two sines of each block needs a minus: with equal signs it is a stretch, not a rotation."
    blocks = (
        "Your blocks are where the interleaved table has its pairs. In the concatenated one the sine of pair i is in column i: "
        "in which column is its cosine?"
    )
    omega = "Does pair i rotate by ω_i times `back`, with ω_i = 10000^(-2i/d)?"
    return Exercise(
        cases=cases,
        right=by(lambda back: back),
        fault=lambda said: next(filter(None, (_fault(M, *case) for M, case in zip(said, cases.values(), strict=True))), None),
        mistakes={
            "ahead": (by(lambda back: -back), ahead),
            "interleaved": (lambda back, d: shift_matrix(back, d), blocks),
            "interleaved and ahead": (lambda back, d: shift_matrix(-back, d), blocks),
            "no minus": (of((cos, sin), (sin, cos)), signs),
            "two minuses": (of((cos, minus), (minus, cos)), signs),
            "cosines only": (of((cos, zero), (zero, cos)),
                "As many tokens ahead get the same score: a cosine cannot tell them from those back. Where are the sines?"),
            "sines only": (of((zero, sin), (minus, zero)), "The cosines are missing: each block is a rotation."),
            "exchanged": (of((sin, cos), ((-1, 0), sin)),
                "Sine and cosine have changed places: with 0 back M is the identity."),
            "degrees": (by(math.radians), "The angles are degrees: sine and cosine take radians."),
            "degrees, ahead": (by(lambda back: -math.radians(back)), "The angles are degrees: sine and cosine take radians."),
            "identity": (by(lambda back: 0),
                "Relative, but every token looks at itself: what moves the position of the key?"),
            "one back": (by(lambda back: 1), "Relative, but `back` does not come in: your head looks one token back."),
            "one too far": (by(lambda back: back + 1), "Relative, but your head looks one token too far back."),
            "one too near": (by(lambda back: back - 1), "Relative, but your head looks one token less back than it should."),
            "4i/d": (of((cos, sin), (minus, cos), 2), omega),
            "growing": (of((cos, sin), (minus, cos), -1), omega),
        },
        praise="near 0 and near 5,000 alike the score depends on the offset only, and it is largest exactly there.",
    )  # fmt: skip


def _fault(matrix: Tensor, back: int, d_model: int) -> str | None:
    """What is wrong unless the scores are relative and have one peak, at the offset `back`."""
    call = f"looks_back({back}, {d_model})"
    if not matrix.isfinite().all():
        return f"{call} holds NaN or infinity."
    if not matrix.any():
        return f"{call} is all zeros, so that every score is 0."
    tables = [sinusoidal_table(range(start, start + _LENGTH), d_model, interleaved=False) for start in _STARTS]
    scores = torch.stack([table @ matrix @ table.T for table in tables])  # query m, key n
    offsets = range(1 - _LENGTH, _LENGTH)
    by_offset = [scores.diagonal(-offset, dim1=1, dim2=2) for offset in offsets]
    # A matrix in float32 passes.
    if any(bool(values.max() - values.min() > 1e-4 * scores.abs().max()) for values in by_offset):
        near, far = (block[10, 10 - back].item() for block in scores)
        return (
            f"The score depends on more than the offset: for {back} back it is {near:.3f} at position 10 and {far:.3f} at "
            "position 5,010. Is each pair's block a rotation, and zero everything outside of the blocks?"
        )
    means = [values[0].mean().item() for values in by_offset]
    peaks = [offset for offset, mean in zip(offsets, means, strict=True) if mean > max(means) - 1e-5 * abs(max(means))]
    if peaks == [back]:
        return None
    also = f", and {len(peaks) - 1} other offsets score as high" if len(peaks) > 1 else ""
    return f"{call} is relative, but the largest score is at m - n = {peaks[0]} and should be at {back}{also}."


# ── the assignment: a table of (cos, sin) pairs with frequencies of any kind ─────────────────────────────────────────────


def _cosine_first(positions: Tensor, omega: Tensor) -> Tensor:
    angles = torch.outer(positions.double(), omega)
    return torch.stack((angles.cos(), angles.sin()), dim=-1).flatten(1)


def _blocks(diagonal: Tensor, upper: Tensor, lower: Tensor) -> Tensor:
    """The matrix with [[diagonal, upper], [lower, diagonal]] for each pair, of neighbouring columns."""
    matrix = torch.zeros(2 * len(diagonal), 2 * len(diagonal), dtype=torch.float64)
    matrix[0::2, 0::2] = matrix[1::2, 1::2] = diagonal.diag()
    matrix[0::2, 1::2], matrix[1::2, 0::2] = upper.diag(), lower.diag()
    return matrix


def _apart(matrix: Tensor) -> Tensor:
    """The same numbers where a table of all cosines, then all sines would have its pairs."""
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    return matrix[order][:, order]


@exercise("shift")
def matrix(seed: int) -> Exercise:
    """shift(offset, omega) -> R that moves rows of (cos, sin) pairs on by offset, for 1 to 4 pairs."""
    generator = torch.Generator().manual_seed(seed)

    def sample(pairs: int) -> Tensor:
        return 0.05 + 3 * torch.rand(pairs, generator=generator, dtype=torch.float64)

    # With this one alone, no two of the mistakes below agree.
    fixed = torch.tensor([0.9, 0.25], dtype=torch.float64)

    def right(offset: float, omega: Tensor) -> Tensor:
        return rotated(offset * omega)

    def rotated(angles: Tensor) -> Tensor:
        return _blocks(angles.cos(), -angles.sin(), angles.sin())

    def same_signs(offset: float, omega: Tensor) -> Tensor:
        return _blocks((offset * omega).cos(), (offset * omega).sin(), (offset * omega).sin())

    def exchanged(offset: float, omega: Tensor) -> Tensor:
        return _blocks((offset * omega).sin(), -(offset * omega).cos(), (offset * omega).cos())

    return Exercise(
        cases={
            "two pairs": (3, fixed),
            "a fraction of a token back": (-2.5, fixed),
            "a single pair": (1, sample(1)),
            "a step back": (-7, sample(3)),
            "half a token": (0.5, sample(4)),
            "a long way": (1000, sample(4)),
            "no shift": (0, sample(3)),
        },
        right=right,
        mistakes={
            "back": (lambda offset, omega: right(-offset, omega),
                "Your matrix moves every row back: is that the block for the sine first, or the minus in the wrong place?"),
            "concatenated": (lambda offset, omega: _apart(right(offset, omega)),
                "Your numbers are where all cosines come first, then all sines. Here pair i owns columns 2i and 2i + 1."),
            "concatenated, back": (lambda offset, omega: _apart(right(-offset, omega)),
                "Two things: your numbers are where all cosines come first, then all sines; and once they are in place, they "
                "move rows back."),
            "same signs": (same_signs,
                "One of the two sines of each block needs a minus: with equal signs it is a stretch, not a rotation."),
            "exchanged": (exchanged,
                "Sine and cosine have changed places in your blocks: a shift by 0 has to be the identity."),
            "one token": (lambda offset, omega: rotated(omega),
                "The offset does not come in: this is the shift by one token."),
            "no frequencies": (lambda offset, omega: rotated(torch.full_like(omega, offset)),
                "All your pairs rotate by the offset itself: each has a frequency of its own."),
            "one frequency": (lambda offset, omega: rotated(offset * omega[:1].expand_as(omega)),
                "All your pairs rotate like the first: each has a frequency of its own."),
            "the paper's": (lambda offset, omega: rotated(offset * frequencies(2 * len(omega))),
                "These are the frequencies of the paper's table; the ones to take are in omega."),
            "divided by 2π": (lambda offset, omega: rotated(offset * omega / (2 * math.pi)),
                "The frequencies are in radians per token already: nothing is to be divided by 2π."),
            "times 2π": (lambda offset, omega: rotated(offset * omega * 2 * math.pi),
                "The frequencies are in radians per token already: nothing is to be multiplied by 2π."),
            "degrees": (lambda offset, omega: rotated(torch.deg2rad(offset * omega)),
                "The angles are degrees: they should be radians."),
            "wavelengths": (lambda offset, omega: rotated(offset / omega),
                "You divide by the frequency: in one token, a pair rotates by ω."),
            "truncated": (lambda offset, omega: rotated(int(offset) * omega),
                "Offsets that are not whole go wrong: -2.5 became -2."),
            "floored": (lambda offset, omega: rotated(math.floor(offset) * omega),
                "Offsets that are not whole go wrong: -2.5 became -3."),
            "size": (lambda offset, omega: rotated(abs(offset) * omega), "Offsets below 0 go wrong: they lead back."),
            "whole steps": (lambda offset, omega: rotated(round(abs(offset)) * omega),
                "Two things: offsets below 0 lead back, and those that are not whole aren't to be rounded."),
        },
        praise="one matrix per offset, for whole ones, fractions and steps back, and no m in any of them.",
    )  # fmt: skip


# Frequencies of which none is slow, limits, and pairs of an offset and a position n, found by search. With all clocks, each
# offset fits far better than any other within the limit. But the clocks of the first two come round after nearly 5, 7 and 11
# tokens, and 4, 3, 5 and 7: where one of them is left out, some wrong offset fits better than the right one.
_FAST: tuple[tuple[list[float], int, list[tuple[int, int]]], ...] = (
    ([2.5144, 0.8967, 2.2856], 60, [(-43, 2033), (33, 1484), (22, 3791), (-27, 2781), (26, 7990), (-21, 2158)]),
    ([1.5719, 2.0935, 2.5141, 2.694], 75, [(59, 7729), (-61, 4576), (-48, 3941), (-63, 6578), (44, 2126), (69, 8600)]),
    ([0.63, 2.5, 2.84, 1.65, 1.12], 30, []),
)


def _rounded_rows(chance: random.Random, offset: int, omega: Tensor) -> tuple[Tensor, Tensor]:
    """Two rows with that offset somewhere, no two hands of which are exactly opposite: half a turn has no sign."""
    while True:
        n = chance.randrange(2000, 1_000_000)
        rows = _cosine_first(torch.tensor([n + offset, n]), omega).round(decimals=1)
        hand_m, hand_n = torch.view_as_complex(rows.view(2, -1, 2))
        between = hand_m * hand_n.conj()
        if not ((between.imag.abs() < 1e-9) & (between.real < 0)).any():
            return rows[0], rows[1]


@exercise()
def offset_between(seed: int) -> Exercise:
    """offset_between(row_m, row_n, omega, limit) -> m - n, from -limit to limit, on rounded rows of fast pairs."""
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
        """What each pair says alone: its angle over its frequency."""
        (cos_m, sin_m), (cos_n, sin_n) = row_m.view(-1, 2).T, row_n.view(-1, 2).T
        return torch.atan2(sin_m * cos_n - cos_m * sin_n, cos_m * cos_n + sin_m * sin_n) / omega

    def best(row_m: Tensor, row_n: Tensor, omega: Tensor, offsets: range, clocks: slice = slice(None)) -> int:
        hand_m, hand_n = (torch.view_as_complex(row.view(-1, 2))[clocks] for row in (row_m, row_n))
        moved = hand_n * torch.exp(1j * torch.outer(torch.tensor(offsets).double(), omega[clocks]))
        return offsets[int((moved - hand_m).abs().square().sum(dim=1).argmin())]

    def on_some(clocks: slice) -> Callable[[Tensor, Tensor, Tensor, int], int]:
        return lambda m, n, omega, limit: best(m, n, omega, range(-limit, limit + 1), clocks)

    def alone(pick: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor, int], int]:
        return lambda m, n, omega, limit: round(by_pair(m, n, omega)[pick(omega)].item())

    too_few = "You don't use all clocks: each has come round many times, so many offsets fit some of them."
    single: dict[str, Callable[[Tensor], Tensor]] = {
        "first": lambda omega: torch.tensor(0),
        "last": lambda omega: torch.tensor(-1),
        "slowest": torch.argmin,
        "fastest": torch.argmax,
    }
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "n - m": (lambda m, n, omega, limit: -right(m, n, omega, limit),
                "The sign is the wrong way round: Δ = m - n, so row m is row n moved on by Δ."),
            "the index": (lambda m, n, omega, limit: right(m, n, omega, limit) + limit,
                "You return the index of the offset among those that you tried: they begin at -limit, not at 0."),
            "the distance": (lambda m, n, omega, limit: abs(right(m, n, omega, limit)),
                "You return the distance without its sign: Δ is negative where m is the smaller."),
            "forwards": (lambda m, n, omega, limit: best(m, n, omega, range(limit + 1)),
                "You try offsets from 0 on: m may be smaller than n."),
            "no upper end": (lambda m, n, omega, limit: best(m, n, omega, range(-limit, limit)),
                "You leave out one end: the offset can be `limit` itself, which range(-limit, limit) does not reach."),
            "no ends": (lambda m, n, omega, limit: best(m, n, omega, range(1 - limit, limit)),
                "You leave out both ends: limit and -limit."),
            "a limit of 40": (lambda m, n, omega, limit: best(m, n, omega, range(-40, 41)),
                "You always try offsets from -40 to 40: the limit is an argument."),
            **{f"the {name} clock alone": (alone(pick), too_few) for name, pick in single.items()},
            **{f"clocks {clocks}": (on_some(clocks), too_few)
               for clocks in (slice(0, 1), slice(-1, None), slice(0, 2), slice(1, 3), slice(0, 3, 2), slice(-2, None),
                              slice(0, 3), slice(0, -1), slice(1, None))},
            "the mean": (lambda m, n, omega, limit: round(by_pair(m, n, omega).mean().item()),
                "You take the mean of what the pairs say alone; each of them is off by whole turns of its own."),
            "the median": (lambda m, n, omega, limit: round(by_pair(m, n, omega).median().item()),
                "You let the pairs vote; but each of them is off by whole turns of its own."),
            "the paper's": (
                lambda m, n, omega, limit: best(m, n, frequencies(2 * len(omega)), range(-limit, limit + 1)),
                "These are the frequencies of the paper's table; the ones to take are in omega."),
            "nothing compared": (lambda m, n, omega, limit: -limit,
                "Your answer is always -limit, as it is where all offsets fit alike: does the offset come into what you "
                "compare?"),
            "nothing fits": (lambda m, n, omega, limit: 0,
                "Your answer is always 0. Rounded rows fit no offset exactly: take the one that fits best."),
        },
        praise=f"all {len(cases)} offsets, though each clock alone had come round, and nobody said which positions these are.",
    )  # fmt: skip


def _key(*rows: Tensor) -> tuple[int, ...]:
    return tuple(int(x) for x in torch.cat(rows).mul(10).round().tolist())


@exercise()
def relative_part(seed: int) -> Exercise:
    """relative_part(M) -> the relative matrix nearest to M, for random M of width 2 to 10 and one that is relative."""
    generator = torch.Generator().manual_seed(seed)

    def sample(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    def numbers(given: Tensor) -> tuple[Tensor, Tensor]:
        """a and b of the nearest relative matrix."""
        a = given[0::2, 0::2].diag() + given[1::2, 1::2].diag()
        b = given[0::2, 1::2].diag() - given[1::2, 0::2].diag()
        return a / 2, b / 2

    def part(of_a: float, of_b: float) -> Callable[[Tensor], Tensor]:
        def scaled(given: Tensor) -> Tensor:
            a, b = numbers(given)
            return _blocks(of_a * a, of_b * b, -of_b * b)

        return scaled

    right = part(1, 1)

    def in_blocks(given: Tensor) -> Tensor:
        one = torch.ones(len(given) // 2, dtype=torch.float64)
        return given * _blocks(one, one, one)

    def apart(given: Tensor) -> Tensor:
        """The part for a table of all cosines, then all sines."""
        back = torch.tensor([*range(0, len(given), 2), *range(1, len(given), 2)]).argsort()
        return _apart(right(given[back][:, back]))

    def same_for_all(given: Tensor) -> Tensor:
        a, b = (x.mean().expand(len(given) // 2) for x in numbers(given))
        return _blocks(a, b, -b)

    def one_row(given: Tensor, lower: int) -> Tensor:
        b = given[lower::2, 1 - lower :: 2].diag() * (1 - 2 * lower)
        return _blocks(given[lower::2, lower::2].diag(), b, -b)

    def with_plus(given: Tensor, sign: int) -> Tensor:
        b = (given[0::2, 1::2].diag() + given[1::2, 0::2].diag()) / 2
        return _blocks(numbers(given)[0], b, sign * b)

    def between_too(given: Tensor) -> Tensor:
        quarter = _blocks(torch.zeros(len(given) // 2), torch.ones(len(given) // 2), -torch.ones(len(given) // 2))
        return (given + quarter @ given @ quarter.T) / 2

    def diagonals(given: Tensor) -> Tensor:
        at = torch.arange(len(given))
        means = torch.stack([given.diagonal(k).mean() for k in range(1 - len(given), len(given))])
        return means[at - at[:, None] + len(given) - 1]

    known, pairs = sample(3), sample(3)
    between = "Between two different pairs your matrix isn't zero: there its scores depend on more than the offset."
    return Exercise(
        cases={
            "a single pair": (sample(2, 2),),
            "two pairs": (sample(4, 4),),
            "four pairs": (sample(8, 8),),
            "five pairs": (sample(10, 10),),
            "an M that is relative": (_blocks(known, pairs, -pairs),),
            "an M that is symmetric": ((half := sample(6, 6)) + half.T,),
        },
        right=right,
        mistakes={
            "M itself": (lambda given: given, "You return M as it was; its scores depend on more than the offset."),
            "zeros": (torch.zeros_like, "All zeros: that's relative, but something nearer can be had in every block."),
            "blocks": (in_blocks,
                "Your blocks are as they were in M: each has to become a scaling plus a rotation, with two numbers, not four."),
            "the diagonal": (lambda given: given.diag().diag(),
                "You keep the diagonal as it was: the two numbers of a pair must become equal."),
            "only a": (part(1, 0), "Only the scalings: a relative matrix may also rotate each pair, and M does."),
            "only b": (part(0, 1), "Only the rotations: a relative matrix may also scale each pair, and M does."),
            "2a, 2b": (part(2, 2), "Twice too large: a number near to two others lies between them."),
            "a, 2b": (part(1, 2), "Your scalings are right, and your rotations are twice too large."),
            "2a, b": (part(2, 1), "Your rotations are right, and your scalings are twice too large."),
            "-b": (part(1, -1), "Your scalings are right, and your rotations have the wrong sign."),
            "concatenated": (apart, "Your pairs are columns i and i + d/2: here they are neighbours, columns 2i and 2i + 1."),
            "same for all": (same_for_all,
                "You use one scaling and one rotation for all pairs: each pair may have its own."),
            "a trace": (lambda given: given.diag().mean() * torch.eye(len(given)),
                "You use one scaling for all pairs, and no rotation: each pair may have both of its own."),
            "the upper rows": (lambda given: one_row(given, 0),
                "You take over the upper row of each block: the lower one has a say as well."),
            "the lower rows": (lambda given: one_row(given, 1),
                "You take over the lower row of each block: the upper one has a say as well."),
            "b with a plus": (lambda given: with_plus(given, -1), "Your rotations miss a minus: b is in M as b and as -b."),
            "symmetric": (lambda given: with_plus(given, 1),
                "Your blocks are symmetric, and only half relative: what is at the lower left must be the opposite."),
            "between pairs too": (between_too, between),
            "between pairs as in M": (lambda given: given - in_blocks(given) + right(given), between),
            "diagonals": (diagonals,
                "You average along the diagonals of M. It's the scores that depend on m - n alone, not the entries of M."),
        },
        praise="its scores depend on the offset alone, and no relative matrix is nearer.",
    )  # fmt: skip
