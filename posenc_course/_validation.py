"""Preconditions, written as data next to a function's signature and checked once, when a user calls the function.

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
import sys
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, ClassVar, Literal, NamedTuple, NoReturn, ParamSpec, TypeAlias, TypeVar

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


def checked(where: Literal["outside", "everywhere"] = "outside", /, **rules: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function so that it raises a ValueError for arguments that break their rules.

    The function gets a count as an int and a number as a float. A call from another module of formulas isn't checked again,
    except for what such a caller cannot know: sizes that the object itself determines (`{self…}`), and whether numbers are
    whole. With "everywhere", such a call is checked in full.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        names = tuple(signature.parameters)
        everything = {name: parse(rule) for name, rule in rules.items()}
        assert everything.keys() <= {*names}, f"{function.__qualname__} has no {everything.keys() - {*names}}"
        CHECKED[f"{function.__module__}.{function.__qualname__}"] = everything
        defaults = {name: signature.parameters[name].default for name in names}
        counts = {name for name, rule in everything.items() if isinstance(rule, Bounded) and rule.whole}
        from_outside = tuple(everything.items())
        from_inside = from_outside if where == "everywhere" else tuple((name, rule) for name, rule in from_outside if rule.own)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True  # readers of a traceback look for the formula
            if torch.compiler.is_compiling():
                return function(*args, **kwargs)
            outside = not _is_formula(sys._getframe(1))
            plan = from_outside if outside else from_inside
            converted = {}
            if plan:
                call = Call(defaults | dict(zip(names, args, strict=False)) | kwargs)
                for name, rule in plan:
                    value = call.given[name]
                    # A missing argument is reported by the function itself.
                    if value is not signature.empty and not (rule.optional and value is None):
                        call.given[name] = rule.check(name, value, call)
                        if call.given[name] is not value:
                            converted[name] = call.given[name]
            try:
                if converted:
                    bound = signature.bind(*args, **kwargs)
                    bound.arguments.update(converted)
                    return function(*bound.args, **bound.kwargs)
                return function(*args, **kwargs)
            except RuntimeError as error:
                if outside:
                    given = defaults | dict(zip(names, args, strict=False)) | kwargs
                    _refuse_size(error, {name: given[name] or 0 for name in counts})
                raise

        return wrapper

    return decorate


def _refuse_size(error: RuntimeError, counts: dict[str, int]) -> None:
    """Raise a ValueError that names the largest count if torch found no memory for a tensor."""
    if counts and re.search("you tried to allocate|size calculation overflowed", str(error)):
        largest = max(counts, key=lambda name: counts[name])
        refuse(largest, "small enough", counts[largest], "no memory holds the tensors that it asks for, so give a smaller one")


def _is_formula(caller: Any) -> bool:
    """Return whether a frame belongs to one of the package's formulas, whose own arguments were checked.

    A frame of torch counts as the frame that called torch. We look at the caller instead of setting a flag while a checked
    function runs. So if such a function calls the user's own code (a scheme, a hook), that code's calls are checked in turn,
    and neither threads nor exceptions can leave a flag set.
    """
    while caller is not None and (module := caller.f_globals.get("__name__", "")).startswith("torch."):
        caller = caller.f_back
    return caller is not None and _vouches(module)


@functools.cache
def _vouches(module: str) -> bool:
    # Training and conventions call the user's code with the user's values; the lab and the exercises' checks count as users.
    package, _, name = module.rpartition(".")
    return package == __package__ and name not in ("training", "conventions", "plotting")


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
        self.sizes: dict[str, tuple[int, str]] = {}
        self.front: tuple[tuple[int, ...], str] | None = None  # what the dots stand for


# ── kinds ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rule:
    """A rule for an argument; `check` returns the argument, with a count as an int and a number as a float."""

    own = False  # whether callers inside the package cannot know that they keep the rule

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
    }

    def check(self, name: str, value: Any, call: Call) -> Any:
        kind, rule, way_out = self.KINDS[self.kind]
        if not isinstance(value, kind):  # type: ignore[arg-type]
            refuse(name, rule, value, self.hint or way_out)
        return value


class Dtype(Rule):
    def check(self, name: str, value: Any, call: Call) -> Any:
        if not isinstance(value, torch.dtype) or not value.is_floating_point:
            refuse(name, "a floating-point torch.dtype", value, "use torch.float32, for example")
        return value


class Bounded(Rule):
    """A count or a number."""

    SIGNS: ClassVar = {">=": operator.ge, ">": operator.gt, "<=": operator.le}

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        super().__init__(kind, rest, hint, optional=optional)
        self.bounds = re.findall(r"([<>]=?) (\S+)", rest)
        if kind != "number" and ">" not in rest:
            self.bounds.insert(0, (">=", "1"))
        self.infinite = rest.endswith("or inf")
        self.whole = kind != "number"

    def check(self, name: str, value: Any, call: Call) -> Any:
        whole = self.whole
        fits = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        if fits and not whole:
            fits = _is_finite(value) or (self.infinite and value == math.inf)
        said = []
        for sign, limit in self.bounds:
            bound = call.given[limit] if limit in call.given else float(limit)
            said.append(f" {sign} {limit} = {bound:g}" if limit in call.given else f" {sign} {limit}")
            fits = fits and self.SIGNS[sign](value, bound)
        if fits and whole and value > 2**53:
            said.append(" <= 2**53")  # beyond, float64 doesn't hold every integer
            fits = False
        if not fits:
            refuse(name, ("an integer" if whole else "a finite number") + " and".join(said), value, self.hint)
        if self.kind == "even" and value % 2:
            refuse(name, "even", value, self.hint or f"use {value + 1}")
        if whole:
            call.sizes[name] = int(value), name
            return int(value)
        return float(value)


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer of hundreds of digits
        return False


class Size(NamedTuple):
    """One size of a shape, such as L, 2*K+1 or {self.d_model}: `times` the size called `name`, plus `plus`."""

    text: str
    name: str
    times: int
    plus: int
    own: Callable[[Any], int] | None

    @classmethod
    def of(cls, text: str) -> "Size":
        if text.startswith("{self."):
            name = text[6:-1]
            return cls(name, name, 1, 0, attrgetter(name))
        times, name, plus = re.fullmatch(r"(?:(\d)\*)?(\w+)(?:\+(\d))?", text).groups()  # type: ignore[union-attr]
        return cls(text, name, int(times or 1), int(plus or 0), None)


class Shaped(Rule):
    """A tensor with a given dtype and shape."""

    KINDS: ClassVar = {"float": "floating-point", "finite": "finite floating-point", "bool": "boolean", "ids": "integer"}

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        kind, _, self.like = kind.partition("=")
        super().__init__(kind, rest, hint or "give it this dtype and shape", optional=optional)
        self.broadcasts = rest.startswith("-> ")
        rest = rest.removeprefix("-> ")
        self.open = rest.startswith("...")  # any sizes in front
        self.may_lack_first = rest.startswith("[")
        self.sizes = tuple(Size.of(text.strip("[]")) for text in rest.removeprefix("...").split())
        self.own = "{self." in rest

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
        if 0 in shape:
            return False
        if self.broadcasts:
            target = (*(call.front or ((), ""))[0], *(call.sizes[size.name][0] for size in self.sizes))
            return _broadcast(tuple(shape), target) == target
        missing = len(self.sizes) - len(shape)
        if not (missing == 0 or (missing < 0 and self.open) or (missing == 1 and self.may_lack_first)):
            return False
        if self.open:
            front = tuple(shape[: len(shape) - len(self.sizes)])
            before, seen_in = call.front or (front, name)
            together = _broadcast(front, before)
            if together is None:
                return False
            call.front = together, seen_in
        known = call.sizes
        for size, length in zip(self.sizes[max(missing, 0) :], shape[-len(self.sizes) :] if self.sizes else (), strict=True):
            if size.own is not None:
                known[size.name] = size.own(call.given["self"]), type(call.given["self"]).__name__
            number, rest = divmod(length - size.plus, size.times)
            if rest or number != known.setdefault(size.name, (number, name))[0]:
                return False
        return True

    def said(self, name: str, call: Call) -> str:
        """Return the rule in words, with the sizes that other arguments fix."""
        dtype = f"{call.given[self.like].dtype}" if self.like else self.KINDS[self.kind]
        return f"a {dtype} tensor {'that broadcasts to' if self.broadcasts else 'of'} {self.shape(name, call)}"

    def shape(self, name: str, call: Call) -> str:
        names = ["..."] * self.open + [size.text for size in self.sizes]
        shapes = [names[1:], names] if self.may_lack_first else [names]
        said = (
            "shape " + " or ".join(f"({', '.join(each)}{',' * (len(each) == 1)})" for each in shapes) if names else "any shape"
        )
        fixed: dict[str, list[str]] = {}  # sizes, by the argument that fixed them
        front = {"...": call.front} if self.open and call.front else {}
        for size, (value, where) in (front | {size.name: call.sizes.get(size.name, (0, name)) for size in self.sizes}).items():
            if where != name:
                fixed.setdefault(_source(where, call), []).append(f"{size} = {value}")
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
        super().__init__(kind, rest.removeprefix("tensor").strip(), hint, optional=optional)
        self.own = kind != "real"
        few = "torch.arange(L), or torch.arange(start, start + L) for tokens after a cached prefix"
        self.hint = hint or f"for example, pass {few if '[batch]' in rest else 'torch.arange(-L + 1, L)'}"

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


RULES: dict[str, type[Rule]] = (
    dict.fromkeys(Instance.KINDS, Instance)
    | dict.fromkeys(Shaped.KINDS, Shaped)
    | dict.fromkeys(Numbers.KINDS, Numbers)
    | dict.fromkeys(["count", "even", "number"], Bounded)
    | {"dtype": Dtype, "frequencies": Frequencies}
)


def parse(rule: str) -> Rule:
    """Make a rule from its text."""
    form, _, hint = rule.partition(": ")
    kind, _, rest = form.partition(" ")
    name = kind.removesuffix("?")
    return RULES[name.partition("=")[0]](name, rest, hint, optional=kind.endswith("?"))


def _source(where: str, call: Call) -> str:
    """Name an argument, with its shape if it has one; a name that isn't an argument is the class that fixed a size."""
    shape = _as_tensor(call.given[where]).shape if where in call.given else None
    return f"{where} of shape {tuple(shape)}" if shape else where


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


def require_integer(name: str, value: object, *, minimum: int, hint: str) -> int:
    """Return `value` as an int; raise a ValueError unless it is an integer >= minimum."""
    return parse(f"count >= {minimum}: {hint}").check(name, value, Call({}))


def require_number(name: str, value: object, *, above: float = -math.inf, hint: str) -> float:
    """Return `value` as a float; raise a ValueError unless it is a finite number > above."""
    return parse(f"number{'' if above == -math.inf else f' > {above}'}: {hint}").check(name, value, Call({}))


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


def require_vectors(name: str, value: object, shape: str) -> Tensor:
    """Return `value`; raise a ValueError unless it is a non-empty floating-point tensor of `shape`, e.g. "(L, d)"."""
    return parse(f"float {' '.join(shape.strip('(,)').split(', '))}").check(name, value, Call({}))
