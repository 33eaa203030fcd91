"""The common style of the book's figures.

Call :func:`use_style` once, in a chapter's first cell, and then plot with matplotlib as usual.
"""

import sys
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator
from matplotlib.typing import ColorType
from numpy.typing import ArrayLike, NDArray

from posenc_course._drawn import svg_with_drawn_data
from posenc_course._roster import ROSTER, Scheme

# The palette of Okabe and Ito (2008), whose colours are distinguishable with every common kind of colour blindness. Its yellow
# is left out because it is hard to see on white. Vermillion is what a reader has chosen, or should look at; it is no scheme's.
OKABE_ITO: dict[str, str] = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
    "sky": "#56B4E9",
    "black": "#000000",
}
# The hue of a scheme is that of the first door through which position enters, and it's black if there's none. Schemes at the
# same door differ in lightness and dashes, which every eye can tell apart.
DOORS: dict[str, dict[str, str]] = {
    "embedding": {
        "blue": OKABE_ITO["blue"],
        "navy": "#232B71",
        "azure": "#3F93DD",
        "slate": "#3F5A70",
        "periwinkle": "#6672C4",
    },
    "query and key": {"green": OKABE_ITO["green"], "forest": "#15603F", "leaf": "#5F9C3A"},
    "score": {"raspberry": "#B52C6C", "wine": "#6B1F45", "rose": "#C0789F", "mauve": "#8F5A86"},
}
COLORS: dict[str, str] = {name: color for colors in (OKABE_ITO, *DOORS.values()) for name, color in colors.items()}
GREY = "#595959"


# How each scheme looks in every chapter: no other has the same colour and line style, or the same marker.
SCHEME_STYLES: dict[str, Scheme] = {name: row._replace(color=COLORS[row.color]) for name, row in ROSTER.items()}

# Blue below zero, grey at zero and vermillion above, with the strongest colours at the ends, because the eye takes the
# strongest colour for the largest value. Values without a sign, and positions, get cividis, which is perceptually uniform.
DIVERGING: Colormap = LinearSegmentedColormap.from_list("posenc_diverging", [COLORS["blue"], "#DADADA", COLORS["vermillion"]])
SEQUENTIAL: Colormap = mpl.colormaps["cividis"]

# In a figure five inches wide, 12 points are as large as the page's text at a width of 32rem, and still 11 pixels on a phone.
STYLE: Any = {
    "figure.figsize": (5.2, 3.2),
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.pad_inches": 0.12,
    "font.size": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.prop_cycle": cycler(color=list(OKABE_ITO.values())),
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "image.interpolation": "none",  # shows the table's own cells, which stay sharp at any size
    "image.aspect": "auto",
    "path.simplify_threshold": 0.5,  # in pixels
    "svg.hashsalt": "posenc_course",  # the same figure always gives the same SVG text
    "image.cmap": SEQUENTIAL.name,
}


def use_style() -> None:
    """Set the book's style; in a notebook, also store the numbers that each figure shows."""
    mpl.rcParams.update(STYLE)
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        # A backend registers its own PNG formatter when it is first used, so we use it now and then remove that formatter.
        plt.switch_backend(mpl.get_backend())
        formatters = shell.display_formatter.formatters
        formatters["image/png"].pop(Figure, None)
        formatters["image/svg+xml"].for_type(Figure, svg_with_drawn_data)


def scheme_style(scheme: str) -> dict[str, Any]:
    """Return the keyword arguments for ``ax.plot``, as in ``ax.plot(x, y, **scheme_style("rope"))``.

    Raises ValueError for a name that is not in :data:`SCHEME_STYLES`.
    """
    if not isinstance(scheme, str) or scheme not in SCHEME_STYLES:
        raise ValueError(f"scheme={scheme!r} is not known: use one of {', '.join(SCHEME_STYLES)}")
    return {name: value for name, value in SCHEME_STYLES[scheme]._asdict().items() if name != "build"}


def position_colors(count: int) -> NDArray[np.float64]:
    """Return one colour for each of ``count`` positions, from dark to light and perceptually uniform, shape (count, 4)."""
    return np.asarray(SEQUENTIAL(np.linspace(0.0, 0.85, count)))  # the yellow end is too light on white


def give(fig: Figure, **arrays: ArrayLike | torch.Tensor) -> None:
    """Store arrays with ``fig``, for the version of the figure that readers can move on the site.

    Give arrays of one or two dimensions, under names of your choice. Raises ValueError for values that are not finite.
    """
    fig.given = {name: _numbers(values, name) for name, values in arrays.items()}  # type: ignore[attr-defined]


def heatmap(
    ax: Axes,
    table: ArrayLike | torch.Tensor,
    *,
    x_label: str,
    y_label: str,
    value_label: str = "",
    limits: tuple[float, float] = (-1.0, 1.0),
    x_ticks: Sequence[str] | None = None,
    y_ticks: Sequence[str] | None = None,
    color_bar: bool = True,
) -> None:
    """Plot ``table`` (rows, columns) as colours, with row 0 at the top.

    Limits (-v, v) select the diverging colour map, with grey at zero, and other limits select the sequential one.
    ``x_ticks`` and ``y_ticks`` name the columns and the rows (for example, by their tokens).
    Raises ValueError for a table that is not a finite matrix, for values outside the limits, and for a wrong number of names.
    """
    values = _numbers(table, "table")
    low, high = (float(limit) for limit in limits)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(f"table has shape {values.shape} but must be (rows, columns): index or reshape it first")
    slack = 1e-6 * (high - low)
    if values.min() < low - slack or values.max() > high + slack:
        raise ValueError(
            f"table holds values from {values.min():.4g} to {values.max():.4g}, outside of "
            f"limits=({low:g}, {high:g}), which would hide them: give wider limits"
        )
    image = ax.imshow(values, cmap=DIVERGING if low == -high else SEQUENTIAL, vmin=low, vmax=high)
    ax.set(xlabel=x_label, ylabel=y_label)
    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(locator := axis.get_major_locator(), MaxNLocator):
            locator.set_params(integer=True)  # there is no row 2.5
    if x_ticks is not None:
        ax.set_xticks(range(values.shape[1]), list(x_ticks))
    if y_ticks is not None:
        ax.set_yticks(range(values.shape[0]), list(y_ticks))
    ax.spines[:].set_visible(False)
    if color_bar:
        bar = ax.figure.colorbar(image, ax=ax, label=value_label, ticks=[low, (low + high) / 2, high])
        bar.outline.set_visible(False)


