"""The key of the concept inventory: what can be computed is computed here, and decides which option is the right one.

Each decision ends in words of an option, which the page must have once under that question; the key must give its letter.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from posenc_course.alibi import alibi_bias
from posenc_course.attention import attention, causal_mask
from posenc_course.experiment import load_corpus, load_model
from posenc_course.geometry import distance, similarity, wavelengths
from posenc_course.learned import LearnedPositions
from posenc_course.rope import RotaryPositions, apply_rope, layout_permutation, rope_tables
from posenc_course.rope_scaling import ntk_aware
from posenc_course.sinusoidal import SinusoidalPositions, frequencies, sinusoidal_table
from posenc_course.training import train
from posenc_course.transformer import Decoder, Encoder
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
        assert list(asked) == list(key()) == [*range(1, 29)], f"{test}: questions and rows of the key are not 1 to 28"
        for number, options in asked.items():
            assert list(options) == ["A", "B", "C"], f"{test}, {number}: the options are {list(options)}, not A, B, C"
            right, believed = key()[number][place], key()[number][place + 2].split(" or ")
            assert {right, *believed} <= {*options}, f"{test}, {number}: the key names options that don't exist"
            assert right not in believed, f"{test}, {number}: {right} cannot be right and the misconception"


def test_the_longest_option_is_seldom_right() -> None:
    """Students can't pass by choosing the longest option: on each test, it's right in at most 9 of the 28 questions."""
    for place, test in enumerate(TESTS):
        asked = questions(test).items()
        longest = [n for n, options in asked if len(options[key()[n][place]]) == max(map(len, options.values()))]
        assert len(longest) <= 9, f"{test}: the right option is the longest in {longest}: shorten some, or lengthen wrong ones"


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


def first_layer_notices(kind: type[Encoder | Decoder]) -> bool:
    """Whether an untrained layer without positions has another output at token 1 if tokens 0 and 2 change places."""
    torch.manual_seed(0)
    model = kind(3, 32, 4, 1).double()
    with torch.no_grad():
        one, other = model(torch.tensor([[0, 1, 2], [2, 1, 0]]))
    return not torch.allclose(one[1], other[1])


def at_the_verb() -> str:
    found = {kind: first_layer_notices(kind) for kind in (Encoder, Decoder)}
    return "Only the decoder" if found == {Encoder: False, Decoder: True} else "attention doesn't see order"


def rope_score(q: Tensor, k: Tensor, m: float, n: float, *, key_sign: int = 1, query_sign: int = 1) -> Tensor:
    cos, sin = rope_tables([query_sign * m, key_sign * n], frequencies(q.shape[-1]), dtype=torch.float64)
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
    scores = [rope_score(q, k, m, m - 3, key_sign=-1, query_sign=-1) for m in (5, 700)]
    return "They depend only on the offset" if torch.allclose(scores[0], scores[1]) else "sum of the positions"


def one_rotated_back() -> str:
    q, k = normal(2, 1, 16)
    against = [rope_score(q, k, m, m - 3, query_sign=-1) for m in (5, 700)]
    queries, keys = ([rope_score(q, k, m, m - 3, query_sign=s, key_sign=s) for m in (5, 700)] for s in (1, -1))
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


def own_frequencies() -> str:
    angles = 2 * torch.pi * torch.arange(1_000.0)[:, None] / torch.tensor([5.0, 7.0, 12.0])
    table = torch.cat((angles.sin(), angles.cos()), dim=1)
    again = int((table[1:] - table[0]).norm(dim=1).lt(1e-3).nonzero()[0]) + 1
    assert torch.allclose(table[:-again], table[again:], atol=1e-3)
    return f"After {again} tokens"


def long_words() -> str:
    table, words, generator = rows(200, 128), normal(1_000, 128), torch.Generator().manual_seed(0)
    word, position = (torch.randint(end, (5_000,), generator=generator) for end in (1_000, 200))
    sums = words[word] + table[position]
    nearest_row = (torch.cdist(sums, table).argmin(1) == position).double().mean()
    less_word = sums - words[torch.cdist(sums, words).argmin(1)]
    found = (torch.cdist(less_word, table).argmin(1) == position).double().mean()
    return "finding the word and subtracting" if found > 0.99 and abs(nearest_row - 2 / 3) < 0.05 else "the row nearest"


def only_sines() -> str:
    scores = rows(1_000, 128)[:, 0::2] @ rows(1_000, 128)[:, 0::2].T
    three_apart, far_apart = scores.diagonal(-3), scores.diagonal(-500)
    depends_on_offset = three_apart.mean() > far_apart.mean() + 10
    depends_on_positions = three_apart.max() > three_apart.min() + 10
    return "where the two tokens are" if depends_on_offset and depends_on_positions else "depends only on the offset"


def opposite() -> str:
    q = normal(100, 64)
    scores = torch.stack([rope_score(q, -q, offset, 0) for offset in (0, *range(1, 1_000, 7))])
    return "It rises on the whole" if (scores.argmin(0) == 0).all() and scores[-1].mean() > scores[0].mean() / 2 else "It falls"


def ten_more() -> str:
    alibi = alibi_bias(range(6), range(6), torch.tensor([0.1]), dtype=torch.float64).view(6, 6)
    return "They don't differ" if torch.allclose(weights(alibi), weights(10 + alibi)) else "larger for far keys"


def repeats(generator: torch.Generator, length: int = 30, batch: int = 32) -> tuple[Tensor, Tensor]:
    """Random tokens, and which of them are equal to the token before them."""
    tokens = torch.randint(4, (batch, length), generator=generator)
    return tokens, torch.cat((torch.full((batch, 1), -100), (tokens.diff(dim=1) == 0).long()), dim=1)


def twice_as_long() -> str:
    torch.manual_seed(0)
    decoder = Decoder(4, 32, 4, 2, SinusoidalPositions(32), num_outputs=2)
    train(decoder, repeats, steps=250, learning_rate=6e-3)
    tokens, marked = repeats(torch.Generator().manual_seed(1), 60, 256)
    with torch.no_grad():
        right = (decoder(tokens).argmax(-1) == marked).double()
    near, far = right[:, 1:30].mean(), right[:, 30:].mean()
    return "often wrong beyond the first 30" if near > 0.95 and far < 0.85 else "hardly any mistakes"


def loss_of_rope(positions: Tensor, seed: int, first: int = 0) -> Tensor:
    """The losses of a model trained on 64 bytes, for windows from their byte `first` on, at these positions: (256, bytes)."""
    bytes_ = load_corpus().validation[: 256 * 200].long().view(256, 200)[:, first : first + len(positions) + 1]
    with torch.no_grad():
        outputs = load_model("rope", seed)(bytes_[:, :-1], positions)
    return torch.nn.functional.cross_entropy(outputs.mT, bytes_[:, 1:], reduction="none")


def gap_in_the_numbers() -> str:
    at = torch.arange(64)
    more = []
    for seed in range(3):
        after_the_gap = loss_of_rope(at + 100 * (at > 31), seed)[:, 32:].mean()
        more += [after_the_gap - loss_of_rope(at, seed)[:, 32:].mean(), after_the_gap - loss_of_rope(at[:32], seed, 32).mean()]
    return "It rises a lot" if min(more) > 0.5 else "It stays about the same"


def every_fourth_position() -> str:
    at = torch.arange(16)
    rises = [loss_of_rope(4 * at, seed).mean() - loss_of_rope(at, seed).mean() for seed in range(3)]
    return "It's clearly higher" if min(rises) > 0.5 else "It's about the same"


def three_letters() -> str:
    """The loss of a program that counts which letter follows the last ones, three at most, in windows of 4 and of 400."""
    text = load_corpus()
    known, new = (bytes(part[:200_000].tolist()).decode("ascii") for part in (text.train, text.validation))
    seen = [Counter(known[i : i + size] for i in range(len(known) - size)) for size in range(5)]

    def loss(window: int) -> float:
        befores = [(new[max(i - i % window, i - 3) : i], new[i]) for i in range(20_000)]
        return -sum(math.log((seen[len(b) + 1][b + a] + 0.1) / (seen[len(b)][b] + 12.8)) for b, a in befores) / len(befores)

    return "It's lower" if loss(400) < loss(4) - 0.1 else "It's the same"


def one_word() -> str:
    outputs = []
    for scheme in (SinusoidalPositions(32), RotaryPositions(frequencies(8))):
        torch.manual_seed(0)
        with torch.no_grad():
            outputs.append(Encoder(3, 32, 4, 2, scheme).double()(torch.ones(1, 30, dtype=torch.long))[0])
    table, rope = (torch.pdist(output) for output in outputs)
    return "Only the one with sinusoids" if table.min() > 0.01 and rope.max() < 1e-9 else "because RoPE is the better"


def even_numbers() -> str:
    torch.manual_seed(0)
    text, at, moved = torch.randint(20, (1, 30)), torch.arange(30), []
    for scheme in (LearnedPositions(100, 32), RotaryPositions(frequencies(8))):
        for kind in (Encoder, Decoder):
            model = kind(20, 32, 4, 2, scheme).double()
            with torch.no_grad():
                moved.append(not torch.allclose(model(text, at), model(text, at + 1)))
    return "Only the one with the table" if moved == [True, True, False, False] else "because RoPE is the better"


def windows_of_eight() -> str:
    words = normal(521, 4096)
    near, far, farther = (
        torch.cosine_similarity(words[m - 7 : m + 1].mean(0), words[n - 7 : n + 1].mean(0), dim=0)
        for m, n in ((504, 500), (520, 504), (520, 500))
    )
    return "That the first two are close" if near > 0.4 and max(abs(far), abs(farther)) < 0.1 else "Nothing about distances"


def half_turns() -> str:
    """Whether the sign of the first key's score says if the number of ones is even, in each of many texts."""
    texts = torch.randint(2, (100, 200), generator=torch.Generator().manual_seed(0))
    ones = texts.cumsum(dim=1)
    even = ones % 2 == 0
    by_ones = torch.cos(torch.pi * ones.double()) > 0
    by_position = (torch.cos(torch.arange(200.0)) > 0).expand(100, -1)  # RoPE's score is the same in all texts
    told = [torch.equal(sign, even) for sign in (by_position, by_ones)]
    return "In the second" if told == [False, True] else "RoPE's rotations contain"


