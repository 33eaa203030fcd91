"""The engine behind the checks: how it calls an answer, reads what comes back, and says what is wrong with it."""

import math
import time
from collections.abc import Callable, Iterator
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


@exercise()
def share() -> Exercise:
    """share(n) -> 1/n."""
    return Exercise(cases=[(3,), (4,)], right=lambda n: 1 / n, mistakes={}, praise="both.")


def in_place(x: Tensor) -> Tensor:
    x /= 2
    return x


def without_end(_: Tensor) -> Iterator[int]:
    while True:
        yield 1


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


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (lambda x: 2 * x, "You double."),
        (
            lambda x: x.T / 2 if x.ndim > 1 else x / 2,
            "my_half(x of shape (3, 2)), for a table, has shape (2, 3), but it should be "
            "(3, 2). It looks transposed: each row should be a position.",
        ),
        (
            lambda x: -x / 2,
            f"Every number has the wrong sign. {ONE} is wrong in 1 of 1 numbers: at [0] it gives -1.5, but it should give 1.5.",
        ),
        (
            lambda x: x / 2 if x.ndim == 1 else x,
            "Your function is right in 1 of 2 cases, but not for: a table. my_half(x of shape (3, 2)), for a table, is "
            "wrong in 5 of 6 numbers: at [0, 0] it gives -1, but it should give -0.5. `checks.last()` returns these arguments.",
        ),
        (lambda x: None, f"Not tried yet: {ONE} returned None. Is a `return` missing?"),
        (
            lambda x: None if x.ndim > 1 else x / 2,
            "my_half(x of shape (3, 2)), for a table, returned None. Is a `return` missing?",
        ),
        (lambda x: "half", f"{ONE} returned a str that isn't a table of numbers."),
        (lambda x: x * 1j, f"{ONE} returned complex numbers. Put their real and imaginary parts into separate columns."),
        (in_place, f"{ONE} writes into its arguments, so the caller loses the original values. Make a copy first."),
        (
            half,
            f"{ONE} calls the package's own {__name__}.half, which already does what you should write. Write your function "
            "without it.",
        ),
        (3, "This check needs a function, not an int. Pass the function itself, without calling it."),
    ],
)
def test_a_wrong_answer_hears_what_is_wrong(answer: Any, verdict: str) -> None:
    assert halved(answer) == verdict


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda n: n * n + 0.5, "returned 9.5, but it should return a whole number"),
        (lambda n: True, "returned a bool, but it should return one number"),
        (lambda n: [n, n], "returned a list, but it should return one number"),
        (lambda n: torch.ones(2), "returned (2,) numbers, but it should return one number"),
        (lambda n: math.nan, "returned nan. Do you divide by zero?"),
        (lambda n: n * n + (n == 4), "Your function is right in 1 of 2 cases. squared(4) gives 17, but it should give 16."),
    ],
)
def test_a_number_is_read_as_one(answer: Callable[..., Any], told: str) -> None:
    assert told in squared(answer, seed=3)


def test_a_changed_list_is_named() -> None:
    @exercise()
    def total() -> Exercise:
        """total(numbers) -> their sum."""
        return Exercise(cases=[([1, 2],), ([],), ([3, 5, 7],)], right=sum, mistakes={}, praise="all.")

    def popping(numbers: list[int]) -> int:
        return numbers.pop() + popping(numbers) if numbers else 0

    assert total(sum) == "Right: all."
    assert "total([1, 2]) writes into its arguments" in total(popping)
    assert "total([1, 2]) returned 3.0000001, but it should return a whole number." in total(lambda n: sum(n) + 1e-7)


def test_an_exercise_can_be_stricter_than_its_tolerance() -> None:
    @exercise()
    def strict() -> Exercise:
        return Exercise(
            cases=[(torch.tensor([1.0, 2, 3]),)],
            right=lambda x: x,
            mistakes={},
            praise="",
            same=lambda known, said: bool((known == said).all()),
        )

    assert strict(lambda x: x + 1e-6 * (x > 2)) == (
        "strict([1.0, 2.0, 3.0]) is wrong in 1 of 3 numbers: at [2] it gives 3.00000095, but it should give 3."
    )


