"""The stored reference of chapters 8 and 12: complete, and in the lab's form."""

from posenc_course.experiment import load_results
from tools.lab import no_positions

STORED = load_results(no_positions.TABLE)


def test_the_configuration_is_that_of_the_lab() -> None:
    assert STORED["config"] == no_positions.CONFIG.as_json() == load_results("full")["config"]


def test_every_run_is_stored_once() -> None:
    stored = [(run["part"], run["scheme"], run["seed"], run["setting"]) for run in STORED["runs"]]
    assert stored == [(run.part, run.scheme, run.seed, run.setting) for run in no_positions.plan()]
