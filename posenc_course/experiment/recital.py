"""A text that everyone knows by heart, for models to recite: the numbers from one to twenty in words, over and over.

When a model loses its place, you can hear it. Training windows begin anywhere in the text, so no number belongs to a position.
"""

from typing import Any

import torch
from torch import Tensor

from posenc_course._validation import checked
from posenc_course.transformer import Decoder

NUMBERS = (
    "one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen, "
    "seventeen, eighteen, nineteen, twenty, "
)
STARTS = [0, *(place + 2 for place, byte in enumerate(NUMBERS[:-2]) if byte == ",")]  # where a number begins
PROMPT = 24  # bytes that a model is given before it writes: at least two numbers


@checked(length="count: it counts bytes, e.g. 64", start="count >= 0: it counts bytes; 0 is the beginning of 'one'")
def recital(length: int, start: int = 0) -> Tensor:
    """The bytes of the numbers from one to twenty, over and over, from byte `start` on, int64 of shape (length,).

    Raises ValueError unless length is an integer >= 1 and start is an integer >= 0.
    """
    once = torch.tensor(list(NUMBERS.encode()))
    return once[(start + torch.arange(length)) % len(once)]


def write(model: Decoder, prompts: Tensor, length: int) -> Tensor:
    """Continue the prompts (n, bytes) to `length` bytes, (n, length), always with the byte that has the highest score.

    `length` counts the bytes of the prompts, too.
    """
    caches, written, new = model.new_caches(), [prompts], prompts
    with torch.inference_mode():
        for _ in range(length - prompts.shape[1]):
            new = model(new, caches=caches)[:, -1:].argmax(dim=-1)
            written.append(new)
    return torch.cat(written, dim=1)


def evaluate_recital(model: Decoder, trained_length: int) -> dict[str, Any]:
    """Measure how a model recites up to eight times its training length T, starting from each of the twenty numbers.

    Returns {"accuracy": {L: share}, "loss": {L: nats}, "by_position": [share], "wrote": [bytes]}:

    - accuracy and loss: of the next byte, given the right text, in the second half of L = T, 2T, 4T and 8T bytes.
    - by_position: the share of right bytes at each position.
    - wrote: for each number, how many bytes are right before the first wrong one when the model writes freely from there on,
      including the prompt; 8T if none is wrong.
    """
    T = trained_length
    text = torch.stack([recital(8 * T + 1, start) for start in STARTS]).to(model.embedding.weight.device)
    with torch.inference_mode():
        scores = torch.cat([model(some) for some in text[:, :-1].split(4)])
    right = (scores.argmax(dim=-1) == text[:, 1:]).double().mean(dim=0)
    losses = torch.nn.functional.cross_entropy(scores.transpose(1, 2), text[:, 1:], reduction="none").double().mean(dim=0)
    wrong = write(model, text[:, :PROMPT], 8 * T) != text[:, :-1]
    ends = {str(multiple * T): slice(multiple * T // 2, multiple * T) for multiple in (1, 2, 4, 8)}
    return {
        "accuracy": {length: round(right[half].mean().item(), 4) for length, half in ends.items()},
        "loss": {length: round(losses[half].mean().item(), 4) for length, half in ends.items()},
        "by_position": [round(share, 2) for share in right.tolist()],
        "wrote": [int(one.argmax()) if one.any() else 8 * T for one in wrong.int()],
    }
