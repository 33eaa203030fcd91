"""A Sphinx extension that makes a deck of slides, `book/decks/NAME.html`, of each text in book/decks.

A text is Markdown: a heading begins a slide, and a line `---` the slides of the next row of the plan. A line with nothing but
an image is a figure, a living one by its name and setting (`story-arrows?m=5&n=2`), a plain one by its page and name
(`../02_naive.ipynb#fig-places`); each further figure is a step. What follows `Note: 3 minutes.` is for the speaker. A heading
that links to another deck (`## [Title](lecture.md)`) takes its slide of this title, without what its note says is assigned, and
adds what stands below to the note. Other links name ids of the built pages.

A slide has one idea, which its title says, and at most 25 words below it. To take over a newer reveal.js (now 6.0.2), copy
`reveal.js`, `reveal.css` and `plugin/notes.js` of its npm package to book/_static/reveal, and its licence, with that of marked,
which is in `notes.js`, to LICENSE.txt there.
"""

import re
from functools import cache
from html import escape
from os.path import relpath
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markup import mathml, pieces  # type: ignore[import-not-found]
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from stylesheet import without_unused  # type: ignore[import-not-found]

FOLDER = "book/decks"
MARKDOWN = MarkdownIt("commonmark").use(dollarmath_plugin, renderer=lambda formula, _: mathml(formula, display=False))
FIGURE = re.compile(r"^!\[(.*)\]\((.*)\)$", re.MULTILINE)
TAKEN = re.compile(r"^## \[(.*)\]\((\w+)\.md\)$", re.MULTILINE)


class Slide(NamedTuple):
    title: str
    body: str
    figures: list[tuple[str, str]]  # what each of them shows, and its address
    minutes: int
    note: str


def rows(file: Path) -> list[list[Slide]]:
    """The deck's first slide, and then the slides of each row."""
    text = re.sub(r"<!--.*?-->", "", file.read_text(encoding="utf-8"))
    return [
        [slide(part, file) for part in re.split(r"^(?=##? )", row.strip(), flags=re.MULTILINE)[1:]]
        for row in text.split("\n---\n")
    ]


def slide(text: str, file: Path) -> Slide:
    if taken := TAKEN.match(text):
        found = [one for row in rows(file.with_name(f"{taken[2]}.md")) for one in row if one.title == taken[1]]
        if len(found) != 1:
            raise ExtensionError(
                f"{file.name}: {taken[2]}.md has {len(found)} slides called {taken[1]!r}: take one by its title"
            )
        note = found[0].note.partition(" Assigned: ")[0]
        return found[0]._replace(note=f"{note} {text[taken.end() :].strip()}")
    heading, _, rest = text.partition("\n")
    body, _, note = rest.partition("\nNote: ")
    timed = re.match(r"(\d+) minutes?\. ", note)
    if not timed:
        raise ExtensionError(f"{file.name}: {heading!r} doesn't say how long it takes: end it with Note: 3 minutes. …")
    return Slide(heading.lstrip("# "), FIGURE.sub("", body).strip(), FIGURE.findall(body), int(timed[1]), note)


@cache
def text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def figure(shows: str, address: str, html: Path) -> str:
    """A plain figure as its pictures for light and dark slides, or a living one in a frame, which the deck's script fills."""
    path, _, name = address.partition("#")
    built = (html / FOLDER / path).with_suffix(".html")
    plain = next(pieces(text(built), "figure", name), None) if name and built.is_file() else None
    if plain and (images := plain.find_all("img", recursive=False)):
        for image in images:
            image["src"] = relpath(built.parent / str(image["src"]), html / FOLDER)
        return "".join(map(str, images))
    path, _, setting = address.partition("?")
    if not (html / f"embed/{path}.html").is_file():
        raise ExtensionError(
            f"{address} is no figure: write its name, as in embed/, or its page and name, ../01_order.ipynb#fig-leak"
        )
    values = "".join(f"&amp;{path}.{value}" for value in setting.split("&") if value)
    return f'<iframe data-src="../../embed/{path}.html?slide{values}" title="{escape(shows)}"></iframe>'


def section(of: Slide, html: Path, heading: str = "h2") -> str:
    steps = [figure(*one, html) for one in of.figures]
    parts = {
        "words": MARKDOWN.render(of.body),
        "figures": "".join(f'<div class="step{" fragment" if step else ""}">{one}</div>' for step, one in enumerate(steps)),
    }
    kind = "slide vote" if of.title.startswith("Vote: ") else "slide"
    shown = "".join(f'<div class="{name}">{part}</div>' for name, part in parts.items() if part)
    title = f"<{heading}>{MARKDOWN.renderInline(of.title)}</{heading}>"
    note = f'<aside class="notes">{MARKDOWN.render(of.note)}</aside>'
    return f'<section data-timing="{60 * of.minutes}"><div class="{kind}">{title}{shown}</div>{note}</section>\n'


def write_decks(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    root, html = Path(app.srcdir), Path(app.outdir)
    sheet = (root / "book/_static/course.css").read_text(encoding="utf-8").replace('url("', 'url("../../_static/')
    (html / FOLDER).mkdir(exist_ok=True)
    for file in sorted((root / FOLDER).glob("*.md")):
        (first,), *others = rows(file)
        slides = section(first, html, "h1")
        slides += "".join(f"<section>\n{''.join(section(of, html) for of in row)}</section>\n" for row in others)
        slides = re.sub(r'(href="\.\./[^"#]+)\.(?:ipynb|md)', r"\1.html", slides)
        style = without_unused(sheet, f'<html data-theme="light">{slides}', "")
        deck = app.builder.templates.render("deck.html", {"title": first.title, "style": style, "slides": slides})
        (html / FOLDER / f"{file.stem}.html").write_text(deck, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_decks, priority=950)  # when the pages are finished
    return {"parallel_read_safe": True, "parallel_write_safe": True}
