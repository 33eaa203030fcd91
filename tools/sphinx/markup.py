"""A Sphinx extension that makes the book's pages light; _config.yml names this file, so Sphinx calls `setup`.

Formulas become MathML here and not in the reader's browser; scripts are deferred and loaded only by pages that use them; and
each page gets a description of one sentence.
"""

import re
from collections.abc import Iterator
from html import escape, unescape
from typing import Any

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

MATHML = LatexToMathML(fancy_error=False)
# Operators, what surrounds values in strings, and tokens with the colour of the code around them: most of a page's elements.
PLAIN = re.compile(r'<span class="(?:n|o|p|w|nn|nx|pm|sa|si)">([^<]*)</span>')


# TeX ensures what MathML leaves open: a row is as tall as a line, and a placeholder has no space around it.
MEASURES = {
    r"<mtr><mtd[^>]*>": r'\g<0><mspace height="0.7em" depth="0.25em"/>',
    r"<mphantom><mo>": '<mphantom><mo lspace="0" rspace="0">',
}


def pieces(html: str, element: str, name: str = "") -> Iterator[Tag]:
    """The elements of this kind (none holds another), or the one with this id; to parse a whole page takes long."""
    having = rf'[^>]*\bid="{name}"' if name else ""
    for found in re.finditer(rf"<{element}\b{having}.*?</{element}>", html, re.DOTALL):
        yield BeautifulSoup(found[0], "html.parser").contents[0]  # type: ignore[misc]


def mathml(source: str, *, display: bool) -> str:
    made = MATHML.convert_with_local_state(source, displaystyle=display)
    for found, measured in MEASURES.items():
        made = re.sub(found, measured, made)
    return str(made)


def formula(page: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Writes a formula as MathML. One that can't be converted is reported with its page; the build continues, and fails."""
    display, source = isinstance(node, nodes.math_block), node.astext()
    try:
        made = mathml(source, display=display)
    except LatexError as error:
        where = (page.builder.current_docname, node.line)
        logging.getLogger(__name__).warning("no MathML for the formula %s: %s", source, error, location=where)
        made = escape(source)
    # A long formula scrolls in its box, which the keyboard must reach; course.js removes the stops that aren't needed.
    attributes = {"CLASS": "math notranslate nohighlight"} | ({"tabindex": "0"} if display else {})
    tag = "div" if display else "span"
    page.body.append(page.starttag(node, tag, "", **attributes) + made + f"</{tag}>")
    raise nodes.SkipNode


# For screen readers: a hidden cell is named by its visible words, and code and output are marked as such.
SPOKEN = {
    r'(<summary) aria-label="Toggle hidden content"': r"\1",
    r'(<div class="cell_input [^>]*)': r'\1 role="group" aria-label="Code"',
    r'(<div class="cell_output [^>]*)': r'\1 role="group" aria-label="Output"',
}
# Browsers break a line between a formula and the comma after it, unless the two are in a box that stays whole.
PUNCTUATED = re.compile(
    r'[(“]?<span class="math notranslate nohighlight"><math(?:(?!</math>).)*</math></span>[,.;:?!)’”]+', re.DOTALL
)


def description(body: str) -> str:
    """What the box at the top says, or a page's first paragraph: as many whole words as fit in 160 characters."""
    goals = r'<div class="goals admonition">\s*<p class="admonition-title">.*?</p>(.*?)</div>'
    found = re.search(f'{goals}|<p(?: class="goal")?>(.*?)</p>', body, re.DOTALL)
    text = re.sub(r"<!--.*?-->|<[^>]*>", "", (found[1] or found[2]) if found else "", flags=re.DOTALL)
    words = " ".join(unescape(text).split())
    return words if len(words) <= 160 else words[:159].rpartition(" ")[0].rstrip(",.;:") + "…"


def lighten(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Called for each page before it is written, with everything that it is made of."""
    # The theme adds two scripts with options that only repeat the defaults, and that would run before the scripts they change.
    scripts = [script for script in context["script_files"] if "DOCUMENTATION_OPTIONS" not in script.attributes.get("body", "")]
    body = context.get("body", "")
    if '<div class="highlight' not in body:  # without code, no copy button is needed
        scripts = [script for script in scripts if not str(script.filename).endswith(("clipboard.min.js", "copybutton.js"))]
    context["script_files"] = scripts
    if page != "search":  # there, inline scripts need the scripts before them
        tag = context["js_tag"]
        context["js_tag"] = lambda script: re.sub(r"^<script (?!defer)(?=.*src=)", "<script defer ", tag(script))
    if doctree is not None:
        for silent, spoken in SPOKEN.items():
            body = re.sub(silent, spoken, body)
        body = PUNCTUATED.sub(r'<span class="whole">\g<0></span>', body)
        context["body"] = PLAIN.sub(r"\1", body)
        context["metatags"] += f'<meta name="description" content="{escape(description(body))}" />'


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("html-page-context", lighten, priority=900)  # after the extensions that add scripts
    return {"parallel_read_safe": True, "parallel_write_safe": True}
