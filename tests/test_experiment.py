"""The experiment measures what it says, a seed fixes a run, nothing is lost or overwritten; and what its results show."""

import hashlib
import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import cloudpickle  # type: ignore[import-untyped]
import dask
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from distributed import LocalCluster
from torch import Tensor
from torch.nn.modules.module import register_module_forward_pre_hook

from posenc_course.attention import MultiHeadAttention
from posenc_course.contextual import ForgettingPositions, RecurrentPositions, ReflectedPositions, SelectiveRotaryPositions
from posenc_course.conventions import read_rotation
from posenc_course.experiment import runs, tasks
from posenc_course.experiment.__main__ import main
from posenc_course.experiment._files import run_of
from posenc_course.experiment._parts import PARTS, Part
from posenc_course.experiment._pool import News
from posenc_course.experiment._possible import require_possible
from posenc_course.experiment._require import require_text
from posenc_course.experiment.config import (
    ALL_SCHEMES,
    MULTIPLES,
    NEWER,
    PRESETS,
    RATES,
    SCALES,
    SCHEMES,
    Config,
    Run,
    build_model,
    build_scheme,
)
from posenc_course.experiment.corpus import DATA, Corpus, load_corpus
from posenc_course.experiment.evaluation import (
    CHANGES,
    changed,
    changes_of,
    evaluate_task,
    evaluate_text,
    linear_along_ones,
    possible_changes,
    token_losses,
)
from posenc_course.experiment.folder import (
    _Clock,
    _perform,
    evaluate_again,
    load_model,
    load_results,
    merge,
    run_experiment,
    save_report,
)
from posenc_course.experiment.report import bits_per_byte, curve, describe, scores, tables
from posenc_course.experiment.runs import measure, train_run
from posenc_course.learned import LearnedPositions
from posenc_course.naive import LinearPositions
from posenc_course.nope import NoPositions
from posenc_course.polar import PolarPositions
from posenc_course.relative import ShawPositions, T5Positions, WindowedPositions, t5_buckets
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import ntk_aware, position_interpolation, yarn, yarn_attention_factor
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies
from posenc_course.transformer import Block, Decoder
from tests.commands import FORKS, ROOT, WEEKLY

pytestmark = pytest.mark.slow
TINY = Config(
    "tiny", length=16, d_model=16, num_heads=2, num_layers=1, steps=3, batch_size=4, warm_up=1, evaluation_bytes=256, spans=2,
    task_length=16, task_steps=1, side_steps=1,
)  # fmt: skip
T = TINY.length


# A description whose training text is empty, all there is, or no whole number of bytes; or whose checksum is a number.
CUTS = [f'{{"files": {{"train": {{"a.py": {cut}}}}}, "sha256": "0"}}' for cut in (0, -5, 10**9, 5.5)]
CUTS.append('{"files": {"train": {"a.py": 5}}, "sha256": 5}')


def tiny(**changes: Any) -> Config:
    return replace(TINY, **changes)


def silent(_: str) -> None:
    pass


@contextmanager
def watched() -> Iterator[tuple[list[Tensor], list[Tensor]]]:
    """The batches that decoders are trained on meanwhile, and those that they are measured on."""
    trained: list[Tensor] = []
    measured: list[Tensor] = []

    def note(module: torch.nn.Module, given: tuple[Tensor, ...]) -> None:
        if isinstance(module, Decoder):
            (measured if torch.is_inference_mode_enabled() else trained).append(given[0].clone())

    handle = register_module_forward_pre_hook(note)
    try:
        yield trained, measured
    finally:
        handle.remove()


