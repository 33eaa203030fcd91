"""What the lab and the tools ask of the system: files that are written whole or not at all, and the processor's name."""

import os
import platform
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, and the folder for it, under another name first; rename it when all of it is on the disk.

    Whatever stops the writing, an older file of this name stays as it was and the part is removed; a part that a killed process
    left goes with the next success. Raises OSError, in one line that names the file.
    """
    ours = f".{path.name}.{platform.node()}."
    part = path.with_name(f"{ours}{os.getpid()}.part")
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
        for other in path.parent.iterdir():
            if other.name.startswith(ours) and other.suffix == ".part" and not _runs(other.name.split(".")[-2]):
                other.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror or error}; make room, or give another place") from error


def _runs(process: str) -> bool:
    """Whether a process of this number is there: it may be writing."""
    try:
        os.kill(int(process), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        pass  # somebody else's
    return True


def processor() -> str:
    """The processor's name as the system knows it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
