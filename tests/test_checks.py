"""The checks are checked: a bank of wrong answers, each with its diagnosis, and of right ones written differently."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from posenc_course.attention import attention
from posenc_course.checks import naive, order, pendulums, sinusoidal
from posenc_course.naive import binary
from posenc_course.sinusoidal import frequencies, sinusoidal_table

Answer = Callable[..., Any]
CHECKS: dict[str, Callable[[Answer], str]] = {
    "order": order.equivariance,
    "naive": naive.binary,
    "sinusoidal": sinusoidal.table,
    "pendulums": pendulums.offset,
}


def two_loops(angle: Callable[[int, int, int], float], *, first: Answer = math.sin, second: Answer = math.cos) -> Answer:
    """A table as a beginner writes it, with angle(m, channel, d_model)."""

    def table(positions: Tensor, d_model: int) -> Tensor:
        rows = [[(second if c % 2 else first)(angle(m, c, d_model)) for c in range(d_model)] for m in positions.tolist()]
        return torch.tensor(rows)

    return table


def pair_angle(m: float, c: int, d: int) -> float:
    return float(m / 10_000 ** ((c - c % 2) / d))


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
        (NotImplementedError(), "raised NotImplementedError"),
        (KeyError("x"), "raised KeyError: 'x'"),
        (RuntimeError("shapes differ\nsecond line"), "raised RuntimeError: shapes differ"),
    ],
    ids=repr,
)
def test_an_error_becomes_one_line(check: str, error: Exception, told: str) -> None:
    def failing(*_: Any) -> None:
        raise error

    assert CHECKS[check](failing).endswith(told)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("answer", [None, 3, lambda: 0])
def test_what_cannot_be_called_so_gets_a_verdict_too(check: str, answer: Any) -> None:
    assert "raised TypeError" in CHECKS[check](answer)


def test_the_exercises_own_truths() -> None:
    """What the checks compare with is right itself: attention is equivariant, and 6 = 011 fastest first."""
    x = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        attention(x[[4, 2, 0, 1, 3]], x[[4, 2, 0, 1, 3]], x[[4, 2, 0, 1, 3]]), attention(x, x, x)[[4, 2, 0, 1, 3]]
    )
    assert binary([6], 3).tolist() == [[0, 1, 1]]
