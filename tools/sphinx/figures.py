"""A Sphinx extension that adapts the book's figures to light and dark pages.

A notebook stores a figure as SVG, on white. On the site, it has no background of its own, and a second version in the colours
of the dark page: colours of lines and text can be replaced in the SVG file, while heatmaps are images in it and stay unchanged.
The style sheet has the dark versions of the palette's colours.
Beside a chapter's title, a compass shows through which doors the chapter goes; the first chapter has the map.
"""

import re
from functools import cache
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from sphinx.application import Sphinx

from posenc_course._drawn import NOTHING_SAID, small_svg
from posenc_course.plotting import COLORS, GREY, label_color, plot_doors

COLOR = re.compile(r"#[0-9a-f]{6}\b")
# The background: the first shape of a figure and of each of its axes. The image of a heatmap keeps its frame.
GROUND = re.compile(r'(<g id="patch_\d+"><path d="[^"]*" style="fill: )#ffffff(?=")')
FIGURE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+\.svg)")[^>]*?\s?/>')
# A figure outside chapters would have one number, which looks like a chapter's; those in chapters have two.
ONE_NUMBER = re.compile(r'<span class="caption-number">Fig\. \d+ </span>')


# The doors through which chapters go, by the chapters' numbers.
THROUGH = {
    "embedding": {2, 3, 4, 5, 6, 7, 8, 12, 17},
    "query and key": {10, 12, 13, 14, 15, 17, 18},
    "score": {9, 11, 12, 15, 17},
}


def doors_of(page: str) -> tuple[str, ...]:
    """The doors through which a chapter goes, if the page is one."""
    found = re.fullmatch(r"book/(\d\d)_\w+", page)
    return tuple(door for door, chapters in THROUGH.items() if found and int(found[1]) in chapters)


@cache
def compass(doors: tuple[str, ...]) -> str:
    """The first chapter's map with these doors open, as SVG that takes its colours from the page, and the doors' names."""
    fig = Figure(figsize=(2.2, 0.8))
    plot_doors(fig.add_axes((0, 0, 1, 1)), doors)
    text = StringIO()
    fig.savefig(text, format="svg", metadata=NOTHING_SAID, transparent=True)
    svg = re.sub(r"<metadata>.*?</metadata>|<defs>.*?</defs>|<style.*?</style>", "", small_svg(text.getvalue()))
    svg = re.sub(r' (?:id|clip-path|width|height|version|xmlns:xlink)="[^"]*"', "", svg)
    page = {GREY: "var(--muted)", "#ffffff": "var(--ground)"}
    page |= {color.lower(): f"var(--fig-{name})" for name, color in COLORS.items()}
    svg = COLOR.sub(lambda found: page[found[0]], svg).replace("<svg", '<svg aria-hidden="true"', 1)
    names = "All three doors" if len(doors) == len(THROUGH) else f"Door{'s' * (len(doors) > 1)}: {', '.join(doors)}"
    return f"{svg}<span>{names}</span>"


def dark_color(color: str, dark: dict[str, str]) -> str:
    """A colour for the dark page: greys are mixed from ink and ground, other colours get lighter, dark ones most."""
    if color in dark:
        return dark[color]
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    light = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    if max(red, green, blue) - min(red, green, blue) <= 8:
        return mixed(dark["ink"], dark["ground"], light)
    return mixed(color, "#ffffff", 0.4 * (1 - light) ** 2)


def mixed(one: str, other: str, share: float) -> str:
    """The colour between two, `share` of the way to the other."""
    pairs = [(int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)


def darkened(svg: str, dark: dict[str, str]) -> str:
    """The figure for the dark page. Elements without a colour would be black in SVG, so they get the ink."""
    svg = COLOR.sub(lambda found: dark_color(found[0], dark), svg)
    return svg.replace("<svg ", f'<svg fill="{dark["ink"]}" ', 1)


def tokens(sheet: Path, theme: str) -> dict[str, str]:
    """The colours of light or dark pages by their names in course.css."""
    block = re.search(rf'html\[data-theme="{theme}"\] \{{(.*?)\n\}}', sheet.read_text(encoding="utf-8"), re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block[1] if block else ""))


def dark_palette(sheet: Path) -> dict[str, str]:
    """The dark page's ink and ground, and the dark version of each colour in which a figure has lines, or words beside them."""
    light, dark = tokens(sheet, "light"), tokens(sheet, "dark")
    lines = {light[name]: color for name, color in dark.items() if name.startswith("fig-")}
    return lines | {label_color(color): lines[color] for color in lines} | {name: dark[name] for name in ("ink", "ground")}


def twins(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Puts each figure into its page twice, with its size; CSS shows one of the two. All but the first are loaded lazily."""
    seen: list[str] = []
    sources = {name: file for file, (_, name) in app.env.images.items()}

    def pair(found: re.Match[str]) -> str:
        svg = Path(app.srcdir, sources[unescape(found[1])]).read_text(encoding="utf-8")
        width, height = (round(float(size) * 4 / 3) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', svg)[:2])
        sized = found[0].removesuffix("/>").rstrip() + f' width="{width}" height="{height}"'
        seen.append(found[1])
        first = "" if len(seen) == 1 else ' loading="lazy"'
        dark = sized.replace(found[1], found[1].replace(".svg", "-dark.svg"))
        return f'{sized} class="in-light"{first} />{dark} class="in-dark" loading="lazy" />'

    body = context.get("body", "")
    if doors := doors_of(page):
        beside = f'<a class="compass" href="{context["pathto"]("book/01_order")}#fig-doors">{compass(doors)}</a>'
        body = body.replace("<h1>", f"{beside}\n<h1>", 1)
    context["body"] = FIGURE.sub(pair, ONE_NUMBER.sub("", body))


def write_twins(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    dark = dark_palette(Path(app.srcdir, "book/_static/course.css"))
    for figure in [*Path(app.outdir, app.builder.imagedir).glob("*.svg")]:
        svg = figure.read_text(encoding="utf-8")
        bare = GROUND.sub(r"\1none", svg)
        figure.write_text(bare, encoding="utf-8")
        figure.with_stem(f"{figure.stem}-dark").write_text(darkened(bare, dark), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", twins)
    app.connect("build-finished", write_twins)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
