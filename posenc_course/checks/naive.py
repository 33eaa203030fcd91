"""Exercises on the first ideas: the digits of a position, the axis they are added along, padding, and a code by wishes."""

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc_course import naive
from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.sinusoidal import sinusoidal_table


@exercise("bits", instead_of=[naive.binary])
def binary() -> Exercise:
    """bits(position, num_bits) -> its num_bits binary digits, fastest first; all positions of six digits, and a few others."""

    def by(digit: Callable[[int, int], float]) -> Callable[[int, int], Tensor]:
        """What digit(m, b) gives for b = 0, 1, ..."""
        return lambda m, n: torch.tensor([float(digit(m, b)) for b in range(n)], dtype=torch.float64)

    right = by(lambda m, b: m // 2**b % 2)
    no_digit = "Some of your numbers are neither 0 nor 1: a binary digit is what remains of a whole number after division by 2."
    return Exercise(
        cases=[*((m, 6) for m in range(64)), (0, 1), (1, 1), (5, 8), (200, 8), (1000, 10)],
        right=right,
        mistakes={
            "slowest first": (lambda m, n: right(m, n).flip(0),
                "The digits are right but slowest first, as people write numbers: here the digit of 1 comes first."),
            "counted from 1": (lambda m, n: right(m + 1, n),
                "These are the digits of m + 1: the first position is 0, with all digits 0."),
            "opposite": (lambda m, n: 1 - right(m, n), "Every digit is the opposite of what it should be: 0 has all digits 0."),
            "no remainder": (by(lambda m, b: m // 2**b), no_digit),
            "not whole": (by(lambda m, b: m / 2**b % 2), no_digit),
            "masked": (by(lambda m, b: m & 2**b), no_digit),
            "one digit late": (lambda m, n: right(m // 2, n),
                "Your first digit has period 4: the fastest one flips at every step."),
            "one digit early": (by(lambda m, b: m * 2 // 2**b % 2),
                "Your first digit is always 0, and the second flips at every step: begin by dividing by 1."),
            "Gray code": (lambda m, n: right(m ^ m >> 1, n),
                "In your code one digit flips at each step, as in a Gray code: in a counter several can flip at once."),
            "always 0": (by(lambda m, b: 0), "All your digits are 0, whatever the position is."),
        },
        praise="all 64 positions have their own six digits, and the first one flips at every step.",
    )  # fmt: skip


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

    def a_thousandth_of_the_count(x: Tensor) -> Tensor:
        return x + 0.001 * torch.arange(x.shape[1]).to(x).unsqueeze(1)

    def the_count_added_and_taken_off(x: Tensor) -> Tensor:
        signs = (torch.arange(x.shape[2]) == 0).to(x) - (torch.arange(x.shape[2]) == 1).to(x)
        return x + torch.arange(x.shape[1]).to(x).unsqueeze(1) * signs

    def the_texts_number_added_and_taken_off(x: Tensor) -> Tensor:
        signs = (torch.arange(x.shape[2]) == 0).to(x) - (torch.arange(x.shape[2]) == 1).to(x)
        return x + torch.arange(x.shape[0]).to(x).view(-1, 1, 1) * signs

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
        a_thousandth_of_the_count: "token",
        the_count_added_and_taken_off: "token",
        the_texts_number_added_and_taken_off: "text",
        a_count_of_the_numbers: "neither",
        one_row_for_all: "neither",
        nothing_added: "neither",
    }


@exercise()
def counts_along(seed: int) -> Exercise:
    """counts_along(f) -> "token", "text" or "neither", on layers that add something to x (batch, L, d)."""
    layers = _layers(seed)

    def renamed(words: dict[str, str]) -> Callable[[Layer], str]:
        return lambda f: words.get(layers[f], layers[f])

    def calling(word: str, *names: str) -> Callable[[Layer], str]:
        """Somebody who has this word for the layers whose names begin or end so."""
        return lambda f: word if f.__name__.startswith(names) or f.__name__.endswith(names) else layers[f]

    cancel, last_number = "added_and_taken_off", "last_number"
    whole_rows = (
        "A position that is written into some numbers of a token, or that cancels in their sum, gets past you: compare whole "
        "rows, number by number."
    )
    one_token = "A row may have different numbers in it and be the same for all tokens: compare one token with another."

    def compared(f: Layer, differ: bool) -> str:
        """The word of somebody to whom tokens differ if numbers do."""
        added = f(torch.zeros(3, 4, 5))
        return "token" if differ else "text" if (added != added[0]).any() else "neither"

    mistakes: dict[str, tuple[Callable[[Layer], str], str]] = {
        "exchanged": (renamed({"token": "text", "text": "token"}),
            "The two words have changed places: axis 0 counts texts, axis 1 tokens."),
        "x shows through": (calling("token", "eight", "one_row"),
            "x itself shows through where a layer multiplies it: feed it an x of which nothing is left."),
        "one number": (calling("neither", last_number), whole_rows),
        "the last number, or sums": (calling("neither", cancel), whole_rows),
        "another number": (calling("neither", last_number, cancel), whole_rows),
        "numbers compared": (calling("token", "a_count_of", "one_row"), one_token),
        "numbers of one text compared": (lambda f: compared(f, bool(f(torch.zeros(3, 4, 5))[0].std() > 0)), one_token),
        "two numbers compared": (lambda f: compared(f, bool(f(torch.zeros(3, 4, 5))[:, :, :2].diff(dim=2).any())), one_token),
        "too coarse": (calling("neither", "a_thousandth"),
            "You forgive too much: a position may be written in small numbers, such as thousandths."),
        "texts first": (calling("text", "a_count_that_runs_on"),
            "a_count_that_runs_on_over_texts gives tokens of one text different rows: compare those first."),
        "no text": (renamed({"text": "neither"}),
            'You find no layer "text": does your x hold two texts, and do you compare them?'),
        "texts are tokens": (renamed({"text": "token"}),
            'You call "token" what differs from text to text alone: compare tokens of the same text.'),
        "no token": (renamed({"token": "neither"}),
            'You find no layer "token": does a text of your x hold two, and do you compare them?'),
        "tokens are texts": (renamed({"token": "text"}),
            'You call "text" what differs within a text: look at the tokens of one text first.'),
        "no neither, text": (renamed({"neither": "text"}),
            'You find no layer "neither": where all tokens of a text get the same, different texts may get the same too.'),
        "no neither, token": (renamed({"neither": "token"}),
            'You find no layer "neither": in some, all tokens of all texts get the same.'),
        "anything added": (lambda f: "neither" if f.__name__ == "nothing_added" else "token",
            'You call "token" whatever adds anything at all: compare what one token gets with what another gets.'),
        **{f"always {word}": (renamed(dict.fromkeys(("token", "text", "neither"), word)),
            f'You call every layer "{word}": do you compare what is *added*, token with token?')
           for word in ("token", "text", "neither")},
    }  # fmt: skip

    def but_running_on(mistake: Callable[[Layer], str], word: str) -> Callable[[Layer], str]:
        """Where texts differ too, a mistake may give another word."""
        return lambda f: word if "runs_on" in f.__name__ else mistake(f)

    return Exercise(
        cases=[(f,) for f in layers],
        right=layers.__getitem__,
        mistakes=mistakes
        | {
            f"{name}, and {word} where texts differ too": (but_running_on(mistake, word), hint)
            for name, (mistake, hint) in mistakes.items()
            for word in ("token", "text")
            if name not in ("texts first", "numbers of one text compared", "two numbers compared")
        },
        praise=f"all {len(layers)} layers.",
    )


@exercise(instead_of=[naive.normalized])
def fractions(seed: int) -> Exercise:
    """fractions(mask) -> m / (L - 1) for the tokens of each padded text, 0 for its padding."""
    chance = random.Random(seed)

    def batch(width: int, texts: Sequence[tuple[int, int]]) -> Tensor:
        """A row for each text, of so many tokens after so much padding."""
        column = torch.arange(width)
        return torch.stack([(column >= left) & (column < left + length) for left, length in texts])

    def sampled(width: int) -> tuple[int, int]:
        length = chance.randint(2, width - 2)
        return chance.randint(1, width - length - 1), length  # padding on both sides

    cases = {
        "padding on the right": (batch(6, [(0, 6), (0, 4), (0, 3)]),),
        "padding on the left": (batch(7, [(0, 7), (2, 5), (5, 2)]),),
        "padding on both sides": (batch(9, [sampled(9), sampled(9), (3, 5)]),),
        "texts of one token": (batch(5, [(2, 3), (4, 1), (0, 1)]),),
        "one text without padding": (batch(8, [(0, 8)]),),
        "one text of one token": (batch(4, [(1, 1)]),),
    }

    def by(number: Callable[[Tensor, Tensor], Tensor], *, padding: bool = True) -> Callable[[Tensor], Tensor]:
        """What number(own positions, own lengths) gives, with padding 0."""

        def table(mask: Tensor) -> Tensor:
            values = number(mask.cumsum(dim=1).double() - 1, mask.sum(dim=1, keepdim=True).double())
            return torch.where(mask, values, 0.0) if padding else values

        return table

    def column(m: Tensor) -> Tensor:
        return torch.arange(m.shape[1], dtype=torch.float64).expand_as(m)

    def width(m: Tensor) -> Tensor:
        return torch.tensor(m.shape[1])

    def last(length: Tensor) -> Tensor:
        return (length - 1).clamp(min=1)

    right = by(lambda m, length: m / last(length))
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "width": (by(lambda m, length: m / last(width(m))),
                "You divide by the width of the batch: a padded text then never reaches 1, so take each text's own length."),
            "columns": (by(lambda m, length: column(m) / last(length)),
                "You count columns: padding on the left is not part of the text, so its first token has m = 0."),
            "columns and width": (by(lambda m, length: column(m) / last(width(m))),
                "You take column and width of the whole batch: each text has its own tokens and its own length."),
            "L": (by(lambda m, length: m / length), "Your last token stays below 1: the last m is L - 1, not L."),
            "from 1, L": (by(lambda m, length: (m + 1) / length),
                "Your first token is not at 0: m counts from 0, and so up to L - 1."),
            "from 1": (by(lambda m, length: (m + 1) / last(length)), "Your first token is not at 0: m counts from 0."),
            "padding": (by(lambda m, length: m / last(length), padding=False),
                "The tokens are right, but padding has to be 0: a running count begins at -1, and it goes on behind the last "
                "token."),
            "padding on the right": (by(lambda m, length: (m / last(length)).clamp(min=0), padding=False),
                "The tokens are right, but padding on the right has to be 0: a running count goes on behind the last token."),
            "one token": (by(lambda m, length: torch.where(length == 1, 1.0, m / last(length))),
                "All is right but the text of one token: it is at 0."),
            "counts": (by(lambda m, length: m), "These are the counts m: divide by each text's L - 1."),
            "backwards": (by(lambda m, length: (length - 1 - m) / last(length)),
                "The first token is at 1 and the last at 0: turn it round."),
            "the longest": (by(lambda m, length: m / last(length.max())),
                "You divide by the longest text's L - 1: each text has a length of its own."),
            "whole numbers": (by(lambda m, length: m // last(length)), "You divide whole numbers, and lose the fraction."),
        },
        praise="padding left, right and on both sides, and texts of one token.",
    )  # fmt: skip


@exercise()
def named(seed: int) -> Exercise:
    """named(m, trained, length) -> the token nearest to where a model looks that goes back one step of the trained length."""
    chance = random.Random(seed)
    cases = {
        "the trained length": (7, 20, 20),
        "a text half as long": (6, 20, 10),
        "a text twice as long": (25, 20, 40),
        "a much longer text": (60, 5, 100),
        "the first token": (0, 20, 12),
        "a look in front of the first token": (3, 8, 50),
        "the last token": (29, 11, 30),
        "two tokens": (1, 4, 2),
        "sampled lengths": (chance.randrange(30, 60), 12, 60 + 11 * chance.randrange(3, 6)),
    }

    def by(step: Callable[[int, int], float], nearest: Callable[[float], int] = round) -> Callable[[int, int, int], int]:
        """The position that is so many tokens back, by the two lengths; none lies in front of the first."""
        return lambda m, trained, length: max(nearest(m - step(trained, length)), 0)

    def tokens(trained: int, length: int) -> float:
        return (length - 1) / (trained - 1)

    def by_trained(looks_at: float, trained: int) -> int:
        return min(range(trained), key=lambda n: abs(n / (trained - 1) - looks_at))

    right = by(tokens)
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "one back": (lambda m, trained, length: m - 1,
                "That is the token before: the model goes back by one step of the *trained* length, in a text of another one."),
            "one back, held": (by(lambda trained, length: 1),
                "That is the token before: the model goes back by one step of the *trained* length, in a text of another one."),
            "itself": (lambda m, trained, length: m, "Each token names itself: where does the model look?"),
            "L": (by(lambda trained, length: length / trained),
                "Nearly: m / (L - 1) reaches 1 at the last token, so a step is 1 / (L - 1), not 1 / L."),
            "upside down": (by(lambda trained, length: (trained - 1) / (length - 1)),
                "The two lengths have changed places: a step of a shorter training text reaches further."),
            "rounded down": (lambda m, trained, length: max(int(m - tokens(trained, length)), 0),
                "You take the token at or before where the model looks: it names the nearest one, which can come after."),
            "whole steps": (by(lambda trained, length: (length - 1) // (trained - 1)),
                "You round before you look for the nearest token, or you round up: the number of tokens that it goes back need "
                "not be whole, and the nearest token can be on either side."),
            "trained positions": (lambda m, trained, length: by_trained(m / (length - 1) - 1 / (trained - 1), trained),
                "You look for the nearest position of the *training* text: which is the nearest of this one?"),
            "forwards": (lambda m, trained, length: min(round(m + tokens(trained, length)), length - 1),
                "You look ahead: the model looks back."),
            "in front of the text": (lambda m, trained, length: round(m - tokens(trained, length)),
                "You name a token in front of the first one: where the model looks there, the nearest token is the first."),
            "how far back": (lambda m, trained, length: m - right(m, trained, length),
                "That is how far back it looks, in tokens: the position it names was asked for."),
        },
        praise="at the trained length the token before, in a short text the token itself, in a long one another.",
    )  # fmt: skip


_WIDTH, _PLACES, _APART = 6, 1000, 0.5  # as the exercise's text has them


@exercise()
def even_code(seed: int) -> Exercise:
    """even_code(positions) -> (L, 6), a code that has the chapter's four wishes for positions 0 to 999, 0.5 or more apart."""
    everything = torch.arange(_PLACES)
    shuffled = torch.randperm(_PLACES, generator=torch.Generator().manual_seed(seed))
    cases = {
        "all positions": (everything,),
        "positions in another order": (shuffled[:300],),
        "the first twenty": (everything[:20],),
        "a few from the middle": (400 + everything[:7],),
        "a single position": (shuffled[-1:],),
    }

    def clocks(positions: Tensor, *periods: float) -> Tensor:
        angles = 2 * torch.pi * positions[:, None] / torch.tensor(periods, dtype=torch.float64)
        return torch.cat((angles.cos(), angles.sin()), dim=1)

    def fault(said: Sequence[Tensor]) -> str | None:
        codes = said[0]
        for (name, (positions,)), rows in zip(list(cases.items())[1:], said[1:], strict=True):
            if not torch.allclose(rows, codes[positions], atol=1e-3):
                return (
                    f"Wish 1, one place, one code: for {name}, the rows are not those that the same positions have in "
                    f"even_code(torch.arange({_PLACES})). Use each position itself, not its place in the list or the largest."
                )
        if not codes.isfinite().all():
            return "Some of your numbers are infinite or NaN."
        if codes.abs().max() > 1 + 1e-3:
            return f"Wish 2, bounded: your largest number is {codes.abs().max():.4g} in size, and 1 is allowed."
        steps = codes.diff(dim=0).norm(dim=1)
        apart = torch.cdist(codes, codes, compute_mode="donot_use_mm_for_euclid_dist") + 9 * torch.eye(_PLACES)
        m, n = divmod(int(apart.argmin()), _PLACES)
        if apart.min() < _APART:
            return (
                f"Wish 3, distinct: positions {m} and {n} are {float(apart.min()):.3f} apart, and should be {_APART} or more. "
                + ("They are neighbours, so every step is too small: nothing in your code is fast enough."
                   if n - m == 1 else
                   f"After {n - m} steps everything in your code is back, or nearly: which part should have moved by then?")
            )  # fmt: skip
        if steps.max() - steps.min() > 1e-3:
            m, n = int(steps.argmin()), int(steps.argmax())
            return (
                f"Wish 4, even: from {m} to {m + 1} the distance is {float(steps[m]):.4f}, from {n} to {n + 1} it is "
                f"{float(steps[n]):.4f}. What changes by the same amount at every step, and stays bounded?"
            )
        return None

    def decimal(positions: Tensor) -> Tensor:
        """Its three digits, from 0 to 1, and zeros."""
        digits = positions[:, None] // torch.tensor([1, 10, 100]) % 10
        return torch.cat((digits / 9, torch.zeros_like(digits)), dim=1)

    return Exercise(
        cases=cases,
        right=lambda positions: clocks(positions, 10, 100, 1000),
        mistakes={
            "counted": (lambda positions: positions[:, None].expand(-1, _WIDTH),
                "These are the positions themselves: they grow with the text, and wish 2 allows no number above 1."),
            "scaled": (lambda positions: positions[:, None].expand(-1, _WIDTH) / (_PLACES - 1),
                "You scale the positions to [0, 1], so a step is only a thousandth of the way: neighbours have to be "
                f"{_APART} apart."),
            "decimal digits": (decimal,
                "These are the three digits of the position: from 9 to 10 two of them change, so the steps are not even."),
            "one clock, three times": (lambda positions: clocks(positions, 10, 10, 10),
                "All your clocks have one speed, so together they say no more than one of them does."),
            "slow clocks": (lambda positions: clocks(positions, 1000, 1000, 1000),
                "All your clocks turn once in 1,000 steps, so neighbours are nearly equal: one of them has to be faster."),
        },
        praise="one place, one code; bounded; distinct by half or more; and every step is as long as every other.",
        fault=fault,
    )  # fmt: skip
