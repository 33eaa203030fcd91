"""A Sphinx extension that adds living figures to the built pages.

Their modules are in book/living and become classic scripts here, because a page opened from a folder can't load modules. Beside
them are the data that they load: what the package stores, and what a chapter's cell gave to its figure.
"""

import json
import re
from functools import cache
from hashlib import sha256
from pathlib import Path
from runpy import run_path
from typing import Any

from rjsmin import jsmin
from sphinx.application import Sphinx

IMPORT = re.compile(r'^import \{ (\w+(?:, \w+)*) \} from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) (\w+)", re.MULTILINE)
TEMPLATE = re.compile(r"`[^`]*`")
ELEMENT = re.compile(r"<living-figure\b")


def classic(name: str, module: str) -> str:
    """The module as a call of `living.define`, which passes its imports and receives its exports."""
    imports = IMPORT.findall(module)
    exports = [exported for _, exported in EXPORT.findall(module)]
    body = EXPORT.sub(r"\1 \2", IMPORT.sub("", module))
    if left := re.search(r"^(?:import|export)\b.*", body, re.MULTILINE):
        raise ValueError(f"{name}.js has the line {left[0]!r}: import names from a file, export functions, constants, classes")
    if nested := next((text for text in TEMPLATE.findall(body) if text.count("{") != text.count("}")), ""):
        raise ValueError(
            f"{name}.js has a template inside a template, {nested.splitlines()[0]}: rjsmin would remove spaces from its text, "
            "so assign the inner one to a variable first"
        )
    given = ", ".join(f"{{ {names} }}" for names, _ in imports)
    needs = json.dumps([other for _, other in imports])
    made = f"({given}) => {{{body} return {{ {', '.join(exports)} }}; }}"
    return str(jsmin(f'"use strict"; living.define("{name}", {needs}, {made});\n'))


def given(notebook: Path) -> dict[str, Any]:
    """The data that the notebook's cells gave to their living figures, by the figures' names."""
    found = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        name = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        for output in cell.get("outputs", []):
            drawn = output.get("metadata", {}).get("image/svg+xml", {}).get("drawn", {})
            if name and "given" in drawn:
                rows = {key: [row.split() for row in array["values"]] for key, array in drawn["given"].items()}
                found[name] = {key: [[float(number) for number in row] for row in table] for key, table in rows.items()}
    return found


@cache
def scripts(root: Path) -> dict[str, str]:
    """All scripts of living figures, by name without .js."""
    book = root / "book"
    made = run_path(str(root / "tools/sphinx/living_data.py"))
    looks = f"const LOOKS = {json.dumps(made['looks']())};"
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(book.glob("living/*.js"))}
    modules = {name: classic(name, text.replace("const LOOKS = {};", looks)) for name, text in texts.items()}
    values = made["scripts"]()
    for path in sorted(book.rglob("*.ipynb")):
        values |= given(path)
    for name, value in values.items():
        modules[f"data/{name}"] = f'living.data("data/{name}", {json.dumps(value, separators=(",", ":"))});\n'
    return modules


@cache
def version(root: Path) -> str:
    """The version of all scripts together, which is in the addresses that the loader asks for."""
    return sha256("".join(scripts(root).values()).encode()).hexdigest()[:8]


def add_loader(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Only pages with a living figure load the script that starts it."""
    if ELEMENT.search(context.get("body", "")):
        attributes: dict[str, Any] = {"defer": "defer", "data-version": version(Path(app.srcdir))}
        app.add_js_file("living.js", **attributes)


def write_scripts(app: Sphinx, exception: Exception | None) -> None:
    if exception or app.builder.name != "html":
        return
    for name, text in scripts(Path(app.srcdir)).items():
        path = Path(app.outdir, "_static/living", f"{name}.js")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", add_loader)
    app.connect("build-finished", write_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
