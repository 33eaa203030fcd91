"""Prints the whole built course to one PDF with the browser.

    python -m tools.book.pdf COURSE PDF    # COURSE has _config.yml, _toc.yml and _build/html

All pages become one document in the order of `_toc.yml`, with working links between them. What the site hides until you ask for
it (answers, hints, solutions) comes at the end, with links in both directions. The document is printed twice, because page
numbers are known only after printing; the style sheet gives them all the same width.
"""

import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from html import escape
from os.path import normpath
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from playwright.sync_api import Page
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject, TextStringObject
from sphinx_external_toc.parsing import parse_toc_yaml

from tools.book.browser import NO_CHROMIUM, chromium, launched

# It warns about objects that it has added itself.
logging.getLogger("pypdf").setLevel(logging.ERROR)
STYLES = Path(__file__).with_suffix(".css")
HIDDEN = "details:is(.quiz, .guess, .hint, .solution)"


def parts(course: Path) -> list[tuple[str, list[str]]]:
    """The captions of the table of contents, each with its pages."""
    toc = parse_toc_yaml(course / "_toc.yml")

    def below(page: str) -> list[str]:
        return [page, *(under for tree in toc[page].subtrees for item in tree.items for under in below(str(item)))]

    trees = [(tree.caption or "", [page for item in tree.items for page in below(str(item))]) for tree in toc.root.subtrees]
    return [("", [toc.root.docname]), *trees]


def read(html: Path, page: str) -> Tag:
    """A page's article, without what only a screen needs."""
    file = html / f"{page}.html"
    if not file.is_file():
        sys.exit(f"{file} is missing: run make book, which builds all pages of _toc.yml")
    article = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser").select_one("article")
    assert article, f"{file} has no <article>: did the theme's layout change?"
    for needless in article.select("a.headerlink, script, button, details.hide > summary, img.in-dark"):
        needless.decompose()
    for unfolded in article.select("details.hide"):
        unfolded.unwrap()
    for code in article.select("pre"):
        if code.get_text().count("\n") > 20:
            code["class"] = "long"
    for image in article.select("img"):
        image["src"] = (file.parent / str(image["src"])).resolve().as_uri()
        image["loading"] = "eager"
    return article


def join(articles: dict[str, Tag]) -> None:
    """Makes ids unique and updates the links between pages; a link to something that isn't printed becomes plain text."""
    count = Counter(str(element["id"]) for article in articles.values() for element in article.select("[id]"))

    def unique(page: str, name: str) -> str:  # an id that several pages have gets the page's name as a prefix
        return name if count[name] == 1 else f"{page}--{name}"

    ids = {(page, str(element["id"])) for page, article in articles.items() for element in article.select("[id]")}
    for page, article in articles.items():
        for element in article.select("[id]"):
            element["id"] = unique(page, str(element["id"]))
        for link in article.select("a[href]"):
            url = urlsplit(str(link["href"]))
            if url.scheme:
                continue
            target = normpath(Path(page).parent / unquote(url.path)).removesuffix(".html") if url.path else page
            name = unquote(url.fragment)
            if (target, name) in ids:
                link["href"] = f"#{unique(target, name)}"
            elif target in articles:
                link["href"] = f"#{target}"
            else:
                link.unwrap()
        article["id"] = page
        article["style"] = f"page: {named(page)}"


def named(page: str) -> str:
    """The page's name in style sheets."""
    return "p-" + page.replace("/", "-")


def element(markup: str) -> Tag:
    made = BeautifulSoup(markup, "html.parser").find()
    assert isinstance(made, Tag)
    return made


def text(heading: Tag | None) -> str:
    assert heading
    return " ".join(heading.get_text().split())


def page_of(name: str) -> str:
    """A placeholder for the number of the page that contains the element with this id, as wide as a page number."""
    return f'<b data-page="{name}">000</b>'


def take_answers(articles: dict[str, Tag]) -> Tag:
    """Moves everything that readers should first work out for themselves to its own article, and leaves references to it."""
    answers = element(f'<article class="bd-article" id="answers" style="page: {named("answers")}"><h1>Answers</h1></article>')
    number = 0
    for page, article in articles.items():
        hidden = article.select(HIDDEN)
        if hidden:
            answers.append(element(f'<h2><a href="#{page}">{escape(text(article.h1))}</a></h2>'))
        for details in hidden:
            number += 1
            summary = details.summary
            assert summary, f"{page}: a <details> has no <summary>"
            words, there, here = summary.extract().decode_contents(), f"answer-{number}", f"asked-{number}"
            link = f'<a href="#{there}">answer {number}, page {page_of(there)}</a>'
            details.replace_with(element(f'<p class="asked" id="{here}"><span>{words}</span> {link}</p>'))
            link = f'<a href="#{here}">page {page_of(here)}</a>'
            details.name, details["class"] = "div", "answer"
            details.insert(0, element(f'<p class="asked" id="{there}"><span>{number}. {words}</span> {link}</p>'))
            answers.append(details)
    return answers


