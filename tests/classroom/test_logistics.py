"""What the page on logistics says: its commands run as they stand there, with downloads made as Canvas and Moodle make them."""

from __future__ import annotations

import math
import re
import shutil
from getpass import getuser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from zipfile import ZipFile

import nbformat
import pytest
import torch
from nbgrader.api import Gradebook  # type: ignore[import-untyped]

from tests.classroom.course import ASSIGNMENT, Notebook, Shell, blocks, commands, empty, exercises, hand_in, right, wrong
from tests.commands import ROOT
from tests.pages import pages
from tools.teaching.hand_back import pack

__all__ = ["exercises"]  # a fixture
PAGE = (ROOT / "book/teaching/logistics.md").read_text("utf-8")


# ── downloads from learning platforms ────────────────────────────────────────────────────────────────────────────────────

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


def test_who_is_not_in_the_download_is_named_and_so_is_the_command_that_is_missing(tmp_path: Path) -> None:
    for student in ("lovelaceada_1843", "hoppergrace_1906"):
        (tmp_path / "feedback" / student / "01_order").mkdir(parents=True)
        (tmp_path / "feedback" / student / "01_order/01_order.html").touch()
    archive = tmp_path / "downloaded/01_order/extracted/submissions"
    archive.mkdir(parents=True)
    (archive / "lovelaceada_18430_56789_01_order.ipynb").touch()
    (archive / "hoppergrace_LATE_1906_56789_01_order.ipynb").touch()
    assert pack("01_order", tmp_path)[1] == ["lovelaceada_1843"]
    with pytest.raises(ValueError, match="run nbgrader zip_collect 02_naive first"):
        pack("02_naive", tmp_path)


# ── the exchange, late work, and grading again ───────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_work_goes_through_the_exchange_and_late_work_costs_points(tmp_path: Path) -> None:
    """Due at 11:00 UTC: one student hands in before, and another the next day at 12:30, when the second day has begun."""
    teacher, student, exchange = (tmp_path / name for name in ("teacher", "student", "exchange"))
    for folder in (student, exchange):
        folder.mkdir()
    exchange.chmod(0o777)
    root, (rule,) = f"c.Exchange.root = {str(exchange)!r}\n", blocks("logistics.md", "Late work", "python")
    shutil.copytree(ROOT / "exercises/source" / ASSIGNMENT, teacher / "source" / ASSIGNMENT)
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


# ── what the page says besides ───────────────────────────────────────────────────────────────────────────────────────────


def test_answers_to_the_ten_questions_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for code in blocks("logistics.md", "Ten questions before the first session", "python"):
        exec(code, {})
        printed.append(capsys.readouterr().out.strip())
    scores = torch.tensor([0, 0, math.log(2)], dtype=torch.float64)
    weights = [round(weight, 12) for weight in scores.softmax(0).tolist()]  # processors differ in a later digit
    assert [round(weight, 12) for weight in (scores + 5).softmax(0).tolist()] == weights
    shape = (torch.zeros(5, 8) @ torch.zeros(8, 3)).shape
    quarter = torch.polar(torch.tensor(1.0), torch.tensor(math.pi / 2))
    spread = torch.tensor([1.0, 3, 5, 7])
    said = {
        "1": f"*AB* has {shape[0]} rows and {shape[1]} columns",
        "2": f"It's −{-torch.tensor([1, 2, 3]) @ torch.tensor([2, 0, -1])}:",
        "3": f"`{printed[0]}`",
        "4": f"`{printed[1]}`",
        "5": f"({abs(quarter.real):.0f}, {quarter.imag:.0f}), after π/2",
        "6": "sin *a* cos *b* + cos *a* sin *b*",
        "7": f"It's {10_000**-0.5:.2f}",
        "8": {(0.25, 0.25, 0.5): "¼, ¼ and ½"}[tuple(weights)],
        "9": f"The mean is {spread.mean():.0f}. ",
        "10": "overfitting",
    }
    text = pages.section(PAGE, "Ten questions") or ""
    told = dict(re.findall(r"^\*\*(\d+)\.\*\* .*?</summary>\n\n(.*?)\n\n</det", text, re.MULTILINE | re.DOTALL))
    assert told.keys() == said.keys()
    for number, words in said.items():
        assert words in told[number], number
    for deviation in (spread.std(correction=0), spread.std()):
        assert f"{deviation:.2f}<!--given-->" in told["9"]


def test_link_opens_a_chapter_of_the_copy() -> None:
    (link,) = re.findall(r"^https.*$", "\n".join(blocks("logistics.md", "On a JupyterHub")), re.MULTILINE)
    query = parse_qs(urlsplit(link).query)
    lab, tree, folder, *path = query["urlpath"][0].removesuffix("?autodecode").split("/")
    assert (lab, tree) == ("lab", "tree")
    assert query["repo"] == [f"https://github.com/OWNER/{folder}"]
    assert ROOT.joinpath(*path).is_file()
