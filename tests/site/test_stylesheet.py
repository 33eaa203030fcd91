"""What makes the pages light takes nothing away: no rule and no sign that a page needs."""

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from playwright.sync_api import Browser, Page

from tests.commands import WEEKLY
from tests.site.built import CHAPTERS, PAGES, WIDTHS, Scheme, Site, copy_a_part, forget, jupyter_book

pytestmark = pytest.mark.slow
# Pages of a kind have the same icons and scripts.
KINDS = [CHAPTERS[0], "search.html", "book/reference/claims.html", "book/reference/api.html"]
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
# The styles that the browser computes for each element, but for where files lie, and for lengths, which it rounds anew. Of
# elements with the same names and classes on them and on all around them, the first two: thousands are parts of code.
STYLES = """() => {
    const keys = [...getComputedStyle(document.body)].filter(key => !/^--|size$|origin$|width$|height$|position/.test(key));
    const paths = new Map(), seen = {};
    return [...document.querySelectorAll('body, body *')].filter(element => {
        const path = `${paths.get(element.parentElement) ?? ''} ${element.localName}.${element.getAttribute('class')}`;
        paths.set(element, path);
        return (seen[path] = (seen[path] ?? 0) + 1) <= 2;
    }).map(element => [null, '::before', '::after'].map(part => {
        const style = getComputedStyle(element, part);
        return keys.map(key => `${key}: ${style.getPropertyValue(key)}`).join('\\n');
    }).join('\\n').replaceAll(/url\\([^)]*[/]/g, '').replaceAll(/\\d+\\.?\\d*px/g, ''));
}"""
# What ::before and ::after of all elements ask the icon fonts for.
ICONS = """() => [...document.querySelectorAll('body *')].flatMap(e => ['::before', '::after'].map(part => {
    const {content: shown, fontFamily, fontWeight} = getComputedStyle(e, part);
    const [content] = shown.split(' / '); // behind it stands what is read aloud
    return fontFamily.includes('Font Awesome') && /^"[^"]+"$/.test(content) ? [fontFamily, fontWeight, content] : null;
})).filter(Boolean)"""


def sheet(html: Path) -> str:
    return (html / "_static/pages.css").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    with browser.new_page(offline=True) as tab:
        tab.add_init_script(f"({WATCH})()")
        yield tab


@pytest.mark.parametrize("page", [*PAGES, "search.html"])
def test_page_loads_one_style_sheet_as_it_is_now(site: Site, page: str) -> None:
    sheets = [str(link["href"]) for link in site.soup(page).select("link[rel=stylesheet]")]
    now = sha256((site.html / "_static/pages.css").read_bytes()).hexdigest()[:8]
    assert [name.rpartition("/")[2] for name in sheets] == [f"pages.css?v={now}"], f"{page} loads {sheets}: see stylesheet.py"


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_no_class_that_scripts_add_has_lost_its_rules(tab: Page, site: Site, width: int) -> None:
    """Of what scripts answer to, on a page that shows all of it."""
    page = CHAPTERS[0]
    whole = "".join(file.read_text("utf-8") for file in (site.html / "_static").rglob("*.css") if file.name != "pages.css")
    dropped = {*re.findall(NAME, whole)} - {*re.findall(NAME, sheet(site.html))}
    forget(tab)
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(site.address(page) + "?highlight=rotation")
    tab.evaluate("document.querySelectorAll('article details').forEach(answer => answer.open = true)")
    for element in tab.locator("[data-bs-toggle=tooltip]:visible").all()[:4]:
        element.hover(force=True)
        tab.wait_for_timeout(800)  # the theme waits half a second
    toggles = ["[data-bs-toggle=dropdown]", "button.copybtn", "a.headerlink", ".theme-switch-button"]
    for kind in [*toggles, ".primary-toggle", ".secondary-toggle"]:
        for element in tab.locator(f"{kind}:visible").all()[:1]:
            element.click(force=True)
            tab.wait_for_timeout(400)
            if kind not in toggles:
                tab.keyboard.press("Escape")
    worn = {*tab.evaluate("[...worn]")}
    assert {"tooltip-inner", "bs-tooltip-auto"} <= worn or width < WIDTHS["desktop"], f"{page} showed no tooltip"
    lost = worn & dropped - {*re.findall(r"[\w-]+", (site.html / page).read_text(encoding="utf-8"))}
    assert not lost, f"{page}: scripts add {lost}: see tools/sphinx/stylesheet.py"


def test_each_icon_is_in_its_font(tab: Page, site: Site) -> None:
    cut = {font.stem: TTFont(font).getBestCmap() for font in (site.html / "_static").glob("cut-fa-*.woff2")}
    seen = set()
    for page in [*PAGES, "search.html"] if WEEKLY else KINDS:
        tab.goto(site.address(page))
        for family, weight, content in tab.evaluate(ICONS):
            font = "brands-400" if "Brands" in family else f"solid-{weight}" if weight == "900" else f"regular-{weight}"
            seen.add(content)
            missing = [hex(ord(sign)) for sign in json.loads(content) if ord(sign) not in cut[f"cut-fa-{font}"]]
            assert not missing, f"{page} asks for {missing} of Font Awesome's {font}, cut away in tools/sphinx/stylesheet.py"
    assert len(seen) >= 12, f"only the icons {seen} were seen: correct this test"


# An extension that keeps the pages of the first build as they are before the style sheets are merged.
BEFORE = """from shutil import copytree

def setup(app):
    plain = app.srcdir / "plain"
    app.connect("build-finished", lambda *_: plain.exists() or copytree(app.outdir, plain), priority=899)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = copy_a_part(tmp_path_factory.mktemp("small"))
    config = (root / "_config.yml").read_text(encoding="utf-8")
    (root / "_config.yml").write_text(config.replace(", stylesheet]", ", before, stylesheet]"), encoding="utf-8")
    (root / "tools/sphinx/before.py").write_text(BEFORE, encoding="utf-8")
    assert jupyter_book(root).returncode == 0
    return root


@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), ("light", 1280)])
def test_every_element_keeps_its_styles(small: Path, tab: Page, scheme: Scheme, width: int) -> None:
    seen = []
    for folder in (small / "plain", small / "_build/html"):
        forget(tab)
        tab.emulate_media(color_scheme=scheme, media="screen" if scheme == "dark" else "print")
        tab.set_viewport_size({"width": width, "height": 900})
        tab.goto((folder / "book/01_order.html").as_uri())
        tab.add_style_tag(content="*, ::before, ::after { transition: none !important; animation: none !important; }")
        tab.evaluate("document.querySelectorAll('details').forEach(answer => answer.open = true)")
        tab.wait_for_function(f"document.documentElement.dataset.theme === '{scheme}'")
        tab.evaluate("document.fonts.ready")
        seen.append([line.split("\n") for line in tab.evaluate(STYLES)])
    assert any("display: block" in style for style in seen[0])
    for one, other in zip(*seen, strict=True):
        changes = [pair for pair in zip(one, other, strict=True) if len({*pair}) > 1]
        assert not changes, f"tools/sphinx/stylesheet.py changes an element's styles: {changes}"
