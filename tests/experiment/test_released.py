"""The released model: its scores, and what tools/lab/released has measured of it."""

import copy
import hashlib
import json
import lzma
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from posenc_course.attention import Cache, attention, causal_mask
from posenc_course.experiment import load_corpus
from posenc_course.llama import Llama, load_llama, released_weights
from posenc_course.rope import RotaryPositions, convert_projection
from tests.peers import in_transformers
from tests.tensors import normal
from tools.lab.released import heads, lengths, reading
from tools.lab.released.__main__ import GROUPS, TABLE, measure
from tools.lab.released.reading import FOLDER, TOKENS
from tools.lab.released.schemes import OMEGA, PLAIN, ClampedPairs, HidingPositions, OtherHeads, WithoutPairs, slowed

MEASURED = json.loads((FOLDER / TABLE).read_text("utf-8"))
STORED = {group: [run for run in MEASURED["runs"] if run["group"] == group] for group in MEASURED["made"]}
Loaded = tuple[Llama, Any]


# ── the weights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load_llama()


def halves(model: Llama) -> Llama:
    """The model with its queries and keys in the order that it was published in."""
    other = copy.deepcopy(model)
    for block in other.blocks:
        attention: Any = block.attention
        for project, number in ((attention.query, 9), (attention.key, 3)):
            project.weight.copy_(convert_projection(project.weight, number, interleaved=False))
    other.use(RotaryPositions(OMEGA, interleaved=False))
    return other


@pytest.mark.slow
@torch.inference_mode()
def test_scores_are_those_of_transformers(loaded: Loaded) -> None:
    """With each one's layout; the other layout costs nats."""
    model, tokenizer = loaded
    text = bytes(load_corpus().validation[:1_200].tolist()).decode()
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids) == text
    tokens = torch.tensor(ids[:257])[None]
    scores = model(tokens[:, :-1])
    theirs = in_transformers(halves(model), 100_000.0)(tokens[:, :-1]).logits
    assert (scores - theirs).abs().max() < 1e-3
    loss = torch.nn.functional.cross_entropy(scores[0], tokens[0, 1:])
    assert 1 < loss < 3
    model.use(RotaryPositions(OMEGA, interleaved=False))
    assert model.losses(tokens).mean() > loss + 2


# ── what is stored ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_prose_says_whose_it_is() -> None:
    prose = json.loads(lzma.decompress((FOLDER / "prose.xz").read_bytes()))
    assert [one["name"] for one in prose] == ["alice", "milton", "shakespeare", "reference", "course"]
    for one in prose:
        assert hashlib.sha256(one["text"].encode()).hexdigest() == one["sha256"]
        assert one["source"]
        assert one["license"] in ("public domain", "PSF-2.0", "CC BY 4.0")
    assert [*reading.texts()][:3] == ["code 1", "alice", "code 2"]


def test_every_group_is_whole_and_of_these_weights_and_texts() -> None:
    assert STORED.keys() == GROUPS.keys() == {run["group"] for run in MEASURED["runs"]}
    weights, prose = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (released_weights(), FOLDER / "prose.xz"))
    for group, stored in STORED.items():
        for made in MEASURED["made"][group]:
            assert (made["weights"]["sha256"], made["prose"], made["corpus"]) == (weights, prose, load_corpus().sha256)
            assert made["tokens"] == TOKENS
        settings = [run["setting"] for run in stored]
        assert all(settings.count(setting) == 1 for setting in settings)


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_the_tool_makes_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str) -> None:
    """Instead of the model, with one layer of random weights, and random texts of 224 tokens."""
    torch.manual_seed(0)
    model = Llama(60, 128, 2, 1, 1, 32, PLAIN).requires_grad_(False)
    texts = {name: torch.randint(60, (225,)) for name in ("code 1", "alice")}
    monkeypatch.setattr(lengths, "steps_of_weights", lambda: {"blk.0.attn_q.weight": torch.ones(128, 128)})
    (tmp_path / TABLE).write_text(json.dumps({"made": {"other": []}, "runs": [{"group": "other"}]}), "utf-8")
    measure(reading.Bench(model, texts, torch.randint(60, (20, 225)), str, 16), group, {}, tmp_path)
    other, *made = json.loads((tmp_path / TABLE).read_text("utf-8"))["runs"]
    assert other == {"group": "other"}
    keys = {json.dumps(run["setting"]): run.keys() for run in made}
    for run in STORED[group]:
        alike = keys.get(json.dumps(run["setting"]))
        assert alike == run.keys() or alike is None or "first wrong" in run
        # A tiny model has one layer, and reads two texts.
        assert alike or {"layer", "layers", "without RoPE", "text"} & run["setting"].keys()


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"as": "released"}, {"stopped": "slowest", "pairs": 16}], ids=str)
@torch.inference_mode()
def test_a_stored_loss_is_found_again(loaded: Loaded, setting: dict[str, Any]) -> None:
    model, tokenizer = loaded
    (run,) = (run for run in STORED["ablations"] if run["setting"] == setting)
    tokens = torch.tensor(tokenizer.encode(reading.texts()["alice"][:2_000]).ids[:257])[None]
    model.use(PLAIN if "as" in setting else slowed(range(16, 32), 0))
    assert model.losses(tokens).mean().item() == pytest.approx(run["losses"]["alice"][0] / 1000, abs=0.003)


# ── the schemes of the tool ──────────────────────────────────────────────────────────────────────────────────────────────


def test_one_kernel_does_what_attention_does() -> None:
    q, k, v = normal(3, 2, 3, 20, 8)
    mask = causal_mask(torch.arange(20), torch.arange(20))
    for bias in (None, torch.zeros(1, 1, 20, 20).double().masked_fill(torch.arange(20) == 3, -math.inf)):
        torch.testing.assert_close(reading.fused(q, k, v, bias=bias, mask=mask), attention(q, k, v, bias=bias, mask=mask))


@pytest.mark.parametrize("hidden", [(0,), (1, 2)])
def test_hiding_starts_where_it_should(hidden: tuple[int, ...]) -> None:
    bias = HidingPositions(3, hidden).bias(normal(1, 2, 5, 64), torch.arange(5), torch.arange(5))
    assert bias.isneginf().nonzero().tolist() == [[0, 0, query, key] for query in (3, 4) for key in hidden]


def test_other_heads_are_rotated_by_other_frequencies() -> None:
    q, k = normal(1, 4, 5, 64), normal(1, 2, 5, 64)
    at, other = torch.arange(5), slowed(range(16), 0)
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
    angles = torch.exp(1j * distance * OMEGA)
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
    rotated = [WithoutPairs(range(24, 32)).rotate(q, each, at, at) for each in (k, other)]
    scores = [one @ each.mT for one, each in [*rotated, PLAIN.rotate(q, k, at, at)]]
    torch.testing.assert_close(scores[0], scores[1])
    assert not torch.allclose(scores[0], scores[2])


def test_the_chosen_heads_are_those_of_the_record() -> None:
    looks = [run for run in STORED["heads"] if "layer" in run["setting"]]
    found = {(run["setting"]["layer"], n): head for run in looks for n, head in enumerate(run["heads"])}
    assert [at for at, head in found.items() if head["distances"][1] > 500] == [*heads.PREVIOUS]
    assert [at for at, head in found.items() if head["after equal"] > 200] == [*heads.AFTER_EQUAL]
