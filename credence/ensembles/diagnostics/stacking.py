"""Leave-one-out scores of a model, and the weights that combine several models best."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics._checks import finite
from credence.ensembles.diagnostics.importance import MOST_PARETO_K, pareto_smoothed
from credence.ensembles.diagnostics.recalibration import LEAST_LEVEL


class LeaveOneOut(NamedTuple):
    """Log probability of each row under a model fitted to the others, and how reliable it is."""

    log_probs: Float[np.ndarray, " point"]
    """log p(y_i | all other rows), nats."""
    pareto_k: Float[np.ndarray, " point"]
    """Tail index of each row's importance weights; above 0.7 its log probability is not to be
    trusted."""

    @property
    def share_unreliable(self) -> float:
        """Share of the rows whose tail index is above 0.7."""
        return float(np.mean(~(self.pareto_k <= MOST_PARETO_K)))

    def mean(self) -> tuple[float, float]:
        """Mean log probability of a row and its standard error over rows, nats."""
        return mean_with_error(self.log_probs)


def mean_with_error(
    values: Float[np.ndarray, " point"], weight: Float[np.ndarray, " point"] | None = None
) -> tuple[float, float]:
    """The mean of independent values and its standard error; NaN for a single one.

    Args:
        weight: of the values, >= 0; None for equal ones. The square of the error is unbiased for
            values of one variance, whatever the weights.
    """
    values = np.asarray(values, float)
    share = np.full(len(values), 1 / len(values)) if weight is None else weight / np.sum(weight)
    mean = float(share @ values)
    if np.count_nonzero(share) < 2:
        return mean, float("nan")
    left = 1 - 2 * share + share @ share  # E (value - mean)^2 over the variance
    return mean, float(np.sqrt(np.sum((share * (values - mean)) ** 2 / left)))


def as_of_more(
    log_probs: Float[np.ndarray, "chain point"], num_chains: int
) -> Float[np.ndarray, " point"]:
    """Estimate what a mixture of more such chains gives each row: log mean probability, nats.

    Chains in modes of their own are the better the more of them predict together, and a few say too
    little of it. The bias of the logarithm of a mean falls as one over the number of chains, so
    the jackknife estimates it (Quenouille, "Notes on bias in estimation", 1956). No row gains more
    than the logarithm of how many times as many chains there are.

    Args:
        log_probs: log probability of every row by every chain, finite, nats.
        num_chains: of the mixture; at least as many as there are.
    """
    count = len(log_probs)
    found = log_mean(log_probs)
    if count < 2:
        return found
    without_one = [log_mean(np.delete(log_probs, chain, axis=0)) for chain in range(count)]
    gain = (count - 1) * (1 - count / num_chains) * (found - np.mean(without_one, axis=0))
    return found + np.minimum(gain, np.log(num_chains / count))


def excess_of_few(by_chain: Float[np.ndarray, "chain *value"], num_chains: int) -> float:
    """Estimate by how much the mean square error of the mean of some chains is above that of more.

    Args:
        by_chain: independent means, any unit.
        num_chains: of how many the mean will be; at least as many as there are.
    Returns:
        the mean over values, in squared units; 0 for a single chain, of which it is not known.
    """
    count = len(by_chain)
    if count < 2:
        return 0.0
    return float(np.var(by_chain, axis=0, ddof=1).mean()) * (1 / count - 1 / num_chains)


def log_mean(log_values: Float[np.ndarray, "one *rest"]) -> Float[np.ndarray, "*rest"]:
    """Take the logarithm of the mean over the first axis of values that are given as logarithms."""
    from scipy.special import logsumexp

    return logsumexp(log_values, axis=0) - np.log(len(log_values))


def leave_one_out(
    log_likelihood: Float[np.ndarray, "draw point"],
    weight: Float[np.ndarray, " point"] | None = None,
    draw_weight: Float[np.ndarray, " draw"] | None = None,
) -> LeaveOneOut:
    """Estimate p(y_i | all other rows) from draws of the posterior given all rows.

    Vehtari, Gelman & Gabry, "Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC" (2017), eq. (10): importance weights 1 / p(y_i | draw) (Gelfand, Dey
    & Chang, "Model determination using predictive distributions", 1992), by `pareto_smoothed`.
    Where all the weight is on draws that give a row nothing, its probability is the smallest.

    Args:
        log_likelihood: log p(y_i | draw), nats; rows must be independent given the draw.
        weight: how many observations a row stands for, > 0: it is left out with all of them, and
            its probability is that of one. None for one.
        draw_weight: how much each draw counts, >= 0, as where it is of another law than the
            posterior; None for equal ones.
    Raises:
        ValueError: for fewer than 25 draws that count, or values that are not finite.
    """
    finite("log_likelihood", log_likelihood)
    by_point = np.asarray(log_likelihood, float).T
    log_weight = 0.0
    if draw_weight is not None:
        counts = np.asarray(draw_weight) > 0
        by_point, log_weight = by_point[:, counts], np.log(np.asarray(draw_weight, float)[counts])
    weight = np.ones(len(by_point)) if weight is None else weight
    log_probs, pareto_k = np.empty(len(by_point)), np.empty(len(by_point))
    for point, log_prob in enumerate(by_point):
        weights, pareto_k[point] = pareto_smoothed(log_weight - weight[point] * log_prob)
        top = log_prob.max()
        mean = weights @ np.exp(log_prob - top)
        log_probs[point] = top + np.log(mean) if mean > 0 else log_prob.min()
    return LeaveOneOut(log_probs, pareto_k)


def stacking_weights(
    log_probs: Float[np.ndarray, "point model"],
    *,
    weight: Float[np.ndarray, " point"] | None = None,
    prior_rows: float = 0.0,
) -> Float[np.ndarray, " model"]:
    """Weights of models whose mixture gives rows they have not seen the highest probability.

    Yao, Vehtari, Simpson & Gelman, "Using stacking to average Bayesian predictive distributions"
    (2018), eq. (4), for the log score:

        maximise  sum_i log sum_k w_k p_k(y_i | other rows),    w >= 0, sum_k w_k = 1.

    The problem is concave. Each round multiplies a weight by its model's mean share of the
    mixture's density, which never lowers the sum; the search ends where the largest possible gain
    (nats per row) is below `LEAST_GAIN`.

    Args:
        log_probs: log p_k(y_i | other rows), nats.
        weight: how many observations each row stands for; None for one.
        prior_rows: as many rows more, of which all models are equally probable; a few keep weights
            that rest on few rows from 0 and 1.
    Raises:
        ValueError: for no rows or no models, values that are not finite, or a negative prior_rows.
    """
    finite("log_probs", log_probs)
    num_points, num_models = np.shape(log_probs)
    if not prior_rows >= 0:
        raise ValueError(f"prior_rows must be >= 0, got {prior_rows}; 1 is usual.")
    densities = np.exp(log_probs - np.max(log_probs, axis=1, keepdims=True))
    weights = np.full(num_models, 1 / num_models)
    weight = np.ones(num_points) if weight is None else weight
    rows = np.sum(weight) + prior_rows
    for _ in range(MOST_ROUNDS):
        shares = weights * (densities.T @ (weight / (densities @ weights)))
        new = (shares + prior_rows / num_models) / rows
        gain = np.max(new / np.maximum(weights, np.finfo(float).tiny)) - 1
        weights = new
        if gain <= LEAST_GAIN:
            break
    return weights / weights.sum()


MOST_ROUNDS = 100_000
LEAST_GAIN = 1e-6
"""Largest gain per row left on the table, nats."""


def mean_stacking_weights(
    errors: Float[np.ndarray, "value model"],
    excess: Float[np.ndarray, " model"],
    weight: Float[np.ndarray, " value"] | None = None,
) -> Float[np.ndarray, " model"]:
    """Weights of models whose means together predict rows that they have not seen with the least
    squared error.

    Breiman, "Stacked regressions" (1996), with weights that are >= 0 and sum to one: these
    minimise w' C w, where C has the mean products of two models' errors.

    Args:
        errors: of the means of rows that they have not seen, any unit.
        excess: by how much less each model's mean squared error will be where it predicts, because
            the mean of all chains varies less than that of a few.
        weight: how many observations each value stands for; None for one.
    Raises:
        ValueError: for values that are not finite.
    """
    from scipy.optimize import nnls

    finite("errors", errors)
    share = np.full(len(errors), 1 / len(errors)) if weight is None else weight / np.sum(weight)
    squares = errors.T @ (share[:, None] * errors)
    products = squares - np.diag(excess)
    values, vectors = np.linalg.eigh(products)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    # w' C w + s^2 (sum w - 1)^2 has, whatever s, its minimum over w >= 0 in the same direction
    size = np.sqrt(np.trace(squares)) or 1.0
    sums = np.full((1, len(products)), size)
    weights, _ = nnls(np.concatenate([root, sums]), np.append(np.zeros(len(root)), size))
    return weights / weights.sum()


LARGEST_SHAPE = 10.0
"""The shape of a mixture is never above it."""


def beta_shape(
    below: Float[np.ndarray, "chain point"],
    num_chains: int,
    *,
    weight: Float[np.ndarray, " point"] | None = None,
    prior_rows: float = 10.0,
) -> float:
    """The shape at which a beta-transformed mixture of chains gives rows that it has not seen the
    highest probability, at least 1 and at most `LARGEST_SHAPE`.

    Gneiting & Ranjan, "Combining predictive distributions" (2013), section 3.3, with both shapes
    of the beta law equal. A mixture of predictions that hold by themselves is too wide, never too
    narrow (their theorem 3.1), so the shape is not below 1: networks that are too sure stay as they
    are.

    The more chains a mixture has, the wider it is. So the shape is that of as many as predict,
    estimated from the few that have not seen a row, see `as_of_more`; a single one tells nothing of
    more.

    Args:
        below: each chain's probability of values below the truth; of a mixture as it is, one row.
        num_chains: of the mixture that is to be transformed; at least as many as there are.
        weight: how many observations each row stands for; None for one.
        prior_rows: acts as if so many more rows had been seen that a shape of 1 fits exactly; they
            keep a few rows from saying much.
    """
    from scipy.optimize import brentq
    from scipy.special import digamma

    finite("below", below)
    inside = np.clip(below, LEAST_LEVEL, 1 - LEAST_LEVEL)
    found = as_of_more(np.log(inside), num_chains) + as_of_more(np.log1p(-inside), num_chains)
    found = np.minimum(found, -2 * np.log(2))  # that of the median
    weight = np.ones(len(found)) if weight is None else weight
    wanted = (weight @ found - 2 * prior_rows) / (np.sum(weight) + prior_rows)

    def excess(shape: float) -> float:
        """Compare how much the truths are in the middle with what the beta law says."""
        return wanted - 2 * (digamma(shape) - digamma(2 * shape))

    if excess(1.0) <= 0:
        return 1.0
    if excess(LARGEST_SHAPE) >= 0:
        return LARGEST_SHAPE
    return float(brentq(excess, 1.0, LARGEST_SHAPE))
