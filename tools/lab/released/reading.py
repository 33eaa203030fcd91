"""The model, the texts, and how its losses on them are measured."""

import json
import lzma
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course.attention import Cache
from posenc_course.experiment.corpus import DATA, load_corpus
from posenc_course.experiment.recital import NUMBERS, STARTS
from posenc_course.llama import Llama, load_llama
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from tools.lab.released.schemes import PLAIN, OtherHeads

FOLDER = DATA / "released"
# 14 units, of which the model was trained on 8.
TOKENS = 14_336
Scheme = PositionScheme | list[PositionScheme]
Record = dict[str, Any]


class Bench(NamedTuple):
    """The model, the texts as token ids, and how much of them is read."""

    model: Llama
    texts: dict[str, Tensor]
    counting: Tensor  # (20, tokens)
    decode: Callable[[list[int]], str]
    unit: int  # 1,024, but in tests

    def measured(
        self, scheme: Scheme, units: int, width: int, *, few: bool = False, start: int = 0, positions: Tensor | None = None
    ) -> Record:
        """The losses of all texts, or of four, under a scheme, each token given those from `start` on.

        They are means over `width` tokens, in thousandths of a nat.
        """
        names = [*self.texts][:4] if few else [*self.texts]
        windows = torch.stack([self.texts[name][start : start + units * self.unit + 1] for name in names])
        self.model.use(scheme)
        losses = [self.model.losses(some, positions=positions).cpu() for some in self.parts(windows)]
        means = torch.cat(losses).unflatten(1, (-1, width * self.unit // 1024)).mean(dim=2)
        return {"width": width, "losses": dict(zip(names, whole(means), strict=True))}

    def rope_but(self, changed: dict[int, PositionScheme]) -> list[PositionScheme]:
        """One scheme per layer: RoPE, but for these."""
        return [changed.get(layer, PLAIN) for layer in range(len(self.model.blocks))]

    def in_heads(self, heads: Sequence[tuple[int, int]], rope: RotaryPositions) -> dict[int, PositionScheme]:
        """Another RoPE in these heads, (layer, head), at most one in each layer, as far as the model has them."""
        return {layer: OtherHeads([head], rope) for layer, head in heads if layer < len(self.model.blocks)}

    def parts(self, tokens: Tensor) -> tuple[Tensor, ...]:
        """Rows of tokens: on a graphics card all at once, and otherwise one by one."""
        return tokens.split(len(tokens) if tokens.is_cuda else 1)


# What is measured, and what was found.
Step = tuple[Record, Record]
Steps = Iterator[Step]


def whole(x: Tensor, factor: int = 1000) -> Any:
    return (x.double() * factor).round().int().tolist()


def predicted(bench: Bench, tokens: Tensor, caches: list[Cache] | None = None) -> tuple[Tensor, Tensor]:
    """Whether each next token is the most likely one, and its loss, both (texts, L) for tokens (texts, L + 1)."""
    hits, losses = [], []
    x, targets = bench.model.features(tokens[:, :-1], caches=caches), tokens[:, 1:]
    for some, y in zip(x.split(512, dim=1), targets.split(512, dim=1), strict=True):
        scores = some @ bench.model.embedding.weight.T
        hits.append((scores.argmax(dim=-1) == y).cpu())
        losses.append(F.cross_entropy(scores.mT, y, reduction="none").cpu())
    return torch.cat(hits, dim=1), torch.cat(losses, dim=1)


def texts() -> dict[str, str]:
    """Code and prose by turns, so that the first four are two of each."""
    held_out = bytes(load_corpus().validation.tolist()).decode()
    starts = [held_out.rfind("\n", 0, 160_000 * n) + 1 for n in range(5)]
    code = {f"code {n + 1}": held_out[start : start + 80_000] for n, start in enumerate(starts)}
    prose = {one["name"]: one["text"] for one in json.loads(lzma.decompress((FOLDER / "prose.xz").read_bytes()))}
    return {name: text for both in zip(code.items(), prose.items(), strict=True) for name, text in both}


def prepare(device: str) -> Bench:
    model, tokenizer = load_llama()
    # The texts have a few more tokens than are read, for comparison with what the model writes.
    ids = {name: torch.tensor(tokenizer.encode(text).ids[: TOKENS + 1], device=device) for name, text in texts().items()}
    counting = [tokenizer.encode((NUMBERS * (TOKENS // 20 + 2))[start:]).ids[: TOKENS + 1] for start in STARTS]
    assert {*map(len, counting), *map(len, ids.values())} == {TOKENS + 1}, "a text is too short"
    return Bench(model.to(device), ids, torch.tensor(counting, device=device), tokenizer.decode, TOKENS // 14)


def fused(query: Tensor, key: Tensor, value: Tensor, *, bias: Tensor | None, mask: Tensor) -> Tensor:
    """`attention` in one kernel, which doesn't write all scores to memory: it takes a third of the time."""
    allowed = mask if bias is None else bias.masked_fill(~mask, -math.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
