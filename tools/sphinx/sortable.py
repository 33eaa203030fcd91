"""A Sphinx extension that loads the script for sorting on pages with a sortable table, and only there."""

from typing import Any

from sphinx.application import Sphinx


def add_script(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    if '<table class="sortable">' in context.get("body", ""):
        app.add_js_file("sortable.js", defer="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", add_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
