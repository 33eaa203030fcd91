"""What readers take along: figures on pages of their own, which other sites embed, pictures of what they show, and films."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from tests.commands import WEEKLY
from tests.figures.living import open_in, placed
from tests.site.built import Site, barriers, open_alone, parsed, served

FIGURES = placed(re.compile(r'<living-figure for="fig-([\w-]+)"'))  # with those that the story repeats, by their names
# Pages of figures differ in little but the figure. Daily, some are opened: on a canvas, with models, with their own data, and
# figures that the story and the page of eight figures repeat.
AXED = ["loses-place", "heatmap", "small", "story-suspects"]
OPENED = FIGURES if WEEKLY else [*AXED, "break", "real", "inspector", "story-clocks", "eight-mask"]


@contextmanager
def menu_of(browser: Browser, page: str, name: str, **options: Any) -> Iterator[tuple[Page, Locator]]:
    """The page with the figure's menu open."""
    with browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce", **options) as tab:
        failed: list[str] = []
        tab.on("pageerror", lambda error: failed.append(str(error)))
        open_in(tab, page, f"fig-{name}")
        figure = tab.locator(f"#fig-{name} living-figure")
        figure.get_by_role("button", name="Menu of this figure").press("Enter")
        figure.get_by_role("button", name="Save as SVG").wait_for()
        yield tab, figure
        assert not failed


@pytest.mark.parametrize("name", FIGURES)
def test_figure_has_a_page_that_says_where_it_is_from(site: Site, name: str) -> None:
    page = f"embed/{name}.html"
    soup = site.soup(page)
    assert len(soup.select(f"#fig-{name} > img")) == 2
    assert not soup.select(".caption-number, .headerlink")
    for element in soup.select("[href], [src]"):
        link = str(element.get("href") or element.get("src"))
        if link.startswith("https:"):
            assert element.name == "a"
            continue
        file, fragment = site.target(page, link)
        assert (site.html / file).is_file(), f"{page}: {link} leads to no file"
        assert not fragment or parsed(site.html / file).find(id=fragment), f"{page}: {link} leads to no place"
    source = soup.select_one(".source")
    assert source
    assert site.target(page, str(source.select("a")[0]["href"])) == (FIGURES[name], f"fig-{name}")
    assert "Where Is a Token?" in source.get_text()
    assert "CC BY 4.0" in source.get_text()


@pytest.mark.parametrize("name", OPENED)
def test_page_of_a_figure_has_no_barriers(shared: tuple[Page, list[str]], site: Site, name: str) -> None:
    tab = open_alone(shared, site.address(f"embed/{name}.html"))
    found = [*barriers(tab, with_axe=name in AXED), *shared[1]]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("hosted", [True, False], ids=["from another origin", "from another folder"])
def test_a_bare_page_embeds_a_figure_as_it_was_set(browser: Browser, site: Site, tmp_path: Path, *, hosted: bool) -> None:
    """The code that the menu copies is all that the page has: it keeps the setting, and its frame is as high as the figure."""
    with served(site.html) as here, served(tmp_path) as elsewhere:
        root = here if hosted else site.html.as_uri()
        with menu_of(browser, f"{root}/book/10_rope.html?two-turned.m=9", "two-turned") as (tab, figure):
            figure.get_by_role("button", name="Copy the code").press("Enter")
            code = figure.get_by_label("The code that embeds").input_value()
        assert code.startswith(f'<iframe src="{root}/embed/two-turned.html?two-turned.m=9" title="')
        (tmp_path / "slides.html").write_text(
            f'<!DOCTYPE html>\n<link rel="icon" href="data:,">\n<title>Slides</title>\n{code}', encoding="utf-8"
        )
        problems: list[str] = []
        with browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as tab:
            tab.on("pageerror", lambda error: problems.append(str(error)))
            tab.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
            tab.on("requestfailed", lambda request: problems.append(request.url))
            tab.goto(f"{elsewhere if hosted else tmp_path.as_uri()}/slides.html")
            inside = tab.frame_locator("iframe")
            inside.locator("figure.lives").wait_for()
            assert inside.locator("living-figure").evaluate("figure => figure.state.m") == 9
            for width in (1280, 390):
                tab.set_viewport_size({"width": width, "height": 900})
                wait_until_as_high(tab.locator("iframe"), inside.locator("html"))
                assert inside.locator("html").evaluate("page => page.scrollWidth <= innerWidth")
            before = inside.locator(".finding").inner_text()
            inside.locator("input[type=range]").first.press("ArrowRight")
            inside.locator(".finding", has_not_text=before).wait_for()
            assert not problems


def wait_until_as_high(frame: Locator, content: Locator) -> None:
    """Neither of the two pages may look into the other."""
    for _ in range(100):
        high = content.evaluate("page => page.offsetHeight")
        if frame.evaluate("frame => frame.clientHeight") == high:
            return
        frame.page.wait_for_timeout(100)
    pytest.fail(f"the frame isn't {high} pixels high, as its content is")


def saved(tab: Page, figure: Locator, kind: str, folder: Path) -> Path:
    with tab.expect_download() as waiting:
        figure.get_by_role("button", name=f"Save as {kind.upper()}").press("Enter")
    waiting.value.save_as(path := folder / waiting.value.suggested_filename)
    assert path.suffix == f".{kind}"
    return path


def test_picture_has_all_that_it_needs(browser: Browser, site: Site, tmp_path: Path) -> None:
    """The same shapes in the same colours, the caption and the address; programs that know no style sheet can show it."""
    name, ground = "two-turned", "rgb(20, 23, 27)"
    with served(site.html) as host, menu_of(browser, f"{host}/{FIGURES[name]}", name, color_scheme="dark") as (tab, figure):
        text = saved(tab, figure, "svg", tmp_path).read_text(encoding="utf-8")
        png = saved(tab, figure, "png", tmp_path)
        shapes = "all => all.map(e => [e.localName, getComputedStyle(e).fill, getComputedStyle(e).strokeWidth])"
        shown = figure.locator(".stage svg :is(path, rect, text, polygon):not(.handle *)").evaluate_all(shapes)
        words = " ".join(figure.locator(".stage svg text").all_text_contents())
        caption = tab.locator(f"#fig-{name} .caption-text").inner_text()
        tab.set_content(f"<!DOCTYPE html><title>Alone</title>{text}")
        background, *drawn, below = tab.locator("svg :is(path, rect, text, polygon)").evaluate_all(shapes)
    assert not re.search(r"class=|style=|var\(|currentColor|color\(", text)
    assert not re.findall(r'(?:href|src)="', text)
    assert background[1] == ground != below[1]
    assert drawn == shown
    picture = ET.fromstring(text)
    written = "".join(picture.itertext())
    for told in [*words.split(), *caption.split(), f"{host}/{FIGURES[name]}#fig-{name}", "Where Is a Token?", "CC BY 4.0"]:
        assert told in written, f"{told!r} isn't in the picture"
    with Image.open(png) as pixels:
        assert pixels.size == (2 * int(picture.attrib["width"]), 2 * int(picture.attrib["height"]))
        assert f"rgb{pixels.convert('RGB').getpixel((0, 0))}" == ground
