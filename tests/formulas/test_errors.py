"""Bad input to every public function: a ValueError that names what was given, and what to do instead; never anything else.

Each kind of rule (`posenc_course._validation`) is tried once, with good and bad values, and every argument has to have a rule.
What depends on several arguments, or on what a function finds while it runs, is tried by hand. A call that was refused leaves
caches as they were.
"""

import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import posenc_course
from posenc_course import (
    attention,
    contextual,
    conventions,
    naive,
    relative,
    rope,
    rope_scaling,
    temperature,
)
from posenc_course._validation import CHECKED, checked
from posenc_course.attention import Cache, MultiHeadAttention
from posenc_course.learned import LearnedPositions
from posenc_course.llama import Llama
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies, sinusoidal_table
from posenc_course.training import train, warm_up_and_cosine
from posenc_course.transformer import Decoder, Encoder, Transformer

NAN, INF = math.nan, math.inf
L, OMEGA = torch.arange(3), frequencies(4)
Arguments = dict[str, Any]


def x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(*shape, dtype=dtype)


def refused(call: Callable[[], Any], shown: str) -> None:
    """Assert that a call raises a ValueError of one line, which shows what was given and, after a colon, says what to do."""
    with pytest.raises(ValueError, match=re.escape(shown)) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message.replace(shown, "")
    assert re.search(r": \S", message.split(shown)[-1] if shown not in message.rpartition(": ")[2] else message), message


# ── each kind of rule: values that it allows, and values that it refuses with what the message shows of them ─────────────

KINDS: dict[str, tuple[list[Any], list[Any]]] = {
    "count: do this": ([1, np.int64(3)], [0, 2.5, True, "8", [4], None, NAN]),
    "count >= 2 <= 5: do this": ([2, 5], [1, 6]),
    "even >= 4: do this": ([4], [2, 5]),
    "number: do this": ([0, -1.5, np.float32(2)], [NAN, INF, True, "8", 1j, None]),
    "number > 0 or inf: do this": ([0.5, INF], [0.0, NAN, -INF]),
    "flag": ([True, np.False_], ["no", 1, None]),
    "dtype": ([torch.float64], [torch.int64, "float32"]),
    "function?": ([len, None], ["bar"]),
    "Module": ([nn.Linear(1, 1)], [len]),
    "PositionScheme": ([PositionScheme()], ["rope", SinusoidalPositions, None]),
    "frequencies": (
        [OMEGA],
        [64, (x(3), "torch.float32"), (OMEGA[None], "(1, 2)"), (OMEGA[:0], "(0,)"), (OMEGA * NAN, "nan"), (-OMEGA, "-1.0")],
    ),
    "real [batch] L": (
        [L, [0.5, -1], x(2, 3), np.arange(3)],
        [
            None, "text", [[1, 2], [3]], ([True], "torch.bool"), ([1j], "torch.complex128"), ([], "(0,)"), (5, "()"),
            (x(1, 2, 3), "(1, 2, 3)"), ([NAN, 1.0], "nan"), ([0, INF], "inf"), (L.bfloat16(), "256"), (L.half(), "2048"),
        ],
    ),
    "real tensor [batch] L": ([L / 2], [[0, 1, 2]]),
    "whole [batch] L": ([[0, 2]], [([-3, 1], "-3"), ([0.5], "0.5")]),
    "integer ...": ([[[-1.0]], 5], [([0.5], "0.5"), ([INF], "inf")]),
    "ids batch L": ([x(2, 3).int()], [(x(2, 3), "torch.float32"), (L, "(3,)")]),
    "bool? batch L": ([None, x(2, 3).bool()], [(x(2, 3), "torch.float32"), [[True]]]),
    "finite heads: do this": ([x(3)], [(torch.tensor([1.0, bad]), str(bad)) for bad in (NAN, INF)]),
    "float batch L 2*pairs": (
        [x(2, 3, 4), x(2, 3, 4, dtype=torch.bfloat16)],
        [
            [[1.0]], None, (x(2, 3, 4).numpy(), "array("), (x(2, 3, 4).int(), "torch.int32"), (x(2, 3, 5), "(2, 3, 5)"),
            (x(3, 4), "(3, 4)"), (x(1, 2, 3, 4), "(1, 2, 3, 4)"), (x(0, 3, 4), "(0, 3, 4)"),
        ],
    ),
    "float 2*K+1 d": ([x(5, 2)], [(x(4, 2), "(4, 2)")]),
}  # fmt: skip


