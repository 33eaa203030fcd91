"""The rules of tests/prose.py, held against the pages; below, a good page is broken in every way that they detect."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pybtex.database import parse_string  # type: ignore[import-untyped]

from tests import pages, prose
from tests.pages import BOOK
from tests.prose import PAGES, RULES, Page, Rule, bibliography, page_named, page_of


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, rule: Rule) -> None:
    problems = list(rule(page_named(name)))
    assert not problems, "\n".join(f"{name}: {problem}" for problem in problems)


# --- The two files that pages draw from ------------------------------------------------------------------------------


def test_keys_of_the_bibliography_agree_with_their_entries() -> None:
    problems = list(prose.keys_agree_with_entries(bibliography()))
    assert not problems, "\n".join(problems)


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

GOOD = """# Why?

The loss is 0.94<!--ratio-->, after 1,204<!--given--> tokens, in 50 steps of `0.333`, and $0.123$ (chapter 12, table 3.4).
It takes 45 minutes, since 2017, as M2M-100 does, with three seeds ([chapter 4](04_pendulums.ipynb)).
{cite:t}`haviv2022transformer` have 147.18<!--quoted: test-key-->, and Haviv's model learns.
With YaRN {cite:p}`peng2024yarn`, it rises from 1 to 2, and fewer fall: 2 instead of 3.
Chapter 1 showed that it does not matter<!--deeper/01_order: at 64 words attention is faster = yes-->.

## Summary

- Every model learns it<!--all of them = yes-->, and its table is learned.
- It follows.

## Quiz

**1. Is it?**

<details class="quiz"><summary>It is.</summary>

**Yes.**<!--all of them = yes--> Because it is so.

</details>
<details class="quiz"><summary>It is not.</summary>

**No.**<!--none of them = no--> It is, as was shown.

</details>

**2. Why?**

<details class="quiz"><summary>So.</summary>

**Yes.**<!--reasoned--> Because it is so.

</details>
<details class="quiz"><summary>Not so.</summary>

**No.** It is not.

