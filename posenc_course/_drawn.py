"""Record the numbers that a figure shows, and compare two such records, so that a test can tell whether a figure has changed.

:func:`posenc_course.plotting.use_style` stores each figure's record next to its picture in the notebook's output.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation
from matplotlib.ticker import LogFormatter, ScalarFormatter
from numpy.typing import ArrayLike, NDArray

TOLERANCE = 2e-5  # relative: rounding to six digits may move two numbers 1e-5 apart, and another processor a little more
TOLERANCE_NEAR_ZERO = 1e-6  # of the array's largest magnitude: a sum that should be 0 is slightly different on each machine
NOTHING_SAID: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # leaves the metadata of an SVG empty
ROUNDING = 1e-12  # absolute: if an array contains nothing but rounding errors, its largest magnitude is one of them


def drawn_data(fig: Figure) -> dict[str, Any]:
    """Return the numbers and words that ``fig`` shows, in a form for JSON, with one entry per axes.

    Numbers are rounded to six significant digits and stored in strings, one for each row of an array, so that a diff
    shows what has changed. An array of more than 20,000 values is stored as the means of blocks, with its original shape.
    """
    given = {name: _array(values) for name, values in getattr(fig, "given", {}).items()}  # by plotting.give
    return {"axes": [_drawn_by_axes(ax) for ax in fig.axes]} | ({"given": given} if given else {})


def drawn_differences(stored: dict[str, Any], drawn: dict[str, Any]) -> list[str]:
    """List the differences between two results of :func:`drawn_data`; the list is empty if they agree.

    Words and sizes must be equal. A number may differ by 0.002 % (:data:`TOLERANCE`), by a millionth of the largest
    magnitude in its array (:data:`TOLERANCE_NEAR_ZERO`) or by 1e-12 (:data:`ROUNDING`).
    """
    return list(_differences(stored, drawn, "figure"))


def svg_with_drawn_data(fig: Figure) -> tuple[str, dict[str, Any]] | None:
    """Format ``fig`` as IPython does, without invisible parts, and with its drawn data in the output's metadata."""
    from IPython.core.pylabtools import print_figure

    svg = print_figure(fig, "svg", metadata=NOTHING_SAID)
    return None if svg is None else (small_svg(svg), {"drawn": drawn_data(fig)})


def small_svg(svg: str) -> str:
    """Remove the invisible parts of matplotlib's ``svg``: its header, comments, line breaks and unnecessary digits."""
    svg = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<!--.*?-->", "", svg, flags=re.DOTALL)
    # Glyphs have coordinates in the thousands and are scaled down to less than a hundredth, so their scales keep all digits.
    svg = re.sub(r"scale\([^)]*\)|base64,[^\"]*|(\d\.\d\d)\d+", lambda found: found[1] or found[0], svg)
    svg = re.sub(r'(?<= d=)"[^"]*"', lambda path: re.sub(r"(\.[1-9])\d+|\.0\d*", r"\1", path[0]), svg)
    return re.sub(r"\s+", " ", svg).replace("> <", "><").strip()


def _drawn_by_axes(ax: Axes) -> dict[str, Any]:
    drawn: dict[str, Any] = {"x": _drawn_by_axis(ax.xaxis), "y": _drawn_by_axis(ax.yaxis)}
    if hasattr(ax, "_colorbar"):  # its gradient contains no more information than its limits
        return drawn
    parts: dict[str, list[dict[str, Any]]] = {
        "lines": [
            ({"label": label} if not (label := str(line.get_label())).startswith("_") else {})
            | _pairs(line.get_xydata())
            for line in ax.get_lines()
        ],
        "points": [_pairs(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)],
        "images": [
            _array(image.get_array()) | {"limits": _row(image.get_clim())}
            for image in (*ax.images, *(c for c in ax.collections if isinstance(c, QuadMesh)))
        ],
        "bars": [
            {"box": _row((*bar.get_xy(), bar.get_width(), bar.get_height()))}
            for bar in ax.patches
            if isinstance(bar, Rectangle)
        ],
        "areas": [
            _pairs(vertices)
            for vertices in (
                *(patch.get_patch_transform().transform(patch.get_path().vertices)
                  for patch in ax.patches if not isinstance(patch, Rectangle)),
                *(path.vertices for c in ax.collections
                  if not isinstance(c, (PathCollection, QuadMesh)) for path in c.get_paths()),
            )
        ],
        "texts": [
            {"text": text.get_text(), "at": _row(text.xy if isinstance(text, Annotation) else text.get_position())}
            for text in ax.texts
        ],
    }  # fmt: skip
    return drawn | {kind: found for kind, found in parts.items() if found}


