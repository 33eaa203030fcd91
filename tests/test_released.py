"""The released model: its scores, and what tools/lab/released.py has measured of it."""

from __future__ import annotations

import copy
import hashlib
import json
import lzma
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from posenc_course.attention import Cache, attention, causal_mask
from posenc_course.conventions import read_rotation
from posenc_course.experiment import load_corpus
from posenc_course.llama import Llama, load_llama, released_weights
from posenc_course.rope import RotaryPositions, convert_projection, rope_tables
from posenc_course.sinusoidal import frequencies
from tests.pages import BOOK, NOTEBOOKS, markdown, printed, read
from tests.tensors import normal
from tests.test_llama import peer
from tools.lab import released
from tools.lab.released import (
    FOLDER,
    PLAIN,
    TOKENS,
    ClampedPairs,
    HidingPositions,
    KeptPositions,
    OtherHeads,
    RoughPositions,
    WithoutPairs,
)

STORED = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
Loaded = tuple[Llama, Any]


# ── the weights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sha256() -> str:
    return hashlib.sha256(released_weights().read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load_llama()


def halves(model: Llama) -> Llama:
    """The model with its queries and keys in the order that it was published in."""
    other = copy.deepcopy(model)
    for block in other.blocks:
        attention: Any = block.attention
        for project, heads in ((attention.query, 9), (attention.key, 3)):
            project.weight.copy_(convert_projection(project.weight, heads, interleaved=False))
    other.use(RotaryPositions(frequencies(64, base=100_000.0), interleaved=False))
    return other


def rotate_as_transformers(x: Tensor) -> Tensor:
    """What transformers' Llama does to queries at positions 0, 1, …"""
    embedding = LlamaRotaryEmbedding(LlamaConfig(hidden_size=64, num_attention_heads=1, rope_theta=100_000.0))
    cos, sin = embedding(x, torch.arange(x.shape[2])[None])
    return apply_rotary_pos_emb(x, x, cos, sin)[0]


@pytest.mark.slow
@torch.inference_mode()
def test_scores_are_those_of_transformers(loaded: Loaded) -> None:
    """With the layouts that the probe reads; the other layout costs nats."""
    model, tokenizer = loaded
    text = bytes(load_corpus().validation[:1_200].tolist()).decode()
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    tokens = torch.tensor(ids[:257])[None]
    assert tokens.shape[1] == 257
    scheme: Any = model.blocks[0].attention.scheme  # type: ignore[union-attr]
    ours = read_rotation(lambda x: scheme.rotate(x, x, torch.arange(x.shape[2]), torch.arange(x.shape[2]))[0], 64)
    hubs = read_rotation(rotate_as_transformers, 64)
    assert (ours.interleaved, hubs.interleaved) == (True, False)
    torch.testing.assert_close(ours.frequencies, hubs.frequencies, atol=1e-6, rtol=1e-4)

    scores = model(tokens[:, :-1])
    theirs = peer(halves(model), 100_000.0)(tokens[:, :-1]).logits
    assert (scores - theirs).abs().max() < 1e-3
    loss = torch.nn.functional.cross_entropy(scores[0], tokens[0, 1:])
    assert 1 < loss < 3
    model.use(RotaryPositions(scheme.frequencies, interleaved=False))
    assert model.losses(tokens).mean() > loss + 2


# ── what is stored ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_prose_says_whose_it_is() -> None:
    prose = json.loads(lzma.decompress((FOLDER / "prose.xz").read_bytes()))
    assert [one["name"] for one in prose] == ["alice", "milton", "shakespeare", "reference", "course"]
    for one in prose:
        assert hashlib.sha256(one["text"].encode()).hexdigest() == one["sha256"]
        assert one["source"]
        assert one["license"] in ("public domain", "PSF-2.0", "CC BY 4.0")
    assert [*released.texts()][:3] == ["code 1", "alice", "code 2"]


def test_everything_stored_is_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_100_000


@pytest.mark.parametrize("group", released.GROUPS)
def test_a_group_is_whole_and_says_where_it_comes_from(group: str, sha256: str) -> None:
    stored = STORED[group]
    assert stored["command"] == "python tools/lab/released.py"
    assert not re.search(r"[/\\](home|root|tmp|work|usr|Users)\b", json.dumps(stored["made"]))
    for made in stored["made"]:
        assert made["weights"]["sha256"] == sha256
        assert made["prose"] == hashlib.sha256((FOLDER / "prose.xz").read_bytes()).hexdigest()
        assert made["corpus"] == load_corpus().sha256
        assert made["tokens"] == TOKENS
        assert {"date", "torch", "device", "precision", "attention"} <= made.keys()
    settings = [run["setting"] for run in stored["runs"]]
    assert all(settings.count(setting) == 1 for setting in settings)
    for run in stored["runs"]:
        assert 0 <= run["made"] < len(stored["made"])
        losses = run.get("losses", {})
        for some in losses.values() if isinstance(losses, dict) else [losses]:
            assert len(some) * run["width"] in (2 * 1024, 4 * 1024, 8 * 1024, 12 * 1024, 14 * 1024)
            assert all(isinstance(loss, int) and 0 <= loss < 20_000 for loss in some)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of the model, one layer with random weights, and random texts of 224 tokens."""

    def prepare(device: str, tokens: int, layers: int | None, number: int) -> released.Bench:
        torch.manual_seed(0)
        model = Llama(60, 128, 2, 1, 1, 32, PLAIN).requires_grad_(False)
        texts = {name: torch.randint(60, (tokens + 1,)) for name in ("code 1", "alice")[:number]}
        return released.Bench(model, texts, torch.randint(60, (20, tokens + 1)), str, tokens // 14, {})

    monkeypatch.setattr(released, "prepare", prepare)
    monkeypatch.setattr("posenc_course.llama.attention", attention)  # which the tool exchanges
    monkeypatch.setattr(released, "steps_of_weights", lambda: {"blk.0.attn_q.weight": torch.ones(128, 128)})


@pytest.mark.slow
def test_the_tool_makes_what_is_stored(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["released.py", "--tokens", "224", "--texts", "2", "--folder", str(tmp_path)])
    released.main()
    assert "guilty" in capsys.readouterr().out
    for group, stored in STORED.items():
        made = json.loads((tmp_path / f"{group}.json").read_text("utf-8"))
        keys = {json.dumps(run["setting"]): run.keys() for run in made["runs"]}
        for run in stored["runs"]:
            alike = keys.get(json.dumps(run["setting"]))
            assert alike == run.keys() or alike is None or "first wrong" in run
            # A tiny model has one layer, and reads two texts.
            assert alike or {"layer", "layers", "without RoPE", "text"} & run["setting"].keys()
    released.main()
    assert not re.search("cliff|windows|scan", capsys.readouterr().out), "what is there was made again"


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"as": "released"}, {"stopped": "slowest", "pairs": 16}], ids=str)
@torch.inference_mode()
def test_a_stored_loss_is_found_again(loaded: Loaded, setting: dict[str, Any]) -> None:
    model, tokenizer = loaded
    (run,) = (run for run in STORED["ablations"]["runs"] if run["setting"] == setting)
    tokens = torch.tensor(tokenizer.encode(released.texts()["alice"][:2_000]).ids[:257])[None]
    model.use(PLAIN if "as" in setting else released.slowed(range(16, 32), 0))
    assert model.losses(tokens).mean().item() == pytest.approx(run["losses"]["alice"][0] / 1000, abs=0.003)


@torch.inference_mode()
def test_layers_below_a_change_are_computed_once() -> None:
    """Whatever was kept before, from fewer or from more layers."""
    torch.manual_seed(0)
    model = Llama(60, 128, 2, 1, 3, 32, PLAIN).requires_grad_(False)
    bench = released.Bench(model, {"some": torch.randint(60, (225,))}, torch.randint(60, (20, 225)), str, 16, {})
    other = released.slowed([0, 1], 0)
    for changed in ([1], [2], [1, 2], [0], [2]):
        schemes: list[Any] = [other if layer in changed else PLAIN for layer in range(3)]
        found = bench.measured(schemes, 2, 256)
        model.use(schemes)
        losses = model.losses(bench.texts["some"][None, :33]).unflatten(1, (-1, 4)).mean(dim=2)
        assert found["losses"]["some"] == released.whole(losses[0])


# ── the schemes of the tool ──────────────────────────────────────────────────────────────────────────────────────────────


def test_kept_positions_are_those_within_a_cache() -> None:
    """Token by token: the first 2 and the last 5 keys, unrotated in the cache, rotated by their positions in it."""
    q, k, v = (normal(1, heads, 20, 64) for heads in (3, 3, 3))
    at, window, first = torch.arange(20), 5, 2
    scheme = KeptPositions(window, first, first + window - 1)
    rotated = scheme.rotate(q, k, at, at)
    found = attention(*rotated, v, bias=scheme.bias(rotated[0], at, at), mask=causal_mask(at, at))
    for m in range(20):
        kept = sorted({*range(min(first, m + 1)), *range(max(0, m - window + 1), m + 1)})
        within = torch.arange(len(kept))
        one = PLAIN.rotate(q[:, :, m : m + 1], k[:, :, kept], within[-1:], within)
        torch.testing.assert_close(found[:, :, m : m + 1], attention(*one, v[:, :, kept]))


def test_one_kernel_does_what_attention_does() -> None:
    q, k, v = normal(3, 2, 3, 20, 8)
    mask = causal_mask(torch.arange(20), torch.arange(20))
    for bias in (None, torch.zeros(1, 1, 20, 20).double().masked_fill(torch.arange(20) == 3, -math.inf)):
        torch.testing.assert_close(released.fused(q, k, v, bias=bias, mask=mask), attention(q, k, v, bias=bias, mask=mask))


def test_rough_positions_are_exact_as_long_as_bfloat16_is() -> None:
    at = torch.arange(1_000)
    exact, rough = rope_tables(at, released.OMEGA), RoughPositions("positions in bfloat16").tables(at)
    torch.testing.assert_close(rough[0][:257], exact[0][:257])
    assert (rough[0][257:] - exact[0][257:]).abs().amax() > 0.5


@pytest.mark.parametrize("hidden", [(0,), (1, 2)])
def test_hiding_starts_where_it_should(hidden: tuple[int, ...]) -> None:
    bias = HidingPositions(3, hidden).bias(normal(1, 2, 5, 64), torch.arange(5), torch.arange(5))
    assert bias.isneginf().nonzero().tolist() == [[0, 0, query, key] for query in (3, 4) for key in hidden]


def test_other_heads_are_rotated_by_other_frequencies() -> None:
    q, k = normal(1, 4, 5, 64), normal(1, 2, 5, 64)
    at, other = torch.arange(5), released.slowed(range(16), 0)
    found = OtherHeads([2], other).rotate(q, k, at, at)
    repeated = k.repeat_interleave(2, dim=1)
    for head in range(4):
        scheme = other if head == 2 else PLAIN
        for one, expected in zip(found, scheme.rotate(q, repeated, at, at), strict=True):
            assert torch.equal(one[:, head], expected[:, head])


def test_a_clamped_pair_rotates_by_the_smaller_of_distance_and_cap() -> None:
    """Against complex numbers, for the last ten of 40 tokens, whose keys three heads share."""
    caps, at, cache = {3: 7, 20: 7, 31: 19}, torch.arange(40), Cache()
    q, k = normal(1, 6, 40, 64), normal(1, 2, 40, 64)
    scheme = ClampedPairs(caps, cache)
    rotated_q, rotated_k = scheme.rotate(q, k, at, at)
    cache.extend(rotated_k, rotated_k, at)
    scores = rotated_q[:, :, 30:] @ rotated_k.repeat_interleave(3, dim=1).mT / 8
    bias = scheme.bias(rotated_q[:, :, 30:], at[30:], at)
    assert bias is not None
    found = scores + bias
    distance = (at[30:, None] - at)[..., None].clamp(max=torch.tensor([caps.get(pair, 40) for pair in range(32)]))
    angles = torch.exp(1j * distance * released.OMEGA)
    a, b = (torch.view_as_complex(x.double().unflatten(-1, (-1, 2))) for x in (q[:, :, 30:], k.repeat_interleave(3, dim=1)))
    expected = torch.einsum("bhqp,bhkp,qkp->bhqk", a, b.conj(), angles).real / 8
    past = at <= at[30:, None]
    torch.testing.assert_close(found[..., past].double(), expected[..., past], atol=1e-5, rtol=1e-5)
    assert (scores - found)[..., past].abs().max() > 0.1


def test_pairs_that_are_left_out_change_no_score() -> None:
    q, k = normal(2, 1, 1, 5, 64)
    at = torch.arange(5)
    other = k.clone()
    other[..., 48:] = 100
    found = [torch.matmul(*(x if n == 0 else x.mT for n, x in enumerate(WithoutPairs(range(24, 32)).rotate(q, each, at, at))))
             for each in (k, other)]  # fmt: skip
    torch.testing.assert_close(*found)
    assert not torch.allclose(found[0], PLAIN.rotate(q, k, at, at)[0] @ PLAIN.rotate(q, k, at, at)[1].mT)


def test_the_chosen_heads_are_those_of_the_record() -> None:
    looks = [run for run in STORED["heads"]["runs"] if "layer" in run["setting"]]
    heads = {(run["setting"]["layer"], n): head for run in looks for n, head in enumerate(run["heads"])}
    assert [at for at, head in heads.items() if head["distances"][1] > 500] == [*released.PREVIOUS]
    assert [at for at, head in heads.items() if head["after equal"] > 200] == [*released.AFTER_EQUAL]


# ── the table of predictions ─────────────────────────────────────────────────────────────────────────────────────────────

SIGNS = {"● right": "right", "◐ in part": "in part", "○ wrong": "wrong", "– not tested": "not tested"}
# The predictions by their names in book/predictions.toml, on each page.
QUOTED = {
    "deeper/18_released": [
        f"released-{name}"
        for name in "cliff pair angle pairs interpolation ntk yarn window far shift bfloat16 bits recital writes".split()
    ]
    + ["control-clamped", "control-alone", "control-stages"],
    "deeper/19_heads": [
        f"{kind}-{name}"
        for kind, names in {
            "released": "previous sink equal share stop drop mask guilty content heads chain",
            "control": "early middle twice single head previous",
        }.items()
        for name in names.split()
    ],
}


@pytest.mark.parametrize("page", QUOTED)
def test_the_table_has_every_claim_that_was_predicted_and_gives_the_computed_verdicts(page: str) -> None:
    predictions = tomllib.loads((BOOK / "predictions.toml").read_text("utf-8"))
    every = {name for names in QUOTED.values() for name in names}
    assert {name for name in predictions if name.startswith(("released-", "control-"))} == every
    text = re.sub("<!--.*?-->", "", markdown(read(NOTEBOOKS[page])))
    rows = re.findall(r"^\| (R\d+) \| (.*?) \| (. \w+(?: \w+)?) \| .+ \|$", text, re.MULTILINE)
    assert [claim for _, claim, _ in rows] == [predictions[name]["claim"] for name in QUOTED[page]]
    verdicts = [line.partition(":")[0] for line in printed(page) if re.match(r"R\d+ ", line)]
    assert [f"{label} {SIGNS[sign]}" for label, _, sign in rows] == verdicts
