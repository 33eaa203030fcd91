"""Navigation on the site: a sidebar that folds, marks for what has been read, where to go next, code to copy, and a table."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import Browser, Locator, Page, expect

from posenc_course.models import load_models
from tests.commands import ROOT, WEEKLY
from tests.site.built import BUSY, CHAPTERS, NOTEBOOKS, PAGES, SOURCES, WIDTHS, Site, forget

ENTRY = "where-is-a-token"  # the browser's storage has what was read under this name
HOST = "http://localhost/course/"
# From each chapter of the short route, which the first page recommends, to the one after it, and from the last to that page.
SHORT = re.findall(r"hours: chapters (.*?)\.", (ROOT / "book/index.md").read_text(encoding="utf-8"))[0]
ROUTE = dict(pairwise([*(CHAPTERS[int(number) - 1] for number in re.findall(r"\d+", SHORT)), "book/index.html"]))
ASSIGNMENTS = [page for page in NOTEBOOKS if page.startswith("exercises/")]


@contextmanager
def hosted(browser: Browser, site: Site, **options: Any) -> Iterator[Page]:
    """A tab for the site at a host, under a path, as it is published; a browser keeps the storage of such pages together."""
    options = {"viewport": {"width": WIDTHS["desktop"], "height": 900}} | options
    with browser.new_context(**options) as context:
        context.route(
            f"{HOST}**", lambda route: route.fulfill(path=site.html / route.request.url.removeprefix(HOST).split("?")[0])
        )
        tab = context.new_page()
        tab.add_init_script(BUSY)
        yield tab


@pytest.fixture(scope="module")
def reader(browser: Browser, site: Site) -> Iterator[Page]:
    with hosted(browser, site) as tab:
        yield tab


@pytest.fixture(scope="module")
def without_scripts(browser: Browser, site: Site) -> Iterator[Page]:
    with hosted(browser, site, java_script_enabled=False) as tab:
        yield tab


def opened(tab: Page, page: str) -> Page:
    """The page in this tab, for a reader who comes for the first time."""
    forget(tab)
    tab.emulate_media(media="screen")
    tab.goto(HOST + page)
    return tab


def piece(site: Site, page: str, element: str) -> BeautifulSoup:
    """The page's first element that begins so; to parse whole pages takes ten times as long."""
    end = re.match(r"\w+", element)[0]  # type: ignore[index]
    found = re.search(rf"<{element}.*?</{end}>", (site.html / page).read_text(encoding="utf-8"), re.DOTALL)
    return BeautifulSoup(found[0] if found else "", "html.parser")


def steps(site: Site, page: str) -> list[tuple[str, str]]:
    box = piece(site, page, 'nav class="onward')
    labels = [label.get_text() for label in box.select("dt")]
    assert labels, f"{page} does not say where to go from its end: see tools/sphinx/navigation.py"
    return list(zip(labels, [site.target(page, str(link["href"]))[0] for link in box.select("dd > a")], strict=True))


