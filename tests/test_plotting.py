"""The book's figures: that they record what they draw, that any change is reported, and that they have one style."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import rgb_to_hsv, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from posenc_course import _drawn, plotting
from posenc_course.experiment.config import ALL_SCHEMES, build_scheme, preset
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
    "line in x": lambda ax, more: ax.plot([0, 1 + more, 2], [1, 4, 9]),
    "points": lambda ax, more: ax.scatter([0, 1], [1, 2 + more]),
    "image": lambda ax, more: ax.imshow([[0, 1], [2, 3 + more]]),
    "image in color": lambda ax, more: ax.imshow([[[0, 0.5, 0.5 + more], [0, 0, 0]]]),
    "image's limits": lambda ax, more: ax.imshow([[0, 1]], vmax=1 + more),
    "mesh": lambda ax, more: ax.pcolormesh([[0, 1], [2, 3 + more]]),
    "bar": lambda ax, more: ax.bar([0, 1, 2], [3, 4 + more, 5]),
    "horizontal bar": lambda ax, more: ax.barh([0, 1, 2], [3, 4 + more, 5]),
    "area": lambda ax, more: ax.fill_between([0, 1], [0, 0], [1, 2 + more]),
    "error bar": lambda ax, more: ax.errorbar([0, 1], [1, 2], [0.1, 0.2 + more]),
    "circle": lambda ax, more: ax.add_patch(Circle((0, 0), 1 + more)),
    "text": lambda ax, more: ax.text(0.5, 0.5 + more, "here"),
    "words": lambda ax, more: ax.text(0.5, 0.5, f"{more:.2f}"),
    "label of a line": lambda ax, more: ax.plot([0, 1], label=f"{more:.2f}"),
    "annotation": lambda ax, more: ax.annotate("here", (0.5, 0.5 + more), (0.1, 0.1)),
    "limits": lambda ax, more: ax.set_xlim(0, 1 + more),
    "axis label": lambda ax, more: ax.set_ylabel(f"{more:.2f}"),
    "scale": lambda ax, more: ax.set_xscale("log" if more else "linear"),
    "tick labels": lambda ax, more: ax.set_xticks([0, 1], ["a", f"{more:.2f}"]),
    "categories": lambda ax, more: ax.bar(["a", f"{more:.2f}"], [1, 2]),
    "one line more": lambda ax, more: [ax.plot([0, 1]) for _ in range(2 if more else 1)],
    "heatmap": lambda ax, more: plotting.heatmap(ax, torch.tensor([[0.0, 0.5 + more]]), x_label="", y_label=""),
    "seeds": lambda ax, more: plotting.plot_seeds(ax, [1, 2], [[1, 2], [3, 4 + more]]),
}


@pytest.mark.parametrize("change", [0.01, -0.01])
@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_a_change_of_what_is_drawn_is_reported(ax: Axes, draw: Callable[[Axes, float], object], change: float) -> None:
    draw(ax, 0.0)
    before, again = drawn(ax), drawn(ax)
    ax.clear()
    draw(ax, change)
    assert _drawn.drawn_differences(before, again) == []
    assert _drawn.drawn_differences(before, drawn(ax))
    assert _drawn.drawn_differences(drawn(ax), before)


# Each plots three elements, or as many as given.
LOSSES: dict[str, Callable[[Axes, int], object]] = {
    "a point of a line": lambda ax, number: ax.plot(range(number), [1.0, 1.0, 1.0][:number]),
    "a line": lambda ax, number: [ax.plot([0, 1], [line, line]) for line in range(number)],
    "a point": lambda ax, number: ax.scatter(range(number), range(number)),
    "a row of an image": lambda ax, number: ax.imshow(np.zeros((number, 3))),
    "a column of an image": lambda ax, number: ax.imshow(np.zeros((3, number))),
    "a bar": lambda ax, number: ax.bar(range(number), [1.0] * number),
    "an area": lambda ax, number: [ax.fill_between([0, 1], 0, 1) for _ in range(number)],
    "a word": lambda ax, number: [ax.text(0, 0, "here") for _ in range(number)],
    "one of many points": lambda ax, number: ax.plot(np.zeros(29_997 + number)),
    "a row of a large image": lambda ax, number: ax.imshow(np.zeros((297 + number, 150))),
}


@pytest.mark.parametrize("draw", LOSSES.values(), ids=LOSSES)
def test_what_is_lost_from_a_figure_is_reported(ax: Axes, draw: Callable[[Axes, int], object]) -> None:
    """Wherever it stood, and if the axes keep their limits; what comes in addition is reported too."""
    records = []
    for number in (3, 2):
        ax.clear()
        draw(ax, number)
        ax.set(xlim=(0, 10), ylim=(0, 10))
        records.append(drawn(ax))
    assert _drawn.drawn_differences(*records)
    assert _drawn.drawn_differences(*reversed(records))


def test_axes_that_are_lost_are_reported() -> None:
    one, two = (json.loads(json.dumps(_drawn.drawn_data(plt.subplots(1, number)[0]))) for number in (1, 2))
    plt.close("all")
    assert _drawn.drawn_differences(two, one) == ["figure > axes: stored 2 of them, drawn now 1 of them"]


@pytest.mark.parametrize("number", [1.0, -1.0, 3e-5, -4e8])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_tolerance_is_the_documented_one(ax: Axes, number: float, sign: int) -> None:
    """0.002 % of a number, a millionth of the largest in its array, 1e-12."""
    documented = " ".join(str(_drawn.drawn_differences.__doc__).split())
    assert "0.002 % (:data:`TOLERANCE`), by a millionth of the largest magnitude" in documented
    assert "or by 1e-12 (:data:`ROUNDING`)" in documented
    assert (_drawn.TOLERANCE, _drawn.TOLERANCE_NEAR_ZERO, _drawn.ROUNDING) == (0.002 / 100, 1e-6, 1e-12)
    ax.set(xlim=(0, 1), ylim=(-1, 1))
    (line,) = ax.plot([number])
    before = drawn(ax)
    for more, reported in ((1.2e-5, False), (4e-5, True), (1e-3, True)):
        line.set_ydata([number * (1 + sign * more)])
        assert bool(_drawn.drawn_differences(before, drawn(ax))) == reported, more
    line.set_data([0, 1], [number, 0])
    before = drawn(ax)
    for more, reported in ((0.5e-6, False), (2e-6, True)):
        line.set_ydata([number, sign * more * number])
        assert bool(_drawn.drawn_differences(before, drawn(ax))) == reported, more
    line.set_data([0], [0.0])
    before = drawn(ax)
    for rounded, reported in ((0.9e-12, False), (1.1e-12, True)):
        line.set_ydata([sign * rounded])
        assert bool(_drawn.drawn_differences(before, drawn(ax))) == reported, rounded


def test_what_is_no_figure_is_named() -> None:
    for wrong in (None, "figure", plt):
        with pytest.raises(ValueError, match=r"fig must be a matplotlib Figure, got .*: pass plt.gcf\(\) for example"):
            _drawn.drawn_data(wrong)  # type: ignore[arg-type]


def test_the_difference_names_place_and_numbers(ax: Axes) -> None:
    ax.set(xlim=(0, 2), ylim=(0, 10))
    (line,) = ax.plot([0, 1, 2], [1, 4, 9])
    before = drawn(ax)
    line.set_ydata([1, 5, 9])
    assert _drawn.drawn_differences(before, drawn(ax)) == [
        "figure > axes 1 > lines 1 > y > values: 1 of 3 numbers differ, the first is number 2: stored 4, drawn now 5"
    ]
    ax.plot([0, 1, 2], [0, 0, 0])
    assert _drawn.drawn_differences(before, drawn(ax)) == ["figure > axes 1 > lines: stored 1 of them, drawn now 2 of them"]
    ax.text(0, 0, "here")
    assert "stored {lines, x, y}, drawn now {lines, texts, x, y}" in _drawn.drawn_differences(before, drawn(ax))[0]


@pytest.mark.parametrize("noise", [5e-6, -5e-6])
def test_rounding_of_another_processor_is_no_difference(ax: Axes, noise: float) -> None:
    values = np.array([0.0, 1e-8, 0.5, 1000.0])
    (line,) = ax.plot(values)
    before = drawn(ax)
    line.set_ydata(values * (1 + noise) + 1e-7)
    assert _drawn.drawn_differences(before, drawn(ax)) == []


def test_gaps_and_infinities_are_kept(ax: Axes) -> None:
    ax.set(xlim=(0, 3), ylim=(0, 3))
    (line,) = ax.plot([1.0, np.nan, 3.0])
    before = drawn(ax)
    assert before["axes"][0]["lines"][0]["y"]["values"] == ["1 nan 3"]
    assert _drawn.drawn_differences(before, drawn(ax)) == []
    line.set_ydata([1.0, 2.0, 3.0])
    assert len(_drawn.drawn_differences(before, drawn(ax))) == 1


def test_large_arrays_are_stored_as_means_of_blocks(ax: Axes) -> None:
    table = np.random.default_rng(0).random((301, 150))
    image = ax.imshow(table)
    stored = drawn(ax)["axes"][0]["images"][0]
    means = np.array([row.split() for row in stored["values"]], dtype=float)
    assert stored["shape"] == [301, 150]
    assert means.shape == (76, 150)  # 301 rows, 151, 76
    np.testing.assert_allclose(means[0], table[:4].mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(means[-1], table[300], rtol=1e-5)
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


def test_labels_that_were_moved_apart_are_as_close_as_can_be_read(ax: Axes) -> None:
    """Labels of lines that end in one point stand 1.15 text heights apart, in the middle of which the lines end."""
    for label in ("one", "two", "three"):
        ax.plot([0, 1], [0, 1], label=label)
    plotting.label_ends(ax)
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    heights = np.array([(box.y0 + box.y1) / 2 for box in boxes])
    np.testing.assert_allclose(np.diff(heights), 1.15 * max(box.height for box in boxes), rtol=0.05)
    assert heights.mean() == pytest.approx(ax.transData.transform((1, 1))[1], abs=2)


def test_label_ends_needs_a_label(ax: Axes) -> None:
    ax.plot([0, 1])
    with pytest.raises(ValueError, match="plot with label="):
        plotting.label_ends(ax)


def test_heatmap_takes_the_diverging_map_around_zero(ax: Axes) -> None:
    plotting.heatmap(ax, [[-1, 0, 1]], x_label="dimension", y_label="position", x_ticks=["a", "b", "c"], y_ticks=["d"])
    (image,) = ax.images
    grey = image.to_rgba(np.array([0.0]))[0, :3]
    assert image.cmap is plotting.DIVERGING
    assert np.ptp(grey) < 0.01
    assert drawn(ax)["axes"][0]["x"]["ticks"] == ["a", "b", "c"]
    plotting.heatmap(ax, [[0, 1]], limits=(0, 1), x_label="key", y_label="query", color_bar=False)
    assert ax.images[-1].cmap is plotting.SEQUENTIAL


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (0.0, 1.0), (0.25, 0.75)])
def test_a_color_bar_names_both_limits_and_their_middle(ax: Axes, limits: tuple[float, float]) -> None:
    low, high = limits
    plotting.heatmap(ax, [[low, high]], limits=limits, x_label="key", y_label="query")
    figure = ax.get_figure()
    assert isinstance(figure, Figure)
    (bar,) = (other for other in figure.axes if other is not ax)
    assert bar.get_yticks().tolist() == [low, (low + high) / 2, high]


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        ([1.0, 2.0], {}, r"table has shape \(2,\)"),
        ([[]], {}, r"table has shape \(1, 0\)"),
        ([[float("nan")]], {}, "table holds NaN or infinity"),
        ([[0.0, 1.5]], {}, r"from 0 to 1.5, outside of limits=\(-1, 1\).*give wider limits"),
        ([[0.0, -1.5]], {}, r"from -1.5 to 0, outside of limits=\(-1, 1\).*give wider limits"),
        ([[0.0]], {"limits": (1, 1)}, "low < high"),
        ([[0.0, 1.0]], {"x_ticks": ["a"]}, "x_ticks has 1 names for 2 cells"),
        ([[0.0, 1.0]], {"y_ticks": ["a", "b"]}, "y_ticks has 2 names for 1 cells"),
    ],
)
def test_heatmap_refuses_what_it_cannot_show(ax: Axes, table: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plotting.heatmap(ax, table, x_label="", y_label="", **options)


def test_seeds_lie_under_their_mean(ax: Axes) -> None:
    runs = [[1.0, 2.0], [3.0, 6.0], [8.0, 7.0]]  # the mean of each column is not its middle value
    plotting.plot_seeds(ax, [5, 7], torch.tensor(runs), **plotting.scheme_style("rope"))
    mean, *seeds = ax.get_lines()
    assert mean.get_label() == "RoPE"
    assert np.asarray(mean.get_ydata()).tolist() == [4.0, 5.0]
    assert [np.asarray(seed.get_ydata()).tolist() for seed in seeds] == runs
    assert all(np.asarray(line.get_xdata()).tolist() == [5, 7] for line in (mean, *seeds))
    with pytest.raises(ValueError, match=r"runs has shape \(2,\)"):
        plotting.plot_seeds(ax, [1, 2], [1, 2])


def test_schemes_can_be_told_apart_and_keep_to_the_palette() -> None:
    looks: list[object] = [(style.color, style.linestyle) for style in plotting.SCHEME_STYLES.values()]
    markers = [style.marker for style in plotting.SCHEME_STYLES.values()]
    alike = [each for each in (*looks, *markers) if (looks + markers).count(each) > 1]
    assert not alike, (
        f"posenc_course/_roster.py: two schemes have {alike[0]}: choose a line, and a marker, that no scheme has yet"
    )
    others: list[Any] = ["ropes", [], None, {}]
    for wrong in others:
        with pytest.raises(ValueError, match=rf"scheme={re.escape(repr(wrong))} is not known: use one of none, normalized"):
            plotting.scheme_style(wrong)


def test_an_unknown_door_is_refused(ax: Axes) -> None:
    for options in ({"open_doors": ["value"]}, {"words": {"value": "nothing"}}):
        with pytest.raises(ValueError, match="no door 'value': use some of embedding, query and key, score"):
            plotting.plot_doors(ax, **options)


@pytest.mark.parametrize("name", ALL_SCHEMES)
def test_a_scheme_has_the_hue_of_its_door(name: str) -> None:
    """It's that of the first method of the base class that one of its layers overrides, itself or with the scheme inside."""
    built = build_scheme(name, preset("quick"))
    layers = [getattr(layer, "scheme", layer) for layer in (built if isinstance(built, list) else [built])]
    doors = zip(plotting.DOORS.values(), ("embed", "rotate", "bias"), strict=True)
    overridden = [
        colors
        for colors, door in doors
        if any(getattr(type(layer), door) is not getattr(PositionScheme, door) for layer in layers)
    ]
    expected = overridden[0].values() if overridden else [plotting.COLORS["black"]]
    assert plotting.SCHEME_STYLES[name].color in expected


