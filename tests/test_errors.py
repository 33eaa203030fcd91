"""Bad input to every public function: a ValueError that names what was given, and what to do instead; never anything else."""

import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import posenc_course
from posenc_course.alibi import AlibiPositions, alibi_attention, alibi_bias, alibi_slopes
from posenc_course.attention import Cache, MultiHeadAttention, attention, attention_weights, causal_mask
from posenc_course.conventions import read_rotation, read_table
from posenc_course.experiment import tasks
from posenc_course.experiment.config import Config, Run, ScaledTokens, build_model, build_scheme, preset
from posenc_course.experiment.corpus import load_corpus
from posenc_course.experiment.evaluation import (
    WindowedPositions,
    changed,
    evaluate_task,
    evaluate_text,
    linear_along_ones,
    possible_changes,
    token_losses,
)
from posenc_course.experiment.folder import load_model, load_results
from posenc_course.experiment.report import bits_per_byte, curve, records, scores, spread, tables
from posenc_course.experiment.runs import measure, train_run
from posenc_course.geometry import (
    distance,
    norms,
    shift_matrix,
    similarity,
    similarity_by_pair,
    turning_pairs,
    wavelengths,
)
from posenc_course.learned import LearnedPositions, learned_encoding
from posenc_course.naive import BinaryPositions, LinearPositions, NormalizedPositions, binary, linear, modulo, normalized
from posenc_course.relative import ShawPositions, T5Positions, offsets, shaw_bias, t5_bias, t5_buckets
from posenc_course.rope import (
    RotaryPositions,
    apply_rope,
    apply_rope_complex,
    axial_rope_tables,
    convert_projection,
    layout_permutation,
    rope_tables,
)
from posenc_course.rope_scaling import (
    DynamicNTKPositions,
    dynamic_ntk,
    llama3,
    ntk_aware,
    position_interpolation,
    yarn,
    yarn_attention_factor,
)
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, angle_addition_table, frequencies, sinusoidal_table
from posenc_course.training import train, warm_up_and_cosine
from posenc_course.transformer import Block, Decoder, Encoder, Transformer

# A call that works, and for each argument the bad values, each with a part of the message that shows it was understood:
# by default the value itself, as Python writes it.
L = torch.arange(3)
NAN, INF, HUGE = math.nan, math.inf, 10**400


def x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(*shape, dtype=dtype)


NOT_COUNTS = [0, -3, 2.5, NAN, INF, True, "8", None, [4]]
NOT_TENSORS: list[Any] = [[[1.0]], "text", None, 3]
NOT_BASES = [1, 0.5, 0, -10_000, NAN, INF, HUGE, True, "10000", None, 1j]
NOT_POSITIVE = [0, -1.0, NAN, True, "1", None]
NOT_REAL_POSITIONS: list[Any] = [
    ("text", "'text'"),
    (None, "None"),
    ({1: 2}, "{1: 2}"),
    ([1, "a"], "[1, 'a']"),
    ([[1, 2], [3]], "[[1, 2], [3]]"),
    ([0.0, NAN], "nan"),
    ([INF], "inf"),
    ([-INF], "-inf"),
    (True, "torch.bool"),
    ([True, False], "torch.bool"),
    ([1j], "torch.complex128"),
    (torch.zeros(3, dtype=torch.bfloat16), "torch.bfloat16"),
    (torch.zeros(3, dtype=torch.float16), "torch.float16"),
    (5, "()"),
    ([], "(0,)"),
    (x(2, 3, 4), "(2, 3, 4)"),
]
NOT_PAIRS = [(p, shown) for p, shown in NOT_REAL_POSITIONS if shown != "(2, 3, 4)"]
NOT_POSITIONS = [*NOT_REAL_POSITIONS, ([0, -3], "-3"), ([0.5], "0.5")]
NOT_TABLES = [(p, shown) for p, shown in NOT_REAL_POSITIONS if isinstance(p, torch.Tensor)] + [
    *((value, repr(value)) for value in ([0, 1, 2], "text", None)),
    (torch.tensor([0.0, NAN, 1.0]), "nan"),
    (torch.tensor([0, 1]), "(2,)"),
    (torch.zeros(4, 3), "(4, 3)"),
    (torch.tensor(3), "()"),
    (torch.tensor([True, False, True]), "torch.bool"),
]
NOT_INPUTS = [  # for x of shape (2, 3, 6)
    *NOT_TENSORS,
    (np.ones((2, 3, 6)), "array([[[1."),
    (x(3, 6), "(3, 6)"),
    (x(2, 3, 5), "(2, 3, 5)"),
    (x(2, 4, 6), "(2, 4, 6)"),
    (x(2, 3, 6, dtype=torch.int64), "torch.int64"),
    (x(2, 0, 6), "(2, 0, 6)"),
]
NOT_VECTORS = [
    *NOT_TENSORS,
    (x(4), "(4,)"),
    (x(2, 0, 4), "(2, 0, 4)"),
    (x(2, 3, 0), "(2, 3, 0)"),
    (x(7, 3, 4), "(7, 3, 4)"),
    (x(2, 3, 4, dtype=torch.int64), "torch.int64"),
    (x(2, 3, 4, dtype=torch.float64), "torch.float64"),
]
NOT_OFFSETS = [(p, shown) for p, shown in NOT_REAL_POSITIONS if shown not in ("()", "(2, 3, 4)")]
NOT_WHOLE_OFFSETS = [*NOT_OFFSETS, ([0.5], "0.5")]
NOT_EVEN = [*NOT_COUNTS, (7, "got 7")]
NOT_DTYPES: list[Any] = [torch.int64, torch.bool, torch.complex64, "float32", float, None]
NOT_FREQUENCIES: list[Any] = [
    64,
    None,
    [1.0, 0.1],
    (x(3), "torch.float32"),
    (x(2, 3, dtype=torch.float64), "(2, 3)"),
    (x(0, dtype=torch.float64), "(0,)"),
    (torch.tensor([1.0, NAN], dtype=torch.float64), "nan"),
    (torch.tensor([1.0, -0.5], dtype=torch.float64), "-0.5"),
]
NOT_GEOMETRIC = [*NOT_FREQUENCIES, (torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64), "[1.0, 0.5, 0.1]")]
NOT_FACTORS = [*NOT_POSITIVE, INF, (0.5, "0.5")]
NOT_HEADS_OF: list[Any] = [  # for q or k of shape (2, 2, 3, 4)
    *NOT_TENSORS,
    (x(2, 3, 4), "(2, 3, 4)"),
    (x(2, 2, 3, 4, dtype=torch.int64), "torch.int64"),
    (x(2, 2, 0, 4), "(2, 2, 0, 4)"),
]
NOT_SLOPES = [*NOT_TENSORS, (x(2, 1), "(2, 1)"), (x(2, dtype=torch.int64), "torch.int64")]
NOT_TURNED = [*NOT_HEADS_OF, (x(2, 2, 3, 5), "got 5"), (x(2, 2, 4, 4), "(2, 2, 4, 4)")]
NOT_TURNS = [*NOT_TENSORS, (x(3, 3), "(3, 3)"), (x(4, 3, 2), "(4, 3, 2)"), (x(3, 2, dtype=torch.int64), "torch.int64")]
BLIND = torch.ones(3, 3, dtype=torch.bool).tril(-1)
NOT_BIASES: list[Any] = [
    *(value for value in NOT_TENSORS if value is not None),
    (x(4, 3), "(4, 3)"),
    (x(5, 2, 3, 3), "(5, 2, 3, 3)"),
    (x(3, 3, dtype=torch.bool), "torch.bool"),
    (torch.zeros(3, 3).masked_fill(~BLIND, -INF), "query (0, 0)"),
]
NOT_MASKS: list[Any] = [*NOT_BIASES[:-2], (x(3, 3), "torch.float32"), (BLIND, "query (0, 0)")]


