"""How far the model reads, counts and writes; and what changes that: speeds of pairs, recipes, windows, precision."""

import math
from copy import copy
from functools import cache

import gguf  # type: ignore[import-not-found, unused-ignore]
import numpy as np
import torch
from torch import Tensor

from posenc_course import llama, rope_scaling
from posenc_course.attention import Cache
from posenc_course.llama import released_weights
from posenc_course.rope import RotaryPositions
from tools.lab.released.reading import Bench, Record, Scheme, Steps, predicted, whole
from tools.lab.released.schemes import OMEGA, PLAIN, ClampedPairs, RoughPositions, slowed
from tools.lab.schemes import KeptPositions


def cliff(bench: Bench) -> Steps:
    """As released, and the same tokens with a shorter past."""
    for start in (0, 6):
        setting = {"from": 1024 * start}
        yield setting, bench.measured(PLAIN, 14 - start, 64, start=start * bench.unit)


def scan(bench: Bench) -> Steps:
    """Pairs at other speeds: one by one, and together."""
    alone = [[pair] for pair in sorted(range(32), key=lambda pair: abs(pair - 22))]
    neighbours = [[22, 23], [21, 22, 23], [22, 23, 24], [*range(20, 25)]]
    slow = [[*range(first, 32)] for first in (20, 22, 24)]
    plan = [(pairs, 0.5) for pairs in alone + neighbours + slow]
    plan += [([pair], factor) for factor in (0.75, 1.25, 1.5, 0.25, 0.0) for pair in range(19, 26)]
    for pairs, factor in plan:
        yield {"pairs": pairs, "speed": factor}, bench.measured(slowed(pairs, factor), 12, 128, few=factor != 0.5)


def recipes(bench: Bench) -> Steps:
    """A trained RoPE, stretched."""
    for factor in (2, 4):
        yarn, scale = rope_scaling.yarn(OMEGA, factor, 8 * 1024), rope_scaling.yarn_attention_factor(factor)
        stretched = {
            "interpolation": RotaryPositions(rope_scaling.position_interpolation(OMEGA, factor)),
            "NTK-aware": RotaryPositions(rope_scaling.ntk_aware(OMEGA, factor)),
            "YaRN": RotaryPositions(yarn, attention_factor=scale),
            "Llama 3": RotaryPositions(rope_scaling.llama3(OMEGA, factor, 8 * 1024)),
            "YaRN without its attention factor": RotaryPositions(yarn),
        }
        for name, scheme in stretched.items():
            yield {"recipe": name, "factor": factor}, bench.measured(scheme, 14, 128)


def windows(bench: Bench) -> Steps:
    """Windows, with and without the first tokens, whose positions are counted in the text or within what is kept."""
    u = bench.unit
    for window, first, where in [
        (None, 4, "at most 8191"), (2, 0, "text"), (2, 4, "text"), (2, 4, "kept"), (8, 4, "kept"), (8, 4, "text"),
        (8, 0, "text"), (2, 1, "kept"), (None, 1, "at most 8191"),
    ]:  # fmt: skip
        size = math.inf if window is None else window * u
        cap = None if where == "text" else 8 * u - 1 if window is None else first + window * u - 1
        setting = {"window": window and 1024 * window, "first": first, "positions": where}
        scheme = KeptPositions(PLAIN, size, first, cap)
        yield setting, bench.measured(scheme, 14, 128)


def precision(bench: Bench) -> Steps:
    """Positions counted from elsewhere, positions and angles in few bits, and weights with more noise."""
    kinds = ("angles in float64", "angles in float32")
    for kind in kinds:
        for shift in (0, 10**6, 10**9):
            setting: Record = {"shift": shift, "computed": kind}
            positions = shift + torch.arange(2 * bench.unit, device=bench.counting.device)
            scheme = PLAIN if kind == kinds[0] else RoughPositions(kind)
            yield setting, bench.measured(scheme, 2, 256, positions=positions)
    for kind in ("positions in bfloat16", "tables in bfloat16", "angles in bfloat16"):
        yield {"computed": kind}, bench.measured(RoughPositions(kind), 8, 256)
    for seed in (0, 1, 2):
        yield {"noise": seed}, noisy(bench, seed)


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


