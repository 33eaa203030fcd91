"""The package's models in libraries of others."""

from typing import Any

from transformers import LlamaConfig, LlamaForCausalLM

from posenc_course.llama import Llama


def in_transformers(model: Llama, base: float) -> LlamaForCausalLM:
    """The same model in transformers, with the weights of this one."""
    attention: Any = model.blocks[0].attention
    theirs = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=model.vocab_size,
            hidden_size=attention.d_model,
            intermediate_size=model.blocks[0].mlp.gate.out_features,  # type: ignore[union-attr]
            num_hidden_layers=len(model.blocks),
            num_attention_heads=attention.d_model // attention.d_head,
            num_key_value_heads=attention.key.out_features // attention.d_head,
            rms_norm_eps=model.norm.eps,
            rope_parameters={"rope_type": "default", "rope_theta": base},
            tie_word_embeddings=True,
        )
    ).to(model.embedding.weight.dtype)
    names = {
        "attention.query": "self_attn.q_proj", "attention.key": "self_attn.k_proj", "attention.value": "self_attn.v_proj",
        "attention.output": "self_attn.o_proj", "attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm",
        "mlp.gate": "mlp.gate_proj", "mlp.up": "mlp.up_proj", "mlp.down": "mlp.down_proj", "blocks": "layers",
        "embedding": "embed_tokens",
    }  # fmt: skip
    weights = {}
    for name, weight in model.state_dict().items():
        for ours, hubs in names.items():
            name = name.replace(ours, hubs)
        weights[f"model.{name}"] = weight
    theirs.load_state_dict(weights, strict=False)
    assert {*theirs.state_dict()} - {*weights} == {"lm_head.weight"}  # the embedding's, which is tied
    return theirs.eval()
