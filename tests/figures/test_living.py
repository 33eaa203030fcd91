"""Living figures in the built pages: each begins with its plain figure's numbers, moves by keyboard, keeps its state, and fits.

What each of them shows of its chapter's claims is in test_living_figures.py.
"""

from runpy import run_path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TooSlow

from posenc_course.plotting import COLORS
from tests.commands import ROOT
from tests.figures.living import FIGURES, SAID, again, close, home, numbers, on_a_phone, recorded, settle, started
from tests.site.built import Site
from tools.book.browser import DRAWN

figures = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/figures.py")))
# What stands around the figures makes each change of the width slow, and none of it is looked at.
ALONE = """() => {
    const figures = [...document.querySelectorAll('figure:has(living-figure)')];
    const around = (part) => !figures.some((figure) => figure.contains(part) || part.contains(figure));
    [...document.querySelectorAll('article *')].filter(around).forEach((part) => part.remove());
}"""
SPOKEN = """([plain, before]) => {
    const { said } = document.querySelector(`#${plain} living-figure`);
    return said !== before && document.querySelector(`#${plain} [role=status]`).textContent === said;
}"""
KEPT: dict[str, tuple[str, dict[str, Any]]] = {}  # addresses of changed figures, and their states


@pytest.mark.parametrize("plain", [name for name, page in FIGURES.items() if not page.endswith("index.html")], scope="module")
def test_it_begins_with_the_numbers_of_its_figure(browser: Browser, site: Site, plain: str) -> None:
    stored = recorded(plain)["axes"]
    known: dict[str, list[Any]] = {
        kind: [part for axes in stored for part in axes.get(kind, [])] for kind in ("lines", "points", "images", "areas")
    }
    with started(browser, site, plain, home(plain)) as tab:
        drawn = tab.evaluate(f"document.querySelector('#{plain} living-figure').drawn")
        assert not tab.locator('script[src*="data/text-"]').count(), "models are loaded before a reader moves anything"
    assert any(drawn.values()), f"{plain} keeps nothing that it draws"
    for kind in ("lines", "points"):
        for part in drawn[kind]:
            same = [p for p in known[kind] if close(part["x"], numbers(p["x"])) and close(part["y"], numbers(p["y"]))]
            assert same, f"{plain} begins with {kind} that its cell didn't plot: {str(part)[:200]}"
    for image in drawn["images"]:
        assert any(close(image, numbers(p)) for p in known["images"]), f"{plain} begins with an image not drawn by its cell"
    tips = [point for area in known["areas"] for point in zip(numbers(area["x"]), numbers(area["y"]), strict=True)]
    for arrow in drawn["arrows"]:
        assert any(close([arrow["x"], arrow["y"]], tip) for tip in tips), f"{plain}: no arrow of its cell ends at {arrow}"


@pytest.mark.parametrize("plain", FIGURES, scope="module")  # so it follows the test above, on the same page
def test_it_moves_by_keyboard_and_keeps_its_state_in_the_address(browser: Browser, site: Site, plain: str) -> None:
    with started(browser, site, plain, home(plain)) as tab:
        figure = tab.locator(f"#{plain} living-figure")
        assert figure.locator(".finding").inner_text().strip(), f"{plain} says nothing"
        assert not tab.locator(f"#{plain} > img:visible").count(), f"{plain}: the plain figure is shown beside the living one"
        first = figure.evaluate("e => e.state")
        controls = figure.locator(":is(input, select, button):visible")
        unreached = controls.evaluate_all("all => all.filter(e => { e.focus(); return e !== document.activeElement; }).length")
        assert not unreached, f"{plain}: no focus on {unreached} of its controls"
        slider = figure.locator("input[type=range]:visible").first
        key = "ArrowRight" if slider.evaluate("e => +e.value < +e.max") else "ArrowLeft"
        before = tab.evaluate(SAID.format(plain))
        slider.focus()
        tab.keyboard.press(key)
        settle(tab, plain, moved=True)
        changed = figure.evaluate("e => e.state")
        assert changed != first
        try:
            tab.wait_for_function(SPOKEN, arg=[plain, before], polling=100)
        except TooSlow:
            pytest.fail(f"{plain}: what changed is not spoken")
        query = tab.evaluate("location.search || location.hash")
        again(tab, plain)
        settle(tab, plain, moved=False)
        assert figure.evaluate("e => e.state") == first
    KEPT[plain] = (query, changed)


class OnPhone(NamedTuple):
    tab: Page
    plains: list[str]
    query: str


@pytest.fixture(scope="module", params=sorted({*map(home, FIGURES)}))
def on_phone(browser: Browser, site: Site, request: pytest.FixtureRequest) -> OnPhone:
    """A page on a phone, opened once for the three tests below, with the states that its figures had on a desktop."""
    plains = [plain for plain in FIGURES if home(plain) == request.param]
    query = "&".join(KEPT[plain][0].removeprefix("?") for plain in plains if plain in KEPT)
    # One that is kept in the fragment is alone on its page.
    tab = on_a_phone(browser, f"{site.address(request.param)}?{query}", *plains)
    tab.evaluate(ALONE)
    return OnPhone(tab, plains, query)


