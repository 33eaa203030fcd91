"""A Sphinx extension that gives each living figure a page of its own, `embed/NAME.html`, for slides and for other sites' pages.

It has the figure, its caption, and a line that says where it comes from: none of the course's navigation, fonts or styles. The
figure's scripts and data are those of the course's pages.
"""

import re
from pathlib import Path
from posixpath import dirname, join, relpath
from typing import Any

from bs4 import Tag
from living import ELEMENT, scripts, version  # type: ignore[import-not-found]
from markup import description, pieces  # type: ignore[import-not-found]
from sphinx.application import Sphinx
from stylesheet import without_unused  # type: ignore[import-not-found]

FOLDER = "embed"
LICENCE = '<a href="https://creativecommons.org/licenses/by/4.0/" target="_blank">CC BY 4.0</a>'


def alone(figure: Tag, page: str) -> str:
    """The figure without its number on the page, with addresses as they are in this folder; links open another tab."""
    for part in figure.select(".caption-number, .headerlink"):
        part.decompose()
    for part in figure.select("[src], [href]"):
        name = "src" if part.has_attr("src") else "href"
        address = str(part[name])
        if not re.match(r"[a-z]+:", address):
            path, sign, place = address.partition("#")
            there = join(dirname(page), path) if path else f"{page}.html"
            part[name] = f"{relpath(there, FOLDER)}{sign}{place}"
        if name == "href":
            part["target"] = "_blank"
    for image in figure.select("img.in-light"):
        del image["loading"]
    return str(figure)


def style(app: Sphinx, page: str) -> str:
    """What course.css has for this page. Its fonts are for texts."""
    sheet = Path(app.srcdir, "book/_static/course.css").read_text(encoding="utf-8")
    added = "".join(text for name, text in scripts(Path(app.srcdir)).items() if "/" not in name)
    return str(without_unused(re.sub(r"@font-face \{.*?\}", "", sheet), page, added))


def write_pages(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    if not ELEMENT.search(context.get("body", "")):
        return
    root, course = Path(app.srcdir), app.config.html_title
    title = re.sub(r'<span class="section-number">.*?</span>', "", context["title"])
    title = course if page == app.config.root_doc else f"{course} {title}"
    for living in pieces(context["body"], "living-figure"):
        name = str(living["for"])
        plain = next(pieces(context["body"], "figure", name), None)
        assert plain, f"{page}: {name} is no figure of this page"
        figure = alone(plain, page)
        there = f'<a href="{relpath(page, FOLDER)}.html#{name}" target="_blank">{title}</a>'
        parts = {
            "title": f"A figure from {title}",
            "description": description(figure),
            "canonical": app.config.html_baseurl and f"{app.config.html_baseurl}{page}.html",
            "style": style(app, f'<html data-theme="light">{figure}<p class="source">'),
            "version": version(root),
            "figure": figure,
            "living": str(living),
            "source": f"From {there} ({LICENCE})",
        }
        file = Path(app.outdir, FOLDER, f"{name.removeprefix('fig-')}.html")
        file.parent.mkdir(exist_ok=True)
        file.write_text(app.builder.templates.render("embed.html", parts), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", write_pages, priority=950)  # when all others have changed the page
    return {"parallel_read_safe": True, "parallel_write_safe": True}
