"""What makes the pages light takes nothing away: no rule and no sign that a page needs, and no page of a later build."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
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
# Of elements with the same names and classes on them and on all around them, the first three: thousands are parts of code.
STYLES = """() => {
    const keys = [...getComputedStyle(document.body)].filter(key => !/^--|^(perspective|transform)-origin/.test(key));
    const paths = new Map(), seen = {};
    const path = element => paths.get(element) ?? '';
    return [...document.querySelectorAll('body, body *')].filter(element => {
        paths.set(element, `${path(element.parentElement)} ${element.localName}.${element.getAttribute('class')}`);
        seen[path(element)] = (seen[path(element)] ?? 0) + 1;
        return seen[path(element)] <= 3;
    }).map(element => [
        `${element.localName}.${element.className}`,
        ...[null, '::before', '::after'].map(part => {
            const style = getComputedStyle(element, part);
            const there = !part || style.content !== 'none';
            return there ? keys.map(key => `${key}: ${style.getPropertyValue(key)}`).join('\\n') : '';
        }),
    ].map(text => text.replaceAll(/url\\([^)]*[/]/g, '').replaceAll('0% 0%', '0px 0px')));
}"""
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


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """For all pages, because a new one takes longer than to open a page."""
    with browser.new_page(offline=True) as tab:
        tab.add_init_script(f"({WATCH})()")
        yield tab


def open_in(tab: Page, address: str, width: int = WIDTHS["desktop"]) -> None:
    """Open the page, as if no other had been open in the tab."""
    if tab.url != "about:blank":
        tab.evaluate("localStorage.clear()")
    tab.mouse.move(0, 0)
    tab.emulate_media(media="screen", color_scheme="light")
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(address)


@pytest.mark.parametrize("page", ALL)
def test_page_loads_one_style_sheet_as_it_is_now(site: Site, page: str) -> None:
    links = "".join(re.findall(r"<link\b[^>]*>", (site.html / page).read_text(encoding="utf-8")))
    sheets = [str(link["href"]) for link in BeautifulSoup(links, "html.parser").select("link[rel=stylesheet]")]
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
def test_no_class_that_scripts_add_has_lost_its_rules(tab: Page, site: Site, page: str, width: int) -> None:
    dropped = set(re.findall(NAME, as_it_was(site))) - set(re.findall(NAME, merged(site)))
    written = set(re.findall(r"[\w-]+", (site.html / page).read_text(encoding="utf-8")))
    query = "?q=rotation" if page == "search.html" else "?highlight=rotation"
    open_in(tab, site.address(page) + query, width)
    try_everything(tab, page)
    worn = set(tab.evaluate("[...worn]"))
    assert {"tooltip-inner", "bs-tooltip-auto"} <= worn or width < WIDTHS["desktop"], (
        f"{page} showed no tooltip: correct this test"
    )
    assert not (lost := worn & dropped - written), f"{page}: scripts add {lost}: name them in ADDED in tools/sphinx/slim.py"


def test_each_icon_is_in_its_font(tab: Page, site: Site) -> None:
    fonts = {
        font.stem.removeprefix("cut-fa-"): TTFont(font).getBestCmap() for font in (site.html / "_static").glob("cut-fa-*.woff2")
    }
    seen = Counter[str]()
    for page in ALL if WEEKLY else KINDS:
        open_in(tab, site.address(page))
        for family, weight, content in tab.evaluate(ICONS):
            font = "brands-400" if "Brands" in family else f"solid-{weight}" if weight == "900" else f"regular-{weight}"
            seen[content] += 1
            missing = [hex(ord(sign)) for sign in json.loads(content) if ord(sign) not in fonts[font]]
            assert not missing, f"{page} asks for {missing} of Font Awesome's {font}, cut away in tools/sphinx/slim.py"
    assert len(seen) >= 12, f"only the icons {seen} were seen: correct this test"


@pytest.mark.parametrize("page", PAGES if WEEKLY else ["book/reference/notation.html"])
def test_formulas_are_drawn_as_with_the_whole_font(tab: Page, site: Site, page: str) -> None:
    """Browsers add characters that aren't in the source: roots, italics. In another font, the formula's size would change."""
    sizes = "[...document.querySelectorAll('math')].map(e => [e.textContent, e.getBoundingClientRect().width].join())"
    whole = f"new FontFace('Whole', 'url({site.address('_static/math.woff2')})').load().then(font => document.fonts.add(font))"
    open_in(tab, site.address(page))
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


def served(root: Path) -> dict[str, bytes]:
    """What a browser may ask of the last build for."""
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


# An extension that keeps the pages of the first build as they are before `slim` runs.
BEFORE = """from shutil import copytree

