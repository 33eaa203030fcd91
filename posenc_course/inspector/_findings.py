"""What is wrong, what isn't known, and what happens as texts grow."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from posenc_course.inspector._config import (
    has_own_code,
    longest,
    names,
    rope_parts,
    tables,
    text_part,
    type_of_rope,
    unread_keys,
    unread_layers,
)
from posenc_course.inspector._layers import Kind, Knowledge, alike
from posenc_course.inspector._probe import Library, Probe

UNTRAINED = "its training length isn't written down, so nobody can say which angles it has met"
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


def _found(level: Level, code: str, text: str) -> Finding:
    return Finding(level, code, text, **catalogue()[code])


@dataclass(frozen=True)
class Case:
    """What there is to judge by: the file, its part about text as it is and checked, what is known of its type, what its class
    did, and the length of its training, or else its limit.
    """

    whole: Mapping[str, Any]
    given: Mapping[str, Any]
    part: Mapping[str, Any]
    row: Mapping[str, Any]
    kinds: Sequence[Kind]
    library: Library | None
    found: Probe | None
    length: int | None
    refused: str = ""

    @property
    def name(self) -> str:
        """What to call the class."""
        return self.found.name if self.found else str(self.row.get("name", "its class"))


def findings(case: Case) -> Iterator[Finding]:
    """What is wrong, what isn't known, and what a reader is likely to build differently."""
    yield from _not_known(case)
    yield from _in_the_file(case)
    yield from _beside(case)
    if case.refused:
        level: Level = "unknown" if has_own_code(case.whole, case.part) else "wrong"
        yield _found(level, "refused", case.refused)
    if case.found:
        yield from _differences(case)


def _not_known(case: Case) -> Iterator[Finding]:
    whole, part, row = case.whole, case.part, case.row
    kind = part.get("model_type")
    total = sum(each.count for each in case.kinds)
    if has_own_code(whole, part):
        rules = f"what follows is read by the rules of {row['name']}" if "name" in row else "its rules aren't known here"
        yield _found("unknown", "own-code", f"the model brings its own code, which wasn't run: {rules}")
    elif "gguf" in part and "name" not in row:
        text = f"llama.cpp may have rules for {kind} that aren't in the file: this is what the file says"
        yield _found("unknown", "not-known", text)
    elif not ("name" in row or case.found):
        text = f"nobody here knows the rules of model_type {kind!r}: its keys are read by their usual names"
        yield _found("unknown", "not-known", text.replace("model_type None", "a file without model_type"))
    layers = [] if case.library else unread_layers(part, row)
    unread = unread_keys(part, row)
    if case.found and case.library:  # what the class reads, it has done
        unread = [key for key in unread if key in case.library.unread or key not in part]
    own = has_own_code(whole, part) or not (case.library or "reads" in row)
    reads = {*row.get("also", ())} if not case.library else {*part} & {*case.library.values}
    open_ones = [key for key in unread if own or (not case.found and key in reads)] + layers
    if open_ones:
        yield _found("unknown", "unread", f"what looks like positions isn't read here: {', '.join(open_ones)}")
    others = [key for key in unread if key not in open_ones]
    if others:
        yield _found("note", "unread", f"{case.name} doesn't read what looks like positions: {', '.join(others)}")
    for key, (level, text) in row.get("says", {}).items():
        if part.get(key):
            yield _found(level, "rule", text.format(part[key]))
    for each in case.kinds:
        if each.known.encoding is None:
            yield _found("unknown", "not-known", f"the encoding of {which(each, total)} isn't known")
        elif each.known.encoding == "RoPE" and each.known.base is None and not each.known.frequencies:
            perhaps = " or ".join(key for key in unread if re.search("base|theta", key))
            also = f", and perhaps it's under {perhaps}" if perhaps else ""
            yield _found("unknown", "base-missing", f"the base isn't known{also}")
        if each.known.encoding and each.known.window is None:
            yield _found("unknown", "not-known", f"how far queries see in {which(each, total)} isn't known")
        if each.known.more:
            text = f"something else tells the order of tokens in {which(each, total)}, too, and isn't known"
            yield _found("unknown", "not-known", text)
        if each.known.frequencies and not case.length:
            yield _found("unknown", "not-known", UNTRAINED)


