"""The Makefile and the set-up that it calls, in a bare clone, and the workflow that calls the Makefile."""

import ast
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import posenc_course
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


@pytest.mark.slow
def test_no_network_ends_in_one_line(bare: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    alone = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "no_proxy": "", "NO_PROXY": ""}
    proxies = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], nowhere)
    done = run("make", f"PYTHON={sys.executable}", "book", cwd=bare, **alone, **proxies)
    assert done.returncode != 0
    *_, last = (line for line in done.stderr.splitlines() if not line.startswith("make: "))
    assert last.startswith("Set-up stopped: pip couldn't install PyTorch"), done.stderr
    assert "no network" in last
    assert "run make again" in last
    assert not (bare / ".venv/complete").exists(), "the next make would believe that the set-up is complete"


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


def test_solutions_are_built_apart_and_only_when_asked_for(bare: Path) -> None:
    (bare / ".venv").mkdir()
    shutil.copy(ROOT / "requirements.lock", bare / ".venv/complete")
    program(bare / ".venv/bin/python", "true")  # it takes the texts over
    program(bare / ".venv/bin/jupyter-book", 'for part in "$@"; do case $part in *.yml) grep exercises/ $part;; esac; done')
    assert not re.search("source|exam", run("make", "book", cwd=bare).stdout)
    told = run("make", "book", "SOLUTIONS=1", cwd=bare).stdout
    assert "file: exercises/source/01_order/01_order" in told
    assert "file: exercises/exam\n" in told
    assert "do not publish" in told


def test_workflow_tests_the_oldest_and_the_newest_python() -> None:
    matrix = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/pages.yml").read_text())
    assert matrix
    assert re.findall(r"[\d.]+", matrix[1]) == ["3.11", "3.14"]  # the two that tools/setup_env.py names
    assert '\nrequires-python = ">=3.11"\n' in (ROOT / "pyproject.toml").read_text()


def test_workflow_checks_pull_requests_and_tests_the_rest() -> None:
    workflow = (ROOT / ".github/workflows/pages.yml").read_text()
    assert "github.event_name == 'pull_request' && 'CI=true make check' || '.ci/run'" in workflow
    assert "\nCI=true make test\n" in (ROOT / ".ci/run").read_text()


def test_workflow_tries_the_lowest_versions() -> None:
    """Those of [project], with every extra that the package itself can use, rather than the one that [tool.uv] pins."""
    assert "\n      - run: make test-lowest\n" in (ROOT / ".github/workflows/pages.yml").read_text()
    commands = run("make", "--dry-run", "test-lowest").stdout
    assert '--no-config --python _lowest --resolution lowest-direct ".[plot,released]"\n' in commands
    tried = {Path(name).stem.removeprefix("test_") for name in re.findall(r"tests/test_\w+\.py", commands)}
    tested = {module for module in posenc_course._modules() if (ROOT / f"tests/test_{module}.py").exists()}
    assert tested - tried == {"inspector", "llama", "models"}, "their tests import transformers"


TEXTS = "python -m tools.book.text"
LINT = ["ruff check", "ruff format --check", "mypy", "deno check --quiet book"]


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


@pytest.mark.parametrize(
    ("target", "only", "called"),
    [
        ("test", "", ["pytest"]),
        ("test", "10_rope", [TEXTS, "book/10_rope.ipynb exercises/source/10_rope/10_rope.ipynb tests/test_site.py -k 10_rope"]),
        ("test", "test_alibi", [TEXTS, "tests/test_alibi.py tests/test_site.py -k test_alibi"]),
        ("check", "", [*LINT, "pytest -m not slow tests"]),
        ("check", "rope", [*LINT, "tests/test_rope.py tests/test_site.py -k rope"]),
    ],
)
def test_only_names_files_and_what_the_others_say_of_them(clone: Path, target: str, only: str, called: list[str]) -> None:
    done = run("make", "--dry-run", target, f"ONLY={only}", cwd=clone)
    lines = [" ".join(line.replace('"', "").split()) for line in done.stdout.splitlines()]
    assert len(lines) == len(called), done.stderr
    assert all(line.endswith(end) for line, end in zip(lines, called, strict=True)), lines


@pytest.mark.slow
def test_only_leaves_out_no_file_that_names_the_chapter(request: pytest.FixtureRequest) -> None:
    """Elsewhere, `make test ONLY=10_rope` would call a change right that `make test` refuses."""
    collected = [item.nodeid for item in request.session.items]
    if {name.partition("::")[0] for name in collected} >= {f"tests/{path.name}" for path in (ROOT / "tests").glob("test_*.py")}:
        found = "\n".join(name for name in collected if "10_rope" in name)
    else:  # not all tests are run: to collect them takes a while
        found = run(
            sys.executable, "-m", "pytest", "-n", "0", "-q", "--collect-only", "tests", "-k", "10_rope", PYTEST_ADDOPTS=""
        ).stdout
    files = {*re.findall(r"^(tests/test_\w+\.py)::", found, re.MULTILINE)} - {
        "tests/test_setup.py",
        "tests/test_living.py",  # whose tests of a page need those of its figures, which don't have its name
    }
    assert "tests/test_prose.py" in files, found
    left_out = files - {*run("make", "--dry-run", "test", "ONLY=10_rope").stdout.split()}
    assert not left_out, f"EVERY in the Makefile lacks {sorted(left_out)}"


def test_only_of_nothing_ends_in_one_line_that_names_what_there_is(clone: Path) -> None:
    done = run("make", "test", "ONLY=rotary", cwd=clone)
    assert done.returncode != 0
    message = done.stderr.strip()
    assert "\n" not in message
    assert "no file's name contains rotary" in message
    assert "10_rope 11_alibi alibi rope site" in message
