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
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.modules.module import register_module_forward_pre_hook

from posenc_course.attention import MultiHeadAttention
from posenc_course.experiment import runs, tasks
from posenc_course.experiment.__main__ import main
from posenc_course.experiment._files import run_of
from posenc_course.experiment._parts import PARTS, Part
from posenc_course.experiment._pool import run_all
from posenc_course.experiment.config import ALL_SCHEMES, PRESETS, RATES, SCALES, SCHEMES, Config, Run, build_model
from posenc_course.experiment.corpus import DATA, Corpus, load_corpus
from posenc_course.experiment.evaluation import (
    CHANGES,
    changed,
    changes_of,
    evaluate_task,
    evaluate_text,
    possible_changes,
    token_losses,
)
from posenc_course.experiment.folder import _Clock, load_model, load_results, merge, run_experiment, save_report
from posenc_course.experiment.report import bits_per_byte, curve, describe, scores, tables
from posenc_course.experiment.runs import measure, train_run
from posenc_course.learned import LearnedPositions
from posenc_course.relative import WindowedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import ntk_aware, position_interpolation, yarn, yarn_attention_factor
from posenc_course.schemes import PositionScheme
from posenc_course.transformer import Block, Decoder
from tests.commands import FORKS, ROOT, WEEKLY

pytestmark = pytest.mark.slow
TINY = Config(
    "tiny", length=16, d_model=16, num_heads=2, num_layers=1, steps=3, batch_size=4, warm_up=1, evaluation_bytes=256, spans=2,
    task_length=16, task_steps=1, side_steps=1,
)  # fmt: skip
T = TINY.length


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
    """Fork the processes of a pool from the server that kernels come from: they needn't import torch."""
    with pytest.MonkeyPatch.context() as patch:
        if FORKS and not WEEKLY:
            from tests.kernels import CONTEXT, start_server

            start_server()
            patch.setattr("posenc_course.experiment._pool.get_context", lambda _: CONTEXT)
        yield


def alike(some: list[Tensor], others: list[Tensor]) -> bool:
    return len(some) == len(others) and all(torch.equal(one, other) for one, other in zip(some, others, strict=True))


def records(folder: Path) -> list[dict[str, Any]]:
    """What a folder's runs measured, without how long it took."""
    return [{key: value for key, value in run.items() if key != "cpu_seconds"} for run in merge(folder)["runs"]]


# ── the text ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── the tasks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── what is measured ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    run_experiment(replace(TINY, parts=("text", "twice")), tmp_path, parts=["twice"], say=silent)
    assert {path.stem for path in tmp_path.glob("*.npz")} == {"twice-rope-first-0", "twice-rope-second-0"}
    assert main(["report", str(tmp_path)]) == 0
    assert re.search(r"twice: nats per byte, last +seeds .*\n +rope first +1 .*\n +rope second +1 ", capsys.readouterr().out)


# Of the newer schemes all, because each is put together in a way of its own.
BEGINNINGS = {
    "full": (
        Run("text", "sinusoidal", 1), Run("nearest", "t5", 2), Run("copy", "learned", 0), Run("recall", "rope", 1),
        Run("rate", "learned", 1, "0.01"), Run("scale", "sinusoidal", 2, "paper"),
    ),
    "newer": (
        *PRESETS["newer"].runs(seeds=[0], parts=["text"]),
        Run("recall", "recurrent-none", 1), Run("parity", "selective", 2), Run("swaps", "reflected", 0),
    ),
    "without_positions": (Run("rate", "none", 0, "0.003"),),
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


@pytest.mark.parametrize("task", tasks.TASKS)
def test_tasks_are_learned_at_every_length_up_to_the_trained_one(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(TINY, task_length=32, task_steps=60 // tasks.TASKS[task].effort)
    lengths = {tokens.shape[1] for tokens in batches(config, Run(task, "none", 0), monkeypatch)}
    assert lengths <= {*range(16, 33)}
    assert {16, 32} <= lengths


def test_the_tokens_scale_is_what_its_setting_says() -> None:
    root = 2**0.5  # sinusoids have a root mean square of √½, tokens one of 1 in "unit"; the side experiments' √d_model is 8
    for setting, ratio in {"unscaled": root / 8, "paper": root, "unit": root, "overscaled": 8 * root}.items():
        start, end = train_run(TINY, Run("scale", "sinusoidal", 0, setting))[1]["token_to_position"]
        assert start == pytest.approx(ratio, rel=0.03)
        assert end == pytest.approx(ratio, rel=0.2)


# ── a folder of runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_the_time_left_counts_every_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds a run, eight runs: what is under way counts by its share, and no more once it is done."""
    seconds = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: seconds)
    clock, (one, two) = _Clock(8), (Run("text", "none", 0), Run("text", "rope", 0))
    for run, share, finished, left in ((one, 0.5, 0, 75), (one, 1, 1, 70), (two, 0.5, 1, 65)):
        seconds += 5
        assert clock.line(run, share, "…") == f"[{finished}/8, {seconds:.0f} s, about {left} s left] {run.name}: …"


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


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object], to: Path | None = None) -> None:
    """Change a run's file: what it says, and its arrays."""
    with np.load(path) as stored:
        arrays = dict(stored)
    described = json.loads(arrays.pop("described").tobytes())
    described = change(described, arrays) or described
    np.savez(to or path, described=np.frombuffer(json.dumps(described).encode(), np.uint8), **arrays)


