"""Attention with linear biases: a penalty on the score that grows with the distance (Press et al. 2022).

Slopes are per token: in a head with slope s, a key Δ tokens away gets e^{-sΔ} times the weight of an equal key at distance 0.
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
    """The slope of each head, float64 of shape (num_heads,).

    If num_heads is a power of two, the slopes are 2^(-8h/num_heads) for h = 1 … num_heads, steepest first. Otherwise, the
    slopes for the next smaller power of two come first, followed by every second slope for twice that power, as in the code
    published with Press et al. 2022, so the result is not sorted. Raises ValueError unless num_heads is an integer >= 1.
    """
    power = 2 ** (num_heads.bit_length() - 1)  # the largest power of two that is not larger than num_heads
    exponents = torch.arange(1, power + 1, dtype=torch.float64) * 8 / power
    between = (2 * torch.arange(num_heads - power, dtype=torch.float64) + 1) * 4 / power
    return 2.0 ** -torch.cat((exponents, between))


@checked(**Q_AND_K_POSITIONS, slopes=_SLOPES, dtype="dtype")
def alibi_bias(q_positions: Positions, k_positions: Positions, slopes: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """The bias `-slope·|m - n|` for every head, query m and key n, shape (1 or batch, heads, L_query, L_key).

    Positions are in tokens, (L,) or (batch, L); slopes are (heads,). The bias is symmetric, so it also works without a causal
    mask. With a causal mask, only keys with n ≤ m count, and slope·n would give the same weights, because softmax ignores a
    number that is added to a whole row. Raises ValueError for shapes that don't fit and for slopes that are not finite.
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
    """Causal attention with ALiBi over a whole sequence, without any L×L tensor: the fast implementation.

    query, key and value are (batch, heads, L, d_head), at positions 0 … L-1, and slopes are (heads,); the result has the shape
    of value. With a causal mask, the bias is -slope·m + slope·n, the dot product of two extra channels of the query,
    (-slope·m, slope), with two of the key, (1, n). The extra channels come before the others, so the two large terms are added
    to each other first, and their sum is no larger than the bias itself. To make this sum exact, each slope is split into its
    first 11 bits, whose product with a position up to 8192 is exact in float32, and the small remainder, which has two
    channels of its own.

    For inputs in half precision, which cannot represent every position, the sums are computed in float32. Raises ValueError
    for shapes that don't fit and for slopes that are not finite.
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
    # Only q·k is divided by √d_head, so we divide here; the zeros give the values the width that the kernel requires.
    q = torch.cat((of_query.expand(batch, -1, -1, -1), query.to(real) / math.sqrt(d_head)), dim=-1)
    k = torch.cat((of_key.expand(batch, -1, -1, -1), key.to(real)), dim=-1)
    v = F.pad(value.to(real), (0, of_key.shape[-1]))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=1.0)[..., :d_head].to(query.dtype)


class AlibiPositions(PositionScheme):
    """A scheme that subtracts slope·distance from the scores of each head; nothing is learned."""

    @checked(num_heads=NUM_HEADS)
    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.slopes = alibi_slopes(num_heads)

    @checked(q="float batch {self.num_heads} L_query d_head: build the scheme with the model's num_heads", **Q_AND_K_POSITIONS)
    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        """The bias for q (batch, heads, L_query, d_head), shape (1 or batch, heads, L_query, L_key)."""
        return alibi_bias(q_positions, k_positions, self.slopes, dtype=q.dtype)
