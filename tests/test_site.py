"""Tests of the site: it is built once from scratch, its files are read, and every page is opened in a real browser."""

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree as ET

import pytest
from bs4 import BeautifulSoup, Tag
from filelock import FileLock
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from PIL import Image
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TooSlow

from tests.commands import WEEKLY
from tools.book.audit import BYTES, parts
from tools.book.browser import DRAWN
from tools.teaching.quizzes import quizzes

ROOT = Path(__file__).parent.parent
SOURCES = {
    document: next(ROOT.glob(f"{document}.*")).relative_to(ROOT).as_posix()
    for document in re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
}
PAGES = [f"{document}.html" for document in SOURCES]
NOTEBOOKS = [f"{document}.html" for document, source in SOURCES.items() if source.endswith(".ipynb")]
CHAPTERS = [page for page in NOTEBOOKS if re.match(r"book/\d\d_", page)]
# Axe takes most of a page's time. It looks at pages that together have each kind of element, at the pages that
# `make test ONLY=...` selects, and on Mondays at all of them.
KINDS = (
    *("index", "eight", "book/13_stretching", "deeper/10_rope", "release/10_rope/10_rope"),
    *("claims", "models", "bibliography", "api", "teaching/classroom"),
)
AXED = [page for page in PAGES if WEEKLY or "ONLY" in os.environ or page.removesuffix(".html").endswith(KINDS)]
OPENED = [*AXED, *(page for page in PAGES if page not in AXED)]
GENERATED = {"index.html", "search.html", "404.html"}  # the redirect to the first page, the search, what is shown for no page
Scheme = Literal["light", "dark"]

