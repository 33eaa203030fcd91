"""Rules for what the pages say: numbers, ties, quizzes, links and citations agree with output lines and sources.

Each rule takes a page and yields its problems, each with a remedy. tests/pages/test_prose.py applies the rules.
"""

import functools
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pybtex.database import BibliographyData, parse_file

from tests.pages.pages import (
    BOOK,
    NOTEBOOKS,
    NUMBER,
    REASONED,
    SPELLED,
    TEXTS,
    Notebook,
    agrees,
    alt_texts,
    captions,
    code_cells,
    markdown,
    output_lines,
    printed_by,
    problem,
    quoted,
    read,
    section,
    ties,
    value,
    without_code,
)


class Page(NamedTuple):
    name: str
    text: str  # its prose, with comments
    captions: list[tuple[str, str]]
    alt_texts: list[tuple[str, str, frozenset[str]]]  # where, what, and the numbers in the figure's labels or printed beside it
    lines: list[str]  # what its cells print
    literals: frozenset[float]  # the numbers of its code
    seeds: frozenset[int]  # how many its loops take


Rule = Callable[[Page], Iterator[str]]


def page_of(name: str, notebook: Notebook) -> Page:
    cells = dict(code_cells(notebook))
    written = [_written_by(cell) for cell in cells.values()]
    beside = [
        before | own | after for before, own, after in zip([set(), *written], written, [*written[1:], set()], strict=False)
    ]
    near = dict(zip(cells, beside, strict=True))
    alts = [(where, alt, frozenset(near[where.removeprefix("the alt text of ")])) for where, alt in alt_texts(notebook)]
    literals = frozenset(number for cell in cells.values() for number in numbers_of_code(cell.source))
    seeds = frozenset(number for cell in cells.values() for number in seeds_of_code(cell.source))
    return Page(name, markdown(notebook), list(captions(notebook)), alts, output_lines(notebook), literals, seeds)


def _written_by(cell: Any) -> set[str]:
    """The numbers that a cell prints, or sets as labels and ticks of a figure; among its points any number can be found."""
    drawn = json.dumps([out.get("metadata", {}) for out in cell.outputs], ensure_ascii=False)
    texts = re.findall(r'"(?:text|label|title)": "(.*?)"', drawn) + re.findall(r'"ticks": \[(.*?)\]', drawn)
    return {number.lstrip("-−+") for text in [*texts, *printed_by(cell)] for number in re.findall(NUMBER, text)}


@functools.cache
def page_named(name: str) -> Page:
    if name in NOTEBOOKS:
        return page_of(name, read(NOTEBOOKS[name]))
    return Page(name, without_code(TEXTS[name].read_text("utf-8")), [], [], [], frozenset(), frozenset())


def numbers_of_code(source: str) -> Iterator[float]:
    lines = "\n".join("" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines())
    for token in tokenize.generate_tokens(io.StringIO(lines + "\n").readline):
        if token.type == tokenize.NUMBER and not token.string.lower().endswith("j"):
            yield float(int(token.string, 0) if token.string.lower().startswith(("0x", "0b", "0o")) else float(token.string))


# --- Numbers ---------------------------------------------------------------------------------------------------------

TIED = rf"({NUMBER})([^\w<>\n]{{0,4}})<!--(.*?)-->"
NAMED = (
    r"chapters?|tables?|figs?\.|figures?|sections?|§+|appendix|appendices|versions?|issues?|pull requests?|"
    r"parts?|cells?|exercises?|questions?|assignments?"
)
NO_RESULTS = [
    r"^```\{figure\} .*$",
    r"<!--.*?-->",
    r"\$\$.*?\$\$",
    r"\$[^$\n]*\$",
    r"`[^`\n]*`",
    r"\[\d+\]\([^)\n]*\)",  # a chapter's number, linked
    r"(?<=\])\([^)\n]*\)",  # where a link leads
    r"https?://\S+",
    r"<[^>\n]*>",
    r"^#+ .*$",
    r"^\*\*\d+\.(?= |\*\*)",
    r"^\| *\d+ *\|",  # a row's number
    rf"(?i)\b(?:{NAMED})\s*\[?[A-Z]?[\d.]+(?:(?:, | and | to |–|-)[\d.]+)*",
    r"#\d+",
    r"(?<![\d.,])(?:19|20)\d\d(?![\d.,]\d|\d)",  # years
    r"\b\d+(?:–\d+| to \d+)? (?:minutes|hours)\b",
    r"\b\d+\.\d+\.\d+\b",  # versions
    r"\b[A-Za-z]\w*-\d+\w*|\b\d+B-\w+",  # names of models
]


