r"""Evaluates the formulas of the pages as they are written.

A small parser for the LaTeX in this book: products without a sign, ``\sin \omega m`` for the sine of the product,
sums over pairs, matrices and transposes. SymPy's parsers split ``\sin \omega m`` or reject it, and don't support matrices.
Symbols get their values from a dictionary, so that an equation is true or not.
"""

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

Names = dict[str, Any]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": np.sin,
    "cos": np.cos,
    "ln": np.log,
    "log": np.log,
    "max": max,
    "min": min,
    "Re": np.real,
    "softmax": lambda scores: np.exp(scores) / np.exp(scores).sum(-1, keepdims=True),
}
SPACES = r"(?<!\\)\\[!,;: ]|\\q?quad\b|\\(?:left|right|[bB]ig+[lr]?)(?![a-zA-Z])|\\phantom\{[^{}]*\}|~"
NAMED = r"\\(?:text|mathrm|operatorname|mathsf)\s*(?:\{\s*(\w+)\s*\}|(\w))"
TOKEN = r"\\[a-zA-Z]+|\\\\|\d+(?:,\d{3})*(?:\.\d+)?|<\w+>|[a-zA-Z]|\S"


class Unreadable(ValueError):
    pass


def tokens(text: str) -> list[str]:
    text = re.sub(r"\\bar\s*(\w)", r"<bar\1>", text)
    text = re.sub(r"\\begin\{pmatrix\}", r"\\matrix ", re.sub(r"\\end\{pmatrix\}", r"\\endmatrix ", text))
    text = re.sub(r"\\mathrm\{i\}", "<imaginary>", text)
    text = re.sub(NAMED, lambda found: f"<{found[1] or found[2]}>", text)
    text = re.sub(r"\\tfrac|\\dfrac", r"\\frac", re.sub(SPACES, " ", text))
    return re.findall(TOKEN, text.replace("{,}", ""))


def equations(formula: str) -> Iterator[str]:
    """The equations of a display, separated by rows and wide spaces; a row that begins with = or + continues the one above."""
    body = re.sub(r"\\(?:begin|end)\{aligned\}", "", formula)

    def inner(found: re.Match[str]) -> str:
        return found[0].replace("\\\\", "\0").replace("&", "\1")

    protected = re.sub(r"\\begin\{(pmatrix|cases)\}.*?\\end\{\1\}", inner, body, flags=re.DOTALL)
    protected = re.sub(r"\\\\\s*&\s*(?=[=+])", " ", protected).replace("&", "")
    apart = r"\\\\|,\s*(?:\\quad|\\;\\;)|\\qquad(?:\s*\\Longrightarrow\s*\\qquad)?|\\quad\s*\\Rightarrow\s*\\quad"
    for part in re.split(apart, protected):
        text = part.replace("\0", "\\\\").replace("\1", "&")
        text = re.sub(r"\\q?quad\s*\\text\{for every \}.*|^\s*\\text\{with \}", "", text).strip().rstrip(",.; \n")
        if text:
            yield text


class Late(NamedTuple):
    """A value that depends on others, such as a weight of two positions."""

    of: Callable[[Names], Any]


class Side(NamedTuple):
    text: str
    value: Any


def sides(equation: str, names: Names) -> list[Side]:
    """The values of the expressions between the equals signs."""
    reader = _Reader(tokens(equation), names)
    found = []
    while True:
        start = reader.at
        value = reader.sum()
        if reader.next() == r"\le":
            reader.take()
            value = value <= reader.sum()
        found.append(Side(" ".join(reader.tokens[start : reader.at]), value))
        if reader.at == len(reader.tokens):
            return found
        reader.take("" if reader.next() == r"\approx" else "=")


def false(equation: str, names: Names) -> str | None:
    """What is wrong with an equation, if its sides differ by more than the precision of a decimal, or of a number after ≈."""
    with np.errstate(all="ignore"):
        found = sides(equation, names)
    first = found[0]
    for side in found[1:]:
        digits = re.fullmatch(r"(?:- )?\d+\.(\d+)", side.text)
        bound = 0.5 * 10.0 ** -len(digits[1]) if digits else 1e-7
        if whole := re.fullmatch(r"(?:- )?\d*?[1-9](0*)", side.text) if r"\approx" in equation else None:
            digits, bound = whole, 0.5 * 10.0 ** len(whole[1])
        left, right = np.asarray(first.value), np.asarray(side.value)
        if left.shape != right.shape or not np.allclose(left, right, rtol=bound if not digits else 0, atol=bound):
            return f"{first.text} is {left}, and {side.text} is {right}"
    return None


def times(left: Any, right: Any) -> Any:
    return left @ right if np.ndim(left) and np.ndim(right) else left * right


