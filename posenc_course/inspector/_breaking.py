"""What breaks: differences between what is written and what is done, and what happens as texts grow."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from posenc_course.inspector._knowing import Kind, Knowledge, alike, base_of, default_bases
from posenc_course.inspector._probing import Probe
from posenc_course.inspector._reading import ALWAYS, BASES, KEYS, longest, rope_parts, type_of_rope
from posenc_course.models import Model

# What a finding looks like to the people who meet it, where the course explains it, and who reported it.
CATALOGUE = {
    "base": (
        "short texts read well, and after a thousand tokens or more the model stops making sense",
        "07_base",
        "https://github.com/deepspeedai/DeepSpeed/pull/8345",
    ),
    "base-missing": (
        "a program with a different default reads short texts well, and long ones badly",
        "reference/models",
        "https://github.com/Open-Athena/MarinFold/issues/184",
    ),
    "two-bases": (
        "two programs read the same file and disagree on long texts",
        "reference/models",
        "https://github.com/Open-Athena/MarinFold/pull/198",
    ),
    "scaling": (
        "nothing changes when you change the scaling, or long texts are as bad as without it",
        "13_stretching",
        "https://github.com/MakazhanAlpamys/Soup/issues/793",
    ),
    "unread-key": (
        "a setting has no effect, and no error says so",
        "deeper/13_stretching",
        "https://github.com/deepseek-ai/DeepSeek-R1/issues/684",
    ),
    "lengths": (
        "long texts are worse than they should be, and short texts suffer, too",
        "reference/symptoms#yarn-which-number-goes-where",
        "https://github.com/vllm-project/vllm/issues/37886",
    ),
    "short-texts-pay": (
        "scores on short texts fall as soon as the stretching is switched on",
        "13_stretching",
        "https://github.com/QwenLM/Qwen3/issues/1567",
    ),
    "switch": (
        "a conversation gets worse when it grows past this length, because cached keys keep their old angles",
        "deeper/13_stretching",
        "https://github.com/vllm-project/vllm/issues/3488",
    ),
    "no-rope": (
        "short prompts are fluent, but digits come in the wrong order, or the text starts to loop",
        "14_layers",
        "https://github.com/kekzl/imp/issues/515",
    ),
    "nope-list": (
        "the model repeats a word, because RoPE is missing where it was trained",
        "14_layers",
        "https://github.com/huggingface/smollm/issues/130",
    ),
    "channels": (
        "the first tokens are good, and the rest makes no sense",
        "reference/conventions",
        "https://github.com/NeuraLegion/shainet/pull/111",
    ),
    "window": (
        "outputs differ from the original as soon as a text is longer than the window",
        "reference/models",
        "https://github.com/huggingface/transformers/issues/29623",
    ),
    "refused": (
        "loading the model ends with an error",
        "reference/models",
        "https://github.com/huggingface/transformers/issues/32916",
    ),
}


@dataclass(frozen=True)
class Finding:
    """Something to know before you port, convert or stretch this model.

    `level` is "wrong" if a written value isn't used or contradicts another one, "warning" if a reader of the configuration is
    likely to build something different, and "note" otherwise. `symptom` is what it looks like, `page` where the course explains
    it, and `thread` somebody's report of it.
    """

    level: Literal["wrong", "warning", "note"]
    code: str
    text: str
    symptom: str
    page: str
    thread: str


def _found(level: Literal["wrong", "warning", "note"], code: str, text: str) -> Finding:
    return Finding(level, code, text, *CATALOGUE[code])


def findings(
    config: Mapping[str, Any], kinds: Sequence[Kind], found: Probe | None, unprobed: str, like: Model | None
) -> Iterator[Finding]:
    """Where the configuration contradicts itself or its class; `like` is the class's entry in the table of models."""
    yield from _in_the_file(config, kinds, like)
    for kind in kinds:
        if kind.done and found:
            yield from _differences(kind.written, kind.done, which(kind, len(found.layers)), found)
    if "refuses it" in unprobed:
        yield _found("wrong", "refused", unprobed)
    if unprobed:
        encodings = {kind.encoding for kind in like.attention} if like else set()
        if like and encodings == {"none"} and any(kind.written.encoding == "RoPE" for kind in kinds):
            text = f"the configuration has a base, but {like.config.removesuffix('Config')} has no RoPE in any layer"
            yield _found("warning", "no-rope", text)
        elif like and "none" in encodings and not any(kind.written.encoding == "none" for kind in kinds):
            text = f"{like.config.removesuffix('Config')} has layers without RoPE, and the configuration doesn't say which"
            yield _found("warning", "no-rope", text)


