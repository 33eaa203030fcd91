"""Tests the built pages with Lighthouse, as a phone on a slow network loads them: `make audit` calls it.

Each page is loaded three times from a server on this machine, and a table shows the medians. Each run is stored in _audit as
soon as it is done, under a hash of the page's files. So an interrupted audit continues where it stopped, and a later audit
loads only the pages that have changed.
"""

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any, BinaryIO, NoReturn

from tools.book.browser import NO_CHROMIUM, chromium

ROOT = Path(__file__).resolve().parents[2]
LIGHTHOUSE = "lighthouse@12.8.2"  # the last version that runs on Node 20
RUNS = 3
SCORE, BYTES = 95, 250_000  # the score that every page must reach, and its maximum size
CATEGORIES = ["performance", "accessibility", "best-practices", "seo"]
METRICS = {  # heading: (Lighthouse's name, Lighthouse's units per unit shown, decimals)
    "FCP s": ("first-contentful-paint", 1000, 1),
    "LCP s": ("largest-contentful-paint", 1000, 1),
    "TBT ms": ("total-blocking-time", 1, 0),
    "CLS": ("cumulative-layout-shift", 1, 3),
}
LOADED = re.compile(
    r"""<(?:script|img(?![^>]*\bclass="[^"]*-dark\b)|link(?=[^>]*\brel="(?:stylesheet|icon)"))\b[^>]*?\b(?:src|href)="([^"?#]+)"""
)


