"""Every page in a real browser, offline and from its file: it works, fits, and is for everybody."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.site.built import AXED, CHAPTERS, PAGES, Site, barriers, open_alone, opened


@pytest.mark.parametrize("page", AXED)
def test_paper_is_light_and_shows_the_answers(shared: tuple[Page, list[str]], site: Site, page: str) -> None:
    tab = open_alone(shared, site.address(page), "print")
    tab.wait_for_function("document.documentElement.dataset.theme === 'dark'", timeout=5000)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    hidden = (
        "() => [...document.querySelectorAll('article details > :not(summary)')].filter(e => "
        "e.parentElement.checkVisibility() && !e.checkVisibility()).length"
    )
    assert tab.evaluate(hidden) == 0, f"{page}: closed answers are not printed: see @media print in course.css"
    assert tab.evaluate("document.documentElement.dataset.theme") == "light", f"{page} prints dark: see course.js"
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark", f"{page} stays light after printing"


@pytest.mark.parametrize("page", PAGES)
def test_nothing_fails_and_nothing_is_a_barrier(shared: tuple[Page, list[str]], site: Site, page: str) -> None:
    """Everything shows and nothing overflows; on the pages in AXED, axe finds no barrier either (WCAG AA)."""
    tab = open_alone(shared, site.address(page))
    problems = [*barriers(tab, with_axe=page in AXED), *shared[1]]
    assert not problems, f"{page}, mend each in its source or in book/_static/course.css:\n" + "\n".join(problems)


def test_quiz_answers_by_keyboard(browser: Browser, site: Site) -> None:
    page = CHAPTERS[0]
    with opened(browser, site.address(page)) as tab:
        options = tab.locator("details.quiz")
        assert options.count(), f"{page} has no quiz"
        for option in options.all():
            text, shown = option.locator("summary").inner_text(), option.locator("p").first
            option.locator("summary").focus()
            tab.keyboard.press("Enter")
            assert shown.is_visible(), f"{page}: Enter on {text!r} shows no reason"
            tab.keyboard.press("Enter")
            assert not shown.is_visible(), f"{page}: a second Enter does not close {text!r}"


def test_switch_between_light_and_dark(browser: Browser, site: Site) -> None:
    with opened(browser, site.address(CHAPTERS[1])) as tab:
        switch = tab.locator("button.theme-switch-button").first
        seen = set()
        for _ in range(3):  # auto, light, dark
            switch.click()
            theme = tab.evaluate("document.documentElement.dataset.theme")
            expect(tab.locator(f"figure:not(.lives) img.in-{theme}").first).to_be_visible()
            seen.add(theme)
        assert seen == {"light", "dark"}, f"{CHAPTERS[1]}: the switch only reaches {seen}"


FOUND = {
    "config.json": "reference/inspector",
    "cheat sheet": "reference/sheet",
    "RoPE code": "10_rope",
    "sqrt d_model": "05_norm",
}


@pytest.mark.parametrize("words", FOUND)
def test_search_shows_the_page_that_answers_first(browser: Browser, site: Site, words: str) -> None:
    with opened(browser, site.address("search.html") + f"?q={words}") as tab:
        first = tab.locator("#search-results li a").first
        expect(first).to_have_attribute("href", re.compile(rf"book/{FOUND[words]}\.html"))


def test_keyboard_sees_where_it_is(browser: Browser, site: Site) -> None:
    """From the link that skips what all pages have, through all that can be used, and out again."""
    stops = """() => {
        const e = document.activeElement;
        const {outlineStyle, boxShadow} = getComputedStyle(e);
        return e === document.body ? null : [e.outerHTML.slice(0, 120), outlineStyle !== 'none' || boxShadow !== 'none'];
    }"""
    with opened(browser, site.address(CHAPTERS[0])) as tab:
        seen: list[tuple[str, bool]] = []
        while len(seen) < 500:
            tab.keyboard.press("Tab")
            if (stop := tab.evaluate(stops)) is None:
                break
            seen.append(stop)
    assert '#main-content"' in seen[0][0], f"the first stop is {seen[0][0]}, not the link to the text"
    assert 50 < len(seen) < 500, f"the keyboard has {len(seen)} stops: is it caught, or kept out?"
    assert not (unseen := [stop for stop, shown in seen if not shown]), f"course.css shows no focus on {unseen}"


def test_screen_reader_hears_words(browser: Browser, site: Site) -> None:
    page = CHAPTERS[5]  # with all that chapters have
    with opened(browser, site.address(page) + "?all") as tab:  # with the results of all predictions
        tree = tab.context.new_cdp_session(tab).send("Accessibility.getFullAXTree")["nodes"]
    heard = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]]
    icons = [name for role, name in heard if role not in ("StaticText", "InlineTextBox") and re.search("[\ue000-\uf8ff]", name)]
    assert not icons, f"{page}: icons are read aloud in {icons}: see course.js"
    article = site.article(page)
    for name, kind in [("Code", ".cell > .cell_input"), ("Output", ".cell_output:not(details *)")]:
        told, there = heard.count(("group", name)), len(article.select(kind))
        assert told == there > 0, f"{page}: {told} of {there} groups say that they are {name}: see SPOKEN in light.py"
    hidden = {summary.p.get_text() for summary in article.select("details.hide > summary") if summary.p}
    unheard = hidden - {name for role, name in heard if role == "DisclosureTriangle"}
    assert not unheard, f"{page}: {unheard} is visible but not read aloud: see SPOKEN in tools/sphinx/markup.py"
    parts = {"MathMLSub", "MathMLSup", "MathMLSquareRoot", "MathMLTable", "MathMLOperator"}
    assert not (missing := parts - {role for role, _ in heard}), f"{page}: formulas are read without {missing}"
