"""The package and its pins: bounds that the lock keeps, one version, whole files, an installation; and the Makefile."""

import errno
import json
import os
import re
import shutil
import sys
import time
import tomllib
from hashlib import sha256
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from packaging.requirements import Requirement

from posenc_course._system import write_whole
from posenc_course.experiment.corpus import DATA
from tests.commands import ROOT, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(file: str) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return [Requirement(line) for line in lines if line]


BOUNDS = {
    "requirements.txt": requirements("requirements.txt"),
    "pyproject.toml": [
        Requirement(line) for part in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()] for line in part
    ],
}


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("file", BOUNDS)
def test_lock_keeps_the_bounds(file: str) -> None:
    locked = {normalized(pin.name): str(pin.specifier).removeprefix("==") for pin in requirements("requirements.lock")}
    for bound in BOUNDS[file]:
        version = locked.get(normalized(bound.name))
        assert version, f"{file} names {bound.name}, requirements.lock does not: make lock"
        assert bound.specifier.contains(version), f"{file} says {bound}, requirements.lock has {version}: make lock"
        assert "<" in str(bound.specifier), f"{file}: {bound} has no upper bound"


def test_bounds_stated_twice_agree() -> None:
    first, second = ({normalized(bound.name): bound.specifier for bound in bounds} for bounds in BOUNDS.values())
    for name in first.keys() & second.keys():
        assert first[name] == second[name], f"{name}: requirements.txt says {first[name]}, pyproject.toml {second[name]}"


def test_lock_suits_any_machine() -> None:
    """Every line pins one version, names no host, and no package is for one maker's GPUs."""
    for pin in requirements("requirements.lock"):
        assert re.fullmatch(r"==[^,*]+", str(pin.specifier)), f"requirements.lock does not pin {pin}"
        assert not re.search("nvidia|cuda|triton", pin.name), f"requirements.lock has {pin}: see [tool.uv] in pyproject.toml"


def test_versions_agree() -> None:
    """Above the newest release, the changelog may say what comes next; what is named in the meantime is the release."""
    import posenc_course

    version, day = re.findall(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    archived = json.loads((ROOT / ".zenodo.json").read_text("utf-8"))
    assert posenc_course.__version__ == PROJECT["version"] == version, "the newest dated version in CHANGELOG.md is another one"
    assert (citation["version"], str(citation["date-released"])) == (version, day), "CITATION.cff and CHANGELOG.md disagree"
    for name in ["title", "version", "keywords"]:
        assert archived[name] == citation[name], f".zenodo.json and CITATION.cff have different values for {name}"


def test_importing_the_package_reads_no_data() -> None:
    """Its formulas don't need the models and texts that come along, nor do its other modules until somebody asks for them."""
    code = (
        "import importlib, sys; opened = []; "
        "sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == 'open' else None); "
        "import posenc_course as p; [importlib.import_module(f'posenc_course.{name}') for name in p._modules()]; "
        "print(len(opened), [name for name in opened if 'posenc_course/data' in name.replace(chr(92), '/')])"
    )
    done = run(sys.executable, "-c", code)
    assert re.fullmatch(r"\d{2,} \[\]\n", done.stdout), done.stdout + done.stderr


@pytest.mark.slow
def test_package_works_without_the_book(tmp_path: Path) -> None:
    pip_install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target"]
    done = run(*pip_install, str(tmp_path / "installed"), str(ROOT), PIP_DISABLE_PIP_VERSION_CHECK="1")
    assert done.returncode == 0, done.stderr
    code = (
        "import posenc_course, posenc_course.checks, posenc_course.experiment as last; print(last.__file__); "
        "last.load_results('full'), last.load_model('rope', 2), last.load_corpus()"
    )
    done = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "installed"))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(tmp_path / "installed")
    assert (tmp_path / "installed/posenc_course/py.typed").exists()


STORED = {path.relative_to(DATA).as_posix(): sha256(path.read_bytes()).hexdigest() for path in DATA.rglob("*.json")}


def test_stored_results_are_as_they_were_written() -> None:
    written = {name: checksum for checksum, name in map(str.split, (DATA / "SHA256SUMS").read_text("utf-8").splitlines())}
    changed = sorted({name for name, _ in written.items() ^ STORED.items()})
    assert not changed, f"{changed} in posenc_course/data: restore them, or, if you changed them on purpose, make checksums"


@pytest.mark.parametrize(
    "name", sorted(STORED.keys() - {"configurations.json", "corpus.json", "inspector.json", "models.json"})
)
def test_stored_results_say_where_they_come_from_and_name_no_place(name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    (command,) = re.findall(r'"command": "python (tools/lab/\w+\.py|-m posenc_course\.experiment|-m tools\.lab\.\w+)', text)
    assert command.startswith("-m") or (ROOT / command).exists()
    assert not re.search(r"[/\\](home|root|tmp|work|usr|Users)\b", text)


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()], ids=repr)
def test_old_file_stays_whatever_stops_the_writing(
    stop: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new folder/results.json"
    write_whole(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=stop))
        with pytest.raises(type(stop)) as caught:
            write_whole(path, b"new")
    if isinstance(stop, OSError):
        assert str(caught.value) == f"cannot write {path}: No space left on device; free some space, or give another path"
    assert path.read_bytes() == b"old"
    assert [*path.parent.iterdir()] == [path]


# ── the Makefile ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A bare clone with only the files that the set-up needs, and programs that do nothing; its path contains a space."""
    clone = tmp_path / "the course"
    for name in ["Makefile", "_config.yml", "_toc.yml", "pyproject.toml", "requirements.lock", "exercises/nbgrader_config.py"]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    course = ["book", "exercises/source", "posenc_course", "text", "tests", "tools/sphinx"]
    for folder in [".venv/bin", *course]:
        (clone / folder).mkdir(parents=True)
    shutil.copy(ROOT / "requirements.lock", clone / ".venv/complete")
    program(clone / ".venv/bin/python", "true")
    program(clone / ".venv/bin/nbgrader", "mkdir release")
    return clone


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def edit(path: Path) -> None:
    """Later than all before: a file's time moves on only a hundred times a second."""
    time.sleep(0.02)
    path.touch()


def test_unfit_python_gets_one_line(bare: Path) -> None:
    program(bare / "python2", "exit 1")
    edit(bare / "pyproject.toml")
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
    edit(bare / "book/01_order.ipynb")
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
