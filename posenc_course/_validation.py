"""Preconditions as data beside the signature, checked once at the public edge.

    @checked(query="float ... L_query d_head", key="float=query ... L_key d_head", mask="bool? -> ... L_query L_key")
    def attention_weights(query, key, *, mask=None): ...

A rule names a kind; what follows a colon is the way out for what is of another. `?` behind the kind lets None pass.

    float, finite, bool, ids   a tensor of such a dtype, finite without NaN and infinity; float=query shares the dtype of query
    real, whole, integer       exact numbers in a tensor, an array or a list: any, 0, 1, 2, …, or whole ones of any sign
    real tensor                the same, in nothing but a tensor
    count >= 2 <= d_model      an integer, by default >= 1; a bound may be another argument; even >= 2 lets only even ones pass
    number > 0                 a finite number; or inf lets infinity pass
    dtype, frequencies, function, Module, PositionScheme

The sizes of a tensor follow its kind. A name is one size in the whole call; a count gives its name to a size:

    batch L {self.d_model}     the object's own d_model
    [batch] L                  the first size may be missing
    ... L d_head               any sizes in front, which must broadcast
    2*pairs, 2*K+1             even or odd
    -> ... L_query L_key       broadcasts to these
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
LENGTH = "count: it counts the tokens of the sequence"
NUM_HEADS = "count: one head is the least; a scheme takes as many as its model has"
BASE = "number > 1: frequencies base**(-2i/d) must fall with i (the paper uses 10000)"
POSITIONS = "real [batch] L"
WHOLE_POSITIONS = "whole [batch] L"
DOOR = {  # of a scheme's `embed`
    "x": "float batch L {self.d_model}: embed the tokens first, and build the scheme with the model's d_model",
    "positions": "real tensor [batch] L: give one position per token, for the whole batch or for each sequence its own",
}
Q_AND_K_POSITIONS = {"q_positions": "real [batch] L_query", "k_positions": "real [batch] L_key"}


# ── the decorator ────────────────────────────────────────────────────────────────────────────────────────────────────────

CHECKED: dict[str, dict[str, "Rule"]] = {}  # each checked function's rules, by module and name


def checked(where: Literal["outside", "everywhere"] = "outside", /, **rules: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Refuse arguments that break their rule with a ValueError; a count arrives as an int and a number as a float.

    A call from another module of formulas isn't checked again, except for what such a caller cannot know: what the object
    itself says (`{self…}`), and whether numbers are whole. What is checked everywhere is checked there too.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)
        names = tuple(signature.parameters)
        everything = {name: parse(rule) for name, rule in rules.items()}
        assert everything.keys() <= {*names}, f"{function.__qualname__} has no {everything.keys() - {*names}}"
        CHECKED[f"{function.__module__}.{function.__qualname__}"] = everything
        defaults = {name: signature.parameters[name].default for name in names}
        from_outside = tuple(everything.items())
        from_inside = from_outside if where == "everywhere" else tuple((name, rule) for name, rule in from_outside if rule.own)

        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
            __tracebackhide__ = True  # a reader looks for the formula
            if not torch.compiler.is_compiling():
                plan = from_inside if _is_formula(sys._getframe(1)) else from_outside
                if plan:
                    call = Call(defaults | dict(zip(names, args, strict=False)) | kwargs)
                    converted = {}
                    for name, rule in plan:
                        value = call.given[name]
                        # What is missing, the function itself reports.
                        if value is not signature.empty and not (rule.optional and value is None):
                            call.given[name] = rule.check(name, value, call)
                            if call.given[name] is not value:
                                converted[name] = call.given[name]
                    if converted:
                        bound = signature.bind(*args, **kwargs)
                        bound.arguments.update(converted)
                        return function(*bound.args, **bound.kwargs)
            return function(*args, **kwargs)

        return wrapper

    return decorate


def _is_formula(caller: Any) -> bool:
    """Whether a frame is one of the package's formulas, whose own arguments were checked; torch's calls are its callers'.

    The caller is asked, instead of a flag that is set while a checked function runs, so that what such a function calls of its
    user's (a scheme, a hook) is checked in turn, and neither threads nor exceptions can leave the flag behind.
    """
    while caller is not None and (module := caller.f_globals.get("__name__", "")).startswith("torch."):
        caller = caller.f_back
    return caller is not None and _vouches(module)


@functools.cache
def _vouches(module: str) -> bool:
    # Training and conventions call what others wrote, with what others made; the lab and the exercises' checks are users.
    package, _, name = module.rpartition(".")
    return package == __package__ and name not in ("training", "conventions", "plotting")


def refuse(name: str, rule: str, given: object, way_out: str) -> NoReturn:
    """Raise the ValueError that every broken rule ends in: what it is about, the rule, the value, and what to do."""
    raise ValueError(f"{name} must be {rule}, got {_shown(given)}: {way_out}")


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return value if isinstance(value, _Text) else " ".join(repr(value).split())  # an array's lines as one


class _Text(str):
    """What a message says as it stands."""


class Call:
    """The arguments of one call, and the sizes named so far, each with where it was seen first."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.sizes: dict[str, tuple[int, str]] = {}
        self.front: tuple[tuple[int, ...], str] | None = None  # what the dots stand for


