"""Rules for what the pages say: every number, conclusion and citation is supported by an output line, a source or a reason.

Each rule takes a page and yields its problems, each with a remedy. tests/test_prose.py applies the rules, and breaks a good
page in every way that they detect.
"""

from __future__ import annotations

import functools
import io
import json
import re
import tokenize
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pybtex.database import BibliographyData, parse_file  # type: ignore[import-untyped]

from tests.pages import (
    BOOK,
    CHAPTERS,
    DEEPER,
    GIVEN,
    ITEM,
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


# The table whose rows tests/test_conventions.py compares with models.
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
    """A tied statement agrees with its output line. (A notebook's own rule, tied_numbers, is this and more.)"""
    if page.name in TEXTS:
        yield from filter(None, (problem(tie, []) for tie in ties(page.text)))


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


def given_numbers_are_numbers(page: Page) -> Iterator[str]:
    text = "\n".join([page.text, *(caption for _, caption in page.captions)])
    for before in re.findall(rf"(.{{0,20}})<!--{GIVEN}-->", text):
        if not re.search(rf"{NUMBER}[^\w<>\n]{{0,4}}$", before):
            yield f"…{before}<!--{GIVEN}--> stands behind no number: put it there, or take it away"


# --- What decides ----------------------------------------------------------------------------------------------------


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


OF_TRAINING = r"\b(?:train(?:s|ed|ing)?|learn(?:s|ed|t)?|loss(?:es)?|seeds?|in our|ours?|experiments?|nats|perplexity)\b"
NOT_OF_TRAINING = r"(?i)\blearned (?:positions?|tables?|encodings?|vectors?|numbers?|bias(?:es)?|mixture)\b|\btraining length\b"


def conclusions_are_tied(page: Page) -> Iterator[str]:
    """Conclusions from training are tied to a line, in summaries and in the misconceptions."""
    if page.name == "misconceptions":
        parts = re.split(r"^\*\*(\d+)\. .*\*\*$", page.text, flags=re.MULTILINE)
        items = [(f"entry {number}", body) for number, body in zip(parts[1::2], parts[2::2], strict=True)]
    else:
        listed = ITEM.findall(section(page.text, "summary") or "")
        items = [(f"item {number} of the summary", body) for number, body in enumerate(listed, start=1)]
    for where, body in items:
        if re.search(OF_TRAINING, re.sub(NOT_OF_TRAINING, "", body), re.IGNORECASE) and "<!--" not in body:
            yield f"{where} speaks of training and hangs on no line: tie a number, write <!--key = yes-->, or <!--{REASONED}-->"


_PAIRS = """before/ahead/sooner/earlier|after/behind/later more|less/fewer most|least better|worse best|worst fast|slow
faster|slower fastest|slowest first|last above|below over|under larger|smaller largest|smallest longer|shorter longest|shortest
higher|lower highest|lowest near|far nearer|farther nearest|farthest always|never rises|falls grows|shrinks same|different
wider|narrower widest|narrowest steeper|flatter steepest|flattest beyond|within positive|negative helps|harms"""
OPPOSITES = [[side.split("/") for side in pair.split("|")] for pair in _PAIRS.split()]


LESS, MORE = r"less|fewer|lower|smaller|shorter", r"more|higher|larger|longer|greater"
# What is above another is more than it; and a bound of the same quantity is either lower or upper.
RANKS = {"below": (LESS, MORE), "above": (MORE, LESS)}
PARTS = r"half|two thirds|three quarters|nine tenths|(?:third|quarter|fifth|sixth|eighth|tenth|hundredth|thousandth)s?"
BOUNDS = {"less": "(?:less|fewer) than|below|under|at most", "more": "more than|above|over|at least"}


def bounds(text: str) -> dict[str, set[str]]:
    """ "Less than a third" is the bound "less" of a third."""
    quantity = rf"(?:an? )?({PARTS}|{NUMBER})\b"
    return {side: {*re.findall(rf"\b(?:{words}) {quantity}", text.lower())} for side, words in BOUNDS.items()}


def sentences(text: str) -> list[str]:
    """Each with the ties behind it."""
    text = re.sub(r"</summary>\s*\*\*(?:Yes|No)\.\*\*", " ", text)  # the tie that decides a quiz option is on the option
    text = re.sub(r"([.!?])(\**)((?:<!--[^>]*-->)+)", r"\3\1\2", text)
    return re.split(r"(?<=[.!?])\**\s+|\n\s*\n|^[-*|] ", text, flags=re.MULTILINE)


def directions_agree(page: Page) -> Iterator[str]:
    """If a line says "before" and the sentence tied to it says "after", the sentence was reversed."""
    for where, text in [("the prose", page.text), *page.captions]:
        for sentence in sentences(text):
            words = re.sub(r"<!--.*?-->", " ", sentence, flags=re.DOTALL).lower()
            said = {*re.findall(r"[a-z]+", words)}
            for found in ties(sentence):
                for reversed_bound in _bounds_disagree(bounds(words), bounds(found.key)):
                    yield f"{where} says {reversed_bound} of {found}: correct the sentence"
            for found in (tie for tie in ties(sentence) if tie.verdict):
                printed = {*re.findall(r"[a-z]+", f"{found.key} {found.verdict}".lower())}
                for one, other in [*OPPOSITES, *(pair[::-1] for pair in OPPOSITES)]:
                    reverse = said.intersection(other) if not said.intersection(one) else set()
                    if reverse and (of_line := printed.intersection(one)) and not printed.intersection(other):
                        yield f"{where} says {min(reverse)!r} where {found} says {min(of_line)!r}: correct the sentence"
                rank = re.search(rf"\b(above|below) (?!{PARTS}|an? )[a-z]", found.key) if found.verdict == "yes" else None
                same, opposite = RANKS[rank[1]] if rank else ("", "")
                if rank and re.search(rf"\b(?:{opposite})\b", words) and not re.search(rf"\b(?:{same}|{rank[1]})\b", words):
                    yield f"{where} says the opposite of {found}: correct the sentence"


def _bounds_disagree(said: dict[str, set[str]], printed: dict[str, set[str]]) -> Iterator[str]:
    for side, other in (("less", "more"), ("more", "less")):
        if reverse := printed[side] & said[other] - said[side]:
            yield f"{other!r} instead of {side!r}"
        of_line, of_text = ({part for part in parts[side] if not re.search(r"\d", part)} for parts in (printed, said))
        if of_line and of_text and not of_line & of_text and not reverse:
            yield f"{min(of_text)!r} instead of {min(of_line)!r}"


RISES = r"rises?|rose|grows?|grew|increases?|climbs?|raised?s?"
FALLS = r"falls?|fell|shrinks?|shrank|drops?|decreases?|sinks?|sank|lowers?"
FROM_TO = rf"\b({RISES}|{FALLS})\b[^.;:!?]*?(?<!distances )(?<!excess )\bfrom ({NUMBER})[^.;:!?\d]{{0,25}}? to ({NUMBER})"
NOT_COMPARED = rf"(?:(?!\b(?:{LESS}|{MORE})\b)[^.;!?])"
INSTEAD = rf"\b({LESS}|{MORE})\b{NOT_COMPARED}{{0,80}}?[,:] ({NUMBER})[^.;!?\d]{{0,40}}? instead of ({NUMBER})"


def comparisons_hold(page: Page) -> Iterator[str]:
    """ "It falls from 2 to 3" and "fewer: 3 instead of 2" are wrong whatever a cell prints; keys may have been exchanged."""
    for where, text in [("the prose", page.text), *page.captions]:
        text = re.sub(r"<!--.*?-->|(?<=\])\([^)\n]*\)", "", text, flags=re.DOTALL)
        steps = [(re.fullmatch(RISES, verb), value(last) - value(first)) for verb, first, last in re.findall(FROM_TO, text)]
        steps += [(re.fullmatch(MORE, word), value(this) - value(that)) for word, this, that in re.findall(INSTEAD, text)]
        for (upward, by), found in zip(steps, [*re.finditer(FROM_TO, text), *re.finditer(INSTEAD, text)], strict=True):
            if by == 0 or bool(upward) != (by > 0):
                yield f"{where} says {' '.join(found[0].split())!r}: exchange the numbers, or correct the direction"


THING = r"(?:buckets?|channels?|clocks?|columns?|hands?|heads?|layers?|pairs?|rows?|seeds?)"
THAN_NUMBERED = (
    rf"(?i)\b{THING} \d+ (?!than)[^.:;!?]{{0,60}}?\b(?:\w{{2,}}er|more|less)\b"
    rf"[^.:;!?]{{0,40}}?\bthan [^.,:;!?]{{0,20}}?{THING} \d+"
)


def numbered_things_are_compared_by_a_cell(page: Page) -> Iterator[str]:
    """ "Head 9 is steeper than head 1" hangs on a line, which rules for words and directions then hold against it."""
    for where, text in [("the prose", page.text), *page.captions]:
        for sentence in sentences(text):
            said = re.search(THAN_NUMBERED, " ".join(re.sub(r"<!--.*?-->", " ", sentence, flags=re.DOTALL).split()))
            if said and "<!--" not in sentence:
                yield f"{where} says {said[0]!r}, which hangs on nothing: print it, and write <!--key = yes-->"
            for found in ties(sentence):
                of_line = re.search(THAN_NUMBERED, found.key)
                if said and of_line and _compared(said[0]) != _compared(of_line[0]):
                    yield f"{where} says {said[0]!r} of {found}: correct the sentence"


def _compared(comparison: str) -> tuple[list[str], set[int]]:
    """The numbers, smaller one first, and whether the words of each pair of opposites put the first above the second."""
    numbers, words = re.findall(r"\d+", comparison), {*re.findall(r"[a-z]+", comparison.lower())}
    reverse = numbers != sorted(numbers, key=int)
    signs = {
        place if bool(words.intersection(one)) != reverse else -place
        for place, (one, other) in enumerate(OPPOSITES, start=1)
        if words.intersection(one + other)
    }
    return sorted(numbers, key=int), signs


# How sentences and output lines name the schemes, and what says that one of them has the lower or the higher loss.
SCHEME = {
    "none": r"without positions?|no positions?|none(?! of)",
    "learned": r"learned(?= one| table|,| worse| better| before| behind)",
    "sinusoidal": r"sinusoid\w*",
    **{name: name for name in ("normalized", "linear", "shaw", "t5", "rope", "alibi")},
}
RANKED = r"(?i)\b(?:lowest|highest|best|worst|lower|higher|better|worse)\b"
LOWER = {"lowest", "lower", "better", "best", "below", "ahead"}, {"highest", "higher", "worse", "worst", "above", "behind"}


def _schemes(text: str) -> dict[str, str]:
    """The schemes in the order in which the text names them last, each with the words after it."""
    found = re.finditer("|".join(rf"(?P<{name}>\b(?:{words})\b)" for name, words in SCHEME.items()), text, re.IGNORECASE)
    return {match.lastgroup or "": text[match.end() :] for match in found}


def _sense(text: str) -> int:
    """1 if the words say that a loss is lower, -1 if higher, and 0 if they say both or neither."""
    lower, higher = (bool({*re.findall(r"[a-z]+", text.lower())} & words) for words in LOWER)
    return lower - higher


def schemes_are_ranked_by_a_cell(page: Page) -> Iterator[str]:
    """In captions and on slides, a sentence that ranks schemes hangs on lines about those that are named before each tie."""
    slides = page.name in TEXTS and TEXTS[page.name].parent.name == "decks"
    for where, text in [*([("a slide", page.text)] if slides else []), *page.captions]:
        for sentence in sentences(text):
            words = " ".join(re.sub(r"<!--.*?-->", " ", sentence, flags=re.DOTALL).split())
            held = [tie for tie in ties(sentence) if tie.page != "quoted"]
            if re.search(RANKED, words) and len(_schemes(words)) > 1 and not held:
                yield f"{where} ranks schemes ({words[:90]}), and hangs on nothing: tie it to the lines that rank them"
            for clause, comment in re.findall(r"([^>]*)<!--(.*?)-->", sentence, re.DOTALL):
                named, known = _schemes(clause), [*_schemes(comment)]
                last, says = [*named.items()][-1] if named else ("", "")
                if named and known and last not in known:
                    yield f"{where} names {last} before <!--{comment}-->, which is about {known}: correct one of them"
                elif named and known and "loss" in words:
                    sense = _sense(comment) if last == known[0] else -_sense(comment)
                    if sense * _sense(says) < 0:
                        yield f"{where} says the opposite of <!--{comment}--> about {last}: correct the sentence"


FOUND = r"(?:shows?|showed|has shown|measured|found|proved|proves|counted|tested|trained|saw|has the measurement)"
CHAPTER_FOUND = (
    rf"[Cc]hapter (\d+)(?:[’']s \w+| and \w+)? {FOUND}\b"
    r"|(?<!is )(?<!are )\b(?:shown|measured|found|proved|counted|tested) (?:in|by) [Cc]hapter (\d+)"
)


def other_pages_are_tied(page: Page) -> Iterator[str]:
    """A sentence about another chapter's result is tied to that chapter's line, or is marked as reasoned."""
    for line in (key_of(page.text) if page.name == "inventory" else page.text).splitlines():
        unlinked = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line)
        for number in filter(None, (of or by for of, by in re.findall(CHAPTER_FOUND, unlinked))):
            other = next((name for name in CHAPTERS if name.startswith(f"{int(number):02d}_")), f"{number}_?")
            held = re.search(rf"<!--(?:(?:deeper/)?{other}: |{REASONED}-->)", line)
            if other != page.name and not held:
                yield (
                    f"{' '.join(line.split())[:90]!r} says what chapter {number} found: tie it to that page, "
                    f"<!--{other}: key = yes--> or a number, or write <!--{REASONED}--> if it was derived there"
                )


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


