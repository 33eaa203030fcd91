"""The probes, and the tables of the page "Whose convention is it?", put to the models that the libraries build.

Each row is asked of a model made from its Config class, twice: as the class makes it, and with the values of published weights,
where these can be looked up. Layers, vocabularies and MLPs are tiny and weights random; heads are as wide as they are there,
and texts 2,048 tokens long, or as long as the model takes, so that roundings show.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from posenc_course.alibi import AlibiPositions, alibi_slopes
from posenc_course.conventions import read_rotation, read_table
from posenc_course.relative import ShawPositions, T5Positions
from posenc_course.rope import RotaryPositions, apply_rope, rope_tables
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies, sinusoidal_table
from posenc_course.transformer import Decoder, Encoder

PAGE = Path(__file__).resolve().parents[2] / "book" / "reference" / "conventions.ipynb"
LENGTH = 2048
HEADS = 3  # where their number changes nothing
Settings = dict[str, Any]
pytestmark = [
    pytest.mark.slow,  # whole models of the libraries are built
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning"),
]


def rows(header: str) -> dict[str, list[str]]:
    """The table on the page whose second column has this header: each implementation's other cells."""
    text = "\n".join("".join(cell["source"]) for cell in json.loads(PAGE.read_text("utf-8"))["cells"])
    text = re.sub(r"<!--.*?-->", "", text)  # ties
    (table,) = re.findall(rf"^\| Implementation \| {re.escape(header)} \|.*\n\|[-|]+\|\n((?:\|.*\n?)+)", text, re.MULTILINE)
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.splitlines()]
    return {name: rest for name, *rest in cells}


def released(cell: str) -> str:
    """What a cell of the last column says of published weights, without their name and source."""
    if re.fullmatch(r"\(.+\)", cell):
        return cell  # none, or not looked up
    source = r"\(\[[\w ]+\]\((?:https://|\.\./)\S+\)\)|\{cite:p\}`\w+`"
    match = re.fullmatch(rf"[\w.\- ]+: (.+) (?:{source})", cell)
    assert match, f"write “name: values ([source](address))” or “(no weights)”, not {cell}"
    return match[1]


def both(cells: list[str], values: Settings | None) -> list[tuple[str, Settings]]:
    """What the page says of the class's defaults and, where they are public, of released weights, with the settings of each."""
    default, weights = cells
    if values is None:
        assert weights == "(no weights)"
        return [(default, {})]
    return [(default, {}), (released(weights), values)]


def configured(kind: str, settings: Settings) -> Any:
    """A configuration of transformers, by the name of its class."""
    import transformers

    return getattr(transformers, kind)(**settings)


def built(kind: str, config: Any) -> Any:
    """A model of transformers with random weights, ready to be asked."""
    import transformers

    torch.manual_seed(0)
    return getattr(transformers, kind)(config).eval()


@contextmanager
def given_vectors(linears: list[nn.Module], vectors: Tensor) -> Iterator[None]:
    """Replaces what these projections compute."""
    hooks = [linear.register_forward_hook(lambda *_: vectors) for linear in linears]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


# ── rotations ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rotation(NamedTuple):
    """Rotates queries x (batch, heads, L, d_head), and knows how wide its heads are."""

    rotate: Callable[[Tensor], Tensor]
    width: int
    longest: int = LENGTH


def transformers_model(kind: str, model: str, projections: str, tiny: Settings) -> Callable[[Settings], Rotation]:
    """Of a model that hands its queries to an attention function: the first layer's, as that function gets them."""

    def ask(settings: Settings) -> Rotation:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import sdpa_mask

        seen = []

        def listen(_: Any, query: Tensor, key: Tensor, value: Tensor, *__: Any, **___: Any) -> tuple[Tensor, None]:
            seen.append(query)
            return torch.zeros_like(query.transpose(1, 2)), None

        AttentionInterface.register("listen", listen)
        AttentionMaskInterface.register("listen", sdpa_mask)
        config = configured(kind, settings)
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        small = {"hidden_size": HEADS * width, "num_attention_heads": HEADS, "num_hidden_layers": 1, "vocab_size": 2} | tiny
        config = configured(kind, settings | small)
        config._attn_implementation = "listen"
        network = built(model, config)
        layer = network.layers[0]
        attention = layer.attention if hasattr(layer, "attention") else layer.self_attn
        if hasattr(attention, "qk_norm"):
            attention.qk_norm = nn.Identity()  # Llama 4 divides rotated queries by their length
        linears = [getattr(attention, name) for name in projections.split()]

        def rotate(x: Tensor) -> Tensor:
            tokens = x.transpose(1, 2)
            if len(linears) == 1:  # query, key and value of each head together
                tokens = torch.cat((tokens, tokens, tokens), dim=-1)
            with given_vectors(linears, tokens.flatten(2)), torch.no_grad():
                network(torch.zeros(x.shape[0], x.shape[2], dtype=torch.long), use_cache=False)
            return seen.pop()

        return Rotation(rotate, width)

    return ask


