"""Measures how fast and how accurate the package is, compared with its peers: `make bench` calls it.

Times are ratios within one run: each is divided by the time of a plain copy of the same tensors, or of the reference that its
group names. The candidates take turns, and the median of each candidate's rounds counts. The results go to
posenc_course/data/speed.json and accuracy.json.
"""

import itertools
import json
import math
import os
import platform
import random
import resource
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.benchmark import Timer

from posenc_course import alibi, relative, rope, sinusoidal
from posenc_course._system import processor, write_whole
from posenc_course.experiment.corpus import DATA

PACKAGES = ["torch", "numpy", "transformers", "x-transformers", "rotary-embedding-torch", "mpmath"]
TURNS = 5

Call: TypeAlias = Callable[[], object]
Record: TypeAlias = dict[str, Any]


# ── what is timed: functions that make the candidates for given sizes, the reference first ───────────────────────────────


def with_rope(shape: list[int], dtype: str, backward: bool) -> dict[str, Call]:
    """RoPE of a query and a key, compared with a clone of both; with `backward`, their gradients are computed, too.

    The tables are made beforehand; RotaryPositions reuses those of the previous call, as it does in a model's next layer.
    """
    import rotary_embedding_torch
    import x_transformers.x_transformers as x_transformers
    from transformers import LlamaConfig
    from transformers.models.gptj import modeling_gptj as gptj
    from transformers.models.llama import modeling_llama as llama

    def each(rotate: Callable[..., Tensor], **tables: Any) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
        return lambda q, k: (rotate(q, **tables), rotate(k, **tables))

    def module(interleaved: bool) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
        scheme = rope.RotaryPositions(sinusoidal.frequencies(d_head), interleaved=interleaved)
        return partial(scheme.rotate, q_positions=positions, k_positions=positions)

    def run(rotate: Callable[[Tensor, Tensor], tuple[Tensor, ...]], q: Tensor, k: Tensor, *gradients: Tensor) -> object:
        rotated = rotate(q, k)
        return torch.autograd.grad(rotated, (q, k), gradients) if gradients else rotated

    _, heads, length, d_head = shape
    given = [torch.randn(shape).to(getattr(torch, dtype)) for _ in range(4 if backward else 2)]
    positions = torch.arange(length)
    cos, sin = rope.rope_tables(positions, sinusoidal.frequencies(d_head))
    # Llama's and GPT-J's tables are in the dtype of the model.
    config = LlamaConfig(hidden_size=heads * d_head, num_attention_heads=heads)
    llama_tables = llama.LlamaRotaryEmbedding(config)(given[0], positions[None])
    gptj_sin, gptj_cos = gptj.create_sinusoidal_positions(length, d_head).to(given[0])[None].chunk(2, dim=-1)
    angles, scale = x_transformers.RotaryEmbedding(d_head)(positions)
    rotations = {
        "apply_rope_complex": each(rope.apply_rope_complex, cos=cos, sin=sin),
        "apply_rope, interleaved": each(rope.apply_rope, cos=cos, sin=sin, interleaved=True),
        "apply_rope, half": each(rope.apply_rope, cos=cos, sin=sin, interleaved=False),
        "RotaryPositions, interleaved": module(interleaved=True),
        "RotaryPositions, half": module(interleaved=False),
        "transformers Llama, half": lambda q, k: llama.apply_rotary_pos_emb(q, k, *llama_tables),
        "transformers GPT-J, interleaved": each(gptj.apply_rotary_pos_emb, sin=gptj_sin, cos=gptj_cos),
        "x-transformers, interleaved": each(x_transformers.apply_rotary_pos_emb, freqs=angles, scale=scale),
        "rotary-embedding-torch, interleaved": each(rotary_embedding_torch.RotaryEmbedding(d_head).rotate_queries_or_keys),
    }
    rotations["apply_rope, half, compiled"] = torch.compile(rotations["apply_rope, half"], dynamic=False)
    calls: dict[str, Call] = {"clone": lambda: [tensor.clone() for tensor in given]}
    for name, rotate in rotations.items():
        # It has the heads after the tokens.
        swapped = "GPT-J" in name
        q, k, *gradients = ((x.transpose(1, 2) if swapped else x).clone(memory_format=torch.contiguous_format) for x in given)
        calls[name] = partial(run, rotate, q.requires_grad_(backward), k.requires_grad_(backward), *gradients)
    return calls


