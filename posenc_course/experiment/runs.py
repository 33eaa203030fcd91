"""Train one run and measure it."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from posenc_course._validation import checked
from posenc_course.experiment._parts import PARTS
from posenc_course.experiment._require import require_device, require_type
from posenc_course.experiment.config import Config, Run, build_model
from posenc_course.experiment.corpus import load_corpus
from posenc_course.training import History, train, warm_up_and_cosine
from posenc_course.transformer import Decoder

Progress = Callable[[int, int, float], object]  # step, steps, loss


@checked(progress="function?")
def train_run(
    config: Config, run: Run, *, device: str = "cpu", progress: Progress | None = None
) -> tuple[Decoder, dict[str, Any]]:
    """Train and measure one run, and return the model and the record of its measurements, ready for json.dumps.

    Raises ValueError, before training, for impossible arguments and for sizes that need more text than there is.
    """
    sizes = require_type("config", config, Config, "pass preset('quick')").of(run)
    part = PARTS[run.part]
    part.require_text(sizes, load_corpus())
    model = build_model(config, run).to(require_device(device))
    began = time.process_time()
    history = fit(model, config, run, progress)
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
    record["evaluation"] = measure(model, config, run)
    record["cpu_seconds"] = [round(trained - began, 1), round(time.process_time() - trained, 1)]
    return model, record


def fit(model: Decoder, config: Config, run: Run, progress: Progress | None = None) -> History:
    """Train a model in place as the run says, and round its weights to float16: a stored model then gives the stored numbers.

    Everything runs on one thread: with matrices this small, a second thread would slow it down, and with one, sums keep their
    order.
    """
    sizes, part, text = config.of(run), PARTS[run.part], load_corpus()
    where = model.embedding.weight.device

    def sample(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        inputs, targets = part.sample(generator, sizes, text)
        return inputs.to(where), targets.to(where)

    with _one_thread():
        history = train(
            model,
            sample,
            steps=sizes.steps,
            learning_rate=sizes.learning_rate,
            schedule=warm_up_and_cosine(sizes.steps, min(sizes.warm_up, sizes.steps)),
            seed=run.seed,
            progress=None if progress is None else lambda step, loss: progress(step + 1, sizes.steps, loss),
        )
    for parameter in model.parameters():
        parameter.data = parameter.data.half().float()
    return history


def measure(model: Decoder, config: Config, run: Run) -> dict[str, Any]:
    """Measure the trained model of a run: the "evaluation" of its record. Raises ValueError for arguments of the wrong kind."""
    sizes = require_type("config", config, Config, "pass preset('quick')").of(run)
    require_type("model", model, Decoder, "pass one from load_model").eval()
    with _one_thread():
        return PARTS[run.part].measure(model, sizes, load_corpus())


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
