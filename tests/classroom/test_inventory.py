"""The key of the concept inventory: what can be computed is computed here, and decides which option is the right one.

Each decision ends in words of an option, which the page must have once under that question; the key must give its letter.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from posenc_course.alibi import alibi_bias
from posenc_course.attention import attention, causal_mask
from posenc_course.geometry import distance, similarity
from posenc_course.rope import apply_rope, layout_permutation, rope_tables
from posenc_course.rope_scaling import ntk_aware
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from tests.pages.pages import TEXTS
from tests.tensors import normal
from tools.teaching.quizzes import Question, quizzes

PAGE = TEXTS["inventory"].read_text("utf-8")
QUESTIONS: list[Question] = [*quizzes()][-1].questions


def test_the_key_answers_every_question() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w) \| (\w) \|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == [*range(1, len(QUESTIONS) + 1)]
    assert all({right, believed} <= {*"ABC"} and right != believed for _, right, believed in rows)
    assert all([option.right for option in question.options].count(True) == 1 for question in QUESTIONS)


def test_the_longest_option_is_seldom_right() -> None:
    """Students can't pass by choosing the longest option."""
    longest = [max(question.options, key=lambda option: len(option.text)).right for question in QUESTIONS]
    assert sum(longest) <= len(QUESTIONS) / 3, "shorten some right options, or lengthen wrong ones"


def rows(length: int, width: int, base: float = 10_000.0) -> Tensor:
    return sinusoidal_table(range(length), width, base)


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


def rope_score(q: Tensor, k: Tensor, m: float, n: float, *, key_sign: int = 1, query_sign: int = 1) -> Tensor:
    cos, sin = rope_tables([query_sign * m, key_sign * n], frequencies(q.shape[-1]), dtype=torch.float64)
    both = apply_rope(torch.stack((q, k), dim=-2)[:, None], cos, sin, interleaved=True)[:, 0]
    return (both[:, 0] * both[:, 1]).sum(-1)


def columns_that_change_most() -> str:
    change = rows(2_000, 128).diff(dim=0).abs().mean(0)
    return "The first columns" if change[:16].min() > change[-16:].max() else "The last columns"


def row_60_611() -> str:
    far, near = distance([60_611, 1], 512)
    return "differ more than the rows" if far > 3 * near else "equal except for rounding" if far < 1e-3 else "differ, but less"


def dot_products() -> str:
    along = similarity(range(100_000), 128)
    rises, far = bool((along[:100].diff() > 0).any()), along[50_000:]
    return "rises on some steps" if rises and far.min() < -1 < 1 < far.max() else "far away it's zero"


def random_rope() -> str:
    q, k = normal(2, 4_000, 64)
    near, far = (rope_score(q, k, offset, 0).abs().mean() for offset in (0, 4_000))
    return "About as large" if abs(far / near - 1) < 0.1 else "Much smaller"


def layouts() -> str:
    q, k = normal(2, 1, 1, 3, 8)
    cos, sin = rope_tables(range(3), frequencies(8), dtype=torch.float64)
    order = layout_permutation(8, interleaved=True)
    scores = [apply_rope(q, cos, sin, interleaved=way) @ apply_rope(k, cos, sin, interleaved=way).mT for way in (True, False)]
    permuted = [apply_rope(x[..., order], cos, sin, interleaved=False) for x in (q, k)]
    exchanged = any(torch.allclose(permuted[0] @ permuted[1].mT, one) for one in scores[:1])
    other = [apply_rope(x[..., order.argsort()], cos, sin, interleaved=False) for x in (q, k)]
    exchanged = exchanged or torch.allclose(other[0] @ other[1].mT, scores[0])
    return "have to be reordered" if exchanged and not torch.allclose(scores[0], scores[1]) else "can be used unchanged"


def weights(bias: Tensor) -> Tensor:
    scores = normal(6, 6) + bias
    return scores.masked_fill(~causal_mask(torch.arange(6), torch.arange(6)), -torch.inf).softmax(-1)


def bloom() -> str:
    alibi = alibi_bias(range(6), range(6), torch.tensor([0.5]), dtype=torch.float64)[0]
    alibi = alibi[0] if alibi.ndim == 3 else alibi
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
    10: layouts,
    11: bloom,
    15: ntk,
    16: a_hundred_times_as_many,
}


@pytest.mark.slow
@pytest.mark.parametrize("number", DECIDED)
def test_the_key_is_what_the_code_finds(number: int) -> None:
    words = DECIDED[number]()
    found = [option.right for option in QUESTIONS[number - 1].options if words in option.text]
    assert found == [True], f"{number}: of the options with {words!r}, what was found, the key calls these right: {found}"
