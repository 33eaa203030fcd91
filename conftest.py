"""What pytest does beyond nbval: compare the data of figures, say what to do, and count what was left out.

It stands at the root so that it also serves `pytest book/01_order.ipynb`; nbval runs each notebook once, and the hooks
read what that run drew.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from nbval.plugin import IPyNbCell  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

os.environ["POSENC_COURSE_SEED"] = "0"  # as tools/execute.py, which stored what the checks say
NO_CHROMIUM = "no chromium: apt-get install chromium, or set CHROMIUM=path of a Chrome or Chromium"


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser's path; without a browser, the tests that ask for it are skipped."""
    chosen = os.environ.get("CHROMIUM")
    if chosen and not shutil.which(chosen):
        pytest.fail(f"CHROMIUM={chosen} is not a program: give the path of a Chrome or Chromium, or unset it")
    found = chosen or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not found:
        pytest.skip(NO_CHROMIUM)
    return found


@pytest.fixture(scope="session")
def nbgrader() -> Callable[..., str]:
    """Run nbgrader in a course's folder, as a teacher would, and return what it logs."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # it calls programs of its environment
    environment = {name: value for name, value in os.environ.items() if name != "POSENC_COURSE_SEED"} | {"PATH": path}

    def run(course: Path, *arguments: str, returns: int = 0) -> str:
        done = subprocess.run(["nbgrader", *arguments], cwd=course, env=environment, capture_output=True, text=True)
        assert done.returncode == returns, f"nbgrader {' '.join(arguments)}:\n{done.stderr}"
        return done.stderr

    return run


class _ByFileOrPage(LoadScopeScheduling):  # type: ignore[misc]
    """Tests of one file run in one process, one after the other; a page in the browser takes long, and may go anywhere."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid if "_in_the_browser[" in nodeid else str(super()._split_scope(nodeid))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _ByFileOrPage(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    yield  # nbval runs the cell and compares its text; what it passes over is compared here
    if isinstance(item, IPyNbCell):
        problems = list(_unseen_by_nbval(item))
        if problems:
            item.raise_cell_error("Stored outputs differ from this run's", "\n".join(problems))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if isinstance(item, IPyNbCell) and report.failed:
        source = "source/" if "exercises" in item.path.parts else ""
        advice = _advice(source + item.path.stem, item.cell_num, str(call.excinfo.value) if call.excinfo else "")
        report.longrepr = f"{advice}\n\n{report.longrepr}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") and session.exitstatus == pytest.ExitCode.OK and _skipped(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped = _skipped(config)
    if skipped:
        reasons = sorted({report.longrepr[2].removeprefix("Skipped: ") for report in skipped})
        verdict = "CI is set, so this run FAILED: " if os.environ.get("CI") else ""
        terminalreporter.section("left out")
        terminalreporter.line(f"{verdict}{len(skipped)} tests were skipped: {'; '.join(reasons)}")


def _skipped(config: pytest.Config) -> list[Any]:
    """The reports of skipped tests; only the process that reports has them, pytest-xdist's workers do not."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", []) if reporter and not hasattr(config, "workerinput") else []


def _unseen_by_nbval(item: IPyNbCell) -> Generator[str]:
    """Say what nbval lets pass: a cleared cell, and figures that draw other data (it skips PNG)."""
    from posenc_course.plotting import drawn_differences  # imports torch, which most test processes do without

    stored, drawn = item.cell.outputs, item.test_outputs
    if item.cell.execution_count is None or (drawn and not stored):
        yield "the cell's stored output is empty: it was cleared, or never made"
        return
    old, new = ([out for out in outputs if "image/png" in out.get("data", {})] for outputs in (stored, drawn))
    if len(old) != len(new):
        yield f"figures: {len(old)} stored, {len(new)} drawn now"
        return
    name = item.cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "figure")
    for number, outputs in enumerate(zip(old, new, strict=True), start=1):
        place = name if len(old) == 1 else f"{name}, {number} of {len(old)}"
        before, now = (output.metadata.get("image/png", {}).get("drawn") for output in outputs)
        if before is None or now is None:
            yield (
                f"{place}: its data are not {'stored' if before is None else 'recorded now'}: call "
                "posenc_course.plotting.use_style() in the chapter's first cell"
            )
        elif item.options["check"]:  # figures of live training differ between processors
            yield from (f"{place}: {difference}" for difference in drawn_differences(before, now))


def _advice(chapter: str, cell_num: int, problem: str) -> str:
    where = f"{chapter}, code cell {cell_num + 1} (In [{cell_num + 1}]; nbval counts from 0: Cell {cell_num})"
    if "outputs differ" in problem:  # nbval's verdict, and ours
        what = "its outputs are not the stored ones"
        way = f"If the change is meant: make execute CHAPTER={chapter}, then look at the diff. Else the package changed: "
        way += "see what differs below."
    else:
        what = f"it did not run as stored: {problem}"
        way = f"Mend the cell, or the package it calls, then: make execute CHAPTER={chapter}."
    return f"{where}: {what}.\n{way}\nOf several failing cells, begin with the chapter's first: the others may follow from it."
