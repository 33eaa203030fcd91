"""Makes the course's Python environment, .venv; `make` calls it with whatever Python there is.

Standard library only, in the syntax of Python 3.6: a Python that is too old shall say so, not stumble.
"""

import importlib.util
import pathlib
import shutil
import subprocess
import sys

CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyPI's torch for Linux brings gigabytes of CUDA packages
ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
DONE = VENV / "complete"  # a copy of the lock that it was made from, written last: an interrupted set-up leaves none


def stop(message: str) -> None:
    sys.exit("\nSet-up stopped: " + message)


def stage(number: int, what: str) -> None:
    print(f"\n[{number}/4] {what}", flush=True)


def pip_install(what: str, *arguments: str) -> None:
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    if subprocess.call(pip + ["install"] + list(arguments), cwd=str(ROOT)) != 0:
        stop(
            f"pip could not install {what}; its reason stands above. If that speaks of connections, this machine has no "
            "network: connect it, or name a mirror in PIP_INDEX_URL, then run make again."
        )


def main() -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        stop(
            f"the course needs Python 3.11 to 3.14, and {sys.executable} is Python {version}: "
            "name another one, e.g. make PYTHON=python3.12 book"
        )
    if importlib.util.find_spec("ensurepip") is None:
        stop(
            f"{sys.executable} cannot make an environment with pip in it (no module ensurepip): install it, on Debian "
            "and Ubuntu with apt install python3-venv, or name another Python, e.g. make PYTHON=python3.12 book"
        )
    lock = LOCK.read_text(encoding="utf-8")
    stage(1, f"The environment .venv, with Python {version}")
    if DONE.exists() and DONE.read_text(encoding="utf-8") == lock:
        print("Its packages are those of requirements.lock: kept.")
    else:
        if VENV.exists():
            shutil.rmtree(str(VENV))
        if subprocess.call([sys.executable, "-m", "venv", str(VENV)]) != 0:
            stop(f"{sys.executable} -m venv failed; its reason stands above.")
        torch = next(line.split()[0] for line in lock.splitlines() if line.startswith("torch=="))
        stage(2, f"PyTorch for the processor ({torch}, about 200 MB)")
        # Alone, and without what it depends on, so that only this one search waits for an index that may be out of reach;
        # then pip goes on with its other sources.
        pip_install("PyTorch", "--no-deps", "--retries=1", "--timeout=10", "--extra-index-url", CPU_INDEX, torch)
        stage(3, "All other packages, as pinned in requirements.lock (some minutes)")
        pip_install("the packages of requirements.lock", "-r", str(LOCK))
    stage(4, "The course's own package, posenc_course")
    pip_install("posenc_course", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    DONE.write_text(lock, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("interrupted. The next make starts it afresh.")
