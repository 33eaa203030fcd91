"""What a released model, SmolLM2-135M-Instruct, does beyond its training length, and what its heads do with their pairs.

    python -m tools.lab.released                       # takes a day on two cores
    python -m tools.lab.released --device cuda         # takes some minutes

Each group of measurements has its own file in posenc_course/data/released, and an interrupted call continues with the next
one. Ten texts of 14,336 tokens are read, five pieces of the course's held-out code and five of prose (prose.xz says whose);
beside them, the model counts from one to twenty. `--tokens` shortens all lengths alike. Losses are means over 64, 128 or 256
tokens, in thousandths of a nat. Nothing is trained.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from posenc_course import llama
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.llama import released_weights
from tools.lab.released import heads, lengths, reading
from tools.lab.released.reading import FOLDER, Bench, Record, Steps

TOKENS = 14_336  # 14 units, of which the model was trained on 8
GROUPS: dict[str, Callable[[Bench, list[Record]], Steps]] = {
    "cliff": lengths.cliff,
    "windows": lengths.windows,
    "scan": lengths.scan,
    "recipes": lengths.recipes,
    "written": lengths.written,
    "heads": heads.heads,
    "precision": lengths.precision,
    "ablations": heads.ablations,
    "chosen": heads.chosen,
    "controls": heads.controls,
    "guilty": heads.guilty,
    "clamped": lengths.clamped,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a released model does beyond its training length.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="per text, a multiple of 224")
    parser.add_argument("--groups", nargs="*", default=[*GROUPS], choices=GROUPS)
    options = parser.parse_args()
    begun = time.monotonic()
    torch.set_float32_matmul_precision("highest")
    bench = reading.prepare(options.device, options.tokens)
    llama.attention = reading.fused  # type: ignore[attr-defined, assignment]
    now: dict[str, Any] = provenance(options.device) | {
        "weights": {"file": released_weights().name, "sha256": hashlib.sha256(released_weights().read_bytes()).hexdigest()},
        "prose": hashlib.sha256((FOLDER / "prose.xz").read_bytes()).hexdigest(),
        "tokens": options.tokens,
        "attention": "fused",
    }
    for group in options.groups:
        path = options.folder / f"{group}.json"
        stored = json.loads(path.read_text("utf-8")) if path.exists() else {"made": [], "runs": []}
        made, done = stored["made"] if now in stored["made"] else [*stored["made"], now], stored["runs"]
        head = {"command": "python -m tools.lab.released", "made": made}  # each run has the index of its entry in `made`
        with torch.inference_mode():
            for setting, measure in GROUPS[group](bench, done):
                if setting in [run["setting"] for run in done]:
                    continue
                done.append({"setting": setting, "made": made.index(now)} | measure())
                print(f"{time.monotonic() - begun:5.0f} s  {group} {setting}", flush=True)
                write_runs(path, head, done)


if __name__ == "__main__":
    main()
