"""Living figures in a browser: on a desktop or a phone, with one tab for all tests of a process."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from runpy import run_path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from playwright.sync_api import Browser, Locator, Page

from tests.commands import ROOT, WEEKLY
from tests.site.built import SOURCES, Site, forget

living = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/living.py")))
ELEMENT = re.compile(r'<living-figure for="([\w-]+)" figure="(\w+)" (?:(?:state|before)="[^"]+" )?try="([^"]+)"')


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


def new_phone(browser: Browser, *, motion: bool = False) -> Page:
    reduced: Literal["no-preference", "reduce"] = "no-preference" if motion else "reduce"
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, offline=True, reduced_motion=reduced
    )
    context.add_init_script(SAVES)
    return context.new_page()


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
        tab.locator(f"#{plain} .more").evaluate_all("folds => folds.forEach(fold => fold.open = true)")


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
    again(tab, plain)
    settle(tab, plain, moved=False)


def again(tab: Page, plain: str) -> None:
    """Start again, by a button of the menu, which needn't be open."""
    tab.locator(f"#{plain} .again").evaluate("button => button.click()")


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


SAID = "document.querySelector('#{} living-figure').said"  # above the picture, and in a fold below it
STATE = "document.querySelector('#{} living-figure').state"


def press(tab: Page, control: Locator, key: str, times: int) -> None:
    control.focus()
    for _ in range(times):
        tab.keyboard.press(key)


def says(tab: Page, plain: str, words: str) -> list[float]:
    """The numbers in what the figure says, once it contains these words."""
    said = tab.wait_for_function(
        f"words => (said => said.includes(words) && said)({SAID.format(plain)})", arg=words
    ).json_value()
    return [float(number.replace(",", "").replace("−", "-")) for number in re.findall(r"−?\d[\d,]*\.?\d*", said)]