def setup(app):
    plain = app.srcdir / "plain"
    app.connect("build-finished", lambda *_: plain.exists() or copytree(app.outdir, plain), priority=899)
    return {}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course of three pages, built within seconds: its figures don't live, since what they load takes half of that time."""
    root = tmp_path_factory.mktemp("small")
    for name in ["book/references.bib", "book/index.md", "book/01_order.ipynb", "book/02_naive.ipynb"]:
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, root / name)
    for name in ["book/_static", "book/_templates", "book/pictures", "tools/sphinx"]:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name)
    toc = "{format: jb-book, root: book/index, chapters: [{file: book/01_order}, {file: book/02_naive}]}"
    (root / "_toc.yml").write_text(toc, encoding="utf-8")
    config = (ROOT / "_config.yml").read_text(encoding="utf-8")
    (root / "_config.yml").write_text(config.replace(", slim]", ", before, slim]"), encoding="utf-8")
    (root / "tools/sphinx/before.py").write_text(BEFORE, encoding="utf-8")
    (root / "tools/sphinx/living_data.py").write_text("scripts = looks = dict", encoding="utf-8")
    build(root)
    return root


def alike(one: str, other: str) -> bool:
    """The same but for a tenth of a pixel: a long page's lengths are sums, which a browser rounds anew."""
    number = re.compile(r"\d+(?:\.\d+)?(?=px)")
    lengths = zip(number.findall(one), number.findall(other), strict=False)
    return one == other or (
        number.sub("", one) == number.sub("", other) and all(abs(float(a) - float(b)) < 0.15 for a, b in lengths)
    )


def test_every_element_keeps_its_styles(small: Path, tab: Page) -> None:
    """Beside the pages as they were without the extension: in the dark on a phone, on paper, on a desktop."""
    slim, plain = small / "_build/html", small / "plain"
    assert (slim / "_static/pages.css").exists()
    assert not (plain / "_static/pages.css").exists()
    for page in ["book/01_order.html", "book/index.html", "search.html?q=token"][: 3 if WEEKLY else 1]:
        seen: list[list[list[str]]] = []
        for folder in [plain, slim]:
            open_in(tab, f"{folder.as_uri()}/{page}")
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
                if one == other:
                    continue
                pairs = zip_longest("\n".join(one).split("\n"), "\n".join(other).split("\n"), fillvalue="")
                changes = [pair for pair in pairs if not alike(*pair)]
                assert not changes, f"{page}, {LOOKS[int(expected[0][0])]}: tools/sphinx/slim.py changes {one[0]}: {changes}"


NEW = '<p class="bg-danger">A class that no page had.</p>\n'


def but_for_the_new(pages: dict[str, bytes]) -> dict[str, bytes]:
    """The pages without the paragraph, the lines that end around it, and the version of the sheet, which has its rules."""
    texts = {page: re.sub(rb"pages\.css\?v=\w+", b"", text).replace(NEW.encode(), b"") for page, text in pages.items()}
    return {page: re.sub(rb"\n+", b"\n", text) for page, text in texts.items() if page != "pages.css"}


def test_builds_that_go_on_give_the_same_pages(small: Path) -> None:
    """Sphinx writes again only what changed."""
    first = served(small)
    if WEEKLY:
        build(small)
        assert served(small) == first, "a second build without any change changes pages"

    chapter = small / "book/01_order.ipynb"
    before = chapter.read_text(encoding="utf-8")
    notebook = json.loads(before)
    notebook["cells"][0]["source"] += ["\n\n", NEW]
    chapter.write_text(json.dumps(notebook), encoding="utf-8")
    build(small)
    changed = served(small)
    assert b".bg-danger" not in first["pages.css"]
    assert b".bg-danger" in changed["pages.css"], "a changed page did not get the rules of a class that is new in it"
    kept, now = ({*re.findall(NAME, pages["pages.css"].decode())} for pages in (first, changed))
    assert kept <= now, f"the rules of {kept - now} are lost"
    old, new = but_for_the_new(first), but_for_the_new(changed)
    assert old == new, f"{[page for page in old if new.get(page) != old[page]]} differ in more than what changed"

    if WEEKLY:
        chapter.write_text(before, encoding="utf-8")
        build(small)
        again = served(small)
        assert again == first, f"{[page for page in first if again.get(page) != first[page]]} differ from a build from nothing"
