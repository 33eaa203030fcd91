"""README, CONTRIBUTING and the package's page with its docstrings describe the repository correctly.

The numbers in README, index, guide and plans are right: the table FACTS has the words around each number.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
import statistics
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from posenc_course.experiment import PRESETS
from posenc_course.experiment.config import MULTIPLES, SCHEMES
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.recital import NUMBERS
from posenc_course.schemes import PositionScheme
from tests import pages
from tests.commands import ROOT, run
from tests.test_claims import CLAIMS
from tests.test_recite import wrong


def public_modules() -> list[str]:
    """All that readers import, by their names in the package; not the checks, which they meet in the exercises."""
    import posenc_course

    names = (info.name.partition(".")[2] for info in pkgutil.walk_packages(posenc_course.__path__, "posenc_course."))
    return [name for name in names if not re.search(r"(^|\.)_|^checks\.", name)]


def test_every_public_module_has_its_place_on_the_page_of_the_package() -> None:
    page = (ROOT / "book/reference/api.md").read_text()
    for name in {*public_modules()} - {"plotting", "checks"}:  # these have pages of their own kind: figures, exercises
        assert f"automodule:: posenc_course.{name}\n" in page, f"book/reference/api.md lacks {name}: add it under its door"


def test_modules_and_main_names_are_attributes_of_the_package() -> None:
    """Those that README imports from the modules, and every scheme; torch is imported with the first of them."""
    import posenc_course

    asked = (
        "import sys, posenc_course as p; assert 'rope' in dir(p); assert 'torch' not in sys.modules; p.rope.apply_rope, p.yarn"
    )
    done = run(sys.executable, "-c", asked)
    assert done.returncode == 0, done.stderr
    modules = {name: importlib.import_module(f"posenc_course.{name}") for name in public_modules() if "." not in name}
    readme = re.findall(r"^from posenc_course\.(\w+) import (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    main = [(module, name) for module, names in readme if module != "experiment" for name in names.split(", ")]
    main += [
        (module, name)
        for module, inside in modules.items()
        for name, value in vars(inside).items()
        if inspect.isclass(value)
        and issubclass(value, PositionScheme)
        and value.__module__ == inside.__name__
        and name[0] != "_"
    ]
    assert {*main} > {("rope_scaling", "yarn"), ("schemes", "PositionScheme")}
    lacks = [f"{name} to {module!r}" for module, name in main if name not in dir(posenc_course)]
    assert not lacks, f"posenc_course/__init__.py: in _HOMES, add {', '.join(lacks)}"
    for module, name in main:
        assert getattr(posenc_course, name) is getattr(modules[module], name)
        assert {module, name} <= {*dir(posenc_course)}
    with pytest.raises(AttributeError, match=r"no 'rop': dir\(posenc_course\) lists"):
        posenc_course.rop  # noqa: B018


def test_one_map_says_which_chapter_introduces_a_module() -> None:
    """The docstring of the package maps names to chapters; if chapters are renumbered, this map changes."""
    import posenc_course

    line = r"^    (\w+) {2,}\S.*?(?:\(chapters? (\d\d)(?: (?:and|to) (\d\d))?\))?$"
    lines = re.findall(line, posenc_course.__doc__ or "", re.MULTILINE)
    modules = {name for name in public_modules() if "." not in name}
    missing = modules - {name for name, *_ in lines}
    assert not missing, (
        f"the docstring of posenc_course/__init__.py lacks {missing}: add a line for each, in the order of the book"
    )
    assert len(lines) == len(modules), "the map names a module that doesn't exist, or one twice"
    chapters = {file[5:7] for file in re.findall(r"book/\d\d_\w+", (ROOT / "_toc.yml").read_text())}
    for name, *named in lines:
        assert {*filter(None, named)} <= chapters, f"{name}: the map names a chapter that _toc.yml does not have"


@pytest.mark.parametrize("file", ["README.md", "CONTRIBUTING.md", "exercises/README.md"])
def test_what_a_guide_names_exists(file: str) -> None:
    text, makefile = (ROOT / file).read_text(), (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for target in re.findall(r"(?:`|^)make\s+([a-z-]+)", text, re.MULTILINE):
        assert target in targets, f"{file} names make {target}, which the Makefile doesn't have: it has {sorted(targets)}"
    for path in re.findall(r"\]\(([^):#]+)\)|`((?:tests|tools|book|posenc_course)/[\w./]+)", text):
        named = (ROOT / file).parent / "".join(path)
        assert named.exists(), f"{file} names {''.join(path)}, which doesn't exist: correct it"


def test_readme_code_runs() -> None:
    for block in re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block, "README.md", "exec"), {})


# --- What the guides count ---------------------------------------------------------------------------------------------------

README, USE, INDEX, BUGS = "README.md", "book/how_to_use.md", "book/index.md", "book/reference/bugs.ipynb"
CLASSROOM, PLANS, SINUSOID = "book/teaching/classroom.md", "book/teaching/plans.md", "book/03_sinusoidal.ipynb"
PAPER = "paper/paper.md"
CHAPTERS = {name: pages.markdown(pages.read(path)) for name, path in pages.CHAPTERS.items()}
TITLES = {name: re.findall(r"^# (.*)$", text, re.MULTILINE)[0] for name, text in CHAPTERS.items()}
ASSIGNMENTS = [path.read_text("utf-8") for path in sorted((ROOT / "exercises/source").rglob("*.ipynb"))]
EXERCISES = [len(re.findall(r'"## Exercise \d:', text)) for text in ASSIGNMENTS]
LASTS, POINTS = zip(*(map(int, re.findall(r" (\d+) minutes, (\d+) points\.", text)[0]) for text in ASSIGNMENTS), strict=True)


def count(file: str, pattern: str) -> int:
    return len(re.findall(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE))


def read_in(file: str, pattern: str) -> list[str]:
    """The groups of a pattern that a file has once."""
    (found,) = re.finditer(pattern, (ROOT / file).read_text("utf-8"))
    return list(found.groups())


RECITE = json.loads((DATA / "recite.json").read_text("utf-8"))


def wrote_by(scheme: str) -> list[list[int]]:
    """Of each training, how many bytes are right before the first wrong one, by the number that it begins with."""
    return [run["evaluation"]["wrote"] for run in RECITE["runs"] if run["scheme"] == scheme]


def fallen() -> list[int | None]:
    """Where the models of the film make their first mistake."""
    return [wrong(RECITE["written"][scheme]) for scheme in ("learned", "sinusoidal", "rope")]


def minutes(name: str) -> int:
    return int(re.findall(r"Time: (\d+) minutes", CHAPTERS[name])[0])


def chapters_that_read_trainings() -> list[int]:
    """Those whose cells, or those of the page below, read what a tool has trained."""
    tools = {path.stem for path in (ROOT / "tools/lab").glob("*.py")} - {"corpus"}
    stored = [path.name for path in (ROOT / "posenc_course/data").glob("*.json") if path.stem in tools]
    pages_of = {
        name: pages.read(path).cells for name, path in pages.NOTEBOOKS.items() if name.removeprefix("deeper/") in CHAPTERS
    }
    return sorted(
        {
            int(name.removeprefix("deeper/")[:2])
            for name, cells in pages_of.items()
            if any(file in cell.source for cell in cells for file in stored if cell.cell_type == "code")
        }
    )


def digits() -> int:
    """The precision of the benchmark, and of every test that takes more digits than float64 has."""
    files = [ROOT / "tools/lab/bench.py", *(ROOT / "tests").glob("test_*.py")]
    (found,) = {found for path in files for found in re.findall(r"workdps\((\d+)\)", path.read_text("utf-8"))}
    return int(found)


def row(name: str) -> list[int]:
    return [int(name[:2]), minutes(name)]


def rubrics() -> list[int]:
    """The points of the answers in words."""
    cells = [cell for text in ASSIGNMENTS for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    graders = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    return sorted({grader["points"] for grader in graders if grader.get("grade")})


def items(text: str, heading: str, mark: str = "- ") -> int:
    """Without the goals, which readers tick."""
    return len(
        re.findall(rf"^{re.escape(mark)}(?!\[ \])", pages.section(pages.without_code(text), heading) or "", re.MULTILINE)
    )


def released_pairs() -> int:
    """Of the released model, those whose speed was changed alone."""
    runs = json.loads((DATA / "released/scan.json").read_text("utf-8"))["runs"]
    return len({run["setting"]["pairs"][0] for run in runs if len(run["setting"]["pairs"]) == 1})


def patience() -> list[str]:
    """In seconds, what a check allows each call of an answer."""
    return read_in("posenc_course/checks/_sandbox.py", r'PATIENCE", "(\d+)"')


def weeks() -> int:
    return count(PLANS, "^### Session") // 2


def parts_and_weeks() -> list[int]:
    return [count(PLANS, "^### Part"), weeks()]


SHORT_ROUTE = [
    next(name for name in TITLES if int(name[:2]) == int(number))
    for number in re.findall(r"\d+", read_in(INDEX, r"hours: chapters (.*?)\.")[0])
]


class Fact(NamedTuple):
    file: str
    words: str  # with {} for each number
    numbers: Callable[[], Any]  # one, or a list


def doors() -> int:
    """Methods of a scheme, apart from the one that says which positions the doors get, and the one that `print` calls."""
    return len({name for name, value in vars(PositionScheme).items() if callable(value)} - {"locate", "extra_repr"})


FACTS = [
    *(
        Fact(file, words.format(title=title, name=name), partial(int, name[:2]))
        for name, title in TITLES.items()
        for file, words in [(README, "{{}}. [{title}](book/{name}.ipynb)"), (INDEX, "[Chapter {{}}: {title}]({name}.ipynb)")]
    ),
    *(Fact(PLANS, f"| {{}}. [{title}](../{name}.ipynb) | {{}} |", partial(row, name)) for name, title in TITLES.items()),
    Fact(INDEX, "learned to count to {} from", lambda: NUMBERS.count(",")),
    Fact(INDEX, "texts of {} letters", lambda: RECITE["config"]["length"]),
    Fact(INDEX, "only the last {} letters", lambda: RECITE["config"]["length"]),
    Fact(INDEX, "after its first {} letters", lambda: int(*read_in("book/living/recites.js", r"HIDDEN = (\d+)"))),
    Fact(INDEX, "was trained {} times, and this is the first", lambda: len(RECITE["config"]["seeds"])),
    Fact(INDEX, "{} of the three ALiBi models makes mistakes", lambda: sum(min(wrote) < 512 for wrote in wrote_by("alibi"))),
    Fact(INDEX, "short route of about {} hours", lambda: round(sum(map(minutes, SHORT_ROUTE)) / 60)),
    Fact(README, "learned table turns red at letter {}, that of sinusoids at letter {}, that of RoPE at letter {}", fallen),
    Fact(README, "## {} commands", lambda: count(README, r"^make \w+ +# ")),
    Fact(README, "With Python {} to {}, pip", lambda: read_in(".github/workflows/pages.yml", r'python: \["(\S+)", "(\S+)"\]')),
    Fact(README, "With Python {} to", lambda: read_in("pyproject.toml", r'requires-python = ">=(\S+)"')),
    Fact(README, "errors against {} digits", digits),
    Fact(README, "`full` for {} seeds", lambda: len(PRESETS["full"].seeds)),
    Fact(README, "[{} claims](book/reference/claims.ipynb)", lambda: len(CLAIMS)),
    Fact(README, "a lecture, {} sessions, a week and {} weeks", parts_and_weeks),
    Fact(README, "waves and buckets against {} digits", digits),
    Fact(README, "through one of {} doors", doors),
    Fact(README, "at up to {} times the training length", lambda: MULTIPLES[-1]),
    Fact(README, "nats per byte at T, {}T, {}T, {}T", lambda: MULTIPLES[1:]),
    Fact(README, "whose results chapters {}, {}, {}, {} and {} read", chapters_that_read_trainings),
    Fact(USE, "There are {} ways to run", lambda: items(guide(USE), "Run it", "**")),
    Fact(USE, "You need Python {} or later", lambda: read_in("pyproject.toml", r'requires-python = ">=(\S+)"')),
    Fact(USE, "You answer {} more question in words", lambda: {text.count("*Rubric.*") for text in ASSIGNMENTS}),
    Fact(USE, "is one of {} things", lambda: count(USE, "^: ")),
    Fact(USE, "at least {} random starts", lambda: len(PRESETS["full"].seeds)),
    Fact(INDEX, "at which {} points a position can enter", doors),
    Fact(INDEX, "{} published implementations", partial(count, SINUSOID, '"def (?:first|second|third|fourth)[(]')),
    Fact(INDEX, "down into {} terms", lambda: CHAPTERS["09_relative"].count(r"\underbrace")),
    Fact(INDEX, "{} schemes trained alike and given {} times the length", lambda: [len(SCHEMES), MULTIPLES[-1]]),
    Fact(INDEX, "find the two of its {} pairs", released_pairs),
    Fact(INDEX, "has {} functions that were wrong in public", lambda: count(BUGS, r'"### \d+\. ')),
    Fact(INDEX, "grew out of {} explanations", lambda: len({claim[0] for claim in CLAIMS})),
    Fact(INDEX, "collects {} of their claims", lambda: len(CLAIMS)),
    Fact(INDEX, "and {} question to answer in words", lambda: {text.count("*Rubric.*") for text in ASSIGNMENTS}),
    Fact(INDEX, "a lecture, {} sessions, a week and {} weeks", parts_and_weeks),
    Fact(INDEX, "a chapter takes {} minutes or so", lambda: statistics.median_low(map(minutes, CHAPTERS))),
    Fact(CLASSROOM, "an assignment: {} to {} exercises", lambda: [min(EXERCISES), max(EXERCISES)]),
    Fact(CLASSROOM, "exercises, {} to {} minutes", lambda: [min(LASTS), max(LASTS)]),
    Fact(CLASSROOM, "minutes, {} points or so", lambda: statistics.median_low(POINTS)),
    Fact(CLASSROOM, "hasn't returned after {} seconds", patience),
    Fact(CLASSROOM, "didn't return within {} seconds", patience),
    Fact(CLASSROOM, "on a fresh copy, with {} students", lambda: count("tests/test_classroom.py", r"\bhand_in\(root, ")),
    Fact(CLASSROOM, "A cell has {} minute", lambda: int(*read_in("exercises/nbgrader_config.py", r"\.timeout = (\d+)")) // 60),
    Fact(CLASSROOM, "a rubric of {} or {} points", rubrics),
    Fact(CLASSROOM, "{} things ensure this", lambda: items(guide(CLASSROOM), "withstands")),
    Fact(PLANS, "## The {} chapters", lambda: len(CHAPTERS)),
    Fact(PLANS, "these {} steps", lambda: count(PLANS, r"^\d\. ")),
    Fact(PLANS, "## {} sessions in somebody", lambda: count(PLANS, "^### Part")),
    Fact(PLANS, "do assignment 1: {} minutes", lambda: minutes("01_order") + minutes("03_sinusoidal") + LASTS[0]),
    Fact(PLANS, "## One week: {} sessions", lambda: count(PLANS, "^### Day")),
    Fact(PLANS, "has {} sessions of 90 minutes, one a day", lambda: count(PLANS, "^### Day")),
    Fact(PLANS, "## {} weeks:", weeks),
    Fact(PLANS, "weeks: {} sessions", lambda: count(PLANS, "^### Session")),
    Fact(PLANS, "assignments, of {} to {} minutes", lambda: [min(LASTS), max(LASTS)]),
    Fact(PLANS, "Each assignment has {} to {} exercises", lambda: [min(EXERCISES), max(EXERCISES)]),
    Fact(PLANS, "two of the {} cases", lambda: count(BUGS, r'"### \d+\. ')),
    Fact(PLANS, "{} functions that were wrong in public", lambda: count(BUGS, r'"### \d+\. ')),
    Fact(PLANS, "{} claims, each with a verdict", lambda: len(CLAIMS)),
    Fact(PLANS, "has {} items at most", lambda: max(items(text, "summary") for text in CHAPTERS.values())),
    Fact(PLANS, "examples of {} kinds", lambda: items(guide(PLANS), "project")),
    Fact(PAPER, "consists of {} chapters", lambda: len(CHAPTERS)),
    Fact(PAPER, "collects {} claims", lambda: len(CLAIMS)),
    Fact(PAPER, "has {} such bugs", lambda: count(BUGS, r'"### \d+\. ')),
    Fact(PAPER, "as {} sessions in a course on language processing, as a week, or as a seminar of {} weeks", parts_and_weeks),
    Fact(PAPER, "inventory of {} questions", lambda: count("book/reference/misconceptions.md", r"^\*\*\d+\. ")),
]  # fmt: skip


def guide(file: str) -> str:
    return re.sub(r"<!--.*?-->", "", (ROOT / file).read_text("utf-8"))


def places(fact: Fact) -> str:
    return re.escape(fact.words).replace(r"\{\}", r"([\w.,-]*\w)").replace(r"\ ", r"\s+")


@pytest.mark.parametrize("fact", FACTS, ids=[f"{of.file}-{of.words}" for of in FACTS])
def test_a_guide_counts_right(fact: Fact) -> None:
    """As it is now; in words or in digits."""
    found = [*re.finditer(places(fact), guide(fact.file))]
    numbers = fact.numbers()
    wanted = [str(number) for number in (numbers if isinstance(numbers, (list, tuple, set)) else [numbers])]
    assert found, (
        f"{fact.file} does not say {fact.words.format(*wanted)!r}: write it there, or, if the page has other words for it now, "
        "correct its row of FACTS in tests/test_docs.py"
    )
    for place in found:
        said = [str(pages.SPELLED.get(number.lower(), number)) for number in place.groups()]
        assert said == wanted, f"{fact.file} says {place[0]!r}, and it is {', '.join(wanted)}: correct it"


# Numbers that nothing here can count.
EXCUSED = {
    README: {"4.0": "a licence", "twenty": "minutes on two cores"},
    INDEX: {"10": "a chapter", "12": "one", "13": "one", "17": "one", "2024": "a year", "2026": "one", "ninety": "seconds"}
    | dict.fromkeys(("ten", "eleven", "twelve", "sixteen"), "what the models of the first picture say"),
}


@pytest.mark.parametrize("file", [README, USE, INDEX])
def test_every_number_of_a_guide_is_counted(file: str) -> None:
    text = re.sub(r"```python.*?```|\]\([^)]*\)|\$[^$\n]*\$", " ", counted_out(file), flags=re.DOTALL)
    words = "|".join(word for word, of in pages.SPELLED.items() if of >= 10)
    found = re.findall(rf"(?<![\w.,])\d[\d.,]*\d(?!\w)|(?i:\b(?:{words})\b)", text)
    left = sorted({*found} - {*EXCUSED.get(file, {})})
    assert not left, f"{file} has the numbers {left}, which no row of FACTS holds: add one, or excuse them with the reason"


def counted_out(file: str) -> str:
    text = guide(file)
    for fact in FACTS:
        text = re.sub(places(fact), " ", text) if fact.file == file else text
    return text


def test_a_session_takes_as_long_as_the_plans_say() -> None:
    tables = re.findall(r"^\| minutes \| what happens \|\n.*\n((?:\| \d+ \|.*\n)+)", guide(PLANS), re.MULTILINE)
    assert len(tables) == 1 + count(PLANS, "^### (?:Day|Part|Session)")
    said = {int(minutes) for minutes in re.findall(r"(?:sessions|lecture) of (\d+) minutes", guide(PLANS))}
    assert {sum(map(int, re.findall(r"^\| (\d+)", table, re.MULTILINE))) for table in tables} == said


def chapters_in(text: str) -> set[int]:
    """Of "chapters 5 to 7" and of "chapter 10, 8 and 9"."""
    first_and_last = re.findall(r"(\d+) to (\d+)", text)
    return {int(number) for number in re.findall(r"\d+", text)}.union(*(range(int(a), int(b)) for a, b in first_and_last))


def test_a_session_is_of_the_chapters_that_it_names() -> None:
    """In its heading, its rows, their links, and what is assigned; and an earlier day that it repeats is of its chapters."""
    plans, *_ = guide(PLANS).partition("\n### A project")
    parts = re.split(r"^### (Day|Part|Session) (\d+): .*?\((.*)\)$", plans, flags=re.MULTILINE)
    days: dict[str, set[int]] = {}
    for kind, number, heading, body in zip(*(parts[first::4] for first in range(1, 5)), strict=True):
        named = chapters_in(heading)
        days |= {number: named} if kind == "Day" else {}
        told = {int(chapter) for chapter in re.findall(r"(?:\(\.\./(?:deeper/)?|\| Chapter )(\d+)", body)}
        assert told == named, f"{kind} {number} is of the chapters {named}, and its rows are of {told}"
        for row in re.findall(r"^\| \d+ \| (.*)", body, re.MULTILINE):
            of = {int(chapter) for chapter in re.findall(r"^\W*Chapter (\d+)", row)}
            assert chapters_in(" ".join(re.findall(r"\(\.\./(?:deeper/)?(\d\d)_", row))) <= (of or named), (
                f"{kind} {number}: {row}"
            )
            for day in re.findall(r"As on day (\d)", row):
                assert (of or named) <= days[day], f"{kind} {number}: day {day} is of the chapters {days[day]}"
        assigned, _, exercises = re.findall(r"^Assigned: (.*)", body, re.MULTILINE)[0].partition("assignment")
        reads = chapters_in(assigned)
        assert reads in (named, set()) or (kind == "Part" and reads < named), (
            f"{kind} {number} assigns other chapters than {named}"
        )
        assert chapters_in(exercises) <= named, f"{kind} {number} has another chapter's assignment"


def test_the_chapters_meet_the_questions_that_lead_to_them() -> None:
    rows = re.findall(r"^\| (\d+)\. .*\| ([\d, ]+) \| assignment (\d+) \|$", guide(PLANS), re.MULTILINE)
    listed = re.findall(r"^\| (\d+)\. \[", guide(PLANS), re.MULTILINE)  # test_a_guide_counts_right says which chapter isn't
    assert [(chapter, assignment) for chapter, _, assignment in rows] == [(chapter, chapter) for chapter in listed], (
        f"{PLANS}: each row of the chapters ends with the questions of the inventory that it answers, or a space, and with its "
        "assignment: | 7, 12 | assignment 3 |"
    )
    meets = {int(chapter): chapters_in(numbers) for chapter, numbers, _ in rows}
    key = guide("book/teaching/inventory.md").partition('<details class="solution">')[2]
    _, *parts = re.split(r"^\*\*(\d+)\.\*\* ", key, flags=re.MULTILINE)
    for question, told in zip(parts[::2], parts[1::2], strict=True):
        for line in re.findall(r"^\[(?:Chapter|Deeper).*", told, re.MULTILINE):
            for chapter in re.findall(r"\(\.\./(?:deeper/)?(\d\d)_", line):
                assert int(question) in meets[int(chapter)], f"{PLANS}: chapter {int(chapter)} meets question {question} too"
