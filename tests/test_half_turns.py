"""The stored angles of the page below chapter 15: complete, and of the models that the preset newer trains."""

import json

import pytest
import torch

from posenc_course.experiment import load_results, scores
from tools.lab import half_turns

STORED = json.loads(half_turns.TABLE.read_text(encoding="utf-8"))


def test_the_table_is_whole() -> None:
    assert [run["seed"] for run in STORED["runs"]] == [0, 1, 2]


@pytest.mark.parametrize("run", STORED["runs"], ids=lambda run: f"seed {run['seed']}")
def test_the_pair_and_its_steps_follow_from_the_steps_of_all_pairs(run: dict[str, object]) -> None:
    pair, wanted = half_turns.nearest(torch.tensor(run["steps"]))
    assert pair == run["pair"]
    assert wanted.tolist() == pytest.approx(run["wanted"], abs=1e-4)


@pytest.mark.parametrize("run", STORED["runs"], ids=lambda run: f"seed {run['seed']}")
def test_the_right_answers_up_to_32_tokens_are_those_of_the_lab(run: dict[str, object]) -> None:
    lab = scores(load_results("newer"), "selective", part="parity", how="accuracy")
    assert run["right"][0] == pytest.approx(lab[run["seed"], 0].item(), abs=0.01)  # type: ignore[index]
