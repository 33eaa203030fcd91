"""Stretched RoPE: what each method does to each pair, in our words, in other libraries' code, and with a cache."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import (
    DynamicNTKPositions,
    dynamic_ntk,
    llama3,
    ntk_aware,
    position_interpolation,
    yarn,
    yarn_attention_factor,
)
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder

widths = st.integers(2, 64).map(lambda pairs: 2 * pairs)
bases = st.floats(100, 1e7)
factors = st.floats(1, 64)
lengths = st.integers(7, 200_000)  # within 7 tokens the fastest pair makes its first full rotation

# Every method as (frequencies, factor, original length) -> frequencies; dynamic NTK for a sequence of so many times the length.
METHODS: dict[str, Callable[[Tensor, float, int], Tensor]] = {
    "linear": lambda omega, factor, _: position_interpolation(omega, factor),
    "ntk": lambda omega, factor, _: ntk_aware(omega, factor),
    "dynamic": lambda omega, factor, length: dynamic_ntk(omega, math.floor(factor * length), length),
    "yarn": yarn,
    "yarn-exact-ends": lambda omega, factor, length: yarn(omega, factor, length, truncate=False),
    "llama3": llama3,
}

# d_head, base, factor, original length: small models, Llama 2, Llama 3 and longer stretches. With base 100 even the slowest
# pair rotates more than once, and YaRN's ramp would end beyond the last pair; with base 20, beyond channel d_head - 1, its
# limit.
SETTINGS = [
    (8, 10_000.0, 2.0, 64),
    (16, 100.0, 4.0, 4096),
    (16, 20.0, 4.0, 2048),
    (64, 10_000.0, 4.0, 2048),
    (128, 10_000.0, 16.0, 4096),
    (64, 500_000.0, 32.0, 8192),
    (128, 500_000.0, 8.0, 8192),
    (128, 1_000_000.0, 2.5, 32_768),
]
all_settings = pytest.mark.parametrize(("d_head", "base", "factor", "length"), SETTINGS)


def same_ratio(a: Tensor, b: Tensor, rtol: float = 1e-12) -> None:
    torch.testing.assert_close(a, b, rtol=rtol, atol=0)


# ── against transformers ─────────────────────────────────────────────────────────────────────────────────────────────────

# They compute in float32: a ratio of 1 within 2e-6.


def by_transformers(
    kind: str, d_head: int, base: float, length: int, *, sequence: int | None = None, **parameters: Any
) -> tuple[Tensor, float]:
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope_parameters = {"rope_type": kind, "rope_theta": base, "original_max_position_embeddings": length, **parameters}
    config = LlamaConfig(head_dim=d_head, max_position_embeddings=length, rope_parameters=rope_parameters)
    omega, attention_factor = ROPE_INIT_FUNCTIONS[kind](config, seq_len=sequence)
    return omega.double(), attention_factor


# The kind, what its config says, and the function that has the same from (frequencies, factor, original length).
AGAINST: list[tuple[str, dict[str, Any], Callable[[Tensor, float, int], Tensor]]] = [
    ("linear", {}, lambda omega, factor, _: position_interpolation(omega, factor)),
    ("yarn", {}, yarn),
    ("yarn", {"truncate": False}, partial(yarn, truncate=False)),
    ("yarn", {"beta_fast": 16.0, "beta_slow": 2.0}, partial(yarn, fast=16.0, slow=2.0)),
    ("llama3", {"high_freq_factor": 4.0, "low_freq_factor": 1.0}, llama3),
    ("llama3", {"high_freq_factor": 8.0, "low_freq_factor": 0.5}, partial(llama3, fast=8.0, slow=0.5)),
]


@all_settings
@pytest.mark.parametrize(("kind", "said", "method"), AGAINST)
def test_methods_against_transformers(
    d_head: int, base: float, factor: float, length: int, kind: str, said: dict[str, Any], method: Callable[..., Tensor]
) -> None:
    """Engines have been wrong in the frequencies, or in the attention factor."""
    theirs, attention_factor = by_transformers(kind, d_head, base, length, factor=factor, **said)
    same_ratio(method(frequencies(d_head, base), factor, length), theirs, 2e-6)
    assert math.isclose(attention_factor, yarn_attention_factor(factor) if kind == "yarn" else 1, rel_tol=1e-15)


@all_settings
@pytest.mark.parametrize("stretch", [0.5, 1, 1.25, 4])
def test_dynamic_ntk_against_transformers(d_head: int, base: float, factor: float, length: int, stretch: float) -> None:
    """Before, at and after the original length."""
    sequence = int(stretch * length)
    theirs, _ = by_transformers("dynamic", d_head, base, length, sequence=sequence, factor=factor)
    same_ratio(dynamic_ntk(frequencies(d_head, base), sequence, length, factor), theirs, 2e-6)


def test_llama3_is_as_published_by_default() -> None:
    """Llama 3.1: base 500,000, eight times 8192 tokens, kept above 4 rotations, divided below 1."""
    published: dict[str, Any] = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    theirs, _ = by_transformers("llama3", 128, 500_000.0, 8192, **published)
    same_ratio(llama3(frequencies(128, 500_000.0)), theirs, 2e-6)


@all_settings
def test_ntk_aware_against_rotary_embedding_torch(d_head: int, base: float, factor: float, length: int) -> None:
    """Which changes the base instead."""
    from rotary_embedding_torch import RotaryEmbedding

    theirs = RotaryEmbedding(d_head, theta=base, theta_rescale_factor=factor).freqs.detach().double()
    same_ratio(ntk_aware(frequencies(d_head, base), factor), theirs, 2e-6)


# ── what every method keeps ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("method", METHODS)
@given(d_head=widths, base=bases, factor=factors, length=lengths)
def test_pairs_slow_down_by_at_most_the_factor(method: str, d_head: int, base: float, factor: float, length: int) -> None:
    """ω/factor ≤ ω' ≤ ω, and the fastest first."""
    omega = frequencies(d_head, base)
    before = omega.clone()
    stretched = METHODS[method](omega, factor, length)
    assert stretched.dtype == torch.float64
    assert stretched.shape == omega.shape
    assert (stretched <= omega * (1 + 1e-12)).all()
    assert (stretched >= omega / factor * (1 - 1e-12)).all()
    assert (stretched.diff() < 0).all()
    assert torch.equal(omega, before)


