"""Exercises of chapter 05: how much of a vector is position, and the assignment on its length."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, as_number, as_truth, check, compare
from posenc_course.sinusoidal import sinusoidal_table

# Width, standard deviation of the word vectors' channels, and the share of the squared length that shall be position.
_CASES = (
    (64, 1.0, 0.5),
    (512, 512**-0.5, 1 / 3),
    (512, 1.0, 1 / 3),
    (128, 0.02, 0.1),
    (32, 2.0, 0.9),
    (1000, 0.1, 0.01),
)


@check(draws=False)
def factor(my_factor: Callable[[int, float, float], Any]) -> str:
    """Try my_factor(d_model, std, share) -> the factor of the word vectors that gives the position this share. Chapter 05."""
    said = [_said(my_factor, *case) for case in _CASES]
    if _agree(said, _right):
        return f"Right: all {len(_CASES)} shares come out as asked, and the width had no say in any of them."
    return next((hint for known, hint in _MISTAKES if _agree(said, known)), None) or _first_wrong(said)


def _said(my_factor: Callable[[int, float, float], Any], d_model: int, std: float, share: float) -> float:
    call = _call(d_model, std, share)
    result = answer(my_factor, d_model, std, share, call=call)
    return as_number(result, call=call, should="one number, the same factor for all channels")


def _call(d_model: int, std: float, share: float) -> str:
    return f"factor({d_model}, {std:.3g}, {share:.3g})"


def _agree(said: list[float], rule: Callable[[int, float, float], float]) -> bool:
    return all(math.isclose(value, rule(*case), rel_tol=1e-3) for value, case in zip(said, _CASES, strict=True))


def _right(_d: int, std: float, share: float) -> float:
    # share = (d/2) / (d/2 + f²·d·std²), solved for f
    return math.sqrt((1 / share - 1) / 2) / std


def _first_wrong(said: list[float]) -> str:
    for value, case in zip(said, _CASES, strict=True):
        d_model, std, share = case
        if not math.isclose(value, _right(*case), rel_tol=1e-3):
            got = 1 / (1 + 2 * (value * std) ** 2)
            return (
                f"{_call(*case)} gives {value:.4g}: then {got:.1%} of the squared length is position, "
                f"it should be {share:.1%}. Write down the squared lengths of word and position for d = {d_model} first."
            )
    raise AssertionError("called for a right answer")


_MISTAKES: tuple[tuple[Callable[[int, float, float], float], str], ...] = (
    (
        lambda d, std, share: -_right(d, std, share),
        "The shares are right, but a negative factor turns every word vector round: take the positive root.",
    ),
    (
        lambda d, std, share: math.sqrt(share / (1 - share) / 2) / std,
        "With your factor this is the share of the word, not of the position.",
    ),
    (
        lambda d, std, share: math.sqrt(d),
        "√d_model is the paper's factor. It gives a third, and only to words whose numbers have a spread of 1/√d_model.",
    ),
    (
        lambda d, std, share: 1 / _right(d, std, share),
        "This is one over the factor: what the position would have to be multiplied by.",
    ),
    (
        lambda d, std, share: _right(d, std, share) ** 2,
        "This is the square of the factor: lengths are what is multiplied, and the share is one of squared lengths.",
    ),
    (
        lambda d, std, share: (1 / share - 1) / 2 / std,
        "A square root is missing: the share is one of squared lengths, and a factor f multiplies these by f².",
    ),
    (
        lambda d, std, share: (1 / share - 1) / math.sqrt(2) / std,
        "You share out the lengths. The share is one of squared lengths, since these are what adds up at right angles.",
    ),
    (
        lambda d, std, share: math.sqrt(1 / share - 1) / std,
        "You take the position for √d long. Its numbers are sines and cosines: what is the mean of their squares?",
    ),
    (
        lambda d, std, share: math.sqrt(1 / share / 2) / std,
        "You compare the position with the word alone. The share is of the whole, word and position together.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / 2),
        "This holds for words whose numbers have a spread of 1. For other words, std has to come in.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / 2) * std,
        "The spread stands on the wrong side: short words need a large factor.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / 2) / std**2,
        "You divide by the variance; the factor multiplies numbers, whose size is the standard deviation.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) * d / 2) / std,
        "You take a word vector for std long. That is the size of one of its numbers, and there are d_model of them.",
    ),
    (
        lambda d, std, share: math.sqrt((1 / share - 1) / (2 * d)) / std,
        "You take the position for √½ long. That is the size of one of its numbers, and there are d_model of them.",
    ),
)


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────

_Maker = Callable[[Tensor, int], Tensor]


def _scaled(factors: Callable[[Tensor, int], Tensor]) -> _Maker:
    """The right table, multiplied by what depends on row and width: (L,) or one number."""
    return lambda positions, d: sinusoidal_table(positions, d) * factors(positions, d).double().reshape(-1, 1)


def _by_angles(angles: Callable[[Tensor, int], Tensor]) -> _Maker:
    """Sines in the even columns, cosines in the odd ones, of an angle for every column, (L, d)."""

    def make(positions: Tensor, d_model: int) -> Tensor:
        table = angles(positions.double(), d_model)
        return torch.where(torch.arange(d_model) % 2 == 0, table.sin(), table.cos())

    return make


def _narrowed(width: int) -> _Maker:
    """The right table, but for the last two columns at this width."""
    return lambda positions, d: sinusoidal_table(positions, d) * (torch.arange(d) < d - 2 * (d == width))


def _phases(positions: Tensor, d_model: int) -> Tensor:
    pair = torch.arange(d_model) // 2
    return positions[:, None] * (0.3 + (7.0 * pair).sin()) + 0.4 * pair


_RIGHT_TABLES: dict[str, _Maker] = {
    "the paper's table": sinusoidal_table,
    "all sines, then all cosines": lambda positions, d: sinusoidal_table(positions, d, interleaved=False),
    "the cosines first": lambda positions, d: sinusoidal_table(positions, d).flip(1),
    "a table of base 100": lambda positions, d: sinusoidal_table(positions, d, 100),
    "a table of other frequencies and phases": _by_angles(_phases),
    "a table in 32 bits": lambda positions, d: sinusoidal_table(positions, d, dtype=torch.float32),
}
_AVERAGE, _SQUARES = (
    "a table whose rows are in turn too long and too short",
    "a table whose squared lengths are in turn too large and too small",
)
_LATE, _FIRST, _LAST = "a table of zeros from row 256 on", "a table whose row 0 is zero", "a table whose row 299 is zero"
_DOUBLE, _NEAR, _NAN = "a table of twice the length", "a table whose row 150 is 0.02 too long", "a table that is NaN at width 2"
_WIDTHS = {f"a table whose last two columns are zero at width {width}": width for width in range(4, 17, 2)}
_ANGLE, _UNIT = "a table whose sines and cosines take different angles", "a table of rows of length 1"
_WRONG_TABLES: dict[str, _Maker] = {
    _ANGLE: _by_angles(lambda positions, d: positions[:, None] * 10_000.0 ** (-torch.arange(d) / d)),
    _UNIT: _scaled(lambda positions, d: torch.tensor((d / 2) ** -0.5)),
    _AVERAGE: _scaled(lambda positions, d: torch.where(positions % 2 == 0, 1.2, 0.8)),
    _LATE: _scaled(lambda positions, d: positions < 256),
    _FIRST: _scaled(lambda positions, d: positions > 0),
    _LAST: _scaled(lambda positions, d: positions < 299),
    _SQUARES: _scaled(lambda positions, d: torch.where(positions % 2 == 0, 1.4, 0.6).sqrt()),
    _DOUBLE: _scaled(lambda positions, d: torch.tensor(2.0)),
    _NEAR: _scaled(lambda positions, d: 1 + (positions == 150) * 0.02 / math.sqrt(d / 2)),
    **{name: _narrowed(width) for name, width in _WIDTHS.items()},
    _NAN: _scaled(lambda positions, d: torch.tensor(math.nan if d == 2 else 1.0)),
}


@check()
def has_right_lengths(my_test: Callable[[_Maker], Any], *, seed: int) -> str:
    """Try my_test(make_table) -> bool on six tables whose rows are √(d/2) long and on many others. Chapter 05."""
    makers = [*_RIGHT_TABLES.items(), *_WRONG_TABLES.items()]
    random.Random(seed).shuffle(makers)
    said = {}
    for name, maker in makers:
        call = f"has_right_lengths({name})"
        said[name] = as_truth(answer(my_test, _valid(maker), call=call), call=call)
    refused = [name for name in _RIGHT_TABLES if not said[name]]
    accepted = {name for name in _WRONG_TABLES if said[name]}
    if not refused and not accepted:
        return "Right: your test lets all six right tables pass, and none of the wrong ones."
    if len(set(said.values())) == 1:
        raise Wrong(
            "Your test lets every table pass, also one of rows of length 1." if accepted else
            "Your test lets no table pass, not even the paper's: do you compare lengths with √(d/2), and forgive a difference "
            "in the last digit?"
        )  # fmt: skip
    if len(refused) == len(_RIGHT_TABLES) and _UNIT in accepted:
        raise Wrong("Your test wants rows of length 1; how long is a row of d/2 pairs?")
    if refused == ["a table in 32 bits"]:
        raise Wrong("Too strict: in 32 bits, lengths differ from √(d/2) in the sixth digit.")
    if refused:
        raise Wrong(
            f"Your test turns down {refused[0]}, whose rows are all √(d/2) long: the theorem does not say which angle a pair "
            "has, nor where its columns stand."
        )
    if accepted >= {_ANGLE, _LATE}:
        raise Wrong(
            f"Your test lets {_ANGLE} pass: they are right in row 0, where all angles are 0. Which rows do you look at?"
        )
    if accepted >= {_LATE, _FIRST, _LAST}:
        raise Wrong(f"Your test lets {_LATE} pass: do you find rows that are too short as well as those that are too long?")
    if accepted >= {_UNIT, _DOUBLE}:
        raise Wrong(f"Your test lets {_DOUBLE} pass: that rows are equally long is not enough, how long are they to be?")
    for name in (_AVERAGE, _SQUARES):
        if name in accepted:
            raise Wrong(f"Your test lets {name} pass: their mean is right, and every row is off by a tenth or more.")
    if accepted == {_NAN}:
        raise Wrong(
            f"Your test lets {_NAN} pass: did you try that width? And mind that no comparison with NaN is true, so that none "
            "is found to be too far off."
        )
    for name, hint in (
        (_LATE, "positions go up to 299."),
        (_LAST, "positions go up to 299, and include it."),
        (_FIRST, "positions begin with 0."),
        (_UNIT, "at width 2 that is right. Which widths did you try?"),
        *((name, "which widths did you try?") for name in _WIDTHS),
        (_NEAR, "a wrong table is off by more than 0.01 in one row at least. Do you look at each, and how near is near?"),
    ):
        if name in accepted:
            raise Wrong(f"Your test lets {name} pass: {hint}")
    raise Wrong(f"Your test lets {min(accepted)} pass.")


def _valid(maker: _Maker) -> _Maker:
    """The maker, for as many positions and for widths that the exercise names."""

    def make_table(positions: Any, d_model: int) -> Tensor:
        positions = torch.as_tensor(positions)
        if d_model not in range(2, 17, 2):
            raise Wrong(f"Your test asks for a table of width {d_model}: the widths to try are the even ones from 2 to 16.")
        if positions.ndim != 1 or not len(positions) or positions.min() < 0 or positions.max() > 299:
            raise Wrong("Your test asks for other positions than some of 0 to 299, in a tensor of one dimension.")
        return maker(positions, d_model)

    return make_table


@check()
def factor_for(my_factor: Callable[[Tensor, Tensor, float], Any], *, seed: int) -> str:
    """Try my_factor(words, rows, share) -> f > 0, for words whose mean leans with, against and across the rows. Chapter 05."""
    generator = torch.Generator().manual_seed(seed)
    cases = []
    for width, std, lean, share in ((16, 1.0, 0.8, 0.3), (32, 0.2, 0.5, 0.5), (16, 1.0, -0.6, 0.4), (64, 0.1, -0.3, 0.8)):
        rows = sinusoidal_table(range(20), width)
        if width == 32:  # no theorem holds for the lengths of a learned table
            rows = 0.3 + 0.5 * torch.randn(20, width, generator=generator, dtype=torch.float64)
        words = torch.randn(30, width, generator=generator, dtype=torch.float64) * std + lean * rows.mean(dim=0)
        cases.append((words, rows, share))
    said = []
    for words, rows, share in cases:
        call = f"factor_for(words of shape {tuple(words.shape)}, rows of shape {tuple(rows.shape)}, {share:g})"
        said.append((call, as_number(answer(my_factor, words.clone(), rows.clone(), share, call=call), call=call)))
    # By the definition: the share that the factor gives, over all pairs of a word and a row.
    given = [
        float(rows.square().sum(dim=1).mean() / (f * words[:, None] + rows).square().sum(dim=2).mean())
        for (words, rows, _), (_, f) in zip(cases, said, strict=True)
    ]
    off = [not math.isclose(got, share, abs_tol=1e-4) for got, (_, _, share) in zip(given, cases, strict=True)]
    if not any(off):
        if all(f > 0 for _, f in said):
            return "Right: all four shares come out, whether the words lean towards the rows or away from them."
        raise Wrong("The shares are right, but a negative factor turns every word vector round: take the other root.")
    for mistake, hint in _FACTORS:
        if all(math.isclose(f, mistake(*case), rel_tol=1e-3) for case, (_, f) in zip(cases, said, strict=True)):
            raise Wrong(hint)
    number = off.index(True)
    (call, f), share = said[number], cases[number][2]
    raise Wrong(f"{call} gives {f:.4g}: then the position's share is {given[number]:.3f}, and it should be {share:g}.")


def _means(words: Tensor, rows: Tensor) -> tuple[float, float, float]:
    return float(words.square().sum(dim=1).mean()), float((words @ rows.T).mean()), float(rows.square().sum(dim=1).mean())


def _root(a: float, b: float, c: float, share: float) -> float:
    """The positive f with a·f² + 2b·f + c = c/share, or NaN."""
    inside = b * b + a * c * (1 / share - 1)
    return (math.sqrt(inside) - b) / a if inside >= 0 else math.nan


def _paired(words: Tensor, rows: Tensor, share: float) -> float:
    a, _, c = _means(words, rows)
    n = min(len(words), len(rows))
    return _root(a, float((words[:n] * rows[:n]).sum(dim=1).mean()), c, share)


_FACTORS: tuple[tuple[Callable[[Tensor, Tensor, float], float], str], ...] = (
    *((lambda words, rows, share, change=change: change(*_means(words, rows), share), hint)
    for change, hint in (
        (lambda a, b, c, s: math.sqrt(c / a * (1 / s - 1)),
         "You take words and rows for perpendicular: these words have a mean, and so have the rows."),
        (lambda a, b, c, s: _root(a, -b, c, s),
         "The mean of the dot products comes in with the wrong sign: words that lean towards the rows need a smaller factor."),
        (lambda a, b, c, s: _root(a, b / 2, c, s),
         "Multiply out once more: how often does the product of f·x and p occur in the square?"),
        (lambda a, b, c, s: _root(a, 2 * b, c, s),
         "A factor of 2 too many at the dot products: look at the root of a·f² + 2·b·f + c once more."),
        (lambda a, b, c, s: _root(a, b, c, 1 - s), "With your factor the rest makes this share, and not the position."),
        (lambda a, b, c, s: (math.sqrt(b * b + a * c / s) - b) / a,
         "You compare the position with the words alone. The share is of the whole sum."),
        (lambda a, b, c, s: _root(a, b, c, s) ** 2, "This is the square of the factor."),
        (lambda a, b, c, s: 1 / _root(a, b, c, s), "This is one over the factor: what the position would be multiplied by."),
    )),
    (lambda words, rows, share: _root(*_means(words, rows)[:2], rows.shape[1] / 2, share),
     "You take the rows to be √(d/2) long: those of other tables, learned ones, can have any length."),
    (lambda words, rows, share: _root(
        float(words.square().mean()), float((words @ rows.T).mean()), float(rows.square().mean()), share
     ),
     "A squared length is the sum of all squares in a vector, and not their mean."),
    (lambda words, rows, share: _root(
        float(words.norm(dim=1).mean()) ** 2, float((words @ rows.T).mean()), float(rows.norm(dim=1).mean()) ** 2, share
     ),
     "You square the mean length: the mean of the squared lengths is asked for, and is larger."),
    (_paired, "You pair word 0 with row 0, word 1 with row 1, and so on: the mean is over all pairs of a word and a row."),
    (lambda words, rows, share: math.sqrt((1 / share - 1) / 2) / float(words.std()),
     "This is the chapter's formula, with the spread of all numbers: it takes words and rows for perpendicular."),
    (lambda words, rows, share: math.sqrt((1 / share - 1) / 2) / float(words.std(dim=0).mean()),
     "This is the chapter's formula, with the spread of each channel: it takes words and rows for perpendicular."),
)  # fmt: skip


@check()
def rows_until(my_rows: Callable[[int, float], Any], *, seed: int) -> str:
    """Try my_rows(d_model, share) -> the fewest rows whose mean has less than this share of d/2, seven times. Chapter 05."""
    chance = random.Random(seed)
    # The mean of a single pair shrinks to nothing when it has gone round, and grows again: more rows can have more in common.
    cases = [
        (8, 0.7),
        (64, 0.9),
        (32, 0.75),
        (2, 0.01),
        (4, chance.choice((0.35, 0.4))),
        (chance.choice((12, 16, 24)), 0.8),
        (chance.choice((48, 64, 96)), 0.65),
    ]
    risen = (
        "The mean of few pairs shrinks and grows again: wanted is the smallest number of rows at all with less than the share."
    )

    def enough(d: int, share: float, *, power: int = 2, full: float = 0.5, most: int = 1000) -> Tensor:
        """For every number of rows, whether their mean has less than the share."""
        table = sinusoidal_table(range(most), d)
        means = table.cumsum(dim=0) / torch.arange(1, most + 1)[:, None]
        return means.norm(dim=1) ** power < share * (full * d) ** (power / 2)

    def fewest(d: int, share: float, *, power: int = 2, full: float = 0.5) -> int:
        return int(enough(d, share, power=power, full=full).int().argmax()) + 1

    def halved(d: int, share: float, most: int) -> int:
        below, low, high = enough(d, share, most=most), 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if below[middle - 1] else (middle, high)
        return high

    mistakes = [
        (lambda d, share: fewest(d, share) - 1,
         "One too few: is it the index of the row that you return, or the last number of rows that is still above the share?"),
        (lambda d, share: fewest(d, share) + 1, "One too many: row k is the mean of rows 0 to k, which are k + 1 rows."),
        (lambda d, share: fewest(d, share, power=1), "You compare lengths: the share is one of squared lengths."),
        (lambda d, share: fewest(d, share, full=1.0),
         "One row is its own mean and holds the whole squared length, which is d/2 and not d: so 1 is never the answer."),
        (lambda d, share: 1, "One row is its own mean and holds the whole squared length: so 1 is never the answer."),
        (lambda d, share: int((~enough(d, share)).nonzero()[-1]) + 2, risen),
        *((lambda d, share, most=most: halved(d, share, most), risen) for most in (999, 1000, 1001, 1024, 2000)),
        *((lambda d, share, most=most: min(fewest(d, share), most), f"You stop after {most} rows: up to 1,000 can be needed.")
          for most in (99, 100, 128, 200)),
    ]  # fmt: skip
    praise = "all seven, for narrow tables and wide ones."
    return compare(my_rows, cases, fewest, mistakes, name="rows_until", praise=praise)