def share(lead: float, n: int) -> float:
    return float(torch.tensor([lead, *[0.0] * (n - 1)], dtype=torch.float64).softmax(0)[0])


def a_hundred_times_as_many() -> str:
    assert abs(share(5, 100) - 0.60) < 0.005
    return "Between 1 and 2" if 0.01 < share(5, 10_000) < 0.02 else "Still 60"


def half_of_a_million() -> str:
    assert abs(share(6.9, 1_000) - 0.5) < 0.005
    return "By 13.8" if abs(share(13.8, 1_000_000) - 0.5) < 0.01 else "as before"


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
    ("first", 23, one_word),
    ("first", 24, ntk),
    ("first", 28, a_hundred_times_as_many),
    ("second", 1, at_the_verb),
    ("second", 2, lambda: "The same labels in reverse order" if encoder_follows_its_input() else "doesn't notice"),
    ("second", 3, decoder_moved),
    ("second", 4, without_the_last_hundred),
    (
        "second",
        5,
        lambda: "In the wide table" if wavelengths(256, 100)[-1] > wavelengths(16, 100)[-1] else "In the narrow table",
    ),
    ("second", 6, own_frequencies),
    ("second", 7, two_speeds),
    ("second", 8, lambda: "does this exactly" if a_matrix_leads_on(0, -0.3, 0.3) else "only for a sine and a cosine"),
    (
        "second",
        9,
        lambda: (
            "Yes, all of them" if torch.pdist(rows(50, 512)[:, 128:]).min() > 0.1 else "position lives in the first columns"
        ),
    ),
    ("second", 10, long_words),
    ("second", 13, lambda: "Rows 132 positions apart" if distance([132], 6) < distance([1], 6) else "Neighbouring rows"),
    ("second", 14, only_sines),
    ("second", 15, opposite),
    ("second", 17, one_rotated_back),
    ("second", 18, ten_more),
    ("second", 19, twice_as_long),
    ("second", 20, gap_in_the_numbers),
    ("second", 22, three_letters),
    ("second", 23, even_numbers),
    ("second", 25, every_fourth_position),
    ("second", 26, windows_of_eight),
    ("second", 27, half_turns),
    ("second", 28, half_of_a_million),
]


@pytest.mark.slow
@pytest.mark.parametrize(("test", "number", "decide"), DECIDED, ids=[f"{test}-{number}" for test, number, _ in DECIDED])
def test_the_key_is_what_the_code_finds(test: str, number: int, decide: Callable[[], str]) -> None:
    words = decide()
    letters = [letter for letter, option in questions(test)[number].items() if words in option]
    assert len(letters) == 1, f"{test}, {number}: {len(letters)} options have {words!r}, what was found: make it one"
    right = key()[number][TESTS.index(test)]
    assert letters == [right], f"{test}, {number}: what was found, {words!r}, is option {letters[0]}, the key says {right}"
