"""Measures how fast and how accurate the package is, compared with its peers: `make bench` calls it.

Times are ratios within one run: each is divided by the time of a plain copy of the same tensors, or of the reference that its
group names. The candidates take turns, and the median of each candidate's rounds counts. The results go to
posenc_course/data/speed.json and accuracy.json.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

import posenc_course
from posenc_course import alibi, attention, naive, relative, rope, rope_scaling, sinusoidal, training, transformer
from posenc_course.experiment.config import SCHEMES, Config
from tools.lab.stored import provenance, write_results

DATA = Path(posenc_course.__file__).parent / "data"
PACKAGES = ["torch", "numpy", "transformers", "x-transformers", "rotary-embedding-torch", "mpmath"]
LEAST_ROUNDS, MOST_ROUNDS = 3, 15
ENOUGH = 0.7  # seconds: a candidate that takes longer gets only the least rounds, or one if a single call takes longer
SAMPLE = 0.005  # seconds per sample: faster calls are repeated
COMPILED = "apply_rope, half, compiled"
READABLE, READABLE_UP_TO = "attention, alibi_bias", 4096  # tokens; beyond this, its scores take tens of GiB

Call: TypeAlias = Callable[[], object]
Record: TypeAlias = dict[str, Any]


# ── what is timed: functions that make the candidates for given sizes, the reference first ───────────────────────────────


def with_rope(shape: list[int], dtype: str, backward: bool) -> dict[str, Call]:
    """RoPE of a query and a key, compared with a clone of both; with `backward`, their gradients are computed, too.

    The tables are made beforehand; RotaryPositions reuses those of the previous call, as it does in a model's next layer.
    """
    import rotary_embedding_torch  # type: ignore[import-untyped]
    import x_transformers.x_transformers as x_transformers  # type: ignore[import-untyped]
    from transformers import LlamaConfig
    from transformers.models.gptj import modeling_gptj as gptj
    from transformers.models.llama import modeling_llama as llama

    def each(rotate: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
        return lambda q, k: (rotate(q), rotate(k))

    def module(*, interleaved: bool) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
        scheme = rope.RotaryPositions(sinusoidal.frequencies(d_head), interleaved=interleaved)
        return lambda q, k: scheme.rotate(q, k, positions, positions)

    def run(way: Callable[[Tensor, Tensor], tuple[Tensor, ...]], q: Tensor, k: Tensor, *gradients: Tensor) -> object:
        rotated = way(q, k)
        return torch.autograd.grad(rotated, (q, k), gradients) if gradients else rotated

    _, heads, length, d_head = shape
    given = [torch.randn(shape).to(getattr(torch, dtype)) for _ in range(4 if backward else 2)]
    positions = torch.arange(length)
    cos, sin = rope.rope_tables(positions, sinusoidal.frequencies(d_head))
    rotation = partial(rope.apply_rope, cos=cos, sin=sin)
    # Llama's and GPT-J's tables are in the dtype of the model.
    config = LlamaConfig(hidden_size=heads * d_head, num_attention_heads=heads)
    llama_tables = llama.LlamaRotaryEmbedding(config)(given[0], positions[None])
    gptj_sin, gptj_cos = gptj.create_sinusoidal_positions(length, d_head).to(given[0])[None].chunk(2, dim=-1)
    angles, scale = x_transformers.RotaryEmbedding(d_head)(positions)
    ways = {
        "apply_rope_complex": each(partial(rope.apply_rope_complex, cos=cos, sin=sin)),
        "apply_rope, interleaved": each(partial(rotation, interleaved=True)),
        "apply_rope, half": each(partial(rotation, interleaved=False)),
        "RotaryPositions, interleaved": module(interleaved=True),
        "RotaryPositions, half": module(interleaved=False),
        "transformers Llama, half": lambda q, k: llama.apply_rotary_pos_emb(q, k, *llama_tables),
        "transformers GPT-J, interleaved": each(partial(gptj.apply_rotary_pos_emb, sin=gptj_sin, cos=gptj_cos)),
        "x-transformers, interleaved": each(partial(x_transformers.apply_rotary_pos_emb, freqs=angles, scale=scale)),
        "rotary-embedding-torch, interleaved": each(rotary_embedding_torch.RotaryEmbedding(d_head).rotate_queries_or_keys),
    }
    if length >= 512:  # compiling takes longer than shorter ones
        ways[COMPILED] = torch.compile(each(partial(rotation, interleaved=False)), dynamic=False)
    calls: dict[str, Call] = {"clone": lambda: [tensor.clone() for tensor in given]}
    for name, way in ways.items():
        swapped = "GPT-J" in name  # it has the heads after the tokens
        q, k, *gradients = ((x.transpose(1, 2) if swapped else x).clone(memory_format=torch.contiguous_format) for x in given)
        calls[name] = partial(run, way, q.requires_grad_(backward), k.requires_grad_(backward), *gradients)
    try:
        calls.get(COMPILED, list)()  # compiles
    except torch._dynamo.exc.BackendCompilerFailed as error:
        print(f"  {COMPILED}: left out, because torch.compile finds no working C++ compiler ({type(error).__name__})")
        del calls[COMPILED]
    return calls


def with_table(length: int, d_model: int) -> dict[str, Call]:
    """The sinusoidal table in float32, compared with a clone of it.

    NumPy's copy alone wouldn't be a fair reference: it asks for huge memory pages, which torch does only with
    THP_MEM_ALLOC_ENABLE=1, and if the system provides them, copying the same bytes takes a quarter of the time.
    """
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    positions = torch.arange(length)
    calls: dict[str, Call] = {
        "clone": tutorial_table(length, d_model).clone,
        "numpy copy": tutorial_table(length, d_model).numpy().copy,
        "sinusoidal_table": partial(sinusoidal.sinusoidal_table, positions, d_model, dtype=torch.float32),
        "angle_addition_table": partial(sinusoidal.angle_addition_table, length, d_model),
        "tutorials, float32": partial(tutorial_table, length, d_model),
    }
    if length * d_model < 2**24:  # it lists all entries in a Python loop: minutes and gigabytes for larger tables
        calls["transformers Marian"] = MarianSinusoidalPositionalEmbedding(length, d_model).create_weight
    return calls


def tutorial_table(length: int, d_model: int) -> Tensor:
    """The table as most tutorials make it: in float32 throughout, with sines and cosines written into a table of zeros."""
    table = torch.zeros(length, d_model)
    angles = torch.arange(length).float()[:, None] / 10_000 ** (torch.arange(0, d_model, 2).float() / d_model)
    table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
    return table


def with_alibi(length: int, heads: int) -> dict[str, Call]:
    """Causal attention with ALiBi, compared with the same without a bias. The dense bias is made once, for all layers."""
    return {**alibi_ways(vectors(length, heads))}


def vectors(length: int, heads: int) -> Tensor:
    """Query, key and value (1, heads, L, 64), the same in every call."""
    return torch.randn(3, 1, heads, length, 64, generator=torch.Generator().manual_seed(0))


def alibi_ways(given: Tensor) -> dict[str, Callable[[], Tensor]]:
    (q, k, v), kept = given, list[Tensor]()
    heads, length = q.shape[1:3]
    slopes, positions = alibi.alibi_slopes(heads), torch.arange(length)

    def dense() -> Tensor:
        if not kept:
            distance = (positions[:, None] - positions).float()
            kept.append((-slopes.float()[:, None, None] * distance.masked_fill_(distance < 0, math.inf))[None])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=kept[0])

    def readable() -> Tensor:
        bias, mask = alibi.alibi_bias(positions, positions, slopes), attention.causal_mask(positions, positions)
        return attention.attention(q, k, v, bias=bias, mask=mask)

    calls: dict[str, Callable[[], Tensor]] = {
        "no bias": partial(F.scaled_dot_product_attention, q, k, v, is_causal=True),
        "alibi_attention": partial(alibi.alibi_attention, q, k, v, slopes),
        "dense bias": dense,
    }
    return calls | ({READABLE: readable} if length <= READABLE_UP_TO else {})


def with_t5_buckets(length: int) -> dict[str, Call]:
    """The buckets of all offsets in a sequence, compared with a clone of L×L buckets."""
    from transformers.models.t5.modeling_t5 import T5Attention

    m = torch.arange(length)
    return {
        "clone": torch.zeros(length, length, dtype=torch.int64).clone,
        "t5_buckets, 2L-1 offsets": lambda: relative.t5_buckets(torch.arange(1 - length, length), causal=True),
        "t5_buckets, L×L offsets": lambda: relative.t5_buckets(relative.offsets(m, m), causal=True),
        "transformers T5, L×L offsets": lambda: T5Attention._relative_position_bucket(m - m[:, None], bidirectional=False),
    }


def with_t5_bias(length: int, heads: int) -> dict[str, Call]:
    """The whole bias (1, heads, L, L), compared with a clone of it."""
    from transformers import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(num_heads=heads, is_decoder=True)
    peer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).requires_grad_(False)
    ours = partial(relative.t5_bias, torch.randn(32, heads), torch.arange(length), torch.arange(length), causal=True)
    return {"clone": ours().clone, "t5_bias": ours, "transformers T5": partial(peer.compute_bias, length, length)}


def with_shaw(length: int, heads: int) -> dict[str, Call]:
    """Shaw's bias, compared with a clone of it; the alternative has a vector for every pair of tokens."""
    query, table, m = torch.randn(1, heads, length, 64), torch.randn(33, 64), torch.arange(length)

    def by_pairs() -> Tensor:
        return torch.einsum("bhmd,mnd->bhmn", query, table[(m[:, None] - m).clamp(-16, 16) + 16]) / 8

    ours = partial(relative.shaw_bias, query, table, m, m)
    return {"clone": ours().clone, "shaw_bias": ours, "einsum of L×L×d_head": by_pairs}


