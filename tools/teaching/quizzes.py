"""Writes the quizzes of all chapters, and the concept inventory, as files for learning systems.

    python -m tools.teaching.quizzes _quizzes [https://example.org/course]

Each quiz becomes two files: NAME.xml, which Moodle imports into its question bank, and NAME.zip, a package in the standard
format QTI 1.2, which Canvas imports. Both hold the key and, for the chapters, the reason for every option. If the address of
the published site is given, the reasons link to its pages.
"""

import io
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin
from xml.etree.ElementTree import Element, tostring
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from posenc_course._system import write_whole

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = ROOT / "book/teaching/inventory.md"


class Option(NamedTuple):
    """An option of a question, in Markdown; `reason` may be empty."""

    text: str
    right: bool
    reason: str


class Question(NamedTuple):
    text: str
    options: list[Option]


class Quiz(NamedTuple):
    name: str
    title: str
    page: str  # its address, from which its links lead
    questions: list[Question]


# ── the sources ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def quizzes(site: str = "") -> Iterator[Quiz]:
    """Those of the chapters, then the inventory."""
    book = f"{site.rstrip('/')}/book/" if site else ""
    for path in sorted((ROOT / "text").glob("*.md")):
        yield of_chapter(path.stem, path.read_text("utf-8"), book)
    yield of_inventory(INVENTORY.read_text("utf-8"), book)


def section(text: str, heading: str) -> str:
    (found,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return str(found)


def of_chapter(name: str, text: str, book: str) -> Quiz:
    (title,) = re.findall(r"^# (.*)", text, re.MULTILINE)[:1]
    asked = re.split(r"^\*\*\d+\. (.*)\*\*$", section(text, "Quiz"), flags=re.MULTILINE)[1:]
    form = r'<details class="quiz">\n<summary>(.*?)</summary>\n\n(\*\*(Yes|No)\.\*\*.*?)\n\n</details>'
    questions = []
    for words, body in zip(asked[::2], asked[1::2], strict=True):
        options = [Option(text, says == "Yes", reason) for text, reason, says in re.findall(form, body, re.DOTALL)]
        questions.append(Question(words, options))
    return Quiz(name, f"Chapter {int(name[:2])}: {title}", f"{book}{name}.html", questions)


def of_inventory(text: str, book: str) -> Quiz:
    """The inventory, without reasons: it's taken before the course, and its key is on its page."""
    right = dict(re.findall(r"^\| (\d+) \| (\w) \|", section(text, "The key"), re.MULTILINE))
    form = r"^\*\*(\d+)\.\*\* (.*?)\n\n((?:- \*\*[A-Z]\.\*\* [^\n]*\n)+)"
    questions = []
    for number, words, listed in re.findall(form, section(text, "The questions"), re.MULTILINE | re.DOTALL):
        options = re.findall(r"^- \*\*([A-Z])\.\*\* (.*)$", listed, re.MULTILINE)
        questions.append(Question(words, [Option(option, letter == right[number], "") for letter, option in options]))
    return Quiz("inventory", "What do you believe about positions?", f"{book}teaching/inventory.html", questions)


# ── their texts ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _formula(latex: str, _options: dict[str, Any]) -> str:
    """Formulas stay as they are: Moodle and Canvas draw them where they are shown."""
    return rf"\({escape(latex)}\)"


MARKDOWN = MarkdownIt("commonmark", {"xhtmlOut": True}).use(dollarmath_plugin, renderer=_formula)


def html(text: str, page: str) -> str:
    """A paragraph of the book's Markdown as HTML. `page` is its address, or only the end of it if the site has none."""

    def link(found: re.Match[str]) -> str:
        address = urljoin(page, re.sub(r"\.(ipynb|md)\b", ".html", found[2]))
        return f"[{found[1]}]({address})" if "//" in address else found[1]

    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).strip()
    text = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", link, text)
    return f"<p>{MARKDOWN.renderInline(text)}</p>"


# ── the files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def element(tag: str, *inside: Element | str, **attributes: str) -> Element:
    made = Element(tag, attributes)
    for each in inside:
        if isinstance(each, str):
            made.text = each
        else:
            made.append(each)
    return made


