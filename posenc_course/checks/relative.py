"""Exercises of chapter 09: T5's buckets for past and future, and the assignment on what a score by offset holds and costs."""

import math
import random
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from posenc_course.checks._verdict import Wrong, answer, as_number, check, compare
from posenc_course.relative import offsets, t5_bias, t5_buckets

_SETTINGS = ((32, 128), (12, 50))
_OFFSETS = sorted(range(-200, 201), key=abs)
_Said = dict[tuple[int, int, int], float]  # the answer for each offset, num_buckets and max_distance


@check(instead_of=[t5_buckets], draws=False)
def bucket(my_bucket: Callable[[int, int, int], Any]) -> str:
    """Try my_bucket(offset, num_buckets, max_distance) on the offsets from -200 to 200, in T5's setting and a smaller one.

    One whole number, the bucket of T5's encoder: half of the buckets for the past and the same token, half for the future.
    Chapter 09.
    """
    said = {
        (offset, num_buckets, max_distance): _said(my_bucket, offset, num_buckets, max_distance)
        for num_buckets, max_distance in _SETTINGS
        for offset in _OFFSETS
    }
    should = {
        (offset, *setting): float(bucket)
        for setting in _SETTINGS
        for offset, bucket in zip(_OFFSETS, t5_buckets(_OFFSETS, *setting, causal=False).tolist(), strict=True)
    }
    if said == should:
        return f"Right: all {len(_OFFSETS)} offsets, in T5's setting and in a smaller one."
    return next((hint for known, hint in _MISTAKES if known(said, should)), None) or _first_wrong(said, should)


def _said(my_bucket: Callable[[int, int, int], Any], *case: int) -> float:
    call = f"my_bucket{case}"
    number = as_number(
        answer(my_bucket, *case, call=call),
        call=call,
        should="one whole number, the bucket of one offset",
        finite="the logarithm is for distances beyond the single buckets only.",
    )
    if number != int(number):
        raise Wrong(f"{call} returned {number:.6g}: a bucket is a row of a table, so round down to a whole number.")
    return number


def _first_wrong(said: _Said, should: _Said) -> str:
    case = next(case for case in said if said[case] != should[case])
    return f"my_bucket{case} gives {said[case]:g}, it should be {should[case]:g}."


def _wrong(said: _Said, should: _Said) -> Iterator[tuple[int, int, int]]:
    return (case for case in said if said[case] != should[case])


def _only(rule: Callable[[int, int, int], bool]) -> Callable[[_Said, _Said], bool]:
    """What is known by the cases that are wrong: this rule holds for each of them."""
    return lambda said, should: all(rule(*case) for case in _wrong(said, should))


def _side(num_buckets: int, max_distance: int, place: Callable[[float], float], *, from_one: bool = False) -> Any:
    """A bucket by its distance, as a formula that differs from T5's in one thing gives it."""
    one_sided = num_buckets // 2
    single = one_sided // 2

    def of(distance: int) -> int:
        if distance < single:
            return distance
        share = math.log(distance / (1 if from_one else single)) / math.log(max_distance / (1 if from_one else single))
        return min(one_sided - 1, single + int(place(share * (one_sided - single))))

    return of


def _as(formula: Callable[[int, int, int], int]) -> Callable[[_Said, _Said], bool]:
    """What is known by a formula that every answer follows."""
    return lambda said, _should: all(value == formula(*case) for case, value in said.items())


