"""The probes, and the tables of the page "Whose convention is it?", put to the libraries that they speak of."""

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from posenc_course.alibi import AlibiPositions, alibi_slopes
from posenc_course.attention import attention_weights, causal_mask
from posenc_course.conventions import read_rotation, read_table
from posenc_course.relative import t5_buckets
from posenc_course.rope import apply_rope, rope_tables
from posenc_course.sinusoidal import frequencies, sinusoidal_table

PAGE = Path(__file__).resolve().parent.parent / "book" / "reference" / "conventions.ipynb"
D, HEADS, D_HEAD, LENGTH = 32, 4, 8, 6
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")


def rows(header: str) -> dict[str, list[str]]:
    """The table on the page whose second column has this header: each implementation's other cells."""
    text = "\n".join("".join(cell["source"]) for cell in json.loads(PAGE.read_text("utf-8"))["cells"])
    (table,) = re.findall(rf"^\| Implementation \| {re.escape(header)} \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]
    return {name: rest for name, *rest in cells}


# ── rotations ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def llama(x: Tensor) -> Tensor:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    rotary = LlamaRotaryEmbedding(LlamaConfig(head_dim=x.shape[-1]))
    return apply_rotary_pos_emb(x, x, *rotary(x, torch.arange(x.shape[2])[None]))[0]


def gpt_neox(x: Tensor) -> Tensor:
    from transformers import GPTNeoXConfig
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding, apply_rotary_pos_emb

    rotary = GPTNeoXRotaryEmbedding(GPTNeoXConfig(hidden_size=4 * x.shape[-1], num_attention_heads=4))
    return apply_rotary_pos_emb(x, x, *rotary(x, torch.arange(x.shape[2])[None]))[0]


def gptj(x: Tensor) -> Tensor:
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb, create_sinusoidal_positions

    sin, cos = create_sinusoidal_positions(x.shape[2], x.shape[-1])[None].chunk(2, dim=-1)
    return apply_rotary_pos_emb(x.transpose(1, 2), sin, cos).transpose(1, 2)


def roformer(x: Tensor) -> Tensor:
    from transformers.models.roformer.modeling_roformer import RoFormerSelfAttention, RoFormerSinusoidalPositionalEmbedding

    table = RoFormerSinusoidalPositionalEmbedding(x.shape[2], x.shape[-1]).create_weight()
    return RoFormerSelfAttention.apply_rotary_position_embeddings(table[None, None], x, x)[0]


def cohere(x: Tensor) -> Tensor:
    from transformers import CohereConfig
    from transformers.models.cohere.modeling_cohere import CohereRotaryEmbedding, apply_rotary_pos_emb

    rotary = CohereRotaryEmbedding(CohereConfig(hidden_size=4 * x.shape[-1], num_attention_heads=4))
    return apply_rotary_pos_emb(x, x, *rotary(x, torch.arange(x.shape[2])[None]))[0]


def llama4(x: Tensor) -> Tensor:
    from transformers import Llama4TextConfig
    from transformers.models.llama4.modeling_llama4 import Llama4TextRotaryEmbedding, apply_rotary_emb

    turns = Llama4TextRotaryEmbedding(Llama4TextConfig(head_dim=x.shape[-1]))(x, torch.arange(x.shape[2])[None])
    return apply_rotary_emb(x.transpose(1, 2), x.transpose(1, 2), turns)[0].transpose(1, 2)


def x_transformers(x: Tensor) -> Tensor:
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb  # type: ignore[import-untyped]

    return apply_rotary_pos_emb(x, RotaryEmbedding(x.shape[-1]).forward_from_seq_len(x.shape[2])[0])


def rotary_embedding_torch(x: Tensor) -> Tensor:
    from rotary_embedding_torch import RotaryEmbedding  # type: ignore[import-untyped]

    return RotaryEmbedding(x.shape[-1]).rotate_queries_or_keys(x).detach()


def onnx(interleaved: bool) -> Callable[[Tensor], Tensor]:
    def rotate(x: Tensor) -> Tensor:
        from onnx.reference.ops.op_rotary_embedding import RotaryEmbedding

        cos, sin = (table.expand(len(x), -1, -1).numpy() for table in rope_tables(range(x.shape[2]), frequencies(x.shape[-1])))
        run: Any = RotaryEmbedding.eval  # the operator as its specification computes it
        return torch.from_numpy(run(x.numpy(), cos, sin, interleaved=int(interleaved)))

    return rotate


def ours(x: Tensor, *, interleaved: bool = True) -> Tensor:
    return apply_rope(x, *rope_tables(range(x.shape[2]), frequencies(x.shape[-1])), interleaved=interleaved)


ROTATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "transformers, Llama": llama,
    "transformers, GPT-NeoX": gpt_neox,
    "transformers, GPT-J": gptj,
    "transformers, RoFormer": roformer,
    "transformers, Cohere": cohere,
    "transformers, Llama 4": llama4,
    "x-transformers": x_transformers,
    "rotary-embedding-torch": rotary_embedding_torch,
    "onnx, `interleaved=0`": onnx(False),
    "onnx, `interleaved=1`": onnx(True),
    "posenc_course": ours,
}


