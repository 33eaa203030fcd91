"""Writes the quizzes of all chapters, and the concept inventory, as files for learning systems.

    python -m tools.teaching.quizzes _quizzes [https://example.org/course]

Each quiz becomes two files: NAME.xml, which Moodle imports into its question bank, and NAME.zip, a package in the standard
format QTI 1.2, which Canvas imports. Both hold the key and, for the chapters, the reason for every option. If the address of
the published site is given, the reasons link to its pages.
"""

import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple
from urllib.parse import urljoin

import text2qti.quiz
from jinja2 import Template
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from text2qti.config import Config
from text2qti.qti import QTI

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
    """Formulas stay as they are: Moodle draws them where they are shown."""
    return rf"\({escape(latex)}\)"


MARKDOWN = MarkdownIt("commonmark", {"xhtmlOut": True}).use(dollarmath_plugin, renderer=_formula)


def markdown(text: str, page: str) -> str:
    """A text of the book in one line, without comments. `page` is its address, or only the end of it if the site has none."""

    def link(found: re.Match[str]) -> str:
        address = urljoin(page, re.sub(r"\.(ipynb|md)\b", ".html", found[2]))
        return f"[{found[1]}]({address})" if "//" in address else found[1]

    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", link, " ".join(text.split()))


def html(text: str, page: str) -> str:
    return f"<p>{MARKDOWN.renderInline(markdown(text, page))}</p>" if text else ""


# ── the files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


# A category of the question bank, and the questions in it. A single / would begin a category within the category.
MOODLE = Template(
    """<?xml version="1.0" encoding="utf-8"?>
<quiz>
<question type="category"><category><text>$course$/top/{{ title.replace("/", "//") }}</text></category></question>
{% for question in questions %}
<question type="multichoice">
  <name><text>{{ name }}, {{ "%02d" % loop.index }}</text></name>
  <questiontext format="html"><text>{{ html(question.text, page) }}</text></questiontext>
  <defaultgrade>1</defaultgrade><penalty>0</penalty><single>true</single>
  <shuffleanswers>false</shuffleanswers><answernumbering>ABCD</answernumbering>
  {% for option in question.options %}
  <answer fraction="{{ 100 if option.right else 0 }}" format="html">
    <text>{{ html(option.text, page) }}</text>
    <feedback format="html"><text>{{ html(option.reason, page) }}</text></feedback>
  </answer>
  {% endfor %}
</question>
{% endfor %}
</quiz>
""",
    autoescape=True,
)


def moodle(quiz: Quiz) -> bytes:
    return MOODLE.render(quiz._asdict(), html=html).encode()


def canvas(quiz: Quiz) -> bytes:
    """A package in QTI, made by text2qti, which takes Markdown, and has Canvas draw the formulas."""
    lines = [f"Quiz title: {quiz.title}", "Shuffle answers: false"]
    for number, question in enumerate(quiz.questions, start=1):
        lines += ["", f"{number}. {markdown(question.text, quiz.page)}"]
        for letter, option in zip(ascii_lowercase, question.options, strict=False):
            lines.append(f"{'*' * option.right}{letter}) {markdown(option.text, quiz.page)}")
            if option.reason:
                lines.append(f"... {markdown(option.reason, quiz.page)}")
    read = text2qti.quiz.Quiz("\n".join(lines), config=Config(), source_name=quiz.name)
    return bytes(QTI(read).zip_bytes())


def main(folder: Path, site: str = "") -> None:
    for quiz in quizzes(site):
        write_whole(folder / f"{quiz.name}.xml", moodle(quiz))
        write_whole(folder / f"{quiz.name}.zip", canvas(quiz))
        print(f"{folder / quiz.name}: {len(quiz.questions)} questions")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
