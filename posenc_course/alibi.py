"""Attention with linear biases: a penalty on the score that grows with the distance (Press et al. 2022).

Slopes are per token; a head with slope s gives a key Δ tokens away e^{-sΔ} times the weight of one that is here.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course._validation import NUM_HEADS, Q_AND_K_POSITIONS, Positions, checked
from posenc_course.relative import offsets
from posenc_course.schemes import PositionScheme

_SLOPES = "finite heads: give one number per head, e.g. alibi_slopes(heads)"


@checked(num_heads=NUM_HEADS)
def alibi_slopes(num_heads: int) -> Tensor:
    """Each head's slope, steepest first for a power of two: 2^(-8h/num_heads), h = 1 … num_heads; float64, (num_heads,).

    Otherwise the slopes of the next smaller power of two, then every other one of twice as many heads, as the paper's code has
    it: these lie between the first ones, so that the whole is not sorted.
    """
    power = 2 ** (num_heads.bit_length() - 1)  # the largest power of two that is not more
    exponents = torch.arange(1, power + 1, dtype=torch.float64) * 8 / power
    between = (2 * torch.arange(num_heads - power, dtype=torch.float64) + 1) * 4 / power
    return 2.0 ** -torch.cat((exponents, between))


@checked(**Q_AND_K_POSITIONS, slopes=_SLOPES, dtype="dtype")
def alibi_bias(q_positions: Positions, k_positions: Positions, slopes: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """`-slope·|m - n|` of every head, query m and key n, shape (1 or batch, heads, L_query, L_key).

    Positions in tokens, (L,) or (batch, L); slopes (heads,). Symmetric, so that it also serves attention to both sides; under a
    causal mask only n ≤ m counts. Since softmax forgets what is added to a whole row, slope·n would do as well there.
    """
    distance = offsets(q_positions, k_positions).abs()  # (L_query, L_key), or with the batch first
    return (-slopes.to(distance)[:, None, None] * distance.view(-1, 1, *distance.shape[-2:])).to(dtype)


@checked(
    query="float batch heads L d_head: give each token of each head a row",
    key="float=query batch heads L d_head: project query, key and value from the same tokens",
    value="float=query batch heads L d_head: project query, key and value from the same tokens",
    slopes=_SLOPES,
)
def alibi_attention(query: Tensor, key: Tensor, value: Tensor, slopes: Tensor) -> Tensor:
    """Causal attention over a whole sequence with ALiBi, without any tensor of L×L: the fast form.

    query, key and value (batch, heads, L, d_head), of positions 0 … L-1; slopes (heads,). Under the causal mask the bias is
    -slope·m + slope·n, a product of two coordinates of the query, (-slope·m, slope), with two of the key, (1, n). They stand
    before the others, so that these two large terms meet first, and what is left of them is no larger than the bias itself.
    For their sum to be exact, a slope is split into its first 11 bits, whose product with a position up to 8192 float32 holds
    without rounding, and the small rest, which has two coordinates of its own.

    In half precision, which cannot count tokens, the sums are taken in float32. Raises ValueError for shapes that differ.
    """
    batch, heads, length, d_head = query.shape
    real = torch.promote_types(query.dtype, torch.float32)
    position = torch.arange(length, dtype=torch.float64, device=query.device)
    mantissa, exponent = torch.frexp(slopes.to(position)[:, None])
    coarse = torch.ldexp((mantissa * 2**11).round() / 2**11, exponent)  # (heads, 1)
    fine = slopes.to(position)[:, None] - coarse
    m, one = position.expand(heads, length), position.new_ones(heads, length)
    of_query = torch.stack((-coarse * m, coarse * one, -fine * m, fine * one), dim=-1).to(real)  # (heads, L, 4)
    of_key = torch.stack((one, m, one, m), dim=-1).to(real)
    # The division by √d_head is for q·k alone, hence done here; the zeros give the values the width that the kernel wants.
    q = torch.cat((of_query.expand(batch, -1, -1, -1), query.to(real) / math.sqrt(d_head)), dim=-1)
    k = torch.cat((of_key.expand(batch, -1, -1, -1), key.to(real)), dim=-1)
    v = F.pad(value.to(real), (0, of_key.shape[-1]))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)[..., :d_head].to(query.dtype)


class AlibiPositions(PositionScheme):
    """Subtracts slope·distance from the score of each head; nothing is learned."""

    @checked(num_heads=NUM_HEADS)
    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.slopes = alibi_slopes(num_heads)

    @checked(q="float batch {self.num_heads} L_query d_head: build the scheme with the model's num_heads", **Q_AND_K_POSITIONS)
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """q (batch, heads, L_query, d_head) -> (1 or batch, heads, L_query, L_key)."""
        return alibi_bias(q_positions, k_positions, self.slopes, dtype=q.dtype)