def test_large_arguments_are_called_by_their_names() -> None:
    @exercise()
    def product() -> Exercise:
        """product(a, b) -> a @ b."""
        square = torch.eye(2)
        return Exercise(cases=[(square, square)], right=lambda a, b: a @ b, mistakes={}, praise="")

    assert "product(a of shape (2, 2), b of shape (2, 2)) is wrong" in product(lambda a, b: a + b)


def test_a_difference_shows_the_digits_that_differ() -> None:
    assert "gives 0.333, but it should give 0.333333." in share(lambda n: math.floor(1000 / n) / 1000)
    assert "gives 0.333733, but it should give 0.333333." in share(lambda n: 1 / n + 4e-4)


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


def test_a_generator_without_an_end_ends() -> None:
    assert "has shape (10000,), but it should be (1,)" in halved(without_end)


def test_a_check_leaves_the_threads_of_torch_as_they_were() -> None:
    before = torch.get_num_threads()
    halved(lambda x: x)
    assert torch.get_num_threads() == before


def test_last_returns_the_arguments_that_the_verdict_speaks_of() -> None:
    halved(lambda x: x / 2 if x.ndim == 1 else x)
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
    checks.grade("Earned: by this mistake.")
    with pytest.raises(NotYet) as caught:
        checks.grade("The exponent has the wrong sign.")
    assert capsys.readouterr().out == "Right: all of it.\nEarned: by this mistake.\nThe exponent has the wrong sign.\n"
    assert len(caught.value._render_traceback_()) == 1


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda x: 2 * x, "Earned: the check says “You double.”"),
        (lambda x: x.cumsum(0) / 2, "Not earned, because the check says “You add up.”"),
        (lambda x: -x, "Not earned, because the check says “Every number is -2 times what it should be."),
        (lambda x: x / 2, "Your function is right, which earns nothing here: make a mistake of which the check says “double”."),
        (lambda x: x.nonsense, f"{ONE} raised AttributeError: 'Tensor' object has no attribute 'nonsense'"),
    ],
)
def test_a_verdict_can_be_earned(answer: Any, says: str) -> None:
    """By making the mistake that it names, and by nothing else."""
    assert halved(answer, earn="double").startswith(says)


@pytest.mark.parametrize("words", ["You", "treble"])
def test_words_of_no_verdict_or_of_several_earn_nothing(words: str) -> None:
    assert halved(lambda x: 2 * x, earn=words).startswith(f"There isn't exactly one mistake of which this check says “{words}”")


@pytest.mark.parametrize("words", ["Right: of course.", "Earned: of course.", "You double."])
def test_an_answer_cannot_raise_its_own_verdict(words: str) -> None:
    def forging(_: Tensor) -> Tensor:
        raise Wrong(words)

    for earn in (None, "double"):
        with pytest.raises(NotYet):
            checks.grade(halved(forging, earn=earn))


