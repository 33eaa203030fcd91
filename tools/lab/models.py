"""Prints what is new in the installed transformers since somebody last compared the table of models with it.

    make models

A line names each new type of RoPE, and each model with attention that is neither in the table nor left out for a reason. The
exit status is 1 if there are any. Add those that matter to the table, and give the others a reason, which the page shows:

    .venv/bin/python -m tools.lab.models --leave-out "older than 2024" gptj opt

Then `.venv/bin/python -m tools.lab.models --looked` stores the date, the version, and its types of RoPE.

The table, posenc_course/data/models.json, is edited by hand. A released value needs a source that you've seen, on the day
`looked`, and is null otherwise. `make execute CHAPTER=models` makes the table's page.
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
from typing import Any

from posenc_course._system import write_whole
from posenc_course.models import last_look, load_models

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "posenc_course" / "data" / "models.json"
ATTENTION = re.compile(r"^class \w*Attention\w*\(", re.MULTILINE)
CLASS = re.compile(r"^class (\w+Config)\(", re.MULTILINE)


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


def in_table(library: Path) -> set[str]:
    """The folders whose configuration classes the table has."""
    code = {file.parent.name: file.read_text(encoding="utf-8") for file in library.glob("models/*/configuration_*.py")}
    defined = {name: folder for folder, text in code.items() for name in CLASS.findall(text)}
    return {defined[model.config] for model in load_models() if model.config in defined}


def news(library: Path) -> list[str]:
    """One line for each type that the last look didn't see, and for each folder that is neither in the table nor left out."""
    look = last_look()
    known = in_table(library).union(*look.left_out.values())
    return [
        *(f"new type of RoPE: {name}" for name in sorted(rope_types(library) - {*look.rope_types})),
        *(f"new model with attention: {name}" for name in sorted(folders(library) - known)),
    ]


def store(**changes: Any) -> None:
    """Changes the record of the last look. The rest of the file stays as it is."""
    text = STORED.read_text(encoding="utf-8")
    look = json.loads(text)["look"] | changes
    changed = re.sub(r'^ "look": .*,$', lambda _: f' "look": {json.dumps(look)},', text, count=1, flags=re.MULTILINE)
    write_whole(STORED, changed.encode())


def leave_out(library: Path, reason: str, names: list[str]) -> None:
    """Stores why these folders aren't in the table."""
    if unknown := sorted({*names} - folders(library)):
        sys.exit(f"no model with attention in transformers: {', '.join(unknown)}; `make models` lists the new ones")
    left_out = {old: sorted({*kept} - {*names}) for old, kept in last_look().left_out.items()}
    left_out[reason] = sorted({*left_out.get(reason, []), *names})
    store(left_out={each: kept for each, kept in left_out.items() if kept})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--leave-out", nargs="+", metavar=("REASON", "FOLDER"), help="say why models aren't in the table")
    parser.add_argument("--looked", action="store_true", help="store that everything has been looked at")
    options = parser.parse_args()
    if options.leave_out:
        leave_out(library(), options.leave_out[0], options.leave_out[1:])
        return 0
    new = news(library())
    if options.looked:
        if unexplained := [line for line in new if line.startswith("new model")]:
            sys.exit("\n".join([*unexplained, "add each to the table, or give a reason with --leave-out"]))
        date = datetime.now(UTC).date().isoformat()
        store(date=date, transformers=version("transformers"), rope_types=sorted(rope_types(library())))
        return 0
    print("\n".join(new or ["nothing new"]))
    return int(bool(new))


if __name__ == "__main__":
    sys.exit(main())
