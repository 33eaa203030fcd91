"""What the package's two command lines share: errors of one line, and output that every terminal can show."""

import argparse
import io
import sys
from typing import NoReturn


def on_any_terminal() -> None:
    """Print a question mark for each character that the terminal can't show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


class Parser(argparse.ArgumentParser):
    """A parser of command lines that prints one line about an error, and exits with 2."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit; argparse alone would print its usage, too."""
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)
