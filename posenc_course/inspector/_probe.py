"""Run a class that was built small, and record what each layer does.

What is claimed was measured. Every attention layer gets random vectors: which of them reach a query's output shows its window,
and whether it changes when two of them change places shows if the layer itself tells their order.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from posenc_course.inspector._layers import Knowledge
from posenc_course.inspector._library import WINDOW, WINDOWS, NotProbed, asked_of_the_class, build_small, built, line
from posenc_course.inspector._rotations import (
    TOKENS,
    Rotation,
    forward,
    heads_first,
    number_of_vectors,
    read_rotation,
    side_and_layer,
    watching,
)
from posenc_course.inspector._tables import find_table, tells_positions

QUERIES = (0, WINDOW - 1, TOKENS - 1)  # some see a chunk that ends with them
# Other keys by which a class may hide tokens; nobody can see it in a text of a few tokens.
OTHER_WINDOWS = re.compile(r"(?!max_|use_|num_|\w*pattern)(\w*window|block_size|\w*local_)")
CROSS = re.compile(r"cross|enc_?dec|encoder_att", re.IGNORECASE)


@dataclass
class Done:
    """What one attention layer did.

    `far` is its rotation in a text that is longer than the length at which a stretching switches. `reach` are how many tokens a
    query sees before it and after it, at most, and `ordered` is whether their order changes its output; `offsets` is how many
    offsets its bias knows, if the query chooses one; `score` multiplies the scores beside 1/√d. None is what couldn't be
    measured.
    """

    ran: bool = False
    rotation: Rotation | None = None
    far: Rotation | None = None
    width: int = 0
    reach: tuple[int, int] | None = None
    ordered: bool | None = None
    sinks: bool | None = None
    score: float | None = None
    offsets: int = 0


@dataclass
class Probe:
    """What a class did with a configuration: by side ("encoder" or "decoder", if it has both) and layer, and by side.

    `added` is whether something that is added to the words tells positions apart; None if that couldn't be measured.
    """

    name: str
    layers: dict[tuple[str, int], Done] = field(default_factory=dict)
    added: dict[str, bool] = field(default_factory=dict)
    tables: dict[str, Knowledge] = field(default_factory=dict)
    alibi: bool = False
    buckets: int = 0
    windows: dict[str, Any] = field(default_factory=dict)
    unseen_windows: bool = False
    shared: bool = False

    def layer(self, side: str, at: int) -> Done | None:
        """What layer `at` did, or the one that all share; None if it has no attention."""
        return next(iter(self.layers.values())) if self.shared else self.layers.get((side, at))

    def numbers(self) -> dict[str, int]:
        """How many layers there are on each side, up to the last one with attention."""
        return {side: 1 + max(at for of, at in self.layers if of == side) for side, _ in self.layers}


def probe(asked: Any, config: Mapping[str, Any]) -> Probe:
    """Build and run the class in small. Raises NotProbed if that can't be done."""
    problem = None
    for heads in (2, 4, 0):  # some classes divide heads by 4, and some need sizes that fit in ways of their own
        try:
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                return _probe_small(asked, config, heads)
        except NotProbed as error:
            problem = problem or error
        except Exception as error:
            problem = problem or NotProbed(f"its class couldn't be built and run in small: {line(error)}")
    with asked_of_the_class(), torch.device("meta"):  # or was it only made too small? This takes no memory
        built(asked)
    raise problem or NotProbed("")


def _probe_small(asked: Any, config: Mapping[str, Any], heads: int) -> Probe:
    model = build_small(asked, config, heads)
    found, given = Probe(type(model).__name__), asked.to_dict()
    found.windows = {key: given[key] for key in WINDOWS if given.get(key) and heads}
    others = given.keys() - found.windows.keys()
    found.unseen_windows = any(given[key] and (OTHER_WINDOWS.match(key) or key in WINDOWS) for key in others)
    for name, part in model.named_modules():
        if name.endswith("relative_attention_bias") and isinstance(part, nn.Embedding):
            found.buckets = part.num_embeddings
    _hear(model, found, asked)
    _try_layers(model, found)
    for side in {side for side, _ in found.layers}:
        try:
            found.added[side] = tells_positions(model, side)
            table = find_table(model, side) if found.added[side] else None
        except Exception:  # nothing is known of what a class does before its layers
            found.added.pop(side, None)
            continue
        if table:
            found.tables[side] = table
    if not any(layer.ran for layer in found.layers.values()):
        raise NotProbed(f"{found.name} has no attention that the probe can follow")
    return found


