"""Build the class that a configuration names with a few channels and random weights, and record what each layer does.

Only names of transformers are used that its models share: a function called `apply_rot…` rotates queries and keys, and
`eager_attention_forward` computes the attention. Layers, heads' widths and lengths stay as the configuration says.
"""

import copy
import importlib.util
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

from posenc_course.conventions import read_table

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
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim", "ffn_hidden_size"), 32),
    **dict.fromkeys(("moe_num_experts", "kv_n_heads"), 2),
    "moe_top_k": 1,
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
    """The class wasn't run; the message says why, in one line."""


class Refused(NotProbed):
    """The class itself refuses the configuration."""


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
    `offsets` is how many offsets its bias knows, if the query chooses one. `score` is None if it couldn't be measured.
    """

    rotation: Rotation | None = None
    far: Rotation | None = None
    width: int = 0
    windowed: bool = False
    excess: int = 0
    two_sided: bool = False
    sinks: bool = False
    score: float | None = 1.0
    offsets: int = 0


@dataclass
class Table:
    """A table of positions: its number of rows, the row of the first token, and whether its rows are sinusoids."""

    rows: int
    first: int
    sinusoids: bool


@dataclass
class Library:
    """What transformers makes of a configuration: its class's object, the values that the class reads, under its names, and
    the names of the keys in the file that nothing in the class's code reads.
    """

    config: Any
    values: dict[str, Any]
    unread: tuple[str, ...]


@dataclass
class Probe:
    """What a class did with a configuration: by layer, and by the parts that all layers share."""

    name: str
    config: Any
    layers: dict[int, Done]
    tables: dict[str, Table] = field(default_factory=dict)
    alibi: bool = False
    buckets: int = 0
    uses_positions: bool | None = None
    failed: str = ""

    def unseen(self, layers: int) -> str:
        """Why what it did can't be told, for a model with this many layers; empty if it can."""
        attending = [layer for layer in self.layers.values() if layer.width or layer.rotation]
        known = self.alibi or self.buckets or self.tables or any(layer.rotation or layer.offsets for layer in attending)
        # Recurrent layers tell positions apart by themselves.
        hidden = not known and (not attending or (self.uses_positions and len(attending) == layers))
        return self.failed or (f"{self.name} has no attention whose positions the probe can follow" if hidden else "")


def read_by_library(config: Mapping[str, Any], whole: Mapping[str, Any]) -> Library:
    """The configuration as the class of `config["model_type"]` reads it, or that of the file, `whole`, of which it is a part.

    Raises NotProbed if there is no such class, and Refused if it raises an error.
    """
    try:
        import transformers
    except ImportError:
        raise NotProbed("transformers isn't installed") from None
    known = transformers.CONFIG_MAPPING
    given = next((each for each in (config, whole) if each.get("model_type") in known), None)
    if given is None:
        raise NotProbed(f"transformers {transformers.__version__} has no class for model_type {config.get('model_type')!r}")
    with _quiet():
        try:
            asked = known[given["model_type"]].from_dict(_copied(given)).get_text_config()
        except ImportError as error:
            raise NotProbed(f"a package is missing: {_line(error)}") from error
        except Exception as error:  # whatever a class thinks of a configuration is a finding
            raise Refused(f"transformers {transformers.__version__} refuses it: {_line(error)}") from error
    code = _code(asked)
    # Some classes take heads of two widths apart.
    values = {
        key: value for key, value in config.items() if key.endswith("head_dim") and _mentions(code, key)
    } | asked.to_dict()
    # What the class has taken into other keys is read, too; the rest is kept as it is, and has no effect.
    unread = [key for key in config if key in values and not _mentions(code, key) and key not in (asked.attribute_map or {})]
    for name in ("rope_parameters", "rope_scaling"):
        unread += [key for key in config.get(name) or () if isinstance(key, str) and not _mentions(code, key)]
    return Library(asked, {key: value for key, value in values.items() if key not in unread}, tuple(unread))


def _code(asked: Any) -> str:
    """The class's code: its configuration, its layers, and what is shared by all that rotate."""
    name = type(asked).__module__
    modules = [name, name.replace(".configuration_", ".modeling_")]
    modules += ["transformers.modeling_rope_utils"] if hasattr(asked, "rope_parameters") else []
    return "\n".join(inspect.getsource(importlib.import_module(each)) for each in modules if importlib.util.find_spec(each))


