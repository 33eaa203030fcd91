"""The book's figures: that they record what they draw, that any change is reported, and that they have one style."""

import json
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc_course import _drawn, plotting
from posenc_course.experiment.config import ALL_SCHEMES, preset
from posenc_course.schemes import PositionScheme


@pytest.fixture
def ax() -> Iterator[Axes]:
    with mpl.rc_context():
        mpl.use("agg")
        plotting.use_style()
        _, axes = plt.subplots()
        yield axes
        plt.close("all")


def drawn(ax: Axes) -> dict[str, Any]:
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    return json.loads(json.dumps(_drawn.drawn_data(figure)))  # as a notebook stores it


# Each plots something, larger by `more` in one number.
DRAWINGS: dict[str, Callable[[Axes, Any], object]] = {
    "line": lambda ax, more: ax.plot([0, 1, 2], [1, 4 + more, 9]),
    "points": lambda ax, more: ax.scatter([0, 1], [1, 2 + more]),
    "image": lambda ax, more: ax.imshow([[0, 1], [2, 3 + more]]),
    "image's limits": lambda ax, more: ax.imshow([[0, 1]], vmax=1 + more),
    "mesh": lambda ax, more: ax.pcolormesh([[0, 1], [2, 3 + more]]),
    "bar": lambda ax, more: ax.bar([0, 1, 2], [3, 4 + more, 5]),
    "area": lambda ax, more: ax.fill_between([0, 1], [0, 0], [1, 2 + more]),
    "text": lambda ax, more: ax.text(0.5, 0.5 + more, "here"),
    "words": lambda ax, more: ax.text(0.5, 0.5, f"{more:.2f}"),
    "label of a line": lambda ax, more: ax.plot([0, 1], label=f"{more:.2f}"),
    "limits": lambda ax, more: ax.set_xlim(0, 1 + more),
    "axis label": lambda ax, more: ax.set_ylabel(f"{more:.2f}"),
    "scale": lambda ax, more: ax.set_xscale("log" if more else "linear"),
    "tick labels": lambda ax, more: ax.set_xticks([0, 1], ["a", f"{more:.2f}"]),
    "one line more": lambda ax, more: [ax.plot([0, 1]) for _ in range(2 if more else 1)],
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_change_of_what_is_drawn_is_reported(ax: Axes, draw: Callable[[Axes, float], object]) -> None:
    draw(ax, 0.0)
    before, again = drawn(ax), drawn(ax)
    ax.clear()
    draw(ax, 0.01)
    assert _drawn.drawn_differences(before, again) == []
    assert _drawn.drawn_differences(before, drawn(ax))
    assert _drawn.drawn_differences(drawn(ax), before)


@pytest.mark.parametrize("number", [1.0, 3e-5, -4e8])
def test_tolerance_is_the_documented_one(ax: Axes, number: float) -> None:
    """0.002 % of a number, a millionth of the largest in its array, 1e-12."""
    ax.set(xlim=(0, 1), ylim=(-1, 1))
    (line,) = ax.plot([number])
    for stored, now, reported in (
        ([number], [number * (1 + 1.2e-5)], False),
        ([number], [number * (1 + 4e-5)], True),
        ([number, 0], [number, 0.5e-6 * number], False),
        ([number, 0], [number, 2e-6 * number], True),
        ([0.0], [0.9e-12], False),
        ([0.0], [1.1e-12], True),
    ):
        line.set_data(range(len(stored)), stored)
        before = drawn(ax)
        line.set_ydata(now)
        assert bool(_drawn.drawn_differences(before, drawn(ax))) == reported, now


def test_gaps_are_kept(ax: Axes) -> None:
    ax.plot([1.0, np.nan, 3.0])
    before = drawn(ax)
    assert before["axes"][0]["lines"][0]["y"]["values"] == ["1 nan 3"]
    assert _drawn.drawn_differences(before, drawn(ax)) == []


def test_large_arrays_are_stored_as_means_of_blocks(ax: Axes) -> None:
    table = np.random.default_rng(0).random((301, 150))
    image = ax.imshow(table)
    stored = drawn(ax)["axes"][0]["images"][0]
    assert stored["shape"] == [301, 150]
    assert len(stored["values"]) == 76  # 301 rows, 151, 76
    np.testing.assert_allclose(np.array(stored["values"][0].split(), dtype=float), table[:4].mean(axis=0), rtol=1e-5)
    before = drawn(ax)
    image.set_data(np.where(np.arange(150) == 7, table + 0.1, table))
    assert _drawn.drawn_differences(before, drawn(ax))


def test_labels_stand_at_the_ends_and_apart(ax: Axes) -> None:
    for shift in (0.0, 0.01, 0.02, 5.0):
        ax.plot([0, 1, 2], [1, 2, 3 + shift], label=f"plus {shift}")
    ax.plot([0, 1], [0, 1])  # without a label
    plotting.label_ends(ax)
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == ["plus 0.0", "plus 0.01", "plus 0.02", "plus 5.0"]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(box.x0 > ax.transData.transform((2, 0))[0] and box.x1 < figure.bbox.x1 for box in boxes)


def test_heatmap_diverges_around_zero(ax: Axes) -> None:
    plotting.heatmap(ax, [[-1, 0, 1]], x_label="dimension", y_label="position", x_ticks=["a", "b", "c"], y_ticks=["d"])
    (image,) = ax.images
    grey = image.to_rgba(np.array([0.0]))[0, :3]
    assert image.cmap is plotting.DIVERGING
    assert np.ptp(grey) < 0.01
    assert drawn(ax)["axes"][0]["x"]["ticks"] == ["a", "b", "c"]
    plotting.heatmap(ax, [[0, 1]], limits=(0, 1), x_label="key", y_label="query", color_bar=False)
    assert ax.images[-1].cmap is plotting.SEQUENTIAL


def test_seeds_lie_under_their_mean(ax: Axes) -> None:
    runs = [[1.0, 2.0], [3.0, 6.0], [8.0, 7.0]]  # the mean of each column is not its middle value
    plotting.plot_seeds(ax, [5, 7], torch.tensor(runs), **plotting.scheme_style("rope"))
    mean, *seeds = ax.get_lines()
    assert mean.get_label() == "RoPE"
    assert np.asarray(mean.get_ydata()).tolist() == [4.0, 5.0]
    assert [np.asarray(seed.get_ydata()).tolist() for seed in seeds] == runs
    assert all(np.asarray(line.get_xdata()).tolist() == [5, 7] for line in (mean, *seeds))


def test_schemes_can_be_told_apart() -> None:
    looks: list[object] = [(style.color, style.linestyle) for style in plotting.SCHEME_STYLES.values()]
    markers = [style.marker for style in plotting.SCHEME_STYLES.values()]
    alike = [each for each in (*looks, *markers) if (looks + markers).count(each) > 1]
    assert not alike, (
        f"posenc_course/_roster.py: two schemes have {alike[0]}: choose a line, and a marker, that no scheme has yet"
    )
    with pytest.raises(ValueError, match=r"scheme='ropes' is not known: use one of none, normalized"):
        plotting.scheme_style("ropes")


@pytest.mark.parametrize("name", ALL_SCHEMES)
def test_scheme_has_the_hue_of_its_door(name: str) -> None:
    """It's that of the first method of the base class that one of its layers overrides, itself or with the scheme inside."""
    built = ALL_SCHEMES[name](preset("quick"))
    layers = [getattr(layer, "scheme", layer) for layer in (built if isinstance(built, list) else [built])]
    doors = zip(plotting.DOORS.values(), ("embed", "rotate", "bias"), strict=True)
    overridden = [
        colors
        for colors, door in doors
        if any(getattr(type(layer), door) is not getattr(PositionScheme, door) for layer in layers)
    ]
    expected = overridden[0].values() if overridden else [plotting.COLORS["black"]]
    assert plotting.SCHEME_STYLES[name].color in expected


def test_position_colors_grow_lighter() -> None:
    colors = plotting.position_colors(16)
    assert colors.shape == (16, 4)
    assert (np.diff(colors[:, :3] @ [0.2126, 0.7152, 0.0722]) > 0).all()


def test_numbers_given_to_a_living_figure_are_recorded() -> None:
    fig = Figure()
    assert "given" not in _drawn.drawn_data(fig)
    plotting.give(fig, words=torch.eye(2), sizes=[0.5, 1 / 3])
    assert _drawn.drawn_data(fig)["given"] == {
        "words": {"shape": [2, 2], "values": ["1 0", "0 1"]},
        "sizes": {"shape": [2], "values": ["0.5 0.333333"]},
    }
