"""Attention and the Transformer: equal to PyTorch's, blind to order without positions, and the same with a cache."""

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import posenc_course
from posenc_course.alibi import AlibiPositions
from posenc_course.attention import MultiHeadAttention, attention, causal_mask
from posenc_course.contextual import ForgettingPositions, RecurrentPositions, ReflectedPositions, SelectiveRotaryPositions
from posenc_course.learned import LearnedPositions
from posenc_course.naive import BinaryPositions, LinearPositions, NormalizedPositions
from posenc_course.nope import NoPositions
from posenc_course.polar import PolarPositions
from posenc_course.relative import ShawPositions, T5Positions, WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import DynamicNTKPositions, yarn, yarn_attention_factor
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies
from posenc_course.temperature import ScaledPositions, log_factor
from posenc_course.transformer import Decoder, Encoder, Transformer
from tests.tensors import normal32

# All sizes differ, so that a mixed-up axis can't go unnoticed.
BATCH, HEADS, LENGTH, D_HEAD, VOCAB = 2, 3, 5, 4, 11
D_MODEL = HEADS * D_HEAD


# Every scheme of the package that can be decoded token by token; the other two have tests of their own below.
CACHEABLE: dict[str, Callable[[], PositionScheme]] = {
    "none": NoPositions,
    "linear": lambda: LinearPositions(D_MODEL),
    "binary": lambda: BinaryPositions(D_MODEL, num_bits=7),
    "sinusoidal": lambda: SinusoidalPositions(D_MODEL),
    "learned": lambda: LearnedPositions(64, D_MODEL, std=1.0),
    "shaw": lambda: ShawPositions(D_HEAD, max_offset=2),
    "t5": lambda: scaled(T5Positions(HEADS, num_buckets=6, max_distance=9, causal=False)),
    "rope": lambda: RotaryPositions(frequencies(D_HEAD)),
    "rope-half": lambda: RotaryPositions(frequencies(D_HEAD), interleaved=False),
    "rope-partial": lambda: RotaryPositions(frequencies(2)),
    "rope-yarn": lambda: RotaryPositions(yarn(frequencies(D_HEAD), 4, 16), attention_factor=yarn_attention_factor(4)),
    "alibi": lambda: AlibiPositions(HEADS),
    "window": lambda: WindowedPositions(RotaryPositions(frequencies(D_HEAD)), 3),
    "window-alibi": lambda: WindowedPositions(AlibiPositions(HEADS), 3),
    "polar": lambda: PolarPositions(D_HEAD, HEADS),
    "forgetting": lambda: ForgettingPositions(D_MODEL, HEADS),
    "recurrent": lambda: RecurrentPositions(D_MODEL, HEADS),
    "selective": lambda: SelectiveRotaryPositions(D_MODEL, HEADS, frequencies(D_HEAD)),
    "reflected": lambda: ReflectedPositions(D_MODEL, HEADS),
    "scaled": lambda: ScaledPositions(RotaryPositions(frequencies(D_HEAD)), lambda positions: log_factor(positions, 2)),
    "scaled-shaw": lambda: ScaledPositions(ShawPositions(D_HEAD, max_offset=2), lambda positions: log_factor(positions, 2)),
}


def scaled(scheme: T5Positions) -> T5Positions:
    """Weights far from their start, where a model's outputs would hardly differ."""
    with torch.no_grad():
        scheme.table.mul_(50)
    return scheme


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def model(
    kind: type[Encoder] | type[Decoder], scheme: PositionScheme | list[PositionScheme] | None = None, layers: int = 2
) -> Transformer:
    torch.manual_seed(0)
    return kind(VOCAB, D_MODEL, HEADS, layers, scheme).double().eval()


def tokens() -> Tensor:
    """Different ones in each sequence, so that every permutation matters."""
    rng = generator()
    return torch.stack([torch.randperm(VOCAB, generator=rng)[:LENGTH] for _ in range(BATCH)])


