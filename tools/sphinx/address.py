"""A Sphinx extension for the one build that is published: if SITE_URL has the site's address, pages say where they are.

Sphinx writes canonical links, sphinxext-opengraph draws the cards that networks show beside a link, and sphinx-sitemap lists
the pages. If REPOSITORY is owner/name on GitHub, the theme adds a button that opens a notebook in Colab, from the branch
`colab`.
"""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def root_links(app: Sphinx, exception: Exception | None) -> None:
    """Hosts show 404.html wherever a page is missing, so its links must work at any depth; crawlers are told of the sitemap."""
    html, url = Path(app.outdir), app.config.html_baseurl
    if exception or not (html / "404.html").exists():
        return
    root = urlsplit(url).path
    page = (html / "404.html").read_text(encoding="utf-8").replace('data-content_root="./"', f'data-content_root="{root}"')
    page = re.sub(r'\b(href|src|action)="(?![a-z]+:|[/#])', rf'\1="{root}', page)
    (html / "404.html").write_text(page, encoding="utf-8")
    (html / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {url}sitemap.xml\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    url, repository = os.environ.get("SITE_URL", ""), os.environ.get("REPOSITORY", "")
    if not re.fullmatch(r"(https?://[^?#\s]+)?", url) or (repository and not url):
        raise ExtensionError(f"SITE_URL={url} is not a site's address: give the full one, such as https://example.org/course")
    if url:
        for extension in ("sphinxext.opengraph", "sphinx_sitemap"):
            app.setup_extension(extension)
        app.config.html_baseurl = app.config.ogp_site_url = url.rstrip("/") + "/"
        app.config.ogp_site_name, app.config.ogp_description_length = app.config.html_title, 160
        app.config.ogp_social_cards = {"image_mini": "book/pictures/mark.png", "line_color": "#0b4f79"}
        app.config.sitemap_url_scheme, app.config.sitemap_excludes = "{link}", ["404.html", "search.html"]
        app.connect("build-finished", root_links, priority=950)  # after `stylesheet`, which writes pages anew
    if repository:
        app.config.html_theme_options |= {
            "repository_url": f"https://github.com/{repository}",
            "repository_branch": "colab",
            "launch_buttons": {"colab_url": "https://colab.research.google.com"},
        }
    return {"parallel_read_safe": True, "parallel_write_safe": True}
