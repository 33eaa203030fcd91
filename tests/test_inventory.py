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
from posenc_course.geometry import distance, similarity, wavelengths
from posenc_course.rope import RotaryPositions, apply_rope, layout_permutation, rope_tables
from posenc_course.rope_scaling import ntk_aware
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from posenc_course.transformer import Decoder
from tests.pages import TEXTS
from tests.tensors import normal

PAGE = TEXTS["inventory"].read_text("utf-8")
TESTS = ("first", "second")


def questions(test: str) -> dict[int, dict[str, str]]:
    """The options of each question, by their letters."""
    body = re.split(rf"^## The {test} test$", PAGE, flags=re.MULTILINE)[1]
    body = re.split(r"^## ", body, maxsplit=1, flags=re.MULTILINE)[0]
    parts = re.split(r"^\*\*(\d+)\.\*\* ", body, flags=re.MULTILINE)[1:]
    listed = (dict(re.findall(r"^- \*\*([A-Z])\.\*\* (.*)$", text, re.MULTILINE)) for text in parts[1::2])
    return dict(zip(map(int, parts[::2]), listed, strict=True))


def key() -> dict[int, list[str]]:
    """Of each question: right on the first test and on the second, the misconception on the first and on the second."""
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", PAGE, re.MULTILINE)
    return {int(number): [cell.strip() for cell in cells.split("|")] for number, cells in rows}


def test_the_key_answers_every_question() -> None:
    for place, test in enumerate(TESTS):
        asked = questions(test)
        assert list(asked) == list(key()) == [*range(1, 26)], f"{test}: questions and rows of the key are not 1 to 25"
        for number, options in asked.items():
            assert list(options) == ["A", "B", "C"], f"{test}, {number}: the options are {list(options)}, not A, B, C"
            right, believed = key()[number][place], key()[number][place + 2].split(" or ")
            assert {right, *believed} <= {*options}, f"{test}, {number}: the key names options that don't exist"
            assert right not in believed, f"{test}, {number}: {right} cannot be right and the misconception"


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


def rope_score(q: Tensor, k: Tensor, m: float, n: float, *, key_turns: int = 1, query_turns: int = 1) -> Tensor:
    cos, sin = rope_tables([query_turns * m, key_turns * n], frequencies(q.shape[-1]), dtype=torch.float64)
    both = apply_rope(torch.stack((q, k), dim=-2)[:, None], cos, sin, interleaved=True)[:, 0]
    return (both[:, 0] * both[:, 1]).sum(-1)


def columns_that_change_most() -> str:
    change = rows(2_000, 128).diff(dim=0).abs().mean(0)
    return "The first columns" if change[:16].min() > change[-16:].max() else "The last columns"


def slowest_turn() -> str:
    narrow, wide = (wavelengths(width)[-1] for width in (64, 512))
    return "Fewer than $2" if narrow < wide < 2 * torch.pi * 10_000 else "at every width"


def row_60_611() -> str:
    far, near = distance([60_611, 1], 512)
    return "differ more than the rows" if far > 3 * near else "equal except for rounding" if far < 1e-3 else "differ, but less"


def exponent_doubled() -> str:
    omega = frequencies(64) ** 2
    return "A different table" if (4_000 * omega < 0.5).sum() >= 16 and omega[1] != frequencies(64)[1] else "The same table"


def variance_of_5000() -> str:
    share = rows(5_000, 128).var(0)
    return "Little more than a quarter" if share[:32].sum() / share.sum() < 0.35 else "position lives in the first columns"


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


def clockwise() -> str:
    q, k = normal(2, 1, 16)
    scores = [rope_score(q, k, m, m - 3, key_turns=-1, query_turns=-1) for m in (5, 700)]
    return "They depend only on the offset" if torch.allclose(scores[0], scores[1]) else "sum of the positions"


def one_turned_back() -> str:
    q, k = normal(2, 1, 16)
    against = [rope_score(q, k, m, m - 3, query_turns=-1) for m in (5, 700)]
    queries, keys = ([rope_score(q, k, m, m - 3, query_turns=s, key_turns=s) for m in (5, 700)] for s in (1, -1))
    repaired = all(torch.allclose(one, other) for one, other in (queries, keys)) and not torch.allclose(against[0], against[1])
    return "either the queries or the keys" if repaired else "No change of direction"


def weights(bias: Tensor) -> Tensor:
    scores = normal(6, 6) + bias
    return scores.masked_fill(~causal_mask(torch.arange(6), torch.arange(6)), -torch.inf).softmax(-1)


def bloom() -> str:
    alibi = alibi_bias(range(6), range(6), torch.tensor([0.5]), dtype=torch.float64)[0]
    alibi = alibi[0] if alibi.ndim == 3 else alibi
    same = torch.allclose(weights(alibi), weights(0.5 * torch.arange(6.0, dtype=torch.float64).expand(6, 6)))
    return "They don't differ" if same else "larger for far keys"


