"""A figure on the site is its notebook's figure, on light and dark backgrounds."""

import json
import re
from runpy import run_path
from types import SimpleNamespace

import pytest

from posenc_course.plotting import COLORS, DOORS, GREY, SCHEME_STYLES, label_color, position_colors
from tests.commands import ROOT
from tests.site.built import CHAPTERS, NOTEBOOKS, SOURCES, Site

figures = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/figures.py")))
SHEET = ROOT / "book/_static/course.css"
DARK = figures.dark_palette(SHEET)
GROUNDS = {theme: figures.tokens(SHEET, theme)["ground"] for theme in ("light", "dark")}


def luminance(color: str) -> float:
    """Relative luminance by WCAG 2.2."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("color", [*COLORS.values(), GREY])
def test_colours_are_seen_in_the_dark(color: str) -> None:
    """Words beside a line have its colour: 4.5 is WCAG's contrast for text."""
    for one in (color.lower(), label_color(color)):
        assert contrast(figures.dark_color(one, DARK), GROUNDS["dark"]) >= 4.5


@pytest.mark.parametrize("scheme", [*SCHEME_STYLES])
def test_schemes_are_seen_on_light_pages(scheme: str) -> None:
    """Their lines, at WCAG's contrast for graphics, and the words beside them."""
    color = SCHEME_STYLES[scheme].color
    assert contrast(color, GROUNDS["light"]) >= 3
    assert contrast(label_color(color), GROUNDS["light"]) >= 4.5


def test_positions_keep_their_order_in_the_dark() -> None:
    shades = ["#" + "".join(f"{round(255 * part):02x}" for part in color[:3]) for color in position_colors(12)]
    dark = [luminance(figures.dark_color(color, DARK)) for color in shades]
    assert dark == sorted(dark)


@pytest.mark.parametrize("page", CHAPTERS)
def test_compass_shows_the_doors_of_the_chapter(site: Site, page: str) -> None:
    doors = figures.doors_of(page.removesuffix(".html"))
    shown = site.article(page).select(".picture > .compass")
    assert len(shown) == bool(doors)
    for compass in shown:
        assert site.target(page, str(compass["href"])) == (CHAPTERS[0], "fig-doors")
        hues = {*re.findall(r"fill: var\(--fig-(\w+)\)", str(compass.svg))}
        assert hues == {next(iter(DOORS[door])) for door in doors}
        said = compass.get_text().strip()
        assert said == "All three doors" if len(doors) == len(DOORS) else all(door in said for door in doors)


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_page_shows_its_notebook_s_figures_twice(site: Site, page: str) -> None:
    notebook = json.loads((ROOT / SOURCES[page.removesuffix(".html")]).read_text(encoding="utf-8"))
    outputs = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", [])]
    stored = ["".join(data["image/svg+xml"]) for data in outputs if "image/svg+xml" in data]
    built = (site.html / page).read_text(encoding="utf-8")
    assert not re.search(r"Fig\. \d+ <", built), "a figure outside chapters has a number, which looks like a chapter's"
    # By their addresses, since to parse whole pages takes longest.
    shown = re.findall(r'<img alt="[^"][^>]* src="([^"]*/_images/[^"]*)"', built)
    texts = [(site.html / site.target(page, source)[0]).read_text(encoding="utf-8") for source in shown]
    assert [shapes(text) for text in texts] == [shapes(svg) for svg in stored for _ in range(2)]
    for source, light, dark in zip(shown[::2], texts[::2], texts[1::2], strict=True):
        assert "#ffffff" not in re.findall(r'id="patch_\d+"><path [^>]*fill: (#\w+)"', light), (
            f"{page}: {source} has a white background"
        )
        assert set(figures.COLOR.findall(light)) - {"#ffffff"} != set(figures.COLOR.findall(dark))


def shapes(svg: str) -> str:
    """All of a figure but its colours."""
    return figures.COLOR.sub("", re.sub(r'fill: (?:none|#\w{6})|<svg fill="#\w{6}"', "", svg).replace("<svg", "")).replace(
        "\n", ""
    )
