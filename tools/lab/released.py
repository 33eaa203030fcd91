"""What a released model, SmolLM2-135M-Instruct, does beyond its training length, and what its heads do with their pairs.

    python tools/lab/released.py                       # takes a day on two cores
    python tools/lab/released.py --device cuda         # takes some minutes
    python tools/lab/released.py --tokens 448 --layers 2 --texts 2 --folder /tmp/trial

Each group of measurements has its own file in posenc_course/data/released, and an interrupted call continues with the next
one. Ten texts of 14,336 tokens are read, five pieces of the course's held-out code and five of prose (prose.xz says whose);
beside them, the model counts from one to twenty. `--tokens` shortens all lengths alike. Losses are means over 64, 128 or 256
tokens, in thousandths of a nat. Nothing is trained.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import gguf  # type: ignore[import-not-found, unused-ignore]
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course import llama, rope_scaling
from posenc_course.attention import Cache, attention_weights, causal_mask
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.corpus import DATA, load_corpus
from posenc_course.experiment.recital import NUMBERS, STARTS
from posenc_course.llama import Llama, load_llama, released_weights
from posenc_course.rope import RotaryPositions, apply_rope, rope_tables
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies

FOLDER = DATA / "released"
TOKENS = 14_336  # 14 units, of which the model was trained on 8
OMEGA = frequencies(64, base=100_000.0)
PLAIN = RotaryPositions(OMEGA)
Scheme = PositionScheme | list[PositionScheme]
Record = dict[str, Any]


# ── schemes that only these measurements need ────────────────────────────────────────────────────────────────────────────


class KeptPositions(PositionScheme):
    """RoPE in a window, beside which the first tokens stay in sight.

    `cap` is the largest distance from the beginning that a query has for the first tokens: with first + window - 1, their
    positions are counted within what is kept, as in StreamingLLM (Xiao et al. 2024); with None, in the text.
    """

    def __init__(self, window: float, first: int, cap: int | None) -> None:
        super().__init__()
        self.window, self.first, self.cap = window, first, cap

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        near_q, near_k = PLAIN.rotate(q, k, q_positions, k_positions)
        if self.cap is None:
            return near_q, near_k
        capped = q_positions.clamp(max=self.cap)
        far_q = PLAIN.rotate(q, q, capped, capped)[0]
        first = (k_positions < self.first).unsqueeze(-1)
        # A key has zeros in the half that isn't meant for it. Scores are divided by the root of the width, which is doubled.
        q = torch.cat((near_q, far_q), dim=-1) * math.sqrt(2)
        return q, torch.cat((near_k * ~first, near_k * first), dim=-1)

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        if self.window == math.inf:
            return None
        far = (q_positions[:, None] - k_positions >= self.window) & (k_positions >= self.first)
        return q.new_zeros(1, 1, *far.shape).masked_fill(far, -math.inf)


class HidingPositions(RotaryPositions):
    """RoPE, but queries from some position on don't see some tokens, unless told otherwise the first."""

    def __init__(self, start: int, hidden: Sequence[int] = (0,)) -> None:
        super().__init__(OMEGA)
        self.start, self.hidden = start, hidden

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        which = torch.isin(k_positions, torch.tensor(self.hidden, device=k_positions.device))
        hidden = (q_positions[:, None] >= self.start) & which
        return q.new_zeros(1, 1, *hidden.shape).masked_fill(hidden, -math.inf)


