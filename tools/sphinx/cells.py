"""A Sphinx extension that arranges what a page shows of its cells.

Folded code stands below the figure that it draws, together with the folded cells directly before it, which prepare it: a figure
has one line to open. The tag `as-table` makes tables of what a cell prints in columns; its text stays in the notebook.
"""

import re
from html import escape
from itertools import takewhile
from typing import Any, NamedTuple

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, HideInputCells
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from posenc_course.plotting import COLORS, SCHEME_STYLES

NUMBER = r"(?:[-+−]?\d[\d.,]*(?: ± [\d.]+)?(?: ?%)?|--)"
STYLES = {key.lower(): style for name, style in SCHEME_STYLES.items() for key in (name, style.label)}
VARIABLES = {hue: f"var(--fig-{name})" for name, hue in COLORS.items()} | {COLORS["black"]: "var(--ink)"}
DASHES = {"-": "solid", ":": "dotted"}  # CSS has one kind of dashes


class Row(NamedTuple):
    label: str
    cells: list[str]


def row(line: str, count: int) -> Row | None:
    """A line that ends with so many numbers."""
    found = re.fullmatch(rf"(.*?):?((?:(?:^|\s+){NUMBER}){{{count}}})\s*", line)
    return Row(" ".join(found[1].split()), re.findall(NUMBER, found[2])) if found else None


def head(line: str) -> Row | None:
    """A line whose words, or numbers, stand in columns, two or more behind a label, which may be empty."""
    label, *cells = re.split(r"\s{2,}", line.rstrip())
    cells = [part for cell in cells for part in (cell.split() if re.fullmatch(rf"{NUMBER}(?: {NUMBER})+", cell) else [cell])]
    return Row(label.rstrip(":"), cells) if len(cells) > 1 else None


def tables(text: str) -> list[str | list[Row]]:
    """What a cell printed, in order: tables, and the lines between them. A row without cells is a heading of those below."""
    parts: list[str | list[Row]] = []
    lines = [line for line in text.splitlines() if line.strip()]
    while lines:
        line = lines.pop(0)
        if (top := head(line)) and any(row(below, len(top.cells)) for below in lines[:2]):
            table, count = [top], len(top.cells)
            while lines and (
                found := row(lines[0], count) or (lines[1:] and row(lines[1], count) and Row(lines[0].strip(), []))
            ):
                table.append(found)
                del lines[0]
            parts.append(table)
        elif parts and isinstance(parts[-1], str):
            parts[-1] += f"\n{line}"
        else:
            parts.append(line)
    return parts


def short(labels: list[str]) -> tuple[str, list[str]]:
    """What all labels begin or end with, as in "nats, RoPE" or "rope, mean", and what is left of them."""
    parts = [label.split(", ") for label in labels]
    for at, rest in ((0, slice(1, None)), (-1, slice(-1))):
        if len(parts) > 1 and min(map(len, parts)) > 1 and len({part[at] for part in parts}) == 1:
            return parts[0][at], [", ".join(part[rest]) for part in parts]
    return "", labels


def heading(label: str, others: list[str]) -> str:
    """A row's heading; that of a scheme has the scheme's name and line, as in figures, unless rows differ in something else."""
    if not (style := STYLES.get(label.lower())) or any(other.startswith(f"{label}, ") for other in others):
        return f'<th scope="row">{escape(label)}</th>'
    line = f"{DASHES.get(style.linestyle, 'dashed')} {VARIABLES[style.color]}"
    return f'<th scope="row"><i style="border-top: 3px {line}"></i>{escape(style.label)}</th>'


def html(table: list[Row]) -> str:
    top, *rows = table
    corner, body = top.label, ""
    while rows:
        if not rows[0].cells:
            body += f'<tr><th colspan="{len(top.cells) + 1}" scope="rowgroup">{escape(rows.pop(0).label)}</th></tr>'
        group = [*takewhile(lambda row: row.cells, rows)]
        rows = rows[len(group) :]
        common, labels = short([row.label for row in group])
        if not body and not top.label.startswith(common):
            corner = " / ".join(filter(None, [common, top.label]))
        for label, (_, cells) in zip(labels, group, strict=True):
            values = (re.sub(" (±.*)", r" <small>\1</small>", cell) for cell in cells)
            body += f"<tr>{heading(label, labels)}{''.join(f'<td>{value}</td>' for value in values)}</tr>"
    columns = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in top.cells)
    names = f"<td>{escape(corner)}</td>{columns}"
    return f'<table class="printed"><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>'


def folded(node: nodes.Node | None) -> bool:
    """Whether a node is a cell of which only folded code is there, without an output."""
    return isinstance(node, nodes.container) and node.get("hide_mode") == "input" and len(node) == 1


class ArrangeCells(SphinxPostTransform):
    default_priority = HideInputCells.default_priority + 1
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for cell in [*self.document.findall(nodes.container)]:
            if "tag_as-table" in cell["classes"]:
                self.set(cell)
            if len(cell) == 2 and isinstance(code := cell[0], HideCodeCellNode) and next(cell.findall(nodes.figure), None):
                cell.append(cell.pop(0))
                code["classes"] = ["below-figure"]
                code["prompt_show"] = code["prompt_hide"] = "Code of this figure"
                while folded(before := cell.previous_sibling()):
                    code[:0] = before[0].children
                    before.parent.remove(before)

    def set(self, cell: nodes.container) -> None:
        """Set what the cell printed as tables."""
        for printed in [text for text in cell.findall(nodes.literal_block) if "output" in text["classes"]]:
            parts = tables(printed.astext())
            printed.replace_self(
                [
                    nodes.literal_block(part, part, **printed.attributes)
                    if isinstance(part, str)
                    else nodes.raw("", f'<div class="pst-scrollable-table-container">{html(part)}</div>', format="html")
                    for part in parts
                ]
            )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(ArrangeCells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
