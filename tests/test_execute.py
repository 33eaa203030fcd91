"""Notebooks are run, in a folder of their own: by tools/book/execute.py, and by nbval with what both conftest.py add to it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.commands import module
from tools.book import execute, text

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.slow

DRAW = "fig, ax = plt.subplots()\nax.plot([0, 1, 2], [1, 4, 9])\nplt.show()"
RUN = {
    "style": "import random\nimport matplotlib.pyplot as plt\nfrom posenc_course import plotting\nplotting.use_style()",
    "same": DRAW,
    "other data": DRAW,
    "no data": DRAW,
    "cleared": DRAW,
    "never run": "1 + 1",
    "other text": "print('ratio: 0.94')",
    "live": "print(random.random())",
    "live, cleared": "print(random.random())",
    "live figure": "plt.plot([0, 1], [0, random.random()])\nplt.show()",
    "live, one figure less": "plt.plot([0, 1], [0, random.random()])\nplt.show()",
}


def pytest_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("CI", "PYTEST_"))}
    return module("pytest", *arguments, cwd=folder, environment=inherited | {"PYTHONPATH": str(ROOT)})


def course(folder: Path, *sources: str) -> Path:
    """Make a small course with one chapter, 01_small, that has these code cells, and return the chapter's path."""
    for name in ("conftest.py", "tests/conftest.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "book").mkdir()
    path = folder / "book" / "01_small.ipynb"
    cells = [new_code_cell(source) for source in sources]
    for cell in cells:
        if "random.random" in cell.source:
            cell.metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(new_notebook(cells=cells), path)
    return path


def test_run_reports_what_nbval_lets_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = course(tmp_path, *RUN.values())
    monkeypatch.setattr(text, "ROOT", tmp_path)
    assert execute.main(["01_small"]) == 0
    notebook = nbformat.read(path, as_version=4)
    cell = dict(zip(RUN, notebook.cells, strict=True))
    drawn = cell["other data"].outputs[0].metadata["image/svg+xml"]["drawn"]
    drawn["axes"][0]["lines"][0]["y"]["values"] = ["1 4.1 9"]
    cell["no data"].outputs[0].metadata = {}
    cell["live, one figure less"].outputs *= 2
    cell["cleared"].outputs = []
    cell["never run"].update(outputs=[], execution_count=None)
    cell["other text"].outputs[0].text = "ratio: 0.95\n"
    cell["live, cleared"].outputs = []
    nbformat.write(notebook, path)

    result = pytest_in(tmp_path, "--nbval", "--nbval-current-env", "-W", "error")
    report = result.stdout
    failed = [list(RUN)[int(number)] for number in re.findall(r"^FAILED book/01_small.ipynb::Cell (\d+)", report, re.MULTILINE)]
    passed = {"style", "same", "live", "live figure"}
    assert sorted(failed) == sorted(RUN.keys() - passed), report
    for message in (
        "figure: figure > axes 1 > lines 1 > y > values: 1 of 3 numbers differ, the first is number 2: stored 4.1, drawn now 4",
        "its data are not stored",
        "figures: 2 stored, 1 drawn now",
        "the cell's stored output is empty: it was cleared, or never made",
        "01_small, code cell 7 (In [7]; nbval counts from 0: Cell 6): its outputs are not the stored ones.",
        "make execute CHAPTER=01_small",
    ):
        assert message in report, f"{message!r} is not in:\n{report}"


def test_execute_leaves_a_failing_chapter_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = course(tmp_path, "1 + 1", "1 / 0")
    before = path.read_bytes()
    monkeypatch.setattr(text, "ROOT", tmp_path)
    assert execute.main([]) == 1
    said = capsys.readouterr().err
    assert "01_small, code cell 2 failed; the notebook is unchanged." in said
    assert "ZeroDivisionError" in said
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
