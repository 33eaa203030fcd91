"""The stored losses with sinks: complete, of the models that the preset newer trains, and with sinks that are what they say."""

import json
import math
from typing import Any, cast

import pytest
import torch
from torch import nn

from posenc_course.experiment import load_results, scores
from posenc_course.experiment.config import Run, build_model
from tools.lab import sinks

STORED = json.loads(sinks.TABLE.read_text(encoding="utf-8"))
RUN = Run("text", "rope", 0)


def test_the_table_is_whole() -> None:
    assert [run["seed"] for run in STORED["runs"]] == [*sinks.CONFIG.seeds]
    for run in STORED["runs"]:
        assert len(run["with"]) == len(run["without"]) == len(sinks.CONFIG.multiples)
        assert [len(layer) for layer in run["to_sinks"]] == [sinks.CONFIG.num_heads] * sinks.CONFIG.num_layers
        assert all(0 < share < 1 for layer in run["to_sinks"] for share in layer)


@pytest.mark.parametrize("seed", sinks.CONFIG.seeds)
def test_the_losses_without_sinks_are_those_of_the_lab(seed: int) -> None:
    (run,) = [run for run in STORED["runs"] if run["seed"] == seed]
    assert run["without"] == pytest.approx(scores(load_results("newer"), "rope")[seed].tolist(), abs=0.1)
    assert run["without"][0] == pytest.approx(scores(load_results("newer"), "rope")[seed, 0].item(), abs=0.02)


def test_a_sink_is_one_more_key_with_the_value_0() -> None:
    torch.manual_seed(0)
    layer = cast(Any, sinks.sunk(sinks.CONFIG, RUN).blocks[0]).attention
    layer.scheme.sink.data = torch.tensor([[-1.0], [0.0], [1.0], [4.0]])
    x, m = torch.randn(2, 20, sinks.CONFIG.d_model), torch.arange(20)
    with torch.no_grad():
        q, k, v = (layer._split(project(x)) for project in (layer.query, layer.key, layer.value))
        q, k = layer.scheme.rotate(q, k, m, m)
        masked = torch.where(m <= m[:, None], q @ k.mT / math.sqrt(q.shape[-1]), -math.inf)
        with_sink = torch.cat((masked, layer.scheme.sink[:, None].expand(2, -1, 20, 1)), dim=-1).softmax(dim=-1)
        by_head = with_sink[..., :-1] @ v
        expected = nn.functional.linear(by_head.transpose(1, 2).flatten(2), layer.output.weight, layer.output.bias)
        assert torch.allclose(layer(x, m), expected, atol=1e-5)
        assert torch.allclose(1 - layer.scheme.kept, with_sink[..., -1], atol=1e-5)


def test_a_sink_begins_with_the_weights_of_a_model_without() -> None:
    with_sinks = dict(sinks.sunk(sinks.CONFIG, RUN).named_parameters())
    for name, weights in build_model(sinks.CONFIG, RUN).named_parameters():
        assert torch.equal(weights, with_sinks[name])
