"""What a released model, SmolLM2-135M-Instruct, does beyond its training length, and what its heads do with their pairs.

    python -m tools.lab.released                       # takes some minutes on a graphics card, and a day on two cores
    python -m tools.lab.released cliff scan            # measures two of the groups

All measurements are in posenc_course/data/released/measured.json; after a new one, run `make checksums`. Ten texts of 14,336
tokens are read, five pieces of the held-out code and five of prose (prose.xz says whose); beside them, the model counts
from one to twenty. Losses are means over 64, 128 or 256 tokens, in thousandths of a nat. Nothing is trained.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from posenc_course import llama
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.llama import released_weights
from tools.lab.released import heads, lengths, reading
from tools.lab.released.reading import FOLDER, Bench, Record, Steps

IN_ORDER: list[Callable[[Bench], Steps]] = [
    *(lengths.cliff, lengths.windows, lengths.scan, lengths.recipes, lengths.written, heads.heads, lengths.precision),
    *(heads.ablations, heads.chosen, heads.controls, heads.guilty, lengths.clamped),
]
TABLE = "measured.json"
GROUPS = {group.__name__: group for group in IN_ORDER}


@torch.inference_mode()
def measure(bench: Bench, group: str, made: Record, folder: Path = FOLDER) -> None:
    """Make one group's measurements, each of which has the index of its entry in `made`, and put them in the table."""
    runs: list[Record] = []
    for setting, found in GROUPS[group](bench):
        runs.append({"group": group, "setting": setting, "made": 0} | found)
        print(group, setting, flush=True)
    stored = json.loads((folder / TABLE).read_text("utf-8"))
    others = [run for run in stored["runs"] if run["group"] != group]
    head = {"command": "python -m tools.lab.released", "made": stored["made"] | {group: [made]}}
    write_runs(folder / TABLE, head, others + runs)


def main(groups: list[str]) -> None:
    torch.set_float32_matmul_precision("highest")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    llama.attention = reading.fused  # type: ignore[attr-defined, assignment]
    made = provenance(device) | {
        "weights": {"file": released_weights().name, "sha256": hashlib.sha256(released_weights().read_bytes()).hexdigest()},
        "prose": hashlib.sha256((FOLDER / "prose.xz").read_bytes()).hexdigest(),
        "tokens": reading.TOKENS,
        "attention": "fused",
    }
    bench = reading.prepare(device)
    for group in groups:
        measure(bench, group, made)


if __name__ == "__main__":
    main(sys.argv[1:] or [*GROUPS])
