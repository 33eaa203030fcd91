"""The pages of the book as the tests read them: their prose, what their cells print, and the ties between the two.

A tie is a comment, invisible to readers, directly after the statement that it supports; CONTRIBUTING.md has its forms:

    0.94<!--key-->                     the first number after ``key`` in the one output line that begins with it
    0.94<!--key @2-->                  its second number
    It holds.<!--key = yes-->          that line says yes (or True), or the words after the equals sign
    1.87<!--12_lengths: key @7-->      a line of another page, in either form
    147.18<!--quoted: no-positions-->  a figure of a source, from book/quoted.toml
    1,204<!--given-->                  no result: the text assumes it, as the premise of a question
    It follows.<!--reasoned-->         no output decides it: it follows from what comes before it
"""

import functools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbformat.v4.rwbase import rejoin_lines

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
# Reference pages and chapters by their names, the pages below chapters as deeper/01_order.
NOTEBOOKS = {
    f"deeper/{path.stem}" if path.parent.name == "deeper" else path.stem: path for path in sorted(BOOK.rglob("*.ipynb"))
}
CHAPTERS = {name: path for name, path in NOTEBOOKS.items() if re.match(r"\d\d_", name)}
DEEPER = {name: path for name, path in NOTEBOOKS.items() if name.startswith("deeper/")}
TEXTS = {path.stem: path for path in sorted(BOOK.rglob("*.md"))}

Notebook = Any  # nbformat's NotebookNode: attributes for keys


def read(path: Path) -> Notebook:
    """Read a notebook as it is: nbformat.read would repair some of the faults that the rules look for."""
    return rejoin_lines(nbformat.from_dict(json.loads(path.read_text("utf-8"))))


def code_cells(notebook: Notebook) -> Iterator[tuple[str, Any]]:
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    yield from ((f"code cell {number}", cell) for number, cell in enumerate(cells, start=1))


def tags(cell: Any) -> list[str]:
    return list(cell.metadata.get("tags", []))


# An item of a list, without the goals, which readers tick.
ITEM = re.compile(r"^(?:[-*]|\d+\.) (?!\[ \] )(.*(?:\n +.*)*)", re.MULTILINE)


def without_code(text: str) -> str:
    """Prose without blocks of code, in which # begins no heading."""
    return re.sub(r"^(`{3,})(?!\{).*?^\1`*\s*$", "", text, flags=re.MULTILINE | re.DOTALL)


def markdown(notebook: Notebook) -> str:
    return without_code("\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown"))


def captions(notebook: Notebook) -> Iterator[tuple[str, str]]:
    for where, cell in code_cells(notebook):
        caption = cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "")
        if caption:
            yield f"the caption of {where}", caption


def alt_texts(notebook: Notebook) -> Iterator[tuple[str, str]]:
    for where, cell in code_cells(notebook):
        alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        if alt:
            yield f"the alt text of {where}", alt


def section(text: str, word: str) -> str | None:
    """The text under the first heading that contains ``word``, up to the next heading of the same or a higher level."""
    found = re.search(rf"^(#+) [^\n]*\b{word}\w*\b[^\n]*$(.*)", text, re.MULTILINE | re.DOTALL | re.IGNORECASE)
    if not found:
        return None
    return re.split(rf"^#{{1,{len(found[1])}}} ", found[2], maxsplit=1, flags=re.MULTILINE)[0]


def minutes_of(notebook: Notebook) -> float:
    """150 words a minute, 12 lines of code, a minute for each prediction, and what the exercises say that they take."""
    words = lines = 0
    for cell in notebook.cells:  # what is folded isn't read
        if cell.cell_type == "markdown":
            words += len(re.findall(r"[A-Za-z][A-Za-z'’-]*", prose_of(cell.source)))
        elif not {"hide-input", "hide-cell"} & {*tags(cell)}:
            lines += sum(1 for line in cell.source.splitlines() if line.strip())
    text = markdown(notebook)
    predictions = len(re.findall(r"^:class: predict", text, re.MULTILINE))
    tried = sum(int(minutes) for minutes in re.findall(r"^\((\d+) minutes", section(text, "exercise") or "", re.MULTILINE))
    return words / 150 + lines / 12 + predictions + tried


