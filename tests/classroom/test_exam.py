"""The keys of the exam: every number that they give is computed here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
import torch

from posenc_course.alibi import alibi_slopes
from posenc_course.attention import attention
from posenc_course.rope import apply_rope, rope_tables
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.commands import ROOT

EXAM = (ROOT / "exercises/exam.md").read_text("utf-8")
QUESTIONS, KEYS = (
    dict(re.findall(r"^\*\*(\d+)\.\*\* (.*?)(?=^\*\*\d+\.|\Z)", part, re.MULTILINE | re.DOTALL))
    for part in EXAM.partition("\n## Questions\n")[2].split("\n## Keys\n")
)


def test_points_add_up() -> None:
    """And each key gives as many as its question promises."""
    points = {number: int(re.findall(r"^\((\d) points", text)[0]) for number, text in QUESTIONS.items()}
    assert KEYS.keys() == points.keys() == {str(number) for number in range(1, 16)}
    assert f"All fifteen questions together make an exam of {sum(points.values())} minutes" in EXAM


def same_rows(causal: bool) -> list[int]:
    """Which rows stay when tokens 1 and 3 of five are exchanged, in one layer with random matrices."""
    torch.manual_seed(0)
    x, matrices = torch.randn(5, 8), torch.randn(3, 8, 8)
    mask = torch.ones(5, 5).tril().bool() if causal else None
    before, after = (attention(*(y @ matrix for matrix in matrices), mask=mask) for y in (x, x[[0, 3, 2, 1, 4]]))
    return [row for row in range(5) if torch.allclose(before[row], after[row], atol=1e-5)]


def score(m: int, n: int) -> float:
    arrow, speed = torch.tensor([[[[1.0, 0.0]]]]), torch.tensor([0.5], dtype=torch.float64)
    query, key = (apply_rope(arrow, *rope_tables(torch.tensor([position]), speed), interleaved=True) for position in (m, n))
    return float(query @ key.mT)


def slowest(width: int, doubled: int) -> float:
    return float(10_000 ** -(doubled * (width // 2 - 1) / width))


NEW, OLD = frequencies(16) * 127, frequencies(16) * 63
FULL = [pair for pair, angle in enumerate(OLD.tolist()) if angle > 2 * math.pi]
SAID: dict[str, Callable[[], list[str]]] = {
    "1": lambda: [f"Row {same_rows(True)[0]}, which sees only itself, and row {same_rows(True)[1]}, which"],
    "2": lambda: ["1/9, and was 1/19", f"{(1 / 9) / (1 / 19):.1f} times as long"],
    "3": lambda: [
        "{:g}, {:g}, {:g} and {:g} (2".format(*(round(w, 9) for w in frequencies(8).tolist())),
        f"about {2 * math.pi / frequencies(8)[1]:.1f} tokens",
    ],
    "4": lambda: [f"({math.cos(0.5):.3f}, {math.sin(0.5):.3f}) and (−{math.sin(0.5):.3f}, {math.cos(0.5):.3f})"],
    "5": lambda: [f"largest value is {(sinusoidal_table(torch.arange(9), 64) @ sinusoidal_table([3], 64).T).max():.0f}, the"],
    "6": lambda: [f"its frequency is {slowest(64, 1):.4f} instead of {slowest(64, 2):.6f}"],
    "7": lambda: [
        f"= −{-score(7, 3):.3f} (2",
        f"At {min(range(10), key=lambda offset: score(offset, 0))}, where it's −{-score(6, 0):.3f}",
        f"at {math.pi / 0.5:.2f} tokens",
    ],
    "10": lambda: [
        f"1/{1 / alibi_slopes(8)[0]:.0f} and 1/{1 / alibi_slopes(8)[-1]:.0f} (2",
        f"= {math.exp(4 * alibi_slopes(8)[0]):.2f} times",
        f"= {math.exp(4 * alibi_slopes(8)[-1]):.3f} times",
    ],
    "12": lambda: [
        "Pairs {}, {} and {} (1".format(*FULL),
        f"at most {OLD[3]:.2f} radians, which is {OLD[3] / (2 * math.pi):.0%}".replace("%", " %"),
        f"127 it's at {NEW[3]:.2f} radians",
        f"only {NEW[7]:.3f} radians instead of {OLD[7]:.3f}",
    ],
    "15": lambda: [
        f"ln 999 = {math.log(999):.2f} (2",
        f"999,999 = {math.log(999_999):.2f} (1",
        f"ln 10 = {math.log(10):.2f} (1",
    ],
}


@pytest.mark.parametrize("number", SAID)
def test_key_is_right(number: str) -> None:
    for words in SAID[number]():
        assert words in KEYS[number]


def test_wrong_table_is_found_by_its_slowest_pair_and_not_by_its_rows() -> None:
    """Question 6: the code is run as it stands there."""
    (code,) = re.findall(r"```python\n(.*?)```", QUESTIONS["6"], re.DOTALL)
    names = {"torch": torch}
    exec(code, names)
    wrong, right = names["table"](50, 64), sinusoidal_table(torch.arange(50), 64)  # type: ignore[operator]
    assert wrong.shape == right.shape
    assert torch.allclose(wrong.norm(dim=1), right.float().norm(dim=1))
    assert torch.equal(wrong[0].sort().values, right[0].float().sort().values)
    assert float(wrong[1, 31].asin()) == pytest.approx(slowest(64, 1), rel=1e-4)
    assert float(frequencies(64)[-1]) == pytest.approx(slowest(64, 2), rel=1e-4)