def test_the_page_lists_the_rotations_that_are_asked_here() -> None:
    assert [*rows("pairs | direction")] == [*ROTATIONS]


@pytest.mark.parametrize("name", ROTATIONS)
def test_each_rotation_turns_as_the_page_says(name: str) -> None:
    found = read_rotation(ROTATIONS[name], D)
    answer = [
        "neighbours" if found.interleaved else "halves",
        "counterclockwise" if found.counterclockwise else "clockwise",
        f"{2 * len(found.frequencies)} of {D}",
        f"{1 / found.frequencies[-1]:,.0f}",
    ]
    assert rows("pairs | direction")[name] == answer


@given(pairs=st.integers(2, 40), base=st.floats(10, 1e7), interleaved=st.booleans(), forward=st.booleans())
def test_a_rotation_of_pairs_is_read_back(pairs: int, base: float, interleaved: bool, forward: bool) -> None:
    """Whatever its width, base, layout and direction."""
    omega = frequencies(2 * pairs, base)

    def rotate(x: Tensor) -> Tensor:
        cos, sin = rope_tables(range(x.shape[2]), omega)
        return apply_rope(x, cos, sin if forward else -sin, interleaved=interleaved)

    found = read_rotation(rotate, 2 * pairs)
    assert (found.interleaved, found.counterclockwise) == (interleaved, forward)
    torch.testing.assert_close(found.frequencies, omega, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("rotary_dim", "interleaved"), [(2, True), (4, False), (4, True), (14, False)])
def test_a_partial_rotation_is_read_back(rotary_dim: int, interleaved: bool) -> None:
    def rotate(x: Tensor) -> Tensor:
        return torch.cat((ours(x[..., :rotary_dim], interleaved=interleaved), x[..., rotary_dim:]), dim=-1)

    if rotary_dim == 2:
        with pytest.raises(ValueError, match="one pair"):
            read_rotation(rotate, 16)
        return
    found = read_rotation(rotate, 16)
    assert found.interleaved == interleaved
    torch.testing.assert_close(found.frequencies, frequencies(rotary_dim), rtol=1e-6, atol=0)


def by_head(x: Tensor) -> Tensor:
    return ours(x.transpose(1, 2)).transpose(1, 2)