def with_table(length: int, d_model: int) -> dict[str, Call]:
    """The sinusoidal table in float32, compared with a clone of it."""
    return {
        "clone": torch.zeros(length, d_model).clone,
        "sinusoidal_table": partial(sinusoidal.sinusoidal_table, torch.arange(length), d_model, dtype=torch.float32),
        "angle_addition_table": partial(sinusoidal.angle_addition_table, length, d_model),
    }


def with_alibi(length: int, heads: int) -> dict[str, Call]:
    """Causal attention with ALiBi, compared with the same without a bias. The dense bias is made once, for all layers."""
    q, k, v = torch.randn(3, 1, heads, length, 64)
    slopes, positions, kept = alibi.alibi_slopes(heads), torch.arange(length), list[Tensor]()

    def dense() -> Tensor:
        if not kept:
            distance = (positions[:, None] - positions).float()
            kept.append((-slopes.float()[:, None, None] * distance.masked_fill_(distance < 0, math.inf))[None])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=kept[0])

    return {
        "no bias": partial(F.scaled_dot_product_attention, q, k, v, is_causal=True),
        "alibi_attention": partial(alibi.alibi_attention, q, k, v, slopes),
        "dense bias": dense,
    }


def with_t5_buckets(length: int) -> dict[str, Call]:
    """The buckets of all offsets in a sequence, compared with a clone of L×L buckets."""
    m = torch.arange(length)
    return {
        "clone": torch.zeros(length, length, dtype=torch.int64).clone,
        "t5_buckets, 2L-1 offsets": lambda: relative.t5_buckets(torch.arange(1 - length, length), causal=True),
        "t5_buckets, L×L offsets": lambda: relative.t5_buckets(relative.offsets(m, m), causal=True),
    }


# ── timing, and memory ───────────────────────────────────────────────────────────────────────────────────────────────────


BIG = {"shape": [1, 32, 4096, 128]}
# Each function above with each of its sizes.
CASES: list[tuple[Callable[..., dict[str, Call]], Record]] = [
    (with_rope, BIG | {"dtype": "float32", "backward": False}),
    (with_rope, BIG | {"dtype": "float32", "backward": True}),
    (with_rope, BIG | {"dtype": "bfloat16", "backward": False}),
    (with_table, {"length": 65536, "d_model": 1024}),
    *((with_alibi, {"length": length, "heads": 8}) for length in (1024, 2048, 4096, 8192)),
    (with_t5_buckets, {"length": 2048}),
]


def race(candidates: dict[str, Call], threads: int) -> dict[str, float]:
    """The median seconds of each candidate. They take turns, so that other work on the machine slows all of them equally."""
    timers = {name: Timer("call()", globals={"call": call}, num_threads=threads) for name, call in candidates.items()}
    turns = [{name: timer.blocked_autorange(min_run_time=0.2).median for name, timer in timers.items()} for _ in range(TURNS)]
    return {name: statistics.median(turn[name] for turn in turns) for name in candidates}


