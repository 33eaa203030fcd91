"""Schemes that only recorded experiments need: variants that papers or released models have, and two for chapter 5."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course.attention import causal_mask
from posenc_course.contextual import RecurrentPositions
from posenc_course.relative import offsets
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import sinusoidal_table
from posenc_course.transformer import Decoder

# ── beside the words ─────────────────────────────────────────────────────────────────────────────────────────────────────


class BesidePositions(PositionScheme):
    """The position in `width` channels beside the word: in its last channels, or mapped to `project_to` channels with it."""

    def __init__(self, width: int, project_to: int | None = None) -> None:
        super().__init__()
        self.width = width
        self.map = None if project_to is None else nn.Linear(project_to + width, project_to)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        table = sinusoidal_table(positions, self.width).to(x).expand(*x.shape[:-1], -1)
        if self.map is None:
            return torch.cat((x[..., : -self.width], table), dim=-1)
        return self.map(torch.cat((x, table), dim=-1))


# ── variants of RoPE ─────────────────────────────────────────────────────────────────────────────────────────────────────


class KeptPositions(PositionScheme):
    """RoPE in a window, beside which the first tokens of the text stay in sight.

    `cap` is the largest distance from the beginning that a query has for the first tokens: with first + window - 1, their
    positions are counted within what is kept, as in StreamingLLM (Xiao et al. 2024); with None, in the text.
    """

    def __init__(self, rope: RotaryPositions, window: float, first: int, cap: int | None) -> None:
        super().__init__()
        self.rope, self.window, self.first, self.cap = rope, window, first, cap

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        near_q, near_k = self.rope.rotate(q, k, q_positions, k_positions)
        if self.cap is None:
            return near_q, near_k
        capped = q_positions.clamp(max=self.cap)
        far_q = self.rope.rotate(q, q, capped, capped)[0]
        first = (k_positions < self.first).unsqueeze(-1)
        # A key has zeros in the half that isn't meant for it. Scores are divided by the root of the width, which is doubled.
        q = torch.cat((near_q, far_q), dim=-1) * math.sqrt(2)
        return q, torch.cat((near_k * ~first, near_k * first), dim=-1)

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if self.window == math.inf:
            return None
        far = (q_positions[:, None] - k_positions >= self.window) & (k_positions >= self.first)
        return q.new_zeros(1, 1, *far.shape).masked_fill(far, -math.inf)


class LearnedRotaryPositions(RotaryPositions):
    """RoPE with frequencies ω·e^α, where α is learned for each pair and begins at 0, as in Mistral Large 4."""

    def __init__(self, omega: Tensor) -> None:
        super().__init__(omega)
        self.learned = nn.Parameter(torch.zeros(len(omega)))

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        return self._rotate(q, k, q_positions, k_positions, self.frequencies * self.learned.double().exp())


class OffsetRotaryPositions(RotaryPositions):
    """RoPE in the first channels of a head; in the others, each token has the key of the token before (modded-nanogpt, 2025).

    The first token keeps its own. A key of one layer then says what came before the token whose value it leads to.
    """

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q, k = super().rotate(q, k, q_positions, k_positions)
        rotated, still = k.split([2 * len(self.frequencies), k.shape[-1] - 2 * len(self.frequencies)], dim=-1)
        return q, torch.cat((rotated, torch.cat((still[..., :1, :], still[..., :-1, :]), dim=-2)), dim=-1)


class SunkPositions(RotaryPositions):
    """RoPE with one more key in each head, whose value is 0 and whose score b is learned; b begins at 0.

    If e^z is the sum of the exponentials of all scores, the sink gets e^b / (e^z + e^b). So what a head returns is multiplied
    by e^z / (e^z + e^b) = σ(z - b), which `gate` does just before the layer's last matrix.
    """

    def __init__(self, omega: Tensor, num_heads: int) -> None:
        super().__init__(omega)
        self.sink = nn.Parameter(torch.zeros(num_heads, 1))

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate as RoPE does, and keep σ(z - b), shape (batch, heads, L)."""
        q, k = super().rotate(q, k, q_positions, k_positions)
        scores = torch.where(causal_mask(q_positions, k_positions), q @ k.mT / math.sqrt(q.shape[-1]), -math.inf)
        self.kept = torch.sigmoid(scores.logsumexp(dim=-1) - self.sink)
        return q, k

    def gate(self, module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        """A pre-hook for the layer's last matrix, which gets the heads' outputs (batch, L, d_model) side by side."""
        by_head = inputs[0].unflatten(-1, (len(self.sink), -1))
        return (by_head * self.kept.transpose(1, 2).unsqueeze(-1)).flatten(start_dim=-2)


class LogarithmicPositions(PositionScheme):
    """Another scheme, with queries multiplied by a + b·ln(m + 1); a and b are learned for each head, and begin at 1 and 0."""

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        self.scheme = scheme
        self.learned = nn.Parameter(torch.tensor([[1.0], [0.0]]).repeat(1, num_heads))

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q, k = self.scheme.rotate(q, k, q_positions, k_positions)
        a, b = self.learned[:, :, None, None]
        return q * (a + b * torch.log1p(q_positions.to(q))[..., None, :, None]), k


# ── positions that depend on the content ─────────────────────────────────────────────────────────────────────────────────


class ShortPositions(RecurrentPositions):
    """A recurrent layer's gates; if it's the first layer, each token's vector also gets a learned map of the vector before."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__(d_model, num_heads)
        self.short = nn.Linear(d_model, d_model, bias=False)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + F.pad(self.short(x[:, :-1]), (0, 0, 1, 0))


class RotaryRecurrentPositions(RecurrentPositions):
    """A recurrent layer's gates, with queries and keys that are rotated as well, by their positions in the text."""

    def __init__(self, d_model: int, num_heads: int, omega: Tensor) -> None:
        super().__init__(d_model, num_heads)
        self.rope = RotaryPositions(omega)

    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """What the gates have added up, and the position in the text, (batch, heads, L, 2)."""
        gated = super().locate(x, positions, None if before is None else before[..., :1])
        return torch.cat((gated, positions.to(gated).expand(x.shape[:2])[:, None, :, None].expand_as(gated)), dim=-1)

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        return self.rope.rotate(q, k, q_positions[:, 0, :, 1].detach(), k_positions[:, 0, :, 1].detach())

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return super().bias(q, q_positions[..., :1], k_positions[..., :1])


class StickPositions(PositionScheme):
    """Stick-breaking attention: going back, each key takes the share σ(score) of what is left (Tan et al. 2025).

    What is left at the end goes to the query's own token. `bias` is the logarithm of these weights minus the score, so that the
    softmax gives these weights.
    """

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        self.key = k
        return q, k

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        score = q @ self.key.mT / math.sqrt(q.shape[-1])
        back = offsets(q_positions, k_positions)
        passed = torch.where(back > 0, F.logsigmoid(-score), 0.0)  # the logarithm of what each key leaves
        left = passed.flip(-1).cumsum(dim=-1).flip(-1)  # and of what is left after it, its own share taken
        weight = torch.where(back > 0, F.logsigmoid(score) + left - passed, left[..., :1])
        return torch.where(back >= 0, weight - score, 0.0)


class InklingPositions(PositionScheme):
    """Inkling's bias r_m·p_{m-n} up to `extent` - 1 tokens back, and 0 beyond; r_m = W·x_m has `features` numbers in each head.

    The vectors p are the same for all heads of a layer. In Inkling, there are 16 features and 1,024 offsets, or 512 in a layer
    with a window (from the class in transformers).
    """

    def __init__(self, d_model: int, num_heads: int, features: int, extent: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.feature = nn.Linear(d_model, num_heads * features, bias=False)
        self.table = nn.Parameter(torch.randn(features, extent) / math.sqrt(features))

    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """The features r and then the position of each token x (batch, L, d_model), (batch, heads, L, features + 1)."""
        r = self.feature(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return torch.cat((r, positions.to(r).expand(x.shape[:2])[:, None, :, None].expand(*r.shape[:3], 1)), dim=-1)

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        extent = self.table.shape[1]
        back = offsets(q_positions[:, 0, :, -1].detach(), k_positions[:, 0, :, -1].detach()).long().unsqueeze(1)
        of_offset = q_positions[..., :-1] @ self.table  # (batch, heads, L_query, extent)
        bias = of_offset.gather(-1, back.clamp(0, extent - 1).expand(*of_offset.shape[:3], -1))
        return bias.masked_fill((back < 0) | (back >= extent), 0.0)


class ShortConvolution(nn.Module):
    """x_l + w_0·x_l + w_1·x_{l-1} + …, channel by channel, with `width` learned weights w, which begin at 0."""

    def __init__(self, d_model: int, width: int = 4) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, d_model))

    def forward(self, x: Tensor) -> Tensor:
        """From and to (batch, L, d_model)."""
        earlier = (F.pad(x, (0, 0, back, 0))[:, : x.shape[1]] for back in range(len(self.weight)))
        return x + sum(w * shifted for w, shifted in zip(self.weight, earlier, strict=True))


# ── changes to a model ───────────────────────────────────────────────────────────────────────────────────────────────────


def convolved(model: Decoder) -> Decoder:
    """The model with short convolutions before each attention and each MLP, after the norm: Canon layers A and C."""
    for block in model.blocks:
        for norm in ("attention_norm", "mlp_norm"):
            setattr(block, norm, nn.Sequential(getattr(block, norm), ShortConvolution(model.norm.normalized_shape[0])))
    return model


def sunk(model: Decoder) -> Decoder:
    """The model, which has RoPE, with a sink in each head."""
    for block in model.blocks:
        attention: Any = block.attention
        attention.scheme = SunkPositions(attention.scheme.frequencies, attention.num_heads)
        attention.output.register_forward_pre_hook(attention.scheme.gate)
    return model