def whole(course: Path) -> BeautifulSoup:
    """The one document: a title page, the contents, all pages, the answers."""
    html = course / "_build/html"
    config = yaml.safe_load((course / "_config.yml").read_text(encoding="utf-8"))
    table = parts(course)
    articles = {page: read(html, page) for _, pages in table for page in pages}
    join(articles)
    table.append(("", ["answers"]))
    answers = take_answers(articles)
    contents, styles = "", ""
    for caption, pages in table:
        contents += f'<p class="caption">{escape(caption)}</p>' if caption else ""
        for page in pages:
            article = answers if page == "answers" else articles[page]
            # For bookmarks: below a part's caption, one level deeper.
            for heading in article.select("h1, h2, h3, h4, h5"):
                heading["aria-level"] = str(int(heading.name[1]) + bool(caption))
            title = text(article.h1)
            contents += f'<p><a href="#{page}"><span>{escape(title)}</span> {page_of(page)}</a></p>'
            styles += f"@page {named(page)} {{ @top-center {{ content: {json.dumps(title, ensure_ascii=False)} }} }}\n"
        if caption:
            part = f'<p class="part" role="heading" aria-level="1">{escape(caption)}</p>'
            articles[pages[0]].insert(0, element(part))
    name = escape(config["title"])
    document = BeautifulSoup(
        f"""<!DOCTYPE html>
<html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8"><title>{name}</title>
<link rel="stylesheet" href="{(html / "_static/pages.css").resolve().as_uri()}">
<style>{STYLES.read_text(encoding="utf-8")}\n{styles}</style></head>
<body><div class="bd-content"><div class="bd-article-container">
<div class="bd-article title"><p>{name}</p><p>{escape(config["author"])}</p></div>
<nav class="bd-article" id="contents"><h1 aria-level="1">Contents</h1>{contents}</nav>
</div></div></body></html>""",
        "html.parser",
    )
    container = document.select_one(".bd-article-container")
    assert container
    container.extend([*articles.values(), answers])
    return document


def print_once(tab: Page, document: BeautifulSoup, pdf: Path) -> dict[str, int]:
    """Prints to the file `pdf`, and returns the page number of each element that a link leads to."""
    source = pdf.with_suffix(".html")
    source.write_text(str(document), encoding="utf-8")
    tab.goto(source.resolve().as_uri())
    tab.emulate_media(media="print", color_scheme="light")
    tab.evaluate("() => Promise.all([document.fonts.ready, ...[...document.images].map(image => image.decode())])")
    tab.pdf(path=pdf, prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
    reader = PdfReader(pdf)
    places = reader.named_destinations
    return {name.lstrip("/"): (reader.get_destination_page_number(place) or 0) + 1 for name, place in places.items()}


def finish(pdf: Path, document: BeautifulSoup) -> None:
    """Rewrites the bookmarks, because Chromium repeats some headings and drops the space at the end of a line."""
    writer = PdfWriter(clone_from=pdf)
    bookmarks = (item for item in flat(writer.outline) if item.node)
    for bookmark, heading in zip(bookmarks, document.select("[aria-level]"), strict=True):
        bookmark.node[NameObject("/Title")] = TextStringObject(text(heading))
    writer.write(pdf)


def flat(outline: list[Any]) -> Iterator[Any]:
    for item in outline:
        yield from flat(item) if isinstance(item, list) else [item]


def main(course: Path, pdf: Path) -> None:
    path = chromium() or sys.exit(f"The course can't be printed: {NO_CHROMIUM}")
    document = whole(course)
    pdf.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=pdf.parent) as folder, launched(path) as browser:
        made = Path(folder, pdf.name)
        tab = browser.new_page(offline=True)
        pages = print_once(tab, document, made)
        for number in document.select("b[data-page]"):
            number.string = str(pages[str(number["data-page"])])
        print_once(tab, document, made)
        finish(made, document)
        made.replace(pdf)
    print(pdf)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
