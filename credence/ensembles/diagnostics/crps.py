"""Continuous ranked probability score, in units of y; smaller is better.

    CRPS(F, y) = ∫ (F(x) - 1{x >= y})² dx = E|X - y| - ½ E|X - X'|,   X, X' ~ F independent

Each function returns one number per point; their mean is the score of a data set. For a point
forecast it is the absolute error. Gneiting & Raftery (2007), J. Amer. Statist. Assoc. 102.
"""

import math

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics._checks import finite, member_shares

MAX_PAIRS = 1_000_000  # entries of a temporary array: 8 MB
TAIL = 8.5  # the Normal has no float64 mass beyond so many standard deviations


def crps_normal(
    mean: Float[np.ndarray, "*shape"],
    std: Float[np.ndarray, "*#shape"],
    y: Float[np.ndarray, "*shape"],
) -> Float[np.ndarray, "*shape"]:
    """CRPS of N(mean, std²); std = 0 gives |y - mean|."""
    mean, std, y = _checked(mean, std, y)
    return _mean_distance(y - mean, std) - std / math.sqrt(math.pi)


def crps_sample(
    draws: Float[np.ndarray, "member *shape"],
    y: Float[np.ndarray, "*shape"],
    member_weight: Float[np.ndarray, " member"] | None = None,
    *,
    fair: bool = True,
) -> Float[np.ndarray, "*shape"]:
    """CRPS estimated from draws of the predictive distribution (noise included).

        Σ w_i |x_i - y|  -  c Σ w_i x_(i) (2 W_i - w_i - 1),   W_i = w_1 + ... + w_i, x_(i) sorted

    Args:
        fair: True (c = 1 / (1 - Σ w²)) estimates, without bias if the draws are independent, the
            score of the distribution that was sampled (Ferro 2014). It needs two members and
            weights >= 0. False (c = 1) is the score of the draws themselves, larger by about
            1 / members of the spread. Weights may then be signed.
    """
    draws, y = finite("draws", draws), finite("y", y)
    _check_shape("draws[0]", draws[0], y)
    weight = member_shares(len(draws), member_weight)
    if fair and (weight.min() < 0 or np.count_nonzero(weight) < 2):
        raise ValueError(
            "the fair CRPS needs at least 2 members and weights >= 0: pass fair=False for the "
            "score of the weighted draws themselves."
        )
    draws = draws - y  # the score does not see where they lie, and rounding does
    order = np.argsort(draws, axis=0)
    x, w = np.take_along_axis(draws, order, axis=0), weight[order]
    spread = (w * x * (2 * np.cumsum(w, axis=0) - w - 1)).sum(axis=0)
    correction = 1 / (1 - weight @ weight) if fair else 1.0
    return np.tensordot(weight, abs(draws), axes=1) - correction * spread


def crps_normal_mixture(
    means: Float[np.ndarray, "member *shape"],
    stds: Float[np.ndarray, "member *#shape"],
    y: Float[np.ndarray, "*shape"],
    member_weight: Float[np.ndarray, " member"] | None = None,
) -> Float[np.ndarray, "*shape"]:
    """CRPS of the mixture Σ w_i N(means_i, stds_i²), exact to rounding, in bounded memory.

        Σ w_i A(y - μ_i, σ_i²) - ½ Σ w_i w_j A(μ_i - μ_j, σ_i² + σ_j²),   A(m, s²) = E|N(m, s²)|

    (Grimit, Gneiting, Berrocal & Johnson 2006). The double sum equals ∫ F (1 - F), so for many
    members whose spreads are alike it is summed on a grid instead: O(members) and not
    O(members²) per point. Weights may be signed.
    """
    means, stds, _ = _checked(means, stds, means)
    y = finite("y", y)
    _check_shape("means[0]", means[0], y)
    weight = member_shares(len(means), member_weight)
    points = zip(_by_point(means), _by_point(stds), y.ravel(), strict=True)
    scores = [weight @ _mean_distance(t - m, s) - _spread(m, s, weight) for m, s, t in points]
    return np.array(scores).reshape(y.shape)


def _by_point(values: Float[np.ndarray, "member *shape"]) -> Float[np.ndarray, "point member"]:
    return np.ascontiguousarray(values.reshape(len(values), -1).T)


def _spread(
    means: Float[np.ndarray, " member"],
    stds: Float[np.ndarray, " member"],
    weight: Float[np.ndarray, " member"],
) -> float:
    """½ E|X - X'| of the mixture, by whichever way costs less."""
    num_nodes = _num_nodes(means, stds)
    if num_nodes < len(means):
        return _spread_on_grid(means, stds, weight, int(num_nodes))
    return _spread_of_pairs(means, stds, weight)


def _spread_of_pairs(
    means: Float[np.ndarray, " member"],
    stds: Float[np.ndarray, " member"],
    weight: Float[np.ndarray, " member"],
) -> float:
    total = 0.0
    num_rows = max(1, MAX_PAIRS // len(means))
    for start in range(0, len(means), num_rows):
        rows = slice(start, start + num_rows)
        gap = means[rows, None] - means
        total += weight[rows] @ _mean_distance(gap, np.hypot(stds[rows, None], stds)) @ weight
    return float(total) / 2


def _num_nodes(means: Float[np.ndarray, " member"], stds: Float[np.ndarray, " member"]) -> float:
    """Nodes of a grid with step min(stds) / 2 over the whole support; infinite if a std is 0."""
    support = (means + TAIL * stds).max() - (means - TAIL * stds).min()
    return float(np.ceil(2 * support / stds.min())) + 1 if stds.min() > 0 else math.inf


def _spread_on_grid(
    means: Float[np.ndarray, " member"],
    stds: Float[np.ndarray, " member"],
    weight: Float[np.ndarray, " member"],
    num_nodes: int,
) -> float:
    """∫ F (1 - F) by the trapezoidal rule.

    The Fourier transform of the integrand falls like exp(-σ² ω² / 4), σ being the smallest std,
    so the rule's error at step h is of order exp(-π² σ² / h²): 1e-17 for h = σ / 2.
    """
    from scipy.special import ndtr

    low, high = (means - TAIL * stds).min(), (means + TAIL * stds).max()
    grid, step = np.linspace(low, high, num_nodes, retstep=True)
    num_rows = max(1, MAX_PAIRS // len(means))
    total = 0.0
    for start in range(0, num_nodes, num_rows):
        below = ndtr((grid[start : start + num_rows, None] - means) / stds) @ weight
        total += (below * (1 - below)).sum()
    return float(step * total)


def _mean_distance(
    mean: Float[np.ndarray, "*shape"], std: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """E|N(mean, std²)| = mean (2 Φ(mean/std) - 1) + 2 std φ(mean/std); |mean| if std = 0."""
    from scipy.special import ndtr

    z = mean / np.where(std > 0, std, 1)
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return np.where(std > 0, mean * (2 * ndtr(z) - 1) + 2 * std * density, abs(mean))


def _checked(
    mean: Float[np.ndarray, "*shape"],
    std: Float[np.ndarray, "*#shape"],
    y: Float[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    mean, std, y = finite("mean", mean), finite("std", std), finite("y", y)
    _check_shape("mean", mean, y)
    if std.min() < 0:
        raise ValueError(f"std must be >= 0, got {std.min():g}: pass standard deviations.")
    return mean, np.broadcast_to(std, mean.shape), y


def _check_shape(name: str, values: Float[np.ndarray, "..."], y: Float[np.ndarray, "..."]) -> None:
    if values.shape != y.shape:
        raise ValueError(f"{name} has shape {values.shape} and y {y.shape}: they must agree.")
