"""A small Transformer, as an encoder or a decoder, that works with any position scheme.

Blocks normalize before each sublayer ("pre-LN", Xiong et al. 2020), so the model can be trained without learning-rate warm-up.
Token vectors are initialized from N(0, 1) in every channel. Tensor2Tensor, the library of the original paper's authors
(Vaswani et al. 2017), initializes them from N(0, 1/d_model) and brings them to the same size with the paper's factor √d_model.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor, nn

from posenc_course._validation import CAUSAL, D_MODEL, NUM_HEADS, checked, refuse
from posenc_course.attention import TOKENS, Cache, MultiHeadAttention, require_flags
from posenc_course.schemes import PositionScheme


class Block(nn.Module):
    """Attention and then an MLP, whose hidden layer is four times as wide; the output of each is added to its input."""

    @checked(d_model=D_MODEL, num_heads=NUM_HEADS, scheme="PositionScheme", causal=CAUSAL)
    def __init__(self, d_model: int, num_heads: int, scheme: PositionScheme, *, causal: bool) -> None:
        super().__init__()
        self.d_model = d_model
        self.attention = MultiHeadAttention(d_model, num_heads, scheme, causal=causal)
        self.attention_norm = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
        self.mlp_norm = nn.LayerNorm(d_model)

    @checked(**TOKENS)
    def forward(self, x: Tensor, positions: Tensor, cache: Cache | None = None, *, padding: Tensor | None = None) -> Tensor:
        """Apply the block to x (batch, L, d_model); the arguments and the result's shape are as in `MultiHeadAttention`."""
        x = x + self.attention(self.attention_norm(x), positions, cache, padding=padding)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """A model that maps token ids to one row of outputs per token; use `Encoder` or `Decoder`, which differ in their masks.

    Args:
        vocab_size: the number of different tokens; ids run from 0 to vocab_size - 1.
        d_model, num_heads, num_layers: width, number of heads (which must divide d_model) and number of layers.
        scheme: any `PositionScheme`, or a list with one per layer; without one, the model gets no positions at all. Tokens are
            embedded once, by the first layer's scheme, so another layer's scheme may not use the first door.
        num_outputs: outputs per token, by default one score for each token of the vocabulary.

    Raises ValueError for sizes that don't fit each other.
    """

    causal: bool

    @checked(
        vocab_size="count: count the different tokens",
        d_model=D_MODEL,
        num_heads=NUM_HEADS,
        num_layers="count: use at least one layer, e.g. 2",
        num_outputs="count?: give 1 for a yes/no answer, None for one per token id",
    )
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        scheme: PositionScheme | Sequence[PositionScheme] | None = None,
        *,
        num_outputs: int | None = None,
    ) -> None:
        super().__init__()
        if type(self) is Transformer:
            raise ValueError("Transformer does not say which tokens a token may look at: use Encoder or Decoder")
        self.vocab_size = vocab_size
        if num_outputs is None:
            num_outputs = vocab_size
        schemes = _per_layer(scheme, num_layers, d_model)
        self.scheme = schemes[0]
        self.blocks = nn.ModuleList(Block(d_model, num_heads, each, causal=self.causal) for each in schemes)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, num_outputs)

    @checked(
        tokens="ids batch L: for one sequence pass tokens[None, :]",
        positions="real? tensor [batch] L: give one per token",
        padding=TOKENS["padding"],
    )
    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        caches: list[Cache] | None = None,
        *,
        padding: Tensor | None = None,
    ) -> Tensor:
        """Map token ids (batch, L) to outputs (batch, L, num_outputs).

        Args:
            positions: (L,) or (batch, L); by default, all tokens so far are counted from 0, without padding.
            caches: one per layer, from `Decoder.new_caches`; they hold the earlier tokens.
            padding: (batch, tokens so far), True where a token is padding, cached tokens first; only padding looks at padding.

        Raises ValueError for ids outside the vocabulary and for shapes that don't fit.
        """
        if tokens.min() < 0 or tokens.max() >= self.vocab_size:
            wrong = tokens.min() if tokens.min() < 0 else tokens.max()
            raise ValueError(f"token id {wrong.item()} is outside 0 … {self.vocab_size - 1}: check the tokens or vocab_size")
        if caches is not None:
            self._require_caches(caches)
        length = tokens.shape[1]
        seen = 0 if caches is None or caches[0].keys is None else caches[0].keys.shape[-2]
        if padding is not None:
            require_flags(padding, seen + length)
        if positions is None and padding is not None:
            positions = ((~padding).cumsum(dim=-1) - 1).clamp(min=0)[:, seen:]
        elif positions is None:
            positions = torch.arange(seen, seen + length, device=tokens.device)
        x = self.scheme.embed(self.embedding(tokens), positions)
        longer = [copy(cache) for cache in caches or ()]
        for layer, block in enumerate(self.blocks):
            x = block(x, positions, None if caches is None else longer[layer], padding=padding)
        for cache, new in zip(caches or (), longer, strict=True):  # all layers or, if one raises an error, none
            vars(cache).update(vars(new))
        return self.head(self.norm(x))

    def _require_caches(self, caches: list[Cache]) -> None:
        if not self.causal:
            raise ValueError(f"{type(self).__name__} takes no caches: its tokens look at later ones, so use a Decoder")
        if not isinstance(caches, list) or [type(cache) for cache in caches] != [Cache] * len(self.blocks):
            raise ValueError(f"caches must be a list of {len(self.blocks)}, one per layer, got {caches!r}: use new_caches()")


def _per_layer(
    scheme: PositionScheme | Sequence[PositionScheme] | None, num_layers: int, d_model: int
) -> Sequence[PositionScheme]:
    """One scheme per layer; raises a ValueError for anything else, and for an embedding that no token would get."""
    each: Sequence[Any] = scheme if isinstance(scheme, list | tuple) else [scheme or PositionScheme()] * num_layers
    wrong = [one for one in each if not isinstance(one, PositionScheme)]
    if wrong or len(each) != num_layers:
        given = wrong[0] if wrong else scheme
        refuse(
            "scheme", f"a PositionScheme or a list of {num_layers}, one per layer", given, "PositionScheme() adds no positions"
        )
    x = torch.zeros(1, 1, d_model)
    for layer, one in enumerate(each):
        if one is not each[0] and one.embed(x, torch.tensor([0])) is not x:
            refuse(
                f"scheme[{layer}]", "one that leaves the embedding alone", one,
                "tokens are embedded once, by scheme[0], so put it there, or use the same object in both layers",
            )  # fmt: skip
    return each


class Encoder(Transformer):
    """A Transformer in which every token may look at every token."""

    causal = False


class Decoder(Transformer):
    """A Transformer in which a token may look only at itself and at earlier tokens.

    To decode token by token, pass the caches from `new_caches()` to every call.
    """

    causal = True

    def new_caches(self) -> list[Cache]:
        """One empty cache per layer; pass the same list to every call of `forward`."""
        return [Cache() for _ in self.blocks]