def plain(text: str) -> str:
    """A text without what holds no result: tied numbers, code, formulas, addresses, numbers of chapters, years."""
    text = re.sub(TIED, " ", text, flags=re.DOTALL)
    for pattern in NO_RESULTS:
        text = re.sub(pattern, " ", text, flags=re.DOTALL | re.MULTILINE)
    return text


def significant(number: str) -> int:
    return len(re.sub(r"[eE].*", "", number).translate({ord(sign): None for sign in "-−+,."}).lstrip("0"))


def counted(text: str) -> list[str]:
    return [number for number in re.findall(NUMBER, plain(text)) if significant(number) >= 2]


def key_of(text: str) -> str:
    """What of the inventory is measured: its questions set their own numbers."""
    return text.partition('<details class="solution">')[2]


def in_code(number: str, literals: frozenset[float]) -> bool:
    """The number is in the code, or is the last position of a sequence whose length is in the code."""
    size = abs(value(number))
    return size in literals or ("." not in number and size + 1 in literals)


# The table whose rows tests/formulas/test_conventions.py compares with models.
PUT_TO_MODELS = "| Implementation |"


def numbers_are_held(page: Page) -> Iterator[str]:
    """Numbers of two or more digits are tied or quoted, or are in the page's code (for a text: in the code of a linked page).

    Sentences with a citation have a stricter rule of their own. Alt texts can't contain comments: what they say is in the
    code, on the axes, or in the output of the figure's cell or of the cell before or after it.
    """
    ways = "{0}<!--key-->, or {0}<!--quoted: key--> if a source has it, or {0}<!--given--> if the text sets it"
    for where, text in [("the prose", page.text), *page.captions]:
        if page.name == "inventory":
            text = key_of(text)
        for block in re.split(r"\n\s*\n", text):
            if block.startswith(PUT_TO_MODELS):
                continue
            linked = re.findall(r"\(\S*?(\d\d_\w+)\.ipynb", block) if page.name in TEXTS else []
            literals = page.literals.union(*(page_named(name).literals for name in linked))
            for line in block.splitlines():
                for number in counted(line) if not re.search(CITE, line) else []:
                    if not in_code(number, literals):
                        yield f"{where}'s {number} ({_around(line, number)}) hangs on nothing: write {ways.format(number)}"
    for where, alt, near in page.alt_texts:
        for number in counted(alt):
            if not in_code(number, page.literals) and not any(agrees(number.lstrip("-−+"), found) for found in near):
                yield f"{where}: {number} is neither printed beside it nor in code nor on the axes: print it, or leave it out"


def _around(text: str, number: str) -> str:
    at = text.find(number)
    return "…" + " ".join(text[max(0, at - 25) : at + len(number) + 15].split()) + "…"


def ties_hold(page: Page) -> Iterator[str]:
    """A tied number or statement agrees with its output line."""
    found = ties("\n\n".join([page.text, *(caption for _, caption in page.captions)]))
    yield from filter(None, (problem(tie, page.lines) for tie in found))


def seeds_are_counted(page: Page) -> Iterator[str]:
    """ "Three seeds" is as many as a loop of the page takes, or a cell prints."""
    if page.name in TEXTS:
        return
    said = [(where, found) for where, text in [("the prose", page.text), *page.captions] for found in _seeds(text)]
    known = {number for line in page.lines for number in _seeds(line)} | page.seeds
    for where, number in said:
        if number not in known:
            yield f"{where} speaks of {number} seeds, and the page takes {sorted(known)}: correct it, or print their number"


def _seeds(text: str) -> set[int]:
    found = re.findall(r"(?i)\b(\w+)(?:<!--.*?-->)?\s+(?:random )?seeds\b", text)
    return {SPELLED.get(word.lower()) or int(word) for word in found if word.lower() in SPELLED or word.isdecimal()}


