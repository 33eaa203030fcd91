"""The stored reference of chapters 8 and 12: complete, and in the lab's form."""

import re

from posenc_course.experiment import load_results
from tools import no_positions

STORED = load_results(no_positions.TABLE)


def test_results_say_where_they_come_from_and_name_no_machine() -> None:
    assert STORED["command"] == "python tools/no_positions.py"
    assert STORED["config"] == no_positions.CONFIG.as_json() == load_results("full")["config"]
    assert not re.search(r"[/\\](home|root|tmp|work|usr|Users)\b", no_positions.TABLE.read_text(encoding="utf-8"))


def test_every_run_is_stored_once() -> None:
    stored = [(run["part"], run["scheme"], run["seed"], run["setting"]) for run in STORED["runs"]]
    assert stored == [(run.part, run.scheme, run.seed, run.setting) for run in no_positions.plan()]
