"""Exercises on the first ideas: binary digits, the axis along which positions are added, and four wishes."""

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc_course import naive
from posenc_course.checks._exercise import Exercise, exercise
from posenc_course.sinusoidal import sinusoidal_table


@exercise("bits", instead_of=[naive.binary])
def binary() -> Exercise:
    """bits(position, num_bits) -> its num_bits binary digits, fastest first; all positions of six digits, and some others."""

    def by(digit: Callable[[int, int], float]) -> Callable[[int, int], Tensor]:
        """What digit(m, b) gives for b = 0, 1, ..."""
        return lambda m, n: torch.tensor([float(digit(m, b)) for b in range(n)], dtype=torch.float64)

    right = by(lambda m, b: m // 2**b % 2)
    no_digit = "Some of your numbers are neither 0 nor 1. A binary digit is the remainder when a whole number is divided by 2."
    return Exercise(
        cases=[*((m, 6) for m in range(64)), (0, 1), (1, 1), (5, 8), (200, 8), (1000, 10)],
        right=right,
        mistakes={
            "slowest first": (lambda m, n: right(m, n).flip(0),
                "Your digits are right, but the slowest comes first. Here, the digit that flips at every step does."),
            "no remainder": (by(lambda m, b: m // 2**b), no_digit),
            "not whole": (by(lambda m, b: m / 2**b % 2), no_digit),
            "masked": (by(lambda m, b: m & 2**b), no_digit),
            "Gray code": (lambda m, n: right(m ^ m >> 1, n),
                "In your code, exactly one digit flips at each step, as in a Gray code. Here, several can flip at once."),
        },
        praise="each of the 64 positions has its own six digits, and the first digit flips at every step.",
    )  # fmt: skip


Layer = Callable[[Tensor], Tensor]


def _layers(seed: int) -> dict[Layer, str]:
    """Layers x (batch, L, d) -> the same shape, each with the axis that it counts along. Their names appear in verdicts."""

    def rows(number: int, like: Tensor) -> Tensor:
        return sinusoidal_table(range(number), like.shape[-1]).to(like)

    def noise(number: int, like: Tensor) -> Tensor:
        return torch.randn(number, like.shape[-1], generator=torch.Generator().manual_seed(seed)).to(like)

    def tokens(x: Tensor) -> Tensor:
        return torch.arange(x.shape[1]).to(x)[:, None]

    def texts(x: Tensor) -> Tensor:
        return torch.arange(x.shape[0]).to(x)[:, None, None]

    def unit(x: Tensor, at: int) -> Tensor:
        return (torch.arange(x.shape[2]) == at % x.shape[2]).to(x)

    layers: dict[str, tuple[Layer, str]] = {
        "a row per token": (lambda x: x + rows(x.shape[1], x), "token"),
        "a row per text": (lambda x: x + rows(x.shape[0], x).unsqueeze(1), "text"),
        "eight x plus a row per token": (lambda x: 8 * x + noise(x.shape[1], x), "token"),
        "eight x plus a row per text": (lambda x: 8 * x + noise(x.shape[0], x).unsqueeze(1), "text"),
        "the count in the last number": (lambda x: x + tokens(x) * unit(x, -1), "token"),
        "the text's number in the last number": (lambda x: x + texts(x) * unit(x, -1), "text"),
        "a count that runs on over texts": (lambda x: x + x.shape[1] * texts(x) + tokens(x), "token"),
        "a thousandth of the count": (lambda x: x + 0.001 * tokens(x), "token"),
        "the count added and taken off": (lambda x: x + tokens(x) * (unit(x, 0) - unit(x, 1)), "token"),
        "the text's number added and taken off": (lambda x: x + texts(x) * (unit(x, 0) - unit(x, 1)), "text"),
        "a count of the numbers": (lambda x: x + torch.arange(x.shape[2]).to(x), "neither"),
        "one row for all": (lambda x: 3 * x + rows(x.shape[1] + 1, x)[-1], "neither"),
        "nothing added": (lambda x: x, "neither"),
    }
    for name, (layer, _) in layers.items():
        layer.__name__ = name.replace(" ", "_").replace("'", "")
    return dict(layers.values())


@exercise()
def counts_along(seed: int) -> Exercise:
    """counts_along(f) -> "token", "text" or "neither", on layers that add something to x (batch, L, d)."""
    layers = _layers(seed)

    def renamed(words: dict[str, str]) -> Callable[[Layer], str]:
        return lambda f: words.get(layers[f], layers[f])

    def calling(word: str, *names: str) -> Callable[[Layer], str]:
        """The answers of a student whose test returns this word for the layers whose names begin or end like this."""
        return lambda f: word if f.__name__.startswith(names) or f.__name__.endswith(names) else layers[f]

    cancel, last_number = "added_and_taken_off", "last_number"
    whole_rows = (
        "Your function misses some of what the layers add. A layer may change only some numbers of a token, or add numbers "
        "whose sum is zero. Compare whole rows, number by number."
    )
    one_token = (
        'Your function says "token" if the numbers within an added row differ. But a layer can add the same row to all tokens, '
        "so compare one token with another."
    )

    def compared(f: Layer, differ: bool) -> str:
        """The answer of a student whose test says "token" if certain numbers differ."""
        added = f(torch.zeros(3, 4, 5))
        return "token" if differ else "text" if (added != added[0]).any() else "neither"

    mistakes: dict[str, tuple[Callable[[Layer], str], str]] = {
        "exchanged": (renamed({"token": "text", "text": "token"}),
            'You have swapped the two words "token" and "text". Axis 0 of x counts texts, and axis 1 counts tokens.'),
        "x shows through": (calling("token", "eight", "one_row"),
            "Some layers multiply x by a number. Which x stays the same when it is multiplied by any number?"),
        "one number": (calling("neither", last_number), whole_rows),
        "the last number, or sums": (calling("neither", cancel), whole_rows),
        "another number": (calling("neither", last_number, cancel), whole_rows),
        "numbers compared": (calling("token", "a_count_of", "one_row"), one_token),
        "two numbers compared": (lambda f: compared(f, bool(f(torch.zeros(3, 4, 5))[:, :, :2].diff(dim=2).any())), one_token),
        "too coarse": (calling("neither", "a_thousandth"),
            "Your tolerance is too large: a layer may add numbers as small as a thousandth."),
        "texts first": (calling("text", "a_count_that_runs_on"),
            "The layer a_count_that_runs_on_over_texts counts tokens, too. Compare the tokens of one text first."),
        "texts are tokens": (renamed({"text": "token"}),
            'You say "token" if different texts get different numbers, even if all tokens of a text get the same ones. Compare '
            "tokens of the same text."),
        "no neither, text": (renamed({"neither": "text"}),
            'You call no layer "neither". If a layer adds the same numbers to all tokens of a text, check whether it adds the '
            "same numbers to all texts, too."),
    }  # fmt: skip

    def rounded(kept: tuple[str, ...]) -> Callable[[Layer], str]:
        """The answers of a student who compares f(x) - x exactly. By chance, nothing is rounded where few numbers are added."""
        return lambda f: layers[f] if f.__name__.startswith(("nothing", *kept)) else "token"

    for kept in ((), ("the_texts_number_in",), ("the_texts_number_added",), ("the_texts_number",)):
        mistakes[f"rounding, but not {kept}"] = (
            rounded(kept),
            "In f(x) - x, the last digit can differ from token to token. Use an x of zeros, or compare with torch.allclose.",
        )

    def but_running_on(mistake: Callable[[Layer], str], word: str) -> Callable[[Layer], str]:
        """The same mistake, but with this word for the layer whose additions also differ between texts."""
        return lambda f: word if "runs_on" in f.__name__ else mistake(f)

    return Exercise(
        cases=[(f,) for f in layers],
        right=layers.__getitem__,
        mistakes=mistakes
        | {
            f"{name}, and {word} where texts differ too": (but_running_on(mistake, word), hint)
            for name, (mistake, hint) in mistakes.items()
            for word in ("token", "text")
            if not name.startswith("rounding") and name not in ("texts first", "two numbers compared")
        },
        praise=f"all {len(layers)} layers are classified correctly.",
    )


@exercise()
def named(seed: int) -> Exercise:
    """named(m, trained, length) -> the token nearest to where a model looks if it steps back by one trained step."""
    chance = random.Random(seed)
    cases = {
        "the trained length": (7, 20, 20),
        "a text half as long": (6, 20, 10),
        "a text twice as long": (25, 20, 40),
        "a much longer text": (60, 5, 100),
        "the first token": (0, 20, 12),
        "a model that looks before the first token": (3, 8, 50),
        "the last token": (29, 11, 30),
        "two tokens": (1, 4, 2),
        "sampled lengths": (chance.randrange(30, 60), 12, 60 + 11 * chance.randrange(3, 6)),
    }

    def by(step: Callable[[int, int], float], nearest: Callable[[float], int] = round) -> Callable[[int, int, int], int]:
        """The position that is step(trained, length) tokens further back, but never before the first token."""
        return lambda m, trained, length: max(nearest(m - step(trained, length)), 0)

    def tokens(trained: int, length: int) -> float:
        return (length - 1) / (trained - 1)

    right = by(tokens)
    return Exercise(
        cases=cases,
        right=right,
        mistakes={
            "forwards": (by(lambda trained, length: -tokens(trained, length)), "You look ahead, but the model looks back."),
            "one back, held": (by(lambda trained, length: 1),
                "You return the previous token. But the model always looks 1/(trained - 1) to the left, and in a text of a "
                "different length, the previous token isn't at this distance."),
            "L": (by(lambda trained, length: length / trained),
                "You take neighbouring tokens to be 1 / L apart. But the last is at 1, so how far apart are they?"),
            "rounded down": (lambda m, trained, length: max(int(m - tokens(trained, length)), 0),
                "You take the token at or before the point where the model looks. But the model names the nearest token, which "
                "can also be the one after this point."),
            "whole steps": (by(lambda trained, length: (length - 1) // (trained - 1)),
                "You round the number of tokens that the model looks back, or you always round up. First find the exact point "
                "where the model looks; the nearest token can be on either side of this point."),
            "in front of the text": (lambda m, trained, length: round(m - tokens(trained, length)),
                "You return a position before the first token. If the model looks there, the nearest token is the first one."),
        },
        praise="at the trained length, the model names the previous token. In a shorter text, it can name the token itself, "
               "and in a longer one, a token that is further back.",
    )  # fmt: skip


_WIDTH, _PLACES, _APART = 6, 1000, 0.5  # as the exercise's text has them


@exercise()
def even_code(seed: int) -> Exercise:
    """even_code(positions) -> (L, 6), a code with the chapter's four wishes for positions 0 to 999, at least 0.5 apart."""
    everything = torch.arange(_PLACES)
    shuffled = torch.randperm(_PLACES, generator=torch.Generator().manual_seed(seed))
    cases = {
        "all positions": (everything,),
        "positions in another order": (shuffled[:300],),
        "the first twenty positions": (everything[:20],),
        # Any numbers here are smaller than the largest in the whole table, so a table that is divided by it is found out.
        "a few positions from the middle": (everything[401:404],),
        "a single position": (everything[137:138],),
    }

    def clocks(positions: Tensor, *periods: float) -> Tensor:
        angles = 2 * torch.pi * positions[:, None] / torch.tensor(periods, dtype=torch.float64)
        return torch.cat((angles.cos(), angles.sin()), dim=1)

    def fault(said: Sequence[Tensor]) -> str | None:
        codes = said[0]
        for (name, (positions,)), rows in zip(list(cases.items())[1:], said[1:], strict=True):
            if not torch.allclose(rows, codes[positions], atol=1e-3):
                return (
                    f"Wish 1, one code: for {name}, the rows differ from those of the same positions in "
                    f"even_code(torch.arange({_PLACES})). Use each position itself, not its index in the list or the largest "
                    "position."
                )
        if not codes.isfinite().all():
            return "Some of your numbers are infinite or NaN."
        if codes.abs().max() > 1 + 1e-3:
            return f"Wish 2, bounded: one of your numbers has absolute value {codes.abs().max():.4g}, but at most 1 is allowed."
        steps = codes.diff(dim=0).norm(dim=1)
        apart = torch.cdist(codes, codes, compute_mode="donot_use_mm_for_euclid_dist") + 9 * torch.eye(_PLACES)
        m, n = divmod(int(apart.argmin()), _PLACES)
        if apart.min() < _APART:
            return (
                f"Wish 3, distinct: the rows of positions {m} and {n} are {float(apart.min()):.3f} apart, but at "
                f"least {_APART} is required. "
                + ("These positions are neighbours, so nothing in your code changes fast enough."
                   if n - m == 1 else
                   f"After {n - m} steps, the numbers in your code are nearly the same again. Which of them should still be "
                   "different by then?")
            )  # fmt: skip
        if steps.max() - steps.min() > 1e-3:
            m, n = int(steps.argmin()), int(steps.argmax())
            return (
                f"Wish 4, even: the step from position {m} to {m + 1} has length {float(steps[m]):.4f}, but the step from {n} "
                f"to {n + 1} has length {float(steps[n]):.4f}. What moves by the same amount at every step and stays bounded?"
            )
        return None

    return Exercise(
        cases=cases,
        right=lambda positions: clocks(positions, 10, 100, 1000),
        mistakes={},
        praise="your code fulfils all four wishes: it gives each position one row of bounded numbers, any two rows are at "
               "least 0.5 apart, and all steps have the same length.",
        fault=fault,
    )  # fmt: skip
