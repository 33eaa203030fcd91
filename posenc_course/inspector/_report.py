"""Saying it: the report in words for people, and as JSON for programs."""

import json
import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from posenc_course.inspector._findings import LEVELS, UNTRAINED, Finding
from posenc_course.inspector._layers import Kind, Knowledge, alike
from posenc_course.inspector._lengths import Limit, pairs

FROM_TABLE = "these are the values of the table of models"


@dataclass(frozen=True)
class Report:
    """What `inspect` found. `training_length`, before any stretching, and `limit` are in tokens; `unprobed` says why the class
    wasn't run, or is empty if it was.
    """

    name: str
    class_name: str
    layers: int
    training_length: int | None
    limit: int | None
    kinds: tuple[Kind, ...]
    findings: tuple[Finding, ...]
    limits: tuple[Limit, ...]
    unprobed: str

    def headline(self) -> str:
        """The main finding, in one sentence: what's wrong, or else what isn't known, or else up to what length it's safe."""
        for level in LEVELS[:2]:
            worst = [each for each in self.findings if each.level == level]
            if worst:
                more = f" ({len(worst) - 1} more below)" if len(worst) > 1 else ""
                return f"{self.name}: {worst[0].text}{more}"
        how = f"as {self.class_name} does it"
        if self.unprobed:
            how = "by the table of models" if self.unprobed == FROM_TABLE else "as written"
        notes = f" ({len(self.findings)} note{'s' if len(self.findings) > 1 else ''} below)" if self.findings else ""
        return f"{self.name}: {how}, {self.verdict()}{notes}"

    def verdict(self) -> str:
        """Up to what length of text all is as in training, in plain words."""
        length = self.training_length or self.limit
        rotary = [kind.known for kind in self.kinds if kind.known.encoding == "RoPE"]
        ends = sorted({limit.at for limit in self.limits if limit.kind == "end"})
        if len(ends) > 1:
            return f"its tables end at {' and '.join(f'{end:,}' for end in ends)} tokens"
        if ends:
            return f"it takes texts of up to {ends[0]:,} tokens, where its table ends"
        if any(kind.known.encoding in ("learned table", "sinusoids") for kind in self.kinds):
            return "each position beyond those of its training is new to it"
        if not rotary:
            has = " and ".join(dict.fromkeys(str(kind.known.encoding).replace("none", "no encoding") for kind in self.kinds))
            return f"no layer rotates ({has or 'no attention'}), so no length brings a new angle"
        if not all(known.frequencies for known in rotary):
            return "its frequencies don't follow from what is written"
        if not length:
            return UNTRAINED
        stretched = any(known.stretch[1] > 1 and known.stretch[0] != "dynamic" for known in rotary)
        after = " and stretched afterwards," if stretched else ""
        condition = "" if self.training_length else f"if it was trained on {length:,} tokens, its limit,{after} it's "
        seeing = [known for known in rotary if not 0 < (known.window or 0) <= length]
        if not seeing:
            most = max(known.window or 0 for known in rotary)
            return f"where layers rotate, no query sees farther than {most:,} tokens"
        if any(known.stretch[0] == "dynamic" for known in seeing):
            return f"{condition}safe up to {length:,} tokens; beyond, frequencies change with the length of the text"
        found = [(known, pairs(known, length)) for known in seeing]
        new = [(each.first_new, len(each.incomplete), len(known.frequencies)) for known, each in found if each.first_new]
        if not new:
            return f"{condition}safe at any length, because {length:,} tokens show every pair all its angles"
        at, count, number = min(new)
        which = f"that training on {length:,} tokens didn't" if self.training_length else "that training didn't"
        return f"{condition}safe up to {at:,} tokens; from there on, {count} of {number} pairs show angles {which}"

    def rest(self) -> str:
        """What there is to say of layers without attention; empty if there are none."""
        number = self.layers - sum(kind.count for kind in self.kinds)
        some = number > 0 and not any(kind.guessed or kind.side for kind in self.kinds)
        return f"{number} of {self.layers} layers: no softmax attention" if some else ""

    def status(self) -> int:
        """The exit status: 1 if something is wrong, 3 if something that matters isn't known, and otherwise 0."""
        levels = {finding.level for finding in self.findings}
        return 1 if "wrong" in levels else 3 if "unknown" in levels else 0

    def text(self) -> str:
        """The report for people. Its first line is the headline; the others have at most 80 characters."""
        first, *rest = _lines(self)
        return "\n".join([first, *(part for line in rest for part in _wrapped(line))])

    def as_json(self) -> str:
        """The report for programs."""
        kinds = [asdict(kind) | {"evidence": kind.evidence} for kind in self.kinds]
        return json.dumps({"headline": self.headline()} | asdict(self) | {"kinds": kinds}, indent=1, ensure_ascii=False)


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
    if report.rest():
        yield ""
        yield report.rest()
    if report.limits:
        yield ""
        yield "as texts grow:"
        wide = max(len(f"{limit.at:,}") for limit in report.limits)
        for limit in report.limits:
            yield f"  {limit.at:>{wide},} tokens: {limit.text}"
    yield ""
    yield "done: measured on the class, built small. written: read from the file by the rules of this type of model."
    if report.unprobed:
        yield f"No class was run: {report.unprobed}."


