"""Rotary positions: exact at any distance and in any dtype, a rotation in both layouts, and what other libraries compute."""

import itertools
import math
from collections.abc import Callable
from unittest.mock import Mock

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from posenc_course import rope
from posenc_course.attention import MultiHeadAttention
from posenc_course.rope import (
    RotaryPositions,
    apply_rope,
    apply_rope_complex,
    axial_rope_tables,
    convert_projection,
    layout_permutation,
    mrope_axes,
    mrope_tables,
    proportional_frequencies,
    rope_tables,
)
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder
from tests.tensors import close, normal
from tools.lab import vectors

# All sizes differ, so that a mixed-up axis can't go unnoticed.
BATCH, HEADS, LENGTH, D_HEAD = 2, 3, 5, 8
MILLION = 1_000_000

Shape = tuple[int, int, int, int]
seeds = st.integers(0, 2**32 - 1)
shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(1, 8).map(lambda pairs: 2 * pairs))
places = st.integers(0, MILLION)
bases = st.floats(1.5, 1e8)
layouts = st.booleans()

both_layouts = pytest.mark.parametrize("interleaved", [True, False])


def scattered(length: int, seed: int = 0) -> Tensor:
    """Whole positions up to a million, in any order."""
    return torch.randint(MILLION, (length,), generator=torch.Generator().manual_seed(seed))


def bounded(*shape: int, dtype: torch.dtype) -> Tensor:
    """Every pair shorter than 1, so that one unit in the last place is the same for all."""
    return (1.4 * torch.rand(*shape, generator=torch.Generator().manual_seed(0)) - 0.7).to(dtype)


def tables64(positions: Tensor, d_head: int, base: float = 10_000.0) -> tuple[Tensor, Tensor]:
    return rope_tables(positions, frequencies(d_head, base), dtype=torch.float64)


def rotated(x: Tensor, positions: Tensor, *, interleaved: bool = True, base: float = 10_000.0) -> Tensor:
    """In float64."""
    return apply_rope(x, *tables64(positions, x.shape[-1], base), interleaved=interleaved)


def rotated_by_matrices(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """R_m x, with one d_head × d_head matrix per position, written entry by entry, in float64."""
    length, pairs = cos.shape
    matrices = torch.zeros(length, 2 * pairs, 2 * pairs, dtype=torch.float64)
    for m in range(length):
        for i in range(pairs):
            a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + pairs)
            matrices[m, a, a] = matrices[m, b, b] = cos[m, i]
            matrices[m, a, b], matrices[m, b, a] = -sin[m, i], sin[m, i]
    return torch.einsum("mij,bhmj->bhmi", matrices, x.double())


def scores(q: Tensor, k: Tensor) -> Tensor:
    """q·k/√d_head for every query and key."""
    return q @ k.mT / math.sqrt(q.shape[-1])


# ── the angles ───────────────────────────────────────────────────────────────────────────────────────────────────────────

POSITIONS = [0, 1, 2, 7, 255, 256, 257, 2047, 4095, 65535, 131_073, 999_983, MILLION]


def exact(positions: list[int], d_head: int, base: int) -> tuple[Tensor, Tensor]:
    """cos and sin of base^(-2i/d_head)·m from 60 digits, rounded once."""
    angles = [[w * m for w in vectors.plain(base, d_head)] for m in positions]
    cos, sin = ([[float(f(angle)) for angle in row] for row in angles] for f in (mpmath.cos, mpmath.sin))
    return torch.tensor(cos, dtype=torch.float64), torch.tensor(sin, dtype=torch.float64)


@pytest.mark.parametrize("base", [10_000, 500_000])
@pytest.mark.parametrize("d_head", [2, 8, 128])
def test_tables_against_sixty_digits_up_to_a_million(d_head: int, base: int) -> None:
    """float64 keeps 9 decimals, and a cast at the end adds nothing but its own rounding."""
    omega = frequencies(d_head, base)
    half_unit = {torch.float32: 2**-25 + 1e-9, torch.bfloat16: 2**-9 + 1e-9, torch.float16: 2**-12 + 1e-9}
    for table, truth in zip(rope_tables(POSITIONS, omega, dtype=torch.float64), exact(POSITIONS, d_head, base), strict=True):
        close(table, truth, 1e-9)
    for table, truth in zip(rope_tables(POSITIONS, omega), exact(POSITIONS, d_head, base), strict=True):
        assert table.dtype == torch.float32
        close(table.double(), truth, 1e-7)
    for dtype, atol in half_unit.items():
        for table, truth in zip(rope_tables(POSITIONS, omega, dtype=dtype), exact(POSITIONS, d_head, base), strict=True):
            assert table.dtype == dtype
            close(table.double(), truth, atol)


