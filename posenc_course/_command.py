"""What the package's two command lines share: errors of one line, and characters that every terminal can show."""

import argparse
import codecs
import io
import sys
from typing import NoReturn

PLAIN = "posenc_course.plain"


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII characters in place of a character that a terminal cannot show, and where to continue."""
    assert isinstance(error, UnicodeEncodeError)
    sign = error.object[error.start]
    return {"±": "+-", "…": "...", "·": "*", "√": "sqrt "}.get(sign, "?"), error.start + 1


codecs.register_error(PLAIN, _in_ascii)


def on_any_terminal() -> None:
    """Print characters that the terminal can't show in ASCII."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


class Parser(argparse.ArgumentParser):
    """A parser of command lines that prints one line about an error, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit; argparse alone would print its usage, too."""
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)
