"""Build the class that a configuration names with a few channels and random weights, and record what each layer does.

What is claimed was measured. Every attention layer gets random vectors: which of them reach a query's output shows its window,
and whether it changes when two of them change places shows if the layer itself tells their order. One word throughout shows if
something is added to the words, and with a table set to 0, if it's that table.

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
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor, nn

from posenc_course.conventions import read_table
from posenc_course.inspector._config import names

TOKENS, WINDOW = 12, 4
QUERIES = (0, WINDOW - 1, TOKENS - 1)  # some see a chunk that ends with them
MOST_BYTES = 2**31
MOST_ROWS = 2**12
NO_TEXT = "reads no text alone"
WINDOWS = (
    "sliding_window",
    "attention_chunk_size",
    "local_attention",
    "window_size",
    "attention_window",
    "attention_window_size",
)
# Other keys by which a class may hide tokens; nobody can see it in a text of a few tokens.
OTHER_WINDOWS = re.compile(r"(?!max_|use_|num_|\w*pattern)(\w*window|block_size|\w*local_)")
# What a configuration may call its widths and numbers; each class takes those that it has.
SIZES = {
    64: "vocab_size index_topk type_vocab_size mamba_d_head mamba_head_dim",
    32: "intermediate_size moe_intermediate_size shared_expert_intermediate_size intermediate_size_mlp moe_hidden_size "
    "dense_intermediate_size shared_intermediate_size encoder_ffn_dim decoder_ffn_dim ffn_hidden_size ffn_dim d_ff dim_ff dff "
    "n_inner kv_lora_rank q_lora_rank o_lora_rank",
    2: "num_attention_heads encoder_attention_heads decoder_attention_heads num_key_value_heads num_kv_heads kv_n_heads "
    "num_global_key_value_heads index_n_heads linear_num_heads linear_num_value_heads linear_num_key_heads mamba_n_heads "
    "mamba_num_heads num_experts num_local_experts n_routed_experts moe_num_experts mamba_expand",
    1: "num_experts_per_tok moe_top_k n_group topk_group n_groups mamba_n_groups o_groups bos_token_id",
    0: "hidden_size_per_layer_input num_kv_shared_layers pad_token_id",
    128: "mamba_d_ssm",
    WINDOW: " ".join(WINDOWS),
}
SMALL = {name: size for size, those in SIZES.items() for name in those.split()} | {"eos_token_id": 2}
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
SIDES = ("encoder", "decoder")
CROSS = re.compile(r"cross|enc_?dec|encoder_att", re.IGNORECASE)
TABLE = re.compile(r"pos|wpe", re.IGNORECASE)
LAYER = re.compile(r"\.(\d+)(?:\.|$)")


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
    backwards: bool


@dataclass
class Done:
    """What one attention layer did.

    `reach` are how many tokens a query sees before it and after it, at most, and `ordered` is whether their order changes its
    output; `offsets` is how many offsets its bias knows, if the query chooses one; `score` multiplies the scores beside 1/√d.
    None is what couldn't be measured.
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
class Table:
    """A table that is added to the words: its number of rows, if a text that needs more is refused, the row of the first token,
    and whether its rows are sinusoids.
    """

    rows: int | None
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
    """What a class did with a configuration: by side ("encoder" or "decoder", if it has both) and layer, and by side.

    `added` is whether something that is added to the words tells positions apart; None if that couldn't be measured.
    """

    name: str
    config: Any
    layers: dict[tuple[str, int], Done] = field(default_factory=dict)
    added: dict[str, bool] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
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
            made = known[given["model_type"]].from_dict(_copied(given))
            asked = made.get_text_config() if hasattr(made.get_text_config(), "num_hidden_layers") else made
        except ImportError as error:
            raise NotProbed(f"a package is missing: {_line(error)}") from error
        except Exception as error:  # whatever a class thinks of a configuration is a finding
            raise Refused(f"transformers {transformers.__version__} refuses it: {_line(error)}") from error
    code = _code(asked)
    # Some classes take heads of two widths apart.
    values = {
        key: value for key, value in config.items() if key.endswith("head_dim") and _mentions(code, key)
    } | asked.to_dict()
    if not {*names("layers")} & values.keys() and isinstance(number := getattr(asked, "num_hidden_layers", None), int):
        values["num_hidden_layers"] = number
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
    problem = NotProbed("")
    for heads in (2, 4, 0):  # some classes divide heads by 4, and some need sizes that fit in ways of their own
        try:
            with _quiet(), torch.random.fork_rng(devices=[]):
                return _probe_small(library.config, config, heads)
        except NotProbed as error:
            problem = problem if problem.args[0] else error
        except Exception as error:
            problem = problem if problem.args[0] else NotProbed(f"its class couldn't be built and run in small: {_line(error)}")
    with _quiet():
        _must_build(library.config)  # or was it only made too small?
    raise problem


