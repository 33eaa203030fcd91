"""How far a text that a model writes counts right, and what a model says is next."""

import torch

from posenc_course.experiment.recital import PROMPT
from posenc_course.experiment.recital import recital as recited
from posenc_course.transformer import Decoder


def wrong(text: str, start: int = 0) -> int | None:
    """Where the first wrong letter is, counted from 1, of a text that begins at byte `start` of the numbers."""
    correct = bytes(recited(len(text), start).tolist()).decode()
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