def _signed(of: Callable[[int, int], Callable[[int], int]]) -> Callable[[_Said, _Said], bool]:
    return _as(lambda offset, b, far: of(b, far)(abs(offset)) + (b // 2 if offset < 0 else 0))


def _exact(offset: int, num_buckets: int, max_distance: int, *, causal: bool = False) -> int:
    return int(t5_buckets([offset], num_buckets, max_distance, causal=causal))


def _edge(offset: int, num_buckets: int, max_distance: int) -> bool:
    """Whether a bucket begins or ends at this distance."""
    distance = abs(offset)
    return len({_exact(d, num_buckets, max_distance) for d in (distance - 1, distance, distance + 1)}) > 1


_MISTAKES: tuple[tuple[Callable[[_Said, _Said], bool], str], ...] = (
    (
        _only(lambda offset, _b, _far: offset == 0),
        "Only offset 0 is wrong: the token itself belongs to the first half, with the past.",
    ),
    (
        _as(lambda offset, b, far: _exact(-offset, b, far)),
        "Past and future are exchanged: T5's own code counts key minus query, and here an offset is query minus key.",
    ),
    (
        _as(lambda offset, b, far: _exact(abs(offset), b, far)),
        "The distance is right, the direction is lost: a token in the future has a bucket of the second half.",
    ),
    (
        _as(lambda offset, b, far: _exact(offset, b, far, causal=True)),
        "These are the buckets of a decoder, all of them for the past. Here half of them are for the future.",
    ),
    (
        _as(lambda offset, b, far: _exact(abs(offset), b, far, causal=True)),
        "You give all of the buckets to the distance. Each direction has half of them, and half of those are single.",
    ),
    (
        _signed(lambda b, _far: lambda distance: min(distance, b // 2 - 1)),
        "This is clipping, one distance in each bucket. Here only the first half of a side is single, the others grow.",
    ),
    (
        _only(lambda offset, _b, far: abs(offset) >= far),
        "Well below max_distance, and wrong from there on: all that is as far or farther shares the side's last bucket.",
    ),
    (
        _signed(lambda b, far: _side(b, far, round)),
        "The nearest whole number is taken: a bucket begins where its whole number is reached, so round down.",
    ),
    (
        _signed(lambda b, far: _side(b, far, math.ceil)),
        "Rounded up: a bucket begins where its whole number is reached, so round down.",
    ),
    (
        _signed(lambda b, far: _side(b, far, lambda place: place, from_one=True)),
        "The logarithm starts at distance 1. The wide buckets start where the single ones end: divide the distance by that.",
    ),
    (
        _signed(lambda b, far: _side(b, far, lambda place: math.floor(place) - b // 4)),
        "The wide buckets are numbered from 0 again: the single ones come before them.",
    ),
    (
        _signed(lambda b, far: _side(b, far, lambda place: place * (b // 4 - 1) / (b // 4))),
        "You let the last bucket begin at max_distance. There it would end: the wide buckets together reach that far.",
    ),
    (
        _only(_edge),
        "Only the edges of some buckets are wrong: is it < or <=, and does rounding push a logarithm over the edge?",
    ),
)


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _draw(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


@check(instead_of=[t5_bias])
def toeplitz(my_toeplitz: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_toeplitz(by_offset) -> (L, L), whose entry (m, n) is the number of offset m - n, for L from 2 to 7.

    by_offset holds 2L - 1 numbers, for the offsets from -(L - 1) to L - 1. Chapter 09.
    """
    generator = torch.Generator().manual_seed(seed)
    cases = [(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),), *((_draw(generator, 2 * L - 1),) for L in (2, 4, 7))]

    def by(rule: Callable[[Tensor, Tensor, int], Tensor]) -> Callable[[Tensor], Tensor]:
        """The entry (m, n) is by_offset[rule(m, n, L)], and as in Python, row -1 is the last."""

        def made(by_offset: Tensor) -> Tensor:
            at = torch.arange((len(by_offset) + 1) // 2)
            return by_offset[rule(at[:, None], at[None, :], len(at)) % len(by_offset)]

        return made

    right = by(lambda m, n, L: m - n + L - 1)
    mistakes = [
        (by(lambda m, n, L: n - m + L - 1), "The two sides are exchanged: the offset is m - n, query minus key."),
        (by(lambda m, n, L: m - n),
         "You look up place m - n. Offset 0 does not stand at place 0, and a negative place counts from the list's end."),
        (by(lambda m, n, L: n - m),
         "You look up place n - m. Offset 0 does not stand at place 0, and a negative place counts from the list's end."),
        (by(lambda m, n, L: (m - n).abs() + L - 1),
         "Your table is symmetric: what lies as far behind as ahead gets the same number, but there is one for each."),
        (by(lambda m, n, L: (m - n).abs()), "You look up the distance |m - n|: the sign is lost, and place 0 is not offset 0."),
        (by(lambda m, n, L: m - n + L - 2), "Off by one: the list has 2L - 1 numbers, and offset 0 is in its middle."),
        (by(lambda m, n, L: m + n), "Your table is constant along m + n: the diagonals run the other way."),
        (by(lambda m, n, L: 2 * L - 2 - m - n), "Your table is constant along m + n: the diagonals run the other way."),
    ]  # fmt: skip
    return compare(
        my_toeplitz, cases, right, mistakes, name="toeplitz", praise="2L - 1 numbers fill L · L places, for L = 2, 3, 4 and 7."
    )


def _shaw_rows(reach: int) -> Callable[[int], int]:
    def bucket_of(offset: int) -> int:
        return max(-reach, min(reach, int(offset))) + reach

    bucket_of.__name__ = f"clipped_at_{reach}"
    return bucket_of


@lru_cache(maxsize=1000)
def _t5_row(offset: int, causal: bool) -> int:
    return int(t5_buckets([offset], causal=causal))


def _t5_encoder(offset: int) -> int:
    return _t5_row(int(offset), causal=False)


def _t5_decoder(offset: int) -> int:
    return _t5_row(int(offset), causal=True)


def _modulo_9(offset: int) -> int:
    return int(offset) % 9


@check()
def rows_used(my_rows_used: Callable[[Callable[[int], int], int, int, bool], Any], *, seed: int) -> str:
    """Try my_rows_used(bucket_of, rows, length, causal) -> (rows,), True for each row that some query and key look up.

    bucket_of takes an offset, a whole number, and gives its row; length is that of the text. Chapter 09.
    """
    draw = random.Random(seed)
    wide, narrow = draw.randint(7, 9), draw.randint(2, 3)
    cases: list[tuple[Callable[[int], int], int, int, bool]] = [
        (_t5_encoder, 32, draw.randint(18, 22), False),
        (_t5_decoder, 32, draw.randint(18, 22), True),
        # A table with rows beyond the text's ends shows each offset that is one too many or one too few.
        (_shaw_rows(wide), 2 * wide + 1, draw.randint(4, 6), False),
        (_shaw_rows(wide), 2 * wide + 1, draw.randint(4, 6), True),
        (_shaw_rows(narrow), 2 * narrow + 1, 8, False),
        (_modulo_9, 9, draw.randint(2, 3), False),
    ]

    def by(looked_up: Callable[[int, bool], Iterable[int]]) -> Callable[[Callable[[int], int], int, int, bool], Tensor]:
        def used(bucket_of: Callable[[int], int], rows: int, length: int, causal: bool) -> Tensor:
            table = torch.zeros(rows)
            table[[bucket_of(offset) for offset in looked_up(length, causal)]] = 1
            return table

        return used

    def counts(bucket_of: Callable[[int], int], rows: int, length: int, causal: bool) -> Tensor:
        pairs = [bucket_of(m - n) for m in range(length) for n in range(m + 1 if causal else length)]
        return torch.bincount(torch.tensor(pairs), minlength=rows).double()

    right = by(lambda length, causal: range(0 if causal else 1 - length, length))
    farthest = "the farthest offset in a text of L tokens is that between its first and its last."
    mistakes = [
        (lambda *case: 1 - right(*case), "You mark the rows that nobody looks up: True should stand where somebody does."),
        (by(lambda length, causal: range(1 - length, length)),
         "In a decoder you let a query look ahead: with causal=True no key comes after its query."),
        (by(lambda length, causal: range(length)),
         "In an encoder you look back only: with causal=False keys come after their query too, at offsets below 0."),
        (by(lambda length, causal: range(1 - length, 1) if causal else range(1 - length, length)),
         "In a decoder your queries look ahead, and never back: the offset is query minus key."),
        (by(lambda length, causal: range(1 - length if causal else 0, length)),
         "The mask is the wrong way round: with causal=True a query looks back only, with causal=False to both sides."),
        (by(lambda length, causal: range(1 - length, 1)), "Your offsets are key minus query, and half of them are missing."),
        (by(lambda length, causal: range(0 if causal else -length, length + 1)), f"One offset too many: {farthest}"),
        (by(lambda length, causal: range(0 if causal else -length, length)), f"One offset too many: {farthest}"),
        (by(lambda length, causal: range(length + 1) if causal else range(1 - length, length + 1)),
         f"One offset too many: {farthest}"),
        (by(lambda length, causal: range(0 if causal else 2 - length, length - 1)), f"One offset too few: {farthest}"),
        (by(lambda length, causal: range(0 if causal else 1 - length, length - 1)), f"One offset too few: {farthest}"),
        (by(lambda length, causal: [d for d in range(0 if causal else 1 - length, length) if d]),
         "A token looks at itself as well: offset 0 is missing."),
        (by(lambda length, causal: range(1 if causal else 1 - length, length)),
         "In a decoder a token looks at itself as well: offset 0 is missing."),
        (lambda bucket_of, rows, length, causal: torch.ones(rows), "You find every row in use: which offsets are there?"),
        (counts, "You count how often a row is looked up: what is asked is whether, so True or False."),
    ]  # fmt: skip
    return compare(
        my_rows_used, cases, right, mistakes, name="rows_used", praise="T5's, Shaw's and a strange table, six texts."
    )


@check()
def needed(my_needed: Callable[[float, int], Any], *, seed: int) -> str:
    """Try my_needed(share, length) -> b, with which one key among `length` gets that share of the attention, on ten cases.

    Its score is b, and that of each of the length - 1 others 0. Chapter 09.
    """
    draw = random.Random(seed)
    cases = [(0.5, 2), (0.25, 20), (0.9, 20), (0.1, 4), (0.6, 3), (0.25, 4)]
    cases += [(round(draw.uniform(0.05, 0.95), 2), draw.randint(5, 1000)) for _ in range(4)]
    said = []
    for share, length in cases:
        call = f"needed({share}, {length})"
        said.append(as_number(answer(my_needed, share, length, call=call), call=call, should="one number, what is added"))

    def gets(b: float, length: int) -> float:
        scores = torch.zeros(length, dtype=torch.float64)
        scores[0] = b
        return scores.softmax(0)[0].item()

    missed = [case for case, b in zip(cases, said, strict=True) if abs(gets(b, case[1]) - case[0]) > 1e-4]
    if not missed:
        return "Right: in all ten cases the softmax gives the key its share."
    for mistake, hint in _NEEDED_MISTAKES:
        with suppress(ValueError, ZeroDivisionError):
            if all(math.isclose(b, mistake(*case), rel_tol=1e-4, abs_tol=1e-4) for case, b in zip(cases, said, strict=True)):
                raise Wrong(hint)
    share, length = missed[0]
    b = said[cases.index(missed[0])]
    raise Wrong(f"needed({share}, {length}) gives {b:.4g}, and with it the key gets {gets(b, length):.3g}, not {share}.")


def _odds(share: float) -> float:
    return share / (1 - share)


_NEEDED_MISTAKES: tuple[tuple[Callable[[float, int], float], str], ...] = (
    (lambda share, length: -math.log(_odds(share) * (length - 1)),
     "The sign is turned: your number makes the others that much louder, not the one key."),
    (lambda share, length: abs(math.log(_odds(share) * (length - 1))),
     "Never negative? A key that is to get less than its even share has to be pushed down."),
    (lambda share, length: max(0.0, math.log(_odds(share) * (length - 1))),
     "Never negative? A key that is to get less than its even share has to be pushed down."),
    (lambda share, length: _odds(share) * (length - 1),
     "That is the factor by which the key must be ahead after the exponential. Its score is asked, before it."),
    (lambda share, length: math.log(_odds(share) * length),
     "You give the key length others: one of the keys is the key itself."),
    (lambda share, length: math.log(_odds(share)),
     "You have one other key in mind: each of the others adds its own e to the power of 0 below the line."),
    (lambda share, length: math.log(share * (length - 1)),
     "Below the line of the softmax stand the others and the key itself: your key is missing there."),
    (lambda share, length: math.log(share * length),
     "That makes the key share · length times as loud as one other. The softmax divides by a sum in which it stands itself."),
    (lambda share, length: math.log(share), "That would do if the sum below the line were 1; but it grows with the others."),
    (lambda share, length: math.log(share / (length - 1)), "More keys make your number smaller: a crowd needs a louder voice."),
    (lambda share, length: math.log(share / length), "More keys make your number smaller: a crowd needs a louder voice."),
    (lambda share, length: math.log(_odds(share) / (length - 1)),
     "More keys make your number smaller: a crowd needs a louder voice."),
    (lambda share, length: math.log10(_odds(share) * (length - 1)), "A softmax takes powers of e: which logarithm fits?"),
    (lambda share, length: math.log2(_odds(share) * (length - 1)), "A softmax takes powers of e: which logarithm fits?"),
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
def _traced() -> Iterator[Callable[[], int]]:
    """Gives a function that says how many numbers of 8 bytes Python and NumPy held at once inside the block, at most."""
    already = tracemalloc.is_tracing()
    tracemalloc.start()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield lambda: (tracemalloc.get_traced_memory()[1] - before) // 8
    finally:
        if not already:
            tracemalloc.stop()


@check()
def receive(my_receive: Callable[[Tensor, Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_receive(weights, values, table) -> (L, d), Shaw's values with their offsets, and look how much memory it takes.

    Row m is the sum over n of weights[m, n] · (values[n] + table[clip(m - n, -K, K) + K]), for weights (L, L), values (L, d)
    and table (2K + 1, d). No tensor may hold more than 4·L·L numbers. Chapter 09.
    """
    generator = torch.Generator().manual_seed(seed)

    def inputs(length: int, reach: int, d: int) -> tuple[Tensor, Tensor, Tensor]:
        weights = _draw(generator, length, length).softmax(dim=1)
        return weights, _draw(generator, length, d), _draw(generator, 2 * reach + 1, d)

    def vectors(weights: Tensor, table: Tensor) -> Tensor:
        at, reach = torch.arange(len(weights)), len(table) // 2
        return table[offsets(at, at).clamp(-reach, reach).long() + reach]  # (L, L, d)

    def right(weights: Tensor, values: Tensor, table: Tensor) -> Tensor:
        return torch.einsum("mn,mnd->md", weights, values + vectors(weights, table))

    def from_row_0(w: Tensor, v: Tensor, table: Tensor) -> Tensor:
        return right(w, v, table.roll(len(table) // 2, dims=0))  # the row that table[offset] is, below 0 from the end

    def modulo(w: Tensor, v: Tensor, table: Tensor) -> Tensor:
        at = torch.arange(len(w))
        rows = (at[:, None] - at + len(table) // 2) % len(table)
        return w @ v + torch.einsum("mn,mnd->md", w, table[rows])

    def near(w: Tensor, table: Tensor) -> Tensor:
        return w.tril(len(table) // 2).triu(-(len(table) // 2))

    mistakes = [
        (lambda w, v, t: w @ v, "Only the values have arrived: no offset has added its vector."),
        (lambda w, v, t: right(w, 0 * v, t), "Only the offsets' vectors have arrived: the values are missing."),
        (lambda w, v, t: right(w, v, t.flip(0)), "Past and future are exchanged: row r is for offset m - n = r - K."),
        (from_row_0, "Your offset 0 gets row 0 of the table: that row is for offset -K, and rows below 0 count from its end."),
        (lambda w, v, t: right(w.T, v, t), "Your weights are transposed: row m holds what query m gives to each key."),
        (modulo, "Beyond K you begin again at the table's other end: what is farther than K shares the row of K."),
        (lambda w, v, t: w @ v + right(near(w, t), 0 * v, t),
         "Keys farther than K bring no vector with them: they share the row of K, or of -K."),
        (lambda w, v, t: right(near(w, t), v, t), "Keys farther than K are left out: they share the row of K, or of -K."),
        (lambda w, v, t: w @ v + vectors(w, t).sum(dim=1), "The vectors are added up without their weights."),
        (lambda w, v, t: w @ v + vectors(w, t).mean(dim=1),
         "Your mean of the vectors is an even one: each counts as much as its key is looked at."),
        (lambda w, v, t: w @ v + t[len(t) // 2], "Each token gets the vector of offset 0: that is the one of itself."),
        (lambda w, v, t: torch.einsum("mn,mnd->md", w, v * vectors(w, t)), "You multiply value and vector: they are added."),
        (lambda w, v, t: w @ v + torch.einsum("mn,mnd->nd", w, vectors(w, t)),
         "You add up over the queries: token m receives from all keys n."),
    ]  # fmt: skip
    cases = [inputs(5, 1, 3), inputs(6, 2, 4), inputs(4, 5, 2)]
    praise = compare(my_receive, cases, right, mistakes, name="receive", praise="")

    length, reach, d = 32, 8, 24
    most, large = 4 * length**2, inputs(length, reach, d)
    with _Largest() as largest, _traced() as held:
        answer(my_receive, *large, call=f"receive(weights, values, table), L = {length}")
        in_all = held()
    # Of NumPy's arrays and Python's lists only the sum is known: three tables of the largest size may be there at a time.
    if largest.numbers <= most and in_all <= 3 * most:
        return f"{praise}three texts, and at L = {length}, d = {d} no tensor of more than {most:,} numbers."
    numbers, what = (
        (in_all, "in all that NumPy and Python held")
        if largest.numbers <= most
        else (largest.numbers, "a vector for each query and key")
        if largest.numbers >= length**2 * d
        else (largest.numbers, "a number for each query, key and row of the table")
        if largest.numbers >= length**2 * (2 * reach + 1)
        else (largest.numbers, "the largest tensor")
    )
    raise Wrong(
        f"What comes out is right, and what is made on the way too large: {numbers:,} numbers at once ({what}) for "
        f"L = {length}, K = {reach}, d = {d}, and at most {most:,} are allowed."
    )
