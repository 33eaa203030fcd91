"""Prints what is new in the installed transformers since somebody last compared the table of models with it.

    make models

A line names each new type of RoPE, and each model with attention that is neither in the table nor left out for a reason. The
exit status is 1 if there are any.

The table, posenc_course/data/models.json, is edited by hand. A released value needs a source that you've seen, on the day
`looked`, and is null otherwise. Give models that don't matter a reason under `left_out`, which the page shows, and write the
date, the version and its types of RoPE beside it. `make execute CHAPTER=models` makes the table's page.

    .venv/bin/python -m tools.lab.models --classes

measures the classes that the inspector knows without running them.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import transformers
from transformers import CONFIG_MAPPING

from posenc_course._system import write_whole
from posenc_course.experiment.corpus import DATA
from posenc_course.inspector._config import names, rules, tables
from posenc_course.inspector._layers import Knowledge, done, window_seen
from posenc_course.inspector._probe import NotProbed, Probe, _code, _mentions, probe, read_by_library
from posenc_course.models import last_look, load_models

ATTENTION = re.compile(r"^class \w*Attention\w*\(", re.MULTILINE)
CLASS = re.compile(r"^class (\w+Config)\(", re.MULTILINE)
# Its code is read as text, because importing 500 models takes minutes.
LIBRARY = Path(str(transformers.__file__)).parent


def rope_types() -> set[str]:
    """The types with a function for their frequencies, and those that a configuration may name."""
    code = (LIBRARY / "modeling_rope_utils.py").read_text(encoding="utf-8")
    (functions,) = re.findall(r"^ROPE_INIT_FUNCTIONS\b[^=]*= \{(.*?)^\}", code, re.MULTILINE | re.DOTALL)
    return {*re.findall(r'"(\w+)":', functions), *re.findall(r"def _validate_(\w+)_rope_parameters", code)}


def folders() -> set[str]:
    """The model folders whose code defines an attention layer."""
    files = LIBRARY.glob("models/*/modeling_*.py")
    return {file.parent.name for file in files if ATTENTION.search(file.read_text(encoding="utf-8"))}


def in_table() -> set[str]:
    """The folders whose configuration classes the table has."""
    code = {file.parent.name: file.read_text(encoding="utf-8") for file in LIBRARY.glob("models/*/configuration_*.py")}
    defined = {name: folder for folder, text in code.items() for name in CLASS.findall(text)}
    return {defined[model.config] for model in load_models() if model.config in defined}


def news() -> list[str]:
    """One line for each type that the last look didn't see, and for each folder that is neither in the table nor left out."""
    look = last_look()
    known = in_table().union(*look.left_out.values())
    return [
        *(f"new type of RoPE: {name}" for name in sorted(rope_types() - {*look.rope_types})),
        *(f"new model with attention: {name}" for name in sorted(folders() - known)),
    ]


# ── classes ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

# What a class can't be built without.
STARTS: dict[str, dict[str, Any]] = {
    "dbrx": {"attn_config": {"clip_qkv": 8, "rope_theta": 10_000}},
    "deepseek_v2": {"n_group": 1, "topk_group": 1, "num_experts_per_tok": 1},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "glm4v_moe_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000, "mrope_section": [8, 12, 12]}},
    "glm4v_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000, "mrope_section": [8, 12, 12]}},
}
OF_LIBRARY = {"default_theta", "mrope_section", "position_ids", "standardize_rope_params", "validate_rope"}
# What a row keeps of a class's own defaults, which hold where a file has no such key: keys by what they mean, and by name.
KEPT = ("layers", "heads", "hidden", "windows")
ALSO = (
    "head_dim",
    "global_head_dim",
    "qk_rope_head_dim",
    "qk_nope_head_dim",
    "use_sliding_window",
    "max_window_layers",
    "local_attention",
    "cross_attention_layers",
    "relative_attention_num_buckets",
)


