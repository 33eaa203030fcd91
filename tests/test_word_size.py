"""The stored training at four widths: complete, and as the code gives it now."""

import json
from typing import Any

import pytest

from tools.lab import word_size
from tools.lab.word_size import Run

pytestmark = pytest.mark.slow
STORED = json.loads(word_size.TABLE.read_text(encoding="utf-8"))


def key(run: dict[str, Any]) -> Run:
    return Run(*(run[field] for field in Run._fields))


def test_every_run_is_stored_once() -> None:
    assert [key(run) for run in STORED["runs"]] == word_size.plan()
    assert STORED["config"]["steps"] == word_size.STEPS


def test_a_run_ends_when_it_has_learned_or_has_taken_all_steps() -> None:
    for run in STORED["runs"]:
        if run["learned"] is None:
            assert run["right"] < 0.9
        else:
            assert 10 <= run["learned"] <= word_size.STEPS
            assert run["right"] > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("start", ["σ = 1/√d", "σ = 1", "frozen, loud position"])
def test_a_run_made_now_learns_as_soon_as_the_stored_one(start: str) -> None:
    run = Run(start, 32, 3e-3, 0)
    (stored,) = (each for each in STORED["runs"] if key(each) == run)
    assert word_size.measure(run)["learned"] == pytest.approx(stored["learned"], rel=0.1)
