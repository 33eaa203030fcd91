"""One run, one file: weights, configuration, record and provenance, whole or not at all."""

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posenc_course.experiment._require import require_device
from posenc_course.experiment.config import Config, Run, build_model
from posenc_course.transformer import Decoder


def save_run(path: Path, model: Decoder, config: Config, record: dict[str, Any], made: dict[str, Any]) -> None:
    """Write weights (float16), configuration, record and provenance as one .npz: whole, or not at all."""
    described = json.dumps({"config": config.as_json(), "made": made, "record": record})
    # Parameters, since state_dict names those of the scheme once for every layer.
    arrays: dict[str, Any] = {name: value.detach().cpu().numpy().astype(np.float16) for name, value in model.named_parameters()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, described=np.frombuffer(described.encode(), np.uint8), **arrays)
    write_whole(path, buffer.getvalue())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name first, and rename it when all of it is on the disk."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def read_run(path: Path) -> dict[str, Any]:
    """What `save_run` wrote: {"config", "made", "record", "weights": {name: float16 array}}.

    Raises ValueError for a file that is no whole run.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            weights = {name: stored[name] for name in stored.files}
        described = json.loads(weights.pop("described").tobytes())
        return {"config": described["config"], "made": described["made"], "record": described["record"], "weights": weights}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} holds no whole run: delete it, and `run` makes it anew") from error


def restore(stored: dict[str, Any], device: str = "cpu") -> tuple[Decoder, Config, Run]:
    """The trained model, its configuration and its run, from what `read_run` returned."""
    try:
        config = config_from(stored["config"])
        run = Run(*(stored["record"][key] for key in ("part", "scheme", "seed", "setting")))
        model = build_model(config, run)
        for name, parameter in model.named_parameters():
            parameter.data.copy_(torch.from_numpy(stored["weights"][name]))
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(
            f"these weights do not fit what stands beside them ({type(error).__name__}): take read_run's"
        ) from error
    return model.to(require_device(device)).eval(), config, run


def config_from(stored: dict[str, Any]) -> Config:
    """The configuration that `Config.as_json` wrote."""
    try:
        fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in stored.items()}
        return Config(**fields)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"no configuration: {error}; delete what holds it") from error