def _beside(case: Case) -> Iterator[Finding]:
    """What there is beside the layers that are described."""
    kinds = {*names("layers"), *names("hidden")}
    others = [key for key, value in case.whole.items() if isinstance(value, Mapping) and kinds & value.keys()]
    others = [key for key in others if text_part(case.whole[key]) is not case.given]
    if others:
        text = f"only what reads text is described here, and {', '.join(others)} may have positions of their own"
        yield _found("note", "not-known", text)
    for rope in rope_parts(case.part):
        sections = rope.get("mrope_section")
        if isinstance(sections, list) and sections:
            text = (
                f"sections of {', '.join(map(str, sections))} pairs rotate by time, row and column, which are alike in a text"
            )
            yield _found("note", "not-known", text)
    for kind in case.kinds:
        table = case.found.tables.get(kind.side) if case.found else None
        if table and kind.known.encoding not in ("learned table", "sinusoids"):
            yield _found("note", "not-known", "a table of positions is added to the input, too")


def _in_the_file(case: Case) -> Iterator[Finding]:
    """Where the file contradicts itself, or leaves to its class what a reader would look for."""
    part, kinds = case.part, case.kinds
    tops = {name: part[name] for name in names("bases") if part.get(name)}
    nested = any(isinstance(each, Mapping) for each in (part.get("rope_parameters") or {}).values())
    for rope in rope_parts(part):
        inside = rope.get("rope_theta")
        if inside and tops and not nested and inside not in tops.values():
            name, value = next(iter(tops.items()))
            yield _found("wrong", "two-bases", f"the base is {value:,.0f} under {name}, and {inside:,.0f} with the scaling")
        yield from _of_scaling(case, rope)
    if part.get("rope_scaling") and part.get("rope_parameters"):
        yield _found("note", "scaling", "there are both rope_scaling and rope_parameters, and transformers reads the first")
    listed = part.get("no_rope_layers") or ()
    off = len(listed) - sum(map(bool, listed))
    if 2 * off > len(listed):
        text = f"no_rope_layers leaves {off} of {len(listed)} layers without RoPE: in this list, 1 means that a layer rotates"
        yield _found("note", "nope-list", text)
    rotary = [kind for kind in kinds if kind.known.encoding == "RoPE" and kind.known.base]
    stated = tops or any(rope.get("rope_theta") for rope in rope_parts(part)) or part.get("layer_rope_theta")
    if rotary and not stated and not any(path.endswith("theta") for path in case.row.get("keys", {})):
        bases = {f"{kind.known.base:,.0f}" + _where(kind, rotary, kinds): None for kind in rotary}
        yield _found(
            "note", "base-missing", f"no base is written where {case.name} reads one, and it takes {' and '.join(bases)}"
        )
    encodings = case.row.get("encodings", [])
    if "none" in encodings and "RoPE" in encodings and not case.found and not any(k.known.encoding == "none" for k in kinds):
        yield _found("unknown", "no-rope", f"{case.name} has layers without RoPE, and the file doesn't say which")
    if tops and kinds and all(kind.known.encoding == "none" for kind in kinds) and not _says_none(case):
        yield _found("note", "no-rope", f"the file has a base, but {case.name} doesn't rotate in any layer")


def _says_none(case: Case) -> bool:
    """Whether the file itself says that nothing rotates."""
    chosen = ((by_value, str(case.part.get(key)).lower()) for key, by_value in case.row.get("by_value", {}).items())
    named = str(case.part.get("position_embedding_type", "")).lower()
    return named == "nope" or any(by_value.get(value) == "none" for by_value, value in chosen)


def _where(kind: Kind, rotary: Sequence[Kind], kinds: Sequence[Kind]) -> str:
    return f" in {which(kind, sum(each.count for each in kinds))}" if len({each.known.base for each in rotary}) > 1 else ""


