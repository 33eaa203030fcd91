"""Answers to the exercises on RoPE."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from posenc_course.rope import apply_rope, rope_tables
from posenc_course.sinusoidal import frequencies
from tests.answers import right, wrong

Pairs = list[tuple[int, int]]
Three = tuple[Any, Any, Any]


@right("rope.relative")
def as_llama(x: Tensor, positions: Tensor, *, lay_out: Callable[..., Any] = lambda t: torch.cat((t, t), dim=-1)) -> Tensor:
    """x·cos + rotate_half(x)·sin, in float32."""
    angles = torch.outer(positions.float(), 1.0 / 10_000 ** (torch.arange(0, x.shape[-1], 2).float() / x.shape[-1]))
    cos, sin = lay_out(angles.cos()), lay_out(angles.sin())
    a, b = x.float().chunk(2, dim=-1)
    return x.float() * cos + torch.cat((-b, a), dim=-1) * sin


@right("rope.relative")
def as_complex(x: Tensor, positions: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    angles = torch.outer(positions.double(), frequencies(x.shape[-1]))
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(start_dim=-2)


@right("rope.relative")
def relative_right(x: Tensor, m: Any) -> Any:
    return apply_rope(x[None, None], *rope_tables(m, frequencies(x.shape[1])), interleaved=False)[0, 0]


@wrong("rope.relative", "Your angles don't fit your pairs")
def relative_angles_of_neighbours(x: Tensor, m: Any) -> Any:
    return as_llama(x, m, lay_out=lambda t: t.repeat_interleave(2, dim=-1))


Pairwise = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def plainly(a: Tensor, b: Tensor, c: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    return a * c - b * s, a * s + b * c


def _rotate(x: Tensor, angles: Tensor, pairs: Pairs, turn: Pairwise = plainly) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        out[:, a], out[:, b] = turn(x[:, a], x[:, b], angles[:, i].cos(), angles[:, i].sin())
    return out


def rotated(x: Tensor, positions: Tensor, *, power: float = -2, turn: Pairwise = plainly) -> Tensor:
    """A rotary embedding as a beginner writes it, with one thing to be got wrong at a time."""
    pairs = [(2 * i, 2 * i + 1) for i in range(x.shape[1] // 2)]
    return _rotate(x, positions[:, None] * 10_000.0 ** (power * torch.arange(len(pairs)).double() / x.shape[1]), pairs, turn)


@wrong("rope.relative", "uses the row numbers")
def relative_row_numbers(x: Tensor, m: Any) -> Any:
    return rotated(x, torch.arange(len(m)))


@wrong("rope.relative", "Where is the 2 of 2i/d")
def relative_no_2(x: Tensor, m: Any) -> Any:
    return rotated(x, m, power=-1)


@wrong("rope.relative", "twice as large")
def relative_pairs_as_width(x: Tensor, m: Any) -> Any:
    return rotated(x, m, power=-4)


@wrong("rope.relative", "stretched or reflected")
def relative_reflection(x: Tensor, m: Any) -> Any:
    return rotated(x, m, turn=lambda a, b, c, s: (a * c + b * s, a * s - b * c))


@wrong("rope.relative", "both old ones")
def relative_in_place(x: Tensor, m: Any) -> Any:
    return rotated(x, m, turn=lambda a, b, c, s: ((first := a * c - b * s), first * s + b * c))


@wrong("rope.relative", "Pair 0 is the fastest")
def relative_no_minus(x: Tensor, m: Any) -> Any:
    return rotated(x, m, power=2)


def turn(x: Tensor, positions: Tensor, *, interleaved: bool = True) -> Tensor:
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=interleaved)[0, 0]


@right("rope.rotate")
def rotate_exponential(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    """The exponential of a matrix that is antisymmetric in each pair."""
    d = x.shape[1]
    generator = torch.zeros(d, d, dtype=torch.float64)
    for i, (a, b) in enumerate(pairs):
        generator[a, b], generator[b, a] = 10_000 ** (-2 * i / d), -(10_000 ** (-2 * i / d))
    turns = torch.matrix_exp(positions.double()[:, None, None] * generator)
    return torch.einsum("rc,rce->re", x.double(), turns).to(x.dtype)


@right("rope.rotate")
def rotate_complex(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    first, second = (list(channels) for channels in zip(*pairs, strict=True))
    angle = positions.double()[:, None] * frequencies(x.shape[1])
    turned = torch.complex(x[:, first].double(), x[:, second].double()) * torch.polar(torch.ones_like(angle), -angle)
    result = torch.empty_like(x)
    result[:, first], result[:, second] = turned.real.to(x.dtype), turned.imag.to(x.dtype)
    return result


def _angles(x: Tensor, positions: Tensor) -> Tensor:
    return positions[:, None] * frequencies(x.shape[1])


@right("rope.rotate")
def rotate_right(x: Tensor, positions: Tensor, pairs: Pairs) -> Any:
    return _rotate(x.double(), _angles(x, positions), pairs)


@wrong("rope.rotate", "after its rotation")
def rotate_reads_what_it_wrote(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, _angles(x, m), pairs, lambda a, b, c, s: ((first := a * c - b * s), first * s + b * c))


@wrong("rope.rotate", "Where is the 2 of 2i/d")
def rotate_no_2(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, m[:, None] * 10_000 ** (-torch.arange(len(pairs)) / x.shape[1]), pairs)


@wrong("rope.rotate", "ignores the positions")
def rotate_by_row_number(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, _angles(x, torch.arange(len(m))), pairs)


@wrong("rope.rotate", "depends on the channel")
def rotate_frequency_of_first_channel(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    first = torch.tensor([a for a, _ in pairs])
    return _rotate(x, positions[:, None] * 10_000 ** (-2 * (first // 2) / x.shape[1]), pairs)


@wrong("rope.rotate", "stretched or reflected")
def rotate_reflection(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, _angles(x, m), pairs, lambda a, b, c, s: (a * c + b * s, a * s - b * c))


@wrong("rope.rotate", "as `pairs` says")
def rotate_neighbours(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, _angles(x, m), [(2 * i, 2 * i + 1) for i in range(len(pairs))])


@wrong("rope.rotate", "Pair 0 is the fastest")
def rotate_all_at_one_speed(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, m[:, None] * torch.ones(len(pairs)), pairs)


@wrong("rope.rotate", "twice as large")
def rotate_width_of_pairs(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    n = len(pairs)
    return _rotate(x, positions[:, None] * 10_000 ** (-2 * torch.arange(n) / n), pairs)


@right("rope.step")
def step_by_comparison(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    positions = torch.arange(len(keys) + len(q))
    at = positions[len(keys) :]
    keys, values = torch.cat((keys, turn(k, at))), torch.cat((values, v))
    hidden = positions[None, :] > at[:, None]
    scores = (turn(q, at) @ keys.T / q.shape[1] ** 0.5).masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ values, keys, values


@right("rope.step")
def step_one_by_one(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """Each new token alone, without any mask; the query is left at 0 and all keys are rotated back."""
    outputs = []
    for r in range(len(q)):
        here = torch.tensor([len(keys)])
        keys, values = torch.cat((keys, turn(k[r : r + 1], here))), torch.cat((values, v[r : r + 1]))
        scores = turn(keys, -here.expand(len(keys))) @ q[r]
        weights = (scores / q.shape[1] ** 0.5).exp()
        outputs.append(weights @ values / weights.sum())
    return torch.stack(outputs), keys, values


@right("rope.step")
def step_masked(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    here = torch.arange(len(keys), len(keys) + len(q))
    keys, values = torch.cat((keys, turn(k, here))), torch.cat((values, v))
    mask = here[:, None].ge(torch.arange(len(keys)))
    return scaled_dot_product_attention(turn(q, here)[None], keys[None], values[None], attn_mask=mask[None])[0], keys, values


def _step(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    q_from: int | None = None,
    k_from: int | None = None,
    diagonal: int | None = None,
    axis: int = -1,
) -> Three:
    old, new = len(keys), len(q)
    q_from, k_from = old if q_from is None else q_from, old if k_from is None else k_from
    keys = torch.cat((keys, turn(k, torch.arange(k_from, k_from + new))))
    values = torch.cat((values, v))
    mask = torch.ones(new, old + new).tril(old if diagonal is None else diagonal).bool()
    scores = turn(q, torch.arange(q_from, q_from + new)) @ keys.T / q.shape[1] ** 0.5
    return scores.masked_fill(~mask, -math.inf).softmax(dim=axis) @ values, keys, values


@wrong("rope.step", "Your positions are wrong")
def step_positions_from_0(*given: Any) -> Any:
    return _step(*given, q_from=0, k_from=0)


@wrong("rope.step", "the query and the key of a token have different positions")
def step_query_from_0(*given: Any) -> Any:
    return _step(*given, q_from=0)


@wrong("rope.step", "Your mask is wrong")
def step_mask_of_one_piece(*given: Any) -> Any:
    return _step(*given, diagonal=0)


@wrong("rope.step", "Check your weights")
def step_softmax_over_queries(*given: Any) -> Any:
    return _step(*given, axis=0)


@wrong("rope.step", "again in every step")
def step_turns_all_again(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, *, keep: bool = True) -> Three:
    here = torch.arange(len(keys), len(keys) + len(q))
    keys, values = torch.cat((keys, k)), torch.cat((values, v))
    turned = turn(keys, torch.arange(len(keys)))
    mask = here[:, None].ge(torch.arange(len(keys)))
    output = scaled_dot_product_attention(turn(q, here)[None], turned[None], values[None], attn_mask=mask[None])[0]
    return output, turned if keep else keys, values


@wrong("rope.step", "Your cache contains unrotated keys")
def step_turns_all_again_keeps_unturned(*given: Any) -> Any:
    return step_turns_all_again(*given, keep=False)


@right("rope.renumber")
def renumber_by_complex_numbers(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    z = keys.numpy()[:, 0::2] + 1j * keys.numpy()[:, 1::2]
    z *= np.exp(1j * np.outer(new - old, 10_000.0 ** (-np.arange(0, keys.shape[1], 2) / keys.shape[1])))
    return np.stack((z.real, z.imag), axis=-1).reshape(keys.shape)


@right("rope.renumber")
def renumber_there_and_back(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    rows = [turn(turn(keys[r : r + 1], -old[r : r + 1]), new[r : r + 1]) for r in range(len(keys))]
    return torch.cat(rows)


@right("rope.renumber")
def renumber_complex(keys: Tensor, old: Tensor, new: Tensor, *, width: int | None = None) -> Tensor:
    omega = frequencies(width or keys.shape[1])[: keys.shape[1] // 2]
    angle = (new.double() - old.double())[:, None] * omega
    pairs = torch.view_as_complex(keys.double().reshape(len(keys), -1, 2))
    return torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(1).to(keys.dtype)


@wrong("rope.renumber", "for zeros instead of `old`")
def renumber_on_top(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, new)


@wrong("rope.renumber", "positions as the first")
def renumber_one_shift(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, (new[0] - old[0]).expand(len(keys)))


@wrong("rope.renumber", "which pairs neighbours")
def renumber_halves(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, new - old, interleaved=False)


@wrong("rope.renumber", "some keys move and others don't")
def renumber_down_only(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, (new - old).clamp(max=0))
