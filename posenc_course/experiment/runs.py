"""Train one run and measure it."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from posenc_course.experiment import tasks
from posenc_course.experiment._possible import require_possible
from posenc_course.experiment._require import require_device, require_type
from posenc_course.experiment.config import ANSWERED, RECITE, Config, Run, ScaledTokens, build_model
from posenc_course.experiment.corpus import Corpus, load_corpus
from posenc_course.experiment.evaluation import changes_of, evaluate_task, evaluate_text
from posenc_course.experiment.recital import NUMBERS, evaluate_recital, recital
from posenc_course.training import train, warm_up_and_cosine
from posenc_course.transformer import Decoder

# The share of bytes that training replaces before a model reads the recital. When RoPE's models were trained on clean text,
# they lost their place sooner, and even sooner with pair 3 halved.
NOISE = 0.1
Progress = Callable[[int, int, float], object]  # step, steps, loss


def train_run(
    config: Config, run: Run, *, device: str = "cpu", progress: Progress | None = None
) -> tuple[Decoder, dict[str, Any]]:
    """Train and measure one run, and return the model and the record of its measurements, ready for json.dumps.

    The weights are rounded to float16 before the model is measured, so that a stored model gives the stored numbers. Everything
    runs on one thread: with matrices this small, a second thread would slow it down, and with one, sums keep their order.
    Raises ValueError, before training, for impossible arguments and for sizes that need more text or memory than there is.
    """
    if progress is not None and not callable(progress):
        raise ValueError(
            f"progress must be a function of step, steps and loss, got {progress!r}: leave it out if you need none"
        )
    sizes = require_type("config", config, Config, "pass preset('quick')").of(run)
    text = load_corpus() if run.part not in ANSWERED else None
    require_possible(config, [run], device, text)
    where = require_device(device)
    with _one_thread():
        model = build_model(config, run).to(where)
        began, scale = time.process_time(), _token_rms(model)
        history = train(
            model,
            _batches(run, sizes, text, where),
            steps=sizes.steps,
            learning_rate=sizes.learning_rate,
            schedule=warm_up_and_cosine(sizes.steps, min(sizes.warm_up, sizes.steps)),
            seed=run.seed,
            progress=None if progress is None else lambda step, loss: progress(step + 1, sizes.steps, loss),
        )
        for parameter in model.parameters():
            parameter.data = parameter.data.half().float()
        trained = time.process_time()
        record = {"part": run.part, "scheme": run.scheme, "seed": run.seed, "setting": run.setting}
        record |= {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "losses": [round(statistics.fmean(history.losses[n : n + 10]), 4) for n in range(0, sizes.steps, 10)],
            "gradient_norm": {
                "median": round(statistics.median(history.gradient_norms), 4),
                "largest": round(max(history.gradient_norms), 4),
            },
        }
        if run.part == "scale":
            # Sinusoids have a root mean square of √½ at every position.
            record["token_to_position"] = [round(rms / 0.5**0.5, 3) for rms in (scale, _token_rms(model))]
        record["evaluation"] = measure(model, config, run, text)
        record["cpu_seconds"] = [round(trained - began, 1), round(time.process_time() - trained, 1)]
    return model, record


def measure(model: Decoder, config: Config, run: Run, text: Corpus | None = None) -> dict[str, Any]:
    """Measure the trained model of a run, if necessary on `text`, which is by default that of the package.

    Returns the "evaluation" of the run's record. Raises ValueError for arguments of the wrong kind.
    """
    sizes = require_type("config", config, Config, "pass preset('quick')").of(run)
    require_type("model", model, Decoder, "pass one from load_model").eval()
    if text is not None:
        require_type("text", text, Corpus, "pass load_corpus()")
    with _one_thread():
        if run.part in tasks.TASKS:
            return evaluate_task(model, sizes, run.part)
        if run.part == RECITE:
            return evaluate_recital(model, sizes.length)
        validation = (text or load_corpus()).validation
        if run.part == "text":
            return evaluate_text(model, sizes, validation, changes_of(model))
        plain = evaluate_text(model, sizes, validation)["plain"]
        return {"plain": {"nonoverlapping": plain["nonoverlapping"]}}  # the others would be based on too few bytes


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _batches(
    run: Run, sizes: Config, text: Corpus | None, device: torch.device
) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    if run.part == RECITE:
        return _recital_batches(sizes, device)
    return _text_batches(text.train, sizes, device) if text else _task_batches(run.part, sizes, device)


def _text_batches(text: Tensor, sizes: Config, device: torch.device) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    window = torch.arange(sizes.length + 1)

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(text) - sizes.length, (sizes.batch_size, 1), generator=generator)
        tokens = text[starts + window].long().to(device)
        return tokens[:, :-1], tokens[:, 1:]

    return sample


def _recital_batches(sizes: Config, device: torch.device) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    """Windows that begin anywhere, with a tenth of their bytes replaced by others from the window; the targets stay right."""
    text, window = recital(len(NUMBERS) + sizes.length + 1), torch.arange(sizes.length + 1)

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        windows = text[torch.randint(len(NUMBERS), (sizes.batch_size, 1), generator=generator) + window].to(device)
        inputs, targets = windows[:, :-1], windows[:, 1:]
        others = inputs.gather(1, torch.randint(sizes.length, inputs.shape, generator=generator).to(device))
        replaced = torch.rand(inputs.shape, generator=generator).to(device) < NOISE
        return torch.where(replaced, others, inputs), targets

    return sample


def _task_batches(task: str, sizes: Config, device: torch.device) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    """Batches of T/2 to T tokens, one length per batch, so that tasks are learned at all of these lengths."""

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        length = int(torch.randint(sizes.length // 2, sizes.length + 1, (1,), generator=generator))
        inputs, targets = tasks.TASKS[task].draw(generator, sizes.batch_size, length)
        return inputs.to(device), targets.to(device)

    return sample


def _token_rms(model: Decoder) -> float:
    """The root mean square of the channels of the token vectors, just before positions are added."""
    factor = model.scheme.factor if isinstance(model.scheme, ScaledTokens) else 1.0
    return model.embedding.weight.square().mean().sqrt().item() * factor
