"""Run pages from top to bottom, as their texts have them, and store what they print; a page that fails is left unchanged.

`make execute` runs all pages, and `make execute CHAPTER=01_order` runs one. CHAPTER=deeper/01_order runs the page below it, and
CHAPTER=source/01_order its assignment.
"""

import argparse
import os
import sys
import time

from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbval.kernel import CURRENT_ENV_KERNEL_NAME, NbvalKernelspecManager

from tools.book import text


def main(names: list[str]) -> int:
    # The verdicts of checks are stored, so they must not change with each run.
    os.environ["POSENC_COURSE_SEED"] = "0"
    try:
        return max((execute(page) for page in text.pages(names).values()), default=0)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1


def execute(page: text.Page) -> int:
    """Run one page with this environment's Python; return 0, or 1 after saying which cell failed and why."""
    notebook, path = text.updated(page), page.notebook
    path.parent.mkdir(parents=True, exist_ok=True)
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
    start = time.perf_counter()
    try:
        client.execute(cleanup_kc=True)
    except (CellExecutionError, DeadKernelError) as error:
        print(f"{path.stem} failed, and its notebook is unchanged.\n{error}", file=sys.stderr)
        return 1
    for cell in text.plain(notebook).cells:
        for output in cell.get("outputs", []):
            # Raised on purpose; its paths mustn't depend on where this copy is.
            if output.output_type == "error":
                output.traceback = [line.replace(f"{text.ROOT}/", "") for line in output.traceback]
    text.store(page, notebook)
    print(f"{path.stem}: {time.perf_counter() - start:.1f} s")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chapter", nargs="*", help="for example 01_order (default: all pages)")
    sys.exit(main(parser.parse_args().chapter))