@both_layouts
@pytest.mark.parametrize("base", [10_000, 500_000])
def test_cast_of_a_model_costs_no_digit_of_the_angles(base: int, interleaved: bool) -> None:
    """Queries in bfloat16 are rotated within their own rounding, 2^-9, up to position a million; float32 ones within 2^-22."""
    scheme = RotaryPositions(frequencies(D_HEAD, base), interleaved=interleaved)
    Decoder(7, HEADS * D_HEAD, HEADS, 1, scheme).to(torch.bfloat16)
    assert scheme.state_dict() == {}
    positions = torch.tensor(POSITIONS)
    for dtype, atol in ((torch.float32, 2**-22), (torch.bfloat16, 2e-3)):
        x = bounded(BATCH, HEADS, len(POSITIONS), D_HEAD, dtype=dtype)
        truth = rotated_by_matrices(x, *exact(POSITIONS, D_HEAD, base), interleaved=interleaved)
        for result in scheme.rotate(x, x, positions, positions):
            assert result.dtype == dtype
            close(result.double(), truth, atol)


# ── the rotation ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_quarter_turn_is_counterclockwise() -> None:
    """Counterclockwise: (1, 0) -> (0, 1) -> (-1, 0). nanochat, for example, rotates in the opposite direction."""
    x = torch.tensor([1.0, 0.0], dtype=torch.float64).expand(1, 1, 3, 2)
    cos, sin = rope_tables(range(3), torch.tensor([math.pi / 2], dtype=torch.float64), dtype=torch.float64)
    for interleaved in (True, False):
        expected = torch.tensor([[[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]]], dtype=torch.float64)
        close(apply_rope(x, cos, sin, interleaved=interleaved), expected, 1e-15)


@given(shapes, seeds, bases, layouts)
def test_it_is_one_block_matrix_per_position(shape: Shape, seed: int, base: float, interleaved: bool) -> None:
    """R_m x, the same R_m for all heads and sequences, whatever the sizes; heads = length included."""
    x, cos_sin = normal(*shape, seed=seed), tables64(scattered(shape[2], seed), shape[-1], base)
    expected = rotated_by_matrices(x, *cos_sin, interleaved=interleaved)
    close(apply_rope(x, *cos_sin, interleaved=interleaved), expected, 1e-13)


@given(places, places, places, shapes, seeds, bases, layouts)
def test_score_depends_on_the_offset_only(
    m: int, n: int, shift: int, shape: Shape, seed: int, base: float, interleaved: bool
) -> None:
    """(R_m q)·(R_n k) = (R_(m+s) q)·(R_(n+s) k) = q·(R_(n-m) k)."""
    batch, heads, _, d_head = shape
    q, k = normal(2, batch, heads, 1, d_head, seed=seed)

    def score(q_position: int, k_position: int) -> Tensor:
        at_q, at_k = torch.tensor([q_position]), torch.tensor([k_position])
        return scores(
            rotated(q, at_q, interleaved=interleaved, base=base), rotated(k, at_k, interleaved=interleaved, base=base)
        )

    close(score(m + shift, n + shift), score(m, n), 1e-8)
    close(score(0, n - m), score(m, n), 1e-8)