def with_scheme(length: int, batch: int, d_model: int, heads: int) -> dict[str, Call]:
    """Five training steps of a Decoder with each scheme of the experiment, with two more, and without any for comparison."""
    sizes = Config("bench", length=length, d_model=d_model, num_heads=heads)
    schemes = [
        *(build(sizes) for build in SCHEMES.values()),
        naive.BinaryPositions(d_model, num_bits=10),
        rope_scaling.DynamicNTKPositions(sinusoidal.frequencies(sizes.d_head), length),
    ]

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        tokens = torch.randint(32, (batch, length + 1), generator=generator)
        return tokens[:, :-1], tokens[:, 1:]

    models = (transformer.Decoder(32, d_model, heads, 2, scheme) for scheme in schemes)
    return {type(model.scheme).__name__: partial(training.train, model, sample, steps=5) for model in models}


# ── timing, and memory ───────────────────────────────────────────────────────────────────────────────────────────────────


ALIBI_LENGTHS = (1024, 2048, 4096, 8192)


def cases() -> list[tuple[Callable[..., dict[str, Call]], Record]]:
    """Each function above with each of its sizes."""
    ropes = itertools.product([[1, 32, 4096, 128], [1, 8, 512, 64]], ["float32", "bfloat16"], [False, True])
    return [
        *((with_rope, {"shape": shape, "dtype": dtype, "backward": backward}) for shape, dtype, backward in ropes),
        *((with_table, {"length": length, "d_model": d_model}) for length, d_model in [(4096, 512), (65536, 1024)]),
        *((with_alibi, {"length": length, "heads": 8}) for length in ALIBI_LENGTHS),
        (with_t5_buckets, {"length": 2048}),
        (with_t5_bias, {"length": 2048, "heads": 8}),
        (with_shaw, {"length": 2048, "heads": 8}),
        (with_scheme, {"length": 64, "batch": 16, "d_model": 64, "heads": 4}),
    ]


