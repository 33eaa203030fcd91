"""Positions that depend on what was said: each token moves a head's position on by a step that is computed from the token.

Between key n and query m, these schemes don't count tokens: they add up, or multiply, what the tokens n + 1 to m contribute.
Through the three doors alone, a score depends only on its query, its key and their two positions. So these schemes override
`PositionScheme.locate`, which computes positions from the layer's tokens.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course._validation import D_MODEL, DOOR, NUM_HEADS, checked, head_width, refuse
from posenc_course.schemes import PositionScheme

_LOCATED = "give what locate returned"


class ForgettingPositions(PositionScheme):
    """A scheme with forget gates, each of which lowers the scores of all earlier keys (Lin et al. 2025).

    In each head, token l has the gate f_l = σ(w·x_l + b). Its position is p_l = -(ln f_0 + … + ln f_l), and the bias is
    -(p_m - p_n), the logarithm of the product of the gates after key n. With w = 0, this is ALiBi with the slope -ln σ(b).
    w and b are learned.
    """

    @checked(d_model=D_MODEL, num_heads=NUM_HEADS)
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        self.gate = nn.Linear(d_model, num_heads)
        nn.init.constant_(self.gate.bias, 3.0)  # f begins at 0.95, so that distant keys get a gradient; in the paper, at 0.5

    @checked(**DOOR)
    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """The positions p of the tokens x (batch, L, d_model) in each head, shape (batch, heads, L, 1)."""
        return _running_sum(-F.logsigmoid(self.gate(x)).mT.unsqueeze(-1), before)

    @checked(
        q="float batch {self.num_heads} L_query d_head: build the scheme with the model's num_heads",
        q_positions=f"float batch heads L_query 1: {_LOCATED}",
        k_positions=f"float batch heads L_key 1: {_LOCATED}",
    )
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The bias -(p_m - p_n), shape (batch, heads, L_query, L_key)."""
        return k_positions.mT - q_positions


class RecurrentPositions(ForgettingPositions):
    """Forget gates for a layer without softmax, which makes it recurrent: gated linear attention (Yang et al. 2024).

    Each head could keep a state S_l = f_l·S_{l-1} + v_l·k_lᵀ instead of all keys and values, since its output is S_m·q_m,
    divided by √d_head and by its own root mean square. There is one gate per head, as in Mamba-2 (Dao & Gu 2024); the paper
    has one for each channel of the keys.
    """

    softmax = False


class SelectiveRotaryPositions(PositionScheme):
    """RoPE with steps that depend on the token: pair i of a head advances by ω_i + rate·w_i·x_l radians at token l, not by ω_i.

    The w_i are learned, and begin at 0 as plain RoPE. With AdamW, a `rate` of 0.1 makes the steps learn ten times more slowly
    than the rest of the model. The layout is interleaved. Rotations by content are the core of Selective RoPE (Movahedi et al.
    2026), which also has gates and a convolution over the last tokens; both are left out here. Raises ValueError unless there
    is a frequency for each pair of a head.
    """

    @checked(
        d_model=D_MODEL,
        num_heads=NUM_HEADS,
        frequencies="frequencies",
        rate="number > 0: it multiplies the learned part of the steps, e.g. 0.1",
    )
    def __init__(self, d_model: int, num_heads: int, frequencies: Tensor, rate: float = 1.0) -> None:
        super().__init__()
        self.d_model, self.num_heads, self.d_head = d_model, num_heads, head_width(d_model, num_heads)
        if 2 * len(frequencies) != self.d_head:
            refuse("frequencies", f"one for each pair of {self.d_head} channels", frequencies, "use frequencies(d_head)")
        self.rate = rate
        self.frequencies = frequencies.clone()
        self.step = nn.Linear(d_model, num_heads * len(frequencies), bias=False)
        nn.init.zeros_(self.step.weight)

    @checked(**DOOR)
    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """The angles of the tokens x (batch, L, d_model) in radians, shape (batch, heads, L, pairs)."""
        steps = _wide(self.step(x)).unflatten(-1, (-1, len(self.frequencies))).transpose(1, 2)  # (batch, heads, L, pairs)
        return _running_sum(self.rate * steps + self.frequencies.to(steps), before)

    @checked(
        q="float batch {self.num_heads} L_query {self.d_head}: build the scheme with the model's sizes",
        k="float batch {self.num_heads} L_key {self.d_head}: build the scheme with the model's sizes",
        q_positions=f"float batch heads L_query pairs: {_LOCATED}",
        k_positions=f"float batch heads L_key pairs: {_LOCATED}",
    )
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate q and k (batch, heads, L, d_head) by their angles; the results keep their shapes."""
        rotated = []
        for x, angle in ((q, q_positions), (k, k_positions)):
            pairs = torch.view_as_complex(_wide(x).unflatten(-1, (-1, 2)).contiguous())
            pairs = pairs * torch.polar(torch.ones_like(angle), angle)
            rotated.append(torch.view_as_real(pairs).flatten(start_dim=-2).to(x.dtype))
        return rotated[0], rotated[1]


class ReflectedPositions(PositionScheme):
    """A scheme in which each token is a mirror: between key n and query m, the key is reflected once by every token after n.

    In each head, token l has a unit vector w_l, computed from x_l, and the reflection H_l = I - 2·w_l·w_lᵀ. A score is
    q_mᵀ·H_m···H_{n+1}·k_n. This is PaTH (Yang et al. 2025) with its factor β fixed at 2, so that each H_l is its own inverse.
    With the product P_l = H_l···H_0 as the position of token l, the score is (P_mᵀ·q_m)·(P_nᵀ·k_n). Reflections don't commute,
    unlike the rotations of a pair, so the order of the tokens in between counts, too.
    """

    @checked(d_model=D_MODEL, num_heads=NUM_HEADS)
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.d_model, self.num_heads, self.d_head = d_model, num_heads, head_width(d_model, num_heads)
        self.mirror = nn.Linear(d_model, d_model, bias=False)

    @checked(**DOOR)
    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """The products P of the tokens x (batch, L, d_model), shape (batch, heads, L, d_head, d_head)."""
        mirrors = F.normalize(self.mirror(x).unflatten(-1, (self.num_heads, -1)), dim=-1).unsqueeze(-1)
        product = torch.eye(mirrors.shape[-2]).to(x) if before is None else before.squeeze(2)  # (batch, heads, d_head, d_head)
        products = []
        for w in mirrors.unbind(1):  # (batch, heads, d_head, 1)
            product = product - 2 * w @ (w.mT @ product)
            products.append(product)
        return torch.stack(products, dim=2)

    @checked(
        q="float batch {self.num_heads} L_query {self.d_head}: build the scheme with the model's sizes",
        k="float batch {self.num_heads} L_key {self.d_head}: build the scheme with the model's sizes",
        q_positions=f"float batch heads L_query d_head d_head: {_LOCATED}",
        k_positions=f"float batch heads L_key d_head d_head: {_LOCATED}",
    )
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Multiply q and k (batch, heads, L, d_head) by Pᵀ; the results keep their shapes."""
        return (q.unsqueeze(-2) @ q_positions).squeeze(-2), (k.unsqueeze(-2) @ k_positions).squeeze(-2)


def _wide(x: Tensor) -> Tensor:
    """The same numbers in float32 or wider, since half precision holds neither long sums nor complex numbers."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _running_sum(steps: Tensor, before: Tensor | None) -> Tensor:
    """The sum of the steps (batch, heads, L, …) up to each token, continued from `before`, in float32 or wider."""
    total = _wide(steps).cumsum(dim=2)
    return total if before is None else total + before
