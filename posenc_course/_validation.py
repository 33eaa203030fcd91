"""Preconditions, written as data next to a function's signature and checked whenever the function is called.

    @checked(query="float ... L_query d_head", key="float=query ... L_key d_head", mask="bool? -> ... L_query L_key")
    def attention_weights(query, key, *, mask=None): ...

A rule names a kind. The text after a colon is a hint for the error message: it says what to do about a value that breaks the
rule. A `?` after the kind allows None.

    float, finite, bool, ids   a tensor of this dtype; finite allows no NaN or infinity; float=query requires the dtype of query
    real, whole, integer       exact numbers in a tensor, an array or a list: any real ones, 0, 1, 2, …, or any integers
    real tensor                the same, but only in a tensor
    count >= 2 <= d_model      an integer, by default >= 1; a bound may be another argument; even >= 2 allows only even ones.
                               The same error is raised if it is so large that no memory holds the tensors
    number > 0                 a finite number; with `or inf`, infinity is allowed, too
    dtype, flag, frequencies, function, Module, PositionScheme

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
from typing import Any, ClassVar, NamedTuple, NoReturn, ParamSpec, TypeAlias, TypeVar

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
        parsed = {name: parse(rule) for name, rule in rules.items()}
        assert parsed.keys() <= {*names}, f"{function.__qualname__} has no {parsed.keys() - {*names}}"
        CHECKED[f"{function.__module__}.{function.__qualname__}"] = parsed
        defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True  # readers of a traceback look for the formula
            given = defaults | dict(zip(names, args, strict=False)) | kwargs
            if torch.compiler.is_compiling() or len(given) != len(names):
                return function(*args, **kwargs)  # Python says which argument is missing or unknown
            call = Call(given)
            for name, rule in parsed.items():
                if not (rule.optional and given[name] is None):
                    given[name] = rule.check(name, given[name], call)
            by_place = [given[name] for name in names[: len(args)]]
            by_name = {name: given[name] for name in kwargs}
            try:
                return function(*by_place, *args[len(names) :], **by_name)  # type: ignore[arg-type]
            except RuntimeError as error:
                _refuse_size(error, parsed, given)
                raise

        return wrapper

    return decorate


def _refuse_size(error: RuntimeError, rules: dict[str, "Rule"], given: dict[str, Any]) -> None:
    """Raise a ValueError that names the largest count if torch found no memory for a tensor."""
    counts = [name for name, rule in rules.items() if rule.kind in ("count", "even") and given[name]]
    if counts and re.search("you tried to allocate|size calculation overflowed", str(error)):
        largest = max(counts, key=lambda name: given[name])
        refuse(largest, "small enough", given[largest], "no memory holds the tensors that it asks for, so give a smaller one")


def refuse(name: str, rule: str, given: object, way_out: str) -> NoReturn:
    """Raise the ValueError for a broken rule, which says what the argument must be, what was given, and what to do."""
    raise ValueError(f"{name} must be {rule}, got {_shown(given)}: {way_out}")


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return value if isinstance(value, _Text) else " ".join(repr(value).split())  # puts the lines of an array on one line


class _Text(str):
    """Text that a message shows as it is, without quotes."""


class Call:
    """The arguments of one call, and the sizes named so far, each with the argument in which it was seen first."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.sizes: dict[str, tuple[Any, str]] = {}  # under "...", a tuple: the sizes that the dots stand for


# ── kinds ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rule:
    """A rule for an argument; `check` returns the argument, with a count as an int and a number as a float."""

    KINDS: ClassVar[Any]  # the names of the kinds, for some with what is said of them

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        self.kind, self.rest, self.hint, self.optional = kind, rest, hint, optional

    def check(self, name: str, value: Any, call: Call) -> Any:
        raise NotImplementedError


class Instance(Rule):
    """An object of a class, or a callable."""

    KINDS: ClassVar = {
        "Module": (nn.Module, "a torch.nn.Module", "pass an Encoder or a Decoder, for example"),
        "PositionScheme": (PositionScheme, "a PositionScheme", "PositionScheme() itself adds no positions"),
        "function": (Callable, "a function", "leave it out if you need none"),
        "flag": ((bool, np.bool_), "True or False", "give one of the two"),
        "dtype": (torch.dtype, "a floating-point torch.dtype", "use torch.float32, for example"),
    }

    def check(self, name: str, value: Any, call: Call) -> Any:
        kind, rule, way_out = self.KINDS[self.kind]
        if not isinstance(value, kind) or (self.kind == "dtype" and not value.is_floating_point):
            refuse(name, rule, value, self.hint or way_out)
        return value