# ── attention against PyTorch ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bias_shape", [None, (LENGTH, 7), (HEADS, LENGTH, 7), (BATCH, 1, LENGTH, 7)])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_pytorch(bias_shape: tuple[int, ...] | None, masked: bool) -> None:
    """softmax(q·k/√d_head + bias)·v, with a bias of any broadcastable shape and a boolean mask; L_key = 7 ≠ L_query."""
    rng = generator()
    q, k, v = (torch.randn(BATCH, HEADS, n, d, generator=rng) for n, d in ((LENGTH, D_HEAD), (7, D_HEAD), (7, 6)))
    bias = None if bias_shape is None else torch.randn(bias_shape, generator=rng)
    mask = (torch.rand(LENGTH, 7, generator=rng) < 0.6) | (torch.arange(7) == 0) if masked else None
    additive = torch.zeros(LENGTH, 7) if bias is None else bias
    expected = F.scaled_dot_product_attention(q, k, v, additive if mask is None else additive.masked_fill(~mask, -math.inf))
    torch.testing.assert_close(attention(q, k, v, bias=bias, mask=mask), expected, rtol=0, atol=2e-6)


def test_causal_mask_compares_positions_not_indices() -> None:
    """Row: query. A cached decoder asks at position 3 about 0 … 3; each sequence of a batch may have positions of its own."""
    assert causal_mask(torch.tensor([3, 1]), torch.arange(4)).tolist() == [[True] * 4, [True, True, False, False]]
    assert causal_mask(torch.tensor([[0, 1], [9, 8]]), torch.tensor([[0, 1], [9, 8]])).tolist() == [
        [[True, False], [True, True]],
        [[True, True], [False, True]],
    ]


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_attention_equals_pytorch(causal: bool) -> None:
    ours = MultiHeadAttention(D_MODEL, HEADS, PositionScheme(), causal=causal)
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, bias=False, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.out_proj.weight.copy_(ours.output.weight)
    x = normal32(BATCH, LENGTH, D_MODEL)
    forbidden = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1) if causal else None
    expected, _ = theirs(x, x, x, attn_mask=forbidden, need_weights=False)
    torch.testing.assert_close(ours(x, torch.arange(LENGTH)), expected, rtol=0, atol=2e-6)


def test_encoder_equals_pytorchs_pre_ln_layers() -> None:
    """Both residual sums, both norms, the MLP, the last norm and the head; PyTorch's attention biases are 0."""
    encoder = model(Encoder)
    with torch.no_grad():  # norms start as 1 and 0, all of them alike: one in the other's place would make no difference
        for name, parameter in encoder.named_parameters():
            if "norm" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    x = encoder.embedding(tokens())
    for block in encoder.blocks:
        layer = nn.TransformerEncoderLayer(D_MODEL, HEADS, 4 * D_MODEL, 0.0, "gelu", batch_first=True, norm_first=True).double()
        ours, theirs = block.state_dict(), layer.state_dict()
        for name in ("self_attn.in_proj_bias", "self_attn.out_proj.bias"):
            theirs[name].zero_()
        theirs["self_attn.in_proj_weight"] = torch.cat([ours[f"attention.{name}.weight"] for name in ("query", "key", "value")])
        theirs["self_attn.out_proj.weight"] = ours["attention.output.weight"]
        for name, part in {"norm1": "attention_norm", "norm2": "mlp_norm", "linear1": "mlp.0", "linear2": "mlp.2"}.items():
            for kind in ("weight", "bias"):
                theirs[f"{name}.{kind}"] = ours[f"{part}.{kind}"]
        layer.load_state_dict(theirs)
        x = layer(x)
    torch.testing.assert_close(encoder(tokens()), encoder.head(encoder.norm(x)), rtol=0, atol=1e-12)


# ── order ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_encoder_without_positions_is_equivariant() -> None:
    encoder, permutation = model(Encoder), torch.randperm(LENGTH, generator=generator())
    torch.testing.assert_close(encoder(tokens()[:, permutation]), encoder(tokens())[:, permutation], rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CACHEABLE if name != "none"])
def test_every_scheme_breaks_equivariance(name: str) -> None:
    encoder, permutation = model(Encoder, CACHEABLE[name]()), torch.randperm(LENGTH, generator=generator())
    assert (encoder(tokens()[:, permutation]) - encoder(tokens())[:, permutation]).abs().max() > 1e-3


def test_causal_mask_lets_order_in_from_layer_2() -> None:
    """The last token sees the set of all tokens. After one layer, it knows no more; after two, which token saw which."""
    swapped = tokens()[:, [1, 0, *range(2, LENGTH)]]
    one, two = model(Decoder, layers=1), model(Decoder, layers=2)
    torch.testing.assert_close(one(swapped)[:, -1], one(tokens())[:, -1], rtol=0, atol=1e-12)
    assert (two(swapped)[:, -1] - two(tokens())[:, -1]).abs().max() > 1e-4


