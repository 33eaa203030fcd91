"""Relative positions: Shaw's vectors and T5's buckets against their definitions, in exact arithmetic and in transformers."""

import itertools
import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from posenc_course.relative import T5Positions, offsets, shaw_bias, t5_bias, t5_buckets
from tests.tensors import normal
from tools.lab import vectors

# All sizes differ, so that a mixed-up axis can't go unnoticed.
BATCH, HEADS, QUERIES, KEYS, D_HEAD = 2, 3, 4, 7, 5

# Queries and keys: after a cache, before their keys, each sequence with its own, and not one after the other.
PLACES = {
    "cached": (torch.arange(3, 7), torch.arange(7)),
    "future": (torch.arange(4), torch.arange(2, 9)),
    "own": (torch.tensor([[0, 1, 2, 3], [9, 8, 7, 7]]), torch.tensor([[0, 1, 2, 3, 4, 5, 6], [9, 0, 8, 1, 7, 30, 2]])),
    "own queries": (torch.tensor([[3, 4, 5, 6], [8, 9, 10, 11]]), torch.arange(7)),
    "own keys": (torch.arange(3, 7), torch.tensor([[0, 1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7, 8]])),
    "gaps": (torch.tensor([0, 2, 4, 6]), torch.tensor([0, 10, 20, 30, 40, 50, 60])),
    "backwards": (torch.arange(6, 2, -1), torch.arange(6, -1, -1)),
}
places = pytest.mark.parametrize(("q_positions", "k_positions"), PLACES.values(), ids=PLACES.keys())


def pairs(q_positions: Tensor, k_positions: Tensor) -> list[list[list[int]]]:
    """Every m - n as Python integers, [batch or 1][query][key]."""
    rows = [p if p.ndim == 2 else p.expand(BATCH, -1) for p in (q_positions, k_positions)]
    if q_positions.ndim == k_positions.ndim == 1:
        rows = [p[:1] for p in rows]
    return [[[m - n for n in keys] for m in queries] for queries, keys in zip(rows[0].tolist(), rows[1].tolist(), strict=True)]


# ── offsets ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@places
def test_offset_is_query_minus_key(q_positions: Tensor, k_positions: Tensor) -> None:
    """Positive where the key lies in the past."""
    result = offsets(q_positions, k_positions)
    expected = pairs(q_positions, k_positions)
    assert result.dtype == torch.float64
    assert result.tolist() == (expected if result.ndim == 3 else expected[0])


# ── Shaw ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def shaw_by_definition(query: Tensor, table: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """A vector for each query and key, (batch or 1, L_query, L_key, d_head), times each query."""
    reach = len(table) // 2
    rows = [[[min(max(o, -reach), reach) + reach for o in row] for row in rows] for rows in pairs(q_positions, k_positions)]
    vectors = table[torch.tensor(rows)].expand(len(query), -1, -1, -1)
    return torch.einsum("bhmd,bmnd->bhmn", query, vectors) / math.sqrt(query.shape[-1])


@pytest.mark.parametrize("reach", [1, 2, 100])
@places
def test_shaw_equals_its_definition(q_positions: Tensor, k_positions: Tensor, reach: int) -> None:
    """q_m · table[clip(m - n, -K, K) + K] / √d_head, and the gradients of query and table are those of the definition too."""
    results = []
    for function in (shaw_bias, shaw_by_definition):
        query, table = normal(BATCH, HEADS, QUERIES, D_HEAD).requires_grad_(), normal(2 * reach + 1, D_HEAD).requires_grad_()
        bias = function(query, table, q_positions, k_positions)
        assert bias.shape == (BATCH, HEADS, QUERIES, KEYS)
        results.append((bias, *torch.autograd.grad((bias * normal(*bias.shape, seed=1)).sum(), (query, table))))
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("reach", [1, 3, 20])
def test_shaw_equals_transformers_with_a_flipped_table(reach: int) -> None:
    """Wav2Vec2-BERT (Hugging Face) counts n - m, the key ahead of the query first: our table is theirs upside down."""
    from transformers.models.wav2vec2_bert import modeling_wav2vec2_bert

    query, key, theirs = normal(BATCH, HEADS, 9, D_HEAD), normal(BATCH, HEADS, 9, D_HEAD), normal(2 * reach + 1, D_HEAD)
    module = SimpleNamespace(
        left_max_position_embeddings=reach,
        right_max_position_embeddings=reach,
        distance_embedding=lambda rows: theirs[rows],
        scaling=D_HEAD**-0.5,
    )
    _, expected = modeling_wav2vec2_bert._apply_relative_key_position_encoding(module, query, key)
    ours = shaw_bias(query, theirs.flip(0), torch.arange(9), torch.arange(9))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-13)
    assert (shaw_bias(query, theirs, torch.arange(9), torch.arange(9)) - expected).abs().max() > 0.1


# ── T5: which bucket ─────────────────────────────────────────────────────────────────────────────────────────────────────


def bucket_by_definition(offset: int, num_buckets: int, max_distance: int, *, causal: bool) -> int:
    """The formula of T5 in 60 digits, for m - n."""
    return vectors.bucket(-offset, num_buckets, max_distance, causal)


