"""Pages with predictions: their tables quote what was written down, with the verdicts that their cells print, and sources."""

import re
import tomllib

import pytest

from tests.pages.pages import BOOK, NOTEBOOKS, markdown, printed, read

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
