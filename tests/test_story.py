"""The story is the course on one page: short scenes, each with a figure of the chapter that it sends its readers to."""

import re

import pytest

from tests.commands import ROOT
from tests.living import FIGURES
from tests.site.built import SOURCES

STORY = (ROOT / "book/story.md").read_text(encoding="utf-8")
_, *SCENES = re.split(r"^## ", STORY, flags=re.MULTILINE)
# What to try is plain text, without asterisks.
REPEATED = re.compile(r'<living-figure for="fig-[\w-]+" of="([\w-]+)" figure="(\w+)" [^>]*\btry="[^"*]+">')


@pytest.mark.parametrize("scene", SCENES[:-1], ids=lambda scene: scene.partition("\n")[0])
def test_scene_is_true_to_its_chapter(scene: str) -> None:
    assert "`" not in re.sub(r"```\{figure\}.*?```|`text\[:, -48:\]`", "", scene, flags=re.DOTALL), "no code, but for the slice"
    long = re.findall(r"^\*The long version: \[chapter \d+\]\((\w+)\.ipynb\)\.\*$", scene, re.MULTILINE)
    assert len(long) == 1, "end with *The long version: [chapter 1](01_order.ipynb).*"
    figures = REPEATED.findall(scene)
    assert len(figures) == 1, "show one figure that moves"
    plain, module = figures[0]
    page = FIGURES[plain].removesuffix(".html")
    assert page in (f"book/{long[0]}", "book/index"), f"{plain} is in {page}, and the scene's readers are sent to {long[0]}"
    assert f'for="{plain}" figure="{module}"' in (ROOT / SOURCES[page]).read_text(encoding="utf-8").replace('\\"', '"')
