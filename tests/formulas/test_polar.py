"""PoPE, against the sum that defines it."""

import math

import torch
import torch.nn.functional as F

from posenc_course.attention import attention_weights
from posenc_course.polar import PolarPositions
from tests.tensors import normal

BATCH, HEADS, D_HEAD = 2, 3, 5  # no pairs, so an odd width will do


def test_scores_are_the_papers_sum() -> None:
    scheme = PolarPositions(D_HEAD, HEADS).double()
    scheme.phase.data = 4 * normal(HEADS, 1, D_HEAD, seed=3) - 3  # also outside its range
    assert (scheme.phase > 0).any()
    assert (scheme.phase < -2 * math.pi).any()
    phase = scheme.phase.detach().clamp(-2 * math.pi, 0)
    q, k = normal(BATCH, HEADS, 4, D_HEAD), normal(BATCH, HEADS, 6, D_HEAD, seed=1)
    m, n = torch.tensor([3, 900, 5, 40]), torch.tensor([[0, 1, 2, 3, 4, 70], [9, 8, 7, 6, 5, 4]])
    omega = 10_000 ** (-torch.arange(D_HEAD, dtype=torch.float64) / D_HEAD)
    offset = m[None, :, None] - n[:, None, :]  # (batch, 4, 6)
    angle = offset[:, None, :, :, None] * omega - phase[:, :, None]  # (batch, heads, 4, 6, d_head)
    lengths = F.softplus(q)[:, :, :, None] * F.softplus(k)[:, :, None]
    expected = ((lengths * angle.cos()).sum(-1) / math.sqrt(D_HEAD)).softmax(dim=-1)
    found = attention_weights(*scheme.rotate(q, k, m, n))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_without_phases_a_token_prefers_itself() -> None:
    """All lengths are positive, so all cosines are best at an offset of 0, whatever the token: RoPE promises no such thing."""
    scheme = PolarPositions(D_HEAD, HEADS).double()
    q, k = normal(1, HEADS, 1, D_HEAD), normal(1, HEADS, 1, D_HEAD, seed=1).expand(-1, -1, 50, -1)
    weights = attention_weights(*scheme.rotate(q, k, torch.tensor([49]), torch.arange(50)))
    assert (weights.argmax(dim=-1) == 49).all()


def test_phase_beyond_its_range_gets_no_gradient() -> None:
    scheme = PolarPositions(D_HEAD, HEADS).double()
    scheme.phase.data = torch.tensor([-7.0, -6.0, -0.1, 0.0, 0.1]).double().expand(HEADS, 1, -1).clone()
    q, k = scheme.rotate(normal(1, HEADS, 4, D_HEAD), normal(1, HEADS, 4, D_HEAD, seed=1), torch.arange(4), torch.arange(4))
    (q @ k.mT).tril().square().sum().backward()
    assert scheme.phase.grad is not None
    assert ((scheme.phase.grad != 0) == torch.tensor([False, True, True, True, False])).all()
