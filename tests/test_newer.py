"""The page on newer claims: its tables say what was predicted and what its cells print, and every claim has a source."""

import re
import tomllib

from tests.pages import BOOK, NOTEBOOKS, markdown, printed, read

SIGNS = {"● holds": "holds", "◐ in part": "in part", "○ fails": "fails", "– not tested": "not tested"}
PREDICTIONS = tomllib.loads((BOOK / "predictions.toml").read_text("utf-8"))
TEXT = markdown(read(NOTEBOOKS["newer"]))
LARGER = {"RoPE": "larger-rope", "windows and no encoding, mixed": "larger-mix", "no encoding": "larger-none"}
ROWS = re.findall(r"^\| (N\d+) \| (.*?) \| (. \w+(?: \w+)?) \| (.*) \|$", TEXT, re.MULTILINE)


def test_a_row_has_the_verdict_that_its_cell_prints() -> None:
    verdicts = [line for line in printed("newer") if re.match(r"N\d+ ", line)]
    assert [f"{label} {SIGNS[sign]}" for label, _, sign, _ in ROWS] == verdicts
    assert len(verdicts) >= 12


def test_what_was_expected_of_larger_models_has_its_verdict() -> None:
    rows = {
        label: (said, sign)
        for label, said, sign in re.findall(r"^\| (\w[^|]*?) \| (.*?) \| (. \w+(?: \w+)?) \|", TEXT, re.MULTILINE)
    }
    for label, name in LARGER.items():
        said, sign = rows[label]
        assert re.sub("<!--.*?-->", "", said) == PREDICTIONS[name]["prediction"]
        assert f"larger, {label} {SIGNS[sign]}" in printed("newer")


# The predictions of each claim, by their names in book/predictions.toml.
WRITTEN = {
    "N1": "window-none", "N2": "rope-none", "N3": "window-rope", "N4": "none", "N5": "drope", "N6": "fast", "N7": "partial",
    "N8": "polar", "N9": "fixed", "N10": "forgetting", "N11": "selective", "N12": "reflected", "N13": "separation",
    "N14": "temperature", "N15": "recurrent-none recurrent-rope", "N16": "recurrent", "N17": "t5-trained",
    "N18": "cache-positions", "N19": "mask-three", "N20": "recurrent-short", "N21": "sink", "N22": "selective-slow",
    "N23": "inkling-far", "N24": "inkling-near", "N25": "inkling-convolved", "N26": "convolution-none",
    "N27": "convolution-rope", "N28": "key-offset", "N29": "key-offset-text", "N30": "learned-frequencies",
    "N31": "learned-log", "N32": "recurrent-rotated", "N33": "stick-breaking",
}  # fmt: skip


def test_a_row_quotes_what_was_written_down() -> None:
    assert [*WRITTEN] == [label for label, *_ in ROWS]
    for label, said, *_ in ROWS:
        written = " ".join(PREDICTIONS[name]["prediction"] for name in WRITTEN[label].split())
        assert re.sub("<!--.*?-->", "", said) == written, f"{label} doesn't quote book/predictions.toml, which stays as it was"


def test_a_row_has_its_claim_above_the_table_with_a_source() -> None:
    claims = dict(re.findall(r"^- \*\*(N\d+)\.\*\* (.*)$", TEXT, re.MULTILINE))
    assert [*claims] == [label for label, *_ in ROWS]
    for label, claim in claims.items():
        assert re.search(r"\{cite:[pt]\}`\w+|\]\(https://|\(Gemma \d", claim), label
