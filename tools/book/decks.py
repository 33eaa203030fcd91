"""Prints the decks of the built book with Chromium, each with its speaker's notes: `make decks` calls it."""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import Page

from tools.book.browser import DRAWN, launched, needed


def printed(tab: Page, deck: str, pdf: Path) -> None:
    """Prints the deck at this address, when all of its figures have come to life, each in a frame of its height."""
    tab.goto(f"{deck}?print-pdf")
    tab.wait_for_selector("html.printable", timeout=120_000)
    for frame in tab.query_selector_all("iframe"):
        frame.scroll_into_view_if_needed()
        inside = frame.content_frame()
        assert inside
        inside.wait_for_selector("figure.lives")
        inside.evaluate(DRAWN)
        high = inside.evaluate("document.documentElement.offsetHeight")
        tab.wait_for_function("([frame, high]) => frame.clientHeight === high", arg=[frame, high])
    unfinished = pdf.with_suffix(".unfinished")
    tab.pdf(path=unfinished, prefer_css_page_size=True, print_background=True, outline=True, tagged=True)
    unfinished.replace(pdf)


def main(html: Path, folder: Path) -> None:
    decks = sorted((html / "book/decks").glob("*.html"))
    if not decks:
        sys.exit(f"{html} has no decks: run make book, which builds them in _build/html/book/decks")
    path = needed("The decks can be shown, but not printed: ")
    folder.mkdir(parents=True, exist_ok=True)
    with launched(path) as browser:
        tab = browser.new_page(offline=True, reduced_motion="reduce")
        for deck in decks:
            printed(tab, deck.resolve().as_uri(), folder / f"{deck.stem}.pdf")
            print(f"to show: {deck}, on paper: {folder / deck.stem}.pdf")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("html", type=Path, help="the built pages, e.g. _build/html")
    parser.add_argument("folder", type=Path, help="the folder for the PDFs, e.g. _paper/decks")
    main(**vars(parser.parse_args()))
