"""What is wrong, and what isn't known."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from posenc_course.inspector._config import (
    has_own_code,
    longest,
    names,
    rope_parts,
    scaling_keys,
    tables,
    text_part,
    type_of_rope,
)
from posenc_course.inspector._layers import Kind, Knowledge, alike
from posenc_course.inspector._library import NotProbed
from posenc_course.inspector._probe import Probe

UNTRAINED = "its training length isn't written down, so nobody can say which angles it has met"
ORIGINAL = "original_max_position_embeddings"
LEVELS = ("wrong", "unknown", "note")
Level = Literal["wrong", "unknown", "note"]
# What a value of position_embedding_type names; "absolute" stands in many files whose models rotate.
ENCODINGS = {"alibi": "ALiBi", "relative": "a bias by offset", "rope": "RoPE", "rotary": "RoPE", "nope": "none"}


@dataclass(frozen=True)
class Finding:
    """Something to know before you port, convert or stretch this model.

    `level` is "wrong" if it's proved: the class does something different from a value that the file states, or the file
    contradicts itself; "unknown" if something that matters isn't known; and "note" otherwise. `symptom` is what it looks like,
    `page` where the course explains it, and `thread` somebody's report of it.
    """

    level: Level
    code: str
    text: str
    symptom: str
    page: str
    thread: str


def catalogue() -> dict[str, dict[str, str]]:
    """What each finding looks like to the people who meet it, where the course explains it, and who reported it."""
    found: dict[str, dict[str, str]] = tables()["catalogue"]
    return found


@dataclass(frozen=True)
class Case:
    """What there is to judge by: the file, its part about text as it is, checked, and by the rules of its type, which are the
    row; what its class did, or why it wasn't run; the keys that look like positions and aren't read, and those that may tell
    layers apart; the kinds of layers; and the length of its training, or else its limit.
    """

    whole: Mapping[str, Any]
    given: Mapping[str, Any]
    part: Mapping[str, Any]
    values: Mapping[str, Any]
    row: Mapping[str, Any]
    found: Probe | None
    problem: NotProbed | None
    unread: Sequence[str]
    apart: Sequence[str]
    kinds: Sequence[Kind]
    length: int | None

    @property
    def name(self) -> str:
        """What to call the class."""
        return self.found.name if self.found else str(self.row.get("name", "its class"))

    @property
    def own_code(self) -> bool:
        return has_own_code(self.whole, self.part)

    @property
    def total(self) -> int:
        return sum(kind.count for kind in self.kinds)

    @property
    def refused(self) -> bool:
        return self.problem is not None and self.problem.kind == "refused"


Said = tuple[Level, str, str]


def findings(case: Case) -> tuple[Finding, ...]:
    """What is wrong, what isn't known, and what a reader is likely to build differently; the worst comes first."""
    said = [*_not_known(case), *_in_the_file(case), *_beside(case)]
    if case.refused:
        said.append(("wrong", "refused", str(case.problem)))
    said += _differences(case)
    made = [Finding(level, code, text, **catalogue()[code]) for level, code, text in dict.fromkeys(said)]
    return tuple(sorted(made, key=lambda finding: LEVELS.index(finding.level)))


def _not_known(case: Case) -> Iterator[Said]:
    part, row, kind = case.part, case.row, case.part.get("model_type")
    if case.own_code:
        rules = f"what follows is read by the rules of {row['name']}" if "name" in row else "its rules aren't known here"
        yield "unknown", "own-code", f"the model brings its own code, which wasn't run: {rules}"
    elif "gguf" in part and "name" not in row:
        yield "unknown", "not-known", f"llama.cpp may have rules for {kind} that aren't in the file: this is what the file says"
    elif not ("name" in row or case.found):
        of = f"model_type {kind!r}" if kind else "a file without model_type"
        yield "unknown", "not-known", f"nobody here knows the rules of {of}: its keys are read by their usual names"
    # What a class reads, it has done; without its code, nobody knows what it reads.
    own = case.own_code or "reads" not in row
    perhaps_read = [key for key in case.unread if own or key in row.get("also", ())]
    open_ones = [*case.apart] if case.found else [*perhaps_read, *case.apart]
    if open_ones:
        yield "unknown", "not-known", f"what looks like positions isn't read here: {', '.join(open_ones)}"
    others = [key for key in case.unread if key not in perhaps_read]
    if others:
        yield "note", "unread", f"{case.name} doesn't read what looks like positions: {', '.join(others)}"
    for key, (level, text) in row.get("says", {}).items():
        if case.values.get(key, -1) not in (None, False, 0, -1):
            yield level, "rule", text.format(case.values[key])
    for each in case.kinds:
        known, where = each.known, each.where(case.total)
        if known.encoding is None:
            yield "unknown", "not-known", f"the encoding of {where} isn't known"
        elif known.encoding == "RoPE" and known.base is None and not known.frequencies:
            perhaps = " or ".join(key for key in case.unread if re.search("base|theta", key))
            yield "unknown", "base-missing", "the base isn't known" + (f", and perhaps it's under {perhaps}" if perhaps else "")
        if known.encoding and known.window is None:
            yield "unknown", "not-known", f"how far queries see in {where} isn't known"
        if known.more:
            yield "unknown", "not-known", f"something else tells the order of tokens in {where}, too, and isn't known"
        if known.frequencies and not case.length:
            yield "unknown", "not-known", UNTRAINED


