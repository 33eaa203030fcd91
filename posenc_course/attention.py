"""Scaled dot-product and multi-head attention (Vaswani et al. 2017, section 3.2)."""

import math
from copy import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course._validation import CAUSAL, D_MODEL, DOOR, NUM_HEADS, checked, head_width, refuse
from posenc_course.schemes import PositionScheme

_QUERY_AND_KEY = {
    "query": "float ... L_query d_head: give each token a row",
    "key": "float=query ... L_key d_head: project query and key to the same width and dtype",
}
_BIAS_AND_MASK = {
    "bias": "float? -> ... L_query L_key: it is added to the scores; pass booleans as mask, and other dtypes as bias.float()",
    "mask": "bool? -> ... L_query L_key: it is True where a query may look; pass 0 and 1 as mask.bool()",
}
TOKENS = {  # what one layer of a model takes
    "x": DOOR["x"],
    "positions": DOOR["positions"],
    "padding": "bool? batch L_key: it is True where a token is padding; give one flag per token, cached tokens first",
}


def require_flags(padding: Tensor, length: int) -> None:
    """Raise a ValueError unless padding has as many columns as there are tokens."""
    if padding.shape[-1] != length:
        refuse("padding", f"one flag for each of {length} tokens", padding, "put the flags of cached tokens first")


