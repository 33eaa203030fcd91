"""The table of models below chapter 14, against the configurations that transformers ships."""

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.llama4.modeling_llama4 import Llama4TextAttention

from posenc_course.sinusoidal import frequencies

PAGE = Path(__file__).resolve().parent.parent / "book" / "deeper" / "14_choosing.ipynb"
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

BLIND = {
    "Jamba": ("jamba", "Jamba"),
    "Granite 4.0-H": ("granitemoehybrid", "GraniteMoeHybrid"),
    "Kimi Linear": ("kimi_linear", "KimiLinear"),
}
WHOLE = [4, 8, 12, 16, 20, 24, 27]  # Kimi Linear's published weights: the layers with attention, counted from 1
RELEASED = {
    "Kimi Linear": {
        "linear_attn_config": {"full_attn_layers": WHOLE, "kda_layers": [n for n in range(1, 28) if n not in WHOLE]}
    }
}


def table() -> dict[str, list[str]]:
    """Each model's row of the page, without its name."""
    text = "\n".join("".join(cell["source"]) for cell in json.loads(PAGE.read_text("utf-8"))["cells"])
    text = re.sub(r"<!--.*?-->", "", text)  # ties
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
    _, encoding, base, _, other = table()[model]
    assert encoding == "RoPE"
    assert base == " and ".join(f"{each['rope_theta']:,.0f}" for each in settings)
    assert ("every fourth layer without" in other) == (without[:8] == [1, 1, 1, 0] * 2)
    assert ("quarter" in other) == (settings[-1].get("partial_rotary_factor") == 0.25)


def test_the_other_models_are_what_the_table_says() -> None:
    (stretched,) = parameters(transformers.GptOssConfig())
    assert table()["gpt-oss"][4] == f"YaRN from 4,096 tokens, factor {stretched['factor']:.0f}"
    assert (stretched["rope_type"], stretched["original_max_position_embeddings"]) == ("yarn", 4096)
    assert table()["T5"][1] == f"{transformers.T5Config().relative_attention_num_buckets} buckets"
    assert table()["BERT"][1] == f"learned, {transformers.BertConfig().max_position_embeddings} rows"
    assert {*table()} == {*ROTARY, *BLIND, "T5", "BLOOM", "MPT", "Whisper", "BERT"}


def test_published_values_have_a_source() -> None:
    for model, (_, encoding, _, published, _) in table().items():
        expected = r".*(\]\(https://\S+\)|\{cite:p\}`\w+`)\)?" if encoding in ("RoPE", "none") else ""
        assert re.fullmatch(expected, published), model


@pytest.mark.parametrize("model", BLIND)
def test_an_attention_layer_without_encoding_does_not_see_order(model: str) -> None:
    """The last token's output stays the same when the tokens before it are swapped. Llama's doesn't."""

    def moved(config: Any, attention: Any, **inputs: Any) -> float:
        torch.manual_seed(0)
        layer, x = attention(config, layer_idx=3).eval(), torch.randn(1, 7, config.hidden_size)
        texts = (x, x[:, [3, 5, 0, 4, 2, 1, 6]])
        before, after = (layer(text, attention_mask=None, **inputs)[0][0, -1].detach() for text in texts)
        return float((before - after).abs().max() / before.abs().max())

    def part(name: str, where: str) -> Any:
        return getattr(importlib.import_module(f"transformers.models.{where}.modeling_{where}"), name)

    assert table()[model][1] == "none"
    where, name = BLIND[model]
    config = getattr(transformers, f"{name}Config")(attn_implementation="eager")
    assert not getattr(config, "position_embedding_type", None)
    assert moved(config, part(f"{name}Attention", where)) < 1e-5
    said = re.search(r"(\d+) of (\d+) layers are recurrent(?:.*default has (\d+))?", table()[model][4])
    if said:
        released = getattr(transformers, f"{name}Config")(**RELEASED.get(model, {})).layer_types
        recurrent = [sum("full" not in kind for kind in kinds) for kinds in (released, config.layer_types)]
        assert [recurrent[0], len(released), recurrent[1]] == [int(n) for n in said.groups(said[1])]
    llama = transformers.LlamaConfig(hidden_size=64, num_attention_heads=4, attn_implementation="eager")
    angles = part("LlamaRotaryEmbedding", "llama")(llama)(torch.zeros(1), torch.arange(7)[None])
    assert moved(llama, part("LlamaAttention", "llama"), position_embeddings=angles) > 1e-3


def test_three_of_four_layers_are_recurrent_in_qwen3_next() -> None:
    kinds = transformers.Qwen3NextConfig().layer_types
    assert f"{kinds.count('linear_attention')} of {len(kinds)} layers are recurrent" in table()["Qwen3-Next"][4]


def test_a_quarter_is_the_fastest_in_gemma_4_and_the_whole_range_in_qwen3_next() -> None:
    from transformers.models.gemma4.modeling_gemma4 import Gemma4TextRotaryEmbedding
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRotaryEmbedding

    gemma = Gemma4TextRotaryEmbedding(transformers.Gemma4TextConfig()).full_attention_inv_freq
    expected = frequencies(2 * len(gemma), 1e6).float()
    torch.testing.assert_close(gemma[: len(gemma) // 4], expected[: len(gemma) // 4])
    assert not gemma[len(gemma) // 4 :].any()
    qwen = Qwen3NextRotaryEmbedding(transformers.Qwen3NextConfig()).inv_freq
    torch.testing.assert_close(qwen, frequencies(transformers.Qwen3NextConfig().head_dim // 4, 1e4).float())


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
