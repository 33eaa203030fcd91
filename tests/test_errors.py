"""Bad input to every public function: a ValueError that names what was given, and what to do instead; never anything else.

The rules beside the signatures (`posenc_course._validation`) say what each argument must be, and bad values are made from them.
Cases without a rule, which depend on several arguments or on what a function finds while it runs, are written by hand.
"""

import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache, partial
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import posenc_course
from posenc_course import (
    _validation,
    alibi,
    attention,
    contextual,
    learned,
    relative,
    rope,
    sinusoidal,
    temperature,
)
from posenc_course._validation import Bounded, Frequencies, Instance, Numbers, Rule, Shaped, parse
from posenc_course.attention import Cache, MultiHeadAttention
from posenc_course.experiment import tasks
from posenc_course.experiment.config import Config, Run, build_model
from posenc_course.experiment.recital import recital
from posenc_course.llama import GroupedAttention
from posenc_course.naive import BinaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies
from posenc_course.transformer import Decoder, Encoder, Transformer

NAN, INF, HUGE = math.nan, math.inf, 10**400
L = torch.arange(3)


def x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(*shape, dtype=dtype)


# ── bad values by kind, each with a part of the message that shows it was understood ─────────────────────────────────────

Bad = tuple[Any, str]
Arguments = dict[str, Any]


def plain(*values: Any) -> list[Bad]:
    """What the message shows as Python writes it."""
    return [(value, " ".join(repr(value).split())) for value in values]


def shaped(*tensors: torch.Tensor) -> list[Bad]:
    return [(tensor, str(tuple(tensor.shape))) for tensor in tensors]


def not_instances(rule: Instance, good: Arguments) -> list[Bad]:
    wrong = {
        "Module": [lambda tokens: tokens, "model"],
        "PositionScheme": ["rope", 3, SinusoidalPositions],
        "function": ["bar", 1],
        "flag": ["no", 1, 0.0],
        "dtype": [torch.int64, "float32", float],
    }
    return plain(*wrong[rule.kind])


def not_frequencies(rule: Frequencies, good: Arguments) -> list[Bad]:
    some = torch.tensor([[1.0, NAN], [1.0, -0.5], [INF, 1.0]], dtype=torch.float64)
    wrong = [(x(3), "torch.float32"), *zip(some, ("nan", "-0.5", "inf"), strict=True)]
    return plain(64, [1.0, 0.1]) + shaped(x(2, 3, dtype=torch.float64), x(0, dtype=torch.float64)) + wrong


def not_bounded(rule: Bounded, good: Arguments) -> list[Bad]:
    wrong = [NAN, -INF, True, "8", [4], 1j, HUGE, *([2.5] if rule.whole else [])]
    wrong += [] if rule.rest.endswith("or inf") else [INF]
    for sign, limit in rule.bounds:
        bound = good[limit] if limit in good else float(limit)
        step = 1 if rule.kind != "number" else 0.5
        outside = bound if sign == ">" else bound + (step if sign == "<=" else -step)
        wrong += [type(step)(outside)] if sign == "<=" else [type(step)(outside), type(step)(bound - 11)]
    if rule.kind == "even":
        wrong.append(7)
    return plain(*wrong)


def not_numbers(rule: Numbers, good: Arguments, value: Any) -> list[Bad]:
    """Good positions or offsets with something wrong in the first one, in all of them, or in their shape."""
    if rule.only_tensors:
        wrong: list[Bad] = plain([0, 1, 2], "text", 3)
    else:
        wrong = [
            *plain("text", {1: 2}, [1, "a"], [[1, 2], [3]]),
            (True, "torch.bool"),
            ([True, False], "torch.bool"),
            ([1j], "torch.complex128"),
            ([], "(0,)"),
        ]
    if rule.sizes and not rule.only_tensors:
        wrong.append((5, "()"))
    whole = [-3.0, 0.5] if rule.kind == "whole" else [0.5] if rule.kind == "integer" else []
    for number in (NAN, INF, -INF, *whole):
        numbers = torch.as_tensor(value).double().clone()
        numbers.view(-1)[0] = number
        wrong.append((numbers if rule.only_tensors else numbers.tolist(), f"{number:g}"))
    for dtype in (torch.bool, torch.complex64, torch.bfloat16, torch.float16):
        wrong.append((torch.zeros(torch.as_tensor(value).shape, dtype=dtype), str(dtype)))
    return wrong


def not_shaped(rule: Shaped, good: Arguments, value: torch.Tensor) -> list[Bad]:
    other = {"float": torch.int64, "finite": torch.int64, "bool": torch.float32, "ids": torch.float32}[rule.kind]
    wrong = [*plain([[1.0]], "text", 3), (value.numpy(), "array("), (value.to(other), str(other))]
    if rule.kind != "bool":
        wrong.append((value.bool(), "torch.bool"))
    if rule.kind == "finite":
        wrong += [(torch.full_like(value, number), f"{number:g}") for number in (NAN, INF, -INF)]
    return wrong


def seen_sizes(rule: Shaped, value: Any) -> set[str]:
    """The names of the sizes that a value has, among those of its rule."""
    return {size.name for size in rule.sizes[-torch.as_tensor(value).ndim :]}