# ── what a layer is heard to do ──────────────────────────────────────────────────────────────────────────────────────────


def _hear(model: Any, found: Probe, asked: Any) -> None:
    """What the layers say of their rotations and scores, and of their rotations in a long text."""
    takes_positions = "position_ids" in inspect.signature(model.forward).parameters
    near, far = torch.arange(TOKENS), _far(asked)
    found.layers = _heard(model, found, near if takes_positions else None)
    if far:
        positions = torch.cat((near[:-1], torch.tensor([far])))
        for at, layer in _heard(model, found, positions if takes_positions else None).items():
            found.layers[at].far = layer.rotation


def _far(config: Any) -> int:
    """A position at which a factor that depends on the length has switched, or 0 if there's none."""
    rope = getattr(config, "rope_parameters", None) or {}
    for part in [part for part in rope.values() if isinstance(part, dict)] or [rope]:
        if part.get("rope_type") == "longrope":
            return int(part["original_max_position_embeddings"])
        if part.get("rope_type") == "dynamic":
            return 4 * int(config.max_position_embeddings) - 1
    return 0


def _heard(model: Any, found: Probe, positions: Tensor | None) -> dict[tuple[str, int], Done]:
    layers: dict[tuple[str, int], Done] = {}
    rotated: dict[tuple[str, int], Tensor] = {}
    projected: dict[tuple[str, int], Tensor] = {}  # by a layer's first linear map, which makes its queries
    known: dict[tuple[int, ...], tuple[Any, Rotation | None]] = {}  # all layers of a kind get the same tables

    def tell(what: str, at: tuple[str, int], *call: Any) -> None:
        if what == "penalize":
            found.alibi = True
            return
        if what == "project":
            projected.setdefault(at, call[-1])
            return
        layer = layers.setdefault(at, Done())
        if what == "rotate" and layer.rotation is None:
            function, tensors, options, out = call
            tables = tensors[number_of_vectors(tensors) :]
            key = tuple(map(id, tables))
            if key not in known:
                known[key] = tables, read_rotation(function, tensors, options)
            layer.rotation = known[key][1]
            rotated[at] = heads_first(out[0] if isinstance(out, tuple) else out)
        elif what == "attend":
            _, (module, q, _, _, mask), options, _ = call
            layer.width = q.shape[-1]
            if isinstance(mask, Tensor) and mask.ndim == 4:
                allowed = mask[0, 0, :, :TOKENS].expand(TOKENS, -1)
                layer.reach = _reach(allowed if allowed.dtype == torch.bool else allowed > torch.finfo(mask.dtype).min / 2)
            layer.score = _score_of(q, options, projected.pop(at, None))
            layer.sinks = options.get("s_aux") is not None
            layer.offsets = getattr(module, "rel_extent", 0) if options.get("position_bias") is not None else 0
            if layer.rotation and at in rotated:
                layer.rotation = _among_all(layer.rotation, rotated.pop(at), q)

    with watching(model, tell):
        forward(model, positions)
    return layers


def _among_all(rotation: Rotation, rotated: Tensor, q: Tensor) -> Rotation:
    """The channels' numbers in the query `q`, which may have others before those that rotate."""
    rest = q.shape[-1] - rotated.shape[-1]
    if not rest or not torch.equal(q[..., rest:], rotated.expand_as(q[..., rest:])):
        return rotation
    return replace(rotation, channels=tuple(rest + channel for channel in rotation.channels))


def _score_of(q: Tensor, options: Mapping[str, Any], projected: Tensor | None) -> float:
    """What scores are multiplied by beside 1/√d. Some classes scale the query before, and pass 1; a rotation keeps lengths."""
    usual = q.shape[-1] ** -0.5
    scaling: float = options.get("scaling", usual)
    if scaling == 1 and projected is not None and projected.numel() == q.numel():
        before = float(q.norm() / projected.norm())
        scaling = usual if math.isclose(before, usual, rel_tol=1e-3) else scaling
    return scaling / usual


