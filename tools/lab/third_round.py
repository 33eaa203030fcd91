"""The experiments behind the last claims on the page on newer claims: what released models of 2025 and 2026 have begun to do.

    python tools/lab/third_round.py

Each run is stored in its own file in _experiment/third_round, so that an interrupted call can continue; the table of all runs
goes to posenc_course/data/third_round.json. Together, they take 40 minutes on one core.

A run is named after its prediction in book/predictions.toml, its part of the preset newer (for `recall-1`, the model has one
layer instead of two), its scheme and its learning rate. A record has "found", as in `second_round`, and, if a scheme learns
factors, "learned": these factors, for each scheme of the model.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from posenc_course.contextual import RecurrentPositions
from posenc_course.experiment import preset
from posenc_course.experiment.config import SCHEMES, Config
from posenc_course.experiment.corpus import DATA
from posenc_course.experiment.tasks import TASKS
from posenc_course.nope import NoPositions
from posenc_course.relative import offsets
from posenc_course.rope import RotaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.sinusoidal import frequencies
from posenc_course.temperature import ScaledPositions
from posenc_course.transformer import Decoder
from tools.lab.second_round import CONFIG, Run, trained
from tools.lab.stored import carry_out

FOLDER = Path("_experiment/third_round")
TABLE = DATA / "third_round.json"
RATES = (0.001, CONFIG.learning_rate, 0.01)


class InklingPositions(PositionScheme):
    """Inkling's bias r_m·p_{m-n} up to `extent` - 1 tokens back, and 0 beyond; r_m = W·x_m has `features` numbers in each head.

    The vectors p are the same for all heads of a layer. In Inkling, there are 16 features and 1,024 offsets, or 512 in a layer
    with a window (from the class in transformers).
    """

    def __init__(self, d_model: int, num_heads: int, features: int, extent: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.feature = nn.Linear(d_model, num_heads * features, bias=False)
        self.table = nn.Parameter(torch.randn(features, extent) / math.sqrt(features))

    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """The features r and then the position of each token x (batch, L, d_model), (batch, heads, L, features + 1)."""
        r = self.feature(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        return torch.cat((r, positions.to(r).expand(x.shape[:2])[:, None, :, None].expand(*r.shape[:3], 1)), dim=-1)

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        extent = self.table.shape[1]
        back = offsets(q_positions[:, 0, :, -1].detach(), k_positions[:, 0, :, -1].detach()).long().unsqueeze(1)
        of_offset = q_positions[..., :-1] @ self.table  # (batch, heads, L_query, extent)
        bias = of_offset.gather(-1, back.clamp(0, extent - 1).expand(*of_offset.shape[:3], -1))
        return bias.masked_fill((back < 0) | (back >= extent), 0.0)


class LearnedRotaryPositions(RotaryPositions):
    """RoPE with frequencies ω·e^α, where α is learned for each pair and begins at 0, as in Mistral Large 4."""

    def __init__(self, omega: Tensor) -> None:
        super().__init__(omega)
        self.learned = nn.Parameter(torch.zeros(len(omega)))

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        return self._rotate(q, k, q_positions, k_positions, self.frequencies * self.learned.double().exp())


class OffsetRotaryPositions(RotaryPositions):
    """RoPE in the first channels of a head; in the others, each token has the key of the token before (modded-nanogpt, 2025).

    The first token keeps its own. A key of one layer then says what came before the token whose value it leads to.
    """

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q, k = super().rotate(q, k, q_positions, k_positions)
        rotated, still = k.split([2 * len(self.frequencies), k.shape[-1] - 2 * len(self.frequencies)], dim=-1)
        return q, torch.cat((rotated, torch.cat((still[..., :1, :], still[..., :-1, :]), dim=-2)), dim=-1)


class LogarithmicPositions(PositionScheme):
    """Another scheme, with queries multiplied by a + b·ln(m + 1); a and b are learned for each head, and begin at 1 and 0."""

    def __init__(self, scheme: PositionScheme, num_heads: int) -> None:
        super().__init__()
        self.scheme = scheme
        self.learned = nn.Parameter(torch.tensor([[1.0], [0.0]]).repeat(1, num_heads))

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        q, k = self.scheme.rotate(q, k, q_positions, k_positions)
        a, b = self.learned[:, :, None, None]
        return q * (a + b * torch.log1p(q_positions.to(q))[..., None, :, None]), k


class RotaryRecurrentPositions(RecurrentPositions):
    """A recurrent layer's gates, with queries and keys that are rotated as well, by their positions in the text."""

    def __init__(self, d_model: int, num_heads: int, omega: Tensor) -> None:
        super().__init__(d_model, num_heads)
        self.rope = RotaryPositions(omega)

    def locate(self, x: Tensor, positions: Tensor, before: Tensor | None) -> Tensor:
        """What the gates have added up, and the position in the text, (batch, heads, L, 2)."""
        gated = super().locate(x, positions, None if before is None else before[..., :1])
        return torch.cat((gated, positions.to(gated).expand(x.shape[:2])[:, None, :, None].expand_as(gated)), dim=-1)

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        return self.rope.rotate(q, k, q_positions[:, 0, :, 1].detach(), k_positions[:, 0, :, 1].detach())

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        return super().bias(q, q_positions[..., :1], k_positions[..., :1])


