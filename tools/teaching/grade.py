"""Grades one student's notebook with nbgrader and the course's settings, where there is no gradebook.

    python grade.py SUBMISSION RESULTS

`graders.py` puts this file beside the assignment and the settings, for Gradescope. SUBMISSION is the folder with what the
student has handed in. RESULTS is the file to write, in Gradescope's format: the points and the verdict of each exercise that a
check grades.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbgrader.utils import determine_grade

HERE = Path(__file__).resolve().parent
(SOURCE,) = HERE.glob("source/*/*.ipynb")


def autograded(submission: Path, course: Path) -> Path:
    """The notebook of a submission as nbgrader has graded it in an empty folder.

    Raises ValueError, with what the student should read, if there is none.
    """
    name = SOURCE.stem
    found = sorted(submission.rglob("*.ipynb"))
    notebooks = [path for path in found if path.stem == name] or found
    if len(notebooks) != 1:
        raise ValueError(f"Hand in a single notebook, {name}.ipynb; there are {len(notebooks)}.")
    shutil.copy(HERE / "nbgrader_config.py", course)
    shutil.copytree(HERE / "source", course / "source")
    handed_in = course / "submitted/student" / name / SOURCE.name
    handed_in.parent.mkdir(parents=True)
    shutil.copy(notebooks[0], handed_in)
    # nbgrader calls other programs of its environment.
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in ("generate_assignment", "autograde"):
        subprocess.run(["nbgrader", command, name], cwd=course, env=os.environ | {"PATH": programs}, check=False)
    graded = course / "autograded/student" / name / SOURCE.name
    if not graded.is_file():
        raise ValueError("nbgrader couldn't grade this notebook. Was it saved by Jupyter?")
    return graded


def graded_cells(path: Path) -> dict[str, Any]:
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    return {cell.metadata.nbgrader.grade_id: cell for cell in code if cell.metadata.get("nbgrader", {}).get("grade")}


def result(exercise: Any, cell: Any, says: str) -> dict[str, Any]:
    """What an exercise has earned, as Gradescope calls it; `says` is said if the notebook doesn't have its cell."""
    about, points = exercise.metadata.nbgrader, 0
    if cell is not None:
        printed = "".join(output.get("text", "") for output in cell.outputs).strip().splitlines()
        errors = [output.evalue for output in cell.outputs if output.output_type == "error"]
        points, says = determine_grade(cell)[0], (printed or errors or [""])[-1]
    status = "passed" if points == about.points else "failed"
    return {"name": about.grade_id, "score": points, "max_score": about.points, "status": status, "output": says}


def main(submission: Path, results: Path) -> None:
    cells, says = {}, "No verdict, because this exercise's cell is missing."
    with TemporaryDirectory() as course:
        try:
            cells = graded_cells(autograded(submission, Path(course)))
        except ValueError as error:
            says = str(error)
    tests = [result(exercise, cells.get(grade_id), says) for grade_id, exercise in graded_cells(SOURCE).items()]
    results.write_text(json.dumps({"tests": tests}, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
