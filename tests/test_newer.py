"""The page on newer claims: its tables say what its cells print, and every claim has a source."""

import re

from tests.pages import NOTEBOOKS, markdown, printed, read

SIGNS = {"● holds": "holds", "◐ in part": "in part", "○ fails": "fails"}
TEXT = markdown(read(NOTEBOOKS["newer"]))
ROWS = re.findall(r"^\| (N\d+) \| (.*?) \| (. \w+(?: \w+)?) \| (.*) \|$", TEXT, re.MULTILINE)


def test_a_row_has_the_verdict_that_its_cell_prints() -> None:
    verdicts = [line for line in printed("newer") if re.match(r"N\d+ ", line)]
    assert [f"{label} {SIGNS[sign]}" for label, _, sign, _ in ROWS] == verdicts
    assert len(verdicts) >= 12


def test_a_row_has_its_claim_above_the_table_with_a_source() -> None:
    claims = dict(re.findall(r"^- \*\*(N\d+)\.\*\* (.*)$", TEXT, re.MULTILINE))
    assert [*claims] == [label for label, *_ in ROWS]
    for label, claim in claims.items():
        assert re.search(r"\{cite:[pt]\}`\w+|\]\(https://|\(Gemma \d", claim), label