WIDTHS = {"desktop": 1280, "phone": 390}
# As on a busy processor, a page hears of what comes into view together with what was before.
BUSY = """const Real = IntersectionObserver; IntersectionObserver = class extends Real {
    constructor(tell, options) {
        const before = (target) => ({ target, isIntersecting: false, intersectionRatio: 0 });
        super((changes, self) => tell([before(changes[0].target), ...changes], self), options);
    }
};"""
# Scrolls the page sideways, or is cut off in silence.
OVERFLOWING = """() => [...document.querySelectorAll('article *')].filter(e => {
    const hidden = ['hidden', 'clip'].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1;
    const inside = e.closest('pre, .pst-scrollable-table-container, .cell_output, .math');
    return hidden || (!inside && e.getBoundingClientRect().right > innerWidth + 1);
}).slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""
# A formula without a size, or with a part outside of its box, where it is cut off; a wide one scrolls.
CUT_OFF = """() => [...document.querySelectorAll('article .math')].filter(box => {
    const edge = box.getBoundingClientRect();
    const parts = [...box.querySelectorAll('math *')].map(part => part.getBoundingClientRect()).filter(part => part.width);
    return !parts.length || parts.some(part => part.top < edge.top - 1 || part.bottom > edge.bottom + 1);
}).slice(0, 3).map(box => box.textContent)"""
AXE = """async ([within, rules]) => (await axe.run(within, {
    preload: false, resultTypes: ['violations'], ...rules,
})).violations"""
# On a phone the sidebars are hidden. Only these rules meet anything there that a desktop does not show: a button, what scrolls.
ON_A_PHONE = ["button-name", "nested-interactive", "scrollable-region-focusable"]
ON_A_PHONE += ["aria-allowed-attr", "aria-conditional-attr", "aria-prohibited-attr", "aria-valid-attr", "aria-valid-attr-value"]
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
STRUCTURE: dict[str, dict[str, Any]] = {
    "desktop": {"runOnly": WCAG, "rules": {"color-contrast": {"enabled": False}}},
    "phone": {"runOnly": {"type": "rule", "values": ON_A_PHONE}},
}
# Colours do not depend on the width, and looking at them takes the longest: once in each scheme is enough.
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
# The theme lets the keyboard into what scrolls, some time after the width has changed, and after figures have moved.
KEYBOARD_IS_LET_IN = """() => [
    ...document.querySelectorAll('pre, .cell_output > .output, .pst-scrollable-table-container')
].every(e => e.tabIndex === 0 || (e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight))"""
# Thousands of tokens, which have colours, and no meaning, become plain text, but for the first with the same classes on it and
# on all around it.
WITHOUT_REPEATS = """() => {
    const seen = new Set();
    for (const token of document.querySelectorAll(':is(pre, code, .sig) span[class]')) {
        let classes = '';
        for (let e = token; e; e = e.parentElement) classes += [e.localName, e.getAttribute('class')];
        if (seen.has(classes)) token.replaceWith(token.textContent); else seen.add(classes);
    }
}"""
# Of all other text that is seen, axe looks at the first with the same colours on the same grounds, unless an earlier page had
# it. Words are apart from signs, since axe passes over single characters, and so is what lies on top of something else.
MARK_SHADES = r"""earlier => {
    const grounds = new Map([[null, document.documentElement.dataset.theme]]);
    function ground(e) {
        if (!grounds.has(e)) {
            const {backgroundColor, backgroundImage, opacity, position} = getComputedStyle(e);
            const paint = [backgroundColor, backgroundImage, opacity].join(), on = /absolute|fixed|sticky/.test(position);
            const own = (paint === 'rgba(0, 0, 0, 0),none,1' ? '' : paint) + (on ? e.getAttribute('class') : '');
            grounds.set(e, own + ground(e.parentElement));
        }
        return grounds.get(e);
    }
    function shade(e) {
        const {color, fill, fontSize, fontWeight} = getComputedStyle(e), size = parseFloat(fontSize);
        const large = size >= 24 || (size >= 18.66 && fontWeight >= 700);
        return [/\w\w/.test(e.textContent), color, fill, large, ground(e)].join();
    }
    const seen = new Set(earlier), found = [];
    for (const e of document.querySelectorAll('body *')) {
        delete e.dataset.firstOfItsShade;
        const text = [...e.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
        const its = text && e.checkVisibility() && shade(e);
        if (!its || seen.has(its)) continue;
        seen.add(its);
        found.push(its);
        e.dataset.firstOfItsShade = '';
    }
    return found;
}"""
# At once, because a figure may draw itself anew, and then the marks are gone.
AXE_ON_NEW_SHADES = f"""async ([earlier, rules]) => {{
    const found = ({MARK_SHADES})(earlier);
    return [found, found.length ? await ({AXE})(['[data-first-of-its-shade]', rules]) : []];
}}"""
SHADES_SEEN: set[str] = set()


@cache
def parsed(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@cache
def anchors(page: Path) -> set[str]:
    return {str(place["id"]) for place in parsed(page).select("[id]")}


@dataclass
class Site:
    root: Path  # the copy of the repository that it was built in
    returncode: int
    log: str

    @property
    def html(self) -> Path:
        return self.root / "_build" / "html"

    def address(self, page: str) -> str:
        return (self.html / page).as_uri()

    def soup(self, page: str) -> BeautifulSoup:
        return parsed(self.html / page)

    def article(self, page: str) -> Tag:
        article = self.soup(page).select_one("article")
        assert article, f"{page} has no <article>: did the theme's layout change?"
        return article

    def target(self, page: str, link: str) -> tuple[str, str]:
        """The file, relative to the site, and the fragment that an internal link means."""
        url = urlsplit(link)
        path = (self.html / page).parent / unquote(url.path) if url.path else self.html / page
        return os.path.relpath(path, self.html), unquote(url.fragment)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Site:
    """Built from what git has or would take, so that no ignored or stale file can help; by the first process that asks."""
    base = tmp_path_factory.getbasetemp()
    root = (base if worker_id == "master" else base.parent) / "course"  # the parent is this run's, for all its processes
    with FileLock(root.with_suffix(".lock")):
        if not (log := root / "build.json").exists():
            log.write_text(json.dumps(build(root)), encoding="utf-8")
    built = Site(root, **json.loads(log.read_text(encoding="utf-8")))
    if missing := [page for page in PAGES if not (built.html / page).exists()]:
        pytest.fail(f"the build left out {missing}; its last lines:\n{built.log[-3000:]}")
    return built


def jupyter_book(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", ".", *options]
    return subprocess.run(command, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def build(root: Path) -> dict[str, int | str]:
    listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, root / name)
    (root / ".venv").mkdir()
    (root / ".venv" / "README.md").write_text("# No page: hidden folders are none of the book's", encoding="utf-8")
    done = jupyter_book(root, "-W", "-n", "--keep-going")
    return {"returncode": done.returncode, "log": re.sub(rf"\x1b\[[\d;]*m|{re.escape(str(root))}/", "", done.stdout)}


def opened(browser: Browser, address: str, scheme: Scheme = "light", problems: list[str] | None = None) -> Page:
    """Offline; what goes wrong is added to `problems`. Closing the page (`with`) ends all that belongs to it."""
    tab = browser.new_page(color_scheme=scheme, viewport={"width": WIDTHS["desktop"], "height": 900}, offline=True)
    if problems is not None:
        tab.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else problems.append(f"asks for {r.url}"))
        tab.on("requestfailed", lambda r: problems.append(f"cannot load {r.url}"))
        tab.on("pageerror", lambda error: problems.append(f"script error: {error}"))
        tab.on("console", lambda m: problems.append(f"console: {m.text}") if m.type == "error" else None)
    tab.goto(address)
    return tab


# --- What the files say ---


def test_build_from_nothing_is_clean(site: Site) -> None:
    warnings = [line for line in site.log.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)]
    assert not warnings, "fix the causes of the build's warnings:\n" + "\n".join(warnings)
    assert site.returncode == 0, f"the build returned {site.returncode}; its last lines:\n{site.log[-3000:]}"


def test_pages_equal_the_table_of_contents(site: Site) -> None:
    built = {path.relative_to(site.html).as_posix() for path in site.html.rglob("*.html")} - GENERATED
    built = {page for page in built if not page.startswith(("_static/", "embed/", "book/decks/"))}
    assert built == set(PAGES), f"pages and _toc.yml differ in {sorted(built ^ set(PAGES))}: list each page once in _toc.yml"
    written = {
        path.relative_to(site.root).as_posix() for path in site.root.glob("book/**/*") if path.suffix in (".md", ".ipynb")
    }
    unread = sorted(file for file in written - set(SOURCES.values()) if not file.startswith("book/decks/"))
    assert not unread, f"{unread} are in book/ but in no page: list them in _toc.yml, or remove them"
    redirect = site.soup("index.html").find("meta", attrs={"http-equiv": "Refresh"})
    assert PAGES[0] in str(redirect), f"index.html does not lead to {PAGES[0]}, the root of _toc.yml: {redirect}"


def test_titles_are_unique(site: Site) -> None:
    titles = {page: site.soup(page).title.get_text(strip=True) for page in PAGES}  # type: ignore[union-attr]
    twice = sorted(page for page, title in titles.items() if list(titles.values()).count(title) > 1)
    assert not twice, f"{twice} share a <title>: give each page a first heading of its own"


@pytest.mark.parametrize("page", PAGES)
def test_page_has_a_language_and_one_first_heading(site: Site, page: str) -> None:
    english = site.soup(page).select_one("html[lang=en]")
    assert english, f"{page}: <html> has no language: set language: en in _config.yml"
    headings = [heading.get_text() for heading in site.article(page).find_all("h1")]
    assert len(headings) == 1, f"{page} has the first-level headings {headings}: write one line with a single #"


@pytest.mark.parametrize("page", PAGES)
def test_images_say_what_they_show(site: Site, page: str) -> None:
    for image in site.soup(page).select("img:not(.picture *)"):  # beside a title, a picture is an ornament
        alt, source = str(image.get("alt") or "").strip(), str(image["src"])[:80]
        advice = "cell metadata mystnb: {image: {alt: ...}}, or [text](file) in Markdown, says it in words"
        assert alt, f"{page}: the image {source} has no alt text: {advice}"
        assert not re.search(r"\.(png|svg|jpe?g|gif|webp)$", alt), f"{page}: alt text {alt!r} is a file name: {advice}"
        if image.find_parent("article"):
            assert len(alt) >= 20, f"{page}: alt text {alt!r} of {source} is under 20 characters: {advice}"
            if image.find_parent(class_="step"):  # on the first page: the words beside it say what it is of
                continue
            caption = figure.select_one("figcaption:not(:empty)") if (figure := image.find_parent("figure")) else None
            advice = "cell metadata mystnb: {figure: {caption: ..., name: fig-...}} gives it one"
            assert caption, f"{page}: the figure {alt!r} has no caption: {advice}"


def test_pictures_can_be_shown(site: Site) -> None:
    """Browsers show nothing for a file that isn't there, an SVG that isn't well-formed or has no size, and half a PNG."""
    alone = [path.relative_to(site.html).as_posix() for path in site.html.glob("embed/*.html")]
    shown = {site.target(page, str(image["src"]))[0] for page in [*PAGES, *alone] for image in site.soup(page).select("img")}
    assert len(shown) > len(CHAPTERS)
    for file in sorted(shown):
        if file.endswith(".svg"):
            try:
                picture = ET.parse(site.html / file).getroot()
            except ET.ParseError as error:
                pytest.fail(f"{file} is no whole SVG: {error}")
            assert picture.tag == "{http://www.w3.org/2000/svg}svg", f"{file} begins with {picture.tag}"
            assert picture.get("viewBox") or {"width", "height"} <= {*picture.attrib}, f"{file} has no size"
            continue
        with Image.open(site.html / file) as pixels:
            pixels.load()


@pytest.mark.parametrize("page", PAGES)
def test_no_markup_is_left_raw(site: Site, page: str) -> None:
    article = copy(site.article(page))
    for rendered in article.select("pre, code, script, .math"):
        rendered.decompose()
    raw = [line for line in article.get_text().splitlines() if re.search(r"\$|:::|\{[a-z:]+\}\s*$|\]\(", line)]
    assert not raw, f"{page} shows raw markup: close the $...$, the role or the directive in {raw}"


@pytest.mark.parametrize("page", PAGES)
def test_quiz_options_say_yes_or_no_and_why(site: Site, page: str) -> None:
    options = site.article(page).select("details.quiz")
    assert options or page not in CHAPTERS, f"{page} has no quiz: end it with <details class='quiz'> options"
    for option in options:
        text, reason = option.select("summary")[0].get_text(strip=True), option.find("p", recursive=False)
        assert reason, f"{page}: {text!r} shows no reason: leave a blank line after its <summary>"
        answer = reason.get_text()
        assert re.match(r"(Yes|No)\.\s+\S", answer), f"{page}: {text!r} must answer **Yes.** or **No.** and why, not {answer!r}"


@pytest.mark.parametrize("page", PAGES)
def test_formulas_are_mathml_in_the_book_s_font(site: Site, page: str) -> None:
    formulas = site.article(page).select(".math")
    assert formulas or page not in CHAPTERS, f"{page} has no formula: a chapter says at least one thing as $…$"
    signs = set()
    for formula in formulas:
        text = formula.get_text()
        mathml = formula.select("math:not(:has(merror))")
        assert len(mathml) == 1, f"{page}: {text!r} isn't MathML: see tools/sphinx/light.py"
        assert text.strip(), f"{page}: a formula is empty"
        whole = formula.find_parent(class_="whole") or not re.match(r"[,.;:?!]", str(formula.next_sibling))
        assert whole, f"{page}: a line can break between {text!r} and {formula.next_sibling!r}: see tools/sphinx/light.py"
        assert not re.search(r"[\\$]", text), f"{page} shows raw LaTeX: {text!r}"
        sized = formula.select("mo[minsize]")
        assert not sized, (
            f"{page}: write \\left( … \\right) for \\big( … \\big), around which browsers leave too much space: {text!r}"
        )
        for part in formula.find_all(["mi", "mn", "mo", "mtext"]):
            signs |= set(slanted(part))
    unseen = "\N{FUNCTION APPLICATION}\N{INVISIBLE TIMES}\N{INVISIBLE SEPARATOR}"
    missing = sorted(signs - set(map(chr, TTFont(site.html / "_static/cut-math.woff2").getBestCmap())) - set(unseen))
    assert not missing, f"{page}: the font of the formulas lacks {missing}: add them in tools/book/fonts.py, and run it"


def slanted(part: Tag) -> str:
    """What a browser shows: a single letter in <mi> is italic, which is a different character."""
    text = part.get_text()
    if part.name != "mi" or len(text) != 1 or part.get("mathvariant") == "normal":
        return text
    if text == "h":  # that one is older than the others
        return "ℎ"
    italic = re.sub(r"^(?:LATIN|GREEK) (\w+) (?:LETTER )?", r"MATHEMATICAL ITALIC \1 ", unicodedata.name(text))
    return unicodedata.lookup(italic)


@pytest.mark.parametrize("page", PAGES)
def test_page_is_light(site: Site, page: str) -> None:
    """Scripts that aren't deferred delay the page's text: see tools/sphinx/light.py and book/_templates."""
    scripts = site.soup(page).select("script[src]")
    waiting = [str(script["src"]) for script in scripts if not script.has_attr("defer")]
    assert not waiting, f"{page}: {waiting} are not deferred"
    heavy = [script["src"] for script in scripts if re.search("searchindex|fontawesome|mathjax", str(script["src"]))]
    assert not heavy, f"{page} loads {heavy}, which it does not need"
    for number, figure in enumerate(site.article(page).find_all("img")):
        sized = {"width", "height"} <= set(figure.attrs)
        assert sized, f"{page}: {figure['src']} has no size, and will move what is below it"
        assert (figure.get("loading") == "lazy") == (number > 0), f"{page}: figures are lazy, but for the first"
        assert int(str(figure["width"])) <= 2 * 512 + 64, f"{page}: {figure['src']} has over two pixels for each of 32rem"
    # More is known of a page in a browser only: see make audit.
    files = parts(site.html / page)
    heaviest = ", ".join(f"{file.name} {files[file] / 1000:.0f} kB" for file in sorted(files, key=files.__getitem__)[:-4:-1])
    assert sum(files.values()) <= BYTES, f"{page} has {sum(files.values()) / 1000:.0f} kB: {heaviest}, ..."
    assert len(files) <= 36, f"{page} is made of {len(files)} files"  # the first page has a picture of each chapter


def test_descriptions_are_sentences_and_unique(site: Site) -> None:
    told: dict[str, str] = {}
    for page in PAGES:
        meta = site.soup(page).select_one("meta[name=description]")
        text = str(meta["content"]) if meta else ""
        assert 40 <= len(text) <= 160, f"{page} is described by {text!r}: write a first paragraph that says what it is about"
        assert text not in told, f"{page} and {told[text]} have the same description: {text!r}"
        told[text] = page


@pytest.mark.parametrize("page", [*PAGES, *sorted(GENERATED)])
def test_internal_links_and_anchors_resolve(site: Site, page: str) -> None:
    for element in site.soup(page).select("[href], [src]"):
        link = str(element.get("href") or element.get("src"))
        if urlsplit(link).scheme or link in ("", "#"):
            continue
        file, fragment = site.target(page, link)
        assert (site.html / file).is_file(), f"{page}: the link {link} leads to no file: correct it, or add the page"
        if fragment:
            assert fragment in anchors(site.html / file), f"{page}: the link {link} leads to no place in {file}: correct it"


@pytest.mark.parametrize("page", [*PAGES, *sorted(GENERATED)])
def test_page_loads_nothing_from_another_host(site: Site, page: str) -> None:
    soup = site.soup(page)
    loaded = [str(element["src"]) for element in soup.select("[src]")]
    loaded += [str(element["srcset"]) for element in soup.select("[srcset]")]
    loaded += [str(element["data"]) for element in soup.select("object[data]")]
    loaded += [str(element["href"]) for element in soup.select("link[href]:not([rel=canonical]), use[href], image[href]")]
    loaded += re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")]+)", " ".join(map(str, soup.select("style, [style]"))))
    foreign = [link for link in loaded if re.match(r"(https?:)?//", link.strip())]
    assert not foreign, f"{page} loads {foreign}: keep a copy in book/_static, the site must work without a network"


def test_stylesheets_load_nothing_from_another_host(site: Site) -> None:
    for sheet in site.html.rglob("*.css"):
        foreign = re.findall(r"(?:url\(|@import)\s*['\"]?((?:https?:)?//[^'\")]+)", sheet.read_text(encoding="utf-8"))
        assert not foreign, f"{sheet.relative_to(site.html)} loads {foreign}: keep a copy in book/_static"


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_notebook_can_be_downloaded_as_the_notebook_it_is(site: Site, page: str) -> None:
    button = site.soup(page).select_one("a.btn-download-source-button")
    assert button, f"{page} has no download button: keep use_download_button on in _config.yml"
    file, _ = site.target(page, str(button["href"]))
    source = ROOT / SOURCES[page.removesuffix(".html")]
    assert file.endswith(source.name), f"{page}: the download button leads to {file}, not to {source.name}"
    assert (site.html / file).read_bytes() == source.read_bytes(), f"{page}: the download differs from book/{source.name}"


def test_solutions_of_assignments_are_folded_on_their_pages(site: Site) -> None:
    """One for each answer and one for the key; that the download is the students' notebook is tested above."""
    for page in (ROOT / "exercises/release").rglob("*.ipynb"):
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        answers = sum(bool(cell["metadata"].get("nbgrader", {}).get("solution")) for cell in cells)
        folded = site.soup(f"{page.relative_to(ROOT).with_suffix('')}.html").select("details.solution:not([open])")
        assert len(folded) == answers + 1
        assert not [details for details in folded if len(details.get_text()) < 50]


def test_no_file_with_the_key_of_a_quiz_is_on_the_site(site: Site) -> None:
    ignored = subprocess.run(["git", "check-ignore", "--quiet", "_quizzes/01_order.zip"], cwd=ROOT)
    assert ignored.returncode == 0, "what make quizzes writes could be committed"
    keys = {f"{quiz.name}{suffix}" for quiz in quizzes() for suffix in (".xml", ".zip")}
    assert not [path for path in site.html.rglob("*") if path.name in keys]


# --- What a reader sees ---


def barriers(tab: Page, *, with_axe: bool = True) -> Iterator[str]:
    tab.evaluate("() => document.querySelectorAll('article details').forEach(answer => answer.open = true)")
    tab.evaluate("() => document.querySelector('.claims .quiet')?.click()")  # the game's answers
    for figure in tab.locator("living-figure").evaluate_all("figures => figures.map(figure => figure.getAttribute('for'))"):
        tab.evaluate("name => document.getElementById(name).scrollIntoView()", figure)
        tab.wait_for_selector(f"#{figure}.lives")
    tab.evaluate("scrollTo(0, 0)")

    if with_axe:
        tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
        tab.evaluate(WITHOUT_REPEATS)
    for device in WIDTHS if with_axe else ["phone"]:  # what is too wide on a desktop is so on a phone, too
        width = WIDTHS[device]
        tab.set_viewport_size({"width": width, "height": 900})
        tab.evaluate(DRAWN)
        if (wide := tab.evaluate("document.scrollingElement.scrollWidth")) > width:
            yield f"is {wide} pixels wide on a {device} of {width}"
        for element in tab.evaluate(OVERFLOWING):
            yield f"overflows on a {device}: {element}"
        for formula in tab.evaluate(CUT_OFF):
            yield f"cuts a formula off on a {device}: {formula}"
        if with_axe:
            with suppress(TooSlow):  # axe says where
                tab.wait_for_function(KEYBOARD_IS_LET_IN, timeout=15_000, polling=100)
            yield from violations(tab.evaluate(AXE, ["html", STRUCTURE[device]]), f"on a {device}")
    if not with_axe:
        return
    tab.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
    # else the colours of the last scheme are still on their way
    tab.add_style_tag(content="* { transition: none !important; }")
    schemes: tuple[Scheme, ...] = ("dark", "light")
    for scheme in schemes:
        tab.emulate_media(color_scheme=scheme)
        try:
            tab.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'", timeout=5000)
        except TooSlow:
            yield f"is not shown {scheme} although the system asks for it"
        new, found = tab.evaluate(AXE_ON_NEW_SHADES, [[*SHADES_SEEN], COLOURS])
        SHADES_SEEN.update(new)
        yield from violations(found, f"when it is {scheme}")


def violations(found: list[dict[str, Any]], where: str) -> Iterator[str]:
    for violation in found:
        node: dict[str, Any] = violation["nodes"][0]
        yield f"{where}: {violation['help']}: {node['html'][:120]} ({node['failureSummary']})"


@dataclass
class Opened:
    page: str
    tab: Page
    problems: list[str]


@pytest.fixture(scope="module")
def shared(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """One tab for all pages, because a new one takes longer than to open a page, and what goes wrong in it."""
    problems: list[str] = []
    with opened(browser, "about:blank", problems=problems) as tab:
        yield tab, problems


def forget(tab: Page) -> None:
    """Leave the page, so that the next one opens as if no other had been open in the tab."""
    if tab.url != "about:blank":
        tab.evaluate("localStorage.clear()")
        tab.goto("about:blank")  # which breaks off what the last page still loads


def open_alone(
    shared: tuple[Page, list[str]], address: str, media: Literal["screen", "print"] = "screen", scheme: Scheme = "dark"
) -> Page:
    """Open a page, as if no other had been open in the tab, and forget what went wrong in that."""
    tab, problems = shared
    forget(tab)
    problems.clear()
    tab.emulate_media(media=media, color_scheme=scheme)
    tab.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
    tab.goto(address)
    return tab


@pytest.fixture(scope="class")
def open_page(shared: tuple[Page, list[str]], site: Site, request: pytest.FixtureRequest) -> Opened:
    """A page for the tests of the class below, as the first wants it: to lay it out anew takes longer than to open it."""
    media: Literal["screen", "print"] = "print" if request.param in AXED else "screen"
    return Opened(request.param, open_alone(shared, site.address(request.param), media), shared[1])


class TestPageInTheBrowser:
    """Both lists begin with the same pages, so that each is opened once."""

    @pytest.mark.parametrize("open_page", AXED, indirect=True)
    def test_paper_is_light_and_shows_the_answers(self, open_page: Opened) -> None:
        page, tab = open_page.page, open_page.tab
        tab.wait_for_function("document.documentElement.dataset.theme === 'dark'", timeout=5000)
        tab.evaluate("dispatchEvent(new Event('beforeprint'))")
        hidden = (
            "() => [...document.querySelectorAll('article details > :not(summary)')].filter(e => "
            "e.parentElement.checkVisibility() && !e.checkVisibility()).length"
        )
        assert tab.evaluate(hidden) == 0, f"{page}: closed answers are not printed: see @media print in course.css"
        assert tab.evaluate("document.documentElement.dataset.theme") == "light", f"{page} prints dark: see course.js"
        tab.evaluate("dispatchEvent(new Event('afterprint'))")
        assert tab.evaluate("document.documentElement.dataset.theme") == "dark", (
            f"{page} stays light after printing: see course.js"
        )

    @pytest.mark.parametrize("open_page", OPENED, indirect=True)
    def test_nothing_fails_and_axe_finds_no_barrier(self, open_page: Opened) -> None:
        """Offline, from file://: everything shows, nothing overflows, and axe finds no barrier on those in AXED (WCAG AA).

        Only there, too, light and dark are tried; the scripts are the same on all pages.
        """
        open_page.tab.emulate_media(media="screen")
        open_page.tab.evaluate(
            "dispatchEvent(new Event('resize'))"
        )  # after which the theme lets the keyboard into what scrolls
        found = barriers(open_page.tab, with_axe=open_page.page in AXED)
        problems = [*found, *open_page.problems]
        # said while it is open: closing a page breaks off what it still loads
        assert not problems, f"{open_page.page}, mend each in its source or in book/_static/course.css:\n" + "\n".join(problems)


def test_axe_finds_text_that_is_too_dark(browser: Browser, site: Site) -> None:
    with opened(browser, site.address(min(AXED, key=lambda page: (site.html / page).stat().st_size))) as tab:
        tab.add_style_tag(content="html[data-theme=dark] article li { color: #333 !important; }")
        (problem,) = barriers(tab)
    assert problem.startswith("when it is dark: Elements must meet minimum color contrast"), problem


def test_quiz_answers_by_keyboard(browser: Browser, site: Site) -> None:
    page = CHAPTERS[0]
    with opened(browser, site.address(page)) as tab:
        options = tab.locator("details.quiz")
        for option in options.all():
            text, shown = option.locator("summary").inner_text(), option.locator("p").first
            option.locator("summary").focus()
            tab.keyboard.press("Enter")
            assert shown.is_visible(), f"{page}: Enter on {text!r} shows no reason"
            outline = option.locator("summary").evaluate("e => getComputedStyle(e).outlineStyle")
            assert outline != "none", f"{page}: the focus on {text!r} is invisible: give it an outline in course.css"
            tab.keyboard.press("Enter")
            assert not shown.is_visible(), f"{page}: a second Enter does not close {text!r}"
        assert options.count() > 0, f"{page} has no quiz"


def test_switch_between_light_and_dark(browser: Browser, site: Site) -> None:
    with opened(browser, site.address(PAGES[0])) as tab:
        switch = tab.locator("button.theme-switch-button").first
        assert switch.is_visible(), f"{PAGES[0]} has no switch between light and dark: leave it in _config.yml"
        seen = set()
        for _ in range(3):  # auto, light, dark
            switch.click()
            seen.add(tab.evaluate("document.documentElement.dataset.theme"))
        assert seen == {"light", "dark"}, (
            f"{PAGES[0]}: the switch only reaches {seen}: leave theme-switch-button in _config.yml"
        )


def test_search_works_from_the_folder(browser: Browser, site: Site) -> None:
    word = max(re.findall(r"[A-Za-z]+", site.article(CHAPTERS[0]).find_all("h1")[0].get_text()), key=len)
    with opened(browser, site.address("search.html") + f"?q={word}") as tab:
        tab.wait_for_function("/finished|did not match/.test(document.querySelector('#search-results').innerText)")
        found = tab.locator("#search-results li a").evaluate_all("links => links.map(a => a.getAttribute('href'))")
        assert any(str(link).startswith(CHAPTERS[0]) for link in found), f"searching {word!r} finds {found}, not {CHAPTERS[0]}"


def test_keyboard_sees_where_it_is(browser: Browser, site: Site) -> None:
    """From the link that skips what all pages have, through all that can be used, and out again."""
    stops = """() => {
        const e = document.activeElement;
        const {outlineStyle, boxShadow} = getComputedStyle(e);
        return e === document.body ? null : [e.outerHTML.slice(0, 120), outlineStyle !== 'none' || boxShadow !== 'none'];
    }"""
    with opened(browser, site.address(CHAPTERS[0])) as tab:
        seen: list[tuple[str, bool]] = []
        while len(seen) < 500:
            tab.keyboard.press("Tab")
            if (stop := tab.evaluate(stops)) is None:
                break
            seen.append(stop)
    assert '#main-content"' in seen[0][0], f"the first stop is {seen[0][0]}, not the link to the text"
    assert 50 < len(seen) < 500, f"the keyboard has {len(seen)} stops: is it caught, or kept out?"
    assert not (unseen := [stop for stop, shown in seen if not shown]), f"course.css shows no focus on {unseen}"


def test_screen_reader_hears_words(browser: Browser, site: Site) -> None:
    page = CHAPTERS[5]  # with all that chapters have
    with opened(browser, site.address(page) + "?all") as tab:  # with the results of all predictions
        tree = tab.context.new_cdp_session(tab).send("Accessibility.getFullAXTree")["nodes"]
    heard = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
    icons = [name for role, name in heard if role not in ("StaticText", "InlineTextBox") and re.search("[\ue000-\uf8ff]", name)]
    assert not icons, f"{page}: icons are read aloud in {icons}: see course.js"
    article = site.article(page)
    for name, kind in [("Code", ".cell > .cell_input"), ("Output", ".cell_output:not(details *)")]:
        told, there = heard.count(("group", name)), len(article.select(kind))
        assert told == there > 0, (
            f"{page}: {told} of {there} groups say that they are {name}: see SPOKEN in tools/sphinx/light.py"
        )
    hidden = {summary.p.get_text() for summary in article.select("details.hide > summary") if summary.p}
    assert hidden, f"{page} hides no cell: correct this test"
    unheard = hidden - {name for role, name in heard if role == "DisclosureTriangle"}
    assert not unheard, f"{page}: {unheard} is visible but not read aloud: see SPOKEN in tools/sphinx/light.py"
    parts = {"MathMLSub", "MathMLSup", "MathMLSquareRoot", "MathMLTable", "MathMLOperator"}
    assert not (missing := parts - {role for role, _ in heard}), f"{page}: formulas are read without {missing}"
