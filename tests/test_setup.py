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
    """A bare clone with only the files that the set-up needs; its path may contain a space."""
    clone = tmp_path / "the course"
    for name in ["Makefile", "_config.yml", "_toc.yml", "pyproject.toml", "requirements.lock", "tools/setup_env.py"]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for folder in ["book", "exercises", "posenc_course", "text", "tools/sphinx"]:
        (clone / folder).mkdir()
    return clone


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize("version", [(3, 10, 12), (3, 15, 0)])
def test_unfit_python_gets_one_line(monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit, match=rf"3\.11 to 3\.14.*is Python 3\.{version[1]}.*make PYTHON=python3\.12 book$"):
        setup_env.main()


def test_python_without_pip_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SystemExit, match=r"ensurepip is missing.*apt install python3-venv"):
        setup_env.main()


def test_setup_is_readable_to_old_pythons() -> None:
    ast.parse((ROOT / "tools/setup_env.py").read_text(), feature_version=(3, 6))


def test_book_is_built_when_it_must_be_and_only_then(bare: Path) -> None:
    (bare / ".venv").mkdir()
    shutil.copy(ROOT / "requirements.lock", bare / ".venv/complete")
    program(bare / ".venv/bin/python", "true")  # it takes the texts over
    build = bare / ".venv/bin/jupyter-book"
    program(build, "mkdir _build && exit 1")
    assert run("make", "book", cwd=bare).returncode != 0
    assert run("make", "book", cwd=bare).returncode != 0, "a failed build was accepted as complete"
    program(build, "mkdir _build && echo a page")
    assert "a page" in run("make", "book", cwd=bare).stdout
    (bare / "exercises/submitted/Ada Lovelace_1843").mkdir(parents=True)
    again = run("make", "book", cwd=bare)
    assert (again.stdout, again.stderr) == (f"Open {bare}/_build/html/index.html\n", "")
    (bare / "book/01_order.ipynb").touch()
    assert "a page" in run("make", "book", cwd=bare).stdout


def test_a_site_without_solutions_is_built_anew(bare: Path) -> None:
    (bare / ".venv").mkdir()
    shutil.copy(ROOT / "requirements.lock", bare / ".venv/complete")
    program(bare / ".venv/bin/python", "true")  # it takes the texts over
    program(bare / ".venv/bin/jupyter-book", 'mkdir _build && echo "solutions: $SOLUTIONS"')
    assert "solutions: \n" in run("make", "book", cwd=bare).stdout
    assert "solutions: no\n" in run("make", "book", "SOLUTIONS=no", cwd=bare).stdout
    assert "solutions: " not in run("make", "book", cwd=bare).stdout


@pytest.fixture
def clone(bare: Path) -> Path:
    """With some of what `make` selects from."""
    (bare / ".venv").mkdir()
    shutil.copy(ROOT / "requirements.lock", bare / ".venv/complete")
    for name in ("book/10_rope", "book/11_alibi", "exercises/source/10_rope/10_rope"):
        (bare / name).parent.mkdir(parents=True, exist_ok=True)
        (bare / f"{name}.ipynb").touch()
    (bare / "tests").mkdir()
    for name in ("rope", "alibi", "site"):
        (bare / f"tests/test_{name}.py").touch()
    return bare


def test_only_of_nothing_ends_in_one_line_that_names_what_there_is(clone: Path) -> None:
    done = run("make", "test", "ONLY=rotary", cwd=clone)
    assert done.returncode != 0
    message = done.stderr.strip()
    assert "\n" not in message
    assert "no file's name contains rotary" in message
    assert "10_rope 11_alibi alibi rope site" in message