@st.composite
def t5_settings(draw: st.DrawFn) -> dict[str, Any]:
    causal = draw(st.booleans())
    num_buckets = draw(st.integers(2, 70)) if causal else 2 * draw(st.integers(2, 35))
    single = (num_buckets if causal else num_buckets // 2) // 2
    max_distance = single + draw(st.integers(1, 9) | st.integers(1, 500) | st.integers(1, 10**5))
    return {"num_buckets": num_buckets, "max_distance": max_distance, "causal": causal}


@given(st.data(), t5_settings())
def test_buckets_are_those_of_the_formula(data: st.DataObject, setting: dict[str, Any]) -> None:
    near = st.integers(-2 * setting["max_distance"], 2 * setting["max_distance"])
    given_offsets = data.draw(st.lists(near | st.integers(-100, 100), min_size=1, max_size=9))
    expected = [bucket_by_definition(offset, **setting) for offset in given_offsets]
    result = t5_buckets(given_offsets, **setting)
    assert result.dtype == torch.int64
    assert result.tolist() == expected


@pytest.mark.parametrize("causal", [True, False])
def test_buckets_equal_those_of_transformers(causal: bool) -> None:
    """T5 (Hugging Face) counts n - m; in the standard setting and in 63 others."""
    from transformers.models.t5.modeling_t5 import T5Attention

    all_offsets = torch.arange(-1100, 1101)
    for num_buckets, max_distance in itertools.product((4, 8, 12, 16, 24, 32, 40, 64), (33, 64, 100, 128, 200, 256, 500, 1024)):
        ours = t5_buckets(all_offsets, num_buckets, max_distance, causal=causal)
        hugging_face = T5Attention._relative_position_bucket(-all_offsets, not causal, num_buckets, max_distance)
        assert torch.equal(ours, hugging_face)


@pytest.mark.parametrize(
    ("causal", "num_buckets", "max_distance", "distance", "bucket"),
    [
        (True, 19, 196, 42, 14),  # on the edge: 42² = 9·196
        (False, 38, 196, 42, 14),
        (True, 48, 81, 54, 40),  # on the edge: 54³ = 24·81²
        (True, 58, 282, 119, 46),  # before the edge, which is at 119.0000004
        (True, 46, 164, 107, 40),  # before the edge, which is at 107.00002
    ],
)
def test_transformers_misplaces_single_distances(
    causal: bool, num_buckets: int, max_distance: int, distance: int, bucket: int
) -> None:
    """Bucket E + j begins at E·(max/E)^(j/s), s = B - E: to the power of s, whole numbers decide. Theirs is a float32 log."""
    from transformers.models.t5.modeling_t5 import T5Attention

    buckets = num_buckets if causal else num_buckets // 2
    single = buckets // 2
    steps, j = buckets - single, bucket - single
    begins, ends = (max_distance**k * single ** (steps - k) for k in (j, j + 1))
    assert begins <= distance**steps < ends
    assert t5_buckets([distance], num_buckets, max_distance, causal=causal).tolist() == [bucket]
    assert bucket_by_definition(distance, num_buckets, max_distance, causal=causal) == bucket
    offset = torch.tensor([distance])
    hugging_face = T5Attention._relative_position_bucket(-offset, not causal, num_buckets, max_distance)
    assert (hugging_face != bucket).all(), "mended: say so in the chapter, and move this row to the test above"


# ── T5: the bias ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def t5_by_definition(table: Tensor, q_positions: Tensor, k_positions: Tensor, max_distance: int, *, causal: bool) -> Tensor:
    """table[bucket(m - n)] one by one, (batch or 1, heads, L_query, L_key)."""
    buckets = [
        [[bucket_by_definition(o, len(table), max_distance, causal=causal) for o in row] for row in rows]
        for rows in pairs(q_positions, k_positions)
    ]
    return torch.stack([table[:, head][torch.tensor(buckets)] for head in range(table.shape[1])], dim=1)


@pytest.mark.parametrize("causal", [True, False])
@places
def test_t5_bias_is_the_tables_entry_of_each_bucket(q_positions: Tensor, k_positions: Tensor, causal: bool) -> None:
    """Bitwise, at positions of any kind; the gradient of the table is that of the definition."""
    results = []
    for function in (t5_bias, t5_by_definition):
        table = normal(8, HEADS).requires_grad_()
        bias = function(table, q_positions, k_positions, 9, causal=causal)
        results.append((bias, *torch.autograd.grad((bias * normal(*bias.shape, seed=1)).sum(), table)))
    (ours, our_gradient), (expected, gradient) = results
    assert torch.equal(ours, expected)
    torch.testing.assert_close(our_gradient, gradient, rtol=0, atol=1e-13)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("num_buckets", "max_distance"), [(32, 128), (8, 20)])
def test_t5_module_equals_transformers(causal: bool, num_buckets: int, max_distance: int) -> None:
    """In one pass over 150 tokens, and for six new tokens after five cached ones."""
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(
        d_model=12,
        num_heads=HEADS,
        is_decoder=causal,
        relative_attention_num_buckets=num_buckets,
        relative_attention_max_distance=max_distance,
    )
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    standard = (num_buckets, max_distance) == (32, 128)
    ours = T5Positions(HEADS, causal=causal) if standard else T5Positions(HEADS, num_buckets, max_distance, causal=causal)
    with torch.no_grad():
        ours.table.copy_(theirs.relative_attention_bias.weight)
    for seen, length in ((0, 150), (5, 11)):
        query = normal(BATCH, HEADS, length - seen, D_HEAD, dtype=torch.float32)
        expected = theirs.compute_bias(length - seen, length, past_seen_tokens=seen)
        assert torch.equal(ours.bias(query, torch.arange(seen, length), torch.arange(length)), expected)
