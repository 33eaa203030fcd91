"""What `make site` makes of the built pages: a folder that is found, shared and installed from, and knows old addresses."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import combinations
from pathlib import Path
from threading import Thread
from typing import Any
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from tests.commands import ROOT, run
from tests.test_site import CHAPTERS, NOTEBOOKS, PAGES, SOURCES, Site, opened, parsed, site
from tools.book import cards
from tools.book import site as publishing
from tools.book.found import Course, changed

__all__ = ["site"]  # a fixture; each of the files finds what another has built
pytestmark = pytest.mark.slow
ADDRESS = "https://example.org/course"
FIRST = f"{ADDRESS}/{PAGES[0]}"


@pytest.fixture(scope="session")
def published(site: Site) -> Path:
    """The folder that `make site` makes for a host at ADDRESS."""
    folder = site.root / "_site"
    command = [sys.executable, "tools/book/site.py", str(site.html), str(folder), ADDRESS, "--repository=owner/course"]
    made = subprocess.run(command, cwd=site.root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert made.returncode == 0, f"tools/book/site.py failed:\n{made.stdout}"
    return folder


def named_wheel(published: Path) -> Path:
    """The wheel that pages name: its version ends with what is in it."""
    (wheel,) = published.glob("posenc_course-*+*.whl")
    return wheel


def heading(published: Path, page: str) -> tuple[str, str]:
    """The number and the words of the page's title."""
    title = parsed(published / page).select_one("article h1")
    assert title
    number, words = re.findall(r"^(?:(\d+) )?(.*)#$", title.get_text())[0]
    return number or "".join(re.findall(r"^Assignment (\d+):", words)), words


def told(published: Path, page: str) -> dict[str, str]:
    metas = parsed(published / page).select("head meta[property], head meta[name]")
    return {str(meta.get("property") or meta.get("name")): str(meta["content"]) for meta in metas}


def data(published: Path, page: str) -> dict[str, Any]:
    (script,) = parsed(published / page).select('head script[type="application/ld+json"]')
    return json.loads(script.get_text())


def file(published: Path, address: str) -> Path:
    assert address.startswith(f"{ADDRESS}/"), f"{address} is no full address of this site"
    return published / address.removeprefix(f"{ADDRESS}/")


@pytest.mark.parametrize("page", PAGES)
def test_page_says_where_it_is_and_how_it_is_shared(published: Path, page: str) -> None:
    head, metas = parsed(published / page).head, told(published, page)
    assert head
    assert [link["href"] for link in head.select("link[rel=canonical]")] == [f"{ADDRESS}/{page}"]
    (feed,) = head.select("link[rel=alternate][type='application/rss+xml']")
    assert file(published, str(feed["href"])).is_file()
    assert metas["og:url"] == f"{ADDRESS}/{page}"
    assert metas["og:title"] == heading(published, page)[1]
    assert metas["og:description"] == metas["description"]
    assert metas["og:site_name"] == heading(published, PAGES[0])[1]
    assert metas["og:type"] == ("website" if page == PAGES[0] else "article")
    assert metas["twitter:card"] == "summary_large_image"
    assert metas["og:image:alt"]
    with Image.open(file(published, metas["og:image"])) as card:
        assert card.size == (int(metas["og:image:width"]), int(metas["og:image:height"])) == (1200, 630)


def test_search_engines_find_the_page_that_a_figure_is_from(published: Path) -> None:
    (link,) = parsed(published / "embed/two-turned.html").select("link[rel=canonical]")
    assert link["href"] == f"{ADDRESS}/book/10_rope.html"


