"""What models with forget gates charge for each byte, for chapter 15 and the page below it.

    python tools/lab/fees.py

Three seeds of the preset newer are trained on text, with gates that begin at 0.95, as in the package, and at 0.5, as in the
paper's code; the latter learn the task recall, too. This takes eight minutes on one core. A fee is the number -ln f that a byte
subtracts from the scores of all earlier bytes. In the first layer, it depends on nothing but the byte itself, so posenc_course/
data/fees.json has it for each byte and head. For each layer and head, it has the mean over the experiment's unseen texts, too,
and for each head of the first layer what it gives to keys before the last space, since keys can make up for a fee.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course.attention import attention_weights, causal_mask
from posenc_course.experiment import load_corpus, preset, runs
from posenc_course.experiment._files import provenance, write_runs
from posenc_course.experiment.config import Config, Run, build_model
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.evaluation import _pieces
from posenc_course.transformer import Decoder

TABLE = DATA / "fees.json"
CONFIG = preset("newer")
BEGINNINGS = {0.95: 3.0, 0.5: 0.0}  # how open the gates are at first, and the bias b of σ(w·x + b)


def fees(block: Any, x: Tensor) -> Tensor:
    """What each token of the layer's input x (…, d_model) charges in each head, shape (…, heads)."""
    return -F.logsigmoid(block.attention.scheme.gate(block.attention_norm(x)))


def trained(part: str, seed: int, bias: float) -> tuple[Decoder, dict[str, Any]]:
    """A trained run and its record, with gates that begin with this bias."""

    def begun(config: Config, run: Run) -> Decoder:
        model = build_model(config, run)
        for block in model.blocks:
            nn.init.constant_(block.attention.scheme.gate.bias, bias)  # type: ignore[union-attr, arg-type]
        return model

    with patch.object(runs, "build_model", begun):
        return runs.train_run(CONFIG, Run(part, "forgetting", seed))


@torch.no_grad()
def of_each_byte(model: Decoder) -> Tensor:
    """The first layer's fees, shape (heads, bytes)."""
    return fees(model.blocks[0], model.embedding.weight).T


@torch.no_grad()
def means(model: Decoder) -> list[list[float]]:
    """The mean fee of each head in each layer, over the unseen texts of the experiment."""
    length = CONFIG.longest
    texts = _pieces(load_corpus().validation, CONFIG.evaluation_bytes // length, length + 1)[:, :-1].long()
    x, found = model.embedding(texts), []
    for block in model.blocks:
        found.append(_rounded(fees(block, x).mean(dim=(0, 1))))
        x = block(x, torch.arange(length))
    return found


@torch.no_grad()
def before_the_space(model: Decoder) -> list[float]:
    """What each head of the first layer gives to keys before the last space, on average over all queries that have such keys.

    The texts are unseen, and as long as in training. The space itself isn't one of these keys: it charges those before it.
    """
    length, block = CONFIG.length, cast(Any, model.blocks[0])
    texts = _pieces(load_corpus().validation, CONFIG.evaluation_bytes // length, length).long()
    x, m = block.attention_norm(model.embedding(texts)), torch.arange(length)
    layer = block.attention
    q, k, p = layer._split(layer.query(x)), layer._split(layer.key(x)), layer.scheme.locate(x, m, None)
    weights = attention_weights(q, k, bias=layer.scheme.bias(q, p, p), mask=causal_mask(m, m))  # (texts, heads, L, L)
    space = torch.where(texts == ord(" "), m, 0).cummax(dim=1).values  # where each query's last space is, or 0
    share = torch.where(m < space[:, None, :, None], weights, 0).sum(dim=-1)  # (texts, heads, L)
    return _rounded(share.transpose(0, 1)[:, space > 0].mean(dim=1))


def _rounded(numbers: Tensor) -> list[float]:
    return [round(number, 3) for number in numbers.tolist()]


def main(table: Path = TABLE) -> None:
    found = []
    for begins, bias in BEGINNINGS.items():
        for seed in CONFIG.seeds:
            model, record = trained("text", seed, bias)
            run = {"begins": begins, "seed": seed, "nats": [*record["evaluation"]["plain"]["nonoverlapping"].values()]}
            run |= {"fees": [_rounded(head) for head in of_each_byte(model)], "means": means(model)}
            run["before_the_space"] = before_the_space(model)
            if begins != 0.95:  # the preset's own recall is in newer.json
                run["recall"] = [*trained("recall", seed, bias)[1]["evaluation"]["accuracy"].values()]
            found.append(run)
    write_runs(table, {"command": "python tools/lab/fees.py", "made": [provenance()]}, found)


if __name__ == "__main__":
    main()
