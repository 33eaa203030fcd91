"""What an experiment is: its schemes, sizes and seeds, and the runs that it consists of (chapter 12)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from posenc_course._validation import require_integer, require_number, require_vectors
from posenc_course.alibi import AlibiPositions
from posenc_course.experiment import corpus, tasks
from posenc_course.experiment._require import choose, require_seeds, require_type
from posenc_course.learned import LearnedPositions
from posenc_course.naive import LinearPositions, NormalizedPositions
from posenc_course.nope import NoPositions
from posenc_course.relative import ShawPositions, T5Positions
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import SinusoidalPositions, frequencies
from posenc_course.transformer import Decoder

SCHEMES = ("none", "normalized", "linear", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi")
MULTIPLES = (1, 2, 4, 8)  # evaluation lengths, in training lengths

RATES = ("0.001", "0.003", "0.01", "0.03", "0.1")  # learning rates, of learned against sinusoidal
# Token vectors that sinusoids are added to: the size they start with and what multiplies them, as powers of d_model. The
# paper's factor √d_model is for vectors that start small, and `Decoder` starts them as N(0, 1), "unit".
SCALES = {"unscaled": (-0.5, 0.0), "paper": (-0.5, 0.5), "unit": (0.0, 0.0), "overscaled": (0.0, 0.5)}
PARTS = ("text", *tasks.TASKS, "rate", "scale")


@dataclass(frozen=True)
class Run:
    """One model, trained once: part of the experiment, scheme, seed, and what a side experiment varies. Chapter 12."""

    part: str
    scheme: str
    seed: int
    setting: str = ""

    def __post_init__(self) -> None:
        choose("part", (self.part,), PARTS)
        choose("scheme", (self.scheme,), SCHEMES)
        require_integer("seed", self.seed, minimum=0, hint="it numbers the run, e.g. 0")
        choose("setting", (self.setting,), {"rate": RATES, "scale": tuple(SCALES)}.get(self.part, ("",)))

    @property
    def name(self) -> str:
        """The run's own name, that of its file too."""
        return "-".join(filter(None, (self.part, self.scheme, self.setting, str(self.seed))))


