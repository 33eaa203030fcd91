import re
import tomllib

import pytest

from tests.pages import pages, prose
from tests.pages.pages import BOOK, NOTEBOOKS, markdown, printed, read
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


# ── predictions ────────────────────────────────────────────────────────────────────────────────────────────────────────


SIGNS = "●◐○–"  # of holds or right, in part, fails or wrong, and not tested
PREDICTIONS = tomllib.loads((BOOK / "predictions.toml").read_text("utf-8"))
NEWER = (
    "window-none rope-none window-rope none drope fast partial polar fixed forgetting selective reflected separation "
    "temperature recurrent-none+recurrent-rope recurrent t5-trained cache-positions mask-three recurrent-short sink "
    "selective-slow inkling-far inkling-near inkling-convolved convolution-none convolution-rope key-offset key-offset-text "
    "learned-frequencies learned-log recurrent-rotated stick-breaking"
)
LENGTHS = "cliff pair angle pairs interpolation ntk yarn window far shift bfloat16 bits recital writes"
HEADS = "previous sink equal share stop drop mask guilty content heads chain"
# The predictions of each row, by their names in book/predictions.toml.
WRITTEN = {
    "newer": [*NEWER.split(), "larger-rope", "larger-mix", "larger-none"],
    "deeper/18_released": [
        *(f"released-{name}" for name in LENGTHS.split()),
        *(f"control-{name}" for name in ("clamped", "alone", "stages", "writes")),
    ],
    "deeper/19_heads": [
        *(f"released-{name}" for name in HEADS.split()),
        *(f"control-{name}" for name in ("early", "middle", "twice", "single", "head", "previous")),
    ],
}


def text_of(page: str) -> str:
    return re.sub("<!--.*?-->", "", markdown(read(NOTEBOOKS[page])))


@pytest.mark.parametrize("page", WRITTEN)
def test_a_row_says_what_was_written_down_and_has_the_verdict_that_its_cell_prints(page: str) -> None:
    rows = re.findall(rf"^\| (\w[^|]*?) \| (.*?) \| [{SIGNS}] (\w+(?: \w+)?) \| .*\|$", text_of(page), re.MULTILINE)
    part = "prediction" if page == "newer" else "claim"
    for (label, said, _), names in zip(rows, WRITTEN[page], strict=True):
        written = " ".join(PREDICTIONS[name][part] for name in names.split("+"))
        assert said == written, f"{label} doesn't quote book/predictions.toml, which stays as it was"
    lines = [line.partition(":")[0] for line in printed(page) if re.match(r"[NR]\d+ |larger, [^:]+$", line)]
    assert [f"{label} {verdict}" for label, _, verdict in rows] == [line.removeprefix("larger, ") for line in lines]


def test_a_claim_has_its_source_above_the_table() -> None:
    claims = dict(re.findall(r"^- \*\*(N\d+)\.\*\* (.*)$", text_of("newer"), re.MULTILINE))
    assert len(claims) == len(NEWER.split())
    for label, claim in claims.items():
        assert re.search(r"\{cite:[pt]\}`\w+|\]\(https://|\(Gemma \d", claim), label
        assert f"| {label} | {claim} |" in text_of("claims"), f"{label}: write it alike on both pages"
