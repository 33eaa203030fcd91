"""The lab's text: a frozen part of the Python standard library's source code, the same bytes everywhere.

The text comes with the package, together with its PSF licence, so nothing is downloaded and a seed means the same run on every
machine. We can't use the library of the local Python, which differs between versions.

It was made with Python 3.11.7 from the files of at least 500 bytes that are pure ASCII, without tests, tables of code points
and help topics: ordered by the SHA-256 of their paths, as many as fit into 8,000,000 bytes, and every tenth for validation.
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

DATA = Path(__file__).resolve().parent.parent / "data"
VOCAB_SIZE = 128  # the files are pure ASCII: one byte, one character, one token


class Corpus(NamedTuple):
    """The text as uint8 tensors of shape (bytes,), split by file into training and validation: no file is in both."""

    train: Tensor
    validation: Tensor
    sha256: str


def load_corpus() -> Corpus:
    """The text. Raises ValueError if its sha256 is wrong."""
    text, cut, found = unpacked()
    tokens = torch.from_numpy(np.frombuffer(text, dtype=np.uint8).copy())  # the caller's own, who may change them
    return Corpus(tokens[:cut], tokens[cut:], found)


@functools.cache
def unpacked() -> tuple[bytes, int, str]:
    described = json.loads((DATA / "corpus.json").read_text(encoding="utf-8"))
    text = lzma.decompress((DATA / "corpus.xz").read_bytes())
    found = hashlib.sha256(text).hexdigest()
    if found != described["sha256"]:
        raise ValueError(f"the text in {DATA} has sha256 {found[:12]}…, not {described['sha256'][:12]}…: reinstall the package")
    return text, sum(described["files"]["train"].values()), found
