"""What makes the pages light takes nothing away: no rule and no sign that a page needs, and no page of a later build."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import pytest
from bs4 import BeautifulSoup
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page

from tests.commands import ROOT, WEEKLY
from tests.test_site import CHAPTERS, PAGES, WIDTHS, Scheme, Site, jupyter_book, site

__all__ = ["site"]  # a fixture; each of the two files finds what the other has built
pytestmark = pytest.mark.slow
# Pages of a kind have the same icons and scripts: one of each is opened every time, and every Monday all.
KINDS = [CHAPTERS[0], "search.html", "book/reference/claims.html", "book/reference/api.html"]
ALL = [*PAGES, "search.html"]
NAME = r"[.#](-?[_a-zA-Z][\w-]*)"
# Every class and id that an element ever has.
WATCH = """() => {
    window.worn = new Set();
    const add = e => e.nodeType === 1 && [e.id, ...e.classList].forEach(name => worn.add(name));
    new MutationObserver(changes => changes.forEach(({target, addedNodes}) => {
        add(target);
        addedNodes.forEach(node => { add(node); node.querySelectorAll?.('*').forEach(add); });
    })).observe(document, {attributes: true, childList: true, subtree: true});
}"""
# Every element, with the styles that the browser computes for it; where files lie may differ,
# and how a short `background: none` places no picture. Origins are half of width and height, which are there, rounded anew.
STYLES = """() => [...document.querySelectorAll('body, body *')].map(element => [
    `${element.localName}.${element.className}`,
    ...[null, '::before', '::after'].map(part => {
        const style = getComputedStyle(element, part);
        const there = !part || style.content !== 'none';
        const keys = there ? [...style].filter(key => !/^--|^(perspective|transform)-origin/.test(key)) : [];
        return keys.map(key => `${key}: ${style.getPropertyValue(key)}`).join('\\n');
    }),
].map(text => text.replaceAll(/url\\([^)]*[/]/g, '').replaceAll('0% 0%', '0px 0px')))"""
# What ::before and ::after of all elements ask the icon fonts for.
ICONS = """() => [...document.querySelectorAll('body *')].flatMap(e => ['::before', '::after'].map(part => {
    const {content: shown, fontFamily, fontWeight} = getComputedStyle(e, part);
    const [content] = shown.split(' / '); // behind it stands what is read aloud
    return fontFamily.includes('Font Awesome') && /^"[^]+"$/.test(content) ? [fontFamily, fontWeight, content] : null;
})).filter(Boolean)"""


def merged(site: Site) -> str:
    return (site.html / "_static/pages.css").read_text(encoding="utf-8")


def as_it_was(site: Site) -> str:
    """The style sheets that Sphinx and its extensions brought."""
    sheets = [sheet for sheet in (site.html / "_static").rglob("*.css") if sheet.name != "pages.css"]
    return "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


@contextmanager
def opened(browser: Browser, address: str, width: int = WIDTHS["desktop"]) -> Iterator[Page]:
    with browser.new_page(viewport={"width": width, "height": 900}, offline=True) as tab:
        tab.add_init_script(f"({WATCH})()")
        tab.goto(address)
        yield tab


@pytest.mark.parametrize("page", ALL)
def test_page_loads_one_style_sheet_as_it_is_now(site: Site, page: str) -> None:
    sheets = [str(link["href"]) for link in site.soup(page).select("link[rel=stylesheet]")]
    assert len(sheets) == 1, f"{page} loads {sheets}: tools/sphinx/slim.py merges what all pages load"
    now = sha256((site.html / "_static/pages.css").read_bytes()).hexdigest()[:8]
    assert sheets[0].endswith(f"_static/pages.css?v={now}"), f"{page} asks for {sheets[0]}: the sheet is now {now}"
    rules = re.sub(r"base64,[^)]*", "", merged(site))
    assert len(rules) < 130_000, "pages.css grew by a quarter: what does it keep that no page uses?"


def try_everything(tab: Page, page: str) -> None:
    """Touch what scripts answer to, as far as the page has it and the screen shows it."""
    if page == "search.html":
        tab.wait_for_function("/finished|did not match/.test(document.querySelector('#search-results').innerText)")
    tab.evaluate("document.querySelectorAll('article details').forEach(answer => answer.open = true)")
    for element in tab.locator("[data-bs-toggle=tooltip]:visible").all()[:4]:
        element.hover(force=True)
        tab.wait_for_timeout(800)  # the theme waits half a second
    for kind in ["[data-bs-toggle=dropdown]", "button.copybtn", "a.headerlink"]:
        for element in tab.locator(f"{kind}:visible").all()[:1]:
            element.click(force=True)
            tab.wait_for_timeout(300)
    tab.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    tab.wait_for_timeout(200)
    tab.evaluate("scrollBy(0, -200)")
    for kind, close in [(".theme-switch-button", False), (".primary-toggle", True), (".secondary-toggle", True)]:
        for element in tab.locator(f"{kind}:visible").all()[:1]:
            element.click(force=True)
            tab.wait_for_timeout(400)
            if close:
                tab.keyboard.press("Escape")
    tab.keyboard.press("Control+k")
    tab.wait_for_timeout(300)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("page", KINDS if WEEKLY else KINDS[:2])
def test_no_class_that_scripts_add_has_lost_its_rules(browser: Browser, site: Site, page: str, width: int) -> None:
    dropped = set(re.findall(NAME, as_it_was(site))) - set(re.findall(NAME, merged(site)))
    written = set(re.findall(r"[\w-]+", (site.html / page).read_text(encoding="utf-8")))
    query = "?q=rotation" if page == "search.html" else "?highlight=rotation"
    with opened(browser, site.address(page) + query, width) as tab:
        try_everything(tab, page)
        worn = set(tab.evaluate("[...worn]"))
    assert {"tooltip-inner", "bs-tooltip-auto"} <= worn or width < WIDTHS["desktop"], (
        f"{page} showed no tooltip: correct this test"
    )
    assert not (lost := worn & dropped - written), f"{page}: scripts add {lost}: name them in ADDED in tools/sphinx/slim.py"


def test_each_icon_is_in_its_font(browser: Browser, site: Site) -> None:
    fonts = {
        font.stem.removeprefix("cut-fa-"): TTFont(font).getBestCmap() for font in (site.html / "_static").glob("cut-fa-*.woff2")
    }
    seen = Counter[str]()
    for page in ALL if WEEKLY else KINDS:
        with opened(browser, site.address(page)) as tab:
            for family, weight, content in tab.evaluate(ICONS):
                font = "brands-400" if "Brands" in family else f"solid-{weight}" if weight == "900" else f"regular-{weight}"
                seen[content] += 1
                missing = [hex(ord(sign)) for sign in json.loads(content) if ord(sign) not in fonts[font]]
                assert not missing, f"{page} asks for {missing} of Font Awesome's {font}, cut away in tools/sphinx/slim.py"
    assert len(seen) >= 12, f"only the icons {seen} were seen: correct this test"


@pytest.mark.parametrize("page", PAGES if WEEKLY else ["book/reference/notation.html"])
def test_formulas_are_drawn_as_with_the_whole_font(browser: Browser, site: Site, page: str) -> None:
    """Browsers add characters that aren't in the source: roots, italics. In another font, the formula's size would change."""
    sizes = "[...document.querySelectorAll('math')].map(e => [e.textContent, e.getBoundingClientRect().width].join())"
    whole = f"new FontFace('Whole', 'url({site.address('_static/math.woff2')})').load().then(font => document.fonts.add(font))"
    with opened(browser, site.address(page)) as tab:
        tab.wait_for_function("document.fonts.check('1em Book Math')")
        cut = tab.evaluate(sizes)
        tab.evaluate(whole)
        tab.add_style_tag(content="math { font-family: Whole !important; }")
        tab.wait_for_function("document.fonts.check('1em Whole')")
        assert tab.evaluate(sizes) == cut, f"{page}: a character is missing in signs() of tools/sphinx/slim.py"
        tab.add_style_tag(content="math { font-family: serif !important; }")
        assert tab.evaluate(sizes) != cut or not cut, "the sizes don't distinguish fonts: correct this test"


LOOKS: list[tuple[Scheme, Literal["screen", "print"], int]]
LOOKS = [("dark", "screen", 390), ("light", "print", 1280)]
if WEEKLY:
    LOOKS.append(("light", "screen", 1280))


def build(root: Path) -> None:
    done = jupyter_book(root)
    assert done.returncode == 0, done.stdout[-3000:]


def built(root: Path) -> dict[str, bytes]:
    """A build that goes on from the last one, and what a browser may ask it for."""
    build(root)
    html = root / "_build/html"
    pages = {
        path.relative_to(html).as_posix(): path.read_bytes() for path in html.rglob("*.html") if "_static" not in path.parts
    }
    for page, text in pages.items():
        for element in BeautifulSoup(text, "html.parser").select("link[rel=stylesheet], article img"):
            address = str(element.get("href") or element.get("src"))
            file = (html / page).parent / address.partition("?")[0]
            assert file.is_file(), f"{page} asks for {address}"
            if element.name == "link":
                assert address.endswith(f"pages.css?v={sha256(file.read_bytes()).hexdigest()[:8]}"), f"{page}: {address} is old"
    # Sphinx gives a script of an extension a version or not, as it writes all pages or some.
    pages = {page: re.sub(rb"<script.*?</script>", b"", text, flags=re.DOTALL) for page, text in pages.items()}
    return pages | {"pages.css": (html / "_static/pages.css").read_bytes()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of three pages, which is built within seconds."""
    root = tmp_path_factory.mktemp("small")
    for name in ["_config.yml", "book/references.bib", "book/index.md", "book/01_order.ipynb", "book/02_naive.ipynb"]:
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    for name in ["book/_static", "book/_templates", "book/pictures", "tools/sphinx"]:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name)
    toc = "{format: jb-book, root: book/index, chapters: [{file: book/01_order}, {file: book/02_naive}]}"
    (root / "_toc.yml").write_text(toc, encoding="utf-8")
    return root


