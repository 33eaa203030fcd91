"""Configurations for the inspector: released ones, broken ones, one for each cause of a false report, and damaged ones."""

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

from posenc_course.inspector import Report, inspect, load_configurations
from posenc_course.inspector._config import rules

STORED = load_configurations()
LLAMA = STORED["Llama 3.1 8B"]["config"]
QWEN = STORED["Qwen2.5 3B"]["config"]


def without(config: Mapping[str, Any], *names: str, **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names} | changes


# Two layers, of which the second has no RoPE.
HALF = without(LLAMA, "rope_theta", "rope_scaling", "rope_parameters", num_hidden_layers=2, model_type="mystery")
TYPES = {"layer_types": ["sliding_attention", "full_attention"]}
SPELLINGS = {
    "a flag for each layer": HALF | {"rope_theta": 500_000, "no_rope_layers": [1, 0]},
    "a base for each layer, or 0": HALF | {"layer_rope_theta": [500_000, 0]},
    "values for each type, or null": HALF | TYPES | {
        "rope_parameters": {"sliding_attention": {"rope_type": "default", "rope_theta": 500_000}, "full_attention": None}
    },
}  # fmt: skip

BROKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "base under a name that the class doesn't read": (
        without(LLAMA, "rope_theta", "rope_scaling", rotary_emb_base=1_000_000.0),
        "base",
        "the base should be 1,000,000, but LlamaModel rotates with 10,000 in all layers",
    ),
    "base lost beside two dictionaries": (
        without(
            LLAMA,
            "rope_theta",
            rope_scaling={"rope_type": "linear", "factor": 2.0},
            rope_parameters={"rope_type": "default", "rope_theta": 5_000_000.0},
        ),
        "base",
        "the base should be 5,000,000, but LlamaModel rotates with 10,000 in all layers",
    ),
    "bases that contradict each other": (
        without(
            LLAMA, rope_theta=10_000.0, rope_parameters=LLAMA["rope_scaling"] | {"rope_theta": 500_000.0}, rope_scaling=None
        ),
        "two-bases",
        "the base is 10,000 under rope_theta, and 500,000 with the scaling",
    ),
    "attention factor under another name": (
        without(
            QWEN,
            rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192, "attn_factor": 1.0},
        ),
        "unread-key",
        "attn_factor isn't read for yarn; attention_factor is",
    ),
    "YaRN's length after stretching in the place of the one before": (
        without(QWEN, rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 131_072}),
        "lengths",
        "131,072 tokens stretched by 4 are 524,288, not 32,768: original_max_position_embeddings is the length before "
        "stretching",
    ),
    "YaRN's two lengths alike": (
        without(QWEN, rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}),
        "lengths",
        "original_max_position_embeddings and max_position_embeddings are both 32,768, but stretched by 4, the second should "
        "be 131,072, or the first 8,192",
    ),
    "window that the class doesn't have": (
        without(LLAMA, sliding_window=4096),
        "window",
        "the window of 4,096 tokens isn't used: LlamaModel has none in all layers",
    ),
    "half of the channels, in a class that rotates all of them": (
        without(STORED["OLMo 2 7B"]["config"], rotary_pct=0.5),
        "channels",
        "64 channels should rotate, but Olmo2Model rotates 128 in all layers",
    ),
    "type of scaling that nobody has": (
        without(QWEN, rope_scaling={"rope_type": "ntk-by-parts", "factor": 4.0}),
        "unread-key",
        "the type of scaling is 'ntk-by-parts', and transformers knows default, linear, dynamic, proportional, axial, mrope, "
        "yarn, llama3, longrope",
    ),
    "list of layers without RoPE, the wrong way round": (
        {"model_type": "smollm3", "num_hidden_layers": 8, "hidden_size": 256, "num_attention_heads": 2, "rope_theta": 5e6}
        | {"max_position_embeddings": 65_536, "no_rope_layers": [0, 0, 0, 1] * 2},
        "nope-list",
        "no_rope_layers leaves 6 of 8 layers without RoPE: in this list, 1 means that a layer rotates",
    ),
    "base in a model without RoPE": (
        {
            "model_type": "nemotron_h",
            "hybrid_override_pattern": "M-*-",
            "hidden_size": 256,
            "num_attention_heads": 2,
            "head_dim": 128,
        }
        | {"rope_theta": 10_000, "num_key_value_heads": 2, "max_position_embeddings": 8192},
        "no-rope",
        "the file has a base, but NemotronHModel doesn't rotate in any layer",
    ),
}

