"""What a page shows of its cells: a figure's code below it, and tables of what cells print in columns."""

import json
import re
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest
from bs4 import BeautifulSoup

from tests.commands import ROOT
from tests.site.built import NOTEBOOKS, SOURCES, Site

arrange = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/cells.py")))


def cells(page: str) -> list[dict[str, Any]]:
    text = (ROOT / SOURCES[page.removesuffix(".html")]).read_text(encoding="utf-8")
    return list(json.loads(text)["cells"])


def tagged(cell: dict[str, Any], tag: str) -> bool:
    return tag in cell["metadata"].get("tags", [])


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_code_of_a_figure_is_folded_below_it(site: Site, page: str) -> None:
    """Together with the folded cells that prepare the figure, directly before it."""
    below = above = 0
    prepares = False
    for cell in reversed(cells(page)):
        folded = tagged(cell, "hide-input")
        figure = folded and "image/svg+xml" in str(cell["outputs"])
        prepares = folded and (figure or (prepares and not cell["outputs"]))
        below += figure
        above += folded and not prepares
    html = (site.html / page).read_text(encoding="utf-8")
    assert len(re.findall(r'</figure>\s*(?:</div>\s*)+<details class="[^"]*below-figure"', html)) == below
    assert re.findall(r"<summary>\s*<p [^>]*>(Code\b[^<]*)", html).count("Code of this figure") == below
    assert re.findall(r"<summary>\s*<p [^>]*>(Code\b[^<]*)", html).count("Code") == above


PRINTED = """\
means of 3 seeds, %      32  512 4,096

found = right answers
found, none             100    1    --
found, rope, factor 2    99 14 ± 3   0
all found at 32: yes
"""


def test_what_is_printed_in_columns_becomes_a_table() -> None:
    table, rest = arrange.tables(PRINTED)
    assert rest == "all found at 32: yes"
    head = ("means of 3 seeds, %", ["32", "512", "4,096"])
    rows = [("found, none", ["100", "1", "--"]), ("found, rope, factor 2", ["99", "14 ± 3", "0"])]
    assert table == [head, ("found = right answers", []), *rows]
    shown = BeautifulSoup(arrange.html(table), "html.parser")
    assert [cell.get_text() for cell in shown.select("th[scope=row]")] == ["no position", "rope, factor 2"]
    assert shown.select_one("th[scope=row] > i")["style"] == "border-top: 3px dotted var(--ink)"  # type: ignore[index]
    assert [cell.get_text() for cell in shown.select("td")] == [head[0], *rows[0][1], *rows[1][1]]


@pytest.mark.parametrize("page", [page for page in NOTEBOOKS if any(tagged(cell, "as-table") for cell in cells(page))])
def test_tagged_cells_show_what_they_print(site: Site, page: str) -> None:
    printed = ["".join(cell["outputs"][0]["text"]) for cell in cells(page) if tagged(cell, "as-table")]
    shown = site.article(page).select(".tag_as-table .cell_output")
    assert len(shown) == len(printed)
    for output, text in zip(shown, printed, strict=True):
        assert output.select("table.printed td"), f"{page}: no table in what {text!r} became"
        assert re.findall(r"\d+", output.get_text(" ")) == re.findall(r"\d+", text)