def shifted_row() -> str:
    row = torch.tensor([-2.5, -2, -1.5, -1, -0.5, 0], dtype=torch.float64)
    same = torch.allclose((normal(6) + row).softmax(-1), (normal(6) + row - 1).softmax(-1))
    return "They don't differ" if same else "all weights are smaller"


def ntk() -> str:
    divided = frequencies(64) / ntk_aware(frequencies(64), 8.0)
    return "by 8 at most" if divided.max() <= 8 + 1e-9 else "to make up for the fast pairs"


def decoder_moved() -> str:
    torch.manual_seed(0)
    decoder, text = Decoder(20, 32, 2, 2, RotaryPositions(frequencies(16))).double(), torch.randint(20, (1, 64))
    with torch.no_grad():
        same = torch.allclose(decoder(text, torch.arange(64)), decoder(text, torch.arange(64) + 1_000))
    return "the same after every layer" if same else "more with every layer"


def without_the_last_hundred() -> str:
    (first, second), kept = rows(2, 512), slice(0, 412)
    ratio = (first[kept] - second[kept]).norm() / (first - second).norm()
    return "Almost none of it" if ratio > 1 - 1e-6 else "Most of it"


def two_speeds() -> str:
    columns = torch.outer(torch.arange(100.0), 10_000.0 ** (-torch.arange(8.0) / 8))
    lengths = torch.cat((columns[:, 0::2].sin(), columns[:, 1::2].cos()), dim=1).norm(dim=1)
    return "get different frequencies" if lengths.std() > 0.1 else "whether you count pairs or columns"


def peak_at_100() -> str:
    (q,) = normal(1, 1, 64)
    cos, sin = rope_tables([100], frequencies(64), dtype=torch.float64)
    k = apply_rope(q[None, None], cos, sin, interleaved=True)[0, 0]
    scores = torch.stack([rope_score(q, k, m, 0)[0] for m in range(500)])
    return "Yes, because" if scores.argmax() == 100 else "a key that is closer"


DECIDED: list[tuple[str, int, Callable[[], str]]] = [
    ("first", 2, lambda: "the last vector are swapped" if encoder_follows_its_input() else "stays exactly the same"),
    ("first", 4, columns_that_change_most),
    ("first", 5, slowest_turn),
    ("first", 6, row_60_611),
    ("first", 7, exponent_doubled),
    ("first", 8, lambda: "does this exactly" if a_matrix_leads_on(0, 0.5, 0.3) else "only for a sine and a cosine"),
    ("first", 9, variance_of_5000),
    ("first", 13, dot_products),
    ("first", 15, random_rope),
    ("first", 16, layouts),
    ("first", 17, clockwise),
    ("first", 18, bloom),
    ("first", 24, ntk),
    ("second", 2, lambda: "The same labels in reverse order" if encoder_follows_its_input() else "doesn't notice"),
    ("second", 3, decoder_moved),
    ("second", 4, without_the_last_hundred),
    (
        "second",
        5,
        lambda: "In the wide table" if wavelengths(256, 100)[-1] > wavelengths(16, 100)[-1] else "In the narrow table",
    ),
    (
        "second",
        6,
        lambda: "differ more than the rows" if distance([61], 128, 10) > distance([1], 128, 10) else "differ, but less",
    ),
    ("second", 7, two_speeds),
    ("second", 8, lambda: "does this exactly" if a_matrix_leads_on(0, -0.3, 0.3) else "only for a sine and a cosine"),
    (
        "second",
        9,
        lambda: (
            "Yes, all of them" if torch.pdist(rows(50, 512)[:, 128:]).min() > 0.1 else "position lives in the first columns"
        ),
    ),
    ("second", 13, lambda: "Rows 63 positions apart" if distance([63], 8) < distance([1], 8) else "Neighbouring rows"),
    ("second", 15, peak_at_100),
    ("second", 17, one_turned_back),
    ("second", 18, shifted_row),
]


@pytest.mark.parametrize(("test", "number", "decide"), DECIDED, ids=[f"{test}-{number}" for test, number, _ in DECIDED])
def test_the_key_is_what_the_code_finds(test: str, number: int, decide: Callable[[], str]) -> None:
    words = decide()
    letters = [letter for letter, option in questions(test)[number].items() if words in option]
    assert len(letters) == 1, f"{test}, {number}: {len(letters)} options have {words!r}, what was found: make it one"
    right = key()[number][TESTS.index(test)]
    assert letters == [right], f"{test}, {number}: what was found, {words!r}, is option {letters[0]}, the key says {right}"
