"""Makes book/_static/math.woff2, the font of the formulas: the signs of Latin Modern Math that a formula may need.

Run it when a test says that a sign is missing, after adding the sign below. It reads the font that Debian's package
fonts-lmodern installs, or the one it is given: `python tools/fonts.py [latinmodern-math.otf]`. The licence of Latin Modern,
which the font keeps within it, asks that a changed font have another name.
"""

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

SOURCE = "/usr/share/texmf/fonts/opentype/public/lm-math/latinmodern-math.otf"
FONT = Path(__file__).resolve().parent.parent / "book/_static/math.woff2"
NAME = "Book Math"
SIGNS = [
    (0x20, 0x7E),  # Latin letters and digits
    *zip(ONES := (0xA0, 0xAF, 0xB1, 0xB7, 0xD7, 0xF7, 0x302, 0x303, 0x304, 0x307, 0x20D7), ONES),  # ± × and accents
    (0x391, 0x3C9),  # Greek
    (0x3D1, 0x3D5),
    (0x3F5, 0x3F5),
    (0x2013, 0x2016),  # dashes, bars, dots, primes, and the signs that are not seen
    (0x2020, 0x2026),
    (0x2032, 0x2034),
    (0x2061, 0x2064),
    *zip(ONES := (0x2102, 0x210E, 0x2113, 0x2115, 0x211D, 0x2124), ONES),  # ℂ ℓ ℕ ℝ ℤ, and h, which the italics lack
    (0x2190, 0x2195),  # arrows
    (0x21D0, 0x21D5),
    (0x21A6, 0x21A6),
    (0x2200, 0x221E),  # operators and relations
    (0x2223, 0x222B),
    (0x223C, 0x2248),
    (0x2260, 0x226B),
    (0x2282, 0x2287),
    (0x2295, 0x2299),
    (0x22A4, 0x22A5),
    (0x22C0, 0x22C5),
    (0x22EE, 0x22F1),
    (0x2308, 0x230B),  # floor, ceiling, braces
    (0x23DE, 0x23DF),
    (0x27E8, 0x27E9),
    (0x27F5, 0x27FA),
    (0x1D400, 0x1D467),  # letters: bold, italic, sans-serif; Greek italics; bold digits
    (0x1D5A0, 0x1D5D3),
    (0x1D6E2, 0x1D71B),
    (0x1D7CE, 0x1D7D7),
]


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
    subsetter.populate(unicodes=[sign for first, last in SIGNS for sign in range(first, last + 1)])
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
