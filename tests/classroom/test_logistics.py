"""What the page on logistics says: its commands run as they stand there, with downloads made as Canvas and Moodle make them."""

import re
import shutil
from getpass import getuser
from pathlib import Path
from zipfile import ZipFile

import nbformat
import pytest
from nbgrader.api import Gradebook

from tests.classroom.course import ASSIGNMENT, Notebook, Shell, blocks, commands, empty, exercises, hand_in, right, wrong
from tests.commands import ROOT
from tools.teaching.hand_back import pack

__all__ = ["exercises"]  # a fixture
PAGE = (ROOT / "book/teaching/logistics.md").read_text("utf-8")


# The names that each gives to the notebook of a student: in time and as named, late and renamed by the browser, named freely.
DOWNLOAD = {
    "lovelaceada_1843": "lovelaceada_1843_56789_01_order.ipynb",
    "hopper-murraygrace_1906": "hopper-murraygrace_LATE_1906_56790_01_order-1.ipynb",
    "nöther_1882": "nöther_1882_56791_my_homework_2.ipynb",
    "Ada Lovelace_1843": "Ada Lovelace_1843_assignsubmission_file/01_order.ipynb",
    "Grace Hopper-Murray_1906": "Grace Hopper-Murray_1906_assignsubmission_file_/01_order (1).ipynb",
    "Emmy Nöther_1882": "Emmy Nöther_1882_assignsubmission_file_my homework.ipynb",
}


@pytest.mark.slow
def test_a_download_is_graded_and_goes_back_under_the_names_that_it_had(exercises: Path) -> None:
    """Canvas's names and Moodle's in one class: what is collected is the same notebook under either."""
    shell, downloads = Shell(exercises), exercises.parent / "Downloads"
    downloads.mkdir()
    shell(f"nbgrader generate_assignment {ASSIGNMENT}")
    with ZipFile(downloads / "submissions.zip", "w") as archive:
        for name, change in zip(DOWNLOAD.values(), (right, empty, empty, empty, wrong, empty), strict=True):
            notebook: Notebook = nbformat.read(exercises / "handout" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
            change(notebook)
            archive.writestr(name, nbformat.writes(notebook))
        archive.writestr("__MACOSX/Ada Lovelace_1843_assignsubmission_file/._01_order.ipynb", "")  # as macOS adds it
        archive.writestr("lovelaceada_1843_56789_notes.txt", "")
    for command in commands("logistics.md", "Through Canvas and Moodle"):
        shell(command.replace("~/Downloads", f"'{downloads}'"))
    assert {path.name for path in (exercises / "submitted").iterdir()} == {*DOWNLOAD}
    with Gradebook(f"sqlite:///{exercises}/gradebook.db") as gradebook:
        assert [gradebook.find_submission(ASSIGNMENT, student).score for student in DOWNLOAD] == [6, 0, 0, 0, 4, 0]
    with ZipFile(exercises / "hand_back" / f"{ASSIGNMENT}.zip") as archive:
        back = {re.sub(r"html$", "ipynb", name): archive.read(name).decode() for name in archive.namelist()}
    assert back.keys() == {*DOWNLOAD.values()}
    for student, name in DOWNLOAD.items():
        assert back[name] == (exercises / "feedback" / student / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text("utf-8")


def test_who_is_not_in_the_download_is_named_and_so_is_the_command_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = Path("downloaded/01_order/extracted/submissions")
    feedback = [Path("feedback", student, "01_order/01_order.html") for student in ("lovelaceada_1843", "hoppergrace_1906")]
    notebooks = [archive / f"{name}_01_order.ipynb" for name in ("lovelaceada_18430_56789", "hoppergrace_LATE_1906_56790")]
    for file in feedback + notebooks:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert pack("01_order") == ["lovelaceada_1843"]
    with pytest.raises(SystemExit, match="run nbgrader zip_collect 02_naive first"):
        pack("02_naive")


@pytest.mark.slow
def test_work_goes_through_the_exchange_and_late_work_costs_points(tmp_path: Path, exercises: Path) -> None:
    """Due at 11:00 UTC: one student hands in before, and another the next day at 12:30, when the second day has begun."""
    teacher, student, exchange = (tmp_path / name for name in ("teacher", "student", "exchange"))
    for folder in (student, exchange):
        folder.mkdir()
    exchange.chmod(0o777)
    root, (rule,) = f"c.Exchange.root = {str(exchange)!r}\n", blocks("logistics.md", "Late work", "python")
    shutil.copytree(exercises / "source" / ASSIGNMENT, teacher / "source" / ASSIGNMENT)
    (teacher / "nbgrader_config.py").write_text((ROOT / "exercises/nbgrader_config.py").read_text() + rule + root)
    (student / "nbgrader_config.py").write_text(f"c = get_config()\n{root}")
    teach, study, me = Shell(teacher), Shell(student), getuser()  # as the exchange calls whoever hands in
    release, fetch, submit, collect = commands("classroom.md", "With the exchange")
    teach(f"nbgrader generate_assignment {ASSIGNMENT}")
    teach(release)
    study(fetch)
    file = student / ASSIGNMENT / f"{ASSIGNMENT}.ipynb"
    notebook = nbformat.read(file, as_version=4)
    right(notebook)
    nbformat.write(notebook, file)
    assert "Success! Your notebook passes all the tests." in study(f"nbgrader validate {ASSIGNMENT}/{ASSIGNMENT}.ipynb")
    study(submit)
    teach(collect)
    hand_in(teacher, "late", right)
    for whose, when in {"late": "2027-03-02 12:30 UTC", me: "2027-03-01 10:59 UTC"}.items():
        (teacher / "submitted" / whose / ASSIGNMENT / "timestamp.txt").unlink(missing_ok=True)
        (teacher / "submitted" / whose / ASSIGNMENT / "timestamp.txt").write_text(when)
    *_, grade = late_work = commands("logistics.md", "Late work")
    for command in late_work:
        teach(command)

    def scores() -> dict[str, tuple[float, float]]:
        """The points of each student, and what being late has cost."""
        with Gradebook(f"sqlite:///{teacher}/gradebook.db") as gradebook:
            found = {whose: gradebook.find_submission(ASSIGNMENT, whose) for whose in ("late", me)}
            return {whose: (each.score, round(each.late_submission_penalty, 9)) for whose, each in found.items()}

    assert scores() == {"late": (6, 1.2), me: (6, 0)}
    with Gradebook(f"sqlite:///{teacher}/gradebook.db") as gradebook:
        grades = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, "late").grades
        (words,) = (grade for grade in grades if grade.needs_manual_grade)
        words.manual_score = 2
        gradebook.db.commit()
    teach(f"{grade} --student=late")
    assert scores() == {"late": (8, 1.6), me: (6, 0)}, "what was given by hand stays"

    teach(f"nbgrader generate_feedback {ASSIGNMENT} --student={me}")  # what came by mail goes back by mail
    back, take = re.findall(r"`(nbgrader \w+_feedback 01_order(?: --course=\S+)?)`(?:;|\.\n)", PAGE)
    teach(back)
    study(take)
    (page,) = student.glob(f"{ASSIGNMENT}/feedback/*/{ASSIGNMENT}.html")
    assert "Right: all" in page.read_text("utf-8")
