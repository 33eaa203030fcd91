"""The page with the table of models: sorted by keyboard, readable on a phone, and complete without scripts."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from posenc_course.models import load_models
from tests.site.built import Site, opened

PAGE = "book/reference/models.html"
KINDS = [(model, kind) for model in load_models() for kind in model.attention]


@pytest.fixture
def tab(browser: Browser, site: Site) -> Iterator[Page]:
    problems: list[str] = []
    with opened(browser, site.address(PAGE), problems=problems) as tab:
        yield tab
    assert not problems


def column(tab: Page, number: int) -> list[str]:
    return tab.locator(f".models tbody td:nth-child({number})").evaluate_all("cells => cells.map((c) => c.dataset.value ?? '')")


def test_table_is_sorted_by_keyboard(tab: Page) -> None:
    assert column(tab, 1) == [model.name for model, _ in KINDS]
    button = tab.get_by_role("button", name="Base, released")
    header = tab.locator(".models th", has=button)
    known = sorted(kind.released.base for _, kind in KINDS if kind.released.base)
    for direction, expected in (("ascending", known), ("descending", known[::-1]), ("ascending", known)):
        button.focus()
        tab.keyboard.press("Enter")
        assert header.get_attribute("aria-sort") == direction
        values = column(tab, 5)
        assert [float(value) for value in values[: len(known)]] == expected
        assert set(values[len(known) :]) == {""}  # what isn't known comes last in both directions
    tab.get_by_role("button", name="Year").click()
    assert tab.locator("[aria-sort]").count() == 1
    assert column(tab, 2) == [str(model.year) for model, _ in KINDS]
    assert tab.get_by_role("button", name="More").count() == 0


def test_each_row_is_a_card_on_a_phone(tab: Page) -> None:
    tab.set_viewport_size({"width": 390, "height": 800})
    width = tab.evaluate("document.querySelector('.models').scrollWidth - document.querySelector('.models').clientWidth")
    assert width <= 0, "the cards are wider than the phone"
    cells = tab.locator(".models tbody tr").first.locator("td:not(:empty)")
    labels = cells.evaluate_all("cells => cells.map((cell) => getComputedStyle(cell, '::before').content)")
    assert labels == ["none", '"Year"', '"Encoding"', '"Window"', '"More"']  # BERT has no base, and nothing rotates
    tops = cells.evaluate_all("cells => cells.map((cell) => cell.getBoundingClientRect().top)")
    assert tops == sorted({*tops}), "values of a card stand below each other"
