"""Grades one student's notebook with nbgrader and the course's settings, where there is no gradebook.

    python grade.py SUBMISSION RESULTS

`graders.py` puts this file beside the assignment and the settings, for Gradescope. SUBMISSION is the folder with what the
student has handed in. RESULTS is the file to write, in Gradescope's format: the points and the verdict of each exercise that a
check grades.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import nbformat
from nbgrader.utils import determine_grade  # type: ignore[import-untyped]

from posenc_course._system import write_whole

HERE = Path(__file__).resolve().parent
Notebook = Any  # nbformat's NotebookNode: attributes for keys


class Result(NamedTuple):
    """What an exercise has earned, and why."""

    exercise: str
    points: float
    possible: float
    says: str


def graded(submission: Path, course: Path) -> list[Result]:
    """The results of the notebook in a folder; `course` is a folder that nbgrader may fill."""
    (source,) = HERE.glob("source/*/*.ipynb")
    name = source.stem
    found = sorted(submission.rglob("*.ipynb"))
    notebooks = [path for path in found if path.stem == name] or found
    autograded, says = None, "No verdict, because this exercise's cell is missing."
    if len(notebooks) != 1:
        says = f"Hand in a single notebook, {name}.ipynb; there are {len(notebooks)}."
    else:
        shutil.copy(HERE / "nbgrader_config.py", course)
        shutil.copytree(HERE / "source", course / "source")
        handed_in = course / "submitted/student" / name / f"{name}.ipynb"
        handed_in.parent.mkdir(parents=True)
        shutil.copy(notebooks[0], handed_in)
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # nbgrader calls others of its environment
        for command in ("generate_assignment", "autograde"):
            subprocess.run(["nbgrader", command, name], cwd=course, env=os.environ | {"PATH": programs}, check=False)
        path = course / "autograded/student" / name / handed_in.name
        if path.is_file():
            autograded = nbformat.read(path, as_version=4)
        else:
            says = "nbgrader couldn't grade this notebook. Was it saved by Jupyter?"
    return results(nbformat.read(source, as_version=4), autograded, says)


def results(source: Notebook, autograded: Notebook | None, says: str) -> list[Result]:
    """What each exercise of the source has earned in a graded notebook; `says` is said of one whose cell is missing there."""
    cells = _graded_cells(autograded) if autograded else {}
    return [_result(cell, cells.get(grade_id), says) for grade_id, cell in _graded_cells(source).items()]


def _graded_cells(notebook: Notebook) -> dict[str, Any]:
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")]
    return {cell.metadata.nbgrader.grade_id: cell for cell in code}


def _result(exercise: Any, cell: Any, says: str) -> Result:
    about = exercise.metadata.nbgrader
    if cell is None:
        return Result(about.grade_id, 0, about.points, says)
    printed = "".join(output.get("text", "") for output in cell.outputs).strip().splitlines()
    errors = [output.evalue for output in cell.outputs if output.output_type == "error"]
    return Result(about.grade_id, determine_grade(cell)[0], about.points, (printed or errors or [""])[-1])


def gradescope(results: list[Result]) -> dict[str, Any]:
    return {
        "tests": [
            {
                "name": each.exercise,
                "score": each.points,
                "max_score": each.possible,
                "status": "passed" if each.points == each.possible else "failed",
                "output": each.says,
            }
            for each in results
        ]
    }


def main(submission: Path, results: Path) -> int:
    with TemporaryDirectory() as course:
        found = graded(submission, Path(course))
    for each in found:
        print(f"{each.points:g} of {each.possible:g}  {each.exercise}: {each.says}")
    write_whole(results, json.dumps(gradescope(found), indent=2).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