def prose_of(text: str) -> str:
    """A cell's running text, without folded parts, quizzes, code, formulas, comments, headings, addresses and options."""
    text = re.sub(r'<details class="(?:quiz|solution|hint)">.*?</details>', " ", without_code(text), flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|\$\$.*?\$\$|<living-figure.*?</living-figure>|<[^>]{1,200}>", " ", text, flags=re.DOTALL)
    return re.sub(r"\$[^$\n]*\$|`[^`\n]*`|^:.*$|^#+ .*$|\{[a-z:]+\}|\]\([^)\n]*\)", " ", text, flags=re.MULTILINE)


def printed_by(cell: Any) -> list[str]:
    texts = [output.get("text", "") + "\n" + output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return [line.strip() for text in texts for line in text.splitlines()]


def output_lines(notebook: Notebook) -> list[str]:
    return [line for _, cell in code_cells(notebook) for line in printed_by(cell)]


@functools.cache
def printed(name: str) -> list[str]:
    """The stored outputs of a page's cells."""
    return output_lines(read(NOTEBOOKS[name]))


@functools.cache
def quoted() -> dict[str, dict[str, Any]]:
    """The figures that pages quote, by their keys."""
    return tomllib.loads((BOOK / "quoted.toml").read_text("utf-8"))


# --- Numbers ---------------------------------------------------------------------------------------------------------

NUMBER = r"(?<![\w.,])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-−+]?\d+)?"


SPELLED = {word: number for number, word in enumerate("two three four five six seven eight nine ten eleven twelve".split(), 2)}


def value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def agrees(number: str, with_: str) -> bool:
    """Whether ``number``, as it is written, is ``with_`` at the precision of the former."""
    digits, _, exponent = number.replace("−", "-").lower().partition("e")
    step = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(value(number) - value(with_)) <= step * (0.5 + 1e-9)


# --- Ties ------------------------------------------------------------------------------------------------------------


class Tie(NamedTuple):
    number: str  # empty if there is none before the comment
    comment: str
    page: str  # empty for the page itself
    key: str
    place: int  # 0 if the text after @ isn't a position
    verdict: str  # empty for a tie of a number

    def __str__(self) -> str:
        return f"{self.number}<!--{self.comment}-->"


WORDS_OF_VERDICTS = {"true": "yes", "false": "no"}


def tie(number: str, comment: str) -> Tie:
    text = " ".join(comment.split(" ")).strip()
    page = re.match(r"([\w/]+): +(?=\S)", text)
    where = page[1] if page and (page[1] in NOTEBOOKS or page[1] == "quoted" or re.match(r"(deeper/)?\d\d_", page[1])) else ""
    key = text[page.end() :] if page and where else text
    says = re.search(r" = ([A-Za-z][^:<>=]*)$", key)
    if says:
        return Tie("", comment, where, key[: says.start()].strip(), 1, says[1].strip())
    key, _, which = (part.strip() for part in key.partition("@"))
    return Tie(number, comment, where, key, int(which or 1) if re.fullmatch(r"[1-9]?\d?", which) else 0, "")


def ties(text: str) -> list[Tie]:
    found = re.findall(rf"({NUMBER})?([^\w<>\n]{{0,4}})<!--(.*?)-->", text, re.DOTALL)
    return [tie(number, comment) for number, _, comment in found if comment not in (GIVEN, REASONED)]


GIVEN, REASONED = "given", "reasoned"


def verdict(line: str, key: str) -> str:
    """What the line says after its key, or before it: yes or no, also for True and False."""
    before = re.match(rf"(yes|no|True|False)\s+(?={re.escape(key)})", line)
    says = before[1] if before else line[len(key) :].strip(" :=,.")
    first = re.match(r"\w*", says)
    word = first[0].lower() if first else ""
    word = WORDS_OF_VERDICTS.get(word, word)
    return word if word in ("yes", "no") else says


def lines_of(key: str, lines: list[str]) -> list[str]:
    """The lines that begin with a key; a yes or no may come before it."""
    return [line for line in lines if re.match(rf"((yes|no|True|False)\s+)?{re.escape(key)}(?=[\s:=,.]|$)", line)]


def problem(of: Tie, lines: list[str]) -> str | None:
    """What is wrong with a tie, if anything; ``lines`` are what the cells of its own page print."""
    if not of.key or not of.place or not (of.number or of.verdict):
        return (
            f"the prose's {of} is no tie: write number<!--key-->, number<!--key @2--> or <!--key = yes-->; "
            "other comments have no place in a page"
        )
    if of.page == "quoted":
        return _problem_quoted(of)
    if of.page:
        if of.page not in NOTEBOOKS:
            return f"the prose's {of}: there is no page {of.page}: correct the tie"
        lines = printed(of.page)
    if of.verdict:
        found = lines_of(of.key, lines)
        if len(found) != 1:
            return _count(of, found)
        says, wanted = verdict(found[0], of.key), WORDS_OF_VERDICTS.get(of.verdict.lower(), of.verdict)
        if not re.match(rf"{re.escape(wanted)}(?!\w)", says):
            return f"the prose's {of}, but the output line says {found[0]!r}: correct the sentence, then the tie"
        return None
    found = [line for line in lines if re.match(rf"{re.escape(of.key)}(?=[\s:=])", line)]
    if len(found) != 1:
        return _count(of, found)
    numbers = re.findall(NUMBER, found[0][len(of.key) :])
    if len(numbers) < of.place:
        return (
            f"the prose's {of}: the output line {found[0]!r} has no number {of.place} after its key: "
            "print it, or correct the tie"
        )
    if not agrees(of.number, numbers[of.place - 1]):
        return (
            f"the prose's {of}, but the output line says {found[0]!r}: correct the prose, or, if the output is wrong, the cell"
        )
    return None


def _count(of: Tie, found: list[str]) -> str:
    return f"the prose's {of}: {len(found)} output lines begin with {of.key!r}, it must be one: print it, or correct the key"


def _problem_quoted(of: Tie) -> str | None:
    if of.key not in quoted():
        return f"the prose's {of}: book/quoted.toml has no {of.key}: add it with its source, or correct the key"
    figures = quoted()[of.key]["figures"]
    if of.verdict or len(figures) < of.place:
        return f"the prose's {of}: {of.key} has {len(figures)} figures, and each is tied as a number: correct the tie"
    if not agrees(of.number, figures[of.place - 1]):
        return f"the prose's {of}, but the source has {figures[of.place - 1]}: correct the prose, or book/quoted.toml"
    return None