def of_bad_shape(name: str, rules: dict[str, Rule], good: Arguments) -> list[Bad]:
    """A good tensor with sizes too many, too few, none, or other than what the rules say of another argument."""
    rule, value = rules[name], torch.as_tensor(good[name])
    assert isinstance(rule, Shaped)
    if rule.broadcasts:
        return shaped(x(4, 3).to(value.dtype), x(5, 2, 3, 3).to(value.dtype), value[:0])
    others = {other: each for other, each in rules.items() if other != name and isinstance(each, Shaped)}
    elsewhere = {size for other, each in others.items() for size in seen_sizes(each, good[other])} | {*good}
    wrong = [value[:0]] if value.ndim else []
    wrong += [value.reshape(-1)[0]] if rule.sizes else []  # without any size
    if rule.sizes and not rule.open:
        wrong.append(value[(None,) * (len(rule.sizes) + 1 - value.ndim)])
    if len(rule.sizes) > 1 and not rule.may_lack_first:
        wrong.append(value[(0,) * (value.ndim - len(rule.sizes) + 1)])
    if rule.open and any(each.open and not each.broadcasts for each in others.values()):
        wrong.append(value[:1].expand(7, *value.shape[1:]))
    for axis, size in enumerate(reversed(rule.sizes[-value.ndim :]), start=1):
        if size.own or size.name in elsewhere or size.times > 1:
            wrong.append(torch.cat((value, value.narrow(-axis, 0, 1)), dim=-axis))
    if rule.may_lack_first and value.ndim < len(rule.sizes) and rule.sizes[0].name in elsewhere:
        wrong.append(value.expand(5, *value.shape))
    alike = rule.like or any(each.like == name for each in others.values())
    return shaped(*wrong) + [(value.double(), "torch.float64")] * bool(alike)


def bad_values(name: str, rules: dict[str, Rule], good: Arguments) -> list[Bad]:
    """What an argument must not be, by its rule and those of the others."""
    rule = rules[name]
    nothing = [] if rule.optional else plain(None)
    if isinstance(rule, Numbers):
        return not_numbers(rule, good, good[name]) + of_bad_shape(name, rules, good) + nothing
    if isinstance(rule, Shaped):
        return not_shaped(rule, good, good[name]) + of_bad_shape(name, rules, good) + nothing
    kinds: dict[type, Callable[..., list[Bad]]] = {Instance: not_instances, Frequencies: not_frequencies}
    return kinds.get(type(rule), not_bounded)(rule, good) + nothing


# ── good values: by the argument's name, and where a function needs another, by the function's ───────────────────────────

OMEGA, Q, IDS = frequencies(4), x(2, 2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)
PAIR = {"q_positions": torch.zeros(2, 3), "k_positions": torch.zeros(2, 4)}
COMMON: Arguments = {
    "angle": 1.0, "attention_factor": 1.0, "base": 100.0, "batch": 2, "causal": True, "clip": 1.0, "columns": L, "cos": x(3, 2),
    "d_head": 4, "d_model": 6, "direction": x(6), "dtype": torch.float64, "factor": 2.0, "fast": 32.0, "floor": 0.5,
    "frequencies": OMEGA, "interleaved": True, "k": Q, "k_positions": L, "key": Q, "keys": x(2, 2, 1, 4), "learning_rate": 0.1,
    "length": 8, "max_distance": 9, "max_length": 4, "max_offset": 2, "model": Encoder(5, 6, 2, 1), "num_bits": 2,
    "num_buckets": 8, "num_heads": 2, "num_layers": 1, "num_outputs": 3, "offset": 1, "offsets": [[1.0, -1.0]],
    "original_length": 4, "padding": torch.zeros(2, 3, dtype=torch.bool), "period": 2, "positions": L, "progress": None, "q": Q,
    "q_positions": L, "query": Q, "rotary_dim": 2, "rows": L, "sample": lambda _: (IDS, IDS), "schedule": None, "seed": 0,
    "scheme": PositionScheme(), "sin": x(3, 2), "slopes": x(2), "slow": 1.0, "start": 0, "std": 0.02, "steps": 1,
    "table": x(5, 4), "tokens": IDS, "value": Q, "values": x(2, 2, 1, 5), "vocab_size": 5, "warm_up": 1, "weight": x(8, 6),
    "axes": torch.tensor([0, 1]), "before": None, "rate": 0.1, "sections": [2, 1], "share": 0.5, "trained": 4, "truncate": True,
    "window": 2, "d_hidden": 8, "epsilon": 1e-5, "num_key_heads": 1,
    "x": x(2, 3, 6), "bias": x(3, 3), "mask": torch.ones(3, 3, dtype=torch.bool),
}  # fmt: skip
VECTORS = {"query": x(2, 3, 4), "key": x(2, 3, 4)}
READABLE = {"rotate": lambda x: rope.apply_rope(x, *rope.rope_tables([0, 1], frequencies(x.shape[-1])), interleaved=True)}


def located(*sizes: int) -> Arguments:
    return dict.fromkeys(("q_positions", "k_positions"), x(2, 2, 3, *sizes))


