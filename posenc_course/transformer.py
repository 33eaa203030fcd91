"""A small Transformer, encoder and decoder, that takes any position scheme.

Blocks normalize before each sublayer ("pre-LN", Xiong et al. 2020), which trains without learning-rate warm-up tricks.
Token vectors start as N(0, 1) in every channel. Tensor2Tensor, the library of the paper's authors (Vaswani et al. 2017),
reaches the same size from N(0, 1/d) by the paper's factor √d_model.
"""

from copy import copy

import torch
from torch import Tensor, nn

from posenc_course._validation import D_MODEL, NUM_HEADS, checked
from posenc_course.attention import TOKENS, Cache, MultiHeadAttention, require_flags
from posenc_course.schemes import PositionScheme


class Block(nn.Module):
    """Attention, then an MLP of four times the width, each added to its input."""

    @checked(d_model=D_MODEL, num_heads=NUM_HEADS, scheme="PositionScheme")
    def __init__(self, d_model: int, num_heads: int, scheme: PositionScheme, *, causal: bool) -> None:
        super().__init__()
        self.d_model = d_model
        self.attention = MultiHeadAttention(d_model, num_heads, scheme, causal=causal)
        self.attention_norm = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
        self.mlp_norm = nn.LayerNorm(d_model)

    @checked(**TOKENS)
    def forward(self, x: Tensor, positions: Tensor, cache: Cache | None = None, *, padding: Tensor | None = None) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) -> the same shape; the rest as in `MultiHeadAttention`."""
        x = x + self.attention(self.attention_norm(x), positions, cache, padding=padding)
        return x + self.mlp(self.mlp_norm(x))


class Transformer(nn.Module):
    """Token ids in, one row of outputs per token out; `Encoder` and `Decoder` fix who may look at whom.

    Args:
        vocab_size: how many tokens there are; ids run from 0 to vocab_size - 1.
        d_model, num_heads, num_layers: width, heads (d_model must be a multiple of it) and depth.
        scheme: any `PositionScheme`; without one the model gets no positions at all.
        num_outputs: outputs per token, by default one score per token of the vocabulary.
    """

    causal: bool

    @checked(
        vocab_size="count: count the different tokens",
        d_model=D_MODEL,
        num_heads=NUM_HEADS,
        num_layers="count: one layer is the least, e.g. 2",
        scheme="PositionScheme?",
        num_outputs="count?: give 1 for a yes/no answer, None for one per token id",
    )
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        scheme: PositionScheme | None = None,
        *,
        num_outputs: int | None = None,
    ) -> None:
        super().__init__()
        if type(self) is Transformer:
            raise ValueError("Transformer leaves open who may look at whom: use Encoder or Decoder")
        self.vocab_size = vocab_size
        if num_outputs is None:
            num_outputs = vocab_size
        self.scheme = PositionScheme() if scheme is None else scheme
        self.blocks = nn.ModuleList(Block(d_model, num_heads, self.scheme, causal=self.causal) for _ in range(num_layers))
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
        """Token ids (batch, L) -> outputs (batch, L, num_outputs).

        Args:
            positions: (L,) or (batch, L); by default 0 … L-1, counted on from the caches' tokens, padding not counted.
            caches: one per layer, from `Decoder.new_caches`; they hold the tokens before these.
            padding: (batch, tokens so far), True where a token, cached ones first, is padding: no other looks at it.

        Raises ValueError for ids outside the vocabulary and for shapes that do not fit.
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
        for cache, new in zip(caches or (), longer, strict=True):  # all layers or, if one refuses, none
            vars(cache).update(vars(new))
        return self.head(self.norm(x))

    def _require_caches(self, caches: list[Cache]) -> None:
        if not self.causal:
            raise ValueError(f"{type(self).__name__} takes no caches: its first tokens look at the last, so use a Decoder")
        if not isinstance(caches, list) or [type(cache) for cache in caches] != [Cache] * len(self.blocks):
            raise ValueError(f"caches must be a list of {len(self.blocks)}, one per layer, got {caches!r}: take new_caches()")


class Encoder(Transformer):
    """Every token may look at every token."""

    causal = False


class Decoder(Transformer):
    """Every token may look at itself and at what came before; decodes token by token with `new_caches()`."""

    causal = True

    def new_caches(self) -> list[Cache]:
        """One empty cache per layer, to be passed to `forward` call after call."""
        return [Cache() for _ in self.blocks]
