"""The living figures that run trained models: used by keyboard, they show the numbers that the package computes."""

import copy
import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as TooSlow

from posenc_course.experiment import curve, load_corpus, load_model, load_results, token_losses
from posenc_course.plotting import SCHEME_STYLES
from posenc_course.relative import WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import llama3, ntk_aware, position_interpolation, yarn
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Decoder
from tests.figures.living import SAID, started
from tests.site.built import Site
from tools.book.browser import DRAWN


def said(tab: Page, plain: str, *words: str, within: float = 60) -> str:
    """What the figure says once it contains all these words and no more texts are to come."""
    script = """([plain, words]) => {
        const { said } = document.querySelector(`#${plain} living-figure`);
        return words.every((word) => said.includes(word)) && !said.includes("So far") && said;
    }"""
    try:
        return str(tab.wait_for_function(script, arg=[plain, list(words)], timeout=1000 * within).json_value())
    except TooSlow:
        says = tab.evaluate(SAID.format(plain))
        state = tab.evaluate(f"document.querySelector('#{plain} living-figure').state")
        raise AssertionError(f"after {within} s, {plain} says {says!r} in the state {state}, and not {words}") from None


# ── the hands of chapter 13 ──────────────────────────────────────────────────────────────────────────────────────────────

OMEGA = frequencies(16)
RECIPES = {
    "Position interpolation": position_interpolation,
    "NTK-aware": ntk_aware,
    "YaRN": lambda omega, factor: yarn(omega, factor, 64),
    "Llama 3": lambda omega, factor: llama3(omega, factor, 64),
}