@pytest.mark.parametrize("rule", KINDS)
def test_rule_allows_good_values_and_names_bad_ones(rule: str) -> None:
    @checked(value=rule)
    def take(value: Any) -> Any:
        return value

    good, bad = KINDS[rule]
    for value in good:
        take(value)
    for case in bad:
        value, shown = case if isinstance(case, tuple) else (case, " ".join(repr(case).split()))
        refused(partial(take, value), shown)


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"key": x(2, 5, 3)}, "(2, 5, 3)"), ({"key": x(3, 5, 4)}, "(3, 5, 4)"), ({"key": x(2, 5, 4).double()}, "torch.float64"),
        ({"bias": x(2, 2, 3, 5)}, "(2, 2, 3, 5)"), ({"bias": x(3, 5).bool()}, "torch.bool"),
        ({"row": x(5)}, "d_head = 4 as in query, got torch.float32 of shape (5,)"), ({"steps": 3}, "<= steps = 3"),
    ],
)  # fmt: skip
def test_arguments_that_share_a_size_agree(changes: Arguments, shown: str) -> None:
    @checked(
        query="float ... L d_head", key="float=query ... L_key d_head", bias="float? -> ... L L_key", row="float d_head",
        steps="count", warm_up="count <= steps: a tenth is usual",
    )  # fmt: skip
    def take(query: Any, key: Any, bias: Any, row: Any, steps: int, warm_up: int) -> None: ...

    good: Arguments = {"query": x(2, 3, 4), "key": x(1, 5, 4), "bias": x(3, 5), "row": x(4), "steps": 9, "warm_up": 4}
    take(**good)
    refused(partial(take, **good | changes), shown)


# ── every argument has a rule ────────────────────────────────────────────────────────────────────────────────────────────

# What a function's own code checks, by hand below or in the file that is named, and what has nothing to refuse.
WITHOUT_RULE = {
    "cache", "caches", "before", "self", "args", "kwargs",
    "Transformer.__init__: scheme", "Llama.__init__: scheme", "Llama.use: scheme",
    "PositionScheme.embed", "PositionScheme.rotate", "PositionScheme.bias", "PositionScheme.locate",
    "_NumberTimesDirection.number",
    "WindowedPositions.embed", "WindowedPositions.rotate", "ScaledPositions.embed", "ScaledPositions.bias",  # as inside
    "require_flags", "own_name", "load_llama",  # the last two in test_llama.py
    "find_model", "Settings.frequencies",  # in test_models.py
}  # fmt: skip


def public_functions() -> dict[str, FunctionType]:
    """The functions of the formulas' modules, and the constructors and methods of their classes other than records.

    The lab, plotting, the inspector and the checks have files of their own.
    """
    found: dict[str, FunctionType] = {}
    for info in pkgutil.iter_modules(posenc_course.__path__, "posenc_course."):
        if info.ispkg or "._" in info.name or info.name.endswith(".plotting"):
            continue
        for name, value in vars(importlib.import_module(info.name)).items():
            if name[0] == "_" or getattr(value, "__module__", "") != info.name:
                continue
            record = inspect.isclass(value) and (is_dataclass(value) or issubclass(value, tuple))
            methods = inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else [(name, value)]
            for method, each in methods:
                if isinstance(each, FunctionType) and (method[0] != "_" or (method == "__init__" and not record)):
                    found[each.__qualname__] = each
    return {name: each for name, each in found.items() if each.__module__.startswith("posenc_course")}


def test_every_argument_has_a_rule() -> None:
    lacks = [
        f"{name}: {each}"
        for name, function in public_functions().items()
        for each in inspect.signature(function).parameters.keys() - CHECKED.get(f"{function.__module__}.{name}", {}).keys()
        if not WITHOUT_RULE & {name, each, f"{name}: {each}"}
    ]
    assert not lacks, f"give these a rule in @checked(...), or add them to WITHOUT_RULE: {', '.join(lacks)}"


# ── by hand: what depends on several arguments, or on what a function finds while it runs ───────────────────────────────

Q, IDS = x(2, 2, 3, 4), torch.zeros(2, 3, dtype=torch.int64)
BLIND = torch.ones(3, 3, dtype=torch.bool).tril(-1)
HIDDEN, UNEQUALED = torch.zeros(3, 3).masked_fill(~BLIND, -INF), torch.zeros(3, 3).masked_fill(BLIND, INF)
FLAGS = torch.zeros(2, 4, dtype=torch.bool)
attend, decoder = MultiHeadAttention(6, 2, PositionScheme(), causal=True), Decoder(5, 6, 2, 1)
llama = Llama(5, 6, 2, 1, 1, 8, PositionScheme())
forgetting = contextual.ForgettingPositions(6, 3)


def scheme(**doors: Callable[..., Any]) -> PositionScheme:
    """A user's own scheme."""
    found = PositionScheme()
    vars(found).update(doors)
    return found


def cached() -> Cache:
    cache = Cache()
    cache.extend(x(2, 2, 3, 4), x(2, 2, 3, 5), L)
    return cache


def training(*batch: Any, model: nn.Module = decoder, **given: Any) -> Callable[[], Any]:
    return lambda: train(model, lambda _: batch, steps=1, **given)


