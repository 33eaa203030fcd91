"""The stored fees of chapter 15: complete, and of the models that the preset newer trains."""

import json
import re

import pytest

from posenc_course.experiment import load_results, scores
from tools import fees

TEXT = fees.TABLE.read_text(encoding="utf-8")
STORED = json.loads(TEXT)


def test_the_table_is_whole_and_says_where_it_comes_from() -> None:
    assert STORED["command"] == "python tools/fees.py"
    assert not re.search(r"[/\\](home|root|tmp|work|usr|Users)\b", TEXT)
    assert [(run["begins"], run["seed"]) for run in STORED["runs"]] == [
        (b, seed) for b in fees.BEGINNINGS for seed in (0, 1, 2)
    ]
    for run in STORED["runs"]:
        assert [len(head) for head in run["fees"]] == [128] * fees.CONFIG.num_heads
        assert [len(layer) for layer in run["means"]] == [fees.CONFIG.num_heads] * fees.CONFIG.num_layers
        assert min(fee for head in run["fees"] for fee in head) >= 0


@pytest.mark.parametrize("seed", range(3))
def test_the_losses_are_those_of_the_lab(seed: int) -> None:
    (run,) = [run for run in STORED["runs"] if (run["begins"], run["seed"]) == (0.95, seed)]
    assert run["nats"] == pytest.approx(scores(load_results("newer"), "forgetting")[seed].tolist(), abs=0.02)
