"""Exercises of chapter 13: keep the pairs that turn often, and the assignment on what a stretch does to each pair."""

import math
import random
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc_course.checks._verdict import Wrong, answer, answer_on_copies, as_number, as_table, check, compare
from posenc_course.rope_scaling import llama3, ntk_aware, position_interpolation, yarn
from posenc_course.sinusoidal import frequencies

_CASES = ((16, 1e4, 8, 64), (64, 1e4, 4, 2048), (128, 5e5, 8, 8192))  # d_head, base, factor, length


@check(instead_of=[llama3], draws=False)
def by_parts(my_frequencies: Callable[[Tensor, float, int], Any]) -> str:
    """Try my_frequencies(omega, factor, length) -> stretched frequencies, as many as omega, on three heads of several widths.

    Pairs with four turns or more within `length` stay, those with one or fewer are divided by `factor`; between, the mean of
    both, weighted by a share that grows evenly with the turns. Chapter 13.
    """
    yours = [_tried(my_frequencies, *case) for case in _CASES]
    right = [llama3(frequencies(d, base), factor, length) for d, base, factor, length in _CASES]
    if _same(yours, right):
        return f"Right: all {sum(map(len, right))} pairs of three models, the last of them Llama 3.1's."
    for hint, wrong_way in _MISTAKES.items():
        known = [wrong_way(frequencies(d, base), float(factor), length) for d, base, factor, length in _CASES]
        if _same(yours, known):
            return hint
    return _first_wrong(yours, right)


def _tried(my_frequencies: Callable[[Tensor, float, int], Any], d_head: int, base: float, factor: int, length: int) -> Tensor:
    omega = frequencies(d_head, base)
    call = f"my_frequencies(omega, {factor}, {length}) of {len(omega)} pairs"
    writing = "changed the omega that it was given, and the model with it: make a new tensor."
    result = answer_on_copies(my_frequencies, omega, factor, length, call=call, writing=writing)
    yours = as_table(result, (len(omega),), call=call)
    if not yours.isfinite().all():
        raise Wrong(f"{call} holds NaN or infinity.")
    return yours


def _same(yours: list[Tensor], known: list[Tensor]) -> bool:
    return all(torch.allclose(a, b, rtol=1e-4, atol=0) for a, b in zip(yours, known, strict=True))


def _turns(omega: Tensor, length: float) -> Tensor:
    return length * omega / (2 * math.pi)


def _blend(keep: Tensor, omega: Tensor, factor: float) -> Tensor:
    return keep * omega + (1 - keep) * omega / factor


def _keep(turns: Tensor) -> Tensor:
    return ((turns - 1) / 3).clamp(0, 1)


def _by_wavelength(omega: Tensor, length: float) -> Tensor:
    """A share that falls evenly with the wavelength, from length/4 to length."""
    return ((length - 2 * math.pi / omega) / (0.75 * length)).clamp(0, 1)


