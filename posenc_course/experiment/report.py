"""Numbers from the results, with one row per seed, and the tables of the command line."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from posenc_course._validation import checked
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
    tables = _measured(results, part, scheme, setting, change, how)
    return torch.tensor([[*table.values()] for table in tables], dtype=torch.float64)


def curve(results: dict[str, Any], scheme: str, *, change: str = "plain") -> Tensor:
    """Nats per byte at each position in windows of eight times the training length, float64 of shape (seeds, 8T).

    All curves are means over the same bytes, so if you subtract another scheme's curve, the effect of the bytes themselves
    cancels. Raises ValueError if there is no such measurement.
    """
    return torch.tensor(_measured(results, "text", scheme, "", change, "by_position"), dtype=torch.float64)


def _measured(results: dict[str, Any], part: str, scheme: str, setting: str, change: str, how: str) -> list[Any]:
    """One measurement of each seed."""
    try:
        return [PARTS[part].tables(run["evaluation"])[change][how] for run in records(results, part, scheme, setting)]
    except KeyError as error:
        raise ValueError(f"scheme {scheme!r} in part {part!r} was not measured with {error}: see its record") from error


@checked(values="float ... n: stack the numbers of all seeds along the first dimension")
def describe(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (n - 1) over the seeds, which are the first dimension of `values`.

    The standard deviation of a single seed is NaN. Raises ValueError for anything but a floating-point tensor with seeds.
    """
    deviation = values.std(dim=0) if len(values) > 1 else torch.full_like(values[0], torch.nan)
    # Means of results with four decimals often lie on the edge between two roundings, so the sum mustn't depend on its order.
    sums = [math.fsum(of_seeds) for of_seeds in values.reshape(len(values), -1).T.tolist()]
    return values.new_tensor(sums).view(values.shape[1:]) / len(values), deviation


@checked(nats="number: pass a loss")
def bits_per_byte(nats: float) -> float:
    """Convert a loss per byte from nats to bits: nats / ln 2. Raises ValueError unless it is a finite number."""
    return nats / math.log(2)


def tables(results: dict[str, Any]) -> list[str]:
    """The lines of a report: for every measurement, mean ± standard deviation over seeds.

    Runs that diverged, so that a measurement is NaN or infinite, are named at the end and left out of the means.
    """
    astray = [name for run in results["runs"] if (name := run_of(run).name) and diverged(run)]
    named = ["", f"diverged, and left out above: {', '.join(astray)}"] if astray else []
    runs = [run for run in results["runs"] if not diverged(run)]
    lines = [line for part in dict.fromkeys(run["part"] for run in runs) for line in _lines(part, runs)]
    return [*lines, *named]


def _lines(name: str, runs: list[dict[str, Any]]) -> Iterator[str]:
    """The tables of one part."""
    part = PARTS[name]
    measured = [
        (f"{run['scheme']} {run['setting']}".strip(), part.tables(run["evaluation"])) for run in runs if run["part"] == name
    ]
    titles = {("plain", how): title for how, title in part.titles.items()}
    changes = dict.fromkeys(change for _, tables in measured for change in tables if change != "plain")
    titles |= {(change, "nonoverlapping"): f"nats per byte, {change}" for change in changes}
    for (change, how), title in titles.items():
        rows: dict[str, list[dict[str, float]]] = {}
        for label, tables in measured:
            if table := tables.get(change, {}).get(how):
                rows.setdefault(label, []).append(table)
        if rows:
            yield from _table(f"{name}: {title}", rows, bits=how == "nonoverlapping")


def _table(title: str, rows: dict[str, list[dict[str, float]]], bits: bool) -> Iterator[str]:
    """Mean and standard deviation over the seeds of each row, by length."""
    lengths = [*next(iter(rows.values()))[0]]
    heads = [*lengths, f"bits at {lengths[-1]}"] if bits else lengths
    yield ""
    yield title.ljust(44) + "seeds  " + "".join(f"{head:>15}" for head in heads)
    for label, found in rows.items():
        mean, deviation = describe(torch.tensor([[*table.values()] for table in found], dtype=torch.float64))
        cells = [f"{m:6.3f} ± {s:.3f}" if s == s else f"{m:6.3f}" for m, s in zip(mean, deviation, strict=True)]
        if bits:
            cells.append(f"{bits_per_byte(mean[-1].item()):6.3f}")
        yield f"  {label}".ljust(44) + f"{len(found):5}  " + "".join(f"{cell:>15}" for cell in cells)
