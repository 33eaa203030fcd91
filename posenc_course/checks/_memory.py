"""Measures the largest tensor or array that an answer makes."""

import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numpy as np
from torch import Tensor
from torch.overrides import TorchFunctionMode


class Largest(TorchFunctionMode):
    """Remembers the size of the largest tensor that any function returns; a view counts as much as the tensor behind it.

    (A TorchDispatchMode, as in the chapter, would also see what happens inside functions, but it takes seconds to import.)
    """

    def __init__(self, worth_a_look: int) -> None:
        super().__init__()
        self.worth_a_look = worth_a_look
        self.numbers = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, Tensor):
                with suppress(RuntimeError):  # no storage of its own, as inside vmap
                    self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made


@contextmanager
def largest_made(worth_a_look: int) -> Iterator[Largest]:
    """Measures the largest tensor or NumPy array made in the block, in this thread or in one that begins there.

    NumPy reports each of its arrays to Python's memory tracer. After each step of the interpreter that used more memory than
    `worth_a_look` numbers of 8 bytes, the largest array is measured. Python's lists and numbers don't count.
    """
    largest, arrays = Largest(worth_a_look), tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    held = 0

    def begin(frame: FrameType, _event: str, _: Any) -> Any:  # the first call in the thread, which ends when the thread ends
        largest.__enter__()
        frame.f_trace_opcodes = True  # before settrace, or Python 3.12 reports none of them
        sys.settrace(step)
        return end

    def end(_frame: FrameType, event: str, _: Any) -> Any:
        if event == "return":
            sys.settrace(None)
            largest.__exit__(None, None, None)
        return end

    def step(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal held
        if frame.f_code is Largest.__torch_function__.__code__:  # it sees more than we would
            return None
        if event == "call":
            frame.f_trace_opcodes = True
        if tracemalloc.get_traced_memory()[0] - held > 8 * worth_a_look:
            sizes = [block.size // 8 for block in tracemalloc.take_snapshot().filter_traces([arrays]).traces]
            largest.numbers = max([largest.numbers, *sizes])
        held = tracemalloc.get_traced_memory()[0]
        return step

    already, others = tracemalloc.is_tracing(), threading.gettrace()
    tracemalloc.start()
    threading.settrace(begin)
    try:
        with largest:
            yield largest
    finally:
        threading.settrace(others)
        if not already:
            tracemalloc.stop()
