"""Exercises of chapter 02: the digits of a position, and the assignment on axes, padding and dials."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, as_table, check, compare
from posenc_course.naive import binary as truth
from posenc_course.naive import normalized
from posenc_course.sinusoidal import sinusoidal_table


@check(instead_of=[truth], draws=False)
def binary(bits: Callable[[int, int], Any]) -> str:
    """Try bits(position, num_bits) -> num_bits digits, fastest first, on every position of six bits. Chapter 02."""
    num_bits = 6
    positions = range(2**num_bits)

    def row(m: int) -> Tensor:
        call = f"bits({m}, {num_bits})"
        return as_table(answer(bits, m, num_bits, call=call), (num_bits,), call=call)

    yours = torch.stack([row(m) for m in positions])
    right = truth(positions, num_bits)
    if torch.equal(yours, right):
        return "Right: all 64 positions have their own six digits, and the first one flips at every step."
    if torch.equal(yours, right.flip(-1)):
        return "The digits are right but slowest first, as people write numbers: here the digit of 1 comes first."
    if torch.equal(yours, right.roll(-1, dims=0)):
        return "These are the digits of m + 1: the first position is 0, with all digits 0."
    if torch.equal(yours, 1 - right):
        return "Every digit is the opposite of what it should be: 0 has all digits 0."
    no_digit = ((yours != 0) & (yours != 1)).any(dim=-1)
    if no_digit.any():
        m = int(no_digit.nonzero()[0])
        return f"bits({m}, {num_bits}) gives {yours[m].tolist()}: a digit is 0 or 1. Is a remainder by 2 missing?"
    m = int((yours != right).any(dim=-1).nonzero()[0])
    return f"bits({m}, {num_bits}) gives {yours[m].int().tolist()}, it should be {right[m].int().tolist()}."


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────

Layer = Callable[[Tensor], Tensor]


def _layers(seed: int) -> dict[Layer, str]:
    """Layers x (batch, L, d) -> the same shape, with the axis along which each of them counts. Their names are in verdicts."""

    def rows(number: int, like: Tensor) -> Tensor:
        return sinusoidal_table(range(number), like.shape[-1]).to(like)

    def noise(number: int, like: Tensor) -> Tensor:
        return torch.randn(number, like.shape[-1], generator=torch.Generator().manual_seed(seed)).to(like)

    def a_row_per_token(x: Tensor) -> Tensor:
        return x + rows(x.shape[1], x)

    def a_row_per_text(x: Tensor) -> Tensor:
        return x + rows(x.shape[0], x).unsqueeze(1)

    def eight_x_plus_a_row_per_token(x: Tensor) -> Tensor:
        return 8 * x + noise(x.shape[1], x)

    def eight_x_plus_a_row_per_text(x: Tensor) -> Tensor:
        return 8 * x + noise(x.shape[0], x).unsqueeze(1)

    def the_count_in_the_last_number(x: Tensor) -> Tensor:
        last = (torch.arange(x.shape[2]) == x.shape[2] - 1).to(x)
        return x + torch.arange(x.shape[1]).to(x).unsqueeze(1) * last

    def the_texts_number_in_the_last_number(x: Tensor) -> Tensor:
        last = (torch.arange(x.shape[2]) == x.shape[2] - 1).to(x)
        return x + torch.arange(x.shape[0]).to(x).view(-1, 1, 1) * last

    def a_count_of_the_numbers(x: Tensor) -> Tensor:
        return x + torch.arange(x.shape[2]).to(x)

    def one_row_for_all(x: Tensor) -> Tensor:
        return 3 * x + rows(x.shape[1] + 1, x)[-1]

    def a_count_that_runs_on_over_texts(x: Tensor) -> Tensor:
        return x + torch.arange(x.shape[0] * x.shape[1]).to(x).view(x.shape[0], x.shape[1], 1)

    def nothing_added(x: Tensor) -> Tensor:
        return x

    return {
        a_row_per_token: "token",
        a_row_per_text: "text",
        eight_x_plus_a_row_per_token: "token",
        eight_x_plus_a_row_per_text: "text",
        the_count_in_the_last_number: "token",
        the_texts_number_in_the_last_number: "text",
        a_count_that_runs_on_over_texts: "token",
        a_count_of_the_numbers: "neither",
        one_row_for_all: "neither",
        nothing_added: "neither",
    }


@check()
def counts_along(my_axis: Callable[[Layer], Any], *, seed: int) -> str:
    """Try my_axis(f) -> "token", "text" or "neither" on ten layers that add something to x (batch, L, d). Chapter 02."""
    layers = _layers(seed)

    def renamed(words: dict[str, str]) -> Callable[[Layer], str]:
        return lambda f: words.get(layers[f], layers[f])

    mistakes = [
        (renamed({"token": "text", "text": "token"}), "The two words have changed places: axis 0 counts texts, axis 1 tokens."),
        (lambda f: "token" if f.__name__.startswith(("eight", "one_row")) else layers[f],
         "x itself shows through where a layer multiplies it: feed it an x of which nothing is left."),
        (lambda f: "neither" if "last_number" in f.__name__ else layers[f],
         "A position that is written into the last number alone gets past you: compare whole rows."),
        (lambda f: "token" if f.__name__.startswith(("a_count_of", "one_row")) else layers[f],
         "A row may have different numbers in it and be the same for all tokens: compare one token with another."),
        (lambda f: "token" if f.__name__.startswith("a_count_of") else layers[f],
         "a_count_of_the_numbers adds the same row to all tokens: compare one token with another, not one number."),
        (lambda f: "text" if "runs_on" in f.__name__ else layers[f],
         "a_count_that_runs_on_over_texts gives tokens of one text different rows: compare those first."),
        (renamed({"text": "neither"}), 'You find no layer "text": does your x hold two texts, and do you compare them?'),
        (renamed({"text": "token"}), 'You call "token" what differs from text to text alone: compare tokens of the same text.'),
        (renamed({"token": "neither"}), 'You find no layer "token": does a text of your x hold two, and do you compare them?'),
        (renamed({"token": "text"}), 'You call "text" what differs within a text: look at the tokens of one text first.'),
        (renamed({"neither": "text"}), 'You find no layer "neither": if no token differs, texts still may or may not.'),
        (renamed({"neither": "token"}), 'You find no layer "neither": in three of the ten all tokens get the same.'),
        (lambda f: "neither" if f.__name__ == "nothing_added" else "token",
         'You call "token" whatever adds anything at all: compare what one token gets with what another gets.'),
        *((lambda f, word=word: word, f'You call all ten "{word}": do you compare what is *added*, token with token?')
          for word in ("token", "text", "neither")),
    ]  # fmt: skip

    def but_running_on(mistake: Callable[[Layer], str], word: str) -> Callable[[Layer], str]:
        """Where texts differ too, a mistake may give another word."""
        return lambda f: word if "runs_on" in f.__name__ else mistake(f)

    mistakes += [(but_running_on(mistake, word), hint) for mistake, hint in mistakes for word in ("token", "text")]
    return compare(my_axis, [(f,) for f in layers], layers.__getitem__, mistakes, name="counts_along", praise="all ten layers.")


@check(instead_of=[normalized])
def fractions(my_fractions: Callable[[Tensor], Any], *, seed: int) -> str:
    """Try my_fractions(mask) -> m / (L - 1) for the tokens of each padded text, 0 for its padding. Chapter 02."""
    draw = random.Random(seed)

    def batch(width: int, texts: Sequence[tuple[int, int]]) -> Tensor:
        """A row for each text, of so many tokens after so much padding."""
        column = torch.arange(width)
        return torch.stack([(column >= left) & (column < left + length) for left, length in texts])

    def drawn(width: int) -> tuple[int, int]:
        length = draw.randint(2, width - 2)
        return draw.randint(1, width - length - 1), length  # padding on both sides

    cases = [
        (batch(6, [(0, 6), (0, 4), (0, 3)]),),  # padded on the right
        (batch(7, [(0, 7), (2, 5), (5, 2)]),),  # on the left
        (batch(9, [drawn(9), drawn(9), (3, 5)]),),
        (batch(5, [(2, 3), (4, 1), (0, 1)]),),  # and texts of one token
    ]

    def by(number: Callable[[Tensor, Tensor], Tensor], *, padding: bool = True) -> Callable[[Tensor], Tensor]:
        """What number(own positions, own lengths) gives, with padding 0."""

        def table(mask: Tensor) -> Tensor:
            values = number(mask.cumsum(dim=1).double() - 1, mask.sum(dim=1, keepdim=True).double())
            return torch.where(mask, values, 0.0) if padding else values

        return table

    def column(m: Tensor) -> Tensor:
        return torch.arange(m.shape[1], dtype=torch.float64).expand_as(m)

    def last(length: Tensor) -> Tensor:
        return (length - 1).clamp(min=1)

    right = by(lambda m, length: m / last(length))
    mistakes = [
        (by(lambda m, length: m / (m.shape[1] - 1)),
         "You divide by the width of the batch: whoever is padded never reaches 1, so take each text's own length."),
        (by(lambda m, length: column(m) / last(length)),
         "You count columns: padding on the left is not part of the text, so its first token has m = 0."),
        (by(lambda m, length: column(m) / (m.shape[1] - 1)),
         "You take column and width of the whole batch: each text has its own tokens and its own length."),
        (by(lambda m, length: m / length), "Your last token stays below 1: the last m is L - 1, not L."),
        (by(lambda m, length: (m + 1) / length), "Your first token is not at 0: m counts from 0, and so up to L - 1."),
        (by(lambda m, length: (m + 1) / last(length)), "Your first token is not at 0: m counts from 0."),
        (by(lambda m, length: m / last(length), padding=False),
         "The tokens are right, but padding has to be 0: a running count goes on behind the last token, and begins at -1."),
        (by(lambda m, length: (m / last(length)).clamp(min=0), padding=False),
         "The tokens are right, but padding on the right has to be 0: a running count goes on behind the last token."),
        (by(lambda m, length: torch.where(length == 1, 1.0, m / last(length))),
         "All is right but the text of one token: it is at 0."),
        (by(lambda m, length: m), "These are the counts m: divide by each text's L - 1."),
        (by(lambda m, length: (length - 1 - m) / last(length)), "The first token is at 1 and the last at 0: turn it round."),
        (by(lambda m, length: m / last(length.max())),
         "You divide by the longest text's L - 1: each text has a length of its own."),
    ]  # fmt: skip
    praise = "padding left, right and on both sides, and texts of one token."
    return compare(my_fractions, cases, right, mistakes, name="fractions", praise=praise)


@check()
def first_return(my_return: Callable[[list[int]], Any], *, seed: int) -> str:
    """Try my_return(dials) -> the first position after 0 at which all dials show 0, on eight lists of dials. Chapter 02."""
    draw = random.Random(seed)
    shared = draw.randint(2, 4)  # both dials of this list can be divided by it
    # Fixed ones beside the drawn, so that no draw lets a product pass; one of three whose divisor is shared by two alone.
    drawn = [shared * factor for factor in draw.sample((2, 3, 5), 2)]
    lists = ([8], [4, 6], [3, 5], [2, 4, 8], [4, 5, 6], [6, 10, 15], [8, 11, 13], drawn)

    def until(dials: list[int], shown: Callable[[list[bool]], bool]) -> int:
        return next(m for m in range(1, 10_000) if shown([m % marks == 0 for marks in dials]))

    mistakes = [
        (lambda dials: math.prod(dials), "That is the product: dials of 4 and 6 are back together sooner than after 24."),
        (lambda dials: until(dials, any), "There one dial is back, and not all of them."),
        (lambda dials: math.lcm(*dials) - 1, "One too few: that is the last position with a new code, just before the return."),
        (lambda dials: math.lcm(*dials) + 1, "One too many: is position 0 counted as a step?"),
        (lambda dials: max(dials), "There the largest dial is back, and the others need not be."),
        (lambda dials: sum(dials), "You add the marks up: the dials move all at once, not one after the other."),
        (lambda dials: math.lcm(*dials[:2]), "You look at two dials only: there may be one, or three."),
        (lambda dials: math.lcm(dials[0], dials[-1]), "You look at the first and the last dial: there may be more between."),
        (lambda dials: math.gcd(*dials), "That number divides all of them: the return is one that all of them divide."),
        (lambda dials: math.prod(dials) // math.gcd(*dials),
         "With two dials this works: of three, two may share a divisor that the third does not have."),
        (lambda dials: 0, "At position 0 they all begin: the first one after it is asked for."),
    ]  # fmt: skip
    return compare(
        my_return,
        [(dials,) for dials in lists],
        lambda dials: math.lcm(*dials),
        mistakes,
        name="first_return",
        praise="one dial, two and three, with divisors in common and without.",
    )


def _latest(marks: int) -> int:
    """The latest return of all dials with so many marks in all; Landau's function of number theory."""
    reached = [{1}]  # by money spent: the returns that can be had
    for money in range(1, marks + 1):
        reached.append({math.lcm(m, dial) for dial in range(2, money + 1) for m in reached[money - dial]} | reached[money - 1])
    return max(reached[marks])


