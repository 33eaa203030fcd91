"""What the committed notebooks must hold, read without running them, and how texts become notebooks; nbval runs them.

Each rule takes a notebook and yields its problems.
"""

import functools
import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.pages.pages import (
    CHAPTERS,
    DEEPER,
    ITEM,
    NOTEBOOKS,
    ROOT,
    Notebook,
    code_cells,
    markdown,
    minutes_of,
    output_lines,
    read,
    section,
    tags,
)
from tools.book import text as texts

# Cells whose output nbval does not compare: live training and timing. Few, and each on purpose.
IGNORED_CELLS = {
    "deeper/01_order": 1,
    "02_naive": 7,
    "05_norm": 2,
    "deeper/05_norm": 2,
    "deeper/08_learned": 1,
    "09_relative": 4,
    "11_alibi": 3,
    "16_reach": 1,
    "claims": 1,
    "newer": 1,
}
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
INSTALL = f"# %pip install matplotlib posenc_course-{VERSION}-py3-none-any.whl"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
TAGS = {"as-table", "hide-input", "hide-cell", "nbval-ignore-output", "raises-exception"}
EXECUTE = "make execute CHAPTER=…"

Rule = Callable[[Notebook], Iterator[str]]


# --- The rules ---------------------------------------------------------------------------------------------------


def valid(notebook: Notebook) -> Iterator[str]:
    for error in nbformat.validator.iter_validate(notebook):
        yield f"not a valid notebook: {error.message[:200]}: mend it, or restore the committed one"
    for cell_id, count in Counter(cell.get("id") for cell in notebook.cells).items():
        if count > 1:
            yield f"{count} cells have the id {cell_id}: give each another one"


def executed(notebook: Notebook) -> Iterator[str]:
    for number, (where, cell) in enumerate(code_cells(notebook), start=1):
        if cell.execution_count != number:
            yield f"{where} has the execution count {cell.execution_count} instead of {number}: {EXECUTE}"


def metadata(notebook: Notebook) -> Iterator[str]:
    if notebook.metadata != METADATA:
        yield f"the notebook's metadata are {notebook.metadata} instead of {METADATA}: {EXECUTE}"
    for number, cell in enumerate(notebook.cells, start=1):
        where = f"cell {number} of all"
        if stray := set(tags(cell)) - TAGS:
            yield f"{where} has the tag {', '.join(sorted(stray))}: only {', '.join(sorted(TAGS))} may be used"
        if "attachments" in cell or cell.cell_type == "raw":
            yield f"{where} is raw or has attachments: use markdown, with pictures as files or as a cell's output"


def outputs(notebook: Notebook) -> Iterator[str]:
    for where, cell in code_cells(notebook):
        kinds = [output.output_type for output in cell.outputs]
        raises = "raises-exception" in tags(cell)
        if ("error" in kinds) != raises:
            yield f"{where} {'is tagged raises-exception but stores no' if raises else 'stores an'} error: mend it, {EXECUTE}"
        traceback = "\n".join(line for output in cell.outputs for line in output.get("traceback", []))
        if "site-packages" in str(cell.outputs) or re.search(r"File (\x1b\[[\d;]*m)*/", traceback):
            yield f"{where} stores a path of the machine that ran it: print less, for example only the error's message"
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield f"{where} wrote to stderr: mend what it warns of, let a progress bar write with file=sys.stdout, {EXECUTE}"
        if cell.source.rstrip().endswith(";"):
            yield f"{where} ends with a semicolon, which nbval's run does not honour: end a plot with plt.show()"
        for output in cell.outputs:
            text = output.get("data", {}).get("text/plain", "") + output.get("text", "")
            echo = output.output_type == "execute_result" and re.match(r"[\[(]*(Text\(|<(matplotlib|Figure|Axes))", text)
            if echo or re.search(r" at 0x[0-9a-f]{6,}", text):
                yield f"{where} shows an object, {text[:40]!r}: end a plot with plt.show(), print what you mean, {EXECUTE}"


