"""Saying it: the report in words for people, and as JSON for programs."""

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from posenc_course.inspector._breaking import Finding, pairs, which
from posenc_course.inspector._knowing import Kind, Knowledge, alike

FROM_TABLE = "these are the values of the table of models"


@dataclass(frozen=True)
class Report:
    """What `inspect` found. `training_length` is in tokens; `unprobed` says why the class wasn't run, or is empty if it was."""

    name: str
    class_name: str
    layers: int
    training_length: int | None
    kinds: tuple[Kind, ...]
    findings: tuple[Finding, ...]
    limits: tuple[tuple[int, str], ...]
    unprobed: str

    def headline(self) -> str:
        """The main finding, in one sentence."""
        worst = [each for level in ("wrong", "warning") for each in self.findings if each.level == level]
        if worst:
            more = f" ({len(worst) - 1} more below)" if len(worst) > 1 else ""
            return f"{self.name}: {worst[0].text}{more}"
        if self.unprobed == FROM_TABLE:
            return f"{self.name}: what the table of models says"
        if self.unprobed:
            return f"{self.name}: nothing in the configuration contradicts itself, but no class was run ({self.unprobed})"
        return f"{self.name}: the class {self.class_name} does what the configuration says"

    def text(self) -> str:
        """The report for people. Its first line is the headline; the others have at most 80 characters."""
        first, *rest = _lines(self)
        return "\n".join([first, *(part for line in rest for part in _wrapped(line))])

    def as_json(self) -> str:
        """The report for programs."""
        return json.dumps({"headline": self.headline()} | asdict(self), indent=1, ensure_ascii=False)


def _wrapped(line: str) -> list[str]:
    indent = re.match(" *", line)[0] + "  "  # type: ignore[index]
    return textwrap.wrap(line, 80, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]


def _lines(report: Report) -> Iterator[str]:
    yield report.headline()
    for finding in report.findings:
        yield ""
        yield f"{finding.level} [{finding.code}]: {finding.text}"
        yield f"  looks like: {finding.symptom}"
        yield f"  read: {finding.page}"
        yield f"  reported in {finding.thread}"
    for kind in report.kinds:
        yield ""
        yield from _of_kind(kind, report)
    if report.limits:
        yield ""
        yield "as texts grow:"
        wide = max(len(f"{length:,}") for length, _ in report.limits)
        for length, what in report.limits:
            yield f"  {length:>{wide},} tokens: {what}"
    if report.unprobed:
        yield ""
        yield f"The class wasn't run: {report.unprobed}."


def _of_kind(kind: Kind, report: Report) -> Iterator[str]:
    known = kind.known
    total = max(report.layers, sum(each.count for each in report.kinds))
    doors = {"RoPE": "query and key", "ALiBi": "score", "T5's bias": "score", "Inkling's bias": "score", "none": ""}
    door = doors.get(known.encoding or "none", "embedding")
    what = {None: "encoding not written down", "none": "no encoding"}.get(known.encoding, str(known.encoding))
    yield f"{which(kind, total)}: {what}" + (f", at the {door}" if door else "")
    if known.encoding == "RoPE":
        yield "  " + "; ".join(_rotation_words(known))
        yield from (f"  {line}" for line in _pair_words(known, report.training_length))
    if known.rows:
        what = {"T5's bias": "buckets", "Inkling's bias": "offsets"}.get(known.encoding or "", "rows")
        yield f"  {known.rows:,} {what}"
    if known.window is not None:
        yield "  " + (f"window of {known.window:,} tokens, its own included" if known.window else "no window")
    if known.sinks:
        yield "  sinks: each head has a score that belongs to no token"
    if known.score is not None and not math.isclose(known.score, 1, rel_tol=1e-4):
        yield f"  scores are multiplied by {known.score:.4g} in addition to 1/√d"


def _rotation_words(known: Knowledge) -> Iterator[str]:
    yield f"base {known.base:,.0f}" if known.base else "base not written down"
    if known.rotated:
        rotated, width = known.rotated
        sides = {None: "", 0: ", the first"}
        side = sides.get(known.first_channel, f", from channel {known.first_channel}")
        yield f"all {width} channels" if rotated == width else f"{rotated} of {width} channels{side}"
    if known.layout:
        yield "pairs of neighbours" if known.layout == "interleaved" else "pairs of halves"


def _pair_words(known: Knowledge, length: int | None) -> Iterator[str]:
    if not known.frequencies:
        return
    number = len(known.frequencies)
    shown = [f"{omega:.4g}" for omega in (*known.frequencies[:3], *known.frequencies[3:][-1:])]
    yield "frequencies " + ", ".join([*shown[:3], *(["…"] if number > 3 else []), *shown[3:]])
    if length:
        found = pairs(known, length)
        slow = len(found.incomplete)
        yield f"within {length:,} tokens, {slow} of {number} pairs complete no rotation"
        if found.brakes:
            yield f"  suspects, as in chapters 13 and 18: {_range(found.brakes)} between 1/4 and 1/2 of one"
    kind, factor, original = known.stretch
    if kind != "none":
        start = f" from {original:,} tokens" if original else ""
        yield f"stretched: {kind}, by {factor:g}{start}"
        if known.trained:
            divisors = [b / a for a, b in zip(known.far or known.frequencies, known.trained, strict=True) if a]
            if kind in ("longrope", "divisors"):
                yield f"  each pair has a divisor of its own, from {min(divisors):.3g} to {max(divisors):.3g}"
            else:
                found = pairs(known, length or 1)
                between = number - found.kept - found.divided
                yield f"  {found.kept} pairs as they were, {between} between, {found.divided} divided by {max(divisors):.3g}"
            moved = sum(not alike(a, b) for a, b in zip(known.frequencies, known.trained, strict=True))
            paid = f"pay, too: {moved} of {number} pairs have other frequencies" if moved else "keep their frequencies"
            yield f"  texts within the old length {paid}"
    if not math.isclose(known.attention_factor, 1, rel_tol=1e-6):
        factor = known.attention_factor
        yield f"  queries and keys times {factor:.4g}: scores times {factor**2:.4g}, at any length"


def _range(numbers: Iterable[int]) -> str:
    some = list(numbers)
    return f"pair {some[0]}, which completes" if len(some) == 1 else f"pairs {some[0]} to {some[-1]}, which complete"
