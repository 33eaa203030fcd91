"""The keys of the exam, of the concept inventory and of the ten questions: what can be computed is computed here."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.attention import attention, causal_mask
from posenc_course.geometry import distance, similarity
from posenc_course.rope import apply_rope, rope_tables
from posenc_course.rope_scaling import ntk_aware
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.classroom.course import blocks
from tests.commands import ROOT
from tests.pages.pages import TEXTS, section
from tests.tensors import normal
from tools.teaching.quizzes import Question, quizzes

# ── the exam ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

EXAM = (ROOT / "exercises/exam.md").read_text("utf-8")
QUESTIONS, KEYS = (
    dict(re.findall(r"^\*\*(\d+)\.\*\* (.*?)(?=^\*\*\d+\.|\Z)", part, re.MULTILINE | re.DOTALL))
    for part in EXAM.partition("\n## Questions\n")[2].split("\n## Keys\n")
)


def test_points_of_the_exam_add_up() -> None:
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
def test_key_of_the_exam_is_right(number: str) -> None:
    for words in SAID[number]():
        assert words in KEYS[number]


# ── the concept inventory: each decision ends in words of the option that the key must call right ────────────────────────────

INVENTORY = TEXTS["inventory"].read_text("utf-8")
BELIEFS: list[Question] = [*quizzes()][-1].questions


def test_the_key_answers_every_question() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w) \| (\w) \|$", INVENTORY, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == [*range(1, len(BELIEFS) + 1)]
    assert all({right, believed} <= {*"ABC"} and right != believed for _, right, believed in rows)


def a_matrix_leads_on(first: float, second: float, omega: float) -> bool:
    """Whether one matrix leads from each row of two waves, ahead by these phases, to the next."""
    m = torch.arange(200.0, dtype=torch.float64)[:, None]
    waves = torch.sin(omega * m + torch.tensor([first, second], dtype=torch.float64))
    fitted = torch.linalg.lstsq(waves[:-1], waves[1:]).solution
    return bool(torch.allclose(waves[:-1] @ fitted, waves[1:], atol=1e-9))


def encoder_follows_its_input() -> bool:
    x, order = normal(6, 8), torch.tensor([5, 1, 2, 3, 4, 0])
    here, there = attention(x, x, x), attention(x[order], x[order], x[order])
    return bool(torch.allclose(here[order], there)) and not torch.allclose(here, there)


def columns_that_change_most() -> str:
    change = sinusoidal_table(range(2_000), 128).diff(dim=0).abs().mean(0)
    return "The first columns" if change[:16].min() > change[-16:].max() else "The last columns"


def row_60_611() -> str:
    far, near = distance([60_611, 1], 512)
    return "differ more than the rows" if far > 3 * near else "equal except for rounding" if far < 1e-3 else "differ, but less"


def dot_products() -> str:
    along = similarity(range(100_000), 128)
    rises, far = bool((along[:100].diff() > 0).any()), along[50_000:]
    return "rises on some steps" if rises and far.min() < -1 < 1 < far.max() else "far away it's zero"


def random_rope() -> str:
    q, k = normal(2, 4_000, 1, 1, 64)

    def size(offset: int) -> Tensor:
        ahead, at_0 = (rope_tables([position], frequencies(64), dtype=torch.float64) for position in (offset, 0))
        return (apply_rope(q, *ahead, interleaved=True) * apply_rope(k, *at_0, interleaved=True)).sum(-1).abs().mean()

    return "About as large" if abs(size(4_000) / size(0) - 1) < 0.1 else "Much smaller"


def weights(bias: Tensor) -> Tensor:
    scores = normal(6, 6) + bias
    return scores.masked_fill(~causal_mask(torch.arange(6), torch.arange(6)), -torch.inf).softmax(-1)


def bloom() -> str:
    alibi = alibi_bias(range(6), range(6), torch.tensor([0.5]), dtype=torch.float64)[0, 0]
    same = torch.allclose(weights(alibi), weights(0.5 * torch.arange(6.0, dtype=torch.float64).expand(6, 6)))
    return "They don't differ" if same else "larger for far keys"


def ntk() -> str:
    divided = frequencies(64) / ntk_aware(frequencies(64), 8.0)
    return "by 8 at most" if divided.max() <= 8 + 1e-9 else "to make up for the fast pairs"


def share(lead: float, n: int) -> float:
    return float(torch.tensor([lead, *[0.0] * (n - 1)], dtype=torch.float64).softmax(0)[0])


def a_hundred_times_as_many() -> str:
    assert abs(share(5, 100) - 0.60) < 0.005
    return "Between 1 and 2" if 0.01 < share(5, 10_000) < 0.02 else "Still 60"


DECIDED: dict[int, Callable[[], str]] = {
    2: lambda: "the last vector are swapped" if encoder_follows_its_input() else "stays exactly the same",
    3: columns_that_change_most,
    4: row_60_611,
    5: lambda: "does this exactly" if a_matrix_leads_on(0, 0.5, 0.3) else "only for a sine and a cosine",
    7: dot_products,
    9: random_rope,
    11: bloom,
    15: ntk,
    16: a_hundred_times_as_many,
}


@pytest.mark.slow
@pytest.mark.parametrize("number", DECIDED)
def test_the_key_is_what_the_code_finds(number: int) -> None:
    words = DECIDED[number]()
    found = [option.right for option in BELIEFS[number - 1].options if words in option.text]
    assert found == [True], f"{number}: of the options with {words!r}, what was found, the key calls these right: {found}"


# ── the ten questions before the first session ───────────────────────────────────────────────────────────────────────────────


def test_answers_to_the_ten_questions_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for code in blocks("logistics.md", "Ten questions before the first session", "python"):
        exec(code, {})
        printed.append(capsys.readouterr().out.strip())
    weights = torch.tensor([0, 0, math.log(2)]).softmax(0)
    shape = (torch.zeros(5, 8) @ torch.zeros(8, 3)).shape
    spread = torch.tensor([1.0, 3, 5, 7])
    said = {
        "1": f"*AB* has {shape[0]} rows and {shape[1]} columns",
        "2": f"It's −{-torch.tensor([1, 2, 3]) @ torch.tensor([2, 0, -1])}:",
        "3": f"`{printed[0]}`",
        "4": f"`{printed[1]}`",
        "5": f"({abs(math.cos(math.pi / 2)):.0f}, {math.sin(math.pi / 2):.0f}), after π/2",
        "7": f"It's {10_000**-0.5:.2f}",
        "8": {(0.25, 0.25, 0.5): "¼, ¼ and ½"}[tuple(round(weight, 6) for weight in weights.tolist())],
        "9": f"The mean is {spread.mean():.0f}. ",
    }
    text = section((ROOT / "book/teaching/logistics.md").read_text("utf-8"), "Ten questions") or ""
    told = dict(re.findall(r"^\*\*(\d+)\.\*\* .*?</summary>\n\n(.*?)\n\n</det", text, re.MULTILINE | re.DOTALL))
    for number, words in said.items():
        assert words in told[number], number
    for deviation in (spread.std(correction=0), spread.std()):
        assert f"{deviation:.2f}<!--given-->" in told["9"]
