"""Answers by somebody who had not read the checks."""

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.geometry import distance
from posenc_course.sinusoidal import sinusoidal_table

Maker = Callable[[Tensor, int], Tensor]


# norm.has_right_lengths


def one_at_a_time(make_table: Maker) -> bool:
    """Ask for one row at a time, backwards."""
    for d in range(16, 0, -2):
        for m in range(299, -1, -1):
            row = [float(x) for x in make_table(torch.tensor([m]), d)[0]]
            if not abs(math.hypot(*row) - math.sqrt(d / 2)) < 0.002:
                return False
    return True


def grams(make_table: Maker) -> bool:
    """Look at the diagonal of the Gram matrix, at shuffled positions."""
    good = True
    for d in range(2, 17, 2):
        table = make_table(torch.randperm(300), d).double()
        good = good and torch.allclose((table @ table.T).diagonal(), torch.tensor(d / 2).double(), atol=1e-3)
    return good


def _lengths(make_table: Maker, d: int, count: int = 300) -> Tensor:
    return make_table(torch.arange(count), d).double().norm(dim=1)


def mean_length(make_table: Maker) -> bool:
    return all(abs(float(_lengths(make_table, d).mean()) - math.sqrt(d / 2)) < 1e-3 for d in range(2, 17, 2))


def mean_square(make_table: Maker) -> bool:
    return all(abs(float(_lengths(make_table, d).square().mean()) - d / 2) < 1e-3 for d in range(2, 17, 2))


def none_far(make_table: Maker) -> bool:
    return not any(bool(((_lengths(make_table, d) - math.sqrt(d / 2)).abs() > 1e-3).any()) for d in range(2, 17, 2))


def forgets_16(make_table: Maker) -> bool:
    return all(bool(((_lengths(make_table, d) - math.sqrt(d / 2)).abs() < 1e-3).all()) for d in range(2, 16, 2))


def forgets_2(make_table: Maker) -> bool:
    return all(bool(((_lengths(make_table, d) - math.sqrt(d / 2)).abs() < 1e-3).all()) for d in range(4, 17, 2))


def powers_of_two(make_table: Maker) -> bool:
    return all(bool(((_lengths(make_table, d) - math.sqrt(d / 2)).abs() < 1e-3).all()) for d in (2, 4, 8, 16))


def first_hundred(make_table: Maker) -> bool:
    return all(bool(((_lengths(make_table, d, 100) - math.sqrt(d / 2)).abs() < 1e-3).all()) for d in range(2, 17, 2))


def forgets_299(make_table: Maker) -> bool:
    return all(bool(((_lengths(make_table, d, 299) - math.sqrt(d / 2)).abs() < 1e-3).all()) for d in range(2, 17, 2))


def same_as_papers(make_table: Maker) -> bool:
    at = torch.arange(300)
    return all(torch.allclose(make_table(at, d).double(), sinusoidal_table(at, d), atol=1e-3) for d in range(2, 17, 2))


def no_root(make_table: Maker) -> bool:
    return all(bool(((_lengths(make_table, d) - d / 2).abs() < 1e-3).all()) for d in range(2, 17, 2))


def exactly(make_table: Maker) -> bool:
    return all(bool((_lengths(make_table, d) == math.sqrt(d / 2)).all()) for d in range(2, 17, 2))


def generous(make_table: Maker) -> bool:
    return all(bool(((_lengths(make_table, d) - math.sqrt(d / 2)).abs() < 0.1).all()) for d in range(2, 17, 2))


def one_side(make_table: Maker) -> bool:
    return all(bool((_lengths(make_table, d) - math.sqrt(d / 2) < 1e-3).all()) for d in range(2, 17, 2))


def returns_early(make_table: Maker) -> bool:
    for d in range(2, 17, 2):
        return bool(((_lengths(make_table, d) - math.sqrt(d / 2)).abs() < 1e-3).all())
    return False


def all_alike(make_table: Maker) -> bool:
    return all(bool(((x := _lengths(make_table, d)) - x[0]).abs().max() < 1e-3) for d in range(2, 17, 2))


