"""Makes a folder for any static host from the built book, or an archive: `make site` and `make archive` call it.

The folder includes the package's wheel. If the site's address is given, with which the book was built
(tools/sphinx/address.py), the line in each chapter's first cell that installs the wheel names it in full, on the pages and in
the notebooks for download, and in those for Colab, in the folder `_colab` beside the site.
"""

import argparse
import re
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from flit_core.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]


def publish(html: Path, site: Path, url: str = "") -> None:
    """Copies the pages in `html` to the new folder `site`, and adds the rest."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(html, site)
    (site / ".nojekyll").touch()  # otherwise GitHub Pages leaves out folders that begin with an underscore
    wheel = add_wheel(site)
    for notebook in (site / "_sources").rglob("*.ipynb"):
        if wheel not in notebook.read_text(encoding="utf-8"):
            sys.exit(f"{notebook.name} doesn't name {wheel}: its first cell must show how to install this version")
    if url:
        # To pip, two wheels of one version are the same, and it keeps the one that a reader has: pages name one that differs
        # whenever its files do. The other stays, because handouts and other pages' links name it.
        named = add_wheel(site, f"+{contents(site / wheel)}")
        for page in [*site.rglob("*.html"), *(site / "_sources").rglob("*.ipynb")]:
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(wheel, f"{url.rstrip('/')}/{named}"), encoding="utf-8")
        for_colab(site)
    for page in site.glob("book/*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace('<a class="wheel">', f'<a href="../{wheel}">'), encoding="utf-8")


def add_wheel(site: Path, mark: str = "") -> str:
    """Builds the package's wheel, with `mark` at the end of its version, and returns its file name."""
    unnamed = site / "unnamed.whl"
    with unnamed.open("wb") as file:
        builder = WheelBuilder.from_ini_path(ROOT / "pyproject.toml", file)
        builder.source_time_stamp = (1980, 1, 1, 0, 0, 0)  # the same files always give the same wheel
        builder.metadata.version += mark
        builder.build()
    wheel = str(builder.wheel_filename)
    unnamed.rename(site / wheel)
    return wheel


def contents(wheel: Path) -> str:
    """Eight digits that stand for what is in the wheel: of its list of checksums, since machines compress differently."""
    with ZipFile(wheel) as packed:
        (record,) = (name for name in packed.namelist() if name.endswith(".dist-info/RECORD"))
        return sha256(packed.read(record)).hexdigest()[:8]


def for_colab(site: Path) -> None:
    """Colab opens only notebooks in a GitHub repository: these are for its branch `colab`, and install the wheel themselves."""
    folder, sources = site.with_name("_colab"), site / "_sources"
    shutil.rmtree(folder, ignore_errors=True)
    for notebook in sources.rglob("*.ipynb"):
        copy = folder / notebook.relative_to(sources)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(re.sub(r'"# (?=%pip install)', '"', notebook.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("html", type=Path, help="the built pages, e.g. _build/html")
    parser.add_argument("site", type=Path, help="the folder to make, e.g. _site, or the archive, e.g. course.zip")
    parser.add_argument("url", nargs="?", default="", help="the address that the site will have")
    given = parser.parse_args()
    if given.site.suffix == ".zip":
        with TemporaryDirectory() as temporary:
            publish(given.html, Path(temporary, given.site.stem), given.url)
            shutil.make_archive(str(given.site.with_suffix("")), "zip", temporary)
    else:
        publish(**vars(given))
