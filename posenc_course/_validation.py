"""Preconditions, written as data next to a function's signature and checked whenever the function is called.

    @checked(query="float ... L_query d_head", key="float=query ... L_key d_head", mask="bool? -> ... L_query L_key")
    def attention_weights(query, key, *, mask=None): ...

A rule names a kind. The text after a colon is a hint for the error message: it says what to do about a value that breaks the
rule. A `?` after the kind allows None.

    float, finite, bool, ids   a tensor of this dtype; finite allows no NaN or infinity; float=query requires the dtype of query
    real, whole, integer       exact numbers in a tensor, an array or a list: any real ones, 0, 1, 2, …, or any integers
    real tensor                the same, but only in a tensor
    frequencies                angular frequencies of pairs, float64
    count >= 2 <= d_model      an integer, by default >= 1; a bound may be another argument; even >= 2 allows only even ones.
                               The same error is raised if it is so large that no memory holds the tensors
    number > 0                 a finite number; with `or inf`, infinity is allowed, too
    dtype, flag, function, Module, PositionScheme

The sizes of a tensor follow its kind. A name stands for the same size in the whole call; a count with this name fixes it:

    batch L {self.d_model}     the last size is the object's own d_model
    [batch] L                  the first size may be missing
    ... L d_head               any sizes in front, which must broadcast
    2*pairs, 2*K+1             an even size, an odd size
    -> ... L_query L_key       the tensor broadcasts to these sizes
"""

import functools
import inspect
import math
import operator
import re
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, NoReturn, ParamSpec, TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from posenc_course.schemes import PositionScheme

Positions: TypeAlias = Tensor | np.ndarray | Sequence[float]

P = ParamSpec("P")
T = TypeVar("T")

# ── rules that several functions share ───────────────────────────────────────────────────────────────────────────────────

D_MODEL = "count: it is the width of the token vectors, e.g. 64"
LENGTH = "count: it is the number of tokens in the sequence"
NUM_HEADS = "count: use at least one head, and the same number in the scheme and in its model"
INTERLEAVED = "flag: True pairs neighbouring channels, False channels half of the width apart"
CAUSAL = "flag: True hides later tokens, as in a decoder"
BASE = "number > 1: frequencies base**(-2i/d) must fall as i grows (the paper uses 10000)"
POSITIONS = "real [batch] L"
WHOLE_POSITIONS = "whole [batch] L"
DOOR = {  # of a scheme's `embed`
    "x": "float batch L {self.d_model}: embed the tokens first, and build the scheme with the model's d_model",
    "positions": "real tensor [batch] L: give one position per token, the same for the whole batch or separately per sequence",
}
Q_AND_K_POSITIONS = {"q_positions": "real [batch] L_query", "k_positions": "real [batch] L_key"}


# ── the decorator ────────────────────────────────────────────────────────────────────────────────────────────────────────

CHECKED: dict[str, dict[str, "Rule"]] = {}  # each checked function's rules, by module and name