def _of_scaling(case: Case, rope: Mapping[str, Any]) -> Iterator[Finding]:
    """What is odd in one dictionary about RoPE."""
    kind, reads = type_of_rope(rope), tables()["rope_types"]
    level: Level
    if kind not in {*reads, "none"}:
        level = "note" if case.found else "wrong" if case.refused and not has_own_code(case.whole, case.part) else "unknown"
        text = "a name of this model's own" if case.found else f"and transformers knows {', '.join([*reads][:-1])}"
        yield _found(level, "unread-key", f"the type of scaling is {kind!r}, {text}")
    for key in rope:
        if key in {*tables()["always"], *reads.get(kind, rope)} or key.endswith("_theta") or _is_own(case, key):
            continue
        synonym = key.startswith("attn") and "attention_factor" in reads[kind]
        factors = [each.known.attention_factor for each in case.kinds if each.known.encoding == "RoPE"]
        if synonym and not all(alike(rope[key], factor) for factor in factors) and not has_own_code(case.whole, case.part):
            level = "wrong"
        else:
            level = "note" if case.library or ("name" in case.row and key in _all_keys()) else "unknown"
        where = "here" if level == "unknown" else f"for {kind}"
        yield _found(level, "unread-key", f"{key} isn't read {where}{'; attention_factor is' if synonym else ''}")
    if kind == "yarn":
        yield from _of_lengths(rope.get("factor"), rope.get("original_max_position_embeddings"), longest(case.part))


def _is_own(case: Case, key: str) -> bool:
    """Whether a class reads a key that the library's scalings don't have."""
    return case.library is not None and key not in case.library.unread and key not in _all_keys()


def _all_keys() -> set[str]:
    return {key for keys in tables()["rope_types"].values() for key in keys}


def _of_lengths(factor: float | None, original: int | None, most: int | None) -> Iterator[Finding]:
    if factor and factor > 1 and most and not original:
        text = f"original_max_position_embeddings isn't written, so {most:,} tokens are the length before stretching"
        yield _found("note", "lengths", text)
    if not (factor and original and most) or math.isclose(original * factor, most, rel_tol=0.01):
        return
    text = f"{original:,} tokens stretched by {factor:g} are {original * factor:,.0f}, not {most:,}"
    if original > most:
        yield _found("wrong", "lengths", f"{text}: original_max_position_embeddings is the length before stretching")
    elif original == most:
        text = f"original_max_position_embeddings and max_position_embeddings are both {most:,}, but stretched by {factor:g},"
        yield _found(
            "note", "lengths", f"{text} the second should be {original * factor:,.0f}, or the first {most / factor:,.0f}"
        )
    else:
        yield _found("note", "lengths", text)


def which(kind: Kind, number: int) -> str:
    if kind.guessed and kind.count == number:
        return "its layers with attention (if alike)"
    if kind.side:
        return f"the {kind.side}'s {kind.count} layers"
    if kind.count == number:
        return "all layers"
    some = ", ".join([*map(str, kind.layers[:3]), *(["…"] if kind.count > 3 else [])])
    return f"{kind.count} of {number} layers" + (f" ({some})" if kind.layers else "")


# ── what the class does ──────────────────────────────────────────────────────────────────────────────────────────────────


def _differences(case: Case) -> Iterator[Finding]:
    """Where the class does something different from what the file states, under a name that has one meaning."""
    part, name = case.part, case.name
    total = sum(kind.count for kind in case.kinds)
    did = [kind.done for kind in case.kinds if kind.done]
    rotary = [known for known in did if known.encoding == "RoPE"]
    where = "all layers" if len(rotary) == len(case.kinds) else "the layers that rotate"
    named = str(part.get("position_embedding_type") or "").lower()
    stated = next((encoding for word, encoding in ENCODINGS.items() if named.startswith(word)), None)
    stated = "ALiBi" if part.get("alibi") is True else stated
    if did and stated and stated not in {known.encoding for known in did}:
        has = " and ".join(dict.fromkeys(f"{known.encoding}".replace("none", "no encoding") for known in did))
        yield _found("wrong", "encoding", f"the file says {named or 'alibi'}, but {name} doesn't read that and has {has}")
    for kind in case.kinds:
        if not _says_none(case) and rotary and kind.done and (kind.written.encoding, kind.done.encoding) == ("RoPE", "none"):
            yield _found("note", "no-rope", f"the file has a base, but {name} doesn't rotate in {which(kind, total)}")
    if rotary:
        yield from _of_base(case, rotary, where)
        yield from _of_channels(case, rotary, where)
        for kind in case.kinds:
            if kind.done and kind.done.encoding == "RoPE" == kind.written.encoding and kind.written.frequencies:
                yield from _of_stretch(kind.written, kind.done, which(kind, total), case)
    window = next((part[key] for key in names("windows") if part.get(key)), None)
    seen = {known.window for known in did if known.window}
    if window and did and part.get("use_sliding_window") is not False and not {None} & {known.window for known in did}:
        unread = case.library.unread if case.library else ()
        meant = any(kind.written.window for kind in case.kinds) or {*names("windows")} & {*unread}
        if not seen and meant and window < (longest(part) or math.inf):
            yield _found("wrong", "window", f"the window of {window:,} tokens isn't used: {name} has none in all layers")
        elif seen and window not in seen:
            text = f"the file says {window:,} tokens, but a query of {name} sees {', '.join(f'{w:,}' for w in sorted(seen))}"
            yield _found("note", "window", text)


