"""Answers to the exercises on the heads of a released model."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

# ── the token before ─────────────────────────────────────────────────────────────────────────────────────────────────────


def previous_by_loop(weights: Tensor) -> Any:
    total: Any = 0.0
    for m in range(1, len(weights)):
        total += weights[m][m - 1]
    return total / (len(weights) - 1)


def previous_by_index(weights: Tensor) -> Any:
    m = torch.arange(1, len(weights))
    return weights[m, m - 1].mean()


def previous_in_numpy(weights: Tensor) -> Any:
    return np.diag(weights.numpy()[1:, :-1]).mean()


# ── the shares of pairs ──────────────────────────────────────────────────────────────────────────────────────────────────


def shares_by_loop(q: Tensor, k: Tensor) -> Any:
    variances = []
    for i in range(len(q) // 2):
        part = k[:, 2 * i] * q[2 * i] + k[:, 2 * i + 1] * q[2 * i + 1]
        variances.append(((part - part.mean()) ** 2).mean())
    return torch.stack(variances) / sum(variances)


def shares_in_numpy(q: Tensor, k: Tensor) -> Any:
    parts = (k.numpy() * q.numpy()).reshape(len(k), -1, 2).sum(axis=2)
    return parts.var(axis=0) / parts.var(axis=0).sum()


def shares_by_complex(q: Tensor, k: Tensor) -> Any:
    a, b = (torch.view_as_complex(x.contiguous().unflatten(-1, (-1, 2))) for x in (q, k))
    variances = (a * b.conj()).real.var(dim=0, correction=0)
    return (variances / variances.sum()).tolist()


def shares_by_covariance(q: Tensor, k: Tensor) -> Any:
    """The variance of q·k is qᵀ C q, with the covariance of the two channels."""
    pairs = k.reshape(len(k), -1, 2)
    centred = pairs - pairs.mean(dim=0)
    covariances = torch.einsum("nia,nib->iab", centred, centred)
    variances = torch.einsum("ia,iab,ib->i", q.reshape(-1, 2), covariances, q.reshape(-1, 2))
    return variances / variances.sum()


# ── behind equal tokens ──────────────────────────────────────────────────────────────────────────────────────────────────


def behind_by_mask(tokens: list[int], weights: Tensor) -> Any:
    ids = torch.tensor(tokens)
    which = torch.zeros(len(ids), len(ids), dtype=torch.bool)
    which[:, 1:] = ids[:, None] == ids[:-1]
    which &= torch.ones_like(which).tril(-1)
    asked = which.any(dim=1)
    return (weights * which).sum(dim=1)[asked].mean() if asked.any() else 0.0


def behind_by_loops(tokens: list[int], weights: Tensor) -> Any:
    found = []
    for m, token in enumerate(tokens):
        keys = [n + 1 for n, other in enumerate(tokens[: max(m - 1, 0)]) if other == token]
        if keys:
            found.append(sum(weights[m, n].item() for n in keys))
    return np.mean(found) if found else 0


def behind_by_followers(tokens: list[int], weights: Tensor) -> Any:
    """Remembers, for each token, what has come after it."""
    followers: dict[int, list[int]] = {}
    total: Any = 0.0
    asked = 0
    for m, token in enumerate(tokens):
        if keys := [n for n in followers.get(token, []) if n < m]:
            total, asked = total + weights[m, keys].sum(), asked + 1
        if m + 1 < len(tokens):
            followers.setdefault(token, []).append(m + 1)
    return total / asked if asked else total


def behind_without_repeats(tokens: list[int], weights: Tensor) -> Any:
    """nan if no token comes twice."""
    ids = np.array(tokens)
    which = np.tril(np.hstack((np.zeros((len(ids), 1), dtype=bool), ids[:, None] == ids[None, :-1])), -1)
    asked = which.any(axis=1)
    return (weights.numpy() * which).sum(axis=1)[asked].sum() / asked.sum() if asked.any() else float("nan")


RIGHT: dict[str, list[Any]] = {
    "heads.previous": [previous_by_loop, previous_by_index, previous_in_numpy],
    "heads.pair_shares": [shares_by_loop, shares_in_numpy, shares_by_complex, shares_by_covariance],
    "heads.behind_equals": [behind_by_mask, behind_by_loops, behind_by_followers],
}

WRONG: dict[str, list[Any]] = {
    "heads.previous": [
        ("zero for the first", lambda weights: torch.cat((torch.zeros(1), weights.diagonal(-1))).mean(), "all queries"),
        ("main diagonal", lambda weights: weights.diag().mean(), "looks at itself"),
        ("transposed", lambda weights: weights.T.diagonal(-1).mean(), "above the main one"),
        ("total", lambda weights: sum(weights[m, m - 1] for m in range(1, len(weights))), "a sum"),
        ("wraps around", lambda weights: np.mean([weights[m, m - 1] for m in range(len(weights))]), "all queries"),
        ("nothing", lambda weights: None, "return"),
    ],
    "heads.pair_shares": [
        ("second moments", lambda q, k: _normed((k * q).reshape(len(k), -1, 2).sum(dim=2).pow(2).sum(dim=0)), "mean squares"),
        ("deviations", lambda q, k: _normed((k * q).reshape(len(k), -1, 2).sum(dim=2).std(dim=0)), "standard deviations"),
        ("not shared", lambda q, k: (k * q).reshape(len(k), -1, 2).sum(dim=2).var(dim=0), "Divide them by their sum"),
        ("halves", lambda q, k: _normed((k * q).reshape(len(k), 2, -1).sum(dim=1).var(dim=0)), "neighbours"),
        ("per channel", lambda q, k: _normed((k * q).var(dim=0)), "shape"),
        ("in percent", lambda q, k: 100 * shares_by_loop(q, k), None),
        ("by the score", lambda q, k: (k * q).reshape(len(k), -1, 2).sum(dim=2).var(dim=0) / (k @ q).var(), "whole score"),
    ],
    "heads.behind_equals": [
        ("not a number", behind_without_repeats, "divide by zero"),
        ("equal", lambda tokens, weights: _where(tokens, weights, lambda m, n: tokens[n] == tokens[m]), "themselves"),
        ("its own key", lambda tokens, weights: _where(tokens, weights, lambda m, n: n and tokens[n - 1] == tokens[m], own=1),
         "own key"),
        ("before", lambda tokens, weights: _where(tokens, weights, lambda m, n: n + 1 < m and tokens[n + 1] == tokens[m]),
         "right *before*"),
        ("all queries", lambda tokens, weights: sum(
            float(weights[m, n]) for m in range(len(tokens)) for n in range(1, m) if tokens[n - 1] == tokens[m]) / len(tokens),
         "all queries"),
        ("nothing", lambda tokens, weights: None, "return"),
    ],
}  # fmt: skip


def _normed(values: Tensor) -> Tensor:
    return values / values.sum()


def _where(tokens: list[int], weights: Tensor, counts: Any, own: int = 0) -> float:
    """The mean over the queries with keys that count."""
    keys = [[n for n in range(m + own) if counts(m, n)] for m in range(len(tokens))]
    found = [float(weights[m, some].sum()) for m, some in enumerate(keys) if some]
    return sum(found) / max(len(found), 1)