class Listening(RotaryPositions):
    """Keeps the queries and keys of each layer, before they are rotated."""

    def __init__(self) -> None:
        super().__init__(OMEGA)
        self.heard: list[tuple[torch.Tensor, torch.Tensor]] = []

    def rotate(
        self, q: torch.Tensor, k: torch.Tensor, q_positions: torch.Tensor, k_positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.heard.append((q, k))
        return super().rotate(q, k, q_positions, k_positions)


def with_positions(model: Decoder, scheme: PositionScheme) -> Decoder:
    model = copy.deepcopy(model)
    parts: list[Any] = [model, *(block.attention for block in model.blocks)]
    for part in parts:
        part.scheme = scheme
    return model


@cache
def texts_of_the_chapter(pieces: int = 16) -> torch.Tensor:
    text = load_corpus().validation
    return text[torch.arange(pieces)[:, None] * (len(text) // pieces) + torch.arange(513)]


@cache
def added_by_pairs(seed: int, scheme: RotaryPositions) -> np.ndarray:
    """What each pair adds to the score of the mean query at m and the mean key at 0, over the last layer's heads: (512, 8)."""
    ears = Listening()
    with torch.inference_mode():
        windows = texts_of_the_chapter(4).unfold(1, 65, 64).flatten(0, 1)
        with_positions(load_model("rope", seed), ears)(windows[:, :-1].long())
    q, k = (x.double().mean(dim=(0, 2))[None, :, None].expand(1, -1, 512, -1) for x in ears.heard[-1])
    q, k = scheme.rotate(q, k, torch.arange(512), torch.zeros(512, dtype=torch.long))
    return np.asarray((q * k).unflatten(-1, (8, 2)).sum(dim=-1)[0].mean(dim=0) / q.shape[-1] ** 0.5)


@cache
def losses(seed: int, scheme: PositionScheme) -> np.ndarray:
    model = with_positions(load_model("rope", seed), scheme)
    return np.asarray(token_losses(model, texts_of_the_chapter()).double().mean(dim=0))


def added_by_far_keys(seed: int, scheme: PositionScheme) -> np.ndarray:
    """Nats at each position, more than with a window of 64."""
    return losses(seed, scheme) - losses(seed, WINDOWED)


def smooth(losses: np.ndarray) -> np.ndarray:
    return np.convolve(losses, np.ones(16) / 16, "valid")


def cliff_of(added: np.ndarray) -> int | None:
    """Where the loss first rises by half a nat, above its mean within the training length."""
    high = np.flatnonzero(smooth(added) > added[:64].mean() + 0.5)
    return int(high[0]) + 8 if len(high) else None


AS_TRAINED = RotaryPositions(OMEGA)
WINDOWED = WindowedPositions(AS_TRAINED, 64)
# What is changed: a pair's speed, or a recipe and its factor. The cliff moves, or it is gone.
SETTINGS: list[tuple[str, float] | None] = [None, ("Pair 3", 0.5), ("Pair 3", 0.125), ("YaRN", 8), ("Llama 3", 4)]


@pytest.mark.parametrize("change", SETTINGS)
def test_hands_sums_and_cliff_are_the_packages(browser: Browser, site: Site, change: tuple[str, float] | None) -> None:
    plain, distance, seed = "fig-break", 120, 1 if change else 0
    name, by = change or ("As trained", 1)
    with started(browser, site, plain) as tab:
        figure = tab.locator(f"#{plain} living-figure")
        figure.get_by_role("radio", name="eight", exact=True).check(force=True)
        figure.get_by_label("How far back").fill(str(distance))
        figure.get_by_role("radio", name=f"seed {seed}", exact=True).check(force=True)
        scheme, finished = AS_TRAINED, [name]
        if name in RECIPES:
            figure.get_by_label("Slow down by").select_option(label=name)
            figure.get_by_role("radio", name=str(by), exact=True).check(force=True)
            scheme, finished = RotaryPositions(RECIPES[name](OMEGA, by)), [f"with factor {by}", "instead of"]
        elif change:
            figure.get_by_label(name).fill(str(np.log2(by)))
            scheme = RotaryPositions(OMEGA * torch.where(torch.arange(8) == 3, by, 1.0))
            finished = [f"{name} at ×", "instead of"]
        says = said(tab, plain, f"The key is {distance} bytes back", *finished, within=180)
        drawn = figure.evaluate("e => e.drawn")

    before, after = (added_by_pairs(seed, s) for s in (AS_TRAINED, scheme))
    most = before.sum(axis=1)[:64].max()
    assert np.allclose(drawn["scores"], after.sum(axis=1) - most, atol=2e-4)
    over = float(after[distance].sum() - most)
    assert f"The eight add up to a score {abs(over):.1f} {'above' if over > 0 else 'below'} the highest in training" in says
    for i, (hand, trained) in enumerate(zip(drawn["hands"], OMEGA.tolist(), strict=True)):
        assert abs(hand["adds"] - after[distance, i]) < 1e-4
        angle = float(scheme.frequencies[i]) * distance
        apart = np.abs((angle - trained * np.arange(64) + np.pi) % (2 * np.pi) - np.pi).min()
        assert hand["known"] == bool(apart <= trained / 2 + 1e-6) or 63 * trained < angle < 64 * trained

    added = added_by_far_keys(seed, scheme)
    curve = smooth(added)
    line, shown = np.array(drawn["lines"][0]["y"]), (curve > -0.4) & (curve < 2.2)
    assert np.abs(line - curve)[shown].max() < 1e-4
    found = re.search(r"the cliff (?:is at position|stays at position|moves from position \d+ to) (\d+)", says)
    assert (int(found[1]) if found else None) == cliff_of(added)
    assert ("but the loss is higher from the beginning" in says) == (added[:64].mean() > 0.1)
    if change:
        near, plainly = losses(seed, WINDOWED)[:256].mean(), added_by_far_keys(seed, AS_TRAINED)
        told = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", says.split("The mean loss over ")[1])]
        expected = [256, near + added[:256].mean(), near + plainly[:256].mean(), 64, abs((added - plainly)[:64].mean())]
        assert np.allclose(told, expected[: len(told)], atol=0.006), (says, expected)


def test_rope_breaks_at_twice_the_length_and_recovers_with_64_bytes_in_sight(browser: Browser, site: Site) -> None:
    small = load_results("quick")
    base = curve(small, "alibi")[0]

    def more(scheme: str, change: str, end: int) -> str:
        found = float((curve(small, scheme, change=change)[0] - base)[end - 32 : end].mean())
        return f"{abs(found):.2f} nats {'below' if found < 0 else 'above'}"

    with started(browser, site, "fig-small") as tab:
        figure = tab.locator("#fig-small")
        assert f"linear has the highest, {more('linear', 'plain', 512)}" in said(tab, "fig-small", "480 to 511")
        figure.get_by_role("button", name="Only ALiBi").press("Enter")
        # A switch is turned from what it shows, and what the button did to it shows in the next frame.
        tab.evaluate(DRAWN)
        for scheme in ("rope", "shaw"):
            figure.get_by_label(SCHEME_STYLES[scheme].label).press("Space")
        says = said(tab, "fig-small", "480 to 511", "RoPE has the highest")
        assert f"RoPE has the highest, {more('rope', 'plain', 512)}" in says
