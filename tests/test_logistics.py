"""What the page on logistics says: its commands run as they stand there, with downloads made as Canvas and Moodle make them."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from getpass import getuser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from zipfile import ZipFile

import nbformat
import pytest
import torch
from nbgrader.api import Gradebook  # type: ignore[import-untyped]
from packaging.specifiers import SpecifierSet

from tests import pages
from tests.commands import ROOT, WEEKLY
from tests.test_classroom import ASSIGNMENT, Shell, commands, exercises, hand_in, mistaken, solve
from tools.teaching.hand_back import pack

__all__ = ["exercises"]  # a fixture
PATH = [f'export PATH="{Path(sys.executable).parent}:$PATH"']
PAGE = (ROOT / "book/teaching/logistics.md").read_text("utf-8")


def blocks(heading: str, language: str = "") -> list[str]:
    """The blocks of code below a heading of the page."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", pages.section(PAGE, heading) or "", re.DOTALL | re.MULTILINE)
    return [block for of, block in found if of == language]


def lines(block: str) -> list[str]:
    return [line for each in block.splitlines() if (line := re.sub(r"(^| +)# .*", "", each))]


# ── downloads from learning platforms ────────────────────────────────────────────────────────────────────────────────────

# The names that each gives to the notebook of a student: in time and as named, late and renamed by the browser, named freely.
DOWNLOADS = {
    "canvas": {
        "lovelaceada_1843": "lovelaceada_1843_56789_01_order.ipynb",
        "hopper-murraygrace_1906": "hopper-murraygrace_LATE_1906_56790_01_order-1.ipynb",
        "nöther_1882": "nöther_1882_56791_my_homework_2.ipynb",
    },
    "moodle": {
        "Ada Lovelace_1843": "Ada Lovelace_1843_assignsubmission_file/01_order.ipynb",
        "Grace Hopper-Murray_1906": "Grace Hopper-Murray_1906_assignsubmission_file_/01_order (1).ipynb",
        "Emmy Nöther_1882": "Emmy Nöther_1882_assignsubmission_file_my homework.ipynb",
    },
}
GRADED = {"canvas": WEEKLY, "moodle": True}


def download(course: Path, archive: Path, names: list[str]) -> None:
    """The first student is right, the second has a mistake, and the third has done nothing."""
    for name, change in zip(names, (solve, mistaken, lambda _: None), strict=True):
        notebook = nbformat.read(course / "handout" / ASSIGNMENT / f"{ASSIGNMENT}.ipynb", as_version=4)
        change(notebook)
        with ZipFile(archive, "a") as file:
            file.writestr(name, nbformat.writes(notebook))


@pytest.fixture(scope="module", params=DOWNLOADS)
def platform(request: pytest.FixtureRequest, exercises: Path) -> Iterator[tuple[Path, str]]:
    """The course after the page's commands, and whose download it was.

    What is collected from Canvas is graded on Mondays only: from there on, its notebooks go the way of Moodle's.
    """
    shell = Shell(exercises, PATH, at_once=True)
    downloads = exercises.parent / "Downloads"
    downloads.mkdir(exist_ok=True)
    shell(f"nbgrader generate_assignment {ASSIGNMENT} --force")
    names = [*DOWNLOADS[request.param].values()]
    download(exercises, downloads / "submissions.zip", names)
    with ZipFile(downloads / "submissions.zip", "a") as file:  # as macOS adds them, and what a student handed in beside it
        file.writestr(f"__MACOSX/{Path(names[0]).parent}/._01_order.ipynb", "")
        file.writestr(names[0].replace("01_order.ipynb", "notes.txt"), "")
    for command in lines(blocks("Canvas and Moodle")[0]):
        if GRADED[request.param] or not command.startswith(("nbgrader autograde", "nbgrader generate_feedback")):
            shell(command.replace("~/Downloads", f"'{downloads}'"))
        else:
            for student in (exercises / "submitted").iterdir():
                page = exercises / "feedback" / student.name / ASSIGNMENT / f"{ASSIGNMENT}.html"
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(f"<html>{student.name}", "utf-8")
    yield exercises, request.param
    for folder in ("downloaded", "submitted", "autograded", "feedback", "hand_back"):
        shutil.rmtree(exercises / folder, ignore_errors=True)
    (exercises / "gradebook.db").unlink()


@pytest.mark.slow
def test_a_download_is_graded_under_the_students_names(platform: tuple[Path, str]) -> None:
    course, whose = platform
    assert {path.name for path in (course / "submitted").iterdir()} == {*DOWNLOADS[whose]}
    if GRADED[whose]:
        with Gradebook(f"sqlite:///{course}/gradebook.db") as gradebook:
            points = [gradebook.find_submission(ASSIGNMENT, student).score for student in DOWNLOADS[whose]]
        assert points == [8, 7, 0]


