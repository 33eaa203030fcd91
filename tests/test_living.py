"""Living figures in the built pages: each begins with its plain figure's numbers, moves by keyboard, keeps its state, and fits.

What each of them shows of its chapter's claims is in test_living_figures.py.
"""

import gzip
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from runpy import run_path
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, Locator, Page
from playwright.sync_api import TimeoutError as TooSlow

from posenc_course.experiment.config import SCHEMES
from posenc_course.plotting import COLORS, DIVERGING, SCHEME_STYLES, SEQUENTIAL
from posenc_course.transformer import Decoder
from tests.commands import ROOT, WEEKLY
from tests.test_site import SOURCES, Site, forget, site
from tools.book.browser import DRAWN

__all__ = ["site"]
living = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/living.py")))
figures = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/figures.py")))
ELEMENT = re.compile(r'<living-figure for="([\w-]+)" figure="(\w+)" (?:state="[^"]+" )?try="([^"]+)">')


def placed(element: re.Pattern[str] = ELEMENT) -> dict[str, str]:
    """The pages of all living figures, by the plain figures that they bring to life."""
    found: dict[str, str] = {}
    for document, source in SOURCES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        cells = json.loads(text)["cells"] if source.endswith(".ipynb") else [{"source": [text]}]
        for cell in cells:
            found |= {match[1]: f"{document}.html" for match in element.finditer("".join(cell["source"]))}
    return found


FIGURES = placed()
# A phone on which data are to be saved, so that no model is loaded.
SAVES = "Object.defineProperty(navigator, 'connection', { value: { saveData: true } })"
CHOOSE = "document.querySelectorAll('.guess').forEach(guess => guess.open = true)"  # what follows a prediction waits for that
# What stands around the figures makes each change of the width slow, and none of it is looked at.
ALONE = """() => {
    const figures = [...document.querySelectorAll('figure:has(living-figure)')];
    const around = (part) => !figures.some((figure) => figure.contains(part) || part.contains(figure));
    [...document.querySelectorAll('article *')].filter(around).forEach((part) => part.remove());
}"""
SPOKEN = """([plain, before]) => {
    const [says, spoken] = ['.says', '[role=status]'].map(part => document.querySelector(`#${plain} ${part}`).innerText);
    return spoken === says && says !== before;
}"""
KEPT: dict[str, tuple[str, dict[str, Any]]] = {}  # addresses of changed figures, and their states


def new_phone(browser: Browser, *, motion: bool = False) -> Page:
    reduced: Literal["no-preference", "reduce"] = "no-preference" if motion else "reduce"
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, offline=True, reduced_motion=reduced
    )
    context.add_init_script(SAVES)
    return context.new_page()


@contextmanager
def phone(browser: Browser, *, motion: bool = False) -> Iterator[Page]:
    tab = new_phone(browser, motion=motion)
    yield tab
    tab.context.close()


shared_phone = cache(new_phone)  # because a new one takes longer than a page


def on_a_phone(browser: Browser, address: str, *plains: str) -> Page:
    """The page with these living figures on the phone that all tests of this process share, as if no other had been open."""
    tab = shared_phone(browser)
    forget(tab)
    tab.set_viewport_size({"width": 390, "height": 844})
    open_in(tab, address, *plains)
    return tab


