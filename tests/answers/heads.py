"""Answers to the exercises on the heads of a released model."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.answers import right, wrong


@right("heads.previous")
def previous_by_loop(weights: Tensor) -> Any:
    total: Any = 0.0
    for m in range(1, len(weights)):
        total += weights[m][m - 1]
    return total / (len(weights) - 1)


@right("heads.previous")
def previous_by_index(weights: Tensor) -> Any:
    m = torch.arange(1, len(weights))
    return weights[m, m - 1].mean()


@right("heads.previous")
def previous_in_numpy(weights: Tensor) -> Any:
    return np.diag(weights.numpy()[1:, :-1]).mean()


@wrong("heads.previous", "all queries")
def previous_zero_for_the_first(weights: Tensor) -> Any:
    return torch.cat((torch.zeros(1), weights.diagonal(-1))).mean()


@wrong("heads.previous", "looks at itself")
def previous_main_diagonal(weights: Tensor) -> Any:
    return weights.diag().mean()


@wrong("heads.previous", "You return 0 whatever")
def previous_transposed(weights: Tensor) -> Any:
    return weights.T.diagonal(-1).mean()


@wrong("heads.previous", "a sum")
def previous_total(weights: Tensor) -> Any:
    return sum(weights[m, m - 1] for m in range(1, len(weights)))


@right("heads.behind_equals")
def behind_by_mask(tokens: list[int], weights: Tensor) -> Any:
    ids = torch.tensor(tokens)
    which = torch.zeros(len(ids), len(ids), dtype=torch.bool)
    which[:, 1:] = ids[:, None] == ids[:-1]
    which &= torch.ones_like(which).tril(-1)
    asked = which.any(dim=1)
    return (weights * which).sum(dim=1)[asked].mean() if asked.any() else 0.0


@right("heads.behind_equals")
def behind_by_loops(tokens: list[int], weights: Tensor) -> Any:
    found = []
    for m, token in enumerate(tokens):
        keys = [n + 1 for n, other in enumerate(tokens[: max(m - 1, 0)]) if other == token]
        if keys:
            found.append(sum(weights[m, n].item() for n in keys))
    return np.mean(found) if found else 0


def _where(tokens: list[int], weights: Tensor, counts: Any, own: int = 0) -> float:
    """The mean over the queries with keys that count."""
    keys = [[n for n in range(m + own) if counts(m, n)] for m in range(len(tokens))]
    found = [float(weights[m, some].sum()) for m, some in enumerate(keys) if some]
    return sum(found) / max(len(found), 1)


@right("heads.behind_equals")
def behind_by_keys(tokens: list[int], weights: Tensor) -> Any:
    return _where(tokens, weights, lambda m, n: n and tokens[n - 1] == tokens[m])


@wrong("heads.behind_equals", "themselves")
def behind_equals_equal(tokens: list[int], weights: Tensor) -> Any:
    return _where(tokens, weights, lambda m, n: tokens[n] == tokens[m])


@wrong("heads.behind_equals", "own key")
def behind_equals_its_own_key(tokens: list[int], weights: Tensor) -> Any:
    return _where(tokens, weights, lambda m, n: n and tokens[n - 1] == tokens[m], own=1)


@wrong("heads.behind_equals", "right *before*")
def behind_equals_before(tokens: list[int], weights: Tensor) -> Any:
    return _where(tokens, weights, lambda m, n: n + 1 < m and tokens[n + 1] == tokens[m])


@wrong("heads.behind_equals", "all queries")
def behind_equals_all_queries(tokens: list[int], weights: Tensor) -> Any:
    return sum(float(weights[m, n]) for m in range(len(tokens)) for n in range(1, m) if tokens[n - 1] == tokens[m]) / len(
        tokens
    )
