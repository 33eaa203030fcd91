"""The living figures that run trained models: used by keyboard, they show the numbers that the package computes."""

from __future__ import annotations

import copy
import re
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TooSlow

from posenc_course.experiment import SCHEMES, changed, curve, load_corpus, load_model, load_results, token_losses
from posenc_course.experiment.recital import STARTS, recital, write
from posenc_course.plotting import SCHEME_STYLES
from posenc_course.relative import WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.transformer import Decoder
from tests.commands import WEEKLY
from tests.test_living import FIGURES, chosen, close, numbers, recorded, shared, started
from tests.test_recite import wrong
from tests.test_site import Site, site

__all__ = ["site"]


def said(tab: Page, plain: str, *words: str, within: float = 60) -> str:
    """What the figure says once it contains all these words and no more texts are to come."""
    script = """([plain, words]) => {
        const says = document.querySelector(`#${plain} .says`).textContent;
        return words.every((word) => says.includes(word)) && !says.includes("So far") && says;
    }"""
    try:
        return str(tab.wait_for_function(script, arg=[plain, list(words)], timeout=1000 * within).json_value())
    except TooSlow:
        says = tab.locator(f"#{plain} .says").inner_text()
        state = tab.evaluate(f"document.querySelector('#{plain} living-figure').state")
        raise AssertionError(f"after {within} s, {plain} says {says!r} in the state {state}, and not {words}") from None


def press(tab: Page, plain: str, label: str, *keys: str) -> None:
    tab.locator(f"#{plain} .controls").get_by_label(label).focus()
    for key in keys:
        tab.keyboard.press(key)


def by_position(model: Decoder, scheme: PositionScheme, texts: torch.Tensor) -> np.ndarray:
    model = copy.deepcopy(model)
    parts: list[Any] = [model, *(block.attention for block in model.blocks)]
    for part in parts:
        part.scheme = scheme
    return np.asarray(token_losses(model, texts).double().mean(dim=0))


def test_first_bytes_are_asked_for_first(browser: Browser, site: Site) -> None:
    """So that a first curve is soon there; the whole text then gives the same losses for them."""
    script = """async () => {
        const [{ run }, texts] = await Promise.all([living.load("models"), living.load("data/windows-16")]);
        const seen = [];
        const note = ({ done, each }) => seen.push([done, each.map(({ losses }) => [...losses])]);
        await run({ model: "text-rope-0", texts: texts.slice(0, 2), first: 64 }, note);
        return seen;
    }"""
    with started(browser, site, "fig-where") as tab:
        part, one, two = tab.evaluate(script)
    assert [part[0], one[0], two[0]] == [0, 1, 2]
    assert [len(losses) for losses in part[1]] == [64]
    assert [len(losses) for losses in two[1]] == [512, 512]
    assert part[1][0] == one[1][0][:64]


