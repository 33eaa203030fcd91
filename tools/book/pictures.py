"""Draws the pictures in book/pictures with the package itself: one for each chapter, one above them, and two of the game.

Run it after a change to a chapter's result, the style of the figures or a scheme: `python tools/book/pictures.py`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from posenc_course._drawn import NOTHING_SAID, small_svg
from posenc_course._system import write_whole
from posenc_course.alibi import alibi_slopes
from posenc_course.experiment import curve, load_model, load_results, token_losses
from posenc_course.experiment.corpus import DATA, load_corpus
from posenc_course.experiment.recital import recital
from posenc_course.geometry import wavelengths
from posenc_course.naive import normalized
from posenc_course.plotting import COLORS, DIVERGING, SEQUENTIAL, STYLE, position_colors, scheme_style
from posenc_course.relative import t5_buckets
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import ntk_aware
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from posenc_course.temperature import log_factor

FOLDER = Path(__file__).resolve().parents[2] / "book/pictures"
BLUE, RED = COLORS["blue"], COLORS["vermillion"]
GREY = "#808080"


def order(ax: Axes) -> None:
    """Six words and the same words shuffled: attention's outputs are shuffled in the same way."""
    shuffled = [3, 0, 5, 1, 4, 2]
    for place, word in enumerate(shuffled):
        color = position_colors(6)[word]
        ax.plot([word, place], [1, 0], color=color, linewidth=1.5)
        ax.plot([word, place], [1, 0], "o", color=color, markersize=10)
    ax.set(xlim=(-0.5, 5.5), ylim=(-0.3, 1.3))


def naive(ax: Axes) -> None:
    """Positions scaled to [0, 1]: the longer the text, the shorter the step."""
    for row, length in enumerate((4, 7, 13, 25)):
        places = normalized(torch.arange(length), length)
        ax.plot(places, [-row] * length, "|", color=GREY, markersize=14, markeredgewidth=1.5)
        ax.plot(places[3], -row, "o", color=RED, markersize=8)
    ax.set(xlim=(-0.04, 1.04), ylim=(-3.5, 0.5))


def sinusoidal(ax: Axes) -> None:
    """The table of chapter 3."""
    ax.imshow(sinusoidal_table(range(28), 40).numpy(), cmap=DIVERGING, vmin=-1, vmax=1)


def pendulums(ax: Axes) -> None:
    """Clocks, each slower than the last, at position 7."""
    for at, angle in enumerate((7 * frequencies(12, base=300)).tolist()):
        x, y = 2.4 * (at % 3), -2.4 * (at // 3)
        ax.add_patch(Circle((x, y), 1, fill=False, color=GREY, linewidth=1.5))
        ax.plot([x, x + 0.9 * np.sin(angle)], [y, y + 0.9 * np.cos(angle)], color=BLUE, linewidth=3)
    ax.set(xlim=(-1.2, 6), ylim=(-3.5, 1.1), aspect="equal")


def norm(ax: Axes) -> None:
    """A word, and where the positions move it: always by the same distance."""
    ring = sinusoidal_table(range(12), 2)
    for position, row in enumerate(ring.tolist()):
        end = (2.2 + row[0], 1.3 + row[1])
        ax.annotate("", end, (2.2, 1.3), arrowprops={"arrowstyle": "-|>", "color": position_colors(12)[position], "shrinkB": 0})
    ax.annotate("", (2.2, 1.3), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 2.5, "shrinkA": 0})
    ax.set(xlim=(-0.3, 3.9), ylim=(-0.3, 2.5), aspect="equal")