@pytest.mark.slow
def test_feedback_goes_back_under_the_names_of_the_download(platform: tuple[Path, str]) -> None:
    course, whose = platform
    with ZipFile(course / "hand_back" / f"{ASSIGNMENT}.zip") as archive:
        pages = {re.sub(r"html$", "ipynb", name): archive.read(name).decode() for name in archive.namelist()}
    assert pages.keys() == {*DOWNLOADS[whose].values()}
    for student, name in DOWNLOADS[whose].items():
        wanted = (course / "feedback" / student / ASSIGNMENT / f"{ASSIGNMENT}.html").read_text("utf-8")
        assert pages[name] == wanted
        assert "<html" in wanted
    if GRADED[whose]:
        for words, said in {"Right: all 16 functions": 2, "Your P is the transpose": 1, "Not tried yet": 1}.items():
            assert sum(words in page for page in pages.values()) == said


@pytest.mark.parametrize(("done", "lacks"), [([], "zip_collect"), (["downloaded/01_order/extracted/a"], "generate_feedback")])
def test_what_cannot_be_handed_back_says_what_to_run(tmp_path: Path, done: list[str], lacks: str) -> None:
    for folder in done:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "lovelaceada_1843_56789_01_order.ipynb").touch()
    with pytest.raises(ValueError, match=f"run nbgrader {lacks} 01_order first"):
        pack("01_order", tmp_path)


def test_who_is_not_in_the_download_is_named(tmp_path: Path) -> None:
    for student in ("lovelaceada_1843", "hoppergrace_1906"):
        (tmp_path / "feedback" / student / "01_order").mkdir(parents=True)
        (tmp_path / "feedback" / student / "01_order/01_order.html").touch()
    archive = tmp_path / "downloaded/01_order/extracted/submissions"
    archive.mkdir(parents=True)
    (archive / "lovelaceada_18430_56789_01_order.ipynb").touch()
    (archive / "hoppergrace_LATE_1906_56789_01_order.ipynb").touch()
    assert pack("01_order", tmp_path)[1] == ["lovelaceada_1843"]


# ── the exchange, late work, and grading again ───────────────────────────────────────────────────────────────────────────


@dataclass
class Two:
    """A course of its own with the page's rule for late work, and one of its students, who hands in through the exchange."""

    teacher: Shell
    student: Shell

    def submission(self, student: str) -> tuple[float, float]:
        """The points, and what being late has cost."""
        with Gradebook(f"sqlite:///{self.teacher.folder}/gradebook.db") as gradebook:
            found = gradebook.find_submission(ASSIGNMENT, student)
            return found.score, round(found.late_submission_penalty, 9)


ME = getuser()  # as the exchange calls whoever hands in
(LATE_WORK,) = map(lines, blocks("Late work"))


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory) -> Two:
    """Due at 11:00 UTC: one student has handed in before, and another the next day at 12:30, when the second day has begun."""
    teacher, student, exchange = map(tmp_path_factory.mktemp, ("teacher", "student", "exchange"))
    exchange.chmod(0o777)
    root = f"c.Exchange.root = {str(exchange)!r}\n"
    (rule,) = blocks("Late work", "python")
    shutil.copytree(ROOT / "exercises/source" / ASSIGNMENT, teacher / "source" / ASSIGNMENT)
    (teacher / "nbgrader_config.py").write_text((ROOT / "exercises/nbgrader_config.py").read_text() + rule + root)
    (student / "nbgrader_config.py").write_text(f"c = get_config()\n{root}")
    both = Two(*(Shell(folder, PATH, at_once=True) for folder in (teacher, student)))
    release, fetch, submit, collect = commands("the exchange")
    both.teacher(f"nbgrader generate_assignment {ASSIGNMENT}")
    both.teacher(release)
    both.student(fetch)
    file = f"{ASSIGNMENT}/{ASSIGNMENT}.ipynb"
    notebook = nbformat.read(student / file, as_version=4)
    solve(notebook)
    nbformat.write(notebook, student / file)
    assert "Success! Your notebook passes all the tests." in both.student(f"nbgrader validate {file}")
    both.student(submit)
    both.teacher(collect)
    (teacher / "submitted" / ME / ASSIGNMENT / "timestamp.txt").unlink()  # of now
    hand_in(teacher, "late", solve)
    for whose, when in {"late": "2027-03-02 12:30 UTC", ME: "2027-03-01 10:59 UTC"}.items():
        (teacher / "submitted" / whose / ASSIGNMENT / "timestamp.txt").write_text(when)
    for command in LATE_WORK:
        both.teacher(command)
    return both


