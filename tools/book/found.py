"""Metadata of the published pages for search engines, social networks and feed readers; tools/book/site.py adds it.

It contains full addresses, so it can be made only when the site's address is known. Everything in it comes from the built
pages.

The Sphinx extensions sphinxext-opengraph, sphinx-sitemap and sphinx-notfound-page need the address when the book is built, so
publishing would take a second build. None of them provides a chapter's figure, structured data or a feed. So they would save
only a few of these lines, and each would be another package.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape, unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import yaml  # type: ignore[import-untyped]
from markdown_it import MarkdownIt

from tools.book.cards import HEIGHT, WIDTH, card

LICENCE = "https://creativecommons.org/licenses/by/4.0/"
# What a page is, by its path: the first pattern that matches.
KINDS = {
    "book/index": "Course",
    "book/story": "Story",
    "book/eight": "Game",
    r"book/\d\d_": "Chapter",
    "exercises/": "Assignment",
    "book/teaching/": "Teaching guide",
    "book/reference/inspector": "Tool",
    "book/reference/": "Reference",
    "": "Guide",
}
# The line above the title on a card.
CARDS = {
    "Chapter": "Chapter {}",
    "Story": "The story on one page",
    "Game": "A game of ninety seconds",
    "Tool": "Paste your config.json",
}


def plain(markup: str) -> str:
    return " ".join(unescape(re.sub(r"<!--.*?-->|<[^>]*>", "", markup, flags=re.DOTALL)).split())


@dataclass(frozen=True)
class Page:
    """What a built page says about itself."""

    path: str  # in the site: book/10_rope.html
    source: str  # in the repository: book/10_rope.ipynb
    title: str
    number: int | None  # for chapters and their assignments
    description: str
    goals: list[str]
    minutes: int | None
    figure: str | None  # the file name of the first figure, which comes after the chapter's picture

    @property
    def kind(self) -> str:
        return next(kind for pattern, kind in KINDS.items() if re.match(pattern, self.path))

    @property
    def card(self) -> str:
        """The path of its card: all pages that have none of their own share the course's."""
        return f"cards/{Path(self.path).stem if self.kind in CARDS else 'course'}.png"


def read(html: Path, source: str) -> Page:
    path = re.sub(r"\.\w+$", ".html", source)
    head, _, article = (html / path).read_text(encoding="utf-8").partition("<article")
    number, title = re.findall(r'<h1>(?:<span class="section-number">(\d+) </span>)?(.*?)<a class="headerlink"', article)[0]
    number = number or "".join(re.findall(r"^Assignment (\d+):", title))
    (description,) = re.findall(r'<meta name="description" content="([^"]*)"', head)
    box = "".join(re.findall(r'<div class="goals admonition">(.*?)</div>', article, re.DOTALL))
    goals = re.findall(r'<li class="task-list-item.*?>(.*?)</li>', article, re.DOTALL) or re.findall(
        "<li>(.*?)</li>", box, re.DOTALL
    )
    line = "".join(re.findall(r'<p class="goal">(.*?)</p>', article, re.DOTALL))
    minutes = re.search(r"Time: (\d+) minutes\.|, (\d+) minutes, \d+ points\.", plain(box or line))
    return Page(
        path,
        source,
        plain(title),
        int(number) if number else None,
        unescape(description),
        [plain(goal).rstrip(",.") for goal in goals],
        int(minutes[1] or minutes[2]) if minutes else None,
        next(iter(re.findall(r'<img (?!alt="")[^>]*src="[^"]*_images/([^"/]+)"', article)), None),
    )