_MISTAKES: dict[str, Callable[[Tensor, float, int], Tensor]] = {
    "Nothing has changed: the slow pairs have to be slowed down.": lambda w, s, n: w,
    "Every pair is divided alike, which is position interpolation: which pairs should be left alone?": lambda w, s, n: w / s,
    "This divides the slowest pair by the factor and the others by powers of it, which is NTK-aware: here each pair's turns "
    "within the length decide.": lambda w, s, n: ntk_aware(w, s),
    "This is another base, multiplied by the factor, under which no pair is divided by all of it: here each pair's turns "
    "within the length decide.": lambda w, s, n: w * s ** -(torch.arange(len(w), dtype=torch.float64) / len(w)),
    "The wrong way round: you divide the pairs that turn often and keep those that hardly turn.":
        lambda w, s, n: _blend(1 - _keep(_turns(w, n)), w, s),
    "These are wavelengths, tokens per turn: frequencies were asked for, radians per token.":
        lambda w, s, n: 2 * math.pi / llama3(w, s, n),
    "You return by how much each pair is divided: divide, and return the frequencies.": lambda w, s, n: w / llama3(w, s, n),
    "You return the share that each pair keeps: use it as the weight of its own frequency.":
        lambda w, s, n: _keep(_turns(w, n)),
    "You multiply by the factor: slow pairs have to become slower.":
        lambda w, s, n: _blend(_keep(_turns(w, n)), w, 1 / s),
    "Divided twice: in the frequencies and in the positions, or by the factor's square.":
        lambda w, s, n: _blend(_keep(_turns(w, n)), w, s**2),
    "Your turns are radians: one turn is 2π of them.": lambda w, s, n: _blend(_keep(n * w), w, s),
    "You count turns within the new length: what decides is how often a pair turned in training.":
        lambda w, s, n: _blend(_keep(_turns(w, n * s)), w, s),
    "Upside down: wavelength over length falls when a pair turns more often.":
        lambda w, s, n: _blend(_keep(1 / _turns(w, n)), w, s),
    "The share that a pair keeps leaves 0 to 1: fast pairs get faster, slow ones slower than the factor asks. Where does "
    "it have to stop?": lambda w, s, n: _blend((_turns(w, n) - 1) / 3, w, s),
    "Without a ramp: pairs below one turn are right, but those between one turn and four should be divided in part.":
        lambda w, s, n: torch.where(_turns(w, n) <= 1, w / s, w),
    "Without a ramp: pairs above four turns are right, but those between one turn and four should be divided in part.":
        lambda w, s, n: torch.where(_turns(w, n) < 4, w / s, w),
    "Your ramp is a mean of the two divisors, 1 and the factor: take the mean of the two frequencies.":
        lambda w, s, n: w / (_keep(_turns(w, n)) + (1 - _keep(_turns(w, n))) * s),
    "Your ramp runs evenly with the wavelength: it should with the turns, which are one over it.":
        lambda w, s, n: _blend(_by_wavelength(w, n), w, s),
    "Your ramp runs evenly from pair to pair, as in YaRN's code: here it should with the turns.":
        lambda w, s, n: yarn(w, s, n, fast=4, truncate=False),
    "Your ramp begins at 0 turns: it should begin at one.": lambda w, s, n: _blend((_turns(w, n) / 4).clamp(0, 1), w, s),
}  # fmt: skip


def _first_wrong(yours: list[Tensor], right: list[Tensor]) -> str:
    for (d_head, base, factor, length), said, expected in zip(_CASES, yours, right, strict=True):
        wrong = ~torch.isclose(said, expected, rtol=1e-4, atol=0)
        if not wrong.any():
            continue
        pair = int(wrong.nonzero()[0])
        omega = frequencies(d_head, base)[pair].item()
        turns = _turns(torch.tensor(omega), length).item()
        wanted = "stay" if turns >= 4 else f"be divided by {factor}" if turns <= 1 else "be divided in part"
        became = f"divided by {omega / said[pair].item():.4g}" if said[pair] != 0 else "stopped"
        return (
            f"my_frequencies(omega, {factor}, {length}) of {len(said)} pairs: pair {pair} makes {turns:.3g} turns within "
            f"{length:,} tokens and is {became}; it should {wanted}."
        )
    raise AssertionError("an answer that is wrong nowhere is right")


# ── the assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────

_CIRCLE = 2 * math.pi