def seconds(call: Call, calls: int = 1) -> float:
    """The mean time of one call, over `calls` calls."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def race(candidates: dict[str, Call]) -> dict[str, float]:
    """The median seconds of each candidate. They take turns, so that other work on the machine slows all of them equally."""
    first = {name: seconds(call) for name, call in candidates.items()}  # the first call also loads and builds
    calls = {name: 1 if first[name] > SAMPLE * 10 else math.ceil(SAMPLE / seconds(call)) for name, call in candidates.items()}
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(MOST_ROUNDS):
        for name, call in candidates.items():
            if turn < (LEAST_ROUNDS if first[name] < ENOUGH else 1) or sum(taken[name]) * calls[name] < ENOUGH:
                taken[name].append(seconds(call, calls[name]))
    return {name: statistics.median(samples) for name, samples in taken.items()}


def time_all(threads: int) -> dict[str, list[Record]]:
    """Time every case with this number of threads."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    results: dict[str, list[Record]] = {}
    for build, sizes in cases():
        group = build.__name__.removeprefix("with_")
        times = race(build(**sizes))
        reference = next(iter(times.values()))
        new = [{"candidate": name, "milliseconds": 1000 * spent, "ratio": spent / reference} for name, spent in times.items()]
        show(f"{group}, {threads} threads", sizes, new)
        results.setdefault(group, []).extend({"threads": threads, **sizes, **record} for record in new)
    return results


