"""The browser that the tests use, and that prints the course."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NO_CHROMIUM = "no Chromium found: apt-get install chromium, or set CHROMIUM to the path of Chrome or Chromium"
# To be evaluated in a page: living figures draw themselves anew in the second frame after a change of theirs, or of the width.
DRAWN = "async () => { for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame); }"
NAMES = ["chromium", "chromium-browser", "google-chrome"]


def chromium() -> str | None:
    """The browser's path, or None if there is no browser. If CHROMIUM doesn't name a program, a ValueError is raised."""
    chosen = os.environ.get("CHROMIUM")
    if chosen and not shutil.which(chosen):
        raise ValueError(f"CHROMIUM={chosen} is not a program: set it to the path of Chrome or Chromium, or unset it")
    return chosen or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()