def _beside(case: Case) -> Iterator[Said]:
    """What there is beside the layers that are described."""
    marks = {*names("layers"), *names("hidden")}
    others = [key for key, value in case.whole.items() if isinstance(value, Mapping) and marks & value.keys()]
    others = [key for key in others if text_part(case.whole[key]) is not case.given]
    if others:
        text = f"only what reads text is described here, and {', '.join(others)} may have positions of their own"
        yield "note", "not-known", text
    for rope in rope_parts(case.part):
        if sections := rope.get("mrope_section"):
            listed = ", ".join(map(str, sections))
            text = f"sections of {listed} pairs rotate by time, row and column, which are alike in a text"
            yield "note", "not-known", text
    for kind in case.kinds:
        if case.found and case.found.tables.get(kind.side) and kind.known.encoding not in ("learned table", "sinusoids"):
            yield "note", "not-known", "a table of positions is added to the input, too"


def _in_the_file(case: Case) -> Iterator[Said]:
    """Where the file contradicts itself, or leaves to its class what a reader would look for."""
    part, row, kinds = case.part, case.row, case.kinds
    tops = {name: part[name] for name in names("bases") if part.get(name)}
    nested = any(isinstance(each, Mapping) for each in (part.get("rope_parameters") or {}).values())
    for rope in rope_parts(part):
        inside = rope.get("rope_theta")
        if inside and tops and not nested and inside not in tops.values():
            name, value = next(iter(tops.items()))
            yield "wrong", "two-bases", f"the base is {value:,.0f} under {name}, and {inside:,.0f} with the scaling"
        yield from _of_scaling(case, rope)
    if part.get("rope_scaling") and part.get("rope_parameters"):
        yield "note", "scaling", "there are both rope_scaling and rope_parameters, and transformers reads the first"
    listed = part.get("no_rope_layers") or ()
    off = len(listed) - sum(map(bool, listed))
    if 2 * off > len(listed):
        text = f"no_rope_layers leaves {off} of {len(listed)} layers without RoPE: in this list, 1 means that a layer rotates"
        yield "note", "nope-list", text
    yield from _of_bases(case)
    without = [kind.known.encoding == "none" for kind in kinds]
    if {"none", "RoPE"} <= {*row.get("encodings", ())} and not case.found and not any(without):
        yield "unknown", "no-rope", f"{case.name} has layers without RoPE, and the file doesn't say which"
    chosen = [by_value.get(str(part.get(key)).lower()) for key, by_value in row.get("by_value", {}).items()]
    says_none = "none" in chosen or str(part.get("position_embedding_type", "")).lower() == "nope"
    if tops and kinds and all(without) and not says_none:
        yield "note", "no-rope", f"the file has a base, but {case.name} doesn't rotate in any layer"