def _probe_small(asked: Any, config: Mapping[str, Any], heads: int) -> Probe:
    """With this many heads, or 0 for the sizes that were asked for."""
    small = type(asked).from_dict(_copied(config) | (_small(asked, heads) if heads else {}))
    with torch.device("meta"):  # takes no memory
        planned = _built(small)
    name, given = type(planned).__name__, asked.to_dict()
    size = sum(tensor.nbytes for tensor in (*planned.parameters(), *planned.buffers()))
    if size > MOST_BYTES:  # a table or a mask grows with the lengths, which stay as they are
        raise NotProbed(f"{name} would take {size / 1e9:,.0f} GB even in small")
    if "input_ids" not in inspect.signature(planned.forward).parameters:
        raise NotProbed(f"{name} {NO_TEXT}")
    torch.manual_seed(0)
    found = Probe(name, asked)
    found.windows = {key: given[key] for key in WINDOWS if given.get(key) and heads}
    found.unseen_windows = any(
        value and (OTHER_WINDOWS.match(key) or key in WINDOWS) for key, value in given.items() if key not in found.windows
    )
    _run(_built(small).eval(), asked, found)
    if not any(layer.ran for layer in found.layers.values()):
        raise NotProbed(f"{name} has no attention that the probe can follow")
    return found


def _must_build(asked: Any) -> None:
    """Raises Refused if the class can't be built as the configuration says, without memory for its weights."""
    import transformers

    try:
        with torch.device("meta"):
            _built(asked)
    except NotProbed:
        raise
    except ImportError as error:
        raise NotProbed(f"a package is missing: {_line(error)}") from error
    except Exception as error:
        raise Refused(f"transformers {transformers.__version__} refuses it: {_line(error)}") from error


def _built(config: Any) -> Any:
    """The model without a head; some parts for text aren't in the library's list of models."""
    import transformers

    made = transformers.MODEL_MAPPING.get(type(config), None)
    name = type(config).__module__.replace(".configuration_", ".modeling_")
    if made is None and importlib.util.find_spec(name):
        classes = [each for each in vars(importlib.import_module(name)).values() if inspect.isclass(each)]
        texts = [each for each in classes if each.__name__.endswith("TextModel")]
        made = next((each for each in texts if getattr(each, "config_class", None) is type(config)), None)
    made = made[0] if isinstance(made, tuple) else made
    if made is None:
        raise NotProbed(f"transformers {transformers.__version__} has no model without a head for it")
    return made._from_config(config, attn_implementation="eager")


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


def _small(config: Any, heads: int) -> dict[str, Any]:
    """The values that make the class small, by the names that it uses. A head keeps its width."""
    given, native = config.to_dict(), type(config).attribute_map or {}

    def get(name: str) -> Any:
        return given.get(native.get(name, name))

    values = {
        name: [value] * len(get(name)) if isinstance(get(name), list) else value for name, value in SMALL.items() if get(name)
    }
    hidden, usual = 64, (get("hidden_size") or 0) // (get("num_attention_heads") or 1)
    if get("head_dim"):
        values["head_dim"] = get("head_dim")
    if usual and get("qk_rope_head_dim") is None and get("head_dim") in (None, usual):
        hidden = heads * usual
    values["hidden_size"] = hidden
    values |= {name: heads for name in values if name.endswith("attention_heads")}
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


def _run(model: Any, asked: Any, found: Probe) -> None:
    takes_positions = "position_ids" in inspect.signature(model.forward).parameters
    far = _far(asked)
    near = torch.arange(TOKENS)
    runs = [near] + ([torch.cat((near[:-1], torch.tensor([far])))] if far else [])
    for number, positions in enumerate(runs):
        with watching(model, _recorder(found, second=number > 0)), torch.no_grad():
            _forward(model, positions if takes_positions else None)
    with torch.no_grad():
        _read_layers(model, found)
        _read_tables(model, found)


def _side(model: Any, name: str) -> str:
    """On which side of a model a module is, by its name; empty if there is only one."""
    return next((part for part in name.split(".") if part in SIDES), "") if model.config.is_encoder_decoder else ""


def _axis(x: Any) -> int | None:
    """The axis of tokens, if these are vectors of all tokens."""
    vectors = isinstance(x, Tensor) and x.is_floating_point() and x.ndim in (2, 3)
    return next((axis for axis in range(x.ndim - 1) if x.shape[axis] == TOKENS), None) if vectors else None


