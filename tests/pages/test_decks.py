"""The decks of slides: as long as the plans say, few words, true to their chapters; and every slide is seen in a browser."""

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from bs4 import Tag
from playwright.sync_api import ElementHandle, Page

from tests.commands import ROOT, WEEKLY
from tests.pages import pages
from tests.site.built import AXE, WCAG, Scheme, Site, open_alone, violations

PLANS = "".join((ROOT / f"book/teaching/{page}.md").read_text(encoding="utf-8") for page in ("next_week", "plans"))
DECKS = [path.stem for path in sorted((ROOT / "book/decks").glob("*.md"))]
# In the dark, a short deck with plain and living figures and a vote is shown, and on Mondays all. Axe looks at one deck in each
# scheme.
SHORT = "15_contextual"
PLANNED = ["lecture", "part_1", "part_2"]
IN_DARK = DECKS if WEEKLY else [SHORT]
AXED = [("lecture", "light"), ("lecture" if WEEKLY else SHORT, "dark")]
SLIDE = ".slides section.present:not(.stack)"
PLACES = """() => Reveal.getSlides().map(slide => {
    const {h, v} = Reveal.getIndices(slide);
    return [slide.querySelector('h1, h2').textContent, h, v ?? 0];
})"""
SMALLEST = 11  # of 720 pixels that a projector has at least
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
    assert re.findall(r'href="\.\./decks/(\w+)\.html"', PLANS) == [*PLANNED, *(name for name in DECKS if name not in PLANNED)]


@pytest.mark.parametrize("name", PLANNED)
def test_rows_take_as_long_as_planned(site: Site, name: str) -> None:
    """Each row of the plan has its slides, and what their notes say adds up to its minutes, 90 in all."""
    heading = {"lecture": "A lecture"}.get(name, name.replace("_", " ").capitalize())
    planned = re.findall(r"^\| (\d+) \|", pages.section(PLANS, heading) or "", re.MULTILINE)
    rows = [minutes(row.select(":scope > section")) for row in site.soup(deck(name)).select(".slides > section + section")]
    assert rows == [*map(int, planned)], "give the slides' notes other minutes, or correct the plan"
    assert sum(rows) == 90


@contextmanager
def shown(shared: tuple[Page, list[str]], site: Site, name: str, scheme: Scheme) -> Iterator[Page]:
    """The deck, offline, on a projector; at its end, nothing has gone wrong."""
    tab = open_alone(shared, site.address(deck(name)), scheme=scheme)
    tab.set_viewport_size({"width": 1280, "height": 720})
    tab.emulate_media(reduced_motion="reduce")
    tab.wait_for_selector(".reveal.ready")
    yield tab
    problems = [problem for problem in shared[1] if not problem.startswith("asks for blob:")]  # a model runs in a worker
    assert not problems, "\n".join(problems)


def figure_of(frame: ElementHandle) -> tuple[dict[str, Any], float]:
    """The setting of a living figure in this frame, and how many pixels of the projector's 720 its letters are high."""
    inside, deck = frame.content_frame(), frame.owner_frame()
    assert inside
    assert deck
    inside.wait_for_selector("figure.lives")
    inside.wait_for_function("document.querySelector('living-figure').state")
    deck.wait_for_function("frame => frame.style.transform", arg=frame)
    state = inside.evaluate("document.querySelector('living-figure').state")
    size = inside.evaluate("parseFloat(getComputedStyle(document.querySelector('living-figure')).fontSize)")
    return state, size * frame.evaluate("frame => frame.getBoundingClientRect().width / frame.clientWidth")


def slides(tab: Page, seen: Container[str] = ()) -> Iterator[str]:
    """Goes through the slides, without those with a title in `seen`."""
    for title, h, v in tab.evaluate(PLACES):
        if title not in seen:
            tab.evaluate("([h, v]) => Reveal.slide(h, v)", [h, v])
            yield title


SEEN: set[tuple[Scheme, str]] = set()  # decks share slides
SHOWN = [(name, "light") for name in DECKS] + [(name, "dark") for name in IN_DARK]
SHOWN.sort(key=lambda shown: shown not in AXED)  # first, and so with all their slides


@pytest.mark.parametrize(("name", "scheme"), SHOWN)
def test_every_slide_is_seen_whole(shared: tuple[Page, list[str]], site: Site, name: str, scheme: Scheme) -> None:
    """Nothing is cut off, and each step of a figure shows the setting that it is for, in letters that can be read.

    In one deck of each scheme, axe looks for barriers, too.
    """
    faults = []
    with shown(shared, site, name, scheme) as tab:
        if (name, scheme) in AXED:
            tab.add_style_tag(content=".backgrounds { display: none }")  # transparent, but axe sees no colours through them
            tab.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
        within = "html"  # what is around the slides, only once
        for title in slides(tab, {title for seen, title in SEEN if seen == scheme}):
            SEEN.add((scheme, title))
            faults += [f"{title}: {part} is outside of the slide" for part in tab.evaluate(FITS)]
            for step in tab.query_selector_all(f"{SLIDE} .step"):
                if "fragment" in (step.get_attribute("class") or ""):
                    tab.keyboard.press("PageDown")
                if image := step.query_selector("img:visible"):
                    tab.wait_for_function("image => image.complete && image.naturalWidth", arg=image)
                elif frame := step.query_selector("iframe"):
                    faults += [f"{title}: {fault}" for fault in wrong_with(frame)]
                else:
                    faults.append(f"{title}: there is no picture for a {scheme} slide")
            if (name, scheme) in AXED:
                faults += violations(tab.evaluate(AXE, [within, {"runOnly": WCAG, "iframes": False}]), title)
                within = SLIDE
    assert not faults, "\n".join(faults)


def wrong_with(frame: ElementHandle) -> Iterator[str]:
    state, size = figure_of(frame)
    for setting, text in parse_qsl(urlsplit(frame.get_attribute("src") or "").query):
        _, _, name = setting.partition(".")
        if name and str(state[name]).lower() != text:
            yield f"{setting} is {state[name]}, not {text}"
    if size < SMALLEST:
        yield f"the figure's letters are {size:.1f} pixels high, of 720"
