"""Runs the notebooks as if on different computers: `make test-elsewhere` calls it.

It simulates an older processor (no vector features in NumPy and torch, different matrix products), with one thread and then
two, and after that processors that nobody has seen (`tools/perturbed_rounding.py`), with three seeds.
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


def older(threads: int) -> dict[str, str]:
    """The environment of an older processor with so many threads, once it has been seen to work."""
    here = openblas()
    core = next((name for name in OLD_CORES.get(platform.machine(), []) if here and name.lower() != here[0]), None)
    settings = {
        "OMP_NUM_THREADS": str(threads),
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": " ".join(vector_features()),
        "OPENBLAS_CORETYPE": core or "",
    }
    settings = {name: value for name, value in settings.items() if value}
    # Unknown names in these variables are ignored silently, so we check their effect.
    wanted = (
        f"NumPy's vector features [], OpenBLAS {(core.lower(), threads) if core else here}, "
        f"torch's processor DEFAULT, torch's threads {threads}"
    )
    got = subprocess.run(
        [sys.executable, __file__, "describe"], env=os.environ | settings, check=True, capture_output=True, text=True
    ).stdout.strip()
    if got != wanted:
        sys.exit(f"This machine can't simulate a different one. Asked for: {wanted}. Got: {got}.")
    return settings


def perturbed(seed: int, folder: Path) -> dict[str, str]:
    """The environment of a processor that nobody has seen; the folder holds what its kernels read."""
    startup = folder / "profile_default" / "startup" / "perturbed.py"  # each kernel runs it before its first cell
    startup.parent.mkdir(parents=True)
    startup.write_text(f"__import__('tools.perturbed_rounding', fromlist=['begin']).begin({seed})\n")
    return {"IPYTHONDIR": str(folder), "PYTHONPATH": str(ROOT)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["book", "exercises/source"], help="notebooks or folders (default: all)")
    parser.add_argument("--seeds", type=int, nargs="*", help="simulate only processors that nobody has seen, with these seeds")
    chosen = parser.parse_args()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        settings = {} if chosen.seeds else {"older, one thread": older(1), "older, two threads": older(2)}
        settings |= {f"perturbed, seed {seed}": perturbed(seed, Path(folder, str(seed))) for seed in chosen.seeds or (0, 1, 2)}
        for name, environment in settings.items():
            print(f"── {name}", flush=True)
            command = [sys.executable, "-m", "pytest", "--quiet", *chosen.tests]
            if subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode:
                failed.append(name)
    print("\n".join(f"fails: {name}" for name in failed) or f"all is well on {len(settings)} simulated computers")
    return int(bool(failed))


if __name__ == "__main__":
    print(computer()) if sys.argv[1:] == ["describe"] else sys.exit(main())
