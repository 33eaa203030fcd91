"""The experiment measures what it says, a seed fixes a run, nothing is lost or overwritten; and what its results show."""

import hashlib
import itertools
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course.attention import MultiHeadAttention
from posenc_course.experiment import tasks
from posenc_course.experiment.__main__ import main
from posenc_course.experiment._files import packed, read_run, restore
from posenc_course.experiment._parts import PARTS
from posenc_course.experiment._pool import run_all
from posenc_course.experiment.config import PRESETS, RATES, Config, Run, build_model
from posenc_course.experiment.corpus import DATA, load_corpus
from posenc_course.experiment.evaluation import CHANGES, changed, changes_of, evaluate_task, evaluate_text, token_losses
from posenc_course.experiment.folder import load_model, load_results, merge, run_experiment, save_report
from posenc_course.experiment.report import bits_per_byte, curve, describe, scores, tables
from posenc_course.experiment.runs import measure, train_run
from posenc_course.learned import LearnedPositions
from posenc_course.rope import RotaryPositions
from posenc_course.rope_scaling import ntk_aware, position_interpolation, yarn, yarn_attention_factor
from posenc_course.transformer import Decoder
from tests.commands import ROOT

pytestmark = pytest.mark.slow
TINY = Config(
    "tiny", length=16, d_model=16, num_heads=2, num_layers=1, steps=3, batch_size=4, warm_up=1, evaluation_bytes=256, spans=2,
    task_length=16, task_steps=1, side_steps=1,
)  # fmt: skip
T = TINY.length


def silent(_: str) -> None:
    pass


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
    text = bytes(corpus.train.tolist()) + bytes(corpus.validation.tolist())
    assert hashlib.sha256(text).hexdigest() == described["sha256"] == corpus.sha256
    assert text.isascii()
    assert "PYTHON SOFTWARE FOUNDATION LICENSE" in (DATA / "corpus_LICENSE.txt").read_text(encoding="utf-8")


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


def loss_of(model: Decoder, context: Tensor, target: Tensor) -> float:
    """Nats of one byte after a context, by itself."""
    with torch.inference_mode():
        return F.cross_entropy(model(context.long()[None])[0, -1], target.long()).item()


