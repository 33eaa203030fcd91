"""A Sphinx extension that makes the built pages lighter, with a single style sheet and small subsets of fonts.

It works on the finished HTML, so that `make book`, the tests and readers have the same pages. The files that Sphinx puts into
`_static` stay unchanged, because the next build may change only some pages and start from these files again.
"""

import logging
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from io import BytesIO
from os.path import relpath
from pathlib import Path
from typing import Any
from unicodedata import normalize

from fontTools.subset import Options, Subsetter, load_font, save_font  # type: ignore[import-untyped]
from lightningcss import process_stylesheet
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

logging.getLogger("fontTools").setLevel(logging.WARNING)  # or it logs some 100 lines for each font
MERGED = "pages.css"
LINK = re.compile(r'<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"]*_static/[^"?]+)[^>]*>\n?')
# Every word in a script counts as a class that it may add, except in these two, where this would keep 2 kB that no page needs:
# the script of the icons (pages need none of its classes), and Bootstrap's, which adds these classes ...
LIBRARIES = {"fontawesome.js", "bootstrap.js"}
ADDED = {
    *("tooltip", "tooltip-inner", "tooltip-arrow", "bs-tooltip-auto"),  # ... to the buttons' tooltips,
    *("fade", "show"),  # and to elements that open: tooltips and the download menu;
    "scripts",  # the class that layout.html adds to the page if scripts run
}


def digest(content: bytes) -> str:
    """A hash for addresses, so that browsers fetch changed files again."""
    return sha256(content).hexdigest()[:8]


def with_imports(sheet: Path, static: Path) -> str:
    """The sheet's text with its imports included, and with addresses relative to the folder `static`."""

    def moved(address: re.Match[str]) -> str:
        return f'url("{relpath(sheet.parent / address[2], static)}")'

    text = re.sub(r"""url\((["']?)(?!["']|data:|#)([^"')]+)\1\)""", moved, sheet.read_text(encoding="utf-8"))
    return re.sub(r'@import "([^"]+)";', lambda name: with_imports(sheet.parent / name[1], static), text)


def without_unused(css: str, pages: str, scripts: str) -> str:
    """The rules that pages, or elements added by scripts, may need, and the custom properties that are used."""
    attributes = re.findall(r"""\b(?:class|id)=(?:"([^"]*)"|'([^']*)')""", pages)
    used = {name for pair in attributes for names in pair for name in names.split()} | ADDED
    used |= {*re.findall(r"[\w-]+", scripts)}
    unused = {*re.findall(r"[.#](-?[_a-zA-Z][\w-]*)", css)} - used
    unread = unused
    while unread:  # a property that is read only by unread ones is unread, too
        unused |= unread
        slim = process_stylesheet(css, unused_symbols=unused, minify=True)
        read = {*re.findall(r"var\(\s*(--[\w-]+)", slim + pages)} | used
        unread = {*re.findall(r"[{;](--[\w-]+):", slim)} - read
    return "\n".join([*dict.fromkeys(re.findall(r"/\*!.*?\*/", css, re.DOTALL)), slim])  # licence comments come first


def icons(css: str) -> set[int]:
    """The characters that the sheet can show: each is a separate string."""
    strings = re.findall(r"""(["'])(?:\\([0-9a-fA-F]{1,6})\s?|\\?([^\\]))\1""", css)
    return {int(code, 16) if code else ord(sign) for _, code, sign in strings}


def signs(pages: str) -> set[int]:
    """Characters in formulas, those that browsers add (root signs, italics for single letters), and non-ASCII ones in text."""
    formulas = unescape("".join(re.findall(r"<math.*?</math>", pages, re.DOTALL)))
    written = {*formulas, *(sign for sign in {*unescape(pages)} if not sign.isascii())}
    italics = map(chr, [0x210E, *range(0x1D434, 0x1D468), *range(0x1D6E2, 0x1D71C)])
    return {0x221A, *map(ord, written), *(ord(italic) for italic in italics if normalize("NFKC", italic) in written)}


def cut(font: Path, characters: set[int]) -> bytes:
    """The font with only the glyphs that a page can show."""
    options = Options(flavor="woff2", name_IDs=["*"])  # the names contain the licence
    whole = load_font(str(font), options)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(whole)
    save_font(whole, small := BytesIO(), options)
    return small.getvalue()


def merge_styles(texts: dict[Path, str], static: Path) -> None:
    """Replaces the sheets that all pages load by a single one."""
    links = {page: [Path(relpath(page.parent / link, static)) for link in LINK.findall(text)] for page, text in texts.items()}
    # The other pages are as the last build left them; but if any page is new, search.html is, too.
    new = [sheets for sheets in links.values() if sheets and Path(MERGED) not in sheets]
    if not new:
        return
    sheets = [sheet for sheet in new[0] if all(sheet in others for others in new)]
    scripts = [
        file
        for file in [*static.glob("*.js"), *static.glob("scripts/*.js"), *static.glob("living/*.js")]
        if file.name not in LIBRARIES
    ]
    css = without_unused(
        "\n".join(with_imports(static / sheet, static) for sheet in sheets),
        "".join(texts.values()),
        "\n".join(file.read_text(encoding="utf-8") for file in scripts),
    )
    written = "".join(texts.values())
    for address, kind in set(re.findall(r'([^"(]*(?:/fontawesome/[^")]*|\b(math|text)[\w-]*)\.woff2)', css)):
        characters = {"math": signs(written), "text": {*map(ord, unescape(written))}}.get(kind) or icons(css)
        font = cut(static / address, characters)
        if kind == "text":  # inside the sheet: if a font came later, lines of text would break differently then
            css = css.replace(address, f"data:font/woff2;base64,{b64encode(font).decode()}")
            continue
        name = f"cut-{Path(address).name}"
        (static / name).write_bytes(font)
        css = css.replace(address, f"{name}?v={digest(font)}")
    css = re.sub(r',url\([^)]*\.ttf\)format\("truetype"\)', "", css)  # for browsers older than any that shows MathML
    (static / MERGED).write_text(css, encoding="utf-8")
    for page, text in texts.items():
        first = f'<link rel="stylesheet" href="{relpath(static / MERGED, page.parent)}?v={digest(css.encode())}" />\n'
        for match in LINK.finditer(text):
            if Path(relpath(page.parent / match[1], static)) in [*sheets, Path(MERGED)]:
                texts[page] = texts[page].replace(match[0], first, 1)
                first = ""


def slim(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    html = Path(app.outdir)
    static = html / "_static"
    pages = sorted(page for page in html.rglob("*.html") if static not in page.parents)
    before = {page: page.read_text(encoding="utf-8") for page in pages}
    after = dict(before)
    merge_styles(after, static)
    # Pages are written last, and search.html last of all, so that an interrupted build starts here again.
    for page in sorted(pages, key=lambda page: page.name == "search.html"):
        if after[page] != before[page]:
            page.write_text(after[page], encoding="utf-8")
    getLogger(__name__).info("slim: %s pages", len(pages))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", slim, priority=900)  # after the extensions that write their style sheets at this point
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
