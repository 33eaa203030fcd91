"""Draws the cards that social networks show beside a link to a page: the page's title and, for a chapter, its first figure."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from matplotlib import get_data_path
from PIL import Image, ImageDraw, ImageFont
from resvg_py import svg_to_bytes

SIZE = WIDTH, HEIGHT = 1200, 630
MARGIN, COLUMN = 64, 470  # the width of the text beside a figure
TITLE, LINE = 350, 1.25  # the maximum height of a title, and the height of a line relative to the font size
BLUE, ORANGE, GREY = "#0b4f79", "#e69f00", "#48566b"  # the first two are the favicon's


def font(size: int, bold: bool = True) -> ImageFont.FreeTypeFont:
    """A font that comes with Matplotlib, so that cards look the same on every machine."""
    return ImageFont.truetype(Path(get_data_path(), f"fonts/ttf/DejaVuSans{'-Bold' * bold}.ttf"), size)


def lines(words: str, face: ImageFont.FreeTypeFont, width: int) -> list[str]:
    """The words, broken into lines no wider than `width`."""
    broken: list[str] = []
    for word in words.split():
        if broken and face.getlength(f"{broken[-1]} {word}") <= width:
            broken[-1] += f" {word}"
        else:
            broken.append(word)
    return broken


def fitted(words: str, width: int, largest: int) -> tuple[int, list[str]]:
    """The largest font size at which the words fit, and their lines."""
    for size in range(largest, 0, -2):
        broken = lines(words, font(size), width)
        if len(broken) * LINE * size <= TITLE and max(map(font(size).getlength, broken)) <= width:
            break
    return size, broken


def card(course: str, above: str, title: str, figure: Path | None = None) -> Image.Image:
    """A card with the course's name, a line above the title, the title, and a figure on the right."""
    image = Image.new("RGB", SIZE, "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, WIDTH, 92), fill=BLUE)
    draw.rectangle((0, 92, WIDTH, 98), fill=ORANGE)
    draw.text((MARGIN, 46), course, font=font(40), fill="white", anchor="lm")
    width = COLUMN if figure else WIDTH - 2 * MARGIN
    size, broken = fitted(title, width, 48 if figure else 64)
    top = (HEIGHT + 98 - LINE * size * len(broken) - 56) // 2
    draw.text((MARGIN, top), above, font=font(34, bold=False), fill=GREY)
    for number, line in enumerate(broken):
        draw.text((MARGIN, top + 56 + LINE * size * number), line, font=font(size), fill=BLUE)
    if figure:
        left, upper, right, lower = MARGIN + COLUMN + 40, 130, WIDTH - 40, HEIGHT - 32
        # As wide as possible; if it is too high then, it is made smaller.
        with Image.open(BytesIO(svg_to_bytes(svg_path=str(figure), width=right - left, dpi=96))) as opened:
            drawn = opened.convert("RGBA")
        drawn.thumbnail((right - left, lower - upper), Image.Resampling.LANCZOS)
        at = (left + right - drawn.width) // 2, (upper + lower - drawn.height) // 2
        image.paste(drawn, at, drawn)
    return image.quantize(128, dither=Image.Dither.NONE)  # a third of the bytes, with no visible difference
