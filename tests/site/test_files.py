"""What the files of the built site say: titles, figures, formulas, links, and what is on no page."""

import gzip
import json
import re
from copy import copy
from xml.etree import ElementTree as ET

import pytest
from fontTools.ttLib import TTFont
from PIL import Image

from tests.commands import ROOT
from tests.site.built import CHAPTERS, NOTEBOOKS, PAGES, SOURCES, Site, anchors

GENERATED = ["404.html", "index.html", "search.html"]  # what is shown for no page, the redirect to the first, the search
REDIRECT = re.compile(r'var target = "([^"]*)"')


def redirects(site: Site) -> dict[str, str]:
    """The former pages, and where they lead."""
    texts = {page: page.read_text(encoding="utf-8") for page in site.html.rglob("*.html") if "_static" not in page.parts}
    found = {page: REDIRECT.search(text) for page, text in texts.items() if len(text) < 1000}
    return {page.relative_to(site.html).as_posix(): match[1] for page, match in found.items() if match}


def test_build_from_nothing_is_clean(site: Site) -> None:
    warnings = [line for line in site.log.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
    assert not warnings, "fix the causes of the build's warnings:\n" + "\n".join(warnings)
    assert site.returncode == 0, f"the build returned {site.returncode}; its last lines:\n{site.log[-3000:]}"


def test_pages_equal_the_table_of_contents(site: Site) -> None:
    built = {path.relative_to(site.html).as_posix() for path in site.html.rglob("*.html")} - {*GENERATED, *redirects(site)}
    built = {page for page in built if not page.startswith(("_static/", "embed/", "book/decks/"))}
    assert built == set(PAGES), f"pages and _toc.yml differ in {sorted(built ^ set(PAGES))}: list each page once in _toc.yml"
    written = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("book/**/*") if path.suffix in (".md", ".ipynb")}
    unread = sorted(file for file in written - set(SOURCES.values()) if not re.search(r"book/decks/|/newer\.ipynb|/\.", file))
    assert not unread, f"{unread} are in book/ but in no page: list them in _toc.yml, or remove them"


def test_former_addresses_lead_to_pages(site: Site) -> None:
    former = redirects(site)
    assert former
    for old, new in former.items():
        file, fragment = site.target(old, new)
        assert file in PAGES, f"{old} leads to {new}, which is no page: correct redirects in _config.yml"
        assert not fragment or fragment in anchors(site.html / file), f"{old} leads to no place in {file}"
    assert PAGES[0] in str(site.soup("index.html").find("meta", attrs={"http-equiv": "Refresh"}))


def test_titles_and_descriptions_are_unique(site: Site) -> None:
    seen: dict[str, str] = {}
    for page in PAGES:
        title, meta = site.soup(page).title, site.soup(page).select_one("meta[name=description]")
        assert title
        described = str(meta["content"]) if meta else ""
        assert 40 <= len(described) <= 160, f"{page} is described by {described!r}: let its first paragraph say its subject"
        for text in title.get_text(strip=True), described:
            assert text not in seen, f"{page} and {seen[text]} share {text!r}: give each page its own title and first paragraph"
            seen[text] = page


@pytest.mark.parametrize("page", PAGES)
def test_page_has_a_language_and_one_first_heading(site: Site, page: str) -> None:
    assert site.soup(page).select_one("html[lang=en]"), f"{page}: set language: en in _config.yml"
    headings = [heading.get_text() for heading in site.article(page).find_all("h1")]
    assert len(headings) == 1, f"{page} has the first-level headings {headings}: write one line with a single #"


@pytest.mark.parametrize("page", PAGES)
def test_images_say_what_they_show(site: Site, page: str) -> None:
    for image in site.article(page).select("img"):
        alt, source = str(image.get("alt") or "").strip(), str(image["src"])[:80]
        good = len(alt) >= 20 and not re.search(r"\.\w{3,4}$", alt)
        assert good, f"{page}: the alt text of {source} is {alt!r}: cell metadata mystnb: {{image: {{alt: ...}}}} says it"
        figure = image.find_parent("figure")
        captioned = image.find_parent(class_="step") or (figure and figure.select_one("figcaption:not(:empty)"))
        assert captioned, f"{page}: {alt!r} has no caption: cell metadata mystnb: {{figure: {{caption: ..., name: fig-...}}}}"


def test_pictures_can_be_shown(site: Site) -> None:
    """Browsers show nothing for a file that isn't there, an SVG that isn't well-formed or has no size, and half a PNG."""
    alone = [path.relative_to(site.html).as_posix() for path in site.html.glob("embed/*.html")]
    shown = {site.target(page, str(image["src"]))[0] for page in [*PAGES, *alone] for image in site.soup(page).select("img")}
    assert len(shown) > len(CHAPTERS)
    for file in sorted(shown):
        if file.endswith(".svg"):
            picture = ET.parse(site.html / file).getroot()
            assert picture.get("viewBox") or {"width", "height"} <= {*picture.attrib}, f"{file} has no size"
        else:
            with Image.open(site.html / file) as pixels:
                pixels.load()


