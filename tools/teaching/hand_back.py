"""Packs the feedback on an assignment for Canvas or Moodle, which then gives each page to the student that it's for.

    python ../tools/teaching/hand_back.py 01_order    # in exercises/, after nbgrader's zip_collect and generate_feedback

Writes hand_back/01_order.zip. Both systems tell by the name of a file whose it is, so each page gets the name that the
student's notebook had in the download.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from posenc_course._system import write_whole


def name_in_download(student: str, notebooks: list[Path]) -> Path | None:
    """Of the notebook of a student such as `Ada Lovelace_1843`, without what comes before the part that has the name."""
    name, _, number = student.rpartition("_")
    whose = re.compile(rf"{re.escape(name)}_(LATE_)?{number}_")
    for notebook in notebooks:
        for place, part in enumerate(notebook.parts):
            if whose.match(part):
                return Path(*notebook.parts[place:])
    return None


def pack(assignment: str, course: Path) -> tuple[bytes, list[str]]:
    """The zip file, and the students that it has no page for, because the download doesn't have their notebooks.

    Raises a ValueError if there is nothing to pack.
    """
    notebooks = sorted((course / "downloaded" / assignment / "extracted").rglob("*.ipynb"))
    pages = sorted(course.glob(f"feedback/*/{assignment}/{assignment}.html"))
    for found, command in [(notebooks, "zip_collect"), (pages, "generate_feedback")]:
        if not found:
            raise ValueError(f"there is nothing of {assignment} to hand back: run nbgrader {command} {assignment} first")
    packed, left_out = io.BytesIO(), []
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for page in pages:
            student = page.parent.parent.name
            if name := name_in_download(student, notebooks):
                archive.write(page, name.with_suffix(".html"))
            else:
                left_out.append(student)
    return packed.getvalue(), left_out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assignment", help="for example 01_order")
    assignment = parser.parse_args().assignment
    try:
        packed, left_out = pack(assignment, Path())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    path = Path("hand_back") / f"{assignment}.zip"
    write_whole(path, packed)
    print(path)
    if left_out:
        print(f"It has no page for {', '.join(left_out)}: the download doesn't have their notebooks.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
