"""Run chapters from top to bottom and store their outputs in place; a chapter that fails is left unchanged.

`make execute` runs all chapters, and `make execute CHAPTER=01_order` runs one. CHAPTER=deeper/01_order runs the page below it,
and CHAPTER=source/01_order its assignment.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager  # type: ignore[import-untyped]
from tqdm import tqdm  # type: ignore[import-untyped]

from posenc_course._system import write_whole

ROOT = Path(__file__).resolve().parent.parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("mystnb", "nbgrader", "tags")


def main(names: list[str]) -> int:
    chapters = {path.stem: path for path in sorted((ROOT / "book").rglob("*.ipynb")) if path.parent.name != "deeper"}
    chapters |= {f"deeper/{path.stem}": path for path in sorted((ROOT / "book/deeper").glob("*.ipynb"))}
    chapters |= {f"source/{path.stem}": path for path in sorted((ROOT / "exercises/source").rglob("*.ipynb"))}
    os.environ["POSENC_COURSE_SEED"] = "0"  # the verdicts of checks are stored, so they must not change with each run
    unknown = [name for name in names if name not in chapters]
    if unknown:
        print(f"no chapter is called {', '.join(unknown)}: choose from {', '.join(chapters)}", file=sys.stderr)
        return 1
    return max((execute(chapters[name]) for name in names or chapters), default=0)


def execute(path: Path) -> int:
    """Run one chapter with this environment's Python; return 0, or 1 after saying which cell failed and why."""
    notebook = nbformat.read(path, as_version=4)
    # nbval's kernel, so that the tests compare with outputs that were made in the same way.
    kernel = AsyncKernelManager(kernel_name=CURRENT_ENV_KERNEL_NAME, kernel_spec_manager=NbvalKernelspecManager())
    client = NotebookClient(
        notebook,
        km=kernel,
        timeout=None,
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    code_cells = [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    start = time.perf_counter()
    with client.setup_kernel(cleanup_kc=True):
        for number, (index, cell) in enumerate(tqdm(code_cells, desc=path.stem, unit="cell"), start=1):
            try:
                client.execute_cell(cell, index)
            except (CellExecutionError, DeadKernelError) as error:
                print(f"\n{path.stem}, code cell {number} failed; the notebook is unchanged.\n{error}", file=sys.stderr)
                return 1
    notebook.metadata = METADATA
    for cell in notebook.cells:
        cell.metadata = {key: cell.metadata[key] for key in CELL_METADATA if cell.metadata.get(key)}
        for output in cell.get("outputs", []):
            if output.output_type == "error":  # raised on purpose; its paths mustn't depend on where this copy is
                output.traceback = [line.replace(f"{ROOT}/", "") for line in output.traceback]
    write_whole(path, nbformat.writes(notebook).encode() + b"\n")
    print(f"{path.stem}: {len(code_cells)} cells in {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapter", nargs="*", help="for example 01_order (default: all chapters)")
    sys.exit(main(parser.parse_args().chapter))
