"""What `make site` makes of the pages: a folder that is found, shared and installed from."""

import json
import re
import shutil
import sys
from pathlib import Path
from runpy import run_path
from xml.etree import ElementTree as ET

import pytest
from PIL import Image
from playwright.sync_api import Browser, Route
from sphinx.errors import ExtensionError

from tests.commands import ROOT, run
from tests.site.built import Site, copy_a_part, jupyter_book, parsed
from tools.book import site as publishing

pytestmark = pytest.mark.slow
ADDRESS = "https://example.org/course"
PAGES = ["book/01_order.html", "book/02_naive.html", "book/index.html"]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `make site` makes of a small course for a host at ADDRESS."""
    root = copy_a_part(tmp_path_factory.mktemp("published"))
    done = jupyter_book(root, SITE_URL=ADDRESS, REPOSITORY="owner/course")
    assert done.returncode == 0, done.stdout[-3000:]
    publishing.publish(root / "_build/html", root / "_site", ADDRESS)
    return root / "_site"


def named_wheel(published: Path) -> Path:
    """The wheel that pages name: its version ends with what is in it."""
    (wheel,) = published.glob("posenc_course-*+*.whl")
    return wheel


@pytest.mark.parametrize("page", PAGES)
def test_page_says_where_it_is_and_how_it_is_shared(published: Path, page: str) -> None:
    soup = parsed(published / page)
    told = {str(meta["property"]): str(meta["content"]) for meta in soup.select("head meta[property]")}
    (canonical,) = soup.select("link[rel=canonical]")
    assert canonical["href"] == told["og:url"] == f"{ADDRESS}/{page}"
    assert told["og:site_name"] == "Where Is a Token?"
    assert soup.h1
    assert told["og:title"] == soup.h1.get_text().removesuffix("#")
    described = str(soup.select("meta[name=description]")[0]["content"])
    assert told["og:description"][:100] == described[:100]
    with Image.open(published / told["og:image"].removeprefix(f"{ADDRESS}/")) as card:
        assert card.size == (int(told["og:image:width"]), int(told["og:image:height"]))


def test_sitemap_lists_the_pages_and_robots_find_it(published: Path) -> None:
    schema = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    urls = ET.parse(published / "sitemap.xml").getroot().findall(f"{schema}url")
    assert sorted(str(url.findtext(f"{schema}loc")) for url in urls) == [f"{ADDRESS}/{page}" for page in PAGES]
    assert f"\nSitemap: {ADDRESS}/sitemap.xml\n" in (published / "robots.txt").read_text(encoding="utf-8")


def test_missing_page_is_told_at_any_depth_and_searched_from(published: Path, browser: Browser) -> None:
    """Like a host that shows 404.html for every missing page."""
    failed: list[str] = []

    def host(route: Route) -> None:
        file = published / route.request.url.removeprefix(f"{ADDRESS}/").split("?")[0]
        if not file.is_file() and "/living/" not in route.request.url:
            failed.append(route.request.url)
        route.fulfill(path=file if file.is_file() else published / "404.html")

    with browser.new_context() as context:
        context.route("**", host)
        tab = context.new_page()
        tab.goto(f"{ADDRESS}/book/no/such/page.html")
        assert tab.locator("h1").inner_text() == "There is no page here"
        tab.locator("article input[name=q]").fill("rotation")
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"{ADDRESS}/search.html?q=rotation")
        tab.wait_for_function("/finished|did not/.test(document.querySelector('#search-results').innerText)")
        tab.go_back()
        tab.locator("article a").first.click()
        tab.wait_for_url(f"{ADDRESS}/book/index.html")
    assert {*failed} == {f"{ADDRESS}/book/no/such/page.html"}, f"404.html does not find its parts: {failed}"


def test_pages_and_notebooks_name_the_wheel_in_full(published: Path) -> None:
    """Colab opens notebooks that install it; those to download say how."""
    address = re.escape(f"{ADDRESS}/{named_wheel(published).name}")
    install = rf"%pip install matplotlib {address}"
    for name in ("book/01_order", "book/02_naive"):
        for folder, line in ((published / "_sources", rf"# {install}"), (published.with_name("_colab"), install)):
            notebook = json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))
            first = next("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
            assert re.search(rf"^{line}$", first, re.MULTILINE), f"{name} in {folder.name} begins with:\n{first}"
        page = parsed(published / f"{name}.html")
        assert re.search(install, page.get_text()), f"{name}.html names another wheel: see tools/book/site.py"
        assert page.select(f"a[href='https://colab.research.google.com/github/owner/course/blob/colab/{name}.ipynb']")


def test_what_is_no_address_ends_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_URL", "example.org")
    with pytest.raises(ExtensionError, match=r"SITE_URL=example.org is not a site's address: give the full one"):
        run_path(str(ROOT / "tools/sphinx/address.py"))["setup"](None)


def test_without_an_address_none_is_told(site: Site, tmp_path: Path) -> None:
    publishing.publish(site.html, tmp_path / "_site")
    before, after = (
        {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in [site.html, tmp_path / "_site"]
    )
    (wheel,) = (name for name in after if name.endswith(".whl"))
    assert after.keys() ^ before.keys() == {".nojekyll", wheel}
    changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
    assert changed == {"book/how_to_use.html"}, "only the page that links the wheel may change"


def test_wheel_installs_and_imports(published: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(tmp_path)]
    assert run(*pip, str(named_wheel(published))).returncode == 0
    imported = run(sys.executable, "-c", "import posenc_course as p; print(p.__file__)", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert str(tmp_path) in imported.stdout, f"the wheel installs but does not import alone:\n{imported.stderr}"


def test_wheels_with_other_files_have_other_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So pip replaces the wheel that a reader already has."""
    shutil.copytree(ROOT / "posenc_course", tmp_path / "posenc_course", ignore=shutil.ignore_patterns("data", "__pycache__"))
    for name in ["pyproject.toml", "README.md", "LICENSE", "LICENSE-CODE", "posenc_course/data/corpus_LICENSE.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(publishing, "ROOT", tmp_path)
    marks = []
    for text in ("", "", "# changed\n"):
        with (tmp_path / "posenc_course/rope.py").open("a") as file:
            file.write(text)
        marks.append(publishing.contents(tmp_path / publishing.add_wheel(tmp_path)))
    assert marks[0] == marks[1] != marks[2]