def checked(**rules: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function so that it raises a ValueError for arguments that break their rules.

    The function gets a count as an int and a number as a float. While torch.compile reads it, nothing is checked.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        parameters = inspect.signature(function).parameters
        names = tuple(parameters)
        parsed = {name: Rule(rule) for name, rule in rules.items()}
        CHECKED[f"{function.__module__}.{function.__qualname__}"] = parsed
        defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True  # readers of a traceback look for the formula
            if torch.compiler.is_compiling():
                return function(*args, **kwargs)
            given = defaults | dict(zip(names, args, strict=False)) | kwargs
            if len(given) != len(names):
                return function(*args, **kwargs)  # Python says which argument is missing or unknown
            sizes: Sizes = {}
            for name, rule in parsed.items():
                given[name] = rule.check(name, given[name], given, sizes)
            by_place = [given[name] for name in names[: len(args)]]
            by_name = {name: given[name] for name in kwargs}
            try:
                return function(*by_place, *args[len(names) :], **by_name)  # type: ignore[arg-type]
            except (RuntimeError, OverflowError) as error:
                counts = [name for name, rule in parsed.items() if rule.kind in ("count", "even") and given[name]]
                if counts and re.search("tried to allocate|calculation overflowed|too (big|large) to convert", str(error)):
                    largest = max(counts, key=lambda name: given[name])
                    refuse(largest, "small enough", given[largest], "no memory holds what it asks for, so give a smaller one")
                raise

        return wrapper

    return decorate


def refuse(name: str, rule: str, given: object, way_out: str) -> NoReturn:
    """Raise the ValueError for a broken rule, which says what the argument must be, what was given, and what to do."""
    shown = f"{given.dtype} of shape {tuple(given.shape)}" if isinstance(given, Tensor) else " ".join(repr(given).split())
    raise ValueError(f"{name} must be {rule}, got {shown}: {way_out}")


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

# By kind: the class, what is said of it, and what to do.
INSTANCES: dict[str, tuple[Any, str, str]] = {
    "Tensor": (Tensor, "a torch.Tensor", "convert it with torch.as_tensor"),
    "Module": (nn.Module, "a torch.nn.Module", "pass an Encoder or a Decoder, for example"),
    "PositionScheme": (PositionScheme, "a PositionScheme", "PositionScheme() itself adds no positions"),
    "function": (Callable, "a function", "leave it out if you need none"),
    "flag": ((bool, np.bool_), "True or False", "give one of the two"),
    "dtype": (torch.dtype, "a floating-point torch.dtype", "use torch.float32, for example"),
}
NUMBERS = {"real": "finite real numbers", "whole": "whole numbers >= 0 (0 is the first token)", "integer": "whole numbers"}
TENSORS: dict[str, tuple[str, Callable[[torch.dtype], bool]]] = {
    "float": ("a floating-point", lambda dtype: dtype.is_floating_point),
    "finite": ("a finite floating-point", lambda dtype: dtype.is_floating_point),
    "frequencies": ("a torch.float64", lambda dtype: dtype == torch.float64),
    "bool": ("a boolean", lambda dtype: dtype == torch.bool),
    "ids": ("an integer", lambda dtype: dtype in (torch.int64, torch.int32)),
}
SIGNS = {">=": operator.ge, ">": operator.gt, "<=": operator.le}

# The sizes named so far, each with the argument in which it was seen first; under "...", those that the dots stand for.
Sizes: TypeAlias = dict[str, tuple[Any, str]]


class Rule:
    """A rule for an argument, made from its text."""

    def __init__(self, text: str) -> None:
        form, _, self.hint = text.partition(": ")
        kind, _, self.rest = form.partition(" ")
        self.kind, _, self.like = kind.removesuffix("?").partition("=")
        self.optional = kind.endswith("?")
        if self.kind == "frequencies":
            self.rest, self.hint = "pairs", "use frequencies(d_head), which are radians per token in float64"
        if self.kind in NUMBERS and not self.hint:
            self.hint = "for example, pass torch.arange(L), or torch.arange(start, start + L) for tokens after a cached prefix"
        self.bounds = re.findall(r"([<>]=?) (\S+)", self.rest)
        if self.kind in ("count", "even") and ">" not in self.rest:
            self.bounds.insert(0, (">=", "1"))
        self.shape = self.rest.removeprefix("tensor ").removeprefix("-> ")
        # Of 2*K+1: 2, nothing, K and 1; of {self.d_model}: nothing, a sign of it, d_model, and nothing.
        self.sizes = re.findall(r"(?:(\d)\*)?({self\.)?(\w+)(?:\+(\d))?", self.shape)

    def check(self, name: str, value: Any, given: dict[str, Any], sizes: Sizes) -> Any:
        """Return the argument, with a count as an int and a number as a float; raise a ValueError if it breaks the rule."""
        if self.optional and value is None:
            return None
        if self.kind in ("count", "even", "number"):
            return self._bounded(name, value, given, sizes)
        if self.kind in INSTANCES:
            kind, rule, way_out = INSTANCES[self.kind]
            if not isinstance(value, kind) or (self.kind == "dtype" and not value.is_floating_point):
                refuse(name, rule, value, self.hint or way_out)
        elif self.kind in NUMBERS:
            self._check_numbers(name, value, given, sizes)
        else:
            self._check_tensor(name, value, given, sizes)
        return value

    def _bounded(self, name: str, value: Any, given: dict[str, Any], sizes: Sizes) -> int | float:
        whole = self.kind != "number"
        fits = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        fits = fits and (whole or math.isfinite(value) or (self.rest.endswith("or inf") and value == math.inf))
        fits = fits and (self.kind != "even" or value % 2 == 0)
        said = []
        for sign, limit in self.bounds:
            bound = given[limit] if limit in given else float(limit)
            said.append(f" {sign} {limit} = {bound:g}" if limit in given else f" {sign} {limit}")
            fits = fits and SIGNS[sign](value, bound)
        if not fits:
            rule = {"count": "an integer", "even": "an even integer", "number": "a finite number"}[self.kind]
            refuse(name, rule + " and".join(said), value, self.hint)
        if not whole:
            return float(value)
        sizes[name] = int(value), name
        return int(value)

    def _check_numbers(self, name: str, value: Any, given: dict[str, Any], sizes: Sizes) -> None:
        rule = NUMBERS[self.kind]
        if self.rest.startswith("tensor"):
            require_tensor(name, value)
        try:
            tensor = _as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            refuse(name, rule, value, self.hint)
        if tensor.dtype == torch.bool or tensor.is_complex():
            refuse(name, rule, tensor, self.hint)
        if tensor.dtype in (torch.bfloat16, torch.float16):
            counts_to = 2 ** (8 if tensor.dtype == torch.bfloat16 else 11)
            refuse(name, "exact", tensor, f"this dtype skips whole numbers from {counts_to} on, so keep them in torch.int64")
        if tensor.is_floating_point() or self.kind == "whole":
            good = tensor.isfinite()
            if self.kind != "real":
                good &= tensor == tensor.floor()
            if self.kind == "whole":
                good &= tensor >= 0
            if not good.all():
                refuse(name, rule, tensor[~good][0].item(), self.hint)
        if not self._fits(name, tensor.shape, given, sizes):
            refuse(name, f"{rule} in {self._said(name, sizes)}", tensor, self.hint)

    def _check_tensor(self, name: str, value: Any, given: dict[str, Any], sizes: Sizes) -> None:
        dtype, allows = TENSORS[self.kind]
        fits = isinstance(value, Tensor) and allows(value.dtype)
        if self.like:
            dtype = f"a {given[self.like].dtype}"
            fits = fits and value.dtype == given[self.like].dtype
        if not fits or not self._fits(name, value.shape, given, sizes):
            rule = f"{dtype} tensor {'that broadcasts to' if '->' in self.rest else 'of'} {self._said(name, sizes)}"
            refuse(name, rule, value, self.hint or "convert it with torch.as_tensor, and give it this shape")
        if self.kind in ("finite", "frequencies"):
            good = value.isfinite() & (value >= 0 if self.kind == "frequencies" else True)
            if not good.all():
                refuse(name, "finite" if self.kind == "finite" else "finite and >= 0", value[~good][0].item(), self.hint)

    def _fits(self, name: str, shape: Sequence[int], given: dict[str, Any], sizes: Sizes) -> bool:
        """Return whether a shape fits the rule and the sizes named so far; sizes that are named first here are stored."""
        for _, own, size, _ in self.sizes:
            if own:
                sizes[size] = getattr(given["self"], size), type(given["self"]).__name__
        if "->" in self.rest:
            target = (*sizes["..."][0], *(sizes[size][0] for _, _, size, _ in self.sizes))
            return _broadcast(shape, target) == target
        extra = len(shape) - len(self.sizes)
        if 0 in shape or not (extra == 0 or (extra > 0 and "..." in self.shape) or (extra == -1 and "[" in self.shape)):
            return False
        if "..." in self.shape:
            together = _broadcast(shape[:extra], sizes.get("...", ((), ""))[0])
            if together is None:
                return False
            sizes["..."] = together, sizes.get("...", ((), name))[1]
        for (times, _, size, plus), length in zip(self.sizes[max(-extra, 0) :], shape[max(extra, 0) :], strict=True):
            number, rest = divmod(length - int(plus or 0), int(times or 1))
            if rest or number != sizes.setdefault(size, (number, name))[0]:
                return False
        return True

    def _said(self, name: str, sizes: Sizes) -> str:
        """Return the shape in words, with the sizes that other arguments fix."""
        fixed = [(size, *sizes[size]) for _, _, size, _ in self.sizes if size in sizes and sizes[size][1] != name]
        said = ", ".join(f"{size} = {number} as in {where}" for size, number, where in fixed)
        shape = ", ".join(re.sub(r"{self\.|}", "", self.shape).split())
        return f"shape ({shape}){' with ' if said else ''}{said}"


def _broadcast(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(tuple(one), tuple(other))
    except ValueError:
        return None


def _as_tensor(numbers: Any) -> Tensor:
    # NumPy makes a list of floats a float64 array; torch would round it to float32.
    return numbers if isinstance(numbers, Tensor) else torch.as_tensor(np.array(numbers))


def exact(numbers: Positions) -> Tensor:
    """Return positions or offsets as a float64 tensor."""
    return _as_tensor(numbers).to(torch.float64)


def require(rule: str, name: str, value: object) -> Any:
    """Return `value`; raise a ValueError if it breaks the rule."""
    return Rule(rule).check(name, value, {}, {})


def require_integer(name: str, value: object, *, minimum: int, hint: str) -> int:
    """Return `value` as an int; raise a ValueError unless it is an integer >= minimum."""
    return require(f"count >= {minimum}: {hint}", name, value)


def require_number(name: str, value: object, *, above: float = -math.inf, hint: str) -> float:
    """Return `value` as a float; raise a ValueError unless it is a finite number > above."""
    return require(f"number{'' if above == -math.inf else f' > {above}'}: {hint}", name, value)


def require_tensor(name: str, value: object) -> Tensor:
    """Return `value`; raise a ValueError unless it is a tensor."""
    return require("Tensor", name, value)


def head_width(d_model: int, num_heads: int) -> int:
    """Return the number of channels of a head; raise a ValueError unless d_model is a multiple of num_heads."""
    if d_model % num_heads:
        raise ValueError(
            f"d_model={d_model} is not a multiple of num_heads={num_heads}: all heads have the same width, so change one"
        )
    return d_model // num_heads
