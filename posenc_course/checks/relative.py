"""Exercises on position in the score: T5's buckets, and what a score by offset holds, uses and costs."""

import math
import random
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from posenc_course.checks._exercise import Call, Exercise, equal, exercise
from posenc_course.relative import offsets, t5_bias, t5_buckets

BucketOf = Callable[[int], int]


def _sample(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


@cache
def _t5(offset: int, num_buckets: int = 32, max_distance: int = 128, *, causal: bool = False) -> int:
    return int(t5_buckets([offset], num_buckets, max_distance, causal=causal))


@exercise("my_bucket", instead_of=[t5_buckets])
def bucket() -> Exercise:
    """my_bucket(offset, num_buckets, max_distance) -> the bucket of T5's encoder, a whole number, for offsets from -200 to 200.

    Half of the buckets are for the past and the token itself, half for the future.
    """
    tried = sorted(range(-200, 201), key=abs)

    def by_logarithm(
        place: Callable[[float], float],
        *,
        start: Callable[[int], int] = lambda single: single,
        first: Callable[[int], int] = lambda single: single,
        most: Callable[[int, int], int] = min,
    ) -> Callable[[int, int, int], int]:
        """T5's formula with one part exchanged; `place` gets how many of the wide buckets a distance has behind it."""

        def of(offset: int, num_buckets: int, max_distance: int) -> int:
            side, distance = num_buckets // 2, abs(offset)
            single = side // 2
            if distance >= single:
                share = math.log(distance / start(single)) / math.log(max_distance / start(single))
                distance = most(side - 1, first(single) + int(place(share * (side - single))))
            return distance + side * (offset < 0)

        return of

    return Exercise(
        cases=[(offset, *setting) for setting in ((32, 128), (12, 50)) for offset in tried],
        right=_t5,
        mistakes={
            "offset 0 ahead": (lambda offset, b, far: _t5(offset, b, far) if offset else b // 2,
                "Only offset 0 is wrong: the token itself belongs to the first half, with the past."),
            "key minus query": (lambda offset, b, far: _t5(-offset, b, far),
                "Past and future have changed places: T5's own code counts key minus query, and here an offset is query minus "
                "key."),
            "no direction": (lambda offset, b, far: _t5(abs(offset), b, far),
                "The distance is right, but the direction is lost: a key in the future has a bucket of the second half."),
            "decoder": (lambda offset, b, far: _t5(offset, b, far, causal=True),
                "These are the buckets of a decoder, all of them for the past. Here half of them are for the future."),
            "one side": (lambda offset, b, far: _t5(abs(offset), b, far, causal=True),
                "You give all of the buckets to the distance. Each direction has half of them, and half of those hold one "
                "distance each."),
            "clipped": (lambda offset, b, far: min(abs(offset), b // 2 - 1) + b // 2 * (offset < 0),
                "This is clipping, one distance in each bucket. Here only the first half of a side's buckets hold one distance "
                "each, and the others grow."),
            "no last bucket": (by_logarithm(math.floor, most=lambda _, bucket: bucket),
                "Distances of max_distance and beyond go wrong: they all share the side's last bucket."),
            "nearest": (by_logarithm(round),
                "You round to the nearest whole number: a bucket begins where its whole number is reached, so round down."),
            "rounded up": (by_logarithm(math.ceil),
                "You round up: a bucket begins where its whole number is reached, so round down."),
            "from distance 1": (by_logarithm(math.floor, start=lambda _: 1),
                "Your logarithm starts at distance 1. The wide buckets start where the single ones end: divide the distance by "
                "that."),
            "from 0 again": (by_logarithm(math.floor, first=lambda _: 0),
                "You number the wide buckets from 0 again: the single ones come before them."),
            "one wide bucket less": (
                lambda offset, b, far: by_logarithm(lambda wide: wide * (b // 4 - 1) / (b // 4))(offset, b, far),
                "Your last bucket begins at max_distance. It should end there: the wide buckets together reach that far."),
            "edges": (by_logarithm(lambda wide: math.ceil(wide - 1e-9) - 1 if wide > 1e-9 else 0),
                "Only some edges are wrong: a distance at which a bucket begins belongs to that bucket. Is it < or <=, and "
                "does rounding push a logarithm over the edge?"),
        },
        praise=f"all {len(tried)} offsets, in T5's setting and in a smaller one.",
    )  # fmt: skip


@exercise(instead_of=[t5_bias])
def toeplitz(seed: int) -> Exercise:
    """toeplitz(by_offset) -> (L, L) with the number of offset m - n in row m, column n, for L of 1 to 30.

    by_offset holds 2L - 1 numbers, for the offsets from -(L - 1) to L - 1.
    """
    generator = torch.Generator().manual_seed(seed)

    def by(index: Callable[[Tensor, Tensor, int], Tensor]) -> Callable[[Tensor], Tensor]:
        """The number at index(m, n, L) of the list, where as in Python -1 is the last."""

        def table(by_offset: Tensor) -> Tensor:
            at = torch.arange((len(by_offset) + 1) // 2)
            return by_offset[index(at[:, None], at[None, :], len(at)) % len(by_offset)]

        return table

    right = by(lambda m, n, L: m - n + L - 1)
    from_the_end = "Offset 0 is not at index 0 of the list, and a negative index counts from the list's end."
    other_diagonals = "Your table is constant along m + n: the diagonals run the other way."
    return Exercise(
        cases={
            "the numbers from 1 to 5": (torch.arange(1.0, 6.0),),
            **{f"a text of {L} tokens": (_sample(generator, 2 * L - 1),) for L in (2, 4, 7, 30)},
            "a text of a single token": (_sample(generator, 1),),
        },
        right=right,
        mistakes={
            "transposed": (by(lambda m, n, L: n - m + L - 1),
                "Past and future have changed places: the offset is m - n, query minus key."),
            "index m - n": (by(lambda m, n, L: m - n), f"You look up index m - n. {from_the_end}"),
            "index n - m": (by(lambda m, n, L: n - m), f"You look up index n - m. {from_the_end}"),
            "distance": (by(lambda m, n, L: (m - n).abs() + L - 1),
                "Your table is symmetric: a key ahead gets the same number as one equally far behind, but the list has one for "
                "each."),
            "index |m - n|": (by(lambda m, n, L: (m - n).abs()),
                "You look up the distance |m - n|: the sign is lost, and index 0 is not offset 0."),
            "one early": (by(lambda m, n, L: m - n + L - 2),
                "You are off by one: the list has 2L - 1 numbers, and offset 0 is in its middle."),
            "m + n": (by(lambda m, n, L: m + n), other_diagonals),
            "m + n, backwards": (by(lambda m, n, L: 2 * L - 2 - m - n), other_diagonals),
            "no future": (by(lambda m, n, L: (m - n).clamp(min=0) + L - 1),
                "All keys ahead of a query get the number of offset 0: the list has a number for each negative offset too."),
            "zeros ahead": (lambda by_offset: right(by_offset).tril(),
                "Keys ahead of a query get 0: the list has a number for each negative offset too."),
        },
        praise="2L - 1 numbers fill L · L cells, from L = 1 to 30.",
    )  # fmt: skip


def _shaw(reach: int) -> BucketOf:
    def bucket_of(offset: int) -> int:
        return max(-reach, min(reach, int(offset))) + reach

    bucket_of.__name__ = f"clipped_at_{reach}"
    return bucket_of


def _t5_encoder(offset: int) -> int:
    return _t5(int(offset))


def _t5_decoder(offset: int) -> int:
    return _t5(int(offset), causal=True)


def _modulo_9(offset: int) -> int:
    return int(offset) % 9


@exercise()
def rows_used(seed: int) -> Exercise:
    """rows_used(bucket_of, rows, length, causal) -> (rows,), True for each row that some query and key look up.

    bucket_of takes an offset, a whole number, and gives its row; length is that of the text.
    """
    draw = random.Random(seed)
    wide, narrow = draw.randint(7, 9), draw.randint(2, 3)

    def by(looked_up: Callable[[int, bool], Iterable[int]]) -> Callable[[BucketOf, int, int, bool], Tensor]:
        def used(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Tensor:
            table = torch.zeros(rows, dtype=torch.bool)
            table[[bucket_of(offset) for offset in looked_up(length, causal)]] = True
            return table

        return used

    def counts(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Tensor:
        pairs = [bucket_of(m - n) for m in range(length) for n in range(m + 1 if causal else length)]
        return torch.bincount(torch.tensor(pairs), minlength=rows)

    def between(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Tensor:
        ends = bucket_of(0 if causal else 1 - length), bucket_of(length - 1)
        return (torch.arange(rows) >= min(ends)) & (torch.arange(rows) <= max(ends))

    right = by(lambda length, causal: range(0 if causal else 1 - length, length))
    farthest = "the farthest offset in a text of L tokens is that between its first and its last."
    too_many, too_few = f"One offset too many: {farthest}", f"One offset too few: {farthest}"
    return Exercise(
        # A table with rows for offsets that the text does not have shows each offset that is one too many or one too few.
        cases={
            "T5's encoder": (_t5_encoder, 32, draw.randint(18, 22), False),
            "T5's decoder": (_t5_decoder, 32, draw.randint(18, 22), True),
            "an encoder with a wide table": (_shaw(wide), 2 * wide + 1, draw.randint(4, 6), False),
            "a decoder with a wide table": (_shaw(wide), 2 * wide + 1, draw.randint(4, 6), True),
            "offsets beyond the clip": (_shaw(narrow), 2 * narrow + 1, 8, False),
            "a text with more tokens than the table has rows": (_t5_encoder, 32, 150, False),
            "rows in an order of their own": (_modulo_9, 9, draw.randint(2, 3), False),
            "an encoder's text of one token": (_shaw(wide), 2 * wide + 1, 1, False),
            "a decoder's text of one token": (_t5_decoder, 32, 1, True),
            "a long text and a row for each offset": (_shaw(160), 321, 150, False),
        },
        right=right,
        mistakes={
            "unused": (lambda *case: ~right(*case),
                "You mark the rows that are never looked up: True should stand for those that are."),
            "no mask": (by(lambda length, causal: range(1 - length, length)),
                "In a decoder you let a query look ahead: with causal=True no key comes after its query."),
            "always a mask": (by(lambda length, causal: range(length)),
                "In an encoder you look back only: with causal=False keys come after their query too, at offsets below 0."),
            "key minus query": (by(lambda length, causal: range(1 - length, 1) if causal else range(1 - length, length)),
                "In a decoder your queries look ahead, and never back: the offset is query minus key."),
            "the other mask": (by(lambda length, causal: range(1 - length if causal else 0, length)),
                "The mask is the wrong way round: with causal=True a query looks back only, with causal=False to both sides."),
            "no past": (by(lambda length, causal: range(1 - length, 1)),
                "Your offsets are all 0 or below: the offset is query minus key, above 0 where the key lies in the past."),
            "up to L, both sides": (by(lambda length, causal: range(0 if causal else -length, length + 1)), too_many),
            "down to -L": (by(lambda length, causal: range(0 if causal else -length, length)), too_many),
            "up to L": (by(lambda length, causal: range(0 if causal else 1 - length, length + 1)), too_many),
            "up to L - 2, both sides": (by(lambda length, causal: range(0 if causal else 2 - length, length - 1)), too_few),
            "up to L - 2": (by(lambda length, causal: range(0 if causal else 1 - length, length - 1)), too_few),
            "never itself": (by(lambda length, causal: [d for d in range(0 if causal else 1 - length, length) if d]),
                "A token looks at itself as well: offset 0 is missing."),
            "never itself in a decoder": (by(lambda length, causal: range(1 if causal else 1 - length, length)),
                "In a decoder a token looks at itself as well: offset 0 is missing."),
            "all": (lambda bucket_of, rows, length, causal: torch.ones(rows),
                "You find every row in use: which offsets does the text have?"),
            "counts": (counts, "You count how often a row is looked up: what is asked is whether, so True or False."),
            "between the ends": (between,
                "You mark all rows between those of the two farthest offsets: rows need not be in the order of offsets, so ask "
                "bucket_of about each."),
            "as many as tokens": (lambda bucket_of, rows, length, causal: torch.arange(rows) < length,
                "You mark as many rows as the text has tokens: ask bucket_of which row an offset looks up."),
        },
        praise="T5's table, Shaw's and a strange one, texts of one token and of many.",
    )  # fmt: skip


@exercise()
def needed(seed: int) -> Exercise:
    """needed(share, length) -> b, the score with which one key gets that share of the attention.

    Each of the length - 1 other keys has the score 0.
    """
    draw = random.Random(seed)

    def odds(share: float) -> float:
        return share / (1 - share)

    def right(share: float, length: int) -> float:
        return math.log(odds(share) * (length - 1))

    never_negative = "Your numbers are never negative: a key that is to get less than its even share has to be pushed down."
    crowd = "More keys make your number smaller, but against more keys the one key has to be louder."
    powers_of_e = "A softmax takes powers of e: which logarithm undoes those?"
    return Exercise(
        cases={
            "two keys that share evenly": (0.5, 2),
            "four keys that share evenly": (0.25, 4),
            "more than an even share": (0.25, 20),
            "less than an even share": (0.1, 4),
            "a key that is hardly looked at": (0.001, 12),
            "nearly all of the attention": (0.999, 1200),
            "a long text": (0.6, 20_000),
            **{f"sample {n}": (round(draw.uniform(0.05, 0.95), 2), draw.randint(5, 1000)) for n in range(1, 5)},
        },
        right=right,
        mistakes={
            "sign": (lambda share, length: -right(share, length),
                "The sign is wrong: your number makes the others that much louder, not the one key."),
            "size": (lambda share, length: abs(right(share, length)), never_negative),
            "at least 0": (lambda share, length: max(0.0, right(share, length)), never_negative),
            "no logarithm": (lambda share, length: odds(share) * (length - 1),
                "That is how many times as loud as one other the key must be after the exponential. Its score comes before."),
            "length others": (lambda share, length: math.log(odds(share) * length),
                "You give the key length others: one of the keys is the key itself."),
            "length + 1 others": (lambda share, length: math.log(odds(share) * (length + 1)),
                "You give the key length + 1 others: one of the length keys is the key itself."),
            "one other": (lambda share, length: math.log(odds(share)),
                "You give the key one other: each of the others adds e to the power of 0 to the softmax's denominator."),
            "the others' share": (lambda share, length: math.log((length - 1) / odds(share)),
                "That is the number with which the key gets 1 - share: the share and the rest have changed places."),
            "the others alone": (lambda share, length: math.log(share * (length - 1)),
                "The softmax's denominator holds the others and the key itself: your key is missing there."),
            "times the even share": (lambda share, length: math.log(share * length),
                "That makes the key share · length times as loud as one other. The softmax's denominator holds the key too, "
                "and grows with it."),
            "no denominator": (lambda share, length: math.log(share),
                "That would do if the softmax's denominator were 1, but it is larger, and grows with the others."),
            "share by others": (lambda share, length: math.log(share / (length - 1)), crowd),
            "share by length": (lambda share, length: math.log(share / length), crowd),
            "odds by others": (lambda share, length: math.log(odds(share) / (length - 1)), crowd),
            "odds by length": (lambda share, length: math.log(odds(share) / length), crowd),
            "base 10": (lambda share, length: right(share, length) / math.log(10), powers_of_e),
            "base 2": (lambda share, length: right(share, length) / math.log(2), powers_of_e),
            "the share": (lambda share, length: share,
                "You return the share itself: the softmax turns scores into shares, so which score gives this one?"),
            "the even share's excess": (lambda share, length: share - 1 / length,
                "You compare with the even share by subtracting: the softmax takes e to the power of a score, and divides."),
        },
        praise="in all cases the softmax gives the key its share, large or small, in a small crowd or a large one.",
        tolerance=1e-5,
    )  # fmt: skip


class _Largest(TorchFunctionMode):
    """Remembers how many numbers the largest tensor holds that any function gives; a view counts as what it shows parts of.

    (A TorchDispatchMode, as in the chapter, would also see inside of functions, but takes seconds to import.)
    """

    numbers = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            if isinstance(tensor, Tensor):
                with suppress(RuntimeError):  # no storage of its own, as inside of vmap
                    self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made


@contextmanager
def _largest(worth_a_look: int) -> Iterator[_Largest]:
    """Gives the size of the largest tensor or NumPy array made in the block, here or in a thread that begins there.

    NumPy tells Python's memory tracer of each of its arrays. After each step of the interpreter that took the memory of
    `worth_a_look` numbers of 8 bytes, the largest of its arrays is measured; Python's lists and numbers do not count.
    """
    largest, arrays = _Largest(), tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    held = 0

    def begin(frame: FrameType, _event: str, _: Any) -> Any:  # the thread's first call, which ends with the thread
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
        if frame.f_code is _Largest.__torch_function__.__code__:  # which sees more than we would
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


@exercise()
def receive(seed: int) -> Exercise:
    """receive(weights, values, table) -> (L, d), Shaw's values with their offsets, with no tensor of more than 4·L² numbers.

    Row m is the sum over n of weights[m, n] · (values[n] + table[clip(m - n, -K, K) + K]), for weights (L, L), values (L, d)
    and table (2K + 1, d).
    """
    generator = torch.Generator().manual_seed(seed)

    def inputs(length: int, reach: int, d: int) -> tuple[Tensor, Tensor, Tensor]:
        weights = _sample(generator, length, length).softmax(dim=1)
        return weights, _sample(generator, length, d), _sample(generator, 2 * reach + 1, d)

    def rows(weights: Tensor, table: Tensor) -> Tensor:
        at, reach = torch.arange(len(weights)), len(table) // 2
        return offsets(at, at).clamp(-reach, reach).long() + reach

    def vectors(weights: Tensor, table: Tensor) -> Tensor:
        """One for each query and key, (L, L, d)."""
        return table[rows(weights, table)]

    def large(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
        return torch.einsum("mn,mnd->md", weights, values + vectors(weights, table))

    def right(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
        held = weights.new_zeros(len(weights), len(table)).scatter_add(1, rows(weights, table), weights)
        return weights @ values + held @ table

    def alone(weights: Tensor, table: Tensor) -> Tensor:
        """What the vectors add, without the values."""
        return right(weights, table.new_zeros(len(weights), table.shape[1]), table)

    def one_kept(w: Tensor, v: Tensor, table: Tensor) -> Tensor:
        held = w.new_zeros(len(w), len(table))
        for m, of_query in enumerate(rows(w, table).tolist()):
            for n, row in enumerate(of_query):
                held[m, row] = w[m, n]
        return w @ v + held @ table

    def modulo(w: Tensor, v: Tensor, table: Tensor) -> Tensor:
        at = torch.arange(len(w))
        return w @ v + torch.stack([w[m] @ table[(m - at + len(table) // 2) % len(table)] for m in at.tolist()])

    def near(w: Tensor, table: Tensor) -> Tensor:
        return w.tril(len(table) // 2).triu(-(len(table) // 2))

    def ask(call: Call, weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
        """What is received; infinite, as no answer is, where it is right but took a tensor that is too large."""
        most = 4 * len(weights) ** 2
        received: Tensor
        if len(weights) < length:  # where d and 2K + 1 are too small, or too large, for a limit to tell anything
            received = call(weights, values, table, wanted=values)
            return received
        with _largest(worth_a_look=most) as largest:
            received = call(weights, values, table, wanted=values)
        too_large = largest.numbers > most and equal(right(weights, values, table), received, 1e-4)
        return torch.full_like(received, math.inf) if too_large else received

    one_off = "Your rows of the table are off by one: the vector of offset m - n is row m - n + K."
    length, reach, d = 16, 6, 12
    return Exercise(
        cases={
            "a reach of 1": inputs(5, 1, 3),
            "a reach of 2": inputs(6, 2, 4),
            "a table that reaches beyond the text": inputs(4, 5, 2),
            "a single token": inputs(1, 2, 3),
            "vectors of one number": inputs(5, 2, 1),
            "a text whose memory is measured": inputs(length, reach, d),
        },
        right=right,
        ask=ask,
        mistakes={
            "large": (large,
                "What comes out is right, but a tensor or array on the way holds more than 4·L² numbers: is there a vector for "
                "each query and key, or a number for each query, key and row of the table?"),
            "no vectors": (lambda w, v, t: w @ v, "Only the values have arrived: no offset has added its vector."),
            "no values": (lambda w, v, t: alone(w, t), "Only the offsets' vectors have arrived: the values are missing."),
            "key minus query": (lambda w, v, t: right(w, v, t.flip(0)),
                "Past and future have changed places: row r is for offset m - n = r - K."),
            "offset 0 in row 0": (lambda w, v, t: right(w, v, t.roll(len(t) // 2, dims=0)),
                "Your offset 0 gets row 0 of the table: that row is for offset -K, and a negative index counts from the end."),
            "one row early": (lambda w, v, t: right(w, v, t.roll(1, dims=0)), one_off),
            "one row late": (lambda w, v, t: right(w, v, t.roll(-1, dims=0)), one_off),
            "transposed": (lambda w, v, t: right(w.T, v, t),
                "Your weights are transposed: row m holds what query m gives to each key."),
            "vectors' weights transposed": (lambda w, v, t: w @ v + alone(w.T, t),
                "The vectors' weights are transposed: weights[m, n] belongs to the vector of offset m - n, not n - m."),
            "modulo": (modulo,
                "Beyond K you begin again at the table's other end: all offsets beyond K share the row of K."),
            "far without vector": (lambda w, v, t: w @ v + alone(near(w, t), t),
                "Keys farther than K bring no vector with them: they share the row of K, or of -K."),
            "far left out": (lambda w, v, t: right(near(w, t), v, t),
                "Keys farther than K are left out: they share the row of K, or of -K."),
            "past only": (lambda w, v, t: w @ v + alone(w.tril(), t),
                "Keys after the query bring no vector with them: their offsets are below 0, and have rows of the table too."),
            "one kept": (one_kept,
                "Where several keys share a row of the table you keep the weight of one: their weights add up. (With an index, "
                "`+=` adds to each place once, however often it is named.)"),
            "no weights": (lambda w, v, t: w @ v + vectors(w, t).sum(dim=1),
                "You add up the vectors without their weights."),
            "even mean": (lambda w, v, t: w @ v + vectors(w, t).mean(dim=1),
                "You take the plain mean of the vectors: each counts as much as its key is looked at."),
            "vector of offset 0": (lambda w, v, t: w @ v + t[len(t) // 2],
                "Each token gets the vector of offset 0: that is only the one that it brings to itself."),
            "multiplied": (lambda w, v, t: torch.einsum("mn,mnd->md", w, v * vectors(w, t)),
                "You multiply value and vector: they are added."),
            "over queries": (lambda w, v, t: w @ v + torch.einsum("mn,mnd->nd", w, vectors(w, t)),
                "You add up the vectors over the queries: token m receives from all keys n."),
        },
        praise=f"six texts, and at L = {length}, d = {d} no tensor or array of more than {4 * length**2:,} numbers.",
    )  # fmt: skip