def _drawn_by_axis(axis: Axis) -> dict[str, Any]:
    drawn: dict[str, Any] = {
        "label": axis.get_label_text(),
        "scale": axis.get_scale(),
        "limits": _row(axis.get_view_interval()),
    }
    formatter = axis.get_major_formatter()
    if not isinstance(formatter, (ScalarFormatter, LogFormatter)):  # given words, not numbers chosen by matplotlib
        drawn["ticks"] = formatter.format_ticks(list(axis.get_majorticklocs()))
    return drawn


def _pairs(points: ArrayLike) -> dict[str, Any]:
    x, y = _filled(points).reshape(-1, 2).T
    return {"x": _array(x), "y": _array(y)}


def _array(values: ArrayLike | None, most: int = 20_000) -> dict[str, Any]:
    array = _filled(values)
    if array.ndim > 2:  # an image in RGB
        array = array.reshape(len(array), -1)
    shape = array.shape
    while array.size > most:
        axis = int(np.argmax(array.shape))
        pairs = np.array_split(array, range(2, array.shape[axis], 2), axis=axis)
        array = np.stack([pair.mean(axis=axis) for pair in pairs], axis=axis)
    return {"shape": list(shape), "values": [_row(row) for row in np.atleast_2d(array)]}


def _differences(stored: Any, drawn: Any, where: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(drawn, dict) and stored.keys() == drawn.keys():
        for key in stored:
            compare = _number_differences if key in ("values", "limits", "box", "at") else _differences
            yield from compare(stored[key], drawn[key], f"{where} > {key}")
    elif isinstance(stored, list) and isinstance(drawn, list) and len(stored) == len(drawn):
        for number, pair in enumerate(zip(stored, drawn, strict=True), start=1):
            yield from _differences(*pair, f"{where} {number}")
    elif stored != drawn:
        yield f"{where}: stored {_brief(stored)}, drawn now {_brief(drawn)}"


def _number_differences(stored: str | list[str], drawn: str | list[str], where: str) -> Iterator[str]:
    old, new = (np.array(" ".join(np.atleast_1d(rows)).split(), dtype=float) for rows in (stored, drawn))
    if old.size != new.size:
        yield f"{where}: stored {old.size} numbers, drawn now {new.size}"
        return
    scale = np.abs(old[np.isfinite(old)]).max(initial=0.0)
    differ = ~np.isclose(new, old, rtol=TOLERANCE, atol=TOLERANCE_NEAR_ZERO * scale + ROUNDING, equal_nan=True)
    if differ.any():
        first = int(differ.argmax())
        yield (
            f"{where}: {differ.sum()} of {old.size} numbers differ, the first is number {first + 1}: "
            f"stored {old[first]:g}, drawn now {new[first]:g}"
        )


def _brief(part: Any) -> str:
    if isinstance(part, dict):
        return f"{{{', '.join(sorted(part))}}}"
    return f"{len(part)} of them" if isinstance(part, list) else repr(part)


def _filled(values: ArrayLike | None) -> NDArray[np.float64]:
    """Return ``values`` as floats, with NaN where a masked array hides them."""
    array = np.ma.array(values, dtype=float)  # type: ignore[var-annotated]
    return np.asarray(array.filled(np.nan))


def _row(values: Iterable[Any]) -> str:
    return " ".join(f"{float(value) + 0.0:.6g}" for value in values)  # + 0.0 turns -0 into 0