def heard(network: Any, owner: Any, method: str, linears: list[Any], *, given: bool = False) -> Callable[[Tensor], Tensor]:
    """A rotation by the first tensor that a method of an attention returns, or that it's given."""
    function, seen = getattr(owner, method), []

    def listen(*arguments: Any) -> Any:
        out = function(*arguments)
        seen.append((arguments if given else out)[0])
        return out

    def rotate(x: Tensor) -> Tensor:
        with given_vectors(linears, x.transpose(1, 2).flatten(2)), torch.no_grad():
            network(torch.zeros(x.shape[0], x.shape[2], dtype=torch.long))
        rotated: Tensor = seen.pop()
        return rotated

    setattr(owner, method, listen)
    return rotate


def gptj(settings: Settings) -> Rotation:
    _, width = shape(configured("GPTJConfig", settings))
    tiny = {"n_embd": HEADS * width, "n_head": HEADS, "n_layer": 1, "vocab_size": 2, "n_inner": 8, "use_cache": False}
    network = built("GPTJModel", configured("GPTJConfig", settings | tiny))
    attention = network.h[0].attn
    linears = [attention.q_proj, attention.k_proj, attention.v_proj]
    return Rotation(heard(network, attention, "_attn", linears, given=True), width)


def roformer(settings: Settings) -> Rotation:
    config = configured("RoFormerConfig", settings)
    width = config.hidden_size // config.num_attention_heads
    network = built("RoFormerModel", configured("RoFormerConfig", settings | {
        "hidden_size": HEADS * width, "embedding_size": HEADS * width, "num_attention_heads": HEADS, "num_hidden_layers": 1,
        "vocab_size": 2, "intermediate_size": 8,
    }))  # fmt: skip
    attention = network.encoder.layer[0].attention.self
    rotate = heard(network, attention, "apply_rotary_position_embeddings", [attention.query, attention.key, attention.value])
    return Rotation(rotate, width, longest=config.max_position_embeddings)


def x_transformers(_: Settings) -> Rotation:
    from x_transformers import Decoder as TheirDecoder

    width = 64  # the default of their attention
    network = TheirDecoder(dim=16, depth=1, heads=HEADS, rotary_pos_emb=True).eval()
    (attention,) = (module for module in network.modules() if hasattr(module, "to_q"))
    seen: list[Tensor] = []
    attention.attend.register_forward_pre_hook(lambda _, arguments: seen.append(arguments[0]))

    def rotate(x: Tensor) -> Tensor:
        with given_vectors([attention.to_q], x.transpose(1, 2).flatten(2)), torch.no_grad():
            network(torch.zeros(x.shape[0], x.shape[2], 16))
        return seen.pop()

    return Rotation(rotate, width)


def rotary_embedding_torch(_: Settings) -> Rotation:
    """Width and dim of the example that its README begins with; neither has a default."""
    from rotary_embedding_torch import RotaryEmbedding

    return Rotation(lambda x: RotaryEmbedding(dim=32).rotate_queries_or_keys(x).detach(), 64)


