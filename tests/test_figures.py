"""A figure on the site is its notebook's figure, on light and dark backgrounds."""

import json
import re
from runpy import run_path
from types import SimpleNamespace

import pytest

from posenc_course.plotting import COLORS, GREY, position_colors
from tests.commands import ROOT
from tests.test_site import NOTEBOOKS, SOURCES, Site, site

__all__ = ["site"]


figures, pictures = (SimpleNamespace(**run_path(str(ROOT / f"tools/{name}.py"))) for name in ("sphinx/figures", "pictures"))
INK, GROUND = figures.dark_tokens(ROOT / "book/_static/course.css")


def luminance(color: str) -> float:
    """Relative luminance by WCAG 2.2."""
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_black_becomes_ink_and_white_ground() -> None:
    assert figures.dark_color("#000000", INK, GROUND) == INK
    assert figures.dark_color("#ffffff", INK, GROUND) == GROUND


@pytest.mark.parametrize("color", [*COLORS.values(), GREY])
def test_colours_are_seen_in_the_dark(color: str) -> None:
    """Words beside a line have its colour: 4.5 is WCAG's contrast for text."""
    assert contrast(figures.dark_color(color.lower(), INK, GROUND), GROUND) >= 4.5


def test_positions_keep_their_order_in_the_dark() -> None:
    shades = ["#" + "".join(f"{round(255 * part):02x}" for part in color[:3]) for color in position_colors(12)]
    dark = [luminance(figures.dark_color(color, INK, GROUND)) for color in shades]
    assert dark == sorted(dark)


@pytest.mark.slow
def test_pictures_of_the_first_page_are_what_the_package_draws() -> None:
    for name, drawn in pictures.draw().items():
        file = ROOT / "book/pictures" / name
        stored = file.read_text(encoding="utf-8") if file.exists() else ""
        numbers, words = re.compile(r"-?\d+\.\d+"), re.compile(r"base64,[^\"]*|[mp][0-9a-f]{10}\b|-?\d+\.\d+")
        assert words.sub("", stored) == words.sub("", drawn), f"{file} is not what tools/pictures.py draws: run it"
        pairs = zip(numbers.findall(stored), numbers.findall(drawn), strict=True)
        assert all(abs(float(a) - float(b)) < 0.1 for a, b in pairs), f"{file} is not what tools/pictures.py draws: run it"


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_page_shows_its_notebook_s_figures_twice(site: Site, page: str) -> None:
    notebook = json.loads((ROOT / SOURCES[page.removesuffix(".html")]).read_text(encoding="utf-8"))
    outputs = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", [])]
    stored = ["".join(data["image/svg+xml"]) for data in outputs if "image/svg+xml" in data]
    # By their addresses, since to parse whole pages takes longest.
    shown = re.findall(r'<img alt="[^"][^>]* src="([^"]*/_images/[^"]*)"', (site.html / page).read_text(encoding="utf-8"))
    texts = [(site.html / site.target(page, source)[0]).read_text(encoding="utf-8") for source in shown]
    assert [shapes(text) for text in texts] == [shapes(svg) for svg in stored for _ in range(2)]
    for source, light, dark in zip(shown[::2], texts[::2], texts[1::2], strict=True):
        assert "#ffffff" not in re.findall(r'id="patch_\d+"><path [^>]*fill: (#\w+)', light), (
            f"{page}: {source} has a white background"
        )
        assert set(figures.COLOR.findall(light)) - {"#ffffff"} != set(figures.COLOR.findall(dark))


def shapes(svg: str) -> str:
    """All of a figure but its colours."""
    return figures.COLOR.sub("", re.sub(r'fill: (?:none|#\w{6})|<svg fill="#\w{6}"', "", svg).replace("<svg", "")).replace(
        "\n", ""
    )
