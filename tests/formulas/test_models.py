"""The table of models, against transformers: each class is built, run, and compared with the package.

The models are small, with random weights, but they have as many layers as their classes say, and heads of the full width. From
each attention layer, the tests record what goes into the rotation and what comes out of the attention.
"""

import importlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from posenc_course.attention import attention, causal_mask
from posenc_course.inspector._library import SMALL, WINDOW
from posenc_course.inspector._rotations import TOKENS, heads_first, watching
from posenc_course.models import LayerKind, Model, Settings, find_model, last_look, load_models
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import yarn_attention_factor
from posenc_course.sinusoidal import sinusoidal_table
from tools.lab import models as tool

ALL = {model.name: model for model in load_models()}
MODELS = {name: model for name, model in ALL.items() if model.config}  # those with a class, so that something can be built
ROTARY = [name for name, model in MODELS.items() if any(kind.encoding == "RoPE" for kind in model.attention)]
# What acts on the queries and keys after the rotation, or on the scores, is no part of the encoding.
BARE = SMALL | {"local_attention": 2 * WINDOW, "attn_logit_softcapping": None, "use_qk_norm": False}
OF_CLASS: dict[str, dict[str, Any]] = {
    "GraniteMoeHybridConfig": {
        "mamba_n_heads": 4,
        "mamba_d_head": 128,
        "num_hidden_layers": 4,
        "layer_types": ["mamba", "attention"] * 2,  # the class's own have no attention at all, and then no mask
    },
    "KimiLinearConfig": {"num_local_experts": 2, "num_experts_per_tok": 1},
    "BailingHybridConfig": {"n_group": 1, "topk_group": 1, "num_experts_per_tok": 1},
    "MiMoV2FlashConfig": {"num_attention_heads": 4},  # layers with a window have twice as many keys and values
    "GraniteSWAConfig": {"attention_multiplier": 1 / 128},  # as in the released configuration; by default, scores are large
    "OlmoHybridConfig": {"rope_parameters": {"rope_theta": None}},  # as in the released configuration; by default, it has RoPE
    # Its indexer has no values by default; a budget of 64 tokens, and it picks them all.
    "Qwen4ExpTextConfig": {
        **dict.fromkeys(("indexer_n_heads", "indexer_kv_heads", "indexer_compress_ratio"), 1),
        "indexer_head_dim": 256,
        "indexer_budget": 64,
    },
    # By their defaults, these two have no layer with a window.
    "LagunaConfig": {"num_hidden_layers": 4, "layer_types": ["full_attention"] + 3 * ["sliding_attention"]},
    "MellumConfig": {"num_hidden_layers": 4, "layer_types": ["full_attention"] + 3 * ["sliding_attention"]},
}
RECURRENT = re.compile(r"(Mixer|MambaLayer|GatedDeltaNet|DeltaAttention|LightningAttention|TextLinearAttention)$")


# ── models that run ──────────────────────────────────────────────────────────────────────────────────────────────────────


