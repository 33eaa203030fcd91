"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2; chapter 01)."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from posenc_course._validation import (
    require_embedding,
    require_integer,
    require_padding,
    require_query_and_key_positions,
    require_tensor,
)
from posenc_course.schemes import PositionScheme


def attention_weights(query: Tensor, key: Tensor, *, bias: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    """How much each query attends to each key: softmax(q·k/√d_head + bias), shape (..., L_query, L_key).

    query (..., L_query, d_head), key (..., L_key, d_head); bias is added to the scores; mask is boolean, True where a query
    may look. Both broadcast to the weights' shape. Raises ValueError for shapes and dtypes that do not fit, and for a query
    that may look nowhere (its softmax would be 0/0). Chapter 01.
    """
    _require_vectors(query=query, key=key)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query and key must have the same d_head, got shapes {tuple(query.shape)} and {tuple(key.shape)}: "
            "project both to the same width"
        )
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_query, L_key)
    if bias is not None:
        _require_broadcast("bias", bias, scores)
        if not bias.is_floating_point():
            raise ValueError(
                f"bias must be floating-point, got {bias.dtype}: pass a boolean tensor as mask, others as bias.float()"
            )
        scores = scores + bias.to(scores)
    if mask is not None:
        _require_broadcast("mask", mask, scores)
        if mask.dtype != torch.bool:
            raise ValueError(f"mask must be boolean, True where a query may look, got {mask.dtype}: pass mask.bool()")
        scores = torch.where(mask, scores, -math.inf)
    weights = scores.softmax(dim=-1)
    # 0/0 in one weight is 0/0 in its whole row, so that one column tells; only then are all scores looked at.
    if (mask is not None or bias is not None) and weights[..., 0].isnan().any():
        blind = scores.isneginf().all(dim=-1)
        if blind.any():
            raise ValueError(
                f"query {tuple(blind.nonzero()[0].tolist())} in scores of shape {tuple(scores.shape)} has no key to look at: "
                "let mask and bias leave it at least one, itself for example"
            )
    return weights