def _of_bases(case: Case) -> Iterator[Said]:
    """Which bases aren't written, and which are made by another key."""
    part, keys, stated = case.part, case.row.get("keys", {}), _stated(case.part)
    rotary = [kind for kind in case.kinds if kind.known.encoding == "RoPE" and kind.known.base]
    taken = [kind for kind in rotary if not any(alike(base, kind.known.base) for base in stated)]
    makers = [path for path, ours in keys.items() if ours == "base_times" and part.get(path)]
    makers += ["alpha" for rope in rope_parts(part) if rope.get("alpha") and type_of_rope(rope) == "dynamic"]
    if taken and makers:
        yield "note", "base-missing", f"{makers[0]} makes the base {taken[0].known.base:,.0f}"
    elif taken and (len(taken) < len(rotary) or not stated) and not any(path.endswith("theta") for path in keys):
        several = len({kind.known.base for kind in rotary}) > 1
        bases = [f"{kind.known.base:,.0f}" + (f" in {kind.where(case.total)}" if several else "") for kind in taken]
        text = f"no base is written where {case.name} reads one, and it takes {' and '.join(dict.fromkeys(bases))}"
        yield "note", "base-missing", text


def _of_scaling(case: Case, rope: Mapping[str, Any]) -> Iterator[Said]:
    """What is odd in one dictionary about RoPE."""
    kind, types = type_of_rope(rope), tables()["rope_types"]
    level: Level
    if kind not in {*types, "none"}:
        level = "note" if case.found else "wrong" if case.refused else "unknown"
        text = "a name of this model's own" if case.found else f"and transformers knows {', '.join([*types][:-1])}"
        yield level, "unread-key", f"the type of scaling is {kind!r}, {text}"
    factors = [each.known.attention_factor for each in case.kinds if each.known.encoding == "RoPE"]
    of_library = "source" not in case.row and not case.own_code
    for key in rope:
        if key in {*tables()["always"], *types.get(kind, rope), *case.row.get("reads", ())} or key.endswith("_theta"):
            continue
        synonym = key.startswith("attn") and "attention_factor" in types[kind]
        if synonym and not case.own_code and not all(alike(rope[key], factor) for factor in factors):
            level = "wrong"
        else:
            level = "note" if "name" in case.row and (key in scaling_keys() or of_library) else "unknown"
        where = "here" if level == "unknown" else f"for {kind}"
        yield level, "unread-key", f"{key} isn't read {where}{'; attention_factor is' if synonym else ''}"
    if kind == "yarn":
        yield from _of_lengths(rope.get("factor"), rope.get(ORIGINAL), longest(case.part))


def _of_lengths(factor: float | None, original: int | None, most: int | None) -> Iterator[Said]:
    if factor and factor > 1 and most and not original:
        yield "note", "lengths", f"{ORIGINAL} isn't written, so {most:,} tokens are the length before stretching"
    if not (factor and original and most) or math.isclose(original * factor, most, rel_tol=0.01):
        return
    text = f"{original:,} tokens stretched by {factor:g} are {original * factor:,.0f}, not {most:,}"
    if original > most:
        yield "wrong", "lengths", f"{text}: {ORIGINAL} is the length before stretching"
    elif original == most:
        text = f"{ORIGINAL} and max_position_embeddings are both {most:,}, but stretched by {factor:g}, the second should be "
        yield "note", "lengths", f"{text}{original * factor:,.0f}, or the first {most / factor:,.0f}"
    else:
        yield "note", "lengths", text


# ── what the class does ──────────────────────────────────────────────────────────────────────────────────────────────────


def _differences(case: Case) -> Iterator[Said]:
    """Where the class does something different from what the file states, under a name that has one meaning."""
    part, name = case.part, case.name
    did = [kind.done for kind in case.kinds if kind.done]
    if not did:
        return
    rotary = [known for known in did if known.encoding == "RoPE"]
    where = "all layers" if len(rotary) == len(case.kinds) else "the layers that rotate"
    named = str(part.get("position_embedding_type") or "").lower()
    stated = next((encoding for word, encoding in ENCODINGS.items() if named.startswith(word)), None)
    stated = "ALiBi" if part.get("alibi") is True else stated
    if stated and stated not in {known.encoding for known in did}:
        has = " and ".join(dict.fromkeys(f"{known.encoding}".replace("none", "no encoding") for known in did))
        yield "wrong", "encoding", f"the file says {named or 'alibi'}, but {name} doesn't read that and has {has}"
    for kind in case.kinds:
        if rotary and kind.done and (kind.written.encoding, kind.done.encoding) == ("RoPE", "none"):
            yield "note", "no-rope", f"the file has a base, but {name} doesn't rotate in {kind.where(case.total)}"
    if rotary:
        yield from _of_base(case, rotary, where)
        yield from _of_channels(case, rotary, where)
    for kind in case.kinds:
        if kind.done and kind.done.encoding == "RoPE" == kind.written.encoding and kind.written.frequencies:
            yield from _of_stretch(kind.written, kind.done, kind.where(case.total), case)
    yield from _of_window(case, {known.window for known in did})


