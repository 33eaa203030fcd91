"""The engine behind the checks: how it calls an answer, reads what comes back, and says what is wrong with it."""

import math
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from posenc_course import checks
from posenc_course.checks import _kinds
from posenc_course.checks._exercise import Exercise, NotYet, exercise
from posenc_course.checks._kinds import kind
from posenc_course.checks._sandbox import Wrong
from posenc_course.sinusoidal import sinusoidal_table
from tests.answers import CHECKS, RIGHT
from tests.tensors import normal

# ── an exercise made for these tests ─────────────────────────────────────────────────────────────────────────────────────


def half(x: Tensor) -> Tensor:
    """The package's own answer."""
    return x / 2


@exercise("my_half", instead_of=[half])
def halved() -> Exercise:
    """my_half(x) -> x / 2."""
    return Exercise(
        cases={"a single number": (torch.tensor([3.0]),), "a table": (torch.arange(6.0).view(3, 2) - 1,)},
        right=lambda x: x / 2,
        mistakes={"doubled": (lambda x: 2 * x, "You double."), "rows added up": (lambda x: x.cumsum(0) / 2, "You add up.")},
        praise="both.",
    )


@exercise()
def squared(seed: int) -> Exercise:
    """squared(n) -> n², of a whole number that depends on the seed."""
    return Exercise(cases=[(seed,), (seed + 1,)], right=lambda n: n * n, mistakes={}, praise=lambda said: f"{said}.")


@pytest.mark.parametrize(
    "answer",
    [
        lambda x: x / 2,
        lambda x: x.numpy() / 2,
        lambda x: (x / 2).tolist(),
        lambda x: (row / 2 for row in x),
        lambda x: (x.double() / 2).requires_grad_(),
        lambda x: x.numpy()[::-1][::-1].astype(np.longdouble) / 2,
    ],
    ids=["tensor", "numpy", "list", "generator", "with a gradient", "reversed twice"],
)
def test_a_right_answer_may_come_as_any_table(answer: Callable[..., Any]) -> None:
    assert halved(answer) == "Right: both."


@pytest.mark.parametrize("number", [Fraction, Decimal, np.longdouble, np.float32, torch.tensor, lambda x: [x][0]])
def test_a_right_number_may_be_of_any_kind(number: Callable[[Any], Any]) -> None:
    assert squared(lambda n: number(n * n), seed=3) == "Right: [9, 16]. (seed 3)"


ONE = "my_half([3.0]), for a single number,"


TABLE = "my_half(x of shape (3, 2)), for a table,"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: 2 * x, "You double."),
        (lambda x: x.T / 2 if x.ndim > 1 else x / 2, f"{TABLE} has shape (2, 3), but it should be (3, 2). It looks transposed"),
        (lambda x: -x / 2, f"Every number has the wrong sign. {ONE} is wrong in 1 of 1 numbers: at [0] it gives -1.5, but it"),
        (lambda x: x / 2 + 4e-4, f"Every number is 0.0004 too large. {ONE} is wrong in 1 of 1 numbers: at [0] it gives 1.5004"),
        (lambda x: x / 2 if x.ndim == 1 else x, f"Your function is right in 1 of 2 cases, but not for: a table. {TABLE} is"),
        (lambda x: None, "Not tried yet: my_half returned None. Is a `return` missing?"),
        (lambda x: None if x.ndim > 1 else x / 2, f"{TABLE} returned None. Is a `return` missing?"),
        (lambda x: x.div_(2), f"{ONE} writes into its arguments, so the caller loses the original values. Make a copy first."),
        (half, f"{ONE} calls the package's own {__name__}.half, which already does what you should write."),
        (3, "This check needs a function, not an int. Pass the function itself, without calling it."),
    ],
)
def test_a_wrong_answer_hears_what_is_wrong(answer: Any, words: str) -> None:
    assert halved(answer).startswith(words)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda n: n * n + 0.5, "returned 9.5, but it should return a whole number"),
        (lambda n: True, "returned a bool, but it should return one number"),
        (lambda n: torch.ones(2), "returned (2,) numbers, but it should return one number"),
        (lambda n: math.nan, "returned nan. Do you divide by zero?"),
        (lambda n: n * n + (n == 4), "Your function is right in 1 of 2 cases. squared(4) gives 17, but it should give 16."),
    ],
)
def test_a_number_is_read_as_one(answer: Callable[..., Any], told: str) -> None:
    assert told in squared(answer, seed=3)


