"""Prints what is new in the installed transformers since somebody last compared the table of models with it.

    make models

A line names each new type of RoPE and each new folder of a model with attention. The exit status is 1 if there are any. After
they have been looked at, and added to the table where they matter, `.venv/bin/python -m tools.models --looked` stores the date
and what there is now.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from posenc_course._system import write_whole
from posenc_course.models import last_look

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "posenc_course" / "data" / "models.json"
ATTENTION = re.compile(r"^class \w*Attention\w*\(", re.MULTILINE)


def library() -> Path:
    """The folder of the installed transformers; its code is read as text, because importing 500 models takes minutes."""
    found = find_spec("transformers")
    if found is None or found.origin is None:
        sys.exit("transformers is missing: run `make` once, or install the extra `test`")
    return Path(found.origin).parent


def rope_types(library: Path) -> set[str]:
    """The types with a function for their frequencies, and those that a configuration may name."""
    code = (library / "modeling_rope_utils.py").read_text(encoding="utf-8")
    (functions,) = re.findall(r"^ROPE_INIT_FUNCTIONS\b[^=]*= \{(.*?)^\}", code, re.MULTILINE | re.DOTALL)
    return {*re.findall(r'"(\w+)":', functions), *re.findall(r"def _validate_(\w+)_rope_parameters", code)}


def folders(library: Path) -> set[str]:
    """The model folders whose code defines an attention layer."""
    files = library.glob("models/*/modeling_*.py")
    return {file.parent.name for file in files if ATTENTION.search(file.read_text(encoding="utf-8"))}


def news(library: Path) -> list[str]:
    """One line for each type and each folder that the table's last look didn't see."""
    look = last_look()
    return [
        *(f"new type of RoPE: {name}" for name in sorted(rope_types(library) - {*look.rope_types})),
        *(f"new model with attention: {name}" for name in sorted(folders(library) - {*look.folders})),
    ]


def store(library: Path) -> None:
    """Stores that everything has been looked at today. The rest of the file stays as it is."""
    look = {
        "date": datetime.now(UTC).date().isoformat(),
        "transformers": version("transformers"),
        "rope_types": sorted(rope_types(library)),
        "folders": sorted(folders(library)),
    }
    text = STORED.read_text(encoding="utf-8")
    changed = re.sub(r'^ "look": .*,$', lambda _: f' "look": {json.dumps(look)},', text, count=1, flags=re.MULTILINE)
    write_whole(STORED, changed.encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--looked", action="store_true", help="store that everything has been looked at")
    if parser.parse_args().looked:
        store(library())
        return 0
    new = news(library())
    print("\n".join(new or ["nothing new"]))
    return int(bool(new))


if __name__ == "__main__":
    sys.exit(main())
