"""What living figures compute, in a real browser: their formulas are the package's, and their decoder does what torch does."""

from __future__ import annotations

import base64
import itertools
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page
from torch import Tensor

from posenc_course import alibi, naive, relative, rope, rope_scaling, sinusoidal, temperature
from posenc_course import attention as attention_module
from posenc_course.contextual import ReflectedPositions
from posenc_course.experiment import SCHEMES, changed, load_model
from posenc_course.transformer import Decoder
from tests.commands import ROOT
from tools.sphinx import living_data

living = SimpleNamespace(**run_path(str(ROOT / "tools/sphinx/living.py")))
windows = cache(living_data.windows)

PAGE = """<!DOCTYPE html><meta charset="utf-8"><script src="living.js" data-version="1"></script><script>
const packed = (numbers) => {
  const bytes = new Uint8Array(new Float64Array(numbers).buffer);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return btoa(text);
};
const plain = (value) => JSON.parse(JSON.stringify(value, (_, part) => (ArrayBuffer.isView(part) ? Array.from(part) : part)));
const ask = async (...given) => (await living.load("models")).run(...given);
const ready = {};
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts as the site has them, beside a page that loads them."""
    folder = tmp_path_factory.mktemp("living")
    (folder / "living/data").mkdir(parents=True)
    (folder / "living.js").write_text(living.loader(ROOT), encoding="utf-8")
    for name, script in living.scripts(ROOT).items():
        (folder / f"living/{name}.js").write_text(script, encoding="utf-8")
    (folder / "page.html").write_text(PAGE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    with browser.new_page(offline=True) as page:
        page.goto((folder / "page.html").as_uri())
        yield page


def unpacked(text: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), dtype=np.float64)


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
    yield "linear", [whole], naive.linear(whole)
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
    grown = draw.randrange(1, 10 * trained)
    yield "dynamicNtk", [omega.tolist(), grown, trained, factor], rope_scaling.dynamic_ntk(omega, grown, trained, factor)
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
    reach, rows = 5, torch.arange(11.0)[:, None]  # each vector of the table is its own row's number
    of_offset = relative.shaw_bias(torch.ones(1, 1, 1, 1), rows, torch.tensor([40]), torch.arange(80)).flatten()
    cases += [("shawRow", [40 - key, reach], of_offset[key]) for key in range(80)]
    found = page.evaluate(
        "(calls) => living.load('formulas').then((made) => calls.map(([name, given]) => plain(made[name](...given))))",
        [[name, given] for name, given, _ in cases],
    )
    wrong = [case for case, value in zip(cases, found, strict=True) if not close(value, case[2])]
    assert not wrong, f"{len(wrong)} of {len(cases)}, the first: {wrong[0]}"
    tried = {name for name, _, _ in cases}
    assert tried == set(page.evaluate("living.load('formulas').then(Object.keys)"))


def test_every_float16_is_unpacked(page: Page) -> None:
    finite = np.arange(2**16, dtype=np.uint16).view("<f2")
    finite = finite[np.isfinite(finite)]
    packed = base64.b64encode(finite.tobytes()).decode()
    found = unpacked(
        page.evaluate("(text) => living.load('decoder').then(({ unpackHalf }) => packed(unpackHalf(text)))", packed)
    )
    assert np.array_equal(found, finite.astype(np.float64))
    assert np.array_equal(np.signbit(found), np.signbit(finite))


# ── The decoder ──────────────────────────────────────────────────────────────────────────────────────────────────────────

DECODE = """async ([name, tokens, positions, options, pieces]) => {
  const { Decoding, unpackModel } = await living.load("decoder");
  const stretchings = await living.load("formulas");
  const model = ready[name] ??= unpackModel(await living.load(`data/${name}`));
  if (options.stretch) {
    const [method, ...given] = options.stretch;
    const attentionFactor = method === "yarn" ? stretchings.yarnAttentionFactor(given[0]) : 1;
    options.changes = { frequencies: stretchings[method](model.scheme.frequencies, ...given), attentionFactor };
  }
  const decoding = new Decoding(model, options);
  const rows = [];
  for (let at = 0, p = 0; at < tokens.length; p++) {
    const end = at + (pieces ? pieces[p % pieces.length] : tokens.length);
    rows.push(...decoding.extend(tokens.slice(at, end), positions?.slice(at, end)));
    at = end;
  }
  return packed(rows);
}"""