def shift(ax: Axes) -> None:
    """Positions of one pair on its circle: a shift by two is the same rotation everywhere."""
    omega = 0.45
    angles = omega * np.arange(14)
    ax.add_patch(Circle((0, 0), 1, fill=False, color=GREY, linewidth=1))
    ax.scatter(np.sin(angles), np.cos(angles), color=position_colors(14), s=45, zorder=3)
    for start in (0, 4, 8):
        a, b = angles[start], angles[start + 2]
        way = {"arrowstyle": "-|>", "color": RED, "connectionstyle": "arc3,rad=-0.25", "linewidth": 2}
        ax.annotate("", (1.28 * np.sin(b), 1.28 * np.cos(b)), (1.28 * np.sin(a), 1.28 * np.cos(a)), arrowprops=way)
    ax.set(xlim=(-1.6, 1.6), ylim=(-1.5, 1.5), aspect="equal")


def base(ax: Axes) -> None:
    """Wavelengths of the pairs, and a text of 512 tokens: pairs with longer wavelengths hardly rotate."""
    waves = wavelengths(64)
    short = waves <= 512
    pairs = np.arange(len(waves))
    ax.axhline(512, color=RED, linewidth=1.5)
    ax.plot(pairs[short], waves[short], "o", color=BLUE, markersize=5)
    ax.plot(pairs[~short], waves[~short], "o", color=GREY, markersize=5)
    ax.set(yscale="log")
    ax.minorticks_off()


def learned(ax: Axes) -> None:
    """How similar the 64 trained rows are: neighbours are alike, although nothing in training asks for it directly."""
    rows = torch.nn.functional.normalize(load_model("learned", 0).state_dict()["scheme.table"][:64], dim=1)
    ax.imshow((rows @ rows.T).numpy(), cmap=DIVERGING, vmin=-1, vmax=1)


def relative(ax: Axes) -> None:
    """T5's buckets by distance: narrow for near keys, wide for distant ones."""
    distances = np.arange(140)
    ax.step(distances, t5_buckets(torch.from_numpy(distances), causal=True), color=scheme_style("t5")["color"], where="mid")


def rope(ax: Axes) -> None:
    """Query and key rotate, and the angle between them stays the same."""
    for at, start in enumerate((0.2, 1.9)):
        for angle, length, color in ((start, 1.0, RED), (start + 0.7, 0.75, BLUE)):
            end = (2 * at + length * np.cos(angle), length * np.sin(angle))
            ax.annotate("", end, (2 * at, 0), arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 2.5, "shrinkA": 0})
        arc = np.linspace(start, start + 0.7, 20)
        ax.plot(2 * at + 0.4 * np.cos(arc), 0.4 * np.sin(arc), color=GREY)
    ax.set(xlim=(-0.15, 2.15), ylim=(-0.15, 1.15), aspect="equal")


def alibi(ax: Axes) -> None:
    """Eight heads, eight slopes."""
    for slope, color in zip(alibi_slopes(8).tolist(), position_colors(8), strict=True):
        ax.plot([0, 40], [0, -40 * slope], color=color)
    ax.set(ylim=(-14, 1))


def above_alibi(results: dict[str, Any], scheme: str, edges: NDArray[np.int64]) -> torch.Tensor:
    """How much worse a scheme is than ALiBi's mean between these edges of positions: (seeds, intervals)."""
    losses = curve(results, scheme) - curve(results, "alibi").mean(dim=0)
    return torch.stack([losses[:, low:high].mean(dim=1) for low, high in pairwise(edges)], dim=1)


def lengths(ax: Axes) -> None:
    """The loss of three trained models by position: one of them doesn't break beyond the training length."""
    results = load_results("full")
    edges = np.unique(np.geomspace(8, 512, 26).astype(int))
    ax.axvline(64, color=GREY, linewidth=1)
    for scheme in ("sinusoidal", "rope", "alibi"):
        means = above_alibi(results, scheme, edges)
        ax.plot(edges[1:], means.mean(dim=0), color=scheme_style(scheme)["color"], linewidth=2.5)
    ax.set(xscale="log")
    ax.minorticks_off()


