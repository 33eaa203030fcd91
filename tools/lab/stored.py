"""Where measurements come from, and the checksums of all that are stored.

    python -m tools.lab.stored

writes the checksums of all data, so that a test notices a digit that was changed by accident.
"""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from posenc_course._system import processor, write_whole
from posenc_course.experiment.corpus import DATA

CHECKSUMS = DATA / "SHA256SUMS"


def provenance(command: str, *packages: str) -> dict[str, Any]:
    """The command, the date, the machine and the versions of the packages that this process uses."""
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": {"processor": processor(), "logical_cores": os.cpu_count()},
        "versions": {"python": platform.python_version()} | {package: version(package) for package in packages},
    }


def write_results(path: Path, made: dict[str, Any], results: dict[str, list[dict[str, Any]]]) -> None:
    """Writes {"made": …, "results": {group: [records]}}, either completely or not at all."""
    groups = [
        f"{json.dumps(group)}: [\n" + ",\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n]"
        for group, records in results.items()
    ]
    text = f'{{"made": {json.dumps(made, indent=1)},\n"results": {{\n' + ",\n".join(groups) + "\n}}\n"
    write_whole(path, text.encode())
    print(f"\nwritten: posenc_course/data/{path.name}", flush=True)


def checksums() -> str:
    """One line for each file of results, and for those that are edited by hand, as `sha256sum` writes it."""
    files = sorted(DATA.rglob("*.json"))
    lines = (f"{sha256(path.read_bytes()).hexdigest()}  {path.relative_to(DATA).as_posix()}\n" for path in files)
    return "".join(lines)


if __name__ == "__main__":
    CHECKSUMS.write_text(checksums(), encoding="utf-8")
