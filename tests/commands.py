"""Runs commands as a user of the repository would."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WEEKLY = os.environ.get("WEEKLY") == "true"  # as the workflow says every Monday


def run(*command: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command, apart from the make that may have called this test, and capture its output."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | environment
    return subprocess.run(command, cwd=cwd, env=settings, capture_output=True, text=True)