def mixed(x: Tensor) -> Tensor:
    cos, sin = (table.repeat_interleave(2, dim=-1) for table in rope_tables(range(x.shape[2]), frequencies(x.shape[-1])))
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def sign_missing(x: Tensor) -> Tensor:
    cos, sin = rope_tables(range(x.shape[2]), frequencies(x.shape[-1]))
    return apply_rope(x, cos, sin * torch.tensor([1.0, -1.0]).repeat(sin.shape[-1] // 2), interleaved=True)


def shuffled(x: Tensor) -> Tensor:
    order = torch.tensor([0, 3, 1, 2, *range(4, x.shape[-1])])
    return ours(x[..., order])[..., order.argsort()]


@pytest.mark.parametrize(
    ("rotate", "problem"),
    [
        (by_head, "along L"),
        (lambda x: torch.cat((x[..., :1, :], ours(x)[..., :-1, :]), dim=-2), "turns nothing"),
        (lambda x: apply_rope(x, *rope_tables([1, 2], frequencies(x.shape[-1])), interleaved=True), "changes position 0"),
        (mixed, "different layouts"),
        (sign_missing, "a sign"),
        (shuffled, "neither neighbours nor halves"),
        (lambda x: x, "turns nothing"),
    ],
    ids=["head axis", "late", "from 1", "mixed", "sign", "shuffled", "nothing"],
)
def test_what_is_no_rotary_encoding_is_refused(rotate: Callable[[Tensor], Tensor], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_rotation(rotate, 16)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def from_ids(kind: Any) -> Tensor:
    """A table that fairseq's descendants look up by the ids of 20 tokens, none of them padding."""
    return kind(50, D, padding_idx=1)(torch.full((1, 20), 5))[0]


def tables() -> dict[str, Tensor]:
    from transformers.models.ctrl.modeling_ctrl import positional_encoding
    from transformers.models.distilbert.modeling_distilbert import create_sinusoidal_embeddings
    from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
    from transformers.models.speech_to_text.modeling_speech_to_text import Speech2TextSinusoidalPositionalEmbedding
    from transformers.models.whisper.modeling_whisper import sinusoids
    from x_transformers.x_transformers import ScaledSinusoidalEmbedding

    distilbert = torch.empty(50, D)
    create_sinusoidal_embeddings(50, D, distilbert)
    scaled = ScaledSinusoidalEmbedding(D)
    assert scaled.scale.item() == pytest.approx(D**-0.5)
    return {
        "transformers, Marian": MarianSinusoidalPositionalEmbedding(50, D).create_weight(),
        "transformers, CTRL": positional_encoding(50, D, torch.float32),
        "transformers, DistilBERT": distilbert,
        "transformers, Whisper": sinusoids(50, D),
        "transformers, M2M-100": from_ids(M2M100SinusoidalPositionalEmbedding),
        "transformers, Speech2Text": from_ids(Speech2TextSinusoidalPositionalEmbedding),
        "x-transformers, scaled": (scaled(torch.zeros(1, 20, D)) / scaled.scale).detach(),
        "posenc_course": sinusoidal_table(range(20), D),
    }


def test_each_table_is_laid_out_as_the_page_says() -> None:
    answers = {}
    for name, table in tables().items():
        found = read_table(table)
        answers[name] = [
            "neighbours" if found.interleaved else "halves",
            "sine" if found.sine_first else "cosine",
            str(found.first_position),
            f"{1 / found.frequencies.min():,.0f}",
        ]
    assert rows("pairs | first |".removesuffix(" |")) == answers


def test_the_table_of_m2m_100_is_ours_with_another_base() -> None:
    theirs = tables()["transformers, M2M-100"].double()
    table = sinusoidal_table(torch.arange(20) + 2, D, 10_000 ** (D / (D - 2)), interleaved=False)
    torch.testing.assert_close(table, theirs, rtol=0, atol=1e-5)


@given(
    pairs=st.integers(2, 40), base=st.floats(10, 1e6), interleaved=st.booleans(), start=st.integers(0, 50), flip=st.booleans()
)
def test_a_table_is_read_back(pairs: int, base: float, interleaved: bool, start: int, flip: bool) -> None:
    """Turned round, its columns begin with the cosine, and the slowest pair stands first."""
    table = sinusoidal_table(range(start, start + 10), 2 * pairs, base, interleaved=interleaved)
    found = read_table(table.flip(1) if flip else table)
    assert found[:3] == (interleaved, not flip, start)
    omega = frequencies(2 * pairs, base)
    torch.testing.assert_close(found.frequencies, omega.flip(0) if flip else omega, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (sinusoidal_table([0, 1, 3, 4], 16), "consecutive"),
        (0.1 * sinusoidal_table(range(4), 16), "unit circle"),
        (sinusoidal_table(range(4), 15), "even d"),
        (sinusoidal_table([3], 16), "L >= 2"),
    ],
    ids=["gap", "scaled", "odd", "one row"],
)
def test_what_is_no_sinusoidal_table_is_refused(table: Tensor, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_table(table)


# ── biases ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def per_token_nearer(weights: Tensor) -> Tensor:
    """How much each head's bias grows from one key to the next, of weights (heads, L, L) without content."""
    steps = weights[:, -1].log().diff(dim=-1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), rtol=1e-4, atol=1e-5)
    return steps.mean(dim=-1).detach().double()


def without_content(model: Any, **inputs: Any) -> Tensor:
    """The first layer's weights, (heads, L, L), after the projections to query, key and value are set to zero."""
    for name, parameter in model.named_parameters():
        if "query_key_value" in name or "Wqkv" in name:
            parameter.data.zero_()
    ids = torch.arange(LENGTH)[None]
    return model.eval()(ids, attention_mask=torch.ones(1, LENGTH), output_attentions=True, **inputs).attentions[0][0]


def falcon_mask_of_sdpa(monkeypatch: pytest.MonkeyPatch) -> Tensor:
    """What Falcon hands to torch's fused attention in the place of a mask, (heads, L, L)."""
    from transformers import FalconModel

    seen: list[Tensor] = []
    kernel = F.scaled_dot_product_attention

    def listen(*arguments: Any, **rest: Any) -> Tensor:
        seen.append(rest["attn_mask"])
        return kernel(*arguments, **rest)

    monkeypatch.setattr(F, "scaled_dot_product_attention", listen)
    FalconModel(falcon_config("sdpa")).eval()(torch.arange(LENGTH)[None])
    return seen[0][0]


def falcon_config(implementation: str) -> Any:
    from transformers import FalconConfig

    config: Any = FalconConfig  # its annotations leave out what every config takes
    return config(
        hidden_size=HEADS * D_HEAD, num_attention_heads=HEADS, num_hidden_layers=1, vocab_size=LENGTH, alibi=True,
        new_decoder_architecture=False, multi_query=False, attn_implementation=implementation,
    )  # fmt: skip


def test_alibi_is_as_steep_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slopes per token nearer, as multiples of `alibi_slopes`; MPT and BLOOM divide scores first, Falcon afterwards."""
    from transformers import BloomConfig, BloomModel, FalconModel, MptConfig, MptModel
    from x_transformers.x_transformers import AlibiPositionalBias

    width = HEADS * D_HEAD
    bloom_config: Any = BloomConfig
    mpt_config: Any = MptConfig
    bloom = bloom_config(hidden_size=width, n_head=HEADS, n_layer=1, vocab_size=LENGTH, attn_implementation="eager")
    mpt = mpt_config(d_model=width, n_heads=HEADS, n_layers=1, vocab_size=LENGTH, attn_implementation="eager")
    query = torch.zeros(1, HEADS, LENGTH, D_HEAD)
    m = torch.arange(LENGTH)
    bias = AlibiPositions(HEADS).bias(query, m, m)
    weights = {
        "transformers, BLOOM": without_content(BloomModel(bloom)),
        "transformers, MPT": without_content(MptModel(mpt)),
        "transformers, Falcon (sdpa)": falcon_mask_of_sdpa(monkeypatch).softmax(dim=-1),
        "transformers, Falcon (eager)": without_content(FalconModel(falcon_config("eager"))),
        "x-transformers": (AlibiPositionalBias(HEADS)(LENGTH, LENGTH).tril()).softmax(dim=-1),
        "posenc_course": attention_weights(query, query, bias=bias, mask=causal_mask(m, m))[0],
    }
    factors = {"slope": 1.0, "slope/√d_head": D_HEAD**-0.5, "2·slope/√d_head": 2 * D_HEAD**-0.5}
    page = rows("written as")
    assert [*page] == [*weights]
    for name, (_, steepness, _) in page.items():
        expected = factors[steepness] * alibi_slopes(HEADS)
        torch.testing.assert_close(per_token_nearer(weights[name]), expected, rtol=1e-3, atol=0, msg=f"{name}: {steepness}")


def test_falcon_in_transformers_5_gives_two_models_with_the_same_weights() -> None:
    """The bias once or twice, by the implementation. This fails once they agree: then drop it here and on the page."""
    from transformers import FalconModel

    outputs = []
    for implementation in ("sdpa", "eager"):
        torch.manual_seed(0)
        model = FalconModel(falcon_config(implementation)).eval()
        outputs.append(model(torch.arange(LENGTH)[None]).last_hidden_state)
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3
    shown = per_token_nearer(without_content(FalconModel(falcon_config("sdpa"))))  # asked for weights, it is written out
    torch.testing.assert_close(shown, 2 * D_HEAD**-0.5 * alibi_slopes(HEADS), rtol=1e-3, atol=0)


def scale_of(weights: Tensor, scores: Tensor) -> str:
    """Whether the weights (L, L) are a softmax of these scores, or of the scores divided by √d_head."""
    for divisor, answer in ((1.0, "no"), (math.sqrt(D_HEAD), "yes")):
        if torch.allclose(weights, (scores / divisor).softmax(dim=-1), atol=1e-5):
            return answer
    return "otherwise"


def test_offsets_are_counted_and_scores_divided_as_the_page_says() -> None:
    from transformers import T5Config, Wav2Vec2BertConfig
    from transformers.models.t5.modeling_t5 import T5Attention
    from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import Wav2Vec2BertSelfAttention
    from x_transformers.x_transformers import Attention, RelativePositionBias

    x = torch.randn(1, LENGTH, D_HEAD, generator=torch.Generator().manual_seed(0))
    scores = x[0] @ x[0].T
    identity = torch.eye(D_HEAD)

    def later_is(bucket: Callable[[Tensor], Tensor]) -> str:
        """T5 puts later keys into the upper half of its buckets: which sign has their offset?"""
        return "n − m" if bucket(torch.tensor([2])) > bucket(torch.tensor([-2])) else "m − n"

    t5 = T5Attention(T5Config(d_model=D_HEAD, d_kv=D_HEAD, num_heads=1)).eval()
    for projection in (t5.q, t5.k):
        projection.weight.data = identity.clone()
    theirs = Attention(D_HEAD, heads=1, dim_head=D_HEAD).eval()
    for projection in (theirs.to_q, theirs.to_k):
        projection.weight.data = identity.clone()
    config = Wav2Vec2BertConfig(
        hidden_size=D_HEAD, num_attention_heads=1, position_embeddings_type="relative_key", attention_dropout=0.0
    )
    shaw = Wav2Vec2BertSelfAttention(config).eval()
    for linear in (shaw.linear_q, shaw.linear_k):
        linear.weight.data, linear.bias.data = identity.clone(), torch.zeros(D_HEAD)
    reach = config.left_max_position_embeddings
    table = shaw.distance_embedding.weight.data
    table.zero_()
    plain = shaw(x, output_attentions=True)[1][0, 0]
    table[reach + 2] = 50 * x[0, 0]  # a vector that the first token likes, at the offset that the table calls 2
    favoured = int(shaw(x, output_attentions=True)[1][0, 0, 0].argmax())
    found = {
        "transformers, T5": [
            later_is(lambda offset: T5Attention._relative_position_bucket(offset, True, 32, 128)),
            scale_of(t5(x, output_attentions=True)[-1][0, 0], scores),
        ],
        "x-transformers, T5 bias": [
            later_is(lambda offset: RelativePositionBias._relative_position_bucket(offset, False, 32, 128)),
            scale_of(theirs(x, return_intermediates=True)[1].post_softmax_attn[0, 0], scores),
        ],
        "transformers, Wav2Vec2-BERT (Shaw)": ["n − m" if favoured == 2 else "m − n", scale_of(plain, scores)],
        "posenc_course": [
            later_is(lambda offset: t5_buckets(offset, 32, 128, causal=False)),
            scale_of(attention_weights(x[0], x[0]), scores),
        ],
    }
    assert rows("offset counted") == found