def test_doors_have_hues_of_their_own() -> None:
    """No shade is shared by two doors, and what is chosen has the colour of none; each door's hues are neighbours."""
    shades = [color for colors in plotting.DOORS.values() for color in colors.values()]
    assert len({*shades, plotting.COLORS["vermillion"], plotting.COLORS["black"]}) == len(shades) + 2
    hues = {door: [360 * rgb_to_hsv(to_rgb(color))[0] for color in colors.values()] for door, colors in plotting.DOORS.items()}
    spans = sorted((min(values), max(values)) for values in hues.values())
    assert all(high + 30 < low for (_, high), (low, _) in pairwise(spans)), f"hues of doors aren't apart: {hues}"
    chosen = 360 * rgb_to_hsv(to_rgb(plotting.COLORS["vermillion"]))[0]
    assert chosen + 30 < spans[0][0]
    assert spans[-1][1] + 30 < chosen + 360


def test_position_colors_grow_lighter() -> None:
    colors = plotting.position_colors(16)
    assert colors.shape == (16, 4)
    assert (np.diff(colors[:, :3] @ [0.2126, 0.7152, 0.0722]) > 0).all()
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match=r"count=.* positive integer"):
            plotting.position_colors(wrong)  # type: ignore[arg-type]


def test_numbers_given_to_a_living_figure_are_recorded() -> None:
    fig = Figure()
    assert "given" not in _drawn.drawn_data(fig)
    plotting.give(fig, words=torch.eye(2), sizes=[0.5, 1 / 3])
    assert _drawn.drawn_data(fig)["given"] == {
        "words": {"shape": [2, 2], "values": ["1 0", "0 1"]},
        "sizes": {"shape": [2], "values": ["0.5 0.333333"]},
    }


@pytest.mark.parametrize(("wrong", "words"), [(0.5, r"shape \(\)"), (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"), ([np.nan], "NaN")])
def test_what_cannot_be_given_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plotting.give(Figure(), words=wrong)
