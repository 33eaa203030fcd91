"""README, CONTRIBUTING, plans and the package's page with its docstrings describe the repository correctly."""

import importlib
import inspect
import pkgutil
import re
import sys

import pytest

from posenc_course.schemes import PositionScheme
from tests.commands import ROOT, run
from tests.pages import pages


def public_modules() -> list[str]:
    """All that readers import, by their names in the package; not the checks, which they meet in the exercises."""
    import posenc_course

    names = (info.name.partition(".")[2] for info in pkgutil.walk_packages(posenc_course.__path__, "posenc_course."))
    return [name for name in names if not re.search(r"(^|\.)_|^checks\.", name)]


def test_every_public_module_has_its_place_on_the_page_of_the_package() -> None:
    page = (ROOT / "text/reference/api.md").read_text()
    for name in {*public_modules()} - {"plotting", "checks"}:  # these have pages of their own kind: figures, exercises
        assert f"automodule:: posenc_course.{name}\n" in page, f"text/reference/api.md lacks {name}: add it under its door"


def test_modules_and_main_names_are_attributes_of_the_package() -> None:
    """Those that README imports from the modules, and every scheme; torch is imported with the first of them."""
    import posenc_course

    asked = "import sys, posenc_course as p; assert 'torch' not in sys.modules; p.rope.apply_rope, p.yarn"
    done = run(sys.executable, "-c", asked)
    assert done.returncode == 0, done.stderr
    modules = {name: importlib.import_module(f"posenc_course.{name}") for name in public_modules() if "." not in name}
    readme = re.findall(r"^from posenc_course\.(\w+) import (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    main = [(module, name) for module, names in readme if module != "experiment" for name in names.split(", ")]
    for module, inside in modules.items():
        own = [value for value in vars(inside).values() if getattr(value, "__module__", "") == inside.__name__]
        schemes = [value for value in own if inspect.isclass(value) and issubclass(value, PositionScheme)]
        main += [(module, scheme.__name__) for scheme in schemes if scheme.__name__[0] != "_"]
    lacks = [f"{name} to {module!r}" for module, name in main if name not in dir(posenc_course)]
    assert not lacks, f"posenc_course/__init__.py: in _HOMES, add {', '.join(lacks)}"
    for module, name in main:
        assert getattr(posenc_course, name) is getattr(modules[module], name)
        assert module in dir(posenc_course)


def test_one_map_says_which_chapter_introduces_a_module() -> None:
    """The docstring of the package maps names to chapters; if chapters are renumbered, this map changes."""
    import posenc_course

    line = r"^    (\w+) {2,}\S.*?(?:\(chapters? (\d\d)(?: (?:and|to) (\d\d))?\))?$"
    lines = re.findall(line, posenc_course.__doc__ or "", re.MULTILINE)
    modules = {name for name in public_modules() if "." not in name}
    missing = modules - {name for name, *_ in lines}
    assert not missing, (
        f"the docstring of posenc_course/__init__.py lacks {missing}: add a line for each, in the order of the book"
    )
    assert len(lines) == len(modules), "the map names a module that doesn't exist, or one twice"
    chapters = {file[5:7] for file in re.findall(r"book/\d\d_\w+", (ROOT / "_toc.yml").read_text())}
    for name, *named in lines:
        assert {*filter(None, named)} <= chapters, f"{name}: the map names a chapter that _toc.yml does not have"


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", "exercises/README.md"])
def test_what_a_guide_names_exists(file: str) -> None:
    text, makefile = (ROOT / file).read_text(), (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for target in re.findall(r"(?:`|^)make\s+([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"{file} names make {target}, which the Makefile doesn't have: it has {sorted(targets)}"
    for path in re.findall(r"\]\(([^):#]+)\)|`((?:tests|tools|book|posenc_course)/[\w./]+)", text):
        named = (ROOT / file).parent / "".join(path)
        assert named.exists(), f"{file} names {''.join(path)}, which doesn't exist: correct it"


def test_readme_code_runs() -> None:
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})


# --- What overviews and plans say of the chapters ---------------------------------------------------------------------------

README, INDEX, PLANS = "README.md", "book/index.md", "book/teaching/plans.md"
CHAPTERS = {name: pages.markdown(pages.read(path)) for name, path in pages.CHAPTERS.items()}


def guide(file: str) -> str:
    return re.sub(r"<!--.*?-->", "", (ROOT / file).read_text("utf-8"))


@pytest.mark.parametrize("name", CHAPTERS)
def test_overviews_list_the_chapter(name: str) -> None:
    number, title = int(name[:2]), re.findall(r"^# (.*)$", CHAPTERS[name], re.MULTILINE)[0]
    minutes = re.findall(r"Time: (\d+) minutes", CHAPTERS[name])[0]
    rows = {
        README: f"{number}. [{title}](book/{name}.ipynb)",
        INDEX: f"[{number}. {title}]({name}.ipynb)",
        PLANS: f"| {number}. [{title}](../{name}.ipynb) | {minutes} |",
    }
    lacking = [f"{file} lacks {row!r}" for file, row in rows.items() if row not in " ".join(guide(file).split())]
    assert not lacking, f"{'; '.join(lacking)}: write it there"


def test_readme_names_the_pythons_of_the_workflow_and_the_package() -> None:
    first, last = re.findall(r"With Python (\S+) to (\S+), pip", guide(README))[0]
    assert f'python: ["{first}", "{last}"]' in (ROOT / ".github/workflows/pages.yml").read_text()
    assert f'requires-python = ">={first}"' in (ROOT / "pyproject.toml").read_text()
