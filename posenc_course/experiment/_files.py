"""Files of runs: one for each run, with its weights, configuration, record and provenance, or one table of all runs."""

import io
import json
import os
import platform
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posenc_course._system import processor, write_whole
from posenc_course.experiment._require import require_device
from posenc_course.experiment.config import Config, Run, build_model
from posenc_course.experiment.corpus import load_corpus
from posenc_course.transformer import Decoder


def packed(model: Decoder, config: Config, record: dict[str, Any], made: dict[str, Any]) -> bytes:
    """Return the content of a run's file, an .npz with weights (float16), configuration, record and provenance."""
    described = json.dumps({"config": config.as_json(), "made": made, "record": record})
    # We take parameters, because state_dict would list those of the scheme once for every layer.
    arrays: dict[str, Any] = {name: value.detach().cpu().numpy().astype(np.float16) for name, value in model.named_parameters()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, described=np.frombuffer(described.encode(), np.uint8), **arrays)
    return buffer.getvalue()


def write_runs(path: Path, head: dict[str, Any], runs: list[dict[str, Any]]) -> None:
    """Write one file with the fields of `head` and all "runs", one line for each run."""
    lines = ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs)
    top = "".join(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)},\n" for key, value in head.items())
    write_whole(path, f'{{{top}"runs": [\n{lines}\n]}}\n'.encode())


def read_run(path: Path | zipfile.Path) -> dict[str, Any]:
    """Read a file with what `packed` returned: {"config", "made", "record", "weights": {name: float16 array}}.

    Raises ValueError for a file that doesn't hold a complete run, or holds a different run from the one in its name.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            weights = {name: stored[name] for name in stored.files}
        found: dict[str, Any] = json.loads(weights.pop("described").tobytes()) | {"weights": weights}
        Config(**found["config"])
        run = run_of(found["record"])
    except Exception as error:
        raise ValueError(f"{path} does not hold a complete run ({error!r}): delete it, and `run` remakes it") from error
    if path.stem != run.name:
        raise ValueError(f"{path} holds the run {run.name} under another name: delete it, or rename it to {run.name}.npz")
    return found


def restore(stored: dict[str, Any]) -> Decoder:
    """Return the trained model, ready to be evaluated, from what `read_run` returned."""
    run, weights = run_of(stored["record"]), stored["weights"]
    model = build_model(Config(**stored["config"]), run)
    own = dict(model.named_parameters())
    if {name: tuple(parameter.shape) for name, parameter in own.items()} != {name: w.shape for name, w in weights.items()}:
        raise ValueError(f"the weights of {run.name} do not fit its configuration: delete its file, and `run` remakes it")
    for name, parameter in own.items():
        parameter.data.copy_(torch.from_numpy(weights[name]))
    return model.eval()


def provenance(device: str = "cpu") -> dict[str, Any]:
    """Return the machine and the software versions that this process uses."""
    where = require_device(device)
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.system(),
        "processor": f"{processor()}, {os.cpu_count()} cores, {torch.backends.cpu.get_cpu_capability()}",
        "device": torch.cuda.get_device_name(where) if where.type == "cuda" else where.type,
        "corpus": load_corpus().sha256,
        "precision": f"float32, matrix products at {torch.get_float32_matmul_precision()!r}",
    }


def run_of(record: dict[str, Any]) -> Run:
    """Return the run that a record belongs to."""
    return Run(*(record[key] for key in ("part", "scheme", "seed", "setting")))


def diverged(record: dict[str, Any]) -> bool:
    """Return whether training diverged, so that some measurement is NaN or infinite."""
    return bool(re.search("NaN|Infinity", json.dumps(record["evaluation"])))
