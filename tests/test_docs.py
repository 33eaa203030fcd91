"""The documents say what is there: README, CONTRIBUTING, and the page of the package with its docstrings."""

import pkgutil
import re
import sys

import pytest

from tests.commands import ROOT, run


def public_modules() -> list[str]:
    """All that readers import, by their names in the package; not the checks, which they meet in the exercises."""
    import posenc_course

    names = (info.name.partition(".")[2] for info in pkgutil.walk_packages(posenc_course.__path__, "posenc_course."))
    return [name for name in names if not re.search(r"(^|\.)_|^checks\.", name)]


def test_every_public_module_has_its_place_on_the_page_of_the_package() -> None:
    page = (ROOT / "book/reference/api.md").read_text()
    for name in {*public_modules()} - {"plotting", "checks"}:  # these have pages of their own kind: figures, exercises
        assert f"automodule:: posenc_course.{name}\n" in page, f"book/reference/api.md lacks {name}: add it under its door"


def test_one_map_says_which_chapter_introduces_a_module() -> None:
    """The docstring of the package: renumbering the chapters is an edit of this map."""
    import posenc_course

    line = r"^    (\w+) {2,}\S.*?(?:\(chapters? (\d\d)(?: (?:and|to) (\d\d))?\))?$"
    lines = re.findall(line, posenc_course.__doc__ or "", re.MULTILINE)
    assert sorted(name for name, *_ in lines) == sorted(name for name in public_modules() if "." not in name)
    chapters = {file[5:7] for file in re.findall(r"book/\d\d_\w+", (ROOT / "_toc.yml").read_text())}
    for name, *named in lines:
        assert {*filter(None, named)} <= chapters, f"{name}: the map names a chapter that _toc.yml does not have"
        assert any(named) or name in ("plotting", "checks"), f"{name} has no chapter in the map"


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