def bare(name: str) -> str:
    """A surname as it may appear in prose: without braces and LaTeX's accents, and with plain letters."""
    name = re.sub(r"\\[a-zA-Z]+(?![a-zA-Z])|\\[^a-zA-Z]|[{}]", "", name)
    return "".join(sign for sign in unicodedata.normalize("NFKD", name) if not unicodedata.combining(sign))


def surnames(key: str) -> list[str]:
    return [
        bare(" ".join(person.prelast_names + person.last_names)) for person in bibliography().entries[key].persons["author"]
    ]


CITE = r"\{cite(?::\w+)?\}`([^`]*)`"


def cited(text: str) -> list[str]:
    return [key.strip() for keys in re.findall(CITE, text) for key in keys.split(",")]


def citations_come_from_the_bibliography(page: Page) -> Iterator[str]:
    """Authors and years aren't written by hand: a role prints them from the entry, and names beside a role match the entry."""
    entries = bibliography().entries
    for where, text in [("the prose", page.text), *page.captions]:
        for line in text.splitlines():
            keys = cited(line)
            for key in keys:
                if key not in entries:
                    yield f"{where} cites {key}, which references.bib does not have: correct the key, or add the entry"
            shown = re.sub(rf"`[^`\n]*`|(?<=\])\([^)\n]*\)|{CITE}", " ", line)
            for name in re.findall(r"\b[A-Z][\w’'-]+(?: and [A-Z]\w+)?(?:,? et al\.?)", shown):
                yield f"{where} has {name!r} by hand: write {{cite:t}}`key`, which takes the names from references.bib"
            for name, year in re.findall(r"\b([A-Z]\w+(?: and [A-Z]\w+)?) ?\(((?:19|20)\d\d)\)", shown):
                yield f"{where} has {name} ({year}) by hand: write {{cite:t}}`key`, which takes the year from references.bib"
            for name, year in re.findall(r"\(([A-Z][^()\d]*), ((?:19|20)\d\d)\b", shown):
                yield f"{where} has ({name}, {year}) by hand: write {{cite:t}}`key`, which takes both from references.bib"
            known = {name for key in keys if key in entries for name in surnames(key)}
            years = {entries[key].fields["year"] for key in keys if key in entries}
            if not keys:
                continue
            for name in re.findall(r"\b([A-Z]\w+)(?:'s|’s)? (?:and colleagues|and others|et al)", shown):
                if bare(name) not in known:
                    yield f"{where} names {name} beside {keys}, who did not write it: correct the name or the key"
            for name in re.findall(r"(?<=[a-z,;] )\b([A-Z][a-z]\w+)\b", shown):
                if name in FIRST_AUTHORS and name not in known:
                    yield f"{where} names {name} beside {keys}, who did not write it: cite {FIRST_AUTHORS[name]} too"
            for year in re.findall(r"\b(?:in|of|from|since) ((?:19|20)\d\d)\b(?! tokens| words| bytes| of)", shown):
                if year not in years and year not in " ".join(str(entries[key].fields) for key in keys if key in entries):
                    yield f"{where} has the year {year} beside {keys}, of {sorted(years)}: correct it, or move the citation"


