"""The quizzes' files for learning systems: read back, they have the words, formulas and keys of the pages."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urldefrag
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pytest
from bs4 import BeautifulSoup

from tests.pages.pages import BOOK, CHAPTERS, TEXTS
from tests.pages.prose import options, page_named
from tools.teaching.quizzes import canvas, main, moodle, quizzes


class Question(NamedTuple):
    """A question as a learning system reads it, in HTML."""

    text: str
    options: list[str]
    right: list[bool]
    reasons: list[str]

    @property
    def html(self) -> str:
        pairs = zip(self.options, self.reasons, strict=True)
        return self.text + "".join(option + reason for option, reason in pairs)


def from_moodle(file: bytes) -> Iterator[Question]:
    for question in ET.fromstring(file).iterfind("question[@type='multichoice']"):
        answers = question.findall("answer")
        yield Question(
            question.findtext("questiontext/text") or "",
            [answer.findtext("text") or "" for answer in answers],
            [answer.get("fraction") == "100" for answer in answers],
            [answer.findtext("feedback/text") or "" for answer in answers],
        )


def from_qti(file: bytes) -> Iterator[Question]:
    with ZipFile(io.BytesIO(file)) as package:
        of_manifest = next(ET.fromstring(package.read("imsmanifest.xml")).iterfind(".//{*}file"))
        questions = ET.fromstring(package.read(of_manifest.attrib["href"]))
    for item in questions.iterfind(".//{*}item"):
        labels = {each.attrib["ident"]: each for each in item.iterfind(".//{*}response_label")}
        feedback = {each.attrib["ident"]: each.findtext(".//{*}mattext") for each in item.iterfind("{*}itemfeedback")}
        earning = [each for each in item.iterfind(".//{*}respcondition") if each.findtext("{*}setvar") == "100"]
        (right,) = (each.findtext("{*}conditionvar/{*}varequal") for each in earning)
        yield Question(
            as_written(item.findtext("{*}presentation/{*}material/{*}mattext")),
            [as_written(each.findtext(".//{*}mattext")) for each in labels.values()],
            [label == right for label in labels],
            [as_written(feedback.get(f"{label}_fb")) for label in labels],
        )


def as_written(html: str | None) -> str:
    """With the LaTeX of pictures of formulas, and straight quotes."""
    html = re.sub(r'<img class="equation_image"[^>]* data-equation-content="([^"]*)"[^>]*>', r"\\(\1\\)", html or "")
    return re.sub("&[lr]squo;", "'", re.sub("&[lr]dquo;", '"', html))


@pytest.fixture(scope="module", params=["Moodle", "QTI"])
def files(request: pytest.FixtureRequest) -> dict[str, list[Question]]:
    if request.param == "Moodle":
        return {quiz.name: [*from_moodle(moodle(quiz))] for quiz in quizzes()}
    return {quiz.name: [*from_qti(canvas(quiz))] for quiz in quizzes()}


def text_of(html: str) -> str:
    return BeautifulSoup(html, "html.parser").get_text()


def bare(text: str) -> str:
    """Words, numbers and formulas without the marks of Markdown and HTML, so that a page and a file can be compared."""
    text = re.sub(r"<!--.*?-->|<[^>]+>|^#+ [^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"[*`$\s]|\\[()]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text))


def formulas(text: str) -> list[str]:
    return re.findall(r"\$(.+?)\$", re.sub(r"<!--.*?-->|`.*?`", "", text))


def drawn(questions: list[Question]) -> list[str]:
    return re.findall(r"\\\((.+?)\\\)", text_of("".join(question.html for question in questions)))


def test_a_quiz_is_in_its_file_word_for_word(files: dict[str, list[Question]]) -> None:
    pages = {name: (page_named(name).text, "Quiz") for name in CHAPTERS}
    pages["inventory"] = (TEXTS["inventory"].read_text("utf-8"), "The questions")
    for name, (text, heading) in pages.items():
        (section,) = re.findall(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        section = re.sub(r"^\*\*\d+\.(\*\*)? |^- \*\*[A-Z]\.\*\* ", "", section, flags=re.MULTILINE)
        assert bare(text_of("".join(question.html for question in files[name]))) == bare(section), name
        assert drawn(files[name]) == formulas(section), name
        right = [right for question in files[name] for right in question.right]
        assert right == [answer == "Yes" for _, _, answer, _ in options(text)] or name == "inventory", name
    assert all(question.right.count(True) == 1 for question in files["inventory"])


def test_reasons_link_to_pages_that_exist() -> None:
    site = "https://example.org/course"
    html = "".join(question.html for quiz in quizzes(site) for question in from_moodle(moodle(quiz)))
    links = {urldefrag(str(link["href"])).url for link in BeautifulSoup(html, "html.parser").select("a")}
    assert links
    for link in links:
        page = BOOK / link.removeprefix(f"{site}/book/")
        assert page.with_suffix(".ipynb").is_file() or page.with_suffix(".md").is_file(), link


def test_one_command_writes_all_files(tmp_path: Path) -> None:
    main(tmp_path)
    names = {*CHAPTERS, "inventory"}
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}{suffix}" for name in names for suffix in (".xml", ".zip")}
    category = ET.parse(tmp_path / "01_order.xml").findtext("question[@type='category']/category/text")
    assert category == "$course$/top/Chapter 1: Why doesn't a Transformer know word order?"
