"""What a refused call leaves behind, and inputs that were accepted silently or refused without a reason."""

import math
import time

import pytest
import torch
from torch import Tensor

from posenc_course.attention import Cache, MultiHeadAttention
from posenc_course.relative import T5Positions, _root_rounded_up, _t5_edges, t5_buckets
from posenc_course.training import warm_up_and_cosine
from posenc_course.transformer import Decoder

TOKENS = torch.tensor([[1, 2, 3, 4, 5]])


@pytest.fixture
def decoder() -> Decoder:
    """Its scheme refuses fractions of positions, after the cache has the keys."""
    torch.manual_seed(0)
    return Decoder(8, 8, 2, 3, T5Positions(2, causal=True)).eval()


def state(caches: list[Cache]) -> list[list[Tensor]]:
    return [[part for part in (cache.keys, cache.values, cache.positions) if part is not None] for cache in caches]


@pytest.mark.parametrize("begun", [0, 3])
def test_a_decoder_whose_call_was_refused_is_as_it_was(decoder: Decoder, begun: int) -> None:
    with torch.inference_mode():
        whole = decoder(TOKENS)
        caches = decoder.new_caches()
        if begun:
            decoder(TOKENS[:, :begun], caches=caches)
        before = state(caches)
        for positions, padding in (
            (torch.tensor([2.5]), None),
            (torch.tensor([[begun]]), torch.zeros(1, 1, dtype=torch.bool)),
        ):
            with pytest.raises(ValueError, match=r"positions|padding"):
                decoder(TOKENS[:, :1], positions, caches, padding=padding if begun else torch.zeros(1, 9))
        after = state(caches)
        assert [len(parts) for parts in after] == [len(parts) for parts in before]
        assert all(a is b for new, old in zip(after, before, strict=True) for a, b in zip(new, old, strict=True))
        rest = decoder(TOKENS[:, begun:], caches=caches)
    assert torch.allclose(rest, whole[:, begun:], atol=1e-5)


def test_a_decoder_that_fails_in_its_last_layer_leaves_the_first_as_they_were(decoder: Decoder) -> None:
    caches = decoder.new_caches()
    decoder(TOKENS[:, :3], caches=caches)
    before = state(caches)
    last = decoder.blocks[-1]
    failing = last.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        decoder(TOKENS[:, 3:4], caches=caches)
    failing.remove()
    assert all(a is b for new, old in zip(state(caches), before, strict=True) for a, b in zip(new, old, strict=True))
    assert torch.allclose(decoder(TOKENS[:, 3:], caches=caches), decoder(TOKENS)[:, 3:], atol=1e-5)


def test_attention_whose_call_was_refused_leaves_its_cache_as_it_was() -> None:
    attention, cache, x = MultiHeadAttention(8, 2, T5Positions(2, causal=True), causal=True), Cache(), torch.ones(1, 1, 8)
    for positions, padding in ((torch.tensor([0.5]), None), (torch.tensor([0]), torch.zeros(1, 7, dtype=torch.bool))):
        with pytest.raises(ValueError, match=r"positions|padding"):
            attention(x, positions, cache, padding=padding)
        assert (cache.keys, cache.values, cache.positions) == (None, None, None)


def test_very_many_buckets_take_seconds() -> None:
    """A power of a million digits for each of them took hours."""
    began = time.process_time()
    distances = torch.arange(0, 1_000_000, 997)
    buckets = t5_buckets(distances, num_buckets=100_000, max_distance=1_000_000, causal=True)
    assert time.process_time() - began < 10
    assert (buckets.diff() >= 0).all()
    exact = 50_000 + 50_000 * (distances[51:].double() / 50_000).log() / math.log(20)
    assert (buckets[51:] - exact.floor()).abs().max() <= 1


@pytest.mark.parametrize("single", [1, 2, 3, 8, 10, 16])
@pytest.mark.parametrize("ratio", [2, 3, 8, 16, 81, 1000, 10**15])
def test_edges_of_buckets_are_exact_where_they_are_whole_numbers_too(single: int, ratio: int) -> None:
    """Powers of two and three make edges that are whole numbers exactly, which floating point may miss to either side."""
    for more in (-1, 0, 1):
        largest = single * ratio + more
        if largest > single:
            exact = [_root_rounded_up(largest**j * single ** (single - j), single) for j in range(1, single)]
            assert _t5_edges(2 * single, largest, causal=True).tolist() == [*range(1, single + 1), *map(float, exact)]


@pytest.mark.parametrize("step", [-1, 10, 11])
def test_a_step_outside_of_the_schedule_is_named(step: int) -> None:
    for warm_up in (0, 4, 10):
        schedule = warm_up_and_cosine(10, warm_up)
        assert all(0 < schedule(inside) <= 1 for inside in range(10))
        with pytest.raises(ValueError, match=f"step must be from 0 to 9, got {step}: make the schedule for as many steps"):
            schedule(step)
