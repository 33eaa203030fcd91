"""Measurements of a trained decoder's loss at multiples of its training length.

Losses are in nats per byte. The targets are the same bytes at every length and for every scheme, so differences come from the
context and the scheme, not from easier text.
"""

import copy
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course._validation import checked
from posenc_course.experiment import tasks
from posenc_course.experiment._require import choose, require_type
from posenc_course.experiment.config import Config
from posenc_course.learned import LearnedPositions
from posenc_course.relative import WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import ntk_aware, position_interpolation, yarn, yarn_attention_factor
from posenc_course.schemes import PositionScheme
from posenc_course.transformer import Decoder

# Changes to trained models, without further training. "window" is the control: no key is farther away than in training. YaRN's
# published constants keep the pairs that rotate at least 32 times within the trained length, rounded outwards to whole pairs.
# In 64 tokens, no pair rotates more than ten times, so there is a second version with 8 rotations and without rounding.
CHANGES = ("window", "interpolation", "ntk", "yarn", "yarn_fast_8")


def possible_changes(scheme: PositionScheme) -> tuple[str, ...]:
    """The changes possible for this scheme: stretching for RoPE, interpolation for a learned table, and a window.

    A window counts tokens, so a scheme with positions of its own can't have one.
    """
    if isinstance(scheme, RotaryPositions):
        return CHANGES
    if type(scheme).locate is not PositionScheme.locate:
        return ()
    return ("window", "interpolation") if isinstance(scheme, LearnedPositions) else ("window",)


def _schemes(model: Decoder) -> list[PositionScheme]:
    """The scheme of each layer."""
    return [block.attention.scheme for block in model.blocks]  # type: ignore[union-attr, misc]


def changes_of(model: Decoder) -> tuple[str, ...]:
    """The changes that are possible for the schemes of all layers."""
    return tuple(change for change in CHANGES if all(change in possible_changes(scheme) for scheme in _schemes(model)))


@checked(length="count: it counts tokens", trained_length="count: it counts tokens")
def changed(model: Decoder, change: str, length: int, trained_length: int) -> Decoder:
    """A copy of the model with a changed scheme, for sequences of `length` tokens after training at `trained_length`.

    `change` is one of `CHANGES`. RoPE is stretched by length / trained_length; the trained rows of a learned table are
    interpolated linearly to `length` rows. Raises ValueError if the change is not possible for the model's scheme.
    """
    choose("change", (change,), changes_of(require_type("model", model, Decoder, "pass one from load_model")))
    model = copy.deepcopy(model)
    new = {scheme: _changed_scheme(scheme, change, length, trained_length) for scheme in _schemes(model)}
    model.scheme = new[model.scheme]
    for block in model.blocks:
        block.attention.scheme = new[block.attention.scheme]  # type: ignore[union-attr, index]
    return model


def _changed_scheme(scheme: PositionScheme, change: str, length: int, trained_length: int) -> PositionScheme:
    if change == "window":
        return WindowedPositions(scheme, trained_length)
    factor = max(1.0, length / trained_length)
    if isinstance(scheme, RotaryPositions):
        omega = {
            "interpolation": lambda omega: position_interpolation(omega, factor),
            "ntk": lambda omega: ntk_aware(omega, factor),
            "yarn": lambda omega: yarn(omega, factor, trained_length),
            "yarn_fast_8": lambda omega: yarn(omega, factor, trained_length, fast=8, truncate=False),
        }[change](scheme.frequencies)
        scores_by = yarn_attention_factor(factor) if "yarn" in change else 1.0
        return RotaryPositions(omega, interleaved=scheme.interleaved, attention_factor=scores_by)
    assert isinstance(scheme, LearnedPositions)
    rows = scheme.table[:trained_length].T.unsqueeze(0)  # (1, d_model, trained rows)
    longer = LearnedPositions(length, scheme.d_model)
    longer.table = torch.nn.Parameter(F.interpolate(rows, size=length, mode="linear", align_corners=True)[0].T)
    return longer


@checked(
    model="Module: pass one from load_model", windows="integer tensor n L+1: they are token ids; pass text[None] for one text"
)
def token_losses(model: Decoder, windows: Tensor) -> Tensor:
    """The loss of each target in nats, shape (n, L), for windows (n, L+1) of token ids, whose first tokens are not targets.

    Raises ValueError for windows of any other form and for ids outside the vocabulary.
    """
    return _scores(model, windows[:, :-1], windows[:, 1:])[0]


