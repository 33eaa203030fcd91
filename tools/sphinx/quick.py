"""A Sphinx extension with which a build asks only once for what it needs on every page; it saves a quarter of a build's time.

Without it, pybtex looks through all installed packages for each reference, and Sphinx translates all patterns of files for each
list of pages, stems a word again on each page, and copies the headings of all pages for each sidebar, which shows only titles.
"""

from functools import cache
from typing import Any

import pybtex.plugin  # type: ignore[import-untyped]
from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.adapters import toctree
from sphinx.search.en import SearchEnglish
from sphinx.util import matching


def title(toc: nodes.bullet_list) -> nodes.bullet_list:
    """What Sphinx keeps of a page's headings if only titles are asked for: the first, and the lists of pages below it."""
    toc = toc.deepcopy()
    for top in toc.children:
        if len(top) > 1:
            below = list(top.findall(addnodes.toctree))
            if below:
                top[1][:] = below
            else:
                top.pop(1)
    return toc


class Titles:
    """What a list of pages needs to know of them."""

    def __init__(self, env: BuildEnvironment) -> None:
        self.titles, self.metadata = env.titles, env.metadata
        self.tocs = {page: title(toc) for page, toc in env.tocs.items()}


titles = cache(Titles)
entries = toctree._entries_from_toctree


def entries_of(env: BuildEnvironment | Titles, prune: bool, titles_only: bool, *others: Any, **more: Any) -> list[Any]:
    """For Sphinx's function, which calls this one for the lists below."""
    known: Any = titles(env) if titles_only and isinstance(env, BuildEnvironment) else env
    return entries(known, prune, titles_only, *others, **more)


def setup(app: Sphinx) -> dict[str, Any]:
    for place, name in [(pybtex.plugin, "entry_points"), (matching, "_translate_pattern"), (SearchEnglish, "stem")]:
        setattr(place, name, cache(getattr(place, name)))
    toctree._entries_from_toctree = entries_of
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
