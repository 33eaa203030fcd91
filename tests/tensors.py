"""Random tensors, the same on every run, and equality up to an absolute bound."""

from functools import partial

import torch
from torch import Tensor


def normal(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


normal32 = partial(normal, dtype=torch.float32)  # for modules, whose parameters are float32


def close(a: Tensor, b: Tensor, atol: float = 1e-10) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=atol)