class Row(NamedTuple):
    """One public callable: a call that works, and what each of its arguments must not be."""

    function: Callable[..., Any]
    good: dict[str, Any]
    bad: dict[str, list[Any]]


OMEGA = frequencies(4)
Q = x(2, 2, 3, 4)
TURNS: dict[str, Any] = {"cos": x(3, 2), "sin": x(3, 2)}
STRETCH: dict[str, Any] = {"frequencies": OMEGA, "factor": 2.0}
BIAS: dict[str, Any] = {"q": Q, "q_positions": L, "k_positions": L}
WHOLE = [(torch.tensor([0, -1, 2]), "-1"), (torch.tensor([0, 0.5, 1]), "0.5")]
QKV = {"query": x(2, 3, 4), "key": x(2, 3, 4)}
MODEL: dict[str, Any] = {"vocab_size": 5, "d_model": 6, "num_heads": 2, "num_layers": 1, "scheme": None, "num_outputs": 3}
BAD_MODEL = {
    "vocab_size": NOT_COUNTS,
    "d_model": [*NOT_COUNTS, (7, "d_model=7")],
    "num_heads": [*NOT_COUNTS, (4, "num_heads=4")],
    "num_layers": NOT_COUNTS,
    "num_outputs": [count for count in NOT_COUNTS if count is not None],
}
NOT_SCHEMES: list[Any] = ["rope", 3, SinusoidalPositions]
NOT_IDS: list[Any] = [
    *NOT_TENSORS,
    (torch.tensor([1, 2, 3]), "(3,)"),
    (torch.zeros(2, 0, dtype=torch.int64), "(2, 0)"),
    (x(2, 3), "torch.float32"),
    (x(2, 3, dtype=torch.bool), "torch.bool"),
    (torch.tensor([[0, 5, 1], [1, 1, 1]]), "token id 5"),
    (torch.tensor([[0, -1, 1], [1, 1, 1]]), "token id -1"),
]
NOT_PADDING: list[Any] = [  # for tokens of shape (2, 3)
    *(value for value in NOT_TENSORS if value is not None),
    (x(2, 3), "torch.float32"),
    (x(2, 4, dtype=torch.bool), "(2, 4)"),
    (x(3, dtype=torch.bool), "(3,)"),
]
NOT_IDS_POSITIONS = [case for case in NOT_TABLES if case[0] is not None]
IDS = torch.zeros(2, 3, dtype=torch.int64)


def cached() -> Cache:
    cache = Cache()
    cache.extend(x(2, 2, 3, 4), x(2, 2, 3, 5), L)
    return cache