@functools.cache
def _first_authors() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in bibliography().entries:
        found.setdefault(surnames(key)[0], []).append(key)
    return found


FIRST_AUTHORS = _first_authors()


def keys_agree_with_entries(data: BibliographyData) -> Iterator[str]:
    """Author and year of a key are the entry's, and so is the year in an arXiv number, an ACL address or a volume."""
    for key, entry in data.entries.items():
        year = entry.fields["year"]
        fields = {name: entry.fields[name] for name in entry.fields}
        author = entry.persons["author"][0]
        surname = " ".join(author.prelast_names + author.last_names)
        names = {
            re.sub(r"[^a-z]", "", form.lower()) for form in (bare(surname), bare(re.sub(r'\\"\{?([aou])', r"\1e", surname)))
        }
        form = r"[a-z0-9]+?" if not author.first_names else "|".join(sorted(names))  # an organisation has none
        if not re.fullmatch(rf"(?:{form}){year}[a-z0-9]*", key):
            yield f"{key}: the entry is by {bare(surname)}, {year}: write author, year and a word of the title"
        for stated, number in re.findall(r"First posted in (\d{4}) as arXiv:(\d\d)", fields.get("note", "")):
            if stated != f"20{number}":
                yield f"{key}: an arXiv number of 20{number} was not posted in {stated}: correct the note"
        of = {f"20{number}" for number in re.findall(r"^arXiv:(\d\d)", fields.get("note", ""))}
        where = " ".join(fields.get(name, "") for name in ("doi", "url", "booktitle"))
        of |= {f"20{number}" for number in re.findall(r"\b[A-Z](\d\d)-\d{4}\b", where)}
        of |= {
            number
            for found in re.findall(r"v1/(20\d\d)\.|EMNLP (20\d\d)|the (20\d\d) Conference", where)
            for number in found
            if number
        }
        if "Advances in Neural" in where:
            of.add(str(int(fields["volume"]) + 1987))
        if of - {year}:
            yield f"{key}: its address or volume is of {', '.join(sorted(of))}, not of {year}: correct one of them"


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


