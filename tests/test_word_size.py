"""The stored training at four widths: complete, and as the code gives it now."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from tools.lab import word_size
from tools.lab.word_size import Run

pytestmark = pytest.mark.slow
STORED = json.loads(word_size.TABLE.read_text(encoding="utf-8"))


def key(run: dict[str, Any]) -> Run:
    return Run(*(run[field] for field in Run._fields))


def test_results_say_how_they_were_made() -> None:
    made = STORED["made"]
    assert date.fromisoformat(made["date"]) >= date(2025, 1, 1)
    assert made["machine"]["processor"]
    assert made["versions"].keys() == {"python", "torch", "numpy"}


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


def test_an_interrupted_call_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [Run("σ = 1", 32, 3e-3, seed) for seed in (0, 1)] + [Run("σ = 1", 64, 3e-3, 0)]
    trained: list[Run] = []

    def measure(run: Run) -> dict[str, Any]:
        trained.append(run)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return run._asdict() | {"learned": 10}

    monkeypatch.setattr(word_size, "plan", lambda: runs)
    monkeypatch.setattr(word_size, "measure", measure)
    table = tmp_path / "word_size.json"
    with pytest.raises(KeyboardInterrupt):
        word_size.main([32], tmp_path / "runs", table)
    word_size.main([32], tmp_path / "runs", table)
    assert trained == [runs[0], runs[1], runs[1]]
    assert not table.exists()
    word_size.main([32, 64], tmp_path / "runs", table)
    assert trained[3:] == [runs[2]]
    assert [key(run) for run in json.loads(table.read_text(encoding="utf-8"))["runs"]] == runs
