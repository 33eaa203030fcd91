"""Runs the notebooks as if on different computers: `make test-elsewhere` calls it.

It simulates an older processor (no vector features in NumPy and torch, different matrix products), with one thread and then
two, and after that a processor that nobody has seen (`tools/unseen.py`), with three seeds. A table shows what was run.

Each notebook's report is stored in _elsewhere as soon as it is complete, under a hash of all that it depends on. So an
interrupted call continues where it stopped, and a later call runs what has changed or failed.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import torch
from threadpoolctl import threadpool_info  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / "_elsewhere"
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


def unseen(seed: int, folder: Path) -> dict[str, str]:
    """The environment of a processor that nobody has seen; the folder holds what its kernels read."""
    startup = folder / "profile_default" / "startup" / "unseen.py"  # each kernel runs it before its first cell
    startup.parent.mkdir(parents=True)
    startup.write_text(f"__import__('tools.unseen', fromlist=['begin']).begin({seed})\n")
    return {"IPYTHONDIR": str(folder)}


@cache
def surroundings() -> bytes:
    """What all notebooks depend on."""
    package = sorted(path for path in ROOT.glob("posenc_course/**/*") if path.is_file() and path.suffix != ".pyc")
    others = [ROOT / "requirements.lock", ROOT / "conftest.py", Path(__file__), Path(__file__).with_name("unseen.py")]
    return b"".join(sha256(path.read_bytes()).digest() for path in package + others)


def report(setting: str, environment: dict[str, str], notebook: Path) -> dict[str, bool]:
    """Which cells of the notebook fail, in this call or in an earlier one."""
    name = sha256(f"{setting} {notebook}".encode() + notebook.read_bytes() + surroundings()).hexdigest()
    stored = STORE / f"{name[:16]}.xml"
    if not stored.exists() or any(failing(stored).values()):
        new = stored.with_suffix(".new")
        command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-n0", "--quiet", f"--junitxml={new}", str(notebook)]
        complete = os.environ | environment | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=complete, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode not in (0, 1):  # pytest was stopped, or couldn't begin
            sys.exit(done.stdout)
        new.replace(stored)
        print(f"{setting}: {os.path.relpath(notebook, ROOT)}\n{done.stdout}", flush=True)
    return failing(stored)


def failing(stored: Path) -> dict[str, bool]:
    cases = ET.parse(stored).iter("testcase")
    return {case.attrib["name"]: case.find("failure") is not None or case.find("error") is not None for case in cases}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["book", "exercises/source"], help="notebooks or folders (default: all)")
    parser.add_argument(
        "--seeds", type=int, nargs="*", help="simulate only the processor that nobody has seen, with these seeds"
    )
    chosen = parser.parse_args()
    places = [(ROOT / test).resolve() for test in chosen.tests]
    found = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*.ipynb")))]
    notebooks = [path for path in found if ".ipynb_checkpoints" not in path.parts]
    if not notebooks:
        parser.error(f"no notebooks in {', '.join(chosen.tests)}")
    STORE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        settings = {} if chosen.seeds else {"older, one thread": older(1), "older, two threads": older(2)}
        settings |= {f"unseen, seed {seed}": unseen(seed, Path(folder, str(seed))) for seed in chosen.seeds or (0, 1, 2)}
        reports = {name: list(pool.map(partial(report, name, settings[name]), notebooks)) for name in settings}
    print(f"{'setting':20}{'notebooks':>10}{'cells':>10}{'fail':>10}")
    for name, each in reports.items():
        print(f"{name:20}{len(each):10}{sum(map(len, each)):10}{sum(sum(cells.values()) for cells in each):10}")
    faults = [
        f"{name}: {os.path.relpath(notebook, ROOT)}, {cell}"
        for name, each in reports.items()
        for notebook, cells in zip(notebooks, each, strict=True)
        for cell, fails in cells.items()
        if fails
    ]
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    try:
        print(computer()) if sys.argv[1:] == ["describe"] else sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nStopped. The next call continues from here.")