def peak_growth(candidate: str, length: int, heads: int) -> float:
    """By how many MiB one call of this kind of attention, including its bias, raises the memory peak of this process."""
    mib = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, other systems KiB
    with_alibi(64, heads)[candidate]()
    call = with_alibi(length, heads)[candidate]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / mib


def measure_memory() -> list[Record]:
    """The memory peaks of attention with ALiBi, each measured in its own process."""
    records: list[Record] = []
    for size in ({"length": length, "heads": 8} for length in ALIBI_LENGTHS):
        names = [*alibi_ways(vectors(64, 1))][: 3 if size["length"] > READABLE_UP_TO else 4]
        new = [{"candidate": name, "mebibytes": apart(peak_growth, name, *size.values())} for name in names]
        show("memory of alibi", size, new)
        records += [size | record for record in new]
    return records


# ── accuracy ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMITS = [256, 2048, 4096, 32768, 131072, 1_000_000]
D_HEAD = 128
Angles: TypeAlias = tuple[Tensor, Tensor]  # cosines and sines, (positions, D_HEAD/2)


def some_positions(limits: list[int]) -> Tensor:
    """Each limit, and 24 random positions between it and the limit before, the same in every run."""
    draw = random.Random(0)
    drawn = {m for low, high in itertools.pairwise([0, *limits]) for m in (high, *draw.sample(range(low, high), 24))}
    return torch.tensor(sorted(drawn))


