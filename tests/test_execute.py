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
from tests.pages import read
from tests.test_notebooks import executed, metadata, outputs, valid
from tools.book import execute, text
from tools.book.browser import chromium

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


def pytest_in(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith(("CI", "PYTEST_", "CHROMIUM"))}
    return module("pytest", *arguments, cwd=folder, environment=inherited | {"PYTHONPATH": str(ROOT)} | environment)


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


def test_run_fails_in_ci_when_anything_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    course(tmp_path)
    (tmp_path / "tests/test_browser.py").write_text("def test_page(chromium):\n    assert chromium\n")
    (tmp_path / "empty").mkdir()
    at_home = pytest_in(tmp_path, "tests/test_browser.py", PATH=str(tmp_path / "empty"))
    in_ci = pytest_in(tmp_path, "tests/test_browser.py", "-n", "1", PATH=str(tmp_path / "empty"), CI="true")
    assert at_home.returncode == 0, at_home.stdout
    assert "skipped tests: 1 (no Chromium found: apt-get install chromium" in at_home.stdout
    assert in_ci.returncode == 1, in_ci.stdout
    assert "CI is set, so this run FAILED: skipped tests: 1 (no Chromium found" in in_ci.stdout
    monkeypatch.setenv("CHROMIUM", "no-such-program")
    with pytest.raises(ValueError, match="CHROMIUM=no-such-program is not a program"):
        chromium()


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


def test_execute_names_the_pages_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    course(tmp_path)
    monkeypatch.setattr(text, "ROOT", tmp_path)
    assert execute.main(["05_norm"]) == 1
    assert capsys.readouterr().err == "no page is called 05_norm: choose from 01_small\n"


def test_execute_stores_what_the_rules_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = course(tmp_path, "print('a', flush=True)\nprint('b')", "2", "import broken\nbroken.fail()")
    (path.parent / "broken.py").write_text("def fail():\n    raise ValueError('on purpose')\n")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].metadata["tags"] = ["raises-exception"]
    notebook.metadata = {"kernelspec": {"name": "mine", "display_name": "Mine"}, "widgets": {}}
    notebook.cells[0].metadata = {"collapsed": True, "tags": [], "execution": {"iopub.status.busy": "now"}}
    ids = [cell.id for cell in notebook.cells]
    nbformat.write(notebook, path)
    monkeypatch.setattr(text, "ROOT", tmp_path)
    assert execute.main(["01_small"]) == 0
    assert re.search(r"^01_small: 3 cells in \d+\.\d s$", capsys.readouterr().out, re.MULTILINE)
    stored = read(path)
    assert [cell.id for cell in stored.cells] == ids
    assert [output.text for output in stored.cells[0].outputs] == ["a\nb\n"]
    traceback = "".join(stored.cells[2].outputs[0].traceback)
    assert "book/broken.py:2" in traceback
    assert str(tmp_path) not in traceback
    for rule in (valid, executed, metadata, outputs):
        assert list(rule(stored)) == []
