"""Makes a folder for any static host from the built book, or an archive: `make site` and `make archive` call it.

The folder includes the package's wheel and leaves out files that no page uses. If the site's address is given, with which the
book was built (tools/sphinx/address.py), the line in each chapter's first cell that installs the wheel names it in full, on the
pages and in the notebooks for download, and in those for Colab, in the folder `_colab` beside the site.
"""

import argparse
import re
import shutil
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from flit_core.wheel import WheelBuilder  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]


def publish(html: Path, site: Path, url: str = "") -> None:
    """Copies the pages in `html` to the new folder `site`, and adds the rest."""
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(html, site)
    drop_unnamed(site)
    (site / ".nojekyll").touch()  # otherwise GitHub Pages leaves out folders that begin with an underscore
    wheel = add_wheel(site)
    for notebook in (site / "_sources").rglob("*.ipynb"):
        if wheel not in notebook.read_text(encoding="utf-8"):
            sys.exit(f"{notebook.name} doesn't name {wheel}: its first cell must show how to install this version")
    if url:
        # To pip, two wheels of one version are the same, and it keeps the one that a reader has: pages name one that differs
        # whenever its files do. The other stays, because handouts and other pages' links name it.
        named = add_wheel(site, f"+{contents(site / wheel)}")
        name_in_full(site, wheel, f"{url.rstrip('/')}/{named}")
        for_colab(site)
    for page in site.glob("book/*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace('<a class="wheel">', f'<a href="../{wheel}">'), encoding="utf-8")


def drop_unnamed(site: Path) -> None:
    """Drops files that no page names, nor any script or style sheet that a page uses: some 6 MB from Sphinx and the theme."""
    static = site / "_static"
    # The names of the files that living figures load appear only when living.js runs.
    files = [file for file in static.rglob("*") if file.is_file() and static / "living" not in file.parents]
    named, new = set[Path](), {*site.rglob("*.html")} - {*files}
    while new:
        named |= new
        texts = [file.read_text(encoding="utf-8") for file in new if file.suffix in {".html", ".css", ".js"}]
        names = {name for text in texts for name in re.findall(r"[\w.-]+\.\w+", text)}
        new = {file for file in files if file.name in names} - named
    for file in {*files} - named:
        file.unlink()


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


def name_in_full(site: Path, wheel: str, address: str) -> None:
    for page in [*site.rglob("*.html"), *(site / "_sources").rglob("*.ipynb")]:
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(wheel, address), encoding="utf-8")


def for_colab(site: Path) -> None:
    """Colab opens only notebooks in a GitHub repository: these are for its branch `colab`, and install the wheel themselves."""
    folder, sources = site.with_name("_colab"), site / "_sources"
    shutil.rmtree(folder, ignore_errors=True)
    for notebook in sources.rglob("*.ipynb"):
        copy = folder / notebook.relative_to(sources)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(re.sub(r'"# (?=%pip install)', '"', notebook.read_text(encoding="utf-8")), encoding="utf-8")


def pack(folder: Path, archive: Path) -> None:
    """Packs the folder. The same files always give the same archive, and an interrupted call leaves no incomplete one."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(".unfinished")
    with ZipFile(unfinished, "w") as packed:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = ZipInfo(file.relative_to(folder.parent).as_posix())  # dated 1980
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, file.read_bytes(), compress_type=ZIP_DEFLATED)
    unfinished.replace(archive)
    print(f"{archive}: {archive.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("html", type=Path, help="the built pages, e.g. _build/html")
    parser.add_argument("site", type=Path, help="the folder to make, e.g. _site, or the archive, e.g. course.zip")
    parser.add_argument("url", nargs="?", default="", help="the address that the site will have")
    given = parser.parse_args()
    if given.site.suffix == ".zip":
        with TemporaryDirectory() as temporary:
            unpacked = Path(temporary, given.site.stem)
            publish(given.html, unpacked, given.url)
            pack(unpacked, given.site)
    else:
        publish(**vars(given))