class Course:
    """The pages of a site whose address is `url`, and their metadata."""

    def __init__(self, root: Path, html: Path, url: str) -> None:
        self.root, self.html, self.url = root, html, url
        config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
        self.name, self.authors = config["title"], config["author"]
        sources = sorted(path.relative_to(html / "_sources").as_posix() for path in (html / "_sources").rglob("*.*"))
        self.pages = [read(html, source) for source in sources]
        (self.first,) = (page for page in self.pages if page.kind == "Course")
        self.chapters = [page for page in self.pages if page.kind == "Chapter"]

    def address(self, path: str) -> str:
        return f"{self.url}/{path}"

    def data(self, page: Page) -> dict[str, Any]:
        """The page's structured data in the vocabulary of schema.org."""
        told = {
            "@id": self.address(page.path),
            "url": self.address(page.path),
            "name": page.title,
            "description": page.description,
            "image": self.address(page.card),
            "inLanguage": "en",
            "isAccessibleForFree": True,
            "license": LICENCE,
        }
        authors = {"@type": "Organization", "name": self.authors, "url": self.address(self.first.path)}
        if page == self.first:
            hours, minutes = divmod(sum(chapter.minutes or 0 for chapter in self.chapters), 60)
            told |= {
                "provider": authors,
                "educationalLevel": "Intermediate",  # Python and matrix products are assumed
                "offers": {"@type": "Offer", "category": "Free"},
                "hasCourseInstance": {
                    "@type": "CourseInstance",
                    "courseMode": "Online",
                    "courseWorkload": f"PT{hours}H{minutes}M",
                },
                "hasPart": [
                    {"@type": "LearningResource", "@id": self.address(part.path), "name": part.title, "position": part.number}
                    for part in self.chapters
                ],
            }
        else:
            course = {"@type": "Course", "@id": self.address(self.first.path), "name": self.name}
            told |= {"learningResourceType": page.kind, "author": authors, "isPartOf": course}
            told |= {"position": page.number} if page.number else {}
            told |= {"timeRequired": f"PT{page.minutes}M"} if page.minutes else {}
            told |= {"teaches": page.goals} if page.goals else {}
        return {"@context": "https://schema.org", "@type": "Course" if page == self.first else "LearningResource"} | told

    def head(self, page: Page) -> str:
        """What is added to a page's head."""
        properties = {
            "og:type": "website" if page == self.first else "article",
            "og:site_name": self.name,
            "og:title": page.title,
            "og:description": page.description,
            "og:url": self.address(page.path),
            "og:image": self.address(page.card),
            "og:image:width": WIDTH,
            "og:image:height": HEIGHT,
            "og:image:alt": ": ".join(self.words(page if page.kind in CARDS else self.first)),
        }
        # Escaped, so that no text in the JSON can end the script.
        data = json.dumps(self.data(page), ensure_ascii=False).replace("</", r"<\/")
        feed = f'title="{self.name} Changes" href="{self.address("feed.xml")}"'
        return "\n".join(
            [
                f'<link rel="canonical" href="{self.address(page.path)}" />',
                f'<link rel="alternate" type="application/rss+xml" {feed} />',
                *(f'<meta property="{name}" content="{escape(str(value))}" />' for name, value in properties.items()),
                '<meta name="twitter:card" content="summary_large_image" />',
                f'<script type="application/ld+json">{data}</script>\n',
            ]
        )

    def words(self, page: Page) -> tuple[str, str]:
        """The text of a card: a small line and a large one."""
        if page == self.first:
            return f"{len(self.chapters)} chapters", page.description
        return CARDS[page.kind].format(page.number), page.title

    def draw(self) -> None:
        """Draw the cards: one for the course, and one for each page that has its own."""
        (self.html / "cards").mkdir()
        for page in [self.first, *(page for page in self.pages if page.kind in CARDS)]:
            figure = self.html / "_images" / page.figure if page.figure else None
            card(self.name, *self.words(page), figure).save(self.html / page.card, optimize=True)

    def sitemap(self) -> str:
        dates = changed(self.root)
        urls = ET.Element("urlset", xmlns="http://www.sitemaps.org/schemas/sitemap/0.9")
        for page in self.pages:
            ET.SubElement(url := ET.SubElement(urls, "url"), "loc").text = self.address(page.path)
            if page.source in dates:
                ET.SubElement(url, "lastmod").text = dates[page.source]
        return xml(urls)

    def feed(self) -> str:
        """The changelog for feed readers: an entry for each version, dated if the changelog dates it."""
        _, *versions = re.split(r"^## ", (self.root / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
        channel = ET.SubElement(rss := ET.Element("rss", version="2.0"), "channel")
        ET.SubElement(channel, "title").text = f"{self.name} Changes"
        ET.SubElement(channel, "link").text = self.address(self.first.path)
        ET.SubElement(channel, "description").text = self.first.description
        for version in versions:
            heading, _, changes = version.partition("\n")
            item = ET.SubElement(channel, "item")
            ET.SubElement(item, "title").text = f"{self.name} {heading}"
            ET.SubElement(item, "link").text = self.address(self.first.path)
            ET.SubElement(item, "guid", isPermaLink="false").text = f"{self.url} {heading}"
            if day := re.search(r"\d{4}-\d\d-\d\d", heading):
                ET.SubElement(item, "pubDate").text = format_datetime(datetime.fromisoformat(day[0]).replace(tzinfo=UTC))
            ET.SubElement(item, "description").text = MarkdownIt().render(changes)
        return xml(rss)


def xml(root: ET.Element) -> str:
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def changed(root: Path) -> dict[str, str]:
    """The day of each file's last change according to git; empty if this copy has no complete history."""
    git = ["git", "-C", str(root), "-c", "core.quotepath=off"]
    shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True)
    if shallow.stdout.strip() != "false":
        return {}
    dates: dict[str, str] = {}
    for commit in subprocess.check_output([*git, "log", "--format=%x00%cs", "--name-only"], text=True).split("\0")[1:]:
        day, *files = commit.split("\n")
        dates = dict.fromkeys(filter(None, files), day) | dates
    return dates