def onnx(interleaved: int) -> Callable[[Settings], Rotation]:
    def ask(_: Settings) -> Rotation:
        """One node, run as the specification's reference implementation computes it; sines and cosines are its inputs."""
        from onnx import TensorProto, helper
        from onnx.reference import ReferenceEvaluator

        kinds = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "cos", "sin", "y")]
        node = helper.make_node("RotaryEmbedding", ["x", "cos", "sin"], ["y"], interleaved=interleaved)
        graph = helper.make_graph([node], "rotation", kinds[:3], kinds[3:])
        model = ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]))

        def rotate(x: Tensor) -> Tensor:
            cos, sin = rope_tables(range(x.shape[2]), frequencies(x.shape[-1]))
            inputs = {"x": x, "cos": cos.expand(len(x), -1, -1), "sin": sin.expand(len(x), -1, -1)}
            (rotated,) = model.run(None, {name: value.numpy() for name, value in inputs.items()})
            return torch.from_numpy(rotated)

        return Rotation(rotate, 64)

    return ask


def our_decoder(settings: Settings) -> Rotation:
    width = settings.get("width", 64)
    scheme = RotaryPositions(frequencies(width))
    network: Any = Decoder(2, HEADS * width, HEADS, 1, scheme).eval()
    attention = network.blocks[0].attention
    return Rotation(heard(network, scheme, "rotate", [attention.query, attention.key]), width)


QKV = "q_proj k_proj v_proj"
LLAMA = transformers_model("LlamaConfig", "LlamaModel", QKV, {"intermediate_size": 8, "num_key_value_heads": HEADS})
NEOX = transformers_model("GPTNeoXConfig", "GPTNeoXModel", "query_key_value", {"intermediate_size": 8})
COHERE = transformers_model("CohereConfig", "CohereModel", QKV, {"intermediate_size": 8, "num_key_value_heads": HEADS})
LLAMA_4 = transformers_model(
    "Llama4TextConfig", "Llama4TextModel", QKV,
    {"intermediate_size": 8, "intermediate_size_mlp": 8, "num_local_experts": 1, "num_key_value_heads": HEADS},
)  # fmt: skip
SCOUT = {
    "rope_type": "llama3", "rope_theta": 500_000.0, "factor": 16.0, "low_freq_factor": 1.0, "high_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip


def theta(base: float) -> Settings:
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base}}


# How each row is asked, and the values of published weights from the source in its last cell.
ROTATIONS: dict[str, tuple[Callable[[Settings], Rotation], Settings | None]] = {
    "transformers, Llama": (LLAMA, {"hidden_size": 4096, "num_attention_heads": 32, **theta(5e5)}),
    "transformers, GPT-NeoX": (NEOX, {"hidden_size": 6144, "num_attention_heads": 64, "rotary_pct": 0.25}),
    "transformers, GPT-J": (gptj, {"n_embd": 4096, "n_head": 16, "rotary_dim": 64}),
    "transformers, RoFormer": (roformer, {"hidden_size": 768, "num_attention_heads": 12, "max_position_embeddings": 1536}),
    "transformers, Cohere": (COHERE, {"hidden_size": 8192, "num_attention_heads": 64, **theta(8e6)}),
    "transformers, Llama 4": (LLAMA_4, {"head_dim": 128, "rope_parameters": SCOUT}),
    "x-transformers": (x_transformers, None),
    "rotary-embedding-torch": (rotary_embedding_torch, None),
    "onnx, `interleaved=0`": (onnx(0), None),
    "onnx, `interleaved=1`": (onnx(1), None),
    "posenc_course": (our_decoder, {"width": 16}),
}


def test_the_page_lists_the_rotations_that_are_asked_here() -> None:
    assert [*rows("pairs | direction")] == [*ROTATIONS]


@pytest.mark.parametrize("name", ROTATIONS)
def test_each_model_rotates_as_the_page_says(name: str) -> None:
    """At positions 0 and 1, where every channel is asked alone, and at all of a long text, where nothing may have drifted."""
    pairs, direction, *cells = rows("pairs | direction")[name]
    ask, values = ROTATIONS[name]
    for cell, settings in both(cells, values):
        rotate, width, longest = ask(settings)
        found = read_rotation(rotate, width)
        rotating = 2 * len(found.frequencies)
        slowest = 1 / found.frequencies[-1]
        assert pairs == ("neighbours" if found.interleaved else "halves")
        assert direction == ("counterclockwise" if found.counterclockwise else "clockwise")
        assert cell == f"{rotating} of {width}, {slowest:,.0f}"
        x = torch.randn(1, HEADS, min(longest, LENGTH), width, generator=torch.Generator().manual_seed(0))
        cos, sin = rope_tables(range(x.shape[2]), found.frequencies)
        expected = torch.cat(
            (apply_rope(x[..., :rotating], cos, sin, interleaved=found.interleaved), x[..., rotating:]), dim=-1
        )
        torch.testing.assert_close(rotate(x), expected, rtol=0, atol=2e-3)


