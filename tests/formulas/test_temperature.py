"""Factors for queries: against their definitions, Llama 4's layer, and what they are made for, a share that stays."""

import math
from functools import partial

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from posenc_course.alibi import AlibiPositions
from posenc_course.attention import attention_weights
from posenc_course.nope import NoPositions
from posenc_course.relative import ShawPositions, T5Positions, WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies
from posenc_course.temperature import ScaledPositions, llama4_factor, log_factor
from tests.tensors import normal

BATCH, HEADS, LENGTH, D_HEAD = 2, 3, 5, 4
POSITIONS = torch.stack([torch.arange(LENGTH), torch.arange(40, 40 + LENGTH)])
by_log = partial(log_factor, trained=3)


# ── the factors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 2**50), min_size=1, max_size=5), st.integers(2, 10**6))
def test_log_factor_is_its_formula_in_fifty_digits(positions: list[int], trained: int) -> None:
    with mpmath.workdps(50):
        expected = [float(max(1, mpmath.log(m + 1) / mpmath.log(trained))) for m in positions]
    result = log_factor(positions, trained)
    assert result.dtype == torch.float64
    assert result.tolist() == pytest.approx(expected, rel=1e-14)


@given(st.integers(2, 1000), st.integers(1, 5))
def test_log_factor_is_1_within_the_trained_length(trained: int, power: int) -> None:
    """A text of trained^c tokens has the factor c at its last token."""
    within = log_factor([0, trained // 2, trained - 1], trained)
    torch.testing.assert_close(within, torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-14)
    assert log_factor([trained**power - 1], trained).item() == pytest.approx(power, rel=1e-14)


@given(st.integers(0, 2**30), st.integers(1, 10**5), st.floats(0, 2))
def test_llama_4_s_factor_is_a_staircase(position: int, floor: int, scale: float) -> None:
    """⌊(m + 1)/floor⌋ in whole numbers."""
    expected = 1 + scale * math.log(1 + (position + 1) // floor)
    assert llama4_factor([position], floor, scale).item() == pytest.approx(expected, rel=1e-14)


def test_llama_4_s_layer_has_the_same_weights() -> None:
    """A layer without RoPE in transformers, with and without its temperature, against queries times our factor."""
    import transformers
    from transformers.models.llama4.modeling_llama4 import Llama4TextAttention

    config = transformers.Llama4TextConfig(
        hidden_size=16, num_attention_heads=2, num_key_value_heads=2, head_dim=8, floor_scale=4, attn_scale=0.3,
        use_qk_norm=False, _attn_implementation="eager",
    )  # fmt: skip
    torch.manual_seed(0)
    layer = Llama4TextAttention(config, layer_idx=3).double()
    assert not layer.use_rope
    x = normal(1, 11, 16)
    q, k = (project(x).view(1, 11, 2, 8).transpose(1, 2) for project in (layer.q_proj, layer.k_proj))
    _, expected = layer(x, position_embeddings=None, attention_mask=None)
    m = torch.arange(11)
    scheme = ScaledPositions(NoPositions(), partial(llama4_factor, floor=4, scale=0.3))
    ours = attention_weights(*scheme.rotate(q, k, m, m))
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-7)  # the library computes its factors in float32
    assert (attention_weights(q, k) - expected).abs().max() > 1e-4


# ── the scheme ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("positions", [POSITIONS[1], POSITIONS], ids=["shared", "own"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_queries_are_multiplied_and_keys_are_not(positions: Tensor, dtype: torch.dtype) -> None:
    q, k = (normal(BATCH, HEADS, LENGTH, D_HEAD, seed=seed).to(dtype) for seed in (0, 1))
    inside = RotaryPositions(frequencies(D_HEAD))
    scaled_q, scaled_k = ScaledPositions(inside, by_log).rotate(q, k, positions, positions)
    plain_q, plain_k = inside.rotate(q, k, positions, positions)
    factor = torch.tensor([[max(1, math.log(m + 1) / math.log(3)) for m in row] for row in positions.expand(2, -1).tolist()])
    assert scaled_q.dtype == dtype
    torch.testing.assert_close(scaled_q, plain_q * factor.to(dtype)[:, None, :, None])
    assert torch.equal(scaled_k, plain_k)


@pytest.mark.parametrize("inside", [AlibiPositions(HEADS), T5Positions(HEADS, causal=True)])
def test_bias_of_the_positions_stays(inside: PositionScheme) -> None:
    q = normal(BATCH, HEADS, LENGTH, D_HEAD)
    scheme = ScaledPositions(inside, by_log)
    q_scaled, _ = scheme.rotate(q, q, POSITIONS, POSITIONS)
    ours, expected = scheme.bias(q_scaled, POSITIONS, POSITIONS), inside.bias(q, POSITIONS, POSITIONS)
    assert ours is not None
    assert expected is not None
    assert torch.equal(ours, expected)


def test_bias_of_the_query_is_multiplied_with_it() -> None:
    inside, q = ShawPositions(D_HEAD, 2).double(), normal(BATCH, HEADS, LENGTH, D_HEAD)
    scheme = ScaledPositions(inside, by_log)
    q_scaled, _ = scheme.rotate(q, q, POSITIONS, POSITIONS)
    ours = scheme.bias(q_scaled, POSITIONS, POSITIONS)
    assert ours is not None
    torch.testing.assert_close(ours, inside.bias(q, POSITIONS, POSITIONS) * by_log(POSITIONS)[:, None, :, None])


def test_first_door_and_a_window_are_those_inside() -> None:
    m, x = torch.arange(LENGTH), normal(BATCH, LENGTH, 6)
    sines = SinusoidalPositions(6)
    assert torch.equal(ScaledPositions(sines, by_log).embed(x, m), sines.embed(x, m))
    bias = ScaledPositions(WindowedPositions(NoPositions(), 2), by_log).bias(normal(1, 1, LENGTH, 2), m, m)
    assert bias is not None
    assert (bias == -math.inf).sum() == 12


# ── a sink: one more key, with a score and no value ──────────────────────────────────────────────────────────────────────
