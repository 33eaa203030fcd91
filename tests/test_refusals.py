"""What a refused call leaves behind: caches as they were."""

import pytest
import torch
from torch import Tensor

from posenc_course.attention import Cache, MultiHeadAttention
from posenc_course.relative import T5Positions
from posenc_course.transformer import Decoder

TOKENS = torch.tensor([[1, 2, 3, 4, 5]])


def state(*caches: Cache) -> list[Tensor | None]:
    return [part for cache in caches for part in vars(cache).values()]


def test_a_decoder_whose_last_layer_refuses_leaves_all_caches_as_they_were() -> None:
    model = Decoder(8, 8, 2, 3, T5Positions(2, causal=True)).eval()
    caches = model.new_caches()
    model(TOKENS[:, :3], caches=caches)
    before = state(*caches)
    failing = model.blocks[-1].register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(TOKENS[:, 3:], caches=caches)
    failing.remove()
    assert all(new is old for new, old in zip(state(*caches), before, strict=True))
    assert torch.allclose(model(TOKENS[:, 3:], caches=caches), model(TOKENS)[:, 3:], atol=1e-5)


def test_attention_whose_call_was_refused_leaves_its_cache_as_it_was() -> None:
    """Its scheme refuses fractions of positions, after the cache has the keys."""
    attention, cache = MultiHeadAttention(8, 2, T5Positions(2, causal=True), causal=True), Cache()
    for positions, padding in ((torch.tensor([0.5]), None), (torch.tensor([0]), torch.zeros(1, 7, dtype=torch.bool))):
        with pytest.raises(ValueError, match=r"positions|padding"):
            attention(torch.ones(1, 1, 8), positions, cache, padding=padding)
        assert state(cache) == [None] * 4