class Bounded(Rule):
    """A count or a number."""

    KINDS: ClassVar = ("count", "even", "number")
    SIGNS: ClassVar = {">=": operator.ge, ">": operator.gt, "<=": operator.le}

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        super().__init__(kind, rest, hint, optional=optional)
        self.whole = kind != "number"
        self.bounds = re.findall(r"([<>]=?) (\S+)", rest)
        if self.whole and ">" not in rest:
            self.bounds.insert(0, (">=", "1"))

    def check(self, name: str, value: Any, call: Call) -> Any:
        fits = isinstance(value, Integral if self.whole else Real) and not isinstance(value, bool)
        if fits and not self.whole:
            fits = math.isfinite(value) or (self.rest.endswith("or inf") and value == math.inf)
        said = []
        for sign, limit in self.bounds:
            bound = call.given[limit] if limit in call.given else float(limit)
            said.append(f" {sign} {limit} = {bound:g}" if limit in call.given else f" {sign} {limit}")
            fits = fits and self.SIGNS[sign](value, bound)
        if fits and self.whole and value > 2**53:
            said.append(" <= 2**53")  # beyond, float64 doesn't hold every integer
            fits = False
        if not fits:
            refuse(name, ("an integer" if self.whole else "a finite number") + " and".join(said), value, self.hint)
        if self.kind == "even" and value % 2:
            refuse(name, "even", value, self.hint or f"use {value + 1}")
        if not self.whole:
            return float(value)
        call.sizes[name] = int(value), name
        return int(value)


class Size(NamedTuple):
    """One size of a shape, such as L, 2*K+1 or {self.d_model}: `times` the size called `name`, plus `plus`."""

    text: str
    name: str
    times: int
    plus: int
    own: bool


class Shaped(Rule):
    """A tensor with a given dtype and shape."""

    KINDS: ClassVar = {"float": "floating-point", "finite": "finite floating-point", "bool": "boolean", "ids": "integer"}

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        kind, _, self.like = kind.partition("=")
        super().__init__(kind, rest, hint or "give it this dtype and shape", optional=optional)
        self.broadcasts = rest.startswith("->")
        self.open = "..." in rest  # any sizes in front
        self.may_lack_first = rest.startswith("[")
        self.sizes = []
        for text, times, own, name, plus in re.findall(r"((?:(\d)\*)?({self\.)?(\w+)(?:\+(\d))?)", rest):
            self.sizes.append(Size(text.removeprefix(own), name, int(times or 1), int(plus or 0), bool(own)))

    def check(self, name: str, value: Any, call: Call) -> Any:
        if not isinstance(value, Tensor):
            refuse(name, self.said(name, call), value, "convert it with torch.as_tensor")
        if not self.has_dtype(value, call) or not self.fits(name, value.shape, call):
            refuse(name, self.said(name, call), value, self.hint)
        if self.kind == "finite" and not value.isfinite().all():
            refuse(name, "finite", value[~value.isfinite()][0].item(), self.hint)
        return value

    def has_dtype(self, tensor: Tensor, call: Call) -> bool:
        if self.like:
            return tensor.dtype == call.given[self.like].dtype
        if self.kind in ("float", "finite"):
            return tensor.is_floating_point()
        return tensor.dtype == torch.bool if self.kind == "bool" else tensor.dtype in (torch.int64, torch.int32)

    def fits(self, name: str, shape: Sequence[int], call: Call) -> bool:
        """Return whether a shape fits the rule and the sizes named so far; sizes that are named first here are stored."""
        known, missing = call.sizes, len(self.sizes) - len(shape)
        if 0 in shape:
            return False
        if self.broadcasts:
            target = (*known["..."][0], *(known[size.name][0] for size in self.sizes))
            return _broadcast(tuple(shape), target) == target
        if not (missing == 0 or (missing < 0 and self.open) or (missing == 1 and self.may_lack_first)):
            return False
        if self.open:
            front = tuple(shape[:-missing])
            before, seen_in = known.get("...", (front, name))
            together = _broadcast(front, before)
            if together is None:
                return False
            known["..."] = together, seen_in
        for size, length in zip(self.sizes[max(missing, 0) :], shape[max(-missing, 0) :], strict=True):
            if size.own:
                known[size.name] = getattr(call.given["self"], size.name), type(call.given["self"]).__name__
            number, rest = divmod(length - size.plus, size.times)
            if rest or number != known.setdefault(size.name, (number, name))[0]:
                return False
        return True

    def said(self, name: str, call: Call) -> str:
        """Return the rule in words, with the sizes that other arguments fix."""
        dtype = f"{call.given[self.like].dtype}" if self.like else self.KINDS[self.kind]
        return f"a {dtype} tensor {'that broadcasts to' if self.broadcasts else 'of'} {self.shape(name, call)}"

    def shape(self, name: str, call: Call) -> str:
        """Return the sizes in words, and which other arguments fix some of them."""
        sizes = ["..."] * self.open + [size.text for size in self.sizes]
        shapes = [sizes[1:], sizes] if self.may_lack_first else [sizes]
        said = (
            "shape " + " or ".join(f"({', '.join(each)}{',' * (len(each) == 1)})" for each in shapes) if sizes else "any shape"
        )
        fixed: dict[str, list[str]] = {}  # sizes, by the argument that fixed them
        for size in ["..."] * self.open + [size.name for size in self.sizes]:
            value, where = call.sizes.get(size, (0, name))
            if where in call.given and where != name:
                where = f"{where} of shape {tuple(_as_tensor(call.given[where]).shape)}"
            if where != name:
                fixed.setdefault(where, []).append(f"{size} = {value}")
        return said + "".join(f" with {' and '.join(sizes)} as in {where}" for where, sizes in fixed.items())


