"""The stored experiments of the third round: reproducible, with schemes that do what they say."""

import json

import pytest
import torch
import torch.nn.functional as F

from posenc_course.attention import attention_weights, causal_mask
from posenc_course.experiment import preset
from posenc_course.experiment.corpus import DATA
from posenc_course.rope import RotaryPositions
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder
from tools.lab import third_round
from tools.lab.second_round import CONFIG, Run, trained

STORED = json.loads(third_round.TABLE.read_text(encoding="utf-8"))
FOUND = {Run(record["prediction"], record["what"], record["seed"]): record["found"] for record in STORED["runs"]}
POSITIONS = torch.arange(7)


@pytest.mark.slow
def test_a_run_made_now_is_the_stored_one() -> None:
    run = Run("key-offset", "recall-1 offset-rope 0.003", 0)
    assert third_round.measure(run)["found"] == pytest.approx(FOUND[run], abs=0.1)


@pytest.mark.parametrize("name", [*third_round.BUILD])
def test_a_scheme_sees_no_later_token_and_learns_with_all_its_weights(name: str) -> None:
    torch.manual_seed(0)
    model = third_round.convolved(Decoder(50, 64, 4, 4, third_round.BUILD[name](CONFIG)))
    for module in model.modules():
        if isinstance(module, third_round.ShortConvolution):
            torch.nn.init.normal_(module.weight)
    tokens = torch.randint(50, (2, 40))
    changed = torch.cat((tokens[:, :30], (tokens[:, 30:] + 1) % 50), dim=1)
    outputs = model(tokens)
    torch.testing.assert_close(model(changed)[:, :30], outputs[:, :30])
    outputs.logsumexp(dim=-1).sum().backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


def test_inkling_s_bias_is_that_of_the_test_vectors() -> None:
    vectors = json.loads((DATA / "vectors" / "biases.json").read_text(encoding="utf-8"))["vectors"]
    (vector,) = (vector for vector in vectors if vector["given"]["type"] == "inkling")
    r, table = (torch.tensor(vector["given"][name], dtype=torch.float64) for name in ("r", "table"))
    scheme = third_round.InklingPositions(r.shape[1], 1, *table.shape).double()
    scheme.table.data, scheme.feature.weight.data = table, torch.eye(r.shape[1], dtype=torch.float64)
    located = scheme.locate(r[None], torch.arange(len(r)) + 100, None)
    expected = torch.tensor([[float(entry) for entry in row] for row in vector["bias"]["exact"]], dtype=torch.float64)
    torch.testing.assert_close(scheme.bias(torch.zeros(1, 1, len(r), 1), located, located)[0, 0], expected, rtol=0, atol=1e-9)


def test_learned_frequencies_begin_as_rope_s_and_can_double() -> None:
    scheme, plain, x = (
        third_round.LearnedRotaryPositions(frequencies(8)),
        RotaryPositions(frequencies(8)),
        torch.randn(1, 2, 7, 8),
    )
    torch.testing.assert_close(scheme.rotate(x, x, POSITIONS, POSITIONS), plain.rotate(x, x, POSITIONS, POSITIONS))
    torch.nn.init.constant_(scheme.learned, torch.tensor(2.0).log().item())
    twice = plain.rotate(x, x, 2 * POSITIONS, 2 * POSITIONS)
    torch.testing.assert_close(scheme.rotate(x, x, POSITIONS, POSITIONS), twice)


def test_keys_that_do_not_rotate_come_from_the_token_before() -> None:
    scheme, x = third_round.OffsetRotaryPositions(frequencies(4)), torch.randn(1, 2, 7, 8)
    q, k = scheme.rotate(x, x, POSITIONS, POSITIONS)
    plain = RotaryPositions(frequencies(4)).rotate(x, x, POSITIONS, POSITIONS)[0]
    torch.testing.assert_close(q, plain)
    torch.testing.assert_close(k[..., :4], plain[..., :4])
    torch.testing.assert_close(k[..., 1:, 4:], x[..., :-1, 4:])
    torch.testing.assert_close(k[..., 0, 4:], x[..., 0, 4:])


def test_a_learned_logarithm_multiplies_the_scores() -> None:
    scheme, x = third_round.LogarithmicPositions(RotaryPositions(frequencies(8)), 2), torch.randn(1, 2, 7, 8)
    plain = scheme.scheme.rotate(x, x, POSITIONS, POSITIONS)
    torch.testing.assert_close(scheme.rotate(x, x, POSITIONS, POSITIONS), plain)
    scheme.learned.data = torch.tensor([[0.5, 2.0], [1.0, 0.0]])
    q = scheme.rotate(x, x, POSITIONS, POSITIONS)[0]
    torch.testing.assert_close(q[:, 0, 6], plain[0][:, 0, 6] * (0.5 + torch.tensor(7.0).log()))
    torch.testing.assert_close(q[:, 1], 2 * plain[0][:, 1])


def test_a_recurrent_layer_with_rope_forgets_and_rotates() -> None:
    torch.manual_seed(0)
    scheme, x, q = third_round.RotaryRecurrentPositions(8, 2, frequencies(4)), torch.randn(2, 7, 8), torch.randn(2, 2, 7, 4)
    located = scheme.locate(x, POSITIONS, None)
    gates = super(third_round.RotaryRecurrentPositions, scheme).locate(x, POSITIONS, None)
    torch.testing.assert_close(scheme.bias(q, located, located), gates.mT - gates)
    torch.testing.assert_close(scheme.rotate(q, q, located, located), scheme.rope.rotate(q, q, POSITIONS, POSITIONS))
    first = scheme.locate(x[:, :4], POSITIONS[:4], None)
    torch.testing.assert_close(scheme.locate(x[:, 4:], POSITIONS[4:], first[:, :, -1:]), located[:, :, 4:])


def test_a_stick_is_broken_key_by_key() -> None:
    torch.manual_seed(0)
    scheme, (q, k) = third_round.StickPositions(), torch.randn(2, 1, 1, 7, 4, dtype=torch.float64)
    scheme.rotate(q, k, POSITIONS, POSITIONS)
    bias, mask = scheme.bias(q, POSITIONS, POSITIONS), causal_mask(POSITIONS, POSITIONS)
    share = torch.sigmoid(q @ k.mT / 2)[0, 0]
    for m, weights in enumerate(attention_weights(q, k, bias=bias, mask=mask)[0, 0]):
        left = 1.0
        for n in range(m - 1, -1, -1):
            assert weights[n].item() == pytest.approx(left * share[m, n].item())
            left *= 1 - share[m, n].item()
        assert weights[m].item() == pytest.approx(left)


def test_a_short_convolution_is_torch_s_and_begins_as_nothing() -> None:
    layer, x = third_round.ShortConvolution(5), torch.randn(2, 7, 5)
    assert layer(x).equal(x)
    torch.nn.init.normal_(layer.weight)
    kernel = layer.weight.T.flip(-1).unsqueeze(1)  # torch's last weight is for the token itself
    torch.testing.assert_close(layer(x), x + F.conv1d(F.pad(x.mT, (3, 0)), kernel, groups=5).mT)


@pytest.mark.parametrize("name", [*third_round.BUILD])
def test_the_lab_trains_a_scheme_with_convolutions(name: str) -> None:
    config = preset("newer", task_steps=1, task_length=16)
    model, found = trained("recall", "none", 0, third_round.BUILD[name], config, third_round.convolved)
    assert len(found) == len(CONFIG.multiples)
    layers = [module for module in model.modules() if isinstance(module, third_round.ShortConvolution)]
    assert len(layers) == 4
    assert all(layer.weight.count_nonzero() for layer in layers)