def _by_token(x: Tensor) -> Tensor:
    return x.movedim(_axis(x) or 0, 0).reshape(TOKENS, -1)


class Call(NamedTuple):
    """A call of an attention layer in one text, with the layer that it belongs to."""

    layer: Done
    part: nn.Module
    arguments: tuple[Any, ...]
    options: dict[str, Any]


def _read_layers(model: Any, found: Probe) -> None:
    """Which tokens a query sees in each layer, and whether their order matters, with random vectors in place of its input."""
    modules = {name: part for name, part in model.named_modules() if type(part).__name__.endswith("Attention")}
    inner = [name for name in modules if not any(other.startswith(f"{name}.") for other in modules)]
    calls: list[Call] = []

    def keep(layer: Done) -> Callable[..., None]:
        return lambda part, arguments, options: calls.append(Call(layer, part, arguments, options))

    with ExitStack() as stack:
        for name in inner:
            number = LAYER.search(f".{name}")
            layer = found.layers.setdefault((_side(model, name), int(number[1]) if number else -1), Done())
            if not CROSS.search(name):
                stack.callback(modules[name].register_forward_pre_hook(keep(layer), with_kwargs=True).remove)
        _forward(model, None)
        first, calls = calls, []
        _forward(model, None, torch.arange(3 + TOKENS, 3 + 2 * TOKENS)[None])
    parts = {(id(call.layer), call.part) for call in calls}
    found.shared = len(parts) == 1 < len(calls)
    if len(parts) > len({id(call.layer) for call in calls}) and max(found.numbers().values()) < model.config.num_hidden_layers:
        raise NotProbed(f"the layers of {found.name} have no numbers that the probe can follow")
    for call, other in zip(first, calls, strict=True):
        call.layer.ran = True
        if sum(id(call.layer) == of for of, _ in parts) == 1:  # or nobody can tell them apart
            try:
                _read_layer(call, other)
            except Exception:  # a class may do anything with its input
                call.layer.ordered = None


def _read_layer(call: Call, other: Call) -> None:
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
        out = out[0] if isinstance(out, tuple | list) else out
        return _by_token(out)

    tokens = [*range(TOKENS)]
    last, swapped = (answered(order)[-1] for order in (tokens, [*tokens[:-3], tokens[-2], tokens[-3], tokens[-1]]))
    call.layer.ordered = not torch.allclose(last, swapped, rtol=0, atol=3e-6 * float(last.abs().max()))
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
    call.layer.reach = call.layer.reach or _reach(seen)


def _reach(seen: Tensor) -> tuple[int, int]:
    """How many tokens a query sees before it and after it, at most, from which key each query sees."""
    ends = [(query, seen[query].nonzero()[:, 0]) for query in QUERIES]
    return max(query - int(keys[0]) for query, keys in ends), max(int(keys[-1]) - query for query, keys in ends)


class _Entered(Exception):
    """The first layer is reached, and nothing else is asked of the model."""


