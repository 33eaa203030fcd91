"""The Makefile and the set-up that it calls, in a bare clone."""

import ast
import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, run
from tools import setup_env


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A bare clone with only the files that the set-up needs, and programs that do nothing; its path contains a space."""
    clone = tmp_path / "the course"
    for name in ["Makefile", "_config.yml", "_toc.yml", "pyproject.toml", "requirements.lock", "tools/setup_env.py"]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for folder in [".venv/bin", "book", "exercises/source", "posenc_course", "text", "tests", "tools/sphinx"]:
        (clone / folder).mkdir(parents=True)
    shutil.copy(ROOT / "requirements.lock", clone / ".venv/complete")
    program(clone / ".venv/bin/python", "true")
    return clone


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("version", [(3, 10, 12), (3, 15, 0)])
def test_unfit_python_gets_one_line(monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]) -> None:
    ast.parse((ROOT / "tools/setup_env.py").read_text(), feature_version=(3, 6))
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit, match=rf"3\.11 to 3\.14.*is Python 3\.{version[1]}.*make PYTHON=python3\.12 book$"):
        setup_env.main()


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