BY_HAND: list[tuple[str, Callable[[], Any]]] = [
    ("query (0, 0, 0)", lambda: attention.attention(Q, Q, Q, bias=HIDDEN)),
    ("got inf", lambda: attention.attention(Q, Q, Q, bias=UNEQUALED)),
    ("d_model=7", lambda: MultiHeadAttention(7, 2, PositionScheme(), causal=True)),
    ("(1,)", lambda: contextual.SelectiveRotaryPositions(8, 2, OMEGA[:1])),
    ("(2, 4)", lambda: attend(x(2, 3, 6), L, padding=FLAGS)),
    ("(4, 2, 1, 3)", lambda: attend(x(4, 1, 6), torch.tensor([3]), cached())),
    ("token id 5 is outside 0 … 4", lambda: decoder(IDS + 5)),
    ("got [None]", lambda: decoder(IDS, caches=[None])),
    ("Encoder takes no caches", lambda: Encoder(5, 6, 2, 1)(IDS, caches=[Cache()])),
    ("use Encoder or Decoder", lambda: Transformer(5, 6, 2, 1)),
    ("got 'rope'", lambda: Encoder(5, 6, 2, 2, [PositionScheme(), "rope"])),  # type: ignore[list-item]
    ("scheme[1] must be one that leaves", lambda: Encoder(5, 6, 2, 2, [PositionScheme(), SinusoidalPositions(6)])),
    ("use num_bits=2", lambda: Decoder(5, 6, 2, 1, naive.BinaryPositions(6, 1))(IDS)),
    ("position 2 lies beyond", lambda: Decoder(5, 6, 2, 1, LearnedPositions(2, 6))(IDS)),
    ("got 0.5", lambda: Decoder(5, 6, 2, 1, naive.LinearPositions(6))(IDS, L / 2)),
    ("from 256", lambda: Encoder(5, 6, 2, 1, scheme(embed=lambda _, m: sinusoidal_table(m.bfloat16(), 6)))(IDS)),
    ("a list of 1, one per layer", lambda: llama.use([PositionScheme()] * 2)),
    ("(3, 2, 6)", lambda: conventions.read_rotation(lambda x: x[0], 6)),
    ("position 8", lambda: naive.normalized([8], 8)),
    ("use num_bits=3", lambda: naive.binary([4], 2)),
    ("one that counts tokens", lambda: relative.WindowedPositions(forgetting, 4)),
    ("got 9", lambda: relative.t5_buckets(L, 9, causal=False)),
    ("got 4", lambda: relative.T5Positions(2, 8, 4, causal=True)),
    ("7 rows", lambda: rope.convert_projection(x(7, 6), 2, interleaved=True)),
    ("(2, 3) and (3,)", lambda: rope.axial_rope_tables(x(2, 3), L, OMEGA)),
    ("[22, 21, 21]", lambda: rope.mrope_axes([16, 24, 24], interleaved=True)),
    ("from 0 to 1", lambda: rope.mrope_tables(x(1, 3), OMEGA, L[:2])),
    ("has 2", lambda: rope.RotaryPositions(OMEGA).rotate(Q[..., :2], Q[..., :2], L, L)),
    ("got 1", lambda: rope_scaling.ntk_aware(OMEGA[:1], 2)),
    ("slow = 32", lambda: rope_scaling.llama3(OMEGA, slow=32)),
    ("[1.0, 0.5, 0.1]", lambda: rope_scaling.yarn(torch.tensor([1.0, 0.5, 0.1]).double(), 2, 4)),
    ("(1,)", lambda: temperature.ScaledPositions(PositionScheme(), lambda m: m[..., :1]).rotate(Q, Q, L, L)),
    ("got nan", lambda: temperature.ScaledPositions(PositionScheme(), lambda m: m * NAN).rotate(Q, Q, L, L)),
    ("got (3,)", training(3)),
    ("(2, 2)", training(IDS, IDS[:, :2])),
    ("target id -1", training(IDS, IDS - 1)),
    ("all 6 targets are -100", training(IDS, IDS - 100)),
    ("got Identity()", training(IDS, IDS, model=nn.Identity())),
    ("got 0.0", training(IDS, IDS, schedule=lambda step: 0.0)),
    ("step must be from 0 to 9, got 10", lambda: warm_up_and_cosine(10)(10)),
    ("d_model must be small enough, got 1000000000000000", lambda: frequencies(10**15)),
]  # fmt: skip


@pytest.mark.parametrize(("shown", "call"), BY_HAND)
def test_what_does_not_fit_is_named(shown: str, call: Callable[[], Any]) -> None:
    refused(call, shown)


# ── what else the checks promise ─────────────────────────────────────────────────────────────────────────────────────────


def test_checks_leave_no_trace_in_a_compiled_graph() -> None:
    compiled = torch.compile(attention.attention, fullgraph=True, backend="eager")
    assert compiled(Q, Q, Q).equal(attention.attention(Q, Q, Q))


def test_failing_decoder_leaves_all_caches() -> None:
    model = Decoder(8, 8, 2, 3, relative.T5Positions(2, causal=True)).eval()
    caches, tokens = model.new_caches(), torch.tensor([[1, 2, 3, 4, 5]])
    model(tokens[:, :3], caches=caches)
    before = [vars(cache).copy() for cache in caches]
    failing = model.blocks[-1].register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model(tokens[:, 3:], caches=caches)
    failing.remove()
    assert all(new is old[name] for cache, old in zip(caches, before, strict=True) for name, new in vars(cache).items())
    assert torch.allclose(model(tokens[:, 3:], caches=caches), model(tokens)[:, 3:], atol=1e-5)
