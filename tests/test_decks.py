"""The decks of slides: as long as the plans say, few words, true to their chapters; and every slide is seen in a browser."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from bs4 import Tag
from playwright.sync_api import Browser, Page
from pypdf import PdfReader

from tests import pages
from tests.commands import ROOT
from tests.test_site import AXE, WCAG, Scheme, Site, opened, site, violations
from tools.decks import printed

__all__ = ["site"]
PLANS = (ROOT / "book/teaching/plans.md").read_text(encoding="utf-8")
DECKS = [path.stem for path in sorted((ROOT / "book/decks").glob("*.md"))]
SLIDE = ".slides section.present:not(.stack)"
FITS = """() => {
    const slide = Reveal.getCurrentSlide().querySelector('.slide'), edge = slide.getBoundingClientRect();
    return [...slide.querySelectorAll('h1, h2, .words, .words *, .step')].filter(part => {
        const {left, right, top, bottom} = part.getBoundingClientRect();
        return left < edge.left - 1 || right > edge.right + 1 || top < edge.top - 1 || bottom > edge.bottom + 1;
    }).map(part => part.outerHTML.slice(0, 80));
}"""


def deck(name: str) -> str:
    return f"book/decks/{name}.html"


def minutes(slides: list[Tag]) -> int:
    return sum(int(str(one["data-timing"])) for one in slides) // 60


def test_plans_lead_to_every_deck() -> None:
    assert re.findall(r'href="\.\./decks/(\w+)\.html"', PLANS) == sorted(DECKS, key=PLANS.index)


@pytest.mark.parametrize("name", DECKS)
def test_rows_take_as_long_as_planned(site: Site, name: str) -> None:
    """Each row of the plan has its slides, and what their notes say adds up to its minutes."""
    heading = {"lecture": "A lecture"}.get(name, name.replace("_", " ").capitalize())
    planned = re.findall(r"^\| (\d+) \|", pages.section(PLANS, heading) or "", re.MULTILINE)
    rows = [minutes(row.select(":scope > section")) for row in site.soup(deck(name)).select(".slides > section + section")]
    assert rows == [*map(int, planned)], "give the slides' notes other minutes, or correct the plan"


@pytest.mark.parametrize("name", DECKS)
def test_slides_have_few_words_and_titles_of_their_own(site: Site, name: str) -> None:
    slides = site.soup(deck(name)).select("section[data-timing]")
    titles = [one.select_one("h1, h2").get_text() for one in slides]  # type: ignore[union-attr]
    assert len({*titles}) == len(titles)
    for title, one in zip(titles, slides, strict=True):
        words = " ".join(part.get_text(" ") for part in one.select(".words") if not part.select("math"))
        most = 45 if one.select(".vote") else 25  # a vote has its options
        assert len(words.split()) <= most, f"{title!r} has {len(words.split())} words: what is said belongs in the note"
        assert bool(one.select(".vote ol")) == bool(one.select(".vote")), f"{title!r}: a vote has numbered options"
        assert re.match(r"\d+ minutes?\. \S", one.select_one(".notes").get_text(strip=True)), title  # type: ignore[union-attr]


@pytest.mark.parametrize("name", DECKS)
def test_formulas_are_those_of_the_chapters(name: str) -> None:
    """Letter by letter, but for spaces, so that what test_formulas.py evaluates holds for the slides, too."""

    def unspaced(text: str) -> str:
        return re.sub(r"\\[,!;]|\\phantom\{.\}|[\s&]", "", text)

    chapters = unspaced("".join(path.read_text(encoding="utf-8") for path in (ROOT / "text").rglob("*.md")))
    for formula in re.findall(r"(?<!\$)\$([^$\n]+)\$(?!\$)", pages.TEXTS[name].read_text(encoding="utf-8")):
        assert unspaced(formula) in chapters, f"{formula} is in no chapter: copy it from there"


@contextmanager
def shown(browser: Browser, site: Site, name: str, scheme: Scheme) -> Iterator[Page]:
    """The deck, offline, on a projector; at its end, nothing has gone wrong."""
    problems: list[str] = []
    with opened(browser, site.address(deck(name)), scheme, problems) as tab:
        tab.set_viewport_size({"width": 1280, "height": 720})
        tab.emulate_media(reduced_motion="reduce")
        tab.wait_for_selector(".reveal.ready")
        yield tab
    assert not problems, "\n".join(problems)


def figure_of(frame: Any) -> tuple[dict[str, Any], float]:
    """The setting of a living figure in this frame, and how many pixels of the projector's 720 its letters are high."""
    inside = frame.content_frame()
    inside.wait_for_selector("figure.lives")
    inside.wait_for_function("document.querySelector('living-figure').state")
    frame.owner_frame().wait_for_function("frame => frame.style.transform", arg=frame)
    state = inside.evaluate("document.querySelector('living-figure').state")
    size = inside.evaluate("parseFloat(getComputedStyle(document.querySelector('living-figure')).fontSize)")
    return state, size * frame.evaluate("frame => frame.getBoundingClientRect().width / frame.clientWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", DECKS)
