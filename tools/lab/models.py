"""Prints what is new in the installed transformers since somebody last compared the table of models with it.

    make models

A line names each new type of RoPE, and each model with attention that is neither in the table nor left out for a reason. The
exit status is 1 if there are any.

The table, posenc_course/data/models.json, is edited by hand. A released value needs a source that you've seen, on the day
`looked`, and is null otherwise. Give models that don't matter a reason under `left_out`, which the page shows, and write the
date, the version and its types of RoPE beside it. `make execute CHAPTER=models` makes the table's page.

What the inspector knows of a class without running it is a row of posenc_course/data/classes.json, which is edited by hand.
The first rows were measured by a program that this file had up to commit 25ef3c6.
"""

import re
import sys
from pathlib import Path

import transformers

from posenc_course.models import last_look, load_models

ATTENTION = re.compile(r"^class \w*Attention\w*\(", re.MULTILINE)
CLASS = re.compile(r"^class (\w+Config)\(", re.MULTILINE)
# Its code is read as text, because importing 500 models takes minutes.
LIBRARY = Path(str(transformers.__file__)).parent


def rope_types() -> set[str]:
    """The types with a function for their frequencies, and those that a configuration may name."""
    code = (LIBRARY / "modeling_rope_utils.py").read_text(encoding="utf-8")
    (functions,) = re.findall(r"^ROPE_INIT_FUNCTIONS\b[^=]*= \{(.*?)^\}", code, re.MULTILINE | re.DOTALL)
    return {*re.findall(r'"(\w+)":', functions), *re.findall(r"def _validate_(\w+)_rope_parameters", code)}


def folders() -> set[str]:
    """The model folders whose code defines an attention layer."""
    files = LIBRARY.glob("models/*/modeling_*.py")
    return {file.parent.name for file in files if ATTENTION.search(file.read_text(encoding="utf-8"))}


def in_table() -> set[str]:
    """The folders whose configuration classes the table has."""
    code = {file.parent.name: file.read_text(encoding="utf-8") for file in LIBRARY.glob("models/*/configuration_*.py")}
    defined = {name: folder for folder, text in code.items() for name in CLASS.findall(text)}
    return {defined[model.config] for model in load_models() if model.config in defined}


def news() -> list[str]:
    """One line for each type that the last look didn't see, and for each folder that is neither in the table nor left out."""
    look = last_look()
    known = in_table().union(*look.left_out.values())
    return [
        *(f"new type of RoPE: {name}" for name in sorted(rope_types() - {*look.rope_types})),
        *(f"new model with attention: {name}" for name in sorted(folders() - known)),
    ]


if __name__ == "__main__":
    new = news()
    print("\n".join(new or ["nothing new"]))
    sys.exit(bool(new))