class RoughPositions(PositionScheme):
    """RoPE with positions, angles or tables in a lower precision."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def tables(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        if self.what == "positions in bfloat16":
            return rope_tables(positions.bfloat16().double(), OMEGA)
        if self.what == "tables in bfloat16":
            cos, sin = rope_tables(positions, OMEGA)
            return cos.bfloat16().float(), sin.bfloat16().float()
        dtype = {"angles in float32": torch.float32, "angles in bfloat16": torch.bfloat16}[self.what]
        angles = (positions.to(dtype)[:, None] * OMEGA.to(positions.device, dtype)).float()
        return angles.cos(), angles.sin()

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.tables(q_positions)
        return apply_rope(q, cos, sin, interleaved=True), apply_rope(k, cos, sin, interleaved=True)


class Listening(PositionScheme):
    """RoPE that passes on queries and keys, as they come and rotated; keys are repeated, one for each head."""

    def __init__(self, hear: Callable[[Tensor, Tensor, Tensor, Tensor], None], rope: PositionScheme = PLAIN) -> None:
        super().__init__()
        self.hear, self.rope = hear, rope

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        rotated = self.rope.rotate(q, k, q_positions, k_positions)
        self.hear(q, k, *rotated)
        return rotated


class OtherHeads(PositionScheme):
    """RoPE in which some heads have other frequencies; keys are repeated, one for each head."""

    def __init__(self, heads: Sequence[int], other: RotaryPositions) -> None:
        super().__init__()
        self.heads, self.other = heads, other

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        q, k, other_q, other_k = (x.clone() for one in (PLAIN, self.other) for x in one.rotate(q, k, q_positions, k_positions))
        q[:, self.heads], k[:, self.heads] = other_q[:, self.heads], other_k[:, self.heads]
        return q, k


class WithoutPairs(PositionScheme):
    """RoPE in which some pairs contribute nothing to any score."""

    def __init__(self, pairs: Sequence[int]) -> None:
        super().__init__()
        self.kept = torch.ones(len(OMEGA), 1)
        self.kept[[*pairs]] = 0

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q = (q.unflatten(-1, (-1, 2)) * self.kept.to(q.device)).flatten(-2)
        return PLAIN.rotate(q, k, q_positions, k_positions)


class ClampedPairs(RotaryPositions):
    """RoPE in which some pairs stop rotating at a distance of their own, the largest that they show; all others go on.

    `caps` has these pairs and their distances. The cache is that of the layer: it holds all keys, rotated.
    """

    def __init__(self, caps: dict[int, int], cache: Cache) -> None:
        super().__init__(OMEGA)
        self.caps, self.cache = caps, cache

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor | None:
        """What the clamped pairs add to the scores at their last distance, minus what they add as they are."""
        assert self.cache.keys is not None
        changed = q.new_zeros(*q.shape[:-1], len(k_positions))
        for cap in {*self.caps.values()}:
            far = k_positions[k_positions < q_positions.max() - cap]
            if not len(far):
                continue
            k = self.cache.keys[:, :, : len(far)].repeat_interleave(q.shape[1] // self.cache.keys.shape[1], dim=1)
            channels = [c for pair, own in self.caps.items() if own == cap for c in (2 * pair, 2 * pair + 1)]
            # Rotated back, and then by the cap alone.
            back_q, back_k = self.rotate(q, k, cap - q_positions, -far)
            at_cap, as_is = (a[..., channels] @ b[..., channels].mT for a, b in ((back_q, back_k), (q, k)))
            changed[..., : len(far)] += (at_cap - as_is) * (q_positions[:, None] - far > cap) / math.sqrt(q.shape[-1])
        return changed


def slowed(pairs: Sequence[int], factor: float) -> RotaryPositions:
    """RoPE with the speed of these pairs multiplied by a factor; 0 stops them."""
    omega = OMEGA.clone()
    omega[[*pairs]] *= factor
    return RotaryPositions(omega)


def recipe(name: str, factor: float, trained: int) -> RotaryPositions:
    """A trained RoPE, stretched."""
    omega = {
        "interpolation": lambda: rope_scaling.position_interpolation(OMEGA, factor),
        "NTK-aware": lambda: rope_scaling.ntk_aware(OMEGA, factor),
        "YaRN": lambda: rope_scaling.yarn(OMEGA, factor, trained),
        "YaRN without its attention factor": lambda: rope_scaling.yarn(OMEGA, factor, trained),
        "Llama 3": lambda: rope_scaling.llama3(OMEGA, factor, trained),
    }[name]()
    return RotaryPositions(omega, attention_factor=rope_scaling.yarn_attention_factor(factor) if name == "YaRN" else 1.0)


# ── the measurements ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Bench(NamedTuple):
    """The model, the texts as token ids, and how much of them is read."""

    model: Llama
    texts: dict[str, Tensor]
    counting: Tensor  # (20, tokens)
    decode: Callable[[list[int]], str]
    unit: int  # 1,024 unless shortened
    kept: dict[tuple[int, ...], tuple[int, Tensor]]  # what so many layers, as released, make of these tokens

    def measured(
        self, scheme: Scheme, units: int, width: int, *, few: bool = False, start: int = 0, positions: Tensor | None = None
    ) -> Record:
        """The losses of all texts, or of four, under a scheme, each token given those from `start` on.

        They are means over `width` tokens, in thousandths of a nat.
        """
        names = [*self.texts][:4] if few else [*self.texts]
        windows = torch.stack([self.texts[name][start : start + units * self.unit + 1] for name in names])
        self.model.use(scheme)
        first = next((n for n, one in enumerate(scheme) if one is not PLAIN), 0) if isinstance(scheme, list) else 0
        read = partial(self.losses_from, first) if first else partial(self.model.losses, positions=positions)
        losses = [read(some).cpu() for some in windows.split(10 if windows.is_cuda else 1)]
        means = torch.cat(losses).unflatten(1, (-1, width * self.unit // 1024)).mean(dim=2)
        return {"width": width, "losses": dict(zip(names, whole(means), strict=True))}

    def rope_but(self, changed: dict[int, PositionScheme]) -> list[PositionScheme]:
        """One scheme per layer: RoPE, but for these."""
        return [changed.get(layer, PLAIN) for layer in range(len(self.model.blocks))]

    def in_heads(self, heads: Sequence[tuple[int, int]], rope: RotaryPositions) -> dict[int, PositionScheme]:
        """Another RoPE in these heads, (layer, head), at most one in each layer, as far as the model has them."""
        return {layer: OtherHeads([head], rope) for layer, head in heads if layer < len(self.model.blocks)}

    def losses_from(self, first: int, tokens: Tensor) -> Tensor:
        """The losses of tokens (batch, L + 1) if all layers before the `first` are as released: theirs are computed once."""
        blocks, key = self.model.blocks, tuple(tokens.flatten().tolist())
        done, x = self.kept.get(key, (len(blocks), tokens))
        if done > first:
            done, x = 0, self.model.embedding(tokens[:, :-1])
        for block in blocks[done:first]:
            x = block(x, torch.arange(x.shape[1], device=x.device), None)
        self.kept[key] = first, x
        hook = self.model.embedding.register_forward_hook(lambda *_: x)
        self.model.blocks = blocks[first:]
        losses = self.model.losses(tokens)
        self.model.blocks = blocks
        hook.remove()
        return losses


def whole(x: Tensor, factor: int = 1000) -> Any:
    return (x.double() * factor).round().int().tolist()


Step = tuple[Record, Callable[[], Record]]  # what is measured, and the measurement


def cliff(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """As released, and the same tokens with a shorter past."""
    for start in (0, 6):
        setting = {"from": 1024 * start}
        yield setting, partial(bench.measured, PLAIN, 14 - start, 64, start=start * bench.unit)


def scan(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """Pairs at other speeds: one by one, and together."""
    alone = [([pair], 0.5, False) for pair in sorted(range(32), key=lambda pair: abs(pair - 22))]
    together = [
        [22, 23],
        [21, 22, 23],
        [22, 23, 24],
        [20, 21, 22, 23, 24],
        [*range(20, 32)],
        [*range(22, 32)],
        [*range(24, 32)],
    ]
    groups = [(pairs, 0.5, False) for pairs in together]
    other = [([pair], factor, True) for factor in (0.75, 1.25, 1.5, 0.25, 0.0) for pair in range(19, 26)]
    for pairs, factor, few in alone + groups + other:
        setting = {"pairs": pairs, "speed": factor}
        yield setting, partial(bench.measured, slowed(pairs, factor), 12, 128, few=few)


def recipes(bench: Bench, done: list[Record]) -> Iterator[Step]:
    names = ("interpolation", "NTK-aware", "YaRN", "Llama 3", "YaRN without its attention factor")
    for factor in (2, 4):
        for name in names:
            setting, scheme = {"recipe": name, "factor": factor}, recipe(name, factor, 8 * 1024)
            yield setting, partial(bench.measured, scheme, 14, 128)


def windows(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """Windows, with and without the first tokens, whose positions are counted in the text or within what is kept."""
    u = bench.unit
    for window, first, where in [
        (None, 4, "at most 8191"), (2, 0, "text"), (2, 4, "text"), (2, 4, "kept"), (8, 4, "kept"), (8, 4, "text"),
        (8, 0, "text"), (2, 1, "kept"), (None, 1, "at most 8191"),
    ]:  # fmt: skip
        size = math.inf if window is None else window * u
        cap = None if where == "text" else 8 * u - 1 if window is None else first + window * u - 1
        setting = {"window": window and 1024 * window, "first": first, "positions": where}
        scheme = KeptPositions(size, first, cap)
        yield setting, partial(bench.measured, scheme, 14, 128)


def precision(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """Positions counted from elsewhere, positions and angles in few bits, and weights with more noise."""
    kinds = ("angles in float64", "angles in float32")
    for kind in kinds:
        for shift in (0, 10**6, 10**9):
            setting: Record = {"shift": shift, "computed": kind}
            positions = shift + torch.arange(2 * bench.unit, device=bench.counting.device)
            scheme = PLAIN if kind == kinds[0] else RoughPositions(kind)
            yield setting, partial(bench.measured, scheme, 2, 256, positions=positions)
    for kind in ("positions in bfloat16", "tables in bfloat16", "angles in bfloat16"):
        yield {"computed": kind}, partial(bench.measured, RoughPositions(kind), 8, 256)
    for seed in (0, 1, 2):
        yield {"noise": seed}, partial(noisy, bench, seed)


@cache
def steps_of_weights() -> dict[str, Tensor]:
    """The distance between neighbouring values of each four-bit weight, by the matrix's name in the file."""
    found = {}
    for tensor in gguf.GGUFReader(released_weights()).tensors:
        if tensor.tensor_type == gguf.GGMLQuantizationType.Q4_1:
            # A block of 20 bytes has a step and a minimum in float16, and then 32 weights.
            steps = np.ascontiguousarray(tensor.data.reshape(len(tensor.data), -1, 20)[..., :2]).view(np.float16)[..., 0]
            found[tensor.name] = torch.from_numpy(steps.astype(np.float32)).repeat_interleave(32, dim=1)
    return found