def test_builds_that_go_on_give_the_same_pages(small: Path) -> None:
    """Sphinx writes again only what changed."""
    first = built(small)
    if WEEKLY:
        assert built(small) == first, "a second build without any change changes pages"

    chapter = small / "book/01_order.ipynb"
    before = chapter.read_text(encoding="utf-8")
    notebook = json.loads(before)
    notebook["cells"][0]["source"] += ["\n\n", '<p class="bg-danger">A class that no page had.</p>\n']
    chapter.write_text(json.dumps(notebook), encoding="utf-8")
    changed = built(small)
    assert b".bg-danger" not in first["pages.css"]
    assert b".bg-danger" in changed["pages.css"], "a changed page did not get the rules of a class that is new in it"

    chapter.write_text(before, encoding="utf-8")
    again = built(small)
    assert again == first, f"{[page for page in first if again.get(page) != first[page]]} differ from a build from nothing"


def alike(one: str, other: str) -> bool:
    """The same but for a tenth of a pixel: a long page's lengths are sums, which a browser rounds anew."""
    number = re.compile(r"\d+(?:\.\d+)?(?=px)")
    lengths = zip(number.findall(one), number.findall(other), strict=False)
    return one == other or (
        number.sub("", one) == number.sub("", other) and all(abs(float(a) - float(b)) < 0.15 for a, b in lengths)
    )