def time_all(threads: int) -> dict[str, list[Record]]:
    """Time every case with this number of threads."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    results: dict[str, list[Record]] = {}
    for build, sizes in CASES:
        group = build.__name__.removeprefix("with_")
        times = race(build(**sizes), threads)
        reference = next(iter(times.values()))
        new = [{"candidate": name, "milliseconds": 1000 * spent, "ratio": spent / reference} for name, spent in times.items()]
        results.setdefault(group, []).extend({"threads": threads, **sizes, **record} for record in new)
        print(group, sizes, f"{threads} threads", flush=True)
    return results


def peak_growth(candidate: str, length: int, heads: int) -> float:
    """By how many MiB one call of this kind of attention, including its bias, raises the memory peak of this process."""
    mib = 2**20 if sys.platform == "darwin" else 2**10  # macOS counts bytes, other systems KiB
    with_alibi(64, heads)[candidate]()
    call = with_alibi(length, heads)[candidate]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / mib


def measure_speed() -> dict[str, list[Record]]:
    """All times, and the memory peaks of attention with ALiBi, each measured in its own process."""
    timed, size = [apart(time_all, threads) for threads in (1, 2)], {"length": 8192, "heads": 8}
    peaks = {name: apart(peak_growth, name, *size.values()) for name in with_alibi(64, 1)}
    return {group: [record for each in timed for record in each[group]] for group in timed[0]} | {
        "alibi_memory": [size | {"candidate": name, "mebibytes": peak} for name, peak in peaks.items()]
    }


# ── accuracy ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

LIMITS = [256, 2048, 4096, 32768, 131072, 1_000_000]
D_HEAD, BASE = 128, 10_000
Angles: TypeAlias = tuple[Tensor, Tensor]  # cosines and sines, (positions, D_HEAD/2)


def some_positions(limits: list[int]) -> Tensor:
    """Each limit, and 24 random positions between it and the limit before, the same in every run."""
    draw = random.Random(0)
    drawn = {m for low, high in itertools.pairwise([0, *limits]) for m in (high, *draw.sample(range(low, high), 24))}
    return torch.tensor(sorted(drawn))


def exact_angles(positions: Tensor) -> Angles:
    """Cosines and sines computed with 50 digits and rounded once to float64."""
    import mpmath

    with mpmath.workdps(50):
        omega = [mpmath.mpf(BASE) ** (-mpmath.mpf(2 * i) / D_HEAD) for i in range(D_HEAD // 2)]
        pairs = [mpmath.cos_sin(m * each) for m, each in itertools.product(positions.tolist(), omega)]
    cos, sin = torch.tensor([[float(part) for part in pair] for pair in pairs], dtype=torch.float64).T
    return cos.view(-1, D_HEAD // 2), sin.view(-1, D_HEAD // 2)


def all_angles(positions: Tensor) -> dict[str, Angles]:
    """The package's tables in float32, and the peers', as the peers use them."""
    import rotary_embedding_torch
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
    from x_transformers.x_transformers import RotaryEmbedding

    fast = sinusoidal.angle_addition_table(int(positions.max()) + 1, D_HEAD, BASE)[positions]
    config = LlamaConfig(head_dim=D_HEAD, rope_parameters={"rope_type": "default", "rope_theta": float(BASE)})
    freqs, _ = RotaryEmbedding(D_HEAD, base=BASE)(positions)
    found = {
        "rope_tables": rope.rope_tables(positions, sinusoidal.frequencies(D_HEAD, BASE)),
        "angle_addition_table": (fast[:, 1::2], fast[:, 0::2]),
        "x-transformers": (freqs[0, :, ::2].cos(), freqs[0, :, ::2].sin()),
    }
    for name, dtype in (("", torch.float32), (", bfloat16", torch.bfloat16)):
        cos, sin = LlamaRotaryEmbedding(config).to(dtype)(torch.zeros(1, dtype=dtype), positions[None])
        found[f"transformers Llama{name}"] = cos[0, :, : D_HEAD // 2], sin[0, :, : D_HEAD // 2]
        peer = rotary_embedding_torch.RotaryEmbedding(D_HEAD, theta=BASE)
        one = torch.tensor([1, 0], dtype=dtype).repeat(1, 1, 1, D_HEAD // 2)  # rotated, (1, 0) is (cos, sin)
        rotated = torch.cat([peer.rotate_queries_or_keys(one, offset=m) for m in positions.tolist()]).flatten(end_dim=2)
        found[f"rotary-embedding-torch{name}"] = rotated[:, 0::2], rotated[:, 1::2]
    return found


def measure_accuracy() -> dict[str, list[Record]]:
    """The largest error of any cosine or sine at positions up to each limit."""
    positions, records = some_positions(LIMITS), list[Record]()
    truth = torch.stack(exact_angles(positions))
    for name, angles in all_angles(positions).items():
        error = (torch.stack(angles).double() - truth).abs().amax(dim=(0, 2))
        records += [
            {"base": BASE, "candidate": name, "positions_to": limit, "error": error[positions <= limit].max().item()}
            for limit in LIMITS
        ]
    return {"angles": records}


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def store(name: str, results: dict[str, list[Record]]) -> None:
    """Writes {"made": …, "results": {group: [records]}} with four digits, one line for each record."""
    made = {
        "command": f"python tools/lab/bench.py {name}",
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"processor": processor(), "logical_cores": os.cpu_count()},
        "versions": {"python": platform.python_version()} | {package: version(package) for package in PACKAGES},
    }
    groups = []
    for group, records in results.items():
        lines = ",\n".join(json.dumps(rounded(record), ensure_ascii=False) for record in records)
        groups.append(f"{json.dumps(group)}: [\n{lines}\n]")
    text = f'{{"made": {json.dumps(made, indent=1)},\n"results": {{\n' + ",\n".join(groups) + "\n}}\n"
    write_whole(DATA / f"{name}.json", text.encode())


def rounded(record: Record) -> Record:
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in record.items()}


def apart(function: Callable[..., Any], *arguments: object) -> Any:
    """The result of a call in a new process, with its own threads and memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


if __name__ == "__main__":
    for name in sys.argv[1:] or ("speed", "accuracy"):
        store(name, {"speed": measure_speed, "accuracy": measure_accuracy}[name]())
