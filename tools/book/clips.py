"""Films living figures of the built book with Chromium and ffmpeg, for the README, lectures and posts: `make clips` calls it.

A figure is moved a step for each frame, so a film looks the same on a slow machine. Each film is made as a GIF and as an MP4.
Both carry as their comment what the figure says at the end, by which a test notices that a film is out of date.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Page

from tools.book.browser import DRAWN, launched, needed

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book/pictures"


class Clip(NamedTuple):
    figure: str  # the name of its page in the folder embed
    slider: str
    first: int
    last: int
    per_second: int
    still: int  # seconds at the end, to read it


CLIPS = {"race": Clip("story-race", "Letters", 24, 128, 12, still=4)}
FIRST = 2  # seconds at the beginning
WIDTH, FINE = 640, 2  # of the picture, and pixels of the film for one of the page
EDGE = 16  # around the picture, as around the page


def frames(tab: Page, clip: Clip, folder: Path) -> str:
    """Stores all frames, and returns what the figure says at the end."""
    slider = tab.get_by_label(clip.slider)
    for number, value in enumerate(range(clip.first, clip.last + 1)):
        slider.fill(str(value))
        tab.evaluate(DRAWN)
        tab.locator(".stage").screenshot(path=folder / f"{number:03}.png")
    return tab.locator(".says").inner_text().strip()


def film(clip: Clip, folder: Path, said: str, target: Path) -> None:
    shots = ["ffmpeg", "-loglevel", "error", "-y", "-framerate", str(clip.per_second), "-i", str(folder / "%03d.png"), "-vf"]
    slow = f"tpad=start_mode=clone:start_duration={FIRST}"
    colors = "split[a][b];[a]palettegen=max_colors=32[p];[b][p]paletteuse=dither=none:diff_mode=rectangle"
    subprocess.run([*shots, f"{slow},{colors}", "-final_delay", str(100 * clip.still), target.with_suffix(".gif")], check=True)
    commented(target.with_suffix(".gif"), said)
    even = "crop=trunc(iw/2)*2:trunc(ih/2)*2,format=yuv420p"  # as all players want it
    smooth = ["-c:v", "libx264", "-crf", "20", "-movflags", "+faststart", "-metadata", f"comment={said}"]
    stop = f"{slow}:stop_mode=clone:stop_duration={clip.still}"
    subprocess.run([*shots, f"{stop},{even}", *smooth, target.with_suffix(".mp4")], check=True)


def commented(gif: Path, words: str) -> None:
    """Adds a comment to the file, in blocks of up to 255 bytes, before the byte that ends it."""
    whole, text = gif.read_bytes(), words.encode()
    blocks = [text[at : at + 255] for at in range(0, len(text), 255)]
    gif.write_bytes(whole[:-1] + b"!\xfe" + b"".join(bytes([len(block)]) + block for block in blocks) + b"\0;")


def main() -> None:
    browser = needed()
    if not shutil.which("ffmpeg"):
        sys.exit("no ffmpeg found: apt-get install ffmpeg, or install it from https://ffmpeg.org")
    with launched(browser) as opened:
        for name, clip in CLIPS.items():
            tab = opened.new_page(
                viewport={"width": WIDTH + 4 * EDGE, "height": 900}, device_scale_factor=FINE, reduced_motion="reduce"
            )
            tab.goto((ROOT / f"_build/html/embed/{clip.figure}.html").as_uri() + "?theme=light")
            tab.wait_for_selector("figure.lives")
            tab.add_style_tag(content=f".stage {{ border: {EDGE}px solid var(--ground); }}")
            with TemporaryDirectory() as folder:
                said = frames(tab, clip, Path(folder))
                film(clip, Path(folder), said, FOLDER / name)
            for file in sorted(FOLDER.glob(f"{name}.*")):
                print(f"{file.name}: {file.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
