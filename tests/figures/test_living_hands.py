"""Living figures under a hand: scrolling changes nothing, rings are dragged, and a touch stops what moves unasked."""

import re

from playwright.sync_api import Browser, Page

from posenc_course.experiment import load_results
from posenc_course.experiment.corpus import DATA
from tests.experiment.recited import wrong
from tests.figures.living import FIGURES, STATE, alone, new_phone, on_a_phone, open_in
from tests.site.built import Site
from tools.book.browser import DRAWN

# A page whose figures move at a tenth of their speed until `slower` is 1, so that a busy processor is in time to touch them.
SLOW = "window.slower = 10; const real = requestAnimationFrame; requestAnimationFrame = (f) => real((now) => f(now / slower));"
# The page glides on after a finger has left it: until it stands still, and until it is slow.
STOPPED = "async () => { for (let y; y !== scrollY; await new Promise((on) => setTimeout(on, 200))) y = scrollY; }"
MIDDLE = """([plain, part]) => {
    const box = document.querySelector(`#${plain} ${part}`).getBoundingClientRect();
    return [box.x + 0.6 * box.width, box.y + box.height / 2];
}"""


def centre(tab: Page, plain: str, part: str = ".stage") -> tuple[float, float]:
    """Bring a part of the figure to the middle of the screen; returns where a finger comes down on it."""
    # A picture that sticks is in sight wherever its controls are, and they go over it: so it is brought to its own place first.
    for block, found in ("start", f"#{plain}"), ("center", f"#{plain} {part}"):
        tab.evaluate("([block, found]) => document.querySelector(found).scrollIntoView({ block })", [block, found])
    # A page of another width may have been in the tab.
    tab.evaluate(DRAWN)
    x, y = tab.evaluate(MIDDLE, [plain, part])
    return x, y


def swipe(tab: Page, x: float, y: float, by_x: int, by_y: int, pause: int = 0) -> None:
    """A real finger, which the browser may take for scrolling."""
    touch = tab.context.new_cdp_session(tab)
    points = [{"x": x + by_x * part / 8, "y": y + by_y * part / 8} for part in range(9)]
    for kind, at in [("touchStart", points[:1]), *(("touchMove", [point]) for point in points[1:]), ("touchEnd", [])]:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})
        tab.wait_for_timeout(pause)
    touch.detach()
    tab.evaluate(DRAWN)


def test_a_finger_that_scrolls_changes_nothing_and_one_that_drags_does(browser: Browser, site: Site) -> None:
    """On a slider, on the picture, and on a ring that moves sideways."""
    plain = "fig-made-for"
    state = STATE.format(plain)
    with new_phone(browser) as tab:
        open_in(tab, site.address(FIGURES[plain]), plain)
        before, address = tab.evaluate(state), tab.url
        for part in ("input[type=range]", ".stage", ".handle"):
            tab.evaluate(STOPPED)
            x, y = centre(tab, plain, part)
            scrolled = tab.evaluate("scrollY")
            swipe(tab, x, y, 3, -150)
            assert tab.evaluate("scrollY") > scrolled + 100, "the page scrolls"
            assert tab.evaluate(state) == before, part
        assert tab.url == address
        tab.evaluate(STOPPED)
        for part in ("input[type=range]", ".handle"):
            before = tab.evaluate(state)
            swipe(tab, *centre(tab, plain, part), -60, 2)
            after = tab.evaluate(state)
            assert {name for name in after if after[name] != before[name]} == {"made"}, part


def test_slider_takes_over_from_its_own_animation(browser: Browser, site: Site) -> None:
    """And it says its name once."""
    plain = "fig-two-turned"
    state = STATE.format(plain)
    with new_phone(browser, motion=True) as tab:
        open_in(tab, site.address(alone(plain)), plain)
        figure = tab.locator(f"#{plain} living-figure")
        slider = figure.get_by_role("slider", name="Move both by", exact=True)
        slider.press("Home")  # the first touch, after which nothing moves unasked
        figure.get_by_role("button", name="Play", exact=True).press("Enter")
        figure.get_by_role("button", name="Pause", exact=True).wait_for()
        tab.wait_for_function(f"{state}.both > 0")
        slider.press("Home")
        figure.get_by_role("button", name="Play", exact=True).wait_for()
        tab.wait_for_timeout(600)
        assert tab.evaluate(state)["both"] == 0


def test_picture_stays_in_sight_while_its_controls_are_used(browser: Browser, site: Site) -> None:
    plain = "fig-heatmap"
    tab = on_a_phone(browser, site.address(FIGURES[plain]), plain)
    last = tab.locator(f"#{plain} input[type=range]").last
    last.focus()
    tab.evaluate("plain => document.querySelector(`#${plain} .more`).scrollIntoView({ block: 'end' })", plain)
    stage, slider = tab.locator(f"#{plain} .stage").bounding_box(), last.bounding_box()
    assert stage
    assert slider
    assert 0 < stage["y"] < stage["y"] + stage["height"] <= slider["y"] < 844


# ── the hands of chapter 13 ──────────────────────────────────────────────────────────────────────────────────────────────

CLOCKS = "fig-break"
RING = "([plain, at]) => { const box = document.querySelectorAll(`#${plain} .handle`)[at].getBoundingClientRect();"
RING += " return [box.x + box.width / 2, box.y + box.height / 2, Math.min(box.width, box.height)]; }"
KEY = 8  # the ring after those of the eight clocks


