"""Random tensors, the same on every run, equality up to an absolute bound, and what operations make on the way."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


normal32 = partial(normal, dtype=torch.float32)  # for modules, whose parameters are float32


def close(a: Tensor, b: Tensor, atol: float = 1e-10) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=atol)


class Kept(TorchDispatchMode):
    """Keeps every tensor that an operation makes, or one of these operations, so that no later one reuses its memory."""

    def __init__(self, *only: Any) -> None:
        super().__init__()
        self.only = only
        self.tensors: list[Tensor] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not self.only or func in self.only:
            every = result if isinstance(result, (tuple, list)) else [result]
            self.tensors += [made for made in every if isinstance(made, Tensor)]
        return result
