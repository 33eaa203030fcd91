"""All code here writes files completely or not at all, whatever interrupts the writing."""

import errno
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import nbformat
import pytest

from posenc_course._system import processor, write_whole
from posenc_course.experiment.config import Config
from posenc_course.experiment.folder import run_experiment, save_report
from tools.book import execute, text
from tools.lab import bench
from tools.lab.study import Study, carry_out

TINY = Config("tiny", length=16, d_model=16, num_heads=2, num_layers=1, steps=1, batch_size=2, evaluation_bytes=128, spans=1)


def full_disk(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


@pytest.mark.parametrize("where", ["fsync", "replace"])
@pytest.mark.parametrize(("stop", "raised"), [(full_disk, OSError), (interrupted, KeyboardInterrupt)])
def test_whatever_stops_the_writing_the_old_file_stays(
    where: str, stop: Callable[[], object], raised: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new folder/results.json"
    write_whole(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr({"fsync": os, "replace": Path}[where], where, stop)
        with pytest.raises(raised) as caught:
            write_whole(path, b"new")
    if raised is OSError:
        assert str(caught.value) == f"cannot write {path}: No space left on device; free some space, or give another path"
    assert path.read_bytes() == b"old"
    assert hidden(tmp_path) == []
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert hidden(tmp_path) == []


def test_the_parts_of_killed_processes_go_with_the_next_success_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    ours = f".a.json.{platform.node()}"
    stale = tmp_path / f"{ours}.{ended.pid}.part"
    kept = [
        tmp_path / f"{ours}.{os.getppid()}.part",  # may be writing
        tmp_path / f".a.json.another-machine.{ended.pid}.part",  # unknown here
        tmp_path / f".b.json.{platform.node()}.{ended.pid}.part",  # goes when b.json is written
    ]
    for part in (stale, *kept):
        part.write_bytes(b"half")
    write_whole(tmp_path / "a.json", b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a.json", *kept])


def save_a_run(folder: Path) -> None:
    run_experiment(TINY, folder, schemes=["rope"], say=lambda _: None)


def report(folder: Path) -> None:
    save_report(folder / "runs", folder / "report.json")


def store_a_benchmark(folder: Path) -> None:
    bench.store("speed", {"group": [{"candidate": "clone", "ratio": 1.0}]})


def store_measurements(folder: Path) -> None:
    carry_out(Study("measured", "", [], dict), folder, folder / "measured.json")


def run_a_notebook(folder: Path) -> None:
    execute.execute(text.Page(folder / "01.md", folder / "01.ipynb"))


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (save_a_run, "text-rope-0.npz"),
        (report, "report.json"),
        (store_a_benchmark, "speed.json"),
        (store_measurements, "measured.json"),
        pytest.param(run_a_notebook, "01.ipynb", marks=pytest.mark.slow),  # it starts a kernel
    ],
)
def test_every_file_is_written_by_this_one_function(
    write: Callable[[Path], None], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk shows at fsync, which no other way of writing calls: the call fails, and all files are as they were."""
    monkeypatch.setattr(bench, "DATA", tmp_path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1", id="a")])
    (tmp_path / "01.ipynb").write_text(nbformat.writes(notebook))
    if write is report:
        save_a_run(tmp_path / "runs")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match=f"cannot write {tmp_path}.*{name}: No space left on device"):
            write(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    write(tmp_path)
    assert (tmp_path / name).read_bytes() != before.get(tmp_path / name)


def test_the_processor_has_a_name() -> None:
    assert processor() == processor().strip() != ""