@pytest.mark.parametrize("page", PAGES)
def test_no_markup_is_left_raw(site: Site, page: str) -> None:
    article = copy(site.article(page))
    for rendered in article.select("pre, code, script, .math"):
        rendered.decompose()
    raw = [line for line in article.get_text().splitlines() if re.search(r"\$|:::|\{[a-z:]+\}\s*$|\]\(", line)]
    assert not raw, f"{page} shows raw markup, which doesn't work in HTML: close the $...$, the role or the directive in {raw}"


@pytest.mark.parametrize("page", PAGES)
def test_formulas_are_mathml_in_the_book_s_font(site: Site, page: str) -> None:
    formulas = site.article(page).select(".math")
    assert formulas or page not in CHAPTERS, f"{page} has no formula: a chapter says at least one thing as $…$"
    for formula in formulas:
        text = formula.get_text()
        good = len(formula.select("math:not(:has(merror))")) == 1 and text.strip() and not re.search(r"[\\$]", text)
        assert good, f"{page}: {text!r} isn't MathML: see tools/sphinx/markup.py"
        whole = formula.find_parent(class_="whole") or not re.match(r"[,.;:?!]", str(formula.next_sibling))
        assert whole, f"{page}: a line can break between {text!r} and {formula.next_sibling!r}: see tools/sphinx/markup.py"
        # around these, browsers leave too much space
        assert not formula.select("mo[minsize]"), f"{page}: write \\left( … \\right) for \\big( … \\big) in {text!r}"
    unseen = "\N{FUNCTION APPLICATION}\N{INVISIBLE TIMES}\N{INVISIBLE SEPARATOR}"
    signs = {*"".join(formula.get_text() for formula in formulas)} - {*unseen, "\n"}
    missing = signs - set(map(chr, TTFont(site.html / "_static/cut-math.woff2").getBestCmap()))
    assert not missing, f"{page}: the font of the formulas lacks {missing}: write it with other signs"


@pytest.mark.parametrize("page", PAGES)
def test_page_is_light(site: Site, page: str) -> None:
    """Scripts that aren't deferred delay its text: see tools/sphinx/markup.py. More is known in a browser only: make audit."""
    scripts = site.soup(page).select("script[src]")
    waiting = [str(script["src"]) for script in scripts if not script.has_attr("defer")]
    assert not waiting, f"{page}: {waiting} are not deferred"
    heavy = [script["src"] for script in scripts if re.search("searchindex|fontawesome|mathjax", str(script["src"]))]
    assert not heavy, f"{page} loads {heavy}, which it does not need"
    for number, figure in enumerate(site.article(page).find_all("img")):
        assert figure.has_attr("width"), f"{page}: {figure['src']} has no size, and will move what is below it"
        assert figure.has_attr("height"), f"{page}: {figure['src']} has no size, and will move what is below it"
        assert (figure.get("loading") == "lazy") == (number > 0), f"{page}: figures are lazy, but for the first"
    files = [page, "_static/pages.css"]
    files += [site.target(page, str(part["src"]))[0] for part in site.soup(page).select("script[src], img[src]:not(.in-dark)")]
    sent = {file: len(gzip.compress((site.html / file).read_bytes())) for file in files}
    heaviest = sorted(sent.items(), key=lambda item: -item[1])[:3]
    assert sum(sent.values()) <= 250_000, f"{page} has {sum(sent.values()) / 1000:.0f} kB; the most have {heaviest}"


@pytest.mark.parametrize("page", [*PAGES, *GENERATED])
def test_links_lead_to_places(site: Site, page: str) -> None:
    for element in site.soup(page).select("[href], [src]"):
        link = str(element.get("href") or element.get("src"))
        if re.match(r"\w+:", link) or link in ("", "#"):
            continue
        file, fragment = site.target(page, link)
        assert (site.html / file).is_file(), f"{page}: the link {link} leads to no file: correct it, or add the page"
        if fragment:
            assert fragment in anchors(site.html / file), f"{page}: the link {link} leads to no place in {file}: correct it"


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_notebook_can_be_downloaded_as_the_notebook_it_is(site: Site, page: str) -> None:
    button = site.soup(page).select_one("a.btn-download-source-button")
    assert button, f"{page} has no download button: keep use_download_button on in _config.yml"
    file, _ = site.target(page, str(button["href"]))
    source = ROOT / SOURCES[page.removesuffix(".html")]
    assert (site.html / file).read_bytes() == source.read_bytes(), f"{page}: its download isn't {source.name}"


def test_solutions_of_assignments_are_folded_on_their_pages(site: Site) -> None:
    """One for each answer and one for the key; that the download is the students' notebook is tested above."""
    for page in (ROOT / "exercises/release").rglob("*.ipynb"):
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        answers = sum(bool(cell["metadata"].get("nbgrader", {}).get("solution")) for cell in cells)
        folded = site.soup(f"{page.relative_to(ROOT).with_suffix('')}.html").select("details.solution:not([open])")
        assert len(folded) == answers + 1
        assert not [details for details in folded if len(details.get_text()) < 50]
