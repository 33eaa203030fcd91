"""The page of symptoms: its tests pass on something healthy and fail on something that's ill, and its recipe is one."""

import json
import math
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.attention import attention, causal_mask
from posenc_course.inspector import catalogue, inspect
from posenc_course.nope import NoPositions
from posenc_course.rope import RotaryPositions, apply_rope, rope_tables
from posenc_course.rope_scaling import dynamic_ntk
from posenc_course.sinusoidal import SinusoidalPositions, frequencies
from posenc_course.transformer import Decoder
from tests.commands import ROOT

PAGE = (ROOT / "book/reference/symptoms.md").read_text(encoding="utf-8")
TESTS = dict(re.findall(r"^### (.+?)\n(?:(?!^#).)*?```python\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11]])
OMEGA = frequencies(16)


def decoder(scheme: Any) -> Decoder:
    torch.manual_seed(0)
    return Decoder(20, 32, 2, 2, scheme).eval().requires_grad_(False)


ROPE = decoder(RotaryPositions(OMEGA))


def rotate_at(interleaved: bool) -> Callable[..., Tensor]:
    def rotate(x: Tensor, position: int) -> Tensor:
        return apply_rope(x[None, None, None], *rope_tables([position], OMEGA), interleaved=interleaved).flatten()

    return rotate


def rotary(**changes: Any) -> Any:
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, rope_parameters={"rope_type": "default", "rope_theta": 5e5})
    made = LlamaRotaryEmbedding(config)
    for name, change in changes.items():
        made.register_buffer(name, change(getattr(made, name)), persistent=False)
    return made


def last(scheme: Any) -> Callable[..., Tensor]:
    """The last query's output; its keys and values are (L, 16)."""

    def output(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        m = torch.arange(len(q))
        q, k = scheme.rotate(q[None, None], k[None, None], m, m)
        return attention(q, k, v[None, None], mask=causal_mask(m, m))[0, 0, -1]

    return output


def logits(count: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """The next token's logits of texts that are padded on the left; `count` gives positions for what is padding."""

    def of(texts: list[list[int]]) -> Tensor:
        longest = max(map(len, texts))
        ids = torch.tensor([[0] * (longest - len(text)) + text for text in texts])
        padding = torch.tensor([[True] * (longest - len(text)) + [False] * len(text) for text in texts])
        return ROPE(ids, count(padding), padding=padding)[:, -1]

    return of


def skip_one(padding: Tensor) -> Tensor:
    """A gap before the last token, as when the padding counts only there."""
    positions = (~padding).cumsum(1) - 1
    positions[:, -1] += padding.sum(1)
    return positions.clamp(min=0)


TEXT = torch.tensor([[0, 0, 0, 1, 1, 1, 1]])


def packed(apart: bool) -> Callable[[Tensor], Tensor]:
    if not apart:
        return lambda ids: ROPE(ids)
    return lambda ids: torch.cat([ROPE(ids[:, :3]), ROPE(ids[:, 3:])], dim=1)


def stepper(shift: int) -> Callable[[Tensor], Tensor]:
    caches, at = ROPE.new_caches(), iter(range(len(IDS[0])))

    def step(token: Tensor) -> Tensor:
        m = next(at)
        return ROPE(token, torch.tensor([m + shift * (m > 1)]), caches)

    return step


# The mean of one channel is large.
KEYS = torch.randn(64, 16, generator=torch.Generator().manual_seed(0)) + 30 * torch.eye(16)[2]


def in_16_steps(dim: int) -> Callable[[Tensor], Tensor]:
    """Round to 16 values from the smallest to the largest number along a dimension: 0 is for each channel, 1 for each token."""

    def quantized(x: Tensor) -> Tensor:
        low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
        return low + ((x - low) * 15 / (high - low)).round() * (high - low) / 15

    return quantized


def bias(positions_of: Callable[[int, int], Tensor]) -> Callable[..., Tensor]:
    return lambda queries, keys: alibi_bias(positions_of(queries, keys), torch.arange(keys), alibi_slopes(4))[0]


def speculate(shift: int) -> Callable[..., tuple[int, int]]:
    """How many of six tokens a model proposes and accepts, one at a time, by the largest logit."""

    def by(draft: Decoder, target: Decoder) -> tuple[int, int]:
        accepted, text = 0, torch.randint(20, (1, 40), generator=torch.Generator().manual_seed(0))
        wanted = target(text).argmax(-1)
        caches = draft.new_caches()
        for m in range(40):
            guess = draft(text[:, m : m + 1], torch.tensor([m - shift * (m > 2)]), caches).argmax(-1)
            accepted += int(guess == wanted[:, m])
        return 40, accepted

    return by


SCALING = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}
GRID = torch.tensor([[0, 1, 2, 2, 2, 2, 4], [0, 1, 2, 2, 3, 3, 4], [0, 1, 2, 3, 2, 3, 4]])  # a picture of four tokens
CACHE = SimpleNamespace(positions=torch.tensor([0, 1, 2, 3, 8, 9, 10, 11]))
Q, K, V = torch.randn(3, 4, 16, generator=torch.Generator().manual_seed(0))
WINDOWS = {w: torch.arange(6)[:, None] - torch.arange(6) for w in (3, 4)}


# What the two lines get: names, and for each what is healthy and what is ill.
def stretched(table: Tensor, rows: int, columns: int) -> Tensor:
    grid = table[1:].T.view(1, -1, 4, 4)
    return torch.cat((table[:1], torch.nn.functional.interpolate(grid, (rows, columns)).flatten(2)[0].T))


def stretched_by_a_factor(table: Tensor, rows: int, columns: int) -> Tensor:
    """By one that's a little less than rows/4."""
    return stretched(table, *(math.floor(4 * (0.999 * size / 4)) for size in (rows, columns)))


PATIENTS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "Word order makes no difference": (
        {"same_token": torch.full((1, 6), 3)},
        {"model": decoder(SinusoidalPositions(32))},
        {"model": decoder(NoPositions())},
    ),
    "The first token is right, and the rest is noise": ({"d": 16}, {"rotate": rotate_at(False)}, {"rotate": rotate_at(True)}),
    "It works when it's built, and not when it's loaded": (
        {},
        {"rotary": rotary()},
        {"rotary": rotary(inv_freq=torch.zeros_like)},
    ),
    "Digits come in the wrong order, or the text starts to loop": (
        {"q": Q, "k": K, "v": V},
        {"last": last(NoPositions())},
        {"last": last(RotaryPositions(OMEGA))},
    ),
    "Answers about text are good, those about pictures aren't": (
        {"positions": GRID},
        {"next_position": lambda positions: positions[:, -1].max() + 1},
        {"next_position": lambda positions: positions.shape[1]},
    ),
    "Short texts read well, and long ones fall apart": (
        {"config": {"rope_theta": 5e5}},
        {"rotary": rotary()},
        {"rotary": rotary(inv_freq=lambda omega: frequencies(16).float())},
    ),
    "With YaRN, short texts got worse": (
        {"wanted_length": 131_072, "trained_length": 32_768},
        {"scaling": SCALING},
        {"scaling": SCALING | {"original_max_position_embeddings": 131_072}},
    ),
    "A conversation gets worse when it grows past a certain length": (
        {"old": 64},
        {"frequencies": lambda length: OMEGA / 4},
        {"frequencies": lambda length: dynamic_ntk(OMEGA, length, 64, 4.0)},
    ),
    "Far into a text, neighbours become twins": (
        {},
        {"table": lambda positions: rope_tables(positions, OMEGA)},
        {"table": lambda positions: rope_tables(positions.bfloat16().double(), OMEGA)},
    ),
    "The output differs as soon as a text is longer than the window": (
        {"config": {"sliding_window": 3}},
        {"mask": (WINDOWS[3] >= 0) & (WINDOWS[3] < 3)},
        {"mask": (WINDOWS[4] >= 0) & (WINDOWS[4] < 4)},
    ),
    "In a batch, only the longest prompt is answered well": (
        {"short": [5, 6, 7], "long": [8, 9, 10, 11, 12, 13]},
        {"logits": logits(lambda padding: ((~padding).cumsum(1) - 1).clamp(min=0))},
        {"logits": logits(skip_one)},
    ),
    "In packed rows, texts influence each other": (
        {"ids": IDS, "text": TEXT},
        {"model": packed(True)},
        {"model": packed(False)},
    ),
    "With more devices, the loss is higher": (
        {"devices": range(2), "length": 8},
        {"positions_on": lambda device: torch.tensor([[0, 1, 6, 7], [2, 3, 4, 5]][device])},
        {"positions_on": lambda device: torch.arange(4)},
    ),
    "The first new tokens are good, and the rest aren't": (
        {"ids": IDS, "model": ROPE},
        {"step": stepper(0)},
        {"step": stepper(4)},
    ),
    "When the cache is full, the model loses its place": (
        {"cache": CACHE},
        {"next_position": lambda cache: 12},
        {"next_position": lambda cache: len(cache.positions)},
    ),
    "With a quantized cache, the text gets worse": (
        {
            "keys": KEYS,
            "rotate": lambda keys: apply_rope(keys[None, None], *rope_tables(torch.arange(64), OMEGA), interleaved=True)[0, 0],
        },
        {"quantized": in_16_steps(1)},
        {"quantized": in_16_steps(0)},
    ),
    "Generated text forgets what was just said": (
        {"n": 6},
        {"bias": bias(lambda queries, keys: torch.arange(keys)[-queries:])},
        {"bias": lambda queries, keys: (alibi_slopes(4)[:, None, None] * torch.arange(queries)).expand(4, 1, keys)},
    ),
    "Speculative decoding writes the right text, but hardly faster": (
        {"model": ROPE},
        {"speculate": speculate(0)},
        {"speculate": speculate(1)},
    ),
    "One token more, and the program stops": (
        {"table": torch.nn.Embedding(514, 4), "first_row": 2},
        {"tokens": range(512)},
        {"tokens": range(513)},
    ),
    "Pictures of another size crash, or look different to the model": (
        {"table": torch.arange(34.0).view(17, 2), "rows": 6, "columns": 6},
        {"stretch": stretched},
        {"stretch": stretched_by_a_factor},
    ),
}


@pytest.mark.parametrize("symptom", TESTS)
def test_two_lines_tell_what_is_ill_from_what_is_healthy(symptom: str) -> None:
    code, (names, healthy, ill) = TESTS[symptom], PATIENTS[symptom]
    assert code.count("\n") == 2
    exec(code, {"torch": torch, "math": math, **names, **healthy})
    with pytest.raises(AssertionError):
        exec(code, {"torch": torch, "math": math, **names, **ill})


def test_every_symptom_has_a_test_and_somebody_who_met_it() -> None:
    parts = re.findall(r"^### (?!When the class)(.+?)\n(.*?)(?=^##)", PAGE, re.MULTILINE | re.DOTALL)
    assert {title for title, _ in parts} == {*TESTS} == {*PATIENTS}
    for title, part in parts:
        assert re.search(r"^Met in \[.*https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+", part, re.MULTILINE), title


def test_threads_of_the_inspector_are_on_the_page() -> None:
    for each in catalogue().values():
        assert each["thread"] in PAGE, f"book/reference/symptoms.md lacks {each['thread']}: add it to a symptom"


def test_recipe_is_what_transformers_reads() -> None:
    config = {
        "model_type": "qwen3",
        "num_hidden_layers": 2,
        "hidden_size": 256,
        "num_attention_heads": 2,
        "max_position_embeddings": 131_072,
    }
    (values,) = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    ((where, wanted),) = re.findall(r"^- \[transformers 5\].*? `(\w+)`.*? `(\w+)`\.$", PAGE, re.MULTILINE)
    report = inspect(config | {where: values, wanted: 131_072})
    assert not report.findings, report.text()
    (kind,) = report.kinds
    assert kind.done
    assert kind.known.stretch == ("yarn", 4.0, 32_768)
    report = inspect(config | {where: values | {"original_max_position_embeddings": 131_072}, wanted: 131_072})
    assert [finding.code for finding in report.findings] == ["lengths"]