def _at_the_door(model: Any, side: str, ids: Tensor) -> Tensor:
    """What enters the first layer on this side, as (L, width)."""
    got: list[Tensor] = []

    def hook(_: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        for each in (*arguments, *options.values()):
            if isinstance(each, Tensor) and each.is_floating_point() and each.ndim == 3:
                got.append(each[0] if each.shape[0] == 1 else each[:, 0])
                raise _Entered

    with ExitStack() as stack:
        for name, part in model.named_modules():
            if isinstance(part, nn.ModuleList) and len(part) and _side(model, name) == side:
                stack.callback(part[0].register_forward_pre_hook(hook, with_kwargs=True).remove)
        try:
            _forward(model, None, ids)
        except _Entered:
            return got[0]
    raise ValueError(f"nothing enters a layer of the {side or 'model'}")


def _read_tables(model: Any, found: Probe) -> None:
    """Which table is added to the words of each side: with one word throughout, nothing else tells positions apart."""
    same = torch.full((1, TOKENS), 5)

    def tells(side: str) -> bool:
        x = _at_the_door(model, side, same)[1:-1]
        return not torch.allclose(x[0], x[-1], rtol=1e-3, atol=1e-5 * float(x.abs().max()))

    for name, part in model.named_modules():
        if name.endswith("relative_attention_bias") and isinstance(part, nn.Embedding):
            found.buckets = part.num_embeddings
    for side in {side for side, _ in found.layers}:
        named = [(name, each) for name, each in (*model.named_parameters(), *model.named_buffers()) if TABLE.search(name)]
        tables = [(name, each) for name, each in named if each.is_floating_point() and each.ndim > 1]
        try:
            found.added[side] = tells(side)
            for name, table in tables:
                if found.added[side] and _side(model, name) in ("", side):
                    kept = table.clone()
                    table.zero_()
                    explains = not tells(side)
                    table.copy_(kept)
                    if explains:
                        found.tables[side] = _read_table(model, side, table)
                        break  # a longer text may have made another table
        except Exception:  # nothing is known of what a class does before its layers
            found.added.pop(side, None)


def _read_table(model: Any, side: str, table: Tensor) -> Table:
    kept, text = table.clone(), torch.full((1, TOKENS), 5)
    before, first = _at_the_door(model, side, text)[0], None
    for row in reversed(range(4)):
        table[..., row, :] += 1 + torch.rand(table.shape[-1])
        first = first if torch.equal(before, _at_the_door(model, side, text)[0]) else row
        table.copy_(kept)
    rows = kept.shape[-2]
    table.data = kept[..., :MOST_ROWS, :]  # as if a long one ended sooner
    ends = first is not None and _ends(model, side, min(rows, MOST_ROWS) - first)
    table.data = kept
    return Table(rows if ends else None, first or 0, _are_sinusoids(kept.reshape(-1, kept.shape[-1])))


def _ends(model: Any, side: str, length: int) -> bool:
    """Whether a text of this length is read, and one with another token isn't."""
    for longer in range(2):
        try:
            _at_the_door(model, side, torch.full((1, length + longer), 5))
        except Exception:
            return bool(longer)
    return False


def _are_sinusoids(table: Tensor) -> bool:
    try:
        return bool(read_table(table.detach()[2:]))  # the first rows may be kept for padding
    except ValueError:
        return False


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
            number = LAYER.search(f".{name}")
            if number and type(module).__name__.endswith("Attention"):
                stack.callback(module.register_forward_pre_hook(entering((_side(model, name), int(number[1])))).remove)
                for part in filter(lambda part: isinstance(part, nn.Linear), module.children()):
                    stack.callback(part.register_forward_hook(projecting).remove)
        yield


def heads_first(x: Tensor) -> Tensor:
    """Queries or keys as (batch, heads, L, width); some functions that rotate get tokens before heads."""
    return x.transpose(1, 2) if x.shape[1] == TOKENS else x


def _recorder(found: Probe, *, second: bool) -> Callable[..., None]:
    """What `watching` tells, into the layers of `found`."""
    rotated: dict[Any, Tensor] = {}
    projected: dict[Any, Tensor] = {}  # by a layer's first linear map, which makes its queries
    known: list[tuple[Any, Rotation | None]] = []  # all layers of a kind get the same tables

    def tell(what: str, at: tuple[str, int], *call: Any) -> None:
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
            layer.width = q.shape[-1]
            if isinstance(mask, Tensor) and mask.ndim == 4:
                allowed = mask[0, 0, :, :TOKENS].expand(TOKENS, -1)
                layer.reach = _reach(allowed if allowed.dtype == torch.bool else allowed > torch.finfo(mask.dtype).min / 2)
            layer.score = _score_of(q, options, projected.pop(at, None))
            layer.sinks = options.get("s_aux") is not None
            layer.offsets = getattr(module, "rel_extent", 0) if options.get("position_bias") is not None else 0
            if layer.rotation and at in rotated:
                part = rotated.pop(at)
                rest = q.shape[-1] - part.shape[-1]
                if rest and torch.equal(q[..., rest:], part.expand_as(q[..., rest:])):
                    channels = tuple(rest + channel for channel in layer.rotation.channels)
                    layer.rotation = replace(layer.rotation, channels=channels)

    return tell


def _score_of(q: Tensor, options: Mapping[str, Any], projected: Tensor | None) -> float:
    """What scores are multiplied by beside 1/√d. Some classes scale the query before, and pass 1; a rotation keeps lengths."""
    usual = q.shape[-1] ** -0.5
    scaling: float = options.get("scaling", usual)
    if scaling == 1 and projected is not None and projected.numel() == q.numel():
        before = float(q.norm() / projected.norm())
        scaling = usual if math.isclose(before, usual, rel_tol=1e-3) else scaling
    return scaling / usual


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
        backwards = images[low[0], partner[low[0]]].item() < 0
        rotation = Rotation(tuple(channels), interleaved, tuple(angles), scale[channels[0]].item(), backwards)
    known.append((tables, rotation))
    return rotation
