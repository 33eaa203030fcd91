"""Experiments behind the report on newer claims. Their models are those of the preset newer, unless they say otherwise."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, partial
from unittest.mock import patch

import torch
from torch import Tensor

from posenc_course._roster import Sizes
from posenc_course.contextual import RecurrentPositions, SelectiveRotaryPositions
from posenc_course.experiment import changed, load_model, preset, runs
from posenc_course.experiment.config import SCHEMES, Build, Run
from posenc_course.experiment.tasks import TASKS
from posenc_course.nope import NoPositions
from posenc_course.relative import T5Positions, WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies
from posenc_course.temperature import ScaledPositions
from posenc_course.training import train
from posenc_course.transformer import Decoder, Encoder
from tools.lab.schemes import (
    InklingPositions,
    KeptPositions,
    LearnedRotaryPositions,
    LogarithmicPositions,
    OffsetRotaryPositions,
    RotaryRecurrentPositions,
    ShortPositions,
    StickPositions,
    convolved,
    sunk,
)
from tools.lab.study import NEWER, Record, Study, reached, rounded, trained, unseen, with_schemes

# ── a cache, masks, recurrence: one function for each prediction ─────────────────────────────────────────────────────────

# Bytes: as many as in training, and those that stay visible at the beginning of a text.
WINDOW, FIRST = NEWER.length, 4
# The number of buckets, and max_distance.
BUCKETS = {"usual buckets": (32, 128), "32 buckets up to 16": (32, 16), "16 buckets up to 8": (16, 8)}


def t5_trained(what: str, seed: int) -> list[float]:
    """Chapter 9's training, with the usual buckets of T5's bias, and with buckets that its texts reach."""

    def word_before(length: int, batch: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        text = torch.randint(16, (batch, length), generator=generator)
        target = text.roll(1, dims=1)
        target[:, 0] = -100
        return text, target

    torch.manual_seed(seed)
    model, right = Encoder(16, 32, 4, 1, T5Positions(4, *BUCKETS[what], causal=False)), []
    train(model, partial(word_before, 20, 32), steps=150, learning_rate=6e-3, seed=seed)
    for multiple in NEWER.multiples:
        text, target = word_before(20 * multiple, 128, torch.Generator().manual_seed(1))
        with torch.no_grad():
            hits = (model(text).argmax(dim=-1) == target)[:, 1:]
        right.append(round(hits.double().mean().item(), 4))
    return right


def cache_positions(what: str, seed: int) -> list[float]:
    """The package's models with RoPE see the first bytes beside a window, at two kinds of positions."""
    model = load_model("rope", seed)
    if what.startswith("first"):
        assert isinstance(model.scheme, RotaryPositions)
        kept = KeptPositions(model.scheme, WINDOW - FIRST, FIRST, WINDOW - 1 if what.endswith("kept") else None)
        return reached(with_schemes(model, lambda scheme: kept))
    window = {"all": NEWER.longest, "window": WINDOW, "smaller window": WINDOW - FIRST}[what]
    return reached(changed(model, "window", NEWER.longest, window))


def mask_three(what: str, seed: int) -> list[float]:
    """RoPE in three of four layers, trained on text, and then with a mask in these three, or in the other one."""
    layers = {"no mask": slice(0), "mask in three": slice(3), "mask in the fourth": slice(3, 4)}[what]
    return reached(with_schemes(mixed(seed), lambda scheme: WindowedPositions(scheme, WINDOW), layers))


@cache
def mixed(seed: int) -> Decoder:
    return runs.train_run(NEWER, Run("text", "rope-none", seed))[0]


def recurrent_short(what: str, seed: int) -> list[float]:
    """Recurrent layers learn to find pairs if each token's vector also gets a learned map of the vector before."""

    def build(sizes: Sizes) -> list[PositionScheme]:
        rest = [RecurrentPositions(sizes.d_model, sizes.num_heads) for _ in range(sizes.num_layers - 1)]
        return [ShortPositions(sizes.d_model, sizes.num_heads), *rest]

    return trained(what, seed, build)[1]


def selective_slow(what: str, seed: int) -> list[float]:
    """Selective rotations whose learned steps are multiplied by a rate, in each part of the preset newer."""
    part, rate = what.split()

    def build(sizes: Sizes) -> list[PositionScheme]:
        omega = frequencies(sizes.d_head)
        return [SelectiveRotaryPositions(sizes.d_model, sizes.num_heads, omega, float(rate)) for _ in range(sizes.num_layers)]

    return trained(part, seed, build)[1]


MEASURES: dict[str, tuple[Callable[[str, int], list[float]], list[str]]] = {
    "t5-trained": (t5_trained, [*BUCKETS]),
    "cache-positions": (
        cache_positions,
        ["all", "window", "smaller window", "first, positions in the text", "first, positions in what is kept"],
    ),
    "mask-three": (mask_three, ["no mask", "mask in three", "mask in the fourth"]),
    "recurrent-short": (recurrent_short, ["recall"]),
    "selective-slow": (selective_slow, [f"{part} {rate}" for rate in (0.1, 0.01) for part in NEWER.parts]),
}


def cache_masks_recurrence(run: Record) -> Record:
    return {"found": MEASURES[run["prediction"]][0](run["what"], run["seed"])}


# ── what models of 2025 and 2026 have begun to do: schemes, with or without short convolutions ───────────────────────────


