"""The lab's text: a frozen part of the Python standard library's source code, the same bytes everywhere.

The text comes with the package, together with its PSF licence, so nothing is downloaded and a seed means the same run on every
machine. It was made by `tools/lab/corpus.py`. We can't use the library of the local Python, which differs between versions.
"""

import functools
import hashlib
import json
import lzma
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from posenc_course.experiment._require import require_folder

DATA = Path(__file__).resolve().parent.parent / "data"
VOCAB_SIZE = 128  # the files are pure ASCII: one byte, one character, one token


class Corpus(NamedTuple):
    """The text as uint8 tensors of shape (bytes,), split by file into training and validation: no file is in both."""

    train: Tensor
    validation: Tensor
    sha256: str


def load_corpus(folder: str | Path | None = None) -> Corpus:
    """The text in `folder`, by default that of the package. Raises ValueError if it is not complete or its sha256 is wrong."""
    text, cut, found = _unpacked(DATA if folder is None else require_folder(folder))
    tokens = torch.from_numpy(np.frombuffer(text, dtype=np.uint8).copy())  # the caller's own, who may change them
    return Corpus(tokens[:cut], tokens[cut:], found)


@functools.cache
def _unpacked(folder: Path) -> tuple[bytes, int, str]:
    try:
        described = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        text = lzma.decompress((folder / "corpus.xz").read_bytes())
        cut, expected = sum(described["files"]["train"].values()), described["sha256"]
        if not isinstance(expected, str) or not isinstance(cut, int) or not 0 < cut < len(text):
            raise ValueError("corpus.json describes a different text")
    except (OSError, lzma.LZMAError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no complete text in {folder} ({' '.join(str(error).split())}): reinstall the package") from error
    found = hashlib.sha256(text).hexdigest()
    if found != expected:
        raise ValueError(f"the text in {folder} has sha256 {found[:12]}…, not {expected[:12]}…: reinstall the package")
    return text, cut, found