def half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def in_record(**changes: Any) -> Callable[[Path], None]:
    return lambda path: rewritten(path, lambda said, _: said | {"record": said["record"] | changes})


def in_config(**changes: Any) -> Callable[[Path], None]:
    return lambda path: rewritten(path, lambda said, _: said | {"config": said["config"] | changes})


ODD_RUNS: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut in half": (half, "does not hold a complete run ("),
    "no record": (lambda path: rewritten(path, lambda said, _: {**said, "record": None}), "not a record of a run"),
    "nothing measured": (in_record(evaluation={}), "'plain' is missing"),
    "words for numbers": (in_record(evaluation={"plain": {"nonoverlapping": {"16": "low"}}}), "a measurement is not a number"),
    "an unknown scheme": (in_record(scheme="cosine"), "unknown scheme 'cosine'"),
    "an odd field": (in_config(steps="3"), "steps must be an integer"),
    "a field more": (in_config(depth=3), "not a configuration: "),
    "another name": (lambda path: path.rename(path.with_name("text-rope-1.npz")), "holds the run text-rope-0 under another"),
}


@pytest.mark.parametrize(("spoil", "message"), ODD_RUNS.values(), ids=ODD_RUNS)
def test_a_spoiled_run_is_named_and_nothing_is_overwritten(
    spoil: Callable[[Path], object], message: str, made: Path, tmp_path: Path
) -> None:
    spoil(copied(made, tmp_path) / "text-rope-0.npz")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for call in (lambda: run_experiment(TINY, tmp_path, say=silent), lambda: load_results(tmp_path)):
        with pytest.raises(ValueError, match=re.escape(str(tmp_path / "text-rope-"))) as caught:
            call()
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("weight", [np.zeros((1, 16), np.float16), None])  # the first would broadcast
def test_weights_that_do_not_fit_are_named(weight: object, made: Path, tmp_path: Path) -> None:
    rewritten(
        made / "text-rope-0.npz", lambda _, arrays: arrays.update({"embedding.weight": weight}), tmp_path / "text-rope-0.npz"
    )
    with pytest.raises(ValueError, match=r"the weights of text-rope-0 do not fit|does not hold a complete run"):
        load_model("rope", folder=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: [], "no complete results in"),
        (lambda found: found | {"runs": [3]}, "not a record of a run"),
        (lambda found: found | {"runs": found["runs"] * 2}, "no runs, or one of them twice"),
        (lambda found: {"runs": found["runs"]}, "'config' is missing"),
    ],
)
def test_results_of_odd_content_are_named(change: Callable[[Any], Any], message: str, made: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(change(load_results(made))))
    with pytest.raises(ValueError, match=re.escape(f"no complete results in '{path}' (")) as caught:
        load_results(path)
    assert message in str(caught.value)


@pytest.mark.parametrize("changes", [{"steps": 4}, {"seeds": (0, 1)}, {"multiples": (1, 2)}, {"name": "other"}])
def test_runs_of_another_configuration_are_refused_and_kept_apart(changes: dict[str, Any], made: Path, tmp_path: Path) -> None:
    other = replace(TINY, **changes)
    (field,) = changes
    with pytest.raises(ValueError, match=rf"has runs of another configuration, {field}=.* instead of .*: give another folder"):
        run_experiment(other, made, schemes=["t5"], say=silent)
    run_experiment(other, tmp_path / "other", schemes=["t5"], say=silent)
    copied(tmp_path / "other", copied(made, tmp_path / "both"))
    with pytest.raises(ValueError, match=rf"holds runs of several configurations, {field}="):
        merge(tmp_path / "both")


