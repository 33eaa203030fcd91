"""A plain training loop that records what the chapters look at: the loss and the gradient norm of every step."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course._validation import checked, refuse, require_number


class History(NamedTuple):
    """What `train` recorded, one number per step: the loss in nats, and the norm of the whole gradient before clipping."""

    losses: list[float]
    gradient_norms: list[float]


@checked(
    model="Module",
    sample="function: pass one that takes a generator and returns a batch",
    steps="count: each step is one batch, e.g. 300",
    learning_rate="number > 0: 3e-3 suits small models",
    clip="number > 0 or inf: it is the largest gradient norm; 1 is usual, and math.inf clips nothing",
    seed="count >= 0: it numbers the run, e.g. 0",
    schedule="function?",
    progress="function?",
)
def train(
    model: nn.Module,
    sample: Callable[[torch.Generator], tuple[Tensor, Tensor]],
    *,
    steps: int,
    learning_rate: float = 3e-3,
    clip: float = 1.0,
    seed: int = 0,
    schedule: Callable[[int], float] | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> History:
    """Train `model` in place with AdamW on fresh batches, with the gradient clipped to the norm `clip`.

    sample(generator) returns inputs (batch, L) and target ids (batch, L), with -100 for a token that doesn't count; the model's
    outputs are (batch, L, classes). All randomness of a batch must come from the generator, so that a seed gives the same
    batches to every model. clip=math.inf leaves the gradient as it is. schedule(step) is a factor that multiplies the learning
    rate, for example from `warm_up_and_cosine`; progress(step, loss) is called after every step. Both count steps from 0.
    Raises ValueError for arguments out of range, for a model without parameters to train, and for batches that don't fit.
    """
    parameters = [*model.parameters()]  # listed once: finding them takes as long as some of the computations
    if not any(parameter.requires_grad for parameter in parameters):
        refuse("model", "one with parameters to train", model, "use nn.Parameter, and leave requires_grad as it is")
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate, fused=True)
    history = History([], [])
    for step in range(steps):
        if schedule is not None:
            factor = require_number("schedule(step)", schedule(step), above=0, hint="it multiplies the learning rate")
            optimizer.param_groups[0]["lr"] = learning_rate * factor
        loss = _loss(model, sample(generator))
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, clip, foreach=True)
        optimizer.step()
        history.losses.append(loss.item())
        history.gradient_norms.append(norm.item())
        if progress is not None:
            progress(step, history.losses[-1])
    return history


@checked(
    steps="count: give the same number to train",
    warm_up="count >= 0 <= steps: it is the first part of the steps; a tenth of them is usual",
    floor="number > 0 <= 1: it is the fraction of the learning rate that is left at the end, e.g. 0.05",
)
def warm_up_and_cosine(steps: int, warm_up: int = 0, *, floor: float = 0.05) -> Callable[[int], float]:
    """A schedule for `train`: up in a straight line for `warm_up` steps, then down to `floor` along half a cosine.

    factor(s) = (s+1)/warm_up while s < warm_up, then floor + (1-floor)·(1 + cos(π·(s-warm_up)/(steps-warm_up)))/2. Raises
    ValueError for arguments out of range; the schedule itself raises it for a step outside 0 … steps-1.
    """

    def factor(step: int) -> float:
        if not 0 <= step < steps:
            raise ValueError(
                f"step must be from 0 to {steps - 1}, got {step!r}: make the schedule for as many steps as you train"
            )
        if step < warm_up:
            return (step + 1) / warm_up
        return floor + (1 - floor) * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up))) / 2

    return factor


def _loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """The mean cross-entropy of one batch in nats; raises a ValueError if the batch doesn't fit the model."""
    if not isinstance(batch, tuple) or [isinstance(part, Tensor) for part in batch] != [True, True]:
        raise ValueError(
            f"sample must return two tensors, inputs and targets, got {batch!r}: end it with return inputs, targets"
        )
    inputs, targets = batch
    outputs = model(inputs)
    if not isinstance(outputs, Tensor) or not outputs.requires_grad:
        refuse("model(inputs)", "computed from the model's parameters", outputs, "return a tensor, without detach or no_grad")
    if outputs.ndim != 3 or outputs.shape[:2] != targets.shape or targets.dtype != torch.int64:
        raise ValueError(
            f"targets must be int64 ids of shape (batch, L) for outputs (batch, L, classes), got {targets.dtype} of shape "
            f"{tuple(targets.shape)} for {tuple(outputs.shape)}: give one target per output row"
        )
    if (targets == -100).all():
        raise ValueError(f"all {targets.numel()} targets are -100: give each batch at least one token that counts")
    wrong = targets[(targets != -100) & ((targets < 0) | (targets >= outputs.shape[-1]))]
    if wrong.numel():
        raise ValueError(
            f"target id {wrong[0].item()} is outside 0 … {outputs.shape[-1] - 1}: check sample or the model's num_outputs"
        )
    return F.cross_entropy(outputs.flatten(end_dim=-2), targets.flatten())
