"""The browser that the tests look through, and that prints the course."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

NO_CHROMIUM = "no chromium: apt-get install chromium, or set CHROMIUM=path of a Chrome or Chromium"
NAMES = ["chromium", "chromium-browser", "google-chrome"]


def chromium() -> str | None:
    """The browser's path, None where there is none; a ValueError says that CHROMIUM names no program."""
    chosen = os.environ.get("CHROMIUM")
    if chosen and not shutil.which(chosen):
        raise ValueError(f"CHROMIUM={chosen} is not a program: give the path of a Chrome or Chromium, or unset it")
    return chosen or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        quiet = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=path, args=quiet)
        yield browser
        browser.close()