def clamped(bench: Bench) -> Steps:
    """Pairs that rotate no farther than at the end of training; text by text, because each is read up to there only once."""
    end = 8 * 1024 - 1
    # Those that don't complete a rotation, but for 22 and 23.
    innocent = [*range(20, 22), *range(24, 32)]
    # Where base 10,000 and 2,048 tokens, as in the first stage of training, had shown an angle last.
    shown = {pair: int(2047 * 10 ** (pair / 32)) for pair in (21, 22, 23, 24)}
    for name in bench.texts:
        read = up_to_the_end(bench, name)
        for caps in ({22: end, 23: end}, dict.fromkeys(innocent, end), shown, {22: end}, {23: end}):
            yield {"text": name, "clamped": [[*each] for each in caps.items()]}, read_on(bench, name, caps, read)


def up_to_the_end(bench: Bench, name: str) -> list[Cache]:
    """What the model keeps of the tokens within the training length, where nothing is clamped."""
    caches = bench.model.new_caches()
    bench.model.use(PLAIN)
    bench.model.features(bench.texts[name][None, : 8 * bench.unit], caches=caches)
    return caches


def read_on(bench: Bench, name: str, caps: dict[int, int], read: list[Cache]) -> Record:
    """The losses from there to token 12,287, with some pairs clamped."""
    u, caches = bench.unit, [copy(one) for one in read]
    scaled = {pair: cap * u // 1024 for pair, cap in caps.items()}
    bench.model.use([ClampedPairs(scaled, one) for one in caches])
    losses = predicted(bench, bench.texts[name][None, 8 * u : 12 * u + 1], caches)[1]
    return {"width": 64, "losses": whole(losses[0].unflatten(0, (-1, 64 * u // 1024)).mean(dim=1))}


def written(bench: Bench) -> Steps:
    """How far the model counts, and what it writes at several lengths, always the most likely token."""
    yield {"counts": "given the right text"}, count(bench)
    for number in (0, 7):
        yield {"counts": "freely", "start": number}, count_on(bench, number)
    for context in (8, 13):
        yield {"after": 1024 * context}, write_on(bench, context * bench.unit)
    for pairs in ((), (22, 23)):
        yield {"after": 1024 * 12, "slowed": [*pairs]}, tell_on(bench, slowed(pairs, 0.5))


def count(bench: Bench) -> Record:
    """Of each text that begins with another number: the share of right tokens by position, and the first wrong ones."""
    bench.model.use(PLAIN)
    some = [predicted(bench, text) for text in bench.parts(bench.counting)]
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


def write(bench: Bench, text: Tensor, tokens: int, *, sampled: bool = False) -> Tensor:
    """Continue token ids (1, L) by some tokens (1, tokens): the most likely ones, or sampled at temperature 0.7."""
    generator = torch.Generator().manual_seed(0)
    caches, new, found = bench.model.new_caches(), text, []
    for _ in range(tokens):
        scores = (bench.model.features(new, caches=caches)[0, -1:] @ bench.model.embedding.weight.T).cpu()
        new = torch.multinomial((scores / 0.7).softmax(dim=-1), 1, generator=generator) if sampled else scores.argmax(-1)[None]
        new = new.to(text)
        found.append(new)
    return torch.cat(found, dim=1)


def write_on(bench: Bench, context: int) -> Record:
    """200 tokens after a program's first ones, and their loss if the same model reads them with a short past."""
    bench.model.use(PLAIN)
    name, text = next(iter(bench.texts.items()))
    number, past = 200 * bench.unit // 1024, 2 * bench.unit
    new = write(bench, text[None, :context], number)[0]
    rows = torch.stack((torch.cat((text[context - past : context], new)), text[context - past : context + number]))
    loss, own = bench.model.losses(rows)[:, -number:].mean(dim=1).tolist()
    told = {"text": bench.decode(new.tolist()), "loss": round(loss, 3), "loss of the text's own": round(own, 3)}
    return {"wrote": {name: told | {"different tokens": len(new.unique())}}}


def tell_on(bench: Bench, scheme: Scheme) -> Record:
    """60 tokens after the first ones of *Alice*, sampled with the same seed under every scheme."""
    bench.model.use(scheme)
    text = bench.texts["alice"][: 12 * bench.unit]
    new = write(bench, text[None], 60, sampled=True)[0]
    return {"before": bench.decode(text[-60:].tolist()), "wrote": bench.decode(new.tolist())}