OWN: dict[str, Arguments] = {
    "alibi.alibi_bias": PAIR,
    "attention.attention": VECTORS | {"value": x(2, 3, 5)},
    "attention.attention_weights": VECTORS,
    "attention.causal_mask": PAIR,
    "attention.linear_attention": VECTORS | {"value": x(2, 3, 5)},
    "attention.Cache.extend": {"positions": torch.tensor([3])},
    "contextual.ForgettingPositions.bias": located(1),
    "contextual.ReflectedPositions.rotate": {"q": x(2, 2, 3, 3), "k": x(2, 2, 3, 3)} | located(3, 3),
    "contextual.SelectiveRotaryPositions": {"d_model": 8},
    "contextual.SelectiveRotaryPositions.locate": {"x": x(2, 3, 8)},
    "contextual.SelectiveRotaryPositions.rotate": located(2),
    "conventions.read_rotation": READABLE | {"d_head": 6},
    "conventions.read_table": {"table": sinusoidal.sinusoidal_table(L, 6)},
    "llama.Llama.losses": {"positions": L[:2]},
    "models.find_model": {"name": "BERT"},
    "relative.offsets": PAIR,
    "relative.t5_bias": {"table": x(8, 2)},
    "relative.t5_buckets": {"causal": False},
    "rope.apply_rope": {"x": Q},
    "rope.apply_rope_complex": {"x": Q},
    "rope.mrope_tables": {"positions": x(2, 3)},
    "rope_scaling.dynamic_ntk": {"length": 8},
    "temperature.llama4_factor": {"floor": 4, "scale": 0.1},
    "temperature.ScaledPositions": {"factor": torch.ones_like},
}


@cache
def target(path: str) -> tuple[Callable[..., Any], dict[str, Rule]]:
    """A public callable by module.name or module.class.method, made ready to be called, and its rules."""
    inner, name, *method = split(path)
    found = getattr(importlib.import_module(f"posenc_course.{inner}"), name)
    plainly = getattr(found, (method or ["__init__"])[0]) if inspect.isclass(found) else found
    rules = _validation.CHECKED.get(f"{plainly.__module__}.{plainly.__qualname__}", {})
    return (
        getattr(LAB.get(path, ({},))[0].get("self") or found(**good(f"{inner}.{name}")), *method) if method else found
    ), rules


def split(path: str) -> list[str]:
    """The module, the function or class, and the method of one."""
    parts = path.split(".")
    at = 2 if parts[0] == "experiment" else 1
    return [".".join(parts[:at]), *parts[at:]]


def good(path: str) -> Arguments:
    """Arguments of a call that works: all that have a rule, and all that must be given."""
    if path in LAB:
        return {name: value for name, value in LAB[path][0].items() if name != "self"}
    function, rules = target(path)
    known = COMMON | OWN.get(path, {})
    needed = [
        name for name, given in inspect.signature(function).parameters.items() if given.default is inspect.Parameter.empty
    ]
    names = dict.fromkeys([*needed, *rules])
    if lacks := [name for name in names if name not in known]:
        raise LookupError(
            f"{path} needs a good value of {' and '.join(lacks)}: add it to COMMON, or to OWN if only {path} takes it"
        )
    return {name: known[name] for name in names}


@cache
def lack(path: str) -> str:
    """What a good call lacks. Only one test fails for it."""
    try:
        good(path)
    except LookupError as error:
        return str(error)
    return ""


# ── by hand: what depends on several arguments, or on what a function finds while it runs ───────────────────────────────


