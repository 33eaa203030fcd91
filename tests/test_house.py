"""The house is in order: style, types, pins, set-up, publishing, and the package without the book."""

import ast
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION, WORKFLOW = "CITATION.cff", ".github/workflows/pages.yml"


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a command, apart from the make that may have called this test, and captures what it says."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | environment
    return subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True)


@pytest.mark.parametrize("tool", ["ruff check", "ruff format --check --diff", "mypy"])
def test_style_and_types(tool: str) -> None:
    done = run(sys.executable, "-m", *tool.split())
    if done.returncode:
        pytest.fail(f"make lint fails, {tool} says:\n{done.stdout}{done.stderr}", pytrace=False)


@pytest.mark.parametrize(
    ("schema", "file"),
    [
        ("vendor.github-workflows", WORKFLOW),
        ("custom.github-workflows-require-timeout", WORKFLOW),
        ("vendor.citation-file-format", CITATION),
    ],
)
def test_file_fits_its_schema(schema: str, file: str) -> None:
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, file)
    if done.returncode:
        pytest.fail(f"{file} is not valid:\n{done.stdout}{done.stderr}", pytrace=False)


def requirements(file: str) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return [Requirement(line) for line in lines if line]


BOUNDS = {
    "requirements.txt": requirements("requirements.txt"),
    "pyproject.toml": [
        Requirement(line) for part in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()] for line in part
    ],
}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("file", BOUNDS)
def test_lock_keeps_the_bounds(file: str) -> None:
    locked = {normal(pin.name): str(pin.specifier).removeprefix("==") for pin in requirements("requirements.lock")}
    for bound in BOUNDS[file]:
        version = locked.get(normal(bound.name))
        assert version, f"{file} names {bound.name}, requirements.lock does not: make lock"
        assert bound.specifier.contains(version), f"{file} says {bound}, requirements.lock has {version}: make lock"
        assert "<" in str(bound.specifier), f"{file}: {bound} has no upper bound"


def test_bounds_stated_twice_agree() -> None:
    first, second = ({normal(bound.name): bound.specifier for bound in bounds} for bounds in BOUNDS.values())
    for name in first.keys() & second.keys():
        assert first[name] == second[name], f"{name}: requirements.txt says {first[name]}, pyproject.toml {second[name]}"


def test_lock_suits_any_machine() -> None:
    """Every line pins one version, names no host, and no package is for one maker's GPUs."""
    for pin in requirements("requirements.lock"):
        assert re.fullmatch(r"==[^,*]+", str(pin.specifier)), f"requirements.lock does not pin {pin}"
        assert not re.search("nvidia|cuda|triton", pin.name), f"requirements.lock has {pin}: see [tool.uv] in pyproject.toml"