def small(name: str, width: int | None = None, **changes: Any) -> Any:
    """The class's configuration with few channels and experts, but with its own layers and, by default, width of a head."""
    made = getattr(transformers, name)
    default = made().to_dict()
    values = {key: value for key, value in BARE.items() if default.get(key) is not None}
    hidden = 64
    if "qk_rope_head_dim" not in default:  # or they have three widths, which stay
        if default.get("head_dim"):
            values["head_dim"] = width or default["head_dim"]
        else:
            hidden = 2 * (width or default["hidden_size"] // default["num_attention_heads"])
    options = {"attn_implementation": "eager", "experts_implementation": "eager", "hidden_size": hidden}
    return made(**options | values | OF_CLASS.get(name, {}) | changes)


@contextmanager
def doubled(really: bool) -> Iterator[None]:
    """Libraries ask for single precision by name where they compute angles; here they get double precision."""
    with pytest.MonkeyPatch.context() as patch:
        if really:
            patch.setattr(torch, "float", torch.float64)
            patch.setattr(Tensor, "float", Tensor.double)
        yield


def run(config: Any, positions: Tensor, dtype: torch.dtype) -> tuple[Any, dict[int, dict[str, Any]]]:
    """The model, and what its attention layers did at these positions, by layer.

    `raw` are the queries and keys before the rotation, if there is one; the other entries belong to the attention itself.
    """
    layers: dict[int, dict[str, Any]] = {}

    def tell(what: str, at: int, *call: Any) -> None:
        if what == "rotate":
            raw = [heads_first(tensor) for tensor in call[1] if tensor.ndim == 4]
            layers.setdefault(at, {}).setdefault("raw", []).extend(raw)
        elif what == "attend":
            _, (_, q, k, v, mask), options, out = call
            seen = {"q": q, "k": k, "v": v, "mask": mask, "out": out[0], "scaling": options["scaling"]}
            layers.setdefault(at, {}).update(seen, sinks=options.get("s_aux"))

    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(config, attn_implementation="eager").eval()
    for name, parameter in model.named_parameters():  # as they are initialized, all scores would be nearly 0
        with torch.no_grad():
            parameter.copy_(0.2 * torch.randn_like(parameter) + (parameter if parameter.ndim == 1 else 0))
            if ".softmax_scaling." in name:  # Mistral Large 4's logarithm; a test of its own tries it
                parameter.fill_(float(name.endswith("bias")))
    model.to(dtype)  # only now: random numbers take longer in double precision
    ids = torch.arange(3, 3 + TOKENS)[None]
    with watching(model, tell), torch.no_grad():
        # With a mask, transformers doesn't take positions with gaps for several texts.
        model(input_ids=ids, attention_mask=torch.ones_like(ids), position_ids=positions[None], use_cache=False)
    return model, layers


def window_of(layer: dict[str, Any]) -> int:
    """How many tokens the last query can see, or 0 if it sees all of them."""
    seen = TOKENS if layer["mask"] is None else int((layer["mask"][0, 0, -1, :TOKENS] == 0).sum())
    return seen if seen < TOKENS else 0


def kind_of(model: Model, layer: dict[str, Any]) -> LayerKind:
    """The kind that the layer's behaviour shows."""
    (kind,) = (
        kind
        for kind in model.attention
        if ((kind.encoding == "RoPE"), bool(kind.default.window)) == ("raw" in layer, window_of(layer) > 0)
    )
    return kind


def by_the_package(model: Model, kind: LayerKind, settings: Settings, layer: dict[str, Any], positions: Tensor) -> Tensor:
    """What the package's rotation and attention compute from the layer's projections, (batch, L, heads, d_value)."""
    q, k, v = layer["q"], layer["k"], layer["v"]
    width = q.shape[-1]
    if kind.encoding == "RoPE":
        assert settings.rotated
        assert settings.scaling
        assert settings.rotated[1] == width
        omega = settings.frequencies()
        if settings.spectrum == "fast":  # the first pairs rotate, in the layout of the whole head
            omega = torch.cat((omega, torch.zeros(width // 2 - len(omega), dtype=torch.float64)))
        factor = settings.scaling.attention_factor
        scheme = RotaryPositions(omega, interleaved=kind.layout == "interleaved", attention_factor=factor)
        # In Qwen3.8-Flash-Next, the indexer rotates first.
        raws = layer["raw"][-2:] if model.name == "Qwen3.8-Flash-Next" else layer["raw"][:2]
        raw_q, raw_k = (raw.contiguous() for raw in raws)
        rotated = scheme.rotate(raw_q, raw_k, positions, positions)
        # With MLA, the channels that rotate are separate, and come last.
        q, k = (
            torch.cat((whole[..., : width - part.shape[-1]], part.expand(-1, whole.shape[1], -1, -1)), dim=-1)
            for whole, part in zip((q, k), rotated, strict=True)
        )
        if kind.temperature:
            m = positions + kind.temperature.from_one
            q = q * (1 + kind.temperature.factor * (1 + m // kind.temperature.length).to(q).log())[:, None]
    m = torch.arange(TOKENS)
    mask, apart = causal_mask(m, m), m[:, None] - m
    if model.purpose == "encoder":
        mask = torch.ones_like(mask)
    if window_of(layer):
        mask &= (
            m[:, None] // WINDOW == m // WINDOW
            if model.name == "Llama 4"
            else apart.abs() < WINDOW + (model.purpose == "encoder")
        )
    q = q * (layer["scaling"] * math.sqrt(width))  # the package divides by √width
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], dim=1) for each in (k, v))
    if layer["sinks"] is None:
        assert not kind.sinks
        return attention(q, k, v, mask=mask).transpose(1, 2)
    assert kind.sinks
    # A sink is one more key, which every query may look at, with a score of its own and nothing to say.
    k, v = (torch.cat((each, torch.zeros_like(each[..., :1, :])), dim=-2) for each in (k, v))
    bias = torch.cat(
        (torch.zeros(1, q.shape[1], TOKENS, TOKENS), layer["sinks"].detach()[None, :, None, None].expand(1, -1, TOKENS, 1)), -1
    )
    return attention(q, k, v, bias=bias, mask=torch.cat((mask, torch.ones(TOKENS, 1, dtype=torch.bool)), dim=-1)).transpose(
        1, 2
    )


def worst(model: Model, which: str, layers: dict[int, dict[str, Any]], positions: Tensor) -> float:
    """The largest difference from the package in any layer, relative to the layer's largest output."""
    differences = []
    for layer in layers.values():
        kind = kind_of(model, layer)
        expected = by_the_package(model, kind, getattr(kind, which), layer, positions)
        differences.append(float((layer["out"] - expected).abs().max() / layer["out"].abs().max()))
    return max(differences)


DECODERS = [
    name
    for name, model in MODELS.items()
    if {kind.encoding for kind in model.attention} <= {"RoPE", "none"} and name not in ("DINOv3", "DeepSeek-V4")
]
SINGLE = ("Ling 3.0",)  # their recurrent layers can't compute in double precision
NEAR = torch.arange(TOKENS)
FAR = (
    100_000 + 997 * NEAR
)  # with large offsets, too: a score depends on nothing else, and they bring small errors of ω to light


@pytest.mark.slow
@pytest.mark.parametrize("name", DECODERS)
def test_class_runs_as_the_table_says(name: str) -> None:
    """Every layer's kind, its window, its sinks, and its output, far from the beginning in double precision.

    The tolerance is due to the softmax, which stays in single precision. Models whose recurrent layers can compute in no other
    run in it as a whole.
    """
    model = MODELS[name]
    rotates, double = name in ROTARY, name in ROTARY and name not in SINGLE
    positions = NEAR if rotates and not double else FAR
    with doubled(double):
        built, layers = run(small(model.config), positions, torch.float64 if double else torch.float32)
    found = Counter(("raw" in layer, window_of(layer) > 0) for layer in layers.values())
    kinds = {(kind.encoding == "RoPE", bool(kind.default.window)): kind for kind in model.attention}
    number = built.config.num_hidden_layers
    if model.config not in OF_CLASS or "layer_types" not in OF_CLASS[model.config]:
        assert dict(found) == {key: kind.default.layers[0] for key, kind in kinds.items() if kind.default.layers}
        assert {kind.default.layers and kind.default.layers[1] for kind in model.attention} == {number}
        recurrent = [type(module).__name__ for module in built.modules() if RECURRENT.search(type(module).__name__)]
        assert (len(recurrent), number) == (model.recurrent.default if model.recurrent else (0, number))
    for (_, windowed), kind in kinds.items():
        window = getattr(getattr(transformers, model.config)(), "sliding_window", None) or 0
        window = 8192 if name == "Llama 4" else 2 * window + 1 if model.purpose == "encoder" else window
        assert kind.default.window == (window if windowed else 0)
    assert worst(model, "default", layers, positions) < (1e-5 if double else 1e-4)


@pytest.mark.parametrize("name", ROTARY)
def test_library_computes_the_frequencies_of_the_table(name: str) -> None:
    model = MODELS[name]
    with doubled(True):
        config = getattr(transformers, model.config)(**OF_CLASS.get(model.config, {}))
        folder = type(config).__module__.split(".")[-2]
        code = vars(importlib.import_module(f"transformers.models.{folder}.modeling_{folder}"))
        (rotary,) = (
            value
            for key, value in code.items()
            if re.search("Rotary|RopePosition", key) and "Vision" not in key and isinstance(value, type)
        )
        buffers = {key: value for key, value in rotary(config).named_buffers() if "original" not in key}
    computed = [values[values > 0] for values in buffers.values()]
    yarn = any(kind.default.scaling and kind.default.scaling.kind == "yarn" for kind in model.attention)
    exact = 1e-6 if yarn or name == "DINOv3" else 1e-12  # these compute in single precision in spite of `doubled`
    for kind in model.attention:
        if kind.encoding == "RoPE":
            expected = kind.default.frequencies()
            assert any(
                len(each) == len(expected) and torch.allclose(each.double(), expected, rtol=exact, atol=0) for each in computed
            )


def part_of(rotated: tuple[int, int] | None) -> bool:
    """Whether only a part of the channels rotates."""
    return rotated is not None and rotated[0] < rotated[1]


def test_sections_are_those_of_released_configurations() -> None:
    """The classes have none by default, but the code that reads them does: it falls back to these."""
    for name, config in (
        ("Qwen3-VL", "Qwen3VLTextConfig"),
        ("Qwen3.5", "Qwen3_5TextConfig"),
        ("Qwen3.8-Flash-Next", "Qwen4ExpTextConfig"),
        ("Qwen2.5-VL", "Qwen2_5_VLTextConfig"),
    ):
        (kind,) = find_model(name).attention
        folder = getattr(transformers, config).__module__.split(".")[-2]
        code = vars(importlib.import_module(f"transformers.models.{folder}.modeling_{folder}"))
        (rotary,) = (
            value for key, value in code.items() if "Rotary" in key and "Vision" not in key and isinstance(value, type)
        )
        assert kind.sections == tuple(rotary(getattr(transformers, config)()).mrope_section)
        assert kind.released.rotated
        assert sum(kind.sections) == kind.released.rotated[0] // 2


def test_kinds_of_layers_in_deepseek_v4() -> None:
    """Layers without compressed tokens have the small base. By default there are none, in the weights there are two."""
    window, compressed = find_model("DeepSeek-V4").attention
    for which, ratios in (("default", None), ("released", [0, 0, 4] + [128, 4] * 20)):
        config = transformers.DeepseekV4Config(**({"compress_ratios": ratios} if ratios else {}))
        plain = config.layer_types.count("sliding_attention")
        assert getattr(window, which).layers == (plain, 43)
        assert getattr(compressed, which).layers == (43 - plain, 43)
        assert config.sliding_window == getattr(window, which).window == getattr(compressed, which).window
    assert config.qk_rope_head_dim == 64
    assert config.head_dim == 512
    sinks = small("DeepseekV4Config", num_hidden_layers=2, layer_types=["sliding_attention"] * 2, num_hash_layers=0)
    model = transformers.AutoModel.from_config(sinks)
    assert window.sinks
    assert compressed.sinks
    assert [name for name, _ in model.named_parameters() if "sinks" in name] == [f"layers.{n}.self_attn.sinks" for n in (0, 1)]


def test_channels_of_dinov3_rotate_by_row_and_by_column() -> None:
    from transformers.models.dinov3_vit.modeling_dinov3_vit import DINOv3ViTRopePositionEmbedding

    config = transformers.DINOv3ViTConfig(image_size=48)
    (kind,) = find_model("DINOv3").attention
    assert kind.default.rotated == (64, config.hidden_size // config.num_attention_heads)
    cos, _ = DINOv3ViTRopePositionEmbedding(config).eval()(torch.zeros(1, 3, 48, 48))
    middle = (torch.arange(3) + 0.5) / 3 * 2 - 1  # of each patch, from -1 to 1
    places = torch.cartesian_prod(middle, middle).double()  # row and column
    angles = 2 * math.pi * places[:, :, None] * kind.default.frequencies()
    torch.testing.assert_close(cos.double(), angles.flatten(1).cos().repeat(1, 2), rtol=0, atol=1e-5)


def test_tables_have_as_many_rows_as_the_table_says() -> None:
    def rows(name: str, part: str, **changes: Any) -> int:
        config = getattr(transformers, find_model(name).config)(**changes)
        weights = dict(transformers.AutoModel.from_config(config).named_parameters())
        (found,) = (weight for key, weight in weights.items() if re.search(part, key))
        return found.shape[-2]

    tiny = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    assert rows("BERT", r"position_embeddings\.weight", **tiny) == find_model("BERT").attention[0].default.rows
    assert rows("ViT", "position_embeddings", **tiny) == find_model("ViT").attention[0].default.rows
    gpt2 = {"n_embd": 8, "n_head": 2, "n_layer": 1, "vocab_size": 9, "bos_token_id": 1, "eos_token_id": 1}
    assert rows("GPT-2", r"wpe\.weight", **gpt2) == find_model("GPT-2").attention[0].default.rows
    encoder, decoder = find_model("Whisper").attention
    sound = {
        "d_model": 8,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 8,
        "decoder_ffn_dim": 8,
    }
    assert rows("Whisper", r"encoder\.embed_positions", **sound) == encoder.default.rows
    assert rows("Whisper", r"decoder\.embed_positions", **sound) == decoder.default.rows
    for name in ("BERT", "GPT-2", "ViT", "Whisper", "T5", "BLOOM", "MPT"):
        model = find_model(name)
        config = getattr(transformers, model.config)()
        number = getattr(config, "encoder_layers", None) or config.num_hidden_layers
        assert {kind.default.layers for kind in model.attention} == {(number, number)}


def test_sinusoids_of_whisper_have_the_base_of_the_table() -> None:
    """Its frequencies run from 1 to 1/base itself, as in the first code of the paper, in halves."""
    table = transformers.WhisperModel(
        transformers.WhisperConfig(d_model=64, encoder_attention_heads=2, decoder_attention_heads=2)
    ).encoder.embed_positions.weight
    base = find_model("Whisper").attention[0].default.base
    assert base
    theirs = sinusoidal_table(range(1500), 64, base=base ** (32 / 31))  # of 32 pairs, the last has 1/base
    expected = torch.cat((theirs[:, 0::2], theirs[:, 1::2]), dim=1).float()
    torch.testing.assert_close(table.data, expected, rtol=0, atol=1e-3)  # float32 angles of up to 1,500


def test_t5_and_mpt_have_the_settings_of_the_table() -> None:
    assert transformers.MptConfig().attn_config.alibi
    config = transformers.T5Config()
    assert find_model("T5").attention[0].default.rows == config.relative_attention_num_buckets
    assert f"up to a distance of {config.relative_attention_max_distance}" in find_model("T5").note


@pytest.mark.parametrize("name", ["Jamba", "Granite 4.0-H", "Kimi Linear"])
def test_an_attention_layer_without_encoding_does_not_see_order(name: str) -> None:
    """The last token's output stays the same when the tokens before it are swapped. Llama's doesn't."""

    def moved(config: Any, attention: Any, **inputs: Any) -> float:
        torch.manual_seed(0)
        layer, x = attention(config, layer_idx=3).eval(), torch.randn(1, 7, config.hidden_size)
        texts = (x, x[:, [3, 5, 0, 4, 2, 1, 6]])
        before, after = (layer(text, attention_mask=None, **inputs)[0][0, -1].detach() for text in texts)
        return float((before - after).abs().max() / before.abs().max())

    def part(config: Any, what: str) -> Any:
        folder = type(config).__module__.split(".")[-2]
        code = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
        return getattr(code, type(config).__name__.removesuffix("Config") + what)

    (kind,) = find_model(name).attention
    assert kind.encoding == kind.door == "none"
    config = small(find_model(name).config)
    assert not getattr(config, "position_embedding_type", None)
    assert moved(config, part(config, "Attention")) < 1e-5
    llama = small("LlamaConfig")
    angles = part(llama, "RotaryEmbedding")(llama)(torch.zeros(1), torch.arange(7)[None])
    assert moved(llama, part(llama, "Attention"), position_embeddings=angles) > 1e-3


def test_layers_without_rope_lengthen_queries_in_llama_4() -> None:
    """From the 8,192nd token on; that they do, is in test_temperature.py."""
    _, kind = find_model("Llama 4").attention
    assert kind.temperature
    config = transformers.Llama4TextConfig()
    assert (config.attn_scale, config.floor_scale) == (kind.temperature.factor, kind.temperature.length)
    assert config.attn_temperature_tuning
    assert kind.temperature.from_one


def test_inkling_s_query_chooses_a_bias_for_each_offset() -> None:
    """How, is in test_vectors.py; here, how far, and in which layers."""
    windowed, whole = find_model("Inkling").attention
    config = transformers.InklingTextConfig()
    counted = Counter(config.layer_types)
    assert (counted["hybrid_sliding"], len(config.layer_types)) == windowed.default.layers
    assert (counted["hybrid"], len(config.layer_types)) == whole.default.layers
    assert config.sliding_window == windowed.default.window == windowed.default.rows
    assert config.rel_extent == whole.default.rows


def test_scores_of_inkling_grow_beyond_a_length() -> None:
    """By 1 + 0.1 ln(n/length), the bias included, and not in layers with a window. Released: beyond 128,000 tokens; here, 4."""
    from transformers.models.inkling.modeling_inkling import InklingAttention

    windowed, whole = find_model("Inkling").attention
    assert "1 + 0.1 ln(n / 128,000)" in find_model("Inkling").note
    for kind, which in ((windowed, "hybrid_sliding"), (whole, "hybrid")):
        logs = []
        for length in (None, 4):
            config = small("InklingTextConfig", log_scaling_n_floor=length)
            torch.manual_seed(0)
            layer = InklingAttention(config, config.layer_types.index(which)).eval()
            for parameter in layer.parameters():
                parameter.data.normal_(std=0.3)  # larger, and some weights would be 0
            weights = layer(torch.randn(1, 9, config.hidden_size), attention_mask=None)[1]
            logs.append(weights[0].detach().double().log())
        before, after = (each - each[..., :1] for each in logs)  # differences of scores from the first key's
        n = torch.arange(9) + 1
        factor = 1 + 0.1 * (n / 4).clamp(min=1).log() if kind is whole else torch.ones(9)
        torch.testing.assert_close(after, before * factor[:, None], rtol=1e-3, atol=1e-3)
        assert before.abs().max() > 0.1


def test_mistral_large_4_learns_frequencies_and_a_logarithm() -> None:
    from transformers.models.mistral_large4 import modeling_mistral_large4 as code

    config = transformers.MistralLarge4TextConfig()
    rotary, plain = find_model("Mistral Large 4").attention
    assert (sum(config.no_rope_layers), len(config.no_rope_layers)) == rotary.default.layers
    assert plain.default.layers == (config.no_rope_layers.count(0), config.num_hidden_layers)
    angles = code.MistralLarge4TextRotaryEmbedding(config)
    angles.alpha.normal_(generator=torch.Generator().manual_seed(0))
    _, sin = angles(torch.zeros(1), torch.tensor([[1]]))
    expected = (rotary.default.frequencies().float() * angles.alpha.exp()).sin()
    torch.testing.assert_close(sin[0, 0, : len(expected)], expected, rtol=1e-5, atol=1e-6)
    scale = code.MistralLarge4TextSoftmaxScaling(2)
    scale.scale.data, scale.bias.data = torch.tensor([0.5, 2.0]), torch.tensor([1.0, 0.0])
    longer = scale(torch.ones(1, 2, 3, 1), torch.tensor([[0, 9, 99]]), head_dim_first=True)[0, :, :, 0].detach()
    logs = torch.tensor([1, 10, 100]).log()
    torch.testing.assert_close(longer, torch.stack((0.5 * logs + 1, 2 * logs)))


def test_yarn_sharpens_attention_where_the_table_says() -> None:
    for name in ("gpt-oss", "OLMo 3"):
        scalings = [kind.released.scaling for kind in find_model(name).attention]
        (scaling,) = {each for each in scalings if each and each.kind == "yarn"}
        assert scaling.attention_factor == pytest.approx(yarn_attention_factor(scaling.factor), rel=1e-12)


# ── the table itself ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_table_is_complete() -> None:
    assert len(ALL) == len(load_models()) >= 55
    assert [model.year for model in load_models()] == sorted(model.year for model in load_models())
    doors = {
        "RoPE": "query and key",
        "learned table": "embedding",
        "sinusoids": "embedding",
        "T5's bias": "score",
        "ALiBi": "score",
        "Inkling's bias": "score",
    }
    for model in ALL.values():
        assert model.purpose in ("language", "vision and language", "images", "sound", "encoder")
        assert date(2026, 11, 1) <= date.fromisoformat(model.looked) <= date.fromisoformat(last_look().date)
        assert model.config or all(kind.default == Settings() for kind in model.attention)
        for kind in model.attention:
            assert kind.door == doors.get(kind.encoding, "none")
            assert (kind.layout is not None) == (kind.encoding == "RoPE")


def test_released_values_have_sources() -> None:
    for model in ALL.values():
        values = [
            getattr(kind.released, name)
            for kind in model.attention
            for name in ("layers", "base", "rotated", "scaling", "rows")
        ]
        if any(values) or (model.recurrent and model.recurrent.released):
            assert model.checkpoint, model.name
            assert model.sources, model.name
        assert all(source.url.startswith("https://") for source in model.sources)
    urls = [source.url for model in ALL.values() for source in model.sources if "github.com" in source.url]
    assert all(re.search(r"/blob/[0-9a-f]{40}/|/blob/main/|/pull/\d+$", url) for url in urls)


def test_kinds_of_layers_add_up() -> None:
    """Beside each other in one layer, or to all layers, but for two models that have layers of neither kind."""
    for model in ALL.values():
        for which in ("default", "released"):
            parts = [getattr(kind, which).layers for kind in model.attention]
            parts += [getattr(model.recurrent, which)] if model.recurrent else []
            if any(parts):
                counts, (total,) = [part[0] for part in parts], {part[1] for part in parts}
                added = max(counts) if model.name in ("Whisper", "Falcon-H1") else sum(counts)
                assert added == total or (model.name in ("Nemotron-H", "LFM3") and added < total), (model.name, which)


def test_a_model_is_for_what_its_class_is_for() -> None:
    """By transformers' own lists. A class that both reads images and writes text may be known for either."""
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    lists = {
        "encoder": auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "sound": auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
        "images": auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES | auto.MODEL_FOR_BACKBONE_MAPPING_NAMES,
        "vision and language": auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        "language": auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES | auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    }
    seeing = {"Command A+", "Inkling"}  # by a class of their own around the one in the table
    for name, model in MODELS.items():
        config = getattr(transformers, model.config)
        names = {config.model_type, config.__module__.split(".")[-2]}
        found = [purpose for purpose, of in lists.items() if names & {*of}]
        may_be = found if found[0] == "vision and language" else ["vision and language"] if name in seeing else found[:1]
        assert model.purpose in may_be, name


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    for name in ("Lama", None, ["BERT"]):
        with pytest.raises(ValueError, match=r"no model .* in the table: choose from BERT, GPT-2, .*DeepSeek-V4"):
            find_model(name)  # type: ignore[arg-type]


def test_frequencies_need_values_and_a_formula() -> None:
    with pytest.raises(ValueError, match="doesn't fix the frequencies: they need a base"):
        find_model("GLM-4").attention[0].released.frequencies()
    with pytest.raises(ValueError, match=r"no formula for Scaling\(kind='longrope'.*: read"):
        find_model("Phi-4-mini").attention[0].released.frequencies()


# ── the tool ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_model_is_in_the_table_or_left_out_once() -> None:
    found, table = tool.folders(), tool.in_table()
    left_out = [name for names in last_look().left_out.values() for name in names]
    assert len(table) >= 45
    assert Counter(left_out).most_common(1)[0][1] == 1
    assert {*left_out} == found - table
