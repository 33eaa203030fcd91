"""The course on paper and without a host: one PDF, one archive."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser
from pypdf import PageObject, PdfReader

from tests.commands import ROOT, WEEKLY, run
from tests.test_site import PAGES, SOURCES, Site, opened, site
from tools.book import pdf
from tools.book.site import pack

__all__ = ["site"]  # a fixture
pytestmark = pytest.mark.slow
# Links from page to page, quiz, solution, hints, figures, and formulas; every Monday the whole course.
SHORT = """{format: jb-book, root: book/01_order, parts: [
    {caption: Assignments, chapters: [{file: exercises/release/01_order/01_order}]},
    {caption: Reference, chapters: [{file: book/reference/glossary}]}]}"""
SHORT_PAGES = re.findall(r"(?:root|file): ([\w/]+)", SHORT)
POINTS = 72 / 25.4  # in a millimetre


def words(text: str) -> str:
    """Without spaces, which a PDF sets as it likes, and with ligatures taken apart."""
    return re.sub(r"\s", "", text.replace("ﬁ", "fi").replace("ﬂ", "fl").replace("ﬀ", "ff").replace("ﬃ", "ffi"))


class Paper(NamedTuple):
    course: Path
    pages: list[str]
    pdf: PdfReader
    texts: list[str]

    def articles(self) -> Iterator[tuple[str, BeautifulSoup]]:
        for page in self.pages:
            text = (self.course / "_build/html" / f"{page}.html").read_text(encoding="utf-8")
            article = BeautifulSoup(text, "html.parser").select_one("article")
            assert article
            for needless in article.select("a.headerlink"):
                needless.decompose()
            yield page, article  # type: ignore[misc]

    def bookmarks(self) -> list[tuple[int, str, int]]:
        def below(items: list[Any], level: int) -> Iterator[tuple[int, str, int]]:
            for item in items:
                if isinstance(item, list):
                    yield from below(item, level + 1)
                else:
                    yield level, item.title, self.pdf.get_destination_page_number(item) or 0

        return list(below(self.pdf.outline, 1))


@pytest.fixture(scope="module")
def paper(site: Site, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Paper:
    course = tmp_path_factory.mktemp("paper")
    for name in ["_config.yml", "_toc.yml"]:
        (course / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    if not WEEKLY:
        (course / "_toc.yml").write_text(SHORT, encoding="utf-8")
    (course / "_build").mkdir()
    (course / "_build/html").symlink_to(site.html)
    printed = run(sys.executable, "-m", "tools.book.pdf", str(course), str(course / "new/course.pdf"))
    assert printed.returncode == 0, printed.stdout + printed.stderr
    assert [file.name for file in (course / "new").iterdir()] == ["course.pdf"]
    made = PdfReader(course / "new/course.pdf")
    pages = list(SOURCES) if WEEKLY else SHORT_PAGES
    return Paper(course, pages, made, [words(page.extract_text()) for page in made.pages])


def test_bookmarks_are_the_headings(paper: Paper) -> None:
    bookmarks = paper.bookmarks()
    for page, article in paper.articles():
        headings = [" ".join(heading.get_text().split()) for heading in article.select("h1, h2, h3, h4, h5")]
        start = next(at for at, (_, title, _) in enumerate(bookmarks) if title == headings[0])
        found = bookmarks[start : start + len(headings)]
        assert [title for _, title, _ in found] == headings, f"{page}: its bookmarks are not its headings"
        plain = [not heading.select("math, code") for heading in article.select("h1, h2, h3, h4, h5")]
        for (_, title, at), as_read in zip(found, plain, strict=True):
            if as_read:  # symbols and code may come in a different order
                assert words(title) in paper.texts[at], f"{page}: the bookmark {title!r} leads to page {at + 1}"
    levels = {title: level for level, title, _ in bookmarks}
    parts = {"The embedding": 1} if WEEKLY else {"Assignments": 1, "Assignment 1: Which layers see the order?": 2}
    assert levels.items() >= ({"Contents": 1, "Answers": 1} | parts).items()


def links(page: PageObject) -> Iterator[tuple[str, str]]:
    """Names of destinations in the PDF, and outside addresses."""
    for annotation in page.get("/Annots") or []:
        link = annotation.get_object()
        if link["/Subtype"] == "/Link":
            yield str(link.get("/Dest", "")).lstrip("/"), str(link.get("/A", {}).get("/URI", ""))


def test_links_lead_to_their_pages(paper: Paper) -> None:
    places = {name.lstrip("/"): place for name, place in paper.pdf.named_destinations.items()}
    numbers = {name: (paper.pdf.get_destination_page_number(place) or 0) + 1 for name, place in places.items()}
    used = set()
    for at, sheet in enumerate(paper.pdf.pages, start=1):
        for name, address in links(sheet):
            assert name in numbers or address.startswith("https://"), f"page {at} has a link to {name or address!r}"
            used.add(name)
    for page, article in paper.articles():
        title = article.h1
        assert title
        assert page in used, f"no link leads to {page}"
        assert words(title.get_text()) in paper.texts[numbers[page] - 1]
        contents = "".join(paper.texts[: numbers[paper.pages[0]]])
        assert f"{words(title.get_text())}{numbers[page]}" in contents, (
            f"the contents do not say that {page} is at {numbers[page]}"
        )
    assert {"token", "attention"} <= used, "chapter 1 does not lead to the glossary's words"
    twice = [name for name in used if name.startswith("book/01_order--")]
    assert twice or not WEEKLY, "no link leads to an id that several pages share"


def heights(page: PageObject) -> list[float]:
    """At which the page has text."""
    found = []

    def visit(text: str, ours: list[float], matrix: list[float], *_: Any) -> None:
        if text.strip():
            found.append(ours[5] + matrix[5] * ours[3])

    page.extract_text(visitor_text=visit)
    return found


def test_pages_say_their_numbers_within_a4_and_letter(paper: Paper) -> None:
    (width, height) = map(float, paper.pdf.pages[0].mediabox[2:])
    assert (round(width / POINTS), round(height / POINTS)) == (210, 297)
    cut = (height - 11 * 72) / 2 + 5 * POINTS  # what Letter lacks, and what printers leave white
    chapter = next(at for level, title, at in paper.bookmarks() if title.startswith("1 Why"))
    for at in [chapter, chapter + 1] if not WEEKLY else range(1, len(paper.texts), 10):
        assert str(at + 1) in paper.pdf.pages[at].extract_text().split(), f"page {at + 1} does not say its number"
        seen = heights(paper.pdf.pages[at])
        assert cut < min(seen) <= max(seen) < height - cut, f"page {at + 1}: its texts begin at the heights {seen}"
    assert "1Whydoesn’taTransformerknowwordorder?" in paper.texts[chapter + 1], "no running title"


def test_answers_stand_at_the_end(paper: Paper) -> None:
    begin = next(at for _, title, at in paper.bookmarks() if title == "Answers")
    before, answers = "".join(paper.texts[:begin]), "".join(paper.texts[begin:])
    number = 0
    for page, article in paper.articles():
        for details in article.select("details:is(.quiz, .guess, .hint, .solution)"):
            number += 1
            assert details.summary
            question = details.summary.extract()
            told = [text for part in details.select("p") for text in part.stripped_strings]
            hidden = max((words(text) for text in told if re.fullmatch(r"[\w\s,.;:]+", text)), key=len, default="")
            if not question.select("math, code, sub, sup"):
                assert words(question.get_text()) + f"answer{number},page" in before, f"{page}: {question} is not asked"
                assert f"{number}.{words(question.get_text())}page" in answers, f"{page}: {question} is not answered"
            assert hidden[:30] in answers, f"{page}: {hidden} is not among the answers"
            if len(hidden) > 30:
                assert hidden not in before, f"{page}: {hidden} is shown beside its question"
    assert number > 10


def test_figures_are_light_and_fonts_come_along(paper: Paper) -> None:
    printed = pdf.whole(paper.course).select("img")
    shown = [image for _, article in paper.articles() for image in article.select("img:not(.in-dark)")]
    assert [image["alt"] for image in printed] == [image["alt"] for image in shown]
    assert not [image["src"] for image in printed if "-dark." in str(image["src"])]
    for page in paper.pdf.pages:
        resources: Any = page["/Resources"]
        for font in resources.get("/Font", {}).values():
            known = font.get_object()
            known = known.get("/DescendantFonts", [known])[0].get_object()
            assert known["/Subtype"] == "/Type3" or "/FontFile" in str(known["/FontDescriptor"]), f"{known} is not in the PDF"


def test_sheet_is_one_page_of_paper(browser: Browser, site: Site, tmp_path: Path) -> None:
    with opened(browser, site.address("book/reference/sheet.html")) as tab:
        for size in ("A4", "Letter"):
            tab.pdf(path=tmp_path / "sheet.pdf", format=size)
            (page,) = PdfReader(tmp_path / "sheet.pdf").pages
            assert words("rotated so far that they let go") in words(page.extract_text())


def test_what_is_missing_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "_toc.yml").write_text(SHORT, encoding="utf-8")
    (tmp_path / "_config.yml").write_text((ROOT / "_config.yml").read_text(encoding="utf-8"), encoding="utf-8")
    command = [sys.executable, "-m", "tools.book.pdf", str(tmp_path), str(tmp_path / "course.pdf")]
    without = run(*command, PATH="", CHROMIUM="")
    assert without.returncode == 1
    assert without.stderr.startswith(
        "The course can't be printed: no Chromium found: apt-get install chromium, or set CHROMIUM "
    )
    unbuilt = run(*command, CHROMIUM=sys.executable)
    assert unbuilt.returncode == 1
    assert re.fullmatch(
        r"\S+/book/01_order.html is missing: run make book, which builds all pages of _toc.yml\n", unbuilt.stderr
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["_config.yml", "_toc.yml"]


# --- Without a host ---


@pytest.fixture(scope="module")
def archive(site: Site) -> Path:
    made = run(sys.executable, "tools/book/site.py", str(site.html), str(site.root / "_paper/course.zip"), cwd=site.root)
    assert made.returncode == 0, made.stderr
    return site.root / "_paper/course.zip"


def test_archive_opens_without_a_host(archive: Path, browser: Browser, tmp_path: Path) -> None:
    with ZipFile(archive) as packed:
        packed.extractall(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["course"]
    problems: list[str] = []
    with browser.new_page(offline=True) as tab:
        tab.on("requestfailed", lambda request: problems.append(f"{request.failure}: {request.url}"))
        tab.goto((tmp_path / "course/index.html").as_uri())
        tab.wait_for_url(f"**/course/{PAGES[0]}")
        tab.locator("article a[href*='01_order.html']:visible").first.click()
        assert tab.url.endswith("/book/01_order.html")
    # What is left in the middle is broken off, and lacks nothing.
    assert not [problem for problem in problems if not problem.startswith("net::ERR_ABORTED")]
    (wheel,) = (tmp_path / "course").glob("*.whl")
    with ZipFile(wheel) as packed:
        assert {file.date_time[0] for file in packed.infolist()} == {1980}, "the wheel changes from build to build"
    assert "colab" not in (tmp_path / "course/book/01_order.html").read_text(encoding="utf-8").lower()


def test_same_files_give_the_same_archive(tmp_path: Path) -> None:
    (tmp_path / "one/deep").mkdir(parents=True)
    archives = []
    for names in ["deep/a", "b", "c"], ["c", "b", "deep/a"]:
        for name in names:
            (tmp_path / "one" / name).unlink(missing_ok=True)
            (tmp_path / "one" / name).write_text(name)
        pack(tmp_path / "one", tmp_path / "one.zip")
        archives.append((tmp_path / "one.zip").read_bytes())
    assert archives[0] == archives[1]
