"""The projects for students: each command is one that the lab runs, and takes as long as the page says."""

import re
import shlex
from collections import defaultdict
from dataclasses import replace
from statistics import mean

import pytest

from posenc_course.experiment import PRESETS, load_results
from tests.commands import ROOT

PAGE = (ROOT / "book/teaching/projects.md").read_text("utf-8")
PROJECTS = re.findall(r"^\*\*(\d+)\. (.*?)\*\*\n.*?^```\n(.*?)^```\n\n(?:About (\d+) minutes)?", PAGE, re.MULTILINE | re.DOTALL)
RUNS = [(question, command, minutes) for _, question, command, minutes in PROJECTS if "experiment run" in command]


def test_every_project_has_a_command() -> None:
    assert [int(number) for number, *_ in PROJECTS] == [*range(1, PAGE.count("\n**") + 1)]


@pytest.mark.parametrize(("question", "command", "minutes"), RUNS, ids=[question for question, *_ in RUNS])
def test_lab_runs_the_command_in_the_minutes_that_the_page_says(question: str, command: str, minutes: str) -> None:
    """Steps and lengths that the command changes count in proportion."""
    python, *rest = shlex.split(command.replace("\\\n", " "))
    assert (python, rest[:3]) == (".venv/bin/python", ["-m", "posenc_course.experiment", "run"])
    given = dict(zip(rest[3::2], rest[4::2], strict=True))
    preset = PRESETS[given.pop("--preset")]
    assert re.fullmatch(r"_experiment/\w+", given.pop("--folder"))
    name, _, value = given.pop("--set", "").partition("=")
    config = replace(preset, **{name: type(getattr(preset, name))(value)}) if name else preset
    seeds, parts = (given.pop(f"--{kind}", None) for kind in ("seeds", "parts"))
    runs = config.runs(
        given.pop("--schemes").split(","),
        seeds=[int(seed) for seed in seeds.split(",")] if seeds else None,
        parts=parts.split(",") if parts else None,
    )
    if given:
        assert given == {"--device": "cuda", "--jobs": "2"}
        assert not minutes
        return
    spent = defaultdict(list)
    for run in load_results(preset.name)["runs"]:
        spent[run["part"], run["scheme"]].append(run["cpu_seconds"])
    longer = config.length / preset.length
    trained, measured = (sum(mean(times[i] for times in spent[run.part, run.scheme]) for run in runs) for i in (0, 1))
    assert round(longer * (trained * config.steps / preset.steps + measured) / 60) == int(minutes)
