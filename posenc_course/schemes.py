"""The three doors through which position enters a Transformer."""

import inspect

from torch import Tensor, nn


class PositionScheme(nn.Module):
    """A way to give a Transformer the positions of its tokens; this base class itself gives it none.

    A scheme overrides the method of the door that it uses. Every door gets the positions explicitly, as integers counted from
    0, of shape (L,) for the whole batch or (batch, L). So decoding token by token with a cache can give the same numbers as a
    single pass. `locate` is no door: it says where the tokens are, before the second and third. A scheme overrides it if its
    positions depend on what the tokens are.

    `softmax` is False if a layer with this scheme has no softmax: see `linear_attention`.
    """

    softmax = True

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """The first door, the embedding: token vectors (batch, L, d_model) -> the same shape."""
        return x

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        """The second door, the query and key: (batch, heads, L, d_head) each -> the same, or both equally wider."""
        return q, k

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """The third door, the score: a bias (1 or batch, heads, L_query, L_key), added after dividing by √d_head, or None."""
        return None

    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """Where the tokens are, for `rotate` and `bias` of a layer: by default at the given positions, whatever they are.

        x is the input of the attention layer, (batch, L, d_model). If a scheme computes positions from it, it returns them with
        an entry for each token in each head, (batch, heads, L, …); `before` is the entry of the last token in the cache,
        (batch, heads, 1, …), so that a running sum can continue.
        """
        return positions

    def extra_repr(self) -> str:
        """What `print` shows besides the modules inside: those arguments of the constructor that the scheme keeps."""
        kept = [name for name in inspect.signature(type(self)).parameters if name in vars(self)]
        return ", ".join(f"{name}={_brief(getattr(self, name))}" for name in kept)


def _brief(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{len(value)} numbers from {value[0]:.4g} to {value[-1]:.4g}"
    return value.__name__ if inspect.isroutine(value) else repr(value)