@both_layouts
def test_scheme_rounds_to_bfloat16_once(interleaved: bool) -> None:
    """Half a unit in the last of 8 bits, and float32's own rounding; taken a few heads at a time, each head as if alone."""
    scheme = RotaryPositions(frequencies(64), interleaved=interleaved)
    q, k = torch.randn(2, 2, 8, 1024, 64).to(torch.bfloat16).requires_grad_()
    m = torch.arange(1_000_000, 1_001_024)
    for x, result, truth in zip((q, k), scheme.rotate(q, k, m, m), scheme.rotate(q.double(), k.double(), m, m), strict=True):
        assert result.dtype == torch.bfloat16
        assert ((result - truth).abs() <= 2**-8 * truth.abs() + 1e-6).all()
        assert result[:, 3:4].equal(scheme.rotate(x[:, 3:4], x[:, 3:4], m, m)[0])
    ((gradient,), (expected,)) = (torch.autograd.grad(scheme.rotate(x, x, m, m)[0].sum(), q) for x in (q, q.double()))
    assert ((gradient - expected).abs() <= 2**-8 * expected.abs() + 1e-6).all()


# ── two layouts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(shapes, seeds, st.sampled_from([torch.float64, torch.float32, torch.bfloat16]))
def test_layouts_differ_by_a_permutation_alone(shape: Shape, seed: int, dtype: torch.dtype) -> None:
    """Bitwise, there and back; scores are sums in another order."""
    x = normal(*shape, seed=seed).to(dtype)
    cos, sin = rope_tables(scattered(shape[2], seed), frequencies(shape[-1]))
    to_halves, to_neighbours = (layout_permutation(shape[-1], interleaved=interleaved) for interleaved in (False, True))
    neighbours, halves = (apply_rope(x, cos, sin, interleaved=interleaved) for interleaved in (True, False))
    assert torch.equal(neighbours[..., to_halves], apply_rope(x[..., to_halves], cos, sin, interleaved=False))
    assert torch.equal(halves[..., to_neighbours], apply_rope(x[..., to_neighbours], cos, sin, interleaved=True))


@both_layouts
@pytest.mark.parametrize("rotary_dim", [None, 2, 4, 6])
def test_converted_projection_gives_the_same_attention(rotary_dim: int | None, interleaved: bool) -> None:
    """Query and key converted both; the values and the output stay. Unconverted weights give another model."""
    d_head, num_heads, d_model = 6, 3, 18
    scheme, other = (
        RotaryPositions(frequencies(rotary_dim or d_head), interleaved=wanted) for wanted in (not interleaved, interleaved)
    )
    trained, converted = (MultiHeadAttention(d_model, num_heads, each, causal=True).double() for each in (scheme, other))
    x, positions = normal(BATCH, LENGTH, d_model), torch.arange(100, 100 + LENGTH)
    converted.load_state_dict(trained.state_dict())
    if rotary_dim != 2:  # one pair is the same in both
        assert (converted(x, positions) - trained(x, positions)).abs().max() > 1e-5
    with torch.no_grad():
        for layer in (converted.query, converted.key):
            layer.weight.copy_(convert_projection(layer.weight, num_heads, interleaved=interleaved, rotary_dim=rotary_dim))
    close(converted(x, positions), trained(x, positions), 1e-13)


# ── the fast form ────────────────────────────────────────────────────────────────────────────────────────────────────────


def in_memory(kind: str, dtype: torch.dtype) -> Tensor:
    """x of shape (BATCH, HEADS, LENGTH, D_HEAD), stored in an unusual way."""
    if kind == "odd offset":
        return normal(BATCH * HEADS * LENGTH * D_HEAD + 1).to(dtype)[1:].view(BATCH, HEADS, LENGTH, D_HEAD)
    if kind == "transposed heads":
        return normal(BATCH, LENGTH, HEADS, D_HEAD).to(dtype).transpose(1, 2)
    if kind == "one head for all":
        return normal(BATCH, 1, LENGTH, D_HEAD).to(dtype).expand(-1, HEADS, -1, -1)
    return normal(BATCH, HEADS, LENGTH, D_HEAD).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["plain", "odd offset", "transposed heads", "one head for all"])