@pytest.mark.parametrize("page", PAGES)
def test_structured_data_says_what_the_page_says(published: Path, page: str) -> None:
    said, metas = data(published, page), told(published, page)
    number, title = heading(published, page)
    assert said["@context"] == "https://schema.org"
    assert said["@id"] == said["url"] == f"{ADDRESS}/{page}"
    assert (said["name"], said["description"], said["image"]) == (title, metas["description"], metas["og:image"])
    assert (said["inLanguage"], said["isAccessibleForFree"]) == (parsed(published / page).html["lang"], True)  # type: ignore[index]
    assert said["license"] == "https://creativecommons.org/licenses/by/4.0/"
    assert "CC-BY-4.0" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    if page == PAGES[0]:
        return
    assert said["@type"] == "LearningResource"
    assert said["isPartOf"]["@id"] == FIRST
    kinds = {
        "exerci": "Assignment",
        "book/e": "Game",
        "book/s": "Story",
        "book/t": "Teaching guide",
        "book/r": "Reference",
    }
    kind = "Chapter" if re.match(r"book/\d\d_", page) else kinds.get(page[:6], "Guide")
    assert said["learningResourceType"] == ("Tool" if page.endswith("inspector.html") else kind)
    assert said.get("position") == (int(number) if number else None)
    listed = parsed(published / page).select("article :is(.goals li, .task-list-item)")
    goals = [" ".join(goal.get_text().split()).rstrip(",.") for goal in listed]
    assert said.get("teaches", []) == goals
    assert bool(goals) == (page.replace("/deeper/", "/") in CHAPTERS)
    box = parsed(published / page).select_one("article :is(.goals, .goal)")
    minutes = re.findall(r"(?:Time: |chapter \d+, )(\d+) minutes", box.get_text()) if box else []
    assert [said["timeRequired"]] == [f"PT{time}M" for time in minutes] if "timeRequired" in said else not minutes


def test_first_page_is_a_course_of_the_chapters(published: Path) -> None:
    course = data(published, PAGES[0])
    assert course["@type"] == "Course"
    assert course["provider"]["name"] in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert [part["@id"] for part in course["hasPart"]] == [f"{ADDRESS}/{page}" for page in CHAPTERS]
    parts = [data(published, page) for page in CHAPTERS]
    assert [(part["name"], part["position"]) for part in course["hasPart"]] == [(p["name"], p["position"]) for p in parts]
    hours, minutes = re.findall(r"\d+", course["hasCourseInstance"]["courseWorkload"])
    assert 60 * int(hours) + int(minutes) == sum(int(part["timeRequired"][2:-1]) for part in parts)
    assert course["offers"]["category"] == "Free"


OWN_CARDS = [*CHAPTERS, "book/reference/inspector.html", "book/story.html", "book/eight.html"]


def test_cards_can_be_read_and_told_apart(published: Path) -> None:
    """Beside a link they are some 600 pixels wide, half of their size."""
    names = [Path(told(published, page)["og:image"]).name for page in [*OWN_CARDS, PAGES[0]]]
    assert len({*names}) == len(names)
    assert {path.name for path in (published / "cards").iterdir()} == {*names}
    seen = {}
    for name in names:
        assert (published / "cards" / name).stat().st_size < 100_000, f"{name} is too heavy"
        with Image.open(published / "cards" / name) as drawn:
            seen[name] = np.asarray(drawn.convert("L"), dtype=float)
        edges = [seen[name][100:, :60], seen[name][100:, -36:], seen[name][-28:]]
        assert all((edge > 250).all() for edge in edges), f"{name}: words or figure run out of the card"
    for one, other in combinations(names[:-3], 2):
        for part, where in [("title", np.s_[100:, :540]), ("figure", np.s_[100:, 560:])]:
            assert abs(seen[one][where] - seen[other][where]).mean() > 1, f"{one} and {other} have the same {part}"
    for page in OWN_CARDS:
        card, title = seen[Path(told(published, page)["og:image"]).name], heading(published, page)[1]
        size, lines = cards.fitted(title, cards.COLUMN, 48)
        assert " ".join(lines) == title
        assert size >= 40, f"the title of {page} is too long for a card: its letters would be {size // 2} pixels high"
        assert (card[100:, 536:572] > 250).all(), f"the title of {page} runs into the figure of its card"


def test_sitemap_lists_the_pages_and_robots_find_it(published: Path) -> None:
    schema = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    urls = ET.parse(published / "sitemap.xml").getroot().findall(f"{schema}url")
    assert sorted(str(url.findtext(f"{schema}loc")) for url in urls) == sorted(f"{ADDRESS}/{page}" for page in PAGES)
    assert {url.findtext(f"{schema}lastmod") for url in urls} == {None}, (
        "a copy without its history cannot know when a page changed"
    )
    assert f"\nSitemap: {ADDRESS}/sitemap.xml\n" in (published / "robots.txt").read_text(encoding="utf-8")