def _in_the_file(config: Mapping[str, Any], kinds: Sequence[Kind], like: Model | None) -> Iterator[Finding]:
    """What the configuration alone gives away."""
    tops = {name: config[name] for name in BASES if name in config}
    nested = any(isinstance(each, Mapping) for each in config.get("rope_parameters", {}).values())
    most = longest(config)
    for part in rope_parts(config):
        kind, inside = type_of_rope(part), part.get("rope_theta")
        if inside and tops and not nested and inside not in tops.values():
            name, value = next(iter(tops.items()))
            yield _found("wrong", "two-bases", f"the base is {value:,.0f} under {name}, and {inside:,.0f} with the scaling")
        if kind not in {*KEYS, "divisors", "none"}:
            known = ", ".join(KEYS)
            yield _found("wrong", "unread-key", f"the type of scaling is {kind!r}, and transformers knows {known}")
        unknown = [key for key in part if kind in KEYS and key not in ALWAYS | {*KEYS[kind]} and not key.endswith("_theta")]
        for key in unknown:
            instead = "; attention_factor is" if key.startswith("attn") else ""
            yield _found("wrong", "unread-key", f"{key} isn't read for {kind}{instead}")
        factor, original = part.get("factor"), part.get("original_max_position_embeddings")
        if kind == "yarn" and factor and most and original and not math.isclose(original * factor, most, rel_tol=0.01):
            if original == most:
                text = f"original_max_position_embeddings and max_position_embeddings are both {most:,}"
                text += f", but stretched by {factor:g}, the second should be {original * factor:,.0f}"
                text += f", or the first {most / factor:,.0f}"
                yield _found("warning", "lengths", text)
            else:
                text = f"{original:,} tokens stretched by {factor:g} are {original * factor:,.0f}, not {most:,}"
                yield _found("wrong", "lengths", f"{text}: original_max_position_embeddings is the length before stretching")
    if config.get("rope_scaling") and config.get("rope_parameters"):
        yield _found("warning", "scaling", "there are both rope_scaling and rope_parameters, and transformers reads the first")
    listed = config.get("no_rope_layers", ())
    off = len(listed) - sum(listed)
    if 2 * off > len(listed):
        text = f"no_rope_layers leaves {off} of {len(listed)} layers without RoPE: in this list, 1 means that a layer rotates"
        yield _found("warning", "nope-list", text)
    rotary = [kind for kind in kinds if kind.known.encoding == "RoPE"]
    total = sum(kind.count for kind in kinds)
    if any(kind.written.encoding == "RoPE" and kind.written.base is None for kind in kinds) and rotary:
        taken = [f"{kind.done.base:,.0f} in {which(kind, total)}" for kind in rotary if kind.done and kind.done.base]
        if not taken and like and default_bases(like):
            taken = [default_bases(like)]
        text = "no base is written down" + (f", and the class takes {' and '.join(taken)}" if taken else "")
        yield _found("warning", "base-missing", text)


def which(kind: Kind, number: int) -> str:
    if kind.count == number:
        return "all layers"
    some = ", ".join([*map(str, kind.layers[:3]), *(["…"] if kind.count > 3 else [])])
    return f"{kind.count} of {number} layers" + (f" ({some})" if kind.layers else "")