@check()
def unseen_angles(my_angles: Callable[[Tensor, int, int], Any], *, seed: int) -> str:
    """Try my_angles(omega, trained, length) -> (n,) radians of its circle that each pair meets in `length` tokens for the first
    time after `trained` tokens, on four lengths. Chapter 13.
    """
    rng = random.Random(seed)

    def drawn(width: int) -> Tensor:
        return frequencies(width, rng.choice((1_000.0, 10_000.0, 500_000.0)))

    # A text of one token has the distance 0 and no other, and tells who counts distances from who counts tokens.
    trained = rng.randint(40, 90)
    cases = [
        (drawn(16), 1, rng.randint(9, 20)),
        (drawn(16), trained, trained * rng.randint(2, 8)),
        (drawn(12), trained, trained),
        (drawn(64), 512, 512 * rng.randint(2, 16)),
    ]

    def arc(omega: Tensor, tokens: float) -> Tensor:
        return ((tokens - 1) * omega).clamp(max=_CIRCLE)

    def right(omega: Tensor, trained: int, length: int) -> Tensor:
        return arc(omega, length) - arc(omega, trained)

    mistakes = [
        (lambda w, t, n: arc(w, n), "This is the whole arc of the longer text: take off what was seen in training."),
        (lambda w, t, n: arc(w, n + 1) - arc(w, t + 1), "How far apart can two of T tokens be? Not T."),
        (lambda w, t, n: (n - t) * w,
         "Your arcs know no end: a pair that has come round has seen its whole circle, and nothing on it is new."),
        (lambda w, t, n: ((n - t) * w).clamp(max=_CIRCLE),
         "You limit the difference to one circle: a pair can also come round in training, and then nothing is new to it."),
        (lambda w, t, n: arc(w, n) - (t - 1) * w, "A negative arc: in training, too, a pair sees one circle at most."),
        (lambda w, t, n: ((n - 1) * w) % _CIRCLE - ((t - 1) * w) % _CIRCLE,
         "You take angles modulo the circle: they say where a pair stands last, not which arc it has passed."),
        (lambda w, t, n: right(w, t, n) / _CIRCLE, "These are turns, parts of the circle: radians were asked for."),
        (lambda w, t, n: right(w, t, n).rad2deg(), "These are degrees: radians were asked for."),
        (lambda w, t, n: -right(w, t, n), "The sign is the wrong way round: the longer text sees more."),
        (lambda w, t, n: ((n - 1) * w).clamp(max=math.pi) - ((t - 1) * w).clamp(max=math.pi),
         "Your circle ends at π: half of it is missing."),
        (lambda w, t, n: ((n - 1) * w).clamp(max=1) - ((t - 1) * w).clamp(max=1),
         "Your circle ends at 1: angles here are radians, and a turn has 2π of them."),
        (lambda w, t, n: right(_CIRCLE / w, t, n), "You read omega as wavelengths: these are radians per token already."),
    ]  # fmt: skip
    praise = "the pairs that came round in training have no unseen angle, the others have theirs."
    return compare(my_angles, cases, right, mistakes, name="unseen_angles", praise=praise)


