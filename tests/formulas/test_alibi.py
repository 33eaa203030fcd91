"""ALiBi: the slopes of the paper, the penalty by distance, and the fast form against attention with the bias written out."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from posenc_course.alibi import AlibiPositions, alibi_attention, alibi_bias, alibi_slopes
from posenc_course.attention import attention, causal_mask
from tests.tensors import Kept, close, normal
from tools.lab import vectors

# ── slopes ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("num_heads", range(1, 113))
def test_slopes_are_those_of_the_papers_recursion(num_heads: int) -> None:
    slopes = alibi_slopes(num_heads)
    assert slopes.dtype == torch.float64
    expected = torch.tensor([float(slope) for slope in vectors.slopes(num_heads)], dtype=torch.float64)
    torch.testing.assert_close(slopes, expected, rtol=2e-14, atol=0)


# ── the bias ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Heads, queries and keys differ in number, so that a mixed-up axis can't go unnoticed.
HEADS = 3
PLACES = {
    "whole": (torch.arange(4), torch.arange(4)),
    "cached": (torch.arange(3, 7), torch.arange(7)),
    "own": (torch.tensor([[0, 1, 2, 3], [9, 8, 7, 7]]), torch.tensor([[0, 1, 2, 3, 4, 5, 6], [9, 0, 8, 1, 7, 30, 2]])),
    "own keys": (torch.arange(3, 7), torch.tensor([[0, 1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7, 8]])),
    "far": (torch.tensor([10**6, 2**40]), torch.tensor([10**6 - 1, 2**40 - 2, 0])),
}


@pytest.mark.parametrize(("q_positions", "k_positions"), PLACES.values(), ids=PLACES.keys())
def test_bias_is_minus_slope_times_distance(q_positions: Tensor, k_positions: Tensor) -> None:
    """-slope·|m - n|, one by one, from the positions and not from the indices in memory."""
    slopes = alibi_slopes(HEADS)
    bias = alibi_bias(q_positions, k_positions, slopes, dtype=torch.float64)
    batch = max(len(p) if p.ndim == 2 else 1 for p in (q_positions, k_positions))
    assert bias.shape == (batch, HEADS, q_positions.shape[-1], k_positions.shape[-1])
    for b in range(batch):
        queries, keys = (p[b].tolist() if p.ndim == 2 else p.tolist() for p in (q_positions, k_positions))
        expected = [[[-slope * abs(m - n) for n in keys] for m in queries] for slope in slopes.tolist()]
        assert bias[b].tolist() == expected


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_cast_comes_last(dtype: torch.dtype) -> None:
    """Slopes and distances rounded first, bfloat16 would be off by whole units at 2047 tokens."""
    slopes = alibi_slopes(12)  # those of eight are powers of two, which every dtype has
    bias = alibi_bias([2047], range(2048), slopes, dtype=dtype)
    assert bias.dtype == dtype
    assert torch.equal(bias, alibi_bias([2047], range(2048), slopes, dtype=torch.float64).to(dtype))
    if dtype == torch.bfloat16:
        early = -slopes.to(dtype)[:, None, None] * (2047 - torch.arange(2048)).to(dtype)
        assert (early - bias).abs().max() >= 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_module_gives_the_bias_and_has_nothing_to_cast(dtype: torch.dtype) -> None:
    scheme, q = AlibiPositions(9), normal(2, 9, 4, 5, dtype=dtype)  # the ninth slope, 2^-0.5, is exact in no dtype
    for module in (scheme, scheme.to(torch.bfloat16)):
        bias = module.bias(q, *PLACES["own"])
        assert bias.dtype == dtype
        assert torch.equal(bias, alibi_bias(*PLACES["own"], alibi_slopes(9), dtype=dtype))
    assert scheme.state_dict() == {}


# ── what softmax does with it ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("num_heads", [6, 8])
def test_causal_weights_equal_those_of_bloom_and_mpt(num_heads: int) -> None:
    """Both (Hugging Face) add one row, +slope·n and slope·(n - L + 1), to all queries: the same after a causal softmax only.

    BLOOM counts tokens and not padding. The second sequence starts with three tokens of padding, whose outputs aren't compared.
    """
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor
    from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

    length, slopes = 9, alibi_slopes(num_heads)
    real = torch.ones(2, length, dtype=torch.bool)
    real[1, :3] = False
    positions = (real.cumsum(dim=-1) - 1).clamp(min=0)
    scores = normal(2, num_heads, length, length)
    hidden = ~(torch.ones(length, length).tril().bool() & real[:, None, None, :])

    def weights(bias: Tensor) -> Tensor:
        return (scores + bias).masked_fill(hidden, -math.inf).softmax(dim=-1)

    ours = weights(alibi_bias(positions, positions, slopes, dtype=torch.float64))
    bloom = weights(build_alibi_tensor(real.long(), num_heads, torch.float32).view(2, num_heads, 1, length))
    mpt = weights(build_mpt_alibi_tensor(num_heads, length))
    for theirs in (bloom, mpt):
        close(theirs[0], ours[0], 1e-6)
        close(theirs[1, :, 3:], ours[1, :, 3:], 1e-6)


# ── the fast form ────────────────────────────────────────────────────────────────────────────────────────────────────────


def some_rows(length: int) -> Tensor:
    """All queries of a short sequence; of a long one 21, of which the last: a row of the truth does not need the others."""
    return torch.arange(length) if length < 100 else torch.linspace(0, length - 1, 21).long()


def truth(query: Tensor, key: Tensor, value: Tensor, slopes: Tensor, rows: Tensor) -> Tensor:
    """Attention with the bias written out and a causal mask, for some of the queries, in float64."""
    keys = torch.arange(key.shape[-2])
    bias = alibi_bias(rows, keys, slopes, dtype=torch.float64)
    return attention(query[..., rows, :].double(), key.double(), value.double(), bias=bias, mask=causal_mask(rows, keys))


def inputs(heads: int, length: int, d_head: int, dtype: torch.dtype, batch: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value."""
    query, key, value = (normal(batch, heads, length, d_head, seed=seed).to(dtype).requires_grad_() for seed in range(3))
    return query, key, value