def noisy(bench: Bench, seed: int) -> Record:
    """Four texts' losses after adding to each four-bit weight a random number as large as its rounding error may be."""
    generator = torch.Generator().manual_seed(seed)
    before: dict[torch.nn.Parameter, Tensor] = {}
    weights = dict(bench.model.named_parameters())
    for name, step in steps_of_weights().items():
        weight = weights.get(llama.own_name(name))
        if weight is not None:
            before[weight] = weight.clone()
            weight.add_((step * (torch.rand(step.shape, generator=generator) - 0.5)).to(weight.device))
    found = bench.measured(PLAIN, 12, 128, few=True)
    for weight, old in before.items():
        weight.copy_(old)
    return found


def written(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """How far the model counts, and what it writes at several lengths, always the most likely token."""
    yield {"counts": "given the right text"}, partial(count, bench)
    for number in (0, 7):
        yield {"counts": "freely", "start": number}, partial(count_on, bench, number)
    for context in (8, 13, 10, 11):
        yield {"after": 1024 * context}, partial(write_on, bench, context * bench.unit)


def predicted(bench: Bench, tokens: Tensor, caches: list[Cache] | None = None) -> tuple[Tensor, Tensor]:
    """Whether each next token is the most likely one, and its loss, both (texts, L) for tokens (texts, L + 1)."""
    hits, losses = [], []
    x, targets = bench.model.features(tokens[:, :-1], caches=caches), tokens[:, 1:]
    for some, y in zip(x.split(512, dim=1), targets.split(512, dim=1), strict=True):
        scores = some @ bench.model.embedding.weight.T
        hits.append((scores.argmax(dim=-1) == y).cpu())
        losses.append(F.cross_entropy(scores.mT, y, reduction="none").cpu())
    return torch.cat(hits, dim=1), torch.cat(losses, dim=1)


def count(bench: Bench) -> Record:
    """Of each text that begins with another number: the share of right tokens by position, and the first wrong ones."""
    bench.model.use(PLAIN)
    some = [predicted(bench, text) for text in bench.counting.split(5 if bench.counting.is_cuda else 1)]
    hits, losses = (torch.cat(parts) for parts in zip(*some, strict=True))
    begin, width = 200 * bench.unit // 1024, 128 * bench.unit // 1024
    return {
        "wrong": [[n + 1 for n in row.nonzero().flatten().tolist() if n + 1 >= begin][:20] for row in ~hits],
        "right": whole(hits.double().unflatten(1, (-1, width)).mean(dim=(0, 2))),
        "width": 128,
        "losses": whole(losses.unflatten(1, (-1, width)).mean(dim=(0, 2))),
    }


def count_on(bench: Bench, number: int) -> Record:
    """What the model writes from its first mistake after token 200 on; up to there, it writes the right text."""
    bench.model.use(PLAIN)
    text = bench.counting[number : number + 1]
    missed = (~predicted(bench, text)[0][0]).nonzero().flatten() + 1
    missed = missed[missed >= 200 * bench.unit // 1024]
    if not len(missed):
        return {"first wrong": None}
    end = int(missed[0])
    new = write(bench, text[:, :end], 160 * bench.unit // 1024)[0]
    return {"first wrong": end, "before": bench.decode(text[0, end - 24 : end].tolist()), "wrote": bench.decode(new.tolist())}


def write(bench: Bench, texts: Tensor, tokens: int) -> Tensor:
    """Continue token ids (n, L) by some tokens (n, tokens), always the most likely one."""
    caches, new, found = bench.model.new_caches(), texts, []
    for _ in range(tokens):
        x = bench.model.features(new, caches=caches)[:, -1:]
        new = (x @ bench.model.embedding.weight.T).argmax(dim=-1)
        found.append(new)
    return torch.cat(found, dim=1)


def write_on(bench: Bench, context: int) -> Record:
    """200 tokens after each text's first ones, and their loss if the same model reads them with a short past."""
    bench.model.use(PLAIN)
    some = dict([*bench.texts.items()][: None if context in (8 * bench.unit, 13 * bench.unit) else 4])
    texts = torch.stack([text[:context] for text in some.values()])
    number, past = 200 * bench.unit // 1024, 2 * bench.unit
    new = torch.cat([write(bench, each, number) for each in texts.split(10 if texts.is_cuda else 1)])
    losses = bench.model.losses(torch.cat((texts[:, -past:], new), dim=1))[:, -number:].mean(dim=1)
    real = torch.stack([text[context - past : context + number] for text in some.values()])
    expected = bench.model.losses(real)[:, -number:].mean(dim=1)
    return {
        "wrote": {
            name: {
                "text": bench.decode(tokens.tolist()),
                "loss": round(loss.item(), 3),
                "loss of the text's own": round(own.item(), 3),
                "different tokens": len(tokens.unique()),
            }
            for name, tokens, loss, own in zip(some, new, losses, expected, strict=True)
        }
    }


def heads(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """Where each head looks, and with which pairs."""
    for layer in range(len(bench.model.blocks)):
        yield {"layer": layer}, partial(look, bench, layer)
    yield {"queries": "far"}, partial(look_far, bench)


def edges(longest: int) -> list[int]:
    """The first distances of bins: 0, 1, 2, 3, 5, 9, 17, …"""
    return [0, 1, *(2**n + 1 for n in range(20) if 2**n + 1 <= longest)]


def binned(weights: Tensor, queries: Tensor) -> Tensor:
    """Attention (…, Q, K) by distance, without the first token: (…, bins), a mean over the queries."""
    keys = torch.arange(weights.shape[-1], device=weights.device)
    distance = (queries[:, None] - keys).clamp(min=0)
    starts = torch.tensor(edges(int(queries.max())), device=weights.device)
    which = torch.bucketize(distance, starts, right=True) - 1
    which = torch.where((keys == 0) | (keys > queries[:, None]), len(starts), which)
    sums = weights.new_zeros(*weights.shape[:-2], len(starts) + 1)
    flat = weights.flatten(-2)
    return sums.scatter_add_(-1, which.flatten().expand(flat.shape), flat)[..., :-1] / len(queries)


def on_equals(weights: Tensor, tokens: Tensor, queries: Tensor) -> dict[str, Tensor]:
    """Each head's attention on earlier tokens that equal the query's, and on those right after them, where there are any."""
    own, earlier = tokens[queries][:, None], torch.arange(1, len(tokens), device=tokens.device) < queries[:, None]
    found = {}
    for name, others in (("equal", tokens[1:]), ("after equal", tokens[:-1])):
        which = (own == others) & earlier
        share = (weights[:, :, 1:] * which).sum(dim=-1)[:, which.any(dim=1)].mean(dim=-1)
        found[name] = share.cpu()
    return found


def look(bench: Bench, layer: int) -> Record:
    """One layer's heads, over the second thousand tokens of each text (means over texts, shares in thousandths)."""
    found: dict[str, list[Tensor]] = {}
    u = bench.unit
    tokens = torch.stack([text[: 2 * u] for text in bench.texts.values()])
    queries = torch.arange(u, 2 * u, device=tokens.device)
    few = queries[:: max(1, u // 64)]

    def hear(q: Tensor, k: Tensor, rotated_q: Tensor, rotated_k: Tensor) -> None:
        at = torch.arange(2 * u, device=q.device)
        zq, zk = (torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) for x in (q, k))
        scale = math.sqrt(q.shape[-1])
        mean_q = zq[:, :, u:].mean(dim=2)
        wave = mean_q * zk[:, :, 1:].mean(dim=2).conj() / scale
        rest = mean_q * zk[:, :, 0].conj() / scale
        for name, z in (("wave", wave), ("first token's wave", rest)):
            found.setdefault(name, []).append(torch.view_as_real(z).mean(dim=0).cpu())
        for n in range(len(tokens)):  # one text at a time
            weights = attention_weights(rotated_q[n, :, u:], rotated_k[n], mask=causal_mask(queries, at))
            for name, share in on_equals(weights, tokens[n], queries).items():
                found.setdefault(name, []).append(share)
            found.setdefault("first", []).append(weights[:, :, 0].mean(dim=-1).cpu())
            found.setdefault("distances", []).append(binned(weights, queries).cpu())
            # Each pair's part of the scores of some queries and all keys but the first.
            a = rotated_q[n][:, few].unflatten(-1, (-1, 2)).permute(2, 0, 1, 3)  # (pairs, heads, queries, 2)
            b = rotated_k[n][:, 1:].unflatten(-1, (-1, 2)).permute(2, 0, 3, 1)
            seen = (at[1:] <= few[:, None]).float()
            number = seen.sum(dim=-1)
            variances = []
            for one, other in zip(a, b, strict=True):
                part = one @ other / scale
                mean = (part * seen).sum(dim=-1) / number
                variances.append(((part - mean[..., None]).square() * seen).sum(dim=-1) / number)
            share = torch.stack(variances, dim=-1)  # (heads, queries, pairs)
            found.setdefault("variance", []).append(share.mean(dim=1).cpu())

    bench.model.use(bench.rope_but({layer: Listening(hear)}))
    bench.model.features(tokens)
    mean = {name: torch.stack(some).mean(dim=0) for name, some in found.items()}
    spread = {name: torch.stack(found[name]).std(dim=0) for name in ("first", "equal", "after equal")}
    share = mean["variance"] / mean["variance"].sum(dim=-1, keepdim=True)

    return {
        "edges": edges(2 * u - 1),
        "heads": [
            {
                "first": whole(mean["first"][h]),
                "equal": whole(mean["equal"][h]),
                "after equal": whole(mean["after equal"][h]),
                "deviations": [whole(spread[name][h]) for name in spread],
                "distances": whole(mean["distances"][h]),
                "share": whole(share[h]),
                "deviation of scores": whole(mean["variance"][h].sum().sqrt()),
                "wave": whole(mean["wave"][h].flatten(), 100),
                "first token's wave": whole(mean["first token's wave"][h].flatten(), 100),
            }
            for h in range(len(share))
        ],
    }


def look_far(bench: Bench, changed: dict[int, PositionScheme] | None = None) -> Record:
    """Attention by distance, of 64 queries each at the end of training and beyond it; four texts.

    It's that of all heads, or of the heads in layers that are changed.
    """
    u, found = bench.unit, []
    ends = [8 * u, 10 * u, 11 * u, 12 * u]

    def hear(q: Tensor, k: Tensor, rotated_q: Tensor, rotated_k: Tensor) -> None:
        at, rows = torch.arange(12 * u, device=q.device), []
        for end in ends:
            queries = torch.arange(end - 2 * u // 16, end, 2, device=q.device)[-64:]
            weights = attention_weights(rotated_q[:, :, queries], rotated_k, mask=causal_mask(queries, at))
            far = binned(weights, queries)
            far = torch.nn.functional.pad(far, (0, len(edges(12 * u)) - far.shape[-1]))
            rows.append(torch.cat((weights[..., 0].mean(dim=-1, keepdim=True), far), dim=-1).mean(dim=0).cpu())
        found.append(torch.stack(rows, dim=1))  # (heads, ends, 1 + bins)

    heard = changed or dict.fromkeys(range(len(bench.model.blocks)), PLAIN)
    bench.model.use(bench.rope_but({layer: Listening(hear, rope) for layer, rope in heard.items()}))
    by_text = []
    for text in [*bench.texts.values()][:4]:
        found.clear()
        bench.model.features(text[None, : 12 * u])
        by_text.append(torch.stack(found))
    return {
        "ends": [1024 * end // u for end in ends],
        "edges": edges(12 * u),
        "first, then by distance": whole(torch.stack(by_text).mean(dim=0)),
    }


def ablations(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """RoPE stopped, left out or slowed down in some pairs or layers, and the first token hidden."""
    layers, u = len(bench.model.blocks), bench.unit
    fast, slow = range(16), range(16, 32)

    def short(setting: Record, scheme: Scheme) -> Step:
        return setting, partial(bench.measured, scheme, 2, 256)

    yield short({"as": "released"}, PLAIN)
    for n in (2, 4, 6, 8, 12, 16, 24):
        yield short({"stopped": "slowest", "pairs": n}, slowed(range(32 - n, 32), 0))
        yield short({"stopped": "fastest", "pairs": n}, slowed(range(n), 0))
    for out in (range(3, layers, 4), range(layers // 2), range(layers // 2, layers), range(layers)):
        yield short({"without RoPE": [*out]}, bench.rope_but(dict.fromkeys(out, PositionScheme())))
    yield short({"first token": "hidden"}, HidingPositions(u))
    for layer in range(layers):
        yield short({"stopped": "fastest", "pairs": 16, "layer": layer}, bench.rope_but({layer: slowed(fast, 0)}))
        yield short({"stopped": "slowest", "pairs": 16, "layer": layer}, bench.rope_but({layer: slowed(slow, 0)}))
        yield short({"without RoPE": [layer]}, bench.rope_but({layer: PositionScheme()}))
        yield short({"first token": "hidden", "layer": layer}, bench.rope_but({layer: HidingPositions(u)}))


# Heads, as (layer, head): those with more than half of their attention on the token before, and those with more than a fifth
# of it on tokens right after equal ones.
PREVIOUS = ((1, 2), (2, 1), (11, 1), (16, 0), (19, 3))
AFTER_EQUAL = ((17, 3), (17, 5), (18, 6), (20, 6))


def chosen(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """Pairs that contribute nothing to the scores, and pairs stopped in a few heads."""
    groups = {("slowest", 8): range(24, 32), ("slowest", 6): range(26, 32), ("fastest", 8): range(8), ("fastest", 2): range(2)}
    for (which, n), pairs in groups.items():
        yield {"left out": which, "pairs": n}, partial(bench.measured, WithoutPairs(pairs), 2, 256, few=True)
    yield {"stopped": "nothing"}, partial(operated, bench, (), range(0))
    for which, pairs in (("fastest", range(16)), ("slowest", range(16, 32))):
        yield {"stopped": which, "pairs": 16, "heads": "previous"}, partial(operated, bench, PREVIOUS, pairs)
    for seed in range(3):
        setting = {"stopped": "fastest", "pairs": 16, "heads": "others in these layers", "seed": seed}
        yield setting, partial(operated, bench, others(seed), range(16))


def operated(bench: Bench, heads: Sequence[tuple[int, int]], pairs: Sequence[int]) -> Record:
    """Losses with some pairs stopped in some heads, and how much later heads then look at what came after equal tokens."""
    layers, u = len(bench.model.blocks), bench.unit
    tokens = [text[: 2 * u] for text in bench.texts.values()]
    queries, at = (torch.arange(start, 2 * u, device=bench.counting.device) for start in (u, 0))
    found: dict[int, list[Tensor]] = {layer: [] for layer, _ in AFTER_EQUAL if layer < layers}

    def hear(rows: list[Tensor], q: Tensor, k: Tensor, rotated_q: Tensor, rotated_k: Tensor) -> None:
        for one_q, one_k in zip(rotated_q, rotated_k, strict=True):
            weights = attention_weights(one_q[:, u:], one_k, mask=causal_mask(queries, at))
            rows.append(on_equals(weights, tokens[len(rows)], queries)["after equal"])

    changed = bench.in_heads(heads, slowed(pairs, 0)) | {layer: Listening(partial(hear, rows)) for layer, rows in found.items()}
    losses = bench.measured(bench.rope_but(changed), 2, 256, few=True)
    after = [torch.stack(found[layer]).mean(dim=0)[head] for layer, head in AFTER_EQUAL if layer in found]
    return losses | {"heads": [[*head] for head in heads], "after equal": [whole(share) for share in after]}


def controls(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """What ablations are compared with: other tokens hidden, other pairs left out, random tokens twice, and single heads."""
    for hidden in ([16], [64], [0, 1]):
        yield {"hidden": hidden}, partial(bench.measured, HidingPositions(bench.unit, hidden), 2, 256, few=True)
    yield {"left out": "middle", "pairs": 8}, partial(bench.measured, WithoutPairs(range(12, 20)), 2, 256, few=True)
    twice = bench._replace(texts={f"random {seed}": repeated(bench, seed) for seed in range(3)})
    for name, heads in {"nothing": (), "previous": PREVIOUS, "others in these layers": others(0)}.items():
        yield {"repeated": "random tokens", "stopped in": name}, partial(operated, twice, heads, range(16))
    two = bench._replace(texts=dict([*bench.texts.items()][:2]))  # the first two, as was predicted
    yield {"stopped": "nothing", "texts": 2}, partial(operated, two, (), range(0))
    for head in (*PREVIOUS, (1, 0), (11, 2)):
        yield {"stopped": "fastest", "pairs": 16, "head": [*head]}, partial(operated, two, [head], range(16))


def repeated(bench: Bench, seed: int) -> Tensor:
    """Random tokens, as many as a unit has, twice and once more the first."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(bench.model.vocab_size, (bench.unit,), generator=generator)
    return torch.cat((tokens, tokens, tokens[:1])).to(bench.counting.device)


def others(seed: int) -> list[tuple[int, int]]:
    """Five other heads of the layers in which heads look at the token before."""
    sample = random.Random(seed)
    return [(layer, sample.choice([h for h in range(9) if h != head])) for layer, head in PREVIOUS]


def guilty(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """Pair 22 at half speed in single layers, in the best of them, and in single heads; and pairs 22 and 23 in a few heads."""
    layers, at_half, both = len(bench.model.blocks), slowed([22], 0.5), slowed([22, 23], 0.5)

    def slower(setting: Record, changed: dict[int, PositionScheme], *, few: bool = False) -> Step:
        return setting, partial(bench.measured, bench.rope_but(changed), 12, 1024, few=few)

    yield slower({"layers": "all"}, dict.fromkeys(range(layers), at_half))
    for layer in range(layers):
        yield slower({"layers": [layer]}, {layer: at_half})
    alone = [run for run in done if len(run["setting"].get("layers", ())) == 1]
    alone.sort(key=lambda run: sum(losses[-1] for losses in run["losses"].values()))  # from token 11,264 on
    for number in (3, 5, 10):
        best = sorted(run["setting"]["layers"][0] for run in alone[:number])
        yield slower({"layers": best}, dict.fromkeys(best, at_half))
    for head in range(9):
        yield slower({"layer": 16, "head": head}, bench.in_heads([(16, head)], at_half), few=True)
    previous = bench.in_heads(PREVIOUS, both)
    yield slower({"pairs": [22, 23], "heads": "previous"}, previous, few=True)
    for seed in range(3):
        setting = {"pairs": [22, 23], "heads": "others in these layers", "seed": seed}
        yield slower(setting, bench.in_heads(others(seed), both), few=True)
    yield {"pairs": [22, 23], "heads": "previous", "queries": "far"}, partial(look_far, bench, previous)


def clamped(bench: Bench, done: list[Record]) -> Iterator[Step]:
    """Pairs that rotate no farther than at the end of training; text by text, because each is read up to there only once."""
    end = 8 * 1024 - 1
    innocent = [*range(20, 22), *range(24, 32)]  # those that don't complete a rotation, but for 22 and 23
    # Where base 10,000 and 2,048 tokens, as in the first stage of training, had shown an angle last.
    shown = {pair: int(2047 * 10 ** (pair / 32)) for pair in (21, 22, 23, 24)}
    for name in bench.texts:
        read = cache(partial(up_to_the_end, bench, name))
        for caps in ({22: end, 23: end}, dict.fromkeys(innocent, end), shown, {22: end}, {23: end}):
            yield {"text": name, "clamped": [[*each] for each in caps.items()]}, partial(read_on, bench, name, caps, read)


def up_to_the_end(bench: Bench, name: str) -> list[Cache]:
    """What the model keeps of the tokens within the training length, where nothing is clamped."""
    caches = bench.model.new_caches()
    bench.model.use(PLAIN)
    bench.model.features(bench.texts[name][None, : 8 * bench.unit], caches=caches)
    return caches


def read_on(bench: Bench, name: str, caps: dict[int, int], read: Callable[[], list[Cache]]) -> Record:
    """The losses from there to token 12,287, with some pairs clamped."""
    u, caches = bench.unit, [copy(one) for one in read()]
    scaled = {pair: cap * u // 1024 for pair, cap in caps.items()}
    bench.model.use([ClampedPairs(scaled, one) for one in caches])
    losses = predicted(bench, bench.texts[name][None, 8 * u : 12 * u + 1], caches)[1]
    return {"width": 64, "losses": whole(losses[0].unflatten(0, (-1, 64 * u // 1024)).mean(dim=1))}


Make = Callable[[Bench, list[Record]], Iterator[Step]]
GROUPS: dict[str, Make] = {
    "cliff": cliff,
    "windows": windows,
    "scan": scan,
    "recipes": recipes,
    "written": written,
    "heads": heads,
    "precision": precision,
    "ablations": ablations,
    "chosen": chosen,
    "controls": controls,
    "guilty": guilty,
    "clamped": clamped,
}


# ── texts, files and the command ─────────────────────────────────────────────────────────────────────────────────────────


def texts() -> dict[str, str]:
    """Code and prose by turns, so that the first four are two of each."""
    held_out = bytes(load_corpus().validation.tolist()).decode()
    starts = [held_out.rfind("\n", 0, 160_000 * n) + 1 for n in range(5)]
    code = {f"code {n + 1}": held_out[start : start + 80_000] for n, start in enumerate(starts)}
    prose = {one["name"]: one["text"] for one in json.loads(lzma.decompress((FOLDER / "prose.xz").read_bytes()))}
    return {name: text for both in zip(code.items(), prose.items(), strict=True) for name, text in both}


def prepare(device: str, tokens: int, layers: int | None, number: int) -> Bench:
    model, tokenizer = load_llama()
    if layers:
        model.blocks = model.blocks[:layers]
    # The texts have a few more tokens than are read, for comparison with what the model writes.
    ids = {name: torch.tensor(tokenizer.encode(text).ids[: tokens + 1]) for name, text in [*texts().items()][:number]}
    for name, some in ids.items():
        assert len(some) == tokens + 1, f"{name} has only {len(some)} tokens"
    counting = [tokenizer.encode((NUMBERS * (tokens // 20 + 2))[start:]).ids[: tokens + 1] for start in STARTS]
    assert {len(each) for each in counting} == {tokens + 1}, "the numbers are too few"
    return Bench(
        model.to(device),
        {name: some.to(device) for name, some in ids.items()},
        torch.tensor(counting, device=device),
        tokenizer.decode,
        tokens // 14,
        {},
    )


def fused(query: Tensor, key: Tensor, value: Tensor, *, bias: Tensor | None, mask: Tensor) -> Tensor:
    """`attention` in one kernel, which doesn't write all scores to memory: it takes a third of the time."""
    allowed = mask if bias is None else bias.masked_fill(~mask, -math.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a released model does beyond its training length.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="per text, a multiple of 224")
    parser.add_argument("--layers", type=int, help="only the first ones, to try the script out")
    parser.add_argument("--texts", type=int, default=10, help="only the first ones")
    parser.add_argument("--groups", nargs="*", default=[*GROUPS], choices=GROUPS)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin nothing after this time")
    options = parser.parse_args()
    begun = time.monotonic()
    torch.set_float32_matmul_precision("highest")
    bench = prepare(options.device, options.tokens, options.layers, options.texts)
    llama.attention = fused  # type: ignore[attr-defined, assignment]
    now: dict[str, Any] = provenance(options.device) | {
        "weights": {"file": released_weights().name, "sha256": hashlib.sha256(released_weights().read_bytes()).hexdigest()},
        "prose": hashlib.sha256((FOLDER / "prose.xz").read_bytes()).hexdigest(),
        "tokens": options.tokens,
        "attention": "fused",
    }
    for group in options.groups:
        path = options.folder / f"{group}.json"
        stored = json.loads(path.read_text("utf-8")) if path.exists() else {"made": [], "runs": []}
        made, done = stored["made"] if now in stored["made"] else [*stored["made"], now], stored["runs"]
        head = {"command": "python tools/lab/released.py", "made": made}  # each run has the index of its entry in `made`
        with torch.inference_mode():
            for setting, measure in GROUPS[group](bench, done):
                if setting in [run["setting"] for run in done]:
                    continue
                if time.monotonic() - begun > options.seconds:
                    break
                done.append({"setting": setting, "made": made.index(now)} | measure())
                print(f"{time.monotonic() - begun:5.0f} s  {group} {setting}", flush=True)
                write_runs(path, head, done)


if __name__ == "__main__":
    main()
