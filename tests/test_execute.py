"""What conftest.py adds to nbval: a cleared output, and figures that draw other data, fail and say what to do."""

import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.commands import ROOT, run
from tools.book import execute, text

pytestmark = pytest.mark.slow
DRAW = "fig, ax = plt.subplots()\nax.plot([0, 1, 2], [1, 4, 9])\nplt.show()"
RUN = {
    "style": "import matplotlib.pyplot as plt\nfrom posenc_course import plotting\nplotting.use_style()",
    "same": DRAW,
    "other data": DRAW,
    "cleared": DRAW,
    "other text": "print('ratio: 0.94')",
}


def test_nbval_compares_figures_and_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "book").mkdir()
    path = tmp_path / "book/01_small.ipynb"
    cells = {name: new_code_cell(source) for name, source in RUN.items()}
    cells["cleared"].metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(new_notebook(cells=[*cells.values()]), path)
    monkeypatch.setattr(text, "ROOT", tmp_path)
    assert execute.main(["01_small"]) == 0
    notebook = nbformat.read(path, as_version=4)
    cell = dict(zip(RUN, notebook.cells, strict=True))
    cell["other data"].outputs[0].metadata["image/svg+xml"]["drawn"]["axes"][0]["lines"][0]["y"]["values"] = ["1 4.1 9"]
    cell["cleared"].outputs = []
    cell["other text"].outputs[0].text = "ratio: 0.95\n"
    nbformat.write(notebook, path)
    nbval = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider"]
    report = run(*nbval, cwd=tmp_path, PYTHONPATH=str(ROOT), PYTEST_ADDOPTS="").stdout
    failed = [list(RUN)[int(number)] for number in re.findall(r"^FAILED book/01_small.ipynb::Cell (\d+)", report, re.MULTILINE)]
    assert failed == [*RUN][2:], report
    for message in (
        "figure: figure > axes 1 > lines 1 > y > values: 1 of 3 numbers differ, the first is number 2: stored 4.1, drawn now 4",
        "the cell's stored output is empty: it was cleared, or never made",
        "01_small, code cell 5 (In [5]; nbval counts from 0: Cell 4): its outputs are not the stored ones.",
        "make execute CHAPTER=01_small",
    ):
        assert message in report, f"{message!r} is not in:\n{report}"
