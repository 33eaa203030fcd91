"""Kernels for nbval, and nbgrader, start at once: they are forked from a process with what nearly all need."""

import gc
import multiprocessing
import os
import sys
from functools import cache
from multiprocessing import forkserver
from runpy import run_module
from typing import Any
from unittest.mock import patch

from ipykernel.kernelapp import IPKernelApp

CONTEXT: Any = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *("ipykernel.kernelapp", "ipykernel.debugger", "torch._dynamo", "torch.optim"),
        *("matplotlib.pyplot", "matplotlib_inline.backend_inline", "matplotlib.backends.backend_svg"),
        *("posenc_course.checks", "posenc_course.experiment", "posenc_course.plotting", "nbgrader.apps.nbgraderapp"),
    ]
)


@cache
def start_server() -> None:
    """Matplotlib takes over its backend when it is imported, so the server needs the one that kernels have."""
    with patch.dict(os.environ, MPLBACKEND="module://matplotlib_inline.backend_inline"):
        forkserver._forkserver.ensure_running()


class Forked:
    """A kernel's process, with what jupyter_client asks of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, command: list[str], *, cwd: str | None = None, env: dict[str, str], **_: Any) -> None:
        start_server()
        alone = CONTEXT.Event()
        self._process = CONTEXT.Process(target=_serve, args=(alone, command[command.index("-f") :], cwd, env))
        self._process.start()
        alone.wait()  # from here on, its group has no other process, so a signal for it doesn't end the tests
        self.pid = self._process.pid
        self.kill, self.terminate = self._process.kill, self._process.terminate

    def poll(self) -> int | None:
        self._process.join(0)
        code: int | None = self._process.exitcode
        return code

    def wait(self) -> int | None:
        self._process.join()
        return self.poll()

    def send_signal(self, signal: int) -> None:
        os.kill(self.pid, signal)


def module(command: tuple[str, ...], folder: str, env: dict[str, str], log: str) -> int | None:
    """Run a module in a folder, as `python -m` would, and return its exit status; its kernels are forked, too."""
    start_server()
    server = {name: of for name, of in vars(forkserver._forkserver).items() if name.endswith(("address", "authkey"))}
    process = CONTEXT.Process(target=_run, args=(command, folder, env, log, server))
    process.start()
    process.join()
    code: int | None = process.exitcode
    return code


def _run(command: tuple[str, ...], folder: str, env: dict[str, str], log: str, server: dict[str, Any]) -> None:
    from jupyter_client.provisioning import local_provisioner

    _become(env, folder)
    written = os.open(log, os.O_WRONLY)
    os.dup2(written, 1)
    os.dup2(written, 2)
    vars(forkserver._forkserver).update(server, ensure_running=lambda: None)
    local_provisioner.launch_kernel = Forked  # type: ignore[assignment, attr-defined]
    sys.argv = [*command]
    run_module(command[0], run_name="__main__", alter_sys=True)


def _become(env: dict[str, str], folder: str) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder)
    gc.freeze()  # or the first collection copies all that the server has imported


def _serve(alone: Any, arguments: list[str], cwd: str | None, env: dict[str, str]) -> None:
    os.setsid()
    alone.set()
    _become(env, cwd or ".")
    IPKernelApp.launch_instance(argv=arguments)
