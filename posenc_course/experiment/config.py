"""The description of an experiment: its schemes, sizes and seeds, and the runs that it consists of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from posenc_course._roster import Layers, Sizes
from posenc_course._validation import checked
from posenc_course.experiment._parts import PARTS, RATES, SCALES
from posenc_course.experiment._require import choose, require_seeds, require_type
from posenc_course.experiment._settings import ALL_SCHEMES, NEWER, SCHEMES, Settings
from posenc_course.transformer import Decoder

__all__ = [
    "ALL_SCHEMES",
    "PRESETS",
    "RATES",
    "SCALES",
    "SCHEMES",
    "Build",
    "Config",
    "Run",
    "Sizes",
    "build_model",
    "build_scheme",
    "preset",
]

Build = Callable[[Sizes], Layers]


@dataclass(frozen=True)
class Run:
    """One model, trained once: its part of the experiment, scheme and seed, and the setting that a side experiment varies."""

    part: str
    scheme: str
    seed: int
    setting: str = ""

    def __post_init__(self) -> None:
        choose("part", (self.part,), PARTS)
        choose("scheme", (self.scheme,), ALL_SCHEMES)
        object.__setattr__(self, "seed", *require_seeds("seed", (self.seed,)))
        if settings := PARTS[self.part].settings:
            choose("setting", (self.setting,), settings)
        elif self.setting != "":
            raise ValueError(f"part {self.part!r} has no settings, got {self.setting!r}: leave it out")

    @property
    def name(self) -> str:
        """The name of the run, and of its file without `.npz`."""
        return "-".join(filter(None, (self.part, self.scheme, self.setting, str(self.seed))))


@dataclass(frozen=True)
class Config(Settings):
    """The complete description of an experiment. On the same machine, equal configurations and seeds give equal numbers.

    Args:
        name: name of the preset; it has no effect on the runs.
        length: T, the training length in bytes, a multiple of 8.
        multiples: the evaluation lengths, as multiples of T, ascending from 1.
        d_model, num_heads, num_layers: sizes of the decoder that learns the text.
        steps, batch_size, learning_rate, warm_up: its training; after the warm-up, the learning rate falls along half a cosine.
        evaluation_bytes: number of validation bytes predicted in non-overlapping windows, the same bytes at every length.
        spans: number of stretches of 8T validation bytes predicted in sliding windows, the same ones at every length.
        parts: "text", the tasks' names, "rate" (two schemes at several learning rates), "scale" (the factor √d_model).
        schemes: the schemes of "text" and the tasks, by default those of chapters 2 to 11.
        seeds: each part, scheme and setting has one run per seed.
        rope_seeds: RoPE's seeds in the part "text", by default the same as `seeds`.
        task_length, task_steps: training length and steps for the tasks, whose decoder has width 64; "copy" and "recall" take
            twice the steps.
        side_steps: training steps for "rate" and "scale", whose decoder has width 64, too.

    Raises ValueError for a value that no run can have.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep("parts", choose("part", self.parts, PARTS))

    def runs(
        self, schemes: Sequence[str] | None = None, seeds: Sequence[int] | None = None, parts: Sequence[str] | None = None
    ) -> list[Run]:
        """All runs of this experiment, or those with the given schemes, seeds and parts.

        Raises ValueError for unknown schemes or parts, for one that is given and has no run, and for impossible seeds.
        """
        of_schemes = choose("scheme", self.schemes if schemes is None else schemes, ALL_SCHEMES)
        of_parts = choose("part", self.parts if parts is None else parts, PARTS)
        if seeds is not None:
            seeds = require_seeds("seeds", seeds)
        possible = [Run(part, *rest) for part in of_parts for rest in PARTS[part].runs(self, seeds)]
        runs = [run for run in possible if run.scheme in of_schemes]
        lost = [
            f"{what} {name!r}"
            for what, given, names in (("scheme", schemes, of_schemes), ("part", parts, of_parts))
            for name in names
            if given is not None and not any(name == getattr(run, what) for run in runs)
        ]
        if lost:
            trained = {part: dict.fromkeys(run.scheme for run in possible if run.part == part) for part in of_parts}
            said = [f"part {part!r} trains {', '.join(names) or 'nothing'}" for part, names in trained.items()]
            raise ValueError(f"no run has {lost[0]}: {'; '.join(said)}")
        return runs

    def of(self, run: Run) -> Settings:
        """This configuration, with the sizes for the run's part of the experiment."""
        part = require_type("run", run, Run, "pass one of config.runs()").part
        return PARTS[part].sizes(self, run.setting)


def preset(which: str, **changes: Any) -> Config:
    """The preset with this name, with the given fields changed. Raises ValueError for an unknown preset or field."""
    (which,) = choose("preset", (which,), tuple(PRESETS))
    choose("field", tuple(changes) or ("name",), tuple(PRESETS[which].as_json()))
    return replace(PRESETS[which], **changes)


def build_scheme(name: str, config: Sizes) -> Layers:
    """The scheme with this name, or a list with one per layer, for a decoder with the configuration's sizes.

    Shaw's last vector and T5's last bucket begin at the distance T/2; T5 has 32 buckets, or T/2 if that is fewer. Raises
    ValueError for an unknown scheme.
    """
    (name,) = choose("scheme", (name,), ALL_SCHEMES)
    return ALL_SCHEMES[name](require_type("config", config, Sizes, "pass preset('quick')"))


@checked(build="function?")
def build_model(config: Config, run: Run, build: Build | None = None) -> Decoder:
    """The run's decoder, untrained. A seed always gives the same weights, whatever the state of torch's own generator.

    `build` makes the scheme for the decoder's sizes; by default, it's the run's.
    """
    sizes = require_type("config", config, Config, "pass preset('quick')").of(run)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return PARTS[run.part].build((build or ALL_SCHEMES[run.scheme])(sizes), sizes, run.setting)


PRESETS = {
    "quick": Config("quick", rope_seeds=(0, 1, 2)),
    "full": Config(
        "full", d_model=96, num_heads=6, num_layers=3, evaluation_bytes=32_768, spans=4, seeds=(0, 1, 2),
        parts=("text", "nearest", "copy", "recall", "order", "rate", "scale"),
    ),
    "newer": Config(
        "newer", num_layers=4, parts=("text", "recall", "parity", "swaps"), schemes=("none", "t5", "rope", "alibi", *NEWER),
        seeds=(0, 1, 2),
    ),
    # Eleven million parameters and sixteen times the length. Reflections would take a loop over the tokens.
    "gpu": Config(
        "gpu", length=256, multiples=(1, 2, 4, 8, 16), d_model=384, num_heads=8, num_layers=6, steps=1000, batch_size=64,
        learning_rate=1e-3, warm_up=100, evaluation_bytes=262_144, spans=8, seeds=(0, 1, 2),
        schemes=("none", "shaw", "t5", "rope", "alibi", *(scheme for scheme in NEWER if scheme != "reflected")),
    ),
}  # fmt: skip