def test_evaluation_against_one_byte_at_a_time() -> None:
    """Same targets at every length; non-overlapping context begins at the window, sliding context is L - T/2 bytes at least."""
    model, text = tiny_model("rope"), load_corpus().validation
    result = evaluate_text(model, TINY, text)["plain"]
    blocks = [text[start : start + 8 * T + 1] for start in (0, len(text) // 2)]
    spans = [text[start : start + 16 * T + 1] for start in (0, len(text) // 2)]
    L, losses, sliding, last = 4 * T, list[float](), list[float](), list[float]()
    for block in blocks:
        losses += [loss_of(model, block[place - place % L : place + 1], block[place + 1]) for place in range(8 * T)]
    for span in spans:
        for target in range(8 * T + 1, 16 * T + 1):
            end = 8 * T + math.ceil((target - 8 * T) / (T // 2)) * (T // 2)  # of the window that counts it
            sliding.append(loss_of(model, span[end - L : target], span[target]))
            if target == end:
                last.append(sliding[-1])
    for name, by_byte in (("nonoverlapping", losses), ("sliding", sliding), ("last", last)):
        assert result[name][str(L)] == pytest.approx(statistics.fmean(by_byte), abs=1e-4), name
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
    assert changes_of(rope) == CHANGES
    assert changes_of(tiny_model("alibi")) == ("window",)


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_part_has_its_runs() -> None:
    full, newer = PRESETS["full"].runs(), PRESETS["newer"].runs()
    assert len({*full}) == len(full) == 9 * 3 + 4 * 9 * 3 + 2 * len(RATES) * 3
    # 17 schemes on text and "recall", and without the five mixes in the tasks for a single layer.
    assert len({*newer}) == len(newer) == (2 * 17 + 2 * 12) * 3
    assert {run.part for run in [*full, *newer]} == {*PARTS} - {"recite"}
    for config in PRESETS.values():
        for run in config.runs():
            PARTS[run.part].require_text(config.of(run), load_corpus())


# Of the newer schemes all, because each is put together in a way of its own.
BEGINNINGS = {
    "full": (
        Run("text", "sinusoidal", 1), Run("nearest", "t5", 2), Run("copy", "learned", 0), Run("recall", "rope", 1),
        Run("rate", "learned", 1, "0.01"),
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
    wanted = {"part": run.part, "scheme": run.scheme, "seed": run.seed, "setting": run.setting}
    (record,) = (one for one in results["runs"] if wanted.items() <= one.items())
    return Config(**results["config"]), record


def test_a_seed_is_a_run_and_the_record_is_of_the_stored_weights(tmp_path: Path) -> None:
    run = Run("text", "learned", 3)
    torch.rand(5)  # whatever the state of torch's own generator
    _, record = train_run(TINY, run)
    del record["cpu_seconds"]
    assert train_run(TINY, Run("text", "learned", 4))[1]["losses"] != record["losses"]
    run_experiment(TINY, tmp_path, schemes=["learned"], seeds=[3], say=silent)
    assert records(tmp_path) == [record]
    model = load_model("learned", 3, folder=tmp_path)
    unseen = load_corpus().validation
    assert evaluate_text(model, TINY, unseen, changes_of(model)) == measure(model, TINY, run) == record["evaluation"]


# ── a folder of runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three runs."""
    folder = tmp_path_factory.mktemp("made")
    run_experiment(TINY, folder, schemes=["none", "rope", "alibi"], say=silent)
    return folder


def copied(folder: Path, to: Path) -> Path:
    to.mkdir(exist_ok=True)
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def test_runs_are_independent_and_merge(made: Path, tmp_path: Path) -> None:
    for scheme in ("rope", "alibi", "none"):
        run_experiment(TINY, tmp_path / scheme, schemes=[scheme], say=silent)
        copied(tmp_path / scheme, tmp_path / "all")
    assert records(tmp_path / "all") == records(made)
    save_report(tmp_path / "all", tmp_path / "report.json")
    assert load_results(tmp_path / "report.json") == merge(tmp_path / "all")
    (how,) = merge(made)["made"]
    assert (how["corpus"], how["torch"]) == (load_corpus().sha256, torch.__version__)


def test_what_is_there_is_kept_and_what_is_missing_is_made(made: Path, tmp_path: Path) -> None:
    copied(made, tmp_path)
    (tmp_path / "text-rope-0.npz").unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.npz")}
    lines: list[str] = []
    run_experiment(TINY, tmp_path, schemes=["none", "rope", "alibi"], say=lines.append)
    assert lines[0] == f"3 runs, 2 of them already in {tmp_path}"
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert records(tmp_path) == records(made)


def test_rows_of_scores_go_by_seed_in_whatever_order_the_runs_stand() -> None:
    full = load_results("full")
    backwards = full | {"runs": full["runs"][::-1]}
    assert torch.equal(scores(full, "rope"), scores(backwards, "rope"))
    assert torch.equal(curve(full, "rope"), curve(backwards, "rope"))
    (last,) = (run for run in full["runs"] if (run["part"], run["scheme"], run["seed"]) == ("text", "rope", 2))
    assert scores(full, "rope")[2].tolist() == [*last["evaluation"]["plain"]["nonoverlapping"].values()]


def test_tables_show_mean_and_spread(made: Path) -> None:
    lines = tables(load_results(made))
    assert "bits at 128" in lines[1]
    for scheme in ("none", "rope", "alibi"):
        row = next(line.split() for line in lines if line.startswith(f"  {scheme} "))  # of the first table
        losses = scores(load_results(made), scheme)[0].tolist()
        assert row[2:] == [f"{number:.3f}" for number in (*losses, losses[-1] / math.log(2))]
    mean, deviation = describe(torch.tensor([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]]))
    assert (mean.tolist(), deviation.tolist()) == ([3, 2], [2, 0])
    losses = [2.7208, 2.656, 2.7982, 2.4913, 2.6604]  # added one by one in another order, they may give another sum
    assert len({describe(torch.tensor(order).double())[0].item() for order in itertools.permutations(losses)}) == 1
    assert bits_per_byte(math.log(2)) == 1


def with_other_steps(path: Path) -> None:
    run = read_run(path)
    path.write_bytes(packed(restore(run), replace(TINY, steps=4), run["record"], run["made"]))


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut in half": (lambda path: path.write_bytes(path.read_bytes()[:999]), "text-rope-0.npz does not hold a complete run ("),
    "another name": (lambda path: path.rename(path.with_name("text-rope-1.npz")), "holds the run text-rope-0 under another"),
    "another configuration": (with_other_steps, "has runs of another configuration, steps=4 instead of 3: give another folder"),
}


@pytest.mark.parametrize(("spoil", "message"), SPOILED.values(), ids=SPOILED)
def test_a_spoiled_run_is_named_and_nothing_is_overwritten(
    spoil: Callable[[Path], object], message: str, made: Path, tmp_path: Path
) -> None:
    spoil(copied(made, tmp_path) / "text-rope-0.npz")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for call in (lambda: run_experiment(TINY, tmp_path, say=silent), lambda: load_results(tmp_path)):
        with pytest.raises(ValueError, match=re.escape(message)) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_sizes_that_need_more_text_are_refused_before_anything_is_trained_or_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"need \d+ bytes to measure on, but there are only \d+ bytes: make them smaller"):
        run_experiment(replace(TINY, spans=10**6), tmp_path / "runs", say=silent)
    assert not [*tmp_path.iterdir()]


def test_a_run_that_diverged_is_named_and_the_others_are_shown(made: Path) -> None:
    results = load_results(made)
    (rope,) = (run for run in results["runs"] if run["scheme"] == "rope")
    astray = json.loads(json.dumps(rope)) | {"seed": 1}
    astray["evaluation"]["plain"]["sliding"]["64"] = math.inf
    text = "\n".join(tables(results | {"runs": [*results["runs"], astray]}))
    assert text == "\n".join([*tables(results), "", "diverged, and left out above: text-rope-1"])


# ── several processes, and interruptions ─────────────────────────────────────────────────────────────────────────────────


def failing(run: Run, report: object) -> bytes:
    """What a run does in a process of the pool: the last one fails in one of two ways."""
    if run.scheme == "rope":
        raise ValueError("no text")
    if run.scheme == "alibi":
        os.kill(os.getpid(), signal.SIGKILL)
    return run.name.encode()


@pytest.mark.parametrize(("last", "error"), [("rope", "no text"), ("alibi", "the process of text-alibi-0 died: the same co")])
def test_what_ends_a_process_is_raised_here_and_the_other_runs_are_told_once(last: str, error: str) -> None:
    told: list[tuple[Run, Any]] = []
    given = [*(Run("text", "none", seed) for seed in range(7)), Run("text", last, 0)]
    with pytest.raises((ValueError, ChildProcessError), match=error):
        run_all(failing, given, 2, lambda *news: told.append(news))
    assert 6 <= len(told) == len({*told})
    assert all(file == run.name.encode() for run, file in told)


def test_interrupted_it_goes_on_to_the_same_numbers(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C and kill -9 in the first of three runs; afterwards the numbers are those of undisturbed runs."""
    changes = [f"--set={name}={json.dumps(value)}" for name, value in TINY.as_json().items()]
    folder, schemes = tmp_path / "disturbed", ["none", "alibi", "rope"]
    options = ["run", "--folder", str(folder), "--schemes", ",".join(schemes), *changes]

    def interrupted(line: str, **how: Any) -> None:
        if "step" in line:
            raise KeyboardInterrupt
        print(line, **how)

    with monkeypatch.context() as patch:
        patch.setattr("posenc_course.experiment.__main__.print", interrupted, raising=False)
        assert main([*options, "--jobs=1"]) == 130
    assert capsys.readouterr().err == "interrupted: finished runs are kept, and the same command continues from there\n"
    command = [sys.executable, "-um", "posenc_course.experiment", *options, "--jobs=2"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout
        assert any("step" in line for line in process.stdout)
        process.kill()
    with suppress(ProcessLookupError):  # as soon as its worker processes have noticed it, and ended
        while True:
            os.killpg(process.pid, 0)
            time.sleep(0.1)
    assert len(list(folder.glob("*.npz"))) < len(schemes)
    run_experiment(TINY, folder, schemes=schemes, jobs=2, say=silent)
    assert records(folder) == records(made)


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["run", "--folder", "/dev/null/runs"], "/dev/null/runs: Not a directory"),
        (["run", "--seeds", "4294967296"], "seeds must be different whole numbers below 2³¹"),
        (["run", "--schemes", "rotary"], "unknown scheme 'rotary': choose from none, "),
        (["run", "--device", "cuda:99"], "device 'cuda:99' is not available: this machine has cpu"),
        (["run", "--jobs", "0"], "jobs must be an integer >= 1, got 0"),
        (["run", "--schemes", "alibi", "--parts", "rate"], "no run has scheme 'alibi': of the schemes, there are runs of sin"),
        (["run", "--set", 'schemes=["rope-none"]', "--set", 'parts=["parity"]'], "none of the schemes ('rope-none',)"),
        (["run", "--set", "heads=2"], "unknown field 'heads': choose from length, "),
        (["run", "--set", "steps"], "'steps' is not of the form FIELD=VALUE: give steps=100, for example"),
        (["run", "--set", "length=20"], "length must be a multiple of 8, got 20"),
        (["run", "--set", "multiples=[2,4]"], "multiples must ascend from 1, got (2, 4)"),
        (["run", "--set", "d_model=63"], "d_model=63 is not a multiple of 2·num_heads=8"),
        (["run", "--set", "learning_rate=0"], "learning_rate must be"),
        (["run", "--set", "evaluation_bytes=1000"], "evaluation_bytes must be whole windows, got 1000"),
        (["report", "nowhere"], "no complete results in 'nowhere'"),
        (["report", "quick", "--json", "nowhere.json"], "no runs in 'quick'"),
        ([], "required: command"),
    ],
)
def test_bad_options_end_in_one_line_and_code_2(options: list[str], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(options)
    assert stopped.value.code == 2
    said = capsys.readouterr()
    (line,) = said.err.splitlines()
    assert said.out == ""
    assert line.startswith("error: ")
    assert shown in line


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
    shipped = zipfile.Path(DATA / "models/text.zip").iterdir()
    assert {path.stem for path in shipped} == {run.name for run in config.runs()}
    text = load_corpus().validation
    windows = torch.stack([text[n * (len(text) // 32) :][: 512 + 1] for n in range(32)])
    for run in config.runs():
        losses = token_losses(load_model(run.scheme, run.seed), windows).double()
        assert losses.mean().item() == pytest.approx(scores(quick, run.scheme)[run.seed, 3].item(), abs=1.01e-4), run.name
        stored = curve(quick, run.scheme)[run.seed].tolist()
        assert losses.mean(dim=0).tolist() == pytest.approx(stored, abs=1e-3), run.name


@pytest.mark.parametrize("name", ["quick", "full", "newer"])
def test_committed_results_are_of_the_preset_as_it_is(name: str) -> None:
    assert load_results(name)["config"] == PRESETS[name].as_json(), "the preset was changed after its results were made"
    assert load_results(name)["command"] == f"python -m posenc_course.experiment run --preset {name}"
    assert {how["corpus"] for how in load_results(name)["made"]} == {load_corpus().sha256}
