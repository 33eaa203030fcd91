"""System functions for the lab and the tools: write a file completely or not at all, and find the processor's name."""

import os
import platform
from pathlib import Path


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
