"""Packs an assignment for Gradescope, where nbgrader grades it with the course's settings.

    python ../tools/teaching/graders.py 01_order      # in exercises/, after the package's wheel was put into handout/01_order

Writes graders/01_order/gradescope.zip, which Gradescope takes as an autograder. It has the exercises and the package with its
checks, but not the solutions.
"""

import argparse
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

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


def files(assignment: str) -> dict[str, bytes]:
    """What the grader needs, by name."""
    handout = Path("handout", assignment)
    wheels = sorted(handout.glob("posenc_course-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"exercises/{handout} has {len(wheels)} wheels of the package: put one there with pip wheel")
    (wheel,) = wheels
    return {
        "setup.sh": SETUP.format(wheel=wheel.name).encode(),
        "grade.py": (ROOT / "tools/teaching/grade.py").read_bytes(),
        "nbgrader_config.py": Path("nbgrader_config.py").read_bytes(),
        "requirements.lock": (ROOT / "requirements.lock").read_bytes(),
        "run_autograder": RUN.encode(),
        f"source/{assignment}/{assignment}.ipynb": (handout / f"{assignment}.ipynb").read_bytes(),
        wheel.name: wheel.read_bytes(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", help="for example 01_order")
    assignment = parser.parse_args().assignment
    packed = files(assignment)
    folder = Path("graders", assignment)
    folder.mkdir(parents=True, exist_ok=True)
    with ZipFile(folder / "gradescope.zip", "w") as archive:
        for name, content in packed.items():
            entry = ZipInfo(name)
            # Scripts must be executable.
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, content, ZIP_DEFLATED)
    print(folder)