def _of_base(case: Case, rotary: Sequence[Knowledge], where: str) -> Iterator[Finding]:
    part = case.part
    if any(key in rope for rope in (part, *rope_parts(part)) for key in ("alpha", *case.row.get("keys", {}))):
        return  # the base is changed by another key
    bases = {each.base for each in rotary}
    keys = [key for group in ("bases", "local_bases") for key in names(group)]
    stated = [part[key] for key in keys if part.get(key)]
    inner = [each for each in part.values() if isinstance(each, Mapping)]
    inner += [each for rope in inner for each in rope.values() if isinstance(each, Mapping)]
    stated += [each["rope_theta"] for each in inner if isinstance(each.get("rope_theta"), int | float)]
    for base in dict.fromkeys(stated):
        if None not in bases and not any(math.isclose(base, other, rel_tol=1e-3) for other in bases if other):
            does = " and ".join(f"{other:,.0f}" for other in sorted(filter(None, bases)))
            yield _found("wrong", "base", f"the base should be {base:,.0f}, but {case.name} rotates with {does} in {where}")


def _of_channels(case: Case, rotary: Sequence[Knowledge], where: str) -> Iterator[Finding]:
    ropes = [case.part, *rope_parts(case.part)]
    share = next((rope[key] for key in names("shares") for rope in ropes if rope.get(key)), None)
    known = [each.rotated for each in rotary if each.rotated]
    if (
        share
        and known
        and not case.part.get("qk_rope_head_dim")
        and not any(rotated == int(width * share) for rotated, width in known)
    ):
        rotated, width = known[0]
        text = f"{int(width * share)} channels should rotate, but {case.name} rotates {rotated} in {where}"
        yield _found("wrong", "channels", text)


def _of_stretch(written: Knowledge, done: Knowledge, where: str, case: Case) -> Iterator[Finding]:
    kind, factor, _ = written.stretch
    now, then = done.frequencies, written.frequencies
    ropes = rope_parts(case.part)
    plain = all({*rope} <= {*tables()["always"], *_all_keys()} for rope in ropes)
    if kind not in tables()["rope_types"] or len(now) != len(then) or not plain:
        return  # it follows a rule that isn't known here
    if not alike(now, then):
        worst = max(max(a, b) / min(a, b) for a, b in zip(now, then, strict=True))
        text = f"{case.name} rotates with frequencies that differ by up to a factor of {worst:.3g} from those written down"
        if alike(now, written.trained):
            text = f"the scaling ({kind}, by {factor:g}) isn't used: {case.name} rotates without it"
        yield _found("wrong", "scaling", f"{text} in {where}")
    if kind in ("dynamic", "longrope") and factor > 1 and written.stretch[2] and done.stretch[0] == "none":
        text = f"beyond {written.stretch[2]:,} tokens, the frequencies should change, but {case.name} keeps them in {where}"
        yield _found("note", "scaling", text)
    if not math.isclose(written.attention_factor, done.attention_factor, rel_tol=1e-4):
        text = f"queries and keys should be multiplied by {written.attention_factor:.4g}, but {case.name} multiplies by "
        yield _found("wrong", "scaling", f"{text}{done.attention_factor:.4g} in {where}")