@check()
def base_for(my_base: Callable[[int, float, int, float], Any], *, seed: int) -> str:
    """Try my_base(d_head, base, pair, factor) -> the base under which this pair turns `factor` times slower, on four heads.

    Chapter 13.
    """
    rng = random.Random(seed)
    # Not the first pairs of a wide head: theirs is a base beyond what 32 bits hold.
    cases: list[tuple[int, float, int, float]] = [(32, 1e4, 6, 8.0), (128, 5e5, 63, 8.0)]
    cases += [
        (d, rng.choice((1e3, 1e4, 1e6)), rng.randrange(d // 8, d // 2 - 1), rng.choice((1.5, 2.0, 4.0))) for d in (32, 64)
    ]
    said, calls = [], []
    for case in cases:
        calls.append("base_for({}, {:g}, {}, {:g})".format(*case))
        said.append(as_number(answer(my_base, *case, call=calls[-1]), call=calls[-1]))

    def divided(d_head: int, base: float, pair: int, under: float) -> float:
        """By how much a pair is slowed down; no frequency of another base comes out at 0 or below."""
        return (frequencies(d_head, base)[pair] / frequencies(d_head, under)[pair]).item()

    by = [
        divided(d, base, pair, under) if under > 1 else math.nan for (d, base, pair, _), under in zip(cases, said, strict=True)
    ]
    if all(math.isclose(got, case[3], rel_tol=1e-4) for got, case in zip(by, cases, strict=True)):
        return f"Right: in all {len(cases)} heads the pair is divided by the factor, whichever pair it is."
    mistakes: list[tuple[Callable[[int, float, int, float], float], str]] = [
        (lambda d, b, i, s: b * s ** (d / (d - 2)),
         "This base is NTK-aware scaling's: it divides the slowest pair by the factor, and another pair was asked for."),
        (lambda d, b, i, s: b * s,
         "The base times the factor is not enough: which power of the base is this pair's frequency?"),
        (lambda d, b, i, s: b * s ** (2 * i / d),
         "Your exponent is upside down: the smaller a pair's own exponent, the more the base has to grow."),
        (lambda d, b, i, s: b * s ** (d / i),
         "Your exponent is too large: which power of the base is pair i's frequency? A head has d_head channels."),
        (lambda d, b, i, s: b * s ** (d / (4 * i)),
         "Your exponent is too small: a head has d_head channels and half as many pairs. Is something halved twice?"),
        (lambda d, b, i, s: b * s ** (d / (2 * i + 2)), "You count pairs from 1: the fastest is pair 0."),
        (lambda d, b, i, s: b * s ** (-d / (2 * i)), "The wrong way round: under this base the pair turns faster."),
        (lambda d, b, i, s: s ** (d / (2 * i)), "This is by how much the base is multiplied: return the base."),
        (lambda d, b, i, s: b ** (-2 * i / d) / s, "This is the pair's new frequency: which base has it?"),
        (lambda d, b, i, s: b + s ** (d / (2 * i)), "You add to the base what it should be multiplied by."),
    ]  # fmt: skip
    for wrong, hint in mistakes:
        if all(math.isclose(wrong(*case), number, rel_tol=1e-4) for case, number in zip(cases, said, strict=True)):
            raise Wrong(hint)
    if all(math.isclose(got, 1, rel_tol=1e-4) for got in by):
        raise Wrong("This is the base that was there before: under it no pair is divided by anything.")
    where = next(k for k, case in enumerate(cases) if not math.isclose(by[k], case[3], rel_tol=1e-4))
    if math.isnan(by[where]):
        raise Wrong(f"{calls[where]} gives {said[where]:.6g}: a base is more than 1, and here more than the one before.")
    raise Wrong(f"{calls[where]} gives {said[where]:.6g}: it divides pair {cases[where][2]} by {by[where]:.4g}.")


_WORDS = ("none", "PI", "NTK-aware", "by parts", "other")


@check()
def which(my_which: Callable[[Tensor, Tensor], Any], *, seed: int) -> str:
    """Try my_which(omega, stretched) -> "none", "PI", "NTK-aware", "by parts" or "other", on 18 pairs of tables. Chapter 13."""
    rng = random.Random(seed)
    width, length = rng.choice((16, 32, 64)), rng.choice((512, 1024))
    w, s = frequencies(width, 10_000.0), rng.choice((2.0, 3.0, 6.0, 8.0))
    ntk, parts, pair = ntk_aware(w, s), llama3(w, s, length), torch.arange(len(w))
    odd_one = "every pair divided alike but one in the middle"
    tables = {
        "everything left as it was": (w.clone(), "none"),
        f"every pair divided by {s:g}": (position_interpolation(w, s), "PI"),
        "every pair divided by 1.5": (position_interpolation(w, 1.5), "PI"),
        f"NTK-aware scaling by {s:g}": (ntk, "NTK-aware"),
        "a base of 500,000 instead of 10,000": (frequencies(width, 500_000.0), "NTK-aware"),
        "Llama 3's form": (parts, "by parts"),
        "YaRN's frequencies": (yarn(w, s, length), "by parts"),
        "the slower half divided, the faster kept": (torch.where(pair >= len(w) // 2, w / s, w), "by parts"),
        "NTK-aware scaling, then all pairs divided": (ntk / s, "other"),
        "Llama 3's form, then all pairs divided": (parts / s, "other"),
        "NTK-aware scaling, then Llama 3's form": (llama3(ntk, s, length), "other"),
        "every pair multiplied": (w * s, "other"),
        "one pair in the middle divided": (torch.where(pair == len(w) // 2, w / s, w), "other"),
        odd_one: (torch.where(pair == len(w) // 2, w / 3, w / 2), "other"),
        "a smaller base": (w * 2 ** (pair / (len(w) - 1)), "other"),
        "every pair divided by 1.005": (position_interpolation(w, 1.005), "PI"),
    }
    single = {
        f"every pair divided by {s:g}, in single precision": (position_interpolation(w, s).float().double(), "PI"),
        "Llama 3's form, in single precision": (parts.float().double(), "by parts"),
    }
    tables |= single
    said = {}
    for name, (stretched, _) in tables.items():
        said[name] = answer_on_copies(my_which, w, stretched, call=f"which(omega, {name})")
        if not isinstance(said[name], str) or said[name] not in _WORDS:
            returned = repr(said[name]) if isinstance(said[name], str) else f"a {type(said[name]).__name__}"
            raise Wrong(f"which(omega, {name}) returned {returned}, it should be one of {', '.join(map(repr, _WORDS))}.")
    missed = {name: word for name, word in said.items() if word != tables[name][1]}
    if not missed:
        return f"Right: all {len(tables)} tables, also the three that were stretched twice."
    if len(words := set(said.values())) == 1:
        raise Wrong(f'You call all {len(tables)} tables "{words.pop()}": what are the divisors, omega / stretched?')
    for mistake, hint in _MISREADINGS:
        if all(mistake(w / stretched) == said[name] for name, (stretched, _) in tables.items() if name != odd_one):
            raise Wrong(hint)
    if missed.keys() == {odd_one}:
        raise Wrong("You look at some pairs only: one in the middle may be divided by another number than the rest.")
    if missed == {"every pair divided by 1.005": "none"}:
        raise Wrong("Two digits are too few: a divisor of 1.005 is not 1. Compare relatively, to 1e-5.")
    if missed.keys() <= single.keys():
        raise Wrong(
            f"Numbers equal to five digits are equal: {', and '.join(missed)}, differs by 1e-7 only from "
            "what it is on paper. Compare relatively, to 1e-5."
        )
    if set(missed.values()) == {"other"}:
        raise Wrong(
            f'Too strict: you call {", and ".join(missed)}, "other". Divisors that are equal on paper differ in the last digit '
            "here, so compare with torch.allclose."
        )
    name, word = next(iter(missed.items()))
    raise Wrong(f'which(omega, {name}) gives "{word}", and should give "{tables[name][1]}".')


def _method(
    by: Tensor,
    *,
    first: tuple[str, ...] = ("NTK-aware", "by parts"),
    ends: bool = False,
    last: bool = True,
    sums: bool = False,
    grows: bool = True,
) -> str:
    """Which stretch has these divisors: right by default, and wrong where an option leaves a condition out or changes it."""

    def same(a: Tensor) -> bool:
        return torch.allclose(a, a[:1].expand_as(a), rtol=1e-6)

    kept = {word: word not in first or math.isclose(by[0], 1, rel_tol=1e-6) for word in _WORDS}
    ratios = by.diff() if sums else by[1:] / by[:-1]
    if same(by):
        return "none" if math.isclose(by[0], 1, rel_tol=1e-6) else "PI" if by[0] > 1 else "other"
    if kept["NTK-aware"] and (by[-1] > by[0] or not grows) and (not same(by[-2:]) if ends else same(ratios)):
        return "NTK-aware"
    if kept["by parts"] and by[-1] > 1 + 1e-6 and (same(by[-2:]) or not last):
        return "by parts"
    return "other"


_MISREADINGS: list[tuple[Callable[[Tensor], str], str]] = [
    (lambda by: _method(1 / by),
     "Your divisors are upside down: stretched / omega says by what a pair is multiplied."),
    (lambda by: "NTK-aware" if _method(by) == "NTK-aware" else _method(1 / by),
     "Your divisors are upside down: stretched / omega says by what a pair is multiplied."),
    (lambda by: _method(by, first=()),
     "Two tables were stretched twice, and you call them by one of the two: in neither is the fastest pair kept."),
    (lambda by: _method(by, first=("by parts",)),
     "Who divides by equal ratios need not be NTK-aware: the fastest pair must be kept, or it was stretched twice."),
    (lambda by: _method(by, first=("NTK-aware",)),
     "By parts keeps the fastest pair: where that one is divided too, somebody stretched twice."),
    (lambda by: _method(by, last=False),
     "By parts wants the last two pairs divided alike: one table here divides each pair by another number."),
    (lambda by: _method(by, ends=True),
     "From its two ends alone NTK-aware scaling cannot be told: look at the ratios between all neighbours."),
    (lambda by: _method(by, ends=True, grows=False),
     "From its two ends alone NTK-aware scaling cannot be told: look at the ratios between all neighbours."),
    (lambda by: _method(by, sums=True),
     "NTK-aware divisors grow by equal ratios, and you look for equal differences."),
    (lambda by: _method(by, grows=False),
     "Equal ratios alone are not NTK-aware: they must be more than 1, and under a smaller base every pair turns faster."),
    (lambda by: "PI" if _method(by) == "other" and math.isclose(by[0], by[-1], rel_tol=1e-6) and by[0] < 1 else _method(by),
     "To multiply every pair is not PI: it makes them faster."),
    (lambda by: "PI" if _method(by) == "none" else _method(by),
     "Divided by 1 is not divided: you call the table that was left alone PI."),
    (lambda by: "NTK-aware" if _method(by) == "none" else _method(by),
     "Equal ratios of 1 stretch nothing: you call the table that was left alone NTK-aware."),
]  # fmt: skip


@check()
def reach(my_reach: Callable[[Tensor, Tensor, int], Any], *, seed: int) -> str:
    """Try my_reach(omega, stretched, trained) -> the largest number of tokens without an unseen angle, on seven stretches.

    Chapter 13.
    """
    rng = random.Random(seed)
    cases: list[tuple[Tensor, Tensor, int]] = []
    methods: list[Callable[[Tensor, float, int], Tensor]] = [
        lambda w, s, t: w / s,
        lambda w, s, t: ntk_aware(w, s),
        lambda w, s, t: frequencies(2 * len(w), 10_000.0 * s),
        lambda w, s, t: llama3(w, s, t),
        lambda w, s, t: yarn(w, s, t),
        lambda w, s, t: (
            w / (s + torch.arange(len(w), 0, -1).remainder(3))
        ),  # neither the first nor the last pair runs out first
    ]
    for method in methods:
        while True:
            trained, width = rng.randint(60, 200), rng.choice((16, 32, 48))
            omega, factor = frequencies(width, 10_000.0), rng.uniform(2.2, 9.0)
            stretched = method(omega, factor, trained)
            # Where the last distance lies close to a whole number, or a pair has nearly come round, rounding would decide.
            new = (trained - 1) * omega < _CIRCLE
            limits = ((trained - 1) * omega / stretched)[new]
            ends = limits[[0, -1]]
            inside = len(cases) < 5 or bool((ends > limits.min() + 1).all() and (ends < limits.max() - 1).all())
            if inside and 0.05 < limits.min() % 1 < 0.95 and ((trained - 1) * omega / _CIRCLE - 1).abs().min() > 1e-3:
                break
        cases.append((omega, stretched, trained))
    # Pair 4 needs 100.5 tokens for its circle: a text of 101 is longer than that, its largest distance is not.
    omega = frequencies(16, (100.5 / _CIRCLE) ** 2)
    cases.append((omega, omega / torch.tensor([1.505] * 5 + [4.0] * 3), 101))

    def right(omega: Tensor, stretched: Tensor, trained: int) -> int:
        """The lengths one after the other, and every pair asked."""
        seen = (trained - 1) * omega
        swept = torch.arange(16 * trained)[:, None] * stretched  # row L - 1: the largest angle in L tokens
        known = ((swept <= seen) | (seen >= _CIRCLE)).all(dim=1)
        return int(known.long().cumprod(dim=0).sum())

    def limit(omega: Tensor, stretched: Tensor, trained: float, circle: float = _CIRCLE, by: Tensor | None = None) -> Tensor:
        """The largest distance of each pair that has not come round."""
        asked = trained * (omega if by is None else by) < circle
        return (trained * omega / stretched)[asked]

    def tokens(distance: Tensor) -> int:
        return math.floor(distance.item()) + 1

    def stretched_length(omega: Tensor, stretched: Tensor, trained: int) -> int:
        """The smallest divisor times the tokens, of the right pairs."""
        return math.floor(trained * (omega / stretched)[(trained - 1) * omega < _CIRCLE].min().item())

    mistakes: list[tuple[Callable[[Tensor, Tensor, int], int], str]] = [
        (lambda w, v, t: tokens((t - 1) * (w / v).min()),
         "You ask every pair, also those that have come round in training: they know their whole circle, and never run out."),
        (lambda w, v, t: tokens((t - 1) * (w / v)[-1]), "You ask the slowest pair alone: it need not be the first to run out."),
        (lambda w, v, t: tokens((t - 1) * (w / v)[0]), "You ask the fastest pair: it came round long ago."),
        (lambda w, v, t: tokens(limit(w, v, t - 1).max()),
         "You wait for the last pair to run out: the first one to do so counts."),
        (lambda w, v, t: tokens(limit(w, v, t - 1)[0]),
         "You ask the fastest of the pairs that have not come round: it need not be the first to run out."),
        (lambda w, v, t: tokens(limit(w, v, t - 1).mean()),
         "A mean over pairs: one that has run out is not helped by the others."),
        (lambda w, v, t: tokens(limit(w, v, t - 1).min()) - 1,
         "This is the largest distance that is known, and tokens were asked for: how many stand along it, ends included?"),
        (lambda w, v, t: tokens(limit(w, v, t - 1).min()) + 1,
         "One token too many: at this length a pair meets an angle that it has not seen. Round down."),
        (lambda w, v, t: tokens(limit(w, v, t).min()) - 1, "The first and the last of T tokens are not T apart."),
        (lambda w, v, t: tokens(limit(w, v, t).min()), "The first and the last of T tokens are not T apart."),
        (lambda w, v, t: tokens(limit(w, v, t).min()) + 1, "The first and the last of T tokens are not T apart."),
        (lambda w, v, t: stretched_length(w, v, t), "The first and the last of T tokens are not T apart."),
        (lambda w, v, t: stretched_length(w, v, t) + 1, "The first and the last of T tokens are not T apart."),
        (lambda w, v, t: tokens((t - 1) * (w / v)[t * w < _CIRCLE].min()),
         "Whether a pair has come round shows at the largest distance of training, and that is not `trained`."),
        (lambda w, v, t: tokens((t - 1) * (v / w)[(t - 1) * w < _CIRCLE].min()),
         "Upside down: a pair that turns slower reaches further."),
        (lambda w, v, t: tokens((t - 1) * (v / w)[(t - 1) * w < _CIRCLE].max()),
         "Upside down: a pair that turns slower reaches further."),
        (lambda w, v, t: tokens(limit(v, w, t - 1).min()), "Upside down: a pair that turns slower reaches further."),
        (lambda w, v, t: tokens(limit(w, v, t - 1, circle=_CIRCLE / 2).min()),
         "Half a turn is not a circle: a pair has seen all of it after 2π."),
        (lambda w, v, t: tokens(limit(w, v, t - 1, by=v).min()),
         "Whether a pair has come round is a matter of its training, and so of the old frequencies, not of the new."),
        (lambda w, v, t: t, "This is the trained length: a slower pair reaches further than that."),
    ]  # fmt: skip
    praise = "the pair that runs out first sets the length, whichever it is."
    return compare(my_reach, cases, right, mistakes, name="reach", praise=praise)