def plot_doors(ax: Axes, open_doors: Collection[str] = tuple(DOORS), words: Mapping[str, str] | None = None) -> None:
    """Plot a token's way to a score, with the three doors through which position enters: those in ``open_doors`` in their hues.

    ``words`` stand below the doors, and say what happens there; if they are given, the way has its own words, too.
    """
    way: Any = {"color": GREY, "linewidth": 1.5, "solid_capstyle": "round", "zorder": 1}
    arrow: Any = {"arrowstyle": "-|>", "color": GREY, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    for side in (-1, 1):  # the query and the key part behind the first door, and meet before the third
        ax.plot([0, 2.6, 3.4, 6.2, 7.2], [0, 0, side, side, 0], **way)
    ax.annotate("", (10.2, 0), (7.2, 0), arrowprops=arrow, zorder=1)
    for x in (0, 7.2):
        ax.add_patch(Circle((x, 0), 0.18, color=GREY))
    for door, at, half in zip(DOORS, (1.5, 4.8, 8.6), (0.8, 1.6, 0.8), strict=True):
        color = next(iter(DOORS[door].values())) if door in open_doors else None
        look: Any = {"facecolor": color or "white", "edgecolor": color or GREY, "linewidth": 1.5, "zorder": 2}
        ax.add_patch(Rectangle((at - 0.35, -half), 0.7, 2 * half, **look))
        if words is not None:
            ax.text(at, 1.9, door, color=label_color(color or GREY), weight="bold", ha="center", va="bottom")
            ax.text(at, -1.9, words.get(door, ""), ha="center", va="top", fontsize=11)
    if words is not None:
        for x, y, word in ((0, 0.35, "token"), (3.6, 1.15, "query"), (3.6, -1.2, "key"), (10.2, 0.35, "attention")):
            ax.text(x, y, word, color=GREY, fontsize=10, ha="center", va="top" if y < 0 else "bottom")
    ax.set(xlim=(-0.4, 10.4), ylim=(-1.8, 1.8), aspect="equal")
    ax.set_axis_off()


def plot_seeds(ax: Axes, x: ArrayLike | torch.Tensor, runs: ArrayLike | torch.Tensor, **style: Any) -> None:
    """Plot the mean of ``runs`` (seeds, points) over ``x`` (points,), with a faint line for every seed behind it.

    ``style`` is passed to ``ax.plot``; give a colour, for example with ``**scheme_style("sinusoidal")``.
    Raises ValueError for shapes that don't fit and for values that are not finite.
    """
    points, curves = _numbers(x, "x"), _numbers(runs, "runs")
    (mean,) = ax.plot(points, curves.mean(axis=0), **style)
    marker = "." if len(points) <= 100 else ""  # more markers would run into each other and take up half of the file
    for curve in curves:
        ax.plot(points, curve, color=mean.get_color(), alpha=0.4, linewidth=0.8, marker=marker, markersize=3, zorder=1.9)


def label_color(color: ColorType) -> str:
    """Return the colour for words that name something of this ``color``, dark enough to be read on white."""
    red, green, blue = (0.6 * part for part in to_rgb(color))
    return to_hex((red, green, blue))


def label_ends(ax: Axes) -> None:
    """Write each line's label at its right end, instead of a legend; call this after everything else is plotted.

    Labels that would overlap are moved apart. Raises ValueError if no line has a label.
    """
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    if not lines:
        raise ValueError("no line of these axes has a label: plot with label=... first, then call label_ends")
    texts: list[Annotation] = []
    for line in lines:
        points = np.asarray(line.get_xydata(), dtype=float)
        points = points[np.isfinite(points).all(axis=1)]
        end = points[points[:, 0].argmax()]
        texts.append(
            ax.annotate(str(line.get_label()), (end[0], end[1]), (6, 0), color=label_color(line.get_color()),
                        textcoords="offset points", va="center", annotation_clip=False)
        )  # fmt: skip
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # the layout makes room for the labels before their distances are measured
    ends = np.array([ax.transData.transform(text.xy)[1] for text in texts])
    places = _apart(ends, gap=1.15 * max(text.get_window_extent().height for text in texts))
    for text, shift in zip(texts, (places - ends) * 72 / figure.dpi, strict=True):
        text.xyann = (6, shift)


def _apart(places: NDArray[np.float64], gap: float) -> NDArray[np.float64]:
    """Move ``places`` apart, each as little as possible, until neighbours are at least ``gap`` apart."""
    moved = places.copy()
    order = np.argsort(places, kind="stable")
    for _ in range(100):
        for low, high in pairwise(order):
            overlap = gap - (moved[high] - moved[low])
            if overlap > 0:
                moved[low], moved[high] = moved[low] - overlap / 2, moved[high] + overlap / 2
    return moved


def _numbers(values: ArrayLike | torch.Tensor, name: str) -> NDArray[np.float64]:
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu().double().numpy()
    array = np.asarray(values, dtype=float)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity, which a figure cannot show: give finite numbers")
    return array