def test_complex_product_equals_the_plain_form(kind: str, dtype: torch.dtype) -> None:
    """Wherever x lies in memory; the last bit may differ, since a complex product may be rounded in another order."""
    x = in_memory(kind, dtype)
    before = x.clone()
    own = torch.stack([scattered(LENGTH, seed) for seed in range(BATCH)])
    for positions in (own, own[0]):
        cos, sin = rope_tables(positions, frequencies(D_HEAD), dtype=torch.promote_types(dtype, torch.float32))
        plain, fast = apply_rope(x, cos, sin, interleaved=True), apply_rope_complex(x, cos, sin)
        assert fast.dtype == plain.dtype == dtype
        torch.testing.assert_close(fast, plain, rtol=torch.finfo(dtype).eps, atol=4 * torch.finfo(cos.dtype).eps)
    assert torch.equal(x, before)


# ── part of a head, louder scores, the plane ─────────────────────────────────────────────────────────────────────────────


@both_layouts
@pytest.mark.parametrize("rotary_dim", [2, 4, 6, 8])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_partial_rotation_leaves_the_last_channels(dtype: torch.dtype, rotary_dim: int, interleaved: bool) -> None:
    """The first channels rotate like a head of that width; the others stay the same bitwise, whatever the attention factor."""
    q, k = normal(2, BATCH, HEADS, LENGTH, D_HEAD).to(dtype)
    positions = scattered(LENGTH)
    for factor in (1.0, 1.5):
        scheme = RotaryPositions(frequencies(rotary_dim), interleaved=interleaved, attention_factor=factor)
        whole = scheme.rotate(q, k, positions, positions)
        narrow = scheme.rotate(q[..., :rotary_dim], k[..., :rotary_dim], positions, positions)
        for x, result, part in zip((q, k), whole, narrow, strict=True):
            assert torch.equal(result[..., rotary_dim:], x[..., rotary_dim:])
            assert torch.equal(result[..., :rotary_dim], part)
    cos, sin = tables64(positions, rotary_dim)
    expected = factor * rotated_by_matrices(q[..., :rotary_dim], cos, sin, interleaved=interleaved)
    torch.testing.assert_close(whole[0][..., :rotary_dim].double(), expected, rtol=0, atol=8 * torch.finfo(dtype).eps)


@given(st.floats(0.1, 10), seeds, layouts)
def test_attention_factor_is_squared_in_scores(factor: float, seed: int, interleaved: bool) -> None:
    q, k = normal(2, BATCH, HEADS, LENGTH, D_HEAD, seed=seed)
    positions = scattered(LENGTH, seed)
    plain, sharp = (
        scores(
            *RotaryPositions(frequencies(D_HEAD), interleaved=interleaved, attention_factor=f).rotate(
                q, k, positions, positions
            )
        )
        for f in (1.0, factor)
    )
    torch.testing.assert_close(sharp, factor**2 * plain, rtol=1e-10, atol=1e-12)


@given(shapes, seeds)
def test_in_the_plane_each_axis_has_tables_of_its_own(shape: Shape, seed: int) -> None:
    """Bitwise: as a special case of M-RoPE, rows and columns give what they gave alone."""
    omega, rows, columns = frequencies(shape[-1]), scattered(shape[2], seed), scattered(shape[2], seed + 1)
    alone = [torch.cat(pair, dim=-1) for pair in zip(rope_tables(rows, omega), rope_tables(columns, omega), strict=True)]
    for table, expected in zip(axial_rope_tables(rows, columns, omega), alone, strict=True):
        assert torch.equal(table, expected)


# ── which pairs rotate, and by which axis ────────────────────────────────────────────────────────────────────────────────