def test_every_slide_is_seen_whole(browser: Browser, site: Site, name: str, scheme: Scheme) -> None:
    faults, seen = [], 0
    with shown(browser, site, name, scheme) as tab:
        while True:
            title = tab.evaluate("Reveal.getCurrentSlide().querySelector('h1, h2').innerText")
            faults += [f"{title}: {part} is outside of the slide" for part in tab.evaluate(FITS)]
            for step in tab.query_selector_all(
                ".slides section.present:not(.stack) .step:is(:not(.fragment), .current-fragment)"
            ):
                seen += 1
                if image := step.query_selector("img"):
                    faults += (
                        [] if image.evaluate("image => image.complete && image.naturalWidth") else [f"{title}: no picture"]
                    )
                    continue
                frame = step.query_selector("iframe")
                assert frame
                state, size = figure_of(frame)
                query = dict(parse_qsl(urlsplit(frame.get_attribute("src") or "").query, keep_blank_values=True))
                for setting, text in query.items():
                    what = setting.partition(".")[2]
                    if what and str(state[what]).lower() != text:
                        faults.append(f"{title}: {setting} is {state[what]}, not {text}")
                if size < 11:
                    faults.append(f"{title}: the letters of the figure are {size:.1f} pixels high")
            if tab.evaluate("Reveal.isLastSlide() && !Reveal.availableFragments().next"):
                break
            tab.keyboard.press("PageDown")
    assert not faults, "\n".join(faults)
    assert seen >= len(site.soup(deck(name)).select(".step"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_slides_have_no_barriers(browser: Browser, site: Site, scheme: Scheme) -> None:
    with shown(browser, site, DECKS[0], scheme) as tab:
        tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
        found: list[str] = []
        while not tab.evaluate("Reveal.isLastSlide()"):
            tab.keyboard.press("PageDown")
            title = tab.evaluate("Reveal.getCurrentSlide().querySelector('h1, h2').innerText")
            found += violations(tab.evaluate(AXE, ["html", {"runOnly": WCAG, "iframes": False}]), title)
    assert not found, "\n".join(found)


def test_remote_control_goes_on_while_a_figure_has_the_focus(browser: Browser, site: Site) -> None:
    with shown(browser, site, "lecture", "light") as tab:
        while not (frame := tab.query_selector(f"{SLIDE} iframe")):
            tab.keyboard.press("PageDown")
        state, _ = figure_of(frame)
        before = tab.evaluate("Reveal.getState()")
        inside = frame.content_frame()
        assert inside
        slider = inside.locator("input[type=range]").first
        slider.press("Home")
        inside.wait_for_function(f"JSON.stringify(document.querySelector('living-figure').state) !== {state!r}")
        slider.press("PageDown")
        tab.wait_for_function("before => JSON.stringify(Reveal.getState()) !== JSON.stringify(before)", arg=before)


def test_printed_deck_has_all_steps_and_notes(browser: Browser, site: Site, tmp_path: Path) -> None:
    soup = site.soup(deck("lecture"))
    with browser.new_page(offline=True, reduced_motion="reduce") as tab:
        printed(tab, site.address(deck("lecture")), tmp_path / "lecture.pdf")
    paper = PdfReader(tmp_path / "lecture.pdf").pages
    slides = soup.select("section[data-timing]")
    assert len(paper) == 2 * len(slides) + len(soup.select(".fragment"))
    text = "".join("".join(page.extract_text() for page in paper).split())
    for part in soup.select("section[data-timing] :is(h1, h2, .notes p):not(:has(math))"):
        assert "".join(part.get_text().split()) in text
