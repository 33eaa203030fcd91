"""Bad input to every public function: a ValueError that names what was given, and what to do instead; never anything else.

The rules beside the signatures (`posenc_course._validation`) say what each argument must be, and bad values are made from them.
What no rule says, because it depends on several arguments or on what a function finds out on its way, is tried by hand.
"""

import importlib
import inspect
import math
import pkgutil
import re
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import posenc_course
from posenc_course import _validation, alibi, attention, conventions, learned, relative, rope, rope_scaling, sinusoidal, transformer
from posenc_course._validation import Bounded, Call, Dtype, Frequencies, Instance, Numbers, Rule, Shaped, parse
from posenc_course.attention import Cache, MultiHeadAttention
from posenc_course.experiment import tasks
from posenc_course.experiment.config import Config, Run, build_model
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
    wrong = {"Module": [lambda tokens: tokens, "model"], "PositionScheme": ["rope", 3, SinusoidalPositions], "function": ["bar", 1]}
    return plain(*wrong[rule.kind])


def not_dtypes(rule: Dtype, good: Arguments) -> list[Bad]:
    return plain(torch.int64, torch.bool, torch.complex64, "float32", float)


def not_frequencies(rule: Frequencies, good: Arguments) -> list[Bad]:
    some = torch.tensor([[1.0, NAN], [1.0, -0.5], [INF, 1.0]], dtype=torch.float64)
    wrong = [(x(3), "torch.float32"), *zip(some, ("nan", "-0.5", "inf"), strict=True)]
    return plain(64, [1.0, 0.1]) + shaped(x(2, 3, dtype=torch.float64), x(0, dtype=torch.float64)) + wrong


def not_bounded(rule: Bounded, good: Arguments) -> list[Bad]:
    wrong = [NAN, -INF, True, "8", [4], 1j, *([] if rule.infinite else [INF]), *([HUGE] if rule.kind == "number" else [2.5])]
    for sign, limit in rule.bounds:
        bound = good[limit] if limit in good else float(limit)
        step = 1 if rule.kind != "number" else 0.5
        outside = bound if sign == ">" else bound + (step if sign == "<=" else -step)
        wrong += [type(step)(outside)] if sign == "<=" else [type(step)(outside), type(step)(bound - 11)]
    if rule.kind == "even":
        wrong.append(7)
    return plain(*wrong)


def not_numbers(rule: Numbers, good: Arguments, value: Any) -> list[Bad]:
    """Good positions or offsets with something wrong in their first place, as a whole, or in their shape."""
    if rule.only_tensors:
        wrong: list[Bad] = plain([0, 1, 2], "text")
    else:
        wrong = plain("text", {1: 2}, [1, "a"], [[1, 2], [3]]) + [(True, "torch.bool"), ([1j], "torch.complex128"), ([], "(0,)")]
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
    wrong = plain([[1.0]], "text", 3) + [(value.numpy(), "array("), (value.to(other), str(other))]
    if rule.kind == "ids":
        wrong.append((value.bool(), "torch.bool"))
    if rule.kind == "finite":
        wrong += [(torch.full_like(value, number), f"{number:g}") for number in (NAN, INF, -INF)]
    return [*wrong, (value.double(), "torch.float64")] if rule.like else wrong


def of_bad_shape(name: str, rules: dict[str, Rule], good: Arguments) -> list[Bad]:
    """A good tensor with sizes too many, too few, none, or other than what the rules say of another argument."""
    rule, value = rules[name], torch.as_tensor(good[name])
    assert isinstance(rule, Shaped)
    if rule.broadcasts:
        return shaped(x(4, 3).to(value.dtype), x(5, 2, 3, 3).to(value.dtype), value[:0])
    elsewhere = {size.name for other, each in rules.items() if other != name and isinstance(each, Shaped) for size in each.sizes}
    wrong = [value[:0]] if value.ndim else []
    wrong += [value.reshape(-1)[0]] if rule.sizes else []  # without any size
    if rule.sizes and not rule.open:
        wrong.append(value[(None,) * (len(rule.sizes) + 1 - value.ndim)])
    if len(rule.sizes) > 1 and not rule.may_lack_first:
        wrong.append(value[(0,) * (value.ndim - len(rule.sizes) + 1)])
    if rule.open and any(isinstance(each, Shaped) and each.open and not each.broadcasts for other, each in rules.items() if other != name):
        wrong.append(value[:1].expand(7, *value.shape[1:]))
    sizes = [*zip(reversed(rule.sizes), range(1, value.ndim + 1), strict=False)]
    for size, axis in sizes:
        if size.own or size.name in elsewhere or size.name in good or size.times > 1:
            wrong.append(torch.cat((value, value.narrow(-axis, 0, 1)), dim=-axis))
    if rule.may_lack_first and rule.sizes[0].name in elsewhere and any(torch.as_tensor(each).ndim > 1 for each in good.values() if isinstance(each, torch.Tensor)):
        wrong.append(value.expand(5, *value.shape[-len(rule.sizes) + 1 :]) if value.ndim < len(rule.sizes) else value[:1].repeat(5, 1))
    return shaped(*wrong)


def bad_values(name: str, rules: dict[str, Rule], good: Arguments) -> list[Bad]:
    """What an argument must not be, by its rule and those of the others."""
    rule = rules[name]
    nothing = [] if rule.optional else plain(None)
    if isinstance(rule, Numbers):
        return not_numbers(rule, good, good[name]) + of_bad_shape(name, rules, good) + nothing
    if isinstance(rule, Shaped):
        return not_shaped(rule, good, good[name]) + of_bad_shape(name, rules, good) + nothing
    kinds: dict[type, Callable[..., list[Bad]]] = {Instance: not_instances, Dtype: not_dtypes, Frequencies: not_frequencies}
    return kinds.get(type(rule), not_bounded)(rule, good) + nothing