def stretching(ax: Axes) -> None:
    """The loss of a trained RoPE model by position, as trained and with stretched frequencies."""
    model = load_model("rope", 0)
    text = load_corpus().validation
    starts = torch.arange(16) * (len(text) // 16)
    windows = text[starts[:, None] + torch.arange(257)]
    omega = frequencies(16)
    for speeds, color, line in ((omega, "green", "-"), (ntk_aware(omega, 8), "forest", "--")):
        for part in [*model.modules()]:
            if hasattr(part, "scheme"):
                part.scheme = RotaryPositions(speeds)
        losses = token_losses(model, windows).mean(dim=0).unfold(0, 24, 1).mean(dim=-1)
        ax.plot(np.arange(len(losses)) + 12, losses, line, color=COLORS[color], linewidth=2.5)
    ax.axvline(64, color=GREY, linewidth=1)


def layers(ax: Axes) -> None:
    """The windows of eleven tokens, each ending at its token; two of them, and the tokens that are in both."""
    width, one, other = 8, 5, 9
    for row in range(11):
        color = {one: BLUE, other: RED}.get(row, "0.8")
        ax.plot([row - width + 0.6, row + 0.4], [-row, -row], color=color, linewidth=5, solid_capstyle="butt")
    ax.fill_between([other - width + 0.6, one + 0.4], -other, -one, color=GREY, alpha=0.3, linewidth=0)
    ax.plot([one, other], [-one, -other], "o", color="black", markersize=5)
    ax.set(xlim=(-7.6, 10.6), ylim=(-10.6, 0.6))


def contextual(ax: Axes) -> None:
    """The shell game with three cups: five swaps, and the ball's way."""
    ways = [[0], [1], [2]]  # where each cup is after each swap
    for a, b in ((0, 1), (1, 2), (0, 1), (0, 2), (1, 2)):
        for way in ways:
            way.append({a: b, b: a}.get(way[-1], way[-1]))
    for way, color, width in zip(reversed(ways), (GREY, GREY, RED), (1.5, 1.5, 3), strict=True):
        ax.plot([-place for place in way], "o-", color=color, linewidth=width, markersize=6 + width)
    ax.set(xlim=(-0.3, 5.3), ylim=(-2.4, 0.4))


def reach(ax: Axes) -> None:
    """The share of a key whose score leads by ln 64, 8 and 12, in longer and longer texts; dotted, with scores times ln n."""
    keys = np.geomspace(16, 2**20, 100)
    for lead, color in zip((np.log(64), 8, 12), position_colors(3), strict=True):
        ax.plot(keys, 1 / (1 + (keys - 1) * np.exp(-lead)), color=color, linewidth=3)
    times = log_factor(keys.astype(int) - 1, 64).numpy()
    ax.plot(keys, 1 / (1 + (keys - 1) * np.exp(-np.log(64) * times)), color=RED, linestyle=":", linewidth=3)
    ax.set(xscale="log", ylim=(-0.05, 1.1))


def choosing(ax: Axes) -> None:
    """A decoder without positions can count: the mean over what it sees falls with every token."""
    places = np.arange(16)
    ax.vlines(places, 0, 1 / (1 + places), color=position_colors(16), linewidth=5)
    ax.set(ylim=(0, 1.1))


def released(ax: Axes) -> None:
    """What is left of a released model's cliff if one of its 32 pairs has half its speed."""
    stored = {
        name: json.loads((DATA / f"released/{name}.json").read_text(encoding="utf-8"))["runs"] for name in ("cliff", "scan")
    }

    def late(run: dict[str, Any], first: int) -> float:
        """The mean loss of tokens 11,264 to 12,287, if the text begins at token `first`."""
        begin, end = ((token - first) // run["width"] for token in (11_264, 12_288))
        return float(np.mean([losses[begin:end] for losses in run["losses"].values()]))

    shorter = next(late(run, 6144) for run in stored["cliff"] if run["setting"]["from"] == 6144)
    runs = [run for run in stored["scan"] if len(run["setting"]["pairs"]) == 1 and run["setting"]["speed"] == 0.5]
    left = {run["setting"]["pairs"][0]: late(run, 0) - shorter for run in runs}
    ax.bar([*left], [*left.values()], color=[RED if pair in (22, 23) else "0.75" for pair in left])


def heads(ax: Axes) -> None:
    """In each layer of a released model, how much the head that looks one token back most does so; red: more than half."""
    stored = json.loads((DATA / "released/heads.json").read_text(encoding="utf-8"))["runs"]
    most = [max(head["distances"][1] for head in run["heads"]) for run in stored if "layer" in run["setting"]]
    ax.bar(range(len(most)), most, color=[RED if one > 500 else "0.75" for one in most])


def peak(ax: Axes) -> None:
    """With RoPE, the score of a query and the key that is made for it at distance 300, by the distance between the two."""
    distances = np.arange(401)
    score = np.cos(np.outer(distances - 300, frequencies(64).numpy())).mean(axis=1)
    ax.plot(distances, score, color=BLUE)
    ax.plot(300, 1, "o", color=RED, markersize=8)


def first_token(ax: Axes) -> None:
    """How much attention each head of a released model has on the first token: a row for each head, a column for each layer."""
    stored = json.loads((DATA / "released/heads.json").read_text(encoding="utf-8"))["runs"]
    layers = [[head["first"] for head in run["heads"]] for run in stored if "layer" in run["setting"]]
    ax.imshow(np.transpose(layers), cmap=SEQUENTIAL, vmin=0, vmax=1000, aspect="auto")


def loses_its_place(ax: Axes) -> None:
    """The picture above the others: what four models write after being trained to count to twenty, on 64 letters at a time."""
    line = 64  # letters
    written = json.loads((DATA / "recite.json").read_text(encoding="utf-8"))["written"]
    right = bytes(recital(2 * line).tolist()).decode()
    letters: Any = {"family": "monospace", "fontsize": 10.2, "va": "center"}
    for row, scheme in enumerate(("sinusoidal", "learned", "rope", "alibi")):
        ax.axhspan(-3 * row - 0.45, -3 * row + 0.55, color="0.93", linewidth=0)
        ax.text(0, -3 * row + 1, scheme_style(scheme)["label"], fontsize=11, va="center", color=GREY)
        text = written[scheme][: 2 * line]
        good = next((place for place, (one, other) in enumerate(zip(text, right, strict=True)) if one != other), len(text))
        for begin, end, color in ((0, good, "black"), (good, len(text), RED)):
            for first in (0, line):
                low, high = max(begin, first), min(end, first + line)
                if low < high:
                    ax.text(low - first, -3 * row - first / line, text[low:high], color=color, **letters)
    ax.set(xlim=(0, line), ylim=(-10.6, 1.6))
    ax.set_axis_off()


CHAPTERS = [order, naive, sinusoidal, pendulums, norm, shift, base, learned, relative, rope]
CHAPTERS += [alibi, lengths, stretching, layers, contextual, reach, choosing, released, heads]


def picture(of: Callable[[Axes], None]) -> Figure:
    """A picture without words: 240 by 144 pixels."""
    fig, ax = plt.subplots(figsize=(2.5, 1.5))
    of(ax)
    ax.set_axis_off()
    return fig


def svg(fig: Figure) -> str:
    text = io.StringIO()
    fig.savefig(text, format="svg", metadata=NOTHING_SAID)
    plt.close(fig)
    return small_svg(text.getvalue()) + "\n"


def draw() -> dict[str, str]:
    """Each file's name and its contents."""
    with mpl.rc_context(STYLE):
        fig, ax = plt.subplots(figsize=(5.6, 3.2))
        fig.set_layout_engine("none")
        ax.set_position((0.01, 0, 0.98, 1))  # as wide as 64 letters are
        loses_its_place(ax)
        named = {"peak": peak, "first_token": first_token} | {
            f"{number:02d}": of for number, of in enumerate(CHAPTERS, start=1)
        }
        return {"loses_its_place.svg": svg(fig)} | {f"{name}.svg": svg(picture(of)) for name, of in named.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in draw().items():
        write_whole(FOLDER / name, text.encode())
        print(f"{name}: {len(text) / 1000:.0f} kB")
