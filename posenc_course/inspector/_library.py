"""What transformers makes of a configuration: its class's object, and the class built small, with random weights.

Layers, heads' widths and lengths stay as the configuration says.
"""

import copy
import importlib.util
import inspect
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

WINDOW = 4
WINDOWS = "sliding_window attention_chunk_size local_attention window_size attention_window attention_window_size".split()
# What a configuration may call its widths and numbers; each class takes those that it has.
SIZES = {
    64: "vocab_size index_topk type_vocab_size mamba_d_head mamba_head_dim",
    32: "intermediate_size moe_intermediate_size shared_expert_intermediate_size intermediate_size_mlp moe_hidden_size "
    "dense_intermediate_size shared_intermediate_size encoder_ffn_dim decoder_ffn_dim ffn_hidden_size ffn_dim d_ff dim_ff dff "
    "n_inner kv_lora_rank q_lora_rank o_lora_rank",
    2: "num_attention_heads encoder_attention_heads decoder_attention_heads num_key_value_heads num_kv_heads kv_n_heads "
    "num_global_key_value_heads index_n_heads linear_num_heads linear_num_value_heads linear_num_key_heads mamba_n_heads "
    "mamba_num_heads num_experts num_local_experts n_routed_experts moe_num_experts mamba_expand eos_token_id",
    1: "num_experts_per_tok moe_top_k n_group topk_group n_groups mamba_n_groups o_groups bos_token_id",
    0: "hidden_size_per_layer_input num_kv_shared_layers pad_token_id",
    128: "mamba_d_ssm",
}
SMALL = {name: size for size, those in SIZES.items() for name in those.split()} | dict.fromkeys(WINDOWS, WINDOW)
MOST_BYTES = 2**31
# What says where a configuration comes from, or how its weights are stored, and not what the class does.
ELSEWHERE = "architectures auto_map dtype torch_dtype quantization_config transformers_version _name_or_path".split()


class NotProbed(Exception):
    """The class wasn't run; the message says why, in one line, and `kind` is "refused", "no text", or "other"."""

    def __init__(self, why: str, kind: str = "other") -> None:
        super().__init__(why)
        self.kind = kind


def read_by_library(config: Mapping[str, Any], whole: Mapping[str, Any]) -> Any:
    """What the class of `config["model_type"]` makes of it, or that of the file, `whole`, of which it is a part.

    Raises NotProbed if there is no such class, or if it raises an error.
    """
    try:
        import transformers
    except ImportError:
        raise NotProbed("transformers isn't installed") from None
    known = transformers.CONFIG_MAPPING
    given = next((each for each in (config, whole) if each.get("model_type") in known), None)
    if given is None:
        raise NotProbed(f"transformers {transformers.__version__} has no class for model_type {config.get('model_type')!r}")
    with asked_of_the_class():
        made = known[given["model_type"]].from_dict(copied(given))
        return made.get_text_config() if hasattr(made.get_text_config(), "num_hidden_layers") else made


@contextmanager
def quiet() -> Iterator[None]:
    """Without what transformers says while it reads a configuration, and builds and runs its class."""
    logging.disable()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(logging.NOTSET)


@contextmanager
def asked_of_the_class() -> Iterator[None]:
    """Whatever a class thinks of a configuration is a finding. Raises NotProbed."""
    import transformers

    try:
        yield
    except NotProbed:
        raise
    except ImportError as error:
        raise NotProbed(f"a package is missing: {line(error)}") from error
    except Exception as error:
        raise NotProbed(f"transformers {transformers.__version__} refuses it: {line(error)}", "refused") from error


def build_small(asked: Any, config: Mapping[str, Any], heads: int) -> Any:
    """The model with this many heads, or 0 for the sizes that were asked for. Raises NotProbed if it would still be large."""
    given = copied(config)
    if heads:
        # Bloom's and Falcon's old name for the width would count more than the new one.
        given = {key: value for key, value in given.items() if key != "n_embed"} | _sizes(asked, heads)
    small = type(asked).from_dict(given)
    with torch.device("meta"):  # takes no memory
        planned = built(small)
    size = sum(tensor.nbytes for tensor in (*planned.parameters(), *planned.buffers()))
    name = type(planned).__name__
    if size > MOST_BYTES:  # a table or a mask grows with the lengths, which stay as they are
        raise NotProbed(f"{name} would take {size / 1e9:,.0f} GB even in small")
    if "input_ids" not in inspect.signature(planned.forward).parameters:
        raise NotProbed(f"{name} reads no text alone", "no text")
    torch.manual_seed(0)
    return built(small).eval()


def built(config: Any) -> Any:
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


def copied(config: Mapping[str, Any]) -> dict[str, Any]:
    """What a class may write into; what doesn't concern it is left out."""
    return copy.deepcopy({key: value for key, value in config.items() if key not in ELSEWHERE})


def line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def _sizes(config: Any, heads: int) -> dict[str, Any]:
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
    parts = {name: part.to_dict() for name, part in vars(config).items() if hasattr(part, "attribute_map")}
    nested = {name: part | {key: SMALL[key] for key in SMALL if key in part} for name, part in parts.items()}
    return {native.get(name, name): value for name, value in values.items()} | nested
