"""The training loop: one seed, one history; the same batches for every scheme; the norm before the clip; and it learns."""

import math
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from posenc_course.naive import BinaryPositions
from posenc_course.schemes import PositionScheme
from posenc_course.training import History, train, warm_up_and_cosine
from posenc_course.transformer import Encoder

VOCAB, LENGTH = 5, 6


def first_token_everywhere(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A task that needs positions: each output names the first token."""
    tokens = torch.randint(VOCAB, (16, LENGTH), generator=generator)
    return tokens, tokens[:, :1].expand(-1, LENGTH)


def encoder(scheme: PositionScheme | None = None) -> Encoder:
    torch.manual_seed(0)
    return Encoder(VOCAB, 16, 2, 1, scheme)


def test_one_seed_one_history_and_another_seed_another() -> None:
    def run(seed: int) -> History:
        return train(encoder(), first_token_everywhere, steps=3, seed=seed)

    assert run(0) == run(0)
    assert run(0) != run(1)


@pytest.mark.parametrize("scheme", [PositionScheme(), BinaryPositions(16, num_bits=3)])
def test_every_scheme_sees_the_same_batches(scheme: PositionScheme) -> None:
    """Whatever the model samples (dropout, say), the batches come from their own generator."""
    seen = []

    def recording(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        seen.append(first_token_everywhere(generator))
        return seen[-1]

    torch.rand(len(scheme.state_dict()) + 7)  # the global generator is in any state
    train(encoder(scheme), recording, steps=3, seed=4)
    generator = torch.Generator().manual_seed(4)
    for tokens, _ in seen:
        assert torch.equal(tokens, first_token_everywhere(generator)[0])
    assert not torch.equal(seen[0][0], seen[1][0])


def test_first_step_against_autograd() -> None:
    """The loss is the mean cross-entropy in nats; the norm is the whole gradient's, before clipping."""
    model = encoder()
    inputs, targets = first_token_everywhere(torch.Generator().manual_seed(0))
    loss = F.cross_entropy(model(inputs).flatten(end_dim=1), targets.flatten())
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    norm = math.sqrt(sum(gradient.square().sum().item() for gradient in gradients))
    for clip in (norm / 1000, math.inf):
        history = train(encoder(), first_token_everywhere, steps=1, clip=clip)
        assert history.losses == pytest.approx([loss.item()], rel=1e-6)
        assert history.gradient_norms == pytest.approx([norm], rel=1e-5)


def test_clipping_bounds_what_the_optimizer_gets() -> None:
    model, clip = encoder(), 0.01
    assert train(model, first_token_everywhere, steps=1, clip=clip).gradient_norms[0] > clip
    left = sum(p.grad.square().sum().item() for p in model.parameters() if p.grad is not None)
    assert math.sqrt(left) == pytest.approx(clip, rel=1e-3)


def test_loss_falls_only_with_positions() -> None:
    """With positions the task is learned; without, an encoder cannot know which token is first. log 5 is guessing."""
    with_positions = train(encoder(BinaryPositions(16, num_bits=3)), first_token_everywhere, steps=100, learning_rate=1e-2)
    without = train(encoder(), first_token_everywhere, steps=100, learning_rate=1e-2)
    assert with_positions.losses[0] > 1.3
    assert max(with_positions.losses[-10:]) < 0.2
    assert min(without.losses[-10:]) > 0.8


def test_tokens_with_target_minus_100_do_not_count() -> None:
    def last_only(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        tokens, targets = first_token_everywhere(generator)
        return tokens, torch.where(torch.arange(LENGTH) == LENGTH - 1, targets, -100)

    tokens, targets = last_only(torch.Generator().manual_seed(0))
    expected = F.cross_entropy(encoder()(tokens)[:, -1], targets[:, -1]).item()
    assert train(encoder(), last_only, steps=1).losses == pytest.approx([expected], rel=1e-6)


def test_schedule_multiplies_the_learning_rate() -> None:
    schedule = warm_up_and_cosine(100, 10, floor=0.1)
    factors = [schedule(step) for step in range(100)]
    assert factors[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert factors[10] == 1
    assert all(later <= earlier for earlier, later in pairwise(factors[9:]))
    assert factors[55] == pytest.approx(0.55)  # half way down, at the mean of 1 and the floor
    assert 0.1 < factors[-1] < 0.101
    assert warm_up_and_cosine(100, 10)(55) == pytest.approx(0.525)  # its own floor is 0.05
    constant = train(encoder(), first_token_everywhere, steps=3, learning_rate=5e-4, schedule=lambda step: 2.0)
    assert constant == train(encoder(), first_token_everywhere, steps=3, learning_rate=1e-3)
    assert constant != train(encoder(), first_token_everywhere, steps=3, learning_rate=1e-3, schedule=lambda step: step + 1)


def test_progress_is_told_every_step() -> None:
    told: list[tuple[int, float]] = []
    history = train(encoder(), first_token_everywhere, steps=3, progress=lambda step, loss: told.append((step, loss)))
    assert told == list(enumerate(history.losses))
