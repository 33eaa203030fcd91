"""Makes the site's fonts in book/_static as subsets of complete fonts: `python tools/book/fonts.py FILE...`.

Run it when a test says that a character is missing, after adding the character below. From latinmodern-math.otf (in Debian's
package fonts-lmodern) it makes the font for formulas, and from newsreader-latin-400-normal.woff2, -400-italic and -600-normal
(in npm's package @fontsource/newsreader) the fonts for text. Their licences, which stay inside the font files, allow this;
Latin Modern's requires that a changed font get a different name.
"""

import sys
from pathlib import Path
from typing import Any

from fontTools.pens.boundsPen import BoundsPen  # type: ignore[import-untyped]
from fontTools.pens.t2CharStringPen import T2CharStringPen  # type: ignore[import-untyped]
from fontTools.pens.transformPen import TransformPen  # type: ignore[import-untyped]
from fontTools.subset import Options, Subsetter  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

STATIC = Path(__file__).resolve().parents[2] / "book/_static"
NAME = "Book Math"
# In hexadecimal: Latin letters and digits; ± × and accents; Greek; dashes, bars, dots, primes, and invisible characters;
# ℂ ℓ ℕ ℝ ℤ, and the h that the italics lack; arrows; operators and relations; floor, ceiling and braces; bold, italic,
# sans-serif and italic Greek letters, and bold digits.
MATH = """
20-7E A0 AF B1 B7 D7 F7 302-304 307 20D7 391-3C9 3D1-3D5 3F5 2013-2016 2020-2026 2032-2034 2061-2064
2102 210E 2113 2115 211D 2124 2190-2195 21A6 21D0-21D5 27F5-27FA
2200-221E 2223-222B 223C-2248 2260-226B 2282-2287 2295-2299 22A4-22A5 22C0-22C5 22EE-22F1 2308-230B 23DE-23DF 27E8-27E9
1D400-1D467 1D5A0-1D5D3 1D6E2-1D71B 1D7CE-1D7D7
"""
# Latin letters (including those in names), digits and punctuation. Greek letters and other characters come from the font for
# formulas.
TEXT = "20-7E A0 A7 A9 AB B0-B3 B7 BB D7 DF C0-D6 D8-F6 F8-FF 2013-2014 2018-201E 2026 2212"
OPENING, CLOSING = "([{⌊⌈⟨", ")]}⌋⌉⟩"
INSIDE, OUTSIDE = 60, 150  # space beside a tall bracket, in thousandths of an em


def make(source: str) -> None:
    """Makes the subset of one font, which is recognized by its file name."""
    font = TTFont(source, recalcTimestamp=False)
    stem = Path(source).stem
    if stem.startswith("latinmodern-math"):
        # Without layout features: they contain every letter again for indices, which doubles the size of the font.
        name, signs, features = "math", MATH, []
        rename(font)
    else:
        name, signs, features = stem.removeprefix("newsreader-latin-"), TEXT, ["ccmp", "kern", "liga", "locl", "mark"]
        name = f"text-{name}"
    options: Any = Options(layout_features=features, name_IDs=["*"], hinting=False, desubroutinize=True)
    options.drop_tables += ["FFTM"]
    subsetter = Subsetter(options)
    for part in signs.split():
        first, _, last = part.partition("-")
        subsetter.populate(unicodes=range(int(first, 16), int(last or first, 16) + 1))
    subsetter.subset(font)
    if name == "math":
        set_as_tex_does(font)
    font.flavor = "woff2"
    font.save(made := STATIC / f"{name}.woff2")
    print(f"{made.name}: {len(font.getBestCmap())} characters, {made.stat().st_size / 1000:.0f} kB")


def rename(font: TTFont) -> None:
    """Gives the font for formulas its name, and primes at the height of an index, because browsers don't ask for that shape."""
    signs = font.getBestCmap()
    primes = {prime: f"{signs[prime]}.st" for prime in (0x2032, 0x2033, 0x2034)}
    for table in font["cmap"].tables:
        table.cmap |= primes
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16):
            record.string = NAME.replace(" ", "") if record.nameID == 6 else NAME
    postscript = font["CFF "].cff
    postscript.fontNames = [NAME.replace(" ", "")]
    postscript[0].FullName = postscript[0].FamilyName = NAME


def set_as_tex_does(font: TTFont) -> None:
    """TeX takes more into account than browsers do, so we store its result in the font."""
    math = font["MATH"].table
    # How far scripts may be from the edges of their base: so little here that p and x have their indices at the same height.
    math.MathConstants.SubscriptBaselineDropMin.Value = 50
    math.MathConstants.SuperscriptBaselineDropMax.Value = 386
    # Letters that lean over their right edge get room for it, or the next letter or exponent would touch them.
    italics = math.MathGlyphInfo.MathItalicsCorrectionInfo
    letters = {sign for code, sign in font.getBestCmap().items() if 0x1D434 <= code <= 0x1D467 or 0x1D6E2 <= code <= 0x1D71B}
    for sign, correction in zip(italics.Coverage.glyphs, italics.ItalicsCorrection, strict=True):
        if sign in letters:
            width, left = font["hmtx"][sign]
            font["hmtx"][sign] = width + correction.Value, left
            correction.Value = 0
    # Chromium leaves as much room for a bracket as its widest form needs, so these forms get little space at their sides.
    vertical = math.MathVariants
    forms = dict(zip(vertical.VertGlyphCoverage.glyphs, vertical.VertGlyphConstruction, strict=True))
    for sign in OPENING + CLOSING:
        air = INSIDE if sign in CLOSING else OUTSIDE
        bracket = forms[font.getBestCmap()[ord(sign)]]
        for variant in bracket.MathGlyphVariantRecord[1:]:
            narrow(font, [variant.VariantGlyph], air)
        if bracket.GlyphAssembly:
            narrow(font, [part.glyph for part in bracket.GlyphAssembly.PartRecords], air)


def narrow(font: TTFont, parts: list[str], air: int) -> None:
    """Gives a glyph, or the parts that it's made of, this much space on the left, and the rest of the space on the right."""
    glyphs, outlines = font.getGlyphSet(), font["CFF "].cff[0].CharStrings
    bounds = BoundsPen(glyphs)
    for part in parts:
        glyphs[part].draw(bounds)
    left, _, right, _ = bounds.bounds
    width = round(right - left + INSIDE + OUTSIDE)
    for part in dict.fromkeys(parts):
        private = outlines[part].private
        pen = T2CharStringPen(width - private.nominalWidthX, glyphs)
        glyphs[part].draw(TransformPen(pen, (1, 0, 0, 1, air - left, 0)))
        outlines[part] = pen.getCharString(private, outlines.globalSubrs)
        font["hmtx"][part] = width, air


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(f"name the font files, for example latinmodern-math.otf:\n\n{__doc__}")
    for file in sys.argv[1:]:
        try:
            make(file)
        except FileNotFoundError as missing:
            sys.exit(f"{missing.filename} doesn't exist: {(__doc__ or '').partition('Run it')[2]}")
