"""A Sphinx extension that adapts the book's figures to light and dark pages.

A notebook stores a figure as SVG, on white. On the site, it has no background of its own, and a second version in the colours
of the dark page: colours of lines and text can be replaced in the SVG file, while heatmaps are images in it and stay unchanged.
A chapter's picture, which the first page describes, also stands beside its title.
"""

import re
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any

from sphinx.application import Sphinx

COLOR = re.compile(r"#[0-9a-f]{6}\b")
# The background: the first shape of a figure and of each of its axes. The image of a heatmap keeps its frame.
GROUND = re.compile(r'(<g id="patch_\d+"><path d="[^"]*" style="fill: )#ffffff(?=")')
FIGURE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+\.svg)")[^>]*?\s?/>')


def dark_color(color: str, ink: str, ground: str) -> str:
    """A colour for the dark page: greys are mixed from ink and ground, other colours get lighter, dark ones most."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    light = (0.299 * red + 0.587 * green + 0.114 * blue) / 255
    if max(red, green, blue) - min(red, green, blue) <= 8:
        return mixed(ink, ground, light)
    return mixed(color, "#ffffff", 0.4 * (1 - light) ** 2)


def mixed(one: str, other: str, share: float) -> str:
    """The colour between two, `share` of the way to the other."""
    pairs = [(int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)


def darkened(svg: str, ink: str, ground: str) -> str:
    """The figure for the dark page. Elements without a colour would be black in SVG, so they get the ink."""
    svg = COLOR.sub(lambda found: dark_color(found[0], ink, ground), svg)
    return svg.replace("<svg ", f'<svg fill="{ink}" ', 1)


def dark_tokens(sheet: Path) -> tuple[str, str]:
    """The ink and ground colours of the dark page, from course.css."""
    dark = re.search(r'html\[data-theme="dark"\] \{(.*?)\n\}', sheet.read_text(encoding="utf-8"), re.DOTALL)
    colors = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", dark[1] if dark else ""))
    return colors["ink"], colors["ground"]


def twins(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Puts each figure into its page twice, with its size; CSS shows one of the two. All but the first are loaded lazily."""
    seen: list[str] = []

    def pair(found: re.Match[str]) -> str:
        source = next(file for file, (_, name) in app.env.images.items() if name == unescape(found[1]))
        svg = Path(app.srcdir, source).read_text(encoding="utf-8")
        width, height = (round(float(size) * 4 / 3) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', svg)[:2])
        sized = found[0].removesuffix("/>").rstrip() + f' width="{width}" height="{height}"'
        seen.append(found[1])
        first = "" if len(seen) == 1 else ' loading="lazy"'
        dark = sized.replace(found[1], found[1].replace(".svg", "-dark.svg"))
        return f'{sized} class="in-light"{first} />{dark} class="in-dark" loading="lazy" />'

    picture = app.env.images.get(f"book/pictures/{PurePosixPath(page).name[:2]}.svg")
    body = context.get("body", "")
    if picture and PurePosixPath(page).parent.name == "book":
        address = context["pathto"](f"_images/{picture[1]}", resource=True)
        body = body.replace("<h1>", f'<div class="picture"><img alt="" src="{address}" /></div>\n<h1>', 1)
    context["body"] = FIGURE.sub(pair, body)


def write_twins(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    ink, ground = dark_tokens(Path(app.srcdir, "book/_static/course.css"))
    for figure in Path(app.outdir, app.builder.imagedir).glob("*.svg"):
        if figure.stem.endswith("-dark"):
            continue
        svg = figure.read_text(encoding="utf-8")
        bare = GROUND.sub(r"\1none", svg)
        figure.write_text(bare, encoding="utf-8")
        figure.with_stem(f"{figure.stem}-dark").write_text(darkened(bare, ink, ground), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", twins)
    app.connect("build-finished", write_twins)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
