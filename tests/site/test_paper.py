"""The course on paper and without a host: one PDF, one archive."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser
from pypdf import PdfReader

from tests.commands import ROOT, run
from tests.site.built import PAGES, Site, opened

pytestmark = pytest.mark.slow
# Links from page to page, quiz, solution, hints, figures, and formulas.
SHORT = """{format: jb-book, root: book/01_order, parts: [
    {caption: Assignments, chapters: [{file: exercises/release/01_order/01_order}]},
    {caption: Reference, chapters: [{file: book/reference/glossary}]}]}"""
SHORT_PAGES = re.findall(r"(?:root|file): ([\w/]+)", SHORT)


def words(text: str) -> str:
    """Without spaces, which a PDF sets as it likes, and with ligatures taken apart."""
    return re.sub(r"\s", "", text.replace("ﬁ", "fi").replace("ﬂ", "fl").replace("ﬀ", "ff").replace("ﬃ", "ffi"))


@pytest.fixture(scope="module")
def paper(site: Site, chromium: str, tmp_path_factory: pytest.TempPathFactory) -> PdfReader:
    course = tmp_path_factory.mktemp("paper")
    (course / "_config.yml").write_text((ROOT / "_config.yml").read_text(encoding="utf-8"), encoding="utf-8")
    (course / "_toc.yml").write_text(SHORT, encoding="utf-8")
    (course / "_build").mkdir()
    (course / "_build/html").symlink_to(site.html)
    printed = run(sys.executable, "-m", "tools.book.pdf", str(course), str(course / "new/course.pdf"))
    assert printed.returncode == 0, printed.stdout + printed.stderr
    return PdfReader(course / "new/course.pdf")


def headings(site: Site, page: str) -> list[str]:
    article = BeautifulSoup(str(site.article(f"{page}.html")), "html.parser")
    for link in article.select("a.headerlink"):
        link.decompose()
    return [" ".join(heading.get_text().split()) for heading in article.select("h1, h2, h3, h4, h5")]


def outline(items: list[Any]) -> Iterator[Any]:
    for item in items:
        yield from outline(item) if isinstance(item, list) else [item]


def test_bookmarks_contents_and_links_lead_to_the_headings(paper: PdfReader, site: Site) -> None:
    bookmarks = [item.title for item in outline(paper.outline)]
    places = {name.lstrip("/"): paper.get_destination_page_number(at) or 0 for name, at in paper.named_destinations.items()}
    texts = [words(page.extract_text()) for page in paper.pages]
    for page in SHORT_PAGES:
        titles = headings(site, page)
        at = bookmarks.index(titles[0])
        assert bookmarks[at : at + len(titles)] == titles, f"{page}: its bookmarks are not its headings"
        assert words(titles[0]) in texts[places[page]], f"the link to {page} leads to another one"
        assert f"{words(titles[0])}{places[page] + 1}" in "".join(texts[: places[SHORT_PAGES[0]]]), f"the contents lack {page}"
    annotations = [mark.get_object() for sheet in paper.pages for mark in sheet.get("/Annots") or []]
    names = {str(mark["/Dest"]).lstrip("/") for mark in annotations if "/Dest" in mark}
    assert {*SHORT_PAGES, "token", "attention"} <= names <= places.keys()


def test_answers_stand_at_the_end(paper: PdfReader, site: Site) -> None:
    texts = [words(page.extract_text()) for page in paper.pages]
    begin = min(at for at, text in enumerate(texts) if text.startswith("Answers"))
    before, answers = "".join(texts[:begin]), "".join(texts[begin:])
    hidden = [site.article(f"{page}.html").select("details:is(.quiz, .guess, .hint, .solution)") for page in SHORT_PAGES]
    for number, details in enumerate((details for of_page in hidden for details in of_page), start=1):
        assert f"answer{number},page" in before
        told = [words(text) for part in details.select("p:not(summary *)") for text in part.stripped_strings]
        longest = max((text for text in told if re.fullmatch(r"[\w,.;:]+", text)), key=len, default="")
        if len(longest) > 30:
            assert longest[:30] in answers, f"{longest} is not among the answers"
            assert longest not in before, f"{longest} is shown beside its question"
    assert number > 10


def test_cheat_sheet_is_one_page(site: Site, browser: Browser, tmp_path: Path) -> None:
    with opened(browser, site.address("book/reference/sheet.html")) as tab:
        for size in ("A4", "Letter"):
            tab.pdf(path=tmp_path / "sheet.pdf", format=size)
            assert len(PdfReader(tmp_path / "sheet.pdf").pages) == 1


def test_archive_opens_without_a_host(site: Site, browser: Browser, tmp_path: Path) -> None:
    made = run(sys.executable, "tools/book/site.py", str(site.html), str(tmp_path / "course.zip"))
    assert made.returncode == 0, made.stderr
    with ZipFile(tmp_path / "course.zip") as packed:
        packed.extractall(tmp_path)
    assert [*tmp_path.glob("course/*.whl")]
    with opened(browser, (tmp_path / "course/index.html").as_uri()) as tab:
        tab.wait_for_url(f"**/course/{PAGES[0]}")
        tab.locator("article a[href*='01_order.html']:visible").first.click()
        assert tab.url.endswith("/book/01_order.html")
