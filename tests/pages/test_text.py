"""The texts in text/ and the notebooks made from them: alike, and neither overwrites what is newer in the other."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.book import text

SENTENCE = "A sentence.\n\nAnother one."


@pytest.mark.parametrize("name", text.pages([]))
def test_text_and_notebook_are_alike(name: str) -> None:
    page = text.pages([name])[name]
    assert page.text.exists(), f"make text CHAPTER={name}"
    if page.text.read_text("utf-8") != text.text_of(text.read(page.notebook)):
        here = f"edited text/: make notebooks CHAPTER={name}. Edited the notebook: make text CHAPTER={name}"
        pytest.fail(f"{page.text} and {page.notebook} have different cells. {here}", pytrace=False)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> text.Page:
    """A page of a small course, with a text, and with a notebook that has run."""
    monkeypatch.setattr(text, "ROOT", tmp_path)
    output = new_output("stream", text="2\n")
    cells = [new_markdown_cell(SENTENCE), new_code_cell("print(2)", outputs=[output], execution_count=1), new_code_cell("3")]
    page = text.Page(tmp_path / "text/01_small.md", tmp_path / "book/01_small.ipynb")
    text.write(page.notebook, text.plain(new_notebook(cells=cells, metadata=text.METADATA)))
    assert text.main([], from_notebooks=True) == 0
    return page


def later(path: Path, content: str) -> None:
    path.write_text(content)
    os.utime(path, (2**31, 2**31))


def test_changed_sentence_changes_one_line_of_the_notebook(page: text.Page) -> None:
    before = page.notebook.read_text().splitlines()
    assert text.main([]) == 0
    assert page.notebook.read_text().splitlines() == before
    later(page.text, page.text.read_text().replace("A sentence.", "A clear sentence."))
    assert text.main(["01_small"]) == 0
    after = page.notebook.read_text().splitlines()
    changed = [line for line, old in zip(after, before, strict=True) if line != old]
    assert changed == ['    "A clear sentence.\\n",']


def test_changed_code_has_no_output_any_more(page: text.Page) -> None:
    stored = text.read(page.notebook)
    later(page.text, page.text.read_text().replace("print(2)", "print(4)"))
    assert text.main([]) == 0
    new = text.read(page.notebook)
    assert [cell.source for cell in new.cells] == [SENTENCE, "print(4)", "3"]
    assert new.cells[1].outputs == []
    assert [new.cells[n].id for n in (0, 2)] == [stored.cells[n].id for n in (0, 2)]


def test_edit_in_jupyterlab_flows_back(page: text.Page) -> None:
    notebook = text.read(page.notebook)
    notebook.cells[0].source = "Better."
    notebook.cells[1].metadata = {"tags": ["hide-input"], "editable": True}
    notebook.metadata = {"kernelspec": {"name": "mine", "display_name": "Mine"}, "widgets": {}}
    later(page.notebook, nbformat.writes(notebook))
    assert text.main([], from_notebooks=True) == 0
    assert (
        page.text.read_text() == "Better.\n\n```{code-cell}\n:tags: [hide-input]\n\nprint(2)\n```\n\n```{code-cell}\n3\n```\n"
    )


@pytest.mark.parametrize("side", [0, 1])
def test_newer_side_is_kept(page: text.Page, side: int, capsys: pytest.CaptureFixture[str]) -> None:
    later(page[side], page[side].read_text().replace("A sentence.", "Written last."))
    assert text.main([], from_notebooks=side == 0) == 1
    names, command = ["text/01_small.md", "book/01_small.ipynb"], ["make notebooks", "make text"][side]
    assert capsys.readouterr().err == (
        f"{names[side]} was edited after {names[1 - side]}, and would lose this: to keep it, {command}; "
        f"to drop it, touch {names[1 - side]}, and then repeat the command\n"
    )
    assert "Written last." in page[side].read_text()
    assert text.main([], from_notebooks=side == 1) == 0
    assert "Written last." in page[1 - side].read_text()