@dataclass(frozen=True)
class Config:
    """The whole description of an experiment. Two runs with equal configurations, seeds and machines give equal numbers.

    Args:
        name: of the preset; it means nothing to the runs.
        length: T, the training length in bytes; evaluation goes to 8T. A multiple of 8.
        d_model, num_heads, num_layers: of the decoder that learns the text.
        steps, batch_size, learning_rate, warm_up: of its training, with half a cosine after the warm-up.
        evaluation_bytes: validation bytes that are the targets of non-overlapping windows, at every length the same.
        spans: stretches of 8T validation bytes that are the targets of sliding windows, at every length the same.
        parts: "text", the tasks' names, "rate" (two schemes at several learning rates), "scale" (the factor √d_model).
        seeds: one run each of every part, scheme and setting.
        rope_seeds: RoPE's in the part "text", by default the same.
        task_length, task_steps: of the tasks, of which the hard ones take twice the steps; they have a decoder of width 64.
        side_steps: of "rate" and "scale", at the same width.

    Raises ValueError for values that are none. Chapter 12.
    """

    name: str
    length: int = 64
    d_model: int = 64
    num_heads: int = 4
    num_layers: int = 2
    steps: int = 400
    batch_size: int = 32
    learning_rate: float = 3e-3
    warm_up: int = 40
    evaluation_bytes: int = 16_384
    spans: int = 2
    parts: tuple[str, ...] = ("text",)
    seeds: tuple[int, ...] = (0,)
    rope_seeds: tuple[int, ...] | None = None
    task_length: int = 32
    task_steps: int = 300
    side_steps: int = 250

    def __post_init__(self) -> None:
        require_type("name", self.name, str, "any word will do")
        for name in ("length", "task_length"):
            value = require_integer(name, getattr(self, name), minimum=16, hint="it is the training length, e.g. 64")
            if value % 8:
                raise ValueError(f"{name} must be a multiple of 8, got {value}: windows slide by fractions of it, so take 64")
        for name in ("d_model", "num_heads", "num_layers", "steps", "batch_size", "spans", "task_steps", "side_steps"):
            require_integer(name, getattr(self, name), minimum=1, hint="see the presets for usual values")
        if self.d_model % (2 * self.num_heads):
            raise ValueError(
                f"d_model={self.d_model} is no multiple of 2·num_heads={2 * self.num_heads}: RoPE turns pairs of channels, so "
                "change one"
            )
        require_number("learning_rate", self.learning_rate, above=0, hint="3e-3 suits small models")
        require_integer("warm_up", self.warm_up, minimum=0, hint="a tenth of the steps is usual")
        window = MULTIPLES[-1] * self.length
        bytes_ = require_integer(
            "evaluation_bytes", self.evaluation_bytes, minimum=window, hint=f"one window of {window} at least"
        )
        if bytes_ % window:
            raise ValueError(f"evaluation_bytes must be a multiple of {window} = 8·length, got {bytes_}: windows must be whole")
        choose("part", self.parts, PARTS)
        require_seeds("seeds", self.seeds)
        if self.rope_seeds is not None:
            require_seeds("rope_seeds", self.rope_seeds)

    def runs(
        self, schemes: Sequence[str] | None = None, seeds: Sequence[int] | None = None, parts: Sequence[str] | None = None
    ) -> list[Run]:
        """The runs of this experiment, all or those of these schemes, seeds and parts; ValueError for others. Chapter 12."""
        schemes = choose("scheme", SCHEMES if schemes is None else schemes, SCHEMES)
        parts = choose("part", self.parts if parts is None else parts, PARTS)
        if seeds is not None:
            require_seeds("seeds", seeds)
        runs = []
        for part in parts:
            runs += [Run(part, *rest) for rest in self._of_part(part, seeds) if rest[0] in schemes]
        return runs

    def _of_part(self, part: str, seeds: Sequence[int] | None) -> Iterator[tuple[str, int, str]]:
        own = self.seeds if seeds is None else seeds
        if part == "rate":
            yield from ((s, seed, rate) for seed, s, rate in itertools.product(own, ("sinusoidal", "learned"), RATES))
        elif part == "scale":
            yield from (("sinusoidal", seed, scale) for seed, scale in itertools.product(own, SCALES))
        else:
            pairs = [(scheme, seed, "") for seed in own for scheme in SCHEMES]
            if part == "text" and seeds is None and self.rope_seeds is not None:
                pairs = [pair for pair in pairs if pair[0] != "rope"] + [("rope", seed, "") for seed in self.rope_seeds]
            yield from pairs

    def of(self, run: Run) -> Config:
        """This configuration with the sizes that the run's part has. Chapter 12."""
        if require_type("run", run, Run, "take one of config.runs()").part == "text":
            return self
        small = replace(self, d_model=64, num_heads=4, num_layers=2)
        if run.part in tasks.TASKS:
            task = tasks.TASKS[run.part]
            return replace(
                small,
                length=self.task_length,
                evaluation_bytes=8 * self.task_length,
                num_layers=task.num_layers,
                steps=self.task_steps * task.effort,
            )
        rate = float(run.setting) if run.part == "rate" else self.learning_rate
        few = 32 * MULTIPLES[-1] * self.length  # validation bytes
        return replace(small, steps=self.side_steps, learning_rate=rate, evaluation_bytes=few, spans=1)

    def as_json(self) -> dict[str, Any]:
        """What json.dumps takes, and what a file is compared by. Chapter 12."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def preset(which: str, **changes: Any) -> Config:
    """The preset of this name, with these fields changed. Chapter 12."""
    (which,) = choose("preset", (which,), tuple(PRESETS))
    choose("field", tuple(changes) or ("name",), tuple(PRESETS[which].as_json()))
    return replace(PRESETS[which], **changes)


def build_scheme(name: str, config: Config) -> PositionScheme:
    """The scheme of this name for a decoder of the configuration's sizes. Chapter 12.

    What a scheme does not tell apart must occur in training, or it has never been tried when a longer text comes: Shaw's last
    vector and T5's last bucket therefore begin at T/2, and stand for half of the distances that training shows.
    """
    (name,) = choose("scheme", (name,), SCHEMES)
    require_type("config", config, Config, "take preset('quick')")
    d_model, num_heads, half = config.d_model, config.num_heads, config.length // 2
    d_head = d_model // num_heads
    schemes = {
        "none": lambda: NoPositions(),
        "normalized": lambda: NormalizedPositions(d_model),
        "linear": lambda: LinearPositions(d_model),
        "sinusoidal": lambda: SinusoidalPositions(d_model),
        "learned": lambda: LearnedPositions(MULTIPLES[-1] * config.length, d_model),
        "shaw": lambda: ShawPositions(d_head, max_offset=half),
        "t5": lambda: T5Positions(num_heads, min(32, half), max_distance=half, causal=True),
        "rope": lambda: RotaryPositions(frequencies(d_head)),
        "alibi": lambda: AlibiPositions(num_heads),
    }
    return schemes[name]()


def build_model(config: Config, run: Run) -> Decoder:
    """The run's decoder, untrained: a seed gives the same weights again, wherever torch's own generator stands. Chapter 12."""
    sizes = require_type("config", config, Config, "take preset('quick')").of(run)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        scheme = build_scheme(run.scheme, sizes)
        vocabulary = tasks.VOCAB_SIZE if run.part in tasks.TASKS else corpus.VOCAB_SIZE
        if run.part == "scale":
            start, factor = (sizes.d_model**power for power in SCALES[run.setting])
            scheme = ScaledTokens(scheme, factor)
        model = Decoder(vocabulary, sizes.d_model, sizes.num_heads, sizes.num_layers, scheme)
    if run.part == "scale":
        model.embedding.weight.data *= start  # it starts as N(0, 1)
    return model


class ScaledTokens(PositionScheme):
    """Another first door, the token vectors multiplied by `factor` before it: factor·x + position. Chapter 12."""

    def __init__(self, scheme: PositionScheme, factor: float) -> None:
        super().__init__()
        self.scheme = require_type("scheme", scheme, PositionScheme, "PositionScheme() itself adds no positions")
        self.factor = require_number("factor", factor, above=0, hint="the paper's is √d_model")

    def embed(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """x (batch, L, d_model) at positions (L,) or (batch, L) -> the same shape."""
        require_vectors("x", x, "(batch, L, d_model)")
        return self.scheme.embed(self.factor * x, positions)


PRESETS = {
    "quick": Config("quick", rope_seeds=(0, 1, 2)),
    "full": Config(
        "full", d_model=96, num_heads=6, num_layers=3, evaluation_bytes=32_768, spans=4, parts=PARTS, seeds=(0, 1, 2)
    ),
    # Ten times the parameters and the bytes of full; not run yet, for want of a GPU.
    "gpu": Config(
        "gpu", length=256, d_model=256, num_heads=8, num_layers=5, steps=600, batch_size=64, learning_rate=1e-3, warm_up=60,
        evaluation_bytes=262_144, spans=8, seeds=(0, 1, 2),
    ),
}  # fmt: skip
