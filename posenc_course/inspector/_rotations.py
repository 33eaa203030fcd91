"""Run a model and hear what its layers do, and read a rotation off from what it does to unit vectors.

Only names of transformers are used that its models share: a function called `apply_rot…` rotates queries and keys, and
`eager_attention_forward` computes the attention.
"""

import importlib
import inspect
import math
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

TOKENS = 12
FUNCTIONS = {"rotate": r"apply_(multimodal_)?rot", "attend": r"eager_attention_forward$", "penalize": r".*alibi"}
ALIBI = ("build_alibi_tensor", "build_mpt_alibi_tensor")
SIDES = ("encoder", "decoder")
LAYER = re.compile(r"\.(\d+)(?:\.|$)")


@dataclass(frozen=True)
class Rotation:
    """What a rotation does: which channels it rotates, in pairs (i, partner), by which frequencies, and how it scales them."""

    channels: tuple[int, ...]
    interleaved: bool
    frequencies: tuple[float, ...]
    factor: float
    backwards: bool


def side_and_layer(model: Any, name: str) -> tuple[str, int]:
    """Where a module is, by its name: the side is empty if the model has only one, and the layer -1 if it's in none."""
    side = next((part for part in name.split(".") if part in SIDES), "") if model.config.is_encoder_decoder else ""
    number = LAYER.search(f".{name}")
    return side, int(number[1]) if number else -1


def forward(model: Any, positions: Tensor | None = None, ids: Tensor | None = None) -> None:
    ids = torch.arange(3, 3 + TOKENS)[None] if ids is None else ids
    options = {} if positions is None else {"position_ids": positions[None]}
    if model.config.is_encoder_decoder:
        options["decoder_input_ids"] = ids
    model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **options)


@contextmanager
def watching(model: nn.Module, tell: Callable[..., None]) -> Iterator[None]:
    """While this lasts, call `tell(what, layer, …)` when a layer projects, rotates, attends, or makes a penalty.

    It also gets the function that did it, its arguments, its options, and its result; for "project", only the result.
    """
    at: tuple[str, int] = ("", -1)
    code = importlib.import_module(type(model).__module__)

    def watched(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if what == "attend" and "attention_mask" in options:  # most classes give it by its place
                arguments = (*arguments, options.pop("attention_mask"))
            out = function(*arguments, **options)
            tell(what, at, function, arguments, options, out)
            return out

        return call

    def entering(number: tuple[str, int]) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            nonlocal at
            at = number

        return hook

    def projecting(part: nn.Module, _: Any, out: Any) -> None:
        if isinstance(out, Tensor):
            tell("project", at, out)

    with ExitStack() as stack:
        for name, value in [*vars(code).items()]:
            for what, pattern in FUNCTIONS.items():
                if inspect.isfunction(value) and re.match(pattern, name):
                    stack.enter_context(patch.object(code, name, watched(what, value)))
        for name, module in model.named_modules():
            for own in ALIBI:
                if hasattr(module, own):
                    stack.enter_context(patch.object(module, own, watched("penalize", getattr(module, own))))
            number = side_and_layer(model, name)
            if number[1] >= 0 and type(module).__name__.endswith("Attention"):
                stack.callback(module.register_forward_pre_hook(entering(number)).remove)
                for part in filter(lambda part: isinstance(part, nn.Linear), module.children()):
                    stack.callback(part.register_forward_hook(projecting).remove)
        yield


def heads_first(x: Tensor) -> Tensor:
    """Queries or keys as (batch, heads, L, width); some functions that rotate get tokens before heads."""
    return x.transpose(1, 2) if x.shape[1] == TOKENS else x


def number_of_vectors(tensors: tuple[Any, ...]) -> int:
    """How many of a rotation's arguments are rotated: queries and keys, or one of them; the others are its tables."""
    width = tensors[0].shape[-1]
    return 1 + all(isinstance(t, Tensor) and t.ndim == 4 and t.shape[-1] == width for t in tensors[1:2])


def read_rotation(function: Callable[..., Any], tensors: tuple[Any, ...], options: dict[str, Any]) -> Rotation | None:
    """Give the function every unit vector in place of its queries and keys, and read what becomes of it at position 1."""
    width, vectors = tensors[0].shape[-1], number_of_vectors(tensors)
    x = torch.eye(width).view(width, 1, 1, width).repeat(1, 1, TOKENS, 1)
    x = x.transpose(1, 2) if tensors[0].shape[1] == TOKENS else x
    out = function(*(x.clone() for _ in range(vectors)), *tensors[vectors:], **options)
    rotated = heads_first(out[0] if isinstance(out, tuple) else out)[:, 0].double()
    start, images = rotated[:, 0], rotated[:, 1]  # row j: what channel j becomes at positions 0 and 1
    scale = start.norm(dim=1)
    images = images @ start.T / scale.square()  # some classes change the order of channels, too, which isn't a rotation
    apart = (images - torch.diag(images.diagonal())).abs()
    channels = apart.amax(dim=1).nonzero()[:, 0].tolist()
    if not channels:
        return None
    partner = apart.argmax(dim=1).tolist()
    low = [channel for channel in channels if channel < partner[channel]]
    angles = [math.atan2(abs(images[i, partner[i]].item()), images[i, i].item()) for i in low]
    interleaved = all(partner[i] == i + 1 for i in low)
    backwards = images[low[0], partner[low[0]]].item() < 0
    return Rotation(tuple(channels), interleaved, tuple(angles), scale[channels[0]].item(), backwards)
