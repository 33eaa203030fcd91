"""The models that recite: their text, their batches, how they are measured, and that they still read and write as stored."""

import pytest
import torch

from posenc_course.experiment import load_model, load_results
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.recital import NUMBERS, PROMPT, STARTS, evaluate_recital, write
from posenc_course.experiment.recital import recital as recited
from tests.experiment.recited import wrong
from tools.lab.studies import recital

STORED = load_results(DATA / "recite.json")
T = recital.CONFIG.length


def test_the_text_counts_to_twenty_and_begins_again() -> None:
    text = bytes(recited(400).tolist()).decode()
    assert text.startswith("one, two, three, ")
    assert "nineteen, twenty, one, two, " in text
    assert [NUMBERS[start:].split(",")[0] for start in STARTS] == NUMBERS.strip(", ").split(", ")
    assert torch.equal(recited(300, 200), recited(500)[200:])


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "seed"), recital.SHIPPED)
def test_models_read_and_write_as_stored(scheme: str, seed: int) -> None:
    """To 2T, from the beginning of every number; on another machine a byte between two may fall the other way."""
    model, text = load_model(scheme, seed, part="recite"), torch.stack([recited(2 * T + 1, start) for start in STARTS])
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


@pytest.mark.slow
@pytest.mark.parametrize("scheme", recital.SCHEMES)
def test_what_they_write_is_stored_and_glasses_save_rope(scheme: str) -> None:
    """Up to the first mistake; what follows it may be different on another machine."""
    now = {"written": recital.written(load_model(scheme, part="recite")), "near": recital.written(recital.in_window(scheme))}
    if scheme in recital.SLICED:
        now["sliced"] = recital.sliced(scheme)
        assert wrong(now["sliced"]) is None, "a slice saves all four"
    assert {name: wrong(text) for name, text in now.items()} == {name: wrong(STORED[name][scheme]) for name in now}
    known = {"sinusoidal": (78, 78), "learned": (69, 69), "rope": (109, None), "alibi": (None, None)}
    assert known.get(scheme) in (None, (wrong(now["written"]), wrong(now["near"])))