def figures(notebook: Notebook) -> Iterator[str]:
    for where, cell in code_cells(notebook):
        images = [out for out in cell.outputs if any(mime.startswith("image/") for mime in out.get("data", {}))]
        myst = cell.metadata.get("mystnb", {})
        if not images:
            if {"figure", "image"} & {*myst}:
                yield f"{where} has a caption or an alt text but stores no figure: {EXECUTE}, or take them away"
            continue
        if len(images) > 1:
            yield f"{where} draws {len(images)} figures, one caption cannot tell them apart: one figure for each cell"
        alt = myst.get("image", {}).get("alt", "").strip()
        if len(alt) < 30 or re.search(r"\.(png|svg|jpe?g)\b", alt):
            yield f"{where} has the alt text {alt!r}: mystnb: image: alt must say what is seen, in 30 characters or more"
        if not myst.get("figure", {}).get("caption", "").strip():
            yield f"{where} has no caption: mystnb: figure: caption must say what the figure finds"
        name = myst.get("figure", {}).get("name", "")
        if not re.fullmatch(r"fig-[a-z0-9-]+", name):
            yield f"{where} has the figure name {name!r}: mystnb: figure: name must be fig-…, in small letters"
        for output in images:
            if "drawn" not in output.metadata.get("image/svg+xml", {}):
                yield (
                    f"{where} draws a figure without the data it draws: show a matplotlib figure as SVG, after "
                    f"posenc_course.plotting.use_style() in the first cell, then {EXECUTE}"
                )


def install(notebook: Notebook) -> Iterator[str]:
    for _, cell in list(code_cells(notebook))[:1]:
        if INSTALL not in cell.source.splitlines():
            yield f"the first code cell lacks this line, exactly: {INSTALL}"


def shape(notebook: Notebook) -> Iterator[str]:
    cells = list(notebook.cells)
    first_code = next((index for index, cell in enumerate(cells) if cell.cell_type == "code"), None)
    if first_code is None:
        yield "there is no code cell: a chapter runs what it says"
        return
    top = "\n\n".join(cell.source for cell in cells[:first_code])
    if not re.match(r"(\([\w-]+\)=\s+)?# \S", top):
        yield "the first cell does not begin with the chapter's title: '# …'"
    if not re.search(r"^# .*\n\nGoal: \S.*\.\nTime: \d+ minutes\.", top, re.MULTILINE):
        yield "the title is not followed by two lines of one paragraph: 'Goal: …' in a sentence, and 'Time: … minutes.'"
    predictions = [
        index
        for index, cell in enumerate(cells)
        if cell.cell_type == "markdown" and re.search(r"^(#+|[`:]{3,}\{\w+\})[^\n]*\bPredict", cell.source, re.MULTILINE)
    ]
    if not any(cell.cell_type == "code" for index in predictions[:1] for cell in cells[index + 1 :]):
        yield "no heading or admonition titled 'Predict…' comes before a code cell that settles it"
    text = markdown(notebook)
    exercise = section(text, "exercise")
    if exercise is None or not re.search(r'<details class="solution">\s*<summary>Solution</summary>', exercise):
        yield 'no section headed "Exercise" has a solution: <details class="solution"><summary>Solution</summary>'
    summary = section(text, "summary")
    items = ITEM.findall(summary or "")
    if not 1 <= len(items) <= 5:
        yield f'the section headed "Summary" has {len(items)} list items: it must have one to five'
    if not re.search(r"^- \[ \] \S", summary or "", re.MULTILINE):
        yield 'the section headed "Summary" has no goals to tick: - [ ] …'


def options_of(kind: str, body: str) -> list[tuple[str, str]]:
    """Options that are written as they must be, each with its reason."""
    pattern = rf'^<details class="{kind}">\s*<summary>(.*?)</summary>\n\n(.*?)</details>'
    return re.findall(pattern, body, re.MULTILINE | re.DOTALL)