def test_address_brings_the_states_back(on_phone: OnPhone) -> None:
    tab, plains, query = on_phone
    assert query, "run the test before this one, too: it changes the figures and keeps their addresses"
    for plain in plains:
        figure = tab.locator(f"#{plain} living-figure")
        if plain in KEPT:
            assert figure.evaluate("e => e.state") == KEPT[plain][1], f"{plain}: {query} is not taken up"
        again(tab, plain)


SWEEP = (
    f"async (plain) => {{ const drawn = {DRAWN};"
    """
    const host = document.querySelector(`#${plain} living-figure`);
    const stage = host.querySelector(".stage");
    const moved = [];
    for (const slider of host.querySelectorAll("input[type=range]")) {
        if (!slider.checkVisibility()) continue;
        const [low, high, value] = [slider.min, slider.max, slider.value].map(Number);
        const tops = [];
        for (let part = 0; part <= 4; part++) {
            slider.value = low + ((high - low) * part) / 4;
            slider.dispatchEvent(new Event("input", { bubbles: true }));
            await drawn();
            tops.push(slider.getBoundingClientRect().top - host.getBoundingClientRect().top);
        }
        slider.value = value;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        await drawn();
        if (Math.max(...tops) > Math.min(...tops)) moved.push([slider.closest("label").textContent, tops]);
    }
    const out = [...stage.querySelectorAll("text")].filter((words) => {
        const [box, inside] = [words, stage].map((part) => part.getBoundingClientRect());
        return words.textContent.length > 1 && (box.left < inside.left - 4 || box.right > inside.right + 4);
    }).map((words) => words.textContent);
    return { moved, out };
}"""
)
GRID = """(plain) => {
    const host = document.querySelector(`#${plain} living-figure`);
    const box = (part) => part.getBoundingClientRect();
    const all = [...host.querySelectorAll(".control, button, select, [type=checkbox], .segments label")];
    const seen = all.filter((part) => part.checkVisibility({ visibilityProperty: true }));
    const outside = (part) => box(part).left < box(host).left - 1 || box(part).right > box(host).right + 1;
    const small = (part) => !part.matches(".control") && box(part).height < 24;
    return seen.filter((part) => outside(part) || small(part)).map((part) => part.textContent || part.ariaLabel);
}"""


def test_controls_fit_the_narrowest_phone_and_a_finger(on_phone: OnPhone) -> None:
    tab, plains, _ = on_phone
    folds = tab.locator(".more")
    folds.evaluate_all("folds => folds.forEach(fold => fold.open = false)")
    for plain in plains:
        height = tab.locator(f"#{plain} living-figure").evaluate("host => host.offsetHeight")
        assert height <= 844 or plain == "fig-inspector", f"{plain} is higher than its screen"
    folds.evaluate_all("folds => folds.forEach(fold => fold.open = true)")
    for width in (1280, 320, 390):  # the last is the phone's own, for the next test
        tab.set_viewport_size({"width": width, "height": 844})
        tab.evaluate(DRAWN)
        for plain in plains:
            assert not tab.evaluate(GRID, plain), f"{plain} at {width} pixels: cut off, or too small"


def test_no_slider_moves_away_under_a_finger(on_phone: OnPhone) -> None:
    """Nor is a label cut off; and no model is loaded where data are to be saved."""
    tab, plains, _ = on_phone
    for plain in plains:
        found = tab.evaluate(SWEEP, plain)
        assert not found["moved"], plain
        assert not found["out"], plain
    assert not tab.locator('script[src*="data/text-"]').count()


def test_without_scripts_and_on_paper_the_plain_figure_stands(browser: Browser, site: Site) -> None:
    plain = next(iter(FIGURES))
    with browser.new_page(java_script_enabled=False) as tab:
        tab.goto(site.address(FIGURES[plain]))
        assert tab.locator(f"#{plain} > img:visible").count() == 1
        assert not tab.locator("living-figure:visible").count()
    with started(browser, site, plain, FIGURES[plain]) as tab:
        tab.emulate_media(media="print")
        assert tab.locator(f"#{plain} > img:visible").count() == 1
        assert not tab.locator("living-figure:visible").count()
        tab.emulate_media(media="screen")


def test_nothing_is_loaded_before_it_comes_near(browser: Browser, site: Site) -> None:
    plain, page = next((plain, page) for plain, page in FIGURES.items() if page == "book/10_rope.html")
    asked: list[str] = []
    with browser.new_page(viewport={"width": 1280, "height": 200}) as tab:
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(f"{site.address(page)}#quiz")
        tab.wait_for_load_state("networkidle")
        assert not [url for url in asked if "/living/" in url]
        tab.locator(f"#{plain}").scroll_into_view_if_needed()
        tab.wait_for_selector(f"#{plain}.lives")
    assert [url for url in asked if "/living/" in url]


def test_colours_are_those_of_the_plain_figures() -> None:
    sheet = ROOT / "book/_static/course.css"
    light, dark = (
        {name.removeprefix("fig-"): color for name, color in figures.tokens(sheet, theme).items() if name.startswith("fig-")}
        for theme in ("light", "dark")
    )
    assert light == {name: color.lower() for name, color in COLORS.items() if name != "black"}
    assert dark.keys() == light.keys()