@functools.cache
def methods() -> dict[str, str]:
    """The keys of the entries whose titles begin with a name and a colon, such as YaRN's, by this name."""
    titles = {bare(entry.fields["title"]): key for key, entry in bibliography().entries.items()}
    return {found[1]: key for title, key in titles.items() if (found := re.match(r"([A-Z]\w*[A-Z][\w-]*)[^:]*:", title))}


@functools.cache
def sources_of_terms() -> dict[str, set[str]]:
    """What the glossary cites, by the ends of its entries' addresses."""
    _, *parts = re.split(r"^### (.+?)\n", TEXTS["glossary"].read_text("utf-8"), flags=re.MULTILINE)
    addresses = (re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in parts[::2])
    return {address: {*cited(body)} for address, body in zip(addresses, parts[1::2], strict=True)}


def sources_are_those_of_what_is_named(page: Page) -> Iterator[str]:
    """ "YaRN {cite:p}`…`" cites the paper with this name; a term with its source has the one of the glossary."""
    for where, text in [("the prose", page.text), *page.captions]:
        for name, keys in re.findall(rf"([\w-]+)[*)\s(,]+{CITE}", text):
            if methods().get(name, keys) not in keys:
                yield f"{where} cites {keys} for {name}, and the paper is {methods()[name]}: correct the key"
        for sentence in re.split(r"(?<=[.!?])\s+|\n", text):
            keys = {*cited(sentence)}
            for address in re.findall(r"glossary\.md#([\w-]+)", sentence):
                known = sources_of_terms().get(address, set())
                if keys and known and not keys & known:
                    yield f"{where} cites {sorted(keys)} for {address}, and the glossary {sorted(known)}: correct one of them"


