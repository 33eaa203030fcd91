"""What the tests share: hypothesis' profile, the browser, figures' scripts, the built site, nbgrader, and skipped tests."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from hypothesis import settings
from jupyter_client.provisioning import local_provisioner
from nbval.plugin import IPyNbCell
from playwright.sync_api import Browser, Page, expect

from tests import commands
from tests.site.built import shared as shared
from tests.site.built import site as site
from tools.book.browser import NO_CHROMIUM, launched
from tools.book.browser import chromium as find_chromium

if commands.FORKS:
    from tests.kernels import Forked

    local_provisioner.launch_kernel = Forked  # type: ignore[assignment, attr-defined]

expect.set_options(timeout=30_000)  # milliseconds: as long as all else in a browser may take on a busy machine
settings.register_profile("course", settings.get_profile("ci"), max_examples=100 if commands.WEEKLY else 30)
settings.load_profile("course")  # as "ci": no deadline, the same examples on every run, nothing stored


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path; without a browser, the tests that ask for it are skipped."""
    try:
        found = find_chromium()
    except ValueError as error:
        pytest.fail(str(error))
    if not found:
        pytest.skip(NO_CHROMIUM)
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    with launched(chromium) as browser:
        yield browser


# A page without a course, in which tests ask the scripts of living figures.
SCRIPTS = """<!DOCTYPE html><meta charset="utf-8"><script src="living.js" data-version="1"></script><script>
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
    """The scripts of living figures as the site has them, beside a page that loads them."""
    folder, living = tmp_path_factory.mktemp("living"), run_path(str(commands.ROOT / "tools/sphinx/living.py"))
    (folder / "living/data").mkdir(parents=True)
    for name, script in living["scripts"](commands.ROOT).items():
        (folder / f"living/{name}.js").write_text(script, encoding="utf-8")
    shutil.copy(commands.ROOT / "book/_static/living.js", folder)
    (folder / "page.html").write_text(SCRIPTS, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    with browser.new_page(offline=True) as page:
        page.goto((folder / "page.html").as_uri())
        yield page


@pytest.fixture(scope="session")
def nbgrader() -> Callable[..., str]:
    """Run nbgrader in a course's folder, as a teacher would, and return what it logs."""
    inherited = {name: value for name, value in os.environ.items() if name != "POSENC_COURSE_SEED"}

    def run(course: Path, *arguments: str, returns: int = 0, **environment: str) -> str:
        done = commands.nbgrader(*arguments, cwd=course, environment=inherited | environment)
        assert done.returncode == returns, f"nbgrader {' '.join(arguments)}:\n{done.stdout}"
        return done.stdout

    return run


PEERS = {"onnx", "rotary_embedding_torch", "transformers", "x_transformers"}  # they ask for a newer PyTorch than the package


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """With the lowest versions (`make test-lowest`), there are no peers, so comparisons with them are skipped."""
    try:
        return (yield)
    except ModuleNotFoundError as missing:
        peer = str(missing.name).partition(".")[0].replace("-", "_")
        if peer in PEERS:
            pytest.skip(f"{peer} isn't installed")
        raise


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever asks for a browser or for the built site is slow."""
    if {"chromium", "site"} & {*getattr(item, "fixturenames", ())}:
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests begin first, and short ones fill the gaps until the end; within a file, the order stays the same."""
    items.sort(key=lambda item: not (isinstance(item, IPyNbCell) or item.get_closest_marker("slow")))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") and session.exitstatus == pytest.ExitCode.OK and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped = _skipped(config)
    if skipped:
        reasons = sorted({report.longrepr[2].removeprefix("Skipped: ") for report in skipped})
        verdict = "CI is set, so this run FAILED: " if os.environ.get("CI") else ""
        terminalreporter.section("skipped tests")
        terminalreporter.line(f"{verdict}skipped tests: {len(skipped)} ({'; '.join(reasons)})")


def _skipped(config: pytest.Config) -> list[Any]:
    """The reports of skipped tests; only the main process has them, not pytest-xdist's workers."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter and not hasattr(config, "workerinput") else []