def exact_angles(positions: Tensor, base: int) -> Angles:
    """Cosines and sines computed with 50 digits and rounded once to float64."""
    import mpmath  # type: ignore[import-untyped]

    with mpmath.workdps(50):
        omega = [mpmath.mpf(base) ** (-mpmath.mpf(2 * i) / D_HEAD) for i in range(D_HEAD // 2)]
        pairs = [mpmath.cos_sin(m * each) for m, each in itertools.product(positions.tolist(), omega)]
    cos, sin = torch.tensor([[float(part) for part in pair] for pair in pairs], dtype=torch.float64).T
    return cos.view(-1, D_HEAD // 2), sin.view(-1, D_HEAD // 2)


def our_angles(positions: Tensor, base: int) -> dict[str, Angles]:
    """The package's three tables in float32."""
    table = sinusoidal.sinusoidal_table(positions, D_HEAD, base, dtype=torch.float32)
    fast = sinusoidal.angle_addition_table(int(positions.max()) + 1, D_HEAD, base)[positions]
    return {
        "rope_tables": rope.rope_tables(positions, sinusoidal.frequencies(D_HEAD, base)),
        "sinusoidal_table": (table[:, 1::2], table[:, 0::2]),
        "angle_addition_table": (fast[:, 1::2], fast[:, 0::2]),
    }


def peer_angles(positions: Tensor, base: int) -> dict[str, Angles]:
    """The peers' tables, as the peers use them."""
    import rotary_embedding_torch
    from transformers import LlamaConfig
    from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    from x_transformers.x_transformers import RotaryEmbedding

    config = LlamaConfig(head_dim=D_HEAD, rope_parameters={"rope_type": "default", "rope_theta": float(base)})
    freqs, _ = RotaryEmbedding(D_HEAD, base=base)(positions)
    found = {"x-transformers": (freqs[0, :, ::2].cos(), freqs[0, :, ::2].sin())}
    for name, dtype in (("", torch.float32), (", bfloat16", torch.bfloat16)):
        cos, sin = LlamaRotaryEmbedding(config).to(dtype)(torch.zeros(1, dtype=dtype), positions[None])
        found[f"transformers Llama{name}"] = cos[0, :, : D_HEAD // 2], sin[0, :, : D_HEAD // 2]
        peer = rotary_embedding_torch.RotaryEmbedding(D_HEAD, theta=base)
        one = torch.tensor([1, 0], dtype=dtype).repeat(1, 1, 1, D_HEAD // 2)  # rotated, (1, 0) is (cos, sin)
        rotated = torch.cat([peer.rotate_queries_or_keys(one, offset=m) for m in positions.tolist()]).flatten(end_dim=2)
        found[f"rotary-embedding-torch{name}"] = rotated[:, 0::2], rotated[:, 1::2]
    if base == 10_000:  # it has no other base
        sin, cos = create_sinusoidal_positions(int(positions.max()) + 1, D_HEAD)[positions].chunk(2, dim=-1)
        found["transformers GPT-J"] = cos, sin
    return found


def angle_errors(found: dict[str, Angles], positions: Tensor, base: int, limits: list[int]) -> list[Record]:
    """The largest error of any cosine or sine at positions up to each limit."""
    truth = torch.stack(exact_angles(positions, base))
    records = []
    for name, angles in found.items():
        error = (torch.stack(angles).double() - truth).abs().amax(dim=(0, 2))
        records += [
            {"base": base, "candidate": name, "positions_to": limit, "error": error[positions <= limit].max().item()}
            for limit in limits
        ]
    return records


def alibi_errors(length: int, heads: int) -> list[Record]:
    """The largest error of attention with ALiBi in float32 and, for up to READABLE_UP_TO tokens, of its gradients.

    The reference is computed in float64, 64 queries at a time; the gradients are those of outputs · values in reverse order.
    """
    backward = length <= READABLE_UP_TO
    given, upstream = vectors(length, heads).requires_grad_(backward), vectors(length, heads)[2].flip(-1)
    truth, positions = torch.zeros(4, heads, length, 64, dtype=torch.float64), torch.arange(length)
    q, k, v = given[:, 0].detach().double()
    slopes, later = alibi.alibi_slopes(heads)[:, None, None], torch.full((64, 64), -math.inf, dtype=torch.float64).triu(1)
    for rows in positions.split(64):
        end = int(rows[-1]) + 1
        some = [each.clone().requires_grad_(backward) for each in (q[:, rows], k[:, :end], v[:, :end])]
        scores = torch.baddbmm(-slopes * (rows[:, None] - positions[:end]), some[0], some[1].mT, alpha=1 / 8)
        scores[..., rows] += later[: len(rows), : len(rows)]
        output = scores.softmax(dim=-1) @ some[2]
        truth[0, :, rows] = output.detach()
        if backward:
            of_q, of_k, of_v = torch.autograd.grad(output, some, upstream[0, :, rows].double())
            truth[1, :, rows] = of_q
            truth[2, :, :end] += of_k
            truth[3, :, :end] += of_v
    records = []
    for name, way in alibi_ways(given).items():
        if name != "no bias":
            output = way()
            error = (output[0].detach() - truth[0]).abs().max().item()
            gradient = torch.autograd.grad(output, given, upstream)[0][:, 0] if backward else None
            of_gradient = None if gradient is None else (gradient - truth[1:]).abs().max().item()
            records.append({"candidate": name, "error": error, "gradient_error": of_gradient})
    return records


def measure_accuracy() -> dict[str, list[Record]]:
    """All measurements that don't need a clock."""
    torch.set_num_threads(1)
    positions, results = some_positions(LIMITS), dict[str, list[Record]](angles=[], alibi=[])
    for base in (10_000, 500_000):
        new = angle_errors(our_angles(positions, base) | peer_angles(positions, base), positions, base, LIMITS)
        show("errors of cos and sin", {"base": base, "d_head": D_HEAD}, new)
        results["angles"] += new
    for size in ({"length": length, "heads": heads} for length in ALIBI_LENGTHS for heads in (8, 12)):
        new = alibi_errors(**size)
        show("errors of alibi", size, new)
        results["alibi"] += [size | record for record in new]
    return results


# ── files and output ───────────────────────────────────────────────────────────────────────────────────────────────────────


def store(name: str, results: dict[str, list[Record]]) -> None:
    to_four_digits = {group: [rounded(record) for record in records] for group, records in results.items()}
    write_results(DATA / f"{name}.json", provenance(f"python tools/lab/bench.py {name}", *PACKAGES), to_four_digits)


def rounded(record: Record) -> Record:
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in record.items()}


def apart(function: Callable[..., Any], *arguments: object) -> Any:
    """The result of a call in a new process, with its own threads and memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def show(what: str, sizes: Record, records: list[Record]) -> None:
    """Print records below what was measured."""
    print(f"\n{what}, {', '.join(f'{name}={value}' for name, value in sizes.items())}")
    for record in records:
        numbers = (f"{value:10.3g}" if isinstance(value, float) else str(value) for value in record.values())
        print("  " + "  ".join(numbers), flush=True)


def main(what: str | None) -> None:
    if what != "accuracy":
        timed = [apart(time_all, threads) for threads in (1, 2)]
        results = {group: [record for each in timed for record in each[group]] for group in timed[0]}
        store("speed", results | {"alibi_memory": measure_memory()})
    if what != "speed":
        store("accuracy", measure_accuracy())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Time the package and its peers, and measure their errors.")
    parser.add_argument("what", nargs="?", choices=["speed", "accuracy"], help="default: both")
    main(parser.parse_args().what)