class _Reader:
    """Recursive descent: each method reads one kind of expression from ``at`` on and returns its value."""

    CLOSERS = frozenset(
        ("", "=", r"\approx", ",", ")", "]", "}", "+", "-", "&", r"\\", r"\le", r"\rVert", r"\rvert", r"\rfloor", r"\endmatrix")
    )

    def __init__(self, of: list[str], names: Names) -> None:
        self.tokens, self.names, self.at, self.bars = of, names, 0, 0

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.next()
        if not token or (wanted and token != wanted):
            raise Unreadable(f"{wanted or 'something'} is missing before {' '.join(self.tokens[self.at : self.at + 5])!r}")
        self.at += 1
        return token

    def sum(self) -> Any:
        sign = self.take() if self.next() in ("+", "-") else "+"
        value = self.product()
        value = -value if sign == "-" else value
        while self.next() in ("+", "-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def product(self, *, of_function: bool = False) -> Any:
        """Factors, with or without a sign between them; a function's own end at the next function or at a sign."""
        value = self.factor()
        while True:
            token = self.next()
            if token in self.CLOSERS or (token in ("|",) and self.bars):
                return value
            if of_function and (token in (r"\cdot", "/") or token.strip("\\<>") in FUNCTIONS):
                return value
            if token == r"\cdot":
                self.take()
            if token == "/":
                self.take()
                value = value / self.factor()
            elif token == r"\times":  # of a shape, L × d
                self.take()
                value = np.append(value, self.factor())
            else:
                value = times(value, self.factor())

    def factor(self) -> Any:
        value = self.base()
        while self.next() in ("^", "_", "'"):
            if self.take() == "_":
                value = self.indexed(value, self.group())
                continue
            start = self.at
            power = self.group(text=True)
            if power == "<T>":
                value = np.transpose(value)
                continue
            self.at = start
            value = value ** self.group()
        return value

    def indexed(self, value: Any, index: Any) -> Any:
        return value(index) if callable(value) else value[round(float(index))]

    def group(self, *, text: bool = False) -> Any:
        """The tokens in braces, or a single token."""
        start = self.at
        if text:
            depth = 0
            while True:
                depth += {"{": 1, "}": -1}.get(self.take(), 0)
                if depth == 0:
                    return "".join(self.tokens[start : self.at]).strip("{}")
        if self.next() != "{":
            if re.fullmatch(r"\d{2,}", self.next()):
                self.tokens[self.at : self.at + 1] = list(self.next())  # 2^10 is 2^1 0 in LaTeX
            if re.fullmatch(r"\w|<\w+>|\\(?!frac|sqrt)\w+", self.next()):
                return _Reader([self.take()], self.names).base()  # only this token, without what comes after it
            return self.base()
        self.take("{")
        value = self.sum()
        self.take("}")
        return value

    def base(self) -> Any:
        token = self.take()
        if re.match(r"\d", token):
            return float(token.replace(",", ""))
        if token in ("(", "[", "{"):
            return self.until({"(": ")", "[": "]", "{": "}"}[token])
        if token in (r"\lVert", r"\lvert", r"\lfloor"):
            value = self.until({r"\lVert": r"\rVert", r"\lvert": r"\rvert", r"\lfloor": r"\rfloor"}[token])
            return math.floor(value) if token == r"\lfloor" else np.linalg.norm(value)
        if token == "|":
            self.bars += 1
            value = self.until("|")
            self.bars -= 1
            return np.linalg.norm(value)
        if token == r"\frac":
            above = self.group()
            return above / self.group()
        if token == r"\sqrt":
            return np.sqrt(self.group())
        if token == r"\underbrace":
            value = self.group()
            self.take("_")
            self.group(text=True)
            return value
        if token in (r"\sum", r"\matrix"):
            return self.over_index() if token == r"\sum" else self.matrix()
        name = token.strip("\\<>")
        return self.function(name) if name in FUNCTIONS and name not in self.names else self.symbol(name)

    def until(self, end: str) -> Any:
        value = self.sum()
        if end == ")" and self.next() == ",":  # a pair
            self.take()
            value = np.array((value, self.sum()))
        self.take(end)
        return value

    def arguments(self) -> list[Any]:
        self.take("(")
        values = [self.sum()]
        while self.next() == ",":
            self.take()
            values.append(self.sum())
        self.take(")")
        return values

    def function(self, name: str) -> Any:
        power = 1.0
        if self.next() == "^":
            self.take()
            power = self.group()
        values = self.arguments() if self.next() == "(" else [self.product(of_function=True)]
        return FUNCTIONS[name](*values) ** power if power != 1 else FUNCTIONS[name](*values)

    def symbol(self, name: str) -> Any:
        """A name with its index and its primes, which may make another name."""
        start, index = self.at, ""
        primes = 0
        while self.next() in ("'", "_"):
            if self.take() == "'":
                primes += 1
            else:
                before = self.at
                index = self.group(text=True).strip("<>")
                span = (before, self.at)
        full = name + "'" * primes
        if index and f"{full}_{index}" in self.names:
            value = self.names[f"{full}_{index}"]
        elif full in self.names:
            value = self.names[full]
            if index:
                end, self.at = self.at, span[0]
                value = self.indexed(value, self.group())
                self.at = end
        elif name == "imaginary":
            self.at, value = start, 1j
        elif name == "e":
            self.at, value = start, math.e
        elif name == "pi":
            self.at, value = start, math.pi
        else:
            raise Unreadable(f"no value for {full}{'_' + index if index else ''}")
        if isinstance(value, Late):
            return value.of(self.names)
        if callable(value) and self.next() == "(":
            value = value(*self.arguments())
        return value

    def over_index(self) -> Any:
        """A sum over an index: it reaches to the end of the expression, as on the pages."""
        self.take("_")
        below = re.fullmatch(r"(\w)(?:=(\d+))?", self.group(text=True))
        if not below:
            raise Unreadable("a sum over something other than i or i=0")
        first, last = int(below[2] or 0), self.names.get(f"number of {below[1]}")
        if self.next() == "^":
            self.take()
            last = self.group() + 1
        if last is None:
            raise Unreadable(f"how far {below[1]} runs")
        start, total = self.at, 0.0
        outside = self.names.get(below[1])
        for number in range(first, round(float(last))):
            self.at, self.names[below[1]] = start, float(number)
            total = total + self.sum()
        self.names.pop(below[1], None)
        if outside is not None:
            self.names[below[1]] = outside
        return total

    def matrix(self) -> Any:
        rows = [[self.sum()]]
        while self.next() != r"\endmatrix":
            if self.take() == "&":
                rows[-1].append(self.sum())
            else:
                rows.append([self.sum()])
        self.take()
        return np.array(rows)[:, 0] if len(rows[0]) == 1 else np.array(rows)
