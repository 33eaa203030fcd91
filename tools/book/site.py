"""Makes a folder for any static host from the built book, or an archive: `make site` and `make archive` call it.

The folder includes the package's wheel, leaves out files that no page uses, and redirects old addresses to new ones. If the
site's address is given, the line in each chapter's first cell that installs the wheel names it in full, on the pages and in
the notebooks for download, and the pages get the metadata from tools/book/found.py. If a repository on GitHub is given too,
each notebook's page has a button that opens it in Colab.
"""

import argparse
import re
import shutil
import sys
import tomllib
from hashlib import sha256
from html import escape
from os.path import relpath
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from flit_core.wheel import WheelBuilder  # type: ignore[import-untyped]

from tools.book.found import Course

ROOT = Path(__file__).resolve().parents[2]
COLAB = "https://colab.research.google.com/github"
MOVED = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<title>{title}</title>
<meta http-equiv="refresh" content="0; url={address}" />
{head}</head>
<body><p>This page is now at <a href="{address}">{title}</a>.</p></body>
</html>
"""


def publish(html: Path, site: Path, url: str = "", repository: str = "") -> None:
    """Copies the pages in `html` to the new folder `site`, and adds the rest."""
    if url and not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", url):
        sys.exit(f"SITE_URL={url} is not the address of a site: give the full address, such as https://example.org/course")
    url = url.rstrip("/")
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(html, site)
    drop_unnamed(site)
    (site / ".nojekyll").touch()  # otherwise GitHub Pages leaves out folders that begin with an underscore
    wheel = add_wheel(site)
    require_named(site, wheel)
    heads = dict[str, str]()
    if url:
        # To pip, two wheels of one version are the same, and it keeps the one that a reader has: pages name one that differs
        # whenever its files do. The other stays, because handouts and other pages' links name it.
        name_in_full(site, wheel, f"{url}/{add_wheel(site, f'+{contents(site / wheel)}')}")
        course = Course(ROOT, site, url)
        heads = {page.path: course.head(page) for page in course.pages}
        course.draw()
        for name, text in {
            "feed.xml": course.feed(),
            "sitemap.xml": course.sitemap(),
            "robots.txt": f"User-agent: *\nAllow: /\nSitemap: {course.address('sitemap.xml')}\n",
            "404.html": rooted((site / "404.html").read_text(encoding="utf-8"), url),
        }.items():
            (site / name).write_text(text, encoding="utf-8")
        for path, head in heads.items():
            text = (site / path).read_text(encoding="utf-8")
            (site / path).write_text(text.replace("</head>", f"{head}</head>", 1), encoding="utf-8")
        lead_from_figures(site, url)
    if repository:
        for_colab(site, repository)
    first = re.findall(r"url=([^\"]+)", (site / "index.html").read_text(encoding="utf-8"))[0]
    (site / "index.html").unlink()
    moved = tomllib.loads((ROOT / "book/redirects.toml").read_text(encoding="utf-8"))
    redirect(site, moved | {"index.html": first}, heads)


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


def require_named(site: Path, wheel: str) -> None:
    for notebook in (site / "_sources").rglob("*.ipynb"):
        if wheel not in notebook.read_text(encoding="utf-8"):
            sys.exit(f"{notebook.name} doesn't name {wheel}: its first cell must show how to install this version")


def contents(wheel: Path) -> str:
    """Eight digits that stand for what is in the wheel: of its list of checksums, since machines compress differently."""
    with ZipFile(wheel) as packed:
        (record,) = (name for name in packed.namelist() if name.endswith(".dist-info/RECORD"))
        return sha256(packed.read(record)).hexdigest()[:8]


def name_in_full(site: Path, wheel: str, address: str) -> None:
    for page in [*site.rglob("*.html"), *(site / "_sources").rglob("*.ipynb")]:
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(wheel, address), encoding="utf-8")


def lead_from_figures(site: Path, url: str) -> None:
    """Tells search engines that a figure's own page repeats a part of the page that it is from."""
    for page in site.glob("embed/*.html"):
        text = page.read_text(encoding="utf-8")
        (source,) = re.findall(r'<p class="source">From <a href="\.\./([^"#]+)', text)
        page.write_text(
            text.replace("</head>", f'<link rel="canonical" href="{url}/{source}" />\n</head>', 1), encoding="utf-8"
        )


def rooted(page: str, url: str) -> str:
    """The page with links that work at any depth, because hosts show 404.html wherever a page is missing."""
    root = f"{urlsplit(url).path}/"
    page = page.replace('data-content_root="./"', f'data-content_root="{root}"')
    return re.sub(r'\b(href|src|action)="(?![a-z]+:|[/#])', rf'\1="{root}', page)


def redirect(site: Path, moved: dict[str, str], heads: dict[str, str]) -> None:
    """Makes a page at each old address that leads to the new one and has the same metadata."""
    for old, new in moved.items():
        path, _, place = new.partition("#")
        text = (site / path).read_text(encoding="utf-8") if (site / path).is_file() else None
        if text is None or (place and f'id="{place}"' not in text):
            sys.exit(f"book/redirects.toml: {old} leads to {new}, which doesn't exist: give a page or an id on one")
        if (site / old).exists() or not re.fullmatch(r"[\w/-]+\.html", old):
            sys.exit(f"book/redirects.toml: {old} must be the address of a former page, such as book/old.html")
        (title,) = re.findall(r"<title>(.*?)(?: &#8212; .*)?</title>", text)
        address = escape(f"{relpath(path, Path(old).parent)}{'#' * bool(place)}{place}")
        (site / old).parent.mkdir(parents=True, exist_ok=True)
        (site / old).write_text(MOVED.format(title=title, address=address, head=heads.get(path, "")), encoding="utf-8")


def for_colab(site: Path, repository: str) -> None:
    """Adds a Colab button to each notebook's page, and puts the notebooks that it opens in the folder `_colab` beside the site.

    Colab opens only notebooks in a GitHub repository; these are for its branch `colab`. They install the wheel by themselves.
    """
    folder = site.with_name("_colab")
    shutil.rmtree(folder, ignore_errors=True)
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        found = re.search(r'href="[^"]*_sources/([^"]+\.ipynb)"', text)
        if not found:
            continue
        name = found[1]
        label = 'title="Open this notebook in Colab" aria-label="Open this notebook in Colab"'
        button = f'<a class="btn btn-sm" href="{COLAB}/{repository}/blob/colab/{name}" {label}>Colab</a>\n'
        page.write_text(re.sub(r'(?=<div class="dropdown dropdown-download-buttons")', button, text, count=1), encoding="utf-8")
        notebook = (site / "_sources" / name).read_text(encoding="utf-8")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(re.sub(r'"# (?=%pip install)', '"', notebook), encoding="utf-8")


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
    parser.add_argument(
        "--repository", default="", help="owner/name of the repository on GitHub whose branch colab Colab opens"
    )
    given = parser.parse_args()
    if given.repository and not (given.url and re.fullmatch(r"[\w.-]+/[\w.-]+", given.repository)):
        parser.error(
            f"--repository={given.repository} and the address {given.url!r}: notebooks that Colab opens need both a repository "
            "of the form owner/name and the site's address, from which they install the course's package"
        )
    if given.site.suffix == ".zip":
        with TemporaryDirectory() as temporary:
            unpacked = Path(temporary, given.site.stem)
            publish(given.html, unpacked, given.url, given.repository)
            pack(unpacked, given.site)
    else:
        publish(**vars(given))