def test_days_of_change_come_from_the_whole_history_or_not_at_all(tmp_path: Path) -> None:
    def git(*command: str, day: str = "") -> None:
        known = {"GIT_COMMITTER_DATE": f"{day} 12:00 +0000", "GIT_AUTHOR_DATE": "2020-01-01 12:00 +0000"} if day else {}
        identity = ["-c", "user.name=a", "-c", "user.email=a", "-c", "init.defaultBranch=main"]
        subprocess.run(["git", *identity, "-C", str(tmp_path), *command], check=True, env=os.environ | known)

    assert changed(tmp_path) == {}
    git("init", "--quiet", "whole")
    for day, names in [("2026-01-02", ["a", "b é"]), ("2026-03-04", ["b é"])]:
        for name in names:
            (tmp_path / "whole" / name).write_text(day, encoding="utf-8")
        git("-C", "whole", "add", ".")
        git("-C", "whole", "commit", "--quiet", "-m", day, day=day)
    assert changed(tmp_path / "whole") == {"a": "2026-01-02", "b é": "2026-03-04"}
    git("clone", "--quiet", "--depth", "1", f"file://{tmp_path / 'whole'}", "part")
    assert changed(tmp_path / "part") == {}


def test_feed_has_an_entry_for_each_version(published: Path, tmp_path: Path) -> None:
    def items(text: str) -> list[ET.Element]:
        (channel,) = ET.fromstring(text)
        assert all(channel.findtext(name) for name in ["title", "link", "description"])
        return channel.findall("item")

    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    entries = items((published / "feed.xml").read_text(encoding="utf-8"))
    assert [str(entry.findtext("title")).removeprefix("Where Is a Token? ") for entry in entries] == headings
    assert all(file(published, str(entry.findtext("link"))).is_file() for entry in entries)
    assert not re.search('href="(?!https?:)', "".join(str(entry.findtext("description")) for entry in entries))

    course = Course(ROOT, published, ADDRESS)
    course.root = tmp_path
    made = "# Changelog\n\n## 1.0.1 (unreleased)\n\n- `a < b`\n\n## 1.0.0 (2027-02-03)\n\n- First\n"
    (tmp_path / "CHANGELOG.md").write_text(made, encoding="utf-8")
    new, old = items(course.feed())
    assert new.find("pubDate") is None, "a date is invented"
    assert old.findtext("pubDate") == "Wed, 03 Feb 2027 00:00:00 +0000"
    assert str(new.findtext("description")).strip() == "<ul>\n<li><code>a &lt; b</code></li>\n</ul>"
    assert new.findtext("guid") != old.findtext("guid")


