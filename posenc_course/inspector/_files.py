"""Read a configuration from a file, from standard input, or from the header of a GGUF file."""

import json
import sys
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any

from posenc_course.inspector._config import tables
from posenc_course.models import load_models


def load_configurations() -> dict[str, dict[str, Any]]:
    """Configurations of released models by the models' names, each {"source", "config"}, as public repositories store them.

    Keys that have nothing to do with positions are left out.
    """
    stored: dict[str, dict[str, Any]] = json.loads(
        resources.files("posenc_course").joinpath("data/configurations.json").read_text("utf-8")
    )
    return stored


def read_config(source: str | Path) -> dict[str, Any]:
    """The configuration in a file or folder: a config.json, a params.json, or the header of a GGUF file in the same words.

    The source "-" is standard input. Raises ValueError if there is no such file, or if it isn't a configuration.
    """
    if source == "-":
        return _read_json(sys.stdin.buffer.read(), "standard input")
    path = Path(source)
    if path.is_dir():
        inside = [path / name for name in ("config.json", "params.json")] + sorted(path.glob("*.gguf"))
        path = next(filter(Path.is_file, inside), path / "config.json")
    if not path.is_file():
        known = {name.lower(): name for name in [*load_configurations(), *(model.name for model in load_models())]}
        near = [known[name] for name in get_close_matches(str(source).lower(), known, 3, 0.5)]
        instead = "give a config.json, a folder with one, a GGUF file, or the name of a model that the course knows"
        raise ValueError(f"there is no file {str(path)!r}: {instead}{', such as ' if near else ''}{', '.join(near)}")
    with path.open("rb") as file:
        magic = file.read(4)
    return _read_gguf(path) if magic == b"GGUF" else _read_json(path.read_bytes(), repr(str(source)))


def _read_json(given: bytes, name: str) -> dict[str, Any]:
    try:
        config = json.loads(given.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} isn't JSON ({error}): give the config.json of a model, or a GGUF file") from None
    if not isinstance(config, dict):
        raise ValueError(f"{name} holds a {type(config).__name__}: a configuration is a JSON object with keys")
    return config


def _read_gguf(path: Path) -> dict[str, Any]:
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ValueError(f"{str(path)!r} is a GGUF file: to read it, pip install gguf") from None
    try:
        reader = GGUFReader(path)
        values = {name: value.contents() for name, value in reader.fields.items() if not name.startswith("tokenizer.")}
    except Exception as error:  # of many kinds, from NumPy
        raise ValueError(f"{str(path)!r} isn't a whole GGUF file ({error}): download it again") from None
    name = values.get("general.architecture", "")

    def get(key: str) -> Any:
        value = values.get(f"{name}.{key}")
        return max(value) if isinstance(value, list) and key.startswith("attention.head") else value

    words = tables()["gguf_keys"]
    scaling = {ours: get(f"rope.scaling.{theirs}") for theirs, ours in words["scaling"].items()}
    scaling = {key: value for key, value in scaling.items() if value}  # 0 is another way to leave it out
    tensors = {tensor.name: [float(value) for value in tensor.data] for tensor in reader.tensors if "rope_f" in tensor.name}
    for theirs, (kind, ours) in words["tensors"].items():
        if theirs in tensors:
            scaling |= {"rope_type": kind, ours: tensors[theirs]}
    config = {
        "model_type": name,
        "gguf": str(values.get("general.name", path.name)),
        "head_dim": (get("embedding_length") or 0) // (get("attention.head_count") or 1),
        "rope_scaling": scaling if scaling.get("rope_type", "none") != "none" else None,
    }
    config |= {ours: get(theirs) for theirs, ours in words["top"].items() if get(theirs)}
    if multiplier := get("rope.scaling.yarn_log_multiplier"):  # as in the configuration that it was converted from
        scaling |= dict.fromkeys(("mscale", "mscale_all_dim"), 10 * multiplier)
        config["qk_rope_head_dim"] = config.pop("rotary_dim", 0)
        config["qk_nope_head_dim"] = config["head_dim"] - config["qk_rope_head_dim"]
    read = {*words["top"], "rope.scaling.yarn_log_multiplier", *(f"rope.scaling.{key}" for key in words["scaling"])}
    rest = {key.removeprefix(f"{name}."): value for key, value in values.items() if key.startswith(f"{name}.")}
    return {key: value for key, value in (rest | config).items() if value and key not in read}