def test_clocks_and_key_are_dragged_by_a_finger(browser: Browser, site: Site) -> None:
    state = STATE.format(CLOCKS)
    tab = on_a_phone(browser, f"{site.address(FIGURES[CLOCKS])}?break.step=3", CLOCKS)
    centre(tab, CLOCKS)
    scrolled = tab.evaluate("scrollY")
    for pair in range(8):
        x, y, size = tab.evaluate(RING, [CLOCKS, pair])
        assert size >= 44
        swipe(tab, x, y, -24, 12)  # along the rim, to the left
        after = tab.evaluate(state)
        assert after["method"] == "own"
        assert [after[f"p{i}"] < 0 for i in range(8)] == [i <= pair for i in range(8)]
    assert after["d"] == 56
    x, y, size = tab.evaluate(RING, [CLOCKS, KEY])
    assert size >= 44
    swipe(tab, x, y, 160, 40)
    assert tab.evaluate(state) == after | {"d": tab.evaluate(state)["d"]}
    assert tab.evaluate(state)["d"] > 200
    assert tab.evaluate("scrollY") == scrolled


# ── the race on the first page ───────────────────────────────────────────────────────────────────────────────────────────

RACE = "fig-loses-place"
STORED = load_results(DATA / "recite.json")
LANES = ("sinusoidal", "learned", "rope", "alibi")


def test_race_is_what_the_models_wrote_and_is_run_once(browser: Browser, site: Site) -> None:
    written = [STORED["written"][scheme] for scheme in LANES]
    assert [*map(wrong, written)] == [78, 69, 109, None]
    with new_phone(browser, motion=True) as tab:
        tab.goto(site.address(FIGURES[RACE]))
        tab.wait_for_selector(f"#{RACE}.lives")
        tab.evaluate("name => document.querySelector(`#${name} .stage`).scrollIntoView()", RACE)
        host = tab.locator(f"#{RACE} living-figure")
        # Until the race begins, the figure shows its end.
        tab.wait_for_function(f"document.querySelector('#{RACE} living-figure').drawn.texts[0].length < 128")
        began = tab.evaluate("performance.now()")
        seen: list[list[str]] = []
        while not seen or len(seen[-1][0]) < 128:
            texts = host.evaluate("e => e.drawn.texts")
            assert not seen or len(texts[0]) >= len(seen[-1][0]), "it begins again before its end"
            seen.append(texts)
            tab.wait_for_timeout(50)
        took = (tab.evaluate("performance.now()") - began) / 1000
        assert len({len(texts[0]) for texts in seen}) > 2, "it moves"
        assert len(seen[-1][0]) - len(seen[0][0]) < 12 * took + 1, "twelve letters a second; a busy processor shows fewer"
        for texts in seen:
            assert texts == [text[: len(texts[0])] for text in written], "what the models wrote, all as far"
        assert "learned table at letter 69, sinusoids at letter 78 and RoPE at letter 109; ALiBi none up to" in host.evaluate(
            "e => e.said"
        )
        tab.wait_for_timeout(1000)
        assert host.evaluate("e => e.state.length") == 128
        assert "loses-place" not in tab.url
        assert not host.locator("[role=status]").inner_text(), "nobody asked for it, so nothing is spoken"


def test_first_touch_stops_the_race_and_scrolling_does_not(browser: Browser, site: Site) -> None:
    length = f"{STATE.format(RACE)}.length"
    with new_phone(browser, motion=True) as tab:
        tab.add_init_script(SLOW)
        tab.goto(site.address(FIGURES[RACE]))
        tab.wait_for_selector(f"#{RACE}.lives")
        centre(tab, RACE)
        tab.wait_for_function(f"{length} < 128 && {length} > 65")
        swipe(tab, 200, 400, 0, -40)
        then = tab.evaluate(length)
        tab.wait_for_function(f"{length} > {then}")
        tab.touchscreen.tap(200, 300)
        on = tab.locator(f"#{RACE}").get_by_role("button", name="Go on")
        on.wait_for()
        stopped = tab.evaluate(length)
        tab.wait_for_timeout(500)
        assert tab.evaluate(length) == stopped < 128
        on.tap()
        tab.evaluate("slower = 1")
        tab.wait_for_function(f"{length} === 128")


def test_glasses_save_rope_and_no_absolute_scheme(browser: Browser, site: Site) -> None:
    """Without motion, the race is over at once; the letters are those that the models wrote."""
    near = [STORED["near"][scheme] for scheme in LANES]
    fallen = [*map(wrong, near)]
    assert fallen[2:] == [None, None]
    assert all(fall and fall < 90 for fall in fallen[:2])
    tab = on_a_phone(browser, site.address(FIGURES[RACE]), RACE)
    host = tab.locator(f"#{RACE} living-figure")
    assert host.evaluate("e => e.state.length") == 128
    glasses = host.get_by_role("button", name=re.compile("^Glasses for"))
    assert glasses.count() == 4
    for each in glasses.all():
        each.tap()
    host.locator("[aria-pressed=true]").nth(3).wait_for()
    assert host.evaluate("e => e.drawn.texts") == [text[:128] for text in near]
    says = f"sinusoids at letter {fallen[0]}; RoPE and ALiBi none up to letter 128"
    host.locator(".finding", has_text=says).wait_for()
