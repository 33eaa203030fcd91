"""A Sphinx extension for navigation: where a page is in the course, where to go next, a sidebar whose parts fold, and goals.

Everything follows from the table of contents and the short route on the first page. book/_templates shows it, and
course.js marks the pages that have been read.
"""

import re
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx


class Part(NamedTuple):
    caption: str
    numbered: bool  # True for the parts with chapters
    pages: list[str]


class Step(NamedTuple):
    label: str
    page: str
    title: str
    part: str  # the part that begins with this page, if any


class Course:
    """The course as seen from one of its pages."""

    def __init__(self, app: Sphinx, page: str) -> None:
        self.page, self.root = page, app.config.root_doc
        self.titles, self.below = app.env.titles, app.env.toctree_includes
        self.following = app.env.collect_relations()[page][2]  # the next page in the table of contents
        trees = app.env.tocs[self.root].findall(toctree)
        self.parts = [Part(t["caption"] or "", bool(t["numbered"]), [name for _, name in t["entries"]]) for t in trees]
        self.part_of = {
            each: part.caption for part in self.parts for page in part.pages for each in [page, *self.below.get(page, [])]
        }
        self.chapters = [chapter for part in self.parts if part.numbered for chapter in part.pages]
        self.chapter = next((chapter for chapter in self.chapters if page in [chapter, *self.about(chapter)]), "")
        self.route = self.short_route(app)

    def short_route(self, app: Sphinx) -> list[str]:
        """The chapters that the first page recommends to readers with less time, as in "short route …: chapters 1 and 3"."""
        first = Path(app.env.doc2path(self.root)).read_text(encoding="utf-8")
        found = re.search(r"short route[^.]*: chapters ([\d, and]+)\.", first)
        numbers = map(int, re.findall(r"\d+", found[1] if found else ""))
        # Tests build a part of the book.
        return [self.chapters[number - 1] for number in numbers if number <= len(self.chapters)]

    def about(self, chapter: str) -> list[str]:
        """The pages below a chapter, and pages with the same name elsewhere: its assignment."""
        below = self.below.get(chapter, [])
        alike = [page for page in self.part_of if PurePosixPath(page).name == PurePosixPath(chapter).name]
        return [*below, *(page for page in alike if page not in (chapter, *below))]

    def whereabouts(self) -> list[str]:
        if self.page not in (self.chapter, *self.below.get(self.chapter, [])):
            return [self.part_of[self.page]] if self.part_of.get(self.page) else []
        place = f"Chapter {self.chapters.index(self.chapter) + 1} of {len(self.chapters)}"
        deeper = ["deeper"] if self.page != self.chapter else []
        return [place, *deeper, self.part_of[self.chapter]]

    def step(self, label: str, page: str) -> Step:
        number = f"Chapter {self.chapters.index(page) + 1}: " if page in self.chapters else ""
        begins = label == "Next" and self.part_of.get(page) != self.part_of.get(self.chapter or self.page)
        return Step(label, page, number + self.titles[page].astext(), self.part_of.get(page, "") if begins else "")

    def onward(self) -> list[Step]:
        """Where to go from the end of the page: to the next page, but from a chapter to the next chapter, past assignments.

        If the short route skips the next chapter, the one to which it leads is named, too.
        """
        if not self.chapter:
            return [self.step("Next", self.following) if self.following else self.step("Back to", self.root)]
        about = self.about(self.chapter)
        near = [("Look deeper" if page in self.below.get(self.chapter, []) else "Try it", page) for page in about]
        if self.page != self.chapter:
            near = [("Back to", self.chapter)]
        later = [("Next", page) for page in self.chapters[self.chapters.index(self.chapter) + 1 :]][:1]
        short = dict(pairwise([*self.route, self.root])).get(self.chapter, "")
        if short and ("Next", short) not in later:
            later.append(("Short route" if short in self.chapters else "Short route ends", short))
        other = [part for part in self.parts if part.caption and not part.numbered and not {*part.pages} & {*about}]
        return [self.step(*step) for step in [*near, *(later or [(part.caption, part.pages[0]) for part in other])]]


def folded(sidebar: BeautifulSoup, numbered: set[str], questions: list[str]) -> BeautifulSoup:
    """The sidebar with each part in a <details>, and those with chapters together in one. The page's own part is open.

    Chapters have short names, with their questions as tooltips. Pages below another are there for readers at one of them.
    """
    parts = list(zip(sidebar.select("p.caption"), sidebar.select("p.caption + ul"), strict=True))
    for below in sidebar.select("li > details"):
        if "current" in below.parent["class"]:  # type: ignore[index]
            below.summary.decompose()  # type: ignore[union-attr]
            below.unwrap()
        else:
            below.decompose()
    whole = '<details class="part"><summary><p class="caption">The course</p></summary></details>'
    (course,) = BeautifulSoup(whole, "html.parser").select("details")
    course.extract()
    for caption, links in parts:
        part = sidebar.new_tag("details", attrs={"class": "part"})
        caption.wrap(sidebar.new_tag("summary")).wrap(part).append(links.extract())
        if "current" in links["class"]:
            part["open"] = ""
        if caption.get_text() in numbered:
            part["class"] = "part chapters"
            if not course.parent:
                part.insert_before(course)
            if "open" in part.attrs:
                course["open"] = ""
            course.append(part.extract())
    for chapter, question in zip(sidebar.select(".chapters > ul > li > a"), questions, strict=True):
        chapter["title"] = question
    return sidebar


# A chapter's line below its title, and the goals in its summary, whose words belong to their boxes.
GOALS = {
    r"(?<=</h1>\n)<p>(?=Goal: )": '<p class="goal">',
    r'(<input class="task-list-item[^>]*>)(.*?)(?=</p>)': r"<label>\1\2</label>",
}


def show(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    if doctree:
        course = Course(app, page)
        context |= {"whereabouts": course.whereabouts(), "onward": course.onward()}
        for plain, marked in GOALS.items():
            context["body"] = re.sub(plain, marked, context["body"])


def fold(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    sidebar = context["generate_toctree_html"]
    course = Course(app, app.config.root_doc)
    numbered = {part.caption for part in course.parts if part.numbered}
    questions = [course.titles[chapter].astext() for chapter in course.chapters]
    context["generate_toctree_html"] = lambda **options: folded(sidebar(**options), numbered, questions)


def setup(app: Sphinx) -> dict[str, bool]:
    # Before the theme, which drops templates that have nothing to show.
    app.connect("html-page-context", show, priority=400)
    app.connect("html-page-context", fold, priority=900)  # after the theme, which makes the sidebar
    return {"parallel_read_safe": True, "parallel_write_safe": True}