def seeds_of_code(source: str) -> Iterator[int]:
    for line in source.splitlines():
        if "seed" in line.lower():
            yield from (int(number) for number in re.findall(r"range\((\d+)\)", line))
            yield from (numbers.count(",") + 1 for numbers in re.findall(r"[(\[](\d+(?:, \d+)+)[)\]]", line))


# --- Quizzes and links ----------------------------------------------------------------------------------------------------


def options(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Question, option, Yes or No, and the comment after it, for each option of a quiz."""
    questions = re.split(r"^\*\*(\d+)\. .*\?\*\*\s*$", section(text, "quiz") or "", flags=re.MULTILINE)[1:]
    for number, body in zip(questions[::2], questions[1::2], strict=True):
        found = re.findall(
            r'<details class="quiz">\s*<summary>(.*?)</summary>\s*\*\*(Yes|No)\.\*\*(?:<!--(.*?)-->)?', body, re.DOTALL
        )
        yield from ((number, option.strip(), answer, comment) for option, answer, comment in found)


def quiz_is_decided(page: Page) -> Iterator[str]:
    """After **Yes.**, a tie names the line that says so, or says that it is reasoned; a line after **No.** says no."""
    for number, option, answer, comment in options(page.text):
        where = f"question {number} of the quiz, {option[:50]!r}"
        found = next(iter(ties(f"<!--{comment}-->")), None) if comment else None
        if answer == "Yes" and not comment:
            yield f"{where}: write **Yes.**<!--key = yes-->, the line that decides it, or **Yes.**<!--{REASONED}--> if none can"
        elif comment == REASONED and answer == "No":
            yield f"{where}: **No.** cannot be {REASONED}, only the right option is: was the key swapped?"
        elif found is not None and (not found.verdict or (found.verdict.lower() in ("no", "false")) != (answer == "No")):
            yield f"{where}: **{answer}.** stands before {found}: the line must say the same, or the comment stand further on"


def links_lead_where_they_say(page: Page) -> Iterator[str]:
    """[Chapter 7](07_base.ipynb) leads to chapter 7."""
    for where, text in [("the prose", page.text), *page.captions]:
        for said, number in re.findall(r"\[([^\]]*)\]\([^)\s]*?\b(\d\d)_\w+\.ipynb", text):
            for named in re.findall(r"(?i)chapter (\d+)", said):
                if int(named) != int(number):
                    yield f"{where}: [{said}] leads to chapter {int(number)}: correct the number, or the address"


# --- Sources ---------------------------------------------------------------------------------------------------------


@functools.cache
def bibliography() -> BibliographyData:
    return parse_file(str(BOOK / "references.bib"))


CITE = r"\{cite(?::\w+)?\}`([^`]*)`"


def cited(text: str) -> list[str]:
    return [key.strip() for keys in re.findall(CITE, text) for key in keys.split(",")]


def quotations_are_in_the_file(page: Page) -> Iterator[str]:
    """A number in a sentence that cites is tied, as a quoted figure or as our own; the figure's source is cited nearby."""
    for where, text in [("the prose", page.text), *page.captions]:
        if page.name == "inventory":
            text = key_of(text)
        for block in re.split(r"^#+ ", text, flags=re.MULTILINE):
            for found in ties(block):
                if found.page == "quoted" and found.key in quoted() and quoted()[found.key]["source"] not in cited(block):
                    yield f"{where}'s {found} does not cite {quoted()[found.key]['source']} in its section: cite it"
            for line in block.splitlines():
                for number in counted(line) if re.search(CITE, line) else []:
                    yield (
                        f"{where}'s {number} ({_around(line, number)}) stands in a sentence with a citation: write "
                        f"{number}<!--quoted: key--> and put it into book/quoted.toml, or tie it if it is ours"
                    )


RULES: list[Rule] = [
    numbers_are_held,
    ties_hold,
    seeds_are_counted,
    links_lead_where_they_say,
    quiz_is_decided,
    quotations_are_in_the_file,
]
PAGES = [*NOTEBOOKS, *(name for name in TEXTS if name not in ("api", "bibliography"))]
