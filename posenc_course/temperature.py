"""Scores that grow with the number of keys, because otherwise attention would spread over more and more of them.

A key whose score is higher by a than those of n - 1 others gets the weight e^a / (e^a + n - 1). For this weight to stay the
same, a has to grow like ln n. So these factors multiply the queries by something that grows with the logarithm of the position.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from posenc_course._validation import Q_AND_K_POSITIONS, WHOLE_POSITIONS, Positions, checked, exact, refuse
from posenc_course.schemes import PositionScheme


@checked(positions=WHOLE_POSITIONS, trained="count >= 2: it is the number of tokens in the texts that the model was trained on")
def log_factor(positions: Positions, trained: int) -> Tensor:
    """max(1, ln(m + 1) / ln(trained)) for each position m, float64 in the shape of positions, (L,) or (batch, L).

    Under a causal mask, the query at position m sees m + 1 keys, so in a text of `trained` tokens, the factor is always 1.
    Chiang and Cholak (2022) multiply scores by ln n; with the division by ln(trained), as in Qwen's first models (from their
    published code), a trained model keeps its scores.
    Raises ValueError for positions that are not whole numbers, and if `trained` is less than 2.
    """
    return (torch.log1p(exact(positions)) / math.log(trained)).clamp(min=1)


@checked(
    positions=WHOLE_POSITIONS,
    floor="count: it is the number of tokens between two steps; Llama 4 uses 8192",
    scale="number >= 0: Llama 4 uses 0.1",
)
def llama4_factor(positions: Positions, floor: int = 8192, scale: float = 0.1) -> Tensor:
    """1 + scale·ln(1 + ⌊(m + 1)/floor⌋) for each position m, float64 in the shape of positions, (L,) or (batch, L).

    Llama 4 multiplies the queries by it in those layers that don't use RoPE (from its published code). It's a staircase: the
    factor is 1 up to position floor - 2, and then rises by a step every `floor` tokens.
    Raises ValueError for positions that are not whole numbers, if `floor` is less than 1, and if `scale` is negative.
    """
    return 1 + scale * torch.log1p(torch.floor((exact(positions) + 1) / floor))


class ScaledPositions(PositionScheme):
    """Another scheme, with its rotated queries multiplied by a factor that depends on the query's position.

    `factor` is a function from positions, (L,) or (batch, L), to as many factors, for example
    `lambda positions: log_factor(positions, 64)`. So every product q·k of a query is multiplied by the same number, and cached
    keys stay as they are. A bias that is computed from the query, as Shaw's, is multiplied, too; one that is computed from the
    positions alone, as those of T5 and ALiBi, is not, so the product gains weight against it.

    The other scheme must count positions in tokens, so it may not override `locate`; otherwise, a ValueError is raised.
    """

    @checked(scheme="PositionScheme", factor="function: e.g. lambda positions: log_factor(positions, 64)")
    def __init__(self, scheme: PositionScheme, factor: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        if type(scheme).locate is not PositionScheme.locate:
            refuse("scheme", "one that counts tokens", scheme, "positions computed from tokens don't say how long the text is")
        self.scheme = scheme
        self.factor = factor

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Do what the other scheme does at the first door."""
        return self.scheme.embed(x, positions)

    @checked(
        q="float batch heads L_query d_head: give each token of each head a row",
        k="float batch heads L_key d_head: give each token of each head a row",
        **Q_AND_K_POSITIONS,
    )
    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Do what the other scheme does at the second door, and multiply q by its factors; shapes stay as they are.

        Raises ValueError if `factor` doesn't return as many real, finite numbers as there are positions.
        """
        q, k = self.scheme.rotate(q, k, q_positions, k_positions)
        m = exact(q_positions)
        factor, way_out = self.factor(m), "it gets the positions, and returns a tensor with a number for each of them"
        if not isinstance(factor, Tensor) or factor.shape != m.shape or factor.dtype == torch.bool or factor.is_complex():
            refuse("factor", f"a function that returns real numbers of shape {tuple(m.shape)}", factor, way_out)
        if not torch.compiler.is_compiling() and not factor.isfinite().all():
            refuse("factor", "a function that returns finite numbers", factor[~factor.isfinite()][0].item(), way_out)
        return q * factor.to(q)[..., None, :, None], k

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """Do what the other scheme does at the third door, with the multiplied queries."""
        return self.scheme.bias(q, q_positions, k_positions)
