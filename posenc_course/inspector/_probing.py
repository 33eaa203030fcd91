"""Build the class that a configuration names with a few channels and random weights, and record what each layer does.

Only names of transformers are used that its models share: a function called `apply_rot…` rotates queries and keys, and
`eager_attention_forward` computes the attention. Layers, heads' widths and lengths stay as the configuration says.
"""

import copy
import importlib
import inspect
import logging
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

TOKENS, WINDOW = 12, 5
MOST_BYTES = 2**31
# What a configuration may call its widths and numbers; each class takes those that it has.
SMALL = {
    **dict.fromkeys(("vocab_size", "index_topk", "type_vocab_size"), 64),
    **dict.fromkeys(("intermediate_size", "moe_intermediate_size", "kv_lora_rank", "q_lora_rank", "o_lora_rank"), 32),
    **dict.fromkeys(("shared_expert_intermediate_size", "intermediate_size_mlp", "moe_hidden_size"), 32),
    **dict.fromkeys(("dense_intermediate_size", "shared_intermediate_size"), 32),
    **dict.fromkeys(("num_attention_heads", "num_key_value_heads", "index_n_heads", "num_experts", "num_local_experts"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 32),
    **dict.fromkeys(("num_global_key_value_heads", "n_routed_experts", "linear_num_heads"), 2),
    **dict.fromkeys(("linear_num_value_heads", "linear_num_key_heads", "mamba_n_heads", "mamba_num_heads"), 2),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim"), 64),
    **dict.fromkeys(("num_experts_per_tok", "n_group", "topk_group", "n_groups", "mamba_n_groups", "o_groups"), 1),
    **dict.fromkeys(("sliding_window", "attention_chunk_size"), WINDOW),
    "local_attention": 2 * WINDOW,
    "mamba_expand": 2,
    "mamba_d_ssm": 128,
    "hidden_size_per_layer_input": 0,
    "num_kv_shared_layers": 0,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# What says where a configuration comes from, or how its weights are stored, and not what the class does.
ELSEWHERE = (
    "architectures",
    "auto_map",
    "dtype",
    "torch_dtype",
    "quantization_config",
    "transformers_version",
    "_name_or_path",
)
FUNCTIONS = {"rotate": r"apply_(multimodal_)?rot", "attend": r"eager_attention_forward$", "penalize": r".*alibi"}
ALIBI = ("build_alibi_tensor", "build_mpt_alibi_tensor")
LAYER = re.compile(r"\b(?:layers?|h|blocks?)\.(\d+)\.")


class NotProbed(Exception):
    """The class couldn't be built or run; the message says why, in one line."""


@dataclass(frozen=True)
class Rotation:
    """What a rotation does: which channels it rotates, in pairs (i, partner), by which frequencies, and how it scales them."""

    channels: tuple[int, ...]
    interleaved: bool
    frequencies: tuple[float, ...]
    factor: float


@dataclass
class Done:
    """What one attention layer did. `excess` is how many tokens a query sees beyond the window that the class was given, and
    `offsets` is how many offsets its bias knows, if the query chooses one.
    """

    rotation: Rotation | None = None
    far: Rotation | None = None
    width: int = 0
    windowed: bool = False
    excess: int = 0
    two_sided: bool = False
    sinks: bool = False
    score: float = 1.0
    offsets: int = 0


@dataclass
class Probe:
    """What a class did with a configuration: by layer, and by the parts that all layers share."""

    name: str
    config: Any
    layers: dict[int, Done]
    tables: dict[str, int] = field(default_factory=dict)
    alibi: bool = False
    buckets: int = 0
    uses_positions: bool | None = None
    said: list[str] = field(default_factory=list)
    failed: str = ""


def probe(config: Mapping[str, Any]) -> Probe:
    """Build and run the class of `config["model_type"]`. Raises NotProbed if there is none, or if it can't be run."""
    try:
        import transformers
    except ImportError:
        raise NotProbed("transformers isn't installed") from None
    kind = config.get("model_type")
    if kind not in transformers.CONFIG_MAPPING:
        raise NotProbed(f"transformers {transformers.__version__} has no class for model_type {kind!r}")
    made = transformers.CONFIG_MAPPING[kind]
    values = {key: value for key, value in config.items() if key not in ELSEWHERE}
    values = copy.deepcopy(values)  # transformers writes into the dictionaries that it gets
    with _listening() as said, torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
        try:
            asked = made.from_dict(copy.deepcopy(values))
            small = made.from_dict(values | _small(asked))
            with torch.device("meta"):  # takes no memory
                planned = transformers.AutoModel.from_config(small, attn_implementation="eager")
            size = sum(tensor.nbytes for tensor in (*planned.parameters(), *planned.buffers()))
            if size > MOST_BYTES:  # a table or a mask grows with the lengths, which stay as they are
                raise NotProbed(f"{type(planned).__name__} would take {size / 1e9:,.0f} GB even in small")
            torch.manual_seed(0)
            model = transformers.AutoModel.from_config(small, attn_implementation="eager").eval()
        except NotProbed:
            raise
        except Exception as error:  # whatever a class thinks of a configuration is a finding
            raise NotProbed(f"transformers {transformers.__version__} refuses it: {_line(error)}") from error
        found = Probe(type(model).__name__, asked, {}, said=said)
        _read_tables(model, found)
        try:
            _run(model, asked, found)
        except Exception as error:
            found.failed = f"{found.name} couldn't be run in small: {_line(error)}"
    return found


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


@contextmanager
def _listening() -> Iterator[list[str]]:
    """What transformers says while it reads a configuration, instead of printing it."""
    said: list[str] = []
    logger = logging.getLogger("transformers")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(" ".join(record.getMessage().split()))  # type: ignore[method-assign]
    before = logger.handlers[:], logger.propagate, logger.level
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.WARNING)
    try:
        yield said
    finally:
        logger.handlers, logger.propagate = before[0], before[1]
        logger.setLevel(before[2])


def _small(config: Any) -> dict[str, Any]:
    """The values that make the class small, by the names that it uses. A head keeps its width."""
    given, native = config.to_dict(), type(config).attribute_map or {}

    def get(name: str) -> Any:
        return given.get(native.get(name, name))

    values = {name: value for name, value in SMALL.items() if get(name) is not None}
    hidden = 64
    if get("head_dim"):
        values["head_dim"] = get("head_dim")
    elif get("qk_rope_head_dim") is None:
        hidden = 2 * (get("hidden_size") // get("num_attention_heads"))
    values["hidden_size"] = hidden
    if get("embedding_size"):
        values["embedding_size"] = hidden
    if get("mamba_d_head") and get("mamba_d_ssm") is None:
        values["mamba_d_head"] = hidden  # mamba_expand·hidden_size, in two heads
    return {native.get(name, name): value for name, value in values.items()}


def _read_tables(model: nn.Module, found: Probe) -> None:
    for name, part in model.named_modules():
        last = name.rpartition(".")[2]
        weight = getattr(part, "weight", None)
        if last == "relative_attention_bias" and isinstance(part, nn.Embedding):
            found.buckets = part.num_embeddings
        elif re.search(r"wpe|position_embedding|embed_positions", last) and isinstance(weight, Tensor) and weight.ndim == 2:
            found.tables[name] = weight.shape[0]


def _run(model: Any, asked: Any, found: Probe) -> None:
    forward = inspect.signature(model.forward).parameters
    if "input_ids" not in forward:
        return
    far = _far(asked)
    near = torch.arange(TOKENS)
    runs = [near] + ([torch.cat((near[:-1], torch.tensor([far])))] if far else [])
    outputs = []
    for number, positions in enumerate(runs):
        chunked = getattr(model.config, "attention_chunk_size", None) is not None
        with watching(model, _recorder(found, chunked, second=number > 0)), torch.no_grad():
            outputs.append(_forward(model, positions if "position_ids" in forward else None))
    if "position_ids" in forward and outputs:
        with torch.no_grad():
            moved = _forward(model, 7 * near)
        found.uses_positions = not torch.allclose(moved, outputs[0], atol=1e-5 * float(outputs[0].abs().max()))


def _forward(model: Any, positions: Tensor | None) -> Tensor:
    ids = torch.arange(3, 3 + TOKENS)[None]
    options = {} if positions is None else {"position_ids": positions[None]}
    if model.config.is_encoder_decoder:
        options["decoder_input_ids"] = ids
    return model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **options)[0]


def _far(config: Any) -> int:
    """A position at which a factor that depends on the length has switched, or 0 if there's none."""
    rope = getattr(config, "rope_parameters", None) or {}
    parts = [part for part in rope.values() if isinstance(part, dict)] or [rope]
    for part in parts:
        if part.get("rope_type") == "longrope":
            return int(part["original_max_position_embeddings"])
        if part.get("rope_type") == "dynamic":
            return 4 * int(config.max_position_embeddings) - 1
    return 0


@contextmanager
def watching(model: nn.Module, tell: Callable[..., None]) -> Iterator[None]:
    """While this lasts, call `tell(what, layer, …)` when a layer is entered, rotates, or attends, or a penalty is made.

    But for "enter", it also gets the function that did it, its arguments, its options, and its result.
    """
    at, code = -1, importlib.import_module(type(model).__module__)

    def watched(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            if what == "attend" and "attention_mask" in options:  # most classes give it by its place
                arguments = (*arguments, options.pop("attention_mask"))
            out = function(*arguments, **options)
            tell(what, at, function, arguments, options, out)
            return out

        return call

    def entering(number: int) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            nonlocal at
            at = number
            tell("enter", at)

        return hook

    with ExitStack() as stack:
        for name, value in [*vars(code).items()]:
            for what, pattern in FUNCTIONS.items():
                if inspect.isfunction(value) and re.match(pattern, name):
                    stack.enter_context(patch.object(code, name, watched(what, value)))
        for name, module in model.named_modules():
            for own in ALIBI:
                if hasattr(module, own):
                    stack.enter_context(patch.object(module, own, watched("penalize", getattr(module, own))))
            number = LAYER.search(f"{name}.")
            if number and type(module).__name__.endswith("Attention"):
                stack.callback(module.register_forward_pre_hook(entering(int(number[1]))).remove)
        yield


def heads_first(x: Tensor) -> Tensor:
    """Queries or keys as (batch, heads, L, width); some functions that rotate get tokens before heads."""
    return x.transpose(1, 2) if x.shape[1] == TOKENS else x


def _recorder(found: Probe, chunked: bool, *, second: bool) -> Callable[..., None]:
    """What `watching` tells, into the layers of `found`."""
    rotated: dict[int, Tensor] = {}
    known: list[tuple[Any, Rotation | None]] = []  # all layers of a kind get the same tables

    def tell(what: str, at: int, *call: Any) -> None:
        if what == "penalize":
            found.alibi = True
            return
        layer = found.layers.setdefault(at, Done())
        if what == "rotate":
            function, tensors, options, out = call
            rotation = _read(function, tensors, options, known)
            if second:
                layer.far = rotation
            elif layer.rotation is None:
                layer.rotation = rotation
                rotated[at] = heads_first(out[0] if isinstance(out, tuple) else out)
        elif what == "attend":
            _, (module, q, _, _, mask), options, _ = call
            _record_attention(layer, q, mask, options, chunked)
            layer.offsets = getattr(module, "rel_extent", 0) if options.get("position_bias") is not None else 0
            if layer.rotation and at in rotated:
                part = rotated.pop(at)
                rest = q.shape[-1] - part.shape[-1]
                if rest and torch.equal(q[..., rest:], part.expand_as(q[..., rest:])):
                    channels = tuple(rest + channel for channel in layer.rotation.channels)
                    layer.rotation = replace(layer.rotation, channels=channels)

    return tell


def _record_attention(layer: Done, q: Tensor, mask: Tensor | None, options: Mapping[str, Any], chunked: bool) -> None:
    layer.width = q.shape[-1]
    layer.score = options.get("scaling", q.shape[-1] ** -0.5) * math.sqrt(q.shape[-1])
    layer.sinks = options.get("s_aux") is not None
    seen = TOKENS
    if mask is not None and mask.ndim == 4:
        seen = int((mask[0, 0, -1, :TOKENS] == 0).sum())
        layer.two_sided = bool((mask[0, 0, 0, 1:TOKENS] == 0).any())
    layer.windowed = seen < TOKENS
    layer.excess = 0 if chunked or not layer.windowed else seen - WINDOW


def _read(
    function: Callable[..., Any], tensors: tuple[Any, ...], options: dict[str, Any], known: list[tuple[Any, Any]]
) -> Rotation | None:
    """Give the function every unit vector in place of its queries and keys, and read what becomes of it at position 1."""
    width = tensors[0].shape[-1]
    vectors = 1 + all(isinstance(t, Tensor) and t.ndim == 4 and t.shape[-1] == width for t in tensors[1:2])
    tables = tensors[vectors:]
    for before, rotation in known:
        if len(before) == len(tables) and all(a is b for a, b in zip(before, tables, strict=True)):
            return rotation
    x = torch.eye(width).view(width, 1, 1, width).repeat(1, 1, TOKENS, 1)
    x = x.transpose(1, 2) if tensors[0].shape[1] == TOKENS else x
    out = function(*(x.clone() for _ in range(vectors)), *tables, **options)
    rotated = heads_first(out[0] if isinstance(out, tuple) else out)[:, 0].double()
    start, images = rotated[:, 0], rotated[:, 1]  # row j: what channel j becomes at positions 0 and 1
    scale = start.norm(dim=1)
    images = images @ start.T / scale.square()  # some classes change the order of channels, too, which isn't a rotation
    apart = images - torch.diag(images.diagonal())
    channels = apart.abs().amax(dim=1).nonzero()[:, 0].tolist()
    rotation = None
    if channels:
        partner = apart.abs().argmax(dim=1).tolist()
        low = [channel for channel in channels if channel < partner[channel]]
        angles = [math.atan2(abs(images[i, partner[i]].item()), images[i, i].item()) for i in low]
        interleaved = all(partner[i] == i + 1 for i in low)
        rotation = Rotation(tuple(channels), interleaved, tuple(angles), scale[channels[0]].item())
    known.append((tables, rotation))
    return rotation