def test_versions_agree() -> None:
    import posenc_course

    assert posenc_course.__version__ == PROJECT["version"]
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / CITATION).read_text(), "CITATION.cff has another version"


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A bare clone, without what set-up is not about; its path may hold a space."""
    clone = tmp_path / "the course"
    for name in ["Makefile", "_config.yml", "_toc.yml", "pyproject.toml", "requirements.lock", "tools/setup_env.py"]:
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, clone / name)
    for folder in ["book", "exercises", "posenc_course"]:
        (clone / folder).mkdir()
    return clone


def program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("pretence", "named"),
    [
        ("sys.version_info = (3, 10, 12)", ["3.11 to 3.14", "3.10.12", "make PYTHON=python3.12 book"]),
        ("sys.version_info = (3, 15, 0)", ["3.11 to 3.14", "3.15.0", "make PYTHON=python3.12 book"]),
        ('sys.modules["ensurepip"] = None', ["ensurepip", "apt install python3-venv"]),
    ],
)
def test_unfit_python_gets_one_line(bare: Path, pretence: str, named: list[str]) -> None:
    code = f'import runpy, sys; {pretence}; runpy.run_path(sys.argv[1], run_name="__main__")'
    program(bare / "python", f"exec '{sys.executable}' -c '{code}' \"$@\"")
    done = run("make", "PYTHON=./python", "book", cwd=bare)
    message = [line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("make: ")]
    assert done.returncode != 0
    assert len(message) == 1, message
    assert all(what in message[0] for what in named), message


def test_setup_is_readable_to_old_pythons() -> None:
    ast.parse((ROOT / "tools/setup_env.py").read_text(), feature_version=(3, 6))


def test_no_network_ends_in_one_line(bare: Path) -> None:
    nowhere = "http://127.0.0.1:9"
    alone = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "no_proxy": "", "NO_PROXY": ""}
    proxies = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], nowhere)
    done = run("make", f"PYTHON={sys.executable}", "book", cwd=bare, **alone, **proxies)
    assert done.returncode != 0
    *_, last = (line for line in done.stderr.splitlines() if not line.startswith("make: "))
    assert last.startswith("Set-up stopped: pip could not install PyTorch"), done.stderr
    assert "no network" in last
    assert "run make again" in last
    assert not (bare / ".venv/complete").exists(), "the next make would take the set-up for complete"


def test_book_is_built_when_it_must_be_and_only_then(bare: Path) -> None:
    (bare / ".venv").mkdir()
    shutil.copy(ROOT / "requirements.lock", bare / ".venv/complete")
    build = bare / ".venv/bin/jupyter-book"
    program(build, "mkdir _build && exit 1")
    assert run("make", "book", cwd=bare).returncode != 0
    assert run("make", "book", cwd=bare).returncode != 0, "a failed build was taken for a good one"
    program(build, "mkdir _build && echo a page")
    assert "a page" in run("make", "book", cwd=bare).stdout
    again = run("make", "book", cwd=bare)
    assert (again.stdout, again.stderr) == (f"Open {bare}/_build/html/index.html\n", "")
    (bare / "book/01_order.ipynb").touch()
    assert "a page" in run("make", "book", cwd=bare).stdout


def test_solutions_are_built_apart_and_only_when_asked_for(bare: Path) -> None:
    (bare / ".venv").mkdir()
    shutil.copy(ROOT / "requirements.lock", bare / ".venv/complete")
    program(
        bare / ".venv/bin/jupyter-book", 'for part in "$@"; do case $part in *.yml) grep exercises/source $part;; esac; done'
    )
    assert "source" not in run("make", "book", cwd=bare).stdout
    told = run("make", "book", "SOLUTIONS=1", cwd=bare).stdout
    assert "file: exercises/source/01_order/01_order" in told
    assert "not to be published" in told


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


def test_every_public_name_says_its_chapter_and_has_its_place_on_the_page_of_the_package() -> None:
    import posenc_course

    page = (ROOT / "book/reference/api.md").read_text()
    for info in pkgutil.walk_packages(posenc_course.__path__, "posenc_course."):
        module = importlib.import_module(info.name)
        if "._" in info.name or info.name == "posenc_course.plotting":  # which draws for the book
            continue
        if not info.name.startswith("posenc_course.checks"):  # their readers meet them in the exercises
            assert f"automodule:: {info.name}\n" in page, f"book/reference/api.md lacks {info.name}: add it under its door"
        for name, value in vars(module).items():
            if name[0] != "_" and callable(value) and getattr(value, "__module__", None) == info.name:
                said = re.search(r"[Cc]hapters? \d\d", inspect.getdoc(value) or "")
                assert said, f"the docstring of {info.name}.{name} does not say its chapter: end it with Chapter 03."


def test_workflow_tests_the_oldest_and_the_newest_python() -> None:
    matrix = re.search(r"python: \[(.*)\]", (ROOT / WORKFLOW).read_text())
    assert matrix
    assert re.findall(r"[\d.]+", matrix[1]) == ["3.11", "3.14"]  # the two that tools/setup_env.py names
    assert PROJECT["requires-python"] == ">=3.11"


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", "exercises/README.md"])
def test_what_a_guide_names_exists(file: str) -> None:
    text, makefile = (ROOT / file).read_text(), (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for target in re.findall(r"(?:`|^)make\s+([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"{file} names make {target}, which the Makefile has not: it has {sorted(targets)}"
    for path in re.findall(r"\]\(([^):#]+)\)|`((?:tests|tools|book|posenc_course)/[\w./]+)", text):
        named = (ROOT / file).parent / "".join(path)
        assert named.exists(), f"{file} names {''.join(path)}, which is not there: correct it"


def test_readme_code_runs() -> None:
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL):
        done = run(sys.executable, "-c", block)
        assert done.returncode == 0, f"code of README.md fails, mend it:\n{block}\n{done.stderr}"