def test_steps_lead_from_chapter_to_chapter(site: Site) -> None:
    marked = re.findall(r"file: (\S+)\n +title: .* •", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    assert [f"{page}.html" for page in marked] == [*ROUTE], "_toc.yml marks (•) other chapters than the short route"
    for chapter, assignment, following in zip(CHAPTERS, ASSIGNMENTS, [*CHAPTERS[1:], None], strict=True):
        below = chapter.replace("book/", "book/deeper/")
        deeper = [("Look deeper", below)] if below in PAGES else []
        onward = [("Next", following)] if following else steps(site, chapter)[len(deeper) + 1 :]
        if ROUTE.get(chapter, following) != following:
            onward.append(("Short route" if ROUTE[chapter] in CHAPTERS else "Short route ends", ROUTE[chapter]))
        assert steps(site, chapter) == [*deeper, ("Try it", assignment), *onward]
        for page in [assignment, *(page for _, page in deeper)]:
            assert steps(site, page) == [("Back to", chapter), *onward]


@pytest.mark.parametrize("page", PAGES)
def test_page_says_where_it_is(site: Site, page: str) -> None:
    sidebar, line = piece(site, page, 'nav class="bd-links'), piece(site, page, 'p class="whereabouts').get_text()
    current = sidebar.select("details.part:has(a.current)")
    assert sidebar.select("details.part[open]") == current, f"{page}: in the sidebar, only its part is open"
    place = [part.select_one("summary").get_text(strip=True) for part in current[-1:]]  # type: ignore[union-attr]
    chapter = page.replace("/deeper/", "/")
    if chapter in CHAPTERS:
        deeper = ["deeper"] if page != chapter else []
        place = [f"Chapter {CHAPTERS.index(chapter) + 1} of {len(CHAPTERS)}", *deeper, *place]
    assert line == " · ".join(place)


def test_chapters_begin_on_the_first_screen(browser: Browser, site: Site) -> None:
    """The lowest are those with the longest title and goal; on Mondays, all chapters are opened."""

    def above(page: str) -> int:
        return len(piece(site, page, "h1").get_text() + piece(site, page, 'p class="goal').get_text())

    with browser.new_page() as tab:
        for page in sorted(CHAPTERS, key=above)[0 if WEEKLY else -3 :]:
            tab.set_viewport_size({"width": WIDTHS["desktop"], "height": 800})
            tab.goto(site.address(page), wait_until="domcontentloaded")
            for width in WIDTHS.values():
                tab.set_viewport_size({"width": width, "height": 800})
                tab.evaluate("document.fonts.ready")
                first = tab.locator("article p.goal + *").bounding_box()
                assert first
                assert first["y"] <= 330, f"{page}: the first sentence stands at {first['y']:.0f} pixels of {width}"


def test_sidebar_opens_by_keyboard_and_without_scripts(without_scripts: Page, site: Site) -> None:
    page = CHAPTERS[9]
    tab = opened(without_scripts, page)
    for part in tab.locator(".bd-links details:not([open]) > summary").element_handles():
        part.press("Enter")
    seen = []
    tab.locator(".bd-links a").first.focus()
    while link := tab.evaluate("document.activeElement.closest('.bd-links') && (document.activeElement.href || 'a part')"):
        seen.append(link)
        tab.keyboard.press("Tab")
    links = piece(site, page, 'nav class="bd-links').select("a")
    assert len(set(seen) - {"a part"}) == len(links), f"of the sidebar, Tab reaches only {seen}"
    assert tab.locator(".onward a").count() == len(steps(site, page))
    assert not tab.locator(".progress-so-far").count()
    colours = tab.evaluate("['.onward a', 'h1'].map(e => getComputedStyle(document.querySelector(e)).color)")
    assert len(set(colours)) == 2, f"without scripts the page has no colours: {colours}"


def marks(tab: Page) -> list[str]:
    return tab.get_by_role("link", name="(read)").evaluate_all("links => links.map(link => link.innerText.split(' ')[0])")


def test_what_was_read_is_remembered_and_forgotten(reader: Page) -> None:
    tab = opened(reader, CHAPTERS[0])
    box = tab.get_by_role("checkbox", name="I have read this page")
    assert not box.is_checked()
    assert not marks(tab)
    assert tab.evaluate(f"localStorage.getItem('{ENTRY}')") is None, "something is stored before anything was read"
    box.scroll_into_view_if_needed()
    tab.wait_for_function(f"localStorage.getItem('{ENTRY}')")
    assert box.is_checked()
    assert marks(tab) == ["1"]
    tab.goto(HOST + CHAPTERS[2])
    assert marks(tab) == ["1"], "another page doesn't show what was read"
    box.scroll_into_view_if_needed()
    tab.get_by_text(f"You have read 2 of {len(CHAPTERS)} chapters.").wait_for()
    tab.reload()
    assert marks(tab) == ["1", "3"]
    tab.goto(HOST + PAGES[0])
    expect(tab.get_by_text(f"You have read 2 of {len(CHAPTERS)} chapters.")).to_be_visible()
    onward = tab.get_by_role("link", name="Go on with chapter 4: ")
    assert onward.evaluate("link => link.href") == HOST + CHAPTERS[3]
    tab.once("dialog", lambda dialog: dialog.accept())
    tab.get_by_role("button", name="Forget").click()
    assert not marks(tab)
    assert not onward.is_visible()
    assert tab.evaluate(f"localStorage.getItem('{ENTRY}')") is None


def test_result_of_a_prediction_waits_for_a_choice(reader: Page, without_scripts: Page) -> None:
    page = CHAPTERS[0]
    tab = opened(reader, page)
    tab.emulate_media(media="print")
    assert all(seen(results(box)) for box in boxes_of(tab))
    tab.emulate_media(media="screen")
    first, second, third = boxes_of(tab)
    assert seen(results(first)) == seen(results(second)) == 0, "the result is open below its question"
    figure = tab.locator("#fig-two-orders")
    figure.scroll_into_view_if_needed()
    expect(figure.locator(".finding"), "a figure doesn't wait").to_contain_text("the same word order")
    expect(figure.locator(".caption-text")).not_to_be_visible()
    first.locator(".guess", has_text="No.").first.locator("summary").press("Enter")
    results(first).last.wait_for()
    assert seen(results(first)) == results(first).count() > 0
    figure.locator(".caption-text").wait_for()
    expect(figure.locator(".finding")).not_to_contain_text("the same word order")
    assert seen(results(second)) == 0
    first.locator(".guess", has_text="Yes.").locator("summary").press("Enter")  # the first choice counts
    third.locator(".guess", has_text="Yes.").locator("summary").press("Enter")
    named = [box.locator(".admonition-title").inner_text().removeprefix("Predict: ") for box in (first, third)]
    told = f"Your predictions that held: {named[1]}. Your predictions that didn't hold: {named[0]}."
    expect(tab.get_by_text(told)).to_be_visible()
    tab.reload()
    expect(results(first).first, "the choice is forgotten").to_be_visible()
    assert first.locator("details[open]").count() == 1
    assert seen(results(second)) == 0
    tab.locator(".waits:visible").get_by_role("button", name="show it").click()
    assert seen(results(second)) > 0

    tab = opened(without_scripts, page)
    assert all(box.locator("xpath=following-sibling::*").first.is_visible() for box in boxes_of(tab))


def test_reader_may_always_see_everything(reader: Page) -> None:
    tab = opened(reader, CHAPTERS[0])
    tab.get_by_role("button", name="Always show everything").first.click()
    tab.goto(HOST + CHAPTERS[2])
    assert all(seen(results(box)) for box in boxes_of(tab))
    tab.get_by_role("button", name="Let me guess first again").first.click()
    tab.wait_for_function("document.querySelector('.result[hidden]')")
    tab.goto(f"{HOST}{CHAPTERS[3]}?all")
    assert all(seen(results(box)) for box in boxes_of(tab))


def test_goals_are_ticked_and_remembered(reader: Page) -> None:
    tab = opened(reader, CHAPTERS[0])
    goals = tab.locator("#summary").get_by_role("checkbox").all()
    assert len(goals) > 1
    tab.locator("#summary label").nth(1).click()
    tab.reload()
    assert [goal.is_checked() for goal in goals] == [at == 1 for at in range(len(goals))]
    goals[1].press("Space")
    tab.reload()
    assert not any(goal.is_checked() for goal in goals)


def results(box: Locator) -> Locator:
    return box.locator("xpath=following-sibling::*[contains(concat(' ', @class, ' '), ' result ')]")


def seen(parts: Locator) -> int:
    """How many parts show what is in them."""
    return int(
        parts.evaluate_all("parts => parts.filter(part => getComputedStyle(part).contentVisibility === 'visible').length")
    )


def boxes_of(tab: Page) -> list[Locator]:
    boxes = tab.locator(".predict:has(.guess)").all()
    assert boxes
    return boxes


def test_strange_and_refused_storage_do_no_harm(reader: Page) -> None:
    tab = opened(reader, CHAPTERS[1])
    problems: list[str] = []
    tab.on("pageerror", lambda error: problems.append(error.stack or ""))
    box = tab.get_by_role("checkbox", name="I have read this page")
    box.scroll_into_view_if_needed()
    # It ticks the box once; from here on, only the test does.
    tab.locator(".read").wait_for(state="attached")
    for content in ("{", '{"version": 1, "read": {"book/01_order": "x"}, "predicted": 3}'):
        tab.evaluate(f"content => {{ localStorage['{ENTRY}'] = content; dispatchEvent(new Event('storage')); }}", content)
        assert not marks(tab), f"{content} marks a page as read"
        box.set_checked(True)
        assert marks(tab) == ["2"], f"after {content} nothing is kept"
    with tab.context.new_page() as refused:
        refused.on("pageerror", lambda error: problems.append(error.stack or ""))
        getter = "{get() { throw new DOMException('', 'SecurityError'); }}"
        refused.add_init_script(f"Object.defineProperty(window, 'localStorage', {getter})")
        refused.goto(tab.url)
        assert not refused.locator(".progress-so-far").count()
        assert refused.locator(".onward").count()
        assert refused.evaluate("document.documentElement.dataset.theme") in ("light", "dark"), "the page has no colours"
    assert not [problem for problem in problems if "course.js" in problem]


def test_code_is_copied_as_it_is_and_outputs_are_not(browser: Browser, site: Site) -> None:
    page = CHAPTERS[0]
    cells = json.loads((ROOT / SOURCES[page.removesuffix(".html")]).read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    with hosted(browser, site, has_touch=True, is_mobile=True, viewport={"width": WIDTHS["phone"], "height": 900}) as tab:
        tab.goto(HOST + page)
        buttons = tab.get_by_role("button", name="Copy to clipboard", include_hidden=True)
        assert not tab.locator(".cell_output .copybtn").count(), "a cell's output has a copy button"
        assert buttons.count() == tab.locator("div.highlight:not(.cell_output *) > pre").count() >= len(code)
        tab.evaluate("document.querySelectorAll('details.hide').forEach(folded => folded.open = true)")
        button = buttons.element_handles()[0]
        assert button.evaluate("e => getComputedStyle(e).opacity") == "1", "on a touch screen, the button is invisible"
        button.press("Enter")
        tab.evaluate("document.querySelector('article').insertAdjacentHTML('beforeend', '<textarea id=paste></textarea>')")
        tab.locator("#paste").press("Control+v")
        assert tab.locator("#paste").input_value() == code[0]


# ── the table of models, for readers of numbers ──────────────────────────────────────────────────────────────────────────


def column(tab: Page, number: int) -> list[str]:
    return tab.locator(f".models tbody td:nth-child({number})").evaluate_all("cells => cells.map((c) => c.dataset.value ?? '')")


def test_table_is_sorted_by_keyboard_and_one_card_a_row_on_a_phone(reader: Page) -> None:
    kinds = [(model, kind) for model in load_models() for kind in model.attention]
    tab = opened(reader, "book/reference/models.html")
    assert column(tab, 1) == [model.name for model, _ in kinds]
    button = tab.get_by_role("button", name="Base, released")
    known = sorted(kind.released.base for _, kind in kinds if kind.released.base)
    for direction, expected in (("ascending", known), ("descending", known[::-1])):
        button.press("Enter")
        assert tab.locator(".models th", has=button).get_attribute("aria-sort") == direction
        values = column(tab, 5)
        assert [float(value) for value in values[: len(known)]] == expected
        assert set(values[len(known) :]) == {""}  # what isn't known comes last in both directions
    tab.get_by_role("button", name="Year").click()
    assert tab.locator("[aria-sort]").count() == 1
    assert column(tab, 2) == [str(model.year) for model, _ in kinds]
    assert tab.get_by_role("button", name="More").count() == 0

    tab.set_viewport_size({"width": WIDTHS["phone"], "height": 800})
    assert tab.locator(".models").evaluate("table => table.scrollWidth <= table.clientWidth"), (
        "the cards are wider than the phone"
    )
    cells = tab.locator(".models tbody tr").first.locator("td:not(:empty)")
    labels = cells.evaluate_all("cells => cells.map((cell) => getComputedStyle(cell, '::before').content)")
    assert labels == ["none", '"Year"', '"Encoding"', '"Window"', '"More"']  # BERT has no base, and nothing rotates
    tops = cells.evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().top)")
    assert tops == sorted({*tops}), "values of a card stand below each other"