@pytest.mark.slow
def test_feedback_goes_back_through_the_exchange(handed_in: Two) -> None:
    """With the two commands that the page names, after those of the guide."""
    release, fetch = re.findall(r"`(nbgrader \w+_feedback 01_order(?: --course=\S+)?)`(?:;|\.\n)", PAGE)
    assert (release, fetch[:23]) == (f"nbgrader release_feedback {ASSIGNMENT}", "nbgrader fetch_feedback")
    handed_in.teacher(f"nbgrader generate_feedback {ASSIGNMENT} --student={ME}")  # what came by mail goes back by mail
    handed_in.teacher(release)
    handed_in.student(fetch)
    (page,) = handed_in.student.folder.glob(f"{ASSIGNMENT}/feedback/*/{ASSIGNMENT}.html")
    assert "Right: all 16 functions" in page.read_text("utf-8")


@pytest.mark.slow
def test_late_work_costs_points_and_a_second_grading_keeps_those_given_by_hand(handed_in: Two) -> None:
    assert handed_in.submission("late") == (8, 1.6)
    assert handed_in.submission(ME) == (8, 0)
    with Gradebook(f"sqlite:///{handed_in.teacher.folder}/gradebook.db") as gradebook:
        notebook = gradebook.find_submission_notebook(ASSIGNMENT, ASSIGNMENT, "late")
        (words,) = (grade for grade in notebook.grades if grade.needs_manual_grade)
        words.manual_score = 2
        gradebook.db.commit()
    handed_in.teacher(f"{LATE_WORK[-1]} --student=late")
    assert handed_in.submission("late") == (10, 2)
    assert handed_in.submission(ME) == (8, 0)


# ── what the page says besides ───────────────────────────────────────────────────────────────────────────────────────────


def answers() -> dict[int, str]:
    text = pages.section(PAGE, "Ten questions") or ""
    return {
        int(number): answer
        for number, answer in re.findall(r"^\*\*(\d+)\.\*\* .*?</summary>\n\n(.*?)\n\n</det", text, re.M | re.S)
    }


def test_answers_to_the_ten_questions_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for code in blocks("Ten questions", "python"):
        exec(code, {})
        printed.append(capsys.readouterr().out.strip())
    scores = torch.tensor([0, 0, math.log(2)], dtype=torch.float64)
    weights = [round(weight, 12) for weight in scores.softmax(0).tolist()]  # processors differ in a later digit
    assert [round(weight, 12) for weight in (scores + 5).softmax(0).tolist()] == weights
    shape = (torch.zeros(5, 8) @ torch.zeros(8, 3)).shape
    with pytest.raises(RuntimeError):
        torch.zeros(8, 3) @ torch.zeros(5, 8)
    quarter = torch.polar(torch.tensor(1.0), torch.tensor(math.pi / 2))
    spread = torch.tensor([1.0, 3, 5, 7])
    said = {
        1: f"*AB* has {shape[0]} rows and {shape[1]} columns",
        2: f"It's −{-torch.tensor([1, 2, 3]) @ torch.tensor([2, 0, -1])}:",
        3: f"`{printed[0]}`",
        4: f"`{printed[1]}`",
        5: f"({abs(quarter.real):.0f}, {quarter.imag:.0f}), after π/2",
        6: "sin *a* cos *b* + cos *a* sin *b*",
        7: f"It's {10_000**-0.5:.2f}",
        8: {(0.25, 0.25, 0.5): "¼, ¼ and ½"}[tuple(weights)],
        9: f"The mean is {spread.mean():.0f}. ",
        10: "overfitting",
    }
    told = answers()
    assert told.keys() == said.keys()
    for number, words in said.items():
        assert words in told[number], number
    for deviation in (spread.std(correction=0), spread.std()):
        assert f"{deviation:.2f}<!--given-->" in told[9]
    assert math.isclose(math.sin(0.3 + 0.5), math.sin(0.3) * math.cos(0.5) + math.cos(0.3) * math.sin(0.5))


def test_link_opens_a_chapter_of_the_copy() -> None:
    (link,) = (line for block in blocks("On a JupyterHub") for line in block.splitlines() if line.startswith("https"))
    query = parse_qs(urlsplit(link).query)
    lab, tree, folder, *path = query["urlpath"][0].removesuffix("?autodecode").split("/")
    assert (lab, tree) == ("lab", "tree")
    assert query["repo"] == [f"https://github.com/OWNER/{folder}"]
    assert query["branch"] == ["main"]
    assert ROOT.joinpath(*path).is_file()


def test_image_is_set_up_as_the_makefile_does_it() -> None:
    """And runs a Python that the set-up accepts."""
    script = (ROOT / ".binder/postBuild").read_text("utf-8")
    assert os.access(ROOT / ".binder/postBuild", os.X_OK)
    (target,) = re.findall(r"^make (\S+)$", script, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert re.search(rf"^{re.escape(target)}:.*\n\t@\$\(PYTHON\) tools/setup_env\.py$", makefile, re.MULTILINE)
    (version,) = re.findall(r"python=(\S+?),", (ROOT / ".binder/environment.yml").read_text("utf-8"))
    assert version in SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"])