def _scores(model: Decoder, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of each target (n, L), which is 0 where there is none, and whether the target has the highest score."""
    if targets[targets != tasks.NO_TARGET].max() >= model.head.out_features:
        raise ValueError(f"token id {targets.max().item()} is outside 0 … {model.head.out_features - 1}: check the text")
    device = model.embedding.weight.device
    at_once = max(1, (2**18 if device.type == "cpu" else 2**28) // inputs.shape[1] ** 2)  # the scores fit a processor's cache
    losses, hits = [], []
    with torch.inference_mode():
        for x, y in zip(inputs.split(at_once), targets.split(at_once), strict=True):
            outputs, y = model(x.long().to(device)), y.long().to(device)
            losses.append(F.cross_entropy(outputs.transpose(1, 2), y, reduction="none").cpu())
            hits.append((outputs.argmax(dim=-1) == y).cpu())
    return torch.cat(losses), torch.cat(hits)


def evaluate_text(model: Decoder, config: Config, text: Tensor, changes: Sequence[str] = ()) -> dict[str, Any]:
    """All measurements of one model on validation bytes, with its scheme as trained ("plain") and with the given changes.

    Returns {change: {"nonoverlapping": {L: nats}, "sliding": {L: nats}, "last": {L: nats}, "by_position": [nats]}}:

    - nonoverlapping: the text is cut into windows of L bytes, and every byte counts, even those with little context.
    - sliding: windows move by T/2 bytes, and only their last T/2 bytes count, each with at least L - T/2 bytes of context.
    - last: only the last byte of each sliding window counts, and it has exactly L bytes of context.
    - by_position: nats at each position of the longest non-overlapping windows.

    Changed schemes are measured only on non-overlapping windows. At T, no change has an effect.
    """
    T, longest = config.length, config.longest
    lengths = [multiple * T for multiple in config.multiples]
    blocks = pieces(text, config.evaluation_bytes // longest, longest + 1)
    spans = pieces(text, config.spans, 2 * longest + 1)
    results: dict[str, Any] = {}
    for change in ("plain", *changes):
        by_length = {}
        for L in lengths:
            candidate = model if change == "plain" or L == T else changed(model, change, L, T)
            losses = _scores(candidate, blocks[:, :-1].reshape(-1, L), blocks[:, 1:].reshape(-1, L))[0]
            by_length[str(L)] = _rounded(losses.mean())
        by_position = [_rounded(loss) for loss in losses.mean(dim=0)]
        results[change] = {"nonoverlapping": by_length, "by_position": by_position}
    results["plain"] |= {"sliding": {}, "last": {}}
    for L in lengths:
        # The targets are the second half of a span; they begin with the last T/2 targets of the first window.
        windows = spans[:, longest + T // 2 - L :].unfold(1, L + 1, T // 2).flatten(end_dim=1)
        losses = token_losses(model, windows)[:, -(T // 2) :]
        results["plain"]["sliding"][str(L)] = _rounded(losses.mean())
        results["plain"]["last"][str(L)] = _rounded(losses[:, -1].mean())
    return results


def evaluate_task(model: Decoder, config: Config, task: str) -> dict[str, Any]:
    """Measure the share of right answers and the loss at each length: {"accuracy": {L: share}, "loss": {L: nats}}."""
    result: dict[str, Any] = {"accuracy": {}, "loss": {}}
    for L in (multiple * config.length for multiple in config.multiples):
        # On a CPU, torch uses only 32 bits of a seed, so this is the same as seed 0. Training with seed 0 samples a length
        # first, so it gets different sequences. The committed results were measured in this way.
        generator = torch.Generator().manual_seed(2**40)
        inputs, targets = tasks.TASKS[task].draw(generator, tasks.TASKS[task].sequences, L)
        losses, hits = _scores(model, inputs, targets)
        asked = targets != tasks.NO_TARGET
        result["accuracy"][str(L)] = _rounded(hits[asked].float().mean())
        result["loss"][str(L)] = _rounded(losses[asked].mean())
    return result


def pieces(text: Tensor, number: int, size: int) -> Tensor:
    """Cut out `number` pieces of `size` bytes, (number, size), at equal distances in the text, without overlap."""
    starts = torch.arange(number) * (len(text) // number)
    return text[starts.unsqueeze(-1) + torch.arange(size)]


def _rounded(loss: Tensor) -> float:
    return round(loss.item(), 4)
