"""What an error costs: the lower envelope of measured points, its slope, and a ratio of costs.

A family is one method at one choice of widths, measured at several numbers of particles. Between
its points its mean square error is interpolated along straight lines of log error against log cost;
beyond them nothing is claimed. A method is the cheapest of its families at every error. Standard
errors and intervals are bootstrapped over replicates, within every point.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

NUM_BOOTSTRAPS = 400
"""An interval's ends are then 10th and 390th of 400."""

GRID = 16
"""Errors at which an envelope is read off."""

RESOLUTION = 2.0
"""Mean square errors below so many squared errors of the reference are not resolved."""


class Point(NamedTuple):
    """One measured setting.

    Args:
        family: method and widths; points of a family differ in their particles.
        cost: of one replicate.
        squares: squared error of every replicate against the reference, which has an error too.
    """

    family: str
    cost: float
    squares: Float[np.ndarray, " replicate"]


class Envelope(NamedTuple):
    """Cheapest cost of every error, from large errors to small."""

    errors: Float[np.ndarray, " error"]
    costs: Float[np.ndarray, " error"]


class Fitted(NamedTuple):
    """A number with its bootstrap standard error and 95 % interval; NaN where there is none."""

    value: float
    error: float
    low: float
    high: float


NOTHING = Fitted(np.nan, np.nan, np.nan, np.nan)


def mean_squares(
    points: Sequence[Point], noise: float, rng: np.random.Generator | None = None
) -> Float[np.ndarray, " point"]:
    """Mean square error of every point, less that of the reference.

    Args:
        noise: squared standard error of the reference.
        rng: for a bootstrap sample of the replicates; None takes them as they are.
    """

    def one(squares: np.ndarray) -> float:
        chosen = squares if rng is None else squares[rng.integers(0, len(squares), len(squares))]
        return float(np.mean(chosen)) - noise

    return np.array([one(np.asarray(point.squares, float)) for point in points])


def cost_of(
    error: float, costs: Float[np.ndarray, " point"], errors: Float[np.ndarray, " point"]
) -> float:
    """The least cost at which a family's line reaches an error; inf where it never does.

    Args:
        costs: increasing.
        errors: all > 0.
    """
    error *= 1 + 1e-9  # an error that a point has, rounded, is reached
    if errors[0] <= error:
        return float(costs[0])
    x, y, wanted = np.log(costs), np.log(errors), np.log(error)
    for i in range(len(y) - 1):
        if y[i + 1] <= wanted:
            share = (wanted - y[i]) / (y[i + 1] - y[i])
            return float(np.exp(x[i] + share * (x[i + 1] - x[i])))
    return float("inf")


def method_cost(
    error: float, points: Sequence[Point], errors: Float[np.ndarray, " point"]
) -> float:
    """The least cost of an error over all families; inf where none reaches it."""
    families: dict[str, list[tuple[float, float]]] = {}
    for point, value in zip(points, errors, strict=True):
        families.setdefault(point.family, []).append((point.cost, value))
    lines = (np.array(sorted(line)).T for line in families.values())
    return min(cost_of(error, costs, values) for costs, values in lines)


def envelope(points: Sequence[Point], errors: Float[np.ndarray, " point"]) -> Envelope:
    """Cheapest cost from the error of the cheapest point down to the smallest that was reached."""
    lowest = float(errors.min())
    highest = float(errors[np.argmin([point.cost for point in points])])
    grid = np.geomspace(max(highest, lowest), lowest, GRID)
    return Envelope(grid, np.array([method_cost(error, points, errors) for error in grid]))


def resolved(points: Sequence[Point], noise: float) -> list[Point]:
    """The points whose mean square error stands out of the reference's."""
    errors = mean_squares(points, noise)
    return [p for p, error in zip(points, errors, strict=True) if error > RESOLUTION * noise]