def test_every_element_keeps_its_styles(small: Path, browser: Browser) -> None:
    """Beside pages of a build without the extension: in the dark on a phone, on paper, on a desktop."""
    slim, plain = small / "_build/html", small / "plain"
    built(small)
    slim = slim.rename(small / "slim")
    config = (small / "_config.yml").read_text(encoding="utf-8")
    (small / "_config.yml").write_text(config.replace(", slim]", "]"), encoding="utf-8")
    build(small)
    (small / "_build/html").rename(plain)
    assert not (plain / "_static/pages.css").exists()
    for page in ["book/01_order.html", "book/index.html", "search.html?q=token"][: 3 if WEEKLY else 1]:
        seen: list[list[list[str]]] = []
        for folder in [plain, slim]:
            with opened(browser, f"{folder.as_uri()}/{page}") as tab:
                tab.add_style_tag(content="*, ::before, ::after { transition: none !important; animation: none !important; }")
                if "search" in page:
                    tab.wait_for_function("/finished/.test(document.querySelector('#search-results').innerText)")
                tab.evaluate("document.querySelectorAll('details').forEach(answer => answer.open = true)")
                for at, (scheme, media, width) in enumerate(LOOKS):
                    tab.emulate_media(color_scheme=scheme, media=media)
                    tab.set_viewport_size({"width": width, "height": 900})
                    tab.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
                    tab.evaluate("document.fonts.ready")
                    seen.append([[str(at)], *tab.evaluate(STYLES)])
        half = len(LOOKS)
        for expected, got in zip(seen[:half], seen[half:], strict=True):
            assert any("display: block" in style for _, style, *_ in expected[1:]), (
                "the browser returned no styles: correct this test"
            )
            for one, other in zip(expected, got, strict=True):
                pairs = zip_longest("\n".join(one).split("\n"), "\n".join(other).split("\n"), fillvalue="")
                changes = [pair for pair in pairs if not alike(*pair)]
                assert not changes, f"{page}, {LOOKS[int(expected[0][0])]}: tools/sphinx/slim.py changes {one[0]}: {changes}"