TWO = {
    "max_position_embeddings": 4096,
    "num_hidden_layers": 2,
    "hidden_size": 256,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 64,
}
TINY = {"model_type": "llama"} | TWO
ENCODER = TWO | {"hidden_size": 64, "vocab_size": 128}
STRANGE = {"model_type": "mystery"} | TWO
CODE = {"AutoModelForCausalLM": "modeling_mine.MyForCausalLM"}
SCOUT = {"rope_type": "llama3", "factor": 16.0, "low_freq_factor": 1, "high_freq_factor": 1}
# The configuration, the exit status with the class and without it, and what both say, or what only one does.
CAUSES: dict[str, tuple[dict[str, Any], tuple[int, int], list[str]]] = {
    "a share that's left to the class": (TWO | {"model_type": "stablelm", "rope_theta": 1e4}, (0, 0), ["32 of 128 channels"]),
    "a file that's flat where the class has parts": (
        TWO | {"model_type": "qwen2_vl", "num_key_value_heads": 2, "rope_theta": 1_000_000},
        (0, 0),
        ["base 1,000,000; all 128 channels"],
    ),
    "a vocabulary that's made small": (
        ENCODER | {"model_type": "clip_text_model", "max_position_embeddings": 77}
        | {"vocab_size": 49_408, "eos_token_id": 49_407},
        (0, 0),
        ["takes texts of up to 77 tokens"],
    ),
    "rows before the first token": (
        ENCODER | {"model_type": "roberta", "max_position_embeddings": 514},
        (0, 0),
        ["takes texts of up to 512 tokens, where its table ends", "514 rows, of which the first token gets row 2"],
    ),
    "rows beyond what's written": (
        {"model_type": "bart", "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 1024}
        | {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": 128},
        (0, 0),
        ["takes texts of up to 1,024 tokens", "1,026 rows"],
    ),
    "a bias that a flag of its own chooses": (
        ENCODER | {"model_type": "deberta-v2", "relative_attention": True, "position_buckets": 256, "pos_att_type": "p2c|c2p"}
        | {"position_biased_input": False, "max_position_embeddings": 512},
        (0, 0),
        ["all layers: DeBERTa's bias, at the score [written]", "no window", "not: table ends"],
    ),
    "an encoding that the class doesn't read": (
        TINY | {"position_embedding_type": "alibi"},
        (1, 0),
        ["run: LlamaModel doesn't read that and has RoPE", "position_embedding_type", "all layers: RoPE"],
    ),
    "a bias that the class doesn't read": (
        ENCODER | {"model_type": "bert", "position_embedding_type": "relative_key_query"},
        (1, 0),
        ["run: BertModel doesn't read that and has learned table", "all layers: learned table"],
    ),
    "code of its own": (
        TINY | {"auto_map": CODE},
        (3, 3),
        ["the model brings its own code, which wasn't run: what follows is read by the rules of LlamaModel", "[written]"],
    ),
    "keys that nobody knows": (
        STRANGE | {"attn_config": {"rope_theta": 500_000}, "rope_ratio": 500, "use_dynamic_ntk": True},
        (3, 3),
        ["isn't read here: attn_config.rope_theta, rope_ratio, use_dynamic_ntk", "of its layers with attention (if alike)"],
    ),
    "a factor of the base under a scaling's name": (
        TWO | {"model_type": "hunyuan_v1_dense", "head_dim": 128, "rope_theta": 10_000, "max_position_embeddings": 262_144}
        | {"rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}},
        (0, 0),
        ["base 11,158,840; all 128", "22 of 64 pairs complete no rotation"],
    ),
    "kinds of layers under names of their own": (
        TWO | {"model_type": "modernbert", "num_hidden_layers": 3, "num_attention_heads": 4, "global_attn_every_n_layers": 3}
        | {"global_rope_theta": 160_000, "local_rope_theta": 10_000, "local_attention": 128},
        (0, 0),
        ["1 of 3 layers (0): RoPE", "base 160,000", "2 of 3 layers (1, 2): RoPE", "base 10,000", "at most 129 tokens"],
    ),
    "bases and a stretching that the class gives to kinds of layers": (
        {"text_config": {"hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024, "model_type": "gemma3_text"}
        | {"max_position_embeddings": 131_072, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}},
        (0, 0),
        ["takes 10,000 in 29 of 34 layers (0, 1, 2, …) and 1,000,000 in 5 of 34 layers", "stretched: linear, by 8"],
    ),
    "equal limits": (
        TINY | {"rope_theta": 500_000, "rope_scaling": SCOUT | {"original_max_position_embeddings": 8192}},
        (0, 0),
        ["35 pairs as they were, 0 between, 29 divided by 16"],
    ),
    "a window that's null": (
        {"model_type": "mistral", "rope_theta": 1e6, "sliding_window": None} | TWO,
        (0, 0),
        ["no window"],
    ),
    "layers that share their weights": (
        ENCODER | {"model_type": "albert", "embedding_size": 64, "max_position_embeddings": 512},
        (0, 0),
        ["all layers: learned table", "512 rows"],
    ),
    "a ramp that begins where it ends": (
        TINY | {"max_position_embeddings": 131_072}
        | {"rope_scaling": {"type": "yarn", "factor": 32.0, "beta_fast": 1, "beta_slow": 1}
        | {"original_max_position_embeddings": 4096}},
        (0, 0),
        ["stretched: yarn, by 32", "queries and keys times 1.347"],
    ),
    "no attention at all": (
        {"model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 64},
        (0, 0),
        ["no layer rotates (no attention)", "not: encoding of all layers"],
    ),
    "a part under another name": (
        {"model_type": "mystery", "thinker_config": {"text_config": TINY | {"rope_theta": 20_000}}},
        (0, 0),
        ["base 20,000; all 128 channels"],
    ),
    "a query that was scaled before": (
        ENCODER | {"model_type": "esm", "vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32}
        | {"position_embedding_type": "rotary", "max_position_embeddings": 1026},
        (0, 3),
        ["RoPE", "not: scores are multiplied"],
    ),
    "scores without √d": (
        {"model_type": "t5", "d_model": 64, "d_kv": 64, "d_ff": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 64},
        (0, 0),
        ["run: scores are multiplied by 8", "T5's bias", "32 buckets"],
    ),
    "a training length under a name of its own": (
        STRANGE | {"rope_theta": 10_000, "n_positions": 8192, "max_trained_positions": 2048},
        (3, 3),
        ["its layers with attention (if alike): RoPE", "how many channels rotate isn't known"],
    ),
    "sizes in nested parts, and a base that the class loses": (
        {"model_type": "dbrx", "d_model": 256, "n_heads": 2, "n_layers": 2, "max_seq_len": 32_768, "vocab_size": 64}
        | {"attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 500_000}, "ffn_config": {"ffn_hidden_size": 107_520}},
        (1, 0),
        ["run: the base should be 500,000, but DbrxModel rotates with 10,000"],
    ),
    "two sides": (
        STORED["Whisper tiny"]["config"],
        (0, 0),
        ["the encoder's 4 layers: sinusoids", "1,500 rows", "the decoder's 4 layers: learned table", "448 rows"],
    ),
    "ChatGLM": (
        {"model_type": "chatglm", "num_layers": 2, "hidden_size": 4096, "num_attention_heads": 32, "kv_channels": 128}
        | {"seq_length": 131_072, "rope_ratio": 500, "original_rope": True, "auto_map": CODE},
        (3, 3),
        ["the rules of ChatGLM", "base 5,000,000; 64 of 128 channels, the first; pairs of neighbours"],
    ),
    "Qwen 1": (
        TWO | {"model_type": "qwen", "kv_channels": 128, "seq_length": 2048, "max_position_embeddings": 8192, "auto_map": CODE}
        | {"rotary_emb_base": 10_000, "rotary_pct": 1.0, "use_dynamic_ntk": True, "use_logn_attn": True},
        (3, 3),
        ["within 2,048 tokens, its training length", "the base grows in steps", "multiplied by a logarithm"],
    ),
    "Jina": (
        ENCODER | {"model_type": "bert", "architectures": ["JinaBertForMaskedLM"], "position_embedding_type": "alibi"}
        | {"auto_map": CODE},
        (3, 3),
        ["the rules of Jina's BERT", "all layers: ALiBi, at the score [written]"],
    ),
    "Meta's own file": (
        {"dim": 2048, "n_layers": 16, "n_heads": 32, "rope_theta": 500_000, "use_scaled_rope": True},
        (3, 3),
        ["use_scaled_rope switches Llama 3's stretching on", "all 64 channels; pairs of neighbours"],
    ),
    "a window under another name, in some layers": (
        ENCODER | {"model_type": "gpt_neo", "num_layers": 2, "num_heads": 2, "window_size": 8}
        | {"attention_types": [[["global", "local"], 1]], "max_position_embeddings": 64},
        (0, 0),
        ["1 of 2 layers (0): learned table", "no window", "1 of 2 layers (1)", "at most 8 tokens"],
    ),
    "half a window on each side": (
        ENCODER | {"model_type": "longformer", "attention_window": [8, 8], "max_position_embeddings": 66},
        (0, 0),
        ["at most 9 tokens", "takes texts of up to 64 tokens"],
    ),
    "blocks that a short text doesn't show": (
        ENCODER | {"model_type": "big_bird", "block_size": 16, "max_position_embeddings": 64},
        (3, 3),
        ["how far queries see in all layers isn't known", "window not known"],
    ),
    "a table that grows": (
        {"model_type": "m2m_100", "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "vocab_size": 64}
        | {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "max_position_embeddings": 64},
        (0, 0),
        ["the encoder's 2 layers: sinusoids", "the decoder's 2 layers: sinusoids", "not: the table ends"],
    ),
    "order by convolution, too": (
        ENCODER | {"model_type": "convbert", "embedding_size": 64, "max_position_embeddings": 64},
        (3, 3),
        ["something else tells the order of tokens in all layers, too, and isn't known", "learned table"],
    ),
    "order by a rule without a name": (
        {"model_type": "xlnet", "d_model": 64, "n_layer": 2, "n_head": 2, "d_inner": 64, "vocab_size": 64},
        (3, 3),
        ["the encoding of all layers isn't known", "not: no encoding"],
    ),
    "a table of sinusoids that isn't added": (
        ENCODER | {"model_type": "roformer", "embedding_size": 64, "max_position_embeddings": 64},
        (0, 0),
        ["base 10,000; all 32 channels; pairs of neighbours", "all layers: RoPE, at the query and key [written]"],
    ),
    "heads that are divided by four": (
        {"model_type": "codegen", "n_embd": 256, "n_head": 8, "n_layer": 2, "rotary_dim": 16, "n_positions": 64},
        (0, 0),
        ["run: [done]", "16 of 32 channels, the first; pairs of neighbours"],
    ),
    "a rotation the other way": (
        TWO | {"model_type": "nanochat", "head_dim": 128},
        (0, 0),
        ["run: pairs of halves; rotating the other way than most models"],
    ),
    "kinds of layers in keys of its own": (
        STRANGE | {"rope_theta": 10_000, "block_configs": [{"attention": {"no_op": True}}, {}]},
        (3, 3),
        ["its layers with attention (if alike): RoPE", "isn't read here: block_configs", "not: all layers"],
    ),
    "layers without attention": (
        TWO | {"model_type": "jamba", "num_hidden_layers": 8, "num_experts": 2, "mamba_dt_rank": 4},
        (0, 0),
        ["1 of 8 layers (4): no encoding", "7 of 8 layers: no softmax attention"],
    ),
    "nothing rotates, as the file says": (
        TWO | {"model_type": "granitemoehybrid", "layer_types": ["attention"] * 2, "position_embedding_type": "nope"}
        | {"rope_theta": 10_000, "num_local_experts": 2, "num_key_value_heads": 2},
        (0, 3),
        ["run: all layers: no encoding", "not: [no-rope]"],
    ),
    "a part for pictures": (
        {"text_config": TINY | {"rope_theta": 1e4}, "vision_config": {"hidden_size": 64}},
        (0, 0),
        ["only what reads text is described here, and vision_config may have positions of their own"],
    ),
    "sections of pairs": (
        TWO | {"model_type": "qwen2_vl", "num_key_value_heads": 2, "rope_theta": 1e6}
        | {"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}},
        (0, 0),
        ["sections of 16, 24, 24 pairs rotate by time, row and column"],
    ),
    "a class that reads pictures": (
        ENCODER | {"model_type": "dinov3_vit", "rope_theta": 100.0},
        (3, 3),
        ["run: the encoding of its layers with attention (if alike) isn't known", "run: reads no text alone"],
    ),
    "no length at all": (
        without(TINY, "max_position_embeddings"),
        (3, 3),
        ["its training length isn't written down, so nobody can say which angles it has met"],
    ),
    "divisors that hold from the start": (
        TINY | {"max_position_embeddings": 8192, "original_max_position_embeddings": 8192}
        | {"rope_scaling": {"type": "longrope", "short_factor": [2.0] * 64, "long_factor": [2.0] * 64, "factor": 1.0}},
        (0, 0),
        ["safe up to 8,192 tokens; from there on, 18 of 64", "each pair has a divisor of its own, from 2 to 2", "not: switch"],
    ),
    "a share of channels that are apart": (
        TWO | {"model_type": "glm4_moe_lite", "qk_rope_head_dim": 64, "qk_nope_head_dim": 192, "partial_rotary_factor": 1.0},
        (0, 0),
        ["64 of 256 channels, from channel 192"],
    ),
}  # fmt: skip

JUNK: list[Any] = [None, "", "many", "8", "constructor", "yarn", "longrope", "llama3", "dynamic", True, False]
JUNK += [-1, -0.5, 0, 0.5, 1, 2.75, 10**9, 10**18, 1e300]
JUNK += [[], [1], ["a"], [None], [[1]], {}, {"a": 1}, {"factor": {}}, {"full_attention": None, "b": {}}]


def damaged(seed: int) -> dict[str, Any]:
    """A released configuration in which up to three values are lost or replaced, or stand where there was none."""
    random = Random(seed)
    config = copy.deepcopy(random.choice([*SPELLINGS.values(), *(each["config"] for each in STORED.values())]))
    for _ in range(random.randint(1, 3)):
        part = config
        while (inner := [value for value in part.values() if isinstance(value, dict) and value]) and random.random() < 0.8:
            part = random.choice(inner)
        key = random.choice([*part, *rules()] if random.random() < 0.3 else [*part])
        if random.random() < 0.2:
            part.pop(key, None)
        else:
            part[key] = copy.deepcopy(random.choice(JUNK))
    return config


def read_or_refused(config: dict[str, Any], **options: Any) -> Report | str:
    """The report, or the words in which it's refused; nothing else may happen."""
    try:
        return inspect(config, **options)
    except ValueError as error:
        return str(error)
