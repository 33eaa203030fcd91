"""What pytest does beyond nbval: compare the data of figures, and say what to do.

It stands at the root so that it also serves `pytest book/01_order.ipynb`; nbval runs each notebook once, and the hooks
read what that run drew. What only the tests in tests/ share stands there.
"""

import os
from collections.abc import Generator

import pytest
from nbval.plugin import IPyNbCell

os.environ["POSENC_COURSE_SEED"] = "0"  # as tools/book/execute.py, which stored what the checks say
# Before anything imports torch, and for the notebooks' kernels too: on small tensors two threads only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Three processes for two cores, since notebooks, the browser and nbgrader often wait; `make check` has none of them."""
    cores = yield
    exactly = config.option.markexpr == "not slow" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ
    return cores if exactly else min(cores + (cores + 1) // 2, 12)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A figure's SVG differs in its last digits between processors; nbval passes over PNG only."""
    if isinstance(item, IPyNbCell) and "image/svg+xml" not in item.parent.skip_compare:
        item.parent.skip_compare += ("image/svg+xml",)


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
    if report.failed and call.excinfo and call.excinfo.errisinstance(AssertionError):
        said, rewritten, _ = str(call.excinfo.value).partition("\nassert ")
        if rewritten:  # by pytest, and behind the words that say what is wrong, and what to do
            at = call.excinfo.traceback[-1]
            report.longrepr = f"{said}\n\n{at.path}:{at.lineno + 1}"
    if isinstance(item, IPyNbCell) and report.failed:
        advice = _advice(item.path.stem, item.cell_num, str(call.excinfo.value) if call.excinfo else "")
        report.longrepr = f"{advice}\n\n{report.longrepr}"
    return report


def _unseen_by_nbval(item: IPyNbCell) -> Generator[str]:
    """Say what nbval lets pass: a cleared cell, and figures that draw other data (see pytest_itemcollected)."""
    from posenc_course._drawn import drawn_differences  # imports matplotlib, which most test processes do without

    stored, drawn = item.cell.outputs, item.test_outputs
    if item.cell.execution_count is None or (drawn and not stored):
        yield "the cell's stored output is empty: it was cleared, or never made"
        return
    old, new = ([out for out in outputs if "image/svg+xml" in out.get("data", {})] for outputs in (stored, drawn))
    if len(old) != len(new):
        yield f"figures: {len(old)} stored, {len(new)} drawn now"
        return
    name = item.cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "figure")
    for number, outputs in enumerate(zip(old, new, strict=True), start=1):
        place = name if len(old) == 1 else f"{name}, {number} of {len(old)}"
        before, now = (output.metadata.get("image/svg+xml", {}).get("drawn") for output in outputs)
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