# Cited in brackets beside nothing of what their titles say.
SUBJECT_NOT_NAMED = {
    "tsai2019transformer": "attention as a kernel, cited for the mask",
    "elman1990finding": "the simple recurrent network",
    "weng2023transformer": "an overview, cited for a slip",
    "guenther2023jina": "an encoder with ALiBi's two-sided form",
    "zhang2026group": "cited for its table of averages",
    "sun2023length": "xPos, which its title doesn't name",
}


def _beginnings(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z0-9]{3,}", bare(re.sub(CITE, " ", text)).lower())}


def _sections(text: str) -> list[str]:
    return re.split(r"^#+ ", text, flags=re.MULTILINE)


@functools.cache
def common_beginnings() -> frozenset[str]:
    """Those in more than 8 % of all sections, which say little about a subject."""
    found = [_beginnings(part) for name in PAGES for part in _sections(page_named(name).text)]
    counts = Counter(word for words in found for word in words)
    return frozenset(word for word, count in counts.items() if count > 0.08 * len(found))


def works_are_cited_beside_their_subject(page: Page) -> Iterator[str]:
    """In a chapter, or on the page below it, a work that is cited once, in brackets, shares a rarer word with its section."""
    if page.name in {*PAGES} - {*CHAPTERS, *DEEPER}:
        return
    chapter = page.name.removeprefix("deeper/")
    pair = [page.text, *(page_named(name).text for name in {chapter, f"deeper/{chapter}"} & {*NOTEBOOKS} - {page.name})]
    times = Counter(key for text in pair for key in cited(text))
    for part in _sections(page.text):
        for keys in re.findall(r"\{cite:p\}`([^`]*)`", part):
            for key in (key.strip() for key in keys.split(",")):
                if key in SUBJECT_NOT_NAMED or times[key] > 1 or key not in bibliography().entries:
                    continue
                title = bibliography().entries[key].fields["title"]
                if not _beginnings(" ".join([title, *surnames(key)])) & _beginnings(part) - common_beginnings():
                    yield (
                        f"the prose cites {key} ({title}) in a section with nothing of this title: correct the key, or, if "
                        "it's right, say why in SUBJECT_NOT_NAMED in tests/prose.py"
                    )


