"""The description of an experiment: its schemes, sizes and seeds, and the runs that it consists of."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import torch

from posenc_course._roster import FIRST, LATER, Layers, Sizes
from posenc_course._validation import checked, require_integer, require_number
from posenc_course.experiment._require import choose, require_seeds, require_type
from posenc_course.transformer import Decoder

Build = Callable[[Sizes], Layers]
REGISTRY: dict[str, Any] = {}  # the parts by their names; _parts.py, which imports this module, puts them here

# What builds each scheme for a decoder of given sizes: those of chapters 2 to 11, and what came later.
SCHEMES: dict[str, Build] = {name: row.build for name, row in FIRST.items() if row.build}
NEWER: dict[str, Build] = {name: row.build for name, row in LATER.items() if row.build}
ALL_SCHEMES = SCHEMES | NEWER

RATES = ("0.001", "0.003", "0.01", "0.03", "0.1")  # learning rates, to compare learned and sinusoidal positions

# The smallest values of the fields that are whole numbers.
LEAST = {"length": 16, "task_length": 16, "warm_up": 0} | dict.fromkeys(
    ("d_model", "num_heads", "num_layers", "steps", "batch_size", "spans", "task_steps", "side_steps"), 1
)


@dataclass(frozen=True)
class Run:
    """One model, trained once: its part of the experiment, scheme and seed, and the setting that a side experiment varies."""

    part: str
    scheme: str
    seed: int
    setting: str = ""

    def __post_init__(self) -> None:
        choose("part", (self.part,), REGISTRY)
        choose("scheme", (self.scheme,), ALL_SCHEMES)
        object.__setattr__(self, "seed", *require_seeds("seed", (self.seed,)))
        choose("setting", (self.setting,), REGISTRY[self.part].settings)

    @property
    def name(self) -> str:
        """The name of the run, and of its file without `.npz`."""
        return "-".join(filter(None, (self.part, self.scheme, self.setting, str(self.seed))))


@dataclass(frozen=True)
class Config(Sizes):
    """The complete description of an experiment. On the same machine, equal configurations and seeds give equal numbers.

    Args:
        name: name of the preset; it has no effect on the runs.
        length: T, the training length in bytes, a multiple of 8.
        multiples: the evaluation lengths, as multiples of T, ascending from 1.
        d_model, num_heads, num_layers: sizes of the decoder that learns the text.
        steps, batch_size, learning_rate, warm_up: its training; after the warm-up, the learning rate falls along half a cosine.
        evaluation_bytes: number of validation bytes predicted in non-overlapping windows, the same bytes at every length.
        spans: number of stretches of 8T validation bytes predicted in sliding windows, the same ones at every length.
        parts: "text", the tasks' names, and "rate" (two schemes at several learning rates).
        schemes: the schemes of "text" and the tasks, by default those of chapters 2 to 11.
        seeds: each part, scheme and setting has one run per seed.
        rope_seeds: RoPE's seeds in the part "text", by default the same as `seeds`.
        task_length, task_steps: training length and steps for the tasks, whose decoder has width 64; "copy" and "recall" take
            twice the steps.
        side_steps: training steps for "rate", whose decoder has width 64, too.

    Raises ValueError for a value that no run can have.
    """

    name: str
    steps: int = 400
    batch_size: int = 32
    learning_rate: float = 3e-3
    warm_up: int = 40
    evaluation_bytes: int = 16_384
    spans: int = 2
    parts: tuple[str, ...] = ("text",)
    schemes: tuple[str, ...] = tuple(SCHEMES)
    seeds: tuple[int, ...] = (0,)
    rope_seeds: tuple[int, ...] | None = None
    task_length: int = 32
    task_steps: int = 300
    side_steps: int = 250

    def __post_init__(self) -> None:
        require_type("name", self.name, str, "any string will do")
        for name, minimum in LEAST.items():
            value = require_integer(name, getattr(self, name), minimum=minimum, hint="see the presets for usual values")
            if name.endswith("length") and value % 8:
                raise ValueError(f"{name} must be a multiple of 8, got {value}: windows slide by fractions of it, so use 64")
            self._keep(name, value)
        given = self.multiples if isinstance(self.multiples, tuple | list) else ()
        multiples = [require_integer("multiples", each, minimum=1, hint="1, 2, 4, 8 are usual") for each in given]
        if multiples[:1] != [1] or multiples != sorted({*multiples}):
            raise ValueError(f"multiples must ascend from 1, got {self.multiples!r}: 1, 2, 4, 8 are usual")
        self._keep("multiples", tuple(multiples))
        if self.d_model % (2 * self.num_heads):
            raise ValueError(
                f"d_model={self.d_model} is not a multiple of 2·num_heads={2 * self.num_heads}: RoPE rotates pairs of "
                "channels, so change one of the two"
            )
        self._keep("learning_rate", require_number("learning_rate", self.learning_rate, above=0, hint="3e-3 is usual"))
        hint = f"it is a multiple of {self.longest}, the longest length"
        bytes_ = require_integer("evaluation_bytes", self.evaluation_bytes, minimum=self.longest, hint=hint)
        if bytes_ % self.longest:
            raise ValueError(f"evaluation_bytes must be whole windows, got {bytes_}: {hint}")
        self._keep("evaluation_bytes", bytes_)
        self._keep("schemes", choose("scheme", self.schemes, ALL_SCHEMES))
        self._keep("seeds", require_seeds("seeds", self.seeds))
        if self.rope_seeds is not None:
            self._keep("rope_seeds", require_seeds("rope_seeds", self.rope_seeds))

    def _keep(self, name: str, value: object) -> None:
        """Store a plain number or tuple, because json.dumps would refuse NumPy's integers after hours of training."""
        object.__setattr__(self, name, value)

    def runs(
        self, schemes: Sequence[str] | None = None, seeds: Sequence[int] | None = None, parts: Sequence[str] | None = None
    ) -> list[Run]:
        """All runs of this experiment, or those with the given schemes, seeds and parts.

        Raises ValueError for unknown schemes or parts, for one that is given and has no run, and for impossible seeds.
        """
        of_schemes = choose("scheme", self.schemes if schemes is None else schemes, ALL_SCHEMES)
        of_parts = choose("part", self.parts if parts is None else parts, REGISTRY)
        if seeds is not None:
            seeds = require_seeds("seeds", seeds)
        possible = [Run(part, *rest) for part in of_parts for rest in REGISTRY[part].runs(self, seeds)]
        runs = [run for run in possible if run.scheme in of_schemes]
        given = {"scheme": of_schemes if schemes else (), "part": of_parts if parts else ()}
        for what, names in given.items():
            for name in sorted({*names} - {getattr(run, what) for run in runs}):
                there = ", ".join(dict.fromkeys(getattr(run, what) for run in possible))
                raise ValueError(f"no run has {what} {name!r}: of the {what}s, there are runs of {there or 'none'}")
        return runs

    def of(self, run: Run) -> Self:
        """This configuration, with the sizes for the run's part of the experiment."""
        part = require_type("run", run, Run, "pass one of config.runs()").part
        return REGISTRY[part].sizes(self, run.setting)

    def as_json(self) -> dict[str, Any]:
        """The fields in a form for json.dumps, with lists in place of tuples."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def preset(which: str, **changes: Any) -> Config:
    """The preset with this name, with the given fields changed. Raises ValueError for an unknown preset or field."""
    (which,) = choose("preset", (which,), tuple(PRESETS))
    choose("field", tuple(changes) or ("name",), tuple(PRESETS[which].as_json()))
    return replace(PRESETS[which], **changes)


@checked(build="function?")
def build_model(config: Config, run: Run, build: Build | None = None) -> Decoder:
    """The run's decoder, untrained. A seed always gives the same weights, whatever the state of torch's own generator.

    `build` makes the scheme for the decoder's sizes; by default, it's the run's.
    """
    sizes = require_type("config", config, Config, "pass preset('quick')").of(run)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return REGISTRY[run.part].build((build or ALL_SCHEMES[run.scheme])(sizes), sizes, run.setting)


PRESETS = {
    "quick": Config("quick", rope_seeds=(0, 1, 2)),
    "full": Config(
        "full", d_model=96, num_heads=6, num_layers=3, evaluation_bytes=32_768, spans=4, seeds=(0, 1, 2),
        parts=("text", "nearest", "copy", "recall", "order", "rate"),
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
