"""Configurations for the inspector: released ones, one for each of its rules, with what it says, and damaged ones."""

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

from posenc_course.inspector import load_configurations
from posenc_course.inspector._config import rules

STORED = load_configurations()
LLAMA = STORED["Llama 3.1 8B"]["config"]
QWEN = STORED["Qwen2.5 3B"]["config"]


def without(config: Mapping[str, Any], *names: str, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names} | changes


# fmt: off
TWO = {"num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": 64,
       "max_position_embeddings": 4096}
TINY = {"model_type": "llama"} | TWO
STRANGE = {"model_type": "mystery"} | TWO
ENCODER = TWO | {"hidden_size": 64, "vocab_size": 128, "max_position_embeddings": 64}
SIDES = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
         "vocab_size": 128}
CODE = {"AutoModelForCausalLM": "modeling_mine.MyForCausalLM"}
YARN = {"rope_type": "yarn", "factor": 4.0}
BASE = {"rope_type": "default", "rope_theta": 500_000}
LIMITS = {"rope_type": "llama3", "factor": 16.0, "original_max_position_embeddings": 8192}
# The second of two layers has no RoPE.
HALF = ["1 of 2 layers (0): RoPE", "base 500,000", "1 of 2 layers (1): no encoding"]
LONG = {"short_factor": [1.0] * 64, "long_factor": [4.0] * 64, "original_max_position_embeddings": 4096}