def stop(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    raise SystemExit(2)


@cache
def sent(file: Path) -> bytes:
    """What a host sends: text files are compressed."""
    content = file.read_bytes()
    return gzip.compress(content, 6, mtime=0) if file.suffix in {".html", ".css", ".js", ".svg"} else content


def parts(page: Path) -> dict[Path, int]:
    """The files that a page may load, and their bytes: with figures further down, but only the light one of each pair."""
    text = page.read_text(encoding="utf-8")
    files = [page, *((page.parent / address).resolve() for address in LOADED.findall(text))]
    for sheet in [file for file in files if file.suffix == ".css"]:
        fonts = re.findall(r'url\("?([^")?]+\.woff2)', sheet.read_text(encoding="utf-8"))
        files += [(sheet.parent / font).resolve() for font in fonts if "<math" in text or "math" not in font]
    return {file: len(sent(file)) for file in files}


class Host(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send_head(self) -> BytesIO | BinaryIO | None:
        file = Path(self.translate_path(self.path))
        if not file.is_file():
            return super().send_head()
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(file))
        self.send_header("Content-Length", str(len(sent(file))))
        if sent(file) != file.read_bytes():
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        return BytesIO(sent(file))

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the folder, and give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), lambda *request: Host(*request, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def load(address: str, report: Path, npx: str, browser: str) -> None:
    """One run of Lighthouse; its report is stored whole or not at all."""
    report.parent.mkdir(parents=True, exist_ok=True)
    new = report.with_suffix(".new")
    command = [npx, "--yes", LIGHTHOUSE, address, "--quiet", "--output=json", f"--output-path={new}"]
    command += ["--chrome-flags=--headless=new --no-sandbox", "--disable-full-page-screenshot", "--no-enable-error-reporting"]
    done = subprocess.run(command, env=os.environ | {"CHROME_PATH": browser}, capture_output=True, text=True)
    said = done.stderr.strip().splitlines() or [f"it exited with status {done.returncode}"]
    if done.returncode or not new.exists():
        stop(
            f"Lighthouse failed at {address}: {said[-1]} (run the audit again to continue; the first time, npx needs a network)"
        )
    if error := json.loads(new.read_text(encoding="utf-8")).get("runtimeError"):
        stop(f"Lighthouse failed at {address}: {error['message']} (run the audit again to continue)")
    new.replace(report)


def reports(page: Path, store: Path, address: str, npx: str, browser: str) -> list[dict[str, Any]]:
    made_of = b"".join(sha256(sent(file)).digest() for file in parts(page))
    name = sha256(LIGHTHOUSE.encode() + made_of).hexdigest()[:16]
    files = [store / f"{name}-{run}.json" for run in range(1, RUNS + 1)]
    for file in files:
        if not file.exists():
            load(address, file, npx, browser)
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def failing(runs: list[dict[str, Any]], categories: list[str]) -> list[str]:
    """The audits that count in these categories and fail in any of the runs."""
    counting = {
        ref["id"] for run in runs for name in categories for ref in run["categories"][name]["auditRefs"] if ref["weight"]
    }
    scores = {name: [run["audits"][name]["score"] for run in runs] for name in sorted(counting)}
    return [name for name, of_runs in scores.items() if any(score is not None and score < 0.9 for score in of_runs)]


def row(page: Path, runs: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """The page's cells in the table, and what keeps it below its goals."""
    scores = {name: round(100 * median(run["categories"][name]["score"] or 0 for run in runs)) for name in CATEGORIES}
    timings = [
        f"{median(run['audits'][name]['numericValue'] for run in runs) / unit:.{decimals}f}"
        for name, unit, decimals in METRICS.values()
    ]
    requests = [run["audits"]["network-requests"]["details"]["items"] for run in runs]
    files = parts(page)
    cells = [
        *map(str, scores.values()),
        *timings,
        f"{median(sum(item.get('transferSize', 0) for item in items) for items in requests) / 1000:.0f}",
        f"{median(map(len, requests)):.0f}",
        f"{sum(files.values()) / 1000:.0f}",
        str(len(files)),
        f"{median(run['environment']['benchmarkIndex'] for run in runs):.0f}",
    ]
    low = [name for name, score in scores.items() if score < SCORE]
    faults = [f"{', '.join(f'{name} {scores[name]}' for name in low)} ({', '.join(failing(runs, low))})"] if low else []
    if (weight := sum(files.values())) > BYTES:
        faults.append(f"{weight / 1000:.0f} kB")
    return cells, faults


def audit(html: Path, only: str, store: Path) -> int:
    if not (html / "_sources").is_dir():
        stop(f"{html} has no built pages: run make book, which builds them in _build/html")
    sources = [file.relative_to(html / "_sources") for file in sorted((html / "_sources").rglob("*.*"))]
    names = [source.with_suffix("").as_posix() for source in sources]
    chosen = [name for name in names if only in name]
    if not chosen:
        stop(f"no page's name contains {only}: set ONLY to a part of one of these names: {' '.join(names)}")
    if not (npx := shutil.which("npx")) or not shutil.which("node"):
        stop("Node is missing: apt-get install nodejs npm, or install Node 18.16 or newer in another way")
    try:
        browser = chromium() or stop(NO_CHROMIUM)
    except ValueError as wrong:
        stop(str(wrong))
    headings = [*("performance", "accessibility", "best practices", "SEO"), *METRICS]
    headings += ["kB loaded", "requests", "kB in total", "files in total", "benchmark"]
    table, faults = [["page", *headings], ["---", *["--:"] * len(headings)]], []
    with served(html) as host:
        for count, name in enumerate(chosen, start=1):
            print(f"{count}/{len(chosen)} {name}: ", end="", file=sys.stderr, flush=True)
            page = (html / f"{name}.html").resolve()
            cells, of_page = row(page, reports(page, store / name, f"{host}/{name}.html", npx, browser))
            print(" ".join(cells[:4]), file=sys.stderr)
            table.append([name, *cells])
            faults += [f"{name}: {fault}" for fault in of_page]
    print(f"Medians of {RUNS} runs of {LIGHTHOUSE}, simulating a phone on a slow network, with gzip.")
    print("'kB loaded' includes headers; 'in total' are all files of the page, including figures that load when you scroll.")
    print("'Benchmark' measures the speed of this machine; on a busy machine, TBT is higher.\n")
    print(*(f"| {' | '.join(cells)} |" for cells in table), sep="\n")
    verdict = f"below {SCORE}, or above {BYTES // 1000} kB in total"
    print(f"\n{len(faults)} {verdict}:" if faults else f"\nNo page is {verdict}.", *faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("html", type=Path, help="the built pages, e.g. _build/html")
    parser.add_argument("only", nargs="?", default="", help="audit only pages whose names contain this")
    parser.add_argument("--store", type=Path, default=ROOT / "_audit", help="the folder for the runs (default: %(default)s)")
    try:
        sys.exit(audit(**vars(parser.parse_args())))
    except KeyboardInterrupt:
        stop("\nStopped. The next audit continues from here.")
