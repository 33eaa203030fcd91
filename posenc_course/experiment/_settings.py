"""The numbers of a configuration: what a model is built, trained and measured by."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from posenc_course._roster import FIRST, LATER, Sizes
from posenc_course._validation import require_integer, require_number
from posenc_course.experiment._require import choose, require_seeds, require_type

# What builds each scheme for a decoder of given sizes: those of chapters 2 to 11, and what came later.
SCHEMES, NEWER = ({name: row.build for name, row in rows.items() if row.build} for rows in (FIRST, LATER))
ALL_SCHEMES = SCHEMES | NEWER

# The smallest values of the fields that are whole numbers.
LEAST = {"length": 16, "task_length": 16, "warm_up": 0} | dict.fromkeys(
    ("d_model", "num_heads", "num_layers", "steps", "batch_size", "spans", "task_steps", "side_steps"), 1
)


@dataclass(frozen=True)
class Settings(Sizes):
    """The fields of `Config`, which explains them, and adds the runs."""

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

    def as_json(self) -> dict[str, Any]:
        """The fields in a form for json.dumps, with lists in place of tuples."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}


def require_bytes(sizes: Settings, there: int) -> None:
    """Raise a ValueError unless so many bytes of text are enough to measure on: all pieces must fit in side by side."""
    longest = sizes.longest
    need = max(sizes.evaluation_bytes // longest * (longest + 1), sizes.spans * (2 * longest + 1))
    if need > there:
        raise ValueError(
            f"length={sizes.length}, evaluation_bytes={sizes.evaluation_bytes} and spans={sizes.spans} need {need} bytes to "
            f"measure on, but there are only {there} bytes: make them smaller"
        )