# norm.factor_for


def by_halving(words: Tensor, rows: Tensor, share: float) -> float:
    """Halve between two factors, on the fraction as it stands."""
    words, rows = words.double(), rows.double()
    p = rows.square().sum(1).mean()

    def fraction(f: float) -> float:
        return float(p / (f * f * words.square().sum(1).mean() + 2 * f * words.mean(0) @ rows.mean(0) + p))

    low, high = 0.0, 1.0
    while fraction(high) > share:
        high *= 2
    # where the means are opposed the fraction first grows: come from the vertex
    low = max(0.0, -float(words.mean(0) @ rows.mean(0) / words.square().sum(1).mean()))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if fraction(middle) > share else (low, middle)
    return high


def polynomial_roots(words: Tensor, rows: Tensor, share: float) -> float:
    x, p = np.asarray(words.double()), np.asarray(rows.double())
    a, b, c = (x**2).sum(1).mean(), 2 * (x @ p.T).mean(), (p**2).sum(1).mean()
    return float(max(np.roots([a, b, c - c / share]).real))


def _abc(words: Tensor, rows: Tensor) -> tuple[float, float, float]:
    words, rows = words.double(), rows.double()
    dot = words.mean(0) @ rows.mean(0)
    return float(words.square().sum(1).mean()), float(2 * dot), float(rows.square().sum(1).mean())


def _root(a: float, b: float, c: float) -> float:
    return (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)


def as_in_chapter(words: Tensor, rows: Tensor, share: float) -> float:
    a, _, c = _abc(words, rows)
    return math.sqrt(c * (1 - share) / share / a)


