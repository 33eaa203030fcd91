"""Numbers from the results, with one row per seed, and the tables of the command line."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from posenc_course._validation import require_number, require_tensor
from posenc_course.experiment._files import diverged, run_of
from posenc_course.experiment._parts import PARTS


def records(results: dict[str, Any], part: str, scheme: str, setting: str = "") -> list[dict[str, Any]]:
    """The runs of one part, scheme and setting, in the order of their seeds. Raises ValueError if there are none."""
    wanted = {"part": part, "scheme": scheme, "setting": setting}
    found = [run for run in results["runs"] if wanted.items() <= run.items()]
    if not found:
        raise ValueError(f"no run of part {part!r}, scheme {scheme!r}, setting {setting!r} in these results: see their 'runs'")
    return sorted(found, key=lambda run: run["seed"])


def scores(
    results: dict[str, Any],
    scheme: str,
    *,
    part: str = "text",
    how: str = "nonoverlapping",
    change: str = "plain",
    setting: str = "",
) -> Tensor:
    """One measurement at one, two, four and eight times the training length, float64 of shape (seeds, 4).

    For text, in nats per byte, `how` is "nonoverlapping", "sliding" or "last", as in `evaluate_text`, and `change` is "plain"
    or one of `CHANGES`. For tasks, `how` is "accuracy" or "loss". Rows are ordered by seed, so subtracting one scheme from
    another compares runs of the same seed. Raises ValueError if there is no such measurement.
    """
    found = records(results, part, scheme, setting)
    try:
        tables = [PARTS[part].tables(run["evaluation"])[change][how] for run in found]
    except KeyError as error:
        raise ValueError(f"scheme {scheme!r} in part {part!r} was not measured with {error}: see its record") from error
    return torch.tensor([[*table.values()] for table in tables], dtype=torch.float64)


def curve(results: dict[str, Any], scheme: str, *, change: str = "plain") -> Tensor:
    """Nats per byte at each position in windows of eight times the training length, float64 of shape (seeds, 8T).

    All curves are means over the same bytes, so if you subtract another scheme's curve, the effect of the bytes themselves
    cancels. Raises ValueError if there is no such measurement.
    """
    found = records(results, "text", scheme)
    try:
        return torch.tensor([run["evaluation"][change]["by_position"] for run in found], dtype=torch.float64)
    except KeyError as error:
        raise ValueError(f"scheme {scheme!r} was not measured with change {change!r}: see its record") from error


def describe(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (n - 1) over the seeds, which are the first dimension of `values`.

    The standard deviation of a single seed is NaN. Raises ValueError for anything but a floating-point tensor with seeds.
    """
    if require_tensor("values", values).ndim == 0 or not values.is_floating_point() or len(values) == 0:
        raise ValueError(
            f"values must be floating-point, with seeds first, got {values.dtype} of shape {tuple(values.shape)}: stack them"
        )
    deviation = values.std(dim=0) if len(values) > 1 else torch.full_like(values[0], torch.nan)
    # Means of results with four decimals often lie on the edge between two roundings, so the sum mustn't depend on its order.
    sums = [math.fsum(of_seeds) for of_seeds in values.reshape(len(values), -1).T.tolist()]
    return values.new_tensor(sums).view(values.shape[1:]) / len(values), deviation


def bits_per_byte(nats: float) -> float:
    """Convert a loss per byte from nats to bits: nats / ln 2. Raises ValueError unless it is a finite number."""
    return require_number("nats", nats, hint="pass a loss") / math.log(2)


def tables(results: dict[str, Any]) -> list[str]:
    """The lines of a report: for every measurement, mean ± standard deviation over seeds.

    Runs that diverged, so that a measurement is NaN or infinite, are named at the end and left out of the means.
    """
    astray = [name for run in results["runs"] if (name := run_of(run).name) and diverged(run)]
    named = ["", f"diverged, and left out above: {', '.join(astray)}"] if astray else []
    return [*_lines(results), *named]


def _lines(results: dict[str, Any]) -> Iterator[str]:
    lengths = None
    whole = results | {"runs": [run for run in results["runs"] if not diverged(run)]}
    groups = dict.fromkeys((run["part"], run["scheme"], run["setting"]) for run in whole["runs"])
    for part in dict.fromkeys(part for part, _, _ in groups):
        members = [group[1:] for group in groups if group[0] == part]
        of = PARTS[part]
        kinds = [(how, "plain", title) for how, title in of.titles.items()]
        changes = dict.fromkeys(
            change for run in results["runs"] if run["part"] == part for change in of.tables(run["evaluation"])
        )
        kinds += [("nonoverlapping", change, f"nats per byte, {change}") for change in changes if change != "plain"]
        for how, change, title in kinds:
            rows = []
            for scheme, setting in members:
                found = records(whole, part, scheme, setting)
                table = of.tables(found[0]["evaluation"]).get(change, {}).get(how)
                if table is None:
                    continue
                lengths = list(table)
                mean, deviation = describe(scores(whole, scheme, part=part, how=how, change=change, setting=setting))
                cells = [f"{m:6.3f} ± {s:.3f}" if s == s else f"{m:6.3f}" for m, s in zip(mean, deviation, strict=True)]
                if how == "nonoverlapping":
                    cells.append(f"{bits_per_byte(mean[-1].item()):6.3f}")
                rows.append((f"{scheme} {setting}".strip(), len(found), cells))
            if rows:
                yield ""
                bits = [f"bits at {lengths[-1]}"] if lengths and how == "nonoverlapping" else []
                yield f"{part}: {title}".ljust(44) + "seeds  " + "".join(f"{name:>15}" for name in [*(lengths or []), *bits])
                for label, seeds, cells in rows:
                    yield f"  {label}".ljust(44) + f"{seeds:5}  " + "".join(f"{cell:>15}" for cell in cells)
