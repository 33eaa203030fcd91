"""Runs the chapters' and assignments' tests as if on different computers: `make test-elsewhere` calls it.

It simulates an older processor (no vector features in NumPy and torch, different matrix products), with one thread and then
two, and after that a processor that nobody has seen (`tools/unseen.py`), with three seeds.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
OLD_CORES = {"x86_64": ["Nehalem", "Prescott"], "aarch64": ["ARMV8", "CORTEXA57"]}  # OpenBLAS's names


def vector_features() -> list[str]:
    """The optional processor features that NumPy uses."""
    return np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


def openblas() -> tuple[str, int] | None:
    """The processor core that NumPy's OpenBLAS computes for, and its threads; None if NumPy uses a different library."""
    found = [info for info in threadpool_info() if info["internal_api"] == "openblas"]
    return (found[0]["architecture"].lower(), found[0]["num_threads"]) if found else None


def computer() -> str:
    """A description of what this process computes with."""
    return (
        f"NumPy's vector features {vector_features()}, OpenBLAS {openblas()}, "
        f"torch's processor {torch.backends.cpu.get_cpu_capability()}, torch's threads {torch.get_num_threads()}"
    )


def older(tests: list[str]) -> int:
    """Run the tests as an older processor would, with one thread and with two; return pytest's highest exit status."""
    here = openblas()
    core = next((name for name in OLD_CORES.get(platform.machine(), []) if here and name.lower() != here[0]), None)
    status = 0
    for threads in 1, 2:
        settings = {
            "OMP_NUM_THREADS": str(threads),
            "ATEN_CPU_CAPABILITY": "default",
            "MKL_CBWR": "COMPATIBLE",
            "NPY_DISABLE_CPU_FEATURES": " ".join(vector_features()),
            "OPENBLAS_CORETYPE": core or "",
        }
        environment = os.environ | {name: value for name, value in settings.items() if value}
        # Unknown names in these variables are ignored silently, so we check their effect.
        wanted = (
            f"NumPy's vector features [], OpenBLAS {(core.lower(), threads) if core else here}, "
            f"torch's processor DEFAULT, torch's threads {threads}"
        )
        got = subprocess.run(
            [sys.executable, __file__, "describe"], env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()
        if got != wanted:
            sys.exit(f"This machine can't simulate a different one. Asked for: {wanted}. Got: {got}.")
        print(f"\n{got}", flush=True)
        status = max(status, subprocess.call([sys.executable, "-m", "pytest", *tests], env=environment))
    return status


def unseen(seed: int, tests: list[str]) -> int:
    """Run the tests as a processor would that nobody has seen; return pytest's exit status."""
    print(f"\na processor that nobody has seen, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        startup = Path(folder, "profile_default", "startup", "unseen.py")  # each kernel runs it before its first cell
        startup.parent.mkdir(parents=True)
        startup.write_text(f"__import__('tools.unseen', fromlist=['begin']).begin({seed})\n")
        environment = os.environ | {"IPYTHONDIR": folder, "PYTHONPATH": str(ROOT)}
        return subprocess.call([sys.executable, "-m", "pytest", *tests], env=environment)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["book", "exercises/source"], help="notebooks or folders (default: all)")
    parser.add_argument(
        "--seeds", type=int, nargs="*", help="simulate only the processor that nobody has seen, with these seeds"
    )
    chosen = parser.parse_args()
    first = 0 if chosen.seeds else older(chosen.tests)
    return max(first, *(unseen(seed, chosen.tests) for seed in chosen.seeds or (0, 1, 2)))


if __name__ == "__main__":
    print(computer()) if sys.argv[1:] == ["describe"] else sys.exit(main())