def test_a_property_or_several_functions_can_decide() -> None:
    @exercise()
    def either() -> Exercise:
        return Exercise(
            cases=[(1.0,), (2.0,)],
            right=[lambda x: x, lambda x: -x],
            mistakes={"doubled": (lambda x: 2 * x, "Doubled.")},
            praise="one sign throughout.",
        )

    @exercise()
    def sum_of_two() -> Exercise:
        return Exercise(
            cases=[(3.0,)],
            right=lambda x: (x - 1, 1.0),
            mistakes={"halves and one": (lambda x: (x / 2, x / 2 + 1), "One too many.")},
            same=lambda known, said: sum(known) == sum(said),
            fault=lambda said: None if sum(said[0]) == 3 else f"They add up to {sum(said[0]):g}.",
            praise="they add up.",
        )

    assert either(lambda x: -x).startswith("Right: ")
    assert "Your function is right in 1 of 2 cases. either(2) gives 1, but it should give 2." in either(
        lambda x: abs(x - 1.5) + 0.5
    )
    assert either(lambda x: 2 * x) == "Doubled."
    assert sum_of_two(lambda x: [1, 2]).startswith("Right: ")
    assert sum_of_two(lambda x: (2, 2)) == "One too many."
    assert sum_of_two(lambda x: (2, 3)) == "They add up to 5."
    assert "returned 1 value, but it should return 2 values" in sum_of_two(lambda x: (2,))


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
    def failing(error: BaseException) -> Callable[..., None]:
        def fail(*_: Any) -> None:
            raise error

        return fail

    asked = CHECKS[check].exercise()
    assert all(f"{name}(" in str(CHECKS[check].__doc__) for name in CHECKS[check]._names), "students write another function"
    for answer, told in (
        (lambda *_: None, "Not tried yet"),
        (failing(NotImplementedError()), "Not tried yet."),
        (failing(SystemExit(1)), "raised SystemExit: 1"),
        (failing(KeyError("x")), "raised KeyError: 'x'"),
        (failing(RuntimeError("shapes differ\nsecond line")), "raised RuntimeError: shapes differ"),
        (None, "a NoneType"),
        (3, "an int"),
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

NUMBERS = [0.5, -1.25, 3.7, 2.31, -0.123456]
TABLES = [
    torch.tensor([[0.5, -1.25, 3.7], [2.31, -0.12, 0.9], [1.7, 1.1, -2.2], [0.3, 4.4, 0.6]]).double(),
    torch.tensor([[7.7], [0.1], [0.4]]).double(),
]


def said_of(wanted: list[Any], said: list[Any]) -> str:
    wrong = [
        not torch.allclose(torch.as_tensor(a), torch.as_tensor(b), rtol=1e-7, atol=1e-7)
        for a, b in zip(wanted, said, strict=True)
    ]
    return kind(wanted, said, wrong, [("", ())] * len(said), 1e-7)


@pytest.mark.parametrize(("change", "words"), _kinds._EACH)
def test_what_has_become_of_every_number_is_said(change: Callable[[Tensor], Tensor], words: str) -> None:
    positive = [abs(x) + 0.01 for x in NUMBERS]  # logarithms and roots
    for wanted in (positive, NUMBERS):
        said = change(torch.tensor(wanted, dtype=torch.float64)).tolist()
        if said_of(wanted, said).startswith(words):
            return
    pytest.fail(f"never said: {words}")


@pytest.mark.parametrize(("change", "words"), _kinds._TABLE)
def test_what_has_become_of_every_table_is_said(change: Callable[[Tensor], Tensor], words: str) -> None:
    wanted = TABLES if "rows and columns" not in words else [torch.tensor([[0.5, -1.25], [3.7, 2.31]]).double()]
    assert said_of(wanted, [change(table).double() for table in wanted]).startswith(words)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: 0 * t + 3, "You return 3 whatever your function is given."),
        (lambda t: 1.5 * t, "Every number is 1.5 times what it should be."),
        (lambda t: t - 2, "Every number is 2 too small."),
        (lambda t: 2 * t + 1, "Every number is 2 times what it should be, plus 1."),
        (lambda t: t * 1.002, "Every number is 1.002 times"),
        (lambda t: t + 0.001 * t.sin(), "Your numbers are nearly right: the first 3 digits agree."),
        (lambda t: t[torch.randperm(len(t), generator=torch.Generator().manual_seed(3))], "The rows are right"),
        (lambda t: torch.cat((t[:-1], 0 * t[-1:])), "Only the last row is wrong."),
        (lambda t: torch.cat((t[:1], 0 * t[1:])), "Only the first row is right."),
        (lambda t: t / 0, "Some of your numbers are infinite or NaN."),
    ],
)
def test_other_things_in_common_are_said(change: Callable[[Tensor], Tensor], words: str) -> None:
    assert said_of(TABLES, [change(table).double() for table in TABLES]).startswith(words)


def test_nothing_is_said_in_common_where_nothing_is() -> None:
    nearly = [x + 1e-9 for x in NUMBERS]  # wrong only for a check that is stricter
    assert kind(NUMBERS, nearly, [True] * 5, [("", ())] * 5, 1e-7) == "", "not that signs are lost, or that the factor is 1"
    assert said_of([1.0, 2.0, 3.0], [1.0, 2.0, 1e298]).startswith("Where you are wrong, your numbers are too large"), (
        "is finite"
    )
    assert said_of(TABLES, [torch.randn(table.shape, dtype=torch.float64) * 9 for table in TABLES]) == ""


@pytest.mark.parametrize(("change", "words"), _kinds._LIST)
def test_what_has_become_of_every_list_is_said(change: Callable[[Tensor], Tensor], words: str) -> None:
    wanted = [torch.tensor(numbers, dtype=torch.float64) for numbers in (NUMBERS, NUMBERS[2:])]
    assert said_of(wanted, [change(numbers) for numbers in wanted]).startswith(words)