# ── lengths ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Pairs(NamedTuple):
    """The pairs of a rotation against the training length, all in the frequencies that the model was trained with.

    `incomplete` complete no rotation within it. `brakes` cover between a quarter and half of a circle, like those pairs that
    chapters 13 and 18 found guilty. `kept` and `divided` count the pairs that a stretching leaves alone or slows by the whole
    factor. `first_new` is the distance from which a pair is at an angle that training didn't show.
    """

    incomplete: tuple[int, ...]
    brakes: tuple[int, ...]
    kept: int
    divided: int
    first_new: int | None


def pairs(knowledge: Knowledge, length: int) -> Pairs:
    """Compare each pair's wavelength with the training length.

    Args:
        knowledge: of a layer with RoPE.
        length: the training length, in tokens.

    Raises ValueError if the frequencies aren't known, or for a length below 1.
    """
    if not knowledge.frequencies:
        raise ValueError(f"no frequencies are known of {knowledge.encoding!r}: give a layer with RoPE, whose base is known")
    if not isinstance(length, int) or length < 1:
        raise ValueError(f"length must be a whole number >= 1, got {length!r}: give the training length in tokens")
    now = knowledge.far or knowledge.frequencies
    kind, factor, _ = knowledge.stretch
    trained = knowledge.trained if factor > 1 or kind == "divisors" else now  # longrope by 1 holds from the start
    trained = trained or now
    circles = [omega * length / (2 * math.pi) for omega in trained]
    incomplete = tuple(i for i, part in enumerate(circles) if part < 1)
    slowed = [before / after if after else 1.0 for before, after in zip(trained, now, strict=True)]
    most = max(slowed)
    return Pairs(
        incomplete,
        tuple(i for i in incomplete if 0.25 <= circles[i] <= 0.5),
        sum(each < 1.001 for each in slowed),
        sum(each > 0.999 * most for each in slowed) if most > 1.001 else 0,
        min((math.ceil(length * slowed[i] - 1e-3) for i in incomplete), default=None),
    )


class Limit(NamedTuple):
    """A length in tokens, and what is there: an "end" of a table, a "window", the last "bucket", frequencies that "switch", a
    "new" angle, or a "circle".
    """

    at: int
    kind: str
    text: str


def limits(
    config: Mapping[str, Any], kinds: Sequence[Kind], layers: int, trained: int | None, most: int | None
) -> Iterator[Limit]:
    """What happens as texts grow."""
    length = trained or most
    total = max(layers, sum(kind.count for kind in kinds))
    for kind in kinds:
        known, where = kind.known, which(kind, total)
        if known.encoding in ("learned table", "sinusoids") and known.rows:
            yield Limit(known.rows - known.first_row, "end", f"the table ends in {where}: the next position has no row")
        if known.window:
            yield Limit(known.window, "window", f"no query of {where} sees all of a longer text")
        if known.encoding == "T5's bias" and config.get("relative_attention_max_distance"):
            yield Limit(config["relative_attention_max_distance"], "bucket", "all larger distances share the last bucket")
        if known.encoding == "Inkling's bias" and known.rows and not known.window:
            yield Limit(known.rows, "bucket", f"from this distance on, the bias of {where} is 0")
        if known.encoding != "RoPE" or not known.frequencies or 0 < (known.window or 0) <= (length or 0):
            continue
        name, factor, start = known.stretch
        if start and ((known.far and not alike(known.far, known.frequencies)) or (name == "dynamic" and factor > 1)):
            yield Limit(start, "switch", "the frequencies switch: cached keys keep the old angles")
        if length and name != "dynamic":  # each longer text has frequencies of its own
            found = pairs(known, length)
            if found.first_new:
                after = " and stretched afterwards" if factor > 1 else ""
                condition = "that training didn't show" if trained else f"that's new if it was trained up to its limit{after}"
                yield Limit(found.first_new, "new", f"the first distance with an angle {condition}, in {where}")
            if found.brakes:
                back = math.ceil(2 * math.pi / (known.far or known.frequencies)[found.brakes[0]])
                yield Limit(back, "circle", f"pair {found.brakes[0]} completes its first circle in {where}")