# ── what a layer does to random vectors ──────────────────────────────────────────────────────────────────────────────────


class Call(NamedTuple):
    """A call of an attention layer in one text, with the layer that it belongs to."""

    layer: Done
    part: nn.Module
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def _try_layers(model: Any, found: Probe) -> None:
    """Which tokens a query sees in each layer, and whether their order matters, with random vectors in place of its input."""
    modules = {name: part for name, part in model.named_modules() if type(part).__name__.endswith("Attention")}
    inner = [name for name in modules if not any(other.startswith(f"{name}.") for other in modules)]
    calls: list[Call] = []

    def keep(layer: Done) -> Callable[..., None]:
        return lambda part, arguments, options: calls.append(Call(layer, part, arguments, options))

    with ExitStack() as stack:
        for name in inner:
            layer = found.layers.setdefault(side_and_layer(model, name), Done())
            if not CROSS.search(name):
                stack.callback(modules[name].register_forward_pre_hook(keep(layer), with_kwargs=True).remove)
        forward(model)
        first, calls = calls, []
        forward(model, ids=torch.arange(3 + TOKENS, 3 + 2 * TOKENS)[None])
    parts = {(id(call.layer), call.part) for call in calls}
    found.shared = len(parts) == 1 < len(calls)
    if len(parts) > len({id(call.layer) for call in calls}) and max(found.numbers().values()) < model.config.num_hidden_layers:
        raise NotProbed(f"the layers of {found.name} have no numbers that the probe can follow")
    for call, other in zip(first, calls, strict=True):
        call.layer.ran = True
        if sum(id(call.layer) == of for of, _ in parts) == 1:  # or nobody can tell them apart
            try:
                _try_layer(call, other)
            except Exception:  # a class may do anything with its input
                call.layer.ordered = None


def _try_layer(call: Call, other: Call) -> None:
    """What depends on the words is replaced by random vectors; the rest, as angles, stays."""
    before, after = ((*each.arguments, *each.options.values()) for each in (call, other))
    words = [a for a, b in zip(before, after, strict=True) if _axis(a) is not None and not torch.equal(a, b)]
    given = {id(each): torch.randn_like(each) for each in words}

    def answered(order: list[int]) -> Tensor:
        def moved(each: Any) -> Any:
            if id(each) in given:
                return given[id(each)].index_select(_axis(each) or 0, torch.tensor(order))
            return None if hasattr(each, "get_seq_length") else each  # no cache

        options = {key: moved(each) for key, each in call.options.items()}
        out = call.part.forward(*map(moved, call.arguments), **options)
        return _by_token(out[0] if isinstance(out, tuple | list) else out)

    tokens = [*range(TOKENS)]
    last, swapped = (answered(order)[-1] for order in (tokens, [*tokens[:-3], tokens[-2], tokens[-3], tokens[-1]]))
    call.layer.ordered = not torch.allclose(last, swapped, rtol=0, atol=3e-6 * float(last.abs().max()))
    if call.layer.reach:
        return
    with torch.enable_grad():
        for each in given.values():
            each.requires_grad_()
        out = answered(tokens)
        out = out @ torch.randn(out.shape[1])
        seen = torch.zeros(TOKENS, TOKENS, dtype=torch.bool)
        for query in QUERIES:
            for slope in torch.autograd.grad(out[query], [*given.values()], retain_graph=True, allow_unused=True):
                if slope is not None:
                    seen[query] |= _by_token(slope).any(dim=1)
    call.layer.reach = _reach(seen)


def _axis(x: Any) -> int | None:
    """The axis of tokens, if these are vectors of all tokens."""
    vectors = isinstance(x, Tensor) and x.is_floating_point() and x.ndim in (2, 3)
    return next((axis for axis in range(x.ndim - 1) if x.shape[axis] == TOKENS), None) if vectors else None


def _by_token(x: Tensor) -> Tensor:
    return x.movedim(_axis(x) or 0, 0).reshape(TOKENS, -1)


def _reach(seen: Tensor) -> tuple[int, int]:
    """How many tokens a query sees before it and after it, at most, from which key each query sees."""
    ends = [(query, seen[query].nonzero()[:, 0]) for query in QUERIES]
    return max(query - int(keys[0]) for query, keys in ends), max(int(keys[-1]) - query for query, keys in ends)
