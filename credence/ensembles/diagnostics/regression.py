"""Scores of predicted numbers, intervals and distributions; y is [point] or [point, target].

Several targets are scored one by one and the scores averaged, as scikit-learn does.
`sample_weight` weighs the points. Values that are not finite are refused with a ValueError.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics._checks import finite, point_mean, same_shape


class PITSummary(NamedTuple):
    """How far values of the probability integral transform are from uniform.

    Attributes:
        ks_distance: largest distance between their distribution function and the uniform one.
        p_value: of that distance (Kolmogorov-Smirnov), were the values independent and uniform.
        mean: 0.5 if unbiased; above if the predictions are too low.
        std: 0.289 = 1/sqrt(12) if calibrated; above if the predicted spread is too small.
    """

    ks_distance: float
    p_value: float
    mean: float
    std: float


def rmse(
    prediction: Float[np.ndarray, "point *target"],
    y: Float[np.ndarray, "point *target"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Root mean squared error, in units of y."""
    prediction, y = same_shape(prediction=prediction, y=y)
    return float(np.sqrt(point_mean((prediction - y) ** 2, sample_weight)).mean())


def mae(
    prediction: Float[np.ndarray, "point *target"],
    y: Float[np.ndarray, "point *target"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Mean absolute error, in units of y; the best constant prediction is the median."""
    prediction, y = same_shape(prediction=prediction, y=y)
    return float(point_mean(abs(prediction - y), sample_weight).mean())


def nll(
    log_density: Float[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Mean of minus the log predictive density at the truth, in nats per point.

    The density is that of the ensemble (log of the MEAN over members) and of y in its own units;
    -inf is allowed and makes the score infinite. For class probabilities use `log_loss`.
    """
    log_density = np.asarray(log_density, dtype=np.float64)
    finite("log_density", np.where(log_density == -np.inf, 0.0, log_density))
    return float(-point_mean(log_density, sample_weight))


def interval_coverage(
    lower: Float[np.ndarray, "point *target"],
    upper: Float[np.ndarray, "point *target"],
    y: Float[np.ndarray, "point *target"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Share of truths inside their intervals, end points included."""
    lower, upper, y = same_shape(lower=lower, upper=upper, y=y)
    _check_ordered(lower, upper)
    return float(point_mean((lower <= y) & (y <= upper), sample_weight).mean())


def mean_interval_width(
    lower: Float[np.ndarray, "point *target"],
    upper: Float[np.ndarray, "point *target"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Mean of upper - lower, in units of y."""
    lower, upper = same_shape(lower=lower, upper=upper)
    _check_ordered(lower, upper)
    return float(point_mean(upper - lower, sample_weight).mean())


def pit_summary(pit: Float[np.ndarray, "point *target"]) -> PITSummary:
    """Summary of PIT values F(y), F being the predictive distribution function at that point.

    All points share one fitted model, so on few training data the p-value is only a guide.
    """
    from scipy.stats import kstest

    pit = finite("pit", pit).ravel()
    if pit.min() < 0 or pit.max() > 1:
        raise ValueError(
            f"pit runs from {pit.min():g} to {pit.max():g}, outside 0 .. 1: pass F(y), the "
            "predictive distribution function at the truth."
        )
    test = kstest(pit, "uniform")
    return PITSummary(
        float(test.statistic), float(test.pvalue), float(pit.mean()), float(pit.std())
    )


def _check_ordered(lower: Float[np.ndarray, "*shape"], upper: Float[np.ndarray, "*shape"]) -> None:
    if (lower > upper).any():
        raise ValueError(
            f"lower > upper in {np.count_nonzero(lower > upper)} intervals: swap the arguments."
        )
