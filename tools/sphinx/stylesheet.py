"""A Sphinx extension that makes the built pages lighter, with a single style sheet and small subsets of fonts.

It works on the finished HTML of a build from scratch, so that `make book`, the tests and readers have the same pages.
"""

import logging
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from io import BytesIO
from os.path import relpath
from pathlib import Path
from unicodedata import normalize

from fontTools.subset import Options, Subsetter, load_font, save_font
from lightningcss import process_stylesheet
from sphinx.application import Sphinx

logging.getLogger("fontTools").setLevel(logging.WARNING)  # or it logs some 100 lines for each font
MERGED = "pages.css"
LINK = re.compile(r'<link\b(?=[^>]*\brel="stylesheet")[^>]*\bhref="([^"]*_static/[^"?]+)[^>]*>\n?')


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
    """The rules that pages, or elements added by scripts, may need, and the custom properties that are used.

    Every word in a script counts as a class that it may add. layout.html adds `scripts`; Bootstrap composes `bs-tooltip-auto`.
    """
    attributes = re.findall(r"""\b(?:class|id)=(?:"([^"]*)"|'([^']*)')""", pages)
    used = {name for pair in attributes for names in pair for name in names.split()}
    used |= {"scripts", "bs-tooltip-auto", *re.findall(r"[\w-]+", scripts)}
    unused = {*re.findall(r"[.#](-?[_a-zA-Z][\w-]*)", css)} - used
    slim, unread = css, unused
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
    links = [[Path(relpath(page.parent / link, static)) for link in LINK.findall(text)] for page, text in texts.items()]
    first, *others = filter(None, links)
    sheets = [sheet for sheet in first if all(sheet in each for each in others)]
    scripts = [file for folder in ("", "scripts", "living") for file in (static / folder).glob("*.js")]
    css = without_unused(
        "\n".join(with_imports(static / sheet, static) for sheet in sheets),
        "".join(texts.values()),
        "\n".join(file.read_text(encoding="utf-8") for file in scripts),
    )
    written = "".join(texts.values())
    for address, kind in set(re.findall(r'([^"(]*(?:/fontawesome/[^")]*|\b(math|text)[\w-]*)\.woff2)', css)):
        characters = {"math": signs(written), "text": {*map(ord, unescape(written))}}.get(kind) or icons(css)
        font = cut(static / address, characters)
        # It goes into the sheet: if a font came later, lines of text would break differently then.
        if kind == "text":
            css = css.replace(address, f"data:font/woff2;base64,{b64encode(font).decode()}")
            continue
        name = f"cut-{Path(address).name}"
        (static / name).write_bytes(font)
        css = css.replace(address, f"{name}?v={digest(font)}")
    # For browsers older than any that shows MathML.
    css = re.sub(r',url\([^)]*\.ttf\)format\("truetype"\)', "", css)
    (static / MERGED).write_text(css, encoding="utf-8")
    for page, text in texts.items():
        link = f'<link rel="stylesheet" href="{relpath(static / MERGED, page.parent)}?v={digest(css.encode())}" />\n'
        for match in LINK.finditer(text):
            if Path(relpath(page.parent / match[1], static)) in sheets:
                texts[page] = texts[page].replace(match[0], link, 1)
                link = ""


def lighten(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    html = Path(app.outdir)
    static = html / "_static"
    texts = {page: page.read_text(encoding="utf-8") for page in html.rglob("*.html") if static not in page.parents}
    merge_styles(texts, static)
    for page, text in texts.items():
        page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    # After the extensions that write their style sheets at this point.
    app.connect("build-finished", lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
