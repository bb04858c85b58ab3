"""Compute means and standard deviations of columns, and refuse numbers too coarse to carry them."""

import numpy as np
from jaxtyping import Float, Real

from credence.errors import InputError, plural

STEPS_PER_STD = 32
"""Fewest rounding steps (gaps between neighbouring floating point numbers) in a target's deviation.

With so many, 50 % intervals of a model that explains 99 % of its variance are still 4 steps wide.
"""

STEPS_OF_ROUNDING = 8
"""A column whose standard deviation spans no more steps is constant but for rounding."""

LARGEST_STD = 1e150
"""Scores square the errors: float64 ends at 1e308, and 1e-308 is the last above 0."""


def mean_and_std(
    x: Real[np.ndarray, "row column"], weight: Real[np.ndarray, " row"] | None = None
) -> tuple[Float[np.ndarray, " column"], Float[np.ndarray, " column"]]:
    """Mean and standard deviation (divisor: the sum of the weights) of every column.

    In float64, and twice: the mean of the differences from a first mean corrects it, so that an
    offset costs no digits. Rows of weight 0 do not count. The standard deviation is infinite where
    a difference overflows.
    """
    x = np.asarray(x, np.float64)
    if weight is not None:
        x, weight = x[weight > 0], weight[weight > 0] / weight.max()
    with np.errstate(over="ignore", invalid="ignore"):
        first = np.average(x, axis=0, weights=weight)
        mean = first + np.average(x - first, axis=0, weights=weight)
        largest = np.abs(x - mean).max(axis=0)
        unit = np.exp2(np.frexp(largest)[1])  # a power of two: squares neither overflow nor round
        variance = np.average(((x - mean) / unit) ** 2, axis=0, weights=weight)
        std = unit * np.sqrt(variance)
    return mean, np.where(np.isfinite(std), std, np.inf)


def scale_of_inputs(
    mean: Float[np.ndarray, " column"], std: Float[np.ndarray, " column"]
) -> Float[np.ndarray, " column"]:
    """The numbers to divide columns by: standard deviations, or 1 where only rounding differs.

    Instead of 1 it is 1000 steps of the column's numbers where these are coarser.
    """
    step = np.spacing(np.abs(mean))
    is_constant = std <= STEPS_OF_ROUNDING * step
    return np.where(is_constant, np.maximum(1.0, 1000 * step), std)


def scale_of_target(
    what: str,
    y: Real[np.ndarray, " point"],
    weight: Real[np.ndarray, " point"] | None = None,
) -> tuple[float, float]:
    """Mean and standard deviation of one target.

    Args:
        what: how sentences begin, such as "The target 'price'".
        y: its values.
        weight: how many observations each value stands for.
    Raises:
        InputError: where the target is not finite, constant, too large, too small, or varies by
            too few of the steps that numbers of its size have.
    """
    if not np.isfinite(y).all():
        raise InputError(f"{what} has missing or infinite values: remove these rows.")
    mean, std = (float(values[0]) for values in mean_and_std(y[:, None], weight))
    if std == 0:
        raise InputError(
            f"{what} is constant (all {plural(len(y), 'value')} are {mean:g}): there is nothing "
            "to learn."
        )
    if not 1 / LARGEST_STD <= std <= LARGEST_STD:
        size = "large" if std > 1 else "small"
        raise InputError(
            f"{what} has too {size} values to standardise: their standard deviation is {std:g}. "
            "Change their unit."
        )
    step = float(np.spacing(abs(mean)))
    if std < STEPS_PER_STD * step:
        raise InputError(
            f"{what} is nearly constant: its values differ from {mean:.17g} by {std:.3g} (one "
            f"standard deviation), but numbers of this size have steps of {step:.3g}. Subtract a "
            "constant where the values are made, before they are rounded."
        )
    return mean, std