# ── kinds ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rule:
    """What an argument must be; `check` returns it, as an int or a float where it is a count or a number."""

    own = False  # whether a caller inside the package cannot know it

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        self.kind, self.rest, self.hint, self.optional = kind, rest, hint, optional

    def check(self, name: str, value: Any, call: Call) -> Any:
        raise NotImplementedError


class Instance(Rule):
    """An object of a class, or what may be called."""

    KINDS: ClassVar = {
        "Module": (nn.Module, "a torch.nn.Module", "pass an Encoder or a Decoder for example"),
        "PositionScheme": (PositionScheme, "a PositionScheme", "PositionScheme() itself adds no positions"),
        "function": (Callable, "a function", "leave it out for none"),
    }

    def check(self, name: str, value: Any, call: Call) -> Any:
        kind, rule, way_out = self.KINDS[self.kind]
        if not isinstance(value, kind):  # type: ignore[arg-type]
            refuse(name, rule, value, self.hint or way_out)
        return value


class Dtype(Rule):
    def check(self, name: str, value: Any, call: Call) -> Any:
        if not isinstance(value, torch.dtype) or not value.is_floating_point:
            refuse(name, "a floating-point torch.dtype", value, "take torch.float32 for example")
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

    def check(self, name: str, value: Any, call: Call) -> Any:
        whole = self.kind != "number"
        fits = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        if fits and not whole:
            fits = _is_finite(value) or (self.infinite and value == math.inf)
        said = []
        for sign, limit in self.bounds:
            bound = call.given[limit] if limit in call.given else float(limit)
            said.append(f" {sign} {limit} = {bound:g}" if limit in call.given else f" {sign} {limit}")
            fits = fits and self.SIGNS[sign](value, bound)
        if not fits:
            refuse(name, ("an integer" if whole else "a finite number") + " and".join(said), value, self.hint)
        if self.kind == "even" and value % 2:
            refuse(name, "even", value, self.hint or f"take {value + 1}")
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
    """One size of a shape, such as L, 2*K+1 or {self.d_model}: its name, and times and plus what it is the size."""

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
    """A tensor of a dtype and a shape."""

    KINDS: ClassVar = {"float": "floating-point", "finite": "finite floating-point", "bool": "boolean", "ids": "integer"}

    def __init__(self, kind: str, rest: str, hint: str, *, optional: bool) -> None:
        kind, _, self.like = kind.partition("=")
        super().__init__(kind, rest, hint or "give it this form", optional=optional)
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
        """Whether a shape is that of the rule, beside the sizes named so far; those it names first are kept."""
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
        """The rule in words, with the sizes that others fix."""
        dtype = f"{call.given[self.like].dtype}" if self.like else self.KINDS[self.kind]
        return f"a {dtype} tensor {'that broadcasts to' if self.broadcasts else 'of'} {self.shape(name, call)}"

    def shape(self, name: str, call: Call) -> str:
        names = ["..."] * self.open + [size.text for size in self.sizes]
        shapes = [names[1:], names] if self.may_lack_first else [names]
        said = (
            "shape " + " or ".join(f"({', '.join(each)}{',' * (len(each) == 1)})" for each in shapes) if names else "any shape"
        )
        fixed: dict[str, list[str]] = {}  # by where they were seen
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
        self.hint = hint or f"pass for example {few if '[batch]' in rest else 'torch.arange(-L + 1, L)'}"

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
            refuse(name, "a tensor of shape (d_head/2,)", value, "take frequencies(d_head)")
        if value.dtype != torch.float64:
            way_out = "what they lack in digits is multiplied by every position, so compute them in float64"
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
    """A rule from its text."""
    form, _, hint = rule.partition(": ")
    kind, _, rest = form.partition(" ")
    name = kind.removesuffix("?")
    return RULES[name.partition("=")[0]](name, rest, hint, optional=kind.endswith("?"))


def _source(where: str, call: Call) -> str:
    """An argument, with its shape if it has one, or what is no argument but the class that says a size."""
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
    # By way of NumPy, which reads a list of floats as float64; torch would round it to float32.
    return numbers if isinstance(numbers, Tensor) else torch.as_tensor(np.array(numbers))


# ── what bodies take ─────────────────────────────────────────────────────────────────────────────────────────────────────


def exact(numbers: Positions) -> Tensor:
    """Positions or offsets in float64."""
    return _as_tensor(numbers).to(torch.float64)


def require_integer(name: str, value: object, *, minimum: int, hint: str) -> int:
    """Return `value` as an int, or raise a ValueError unless it is an integer >= minimum."""
    return parse(f"count >= {minimum}: {hint}").check(name, value, Call({}))


def require_number(name: str, value: object, *, above: float = -math.inf, hint: str) -> float:
    """Return `value` as a float, or raise a ValueError unless it is a finite number > above."""
    return parse(f"number{'' if above == -math.inf else f' > {above}'}: {hint}").check(name, value, Call({}))


def require_tensor(name: str, value: object) -> Tensor:
    """Return `value`, or raise a ValueError unless it is a tensor."""
    if not isinstance(value, Tensor):
        refuse(name, "a torch.Tensor", value, "convert it with torch.as_tensor")
    return value


def require_vectors(name: str, value: object, shape: str) -> Tensor:
    """Return `value`, or raise a ValueError unless it is a non-empty floating-point tensor of `shape`, e.g. "(L, d)"."""
    return parse(f"float {' '.join(shape.strip('(,)').split(', '))}").check(name, value, Call({}))