def batches(config: Config, run: Run, monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """What a run is trained on."""
    with monkeypatch.context() as patch, watched() as (trained, _):
        patch.setattr(runs, "measure", lambda *_: {})
        train_run(config, run)
    return trained


@contextmanager
def forking() -> Iterator[None]:
    """Fork the processes of a pool or a cluster from the server that kernels come from: they needn't import torch."""
    if WEEKLY or not FORKS:
        yield
        return
    from tests.kernels import CONTEXT, start_server

    start_server()
    with pytest.MonkeyPatch.context() as patch, dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        patch.setattr("posenc_course.experiment._pool.get_context", lambda _: CONTEXT)
        yield


def alike(some: list[Tensor], others: list[Tensor]) -> bool:
    return len(some) == len(others) and all(torch.equal(one, other) for one, other in zip(some, others, strict=True))


def records(folder: Path) -> list[dict[str, Any]]:
    """What a folder's runs measured, without how long it took."""
    return [{key: value for key, value in run.items() if key != "cpu_seconds"} for run in merge(folder)["runs"]]


# ── the text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_changes_the_text_changes_a_copy() -> None:
    own = load_corpus().validation
    own[0] += 1
    assert load_corpus().validation[0] != own[0]


def test_the_text_is_the_frozen_one_and_split_by_file() -> None:
    corpus = load_corpus()
    described = json.loads((DATA / "corpus.json").read_text(encoding="utf-8"))
    train, validation = described["files"]["train"], described["files"]["validation"]
    assert (len(corpus.train), len(corpus.validation)) == (sum(train.values()), sum(validation.values()))
    assert not train.keys() & validation.keys()
    assert 7.5e6 < len(corpus.train) + len(corpus.validation) < 8e6
    text = bytes(corpus.train.tolist()) + bytes(corpus.validation.tolist())
    assert hashlib.sha256(text).hexdigest() == described["sha256"] == corpus.sha256
    assert text.isascii()
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in (DATA / "corpus_LICENSE.txt").read_text(encoding="utf-8")
    assert (DATA / "corpus.xz").stat().st_size < 2.5e6


def test_a_text_that_is_not_the_frozen_one_is_refused(tmp_path: Path) -> None:
    for name in ("corpus.json", "corpus.xz"):
        (tmp_path / name).write_bytes((DATA / name).read_bytes())
    description = tmp_path / "corpus.json"
    description.write_text(description.read_text().replace('"sha256": "0', '"sha256": "1'))
    with pytest.raises(ValueError, match="has sha256 04"):
        load_corpus(tmp_path)
    (tmp_path / "corpus.xz").write_bytes((DATA / "corpus.xz").read_bytes()[:1000])
    with pytest.raises(ValueError, match="no complete text"):
        load_corpus(tmp_path)


@pytest.mark.parametrize("described", ["[]", "{}", '{"files": {"train": {"a.py": "3"}}, "sha256": ""}', *CUTS])
def test_a_description_of_another_text_is_refused(described: str, tmp_path: Path) -> None:
    (tmp_path / "corpus.xz").write_bytes((DATA / "corpus.xz").read_bytes())
    (tmp_path / "corpus.json").write_text(described)
    with pytest.raises(ValueError, match=r"no complete text in .*: reinstall the package"):
        load_corpus(tmp_path)


# ── the tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("task", tasks.TASKS)
@pytest.mark.parametrize("length", [4, 17, 32, 128])
def test_the_right_answers_are_right(task: str, length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    inputs, targets = tasks.TASKS[task].draw(generator, 20, length)
    assert inputs.shape == targets.shape
    assert inputs.max() < tasks.VOCAB_SIZE
    for tokens, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        asked = [place for place, answer in enumerate(answers) if answer != tasks.NO_TARGET]
        assert asked or task == "nearest"
        for place in asked:
            before = tokens[: place + 1]
            if task == "nearest":
                right = [token for token in before if token < 8][-1]
                assert tokens[place] >= 8
            elif task == "copy":
                right = tokens[place - tokens.index(16)]  # as far into the string as after the separator
            elif task == "recall":
                right = before[before.index(tokens[place]) + 1]
                assert 16 <= right < 32
                assert min(tokens[8:-4], default=32) >= 32, "other tokens are neither keys nor values"
            elif task == "parity":
                right = before.count(1) % 2
            elif task == "swaps":
                cups = ["ball", "", ""]
                for swap in before[1:]:
                    a, b = [(0, 1), (1, 2), (0, 2)][swap]
                    cups[a], cups[b] = cups[b], cups[a]
                right = cups.index("ball")
            else:
                right = next(token for token in before if token < 16)
                assert sum(token < 16 for token in before) == 2
                assert before.index(16) == place, "the question is at the end"
            assert answers[place] == right


def test_without_positions_one_layer_cannot_know_which_name_came_first() -> None:
    """Proved: the last token looks at a set. So the sentence with the names exchanged gets the same outputs, trained or not."""
    model, _ = train_run(replace(TINY, task_steps=20), Run("order", "none", 0))
    tokens = tasks.order(torch.Generator().manual_seed(1), 8, 32)[0]
    exchanged = tokens.clone()
    for sentence in exchanged:
        first, second = (sentence < 16).nonzero().flatten().tolist()
        sentence[[first, second]] = sentence[[second, first]]
    assert not torch.equal(tokens, exchanged)
    assert torch.allclose(model(tokens)[:, -1], model(exchanged)[:, -1], atol=1e-5)


# ── what is measured ─────────────────────────────────────────────────────────────────────────────────────────────────────


def tiny_model(scheme: str) -> Decoder:
    return build_model(TINY, Run("text", scheme, 0)).eval()


def schemes(model: Decoder) -> list[PositionScheme]:
    """Of each layer."""
    return [cast(Block, block).attention.scheme for block in model.blocks]


def loss_of(model: Decoder, context: Tensor, target: Tensor) -> float:
    """Nats of one byte after a context, by itself."""
    with torch.inference_mode():
        return F.cross_entropy(model(context.long()[None])[0, -1], target.long()).item()


@pytest.mark.parametrize("scheme", ["normalized", "rope"])
def test_evaluation_against_one_byte_at_a_time(scheme: str) -> None:
    """Same targets at every length; non-overlapping context begins at the window, sliding context is L - T/2 bytes at least."""
    model, text = tiny_model(scheme), load_corpus().validation
    result = evaluate_text(model, TINY, text)["plain"]
    blocks = [text[start : start + 8 * T + 1] for start in (0, len(text) // 2)]
    spans = [text[start : start + 16 * T + 1] for start in (0, len(text) // 2)]
    for L in (T, 2 * T):  # a window's loss at once is the loss of its bytes one by one, but for normalized positions
        if scheme != "normalized" and L == 2 * T:
            losses = [
                loss_of(model, block[place - place % L : place + 1], block[place + 1])
                for block in blocks
                for place in range(8 * T)
            ]
            assert result["nonoverlapping"][str(L)] == pytest.approx(sum(losses) / len(losses), abs=1e-4)
        last = [
            loss_of(model, span[place - L : place], span[place])
            for span in spans
            for place in range(8 * T + T // 2, 16 * T + 1, T // 2)
        ]
        assert result["last"][str(L)] == pytest.approx(sum(last) / len(last), abs=1e-4)
    if scheme != "normalized":
        sliding = []
        for span in spans:
            for target in range(8 * T + 1, 16 * T + 1):
                end = 8 * T + math.ceil((target - 8 * T) / (T // 2)) * (T // 2)  # of the window that counts it
                sliding.append(loss_of(model, span[end - 4 * T : target], span[target]))
        assert result["sliding"][str(4 * T)] == pytest.approx(sum(sliding) / len(sliding), abs=1e-4)
    positions = [token_losses(model, block[None])[0] for block in blocks]
    assert result["by_position"] == pytest.approx(torch.stack(positions).mean(dim=0).tolist(), abs=1e-4)
    assert result["nonoverlapping"][str(8 * T)] == pytest.approx(sum(result["by_position"]) / (8 * T), abs=1e-4)


@pytest.mark.parametrize("task", tasks.TASKS)
def test_a_task_is_measured_on_its_answers_alone(task: str) -> None:
    """Accuracy and loss are means over the tokens that ask; the others count for neither."""
    model = build_model(TINY, Run(task, "rope", 0)).eval()
    found = evaluate_task(model, TINY.of(Run(task, "rope", 0)), task)
    for L in (T, 8 * T):
        inputs, targets = tasks.TASKS[task].draw(torch.Generator().manual_seed(0), tasks.TASKS[task].sequences, L)
        asked = targets != tasks.NO_TARGET
        with torch.inference_mode():
            outputs, answers = model(inputs)[asked], targets[asked]
        assert found["loss"][str(L)] == pytest.approx(F.cross_entropy(outputs, answers).item(), abs=1e-4)
        assert found["accuracy"][str(L)] == pytest.approx((outputs.argmax(dim=-1) == answers).double().mean().item(), abs=1e-4)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_window_hides_what_is_farther_and_nothing_else(scheme: str) -> None:
    model = tiny_model(scheme)
    tokens = torch.randint(128, (2, 3 * T), generator=torch.Generator().manual_seed(0))
    windowed = changed(model, "window", 3 * T, T)
    with torch.inference_mode():
        assert torch.allclose(model(tokens[:, :T]), windowed(tokens[:, :T]), atol=1e-5)
        other = tokens.clone()
        other[:, 0] = (other[:, 0] + 1) % 128
        moved = (windowed(tokens) != windowed(other)).flatten(start_dim=2).any(dim=-1).any(dim=0)
    assert moved[0]
    assert moved[T - 1]
    assert not moved[T:].any()  # one layer: what is T back or more is out of sight


def test_a_window_reaches_as_far_to_either_side() -> None:
    m = torch.arange(9)
    bias = WindowedPositions(NoPositions(), 3).bias(torch.ones(1, 1, 9, 2), m, m)
    assert torch.equal(bias[0, 0] == 0, (m - m[:, None]).abs() < 3)
    assert torch.equal(bias[0, 0] == -math.inf, (m - m[:, None]).abs() >= 3)


def test_changes_are_the_packages_own_formulas() -> None:
    """For the presets' length of 64, where rounding YaRN's ends, or not, makes a difference."""
    rope, learned = tiny_model("rope"), tiny_model("learned")
    assert isinstance(rope.scheme, RotaryPositions)
    assert isinstance(learned.scheme, LearnedPositions)
    omega = rope.scheme.frequencies
    expected = {
        "interpolation": position_interpolation(omega, 4),
        "ntk": ntk_aware(omega, 4),
        "yarn": yarn(omega, 4, 64),
        "yarn_fast_8": yarn(omega, 4, 64, fast=8, truncate=False),
    }
    assert not torch.equal(expected["yarn_fast_8"], yarn(omega, 4, 64, fast=8))
    for change, stretched in expected.items():
        model = changed(rope, change, 4 * 64, 64)
        assert isinstance(model.scheme, RotaryPositions)
        assert torch.equal(model.scheme.frequencies, stretched)
        assert model.scheme.attention_factor == (yarn_attention_factor(4) if "yarn" in change else 1)
        assert all(layer.scheme is model.scheme for layer in model.modules() if isinstance(layer, MultiHeadAttention))
    longer = changed(learned, "interpolation", 2 * T - 1, T).scheme
    assert isinstance(longer, LearnedPositions)
    table = learned.scheme.table
    assert torch.allclose(longer.table[::2], table[:T])
    assert torch.allclose(longer.table[1::2], (table[: T - 1] + table[1:T]) / 2, atol=1e-6)
    assert rope.scheme.frequencies is omega, "the model itself was changed"
    assert possible_changes(rope.scheme) == CHANGES
    assert possible_changes(tiny_model("alibi").scheme) == ("window",)


def test_a_mix_is_changed_in_all_layers_if_all_allow_it() -> None:
    model = build_model(PRESETS["newer"], Run("text", "rope-none", 0))
    assert changes_of(model) == ("window",)
    for scheme, windowed in zip(schemes(model), schemes(changed(model, "window", 256, 64)), strict=True):
        assert isinstance(windowed, WindowedPositions)
        assert (type(windowed.scheme), windowed.window) == (type(scheme), 64)


def test_linear_positions_in_all_channels_alike_are_no_positions() -> None:
    """LayerNorm subtracts them, exactly; along +1, -1, … it does not."""
    assert linear_along_ones() < 1e-9
    model = tiny_model("none")
    tokens = torch.arange(32)[None]
    with torch.inference_mode():
        without = model(tokens)
        model.scheme = LinearPositions(TINY.d_model)
        assert (model(tokens) - without).abs().max() > 0.1


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_part_has_its_runs() -> None:
    full = PRESETS["full"].runs()
    assert len({run.name for run in full}) == len(full) == 9 * 3 + 4 * 9 * 3 + 2 * len(RATES) * 3 + len(SCALES) * 3
    newer = PRESETS["newer"].runs()
    # 17 schemes on text and "recall", and without the five mixes in the tasks for a single layer.
    assert len({run.name for run in newer}) == len(newer) == (2 * 17 + 2 * 12) * 3
    assert {run.part for run in [*full, *newer]} == {*PARTS} - {"recite"}
    quick = [(run.scheme, run.seed) for run in PRESETS["quick"].runs()]
    assert sorted(quick) == sorted([(scheme, 0) for scheme in SCHEMES] + [("rope", 1), ("rope", 2)])
    assert PRESETS["full"].runs(["alibi"], [5], ["text"]) == [Run("text", "alibi", 5)]


def test_a_part_is_one_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(PARTS, "twice", Part("twice", ("first", "second"), ("rope",)))
    run_experiment(tiny(parts=("text", "twice")), tmp_path, parts=["twice"], say=silent)
    assert {path.stem for path in tmp_path.glob("*.npz")} == {"twice-rope-first-0", "twice-rope-second-0"}
    assert main(["evaluate", str(tmp_path), "--parts", "twice"]) == main(["report", str(tmp_path)]) == 0
    assert re.search(r"twice: nats per byte, last +seeds .*\n +rope first +1 .*\n +rope second +1 ", capsys.readouterr().out)


# What most layers of a newer scheme do, and what the last of every four does.
LAYERS = {
    **{
        name: (name, name)
        for name in ("window", "fast", "partial", "polar", "recurrent", "forgetting", "selective", "reflected")
    },
    **{f"{most}-{last}": (most, last) for most in ("window", "recurrent") for last in ("rope", "none")},
    "rope-none": ("rope", "none"),
}
# With the settings that the stored runs had.
KINDS: dict[str, PositionScheme] = {
    "polar": PolarPositions(16, 4), "recurrent": RecurrentPositions(64, 4), "forgetting": ForgettingPositions(64, 4),
    "selective": SelectiveRotaryPositions(64, 4, frequencies(16)), "reflected": ReflectedPositions(64, 4),
}  # fmt: skip
# With 16 channels a head: how many of 200 keys the last query sees, and the radians per token of the pairs that rotate.
OMEGA = [10 ** (-i / 2) for i in range(8)]
DOES = {"rope": (200, OMEGA), "none": (200, []), "window": (16, OMEGA), "fast": (200, OMEGA[:2]), "partial": (200, [1, 0.01])}


def rotated(scheme: PositionScheme, x: Tensor) -> Tensor:
    return scheme.rotate(x, x, torch.arange(x.shape[2]), torch.arange(x.shape[2]))[0]


@pytest.mark.parametrize("num_layers", [2, 4, 6, 8])
@pytest.mark.parametrize("name", NEWER)
def test_each_layer_of_a_newer_scheme_does_what_the_chapters_say(name: str, num_layers: int) -> None:
    model = build_model(replace(PRESETS["newer"], num_layers=num_layers), Run("text", name, 0))
    positions, q = torch.arange(200), torch.randn(1, 4, 200, 16)
    for number, scheme in enumerate(schemes(model), start=1):
        does = LAYERS[name][number % min(4, num_layers) == 0]
        if does in KINDS:
            assert repr(scheme) == repr(KINDS[does])
            continue
        sees, omega = DOES[does]
        bias = scheme.bias(q[:, :, -1:], positions[-1:], positions)
        assert sees == (200 if bias is None else bias[0, 0].isfinite().sum())
        if omega:
            found = read_rotation(partial(rotated, scheme), 16)
            assert found[:2] == (True, True)
            assert found.frequencies.tolist() == pytest.approx(omega, rel=1e-5)
        else:
            assert scheme.rotate(q, q, positions, positions) == (q, q)


@pytest.mark.parametrize("preset", ["full", "newer"])
def test_models_have_as_many_parameters_as_the_stored_ones(preset: str) -> None:
    """So gates that belong to a layer are not shared, and what is shared is not copied."""
    for record in load_results(preset)["runs"]:
        if record["seed"] == 0:
            model = build_model(PRESETS[preset], run_of(record))
            assert sum(parameter.numel() for parameter in model.parameters()) == record["parameters"], run_of(record).name


BEGINNINGS = {
    "full": (
        Run("text", "sinusoidal", 1), Run("nearest", "t5", 2), Run("copy", "learned", 0), Run("recall", "rope", 1),
        Run("rate", "learned", 1, "0.01"), Run("scale", "sinusoidal", 2, "paper"),
    ),
    "newer": (
        Run("text", "window-rope", 0), Run("recall", "recurrent-none", 1), Run("parity", "selective", 2),
        Run("swaps", "reflected", 0),
    ),
    "no_positions": (Run("rate", "none", 0, "0.003"),),
    "recite": (Run("recite", "alibi", 1),),
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "run"), [pytest.param(name, run, id=f"{name}-{run.name}") for name, of in BEGINNINGS.items() for run in of]
)
def test_a_run_made_now_begins_as_the_stored_one_did(table: str, run: Run) -> None:
    """The mean loss of ten steps, which every change to the scheme, the first weights, the batches or their use would move."""
    config, record = stored(table, run)
    losses: list[float] = []

    def note(step: int, _: int, loss: float) -> None:
        losses.append(loss)
        if step == 10:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train_run(config, run, progress=note)
    assert sum(losses) / 10 == pytest.approx(record["losses"][0], abs=2e-4)


def test_a_run_made_now_ends_as_the_stored_one_did() -> None:
    config, record = stored("full", run := Run("order", "normalized", 0))
    now = train_run(config, run)[1]
    assert now["losses"] == pytest.approx(record["losses"], abs=0.02)
    for name, by_length in record["evaluation"].items():
        assert now["evaluation"][name] == pytest.approx(by_length, abs=0.02), name


def stored(table: str, run: Run) -> tuple[Config, dict[str, Any]]:
    results = load_results(table if table in PRESETS else DATA / f"{table}.json")
    (record,) = (one for one in results["runs"] if run_of(one) == run)
    return Config(**results["config"]), record


def test_a_seed_is_a_run_and_the_record_is_of_the_stored_weights(tmp_path: Path) -> None:
    run = Run("text", "learned", 3)
    torch.rand(5)  # whatever the state of torch's own generator
    model, record = train_run(TINY, run)
    again, same = train_run(TINY, run)
    for one in (record, same):
        del one["cpu_seconds"]
    assert record == same
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert train_run(TINY, Run("text", "learned", 4))[1]["losses"] != record["losses"]
    run_experiment(TINY, tmp_path, schemes=["learned"], seeds=[3], say=silent)
    assert records(tmp_path) == [record]
    assert measure(load_model("learned", 3, folder=tmp_path), TINY, run) == record["evaluation"]


SIDES = [Run("rate", "learned", 0, "0.1"), Run("scale", "sinusoidal", 0, "unit")]


@pytest.mark.parametrize("run", [Run("text", "none", 0), *SIDES], ids=lambda run: run.part)
def test_training_sees_the_training_half_alone_and_measuring_the_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With halves that have no byte in common; training reaches the first byte of its half and the last."""
    halves = Corpus(torch.arange(48).byte(), 64 + torch.arange(10_000).remainder(64).byte(), "")
    monkeypatch.setattr(runs, "load_corpus", lambda: halves)
    with watched() as (trained, measured):
        model, record = train_run(replace(TINY, steps=40, side_steps=40), run)
        assert measure(model, TINY, run) == record["evaluation"]
        assert measure(model, TINY, run, halves) == record["evaluation"]
    assert len(trained) == 40
    assert {*torch.cat(trained).flatten().tolist()} == {*range(47)}  # the last byte is a target only
    assert all(tokens.min() >= 64 for tokens in measured)
    assert measured


@pytest.mark.parametrize("part", [part for part in PARTS if part != "recite"])
def test_a_seed_gives_every_scheme_the_same_batches_and_another_seed_others(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences between schemes are paired: same batches, in the same order."""
    config = replace(TINY, steps=4, task_steps=4, side_steps=4)
    first, second = paired(part)
    seen = batches(config, first, monkeypatch)
    assert len(seen) == config.of(first).steps
    assert not any(torch.equal(one, other) for one, other in itertools.combinations(seen, 2))
    assert alike(seen, batches(config, first, monkeypatch))
    assert alike(seen, batches(config, second, monkeypatch))
    for seed in (1, 2):
        others = batches(config, replace(first, seed=seed), monkeypatch)
        assert not any(torch.equal(one, other) for one, other in zip(seen, others, strict=True))


def paired(part: str) -> tuple[Run, Run]:
    """Two runs of a part that are compared with each other."""
    preset = "newer" if part in ("parity", "swaps") else "full"
    one, *_, other = [run for run in PRESETS[preset].runs(parts=[part]) if run.seed == 0]
    return one, other


@pytest.mark.parametrize("scheme", ALL_SCHEMES)
def test_a_seed_gives_the_same_weights_and_another_seed_others(scheme: str) -> None:
    models = [build_model(TINY, Run("text", scheme, seed)) for seed in (0, 0, 1, 2)]
    for one, same, *others in zip(*(model.named_parameters() for model in models), strict=True):
        assert torch.equal(one[1], same[1])
        if one[1].ndim == 2 and one[1].std() > 0:  # biases and norms begin with constants
            assert not any(torch.equal(one[1], other[1]) for other in others), one[0]


def test_every_model_of_a_task_answers_the_same_questions() -> None:
    """And questions of every length, whatever its seed and scheme."""
    asked = []
    for run in (Run("copy", "none", 0), Run("copy", "alibi", 0), Run("copy", "none", 1)):
        with watched() as (_, measured):
            measure(build_model(TINY, run), TINY, run)
        asked.append(measured)
    assert alike(asked[0], asked[1])
    assert alike(asked[0], asked[2])
    assert {tokens.shape[1] for tokens in asked[0]} == {T, 2 * T, 4 * T, 8 * T}


@pytest.mark.parametrize("task", tasks.TASKS)
def test_no_question_of_a_task_was_trained_on(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the full preset, with each of its seeds; the measuring generator begins where the one of seed 0 does."""
    config = replace(PRESETS["full"], task_steps=20 // tasks.TASKS[task].effort)
    monkeypatch.setattr(runs, "build_model", lambda *_: Decoder(tasks.VOCAB_SIZE, 4, 1, 1))  # any, and quickly
    with watched() as (_, measured):
        measure(Decoder(tasks.VOCAB_SIZE, 4, 1, 1), config, Run(task, "none", 0))
    asked = {tuple(tokens) for batch in measured for tokens in batch.tolist()}
    for seed in config.seeds:
        seen = batches(config, Run(task, "none", seed), monkeypatch)
        trained = {tuple(tokens) for batch in seen for tokens in batch.tolist()}
        assert len(trained) > 500
        assert not asked & trained


def test_the_lab_is_what_its_chapter_says() -> None:
    """The numbers that chapter 12 and the presets' documentation state, in the definitions that make them."""
    full, quick, gpu = (PRESETS[name] for name in ("full", "quick", "gpu"))
    assert MULTIPLES == (1, 2, 4, 8)
    assert RATES == ("0.001", "0.003", "0.01", "0.03", "0.1")
    for config in (full, quick):
        assert (config.length, config.steps, config.warm_up, config.learning_rate) == (64, 400, 40, 3e-3)
        assert (config.task_length, config.task_steps, config.side_steps) == (32, 300, 250)
        assert config.steps * config.batch_size * config.length == 819_200  # bytes read
    assert (full.num_layers, full.d_model, full.seeds) == (3, 96, (0, 1, 2))
    assert full.parts == ("text", "nearest", "copy", "recall", "order", "rate", "scale")
    assert (quick.num_layers, quick.d_model, quick.seeds, quick.rope_seeds) == (2, 64, (0,), (0, 1, 2))
    assert 8 * full.length * full.spans == 2048  # bytes that sliding windows score
    # "gpu": eleven million parameters, and 16 times the length.
    parameters = sum(parameter.numel() for parameter in build_model(gpu, Run("text", "none", 0)).parameters())
    assert 10.5e6 < parameters < 11.5e6
    assert gpu.longest == 16 * gpu.length == 4096
    # The learned table has a row for every position; Shaw and T5 stop counting at half of the training length.
    learned, shaw, t5 = (build_scheme(name, full) for name in ("learned", "shaw", "t5"))
    assert isinstance(learned, LearnedPositions)
    assert len(learned.table) == 512
    assert isinstance(shaw, ShawPositions)
    assert len(shaw.table) == 2 * 32 + 1
    assert isinstance(t5, T5Positions)
    buckets = t5_buckets(torch.arange(512), len(t5.table), t5.max_distance, causal=True)
    assert (buckets == buckets[-1]).nonzero().min() == 31  # from 31 tokens back on, all share the last bucket
    # Tasks: 16 to 32 tokens, asked at up to 256; the hard ones take twice the steps; "order" must be answered by one layer.
    small = {name: full.of(Run(name, "none", 0)) for name in tasks.TASKS}
    assert {name: sizes.steps for name, sizes in small.items()} == {
        "nearest": 300, "copy": 600, "recall": 600, "order": 300, "parity": 600, "swaps": 600,
    }  # fmt: skip
    assert {name: sizes.num_layers for name, sizes in small.items()} == {
        "nearest": 2, "copy": 2, "recall": 2, "order": 1, "parity": 1, "swaps": 1,
    }  # fmt: skip
    assert {(sizes.d_model, sizes.length) for sizes in small.values()} == {(64, 32)}
    assert {name: task.sequences for name, task in tasks.TASKS.items()} == dict.fromkeys(tasks.TASKS, 64) | {"order": 256}
    # Side experiments: 250 steps at width 64, the rate that the setting says, and 32 of the longest windows.
    for run in SIDES:
        side = full.of(run)
        assert (side.d_model, side.num_layers, side.steps, side.evaluation_bytes) == (64, 2, 250, 32 * 512)
        assert side.learning_rate == (0.1 if run.part == "rate" else full.learning_rate)


@pytest.mark.parametrize("task", tasks.TASKS)
def test_tasks_are_learned_at_every_length_up_to_the_trained_one(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(TINY, task_length=32, task_steps=60 // tasks.TASKS[task].effort)
    lengths = {tokens.shape[1] for tokens in batches(config, Run(task, "none", 0), monkeypatch)}
    assert lengths <= {*range(16, 33)}
    assert {16, 32} <= lengths


def test_one_token_in_eight_is_of_the_class_that_nearest_asks_for() -> None:
    tokens = tasks.nearest(torch.Generator().manual_seed(0), 500, 64)[0][:, 1:]
    assert (tokens < 8).double().mean().item() == pytest.approx(1 / 8, abs=0.01)
    assert {*tokens.flatten().tolist()} == {*range(64)}


def test_the_tokens_scale_is_what_its_setting_says() -> None:
    root = 2**0.5  # sinusoids have a root mean square of √½, tokens one of 1 in "unit"; the side experiments' √d_model is 8
    for setting, ratio in {"unscaled": root / 8, "paper": root, "unit": root, "overscaled": 8 * root}.items():
        start, end = train_run(TINY, Run("scale", "sinusoidal", 0, setting))[1]["token_to_position"]
        assert start == pytest.approx(ratio, rel=0.03)
        assert end == pytest.approx(ratio, rel=0.2)


def test_the_gpu_preset_goes_through_when_shrunk() -> None:
    shrunk = replace(
        PRESETS["gpu"], length=16, d_model=16, num_heads=2, num_layers=1, steps=2, batch_size=2, evaluation_bytes=256, spans=1
    )
    assert len(PRESETS["gpu"].runs()) == 17 * 3
    _, record = train_run(shrunk, Run("text", "t5", 0))
    assert set(record["evaluation"]["plain"]["nonoverlapping"]) == {"16", "32", "64", "128", "256"}


# ── a folder of runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs, by two processes."""
    folder = tmp_path_factory.mktemp("made")
    with forking():
        run_experiment(TINY, folder, schemes=["none", "rope", "alibi"], jobs=2, say=silent)
    return folder


def copied(folder: Path, to: Path) -> Path:
    to.mkdir(exist_ok=True)
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def test_runs_are_independent_and_merge(made: Path, tmp_path: Path) -> None:
    for scheme in ("rope", "alibi", "none"):  # another order, one process each
        run_experiment(TINY, tmp_path / scheme, schemes=[scheme], say=silent)
        copied(tmp_path / scheme, tmp_path / "all")
    assert records(tmp_path / "all") == records(made)
    save_report(tmp_path / "all", tmp_path / "report.json")
    assert load_results(tmp_path / "report.json") == merge(tmp_path / "all")
    assert load_results(made)["config"] == TINY.as_json()
    (how,) = merge(made)["made"]
    assert how["corpus"] == load_corpus().sha256
    assert how["torch"] == torch.__version__


def test_what_is_there_is_kept_and_what_is_missing_is_made(made: Path, tmp_path: Path) -> None:
    copied(made, tmp_path)
    (tmp_path / "text-rope-0.npz").unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    lines: list[str] = []
    run_experiment(TINY, tmp_path, schemes=["none", "rope", "alibi"], say=lines.append)
    assert lines[0] == f"3 runs, 2 of them already in {tmp_path}"
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert records(tmp_path) == records(made)


def test_evaluating_again_gives_the_same(made: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    evaluate_again(copied(made, tmp_path), say=lines.append)
    evaluate_again(tmp_path, schemes=["rope"], parts=["text"], say=lines.append)
    assert len(lines) == 3 + 1
    assert all(line.endswith(", as stored") for line in lines)
    assert records(tmp_path) == records(made)


def test_evaluating_again_replaces_what_was_measured_otherwise(made: Path, tmp_path: Path) -> None:
    def improve(described: dict[str, Any], _: object) -> None:
        described["record"]["evaluation"]["plain"]["nonoverlapping"]["128"] = 0.5

    rewritten(copied(made, tmp_path) / "text-rope-0.npz", improve)
    assert records(tmp_path) != records(made)
    lines: list[str] = []
    evaluate_again(tmp_path, schemes=["rope"], say=lines.append)
    assert [line.rpartition(", ")[2] for line in lines] == ["not as stored"]
    assert records(tmp_path) == records(made)


def test_a_report_has_the_configuration_of_its_runs_whatever_preset_they_are_named_after(made: Path, tmp_path: Path) -> None:
    changed_preset = replace(TINY, name="quick").as_json()
    rewritten(made / "text-rope-0.npz", lambda said, _: said | {"config": changed_preset}, tmp_path / "text-rope-0.npz")
    assert merge(tmp_path)["config"] == changed_preset
    assert "command" not in merge(tmp_path), "the preset's own command would not make these runs"


def test_the_time_left_counts_every_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds a run, eight runs: what is under way counts by its steps, and no more once it is done."""
    seconds = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: seconds)
    clock, (one, two) = _Clock(8), (Run("text", "none", 0), Run("text", "rope", 0))
    for news, left in (
        (News(one, 5, 10, 2.0), 75),
        (News(one), 70),
        (News(two, 5, 10, 2.0), 65),
        (News(two), 60),
    ):
        seconds += 5
        assert f"about {left} s left" in clock.line(news, "done" if news.loss is None else None)


def test_rows_of_scores_go_by_seed_in_whatever_order_the_runs_stand() -> None:
    full = load_results("full")
    backwards = full | {"runs": full["runs"][::-1]}
    by_seed = sorted(
        (run for run in full["runs"] if (run["part"], run["scheme"]) == ("text", "rope")), key=lambda run: run["seed"]
    )
    expected = [list(run["evaluation"]["plain"]["nonoverlapping"].values()) for run in by_seed]
    assert scores(full, "rope").tolist() == scores(backwards, "rope").tolist() == expected
    assert torch.equal(curve(full, "rope"), curve(backwards, "rope"))


def test_tables_show_mean_and_spread(made: Path) -> None:
    text = "\n".join(tables(load_results(made)))
    rope = scores(load_results(made), "rope")[0, 0].item()
    assert f"{rope:6.3f}" in text
    assert "nats per byte, sliding" in text
    assert "bits at 128" in text
    for scheme in ("none", "rope", "alibi"):
        row = next(line.split() for line in text.splitlines() if line.startswith(f"  {scheme} "))  # of the first table
        nats, bits = row[2:-1], row[-1]
        assert nats == [f"{loss:.3f}" for loss in scores(load_results(made), scheme)[0].tolist()]
        assert bits == f"{scores(load_results(made), scheme)[0, -1].item() / math.log(2):.3f}", "bits are those at 8T"
    mean, deviation = describe(torch.tensor([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]]))
    assert (mean.tolist(), deviation.tolist()) == ([3, 2], [2, 0])
    losses = (2.7208, 2.656, 2.7982, 2.4913, 2.6604)  # added one by one in another order, they may give another sum
    means = {describe(torch.tensor(order, dtype=torch.float64))[0].item() for order in itertools.permutations(losses)}
    assert len(means) == 1
    assert bits_per_byte(math.log(2)) == 1


def spoiled(made: Path, to: Path) -> dict[str, tuple[Callable[[], object], str]]:
    """What goes wrong with a folder, and what the message says."""
    half = copied(made, to / "half") / "text-rope-0.npz"
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    other = copied(made, to / "other")
    report = to / "report.json"
    save_report(made, report)
    report.write_text(report.read_text()[:500])
    (to / "a file").write_text("no folder")
    alone = copied(made, to / "alone")
    (alone / "config.json").unlink()
    both = copied(made, to / "both")
    run_experiment(replace(TINY, steps=1), to / "one step", schemes=["t5"], say=silent)
    (both / "text-t5-0.npz").write_bytes((to / "one step/text-t5-0.npz").read_bytes())
    return {
        "a run cut in half": (
            lambda: run_experiment(TINY, half.parent, say=silent),
            "text-rope-0.npz does not hold a complete run (",
        ),
        "merging it": (lambda: merge(half.parent), "text-rope-0.npz does not hold a complete run ("),
        "evaluating it": (lambda: evaluate_again(half.parent), "text-rope-0.npz does not hold a complete run ("),
        "loading it": (lambda: load_model("rope", folder=half.parent), "text-rope-0.npz does not hold a complete run ("),
        "another configuration": (
            lambda: run_experiment(replace(TINY, steps=4), other, say=silent),
            "was begun with another configuration, steps=3 instead of 4: give another folder",
        ),
        "no configuration": (lambda: run_experiment(TINY, alone, say=silent), "holds runs but no config.json"),
        "a file": (lambda: run_experiment(TINY, to / "a file", say=silent), "is not a folder"),
        "runs of two": (lambda: merge(both), "several configurations, steps="),
        "results cut in half": (lambda: load_results(report), "no complete results in"),
        "no runs": (lambda: merge(to), "no runs in"),
        "no folder": (lambda: merge(to / "nowhere"), "must be an existing folder"),
        "none given": (lambda: merge(None), "must be an existing folder"),  # type: ignore[arg-type]
        "jobs": (lambda: run_experiment(TINY, other, jobs=0, say=silent), "jobs must be an integer >= 1, got 0"),
        "scheme": (
            lambda: run_experiment(TINY, other, schemes=["rotary"], say=silent),
            "unknown scheme 'rotary': choose from",
        ),
        "device": (
            lambda: run_experiment(TINY, other, device="cuda:99", say=silent),
            "device 'cuda:99' is not available: this",
        ),
        "config": (lambda: run_experiment("quick", other, say=silent), "config must be a Config, got 'quick'"),  # type: ignore[arg-type]
        "path": (lambda: save_report(made, None), "a path must be text or a Path, got None"),  # type: ignore[arg-type]
    }


def test_a_spoiled_folder_is_named_and_nothing_is_overwritten(made: Path, tmp_path: Path) -> None:
    calls = spoiled(made, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for what, (call, message) in calls.items():
        with pytest.raises(ValueError, match=r".") as caught:
            call()
        assert message in str(caught.value), what
        assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object], to: Path | None = None) -> None:
    """Change a run's file: what it says, and its arrays."""
    with np.load(path) as stored:
        arrays = dict(stored)
    described = json.loads(arrays.pop("described").tobytes())
    described = change(described, arrays) or described
    np.savez(to or path, described=np.frombuffer(json.dumps(described).encode(), np.uint8), **arrays)


ODD_RUNS: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], object], str]] = {
    "a list": (lambda said, _: [said], "does not hold a complete run"),
    "no record": (lambda said, _: said.pop("record"), "does not hold a complete run ("),
    "a record of nothing": (lambda said, _: said.update(record=None), "does not hold a complete run ("),
    "no evaluation": (lambda said, _: said["record"].pop("evaluation") and None, "'evaluation' is missing"),
    "an empty evaluation": (lambda said, _: said["record"].update(evaluation={}), "'plain' is missing"),
    "a word for a number": (
        lambda said, _: said["record"]["evaluation"]["plain"]["last"].update({"16": "low"}),
        "a measurement is not a number",
    ),
    "a number for a table": (
        lambda said, _: said["record"]["evaluation"]["plain"].update(last=3),
        "does not hold a complete run (",
    ),
    "no seed": (lambda said, _: said["record"].pop("seed") and None, "'seed' is missing"),
    "another scheme": (lambda said, _: said["record"].update(scheme="cosine"), "unknown scheme 'cosine'"),
    "a configuration of nothing": (lambda said, _: said.update(config=[]), "not a configuration: unexpected or missing []"),
    "a field more": (lambda said, _: said["config"].update(depth=3), "not a configuration: unexpected or missing depth"),
    "a field less": (lambda said, _: said["config"].pop("steps") and None, "not a configuration: unexpected or missing steps"),
    "an odd field": (lambda said, _: said["config"].update(steps="3"), "steps must be an integer >= 1, got '3'"),
}


@pytest.mark.parametrize(("change", "message"), ODD_RUNS.values(), ids=ODD_RUNS)
def test_a_run_of_odd_content_is_named(
    change: Callable[[dict[str, Any], dict[str, Any]], object], message: str, made: Path, tmp_path: Path
) -> None:
    odd = copied(made, tmp_path) / "text-rope-0.npz"
    rewritten(odd, change if message == "does not hold a complete run" else lambda said, arrays: change(said, arrays) and None)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for call in (
        lambda: run_experiment(TINY, tmp_path, say=silent),
        lambda: evaluate_again(tmp_path, say=silent),
        lambda: load_results(tmp_path),
        lambda: load_model("rope", folder=tmp_path),
    ):
        with pytest.raises(ValueError, match=re.escape(f"{odd} does not hold a complete run (")) as caught:
            call()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "change",
    [
        lambda _, arrays: arrays.update({"embedding.weight": arrays["embedding.weight"][:1]}),  # it would broadcast
        lambda _, arrays: arrays.pop("head.bias") is None,
        lambda _, arrays: arrays.update(more=np.zeros(1)),
        lambda _, arrays: arrays.update({"head.bias": np.full(128, "a")}),
    ],
)
def test_weights_that_do_not_fit_are_named_before_anything_is_measured(
    change: Callable[[dict[str, Any], dict[str, Any]], object], made: Path, tmp_path: Path
) -> None:
    rewritten(copied(made, tmp_path) / "text-rope-0.npz", lambda said, arrays: change(said, arrays) and None)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for call in (lambda: evaluate_again(tmp_path, say=silent), lambda: load_model("rope", folder=tmp_path)):
        with pytest.raises(ValueError, match="the weights of text-rope-0 do not fit its configuration"):
            call()
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_run_copied_under_another_name_is_refused(made: Path, tmp_path: Path) -> None:
    copy = copied(made, tmp_path) / "text-rope-1.npz"
    copy.write_bytes((tmp_path / "text-rope-0.npz").read_bytes())
    for call in (
        lambda: load_results(tmp_path),
        lambda: run_experiment(TINY, tmp_path, schemes=["rope"], seeds=[1], say=silent),
        lambda: evaluate_again(tmp_path, say=silent),
        lambda: load_model("rope", 1, folder=tmp_path),
    ):
        with pytest.raises(ValueError, match=re.escape(f"{copy} holds the run text-rope-0")):
            call()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: [], "no complete results in"),
        (lambda found: found | {"runs": {}}, "no runs, or one of them twice"),
        (lambda found: found | {"runs": [3]}, "not a record of a run"),
        (lambda found: found | {"runs": found["runs"] * 2}, "no runs, or one of them twice"),
        (lambda found: found | {"runs": [{**found["runs"][0], "evaluation": None}]}, "not a record of a run"),
        (lambda found: found | {"config": None}, "not a configuration: unexpected or missing None"),
        (lambda found: {"runs": found["runs"]}, "'config' is missing"),
    ],
)
def test_results_of_odd_content_are_named(change: Callable[[Any], Any], message: str, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(change(load_results(made))))
    with pytest.raises(ValueError, match=re.escape(f"no complete results in '{path}' (")) as caught:
        load_results(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "not a configuration: unexpected or missing []"),
        ('"quick"', "not a configuration: unexpected or missing 'quick'"),
        (json.dumps(TINY.as_json() | {"depth": 3}), "not a configuration: unexpected or missing depth"),
        (json.dumps({"name": "tiny"}), "not a configuration: unexpected or missing batch_size, "),
        (json.dumps(TINY.as_json() | {"seeds": 3}), "seeds must be different whole numbers"),
        ("{", "Expecting property name"),
        ("\0", "Expecting value"),
    ],
)
def test_a_config_file_of_odd_content_is_named(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(f"{path} is not complete (")) as caught:
        run_experiment(TINY, tmp_path, say=silent)
    assert message in str(caught.value)
    assert [*tmp_path.iterdir()] == [path]


def test_a_run_of_another_configuration_is_refused_before_anything_is_made(made: Path, tmp_path: Path) -> None:
    other = replace(TINY, steps=4)
    (tmp_path / "config.json").write_text(json.dumps(other.as_json()))
    (tmp_path / "text-rope-0.npz").write_bytes((made / "text-rope-0.npz").read_bytes())
    with pytest.raises(ValueError, match=r"text-rope-0.npz was made with another configuration, steps=3 instead of 4"):
        run_experiment(other, tmp_path, say=silent)
    assert len([*tmp_path.iterdir()]) == 2


# Each field of TINY, with another value.
OTHERWISE: dict[str, Any] = {
    "name": "other", "length": 32, "d_model": 32, "num_heads": 1, "num_layers": 2, "steps": 4, "batch_size": 5,
    "learning_rate": 1e-3, "warm_up": 2, "evaluation_bytes": 512, "spans": 1, "parts": ("copy",), "seeds": (1,),
    "schemes": ("rope",), "multiples": (1, 2), "rope_seeds": (1,), "task_length": 24, "task_steps": 2, "side_steps": 2,
}  # fmt: skip


@pytest.mark.parametrize("field", TINY.as_json())
def test_a_folder_of_a_configuration_that_differs_in_one_field_is_refused(field: str, made: Path) -> None:
    other = replace(TINY, **{field: OTHERWISE[field]})
    assert other != TINY
    with pytest.raises(ValueError, match=rf"another configuration, {field}=.* instead of "):
        run_experiment(other, made, say=silent)


TOO_LARGE: dict[str, tuple[dict[str, Any], str]] = {
    "text to learn from": (
        {"length": 8_000_000, "evaluation_bytes": 64_000_000},
        "evaluation_bytes=64000000 takes 1 pieces of 64000001 bytes",
    ),
    "evaluation_bytes": ({"evaluation_bytes": 128 * 10**6}, "evaluation_bytes=128000000 takes 1000000 pieces of 129 bytes"),
    "spans": ({"spans": 10**6}, "spans=1000000 takes 1000000 pieces of 257 bytes"),
    "d_model": ({"d_model": 800_000}, "d_model=800000, num_layers=1, "),
    "num_layers": ({"num_layers": 10**9}, "num_layers=1000000000"),
    "batch_size": ({"batch_size": 10**9}, "batch_size=1000000000"),
    "task_length": ({"task_length": 8 * 10**6, "parts": ("copy",)}, "length=8000000 need"),
    "side runs": ({"length": 8000, "evaluation_bytes": 64_000, "spans": 1, "parts": ("rate",)}, "evaluation_bytes=2048000 "),
}


@pytest.mark.parametrize(("changes", "message"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_sizes_that_must_fail_are_refused_before_anything_is_trained_or_written(
    changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trained(*_: object, **__: object) -> None:
        raise AssertionError("it trains first")

    monkeypatch.setattr(runs, "train", trained)
    monkeypatch.setattr(runs, "build_model", trained)
    config = tiny(**changes)
    for call in (
        lambda: run_experiment(config, tmp_path / "runs", schemes=["sinusoidal"], say=silent),
        lambda: train_run(config, config.runs(["sinusoidal"])[0]),
    ):
        with pytest.raises(ValueError, match=r".") as caught:
            call()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not [*tmp_path.iterdir()]


def test_the_largest_evaluation_that_is_offered_is_accepted() -> None:
    text = load_corpus().validation
    for name in ("evaluation_bytes", "spans"):
        with pytest.raises(ValueError, match="use") as caught:
            require_text(tiny(**{name: 128 * 10**6}), text)
        offered = int(re.findall(r"use (\d+) at most", str(caught.value))[0])
        require_text(tiny(**{name: offered}), text)
        with pytest.raises(ValueError, match=f"{name}="):
            require_text(tiny(**{name: offered + (128 if name == "evaluation_bytes" else 1)}), text)
    with pytest.raises(ValueError, match="length=16 needs more than the 16 bytes of training text"):
        require_possible(TINY, TINY.runs(), "cpu", Corpus(text[:16], text, ""))
    require_possible(TINY, TINY.runs(), "cpu", Corpus(text[:17], text, ""))


def test_the_presets_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine of 4 GiB too."""
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**20}.__getitem__)
    for config in PRESETS.values():
        require_possible(config, config.runs(), "cpu", load_corpus())


@pytest.mark.parametrize("seed", [2**31, 2**32, 2**63, 2**64, 10**30])
def test_a_huge_seed_is_refused_in_one_line(seed: int) -> None:
    """From 2³² on torch's generator would begin again with seed 0, and from 2⁶⁴ on raise an error of its own."""
    for call in (lambda: Run("text", "rope", seed), lambda: replace(TINY, seeds=(seed,)), lambda: TINY.runs(seeds=[seed])):
        with pytest.raises(ValueError, match=rf"seeds? must be below 2³¹, got {seed}: seeds number the runs"):
            call()


def test_a_setting_where_there_is_none_is_named() -> None:
    with pytest.raises(ValueError, match=r"part 'text' has no settings, got '0.1': leave it out"):
        Run("text", "rope", 0, "0.1")


def test_numbers_of_numpy_and_names_given_twice_make_the_same_runs(tmp_path: Path) -> None:
    config = tiny(seeds=[np.int64(3)], steps=np.int64(3), parts=["text", "text"])
    assert config.runs(["rope", "rope"]) == [Run("text", "rope", 3)]
    run_experiment(config, tmp_path, schemes=["rope"], seeds=[3], say=silent)
    run_experiment(config, tmp_path, schemes=["rope"], say=silent)
    assert [run["seed"] for run in load_results(tmp_path)["runs"]] == [3]
    with pytest.raises(ValueError, match="seeds must be different"):
        tiny(seeds=(1, np.int64(1)))


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_run_that_diverged_is_named_and_the_others_are_shown(odd: float, made: Path, tmp_path: Path) -> None:
    results = load_results(made)
    (rope,) = (run for run in results["runs"] if run["scheme"] == "rope")
    astray = json.loads(json.dumps(rope)) | {"seed": 1}
    astray["evaluation"]["plain"]["sliding"]["64"] = odd
    text = "\n".join(tables(results | {"runs": [*results["runs"], astray]}))
    assert text == "\n".join([*tables(results), "", "diverged, and left out above: text-rope-1"])
    alone = tables(results | {"runs": [astray]})
    assert alone == ["", "diverged, and left out above: text-rope-1"]


def test_a_run_that_diverges_is_stored_measured_anew_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines: list[str] = []
    run_experiment(replace(TINY, learning_rate=1e30), tmp_path, schemes=["rope", "none"], seeds=[0], say=lines.append)
    evaluate_again(tmp_path, say=lines.append)
    assert main(["report", str(tmp_path)]) == 0
    assert "diverged, and left out above: text-none-0, text-rope-0" in capsys.readouterr().out


# ── the command line ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_terminal_without_signs_gets_words() -> None:
    command = [sys.executable, "-m", "posenc_course.experiment", "report", "quick"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, encoding="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"rope +3 +\d\.\d{3} \+- \d\.\d{3}", done.stdout)


def test_a_folder_that_cannot_be_made_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a file").touch()
    options = [f"--set={name}={json.dumps(value)}" for name, value in TINY.as_json().items()]
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--schemes=none", "--folder", str(tmp_path / "a file/runs"), *options])
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: cannot write {tmp_path}/a file/runs/config.json: Not a directory")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["run", "--set", "d_model=800000"], "d_model=800000, num_layers=2, batch_size=32 and length=64 need "),
        (["run", "--set", "spans=1000000"], "spans=1000000 takes 1000000 pieces of 1025 bytes"),
        (["run", "--seeds", "99999999999999999999"], "seeds must be below 2³¹, got 99999999999999999999"),
        (["run", "--schemes", "rotary"], "unknown scheme 'rotary': choose from none, "),
        (["run", "--set", "length=0"], "length must be an integer >= 16, got 0"),
        (["run", "--device", "cuda:99"], "device 'cuda:99' is not available: this machine has cpu"),
        (["run", "--preset", "huge"], "unknown preset 'huge': choose from quick, full, newer, gpu"),
        (["run", "--set", "heads=2"], "unknown field 'heads': choose from name, length"),
        (["run", "--set", "steps"], "'steps' is not of the form FIELD=VALUE: give steps=100, for example"),
        (["run", "--seeds", "one"], "'one' is not a list of numbers"),
        (["run", "--scheduler", "nowhere"], "no scheduler has the address or file 'nowhere': give tcp://10.0.0.1:8786"),
        (["run", "--jobs", "0"], "jobs must be an integer >= 1, got 0"),
        (["run", "--set", "multiples=2"], "multiples must ascend from 1, got 2"),
        (["run", "--set", "multiples=[1,1000000000000000]"], "evaluation_bytes must be an integer >= 64000000000000000"),
        (["run", "--schemes", "alibi", "--parts", "rate"], "no run has scheme 'alibi': part 'rate' trains sinusoidal, learned"),
        (["run", "--schemes", "rope,window"], "no run has scheme 'window': part 'text' trains none, "),
        (["run", "--set", 'schemes=["rope-none"]', "--set", 'parts=["parity"]'], "none of the schemes ('rope-none',)"),
        (["evaluate", "nowhere"], "folder must be an existing folder, got 'nowhere'"),
        (["report", "nowhere"], "no complete results in 'nowhere'"),
        (["report", "quick", "--json", "nowhere.json"], "folder must be an existing folder, got 'quick'"),
        ([], "required: command"),
    ],
)
def test_bad_options_end_in_one_line_and_code_2(
    options: list[str], shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    with pytest.raises(SystemExit) as stopped:
        main([*options, "--folder", str(folder)] if "run" in options else options)
    assert stopped.value.code == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert said.out == ""
    assert line.startswith("error: ")
    assert shown in line
    assert not folder.exists()


def test_runs_that_fill_a_graphics_card_end_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 79.18 GiB.")

    monkeypatch.setattr("posenc_course.experiment.__main__.run_experiment", full)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "--folder", str(tmp_path)])
    said = (
        "error: CUDA out of memory. Tried to allocate 8.00 GiB. Use fewer --jobs or smaller models: finished runs are kept.\n"
    )
    assert capsys.readouterr().err == said


def test_help_names_all_that_is_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    packaged = {path.stem for path in (DATA / "experiment").glob("*.json")}
    for command, accepted in ({"run": {*PRESETS, *ALL_SCHEMES, *PARTS}, "report": packaged}).items():
        with pytest.raises(SystemExit):
            main([command, "--help"])
        said = "".join(capsys.readouterr().out.split())  # wherever lines were broken
        assert not [name for name in accepted if name not in said]


def test_measuring_nothing_again_ends_in_one_line(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", str(made), "--parts", "recite"])
    assert stopped.value.code == 2
    assert "has no run of these schemes and parts: it holds text-alibi-0, text-none-0, text-rope-0" in capsys.readouterr().err


# `python -m posenc_course.experiment`, killed from inside: however busy the machine, it is not done before the signal comes.
KILLED_AT_ITS_FIRST_STEP = """
import builtins, os, runpy, signal
say = print
def say_and_die(line, **how):
    say(line, **how)
    if "step" in line:
        os.kill(os.getpid(), signal.SIGKILL)
builtins.print = say_and_die
runpy.run_module("posenc_course.experiment", run_name="__main__")
"""


def test_interrupted_it_goes_on_to_the_same_numbers(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C and kill -9 in the first of three runs; afterwards the numbers are those of undisturbed runs."""
    changes = [f"--set={name}={json.dumps(value)}" for name, value in TINY.as_json().items()]
    folder, schemes = tmp_path / "disturbed", ["none", "alibi", "rope"]
    options = ["run", "--folder", str(folder), "--schemes", ",".join(schemes), *changes]

    def interrupted(line: str) -> None:
        if "step" in line:
            raise KeyboardInterrupt

    monkeypatch.setattr("posenc_course.experiment.__main__._say", interrupted)
    assert main([*options, "--jobs=1"]) == 130
    assert capsys.readouterr().err == "interrupted: finished runs are kept, and the same command continues from there\n"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_AT_ITS_FIRST_STEP, *options, "--jobs=2"],
        cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    _, error = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL, error
    for _ in range(600):  # its worker processes notice it, and end
        if not others_of(process.pid):
            break
        time.sleep(0.1)
    assert not others_of(process.pid)
    assert len(list(folder.glob("*.npz"))) < len(schemes)
    run_experiment(TINY, folder, schemes=schemes, say=silent)
    assert records(folder) == records(made)


def others_of(session: int) -> list[str]:
    """Processes of the session that are still there (on Linux; not checked elsewhere)."""
    there = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, of = stat.read_text().rpartition(") ")[2].split()[:4]
        except OSError:
            continue
        if int(of) == session and state != "Z":
            there.append(stat.parent.name)
    return there


def killed_once(flag: Path, work: Callable[..., bytes], *given: Any) -> bytes:
    """Do the work of a run, but the first process that comes here is killed when it has made a step."""

    def report(*progress: Any) -> None:
        given[-1](*progress)
        with suppress(FileExistsError):
            flag.touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)

    return work(*given[:-1], report)


def test_a_cluster_makes_the_same_folder_though_a_worker_is_killed(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By two worker processes, and in two calls: the first is interrupted when it has one of three runs."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers don't import the tests
    monkeypatch.setattr("posenc_course.experiment.folder._perform", partial(killed_once, tmp_path / "killed", _perform))
    lines: list[str] = []

    def interrupted(line: str) -> None:
        if line.startswith("[1/3"):
            raise KeyboardInterrupt

    with (
        forking(),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", local_directory=tmp_path) as cluster,
    ):
        go = partial(
            run_experiment, TINY, tmp_path / "runs", schemes=["none", "rope", "alibi"], scheduler=cluster.scheduler_address
        )
        with pytest.raises(KeyboardInterrupt):
            go(say=interrupted)
        assert (tmp_path / "killed").exists()
        go(say=lines.append)
    assert lines[0] == f"3 runs, 1 of them already in {tmp_path / 'runs'}"
    assert {"step 1 of 3" in line for line in lines} == {True, False}
    assert (tmp_path / "runs/config.json").read_bytes() == (made / "config.json").read_bytes()
    assert records(tmp_path / "runs") == records(made)
    for path in made.glob("*.npz"):
        with np.load(path) as here, np.load(tmp_path / "runs" / path.name) as there:
            assert here.files == there.files
            assert all(here[name].tobytes() == there[name].tobytes() for name in here.files if name != "described")


def test_workers_do_one_run_at_a_time(tmp_path: Path) -> None:
    """Two in one process would share torch's generator, so that their numbers would depend on each other."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0", local_directory=tmp_path
        ) as cluster,
        pytest.raises(ValueError, match="has 2 threads, which would share torch's: start workers with --nthreads 1"),
    ):
        run_experiment(TINY, tmp_path, schemes=["none"], scheduler=cluster.scheduler_address, say=silent)


def test_without_dask_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ValueError, match=r"takes the package distributed \(.*\): pip install distributed"):
        run_experiment(TINY, tmp_path / "runs", scheduler="tcp://10.0.0.1:8786", say=silent)
    assert not [*tmp_path.iterdir()]


# ── the committed results ────────────────────────────────────────────────────────────────────────────────────────────────


def test_models_come_along_and_every_one_gives_its_stored_numbers() -> None:
    """In windows of 8T, the mean and each position; they are stored with four decimals, and the last may round elsewhere."""
    quick, config = load_results("quick"), PRESETS["quick"]
    assert quick["config"] == config.as_json()
    stored = [*(DATA / "models").glob("text-*")]
    assert {path.stem for path in stored} == {run.name for run in config.runs()}
    assert sum(path.stat().st_size for path in stored) < 3e6
    text = load_corpus().validation
    windows = torch.stack([text[n * (len(text) // 32) :][: 512 + 1] for n in range(32)])
    for run in config.runs():
        losses = token_losses(load_model(run.scheme, run.seed), windows).double()
        assert losses.mean().item() == pytest.approx(scores(quick, run.scheme)[run.seed, 3].item(), abs=1.01e-4), run.name
        stored = curve(quick, run.scheme)[run.seed].tolist()
        assert losses.mean(dim=0).tolist() == pytest.approx(stored, abs=1e-3), run.name


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    results = load_results("full")
    assert results["config"] == PRESETS["full"].as_json(), "the full preset was changed after its results were made"
    wanted = {run.name for run in PRESETS["full"].runs()}
    assert {Run(*(run[key] for key in ("part", "scheme", "seed", "setting"))).name for run in results["runs"]} == wanted
    return results


def test_the_committed_files_say_how_they_were_made() -> None:
    for name in ("quick", "full", "newer"):
        path = DATA / "experiment" / f"{name}.json"
        assert path.stat().st_size < 700_000
        assert load_results(name)["command"] == f"python -m posenc_course.experiment run --preset {name}"
        for how in load_results(name)["made"]:
            assert how["corpus"] == load_corpus().sha256
            assert {"date", "python", "torch", "processor", "device"} <= how.keys()


def below(less: Tensor, more: Tensor) -> bool:
    """Whether the means over seeds differ in this direction by at least three times the larger standard deviation."""
    (low, low_spread), (high, high_spread) = describe(less), describe(more)
    return bool(high - low >= 3 * max(low_spread, high_spread) and high > low)


def test_at_the_trained_length_positions_help_and_schemes_differ(full: dict[str, Any]) -> None:
    at_1 = {scheme: scores(full, scheme)[:, 0] for scheme in SCHEMES}
    for scheme in ("normalized", "sinusoidal", "learned", "shaw", "t5", "rope", "alibi"):
        assert below(at_1[scheme], at_1["none"]), scheme
    for scheme in ("normalized", "sinusoidal", "learned", "t5"):
        assert below(at_1["rope"], at_1[scheme]), scheme
        assert below(at_1["alibi"], at_1[scheme]), scheme
    assert (
        at_1["linear"].min() > at_1["none"].max()
    )  # the largest standard deviation of all, so we only ask that every seed agrees


def test_who_breaks_beyond_the_trained_length_and_who_does_not(full: dict[str, Any]) -> None:
    for how in ("nonoverlapping", "sliding"):
        at = {scheme: scores(full, scheme, how=how).T for scheme in SCHEMES}
        for scheme in ("sinusoidal", "learned"):
            assert below(at[scheme][0], at[scheme][1]), f"{scheme} breaks at 2T"
        assert below(at["rope"][1], at["rope"][2]), "RoPE breaks between 2T and 4T"
        for scheme in ("none", "normalized", "linear", "sinusoidal", "learned", "t5", "rope"):
            assert below(at["alibi"][3], at[scheme][3]), f"ALiBi loses less than {scheme} at 8T"
            assert below(at["shaw"][3], at[scheme][3]), f"Shaw, clipped, loses less than {scheme} at 8T"
        assert (at["alibi"][3] - at["alibi"][0]).abs().max() < 0.05
    sliding = scores(full, "alibi", how="sliding")
    assert (sliding[:, 3] - sliding[:, 0]).min() > -0.02, "ALiBi gains nothing from more than T bytes of context"
    drop = scores(full, "alibi")
    assert below(drop[:, 3] - drop[:, 0], torch.zeros(3)), "what it seems to gain is bytes with little context, fewer of them"


def test_the_window_tells_unseen_distances_from_unseen_positions(full: dict[str, Any]) -> None:
    for scheme in ("rope", "alibi", "shaw"):  # only distances count, and the window shows no new ones
        windowed = scores(full, scheme, change="window")
        assert (windowed[:, 3] - windowed[:, 0]).max() < 0.03, scheme
    assert below(scores(full, "rope", change="window")[:, 3], scores(full, "rope")[:, 3])
    for scheme in ("normalized", "sinusoidal", "learned"):  # positions are new all the same
        windowed = scores(full, scheme, change="window")
        assert below(windowed[:, 0], windowed[:, 3]), scheme


def test_where_in_the_text_they_break(full: dict[str, Any]) -> None:
    """Paired with ALiBi on the same bytes: sinusoids break at T, RoPE does not yet."""
    extra = {scheme: curve(full, scheme) - curve(full, "alibi") for scheme in ("sinusoidal", "rope")}
    means = {
        scheme: [curves[:, a:b].mean(dim=1) for a, b in ((48, 64), (72, 96), (256, 512))] for scheme, curves in extra.items()
    }
    assert below(means["sinusoidal"][0], means["sinusoidal"][1])
    assert (means["sinusoidal"][1] - means["sinusoidal"][0]).min() > 0.4
    assert (means["rope"][1] - means["rope"][0]).max() < 0.2
    assert (means["rope"][2] - means["rope"][0]).min() > 0.5


def test_what_stretching_does_without_training(full: dict[str, Any]) -> None:
    raw = scores(full, "rope")
    changes = {change: scores(full, "rope", change=change) for change in CHANGES}
    for change in CHANGES:
        assert torch.equal(changes[change][:, 0], raw[:, 0])
    for change in ("ntk", "yarn", "yarn_fast_8"):
        assert below(changes[change][:, 3], raw[:, 3]), change
    assert below(raw[:, 1], changes["interpolation"][:, 1]), "interpolation hurts at 2T, where RoPE still holds"
    for change in ("interpolation", "ntk", "yarn", "yarn_fast_8"):
        assert below(changes["window"][:, 3], changes[change][:, 3]), f"{change} does worse than a window"
    assert below(scores(full, "learned", change="interpolation")[:, 1], scores(full, "learned")[:, 1])


def test_tasks_have_favourites(full: dict[str, Any]) -> None:
    def right(task: str, scheme: str, multiple: int) -> Tensor:
        return scores(full, scheme, part=task, how="accuracy")[:, (1, 2, 4, 8).index(multiple)]

    for scheme in SCHEMES:
        if scheme != "alibi":
            assert below(right("nearest", scheme, 8), right("nearest", "alibi", 8)), scheme
    for scheme in ("learned", "shaw", "t5"):
        assert below(right("recall", "rope", 8), right("recall", scheme, 8)), scheme
    for scheme in ("none", "linear", "sinusoidal", "learned", "t5"):
        assert below(right("copy", scheme, 1), right("copy", "rope", 1)), scheme
    assert below(right("copy", "rope", 2), right("copy", "rope", 1))
    assert below(right("order", "none", 1), right("order", "normalized", 1))
    assert scores(full, "none", part="order", how="loss").min() > math.log(2), "without positions the names come in no order"
    assert right("order", "none", 8).max() < 0.6


def test_the_factor_is_a_ratio_of_scales(full: dict[str, Any]) -> None:
    at = {setting: scores(full, "sinusoidal", part="scale", setting=setting).T for setting in SCALES}
    assert below(at["paper"][0], at["unscaled"][0]), "tokens fainter than positions"
    assert below(at["paper"][0], at["overscaled"][0]), "positions fainter than tokens"
    assert below(at["unit"][0], at["overscaled"][0])
    assert below(at["overscaled"][3], at["unit"][3]), "positions that hardly count cannot break"


def test_learned_falls_behind_sinusoidal_at_the_best_rate_of_each(full: dict[str, Any]) -> None:
    best = {}
    for scheme in ("learned", "sinusoidal"):
        by_rate = {rate: scores(full, scheme, part="rate", setting=rate)[:, 0] for rate in RATES}
        best[scheme] = min(by_rate, key=lambda rate: by_rate[rate].mean().item())
    at_best = {scheme: scores(full, scheme, part="rate", setting=rate)[:, 0] for scheme, rate in best.items()}
    assert below(at_best["sinusoidal"], at_best["learned"]), best
