"""The schemas of the files that other programs read, and the rights of the workflows."""

import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, run

WORKFLOWS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / ".github/workflows").iterdir())


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
