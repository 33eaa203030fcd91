"""`make audit` without Lighthouse, which would need minutes, Node and the network: what it weighs, adds up and refuses."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tools.book import audit
from tools.book.audit import BYTES, METRICS, parts, served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two built pages, with a Node and a browser on the machine."""
    for name, content in {
        "html/_sources/book/10_rope.ipynb": "",
        "html/_sources/book/index.md": "",
        "html/_static/pages.css": 'x { src: url("cut-math.woff2?v=1") } y { src: url(icons.woff2) }',
        "html/_static/cut-math.woff2": "m" * 100,
        "html/_static/icons.woff2": "i" * 10,
        "html/_images/a.webp": "a" * 1000,
        "html/_images/b.webp": "b" * 5000,
        "html/book/10_rope.html": '<link rel="stylesheet" href="../_static/pages.css?v=1" /><math>x</math>'
        '<img alt="A" src="../_images/a.webp" loading="lazy" /><img class="only-dark" src="../_images/b.webp" />',
        "html/book/index.html": '<link rel="stylesheet" href="../_static/pages.css?v=1" />' + 99 * "<p>A page.</p>",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.setattr(audit, "chromium", lambda: "chromium")
    monkeypatch.setattr("shutil.which", lambda program: program)
    audit.sent.cache_clear()
    return tmp_path


def scored(*scores: float) -> Iterator[dict[str, object]]:
    """Lighthouse's reports with these scores for performance."""
    for score in scores:
        audits = {name: {"score": score, "numericValue": 1000 * (2 - score)} for name, *_ in METRICS.values()}
        loaded = {"details": {"items": [{"transferSize": 1500}, {"transferSize": 2500}]}}
        slow = {"score": score, "auditRefs": [{"id": "total-blocking-time", "weight": 25}]}
        others = {name: {"score": 1, "auditRefs": []} for name in ("accessibility", "best-practices", "seo")}
        yield {
            "environment": {"benchmarkIndex": 2000 + score},
            "audits": audits | {"network-requests": loaded},
            "categories": {"performance": slow} | others,
        }


def audited(monkeypatch: pytest.MonkeyPatch, folder: Path, only: str = "", *scores: float) -> int:
    """The status of an audit in which Lighthouse gives these scores, one after the other."""
    given = scored(*scores)

    def load(address: str, report: Path, npx: str, browser: str) -> None:
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(next(given)))

    monkeypatch.setattr(audit, "load", load)
    status = audit.audit(folder / "html", only, folder / "store")
    assert not [*given], "fewer runs than expected"
    return status


def test_what_is_missing_is_named_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def says(only: str, *named: str) -> None:
        with pytest.raises(SystemExit, match="2"):
            audit.audit(folder / "html", only, folder / "store")
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.count("\n") == 1
        assert all(what in said.err for what in named), said.err

    says("rotary", "no page's name contains rotary", "book/10_rope book/index")
    monkeypatch.setattr(audit, "chromium", lambda: None)
    says("", "no Chromium found", "apt-get install chromium")
    monkeypatch.setattr("shutil.which", lambda program: None)
    says("", "Node is missing", "apt-get install nodejs npm")
    (folder / "html/_sources").rename(folder / "away")
    says("", "has no built pages", "make book")


def test_table_has_the_medians_of_three_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audited(monkeypatch, folder, "10_rope", 0.99, 0.5, 0.96) == 0
    said = capsys.readouterr().out
    heading, row = (line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("| page") or "rope" in line)
    cells = dict(zip(heading, row, strict=True))
    assert [cells[name] for name in ("page", "performance", "SEO", "LCP s", "TBT ms", "CLS")] == [
        *("book/10_rope", "96", "100", "1.0", "1040", "1040.000")
    ]
    names = ("kB loaded", "requests", "kB in total", "files in total", "benchmark")
    assert [cells[name] for name in names] == ["4", "2", "1", "5", "2001"]
    assert said.endswith("No page is below 95, or above 250 kB in total.\n")


def test_page_below_a_goal_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With the audits that it fails, and although no run loads a heavy figure further down."""
    (folder / "html/_images/a.webp").write_bytes(bytes(BYTES))
    assert audited(monkeypatch, folder, "", *(0.99, 0.99, 0.98), *(0.99, 0.85, 0.94)) == 1
    *_, count, heavy, slow = capsys.readouterr().out.splitlines()
    assert count.startswith("2 ")
    assert heavy == "book/10_rope: 250 kB"
    assert slow == "book/index: performance 94 (total-blocking-time)"


def test_audit_repeats_only_what_has_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StopIteration):
        audited(monkeypatch, folder, "", 1, 1, 1, 1)
    assert audited(monkeypatch, folder, "", 1, 1) == 0, "it made other runs than the two that were missing"
    (folder / "html/_images/a.webp").write_text("another")
    audit.sent.cache_clear()
    assert audited(monkeypatch, folder, "", 1, 1, 1) == 0, "it made other runs than those of the page with this figure"


def test_parts_are_what_a_reader_in_the_light_loads(folder: Path) -> None:
    by_name = {file.name: size for file, size in parts(folder / "html/book/10_rope.html").items()}
    assert set(by_name) == {"10_rope.html", "pages.css", "cut-math.woff2", "icons.woff2", "a.webp"}
    assert by_name["a.webp"] == 1000
    assert {file.name for file in parts(folder / "html/book/index.html")} == {"index.html", "pages.css", "icons.woff2"}


def test_pages_are_served_as_they_are_counted(folder: Path) -> None:
    page = folder / "html/book/index.html"
    with served(folder / "html") as host, urlopen(f"{host}/book/index.html?x=1") as answer:
        content = answer.read()
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(content) == parts(page)[page] < page.stat().st_size
    assert gzip.decompress(content) == page.read_bytes()