def _mentions(code: str, key: str) -> bool:
    return re.search(rf"\b{re.escape(key)}\b", code) is not None


def probe(library: Library, config: Mapping[str, Any]) -> Probe:
    """Build and run the class in small. Raises NotProbed if that can't be done, and Refused if the class won't be built."""

    asked = library.config
    with _quiet(), torch.random.fork_rng(devices=[]):
        try:
            small = type(asked).from_dict(_copied(config) | _small(asked))
            with torch.device("meta"):  # takes no memory
                planned = _built(small)
            size = sum(tensor.nbytes for tensor in (*planned.parameters(), *planned.buffers()))
            torch.manual_seed(0)
            model = _built(small).eval() if size <= MOST_BYTES else None
        except Exception as error:  # is it the class's refusal, or was it made too small?
            _must_build(asked)
            raise NotProbed(f"{type(asked).__name__}'s class couldn't be built in small: {_line(error)}") from error
        if model is None:  # a table or a mask grows with the lengths, which stay as they are
            raise NotProbed(f"{type(planned).__name__} would take {size / 1e9:,.0f} GB even in small")
        found = Probe(type(model).__name__, asked, {})
        _read_tables(model, found)
        try:
            _run(model, asked, found)
        except Exception as error:
            found.failed = f"{found.name} couldn't be run in small: {_line(error)}"
    return found


def _must_build(asked: Any) -> None:
    """Raises Refused if the class can't be built as the configuration says, without memory for its weights."""
    import transformers

    try:
        with torch.device("meta"):
            _built(asked)
    except ImportError as error:
        raise NotProbed(f"a package is missing: {_line(error)}") from error
    except Exception as error:
        raise Refused(f"transformers {transformers.__version__} refuses it: {_line(error)}") from error


def _built(config: Any) -> Any:
    """The model without a head; some parts for text aren't in the library's list of models."""
    import transformers

    made: Any = transformers.AutoModel
    if type(config) not in transformers.MODEL_MAPPING:
        code = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
        classes = [each for each in vars(code).values() if inspect.isclass(each) and each.__name__.endswith("TextModel")]
        made = next((each for each in classes if getattr(each, "config_class", None) is type(config)), made)
        if made is not transformers.AutoModel:
            return made._from_config(config, attn_implementation="eager")
    return made.from_config(config, attn_implementation="eager")


