"""The built site, for all tests that read its files or open its pages in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup, Tag
from filelock import FileLock
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TooSlow

from tests.commands import ROOT, WEEKLY
from tools.book.browser import DRAWN

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
Scheme = Literal["light", "dark"]
WIDTHS = {"desktop": 1280, "phone": 390}
# As on a busy processor, a page hears of what comes into view together with what was before.
BUSY = """const Real = IntersectionObserver; IntersectionObserver = class extends Real {
    constructor(tell, options) {
        const before = (target) => ({ target, isIntersecting: false, intersectionRatio: 0 });
        super((changes, self) => tell([before(changes[0].target), ...changes], self), options);
    }
};"""
# Scrolls the page sideways, or is cut off in silence; what is only spoken is never seen.
OVERFLOWING = """() => [...document.querySelectorAll('article :not([role=status])')].filter(e => {
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
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
# Colours do not depend on the width, and looking at them takes the longest.
ALL_BUT_COLOURS = {"runOnly": WCAG, "rules": {"color-contrast": {"enabled": False}}}
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


def jupyter_book(root: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", ".", *options]
    environment = os.environ | environment
    return subprocess.run(command, cwd=root, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def copy_a_part(root: Path) -> Path:
    """Copies to the folder `root` what three pages are built from, within seconds: their figures don't live."""
    for name in ["_config.yml", "book/references.bib", "book/index.md", "book/01_order.ipynb", "book/02_naive.ipynb"]:
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    for name in ["book/_static", "book/_templates", "book/pictures", "tools/sphinx"]:
        shutil.copytree(ROOT / name, root / name)
    toc = "{format: jb-book, root: book/index, chapters: [{file: book/01_order}, {file: book/02_naive}]}"
    (root / "_toc.yml").write_text(toc, encoding="utf-8")
    (root / "tools/sphinx/living_data.py").write_text("scripts = looks = dict", encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Site:
    """Built from what git has or would take, and from the assignments, by the first process that asks; all share it."""
    base = tmp_path_factory.getbasetemp()
    root = (base if worker_id == "master" else base.parent) / "course"
    with FileLock(root.with_suffix(".lock")):
        if not (log := root / "build.json").exists():
            listed = subprocess.check_output(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, text=True)
            for name in filter(None, listed.split("\0")):
                if (ROOT / name).is_file():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(ROOT / name, root / name)
            shutil.copytree(ROOT / "exercises/release", root / "exercises/release")
            (root / ".venv").mkdir()
            (root / ".venv" / "README.md").write_text("# No page: hidden folders are none of the book's", encoding="utf-8")
            done = jupyter_book(root, "-W", "-n", "--keep-going")
            said = re.sub(rf"\x1b\[[\d;]*m|{re.escape(str(root))}/", "", done.stdout)
            log.write_text(json.dumps({"returncode": done.returncode, "log": said}), encoding="utf-8")
    built = Site(root, **json.loads(log.read_text(encoding="utf-8")))
    if missing := [page for page in PAGES if not (built.html / page).exists()]:
        pytest.fail(f"the build left out {missing}; its last lines:\n{built.log[-3000:]}", pytrace=False)
    return built


def opened(browser: Browser, address: str, scheme: Scheme = "light", problems: list[str] | None = None) -> Page:
    """A new page, offline; what goes wrong is added to `problems`. Closing it (`with`) ends all that belongs to it."""
    tab = browser.new_page(color_scheme=scheme, viewport={"width": WIDTHS["desktop"], "height": 900}, offline=True)
    if problems is not None:
        tab.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else problems.append(f"asks for {r.url}"))
        tab.on("requestfailed", lambda r: problems.append(f"cannot load {r.url}"))
        tab.on("pageerror", lambda error: problems.append(f"script error: {error}"))
        tab.on("console", lambda m: problems.append(f"console: {m.text}") if m.type == "error" else None)
    tab.goto(address)
    return tab


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serves the folder, and gives its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def shared(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """One tab for many pages, because a new one takes longer than to open a page, and what goes wrong in it."""
    problems: list[str] = []
    with opened(browser, "about:blank", problems=problems) as tab:
        yield tab, problems


def forget(tab: Page) -> None:
    """Leave the page, so that the next one opens as if no other had been open in the tab."""
    if tab.url != "about:blank":
        tab.evaluate("localStorage.clear()")
        # which breaks off what the last page still loads
        tab.goto("about:blank")


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


def barriers(tab: Page, *, with_axe: bool = True) -> Iterator[str]:
    """What doesn't fit, and what axe finds: all that it knows on a desktop and a phone, and the colours in dark and light."""
    tab.evaluate("() => document.querySelectorAll('article details').forEach(answer => answer.open = true)")
    tab.evaluate("() => document.querySelector('.claims .quiet')?.click()")  # the game's answers
    for figure in tab.locator("living-figure").evaluate_all("figures => figures.map(figure => figure.getAttribute('for'))"):
        tab.evaluate("name => document.getElementById(name).scrollIntoView()", figure)
        tab.wait_for_selector(f"#{figure}.lives")
    tab.evaluate("scrollTo(0, 0)")
    if with_axe:
        tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
        tab.evaluate(WITHOUT_REPEATS)
        # else the colours of the last scheme are still on their way
        tab.add_style_tag(content="* { transition: none !important; }")
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
            yield from violations(tab.evaluate(AXE, ["html", ALL_BUT_COLOURS]), f"on a {device}")
    if not with_axe:
        return
    tab.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
    schemes: tuple[Scheme, ...] = ("dark", "light")
    for scheme in schemes:
        tab.emulate_media(color_scheme=scheme)
        try:
            tab.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'", timeout=5000)
        except TooSlow:
            yield f"is not shown {scheme} although the system asks for it"
        tab.evaluate(DRAWN)
        yield from violations(tab.evaluate(AXE, ["html", COLOURS]), f"when it is {scheme}")


def violations(found: list[dict[str, Any]], where: str) -> Iterator[str]:
    for violation in found:
        node: dict[str, Any] = violation["nodes"][0]
        yield f"{where}: {violation['help']}: {node['html'][:120]} ({node['failureSummary']})"