def moodle(quiz: Quiz) -> bytes:
    """A category of Moodle's question bank, and the questions in it."""

    def formatted(tag: str, text: str, *more: Element, **attributes: str) -> Element:
        return element(tag, element("text", html(text, quiz.page) if text else ""), *more, format="html", **attributes)

    category = quiz.title.replace("/", "//")  # a single one would begin a category within the category
    root = element("quiz")
    root.append(element("question", element("category", element("text", f"$course$/top/{category}")), type="category"))
    for number, question in enumerate(quiz.questions, start=1):
        made = element(
            "question",
            element("name", element("text", f"{quiz.name}, {number:02}")),
            formatted("questiontext", question.text),
            element("defaultgrade", "1"),
            element("penalty", "0"),
            element("single", "true"),
            element("shuffleanswers", "false"),
            element("answernumbering", "ABCD"),
            type="multichoice",
        )
        for option in question.options:
            reason = formatted("feedback", option.reason)
            made.append(formatted("answer", option.text, reason, fraction="100" if option.right else "0"))
        root.append(made)
    return tostring(root, "utf-8", xml_declaration=True)


def qti(quiz: Quiz) -> bytes:
    """A package in QTI 1.2, in the form in which Canvas exports its own quizzes: a manifest, and a file with the questions."""
    section = element("section", ident="root_section")
    for number, question in enumerate(quiz.questions, start=1):
        section.append(_item(f"quiz_{quiz.name}_{number:02}", question, quiz.page))
    name = f"quiz_{quiz.name}"  # identifiers begin with a letter
    assessment = element("assessment", section, ident=name, title=quiz.title)
    resource = element("resource", element("file", href=f"{name}.xml"), identifier=name, type="imsqti_xmlv1p2")
    manifest = element(
        "manifest",
        element("metadata", element("schema", "IMS Content"), element("schemaversion", "1.1.3")),
        element("organizations"),
        element("resources", resource),
        identifier=f"package_{quiz.name}",
        xmlns="http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1",
    )
    questions = element("questestinterop", assessment, xmlns="http://www.imsglobal.org/xsd/ims_qtiasiv1p2")
    package = io.BytesIO()
    with ZipFile(package, "w") as archive:
        for file, root in {"imsmanifest": manifest, name: questions}.items():
            # Without the time, so that packages can be compared.
            archive.writestr(ZipInfo(f"{file}.xml"), tostring(root, "utf-8", xml_declaration=True), ZIP_DEFLATED)
    return package.getvalue()


def _item(name: str, question: Question, page: str) -> Element:
    """A question, with Canvas's own names: of a `response`, it reads the first option only, and reasons belong to numbers."""

    def material(text: str) -> Element:
        return element("material", element("mattext", html(text, page), texttype="text/html"))

    metadata, choices = element("qtimetadata"), element("render_choice", shuffle="No")
    for label, entry in {"question_type": "multiple_choice_question", "points_possible": "1.0"}.items():
        metadata.append(element("qtimetadatafield", element("fieldlabel", label), element("fieldentry", entry)))
    score = element("decvar", varname="SCORE", vartype="Decimal", minvalue="0", maxvalue="100")
    processing, feedback = element("resprocessing", element("outcomes", score)), []
    for number, option in zip("123456", question.options, strict=False):
        choices.append(element("response_label", material(option.text), ident=number))
        then = []
        if option.right:
            then.append(element("setvar", "100", action="Set", varname="SCORE"))
        if option.reason:
            then.append(element("displayfeedback", feedbacktype="Response", linkrefid=f"{number}_fb"))
            feedback.append(element("itemfeedback", element("flow_mat", material(option.reason)), ident=f"{number}_fb"))
        if then:
            chosen = element("conditionvar", element("varequal", number, respident="response1"))
            processing.append(element("respcondition", chosen, *then))
    response = element("response_lid", choices, ident="response1", rcardinality="Single")
    presentation = element("presentation", material(question.text), response)
    return element("item", element("itemmetadata", metadata), presentation, processing, *feedback, ident=name, title=name)


def main(folder: Path, site: str = "") -> None:
    for quiz in quizzes(site):
        write_whole(folder / f"{quiz.name}.xml", moodle(quiz))
        write_whole(folder / f"{quiz.name}.zip", qti(quiz))
        print(f"{folder / quiz.name}: {len(quiz.questions)} questions")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