@cache
def shared(browser: Browser) -> tuple[Page, list[str]]:
    """One tab, offline, for all tests of this process, because a new one takes longer than a page; and the errors in it."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, reduced_motion="reduce")
    tab = context.new_page()
    failed: list[str] = []
    tab.on("pageerror", lambda error: failed.append(f"{tab.url}: {error}"))
    return tab, failed


def open_in(tab: Page, address: str, *plains: str) -> None:
    """Open the page, unless it is open, and start its living figures instead of these plain ones."""
    if tab.url.partition("#")[0] != address:
        tab.goto(address)
        tab.evaluate(CHOOSE)
    for plain in plains:
        tab.evaluate("name => document.getElementById(name).scrollIntoView()", plain)
        tab.wait_for_selector(f"#{plain}.lives")


def settle(tab: Page, plain: str, *, moved: bool) -> None:
    """Wait until a change is complete, and the address tells of it; to look at each frame would keep the processor busy."""
    kept = f"(location.search + location.hash).includes('{plain.removeprefix('fig-')}.')"
    tab.wait_for_function(f"{kept} === {json.dumps(moved)}", polling=100)


def alone(plain: str) -> str:
    """The page that has nothing but this figure, and opens in a third of a chapter's time."""
    return f"embed/{plain.removeprefix('fig-')}.html"


def home(plain: str) -> str:
    """Where it is used: in its chapter on Mondays, or if others are there, too, because their states share the address.

    On a phone, a figure is as wide alone as in its chapter.
    """
    page = FIGURES[plain]
    return page if WEEKLY or [*FIGURES.values()].count(page) > 1 else alone(plain)


@contextmanager
def started(browser: Browser, site: Site, plain: str, page: str = "") -> Iterator[Page]:
    """The living figure, alone or on this page, started and in its first state, to which it is brought back afterwards."""
    tab, failed = shared(browser)
    open_in(tab, site.address(page or alone(plain)), plain)
    yield tab
    said, failed[:] = failed[:], []
    assert not said
    tab.locator(f"#{plain}").get_by_role("button", name="Start again").press("Enter")
    settle(tab, plain, moved=False)


def chosen(figure: Locator, name: str) -> Locator:
    """Of options that are seen at once, the one that is chosen; arrow keys choose its neighbours."""
    return figure.get_by_role("radiogroup", name=name).get_by_role("radio", checked=True)


def recorded(plain: str) -> dict[str, Any]:
    """What the notebook has stored of the plain figure."""
    source = ROOT / FIGURES[plain].replace(".html", ".ipynb")
    for cell in json.loads(source.read_text(encoding="utf-8"))["cells"]:
        if cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") == plain:
            (drawn,) = (out["metadata"]["image/svg+xml"]["drawn"] for out in cell["outputs"] if "image/svg+xml" in out["data"])
            return dict(drawn)
    raise AssertionError(f"{source} has no figure {plain}")


def numbers(array: dict[str, Any]) -> NDArray[np.float64]:
    return np.array([[float(number) for number in row.split()] for row in array["values"]]).squeeze()


def close(one: Any, other: Any) -> bool:
    """Equal to the six digits that are stored."""
    a, b = np.array(one, dtype=float).squeeze(), np.array(other, dtype=float).squeeze()
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-5, atol=2e-6 * np.nanmax(np.abs(b), initial=1e-6), equal_nan=True)