def reasons(where: str, options: list[tuple[str, str]]) -> Iterator[str]:
    if (right := sum(reason.strip().startswith("**Yes.**") for _, reason in options)) != 1:
        yield f"{where} has {right} options that begin with **Yes.**: it must be one"
    for option, reason in options:
        if not re.match(r"\*\*(Yes|No)\.\*\*(?:<!--[^<>]*-->)?\s+\S.{9,}", reason.strip(), re.DOTALL):
            yield f"{where}, {option.strip()!r}: begin with **Yes.** or **No.**, then say why"


def quiz(notebook: Notebook) -> Iterator[str]:
    text = markdown(notebook)
    questions = re.split(r"^\*\*(\d+)\. .*\?\*\*\s*$", section(text, "quiz") or "", flags=re.MULTILINE)[1:]
    if not questions:
        yield 'no section headed "Quiz" has a question: **1. …?**'
    found = 0
    for number, body in zip(questions[::2], questions[1::2], strict=True):
        options = options_of("quiz", body)
        found += len(options)
        if len(options) < 2:
            yield f"question {number} of the quiz has {len(options)} options: it needs two or more"
        yield from reasons(f"question {number} of the quiz", options)
    if (written := len(re.findall(r"<details[^>]*quiz", text))) != found:
        yield (
            f"{written - found} options of the quiz are not written as they must be: under a question of the quiz, "
            '<details class="quiz"> at the line\'s beginning, <summary>…</summary>, an empty line, the reason, </details>'
        )


def guesses(notebook: Notebook) -> Iterator[str]:
    """Each prediction has options with a reason each, one of them right, and a name for the list at the page's end."""
    for title, body in re.findall(
        r"^:::+\{admonition\} ([^\n]*)\n:class: predict\n(.*?)^:::", markdown(notebook), re.MULTILINE | re.DOTALL
    ):
        where = f"the prediction {title!r}"
        if not re.match(r"Predict: \S", title):
            yield f"{where} has no name: title it 'Predict: ' and what it is about, in a few words"
        options = options_of("guess", body)
        if len(options) != 3 or len(options) != body.count("<details"):
            yield f"{where} has {len(options)} options: write three like those of a quiz, as details of class guess"
        yield from reasons(where, options)


def minutes(notebook: Notebook) -> Iterator[str]:
    counted = max(5, 5 * round(minutes_of(notebook) / 5))
    if f"Time: {counted} minutes" not in markdown(notebook):
        yield f"a careful reader takes about {counted} minutes: say 'Time: {counted} minutes' at the top"


RULES: list[Rule] = [valid, executed, metadata, outputs, figures, install]
CHAPTER_RULES: list[Rule] = [shape, quiz, guesses, minutes]


# --- The book ----------------------------------------------------------------------------------------------------


def rules_of(name: str) -> list[Rule]:
    if name in DEEPER:
        return [*RULES, minutes]
    return [*RULES, *CHAPTER_RULES] if name in CHAPTERS else RULES


@functools.lru_cache(maxsize=1)  # one after the other, each has some ten rules
def stored(name: str) -> Notebook:
    return read(NOTEBOOKS[name])


@pytest.mark.parametrize(
    ("name", "rule"),
    [(name, rule) for name in NOTEBOOKS for rule in rules_of(name)],
    ids=lambda part: part if isinstance(part, str) else part.__name__,
)
def test_notebook(name: str, rule: Rule) -> None:
    problems = [f"{name}: {problem.replace('CHAPTER=…', f'CHAPTER={name}')}" for problem in rule(stored(name))]
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)