def sample(_: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    return IDS, IDS


def returning(value: Any) -> Callable[[torch.Generator], Any]:
    return lambda _: value


def scheme_rows(
    name: str, kind: type[PositionScheme], arguments: dict[str, Any], bad: dict[str, list[Any]], *, whole: bool
) -> dict[str, Row]:
    """The rows of a scheme that uses the first door."""
    scheme = kind(**arguments)
    positions = NOT_TABLES + (WHOLE if whole else [])
    return {
        name: Row(kind, arguments, bad),
        f"{name}.embed": Row(scheme.embed, {"x": x(2, 3, 6), "positions": L}, {"x": NOT_INPUTS, "positions": positions}),
    }


def bias_rows(
    name: str, kind: type[PositionScheme], arguments: dict[str, Any], bad: dict[str, list[Any]], q: Any
) -> dict[str, Row]:
    """The rows of a scheme that uses the third door; q: what it must not be besides."""
    wrong = {"q": [*NOT_HEADS_OF, q], "q_positions": NOT_PAIRS, "k_positions": NOT_PAIRS}
    return {name: Row(kind, arguments, bad), f"{name}.bias": Row(kind(**arguments).bias, BIAS, wrong)}


def transformer_rows(name: str, kind: type[Transformer]) -> dict[str, Row]:
    model = kind(**MODEL)
    return {
        name: Row(kind, MODEL, BAD_MODEL | {"scheme": NOT_SCHEMES}),
        f"{name}.forward": Row(
            model,
            {"tokens": IDS, "positions": L},
            {"tokens": NOT_IDS, "positions": NOT_IDS_POSITIONS, "padding": NOT_PADDING},
        ),
    }


NOT_DIRECTIONS: list[Any] = ["up", [1.0] * 6, 3, (x(5), "(5,)"), (x(6, dtype=torch.int64), "torch.int64")]
attend = MultiHeadAttention(6, 2, PositionScheme(), causal=True)
block = Block(6, 2, PositionScheme(), causal=True)
ATTEND = {"d_model": 6, "num_heads": 2, "scheme": PositionScheme(), "causal": True}
BAD_ATTEND = {"d_model": BAD_MODEL["d_model"], "num_heads": BAD_MODEL["num_heads"], "scheme": [*NOT_SCHEMES, None]}
FORWARD = ({"x": x(2, 3, 6), "positions": L}, {"x": NOT_INPUTS, "positions": NOT_TABLES, "padding": NOT_PADDING})
decoder = Decoder(**MODEL)

# ── the lab ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

NOT_SEEDS: list[Any] = [-1, 0.5, NAN, True, "0", None]
NOT_MODELS: list[Any] = ["rope", None, (nn.Linear(1, 1), "Linear(")]
NOT_CONFIGS: list[Any] = ["quick", None, {}]
NOT_RUNS: list[Any] = ["text-rope-0", None]
NOT_SEED_LISTS: list[Any] = ["0,1", 3, [0, 0], ([0, True], "True"), ([0, -1], "-1"), ((), "()")]
TINY: dict[str, Any] = {
    "name": "tiny", "length": 16, "d_model": 8, "num_heads": 2, "num_layers": 1, "steps": 2, "batch_size": 2, "warm_up": 1,
    "learning_rate": 1e-3, "evaluation_bytes": 128, "spans": 1, "parts": ("text",), "seeds": (0,), "rope_seeds": (0,),
    "task_length": 16, "task_steps": 1, "side_steps": 1,
}  # fmt: skip


def unknown(what: str) -> list[Any]:
    """What is no name of a scheme, part, ..."""
    return [(name, f"unknown {what} {name!r}") for name in ("cosine", 3, None, ())]


def unknown_among(what: str) -> list[Any]:
    """The same where several may be given."""
    return [*unknown(what)[:-1], ((), f"no {what} given"), (("cosine",), f"unknown {what} 'cosine'")]


def lab_rows() -> dict[str, Row]:
    tiny, run = Config(**TINY), Run("text", "rope", 0)
    model, text = build_model(tiny, run), torch.arange(1000) % 128
    results: dict[str, Any] = {
        "runs": [{"part": "text", "scheme": "rope", "seed": 0, "setting": "", "evaluation": {"plain": {}}}]
    }
    results["runs"][0]["evaluation"] = {"plain": {"nonoverlapping": {"16": 1.0}, "by_position": [1.0]}}
    counts: tuple[str, ...] = ("d_model", "num_heads", "num_layers", "steps", "batch_size", "spans", "task_steps", "side_steps")
    draw = {"generator": torch.Generator(), "batch": 2, "length": 16}
    bad_draw: dict[str, list[Any]] = {"generator": [0, None], "batch": NOT_COUNTS, "length": [*NOT_COUNTS, 3]}
    bias = WindowedPositions(AlibiPositions(2), 2).bias
    found: dict[str, list[Any]] = {"results": [None, "full", {}], "scheme": unknown("scheme")}
    # None is all of them here.
    wrong = {what: [case for case in unknown_among(what) if case[0] is not None] for what in ("scheme", "part")}
    return {
        "experiment.config.Run": Row(
            Run,
            {"part": "scale", "scheme": "sinusoidal", "seed": 0, "setting": "unit"},
            {"part": unknown("part"), "scheme": unknown("scheme"), "seed": NOT_SEEDS, "setting": unknown("setting")},
        ),
        "experiment.config.Config": Row(
            Config,
            TINY,
            {"name": [None, 3]}
            | {name: list(NOT_COUNTS) for name in counts}
            | {"d_model": [*NOT_COUNTS, (6, "d_model=6")], "num_heads": [*NOT_COUNTS, (3, "num_heads=6")]}
            | {name: [*NOT_COUNTS, 8, 20] for name in ("length", "task_length")}
            | {"learning_rate": [*NOT_POSITIVE, INF], "warm_up": NOT_SEEDS, "evaluation_bytes": [*NOT_COUNTS, 64, 130]}
            | {"parts": unknown_among("part"), "seeds": [*NOT_SEED_LISTS, None], "rope_seeds": NOT_SEED_LISTS},
        ),
        "experiment.config.Config.runs": Row(
            tiny.runs, {}, {"schemes": wrong["scheme"], "seeds": NOT_SEED_LISTS, "parts": wrong["part"]}
        ),
        "experiment.config.Config.of": Row(tiny.of, {"run": run}, {"run": NOT_RUNS}),
        "experiment.config.preset": Row(
            preset, {"which": "quick"}, {"which": unknown("preset"), "changes": [(3, "unknown field 'changes'")]}
        ),
        "experiment.config.build_scheme": Row(
            build_scheme, {"name": "t5", "config": tiny}, {"name": unknown("scheme"), "config": NOT_CONFIGS}
        ),
        "experiment.config.build_model": Row(
            build_model, {"config": tiny, "run": run}, {"config": NOT_CONFIGS, "run": NOT_RUNS}
        ),
        **scheme_rows(
            "experiment.config.ScaledTokens",
            ScaledTokens,
            {"scheme": SinusoidalPositions(6), "factor": 2.0},
            {"scheme": [*NOT_SCHEMES, None], "factor": NOT_POSITIVE},
            whole=False,
        ),
        "experiment.corpus.load_corpus": Row(load_corpus, {}, {"folder": ["nowhere", (3, "'3'"), (".", "no whole text in .")]}),
        **{f"experiment.tasks.{task}": Row(getattr(tasks, task), draw, bad_draw) for task in tasks.TASKS},
        "experiment.evaluation.WindowedPositions": Row(
            WindowedPositions, {"scheme": PositionScheme(), "window": 2}, {"scheme": [*NOT_SCHEMES, None], "window": NOT_COUNTS}
        ),
        "experiment.evaluation.WindowedPositions.bias": Row(
            bias, BIAS, {"q": [*NOT_HEADS_OF, (x(2, 3, 3, 4), "q has 3")], "q_positions": NOT_PAIRS, "k_positions": NOT_PAIRS}
        ),
        "experiment.evaluation.possible_changes": Row(
            possible_changes, {"scheme": PositionScheme()}, {"scheme": [*NOT_SCHEMES, None]}
        ),
        "experiment.evaluation.changed": Row(
            changed,
            {"model": model, "change": "ntk", "length": 32, "trained_length": 16},
            {"model": NOT_MODELS, "change": unknown("change"), "length": NOT_COUNTS, "trained_length": NOT_COUNTS},
        ),
        "experiment.evaluation.token_losses": Row(
            token_losses,
            {"model": model, "windows": text[None, :9]},
            {
                "model": NOT_MODELS,
                "windows": [
                    "text",
                    None,
                    (text[:9], "(9,)"),
                    (text[None, :1], "(1, 1)"),
                    (x(2, 3), "(2, 3)"),
                    (torch.tensor([[1, 128]]), "token id 128"),
                    (torch.tensor([[128, 1]]), "token id 128"),
                ],
            },
        ),
        "experiment.evaluation.evaluate_text": Row(
            evaluate_text,
            {"model": model, "config": tiny, "text": text, "changes": ("ntk",)},
            {
                "model": NOT_MODELS,
                "config": NOT_CONFIGS,
                "text": [*NOT_TENSORS, (x(1000), "torch.float32"), (text[None], "(1, 1000)"), (text[:100], "100 bytes")],
                "changes": unknown_among("change")[:-2],
            },
        ),
        "experiment.evaluation.evaluate_task": Row(
            evaluate_task,
            {"model": model, "config": tiny, "task": "order"},
            {"model": NOT_MODELS, "config": NOT_CONFIGS, "task": unknown("task")},
        ),
        "experiment.evaluation.linear_along_ones": Row(
            linear_along_ones,
            {"length": 4, "d_model": 8},
            {"length": NOT_COUNTS, "d_model": NOT_COUNTS, "seed": NOT_SEEDS},
        ),
        "experiment.runs.train_run": Row(
            train_run,
            {"config": tiny, "run": Run("order", "none", 0)},
            {
                "config": NOT_CONFIGS,
                "run": NOT_RUNS,
                "device": [(name, f"device {name!r} is not there") for name in ("cuda:99", "tpu", "meta", 3.5)],
                "progress": ["bar", 1],
            },
        ),
        "experiment.runs.measure": Row(
            measure,
            {"model": model, "config": tiny, "run": run},
            {"model": NOT_MODELS, "config": NOT_CONFIGS, "run": NOT_RUNS, "text": ["text", 3]},
        ),
        "experiment.folder.load_results": Row(load_results, {}, {"results": ["nothing", 3, None]}),
        "experiment.folder.load_model": Row(
            load_model,
            {"scheme": "rope"},
            {"scheme": unknown("scheme"), "seed": [*NOT_SEEDS, 7], "folder": ["nowhere", (3, "'3'")]},
        ),
        "experiment.report.records": Row(
            records,
            {"results": results, "part": "text", "scheme": "rope"},
            found | {"part": [*unknown("part"), "copy"], "setting": ["unit"]},
        ),
        "experiment.report.scores": Row(
            scores,
            {"results": results, "scheme": "rope"},
            found
            | {"part": [*unknown("part"), "copy"], "setting": ["unit"], "how": [*unknown("way to measure"), "last"]}
            | {"change": ["ntk"]},
        ),
        "experiment.report.curve": Row(curve, {"results": results, "scheme": "rope"}, found | {"change": ["ntk"]}),
        "experiment.report.spread": Row(
            spread, {"values": x(3, 4)}, {"values": [*NOT_TENSORS, (torch.tensor(1.0), "()"), (IDS, "torch.int64")]}
        ),
        "experiment.report.bits_per_byte": Row(bits_per_byte, {"nats": 2.0}, {"nats": [NAN, INF, "2", None, True]}),
        "experiment.report.tables": Row(tables, {"results": {"runs": []}}, {"results": [None, "full", {}]}),
    }


ROWS: dict[str, Row] = {
    "attention.attention_weights": Row(
        attention_weights,
        QKV,
        {"query": NOT_VECTORS, "key": [*NOT_VECTORS, (x(2, 3, 5), "(2, 3, 5)")], "bias": NOT_BIASES, "mask": NOT_MASKS},
    ),
    "attention.attention": Row(
        attention,
        QKV | {"value": x(2, 3, 5)},
        {
            "query": NOT_VECTORS,
            "key": NOT_VECTORS,
            "value": [*NOT_VECTORS, (x(2, 4, 5), "(2, 4, 5)")],
            "bias": NOT_BIASES,
            "mask": NOT_MASKS,
        },
    ),
    "attention.causal_mask": Row(
        causal_mask,
        {"q_positions": torch.zeros(2, 3), "k_positions": torch.zeros(2, 4)},
        {name: [case for case in NOT_TABLES if case[1] != "(2,)"] for name in ("q_positions", "k_positions")},
    ),
    "attention.Cache.extend": Row(
        cached().extend,
        {"keys": x(2, 2, 1, 4), "values": x(2, 2, 1, 5), "positions": torch.tensor([3])},
        {
            "keys": [*NOT_TENSORS, (x(2, 1, 4), "(2, 1, 4)"), (x(2, 2, 1, 6), "(2, 2, 1, 6)"), (x(2, 2, 2, 4), "(2, 2, 2, 4)")],
            "values": [
                *NOT_TENSORS,
                (torch.tensor(1.0), "()"),
                (x(2, 2, 1, 9), "(2, 2, 1, 9)"),
                (x(1, 2, 1, 5), "(1, 2, 1, 5)"),
            ],
            "positions": [*NOT_TENSORS, (L, "(3,)"), (torch.zeros(2, 1), "(2, 1)"), (torch.tensor(3), "()")],
        },
    ),
    "attention.MultiHeadAttention": Row(MultiHeadAttention, ATTEND, BAD_ATTEND),
    "attention.MultiHeadAttention.forward": Row(attend, *FORWARD),
    "transformer.Block": Row(Block, ATTEND, BAD_ATTEND),
    "transformer.Block.forward": Row(block, *FORWARD),
    **transformer_rows("transformer.Encoder", Encoder),
    **transformer_rows("transformer.Decoder", Decoder),
    **scheme_rows(
        "naive.LinearPositions",
        LinearPositions,
        {"d_model": 6},
        {"d_model": NOT_COUNTS, "direction": NOT_DIRECTIONS},
        whole=True,
    ),
    **scheme_rows(
        "naive.NormalizedPositions",
        NormalizedPositions,
        {"d_model": 6},
        {"d_model": NOT_COUNTS, "direction": NOT_DIRECTIONS},
        whole=True,
    ),
    **scheme_rows(
        "naive.BinaryPositions",
        BinaryPositions,
        {"d_model": 6, "num_bits": 2},
        {"d_model": [*NOT_COUNTS, (1, "d_model=1")], "num_bits": [*NOT_COUNTS, (7, "num_bits=7")]},
        whole=True,
    ),
    **scheme_rows(
        "sinusoidal.SinusoidalPositions",
        SinusoidalPositions,
        {"d_model": 6},
        {"d_model": NOT_COUNTS, "base": NOT_BASES},
        whole=False,
    ),
    "naive.linear": Row(linear, {"positions": L}, {"positions": NOT_POSITIONS}),
    "naive.normalized": Row(
        normalized,
        {"positions": L, "length": 3},
        {"positions": [*NOT_POSITIONS, ([3], "position 3")], "length": [*NOT_COUNTS, (2, "length 2")]},
    ),
    "naive.modulo": Row(modulo, {"positions": L, "period": 2}, {"positions": NOT_POSITIONS, "period": [*NOT_COUNTS, 1]}),
    "naive.binary": Row(
        binary,
        {"positions": L, "num_bits": 2},
        {"positions": [*NOT_POSITIONS, ([4], "take num_bits=3")], "num_bits": [*NOT_COUNTS, (1, "num_bits=1"), 53]},
    ),
    "sinusoidal.frequencies": Row(frequencies, {"d_model": 6}, {"d_model": NOT_COUNTS, "base": NOT_BASES}),
    "sinusoidal.sinusoidal_table": Row(
        sinusoidal_table,
        {"positions": L, "d_model": 6},
        {
            "positions": NOT_REAL_POSITIONS,
            "d_model": NOT_COUNTS,
            "base": NOT_BASES,
            "dtype": NOT_DTYPES,
        },
    ),
    "sinusoidal.angle_addition_table": Row(
        angle_addition_table,
        {"length": 3, "d_model": 6},
        {"length": NOT_COUNTS, "d_model": NOT_COUNTS, "base": NOT_BASES, "start": [-1, 0.5, NAN, True, "0", None]},
    ),
    **{
        f"geometry.{function.__name__}": Row(
            function, {"offsets": [1.0], "d_model": 6}, {"offsets": NOT_OFFSETS, "d_model": NOT_EVEN, "base": NOT_BASES}
        )
        for function in (similarity, similarity_by_pair, distance)
    },
    "geometry.wavelengths": Row(wavelengths, {"d_model": 6}, {"d_model": NOT_COUNTS, "base": NOT_BASES}),
    "geometry.turning_pairs": Row(
        turning_pairs,
        {"length": 3, "d_model": 6},
        {"length": NOT_COUNTS, "d_model": NOT_COUNTS, "base": NOT_BASES, "angle": NOT_POSITIVE},
    ),
    "geometry.norms": Row(
        norms,
        {"positions": L, "d_model": 6},
        {"positions": NOT_REAL_POSITIONS, "d_model": NOT_COUNTS, "base": NOT_BASES},
    ),
    "geometry.shift_matrix": Row(
        shift_matrix,
        {"offset": 1, "d_model": 6},
        {"offset": [NAN, INF, -INF, "1", None, 1j, True, [1]], "d_model": NOT_EVEN, "base": NOT_BASES},
    ),
    "learned.learned_encoding": Row(
        learned_encoding,
        {"table": x(4, 6), "positions": L},
        {
            "table": [*NOT_TENSORS, (x(4), "(4,)"), (x(4, 0), "(4, 0)"), (x(4, 6, dtype=torch.int64), "torch.int64")],
            "positions": [*NOT_POSITIONS, ([4], "position 4")],
        },
    ),
    **scheme_rows(
        "learned.LearnedPositions",
        LearnedPositions,
        {"max_length": 4, "d_model": 6},
        {"max_length": NOT_COUNTS, "d_model": NOT_COUNTS, "std": NOT_POSITIVE},
        whole=True,
    ),
    "relative.offsets": Row(
        offsets,
        {"q_positions": torch.zeros(2, 3), "k_positions": torch.zeros(2, 4)},
        {name: [*NOT_PAIRS, (torch.zeros(3, 3), "(3, 3)")] for name in ("q_positions", "k_positions")},
    ),
    "relative.shaw_bias": Row(
        shaw_bias,
        {"query": Q, "table": x(5, 4), "q_positions": L, "k_positions": L},
        {
            "query": [*NOT_HEADS_OF, (x(2, 2, 3, 5), "(2, 2, 3, 5)")],
            "table": [*NOT_TENSORS, (x(4, 4), "(4, 4)"), (x(5, 3), "(5, 3)"), (x(5), "(5,)")],
            "q_positions": [*NOT_POSITIONS, ([0, 1], "(2,)"), (x(3, 3), "(3, 3)")],
            "k_positions": [*NOT_POSITIONS, (x(3, 3), "(3, 3)")],
        },
    ),
    **bias_rows(
        "relative.ShawPositions",
        ShawPositions,
        {"d_head": 4, "max_offset": 2},
        {"d_head": NOT_COUNTS, "max_offset": NOT_COUNTS},
        (x(2, 2, 3, 5), "(2, 2, 3, 5)"),
    ),
    "relative.t5_buckets": Row(
        t5_buckets,
        {"offsets": [[1, -1]], "num_buckets": 8, "max_distance": 9, "causal": False},
        {
            "offsets": NOT_WHOLE_OFFSETS,
            "num_buckets": [*NOT_COUNTS, (3, "got 3"), (9, "got 9")],
            "max_distance": [*NOT_COUNTS, 2],
        },
    ),
    "relative.t5_bias": Row(
        t5_bias,
        {"table": x(8, 2), "q_positions": L, "k_positions": L, "max_distance": 9, "causal": True},
        {
            "table": [*NOT_TENSORS, (x(8), "(8,)"), (x(1, 2), "got 1")],
            "q_positions": NOT_POSITIONS[:-2],
            "k_positions": [*NOT_POSITIONS[:-3], *NOT_POSITIONS[-2:]],
            "max_distance": [*NOT_COUNTS, 4],
        },
    ),
    **bias_rows(
        "relative.T5Positions",
        T5Positions,
        {"num_heads": 2, "num_buckets": 8, "max_distance": 9, "causal": True},
        {"num_heads": NOT_COUNTS, "num_buckets": [*NOT_COUNTS, 1], "max_distance": [*NOT_COUNTS, 4]},
        (x(2, 3, 3, 4), "q has 3"),
    ),
    "rope.rope_tables": Row(
        rope_tables,
        {"positions": L, "frequencies": OMEGA},
        {"positions": NOT_REAL_POSITIONS, "frequencies": NOT_FREQUENCIES, "dtype": NOT_DTYPES},
    ),
    "rope.axial_rope_tables": Row(
        axial_rope_tables,
        {"rows": L, "columns": L, "frequencies": OMEGA},
        {
            "rows": [*NOT_REAL_POSITIONS, ([1], "(1, 2)")],
            "columns": [*NOT_REAL_POSITIONS, ([1], "(1, 2)")],
            "frequencies": NOT_FREQUENCIES,
            "dtype": NOT_DTYPES,
        },
    ),
    "rope.apply_rope": Row(
        apply_rope, {"x": Q, **TURNS, "interleaved": True}, {"x": NOT_TURNED, "cos": NOT_TURNS, "sin": NOT_TURNS}
    ),
    "rope.apply_rope_complex": Row(
        apply_rope_complex, {"x": Q, **TURNS}, {"x": NOT_TURNED, "cos": NOT_TURNS, "sin": NOT_TURNS}
    ),
    "conventions.read_rotation": Row(
        read_rotation,
        {"rotate": lambda x: apply_rope(x, *rope_tables(range(2), frequencies(x.shape[-1])), interleaved=True), "d_head": 6},
        {
            "rotate": [
                None,
                "text",
                (lambda x: x.tolist(), "[[[["),
                (lambda x: x[0], "(3, 2, 6)"),
                (lambda x: x[:, :2], "position 0"),
                (lambda x: x, "turns nothing"),
                (lambda x: 2 * x, "position 0"),
            ],
            "d_head": [*NOT_EVEN, 2],
        },
    ),
    "conventions.read_table": Row(
        read_table,
        {"table": sinusoidal_table(L, 6)},
        {"table": [*NOT_TENSORS, (x(6), "(6,)"), (x(1, 6), "(1, 6)"), (x(3, 7), "(3, 7)"), (x(3, 6), "unit circle")]},
    ),
    "rope.layout_permutation": Row(layout_permutation, {"d_head": 4, "interleaved": True}, {"d_head": [*NOT_EVEN, 1]}),
    "rope.convert_projection": Row(
        convert_projection,
        {"weight": x(8, 6), "num_heads": 2, "interleaved": True, "rotary_dim": 2},
        {
            "weight": [*NOT_TENSORS, (x(8), "(8,)"), (x(7, 6), "7 rows"), (x(8, 6, dtype=torch.int64), "torch.int64")],
            "num_heads": [*NOT_COUNTS, (3, "num_heads=3")],
            "rotary_dim": [
                *(value for value in NOT_COUNTS if value is not None),
                (3, "rotary_dim must be even, got 3"),
                (6, "rotary_dim=6"),
            ],
        },
    ),
    "rope.RotaryPositions": Row(
        RotaryPositions,
        {"frequencies": OMEGA},
        {"frequencies": NOT_FREQUENCIES, "attention_factor": [*NOT_POSITIVE, INF]},
    ),
    **{
        name: Row(
            scheme.rotate,
            {"q": Q, "k": Q, "q_positions": L, "k_positions": L},
            {
                "q": [*NOT_HEADS_OF, (x(2, 2, 3, 2), "has 2")],
                "k": [*NOT_HEADS_OF, (x(2, 2, 3, 2), "has 2")],
                "q_positions": [*positions, ([0, 1], "(2, 2)")],
                "k_positions": [*positions, ([0, 1], "(2, 2)")],
            },
        )
        for name, scheme, positions in (
            ("rope.RotaryPositions.rotate", RotaryPositions(OMEGA), NOT_REAL_POSITIONS),
            ("rope_scaling.DynamicNTKPositions.rotate", DynamicNTKPositions(OMEGA, 2), NOT_POSITIONS),
        )
    },
    **{
        f"rope_scaling.{function.__name__}": Row(function, STRETCH, {"frequencies": NOT_FREQUENCIES, "factor": NOT_FACTORS})
        for function in (position_interpolation, ntk_aware)
    },
    "rope_scaling.dynamic_ntk": Row(
        dynamic_ntk,
        {"length": 8, "original_length": 4, **STRETCH},
        {"frequencies": NOT_FREQUENCIES, "factor": NOT_FACTORS, "length": NOT_COUNTS, "original_length": NOT_COUNTS},
    ),
    "rope_scaling.yarn": Row(
        yarn,
        {"original_length": 4, "truncate": True, **STRETCH},
        {
            "frequencies": NOT_GEOMETRIC,
            "factor": NOT_FACTORS,
            "original_length": NOT_COUNTS,
            "fast": [*NOT_POSITIVE, INF, (1, "got 1")],
            "slow": [*NOT_POSITIVE, INF, (32, "> 32")],
        },
    ),
    "rope_scaling.llama3": Row(
        llama3,
        {"original_length": 4, **STRETCH},
        {
            "frequencies": NOT_FREQUENCIES,
            "factor": NOT_FACTORS,
            "original_length": NOT_COUNTS,
            "fast": [*NOT_POSITIVE, INF, (1, "got 1")],
            "slow": [*NOT_POSITIVE, INF, (4, "> 4")],
        },
    ),
    "rope_scaling.yarn_attention_factor": Row(yarn_attention_factor, {"factor": 2}, {"factor": NOT_FACTORS}),
    "rope_scaling.DynamicNTKPositions": Row(
        DynamicNTKPositions,
        {"original_length": 4, **STRETCH},
        {"frequencies": NOT_FREQUENCIES, "original_length": NOT_COUNTS, "factor": NOT_FACTORS},
    ),
    "alibi.alibi_slopes": Row(alibi_slopes, {"num_heads": 2}, {"num_heads": NOT_COUNTS}),
    "alibi.alibi_bias": Row(
        alibi_bias,
        {"q_positions": torch.zeros(2, 3), "k_positions": torch.zeros(2, 4), "slopes": x(2)},
        {
            "q_positions": [*NOT_PAIRS, (torch.zeros(3, 3), "(3, 3)")],
            "k_positions": [*NOT_PAIRS, (torch.zeros(3, 3), "(3, 3)")],
            "slopes": NOT_SLOPES,
            "dtype": NOT_DTYPES,
        },
    ),
    "alibi.alibi_attention": Row(
        alibi_attention,
        {"query": Q, "key": Q, "value": Q, "slopes": x(2)},
        {
            name: [*NOT_HEADS_OF, (x(2, 2, 5, 4), "(2, 2, 5, 4)"), (Q.double(), "torch.float64")]
            for name in ("query", "key", "value")
        }
        | {"slopes": [*NOT_SLOPES, (x(3), "(3,)")]},
    ),
    **bias_rows(
        "alibi.AlibiPositions", AlibiPositions, {"num_heads": 2}, {"num_heads": NOT_COUNTS}, (x(2, 3, 3, 4), "q has 3")
    ),
    "training.train": Row(
        train,
        {"model": Encoder(5, 6, 2, 1), "sample": sample, "steps": 1},
        {
            "model": [lambda tokens: tokens, "model", None],
            "sample": [
                "sample",
                None,
                *((returning(value), repr(value)) for value in (None, IDS, (IDS,), (IDS, [1]))),
                (returning((IDS, IDS[:, :2])), "(2, 2)"),
                (returning((IDS, x(2, 3))), "torch.float32"),
                (returning((IDS, IDS + 5)), "target id 5"),
                (returning((IDS, IDS - 1)), "target id -1"),
                (returning((x(2, 3), IDS)), "torch.float32"),
            ],
            "steps": NOT_COUNTS,
            "learning_rate": [*NOT_POSITIVE, INF],
            "clip": [*NOT_POSITIVE, -INF],
            "seed": NOT_SEEDS,
            "schedule": ["cosine", 1, (lambda step: 0.0, "got 0.0"), (lambda step: "1", "got '1'")],
            "progress": ["bar", 1],
        },
    ),
    "training.warm_up_and_cosine": Row(
        warm_up_and_cosine,
        {"steps": 10, "warm_up": 2},
        {"steps": NOT_COUNTS, "warm_up": [*NOT_SEEDS, (11, "warm_up=11")], "floor": [*NOT_POSITIVE, (1.5, "floor=1.5")]},
    ),
    **lab_rows(),
}

# Calls that need more than one bad argument at a time.
MORE: dict[str, tuple[Callable[[], Any], str]] = {
    "Transformer itself": (lambda: Transformer(**MODEL), "Encoder or Decoder"),
    "a model of another width than its scheme": (lambda: Encoder(5, 8, 2, 1, SinusoidalPositions(6))(IDS), "(2, 3, 8)"),
    "caches of another number": (lambda: decoder(IDS, caches=[]), "got []"),
    "caches that are none": (lambda: decoder(IDS, caches=[None]), "got [None]"),
    "caches in an encoder": (lambda: Encoder(**MODEL)(IDS, caches=[Cache()]), "Encoder"),
    "a cache of another batch": (lambda: attend(x(4, 1, 6), torch.tensor([3]), cached()), "(4, 2, 1, 3)"),
    "one frequency to stretch": (lambda: ntk_aware(torch.ones(1, dtype=torch.float64), 2), "got 1"),
    "positions that a scheme cannot hold": (lambda: Decoder(5, 6, 2, 1, BinaryPositions(6, 1))(IDS), "take num_bits=2"),
    "more sequences of positions than of tokens": (lambda: decoder(IDS, torch.zeros(3, 3)), "(3, 3)"),
    "query and key of two dtypes": (lambda: attention_weights(x(3, 4), x(3, 4).double()), "torch.float64"),
    "a scheme's bias of the wrong shape": (
        lambda: MultiHeadAttention(6, 2, TooManyHeads(), causal=False)(x(2, 3, 6), L),
        "(1, 3,",
    ),
}

# What computes nothing from its arguments, or answers in words: nothing in it can be wrong.
EXEMPT = {
    "nope.NoPositions": "takes no argument",
    "schemes.PositionScheme": "takes no argument",
    "schemes.PositionScheme.embed": "returns its argument",
    "schemes.PositionScheme.rotate": "returns its arguments",
    "schemes.PositionScheme.bias": "returns None",
    "attention.Cache": "holds what extend has checked",
    "transformer.Transformer": "in MORE: always an error",
    "transformer.Decoder.new_caches": "takes no argument",
    "training.History": "a record",
    "conventions.RotaryConvention": "a record",
    "conventions.TableConvention": "a record",
    "experiment.config.Config.as_json": "takes no argument",
    "experiment.corpus.Corpus": "a record",
    "experiment.tasks.Task": "a record",
    "experiment.evaluation.WindowedPositions.embed": "as the scheme inside",
    "experiment.evaluation.WindowedPositions.rotate": "as the scheme inside",
    "experiment.folder.run_experiment": "in test_experiment.py",
    "experiment.folder.evaluate_again": "in test_experiment.py",
    "experiment.folder.merge": "in test_experiment.py",
    "experiment.folder.save_report": "in test_experiment.py",
    "naive.LinearPositions.number": "is `linear`",
    "naive.NormalizedPositions.number": "is `normalized`",
}


class TooManyHeads(PositionScheme):
    def bias(self, q: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return q.new_zeros(1, q.shape[1] + 1, q.shape[2], q.shape[2])


def case(bad: Any) -> tuple[Any, str]:
    """A bad value and what the message must show of it."""
    return bad if isinstance(bad, tuple) and len(bad) == 2 and isinstance(bad[1], str) else (bad, repr(bad))


CASES = [
    pytest.param(row, argument, *case(bad), id=f"{name}-{argument}-{number}")
    for name, row in ROWS.items()
    for argument, values in row.bad.items()
    for number, bad in enumerate(values)
]


@pytest.mark.parametrize("name", ROWS)
def test_the_good_call_of_each_row_works(name: str) -> None:
    ROWS[name].function(**ROWS[name].good)


@pytest.mark.parametrize(("row", "argument", "bad", "shown"), CASES)
def test_bad_input_is_named(row: Row, argument: str, bad: Any, shown: str) -> None:
    """ValueError and nothing else; what was given; then, after a colon, what to do."""
    with pytest.raises(ValueError, match=re.escape(shown)) as caught:
        row.function(**row.good | {argument: bad})
    message = str(caught.value)
    assert "\n" not in message.replace(shown, "")
    assert re.search(r": \S", message.split(shown)[-1] if shown not in message.rpartition(": ")[2] else message)


@pytest.mark.parametrize("name", MORE)
def test_arguments_that_do_not_fit_each_other_are_named(name: str) -> None:
    call, shown = MORE[name]
    with pytest.raises(ValueError, match=re.escape(shown)):
        call()


def test_a_refused_call_leaves_the_cache_as_it_was() -> None:
    cache = cached()
    with pytest.raises(ValueError, match="do not continue"):
        cache.extend(x(2, 2, 1, 4), x(2, 2, 1, 6), torch.tensor([3]))
    assert cache.keys is not None
    assert cache.keys.shape == (2, 2, 3, 4)


# ── nothing forgotten ────────────────────────────────────────────────────────────────────────────────────────────────────


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(posenc_course.__path__, "posenc_course."):
        # Plotting draws for the book; test_plotting.py has its errors.
        if not any(part.startswith("_") for part in info.name.split(".")) and info.name != "posenc_course.plotting":
            yield importlib.import_module(info.name)


def public_callables() -> Iterator[str]:
    """Functions, classes and the methods that these classes define or have from a private base, as module.name.

    Not the checks: they return verdicts on whatever they get, in test_checks.py and test_exercises.py.
    """
    for module in modules():
        if module.__name__.startswith("posenc_course.checks"):
            continue
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            path = f"{module.__name__}.{name}".removeprefix("posenc_course.")
            if isinstance(value, FunctionType):
                yield path
            elif inspect.isclass(value):
                yield path
                private = (base for base in value.__mro__ if base.__name__.startswith("_"))
                own = dict.fromkeys(attribute for source in (value, *private) for attribute in vars(source))
                yield from (
                    f"{path}.{method}"
                    for method in own
                    if isinstance(getattr(value, method), FunctionType) and method[0] != "_"
                )


def test_every_public_callable_has_a_row() -> None:
    """A new function comes with its bad inputs; a row of a function that is gone goes with it."""
    inherited = {"transformer.Encoder.forward", "transformer.Decoder.forward"}  # Transformer's, tried in both
    assert {*public_callables()} - {"transformer.Transformer.forward"} == {*ROWS, *EXEMPT} - inherited


def test_every_argument_of_a_row_is_tried() -> None:
    """But for flags, which take whatever Python takes for true, and what MORE tries."""
    tried_elsewhere = {"causal", "interleaved", "truncate", "cache", "caches", "self"}
    for name, row in ROWS.items():
        target = row.function.forward if isinstance(row.function, nn.Module) else row.function
        arguments = {*inspect.signature(target).parameters} - tried_elsewhere
        assert arguments == {*row.bad}, name
