"""Checks for what would otherwise fail only after hours: sizes for which there is not enough text or memory."""

import math
import os
from collections.abc import Sequence

import torch

from posenc_course.experiment._parts import PARTS
from posenc_course.experiment._require import require_device, require_text
from posenc_course.experiment.config import Config, Run
from posenc_course.experiment.corpus import Corpus


def require_possible(config: Config, runs: Sequence[Run], device: str | None, text: Corpus) -> None:
    """Raise a ValueError if one of these runs would fail later because it needs more text or more memory than there is.

    With device=None, the runs are done elsewhere, and memory is checked there.
    """
    memory = math.inf if device is None else _memory(require_device(device))
    for part, sizes in {(run.part, config.of(run)): None for run in runs}:
        if PARTS[part].reads_corpus:
            require_text(sizes, text.validation)
            if sizes.length >= len(text.train):
                raise ValueError(f"length={sizes.length} needs more than the {len(text.train)} bytes of training text: use 64")
        if (need := _least_memory(sizes)) > memory:
            raise ValueError(
                f"d_model={sizes.d_model}, num_layers={sizes.num_layers}, batch_size={sizes.batch_size} and "
                f"length={sizes.length} need {need / 2**30:,.0f} GiB or more, but {device} has {memory / 2**30:,.0f}: "
                "make them smaller"
            )


def _memory(where: torch.device) -> int:
    if where.type == "cuda":
        return torch.cuda.get_device_properties(where).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _least_memory(sizes: Config) -> int:
    """A lower bound on the memory that a run needs, in bytes, with float32 numbers.

    It counts the model's weights four times (their gradients and AdamW's two averages are as large), and the attention weights
    either of a batch in all layers or of the longest window in one layer, whichever are more.
    """
    weights = 12 * sizes.num_layers * sizes.d_model**2
    learning = sizes.num_layers * sizes.batch_size * sizes.num_heads * sizes.length**2
    measuring = sizes.num_heads * sizes.longest**2
    return 4 * (4 * weights + max(learning, measuring))