def test_table_of_contents() -> None:
    listed = re.findall(r"^\s*(?:- file|root):\s*(\S+)", (ROOT / "_toc.yml").read_text("utf-8"), re.MULTILINE)
    chapters = [name for name in listed if re.match(r"book/\d\d_", name)]
    assert chapters, "_toc.yml lists no chapter: add - file: book/01_order"
    stored = [path.relative_to(ROOT).with_suffix("").as_posix() for path in NOTEBOOKS.values()]
    # A report, which readers of the claims can download.
    unread = {*stored} - {*listed, "book/reference/newer"}
    assert not unread, f"notebooks in book/ but not in _toc.yml: {sorted(unread)}: list them or remove them"
    missing = [name for name in listed if not any((ROOT / f"{name}{suffix}").exists() for suffix in (".md", ".ipynb"))]
    assert not missing, f"_toc.yml lists pages that do not exist: {missing}: write them or remove them"


def test_ignored_cells_are_few_and_counted() -> None:
    counted = {
        name: sum("nbval-ignore-output" in tags(cell) for _, cell in code_cells(read(path))) for name, path in NOTEBOOKS.items()
    }
    differ = {
        name: counted.get(name, 0) for name in counted | IGNORED_CELLS if counted.get(name, 0) != IGNORED_CELLS.get(name, 0)
    }
    assert not differ, (
        f"cells tagged nbval-ignore-output: {differ}, and IGNORED_CELLS in test_notebooks.py allows another number: "
        "take the tag away and print rounded numbers, or, for live training, change the table"
    )


# A to D are settled by the page's own cells, N by those of newer.ipynb, and E by those of chapters.
COUNTS = {"A": 11, "B": 11, "C": 10, "D": 16, "E": 31, "N": 33}
CLAIMS = {f"{source}{n}" for source, count in COUNTS.items() for n in range(1, count + 1)}
MARKS = {"holds": "●", "holds within limits": "◐", "in part": "◐", "fails": "○", "not tested": "–"}


def test_ledger_of_claims() -> None:
    """Every claim once, with the verdict that its printed parts make, which its row repeats, and with what is true."""
    notebook = read(NOTEBOOKS["claims"])
    compared = [cell for _, cell in code_cells(notebook) if "nbval-ignore-output" not in tags(cell)]
    printed = "\n".join(output.get("text", "") for cell in compared for output in cell.outputs)
    verdicts = {}
    for block in re.split(r"^(?=[A-D]\d+ )", printed, flags=re.MULTILINE)[1:]:
        first, *lines = re.sub(r"\n {10}", " ", block).splitlines()
        label, verdict = first.split(maxsplit=1)
        parts = [line.split()[0] == "yes" for line in lines if re.match(r" {5}(yes|no) {2,}", line)]
        made = "holds" if all(parts) else "holds within limits" if any(parts) else "fails"
        assert label not in verdicts, f"{label} is printed twice: leave one out"
        assert parts, f"{label} prints a verdict and no part that it rests on: print one"
        assert verdict == made, f"{label} prints {verdict!r}, its parts make it {made!r}: correct the cell"
        verdicts[label] = verdict
    newer = output_lines(read(NOTEBOOKS["newer"]))
    verdicts |= dict(line.split(maxsplit=1) for line in newer if re.match(r"N\d+ ", line))
    rows = dict(re.findall(r"^\| *([A-EN]\d+) *\|(.*)\|$", markdown(notebook), re.MULTILINE))
    everywhere = {label for label in CLAIMS if label[0] == "E"}
    assert rows.keys() == verdicts.keys() | everywhere == CLAIMS, "each claim has one row and one printed verdict"
    for label, row in rows.items():
        _, verdict, true = (part.strip() for part in row.split("|"))
        said = verdicts.get(label, verdict[2:])
        expected = f"{MARKS.get(said)} {said}"
        assert verdict == expected, f"{label} has the verdict {verdict!r}, and its cell prints {expected!r}: correct the row"
        assert true, f"{label} doesn't say what is true: write it"


# --- The texts that notebooks are made from ----------------------------------------------------------------------

SENTENCE = "A sentence.\n\nAnother one."


