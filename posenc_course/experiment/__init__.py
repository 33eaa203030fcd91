"""The extrapolation lab: an experiment that trains all schemes with several seeds and tests them beyond the training length.

With each scheme, a decoder learns to predict bytes of Python source code at length T, and is measured at T, 2T, 4T and 8T. Six
tasks with known answers and several learning rates are part of it. Run it from the command line::

    python -m posenc_course.experiment run --preset quick --folder runs
    python -m posenc_course.experiment report runs

or in Python, with `run_experiment(preset("quick"), "runs")`. `load_results` and `load_model` read the results and the models
that come with the package.
"""

from posenc_course.experiment.config import PRESETS, SCHEMES, Config, Run, preset
from posenc_course.experiment.corpus import load_corpus
from posenc_course.experiment.evaluation import CHANGES, changed, token_losses
from posenc_course.experiment.folder import load_model, load_results, run_experiment
from posenc_course.experiment.report import bits_per_byte, curve, describe, scores

__all__ = [
    "CHANGES",
    "PRESETS",
    "SCHEMES",
    "Config",
    "Run",
    "bits_per_byte",
    "changed",
    "curve",
    "describe",
    "load_corpus",
    "load_model",
    "load_results",
    "preset",
    "run_experiment",
    "scores",
    "token_losses",
]
