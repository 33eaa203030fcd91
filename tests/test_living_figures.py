"""What readers find when they move the living figures: each claim is reached by keyboard, and its numbers are the package's."""

import re

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page

from posenc_course.alibi import AlibiPositions
from posenc_course.attention import attention_weights
from posenc_course.geometry import wavelengths
from posenc_course.naive import normalized
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies, sinusoidal_table
from tests.test_living import numbers, recorded, site, started
from tests.test_site import Site, site

__all__ = ["site"]


@pytest.mark.slow
def test_order_changes_weights_through_each_door_but_a_mirror_none_through_the_third(browser: Browser, site: Site) -> None:
    given = {name: torch.from_numpy(numbers(rows)) for name, rows in recorded("fig-two-orders")["given"].items()}
    positions = torch.arange(6)

    def weights(scheme: PositionScheme, order: list[int]) -> torch.Tensor:
        x = scheme.embed(given["X"][None, order], positions)
        q, k = ((x @ given[name])[:, None].expand(-1, 8, -1, -1) for name in ("W_q", "W_k"))
        q, k = scheme.rotate(q, k, positions, positions)
        return attention_weights(q, k, bias=scheme.bias(q, positions, positions))[0, 0]  # of ALiBi's heads the steepest

    alibi = AlibiPositions(8)
    schemes = (PositionScheme(), SinusoidalPositions(4), RotaryPositions(frequencies(4)), alibi)
    with started(browser, site, "fig-two-orders") as tab:
        figure = tab.locator("#fig-two-orders living-figure")
        for order, button in (([1, 2, 3, 4, 5, 0], ""), ([5, 4, 3, 2, 1, 0], "Read backwards")):
            if button:
                figure.get_by_role("button", name=button).press("Enter")
            for scheme, key in zip(schemes, ("Home", *["ArrowDown"] * 3), strict=True):
                figure.get_by_label("Position enters at").press(key)
                change = (weights(scheme, order) - weights(scheme, list(range(6)))[order][:, order]).abs().max()
                blind = scheme is schemes[0] or (bool(button) and scheme is alibi)
                assert (change < 1e-9) == blind
                says = "none has changed" if blind else f"largest change of a weight is {change:.3f}"
                figure.locator(".says", has_text=says).wait_for(timeout=3000)


@pytest.mark.slow
def test_one_value_means_another_token_at_each_length(browser: Browser, site: Site) -> None:
    def bearers(value: float, *lengths: int) -> list[str]:
        tables = {length: normalized(range(length), length).tolist() for length in lengths}
        return [f"token {table.index(value) + 1} of {length}" for length, table in tables.items() if value in table]

    with started(browser, site, "fig-grids") as tab:
        figure = tab.locator("#fig-grids living-figure")
        first, last = (normalized([2], length)[0] for length in (4, 64))
        says = f"Token 3 is at {first:.3f} in a sentence of 4 tokens and at {last:.3f} in one of 64."
        assert says in figure.locator(".says").inner_text()
        figure.get_by_role("combobox").press("ArrowDown")
        figure.get_by_role("slider", name="Tokens in your sentence").press("End")
        two = bearers(0.4, 4, 6, 81, 24, 64)
        assert len(two) == 2
        says = f"The value 0.40 is the position of {' and '.join(two)}, and of no token"
        figure.locator(".says", has_text=says).wait_for(timeout=3000)
        for _ in range(2):
            figure.get_by_role("slider", name="Value").press("ArrowRight")
        (one,) = bearers(0.5, 4, 6, 81, 24, 64)
        figure.locator(".says", has_text=f"The value 0.50 is the position of {one}, and of no").wait_for(timeout=3000)
        figure.get_by_role("combobox").press("ArrowDown")
        figure.locator(".says", has_text="Token 3 is at 2, however long the sentence").wait_for(timeout=3000)


def press(tab: Page, control: Locator, key: str, times: int) -> None:
    control.focus()
    for _ in range(times):
        tab.keyboard.press(key)


def says(tab: Page, plain: str, words: str) -> list[float]:
    """The numbers of what the figure says, once these words are in it."""
    said = tab.locator(f"#{plain} .says", has_text=words)
    said.wait_for()
    return [float(number.replace(",", "").replace("−", "-")) for number in re.findall(r"−?\d[\d,]*\.?\d*", said.inner_text())]


@pytest.mark.slow
def test_rightmost_columns_move_in_longer_tables(browser: Browser, site: Site) -> None:
    """Chapter 3: the rightmost pairs hardly move in 60 tokens; they are there for longer texts."""
    with started(browser, site, "fig-heatmap") as tab:
        figure = tab.locator("#fig-heatmap")
        turns = wavelengths(64)
        short = says(tab, "fig-heatmap", "within these 60 positions")
        press(tab, figure.get_by_label("Column to read"), "End", 1)
        press(tab, figure.get_by_label("Positions", exact=False).first, "End", 1)
        press(tab, figure.get_by_label("Position to read"), "End", 1)
        position, column, *_, value, repeats, pairs, full, length, slowest, _ = says(tab, "fig-heatmap", "within these 48,000")
        middle = figure.evaluate("e => e.querySelector('living-figure').drawn.images[0][120]")
    assert len(turns) in short and (turns <= 60).sum() in short, "the pairs that make a full turn"
    assert (position, column, length) == (length - 1, 63, 48000)
    assert value == round(sinusoidal_table([position], 64)[0, 63].item(), 2)
    assert repeats == slowest == round(turns[-1].item()) <= length
    assert pairs == full == (turns <= length).sum() == 32
    mean = sinusoidal_table(range(120 * 200, 121 * 200), 64).mean(dim=0)
    assert abs(mean.numpy() - middle).max() < 1e-9, "each line of the picture is the mean of its positions"
