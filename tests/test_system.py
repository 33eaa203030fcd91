"""Files are written completely or not at all, whatever interrupts the writing."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from posenc_course._system import processor, write_whole


def full_disk(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["fsync", "replace"])
@pytest.mark.parametrize(("stop", "raised"), [(full_disk, OSError), (interrupted, KeyboardInterrupt)])
def test_old_file_stays_whatever_stops_the_writing(
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
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [*path.parent.iterdir()] == [path]


def test_processor_has_a_name() -> None:
    assert processor() == processor().strip() != ""