def slope(points: Sequence[Point], noise: float = 0.0) -> Fitted:
    """Slope of log cost against log mean square error along the envelope; at best -1 in theory."""
    points = resolved(points, noise)

    def fit(errors: np.ndarray) -> float:
        found = envelope(points, errors)
        if np.ptp(np.log(found.errors)) < np.log(2):
            return np.nan
        return float(np.polyfit(np.log(found.errors), np.log(found.costs), 1)[0])

    return _bootstrapped(fit, points, noise) if len(points) > 1 else NOTHING


def lowest_common(first: Sequence[Point], second: Sequence[Point], noise: float = 0.0) -> float:
    """The smallest resolved error that both methods reach; NaN where one has none."""
    both = [mean_squares(resolved(points, noise), noise) for points in (first, second)]
    return max(float(errors.min()) for errors in both) if all(map(len, both)) else np.nan


def cost_ratio(
    first: Sequence[Point],
    second: Sequence[Point],
    noise: float = 0.0,
    error: float | None = None,
) -> Fitted:
    """Cost of the first method over that of the second at one error: above 1 the second is cheaper.

    NaN where a method has fewer than two resolved points.

    Args:
        error: by default the lowest that both reach, in every bootstrap sample anew.
    """
    first, second = resolved(first, noise), resolved(second, noise)
    if min(len(first), len(second)) < 2:
        return NOTHING  # no line to read a cost off

    def ratio(errors: np.ndarray) -> float:
        parts = errors[: len(first)], errors[len(first) :]
        wanted = max(float(part.min()) for part in parts) if error is None else error
        numerator = method_cost(wanted, first, parts[0])
        denominator = method_cost(wanted, second, parts[1])
        both = np.isfinite(numerator) and np.isfinite(denominator)
        return numerator / denominator if both else np.nan

    return _bootstrapped(ratio, [*first, *second], noise)


def bound_width(error: float, alpha: float) -> float:
    """The width that the paper's bound asks for, for a mean square error: its L(eps).

    Section 4.4 of Chada et al. takes the squared bias to be n^-beta, beta = 2 alpha - 1, and at
    most half of the mean square error.
    """
    return (2 / error) ** (1 / (2 * alpha - 1))


def theory(alpha: float, depth: int) -> dict[str, float]:
    """Slopes of log cost against log MSE as widths go to infinity.

    With increments of variance n^-beta, bias n^-beta and cost n^gamma of a particle (Theorem 2.1 of
    Chada et al.; bias and variance decay alike because the increments have mean O(n^-beta)):
    -(1 + gamma / (2 beta)) of one level, and of several -1, or -(1 + (gamma - beta) / (2 beta))
    where beta < gamma.
    """
    beta, gamma = 2 * alpha - 1, 1.0 if depth == 1 else 2.0
    return {
        "beta": beta,
        "gamma": gamma,
        "smc": -(1 + gamma / (2 * beta)),
        "mlsmc": -(1 + max(gamma - beta, 0.0) / (2 * beta)),
    }


def _bootstrapped(
    fit: Callable[[Float[np.ndarray, " point"]], float],
    points: Sequence[Point],
    noise: float,
) -> Fitted:
    """The number from the points as they are; its spread over bootstrap samples."""
    rng = np.random.default_rng(0)
    least = 1e-3 * noise or 1e-300  # a sample's error may fall below that of the reference

    def sample() -> float:
        return fit(np.maximum(mean_squares(points, noise, rng), least))

    draws = np.array([sample() for _ in range(NUM_BOOTSTRAPS)])
    value = float(fit(np.maximum(mean_squares(points, noise), least)))
    finite = draws[np.isfinite(draws)]
    if not np.isfinite(value) or len(finite) < NUM_BOOTSTRAPS / 2:
        return Fitted(value, np.nan, np.nan, np.nan)
    low, high = np.quantile(finite, [0.025, 0.975])
    return Fitted(value, float(finite.std()), float(low), float(high))
