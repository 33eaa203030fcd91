"""Tests `make audit` with a stand-in for Lighthouse, which would need minutes, Node and the network."""

import gzip
import sys
from pathlib import Path
from subprocess import CompletedProcess
from urllib.request import urlopen

import pytest

from tests.commands import ROOT, run
from tools.book.audit import BYTES, parts, served

# Its score is the next one of the file `scores` beside it; where that ends, it fails as Lighthouse does.
NPX = f"""#!{sys.executable}
import json, sys
from pathlib import Path
scores = Path(__file__).with_name("scores")
score, _, rest = scores.read_text().partition(" ")
scores.write_text(rest)
if not score:
    sys.exit("Unable to connect to Chrome")
path = next(part for part in sys.argv if part.startswith("--output-path=")).partition("=")[2]
timing = {{"score": float(score), "numericValue": 1000 * (2 - float(score))}}
metrics = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time", "cumulative-layout-shift"]
requests = {{"score": None, "details": {{"items": [{{"transferSize": 1500}}, {{"transferSize": 2500}}]}}}}
whole = {{"score": 1, "auditRefs": []}}
Path(path).write_text(json.dumps({{
    "environment": {{"benchmarkIndex": 2000 + float(score)}},
    "audits": dict.fromkeys(metrics, timing) | {{"network-requests": requests}},
    "categories": dict.fromkeys(["accessibility", "best-practices", "seo"], whole) | {{
        "performance": {{"score": float(score), "auditRefs": [{{"id": name, "weight": 25}} for name in metrics[1:3]]}}}},
}}))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two built pages, and a PATH with a Node and a browser."""
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
        "bin/npx": NPX,
        "bin/node": "#!/bin/sh",
        "bin/chromium": "#!/bin/sh",
        "bin/scores": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def audit(folder: Path, only: str = "", scores: str = "", **environment: str) -> CompletedProcess[str]:
    (folder / "bin/scores").write_text(scores)
    settings = {"PATH": str(folder / "bin"), "CHROMIUM": "", **environment}
    store = f"--store={folder / 'store'}"
    return run(sys.executable, "tools/book/audit.py", str(folder / "html"), only, store, cwd=ROOT, **settings)


@pytest.mark.parametrize(
    ("without", "only", "environment", "named"),
    [
        ("bin/npx", "", {}, ["Node is missing", "apt-get install nodejs npm"]),
        ("bin/node", "", {}, ["Node is missing", "apt-get install nodejs npm"]),
        ("bin/chromium", "", {}, ["no Chromium found", "apt-get install chromium"]),
        ("", "", {"CHROMIUM": "/no/browser"}, ["CHROMIUM=/no/browser", "unset it"]),
        ("", "rotary", {}, ["no page's name contains rotary", "book/10_rope book/index"]),
        ("html/_sources", "", {}, ["has no built pages", "make book"]),
    ],
)
def test_what_is_missing_is_named_in_one_line(
    folder: Path, without: str, only: str, environment: dict[str, str], named: list[str]
) -> None:
    if without:
        (folder / without).rename(folder / "away")
    done = audit(folder, only, **environment)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert all(what in done.stderr for what in named), done.stderr


def test_table_has_the_medians_of_three_runs(folder: Path) -> None:
    done = audit(folder, "10_rope", "0.99 0.5 0.96 ")
    assert done.returncode == 0, done.stderr
    heading, row = (
        line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| page") or "rope" in line
    )
    cells = dict(zip(heading, row, strict=True))
    assert [cells[name] for name in ("page", "performance", "SEO")] == ["book/10_rope", "96", "100"]
    assert [cells[name] for name in ("LCP s", "TBT ms", "CLS")] == ["1.0", "1040", "1040.000"]
    assert [cells[name] for name in ("kB loaded", "requests", "kB in total", "files in total", "benchmark")] == [
        "4",
        "2",
        "1",
        "5",
        "2001",
    ]
    assert done.stdout.endswith("No page is below 95, or above 250 kB in total.\n")


def test_page_below_the_goal_is_named_with_its_audits(folder: Path) -> None:
    done = audit(folder, "", "0.99 0.99 0.98 0.99 0.85 0.94 ")
    assert done.returncode == 1
    *_, count, last = done.stdout.splitlines()
    assert count.startswith("1 ")
    assert last == "book/index: performance 94 (largest-contentful-paint, total-blocking-time)"


def test_heavy_figure_counts_although_no_run_loads_it(folder: Path) -> None:
    (folder / "html/_images/a.webp").write_bytes(bytes(BYTES))
    done = audit(folder, "rope", "1 1 1 ")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "book/10_rope: 250 kB"


@pytest.mark.slow
def test_audit_goes_on_where_it_stopped_and_repeats_what_has_changed(folder: Path) -> None:
    stopped = audit(folder, "", "1 1 1 1 ")
    assert stopped.returncode == 2
    assert "book/index.html: Unable to connect to Chrome" in stopped.stderr
    assert audit(folder, "", "1 1 ").returncode == 0, "it made other runs than the two that were missing"
    assert audit(folder).returncode == 0, "it repeated runs that it had"
    (folder / "html/_images/a.webp").write_text("another")
    assert audit(folder, "index").returncode == 0, "it repeated a page that hasn't changed"
    assert audit(folder, "rope").returncode == 2, "it reused the runs of a page whose figure has changed"


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