@pytest.mark.parametrize("seed", range(3) if WEEKLY else [0])
def test_half_as_fast_pair_3_puts_the_cliff_twice_as_far(browser: Browser, site: Site, seed: int) -> None:
    text = load_corpus().validation
    texts = text[torch.arange(16)[:, None] * (len(text) // 16) + torch.arange(513)]  # as in the chapter
    model = load_model("rope", seed)
    trained = model.scheme
    assert isinstance(trained, RotaryPositions)
    slower = trained.frequencies.clone()
    slower[3] /= 2
    masked, before, after = (
        by_position(model, scheme, texts) for scheme in (WindowedPositions(trained, 64), trained, RotaryPositions(slower))
    )
    smooth = [np.convolve(losses - masked, np.ones(16) / 16, "valid") for losses in (before, after)]
    first, then = (int((added > 0.5).argmax()) + 7.5 for added in smooth)
    with started(browser, site, "fig-break") as tab:
        for _ in range(seed):
            chosen(tab.locator("#fig-break"), "Model").press("ArrowDown")
        assert f"position {first + 0.5:.0f}" in said(tab, "fig-break", f"{masked[:256].mean():.2f}")
        weights = f"document.querySelectorAll('script[src*=\"text-rope-{seed}\"]').length"
        press(tab, "fig-break", "Pair 3", "ArrowLeft", "ArrowLeft")
        says = said(tab, "fig-break", "Pair 3 at ×1/2", "instead of")
        assert tab.evaluate(weights) == 1
        found = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", says.split(": ", 1)[1])]
        cost = after[:64].mean() - before[:64].mean()
        far = [256, after[:256].mean(), before[:256].mean(), 64, masked[:256].mean()]
        expected = [then, first, *far, 64, cost]
        assert np.allclose(found, expected, atol=[0.6, 0.6, 0, 0.006, 0.006, 0, 0.006, 0, 0.0006]), (says, expected)
        line = tab.evaluate("document.querySelector('#fig-break living-figure').drawn.lines[0].y")
        assert np.abs(np.array(line) - smooth[1]).max() < 1e-4
    assert 1.9 * first < then < 2.2 * first
    assert cost < 0.01


def test_where_a_text_takes_too_long_the_record_stays(browser: Browser, site: Site) -> None:
    with shared(browser)[0].context.new_page() as tab:
        tab.goto(site.address(FIGURES["fig-break"]) + "#fig-break")
        tab.wait_for_selector("#fig-break.lives")
        tab.evaluate("""() => {
            window.Worker = class {
                postMessage({ question }) {
                    const data = { losses: question.text.slice(1).fill(1), ms: 9999 };
                    setTimeout(() => this.onmessage({ data }));
                }
            };
        }""")
        press(tab, "fig-break", "Pair 3", "ArrowLeft")
        assert "too slow" in said(tab, "fig-break", "recorded")
        (line,) = tab.evaluate("document.querySelector('#fig-break living-figure').drawn.lines")
    assert any(close(line["y"], numbers(part["y"])) for part in recorded("fig-break")["axes"][0]["lines"])


def changes_of(says: str) -> dict[str, float]:
    """By how many nats a narrower sight changes the losses, as the figure says it."""
    names = {SCHEME_STYLES[scheme].label: scheme for scheme in SCHEMES}
    found = re.findall(rf"({'|'.join(names)}) [+±]?(−?\d+(?:\.\d+)?)", says.split("by this many nats: ")[1])
    return {names[name]: float(number.replace("−", "-")) for name, number in found}


def test_rope_breaks_at_twice_the_length_and_recovers_with_64_bytes_in_sight(browser: Browser, site: Site) -> None:
    small = load_results("quick")
    base = curve(small, "alibi")[0]

    def more(scheme: str, change: str, end: int) -> str:
        found = float((curve(small, scheme, change=change)[0] - base)[end - 32 : end].mean())
        return f"{abs(found):.2f} nats {'below' if found < 0 else 'above'}"

    with started(browser, site, "fig-small") as tab:
        tab.locator("#fig-small").get_by_role("button", name="Only ALiBi").press("Enter")
        for scheme in ("rope", "shaw"):
            press(tab, "fig-small", SCHEME_STYLES[scheme].label, "Space")
        says = said(tab, "fig-small", "480 to 511", "RoPE has the highest")
        assert f"RoPE has the highest, {more('rope', 'plain', 512)}" in says
        press(tab, "fig-small", "Length", "Home", "ArrowRight")
        says = said(tab, "fig-small", "64 to 95", "Shaw has the lowest")
        assert f"Shaw has the lowest loss, {more('shaw', 'plain', 96)}" in says
        assert f"RoPE has the highest, {more('rope', 'plain', 96)}" in says
        press(tab, "fig-small", "Length", "End")
        press(tab, "fig-small", "In sight", *["ArrowLeft"] * 3)
        says = said(tab, "fig-small", "only the last 64 bytes in sight")
        assert f"Shaw has the lowest loss, {more('shaw', 'window', 512)} ALiBi's with all bytes in sight" in says
        assert changes_of(says) == {
            scheme: round(float((curve(small, scheme, change="window") - curve(small, scheme))[0].mean()), 2)
            for scheme in ("shaw", "rope", "alibi")
        }
        found: dict[int, dict[str, float]] = {}
        for window in (256, 128, 64, 32, 16, 8, 4):
            press(tab, "fig-small", "In sight", "End", *["ArrowLeft"] * (9 - window.bit_length() + 1))
            found[window] = changes_of(said(tab, "fig-small", f"only the last {window} bytes in sight"))
        best = min(change["rope"] for change in found.values())
        assert {window for window, change in found.items() if change["rope"] < best + 0.015} == {16, 32, 64}
        assert found[128]["rope"] > best + 0.5
        assert all(abs(found[window]["alibi"]) <= 0.01 for window in found if window >= 16)
        press(tab, "fig-small", "In sight", "End")

        own = load_corpus().validation[:300]
        text = "é" + bytes(own.tolist()).decode("ascii")[1:]
        chosen(tab.locator("#fig-small"), "Text").press("ArrowDown")
        tab.locator("#fig-small").get_by_label("Your text").fill(text)
        tab.locator("#fig-small").get_by_role("button", name="Run 3 models here (loads 690 kB)").press("Enter")
        says = said(tab, "fig-small", "read 1 character outside ASCII as a question mark", "256 to 287")
        own[0] = ord("?")
        losses = {scheme: token_losses(load_model(scheme), own[None])[0].double() for scheme in ("alibi", "rope", "shaw")}
        for scheme in ("rope", "shaw"):
            expected = float((losses[scheme] - losses["alibi"])[256:288].mean())
            assert f"{abs(expected):.2f} nats {'below' if expected < 0 else 'above'}" in says
        assert f"ALiBi's loss on your text is {float(losses['alibi'].mean()):.2f}" in says
        press(tab, "fig-small", "In sight", "End", *["ArrowLeft"] * 3)
        changes = changes_of(said(tab, "fig-small", "only the last 64 bytes in sight", "Shaw ", "RoPE ", "and ALiBi "))
        behind = {scheme: token_losses(changed(load_model(scheme), "window", 64, 64), own[None])[0] for scheme in losses}
        more_than = {scheme: float((behind[scheme] - losses[scheme])[:288].mean()) for scheme in losses}
        assert changes == pytest.approx(more_than, abs=0.0051)


def test_models_of_the_first_page_write_what_the_package_writes(browser: Browser, site: Site) -> None:
    """From the beginning, what is stored; from another number, and with glasses, what the models write in the page."""
    lanes = ("sinusoidal", "learned", "rope", "alibi")
    plain = "fig-loses-place"

    def texts(near: str = "") -> list[str]:
        """What the models write from the number five on, of which one sees only the last letters."""
        models = {scheme: load_model(scheme, part="recite") for scheme in lanes}
        if near:
            models[near] = changed(models[near], "window", 64, 64)
        prompt = recital(24, STARTS[4])[None]
        return [bytes(write(models[scheme], prompt, 256)[0].tolist()).decode() for scheme in lanes]

    def mistakes(found: list[str]) -> list[int | None]:
        return [wrong(text, STARTS[4]) for text in found]

    with started(browser, site, plain) as tab:
        figure = tab.locator(f"#{plain} living-figure")
        press(tab, plain, "Letters", "End")
        said(tab, plain, "ALiBi none up to letter 256")
        weights = "document.querySelectorAll('script[src*=\"data/recite-\"]').length"
        assert not tab.evaluate(weights)
        figure.locator("summary").press("Enter")
        press(tab, plain, "Start from number", *["ArrowRight"] * 4)
        said(tab, plain, "ALiBi none up to letter 256", f"RoPE at letter {mistakes(texts())[2]};")
        assert tab.evaluate(weights) == 4
        assert mistakes(figure.evaluate("e => e.drawn.texts")) == mistakes(texts())
        figure.get_by_role("button", name="Glasses for RoPE").press("Enter")
        said(tab, plain, "With glasses: RoPE none up to letter 256")
        assert mistakes(figure.evaluate("e => e.drawn.texts")) == mistakes(texts("rope"))
        assert mistakes(texts("rope"))[2:] == [None, None]
        figure.locator("summary").press("Enter")
