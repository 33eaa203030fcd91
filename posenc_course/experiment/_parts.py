"""The parts of the lab as values: which runs a part has, and how they are sized, built, trained, measured and reported.

To add a part, add a value to `PARTS`; a task is added to `tasks.TASKS`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar

import torch
from torch import Tensor

from posenc_course._roster import Layers, Mix
from posenc_course.experiment import corpus, tasks
from posenc_course.experiment.config import ALL_SCHEMES, RATES, REGISTRY, Config
from posenc_course.experiment.corpus import Corpus
from posenc_course.experiment.evaluation import changes_of, evaluate_task, evaluate_text
from posenc_course.experiment.recital import NUMBERS, evaluate_recital, recital
from posenc_course.transformer import Decoder

# The share of bytes that training replaces before a model reads the recital. When RoPE's models were trained on clean text,
# they lost their place sooner, and even sooner with pair 3 halved.
NOISE = 0.1


def small(config: Config) -> Config:
    """The configuration with the decoder of the tasks and of `Rate`."""
    return replace(config, d_model=64, num_heads=4, num_layers=2)


@dataclass(frozen=True)
class Part:
    """A part of the lab. This class is the text's, and the others say what they do differently.

    Args:
        name: its name on the command line, in the runs' names and in their records.
        settings: what its runs vary besides the scheme and the seed; by default nothing, so that there is one, without a name.
        schemes: its schemes, by default those of the configuration.
    """

    name: str
    settings: tuple[str, ...] = ("",)
    schemes: tuple[str, ...] = ()

    vocabulary: ClassVar[int] = corpus.VOCAB_SIZE
    # What is measured at each length, and its title in a report. All records have the first, which sums them up in these words.
    titles: ClassVar[Mapping[str, str]] = {how: f"nats per byte, {how}" for how in ("nonoverlapping", "sliding", "last")}
    summary: ClassVar[tuple[str, str]] = ("nats at", ".3f")

    def runs(self, config: Config, seeds: Sequence[int] | None) -> list[tuple[str, int, str]]:
        """The scheme, seed and setting of each run, with the given seeds or those of the configuration."""
        own = config.seeds if seeds is None else seeds
        all_of = product(own, self.schemes or config.schemes, self.settings)
        return [(scheme, seed, setting) for seed, scheme, setting in all_of]

    def sizes(self, config: Config, setting: str) -> Config:
        """The configuration with the sizes of this part's runs."""
        return config

    def require_text(self, sizes: Config, text: Corpus) -> None:
        """Raise a ValueError if there is less text than these sizes need, which would otherwise fail only after training."""
        longest = sizes.longest  # all pieces that are measured must fit in side by side
        need = max(sizes.evaluation_bytes // longest * (longest + 1), sizes.spans * (2 * longest + 1))
        if need > len(text.validation) or sizes.length >= len(text.train):
            raise ValueError(
                f"length={sizes.length}, evaluation_bytes={sizes.evaluation_bytes} and spans={sizes.spans} need {need} bytes "
                f"to measure on, but there are only {len(text.validation)} bytes: make them smaller"
            )

    def build(self, scheme: Layers, sizes: Config, setting: str) -> Decoder:
        """An untrained decoder, from torch's own generator."""
        return Decoder(self.vocabulary, sizes.d_model, sizes.num_heads, sizes.num_layers, scheme)

    def sample(self, generator: torch.Generator, sizes: Config, text: Corpus) -> tuple[Tensor, Tensor]:
        """The inputs and targets of a batch."""
        starts = torch.randint(len(text.train) - sizes.length, (sizes.batch_size, 1), generator=generator)
        tokens = text.train[starts + torch.arange(sizes.length + 1)].long()
        return tokens[:, :-1], tokens[:, 1:]

    def measure(self, model: Decoder, sizes: Config, text: Corpus) -> dict[str, Any]:
        """The "evaluation" of the record."""
        return evaluate_text(model, sizes, text.validation, changes_of(model))

    def tables(self, evaluation: dict[str, Any]) -> dict[str, Any]:
        """The measurements of each change; what was measured without one is "plain"."""
        return evaluation

    def main(self, evaluation: dict[str, Any]) -> dict[str, Any]:
        """What all records have: the first measurement, by length."""
        return self.tables(evaluation)["plain"][next(iter(self.titles))]


class Text(Part):
    """The experiment itself, where RoPE can have seeds of its own."""

    def runs(self, config: Config, seeds: Sequence[int] | None) -> list[tuple[str, int, str]]:
        runs = super().runs(config, seeds)
        if seeds is None and config.rope_seeds is not None:
            return [run for run in runs if run[0] != "rope"] + [("rope", seed, "") for seed in config.rope_seeds]
        return runs


class Rate(Part):
    """Small decoders of text at several learning rates, to compare learned and sinusoidal positions."""

    def sizes(self, config: Config, setting: str) -> Config:
        few = 32 * config.longest  # validation bytes, too few for more than the first measurement
        rate = float(setting)
        return replace(small(config), steps=config.side_steps, learning_rate=rate, evaluation_bytes=few, spans=1)

    def measure(self, model: Decoder, sizes: Config, text: Corpus) -> dict[str, Any]:
        return {"plain": {"nonoverlapping": self.main(evaluate_text(model, sizes, text.validation))}}


class Answered(Part):
    """A part that is measured by right answers, without changes, and doesn't need the corpus."""

    titles: ClassVar = {"accuracy": "right answers", "loss": "nats per answer"}
    summary = ("right at", ".0%")

    def require_text(self, sizes: Config, text: Corpus) -> None:
        """It needs none."""

    def tables(self, evaluation: dict[str, Any]) -> dict[str, Any]:
        return {"plain": evaluation}


class Questions(Answered):
    """The task of this name, for small decoders; if it is for a single layer, no schemes are mixed."""

    vocabulary = tasks.VOCAB_SIZE

    def runs(self, config: Config, seeds: Sequence[int] | None) -> list[tuple[str, int, str]]:
        single = tasks.TASKS[self.name].num_layers == 1
        return [run for run in super().runs(config, seeds) if not (single and isinstance(ALL_SCHEMES[run[0]], Mix))]

    def sizes(self, config: Config, setting: str) -> Config:
        task, length = tasks.TASKS[self.name], config.task_length
        steps, longest = config.task_steps * task.effort, config.multiples[-1] * length
        return replace(small(config), num_layers=task.num_layers, length=length, steps=steps, evaluation_bytes=longest)

    def sample(self, generator: torch.Generator, sizes: Config, text: Corpus) -> tuple[Tensor, Tensor]:
        """T/2 to T tokens, one length per batch, so that tasks are learned at all of these lengths."""
        length = int(torch.randint(sizes.length // 2, sizes.length + 1, (1,), generator=generator))
        return tasks.TASKS[self.name].draw(generator, sizes.batch_size, length)

    def measure(self, model: Decoder, sizes: Config, text: Corpus) -> dict[str, Any]:
        return evaluate_task(model, sizes, self.name)


class Recital(Answered):
    """Reciting the numbers from one to twenty, which the experiment itself leaves out."""

    def sample(self, generator: torch.Generator, sizes: Config, text: Corpus) -> tuple[Tensor, Tensor]:
        """Windows that begin anywhere, with a tenth of their bytes replaced by others from the window; targets stay right."""
        starts = torch.randint(len(NUMBERS), (sizes.batch_size, 1), generator=generator)
        windows = recital(len(NUMBERS) + sizes.length + 1)[starts + torch.arange(sizes.length + 1)]
        inputs, targets = windows[:, :-1], windows[:, 1:]
        others = inputs.gather(1, torch.randint(sizes.length, inputs.shape, generator=generator))
        replaced = torch.rand(inputs.shape, generator=generator) < NOISE
        return torch.where(replaced, others, inputs), targets

    def measure(self, model: Decoder, sizes: Config, text: Corpus) -> dict[str, Any]:
        return evaluate_recital(model, sizes.length)


PARTS: dict[str, Part] = {
    part.name: part
    for part in (
        Text("text"),
        *(Questions(task) for task in tasks.TASKS),
        Rate("rate", RATES, ("sinusoidal", "learned")),
        Recital("recite"),
    )
}
REGISTRY.update(PARTS)
