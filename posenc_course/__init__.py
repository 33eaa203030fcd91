"""The companion package of the course: every formula of the book as a small, tested function.

Position reaches a Transformer through one of three doors (`schemes.PositionScheme`): the embedding, the query and key,
or the score. Each scheme has a module named after its topic, with pure functions first and then a thin `torch.nn.Module`::

    naive         counting, scaling to [0, 1], binary digits              (chapter 02)
    sinusoidal    sines and cosines at geometrically falling frequencies  (chapter 03)
    learned       a trainable vector for each position                    (chapter 08)
    rope          queries and keys rotated by their positions             (chapter 10)
    rope_scaling  RoPE stretched beyond its training length               (chapter 13)
    relative      Shaw's vectors, T5's numbers, and windows, by offset    (chapter 09)
    alibi         a penalty that grows with the distance                  (chapter 11)
    polar         lengths for what a token is, angles for where it is     (chapter 14)
    contextual    positions that are computed from the tokens             (chapter 15)
    temperature   scores that grow with the number of keys                (chapter 16)
    nope          none of the three doors                                 (chapter 17)

These modules are shared by all schemes::

    schemes       the base class, with the three doors                    (chapter 01)
    geometry      lengths, distances and shifts of sinusoidal encodings   (chapters 04 to 07)
    attention     scaled dot-product and multi-head attention             (chapter 01)
    transformer   an encoder and a decoder that work with any scheme      (chapters 01 and 02)
    conventions   probes that find out which layout and sign code uses    (chapters 03 and 10)
    models        which encoding released models use, with their values   (chapter 17)
    inspector     what each layer of a model knows about position         (chapter 17)
    llama         a model that people use, on the course's own attention  (chapters 18 and 19)
    training      a training loop that records loss and gradient norms    (chapter 02)
    experiment    every scheme trained and tested beyond its length       (chapter 12)
    plotting      the style of the book's figures
    checks        verdicts on answers to the exercises

Each module is an attribute of the package, and so are the schemes, the models, and what makes a scheme's frequencies:
`posenc_course.rope`, `posenc_course.RotaryPositions`. They are imported, and torch with them, when they are used first.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

__version__ = "1.0.0"

_HOMES = {  # of the names that the package lends from its modules
    "alibi": ["AlibiPositions"],
    "contextual": ["ForgettingPositions", "RecurrentPositions", "ReflectedPositions", "SelectiveRotaryPositions"],
    "learned": ["LearnedPositions"],
    "naive": ["BinaryPositions", "LinearPositions", "NormalizedPositions"],
    "nope": ["NoPositions"],
    "polar": ["PolarPositions"],
    "relative": ["ShawPositions", "T5Positions", "WindowedPositions"],
    "rope": ["RotaryPositions"],
    "rope_scaling": ["DynamicNTKPositions", "yarn", "yarn_attention_factor"],
    "schemes": ["PositionScheme"],
    "sinusoidal": ["SinusoidalPositions", "frequencies", "sinusoidal_table"],
    "temperature": ["ScaledPositions"],
    "transformer": ["Decoder", "Encoder"],
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def _modules() -> list[str]:
    return [module.name for module in iter_modules(__path__) if module.name[0] != "_"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _modules():
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"the package {__name__} has no {name!r}: dir({__name__}) lists what it has")


def __dir__() -> list[str]:
    return sorted({*_HOME, *_modules(), *(name for name in globals() if name[0] == "_")})