@checked(**_QUERY_AND_KEY, **_BIAS_AND_MASK)
def attention_weights(query: Tensor, key: Tensor, *, bias: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    """How much each query attends to each key: softmax(q·k/√d_head + bias), shape (..., L_query, L_key).

    query is (..., L_query, d_head) and key is (..., L_key, d_head). bias is added to the scores; mask is boolean, True where a
    query may look; both broadcast to the shape of the weights. Raises ValueError for shapes and dtypes that don't fit, for a
    query that may not look at any key (its softmax would be 0/0), and for +∞ in bias (∞/∞). NaN gives NaN, as in torch.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # (..., L_query, L_key)
    if bias is not None:
        scores = scores + bias.to(scores)
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    weights = scores.softmax(dim=-1)
    # If one weight is 0/0, its whole row is, so checking one column is enough; only if it fails do we check all scores.
    if (mask is not None or bias is not None) and weights[..., 0].isnan().any():
        blind = scores.isneginf().all(dim=-1)
        if blind.any():
            raise ValueError(
                f"query {tuple(blind.nonzero()[0].tolist())} in scores of shape {tuple(scores.shape)} has no key to look at: "
                "mask and bias must leave it at least one key, for example its own"
            )
        _refuse_infinity(bias)
    return weights


def _refuse_infinity(bias: Tensor | None) -> None:
    """Raise a ValueError if a bias holds +∞."""
    if bias is not None and bias.isposinf().any():
        refuse("bias", "finite or -inf", math.inf, "-inf hides a key, and a large finite number prefers it to all others")


@checked(
    **_QUERY_AND_KEY,
    value="float=query ... L_key d_value: give each key a value, projected from the same tokens",
    **_BIAS_AND_MASK,
)
def attention(query: Tensor, key: Tensor, value: Tensor, *, bias: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention: each query's weighted mean of the values, shape (..., L_query, d_value).

    value is (..., L_key, d_value); the other arguments and the errors are those of `attention_weights`.
    """
    return attention_weights(query, key, bias=bias, mask=mask) @ value


@checked(
    **_QUERY_AND_KEY,
    value="float=query ... L_key d_value: give each key a value, projected from the same tokens",
    **_BIAS_AND_MASK,
)
def linear_attention(
    query: Tensor, key: Tensor, value: Tensor, *, bias: Tensor | None = None, mask: Tensor | None = None
) -> Tensor:
    """Attention without softmax: the values, weighted with exp(bias)·q·k/√d_head; the shapes are those of `attention`.

    Weights may be negative and needn't add up to 1, so each output is divided by its root mean square, as in retentive networks
    (Sun et al. 2023), but without learned factors. If the bias is that of forget gates, the sum over all keys can be carried
    along as a state (Yang et al. 2024), so this is the parallel form of a recurrent layer. Raises ValueError as `attention`
    does, but a query may be left without keys: its output is 0.
    """
    weights = query @ key.mT / math.sqrt(query.shape[-1])  # (..., L_query, L_key)
    decay = torch.zeros_like(weights) if bias is None else bias.to(weights)
    if mask is not None:
        decay = torch.where(mask, decay, -math.inf)
    mixed = weights * decay.exp() @ value
    # By itself, torch 2.4 adds half precision's epsilon, which may be larger than the mean square; later versions add this.
    mixed = F.rms_norm(mixed, mixed.shape[-1:], eps=torch.finfo(torch.promote_types(mixed.dtype, torch.float32)).eps)
    if bias is not None and mixed[..., 0].isnan().any():
        _refuse_infinity(bias)
    return mixed


@checked(q_positions="real tensor [batch] L_query", k_positions="real tensor [batch] L_key")
def causal_mask(q_positions: Tensor, k_positions: Tensor) -> Tensor:
    """The mask that is True where the key is not later than the query, shape (L_query, L_key) or (batch, L_query, L_key).

    Positions are tensors of real numbers, (L,) or (batch, L). Raises ValueError for anything else.
    """
    return k_positions.unsqueeze(-2) <= q_positions.unsqueeze(-1)


@dataclass
class Cache:
    """Keys, values and positions of the tokens that one attention layer has seen, for decoding token by token."""

    keys: Tensor | None = None  # (batch, heads, L, d_head), already rotated
    values: Tensor | None = None  # (batch, heads, L, d_head)
    positions: Tensor | None = None  # (L,) or (batch, L)
    located: Tensor | None = None  # (batch, heads, L, …), if the scheme computes positions from the tokens

    @checked(
        keys="float batch heads L d_head: give each new token a key, a value and a position",
        values="float batch heads L d_value: give each new token a key, a value and a position",
        positions="real tensor [batch] L: give each new token a position",
    )
    def extend(self, keys: Tensor, values: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Append new tokens, and return the keys, values and positions of all tokens so far.

        keys are (batch, heads, L, d_head), values are (batch, heads, L, d_value), and positions are (L,) or (batch, L). Raises
        ValueError if their shapes don't fit those in the cache.
        """
        if self.keys is not None and self.values is not None and self.positions is not None:
            shapes = f"keys {tuple(keys.shape)}, values {tuple(values.shape)} and positions {tuple(positions.shape)}"
            try:
                keys = torch.cat((self.keys, keys), dim=-2)
                values = torch.cat((self.values, values), dim=-2)
                positions = torch.cat((self.positions, positions), dim=-1)
            except RuntimeError as error:
                raise ValueError(
                    f"{shapes} do not continue the cached keys {tuple(self.keys.shape)} and positions "
                    f"{tuple(self.positions.shape)}: keep the batch size and the form of positions, or start with a new cache"
                ) from error
        self.keys, self.values, self.positions = keys, values, positions
        return keys, values, positions


def _require_cache(cache: object) -> None:
    if not isinstance(cache, Cache | None):
        refuse("cache", "a Cache", cache, "pass the same Cache() to every call, or leave it out")


class MultiHeadAttention(nn.Module):
    """Multi-head self-attention in which a scheme can use the second and the third door.

    d_model is split evenly among num_heads. The projections have no bias terms, so nothing but x and the scheme contributes to
    the scores. Raises ValueError unless d_model is a multiple of num_heads.
    """

    @checked(d_model=D_MODEL, num_heads=NUM_HEADS, scheme="PositionScheme", causal=CAUSAL)
    def __init__(self, d_model: int, num_heads: int, scheme: PositionScheme, *, causal: bool) -> None:
        super().__init__()
        head_width(d_model, num_heads)
        self.d_model = d_model
        self.num_heads = num_heads
        self.scheme = scheme
        self.causal = causal
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    @checked(**TOKENS)
    def forward(self, x: Tensor, positions: Tensor, cache: Cache | None = None, *, padding: Tensor | None = None) -> Tensor:
        """Self-attention over x (batch, L, d_model) at positions (L,) or (batch, L); the result has the shape of x.

        With a cache, x continues the tokens in it, and is added to them. padding, (batch, L_key), is True where a key is
        padding, cached keys first; only padding looks at such a key. Raises ValueError for shapes that don't fit.
        """
        _require_cache(cache)
        q, k, v = (self._split(project(x)) for project in (self.query, self.key, self.value))
        longer = copy(cache)  # so that a call that fails leaves the cache as it was
        before = None if longer is None or longer.located is None else longer.located[:, :, -1:]
        located = self.scheme.locate(x, positions, before)
        q, k = self.scheme.rotate(q, k, located, located)
        k_positions, k_located = positions, located
        if longer is not None:
            k, v, k_positions = longer.extend(k, v, positions)
            k_located = k_positions
            if located is not positions:
                k_located = longer.located = located if longer.located is None else torch.cat((longer.located, located), dim=2)
        mask = causal_mask(positions, k_positions) if self.causal else None  # (L, L_key) or (batch, L, L_key)
        if padding is not None:
            require_flags(padding, k.shape[-2])
            seen = ~padding.unsqueeze(-2) | padding[:, -x.shape[1] :].unsqueeze(-1)  # (batch, L, L_key)
            mask = seen if mask is None else mask & seen
        if mask is not None and mask.ndim == 3:
            mask = mask.unsqueeze(1)  # the same for all heads
        attend = attention if self.scheme.softmax else linear_attention
        mixed = attend(q, k, v, bias=self.scheme.bias(q, located, k_located), mask=mask)  # (batch, heads, L, d_head)
        if cache is not None:
            vars(cache).update(vars(longer))
        return self.output(mixed.transpose(1, 2).flatten(start_dim=2))  # (batch, L, d_model)

    def extra_repr(self) -> str:
        """What `print` shows besides the modules inside."""
        return f"num_heads={self.num_heads}, causal={self.causal}"

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (batch, heads, L, d_head)
