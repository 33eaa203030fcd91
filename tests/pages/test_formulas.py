"""The formulas on the pages are true as written if their symbols mean what the package computes.

Each row names a page, a piece that finds one formula on it, how many equations of it are evaluated, and the values of the
symbols. A piece that ends in $ is the text before an inline formula, which is then evaluated whatever it says.
"""

import math
import re
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from posenc_course.alibi import alibi_bias, alibi_slopes
from posenc_course.attention import attention, attention_weights, causal_mask
from posenc_course.contextual import ForgettingPositions, ReflectedPositions
from posenc_course.geometry import norms, shift_matrix, similarity, wavelengths
from posenc_course.naive import normalized
from posenc_course.relative import t5_buckets
from posenc_course.rope import apply_rope, rope_tables
from posenc_course.rope_scaling import llama3, ntk_aware, position_interpolation, yarn_attention_factor
from posenc_course.sinusoidal import frequencies, sinusoidal_table
from posenc_course.temperature import llama4_factor, log_factor
from tests.pages import latex, pages
from tests.pages.latex import Names

RANDOM = np.random.default_rng(0)
D = 8
Q, K = RANDOM.normal(size=(2, D))
X, W_Q, W_K = RANDOM.normal(size=(40, D)), *RANDOM.normal(size=(2, D, D))
M, N, DELTA = 17.0, 5.0, 12.0


def pe(m: float, d: int = D) -> Any:
    return sinusoidal_table([m], d)[0].numpy()


def shift(offset: float) -> Any:
    return shift_matrix(offset, D).numpy()


def rope(angle: float) -> Any:
    """The matrix R of a position, which apply_rope multiplies by."""
    cos, sin = rope_tables([angle], frequencies(D), dtype=torch.float64)
    rows = torch.eye(D, dtype=torch.float64)[None, None]
    return torch.cat([apply_rope(rows[:, :, i : i + 1], cos, sin, interleaved=True)[0, 0] for i in range(D)]).T.numpy()