@pytest.mark.parametrize(
    "changes", [{"length": 8_000_000, "evaluation_bytes": 64_000_000}, {"evaluation_bytes": 128 * 10**6}, {"spans": 10**6}]
)
def test_sizes_that_need_more_text_are_refused_before_anything_is_trained_or_written(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(runs, "train")
    config, folder = replace(TINY, **changes), tmp_path / "runs"
    for call in (lambda: run_experiment(config, folder, say=silent), lambda: train_run(config, Run("text", "rope", 0))):
        with pytest.raises(ValueError, match=r"need \d+ bytes to measure on, but there are only \d+ bytes: make them smaller"):
            call()
    assert not [*tmp_path.iterdir()]


def test_the_presets_fit_into_the_text() -> None:
    for config in PRESETS.values():
        for run in config.runs():
            PARTS[run.part].require_text(config.of(run), load_corpus())


def test_numbers_of_numpy_and_names_given_twice_make_the_same_runs(tmp_path: Path) -> None:
    given: dict[str, Any] = {"seeds": [np.int64(3)], "steps": np.int64(3), "parts": ["text", "text"]}
    config = replace(TINY, **given)
    assert config.runs(["rope", "rope"]) == [Run("text", "rope", 3)]
    for seeds in ([3], None):
        run_experiment(config, tmp_path, schemes=["rope"], seeds=seeds, say=silent)
    assert [run["seed"] for run in load_results(tmp_path)["runs"]] == [3]
    with pytest.raises(ValueError, match="seeds must be different"):
        TINY.runs(seeds=[3, 3])


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


# ── several processes, and interruptions ─────────────────────────────────────────────────────────────────────────────────


def working(run: Run, report: Callable[[int, int, float], object]) -> bytes:
    """What a run does in a process of the pool: two fail."""
    report(1, 2, 0.5)
    if run.scheme == "rope":
        raise ValueError("no text")
    if run.scheme == "alibi":
        os.kill(os.getpid(), signal.SIGKILL)
    return run.name.encode()


@pytest.mark.parametrize(
    ("last", "error"), [("t5", None), ("rope", "no text"), ("alibi", "the process of text-alibi-0 died: the same command")]
)
def test_no_run_of_several_processes_is_lost(last: str, error: str | None) -> None:
    """Two processes do eight runs, each once, with their progress; the error of a run, or its process's end, is raised here."""
    given = [*(Run("text", "none", seed) for seed in range(7)), Run("text", last, 0)]
    told: list[tuple[Run, Any]] = []
    with forking():
        if error:
            with pytest.raises((ValueError, ChildProcessError), match=error):
                run_all(working, given, 2, lambda *news: told.append(news))
        else:
            run_all(working, given, 2, lambda *news: told.append(news))
    files = [(run, news) for run, news in told if isinstance(news, bytes)]
    assert len({*files}) == len(files)
    assert all(news == run.name.encode() and (run, (1, 2, 0.5)) in told for run, news in files)
    assert error or {run for run, _ in files} == {*given}


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


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_that_cannot_be_made_ends_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a file").touch()
    options = [f"--set={name}={json.dumps(value)}" for name, value in TINY.as_json().items()]
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--schemes=none", "--folder", str(tmp_path / "a file/runs"), *options])
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"error: {tmp_path}/a file/runs: Not a directory"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["run", "--set", "spans=1000000"], "spans=1000000 need "),
        (["run", "--seeds", "99999999999999999999"], "seeds must be below 2³¹, got 99999999999999999999"),
        (["run", "--schemes", "rotary"], "unknown scheme 'rotary': choose from none, "),
        (["run", "--set", "length=0"], "length must be an integer >= 16, got 0"),
        (["run", "--device", "cuda:99"], "device 'cuda:99' is not available: this machine has cpu"),
        (["run", "--preset", "huge"], "unknown preset 'huge': choose from quick, full, newer, gpu"),
        (["run", "--set", "heads=2"], "unknown field 'heads': choose from name, length"),
        (["run", "--set", "steps"], "'steps' is not of the form FIELD=VALUE: give steps=100, for example"),
        (["run", "--seeds", "one"], "'one' is not a list of numbers"),
        (["run", "--jobs", "0"], "jobs must be an integer >= 1, got 0"),
        (["run", "--schemes", "alibi", "--parts", "rate"], "no run has scheme 'alibi': part 'rate' trains sinusoidal, learned"),
        (["run", "--set", 'schemes=["rope-none"]', "--set", 'parts=["parity"]'], "none of the schemes ('rope-none',)"),
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


def test_options_choose_the_runs(tmp_path: Path) -> None:
    changes = [f"--set={name}={json.dumps(value)}" for name, value in TINY.as_json().items()]
    chosen = ["--schemes=none,rope", "--seeds=1,2", "--parts=copy", "--set=seeds=[0,1,2]", '--set=parts=["text","copy"]']
    assert main(["run", "--folder", str(tmp_path), "--jobs=1", *changes, *chosen]) == 0
    assert {path.stem for path in tmp_path.iterdir()} == {
        f"copy-{scheme}-{seed}" for scheme in ("none", "rope") for seed in (1, 2)
    }


# ── the committed results ─────────────────────────────────────────────────────────────────────────────────────────────────────


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


def test_the_committed_files_say_how_they_were_made() -> None:
    for name in ("quick", "full", "newer"):
        path = DATA / "experiment" / f"{name}.json"
        assert path.stat().st_size < 700_000
        assert load_results(name)["config"] == PRESETS[name].as_json(), "the preset was changed after its results were made"
        assert load_results(name)["command"] == f"python -m posenc_course.experiment run --preset {name}"
        for how in load_results(name)["made"]:
            assert how["corpus"] == load_corpus().sha256
            assert {"date", "python", "torch", "processor", "device"} <= how.keys()