def inkling(sizes: Sizes) -> list[PositionScheme]:
    width = sizes.d_model, sizes.num_heads
    return [InklingPositions(*width, sizes.d_head // 4, sizes.length // 2) for _ in range(sizes.num_layers)]


def logarithmic(scheme: PositionScheme, sizes: Sizes) -> list[PositionScheme]:
    return [LogarithmicPositions(scheme, sizes.num_heads) for _ in range(sizes.num_layers)]


def rotary_recurrent(sizes: Sizes) -> list[PositionScheme]:
    width = sizes.d_model, sizes.num_heads, frequencies(sizes.d_head)
    return [*(RotaryRecurrentPositions(*width) for _ in range(sizes.num_layers - 1)), NoPositions()]


BUILD: dict[str, Build] = {
    "none": SCHEMES["none"],
    "rope": SCHEMES["rope"],
    "shaw": SCHEMES["shaw"],
    "inkling": inkling,
    "learned-rope": lambda sizes: LearnedRotaryPositions(frequencies(sizes.d_head)),
    "half-rope": lambda sizes: RotaryPositions(frequencies(sizes.d_head // 2)),
    "offset-rope": lambda sizes: OffsetRotaryPositions(frequencies(sizes.d_head // 2)),
    "none-log": lambda sizes: ScaledPositions(NoPositions(), lambda m: torch.log1p(m) / math.log(sizes.length)),
    "none-learned-log": lambda sizes: logarithmic(NoPositions(), sizes),
    "rope-learned-log": lambda sizes: logarithmic(RotaryPositions(frequencies(sizes.d_head)), sizes),
    "recurrent-rope-none": rotary_recurrent,
    "stick": lambda sizes: [StickPositions() for _ in range(sizes.num_layers)],
}
CONVOLVED = "convolved-"  # before the name of a scheme: the same, with short convolutions
# The part of the preset newer and the scheme; for "recall-1", the model has one layer instead of two.
MODELS = {
    "key-offset": ["recall-1 rope", "recall-1 half-rope", "recall-1 offset-rope"],
    "key-offset-text": ["text half-rope", "text offset-rope"],
    "convolution-none": ["text convolved-none", "recall convolved-none"],
    "convolution-rope": ["text convolved-rope"],
    "inkling-far": ["text inkling", "text shaw", "recall inkling", "recall shaw"],
    "inkling-convolved": ["text convolved-inkling", "recall convolved-inkling"],
    "learned-frequencies": ["text learned-rope"],
    "learned-log": ["text none-log", "text none-learned-log", "text rope-learned-log"],
    "recurrent-rotated": ["text recurrent-rope-none", "recall recurrent-rope-none"],
    "stick-breaking": ["text stick", "recall stick"],
}
# These are trained with other learning rates, too: each has its turn at the lower and at the higher one.
SWEPT = [("inkling-near", f"text {scheme} {rate}") for rate in (0.001, 0.01) for scheme in ("rope", "shaw", "inkling")]


def models_2025(run: Record) -> Record:
    part, scheme, rate = run["what"].split()
    part, _, layers = part.partition("-")
    name = scheme.removeprefix(CONVOLVED)
    config = preset("newer", learning_rate=float(rate))
    with patch.dict(TASKS, {part: TASKS[part]._replace(num_layers=int(layers))}) if layers else nullcontext():
        model, found = trained(part, run["seed"], BUILD[name], config, convolved if name != scheme else lambda model: model)
    learned = [rounded(weight.flatten()) for name, weight in model.named_parameters() if name.endswith(".learned")]
    return {"found": found} | ({"learned": learned} if learned else {})


# ── a learned sink ───────────────────────────────────────────────────────────────────────────────────────────────────────


def sinks(run: Record) -> Record:
    """Losses of RoPE's model with and without sinks, and what the sink of each layer and head gets of the attention."""
    model, found = trained("text", run["seed"], BUILD["rope"], change=sunk)
    with torch.no_grad():
        model(unseen(NEWER.evaluation_bytes // NEWER.length, NEWER.length))
    kept = [block.attention.scheme.kept.mean(dim=(0, 2)) for block in model.blocks]  # type: ignore[union-attr, operator]
    return {
        "without": trained("text", run["seed"], BUILD["rope"])[1],
        "with": found,
        "to_sinks": [rounded(1 - share) for share in kept],
    }


def runs_of(whats: list[tuple[str, str]]) -> list[Record]:
    return [{"prediction": name, "what": what, "seed": seed} for name, what in whats for seed in NEWER.seeds]


STUDIES = [
    Study(
        "claims_cache_masks_recurrence",
        "T5's buckets, positions in a cache, masks, a word before and slow steps (ten minutes)",
        runs_of([(name, what) for name, (_, whats) in MEASURES.items() for what in whats]),
        cache_masks_recurrence,
        config=NEWER.as_json(),
        predictions=(*MEASURES,),
        again=((6, 0.1), (21, 2e-4)),
    ),
    Study(
        "claims_models_2025",
        "biases of Inkling, short convolutions, key offsets, learned frequencies and logarithms, stick-breaking (40 minutes)",
        runs_of([(name, f"{what} {NEWER.learning_rate}") for name, whats in MODELS.items() for what in whats] + SWEPT),
        models_2025,
        config=NEWER.as_json(),
        predictions=(*MODELS, "inkling-near"),
        again=((6, 0.1),),
    ),
    Study(
        "sinks",
        "models with RoPE, and with a learned sink in each head (five minutes)",
        [{"seed": seed} for seed in NEWER.seeds],
        sinks,
        predictions=("sink",),
    ),
]
