"""The inspector in the page: it reads a configuration as the package does, in the same words, and sends it nowhere."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from posenc_course.inspector import Report, inspect, inspect_model, pairs
from posenc_course.models import load_models
from tests.figures.living import FIGURES
from tests.porting.configurations import CASES, LLAMA, QWEN, STORED, damaged
from tests.site.built import Site, opened

PLAIN = "fig-inspector"
CONFIGURATIONS = {name: each["config"] for name, each in STORED.items()}
CONFIGURATIONS |= {name: config for name, (config, *_) in CASES.items()}
# Each report with what it says of each kind of layers, and of their pairs.
READ = """async ([kind, given]) => {
    const [made, known] = [await living.load("configuration"), await living.load("data/inspector")];
    const read = ([name, value]) => {
        if (kind === "table") return made.inspectModel(name, known);
        return made.inspect(kind === "reduced" ? made.reduced(value, known) : value, known, { name });
    };
    const report = (each) => ({
        ...each, headline: made.headline(each),
        lines: [...each.kinds.flatMap((kind) => made.described(kind, each)), made.rest(each)],
        pairs: each.kinds.map(({ known }) => known.frequencies.length && made.pairs(known, each.trained || each.limit || 1)),
    });
    const answered = (one) => { try { return report(read(one)); } catch ({ message }) { return message; } };
    return plain(given.map(answered));
}"""
SAME = ("encoding", "base", "rotated", "layout", "stretch", "window", "rows", "more", "sinks")  # other values are the probe's


def close(found: list[float], expected: tuple[float, ...]) -> bool:
    return len(found) == len(expected) and all(math.isclose(a, b, rel_tol=1e-12) for a, b in zip(found, expected, strict=True))


def assert_same(found: dict[str, Any], report: Report) -> None:
    """What the page read, against the package's report without a class."""
    lengths = (report.training_length, report.limit)
    assert (found["name"], found["layers"], found["trained"], found["limit"]) == (report.name, report.layers, *lengths)
    for kind, spectrum, expected in zip(found["kinds"], found["pairs"], report.kinds, strict=True):
        assert (tuple(kind["layers"]), kind["count"]) == (expected.layers, expected.count)
        known, written = kind["known"], expected.written
        assert {name: known[name] for name in SAME} == json.loads(json.dumps({name: getattr(written, name) for name in SAME}))
        assert math.isclose(known["attentionFactor"], written.attention_factor, rel_tol=1e-12)
        assert known["farFactor"] == written.far_factor
        for name in ("frequencies", "trained", "far"):
            assert close(known[name], getattr(written, name)), name
        if spectrum:
            wanted = pairs(written, report.training_length or report.limit or 1)
            assert [tuple(spectrum[name]) for name in ("incomplete", "brakes")] == [*wanted[:2]]
            assert [spectrum[name] for name in ("kept", "divided", "firstNew")] == [*wanted[2:]]
    assert found["findings"] == [asdict(finding) for finding in report.findings]
    assert [tuple(limit) for limit in found["limits"]] == list(report.limits)
    assert found["headline"] == report.headline()
    text = " ".join(report.text().split())
    assert not [line for line in found["lines"] if " ".join(line.split()) not in text]


def read_or_refused(config: dict[str, Any], name: str) -> Report | str:
    """The package's report, or the words in which it refuses."""
    try:
        return inspect(config, name=name, run=False)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("kind", ["whole", "reduced"])
def test_a_configuration_is_read_as_the_package_reads_it(page: Page, kind: str) -> None:
    """Released, broken and damaged ones, whole and as a link holds them: in the same report, or refused in the same words."""
    given = [*CONFIGURATIONS.items(), *(("Damaged", damaged(seed)) for seed in range(500))]
    found = page.evaluate(READ, [kind, given])
    for each, (name, config) in zip(found, given, strict=True):
        expected = read_or_refused(config, name)
        if isinstance(expected, Report):
            assert_same(each, expected)
        else:
            assert each == expected


def test_models_of_the_table_are_those_of_the_package(page: Page) -> None:
    names = [model.name for model in load_models()]
    for each, name in zip(page.evaluate(READ, ["table", [[name, 0] for name in names]]), names, strict=True):
        assert_same(each, inspect_model(name))