@pytest.mark.parametrize("name", CACHEABLE)
def test_decoder_does_not_look_ahead(name: str) -> None:
    """Changing the last token leaves every earlier output as it was; in an encoder it does not."""
    changed = tokens()
    changed[:, -1] = (changed[:, -1] + 1) % VOCAB
    decoder, encoder = model(Decoder, CACHEABLE[name]()), model(Encoder, CACHEABLE[name]())
    assert torch.equal(decoder(changed)[:, :-1], decoder(tokens())[:, :-1])
    assert (encoder(changed)[:, :-1] - encoder(tokens())[:, :-1]).abs().max() > 1e-4


# ── the three doors ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", CACHEABLE)
def test_every_scheme_works_in_half_precision(name: str, dtype: torch.dtype) -> None:
    plain = model(Decoder, CACHEABLE[name]())
    outputs = model(Decoder, CACHEABLE[name]()).to(dtype)(tokens())
    assert outputs.dtype == dtype
    torch.testing.assert_close(outputs.double(), plain(tokens()), rtol=0, atol=0.05 if dtype == torch.bfloat16 else 0.01)


GIVEN = [name for name in CACHEABLE if type(CACHEABLE[name]()).locate is PositionScheme.locate]  # whatever the tokens are


@pytest.mark.parametrize("name", GIVEN)
def test_queries_and_keys_get_their_own_positions(name: str) -> None:
    """The last seven of nine tokens as queries, and the first seven as keys: what they get among all nine."""
    scheme, m, last, first = CACHEABLE[name](), torch.arange(9), slice(2, 9), slice(7)
    q, k = normal32(BATCH, HEADS, 9, D_HEAD), normal32(BATCH, HEADS, 9, D_HEAD, seed=1)
    some = q[:, :, last], k[:, :, first], m[last], m[first]
    for found, whole, part in zip(scheme.rotate(*some), scheme.rotate(q, k, m, m), (last, first), strict=True):
        torch.testing.assert_close(found, whole[:, :, part], rtol=0, atol=1e-6)
    bias, of_all = scheme.bias(some[0], *some[2:]), scheme.bias(q, m, m)
    assert (bias is None) == (of_all is None)
    if bias is not None and of_all is not None:
        torch.testing.assert_close(bias, of_all[..., last, first], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", GIVEN)
def test_positions_are_not_rounded_with_activations(name: str) -> None:
    """In bfloat16, 1,001 and 1,000 are the same number: nothing but the last of the results may be rounded to it."""
    scheme, m, n = CACHEABLE[name](), torch.arange(1000, 1009), torch.arange(998, 1007)
    q, k = (normal32(BATCH, HEADS, 9, D_HEAD, seed=seed).bfloat16() for seed in (0, 1))
    whole = [*scheme.rotate(q.float(), k.float(), m, n), scheme.bias(q.float(), m, n)]
    found = [*scheme.rotate(q, k, m, n), scheme.bias(q, m, n)]
    for one, other in zip(found, whole, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(one.float(), other, rtol=0.02, atol=0.05)


def test_list_gives_every_layer_its_scheme() -> None:
    """With RoPE in the first layer and none in the second: what a decoder with only that layer does, one after the other."""
    rope, none = RotaryPositions(frequencies(D_HEAD)), NoPositions()
    mixed, first, second = model(Decoder, [rope, none]), model(Decoder, rope), model(Decoder, none)
    for other in (first, second):
        other.load_state_dict(mixed.state_dict())
    m, x = torch.arange(LENGTH), mixed.embedding(tokens())
    expected = second.blocks[1](first.blocks[0](x, m), m)
    torch.testing.assert_close(mixed(tokens()), mixed.head(mixed.norm(expected)), rtol=0, atol=0)
    assert not torch.allclose(mixed(tokens()), first(tokens()))
    assert mixed.scheme is rope
    again = decode(mixed, tokens(), [1] * LENGTH)
    torch.testing.assert_close(again, mixed(tokens()), rtol=0, atol=1e-12)


# ── cached decoding ──────────────────────────────────────────────────────────────────────────────────────────────────────


def decode(decoder: Transformer, ids: Tensor, chunks: list[int], positions: Tensor | None = None) -> Tensor:
    """Outputs of decoding chunk by chunk."""
    assert isinstance(decoder, Decoder)
    caches, outputs, start = decoder.new_caches(), [], 0
    for size in chunks:
        part = slice(start, start + size)
        outputs.append(decoder(ids[:, part], None if positions is None else positions[..., part], caches))
        start += size
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("chunks", [[1] * LENGTH, [2, 1, 2]], ids=str)
@pytest.mark.parametrize("name", CACHEABLE)
def test_cached_decoding_equals_one_pass(name: str, chunks: list[int]) -> None:
    """With positions left out, shared with an offset, and per sequence."""
    decoder = model(Decoder, CACHEABLE[name]())
    own = torch.stack([torch.arange(LENGTH), torch.arange(40, 40 + 2 * LENGTH, 2)])
    for positions in (None, torch.arange(17, 17 + LENGTH), own):
        whole = decoder(tokens(), positions)
        torch.testing.assert_close(decode(decoder, tokens(), chunks, positions), whole, rtol=0, atol=1e-12)


def test_normalized_positions_cannot_be_cached() -> None:
    """Each new token is the last one when it comes: the one pass and the cached one differ, from the second token on."""
    decoder = model(Decoder, NormalizedPositions(D_MODEL))
    difference = (decode(decoder, tokens(), [1] * LENGTH) - decoder(tokens())).abs().amax(dim=(0, 2))
    assert difference[0] < 1e-12
    assert (difference[1:-1] > 1e-3).all()


def test_every_scheme_of_the_package_is_tried() -> None:
    """None is left out of the tests above."""
    for info in pkgutil.iter_modules(posenc_course.__path__, "posenc_course."):
        importlib.import_module(info.name)
    tried = {type(make()) for make in CACHEABLE.values()} | {NormalizedPositions, DynamicNTKPositions}
    # The lab's two wrap a scheme, and have tests of their own.
    kinds = {
        kind for kind in every_subclass(PositionScheme) if kind.__name__[0] != "_" and ".experiment" not in kind.__module__
    }
    assert not kinds - tried, f"add to CACHEABLE, above, {', '.join(kind.__name__ for kind in kinds - tried)}"


def every_subclass(kind: type[PositionScheme]) -> Iterator[type[PositionScheme]]:
    """Those of the package, at any depth."""
    for child in kind.__subclasses__():
        if child.__module__.startswith("posenc_course."):
            yield child
            yield from every_subclass(child)


# ── padding ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def padded(kind: type[Encoder] | type[Decoder], name: str, side: str) -> tuple[Tensor, Tensor]:
    """Outputs of the first three tokens of the second sequence, alone and beside a longer one, padded with token 7."""
    network, ids = model(kind, CACHEABLE[name]()), tokens()
    short, fill = ids[1, :3], torch.full((LENGTH - 3,), 7)
    row = torch.cat((fill, short) if side == "left" else (short, fill))
    padding = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    padding[1] = torch.arange(LENGTH) < LENGTH - 3 if side == "left" else torch.arange(LENGTH) >= 3
    both = network(torch.stack((ids[0], row)), padding=padding)
    torch.testing.assert_close(both[:1], network(ids[:1]), rtol=0, atol=1e-12)
    return network(short[None])[0], both[1][~padding[1]]


@pytest.mark.parametrize("kind", [Encoder, Decoder])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("name", CACHEABLE)
def test_padding_changes_nothing(kind: type[Encoder] | type[Decoder], name: str, side: str) -> None:
    """A sequence padded on either side comes out as it does alone: no token attends to padding, which isn't counted."""
    alone, beside = padded(kind, name, side)
    torch.testing.assert_close(beside, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CACHEABLE)
def test_decoding_after_left_padding_equals_decoding_alone(name: str) -> None:
    decoder = model(Decoder, CACHEABLE[name]())
    assert isinstance(decoder, Decoder)
    padding = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    padding[1, :2] = True
    caches = decoder.new_caches()
    prompt = decoder(tokens()[:, :3], caches=caches, padding=padding[:, :3])
    steps = [decoder(tokens()[:, i : i + 1], caches=caches, padding=padding[:, : i + 1]) for i in range(3, LENGTH)]
    decoded = torch.cat((prompt, *steps), dim=1)
    torch.testing.assert_close(decoded[:1], decoder(tokens()[:1]), rtol=0, atol=1e-12)
    torch.testing.assert_close(decoded[1:, 2:], decoder(tokens()[1:, 2:]), rtol=0, atol=1e-12)
