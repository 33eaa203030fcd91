"""Makes book/_static/math.woff2, the font of the formulas: the signs of Latin Modern Math that a formula may need.

Run it when a test says that a sign is missing, after adding the sign below. It reads the font that Debian's package
fonts-lmodern installs, or the one it is given: `python tools/fonts.py [latinmodern-math.otf]`. The licence of Latin Modern,
which the font keeps within it, asks that a changed font have another name.
"""

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

SOURCE = "/usr/share/texmf/fonts/opentype/public/lm-math/latinmodern-math.otf"
FONT = Path(__file__).resolve().parent.parent / "book/_static/math.woff2"
NAME = "Book Math"
# In hexadecimal: Latin letters and digits; ± × and accents; Greek; dashes, bars, dots, primes, and the signs that are not
# seen; ℂ ℓ ℕ ℝ ℤ, and the h that the italics lack; arrows; operators and relations; floor, ceiling and braces; letters that are
# bold, italic, sans-serif, Greek and italic, and bold digits.
SIGNS = """
20-7E A0 AF B1 B7 D7 F7 302-304 307 20D7 391-3C9 3D1-3D5 3F5 2013-2016 2020-2026 2032-2034 2061-2064
2102 210E 2113 2115 211D 2124 2190-2195 21A6 21D0-21D5 27F5-27FA
2200-221E 2223-222B 223C-2248 2260-226B 2282-2287 2295-2299 22A4-22A5 22C0-22C5 22EE-22F1 2308-230B 23DE-23DF 27E8-27E9
1D400-1D467 1D5A0-1D5D3 1D6E2-1D71B 1D7CE-1D7D7
"""


def make(source: str) -> None:
    font = TTFont(source, recalcTimestamp=False)
    # Primes stand at the height of an index, in the shape that the font has for those: browsers do not ask for it.
    signs = font.getBestCmap()
    primes = {prime: f"{signs[prime]}.st" for prime in (0x2032, 0x2033, 0x2034)}
    for table in font["cmap"].tables:
        table.cmap |= primes
    # Without the layout's features: they hold every letter anew for indices, which doubles the font.
    options = Options(layout_features=[], name_IDs=["*"], hinting=False, desubroutinize=True)
    options.drop_tables += ["FFTM"]
    subsetter = Subsetter(options)
    for part in SIGNS.split():
        first, _, last = part.partition("-")
        subsetter.populate(unicodes=range(int(first, 16), int(last or first, 16) + 1))
    subsetter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6, 16):
            record.string = NAME.replace(" ", "") if record.nameID == 6 else NAME
    postscript = font["CFF "].cff
    postscript.fontNames = [NAME.replace(" ", "")]
    postscript[0].FullName = postscript[0].FamilyName = NAME
    font.flavor = "woff2"
    font.save(FONT)
    print(f"{FONT.name}: {len(font.getBestCmap())} signs, {FONT.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    try:
        make(*sys.argv[1:] or [SOURCE])
    except FileNotFoundError as missing:
        sys.exit(f"{missing.filename} is not there: install fonts-lmodern, or name the file latinmodern-math.otf")
    except ImportError:
        sys.exit("to write .woff2 takes the package brotli: pip install brotli")
