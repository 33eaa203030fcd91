"""The Makefile, in a bare clone."""

import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT, run


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A bare clone with only the files that the set-up needs, and programs that do nothing; its path contains a space."""
    clone = tmp_path / "the course"
    for name in ["Makefile", "_config.yml", "_toc.yml", "pyproject.toml", "requirements.lock"]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    course = ["book", "exercises/release", "exercises/source", "posenc_course", "text", "tests", "tools/sphinx"]
    for folder in [".venv/bin", *course]:
        (clone / folder).mkdir(parents=True)
    shutil.copy(ROOT / "requirements.lock", clone / ".venv/complete")
    program(clone / ".venv/bin/python", "true")
    return clone


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_unfit_python_gets_one_line(bare: Path) -> None:
    program(bare / "python2", "exit 1")
    (bare / "pyproject.toml").touch()
    said = run("make", f"PYTHON='{bare}/python2'", "book", cwd=bare).stderr
    assert said.startswith("The course needs Python 3.11 to 3.14: choose one, e.g. make PYTHON=python3.12 book\nmake: ")


def test_book_is_built_when_it_must_be_and_only_then(bare: Path) -> None:
    build = bare / ".venv/bin/jupyter-book"
    program(build, "mkdir _build && exit 1")
    assert run("make", "book", cwd=bare).returncode != 0
    assert run("make", "book", cwd=bare).returncode != 0, "a failed build was accepted as complete"
    program(build, 'mkdir _build; echo "a page, solutions: $SOLUTIONS"')
    assert "a page, solutions: \n" in run("make", "book", cwd=bare).stdout
    (bare / "exercises/submitted/Ada Lovelace_1843").mkdir(parents=True)
    assert run("make", "book", cwd=bare).stdout == f"Open {bare}/_build/html/index.html\n"
    (bare / "book/01_order.ipynb").touch()
    assert "a page" in run("make", "book", cwd=bare).stdout
    assert "solutions: no\n" in run("make", "book", "SOLUTIONS=no", cwd=bare).stdout
    assert "solutions: " not in run("make", "book", cwd=bare).stdout


def test_only_of_nothing_ends_in_one_line_that_names_what_there_is(bare: Path) -> None:
    for name in ("book/10_rope.ipynb", "tests/test_rope.py", "tests/test_alibi.py"):
        (bare / name).touch()
    message = run("make", "test", "ONLY=rotary", cwd=bare).stderr.strip()
    assert "\n" not in message
    assert "no file's name contains rotary" in message
    assert "10_rope alibi rope" in message
