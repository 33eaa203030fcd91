"""What living figures compute, in a real browser: their formulas are the package's, and their decoder does what torch does."""

import base64
import itertools
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page

from posenc_course import alibi, naive, relative, rope, rope_scaling, sinusoidal, temperature
from posenc_course.contextual import ReflectedPositions
from posenc_course.experiment import changed, load_model
from posenc_course.transformer import Decoder
from tools.sphinx import living_data

windows = cache(living_data.windows)


def close(found: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[key], expected[key]) for key in expected)
    found, expected = (np.asarray(numbers, dtype=np.float64) for numbers in (found, expected))
    return found.shape == expected.shape and np.allclose(found, expected, rtol=1e-12, atol=1e-12)


def encodings(draw: random.Random) -> Iterator[tuple[str, list[Any], Any]]:
    """Calls of formulas.js, and what the package says."""
    width, base = draw.choice([1, 2, 7, 16, 64, 129]), draw.choice([1.5, 1e4, 5e5, draw.uniform(2, 1e6)])
    real = [draw.choice([0, -3, 511, 0.5, draw.uniform(-2000, 2000)]) for _ in range(4)]
    whole = [draw.randrange(600) for _ in range(4)]
    length = draw.choice([max(whole) + 1, 1000])
    yield "frequencies", [width, base], sinusoidal.frequencies(width, base)
    yield "sinusoidalTable", [real, width, base], sinusoidal.sinusoidal_table(real, width, base)
    yield "normalized", [whole, length], naive.normalized(whole, length)
    yield "normalized", [[0], 1], naive.normalized([0], 1)

    omega = sinusoidal.frequencies(2 * draw.choice([2, 3, 8, 32]), base)
    cos, sin = rope.rope_tables(real, omega, dtype=torch.float64)
    yield "ropeTables", [real, omega.tolist()], {"cos": cos, "sin": sin}
    x = torch.tensor([draw.gauss(0, 1) for _ in range(2 * len(omega) + 3)], dtype=torch.float64)
    scheme = rope.RotaryPositions(omega)  # rotates its pairs, and leaves the last three channels unchanged
    q = x[None, None, None, :]
    here = torch.tensor(real[:1], dtype=torch.float64)
    yield "applyRope", [x.tolist(), cos[0].tolist(), sin[0].tolist()], scheme.rotate(q, q, here, here)[0].flatten()
    w = torch.tensor([draw.gauss(0, 1) for _ in x], dtype=torch.float64)
    mirrors = ReflectedPositions(len(x), 1).double()
    mirrors.mirror.weight.data = torch.eye(len(x), dtype=torch.float64)  # each token is perpendicular to its own mirror
    token = mirrors.locate(w[None, None], torch.arange(1), None)
    yield "reflect", [x.tolist(), w.tolist()], mirrors.rotate(q, q, token, token)[0].flatten().detach()
    factor, trained = draw.choice([1, 4, draw.uniform(1, 40)]), draw.choice([64, 4096])
    stretch: list[Any] = [omega.tolist(), factor]
    yield "positionInterpolation", stretch, rope_scaling.position_interpolation(omega, factor)
    yield "ntkAware", stretch, rope_scaling.ntk_aware(omega, factor)
    turns: dict[str, Any] = {"slow": draw.choice([1, draw.uniform(0.5, 2)]), "fast": draw.choice([4, 32, draw.uniform(3, 64)])}
    ramp = turns | {"truncate": draw.choice([True, False])}
    yield "yarn", [*stretch, trained], rope_scaling.yarn(omega, factor, trained)
    yield "yarn", [*stretch, trained, ramp], rope_scaling.yarn(omega, factor, trained, **ramp)
    yield "llama3", [*stretch, trained], rope_scaling.llama3(omega, factor, trained)
    yield "llama3", [*stretch, trained, turns], rope_scaling.llama3(omega, factor, trained, **turns)
    yield "yarnAttentionFactor", [factor], rope_scaling.yarn_attention_factor(factor)
    yield "logFactor", [whole, trained], temperature.log_factor(whole, trained)
    floor, scale = draw.choice([1, 64, 8192]), draw.choice([0, 0.1])
    edges = [floor - 1, *whole, 10**6 * floor - 2, 10**6 * floor - 1]
    yield "llama4Factor", [edges, floor, scale], temperature.llama4_factor(edges, floor, scale)

    causal = draw.choice([True, False])
    buckets = 2 * draw.randrange(2, 40)
    farthest = draw.choice([128, buckets, 2 ** draw.randrange(7, 20), 10 ** draw.randrange(2, 7), draw.randrange(80, 2000)])
    yield bucketing(buckets, farthest, causal)


def bucketing(buckets: int, farthest: int, causal: bool) -> tuple[str, list[Any], Any]:
    """T5's buckets of all offsets beside an edge."""
    edges = relative._t5_edges(buckets, farthest, causal=causal).long().tolist()
    near = sorted({sign * (edge + step) for edge in edges for step in (-1, 0, 1) for sign in (-1, 1)} | {10**7, -(10**7)})
    return "t5Buckets", [near, buckets, farthest, causal], relative.t5_buckets(near, buckets, farthest, causal=causal)


