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
from posenc_course.attention import Cache, MultiHeadAttention, attention, attention_weights, causal_mask
from posenc_course.naive import BinaryPositions, LinearPositions, NormalizedPositions, binary, linear, modulo, normalized
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies, sinusoidal_table
from posenc_course.training import train
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
    (5, "()"),
    ([], "(0,)"),
    (x(2, 3, 4), "(2, 3, 4)"),
]
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


def transformer_rows(name: str, kind: type[Transformer]) -> dict[str, Row]:
    model = kind(**MODEL)
    return {
        name: Row(kind, MODEL, BAD_MODEL | {"scheme": NOT_SCHEMES}),
        f"{name}.forward": Row(model, {"tokens": IDS, "positions": L}, {"tokens": NOT_IDS, "positions": NOT_IDS_POSITIONS}),
    }


NOT_DIRECTIONS: list[Any] = ["up", [1.0] * 6, 3, (x(5), "(5,)"), (x(6, dtype=torch.int64), "torch.int64")]
attend = MultiHeadAttention(6, 2, PositionScheme(), causal=True)
block = Block(6, 2, PositionScheme(), causal=True)
ATTEND = {"d_model": 6, "num_heads": 2, "scheme": PositionScheme(), "causal": True}
BAD_ATTEND = {"d_model": BAD_MODEL["d_model"], "num_heads": BAD_MODEL["num_heads"], "scheme": [*NOT_SCHEMES, None]}
FORWARD = ({"x": x(2, 3, 6), "positions": L}, {"x": NOT_INPUTS, "positions": NOT_TABLES})
decoder = Decoder(**MODEL)

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
            "dtype": [torch.int64, torch.bool, torch.complex64, "float32", float, None],
        },
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
            "seed": [-1, 0.5, NAN, True, "0", None],
        },
    ),
}

# Calls that need more than one bad argument at a time.
MORE: dict[str, tuple[Callable[[], Any], str]] = {
    "Transformer itself": (lambda: Transformer(**MODEL), "Encoder or Decoder"),
    "a model of another width than its scheme": (lambda: Encoder(5, 8, 2, 1, SinusoidalPositions(6))(IDS), "(2, 3, 8)"),
    "caches of another number": (lambda: decoder(IDS, caches=[]), "got []"),
    "caches that are none": (lambda: decoder(IDS, caches=[None]), "got [None]"),
    "caches in an encoder": (lambda: Encoder(**MODEL)(IDS, caches=[Cache()]), "Encoder"),
    "a cache of another batch": (lambda: attend(x(4, 1, 6), torch.tensor([3]), cached()), "(4, 2, 1, 3)"),
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
    "schemes.PositionScheme": "takes no argument",
    "schemes.PositionScheme.embed": "returns its argument",
    "schemes.PositionScheme.rotate": "returns its arguments",
    "schemes.PositionScheme.bias": "returns None",
    "attention.Cache": "holds what extend has checked",
    "transformer.Transformer": "in MORE: always an error",
    "transformer.Decoder.new_caches": "takes no argument",
    "training.History": "a record",
    "naive.LinearPositions.number": "is `linear`",
    "naive.NormalizedPositions.number": "is `normalized`",
    "checks.order.equivariance": "verdicts, in test_checks.py",
    "checks.naive.binary": "verdicts, in test_checks.py",
    "checks.sinusoidal.table": "verdicts, in test_checks.py",
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
    """Functions, classes and the methods that these classes define or have from a private base, as module.name."""
    for module in modules():
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
    tried_elsewhere = {"causal", "interleaved", "cache", "caches", "self"}
    for name, row in ROWS.items():
        target = row.function.forward if isinstance(row.function, nn.Module) else row.function
        arguments = {*inspect.signature(target).parameters} - tried_elsewhere
        assert arguments == {*row.bad}, name
