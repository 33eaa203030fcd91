"""What trained forget gates subtract for each byte, for chapter 15 and the page below it."""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course.attention import attention_weights, causal_mask
from posenc_course.experiment.config import ALL_SCHEMES
from posenc_course.transformer import Decoder
from tools.lab.study import NEWER, Record, Study, rounded, trained, unseen

# How open the gates are at first, in the package and in the paper's code, and b of σ(w·x + b).
BIAS = {0.95: 3.0, 0.5: 0.0}


def decay(block: Any, x: Tensor) -> Tensor:
    """-ln f for each token of the layer's input x (…, d_model), which all earlier scores lose: (…, heads)."""
    return -F.logsigmoid(block.attention.scheme.gate(block.attention_norm(x)))


def mean_decay(model: Decoder) -> list[list[float]]:
    """The mean for each head in each layer, over the unseen texts of the experiment."""
    length = NEWER.longest
    texts = unseen(NEWER.evaluation_bytes // length, length + 1)[:, :-1]
    x, found = model.embedding(texts), []
    for block in model.blocks:
        found.append(rounded(decay(block, x).mean(dim=(0, 1))))
        x = block(x, torch.arange(length))
    return found


def before_the_space(model: Decoder, texts: Tensor) -> list[float]:
    """What each head of the first layer gives to keys before the last space, on average over all queries that have such keys.

    The space itself isn't one of these keys: it takes from those before it.
    """
    block = cast(Any, model.blocks[0])
    x, m = block.attention_norm(model.embedding(texts)), torch.arange(texts.shape[1])
    layer = block.attention
    q, k, p = layer._split(layer.query(x)), layer._split(layer.key(x)), layer.scheme.locate(x, m, None)
    weights = attention_weights(q, k, bias=layer.scheme.bias(q, p, p), mask=causal_mask(m, m))  # (texts, heads, L, L)
    space = torch.where(texts == ord(" "), m, 0).cummax(dim=1).values  # where each query's last space is, or 0
    share = torch.where(m < space[:, None, :, None], weights, 0).sum(dim=-1)  # (texts, heads, L)
    return cast(list[float], rounded(share.transpose(0, 1)[:, space > 0].mean(dim=1)))


def forget_gate_decay(run: Record) -> Record:
    """In the first layer, -ln f depends on nothing but the byte itself; for the others, it's a mean."""

    def begun(model: Decoder) -> Decoder:
        for block in model.blocks:
            nn.init.constant_(block.attention.scheme.gate.bias, BIAS[run["begins"]])  # type: ignore[union-attr, arg-type]
        return model

    model, nats = trained("text", run["seed"], ALL_SCHEMES["forgetting"], change=begun)
    with torch.no_grad():
        found = {
            "nats": nats,
            "fees": rounded(decay(model.blocks[0], model.embedding.weight).T),
            "means": mean_decay(model),
            "before_the_space": before_the_space(model, unseen(NEWER.evaluation_bytes // NEWER.length, NEWER.length)),
        }
    if run["begins"] != 0.95:  # the preset's own recall is in newer.json
        found["recall"] = trained("recall", run["seed"], ALL_SCHEMES["forgetting"], change=begun)[1]
    return found


STUDIES = [
    Study(
        "forget_gate_decay",
        "-ln f for each byte, with gates that begin as in the package and as in the paper's code (eight minutes)",
        [{"begins": begins, "seed": seed} for begins in BIAS for seed in NEWER.seeds],
        forget_gate_decay,
    ),
]
