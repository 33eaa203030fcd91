"""The roster of schemes: what each is called, how it looks in every figure, and how the lab builds it.

The lab and its command line, `plotting` and the pages' living figures take names, labels and looks from here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from posenc_course.alibi import AlibiPositions
from posenc_course.contextual import ForgettingPositions, RecurrentPositions, ReflectedPositions, SelectiveRotaryPositions
from posenc_course.learned import LearnedPositions
from posenc_course.naive import LinearPositions, NormalizedPositions
from posenc_course.nope import NoPositions
from posenc_course.polar import PolarPositions
from posenc_course.relative import ShawPositions, T5Positions, WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies

Layers: TypeAlias = PositionScheme | list[PositionScheme]  # one scheme for all layers, or one for each


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The sizes of a decoder, which its scheme is built for; the lab's configurations add its training."""

    length: int = 64
    multiples: tuple[int, ...] = (1, 2, 4, 8)
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2

    @property
    def longest(self) -> int:
        """The longest evaluation length in bytes, 8T by default."""
        return self.multiples[-1] * self.length

    @property
    def d_head(self) -> int:
        """The number of channels of one head."""
        return self.d_model // self.num_heads


class Scheme(NamedTuple):
    """A row of the roster: label, name of the colour, marker and line style; and the scheme for a decoder of given sizes."""

    label: str
    color: str
    marker: str
    linestyle: str
    build: Callable[[Sizes], Layers] | None = None  # None if the lab doesn't train it


@dataclass(frozen=True)
class Mix:
    """One scheme for most layers, and another for every fourth layer; with fewer than four layers, for the last one."""

    most: str
    last: str

    def __call__(self, sizes: Sizes) -> list[PositionScheme]:
        """Build both, and give each layer one of them."""
        every = min(4, sizes.num_layers)
        most, last = (build(sizes) for name in (self.most, self.last) if (build := ROSTER[name].build))
        usual = most if isinstance(most, list) else [most] * sizes.num_layers
        assert isinstance(last, PositionScheme)
        return [last if layer % every == every - 1 else scheme for layer, scheme in enumerate(usual)]


def _rope(sizes: Sizes) -> RotaryPositions:
    return RotaryPositions(frequencies(sizes.d_head))


def _quarter(sizes: Sizes) -> int:
    """A quarter of the pairs of channels, at least one."""
    return max(1, sizes.d_head // 8)


def _gated(kind: Callable[[int, int], PositionScheme]) -> Callable[[Sizes], Layers]:
    """A scheme with gates, of which each layer has its own."""
    return lambda sizes: [kind(sizes.d_model, sizes.num_heads) for _ in range(sizes.num_layers)]


# Shaw's last vector and T5's last bucket stand for all distances from T/2 on, so that training uses them; otherwise, a longer
# text would be the first to use them.
FIRST = {
    "none": Scheme("no position", "black", "x", ":", lambda sizes: NoPositions()),
    "normalized": Scheme("normalized", "azure", "v", "-", lambda sizes: NormalizedPositions(sizes.d_model)),
    "linear": Scheme("linear", "slate", "^", "-.", lambda sizes: LinearPositions(sizes.d_model)),
    "binary": Scheme("binary", "periwinkle", "s", "-"),
    "sinusoidal": Scheme("sinusoidal", "blue", "o", "-", lambda sizes: SinusoidalPositions(sizes.d_model)),
    "learned": Scheme("learned", "navy", "D", "--", lambda sizes: LearnedPositions(sizes.longest, sizes.d_model)),
    "shaw": Scheme("Shaw", "wine", "<", "--", lambda sizes: ShawPositions(sizes.d_head, max_offset=sizes.length // 2)),
    "t5": Scheme(
        "T5 bias", "rose", ">", "-.",
        lambda sizes: T5Positions(sizes.num_heads, min(32, sizes.length // 2), max_distance=sizes.length // 2, causal=True),
    ),
    "rope": Scheme("RoPE", "green", "P", "-", _rope),
    "alibi": Scheme("ALiBi", "raspberry", "X", "-", lambda sizes: AlibiPositions(sizes.num_heads)),
}  # fmt: skip
# What came later: mixes of layers, RoPE on a part of the channels, and positions that depend on the content. "Fast" is
# the fast quarter of the spectrum, and "partial" all speeds in a quarter of the channels. A window has T/4 tokens.
LATER = {
    "rope-none": Scheme("RoPE, none", "green", "d", "-.", Mix("rope", "none")),
    "window": Scheme("window", "forest", "8", "--", lambda sizes: WindowedPositions(_rope(sizes), sizes.length // 4)),
    "window-rope": Scheme("window, RoPE", "forest", "p", "-.", Mix("window", "rope")),
    "window-none": Scheme("window, none", "forest", "h", ":", Mix("window", "none")),
    "fast": Scheme(
        "fast quarter", "leaf", "1", "--", lambda sizes: RotaryPositions(_rope(sizes).frequencies[: _quarter(sizes)])
    ),
    "partial": Scheme("all speeds", "leaf", "2", ":", lambda sizes: RotaryPositions(frequencies(2 * _quarter(sizes)))),
    "polar": Scheme("PoPE", "leaf", "3", "-.", lambda sizes: PolarPositions(sizes.d_head, sizes.num_heads)),
    "recurrent": Scheme("recurrent", "mauve", ".", "-", _gated(RecurrentPositions)),
    "recurrent-rope": Scheme("recurrent, RoPE", "green", "+", ":", Mix("recurrent", "rope")),
    "recurrent-none": Scheme("recurrent, none", "mauve", "|", "--", Mix("recurrent", "none")),
    "forgetting": Scheme("forgetting", "mauve", "4", "-.", _gated(ForgettingPositions)),
    "selective": Scheme(
        "selective RoPE", "green", "*", "--",
        _gated(lambda d, heads: SelectiveRotaryPositions(d, heads, frequencies(d // heads))),
    ),
    "reflected": Scheme("reflections", "leaf", "H", "-", _gated(ReflectedPositions)),
}  # fmt: skip
ROSTER: dict[str, Scheme] = FIRST | LATER
