"""The models that recite are complete, as the code reads them now, and do what the course says with every seed."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from posenc_course.experiment import changed, load_corpus, load_model, load_results
from posenc_course.experiment._files import packed, provenance, run_of
from posenc_course.experiment._parts import NOISE, PARTS
from posenc_course.experiment.config import Config
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.recital import NUMBERS, PROMPT, STARTS, evaluate_recital, recital, write
from posenc_course.experiment.runs import train_run
from posenc_course.transformer import Decoder
from tools.lab import recite

TABLE = DATA / "recite.json"
STORED = load_results(TABLE)
T = STORED["config"]["length"]


def test_the_text_counts_to_twenty_and_begins_again() -> None:
    text = bytes(recital(400).tolist()).decode()
    assert text.startswith("one, two, three, ")
    assert "nineteen, twenty, one, two, " in text
    assert [NUMBERS[start:].split(",")[0] for start in STARTS] == NUMBERS.strip(", ").split(", ")
    assert len(STARTS) == 20
    assert torch.equal(recital(300, 200), recital(500)[200:])
    assert all(text[start:][:PROMPT].count(", ") >= 2 for start in STARTS), "a prompt has at least two numbers"


def test_batches_begin_anywhere_and_ask_for_the_right_text_though_some_of_what_they_show_is_wrong() -> None:
    many = replace(recite.CONFIG, batch_size=2000)
    inputs, targets = PARTS["recite"].sample(torch.Generator().manual_seed(0), many, load_corpus())
    begins = {bytes(recital(T, start).tolist()) for start in range(1, len(NUMBERS) + 1)}
    assert {bytes(row.tolist()) for row in targets} == begins
    wrong = (inputs[:, 1:] != targets[:, :-1]).double().mean().item()
    assert NOISE / 2 < wrong < NOISE


def test_every_run_is_stored_once_and_the_models_are_small() -> None:
    assert STORED["config"] == recite.CONFIG.as_json()
    assert [run_of(run) for run in STORED["runs"]] == recite.CONFIG.runs(recite.SCHEMES)
    models = [*(DATA / "models").glob("recite-*")]
    assert {path.name for path in models} == {f"recite-{scheme}-{seed}.npz" for scheme, seed in recite.SHIPPED}
    assert sum(path.stat().st_size for path in [TABLE, *models]) < 2e6
    stretched = [(one["seed"], one["change"]) for one in STORED["stretched"]]
    assert {*stretched} == {(seed, change) for seed in recite.CONFIG.seeds for change in recite.CHANGES}


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "seed"), recite.SHIPPED)
def test_models_read_and_write_as_stored(scheme: str, seed: int) -> None:
    """To 2T, from the beginning of every number; on another machine a byte between two may fall the other way."""
    model, text = load_model(scheme, seed, part="recite"), torch.stack([recital(2 * T + 1, start) for start in STARTS])
    (stored,) = (run["evaluation"] for run in STORED["runs"] if (run["scheme"], run["seed"]) == (scheme, seed))
    with torch.inference_mode():
        right = (model(text[:, :-1]).argmax(dim=-1) == text[:, 1:]).double().mean(dim=0)
    assert (right - torch.tensor(stored["by_position"][: 2 * T])).abs().mean() < 0.01
    wrong = write(model, text[:, :PROMPT], 2 * T) != text[:, :-1]
    wrote = [int(one.argmax()) if one.any() else 2 * T for one in wrong.int()]
    same = [now == min(then, 2 * T) for now, then in zip(wrote, stored["wrote"], strict=True)]
    assert sum(same) >= 18


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["rope", "alibi"])
def test_what_is_measured_is_what_a_plain_loop_counts(scheme: str) -> None:
    """Byte by byte, as if the training length were 26; one of the models loses its place, and the other doesn't."""
    model, short = load_model(scheme, 0, part="recite"), 26
    found = evaluate_recital(model, short)
    texts = [list((8 * NUMBERS).encode())[start : start + 8 * short + 1] for start in STARTS]
    with torch.inference_mode():
        scores = model(torch.tensor(texts))[:, :-1]
        written = write(model, torch.tensor(texts)[:, :PROMPT], 8 * short)
        assert torch.equal(model(written)[:, PROMPT - 1 : -1].argmax(dim=-1), written[:, PROMPT:]), "the likeliest bytes"
    rights, losses = [], []
    for text, rows in zip(texts, scores, strict=True):
        rights.append([int(row.argmax()) == byte for row, byte in zip(rows, text[1:], strict=True)])
        losses.append([(row.logsumexp(0) - row[byte]).item() for row, byte in zip(rows, text[1:], strict=True)])
    assert found["by_position"] == pytest.approx([sum(at) / 20 for at in zip(*rights, strict=True)], abs=0.0051)
    for length in (26, 52, 104, 208):
        for name, table in (("accuracy", rights), ("loss", losses)):
            half = [number for row in table for number in row[length // 2 : length]]
            assert found[name][str(length)] == pytest.approx(sum(half) / len(half), abs=1e-4), (name, length)
    wrongs = [[at for at in range(8 * short) if row[at] != text[at]] for row, text in zip(written.tolist(), texts, strict=True)]
    assert found["wrote"] == [min(wrong, default=8 * short) for wrong in wrongs]
    assert any(wrongs) == (scheme == "rope")


# ── what the course says of them, in every seed ──────────────────────────────────────────────────────────────────────────


def evaluations(scheme: str) -> Iterator[dict[str, Any]]:
    yield from (run["evaluation"] for run in STORED["runs"] if run["scheme"] == scheme)


def stretched(change: str, factor: float) -> list[dict[str, Any]]:
    rows = STORED["stretched"]
    return [one["evaluation"] for one in rows if (one["change"], one["factor"]) == (change, factor)]


def wrong(text: str, start: int = 0) -> int | None:
    """Where the first wrong letter is, counted from 1, of a text that begins at byte `start` of the numbers."""
    correct = bytes(recital(len(text), start).tolist()).decode()
    return next((at for at, (one, other) in enumerate(zip(text, correct, strict=True), 1) if one != other), None)


def again(model: Decoder, text: str, last: int = 0) -> str:
    """After the prompt, the letters that the model says are next: what it wrote comes out again up to the first mistake.

    At once, in a tenth of the time of writing. If `last`, each is computed as if the letters before those were not there.
    """
    given = torch.tensor(list(text[:-1].encode()))
    with torch.inference_mode():
        scores = model(given[None])[0]
        if last:
            scores[last:] = model(given.unfold(0, last, 1)[1:])[:, -1]
    return text[:PROMPT] + bytes(scores.argmax(dim=-1)[PROMPT - 1 :].tolist()).decode("ascii")


@pytest.mark.slow
def test_the_first_page_s_letters_are_the_models_and_glasses_save_rope(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the first mistake; what follows it may be different on another machine."""
    for scheme in recite.SCHEMES:
        model = load_model(scheme, part="recite")
        for name, one in (("written", model), ("near", changed(model, "window", T, T))):
            assert wrong(again(one, text := STORED[name][scheme])) == wrong(text), (name, scheme)
    far = {scheme: wrong(STORED["written"][scheme]) for scheme in recite.SLICED}
    assert far == {"sinusoidal": 78, "learned": 69, "rope": 109, "alibi": None}
    assert {scheme: wrong(STORED["near"][scheme]) for scheme in far} == far | {"rope": None}
    assert STORED["sliced"].keys() == far.keys()
    for scheme, text in STORED["sliced"].items():
        assert again(load_model(scheme, part="recite"), text, 48) == text, "the letters are the same everywhere"
        assert not wrong(text), "a slice saves all four"
    monkeypatch.setattr(recite, "SHIPPED", [("rope", 0)])  # the tool writes for all as it does for this one
    for name, written in (
        ("written", recite.written(recite.CONFIG, DATA)),
        ("near", recite.written(recite.CONFIG, DATA, near=True)),
        ("sliced", recite.sliced(recite.CONFIG, DATA)),
    ):
        assert {scheme: wrong(text) for scheme, text in written.items()} == {"rope": wrong(STORED[name]["rope"])}, name


def right(evaluation: dict[str, Any], first: int, last: int) -> float:
    share: list[float] = evaluation["by_position"][first:last]
    return sum(share) / len(share)


def median(evaluation: dict[str, Any]) -> float:
    return sorted(evaluation["wrote"])[10]


@pytest.mark.parametrize("scheme", [scheme for scheme in recite.SCHEMES if scheme != "none"])
def test_within_the_trained_length_all_that_have_positions_recite_without_a_mistake(scheme: str) -> None:
    for one in evaluations(scheme):
        assert right(one, PROMPT, T) > 0.995
        assert min(one["wrote"]) >= T


def test_without_positions_a_model_loses_its_place_even_within_it() -> None:
    for one in evaluations("none"):
        assert min(one["wrote"]) < T


@pytest.mark.parametrize("scheme", ["sinusoidal", "learned"])
def test_absolute_positions_fall_apart_at_once(scheme: str) -> None:
    for one in evaluations(scheme):
        assert max(one["wrote"]) < 1.5 * T
        assert median(one) < 1.2 * T
        assert right(one, T, 2 * T) < 0.65


def test_rope_reads_a_little_further_and_then_falls_lower() -> None:
    for one, absolute in zip(evaluations("rope"), evaluations("sinusoidal"), strict=True):
        assert 1.2 * T < median(one) < 2.2 * T
        assert median(one) > median(absolute) + T / 8
        assert right(one, T, 3 * T // 2) > 0.9
        assert right(one, 2 * T, 4 * T) < 0.6


@pytest.mark.parametrize("scheme", ["alibi", "shaw"])
def test_alibi_and_shaw_read_on_to_eight_times_the_length(scheme: str) -> None:
    """One seed of ALiBi confuses two numbers in each round, and goes on counting."""
    assert sum(min(one["wrote"]) == 8 * T for one in evaluations(scheme)) >= 2
    for one in evaluations(scheme):
        assert right(one, T, 8 * T) > (0.999 if scheme == "shaw" else 0.98)


def test_rope_reads_on_when_no_key_is_farther_away_than_in_training() -> None:
    assert all(right(one, T, 8 * T) > 0.99 for one in stretched("window", 1))


def test_rope_with_pair_3_halved_reads_right_text_better_to_four_times_the_length() -> None:
    for slower, one in zip(stretched("pair 3", 2), evaluations("rope"), strict=True):
        assert right(slower, PROMPT, T) > 0.995
        assert right(slower, T, 2 * T) > 0.95
        assert right(slower, 2 * T, 4 * T) > right(one, 2 * T, 4 * T) + 0.25


def test_pair_3_slowed_by_a_third_carries_what_rope_writes_further() -> None:
    for slower, one in zip(stretched("pair 3", 1.5), evaluations("rope"), strict=True):
        assert right(slower, PROMPT, T) > 0.995
        assert median(slower) > median(one) + T / 8


def test_interpolating_without_training_breaks_what_worked() -> None:
    for slower in stretched("interpolation", 2):
        assert right(slower, PROMPT, T) < 0.7


# ── the tool ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_an_interrupted_call_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = Config("tiny", length=32, d_model=8, num_heads=1, num_layers=1, steps=1, parts=("recite",), seeds=(0, 1))
    data, folder = tmp_path / "data", tmp_path / "runs"
    for new in (data / "models", folder):
        new.mkdir(parents=True)
    monkeypatch.setattr(recite, "SCHEMES", ("none", "rope"))
    monkeypatch.setattr(recite, "SHIPPED", (("rope", 1),))
    monkeypatch.setattr(recite, "CHANGES", ("window", "pair 3"))
    monkeypatch.setattr(recite, "FACTORS", (2,))
    (folder / "config.json").write_text(json.dumps(tiny.as_json()))
    *made, missing = tiny.runs(recite.SCHEMES)
    for run in made:
        model, record = train_run(tiny, run)
        (folder / f"{run.name}.npz").write_bytes(packed(model, tiny, record, provenance()))
    before = {path: path.read_bytes() for path in folder.glob("*.npz")}
    recite.main(tiny, folder, data)
    assert before == {path: path.read_bytes() for path in before}
    assert {*folder.glob("*.npz")} - {*before} == {folder / f"{missing.name}.npz"}
    table = json.loads((data / "recite.json").read_text("utf-8"))
    assert len(table["runs"]) == 4
    assert len(table["stretched"]) == 2 * 2
    assert load_model("rope", 1, part="recite", folder=data / "models").vocab_size == 128