@pytest.mark.parametrize("plain", [name for name, page in FIGURES.items() if not page.endswith("index.html")], scope="module")
def test_it_begins_with_the_numbers_of_its_figure(browser: Browser, site: Site, plain: str) -> None:
    stored = recorded(plain)["axes"]
    known: dict[str, list[Any]] = {
        kind: [part for axes in stored for part in axes.get(kind, [])] for kind in ("lines", "points", "images", "areas")
    }
    with started(browser, site, plain, home(plain)) as tab:
        drawn = tab.evaluate(f"document.querySelector('#{plain} living-figure').drawn")
        weights = 'script[src*="data/text-"], script[src*="data/recite-"]'
        assert not tab.locator(weights).count(), "models are loaded before a reader moves anything"
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
        assert figure.locator(".says").inner_text().strip(), f"{plain} says nothing"
        assert not tab.locator(f"#{plain} > img:visible").count(), f"{plain}: the plain figure is shown beside the living one"
        first = figure.evaluate("e => e.state")
        controls = figure.locator(":is(input, select, button):visible")
        unreached = controls.evaluate_all("all => all.filter(e => { e.focus(); return e !== document.activeElement; }).length")
        assert not unreached, f"{plain}: no focus on {unreached} of its controls"
        slider = figure.locator("input[type=range]:visible").first
        key = "ArrowRight" if slider.evaluate("e => +e.value < +e.max") else "ArrowLeft"
        before = figure.locator(".says").inner_text()
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
        figure.get_by_role("button", name="Start again").press("Enter")
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
        figure.get_by_role("button", name="Start again").press("Enter")


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
    const parts = ["stage", "controls", "buttons", "says"].map((name) => host.querySelector(`:scope > .${name}`));
    const order = parts.map((part) => [...host.children].indexOf(part));
    const out = [...stage.querySelectorAll("text")].filter((words) => {
        const [box, inside] = [words, stage].map((part) => part.getBoundingClientRect());
        return words.textContent.length > 1 && (box.left < inside.left - 4 || box.right > inside.right + 4);
    }).map((words) => words.textContent);
    return { moved, order, out };
}"""
)
GRID = """(plain) => {
    const host = document.querySelector(`#${plain} living-figure`);
    const seen = (part) => part.checkVisibility({ visibilityProperty: true });
    const box = (part) => part.getBoundingClientRect();
    const all = [...host.querySelectorAll(".control, button, select, [type=checkbox], .segments label")].filter(seen);
    const cells = all.filter((part) => part.matches(".control:not(.compact *)") && !part.querySelector("textarea"));
    const name = (part) => part.textContent || part.ariaLabel;
    const outside = (part) => box(part).left < box(host).left - 1 || box(part).right > box(host).right + 1;
    const middle = ({ top, height }) => top + height / 2;
    const small = (part) => !part.matches(".control") && box(part).height < 24;
    return {
        heights: cells.map((cell) => [name(cell), box(cell).height]),
        lower: cells.map((cell) => [name(cell), box(cell).top, Math.round(middle(box(cell.lastElementChild)))]),
        out: all.filter(outside).map(name),
        small: all.filter(small).map(name),
        folded: [...host.querySelectorAll("select")].filter((select) => select.options.length <= 4).map(name),
    };
}"""


def test_controls_stand_in_one_grid(on_phone: OnPhone) -> None:
    """Of one height and on common lines; few options are seen at once, and nothing is cut off on the narrowest phone."""
    tab, plains, _ = on_phone
    for width in (1280, 320, 390):  # the last is the phone's own, for the next test
        tab.set_viewport_size({"width": width, "height": 844})
        tab.evaluate(DRAWN)
        for plain in plains:
            found = tab.evaluate(GRID, plain)
            assert not found["out"], f"{plain} at {width} pixels"
            assert not found["small"], f"{plain} at {width} pixels"
            assert not found["folded"], f"{plain}: options that would have room"
            if width == 320:  # where options may need a second line
                continue
            assert len({height for _, height in found["heights"]}) <= 1, f"{plain} at {width} pixels: {found['heights']}"
            lines = {top: lower for _, top, lower in found["lower"]}
            uneven = [name for name, top, lower in found["lower"] if lower != lines[top]]
            assert not uneven, f"{plain} at {width} pixels"


def test_no_slider_moves_away_under_a_finger(on_phone: OnPhone) -> None:
    """Nor is a label cut off; and no model is loaded where data are to be saved."""
    tab, plains, _ = on_phone
    for plain in plains:
        found = tab.evaluate(SWEEP, plain)
        assert not found["moved"], plain
        assert not found["out"], plain
        assert found["order"] == sorted(found["order"]), f"{plain}: the picture, its controls, the words"
    assert not tab.locator('script[src*="data/text-"], script[src*="data/recite-"]').count()


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


@pytest.mark.slow  # the data are made with the models
def test_build_runs_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Decoder, "forward", lambda *given: pytest.fail("store what it gives, with a tool in tools/lab"))
    assert {"text-rope-0", "near-rope-0"} <= run_path(str(ROOT / "tools/sphinx/living_data.py"))["scripts"]().keys()


def test_scripts_are_light() -> None:
    """All of them compressed together, and those of each page one by one, but for the menu that few readers open."""
    texts = {name: text.encode() for name, text in living.scripts(ROOT).items() if "/" not in name}
    sizes = {name: len(gzip.compress(text, 9)) for name, text in texts.items()}
    loader = living.loader(ROOT).encode()
    course = [text for name, text in texts.items() if name not in ("configuration", "inspector")]  # of a single page
    assert len(gzip.compress(loader + b"".join(course), 9)) <= 60 * 1024

    def needed(name: str) -> set[str]:
        others = re.findall(r'"(\w+)"', re.findall(rb"\[.*?\]", texts[name])[0].decode())
        others += [other.decode() for other in re.findall(rb'living\.load\("(\w+)"\)', texts[name])]
        return {name}.union(*(needed(other) for other in others))

    for page in {*FIGURES.values()}:
        source = (ROOT / SOURCES[page.removesuffix(".html")]).read_text(encoding="utf-8").replace('\\"', '"')
        names = set().union(*(needed(figure) for _, figure, _ in ELEMENT.findall(source)), needed("element") - {"take"})
        size = sum(sizes[name] for name in names) + len(gzip.compress(loader, 9))
        assert size <= 22 * 1024, f"{page}: {[(name, sizes[name]) for name in sorted(names)]}"


@pytest.mark.parametrize(
    "line", ['import draw from "./draw.js";', "export default 1;", 'import { a as b } from "./c.js";', "export { a };"]
)
def test_line_that_cannot_become_classic_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=re.escape(line.split()[1])):
        living.classic("clocks", f"{line}\n")


def test_template_in_a_template_is_named() -> None:
    with pytest.raises(ValueError, match="inner one"):
        living.classic("clocks", "const words = `a ${b ? `${c} d` : e}`;\n")
    assert "a ${b} c  d" in living.classic("clocks", "const words = `a ${b} c  d`;\n")


def test_colours_are_those_of_the_plain_figures() -> None:
    sheet = ROOT / "book/_static/course.css"
    light, dark = (
        {name.removeprefix("fig-"): color for name, color in figures.tokens(sheet, theme).items() if name.startswith("fig-")}
        for theme in ("light", "dark")
    )
    assert light == {name: color.lower() for name, color in COLORS.items() if name != "black"}
    assert dark.keys() == light.keys()


def test_schemes_look_as_in_the_plain_figures(browser: Browser, site: Site) -> None:
    dashes = {"-": [], "--": ["dashed"], "-.": ["dash-dotted"], ":": ["dotted"]}
    names = {color: name for name, color in COLORS.items()}
    with started(browser, site, next(iter(FIGURES))) as tab:
        shown = tab.evaluate("living.load('models').then(({ SCHEMES }) => SCHEMES)")
    assert shown.keys() == SCHEMES.keys()
    for scheme, (label, look) in shown.items():
        style = SCHEME_STYLES[scheme]
        assert (label, look.split()) == (style.label, [names[style.color], *dashes[style.linestyle]])


def test_shades_are_those_of_the_plain_heatmaps(browser: Browser, site: Site) -> None:
    shares = np.linspace(0, 1, 101)
    with started(browser, site, next(iter(FIGURES))) as tab:
        for diverging, colors in ((False, SEQUENTIAL), (True, DIVERGING)):
            script = """async ([shares, diverging]) => {
                const { shade } = await living.load("draw");
                return shares.map((share) => shade(share, diverging));
            }"""
            shades = tab.evaluate(script, [shares.tolist(), diverging])
            assert np.abs(np.array(shades) - 255 * colors(shares)[:, :3]).max() < 7, "of 255, which is invisible"
