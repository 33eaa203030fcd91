"""Positions computed from tokens, against slow, direct formulas, and what given positions cannot do; PoPE against its sum."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course.alibi import AlibiPositions, alibi_bias
from posenc_course.attention import MultiHeadAttention, attention_weights
from posenc_course.contextual import ForgettingPositions, RecurrentPositions, ReflectedPositions, SelectiveRotaryPositions
from posenc_course.nope import NoPositions
from posenc_course.polar import PolarPositions
from posenc_course.relative import ShawPositions, T5Positions
from posenc_course.rope import RotaryPositions, apply_rope, rope_tables
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies
from tests.tensors import normal

BATCH, HEADS, LENGTH, D_HEAD = 2, 3, 6, 4
D_MODEL = HEADS * D_HEAD
SCHEMES: dict[str, Callable[[], PositionScheme]] = {
    "forgetting": lambda: ForgettingPositions(D_MODEL, HEADS),
    "selective": lambda: SelectiveRotaryPositions(D_MODEL, HEADS, frequencies(D_HEAD)),
    "reflected": lambda: ReflectedPositions(D_MODEL, HEADS),
}
FIXED: dict[str, Callable[[], PositionScheme]] = {
    "none": NoPositions,
    "shaw": lambda: ShawPositions(D_HEAD, 2),
    "t5": lambda: T5Positions(HEADS, num_buckets=6, max_distance=9, causal=True),
    "rope": lambda: RotaryPositions(frequencies(D_HEAD)),
    "alibi": lambda: AlibiPositions(HEADS),
}
X, Q, K = normal(BATCH, LENGTH, D_MODEL), normal(BATCH, HEADS, LENGTH, D_HEAD), normal(BATCH, HEADS, LENGTH, D_HEAD, seed=1)
M = torch.arange(LENGTH)


def made(name: str) -> PositionScheme:
    """The scheme in float64, with random weights instead of those at the start."""
    torch.manual_seed(0)
    scheme = (SCHEMES | FIXED)[name]().double()
    for parameter in scheme.parameters():
        parameter.data.normal_()
    return scheme


def scores(scheme: PositionScheme, x: Tensor = X) -> Tensor:
    located = scheme.locate(x, M, None)
    q, k = scheme.rotate(Q, K, located, located)
    bias = scheme.bias(q, located, located)
    return q @ k.mT / math.sqrt(D_HEAD) + (0 if bias is None else bias)


def between(step: Callable[[int, int, int, Tensor], Tensor], start: Callable[[Tensor], Tensor]) -> Tensor:
    """Scores of all causal pairs, one after another: what starts as `start(k)` goes through the steps of tokens n + 1 to m."""
    expected = torch.full((BATCH, HEADS, LENGTH, LENGTH), math.nan, dtype=torch.float64)
    for b in range(BATCH):
        for h in range(HEADS):
            for n in range(LENGTH):
                carried = start(K[b, h, n])
                for m in range(n, LENGTH):
                    if m > n:
                        carried = step(b, h, m, carried)
                    expected[b, h, m, n] = Q[b, h, m] @ carried[:D_HEAD] / 2 + (carried[D_HEAD] if len(carried) > D_HEAD else 0)
    return expected


def assert_equal_in_the_past(found: Tensor, expected: Tensor) -> None:
    past = M[:, None] >= M
    torch.testing.assert_close(found[..., past], expected[..., past], rtol=0, atol=1e-12)


def test_forgetting_adds_logarithms_of_gates() -> None:
    scheme = made("forgetting")
    assert isinstance(scheme, ForgettingPositions)
    gates = torch.sigmoid(scheme.gate(X)).detach()  # (batch, L, heads)

    def step(b: int, h: int, token: int, carried: Tensor) -> Tensor:
        return torch.cat((carried[:D_HEAD], carried[D_HEAD:] + gates[b, token, h].log()))

    expected = between(step, lambda key: torch.cat((key, key.new_zeros(1))))
    assert_equal_in_the_past(scores(scheme), expected)


def test_selective_rotation_rotates_back_token_by_token() -> None:
    scheme = made("selective")
    assert isinstance(scheme, SelectiveRotaryPositions)
    steps = F.linear(X, scheme.step.weight).detach().view(BATCH, LENGTH, HEADS, -1) + frequencies(D_HEAD)

    def step(b: int, h: int, token: int, carried: Tensor) -> Tensor:
        rotated = torch.view_as_complex(carried.view(-1, 2)) * torch.exp(-1j * steps[b, token, h])
        return torch.view_as_real(rotated).flatten()

    assert_equal_in_the_past(scores(scheme), between(step, lambda key: key))


def test_reflections_mirror_the_key_token_by_token() -> None:
    scheme = made("reflected")
    assert isinstance(scheme, ReflectedPositions)
    mirrors = F.linear(X, scheme.mirror.weight).detach().view(BATCH, LENGTH, HEADS, D_HEAD)

    def step(b: int, h: int, token: int, carried: Tensor) -> Tensor:
        w = mirrors[b, token, h] / mirrors[b, token, h].norm()
        return carried - 2 * (w @ carried) * w

    assert_equal_in_the_past(scores(scheme), between(step, lambda key: key))


def test_gate_that_ignores_its_token_is_alibi() -> None:
    scheme = made("forgetting")
    assert isinstance(scheme, ForgettingPositions)
    scheme.gate.weight.data.zero_()
    p = scheme.locate(X, M, None)
    slopes = -F.logsigmoid(scheme.gate.bias)
    assert_equal_in_the_past(scheme.bias(Q, p, p), alibi_bias(M, M, slopes, dtype=torch.float64).expand(BATCH, -1, -1, -1))


def test_selective_rotation_begins_as_rope() -> None:
    scheme = SCHEMES["selective"]().double()
    found = scheme.rotate(Q, K, *[scheme.locate(X, M, None)] * 2)
    tables = rope_tables(M + 1, frequencies(D_HEAD), dtype=torch.float64)  # it counts its own token, too
    torch.testing.assert_close(found, tuple(apply_rope(x, *tables, interleaved=True) for x in (Q, K)), rtol=0, atol=1e-12)


def test_rate_multiplies_what_is_learned() -> None:
    whole, slow = made("selective"), SelectiveRotaryPositions(D_MODEL, HEADS, frequencies(D_HEAD), rate=0.25).double()
    assert isinstance(whole, SelectiveRotaryPositions)
    slow.step.weight.data = 4 * whole.step.weight.data
    torch.testing.assert_close(slow.locate(X, M, None), whole.locate(X, M, None), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_sums_in_half_precision_count_to_thousands(dtype: torch.dtype) -> None:
    """bfloat16 itself can't count beyond 256, nor float16 beyond 2048."""
    x, m = torch.zeros(1, 4096, D_MODEL, dtype=dtype), torch.arange(4096)
    angles = SCHEMES["selective"]().to(dtype).locate(x, m, None)
    torch.testing.assert_close(angles[0, 0].double(), (m + 1)[:, None] * frequencies(D_HEAD), rtol=1e-5, atol=0)
    forgotten = SCHEMES["forgetting"]().to(dtype).locate(x, m, None)[0, 0, :, 0]
    torch.testing.assert_close(forgotten, (m + 1) * forgotten[0], rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", SCHEMES)
def test_running_position_continues_the_cached_one(name: str) -> None:
    scheme = made(name)
    whole = scheme.locate(X, M, None)
    first = scheme.locate(X[:, :2], M[:2], None)
    rest = scheme.locate(X[:, 2:], M[2:], first[:, :, -1:])
    torch.testing.assert_close(torch.cat((first, rest), dim=2), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SCHEMES | FIXED)
def test_only_located_positions_depend_on_tokens_between(name: str) -> None:
    """One layer, and other tokens between the first and the last: with given positions, this pair's score stays the same."""
    scheme = made(name)
    other = X.clone()
    other[:, 1:-1] = normal(BATCH, LENGTH - 2, D_MODEL, seed=7)
    before, after = (scores(scheme, x)[:, :, -1, 0] for x in (X, other))
    assert torch.equal(before, after) == (name in FIXED)


def test_three_swaps_of_cups_are_three_reflections() -> None:
    """A swap of two coordinates is the reflection along their difference; weights set by hand play the shell game."""
    scheme = ReflectedPositions(3, 1).double()
    swaps = torch.tensor([[1.0, -1, 0], [0, 1, -1], [1, 0, -1]], dtype=torch.float64)
    scheme.mirror.weight.data = torch.eye(3).double()
    played = torch.randint(3, (50,), generator=torch.Generator().manual_seed(0))
    products = scheme.locate(swaps[played][None], torch.arange(50), None)[0, 0]  # (50, 3, 3)
    cups = [0, 1, 2]  # what is under each cup
    for swap, product in zip(played.tolist(), products, strict=True):
        a, b = [(0, 1), (1, 2), (0, 2)][swap]
        cups[a], cups[b] = cups[b], cups[a]
        torch.testing.assert_close(product, torch.eye(3).double()[cups], rtol=0, atol=1e-12)


def test_layer_without_softmax_is_a_recurrence() -> None:
    """Attention's way of computing it, against a state per head that forgets, adds and is asked, token by token."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(D_MODEL, HEADS, RecurrentPositions(D_MODEL, HEADS), causal=True).double()
    assert isinstance(layer.scheme, RecurrentPositions)
    layer.scheme.gate.weight.data.normal_()
    gates = torch.sigmoid(layer.scheme.gate(X))  # (batch, L, heads)
    q, k, v = (project(X).view(BATCH, LENGTH, HEADS, D_HEAD) for project in (layer.query, layer.key, layer.value))
    expected = torch.zeros(BATCH, LENGTH, D_MODEL, dtype=torch.float64)
    for b in range(BATCH):
        states = torch.zeros(HEADS, D_HEAD, D_HEAD, dtype=torch.float64)
        for m in range(LENGTH):
            outputs = []
            for h in range(HEADS):
                states[h] = gates[b, m, h] * states[h] + torch.outer(v[b, m, h], k[b, m, h])
                answer = states[h] @ q[b, m, h] / D_HEAD**0.5
                outputs.append(answer / (answer.square().mean() + torch.finfo(answer.dtype).eps).sqrt())
            expected[b, m] = layer.output(torch.cat(outputs))
    torch.testing.assert_close(layer(X, M), expected, rtol=0, atol=1e-10)


# ── PoPE ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

WIDTH = 5  # it has no pairs, so an odd one will do


def test_scores_are_the_papers_sum() -> None:
    scheme = PolarPositions(WIDTH, HEADS).double()
    scheme.phase.data = 4 * normal(HEADS, 1, WIDTH, seed=3) - 3  # also outside its range
    assert (scheme.phase > 0).any()
    assert (scheme.phase < -2 * math.pi).any()
    phase = scheme.phase.detach().clamp(-2 * math.pi, 0)
    q, k = normal(BATCH, HEADS, 4, WIDTH), normal(BATCH, HEADS, 6, WIDTH, seed=1)
    m, n = torch.tensor([3, 900, 5, 40]), torch.tensor([[0, 1, 2, 3, 4, 70], [9, 8, 7, 6, 5, 4]])
    omega = 10_000 ** (-torch.arange(WIDTH, dtype=torch.float64) / WIDTH)
    offset = m[None, :, None] - n[:, None, :]  # (batch, 4, 6)
    angle = offset[:, None, :, :, None] * omega - phase[:, :, None]  # (batch, heads, 4, 6, d_head)
    lengths = F.softplus(q)[:, :, :, None] * F.softplus(k)[:, :, None]
    expected = ((lengths * angle.cos()).sum(-1) / math.sqrt(WIDTH)).softmax(dim=-1)
    found = attention_weights(*scheme.rotate(q, k, m, n))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_without_phases_a_token_prefers_itself() -> None:
    """All lengths are positive, so all cosines are best at an offset of 0, whatever the token: RoPE promises no such thing."""
    scheme = PolarPositions(WIDTH, HEADS).double()
    q, k = normal(1, HEADS, 1, WIDTH), normal(1, HEADS, 1, WIDTH, seed=1).expand(-1, -1, 50, -1)
    weights = attention_weights(*scheme.rotate(q, k, torch.tensor([49]), torch.arange(50)))
    assert (weights.argmax(dim=-1) == 49).all()


def test_phase_beyond_its_range_gets_no_gradient() -> None:
    scheme = PolarPositions(WIDTH, HEADS).double()
    scheme.phase.data = torch.tensor([-7.0, -6.0, -0.1, 0.0, 0.1]).double().expand(HEADS, 1, -1).clone()
    q, k = scheme.rotate(normal(1, HEADS, 4, WIDTH), normal(1, HEADS, 4, WIDTH, seed=1), torch.arange(4), torch.arange(4))
    (q @ k.mT).tril().square().sum().backward()
    assert scheme.phase.grad is not None
    assert ((scheme.phase.grad != 0) == torch.tensor([False, True, True, True, False])).all()
