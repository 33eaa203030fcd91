"""Style, types, and the schemas of the files that other programs read."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, run

WORKFLOWS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / ".github/workflows").iterdir())


@pytest.mark.slow  # make check runs them as make lint
@pytest.mark.parametrize("tool", ["ruff check", "ruff format --check --diff", "mypy", "deno check --quiet book"])
def test_style_and_types(tool: str) -> None:
    done = run(sys.executable, "-m", *tool.split())
    if done.returncode:
        pytest.fail(f"make lint fails, {tool} says:\n{done.stdout}{done.stderr}", pytrace=False)


FAULTS = {  # in a figure: what is there -> what isn't, and what is said of it
    "perSecond: 4 }": ("perSeconds: 4 }", "'perSeconds' does not exist in type 'Control"),
    "draw(stage, { m, n, both })": ("draw(stage, { m, k, both })", "Property 'k' does not exist on type"),
    'chart.rule({ y: 0 }, "faint")': ('chart.rule({ y: "0" }, "faint")', "Type 'string' is not assignable to type 'number'"),
    "const SPEED = ": ("const load = living.lode;\nconst SPEED = ", "Property 'lode' does not exist on type"),
}


def test_faults_of_a_figure_are_named(tmp_path: Path) -> None:
    shutil.copy(ROOT / "deno.jsonc", tmp_path)
    shutil.copytree(ROOT / "book/living", tmp_path / "book/living")
    figure = tmp_path / "book/living/arrows.js"
    text = figure.read_text(encoding="utf-8")
    for right, (wrong, _) in FAULTS.items():
        assert right in text, f"{figure.name} no longer has {right}: put a different fault here"
        text = text.replace(right, wrong, 1)
    figure.write_text(text, encoding="utf-8")
    done = run(sys.executable, "-m", "deno", "check", "--quiet", "book", cwd=tmp_path, NO_COLOR="1")
    missed = [told for _, told in FAULTS.values() if told not in done.stderr]
    assert not missed, done.stderr


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-workflows", WORKFLOWS),
        ("custom.github-workflows-require-timeout", WORKFLOWS),
        ("vendor.dependabot", [".github/dependabot.yml"]),
        ("vendor.citation-file-format", ["CITATION.cff"]),
    ],
)
def test_file_fits_its_schema(schema: str, files: list[str]) -> None:
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files)
    if done.returncode:
        pytest.fail(f"{' or '.join(files)} is not valid:\n{done.stdout}{done.stderr}", pytrace=False)


def test_workflows_are_safe() -> None:
    """They give no more rights than they need, keep no credentials, and take no action from an address that may change."""
    done = run(str(Path(sys.executable).with_name("zizmor")), "--offline", "--no-progress", "--strict-collection", ".github")
    if done.returncode:
        pytest.fail(f"zizmor finds in the workflows:\n{done.stdout}{done.stderr}", pytrace=False)