def ours(x: Tensor, *, interleaved: bool = True) -> Tensor:
    return apply_rope(x, *rope_tables(range(x.shape[2]), frequencies(x.shape[-1])), interleaved=interleaved)


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


def one_backwards(x: Tensor, pair: int) -> Tensor:
    cos, sin = rope_tables(range(x.shape[2]), frequencies(x.shape[-1]))
    sin[:, pair] *= -1
    return apply_rope(x, cos, sin, interleaved=True)


def shuffled(x: Tensor) -> Tensor:
    order = torch.tensor([0, 3, 1, 2, *range(4, x.shape[-1])])
    return ours(x[..., order])[..., order.argsort()]


@pytest.mark.parametrize(
    ("rotate", "problem"),
    [
        (by_head, "along L"),
        (lambda x: torch.cat((x[..., :1, :], ours(x)[..., :-1, :]), dim=-2), "leaves position 1"),
        (lambda x: apply_rope(x, *rope_tables([1, 2], frequencies(x.shape[-1])), interleaved=True), "changes position 0"),
        (mixed, "different layouts"),
        *((partial(one_backwards, pair=pair), "a sign") for pair in range(8)),
        (shuffled, "neither neighbours nor halves"),
        (lambda x: x, "leaves position 1"),
    ],
    ids=["head axis", "late", "from 1", "mixed", *(f"pair {pair} backwards" for pair in range(8)), "shuffled", "nothing"],
)
def test_what_is_no_rotary_encoding_is_refused(rotate: Callable[[Tensor], Tensor], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_rotation(rotate, 16)


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

SMALL = {"vocab_size": 4}
TWO_STACKS = SMALL | {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


def table(kind: str, tiny: Settings, read: Callable[[Any], Tensor]) -> Callable[[Settings], Tensor]:
    """What `read` finds in a model of this kind."""
    return lambda settings: read(built(f"{kind}Model", configured(f"{kind}Config", tiny | settings))).detach()


def fairseq_rows(network: Any) -> Tensor:
    """Rows that fairseq's descendants look up by ids or a mask of tokens, none of them padding."""
    length = min(LENGTH, getattr(network.config, "max_position_embeddings", LENGTH))
    rows: Tensor = network.encoder.embed_positions(torch.full((1, length), 3))[0]
    return rows


def all_rows(network: Any) -> Tensor:
    rows: Tensor = network.encoder.embed_positions((1, network.config.max_position_embeddings))
    return rows


def scaled(_: Settings) -> Tensor:
    from x_transformers import Decoder as TheirDecoder
    from x_transformers import TransformerWrapper

    layers = TheirDecoder(dim=512, depth=1)
    embedding = TransformerWrapper(num_tokens=4, max_seq_len=LENGTH, attn_layers=layers, scaled_sinu_pos_emb=True).pos_emb
    assert embedding.scale.item() == pytest.approx(512**-0.5)
    table: Tensor = embedding(torch.zeros(1, LENGTH, 512)) / embedding.scale
    return table.detach()


def our_table(settings: Settings) -> Tensor:
    width = settings.get("d_model", 512)
    return SinusoidalPositions(width).embed(torch.zeros(1, LENGTH, width), torch.arange(LENGTH))[0]


TABLES: dict[str, tuple[Callable[[Settings], Tensor], Settings | None]] = {
    "transformers, Marian": (
        table("Marian", TWO_STACKS | {"pad_token_id": 3, "decoder_start_token_id": 3}, all_rows),
        {"d_model": 512, "max_position_embeddings": 512},
    ),
    "transformers, CTRL": (table("CTRL", SMALL | {"n_layer": 1, "dff": 8}, lambda n: n.pos_encoding), {"n_embd": 1280}),
    "transformers, DistilBERT": (
        table("DistilBert", SMALL | {"n_layers": 1, "hidden_dim": 8}, lambda n: n.embeddings.position_embeddings.weight),
        {"dim": 768, "sinusoidal_pos_embds": True},
    ),
    "transformers, Whisper": (
        table("Whisper", TWO_STACKS | dict.fromkeys(TOKENS, 3), lambda n: n.encoder.embed_positions.weight),
        {"d_model": 1280, "encoder_attention_heads": 20, "decoder_attention_heads": 20},
    ),
    "transformers, M2M-100": (table("M2M100", TWO_STACKS, fairseq_rows), {"d_model": 1024}),
    "transformers, Speech2Text": (table("Speech2Text", TWO_STACKS, fairseq_rows), {"d_model": 1024}),
    "x-transformers, scaled": (scaled, None),
    "posenc_course": (our_table, {"d_model": 64}),
}


def test_the_page_lists_the_tables_that_are_asked_here() -> None:
    assert [*rows("pairs | first")] == [*TABLES]


@pytest.mark.parametrize("name", TABLES)
def test_each_table_is_laid_out_as_the_page_says(name: str) -> None:
    pairs, first, position, *cells = rows("pairs | first")[name]
    ask, values = TABLES[name]
    for cell, settings in both(cells, values):
        table = ask(settings)
        if cell == "learned":
            with pytest.raises(ValueError, match="learned"):
                read_table(table)
            continue
        found = read_table(table)
        assert pairs == ("neighbours" if found.interleaved else "halves")
        assert first == ("sine" if found.sine_first else "cosine")
        assert position == str(found.first_position)
        assert cell == f"{table.shape[1]:,} wide, {1 / found.frequencies.min():,.0f}"


def test_the_table_of_m2m_100_is_ours_with_another_base() -> None:
    theirs = TABLES["transformers, M2M-100"][0]({}).double()
    length, d_model = theirs.shape
    table = sinusoidal_table(torch.arange(length) + 2, d_model, 10_000 ** (d_model / (d_model - 2)), interleaved=False)
    torch.testing.assert_close(table, theirs, rtol=0, atol=3e-4)


@given(
    pairs=st.integers(2, 40), base=st.floats(10, 1e6), interleaved=st.booleans(), start=st.integers(0, 50), flip=st.booleans()
)
def test_a_table_is_read_back(pairs: int, base: float, interleaved: bool, start: int, flip: bool) -> None:
    """In reverse order, its columns begin with the cosine, and the slowest pair comes first."""
    table = sinusoidal_table(range(start, start + 10), 2 * pairs, base, interleaved=interleaved)
    found = read_table(table.flip(1) if flip else table)
    assert found[:3] == (interleaved, not flip, start)
    omega = frequencies(2 * pairs, base)
    torch.testing.assert_close(found.frequencies, omega.flip(0) if flip else omega, rtol=1e-6, atol=1e-12)


def exchanged(pair: int) -> list[int]:
    """The columns, with the cosine first in one pair."""
    return [column ^ (column // 2 == pair) for column in range(16)]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (sinusoidal_table([0, 1, 3, 4], 16), "consecutive"),
        (0.1 * sinusoidal_table(range(4), 16), "unit circle"),
        (sinusoidal_table(range(4), 15), "even d"),
        (sinusoidal_table([3], 16), "L >= 2"),
        *((sinusoidal_table(range(4), 16)[:, exchanged(pair)], "evenly") for pair in range(8)),
    ],
    ids=["gap", "scaled", "odd", "one row", *(f"pair {pair} exchanged" for pair in range(8))],
)
def test_what_is_no_sinusoidal_table_is_refused(table: Tensor, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_table(table)


# ── biases ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def scores(run: Callable[[], Any]) -> Tensor:
    """What the first attention of a model hands to its softmax, or to torch's fused attention as a mask: (heads, L, L)."""
    seen: list[Tensor] = []

    def listening(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def listen(*arguments: Any, **rest: Any) -> Tensor:
            seen.append(rest.get("attn_mask", arguments[0]).clone())
            return function(*arguments, **rest)

        return listen

    with pytest.MonkeyPatch.context() as patch, torch.no_grad():
        for place, name in ((F, "softmax"), (F, "scaled_dot_product_attention"), (Tensor, "softmax")):
            patch.setattr(place, name, listening(getattr(place, name)))
        run()
    return seen[0][0]


def last_of_a_long_text(model: Any, config: Any) -> Tensor:
    """Scores of the last of 2,048 tokens, decoded with a cache, in a model whose weights are all 0: nothing but its bias."""
    from transformers import DynamicCache

    for parameter in model.parameters():
        parameter.data.zero_()
    cache, (heads, width) = DynamicCache(), shape(config)
    cache.update(*torch.zeros(2, 1, heads, LENGTH - 1, width), 0)
    return scores(lambda: model(torch.zeros(1, 1, dtype=torch.long), past_key_values=cache, use_cache=True))


def shape(config: Any) -> tuple[int, int]:
    heads: int = config.num_attention_heads
    return heads, config.hidden_size // heads


def written_out(kind: str, model: str, layers: str, implementation: str = "eager") -> Callable[[Settings], tuple[Tensor, int]]:
    def ask(settings: Settings) -> tuple[Tensor, int]:
        config = configured(kind, settings | {layers: 1, "vocab_size": 4, "attn_implementation": implementation})
        with torch.device("meta"):  # no time for random numbers
            empty = built(model, config)
        rotary = getattr(empty, "rotary_emb", None)
        network = empty.to_empty(device="cpu")
        if rotary is not None:
            network.rotary_emb = type(rotary)(config)  # Falcon asks it for angles that it does not use then
        for module in network.modules():
            if hasattr(module, "inv_norm_factor"):
                assert module.inv_norm_factor == pytest.approx(shape(config)[1] ** -0.5)
        return last_of_a_long_text(network, config)[:, -1], shape(config)[1]

    return ask


def their_alibi(_: Settings) -> tuple[Tensor, int]:
    from x_transformers import Decoder as TheirDecoder

    network = TheirDecoder(dim=16, depth=1, alibi_pos_bias=True).eval()  # 8 heads, 64 wide
    (attention,) = (module for module in network.modules() if hasattr(module, "to_q"))
    attention.to_q.weight.data.zero_()
    (attend,) = (module for module in network.modules() if hasattr(module, "attn_fn"))
    attend.attn_fn = lambda sim: F.softmax(sim, dim=-1)  # theirs was bound before we listen
    return scores(lambda: network(torch.zeros(1, LENGTH, 16)))[:, -1], 64


def our_alibi(settings: Settings) -> tuple[Tensor, int]:
    heads, width = settings.get("heads", 8), settings.get("width", 64)
    network: Any = Decoder(2, heads * width, heads, 1, AlibiPositions(heads)).eval()
    network.blocks[0].attention.query.weight.data.zero_()
    return scores(lambda: network(torch.zeros(1, LENGTH, dtype=torch.long)))[:, -1], width


RW = {
    "hidden_size": 2048, "num_attention_heads": 32, "alibi": True, "bias": True, "multi_query": False, "parallel_attn": False,
    "new_decoder_architecture": False,
}  # fmt: skip
ALIBI: dict[str, tuple[Callable[[Settings], tuple[Tensor, int]], Settings | None]] = {
    "transformers, BLOOM": (written_out("BloomConfig", "BloomModel", "n_layer"), {"hidden_size": 1024, "n_head": 16}),
    "transformers, MPT": (written_out("MptConfig", "MptModel", "n_layers"), {"d_model": 4096, "n_heads": 32}),
    "transformers, Falcon (sdpa)": (written_out("FalconConfig", "FalconModel", "num_hidden_layers", "sdpa"), RW),
    "transformers, Falcon (eager)": (written_out("FalconConfig", "FalconModel", "num_hidden_layers"), RW),
    "x-transformers": (their_alibi, None),
    "posenc_course": (our_alibi, {"heads": 4, "width": 16}),
}


def test_the_page_lists_the_alibis_that_are_asked_here() -> None:
    assert [*rows("written as")] == [*ALIBI]


@pytest.mark.parametrize("name", ALIBI)
def test_alibi_is_as_steep_and_as_fine_as_the_page_says(name: str) -> None:
    _, steepness, _, apart, *cells = rows("written as")[name]
    ask, values = ALIBI[name]
    for cell, settings in both(cells, values):
        if cell == "(RoPE)":
            assert not configured("FalconConfig", settings).alibi
            continue
        bias, width = ask(settings)
        assert cell == f"{len(bias)} heads, {width} wide"
        factor = {"slope": 1.0, "slope/√d_head": width**-0.5, "2·slope/√d_head": 2 * width**-0.5}[steepness]
        per_token = (bias[:, -1] - bias[:, 0]).double() / (LENGTH - 1)
        torch.testing.assert_close(per_token, factor * alibi_slopes(len(bias)), rtol=4e-3, atol=0)
        assert apart == f"{len(bias[0].unique()):,} of {LENGTH:,}"
        if apart == f"{LENGTH:,} of {LENGTH:,}":
            torch.testing.assert_close(bias.diff().double(), per_token[:, None].expand(-1, LENGTH - 1), rtol=0, atol=2e-4)


def test_falcon_rounds_its_bias_to_bfloat16_from_the_258th_token_on() -> None:
    """In a float32 model, position 257 gets the bias of 256 in every head; all before it stay apart if the slope is exact."""
    bias, _ = ALIBI["transformers, Falcon (sdpa)"][0](RW)
    assert torch.equal(bias[:, 256], bias[:, 257])
    assert len(bias[3, :257].unique()) == 257  # slope 1/2
    slopes = alibi_slopes(32).bfloat16()[:, None]
    assert torch.equal(bias * 8, (slopes * torch.arange(LENGTH)).float())
    assert (bias * 8 - alibi_slopes(32)[:, None] * torch.arange(LENGTH)).abs().max() > 4  # slope·n is off by so much


def test_falcon_in_transformers_5_gives_two_models_with_the_same_weights() -> None:
    """The bias once or twice, by implementation. This fails once they agree: then drop it here and on the page."""
    small = RW | {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1, "vocab_size": 8}
    outputs = []
    for implementation in ("sdpa", "eager"):
        model = built("FalconModel", configured("FalconConfig", small | {"attn_implementation": implementation}))
        outputs.append(model(torch.arange(8)[None]).last_hidden_state)
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3
    fused = built("FalconModel", configured("FalconConfig", small | {"attn_implementation": "sdpa"}))
    asked = scores(lambda: fused(torch.arange(8)[None], output_attentions=True))  # asked for weights, it is written out
    eager = built("FalconModel", configured("FalconConfig", small | {"attn_implementation": "eager"}))
    torch.testing.assert_close(asked, scores(lambda: eager(torch.arange(8)[None])))


class ByOffset(NamedTuple):
    """A bias by offset: scores (heads, L, L) of vectors given as queries and keys, its table, and the head's width."""

    score: Callable[[Tensor], Tensor]
    table: Tensor  # (buckets, heads) or (offsets, width)
    width: int
    upper: int = 16  # the rows from here on are for offsets above 0, or for keys on the other side


def t5(settings: Settings) -> ByOffset:
    tiny = {"num_layers": 1, "d_ff": 8, "vocab_size": 4, "attn_implementation": "eager"}
    network = built("T5EncoderModel", configured("T5Config", settings | tiny))
    attention = network.encoder.block[0].layer[0].SelfAttention

    def score(x: Tensor) -> Tensor:
        tokens = x.repeat(1, network.config.num_heads)[None]
        with given_vectors([attention.q, attention.k], tokens):
            return scores(lambda: network(torch.zeros(1, len(x), dtype=torch.long)))

    return ByOffset(score, attention.relative_attention_bias.weight.data, network.config.d_kv)


def their_t5(_: Settings) -> ByOffset:
    from x_transformers import Encoder as TheirEncoder

    network = TheirEncoder(dim=16, depth=1, rel_pos_bias=True).eval()  # 8 heads, 64 wide
    (attention,) = (module for module in network.modules() if hasattr(module, "to_q"))
    attention.attend.attn_fn = lambda sim: F.softmax(sim, dim=-1)  # theirs was bound before we listen

    def score(x: Tensor) -> Tensor:
        with given_vectors([attention.to_q, attention.to_k], x.repeat(1, 8)[None]):
            return scores(lambda: network(torch.zeros(1, len(x), 16)))

    (module,) = (module for module in network.modules() if hasattr(module, "relative_attention_bias"))
    return ByOffset(score, module.relative_attention_bias.weight.data, 64)


def wav2vec2_bert(settings: Settings) -> ByOffset:
    tiny = {"num_hidden_layers": 1, "intermediate_size": 8, "feature_projection_input_dim": 8, "apply_spec_augment": False}
    network = built("Wav2Vec2BertModel", configured("Wav2Vec2BertConfig", tiny | settings | {"attn_implementation": "eager"}))
    config, attention = network.config, network.encoder.layers[0].self_attn

    def score(x: Tensor) -> Tensor:
        tokens = x.repeat(1, config.num_attention_heads)[None]
        with given_vectors([attention.linear_q, attention.linear_k], tokens):
            return scores(lambda: network(torch.zeros(1, len(x), 8)))

    return ByOffset(score, attention.distance_embedding.weight.data, shape(config)[1], config.left_max_position_embeddings + 1)


def of_ours(make: Callable[[int], PositionScheme], upper: int) -> Callable[[Settings], ByOffset]:
    def ask(settings: Settings) -> ByOffset:
        width = settings.get("width", 64)
        scheme = make(width)
        network: Any = Encoder(2, 8 * width, 8, 1, scheme).eval()
        attention = network.blocks[0].attention

        def score(x: Tensor) -> Tensor:
            with given_vectors([attention.query, attention.key], x.repeat(1, 8)[None]):
                return scores(lambda: network(torch.zeros(1, len(x), dtype=torch.long)))

        (table,) = scheme.parameters()
        return ByOffset(score, table.data, width, upper)

    return ask


BY_OFFSET: dict[str, tuple[Callable[[Settings], ByOffset], Settings | None]] = {
    "transformers, T5": (t5, {"d_model": 1024, "d_kv": 128, "num_heads": HEADS}),
    "x-transformers, T5 bias": (their_t5, None),
    "transformers, Wav2Vec2-BERT (Shaw)": (wav2vec2_bert, {"hidden_size": 1024, "num_attention_heads": 16}),
    "posenc_course, T5 bias": (of_ours(lambda _: T5Positions(8, causal=False), 16), {"width": 16}),
    "posenc_course, Shaw": (of_ours(lambda width: ShawPositions(width, 16), 17), {"width": 16}),
}


def test_the_page_lists_the_biases_that_are_asked_here() -> None:
    assert [*rows("last rows are for")] == [*BY_OFFSET]


@pytest.mark.parametrize("name", BY_OFFSET)
def test_tables_are_laid_out_and_scores_divided_as_the_page_says(name: str) -> None:
    """Six equal tokens before a table that is 0 but in its upper rows, and then six different ones with a table of 0."""
    side, divided, times, *cells = rows("last rows are for")[name]
    ask, values = BY_OFFSET[name]
    for cell, settings in both(cells, values):
        score, table, width, upper = ask(settings)
        assert cell == f"{width} wide"
        table.zero_()
        if table.shape[1] == width:  # vectors, which meet the query
            table[upper:, 0] = 1
        else:
            table[upper:] = 1
        alike = torch.zeros(6, width)
        alike[:, 0] = 1
        favour = (score(alike)[0, 2, 4] - score(alike)[0, 2, 0]).item()
        assert side == ("later keys" if favour > 0 else "earlier keys")
        factor = {"1": 1.0, "√d_head": width**0.5, "1/√d_head": width**-0.5}[times]
        assert abs(favour) == pytest.approx(factor, rel=1e-4)
        table.zero_()
        x = torch.randn(6, width, generator=torch.Generator().manual_seed(0))
        divisor = {"yes": width**0.5, "no": 1.0}[divided]
        torch.testing.assert_close(score(x)[0], x @ x.T / divisor, rtol=1e-4, atol=1e-3)


def test_t5s_scores_come_out_of_the_others_as_the_page_converts_them() -> None:
    """Queries times √d_head for both; the table divided by it for x-transformers, and as it is for us."""
    theirs, divided, our = t5({}), their_t5({}), BY_OFFSET["posenc_course, T5 bias"][0]({})
    root, x = theirs.width**0.5, torch.randn(40, theirs.width, generator=torch.Generator().manual_seed(0))
    theirs.table.normal_(generator=torch.Generator().manual_seed(1))
    wanted = theirs.score(x)[0]
    # Queries and keys are given as one here, so that each gets half of the factor.
    divided.table.copy_(theirs.table / root)
    torch.testing.assert_close(divided.score(x * root**0.5)[0], wanted, rtol=1e-4, atol=1e-3)
    our.table.copy_(theirs.table)
    torch.testing.assert_close(our.score(x * root**0.5)[0], wanted, rtol=1e-4, atol=1e-3)
