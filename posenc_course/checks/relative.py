"""Exercises on position in the score: T5's buckets, and tables by offset, what they contain and what they cost."""

import math
import random
import tracemalloc
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from posenc_course.checks._exercise import Call, Exercise, equal, exercise
from posenc_course.relative import offsets, t5_buckets

BucketOf = Callable[[int], int]


def _sample(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


@cache
def _t5(offset: int, num_buckets: int = 32, max_distance: int = 128, *, causal: bool = False) -> int:
    return int(t5_buckets([offset], num_buckets, max_distance, causal=causal))


@exercise("my_bucket", instead_of=[t5_buckets])
def bucket() -> Exercise:
    """my_bucket(offset, num_buckets, max_distance) -> the bucket of T5's encoder, a whole number, for offsets from -200 to 200.

    Half of the buckets are for the past and the token itself, and the other half for the future.
    """
    tried = sorted(range(-200, 201), key=abs)

    def by(wide: Callable[[int, int, int, int], float]) -> Callable[[int, int, int], int]:
        """The buckets if a distance beyond the single ones gets wide(distance, single, side, max_distance)."""

        def bucket_of(offset: int, b: int, far: int) -> int:
            side, single, distance = b // 2, b // 4, abs(offset)
            own = distance if distance < single else int(wide(distance, single, side, far))
            return own + side * (offset < 0)

        return bucket_of

    def part(distance: int, single: int, side: int, far: int) -> float:
        """How far a distance is on the way from the first wide bucket to max_distance, in buckets."""
        return math.log(distance / single) / math.log(far / single) * (side - single) + 1e-9

    return Exercise(
        cases=[(offset, *setting) for setting in ((32, 128), (12, 50)) for offset in tried],
        right=_t5,
        mistakes={
            "key minus query": (lambda offset, b, far: _t5(-offset, b, far),
                "You have swapped past and future. T5's own code uses key minus query, but here it's query minus key."),
            "nearest": (by(lambda n, single, side, far: min(single + round(part(n, single, side, far)), side - 1)),
                "You round to the nearest whole number. But a bucket begins where the formula reaches its number."),
            "no last bucket": (by(lambda n, single, side, far: single + part(n, single, side, far)),
                "Distances of max_distance or more should all share the last bucket of their side."),
            "from distance 1": (
                by(lambda n, single, side, far: min(single + math.log(n) / math.log(far) * (side - single), side - 1)),
                "Your logarithm is 0 at distance 1. It should be 0 at the distance where the wider buckets begin."),
            "clipped": (by(lambda n, single, side, far: min(n, side - 1)),
                "You clip the offset and give each distance its own bucket. But the later buckets become wider."),
            "decoder": (lambda offset, b, far: _t5(offset, b, far, causal=True),
                "You return the buckets of a decoder. In an encoder, half of the buckets are for the future."),
        },
        praise=f"all {len(tried)} offsets are right, both with T5's settings and with fewer buckets.",
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

    bucket_of takes an offset, which is a whole number, and returns its row; length is the length of the text.
    """
    draw = random.Random(seed)
    wide, narrow = draw.randint(7, 9), draw.randint(2, 3)

    def by(looked_up: Callable[[int, bool], Iterable[int]]) -> Callable[[BucketOf, int, int, bool], Tensor]:
        def used(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Tensor:
            table = torch.zeros(rows, dtype=torch.bool)
            table[[bucket_of(offset) for offset in looked_up(length, causal)]] = True
            return table

        return used

    def between(bucket_of: BucketOf, rows: int, length: int, causal: bool) -> Tensor:
        ends = bucket_of(0 if causal else 1 - length), bucket_of(length - 1)
        return (torch.arange(rows) >= min(ends)) & (torch.arange(rows) <= max(ends))

    right = by(lambda length, causal: range(0 if causal else 1 - length, length))
    return Exercise(
        # If a table has rows for offsets that the text doesn't have, each offset too many or too few shows.
        cases={
            "T5's encoder": (_t5_encoder, 32, draw.randint(18, 22), False),
            "T5's decoder": (_t5_decoder, 32, draw.randint(18, 22), True),
            "an encoder with a wide table": (_shaw(wide), 2 * wide + 1, draw.randint(4, 6), False),
            "a decoder with a wide table": (_shaw(wide), 2 * wide + 1, draw.randint(4, 6), True),
            "offsets that are clipped": (_shaw(narrow), 2 * narrow + 1, 8, False),
            "a text with more tokens than the table has rows": (_t5_encoder, 32, 150, False),
            "rows in an unusual order": (_modulo_9, 9, draw.randint(2, 3), False),
            "an encoder and a text of one token": (_shaw(wide), 2 * wide + 1, 1, False),
            "a decoder and a text of one token": (_t5_decoder, 32, 1, True),
            "a long text and a row for each offset": (_shaw(160), 321, 150, False),
        },
        right=right,
        mistakes={
            "unused": (lambda *case: ~right(*case),
                "You mark the rows that are never looked up. True should stand for the rows that are looked up."),
            "always a mask": (by(lambda length, causal: range(length)),
                "In an encoder, your queries look back only. But if causal is False, they also look at later keys."),
            "looks ahead": (by(lambda length, causal: range(1 - length, 1)),
                "All your offsets are 0 or negative. But query minus key is positive if the key is in the past."),
            "never itself": (by(lambda length, causal: [n for n in range(0 if causal else 1 - length, length) if n]),
                "A token also looks at itself, but you leave out offset 0."),
            "between the ends": (between,
                "You mark all rows between that of the smallest offset and that of the largest. But the rows needn't be in the "
                "order of the offsets, so call bucket_of for each offset."),
        },
        praise="your function is right for T5's table, Shaw's table and an unusual one, and for texts of one token and of "
               "many.",
    )  # fmt: skip


@exercise()
def needed(seed: int) -> Exercise:
    """needed(share, length) -> b, the score with which one key gets this share of the attention.

    Each of the length - 1 other keys has the score 0.
    """
    draw = random.Random(seed)

    def odds(share: float) -> float:
        return share / (1 - share)

    def right(share: float, length: int) -> float:
        return math.log(odds(share) * (length - 1))

    never_negative = "Your numbers are never negative. But a key that should get less than an even share needs a score below 0."
    powers_of_e = "You use the wrong logarithm. A softmax uses powers of e, so which logarithm undoes them?"
    return Exercise(
        cases={
            "two keys with equal shares": (0.5, 2),
            "four keys with equal shares": (0.25, 4),
            "more than an even share": (0.25, 20),
            "less than an even share": (0.1, 4),
            "a key that gets hardly any attention": (0.001, 12),
            "nearly all of the attention": (0.999, 1200),
            "a long text": (0.6, 20_000),
            **{f"sample {n}": (round(draw.uniform(0.05, 0.95), 2), draw.randint(5, 1000)) for n in range(1, 5)},
        },
        right=right,
        mistakes={
            "size": (lambda share, length: abs(right(share, length)), never_negative),
            "at least 0": (lambda share, length: max(0.0, right(share, length)), never_negative),
            "length + 1 others": (lambda share, length: math.log(odds(share) * (length + 1)),
                "You assume that there are length + 1 other keys. But one of the `length` keys is this key itself."),
            "the others alone": (lambda share, length: math.log(share * (length - 1)),
                "In the softmax's denominator, you count only the other keys. But it also contains the term of this key."),
            "share by others": (lambda share, length: math.log(odds(share) / (length - 1)),
                "Your number becomes smaller if there are more keys. But among more keys, a key needs a higher score."),
            "the others' share": (lambda share, length: math.log((length - 1) / odds(share)),
                "With this number, the key gets 1 - share of the attention, and all the other keys together the share."),
            "base 10": (lambda share, length: right(share, length) / math.log(10), powers_of_e),
            "base 2": (lambda share, length: right(share, length) / math.log(2), powers_of_e),
        },
        praise="in all cases, the softmax gives the key the share it should have, whether large or small, among few keys or "
               "many.",
        tolerance=1e-5,
    )  # fmt: skip


class _Largest(TorchFunctionMode):
    """Measures how many numbers the largest tensor has that any function returns. A view counts as the tensor behind it.

    Of arrays, it knows only what NumPy and Python hold together at most, in numbers of 8 bytes.
    """

    in_a_tensor = in_arrays = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple | list) else (made,):
            with suppress(AttributeError, RuntimeError):  # not a tensor, or one without a storage of its own, as inside vmap
                self.in_a_tensor = max(self.in_a_tensor, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made

    def __enter__(self) -> Any:
        tracemalloc.start()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.in_arrays = tracemalloc.get_traced_memory()[1] // 8
        tracemalloc.stop()


@exercise()
def receive(seed: int) -> Exercise:
    """receive(weights, values, table) -> (L, d), Shaw's values with their offsets, without any tensor above 4·L² numbers.

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
        """One vector for each query and key, (L, L, d)."""
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

    def near(w: Tensor, table: Tensor) -> Tensor:
        return w.tril(len(table) // 2).triu(-(len(table) // 2))

    def ask(call: Call, weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
        """The result of `receive`. If it is right but used a tensor that is too large, it is replaced by infinity."""
        made = _Largest()
        received: Tensor = call(weights, values, table, wanted=values, within=made)
        most = len(weights) ** 2
        # In the short texts, d and 2K + 1 are too small, or too large, for the limit to mean anything. In arrays, only a vector
        # for each query and key is found, by their memory: lists of numbers need four times as much, and a mask for each row is
        # allowed.
        too_large = len(weights) == length and (made.in_a_tensor > 4 * most or made.in_arrays > 30 * most)
        right_but_large = too_large and equal(right(weights, values, table), received, 1e-4)
        return torch.full_like(received, math.inf) if right_but_large else received

    length, reach, d = 24, 9, 20
    return Exercise(
        cases={
            "K = 1": inputs(5, 1, 3),
            "K = 2": inputs(6, 2, 4),
            "a K that is larger than all offsets": inputs(4, 5, 2),
            "a single token": inputs(1, 2, 3),
            "vectors with a single number": inputs(5, 2, 1),
            "a text for which the sizes of your tensors are checked": inputs(length, reach, d),
        },
        right=right,
        ask=ask,
        mistakes={
            "large": (large,
                "Your result is right, but one of your tensors or arrays has more than 4·L² numbers. Do you make a vector for "
                "each query and key, or a number for each query, key and row of the table?"),
            "key minus query": (lambda w, v, t: right(w, v, t.flip(0)),
                "You have swapped past and future. Row r of the table belongs to offset m - n = r - K."),
            **{name: (lambda w, v, t, by=by: right(w, v, t.roll(by(t), dims=0)),
                "You use the wrong rows of the table. The vector of offset m - n is row m - n + K, and a negative index counts "
                "from the end of the table.")
               for name, by in {"one row early": lambda t: 1, "offset 0 in row 0": lambda t: len(t) // 2}.items()},
            "far without vector": (lambda w, v, t: w @ v + alone(near(w, t), t),
                "Keys farther away than K add no vector in your result. But they should add the vector of offset K or -K."),
            "over queries": (lambda w, v, t: w @ v + vectors(w, t).mul(w[:, :, None]).sum(dim=0),
                "You sum the vectors over the queries. But token m receives one vector from each key, so sum over the keys."),
            "past only": (lambda w, v, t: w @ v + alone(w.tril(), t),
                "Keys after the query add no vector in your result. But the table has rows for negative offsets, too."),
            "one kept": (one_kept,
                "If several keys share a row of the table, you keep the weight of only one of them, but their weights should "
                "add up. (If you index a tensor with a tensor, `+=` adds to each element only once, even if its index occurs "
                "several times.)"),
        },
        praise=f"all six texts are right, and with L = {length} and d = {d}, no tensor or array has more than "
               f"{4 * length**2:,} numbers.",
    )  # fmt: skip