def _copied(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a class may write into; what doesn't concern it is left out."""
    return copy.deepcopy({key: value for key, value in config.items() if key not in ELSEWHERE})


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what transformers says while it reads a configuration."""
    logger = logging.getLogger("transformers")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(before)


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
    if get("pad_token_id") in (1, 2):
        values["pad_token_id"] = get("pad_token_id")  # some tables begin after its row
    if get("embedding_size"):
        values["embedding_size"] = hidden
    if get("mamba_d_head") and get("mamba_d_ssm") is None:
        values["mamba_d_head"] = hidden  # mamba_expand·hidden_size, in two heads
    parts = {name: part for name, part in vars(config).items() if hasattr(part, "attribute_map")}
    nested = {
        name: part.to_dict() | {key: SMALL[key] for key in SMALL if key in part.to_dict()} for name, part in parts.items()
    }
    return {native.get(name, name): value for name, value in values.items()} | nested


def _read_tables(model: nn.Module, found: Probe) -> None:
    for name, part in model.named_modules():
        last = name.rpartition(".")[2]
        weight = getattr(part, "weight", None)
        if last == "relative_attention_bias" and isinstance(part, nn.Embedding):
            found.buckets = part.num_embeddings
        elif re.search(r"wpe|position_embedding|embed_positions", last) and isinstance(weight, Tensor) and weight.ndim == 2:
            found.tables[name] = Table(weight.shape[0], 0, _are_sinusoids(weight))


def _are_sinusoids(weight: Tensor) -> bool:
    try:
        return bool(read_table(weight.detach()[2:]))  # the first rows may be kept for padding
    except ValueError:
        return False


def _run(model: Any, asked: Any, found: Probe) -> None:
    forward = inspect.signature(model.forward).parameters
    if "input_ids" not in forward:
        return
    _find_first_rows(model, found)
    far = _far(asked)
    near = torch.arange(TOKENS)
    runs = [near] + ([torch.cat((near[:-1], torch.tensor([far])))] if far else [])
    for number, positions in enumerate(runs):
        chunked = getattr(model.config, "attention_chunk_size", None) is not None
        with watching(model, _recorder(found, chunked, second=number > 0)), torch.no_grad():
            _forward(model, positions if "position_ids" in forward else None)
    with torch.no_grad():
        same = _forward(model, None, torch.full((1, TOKENS), 5))
    # With one word throughout, rotations and biases change nothing, but what is added to the words does.
    found.uses_positions = not torch.allclose(same[:, 1], same[:, -1], atol=1e-5 * float(same.abs().max()))


def _find_first_rows(model: Any, found: Probe) -> None:
    """The row of each table that the first token gets, if nobody gives positions to the class."""
    if not found.tables:
        return
    tables = {model.get_submodule(name).weight.data_ptr(): table for name, table in found.tables.items()}
    embedding = nn.functional.embedding

    def watched(rows: Tensor, weight: Tensor, *arguments: Any, **options: Any) -> Tensor:
        if table := tables.get(weight.data_ptr()):
            table.first = int(rows.flatten()[0])
        return embedding(rows, weight, *arguments, **options)

    with patch.object(nn.functional, "embedding", watched), torch.no_grad():
        _forward(model, None)


def _forward(model: Any, positions: Tensor | None, ids: Tensor | None = None) -> Tensor:
    ids = torch.arange(3, 3 + TOKENS)[None] if ids is None else ids
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
    """While this lasts, call `tell(what, layer, …)` when a layer is entered, projects, rotates, attends, or makes a penalty.

    But for "enter", it also gets the function that did it, its arguments, its options, and its result; for "project", only
    the result.
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
            number = LAYER.search(f"{name}.")
            if number and type(module).__name__.endswith("Attention"):
                stack.callback(module.register_forward_pre_hook(entering(int(number[1]))).remove)
                for part in filter(lambda part: isinstance(part, nn.Linear), module.children()):
                    stack.callback(part.register_forward_hook(projecting).remove)
        yield


def heads_first(x: Tensor) -> Tensor:
    """Queries or keys as (batch, heads, L, width); some functions that rotate get tokens before heads."""
    return x.transpose(1, 2) if x.shape[1] == TOKENS else x


def _recorder(found: Probe, chunked: bool, *, second: bool) -> Callable[..., None]:
    """What `watching` tells, into the layers of `found`."""
    rotated: dict[int, Tensor] = {}
    projected: dict[int, Tensor] = {}  # by a layer's first linear map, which makes its queries
    known: list[tuple[Any, Rotation | None]] = []  # all layers of a kind get the same tables

    def tell(what: str, at: int, *call: Any) -> None:
        if what == "penalize":
            found.alibi = True
            return
        if what == "project":
            projected.setdefault(at, call[-1])
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
            _record_attention(layer, q, mask, options, chunked, projected.pop(at, None))
            layer.offsets = getattr(module, "rel_extent", 0) if options.get("position_bias") is not None else 0
            if layer.rotation and at in rotated:
                part = rotated.pop(at)
                rest = q.shape[-1] - part.shape[-1]
                if rest and torch.equal(q[..., rest:], part.expand_as(q[..., rest:])):
                    channels = tuple(rest + channel for channel in layer.rotation.channels)
                    layer.rotation = replace(layer.rotation, channels=channels)

    return tell


def _scaled_before(projected: Tensor | None, q: Tensor) -> float:
    """What the query was multiplied by since it was projected; a rotation keeps its length."""
    if projected is None or projected.numel() != q.numel():
        return 1.0
    factor = float(q.norm() / projected.norm())
    return q.shape[-1] ** -0.5 if math.isclose(factor, q.shape[-1] ** -0.5, rel_tol=1e-3) else 1.0


def _record_attention(
    layer: Done, q: Tensor, mask: Tensor | None, options: Mapping[str, Any], chunked: bool, projected: Tensor | None
) -> None:
    layer.width = q.shape[-1]
    scaling = options.get("scaling", q.shape[-1] ** -0.5)
    # Some classes scale the query before, and pass 1.
    layer.score = scaling * math.sqrt(q.shape[-1]) * (_scaled_before(projected, q) if scaling == 1 else 1)
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
