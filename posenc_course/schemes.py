"""The three doors through which position enters a Transformer."""

from torch import Tensor, nn


class PositionScheme(nn.Module):
    """A way to tell a Transformer where its tokens are; this base class itself tells nothing.

    A scheme overrides the door it uses. Positions are explicit at each of them, integers counted from 0, of shape (L,) for
    the whole batch or (batch, L), so that decoding token by token with a cache can give the same numbers as one pass.
    """

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """First door, the embedding: token vectors (batch, L, d_model) -> the same shape."""
        return x

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """Second door, the query and key: (batch, heads, L, d_head) each -> the same shapes."""
        return q, k

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """Third door, the score: (batch or 1, heads, L_query, L_key), added after the division by √d_head; None is 0."""
        return None
