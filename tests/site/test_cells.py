"""What a page shows of its notebook: figures on light and dark backgrounds, code below them, and tables of what is printed."""

import json
import re
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest

from posenc_course.plotting import COLORS, GREY, SCHEME_STYLES, label_color
from tests.commands import ROOT
from tests.site.built import NOTEBOOKS, SOURCES, Site

figures = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/figures.py")))
SHEET = ROOT / "book/_static/course.css"
DARK = figures.dark_palette(SHEET)
GROUNDS = {theme: figures.tokens(SHEET, theme)["ground"] for theme in ("light", "dark")}


def cells(page: str) -> list[dict[str, Any]]:
    text = (ROOT / SOURCES[page.removesuffix(".html")]).read_text(encoding="utf-8")
    return list(json.loads(text)["cells"])


def tagged(cell: dict[str, Any], tag: str) -> bool:
    return tag in cell["metadata"].get("tags", [])


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_code_of_a_figure_is_folded_below_it(site: Site, page: str) -> None:
    """Together with the folded cells that prepare the figure, directly before it."""
    below = above = 0
    prepares = False
    for cell in reversed(cells(page)):
        folded = tagged(cell, "hide-input")
        figure = folded and "image/svg+xml" in str(cell["outputs"])
        prepares = folded and (figure or (prepares and not cell["outputs"]))
        below += figure
        above += folded and not prepares
    html = (site.html / page).read_text(encoding="utf-8")
    assert len(re.findall(r'</figure>\s*(?:</div>\s*)+<details class="[^"]*below-figure"', html)) == below
    assert re.findall(r"<summary>\s*<p [^>]*>(Code\b[^<]*)", html).count("Code of this figure") == below
    assert re.findall(r"<summary>\s*<p [^>]*>(Code\b[^<]*)", html).count("Code") == above


@pytest.mark.parametrize("page", [page for page in NOTEBOOKS if any(tagged(cell, "as-table") for cell in cells(page))])
def test_tagged_cells_show_what_they_print(site: Site, page: str) -> None:
    printed = ["".join(cell["outputs"][0]["text"]) for cell in cells(page) if tagged(cell, "as-table")]
    shown = site.article(page).select(".tag_as-table .cell_output")
    assert len(shown) == len(printed)
    for output, text in zip(shown, printed, strict=True):
        assert output.select("table.printed td"), f"{page}: no table in what {text!r} became"
        assert re.findall(r"\d+", output.get_text(" ")) == re.findall(r"\d+", text)


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_page_shows_its_notebook_s_figures_twice(site: Site, page: str) -> None:
    outputs = [output.get("data", {}) for cell in cells(page) for output in cell.get("outputs", [])]
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
        shown_dark = {figures.dark_color(color, DARK) for color in figures.COLOR.findall(light)}
        assert {*figures.COLOR.findall(dark)} == shown_dark | {DARK["ink"]}, f"{page}: {source} has other colours in the dark"


def shapes(svg: str) -> str:
    """All of a figure but its colours."""
    return figures.COLOR.sub("", re.sub(r'fill: (?:none|#\w{6})|<svg fill="#\w{6}"', "", svg).replace("<svg", "")).replace(
        "\n", ""
    )
