"""Runs commands as a user of the repository would."""

import os
import subprocess
import sys
from pathlib import Path
from tempfile import NamedTemporaryFile

ROOT = Path(__file__).resolve().parent.parent
WEEKLY = os.environ.get("WEEKLY") == "true"  # as the workflow says every Monday
FORKS = sys.platform == "linux"  # elsewhere, a process that has imported torch can't be forked safely


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command, apart from the make that may have called this test, and capture its output."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | environment
    return subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True)


def nbgrader(*arguments: str, cwd: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run nbgrader in a course's folder; both streams are stdout."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"  # it calls programs
    environment, command = environment | {"PATH": path}, ("nbgrader", *arguments)
    if not FORKS:
        python, out = (sys.executable, "-m", *command), subprocess.PIPE
        return subprocess.run(python, cwd=cwd, env=environment, stdout=out, stderr=subprocess.STDOUT, text=True)
    from tests import kernels

    with NamedTemporaryFile("r", encoding="utf-8") as log:
        code = kernels.module(command, str(cwd), environment, log.name)
        return subprocess.CompletedProcess(command, code or 0, log.read(), "")