def other_root(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, c = _abc(words, rows)
    return (-b - math.sqrt(b * b - 4 * a * (c - c / share))) / (2 * a)


def two_forgotten(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, c = _abc(words, rows)
    return _root(a, b / 2, c - c / share)


def sign_of_b(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, c = _abc(words, rows)
    return _root(a, -b, c - c / share)


def size_of_b(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, c = _abc(words, rows)
    return _root(a, abs(b), c - c / share)


def words_share(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, c = _abc(words, rows)
    return _root(a, b, c - c / (1 - share))


def pairs_in_order(words: Tensor, rows: Tensor, share: float) -> float:
    a, _, c = _abc(words, rows)
    n = min(len(words), len(rows))
    return _root(a, 2 * float((words[:n] * rows[:n]).sum(1).mean()), c - c / share)


def mean_per_channel(words: Tensor, rows: Tensor, share: float) -> float:
    a, c = float(words.square().mean()), float(rows.square().mean())
    return _root(a, 2 * float((words @ rows.T).mean()), c - c / share)


def squares_of_means(words: Tensor, rows: Tensor, share: float) -> float:
    a, c = float(words.norm(dim=1).mean() ** 2), float(rows.norm(dim=1).mean() ** 2)
    return _root(a, 2 * float((words @ rows.T).mean()), c - c / share)


def rows_are_the_papers(words: Tensor, rows: Tensor, share: float) -> float:
    a, b, _ = _abc(words, rows)
    c = rows.shape[1] / 2
    return _root(a, b, c - c / share)


def mean_of_shares(words: Tensor, rows: Tensor, share: float) -> float:
    low, high = 0.0, 1000.0
    for _ in range(40):
        f = (low + high) / 2
        both = (f * words[:, None] + rows[None]).square().sum(-1)
        low, high = (f, high) if float((rows.square().sum(1) / both).mean()) > share else (low, f)
    return low


# norm.rows_until


def circles(d_model: int, share: float) -> int:
    """Add numbers on the unit circle, no table."""
    omega = [10000 ** (-2 * i / d_model) for i in range(d_model // 2)]
    total, count = [0j] * len(omega), 0
    while True:
        total = [z + complex(math.cos(w * count), math.sin(w * count)) for z, w in zip(total, omega, strict=True)]
        count += 1
        if sum(abs(z / count) ** 2 for z in total) < share * d_model / 2:
            return count


def _common(d_model: int, count: int = 1000) -> Tensor:
    table = sinusoidal_table(range(count), d_model)
    mean = table.cumsum(0) / torch.arange(1, count + 1)[:, None]
    return mean.square().sum(1) / (d_model / 2)


def index_not_number(d_model: int, share: float) -> int:
    return int((_common(d_model) < share).nonzero()[0])


def one_too_many(d_model: int, share: float) -> int:
    return int((_common(d_model) < share).nonzero()[0]) + 2


def length_not_squared(d_model: int, share: float) -> int:
    return int((_common(d_model).sqrt() < share).nonzero()[0]) + 1


def divided_by_index(d_model: int, share: float) -> int:
    table = sinusoidal_table(range(1002), d_model)
    mean = table.cumsum(0) / torch.arange(1002).clamp(min=1)[:, None]
    return int((mean.square().sum(1) < share * d_model / 2).nonzero()[0]) + 1


def halving_rows(d_model: int, share: float) -> int:
    common = _common(d_model, 2000)
    low, high = 1, 2000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if common[middle - 1] < share else (middle, high)
    return high


def for_good(d_model: int, share: float) -> int:
    return int((_common(d_model) >= share).nonzero()[-1]) + 2


def without_half(d_model: int, share: float) -> int:
    return int((_common(d_model) < 2 * share).nonzero()[0]) + 1


def only_hundred(d_model: int, share: float) -> int:
    few = (_common(d_model, 100) < share).nonzero()
    return int(few[0]) + 1 if len(few) else 100


def from_one(d_model: int, share: float) -> int:
    common = _common(d_model)
    return next(k for k in range(10, 1000) if common[k - 1] < share)


def not_a_mean(d_model: int, share: float) -> int:
    table = sinusoidal_table(range(1000), d_model)
    return int(((table @ table[0]) < share * d_model / 2).nonzero()[0]) + 1


def steps_of_ten(d_model: int, share: float) -> int:
    common = _common(d_model)
    return next((k for k in range(10, 1001, 10) if common[k - 1] < share), 1000)


# base.for_turns


def turns_by_logarithm(length: int, d_model: int, count: int) -> float:
    log = np.log(length - 1) - np.log(2 * np.pi)
    return np.exp(log / (2 * (count - 1)) * d_model)


def turns_by_halving(length: int, d_model: int, count: int) -> float:
    """Count the pairs, on ever finer bases."""
    low, high = 0.0, 400.0
    for _ in range(300):
        x = (low + high) / 2
        fast = sum((length - 1) * math.exp(-2 * i / d_model * x) >= 2 * math.pi for i in range(d_model // 2))
        low, high = (x, high) if fast >= count else (low, x)
    return math.exp(low)


def by_length(length: int, d_model: int, count: int) -> float:
    return (length / (2 * math.pi)) ** (d_model / (2 * (count - 1)))


def one_pair_more(length: int, d_model: int, count: int) -> float:
    return ((length - 1) / (2 * math.pi)) ** (d_model / (2 * count))


def half_turn(length: int, d_model: int, count: int) -> float:
    return ((length - 1) / math.pi) ** (d_model / (2 * (count - 1)))


def slowest_pair(length: int, d_model: int, count: int) -> float:
    return ((length - 1) / (2 * math.pi)) ** (d_model / (d_model - 2))


def whole_base(length: int, d_model: int, count: int) -> int:
    return int(((length - 1) / (2 * math.pi)) ** (d_model / (2 * (count - 1))))


def exponent_without_two(length: int, d_model: int, count: int) -> float:
    return ((length - 1) / (2 * math.pi)) ** (d_model / (count - 1))


def count_turns(length: int, d_model: int, count: int) -> float:
    return ((length - 1) / (2 * math.pi * count)) ** (d_model / (d_model - 2))


def one_radian(length: int, d_model: int, count: int) -> float:
    return (length - 1) ** (d_model / (2 * (count - 1)))


def slow_pairs(length: int, d_model: int, count: int) -> float:
    i = max(d_model // 2 - count, 1)
    return ((length - 1) / (2 * math.pi)) ** (d_model / (2 * i))


# base.for_neighbours


def halved_powers(d_model: int, apart: float) -> Tensor:
    """Halve in logarithms, by the formula itself."""
    low, high = torch.tensor(0.0).double(), torch.tensor(13.0).double()
    i = torch.arange(d_model // 2).double()
    for _ in range(100):
        x = (low + high) / 2
        far = 2 * torch.linalg.vector_norm(torch.sin(10 ** (-2 * i / d_model * x) / 2))
        low, high = (x, high) if far > apart else (low, x)
    return 10**low


def fine_ladder(d_model: int, apart: float) -> float:
    """Climb by tenths, then hundredths and thousandths of a power."""
    x = 0.0
    for step in (1, 0.1, 0.01, 0.001):
        while float(distance([1], d_model, 10 ** (x + step))) >= apart:
            x += step
    return 10 ** (x + 0.0005)


def halve_plainly(d_model: int, apart: float, steps: int = 40) -> float:
    low, high = 1.0, 1e12
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if float(distance([1], d_model, middle)) >= apart else (low, middle)
    return low


def powers_of_ten(d_model: int, apart: float) -> float:
    return max([1.1] + [10.0**k for k in range(13) if float(distance([1], d_model, 10.0**k)) >= apart])


def wrong_way(d_model: int, apart: float) -> float:
    low, high = 1.0, 1e12
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if float(distance([1], d_model, middle)) >= apart else (middle, high)
    return low


def _solve(far: Callable[[float], float], apart: float) -> float:
    low, high = 1.0, 1e13
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if far(middle) >= apart else (low, middle)
    return low


def _omega(d_model: int, base: float) -> Tensor:
    return base ** (-2 * torch.arange(d_model // 2).double() / d_model)


def half_forgotten(d_model: int, apart: float) -> float:
    return _solve(lambda base: float(2 * _omega(d_model, base).sin().square().sum().sqrt()), apart)


def root_forgotten(d_model: int, apart: float) -> float:
    return _solve(lambda base: float(4 * (_omega(d_model, base) / 2).sin().square().sum()), apart)


def two_left_out(d_model: int, apart: float) -> float:
    return _solve(lambda base: float((_omega(d_model, base) / 2).sin().square().sum().sqrt()), apart)


def small_angles(d_model: int, apart: float) -> float:
    return _solve(lambda base: float(_omega(d_model, base).square().sum().sqrt()), apart)


def stops_at_a_million(d_model: int, apart: float) -> float:
    return min(_solve(lambda base: float(distance([1], d_model, base)), apart), 1e6)


def seven_halvings(d_model: int, apart: float) -> float:
    low, high = 1.1, 1e12
    for _ in range(7):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(distance([1], d_model, middle)) >= apart else (low, middle)
    return low


def whole_bases(d_model: int, apart: float) -> int:
    return round(_solve(lambda base: float(distance([1], d_model, base)), apart))


def ten_thousand_always(d_model: int, apart: float) -> float:
    return 10_000.0


# base.survivors


def up_to_the_last(length: int, bits: int) -> int:
    """Count the numbers that exist, up to what the last position becomes."""
    if length < 1:
        return 0
    last = length - 1
    step = 2 ** max(last.bit_length() - bits, 0)
    last = round(Fraction(last, step)) * step
    return sum(1 for n in range(last + 1) if n == 0 or len(bin(n)[2:].rstrip("0")) <= bits)


def mantissas(length: int, bits: int) -> int:
    m, e = np.frexp(np.arange(length).astype(float))
    return len(np.unique(np.ldexp(np.rint(m * 2.0**bits), e)))


def cut_off(length: int, bits: int) -> int:
    return len({m >> max(m.bit_length() - bits, 0) << max(m.bit_length() - bits, 0) for m in range(length)})


def half_up(length: int, bits: int) -> int:
    found = set()
    for m in range(length):
        step = 2 ** max(m.bit_length() - bits, 0)
        found.add((2 * m + step) // (2 * step) * step if step > 1 else m)
    return len(found)


def unharmed(length: int, bits: int) -> int:
    return sum(m % 2 ** max(m.bit_length() - bits, 0) == 0 for m in range(length))


def _many(length: int, bits: int) -> int:
    found = set()
    for m in range(length):
        step = 2 ** max(m.bit_length() - bits, 0)
        found.add(round(m / step) * step)
    return len(found)


def one_step_for_all(length: int, bits: int) -> int:
    step = 2 ** max((length - 1).bit_length() - bits, 0)
    return len({round(m / step) for m in range(length)})


def hidden_digit(length: int, bits: int) -> int:
    return _many(length, bits + 1)


def one_digit_less(length: int, bits: int) -> int:
    return _many(length, bits - 1)


def at_most_all_digits(length: int, bits: int) -> int:
    return min(length, 2**bits)


def one_position_more(length: int, bits: int) -> int:
    return _many(length + 1, bits)


def zero_left_out(length: int, bits: int) -> int:
    return _many(length, bits) - 1


def decimal_digits(length: int, bits: int) -> int:
    return len({float(f"{m:.{bits - 1}e}") for m in range(length)})


def alone(length: int, bits: int) -> int:
    found = Counter(round(m / (s := 2 ** max(m.bit_length() - bits, 0))) * s for m in range(length))
    return sum(n == 1 for n in found.values())


def ready_kinds(length: int, bits: int) -> int:
    kind = torch.bfloat16 if bits <= 8 else torch.float16 if bits <= 11 else torch.float32
    return len(torch.arange(length).to(kind).unique())


def mantissas_not_values(length: int, bits: int) -> int:
    return len({round(m / 2 ** max(m.bit_length() - bits, 0)) for m in range(length)})


def ceiling_log(length: int, bits: int) -> int:
    found = {0}
    for m in range(1, length):
        step = 2 ** max(math.ceil(math.log2(m)) - bits, 0)
        found.add(round(m / step) * step)
    return len(found)


# learned.share


def fractions(rows: int, d_model: int, vocabulary: int, layers: int) -> Fraction:
    """One d cancels."""
    return Fraction(rows, rows + vocabulary + 12 * d_model * layers)


def share_float(rows: int, d_model: int, vocabulary: int, layers: int) -> float:
    return 1 / (1 + vocabulary / rows + 12 * d_model * layers / rows)


# learned.room


def simulated(prompt: int, rows: int) -> int:
    table, text, said = list(range(rows)), ["word"] * prompt, 0
    while True:
        try:
            _ = [table[k] for k in range(len(text))]
        except IndexError:
            return said
        text.append("new")
        said += 1


# learned.untrained


def angles(before: Tensor, after: Tensor) -> list[bool]:
    """The part of each row across the old one, as an angle."""
    out = []
    for b, a in zip(before.double(), after.double(), strict=True):
        along = float(a @ b / b.norm())
        across = float((a - along * b / b.norm()).norm())
        out.append(math.degrees(math.atan2(across, along)) < 0.5)
    return out


def difference_of_units(before: Tensor, after: Tensor) -> Tensor:
    unit = torch.nn.functional.normalize
    return (unit(before, dim=1) - unit(after, dim=1)).norm(dim=1) < 0.005


def _cos(before: Tensor, after: Tensor) -> Tensor:
    return torch.cosine_similarity(before.double(), after.double(), dim=1)


def unchanged(before: Tensor, after: Tensor) -> Tensor:
    return (before == after).all(1)


def nearly_unchanged(before: Tensor, after: Tensor) -> Tensor:
    return torch.isclose(before, after, rtol=0.05).all(1)


def opposite_too(before: Tensor, after: Tensor) -> Tensor:
    return _cos(before, after).abs() > 0.9999


def loose(before: Tensor, after: Tensor) -> Tensor:
    return _cos(before, after) > 0.99


def strict(before: Tensor, after: Tensor) -> Tensor:
    return _cos(before, after) >= 1


def shorter(before: Tensor, after: Tensor) -> Tensor:
    return after.norm(dim=1) <= before.norm(dim=1)


def same_ratio(before: Tensor, after: Tensor) -> Tensor:
    ratio = after.norm(dim=1) / before.norm(dim=1)
    return (ratio - ratio.median()).abs() < 1e-4


def trained(before: Tensor, after: Tensor) -> Tensor:
    return _cos(before, after) < 0.9999


def numbers_of_rows(before: Tensor, after: Tensor) -> Tensor:
    return (_cos(before, after) > 0.9999).nonzero().flatten()


def from_the_back(before: Tensor, after: Tensor) -> Tensor:
    still = _cos(before, after) > 0.9999
    return still.flip(0).long().cumprod(0).flip(0).bool()


def straight_and_shorter(before: Tensor, after: Tensor) -> Tensor:
    return (_cos(before, after) > 0.9999) & (after.norm(dim=1) < before.norm(dim=1))


def per_column(before: Tensor, after: Tensor) -> Tensor:
    return torch.cosine_similarity(before, after, dim=0) > 0.9999


def last_row_tells(before: Tensor, after: Tensor) -> Tensor:
    factor = after[-1].norm() / before[-1].norm()
    return torch.isclose(after, factor * before, atol=1e-4).all(1)


def first_channel_ratio(before: Tensor, after: Tensor) -> Tensor:
    ratio = after / before
    return (ratio[:, 0] - ratio[:, 1]).abs() < 1e-3


def angle_float32(before: Tensor, after: Tensor) -> Tensor:
    return (torch.cosine_similarity(before.float(), after.float(), dim=1) - 1).abs() < 1e-9


# learned.positions


def remainders(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(1) - 1) % mask.shape[1]


def from_first_word(mask: Tensor) -> list[list[int]]:
    """Count in plain lists, from the first word on."""
    rows = mask.tolist()
    return [[max(0, k - row.index(True)) for k in range(len(row))] for row in rows]


def minus_one_in_front(mask: Tensor) -> Tensor:
    return mask.long().cumsum(1) - 1


def word_itself_counted(mask: Tensor) -> Tensor:
    return mask.long().cumsum(1)


def less_padding(mask: Tensor) -> Tensor:
    at = torch.arange(mask.shape[1]).expand(mask.shape)
    return (at - (~mask).sum(1, keepdim=True)).clamp(min=0)


def column_by_column(mask: Tensor) -> Tensor:
    return torch.arange(mask.shape[1]).expand(mask.shape)


def down_the_batch(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(0) - 1).clamp(min=0)


def masked_columns(mask: Tensor) -> Tensor:
    return torch.arange(mask.shape[1]).expand(mask.shape) * mask


def backwards(mask: Tensor) -> Tensor:
    return (mask.flip(1).long().cumsum(1).flip(1) - 1).clamp(min=0)


def first_text_for_all(mask: Tensor) -> Tensor:
    return (mask[0].long().cumsum(0) - 1).clamp(min=0).expand(mask.shape)


def longest_at_padding(mask: Tensor) -> Tensor:
    return torch.where(mask, mask.long().cumsum(1) - 1, mask.shape[1])


def halves(mask: Tensor) -> Tensor:
    return (mask.double().cumsum(1) - 0.5).clamp(min=0)


def running_over(mask: Tensor) -> Tensor:
    return (mask.flatten().long().cumsum(0) - 1).clamp(min=0).view(mask.shape) % mask.shape[1]


def words_only(mask: Tensor) -> list[list[int]]:
    return [list(range(int(row.sum()))) for row in mask]


def one_in_front(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(1) - 1).abs() * mask + (~mask).long() * -1


Answer = Callable[..., Any]

RIGHT: dict[str, list[Answer]] = {
    "norm.has_right_lengths": [one_at_a_time, grams],
    "norm.factor_for": [by_halving, polynomial_roots],
    "norm.rows_until": [circles],
    "base.for_turns": [turns_by_logarithm, turns_by_halving],
    "base.for_neighbours": [halved_powers, fine_ladder],
    "base.survivors": [up_to_the_last, mantissas, ceiling_log],
    "learned.share": [fractions, share_float],
    "learned.room": [simulated, lambda p, n: len(range(p, n + 1))],
    "learned.untrained": [angles, difference_of_units],
    "learned.positions": [remainders, from_first_word],
}

WRONG: dict[str, dict[str, tuple[Answer, str | None]]] = {
    "norm.has_right_lengths": {
        "mean of the lengths": (mean_length, "in turn too long and too short"),
        "mean of the squares": (mean_square, "squared lengths are in turn"),
        "none is far": (none_far, "no comparison with NaN is true"),
        "width 16 left out": (forgets_16, "zero at width 16"),
        "width 2 left out": (forgets_2, "NaN at width 2"),
        "powers of two only": (powers_of_two, "which widths did you try"),
        "100 positions": (first_hundred, "positions go up to 299"),
        "position 299 left out": (forgets_299, "row 299 is zero"),
        "compared with the paper": (same_as_papers, "does not say which angle"),
        "root forgotten": (no_root, "lets no table pass"),
        "exactly": (exactly, "forgive a difference"),
        "within 0.1": (generous, "how near is near"),
        "too long only": (one_side, "too short as well"),
        "return in the loop": (returns_early, "Which widths did you try"),
        "all alike": (all_alike, "how long are they to be"),
    },
    "norm.factor_for": {
        "as in the chapter": (as_in_chapter, "for perpendicular"),
        "other root": (other_root, "take the other root"),
        "2 of the middle term": (two_forgotten, "Multiply out once more"),
        "sign of the middle term": (sign_of_b, "wrong sign"),
        "middle term always positive": (size_of_b, None),
        "share of the words": (words_share, "the rest makes this share"),
        "word k with row k": (pairs_in_order, "word 0 with row 0"),
        "mean over channels": (mean_per_channel, "and not their mean"),
        "squares of mean lengths": (squares_of_means, "You square the mean length"),
        "rows taken to be the paper's": (rows_are_the_papers, "can have any length"),
        "mean of the shares": (mean_of_shares, None),
    },
    "norm.rows_until": {
        "index": (index_not_number, "One too few"),
        "one too many": (one_too_many, "One too many"),
        "length not squared": (length_not_squared, "You compare lengths"),
        "divided by the index": (divided_by_index, None),
        "halving": (halving_rows, "shrinks and grows again"),
        "for good": (for_good, "shrinks and grows again"),
        "half of d forgotten": (without_half, "is d/2 and not d"),
        "100 rows": (only_hundred, "You stop after 100"),
        "from ten rows": (from_one, None),
        "rows against the first": (not_a_mean, None),
        "steps of ten": (steps_of_ten, None),
    },
    "base.for_turns": {
        "length for steps": (by_length, "there are 99 steps"),
        "pair number count": (one_pair_more, "counted from 0"),
        "half a turn each": (half_turn, "they make half a turn"),
        "slowest pair": (slowest_pair, "lets all pairs turn"),
        "whole number": (whole_base, "You rounded"),
        "2 of the exponent": (exponent_without_two, "lost a factor of 2"),
        "count turns": (count_turns, None),
        "a radian each": (one_radian, "they turn by 1"),
        "slow pairs counted": (slow_pairs, None),
    },
    "base.for_neighbours": {
        "plain halving": (halve_plainly, None),
        "powers of ten": (powers_of_ten, None),
        "wrong half": (wrong_way, None),
        "half of the angle": (half_forgotten, "*half* the angle"),
        "no root": (root_forgotten, "a root is missing"),
        "no 2": (two_left_out, "lost its factor of 2"),
        "small angles": (small_angles, "along the arc"),
        "to a million": (stops_at_a_million, None),
        "seven halvings": (seven_halvings, None),
        "whole numbers": (whole_bases, "You rounded"),
        "always 10,000": (ten_thousand_always, None),
    },
    "base.survivors": {
        "digits cut off": (cut_off, "You cut digits off"),
        "halves upwards": (half_up, "equally near"),
        "unharmed": (unharmed, "count positions that stay"),
        "one step for all": (one_step_for_all, "one step for all"),
        "hidden digit": (hidden_digit, "One digit too many"),
        "one digit less": (one_digit_less, "One digit too few"),
        "2 to the bits": (at_most_all_digits, "where every number is exact"),
        "one position more": (one_position_more, "end at length - 1"),
        "zero left out": (zero_left_out, "is 0 among them"),
        "decimal digits": (decimal_digits, None),
        "alone": (alone, None),
        "ready kinds": (ready_kinds, None),
        "mantissas": (mantissas_not_values, "without their place"),
    },
    "learned.share": {
        "table not below": (lambda r, d, v, n: r * d / (v * d + 12 * n * d**2), "by the other parameters"),
        "words left out": (lambda r, d, v, n: r * d / (r * d + 12 * n * d**2), "words are missing"),
        "a single layer": (lambda r, d, v, n: r * d / (r * d + v * d + 12 * d**2), "You count one layer"),
        "d not squared": (lambda r, d, v, n: r * d / (r * d + v * d + 12 * n * d), "12·d is too few"),
        "percent": (lambda r, d, v, n: 100 * r / (r + v + 12 * n * d), "in per cent"),
        "whole division": (lambda r, d, v, n: r * d // (r * d + v * d + 12 * n * d**2), "Whole division"),
        "rounded to hundredths": (lambda r, d, v, n: round(r / (r + v + 12 * n * d), 2), "You rounded"),
        "6 d squared": (lambda r, d, v, n: r / (r + v + 6 * n * d), None),
        "words' share": (lambda r, d, v, n: v / (r + v + 12 * n * d), "share of the words"),
        "layers only": (lambda r, d, v, n: r / (12 * n * d), None),
        "embedding counted twice": (lambda r, d, v, n: r / (r + 2 * v + 12 * n * d), None),
    },
    "learned.room": {
        "difference": (lambda p, n: n - p, "below 0 for a prompt"),
        "difference, not below 0": (lambda p, n: max(0, n - p), "One too few"),
        "no edge": (lambda p, n: n - p + 1, "Less than no token"),
        "one at least": (lambda p, n: max(1, n - p + 1), "cannot be read at all"),
        "two more": (lambda p, n: max(0, n - p + 2), "One too many"),
        "none when full": (lambda p, n: n - p + 1 if p < n else 0, None),
        "size of the difference": (lambda p, n: abs(n - p) + 1, None),
        "the whole table": (lambda p, n: n if p <= n else 0, None),
        "length of the text": (lambda p, n: n + 1 if p <= n else p, None),
        "swapped": (lambda p, n: max(0, p - n + 1), None),
    },
    "learned.untrained": {
        "unchanged": (unchanged, "rows that are as they were"),
        "nearly unchanged": (nearly_unchanged, None),
        "opposite too": (opposite_too, "points the other way"),
        "cosine of 0.99 will do": (loose, "Too lax"),
        "cosine of 1": (strict, None),
        "as long or shorter": (shorter, "You go by length"),
        "most frequent ratio": (same_ratio, "the most frequent ratio"),
        "the trained ones": (trained, "have changed places"),
        "numbers of rows": (numbers_of_rows, "it should be (12,)"),
        "from the back": (from_the_back, "up to the last trained"),
        "straight and shorter": (straight_and_shorter, "the weight decay can be 1"),
        "columns": (per_column, None),
        "factor of the last row": (last_row_tells, "take the last row"),
        "two channels": (first_channel_ratio, "in all its channels"),
        "float32 too strict": (angle_float32, None),
    },
    "learned.positions": {
        "-1 in front": (minus_one_in_front, "Padding gets -1"),
        "word itself": (word_itself_counted, "You count from 1"),
        "less all padding": (less_padding, "Padding behind the words"),
        "columns": (column_by_column, "the bug itself"),
        "along the batch": (down_the_batch, "You count down the batch"),
        "masked columns": (masked_columns, "the bug itself"),
        "backwards": (backwards, "You count from the end"),
        "first text for all": (first_text_for_all, "the first one's positions"),
        "L at padding": (longest_at_padding, "a number that is no row"),
        "halves": (halves, None),
        "on through the batch": (running_over, None),
        "words only": (words_only, None),
        "-1 at all padding": (one_in_front, "Padding gets -1"),
    },
}