def class_row(kind: str) -> dict[str, Any] | None:
    """What the inspector keeps of the class of this model type, measured by its defaults; None if it can't be run."""
    config = {"model_type": kind} | STARTS.get(kind, {})
    try:
        library = read_by_library(config, config)
        found = probe(library, config if library.config.model_type == kind else library.config.to_dict())
    except NotProbed:
        return None
    asked, code = library.config, _code(library.config)
    if asked.model_type != kind and asked.model_type in CONFIG_MAPPING:
        return {"as": asked.model_type}
    native = asked.attribute_map or {}
    keys = [key for name in KEPT for key in names(name)] + [*ALSO]
    own = {native.get(key, key) for key in keys} & {*rules()} & library.values.keys()
    defaults: dict[str, Any] = {
        key: value for key in sorted(own) if isinstance(value := getattr(type(asked), key, None), int | float | list)
    }
    types = (
        getattr(asked, "layers_block_type", None) or library.values.get("layer_types") or library.values.get("attention_layers")
    )
    recurrent = {at for at, each in enumerate(types or ()) if each in names("no_attention")}
    sides = {side: layers_of(found, side, {*range(number)} - recurrent) for side, number in found.numbers().items()}
    layers = {at: known for of_side in sides.values() for at, known in of_side.items()}
    rotary = [known for known in layers.values() if known.encoding == "RoPE"]
    row: dict[str, Any] = {"name": found.name}
    if rotary:
        rope = library.values.get("rope_parameters") or {}
        narrow, wide = (next((rope[t] for t in names(n) if isinstance(rope.get(t), dict)), rope) for n in ("narrow", "wide"))
        narrow, wide = ({key: value for key, value in part.items() if key != "type"} for part in (narrow, wide))
        if narrow | {"rope_theta": 0} != wide | {"rope_theta": 0}:
            defaults["rope_parameters"] = {"sliding_attention": narrow, "full_attention": wide}
        else:
            defaults["rope_theta"] = wide.get("rope_theta") or library.values.get("rope_theta") or rotary[0].base
            defaults["partial_rotary_factor"] = wide.get("partial_rotary_factor")
            if narrow.get("rope_theta") != wide.get("rope_theta"):
                defaults["rope_local_base_freq"] = narrow.get("rope_theta")
        row["layout"] = rotary[0].layout if len({known.layout for known in rotary}) == 1 else None
        row["last"] = bool(rotary[0].first_channel) and not library.values.get("qk_rope_head_dim")
    if isinstance(types, list) and len({*types}) > 1:
        row["types"] = period(types)
        attending = {types[at] for at in layers if layers[at].encoding != "none"}
        row["without"] = sorted({types[at] for at in layers} - attending)
    turning = [layers[at].encoding != "none" for at in layers]
    if len({*turning}) > 1 and not row.get("without"):
        row["rotates"] = period(turning)
    values = asked.to_dict()
    if "" in sides:
        row |= encoding_row(found, sides[""], values)
    else:
        row["sides"] = {
            side: encoding_row(found, sides[side], values) | {"layers": next(key for key in LAYERS[side] if key in values)}
            for side in LAYERS
            if side in sides
        }
    for each in (row, *row.get("sides", {}).values()):
        if "window" in each:
            defaults[each["window"][0]] = values[each["window"][0]]
    row["also"] = sorted(names_in(code) - {*rules(), *found.windows})
    row["defaults"] = {key: value for key, value in defaults.items() if value is not None}
    return without_nothing(row) | {"reads": [key for key in tables()["by_class"] if key in native or _mentions(code, key)]}


LAYERS = {
    "encoder": ("encoder_layers", "num_encoder_layers", "encoder_num_hidden_layers", "num_layers", "num_hidden_layers"),
    "decoder": ("decoder_layers", "num_decoder_layers", "decoder_num_hidden_layers", "num_layers", "num_hidden_layers"),
}


def without_nothing(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value not in (None, [], {}, 0)}


def layers_of(found: Probe, side: str, numbers: set[int]) -> dict[int, Knowledge]:
    """What each layer of a side with attention did; it isn't known, if the probe can't tell."""
    attending = [at for at in sorted(numbers) if found.layer(side, at)]
    return {at: done(found, side, at, Knowledge("RoPE")) or Knowledge(window=window_seen(found, side, at)) for at in attending}


def encoding_row(found: Probe, layers: dict[int, Knowledge], values: dict[str, Any]) -> dict[str, Any]:
    """What the layers of a side have in common: their encodings, and their table's rows, by the key that counts them."""
    encodings = {known.encoding for known in layers.values()}
    first = next(iter(layers.values()))
    row: dict[str, Any] = {"encodings": [None] if None in encodings else sorted(map(str, encodings))}
    window = next((known.window for known in layers.values() if known.window), None)
    if window and len(found.windows) == 1:
        ((key, asked),) = found.windows.items()
        asked = asked[0] if isinstance(asked, list) else asked
        times = 2 if window > 1.5 * asked else 1
        row["window"] = [key, times, window - times * asked]
    row["blind"] = any(known.window is None for known in layers.values())
    row["more"] = any(known.more for known in layers.values())
    row["grows"] = first.encoding in ("learned table", "sinusoids") and not first.rows
    if first.encoding in ("learned table", "sinusoids") and first.rows:
        row["first_row"] = first.first_row
        lengths = ["max_position_embeddings", *(key for key in values if "position" in key)]
        near = [key for key in lengths if isinstance(values.get(key), int) and 0 <= first.rows - values[key] <= 8]
        if near:
            row |= {"rows": near[0], "more_rows": first.rows - values[near[0]]}
    if row.get("rows") in names("lengths"):
        del row["rows"]
    return without_nothing(row)


def names_in(code: str) -> set[str]:
    """What a class's code reads that looks like positions."""
    config = r'config\.(\w+)|config, "(\w+)"|kwargs\.\w+\("(\w+)"|^    (\w+): '
    names = {name for found in re.findall(config, code, re.MULTILINE) for name in found if name} - OF_LIBRARY
    return {name for name in names if re.search(tables()["like_positions"], name)}


def period(values: list[Any]) -> list[Any]:
    """The shortest beginning that repeats."""
    sizes = range(1, len(values) + 1)
    return next(values[:size] for size in sizes if all(value == values[at % size] for at, value in enumerate(values)))


def store_classes() -> None:
    rows = {}
    for kind in sorted(CONFIG_MAPPING):
        try:
            row = class_row(kind)
        except Exception as error:  # a class may do anything
            print(f"{kind}: {type(error).__name__}: {error}", file=sys.stderr)
            row = None
        if row:
            rows[kind] = row
    made = json.dumps({"command": "python -m tools.lab.models --classes", "transformers": version("transformers")})
    lines = ",\n".join(f"{json.dumps(kind)}: {json.dumps(row)}" for kind, row in rows.items())
    write_whole(DATA / "classes.json", f'{{"made": {made},\n"classes": {{\n{lines}\n}}}}\n'.encode())


if __name__ == "__main__":
    if sys.argv[1:] == ["--classes"]:
        store_classes()
    else:
        new = news()
        print("\n".join(new or ["nothing new"]))
        sys.exit(bool(new))
