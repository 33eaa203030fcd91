"""Makes one folder for any static host of the built book: `make site` calls it.

The folder carries the package's wheel. Given the site's address, the line in the first cell of every chapter that installs
the wheel names it in full, on the pages and in the notebooks for download.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def publish(html: Path, site: Path, url: str = "") -> None:
    """Copies the pages in `html` to the new folder `site`, adds the wheel, and writes where it is (`url`) into them."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(html, site)
    (site / ".nojekyll").touch()  # GitHub Pages would leave out folders that begin with an underscore
    wheel_only = ["wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", "pip", *wheel_only, "--wheel-dir", site, ROOT], check=True)
    wheel = next(site.glob("*.whl")).name
    for notebook in (site / "_sources").rglob("*.ipynb"):
        if wheel not in notebook.read_text(encoding="utf-8"):
            sys.exit(f"{notebook.name} does not name {wheel}: its first cell must say how to install this version")
    if url:
        for page in [*site.rglob("*.html"), *(site / "_sources").rglob("*.ipynb")]:
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(wheel, f"{url.rstrip('/')}/{wheel}"), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("html", type=Path, help="the built pages, e.g. _build/html")
    parser.add_argument("site", type=Path, help="the folder to make, e.g. _site")
    parser.add_argument("url", nargs="?", default="", help="the address that the site will have")
    publish(**vars(parser.parse_args()))
