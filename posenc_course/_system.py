"""What the package asks of the system: whole files, the processor's name, command lines, and output for every terminal."""

import argparse
import io
import os
import platform
import sys
from pathlib import Path
from typing import NoReturn


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely or not at all.

    It is written under a temporary name and renamed when all of it is on the disk. Missing folders are created. If writing
    fails, an existing file stays as it was. Raises OSError, with a message of one line that names the file.
    """
    part = path.with_name(f".{path.name}.{platform.node()}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}; free some space, or give another path") from error


def processor() -> str:
    """Return the processor's name, as reported by the system."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


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
