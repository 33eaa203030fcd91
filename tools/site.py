"""Makes one folder for any static host of the built book: `make site` calls it.

The folder carries the package's wheel, lacks what no page asks for, and leads from where a page was to where it is. Given the
site's address, the line in the first cell of every chapter that installs the wheel names it in full, on the pages and in the
notebooks for download, and the pages get what tools/found.py makes for whoever looks for them.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from html import escape
from os.path import relpath
from pathlib import Path
from urllib.parse import urlsplit

from tools.found import Course

ROOT = Path(__file__).resolve().parent.parent
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


def publish(html: Path, site: Path, url: str = "") -> None:
    """Copies the pages in `html` to the new folder `site`, and adds to it."""
    if url and not re.fullmatch(r"https?://[^/?#\s]+(/[^?#\s]*)?", url):
        sys.exit(f"SITE_URL={url} is no address of a site: give all of it, such as https://example.org/course")
    url = url.rstrip("/")
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(html, site)
    drop_unnamed(site)
    (site / ".nojekyll").touch()  # GitHub Pages would leave out folders that begin with an underscore
    wheel = add_wheel(site)
    heads = dict[str, str]()
    if url:
        name_in_full(site, wheel, url)
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
    first = re.findall(r"url=([^\"]+)", (site / "index.html").read_text(encoding="utf-8"))[0]
    (site / "index.html").unlink()
    moved = tomllib.loads((ROOT / "book/redirects.toml").read_text(encoding="utf-8"))
    redirect(site, moved | {"index.html": first}, heads)


def drop_unnamed(site: Path) -> None:
    """What neither a page names, nor a script or sheet that is named itself: some 6 MB that Sphinx and the theme bring."""
    files = [file for file in (site / "_static").rglob("*") if file.is_file()]
    named, new = set[Path](), {*site.rglob("*.html")} - {*files}
    while new:
        named |= new
        texts = [file.read_text(encoding="utf-8") for file in new if file.suffix in {".html", ".css", ".js"}]
        names = {name for text in texts for name in re.findall(r"[\w.-]+\.\w+", text)}
        new = {file for file in files if file.name in names} - named
    for file in {*files} - named:
        file.unlink()


def add_wheel(site: Path) -> str:
    """Builds the package; the name of its file."""
    wheel_only = ["wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", "pip", *wheel_only, "--wheel-dir", site, ROOT], check=True)
    wheel = next(site.glob("*.whl")).name
    for notebook in (site / "_sources").rglob("*.ipynb"):
        if wheel not in notebook.read_text(encoding="utf-8"):
            sys.exit(f"{notebook.name} does not name {wheel}: its first cell must say how to install this version")
    return wheel


def name_in_full(site: Path, wheel: str, url: str) -> None:
    for page in [*site.rglob("*.html"), *(site / "_sources").rglob("*.ipynb")]:
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(wheel, f"{url}/{wheel}"), encoding="utf-8")


def rooted(page: str, url: str) -> str:
    """The page with links that hold at any depth, since hosts show 404.html wherever a page is missing."""
    root = f"{urlsplit(url).path}/"
    page = page.replace('data-content_root="./"', f'data-content_root="{root}"')
    return re.sub(r'\b(href|src|action)="(?![a-z]+:|[/#])', rf'\1="{root}', page)


def redirect(site: Path, moved: dict[str, str], heads: dict[str, str]) -> None:
    """A page at each old address that leads to the new one, and has its head."""
    for old, new in moved.items():
        path, _, place = new.partition("#")
        text = (site / path).read_text(encoding="utf-8") if (site / path).is_file() else None
        if text is None or (place and f'id="{place}"' not in text):
            sys.exit(f"book/redirects.toml: {old} leads to {new}, which is not there: name a page, and a place in it")
        if (site / old).exists() or not re.fullmatch(r"[\w/-]+\.html", old):
            sys.exit(f"book/redirects.toml: {old} must be where a page was, such as book/old.html, and is none any more")
        (title,) = re.findall(r"<title>(.*?)(?: &#8212; .*)?</title>", text)
        address = escape(f"{relpath(path, Path(old).parent)}{'#' * bool(place)}{place}")
        (site / old).parent.mkdir(parents=True, exist_ok=True)
        (site / old).write_text(MOVED.format(title=title, address=address, head=heads.get(path, "")), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("html", type=Path, help="the built pages, e.g. _build/html")
    parser.add_argument("site", type=Path, help="the folder to make, e.g. _site")
    parser.add_argument("url", nargs="?", default="", help="the address that the site will have")
    publish(**vars(parser.parse_args()))