# ── what each method does ────────────────────────────────────────────────────────────────────────────────────────────────


@given(widths, bases, factors)
def test_ntk_aware_keeps_the_fastest_pair(d_head: int, base: float, factor: float) -> None:
    """The fastest exactly; all of them are those of the base base·factor^(d/(d-2)), as bloc97 put it."""
    omega = frequencies(d_head, base)
    stretched = ntk_aware(omega, factor)
    assert stretched[0] == omega[0] == 1
    same_ratio(stretched[-1:], omega[-1:] / factor, 1e-14)
    if d_head > 2:
        same_ratio(stretched, frequencies(d_head, base * factor ** (d_head / (d_head - 2))))


# ── with a cache ─────────────────────────────────────────────────────────────────────────────────────────────────────────

VOCAB, HEADS, D_HEAD, LENGTH = 11, 3, 8, 9


def decoder_with(scheme: RotaryPositions) -> Decoder:
    torch.manual_seed(0)
    decoder = Decoder(VOCAB, HEADS * D_HEAD, HEADS, 2, scheme).double().eval()
    assert isinstance(decoder, Decoder)
    return decoder


def decoded(decoder: Decoder, ids: Tensor, chunks: list[int]) -> Tensor:
    caches = decoder.new_caches()
    return torch.cat([decoder(part, caches=caches) for part in ids.split(chunks, dim=1)], dim=1)


def some_tokens() -> Tensor:
    return torch.randint(VOCAB, (2, LENGTH), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_dynamic_ntk_stretches_for_the_longest_position(factor: float) -> None:
    """Within the original length bitwise as unstretched; the longest may be a key's, a query's, or another sequence's."""
    omega = frequencies(D_HEAD, base=20.0)
    q, k = torch.randn(2, 2, HEADS, 5, D_HEAD, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    near, far = torch.tensor([[0, 1, 2, 3, 4], [3, 0, 7, 1, 5]]), torch.tensor([[0, 1, 2, 3, 4], [3, 0, 19, 1, 5]])
    scheme = DynamicNTKPositions(omega, 8, factor)
    for q_positions, k_positions, longest in ((near, near, 8), (near, far, 20), (far, near, 20), (far, far, 20)):
        fixed = RotaryPositions(dynamic_ntk(omega, longest, 8, factor))
        results, expected = (each.rotate(q, k, q_positions, k_positions) for each in (scheme, fixed))
        assert all(torch.equal(a, b) for a, b in zip(results, expected, strict=True))
        assert torch.equal(fixed.frequencies, omega) == (longest == 8)


@pytest.mark.parametrize("interleaved", [True, False])
def test_dynamic_ntk_forgets_a_longer_sequence(interleaved: bool) -> None:
    """Short, long, short again: the first and the last are the same, bitwise."""
    decoder = decoder_with(DynamicNTKPositions(frequencies(D_HEAD, base=20.0), 4, interleaved=interleaved))
    short = some_tokens()[:, :4]
    before = decoder(short)
    decoder(some_tokens())
    assert torch.equal(decoder(short), before)
    unstretched = decoder_with(RotaryPositions(frequencies(D_HEAD, base=20.0), interleaved=interleaved))
    assert torch.equal(before, unstretched(short))


def test_dynamic_ntk_with_a_cache_differs_from_one_pass() -> None:
    """A prompt of 4 tokens, then more: those keys were rotated unstretched, and one pass would stretch them too.

    Within the original length, or in one chunk, the cache changes nothing.
    """
    ids = some_tokens()
    short, long = (decoder_with(DynamicNTKPositions(frequencies(D_HEAD, base=20.0), n)) for n in (4, LENGTH))
    torch.testing.assert_close(decoded(long, ids, [4, 1, 4]), long(ids), rtol=0, atol=1e-12)
    torch.testing.assert_close(decoded(short, ids, [LENGTH]), short(ids), rtol=0, atol=1e-12)
    torch.testing.assert_close(decoded(short, ids, [4, 5])[:, :4], short(ids[:, :4]), rtol=0, atol=1e-12)
    assert (decoded(short, ids, [4, 5]) - short(ids))[:, 4:].abs().max() > 1e-3
    assert (decoded(short, ids, [4, 5]) - decoded(short, ids, [4, 1, 4]))[:, 5:].abs().max() > 1e-4