@pytest.mark.parametrize(("heads", "d_head"), [(8, 64), (12, 33)])
@pytest.mark.parametrize(
    ("dtype", "length"),
    [
        *((torch.float64, length) for length in (1, 2, 17, 1024)),
        *((torch.float32, length) for length in (1, 2, 17, 1024)),
        pytest.param(torch.float32, 4096, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_fast_form_equals_attention_with_the_bias(dtype: torch.dtype, length: int, heads: int, d_head: int) -> None:
    """Within 1e-12 in float64; within 1e-5 of it in float32, at 4096 tokens too; and so do the gradients, in relative terms."""
    qkv, rows, slopes = inputs(heads, length, d_head, dtype, batch=2), some_rows(length), alibi_slopes(heads)
    slopes[0] = 0  # a head without a bias
    fast = alibi_attention(*qkv, slopes)
    expected = truth(*qkv, slopes, rows)
    assert fast.shape == qkv[0].shape
    assert fast.dtype == dtype
    tolerance = 1e-12 if dtype == torch.float64 else 1e-5
    close(fast[..., rows, :].double(), expected, tolerance)

    from_above = normal(2, heads, len(rows), d_head, seed=3)
    ours = torch.autograd.grad((fast[..., rows, :] * from_above).sum(), qkv)
    for our_gradient, gradient in zip(ours, torch.autograd.grad((expected * from_above).sum(), qkv), strict=True):
        assert our_gradient.dtype == dtype
        close(our_gradient, gradient, tolerance * max(1.0, gradient.abs().max().item()))


@pytest.mark.parametrize(("dtype", "half_unit"), [(torch.bfloat16, 2**-8), (torch.float16, 2**-11)])
@pytest.mark.parametrize("length", [17, 4096])
def test_half_precision_costs_one_rounding_at_the_end(length: int, dtype: torch.dtype, half_unit: float) -> None:
    """bfloat16 cannot count beyond 256, nor float16 beyond 2048; the sums are float32's."""
    qkv, rows, slopes = inputs(8, length, 16, dtype), some_rows(length), alibi_slopes(8)
    fast, expected = alibi_attention(*qkv, slopes), truth(*qkv, slopes, rows)
    assert fast.dtype == dtype
    assert ((fast[..., rows, :].double() - expected).abs() <= half_unit * expected.abs() + 1e-5).all()


def largest_of(function: Callable[..., Tensor], length: int, d_head: int, dtype: torch.dtype) -> int:
    """Forward and backward."""
    qkv, slopes = inputs(2, length, d_head, dtype), alibi_slopes(2)
    with Kept() as kept:
        function(*qkv, slopes).sum().backward()
    return max(made.numel() for made in kept.tensors)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("d_head", [6, 9])
def test_fast_form_makes_no_tensor_of_l_by_l(d_head: int, dtype: torch.dtype) -> None:
    """Its largest has four coordinates more than the query and grows like the length; the bias written out, like its square."""

    def written_out(query: Tensor, key: Tensor, value: Tensor, slopes: Tensor) -> Tensor:
        return truth(query, key, value, slopes, torch.arange(query.shape[-2]))

    for length in (100, 300):
        assert largest_of(alibi_attention, length, d_head, dtype) == 2 * length * (d_head + 4)
        assert largest_of(written_out, length, d_head, dtype) == 2 * length * length