class Numbers(Shaped):
    """Exact numbers in a tensor, an array or a list."""

    KINDS: ClassVar = {
        "real": "finite real numbers",
        "whole": "whole numbers >= 0 (0 is the first token)",
        "integer": "whole numbers",
    }

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        self.only_tensors = rest.startswith("tensor")
        few = "torch.arange(L), or torch.arange(start, start + L) for tokens after a cached prefix"
        hint = hint or f"for example, pass {few if '[batch]' in rest else 'torch.arange(-L + 1, L)'}"
        super().__init__(kind, rest.removeprefix("tensor").strip(), hint, optional=optional)

    def check(self, name: str, value: Any, call: Call) -> Any:
        rule = self.KINDS[self.kind]
        if self.only_tensors and not isinstance(value, Tensor):
            refuse(name, f"a tensor of {rule}", value, "convert it with torch.as_tensor")
        try:
            tensor = _as_tensor(value)
        except (TypeError, ValueError, RuntimeError):
            refuse(name, rule, value, self.hint)
        if tensor.dtype == torch.bool or tensor.is_complex():
            refuse(name, rule, tensor, self.hint)
        if tensor.dtype in (torch.bfloat16, torch.float16):
            counts_to = 2 ** (8 if tensor.dtype == torch.bfloat16 else 11)
            given = _Text(f"{tensor.dtype}, which skips whole numbers from {counts_to} on")
            refuse(name, "exact", given, "keep them in torch.int64")
        good: Tensor | bool = True
        if tensor.is_floating_point():
            good = tensor.isfinite() if self.kind == "real" else tensor.isfinite() & (tensor == tensor.floor())
        if self.kind == "whole":
            good = good & (tensor >= 0)
        if isinstance(good, Tensor) and not good.all():
            refuse(name, rule, _Text(f"{tensor[~good][0].item():g}"), self.hint)
        if not self.fits(name, tensor.shape, call):
            refuse(name, f"{rule} in {self.shape(name, call)}", _Text(f"shape {tuple(tensor.shape)}"), self.hint)
        return value


class Frequencies(Rule):
    """Angular frequencies of pairs."""

    KINDS: ClassVar = ("frequencies",)

    def check(self, name: str, value: Any, call: Call) -> Any:
        if not isinstance(value, Tensor) or value.ndim != 1 or value.numel() == 0:
            refuse(name, "a tensor of shape (d_head/2,)", value, "use frequencies(d_head)")
        if value.dtype != torch.float64:
            way_out = "their rounding errors are multiplied by every position, so compute them in float64"
            refuse(name, "torch.float64", _Text(value.dtype), way_out)
        good = value.isfinite() & (value >= 0)
        if not good.all():
            refuse(name, "finite and >= 0", value[~good][0].item(), "they are radians per token, base**(-2i/d)")
        return value


RULES = {kind: each for each in (Instance, Bounded, Shaped, Numbers, Frequencies) for kind in each.KINDS}


def parse(rule: str) -> Rule:
    """Make a rule from its text."""
    form, _, hint = rule.partition(": ")
    kind, _, rest = form.partition(" ")
    name = kind.removesuffix("?")
    return RULES[name.partition("=")[0]](name, rest, hint, optional=kind.endswith("?"))


def _broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    if one == other:
        return one
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None


def _as_tensor(numbers: Any) -> Tensor:
    # NumPy makes a list of floats a float64 array; torch would round it to float32.
    return numbers if isinstance(numbers, Tensor) else torch.as_tensor(np.array(numbers))


# ── what functions use inside ────────────────────────────────────────────────────────────────────────────────────────────


def exact(numbers: Positions) -> Tensor:
    """Return positions or offsets as a float64 tensor."""
    return _as_tensor(numbers).to(torch.float64)


def require(rule: str, name: str, value: object) -> Any:
    """Return `value`; raise a ValueError if it breaks the rule."""
    return parse(rule).check(name, value, Call({}))


def require_integer(name: str, value: object, *, minimum: int, hint: str) -> int:
    """Return `value` as an int; raise a ValueError unless it is an integer >= minimum."""
    return require(f"count >= {minimum}: {hint}", name, value)


def require_number(name: str, value: object, *, above: float = -math.inf, hint: str) -> float:
    """Return `value` as a float; raise a ValueError unless it is a finite number > above."""
    return require(f"number{'' if above == -math.inf else f' > {above}'}: {hint}", name, value)


def head_width(d_model: int, num_heads: int) -> int:
    """Return the number of channels of a head; raise a ValueError unless d_model is a multiple of num_heads."""
    if d_model % num_heads:
        raise ValueError(
            f"d_model={d_model} is not a multiple of num_heads={num_heads}: all heads have the same width, so change one"
        )
    return d_model // num_heads


def require_tensor(name: str, value: object) -> Tensor:
    """Return `value`; raise a ValueError unless it is a tensor."""
    if not isinstance(value, Tensor):
        refuse(name, "a torch.Tensor", value, "convert it with torch.as_tensor")
    return value
