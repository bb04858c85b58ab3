"""Importance weights of draws from another law: are they to be trusted, and how far is it?"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics._checks import finite

MIN_DRAWS = 25
"""Pareto smoothing needs so many draws."""
MOST_PARETO_K = 0.7
"""Pareto k above which weighted means are off by far more than their standard errors say."""

SAME = 1e-4
"""Log ratios no further apart are rounding, nats: they move no mean by more than its ten thousandth
part, and their tail is that of single precision."""
LEAST_WORTH = 0.2
"""Share of the draws that weights must be worth where no law of their tail can be fitted."""


class Smoothed(NamedTuple):
    """Weights of sum one, and the tail index of the raw ones."""

    weights: Float[np.ndarray, " draw"]
    pareto_k: float


def pareto_smoothed(log_ratios: Float[np.ndarray, " draw"]) -> Smoothed:
    """Pareto-smoothed importance weights (ArviZ's).

    Vehtari, Simpson, Gelman, Yao & Gabry, "Pareto smoothed importance sampling" (2024): the largest
    weights are replaced by quantiles of the generalised Pareto law fitted to them, whose shape k
    tells how many moments the weights have: above .7 do not trust them. Weights that are the same
    but for rounding have k minus infinity, for there is nothing to mistrust. Equal ones among the
    largest, of chains that stood still, have no such law: they stay as they are, with k infinite
    where all together are worth less than a fifth of the draws, else minus infinity.

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
    if np.ptp(log_ratios) < SAME:
        return Smoothed(normalised(log_ratios), -np.inf)
    try:
        with np.errstate(all="ignore"):
            log_weights, pareto_k = array_stats.psislw(-log_ratios)
    except ValueError:  # a tail of equal values
        return _unsmoothed(log_ratios)
    is_fitted = np.all(np.isfinite(log_weights)) and np.isfinite(pareto_k)
    if not is_fitted or (pareto_k > MOST_PARETO_K and _is_tied(log_ratios)):
        return _unsmoothed(log_ratios)
    return Smoothed(normalised(log_weights), float(pareto_k))


def _is_tied(log_ratios: Float[np.ndarray, " draw"]) -> bool:
    """Whether most of the largest, to which a law is fitted, are equal to others of them."""
    num = len(log_ratios)
    tail = np.sort(log_ratios)[-int(np.ceil(min(num / 5, 3 * num**0.5))) :]
    return len(np.unique(tail)) < len(tail) / 2


def _unsmoothed(log_ratios: Float[np.ndarray, " draw"]) -> Smoothed:
    """The weights as they are; to be mistrusted where they are worth few draws."""
    weights = normalised(log_ratios)
    is_worth_few = 1 / np.sum(weights**2) < LEAST_WORTH * len(weights)
    return Smoothed(weights, np.inf if is_worth_few else -np.inf)


def normalised(log_weights: Float[np.ndarray, " draw"]) -> Float[np.ndarray, " draw"]:
    """Weights of sum one from their logarithms, up to a constant."""
    weights = np.exp(log_weights - np.max(log_weights))
    return weights / weights.sum()


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
