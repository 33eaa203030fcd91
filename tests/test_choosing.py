"""Chapter 14's table of models, against the configurations that transformers ships."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.llama4.modeling_llama4 import Llama4TextAttention

CHAPTER = Path(__file__).resolve().parent.parent / "book" / "14_choosing.ipynb"
ROTARY = {
    "Llama": "LlamaConfig",
    "Llama 4": "Llama4TextConfig",
    "SmolLM3": "SmolLM3Config",
    "Gemma 3": "Gemma3TextConfig",
    "Gemma 4": "Gemma4TextConfig",
    "Qwen3-Next": "Qwen3NextConfig",
    "gpt-oss": "GptOssConfig",
    "ModernBERT": "ModernBertConfig",
    "DINOv3": "DINOv3ViTConfig",
}


def table() -> dict[str, list[str]]:
    """Each model's row of the chapter, without its name."""
    text = "\n".join("".join(cell["source"]) for cell in json.loads(CHAPTER.read_text("utf-8"))["cells"])
    rows = re.search(r"^\| Model \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert rows
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in rows[1].splitlines()]
    return {name: rest for name, *rest in cells}


def parameters(config: Any) -> list[dict[str, Any]]:
    """The settings of RoPE: of all layers, or of those with a window and then of the others."""
    settings = getattr(config, "rope_parameters", None) or {"rope_theta": config.rope_theta}
    return [settings] if "rope_theta" in settings else [settings["sliding_attention"], settings["full_attention"]]


@pytest.mark.parametrize("model", ROTARY)
def test_a_rotary_model_is_configured_as_the_table_says(model: str) -> None:
    config = getattr(transformers, ROTARY[model])()
    settings = parameters(config)
    without = getattr(config, "no_rope_layers", [1])  # 1 where a layer has RoPE
    _, encoding, base, other = table()[model]
    assert encoding == "RoPE"
    assert base == " and ".join(f"{each['rope_theta']:,.0f}" for each in settings)
    assert ("every fourth layer without" in other) == (without[:8] == [1, 1, 1, 0] * 2)
    assert ("a quarter of the pairs" in other) == (settings[-1].get("partial_rotary_factor") == 0.25)


def test_the_other_models_are_what_the_table_says() -> None:
    (stretched,) = parameters(transformers.GptOssConfig())
    assert table()["gpt-oss"][3] == f"YaRN from 4,096 tokens, factor {stretched['factor']:.0f}"
    assert (stretched["rope_type"], stretched["original_max_position_embeddings"]) == ("yarn", 4096)
    assert table()["T5"][1] == f"{transformers.T5Config().relative_attention_num_buckets} buckets"
    assert table()["BERT"][1] == f"learned, {transformers.BertConfig().max_position_embeddings} rows"
    assert {*table()} == {*ROTARY, "T5", "BLOOM", "MPT", "Whisper", "BERT"}


def test_the_window_has_the_small_base_in_gemma_3() -> None:
    window, whole = parameters(transformers.Gemma3TextConfig())
    assert window["rope_theta"] < whole["rope_theta"]
    assert "partial_rotary_factor" not in window


def test_layers_without_rope_lengthen_queries_in_llama_4() -> None:
    """From the 8,192nd token on; here from the fourth."""
    config: Any = transformers.Llama4TextConfig  # its annotations leave out what every config takes
    assert config().floor_scale == 8192
    assert config().attn_temperature_tuning
    torch.manual_seed(0)
    small = config(hidden_size=8, num_attention_heads=1, num_key_value_heads=1, head_dim=8, num_hidden_layers=4, floor_scale=4,
                   attn_implementation="eager")  # fmt: skip
    layer, x = Llama4TextAttention(small, layer_idx=3), torch.randn(1, 6, 8)
    assert not layer.use_rope
    weights = []
    for layer.attn_temperature_tuning in (True, False):
        weights.append(layer(x, position_embeddings=None, attention_mask=None)[1][0, 0])
    assert [torch.equal(a, b) for a, b in zip(*weights, strict=True)] == [True] * 3 + [False] * 3
