"""Packs an assignment for Gradescope, where nbgrader grades it with the course's settings.

    python ../tools/teaching/graders.py 01_order      # in exercises/, after the package's wheel was put into handout/01_order

Writes graders/01_order/gradescope.zip, which Gradescope takes as an autograder. It has the exercises and the package with its
checks, but not the solutions.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from posenc_course._system import write_whole

ROOT = Path(__file__).resolve().parents[2]
SETUP = """#!/usr/bin/env bash
# Makes the environment in which notebooks are graded, with the versions that the course was tested with.
set -e
cd "$(dirname "$0")"
python3 -m pip --version > /dev/null 2>&1 || (apt-get update && apt-get install --yes python3-pip)
python3 -m pip install --quiet --target uv uv
PYTHONPATH=uv python3 -m uv venv --quiet --python ">=3.11,<3.15" venv
PYTHONPATH=uv python3 -m uv pip install --quiet --python venv --torch-backend cpu --constraint requirements.lock \\
    "posenc_course[plot,teach] @ file://$PWD/{wheel}"
"""
RUN = """#!/usr/bin/env bash
/autograder/source/venv/bin/python /autograder/source/grade.py /autograder/submission /autograder/results/results.json
"""


def grader(exercises: Path, assignment: str) -> dict[str, bytes]:
    """The files that the grader needs, by name. Raises ValueError if one is missing."""
    notebook = f"source/{assignment}/{assignment}.ipynb"
    if not (exercises / notebook).is_file():
        known = ", ".join(path.stem for path in sorted((exercises / "source").glob("*/*.ipynb")))
        raise ValueError(f"no assignment is called {assignment} in {exercises}: {known or 'run this in exercises/'}")
    handout = exercises / "handout" / assignment
    wheels = sorted(handout.glob("posenc_course-*.whl"))
    if len(wheels) != 1:
        raise ValueError(f"handout/{assignment} has {len(wheels)} wheels of the package: put one there with pip wheel")
    (wheel,) = wheels
    return {
        "setup.sh": SETUP.format(wheel=wheel.name).encode(),
        "grade.py": (ROOT / "tools/teaching/grade.py").read_bytes(),
        "nbgrader_config.py": (exercises / "nbgrader_config.py").read_bytes(),
        "requirements.lock": (ROOT / "requirements.lock").read_bytes(),
        "run_autograder": RUN.encode(),
        notebook: (handout / f"{assignment}.ipynb").read_bytes(),
        wheel.name: wheel.read_bytes(),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", help="for example 01_order")
    given = parser.parse_args(arguments)
    try:
        files = grader(Path(), given.assignment)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    folder = Path("graders") / given.assignment
    package = io.BytesIO()
    with ZipFile(package, "w") as archive:
        for name, content in files.items():
            entry = ZipInfo(name)
            entry.external_attr = 0o755 << 16  # scripts must be executable
            archive.writestr(entry, content, ZIP_DEFLATED)
    write_whole(folder / "gradescope.zip", package.getvalue())
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
