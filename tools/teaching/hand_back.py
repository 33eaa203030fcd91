"""Packs the feedback on an assignment for Canvas or Moodle, which then gives each page to the student that it's for.

    python ../tools/teaching/hand_back.py 01_order    # in exercises/, after nbgrader's zip_collect and generate_feedback

Writes hand_back/01_order.zip. Both systems tell by the name of a file whose it is, so each page gets the name that the
student's notebook had in the download.
"""

import argparse
import re
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile


def name_in_download(student: str, notebooks: list[Path]) -> Path | None:
    """Of the notebook of a student such as `Ada Lovelace_1843`, without what comes before the part that has the name."""
    name, _, number = student.rpartition("_")
    whose = re.compile(rf"{re.escape(name)}_(LATE_)?{number}_")
    for notebook in notebooks:
        for place, part in enumerate(notebook.parts):
            if whose.match(part):
                return Path(*notebook.parts[place:])
    return None


def pack(assignment: str) -> list[str]:
    """Write the zip file; return the students that it has no page for, because the download doesn't have their notebooks."""
    notebooks = sorted(Path("downloaded", assignment, "extracted").rglob("*.ipynb"))
    pages = sorted(Path().glob(f"feedback/*/{assignment}/{assignment}.html"))
    for found, command in [(notebooks, "zip_collect"), (pages, "generate_feedback")]:
        if not found:
            sys.exit(f"there is nothing of {assignment} to hand back: run nbgrader {command} {assignment} first")
    names = {page: name_in_download(page.parent.parent.name, notebooks) for page in pages}
    Path("hand_back").mkdir(exist_ok=True)
    with ZipFile(f"hand_back/{assignment}.zip", "w", ZIP_DEFLATED) as archive:
        for page, name in names.items():
            if name:
                archive.write(page, name.with_suffix(".html"))
    return [page.parent.parent.name for page, name in names.items() if not name]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", help="for example 01_order")
    given = parser.parse_args()
    left_out = pack(given.assignment)
    print(f"hand_back/{given.assignment}.zip")
    if left_out:
        print(f"It has no page for {', '.join(left_out)}: the download doesn't have their notebooks.")