sections = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@given(st.integers(1, 100).map(lambda pairs: 2 * pairs), st.floats(0, 1), bases)
def test_share_keeps_only_the_fastest_pairs(d_head: int, share: float, base: float) -> None:
    """The kept ones are RoPE's own, bitwise, and never more than the share; one more would be."""
    omega, whole = proportional_frequencies(d_head, share, base), frequencies(d_head, base)
    kept = int((omega > 0).sum())
    assert omega.dtype == torch.float64
    assert torch.equal(omega, torch.cat((whole[:kept], torch.zeros(d_head // 2 - kept, dtype=torch.float64))))
    assert kept <= share * d_head / 2 < kept + 1


@given(sections)
def test_contiguous_sections_follow_one_another(sizes: list[int]) -> None:
    assert mrope_axes(sizes, interleaved=False).tolist() == [axis for axis, size in enumerate(sizes) for _ in range(size)]


@given(st.integers(0, 9), st.integers(1, 9), st.integers(1, 4))
def test_interleaved_sections_are_dealt_out(more: int, size: int, others: int) -> None:
    """With equal sections but for the first, these are whole rounds, and the first axis has the rest, the slowest pairs."""
    axes = mrope_axes([size + more, *[size] * others], interleaved=True)
    assert axes.dtype == torch.int64
    assert axes.tolist() == [*range(others + 1)] * size + [0] * more


def grid(shape: tuple[int, ...]) -> Tensor:
    """Positions on three axes up to a million, (3, *shape)."""
    return scattered(3 * math.prod(shape)).view(3, *shape)


@given(places, st.floats(1.5, 1e8), st.booleans())
def test_equal_positions_on_all_axes_are_plain_rope(m: int, base: float, interleaved: bool) -> None:
    """Bitwise plain RoPE, whatever the sections; one axis alone is plain RoPE, too."""
    omega, positions = frequencies(16, base), torch.arange(m, m + LENGTH)
    for sizes in ([4, 2, 2], [8]):
        tables = mrope_tables(positions.expand(len(sizes), -1), omega, mrope_axes(sizes, interleaved=interleaved))
        for table, expected in zip(tables, rope_tables(positions, omega), strict=True):
            assert table.dtype == torch.float32
            assert torch.equal(table, expected)


@pytest.mark.parametrize("shape", [(LENGTH,), (BATCH, LENGTH)], ids=str)
def test_each_pair_rotates_by_its_own_axis(shape: tuple[int, ...]) -> None:
    """Pair by pair, with the angles of plain RoPE; axes may come in any order."""
    positions, omega = grid(shape), frequencies(12)
    axes = torch.tensor([2, 0, 0, 1, 2, 0])
    cos, sin = mrope_tables(positions, omega, axes, dtype=torch.float64)
    assert cos.shape == sin.shape == (*shape, 6)
    for pair, axis in enumerate(axes.tolist()):
        angles = positions[axis].double() * omega[pair]
        close(cos[..., pair], angles.cos(), 1e-15)
        close(sin[..., pair], angles.sin(), 1e-15)


# ── other libraries; test_vectors.py and test_conventions.py ask more of them ─────────────────────────────────────────────


def test_plane_against_rotary_embedding_torch() -> None:
    """Its grid is (rows, columns), ours a list of tokens."""
    from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb

    rows, columns = 3, 7
    x = normal(BATCH, HEADS, rows, columns, 16, dtype=torch.float32)
    theirs = apply_rotary_emb(RotaryEmbedding(8).get_axial_freqs(rows, columns), x).flatten(2, 3)
    down, right = torch.arange(rows).repeat_interleave(columns), torch.arange(columns).repeat(rows)
    close(apply_rope(x.flatten(2, 3), *axial_rope_tables(down, right, frequencies(8)), interleaved=True), theirs, 1e-5)


def test_layers_share_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """They're made once for all layers of a pass, and anew when what they depend on has changed, in place too."""
    made = Mock(wraps=rope_tables)
    monkeypatch.setattr(rope, "rope_tables", made)
    scheme, tokens = RotaryPositions(frequencies(8)), torch.tensor([[1, 2, 3, 4]])
    decoder = Decoder(7, 16, 2, 3, scheme)
    with torch.inference_mode():
        decoder(tokens)
    decoder(tokens).sum().backward()  # tables made without gradients serve where there are some
    assert made.call_count == 1

    q, positions = torch.randn(1, 2, 4, 8), torch.arange(4)
    changes: list[Callable[[], object]] = [
        lambda: None,
        lambda: positions.add_(1),
        lambda: scheme.frequencies.mul_(2),
        lambda: setattr(scheme, "attention_factor", scheme.attention_factor + 1),
    ]
    for kind, change in itertools.product((torch.float32, torch.float64, torch.float32), changes):
        change()
        fresh = RotaryPositions(scheme.frequencies, attention_factor=scheme.attention_factor)
        found, expected = (of.rotate(q.to(kind), q.to(kind), positions, positions) for of in (scheme, fresh))
        close(found[0], expected[0], atol=0)