def _differences(written: Knowledge, done: Knowledge, where: str, found: Probe) -> Iterator[Finding]:
    """Where the class does something different from what is written."""
    if (written.encoding, done.encoding) == ("RoPE", "none"):
        nowhere = where.replace("all layers", "any layer")
        yield _found("warning", "no-rope", f"the configuration has a base, but {found.name} doesn't rotate in {nowhere}")
    elif (written.encoding, done.encoding) == ("none", "RoPE"):
        yield _found("wrong", "no-rope", f"the configuration has no RoPE in {where}, but {found.name} rotates there")
    elif done.encoding == "RoPE" and written.frequencies:
        yield from _rotations_differ(written, done, where, found)
    if written.window and not done.window:
        yield _found("wrong", "window", f"the window of {written.window:,} tokens isn't used: {found.name} has none in {where}")
    elif written.window and done.window and done.window != written.window:
        text = f"the configuration says {written.window:,} tokens, but a query of {found.name} sees {done.window:,} in {where}"
        yield _found("warning", "window", text)


def _rotations_differ(written: Knowledge, done: Knowledge, where: str, found: Probe) -> Iterator[Finding]:
    now, then = done.frequencies, written.frequencies
    stretched = written.stretch[0] != "none"
    if len(now) != len(then):
        text = f"{2 * len(then)} channels should rotate, but {found.name} rotates {2 * len(now)} in {where}"
        yield _found("wrong", "channels", text)
    elif not alike(now, then):
        base = base_of(now)
        if stretched and alike(now, written.trained):
            text = f"the scaling ({written.stretch[0]}, by {written.stretch[1]:g}) isn't used: {found.name} rotates without it"
            yield _found("wrong", "scaling", f"{text} in {where}")
        elif base and written.base and not math.isclose(base, written.base, rel_tol=1e-3):
            lost = ", and without the scaling" if stretched and math.isclose(now[0], 1, rel_tol=1e-4) else ""
            text = f"the base should be {written.base:,.0f}, but {found.name} rotates with {base:,.0f}{lost} in {where}"
            yield _found("wrong", "base", text)
        else:
            worst = max(max(a, b) / min(a, b) for a, b in zip(now, then, strict=True))
            text = f"{found.name} rotates with frequencies that differ by up to a factor of {worst:.3g} from those written down"
            yield _found("wrong", "scaling", f"{text} in {where}")
    if not math.isclose(written.attention_factor, done.attention_factor, rel_tol=1e-4):
        text = f"queries and keys should be multiplied by {written.attention_factor:.4g}, but {found.name} multiplies by "
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
    trained = knowledge.trained or now
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


def limits(config: Mapping[str, Any], kinds: Sequence[Kind], length: int | None) -> Iterator[tuple[int, str]]:
    """What happens as texts grow: lengths in tokens, and what is there."""
    total = sum(kind.count for kind in kinds)
    for kind in kinds:
        known, where = kind.known, which(kind, total)
        if known.encoding in ("learned table", "sinusoids") and known.rows:
            yield known.rows, "the table ends: the next position has no row"
        if known.window:
            yield known.window, f"the window of {where} is full: keys farther away are out of sight there"
        if known.encoding == "T5's bias" and config.get("relative_attention_max_distance"):
            yield config["relative_attention_max_distance"], "all larger distances share the last bucket"
        if known.encoding == "Inkling's bias" and known.rows and not known.window:
            yield known.rows, f"from this distance on, the bias of {where} is 0"
        if known.encoding != "RoPE" or not known.frequencies or 0 < (known.window or 0) <= (length or 0):
            continue
        if known.far and known.stretch[2]:
            yield known.stretch[2], "the frequencies switch: cached keys keep the old angles"
        if length:
            found = pairs(known, length)
            if found.first_new:
                yield found.first_new, f"the first distance with an angle that training didn't show, in {where}"
            if found.brakes:
                back = math.ceil(2 * math.pi / (known.far or known.frequencies)[found.brakes[0]])
                yield back, f"pair {found.brakes[0]} completes its first circle in {where}"
