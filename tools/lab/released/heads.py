"""Where each head looks, and with which pairs; and what the model loses without some of its RoPE."""

import math
import random
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from posenc_course.attention import attention_weights, causal_mask
from posenc_course.schemes import PositionScheme
from tools.lab.released.reading import Bench, Record, Scheme, Step, Steps, whole
from tools.lab.released.schemes import PLAIN, HidingPositions, Listening, WithoutPairs, slowed


def heads(bench: Bench) -> Steps:
    """Where each head looks, and with which pairs."""
    for layer in range(len(bench.model.blocks)):
        yield {"layer": layer}, look(bench, layer)
    yield {"queries": "far"}, look_far(bench)


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


def by_pair(q: Tensor, k: Tensor, positions: Tensor) -> Tensor:
    """The variance of each pair's part of the scores that queries (heads, Q, 64) give to keys but the first, (heads, pairs)."""
    seen = (torch.arange(1, k.shape[1] + 1, device=k.device) <= positions[:, None]).float()
    found = []
    for pair in range(q.shape[-1] // 2):
        channels = slice(2 * pair, 2 * pair + 2)
        part = q[..., channels] @ k[..., channels].mT / math.sqrt(q.shape[-1])
        mean = (part * seen).sum(dim=-1) / seen.sum(dim=-1)
        variance = ((part - mean[..., None]).square() * seen).sum(dim=-1) / seen.sum(dim=-1)
        found.append(variance.mean(dim=1))
    return torch.stack(found, dim=-1)


def look(bench: Bench, layer: int) -> Record:
    """One layer's heads, over the second thousand tokens of each text (means over texts, shares in thousandths)."""
    found: defaultdict[str, list[Tensor]] = defaultdict(list)
    u = bench.unit
    tokens = torch.stack([text[: 2 * u] for text in bench.texts.values()])
    queries, at = (torch.arange(start, 2 * u, device=tokens.device) for start in (u, 0))
    few = queries[:: max(1, u // 64)]

    def hear(q: Tensor, k: Tensor, rotated_q: Tensor, rotated_k: Tensor) -> None:
        zq, zk = (torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) for x in (q, k))
        mean_q = zq[:, :, u:].mean(dim=2) / math.sqrt(q.shape[-1])
        for name, mean_k in (("wave", zk[:, :, 1:].mean(dim=2)), ("first token's wave", zk[:, :, 0])):
            found[name] += torch.view_as_real(mean_q * mean_k.conj())
        for text, one_q, one_k in zip(tokens, rotated_q, rotated_k, strict=True):
            weights = attention_weights(one_q[:, u:], one_k, mask=causal_mask(queries, at))
            for name, share in on_equals(weights, text, queries).items():
                found[name].append(share)
            found["first"].append(weights[:, :, 0].mean(dim=-1))
            found["distances"].append(binned(weights, queries))
            found["variance"].append(by_pair(one_q[:, few], one_k[:, 1:], few))

    bench.model.use(bench.rope_but({layer: Listening(hear)}))
    bench.model.features(tokens)
    mean = {name: torch.stack(some).mean(dim=0).cpu() for name, some in found.items()}
    total = mean["variance"].sum(dim=-1, keepdim=True)
    return {
        "edges": edges(2 * u - 1),
        "heads": [
            {
                **{name: whole(mean[name][h]) for name in ("first", "equal", "after equal")},
                "distances": whole(mean["distances"][h]),
                "share": whole(mean["variance"][h] / total[h]),
                "deviation of scores": whole(total[h, 0].sqrt()),
                **{name: whole(mean[name][h].flatten(), 100) for name in ("wave", "first token's wave")},
            }
            for h in range(len(total))
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


# Heads, as (layer, head): those with more than half of their attention on the token before, and those with more than a fifth
# of it on tokens right after equal ones.
PREVIOUS = ((1, 2), (2, 1), (11, 1), (16, 0), (19, 3))
AFTER_EQUAL = ((17, 3), (17, 5), (18, 6), (20, 6))


def ablations(bench: Bench) -> Steps:
    """RoPE stopped, left out or slowed down in some pairs or layers, and the first token hidden."""
    layers, u = len(bench.model.blocks), bench.unit
    fast, slow = range(16), range(16, 32)

    def short(setting: Record, scheme: Scheme) -> Step:
        return setting, bench.measured(scheme, 2, 256)

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


def chosen(bench: Bench) -> Steps:
    """Pairs that contribute nothing to the scores, and pairs stopped in a few heads."""
    groups = {("slowest", 8): range(24, 32), ("slowest", 6): range(26, 32), ("fastest", 8): range(8), ("fastest", 2): range(2)}
    for (which, n), pairs in groups.items():
        yield {"left out": which, "pairs": n}, bench.measured(WithoutPairs(pairs), 2, 256, few=True)
    yield {"stopped": "nothing"}, operated(bench, (), range(0))
    for which, pairs in (("fastest", range(16)), ("slowest", range(16, 32))):
        yield {"stopped": which, "pairs": 16, "heads": "previous"}, operated(bench, PREVIOUS, pairs)
    for seed in range(3):
        setting = {"stopped": "fastest", "pairs": 16, "heads": "others in these layers", "seed": seed}
        yield setting, operated(bench, others(seed), range(16))


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


def controls(bench: Bench) -> Steps:
    """What ablations are compared with: other tokens hidden, other pairs left out, random tokens twice, and single heads."""
    for hidden in ([16], [64], [0, 1]):
        yield {"hidden": hidden}, bench.measured(HidingPositions(bench.unit, hidden), 2, 256, few=True)
    yield {"left out": "middle", "pairs": 8}, bench.measured(WithoutPairs(range(12, 20)), 2, 256, few=True)
    twice = bench._replace(texts={f"random {seed}": repeated(bench, seed) for seed in range(3)})
    for name, heads in {"nothing": (), "previous": PREVIOUS, "others in these layers": others(0)}.items():
        yield {"repeated": "random tokens", "stopped in": name}, operated(twice, heads, range(16))
    two = bench._replace(texts=dict([*bench.texts.items()][:2]))  # the first two, as was predicted
    yield {"stopped": "nothing", "texts": 2}, operated(two, (), range(0))
    for head in (*PREVIOUS, (1, 0), (11, 2)):
        yield {"stopped": "fastest", "pairs": 16, "head": [*head]}, operated(two, [head], range(16))


def repeated(bench: Bench, seed: int) -> Tensor:
    """Random tokens, as many as a unit has, twice and once more the first."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(bench.model.vocab_size, (bench.unit,), generator=generator)
    return torch.cat((tokens, tokens, tokens[:1])).to(bench.counting.device)


def others(seed: int) -> list[tuple[int, int]]:
    """Five other heads of the layers in which heads look at the token before."""
    sample = random.Random(seed)
    return [(layer, sample.choice([h for h in range(9) if h != head])) for layer, head in PREVIOUS]


def guilty(bench: Bench) -> Steps:
    """Pair 22 at half speed in single layers, in the best of them, and in single heads; and pairs 22 and 23 in a few heads."""
    layers, at_half, both = len(bench.model.blocks), slowed([22], 0.5), slowed([22, 23], 0.5)

    def slower(setting: Record, changed: dict[int, PositionScheme], *, few: bool = False) -> Step:
        return setting, bench.measured(bench.rope_but(changed), 12, 1024, few=few)

    yield slower({"layers": "all"}, dict.fromkeys(range(layers), at_half))
    alone = {layer: bench.measured(bench.rope_but({layer: at_half}), 12, 1024) for layer in range(layers)}
    for layer, found in alone.items():
        yield {"layers": [layer]}, found
    # By the losses from token 11,264 on.
    ranked = sorted(alone, key=lambda layer: sum(losses[-1] for losses in alone[layer]["losses"].values()))
    for number in (3, 5, 10):
        best = sorted(ranked[:number])
        yield slower({"layers": best}, dict.fromkeys(best, at_half))
    for head in range(9):
        yield slower({"layer": 16, "head": head}, bench.in_heads([(16, head)], at_half), few=True)
    previous = bench.in_heads(PREVIOUS, both)
    yield slower({"pairs": [22, 23], "heads": "previous"}, previous, few=True)
    for seed in range(3):
        setting = {"pairs": [22, 23], "heads": "others in these layers", "seed": seed}
        yield slower(setting, bench.in_heads(others(seed), both), few=True)
    yield {"pairs": [22, 23], "heads": "previous", "queries": "far"}, look_far(bench, previous)