def attention(query: Tensor, key: Tensor, value: Tensor, *, bias: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention: each query's weighted mean of the values, shape (..., L_query, d_value).

    value (..., L_key, d_value); the other arguments and the errors are those of `attention_weights`. Chapter 01.
    """
    _require_vectors(query=query, key=key, value=value)
    if value.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"key and value must have one row per token, got shapes {tuple(key.shape)} and {tuple(value.shape)}: "
            "project both from the same tokens"
        )
    return attention_weights(query, key, bias=bias, mask=mask) @ value


def causal_mask(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """True where the key is not later than the query: positions (..., L_query) and (..., L_key) -> (..., L_query, L_key).

    Chapter 01.
    """
    for positions in (q_positions, k_positions):
        require_tensor("positions", positions)
    require_query_and_key_positions(q_positions, k_positions)
    return k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1)


def _require_vectors(**vectors: Tensor) -> None:
    for name, tensor in vectors.items():
        if require_tensor(name, tensor).ndim < 2 or tensor.numel() == 0 or not tensor.is_floating_point():
            raise ValueError(
                f"{name} must be a floating-point tensor of shape (..., L, d) with L and d >= 1, got {tensor.dtype} of shape "
                f"{tuple(tensor.shape)}: give each token a row"
            )
    try:
        np.broadcast_shapes(*(tensor.shape[:-2] for tensor in vectors.values()))
        fit = len({tensor.dtype for tensor in vectors.values()}) == 1
    except ValueError:
        fit = False
    if not fit:
        given = " and ".join(f"{tensor.dtype} of shape {tuple(tensor.shape)}" for tensor in vectors.values())
        raise ValueError(
            f"{', '.join(vectors)} must agree in dtype and in all sizes before the last two, got {given}: convert one"
        )


def _require_broadcast(name: str, tensor: Tensor, scores: Tensor) -> None:
    require_tensor(name, tensor)
    try:
        fits = np.broadcast_shapes(tensor.shape, scores.shape) == scores.shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} of shape {tuple(tensor.shape)} does not broadcast to scores of shape {tuple(scores.shape)}: "
            "its last two sizes are L_query and L_key"
        )


@dataclass
class Cache:
    """Keys, values and positions of the tokens that one attention layer has seen, for decoding token by token. Chapter 10."""

    keys: Tensor | None = None  # (batch, heads, L, d_head), already rotated
    values: Tensor | None = None  # (batch, heads, L, d_head)
    positions: Tensor | None = None  # (L,) or (batch, L)

    def extend(self, keys: Tensor, values: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Append the new tokens and return all tokens so far. Raises ValueError if they do not continue the cached ones."""
        new = {"keys": keys, "values": values, "positions": positions}
        shapes = ", ".join(f"{name} {tuple(require_tensor(name, tensor).shape)}" for name, tensor in new.items())
        batch, length = keys.shape[:1], keys.shape[-2:-1]
        if keys.ndim != 4 or keys.shape[:3] != values.shape[:3] or positions.shape not in (length, batch + length):
            raise ValueError(
                f"a cache takes keys and values (batch, heads, L, d_head) and positions (L,) or (batch, L), got {shapes}: "
                "give each token one of each"
            )
        if self.keys is not None and self.values is not None and self.positions is not None:
            try:
                keys = torch.cat((self.keys, keys), dim=-2)
                values = torch.cat((self.values, values), dim=-2)
                positions = torch.cat((self.positions, positions), dim=-1)
            except RuntimeError as error:
                raise ValueError(
                    f"{shapes} do not continue the cached keys {tuple(self.keys.shape)} at positions "
                    f"{tuple(self.positions.shape)}: keep to one batch and one shape of positions, or begin with a new cache"
                ) from error
        self.keys, self.values, self.positions = keys, values, positions
        return keys, values, positions


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention that lets a scheme in through its second and third door.

    d_model is split evenly over num_heads; no projection has a bias term, so that nothing but x and the scheme matters.
    Chapter 01.
    """

    def __init__(self, d_model: int, num_heads: int, scheme: PositionScheme, *, causal: bool) -> None:
        super().__init__()
        d_model = require_integer("d_model", d_model, minimum=1, hint="it is the width of the token vectors, e.g. 64")
        self.num_heads = require_integer("num_heads", num_heads, minimum=1, hint="one head is the least, e.g. 4")
        if d_model % num_heads:
            raise ValueError(
                f"d_model={d_model} is no multiple of num_heads={num_heads}: each head takes as many channels, so change one"
            )
        if not isinstance(scheme, PositionScheme):
            raise ValueError(f"scheme must be a PositionScheme, got {scheme!r}: PositionScheme() itself adds no positions")
        self.d_model = d_model
        self.scheme = scheme
        self.causal = causal
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor, positions: Tensor, cache: Cache | None = None, *, padding: Tensor | None = None) -> Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) -> the same shape; with a cache, after the tokens in it.

        padding, (batch, L_key), is True where a key, cached ones first, is padding: only padding looks at it.
        """
        require_embedding(x, positions, self.d_model)
        q, k, v = (self._split(project(x)) for project in (self.query, self.key, self.value))
        q, k = self.scheme.rotate(q, k, positions, positions)
        k_positions = positions
        if cache is not None:
            k, v, k_positions = cache.extend(k, v, positions)
        mask = causal_mask(positions, k_positions) if self.causal else None  # (L, L_key) or (batch, L, L_key)
        if padding is not None:
            require_padding(padding, len(x), k.shape[-2])
            seen = ~padding.unsqueeze(-2) | padding[:, -x.shape[1] :].unsqueeze(-1)  # (batch, L, L_key)
            mask = seen if mask is None else mask & seen
        if mask is not None and mask.ndim == 3:
            mask = mask.unsqueeze(1)  # the same for all heads
        mixed = attention(q, k, v, bias=self.scheme.bias(q, positions, k_positions), mask=mask)  # (batch, heads, L, d_head)
        return self.output(mixed.transpose(1, 2).flatten(start_dim=2))  # (batch, L, d_model)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, L, d_head)