def _of_kind(kind: Kind, report: Report) -> Iterator[str]:
    known = kind.known
    total = max(report.layers, sum(each.count for each in report.kinds))
    doors = {"RoPE": "query and key", "ALiBi": "score", "none": ""}
    encoding = known.encoding or "none"
    door = "score" if encoding.endswith("bias") else doors.get(encoding, "embedding")
    what = {None: "encoding", "none": "no encoding"}.get(known.encoding, str(known.encoding))
    yield f"{kind.where(total)}: {what}" + (f", at the {door}" if door else "") + f" [{kind.evidence}]"
    if known.encoding == "RoPE":
        yield "  " + "; ".join(_rotation_words(known))
        yield from (f"  {line}" for line in _pair_words(known, report))
    if known.rows:
        what = {"T5's bias": "buckets", "Inkling's bias": "offsets"}.get(known.encoding or "", "rows")
        yield f"  {known.rows:,} {what}" + (f", of which the first token gets row {known.first_row}" if known.first_row else "")
    seen = {None: "window not known", 0: "no window"}
    yield "  " + seen.get(known.window, f"a query sees at most {known.window or 0:,} tokens, its own included")
    if known.sinks:
        yield "  sinks: each head has a score that belongs to no token"
    if known.score is not None and not math.isclose(known.score, 1, rel_tol=1e-4):
        yield f"  scores are multiplied by {known.score:.4g} in addition to 1/√d"


def _rotation_words(known: Knowledge) -> Iterator[str]:
    yield f"base {known.base:,.0f}" if known.base else "base not known"
    if known.rotated is None:
        yield "how many channels rotate isn't known"
    else:
        rotated, width = known.rotated
        sides = {None: "", 0: ", the first"}
        side = sides.get(known.first_channel, f", from channel {known.first_channel}")
        yield f"all {width} channels" if rotated == width else f"{rotated} of {width} channels{side}"
    if known.layout:
        yield "pairs of neighbours" if known.layout == "interleaved" else "pairs of halves"
    if known.backwards:
        yield "rotating the other way than most models"


def _pair_words(known: Knowledge, report: Report) -> Iterator[str]:
    length = report.training_length or report.limit
    number = len(known.frequencies)
    shown = [f"{omega:.4g}" for omega in (*known.frequencies[:3], *known.frequencies[3:][-1:])]
    words = ", ".join([*shown[:3], *(["…"] if number > 3 else []), *shown[3:]])
    yield f"frequencies {words or 'not known'}"
    kind, factor, original = known.stretch
    if length and number:
        found = pairs(known, length)
        slow = len(found.incomplete)
        which = "its training length" if report.training_length else "its limit"
        before = " before stretching" if factor > 1 else ""
        yield f"within {length:,} tokens, {which}, {slow} of {number} pairs complete no rotation{before}"
        if found.brakes:
            first, last = found.brakes[0], found.brakes[-1]
            suspects = f"pair {first}, which completes" if first == last else f"pairs {first} to {last}, which complete"
            yield f"  suspects, as in chapters 13 and 18: {suspects} between 1/4 and 1/2 of one"
    if kind != "none":
        start = f" from {original:,} tokens" if original else ""
        yield f"stretched: {kind}, by {factor:g}{start}"
        if known.trained and kind != "dynamic":
            divisors = [b / a for a, b in zip(known.far or known.frequencies, known.trained, strict=True) if a]
            if kind in ("longrope", "divisors"):
                yield f"  each pair has a divisor of its own, from {min(divisors):.3g} to {max(divisors):.3g}"
            else:
                found = pairs(known, length or 1)
                between = number - found.kept - found.divided
                yield f"  {found.kept} pairs as they were, {between} between, {found.divided} divided by {max(divisors):.3g}"
        if known.trained and factor > 1:
            moved = sum(not alike(a, b) for a, b in zip(known.frequencies, known.trained, strict=True))
            paid = f"pay, too: {moved} of {number} pairs have other frequencies" if moved else "keep their frequencies"
            yield f"  texts within the old length {paid}"
    one, far = known.attention_factor, known.far_factor
    if far:
        words = f"queries and keys times {one:.4g}, and times {far:.4g} in texts beyond {original or 0:,} tokens"
        yield f"  {words}: scores times {one**2:.4g} and {far**2:.4g}"
    elif not math.isclose(one, 1, rel_tol=1e-6):
        yield f"  queries and keys times {one:.4g}: scores times {one**2:.4g}, at any length"
