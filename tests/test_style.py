"""Style, types, and the schemas of the files that other programs read."""

import sys

import pytest

from tests.commands import run

WORKFLOW = ".github/workflows/pages.yml"


@pytest.mark.slow  # make check runs them as make lint
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
        ("vendor.citation-file-format", "CITATION.cff"),
    ],
)
def test_file_fits_its_schema(schema: str, file: str) -> None:
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, file)
    if done.returncode:
        pytest.fail(f"{file} is not valid:\n{done.stdout}{done.stderr}", pytrace=False)