def test_the_cases_that_go_wrong_are_named() -> None:
    three = [("one", ()), ("two", ()), ("five", ())]
    assert kind([1.0, 2.0, 5.0], [1.0, -9.0, 7.0], [False, True, True], three, 1e-4) == (
        "Your function is right in 1 of 3 cases, but not for: two; five."
    )
    assert kind([True, False, True], [False, False, True], [True, False, False], three, 0).startswith(
        "You never return True wrongly"
    )
    assert kind([True, False, True], [False, True, False], [True] * 3, three, 0) == (
        "Every answer is the opposite of what it should be."
    )
    assert kind(["x", "y", "x"], ["x"] * 3, [False, True, False], three, 0).startswith("You say 'x' every time.")
    assert kind([3, 5, 9], [4, 5, 10], [True, False, True], [("", ())] * 3, 0).startswith(
        "Where you are wrong, your number is one too large."
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([(2, 0.5), (1, 0.5), (1, 0.1), (2, 0.1)], "in 2 of 4 cases: those in which `scale` is 0.5."),
        ([(2, 0.5), (1, 0.3), (1, 0.1), (2, 0.1)], "in 2 of 4 cases: those in which `scale` isn't 0.1."),
        ([(2, 7), (3, 9), (1, 12), (2, 30)], "in 2 of 4 cases: those in which `scale` is at most 9."),
        ([(2, 7), (3, 9), (1, 6), (2, 3)], "in 2 of 4 cases: those in which `scale` is at least 7."),
        ([(2, "a"), (3, "b"), (1, "c"), (2, "d")], "in 2 of 4 cases."),
        ([(2, 7), (3, 9), (1, 12), (2, 8)], "in 2 of 4 cases."),
        ([(7, 7), (9, 9), (12, 12), (30, 30)], "in 2 of 4 cases."),
        ([(), (), (), ()], "in 2 of 4 cases."),
    ],
)
def test_the_argument_that_decides_is_named(values: list[tuple[Any, ...]], words: str) -> None:
    """Unless both could, or values that go right and wrong are mixed."""
    cases = [("", value) for value in values]
    said = kind([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 9.0, -4.0], [False, False, True, True], cases, 1e-4, ("n", "scale"))
    assert said == f"Your function is right {words}"


def test_arguments_that_are_taken_for_each_other_are_named() -> None:
    @exercise()
    def ratio() -> Exercise:
        """ratio(part, whole, unit) -> part/whole, in this unit."""
        return Exercise(
            cases=[(1.0, 4.0, "%"), (2.0, 5.0, "%")], right=lambda part, whole, unit: part / whole, mistakes={}, praise="both."
        )

    assert ratio(lambda part, whole, unit: whole / part).startswith("Your results would be right if `part` and `whole` were")


WEIGHTS = torch.tensor([[1.0, 2], [4, 7]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda n, table: (n + 1, table), "with `n + 1` instead of `n`"),
        (lambda n, table: (3, table), "with 3 in every case instead of `n`"),
        (lambda n, table: (n, table[:1].expand(2, 2)), "with only the first of `table`"),
        (lambda n, table: (n, table.flip(0)), "with `table` in reverse order"),
        (lambda n, table: (n, 1 - table), "with `1 - table` instead of `table`"),
    ],
)
def test_what_was_used_instead_of_an_argument_is_named(change: Callable[..., Any], words: str) -> None:
    def right(n: int, table: Tensor) -> float:
        return float((WEIGHTS**n * table).sum())

    @exercise()
    def weighted() -> Exercise:
        """weighted(n, table) -> the sum of the table, weighted by the nth power of the weights."""
        table = torch.tensor([[1.0, 2], [3, 5]])
        return Exercise(cases=[(2, table), (3, table + 1), (1, table + 2)], right=right, mistakes={}, praise="both.")

    assert words in weighted(lambda *given: float((WEIGHTS ** change(*given)[0] * change(*given)[1]).sum()))


def test_what_parts_of_a_result_have_in_common_is_said() -> None:
    below = torch.ones(5, 5, dtype=torch.float64).tril()
    wanted, said = [(torch.arange(5.0), below)], [(torch.arange(5.0).double(), below - torch.eye(5))]
    assert kind(wanted, said, [True], [("", ())], 1e-4) == "In part 2 of 2: Only numbers on the diagonal are wrong."
