"""The stored reference of chapters 8 and 12: complete, and as the code gives it now."""

import re

import pytest

from posenc_course.experiment import load_results, scores
from posenc_course.experiment.report import records
from posenc_course.experiment.runs import train_run
from tools import no_positions

STORED = load_results(no_positions.TABLE)


def test_results_say_where_they_come_from_and_name_no_machine() -> None:
    assert STORED["command"] == "python tools/no_positions.py"
    assert STORED["config"] == no_positions.CONFIG.as_json() == load_results("full")["config"]
    assert not re.search(r"[/\\](home|root|tmp|work|usr|Users)\b", no_positions.TABLE.read_text(encoding="utf-8"))


def test_every_run_is_stored_once() -> None:
    stored = [(run["part"], run["scheme"], run["seed"], run["setting"]) for run in STORED["runs"]]
    assert stored == [(run.part, run.scheme, run.seed, run.setting) for run in no_positions.plan()]


@pytest.mark.slow
def test_a_run_made_now_ends_where_the_stored_one_did() -> None:
    run = next(run for run in no_positions.plan() if run.setting == "0.003")
    _, record = train_run(no_positions.CONFIG, run)
    now = record["evaluation"]["plain"]["nonoverlapping"]["64"]
    assert now == pytest.approx(scores(STORED, "none", part="rate", setting="0.003")[0, 0].item(), abs=0.01)
    assert len(record["losses"]) == len(records(STORED, "rate", "none", "0.003")[0]["losses"])