def test_without_an_address_none_is_told(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "add_wheel", lambda folder: "")  # it takes the longest, and the tests below have one
    publishing.publish(site.html, tmp_path / "_site")
    before, after = (
        {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        for folder in [site.html, tmp_path / "_site"]
    )
    moved = tomllib.loads((ROOT / "book/redirects.toml").read_text("utf-8"))
    assert after - before == {".nojekyll", *moved}
    assert all(name.startswith("_static/") for name in before - after), "_static has files that no page asks for"
    differ = [name for name in before & after if (site.html / name).read_bytes() != (tmp_path / "_site" / name).read_bytes()]
    assert differ == ["index.html"]
    assert "://" not in (tmp_path / "_site/index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("url", ["example.org", "https://", "https://example.org/course?a", "/course"])
def test_what_is_no_address_ends_in_one_line(tmp_path: Path, url: str) -> None:
    kept = tmp_path / "kept"
    kept.touch()
    with pytest.raises(
        SystemExit, match=rf"^SITE_URL={re.escape(url)} is not the address of a site: give the full address[^\n]*$"
    ):
        publishing.publish(tmp_path, tmp_path, url)
    assert kept.exists()


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """A site of two pages."""
    for name, body in [("book/new.html", '<h2 id="there">There</h2>'), ("first.html", "")]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"<title>New &amp; old &#8212; A course</title>{body}", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("new", ["book/new.html#there", "book/new.html", "first.html"])
@pytest.mark.parametrize("old", ["old.html", "book/old.html", "book/deep/er/old.html"])
def test_old_address_leads_to_the_new_one(pages: Path, old: str, new: str) -> None:
    publishing.redirect(pages, {old: new}, {new.partition("#")[0]: '<link rel="canonical" href="x" />\n'})
    stub = parsed(pages / old)
    (refresh,) = stub.select("meta[http-equiv=refresh]")
    (link,) = stub.select("a")
    assert str(refresh["content"]) == f"0; url={link['href']}"
    path, _, place = str(link["href"]).partition("#")
    assert ((pages / old).parent / path).resolve() == (pages / new.partition("#")[0]).resolve()
    assert place == new.partition("#")[2]
    assert link.get_text() == "New & old"
    assert stub.select_one("head link[rel=canonical]")


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        ({"book/old.html": "book/gone.html"}, "leads to book/gone.html, which doesn't exist: give a page"),
        ({"book/old.html": "book/new.html#gone"}, "leads to book/new.html#gone, which doesn't exist: give a page or an id"),
        ({"first.html": "book/new.html"}, "first.html must be the address of a former page"),
        ({"../old.html": "book/new.html"}, "../old.html must be the address of a former page"),
    ],
)
def test_table_that_leads_nowhere_ends_in_one_line(pages: Path, moved: dict[str, str], words: str) -> None:
    with pytest.raises(SystemExit, match=rf"^book/redirects.toml: [^\n]*{re.escape(words)}[^\n]*$"):
        publishing.redirect(pages, moved, {})


