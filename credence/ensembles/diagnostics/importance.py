"""Importance weights of draws from another law: are they to be trusted, and how far is it?"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics._checks import finite

MIN_DRAWS = 25
"""Pareto smoothing needs so many draws."""
MOST_PARETO_K = 0.7
"""Pareto k above which weighted means are off by far more than their standard errors say."""


class Smoothed(NamedTuple):
    """Weights of sum one, and the tail index of the raw ones."""

    weights: Float[np.ndarray, " draw"]
    pareto_k: float


def pareto_smoothed(log_ratios: Float[np.ndarray, " draw"]) -> Smoothed:
    """Pareto-smoothed importance weights (ArviZ's).

    Vehtari, Simpson, Gelman, Yao & Gabry, "Pareto smoothed importance sampling" (2024): the largest
    weights are replaced by quantiles of the generalised Pareto law fitted to them, whose shape k
    tells how many moments the weights have: above .7 do not trust them. Weights so far apart that
    the fit breaks down, as where all but one are zero, have k infinite; weights that are all the
    same have k minus infinity, for there is nothing to mistrust.

    Args:
        log_ratios: log density of the target less that of the law drawn from, in nats.
    Raises:
        ValueError: for fewer than 25 draws, or values that are not finite.
    """
    from arviz_stats.base.array import array_stats

    finite("log_ratios", log_ratios)
    if len(log_ratios) < MIN_DRAWS:
        raise ValueError(
            f"Pareto smoothing needs at least {MIN_DRAWS} draws, got {len(log_ratios)}."
        )
    log_ratios = np.asarray(log_ratios, float)
    if np.ptp(log_ratios) < 1e-9:
        return Smoothed(np.full(len(log_ratios), 1 / len(log_ratios)), -np.inf)
    try:
        with np.errstate(all="ignore"):
            log_weights, pareto_k = array_stats.psislw(-log_ratios)
    except ValueError:  # a tail of equal values, where one draw has all the weight
        log_weights, pareto_k = log_ratios, np.inf
    if not (np.all(np.isfinite(log_weights)) and np.isfinite(pareto_k)):
        log_weights, pareto_k = log_ratios, np.inf
    weights = np.exp(log_weights - np.max(log_weights))
    return Smoothed(weights / weights.sum(), float(pareto_k))


def hellinger(log_ratios: Float[np.ndarray, " draw"]) -> float:
    """Hellinger distance, 0 to 1, between the law drawn from, p, and another, q.

        d^2 = 1 - E sqrt(q / p),    E under p, q / p normalised by its own mean.

    Args:
        log_ratios: log q - log p of draws from p, up to a constant, in nats.
    Too small where q is large and p has no draws: neither law knows of the other's modes.
    """
    finite("log_ratios", log_ratios)
    ratios = np.exp(log_ratios - np.max(log_ratios))
    affinity = np.mean(np.sqrt(ratios)) / np.sqrt(np.mean(ratios))
    return float(np.sqrt(max(1 - affinity, 0.0)))
