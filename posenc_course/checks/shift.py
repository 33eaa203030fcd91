"""Exercises of chapter 06: a head that looks back, and the assignment on shifts and on what is relative."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, answer_on_copies, as_table, check, compare
from posenc_course.geometry import shift_matrix
from posenc_course.sinusoidal import frequencies, sinusoidal_table

_D_MODEL, _LENGTH, _STARTS = 16, 64, (0, 5000)


@check(draws=False)
def looks_back(my_matrix: Callable[[int, int], Any]) -> str:
    """Try my_matrix(back, d_model) -> M of shape (d_model, d_model), for 3 and 5 back and d_model = 16.

    PE(m)ᵀ M PE(n), with the concatenated table of base 10,000, must depend on m - n only and be largest at m - n = back.
    Chapter 06.
    """
    for back in (3, 5):
        call = f"looks_back({back}, {_D_MODEL})"
        yours = as_table(answer(my_matrix, back, _D_MODEL, call=call), (_D_MODEL, _D_MODEL), call=call)
        _judge(yours, back, call)
    return "Right: near 0 and near 5,000 alike the score depends on the offset only, and it is largest exactly there."


def _judge(matrix: Tensor, back: int, call: str) -> None:
    """Raise `Wrong` unless the scores are relative and have one peak, at the offset `back`."""
    if not matrix.isfinite().all():
        raise Wrong(f"{call} holds NaN or infinity.")
    if not matrix.any():
        raise Wrong(f"{call} is all zeros, so that every score is 0.")
    scores = _scores(matrix, interleaved=False)
    if not _is_relative(scores):
        if _is_relative(_scores(matrix, interleaved=True)):
            raise Wrong(
                "Your blocks stand where the interleaved table has its pairs. In the concatenated one the sine of pair i is "
                "in column i: in which column is its cosine?"
            )
        if _same_signs(matrix):
            raise Wrong("One of the two sines of each block needs a minus: with equal signs it is a stretch, not a rotation.")
        near, far = (block[10, 10 - back].item() for block in scores)
        raise Wrong(
            f"The score depends on more than the offset: for {back} back it is {near:.3f} at position 10 and {far:.3f} at "
            "position 5,010. Is each pair's block a rotation, and zero everything outside of the blocks?"
        )
    by_offset = _by_offset(scores[0])
    best = max(by_offset.values())
    peaks = [offset for offset, score in by_offset.items() if score > best - 1e-5 * abs(best)]
    if peaks == [back]:
        return
    if peaks == [-back]:
        raise Wrong(
            f"Relative, but it looks {back} tokens ahead: a sign, or a transpose. The query m stands on the left of M, and the "
            "key n on its right."
        )
    if sorted(peaks) == [-back, back]:
        raise Wrong(f"{back} back and {back} ahead get the same score: a cosine cannot tell them apart. Where are the sines?")
    degrees = shift_matrix(math.radians(back), _D_MODEL, interleaved=False)
    if torch.allclose(matrix, degrees, atol=1e-4) or torch.allclose(matrix, degrees.T, atol=1e-4):
        raise Wrong("The angles are degrees: sine and cosine take radians.")
    found = f"Relative, but the largest score is at m - n = {peaks[0]} and should be at {back}"
    if peaks == [0]:
        raise Wrong(f"{found}: every token looks at itself. What turns the key's place into another one?")
    if len(peaks) > 1:
        raise Wrong(f"{found}, and {len(peaks) - 1} other offsets score as high.")
    raise Wrong(f"{found}: does pair i turn by ω_i times `back`, with ω_i = 10000^(-2i/d)?")


def _scores(matrix: Tensor, *, interleaved: bool) -> Tensor:
    """PE(m)ᵀ M PE(n) near the beginning and far out, (2, L, L): query m, key n."""
    tables = [sinusoidal_table(range(start, start + _LENGTH), _D_MODEL, interleaved=interleaved) for start in _STARTS]
    return torch.stack([table @ matrix @ table.T for table in tables])


def _by_offset(scores: Tensor) -> dict[int, float]:
    """The mean score at each offset m - n of (L, L) scores."""
    return {offset: scores.diagonal(-offset).mean().item() for offset in range(1 - _LENGTH, _LENGTH)}


def _is_relative(scores: Tensor) -> bool:
    """Whether each offset has one score, in both places; a matrix in float32 passes."""
    slack = 1e-4 * scores.abs().max()
    return all(
        bool((values := scores.diagonal(-offset, dim1=1, dim2=2)).max() - values.min() <= slack)
        for offset in range(1 - _LENGTH, _LENGTH)
    )


def _same_signs(matrix: Tensor) -> bool:
    """Whether it is [[C, S], [S, C]] of diagonal C and S."""
    (a, b), (c, d) = (half.chunk(2, dim=1) for half in matrix.chunk(2, dim=0))
    diagonal = all(torch.equal(part, part.diagonal().diag()) for part in (a, b, c, d))
    return diagonal and torch.allclose(a, d, atol=1e-4) and torch.allclose(b, c, atol=1e-4)


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


@check()
def matrix(my_shift: Callable[[float, Tensor], Any], *, seed: int) -> str:
    """Try my_shift(offset, omega) -> R that moves rows of (cos, sin) pairs on by offset, for 1 to 4 pairs. Chapter 06."""
    generator = torch.Generator().manual_seed(seed)

    def draw(pairs: int) -> Tensor:
        return 0.05 + 3 * torch.rand(pairs, generator=generator, dtype=torch.float64)

    # The first case is fixed: with it alone, no two of the mistakes below agree.
    fixed = torch.tensor([0.9, 0.25], dtype=torch.float64)
    cases = [(3, fixed), (-2.5, fixed), (1, draw(1)), (-7, draw(3)), (0.5, draw(4)), (1000, draw(4))]

    def right(offset: float, omega: Tensor) -> Tensor:
        return turned(offset * omega)

    def turned(angles: Tensor) -> Tensor:
        return _blocks(angles.cos(), -angles.sin(), angles.sin())

    def same_signs(offset: float, omega: Tensor) -> Tensor:
        return _blocks((offset * omega).cos(), (offset * omega).sin(), (offset * omega).sin())

    def exchanged(offset: float, omega: Tensor) -> Tensor:
        return _blocks((offset * omega).sin(), -(offset * omega).cos(), (offset * omega).cos())

    mistakes = [
        (lambda offset, omega: right(-offset, omega),
         "Your matrix moves every row back: is that the block for the sine first, or the minus in the wrong place?"),
        (lambda offset, omega: _apart(right(offset, omega)),
         "Your numbers stand where all cosines come first, then all sines. Here pair i owns columns 2i and 2i + 1."),
        (lambda offset, omega: _apart(right(-offset, omega)),
         "Your numbers stand where all cosines come first, then all sines; and once they are in place, they move rows back."),
        (same_signs, "One of the two sines of each block needs a minus: with equal signs it is a stretch, not a rotation."),
        (exchanged, "Sine and cosine have changed places in your blocks: a shift by 0 has to be the identity."),
        (lambda offset, omega: turned(omega), "The offset does not come in: this is the shift by one token."),
        (lambda offset, omega: turned(torch.full_like(omega, offset)),
         "All your pairs turn by the same angle: each has a frequency of its own."),
        (lambda offset, omega: turned(offset * frequencies(2 * len(omega))),
         "These are the frequencies of the paper's table; the ones to take are in omega."),
        (lambda offset, omega: turned(offset * omega / (2 * math.pi)),
         "The frequencies are in radians per token already: nothing is to be divided by 2π."),
        (lambda offset, omega: turned(offset * omega * 2 * math.pi),
         "The frequencies are in radians per token already: nothing is to be multiplied by 2π."),
        (lambda offset, omega: turned(torch.deg2rad(offset * omega)), "The angles are degrees: they should be radians."),
        (lambda offset, omega: turned(offset / omega), "You divide by the frequency: in one token, a hand turns by ω."),
        (lambda offset, omega: turned(int(offset) * omega), "Offsets that are not whole go wrong: -2.5 became -2."),
        (lambda offset, omega: turned(math.floor(offset) * omega), "Offsets that are not whole go wrong: -2.5 became -3."),
        (lambda offset, omega: turned(abs(offset) * omega), "Offsets below 0 go wrong: they lead back."),
    ]  # fmt: skip
    praise = "one matrix per offset, for whole ones, fractions and steps back, and no m in any of them."
    return compare(my_shift, cases, right, mistakes, name="shift", praise=praise)


# Frequencies of which none is slow, and limits. No two offsets within them look alike, even when rounded to one decimal.
_FAST = (([2.57, 0.62, 1.03, 2.22], 40), ([0.63, 2.5, 2.84, 1.65, 1.12], 60), ([1.19, 2.69, 0.63, 1.99], 30))


def _rounded_rows(chance: random.Random, offset: int, omega: Tensor) -> Tensor:
    """Two rows with that offset somewhere, no two hands of which stand exactly opposite: half a turn has no sign."""
    while True:
        n = chance.randrange(2000, 1_000_000)
        rows = _cosine_first(torch.tensor([n + offset, n]), omega).round(decimals=1)
        hand_m, hand_n = torch.view_as_complex(rows.view(2, -1, 2))
        between = hand_m * hand_n.conj()
        if not ((between.imag.abs() < 1e-9) & (between.real < 0)).any():
            return rows


@check()
def offset_between(my_offset: Callable[[Tensor, Tensor, Tensor, int], Any], *, seed: int) -> str:
    """Try my_offset(row_m, row_n, omega, limit) -> m - n, from -limit to limit, on rounded rows of fast pairs. Chapter 06."""
    chance = random.Random(seed)
    truth: dict[Tensor, int] = {}
    cases: list[tuple[Tensor, Tensor, Tensor, int]] = []
    for rates, limit in _FAST:
        omega = torch.tensor(rates, dtype=torch.float64)
        for offset in (limit, -limit, 0, chance.randrange(15, limit), -chance.randrange(15, limit)):
            row_m, row_n = _rounded_rows(chance, offset, omega)
            truth[row_m] = offset
            cases.append((row_m, row_n, omega, limit))

    def right(row_m: Tensor, row_n: Tensor, omega: Tensor, limit: int) -> int:
        return truth[row_m]

    def by_pair(row_m: Tensor, row_n: Tensor, omega: Tensor) -> Tensor:
        """What each pair says alone: its turn over its frequency."""
        (cos_m, sin_m), (cos_n, sin_n) = row_m.view(-1, 2).T, row_n.view(-1, 2).T
        return torch.atan2(sin_m * cos_n - cos_m * sin_n, cos_m * cos_n + sin_m * sin_n) / omega

    def best(row_m: Tensor, row_n: Tensor, omega: Tensor, offsets: range) -> int:
        moved = torch.complex(*row_n.view(-1, 2).T) * torch.exp(1j * torch.outer(torch.tensor(offsets).double(), omega))
        return offsets[int((moved - torch.complex(*row_m.view(-1, 2).T)).abs().square().sum(dim=1).argmin())]

    alone = "You trust one pair: it has come round many times, and many offsets fit it. Only all pairs together know."
    mistakes = [
        (lambda m, n, omega, limit: -truth[m], "The sign is the wrong way round: Δ = m - n, so row m is row n moved on by Δ."),
        (lambda m, n, omega, limit: truth[m] + limit,
         "You give the place of the offset among those that you tried: they begin at -limit, not at 0."),
        (lambda m, n, omega, limit: abs(truth[m]),
         "You give the distance without its sign: Δ is negative where m comes first."),
        (lambda m, n, omega, limit: best(m, n, omega, range(limit + 1)),
         "You look at offsets from 0 on: row m may come first."),
        (lambda m, n, omega, limit: best(m, n, omega, range(-limit, limit)),
         "You leave out one end: the offset can be `limit` itself, which range(-limit, limit) does not reach."),
        (lambda m, n, omega, limit: best(m, n, omega, range(1 - limit, limit)), "You leave out both ends: limit and -limit."),
        *((lambda m, n, omega, limit, pick=pick: round(by_pair(m, n, omega)[pick(omega)].item()), alone)
          for pick in (lambda omega: 0, lambda omega: -1, torch.argmin, torch.argmax)),
        (lambda m, n, omega, limit: round(by_pair(m, n, omega).mean().item()),
         "You take the mean of what the pairs say alone; each of them is off by whole turns of its own."),
        (lambda m, n, omega, limit: round(by_pair(m, n, omega).median().item()),
         "You let the pairs vote; but each of them is off by whole turns of its own."),
        *((lambda m, n, omega, limit, pair=pair: best(m[pair], n[pair], omega[:1] if pair.start == 0 else omega[-1:],
                                                      range(-limit, limit + 1)), alone)
          for pair in (slice(0, 2), slice(-2, None))),
        (lambda m, n, omega, limit: min(range(-limit, limit + 1), key=lambda o: -float(m @ n)),
         "Your answer is always -limit, as it is where all offsets fit alike: does the offset come into what you compare?"),
        (lambda m, n, omega, limit: 0, "Your answer is always 0. Rows that are rounded fit no offset to the last digit."),
    ]  # fmt: skip
    praise = "all fifteen offsets, though each clock alone had come round, and nobody said where the rows stand."
    return compare(my_offset, cases, right, mistakes, name="offset_between", praise=praise)


@check()
def relative_part(my_part: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_part(M) -> the relative matrix nearest to M, for random M of width 2 to 8 and one that is relative. Chapter 06."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    numbers = draw(2, 3)
    known = [draw(2, 2), draw(4, 4), draw(8, 8), _blocks(numbers[0], numbers[1], -numbers[1])]
    said = []
    for given in known:
        call = f"relative_part(M of shape {tuple(given.shape)})"
        writing = "writes into M: whoever called it has lost it. Make a new tensor."
        part = answer_on_copies(my_part, given, call=call, writing=writing)
        said.append(as_table(part, tuple(given.shape), call=call))
    wrong = [problem for given, part in zip(known, said, strict=True) if (problem := _not_nearest(given, part))]
    if not wrong:
        return "Right: its scores depend on the offset alone, and no relative matrix is nearer."
    for mistake, hint in _PARTS:
        if all(torch.allclose(mistake(given), part, atol=1e-4) for given, part in zip(known, said, strict=True)):
            raise Wrong(hint)
    raise Wrong(wrong[0])


def _not_nearest(given: Tensor, part: Tensor) -> str:
    """What shows that part is not the relative matrix nearest to given, or nothing.

    By two theorems: it is relative if it commutes with the shift by one token, and nearest if what was taken off is
    perpendicular to all relative matrices, which the scaling and the quarter turn of each pair make up.
    """
    width = len(given)
    call = f"relative_part(M of shape ({width}, {width}))"
    omega = torch.tensor([0.7, 1.1, 0.3, 1.9], dtype=torch.float64)[: width // 2]
    turn = _blocks(omega.cos(), -omega.sin(), omega.sin())
    if not part.isfinite().all():
        return f"{call} holds NaN or infinity."
    if not torch.allclose(turn @ part, part @ turn, atol=1e-4):
        score, later = (
            row_m @ part @ row_n for row_n, row_m in (_cosine_first(torch.tensor([m, m + 1]), omega) for m in (2, 5))
        )
        return f"{call} is not relative: tokens 3 and 2 get the score {score:.3f}, tokens 6 and 5 get {later:.3f}."
    left = given - part
    nothing = torch.zeros(width // 2, dtype=torch.float64)
    for pair in range(width // 2):
        one = nothing.clone()
        one[pair] = 1
        for name, direction in (("a", _blocks(one, nothing, nothing)), ("b", _blocks(nothing, one, -one))):
            if abs((left * direction).sum()) > 1e-3:
                return f"{call} is relative, but not the nearest: in pair {pair} another {name} would leave less of M over."
    return ""


def _numbers(given: Tensor) -> tuple[Tensor, Tensor]:
    """a and b of the nearest relative matrix, for the mistakes."""
    a = given[0::2, 0::2].diag() + given[1::2, 1::2].diag()
    b = given[0::2, 1::2].diag() - given[1::2, 0::2].diag()
    return a / 2, b / 2


def _part(given: Tensor, of_a: float, of_b: float) -> Tensor:
    a, b = _numbers(given)
    return _blocks(of_a * a, of_b * b, -of_b * b)


def _in_blocks(given: Tensor) -> Tensor:
    one = torch.ones(len(given) // 2, dtype=torch.float64)
    return given * _blocks(one, one, one)


def _part_apart(given: Tensor) -> Tensor:
    """The part for a table of all cosines, then all sines."""
    back = torch.tensor([*range(0, len(given), 2), *range(1, len(given), 2)]).argsort()
    return _apart(_part(given[back][:, back], 1, 1))


def _same_for_all(given: Tensor) -> Tensor:
    a, b = (torch.full((len(given) // 2,), float(numbers.mean()), dtype=torch.float64) for numbers in _numbers(given))
    return _blocks(a, b, -b)


def _one_of_two(given: Tensor) -> Tensor:
    b = given[0::2, 1::2].diag()
    return _blocks(given[0::2, 0::2].diag(), b, -b)


def _one_sign(given: Tensor) -> Tensor:
    a, b = _numbers(given)[0], (given[0::2, 1::2].diag() + given[1::2, 0::2].diag()) / 2
    return _blocks(a, b, -b)


def _symmetric(given: Tensor) -> Tensor:
    a, b = _numbers(given)[0], (given[0::2, 1::2].diag() + given[1::2, 0::2].diag()) / 2
    return _blocks(a, b, b)


_PARTS: tuple[tuple[Callable[[Tensor], Tensor], str], ...] = (
    (lambda given: given, "You return M as it was; its scores depend on more than the offset."),
    (torch.zeros_like, "All zeros: relative, but something nearer can be had in every block."),
    (
        _in_blocks,
        "Your blocks are as they were in M: each has to become a scaling plus a turn, with two numbers instead of four.",
    ),
    (lambda given: given.diag().diag(), "You keep the diagonal as it was: the two numbers of a pair must become equal."),
    (lambda given: _part(given, 1, 0), "Only the scalings: a relative matrix may also turn each pair, and M does."),
    (lambda given: _part(given, 0, 1), "Only the turns: a relative matrix may also scale each pair, and M does."),
    (lambda given: _part(given, 2, 2), "Twice too large: a number near to two others lies between them."),
    (lambda given: _part(given, 1, 2), "Your scalings are right, and your turns twice too large."),
    (lambda given: _part(given, 2, 1), "Your turns are right, and your scalings twice too large."),
    (lambda given: _part(given, 1, -1), "Your scalings are right, and your turns go the wrong way round."),
    (_part_apart, "Your pairs are columns i and i + d/2: here they are neighbours, columns 2i and 2i + 1."),
    (_same_for_all, "You use one scaling and one turn for all pairs: each pair may have its own."),
    (_one_of_two, "You take over the upper row of each block: the lower one has a say as well."),
    (_one_sign, "Your turns forget a minus: b stands in M as b and as -b."),
    (_symmetric, "Your blocks are symmetric, and only half relative: what stands at the lower left must be the opposite."),
)