</details>
"""
CAPTION = "The curve reaches 0.94<!--ratio-->."
ALT = "A curve that rises from 0.25 to 0.94, beside an axis with a mark at 7,500."


def good_page(text: str = GOOD, caption: str = CAPTION, alt: str = ALT) -> Page:
    drawn = {"axes": [{"x": {"label": "", "ticks": ["0", "7,500"]}, "lines": [{"x": {"values": ["888"]}}]}]}
    figure = new_output("display_data", {"image/svg+xml": ""}, metadata={"image/svg+xml": {"drawn": drawn}})
    output = new_output("stream", name="stdout", text="ratio: 0.9431\nall of them: yes\nnone of them: False\n")
    far = [new_code_cell("pass"), new_code_cell("far()", outputs=[new_output("stream", name="stdout", text="0.71\n")])]
    cells = [
        new_markdown_cell(text),
        new_code_cell("for step in range(50):\n    run(0.25, seeds=(0, 1, 2))  # not 99", outputs=[output]),
        new_code_cell("draw()", outputs=[figure], metadata={"mystnb": {"image": {"alt": alt}, "figure": {"caption": caption}}}),
        *far,
    ]
    return page_of("good", new_notebook(cells=cells))


@pytest.fixture(autouse=True)
def _quoted(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "rule" in request.fixturenames and "name" not in request.fixturenames:
        entry = {"figures": ["147.18"], "source": "haviv2022transformer", "what": "", "where": "", "checked": "no"}
        monkeypatch.setattr(pages, "quoted", lambda: {"test-key": entry})
        monkeypatch.setattr(prose, "quoted", lambda: {"test-key": entry})


def tied_as_in_notebooks(of: Page) -> list[str]:
    """ties_hold leaves notebooks to the rule tied_numbers, which has its own tests; here, the forms of this file."""
    text = "\n".join([of.text, *(caption for _, caption in of.captions)])
    return [problem for tie in pages.ties(text) if (problem := pages.problem(tie, of.lines))]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_accepts_a_good_page(rule: Rule) -> None:
    assert list(rule(good_page())) == []
    assert tied_as_in_notebooks(good_page()) == []


BROKEN: list[tuple[Callable[[Page], object], str, str, str]] = [
    (prose.numbers_are_held, "0.94<!--ratio-->, after", "0.94, after", "the prose's 0.94 (…The loss is 0.94, after"),
    (prose.numbers_are_held, "1,204<!--given--> tokens", "1,204 tokens", "the prose's 1,204"),
    (prose.numbers_are_held, "50 steps", "52 steps", "the prose's 52"),
    (prose.numbers_are_held, "45 minutes", "36 bytes", "the prose's 36"),
    (prose.numbers_are_held, "It follows.", "It is 888.", "the prose's 888"),
    (prose.numbers_are_held, "It is not.</s", "It is 9,431.</s", "the prose's 9,431"),
    (prose.numbers_are_held, "reaches 0.94<!--ratio-->", "reaches 0.94", "the caption of code cell 2's 0.94"),
    (prose.numbers_are_held, "rises from 0.25 to 0.94", "rises from 0.25 to 0.95", "the alt text of code cell 2: 0.95"),
    (prose.numbers_are_held, "from 0.25 to 0.94", "from 0.25 to 0.71", "the alt text of code cell 2: 0.71"),
    (prose.numbers_are_held, "at 7,500", "at 888", "the alt text of code cell 2: 888"),
    (prose.seeds_are_counted, "three seeds", "five seeds", "speaks of 5 seeds, and the page takes [3]"),
    (prose.directions_agree, "It follows.", "First.<!--at last = yes-->", "says 'first' where <!--at last = yes-->"),
    (prose.directions_agree, "It follows.", "It is behind<!--learned before = yes-->.", "says 'behind' where <!--learned"),
    (prose.directions_agree, "It follows.", "More than a third<!--below a third = yes-->.", "'more' instead of 'less'"),
    (prose.directions_agree, "It follows.", "Less than half<!--below a third = yes-->.", "'half' instead of 'third'"),
    (prose.directions_agree, "It follows.", "Its loss is lower<!--rope above alibi = yes-->.", "the opposite of <!--rope"),
    (prose.comparisons_hold, "It follows.", "It falls from 2<!--a--> to 3<!--b-->.", "'falls from 2 to 3': exchange"),
    (prose.comparisons_hold, "It follows.", "Of these, fewer hold: 3 instead of 2.", "'fewer hold: 3 instead of 2': exchange"),
    (prose.numbered_things_are_compared_by_a_cell, "It follows.", "Head 9 is steeper than head 1.", "hangs on nothing"),
    (
        prose.numbered_things_are_compared_by_a_cell,
        "It follows.",
        "Head 1 is steeper than head 9.<!--head 9 is steeper than head 1 = yes-->",
        "says 'Head 1 is steeper than head 9' of",
    ),
    (
        prose.numbered_things_are_compared_by_a_cell,
        "It follows.",
        "It's steeper: head 9 is flatter than head 1.<!--head 9 is steeper than head 1 = yes-->",
        "says 'head 9 is flatter than head 1' of",
    ),
    *(
        (prose.schemes_are_ranked_by_a_cell, "The curve reaches", f"{new} The curve reaches", message)
        for new, message in (
            ("RoPE has a lower loss than ALiBi.", "and hangs on nothing"),
            ("With T5 it stays, and Shaw gets worse<!--alibi rises = yes-->.", "names shaw before <!--alibi rises = yes-->"),
            ("RoPE has the highest loss<!--rope below t5 = yes-->.", "about rope"),
            ("ALiBi ends with the lower loss<!--rope better than alibi = yes-->.", "about alibi"),
        )
    ),
    (prose.links_lead_where_they_say, "[chapter 4]", "[chapter 5]", "[chapter 5] leads to chapter 4"),
    (prose.given_numbers_are_numbers, "It follows.", "It follows.<!--given-->", "stands behind no number"),
    (prose.quiz_is_decided, "**Yes.**<!--all of them = yes-->", "**Yes.**", "write **Yes.**<!--key = yes-->"),
    (prose.quiz_is_decided, "**Yes.**<!--reasoned-->", "**No.**<!--reasoned-->", "was the key swapped?"),
    (prose.quiz_is_decided, "**Yes.**<!--all of", "**No.**<!--all of", "**No.** stands before <!--all of them = yes-->"),
    (prose.quiz_is_decided, "**No.**<!--none", "**Yes.**<!--none", "**Yes.** stands before <!--none of them = no-->"),
    (prose.quiz_is_decided, "**No.**<!--none of them = no-->", "**No.**<!--ratio-->", "the line must say the same"),
    (tied_as_in_notebooks, "all of them = yes--> B", "all of them = no--> B", "but the output line says 'all of them: yes'"),
    (tied_as_in_notebooks, "none of them = no", "none of them = yes", "the output line says 'none of them: False'"),
    (tied_as_in_notebooks, "none of them = no", "some of them = no", "0 output lines begin with 'some of them'"),
    (tied_as_in_notebooks, "attention is faster = yes", "attention is faster = no", "attention is faster: yes'"),
    (tied_as_in_notebooks, "deeper/01_order: at 64", "deeper/01_ordre: at 64", "there is no page deeper/01_ordre"),
    (tied_as_in_notebooks, "147.18<!--", "148.18<!--", "but the source has 147.18"),
    (tied_as_in_notebooks, "147.18<!--", "147.1<!--", "but the source has 147.18"),
    (tied_as_in_notebooks, "quoted: test-key", "quoted: other", "book/quoted.toml has no other"),
    (tied_as_in_notebooks, "quoted: test-key", "quoted: test-key @2", "has 1 figures"),
    (tied_as_in_notebooks, "reaches 0.94", "reaches 0.95", "the prose's 0.95<!--ratio-->"),
    (tied_as_in_notebooks, "It follows.", "It follows.<!-- to do -->", "is no tie"),
    (prose.conclusions_are_tied, "learns it<!--all of them = yes-->", "learns it", "item 1 of the summary speaks of training"),
    (prose.other_pages_are_tied, "<!--deeper/01_order: at 64 words attention is faster = yes-->", "", "what chapter 1 found"),
    (prose.other_pages_are_tied, "Chapter 1 showed", "[Chapter 4](04_pendulums.ipynb) showed", "<!--04_pendulums: key"),
    (prose.other_pages_are_tied, "It follows.", "As was measured in chapter 5.", "<!--05_norm: key = yes-->"),
    (prose.citations_come_from_the_bibliography, "It follows.", "Vaswani et al. (2017) did.", "'Vaswani et al.' by hand"),
    (prose.citations_come_from_the_bibliography, "It follows.", "Su and Lu (2024) did.", "Su and Lu (2024) by hand"),
    (prose.citations_come_from_the_bibliography, "It follows.", "It is (Hugging Face, 2024).", "(Hugging Face, 2024) by"),
    (prose.citations_come_from_the_bibliography, "and Haviv's model", "and Shaw's model", "names Shaw beside"),
    (prose.citations_come_from_the_bibliography, "haviv2022t", "haviv2021t", "which references.bib does not have"),
    (prose.citations_come_from_the_bibliography, "learns.\n", "learns, in 2019.\n", "has the year 2019"),
    (prose.sources_are_those_of_what_is_named, "It follows.", "So does YaRN {cite:p}`su2024roformer`.", "is peng2024yarn"),
    (prose.sources_are_those_of_what_is_named, "It follows.", "[It](glossary.md#alibi) {cite:p}`su2024roformer`.", "for alibi"),
    (prose.works_are_cited_beside_their_subject, "It follows.", "It is {cite:p}`golovneva2024contextual`.", "nothing of this"),
    (prose.quotations_are_in_the_file, "147.18<!--quoted: test-key-->", "147.18", "147.18<!--quoted: key-->"),
    *(
        (prose.claims_about_the_field_name_their_scope, "It follows.", new, "without a scope")
        for new in (
            "No large model does it.",
            "Most language models do.",
            "Nobody has compared them.",
            "The newest models don't.",
            "Today's models do.",
        )
    ),
    (prose.quotations_are_in_the_file, "{cite:t}`haviv2022transformer` have", "They have", "does not cite haviv2022"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "old", "new", "message"), BROKEN, ids=[f"{rule.__name__}-{new}" for rule, _, new, _ in BROKEN]
)
def test_rule_reports(rule: Callable[[Page], list[str]], old: str, new: str, message: str) -> None:
    assert any(old in text for text in (GOOD, CAPTION, ALT)), f"the good page does not hold {old!r}"
    problems = list(rule(good_page(*(text.replace(old, new) for text in (GOOD, CAPTION, ALT)))))
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{su2024r", "{su2023r", "su2023roformer: the entry is by Su, 2024"),
        ("{su2024r", "{lu2024r", "lu2024roformer: the entry is by Su, 2024"),
        ("{guenther2023jina", "{guenter2023jina", "the entry is by Gunther, 2023"),
        ("in 2021 as arXiv:2104", "in 2020 as arXiv:2104", "an arXiv number of 2021 was not posted in 2020"),
        ("{arXiv:2310.13017}", "{arXiv:2210.13017}", "is of 2022, not of 2023"),
        ("P19-1285", "P18-1285", "is of 2018, not of 2019"),
        ("volume    = {36}", "volume    = {35}", "is of 2022, not of 2023"),
    ],
)
def test_bibliography_reports(old: str, new: str, message: str) -> None:
    text = (BOOK / "references.bib").read_text("utf-8")
    assert text.count(old) >= 1, f"references.bib does not hold {old!r}"
    problems = list(prose.keys_agree_with_entries(parse_string(text.replace(old, new), "bibtex")))
    assert any(message in problem for problem in problems), problems
