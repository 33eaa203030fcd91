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


@wrong("rope.relative", "laid out as if neighbours formed a pair")
def relative_angles_of_neighbours(x: Tensor, m: Any) -> Any:
    return as_llama(x, m, lay_out=lambda t: t.repeat_interleave(2, dim=-1))


def as_gptj(x: Tensor, positions: Tensor, *, lay_out: Callable[..., Any] = lambda t: np.repeat(t, 2, axis=-1)) -> Any:
    """x·cos + rotate_every_two(x)·sin, in NumPy."""
    rows = x.numpy()
    angles = np.outer(positions.numpy(), 10_000.0 ** (-np.arange(0, rows.shape[1], 2) / rows.shape[1]))
    crossed = np.stack((-rows[:, 1::2], rows[:, 0::2]), axis=-1).reshape(rows.shape)
    return rows * lay_out(np.cos(angles)) + crossed * lay_out(np.sin(angles))


@wrong("rope.relative", "laid out as if channels i and i + d/2 formed a pair")
def relative_angles_of_halves(x: Tensor, m: Any) -> Any:
    return as_gptj(x, m, lay_out=lambda t: np.concatenate((t, t), axis=-1))


def rotated(
    *,
    halves: bool = False,
    angle: Callable[[Tensor, Tensor], Tensor] = lambda m, rate: m * rate,
    power: Callable[[int, int], float] = lambda i, d: -2 * i / d,
    turn: Callable[..., tuple[Tensor, Tensor]] = lambda a, b, c, s: (a * c - b * s, a * s + b * c),
) -> Callable[[Tensor, Tensor], Tensor]:
    """A rotary embedding as a beginner writes it, with one thing to be got wrong at a time."""

    def my_rotate(x: Tensor, positions: Tensor) -> Tensor:
        d = x.shape[1]
        rate = torch.tensor([10_000.0 ** power(i, d) for i in range(d // 2)], dtype=torch.float64)
        theta = angle(positions[:, None], rate)
        a, b = (x[:, : d // 2], x[:, d // 2 :]) if halves else (x[:, 0::2], x[:, 1::2])
        pair = turn(a, b, torch.cos(theta), torch.sin(theta))
        return torch.cat(pair, dim=1) if halves else torch.stack(pair, dim=2).reshape(x.shape)

    return my_rotate


def turn(x: Tensor, positions: Tensor, *, interleaved: bool = True) -> Tensor:
    """As the notebook has it."""
    if len(x) == 0:
        return x
    cos, sin = rope_tables(positions, frequencies(x.shape[1]), dtype=torch.float64)
    return apply_rope(x[None, None], cos, sin, interleaved=interleaved)[0, 0]


@wrong("rope.relative", "Your function is right for d = 8")
def relative_one_width_only(x: Tensor, m: Any) -> Any:
    return rotated()(x, m) if x.shape[1] == 8 else x


@wrong("rope.relative", "The token at position 0 has changed")
def relative_position_0_moved(x: Tensor, m: Any) -> Any:
    return rotated()(x, m) + 1


@wrong("rope.relative", "infinite or NaN")
def relative_infinite(x: Tensor, m: Any) -> Any:
    return x / m[:, None]


@wrong("rope.relative", "returned complex numbers")
def relative_complex(x: Tensor, m: Any) -> Any:
    return torch.polar(x.abs(), x)


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
    """Complex numbers, the other way round."""
    first, second = (list(channels) for channels in zip(*pairs, strict=True))
    angle = positions.double()[:, None] * frequencies(x.shape[1])
    turned = torch.complex(x[:, first].double(), x[:, second].double()) * torch.polar(torch.ones_like(angle), -angle)
    result = torch.empty_like(x)
    result[:, first], result[:, second] = turned.real.to(x.dtype), turned.imag.to(x.dtype)
    return result


def _rotate(x: Tensor, angles: Tensor, pairs: Pairs) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        c, s = angles[:, i].cos(), angles[:, i].sin()
        out[:, a], out[:, b] = x[:, a] * c - x[:, b] * s, x[:, a] * s + x[:, b] * c
    return out


def _angles(x: Tensor, positions: Tensor) -> Tensor:
    return positions[:, None] * frequencies(x.shape[1])


@right("rope.rotate")
def rotate_right(x: Tensor, positions: Tensor, pairs: Pairs) -> Any:
    return _rotate(x.double(), _angles(x, positions), pairs)


@wrong("rope.rotate", "after its rotation", blind=True)
def rotate_reads_what_it_wrote(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        angle = positions * 10_000 ** (-2 * i / x.shape[1])
        out[:, a] = out[:, a] * angle.cos() - out[:, b] * angle.sin()
        out[:, b] = out[:, a] * angle.sin() + out[:, b] * angle.cos()
    return out


@wrong("rope.rotate", "Where is the 2 of 2i/d", blind=True)
def rotate_no_2(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, m[:, None] * 10_000 ** (-torch.arange(len(pairs)) / x.shape[1]), pairs)


@wrong("rope.rotate", "ignores the positions", blind=True)
def rotate_by_row_number(x: Tensor, m: Any, pairs: Pairs) -> Any:
    return _rotate(x, _angles(x, torch.arange(len(m))), pairs)


@wrong("rope.rotate", "depends on the channel", blind=True)
def rotate_frequency_of_first_channel(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    first = torch.tensor([a for a, _ in pairs])
    return _rotate(x, positions[:, None] * 10_000 ** (-2 * (first // 2) / x.shape[1]), pairs)


@wrong("rope.rotate", "a reflection", blind=True)
def rotate_reflection(x: Tensor, positions: Tensor, pairs: Pairs) -> Tensor:
    out = x.clone()
    for i, (a, b) in enumerate(pairs):
        angle = positions * 10_000 ** (-2 * i / x.shape[1])
        out[:, a] = x[:, a] * angle.cos() + x[:, b] * angle.sin()
        out[:, b] = x[:, a] * angle.sin() - x[:, b] * angle.cos()
    return out


@wrong("rope.rotate", "twice as large", blind=True)
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
    """scaled_dot_product_attention with a mask of positions."""
    here = torch.arange(len(keys), len(keys) + len(q))
    keys, values = torch.cat((keys, turn(k, here))), torch.cat((values, v))
    mask = here[:, None].ge(torch.arange(len(keys)))
    return scaled_dot_product_attention(turn(q, here)[None], keys[None], values[None], attn_mask=mask[None])[0], keys, values


def _attend(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    scores = q @ keys.T / q.shape[1] ** 0.5
    return scores.masked_fill(~mask, -math.inf).softmax(dim=1) @ values


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
) -> Three:
    old, new = len(keys), len(q)
    q_from, k_from = old if q_from is None else q_from, old if k_from is None else k_from
    keys = torch.cat((keys, turn(k, torch.arange(k_from, k_from + new))))
    values = torch.cat((values, v))
    mask = torch.ones(new, old + new).tril(old if diagonal is None else diagonal).bool()
    return _attend(turn(q, torch.arange(q_from, q_from + new)), keys, values, mask), keys, values


@wrong("rope.step", "Every piece begins at position 0", blind=True)
def step_positions_from_0(*given: Any) -> Any:
    return _step(*given, q_from=0, k_from=0)


@wrong("rope.step", "Your new queries start again at position 0", blind=True)
def step_query_from_0(*given: Any) -> Any:
    return _step(*given, q_from=0)


@wrong("rope.step", "queries are one position ahead", blind=True)
def step_query_one_too_far(*given: Any) -> Any:
    return _step(*given, q_from=len(given[3]) + 1)


@wrong("rope.step", "get the position of its last token", blind=True)
def step_one_new_token_only(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor) -> Three:
    """All new tokens at the position of the last one."""
    here = torch.full((len(q),), len(keys) + len(q) - 1)
    mask = torch.ones(len(q), len(keys) + len(q)).tril(len(keys)).bool()
    keys, values = torch.cat((keys, turn(k, here))), torch.cat((values, v))
    return _attend(turn(q, here), keys, values, mask), keys, values


@wrong("rope.step", "again in every step", blind=True)
def step_turns_all_again(q: Tensor, k: Tensor, v: Tensor, keys: Tensor, values: Tensor, *, keep: bool = True) -> Three:
    old, new = len(keys), len(q)
    keys, values = torch.cat((keys, k)), torch.cat((values, v))
    turned = turn(keys, torch.arange(old + new))
    mask = torch.ones(new, old + new).tril(old).bool()
    return _attend(turn(q, torch.arange(old, old + new)), turned, values, mask), turned if keep else keys, values


@wrong("rope.step", "each step rotates all of them again", blind=True)
def step_turns_all_again_keeps_unturned(*given: Any) -> Any:
    return step_turns_all_again(*given, keep=False)


@right("rope.renumber")
def renumber_by_complex_numbers(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    z = keys.numpy()[:, 0::2] + 1j * keys.numpy()[:, 1::2]
    z *= np.exp(1j * np.outer(new - old, 10_000.0 ** (-np.arange(0, keys.shape[1], 2) / keys.shape[1])))
    return np.stack((z.real, z.imag), axis=-1).reshape(keys.shape)


@right("rope.renumber")
def renumber_there_and_back(keys: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Back to 0 first, row by row."""
    rows = [turn(turn(keys[r : r + 1], -old[r : r + 1]), new[r : r + 1]) for r in range(len(keys))]
    return torch.cat(rows)


@right("rope.renumber")
def renumber_complex(keys: Tensor, old: Tensor, new: Tensor, *, width: int | None = None) -> Tensor:
    """Multiplied by a power of e^{iω}."""
    omega = frequencies(width or keys.shape[1])[: keys.shape[1] // 2]
    angle = (new.double() - old.double())[:, None] * omega
    pairs = torch.view_as_complex(keys.double().reshape(len(keys), -1, 2))
    return torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(1).to(keys.dtype)


@wrong("rope.renumber", "in the wrong direction", blind=True)
def renumber_other_way(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, old - new)


@wrong("rope.renumber", "already been rotated by their old ones", blind=True)
def renumber_on_top(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, new)


@wrong("rope.renumber", "positions as the first", blind=True)
def renumber_one_shift(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, (new[0] - old[0]).expand(len(keys)))


@wrong("rope.renumber", "not on to their new", blind=True)
def renumber_back_only(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, -old)


@wrong("rope.renumber", "the new rotation to the old one", blind=True)
def renumber_sum(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, old + new)


@wrong("rope.renumber", "keys that move up stay", blind=True)
def renumber_down_only(keys: Tensor, old: Tensor, new: Tensor) -> Any:
    return turn(keys, (new - old).clamp(max=0))
