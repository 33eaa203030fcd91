"""`make test-elsewhere`: what the processor that nobody has seen changes, and that a call continues an interrupted one."""

import subprocess
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

from tests.commands import ROOT, module
from tools import elsewhere
from tools.unseen import Noise, Unseen


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One cell that holds on every processor, and one that asks for the last digit."""
    monkeypatch.setattr(elsewhere, "STORE", tmp_path)
    cells = ["import torch\nx = torch.linspace(0, 1, 999)", "assert torch.equal(x.sin() * x.sin(), x.sin() ** 2)"]
    path = tmp_path / "notebook.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    return path


@pytest.mark.slow
def test_unseen_processor_fails_a_cell_that_asks_for_the_last_digit_and_only_it_runs_again(
    notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        return module(*command[2:], cwd=ROOT, environment=env)

    monkeypatch.setattr(subprocess, "run", run)
    unseen = elsewhere.unseen(0, tmp_path / "unseen")
    assert elsewhere.report("here", {}, notebook) == {"Cell 0": False, "Cell 1": False}
    assert elsewhere.report("unseen", unseen, notebook) == {"Cell 0": False, "Cell 1": True}
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 2, "stopped"))
    assert elsewhere.report("here", {}, notebook) == {"Cell 0": False, "Cell 1": False}
    with pytest.raises(SystemExit, match="stopped"):
        elsewhere.report("unseen", unseen, notebook)


def test_unseen_processor_leaves_what_every_processor_rounds_alike() -> None:
    x, whole = torch.rand(99), torch.arange(99.0)
    product, root, total = x * x, x.sqrt(), whole.sum()
    exponential = x.exp()
    with Unseen(Noise(0)):
        assert torch.equal(x * x, product)
        assert torch.equal(x.sqrt(), root)
        assert torch.equal(whole.sum(), total)
        assert not torch.equal(x.exp(), exponential)
        assert torch.allclose(x.exp(), exponential, rtol=1e-6)