@pytest.mark.parametrize("name", texts.pages([]))
def test_text_and_notebook_are_alike(name: str) -> None:
    page = texts.pages([name])[name]
    assert page.text.exists(), f"make text CHAPTER={name}"
    if page.text.read_text("utf-8") != texts.text_of(texts.read(page.notebook)):
        here = f"Edited text/: make notebooks CHAPTER={name}. Edited the notebook: make text CHAPTER={name}"
        pytest.fail(f"{page.text} and {page.notebook} have different cells. {here}", pytrace=False)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> texts.Page:
    """A page of a small course, with a text, and with a notebook that has run."""
    monkeypatch.setattr(texts, "ROOT", tmp_path)
    output = new_output("stream", text="2\n")
    cells = [new_markdown_cell(SENTENCE), new_code_cell("print(2)", outputs=[output], execution_count=1), new_code_cell("3")]
    page = texts.Page(tmp_path / "text/01_small.md", tmp_path / "book/01_small.ipynb")
    texts.write(page.notebook, texts.plain(new_notebook(cells=cells, metadata=texts.METADATA)))
    assert texts.main([], from_notebooks=True) == 0
    return page


def later(path: Path, content: str) -> None:
    path.write_text(content)
    os.utime(path, (2**31, 2**31))


def test_changed_sentence_changes_one_line_of_the_notebook(page: texts.Page) -> None:
    before = page.notebook.read_text().splitlines()
    assert texts.main([]) == 0
    assert page.notebook.read_text().splitlines() == before
    later(page.text, page.text.read_text().replace("A sentence.", "A clear sentence.") + "\n")
    assert texts.main(["01_small"]) == 0
    assert page.text.read_text() == texts.text_of(texts.read(page.notebook)), "an empty line too many"
    after = page.notebook.read_text().splitlines()
    changed = [line for line, old in zip(after, before, strict=True) if line != old]
    assert changed == ['    "A clear sentence.\\n",']


def test_changed_code_has_no_output_any_more(page: texts.Page) -> None:
    stored = texts.read(page.notebook)
    later(page.text, page.text.read_text().replace("print(2)", "print(4)"))
    assert texts.main([]) == 0
    new = texts.read(page.notebook)
    assert [cell.source for cell in new.cells] == [SENTENCE, "print(4)", "3"]
    assert new.cells[1].outputs == []
    assert [new.cells[n].id for n in (0, 2)] == [stored.cells[n].id for n in (0, 2)]


def test_edit_in_jupyterlab_flows_back(page: texts.Page) -> None:
    notebook = texts.read(page.notebook)
    notebook.cells[0].source = "Better."
    notebook.cells[1].metadata = {"tags": ["hide-input"], "editable": True}
    notebook.metadata = {"kernelspec": {"name": "mine", "display_name": "Mine"}, "widgets": {}}
    later(page.notebook, nbformat.writes(notebook))
    assert texts.main([], from_notebooks=True) == 0
    assert (
        page.text.read_text() == "Better.\n\n```{code-cell}\n:tags: [hide-input]\n\nprint(2)\n```\n\n```{code-cell}\n3\n```\n"
    )


@pytest.mark.parametrize("side", [0, 1])
def test_newer_side_is_kept(page: texts.Page, side: int, capsys: pytest.CaptureFixture[str]) -> None:
    later(page[side], page[side].read_text().replace("A sentence.", "Written last."))
    assert texts.main([], from_notebooks=side == 0) == 1
    names, command = ["text/01_small.md", "book/01_small.ipynb"], ["make notebooks", "make text"][side]
    assert capsys.readouterr().err == (
        f"{names[side]} was edited after {names[1 - side]}, and would lose this: to keep it, {command}; "
        f"to drop it, touch {names[1 - side]}, and then repeat the command\n"
    )
    assert "Written last." in page[side].read_text()
    assert texts.main([], from_notebooks=side == 1) == 0
    assert "Written last." in page[1 - side].read_text()