def returning(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


def cached() -> Cache:
    cache = Cache()
    cache.extend(x(2, 2, 3, 4), x(2, 2, 3, 5), L)
    return cache


class TooManyHeads(PositionScheme):
    def bias(self, q: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return q.new_zeros(1, q.shape[1] + 1, q.shape[2], q.shape[2])


class Narrowing(PositionScheme):
    def rotate(self, q: torch.Tensor, k: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return q[..., :1], k


class Careless(PositionScheme):
    def embed(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x + sinusoidal.sinusoidal_table(positions.bfloat16(), 6)


BLIND = torch.ones(3, 3, dtype=torch.bool).tril(-1)
UNEQUALED = torch.zeros(3, 3).masked_fill(BLIND, INF)


class Answering(nn.Linear):
    """A model whose answer doesn't depend on its parameters."""

    def __init__(self, answer: Any) -> None:
        super().__init__(1, 1)
        self.answer = answer

    def forward(self, tokens: torch.Tensor) -> Any:
        return self.answer


attend, decoder, learner = (
    MultiHeadAttention(6, 2, PositionScheme(), causal=True),
    Decoder(5, 6, 2, 1),
    learned.LearnedPositions(2, 6),
)
FLAGS = torch.zeros(2, 4, dtype=torch.bool)
BY_HAND: dict[str, list[tuple[Arguments, str]]] = {
    **{
        path: [
            ({"bias": torch.zeros(3, 3).masked_fill(~BLIND, -INF)}, "query (0, 0)"), ({"mask": BLIND}, "query (0, 0)"),
            ({"bias": UNEQUALED}, "got inf"),
        ]
        for path in ("attention.attention", "attention.attention_weights")
    },
    "attention.linear_attention": [({"bias": UNEQUALED}, "got inf")],
    **{
        path: [({"d_model": 7}, "d_model=7"), ({"num_heads": 4}, "num_heads=4")]
        for path in (
            "attention.MultiHeadAttention", "transformer.Block", "transformer.Encoder", "transformer.Decoder",
            "contextual.ReflectedPositions",
        )
    },
    "contextual.SelectiveRotaryPositions": [
        ({"d_model": 7}, "d_model=7"), ({"num_heads": 3}, "num_heads=3"),
        *(({"frequencies": frequencies(d_head)}, f"({d_head // 2},)") for d_head in (2, 6, 8)),
    ],
    **{
        path: [
            ({"tokens": torch.tensor([[0, 5, 1], [1, 1, 1]])}, "token id 5"),
            ({"tokens": torch.tensor([[0, -1, 1], [1, 1, 1]])}, "token id -1"),
            ({"padding": FLAGS}, "(2, 4)"),
        ]
        for path in ("transformer.Encoder.forward", "transformer.Decoder.forward")
    },
    **{
        path: [
            ({"tokens": torch.tensor([[0, 5, 1], [1, 1, 1]])}, "token id 5"),
            ({"tokens": torch.tensor([[0, -1, 1], [1, 1, 1]])}, "token id -1"),
        ]
        for path in ("llama.Llama.forward", "llama.Llama.features", "llama.Llama.losses")
    },
    "llama.GroupedAttention": [
        ({name: bad}, f"{name}={bad}") for name, bad in {"d_model": 7, "num_heads": 4, "num_key_heads": 4}.items()
    ],
    "llama.Llama": [({"num_heads": 4}, "num_heads=4"), ({"scheme": "rope"}, "'rope'")],
    "llama.Llama.use": [({"scheme": "rope"}, "'rope'"), ({"scheme": [PositionScheme()] * 2}, "a list of 1")],
    "attention.MultiHeadAttention.forward": [({"padding": FLAGS}, "(2, 4)")],
    "transformer.Block.forward": [({"padding": FLAGS}, "(2, 4)")],
    "conventions.read_rotation": [
        ({"rotate": lambda x: x.tolist()}, "[[[["),
        ({"rotate": lambda x: x[0]}, "(3, 2, 6)"),
        ({"rotate": lambda x: x[:, :2]}, "position 0"),
        ({"rotate": lambda x: x}, "leaves position 1"),
        ({"rotate": lambda x: 2 * x}, "position 0"),
    ],
    "conventions.read_table": [
        ({"table": x(1, 6)}, "(1, 6)"), ({"table": x(3, 7)}, "(3, 7)"), ({"table": x(3, 6)}, "unit circle"),
    ],
    "models.find_model": [({"name": "Lama"}, "no model 'Lama'"), ({"name": None}, "no model None")],
    **{
        f"{scheme}.embed": [({"positions": L - 1}, "-1"), ({"positions": L / 2}, "0.5")]
        for scheme in ("naive.LinearPositions", "naive.NormalizedPositions")
    },
    "learned.learned_encoding": [({"positions": [5]}, "position 5")],
    "learned.LearnedPositions.embed": [
        ({"positions": L - 1}, "-1"), ({"positions": L / 2}, "0.5"), ({"positions": torch.tensor([0, 4, 1])}, "position 4"),
    ],
    "naive.binary": [({"positions": [4]}, "use num_bits=3"), ({"num_bits": 1}, "num_bits=1")],
    "naive.BinaryPositions": [({"d_model": 1}, "d_model=1"), ({"num_bits": 7}, "num_bits=7")],
    "naive.BinaryPositions.embed": [
        ({"positions": L - 1}, "-1"), ({"positions": L / 2}, "0.5"), ({"positions": L + 2}, "use num_bits=3"),
    ],
    "naive.normalized": [({"positions": [8]}, "position 8"), ({"length": 2}, "length 2")],
    "relative.t5_bias": [({"table": x(1, 2)}, "got 1"), ({"max_distance": 4}, "got 4")],
    "relative.t5_buckets": [
        ({"num_buckets": 3}, "got 3"), ({"num_buckets": 9}, "got 9"), ({"num_buckets": 2}, "got 2"),
        ({"max_distance": 2}, "got 2"),
    ],
    "relative.T5Positions": [({"num_buckets": 3, "causal": False}, "got 3"), ({"max_distance": 4}, "got 4")],
    "rope.convert_projection": [
        ({"weight": x(7, 6)}, "7 rows"), ({"num_heads": 3}, "num_heads=3"), ({"rotary_dim": 6}, "rotary_dim=6"),
        ({"weight": x(6, 6), "rotary_dim": None}, "got 3"),
    ],
    "rope.axial_rope_tables": [({"rows": x(2, 3)}, "(2, 3) and (3,)")],
    "rope.mrope_axes": [
        ({"sections": [2, 0]}, "[2, 0]"), ({"sections": [2, -1]}, "[2, -1]"),
        ({"sections": [16, 24, 24], "interleaved": True}, "[22, 21, 21]"),
        ({"sections": [1, 3], "interleaved": True}, "[2, 2]"),
    ],
    "rope.mrope_tables": [
        ({"positions": L}, "(3,)"), ({"positions": x(2, 2, 2, 3)}, "(2, 2, 2, 3)"), ({"positions": x(1, 3)}, "from 0 to 1"),
        ({"axes": torch.tensor([0, 1, 0])}, "3 axes"), ({"axes": torch.tensor([0, -1])}, "from -1 to 0"),
    ],
    **{
        path: [({"q": x(2, 2, 3, 2), "k": x(2, 2, 3, 2)}, "has 2")]
        for path in ("rope.RotaryPositions.rotate", "rope_scaling.DynamicNTKPositions.rotate")
    },
    **{
        path: [({"frequencies": OMEGA[:1]}, "got 1")]
        for path in ("rope_scaling.ntk_aware", "rope_scaling.dynamic_ntk", "rope_scaling.DynamicNTKPositions")
    },
    "rope_scaling.llama3": [({"slow": 32.0}, "slow = 32")],
    "rope_scaling.yarn": [
        ({"slow": 32.0}, "slow = 32"),
        ({"frequencies": torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64)}, "[1.0, 0.5, 0.1]")],
    "training.train": [
        *(({"sample": returning(value)}, repr(value)) for value in (None, IDS, (IDS,), (IDS, [1]))),
        ({"sample": returning((IDS, IDS[:, :2]))}, "(2, 2)"),
        ({"sample": returning((IDS, x(2, 3)))}, "torch.float32"),
        ({"sample": returning((IDS, IDS + 5))}, "target id 5"),
        ({"sample": returning((IDS, IDS - 1))}, "target id -1"),
        ({"sample": returning((x(2, 3), IDS))}, "torch.float32"),
        ({"sample": returning((IDS + 5, IDS))}, "token id 5"),
        ({"model": nn.Identity()}, "got Identity()"),
        ({"model": nn.Linear(1, 1).requires_grad_(False)}, "got Linear(in_features=1"),
        ({"model": Answering(3)}, "got 3"),
        ({"model": Answering(x(2, 3, 5))}, "(2, 3, 5)"),
        ({"sample": returning((IDS, IDS - 100))}, "all 6 targets are -100"),
        ({"schedule": lambda step: 0.0}, "got 0.0"),
        ({"schedule": lambda step: "1"}, "got '1'"),
    ],
}  # fmt: skip
# Calls of another form.
MORE: dict[str, tuple[Callable[[], Any], str]] = {
    "Transformer itself": (lambda: Transformer(5, 6, 2, 1), "Encoder or Decoder"),
    "a model of another width than its scheme": (lambda: Encoder(5, 8, 2, 1, SinusoidalPositions(6))(IDS), "(2, 3, 8)"),
    "a model of other heads than its scheme": (lambda: Encoder(5, 9, 3, 1, alibi.AlibiPositions(2))(IDS), "num_heads = 2"),
    "a model of wider heads than its scheme": (lambda: Encoder(5, 6, 2, 1, relative.ShawPositions(2, 1))(IDS), "d_head = 2"),
    "a model of other heads than its gates": (
        lambda: Encoder(5, 6, 2, 1, contextual.ForgettingPositions(6, 3))(IDS), "num_heads = 3 as in ForgettingPositions",
    ),
    "a model of other heads than its mirrors": (
        lambda: Encoder(5, 6, 2, 1, contextual.ReflectedPositions(6, 3))(IDS), "num_heads = 3 as in ReflectedPositions",
    ),
    "a model of other heads than its rotations": (
        lambda: Encoder(5, 8, 2, 1, contextual.SelectiveRotaryPositions(8, 4, OMEGA[:1]))(IDS), "num_heads = 4 as in Selective",
    ),
    "a cache that is none": (lambda: attend(x(2, 3, 6), L, 3), "got 3"),
    "a cache of grouped keys that is none": (
        lambda: GroupedAttention(6, 2, 1, PositionScheme())(x(2, 3, 6), L, 3), "got 3",
    ),
    "caches of another number": (lambda: decoder(IDS, caches=[]), "got []"),
    "caches that are none": (lambda: decoder(IDS, caches=[None]), "got [None]"),
    "caches in an encoder": (lambda: Encoder(5, 6, 2, 1)(IDS, caches=[Cache()]), "Encoder"),
    "a cache of another batch": (lambda: attend(x(4, 1, 6), torch.tensor([3]), cached()), "(4, 2, 1, 3)"),
    "keys wider than the cached ones": (lambda: cached().extend(x(2, 2, 1, 6), x(2, 2, 1, 5), L[:1]), "(2, 2, 1, 6)"),
    "values wider than the cached ones": (lambda: cached().extend(x(2, 2, 1, 4), x(2, 2, 1, 9), L[:1]), "(2, 2, 1, 9)"),
    "positions of each, after those of all": (lambda: cached().extend(Q[:, :, :1], Q[:, :, :1, :5], x(2, 1)), "(2, 1)"),
    "positions that a scheme cannot hold": (lambda: Decoder(5, 6, 2, 1, BinaryPositions(6, 1))(IDS), "use num_bits=2"),
    "schemes of another number": (lambda: Decoder(5, 6, 2, 2, [PositionScheme()]), "a list of 2, one per layer"),
    "a list with something that is no scheme": (lambda: Encoder(5, 6, 2, 2, [PositionScheme(), "rope"]), "got 'rope'"),  # type: ignore[list-item]
    "a list with nothing for a layer": (lambda: Encoder(5, 6, 2, 2, [PositionScheme(), None]), "got None"),  # type: ignore[list-item]
    "something that is no scheme": (lambda: Encoder(5, 6, 2, 2, "rope"), "got 'rope'"),  # type: ignore[arg-type]
    "an embedding in the second layer": (
        lambda: Encoder(5, 6, 2, 2, [PositionScheme(), SinusoidalPositions(6)]), "scheme[1] must be one that leaves",
    ),
    "a window for positions that don't count tokens": (
        lambda: relative.WindowedPositions(contextual.ForgettingPositions(6, 2), 4), "one that counts tokens",
    ),
    "factors for positions that don't count tokens": (
        lambda: temperature.ScaledPositions(contextual.ForgettingPositions(6, 2), torch.ones_like), "one that counts tokens",
    ),
    "a factor for all positions together": (
        lambda: temperature.ScaledPositions(PositionScheme(), lambda positions: positions[..., :1]).rotate(Q, Q, L, L), "(1,)",
    ),
    **{
        f"factors, {shown}": (
            partial(temperature.ScaledPositions(PositionScheme(), partial(torch.add, term)).rotate, Q, Q, L, L), shown,
        )
        for term, shown in ((NAN, "got nan"), (INF, "got inf"), (1j, "torch.complex128"))
    },
    **{
        f"a size of {size:.0e} in {of.__name__}": (partial(of, size), f"got {size}: ")
        for size in (10**15, 10**30)
        for of in (frequencies, alibi.alibi_slopes, recital)
    },
    "more tokens than a table has rows": (lambda: Decoder(5, 6, 2, 1, learner)(IDS), "position 2 lies beyond"),
    "fractions where a table has rows": (lambda: Decoder(5, 6, 2, 1, learner)(IDS, L / 2), "got 0.5"),
    "fractions where offsets have buckets": (
        lambda: Decoder(5, 6, 2, 1, relative.T5Positions(2, causal=True))(IDS, L / 2), "got 0.5",
    ),
    "more sequences of positions than of tokens": (lambda: decoder(IDS, torch.zeros(3, 3)), "(3, 3)"),
    "a scheme's bias of the wrong shape": (
        lambda: MultiHeadAttention(6, 2, TooManyHeads(), causal=False)(x(2, 3, 6), L), "(1, 3,",
    ),
    "a scheme's queries of the wrong width": (lambda: Decoder(5, 6, 2, 1, Narrowing())(IDS), "d_head = 1 as in query"),
    "what a user's scheme asks of the package": (lambda: Decoder(5, 6, 2, 1, Careless())(IDS), "skips whole numbers from 256"),
}  # fmt: skip

# ── the lab, whose functions have no rules: what each argument must not be, by a rule or one by one ──────────────────────

SEEDS: list[Any] = ["0,1", 3, [0, 0], ([0, True], "True"), ([0, -1], "-1"), ((), "()")]
MODELS: list[Any] = ["rope", None, (nn.Linear(1, 1), "Linear(")]
CONFIGS: list[Any] = ["quick", None, {}]
RUNS: list[Any] = ["text-rope-0", None]
RESULTS: list[Any] = [None, "full", {}, {"runs": 3}, {"runs": [3]}]
TINY: Arguments = {
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


def lab_rows() -> dict[str, tuple[Arguments, dict[str, Any]]]:
    """Good arguments of each function of the lab, and bad ones; those of a method with what it is a method of."""
    tiny, run = Config(**TINY), Run("text", "rope", 0)
    model, text = build_model(tiny, run), torch.arange(1000) % 128
    evaluation = {"plain": {"nonoverlapping": {"16": 1.0}, "by_position": [1.0]}}
    results = {"runs": [{"part": "text", "scheme": "rope", "seed": 0, "setting": "", "evaluation": evaluation}]}
    draw = {"generator": torch.Generator(), "batch": 2, "length": 16}
    counts = ("d_model", "num_heads", "num_layers", "steps", "batch_size", "spans", "task_steps", "side_steps")
    found: dict[str, Any] = {"results": RESULTS, "scheme": unknown("scheme")}
    # None is all of them here.
    wrong = {what: [case for case in unknown_among(what) if case[0] is not None] for what in ("scheme", "part")}
    of_run = {"part": unknown("part"), "scheme": unknown("scheme"), "seed": "count >= 0", "setting": unknown("setting")}
    return {
        "experiment.config.Run": ({"part": "scale", "scheme": "sinusoidal", "seed": 0, "setting": "unit"}, of_run),
        "experiment.config.Config": (
            TINY,
            {"name": [None, 3], "learning_rate": "number > 0", "warm_up": "count >= 0", "parts": unknown_among("part")}
            | dict.fromkeys(counts, "count")
            | {"d_model": ("count", [(6, "d_model=6")]), "num_heads": ("count", [(3, "num_heads=6")])}
            | {"length": ("count", [8, 20]), "task_length": ("count", [8, 20]), "evaluation_bytes": ("count", [64, 130])}
            | {"seeds": [*SEEDS, None], "rope_seeds": SEEDS, "schemes": unknown_among("scheme")}
            | {"multiples": [2, None, "12", (2, 4), (1, 4, 2), (1, 1), ((1, "2"), "'2'"), ((0, 1), "got 0")]},
        ),
        "experiment.config.Config.runs": (
            {"self": tiny},
            {
                "schemes": [*wrong["scheme"], (["rope", "window"], "no run has scheme 'window'")],
                "seeds": SEEDS, "parts": wrong["part"],
            },
        ),
        "experiment.config.Config.of": ({"self": tiny, "run": run}, {"run": RUNS}),
        "experiment.config.preset": (
            {"which": "quick"}, {"which": unknown("preset"), "changes": [(3, "unknown field 'changes'")]}
        ),
        "experiment.config.build_scheme": ({"name": "t5", "config": tiny}, {"name": unknown("scheme"), "config": CONFIGS}),
        "experiment.config.build_model": ({"config": tiny, "run": run}, {"config": CONFIGS, "run": RUNS}),
        "experiment.corpus.load_corpus": ({}, {"folder": ["nowhere", (3, "'3'"), (".", "no complete text in .")]}),
        **{
            f"experiment.tasks.{task}": (draw, {"generator": [0, None], "batch": "count", "length": ("count", [3])})
            for task in tasks.TASKS
        },
        "experiment.recital.recital": ({"length": 4}, {"length": "count", "start": "count >= 0"}),
        "experiment.recital.write": (
            {"model": model, "prompts": text[None, :4], "length": 6},
            {"model": MODELS, "prompts": ["one", None, *shaped(text[:4], x(2, 3))], "length": ("count", [3])},
        ),
        "experiment.recital.evaluate_recital": (
            {"model": model, "trained_length": 32}, {"model": MODELS, "trained_length": ("count", [24])}
        ),
        "experiment.evaluation.changes_of": ({"model": model}, {"model": MODELS}),
        "experiment.evaluation.possible_changes": ({"scheme": PositionScheme()}, {"scheme": "PositionScheme"}),
        "experiment.evaluation.changed": (
            {"model": model, "change": "ntk", "length": 32, "trained_length": 16},
            {"model": MODELS, "change": unknown("change"), "length": "count", "trained_length": "count"},
        ),
        "experiment.evaluation.token_losses": (
            {"model": model, "windows": text[None, :9]},
            {
                "model": MODELS,
                "windows": [
                    "text", None, *shaped(text[:9], text[None, :1], x(2, 3)),
                    (torch.tensor([[1, 128]]), "token id 128"), (torch.tensor([[128, 1]]), "token id 128"),
                ],
            },
        ),
        "experiment.evaluation.evaluate_text": (
            {"model": model, "config": tiny, "text": text, "changes": ("ntk",)},
            {
                "model": MODELS, "config": CONFIGS, "changes": unknown_among("change")[:-2],
                "text": [[[1.0]], "text", None, 3, (x(1000), "torch.float32"), *shaped(text[None]), (text[:100], "100 bytes")],
            },
        ),
        "experiment.evaluation.evaluate_task": (
            {"model": model, "config": tiny, "task": "order"}, {"model": MODELS, "config": CONFIGS, "task": unknown("task")}
        ),
        "experiment.evaluation.linear_along_ones": (
            {"length": 4, "d_model": 8}, {"length": "count", "d_model": "count", "seed": "count >= 0"}
        ),
        "experiment.runs.train_run": (
            {"config": tiny, "run": Run("order", "none", 0)},
            {
                "config": CONFIGS, "run": RUNS, "progress": ["bar", 1],
                "device": [(name, f"device {name!r} is not available") for name in ("cuda:99", "tpu", "meta", 3.5)],
            },
        ),
        "experiment.runs.measure": (
            {"model": model, "config": tiny, "run": run},
            {"model": MODELS, "config": CONFIGS, "run": RUNS, "text": ["text", 3]},
        ),
        "experiment.folder.load_results": ({}, {"results": ["nothing", 3, None]}),
        "experiment.folder.load_model": (
            {"scheme": "rope"},
            {
                "scheme": unknown("scheme"), "seed": ("count >= 0", [7]), "part": [*unknown("part"), ("copy", "are none")],
                "folder": ["nowhere", (3, "'3'")],
            },
        ),
        "experiment.report.records": (
            {"results": results, "part": "text", "scheme": "rope"},
            found | {"part": [*unknown("part"), "copy"], "setting": ["unit"]},
        ),
        "experiment.report.scores": (
            {"results": results, "scheme": "rope"},
            found
            | {"part": [*unknown("part"), "copy"], "setting": ["unit"], "how": [*unknown("way to measure"), "last"]}
            | {"change": ["ntk", *unknown("change")]},
        ),
        "experiment.report.curve": ({"results": results, "scheme": "rope"}, found | {"change": ["ntk", *unknown("change")]}),
        "experiment.report.describe": (
            {"values": x(3, 4)}, {"values": [[[1.0]], "text", None, 3, *shaped(torch.tensor(1.0)), (IDS, "torch.int64")]}
        ),
        "experiment.report.bits_per_byte": ({"nats": 2.0}, {"nats": "number"}),
        "experiment.report.tables": ({"results": {"runs": []}}, {"results": RESULTS}),
    }  # fmt: skip


LAB = lab_rows()


# ── what is tried ────────────────────────────────────────────────────────────────────────────────────────────────────────

# Records and whatever takes no argument have nothing to refuse. This is what else isn't tried here:
EXEMPT = {
    **dict.fromkeys((f"schemes.PositionScheme.{door}" for door in ("embed", "rotate", "bias", "locate")), "does nothing"),
    "attention.Cache": "holds what extend has checked",
    "attention.require_flags": "is a check itself",
    "transformer.Transformer": "in MORE: always an error",
    "transformer.Transformer.forward": "tried in Encoder and Decoder",
    "models.Settings.frequencies": "in test_models.py",
    "llama.own_name": "translates the names in a file",
    "llama.load_llama": "in test_llama.py",
    "inspector.inspect": "in test_inspector.py",
    "inspector.inspect_model": "in test_inspector.py",
    "relative.WindowedPositions.embed": "as the scheme inside",
    "relative.WindowedPositions.rotate": "as the scheme inside",
    "temperature.ScaledPositions.embed": "as the scheme inside",
    "temperature.ScaledPositions.bias": "as the scheme inside",
    **dict.fromkeys(
        (f"experiment.folder.{name}" for name in ("run_experiment", "evaluate_again", "merge", "save_report")),
        "in test_experiment.py",
    ),
}


def takes_nothing(path: str) -> bool:
    """Whether a callable has nothing to refuse."""
    inner, name, *method = split(path)
    found = getattr(importlib.import_module(f"posenc_course.{inner}"), name)
    if inspect.isclass(found) and not method and (is_dataclass(found) or issubclass(found, tuple)):
        return path not in LAB
    parameters = inspect.signature(getattr(found, method[0]) if method else found).parameters.values()
    return all(each.name == "self" or each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters)


def public_callables() -> Iterator[str]:
    """Functions, classes and the methods that these classes define or have from a private base, as module.name.

    Not the checks: they return verdicts on whatever they get, in test_checks.py and test_exercises.py. Nor plotting, which
    draws for the book: test_plotting.py has its errors.
    """
    for info in pkgutil.walk_packages(posenc_course.__path__, "posenc_course."):
        inner = info.name.removeprefix("posenc_course.")
        if any(part.startswith("_") for part in inner.split(".")) or inner.split(".")[0] in ("plotting", "checks"):
            continue
        for name, value in vars(importlib.import_module(info.name)).items():
            if name.startswith("_") or getattr(value, "__module__", None) != info.name:
                continue
            if isinstance(value, FunctionType) or inspect.isclass(value):
                yield f"{inner}.{name}"
            if inspect.isclass(value):
                bases = [base for base in value.__mro__ if base is value or base.__name__[0] == "_" or base is Transformer]
                for method in dict.fromkeys(attribute for base in bases for attribute in vars(base)):
                    if isinstance(getattr(value, method), FunctionType) and method[0] != "_":
                        yield f"{inner}.{name}.{method}"


CALLABLES = sorted(path for path in {*public_callables()} - {*EXEMPT} if not takes_nothing(path))


def listed(values: Any) -> list[Bad]:
    """Bad values given one by one: each alone, or with what the message shows of it."""
    return [
        value if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], str) else (value, repr(value))
        for value in values
    ]


def cases(path: str) -> Iterator[tuple[str, Arguments, str]]:
    """Argument, arguments with a bad one among them, and what the message shows of it."""
    if lack(path):
        return
    arguments = good(path)
    rows = LAB[path][1] if path in LAB else {}
    rules = target(path)[1] | {
        name: parse(each)
        for name, row in rows.items()
        for each in ([row] if isinstance(row, str) else row)
        if isinstance(each, str) and not isinstance(row, list)
    }
    found = {name: bad_values(name, rules, arguments) for name in rules}
    for name, row in rows.items():
        by_hand = row if isinstance(row, list) else [] if isinstance(row, str) else row[1]
        found[name] = found.get(name, []) + listed(by_hand)
    yield from ((name, arguments | {name: bad}, shown) for name, some in found.items() for bad, shown in some)
    yield from (("-".join(bad), arguments | bad, shown) for bad, shown in BY_HAND.get(path, []))


def test_every_argument_has_a_good_value() -> None:
    lacks = dict.fromkeys(filter(None, map(lack, CALLABLES)))
    assert not lacks, "\n".join(["tests/test_errors.py:", *lacks])


@pytest.mark.parametrize("path", CALLABLES)
def test_a_good_call_works(path: str) -> None:
    if not lack(path):
        target(path)[0](**good(path))


@pytest.mark.parametrize("path", CALLABLES)
def test_bad_input_is_named(path: str) -> None:
    """ValueError and nothing else; what was given; then, after a colon, what to do."""
    for argument, arguments, shown in cases(path):
        try:
            result = target(path)[0](**arguments)
        except ValueError as error:
            message = str(error)
        except Exception as error:
            error.add_note(f"{argument} is {shown}")
            raise
        else:
            pytest.fail(f"{argument} is {shown}, and is taken: the result is {result!r}")
        assert shown in message, argument
        assert "\n" not in message.replace(shown, ""), argument
        assert re.search(r": \S", message.split(shown)[-1] if shown not in message.rpartition(": ")[2] else message), argument


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


def test_every_argument_of_a_public_callable_is_tried() -> None:
    """A new function comes with its rules; but MORE tries caches and schemes, and `before` comes from a cache."""
    for path in CALLABLES:
        if lack(path):
            continue
        tried = {argument for argument, *_ in cases(path)}
        arguments = {*inspect.signature(target(path)[0]).parameters} - {"cache", "caches", "before"}
        arguments -= {"scheme"} if path.startswith("transformer.") and path != "transformer.Block" else set()
        assert arguments <= tried, f"{path}: no bad value of {arguments - tried} is tried, give it a rule"


def test_nothing_is_exempt_or_tried_by_hand_that_is_not_there() -> None:
    assert {*EXEMPT} | {*BY_HAND} | {*LAB} | {*OWN} <= {*public_callables()}


# ── what the checks themselves promise ───────────────────────────────────────────────────────────────────────────────────


def test_a_count_arrives_as_an_int_and_a_number_as_a_float() -> None:
    four: Any = np.int64(4)
    hundred: Any = np.float32(100)
    assert sinusoidal.frequencies(four, hundred).equal(frequencies(4, 100))
    assert alibi.alibi_slopes(four).equal(alibi.alibi_slopes(4))
    assert isinstance(SinusoidalPositions(four).d_model, int)
    assert isinstance(SinusoidalPositions(4, base=100).base, float)


def test_checks_leave_no_trace_in_a_compiled_graph() -> None:
    compiled = torch.compile(rope.apply_rope, fullgraph=True, backend="eager")
    attend = torch.compile(attention.attention, fullgraph=True, backend="eager")
    assert compiled(Q, x(3, 2), x(3, 2), interleaved=True).equal(rope.apply_rope(Q, x(3, 2), x(3, 2), interleaved=True))
    assert attend(Q, Q, Q).equal(attention.attention(Q, Q, Q))


def test_python_still_reports_arguments_that_are_not_there() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'd_model'"):
        SinusoidalPositions()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'widht'"):
        frequencies(4, widht=3)  # type: ignore[call-arg]
