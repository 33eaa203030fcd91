"""The stored experiments of the second round: as the code gives them now, and measured as they say."""

import json

import pytest
import torch

from posenc_course.rope import RotaryPositions
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder
from tools.lab import second_round
from tools.lab.second_round import Run

STORED = json.loads(second_round.TABLE.read_text(encoding="utf-8"))
FOUND = {Run(record["prediction"], record["what"], record["seed"]): record["found"] for record in STORED["runs"]}


@pytest.mark.slow
@pytest.mark.parametrize(("prediction", "what"), [("t5-trained", "16 buckets up to 8"), ("cache-positions", "window")])
def test_a_run_made_now_is_the_stored_one(prediction: str, what: str) -> None:
    run = Run(prediction, what, 0)
    assert second_round.measure(run)["found"] == pytest.approx(FOUND[run], abs=0.1 if prediction == "t5-trained" else 2e-4)


@pytest.mark.parametrize("within", [False, True])
def test_a_query_beside_the_first_keys_is_as_if_it_had_read_only_what_is_kept(within: bool) -> None:
    """In a single layer, keys and values don't depend on what was dropped, so the model can read the kept tokens alone."""
    torch.manual_seed(0)
    rope, first, kept = RotaryPositions(frequencies(8)), 3, 10
    model, tokens = Decoder(50, 16, 2, 1, rope).double(), torch.randint(50, (2, 30))
    seen = torch.tensor([*range(first), *range(30 - kept + first, 30)])
    alone = model(tokens[:, seen], torch.arange(kept) if within else seen)
    beside = second_round.with_schemes(model, lambda scheme: second_round.KeptPositions(rope, first, kept, within=within))(
        tokens
    )
    torch.testing.assert_close(beside[:, -1], alone[:, -1], rtol=0, atol=1e-12)
    torch.testing.assert_close(beside[:, :kept], model(tokens)[:, :kept], rtol=0, atol=1e-12)


def test_a_short_convolution_adds_a_map_of_the_vector_before() -> None:
    scheme, x = second_round.ShortPositions(8, 2), torch.randn(1, 5, 8)
    expected = x.clone()
    expected[:, 1:] += x[:, :-1] @ scheme.short.weight.T
    torch.testing.assert_close(scheme.embed(x, torch.arange(5)), expected)