def _of_base(case: Case, rotary: Sequence[Knowledge], where: str) -> Iterator[Said]:
    part, bases = case.part, {each.base for each in rotary}
    changed = ("alpha", *case.row.get("keys", {}))  # by another key
    if None in bases or any(key in rope for rope in (part, *rope_parts(part)) for key in changed):
        return
    does = " and ".join(f"{base:,.0f}" for base in sorted(filter(None, bases)))
    for base in dict.fromkeys(_stated(part)):
        if not any(math.isclose(base, other, rel_tol=1e-3) for other in bases if other):
            yield "wrong", "base", f"the base should be {base:,.0f}, but {case.name} rotates with {does} in {where}"


def _stated(part: Mapping[str, Any]) -> list[float]:
    """All bases that stand in the file."""
    stated = [part[key] for group in ("bases", "local_bases", "other_bases") for key in names(group) if part.get(key)]
    inner = [each for each in part.values() if isinstance(each, Mapping)]
    inner += [each for rope in inner for each in rope.values() if isinstance(each, Mapping)]
    stated += [each["rope_theta"] for each in inner if isinstance(each.get("rope_theta"), int | float)]
    return stated + [base for base in part.get("layer_rope_theta") or () if base]


def _of_channels(case: Case, rotary: Sequence[Knowledge], where: str) -> Iterator[Said]:
    ropes = [case.part, *rope_parts(case.part)]
    share = next((rope[key] for key in names("shares") for rope in ropes if rope.get(key)), None)
    known = [each.rotated for each in rotary if each.rotated]
    if not share or not known or case.part.get("qk_rope_head_dim"):
        return
    if not any(rotated == int(width * share) for rotated, width in known):
        rotated, width = known[0]
        text = f"{int(width * share)} channels should rotate, but {case.name} rotates {rotated} in {where}"
        yield "wrong", "channels", text


def _of_stretch(written: Knowledge, done: Knowledge, where: str, case: Case) -> Iterator[Said]:
    kind, factor, start = written.stretch
    now, then = done.frequencies, written.frequencies
    ours = {*scaling_keys(), *case.row.get("reads", ())}
    plain = all({*rope} <= ours for rope in rope_parts(case.part))
    told = done.base and not alike(done.base, written.base)  # of the base
    if "name" not in case.row or kind not in tables()["rope_types"] or len(now) != len(then) or not plain or told:
        return  # or it follows a rule that isn't known here
    if not alike(now, then):
        worst = max(max(a, b) / min(a, b) for a, b in zip(now, then, strict=True))
        text = f"{case.name} rotates with frequencies that differ by up to a factor of {worst:.3g} from those written down"
        if alike(now, written.trained):
            text = f"the scaling ({kind}, by {factor:g}) isn't used: {case.name} rotates without it"
        yield "wrong", "scaling", f"{text} in {where}"
    switches = kind == "dynamic" or (written.far and not alike(written.far, then))
    if switches and factor > 1 and start and not done.far and (done.stretch[0] == "none" or kind == "longrope"):
        text = f"beyond {start:,} tokens, the frequencies should change, but {case.name} keeps them in {where}"
        yield "note", "scaling", text
    if not math.isclose(written.attention_factor, done.attention_factor, rel_tol=1e-4):
        text = f"queries and keys should be multiplied by {written.attention_factor:.4g}, but {case.name} multiplies by "
        yield "wrong", "scaling", f"{text}{done.attention_factor:.4g} in {where}"


def _of_window(case: Case, did: set[int | None]) -> Iterator[Said]:
    part = case.part
    window, key = next(((part[key], key) for key in names("windows") if part.get(key)), (0, ""))
    seen = sorted(filter(None, did))
    if not window or part.get("use_sliding_window") is False or None in did:
        return
    meant = any(kind.written.window for kind in case.kinds) or key not in case.row.get("reads", [key])
    if not seen and meant and window < (longest(part) or math.inf):
        yield "wrong", "window", f"the window of {window:,} tokens isn't used: {case.name} has none in all layers"
    elif seen and window not in seen:
        sees = ", ".join(f"{size:,}" for size in seen)
        yield "note", "window", f"the file says {window:,} tokens, but a query of {case.name} sees {sees}"