def test_a_link_holds_only_what_is_read(page: Page) -> None:
    """Not the name, which may be a private folder, and nothing that says how the weights are stored."""
    script = """async (config) => {
        const [{ reduced }, known] = [await living.load("configuration"), await living.load("data/inspector")];
        return Object.keys(reduced(config, known));
    }"""
    kept = page.evaluate(script, LLAMA | {"_name_or_path": "/home/somebody/secret", "vocab_size": 9, "quantization_config": {}})
    assert {*kept} <= {*LLAMA} - {"vocab_size", "intermediate_size", "num_key_value_heads"}
    assert {"rope_theta", "rope_scaling", "hidden_size"} <= {*kept}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (json.dumps(LLAMA)[:-5], "paste the whole config.json, from { to }"),
        ("GGUF\x03\x00", "python -m posenc_course inspect model.gguf"),
        ("[" * 1_000_000, "more than 1,000,000 characters"),
        ("{}", "This can’t be read: no key says how many layers there are, such as num_hidden_layers: give the config.json"),
    ],
    ids=lambda text: text[:40],
)
def test_a_text_that_cannot_be_read_gets_one_sentence(page: Page, text: str, words: str) -> None:
    """And what the page showed stays."""
    script = """async (text) => {
        const [{ figure }, inspector] = [await living.load("inspector"), await living.load("data/inspector")];
        const own = { data: { inspector } };
        const changed = figure.controls.text.put(text, { model: "gpt-oss", config: "{}" }, own);
        if (changed.config !== "{}" || figure.controls.text.get(changed, own) !== text) throw new Error("something is lost");
        return own.pasted.problem;
    }"""
    said = page.evaluate(script, text)
    assert words in said
    assert len(said) < 300
    assert said.endswith((".", ".gguf"))


# ── the built page ───────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def shown(browser: Browser, site: Site, link: str = "") -> Iterator[tuple[Page, Locator]]:
    """The page with its figure started, and no request but for the site's own files; `link` is the fragment."""
    problems: list[str] = []
    with opened(browser, site.address(FIGURES[PLAIN]) + link, problems=problems) as tab:
        tab.wait_for_selector(f"#{PLAIN}.lives")
        yield tab, tab.locator(f"#{PLAIN} living-figure")
    assert not problems


def test_a_pasted_configuration_says_its_finding_first_and_fits_in_a_link(browser: Browser, site: Site) -> None:
    config, _, _ = CASES["the length after stretching in the place of the one before"]
    expected = inspect(config | {"_name_or_path": "qwen2"}, run=False).headline()
    with shown(browser, site) as (tab, figure):
        assert "Llama 3.1 8B: as written, safe up to 65,536 tokens" in figure.locator(".finding").inner_text()
        field = figure.get_by_role("textbox")
        assert json.loads(field.input_value()) == LLAMA
        field.fill(json.dumps(config))
        figure.locator(".finding", has_text=expected).wait_for()
        assert figure.get_by_role("combobox").input_value() == "your own"
        finding = inspect(config, run=False).findings[0]
        assert finding.symptom in figure.locator(".report").inner_text()
        page_of = site.target(FIGURES[PLAIN], str(figure.get_by_role("link", name="why").get_attribute("href")))[0]
        assert page_of == f"book/{finding.page.partition('#')[0]}.html"
        tab.wait_for_function("location.hash.includes('inspector.config')")
        link = tab.evaluate("location.hash")
        assert not tab.evaluate("location.search"), "a server would get it"
        # What can't be read leaves the text, and the picture before it.
        drawn = figure.evaluate("e => e.drawn.lines")
        field.fill("{")
        figure.locator(".finding", has_text="This isn’t JSON").wait_for()
        assert field.input_value() == "{"
        assert figure.evaluate("e => e.drawn.lines") == drawn
        figure.get_by_role("combobox").select_option("Gemma 3 4B")
        figure.locator(".finding", has_text="Gemma 3 4B").wait_for()
        tab.wait_for_function("!location.hash.includes('inspector.config')")  # a link to this model doesn't hold the other one
        figure.get_by_role("combobox").select_option("your own")
        figure.locator(".finding", has_text="This isn’t JSON").wait_for()
        assert field.input_value() == "{", "a text is lost by a look at another model"
    with shown(browser, site, link) as (_, figure):
        figure.locator(".finding", has_text=expected).wait_for()
        assert figure.evaluate("e => e.drawn.lines") == drawn


def test_a_dropped_file_is_read(browser: Browser, site: Site) -> None:
    drop = """([element, text]) => {
        const dataTransfer = new DataTransfer();
        dataTransfer.items.add(new File([text], "config.json"));
        element.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }"""
    with shown(browser, site) as (tab, figure):
        field = figure.get_by_role("textbox")
        tab.evaluate(drop, [field.element_handle(), json.dumps(STORED["GPT-2"]["config"])])
        figure.locator(".finding", has_text="gpt2: as written, it takes texts of up to 1,024 tokens").wait_for()
        files = [{"name": "config.json", "mimeType": "application/json", "buffer": json.dumps(QWEN).encode()}]
        figure.get_by_label("a file").set_input_files(files)  # type: ignore[arg-type]
        figure.locator(".finding", has_text="qwen2: as written, if it was trained on 32,768 tokens, its limit").wait_for()