# What newer models can overtake …
_KIND = r"(?:(?:large|language|released|recent|new|known|current|modern|other|such)\ )*"
FIELD = rf"""(?ix) \b (?: no\ {_KIND}(?:model|library|LLM)s? | (?:most|few|many)\ {_KIND}(?:models|libraries|LLMs)
    | (?:recent|newest|modern|current|latest)\ (?:language\ )?(?:models|schemes|LLMs)
    | nobody\ (?:has\ (?!told)|knows|uses|does) | today(?:['’]s)? | nowadays | to\ date ) \b"""
# … and what says which models are meant, or up to when it holds.
SCOPE = r"""(?ix) \b (?: (?:19|20)\d\d | (?:in|of|on)\ \[?(?:the|our|this)\ \[?(?:\w+\ )?(?:table|page) | our | here
    | of\ the\ (?:\w+\ )?\d+ ) \b"""


def claims_about_the_field_name_their_scope(page: Page) -> Iterator[str]:
    """ "No model …" may be false next month, so the sentence says which models it means, or as of which month and year."""
    for where, text in [("the prose", page.text), *page.captions]:
        said = re.sub(r"<!--.*?-->|\]\([^)\n]*\)|^\([\w-]+\)=$", "", without_code(text), flags=re.MULTILINE)
        for sentence in sentences(said):
            if (found := re.search(FIELD, sentence)) and not re.search(SCOPE, sentence):
                yield (
                    f"{where} has {found[0]!r} without a scope ({' '.join(sentence.split())[:90]}): name the models, "
                    "such as the N of the table, or the month and year of which it is true"
                )


RULES: list[Rule] = [
    numbers_are_held,
    ties_hold,
    given_numbers_are_numbers,
    seeds_are_counted,
    directions_agree,
    comparisons_hold,
    numbered_things_are_compared_by_a_cell,
    schemes_are_ranked_by_a_cell,
    links_lead_where_they_say,
    quiz_is_decided,
    conclusions_are_tied,
    other_pages_are_tied,
    citations_come_from_the_bibliography,
    quotations_are_in_the_file,
    sources_are_those_of_what_is_named,
    works_are_cited_beside_their_subject,
    claims_about_the_field_name_their_scope,
]
PAGES = [*NOTEBOOKS, *(name for name in TEXTS if name not in ("api", "bibliography"))]
