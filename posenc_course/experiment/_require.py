"""Preconditions that the lab's modules share: see `posenc_course._validation`."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

import torch

from posenc_course._validation import require_integer

T = TypeVar("T")
SEEDS = 2**31  # torch's generator on a CPU reads 32 bits of a seed: 2³² would be seed 0 under another name


def require_type(name: str, value: object, kind: type[T], hint: str) -> T:
    """Return `value`, or raise a ValueError unless it is one of `kind`."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be a {kind.__name__}, got {' '.join(repr(value).split())}: {hint}")
    return value


def choose(what: str, given: Any, possible: Collection[str]) -> tuple[str, ...]:
    """Return `given`, each once, or raise a ValueError that names the first that is not possible."""
    try:
        given = (given,) if isinstance(given, str) else tuple(given)
    except TypeError:
        given = (given,)
    wrong = [name for name in given if not isinstance(name, str) or name not in possible]
    if wrong or not given:
        named = f"unknown {what} {wrong[0]!r}" if wrong else f"no {what} given"
        raise ValueError(f"{named}: take some of {', '.join(possible)}")
    return tuple(dict.fromkeys(given))


def require_device(name: str) -> torch.device:
    """Return the device of this name, or raise a ValueError if this machine does not have it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        there = ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
        raise ValueError(f"device {name!r} is not there: this machine has {', '.join(there)}") from error
    return device


def require_seeds(name: str, seeds: object) -> tuple[int, ...]:
    """Return `seeds` as a tuple of ints, or raise a ValueError unless they are different ones in 0 … 2³¹-1, one at least."""
    given = seeds if isinstance(seeds, tuple | list) else ()
    plain = tuple(require_integer(name, seed, minimum=0, hint="seeds number the runs, e.g. 0, 1, 2") for seed in given)
    if not plain or len({*plain}) < len(plain):
        raise ValueError(f"{name} must be different whole numbers, one at least, got {seeds!r}: take for example (0, 1, 2)")
    if max(plain) >= SEEDS:
        raise ValueError(f"{name} must be below 2³¹, got {max(plain)}: seeds number the runs, e.g. 0, 1, 2")
    return plain


def require_folder(folder: object) -> Path:
    """Return `folder` as a path, or raise a ValueError unless it is a folder that exists."""
    if not isinstance(folder, str | Path) or not Path(folder).is_dir():
        raise ValueError(f"folder must be one that exists, got {str(folder)!r}: give the one that the files are in")
    return Path(folder)
