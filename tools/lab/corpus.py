"""Freezes the experiment's text, a part of Python's standard library, in posenc_course/data; done once, with Python 3.11.7.

    python tools/lab/corpus.py

The same Python version gives the same bytes. Other versions have different libraries, so the text is stored with the package
instead of being read from the Python that runs it; posenc_course/experiment/corpus.py reads it.
"""

import hashlib
import json
import lzma
import platform
import sysconfig
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "posenc_course/data"
# Tests are repetitive, tables of code points and help topics aren't code, and site-packages isn't part of the library.
LEFT_OUT = {"test", "tests", "idle_test", "encodings", "pydoc_data", "site-packages", "__pycache__"}
BYTES = 8_000_000


def ascii_sources(library: Path) -> dict[str, bytes]:
    """Path in the library -> contents, for files of at least 500 bytes that are pure ASCII (one byte per character)."""
    paths = (path.relative_to(library) for path in library.rglob("*.py"))
    chosen = sorted(path.as_posix() for path in paths if not LEFT_OUT & {*path.parts})
    sources = {path: (library / path).read_bytes().replace(b"\r\n", b"\n") for path in chosen}
    return {path: source for path, source in sources.items() if len(source) >= 500 and source.isascii()}


def main() -> None:
    sources, total = {}, 0
    # Ordered by a hash of the path, so that a cut at BYTES affects all parts of the library equally.
    for path, source in sorted(ascii_sources(Path(sysconfig.get_path("stdlib"))).items(), key=by_hash):
        if total + len(source) <= BYTES:
            sources[path], total = source, total + len(source)
    names = list(sources)
    split = {"validation": names[::10], "train": [name for number, name in enumerate(names) if number % 10]}
    text = b"".join(sources[name] for part in ("train", "validation") for name in split[part])
    files = {part: {name: len(sources[name]) for name in split[part]} for part in ("train", "validation")}
    described = {
        "source": f"Lib/ of CPython {platform.python_version()}, pure ASCII files without tests and tables",
        "license": "PSF-2.0, see corpus_LICENSE.txt",
        "sha256": hashlib.sha256(text).hexdigest(),
        "files": files,
    }
    (DATA / "corpus.xz").write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    (DATA / "corpus.json").write_text(json.dumps(described, indent=1) + "\n", encoding="utf-8")
    print({part: (len(sizes), sum(sizes.values())) for part, sizes in files.items()}, described["sha256"])


def by_hash(item: tuple[str, bytes]) -> str:
    return hashlib.sha256(item[0].encode()).hexdigest()


if __name__ == "__main__":
    main()
