"""The documents say what is there: README, CONTRIBUTING, and the page of the package with its docstrings."""

import importlib
import inspect
import pkgutil
import re
import sys

import pytest

from tests.commands import ROOT, run


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
