"""Runs the notebooks as if on different computers: `make test-elsewhere` calls it.

It simulates an older processor (no vector features in NumPy and torch, different matrix products), with one thread and then
two, and after that processors that nobody has seen, with three seeds: before its first cell, each kernel calls `begin`, which
perturbs rounding.

Processors differ in their exponentials, logarithms and sines, in the order in which they add, and in whether that order depends
on the size of the batch. They agree on each single sum, product, quotient and square root, which IEEE 754 fixes, and on sums of
whole numbers, which are exact in any order. So here, the results of functions are multiplied by 1 plus a few units of rounding,
and so are the terms of sums and of matrix products, unless they are whole numbers. The noise is seeded, and differs from call
to call. A dispatch mode of torch sees every operation of the cells, of the package and of training; what cells compute with
NumPy or `math` stays as it is.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).resolve().parent.parent
ASSIGNMENTS = "tests/checks/test_exercises.py::test_the_solutions_are_right_and_the_key_prints_what_it_says"
UNITS = 4  # of rounding, at most
FUNCTIONS = {
    *"exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2 arcsin arccos arctan arctan2 sinh cosh tanh".split(),
    *"erf erfc pow rsqrt polar angle hypot sigmoid silu gelu softplus logaddexp logsumexp softmax log_softmax".split(),
    *"_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data sigmoid_backward silu_backward".split(),
    *"gelu_backward tanh_backward native_layer_norm native_layer_norm_backward rms_norm _fused_rms_norm".split(),
    *"_fused_rms_norm_backward scaled_dot_product_attention randn normal addcmul addcdiv lerp".split(),
}
SUMS = {
    *"sum nansum mean std var std_mean var_mean cumsum cumprod prod trace trapezoid norm cov corrcoef convolution".split(),
    *"mm bmm mv dot vdot inner addmm baddbmm addmv linear matmul einsum tensordot linalg_vector_norm linalg_norm".split(),
    *"cdist _cdist_forward _euclidean_dist _fft_r2c _fft_c2c svd _linalg_svd _linalg_eigh _linalg_solve_ex".split(),
    *"linalg_lstsq linalg_inv_ex det _linalg_det qr linalg_qr".split(),
}


class Noise:
    """Changes how numbers are rounded, with noise from a pool for each type."""

    def __init__(self, seed: int) -> None:
        uniform = torch.rand(2**18, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1
        # Sums in 16 bits are rounded once, at the end.
        rarely = torch.where(uniform.abs() > 0.98, uniform.sign(), 0.0)
        noises = {torch.float64: uniform * UNITS, torch.float32: uniform * UNITS, torch.bfloat16: rarely, torch.float16: rarely}
        self._pools = {kind: (1 + noise * torch.finfo(kind).eps).to(kind) for kind, noise in noises.items()}
        self._at = 0

    def result(self, x: Tensor) -> Tensor:
        """A function's result. -1, 0 and 1 stay, because every processor gives exp 0, sin 0 and cos 0 exactly."""
        return torch.where((x == 1) | (x == -1), x, x * self._factors(x))

    def term(self, x: Tensor) -> Tensor:
        """The terms of a sum. Multiples of 1/1024 stay, because sums of these are exact."""
        head = x.flatten()[:4] * 1024
        exact = torch.equal(head, head.round()) and torch.equal(x * 1024, (x * 1024).round())
        return x if exact else x * self._factors(x)

    def _factors(self, x: Tensor) -> Tensor:
        pool, count = self._pools[x.dtype], min(x.numel(), 2**17)
        self._at = (self._at + 7919 + count) % (len(pool) - count)  # so the next call gets other numbers
        found = pool[self._at : self._at + count]
        return (found if count == x.numel() else found.repeat(-(-x.numel() // count))[: x.numel()]).view(x.shape)


def changed(change: Callable[[Tensor], Tensor], x: Any) -> Any:
    """Apply the change to a tensor of floats, or to each of a list of them; leave anything else as it is."""
    if isinstance(x, Tensor) and x.is_complex():
        return torch.view_as_complex(change(torch.view_as_real(x.resolve_conj())))
    if isinstance(x, Tensor):
        has_numbers = x.is_floating_point() and x.numel() and x.layout is torch.strided and not x.is_meta
        return change(x) if has_numbers else x
    return type(x)(changed(change, each) for each in x) if type(x) in (list, tuple) else x


class Perturbed(TorchDispatchMode):
    """Torch's operations, rounded differently."""

    def __init__(self, noise: Noise) -> None:
        super().__init__()
        self.noise = noise

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        in_place = name.endswith("_") or "out" in kwargs
        complex_product = name.startswith("mul") and all(isinstance(each, Tensor) and each.is_complex() for each in args)
        if name.rstrip("_") in SUMS or complex_product:
            # The tensor that takes the result; a sum of two terms changes less.
            kept = 1 if in_place or complex_product else 0
            return func(*args[:kept], *(changed(self.noise.term, each) for each in args[kept:]), **kwargs)
        result = func(*args, **kwargs)
        if name.rstrip("_") == "pow" and isinstance(args[1], int | float) and args[1] in (-1, 0, 0.5, 1, 2):
            return result  # these are products and square roots
        if name.rstrip("_") in FUNCTIONS:
            new = changed(self.noise.result, result)
            return result.copy_(new) if in_place else new
        return result


def begin(seed: int) -> None:
    """Round differently from here on."""
    Perturbed(Noise(seed)).__enter__()


# ── the computers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def older(threads: int) -> dict[str, str]:
    """The environment of an older processor with so many threads."""
    return {
        "OMP_NUM_THREADS": str(threads),
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": " ".join(np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])),
        "OPENBLAS_CORETYPE": "Nehalem",
    }


def perturbed(seed: int, folder: Path) -> dict[str, str]:
    """The environment of a processor that nobody has seen; the folder holds what each kernel runs before its first cell."""
    startup = folder / "profile_default" / "startup" / "perturbed.py"
    startup.parent.mkdir(parents=True)
    startup.write_text(f"from tools.elsewhere import begin\nbegin({seed})\n")
    return {"IPYTHONDIR": str(folder), "PYTHONPATH": str(ROOT)}


def main(tests: list[str], seeds: list[int]) -> int:
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        computers = {} if seeds else {"older, one thread": older(1), "older, two threads": older(2)}
        computers |= {f"perturbed, seed {seed}": perturbed(seed, Path(folder, str(seed))) for seed in seeds or (0, 1, 2)}
        for name, environment in computers.items():
            print(f"── {name}", flush=True)
            command = [sys.executable, "-m", "pytest", "--quiet", *tests]
            if subprocess.run(command, cwd=ROOT, env=os.environ | environment).returncode:
                failed.append(name)
    print("\n".join(f"fails: {name}" for name in failed) or f"all is well on {len(computers)} simulated computers")
    return int(bool(failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=["book", ASSIGNMENTS], help="notebooks, folders or tests (default: all)")
    parser.add_argument("--seeds", type=int, nargs="*", help="simulate only processors that nobody has seen, with these seeds")
    sys.exit(main(**vars(parser.parse_args())))
