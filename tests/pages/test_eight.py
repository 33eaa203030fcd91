"""The game: eight claims, each settled by what a chapter prints and by its figure, however readers play it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from tests.commands import ROOT
from tests.figures.living import FIGURES
from tests.pages.pages import NUMBER, lines_of, printed, value
from tests.site.built import Site, open_alone

PAGE = "book/eight.html"
TEXT = (ROOT / "book/eight.md").read_text(encoding="utf-8")
# A figure of a chapter that is shown again; what to try is plain text, without asterisks.
REPEATED = re.compile(r'<living-figure for="fig-[\w-]+" of="([\w-]+)" figure="(\w+)" [^>]*\btry="[^"*]+">')
CLAIMS = re.findall(r"^\d\. (.*)$", TEXT, re.MULTILINE)
ANSWERS = [
    (figure, int(number), verdict, caption, *REPEATED.findall(element))
    for figure, caption, element in re.findall(
        r"^:name: fig-eight-(\w+)$.*?\n\n(.*?)^```$\n\n(.*?)$", TEXT, re.MULTILINE | re.DOTALL
    )
    for number, verdict in re.findall(r"^\*\*(\d)\. (True|False)\.\*\*", caption)
]


def numbers(page: str, key: str) -> list[float]:
    (line,) = lines_of(key, printed(page))
    return [value(number) for number in re.findall(NUMBER, line.removeprefix(key))]


def highest(offset: str) -> float:
    return numbers("10_rope", f"key made for {offset}")[0]


# Whether each claim holds, by what the chapters print.
HOLDS: dict[str, Callable[[], bool]] = {
    "mask": lambda: max(numbers("01_order", "layers 2")) < 60,  # percent, where a coin has 50
    "arrows": lambda: numbers("10_rope", "query at 3, key 3 before") == numbers("10_rope", "query at 1,000,003, key 3 before"),
    "relative": lambda: numbers("06_shift", "d = 128: median")[0] < 0.1,  # at one offset, of the spread of all scores
    "peak": lambda: [highest(offset) for offset in ("7", "100", "10,000")] == [0, 0, 0],
    "first": lambda: numbers("19_heads", "on the first token, layers 12 to 29")[0] > 100 * 100 / 1024,  # times an equal share
    "limit": lambda: numbers("12_lengths", "rope, mean")[6] < numbers("12_lengths", "rope, mean")[0] + 0.1,
    "longer": lambda: numbers("18_released", "NTK-aware")[1] < 0.1 < 1 < numbers("18_released", "as released")[1],
    "shuffle": lambda: "equivariant, f(PX) = P f(X): yes" in printed("deeper/01_order"),
}
# And what its figure says when it has come to rest.
SHOWS = {
    "mask": "Between the two sentences, the vector of the full stop differs",
    "arrows": "The angle between the arrows is",
    "relative": "The score is not the same",
    "peak": "the score is largest there",
    "first": "of its attention on the first token",
    "limit": "RoPE at letter",
    "longer": "there is no cliff up to token 14,336",
    "shuffle": "the weights have moved with their words, and none has changed",
}


@pytest.mark.parametrize(("figure", "number", "verdict", "caption", "repeated"), ANSWERS)
def test_answer_is_what_its_chapter_prints_and_shows(
    figure: str, number: int, verdict: str, caption: str, repeated: tuple[str, str]
) -> None:
    assert verdict == str(HOLDS[figure]()), f"{CLAIMS[number - 1]} It's {HOLDS[figure]()}."
    assert "<!--" in caption.replace("<!--given-->", ""), f"answer {number} hangs on no line"
    (chapter,) = re.findall(r"\[Chapter \d+\]\((\w+)\.ipynb#", caption)
    page = FIGURES[repeated[0]]
    assert page in (f"book/{chapter}.html", "book/index.html"), f"{repeated[0]} is in {page}, and readers are sent to {chapter}"


def test_eight_claims_have_eight_answers() -> None:
    assert [number for _, number, *_ in ANSWERS] == [*range(1, len(CLAIMS) + 1)] == [*range(1, 9)]


@contextmanager
def playing(shared: tuple[Page, list[str]], site: Site, fragment: str = "") -> Iterator[Page]:
    shared[0].emulate_media(reduced_motion="reduce")
    yield open_alone(shared, site.address(PAGE) + fragment, scheme="light")
    assert not shared[1]


def test_game_is_played_by_keyboard(shared: tuple[Page, list[str]], site: Site) -> None:
    wrong = {2, 5}
    with playing(shared, site) as tab:
        status = tab.locator(".score [role=status]")
        tab.locator(".claims button").first.focus()
        for at, (figure, _, verdict, *_) in enumerate(ANSWERS):
            expect(tab.locator(".claims li:visible")).to_have_text(CLAIMS[at].replace("'", "’"))
            assert not tab.locator("figcaption:visible").count(), "the answer is there before the choice"
            guess = str((verdict == "True") != (at in wrong))
            tab.get_by_role("button", name=guess, exact=True).press("Enter")
            expect(status).to_contain_text(f"{'Wrong' if at in wrong else 'Right'}: it’s {verdict.lower()}.")
            tab.locator(f"#fig-eight-{figure} :is(.finding, .says)", has_text=SHOWS[figure]).wait_for(state="attached")
            expect(tab.locator("article figure:visible")).to_have_count(1)
            tab.keyboard.press("Enter")  # the focus is on the button that goes on
        expect(status).to_contain_text("You got 6 of 8")
        expect(tab.locator(".claims li:visible")).to_have_count(8)
        expect(tab.locator("article figure:visible")).to_have_count(8)
        expect(tab.locator(".claims li").nth(2)).to_contain_text("You said it’s true, but it’s false.")
        link = status.locator("a").get_attribute("href")
    assert link == f"{site.address(PAGE)}#6-of-8", "the link holds more than the score"
    with playing(shared, site, "#6-of-8") as tab:
        expect(tab.locator(".score")).to_contain_text("Whoever sent you here got 6 of 8.")
        expect(tab.locator(".claims li:visible")).to_have_count(1)