@pytest.mark.parametrize("waits", [lambda: time.sleep(60), lambda: stubborn()], ids=["sleeps", "catches everything"])
def test_an_answer_that_never_returns_is_left_behind(waits: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSENC_COURSE_PATIENCE", "0.3")
    begin = time.monotonic()
    told = "didn't return within 0.3 seconds. Is there an endless loop, or does it wait for something?"
    assert halved(lambda x: waits()).endswith(told)
    assert time.monotonic() - begin < 30
    monkeypatch.delenv("POSENC_COURSE_PATIENCE")
    assert halved(lambda x: x / 2) == "Right: both.", "the next answer is judged as if nothing had happened"


def stubborn() -> None:
    while True:
        with suppress(Exception):
            sum(range(1000))


def test_last_returns_the_arguments_that_the_verdict_speaks_of() -> None:
    assert halved(lambda x: x / 2 if x.ndim == 1 else x).endswith("`checks.last()` returns these arguments.")
    (x,) = checks.last()
    torch.testing.assert_close(x, torch.arange(6.0).view(3, 2) - 1)


def test_a_seed_repeats_a_verdict_and_nbgrader_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def said(seed: int | None = None) -> str:
        return squared(lambda n: n, seed=seed)

    assert said(seed=5) == said(seed=5) != said(seed=6)
    assert said(seed=5).endswith("(seed 5)")
    monkeypatch.delenv("POSENC_COURSE_SEED", raising=False)
    assert len({said() for _ in range(4)}) > 1
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert said().endswith("(seed 0)")


def test_a_grader_gets_an_error_of_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    checks.grade("Right: all of it.")
    with pytest.raises(NotYet) as caught:
        checks.grade("The exponent has the wrong sign.")
    assert capsys.readouterr().out == "Right: all of it.\nThe exponent has the wrong sign.\n"
    assert len(caught.value._render_traceback_()) == 1


def test_an_answer_cannot_raise_its_own_verdict() -> None:
    def forging(_: Tensor) -> Tensor:
        raise Wrong("Right: of course.")

    with pytest.raises(NotYet):
        checks.grade(halved(forging))


@exercise()
def sum_of_two() -> Exercise:
    """sum_of_two(x) -> two numbers that add up to x."""
    return Exercise(
        cases=[(3.0,)],
        right=lambda x: (x - 1, 1.0),
        mistakes={},
        fault=lambda said: None if sum(said[0]) == 3 else f"They add up to {sum(said[0]):g}.",
        praise="they do.",
    )


def test_a_property_can_decide() -> None:
    assert sum_of_two(lambda x: [1, 2]).startswith("Right: ")
    assert sum_of_two(lambda x: (2, 3)) == "They add up to 5."
    assert sum_of_two(lambda x: (2,)).startswith("sum_of_two(3) returned 1 value, but it should return 2 values")


# ── what every check of the course does ──────────────────────────────────────────────────────────────────────────────────


def answers(exercise: Exercise, function: Any) -> tuple[Any, ...]:
    """The function, repeated as often as the check takes one."""
    right = exercise.rights[0]
    return (function,) * (len(right) if isinstance(right, tuple) else 1)


class Hostile:
    """An answer that raises an error whatever you do with it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("hands off")


@pytest.mark.parametrize("check", CHECKS)
def test_no_answer_ends_in_a_traceback_or_shows_our_insides(check: str) -> None:
    def untried(*_: Any) -> None:
        raise NotImplementedError

    def fail(*_: Any) -> None:
        raise RuntimeError("shapes differ\nsecond line")

    asked = CHECKS[check].exercise()
    assert all(f"{name}(" in str(CHECKS[check].__doc__) for name in CHECKS[check]._names), "students write another function"
    for answer, told in (
        (lambda *_: None, "Not tried yet"),
        (untried, "Not tried yet."),
        (lambda *_: sys.exit(1), "raised SystemExit: 1"),
        (fail, "raised RuntimeError: shapes differ"),
        (lambda: 0, "raised TypeError"),
        (lambda *_: Hostile(), ""),
    ):
        verdict = CHECKS[check].verdict(asked, *answers(asked, answer))
        assert told in verdict
        assert not verdict.startswith("Right")
        assert "\n" not in verdict
        assert "second line" not in verdict


def test_the_packages_own_answer_is_recognized_where_it_hides() -> None:
    told = "the package's own posenc_course.sinusoidal.sinusoidal_table"
    assert told in checks.sinusoidal.table(sinusoidal_table)
    assert told in checks.sinusoidal.table(lambda positions, d: sinusoidal_table(positions, d).numpy())


@pytest.mark.parametrize("check", ["order.kind", "rope.rotate", "relative.receive"])
def test_the_checks_own_right_answer_is_refused_and_others_pass(check: str) -> None:
    right = CHECKS[check].exercise().rights[0]
    told = "calls the package's own right answer, which already does what you should write. Write your function without it."
    assert told in CHECKS[check](right, seed=1)
    assert told in CHECKS[check](lambda *given: right(*given), seed=1)
    for other in RIGHT[check]:
        assert CHECKS[check](other, seed=1).startswith("Right: ")


# ── what wrong results have in common ────────────────────────────────────────────────────────────────────────────────────

TABLES = [normal(4, 3), normal(3, 1, seed=1)]


def said_of(wanted: list[Any], said: list[Any], tolerance: float = 1e-7) -> str:
    return kind(wanted, said, [("", ())] * len(said), tolerance)


@pytest.mark.parametrize(("change", "words"), [*_kinds._EACH, *_kinds._COLUMNS, *_kinds._ROWS])
def test_what_has_become_of_every_number_or_table_is_said(change: Callable[[Tensor], Tensor], words: str) -> None:
    wanted = TABLES if "rows and columns" not in words else [normal(2, 2)]
    assert said_of(wanted, [change(table) for table in wanted]).startswith(words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: 0 * t + 3, "You return 3 whatever your function is given."),
        (lambda t: 1.5 * t, "Every number is 1.5 times what it should be."),
        (lambda t: t - 2, "Every number is 2 too small."),
        (lambda t: t + 0.001 * t.sin(), "Your numbers are nearly right: the first 3 digits agree."),
        (lambda t: t.roll(1, 0).flip(0), "The numbers are right, but they are in a different order."),
        (lambda t: torch.cat((t[:-1], 0 * t[-1:])), "Only the last row is wrong."),
        (lambda t: torch.cat((t[:1], 0 * t[1:])), "Only the first row is right."),
        (lambda t: t / 0, "Some of your numbers are infinite or NaN."),
        (lambda t: 9 * normal(*t.shape, seed=2), ""),
        # wrong only for a check that is stricter
        (lambda t: t + 1e-9, ""),
    ],
)
def test_other_things_in_common_are_said(change: Callable[[Tensor], Tensor], words: str) -> None:
    said = said_of(TABLES, [change(table) for table in TABLES])
    assert said.startswith(words)
    assert bool(said) == bool(words)


@pytest.mark.parametrize(
    ("wanted", "said", "words"),
    [
        ([1.0, 2.0, 5.0], [1.0, -9.0, 7.0], "Your function is right in 1 of 3 cases, but not for: two; five."),
        ([1.0, 2.0, 5.0], [1.0, 9.0, 7.0], "Where you are wrong, your numbers are too large."),
        ([3, 5, 9], [4, 5, 10], "Where you are wrong, your number is one too large."),
        ([True, False, True], [False, False, True], "You never return True wrongly, but you sometimes return False wrongly."),
        ([True, False, True], [False, True, False], "Every answer is the opposite of what it should be."),
        (["x", "y", "y"], ["x", "x", "z"], "You never say 'y'."),
    ],
)
def test_what_numbers_and_words_have_in_common_is_said(wanted: list[Any], said: list[Any], words: str) -> None:
    cases = [("one", ()), ("two", ()), ("five", ())]
    wrong = [a != b for a, b in zip(wanted, said, strict=True)]
    assert kind(wanted, said, cases, 1e-4, wrong=wrong).startswith(words)


def test_what_parts_of_a_result_have_in_common_is_said() -> None:
    at, below = torch.arange(5.0).double(), torch.ones(5, 5, dtype=torch.float64).tril()
    wanted, said = [(at, below)], [(at, below - torch.eye(5))]
    assert said_of(wanted, said, 1e-4) == "In part 2 of 2: Only numbers on the diagonal are wrong."


@exercise()
def product() -> Exercise:
    """product(n, scale, table) -> n·scale²·table."""
    table = torch.tensor([[1.0, 2], [3, 5]])
    return Exercise(
        cases=[(2, 3.0, table), (3, 1.5, table + 1), (5, -2.0, table[:1])],
        right=lambda n, scale, table: n * scale**2 * table,
        mistakes={},
        praise="both.",
    )


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda n, scale, table: (n + 1) * scale**2 * table, "those for `n + 1` instead of `n`"),
        (lambda n, scale, table: 3 * scale**2 * table, "those for 3 in every case instead of `n`"),
        (lambda n, scale, table: n * scale**2 * table**2, "those for `table ** 2` instead of `table`"),
        (lambda n, scale, table: scale * n**2 * table, "those for `n` and `scale` swapped."),
        (lambda n, scale, table: scale**2 * table, "Every number is what it should be, divided by `n`."),
        (lambda n, scale, table: n * scale**2 * table + scale, "Every number is too large by `scale`."),
    ],
)
def test_what_an_answer_makes_of_its_arguments_is_named(answer: Any, words: str) -> None:
    assert words in product(answer)
