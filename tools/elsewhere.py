"""Runs the notebooks as if on different computers: `make test-elsewhere` calls it.

It simulates an older processor (no vector features in NumPy and torch, different matrix products), with one thread and then
two, and after that processors that nobody has seen (`tools/perturbed_rounding.py`), with three seeds.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def older(threads: int) -> dict[str, str]:
    """The environment of an older processor with so many threads."""
    return {
        "OMP_NUM_THREADS": str(threads),
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])),
        "OPENBLAS_CORETYPE": "Nehalem",
    }


def perturbed(seed: int, folder: Path) -> dict[str, str]:
    """The environment of a processor that nobody has seen; the folder holds what each kernel runs before its first cell."""
    startup = folder / "profile_default" / "startup" / "perturbed.py"
    startup.parent.mkdir(parents=True)
    startup.write_text(f"from tools.perturbed_rounding import begin\nbegin({seed})\n")
    return {"IPYTHONDIR": str(folder), "PYTHONPATH": str(ROOT)}


def main(tests: list[str], seeds: list[int]) -> int:
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        computers = {} if seeds else {"older, one thread": older(1), "older, two threads": older(2)}
        computers |= {f"perturbed, seed {seed}": perturbed(seed, Path(folder, str(seed))) for seed in seeds or (0, 1, 2)}
        for name, environment in computers.items():
            print(f"── {name}", flush=True)
            command = [sys.executable, "-m", "pytest", "--quiet", *tests]
            if subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode:
                failed.append(name)
    print("\n".join(f"fails: {name}" for name in failed) or f"all is well on {len(computers)} simulated computers")
    return int(bool(failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["book", "exercises/source"], help="notebooks or folders (default: all)")
    parser.add_argument("--seeds", type=int, nargs="*", help="simulate only processors that nobody has seen, with these seeds")
    sys.exit(main(**vars(parser.parse_args())))