# The configuration, the exit status with the class and without it, and words of both reports; some of one, or of neither.
CASES: dict[str, tuple[dict[str, Any], tuple[int, int], list[str]]] = {
    # What is wrong, or looks so.
    "a base under a name that the class doesn't read": (
        without(LLAMA, "rope_theta", "rope_scaling", rotary_emb_base=1e6), (1, 0),
        ["run: wrong [base]: the base should be 1,000,000, but LlamaModel rotates with 10,000 in all layers",
         "LlamaModel doesn't read what looks like positions: rotary_emb_base", "run: reported in https://github.com/deepspeedai"]),
    "a base lost beside two dictionaries": (
        without(LLAMA, "rope_theta", rope_scaling={"rope_type": "linear", "factor": 2.0}, rope_parameters=BASE), (1, 0),
        ["run: wrong [base]: the base should be 500,000, but LlamaModel rotates with 10,000 in all layers",
         "run: 64 divided by 2", "not: wrong [scaling]", "note [scaling]: there are both rope_scaling and rope_parameters"]),
    "bases that contradict each other": (
        LLAMA | {"rope_theta": 1e4, "rope_parameters": LLAMA["rope_scaling"] | {"rope_theta": 5e5}, "rope_scaling": None},
        (1, 1), ["wrong [two-bases]: the base is 10,000 under rope_theta, and 500,000 with the scaling"]),
    "bases that agree": (
        LLAMA | {"rope_theta": 1e4, "rope_scaling": LLAMA["rope_scaling"] | {"rope_theta": 1e4}}, (0, 0), ["not: [two-bases]"]),
    "an attention factor under another name": (
        QWEN | {"rope_scaling": YARN | {"original_max_position_embeddings": 8192, "attn_factor": 1.0}}, (1, 1),
        ["wrong [unread-key]: attn_factor isn't read for yarn; attention_factor is"]),
    "the length after stretching in the place of the one before": (
        QWEN | {"rope_scaling": YARN | {"original_max_position_embeddings": 131_072}}, (1, 1),
        ["wrong [lengths]: 131,072 tokens stretched by 4 are 524,288, not 32,768: original_max_position_embeddings is the "
         "length before stretching", "long texts are worse than they should be"]),
    "two lengths that are the same": (
        QWEN | {"rope_scaling": YARN | {"original_max_position_embeddings": 32_768}}, (0, 0),
        ["note [lengths]: original_max_position_embeddings and max_position_embeddings are both 32,768, but stretched by 4, "
         "the second should be 131,072, or the first 8,192"]),
    "lengths that fit but for a percent": (
        QWEN | {"rope_scaling": YARN | {"original_max_position_embeddings": 8270}}, (0, 0), ["not: [lengths]"]),
    "lengths that fit but for more": (
        QWEN | {"rope_scaling": YARN | {"original_max_position_embeddings": 8280}}, (0, 0),
        ["note [lengths]: 8,280 tokens stretched by 4 are 33,120, not 32,768"]),
    "a window that the class doesn't have": (
        LLAMA | {"sliding_window": 4096}, (1, 3),
        ["run: wrong [window]: the window of 4,096 tokens isn't used: LlamaModel has none in all layers"]),
    "half of the channels, in a class that rotates all": (
        without(STORED["OLMo 2 7B"]["config"], rotary_pct=0.5), (1, 0),
        ["run: wrong [channels]: 64 channels should rotate, but Olmo2Model rotates 128 in all layers"]),
    "a type of scaling that nobody has": (
        QWEN | {"rope_scaling": {"rope_type": "ntk-by-parts", "factor": 4.0}}, (1, 3),
        ["the type of scaling is 'ntk-by-parts', and transformers knows default, linear, dynamic, proportional, axial, mrope, "
         "yarn, llama3, longrope", "run: wrong [refused]: transformers"]),
    "a key that no scaling has": (
        TINY | {"rope_scaling": YARN | {"original_max_position_embeddings": 1024, "mystery": 1}}, (0, 0),
        ["note [unread-key]: mystery isn't read for yarn"]),
    "layers without RoPE, the wrong way round": (
        TWO | {"model_type": "smollm3", "num_hidden_layers": 8, "rope_theta": 5e6, "no_rope_layers": [0, 0, 0, 1] * 2}, (0, 0),
        ["note [nope-list]: no_rope_layers leaves 6 of 8 layers without RoPE: in this list, 1 means that a layer rotates"]),
    "a base in a model without RoPE": (
        without(TWO, model_type="nemotron_h", hybrid_override_pattern="M-*-", rope_theta=1e4, head_dim=128, num_hidden_layers=4,
                num_key_value_heads=2), (0, 0),
        ["note [no-rope]: the file has a base, but NemotronHModel doesn't rotate in any layer", "1 of 4 layers (2)"]),
    "an encoding that the class doesn't read": (
        TINY | {"position_embedding_type": "alibi"}, (1, 0),
        ["run: wrong [encoding]: the file says alibi, but LlamaModel doesn't read that and has RoPE", "all layers: RoPE"]),
    # What isn't known.
    "code of its own": (
        TINY | {"auto_map": CODE}, (3, 3),
        ["the model brings its own code, which wasn't run: what follows is read by the rules of LlamaModel", "[written]"]),
    "keys that nobody knows": (
        STRANGE | {"attn_config": {"rope_theta": 500_000}, "rope_ratio": 500, "use_dynamic_ntk": True, "rope_type": "ntk"},
        (3, 3),
        ["nobody here knows the rules of model_type 'mystery'", "run: has no class for model_type 'mystery'",
         "unknown [not-known]: what looks like positions isn't read here: attn_config.rope_theta, rope_ratio, use_dynamic_ntk, "
         "rope_type", "of its layers with attention (if alike)"]),
    "kinds of layers in keys of its own": (
        STRANGE | {"rope_theta": 10_000, "block_configs": [{"attention": {"no_op": True}}, {}]}, (3, 3),
        ["its layers with attention (if alike): RoPE", "isn't read here: block_configs", "not: all layers"]),
    "no length at all": (
        without(TINY, "max_position_embeddings"), (3, 3),
        ["its training length isn't written down, so nobody can say which angles it has met"]),
    "blocks that a short text doesn't show": (
        ENCODER | {"model_type": "big_bird", "block_size": 16}, (3, 3),
        ["how far queries see in all layers isn't known", "window not known"]),
    "order by convolution, too": (
        ENCODER | {"model_type": "convbert", "embedding_size": 64}, (3, 3),
        ["something else tells the order of tokens in all layers, too, and isn't known", "learned table"]),
    "order by a rule without a name": (
        {"model_type": "xlnet", "d_model": 64, "n_layer": 2, "n_head": 2, "d_inner": 64, "vocab_size": 64}, (3, 3),
        ["the encoding of all layers isn't known", "not: no encoding"]),
    "a class that reads pictures": (
        ENCODER | {"model_type": "dinov3_vit", "rope_theta": 100.0}, (3, 3),
        ["run: the encoding of its layers with attention (if alike) isn't known", "run: reads no text alone"]),
    # Which layers rotate, how many of their channels, and with which base.
    "a flag for each layer": (
        without(STRANGE, "max_position_embeddings", rope_theta=5e5, no_rope_layers=[1, 0]), (3, 3), HALF),
    "a base for each layer, or 0": (
        without(STRANGE, "max_position_embeddings", layer_rope_theta=[500_000, 0]), (3, 3), HALF),
    "values for each type, or null": (
        STRANGE | {"layer_types": ["sliding_attention", "full_attention"]}
        | {"rope_parameters": {"sliding_attention": BASE, "full_attention": None}}, (3, 3), HALF),
    "a share that's left to the class": (TWO | {"model_type": "stablelm", "rope_theta": 1e4}, (0, 0), ["32 of 128 channels"]),
    "a share of channels that are apart": (
        TWO | {"model_type": "glm4_moe_lite", "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "partial_rotary_factor": 1.0},
        (0, 0), ["64 of 256 channels, from channel 192"]),
    "a file that's flat where the class has parts": (
        TWO | {"model_type": "qwen2_vl", "num_key_value_heads": 2, "rope_theta": 1e6}
        | {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}}, (0, 0),
        ["base 1,000,000; all 128 channels", "sections of 16, 24, 24 pairs rotate by time, row and column"]),
    "a part under another name, and one for pictures": (
        {"model_type": "mystery", "thinker_config": {"text_config": TINY | {"rope_theta": 20_000}, "vision_config": {}},
         "vision_config": {"hidden_size": 64}}, (0, 0),
        ["base 20,000; all 128 channels", "only what reads text is described here, and vision_config may have positions"]),
    "a factor of the base under a scaling's name": (
        TWO | {"model_type": "hunyuan_v1_dense", "head_dim": 128, "rope_theta": 10_000, "max_position_embeddings": 262_144}
        | {"rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}}, (0, 0),
        ["note [base-missing]: alpha makes the base 11,158,840", "base 11,158,840; all 128",
         "22 of 64 pairs complete no rotation"]),
    "kinds of layers under names of their own": (
        TWO | {"model_type": "modernbert", "num_hidden_layers": 3, "num_attention_heads": 4, "global_attn_every_n_layers": 3}
        | {"global_rope_theta": 160_000, "local_rope_theta": 10_000, "local_attention": 128}, (0, 0),
        ["1 of 3 layers (0): RoPE", "base 160,000", "2 of 3 layers (1, 2): RoPE", "base 10,000", "at most 129 tokens"]),
    "bases and a stretching that the class gives to kinds of layers": (
        {"text_config": {"hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 8192, "model_type": "gemma3_text"}
         | {"max_position_embeddings": 4096, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}}, (0, 0),
        ["10,000 in 29 of 34 layers", "1,000,000 in 5 of 34 layers", "stretched: linear, by 8", "safe up to 4,096 tokens"]),
    "a second base for layers that see farther": (
        STORED["DeepSeek-V4 Flash"]["config"], (3, 3),
        ["2 of 43 layers (0, 1): RoPE", "at most 128 tokens", "41 of 43 layers (2, 3, 4, …): RoPE", "base 160,000; 64 of 512",
         "stretched: yarn, by 16", "how far queries see in 41 of 43 layers (2, 3, 4, …) isn't known", "not: times 1.277"]),
    "layers with attention in a list that counts from 1": (
        TWO | {"model_type": "kimi_linear", "num_hidden_layers": 4, "auto_map": CODE}
        | {"linear_attn_config": {"full_attn_layers": [4], "kda_layers": [1, 2, 3]}}, (3, 3),
        ["1 of 4 layers (3): no encoding", "3 of 4 layers: no softmax attention", "not: linear_attn_config"]),
    "a rotation the other way": (
        TWO | {"model_type": "nanochat", "head_dim": 128}, (0, 0),
        ["run: pairs of halves; rotating the other way than most models"]),
    "heads that are divided by four": (
        {"model_type": "codegen", "n_embd": 256, "n_head": 8, "n_layer": 2, "rotary_dim": 16, "n_positions": 64}, (0, 0),
        ["run: [done]", "16 of 32 channels, the first; pairs of neighbours"]),
    "no attention at all": (
        {"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 64}, (0, 0),
        ["no layer rotates (no attention)", "not: encoding of all layers"]),
    "nothing rotates, as the file says": (
        TWO | {"model_type": "granitemoehybrid", "layer_types": ["attention"] * 2, "position_embedding_type": "nope"}
        | {"rope_theta": 10_000, "num_local_experts": 2, "num_key_value_heads": 2}, (0, 3),
        ["run: all layers: no encoding", "not: [no-rope]"]),
    # How frequencies are stretched, and what that does to scores.
    "equal limits": (
        TINY | {"rope_theta": 500_000, "rope_scaling": LIMITS | {"low_freq_factor": 1, "high_freq_factor": 1}}, (0, 0),
        ["35 pairs as they were, 0 between, 29 divided by 16", "within 8,192 tokens, its training length"]),
    "limits that don't say what the training length was": (
        TINY | {"rope_scaling": LIMITS | {"low_freq_factor": 2, "high_freq_factor": 4}}, (0, 0),
        ["within 4,096 tokens, its limit"]),
    "divisors that hold from the start": (
        TWO | {"model_type": "phi3", "max_position_embeddings": 8192, "rope_scaling": {"type": "su", "factor": 1.0}
         | {"short_factor": [2.0] * 64, "long_factor": [2.0] * 64, "original_max_position_embeddings": 8192}}, (0, 0),
        ["safe up to 8,192 tokens; from there on, 18 of 64", "each pair has a divisor of its own, from 2 to 2", "not: switch"]),
    "a stretching that's left to the class": (
        without(STORED["gpt-oss 20B"]["config"], "rope_scaling", "rope_theta"), (0, 0),
        ["base 150,000", "stretched: yarn, by 32 from 4,096 tokens", "within 131,072 tokens, its limit"]),
    "another factor beyond the length of training": (
        TWO | {"model_type": "phimoe", "num_key_value_heads": 2, "num_local_experts": 2, "max_position_embeddings": 16_384}
        | {"rope_scaling": LONG | {"type": "longrope", "short_mscale": 1.1, "long_mscale": 1.2}}, (0, 0),
        ["queries and keys times 1.1, and times 1.2 in texts beyond 4,096 tokens: scores times 1.21 and 1.44",
         "run: beyond 4,096 tokens, the frequencies should change, but PhimoeModel keeps them"]),
    "queries that grow with their position": (
        STORED["Ministral 3 3B"]["config"], (0, 0), ["the query of position m is multiplied by 1 + 0.1·ln(1 + ⌊m/original"]),
    "queries that grow where nothing rotates": (
        TWO | {"model_type": "llama4_text", "num_key_value_heads": 2, "num_local_experts": 2, "intermediate_size_mlp": 64},
        (0, 3), ["in layers without RoPE, the query of position m is multiplied"]),
    "a query that was scaled before": (
        ENCODER | {"model_type": "esm", "vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32}
        | {"position_embedding_type": "rotary", "max_position_embeddings": 1026}, (0, 3),
        ["RoPE", "not: scores are multiplied"]),
    "scores without √d": (
        {"model_type": "t5", "d_model": 64, "d_kv": 64, "d_ff": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 64}, (0, 0),
        ["run: scores are multiplied by 8", "T5's bias", "32 buckets", "128 tokens: all larger distances share the last"]),
    # Where tables and windows end.
    "rows before the first token": (
        ENCODER | {"model_type": "roberta", "max_position_embeddings": 514}, (0, 0),
        ["takes texts of up to 512 tokens, where its table ends", "514 rows, of which the first token gets row 2"]),
    "rows beyond what's written": (
        SIDES | {"model_type": "bart", "max_position_embeddings": 1024}, (0, 0),
        ["takes texts of up to 1,024 tokens", "1,026 rows"]),
    "a table that grows": (
        SIDES | {"model_type": "m2m_100", "max_position_embeddings": 64}, (0, 0),
        ["the encoder's 2 layers: sinusoids", "the decoder's 2 layers: sinusoids", "not: the table ends",
         "each position beyond those of its training is new to it"]),
    "layers that share their weights": (
        ENCODER | {"model_type": "albert", "embedding_size": 64}, (0, 0), ["all layers: learned table", "64 rows"]),
    "two sides": (
        STORED["Whisper tiny"]["config"], (0, 0),
        ["the encoder's 4 layers: sinusoids", "1,500 rows", "the decoder's 4 layers: learned table", "448 rows"]),
    "a table that would fill the memory": (
        STORED["GPT-2"]["config"] | {"n_positions": 10**9}, (0, 0), ["run: GPT2Model would take", "run: GB even in small"]),
    "a bias that a flag of its own chooses": (
        ENCODER | {"model_type": "deberta-v2", "relative_attention": True, "position_buckets": 256, "pos_att_type": "p2c|c2p"}
        | {"position_biased_input": False, "max_relative_positions": -1, "max_position_embeddings": 512}, (0, 0),
        ["all layers: DeBERTa's bias, at the score [written]", "no window", "not: table ends",
         "distances up to half of 256 have a number of their own", "512 tokens: all larger distances share the last bucket"]),
    "an old name of the width": (
        {"model_type": "bloom", "n_embed": 2048, "n_layer": 24, "num_attention_heads": 16}, (0, 0),
        ["run: all layers: ALiBi, at the score [done]"]),
    "a window that's null": ({"model_type": "mistral", "rope_theta": 1e6, "sliding_window": None} | TWO, (0, 0), ["no window"]),
    "a window under another name, in some layers": (
        without(ENCODER, "num_hidden_layers", model_type="gpt_neo", num_layers=2, num_heads=2, window_size=8,
                attention_types=[[["global", "local"], 1]]), (0, 0),
        ["1 of 2 layers (0): learned table", "no window", "1 of 2 layers (1)", "at most 8 tokens", "not: [unread]"]),
    "half a window on each side": (
        ENCODER | {"model_type": "longformer", "attention_window": [8, 8], "max_position_embeddings": 66}, (0, 0),
        ["at most 9 tokens", "takes texts of up to 64 tokens", "not: [unread]"]),
    # Families that bring their own code.
    "ChatGLM": (
        {"model_type": "chatglm", "num_layers": 2, "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128}
        | {"seq_length": 131_072, "rope_ratio": 500, "original_rope": True, "auto_map": CODE}, (3, 3),
        ["the rules of ChatGLM", "rope_ratio makes the base 5,000,000", "64 of 128 channels, the first; pairs of neighbours"]),
    "Qwen 1": (
        TWO | {"model_type": "qwen", "kv_channels": 128, "seq_length": 2048, "max_position_embeddings": 8192, "auto_map": CODE}
        | {"rotary_emb_base": 10_000, "rotary_pct": 1.0, "use_dynamic_ntk": True, "use_logn_attn": True}, (3, 3),
        ["within 2,048 tokens, its training length", "the base grows in steps", "multiplied by a logarithm"]),
    "Jina": (
        ENCODER | {"model_type": "bert", "architectures": ["JinaBertForMaskedLM"], "position_embedding_type": "alibi"}
        | {"auto_map": CODE}, (3, 3), ["the rules of Jina's BERT", "all layers: ALiBi, at the score [written]"]),
    "Meta's own file": (
        {"dim": 2048, "n_layers": 16, "n_heads": 32, "rope_theta": 500_000, "use_scaled_rope": True}, (3, 3),
        ["use_scaled_rope switches Llama 3's stretching on", "all 64 channels; pairs of neighbours"]),
}
# fmt: on

JUNK: list[Any] = [None, "", "many", "8", "constructor", "yarn", "longrope", "llama3", "dynamic", True, False]
JUNK += [-1, -0.5, 0, 0.5, 1, 2.75, 10**9, 10**18, 1e300]
JUNK += [[], [1], ["a"], [None], [[1]], {}, {"a": 1}, {"factor": {}}, {"full_attention": None, "b": {}}]


def damaged(seed: int) -> dict[str, Any]:
    """A configuration from above in which up to three values are lost or replaced, or stand where there was none."""
    random = Random(seed)
    whole = [*(config for config, *_ in CASES.values()), *(each["config"] for each in STORED.values())]
    config = copy.deepcopy(random.choice(whole))
    for _ in range(random.randint(1, 3)):
        part = config
        while (inner := [value for value in part.values() if isinstance(value, dict) and value]) and random.random() < 0.8:
            part = random.choice(inner)
        key = random.choice([*part, *rules()] if random.random() < 0.3 or not part else [*part])
        if random.random() < 0.2:
            part.pop(key, None)
        else:
            part[key] = copy.deepcopy(random.choice(JUNK))
    return config
