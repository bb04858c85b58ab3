"""Predictions made to hold on rows that were not seen: conformal intervals, tempered probabilities.

A predictive interval holds as often as it says where the model is right. A conformal one holds
whatever the model is, on average over rows, as long as new rows come as the calibration rows did:
its ends are those between which the model put the truth of so many calibration rows.
"""

from typing import Any, NotRequired, TypedDict

import numpy as np
from jaxtyping import Float, Int

from credence.ensembles.diagnostics._checks import finite

MOST_KNOTS = 2000
"""Order statistics that are kept of many rows."""
FEWEST_ROWS = 39
"""Rows below which a conformal 95 % interval is infinite."""
ROUNDING = 1e-9
"""Share of a row by which a place may miss for floating-point numbers."""
LEAST_LEVEL = 1e-6
"""Smallest level of a quantile; beyond it single precision knows no probabilities."""
TEMPERATURES = (0.05, 20.0)
"""The least and the largest temperature that is tried."""


class Recalibration(TypedDict):
    """Holds what rows that the model had not seen say of its predictions, as JSON data."""

    num_rows: int
    least_level: NotRequired[float]
    """The smallest level that has a quantile, and the distance of the largest from 1 (regression);
    `LEAST_LEVEL` where it is not said."""
    places: NotRequired[list[float]]
    """Places of the kept values of `pit` among all rows in order, counted from 1 (regression): the
    weight of the rows up to there, where rows have a mean weight of 1."""
    pit: NotRequired[list[float]]
    """Probabilities that the model gave to values below the truth, ascending (regression)."""
    temperature: NotRequired[float]
    """The temperature of `best_temperature` (classification)."""


def from_pit(
    pit: Float[np.ndarray, " row"],
    *,
    weight: Float[np.ndarray, " row"] | None = None,
    least_level: float = LEAST_LEVEL,
) -> Recalibration:
    """Keep the probability integral transform of calibration rows, at most `MOST_KNOTS` of them.

    Args:
        weight: how many observations each row stands for; None for one. Only their ratios count.
        least_level: the smallest level that has a quantile, and the distance of the largest from 1.
    """
    finite("pit", pit)
    if weight is not None:
        pit, weight = pit[weight > 0], weight[weight > 0]
    order, count = np.argsort(pit, kind="stable"), len(pit)
    kept = np.unique(np.linspace(0, count - 1, min(count, MOST_KNOTS)).round().astype(int))
    places = np.arange(1.0, count + 1) if weight is None else np.cumsum(weight[order])
    return {
        "num_rows": count,
        "least_level": least_level,
        "places": (places * count / places[-1])[kept].tolist(),
        "pit": pit[order][kept].tolist(),
    }


def from_probabilities(
    probabilities: Float[np.ndarray, "row class"],
    y: Int[np.ndarray, " row"],
    weight: Float[np.ndarray, " row"] | None = None,
) -> Recalibration:
    """Find the temperature of calibration rows; arguments as of `best_temperature`."""
    finite("probabilities", probabilities)
    return {"num_rows": len(y), "temperature": best_temperature(probabilities, y, weight)}


def conformal_levels(found: Recalibration, coverage: float) -> tuple[float, float]:
    """Levels of the quantiles between which a new truth lies with at least this probability.

    Chernozhukov, Wuethrich & Zhu, "Distributional conformal prediction" (2021): a new row's
    probability integral transform is as likely to have any place among those of n calibration rows,
    so it is below the k-th smallest with probability k / (n + 1) at most; rows that stand for
    several count as often. Each tail has half of what the coverage leaves. Where the rows are too
    few for that, or the model thought so many of them impossible, the levels are 0 and 1: no finite
    interval is sure to hold. See `opened`.

    Args:
        coverage: between 0 and 1.
    """
    assert "places" in found, "of regression"
    assert "pit" in found, "beside its places"
    places, values = np.asarray(found["places"]), found["pit"]
    all_places = found["num_rows"] + 1
    place = all_places * (1 - coverage) / 2 + ROUNDING
    below = np.searchsorted(places, place, side="right") - 1
    above = np.searchsorted(places, all_places - place)
    low = values[below] if below >= 0 else 0.0
    high = values[above] if above < len(values) else 1.0
    least = found.get("least_level", LEAST_LEVEL)
    return (
        float(low) if low >= least else 0.0,
        float(high) if high <= 1 - max(least, np.finfo(float).eps) else 1.0,
    )


def closed(levels: tuple[float, float]) -> tuple[float, float]:
    """Move levels of 0 and 1 to some that have quantiles."""
    low, high = levels
    return low or LEAST_LEVEL, high if high < 1 else 1 - LEAST_LEVEL


def opened(values: Any, level: float) -> Any:
    """Put infinity in place of quantiles at levels of 0 and 1."""
    if 0 < level < 1:
        return values
    return np.full_like(values, np.inf if level else -np.inf)


def best_temperature(
    probabilities: Float[np.ndarray, "row class"],
    y: Int[np.ndarray, " row"],
    weight: Float[np.ndarray, " row"] | None = None,
) -> float:
    """Temperature at which the probabilities of rows that were not seen predict their labels best.

    Guo, Pleiss, Sun & Weinberger, "On calibration of modern neural networks" (2017), section 4.2:
    probabilities p become softmax(log p / T). Above 1 they were too sure, below 1 too modest.

    Args:
        probabilities: of the classes.
        y: labels, counted from 0.
        weight: how many observations each row stands for; None for one.
    """
    from scipy.optimize import minimize_scalar

    def loss(log_temperature: float) -> float:
        found = tempered(probabilities, float(np.exp(log_temperature)))
        own = found[np.arange(len(y)), y]
        logs = np.log(np.maximum(own, np.finfo(float).tiny))
        return -float(np.average(logs, weights=weight))

    bounds = tuple(np.log(TEMPERATURES))
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


def recalibrated(
    found: Recalibration, probabilities: Float[np.ndarray, "row class"]
) -> Float[np.ndarray, "row class"]:
    """Change class probabilities by the temperature that was found."""
    assert "temperature" in found, "of classification"
    return tempered(probabilities, found["temperature"])


def tempered(
    probabilities: Float[np.ndarray, "row class"], temperature: float
) -> Float[np.ndarray, "row class"]:
    """Change probabilities p to softmax(log p / temperature)."""
    logs = np.log(np.maximum(probabilities, np.finfo(float).tiny)) / temperature
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def checked(found: Recalibration, *, is_classifier: bool) -> Recalibration:
    """Check what was read from a file.

    Raises:
        ValueError: where its parts do not fit together, or are not of this task.
    """
    if is_classifier:
        if not TEMPERATURES[0] <= found.get("temperature", 0.0) <= TEMPERATURES[1]:
            raise ValueError(f"temperature {found.get('temperature')} is out of range")
        return found
    places, values = np.asarray(found.get("places", [])), np.asarray(found.get("pit", []))
    if not 0 <= found.get("least_level", LEAST_LEVEL) <= LEAST_LEVEL:
        raise ValueError(f"least_level {found.get('least_level')} is out of range")
    if len(places) != len(values) or not len(places):
        raise ValueError(f"{len(places)} places of {len(values)} values")
    ends = places[0] > 0 and np.isclose(places[-1], found["num_rows"], rtol=ROUNDING)
    if not (ends and (np.diff(places) > 0).all()):
        raise ValueError(f"places do not go up to {found['num_rows']}")
    if not ((values >= 0) & (values <= 1)).all() or not (np.diff(values) >= 0).all():
        raise ValueError("values of pit are not ascending probabilities")
    return found