def _dials(result: Any, marks: int, call: str) -> list[int]:
    try:
        numbers = np.array(result.tolist() if isinstance(result, Tensor) else result, dtype=float)
    except (TypeError, ValueError) as error:
        raise Wrong(f"{call} returned a {type(result).__name__}, it should be a list of whole numbers.") from error
    if numbers.ndim != 1:
        raise Wrong(f"{call} should return a list of whole numbers, the marks of each dial.")
    if not (numbers == numbers.round()).all():
        raise Wrong(f"{call} returned {numbers.tolist()}: a dial has a whole number of marks.")
    dials = [int(number) for number in numbers]
    if not dials:
        raise Wrong(f"{call} returned no dial at all, and its money would buy one.")
    if min(dials) < 2:
        raise Wrong(f"{call} returned {dials}: a dial has 2 marks or more.")
    if sum(dials) > marks:
        raise Wrong(f"{call} returned {dials}, which have {sum(dials)} marks in all: more than {marks}.")
    return dials


@check(draws=False)
def best_dials(my_dials: Callable[[int], Any]) -> str:
    """Try my_dials(marks) -> dials with at most so many marks in all that come back as late as any can, for 2 to 16 marks.

    Chapter 02.
    """
    budgets = range(2, 17)
    said = {}
    for marks in budgets:
        call = f"best_dials({marks})"
        said[marks] = _dials(answer(my_dials, marks, call=call), marks, call)
    worse = [marks for marks in budgets if math.lcm(*said[marks]) < _latest(marks)]
    if not worse:
        return f"Right: the latest return there is, for all {len(budgets)} sums, up to {_latest(16)} tokens with 16 marks."
    marks = worse[0]
    if all(len(dials) == 1 for dials in said.values()):
        hint = "You always buy one dial: two of 2 and 3 marks come back after 6 tokens, for five marks."
    elif all(math.lcm(*said[marks]) < math.prod(said[marks]) for marks in worse if len(said[marks]) > 1):
        hint = "Dials that share a divisor come back together early: search for the latest return, not the largest product."
    elif all(len(dials) <= 2 for dials in said.values()):
        hint = "You buy two dials at most, and more of them can do better."
    elif all(_is_prime(dial) for dials in said.values() for dial in dials):
        hint = "Your dials all have a prime number of marks: others, 4 for example, may share no divisor with the rest either."
    elif all(sum(dials) == marks for marks, dials in said.items()):
        hint = "You always spend every mark, and one can be worth leaving: `marks` is the most that you may spend."
    elif all(sum(said[marks]) < marks for marks in worse):
        hint = "You leave money unspent there: does your search reach the last mark?"
    elif all(dial > 2 for dials in said.values() for dial in dials if len(dials) > 1):
        hint = "No list of yours has a dial with 2 marks beside others: does your search begin at 2?"
    else:
        hint = "Does your search leave lists out?"
    raise Wrong(
        f"best_dials({marks}) gives {said[marks]}, which come back after {math.lcm(*said[marks])} tokens; "
        f"the latest return for {marks} marks is after {_latest(marks)}. {hint}"
    )


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, number))