def commuting() -> Any:
    """A matrix that commutes with every shift."""
    a, b = RANDOM.normal(size=(2, D // 2))
    blocks = [a[i] * np.eye(2) + b[i] * np.array([[0.0, 1.0], [-1.0, 0.0]]) for i in range(D // 2)]
    matrix = np.zeros((D, D))
    for i, block in enumerate(blocks):
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return matrix


OMEGA = frequencies(D).numpy()
TABLE: Names = {"PE": pe, "R": shift, "omega": OMEGA, "d": D, "m": M, "n": N, "Delta": DELTA, "i": 2.0, "number of i": D // 2}
ANGLES: Names = {"omega": 0.3, "m": 17.0, "n": 5.0, "Delta": 2.6, "varphi": 0.7}
BASE: Names = TABLE | {"base": 10_000.0, "lambda": wavelengths(D).numpy(), "lambda_last": wavelengths(D).numpy()[-1]}
SUMMED: Names = {"x": X, "p": sinusoidal_table(range(40), D).numpy(), "W_q": W_Q, "W_k": W_K, "M": W_Q.T @ W_K, "m": M, "n": N}
COMMUTING = commuting()
ROWS = np.stack([pe(m) for m in range(30)])
Q_PAIRS, K_PAIRS = (x[0::2] + 1j * x[1::2] for x in (Q, K))
ROTATED: Names = {"R": rope, "q": Q, "k": K, "m": M, "n": N, "Delta": M - N, "omega": OMEGA, "number of i": D // 2}


def rope_score(m: float, n: float, k: Any = K) -> float:
    cos, sin = rope_tables([m, n], frequencies(D), dtype=torch.float64)
    both = torch.tensor(np.stack((Q, k)))[None, None]
    rotated = apply_rope(both, cos, sin, interleaved=True)[0, 0]
    return float(rotated[0] @ rotated[1])


def alibi() -> Names:
    q, k = RANDOM.normal(size=(2, 20, D))
    slopes = alibi_slopes(4)
    scores = q @ k.T / D**0.5 + alibi_bias(range(20), range(20), slopes, dtype=torch.float64)[0, 1].numpy()
    return {"score": lambda m, n: scores[int(m), int(n)], "q": q, "k": k, "s": float(slopes[1]), "m": M, "n": N, "d_head": D}


def forgetting() -> Names:
    """Scores with forget gates, and without the softmax the state of the recurrence; its vectors are columns."""
    scheme, x = ForgettingPositions(D, 1).double(), torch.tensor(RANDOM.normal(size=(1, 20, D)))
    with torch.no_grad():
        p = scheme.locate(x, torch.arange(20), None)
        bias = scheme.bias(x[:, None], p, p)[0, 0].numpy()
        f = scheme.gate(x)[0, :, 0].sigmoid().numpy()
    q, k, v = RANDOM.normal(size=(3, 20, D, 1))
    scores = np.einsum("mdi,ndi->mn", q, k) / D**0.5 + bias
    states = [sum(np.exp(bias[m, n]) * v[n] @ k[n].T for n in range(m + 1)) for m in range(20)]
    outputs = [sum(np.exp(bias[m, n]) * float(q[m, :, 0] @ k[n, :, 0]) * v[n] for n in range(m + 1)) for m in range(20)]
    return {
        "score": lambda m, n: scores[int(m), int(n)],
        "p": p[0, 0, :, 0].numpy(),
        "f": f,
        "S": states,
        "o": outputs,
        "m": M,
        "n": N,
        "d_head": D,
        "v": v,
        "q": q,
        "k": k,
    }


def reflected() -> Names:
    """The mirrors of 20 tokens, as matrices and as columns, and their products."""
    scheme, x = ReflectedPositions(D, 1).double(), torch.tensor(RANDOM.normal(size=(1, 20, D)))
    with torch.no_grad():
        P = scheme.locate(x, torch.arange(20), None)[0, 0].numpy()
        w = torch.nn.functional.normalize(scheme.mirror(x)[0], dim=-1).numpy()[..., None]
    H = np.concatenate((P[:1], P[1:] @ P[:-1].transpose(0, 2, 1)))
    return {"H": H, "P": P, "w": w, "I": np.eye(D), "l": 7.0, "m": M, "n": N, "q": X[:20], "k": X[20:]}


def reflected_score(m: float, n: float) -> float:
    """That of attention with this scheme, from the products of all mirrors up to the query and up to the key."""
    q, k, P = (torch.tensor(REFLECTED[name][round(at)])[None, None, None] for name, at in (("q", m), ("k", n), ("P", m)))
    rotated = ReflectedPositions(D, 1).rotate(q, k, P, torch.tensor(REFLECTED["P"][round(n)])[None, None, None])
    return float((rotated[0] * rotated[1]).sum()) / math.sqrt(D)


def delta_rule() -> Names:
    """A state that corrects what each key finds in it; its vectors are columns."""
    k, v = RANDOM.normal(size=(2, 20, D, 1))
    k, beta, states = k / np.linalg.norm(k, axis=1, keepdims=True), RANDOM.uniform(0, 2, size=20), [np.zeros((D, D))]
    for m in range(20):
        states.append(states[-1] + beta[m] * (v[m] - states[-1] @ k[m]) @ k[m].T)
    return {"S": states[1:], "beta": beta, "k": k, "v": v, "m": M, "I": np.eye(D)}


def values_rotated() -> Names:
    a, v = RANDOM.random((20, 6)), RANDOM.normal(size=(6, D))
    o = np.stack([a[m] @ np.stack([rope(n) @ v[n] for n in range(6)]) for m in range(20)])
    weight = latex.Late(lambda names: a[int(names["m"]), int(names["n"])])
    return {"R": rope, "o": o, "v": v, "a_mn": weight, "m": 3.0, "number of n": 6}


def summed_score(m: float, n: float) -> float:
    table = SUMMED["x"] + SUMMED["p"]
    return float((table[int(m)] @ W_Q.T) @ (table[int(n)] @ W_K.T))


def llama3_parts() -> Names:
    omega = frequencies(64).numpy()
    gamma = np.clip((512 * omega / (2 * np.pi) - 1) / (4 - 1), 0, 1)
    stretched = llama3(frequencies(64), 8.0, 512, fast=4.0, slow=1.0).numpy()
    return {"omega": omega, "gamma": gamma, "omega'": stretched, "s": 8.0, "i": float(np.argmax(gamma < 1))}


def nearest_share(s: float, k: int, length: int) -> float:
    bias = alibi_bias([length - 1], range(length), torch.tensor([s]), dtype=torch.float64)[0, 0, 0]
    return float(torch.softmax(bias, -1)[-k:].sum())


FORGETTING, REFLECTED = forgetting(), reflected()
ROWS_OF_X, *_PROJECTIONS = RANDOM.normal(size=(5, D)), *RANDOM.normal(size=(3, D, D))


def one_head(x: Any) -> Any:
    return attention(*(torch.tensor(x @ projection) for projection in _PROJECTIONS)).numpy()


ATTENTION: Names = {
    "attention": one_head,
    "X": ROWS_OF_X,
    "P": np.eye(5)[[3, 0, 4, 1, 2]],
    "d_head": D,
    **dict(zip("QKV", (ROWS_OF_X @ projection for projection in _PROJECTIONS), strict=True)),
}
T5: Names = {"E": 8.0, "S": 8.0, "D": 128.0}  # of 32 buckets, 16 are for the past, 8 of them single
PAIRS: Names = ROTATED | {"q": Q_PAIRS, "k": K_PAIRS, "varphi": np.angle(Q_PAIRS * K_PAIRS.conj())}
COMPLEX: Names = {"z_q": Q_PAIRS[0], "barz_k": K_PAIRS[0].conj(), "omega": OMEGA, "i": 0.0, "Delta": M - N}
MIXED = np.array([[math.cos(0.4), -math.sin(0.4)], [math.sin(1.3), math.cos(1.3)]])
SINGULAR: Names = {"theta": 0.4, "theta'": 1.3}
STRETCHES = [float(factor) for factor in np.linalg.svd(MIXED)[1]]
NTK_BASE = float(ntk_aware(frequencies(D), 8.0)[1]) ** (-D / 2)
FIRST = attention_weights(*torch.zeros(2, 40, D, dtype=torch.float64), mask=causal_mask(torch.arange(40), torch.arange(40)))[
    :, 0
].numpy()


def divisor() -> float:
    """By what attention divides a dot product, from its weights of two keys."""
    query, keys = RANDOM.normal(size=(1, D)), RANDOM.normal(size=(2, D))
    weights = attention_weights(torch.tensor(query), torch.tensor(keys))[0]
    return float((query @ (keys[0] - keys[1])).item() / (weights[0] / weights[1]).log())


def column(of: Any, *, interleaved: bool = True) -> int:
    """The column of the table that has this function of pair 2's angles."""
    table = sinusoidal_table(range(40), D, interleaved=interleaved).numpy()
    return int(abs(table - of(OMEGA[2] * np.arange(40.0))[:, None]).max(0).argmin())


def cell(at: Any) -> Any:
    return pe(at[0])[round(at[1])]


EACH: Names = {"m": np.arange(6)[:, None], "n": np.arange(6)[None, :]}
UNSEEN = attention_weights(*torch.zeros(2, 2, D), mask=torch.eye(2, dtype=torch.bool))[0, 1].log().item()
NORMALIZED = normalized([M], 40).item()
ANGLE = math.atan2(pe(M)[4], pe(M)[5])
SIMILAR: Names = TABLE | {"S": lambda by: float(similarity([by], D)[0])}
BLOCK: Names = {"cos": math.cos(0.6), "sin": math.sin(0.6)}
STRETCHED = float(OMEGA[2] / position_interpolation(frequencies(D), 8.0)[2])


def diluted(lead: float, *others: float) -> float:
    """The weight of the first of these keys."""
    return float(torch.softmax(torch.tensor([lead, *others], dtype=torch.float64), -1)[0])


LEAD: Names = {"a": 3.0, "n": 40.0}
SINK: Names = {"b": 1.5, "s": np.array([0.4, -1.0, 2.2]), "number of l": 3, "j": 2.0}


def averaged() -> Names:
    """The averages of 40 perpendicular tokens over windows of 16."""
    windows = np.array([np.eye(40)[max(m - 15, 0) : m + 1].mean(0) for m in range(40)])
    windows.flags.writeable = False  # the sine of two arguments would be written into the second
    return {"barx": windows, "cos": lambda x, y: x @ y / math.hypot(*x) / math.hypot(*y), "w": 16.0, "m": 30.0, "n": 25.0}


def overlapping(a: int, b: int, s: int, sigma: float) -> Names:
    """The averages of a and of b perpendicular tokens of length σ, with s of them in common."""
    tokens = sigma * np.eye(40)
    averages = {"barx": tokens[:a].mean(0), "bary": tokens[a - s :][:b].mean(0)}
    return averages | {"E": 1.0, "a": a, "b": b, "s": s, "sigma": sigma}


SO_FAR: Names = {"m": 30.0, "n": 25.0}
AVERAGES_SO_FAR = float(np.full(26, 1 / 26) @ np.full(31, 1 / 31)[:26] * math.sqrt(26 * 31))  # of perpendicular tokens
HALF_TURN = (39 / math.pi) ** (D / (D - 2))  # the base for which the slowest pair makes half a rotation in 40 tokens


def lead_for_half(n: int, sigma: float) -> float:
    """Among keys whose scores are normally distributed, with the exact mean of their exponentials."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    return math.log((n - 1) * weights @ np.exp(sigma * nodes) / weights.sum())


def velocity(t: float) -> float:
    return float(pe(t + 1e-4)[4] - pe(t - 1e-4)[4]) / 2e-4


STAIR = float(llama4_factor([8191])[0])  # on the first step, which ends at position 16,382
PENDULUM: Names = {"omega": OMEGA[2], "t": 7.0, "x": lambda t: pe(t)[4], "v": velocity}
MIX, SPLIT = RANDOM.normal(size=(D, 2)), {"x": 0.4, "p": -1.2}


class Formula(NamedTuple):
    page: str
    piece: str
    names: Names
    bare: Any = None  # what a part without a sign of equality is
    equations: tuple[int, ...] = ()  # which of its equations, if not all
    inline: bool = False


FORMULAS = [
    Formula("01_order", r"\frac{Q K^{\mathsf T}}{\sqrt", ATTENTION, equations=(3,)),
    Formula("01_order", r"\operatorname{attention}(PX)", ATTENTION),
    Formula("03_sinusoidal", r"\mathrm{PE}(m)_{2i} &= ", TABLE),
    Formula("03_sinusoidal", r"\omega_i = 10000^{-2i/d} = \left(", TABLE, equations=(0,)),
    Formula("04_pendulums", r"\sin \omega m \,\sin \omega n &+", ANGLES),
    Formula("04_pendulums", r"S(\Delta) = \sum_i \cos", TABLE | {"S": lambda by: float(similarity([by], D)[0])}),
    Formula("04_pendulums", r"0.7 \;\; 0.7", {}, pe(2024).round(1).prod()),  # read as a product
    Formula("deeper/04_pendulums", r"\omega \cos \omega t", PENDULUM),
    Formula("05_norm", r"W_{\text{word}}\, x", SPLIT | {"W": MIX, "W_word": MIX[:, 0], "W_position": MIX[:, 1]}),
    Formula("05_norm", r"= \sum_{i=0}^{d/2-1} (", TABLE),
    Formula("deeper/05_norm", r"= 2 \sqrt{\sum_i", TABLE),
    Formula("deeper/05_norm", r"\underbrace{\lVert \bar p", TABLE | {"barp": ROWS.mean(0), "L": 30, "number of m": 30}),
    Formula("05_norm", r"\frac{d/2}{d/2 + f^2", {"d": 8, "f": 1.7, "sigma": 0.6}),
    Formula("06_shift", r"\phantom{-}\cos\omega\Delta \cdot", ANGLES),
    Formula("06_shift", r"\begin{pmatrix} \sin \omega(m+\Delta)", ANGLES),
    Formula("06_shift", r"\mathrm{PE}(m + \Delta) = R(\Delta)", TABLE),
    Formula("06_shift", r"\sin(\omega m + \varphi)", ANGLES),
    Formula("06_shift", r"\sin\omega m\,\cos\omega n - ", ANGLES),
    Formula("06_shift", r"\underbrace{x_m^{\mathsf T} M x_n}", SUMMED | {"score": summed_score}),
    Formula("06_shift", r"M = W_q^{\mathsf T} W_k .", SUMMED | {"score": summed_score}),
    Formula("06_shift", r"p_{m+1}^{\mathsf T} M\, p_{n+1}", SUMMED | {"R": shift(1)}),
    Formula("06_shift", r"M R = R M", {"M": COMMUTING, "R": shift(3)}),
    Formula("07_base", r"\lambda_0 &= 2\pi", BASE),
    Formula("09_relative", r"\underbrace{x_m^{\mathsf T} M x_n}", SUMMED | {"score": summed_score}),
    Formula("09_relative", r"\left\lfloor S\,", T5 | {"Delta": 37.0}, int(t5_buckets([37], causal=False)[0])),
    Formula("09_relative", r"\left\lfloor S\,", T5 | {"Delta": 900.0}, int(t5_buckets([900], causal=False)[0])),
    Formula("10_rope", r"(R_n\, k)", ROTATED | {"score": rope_score}),
    Formula("10_rope", r"(R_m q)^{\mathsf T} R_n k", ROTATED, inline=True),
    Formula(
        "deeper/10_rope",
        r"a\cos\theta - b\sin\theta,\ ",
        {"a": Q[0], "b": Q[1], "theta": 3.0},
        rope(3.0)[:2, :2] @ Q[:2],
        inline=True,
    ),
    Formula(
        "deeper/10_rope",
        r"\bar z_k\, e^{\mathrm{i}\omega_i\Delta}",
        COMPLEX,
        float((rope(M) @ Q)[:2] @ (rope(N) @ K)[:2]),
        inline=True,
    ),
    Formula("10_rope", r"\sum_i |q_i|\,|k_i|", PAIRS | {"score": lambda by: rope_score(by, 0)}),
    Formula(
        "10_rope",
        r"\cos \omega_i (\Delta - \Delta_0)",
        PAIRS | {"score": lambda by: rope_score(by, 0, rope(4.0) @ Q), "Delta_0": 4.0},
    ),
    Formula("deeper/10_rope", r"R_m^{\mathsf T} o_m", values_rotated()),
    Formula("conventions", r"\det = \cos", {"theta": 0.4, "theta'": 1.3, "det": np.linalg.det(MIXED)}, MIXED),
    Formula("11_alibi", r"\text{score}(m, n) = \frac{q_m", alibi(), equations=(0,)),
    Formula("11_alibi", r"e^{a - s\Delta}", {"a": 0.8, "s": 0.25, "Delta": 7.0}),
    Formula("11_alibi", r"\frac{e^{a_n + c}}", {"a": RANDOM.normal(size=6), "n": 2.0, "c": 0.6, "number of j": 6}),
    Formula("11_alibi", r"\frac{1 - e^{-sk}}{1 - e^{-sL}}", {"s": 0.25, "k": 4.0, "L": 9.0}, nearest_share(0.25, 4, 9)),
    Formula("deeper/11_alibi", r"s\,n - s\,m", {"s": 0.25, "m": M, "n": N}),
    Formula("11_alibi", r"2^{-8h/H}", {"h": 3.0, "H": 8.0}, float(alibi_slopes(8)[2]), inline=True),
    Formula(
        "13_stretching",
        r"\frac{m}{s}\cdot\omega_i",
        TABLE | {"s": 8.0, "omega'": position_interpolation(frequencies(D), 8.0).numpy()},
    ),
    Formula(
        "13_stretching", r"s^{-i/(d/2-1)}", TABLE | {"s": 8.0, "omega'": ntk_aware(frequencies(D), 8.0).numpy()}, equations=(0,)
    ),
    Formula("13_stretching", r"s^{\,d/(d-2)}", {"s": 8.0, "d": D, "base": 10_000.0, "base'": NTK_BASE}),
    Formula("13_stretching", r"\gamma_i\,\omega_i + (1", llama3_parts(), equations=(0,)),
    Formula("14_layers", r"\cos(\bar x_m, \bar x_n)", averaged()),
    Formula("deeper/14_layers", r"\mathrm{E}[\bar x", overlapping(9, 4, 3, 1.7)),
    Formula(
        "15_contextual", r"H_m H_{m-1} \cdots", REFLECTED | {"n": M - 3, "cdots": 1.0, "d_head": D, "score": reflected_score}
    ),
    Formula("15_contextual", r"- (p_m - p_n), \\", FORGETTING | {"q": FORGETTING["q"][..., 0], "k": FORGETTING["k"][..., 0]}),
    Formula("15_contextual", r"S_m = f_m\, S_{m-1} + ", FORGETTING),
    Formula("15_contextual", r"H_l = I - 2 w_l", REFLECTED, inline=True),
    Formula("deeper/15_contextual", r"q_m^{\mathsf T} P_m P_n", REFLECTED, equations=(1,)),
    Formula("deeper/15_contextual", r"\left(I - \beta_m", delta_rule()),
    Formula("17_choosing", r"a_m = \frac{1}{m + 1}", {"a": FIRST, "m": M}),
    Formula("18_released", r"\cos(\varphi + 2\omega", {"omega": 0.3, "Delta_1": 4.0, "varphi": math.pi - 0.3 * 4}),
    Formula("conventions", r"B^{-2i/(d-2)}", {"B": 10_000.0, "i": 2.0, "d": D}),
    Formula("16_reach", r"p = \frac{e^a}", LEAD | {"p": diluted(3, *[0.0] * 39)}),
    Formula("16_reach", r"e^{a \ln n / \ln T}", LEAD | {"T": 32.0}),
    Formula("16_reach", r"e^{a \ln n / \ln T}", LEAD | {"T": 32.0, "a": 3.0, "n": 40.0}, math.exp(3 * log_factor([39], 32)[0])),
    Formula("16_reach", r"\frac{e^{s_j}}", SINK, diluted(2.2, 1.5, 0.4, -1.0)),
    Formula("16_reach", "it gets $", {"b": 1.5, "n": 40.0}, diluted(1.5, *[0.0] * 40)),
    Formula(
        "deeper/16_reach",
        r"n^{\gamma(1 - \rho)}",
        {"n": 40.0, "gamma": 2.5, "rho": 0.4},
        diluted(1.5 * math.log(40), *[0.0] * 39),
    ),
    Formula("deeper/16_reach", r"\rho(\Delta) = ", TABLE | {"rho": lambda by: float(similarity([by], D)[0]) / (D / 2)}),
    Formula("deeper/16_reach", r"\frac{e^{z}}{e^{b}", {"b": 1.5, "z": 0.7}),
    Formula("deeper/16_reach", r"\ln(n - 1) + ", {"n": 40.0, "sigma": 1.3}, lead_for_half(40, 1.3)),
    Formula("deeper/16_reach", r"\lfloor \frac{m + 1}{", {"m": 8191.0}, STAIR),
    Formula("deeper/16_reach", r"\lfloor \frac{m + 1}{", {"m": 16_382.0}, STAIR),
    Formula("glossary", "among $n$ keys has the weight $", LEAD, diluted(3, *[0.0] * 39)),
    Formula("glossary", "their dot product divided by $", {"d_head": D}, divisor()),
    Formula("glossary", "looks only at positions $", EACH, causal_mask(torch.arange(6), torch.arange(6)).numpy()),
    Formula("glossary", "all other scores are set to $", {"infty": math.inf}, UNSEEN),
    Formula("glossary", "changes nothing else: $", ATTENTION | {"f": one_head}),
    Formula("glossary", "doesn't change its output: $", ATTENTION | {"f": lambda x: one_head(x).mean(0)}),
    Formula("glossary", "### offset\n\n$", TABLE),
    Formula("glossary", "The *distance* is $", {"Delta": -DELTA}, -float(alibi_bias([N], [M], torch.ones(1)))),
    Formula("glossary", "of $L$ tokens, it adds $", {"m": M, "L": 40.0}, NORMALIZED),
    Formula("glossary", r"cosines of $", TABLE, ANGLE),
    Formula("glossary", "from 0 to $", {"d": D}, len(OMEGA) - 1),
    Formula("glossary", "at which a pair rotates, $", BASE),
    Formula("glossary", "full rotations per token is $", BASE, 1 / wavelengths(D)[2].item()),
    Formula("glossary", "for one full rotation, $", BASE),
    Formula("glossary", "### interleaved layout\n\nThe channels $", TABLE, column(np.sin)),
    Formula("glossary", "### interleaved layout\n\nThe channels $2i$ and $", TABLE, column(np.cos)),
    Formula("glossary", "The channels $i$ and $", TABLE, column(np.cos, interleaved=False)),
    Formula("glossary", "by which a wave $", {"omega": OMEGA[2], "m": M, "varphi": np.pi / 2}, pe(M)[5]),
    Formula("glossary", "is ahead of $", {"omega": OMEGA[2], "m": M}, pe(M)[4]),
    Formula("glossary", "a sine with the phase $", {}, np.arcsin(pe(0)[1])),
    Formula("glossary", "is the same as one of $", {"omega": 5.0}, np.angle(np.exp(5j))),  # the slowest that looks alike
    Formula("glossary", "The length of a vector, $", {"x": pe(M)}, norms([M], D).item()),
    Formula("glossary", "two rows of the table, $", SIMILAR),
    Formula("glossary", "the angle between them is $", SIMILAR, pe(M) @ pe(N) / (norms([M], D) * norms([N], D)).item()),
    Formula("glossary", "Δ positions later: $", TABLE),
    Formula("glossary", "a unit vector $w$, it's $", {"I": np.eye(D), "w": REFLECTED["w"][7]}, REFLECTED["H"][7]),
    Formula("glossary", "no difference, $", {"M": COMMUTING, "R": shift(3)}),
    Formula("glossary", "one nat is $", {}),
    Formula("glossary", "of a fair coin costs $", {}),
    Formula("glossary", "of a vector, as in $", TABLE, pe(M + DELTA)),
    Formula("glossary", "minus that of the key, $", TABLE),
    Formula("glossary", "Pair $i$ consists of columns $", TABLE, column(np.sin)),
    Formula("glossary", "Pair $i$ consists of columns $2i$ and $", TABLE, column(np.cos)),
    Formula("glossary", "each pair of a row by a block $", BLOCK, shift_matrix(0.6, 2).numpy()),
    Formula("glossary", "of a query or key by a block $", BLOCK, rope(0.6)[:2, :2]),
    Formula("glossary", "dot product, division by $", {"d_head": D}, divisor()),
    Formula("glossary", "| offset, $", TABLE, DELTA),
    Formula("glossary", "`offsets` | $", {"i": M, "j": N}, -DELTA),
    Formula("glossary", "pair, from 0 to $", {"d": D}, len(OMEGA) - 1),
    Formula("glossary", "| frequency, $", BASE, OMEGA[2]),
    Formula("glossary", "`inv_freq` |\n| $", TABLE, ANGLE),
    Formula("glossary", "| `angles` | $", TABLE | {"theta": OMEGA}, ANGLE),
    Formula("glossary", "| wavelength, $", BASE, wavelengths(D)[2].item()),
    Formula("glossary", "| the text, $", {"L": 40.0, "d": D}, X.shape),
    Formula("glossary", "matrix of the shift by Δ tokens, $", {"d": D}, shift(3).shape),
    Formula("glossary", "| similarity, $", TABLE, similarity([DELTA], D).item()),
    Formula("glossary", "| $M$ | $", SUMMED, np.einsum("ab,ac->bc", W_Q, W_K)),
    Formula("glossary", "| a permutation | | |\n| $", {"x": pe(M)}, norms([M], D).item()),
    Formula("glossary", "they are multiplied by | | $", {"d_model": 64.0}, 64**0.5),
    Formula("glossary", "projections stand on the right, $", ATTENTION | {"W_q": _PROJECTIONS[0]}),
    Formula("glossary", "$s$ {cite:p}`peng2024yarn`; $", {"L": 512.0, "L'": 4096.0}, STRETCHED),
    Formula("glossary", "| `attention_factor` | $", {"t": (0.1 * math.log(8) + 1) ** -2}, yarn_attention_factor(8.0)),
    Formula("glossary", "is the imaginary unit in $", {"omega": OMEGA[1], "Delta": DELTA}, complex(*rope(DELTA)[2:4, 2])),
    # Its index is a position and a column; pos is read as p·o·s.
    Formula("glossary", "a *column* in the Transformer paper's $", TABLE | {"PE": cell, "p": 1.0, "o": 1.0, "s": M}, pe(M)[4]),
    # In the running text
    Formula("02_naive", "What is left of a step is $", {"x": 0.7, "m": M}, 0.7 / 17 - 0.7 / 18),
    *(
        Formula(page, r"\sigma = 1/\sqrt d", {"sigma": D**-0.5, "d": D}, inline=True)
        for page in ("05_norm", "deeper/05_norm", "claims")
    ),
    Formula(
        "05_norm", "Position makes up $", {"f": 1.7, "sigma": 0.6}, float(norms([M], D)) ** 2 / (D / 2 + 1.7**2 * D * 0.6**2)
    ),
    Formula(
        "deeper/05_norm",
        "The squared length is then $",
        {"d": 7, "omega": float(frequencies(7)[-1]), "m": M},
        pe(M, 7) @ pe(M, 7),
    ),
    Formula("07_base", "there are $L - 1$ steps of $", BASE, OMEGA[-1]),
    Formula("07_base", "add up to exactly π, so $", {"d": D, "L": 40.0, "base": HALF_TURN}),
    Formula("11_alibi", "of the attention lies on the nearest $", {"s": 0.25, "p": nearest_share(0.25, 4, 1000)}, 4.0),
    Formula("14_layers", "and their similarity is $", SO_FAR, AVERAGES_SO_FAR),
    Formula("deeper/14_layers", "and the quotient is $", SO_FAR, AVERAGES_SO_FAR),
    Formula("16_reach", "by the share of the others, is $", LEAD, diluted(3, *[0.0] * 39) / (1 - diluted(3, *[0.0] * 39))),
    Formula("conventions", "the formula written as $", {"q": Q, "k": K, "b": 0.3, "d": D}, (Q @ K + 0.3) / D**0.5),
    Formula("deeper/13_stretching", "The slowest frequency is $", BASE, OMEGA[-1]),
    Formula("deeper/13_stretching", "divided by $s$.\nSo $", {"s": 8.0, "d": D, "base": 10_000.0, "base'": NTK_BASE}),
    Formula("deeper/16_reach", "That's because $", {"n": 40.0, "T": 32.0}),
    Formula("claims", r"\sqrt{d}\,X", {"d": D, "X": 0.4, "PE": -1.2}, D**0.5 * 0.4 - 1.2, inline=True),
    Formula("claims", "for even $k$ and $", {"k": 5.0, "n": D}, 2 * (5 // 2) / D),
    Formula("deeper/04_pendulums", "pairs averages to 0, since $", {"a": 0.4, "b": 1.3}),
    Formula("conventions", "product of the two squares is $", SINGULAR | {"det": math.prod(STRETCHES)}),
    Formula("conventions", "So the squares are $", SINGULAR, STRETCHES[0] ** 2),
    Formula("conventions", r"(\theta-\theta')|$ and $", SINGULAR, STRETCHES[1] ** 2),
    Formula("deeper/16_reach", "multiplies both query and key by $", {"s": 8.0}, yarn_attention_factor(8.0)),
    Formula("newer", "each query at position $m$ by $", {"m": 100.0}, float(log_factor([100], 64)[0])),
]


def text_of(name: str) -> str:
    path = pages.NOTEBOOKS.get(name)
    return pages.markdown(pages.read(path)) if path else pages.TEXTS[name].read_text("utf-8")


INLINE = r"(?<!\$)\$([^$\n]+)\$(?!\$)"


def places(formula: Formula, text: str) -> list[re.Match[str]]:
    if formula.piece.endswith("$"):
        return [*re.finditer(re.escape(formula.piece) + r"([^$\n]+)\$", text)]
    pattern = INLINE if formula.inline else r"\$\$(.*?)\$\$"
    return [place for place in re.finditer(pattern, text, re.DOTALL) if formula.piece in place[1]]


def found(formula: Formula, text: str) -> list[str]:
    return [place[1] for place in places(formula, text)]


def evaluated(formula: Formula, display: str) -> tuple[list[str], list[str]]:
    """The parts of a formula that are evaluated: equations, and the first part without a sign of equality."""
    parts = list(latex.equations(display))
    with_sign = [part for part in parts if re.search(r"=|\\approx", re.sub(r"_\{[^{}]*\}|\\text\{[^{}]*\}", "", part))]
    chosen = [with_sign[place] for place in formula.equations] if formula.equations else with_sign
    return chosen, [part for part in parts if part not in with_sign][: formula.bare is not None]


def problem(formula: Formula, part: str, *, bare: bool) -> str | None:
    """What is false in a part."""
    if not bare:
        return latex.false(part, dict(formula.names))
    with np.errstate(all="ignore"):
        (side,) = latex.sides(part, dict(formula.names))
    same = np.shape(side.value) == np.shape(formula.bare) and np.allclose(side.value, formula.bare, rtol=0, atol=1e-7)
    return None if same else f"{side.text} is {side.value}, and should be {formula.bare}"


# Displayed formulas that nothing here evaluates.
EXCUSED_DISPLAYS = {
    r"\int_{1/b}^{1}": "an approximation, which the page's figure compares with the sum",
    r"A(x - x') = x - x'": "what a map has to do",
    r"\max_i |h_{i+1} - h_i|": "a paper's bound, which the page computes",
    r"\sigma(q_m \cdot k_j)": "a paper's definition",
    r"I_{mn} = \sum_h w_m^{(h)}": "a paper's definition",
    r"b_{mn} = r_m^{\mathsf T} p_{m-n}": "a released model's bias, which test_models.py computes",
    r"f(\Delta_r) + g(\Delta_c)": "what it would be, for any f and g",
    r"\text{after} - \text{before}": "a definition",
}


@pytest.mark.parametrize("name", [*pages.NOTEBOOKS, *pages.TEXTS])
def test_every_displayed_formula_is_evaluated(name: str) -> None:
    text = text_of(name)
    evaluated_at = {place.span(1) for formula in FORMULAS if formula.page == name for place in places(formula, text)}
    left = [of[1] for of in re.finditer(r"\$\$(.*?)\$\$", text, re.DOTALL) if of.span(1) not in evaluated_at]
    missing = [formula for formula in left if not any(piece in formula for piece in EXCUSED_DISPLAYS)]
    assert not missing, f"{name}: nothing evaluates {missing}: add each to FORMULAS, or to EXCUSED_DISPLAYS with the reason"


def test_what_is_calculated_in_numbers_is_right() -> None:
    """Of all pages and assignments, the equations without any symbol."""
    texts = {name: pages.markdown(pages.read(path)) for name, path in pages.NOTEBOOKS.items()}
    texts |= {name: path.read_text("utf-8") for name, path in pages.TEXTS.items()}
    texts |= {str(path): path.read_text("utf-8") for path in (pages.ROOT / "text/source").glob("*.md")}
    right = 0
    for name, text in texts.items():
        for display, inline in re.findall(rf"\$\$(.*?)\$\$|{INLINE}", text, re.DOTALL):
            for part in latex.equations(display or inline):
                try:
                    false = latex.false(part, {})
                except (latex.Unreadable, ArithmeticError, IndexError, TypeError):
                    continue  # it has symbols
                assert not false, f"{name}: {part}\n{false}: correct it"
                right += "=" in part or "approx" in part
    assert right


CASES = pytest.mark.parametrize("formula", FORMULAS, ids=[f"{of.page}-{of.piece}" for of in FORMULAS])


@CASES
def test_formula_holds_as_it_stands(formula: Formula) -> None:
    displays = found(formula, text_of(formula.page))
    assert displays, (
        f"{formula.page} has no formula with {formula.piece}: correct the piece in {__file__}, or restore the formula"
    )
    for display in displays:
        equations, bare = evaluated(formula, display)
        assert equations or bare, f"{formula.page}: nothing of {display} can be evaluated"
        for part in [*equations, *bare]:
            false = problem(formula, part, bare=part in bare)
            assert not false, f"{formula.page}: {part}\n{false}: correct the formula, or, if the package is wrong, the package"