def test_missing_page_is_told_at_any_depth_and_searched_from(published: Path, browser: Browser) -> None:
    """Like a host that shows 404.html for every missing page."""

    class Host(SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            return str(published / path.partition("?")[0].removeprefix("/course").lstrip("/"))

        def send_error(self, code: int, *_: Any) -> None:
            self.send_response(code)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write((published / "404.html").read_bytes())

        def log_message(self, *_: Any) -> None:
            pass

    for link in parsed(published / "404.html").select("[href], [src], [action]"):
        address = str(link.get("href") or link.get("src") or link.get("action"))
        if not address.startswith("#"):
            assert address.startswith("/course/"), f"404.html: {address} holds only beside it"
            assert (published / re.split("[?#]", address.removeprefix("/course/"))[0]).is_file(), f"404.html: {address}"

    with ThreadingHTTPServer(("127.0.0.1", 0), Host) as host, browser.new_page() as tab:
        Thread(target=host.serve_forever, daemon=True).start()
        failed: list[str] = []
        tab.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
        root, missing = f"http://127.0.0.1:{host.server_port}/course", "/book/no/such/page.html"
        tab.goto(root + missing)
        assert tab.locator("h1").inner_text() == "There is no page here"
        assert failed == [root + missing], "404.html does not find its parts"
        assert tab.locator("article a").first.evaluate("a => a.href") == f"{root}/{PAGES[0]}"
        tab.locator("article input[name=q]").fill("rotation")
        tab.keyboard.press("Enter")
        tab.wait_for_url(f"{root}/search.html?q=rotation")
        tab.wait_for_function("/finished/.test(document.querySelector('#search-results').innerText)")
        assert tab.locator("#search-results li a").count()

        tab.goto(f"{root}/index.html")
        tab.wait_for_url(f"{root}/{PAGES[0]}")
        host.shutdown()


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_notebook_names_the_wheel_in_full(published: Path, page: str) -> None:
    address = f"{ADDRESS}/{named_wheel(published).name}"
    line = re.compile(rf"%pip install [^\n]*{re.escape(address)}")
    notebook = json.loads((published / "_sources" / SOURCES[page.removesuffix(".html")]).read_text(encoding="utf-8"))
    first = next("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert line.search(first), f"{page}: the first cell of the download must %pip install {address}; it is:\n{first}"
    text = parsed(published / page).get_text()
    assert line.search(text), f"the published {page} does not show %pip install {address}: see tools/book/site.py"


@pytest.mark.parametrize("page", ["book/01_order.html", "search.html?q=token"])
def test_page_lacks_nothing(browser: Browser, published: Path, page: str) -> None:
    """Source maps of scripts are included, for use with the browser's tools; files that no page names are not."""
    problems: list[str] = []
    with opened(browser, f"{published.as_uri()}/{page}", problems=problems):
        assert not [problem for problem in problems if "_static" in problem]
    static = [file for file in (published / "_static").rglob("*") if file.is_file()]
    assert {"bootstrap.js", "bootstrap.js.LICENSE.txt", "searchtools.js"} <= {file.name for file in static}
    needless = [file.name for file in static if re.search(r"fontawesome\.js|^fa-|basic\.css|\.mo$", file.name)]
    assert not needless, f"no page asks for {needless}: see tools/book/site.py"


@pytest.mark.parametrize("page", PAGES)
def test_colab_opens_a_notebook_that_installs_the_wheel(published: Path, page: str) -> None:
    buttons = parsed(published / page).select("a[href*=colab]")
    assert len(buttons) == (page in NOTEBOOKS)
    for button in buttons:
        name = SOURCES[page.removesuffix(".html")]
        assert button["href"] == f"https://colab.research.google.com/github/owner/course/blob/colab/{name}"
        assert "Colab" in button.get_text()
        notebook = json.loads((published.with_name("_colab") / name).read_text(encoding="utf-8"))
        first = next("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
        wheel = re.escape(f"{ADDRESS}/{named_wheel(published).name}")
        assert re.search(rf"^%pip install [^\n]*{wheel}$", first, re.MULTILINE), f"{name} does not install the wheel:\n{first}"
        assert "# %pip" not in first, f"{name} leaves something out that it needs:\n{first}"


@pytest.mark.parametrize("given", [["--repository=owner/course"], [ADDRESS, "--repository=course"]])
def test_colab_needs_an_address_and_a_repository(tmp_path: Path, given: list[str]) -> None:
    done = run(sys.executable, "tools/book/site.py", str(tmp_path), str(tmp_path / "site"), *given)
    assert done.returncode == 2
    assert "notebooks that Colab opens need both a repository of the form owner/name and the site's address" in done.stderr


def test_wheel_installs_and_imports(published: Path, tmp_path: Path) -> None:
    wheel = named_wheel(published)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(tmp_path), str(wheel)]
    subprocess.run(pip, check=True)
    command = [sys.executable, "-c", "import posenc_course; print(posenc_course.__file__)"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    imported = subprocess.run(command, cwd=tmp_path, env=environment, text=True, capture_output=True)
    assert str(tmp_path) in imported.stdout, f"{wheel.name} installs but does not import alone:\n{imported.stderr}"


def test_wheels_with_other_files_have_other_versions(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So pip replaces the wheel that a reader already has; handouts find the one without the mark."""
    (plain,) = {*published.glob("*.whl")} - {named_wheel(published)}
    assert named_wheel(published).name == plain.name.replace("-py3", f"+{publishing.contents(plain)}-py3")
    for wheel in plain, named_wheel(published):
        distribution = wheel.name.removesuffix("-py3-none-any.whl")
        with ZipFile(wheel) as packed:
            metadata = packed.read(f"{distribution}.dist-info/METADATA").decode()
        assert f"\nVersion: {distribution.removeprefix('posenc_course-')}\n" in metadata

    shutil.copytree(ROOT / "posenc_course", tmp_path / "posenc_course", ignore=shutil.ignore_patterns("data", "__pycache__"))
    for name in ["pyproject.toml", "README.md", "LICENSE", "LICENSE-CODE", "posenc_course/data/corpus_LICENSE.txt"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    monkeypatch.setattr(publishing, "ROOT", tmp_path)

    def made() -> str:
        return publishing.contents(tmp_path / publishing.add_wheel(tmp_path))

    before = made()
    (tmp_path / "posenc_course/rope.py").touch()
    assert made() == before, "the same files, at another time, are another wheel"
    with (tmp_path / "posenc_course/rope.py").open("a") as file:
        file.write("# changed\n")
    assert made() != before
