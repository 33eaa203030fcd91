"""The rules of prose.py, held against the pages; below, a page is broken in three ways, to show that rules report."""

from __future__ import annotations

import re

import pytest

from tests.pages import pages, prose
from tests.pages.pages import BOOK
from tests.pages.prose import PAGES, RULES, Rule, bibliography, page_named


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, rule: Rule) -> None:
    problems = [f"{name}: {problem}" for problem in rule(page_named(name))]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def test_quoted_figures_name_their_sources() -> None:
    problems = []
    for key, entry in pages.quoted().items():
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key):
            problems.append(f"{key}: write small letters, digits and hyphens")
        if {*entry} != {"figures", "what", "source", "where", "checked"}:
            problems.append(f"{key} has {sorted(entry)}: it needs figures, what, source, where and checked, and no more")
            continue
        if entry["source"] not in bibliography().entries:
            problems.append(f"{key}: references.bib has no {entry['source']}: correct it, or add the entry")
        if entry["checked"] not in ("source", "copy", "no"):
            problems.append(f"{key}: checked is 'source', 'copy' or 'no'")
        if not all(re.fullmatch(pages.NUMBER, figure) for figure in entry["figures"]) or not entry["figures"]:
            problems.append(f"{key}: figures are a list of numbers as the source prints them, in quotes")
    assert not problems, "book/quoted.toml:\n" + "\n".join(problems)


def test_quoted_figures_are_quoted() -> None:
    """Each is tied to somewhere, at the precision written there; numbers that no page quotes don't belong in the file."""
    files = (path for path in BOOK.rglob("*") if path.suffix in (".md", ".ipynb"))
    lines = (line for file in files for line in file.read_text("utf-8").splitlines() if "<!--quoted:" in line)
    tied = [tie for line in lines for tie in pages.ties(line) if tie.page == "quoted"]
    wrong = [*filter(None, (pages.problem(tie, []) for tie in tied))]
    assert not wrong, "\n".join(wrong)
    file = {(key, place) for key, entry in pages.quoted().items() for place in range(1, 1 + len(entry["figures"]))}
    unused = sorted(file - {(tie.key, tie.place) for tie in tied})
    assert not unused, f"book/quoted.toml: no page ties a number to {unused}: remove it, or tie it"


# --- The rules themselves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "old", "new", "message"),
    [
        (prose.numbers_are_held, "<!--.*?-->", "", "the prose's "),
        (prose.ties_hold, r"\d<!--", "75<!--", "but the output line says"),
        (prose.links_lead_where_they_say, r"\[chapter \d+\]", "[chapter 99]", "[chapter 99] leads to chapter"),
    ],
)
def test_rule_reports(rule: Rule, old: str, new: str, message: str) -> None:
    page = page_named("03_sinusoidal")
    problems = list(rule(page._replace(text=re.sub(old, new, page.text))))
    assert any(message in problem for problem in problems), problems