def test_formulas_are_the_packages(page: Page) -> None:
    draw = random.Random(0)
    cases = [case for _ in range(30) for case in encodings(draw)]
    cases += [("alibiSlopes", [heads], alibi.alibi_slopes(heads)) for heads in (*range(1, 40), 64, 96)]
    for buckets, farthest, causal in itertools.product(
        range(4, 65, 2), (40, 64, 96, 128, 192, 256), (True, False)
    ):  # chapter 9
        cases.append(bucketing(buckets, farthest, causal))
    found = page.evaluate(
        "(calls) => living.load('formulas').then((made) => calls.map(([name, given]) => plain(made[name](...given))))",
        [[name, given] for name, given, _ in cases],
    )
    wrong = [case for case, value in zip(cases, found, strict=True) if not close(value, case[2])]
    assert not wrong, f"{len(wrong)} of {len(cases)}, the first: {wrong[0]}"
    tried = {name for name, _, _ in cases}
    assert tried == set(page.evaluate("living.load('formulas').then(Object.keys)"))


# ── The decoder ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DECODE = """async ([name, tokens, { pieces, stretch, ...options }]) => {
  const { Decoding, unpackModel } = await living.load("decoder");
  const model = ready[name] ??= unpackModel(await living.load(`data/${name}`));
  if (stretch) {
    const { ntkAware } = await living.load("formulas");
    options.changes = { frequencies: ntkAware(model.scheme.frequencies, stretch) };
  }
  const decoding = new Decoding(model, options);
  const rows = [];
  for (let at = 0, p = 0; at < tokens.length; p++) {
    const end = at + (pieces ? pieces[p % pieces.length] : tokens.length);
    rows.push(...decoding.extend(tokens.slice(at, end)));
    at = end;
  }
  return packed(rows);
}"""


def in_page(page: Page, scheme: str, tokens: list[int], **how: Any) -> np.ndarray:
    """The browser's logits, (tokens, vocabulary)."""
    found = page.evaluate(DECODE, [f"text-{scheme}-0", tokens, how])
    return np.frombuffer(base64.b64decode(found), dtype=np.float64).reshape(len(tokens), -1)


def in_torch(model: Decoder, tokens: list[int]) -> np.ndarray:
    with torch.inference_mode():
        return np.asarray(model(torch.tensor([tokens]))[0].double())


def ids(length: int) -> list[int]:
    return list(windows()[0].encode())[:length]


@pytest.mark.parametrize("scheme", ["rope", "alibi"])
def test_decoder_is_the_packages(page: Page, scheme: str) -> None:
    model, tokens = load_model(scheme), ids(200)
    found = {"whole": in_page(page, scheme, tokens), "window": in_page(page, scheme, tokens, window=16)}
    expected = {"whole": in_torch(model, tokens), "window": in_torch(changed(model, "window", 1, 16), tokens)}
    found["short"], expected["short"] = in_page(page, scheme, tokens[:64]), in_torch(model, tokens[:64])
    if scheme == "rope":
        found["stretched"] = in_page(page, scheme, tokens, stretch=8)
        expected["stretched"] = in_torch(changed(model, "ntk", 512, 64), tokens)
    differences = {name: np.abs(found[name] - expected[name]).max() for name in found}
    assert max(differences.values()) < 1e-4, differences

    one_by_one = in_page(page, scheme, tokens, pieces=[1, 30, 2, 7])
    assert np.array_equal(one_by_one, found["whole"])
    assert np.array_equal(in_page(page, scheme, tokens, pieces=[1], window=16), found["window"])


# ── Asking from a page ───────────────────────────────────────────────────────────────────────────────────────────────────


def asked(page: Page, model: str, texts: list[str], **job: object) -> Any:
    return page.evaluate("(job) => ask(job).then(plain)", {"model": model, "texts": texts} | job)


def test_writing_is_what_the_model_says_and_a_seed_repeats_it(page: Page) -> None:
    prompt = windows()[2][:50]

    def written(**how: float) -> list[int]:
        return list(asked(page, "text-alibi-0", [prompt], write={"bytes": 30, **how})["each"][0]["written"])

    expected, model = list(prompt.encode()), load_model("alibi")
    for _ in range(30):
        expected.append(int(in_torch(model, expected)[-1].argmax()))
    assert written() == expected[50:]
    one, again, other = (written(temperature=0.6, seed=seed) for seed in (1, 1, 2))
    assert one == again != other


def test_the_newest_question_of_a_slot_wins_and_slots_take_turns(page: Page) -> None:
    old, new, other, order = page.evaluate(
        """async (texts) => {
          const order = [];
          const { run } = await living.load("models");
          const asked = (slot, label) => run({ model: "text-alibi-0", texts, slot }, ({ done }) => order.push(label + done));
          const all = [asked("a", "old"), asked("b", "other")];
          all.splice(1, 0, asked("a", "new"));
          return [...await Promise.all(all), order];
        }""",
        [text[:20] for text in windows()[:3]],
    )
    assert old is None
    assert order == ["other1", "new1", "other2", "new2", "other3", "new3"]
    assert new["each"] == other["each"]
    assert all(len(text["losses"]) == 19 for text in new["each"])


MESSAGE = "(job) => ask(job).then(() => 'nothing', (error) => error.message)"


def test_what_cannot_be_asked_is_said(page: Page) -> None:
    def said(model: str) -> str:
        return str(page.evaluate(MESSAGE, {"model": model, "texts": ["abcde"]}))

    assert said("text-rope-9") == "A part of this figure could not be loaded. Check your connection, and try again."
    assert said("text-rope-0") == "nothing"  # after that, it works again
    assert [text["losses"] for text in asked(page, "text-rope-0", ["", "a"])["each"]] == [[], []]


def test_a_browser_that_starts_no_worker_is_told_of(browser: Browser, folder: Path) -> None:
    with browser.new_page() as page:
        page.goto((folder / "page.html").as_uri())
        page.evaluate("() => { window.Worker = function () { throw new DOMException('no'); }; }")
        assert "doesn't let the page start a worker" in page.evaluate(MESSAGE, {"model": "text-alibi-0", "texts": ["ab"]})
