"""Preconditions that the lab's modules share: see `posenc_course._validation`."""

from collections.abc import Collection
from typing import Any, TypeVar

import torch

from posenc_course._validation import require_integer

T = TypeVar("T")
SEEDS = 2**31  # on a CPU, torch's generator uses only 32 bits of a seed, so 2³² would be the same as 0


def require_type(name: str, value: object, kind: type[T], hint: str) -> T:
    """Return `value`; raise a ValueError unless it is an instance of `kind`."""
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be a {kind.__name__}, got {' '.join(repr(value).split())}: {hint}")
    return value


def choose(what: str, given: Any, possible: Collection[str]) -> tuple[str, ...]:
    """Return the names in `given`, each once; raise a ValueError that shows the first name that is not possible."""
    given = tuple(given) if isinstance(given, tuple | list | dict) else (given,)
    wrong = [name for name in given if not isinstance(name, str) or name not in possible]
    if wrong or not given:
        named = f"unknown {what} {wrong[0]!r}" if wrong else f"no {what} given"
        raise ValueError(f"{named}: choose from {', '.join(possible) or repr('')}")
    return tuple(dict.fromkeys(given))


def require_device(name: str) -> torch.device:
    """Return the device with this name; raise a ValueError if this machine does not have it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        there = ["cpu", *(f"cuda:{n}" for n in range(torch.cuda.device_count()))]
        raise ValueError(f"device {name!r} is not available: this machine has {', '.join(there)}") from error
    return device


def require_seeds(name: str, seeds: object) -> tuple[int, ...]:
    """Return `seeds` as a tuple of ints; raise a ValueError unless they are one or more different integers in 0 … 2³¹-1."""
    given = seeds if isinstance(seeds, tuple | list) else ()
    plain = tuple(require_integer(name, seed, minimum=0, hint="seeds number the runs, e.g. 0, 1, 2") for seed in given)
    if not plain or len({*plain}) < len(plain) or max(plain) >= SEEDS:
        raise ValueError(
            f"{name} must be different whole numbers below 2³¹, at least one, got {seeds!r}: use (0, 1, 2), for example"
        )
    return plain