def in_page(
    page: Page, scheme: str, tokens: list[int], positions: list[float] | None = None, *, pieces: Any = None, **options: Any
) -> np.ndarray:
    """The browser's logits, (tokens, vocabulary)."""
    return unpacked(page.evaluate(DECODE, [f"text-{scheme}-0", tokens, positions, options, pieces])).reshape(len(tokens), -1)


def in_torch(model: Decoder, tokens: list[int], positions: list[float] | None = None, window: int = 1000) -> np.ndarray:
    """The package's, with a mask by order, whatever the positions."""

    def by_order(queries: Tensor, keys: Tensor) -> Tensor:
        return torch.ones(queries.shape[-1], keys.shape[-1], dtype=torch.bool).tril().triu(1 - window)

    with pytest.MonkeyPatch.context() as patch, torch.inference_mode():
        patch.setattr(attention_module, "causal_mask", by_order)
        where = None if positions is None else torch.tensor(positions, dtype=torch.float64)
        return np.asarray(model(torch.tensor([tokens]), where)[0].double())


def ids(length: int, window: int = 0) -> list[int]:
    return list(windows()[window].encode())[:length]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_decoder_is_the_packages(page: Page, scheme: str) -> None:
    length = 200
    model, tokens = load_model(scheme), ids(length)
    cases: dict[str, list[float] | None] = {
        "as it is": None,
        "shifted": [*range(300, 300 + length)],
        "shuffled": random.Random(0).sample(range(length), length),
        "backwards": [*reversed(range(length))],
        "repeated": [m // 3 for m in range(length)],
        "dropped": [0] * length,
    }
    if scheme in ("none", "sinusoidal", "rope", "alibi"):
        cases["fractions"] = [0.37 * m - 20 for m in range(length)]
    found = {name: in_page(page, scheme, tokens, positions) for name, positions in cases.items()}
    expected = {name: in_torch(model, tokens, positions) for name, positions in cases.items()}
    found["window"] = in_page(page, scheme, tokens, window=16)
    expected["window"] = in_torch(changed(model, "window", 1, 16), tokens)
    found["shuffled window"] = in_page(page, scheme, tokens, cases["shuffled"], window=16)
    expected["shuffled window"] = in_torch(model, tokens, cases["shuffled"], window=16)
    found["short"] = in_page(page, scheme, tokens[:64])
    expected["short"] = in_torch(model, tokens[:64])
    differences = {name: np.abs(found[name] - expected[name]).max() for name in found}
    assert max(differences.values()) < 1e-4, differences
    assert scheme == "none" or np.abs(found["shuffled"] - found["as it is"]).max() > 0.1  # positions arrive

    one_by_one = in_page(page, scheme, tokens, pieces=[1, 30, 2, 7])
    if scheme == "normalized":  # divides by what comes at once
        assert not np.array_equal(one_by_one, found["as it is"])
    else:
        assert np.array_equal(one_by_one, found["as it is"])
        assert np.array_equal(in_page(page, scheme, tokens, pieces=[1], window=16), found["window"])


STRETCHINGS = {  # a change of the lab, and how a figure asks for it: the method of formulas.js and what it is given
    "interpolation": ["positionInterpolation", 8],
    "ntk": ["ntkAware", 8],
    "yarn": ["yarn", 8, 64],
}


def test_a_stretched_decoder_is_the_packages_at_512_bytes(page: Page) -> None:
    tokens, model = ids(512), load_model("rope")
    found = {"plain": in_page(page, "rope", tokens)}
    found |= {change: in_page(page, "rope", tokens, stretch=stretch) for change, stretch in STRETCHINGS.items()}
    expected = {change: in_torch(model if change == "plain" else changed(model, change, 512, 64), tokens) for change in found}
    differences = {change: np.abs(found[change] - expected[change]).max() for change in found}
    assert max(differences.values()) < 1e-4, differences
    assert all(np.abs(found[change] - found["plain"]).max() > 0.1 for change in STRETCHINGS)


# ── Asking from a page ───────────────────────────────────────────────────────────────────────────────────────────────────


def asked(page: Page, model: str, texts: list[str], **job: object) -> Any:
    return page.evaluate("(job) => ask(job).then(plain)", {"model": model, "texts": texts} | job)


def test_attention_is_the_packages(page: Page) -> None:
    text, queries = windows()[1][:101], [0, 40, 99]
    weights: list[Tensor] = []
    original = attention_module.attention_weights

    def kept(*given: Any, **options: Any) -> Tensor:
        weights.append(original(*given, **options)[0])
        return weights[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention_module, "attention_weights", kept)
        for window in (101, 8):
            weights.clear()
            in_torch(changed(load_model("rope"), "window", 1, window), ids(100, 1))
            found = asked(page, "text-rope-0", [text], queries=queries, window=window)["each"][0]["attention"]
            assert [len(found), *map(len, found)] == [2, 4, 4]
            for (layer, head), (place, query) in itertools.product(np.ndindex(2, 4), enumerate(queries)):
                expected = weights[layer][head, query, : query + 1]
                assert np.allclose(found[layer][head][place], expected, atol=1e-6), (window, layer, head, query)


def test_writing_is_what_the_model_says_and_a_seed_repeats_it(page: Page) -> None:
    prompt = windows()[2][:50]
    greedy = asked(page, "text-alibi-0", [prompt], write={"bytes": 30})["each"][0]
    expected, model = list(prompt.encode()), load_model("alibi")
    for _ in range(30):
        expected.append(int(in_torch(model, expected)[-1].argmax()))
    assert greedy["written"] == expected[50:]
    assert len(greedy["losses"]) == 49

    def drawn(seed: int) -> list[int]:
        write = {"bytes": 60, "temperature": 0.6, "seed": seed}
        return list(asked(page, "text-alibi-0", [prompt], write=write)["each"][0]["written"])

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(drawn(1)) == 60


def test_the_newest_question_of_a_slot_wins_and_slots_take_turns(page: Page) -> None:
    old, new, other, order = page.evaluate(
        """async (texts) => {
          const order = [];
          const { run } = await living.load("models");
          const asked = (slot, label) => run({ model: "text-none-0", texts, slot }, ({ done }) => order.push(label + done));
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
    def said(model: str, text: str = "abcde", **job: object) -> str:
        return str(page.evaluate(MESSAGE, {"model": model, "texts": [text]} | job))

    assert said("text-learned-0", positions=[0, 1, 2, 600]) == (
        "The table of learned positions has rows 0 to 511, but none for position 600."
    )
    assert said("text-rope-0", positions=[0, 1]) == "4 tokens need one position each, but got 2."
    assert said("text-rope-9") == "A part of this figure could not be loaded. Check your connection, and try again."
    assert said("text-rope-0") == "nothing"  # after that, it works again
    assert [text["losses"] for text in asked(page, "text-rope-0", ["", "a"])["each"]] == [[], []]
    assert asked(page, "text-rope-0", ["naïve €"])["each"] == asked(page, "text-rope-0", ["na?ve ?"])["each"]


def test_a_browser_that_starts_no_worker_is_told_of(browser: Browser, folder: Path) -> None:
    with browser.new_page() as page:
        page.goto((folder / "page.html").as_uri())
        page.evaluate("() => { window.Worker = function () { throw new DOMException('no'); }; }")
        assert "doesn't let the page start a worker" in page.evaluate(MESSAGE, {"model": "text-none-0", "texts": ["ab"]})