class StickPositions(PositionScheme):
    """Stick-breaking attention: going back, each key takes the share σ(score) of what is left (Tan et al. 2025).

    What is left at the end goes to the query's own token. `bias` is the logarithm of these weights minus the score, so that the
    softmax gives these weights.
    """

    def rotate(self, q: Tensor, k: Tensor, q_positions: Tensor, k_positions: Tensor) -> tuple[Tensor, Tensor]:
        self.key = k
        return q, k

    def bias(self, q: Tensor, q_positions: Tensor, k_positions: Tensor) -> Tensor:
        score = q @ self.key.mT / math.sqrt(q.shape[-1])
        back = offsets(q_positions, k_positions)
        passed = torch.where(back > 0, F.logsigmoid(-score), 0.0)  # the logarithm of what each key leaves
        left = passed.flip(-1).cumsum(dim=-1).flip(-1)  # and of what is left after it, its own share taken
        weight = torch.where(back > 0, F.logsigmoid(score) + left - passed, left[..., :1])
        return torch.where(back >= 0, weight - score, 0.0)


class ShortConvolution(nn.Module):
    """x_l + w_0·x_l + w_1·x_{l-1} + …, channel by channel, with `width` learned weights w, which begin at 0."""

    def __init__(self, d_model: int, width: int = 4) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, d_model))

    def forward(self, x: Tensor) -> Tensor:
        """From and to (batch, L, d_model)."""
        earlier = (F.pad(x, (0, 0, back, 0))[:, : x.shape[1]] for back in range(len(self.weight)))
        return x + sum(w * shifted for w, shifted in zip(self.weight, earlier, strict=True))


def convolved(model: Decoder) -> Decoder:
    """The model with short convolutions before each attention and each MLP, after the norm: Canon layers A and C."""
    for block in model.blocks:
        for norm in ("attention_norm", "mlp_norm"):
            setattr(block, norm, nn.Sequential(getattr(block, norm), ShortConvolution(model.norm.normalized_shape[0])))
    return model


def inkling(sizes: Config) -> list[PositionScheme]:
    width = sizes.d_model, sizes.num_heads
    return [InklingPositions(*width, sizes.d_head // 4, sizes.length // 2) for _ in range(sizes.num_layers)]


def logarithmic(scheme: PositionScheme, sizes: Config) -> list[PositionScheme]:
    return [LogarithmicPositions(scheme, sizes.num_heads) for _ in range(sizes.num_layers)]


def rotary_recurrent(sizes: Config) -> list[PositionScheme]:
    width = sizes.d_model, sizes.num_heads, frequencies(sizes.d_head)
    return [*(RotaryRecurrentPositions(*width) for _ in range(sizes.num_layers - 1)), NoPositions()]


BUILD: dict[str, Callable[[Config], PositionScheme | list[PositionScheme]]] = {
    "none": SCHEMES["none"],
    "rope": SCHEMES["rope"],
    "shaw": SCHEMES["shaw"],
    "inkling": inkling,
    "learned-rope": lambda sizes: LearnedRotaryPositions(frequencies(sizes.d_head)),
    "half-rope": lambda sizes: RotaryPositions(frequencies(sizes.d_head // 2)),
    "offset-rope": lambda sizes: OffsetRotaryPositions(frequencies(sizes.d_head // 2)),
    "none-log": lambda sizes: ScaledPositions(NoPositions(), lambda m: torch.log1p(m) / math.log(sizes.length)),
    "none-learned-log": lambda sizes: logarithmic(NoPositions(), sizes),
    "rope-learned-log": lambda sizes: logarithmic(RotaryPositions(frequencies(sizes.d_head)), sizes),
    "recurrent-rope-none": rotary_recurrent,
    "stick": lambda sizes: [StickPositions() for _ in range(sizes.num_layers)],
}
CONVOLVED = "convolved-"  # before the name of a scheme: the same, with short convolutions
WHATS = {
    "key-offset": [f"recall-1 {scheme}" for scheme in ("rope", "half-rope", "offset-rope")],
    "key-offset-text": ["text half-rope", "text offset-rope"],
    "convolution-none": ["text convolved-none", "recall convolved-none"],
    "convolution-rope": ["text convolved-rope"],
    "inkling-far": [f"{part} {scheme}" for part in ("text", "recall") for scheme in ("inkling", "shaw")],
    "inkling-convolved": ["text convolved-inkling", "recall convolved-inkling"],
    "learned-frequencies": ["text learned-rope"],
    "learned-log": ["text none-log", "text none-learned-log", "text rope-learned-log"],
    "recurrent-rotated": ["text recurrent-rope-none", "recall recurrent-rope-none"],
    "stick-breaking": ["text stick", "recall stick"],
}
SWEPT = {"inkling-near": ["text rope", "text shaw", "text inkling"]}  # at the other rates, too


def plan() -> list[Run]:
    usual = [(name, f"{what} {CONFIG.learning_rate}") for name in WHATS for what in WHATS[name]]
    swept = [(name, f"{what} {r}") for name in SWEPT for r in RATES if r != CONFIG.learning_rate for what in SWEPT[name]]
    return [Run(name, what, seed) for name, what in usual + swept for seed in CONFIG.seeds]


def measure(run: Run) -> dict[str, Any]:
    part, scheme, rate = run.what.split()
    part, _, layers = part.partition("-")
    name = scheme.removeprefix(CONVOLVED)
    change = {"change": convolved} if name != scheme else {}
    one = patch.dict(TASKS, {part: TASKS[part]._replace(num_layers=int(layers))}) if layers else nullcontext()
    config = preset("newer", learning_rate=float(rate))
    with one:
        model, found = trained(part, "none", run.seed, BUILD[name], config, **change)
    learned = [[round(x, 3) for x in p.flatten().tolist()] for name, p in model.named_parameters() if name.endswith(".learned")]
    return run._asdict() | {"found": found} | ({"learned": learned} if learned else {})


def main(folder: Path = FOLDER, table: Path = TABLE) -> None:
    carry_out("python tools/lab/third_round.py", CONFIG.as_json(), plan(), measure, folder, table)


if __name__ == "__main__":
    main()
